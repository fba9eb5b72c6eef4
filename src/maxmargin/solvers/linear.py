"""How the linear machines of a fit are solved: soft or hard margins, two classes or several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from ..arrays import Floats, Matrix, Partitioned, container, with_constant
from ..certificates import NotSeparableError, certify
from ..data.partitioned_samples import PartitionedSamples
from ..engines.registry import engine_class, engine_for
from ..problems import JointProblem, L1Problem, PrimalProblem
from ..progress import Limits, Progress
from ..runtime.loading import load
from ..solution import Solution, Status
from .best_seen import BestSeen
from .centring import Origin
from .dual.hard_margin import LinearHardMargin, refuse, refuse_contradiction, softened

if TYPE_CHECKING:
    from ..engines.l1 import L1Features
    from .generated_rows import HeldRows
    from .primal.choice import Choice
    from .primal.l1_newton import Form

LinearProblem = PrimalProblem | JointProblem
# α of a joint machine, or the plane of another (`solvers.primal.ledger.Plane`).
Start = Any
Solver = Literal["auto", "interior-point", "newton", "coordinate-descent"]


@dataclass(frozen=True)
class Tuning:
    """Tolerances and sizes."""

    # The gap that a solver aims at, in units of tol: the certificate adds up in another order.
    aim: float = 0.99
    # The gap that a hard margin is solved to: α of samples off the margin are then 0.
    hard_gap: float = 1e-6
    # Numbers of X up to which a centred copy is made.
    centred_numbers: int = 1 << 22
    # Of rows in partitions: the gap that the rows held are solved to, in units of tol, and how far
    # margins of others may be below theirs.
    held_share: float = 0.5
    margin_share: float = 0.2
    # Numbers of X on a device from which on it solves tasks there: launches take longer for fewer.
    device_numbers: int = 1 << 18
    # Numbers of X in partitions up to which they come to this process: a few rounds take longer.
    gathered_numbers: int = 1 << 20


TUNING = Tuning()


@dataclass(frozen=True)
class Primal:
    """How the tasks of a fit are solved: by a given solver, or by the one that suits."""

    solver: Solver
    tol: float
    seed: int
    tuning: Tuning = TUNING

    @classmethod
    def of(cls, X: Matrix, solver: Solver, tol: float, seed: int) -> Primal:
        """Prepare the machines of a fit to X; modules are imported before tasks run in threads."""
        engine_class(X)
        load(
            "joint", "primal.choice", "primal.dense_newton", "primal.l1_newton", "targets",
            ".certificates.plane_sums",
            package=__package__,
        )  # fmt: skip
        return cls(solver, tol, seed)

    def solve(
        self, problem: LinearProblem, start: Start | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Return the solution of a task, or raise the proof that a hard margin has none.

        What no solver of a device does is solved on the host.
        """
        X = problem.X
        few = isinstance(X, Partitioned) and X.stored() <= self.tuning.gathered_numbers
        if few and isinstance(problem, PrimalProblem):
            solution = self.solve(problem.gathered(), start, progress, limits)
            return replace(solution, alpha=X.split(np.asarray(solution.alpha)))
        if not self._runs_on_device(problem):
            problem = problem.on_host()
        if isinstance(problem, PrimalProblem) and problem.two_sided:
            from .targets import solve_in_units

            return solve_in_units(partial(self._solve, limits=limits), problem, start, progress)
        return self._solve(problem, start, progress, limits)

    def _runs_on_device(self, problem: LinearProblem) -> bool:
        """Whether a task is one of Newton's method: one plane, a soft margin, and not small."""
        by_newton = self.solver in ("auto", "newton")
        if not by_newton or type(problem) is not PrimalProblem or problem.hard:
            return False
        held = container(problem.X)
        return not held.random_access or held.stored() >= TUNING.device_numbers

    def _solve(
        self, problem: LinearProblem, start: Start | None, progress: Progress, limits: Limits
    ) -> Solution:
        if _has_scaled_bias(problem):
            return self._with_bias_feature(problem, start, progress, limits)
        if isinstance(problem, PrimalProblem) and problem.hard:
            return self._hard(problem, start, progress, limits)
        origin = _far_origin(problem, self.tuning.centred_numbers)
        if origin is None:
            return self._soft(problem, start, progress, limits)
        back = partial(_moved_back, origin)
        moved = replace(problem, X=origin.moved(problem.X))
        if isinstance(problem, PrimalProblem) and start is not None:
            start = replace(start, b=start.b + float(start.w @ origin.centre))
        return back(self._soft(moved, start, BestSeen(progress, back), limits))

    def _soft(
        self, problem: LinearProblem, start: Start | None, progress: Progress, limits: Limits
    ) -> Solution:
        from .joint import CrammerSinger

        tol = self.tuning.aim * self.tol
        if isinstance(problem, L1Problem):
            return self._sparse(problem, start, progress, limits, tol)
        if isinstance(problem, PrimalProblem):
            solution = self._small(problem, start, progress, limits, tol)
            solution = solution or self._choice(problem, limits, tol).solve(
                problem, start, progress
            )
            if solution.status is not Status.PATIENCE or problem.on_host() is problem:
                return solution
            # Where rounding ends Newton's steps, the host has another method.
            other = self._choice(problem.on_host(), limits, tol).solve(
                problem.on_host(), None, progress
            )
            n_iter = solution.n_iter + other.n_iter
            best = other if other.status is Status.CONVERGED else solution
            return replace(best, n_iter=n_iter, trace=other.trace)
        features = engine_for(problem.X).features()
        solver = CrammerSinger(features, tol, limits, self.seed)
        return solver.solve(problem, start, progress)

    def _sparse(
        self, problem: L1Problem, start: Start | None, progress: Progress, limits: Limits,
        tol: float,
    ) -> Solution:  # fmt: skip
        """Return a plane of few features."""
        from .primal.l1_newton import L1Newton

        features = cast("L1Features", engine_for(problem.X).features())
        forms: dict[str, Form] = {"newton": "matrix", "coordinate-descent": "columns"}
        form = forms.get(self.solver, "auto")
        return L1Newton(features, tol, limits, form).solve(problem, start, progress)

    def _with_bias_feature(
        self, problem: LinearProblem, start: Start | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve it with one more feature, of which every sample has the value of the bias."""
        s = problem.intercept_scaling
        moved = replace(problem, X=with_constant(problem.X, s), bias="none", intercept_scaling=1.0)
        if isinstance(problem, PrimalProblem) and start is not None:
            start = replace(start, w=np.append(start.w, start.b / s), b=0.0)
        back = partial(_without_bias_feature, s)
        return back(self._solve(moved, start, BestSeen(progress, back), limits))

    def _small(
        self, problem: PrimalProblem, start: Start | None, progress: Progress, limits: Limits,
        tol: float,
    ) -> Solution | None:  # fmt: skip
        """Return the solution of a small problem, None of others and where rounding prevents it."""
        from .primal.dense_newton import DenseNewton

        newton = DenseNewton(tol, limits)
        if self.solver not in ("auto", "newton") or not newton.suits(problem):
            return None
        return newton.solve(problem, start, progress)

    def _choice(self, problem: PrimalProblem, limits: Limits, tol: float) -> Choice:
        """Return the given solver, or the one that suits."""
        from .primal.choice import Choice

        return Choice(engine_for(problem.X).features(), self.solver, tol, limits, self.seed)

    def _hard(
        self, problem: PrimalProblem, start: Start | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve the hard margin as a soft one that is costly enough for no α to meet its bound.

        Where that ends with no proof of optimality, the question is first whether any plane
        separates; if one does, the nearest points of the hulls give the widest.
        """
        if isinstance(problem.X, Partitioned):
            return self._hard_in_partitions(problem, progress, limits)
        hard = LinearHardMargin.of(problem) if container(problem.X).random_access else None
        if hard is not None:
            refuse_contradiction(hard)
        solution = self._costly(problem, hard, start, progress, limits)
        if solution.status in (Status.STOPPED, Status.TIME_LIMIT):
            return solution
        if certify(problem, solution).holds(self.tol):
            return solution
        hard = hard or LinearHardMargin.of(problem)
        report = hard.verdict()
        refuse(report)
        if report.separable is None:
            return replace(solution, status=Status.PATIENCE)
        widest = hard.solve(report, progress, limits)
        alpha = np.zeros(len(problem.y))
        alpha[np.broadcast_to(problem.upper > 0, alpha.shape)] = widest.alpha
        return replace(widest, alpha=alpha)

    def _hard_in_partitions(
        self, problem: PrimalProblem, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve the hard margin of some rows, add those that the plane violates, and repeat."""
        from .generated_rows import HeldRows

        labels: Any = problem.y
        signs = labels.combined(_of_rows_that_count, labels, problem.upper)
        Z = PartitionedSamples(problem.X, signs, bias_step=float(problem.bias != "none"))
        held, inner = HeldRows.first(Z), replace(self, tol=self.tuning.held_share * self.tol)
        while True:
            solution, holds = inner._hard_of_held(problem, held, limits.after(progress.seconds))
            a = Z.pack(solution.w, solution.b)
            least = float(held.samples.dot(a).min())
            worst = held.ask(a, (1.0 - self.tuning.margin_share * self.tol) * least)
            assert solution.alpha is not None
            solution = replace(solution, alpha=Z.spread(held.some.places, solution.alpha))
            violation = 1.0 - worst.smallest / least if least > 0.0 else 1.0
            value, show = 0.5 * float(np.sum(solution.w**2)), partial(replace, solution)
            stop = progress.iteration(value, worst.n_wrong, max(0.0, violation), show)
            status = Status.STOPPED if stop else limits.reached(0, progress)
            if not holds or status is not None or not held.add(worst.rows):
                trace = progress.trace()
                return replace(
                    solution, status=status or solution.status, trace=trace, n_iter=len(trace)
                )

    def _hard_of_held(
        self, problem: PrimalProblem, held: HeldRows, limits: Limits
    ) -> tuple[Solution, bool]:
        """Return the hard margin of the rows held, and whether its certificate holds."""
        from .generated_rows import refuted_by

        every, none = np.full(1, np.inf), np.zeros(1)
        posed = replace(problem, X=held.some.X, y=held.some.labels, upper=every, ridge=none)
        proof: Any = None
        try:
            solution = self._hard(posed, None, Progress(), limits)
        except NotSeparableError as error:
            proof = error.proof
        if proof is not None:
            refuse(refuted_by(held, proof, tol=0.0) or proof)
        return solution, bool(certify(posed, solution).holds(self.tol))

    def _costly(
        self, problem: PrimalProblem, hard: LinearHardMargin | None, start: Start | None,
        progress: Progress, limits: Limits,
    ) -> Solution:  # fmt: skip
        """Solve the machine of a large finite cost, by the solver of the fit."""
        soft, centre = softened(problem, hard)
        gap = min(self.tuning.aim * self.tol, self.tuning.hard_gap)
        solver = self._choice(soft, limits, gap).solver(soft)
        solution: Solution = solver.solve(soft, None if centre.any() else start, progress)
        return replace(solution, b=solution.b - solution.w @ centre)


def _of_rows_that_count(labels: Floats, upper: Floats) -> Floats:
    """Return the labels of rows that count, and 0 of others."""
    return np.where(upper > 0.0, labels, 0.0)


def _has_scaled_bias(problem: LinearProblem) -> bool:
    """Whether a bias is penalised as the weight of a feature that is not 1.

    Machines of few features have no need of that feature.
    """
    scaled = problem.bias == "penalised" and problem.intercept_scaling != 1.0
    return scaled and not isinstance(problem, L1Problem)


def _without_bias_feature(s: float, solution: Solution) -> Solution:
    """Return planes with a last feature of value s as planes with a bias."""
    return replace(solution, w=solution.w[:, :-1], b=s * solution.w[:, -1])


def _far_origin(problem: LinearProblem, most: int) -> Origin | None:
    """Return the origin about which the rows are to be taken, if they lie far from 0.

    None where the bias cannot take the shift up, and where a centred copy of X would have more than
    ``most`` numbers.
    """
    X, held = problem.X, container(problem.X)
    if held.sparse or not held.random_access or problem.bias != "free" or held.stored() > most:
        return None
    return Origin.far_columns(X)


def _moved_back(origin: Origin, solution: Solution) -> Solution:
    """Return the planes found about the origin as those of the rows themselves."""
    planes = zip(solution.w, solution.b, strict=True)
    return replace(solution, b=np.array([origin.bias(w, float(b)) for w, b in planes]))
