"""How well targets are predicted, and where they lie about the tube of a regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats
from ..estimators.linear_svr import LinearSVR
from .fitted_model import FittedModel
from .metrics import in_words, regression_errors

TUBE_STATES = ("in the tube", "on its edge", "above", "below")
# Relative to half the range of the targets: residuals that differ by less are equal.
RESIDUAL_ROUNDING = 1e-9


@dataclass(frozen=True)
class TargetErrors:
    """How well targets are predicted, in the words of statistics.

    Parameters
    ----------
    n_samples : int
        How many samples there are.
    r2 : float
        1 − Σ(y − g)²/Σ(y − ȳ)², the coefficient of determination; nan where all targets are equal.
    mae, rmse : float
        The mean of \\|y − g\\|, and the root of the mean of (y − g)², in units of y.
    epsilon : float
        Half the width of the tube.
    n_above, n_below : int
        Samples with y − g > ε, and with y − g < −ε.

    Examples
    --------
    >>> from maxmargin.diagnostics.targets import target_errors
    >>> print(target_errors([0.0, 1.0, 2.0], [0.0, 1.0, 1.5], epsilon=0.1))
    R² 0.875, MAE 0.1667, RMSE 0.2887; 2 of 3 within ε = 0.1 (66.7 %)
    """

    n_samples: int
    r2: float
    mae: float
    rmse: float
    epsilon: float
    n_above: int
    n_below: int

    @property
    def n_inside(self) -> int:
        """Samples in the tube, its edge included."""
        return self.n_samples - self.n_above - self.n_below

    @property
    def inside_in_words(self) -> str:
        """The share of samples in the tube."""
        share = 100.0 * self.n_inside / self.n_samples
        return (
            f"{self.n_inside:,} of {self.n_samples:,} within ε = {self.epsilon:.4g} ({share:.3g} %)"
        )

    @property
    def measures(self) -> str:
        """R² and the errors."""
        return in_words(vars(self))

    def __str__(self) -> str:
        return f"{self.measures}; {self.inside_in_words}"


def target_errors(
    targets: ArrayLike, predicted: ArrayLike, epsilon: float, tol: float = 0.0
) -> TargetErrors:
    """Return R² and the errors of predictions; residuals up to ``tol`` beyond ε are in the tube.

    >>> target_errors([1.0, 3.0], [2.0, 2.0], epsilon=0.5).r2
    0.0
    """
    y, g = np.asarray(targets, dtype=float).ravel(), np.asarray(predicted, dtype=float).ravel()
    if y.size != g.size or not y.size:
        raise ValueError(f"y must hold one target per row of X, got {y.size} for {g.size} rows.")
    residual, found = y - g, regression_errors([(y, g)])
    return TargetErrors(
        n_samples=y.size,
        r2=found["r2"],
        mae=found["mae"],
        rmse=found["rmse"],
        epsilon=float(epsilon),
        n_above=int(np.count_nonzero(residual > epsilon + tol)),
        n_below=int(np.count_nonzero(residual < -epsilon - tol)),
    )


def check_targets(y: ArrayLike, n: int) -> Floats:
    """Return targets as floats, of which there must be n."""
    try:
        targets = np.asarray(y, dtype=float).ravel()
    except (TypeError, ValueError):
        raise ValueError("y must hold numbers, the targets of a regression.") from None
    if targets.size != n:
        raise ValueError(f"y has {targets.size} targets, X {n} rows: pass one target per row.")
    if not np.isfinite(targets).all():
        raise ValueError("y must hold finite numbers, the targets of a regression.")
    return targets


def edge_tolerance(model: FittedModel, targets: Floats) -> float:
    """Return the distance from the edge of the tube, in units of y, that counts as on it.

    That is the accuracy of the fit: the worst violation of the KKT conditions, and at most its
    ``tol``.
    """
    clf, half = model.classifier, 0.5 * float(np.ptp(targets)) or 1.0
    # tol of a LinearSVR is a gap, and ½‖w − w*‖² is at most the gap.
    most = min(float(np.sqrt(clf.tol) if isinstance(clf, LinearSVR) else clf.tol), 0.5)
    for certificate in getattr(clf, "certificates_", []):
        most = min(most, 1.001 * (certificate.violation + certificate.rounding))
    return (most + RESIDUAL_ROUNDING) * half


def tube_states(residuals: Floats, epsilon: float, tol: float) -> NDArray[np.str_]:
    """Return where samples lie: in the tube, on its edge, above or below it."""
    beyond = np.abs(residuals) - epsilon
    outside = np.where(residuals > 0.0, TUBE_STATES[2], TUBE_STATES[3])
    return np.select([beyond < -tol, beyond <= tol], TUBE_STATES[:2], outside)
