"""What is badly scaled: features, and the targets of a regression beside ε and C."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats, MatrixLike, by_rows
from ..data.columns import MOST_FEATURE_RATIO, scale_ratio
from ..estimators.linear_svr import LinearSVR
from ..kernels import Precomputed
from .fitted_model import FittedModel, ModelLike
from .measured_task import AT_BOUND
from .targets import check_targets

# ε and C, relative to the standard deviation of the targets, beyond which they are named.
MOST_EPSILON = 1.0
LEAST_COST = 0.1
# Fraction of support vectors at their bound from which a small C is named.
MANY_AT_BOUND = 0.9
STANDARDISE = (
    "standardise y (sklearn.compose.TransformedTargetRegressor(model, "
    "transformer=StandardScaler()))"
)


def scaling_advice(model: ModelLike, X: MatrixLike, y: ArrayLike | None = None) -> list[str]:
    """Return what is badly scaled in the data of a fitted model, a sentence each.

    Distances and inner products are dominated by the widest features, ε and C have the unit of y:
    a tube that is wider than the spread of the targets, or a C that is small beside it, leaves a
    function that is nearly constant.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline or search that ends in one
        The model.
    X : array-like, CSR matrix or frame of shape (n_samples, n_features)
        Samples of the fit; features are those after the steps of a pipeline.
    y : array-like of shape (n_samples,), optional
        Targets of a regression.

    Returns
    -------
    list of str
        None where nothing is badly scaled.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = [[0.0, 1e6], [1.0, 2e6], [2.0, 0.0]], [0.0, 1.0, 2.0]
    >>> mm.diagnostics.scaling_advice(mm.SVR().fit(X, y), X, y)
    ['The widest feature spreads 1e+06 times as far as the narrowest: scale them (StandardScaler).']
    """
    fitted = FittedModel(model)
    advice = []
    given = isinstance(fitted.kernel, Precomputed)
    if not given and getattr(fitted.classifier, "_objects", None) is None:
        features = fitted.transform(X)
        features = by_rows(features if hasattr(features, "tocsr") else np.asarray(features, float))
        ratio = scale_ratio(features)
        if ratio > MOST_FEATURE_RATIO:
            advice.append(
                f"The widest feature spreads {ratio:.3g} times as far as the narrowest: scale them "
                "(StandardScaler)."
            )
    if fitted.has_targets and y is not None:
        advice += target_advice(fitted, check_targets(y, len(np.ravel(np.asarray(y)))))
    return advice


def target_advice(model: FittedModel, targets: Floats, chosen: Collection[str] = ()) -> list[str]:
    """Return what is wrong with ε and C beside the spread of the targets.

    Nothing is said of parameters that a search has ``chosen``.
    """
    return spread_advice(model, float(targets.std()), float(np.ptp(targets)), chosen)


def spread_advice(
    model: FittedModel, spread: float, width: float, chosen: Collection[str] = ()
) -> list[str]:
    """Return the same from the standard deviation and the range of the targets."""
    epsilon, clf = model.epsilon or 0.0, model.classifier
    if not spread:
        return []
    advice, share = [], epsilon / spread
    # A NuSVR finds its ε, in the unit of y.
    is_found = hasattr(clf, "epsilon_") or "epsilon" in chosen
    if not is_found and 0.5 * width <= epsilon:
        advice.append(
            f"ε = {epsilon:.3g} is at least half the range of y, so that the tube holds all "
            f"targets and w = 0: lower epsilon, or {STANDARDISE}."
        )
    elif not is_found and share > MOST_EPSILON:
        advice.append(
            f"ε = {epsilon:.3g} is {share:.3g} standard deviations of y: lower epsilon, or "
            f"{STANDARDISE}."
        )
    if "C" not in chosen and _is_held_back(model, spread):
        advice.append(
            f"C = {clf.C:.3g} is only {clf.C / spread:.1g} standard deviations of y, and most "
            "support vectors are at that bound, so that predictions fall short: raise C, or "
            f"{STANDARDISE}."
        )
    return advice


def _is_held_back(model: FittedModel, spread: float) -> bool:
    """Say whether C is small beside the targets and keeps predictions from them."""
    clf = model.classifier
    squared = getattr(clf, "loss", "").startswith("squared")
    # A plane may be steep with small α: features have units of their own.
    if squared or isinstance(clf, LinearSVR) or model.is_linear or LEAST_COST * spread <= clf.C:
        return False
    alpha = model.support_alpha
    n_bound = np.count_nonzero(alpha >= (1.0 - AT_BOUND) * clf.C)
    return bool(n_bound > MANY_AT_BOUND * alpha.size)
