"""Exact leave-one-out predictions of kernel machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_squared_error, r2_score

from ..arrays import Floats, Integers, Labels, MatrixLike
from ..caller import warn_caller
from ..certificates import MarginCertificate
from ..certificates.dual import certify_tasks
from ..engines.registry import host_array, received
from ..estimators.fitting import adopt
from ..estimators.formulation import checked_kernel
from ..estimators.svc import SVC
from ..estimators.svr import SVR, centre_of
from ..estimators.training import Training
from ..multiclass import Task
from ..problems import DualProblem
from ..progress import Limits, Progress
from ..runtime.threads import single_threaded_blas
from ..solution import Solution
from ..solvers.dual.choice import Dual
from ..solvers.dual.feasibility import Constraints
from ..solvers.dual.optimality import Optimality, kkt_interval

# Violation of a KKT condition up to which a machine counts as exact.
EXACT = 1e-6
# Machines that are certified together.
CERTIFIED_TOGETHER = 128


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What a machine fitted without a sample says about it, for all samples.

    Parameters
    ----------
    predictions : ndarray of shape (n_samples,)
        Label or target that is predicted for each sample by the machine fitted to the others.
    decision_values : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        Its score, as ``decision_function`` returns it; of a regression the prediction.
    score : float
        Accuracy, or R² of a regression, over the samples of positive weight.
    error : float
        The fraction of misclassified samples, or the mean squared error of a regression.
    n_refits : int
        Machines that were solved anew: one per support vector of every binary task.
    certificate : MarginCertificate
        The worst certificate of all machines.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> print(mm.model_selection.leave_one_out(mm.SVC(kernel="linear"), X, y))
    leave one out: score 1, error 0, by 3 refits; worst proof: optimal to a relative gap of ...
    """

    predictions: Labels
    decision_values: Floats
    score: float
    error: float
    n_refits: int
    certificate: MarginCertificate = field(repr=False)

    def __str__(self) -> str:
        return (
            f"leave one out: score {self.score:.4g}, error {self.error:.4g}, by {self.n_refits} "
            f"refits; worst proof: {self.certificate}"
        )


@dataclass(eq=False)
class TaskWithout:
    """The machine of one task, and those without one of its samples.

    Parameters
    ----------
    problem : DualProblem
        Of all samples of the task; a regression has two variables per sample.
    dual : Dual
        How it is solved, on kernel values that all machines share.
    """

    problem: DualProblem
    dual: Dual
    whole: Solution = field(init=False)
    certificates: list[MarginCertificate] = field(default_factory=list)

    def __post_init__(self) -> None:
        gram = self.dual.engine.gram(self.dual.kernel, self.problem.index)
        if gram.fits:
            gram.whole()
        self.gram = gram
        self.whole = self.dual.solve_exactly(self.problem, None, Limits())
        back = self.dual.moved_back(self.problem, self.whole)
        self.certificates += certify_tasks([self.problem], [back])

    @property
    def n_rows(self) -> int:
        """Samples of the task."""
        return int(np.unique(self.problem.index).size)

    def variables(self, row: int) -> Integers:
        """Return the variables of a sample."""
        return np.arange(row, self.problem.n_variables, self.n_rows)

    def without(self, row: int) -> DualProblem:
        """Return the problem without a sample: its α cannot be other than 0."""
        upper = self.problem.upper.copy()
        upper[self.variables(row)] = 0.0
        return replace(self.problem, upper=upper)

    def supports(self) -> Integers:
        """Return the samples with α > 0: the others leave the machine as it is."""
        assert self.whole.alpha is not None
        return np.unique(np.flatnonzero(self.whole.alpha) % self.n_rows)

    def scores(self) -> Floats:
        """Return the score of every sample by the machine without it."""
        alpha = self.whole.alpha
        assert alpha is not None
        rows = np.arange(self.n_rows)
        signed = alpha * self.problem.signs
        support = np.flatnonzero(alpha)
        found = self.gram.product(rows, support, signed[support]) + float(self.whole.b[0])
        for row, b in self._other_biases(alpha, found):
            found[row] += b - float(self.whole.b[0])
        pending: list[tuple[DualProblem, Solution]] = []
        for row in self.supports().tolist():
            problem, solution = self._refit(row)
            found[row] = self._score(row, solution)
            pending.append((problem, solution))
            if len(pending) == CERTIFIED_TOGETHER:
                self._certify(pending)
        self._certify(pending)
        return found

    def _refit(self, row: int) -> tuple[DualProblem, Solution]:
        """Return the problem without a sample and its solution, from the α of all samples."""
        assert self.whole.alpha is not None
        problem, alpha = self.without(row), self.whole.alpha.copy()
        alpha[self.variables(row)] = 0.0
        return problem, self.dual.solve_exactly(problem, alpha, Limits())

    def _score(self, row: int, solution: Solution) -> float:
        assert solution.alpha is not None
        support = np.flatnonzero(solution.alpha)
        signed = (solution.alpha * self.problem.signs)[support]
        return float(self.gram.product(np.array([row]), support, signed)[0] + solution.b[0])

    def _other_biases(self, alpha: Floats, scores: Floats) -> Iterator[tuple[int, float]]:
        """Yield samples with α = 0 without which b is another one.

        Where no α is free, b is the middle of an interval, whose ends are due to two samples.
        """
        constraints = Constraints.of(self.problem)
        if not len(constraints.A) or constraints.inside(alpha).any():
            return
        plain = np.resize(scores - float(self.whole.b[0]), alpha.size)
        gradient = self.problem.signs * plain + self.problem.ridge * alpha + self.problem.p
        for end in kkt_interval(constraints, constraints.A[0], alpha, gradient)[:2]:
            row = end % self.n_rows
            if not alpha[self.variables(row)].any():
                yield row, Optimality.of(self.without(row), alpha, plain).b

    def _certify(self, pending: list[tuple[DualProblem, Solution]]) -> None:
        if pending:
            problems = [problem for problem, _ in pending]
            solutions = [self.dual.moved_back(*each) for each in pending]
            self.certificates += certify_tasks(problems, solutions)
            pending.clear()


def leave_one_out(
    model: SVC | SVR, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> LeaveOneOut:
    """Return what a machine fitted to all samples but one predicts for that one, for all samples.

    A sample with α = 0 does not change the machine: its prediction is that of the machine of all
    samples. Only the support vectors are left out in turn, each refit starting from the α of all
    samples; all refits share the kernel values, and are certified. The result is that of n fits.

    Parameters
    ----------
    model : SVC or SVR
        The machine, fitted or not; it is not changed. Several classes are those of
        ``multi_class="ovo"`` or ``"ovr"``. C must be finite.
    X : array-like or CSR matrix of shape (n_samples, n_features)
        Samples; the Gram matrix of a precomputed kernel.
    y : array-like of shape (n_samples,)
        Labels or targets.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the fits. A sample of weight 0 is in none of them, and does not count in the
        score.

    Returns
    -------
    LeaveOneOut
        Predictions, scores, error, and the worst certificate.

    See Also
    --------
    maxmargin.diagnostics.margin_report : Bounds of the leave-one-out error without refits.

    Notes
    -----
    What depends on all samples is taken from all of them: γ of ``gamma="scale"`` and weights of
    ``class_weight="balanced"``. Every machine is solved to a violation of 1e-6 of its KKT
    conditions or less, whatever ``tol`` is; where several b are optimal, b is the middle of them.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels* (2002), section 12.2.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> result = mm.model_selection.leave_one_out(mm.SVC(kernel="linear"), X, y)
    >>> result.error, result.n_refits
    (0.0, 3)
    """
    machine = _checked(model)
    with single_threaded_blas():
        return _left_out(machine, X, y, sample_weight)


def _checked(model: Any) -> SVC | SVR:
    """Return a copy of the model that is not fitted, without what is for a single fit."""
    if not isinstance(model, (SVC, SVR)):
        raise TypeError(
            f"model must be an SVC or an SVR, got {type(model).__name__}: of a ν-machine every "
            "sample changes the bounds of all others; SVC(kernel='linear') is LinearSVC's hinge."
        )
    if getattr(model, "multi_class", "") == "crammer_singer":
        raise ValueError(
            "multi_class must be 'ovo' or 'ovr', got 'crammer_singer': joint machines have no "
            "binary tasks to leave a sample out of."
        )
    machine = cast(SVC | SVR, clone(model))
    machine._validate_params()
    if not np.isfinite(machine.C):
        raise ValueError(f"C must be finite, got {machine.C}: pass a large C.")
    return machine.set_params(warm_start=False, callback=None, verbose=False)


def _left_out(
    model: SVC | SVR, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> LeaveOneOut:
    method = model._method()
    training = method.check(received(X), host_array(y), host_array(sample_weight), reset=True)
    _check_sizes(training)
    kernel, tasks = checked_kernel(model, training), method.tasks(training)
    machines = [
        TaskWithout(problem, Dual.of(kernel, training.X, "auto", EXACT, may_centre=_centres(model),
                                     largest=model._largest_cost(training)))
        for problem in (model._pose(kernel, training, task) for task in tasks)
    ]  # fmt: skip
    trace = Progress().trace()
    wholes = [replace(each.dual.moved_back(each.problem, each.whole), trace=trace)
              for each in machines]  # fmt: skip
    adopt(model, method, training, wholes)
    scores = model._expansion.scores(training.X) + model.intercept_
    for k, (task, machine) in enumerate(zip(tasks, machines, strict=True)):
        scores[task.rows, k] = machine.scores() + _centre(model, task)
    proofs = [each for machine in machines for each in machine.certificates]
    n_refits = sum(machine.supports().size for machine in machines)
    return _result(model, training, scores, n_refits, proofs)


def _check_sizes(training: Training) -> None:
    """Refuse a class that has only one sample, which cannot be left out."""
    counts = np.bincount(training.codes[training.rows], minlength=len(training.classes))
    if len(training.classes) and counts.min() < 2:
        label = np.asarray(training.classes[int(counts.argmin())]).item()
        raise ValueError(
            f"every class must have at least 2 samples of positive weight, got {counts.min()} of "
            f"class {label!r}: without it there would be no such class."
        )
    if training.rows.size < 2:
        raise ValueError(f"X must have at least 2 samples, got {training.rows.size}.")


def _centres(model: SVC | SVR) -> bool:
    return bool(model.fit_intercept)


def _centre(model: SVC | SVR, task: Task) -> float:
    """Return what the targets of a regression were reduced by."""
    return centre_of(task.labels) if isinstance(model, SVR) and model.fit_intercept else 0.0


def _result(
    model: SVC | SVR,
    training: Training,
    scores: Floats,
    n_refits: int,
    proofs: list[MarginCertificate],
) -> LeaveOneOut:
    worst = max(proofs, key=lambda each: max(each.violation + each.rounding, each.relative_gap))
    n_short = sum(not each.holds(EXACT) for each in proofs)
    if n_short:
        warn_caller(
            f"leave_one_out: {n_short} of {len(proofs)} machines are not optimal to {EXACT:g}; the "
            f"worst: {worst.measures}. Scale the features (StandardScaler), or lower C.",
            ConvergenceWarning,
        )
    rows = training.rows
    true = np.asarray(training.y)[rows]
    if isinstance(model, SVR):
        found = scores[:, 0]
        score = float(r2_score(true, found[rows])) if rows.size > 1 else np.nan
        error = float(mean_squared_error(true, found[rows]))
        return LeaveOneOut(found, found, score, error, n_refits, worst)
    labels = model.classes_[model._chosen(scores)]
    error = float(np.mean(labels[rows] != true))
    decisions = model._decisions(scores)
    return LeaveOneOut(labels, decisions, 1.0 - error, error, n_refits, worst)
