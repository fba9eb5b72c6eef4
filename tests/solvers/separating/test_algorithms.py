"""Each algorithm against the formula of theory section 2, written out here in plain NumPy."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as SklearnPerceptron

import maxmargin as mm
from maxmargin.runtime.row_access import rows_of
from maxmargin.solvers.separating import kernel_perceptron, online, pocket, pseudoinverse
from tests.helpers.algorithms import (
    TOLERANCE,
    blobs,
    cloud,
    falling,
    integers,
    materialised,
    quiet,
    weights_of,
)

ROUNDING, SOLVE = TOLERANCE["rounding"], TOLERANCE["solve"]
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
STORAGE = pytest.mark.parametrize("storage", ["float64", "float32", "csr", "csr32"])


def stored(X, storage):
    """Return the same numbers in another storage (exactly: use numbers that float32 can hold)."""
    return {
        "float64": lambda: X,
        "float32": lambda: X.astype(np.float32),
        "csr": lambda: sparse.csr_array(X),
        "csr32": lambda: sparse.csr_matrix(X.astype(np.float32)),
    }[storage]()


def visit(Z, rule, passes, *, bias_step=1.0, n_biases=1):
    """Visit the rows of Z in turn; ``rule(z, a, t)`` returns the step s, None to leave a alone.

    a ← a + s z, the biases (which end each weight vector) times ``bias_step``.
    """
    a = np.zeros(Z.shape[1])
    scale = np.ones((n_biases, Z.shape[1] // n_biases))
    scale[:, -1] = bias_step
    updates = 0
    for _ in range(passes):
        before = updates
        for k, z in enumerate(Z):
            step = rule(k, z, a, updates + 1)
            if step is not None:
                updates += 1
                a += step * scale.ravel() * z
        if updates == before:
            break
    return a, updates


# Online rules ------------------------------------------------------------------------------


@quiet
@STORAGE
@CLASSES
@pytest.mark.parametrize("bias", ["plain", "radius"])
@pytest.mark.parametrize(
    "rate", [1.0, mm.Harmonic(8.0, 1.0), falling], ids=["constant", "c/t", "f"]
)
def test_online_perceptron_is_the_textbooks(storage, n_classes, bias, rate):
    X, y = integers(40, 4, n_classes, seed=1)
    schedule = rate if callable(rate) else lambda t: rate
    model = mm.Perceptron(
        bias=bias, learning_rate=rate, multi_class="kesler", shuffle=False, max_iter=6
    )
    model.fit(stored(X, storage), y)
    a, updates = visit(
        materialised(X, y, n_classes),
        lambda k, z, a, t: schedule(t) if z @ a <= 0 else None,
        passes=6,
        bias_step=1.0 if bias == "plain" else (X**2).sum(axis=1).max(),
        n_biases=n_classes if n_classes > 2 else 1,
    )
    np.testing.assert_allclose(weights_of(model), a, rtol=0, atol=ROUNDING * np.abs(a).max())
    assert model.n_updates_ == updates


@quiet
@STORAGE
@CLASSES
@pytest.mark.parametrize("beta", [0.4, 1.0, 1.9])
def test_online_relaxation_is_the_textbooks(storage, n_classes, beta):
    X, y = cloud(40, 4, n_classes, seed=2)
    X = X.astype(np.float32).astype(float)
    model = mm.Relaxation(
        relaxation=beta, margin=2.0, tol=0.0, multi_class="kesler", shuffle=False, max_iter=5
    )
    model.fit(stored(X, storage), y)
    a, updates = visit(
        materialised(X, y, n_classes),
        lambda k, z, a, t: beta * (2.0 - z @ a) / (z @ z) if z @ a <= 2.0 else None,
        passes=5,
    )
    np.testing.assert_allclose(weights_of(model), a, rtol=0, atol=1e-10 * np.abs(a).max())
    assert model.n_updates_ == updates


@quiet
@STORAGE
@CLASSES
def test_online_lms_is_the_textbooks(storage, n_classes):
    X, y = cloud(30, 4, n_classes, seed=3)
    X = X.astype(np.float32).astype(float)
    rate = mm.Harmonic(0.5, 10.0)
    model = mm.LMS(learning_rate=rate, tol=0.0, multi_class="kesler", shuffle=False, max_iter=4)
    model.fit(stored(X, storage), y)
    a, updates = visit(
        materialised(X, y, n_classes), lambda k, z, a, t: rate(t) * (1.0 - z @ a), passes=4
    )
    np.testing.assert_allclose(weights_of(model), a, rtol=0, atol=ROUNDING * np.abs(a).max())
    assert model.n_updates_ == updates == 4 * len(materialised(X, y, n_classes))


@quiet
@CLASSES
@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: mm.Perceptron(max_iter=4), lambda z, a: 1.0 if z @ a <= 0 else None),
        (
            lambda: mm.Relaxation(relaxation=0.3, tol=0.0, max_iter=4),
            lambda z, a: 0.3 * (1 - z @ a) / (z @ z) if z @ a <= 1 else None,
        ),
    ],
    ids=["perceptron", "relaxation"],
)
def test_weight_is_that_many_visits_in_a_row(make, rule, n_classes):
    X, y = integers(24, 3, n_classes, seed=4)
    weight = np.random.default_rng(4).integers(1, 5, size=24)
    model = make().set_params(multi_class="kesler", shuffle=False).fit(X, y, weight)
    Z = materialised(X, y, n_classes)
    Z = np.repeat(Z, np.repeat(weight, n_classes - 1), axis=0)
    a, _ = visit(Z, lambda k, z, a, t: rule(z, a), passes=4)
    np.testing.assert_allclose(weights_of(model), a, rtol=0, atol=1e-10 * np.abs(a).max())


@quiet
@pytest.mark.parametrize("max_iter", [1, 3, 7])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_perceptron_is_scikit_learns(max_iter, n_classes):
    X, y = cloud(120, 5, n_classes, seed=5)
    ours = mm.Perceptron(shuffle=False, max_iter=max_iter).fit(X, y)
    theirs = SklearnPerceptron(shuffle=False, tol=None, max_iter=max_iter).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)


@quiet
def test_shuffled_passes_visit_every_row_once_in_a_new_order():
    X, y = cloud(50, 2, seed=6)
    recorder = mm.Recorder(every_update=True)
    mm.LMS(learning_rate=0.01, shuffle=True, random_state=3, max_iter=2, tol=0.0,
           callback=recorder).fit(X, y)  # fmt: skip
    visited = [step.sample for step in recorder.steps if step.sample is not None]
    assert sorted(visited[:50]) == sorted(visited[50:]) == list(range(50))
    assert visited[:50] != visited[50:]
    expected = np.random.RandomState(3)
    assert visited == [*expected.permutation(50), *expected.permutation(50)]


# Compiled code -----------------------------------------------------------------------------


def arguments(storage, n_classes, law, tau):
    X, y = cloud(30, 4, n_classes, seed=7)
    rng = np.random.default_rng(7)
    order = rng.permutation(30)
    gain = rng.choice([0.5, 1.0, 3.0], size=30)
    rates = np.full(200, 0.3)
    rows, index = rows_of(stored(X, storage)), np.arange(30)
    if n_classes == 2:
        a = np.zeros(5)
        return rows, index, 2.0 * y - 1, 1.5, a, order, np.ones(30), gain, rates, tau, 0.0, law
    a = np.zeros((n_classes, 5))
    return rows, index, y, 1.5, a, order, np.ones((30, n_classes - 1)), gain, rates, tau, 0.0, law


@STORAGE
@CLASSES
@pytest.mark.parametrize(
    ("law", "tau"),
    [(online.FIXED_INCREMENT, 0.0), (online.RELAXATION, 0.9), (online.WIDROW_HOFF, np.inf)],
    ids=["fixed", "relaxation", "widrow-hoff"],
)
def test_compiled_pass_equals_its_python(storage, n_classes, law, tau):
    kernel = online.signed_pass if n_classes == 2 else online.kesler_pass
    compiled, plain = (arguments(storage, n_classes, law, tau) for _ in range(2))
    seen, expected = kernel(*compiled), kernel.py_func(*plain)
    np.testing.assert_allclose(seen, expected, rtol=1e-9)
    np.testing.assert_allclose(compiled[4], plain[4], rtol=1e-9, atol=ROUNDING)
    assert np.abs(compiled[4]).max() > 0


@CLASSES
def test_pass_stops_when_the_rates_are_used_up(n_classes):
    args = list(arguments("float64", n_classes, online.FIXED_INCREMENT, 0.0))
    args[8] = args[8][: max(2, n_classes - 1)]
    visited, _, updates, *_ = (online.signed_pass if n_classes == 2 else online.kesler_pass)(*args)
    assert 0 < updates <= args[8].size
    assert visited < 30


@STORAGE
@CLASSES
@pytest.mark.parametrize("limit", [np.inf, 4.0])
def test_compiled_count_equals_its_python_and_numpy(storage, n_classes, limit):
    X, y = cloud(60, 4, n_classes, seed=8)
    rng = np.random.default_rng(8)
    a = rng.normal(size=(1 if n_classes == 2 else n_classes, 5))
    weights = rng.integers(1, 4, size=60).astype(float)
    labels = 2.0 * y - 1 if n_classes == 2 else y
    kernel = pocket.signed_wrong if n_classes == 2 else pocket.kesler_wrong
    args = (rows_of(stored(X, storage)), np.arange(60), labels, a, weights, limit)
    counted = kernel(*args)
    assert counted == kernel.py_func(*args)
    wrong = (materialised(X, y, n_classes) @ a.ravel() <= 0).reshape(60, -1).any(axis=1)
    assert counted == weights[wrong].sum() if limit == np.inf else limit <= counted < limit + 3


@pytest.mark.parametrize("at_most", [1, 100])
def test_compiled_dual_pass_equals_its_python(at_most):
    X, y = cloud(25, 3, seed=9)
    K = X @ X.T
    rng = np.random.default_rng(9)
    gain = rng.choice([0.5, 1.0, 4.0], size=25)

    def run(kernel):
        decision, alpha, bias = np.zeros(25), np.zeros(25), np.zeros(1)
        seen = []
        position = 0
        while position < 25:
            position, *rest = kernel(
                K, decision, 2.0 * y - 1, gain, alpha, bias, 2.0, position, at_most
            )
            seen.append((position, *rest))
        return np.array(seen), decision, alpha, bias

    for ours, plain in zip(
        run(kernel_perceptron.dual_pass), run(kernel_perceptron.dual_pass.py_func), strict=True
    ):
        np.testing.assert_allclose(ours, plain, rtol=1e-9, atol=ROUNDING)
    decision, alpha, bias = run(kernel_perceptron.dual_pass)[1:]
    np.testing.assert_allclose(decision, K @ (alpha * (2.0 * y - 1)), atol=1e-10)
    assert bias[0] == pytest.approx(2.0 * alpha @ (2.0 * y - 1))


# Batch rules -------------------------------------------------------------------------------


@quiet
@CLASSES
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_batch_perceptron_is_the_textbooks(n_classes, steps):
    X, y = integers(30, 3, n_classes, seed=10)
    v = np.random.default_rng(10).integers(1, 4, size=30).astype(float)
    rate = mm.Harmonic(6.0, 1.0)
    model = mm.Perceptron(
        update="batch", learning_rate=rate, max_iter=steps, multi_class="kesler"
    ).fit(X, y, v)
    Z = materialised(X, y, n_classes)
    V = np.repeat(v, n_classes - 1)
    a = np.zeros(Z.shape[1])
    objectives = []
    for t in range(1, steps + 1):
        wrong = Z @ a <= 0
        objectives.append(-(V[wrong] * (Z @ a)[wrong]).sum())
        a += rate(t) * (V[wrong, np.newaxis] * Z[wrong]).sum(axis=0)
    np.testing.assert_allclose(weights_of(model), a, rtol=0, atol=ROUNDING * np.abs(a).max())
    np.testing.assert_allclose(model.trace_.objective, objectives, rtol=1e-10)


@quiet
@CLASSES
@pytest.mark.parametrize("beta", [0.01, 0.1])
def test_batch_relaxation_is_the_textbooks_while_it_descends(n_classes, beta):
    X, y = blobs(20, 3, n_classes, seed=11)
    model = mm.Relaxation(
        update="batch", relaxation=beta, margin=1.5, tol=0.0, max_iter=5, multi_class="kesler"
    ).fit(X, y)
    Z = materialised(X, y, n_classes)
    a = np.zeros(Z.shape[1])
    for _ in range(5):
        short = Z @ a <= 1.5
        steps = beta * (1.5 - Z @ a) / (Z**2).sum(axis=1)
        a += (steps[short, np.newaxis] * Z[short]).sum(axis=0)
    np.testing.assert_allclose(weights_of(model), a, rtol=1e-10, atol=ROUNDING)


@quiet
@CLASSES
def test_batch_lms_is_the_textbooks(n_classes):
    X, y = cloud(20, 3, n_classes, seed=12)
    model = mm.LMS(
        update="batch", learning_rate=0.005, tol=0.0, max_iter=7, multi_class="kesler"
    ).fit(X, y)
    Z = materialised(X, y, n_classes)
    a = np.zeros(Z.shape[1])
    for _ in range(7):
        a += 0.005 * Z.T @ (1.0 - Z @ a)
    np.testing.assert_allclose(weights_of(model), a, rtol=1e-10, atol=ROUNDING)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**20), beta=st.floats(0.05, 1.95))
def test_batch_relaxation_never_runs_away(seed, beta):
    X, y = cloud(30, 3, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mm.Relaxation(update="batch", relaxation=beta, max_iter=200).fit(X, y)
    assert model.status_ is not mm.Status.DIVERGED
    Z = materialised(X, y)
    highest = 0.5 * (1.0 / (Z**2).sum(axis=1)).sum()
    assert model.trace_.objective[-1] <= 4.1 * highest


@quiet
def test_batch_relaxation_stays_near_the_points():
    """Steps that divided by slopes of rounding once led to |w| of 1e15, called converged."""
    everything = itertools.combinations_with_replacement(range(-2, 3), 4)
    for points in itertools.islice(everything, None, None, 4):
        X = np.array(points, dtype=float)[:, np.newaxis]
        for y in ([-1, 1, 1, 1], [-1, -1, 1, 1], [-1, 1, -1, 1], [-1, 1, 1, -1]):
            model = mm.Relaxation(update="batch", max_iter=300).fit(X, y)
            assert np.abs(weights_of(model)).max() < 100.0
            if model.status_ is mm.Status.CONVERGED:
                assert model.separates_
                assert (np.array(y) * model.decision_function(X)).min() >= 0.999


@quiet
@pytest.mark.parametrize("beta", [0.5, 1.0, 1.7])
def test_weights_of_batch_relaxation_are_repetitions(beta):
    for seed in range(10):
        X, y = cloud(20, 3, seed=seed)
        visits = np.random.default_rng(seed).integers(1, 4, size=20)
        model = mm.Relaxation(update="batch", relaxation=beta, max_iter=20).fit(X, y, visits)
        copies = mm.Relaxation(update="batch", relaxation=beta, max_iter=20)
        copies.fit(X.repeat(visits, axis=0), y.repeat(visits))
        np.testing.assert_allclose(weights_of(copies), weights_of(model), rtol=1e-6, atol=1e-9)


# Perceptron: bounds, dual form -------------------------------------------------------------


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
    monkeypatch.setattr(kernel_perceptron, "BLOCK", 7)
    monkeypatch.setattr("maxmargin.engines.cpu.gram.SHARE", 0.0)  # the Gram matrix is not kept
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


# Pocket ------------------------------------------------------------------------------------


@quiet
@CLASSES
@pytest.mark.parametrize("weighted", [False, True])
def test_pocket_is_never_worse_than_any_plane_seen(n_classes, weighted):
    X, y = cloud(60, 3, n_classes, seed=17)
    v = np.random.default_rng(17).integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    recorder = mm.Recorder(every_update=True)
    model = mm.Pocket(max_iter=5, multi_class="kesler", callback=recorder).fit(X, y, v)
    Z = materialised(X, y, n_classes)

    def wrong(w, b):
        margins = Z @ np.column_stack([w, b]).ravel()
        return v[(margins <= 0).reshape(60, -1).any(axis=1)].sum()

    seen = [wrong(*step.planes()) for step in recorder.steps if step.sample is not None]
    in_pocket = [wrong(*step.planes()) for step in recorder.steps if step.sample is None]
    most = np.bincount(y, weights=v).max()
    assert wrong(model.coef_, model.intercept_) == min(*seen, v.sum() - most)
    assert in_pocket == sorted(in_pocket, reverse=True)
    np.testing.assert_array_equal(model.trace_.objective, in_pocket)


@quiet
def test_pocket_says_what_ended_it():
    X, y = cloud(60, 3, seed=18)
    assert mm.Pocket(patience=30).fit(X, y).status_ is mm.Status.PATIENCE
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        limited = mm.Pocket(patience=10**9, max_iter=3).fit(X, y)
    assert limited.status_ is mm.Status.ITERATION_LIMIT
    assert limited.n_iter_ == 3
    assert mm.Pocket().fit(*blobs(60, 3)).status_ is mm.Status.CONVERGED


@quiet
def test_pockets_patience_counts_passes_since_the_last_change():
    X, y = cloud(60, 3, seed=19)
    recorder = mm.Recorder()
    model = mm.Pocket(patience=7, callback=recorder).fit(X, y)
    wrong = [step.objective for step in recorder.steps]
    assert model.status_ is mm.Status.PATIENCE
    assert len(wrong) - 1 - int(np.argmin(wrong)) == 7
    assert model.n_iter_ == len(wrong)


@quiet
def test_pocket_counts_some_corrections_of_many_samples(monkeypatch):
    X, y = cloud(200, 3, seed=20)
    every = mm.Pocket(max_iter=20).fit(X, y)
    monkeypatch.setattr(pocket, "COUNTED", 50)
    offered = []
    offer = pocket.Pocketed.offer

    def counted(self, problem, a):
        offered.append(a.copy())
        offer(self, problem, a)

    monkeypatch.setattr(pocket.Pocketed, "offer", counted)
    some = mm.Pocket(max_iter=20).fit(X, y)
    assert len(offered) <= some.n_updates_ / 16 + some.n_iter_ + 1
    assert some.score(X, y) <= every.score(X, y)
    assert some.score(X, y) >= 0.5
    apart = mm.Pocket().fit(*blobs(200, 3))
    assert apart.status_ is mm.Status.CONVERGED
    assert apart.separates_


@quiet
@pytest.mark.parametrize("order", ["sorted", "reversed", "mixed"])
def test_no_order_of_rows_leaves_the_pocket_below_the_majority(order):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 3)) * 10.0 ** rng.integers(-2, 3, size=3)
        y = (rng.random(150) < rng.uniform(0.05, 0.5)).astype(int)
        y[:2] = 0, 1
        rows = {"sorted": np.argsort(y), "reversed": np.argsort(-y), "mixed": np.arange(150)}[order]
        for shuffle in (True, False):
            model = mm.Pocket(shuffle=shuffle).fit(X[rows], y[rows])
            assert model.score(X, y) >= max(y.mean(), 1.0 - y.mean())


@quiet
@pytest.mark.parametrize("make", [mm.Perceptron, mm.LMS, mm.Relaxation, mm.Pocket])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_wine])
def test_sorted_files_do_not_matter(make, load):
    """By default: the textbook's order leaves less than the most frequent class has."""
    X, y = load(return_X_y=True)
    rows = np.argsort(y, kind="stable")
    model = make().fit(X[rows], y[rows])
    assert model.score(X, y) > np.bincount(y).max() / len(y)
    again = make().fit(X[rows], y[rows])
    np.testing.assert_array_equal(again.coef_, model.coef_)


@quiet
def test_a_generator_goes_on_from_fit_to_fit_and_none_is_another_every_time():
    X, y = cloud(60, 3, seed=21)
    for seed in (np.random.RandomState(0), None):
        first, second = (
            mm.Perceptron(random_state=seed, max_iter=3).fit(X, y).coef_ for _ in range(2)
        )
        assert not np.array_equal(first, second)


# Relaxation --------------------------------------------------------------------------------


def test_full_relaxation_lands_on_the_margin():
    X, y = cloud(20, 3, seed=20)
    recorder = mm.Recorder(every_update=True)
    with pytest.warns(ConvergenceWarning):
        mm.Relaxation(margin=2.0, max_iter=3, callback=recorder).fit(X, y)
    Z = materialised(X, y)
    steps = [step for step in recorder.steps if step.sample is not None]
    landed = [Z[step.sample] @ np.append(*step.planes()) for step in steps]
    np.testing.assert_allclose(landed, 2.0, rtol=1e-9)


@pytest.mark.parametrize("beta", [0.0, 2.0, -0.5, 2.5, np.nan])
@pytest.mark.parametrize("update", ["single", "batch"])
def test_relaxation_factor_outside_0_2_is_refused(beta, update):
    with pytest.raises(ValueError, match="relaxation"):
        mm.Relaxation(relaxation=beta, update=update).fit(*blobs(10, 2))


@pytest.mark.parametrize("update", ["single", "batch"])
def test_relaxation_ends_beyond_its_margin(update):
    X, y = blobs(40, 3, seed=21)
    model = mm.Relaxation(margin=3.0, tol=0.01, update=update, max_iter=10_000).fit(X, y)
    assert model.status_ is mm.Status.CONVERGED
    assert model.certificate_.margin > 0.99 * 3.0


# LMS ---------------------------------------------------------------------------------------


def test_lms_names_the_bound_of_a_constant_rate():
    X, y = cloud(50, 3, seed=22)
    R = np.column_stack([X, np.ones(50)])
    bound = 2.0 / np.trace(R.T @ R / 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(RuntimeWarning, match=rf"2/trace\(R\) = {bound:.4g}"):
            mm.LMS(learning_rate=1.01 * bound, max_iter=2).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            mm.LMS(learning_rate=0.99 * bound, max_iter=2).fit(X, y)
            mm.LMS(learning_rate=mm.Harmonic(1.01 * bound), max_iter=2).fit(X, y)


@quiet
@CLASSES
@pytest.mark.parametrize("options", [
    {"update": "batch", "tol": 1e-10, "max_iter": 50_000},
    {"update": "batch", "tol": 1e-10, "max_iter": 50_000, "learning_rate": 0.005},
    {"learning_rate": mm.Harmonic(5.0, 100.0), "shuffle": True, "random_state": 0,
     "max_iter": 3000},
], ids=["batch", "batch-rate", "robbins-monro"])  # fmt: skip
def test_lms_approaches_the_least_squares_plane(n_classes, options):
    X, y = cloud(40, 3, n_classes, seed=23)
    lms = mm.LMS(multi_class="kesler", **options).fit(X, y)
    exact = mm.Pseudoinverse(multi_class="kesler").fit(X, y)
    tol = 1e-6 if lms.update == "batch" else 0.02
    np.testing.assert_allclose(
        lms.decision_function(X), exact.decision_function(X), rtol=0, atol=tol
    )


@quiet
@pytest.mark.parametrize("rate", [1.0, 10.0, 1e5])
@pytest.mark.parametrize("update", ["single", "batch"])
@pytest.mark.parametrize("n", [40, 2000])
def test_divergence_leaves_a_finite_model(rate, update, n):
    X, y = cloud(n, 3, seed=24)
    model = mm.LMS(learning_rate=rate, update=update).fit(X, y)
    assert model.status_ is mm.Status.DIVERGED
    assert np.isfinite(weights_of(model)).all()
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.certificate_.margin)
    assert np.abs(weights_of(model)).max() < 1e6  # it went back to where it was best


@quiet
@pytest.mark.parametrize("n", [40, 4000])
def test_default_rate_of_batch_lms_is_stable_on_a_balanced_design(n):
    """Zᵀ1 is all but orthogonal to the direction of the largest eigenvalue of ZᵀZ."""
    X = np.tile([[2.0, 1.0], [-2.0, 1.0], [2.0, -1.0], [-2.0, -1.0]], (n // 4, 1))
    y = np.tile([1, 1, 0, 0], n // 4)
    X[0, 0] += 1e-3
    model = mm.LMS(update="batch", tol=1e-9).fit(X, y)
    assert model.status_ is mm.Status.CONVERGED
    exact = mm.Pseudoinverse().fit(X, y)
    np.testing.assert_allclose(weights_of(model), weights_of(exact), atol=1e-6)


# Pseudoinverse -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "d", "rank"), [(40, 5, 5), (40, 5, 3), (6, 20, 20), (6, 20, 2), (3000, 4, 4)]
)
@CLASSES
def test_pseudoinverse_is_numpys(n, d, rank, n_classes):
    X, y = cloud(n, rank, n_classes, seed=25)
    X = (
        X @ np.random.default_rng(25).normal(size=(rank, d))
        if rank < d
        else cloud(n, d, seed=25)[0]
    )
    model = mm.Pseudoinverse(multi_class="kesler").fit(X, y)
    Z = materialised(X, y, n_classes)
    expected = np.linalg.pinv(Z, rcond=1e-12) @ np.ones(len(Z))
    np.testing.assert_allclose(weights_of(model), expected, rtol=0, atol=1e-8)
    assert model.certificate_.holds(1e-10)


@CLASSES
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("factor", ["qr", "lsmr"])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_weights_ridge_and_margins(n_classes, ridge, factor, as_sparse, monkeypatch):
    if factor == "lsmr":
        monkeypatch.setattr(pseudoinverse, "LARGEST_FACTOR", 0)
    X, y = cloud(50, 4, n_classes, seed=26)
    rng = np.random.default_rng(26)
    v, m = rng.uniform(0.2, 3, size=50), rng.uniform(0.5, 2, size=50)
    model = mm.Pseudoinverse(ridge=ridge, margins=m, multi_class="kesler")
    model.fit(sparse.csr_array(X) if as_sparse else X, y, v)
    Z = materialised(X, y, n_classes)
    V, M = np.repeat(v, n_classes - 1), np.repeat(m, n_classes - 1)
    normal = Z.T @ (V[:, np.newaxis] * Z) + ridge * np.eye(Z.shape[1])
    expected = np.linalg.pinv(normal, rcond=1e-12) @ (Z.T @ (V * M))
    np.testing.assert_allclose(weights_of(model), expected, rtol=0, atol=SOLVE)
    assert model.certificate_.holds(1e-10)
    assert (model.n_iter_ > 1) == (factor == "lsmr")


def test_ridge_with_a_constant_feature_is_certified():
    X, y = cloud(30, 3, seed=27)
    X[:, 1] = 5.0
    model = mm.Pseudoinverse(ridge=1.0).fit(X, y)
    assert model.coef_[0, 1] == 0.0
    assert model.certificate_.holds(1e-8), str(model.certificate_)


@pytest.mark.parametrize("seed", range(4))
def test_fishers_direction(seed):
    X, y = cloud(70, 4, seed=seed)
    X, y = X[20:], (X[20:, 0] > 0.8).astype(int)  # classes of different sizes
    w = mm.Pseudoinverse(margins="fisher").fit(X, y).coef_[0]
    within = sum(np.cov(X[y == k].T, ddof=0) * (y == k).sum() for k in (0, 1))
    expected = np.linalg.solve(within, X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).coef_[0]
    for direction in (expected, theirs):
        cosine = w @ direction / np.linalg.norm(w) / np.linalg.norm(direction)
        assert cosine == pytest.approx(1.0, abs=1e-12)
    assert mm.Pseudoinverse(margins="fisher").fit(X, y).decision_function(
        X.mean(axis=0)[np.newaxis]
    ) == pytest.approx(0.0, abs=1e-12)  # DHS 5.8.2: the plane passes through the grand mean


SCALES = np.array([1e-8, 1e-4, 1.0, 1e4, 1e8])


@pytest.mark.parametrize("extra", ["nothing", "a constant column", "a column twice"])
def test_badly_scaled_columns_do_not_change_the_plane(extra):
    X, y = cloud(60, 5, seed=28)
    X[:, 0] += 2.0 * y  # the smallest column matters most
    columns = {
        "nothing": [],
        "a constant column": [np.full(60, 3.0)],
        "a column twice": [X[:, 2] * SCALES[2]],
    }[extra]
    model = mm.Pseudoinverse().fit(np.column_stack([X * SCALES, *columns]), y)
    expected = mm.Pseudoinverse().fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(np.column_stack([X * SCALES, *columns])),
        expected.decision_function(X),
        atol=1e-6,
    )
    assert model.certificate_.holds(1e-10)


# Ho–Kashyap --------------------------------------------------------------------------------


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


def test_ho_kashyap_warm_start_goes_on():
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
    monkeypatch.setattr("maxmargin.solvers.separating.pseudoinverse.LARGEST_FACTOR", 0)
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
