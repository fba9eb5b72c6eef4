"""The variables of a dual problem in one partition, and what its worker does with them.

A part is never changed: every function returns a new one, so that Dask can compute it again.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import Kernel
from ..base import Level, Precision, Totals
from ..cpu.selection import gap_totals, violators
from ..registry import engine_for, find_device, placed
from .checks import Block


class DualPart(NamedTuple):
    """Variables of one partition: β within its bounds, f = −sp − (K + D)β, bounds of its errors.

    ``rows`` are the rows of the partition that they belong to, ``group`` their groups.
    """

    rows: Integers
    group: NDArray[np.int8]
    signs: Floats
    target: Floats
    ridge: Floats
    lower: Floats
    upper: Floats
    beta: Floats
    f: Floats
    error: Floats

    def __dask_sizeof__(self) -> int:
        """Return the bytes, for Dask's own account of the memory."""
        return sum(int(each.nbytes) for each in self)

    def members(self, k: int) -> Integers:
        """Return the variables of a group."""
        return np.flatnonzero(self.group == k)


class Sent(NamedTuple):
    """The variables of one partition as they are sent: constant vectors as one number."""

    rows: Integers | None  # None: one variable for every row
    group: NDArray[np.int8]
    signs: NDArray[np.int8]
    p: Floats
    lower: Floats
    upper: Floats
    ridge: Floats


class Change(NamedTuple):
    """Variables of one partition that have moved: where, by how much, and to which β."""

    places: Integers
    by: Floats
    beta: Floats


class Survey(NamedTuple):
    """Bounds of every group's multiplier, and the objective, of some partitions."""

    top: Floats
    low: Floats
    free_sum: Floats
    n_free: Floats
    least: Floats  # the least f + Dβ
    largest: Floats
    value: float

    def levels(self) -> list[Level]:
        """Return the bounds of every group's multiplier."""
        with np.errstate(invalid="ignore", divide="ignore"):
            free = np.where(self.n_free > 0, self.free_sum / self.n_free, np.nan)
        columns = (self.top.tolist(), self.low.tolist(), free.tolist())
        return [Level(*each) for each in zip(*columns, strict=True)]


class Candidates(NamedTuple):
    """Variables that may enter a working set: partition and place there, f, and how far it is off.

    ``excess`` is positive where f is too large, or ``rises`` says so, and else f is too small.
    """

    part: Integers
    place: Integers
    f: Floats
    excess: Floats
    rises: NDArray[np.bool_]

    def at(self, chosen: Integers) -> Candidates:
        """Return some of them."""
        columns: list[Any] = [each[chosen] for each in self]
        return Candidates(*columns)

    def halves(self, wanted: int) -> Candidates:
        """Return the worst of both kinds, half of either if there are so many.

        With those of one kind alone no sum of a group could stay as it is.
        """
        if self.excess.size <= wanted:
            return self
        up, down = np.flatnonzero(self.rises), np.flatnonzero(~self.rises)
        n_up = min(up.size, max(wanted // 2, wanted - down.size))
        kinds = [(up, n_up), (down, min(down.size, wanted - n_up))]
        order = [kind[np.argsort(-self.excess[kind], kind="stable")[:n]] for kind, n in kinds]
        return self.at(np.sort(np.concatenate(order)))


class Near(NamedTuple):
    """Variables that matter for a while: their number, and as many of the worst as are wanted."""

    n_variables: int
    found: Candidates


# Kernel values ------------------------------------------------------------------------------------


@cache
def device_of_worker() -> str:
    """Return where a worker computes kernel values: on its GPU if torch can use one."""
    try:
        find_device("cuda")
    except (ImportError, ValueError, RuntimeError):
        return "cpu"
    return "cuda"


def kernel_sums(
    kernel: Kernel, X: Any, Z: Any, v: Floats, precision: Precision
) -> tuple[Floats, Floats]:
    """Return Σ_j v_j K(x_i, z_j) for every row of X, and a bound of each error."""
    n, error = X.shape[0], np.zeros(X.shape[0])
    if not n or not Z.shape[0]:
        return np.zeros(n), error
    both = sparse.vstack([X, Z], format="csr") if sparse.issparse(X) else np.concatenate([X, Z])
    engine = engine_for(placed(both, device_of_worker()))
    gram = engine.gram(kernel, None, precision)
    columns = np.arange(n, n + Z.shape[0])
    return gram.product(np.arange(n), columns, v, error), error


def _sums_of(
    block: Block, part: DualPart, Z: Any, v: Floats, kernel: Kernel, precision: Precision
) -> tuple[Floats, Floats]:
    """Return the sums of the variables of a part, and their errors."""
    if np.array_equal(part.rows, np.arange(block.X.shape[0])):
        return kernel_sums(kernel, block.X, Z, v, precision)
    different, places = np.unique(part.rows, return_inverse=True)
    sums, error = kernel_sums(kernel, block.X[different], Z, v, precision)
    return sums[places], error[places]


# Making and moving --------------------------------------------------------------------------------


def begin(
    block: Block,
    sent: Sent,
    change: Change,
    Z: Any,
    v: Floats,
    kernel: Kernel,
    precision: Precision,
    n_groups: int,
) -> tuple[DualPart, Survey]:
    """Return the part at a given β, and its survey; Z are the rows of β ≠ 0, and v their β."""
    n = block.X.shape[0] if sent.rows is None else sent.rows.size
    rows = np.arange(n) if sent.rows is None else sent.rows
    s, p, low, high, ridge = (
        np.array(np.broadcast_to(each, n), dtype=np.float64)
        for each in (sent.signs, sent.p, sent.lower, sent.upper, sent.ridge)
    )
    group = np.array(np.broadcast_to(sent.group, n))
    # + 0.0 turns −0 into 0.
    lower, upper = np.where(s > 0.0, low, -high) + 0.0, np.where(s > 0.0, high, -low) + 0.0
    beta = np.zeros(n)
    target = -s * p
    part = DualPart(rows, group, s, target, ridge, lower, upper, beta, target, np.zeros(n))
    return move(block, part, change, Z, v, kernel, precision, n_groups)


def move(
    block: Block,
    part: DualPart,
    change: Change,
    Z: Any,
    v: Floats,
    kernel: Kernel,
    precision: Precision,
    n_groups: int,
) -> tuple[DualPart, Survey]:
    """Return the part after some β have moved, and its survey.

    Z are the rows of X that they belong to, of all partitions, and v the changes of β there.
    """
    sums, error = _sums_of(block, part, Z, v, kernel, precision)
    f, beta = part.f - sums, part.beta.copy()
    f[change.places] -= part.ridge[change.places] * change.by
    beta[change.places] = change.beta
    moved = part._replace(beta=beta, f=f, error=part.error + error)
    return moved, survey(moved, n_groups)


def refresh(
    block: Block,
    part: DualPart,
    doubt: Integers,
    Z: Any,
    v: Floats,
    kernel: Kernel,
    n_groups: int,
) -> tuple[DualPart, Survey]:
    """Return the part with f of some variables computed anew in float64, and its survey."""
    f, error = part.f.copy(), part.error.copy()
    if doubt.size:
        columns: list[Any] = [each[doubt] for each in part]
        some = DualPart(*columns)
        sums, error[doubt] = _sums_of(block, some, Z, v, kernel, "exact")
        f[doubt] = some.target - some.ridge * some.beta - sums
    renewed = part._replace(f=f, error=error)
    return renewed, survey(renewed, n_groups)


# Questions ----------------------------------------------------------------------------------------


def survey(part: DualPart, n_groups: int) -> Survey:
    """Return the largest f that may grow and the least that may shrink, in every group."""
    grows, shrinks = part.beta < part.upper, part.beta > part.lower
    top, low = np.full(n_groups, -np.inf), np.full(n_groups, np.inf)
    free_sum, n_free = np.zeros(n_groups), np.zeros(n_groups)
    least, largest = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    slopes = part.f + part.ridge * part.beta
    for k in range(n_groups):
        inside = part.group == k
        top[k] = part.f[grows & inside].max(initial=-np.inf)
        low[k] = part.f[shrinks & inside].min(initial=np.inf)
        free = part.f[grows & shrinks & inside]
        free_sum[k], n_free[k] = free.sum(), free.size
        least[k] = slopes[inside].min(initial=np.inf)
        largest[k] = slopes[inside].max(initial=-np.inf)
    value = -0.5 * float(part.beta @ (part.f + part.target))
    return Survey(top, low, free_sum, n_free, least, largest, value)


def merged_surveys(parts: list[Survey]) -> Survey:
    """Return the survey of several partitions."""
    top, low, free_sum, n_free, least, largest, value = zip(*parts, strict=True)
    return Survey(
        np.max(top, axis=0), np.min(low, axis=0), np.sum(free_sum, axis=0),
        np.sum(n_free, axis=0), np.min(least, axis=0), np.max(largest, axis=0), float(sum(value)),
    )  # fmt: skip


def totals(part: DualPart, multipliers: list[float]) -> Totals:
    """Return the sums of the duality gap, for one multiplier per group."""
    b = float(np.mean(multipliers))
    variables = (part.signs, part.target, part.ridge, part.lower, part.upper, part.beta, part.f)
    found = [
        gap_totals(part.members(k), variables, level, b) for k, level in enumerate(multipliers)
    ]
    return merged_totals([Totals(*each) for each in found])


def merged_totals(parts: list[Totals]) -> Totals:
    """Return the sums over several partitions or groups."""
    gap, square, smallest, size, errors = zip(*parts, strict=True)
    return Totals(sum(gap), sum(square), min(smallest), sum(size), int(sum(errors)))


def kinks(part: DualPart, b: float, edges: Floats) -> Floats:
    """Return the growth of the gap's slope in the bins between edges, of what ρ may be.

    The first number is that of all ρ below the first edge.
    """
    zeros = b - part.f - part.ridge * part.beta
    zeros = np.where(part.group == 0, zeros, -zeros)
    weights = part.upper - part.lower
    at = np.searchsorted(edges, zeros, side="left")
    return np.bincount(at, weights, minlength=edges.size + 1).astype(np.float64)


def worst(
    number: int,
    part: DualPart,
    taken: Integers,
    group: int,
    level: Level,
    most: float,
    wanted: int,
) -> Candidates:
    """Return the variables of a group that violate most, none of ``taken``."""
    inside = np.zeros(part.f.size, dtype=bool)
    inside[taken] = True
    members = part.members(group)
    f, beta, lower, upper = (each[members] for each in (part.f, part.beta, part.lower, part.upper))
    ends = level.top, level.low
    chosen = members[violators(f, beta, lower, upper, inside[members], ends, most, wanted)]
    known = np.full(chosen.size, number), chosen, part.f[chosen]
    return Candidates(*known, *_excess(part, chosen, level))


def near(
    number: int, part: DualPart, levels: list[Level], reach: float, at_most: int, among_many: int
) -> Near:
    """Return the variables that are free, violate, or would after a change of f by ``reach``.

    Where they are more than ``at_most``, only ``among_many`` of them come along, the worst.
    """
    excess, rises = np.full(part.f.size, -np.inf), np.zeros(part.f.size, dtype=bool)
    for k, level in enumerate(levels):
        members = part.members(k)
        excess[members], rises[members] = _excess(part, members, level)
    free = (part.lower < part.beta) & (part.beta < part.upper)
    close = np.flatnonzero(free | (excess > -reach))
    known = np.full(close.size, number), close, part.f[close]
    found = Candidates(*known, excess[close], rises[close])
    return merged_near(at_most, among_many, [Near(close.size, found)])


def _excess(part: DualPart, places: Integers, level: Level) -> tuple[Floats, NDArray[np.bool_]]:
    """Return by how much variables violate, below 0 where they do not, and which may grow."""
    f, beta = part.f[places], part.beta[places]
    rising = np.where(beta < part.upper[places], f - level.low, -np.inf)
    falling = np.where(beta > part.lower[places], level.top - f, -np.inf)
    return np.maximum(rising, falling), rising >= falling


def merged_candidates(wanted: int, parts: list[Candidates]) -> Candidates:
    """Return the worst candidates of several partitions, half of them of either kind."""
    return _joined(parts).halves(wanted)


def _joined(parts: list[Candidates]) -> Candidates:
    return Candidates(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def merged_near(at_most: int, among_many: int, parts: list[Near]) -> Near:
    """Return the variables of several partitions; only some, the worst, where they are many."""
    count = sum(part.n_variables for part in parts)
    found = _joined([part.found for part in parts])
    return Near(count, found if count <= at_most else found.halves(among_many))


def fetched(
    block: Block | None, part: DualPart, rows: Integers, places: Integers
) -> tuple[list[Any], Floats]:
    """Return some rows of a partition, where any are wanted, and f of some of its variables."""
    return [] if block is None else [block.X[rows]], part.f[places]


def joined_fetched(parts: list[tuple[list[Any], Floats]]) -> tuple[list[Any], Floats]:
    """Return the rows and f of several partitions, one after the other."""
    rows, f = zip(*parts, strict=True)
    return [each for some in rows for each in some], np.concatenate(f)


def joined_vectors(parts: list[tuple[Floats, ...]]) -> tuple[Floats, ...]:
    """Return the vectors of several partitions, one after the other."""
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def doubtful(part: DualPart, multipliers: list[float], little: float) -> Integers:
    """Return the variables that may violate by more than a little, for all that is known."""
    level = np.asarray(multipliers)[part.group] if len(multipliers) > 1 else multipliers[0]
    above = (part.beta < part.upper) & (part.f - level + part.error > little)
    below = (part.beta > part.lower) & (part.f - level - part.error < -little)
    return np.flatnonzero((part.error > little) & (above | below))


def known_scores(part: DualPart) -> tuple[Floats, Floats, Floats]:
    """Return Kβ of the variables, bounds of the errors, and |f|, which updates have rounded."""
    scores = part.target - part.f - part.ridge * part.beta
    return scores, part.error, np.abs(part.f)
