"""How a hard margin (C = ∞) ends: with a plane, with a proof that there is none, or undecided.

A fit either returns a plane that separates, with the certificate of its margin, or raises
`NotSeparableError` with a verified proof. Where float64 shows neither, the certificate's primal
value is ∞, and a ConvergenceWarning says that the question is undecided, and why.

For linear machines the question is that of `maxmargin.separability`, which is decided in the space
of X, exactly. In the feature space of a kernel three proofs are rigorous: equal rows with different
labels, for any kernel; multipliers u with Σ u_i y_i φ(x_i) = 0 in exact arithmetic, for kernels
that are polynomials; nothing else. A Gaussian kernel separates all rows that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ... import validation
from ...arrays import Floats, container
from ...certificates import NotSeparableError, certify, feature_space_proof
from ...certificates.multipliers import FeatureSpaceRefutation
from ...data.normalised_samples import SignedSamples
from ...engines.base import HostGram
from ...kernels import Linear, Precomputed
from ...problems import DualProblem, PrimalProblem, SeparationProblem
from ...progress import Limits, Progress
from ...solution import Solution, Status
from ..centring import Origin
from ..middle_bias import middle_bias
from ..separability import Separability, contradiction, decide
from ..separating.duplicates import contradicting_rows
from .nearest_points import NearestPoints

# How a limit or a callback ends a fit.
ENDED_EARLY = (Status.STOPPED, Status.TIME_LIMIT, Status.ITERATION_LIMIT)


@dataclass(frozen=True)
class Tuning:
    """What hard margins are tuned by."""

    # Offset of the rows, relative to their spread, from which they are centred: for a soft machine
    # in place of the hard one, and for inner products, which have lost six digits there.
    soft_offset: float = 10.0
    kernel_offset: float = 1e3
    # Limits of the nearest points of the hulls.
    nearest_seconds: float = 5.0
    nearest_steps: int = 10_000
    # α max‖x‖² that a hard margin of a hundredth of the largest ‖x‖ does not exceed.
    soft_cost: float = 1e4


TUNING = Tuning()


@dataclass(frozen=True)
class LinearHardMargin:
    """The hard margin of a linear machine.

    Parameters
    ----------
    Z : SignedSamples
        The samples that count, with a bias or without.
    penalised : bool
        Whether ½b² is part of the objective: the bias is then the weight of a feature of value 1.
    """

    Z: SignedSamples
    penalised: bool = False

    @classmethod
    def of(cls, problem: PrimalProblem | DualProblem) -> LinearHardMargin:
        """Return the hard margin of the samples that count."""
        if isinstance(problem, DualProblem):
            step = float(bool(problem.groups))
            return cls(SignedSamples(problem.X, problem.signs, index=problem.index, bias_step=step))
        X, y, penalised = problem.X, problem.y, problem.bias == "penalised"
        counts = np.flatnonzero(np.broadcast_to(problem.upper > 0, y.shape))
        if not container(X).random_access:
            X, y, counts = X[counts], y[counts], np.arange(counts.size)
        step = float(problem.bias != "none")
        return cls(SignedSamples(X, y[counts], index=counts, bias_step=step), penalised)

    def verdict(self) -> Separability:
        """Return whether any plane separates, in exact arithmetic.

        Where none does with a bias, that is the stronger proof.
        """
        Z = self.Z
        if not Z.bias_step:
            with_bias = decide(SignedSamples(Z.X, Z.labels, index=Z.index), tol=0.0)
            if with_bias.separable is False:
                return with_bias
        return decide(Z, tol=0.0)

    def solve(self, report: Separability, progress: Progress, limits: Limits) -> Solution:
        """Return the plane of maximum margin, or that of the report where it does not separate."""
        seconds = TUNING.nearest_seconds if limits.seconds is None else limits.seconds
        solver = NearestPoints(max_iter=limits.iterations or TUNING.nearest_steps, seconds=seconds)
        solution = solver.solve(SeparationProblem(self._features()), progress)
        if self.penalised:
            w, b = solution.w[:, :-1], solution.w[:, -1]
            solution = replace(solution, w=w, b=b)
        if certify(SeparationProblem(self.Z), solution).separates:
            return solution
        plane, margin = report.hyperplane, report.certificate.margin
        assert plane is not None
        w, b = plane.w[np.newaxis] / margin, np.array([plane.b / margin])
        return replace(solution, w=w, b=b, status=Status.PATIENCE)

    def _features(self) -> SignedSamples:
        """Return the samples whose plane of least ‖w‖ is sought."""
        Z = self.Z
        if not self.penalised:
            return Z
        X, ones = Z.X[Z.index], np.ones((Z.index.size, 1))
        if sparse.issparse(X):
            X = sparse.hstack([X.astype(np.float64), ones]).tocsr()
        else:
            X = np.hstack([X.astype(np.float64), ones])
        return SignedSamples(X, Z.labels, bias_step=0.0)


def softened(problem: PrimalProblem, hard: LinearHardMargin | None) -> tuple[PrimalProblem, Floats]:
    """Return the machine of a large finite cost, and what its rows were moved by, 0 mostly.

    The cost is so large that α stays below it where the margin is a hundredth of the rows' spread.
    Rows far from the origin are centred, where a free bias allows it.
    """
    X, centre = problem.X, np.zeros(problem.X.shape[1])
    if hard is None or problem.bias != "free":
        square = validation.largest_square(X)
    else:
        origin, square = Origin.middle(hard.Z)
        if origin.distance > TUNING.soft_offset * np.sqrt(square):
            X, centre = origin.rows(X), origin.centre
    bound = TUNING.soft_cost / max(square, np.finfo(float).tiny)
    upper = np.full(1, bound)
    if problem.upper.size > 1:
        upper = np.where(np.isinf(problem.upper), bound, 0.0)
    return replace(problem, X=X, upper=upper), centre


def refuse(report: Separability) -> None:
    """Raise the error that carries the proof, where no plane separates."""
    if report.separable is False:
        raise NotSeparableError(
            f"C=inf asks for a hard margin, but no plane separates these classes: {report}. "
            "Use a finite C.",
            report,
        )


def refuse_contradiction(hard: LinearHardMargin) -> None:
    """Raise the error that carries the proof, where equal rows have different labels."""
    report = contradiction(hard.Z, tol=0.0)
    if report is not None:
        refuse(report)


@dataclass(frozen=True)
class KernelHardMargin:
    """The hard margin of a kernel machine.

    Parameters
    ----------
    problem : DualProblem
        A classifier of margin 1, of which some α have no bound.
    attempt : callable
        Solves the problem by the solver of the fit.
    gram_of : callable
        Returns K in float64 for the problem on centred rows.
    tol : float
        What the certificate must hold to.
    progress : Progress
    limits : Limits
        For the nearest points of linear machines.
    """

    problem: DualProblem
    attempt: Callable[[], Solution]
    gram_of: Callable[[DualProblem], HostGram]
    tol: float
    progress: Progress
    limits: Limits

    def solve(self) -> Solution:
        """Return the plane of maximum margin, or raise the proof that there is none."""
        problem = self.problem
        _refuse_contradiction(problem)
        if isinstance(problem.kernel, Linear):
            return self._linear()
        solution = self.attempt()
        if solution.status in (*ENDED_EARLY, Status.CONVERGED):
            return solution
        u = solution.multipliers
        proof = None if u is None else feature_space_proof(problem, u)
        if proof is not None:
            raise _not_separable(problem, proof)
        return replace(solution, status=Status.PATIENCE, multipliers=None)

    def _linear(self) -> Solution:
        hard = LinearHardMargin.of(self.problem)
        origin, square = Origin.middle(hard.Z)
        near = origin.distance <= TUNING.kernel_offset * np.sqrt(square)
        moved = self.problem if near else _moved(self.problem, origin)
        solution = self.attempt() if near else self._exactly(moved)
        if solution.status in ENDED_EARLY:
            return solution
        if solution.status is Status.CONVERGED and certify(moved, solution).holds(self.tol):
            return solution if near else _with_bias_of(hard.Z, origin, solution)
        report = hard.verdict()
        if report.multipliers is not None:
            raise _not_separable(self.problem, report.multipliers)
        if report.separable is None:
            return replace(solution, status=Status.PATIENCE, multipliers=None)
        found = hard.solve(report, self.progress, self.limits)
        return replace(found, w=np.empty((0, 0)))

    def _exactly(self, moved: DualProblem) -> Solution:
        """Solve the problem on centred rows, by the active-set method."""
        from .active_set import ActiveSet

        solver = ActiveSet(self.gram_of(moved), limits=self.limits)
        return solver.solve(moved, None, self.progress)


def _moved(problem: DualProblem, origin: Origin) -> DualProblem:
    """Return the problem of rows about another origin: yᵀα = 0 makes its α the same."""
    rows = origin.rows(problem.X[problem.index])
    return replace(problem, X=rows, index=np.arange(len(rows)))


def _with_bias_of(Z: SignedSamples, origin: Origin, solution: Solution) -> Solution:
    """Return the solution with the bias of the rows where they are."""
    assert solution.alpha is not None
    support = np.flatnonzero(solution.alpha)
    rows = Z.augmented(support)[:, :-1] - origin.centre
    w = (solution.alpha * Z.labels)[support] @ rows
    return replace(solution, b=middle_bias(Z, np.append(w, 0.0))[-1:])


def _refuse_contradiction(problem: DualProblem) -> None:
    """Raise the proof that two equal rows with different labels are, whatever the kernel."""
    X, index = problem.X, problem.index
    if isinstance(problem.kernel, Precomputed):
        # Equal rows of K: every plane has the same scores there.
        X, index = X[np.ix_(index, index)], np.arange(index.size)
    pair = contradicting_rows(X, problem.signs, index)
    if pair is not None:
        u = np.zeros(problem.n_variables)
        u[list(pair)] = 0.5
        raise _not_separable(problem, u)


def _not_separable(problem: DualProblem, u: Floats) -> NotSeparableError:
    proof = FeatureSpaceRefutation.of(problem, u)
    return NotSeparableError(
        f"C=inf asks for a hard margin, but no plane separates these classes: {proof}. "
        "Use a finite C, or another kernel.",
        proof,
    )
