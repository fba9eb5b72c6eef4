"""Kernel machines and samples for the tests of tables and reports."""

import numpy as np
import pytest

import maxmargin as mm

TIGHT = 1e-9
HARD = float("inf")


def overlapping(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1, -1)
    return X, y


def three_classes(n=90, seed=1):
    rng = np.random.default_rng(seed)
    labels = np.array(["apple", "lemon", "pear"])
    codes = np.arange(n) % 3
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    return centres[codes] + 0.9 * rng.standard_normal((n, 2)), labels[codes]


MACHINES = {
    "hinge": lambda **options: mm.SVC(tol=TIGHT, **options),
    "large C": lambda **options: mm.SVC(C=50.0, tol=TIGHT, **options),
    "squared": lambda **options: mm.SVC(loss="squared_hinge", tol=TIGHT, **options),
    "nu": lambda **options: mm.NuSVC(nu=0.4, tol=TIGHT, **options),
    "no bias": lambda **options: mm.SVC(fit_intercept=False, tol=TIGHT, **options),
}
machines = pytest.mark.parametrize("make", MACHINES.values(), ids=MACHINES)


def leave_one_out(model, X, y, weights=None):
    errors = 0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        kept = None if weights is None else weights[rest]
        errors += model.fit(X[rest], y[rest], kept).predict(X[i : i + 1])[0] != y[i]
    return errors / len(y)
