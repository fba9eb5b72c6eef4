"""KKT conditions and values of kernel machines, of all tasks of a fit at once.

The variables of the tasks are put one after the other. Numbers of a task are arrays with one entry
per task; `Tasks` adds them up from those of the variables, and repeats them for each variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers, Matrix, Partitioned, on_host
from ..kernels import Kernel, Linear, squared_norms
from ..problems import DualProblem
from .centring import Origin
from .scores import UNIT

# The distance from a bound, relative to it, at which a variable counts as being there.
ROUNDING = 8.0 * UNIT
TINY = float(np.finfo(float).tiny)

Coverage = Literal["complete", "bounded", "sampled"]
Mask = NDArray[np.bool_]


class Margins(NamedTuple):
    """s(w·φ(x) + b) of every variable, by how much it may be wrong, and how it is known."""

    values: Floats
    errors: Floats
    n_checked: int
    coverage: Coverage


class Values(NamedTuple):
    """P at most, D at least, P − D at most, and \\|P\\| at least, of every task."""

    primal: Floats
    dual: Floats
    gap: Floats
    least: Floats


@dataclass(frozen=True)
class Tasks:
    """Problems with as many groups each; names are those of `DualProblem`.

    Parameters
    ----------
    problems : sequence of DualProblem
    starts, sizes : ndarray of int of shape (n_tasks,)
        The first variable of each task, and how many it has.
    signs, p, lower, upper, ridge : ndarray of shape (n_variables,)
    groups : tuple of ndarray of int
        Variables of the first groups of all tasks, and of the second ones.
    sums : ndarray of shape (n_groups, n_tasks)
    """

    problems: Sequence[DualProblem]
    starts: Integers
    sizes: Integers
    signs: Floats
    p: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    groups: tuple[Integers, ...]
    sums: Floats

    @classmethod
    def of(cls, *problems: DualProblem) -> Tasks:
        """Put the variables of problems one after the other."""
        sizes = np.array([problem.n_variables for problem in problems])
        starts = np.cumsum(sizes) - sizes
        sums = np.array([problem.sums for problem in problems]).T
        first = problems[0]
        if len(problems) == 1:
            return cls(
                problems, starts, sizes, first.signs, first.p, first.lower, first.upper,
                first.ridge, first.groups, sums,
            )  # fmt: skip
        names = ("signs", "p", "lower", "upper", "ridge")
        signs, p, lower, upper, ridge = (
            np.concatenate([getattr(each, name) for each in problems]) for name in names
        )
        groups = tuple(
            np.concatenate([q.groups[k] + start for q, start in zip(problems, starts, strict=True)])
            for k in range(len(first.groups))
        )
        return cls(problems, starts, sizes, signs, p, lower, upper, ridge, groups, sums)

    def total(self, values: Floats) -> Floats:
        """Return the sum over the variables of each task."""
        return np.add.reduceat(values, self.starts)

    def largest(self, values: Floats) -> Floats:
        """Return the largest over the variables of each task."""
        return np.maximum.reduceat(values, self.starts)

    def smallest(self, values: Floats) -> Floats:
        """Return the smallest over the variables of each task."""
        return np.minimum.reduceat(values, self.starts)

    def each(self, of_task: Floats) -> Floats:
        """Repeat the number of a task for each of its variables."""
        return np.repeat(of_task, self.sizes)

    def parts(self, values: Floats) -> list[Floats]:
        """Return the values of each task."""
        ends = zip(self.starts.tolist(), self.sizes.tolist(), strict=True)
        return [values[start : start + size] for start, size in ends]

    @cached_property
    def totals(self) -> Floats:
        """Σ_G |t_G| of each task."""
        return np.abs(self.sums).sum(axis=0)

    @cached_property
    def has_hinge_losses(self) -> bool:
        """Whether h(z) = max(uz, lz): D = 0 and u is finite."""
        return not self.ridge.any() and bool(np.isfinite(self.upper).all())

    @cached_property
    def is_hard(self) -> list[bool]:
        """Which tasks are hard margins: u = ∞ and D = 0 of a classifier of margin 1."""
        if self.has_hinge_losses:
            return [False] * len(self.problems)
        hard = np.isinf(self.upper) & (self.ridge == 0.0)
        whole = np.logical_and.reduceat(hard, self.starts)
        return [bool(h) and p.has_unit_margin for h, p in zip(whole, self.problems, strict=True)]

    def widened(self, margins: Floats, errors: Floats) -> Floats:
        """Return the margins in tubes of a regression with C = ∞ that are as wide as they must be.

        No α is bounded there, so that P = ∞ by the least rounding. P and D are then those of the
        tube that is wider by the largest violation, in which the function lies.
        """
        hard = np.isinf(self.upper) & (self.ridge == 0.0)
        if self.is_hard[0] or not hard.any():
            return margins
        rounding = 8.0 * UNIT * (np.abs(self.p) + np.abs(margins) + errors)
        excess = np.where(hard, errors - self.p - margins + rounding, 0.0)
        by = np.maximum(self.largest(excess), 0.0)
        return margins + np.where(hard, self.each(by), 0.0)

    @cached_property
    def signs_of_rho(self) -> Floats:
        """How ρ of two groups enters z = −p − s(w·φ(x) + μ), as +ρ or −ρ."""
        signs = self.signs.copy()
        signs[self.groups[1]] *= -1.0
        return signs

    def members(self, k: int) -> Floats | float:
        """Return 1 of the variables of the k-th groups and 0 of the others; 1 if that is all."""
        if len(self.groups) == 1:
            return 1.0
        members = np.zeros(self.signs.size)
        members[self.groups[k]] = 1.0
        return members

    def rests(self, alpha: Floats) -> list[Floats]:
        """Return Σ s_i α_i − t of every group, each for all tasks."""
        signed = self.signs * alpha
        return [self.total(signed * self.members(k)) - total for k, total in enumerate(self.sums)]

    def of_two_groups(self, rho: Callable[..., float], *values: Floats) -> Floats:
        """Return ``rho(problem, *values)`` of each task with two groups, else 0."""
        if len(self.groups) != 2:
            return np.zeros(len(self.problems))
        parts = zip(self.problems, *map(self.parts, values), strict=True)
        return np.array([rho(*part) for part in parts])


# KKT conditions ----------------------------------------------------------------------------------


def kkt_violations(tasks: Tasks, margins: Floats, alpha: Floats, rho: Floats) -> Floats:
    """Return by how much every variable violates its KKT condition; below 0 it does not.

    The derivative s(w·φ(x) + μ) + p + Dα of the Lagrangian must be ≥ 0 for all α that may grow,
    and ≤ 0 for all that may shrink.
    """
    below, above = _may_move(tasks, alpha)
    slope = margins + tasks.ridge * alpha + tasks.p
    if len(tasks.groups) == 2:
        slope -= tasks.each(rho) * tasks.signs_of_rho
    return np.maximum(np.where(below, -slope, -np.inf), np.where(above, slope, -np.inf))


def kkt_rho(problem: DualProblem, alpha: Floats, margins: Floats) -> float:
    """Return the ρ that serves the KKT conditions best: 0 but for two groups."""
    if len(problem.groups) != 2:
        return 0.0
    tasks = Tasks.of(problem)
    below, above = _may_move(tasks, alpha)
    signs = tasks.signs_of_rho
    rho = signs * (margins + problem.ridge * alpha + problem.p)  # where a condition holds exactly
    rises = signs > 0.0
    largest = float(rho[np.where(rises, below, above)].min(initial=np.inf))
    least = float(rho[np.where(rises, above, below)].max(initial=-np.inf))
    if not (np.isfinite(largest) and np.isfinite(least)):
        return best_rho(problem, margins)
    return 0.5 * (largest + least)


def _may_move(tasks: Tasks, alpha: Floats) -> tuple[Mask, Mask]:
    """Return which α may grow and which may shrink."""
    x, room = alpha - tasks.lower, tasks.upper - tasks.lower
    least = ROUNDING * np.minimum(room, tasks.each(tasks.largest(x)))
    return x < (1.0 - ROUNDING) * room, x > least


# Values ------------------------------------------------------------------------------------------


def values_of(tasks: Tasks, alpha: Floats, margins: Margins, b: Floats, largest: Floats) -> Values:
    """Return P and D of every task; ``largest`` are max K(x, x). All are hard margins, or none."""
    values, errors = margins.values, margins.errors
    sizes = np.abs(alpha)
    blur = tasks.total(sizes * errors)
    signed = tasks.total(tasks.signs * alpha) if tasks.groups else np.zeros_like(b)
    square = tasks.total(alpha * values) - b * signed
    rho = tasks.of_two_groups(best_rho, values)
    values = tasks.widened(values, errors)
    z = slacks(tasks, values, rho)
    repair, off = _repair(tasks, alpha, errors, z, np.abs(b) + np.abs(rho), largest)
    if tasks.is_hard[0]:
        # As if every margin were as small as it may be.
        worst = _scaled(square + blur, tasks.smallest(values - errors))
        dual = tasks.total(alpha) - 0.5 * (square + blur) - repair - np.abs(b) * off
        return Values(worst, dual, worst - dual, 0.5 * (square - blur))
    primal = _primal(tasks, square, values, b)
    terms, widest = gap_terms(tasks, alpha, z, errors)
    # Sums by pairs of numbers round log₂ n times.
    cancelled = np.abs(b * signed) + np.abs(b) * tasks.totals
    size = tasks.total(np.abs(tasks.p) * sizes) + np.abs(primal) + np.abs(square) + cancelled
    gap = tasks.total(widest) + repair + 64.0 * UNIT * size
    unknown = tasks.total(widest - terms) + 1.5 * blur + 64.0 * UNIT * cancelled
    # Without sums, P consists of terms that are not negative.
    lowest = 0.5 * (square - blur) + tasks.total(losses(tasks, z - errors))
    least = np.where(tasks.totals > 0.0, np.abs(primal) - unknown, lowest)
    if margins.coverage == "complete":
        return Values(primal + unknown, primal - unknown - gap, gap, least)
    return Values(primal, primal - gap, gap, least)


def _repair(
    tasks: Tasks, alpha: Floats, errors: Floats, z: Floats, multipliers: Floats, largest: Floats
) -> tuple[Floats, Floats]:
    """Return what D loses when α is moved until every sum is right, and the errors of the sums.

    The variables of a group that can be lowered are, by the same share of their distance to l, or
    else those that can be raised. That takes Σ |Δα_i z_i| + ½‖Σ Δα_i s_i φ(x_i)‖² at most from what
    the sum of terms says. Where the bounds leave no room for it, which is for rounding only if the
    answer is feasible, the sum itself is taken for right: μ times its error.
    """
    lost, off_in_all = np.zeros(len(tasks.problems)), np.zeros(len(tasks.problems))
    sizes, cost = np.abs(alpha), np.abs(z) + errors
    for k, rest in enumerate(tasks.rests(alpha)):
        inside = tasks.members(k)
        off = np.abs(rest) + 64.0 * UNIT * (tasks.total(sizes * inside) + np.abs(tasks.sums[k]))
        off_in_all += off
        pull = tasks.signs * tasks.each(np.where(rest >= 0.0, 1.0, -1.0)) * inside
        distance = (alpha - tasks.lower) * inside
        room, taken = tasks.total(np.where(pull > 0.0, distance, 0.0)), tasks.total(distance * cost)
        curvature = largest
        if (room < off).any():
            up = np.where(pull < 0.0, tasks.upper - alpha, 0.0)
            raised = tasks.total(up)
            others = (room < off) & np.isfinite(raised)
            room = np.where(others, raised, room)
            raised_cost = np.where(np.isfinite(up), up, 0.0) * (cost + tasks.ridge * sizes)
            taken = np.where(others, tasks.total(raised_cost), taken)
            curvature = largest + np.where(others, tasks.largest(tasks.ridge * inside), 0.0)
        moved = off / room * taken + 0.5 * off**2 * curvature
        lost += np.where((room >= off) & (off > 0.0), moved, off * multipliers)
    return lost, off_in_all


def slacks(tasks: Tasks, margins: Floats, rho: Floats) -> Floats:
    """Return z = −p − s(w·φ(x) + μ) of every variable."""
    if len(tasks.groups) == 2:
        return tasks.each(rho) * tasks.signs_of_rho - tasks.p - margins
    return -tasks.p - margins


def gap_terms(tasks: Tasks, alpha: Floats, z: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return h(z) − αz + ½Dα² of every variable, and the most that it may be."""
    fixed = 0.5 * tasks.ridge * alpha**2
    terms = losses(tasks, z) - alpha * z + fixed
    # The function is convex in z: the most is at an end.
    ends = [losses(tasks, end) - alpha * end for end in (z - errors, z + errors)]
    return terms, np.maximum(*ends) + fixed


def losses(tasks: Tasks, z: Floats) -> Floats:
    """Return h(z) of every variable: ∞ where a hard margin is violated."""
    lower, upper, ridge = tasks.lower, tasks.upper, tasks.ridge
    if tasks.has_hinge_losses:
        return np.maximum(upper * z, lower * z)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = np.clip(z / ridge, lower, upper)
        bound = np.where(z > 0.0, upper, lower)
        h = np.where(ridge > 0.0, a * (z - 0.5 * ridge * a), bound * z)
        return np.where((z > 0.0) | (lower != 0.0), h, 0.0)


def best_rho(problem: DualProblem, margins: Floats) -> float:
    """Return the ρ of two groups that minimises P: a weighted quantile where D = 0.

    Σ h_i(z_i) has the slope Σ l_i − Σ u_j, over the z that grow and that fall with ρ, left of all ρ
    at which some z_i is 0, and it grows by u_i − l_i at each of them.
    """
    signs = Tasks.of(problem).signs_of_rho
    zeros = signs * (margins + problem.p)
    grows = signs > 0.0
    needed = problem.sums[0] - problem.sums[1] - float(problem.lower[grows].sum())
    needed += float(problem.upper[~grows].sum())
    order = np.argsort(zeros, kind="stable")
    sums = np.cumsum((problem.upper - problem.lower)[order])
    reached = int(np.searchsorted(sums, needed * (1.0 - 1e-12)))
    return float(zeros[order[min(reached, order.size - 1)]])


def squared_radii(kernel: Kernel, X: Matrix, lengths: Floats | None = None) -> Floats:
    """Return K(x, x) of every row, of the linear kernel about the middle of rows far from 0.

    A machine with Σ yα = 0 is the same for any origin, and so is what counts as a margin.
    """
    lengths = kernel.diagonal(X) if lengths is None else lengths
    if not isinstance(kernel, Linear):
        return lengths
    rows = on_host(X)
    origin = Origin(rows, is_free=True)
    if isinstance(rows, Partitioned):
        radii = np.asarray(rows.map(_squared_radii, common=(origin,)))
    else:
        radii = _squared_radii(rows, origin)
    # Rows that are equal, but for rounding, have no size of their own.
    return radii if radii.max() > ROUNDING**2 * lengths.max() else lengths


def _squared_radii(rows: Matrix, origin: Origin) -> Floats:
    return squared_norms(origin.rows(rows.astype(np.float64)))


def least_rho(problem: DualProblem, largest: float) -> float:
    """Return the ρ below which a margin counts as 0, of the largest of `squared_radii`."""
    return max(1e-6 * float(problem.upper.mean()) * largest, TINY)


def of_sums(tasks: Tasks, b: Floats, rho: Floats) -> Floats:
    """Return Σ t μ of the groups of each task."""
    if len(tasks.sums) == 2:
        first, second = tasks.sums
        return b * (first + second) - rho * (first - second)
    return b * tasks.sums.sum(axis=0)


def primal_value(problem: DualProblem, square: float, margins: Floats, b: float = 0.0) -> float:
    """Return P(w, b) from ‖w‖² and the margins s(w·φ(x) + b), with the best ρ of two groups.

    Without sums other than 0, b is of no account but for the margins. For the hard margin P is that
    of the plane scaled up until every y g(x) ≥ 1; ∞ if none does it.
    """
    tasks = Tasks.of(problem)
    return float(_primal(tasks, np.array([square]), margins, np.array([b]))[0])


def _primal(tasks: Tasks, square: Floats, margins: Floats, b: Floats) -> Floats:
    """Return P of every task."""
    if tasks.is_hard[0]:
        return _scaled(square, tasks.smallest(margins))
    rho = tasks.of_two_groups(best_rho, margins)
    loss = tasks.total(losses(tasks, slacks(tasks, margins, rho)))
    return 0.5 * square + of_sums(tasks, b, rho) + loss


def _scaled(square: Floats, margin: Floats) -> Floats:
    """Return ½‖w‖² of the plane scaled up until the smallest margin is 1."""
    with np.errstate(divide="ignore", over="ignore"):
        scaled = 0.5 * square / np.minimum(margin, 1.0) ** 2
    return np.where(margin > 0.0, scaled, np.inf)
