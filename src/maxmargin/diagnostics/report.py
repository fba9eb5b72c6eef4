"""The machine as a whole: its margin, its support vectors, bounds of its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, MatrixLike
from ..certificates import MarginCertificate
from ..certificates.primal import PlaneCertificate
from ..estimators.linear_svc import LinearSVC
from ..estimators.one_class import OneClassSVM
from ..estimators.svc import NuSVC
from ..estimators.training import Training
from ..kernels import RBF, Precomputed
from ..problems import DualProblem
from ..solution import Status
from .checks import check_data, checked_model, margin_tolerance, trained
from .fitted_model import AnyMachine, FittedModel, SupportVectorMachine, SupportVectorRegression
from .measured_task import MeasuredTask, diagonal, supported
from .region import RegionReport, region_report
from .span import span_errors
from .text import aligned, described_support, described_task, if_known
from .tube import TubeReport, tube_report

# Samples up to which R² comes from the whole Gram matrix.
MOST_GRAM_ROWS = 2000


@dataclass(frozen=True)
class TaskMargin:
    """Margin, support vectors and bounds of one task; part of a `MarginReport`.

    Values that need the training data are None without them.

    Parameters
    ----------
    name : str
        The classes of the task.
    norm, width : float
        ‖w‖ in feature space and 2/‖w‖; nan where an indefinite kernel makes ‖w‖² negative, or a
        ν-machine found no margin.
    n_support : int
        Number of support vectors.
    certificate : MarginCertificate
        The certificate of the fit.
    status : Status
        The rule that ended the fit.
    C : float or None
        C of the fit; for a ν-machine 1/(ρ Σ weights), which is 1/(nρ) without weights.
    rho : float or None
        ρ of a ν-machine, its margin before division by ρ; 0 where it has none.
    n_samples, n_bound, n_free : int or None
        Samples of the task; support vectors with α at its upper bound, and the others.
    margin_errors, support_fraction : float or None
        Fractions of the samples, weighted by C_i, with y g < 1 and with α > 0: ν lies between.
    nu : float or None
        ν of the equivalent ν-machine, Σα/ΣC_i; None without an upper bound.
    loo_support : float or None
        n_support/n_samples, an upper bound of the leave-one-out error.
    loo_bound : float or None
        A second bound of the leave-one-out error, the ξα-estimate.
    radius : float or None
        R² of the ξα-estimate.
    loo_span : float or None
        The span estimate of the leave-one-out error: exact where no support vector gets to or off
        a bound when a sample is left out, and close to it elsewhere.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> (task,) = mm.diagnostics.margin_report(model, X, y).tasks
    >>> task.n_support, task.n_free
    (3, 3)
    """

    name: str
    norm: float
    width: float
    n_support: int
    certificate: MarginCertificate
    status: Status
    C: float | None = None
    rho: float | None = None
    n_samples: int | None = None
    n_bound: int | None = None
    n_free: int | None = None
    margin_errors: float | None = None
    support_fraction: float | None = None
    nu: float | None = None
    loo_support: float | None = None
    loo_bound: float | None = None
    radius: float | None = None
    loo_span: float | None = None

    def __str__(self) -> str:
        lines = [
            ("margin", self._margin()),
            ("support", described_support(self.n_support, self.n_samples, self.n_bound)),
            ("ν", self._nu()),
            ("leave one out", self._leave_one_out()),
            ("proof", f"{self.certificate}; {self.status}"),
        ]
        return described_task(self.name, lines)

    def _margin(self) -> str:
        if self.rho == 0.0:
            return "none: ρ = 0, w = 0 is as good; use a larger nu, or another kernel"
        if np.isnan(self.norm):
            return "none: ‖w‖² is negative, since the kernel is not positive semidefinite"
        text = f"width 2/‖w‖ = {self.width:.7g}, ‖w‖ = {self.norm:.7g}"
        if self.rho is not None:
            text += f"; ρ = {self.rho:.6g}"
            text += "" if self.C is None else f", the machine of C = {self.C:.6g}"
        return text

    def _nu(self) -> str:
        if self.margin_errors is None:
            return ""
        middle = "ν" if self.nu is None else f"{self.nu:.4g}"
        below, above = f"{self.margin_errors:.4g}", f"{self.support_fraction:.4g}"
        return f"{below} (margin errors) ≤ {middle} ≤ {above} (support vectors)"

    def _leave_one_out(self) -> str:
        if self.loo_support is None:
            return ""
        text = f"error at most {self.loo_support:.4g} (support vectors)"
        if self.loo_bound is not None:
            how = "own term" if self.radius is None else f"ξα, R² = {self.radius:.4g}"
            text += f", {self.loo_bound:.4g} ({how})"
        return text if self.loo_span is None else f"{text}; about {self.loo_span:.4g} (span)"


@dataclass(frozen=True)
class MarginReport:
    """Margins and bounds of a fitted machine, task by task; what `margin_report` returns.

    Parameters
    ----------
    estimator : str
        The class of the model.
    tasks : tuple of TaskMargin
        One for two classes, else one per pair or one per class against the rest.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> report = mm.diagnostics.margin_report(mm.SVC(C=float("inf"), kernel="linear").fit(X, y))
    >>> len(report), round(report.norm, 6)
    (1, 0.38873)
    """

    estimator: str
    tasks: tuple[TaskMargin, ...]

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def width(self) -> float:
        """2/‖w‖ of the task with the narrowest margin; for two classes the only one."""
        return float(np.min([task.width for task in self.tasks]))

    @property
    def norm(self) -> float:
        """‖w‖ of the task with the narrowest margin."""
        return float(np.max([task.norm for task in self.tasks]))

    def __str__(self) -> str:
        if len(self.tasks) == 1:
            return f"{self.estimator}: {self.tasks[0]}"
        columns = [
            ("task", [task.name for task in self.tasks]),
            ("width", [f"{task.width:.5g}" for task in self.tasks]),
            ("‖w‖", [f"{task.norm:.5g}" for task in self.tasks]),
            ("SVs", [str(task.n_support) for task in self.tasks]),
            ("bound", [if_known(task.n_bound) for task in self.tasks]),
            ("margin errors", [if_known(task.margin_errors) for task in self.tasks]),
            ("LOO by SVs", [if_known(task.loo_support) for task in self.tasks]),
            ("LOO bound", [if_known(task.loo_bound) for task in self.tasks]),
            ("LOO span", [if_known(task.loo_span) for task in self.tasks]),
        ]
        lines = aligned(columns, left=("task",))
        worst = max(self.tasks, key=lambda task: _distance(task.certificate))
        last = f"worst proof, {worst.name}: {worst.certificate}; {worst.status}"
        return "\n".join([f"{self.estimator}: {len(self)} tasks", *lines, last])


@overload
def margin_report(
    clf: SupportVectorMachine,
    X: MatrixLike = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> MarginReport: ...
@overload
def margin_report(
    clf: SupportVectorRegression,
    X: MatrixLike = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> TubeReport: ...
@overload
def margin_report(
    clf: OneClassSVM,
    X: MatrixLike = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> RegionReport: ...
def margin_report(
    clf: AnyMachine,
    X: MatrixLike = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> MarginReport | TubeReport | RegionReport:
    """Return width of the margin, support vectors and bounds of the leave-one-out error.

    The band −1 ≤ g ≤ 1 is 2/‖w‖ wide, ‖w‖² = αᵀQα = Σ_ij α_i y_i α_j y_j K(x_i, x_j). ν, where
    Σα = ν ΣC_i, lies between the fraction of margin errors and that of support vectors. The
    leave-one-out error is at most the fraction of support vectors, since leaving out another sample
    does not change the machine. It is also at most the fraction of samples with
    2α_i R² + ξ_i ≥ 1, where all K(x, x') lie within R² of each other (in feature space about any
    origin: 0 or the mean, whichever gives less), provided that the machines without one sample have
    a free α (Joachims's ξα-estimate). For it the squared hinge is the hard margin of the kernel
    K + diag 1/(2C_i); a machine without a bias has α_i K(x_i, x_i) ≥ y_i g(x_i) instead (Jaakkola,
    Haussler). The span estimate (Vapnik, Chapelle) counts the samples with α_i S_i² ≥ y_i g(x_i),
    S_i being the distance of φ(x_i) from the span of the other free support vectors; it is close
    to the leave-one-out error, but not a bound. All of them are those of the optimum, for a
    positive semidefinite kernel; the certificate says how near the fit is to it. For a ν-machine
    they are those of the machine of the same C: C_i does not change when a sample is left out.

    Recomputed in float64: ‖w‖ from the support vectors and ``dual_coef_``, or from the ``coef_`` of
    a `LinearSVC`, and with X and y all margins. The certificate is that of the fit.

    Of a regression: R² and errors on its samples, how many lie in the tube, and ν between the
    fractions of samples outside of it and of support vectors. Of a `OneClassSVM`: the outliers, and
    ν between their fraction and that of support vectors.

    Parameters
    ----------
    clf : SVC, NuSVC, LinearSVC, SVR, NuSVR, LinearSVR or OneClassSVM
        The fitted machine.
    X : array-like or CSR matrix of shape (n_samples, n_features), optional
        Samples of the fit, checked as in `support_table`. Without them there are only widths,
        numbers of support vectors and, unless each pair of classes has its own samples, their
        fraction. A precomputed kernel needs them, since the model holds no kernel values.
    y : array-like of shape (n_samples,), optional
        Labels or targets of the fit; not needed for a `OneClassSVM`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the fit.

    Returns
    -------
    MarginReport, TubeReport or RegionReport
        One `TaskMargin` per task of a classifier; a `TubeReport` of a regression, a `RegionReport`
        of a `OneClassSVM`.

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett, *Neural Computation* 12 (2000), proposition 5 (ν);
    Vapnik, *The Nature of Statistical Learning Theory* (1995), section 5.2 (support vectors);
    Joachims, *ICML* (2000), and Jaakkola, Haussler, *AISTATS* (1999) (leave one out); Vapnik,
    Chapelle, *Neural Computation* 12 (2000) (span).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> report = mm.diagnostics.margin_report(model, X, y)
    >>> f"{report.width:.9f}"
    '5.144957554'
    >>> print(report)
    SVC: 1 against -1
      margin         width 2/‖w‖ = 5.144958, ‖w‖ = 0.3887301
      support        3 support vectors of 6 samples: 3 free, 0 at their bound
      ν              0 (margin errors) ≤ ν ≤ 0.5 (support vectors)
      leave one out  error at most 0.5 (support vectors), ...
      proof          optimal to a relative gap of ...
    """
    model = checked_model(clf)
    needs_y = model.scheme != "one-class"
    if needs_y and (X is None) != (y is None):
        raise ValueError("X and y belong together: pass both, or neither.")
    if X is None and sample_weight is not None:
        raise ValueError("sample_weight needs X and y: pass X and y with it.")
    if X is None and isinstance(model.kernel, Precomputed):
        raise ValueError(
            "the model of a precomputed kernel holds no kernel values: pass X, the Gram matrix "
            "of the training samples, and y."
        )
    training = None if X is None else check_data(model, X, y, sample_weight)
    if model.has_targets:
        return tube_report(model, training)
    if not model.has_classes:
        return region_report(model, training)
    if training is None:
        measured = [_without_data(model, task) for task in supported(model)]
    else:
        tasks = trained(model, training, range(len(model.task_names)))
        measured = [_with_data(model, training, task) for task in tasks]
    return MarginReport(model.name, tuple(measured))


def _distance(certificate: MarginCertificate) -> float:
    """Return the distance of a certificate from its claim; for planes, the gap."""
    plane = isinstance(certificate, PlaneCertificate)
    return certificate.relative_gap if plane else certificate.violation


def _without_data(model: FittedModel, machine: MeasuredTask) -> TaskMargin:
    clf, basics = model.classifier, _basics(model, machine)
    n_samples = None
    if model.scheme != "ovo":
        plane = isinstance(clf, LinearSVC)
        n_samples = clf.certificates_[0].n_checked if plane else int(clf.shape_fit_[0])
    bounded = isinstance(clf, NuSVC) or (clf.loss == "hinge" and np.isfinite(clf.C))
    return TaskMargin(
        **basics,
        C=None if isinstance(clf, NuSVC) else float(clf.C),
        n_samples=n_samples,
        n_bound=None if bounded else 0,
        n_free=None if bounded else basics["n_support"],
        nu=float(clf.nu) if isinstance(clf, NuSVC) else None,
        loo_support=None if n_samples is None else basics["n_support"] / n_samples,
    )


def _with_data(model: FittedModel, training: Training, machine: MeasuredTask) -> TaskMargin:
    clf, basics = model.classifier, _basics(model, machine)
    problem, alpha = machine.problem, machine.alpha
    n_samples, n_support = alpha.size, basics["n_support"]
    if machine.rho == 0.0:
        return TaskMargin(**basics, n_samples=n_samples, loo_support=n_support / n_samples)
    bounded = bool(np.isfinite(problem.upper).all())
    # The weight of each sample: its cost, where ν is a fraction of costs.
    shares = problem.upper / problem.upper.sum() if bounded else np.full(n_samples, 1 / n_samples)
    C = problem.upper / training.weights[problem.index] if machine.rho else np.array([clf.C])
    # The bound is one of machines that minimise ½‖w‖².
    known = not (isinstance(clf, LinearSVC) and clf._norm == "l1")
    radius = _radius(problem) if known and problem.groups else None
    wrong = _may_be_wrong(machine, radius) if known else None
    spanned = span_errors(machine) if known else None
    return TaskMargin(
        **basics,
        C=float(C[0]),
        n_samples=n_samples,
        n_bound=machine.n_bound,
        n_free=n_support - machine.n_bound,
        margin_errors=float(shares[machine.margins < 1.0 - margin_tolerance(model)].sum()),
        support_fraction=float(shares[alpha > 0.0].sum()),
        nu=float(alpha.sum() / problem.upper.sum()) if bounded else None,
        loo_support=n_support / n_samples,
        loo_bound=None if wrong is None else float(wrong.mean()),
        radius=radius,
        loo_span=None if spanned is None else float(spanned.mean()),
    )


def _basics(model: FittedModel, machine: MeasuredTask) -> dict[str, Any]:
    clf = model.classifier
    has_margin = machine.square >= 0.0 and machine.rho != 0.0
    norm = np.sqrt(machine.square) if has_margin else np.nan
    return {
        "name": machine.name,
        "norm": float(norm),
        "width": float(2.0 / norm) if norm != 0.0 else np.inf,
        "n_support": int(np.count_nonzero(machine.alpha)),
        "certificate": clf.certificates_[machine.number],
        "status": clf.statuses_[machine.number],
        "rho": machine.rho,
    }


def _may_be_wrong(machine: MeasuredTask, radius: float | None) -> NDArray[np.bool_] | None:
    """Return which samples may be misclassified by a machine fitted without them."""
    problem, alpha = machine.problem, machine.alpha
    if not problem.groups:
        return alpha * diagonal(problem) >= machine.margins
    if radius is None:
        return None
    # The slack of the squared hinge is part of the kernel.
    slack = np.where(problem.ridge > 0.0, 0.0, machine.slack)
    return 2.0 * alpha * radius + slack >= 1.0


def _radius(problem: DualProblem) -> float | None:
    """Return R² with c ≤ K(x, x') ≤ c + R² for all samples; None without a cheap bound."""
    top, ridge = float(diagonal(problem).max()), problem.ridge
    if problem.n_variables > MOST_GRAM_ROWS:
        if isinstance(problem.kernel, RBF):
            return top + float(ridge.max())
        # |K(x, x')|² ≤ K(x, x) K(x', x').
        return 2.0 * top + float(ridge.max()) if problem.kernel.positive_semidefinite else None
    K = _gram(problem)
    # With yᵀα = 0 the origin of feature space is arbitrary.
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, None] + mean.mean()
    spreads = []
    for values in (K, centred):
        lowest = values.min()
        values[np.diag_indices_from(values)] += ridge
        spreads.append(float(values.max() - lowest))
    return min(spreads)


def _gram(problem: DualProblem) -> Floats:
    if isinstance(problem.kernel, Precomputed):
        return problem.X[np.ix_(problem.index, problem.index)].astype(np.float64)
    return problem.kernel(problem.X[problem.index].astype(np.float64))
