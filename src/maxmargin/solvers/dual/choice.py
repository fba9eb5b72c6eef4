"""Which solvers answer the dual of a kernel machine, in which order, and how far each goes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers, Partitioned, container, on_host
from ...engines.base import HostEngine, HostGram, Precision
from ...engines.registry import engine_for
from ...kernels import Kernel, Linear
from ...problems import DualProblem
from ...progress import Limits, Progress
from ...runtime.loading import load
from ...solution import Solution, Status
from ..best_seen import BestSeen
from ..centring import Origin, combined
from .attempts import Attempts
from .optimality import exactly_balanced, is_hard
from .sizes import SMALL_SAMPLES
from .small_tasks import solve_small

if TYPE_CHECKING:
    from .active_set import ActiveSet
    from .decomposition import Decomposition
    from .qp import QuadraticProgram

Solver = Literal["auto", "decomposition", "smo", "active-set", "coordinate-ascent", "qp"]


@dataclass(frozen=True)
class Tuning:
    """When one solver gives way to the next."""

    # Variables up to which a hard margin is solved by the active-set method from the start. It
    # takes as many steps as there are support vectors: decomposition is faster for more.
    exact_up_to_variables: int = 256
    # α max K(x, x) that a hard margin of a hundredth of the largest ‖φ(x)‖ does not exceed.
    hard_margin_cost: float = 1e4
    # Steps of decomposition per variable before another method takes over: of few variables, of
    # others, and where the linear machine takes over.
    few_steps_per_variable: int = 100
    steps_per_variable: int = 1000
    linear_steps_per_variable: int = 10
    # Variables up to which another method takes over at all, and up to which the interior point
    # is the first of them.
    takeover_up_to_variables: int = 5000
    dense_up_to_variables: int = 3000
    # Multiplications, of all tasks together, that decomposition may take before another method
    # takes over, and that a method chosen by name may take: about one and four seconds.
    decomposition_work: float = 1e9
    all_work: float = 3e9
    # Multiplications that take as long as a step of SMO and as a round, beside its vectors.
    work_per_step: float = 500.0
    work_per_round: float = 2e4
    # Multiplications of all factorisations that the interior point may take, and its usual steps.
    interior_point_work: float = 3e11
    interior_point_steps: int = 30
    # Steps and violation of the active-set method as the last to improve an answer.
    polish_steps: int = 2000
    polish_tol: float = 1e-10
    # Error of Σ sα relative to Σα that is taken for what sums in another order leave.
    negligible_rest: float = 1e-9


class WarmStart(NamedTuple):
    """α of the variables of a task to begin with, and the scores that it had, with their bounds."""

    alpha: Floats
    scores: Floats | None
    bounds: Floats | None = None


@dataclass(frozen=True)
class Dual:
    """How the duals of a fit are solved: by a given solver, or by those that suit.

    Parameters
    ----------
    engine : HostEngine
        Where the rows of X are.
    kernel : Kernel
    solver : str
    tol : float
    largest : float
        About what no α exceeds.
    shrinking : bool
    n_tasks : int
        Tasks of the fit, which share what work a small fit may take.
    origin : Origin, optional
        What has been subtracted from the rows that the engine holds.
    X : array, optional
        The rows after that.
    tuning : Tuning
    """

    engine: HostEngine
    kernel: Kernel
    solver: Solver
    tol: float
    largest: float = 1.0
    shrinking: bool = True
    n_tasks: int = 1
    origin: Origin | None = None
    X: Any = None
    tuning: Tuning = field(default_factory=Tuning)

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Any,
        solver: Solver,
        tol: float,
        *,
        codes: Integers | None = None,
        shrinking: bool = True,
        may_centre: bool = False,
        n_tasks: int = 1,
        budget: float | None = None,
        largest: float = 1.0,
        engine: HostEngine | None = None,
    ) -> Dual:
        """Prepare the engine of a fit, on centred rows where those lie far from the origin.

        Parameters
        ----------
        kernel : Kernel
        X : array or CSR matrix of shape (n_samples, n_features), or a precomputed Gram matrix
        solver : str
        tol : float
            The largest violation of a KKT condition; the relative gap is at most twice that.
        codes : ndarray of int of shape (n_samples,), optional
            The class of each row, where tasks are about pairs of more than two classes.
        shrinking : bool
        may_centre : bool
            Whether Σ sα = 0 in all tasks, so that rows of a linear kernel may be moved.
        n_tasks : int
        budget : float, optional
            Bytes that kernel values may take.
        largest : float
            About what no α exceeds.
        engine : HostEngine, optional
            One that holds X already, and may hold kernel values of earlier fits; then X is taken
            as it is.
        """
        if engine is not None:
            return cls(engine, kernel, solver, tol, largest, shrinking, n_tasks)
        may_move = may_centre and isinstance(kernel, Linear) and not isinstance(X, Partitioned)
        origin = Origin.far_mean(on_host(X)) if may_move else None
        rows = X if origin is None else origin.rows(on_host(X))
        engine = engine_for(rows, codes=codes, budget=budget)
        return cls(engine, kernel, solver, tol, largest, shrinking, n_tasks, origin, rows)

    @cached_property
    def precision(self) -> Precision:
        """Of the kernel values that most of the work is done with."""
        return self.engine.precision(self.kernel, self.tol, self.largest)

    def solve(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Return the solution of a task, or raise the proof that a hard margin has none."""
        self.load_solvers()
        if isinstance(problem.X, Partitioned):
            return self._in_partitions(problem, progress, limits)
        if self.origin is None:
            return self._answer(problem, start, progress, limits)
        start = start and WarmStart(start.alpha, None)
        back = partial(self.moved_back, problem)
        return back(self._answer(self.moved(problem), start, BestSeen(progress, back), limits))

    def solve_exactly(
        self,
        problem: DualProblem,
        alpha: Floats | None,
        limits: Limits,
        *,
        tol: float = 1e-12,
        gram: HostGram | None = None,
    ) -> Solution:
        """Return the optimum to rounding, from an α nearby or by way of `solve`.

        Its b and scores are those about the origin of the engine: see `moved_back`. ``gram`` may
        be one of the engine that holds values of K already.
        """
        from .active_set import ActiveSet

        progress, moved = Progress(), self.moved(problem)
        gram = gram or self.engine.gram(self.kernel, problem.index)
        solver = ActiveSet(gram, tol, limits, self._exact_work(problem))
        if alpha is not None:
            solution = solver.solve(moved, alpha, progress)
            if solution.status in (Status.CONVERGED, Status.TIME_LIMIT):
                return solution
        whole = replace(self, origin=None)
        start = None if alpha is None else WarmStart(alpha, None)
        solution = whole.solve(moved, start, Progress(), limits.after(progress.seconds))
        exact = solver.solve(moved, solution.alpha, progress)
        return exact if exact.status is Status.CONVERGED else solution

    def moved(self, problem: DualProblem) -> DualProblem:
        """Return the problem on the rows that the engine holds."""
        return problem if self.origin is None else replace(problem, X=self.X)

    def moved_back(self, problem: DualProblem, solution: Solution) -> Solution:
        """Return the solution of rows about the origin of the engine as that of the rows."""
        return solution if self.origin is None else _moved_back(problem, self.origin, solution)

    def _in_partitions(self, problem: DualProblem, progress: Progress, limits: Limits) -> Solution:
        """Return the solution of a task whose rows are on a cluster, by decomposition."""
        from .decomposition import Decomposition
        from .partitioned import PartitionedDecomposition

        if is_hard(problem).any():
            raise ValueError(
                f"C must be finite for a task of {problem.n_variables} variables in partitions: "
                "pass a large C, or the rows in memory."
            )
        if self.solver not in ("auto", "decomposition"):
            raise ValueError(
                f"solver={self.solver!r} needs the rows in memory: use solver='auto' for "
                f"{problem.n_variables} variables in partitions."
            )
        gram = self.engine.gram(self.kernel, problem.index, self.precision)
        exact = self._corrections(problem)
        solver = Decomposition(gram, exact, self.tol, limits, shrinking=self.shrinking, often=True)
        method = PartitionedDecomposition(solver, gram, self._sample_solved)
        solution = method.solve(problem, progress)
        return self._without_rest(problem, solution) if problem.groups else solution

    def _sample_solved(self, problem: DualProblem, tol: float, limits: Limits) -> Solution:
        """Return the solution of a sample of the rows, in memory."""
        dual = Dual.of(self.kernel, problem.X, "auto", tol, shrinking=self.shrinking)
        return dual.solve(problem, None, Progress(), limits)

    @staticmethod
    def load_solvers() -> None:
        """Import what `solve` may need: to be called before threads call that."""
        load("active_set", "decomposition", "feature_space", "interior_point", package=__package__)

    def solve_small(
        self,
        problems: Sequence[DualProblem],
        starts: Sequence[WarmStart | None],
        limits: Limits,
    ) -> list[Solution]:
        """Return the solutions of all tasks side by side; none where they are not small.

        A solution that has not converged is one to begin with.
        """
        given = [None if start is None else start.alpha for start in starts]
        solutions = solve_small(self, problems, given, limits)
        if self.kernel.shift_invariant:  # rounding of Σ sα leaves no trace in its scores
            return solutions
        return [
            self._without_rest(problem, solution) if problem.groups else solution
            for problem, solution in zip(problems, solutions, strict=bool(solutions))
        ]

    def first_steps(self, problem: DualProblem) -> int | None:
        """Return the steps of decomposition after which other methods are tried."""
        n = problem.n_variables
        if isinstance(self.kernel, Linear) and _in_feature_space(problem):
            return self.tuning.linear_steps_per_variable * n
        return self._enough(n)

    def patient_steps(self, problem: DualProblem) -> int:
        """Return the steps after which other methods are tried where a step takes little."""
        n, tuning = problem.n_variables, self.tuning
        if isinstance(self.kernel, Linear) and _in_feature_space(problem):
            return tuning.linear_steps_per_variable * n
        is_small = n <= tuning.takeover_up_to_variables
        return tuning.steps_per_variable * n if is_small else sys.maxsize

    def _answer(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        if is_hard(problem).any() and problem.has_unit_margin:
            from .hard_margin import KernelHardMargin

            exact = self._method(problem) in ("active-set", "qp")
            attempt = partial(
                self._solve if exact else self._within_bounds, problem, start, progress, limits
            )
            solution = KernelHardMargin(
                problem, attempt, self._centred_gram, self.tol, progress, limits
            ).solve()
        elif is_hard(problem).any():
            solution = self._hard_tube(problem, start, progress, limits)
        else:
            solution = self._solve(problem, start, progress, limits)
        return self._without_rest(problem, solution) if problem.groups else solution

    def _method(self, problem: DualProblem) -> str:
        """Return the name of the given solver, or of the one that suits."""
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
        small = problem.n_variables <= self.tuning.exact_up_to_variables
        return "active-set" if small and is_hard(problem).any() else "decomposition"

    def _solve(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve by the given method, else by those that suit until one succeeds."""
        far = 0.0 if self.origin is None else self.origin.distance
        attempts = Attempts(problem, partial(self._exact, problem), self.tol, limits, progress, far)
        name, n = self._method(problem), problem.n_variables
        most_variables = self.tuning.takeover_up_to_variables
        if self.solver != "auto" or name == "active-set":
            steps = self._steps(name, n, self.tuning.all_work)
            attempts.run(partial(self._named, name, problem, start), steps)
            if name == "qp" and attempts.wants_another and n <= most_variables:
                # A library's tolerances are absolute, and not those of the machine.
                self._otherwise(problem, attempts)
            return attempts.solution()
        # Callbacks that take every update see α move pair by pair.
        linear = _in_feature_space(problem) and not progress.watchers
        if not linear or n <= SMALL_SAMPLES:
            most = self.first_steps(problem) if linear else self._enough(n)
            attempts.run(partial(self._decompose, problem, start), most)
        if self.engine.is_few and attempts.wants_another:
            self._exactly(problem, attempts)
        if linear and not attempts.is_over:
            attempts.run(partial(self._linear, problem, _after(attempts, start)))
        if attempts.wants_another and n <= most_variables:
            self._otherwise(problem, attempts)
        elif attempts.wants_another and linear:  # the plane is known, and α of it nearly
            attempts.run(partial(self._decompose, problem, _after(attempts, None)))
        if attempts.status is Status.CONVERGED and self.engine.is_few:
            self._polish(problem, attempts)
        return attempts.solution()

    def _exact(self, problem: DualProblem) -> HostGram:
        """Return K of a task in float64, the one there is where that is the fast one."""
        if self.precision == "exact" and problem.n_variables <= SMALL_SAMPLES:
            return self._fast(problem)
        return self.engine.gram(self.kernel, problem.index)

    def _fast(self, problem: DualProblem) -> HostGram:
        """Return K of a task, all of it where that is small."""
        gram = self.engine.gram(self.kernel, problem.index, self.precision)
        if problem.n_variables <= SMALL_SAMPLES and gram.fits:
            gram.whole()
        return gram

    def _corrections(self, problem: DualProblem) -> HostGram | None:
        """Return float64 values for what float32 ones lack; None where they lack nothing."""
        if self.precision == "exact":
            return None
        return self.engine.gram(self.kernel, problem.index, keep=False)

    def _centred_gram(self, problem: DualProblem) -> HostGram:
        """Return K in float64 of a problem on rows of its own."""
        return engine_for(problem.X).gram(problem.kernel, problem.index)

    def _enough(self, n: int) -> int | None:
        """Return the steps of decomposition after which another method goes on, if one does."""
        tuning = self.tuning
        if n > tuning.takeover_up_to_variables:
            return None
        if n > tuning.dense_up_to_variables:
            return tuning.steps_per_variable * n
        few = self.engine.is_few
        per_variable = tuning.few_steps_per_variable if few else tuning.steps_per_variable
        return min(
            per_variable * n, self._steps("decomposition", n, tuning.decomposition_work) or 0
        )

    def _exactly(self, problem: DualProblem, attempts: Attempts) -> None:
        """Go on by the active set, which takes few samples to rounding in few steps."""
        steps, start = self.tuning.polish_steps, _after(attempts, None)
        attempts.run(partial(self._named, "active-set", problem, start), steps)
        if attempts.wants_another and attempts.is_rounded:
            attempts.run(partial(self._with_room, attempts), steps)

    def _with_room(self, attempts: Attempts, progress: Progress, limits: Limits) -> Solution:
        """Solve few samples so that no loss begins within what rounding makes of a margin."""
        from .active_set import ActiveSet

        assert attempts.point is not None
        posed = attempts.with_room()
        solver = ActiveSet(attempts.gram(), 0.0, limits, self._exact_work(posed))
        return solver.solve(posed, attempts.point.alpha, progress)

    def _otherwise(self, problem: DualProblem, attempts: Attempts) -> None:
        """Go on with other methods where decomposition takes too many steps."""
        n, tuning = problem.n_variables, self.tuning
        factorisations = self.n_tasks * tuning.interior_point_steps
        is_dense = n <= tuning.dense_up_to_variables
        if is_dense and factorisations * n**3 / 3.0 <= tuning.interior_point_work:
            attempts.run(partial(self._interior, problem, _after(attempts, None)))
        if attempts.wants_another:
            most = None if is_dense else tuning.polish_steps  # where dense its work is bounded
            attempts.run(partial(self._named, "active-set", problem, _after(attempts, None)), most)
        if not attempts.is_over and not is_dense:
            attempts.run(partial(self._decompose, problem, _after(attempts, None)))

    def _steps(self, name: str, n: int, work: float) -> int | None:
        """Return the steps of a method on up to some thousand samples that are so much work.

        SMO takes very many steps where the scales of a kernel are far apart.
        """
        tuning = self.tuning
        if n > tuning.dense_up_to_variables or name in ("qp", "active-set"):
            return None
        # A round has 20 steps per sample, and takes the interpreter some time.
        each = n + tuning.work_per_step + tuning.work_per_round / n
        return int(work / (self.n_tasks * each))

    def _polish(self, problem: DualProblem, attempts: Attempts) -> None:
        """Solve few samples to rounding by the active set: some steps from the optimum.

        The answer is then one and the same for rows in another order, and for a row given twice or
        with a weight of 2.
        """
        from .active_set import ActiveSet

        assert attempts.point is not None
        limits = Limits(self.tuning.polish_steps, attempts.seconds_left)
        solver = ActiveSet(attempts.gram(), self.tuning.polish_tol, limits)
        attempts.improve(solver.solve(problem, attempts.point.alpha, Progress()))
        if attempts.is_rounded:
            attempts.improve(self._with_room(attempts, Progress(), limits))

    def _linear(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        from .feature_space import FeatureSpace

        # The two variables of a row of a regression share it.
        rows = problem.index if problem.has_unit_margin else np.split(problem.index, 2)[0]
        on_device = container(problem.X).on_device
        engine = engine_for(on_host(problem.X)) if on_device else self.engine
        solver = FeatureSpace(engine.features(rows), self.tol, limits)
        return solver.solve(problem, start and start.alpha, progress)

    def _interior(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        from .interior_point import DualInteriorPoint

        solver = DualInteriorPoint(self._exact(problem), self.tol, limits)
        return solver.solve(problem, start and start.alpha, progress)

    def _decompose(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        from .decomposition import WORKING_SET, Decomposition

        n = problem.n_variables
        gram, exact = self._fast(problem), self._corrections(problem)
        working_set = n if n <= SMALL_SAMPLES and gram.fits else WORKING_SET
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
        """Solve by one of the methods that have a name."""
        if name == "decomposition":
            return self._decompose(problem, start, progress, limits)
        solver = self._exact_solver(name, problem, limits)
        return solver.solve(problem, start and start.alpha, progress)

    def _exact_solver(
        self, name: str, problem: DualProblem, limits: Limits
    ) -> ActiveSet | QuadraticProgram | Decomposition:
        """Return a solver in float64 alone, on the whole Gram matrix but for the active set."""
        from .active_set import ActiveSet
        from .decomposition import Decomposition
        from .qp import QuadraticProgram

        n, tuning = problem.n_variables, self.tuning
        gram = self.engine.gram(self.kernel, problem.index)
        if name == "active-set":
            work = self._exact_work(problem)
            return ActiveSet(gram, min(self.tol, tuning.polish_tol), limits, work)
        if not gram.fits:
            raise ValueError(
                f"solver={name!r} needs the whole Gram matrix, {n}² float64 values, which does not "
                "fit: use solver='decomposition', or raise cache_size."
            )
        if name == "qp":
            return QuadraticProgram(gram, min(self.tol, 1e-12), limits)
        gram.whole()
        return Decomposition(gram, None, self.tol, limits, n, often=True)

    def _exact_work(self, problem: DualProblem) -> float:
        """Return what the active set may take of few samples, whose roundings may make it cycle."""
        dense = problem.n_variables <= self.tuning.dense_up_to_variables
        return self.tuning.all_work / self.n_tasks if dense else np.inf

    def _within_bounds(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve a hard margin as a costly soft one, for a while, whose α is bounded.

        Where no α meets its bound the answer is the hard margin's. Else the active-set method goes
        on from there, and finds the plane or the proof that there is none.
        """
        solution, met = self._softened(problem, start, progress, limits)
        ended = solution.status in (Status.STOPPED, Status.TIME_LIMIT) or (
            solution.n_iter == limits.iterations
        )
        if ended or (solution.status is Status.CONVERGED and not met):
            return solution
        return self._exact_solver("active-set", problem, limits).solve(
            problem, solution.alpha, progress
        )

    def _softened(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> tuple[Solution, bool]:
        """Solve a problem with bounds in place of ∞, for a while; say whether any was met."""
        largest = max(float(problem.kernel.diagonal(problem.X)[problem.index].max()), 1e-300)
        cost = self.tuning.hard_margin_cost * (problem.target_scale or 1.0) / largest
        bound = np.minimum(problem.upper, cost)
        steps = min(100 * problem.n_variables, limits.iterations or 2**62)
        soft, for_a_while = replace(problem, upper=bound), replace(limits, iterations=steps)
        if start is not None:
            start = WarmStart(np.minimum(start.alpha, bound), None)
        solution = self._solve(soft, start, progress, for_a_while)
        assert solution.alpha is not None
        return solution, bool((solution.alpha >= bound).any())

    def _hard_tube(
        self, problem: DualProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve a regression with C = ∞, whose tube may hold no function at all.

        The answer is then that of a large C, which has not converged.
        """
        if self._method(problem) in ("active-set", "qp"):
            solution = self._solve(problem, start, progress, limits)
            if solution.status not in (Status.DIVERGED, Status.INSEPARABLE):
                return solution
        solution, met = self._softened(problem, start, progress, limits)
        if solution.status is Status.CONVERGED and not met:
            return solution
        limited = solution.n_iter == limits.iterations
        if limited or solution.status in (Status.STOPPED, Status.TIME_LIMIT):
            return solution
        return replace(solution, status=Status.PATIENCE)

    def _without_rest(self, problem: DualProblem, solution: Solution) -> Solution:
        """Return the solution with what rounding left of Σ sα − Σt removed."""
        alpha = solution.alpha
        assert alpha is not None
        rest = abs(float(problem.signs @ alpha) - sum(problem.sums))
        if rest > self.tuning.negligible_rest * float(np.abs(alpha).sum()):
            return solution
        balanced, bounds = exactly_balanced(problem, alpha), solution.score_bounds
        if bounds is not None:
            size = np.sqrt(np.abs(problem.kernel.diagonal(problem.X)[problem.index]))
            bounds = bounds + float(np.abs(balanced - alpha) @ size) * size
        return replace(solution, alpha=balanced, score_bounds=bounds)


def _after(attempts: Attempts, start: WarmStart | None) -> WarmStart | None:
    """Return the best answer so far as a start, or the start that was given."""
    point = attempts.point
    return start if point is None else WarmStart(point.alpha, point.scores, point.bounds)


def _in_feature_space(problem: DualProblem) -> bool:
    """Whether this is the linear machine, by its kernel, with more samples than features."""
    d = problem.X.shape[1]
    if not isinstance(problem.kernel, Linear) or is_hard(problem).any():
        return False
    if problem.has_unit_margin or problem.n_variables <= 2 * d:
        return problem.has_unit_margin and problem.n_variables > d
    from .feature_space import linear_machine

    return linear_machine(problem) is not None


def _moved_back(problem: DualProblem, origin: Origin, solution: Solution) -> Solution:
    """Return the solution of centred rows as that of the rows themselves."""
    if solution.alpha is None:
        return solution
    support = np.flatnonzero(solution.alpha)
    rows = problem.X[problem.index[support]]
    rows = rows.toarray() if sparse.issparse(rows) else rows
    w = combined((solution.alpha * problem.signs)[support], rows.astype(np.float64))
    b = np.array([origin.bias(w, float(solution.b[0]))])
    # Scores of the rows where they are have other roundings.
    return replace(solution, b=b, scores=None, score_bounds=None)
