"""Decomposition with a large working set (Osuna et al., 1997; Joachims, 1999; Zanni et al., 2006).

With β = sα the problem of theory section 8 is

    min ½βᵀ(K + D)β + (sp)ᵀβ   subject to   lower ≤ β ≤ upper,   Σβ over each group fixed.

The variables that violate its optimality conditions most are collected in a working set of some
1,500, whose own problem, the others held fixed, is solved pair by pair (one by one where no sum is
fixed) on a block of K that fits the cache. Then f = −sp − (K + D)β of all variables is updated by
one product with the rows of K that moved. Once only few variables can come to violate soon, this
goes on for a while among those alone: rows of K are then short, and the others are updated once
afterwards.

Kernel values may be float32: what rounding may have done to f is bounded as f is updated. Before
the end f is computed anew in float64 of all variables whose bound leaves doubt whether they
violate, and the descent goes on from there. Later moves are small, and so are the errors that
float32 makes of them: the answer is as good as in float64.

The vectors of length n belong to the engine (`maxmargin.engines.base.DualState`); what is here are
the decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...arrays import Floats, Integers
from ...engines.base import Claim, DualState, Gram, Level, Moves, MovesFree, Totals
from ...problems import DualProblem
from ...problems.dual import usual_length
from ...progress import Limits, Progress
from ...runtime.threads import single_threaded_blas
from ...solution import Solution, Status
from .feasibility import Constraints
from .optimality import is_hard, objective_scale, violation_unit


@dataclass(frozen=True)
class Tuning:
    """How large the parts of a decomposition are, and when each ends."""

    # Variables that enter the working set in one round at most, and the share of them that does
    # even where that drives out variables between their bounds.
    fresh_variables: int = 768
    least_fresh_share: float = 0.5
    # A round ends when its part violates by this share of what the whole did before it.
    round_share: float = 0.1
    # The same where the working set holds all variables and intermediate steps are wanted.
    watched_share: float = 0.5
    # Steps of a round per variable.
    steps_per_variable: int = 20
    # Numbers that the steps of a round may pass over: a tenth of a second, for Ctrl-C.
    numbers_per_round: int = 10**8
    # The least number of variables, and the largest share of them that is near, for going on among
    # those alone; near is what a change of f by this share of the violation makes violate.
    restrict_from: int = 4096
    restricted_share: float = 0.35
    near_share: float = 0.5
    # Two variables may be 2·tol apart with each within tol of the level; some is left to rounding.
    pair_goal_tols: float = 1.75
    # The share of tol by which f may be wrong, or may violate, without being corrected.
    doubt_share: float = 0.1
    # The largest relative gap at the end, in units of tol.
    gap_tols: float = 1.6
    # Corrections of f after which the descent goes on in float64.
    max_corrections: int = 5
    # Rounds without progress after which float64 is used, or the descent ends.
    patience_rounds: int = 100
    # Σ|β| max K(x, x) beyond which α of a hard margin is taken to diverge: that of a margin of
    # 1/1500 of the largest ‖φ(x)‖.
    divergence: float = 1e7


# Variables of the working set: more make fewer rounds, and longer steps of SMO, which no second
# core shares.
WORKING_SET = 1536


@dataclass(frozen=True)
class Decomposition:
    """Large-working-set decomposition.

    Parameters
    ----------
    gram : Gram
        K, in the type that most of the work is done in.
    exact : Gram, optional
        The same in float64, where ``gram`` is not.
    tol : float
        The largest violation of the KKT conditions at the end; the relative gap is at most 2·tol.
    limits : Limits
        Iterations are steps: pairs (or single variables) moved. A hard margin ends with
        ``DIVERGED`` where α grows beyond that of any useful margin.
    working_set : int
        Variables of the working set.
    shrinking : bool
        Leave out for a while the variables that are not going to violate soon.
    often : bool
        Report intermediate steps also where the working set holds all variables.
    tuning : Tuning
    """

    gram: Gram
    exact: Gram | None = None
    tol: float = 1e-3
    limits: Limits = field(default_factory=Limits)
    working_set: int = WORKING_SET
    shrinking: bool = True
    often: bool = False
    tuning: Tuning = field(default_factory=Tuning)

    def solve(
        self,
        problem: DualProblem,
        alpha: Floats | None,
        progress: Progress,
        scores: Floats | None = None,
        bounds: Floats | None = None,
    ) -> Solution:
        """Return α and b, from ``alpha`` (made feasible) where it is given.

        ``scores`` of that α, if they are known to within ``bounds``, spare the first products
        with K.
        """
        start = Constraints.of(problem).nearest(alpha, tol=1e-12)
        claim = None
        if alpha is not None and scores is not None and bounds is not None:
            claim = Claim(scores, bounds) if np.array_equal(start, alpha) else None
        with single_threaded_blas():
            state = self.gram.dual_state(problem, start, self.exact, claim)
            descent = _Descent(self, problem, state, progress)
            return descent.solution(descent.run())


class _Descent:
    """The decisions of a descent: on a whole problem, or on some ``rows`` of a ``parent``.

    ``errors_outside`` counts the errors among the variables that a part leaves out.
    """

    def __init__(
        self,
        options: Decomposition,
        problem: DualProblem,
        state: DualState,
        progress: Progress,
        parent: _Descent | None = None,
        rows: Integers | None = None,
    ) -> None:
        self.options, self.problem, self.state, self.progress = options, problem, state, progress
        self.parent, self.rows, self.errors_outside = parent, rows, 0
        self.may_turn_exact = options.exact is not None and parent is None
        self.tuning = options.tuning
        self.n_variables, self.largest = sum(state.sizes), state.largest
        self.usual: float = parent.usual if parent else self._usual_length()
        self.working_set = _WorkingSet(options, state)
        # Nothing keeps α of a hard margin from growing where no plane separates.
        self.is_open: bool = parent.is_open if parent else bool(is_hard(problem).any())
        self.tightened, self.has_small_gap = 1.0, False
        self.steps = 0
        self.best, self.least, self.idle = np.inf, np.inf, 0
        self.n_corrections = 0
        # Numbers that steps have passed over since all free variables moved at once, and by how
        # much more than the time of that they may take before the next time.
        self.passed, self.patience = 0.0, 1.0

    def _usual_length(self) -> float:
        """Return K(x, x) for the unit of violations, where targets set none."""
        problem = self.problem
        if problem.target_scale:
            return self.largest
        return usual_length(problem.kernel.diagonal(problem.X)[problem.index])

    def run(self) -> Status:
        """Go on until the conditions hold, or something ends it."""
        while (ended := self.descend(self.goal)) is None:
            if self.settled():
                return Status.CONVERGED if self.has_small_gap else Status.PATIENCE
        return ended

    def descend(self, goal: Callable[[], float]) -> Status | None:
        """Go on, round after round, until no more is violated than the goal."""
        self.survey()
        while self.violation > goal():
            ended = self.options.limits.reached(self.steps, self.progress) or self.stalled()
            ended = ended or self.round()
            self.survey()
            if ended is not None:
                return ended
            if self.report():
                return Status.STOPPED
        return None

    def survey(self) -> None:
        """Find the largest f that may grow and the least that may shrink, in every group."""
        self.levels: list[Level] = self.state.levels()
        self._multipliers: list[float] | None = None
        self._totals: Totals | None = None
        if self.problem.groups:
            self.violation = max(level.top - level.low for level in self.levels)
        else:
            self.violation = max(self.levels[0].top, -self.levels[0].low, 0.0)
            self.levels = [Level(0.0, 0.0, np.nan)]

    def report(self) -> bool:
        """Report a round; return whether a callback stops the fit."""
        # Among some of the variables the scores of all others, and so P, are not known.
        value = self.state.value
        primal = self.gap() - value if self.parent is None else np.nan
        self.progress.unit = "round"
        return self.progress.iteration(
            value, self.errors_outside + self.totals().errors, self.violation,
            lambda: self.solution(None), primal=primal, dual=-value,
        )  # fmt: skip

    def goal(self) -> float:
        """Return the violation, of a pair or of a variable alone, at which this ends."""
        tols = self.tuning.pair_goal_tols * (1.0 if self.problem.groups else 0.5)
        return self.tightened * tols * self.tol()

    def tol(self) -> float:
        """Return tol in the units of f."""
        return self.options.tol * self.unit()

    def unit(self) -> float:
        """Return what violations are relative to."""
        middles = np.array([self.middle(k) for k in range(len(self.levels))])
        return violation_unit(self.problem, middles, self.usual)

    def round(self) -> Status | None:
        """Solve the problem of some variables, the others held fixed, and update all others."""
        if self.free_step():
            return None
        rows, ended = self.near(), None
        if rows is not None:
            part = self.state.restrict(rows)
            ended = self.focus(rows, part)
            moved = self.state.take(rows, part)
        else:
            steps, moved = self.working_set.solve(self)
            self.steps += steps
            self.passed += float(steps) * self.working_set.n_members
        if moved:
            return ended
        if self.parent is not None:
            return Status.PATIENCE
        # float32 saw violators where there are none.
        self.idle += self.tuning.patience_rounds // 4
        self.state.refresh()
        return ended

    def free_step(self) -> bool:
        """Move all free variables at once, where steps have taken as long as that takes.

        Steps of pairs are many and short where K of the free variables is ill-conditioned.
        """
        state = self.state
        if self.progress.watchers or not isinstance(state, MovesFree):
            return False
        if self.passed == 0.0 or self.passed < self.patience * state.free_step_numbers():
            return False
        gains = state.move_free()
        self.passed, self.patience = 0.0, 1.0 if gains else 2.0 * self.patience
        return gains

    def near(self) -> Integers | None:
        """Return the variables that can come to violate soon, where they are few of many."""
        if not self.options.shrinking or self.n_variables < self.tuning.restrict_from:
            return None
        most = int(self.tuning.restricted_share * self.n_variables)
        return self.state.near(self.levels, self.tuning.near_share * self.violation, most)

    def focus(self, rows: Integers, state: DualState) -> Status | None:
        """Descend among some of the variables only; return what ended it early."""
        part = _Descent(self.options, self.problem, state, self.progress, self, rows)
        inside = state.totals(self.multipliers()).errors
        part.errors_outside = self.errors_outside + self.totals().errors - inside
        part.steps, part.tightened = self.steps, self.tightened
        part.passed, part.patience = self.passed, self.patience
        stop = max(self.tuning.round_share * self.violation, 0.5 * self.goal())
        ended = part.descend(lambda: stop)
        self.steps, self.passed, self.patience = part.steps, part.passed, part.patience
        # What the part cannot improve the whole may.
        return None if ended is Status.PATIENCE else ended

    def settled(self) -> bool:
        """Return whether this is the end; where it is not, there is more to be done after it."""
        if not self.is_tight():
            return False
        return not self.may_turn_exact or (not self.is_off() and self.is_tight())

    def is_tight(self) -> bool:
        """Return whether the gap is small; many small violations may add up to a large one."""
        self.has_small_gap = self.relative_gap() <= self.tuning.gap_tols * self.options.tol
        if self.has_small_gap or self.tightened < 1e-6:
            return True
        self.tightened *= 0.5
        return False

    def is_off(self) -> bool:
        """Return whether float32 hid violations, once f is corrected where that is in doubt."""
        little = self.tuning.doubt_share * self.tol()
        if not self.state.refresh(self.multipliers(), little):
            return False
        self.survey()
        if self.violation <= self.goal():
            return False
        self.n_corrections += 1
        if self.n_corrections > self.tuning.max_corrections:
            self.turn_exact()
        return True

    def turn_exact(self) -> None:
        """Go on in float64."""
        exact = self.options.exact
        assert exact is not None
        self.state = exact.dual_state(self.problem, self.state.result().alpha)
        self.may_turn_exact, self.idle = False, 0
        self.working_set = _WorkingSet(self.options, self.state)

    def totals(self) -> Totals:
        """Return the sums over all variables at the present multipliers."""
        if self._totals is None:
            self._totals = self.state.totals(self.multipliers())
        return self._totals

    def gap(self) -> float:
        """Return P − D at the present b, both of the present f.

        P of a hard margin is that of the plane scaled up until every y g(x) ≥ 1. With two groups b
        leaves ρ free (ε of a regression), and P is that of the best one.
        """
        if self.is_open and self.problem.has_unit_margin and is_hard(self.problem).all():
            totals = self.totals()
            if not totals.smallest > 0.0:
                return np.inf
            return 0.5 * totals.square / min(totals.smallest, 1.0) ** 2 + self.state.value
        if len(self.problem.groups) < 2:
            return self.totals().gap
        b = self.bias()
        rho = self.state.best_shift(b)
        return self.state.totals([b - rho, b + rho]).gap

    def relative_gap(self) -> float:
        """Return (P − D)/P at the present b."""
        gap = self.gap()
        size = objective_scale(self.problem, gap - self.state.value, self.unit())
        return gap / size if np.isfinite(gap) else np.inf

    def stalled(self) -> Status | None:
        """Return a status once the objective has not improved for long, or α diverges."""
        if self.is_open and self.totals().size * self.largest > self.tuning.divergence:
            return Status.DIVERGED
        # Better is a share of what is left to do; less is rounding, of float32 much earlier.
        least = 1e-14 if self.state.dtype == np.float64 else 1e-9
        value = self.state.value
        better = value < self.best - least * abs(value)
        better |= self.violation < 0.7 * self.least
        self.idle = 0 if better else self.idle + 1
        if better:
            self.best, self.least = min(self.best, value), min(self.least, self.violation)
        if self.idle < self.tuning.patience_rounds:
            return None
        if not self.may_turn_exact:
            return Status.PATIENCE
        self.turn_exact()
        return None

    def bias(self) -> float:
        """Return b: the mean of the multipliers."""
        # With ν, f is b − ρ over the free of the positive class, b + ρ over the others.
        return float(np.mean(self.multipliers()))

    def multipliers(self) -> list[float]:
        """Return the multiplier of every group's sum; 0 without groups."""
        if self._multipliers is None:
            n_groups = len(self.problem.groups)
            self._multipliers = [self.multiplier(k) for k in range(n_groups)] or [0.0]
        return self._multipliers

    def multiplier(self, k: int) -> float:
        """Return the mean of f over the free, as far as that serves all others to tol."""
        level, middle = self.levels[k], self.middle(k)
        if not (np.isfinite(level.top) and np.isfinite(level.low)):
            return middle
        width = level.top - level.low
        room = max(0.0, 0.5 * (self.tuning.pair_goal_tols * self.tol() - width))
        mean = middle if np.isnan(level.free) else level.free
        return float(np.clip(mean, middle - room, middle + room))

    def middle(self, k: int) -> float:
        """Return the middle of a group's bounds on its multiplier, or the one that is finite."""
        top, low, _ = self.levels[k]
        if np.isfinite(top) and np.isfinite(low):
            return 0.5 * (top + low)
        if np.isfinite(top) or np.isfinite(low):
            return top if np.isfinite(top) else low
        # None can move: a part may have no variable of the group.
        return self.parent.middle(k) if self.parent else 0.0

    def solution(self, status: Status | None) -> Solution:
        """Return the present answer."""
        result = self.state.result()
        return Solution(
            w=np.empty((0, 0)),
            b=np.array([self.bias()]),
            status=status or Status.STOPPED,
            n_iter=self.steps,
            n_updates=self.steps,
            seconds=self.progress.seconds,
            alpha=self.all_of(result.alpha),
            scores=result.scores,
            score_bounds=result.bounds,
            trace=self.progress.trace() if status else None,
        )

    def all_of(self, alpha: Floats) -> Floats:
        """Return α of all variables of the problem from that of these."""
        if self.parent is None:
            return alpha
        others = self.parent.state.result().alpha
        others[self.rows] = alpha
        return self.parent.all_of(others)


class _WorkingSet:
    """Which variables are in the working set, at which place, and which make room for others."""

    def __init__(self, options: Decomposition, state: DualState) -> None:
        sizes, size = state.sizes, options.working_set
        capacity = [min(n, max(2, size // len(sizes))) for n in sizes]
        self.state, self.n_rounds = state, 0
        self.is_all = len(sizes) == 1 and size >= sizes[0]
        self.members = [np.arange(n) if self.is_all else np.full(n, -1) for n in capacity]
        self.since = [np.zeros(n, dtype=np.int64) for n in capacity]

    def solve(self, descent: _Descent) -> Moves:
        """Renew the set and solve its own problem; return what moved."""
        self.n_rounds += 1
        if not self.is_all:
            for k in range(len(self.members)):
                self._renew(descent, k)
        options, tuning = descent.options, descent.tuning
        n = self.n_members
        most = min(tuning.steps_per_variable * n, tuning.numbers_per_round // n)
        if options.limits.iterations is not None:
            most = min(most, options.limits.iterations - descent.steps)
        if descent.progress.watchers:  # a callback takes every update
            most = 1
        stop = max(self._share(descent) * descent.violation, 0.5 * descent.goal())
        return self.state.solve_block(self.members, stop, most)

    @property
    def n_members(self) -> int:
        """The number of variables in the set."""
        return sum(int(np.count_nonzero(members >= 0)) for members in self.members)

    def _share(self, descent: _Descent) -> float:
        """Return the share of the violation at which all other variables are updated."""
        if not self.is_all:
            return descent.tuning.round_share
        # Without others, solve in one round unless a callback needs intermediate steps.
        watched = descent.options.often or descent.progress.callbacks
        return descent.tuning.watched_share if watched else 0.0

    def _renew(self, descent: _Descent, k: int) -> None:
        """Put the worst violators of a group in the places of others."""
        members, since = self.members[k], self.since[k]
        empty, taken = np.flatnonzero(members < 0), np.flatnonzero(members >= 0)
        present = members[taken]
        free = self.state.free(present)
        share = descent.tuning.fresh_variables // len(self.members)
        least = int(descent.tuning.least_fresh_share * share)
        share = min(share, max(least, int(np.count_nonzero(~free))))
        wanted = max(empty.size, min(share, members.size // 2), 2)
        most, wanted = max(descent.violation, 1e-300), min(wanted, members.size)
        rows = self.state.violators(k, descent.levels[k], most, wanted, present)
        # Those at a bound go first, then those longest in the set.
        order = np.lexsort((since[taken], free))
        places = np.concatenate([empty, taken[order]])[: rows.size]
        members[places], since[places] = rows, self.n_rounds
