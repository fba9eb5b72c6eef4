"""Online rules against their formulas written out in plain NumPy, and their compiled code."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Perceptron as SklearnPerceptron

import maxmargin as mm
from maxmargin.data.normalised_samples import KeslerSamples, SignedSamples
from maxmargin.runtime.row_access import rows_of
from maxmargin.solvers.separating import compiled_passes, kernel_perceptron, online
from tests.helpers.algorithms import cloud, falling, integers, materialised, quiet, weights_of
from tests.helpers.separating import CLASSES, ROUNDING

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


# Online rules -------------------------------------------------------------------------------------


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


# Compiled code ------------------------------------------------------------------------------------


def passes(n_classes):
    return compiled_passes.PASSES[SignedSamples if n_classes == 2 else KeslerSamples]


def arguments(storage, n_classes, law, tau):
    X, y = cloud(30, 4, n_classes, seed=7)
    rng = np.random.default_rng(7)
    order = rng.permutation(30)
    gain = rng.choice([0.5, 1.0, 3.0], size=30)
    rates = np.full(200, 0.3)
    rows, index = rows_of(stored(X, storage)), np.arange(30)
    labels, n_vectors = (2.0 * y - 1, 1) if n_classes == 2 else (y, n_classes)
    a, margins = np.zeros((n_vectors, 5)), np.ones((30, n_classes - 1))
    return rows, index, labels, 1.5, a, order, margins, gain, rates, tau, 0.0, law


@STORAGE
@CLASSES
@pytest.mark.parametrize(
    ("law", "tau"),
    [(online.FIXED_INCREMENT, 0.0), (online.RELAXATION, 0.9), (online.WIDROW_HOFF, np.inf)],
    ids=["fixed", "relaxation", "widrow-hoff"],
)
def test_compiled_pass_equals_its_python(storage, n_classes, law, tau):
    kernel = passes(n_classes).correct
    compiled, plain = (arguments(storage, n_classes, law, tau) for _ in range(2))
    seen, expected = kernel(*compiled), kernel.py_func(*plain)
    np.testing.assert_allclose(seen, expected, rtol=1e-9)
    np.testing.assert_allclose(compiled[4], plain[4], rtol=1e-9, atol=ROUNDING)
    assert np.abs(compiled[4]).max() > 0


@CLASSES
def test_pass_stops_when_the_rates_are_used_up(n_classes):
    args = list(arguments("float64", n_classes, online.FIXED_INCREMENT, 0.0))
    args[8] = args[8][: max(2, n_classes - 1)]
    seen = compiled_passes.Visits(*passes(n_classes).correct(*args))
    assert 0 < seen.updates <= args[8].size
    assert seen.visited < 30


@STORAGE
@CLASSES
@pytest.mark.parametrize("limit", [np.inf, 4.0])
def test_compiled_count_equals_its_python_and_numpy(storage, n_classes, limit):
    X, y = cloud(60, 4, n_classes, seed=8)
    rng = np.random.default_rng(8)
    a = rng.normal(size=(1 if n_classes == 2 else n_classes, 5))
    weights = rng.integers(1, 4, size=60).astype(float)
    labels = 2.0 * y - 1 if n_classes == 2 else y
    kernel = passes(n_classes).count_wrong
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
