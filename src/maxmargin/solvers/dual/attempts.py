"""Solvers tried on a task one after the other, and the best answer among theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ...arrays import Floats
from ...engines.base import HostGram
from ...problems import DualProblem
from ...problems.dual import usual_length
from ...progress import Limits, Progress
from ...solution import Solution, Status
from ..best_seen import BestSeen
from .feasibility import Constraints
from .optimality import TINY, Optimality, best_bias, is_hard, primal_value
from .sizes import FEW_SAMPLES, SMALL_SAMPLES

EPSILON = float(np.finfo(np.float64).eps)
# Statuses after which no other solver is tried.
FINAL = {Status.CONVERGED, Status.STOPPED, Status.TIME_LIMIT, Status.ITERATION_LIMIT}
UNBOUNDED = {Status.INSEPARABLE, Status.DIVERGED}
FINAL |= UNBOUNDED


@dataclass(frozen=True)
class Tuning:
    """What the comparison of answers is tuned by."""

    # The relative error of a sum of products, in all but contrived cases.
    rounding: float = 8.0 * EPSILON
    # Errors of the scores by which an answer is enlarged, for its margins not to be less than 1.
    enlargement_errors: float = 32.0
    # Errors of the scores by which margins are made larger: the certificate adds up in another
    # order, and α is rounded too. They take this share of tol, and of the relative gap, at most.
    room_errors: float = 16.0
    room_share: float = 0.25
    # Aα − a relative to Σα up to which α counts as feasible.
    negligible_rest: float = 1e-9
    # The share of a violation that is rounding, from which no method makes it smaller.
    rounded_share: float = 1e-3
    # The least share of an unfinished α that is tried.
    shortest_share: float = 1e-6


TUNING = Tuning()


class Attempts:
    """The solvers of one task share its limits, its clock and its callbacks.

    An answer counts as converged where its KKT conditions hold to tol and its relative gap is at
    most 2·tol. Where none is, or a limit or a callback ends the fit, the answer is the one of least
    P among all that were seen, w = 0 included.

    Parameters
    ----------
    problem : DualProblem
    gram : callable
        Returns K of the task in float64, for answers that come without their scores.
    tol : float
    limits : Limits
        Of all solvers together.
    progress : Progress
    far : float, default=0
        How far from the origin the rows lie that have been centred: b is rounded there.
    """

    def __init__(
        self,
        problem: DualProblem,
        gram: Callable[[], HostGram],
        tol: float,
        limits: Limits,
        progress: Progress,
        far: float = 0.0,
    ) -> None:
        self.far = far
        self.problem, self.gram, self.tol, self.limits = problem, cache(gram), tol, limits
        self.constraints = Constraints.of(problem)
        self.progress = BestSeen(progress)
        self.n_iter, self.n_updates = 0, 0
        self.status = Status.PATIENCE
        self.last: Solution | None = None
        self.point: Optimality | None = None

    @property
    def is_over(self) -> bool:
        """Whether no other solver is wanted."""
        return self.status in FINAL

    @property
    def wants_another(self) -> bool:
        """Whether another solver may help: the last α is unfinished, and known well enough."""
        return not (self.is_over or self._is_blurred())

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the limit."""
        if self.limits.seconds is None:
            return None
        return max(0.0, self.limits.seconds - self.progress.seconds)

    def run(
        self, solve: Callable[[Progress, Limits], Solution], most_steps: int | None = None
    ) -> None:
        """Try a solver; ``most_steps`` is where the next one had better go on."""
        asked = self.limits.iterations
        allowed = most_steps
        if asked is not None:
            left = max(asked - self.n_iter, 0)
            allowed = left if most_steps is None else min(left, most_steps)
        before, self.progress.unit = len(self.progress.history), "step"
        with np.errstate(over="ignore", invalid="ignore"):  # α of an indefinite kernel may diverge
            solution = solve(self.progress, Limits(allowed, self.limits.seconds))
        if 0 < before < len(self.progress.history):
            self.progress.unit = "iteration"  # of several kinds
        self.n_iter += solution.n_iter
        self.n_updates += solution.n_updates
        self.status = solution.status
        ours = asked is None or self.n_iter < asked
        if solution.status is Status.ITERATION_LIMIT and ours:
            self.status = Status.PATIENCE
        if solution.status in UNBOUNDED and self._is_bounded():
            self.status = Status.PATIENCE  # rounding hides what keeps α from growing
        if self.status not in UNBOUNDED:
            with np.errstate(all="ignore"):  # beyond the range of numbers nothing is of use
                self._consider(solution)
        self.last = solution

    def _is_bounded(self) -> bool:
        """Whether something keeps every α from growing."""
        return not is_hard(self.problem).any()

    def _consider(self, solution: Solution) -> None:
        """Keep the answer if it is the best so far; whether it has converged its numbers say."""
        # Scores that are the sum of many steps may be off: of few samples they are computed anew.
        few = self.problem.n_variables <= FEW_SAMPLES
        point = self.judged(replace(solution, scores=None) if few else solution)
        if self.status in (Status.CONVERGED, Status.PATIENCE):
            known = EPSILON * self._size_of_terms(point.alpha) < 1.0  # which side of the margin
            good = known and point.share(self.tol) <= 1.0
            self.status = Status.CONVERGED if good else Status.PATIENCE
        if self.status is Status.CONVERGED:
            self.point = point
            return
        if FEW_SAMPLES < self.problem.n_variables <= SMALL_SAMPLES:  # a failure is worth the time
            point = self.judged(replace(solution, scores=None))
        others = [point, self._along_ray(point), *([self.point] if self.point else [])]
        self.point = min(others, key=self._at_worst)

    def _along_ray(self, point: Optimality) -> Optimality:
        """Return the tα, 0 < t ≤ 1, of about the least P, with the b that suits it best.

        P of an unfinished α may be far above that of w = 0, though its direction is good. P is
        convex in t.
        """
        alpha, scores, bounds = point.alpha, point.scores, point.bounds
        best, t = self._of(alpha, scores, best_bias(self.problem, scores), bounds), 1.0
        while self._may_shrink and t > TUNING.shortest_share:
            t *= 0.5
            b = best_bias(self.problem, t * scores)
            shorter = self._of(t * alpha, t * scores, b, None if bounds is None else t * bounds)
            if not shorter.primal < best.primal:
                break
            best = shorter
        return best

    @property
    def _may_shrink(self) -> bool:
        """Whether tα is feasible for 0 ≤ t ≤ 1 where α is."""
        return not self.problem.total and bool((self.problem.lower <= 0.0).all())

    def _at_worst(self, point: Optimality, errors: Floats | None = None) -> float:
        """Return what P of a point may be, as far as rounding of its scores can tell."""
        problem = self.problem
        square = float((point.alpha * problem.signs) @ point.scores)
        lower = point.scores - problem.signs * (self._error(point) if errors is None else errors)
        primal = primal_value(problem, square, lower, point.b)
        return primal if np.isfinite(primal) else np.inf

    def _worst_gap(self, point: Optimality, errors: Floats | None = None) -> float:
        """Return what the relative gap of a point may be, as far as rounding can tell."""
        size = max(abs(point.primal), TINY)
        return (self._at_worst(point, errors) - point.dual) / size

    def _error(self, point: Optimality) -> float:
        """Return what rounding may make of the scores of a point."""
        square = max(0.0, float((point.alpha * self.problem.signs) @ point.scores))
        b = abs(point.b) + self.far * square**0.5
        return TUNING.rounding * (self._size_of_terms(point.alpha) + b)

    def _size_of_terms(self, alpha: Floats) -> float:
        """Return a bound on Σ_l α_l |K(x_l, x_m)|, times the power that multiplies their errors."""
        sizes = np.sqrt(np.maximum(self.gram().diagonal(), 0.0))
        power = max(1, 2 * int(getattr(self.problem.kernel, "degree", 0)))
        return power * float(sizes.max(initial=0.0) * (sizes @ np.abs(alpha)))

    def _is_blurred(self) -> bool:
        """Whether the last α is so large that float64 cannot tell its scores to tol.

        Rounding its last digits alone then violates the KKT conditions: nothing is left to try,
        unless they are violated by far more than that.
        """
        if self.last is None or self.last.alpha is None or self.problem.total:
            return False
        blur = EPSILON * self._size_of_terms(self.last.alpha) / (self.problem.target_scale or 1.0)
        violation = self.point.violation if self.point else np.inf
        return blur > max(self.tol, TUNING.rounded_share * min(violation, 1.0))

    def judged(self, solution: Solution) -> Optimality:
        """Return what an answer is worth."""
        alpha, scores, bounds = solution.alpha, solution.scores, solution.score_bounds
        assert alpha is not None
        if self._is_off(alpha):
            alpha = self.constraints.snapped(self.constraints.nearest(alpha))
            scores = None
        if scores is None:
            support = np.flatnonzero(alpha)
            scores, bounds = np.zeros(alpha.size), np.zeros(alpha.size)
            if support.size:
                signed = (alpha * self.problem.signs)[support]
                scores = self.gram().dot(support, signed, error=bounds)
        return self._of(alpha, scores, float(solution.b[0]), bounds)

    def _is_off(self, alpha: Floats) -> bool:
        """Whether rounding has led α away from Aα = a, where that is cheap to make up for."""
        if self.problem.n_variables > SMALL_SAMPLES:
            return False
        A, a = self.constraints.A, self.constraints.a
        return bool(
            (np.abs(A @ alpha - a) > TUNING.negligible_rest * float(np.abs(alpha).sum())).any()
        )

    def _of(self, alpha: Floats, scores: Floats, b: float, bounds: Floats | None) -> Optimality:
        largest = usual_length(self.gram().diagonal()) if self.problem.total else 1.0
        return Optimality.of(self.problem, alpha, scores, largest, b, bounds)

    @property
    def is_rounded(self) -> bool:
        """Whether α is right, but rounding of the margins may cost more than the gap allowed."""
        point = self.point
        if point is None or self.problem.total:  # ρ would move with the margins
            return False
        largest = float(self._bounds(point).max()) / (self.problem.target_scale or 1.0)
        known = max(point.violation, largest) <= self.tol
        return known and 2.0 * self.tol < self._bounded_gap(point) < np.inf

    def with_room(self) -> DualProblem:
        """Return the problem with margins that are larger by what rounding makes of the scores.

        A y g(x) that is rounded to less than 1 costs u times as much, which of a large u may be
        more than all of P. The larger margins cost that much times α: as much of that is taken as
        tol has room for.
        """
        point = self.point
        assert point is not None
        bounds = self._bounds(point)
        unit, allowed = self.problem.target_scale or 1.0, TUNING.room_share * self.tol
        largest, cost = float(bounds.max()) / unit, float(point.alpha @ bounds)
        share = max(largest, cost / max(abs(point.primal), TINY), TINY)
        by = min(TUNING.room_errors, allowed / share)
        return replace(self.problem, p=self.problem.p - by * bounds)

    def _bounded_gap(self, point: Optimality) -> float:
        """Return what rounding may make of the relative gap, by the bounds of all errors."""
        with np.errstate(all="ignore"):
            return self._worst_gap(point, self._bounds(point))

    def _bounds(self, point: Optimality) -> Floats:
        """Return a bound of the rounding error of every score: more than is to be expected."""
        support = np.flatnonzero(point.alpha)
        signed = (point.alpha * self.problem.signs)[support]
        with np.errstate(all="ignore"):  # beyond the range of numbers nothing is known
            bounds = self.gram().bound(slice(None), support, signed)
            return bounds + EPSILON * (np.abs(point.scores) + abs(point.b))

    def improve(self, solution: Solution) -> None:
        """Take an answer in the place of a converged one, if it is as good and feasible.

        It is not as good where rounding may cost more than the gap allowed, of it alone.
        """
        if solution.status is not Status.CONVERGED:
            return
        assert solution.alpha is not None
        assert self.point is not None
        point = self.judged(solution)
        # An indefinite kernel may spoil both.
        if self._is_off(solution.alpha) or not point.share(self.tol) <= 1.0:
            return
        most = 2.0 * self.tol
        known = not self.problem.total and self._bounded_gap(self.point) <= most
        if not (known and self._bounded_gap(point) > most):
            self.point = point

    def solution(self) -> Solution:
        """Return the best answer."""
        assert self.last is not None
        ended = replace(
            self.last, status=self.status, n_iter=self.n_iter, n_updates=self.n_updates,
            seconds=self.progress.seconds, trace=self.progress.trace(),
        )  # fmt: skip
        if self.point is None:
            return ended
        with np.errstate(over="ignore", invalid="ignore"):
            if self.status is not Status.CONVERGED:
                self._look_back()
            else:
                self.point = self._firm(self.point)
        found = self.point.solution(self.status)
        ended = replace(
            ended, alpha=found.alpha, b=found.b, scores=found.scores,
            score_bounds=found.score_bounds,
        )  # fmt: skip
        if self.status is Status.CONVERGED or self.problem.n_variables <= SMALL_SAMPLES:
            return ended
        return self.progress.better_than(ended, self._at_worst(self.point))

    def _firm(self, point: Optimality) -> Optimality:
        """Return a converged answer, a little larger where rounding of its margins would cost much.

        Of separable classes P = ½‖w‖² may be far below C times the last digit of 1 − y g(x).
        """
        if not self.problem.has_unit_margin or self._worst_gap(point) <= 2.0 * self.tol:
            return point
        by = 1.0 + TUNING.enlargement_errors * (self._error(point) + EPSILON)
        alpha = np.minimum(by * point.alpha, self.problem.upper)
        # Where α met its bound the scores are not quite those of it.
        larger = self._of(alpha, by * point.scores, by * point.b, None)
        helps = self._worst_gap(larger) <= 2.0 * self.tol and larger.share(self.tol) <= 1.0
        return larger if helps else point

    def _look_back(self) -> None:
        """Take w = 0, or the best that was shown on the way, where the last answer is worse."""
        assert self.point is not None
        others = [self.point]
        if self._may_shrink:
            nothing = np.zeros(self.problem.n_variables)
            with np.errstate(divide="ignore", invalid="ignore"):  # there is none of a hard margin
                b = best_bias(self.problem, nothing)
            others.append(self._of(nothing, nothing, b, np.zeros(nothing.size)))
        shown = self.progress.best
        if shown is not None and self.problem.n_variables <= SMALL_SAMPLES:
            others.append(self.judged(replace(shown, scores=None)))
        self.point = min(others, key=self._at_worst)
