"""Decomposition with a large working set (Osuna et al., 1997; Joachims, 1999; Zanni et al., 2006).

The variables that violate most are collected in a working set of about a thousand, whose own
problem, the others held fixed, is solved by `smo` (by `coordinate_ascent` where there is no bias)
on a block of K that fits the cache. Then all others learn of it by one product with the rows of K
that moved. Once only few samples can come to violate soon, this goes on for a while among those
alone: rows of K are then short, and what moved back and forth is told to all others once.

Kernel values may be float32: what that may have done to the gradient is bounded, row by row, as it
goes. Before the end the gradient is computed anew in float64 of all rows whose bound leaves doubt
whether they violate, and the descent goes on from there. Later moves are small, and so is what
float32 makes of them: the answer is as good as in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...engines.cpu.coordinate_ascent import SingleBlock
from ...engines.cpu.smo import Block
from ...problems import DualProblem
from ...progress import Limits, Progress
from ...runtime.row_access import compiled
from ...runtime.simd import aligned, square
from ...runtime.threads import in_parallel, single_threaded_blas
from ...solution import Solution, Status
from .feasibility import Constraints
from .optimality import objective_scale, primal_value, violation_unit

# Variables of the working set, and how many of them are new in a round.
WORKING_SET = 2048
FRESH = 1024
# A round ends when the block violates by this share of what the whole did before it,
# and after STEPS steps a variable.
PART = 0.1
# The share where the block is the whole, and the trace wants something to show.
HALF = 0.5
STEPS = 20
# Numbers that the steps of a round may pass over: a tenth of a second, for Ctrl-C's sake.
SLICE = 10**8
# When no more than this share of the samples can come to violate soon, and there are as many
# samples as this, the others are left alone for a while.
FEW = 0.35
MANY = 4096
NEAR = 0.5
# Two variables may be 2·tol apart with each within tol of the bias; some is left to rounding.
GOAL = 1.75
# The share of tol by which f may be wrong, or may violate, without being looked at again.
DRIFT = 0.1
ROUNDING = float(np.finfo(np.float64).eps)
# The relative gap is at most so many tol.
GAP = 1.6
CORRECTIONS = 5
# Rows on which scores that were handed in are checked.
SOUNDINGS = 256
# Rounds without a better objective after which another way is tried.
PATIENCE = 100
# Σα max K(x, x) of a hard margin of 1/1500 of the largest ‖φ(x)‖: beyond, nothing is to be found.
RUNAWAY = 1e7
# Bins of f into which violators are counted.
BINS = 1024
# Columns of the working set's block that one core writes at a time.
STRIP = 256
# Numbers in a vector of float32: groups begin at whole vectors.
VECTOR = 16


class GramMatrix(Protocol):
    """What this solver needs of an engine."""

    dtype: Any
    cheap: bool

    def diagonal(self) -> Floats:
        """K(x_i, x_i)."""

    def block(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """K[rows, columns]."""

    def dot(
        self, rows: Integers, v: Floats, keep: Any = None, error: Floats | None = None
    ) -> Floats:
        """K[:, rows] v; ``keep`` says which rows are likely to be asked for again.

        A bound of its rounding errors is added to ``error``.
        """

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        """A bound of the rounding errors of K[rows, columns] v."""

    def product(self, rows: Integers, columns: Integers, v: Floats) -> Floats:
        """K[rows, columns] v."""

    def restrict(self, rows: Integers) -> GramMatrix:
        """K[rows, rows] as an engine of its own."""


@dataclass(frozen=True)
class Decomposition:
    """Large-working-set decomposition.

    Parameters
    ----------
    gram : GramMatrix
        The engine, in the type that most of the work is done in.
    exact : GramMatrix, optional
        The same in float64, where ``gram`` is not.
    tol : float
        The largest violation of the KKT conditions at the end; the relative gap is at most 2·tol.
    limits : Limits
        Iterations are steps: pairs (or single variables) moved. A hard margin ends with
        ``DIVERGED`` where α grows beyond that of any margin worth the name.
    working_set : int
    shrinking : bool
        Leave samples alone for a while that are not going to violate soon.
    often : bool
        Look up now and then also where all samples are in the working set: for the trace.
    """

    gram: GramMatrix
    exact: GramMatrix | None = None
    tol: float = 1e-3
    limits: Limits = field(default_factory=Limits)
    working_set: int = WORKING_SET
    shrinking: bool = True
    often: bool = False

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
        if alpha is None or bounds is None or not np.array_equal(start, alpha):
            scores = None
        with single_threaded_blas():
            descent = _Descent(self, problem, problem.signs * start, progress)
            descent.begin(scores, bounds)
            return descent.solution(descent.run())


class _Descent:
    """β = yα within its bounds, f = py − (K + D)β, and how they come down.

    ``error`` bounds by how much each f may be wrong, ∞ where that is not followed.
    """

    def __init__(
        self, options: Decomposition, problem: DualProblem, beta: Floats, progress: Progress
    ) -> None:
        self.options, self.problem, self.progress = options, problem, progress
        self.gram = options.gram
        self.curvature = self.gram.diagonal() + problem.ridge
        bounds = problem.signs * problem.lower, problem.signs * problem.upper
        self.lower, self.upper = np.minimum(*bounds), np.maximum(*bounds)
        # Nothing keeps α of a hard margin from growing where no plane separates.
        self.is_open = bool((np.isinf(problem.upper) & (problem.ridge == 0.0)).any())
        self.groups = problem.groups
        self.beta = beta
        self.targets = -problem.p * problem.signs
        self.f: Floats = self.targets
        self.error: Floats = np.zeros(beta.size)
        self.value = 0.0
        self.working_set = _WorkingSet(options.working_set, problem, self.groups)
        self.parent: _Descent | None = None
        self.rows: Any = None
        self.errors_held = 0
        self.tightened, self.has_small_gap = 1.0, False
        self.steps = 0
        self.best, self.least, self.idle = np.inf, np.inf, 0
        self.n_corrections = 0

    def begin(self, scores: Floats | None, bounds: Floats | None) -> None:
        """Compute f, from the scores that were handed in where they prove right on some rows."""
        rows = np.linspace(0, self.f.size - 1, min(self.f.size, SOUNDINGS)).astype(int)
        if scores is not None and bounds is not None:
            claimed = self.targets - self.problem.ridge * self.beta - scores
            f, error = self.gradient(self.options.exact or self.gram, rows)
            if (np.abs(f - claimed[rows]) <= bounds[rows] + error + ROUNDING * np.abs(f)).all():
                self.f, self.error = claimed, bounds.copy()
                self.evaluate()
                return
        self.f, self.error = self.gradient(self.gram)
        self.evaluate()

    def evaluate(self) -> None:
        """Compute the objective from f."""
        self.value = -0.5 * float(self.beta @ (self.f + self.targets))

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
            if self.tell():
                return Status.STOPPED
        return None

    def tell(self) -> bool:
        """Report a round; return whether a callback wants to stop."""
        # Among some of the samples the scores of all others, and so P, are not known.
        primal = self.gap() - self.value if self.parent is None else np.nan
        errors = self.errors_held + int(self.wrong().sum())
        self.progress.unit = "round"
        return self.progress.iteration(
            self.value, errors, self.violation, lambda: self.solution(None),
            primal=primal, dual=-self.value,
        )  # fmt: skip

    def survey(self) -> None:
        """Find the largest f that may grow and the least that may shrink, in every group."""
        parts = (self.f, self.beta, self.lower, self.upper)
        if not self.groups:
            top, low = extremes(*parts)
            self.levels, self.violation = [(0.0, 0.0)], max(top, -low, 0.0)
            return
        whole = len(self.groups) == 1
        self.levels = [
            extremes(*(parts if whole else (part[group] for part in parts)))
            for group in self.groups
        ]
        self.violation = max(top - low for top, low in self.levels)

    def goal(self) -> float:
        """Return the violation, of a pair or of a variable alone, at which this ends."""
        return self.tightened * GOAL * self.tol() * (1.0 if self.groups else 0.5)

    def tol(self) -> float:
        """Return tol in the units of f."""
        return self.options.tol * self.unit()

    def unit(self) -> float:
        """Return what violations are relative to."""
        middles = np.array([0.5 * (top + low) for top, low in self.levels])
        return violation_unit(self.problem, middles, float(self.curvature.max()))

    def round(self) -> Status | None:
        """Solve the problem of some variables, the others held fixed, and tell all others."""
        # Among some of the samples all rows of K are computed anew: that has to be cheap.
        many = self.options.shrinking and self.f.size >= MANY and self.gram.cheap
        near = self.near(NEAR * self.violation) if many else np.arange(0)
        if many and near.size <= FEW * self.f.size:
            rows, beta, ended = self.focus(near)
        else:
            rows, beta, ended = *self.working_set.solve(self), None
        change = beta - self.beta[rows]
        moved = np.flatnonzero(change)
        rows, change = rows[moved], change[moved]
        if not rows.size:  # float32 saw violators where there are none
            if self.parent is not None:
                return Status.PATIENCE
            self.idle += PATIENCE // 4
            self.refresh()
            return ended
        before = self.f[rows]
        self.beta[rows] = beta[moved]
        self.f[rows] -= self.problem.ridge[rows] * change
        error = self.error if self.follows_errors else None
        self.f -= self.gram.dot(rows, change, keep=self.free(rows), error=error)
        if error is None:
            self.error[:] = np.inf
        # Exact for a quadratic function: the mean slope times the way.
        self.value -= 0.5 * float(change @ (before + self.f[rows]))
        return ended

    def focus(self, rows: Integers) -> tuple[Integers, Floats, Status | None]:
        """Descend among some of the variables only: return them, their β, and what ended it."""
        part = copy(self)
        # Of all samples, also where this is itself among some of them.
        part.parent, part.rows = self, rows if self.rows is None else self.rows[rows]
        wrong = self.wrong()
        part.errors_held = self.errors_held + int(wrong.sum()) - int(wrong[rows].sum())
        part.problem = self.problem.restrict(rows)
        part.gram = self.gram.restrict(rows)
        for name in ("curvature", "lower", "upper", "beta", "f", "error", "targets"):
            setattr(part, name, getattr(self, name)[rows])
        part.groups = part.problem.groups
        part.working_set = _WorkingSet(self.options.working_set, part.problem, part.groups)
        part.best, part.least, part.idle = np.inf, np.inf, 0
        stop = max(PART * self.violation, 0.5 * self.goal())
        ended = part.descend(lambda: stop)
        self.steps = part.steps
        # What the part cannot improve the whole may.
        return rows, part.beta, None if ended is Status.PATIENCE else ended

    def near(self, reach: float) -> Integers:
        """Return the variables that are free, that violate, or that a move of f by reach makes."""
        close, everything = self.free(), np.arange(self.f.size)
        for group, (top, low) in zip(self.groups or [everything], self.levels, strict=True):
            beta, f = self.beta[group], self.f[group]
            close[group] |= (beta < self.upper[group]) & (f > low - reach)
            close[group] |= (beta > self.lower[group]) & (f < top + reach)
        return np.flatnonzero(close)

    def free(self, rows: Any = slice(None)) -> Any:
        """Return which variables lie strictly between their bounds."""
        beta = self.beta[rows]
        return (self.lower[rows] < beta) & (beta < self.upper[rows])

    @property
    def follows_errors(self) -> bool:
        """Whether errors are bounded as f is updated, or f is computed anew at the end."""
        return self.parent is None and (self.f.size > MANY or self.gram.dtype == np.float64)

    def gradient(self, gram: GramMatrix, rows: Any = slice(None)) -> tuple[Floats, Floats]:
        """Return f computed anew, or some of it, and a bound of its rounding errors."""
        support = np.flatnonzero(self.beta)
        f = (self.targets - self.problem.ridge * self.beta)[rows]
        error = np.zeros(f.size)
        if not support.size:
            return f, error
        beta = self.beta[support]
        if isinstance(rows, slice):
            return f - gram.dot(support, beta, error=error), error
        return f - gram.product(rows, support, beta), gram.bound(rows, support, beta)

    def settled(self) -> bool:
        """Return whether this is the end; where it is not, there is more to be done after it."""
        exact = self.options.exact
        if not self.is_tight():
            return False
        if exact is None or self.gram is exact:
            return True
        return not self.is_off(exact) and self.is_tight()

    def is_tight(self) -> bool:
        """Return whether the gap is small; many small violations may add up to a large one."""
        self.has_small_gap = self.relative_gap() <= GAP * self.options.tol
        if self.has_small_gap or self.tightened < 1e-6:
            return True
        self.tightened *= 0.5
        return False

    def is_off(self, exact: GramMatrix) -> bool:
        """Return whether float32 has led astray, once f is corrected where that is in doubt."""
        rows = self.in_doubt()
        if self.f.size <= MANY or 2 * rows.size > self.f.size:
            self.refresh()
        elif rows.size:
            self.f[rows], self.error[rows] = self.gradient(exact, rows)
            self.evaluate()
        else:
            return False
        self.survey()
        if self.violation <= self.goal():
            return False
        self.n_corrections += 1
        if self.n_corrections > CORRECTIONS:
            self.turn_to(exact)
        return True

    def in_doubt(self) -> Integers:
        """Return the variables that may violate by more than a little, for all that is known."""
        little, everything = DRIFT * self.tol(), np.arange(self.f.size)
        doubt = np.zeros(self.f.size, dtype=bool)
        for k, group in enumerate(self.groups or [everything]):
            level = self.level(k) if self.groups else 0.0
            beta, f, error = self.beta[group], self.f[group] - level, self.error[group]
            doubt[group] = (error > little) & (
                ((beta < self.upper[group]) & (f + error > little))
                | ((beta > self.lower[group]) & (f - error < -little))
            )
        return np.flatnonzero(doubt)

    def turn_to(self, exact: GramMatrix) -> None:
        """Go on in float64."""
        self.gram, self.idle = exact, 0
        self.working_set = _WorkingSet(self.options.working_set, self.problem, self.groups)
        self.refresh()

    def gap(self) -> float:
        """Return P − D at the present b, both of the present f.

        Whatever rounding makes of f, this is a sum of terms ≥ 0.
        """
        b = self.bias()
        scores = self.targets - self.f - self.problem.ridge * self.beta
        primal = primal_value(self.problem, float(self.beta @ scores), scores, b)
        return primal - 0.5 * float(self.beta @ (self.f + self.targets))

    def relative_gap(self) -> float:
        """Return (P − D)/P at the present b."""
        gap = self.gap()
        size = objective_scale(self.problem, gap - self.value, self.unit())
        return gap / size if np.isfinite(gap) else np.inf

    def refresh(self) -> None:
        """Compute f anew, in float64."""
        self.f, self.error = self.gradient(self.options.exact or self.gram)
        self.evaluate()

    def stalled(self) -> Status | None:
        """Return a status once the objective has not improved for long, or α has run away."""
        if self.is_open and np.abs(self.beta).sum() * self.curvature.max() > RUNAWAY:
            return Status.DIVERGED
        # Better is a share of what is left to do; less is rounding, of float32 much earlier.
        least = 1e-14 if self.gram.dtype == np.float64 else 1e-9
        better = self.value < self.best - least * abs(self.value)
        better |= self.violation < 0.7 * self.least
        self.idle = 0 if better else self.idle + 1
        if better:
            self.best, self.least = min(self.best, self.value), min(self.least, self.violation)
        if self.idle < PATIENCE:
            return None
        exact = self.options.exact
        if exact is None or self.gram is exact or self.parent is not None:
            return Status.PATIENCE
        self.turn_to(exact)
        return None

    def wrong(self) -> NDArray[np.bool_]:
        """Return which of the samples looked at are on the wrong side."""
        y = self.problem.signs
        excess = y * (self.f + self.problem.ridge * self.beta - self.bias())
        return np.asarray(excess >= -self.problem.p)

    def bias(self) -> float:
        """Return b: the mean of f over the free, as far as that serves all others to tol."""
        if not self.groups:
            return 0.0
        # With ν, f is b − ρ over the free of the positive class, b + ρ over the others.
        return float(np.mean([self.level(k) for k in range(len(self.groups))]))

    def level(self, k: int) -> float:
        """Return the multiplier of a group's sum; the middle of its bounds where none is free."""
        (top, low), group = self.levels[k], self.groups[k]
        if not (np.isfinite(top) and np.isfinite(low)):
            return float(top if np.isfinite(top) else low)
        middle = 0.5 * (top + low)
        free = self.f[group][self.free(group)]
        room = max(0.0, 0.5 * (GOAL * self.tol() - (top - low)))
        mean = free.mean() if free.size else middle
        return float(np.clip(mean, middle - room, middle + room))

    def alpha(self) -> Floats:
        """Return α of all samples, of those not looked at too."""
        alpha = np.maximum(self.beta * self.problem.signs, self.problem.lower)
        if self.parent is None:
            return alpha
        everything = self.parent.alpha()
        everything[self.rows] = alpha
        return everything

    def solution(self, status: Status | None) -> Solution:
        """Return what there is now."""
        scores = bounds = None
        if self.parent is None and np.isfinite(self.error).all():
            scores = self.targets - self.f - self.problem.ridge * self.beta
            # Each round rounds f once more.
            bounds = self.error + (self.working_set.n_rounds + 4) * ROUNDING * np.abs(self.f)
        return Solution(
            w=np.empty((0, 0)),
            b=np.array([self.bias()]),
            status=status or Status.STOPPED,
            n_iter=self.steps,
            n_updates=self.steps,
            seconds=self.progress.seconds,
            alpha=self.alpha(),
            scores=scores,
            score_bounds=bounds,
            trace=self.progress.trace() if status else None,
        )


class _WorkingSet:
    """Up to ``size`` variables, and K of them: who stays keeps its place, and its values."""

    def __init__(self, size: int, problem: DualProblem, groups: tuple[Integers, ...]) -> None:
        sizes = [group.size for group in groups] or [problem.n_variables]
        # A place for each group, in whole vectors.
        self.capacity = [min(n, max(2, size // len(sizes))) for n in sizes]
        self.edges = np.cumsum([0, *(-(-n // VECTOR) * VECTOR for n in self.capacity)])
        self.member = np.full(self.edges[-1], -1)
        self.since = np.zeros(self.member.size, dtype=np.int64)
        self.inside = np.zeros(problem.n_variables, dtype=bool)
        self.groups = groups or (np.arange(problem.n_variables),)
        self.alone = not groups
        self.is_all = len(self.groups) == 1 and size >= problem.n_variables
        self.n_rounds = 0
        self.K: Any = None

    def solve(self, descent: _Descent) -> tuple[Integers, Floats]:
        """Renew the set and solve its own problem; return the members and their β."""
        self._renew(descent)
        present = self.member >= 0
        rows = self.member[present]
        most = min(STEPS * rows.size, SLICE // rows.size)
        if descent.options.limits.iterations is not None:
            most = min(most, descent.options.limits.iterations - descent.steps)
        if descent.progress.watchers:  # who asked for every update sees pair after pair
            most = 1
        block = self._block()
        for name in ("curvature", "beta", "lower", "upper", "f"):
            getattr(block, name)[present] = getattr(descent, name)[rows]
        part = self._part(descent) * descent.violation
        descent.steps += block.solve(max(part, 0.5 * descent.goal()), most)
        return rows, block.beta[present]

    def _part(self, descent: _Descent) -> float:
        """Return the share of the violation at which the others are looked at again."""
        if not self.is_all:
            return PART
        # Where all are here, there is nobody else to wait for, unless somebody watches.
        return HALF if descent.options.often or descent.progress.callbacks else 0.0

    def _block(self) -> Block:
        """Return an empty block: places without a member have no room to move in."""
        size, dtype = self.member.size, self.K.dtype
        beta, lower, upper = aligned((3, size), np.float64)
        f, curvature = aligned((2, size), dtype)
        kind = SingleBlock if self.alone else Block
        return kind(self.K, curvature, beta, lower, upper, f, self.edges)

    def _renew(self, descent: _Descent) -> None:
        """Let the worst violators in, for those that have done their part."""
        self.n_rounds += 1
        if self.is_all:
            if self.n_rounds == 1:
                self.member[: self.inside.size] = np.arange(self.inside.size)
                self.K = self._all_of(descent)
            return
        fresh = [self._enter(descent, k) for k in range(len(self.groups))]
        self._learn(descent, np.concatenate(fresh))

    def _all_of(self, descent: _Descent) -> Floats:
        """Return K + D of all samples; the engine's own where that may be."""
        gram, n = descent.gram, self.inside.size
        if getattr(gram, "padded", False) and not descent.problem.ridge.any():
            return gram.whole()  # type: ignore[attr-defined, no-any-return]
        K = square(n, gram.dtype)
        K[:] = gram.block(np.arange(n), np.arange(n))
        np.fill_diagonal(K, descent.curvature)
        return K

    def _enter(self, descent: _Descent, k: int) -> Integers:
        """Put violators of a group in the places of those that go; return these places."""
        places = np.arange(self.edges[k], self.edges[k] + self.capacity[k])
        empty = places[self.member[places] < 0]
        taken = places[self.member[places] >= 0]
        wanted = max(empty.size, min(FRESH // len(self.groups), places.size // 2), 2)
        group = self.groups[k]
        f, beta, lower, upper, inside = (
            part if group.size == part.size else part[group]
            for part in (descent.f, descent.beta, descent.lower, descent.upper, self.inside)
        )
        top, low = descent.levels[k]
        most, wanted = max(descent.violation, 1e-300), min(wanted, places.size)
        rows = group[violators(f, beta, lower, upper, inside, top, low, most, wanted)]
        # Those at a bound go first, then those longest here.
        order = np.lexsort((self.since[taken], descent.free(self.member[taken])))
        at = np.concatenate([empty, taken[order]])[: rows.size]
        gone = self.member[at]
        self.inside[gone[gone >= 0]] = False
        self.member[at], self.since[at], self.inside[rows] = rows, self.n_rounds, True
        return at

    def _learn(self, descent: _Descent, fresh: Integers) -> None:
        """Fetch the kernel values of those that came."""
        if self.K is None:
            self.K = aligned((self.member.size, self.member.size), descent.gram.dtype)
        if fresh.size:
            fresh = np.sort(fresh)
            present = np.flatnonzero(self.member >= 0)
            rows = self.member[fresh]
            values = np.ascontiguousarray(descent.gram.block(rows, self.member[present]))

            def work(start: int, stop: Event) -> None:
                place(values, fresh, present[start : start + STRIP], start, self.K)

            in_parallel(work, range(0, present.size, STRIP))
            self.K[fresh, fresh] = descent.curvature[rows]


@compiled
def extremes(f, beta, lower, upper):
    """Return the largest f that may grow and the least that may shrink."""
    top, low = -np.inf, np.inf
    for i in range(f.size):
        if beta[i] < upper[i] and f[i] > top:
            top = f[i]
        if beta[i] > lower[i] and f[i] < low:
            low = f[i]
    return top, low


@compiled
def violators(f, beta, lower, upper, inside, top, low, most, wanted):
    """Return up to ``wanted`` places outside the set where f is most wrong, by at most ``most``.

    Half of them have a large f that may grow, half a small one that may shrink. They are not
    sorted but counted into bins of f, which is as good and takes two passes.
    """
    n, scale = f.size, (BINS - 1) / most
    rising, falling = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    for i in range(n):
        if not inside[i]:
            if f[i] > low and beta[i] < upper[i]:
                rising[_bin(f[i] - low, scale)] += 1
            if f[i] < top and beta[i] > lower[i]:
                falling[_bin(top - f[i], scale)] += 1
    least_up, spare_up = _threshold(rising, wanted // 2)
    room = wanted - min(wanted // 2, rising.sum())
    least_down, spare_down = _threshold(falling, room)
    chosen, count, i = np.empty(wanted, dtype=np.int64), 0, 0
    stride = _stride(n)  # of equals, some from everywhere
    for _ in range(n):
        i = i + stride if i + stride < n else i + stride - n
        if inside[i] or count == wanted:
            continue
        up = _bin(f[i] - low, scale) if f[i] > low and beta[i] < upper[i] else -1
        down = _bin(top - f[i], scale) if f[i] < top and beta[i] > lower[i] else -1
        if up > least_up or (up == least_up and spare_up > 0):
            spare_up -= up == least_up
        elif down > least_down or (down == least_down and spare_down > 0):
            spare_down -= down == least_down
        else:
            continue
        chosen[count] = i
        count += 1
    return chosen[:count]


@compiled
def _bin(excess, scale):
    """The bin of a violation."""
    return min(int(excess * scale), BINS - 1)


@compiled
def _threshold(counts, room):
    """Return the bin above which all fit into ``room``, and how many of its own do too."""
    at, above = BINS - 1, 0
    while at > 0 and above + counts[at] <= room:
        above += counts[at]
        at -= 1
    return at, min(counts[at], room - above)


@compiled
def _stride(n):
    """Return a step of about 0.618 n that visits all of n places in turn."""
    step = max(1, int(0.6180339887 * n))
    while True:
        a, b = step, n
        while b:
            a, b = b, a % b
        if a == 1:
            return step
        step += 1


@compiled
def place(values, fresh, present, start, K):
    """Write values[r, start + c] to K[fresh_r, present_c] and to its mirror image, in squares."""
    square = np.empty((64, 64), dtype=K.dtype)  # rows of values lie too far apart for the cache
    for first in range(0, fresh.size, 64):
        height = min(64, fresh.size - first)
        for c in range(0, present.size, 64):
            width = min(64, present.size - c)
            for r in range(height):
                row, numbers = K[fresh[first + r]], values[first + r][start + c : start + c + width]
                for s in range(width):
                    row[present[c + s]] = numbers[s]
                    square[s, r] = numbers[s]
            for s in range(width):
                row, numbers = K[present[c + s]], square[s]
                for r in range(height):
                    row[fresh[first + r]] = numbers[r]
