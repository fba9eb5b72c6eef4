"""One dual problem whose variables are in the partitions of X.

β and what is known of the variables is on the client as well, some numbers per row that were sent
once. f stays on the workers. In a round the rows that have moved and their Δβ go to all partitions;
what comes back are the bounds of the multipliers, the worst variables, and their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers, row_length
from ..base import DualState, Level, Moves, Result, Totals
from ..cpu.dual_state import ROUNDING, CpuDualState, Variables
from ..registry import engine_for
from . import dual_part
from .dual_part import Candidates, Change, Sent, Survey
from .rows import stacked

if TYPE_CHECKING:
    from ...problems import DualProblem
    from .cluster import Handle
    from .gram import DaskGram


@dataclass(frozen=True)
class Tuning:
    """What comes to the client."""

    # Rows, and numbers in them, of the part of a problem that the client solves at a time.
    most_rows: int = 24576
    most_numbers: int = 1 << 23
    # The share of the violation before that the worst of many variables must leave, to go on so.
    helpful_share: float = 0.9
    # Parts of the client's rows beyond which those that are not needed are dropped.
    kept_parts: int = 2
    # Bins into which the kinks of the gap are counted, and how often: to 10⁻⁸ of their range.
    n_bins: int = 8192
    searches: int = 2


TUNING = Tuning()


class DaskDualState:
    """β = sα within its bounds; f and its errors are on the workers.

    See `maxmargin.engines.base.DualState`. The part of a problem that the client solves at a time
    (`restrict`, `solve_block`) is one of the CPU engine, of rows that it fetches.
    """

    def __init__(
        self, problem: DualProblem, gram: DaskGram, alpha: Floats, *, has_exact: bool
    ) -> None:
        self.problem, self.gram, self.X, self.has_exact = problem, gram, gram.X, has_exact
        self.cluster = gram.X.cluster
        self.n_groups = max(1, len(problem.groups))
        self.group = np.zeros(problem.n_variables, dtype=np.int8)
        for k, group in enumerate(problem.groups):
            self.group[group] = k
        s = problem.signs
        self.lower: Floats = np.where(s > 0.0, problem.lower, -problem.upper) + 0.0
        self.upper: Floats = np.where(s > 0.0, problem.upper, -problem.lower) + 0.0
        owner = np.searchsorted(self.X.first_rows, problem.index, side="right") - 1
        # Variables by partition, and the places of those of each within it.
        self.order = np.argsort(owner, kind="stable")
        self.edges = np.searchsorted(owner[self.order], np.arange(len(self.X.blocks) + 1))
        self.owner, self.place = owner, np.empty(problem.n_variables, dtype=np.intp)
        self.place[self.order] = np.arange(owner.size) - self.edges[owner[self.order]]
        self.beta: Floats = np.zeros(problem.n_variables)
        self._rows: Integers = np.empty(0, dtype=np.intp)  # that the client holds
        self._X: Any = None
        self._known: tuple[Integers, Floats] | None = None  # some variables, and their f
        self.n_updates, self._largest = 0, np.nan
        self._before = np.inf  # the violation before the last part that was some of many variables
        self._begin(s * alpha + 0.0)

    # What there is --------------------------------------------------------------------------------

    @property
    def value(self) -> float:
        """The objective of the whole problem."""
        return self._survey.value

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of variables in each group."""
        return tuple(np.bincount(self.group, minlength=self.n_groups).tolist())

    @property
    def largest(self) -> float:
        """The largest diagonal element of K + D."""
        if np.isnan(self._largest):
            problem = self.problem
            lengths = problem.kernel.diagonal(problem.X)[problem.index]
            self._largest = float((lengths + problem.ridge).max())
        return self._largest

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the kernel values in use."""
        return self.gram.dtype

    def levels(self) -> list[Level]:
        """Return the bounds of every group's multiplier."""
        return self._survey.levels()

    def totals(self, multipliers: list[float]) -> Totals:
        """Return the sums of the duality gap, for one multiplier per group."""
        found: Totals = self._ask(
            dual_part.totals, dual_part.merged_totals, common=([float(m) for m in multipliers],)
        )
        return found

    def best_shift(self, b: float) -> float:
        """Return the ρ of the least gap where the multipliers of two groups are b − ρ and b + ρ.

        It is found to a relative precision that no gap shows, by counting into bins.
        """
        problem, survey = self.problem, self._survey
        (first, second), sums = problem.groups, problem.sums
        needed = sums[0] - sums[1] - float(self.lower[first].sum())
        needed = (needed + float(self.upper[second].sum())) * (1.0 - 1e-12)
        least = min(b - float(survey.largest[0]), float(survey.least[1]) - b)
        largest = max(b - float(survey.least[0]), float(survey.largest[1]) - b)
        for _ in range(TUNING.searches):
            edges = np.linspace(least, largest, TUNING.n_bins)
            reached = np.cumsum(self._ask(dual_part.kinks, _added, common=(b, edges)))
            k = int(np.clip(np.searchsorted(reached, needed), 1, edges.size - 1))
            least, largest = float(edges[k - 1]), float(edges[k])
        return largest

    def free(self, rows: Integers) -> NDArray[np.bool_]:
        """Return which of some variables lie strictly between their bounds."""
        beta = self.beta[rows]
        return (self.lower[rows] < beta) & (beta < self.upper[rows])

    def violators(
        self, group: int, level: Level, most: float, wanted: int, taken: Integers
    ) -> Integers:
        """Return up to ``wanted`` variables of a group that violate most, none of ``taken``."""
        merge = partial(dual_part.merged_candidates, wanted)
        columns = self._numbers, self._parts, self._split(taken)
        common = (group, level, most, wanted)
        return self._named(
            self.cluster.round(dual_part.worst, merge, *columns, common=common, reads=False)
        )

    def near(self, levels: list[Level], reach: float, at_most: int) -> Integers | None:
        """Return the variables that may come to violate soon, or None.

        Where they are too many for the client, it is given the worst of them as long as that helps.
        Parts that undo each other's work give way to working sets, which keep what is free.
        """
        per_row = max(1, self.X.stored() // max(1, self.X.shape[0]))
        most = max(2, min(TUNING.most_rows, TUNING.most_numbers // per_row))
        tops, lows = self._survey.top, self._survey.low
        excess = tops - lows if self.problem.groups else np.maximum(tops, -lows)
        violation = float(excess.max())
        among_many = most if violation <= TUNING.helpful_share * self._before else 0
        columns, common = (self._numbers, self._parts), (levels, reach, most, among_many)
        merge = partial(dual_part.merged_near, most, among_many)
        near = self.cluster.round(dual_part.near, merge, *columns, common=common, reads=False)
        if near.n_variables > most:
            self._before = violation if among_many else 0.0
        return self._named(near.found) if near.n_variables <= most or among_many else None

    # What the client solves -----------------------------------------------------------------------

    def restrict(self, rows: Integers) -> CpuDualState:
        """Return the state of some variables, the others held fixed, on the client."""
        problem = self.problem
        f = self._fetch(rows)
        different, places = np.unique(problem.index[rows], return_inverse=True)
        X = self._X[np.searchsorted(self._rows, different)]
        gram: Any = engine_for(X).gram(problem.kernel, places, self.gram.precision)
        signs, ridge = problem.signs[rows], problem.ridge[rows]
        variables = Variables(
            signs, ridge, -signs * problem.p[rows], self.lower[rows], self.upper[rows],
            gram.diagonal() + ridge, self.beta[rows], f,
        )  # fmt: skip
        groups: tuple[Integers, ...] = ()
        if problem.groups:
            groups = tuple(np.flatnonzero(self.group[rows] == k) for k in range(self.n_groups))
        return CpuDualState.part(gram, variables, groups, problem.sums, self.value)

    def solve_block(self, members: list[Integers], stop: float, max_steps: int) -> Moves:
        """Solve the problem of some variables on the client, the others held fixed; update f."""
        rows = np.sort(np.concatenate([each[each >= 0] for each in members]))
        part = self.restrict(rows)
        inside = [np.where(each >= 0, np.searchsorted(rows, each), -1) for each in members]
        steps, _ = part.solve_block(inside, stop, max_steps)
        return Moves(steps, self.take(rows, part))

    def take(self, rows: Integers, part: DualState) -> bool:
        """Take β of some variables from their own state and update f; False if none has moved."""
        assert isinstance(part, CpuDualState)
        change = part.beta - self.beta[rows]
        moved = np.flatnonzero(change)
        if not moved.size:
            return False
        self.n_updates += 1
        rows, change = rows[moved], change[moved]
        self.beta[rows] = part.beta[moved]
        self._step(dual_part.move, [self._parts], self._changes(rows, change), rows, change)
        return True

    def refresh(self, multipliers: list[float] | None = None, little: float = 0.0) -> bool:
        """Compute f anew in float64; with multipliers only where rounding may hide a violation."""
        if multipliers is None:
            doubt: list[Handle] = [np.arange(size) for size in np.diff(self.edges).tolist()]
        else:
            if not self.has_exact:
                return False
            common = ([float(m) for m in multipliers], little)
            doubt = self.cluster.start(dual_part.doubtful, self._parts, common=common)
            if not self.cluster.round(_size, sum, doubt, reads=False):
                return False
        support = np.flatnonzero(self.beta)
        self._step(dual_part.refresh, [self._parts], doubt, support, self.beta[support], exact=True)
        return True

    def result(self) -> Result:
        """Return α of these variables, and their scores."""
        alpha = self.problem.signs * self.beta + 0.0
        found = self._ask(dual_part.known_scores, dual_part.joined_vectors)
        scores, errors, sizes = (np.empty_like(self.beta) for _ in range(3))
        for vector, values in zip((scores, errors, sizes), found, strict=True):
            vector[self.order] = values
        # Every update rounds f once more.
        return Result(alpha, scores, errors + (self.n_updates + 4) * ROUNDING * sizes)

    # Rounds ---------------------------------------------------------------------------------------

    @property
    def _numbers(self) -> list[int]:
        return list(range(len(self.X.blocks)))

    def _ask(self, work: Any, merge: Any, common: tuple[Any, ...] = ()) -> Any:
        return self.cluster.round(work, merge, self._parts, common=common, reads=False)

    def _begin(self, beta: Floats) -> None:
        """Send the variables to their partitions, and compute f there."""
        support = np.flatnonzero(beta)
        self.beta[support] = beta[support]
        sent = [self._sent(k) for k in self._numbers]
        changes = self._changes(support, beta[support])
        self._step(dual_part.begin, [sent], changes, support, beta[support])

    def _sent(self, k: int) -> Sent:
        """Return the variables of a partition, as they are sent."""
        problem, some = self.problem, self.order[self.edges[k] : self.edges[k + 1]]
        rows = problem.index[some] - self.X.first_rows[k]
        is_all = rows.size == self.X.sizes[k] and np.array_equal(rows, np.arange(rows.size))
        vectors = problem.p, problem.lower, problem.upper, problem.ridge
        return Sent(
            None if is_all else rows,
            _packed(self.group[some]),
            _packed(problem.signs[some].astype(np.int8)),
            *(_packed(vector[some]) for vector in vectors),
        )

    def _step(
        self,
        work: Any,
        states: list[Any],
        own: list[Any],
        rows: Integers,
        change: Floats,
        *,
        exact: bool = False,
    ) -> None:
        """Change the parts by the kernel values of some variables, and survey them."""
        problem, n = self.problem, len(self.X.blocks)
        different, places = np.unique(problem.index[rows], return_inverse=True)
        by_row = np.bincount(places, change, minlength=different.size).astype(np.float64)
        Z = self._vectors(different)
        precision = () if exact else (self.gram.precision,)
        common = (by_row, problem.kernel, *precision, self.n_groups)
        survey: Survey
        self._parts, survey = self.cluster.step(
            work, dual_part.merged_surveys, self.X.blocks, *states, own, [Z] * n, common=common,
            sent=different.size * self.X.row_bytes * n,
        )  # fmt: skip
        self._survey, self._known = survey, None

    def _vectors(self, rows: Integers) -> Handle:
        """Return rows of X for all partitions: those of the client, or else of other partitions."""
        if not rows.size:
            return self.X.empty()
        if not np.isin(rows, self._rows, assume_unique=True).all():
            return self.X.stacked(rows)
        return self.cluster.backend.share(self._X[np.searchsorted(self._rows, rows)])

    def _changes(self, rows: Integers, change: Floats) -> list[Change]:
        """Return what has moved in each partition."""
        order = np.argsort(self.owner[rows], kind="stable")
        rows, change = rows[order], change[order]
        ends = np.searchsorted(self.owner[rows], np.arange(1, len(self.X.blocks)))
        columns = (np.split(each, ends) for each in (self.place[rows], change, self.beta[rows]))
        return [Change(*each) for each in zip(*columns, strict=True)]

    def _split(self, rows: Integers) -> list[Integers]:
        """Return the places of some variables in each partition, by partition."""
        return [self.place[rows[self.owner[rows] == k]] for k in self._numbers]

    def _named(self, found: Candidates) -> Integers:
        """Return candidates as variables, in ascending order; f of them is known from now on."""
        variables = self.order[self.edges[found.part] + found.place]
        order = np.argsort(variables)
        self._known = variables[order], found.f[order]
        return self._known[0]

    def _fetch(self, rows: Integers) -> Floats:
        """Return f of some variables, and fetch the rows of X that the client does not hold."""
        wanted = np.unique(self.problem.index[rows])
        missing = np.setdiff1d(wanted, self._rows, assume_unique=True)
        if not missing.size and self._known is not None and self._known[0] is rows:
            return self._known[1]
        order = np.argsort(self.owner[rows], kind="stable")
        places = self.X.places_in(missing)
        # Rows that are streamed are read where some of them are missing, and only there.
        blocks = [
            block if some.size else None for block, some in zip(self.X.blocks, places, strict=True)
        ]
        fresh, of_rows = self.cluster.round(
            dual_part.fetched, dual_part.joined_fetched, blocks, self._parts, places,
            self._split(rows), reads=self.cluster.report.streamed and missing.size > 0,
        )  # fmt: skip
        f = np.empty(rows.size)
        f[order] = of_rows
        if missing.size:
            self._hold(wanted, missing, stacked(fresh))
        return f

    def _hold(self, wanted: Integers, missing: Integers, fresh: Any) -> None:
        """Hold rows that were fetched, with those held already or as many of them as are wanted."""
        if self._X is None:
            self._rows, self._X = missing, fresh
            return
        kept = np.arange(self._rows.size)
        most = TUNING.kept_parts * TUNING.most_rows
        if kept.size + missing.size > most or row_length(fresh) * kept.size > (
            TUNING.kept_parts * TUNING.most_numbers
        ):
            kept = np.flatnonzero(np.isin(self._rows, wanted))
        rows = np.concatenate([self._rows[kept], missing])
        order = np.argsort(rows)
        self._rows, self._X = rows[order], stacked([self._X[kept], fresh])[order]


def _packed(values: NDArray[Any]) -> NDArray[Any]:
    """Return a vector, or its one number where all are the same."""
    return values[:1] if values.size and (values == values[0]).all() else values


# What workers do ----------------------------------------------------------------------------------


def _added(parts: list[Floats]) -> Floats:
    total: Floats = np.sum(parts, axis=0)
    return total


def _size(part: Integers) -> int:
    return int(part.size)
