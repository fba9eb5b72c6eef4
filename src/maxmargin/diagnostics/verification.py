"""The certificates of a fitted model beside those that its data give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..arrays import MatrixLike
from ..certificates import LeastSquaresCertificate, MarginCertificate, certify, certify_tasks
from ..certificates.primal import PlaneCertificate
from ..estimators.recovery import OtherDataError, Recovered, recover
from ..problems import DualProblem
from ..solution import Solution
from .fitted_model import FittedModel, ModelLike

__all__ = ["Compared", "OtherDataError", "TaskVerification", "Verification", "verify"]


@dataclass(frozen=True)
class Tuning:
    """When a finding agrees with a claim, and what is recomputed without being asked to."""

    # The difference of two values of the objective, or of distances, relative to their size.
    same_value: float = 1e-6
    # Upper bounds (gap, violation) may be exceeded by this share, and by this share of tol.
    bound_share: float = 0.01
    # Kernel values up to which every score is recomputed, some seconds, and rows checked beyond.
    thorough_values: int = 1 << 32
    checked_rows: int = 4096
    # Support vectors in a file and rows of the data are equal up to this share of their size.
    same_row: float = 1e-6


TUNING = Tuning()


@dataclass(frozen=True)
class Compared:
    """A number or a statement as it is claimed and as it was found."""

    name: str
    claimed: float | bool | int
    found: float | bool | int
    agrees: bool


@dataclass(frozen=True)
class TaskVerification:
    """The certificate of one task as the model has it, and as the data give it.

    Parameters
    ----------
    name : str
        What the task separates.
    claim, finding : Certificate
    compared : list of Compared
    """

    name: str
    claim: Any
    finding: Any
    compared: list[Compared]

    @property
    def agrees(self) -> bool:
        """Whether nothing differs by more than rounding."""
        return all(each.agrees for each in self.compared)


@dataclass(frozen=True)
class Verification:
    """What `verify` found.

    Parameters
    ----------
    tasks : list of TaskVerification
        Claim and finding of every task.
    holds : bool
        Whether all findings hold to the tolerance of the model.
    has_its_rows : bool or None
        Whether the support vectors are the rows of the data that they were, in their places; None
        for a model that keeps none.
    solved_again : bool
        Whether the model has no α, so that the dual value is that of one found anew.
    is_sample : bool
        Whether some scores were checked on a sample of the rows only.

    Attributes
    ----------
    agrees : bool
        Whether every claim was found to be so.
    verdict : str
        The outcome in a sentence.

    See Also
    --------
    verify : Recompute the certificates of a model.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> print(mm.verify(mm.SVC(kernel="linear").fit(X, y), X, y))
    verified: what the model claims was found again, on all rows
    """

    tasks: list[TaskVerification]
    holds: bool
    has_its_rows: bool | None = None
    solved_again: bool = False
    is_sample: bool = False

    @property
    def agrees(self) -> bool:
        """Whether every claim was found to be so."""
        return self.has_its_rows is not False and all(task.agrees for task in self.tasks)

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        if self.agrees:
            rows = "on a sample of the rows" if self.is_sample else "on all rows"
            return f"verified: what the model claims was found again, {rows}"
        if self.has_its_rows is False:
            return (
                "not verified: the support vectors of the model are not the rows of the data that "
                "they were, by values or by the order of rows"
            )
        wrong = [task.name for task in self.tasks if not task.agrees]
        return (
            f"not verified: claims and findings differ in {len(wrong)} of {len(self.tasks)} tasks"
        )

    def __str__(self) -> str:
        return self.verdict


def verify(
    model: ModelLike,
    X: MatrixLike,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    full: bool = False,
) -> Verification:
    """Recompute every certificate of a fitted model from its training data, in float64.

    Problems are posed anew from the data and the parameters, α, b and planes are those of the
    model, and `certify` judges them: nothing else of the fit is used.

    Parameters
    ----------
    model : estimator, Pipeline or search
        A fitted model with certificates, loaded from a file perhaps.
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows of the fit, in their order.
    y : array-like of shape (n_samples,), optional
        Their labels or targets.
    sample_weight : array-like of shape (n_samples,), optional
        The weights of the fit.
    full : bool, default=False
        Recompute all scores of a kernel machine, however long it takes. By default those of large
        machines are recomputed for all support vectors and a random sample of the other rows.

    Returns
    -------
    Verification
        Claims and findings of every task; ``agrees`` says whether they are the same.

    Raises
    ------
    OtherDataError
        Where the data cannot be those of the fit: other classes, or another number of rows.
    TypeError
        For a model without certificates.

    See Also
    --------
    maxmargin.certify : Certify a solution of a problem.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(kernel="linear").fit(X, y)
    >>> mm.verify(model, X, y).agrees
    True
    >>> model.intercept_ = model.intercept_ + 0.1
    >>> mm.verify(model, X, y).agrees
    False
    """
    fitted = FittedModel(model)
    estimator = fitted.classifier
    if not getattr(estimator, "certificates_", None):
        raise TypeError(
            f"the model must have certificates to verify, got {fitted.name} of another program: "
            "fit it here."
        )
    found = recover(estimator, fitted.transform(X), y, sample_weight)
    claims = estimator.certificates_
    if len(claims) != len(found.tasks):
        raise OtherDataError(f"{len(found.tasks)} tasks, but the model has {len(claims)} proofs.")
    findings = _findings(found, full)
    tol = float(getattr(estimator, "tol", 1e-6))
    tasks = [
        TaskVerification(task.name, claim, finding, _compared(claim, finding, tol, found))
        for task, claim, finding in zip(found.tasks, claims, findings, strict=True)
    ]
    return Verification(
        tasks,
        all(bool(finding.holds(tol)) for finding in findings),
        _has_its_rows(estimator, found),
        found.solved_again,
        any(getattr(finding, "coverage", "") == "sampled" for finding in findings),
    )


# Findings ----------------------------------------------------------------------------------------


def _findings(found: Recovered, full: bool) -> list[Any]:
    """Return the certificates that the data give, all of them in float64."""
    problems, solutions = found.problems, found.solutions
    if not all(isinstance(problem, DualProblem) for problem in problems):
        return [certify(*each) for each in zip(problems, solutions, strict=True)]
    pairs = list(zip(problems, solutions, strict=True))
    work = sum(p.n_variables * _n_support(s) for p, s in pairs)
    if full or work <= TUNING.thorough_values:
        return list(certify_tasks(problems, solutions))
    return [_of_sample(problem, solution) for problem, solution in pairs]


def _n_support(solution: Solution) -> int:
    assert solution.alpha is not None
    return int(np.count_nonzero(solution.alpha))


def _of_sample(problem: DualProblem, solution: Solution) -> MarginCertificate:
    """Return a certificate of the rows with α > 0 and of a random sample of the others.

    The problem without the rest has the same P, D and KKT conditions, where those of the rest hold.
    """
    assert solution.alpha is not None
    n, chosen = problem.n_variables, solution.alpha != 0.0
    if n - np.count_nonzero(chosen) <= TUNING.checked_rows:
        return certify(problem, solution)  # type: ignore[no-any-return]
    chosen[np.random.RandomState(0).permutation(n)[: TUNING.checked_rows]] = True
    for side in (problem.signs > 0, problem.signs < 0):  # the range of targets is the unit
        places = np.flatnonzero(side)
        if places.size:
            chosen[places[[problem.p[side].argmin(), problem.p[side].argmax()]]] = True
    rows = np.flatnonzero(chosen)
    some = replace(solution, alpha=solution.alpha[rows], scores=None, score_bounds=None)
    finding: MarginCertificate = certify(problem.restrict(rows), some)
    return replace(finding, coverage="sampled", n_checked=rows.size, n_samples=n)


def _has_its_rows(model: ModelLike, found: Recovered) -> bool | None:
    """Return whether the support vectors of a model are the rows of the data that they were."""
    vectors = getattr(model, "support_vectors_", None)
    if vectors is None or 0 in vectors.shape:
        return None
    rows = found.training.X[model.support_]
    if sparse.issparse(rows) != sparse.issparse(vectors):
        rows, vectors = sparse.csr_matrix(rows), sparse.csr_matrix(vectors)
    return bool(abs(rows - vectors).max() <= TUNING.same_row * abs(vectors).max())


# Comparison --------------------------------------------------------------------------------------


def _compared(claim: Any, finding: Any, tol: float, found: Recovered) -> list[Compared]:
    """Return what two certificates say, side by side."""
    if type(claim) is not type(finding):
        return [Compared("kind of certificate", False, True, agrees=False)]
    of_samples = _exact("samples", claim.n_samples, finding.n_samples)
    if isinstance(claim, MarginCertificate):
        return [of_samples, *_of_margins(claim, finding, tol, found.solved_again)]
    return [of_samples, *_of_separation(claim, finding, tol)]


def _of_margins(
    claim: MarginCertificate, finding: MarginCertificate, tol: float, solved_again: bool
) -> list[Compared]:
    """Return gap, objective and KKT conditions of two certificates."""
    of_plane = isinstance(claim, PlaneCertificate)
    # Values of scores that were not recomputed are as exact as the solver's.
    slack = 0.0 if claim.coverage == "complete" else abs(claim.relative_gap)
    again = max(tol, abs(claim.relative_gap)) if solved_again else 0.0
    size = _size(finding.primal, finding.dual)
    compared = [
        _value("primal objective", claim.primal, finding.primal, size, slack),
        _value("dual objective", claim.dual, finding.dual, size, slack + again),
        _bound("relative gap", claim.relative_gap, finding.relative_gap, tol, again),
    ]
    if not solved_again:
        claimed, seen = (each.violation + each.rounding for each in (claim, finding))
        # That of a plane says nothing of its optimum, and near kinks it may be anything.
        compared.append(_bound("worst KKT violation", claimed, seen, np.inf if of_plane else tol))
        claimed, seen = (max(each.balance, each.box) for each in (claim, finding))
        compared.append(_bound("infeasibility of α", claimed, seen, tol))
    promised, kept = claim.holds(tol), finding.holds(tol)
    if finding.coverage != "sampled":
        agrees = kept or not promised
        compared.append(Compared(f"optimal to tol={tol:g}", promised, kept, agrees))
    return compared


def _of_separation(claim: Any, finding: Any, tol: float) -> list[Compared]:
    """Return errors, distances and verdicts of two certificates."""
    compared = [
        _exact("errors", claim.n_errors, finding.n_errors),
        _value(
            "smallest distance", claim.geometric_margin, finding.geometric_margin,
            _size(finding.radius, finding.geometric_margin),
        ),
        _exact("separates", claim.separates, finding.separates),
        _exact("proved inseparable", claim.refutes, finding.refutes),
    ]  # fmt: skip
    if isinstance(claim, LeastSquaresCertificate):
        size = _size(finding.residual)
        compared.append(_value("sum of squares", claim.residual, finding.residual, size))
        compared.append(_bound("relative gradient", claim.stationarity, finding.stationarity, tol))
    return compared


def _exact(name: str, claimed: Any, found: Any) -> Compared:
    return Compared(name, claimed, found, agrees=bool(claimed == found))


def _size(*found: float) -> float:
    """Return the largest finite size of what was found; what is claimed may be anything."""
    return max((abs(value) for value in found if np.isfinite(value)), default=0.0)


def _value(name: str, claimed: float, found: float, size: float, slack: float = 0.0) -> Compared:
    """Compare values that are equal up to rounding, relative to a size."""
    if not (np.isfinite(claimed) and np.isfinite(found)):
        return _exact(name, claimed, found)
    near = abs(claimed - found) <= (TUNING.same_value + slack) * size
    return Compared(name, claimed, found, agrees=bool(near))


def _bound(name: str, claimed: float, found: float, tol: float, slack: float = 0.0) -> Compared:
    """Compare upper bounds: what was found may be less than what is claimed."""
    share = TUNING.bound_share
    most = (1.0 + share) * abs(claimed) + share * tol + slack
    return Compared(name, claimed, found, agrees=bool(found <= most))
