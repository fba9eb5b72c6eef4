"""What must not change the answer does not: shifts, storage, repetition, order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse

from . import checks
from .generators import LOSSES, Case, cloud, seeds

few = settings(max_examples=3, deadline=None, phases=(Phase.explicit, Phase.generate))
MACHINES = [
    ("SVC", {"kernel": ("linear",)}),
    ("SVC", {"kernel": ("rbf", 0.5)}),
    ("SVC", {"kernel": ("sum", ("rbf", 0.5), ("scaled", 2.0, ("rbf", 0.1)))}),
    ("LinearSVC", {}),
]
machines = pytest.mark.parametrize(("estimator", "params"), MACHINES, ids=str)
losses = pytest.mark.parametrize("loss", LOSSES)


def decisions(estimator, params, X, y, weight=None, tol=1e-8):
    """Return g(x) of every row, and whether the fit converged."""
    case = Case(estimator, {**params, "tol": tol}, X, y, weight)
    answer = checks.run(case)
    found = checks.ended(answer)
    assert not found, (str(case), found)
    assert "error" not in answer, (str(case), answer)
    return answer["decision"], answer["status"] == "converged"


def assert_same(one, other, atol=1e-3):
    if one[1] and other[1]:
        np.testing.assert_allclose(one[0], other[0], rtol=0, atol=atol)


@machines
@losses
@few
@given(seed=seeds)
def test_dense_and_sparse_rows_are_the_same(estimator, params, loss, seed):
    X, y = cloud(np.random.default_rng(seed), 30, 3)
    params = {**params, "loss": loss}
    for shift in (0.0, 1e3, 1e7):
        rows = X + shift
        dense = decisions(estimator, params, rows, y, tol=1e-6)
        assert_same(dense, decisions(estimator, params, sparse.csr_matrix(rows), y, tol=1e-6), 1e-2)


@machines
@losses
@few
@given(seed=seeds)
def test_weights_are_repetitions(estimator, params, loss, seed):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 24, 2)
    weight = rng.integers(1, 4, 24)
    params = {**params, "loss": loss}
    weighted = decisions(estimator, params, X, y, weight.astype(float))
    again, done = decisions(estimator, params, np.repeat(X, weight, 0), np.repeat(y, weight))
    firsts = np.cumsum(weight) - 1
    assert weighted[1]
    assert done
    assert_same(weighted, (again[firsts], done), 1e-4)


@machines
@losses
@few
@given(seed=seeds)
def test_the_order_of_rows_does_not_matter(estimator, params, loss, seed):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 40, 2)
    order = rng.permutation(40)
    params = {**params, "loss": loss}
    one, other = (decisions(estimator, params, X[k], y[k]) for k in (np.arange(40), order))
    assert one[1]
    assert other[1]
    assert_same((one[0][order], True), other, 1e-4)


@machines
@losses
@few
@given(seed=seeds, exponent=st.integers(1, 7))
def test_shifted_rows_give_the_shifted_machine(estimator, params, loss, seed, exponent):
    rng = np.random.default_rng(seed)
    # Multiples of 2⁻²⁰: the shift loses no digit.
    X, y = cloud(rng, 30, 2)
    X = np.round(X * 2**20) / 2**20
    params = {**params, "loss": loss}
    one = decisions(estimator, params, X, y, tol=1e-6)
    other = decisions(estimator, params, X + float(2 ** int(3.3 * exponent)), y, tol=1e-6)
    assert one[1]
    assert_same(one, other, 1e-2)


@losses
@few
@given(seed=seeds)
def test_linear_machines_agree_with_the_linear_kernel(loss, seed):
    # One row in three twice, few rows: the bias is often not unique, and both take the middle.
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(12, 2)).astype(float)
    y = np.where(np.arange(12) % 2 == 0, 1, -1)
    params = {"loss": loss, "C": 0.25}
    one = decisions("SVC", {**params, "kernel": ("linear",)}, X, y)
    assert_same(one, decisions("LinearSVC", params, X, y), 1e-3)
