"""Decision values of kernel expansions, recomputed in float64, with bounds of rounding errors."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, Matrix, blocks_of
from ..kernels import Kernel, Linear, Precomputed
from ..problems import DualProblem, KernelSeparationProblem
from ..runtime.threads import in_parallel, n_threads
from .compensated import Doubled, combine, product

# The unit roundoff of float64.
UNIT = 0.5 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Tuning:
    """Sizes of tiles, and when scores are computed in twice the precision."""

    # Rows and columns of the tiles in which kernel values are recomputed: they fit a core's cache.
    tile_rows: int = 512
    # Columns of X up to which tiles of sparse rows are made dense.
    max_dense_columns: int = 4096
    # Errors of scores w·x + b above which they are computed in twice the precision, if X has at
    # most this many numbers.
    accepted_error: float = 1e-9
    max_doubled_numbers: int = 1 << 26


TUNING = Tuning()


def kernel_scores(
    problem: KernelSeparationProblem | DualProblem,
    coefficients: Floats,
    rows: Integers | None = None,
    b: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return Σ_l c_l K(x_l, x_m) + b for every m of ``rows``, and a bound of each error."""
    rows = np.arange(problem.index.size) if rows is None else rows
    if rows.size and np.bincount(problem.index[rows]).max() > 1:
        # Regression has two variables per row of X, which have the same score.
        _, first, places = np.unique(problem.index[rows], return_index=True, return_inverse=True)
        scores, errors = kernel_scores(problem, coefficients, rows[first], b)
        return scores[places], errors[places]
    support = np.flatnonzero(coefficients)
    if isinstance(problem.kernel, Linear):
        return _linear_scores(problem, coefficients[support], support, rows, b)
    weights = np.abs(coefficients)
    # Sums over the columns of a tile, and over the tiles.
    tile_rows = TUNING.tile_rows
    n_terms = min(support.size, tile_rows + -(-support.size // tile_rows)) + 2

    def part(some: Integers, stop: Event) -> tuple[Floats, Floats]:
        scores, errors = np.full(some.size, b), np.full(some.size, 2.0 * UNIT * abs(b))
        for first in range(0, support.size, tile_rows):
            if stop.is_set():
                break
            others = support[first : first + tile_rows]
            tile, error, size = _float64_tile(
                problem.kernel, problem.X, problem.index[some], problem.index[others],
                weights[others],
            )  # fmt: skip
            scores += tile @ coefficients[others]
            errors += error + n_terms * UNIT * size
        return scores, errors + 2.0 * UNIT * np.abs(scores)

    side = max(1, min(tile_rows, -(-rows.size // n_threads())))
    parts = [rows[k : k + side] for k in range(0, rows.size, side)]
    done = in_parallel(part, parts, alone=not problem.kernel.elementwise)
    return (
        np.concatenate([np.empty(0), *(scores for scores, _ in done)]),
        np.concatenate([np.empty(0), *(errors for _, errors in done)]),
    )


def _float64_tile(
    kernel: Kernel, X: Matrix, rows: Integers, columns: Integers, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return K[rows, columns], and Σ weights·|error| and Σ weights·|K| per row."""
    if isinstance(kernel, Precomputed):
        K = np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)
        return K, np.zeros(rows.size), np.abs(K) @ weights
    x, z = X[rows].astype(np.float64), X[columns].astype(np.float64)
    if sparse.issparse(X) and kernel.elementwise and X.shape[1] <= TUNING.max_dense_columns:
        x, z = x.toarray(), z.toarray()  # products of dense tiles are faster
    return kernel.bounded(x, z, weights)


def _linear_scores(
    problem: KernelSeparationProblem | DualProblem,
    coefficients: Floats,
    support: Integers,
    rows: Integers,
    b: float,
) -> tuple[Floats, Floats]:
    """Return w·x + b with w = Σ c_l x_l, in twice the precision if float64 is not enough."""
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
    n_numbers = (support.size + rows.size) * d
    if errors.max(initial=0.0) <= TUNING.accepted_error or n_numbers > TUNING.max_doubled_numbers:
        return scores, errors
    exact: Doubled = Doubled.zeros(d)
    for block in blocks_of(support.size, d):
        some = _dense(_rows_of(X, problem.index[support[block]]))
        exact = combine(exact, some, coefficients[block])
    for block in blocks_of(rows.size, d):
        scores[block] = product(_dense(_rows_of(X, problem.index[rows[block]])), exact, b)
    # Operations on `Doubled` have relative errors of a few UNIT²; the result is rounded to float64.
    return scores, 16.0 * UNIT * errors + 2.0 * UNIT * np.abs(scores)


def _rows_of(X: Matrix, rows: Integers) -> Matrix:
    return X[rows].astype(np.float64)


def _dense(rows: Matrix) -> Floats:
    return rows.toarray() if sparse.issparse(rows) else rows
