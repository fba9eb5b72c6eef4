"""Decision values of kernel expansions, recomputed in float64, with bounds of rounding errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import TypeAlias

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, Matrix, OnDevice, Partitioned, blocks_of, has_repeats
from ..kernels import RBF, Kernel, Linear, Precomputed
from ..kernels.elementwise import VISIBLE_ERROR
from ..kernels.products import squared_norms
from ..problems import DualProblem, JointKernelProblem, KernelSeparationProblem
from ..runtime.threads import in_parallel
from ..solution import Solution
from .compensated import Doubled, combine, product
from .device_scores import Expansions, are_on_device

# The unit roundoff of float64.
UNIT = 0.5 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Tuning:
    """Sizes of tiles, and when scores are computed in twice the precision."""

    # Rows and columns of the tiles in which kernel values are recomputed: they fit a core's cache.
    tile_rows: int = 512
    # Kernel values up to which one thread computes them: some tenths of a millisecond.
    unthreaded_values: int = 1 << 15
    # Products of kernel values and coefficients up to which tasks share one block of such values.
    max_shared_products: int = 1 << 20
    # Columns of X up to which tiles of sparse rows are made dense.
    max_dense_columns: int = 4096
    # Errors of scores w·x + b above which they are computed in twice the precision, if X has at
    # most this many numbers.
    accepted_error: float = 1e-9
    max_doubled_numbers: int = 1 << 26


TUNING = Tuning()


@dataclass(frozen=True)
class _Expansion:
    """Rows of X, with the support vectors below them, and their kernel."""

    kernel: Kernel
    X: Matrix
    index: Integers


Expanded: TypeAlias = KernelSeparationProblem | DualProblem | JointKernelProblem | _Expansion


def kernel_scores(
    problem: Expanded,
    coefficients: Floats,
    rows: Integers | None = None,
    b: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return Σ_l c_l K(x_l, x_m) + b for every m of ``rows``, and a bound of each error."""
    rows = np.arange(problem.index.size) if rows is None else rows
    if isinstance(problem.X, OnDevice):
        found = _device_scores([problem], [coefficients], [b], [problem.index[rows]])
        if found is not None:
            return found[0]
        problem = replace(problem, X=problem.X.host)
    if has_repeats(problem.index[rows]):
        # Regression has two variables per row of X, which have the same score.
        _, first, places = np.unique(problem.index[rows], return_index=True, return_inverse=True)
        scores, errors = kernel_scores(problem, coefficients, rows[first], b)
        return scores[places], errors[places]
    if isinstance(problem.X, Partitioned):
        return _scores_in_partitions(problem, coefficients, rows, b)
    support = np.flatnonzero(coefficients)
    if isinstance(problem.kernel, Linear):
        return _linear_scores(problem, coefficients[support], support, rows, b)
    weights = np.abs(coefficients)
    # Sums over the columns of a tile, and over the tiles.
    tile_rows = TUNING.tile_rows
    n_terms = min(support.size, tile_rows + -(-support.size // tile_rows)) + 2

    # Parts of one tile where the rows are few, of several where there are parts enough.
    step = tile_rows if rows.size <= tile_rows else 8 * tile_rows

    def part(corner: tuple[int, int], stop: Event) -> tuple[Floats, Floats]:
        some = rows[corner[0] : corner[0] + tile_rows]
        scores, errors = np.zeros(some.size), np.zeros(some.size)
        last = min(corner[1] + step, support.size)
        for first in range(corner[1], last, tile_rows):
            if stop.is_set():
                break
            others = support[first : min(first + tile_rows, last)]
            tile, error, size = float64_tile(
                problem.kernel, problem.X, problem.index[some], problem.index[others],
                weights[others],
            )  # fmt: skip
            scores += tile @ coefficients[others]
            errors += error + n_terms * UNIT * size
        return scores, errors

    corners = [(i, j) for i in range(0, rows.size, tile_rows) for j in range(0, support.size, step)]
    alone = rows.size * support.size <= TUNING.unthreaded_values or not problem.kernel.elementwise
    done = in_parallel(part, corners, alone=alone)
    scores, errors = np.full(rows.size, b), np.full(rows.size, 2.0 * UNIT * abs(b))
    for (i, _), (values, bounds) in zip(corners, done, strict=True):
        scores[i : i + tile_rows] += values
        errors[i : i + tile_rows] += bounds
    return scores, errors + 2.0 * UNIT * np.abs(scores)


def scores_of_tasks(
    problems: Sequence[DualProblem], coefficients: Sequence[Floats], b: Sequence[float]
) -> list[tuple[Floats, Floats]]:
    """Return the same as `kernel_scores` for all variables of each of the tasks of a fit.

    The kernel values of small tasks are computed once for all of them, on a device those of any.
    """
    if isinstance(problems[0].X, OnDevice):
        found = _device_scores(problems, coefficients, b, [each.index for each in problems])
        if found is not None:
            return found
        host = problems[0].X.host
        problems = [replace(problem, X=host) for problem in problems]
    if isinstance(problems[0].X, Partitioned):
        parts = zip(problems, coefficients, b, strict=True)
        return [kernel_scores(problem, c, b=bias) for problem, c, bias in parts]
    if has_repeats(problems[0].index):
        return _scores_of_rows(problems, coefficients, b)
    if len(problems) > 1 and _have_same_rows(problems):
        return _scores_of_same_rows(problems, coefficients, b)
    is_tiny = problems[0].X.shape[0] ** 2 <= TUNING.unthreaded_values
    found = _shared_scores(problems, coefficients, b) if len(problems) > 1 or is_tiny else None
    if found is not None:
        return found

    found = _gaussian_scores(problems, coefficients, b)
    if found is not None:
        return found

    def one(k: int, stop: Event) -> tuple[Floats, Floats]:
        return kernel_scores(problems[k], coefficients[k], b=b[k])

    is_alone = len(problems) == 1 or not problems[0].kernel.elementwise
    return in_parallel(one, range(len(problems)), alone=is_alone)


def _scores_in_partitions(
    problem: Expanded,
    coefficients: Floats,
    rows: Integers,
    b: float,
) -> tuple[Floats, Floats]:
    """Return the scores of different rows, computed where they are."""
    support = np.flatnonzero(coefficients)
    vectors, places = np.unique(problem.index[support], return_inverse=True)
    wanted = problem.index[rows]
    order = np.argsort(wanted)
    common = (problem.kernel, problem.X[vectors], places, coefficients[support], b)
    found = problem.X.reduce(
        _scores_of_part, _one_below_the_other, problem.X.places_in(wanted[order]), common=common
    )
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    scores, errors = found[:, back]
    return scores, errors


def _scores_of_part(
    X: Matrix,
    rows: Integers,
    kernel: Kernel,
    vectors: Matrix,
    places: Integers,
    coefficients: Floats,
    b: float,
) -> Floats:
    """Return the scores of some rows of a partition, and bounds of their errors."""
    if not rows.size:
        return np.empty((2, 0))
    some = X if rows.size == X.shape[0] else X[rows]
    pair = [some, vectors]
    both = sparse.vstack(pair, format="csr") if sparse.issparse(some) else np.concatenate(pair)
    whole = _Expansion(kernel, both, np.concatenate([np.arange(rows.size), rows.size + places]))
    weights = np.concatenate([np.zeros(rows.size), coefficients])
    return np.stack(kernel_scores(whole, weights, np.arange(rows.size), b))


def _one_below_the_other(parts: list[Floats]) -> Floats:
    return np.concatenate(parts, axis=1)


def _device_scores(
    problems: Sequence[Expanded],
    coefficients: Sequence[Floats],
    b: Sequence[float],
    wanted: Sequence[Integers],
) -> list[tuple[Floats, Floats]] | None:
    """Return the scores of rows of X computed where X is; None where the host has to do it.

    Scores of a linear kernel that need twice the precision are computed on the host.
    """
    kernel, X = problems[0].kernel, problems[0].X
    if not are_on_device(kernel, X):
        return None
    index = [problem.index for problem in problems]
    found = Expansions(kernel, X, index, coefficients, b, wanted).scores()
    if found is None or not isinstance(kernel, Linear):
        return found
    worst = max(float(errors.max(initial=0.0)) for _, errors in found)
    is_small = np.prod(X.shape, dtype=float) <= TUNING.max_doubled_numbers
    return None if worst > TUNING.accepted_error and is_small else found


def _scores_of_rows(
    problems: Sequence[DualProblem], coefficients: Sequence[Floats], b: Sequence[float]
) -> list[tuple[Floats, Floats]]:
    """Return the scores of regressions, which have two variables per row of X, row by row."""
    index = problems[0].index
    _, first, places = np.unique(index, return_index=True, return_inverse=True)
    if any(problem.index is not index for problem in problems):
        parts = zip(problems, coefficients, b, strict=True)
        return [scores_of_tasks([problem], [c], [bias])[0] for problem, c, bias in parts]
    of_rows = [np.bincount(places, c).astype(np.float64, copy=False) for c in coefficients]
    found = scores_of_tasks([problems[0].restrict(first)] * len(problems), of_rows, b)
    return [(scores[places], errors[places]) for scores, errors in found]


def scores_of(problem: DualProblem, solution: Solution) -> Floats:
    """Return the scores that a solver claims, or else compute them."""
    if solution.scores is not None:
        return solution.scores
    assert solution.alpha is not None
    return kernel_scores(problem, solution.alpha * problem.signs)[0]


def _shared_scores(
    problems: Sequence[DualProblem], coefficients: Sequence[Floats], b: Sequence[float]
) -> list[tuple[Floats, Floats]] | None:
    """Return the scores of tasks from one block of kernel values, None where that takes longer.

    Its rounding errors are bounded for the largest coefficients of any task, which is a bound for
    each task: None where it shows.
    """
    kernel, X, n_tasks = problems[0].kernel, problems[0].X, len(problems)
    is_costly = X.shape[0] ** 2 * n_tasks > TUNING.max_shared_products
    if is_costly or isinstance(kernel, Linear) or not kernel.elementwise:
        return None
    everywhere = np.zeros((X.shape[0], n_tasks))
    for k, problem in enumerate(problems):
        everywhere[problem.index, k] = coefficients[k]
    support = np.flatnonzero(everywhere.any(axis=1))
    some = everywhere[support]
    K, errors, size = float64_tile(
        kernel, X, np.arange(X.shape[0]), support, np.abs(some).max(axis=1, initial=0.0)
    )
    errors += (support.size + 2) * UNIT * size
    if not errors.max(initial=0.0) <= TUNING.accepted_error:
        return None
    scores = K @ some + b
    errors = errors[:, np.newaxis] + 2.0 * UNIT * (np.abs(scores) + np.abs(b))
    return [(scores[p.index, k], errors[p.index, k]) for k, p in enumerate(problems)]


def _have_same_rows(problems: Sequence[DualProblem]) -> bool:
    """Return whether problems differ in their bounds only, as those of a path do.

    Planes of a linear kernel take less time one by one.
    """
    first = problems[0]
    is_shared = all(each.index is first.index and each.X is first.X for each in problems)
    return is_shared and not isinstance(first.kernel, Linear) and not has_repeats(first.index)


def _scores_of_same_rows(
    problems: Sequence[DualProblem], coefficients: Sequence[Floats], b: Sequence[float]
) -> list[tuple[Floats, Floats]]:
    """Return the scores of problems on the same rows, from kernel values computed once."""
    first, together, biases = problems[0], np.stack(coefficients), np.asarray(b)
    support = np.flatnonzero(together.any(axis=0))
    together = together[:, support].T
    weights = np.abs(together)
    scores, errors = np.empty((2, len(problems), first.n_variables))

    def part(start: int, stop: Event) -> None:
        rows = slice(start, start + TUNING.tile_rows)
        K, error, size = float64_tile(
            first.kernel, first.X, first.index[rows], first.index[support], weights
        )
        found = K @ together + biases
        size *= (support.size + 2) * UNIT
        size += error
        size += 2.0 * UNIT * (np.abs(found) + np.abs(biases))
        scores[:, rows], errors[:, rows] = found.T, size.T

    starts = range(0, first.n_variables, TUNING.tile_rows)
    in_parallel(part, starts, alone=not first.kernel.elementwise)
    return list(zip(scores, errors, strict=True))


def _gaussian_scores(
    problems: Sequence[DualProblem], coefficients: Sequence[Floats], b: Sequence[float]
) -> list[tuple[Floats, Floats]] | None:
    """Return the scores of tasks with a Gaussian kernel, computed in compiled code.

    None where rounding of ‖x‖² + ‖z‖² − 2⟨x,z⟩ may show, or where X is large.
    """
    kernel, X = problems[0].kernel, problems[0].X
    if type(kernel) is not RBF or np.prod(X.shape, dtype=float) > TUNING.max_doubled_numbers:
        return None
    rows = X.toarray() if sparse.issparse(X) else X
    rows = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    d, farthest = rows.shape[1], float(squared_norms(rows).max())
    if not kernel.relative_rounding(np.array(farthest), farthest, d, UNIT) <= VISIBLE_ERROR:
        return None
    from .gaussian_scores import gaussian_scores

    scores, sizes, squares = gaussian_scores(kernel, rows, problems, coefficients)
    n_terms = np.array([np.count_nonzero(some) + 2 for some in coefficients])
    counts = np.array([problem.n_variables for problem in problems])
    bias, n_terms = np.repeat(np.asarray(b), counts), np.repeat(n_terms, counts)
    relative = kernel.relative_rounding(squares, farthest, d, UNIT)
    scores += bias
    errors = (relative + n_terms * UNIT) * sizes + 2.0 * UNIT * (np.abs(bias) + np.abs(scores))
    ends = np.cumsum(counts)[:-1]
    return list(zip(np.split(scores, ends), np.split(errors, ends), strict=True))


def float64_tile(
    kernel: Kernel, X: Matrix, rows: Integers, columns: Integers, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return K[rows, columns], and Σ weights·|error| and Σ weights·|K| per row."""
    if isinstance(kernel, Precomputed):
        K = np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)
        return K, np.zeros((rows.size, *weights.shape[1:])), np.abs(K) @ weights
    x, z = X[rows].astype(np.float64), X[columns].astype(np.float64)
    if sparse.issparse(X) and kernel.elementwise and X.shape[1] <= TUNING.max_dense_columns:
        x, z = x.toarray(), z.toarray()  # products of dense tiles are faster
    return kernel.bounded(x, z, weights)


def _linear_scores(
    problem: Expanded,
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
