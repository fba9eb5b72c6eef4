"""Symmetries of every algorithm: property tests with hypothesis."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import ortho_group

from tests.helpers.algorithms import (
    ALGORITHMS,
    LINEAR,
    TOLERANCE,
    WEIGHING,
    Algorithm,
    blobs,
    cloud,
    integers,
    over,
    quiet,
    weights_of,
)

pytestmark = quiet

seeds = st.integers(0, 2**20)
few = settings(max_examples=6, deadline=None)
N_STEPS = 5  # equal corrections at first are equal ones for ever, up to rounding that grows


def fitted(algorithm: Algorithm, X, y, weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return algorithm.make(**options).fit(X, y, weight)


def few_steps(algorithm: Algorithm):
    """Options that end iterations early, so that rounding has no time to grow."""
    return {} if algorithm.name == "pseudoinverse" else {"max_iter": N_STEPS}


def assert_same_planes(first, second, tol=TOLERANCE["solve"]):
    a, b = weights_of(first), weights_of(second)
    np.testing.assert_allclose(a, b, rtol=0, atol=tol * max(1.0, np.abs(b).max()))


@over(WEIGHING)
@few
@given(seed=seeds, n_classes=st.sampled_from([2, 3]))
def test_order_of_rows_does_not_matter_to_batch_rules(algorithm, seed, n_classes):
    X, y = cloud(24, 3, n_classes, seed=seed)
    order = np.random.default_rng(seed).permutation(24)
    options = {"multi_class": "kesler", **few_steps(algorithm)}
    assert_same_planes(
        fitted(algorithm, X[order], y[order], **options), fitted(algorithm, X, y, **options)
    )


@over(WEIGHING)
@few
@given(seed=seeds, multi_class=st.sampled_from(["ovr", "ovo", "kesler"]))
def test_a_row_given_twice_is_a_row_of_weight_2(algorithm, seed, multi_class):
    X, y = cloud(24, 3, 3, seed=seed)
    weight = np.random.default_rng(seed).integers(0, 3, size=24)
    weight[:3] = 2  # every class is there
    options = {"multi_class": multi_class, **few_steps(algorithm)}
    twice = fitted(algorithm, np.repeat(X, weight, axis=0), np.repeat(y, weight), **options)
    assert_same_planes(fitted(algorithm, X, y, weight, **options), twice)


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 3.0}, "balanced"], ids=["dict", "balanced"])
def test_a_row_given_twice_is_a_row_of_weight_2_with_class_weights(class_weight):
    X, y = cloud(24, 3, seed=1)
    weight = np.where(y == 1, 2, 1)
    pseudoinverse = next(a for a in ALGORITHMS if a.name == "pseudoinverse")
    twice = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    assert_same_planes(
        fitted(pseudoinverse, X, y, weight, class_weight=class_weight),
        fitted(pseudoinverse, *twice, class_weight=class_weight),
    )


@over(ALGORITHMS)
@few
@given(seed=seeds)
def test_swapping_the_labels_negates_the_plane(algorithm, seed):
    X, y = integers(24, 3, seed=seed)
    options = {**few_steps(algorithm), **({"init": "zeros"} if "init" in algorithm.options else {})}
    one, other = (fitted(algorithm, X, labels, **options) for labels in (y, 1 - y))
    g, h = one.decision_function(X), other.decision_function(X)
    np.testing.assert_allclose(g, -h, rtol=0, atol=TOLERANCE["solve"] * np.abs(g).max())


@over(ALGORITHMS)
@few
@given(seed=seeds)
def test_rotating_the_features_rotates_the_plane(algorithm, seed):
    X, y = cloud(24, 3, seed=seed)
    rotation = ortho_group.rvs(3, random_state=seed)
    options = {**few_steps(algorithm), **({"init": "zeros"} if "init" in algorithm.options else {})}
    one, turned = (fitted(algorithm, rows, y, **options) for rows in (X, X @ rotation))
    np.testing.assert_allclose(
        turned.decision_function(X @ rotation), one.decision_function(X), rtol=1e-6, atol=1e-6
    )
    if algorithm.kesler:
        np.testing.assert_allclose(turned.coef_, one.coef_ @ rotation, rtol=1e-6, atol=1e-6)


@over([a for a in LINEAR if a.name in ("perceptron-radius", "ho-kashyap", "pseudoinverse", "lms")])
@few
@given(seed=seeds, exponent=st.sampled_from([-30, -3, 5, 40]))
def test_scaling_the_features_scales_the_plane(algorithm, seed, exponent):
    X, y = integers(24, 3, seed=seed)
    scale = 2.0**exponent
    options = {**few_steps(algorithm), **({"tol": 0.0} if algorithm.name == "lms" else {})}
    one, scaled = (fitted(algorithm, rows, y, **options) for rows in (X, X * scale))
    g, h = one.decision_function(X), scaled.decision_function(X * scale)
    factor = scale**2 if algorithm.name == "perceptron-radius" else 1.0
    np.testing.assert_allclose(h, factor * g, rtol=1e-6, atol=1e-9 * factor * np.abs(g).max())


@over([a for a in LINEAR if a.name in ("perceptron", "pocket")])
@few
@given(seed=seeds, exponent=st.integers(-20, 20))
def test_a_constant_rate_does_not_matter_to_the_perceptron(algorithm, seed, exponent):
    X, y = integers(24, 3, seed=seed)
    rate = 2.0**exponent
    one, scaled = (fitted(algorithm, X, y, learning_rate=r, max_iter=9) for r in (1.0, rate))
    np.testing.assert_array_equal(weights_of(scaled), rate * weights_of(one))
    assert one.n_updates_ == scaled.n_updates_


@over(ALGORITHMS)
@few
@given(seed=seeds, n_classes=st.sampled_from([2, 3]))
def test_rows_of_weight_0_are_not_there(algorithm, seed, n_classes):
    X, y = cloud(30, 3, n_classes, seed=seed)
    rng = np.random.default_rng(seed)
    keep = np.ones(30, dtype=bool)
    keep[rng.choice(np.arange(6, 30), size=10, replace=False)] = False
    X[~keep] *= 50.0
    y = y.copy()
    y[~keep] = rng.integers(0, n_classes, size=10)
    options = few_steps(algorithm)
    with_them = fitted(algorithm, X, y, keep.astype(float), **options)
    without = fitted(algorithm, X[keep], y[keep], **options)
    g, h = with_them.decision_function(X), without.decision_function(X)
    np.testing.assert_allclose(g, h, rtol=1e-9, atol=1e-9 * np.abs(h).max())
    assert with_them.n_updates_ == without.n_updates_
    assert with_them.certificate_ == without.certificate_


def test_a_class_of_weight_0_is_not_there():
    X, y = cloud(30, 3, 3)
    for algorithm in ALGORITHMS:
        model = fitted(algorithm, X, y, (y != 1).astype(float), max_iter=3)
        np.testing.assert_array_equal(model.classes_, [0, 2])


def test_weight_0_and_a_feature_that_is_constant_without_it():
    X, y = blobs(20, 3)
    X[:-1, 2] = 5.0
    weight = np.append(np.ones(19), 0.0)
    perceptron = ALGORITHMS[0]
    with_it = fitted(perceptron, X, y, weight)
    without = fitted(perceptron, X[:-1], y[:-1])
    assert without.coef_[0, 2] == 0.0
    np.testing.assert_array_equal(with_it.coef_, without.coef_)
    np.testing.assert_array_equal(with_it.intercept_, without.intercept_)


def test_weight_0_and_the_scale_of_an_rbf_kernel():
    X, y = cloud(20, 3)
    X[-1] = 1000.0
    weight = np.append(np.ones(19), 0.0)
    kernel = Algorithm("rbf", ALGORITHMS[-1].factory, {}, kesler=False)
    assert fitted(kernel, X, y, weight).kernel_ == fitted(kernel, X[:-1], y[:-1]).kernel_


@over(ALGORITHMS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_float32_is_float64(algorithm, n_classes):
    X, y = cloud(40, 3, n_classes, seed=3)
    X = X.astype(np.float32)
    options = few_steps(algorithm)
    narrow = fitted(algorithm, X, y, **options)
    wide = fitted(algorithm, X.astype(np.float64), y, **options)
    g, h = narrow.decision_function(X), wide.decision_function(X.astype(np.float64))
    np.testing.assert_allclose(g, h, rtol=0, atol=TOLERANCE["float32"] * np.abs(h).max())
    if algorithm.kesler:  # sums are made in float64 whatever the storage
        assert_same_planes(narrow, wide, TOLERANCE["solve"])


def awkward_csr(X, rng):
    """Return X as CSR with int64 indices, unsorted, with duplicate entries and explicit zeros."""
    data, indices, indptr = [], [], [0]
    for x in X:
        columns = rng.permutation(X.shape[1])
        halves = np.concatenate([columns, columns[:2]])
        values = x[halves].copy()
        values[:2] /= 2
        values[-2:] /= 2
        data.extend(values)
        indices.extend(halves)
        indptr.append(len(data))
    matrix = sparse.csr_matrix(X.shape)
    matrix.data = np.array(data)
    matrix.indices = np.array(indices, dtype=np.int64)
    matrix.indptr = np.array(indptr, dtype=np.int64)
    assert not matrix.has_canonical_format
    return matrix


@over(ALGORITHMS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_any_sparse_form_is_the_dense(algorithm, n_classes):
    X, y = integers(40, 4, n_classes, seed=4)
    X[np.abs(X) < 5] = 0.0
    options = few_steps(algorithm)
    dense = fitted(algorithm, X, y, **options)
    awkward = awkward_csr(X, np.random.default_rng(4))
    before = [getattr(awkward, name).copy() for name in ("data", "indices", "indptr")]
    for rows in (awkward, sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X)):
        model = fitted(algorithm, rows, y, **options)
        g, h = model.decision_function(rows), dense.decision_function(X)
        np.testing.assert_allclose(g, h, rtol=1e-9, atol=1e-9 * np.abs(h).max())
        assert model.n_updates_ == dense.n_updates_
    for name, values in zip(("data", "indices", "indptr"), before, strict=True):
        np.testing.assert_array_equal(getattr(awkward, name), values)


@over(ALGORITHMS)
def test_any_layout_of_memory_works_and_nothing_is_changed(algorithm):
    X, y = integers(30, 4, seed=5)
    wide = np.empty((60, 8))
    wide[::2, ::2] = X
    reversed_rows = X[::-1].copy()[::-1]
    read_only = X.copy()
    weight = np.ones(30)
    for array in (read_only, y, weight):
        array.flags.writeable = False
    options = few_steps(algorithm)
    expected = fitted(algorithm, X.copy(), y.copy(), **options)
    h = expected.decision_function(X)
    for rows in (np.asfortranarray(X), wide[::2, ::2], reversed_rows, read_only, X.tolist()):
        model = fitted(algorithm, rows, y, weight, **options)
        g = model.decision_function(rows)
        np.testing.assert_allclose(g, h, rtol=1e-9, atol=1e-9 * np.abs(h).max())
        np.testing.assert_array_equal(np.asarray(rows), X)


@over([a for a in ALGORITHMS if a.name in ("perceptron", "relaxation", "ho-kashyap", "kernel-rbf")])
def test_read_only_sparse_input(algorithm):
    X, y = integers(30, 4, seed=6)
    rows = sparse.csr_array(X)
    for array in (rows.data, rows.indices, rows.indptr):
        array.flags.writeable = False
    model = fitted(algorithm, rows, y, max_iter=3)
    np.testing.assert_allclose(
        model.decision_function(rows), fitted(algorithm, X, y, max_iter=3).decision_function(X),
        rtol=1e-9, atol=1e-9,
    )  # fmt: skip


@over([a for a in ALGORITHMS if "shuffle" in a.make().get_params()])
def test_random_state_determines_everything(algorithm):
    X, y = cloud(50, 3, 3, seed=7)
    options = {"max_iter": 4} | ({} if "batch" in algorithm.name else {"shuffle": True})
    if "init" in algorithm.make().get_params():
        options["init"] = "random"
    one, same, other = (fitted(algorithm, X, y, random_state=seed, **options) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.decision_function(X), same.decision_function(X))
    assert not np.array_equal(one.decision_function(X), other.decision_function(X))


@over(LINEAR)
def test_no_intercept_means_a_plane_through_the_origin(algorithm):
    X, y = cloud(30, 3, seed=8)
    model = fitted(algorithm, X, y, fit_intercept=False, max_iter=5)
    assert model.intercept_ == 0.0
    assert model.coef_.any()


@over(LINEAR)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.5])
def test_a_constant_feature_has_weight_0(algorithm, value):
    X, y = blobs(30, 3, seed=9)
    X[:, 1] = value
    for rows in (X, sparse.csr_array(X), X.astype(np.float32)):
        assert fitted(algorithm, rows, y).coef_[0, 1] == 0.0
