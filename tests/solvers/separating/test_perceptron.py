"""The perceptron: bounds on its corrections, and its dual form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.cpu import gram as cpu
from maxmargin.solvers.separating import kernel_perceptron
from tests.helpers.algorithms import blobs, cloud, integers, quiet


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    bias=st.sampled_from(["plain", "radius"]),
    n_classes=st.sampled_from([2, 3]),
    gap=st.floats(3.0, 8.0),
)
def test_mistake_bound_holds(seed, bias, n_classes, gap):
    X, y = blobs(30, 3, n_classes, gap=gap, seed=seed)
    X = X + 3.0
    model = mm.Perceptron(bias=bias, multi_class="kesler", max_iter=100_000).fit(X, y)
    assert model.separates_
    assert model.status_ is mm.Status.CONVERGED
    assert model.n_updates_ <= model.mistake_bound_
    if n_classes == 2 and bias == "radius":
        plane = mm.separability(X, y).hyperplane
        assert model.n_updates_ <= plane.mistake_bound(X, 2 * y - 1)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    rate=st.sampled_from([0.01, 0.3, 1.0, 30.0, 1000.0]),
    intercept=st.booleans(),
)
def test_dual_mistake_bound_holds(seed, rate, intercept):
    X, y = blobs(30, 3, gap=3.0, seed=seed)
    model = mm.KernelPerceptron(
        kernel="linear", learning_rate=rate, fit_intercept=intercept, max_iter=100_000
    ).fit(X + 2.0 * intercept, y)
    if model.separates_:
        assert model.n_updates_ <= model.certificate_.mistake_bound


def mistakes_of(model, X, y):
    recorder = mm.Recorder(every_update=True)
    model.set_params(callback=recorder).fit(X, y)
    return [step.sample for step in recorder.steps if step.sample is not None]


@quiet
@pytest.mark.parametrize("make", [integers, blobs, cloud], ids=lambda make: make.__name__)
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_primal_and_dual_make_the_same_mistakes_in_the_same_order(make, as_sparse, shuffle):
    X, y = make(60, 4, seed=13)
    X = sparse.csr_array(X) if as_sparse else X
    options = {"max_iter": 8, "shuffle": shuffle, "random_state": 1}
    primal = mm.Perceptron(bias="radius", **options)
    dual = mm.KernelPerceptron(kernel="linear", **options)
    assert mistakes_of(primal, X, y) == mistakes_of(dual, X, y)
    assert primal.n_updates_ == dual.n_updates_ == np.abs(dual.dual_coef_).sum()
    np.testing.assert_allclose(dual.coef_, primal.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dual.intercept_, primal.intercept_, rtol=1e-9)


@quiet
def test_dual_perceptron_over_many_blocks(monkeypatch):
    X, y = cloud(100, 4, seed=14)
    whole = mm.KernelPerceptron(max_iter=5).fit(X, y)
    monkeypatch.setattr(kernel_perceptron, "TUNING", kernel_perceptron.Tuning(block_samples=7))
    monkeypatch.setattr(cpu, "bytes_to_keep", lambda: 0.0)  # the Gram matrix is not kept
    parts = mm.KernelPerceptron(max_iter=5).fit(X, y)
    np.testing.assert_allclose(parts.dual_coef_, whole.dual_coef_)
    np.testing.assert_array_equal(parts.support_, whole.support_)


@quiet
def test_dual_decision_is_the_formula():
    X, y = cloud(40, 3, seed=15)
    kernel = mm.kernels.Polynomial(2, coef0=1.0)
    model = mm.KernelPerceptron(kernel=kernel).fit(X, y)
    new = cloud(10, 3, seed=16)[0]
    expected = kernel(new, X[model.support_]) @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(new), expected)
    signs = np.where(y[model.support_] == 1, 1.0, -1.0)
    assert (model.dual_coef_[0] * signs > 0).all()
    R2 = kernel.diagonal(X).max()
    assert model.intercept_[0] == pytest.approx(R2 * model.dual_coef_.sum())
