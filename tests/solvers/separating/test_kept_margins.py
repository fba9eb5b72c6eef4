"""Passes with kept margins against passes that compute every margin."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.data.normalised_samples import SignedSamples
from maxmargin.runtime.row_access import rows_of
from maxmargin.solvers.separating import compiled_passes, kept_margins, online
from maxmargin.solvers.separating.kept_margins import KeptMargins
from maxmargin.solvers.separating.visiting_orders import VisitingOrders
from tests.helpers.algorithms import cloud, integers, quiet

STORAGE = pytest.mark.parametrize(
    "store", [np.asarray, np.float32, sparse.csr_array], ids=["float64", "float32", "csr"]
)


def both(Z, gain, orders, rate, slack):
    """Return planes and reports of passes with and without kept margins."""
    answers = []
    for keeps in (True, False):
        a, seen = np.zeros((1, Z.X.shape[1] + 1)), np.empty((len(orders), 5))
        if keeps:
            made = KeptMargins(Z, gain).passes(a, orders, rate, slack, seen)
        else:
            made = compiled_passes.signed_passes(
                rows_of(Z.X), Z.index, Z.labels, Z.bias_step, a, orders,
                np.ones((Z.n_samples, 1)), gain, np.full(Z.n_samples, rate), 0.0, slack,
                online.FIXED_INCREMENT, seen,
            )  # fmt: skip
        answers.append((a, seen[:made]))
    return answers


@STORAGE
@pytest.mark.parametrize("data", [cloud, integers])
@pytest.mark.parametrize("slack", [0.0, 1e-3])
@pytest.mark.parametrize("renewed", [3, 512])
def test_the_same_samples_are_corrected(store, data, slack, renewed, monkeypatch):
    if renewed != kept_margins.RENEWED_AFTER and store is not np.asarray:
        pytest.skip("a constant of compiled code: in Python, which is slow")
    X, y = data(60, 4, seed=1)  # sums of whole numbers and quarters are exact
    gain = np.random.default_rng(1).choice([0.5, 1.0, 3.0], size=60)
    index = np.arange(60)[::-1].copy()
    Z = SignedSamples(store(X), np.where(y[index] == y[0], 1.0, -1.0), index=index, bias_step=2.0)
    orders = VisitingOrders(60, np.random.RandomState(1)).several(40).copy()
    if renewed != kept_margins.RENEWED_AFTER:
        monkeypatch.setattr(kept_margins, "RENEWED_AFTER", renewed)
        monkeypatch.setattr(kept_margins, "kept_passes", kept_margins.kept_passes.py_func)
    (a, seen), (expected, reports) = both(Z, gain, orders, 0.25, slack)
    np.testing.assert_allclose(a, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(seen[:, :2], reports[:, :2])
    np.testing.assert_allclose(seen[:, 2:], reports[:, 2:], rtol=1e-9, atol=1e-9)


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fits_are_the_same(n_classes, monkeypatch):
    X, y = cloud(90, 3, n_classes, seed=2)
    kept = mm.Perceptron(max_iter=300).fit(X, y)
    monkeypatch.setattr(KeptMargins, "pays", staticmethod(lambda Z, updates: False))
    computed = mm.Perceptron(max_iter=300).fit(X, y)
    np.testing.assert_allclose(kept.coef_, computed.coef_, rtol=1e-9)
    assert kept.n_updates_ == computed.n_updates_
    assert kept.statuses_ == computed.statuses_
    for one, other in zip(kept.traces_, computed.traces_, strict=True):
        np.testing.assert_array_equal(one.errors, other.errors)
        np.testing.assert_allclose(one.objective, other.objective, rtol=1e-9, atol=1e-9)


def test_margins_of_separable_samples_end_with_the_lowest():
    X = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 0.5], [-3.0, 0.0]])
    Z = SignedSamples(X, np.array([1.0, 1.0, -1.0, -1.0]))
    orders = np.broadcast_to(np.arange(4), (9, 4)).copy()
    (a, seen), (expected, reports) = both(Z, np.ones(4), orders, 1.0, 0.0)
    assert len(seen) == len(reports) < 9
    np.testing.assert_allclose(a, expected)
    assert seen[-1, 4] == pytest.approx(reports[-1, 4])
