"""Decision values of kernel expansions, recomputed in float64 on all cores, with a bound of their
rounding errors."""

from __future__ import annotations

from threading import Event
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, blocks_of
from ..kernels import Kernel, Linear, Precomputed
from ..problems import DualProblem, KernelSeparationProblem
from ..runtime.threads import in_parallel, n_threads
from .compensated import Doubled, combine, product

# Side of the tiles in which kernel values are recomputed: they fit a core's cache.
TILE = 512
# Columns up to which tiles of sparse rows are made dense.
NARROW = 4096
UNIT = 0.5 * float(np.finfo(np.float64).eps)
# Errors of scores w·x + b that are worth a computation in twice the digits, and the numbers of X
# up to which there is time for it.
COARSE, AFFORDABLE = 1e-9, 1 << 26


def kernel_scores(
    problem: KernelSeparationProblem | DualProblem,
    coefficients: Floats,
    rows: Integers | None = None,
    b: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return Σ_l c_l K(x_l, x_m) + b for every m of ``rows``, and by how much each may be wrong."""
    support = np.flatnonzero(coefficients)
    rows = np.arange(problem.index.size) if rows is None else rows
    if isinstance(problem.kernel, Linear):
        return _linear_scores(problem, coefficients[support], support, rows, b)
    weights = np.abs(coefficients)
    # Sums of up to TILE products, and of the tiles.
    n_terms = min(support.size, TILE + -(-support.size // TILE)) + 2

    def part(some: Integers, stop: Event) -> tuple[Floats, Floats]:
        scores, errors = np.full(some.size, b), np.full(some.size, 2.0 * UNIT * abs(b))
        for first in range(0, support.size, TILE):
            if stop.is_set():
                break
            others = support[first : first + TILE]
            tile, error, size = _float64_tile(
                problem.kernel, problem.X, problem.index[some], problem.index[others],
                weights[others],
            )  # fmt: skip
            scores += tile @ coefficients[others]
            errors += error + n_terms * UNIT * size
        return scores, errors + 2.0 * UNIT * np.abs(scores)

    side = max(1, min(TILE, -(-rows.size // n_threads())))
    parts = [rows[k : k + side] for k in range(0, rows.size, side)]
    done = in_parallel(part, parts, alone=not problem.kernel.elementwise)
    return (
        np.concatenate([np.empty(0), *(scores for scores, _ in done)]),
        np.concatenate([np.empty(0), *(errors for _, errors in done)]),
    )


def _float64_tile(
    kernel: Kernel, X: Any, rows: Integers, columns: Integers, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return K[rows, columns], Σ weights·|error| and Σ weights·|K| of its rows."""
    if isinstance(kernel, Precomputed):
        K = np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)
        return K, np.zeros(rows.size), np.abs(K) @ weights
    x, z = X[rows].astype(np.float64), X[columns].astype(np.float64)
    if sparse.issparse(X) and kernel.elementwise and X.shape[1] <= NARROW:
        x, z = x.toarray(), z.toarray()  # products of dense tiles are faster
    return kernel.bounded(x, z, weights)


def _linear_scores(
    problem: KernelSeparationProblem | DualProblem,
    coefficients: Floats,
    support: Integers,
    rows: Integers,
    b: float,
) -> tuple[Floats, Floats]:
    """Return w·x + b with w = Σ c_l x_l: in twice the digits where float64 has too few."""
    X, d = problem.X, problem.X.shape[1]
    w, sizes = np.zeros(d), np.zeros(d)
    for block in blocks_of(support.size, d):
        some = _rows_of(X, problem.index[support[block]])
        w += some.T @ coefficients[block]
        sizes += abs(some).T @ np.abs(coefficients[block])
    scores, errors = np.empty(rows.size), np.empty(rows.size)
    unit = (support.size + d + 4) * UNIT
    for block in blocks_of(rows.size, d):
        some = _rows_of(X, problem.index[rows[block]])
        scores[block] = some @ w + b
        errors[block] = unit * (abs(some) @ sizes + abs(b))
    if errors.max(initial=0.0) <= COARSE or (support.size + rows.size) * d > AFFORDABLE:
        return scores, errors
    exact: Doubled = Doubled.zeros(d)
    for block in blocks_of(support.size, d):
        some = _dense(_rows_of(X, problem.index[support[block]]))
        exact = combine(exact, some, coefficients[block])
    for block in blocks_of(rows.size, d):
        scores[block] = product(_dense(_rows_of(X, problem.index[rows[block]])), exact, b)
    # Each operation on `Doubled` has an error of some UNIT²; the answer is rounded to float64.
    return scores, 16.0 * UNIT * errors + 2.0 * UNIT * np.abs(scores)


def _rows_of(X: Any, rows: Integers) -> Any:
    return X[rows].astype(np.float64)


def _dense(rows: Any) -> Floats:
    return rows.toarray() if sparse.issparse(rows) else rows
