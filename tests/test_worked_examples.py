"""The bundled worked examples (AND, XOR, six points, fruit), exactly, for every algorithm."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.algorithms import ALGORITHMS, GUARANTEED, falling, over, weights_of

AND = mm.datasets.load_and(return_X_y=True)
XOR = mm.datasets.load_xor(return_X_y=True)
SIX = mm.datasets.load_six_points(return_X_y=True)
FRUIT = mm.datasets.load_fruit()
SEPARABLE = {
    frozenset(pair.split("-"))
    for pair in (
        "apple-banana", "apple-lemon", "banana-lemon", "banana-orange", "banana-pear",
        "lemon-orange",
    )
}  # fmt: skip


# AND ----------------------------------------------------------------------------------------------


@over(ALGORITHMS)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "kesler"])
def test_and_is_separated(algorithm, multi_class):
    if multi_class == "kesler" and not algorithm.kesler:
        pytest.skip("a kernel has no linear machine")
    X, y = AND
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = algorithm.make(multi_class=multi_class, max_iter=20_000).fit(X, y)
    # The steps of LMS at a constant rate do not vanish: it converges in the mean only.
    assert model.status_ is mm.Status.CONVERGED or algorithm.name == "lms-rate"
    assert model.separates_
    assert (y * model.decision_function(X) > 0).all()
    assert model.certificate_.separates


RATES = [0.01, 1.0, 100.0, mm.Constant(0.3), mm.Harmonic(), mm.Harmonic(5.0, 2.0), falling]


@pytest.mark.parametrize("update", ["single", "batch"])
@pytest.mark.parametrize("bias", ["plain", "radius"])
@pytest.mark.parametrize("rate", RATES, ids=lambda rate: getattr(rate, "__name__", str(rate)))
@pytest.mark.parametrize("init", ["zeros", "random"])
def test_every_perceptron_separates_and(update, bias, rate, init):
    X, y = AND
    model = mm.Perceptron(
        update=update, bias=bias, learning_rate=rate, init=init, random_state=0, max_iter=100_000
    ).fit(X, y)
    assert model.separates_
    assert model.status_ is mm.Status.CONVERGED


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0, 1.5, 1.9])
@pytest.mark.parametrize("update", ["single", "batch"])
def test_every_relaxation_separates_and(update, beta):
    X, y = AND
    model = mm.Relaxation(update=update, relaxation=beta, max_iter=10_000).fit(X, y)
    assert model.separates_
    assert model.status_ is mm.Status.CONVERGED


@pytest.mark.parametrize(
    "kernel", ["linear", "poly", "rbf", mm.kernels.Linear() + mm.kernels.RBF(1.0)]
)
def test_every_kernel_separates_and(kernel):
    X, y = AND
    model = mm.KernelPerceptron(kernel=kernel, coef0=1.0).fit(X, y)
    assert model.separates_
    np.testing.assert_array_equal(model.predict(X), y)


def test_least_squares_of_and_exactly():
    """Normal equations of (0,0)−, (0,1)−, (1,0)−, (1,1)+ : w = (1, 1), b = −3/2."""
    X, y = AND
    for model in (
        mm.Pseudoinverse().fit(X, y),
        mm.LMS(update="batch", tol=1e-12, max_iter=10_000).fit(X, y),
    ):
        np.testing.assert_allclose(weights_of(model), [1.0, 1.0, -1.5], atol=1e-9)
    assert mm.Pseudoinverse().fit(X, y).certificate_.residual == pytest.approx(1.0)


@pytest.mark.parametrize("update", ["single", "batch"])
@pytest.mark.parametrize("rate", [0.1, 0.01, 0.3, mm.Harmonic()], ids=str)
def test_a_perceptron_that_has_converged_separates(update, rate):
    """Of rates that are no binary fractions: 0.3 + 0.3 − 0.6 > 0 by rounding is a mistake."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        X = rng.integers(-3, 4, size=(12, 2)).astype(float)
        y = X @ rng.integers(-2, 3, size=2) + 0.5 > 0
        if y.all() or not y.any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = mm.Perceptron(update=update, learning_rate=rate, max_iter=5000).fit(X, y)
        assert model.separates_ or model.status_ is not mm.Status.CONVERGED


def test_perceptron_of_and_by_hand():
    """From zero, in turn: the corrections of the textbook, to the last one."""
    X, y = AND
    recorder = mm.Recorder(every_update=True)
    model = mm.Perceptron(shuffle=False, callback=recorder).fit(X, y)
    a, mistakes = np.zeros(3, dtype=int), []
    while True:
        before = len(mistakes)
        for k in range(4):
            z = int(y[k]) * np.array([*X[k].astype(int), 1])
            if z @ a <= 0:
                a = a + z
                mistakes.append(k)
        if len(mistakes) == before:
            break
    assert [step.sample for step in recorder.steps if step.sample is not None] == mistakes
    np.testing.assert_array_equal(weights_of(model), a)


# XOR ----------------------------------------------------------------------------------------------


@over([a for a in ALGORITHMS if a.name != "kernel-rbf"])
def test_xor_is_not_separated_and_says_so(algorithm):
    X, y = XOR
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patience = {"patience": 50} if algorithm.name == "pocket" else {}
        model = algorithm.make(max_iter=200, **patience).fit(X, y)
    assert not model.separates_
    assert model.certificate_.n_errors >= 1
    assert np.isfinite(model.decision_function(X)).all()
    if algorithm.guaranteed:
        assert model.status_ is not mm.Status.CONVERGED
        told = any(issubclass(w.category, ConvergenceWarning) for w in caught)
        assert told or model.status_ in (mm.Status.PATIENCE, mm.Status.INSEPARABLE)


def test_ho_kashyap_refutes_xor_exactly():
    X, y = XOR
    model = mm.HoKashyap().fit(X, y)
    assert model.status_ is mm.Status.INSEPARABLE
    assert [Fraction(share) for share in model.multipliers_[0]] == [Fraction(1, 4)] * 4
    assert model.certificate_.refutes
    assert model.certificate_.refutation == 0.0


def test_separability_refutes_xor_at_the_origin():
    report = mm.separability(*XOR)
    assert report.separable is False
    np.testing.assert_array_equal(report.common_point, [0.0, 0.0])
    np.testing.assert_allclose(report.multipliers, 0.25)
    assert "4 of the 4 samples" in str(report)


def test_pocket_gets_three_of_four_of_xor():
    X, y = XOR
    assert mm.Pocket(patience=100).fit(X, y).score(X, y) == 0.75


def test_xor_is_separated_in_the_feature_space_of_the_square():
    X, y = XOR
    model = mm.KernelPerceptron(kernel=mm.kernels.Polynomial(2, coef0=1.0)).fit(X, y)
    assert model.separates_
    features = mm.kernels.Polynomial(2, coef0=1.0).feature_map(X)
    for algorithm in GUARANTEED:
        assert algorithm.make(max_iter=20_000).fit(features, y).separates_
    widest = mm.separability(features, y, maximum_margin=True)
    assert widest.margin == pytest.approx(np.sqrt(2.0))


# Six points ---------------------------------------------------------------------------------------


@over(GUARANTEED)
def test_six_points_are_separated(algorithm):
    X, y = SIX
    model = algorithm.make(max_iter=50_000).fit(X, y)
    assert model.separates_
    if algorithm.kesler:  # no plane has a larger margin than the known one
        width = 2 * model.hyperplane_.geometric_margin(X, y)
        assert 0 < width <= 5.144957554275265 + 1e-9


def test_mistake_bounds_of_six_points():
    X, y = SIX
    widest = mm.Hyperplane([-1 / 3, 1 / 5], 2 / 15)
    R, gamma = np.sqrt(137.0), 5.144957554275265 / 2
    assert widest.geometric_margin(X, y) == pytest.approx(gamma)
    assert widest.mistake_bound(X, y) == pytest.approx((2 * R / gamma) ** 2)
    model = mm.Perceptron(bias="radius").fit(X, y)
    assert model.n_updates_ <= widest.mistake_bound(X, y)
    assert model.n_updates_ <= model.mistake_bound_


# Fruit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("i", "j"), list(combinations(range(5), 2)), ids=lambda k: str(FRUIT.target_names[k])
)
def test_pairs_of_fruit(i, j):
    rows = np.isin(FRUIT.target, (i, j))
    X, y = FRUIT.data[rows], FRUIT.target_names[FRUIT.target[rows]]
    report = mm.separability(X, y)
    assert report.separable == (frozenset(FRUIT.target_names[[i, j]]) in SEPARABLE)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    for algorithm in ALGORITHMS:
        if algorithm.name == "kernel-rbf":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            limit = 20_000 if report.separable else 200
            patience = {"patience": 2000} if algorithm.name == "pocket" else {}
            model = algorithm.make(max_iter=limit, **patience).fit(standard, y)
        if report.separable and algorithm.guaranteed:
            assert model.separates_, algorithm.name
        if not report.separable:
            assert not model.separates_, algorithm.name
        if algorithm.name == "ho-kashyap":
            assert model.refuted_ or report.separable or model.n_iter_ == 200
            assert not (model.refuted_ and report.separable)


def test_ho_kashyap_refutes_the_pairs_of_fruit_that_overlap():
    for i, j in combinations(range(5), 2):
        rows = np.isin(FRUIT.target, (i, j))
        model = mm.HoKashyap(max_iter=20_000).fit(FRUIT.data[rows], FRUIT.target[rows])
        separable = frozenset(FRUIT.target_names[[i, j]]) in SEPARABLE
        assert model.refuted_ == (not separable)
        assert model.separates_ == separable


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "kesler"])
def test_five_fruits(multi_class):
    X = (FRUIT.data - FRUIT.data.mean(axis=0)) / FRUIT.data.std(axis=0)
    model = mm.Pocket(multi_class=multi_class, patience=3000).fit(X, FRUIT.target)
    assert model.score(X, FRUIT.target) > 0.75
    assert not model.separates_
    fisher = mm.Pseudoinverse(multi_class=multi_class, margins="fisher").fit(X, FRUIT.target)
    assert fisher.certificate_.holds(1e-10)
