"""Ho–Kashyap."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import maxmargin as mm
from maxmargin.solvers.separating import pseudoinverse
from tests.helpers.algorithms import blobs, cloud, materialised, weights_of
from tests.helpers.separating import CLASSES


def gordan(Z, u, tol=1e-13):
    """Check by plain NumPy that u ≥ 0, Σu = 1, Zᵀu = 0."""
    assert (u >= 0).all()
    assert u.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.abs(Z.T @ u) <= tol * (np.abs(Z).T @ u).max()).all()


@CLASSES
def test_ho_kashyap_is_the_textbooks(n_classes):
    X, y = blobs(30, 3, n_classes, gap=3.0, seed=29)
    Z = materialised(X, y, n_classes)
    inverse = np.linalg.pinv(Z, rcond=1e-12)
    m = np.ones(len(Z))
    for steps in range(1, 6):
        m = m + 2 * 0.4 * np.maximum(Z @ (inverse @ m) - m, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = mm.HoKashyap(
                learning_rate=0.4, max_iter=steps, multi_class="kesler", tol=0.0
            ).fit(X, y)
        assert not model.refuted_
        np.testing.assert_allclose(model.margins_[0], m, rtol=1e-9)
        np.testing.assert_allclose(weights_of(model), inverse @ m, atol=1e-9)


@CLASSES
def test_margins_of_ho_kashyap_never_shrink(n_classes):
    X, y = blobs(40, 3, n_classes, gap=3.0, seed=30)
    last = np.ones(40 * (n_classes - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for steps in (1, 2, 4, 8, 16):
            model = mm.HoKashyap(max_iter=steps, multi_class="kesler", tol=1e-12).fit(X, y)
            assert (model.margins_[0] >= last).all()
            last = model.margins_[0]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**20), n_classes=st.sampled_from([2, 3]))
def test_ho_kashyap_ends_on_its_margins(seed, n_classes):
    X, y = blobs(24, 3, n_classes, gap=4.0, seed=seed)
    model = mm.HoKashyap(max_iter=50_000, tol=1e-3, multi_class="kesler").fit(X, y)
    assert model.status_ is mm.Status.CONVERGED
    assert not model.refuted_
    assert model.multipliers_ == [None]
    margins = materialised(X, y, n_classes) @ weights_of(model)
    np.testing.assert_allclose(margins, model.margins_[0], rtol=2e-3)
    assert (margins > 0).all()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**20), weighted=st.booleans())
def test_ho_kashyaps_refutation_is_a_proof(seed, weighted):
    X, y = cloud(40, 3, seed=seed)
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])  # never separable
    v = np.random.default_rng(seed).uniform(0.5, 2, 41) if weighted else None
    model = mm.HoKashyap(max_iter=5000).fit(X, y, v)
    assert model.status_ is mm.Status.INSEPARABLE
    assert model.refuted_
    assert not model.separates_
    assert model.certificate_.refutes
    gordan(materialised(X, y), model.multipliers_[0])


def test_refutation_of_integers_in_exact_arithmetic():
    X, y = mm.datasets.load_xor(return_X_y=True)
    model = mm.HoKashyap().fit(X, y)
    u = [Fraction(share) for share in model.multipliers_[0]]
    assert sum(u) == 1
    assert all(share >= 0 for share in u)
    for j in range(2):
        assert sum(s * int(k) * int(x) for s, k, x in zip(u, y, X[:, j], strict=True)) == 0
    assert sum(share * int(k) for share, k in zip(u, y, strict=True)) == 0


@pytest.mark.parametrize("seed", range(6))
def test_status_and_certificate_of_a_linear_machine_agree(seed):
    X, y = cloud(30, 2, 4, seed=seed)
    model = mm.HoKashyap(multi_class="kesler", max_iter=5000).fit(X, y)
    assert model.refuted_ == model.certificate_.refutes
    if model.refuted_:
        gordan(materialised(X, y, 4), model.multipliers_[0])


def test_ho_kashyap_warm_start_continues():
    X, y = blobs(40, 3, gap=3.0, seed=31)
    at_once = mm.HoKashyap(max_iter=20, tol=1e-12).fit(X, y)
    resumed = mm.HoKashyap(max_iter=10, tol=1e-12, warm_start=True).fit(X, y)
    before = resumed.margins_[0].copy()
    resumed.fit(X, y)
    assert (resumed.margins_[0] >= before).all()
    np.testing.assert_allclose(resumed.margins_[0], at_once.margins_[0], rtol=1e-9)
    np.testing.assert_allclose(weights_of(resumed), weights_of(at_once), rtol=1e-7, atol=1e-9)


def test_ho_kashyap_by_lsmr_is_ho_kashyap(monkeypatch):
    X, y = blobs(40, 3, gap=4.0, seed=32)
    expected = mm.HoKashyap().fit(X, y)
    never = pseudoinverse.Tuning(max_factorised_numbers=0)
    monkeypatch.setattr(pseudoinverse, "TUNING", never)
    model = mm.HoKashyap().fit(sparse.csr_array(X), y)
    assert model.n_iter_ == expected.n_iter_
    np.testing.assert_allclose(weights_of(model), weights_of(expected), rtol=1e-6, atol=1e-9)


def test_line_search_of_batch_relaxation_finds_the_minimum():
    """Newton's method on a piecewise parabola may go round in circles, where rows come twice."""
    from maxmargin.solvers.separating.relaxation import _line_minimum

    rng = np.random.default_rng(33)
    for _ in range(300):
        noise = 1.0 + np.finfo(float).eps * rng.integers(-2, 3, size=8)
        error = np.repeat(rng.normal(size=4), 2) * noise
        slope, gain = np.repeat(rng.normal(size=4) + 0.3, 2), np.repeat(rng.uniform(0.1, 1, 4), 2)
        if gain @ (slope * np.maximum(error, 0.0)) <= 0:
            continue  # no direction of descent

        def criterion(theta, e=error, s=slope, g=gain):
            return g @ np.maximum(e - theta * s, 0.0) ** 2

        best = min(criterion(theta) for theta in np.linspace(0, 20, 4001))
        assert criterion(_line_minimum(error, slope, gain)) <= 1.01 * best + 1e-9
