"""Data, solvers, biases and certificates for the tests of LinearSVC.

The certificates are made from the bare attributes of the fitted model and from a problem posed by
hand.
"""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.problems import PrimalProblem
from maxmargin.solution import Solution
from tests.helpers import svc

SOLVERS = ["newton", "interior-point", "coordinate-descent"]

LOSSES = ["hinge", "squared_hinge"]

BIASES = {
    "free": {},
    "penalised": {"penalize_intercept": True},
    "none": {"fit_intercept": False},
}

# The default, and one at which planes are those of the optimum to some five digits.
TOL, TIGHT = 1e-4, 1e-9

N = 200

# Far more than these problems need: a solver that does not end fails instead.
SECONDS = 30.0


def cloud(n=N, d=4, n_classes=2, *, seed=0, gap=0.8):
    """Return X, y of overlapping classes, in random order."""
    return svc.cloud(n, d, n_classes, seed=seed, gap=gap)


def apart(n=60, d=3, *, seed=0):
    """Return X, y of classes that a plane separates."""
    X = cloud(n, d, seed=seed)[0]
    w = np.linspace(1.0, 2.0, d)
    scores = X @ w + 0.5
    return X + np.outer(np.sign(scores) * 0.3, w / (w @ w)), (scores > 0).astype(int)


def made(**options):
    """Return the machine that the tests use: one that ends, and does the same every time."""
    return mm.LinearSVC(**{"time_limit": SECONDS, "random_state": 0, **options})


def machines(model, y):
    """Yield rows, ±1, α, w and b of every plane."""
    codes = np.searchsorted(model.classes_, y)
    n_classes = len(model.classes_)
    if n_classes == 2:
        sides = [(np.arange(len(y)), np.where(codes == 1, 1.0, -1.0))]
    elif model.multi_class == "ovr":
        sides = [
            (np.arange(len(y)), np.where(codes == k, 1.0, -1.0)) for k in range(n_classes)
        ]  # fmt: skip
    else:
        pairs = combinations(range(n_classes), 2)
        rows = [(i, np.flatnonzero((codes == i) | (codes == j))) for i, j in pairs]
        sides = [(some, np.where(codes[some] == i, 1.0, -1.0)) for i, some in rows]
    planes = zip(sides, model.dual_coef_, model.coef_, model.intercept_, strict=True)
    for (rows, labels), dual, w, b in planes:
        beta = np.zeros(len(y))
        beta[model.support_] = dual
        yield rows, labels, beta[rows] * labels, w, b


def certificates(model, X, y, weights=None):
    """Return one certificate per plane of a fitted model."""
    costs = model.C * (np.ones(len(y)) if weights is None else weights)
    bias = "free" if model.fit_intercept else "none"
    bias = "penalised" if model.fit_intercept and model.penalize_intercept else bias
    found = []
    for rows, labels, alpha, w, b in machines(model, y):
        problem = PrimalProblem.of(X[rows], labels, costs[rows], model.loss, bias)
        answer = Solution(w[np.newaxis], np.array([b]), mm.Status.CONVERGED, alpha=alpha)
        found.append(mm.certify(problem, answer))
    return found


def assert_certified(model, X, y, weights=None):
    """The published certificate holds, and so does one made here."""
    assert set(model.statuses_) == {mm.Status.CONVERGED}
    assert model.certificate_.holds(model.tol), str(model.certificate_)
    by_hand = certificates(model, X, y, weights)
    assert len(by_hand) == len(model.certificates_) == len(model.coef_)
    for published, certificate in zip(model.certificates_, by_hand, strict=True):
        assert certificate.holds(1.001 * model.tol + 1e-14), str(certificate)
        assert certificate.primal == pytest.approx(published.primal, rel=1e-9)
        assert certificate.dual == pytest.approx(published.dual, rel=1e-9)


def near(model, X):
    """Return by how much g may be off: ‖w − w*‖ ≤ √(2 gap), and b follows a sample."""
    gap = max(max(certificate.gap, 0.0) for certificate in model.certificates_)
    return 2.0 * np.sqrt(2.0 * gap) * np.sqrt((X**2).sum(axis=1).max() + 1.0) + 1e-7


def fitted_quietly(model, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args)
