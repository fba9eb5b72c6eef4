"""The cost from which a linear machine with an ℓ1 penalty is more than nothing."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array, check_consistent_length

from ..arrays import Floats, MatrixLike, refuse_partitions

# Slopes of the losses of a sample at g(x) = 0, and where the bias is that of no feature: times the
# share of the other class.
SLOPES = {"squared_hinge": (2.0, 4.0), "log": (0.5, 1.0)}


def l1_min_c(
    X: MatrixLike,
    y: ArrayLike,
    *,
    loss: Literal["squared_hinge", "log"] = "squared_hinge",
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
    penalize_intercept: bool = True,
) -> float:
    """Return the C up to which ``LinearSVC(penalty="l1")`` uses no feature.

    For C greater than that some class has a plane with w ≠ 0. A penalised bias b, which begins at
    0, counts as a feature of value ``intercept_scaling``: it may be what is not 0 first. A bias
    that is free is n₊ − n₋ over n at w = 0, whatever C, and the first feature enters at
    C = 1/(4 n p (1 − p) max_j |m₊ − m₋|_j), p = n₊/n and m₊, m₋ the means of the classes; that is
    exact.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data.
    y : array-like of shape (n_samples,)
        Labels.
    loss : {"squared_hinge", "log"}, default="squared_hinge"
        "log" is the loss of logistic regression.
    fit_intercept : bool, default=True
        Whether there is a bias.
    intercept_scaling : float, default=1.0
        As of `LinearSVC`.
    penalize_intercept : bool, default=True
        Whether the bias is penalised, as by LIBLINEAR. The default is that of scikit-learn's
        function, and not that of `LinearSVC` here: pass the parameter of the model.

    Returns
    -------
    float
        The least C.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> C = mm.l1_min_c(X, y, penalize_intercept=False)
    >>> print(round(C, 6))
    0.03125
    >>> mm.LinearSVC("l1", C=0.99 * C).fit(X, y).coef_.any()
    np.False_
    >>> mm.LinearSVC("l1", C=1.01 * C).fit(X, y).coef_.any()
    np.True_
    """
    if loss not in SLOPES:
        raise ValueError(f"loss must be one of {sorted(SLOPES)}, got {loss!r}.")
    refuse_partitions(X, y)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    check_consistent_length(X, y)
    signs: Floats = LabelBinarizer(neg_label=-1).fit_transform(y).T.astype(np.float64)
    plain, of_share = SLOPES[loss]
    if fit_intercept and not penalize_intercept:
        positive = np.mean(signs > 0.0, axis=1, keepdims=True)
        weights = of_share * np.where(signs > 0.0, 1.0 - positive, -positive)
    else:
        weights = plain * signs
    most = float(np.abs(np.asarray(X.T @ weights.T)).max())
    if fit_intercept and penalize_intercept:
        most = max(most, float(np.abs(weights.sum(axis=1)).max()) * intercept_scaling)
    if most == 0.0:
        raise ValueError(
            "Ill-posed l1_min_c calculation: l1 will always select zero coefficients for this data"
        )
    return 1.0 / most
