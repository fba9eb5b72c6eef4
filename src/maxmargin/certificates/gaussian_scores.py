"""Σ_l c_l exp(−γ‖x_l − x_m‖²) of the tasks of a fit, in float64 on all cores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Floats
from ..kernels import RBF
from ..kernels.products import squared_norms
from ..problems import DualProblem
from ..runtime.exponential import exp2
from ..runtime.row_access import compiled
from ..runtime.team import parallel
from ..runtime.threads import single_threaded_blas

# Variables of a task whose scores are one part, and support vectors of a tile: it fits the cache.
PART_ROWS, TILE_VECTORS = 128, 512
# log₂ e
PER_NEPER = 1.4426950408889634


def gaussian_scores(
    kernel: RBF, X: Floats, problems: Sequence[DualProblem], coefficients: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """Return all scores, Σ\\|c_l\\|K(x_l, x_m), and ‖x_m‖², of the tasks one after the other.

    X are dense float64 rows about an origin of small ‖x‖.
    """
    sizes = np.array([problem.n_variables for problem in problems])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    index, c = np.concatenate([p.index for p in problems]), np.concatenate(coefficients)
    support = np.flatnonzero(c)
    first = np.searchsorted(support, starts)
    n_parts = -(-sizes // PART_ROWS)
    task = np.repeat(np.arange(sizes.size), n_parts)
    begin = PART_ROWS * (np.arange(task.size) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts))
    squares = squared_norms(X)
    scores, weights = np.zeros(index.size), np.zeros(index.size)
    with single_threaded_blas():
        add_scores(
            task.size, task, begin + starts[task], starts, first, index, support, c, X, squares,
            kernel.gamma, scores, weights,
        )  # fmt: skip
    return scores, weights, squares[index]


@parallel
def add_scores(
    part, task, begin, starts, first, index, support, c, X, squares, gamma, scores, weights
):
    """Write the scores of some variables of a task, and the sums of the sizes of their terms."""
    t, low = task[part], begin[part]
    mine = index[low : min(low + PART_ROWS, starts[t + 1])]
    x, scale = _gathered(X, mine), gamma * PER_NEPER
    for at in range(first[t], first[t + 1], TILE_VECTORS):
        some = support[at : min(at + TILE_VECTORS, first[t + 1])]
        others, by = index[some], c[some]
        products, own = np.dot(x, _gathered(X, others).T), squares[others]
        for r in range(mine.size):
            row, square, total, size = products[r], squares[mine[r]], 0.0, 0.0
            for k in range(by.size):
                power = scale * (2.0 * row[k] - square - own[k])
                value = by[k] * exp2(power if power < 0.0 else 0.0)
                total += value
                size += abs(value)
            scores[low + r] += total
            weights[low + r] += size


@compiled
def _gathered(X, rows):
    """Return some rows of X."""
    out = np.empty((rows.size, X.shape[1]))
    for r in range(rows.size):
        row = X[rows[r]]
        for k in range(row.size):  # assigning the whole row takes seconds to compile
            out[r, k] = row[k]
    return out
