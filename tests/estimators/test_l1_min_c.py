"""The least C of a plane that uses a feature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import l1_min_c as theirs

import maxmargin as mm
from tests.helpers.linear_svc import cloud

KINDS = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
@pytest.mark.parametrize("bias", [{}, {"intercept_scaling": 20.0}, {"fit_intercept": False}])
def test_agrees_with_scikit_learn(bias, loss, n_classes, kind):
    X, y = cloud(60, n_classes=n_classes)
    X = KINDS[kind](X)
    assert mm.l1_min_c(X, y, loss=loss, **bias) == pytest.approx(theirs(X, y, loss=loss, **bias))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "bias",
    [
        {"penalize_intercept": False},
        {"penalize_intercept": True},
        {"penalize_intercept": True, "intercept_scaling": 30.0},
        {"penalize_intercept": False, "fit_intercept": False},
    ],
)
def test_is_where_the_first_feature_enters(bias, n_classes):
    X, y = cloud(50, n_classes=n_classes)
    y = np.where(np.arange(50) < 12, 0, y)  # classes of unequal sizes
    least = mm.l1_min_c(X, y, **bias)
    below = mm.LinearSVC("l1", C=0.999 * least, tol=1e-9, **bias).fit(X, y)
    above = mm.LinearSVC("l1", C=1.001 * least, tol=1e-9, **bias).fit(X, y)
    assert not below.coef_.any()
    assert above.coef_.any() or (bias["penalize_intercept"] and above.intercept_.any())
    if bias["penalize_intercept"] or not bias.get("fit_intercept", True):
        assert not below.intercept_.any()
    for model in (below, above):
        assert all(certificate.holds(1e-9) for certificate in model.certificates_)


def test_logistic_loss_with_a_free_bias():
    """The slope of the loss at w = 0 and the best b is y times the share of the other class."""
    X, y = cloud(50)
    y = np.where(np.arange(50) < 12, 0, y)
    share = np.mean(y == 1)
    slopes = np.where(y == 1, 1.0 - share, -share) @ X
    found = mm.l1_min_c(X, y, loss="log", penalize_intercept=False)
    assert found == pytest.approx(1.0 / np.abs(slopes).max())


def test_bad_input():
    with pytest.raises(ValueError, match="Ill-posed"):
        mm.l1_min_c(np.zeros((4, 2)), [0, 1, 0, 1], fit_intercept=False)
    with pytest.raises(ValueError, match="loss must be one of"):
        mm.l1_min_c(np.eye(2), [0, 1], loss="hinge")
