"""One-class machines: one row per training sample about the region, and the machine as a whole."""

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
from .measured_task import supported
from .table import SampleTable, complementarity
from .text import described_support, described_task, near_zero

REGION_STATES = ("inside", "on the boundary", "outlier")
# Relative to ρ: scores that differ by less are equal.
SCORE_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RegionTable(SampleTable):
    """Score, α and KKT state of every sample; what `support_table` returns of a `OneClassSVM`.

    Parameters
    ----------
    task : str
        "the region".
    index : ndarray of int of shape (n,)
        The rows of X that take part.
    score : ndarray of shape (n,)
        g(x) = w·φ(x) − ρ.
    alpha : ndarray of shape (n,)
        α, at most the weight of the sample.
    slack : ndarray of shape (n,)
        ξ = max(0, −g(x)).
    state : ndarray of str of shape (n,)
        "inside", "on the boundary" or "outlier".
    complementarity : ndarray of shape (n,)
        Violation of complementary slackness: the sample's part of the duality gap.
    bound : ndarray of shape (n,)
        The upper bound of α_i, the weight of the sample.
    tol : float
        Scores within ``tol`` of 0 are on the boundary.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> model = mm.OneClassSVM(gamma="auto").fit(X)
    >>> mm.diagnostics.support_table(model, X).counts
    {'inside': 2, 'on the boundary': 1, 'outlier': 2}
    """

    task: str
    index: Integers
    score: Floats
    alpha: Floats
    slack: Floats
    state: NDArray[np.str_]
    complementarity: Floats
    bound: Floats
    tol: float
    states: ClassVar[Sequence[str]] = REGION_STATES

    def _orders(self) -> dict[str, Floats]:
        return {"score": self.score}

    def _cells(self, rows: Integers) -> list[tuple[str, Iterable[str]]]:
        unit = float(np.abs(self.score).max(initial=0.0))
        return [
            ("g(x)", near_zero(self.score[rows], unit)),
            ("state", self.state[rows]),
            ("alpha", map("{:.6g}".format, self.alpha[rows])),
            ("slack", near_zero(self.slack[rows], unit)),
            ("violation", map("{:.1e}".format, self.complementarity[rows])),
            ("bound", map("{:.6g}".format, self.bound[rows])),
        ]


def region_table(model: FittedModel, training: Training, tol: float | None) -> RegionTable:
    """Return the table of a one-class machine on its training data."""
    (machine,) = trained(model, training, [0])
    problem, scores = machine.problem, machine.predictions
    level = border_tolerance(model) if tol is None else tol
    return RegionTable(
        task=machine.name,
        index=problem.index,
        score=scores,
        alpha=machine.alpha,
        slack=np.maximum(-scores, 0.0),
        state=np.select([scores > level, scores >= -level], REGION_STATES[:2], REGION_STATES[2]),
        complementarity=complementarity(problem.upper, problem.ridge, machine.alpha, -scores),
        bound=problem.upper,
        tol=level,
    )


def border_tolerance(model: FittedModel) -> float:
    """Return the size of a score that counts as on the boundary: the accuracy of the fit.

    That is the worst violation of the KKT conditions, and at most ``tol``, relative to ρ.
    """
    clf, certificate = model.classifier, model.classifier.certificates_[0]
    found = min(float(clf.tol), 1.001 * (certificate.violation + certificate.rounding))
    rho = abs(float(clf.intercept_[0]))
    return max((found + SCORE_ROUNDING) * rho, float(clf._rounding()))


@dataclass(frozen=True)
class RegionReport:
    """Outliers and support vectors of a one-class machine; what `margin_report` returns of it.

    Values that need the training data are None without them.

    Parameters
    ----------
    estimator : str
        The class of the model.
    rho : float
        ρ: samples with w·φ(x) < ρ are outliers.
    norm : float
        ‖w‖ in feature space; nan where an indefinite kernel makes ‖w‖² negative.
    n_support : int
        Number of support vectors.
    certificate : MarginCertificate
        The certificate of the fit.
    status : Status
        The rule that ended the fit.
    nu : float
        ν of the fit.
    n_samples : int
        Samples of the fit.
    n_outliers, n_bound, n_free : int or None
        Samples beyond the boundary; support vectors with α at its upper bound, and the others.
    outliers, support_fraction : float or None
        Fractions of the samples, by weight, that are outliers and that have α > 0: ν lies between.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> print(mm.diagnostics.margin_report(mm.OneClassSVM(gamma="auto").fit(X), X))
    OneClassSVM: the region
      outliers       2 of 5 samples (40 %) have w·φ(x) < ρ = 2.05...
      support        3 support vectors of 5 samples: 1 free, 2 at their bound
      ν              0.4 (outliers) ≤ 0.5 ≤ 0.6 (support vectors)
      proof          optimal to a relative gap of ...
    """

    estimator: str
    rho: float
    norm: float
    n_support: int
    certificate: MarginCertificate
    status: Status
    nu: float
    n_samples: int
    n_outliers: int | None = None
    n_bound: int | None = None
    n_free: int | None = None
    outliers: float | None = None
    support_fraction: float | None = None

    def __str__(self) -> str:
        lines = [
            ("outliers", self._outliers()),
            ("support", described_support(self.n_support, self.n_samples, self.n_bound)),
            ("ν", self._nu()),
            ("proof", f"{self.certificate}; {self.status}"),
        ]
        return described_task(f"{self.estimator}: the region", lines)

    def _outliers(self) -> str:
        border = f"w·φ(x) < ρ = {self.rho:.6g}"
        if self.n_outliers is None:
            return f"samples with {border}"
        share = 100.0 * self.n_outliers / self.n_samples
        return f"{self.n_outliers:,} of {self.n_samples:,} samples ({share:.3g} %) have {border}"

    def _nu(self) -> str:
        if self.outliers is None:
            return f"{self.nu:.4g}"
        share = f"{self.outliers:.4g} (outliers) ≤ {self.nu:.4g}"
        return f"{share} ≤ {self.support_fraction:.4g} (support vectors)"


def region_report(model: FittedModel, training: Training | None) -> RegionReport:
    """Return the report of a one-class machine, with what its training data say if given."""
    (machine,) = supported(model) if training is None else trained(model, training, [0])
    clf = model.classifier
    basics = RegionReport(
        estimator=model.name,
        rho=-float(clf.intercept_[0]),
        norm=float(np.sqrt(machine.square)) if machine.square >= 0.0 else np.nan,
        n_support=int(np.count_nonzero(machine.alpha)),
        certificate=clf.certificates_[0],
        status=clf.statuses_[0],
        nu=float(clf.nu),
        n_samples=int(clf.shape_fit_[0]),
    )
    if training is None:
        return basics
    upper = machine.problem.upper
    is_outlier, shares = machine.predictions < -border_tolerance(model), upper / upper.sum()
    return replace(
        basics,
        n_samples=upper.size,
        n_outliers=int(np.count_nonzero(is_outlier)),
        n_bound=machine.n_bound,
        n_free=basics.n_support - machine.n_bound,
        outliers=float(shares[is_outlier].sum()),
        support_fraction=float(shares[machine.alpha > 0.0].sum()),
    )
