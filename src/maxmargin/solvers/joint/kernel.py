"""The joint machine with any kernel: block descent in the dual, and multipliers for the biases.

With the shares p and values s of this package's comment, s_i^k = (k ≠ y_i) + Σ_j α_j^k K_ij + b_k,
the shares of one sample, all others held fixed, are optimal at the projection of
p_i + s_i/(C_i K_ii) onto the simplex (Crammer, Singer, *JMLR* 2, 2001; Keerthi et al., *KDD*,
2008). The samples that violate most are collected in a working set, whose own problem is solved
sample by sample on a block of K; then the values of all samples are updated by one product. A
linear kernel begins with the answer of the linear machine.

Free biases are the multipliers of Σ_i α_i^k = 0. The augmented Lagrangian adds ½r‖Σ_i α_i‖² to the
dual, so that b = b⁰ + rΣ_i α_i; it is K + r in place of K. Once no sample violates by more than b
would move, b⁰ ← b (Rockafellar, *Math. Oper. Res.* 1, 1976).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Floats, Integers
from ...engines.joint_kernel import JointKernelState, JointSurvey
from ...engines.registry import engine_for
from ...kernels import Linear
from ...problems import JointKernelProblem, JointProblem
from ...problems.circulation import circulation
from ...progress import Limits, Progress
from ...runtime.threads import single_threaded_blas
from ...solution import Solution, Status
from ..best_seen import BestSeen
from ..centring import Origin
from .solver import CrammerSinger

TINY = float(np.finfo(np.float64).tiny)


class JointStart(NamedTuple):
    """Where a descent begins: α (n, c) and b (c,)."""

    alpha: Floats
    b: Floats


@dataclass(frozen=True)
class Tuning:
    """Sizes of blocks, and when each part of the descent ends."""

    # Samples up to which all of them are one block, samples of a block else, and how many of those
    # are the worst violators.
    single_block: int = 2048
    block_samples: int = 1024
    fresh_samples: int = 512
    # A block ends when its samples violate by this share of what all did before it.
    round_share: float = 0.3
    # Numbers that the steps of a round may pass over: less than a tenth of a second, for Ctrl-C.
    numbers_per_round: float = 5e7
    # The violation and the relative gap at the end, and what Σ_i α_i does to values, in tols.
    goal_tols: float = 0.9
    gap_tols: float = 1.6
    rest_tols: float = 0.05
    # r of the augmented Lagrangian, relative to the largest K(x, x), at first, and how many times
    # as large it may become. It grows where a multiplier step leaves more than a share of Σ_i α_i.
    first_step: float = 0.2
    largest_growth: float = 50.0
    growth: float = 1.5
    slow_share: float = 0.9
    # What the descent does without a violation below 0.9 of the least so far, before it ends:
    # rounds, and numbers that steps pass over, with those of so many passes over all pairs.
    patience_rounds: int = 1000
    patience_numbers: float = 5e9
    patience_passes: float = 1000.0
    # The relative gap of the linear machine that a linear kernel begins with, in tols and at least.
    linear_gap_tols: float = 1e-4
    least_linear_gap: float = 1e-10
    # Below this tol values are computed anew before the end: sums of many steps round.
    exact_below: float = 1e-6


@dataclass(frozen=True)
class KernelCrammerSinger:
    """Block descent on the dual of a joint machine.

    Parameters
    ----------
    tol : float, default=1e-3
        The largest violation of the KKT conditions at the end; the relative gap is at most 2·tol.
    limits : Limits
        Iterations are steps: samples whose shares have been moved.
    budget : float, optional
        Bytes that kernel values may take.
    tuning : Tuning

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.array([[0.0], [2.0], [4.0]]), np.array([0, 1, 2])
    >>> problem = JointKernelProblem(Linear(), X, np.arange(3), labels, 3, np.full(3, 10.0))
    >>> solution = KernelCrammerSinger(tol=1e-9).solve(problem, None, Progress())
    >>> print((X.T @ solution.alpha).ravel().round(4) + 0.0)
    [-1.  0.  1.]
    """

    tol: float = 1e-3
    limits: Limits = field(default_factory=Limits)
    budget: float | None = None
    tuning: Tuning = field(default_factory=Tuning)

    def solve(
        self, problem: JointKernelProblem, start: JointStart | None, progress: Progress
    ) -> Solution:
        """Return α (n, c) and b (c,).

        Rows of a linear kernel are centred where a bias takes that up: K is better conditioned.
        """
        free = problem.bias == "free" and isinstance(problem.kernel, Linear)
        origin = Origin.far_mean(problem.X, ratio=0.0) if free else None
        if origin is None:
            return self._descend(problem, start, progress)
        rows = origin.rows(problem.X)
        back = partial(_moved_back, origin, rows[problem.index])
        if start is not None:  # its biases are those of other rows
            start = JointStart(start.alpha, np.zeros(problem.n_classes))
        moved = replace(problem, X=rows)
        return back(self._descend(moved, start, BestSeen(progress, back)))

    def _descend(
        self, problem: JointKernelProblem, start: JointStart | None, progress: Progress
    ) -> Solution:
        steps = 0
        if start is None and isinstance(problem.kernel, Linear):
            first = self._linear(problem, progress)
            if first.status in (Status.STOPPED, Status.TIME_LIMIT, Status.ITERATION_LIMIT):
                return first
            assert first.alpha is not None
            start, steps = JointStart(first.alpha, first.b), first.n_iter
        with single_threaded_blas():
            state = engine_for(problem.X, budget=self.budget).joint_state(problem)
            if start is not None:
                state.start(*start)
            seen = BestSeen(progress)
            descent = _Descent(self, problem, state, seen, steps)
            solution = descent.solution(descent.run())
        if solution.status is Status.CONVERGED:
            return solution
        return seen.better_than(solution, descent.primal)

    def _linear(self, problem: JointKernelProblem, progress: Progress) -> Solution:
        """Return the answer of the linear machine, from which few steps are left.

        Its gap says little of single samples: it has to be much smaller than tol.
        """
        X = problem.X[problem.index]
        linear = JointProblem(X, problem.labels, problem.n_classes, problem.cost, problem.bias)
        features = engine_for(X).features()
        tol = max(self.tuning.linear_gap_tols * self.tol, self.tuning.least_linear_gap)
        solver = CrammerSinger(features, tol, self.limits)
        as_kernel = partial(_without_planes, problem)
        return as_kernel(solver.solve(linear, None, BestSeen(progress, as_kernel)))


def _without_planes(problem: JointKernelProblem, solution: Solution) -> Solution:
    """Return the solution of a linear machine as that of one with a kernel."""
    alpha = solution.alpha
    if alpha is None:  # of a step on some of the samples
        alpha = np.zeros((problem.labels.size, problem.n_classes))
    return replace(solution, w=np.empty((0, 0)), alpha=alpha)


def _moved_back(origin: Origin, rows: Any, solution: Solution) -> Solution:
    """Return the biases of the rows where they are, for those about an origin."""
    assert solution.alpha is not None
    pairs = zip(solution.alpha.T @ rows, solution.b, strict=True)
    return replace(solution, b=np.array([origin.bias(w, float(b)) for w, b in pairs]))


class _Descent:
    """The decisions of a descent."""

    def __init__(
        self,
        options: KernelCrammerSinger,
        problem: JointKernelProblem,
        state: JointKernelState,
        progress: Progress,
        steps: int,
    ) -> None:
        self.options, self.state, self.progress = options, state, progress
        self.tuning, self.is_free = options.tuning, problem.bias == "free"
        n = state.n_samples
        self.is_all = n <= self.tuning.single_block
        self.block: Integers = np.arange(n) if self.is_all else np.empty(0, dtype=np.int64)
        self.scale, self.cost = state.largest or 1.0, float(problem.cost.sum())
        # Where costs are small, all of α moves b by about 1.
        first = max(self.tuning.first_step * self.scale, 1.0 / self.cost)
        self.step = first if self.is_free else 0.0
        self.largest_step = self.tuning.largest_growth * first
        self.steps, self.tightened = steps, 1.0
        self.least, self.idle, self.last_rest = np.inf, 0, np.inf
        self.passed, self.numbers = 0.0, float(n) * n * problem.n_classes
        self.is_fresh = False

    def run(self) -> Status:
        """Go on until the conditions hold, or something ends it."""
        options = self.options
        self.survey()
        while not self.is_optimal():
            ended = options.limits.reached(self.steps, self.progress) or self.stalled()
            if ended is not None:
                return ended
            self.round()
            self.survey()
            if self.report():
                return Status.STOPPED
        return Status.CONVERGED

    def survey(self) -> None:
        """Measure how far all samples are from the optimum."""
        self.found: JointSurvey = self.state.survey()

    @property
    def goal(self) -> float:
        """The violation to end at."""
        return self.tightened * self.tuning.goal_tols * self.options.tol

    @property
    def primal(self) -> float:
        """P of the present w and b."""
        return 0.5 * self.found.square + self.found.loss

    def is_optimal(self) -> bool:
        """Return whether this is the end; where it is not, prepare what follows."""
        found, tuning, tol = self.found, self.tuning, self.options.tol
        move = self.step * found.rest
        farthest = float(np.abs(move).max(initial=0.0))
        if found.violation <= self.goal:
            if self.is_balanced() and found.gap <= tuning.gap_tols * tol * max(self.primal, TINY):
                return self.is_confirmed()
            if found.gap > 0.5 * tuning.gap_tols * tol * self.primal:
                self.tightened *= 0.5  # many small violations add up
        if farthest > 0.0 and found.violation <= max(self.goal, farthest):
            self.move_biases(move)
        return False

    def is_balanced(self) -> bool:
        """Return whether Σ_i α_i = 0, as far as values, losses and D would show it."""
        if not self.is_free:
            return True
        rest, primal = float(np.abs(self.found.rest).sum()), max(self.primal, TINY)
        shown = rest * max(self.scale, self.scale * self.cost / primal, 1.0 / primal)
        return shown <= self.tuning.rest_tols * self.options.tol

    def is_confirmed(self) -> bool:
        """Return whether values computed anew say the same, where that may be in doubt."""
        if self.is_fresh or self.options.tol >= self.tuning.exact_below:
            return True
        self.state.refresh()
        self.is_fresh = True
        self.survey()
        return self.is_optimal()

    def balanced(self) -> Floats:
        """Return α, with flows between classes lowered until Σ_i α_i = 0 where a bias is free.

        Only samples whose own class has a share give way, where they can: others would get one.
        """
        if not self.is_free:
            return self.state.alpha()
        flows, yielding = self.state.class_flows()
        excess = flows - circulation(flows)
        if (excess > yielding).any():
            return self.state.alpha()
        return self.state.alpha(1.0 - excess / np.where(excess > 0.0, yielding, 1.0))

    def move_biases(self, move: Floats) -> None:
        """Take the present biases for b⁰."""
        self.state.shift(move)
        rest, tuning = float(np.abs(self.found.rest).max()), self.tuning
        if rest > tuning.slow_share * self.last_rest:
            self.step = min(tuning.growth * self.step, self.largest_step)
        self.last_rest = rest
        self.survey()

    def round(self) -> None:
        """Solve the problem of a block of samples, and update all others."""
        tuning, limits = self.tuning, self.options.limits
        if not self.is_all:
            self.block = self.state.choose(self.block, tuning.block_samples, tuning.fresh_samples)
        most = int(tuning.numbers_per_round / max(self.block.size * self.state.b.size, 1)) + 1
        if limits.iterations is not None:
            most = min(most, limits.iterations - self.steps)
        if self.progress.watchers:  # a callback takes every update
            most = 1
        violation = self.found.violation
        stop = tuning.round_share * violation
        if violation > self.goal:  # else it is the sums of α that are not good enough
            stop = max(stop, 0.5 * self.goal)
        steps = self.state.solve(self.block, self.step, stop, most)
        self.steps += steps
        self.passed += float(steps) * self.block.size * self.state.b.size
        self.is_fresh = False

    def stalled(self) -> Status | None:
        """Return a status once the violation has not shrunk for long."""
        better = self.found.violation < 0.9 * self.least
        self.idle, self.passed = (0, 0.0) if better else (self.idle + 1, self.passed)
        self.least = min(self.least, self.found.violation)
        tuning = self.tuning
        most = tuning.patience_numbers + tuning.patience_passes * self.numbers
        too_long = self.idle > tuning.patience_rounds or self.passed > most
        return Status.PATIENCE if too_long or self.tightened < 1e-6 else None

    def report(self) -> bool:
        """Report a round; return whether a callback stops the fit."""
        found = self.found
        # Unless Σ_i α_i = 0, α is not feasible, and what it has of D says nothing.
        dual = found.flow - 0.5 * found.square
        self.progress.unit = "round"
        return self.progress.iteration(
            -dual, found.errors, found.violation, lambda: self.solution(None),
            primal=self.primal, dual=np.nan if self.is_free else dual,
        )  # fmt: skip

    def solution(self, status: Status | None) -> Solution:
        """Return the present answer."""
        return Solution(
            w=np.empty((0, 0)),
            b=self.state.b.copy(),
            status=status or Status.STOPPED,
            n_iter=self.steps,
            n_updates=self.steps,
            seconds=self.progress.seconds,
            alpha=self.balanced(),
            trace=self.progress.trace() if status else None,
        )
