"""Noisy classes, and fits that must end with a proof or with a warning."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin.solution import Status

TOL = 1e-3


def noisy(n, d=3, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1.0, -1.0)


def quiet_fit(model, X, y, **options):
    """Return the model, and whether it warned of its end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **options)
    return model, any(issubclass(w.category, ConvergenceWarning) for w in caught)


def assert_proved(model, tol=TOL):
    certificate = model.certificate_
    assert certificate.holds(tol), certificate
    assert certificate.relative_gap <= 2.0 * tol, certificate
    assert model.status_ is Status.CONVERGED


def p_of_nothing(y, C, loss="hinge"):
    """Return P(0, b) at the best b."""
    few, many = sorted([np.sum(y == label) for label in np.unique(y)])
    if loss == "hinge":
        return 2.0 * C * few
    return 4.0 * C * few * many / (few + many)
