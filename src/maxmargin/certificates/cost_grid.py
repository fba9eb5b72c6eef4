"""Certificates of the same tasks at several costs, whose kernel values are computed once.

Only for Gaussian kernels, where rounding errors are relative: the scores of all costs then have one
bound per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers
from ..kernels import RBF
from ..kernels.products import squared_norms
from ..problems import DualProblem
from ..problems.shared_rows import SharedRows
from ..runtime.columns import runs_of, some_columns, used_columns
from ..runtime.exponential import exp2
from ..runtime.memory import bytes_to_keep
from ..runtime.row_access import compiled_part
from ..runtime.team import parallel
from ..runtime.threads import single_threaded_blas
from .dual import Claim, Proofs, lengths_of, proofs_of
from .dual_tasks import Margins, Tasks
from .hinge_tasks import hinge_proofs
from .scores import UNIT

# Rows of a part of all distances, and of a block of the kernel values of a group, at most.
PART_ROWS, BLOCK_ROWS = 128, 512
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


@dataclass(frozen=True)
class CertifiedTasks:
    """Tasks at C = 1, and what all kernels and costs have of them in common.

    Parameters
    ----------
    tasks : Tasks
    index : ndarray of int of shape (n_variables,)
        The row of X that each variable belongs to.
    shared : SharedRows
    """

    tasks: Tasks
    index: Integers
    shared: SharedRows

    @classmethod
    def of(cls, problems: Sequence[DualProblem], shared: SharedRows) -> CertifiedTasks:
        """Put the variables of problems one after the other; their kernels do not matter."""
        index = np.concatenate([problem.index for problem in problems])
        return cls(Tasks.of(*problems), index, shared)

    @cached_property
    def variables(self) -> Floats:
        """The signs of all variables, their lower bounds, and their upper bounds at C = 1."""
        tasks = self.tasks
        return np.array([tasks.signs, tasks.lower, tasks.upper])

    @cached_property
    def are_hinges(self) -> bool:
        """Whether all are classifiers with a bias and a margin of 1, of finite costs and D = 0."""
        tasks = self.tasks
        has_unit_margins = bool((tasks.p == -1.0).all()) and not tasks.lower.any()
        has_bias = len(tasks.groups) == 1 and not tasks.sums.any()
        return has_bias and has_unit_margins and tasks.has_hinge_losses

    @cached_property
    def largest(self) -> float:
        """The largest upper bound at C = 1."""
        return float(self.tasks.upper.max())

    @cached_property
    def starts(self) -> Integers:
        """The first variable of every task, and the end."""
        return np.append(self.tasks.starts, self.index.size)


def certify_costs(
    grid: CertifiedTasks,
    kernel: RBF,
    costs: Floats,
    alpha: Floats,
    b: Floats,
    distances: SquaredDistances,
    tol: float,
) -> Proofs:
    """Certify the answers of all tasks at every cost: numbers of shape (n_costs, n_tasks).

    Parameters
    ----------
    grid : CertifiedTasks
    kernel : RBF
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
    relative, shared = distances.relative_errors(kernel)[grid.index], grid.shared
    lengths = lengths_of(grid.tasks.problems[0])
    are_hinges = grid.are_hinges and np.isfinite(float(costs.max()) * grid.largest)

    def certify(
        costs: Floats, alpha: Floats, b: Floats, scores: Floats, sizes: Floats | None, of: Integers
    ) -> Proofs:
        if are_hinges:
            numbers = costs, alpha, b, scores, sizes
            return hinge_proofs(grid.starts, grid.variables, relative, *numbers, of)
        return _any_proofs(grid, lengths, relative, costs, alpha, b, scores, sizes)

    every = np.arange(grid.tasks.sizes.size)
    groups = np.arange(shared.firsts.size - 1)
    scores = scores_of(grid, kernel, costs, alpha, distances, groups)
    found = certify(costs, alpha, b, scores, None, every)
    loose = ~found.hold(tol)
    if loose.any():
        some, tasks = np.flatnonzero(loose.any(axis=1)), every
        if are_hinges:
            groups = np.unique(shared.groups[loose.any(axis=0)])
            tasks = np.flatnonzero(np.isin(shared.groups, groups))
        own = costs[some], alpha[some], b[some], scores[some]
        sums = scores_of(grid, kernel, *own[:2], distances, groups, are_sizes=True)
        closer = certify(*own, (1.0 + ROUNDED_SUM) * sums, tasks)
        for values, better in zip(found, closer, strict=True):
            values[np.ix_(some, tasks)] = better
    return found


def _any_proofs(
    grid: CertifiedTasks, lengths: Floats, relative: Floats, costs: Floats, alpha: Floats,
    b: Floats, scores: Floats, sizes: Floats | None,
) -> Proofs:  # fmt: skip
    """Return the numbers of the certificates of all tasks, whatever they are."""
    tasks, found = grid.tasks, []
    for c, cost in enumerate(costs.tolist()):
        with np.errstate(over="ignore"):
            each = replace(tasks, upper=tasks.upper * cost, ridge=tasks.ridge / cost)
        clipped, bias = np.clip(alpha[c], each.lower, each.upper), each.each(b[c])
        n_terms = each.each(each.total((clipped != 0.0).astype(float)))
        # K ≤ 1: Σ |c_l| K(x_l, x_m) is at most Σ |c_l|.
        size = each.each(each.total(np.abs(clipped))) if sizes is None else sizes[c]
        values = scores[c] + bias
        errors = (relative + (n_terms + 4.0) * UNIT) * size
        errors += 2.0 * UNIT * (np.abs(bias) + np.abs(values))
        margins = Margins(each.signs * values, errors, 0, "complete")
        found.append(proofs_of(each, Claim(alpha[c], clipped, b[c]), margins, lengths))
    return Proofs(*map(np.array, zip(*found, strict=True)))


def scores_of(
    grid: CertifiedTasks,
    kernel: RBF,
    costs: Floats,
    alpha: Floats,
    distances: SquaredDistances,
    groups: Integers,
    *,
    are_sizes: bool = False,
) -> Floats:
    """Return Σ_l c_l K(x_l, x_m) within each task of some groups, (n_costs, n_variables).

    c are the signed α, clipped to their bounds, or their sizes.
    """
    shared = grid.shared
    n_blocks = -(-np.diff(shared.starts)[groups] // BLOCK_ROWS)
    group = np.repeat(groups, n_blocks)
    block = np.arange(group.size) - np.repeat(np.cumsum(n_blocks) - n_blocks, n_blocks)
    where = (
        shared.members, shared.firsts, shared.rows, shared.starts, shared.places, grid.starts,
    )  # fmt: skip
    scores = np.empty(alpha.shape)
    with single_threaded_blas():
        add_scores(
            group.size, group, block, where, grid.variables, costs, alpha, are_sizes,
            distances.values, -PER_NEPER * kernel.gamma, scores,
        )  # fmt: skip
    return scores


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
def add_scores(
    part, group, block, where, variables, costs, alpha, are_sizes, distances, scale, scores
):
    """Write the scores of the variables of a group whose rows are in one of its blocks."""
    members, firsts, rows, starts, places, begin = where
    g, m = group[part], costs.size
    mine, tasks = rows[starts[g] : starts[g + 1]], members[firsts[g] : firsts[g + 1]]
    weights = np.zeros((tasks.size * m, mine.size))
    for v in range(tasks.size):
        some = slice(begin[tasks[v]], begin[tasks[v] + 1])
        at, signs = places[some], variables[0, some]
        lower, upper = variables[1, some], variables[2, some]
        for c in range(m):
            given, line = alpha[c, some], weights[v * m + c]
            for u in range(given.size):
                value = min(max(given[u], lower[u]), costs[c] * upper[u])
                line[at[u] - starts[g]] += abs(value) if are_sizes else value * signs[u]
    support = used_columns(weights)
    step = -(-mine.size // -(-mine.size // BLOCK_ROWS))
    first = block[part] * step
    own = mine[first : first + step]
    found = np.zeros((len(weights), own.size))
    for k in range(0, support.size, BLOCK_ROWS):
        columns = support[k : k + BLOCK_ROWS]
        K = np.empty((own.size, columns.size))
        fill_values(distances, scale, own, mine[columns], K)
        found += np.dot(some_columns(weights, columns), K.T)
    for v in range(tasks.size):
        some = slice(begin[tasks[v]], begin[tasks[v] + 1])
        at = places[some]
        for c in range(m):
            line, out = found[v * m + c], scores[c, some]
            for u in range(out.size):
                k = at[u] - starts[g] - first
                if 0 <= k < line.size:
                    out[u] = line[k]


@compiled_part
def fill_values(distances, scale, rows, columns, out):
    """Write 2^(scale·‖x − z‖²) of some rows and columns."""
    n = columns.size
    edges = runs_of(columns)
    are_long = 8 * edges.size < n
    for r in range(rows.size):
        row, values = distances[rows[r]], out[r]
        if are_long:
            for run in range(edges.size - 1):
                squares, some = row[columns[edges[run]] :], values[edges[run] : edges[run + 1]]
                for k in range(some.size):
                    some[k] = scale * squares[k]
        else:
            for k in range(n):
                values[k] = scale * row[columns[k]]
        for k in range(n):
            values[k] = exp2(values[k])
