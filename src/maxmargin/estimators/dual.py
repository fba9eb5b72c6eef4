"""Which solver answers the dual problem of a machine, and how far it goes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from ..arrays import Floats
from ..kernels import Kernel, Linear
from ..problems import DualProblem
from ..progress import Limits, Progress
from ..solution import Solution, Status
from .base import Training
from .gram import SMALL, Engines
from .hard_margin import solve_kernel_machine

# Samples up to which a hard margin is solved by the active-set method from the start; beyond, steps
# are as many as support vectors, and decomposition comes near the end sooner.
EXACT = 256
# α max K(x, x) that a hard margin of a hundredth of the largest ‖φ(x)‖ does not exceed.
COSTLY = 1e4
# Steps of decomposition per sample before another method takes over, of few and of up to so many
# samples: the interior point, or of more than DENSE samples the active set.
ENOUGH, PLENTY, BOUNDED, DENSE = 100, 1000, 5000, 3000
# The same where the linear machine takes over.
QUICK = 10
# Multiplications, of all tasks together, that a method may take before another one takes over, or
# where none is to, before it is given up: about one and four seconds. A step of pairs counts some.
WORK, ALL_WORK, STEP, ROUND = 1e9, 3e9, 500, 2e4
# The same of the interior point, whose steps are of another kind: it takes about so many.
FACTORED, FACTORS = 3e11, 30
# Steps and violation of the active-set method as the last to improve an answer.
POLISH, EXACTLY = 2000, 1e-10
# Rows of a mean this many times as long as their spread are centred; sparse ones of this density.
FAR, FULL = 100.0, 0.5
# Numbers up to which sums are correctly rounded: half a second.
CAREFUL = 2_000_000
# yᵀα relative to Σα that is taken for what sums in another order leave.
REST = 1e-9

Solver = Literal["auto", "decomposition", "smo", "active-set", "coordinate-ascent", "qp"]


class WarmStart(NamedTuple):
    """α of the rows of a task to begin with, and the scores that it had, with their bounds."""

    alpha: Floats
    scores: Floats | None
    bounds: Floats | None = None


@dataclass(frozen=True)
class Dual:
    """How the duals of a fit are solved: by the solver asked for, or by those that suit.

    Parameters
    ----------
    engines : Engines
    solver : str
    tol : float
    shrinking : bool
    n_tasks : int
        Tasks of the fit, which share what work a small fit may take.
    centre : ndarray of shape (n_features,), optional
        What has been subtracted from the rows that the engines hold.
    """

    engines: Engines
    solver: Solver
    tol: float
    shrinking: bool
    n_tasks: int = 1
    centre: Floats | None = None

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        training: Training,
        solver: Solver,
        tol: float,
        *,
        shrinking: bool,
        may_centre: bool,
        n_tasks: int,
        budget: float | None,
        largest: float,
    ) -> Dual:
        """Prepare the engines of a fit, on centred rows where those lie far from the origin.

        ``largest`` is what no α exceeds, about.
        """
        centre = far_centre(training.X) if may_centre and isinstance(kernel, Linear) else None
        if centre is not None:
            X = training.X.toarray() if sparse.issparse(training.X) else training.X
            training = replace(training, X=X - centre)
        engines = Engines(kernel, training, tol, budget, largest)
        return cls(engines, solver, tol, shrinking, n_tasks, centre)

    def solve(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Return the solution of a task, or raise the proof that a hard margin has none.

        With a bias, x ↦ x − m changes neither α nor w of a linear kernel, but b by w·m: products of
        rows far from the origin have no digits left for the differences between them.
        """
        from ..solvers.best_seen import BestSeen

        if self.centre is None:
            return self._answer(problem, start, progress, limits)
        start = start and WarmStart(start.alpha, None)
        moved = replace(problem, X=self.engines.X)
        back = partial(_moved_back, problem, self.centre)
        return back(self._answer(moved, start, BestSeen(progress, back), limits))

    def _answer(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        if _is_hard(problem):
            exact = self._method(problem) in ("active-set", "qp")
            attempt = partial(
                self._solve if exact else self._within_bounds, problem, start, progress, limits
            )
            solution = solve_kernel_machine(problem, attempt, self.tol, progress, limits)
        else:
            solution = self._solve(problem, start, progress, limits)
        return _without_rest(problem, solution) if problem.groups else solution

    def _method(self, problem: DualProblem) -> str:
        """Return the name of the solver that was asked for, or of the one that suits."""
        if self.solver == "coordinate-ascent" and problem.groups:
            raise ValueError(
                "solver='coordinate-ascent' moves one α at a time, which yᵀα = 0 forbids: use "
                "fit_intercept=False, or solver='smo'."
            )
        if self.solver == "smo" and not problem.groups:
            raise ValueError(
                "solver='smo' moves pairs of α, which only a machine with a bias needs: use "
                "solver='coordinate-ascent' with fit_intercept=False."
            )
        if self.solver != "auto":
            return self.solver
        small = problem.n_variables <= EXACT
        return "active-set" if _is_hard(problem) and small else "decomposition"

    def _solve(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve by the method that was asked for, else by those that suit until one has done it."""
        from .attempts import Attempts

        gram = partial(self._float64, problem)
        far = 0.0 if self.centre is None else float(np.linalg.norm(self.centre))
        attempts = Attempts(problem, gram, self.tol, limits, progress, far)
        name, n = self._method(problem), problem.n_variables
        if self.solver != "auto" or name == "active-set":
            attempts.run(partial(self._named, name, problem, start), self._steps(name, n, ALL_WORK))
            if name == "qp" and not (attempts.is_over or attempts.is_blurred()) and n <= BOUNDED:
                # A library's tolerances are absolute, and not those of the machine.
                self._otherwise(problem, attempts)
            return attempts.solution()
        linear = self._in_feature_space(problem, progress)
        if not linear or n <= SMALL:
            most = QUICK * n if linear else self._enough(n)
            attempts.run(partial(self._decompose, problem, start), most)
        if linear and not attempts.is_over:
            attempts.run(partial(self._linear, problem, _after(attempts, start)))
        if not (attempts.is_over or attempts.is_blurred()) and n <= BOUNDED:
            self._otherwise(problem, attempts)
        if attempts.status is Status.CONVERGED and self.engines.few:
            self._polish(problem, attempts)
        return attempts.solution()

    def _float64(self, problem: DualProblem) -> Any:
        """Return the engine of a task in float64, the one there is where that is the fast one."""
        exact = self.engines.corrections(problem) is not None or problem.n_variables > SMALL
        return self.engines.exact(problem) if exact else self.engines.fast(problem)

    def _enough(self, n: int) -> int | None:
        """Return the steps of decomposition after which another method goes on, if one does."""
        if n > BOUNDED:
            return None
        if n > DENSE:
            return PLENTY * n
        per_sample = ENOUGH if self.engines.few else PLENTY
        return min(per_sample * n, self._steps("decomposition", n, WORK) or 0)

    def _otherwise(self, problem: DualProblem, attempts: Any) -> None:
        """Go on where pairs of α creep."""
        n = problem.n_variables
        if n <= DENSE and self.n_tasks * FACTORS * n**3 / 3.0 <= FACTORED:
            attempts.run(partial(self._interior, problem, _after(attempts, None)))
        if not (attempts.is_over or attempts.is_blurred()):
            most = POLISH if n > DENSE else None  # its work is bounded below
            attempts.run(partial(self._named, "active-set", problem, _after(attempts, None)), most)
        if not attempts.is_over and n > DENSE:
            attempts.run(partial(self._decompose, problem, _after(attempts, None)))

    def _steps(self, name: str, n: int, work: float) -> int | None:
        """Return the steps of a method on up to some thousand samples that are so much work.

        Pairs of α creep where the scales of a kernel are far apart.
        """
        if n > DENSE or name in ("qp", "active-set"):
            return None
        # A round has 20 steps per sample, and takes the interpreter some time.
        return int(work / (self.n_tasks * (n + STEP + ROUND / n)))

    def _polish(self, problem: DualProblem, attempts: Any) -> None:
        """Take few samples to rounding by the active set: some steps from the optimum.

        The answer is then one and the same for rows in another order, and for a row given twice or
        with a weight of 2.
        """
        from ..solvers.dual.active_set import ActiveSet

        solver = ActiveSet(attempts.gram(), EXACTLY, Limits(POLISH, attempts.seconds_left))
        attempts.improve(solver.solve(problem, attempts.point.alpha, Progress()))

    def _in_feature_space(self, problem: DualProblem, progress: Progress) -> bool:
        """Whether this is the linear machine, by its kernel, with more samples than features.

        Those who ask for every update want to see α move pair by pair.
        """
        return (
            isinstance(problem.kernel, Linear)
            and problem.n_variables > problem.X.shape[1]
            and not (problem.total or _is_hard(problem) or progress.watchers)
        )

    def _linear(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        from ..engines.cpu.features import Features
        from ..solvers.dual.feature_space import FeatureSpace

        X, index = self.engines.X, problem.index
        rows = X if np.array_equal(index, np.arange(X.shape[0])) else X[index]
        solver = FeatureSpace(Features(rows), self.tol, limits)
        return solver.solve(problem, start and start.alpha, progress)

    def _interior(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        from ..solvers.dual.interior_point import DualInteriorPoint

        solver = DualInteriorPoint(self._float64(problem), self.tol, limits)
        return solver.solve(problem, start and start.alpha, progress)

    def _decompose(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        from ..solvers.dual.decomposition import WORKING_SET, Decomposition

        n = problem.n_variables
        gram, exact = self.engines.fast(problem), self.engines.corrections(problem)
        working_set = n if n <= SMALL and gram.is_whole else WORKING_SET
        alone = problem.index.size == problem.X.shape[0]  # pairs of classes are many
        solver = Decomposition(
            gram, exact, self.tol, limits, working_set, self.shrinking, often=alone
        )
        if start is None:
            return solver.solve(problem, None, progress)
        return solver.solve(problem, start.alpha, progress, start.scores, start.bounds)

    def _named(
        self,
        name: str,
        problem: DualProblem,
        start: WarmStart | None,
        progress: Progress,
        limits: Limits,
    ) -> Solution:
        """Solve by one of the methods a caller may ask for."""
        if name == "decomposition":
            return self._decompose(problem, start, progress, limits)
        solver = self._exact_solver(name, problem, limits)
        solution: Solution = solver.solve(problem, start and start.alpha, progress)
        return solution

    def _exact_solver(self, name: str, problem: DualProblem, limits: Limits) -> Any:
        """Return a solver in float64 alone, on the whole Gram matrix but for the active set."""
        from ..solvers.dual.active_set import ActiveSet
        from ..solvers.dual.decomposition import Decomposition
        from ..solvers.dual.qp import QuadraticProgram

        n, gram = problem.n_variables, self.engines.exact(problem)
        if name == "active-set":
            work = ALL_WORK / self.n_tasks if n <= DENSE else np.inf
            return ActiveSet(gram, min(self.tol, EXACTLY), limits, work)
        if not gram.fits:
            raise ValueError(
                f"solver={name!r} needs the whole Gram matrix, {n}² float64 values, which does not "
                "fit: use solver='decomposition', or raise cache_size."
            )
        if name == "qp":
            return QuadraticProgram(gram, min(self.tol, 1e-12), limits)
        gram.whole()
        return Decomposition(gram, None, self.tol, limits, n, often=True)

    def _within_bounds(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve a hard margin as a costly soft one, for a while, which cannot run away.

        Where no α meets its bound the answer is the hard margin's. Else the active-set method goes
        on from there, and finds the plane or the proof that there is none.
        """
        largest = max(float(problem.kernel.diagonal(problem.X)[problem.index].max()), 1e-300)
        bound = np.minimum(problem.upper, COSTLY / largest)
        steps = min(100 * problem.n_variables, limits.iterations or 2**62)
        soft, for_a_while = replace(problem, upper=bound), replace(limits, iterations=steps)
        solution = self._solve(soft, start, progress, for_a_while)
        assert solution.alpha is not None
        ended = solution.status in (Status.STOPPED, Status.TIME_LIMIT) or (
            solution.n_iter == limits.iterations
        )
        met = solution.alpha >= bound
        if ended or (solution.status is Status.CONVERGED and not met.any()):
            return solution
        exact: Solution = self._exact_solver("active-set", problem, limits).solve(
            problem, solution.alpha, progress
        )
        return exact


def _after(attempts: Any, start: WarmStart | None) -> WarmStart | None:
    """Return the best answer so far as a start, or the start that was given."""
    point = attempts.point
    return start if point is None else WarmStart(point.alpha, point.scores, point.bounds)


def _is_hard(problem: DualProblem) -> bool:
    """Whether some α has nothing that keeps it from growing."""
    return bool((np.isinf(problem.upper) & (problem.ridge == 0.0)).any())


def _without_rest(problem: DualProblem, solution: Solution) -> Solution:
    """Return the solution with what rounding left of yᵀα removed."""
    from ..solvers.dual.optimality import exactly_balanced

    alpha, y = solution.alpha, problem.signs
    assert alpha is not None
    if abs(float(y @ alpha)) > REST * float(alpha.sum()):
        return solution
    balanced, bounds = exactly_balanced(alpha, y, problem.upper), solution.score_bounds
    if bounds is not None:
        size = np.sqrt(np.abs(problem.kernel.diagonal(problem.X)[problem.index]))
        bounds = bounds + float(np.abs(balanced - alpha) @ size) * size
    return replace(solution, alpha=balanced, score_bounds=bounds)


def far_centre(X: Any) -> Floats | None:
    """Return the mean of the rows where it is far from the origin, measured by their spread.

    None elsewhere, and where centred rows would outgrow X: of sparse data with many zeros.
    """
    from ..engines.cpu.features import Features

    if sparse.issparse(X) and X.nnz < FULL * np.prod(X.shape):
        return None
    features, n = Features(X), X.shape[0]
    mean = features.combine(np.ones(n)) / n
    square = float(mean @ mean)
    spread = float(features.squared_lengths().mean()) - square
    return mean if square > FAR**2 * spread else None


def _moved_back(problem: DualProblem, centre: Floats, solution: Solution) -> Solution:
    """Return the solution of centred rows as that of the rows themselves."""
    if solution.alpha is None:
        return solution
    support = np.flatnonzero(solution.alpha)
    rows = problem.X[problem.index[support]]
    rows = rows.toarray() if sparse.issparse(rows) else rows
    w = combined((solution.alpha * problem.signs)[support], rows.astype(np.float64))
    shift = math.fsum(w * centre)
    # Scores of the rows where they are have other roundings.
    return replace(solution, b=solution.b - shift, scores=None, score_bounds=None)


def combined(c: Floats, rows: Floats) -> Floats:
    """Return Σ c_i x_i, each number correctly rounded where that takes no time to speak of.

    Terms may be 1e16 times as large as their sum: of support vectors far from the origin.
    """
    if rows.size > CAREFUL:
        return c @ rows
    sums = []
    for column in rows.T:
        product = c * column
        # The rest of every product, from halves of its factors (Dekker, 1971).
        (c1, c2), (x1, x2) = _halves(c), _halves(column)
        rest = ((c1 * x1 - product) + c1 * x2 + c2 * x1) + c2 * x2
        sums.append(math.fsum([*product, *rest]))
    return np.array(sums)


def _halves(values: Floats) -> tuple[Floats, Floats]:
    """Return two numbers of 26 digits for each, whose sum it is."""
    large = 134217729.0 * values
    first = large - (large - values)
    return first, values - first
