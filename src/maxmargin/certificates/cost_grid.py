"""Certificates of the same tasks at several costs, whose kernel values are computed once.

Only for Gaussian kernels, where rounding errors are relative: the scores of all costs then have one
bound per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..arrays import Floats
from ..kernels import RBF
from ..kernels.products import squared_norms
from ..problems import DualProblem
from ..problems.shared_rows import SharedRows
from ..runtime.exponential import exp2
from ..runtime.memory import bytes_to_keep
from ..runtime.row_access import compiled_part
from ..runtime.team import parallel
from ..runtime.threads import single_threaded_blas
from .dual import Claim, MarginCertificate, certificates_of, lengths_of
from .dual_tasks import Margins, Tasks
from .scores import UNIT

# Rows of a part.
PART_ROWS = 128
# Computed sums of positive numbers are too small by less than this share.
ROUNDED_SUM = 1e-6
# log₂ e
PER_NEPER = 1.4426950408889634


@dataclass(frozen=True)
class SquaredDistances:
    """‖x_i − x_j‖² of all rows, in float64, for the certificates of several Gaussian kernels.

    Parameters
    ----------
    values : ndarray of shape (n, n)
    squares : ndarray of shape (n,)
        ‖x_i‖² about the mean.
    n_columns : int
    """

    values: Floats
    squares: Floats
    n_columns: int

    @classmethod
    def of(cls, X: object) -> SquaredDistances | None:
        """Return those of the rows of X; None where they do not fit the memory."""
        n, d = X.shape  # type: ignore[attr-defined]
        if 8.0 * n * n + 8.0 * n * d > bytes_to_keep():
            return None
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)  # type: ignore[attr-defined]
        rows = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
        squares, values = squared_norms(rows), np.empty((n, n))
        with single_threaded_blas():
            fill_distances(-(-n // PART_ROWS), rows, squares, values)
        return cls(values, squares, d)

    def relative_errors(self, kernel: RBF) -> Floats:
        """Return a bound of |ΔK|/K for the values of every row."""
        farthest = float(self.squares.max())
        return kernel.relative_rounding(self.squares, farthest, self.n_columns, UNIT)


def certify_costs(
    problems: Sequence[DualProblem],
    names: Sequence[str],
    costs: Floats,
    alpha: Floats,
    b: Floats,
    distances: SquaredDistances,
    tol: float,
) -> list[list[MarginCertificate]]:
    """Certify the answers of all tasks at every cost.

    Parameters
    ----------
    problems : sequence of DualProblem
        Of C = 1, with one Gaussian kernel and one X.
    names : sequence of str
        Of the problems: those of one name have most of their rows in common.
    costs : ndarray of shape (m,)
        By which upper bounds are multiplied, and D divided.
    alpha : ndarray of shape (m, n_variables)
        One task after the other.
    b : ndarray of shape (m, n_tasks)
    distances : SquaredDistances
        Of the rows of X.
    tol : float
        Where a certificate does not hold to it, rounding is bounded more closely.
    """
    kernel = problems[0].kernel
    assert isinstance(kernel, RBF)
    relative = distances.relative_errors(kernel)
    tasks, lengths = Tasks.of(*problems), lengths_of(problems[0])
    at_cost = [replace(tasks, upper=tasks.upper * C, ridge=tasks.ridge / C) for C in costs.tolist()]
    clipped = [np.clip(a, each.lower, each.upper) for a, each in zip(alpha, at_cost, strict=True)]
    coefficients = np.array(clipped) * tasks.signs
    index = np.concatenate([problem.index for problem in problems])
    shared = SharedRows.of(problems, names)
    scores = scores_of(shared, coefficients, distances, kernel)

    def certify(k: int, sizes: Floats) -> list[MarginCertificate]:
        each = at_cost[k]
        bias = each.each(b[k])
        values = scores[k] + bias
        n_terms = each.total((coefficients[k] != 0.0).astype(float))
        errors = (relative[index] + each.each(n_terms + 4.0) * UNIT) * sizes
        errors += 2.0 * UNIT * (np.abs(bias) + np.abs(values))
        margins = Margins(each.signs * values, errors, 0, "complete")
        return certificates_of(each, Claim(alpha[k], clipped[k], b[k]), margins, lengths)

    sizes = np.abs(coefficients)
    # K ≤ 1: Σ |c_l| K(x_l, x_m) is at most Σ |c_l|.
    found = [certify(k, tasks.each(tasks.total(sizes[k]))) for k in range(costs.size)]
    loose = [k for k, proofs in enumerate(found) if not all(proof.holds(tol) for proof in proofs)]
    if loose:
        sums = scores_of(shared, sizes[loose], distances, kernel)
        for k, closer in zip(loose, sums, strict=True):
            found[k] = certify(k, (1.0 + ROUNDED_SUM) * closer)
    return found


def scores_of(
    shared: SharedRows, coefficients: Floats, distances: SquaredDistances, kernel: RBF
) -> Floats:
    """Return Σ_l c_l K(x_l, x_m) within each task, for every vector c of ``coefficients``."""
    m, width = len(coefficients), len(coefficients) * (int(shared.numbers.max()) + 1)
    cells = (width * shared.places + m * shared.numbers)[:, None] + np.arange(m)
    weights = np.bincount(cells.ravel(), coefficients.T.ravel(), shared.rows.size * width)
    found = np.empty((shared.rows.size, width))
    n_parts = -(-np.diff(shared.starts) // PART_ROWS)
    group = np.repeat(np.arange(n_parts.size), n_parts)
    number = np.arange(group.size) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    with single_threaded_blas():
        add_scores(
            group.size, group, PART_ROWS * number + shared.starts[group], shared.starts,
            shared.rows, distances.values, -PER_NEPER * kernel.gamma, weights.reshape(found.shape),
            found,
        )  # fmt: skip
    return np.ascontiguousarray(found.ravel()[cells].T)


@parallel
def fill_distances(part, X, squares, out):
    """Write ‖x_i − x_j‖² of some rows."""
    first, last = PART_ROWS * part, min(PART_ROWS * (part + 1), X.shape[0])
    products = np.dot(X[first:last], X.T)
    for i in range(first, last):
        row, values, square = products[i - first], out[i], squares[i]
        for j in range(row.size):
            value = square + squares[j] - 2.0 * row[j]
            values[j] = value if value > 0.0 else 0.0
        values[i] = 0.0


@parallel
def add_scores(part, group, begin, starts, rows, distances, scale, weights, scores):
    """Write the scores of some rows of a group."""
    g, first = group[part], begin[part]
    mine, last = rows[starts[g] : starts[g + 1]], min(first + PART_ROWS, starts[g + 1])
    block = kernel_values(distances, scale, rows[first:last], mine)
    np.dot(block, weights[starts[g] : starts[g + 1]], scores[first:last])


@compiled_part
def kernel_values(distances, scale, rows, columns):
    """Return 2^(scale·‖x − z‖²) of some rows and columns.

    K of all rows would be quicker than those of every group, but for the memory it needs.
    """
    out = np.empty((rows.size, columns.size))
    for r in range(rows.size):
        row, values = distances[rows[r]], out[r]
        for c in range(columns.size):
            values[c] = scale * row[columns[c]]
        for c in range(columns.size):
            values[c] = exp2(values[c])
    return out
