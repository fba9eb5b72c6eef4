"""Regressions: one row per training sample about the tube, and the machine as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..certificates import MarginCertificate
from ..estimators.training import Training
from ..solution import Status
from .checks import trained
from .fitted_model import FittedModel
from .measured_task import MeasuredTask, supported
from .table import SampleTable, complementarity
from .targets import TUBE_STATES, TargetErrors, edge_tolerance, target_errors, tube_states
from .text import described_support, described_task, near_zero


@dataclass(frozen=True, eq=False)
class TubeTable(SampleTable):
    """Residual, α and KKT state of every training sample; what `support_table` returns of SVR.

    Parameters
    ----------
    task : str
        "the targets".
    index : ndarray of int of shape (n,)
        The rows of X that take part.
    target, prediction, residual : ndarray of shape (n,)
        y, g(x) and y − g(x).
    alpha : ndarray of shape (n,)
        α − α*: positive above the tube, negative below it.
    slack : ndarray of shape (n,)
        ξ = max(0, \\|y − g(x)\\| − ε).
    state : ndarray of str of shape (n,)
        "in the tube", "on its edge", "above" or "below".
    complementarity : ndarray of shape (n,)
        Violation of complementary slackness: the sample's part of the duality gap.
    cost, bound : ndarray of shape (n,)
        C_i, and the upper bound of \\|α_i − α*_i\\|: C_i, or ∞ where slacks are squared.
    epsilon : float
        ε, half the width of the tube.
    tol : float
        Residuals within ``tol`` of ±ε are on the edge, in units of y.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 2.0, 4.0, 6.0, 8.0]
    >>> model = mm.SVR(kernel="linear", C=10.0, epsilon=0.5).fit(X, y)
    >>> print(mm.diagnostics.support_table(model, X, y).to_text(n_rows=2))
    the targets: 5 samples, 2 support vectors; 3 in the tube, 2 on its edge
    row  target  prediction  residual  state           alpha  slack  violation   C
      0       0         0.5      -0.5  on its edge   -0.4375      0  ...        10
      1       2        2.25     -0.25  in the tube         0      0  ...        10
    … 3 more: to_text(n_rows=None) prints all
    """

    task: str
    index: Integers
    target: Floats
    prediction: Floats
    residual: Floats
    alpha: Floats
    slack: Floats
    state: NDArray[np.str_]
    complementarity: Floats
    cost: Floats
    bound: Floats
    epsilon: float
    tol: float
    states: ClassVar[Sequence[str]] = TUBE_STATES

    def _orders(self) -> dict[str, Floats]:
        return {"residual": -np.abs(self.residual)}

    def _cells(self, rows: Integers) -> list[tuple[str, Iterable[str]]]:
        unit = float(np.abs(self.target).max(initial=0.0))
        return [
            ("target", map("{:.6g}".format, self.target[rows])),
            ("prediction", near_zero(self.prediction[rows], unit)),
            ("residual", near_zero(self.residual[rows], unit)),
            ("state", self.state[rows]),
            ("alpha", map("{:.6g}".format, self.alpha[rows])),
            ("slack", near_zero(self.slack[rows], unit)),
            ("violation", map("{:.1e}".format, self.complementarity[rows])),
            ("C", map("{:.6g}".format, self.cost[rows])),
        ]


def tube_table(model: FittedModel, training: Training, tol: float | None) -> TubeTable:
    """Return the table of a regression on its training data."""
    (machine,) = trained(model, training, [0])
    problem, g, epsilon = machine.problem, machine.predictions, model.epsilon or 0.0
    n = g.size
    index = problem.index[:n]
    targets = training.y[index]
    level = edge_tolerance(model, targets) if tol is None else tol
    alpha, starred = np.split(machine.alpha, 2)
    upper, ridge, residual = problem.upper[:n], problem.ridge[:n], targets - g
    with np.errstate(divide="ignore"):
        cost = np.where(ridge > 0.0, 0.5 / ridge, upper)
    return TubeTable(
        task=machine.name,
        index=index,
        target=targets,
        prediction=g,
        residual=residual,
        alpha=alpha - starred,
        slack=np.maximum(np.abs(residual) - epsilon, 0.0),
        state=tube_states(residual, epsilon, level),
        complementarity=complementarity(upper, ridge, alpha, residual - epsilon)
        + complementarity(upper, ridge, starred, -residual - epsilon),
        cost=cost,
        bound=upper,
        epsilon=epsilon,
        tol=level,
    )


@dataclass(frozen=True)
class TubeReport:
    """Errors, tube and support vectors of a regression; what `margin_report` returns of SVR.

    Values that need the training data are None without them.

    Parameters
    ----------
    estimator : str
        The class of the model.
    epsilon : float
        ε, half the width of the tube; of a `NuSVR` the one that was found.
    norm : float
        ‖w‖ in feature space; nan where an indefinite kernel makes ‖w‖² negative.
    n_support : int
        Number of support vectors.
    certificate : MarginCertificate
        The certificate of the fit.
    status : Status
        The rule that ended the fit.
    C : float
        C of the fit.
    n_samples : int
        Samples of the fit.
    errors : TargetErrors or None
        R², MAE, RMSE and the samples outside of the tube.
    n_bound, n_free : int or None
        Support vectors with \\|α − α*\\| at its upper bound, and the others.
    outside, support_fraction : float or None
        Fractions of the samples, weighted by C_i, outside of the tube and with α ≠ 0: ν lies
        between.
    nu : float or None
        ν of the `NuSVR` that has this tube, Σ\\|α − α*\\|/ΣC_i; None without an upper bound, or
        where ε = 0.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 2.0, 4.0, 6.0, 8.0]
    >>> model = mm.SVR(kernel="linear", C=10.0, epsilon=0.5).fit(X, y)
    >>> mm.diagnostics.margin_report(model, X, y).n_free
    2
    """

    estimator: str
    epsilon: float
    norm: float
    n_support: int
    certificate: MarginCertificate
    status: Status
    C: float
    n_samples: int
    errors: TargetErrors | None = None
    n_bound: int | None = None
    n_free: int | None = None
    outside: float | None = None
    support_fraction: float | None = None
    nu: float | None = None

    def __str__(self) -> str:
        flat = "none" if np.isnan(self.norm) else f"‖w‖ = {self.norm:.7g}"
        lines = [
            ("fit", "" if self.errors is None else self.errors.measures),
            ("tube", self._tube()),
            ("function", flat),
            ("support", described_support(self.n_support, self.n_samples, self.n_bound)),
            ("ν", self._nu()),
            ("proof", f"{self.certificate}; {self.status}"),
        ]
        return described_task(f"{self.estimator}: the targets", lines)

    def _tube(self) -> str:
        if self.errors is None:
            return f"ε = {self.epsilon:.6g}"
        text = f"{self.errors.inside_in_words}, {self.errors.n_above:,} above"
        return f"{text}, {self.errors.n_below:,} below"

    def _nu(self) -> str:
        if self.nu is None:
            return ""
        share = f"{self.outside:.4g} (outside) ≤ {self.nu:.4g}"
        return f"{share} ≤ {self.support_fraction:.4g} (support vectors)"


def tube_report(model: FittedModel, training: Training | None) -> TubeReport:
    """Return the report of a regression, with what its training data say where they are given."""
    (machine,) = supported(model) if training is None else trained(model, training, [0])
    clf, epsilon = model.classifier, model.epsilon or 0.0
    basics = TubeReport(
        estimator=model.name,
        epsilon=epsilon,
        norm=float(np.sqrt(machine.square)) if machine.square >= 0.0 else np.nan,
        n_support=int(np.count_nonzero(machine.alpha)),
        certificate=clf.certificates_[0],
        status=clf.statuses_[0],
        C=float(clf.C),
        n_samples=int(clf.shape_fit_[0]),
    )
    return basics if training is None else _with_data(basics, model, training, machine)


def _with_data(
    basics: TubeReport, model: FittedModel, training: Training, machine: MeasuredTask
) -> TubeReport:
    g, problem = machine.predictions, machine.problem
    targets = training.y[problem.index[: g.size]]
    tol = edge_tolerance(model, targets)
    upper, alpha = problem.upper[: g.size], np.add(*np.split(machine.alpha, 2))
    bounded = bool(np.isfinite(upper).all())
    shares = upper / upper.sum() if bounded else np.full(g.size, 1.0 / g.size)
    return replace(
        basics,
        n_samples=g.size,
        errors=target_errors(targets, g, basics.epsilon, tol),
        n_bound=machine.n_bound,
        n_free=basics.n_support - machine.n_bound,
        outside=float(shares[np.abs(targets - g) > basics.epsilon + tol].sum()),
        support_fraction=float(shares[alpha > 0.0].sum()),
        nu=float(alpha.sum() / upper.sum()) if bounded and basics.epsilon > 0.0 else None,
    )
