"""LinearSVC: every answer by its certificate, then by others' machines, then in everyday use.

The certificates here are made from the bare attributes of the fitted model (``coef_``,
``intercept_``, ``support_``, ``dual_coef_``) and from a problem posed by hand.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from maxmargin.engines.cpu import features as features_module
from maxmargin.engines.cpu import primal_state
from maxmargin.engines.cpu.features import Features
from maxmargin.problems import PrimalProblem
from maxmargin.runtime import threads
from maxmargin.solution import Solution
from maxmargin.solvers.primal.choice import suited
from tests.helpers.storage import DATA, thin

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
# Far above anything that these problems need: a solver that does not end fails instead.
SECONDS = 30.0


def cloud(n=N, d=4, n_classes=2, *, seed=0, gap=0.8):
    """Return X, y of classes that overlap, in an order that means nothing."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    centres = gap * rng.standard_normal((n_classes, d))
    return centres[y] + rng.standard_normal((n, d)), y


def apart(n=60, d=3, *, seed=0):
    """Return X, y of classes that a plane separates."""
    X = cloud(n, d, seed=seed)[0]
    w = np.linspace(1.0, 2.0, d)
    scores = X @ w + 0.5
    return X + np.outer(np.sign(scores) * 0.3, w / (w @ w)), (scores > 0).astype(int)


def signs(y):
    return np.where(y == np.max(y), 1.0, -1.0)


def made(**options):
    """Return the machine that the tests use: one that ends, and does the same every time."""
    return mm.LinearSVC(**{"time_limit": SECONDS, "random_state": 0, **options})


# The certificate from the attributes alone -------------------------------------------------------


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
    """Return a certificate a plane of a fitted model."""
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
    """The published certificate holds, and so does one that we make ourselves."""
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


# Every solver, loss and bias ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "csr"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_certificate_holds(solver, loss, bias, kind):
    X, y = thin(N)
    given = DATA[kind](X)
    weights = np.where(np.arange(N) % 5 == 0, 0.0, 1.0 + (np.arange(N) % 3))
    for tol in (TOL, 1e-8):
        model = made(solver=solver, loss=loss, tol=tol, **BIASES[bias]).fit(given, y)
        assert_certified(model, given, y)
        model.fit(given, y, weights)
        assert_certified(model, given, y, weights)
        assert (weights[model.support_] > 0.0).all()
    if bias == "none":
        assert model.intercept_[0] == 0.0


@pytest.mark.parametrize("C", [1e-3, 100.0, 1e5])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_holds_at_every_cost(solver, loss, C):
    X, y = cloud()
    model = made(C=C, solver=solver, loss=loss).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_holds_at_every_tolerance(tol, loss):
    X, y = cloud()
    model = made(tol=tol, loss=loss).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_holds_for_every_pair_or_class(multi_class, loss, solver):
    X, y = cloud(n_classes=4)
    model = made(multi_class=multi_class, loss=loss, solver=solver).fit(X, y)
    planes = 6 if multi_class == "ovo" else 4
    assert model.coef_.shape == (planes, 4)
    assert model.dual_coef_.shape == (planes, model.support_.size)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    ("shape", "density", "solver"),
    [
        ((100_000, 20), 1.0, "newton"),
        ((100_000, 20), 0.2, "newton"),
        ((5000, 20_000), 0.002, "coordinate-descent"),
    ],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_chooses_by_shape_and_density(shape, density, solver, loss):
    if density == 1.0:
        X = np.zeros(shape)
    else:
        stored = int(shape[0] * shape[1] * density)
        where = np.random.default_rng(0).integers(0, shape, (stored, 2)).T
        X = sparse.csr_matrix((np.ones(stored), where), shape)
    problem = PrimalProblem.of(X, np.ones(shape[0]), 1.0, loss)
    assert suited(problem, Features(X)) == solver
    # Rows that come in blocks are not visited one by one, whatever their shape.
    blocks = PrimalProblem.of(mm.RowBlocks([X]), np.ones(shape[0]), 1.0, loss)
    assert suited(blocks, Features(blocks.X)) == "newton"


# Others' machines --------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_penalised_bias_agrees_with_liblinear(loss, C, fit_intercept):
    X, y = cloud()
    options = {"C": C, "loss": loss, "fit_intercept": fit_intercept}
    ours = made(tol=TIGHT, penalize_intercept=True, **options).fit(X, y)
    theirs = svm.LinearSVC(tol=1e-10, max_iter=10**6, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_free_bias_agrees_with_libsvm(solver, C):
    X, y = cloud()
    ours = made(C=C, loss="hinge", tol=TIGHT, solver=solver).fit(X, y)
    theirs = svm.SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_agrees_with_the_kernel_machine(loss, multi_class):
    X, y = cloud(n_classes=3)
    weights = np.random.default_rng(5).uniform(0.2, 3.0, N)
    options = {"C": 2.0, "loss": loss, "multi_class": multi_class, "tol": TIGHT}
    ours = made(**options).fit(X, y, weights)
    kernel = mm.SVC(kernel="linear", **options).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, kernel.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, kernel.intercept_, atol=1e-4)
    for one, other in zip(ours.certificates_, kernel.certificates_, strict=True):
        assert one.dual == pytest.approx(other.dual, rel=1e-6)


@pytest.mark.parametrize("kind", DATA)
def test_data_of_every_kind_give_one_answer(kind):
    X, y = thin(N)
    plain = made(tol=TIGHT).fit(X, y)
    given = DATA[kind](X)
    for solver in SOLVERS:
        model = made(solver=solver, tol=TIGHT).fit(given, y)
        assert model.certificate_.holds(TIGHT)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-4)
    expected = plain.decision_function(X)
    np.testing.assert_allclose(plain.decision_function(given), expected, atol=1e-12)


def test_memory_mapped_rows(tmp_path):
    X, y = cloud()
    for dtype, order in ((np.float64, "C"), (np.float32, "C"), (np.float64, "F")):
        path = tmp_path / "rows"
        mapped = np.memmap(path, dtype=dtype, mode="w+", shape=X.shape, order=order)
        mapped[:] = X
        mapped.flush()
        rows = np.memmap(path, dtype=dtype, mode="r", shape=X.shape, order=order)
        model = made(tol=TIGHT).fit(rows, y)
        expected = made(tol=TIGHT).fit(np.array(rows), y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
        assert model.certificate_.holds(TIGHT)


# Attributes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_support_vectors_make_the_planes(kind, n_classes, multi_class):
    X, y = thin(n_classes=n_classes)
    given = DATA[kind](X)
    model = made(loss="hinge", multi_class=multi_class, tol=TIGHT, C=0.5).fit(given, y)
    planes = model.dual_coef_ @ X[model.support_]
    np.testing.assert_allclose(planes, model.coef_, atol=1e-3)
    assert (np.diff(model.support_) > 0).all()
    assert 0 < model.support_.size < len(y)
    assert np.abs(model.dual_coef_).max() <= 0.5 * (1.0 + 1e-9)
    assert np.abs(model.dual_coef_).max(axis=0).min() > 0.0  # each is of use to some plane
    # Every sample with a slack is one of them.
    if n_classes == 2:
        slack = 1.0 - signs(y) * model.decision_function(given)
        assert set(np.flatnonzero(slack > 1e-3)) <= set(model.support_)
        np.testing.assert_allclose(model.dual_coef_.sum(), 0.0, atol=1e-9)


def test_the_plane_of_two_classes():
    X, y = cloud(d=2)
    model = made().fit(X, y)
    plane = model.hyperplane_
    np.testing.assert_array_equal(plane.w, model.coef_[0])
    assert plane.b == model.intercept_[0]
    np.testing.assert_allclose(X @ plane.w + plane.b, model.decision_function(X), atol=1e-12)
    many = made().fit(*cloud(n_classes=3))
    with pytest.raises(AttributeError, match="3 planes"):
        _ = many.hyperplane_


def test_before_a_fit_there_is_nothing():
    model = mm.LinearSVC()
    for name in ("coef_", "dual_coef_", "classes_"):
        assert not hasattr(model, name)
    for use in (lambda: model.hyperplane_, lambda: model.predict([[0.0]])):
        with pytest.raises(NotFittedError):
            use()


def test_two_classes_are_one_plane_under_every_name():
    X, y = cloud()
    plain = made(loss="hinge", tol=TIGHT).fit(X, y)
    for multi_class in ("ovo", "crammer_singer"):
        other = made(loss="hinge", tol=TIGHT, multi_class=multi_class).fit(X, y)
        np.testing.assert_array_equal(other.coef_, plain.coef_)
        assert isinstance(other.certificate_, type(plain.certificate_))


def test_the_joint_machine_of_three_classes():
    X, y = cloud(n_classes=3)
    model = made(loss="hinge", multi_class="crammer_singer").fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.certificate_.holds(TOL)
    assert len(model.certificates_) == 1
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize(
    ("options", "told"),
    [({"solver": "newton"}, "solver='newton'"), ({"C": np.inf}, "C=inf")],
    ids=["solver", "hard margin"],
)
def test_what_the_joint_machine_does_not_do_is_named(options, told):
    model = made(loss="hinge", multi_class="crammer_singer", **options)
    with pytest.raises(ValueError, match=told):
        model.fit(*cloud(n_classes=3))
    assert not hasattr(model, "classes_")


# Weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_8_weight_2_is_the_same_sample_twice(solver, n_classes, loss):
    X, y = cloud(n_classes=n_classes)
    twice = np.arange(N) % 3 == 0
    model = made(solver=solver, loss=loss, tol=TIGHT).fit(X, y, np.where(twice, 2.0, 1.0))
    copies = clone(model).fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
    np.testing.assert_allclose(copies.coef_, model.coef_, atol=2e-4)
    np.testing.assert_allclose(copies.intercept_, model.intercept_, atol=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_8_whole_weights_are_repetitions_and_the_kernel_machine_agrees(solver, loss):
    """The bias too, which few samples of a hinge leave undecided within an interval."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d, C = int(rng.integers(4, 14)), int(rng.integers(1, 4)), 10.0 ** rng.uniform(-3, 1)
        X, weights = rng.standard_normal((n, d)), rng.integers(1, 4, n)
        y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1, -1)
        y[:2] = 1, -1
        model = made(C=C, solver=solver, loss=loss, tol=1e-11).fit(X, y, weights)
        copies = clone(model).fit(X.repeat(weights, axis=0), y.repeat(weights))
        kernel = mm.SVC(C=C, kernel="linear", loss=loss, tol=1e-9).fit(X, y, weights)
        for other in (copies, kernel):
            np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-5)
            np.testing.assert_allclose(other.intercept_, model.intercept_, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("x", "y", "C", "middle"),
    [
        ([-1.0, 1.0], [0, 1], 0.1, 0.0),
        ([-1.0, 3.0], [0, 1], 0.1, -0.4),
        ([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1], 0.01, -0.03),
    ],
)
def test_a_bias_that_is_not_unique_is_the_middle_of_its_interval(solver, x, y, C, middle):
    """Every α is C: w = C Σ yx, and slopes of P in b are 0 between two breaks y − wx."""
    X = np.array(x)[:, np.newaxis]
    model = made(C=C, loss="hinge", solver=solver, tol=1e-10).fit(X, y)
    assert np.abs(model.dual_coef_) == pytest.approx(C, rel=1e-6)
    breaks = np.sort(signs(np.array(y)) - model.coef_[0, 0] * np.array(x))
    half = len(x) // 2
    assert model.intercept_[0] == pytest.approx(breaks[half - 1 : half + 1].mean(), abs=1e-6)
    assert model.intercept_[0] == pytest.approx(middle, abs=1e-6)


@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_weight_0_is_no_sample(solver, multi_class, C):
    X, y = cloud(n_classes=3) if C == 1.0 else apart()
    absent = np.arange(len(y)) % 4 == 1
    labels = np.where(absent, 77, y)  # not even their class is seen
    model = made(C=C, solver=solver, multi_class=multi_class, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, labels, (~absent).astype(float))
        without = clone(model).fit(X[~absent], y[~absent])
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    np.testing.assert_allclose(model.coef_, without.coef_, atol=1e-3)
    assert not absent[model.support_].any()


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0}], ids=["balanced", "dict"])
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_classes_are_costs(loss, class_weight):
    X, y = cloud()
    y = np.where(np.arange(N) < 150, 0, y)
    weights = np.random.default_rng(5).uniform(0.2, 3.0, N)
    model = made(loss=loss, class_weight=class_weight, tol=1e-8).fit(X, y, weights)
    of_class = {0: 1.0, 1: 3.0}
    if class_weight == "balanced":
        of_class = {k: weights.sum() / (2 * weights[y == k].sum()) for k in (0, 1)}
    combined = weights * np.where(y == 1, of_class[1], of_class[0])
    plain = made(loss=loss, tol=1e-8).fit(X, y, combined)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
    for certificate in certificates(model, X, y, combined):
        assert certificate.holds(1.001e-8)


# The hard margin ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize("kind", ["float64", "csr", "blocks"])
def test_six_points(solver, kind):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    if kind == "blocks" and solver == "coordinate-descent":
        pytest.skip("visits rows in any order")
    given = mm.RowBlocks([X[:2], X[2:]]) if kind == "blocks" else DATA[kind](X)
    model = made(C=np.inf, solver=solver, tol=1e-10).fit(given, y)
    np.testing.assert_allclose(model.coef_, [[-1 / 3, 1 / 5]], atol=1e-6)
    assert model.intercept_[0] == pytest.approx(2 / 15, abs=1e-5)
    np.testing.assert_array_equal(model.support_, [0, 2, 4])
    np.testing.assert_allclose(model.dual_coef_, [[8 / 225, 1 / 25, -17 / 225]], atol=1e-6)
    assert model.certificate_.holds(1e-10)
    assert model.certificate_.dual == pytest.approx(17 / 225, rel=1e-9)
    assert model.hyperplane_.margin_width() == pytest.approx(5.144957554, rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_six_points_do_not_take_hundreds_of_steps(solver):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    assert made(C=np.inf, solver=solver, tol=1e-10).fit(X, y).n_iter_ <= 100


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", ["free", "penalised"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_and_is_separated(solver, bias, loss):
    X, y = mm.datasets.load_and(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = made(C=np.inf, solver=solver, loss=loss, tol=1e-8, **BIASES[bias]).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.certificate_.holds(1e-8)
    margins = signs(y) * model.decision_function(X)
    assert margins.min() == pytest.approx(1.0, abs=1e-6)
    if bias == "free":
        np.testing.assert_allclose(model.coef_, [[2.0, 2.0]], atol=1e-6)
        assert model.intercept_[0] == pytest.approx(-3.0, abs=1e-6)


def inseparable():
    """Yield hard margins that do not exist."""
    X, y = mm.datasets.load_xor(return_X_y=True)
    yield "xor", X, y
    X, y = cloud(60, 2)
    yield "noise", X, y
    X, y = apart()
    yield "both labels", np.vstack([X, X[:1]]), np.append(y, 1 - y[0])


@pytest.mark.parametrize("kind", ["float64", "csr", "blocks"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", list(inseparable()), ids=lambda case: case[0])
def test_9_no_plane_is_an_error_with_its_proof(case, solver, bias, kind):
    _, X, y = case
    if kind == "blocks" and solver == "coordinate-descent":
        pytest.skip("visits rows in any order")
    given = mm.RowBlocks([X[:2], X[2:]]) if kind == "blocks" else DATA[kind](X)
    model = made(C=np.inf, solver=solver, **BIASES[bias])
    with pytest.raises(mm.NotSeparableError, match="finite C") as caught:
        model.fit(given, y)
    u = caught.value.proof.multipliers
    assert u.min() >= 0.0
    assert u.sum() > 0.0
    assert signs(y) @ u == pytest.approx(0.0, abs=1e-9 * u.sum())
    np.testing.assert_allclose((u * signs(y)) @ X, 0.0, atol=1e-9 * u.sum())
    assert not hasattr(model, "classes_")
    soft = made(C=10.0, solver=solver, **BIASES[bias]).fit(given, y)
    assert soft.certificate_.holds(TOL)


@pytest.mark.parametrize("solver", SOLVERS)
def test_9_no_plane_through_the_origin(solver):
    """Though one with a bias would do."""
    X, y = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(mm.NotSeparableError, match="finite C"):
        made(C=np.inf, fit_intercept=False, solver=solver).fit(X, y)
    assert made(C=np.inf, solver=solver).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_9_the_same_point_with_both_labels(solver, loss):
    X, y = apart()
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    model = made(solver=solver, loss=loss, tol=1e-8).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("n_jobs", [1, None])
def test_hard_margin_of_many_classes(multi_class, n_jobs):
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3
    X = 9.0 * np.eye(3)[y] + rng.uniform(-1, 1, (60, 3))
    model = made(C=np.inf, multi_class=multi_class, n_jobs=n_jobs).fit(X, y)
    assert model.score(X, y) == 1.0
    assert all(certificate.holds(TOL) for certificate in model.certificates_)
    X[0] = X[y == 1].mean(axis=0)  # in the midst of another class
    with pytest.raises(mm.NotSeparableError):
        made(C=np.inf, multi_class=multi_class, n_jobs=n_jobs).fit(X, y)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_hard_margins_of_any_scale(solver, scale):
    X, y = apart()
    exact = mm.SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    model = fitted_quietly(made(C=np.inf, solver=solver, tol=1e-6), scale * X, y)
    assert model.certificate_.holds(1e-6), str(model.certificate_)
    np.testing.assert_allclose(scale * model.coef_, exact.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_6_two_samples_are_bisected(solver):
    X = np.array([[1.0, 2.0], [4.0, -2.0]])
    for options in ({"C": np.inf}, {"C": 100.0, "loss": "hinge"}, {"C": 3.0}):
        model = made(solver=solver, tol=1e-10, **options).fit(X, [0, 1])
        assert model.hyperplane_.same_plane(mm.Hyperplane([3.0, -4.0], -7.5), tol=1e-5)
        g = model.decision_function(X)
        assert g[0] == pytest.approx(-g[1], abs=1e-5)
        if "loss" in options or np.isinf(options["C"]):
            np.testing.assert_allclose(g, [-1.0, 1.0], atol=1e-5)


# Badly scaled data -------------------------------------------------------------------------------

SCALES = {
    "1e-8 to 1e8": np.array([1e-8, 1.0, 1e8, 1.0]),
    "the useful one is large": np.array([1e8, 1e-8, 1.0, 1e4]),
    "the useful one is small": np.array([1e-8, 1e8, 1e4, 1.0]),
    "all 1e10": np.full(4, 1e10),
    "all 1e-10": np.full(4, 1e-10),
    "all 1e30": np.full(4, 1e30),
}


@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_3_bad_scales_converge_or_are_warned_of(solver, loss, scales):
    """Never a wrong answer that calls itself converged, and never without an end."""
    X, y = cloud()
    X = X * scales
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = made(solver=solver, loss=loss, max_iter=300).fit(X, y)
    others = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
    assert not others, str(others[0].message)
    assert model.status_ is not mm.Status.TIME_LIMIT
    assert np.isfinite(model.decision_function(X)).all()
    if model.status_ is mm.Status.CONVERGED:
        assert not caught
        assert model.certificate_.holds(TOL)
    else:
        assert len(caught) == 1
        assert "scale the features" in str(caught[0].message)
        # The best so far is no nonsense: without any plane the objective is N.
        assert model.certificate_.primal <= 10.0 * N


@pytest.mark.parametrize("weight", [1e-11, 1e-5, 1e5, 1e11])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_3_any_scale_with_any_weight(solver, loss, bias, weight):
    """C‖x‖² from 1e-27 to 1e27: converged, or warned of where float64 has no digits left."""
    rng = np.random.default_rng(0)
    X, y = cloud(40, 3)
    for exponent in (-8, -5, 0, 5, 8):
        scale = 10.0**exponent
        columns = (
            X * scale,
            X * [scale, 1.0, 1.0 / scale],
            np.hstack([X, np.full((40, 1), scale)]),
        )
        for x in columns:
            for weights in (np.full(40, weight), weight ** rng.uniform(-1.0, 1.0, 40)):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    model = made(solver=solver, loss=loss, **BIASES[bias]).fit(x, y, weights)
                size = weights.max() * float(np.square(x).sum(axis=1).max())
                assert model.certificate_.relative_gap <= 1.0
                assert np.isfinite(model.decision_function(x)).all()
                if size < 1e22:
                    assert not caught, (exponent, str(caught[0].message))
                if not model.certificate_.holds(TOL):
                    assert [w.category for w in caught] == [ConvergenceWarning]


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_3_far_from_the_origin(solver, offset):
    X, y = cloud()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = made(solver=solver).fit(X + offset, y)
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
    assert model.certificate_.holds(TOL) or caught
    assert model.status_ is not mm.Status.TIME_LIMIT


@pytest.mark.parametrize("scale", [1e60, 1e155, 1e300])
@pytest.mark.parametrize("solver", SOLVERS)
def test_2_values_that_overflow(solver, scale):
    X, y = cloud(60)
    model, message = made(solver=solver, max_iter=50), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.fit(X * scale, y)
        except ValueError as error:
            message = str(error)
    if message:
        assert "rescale" in message
    else:
        assert np.isfinite(model.decision_function(X * scale)).all()
        assert model.status_ is not mm.Status.CONVERGED or model.certificate_.holds(TOL)


@pytest.mark.parametrize("solver", SOLVERS)
def test_2_large_float32(solver):
    """Whose squares are not float32's any more."""
    X, y = cloud(60)
    X = (X * 1e25).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        model = made(solver=solver, max_iter=100).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.status_ is not mm.Status.CONVERGED or model.certificate_.holds(TOL)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.5])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_4_a_constant_feature_has_weight_0(solver, loss, value):
    X, y = cloud()
    widened = np.column_stack([X[:, :2], np.full(N, value), X[:, 2:]])
    plain = made(solver=solver, loss=loss, tol=TIGHT).fit(X, y)
    for rows in (widened, sparse.csr_array(widened), mm.RowBlocks([widened[:9], widened[9:]])):
        if isinstance(rows, mm.RowBlocks) and solver == "coordinate-descent":
            continue
        model = made(solver=solver, loss=loss, tol=TIGHT).fit(rows, y)
        assert model.coef_[0, 2] == 0.0
        assert model.certificate_.holds(TIGHT)
        np.testing.assert_allclose(np.delete(model.coef_, 2), plain.coef_[0], atol=1e-4)
        np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-4)


@pytest.mark.parametrize("kind", ["n < d", "rank 1", "zero column", "all zero", "all equal"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_11_rank_deficient(solver, loss, kind):
    rng = np.random.default_rng(11)
    X = {
        "n < d": rng.normal(size=(6, 30)),
        "rank 1": np.outer(rng.normal(size=6), rng.normal(size=3)),
        "zero column": np.column_stack([rng.normal(size=6), np.zeros(6)]),
        "all zero": np.zeros((6, 2)),
        "all equal": np.full((6, 2), 7.0),
    }[kind]
    y = np.array([0, 1, 0, 1, 0, 1])
    for rows in (X, sparse.csr_matrix(X)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = made(solver=solver, loss=loss, tol=1e-6).fit(rows, y)
        assert model.certificate_.holds(1e-6)
        assert np.isfinite(model.decision_function(X)).all()


# Limits, callbacks, progress ---------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_25_iteration_limit(solver, loss, n_classes):
    X, y = cloud(n_classes=n_classes)
    model = made(max_iter=1, solver=solver, loss=loss)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    for told in ("max_iter=1", "relative gap", "times as far as the narrowest", "Raise max_iter"):
        assert told in message
    assert model.status_ is mm.Status.ITERATION_LIMIT
    assert model.n_iter_ == 1
    assert not model.certificate_.holds(TOL)
    assert 0.0 < model.certificate_.gap < np.inf
    assert np.isfinite(model.decision_function(X)).all()
    assert set(model.predict(X)) <= set(range(n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_24_time_limit(solver, n_classes):
    X, y = cloud(n_classes=n_classes)
    model = mm.LinearSVC(time_limit=1e-9, solver=solver)
    with pytest.warns(ConvergenceWarning, match="time_limit") as caught:
        model.fit(X, y)
    assert "relative gap" in str(caught[0].message)
    assert model.status_ is mm.Status.TIME_LIMIT
    assert 0.0 < model.certificate_.gap < np.inf
    assert np.isfinite(model.decision_function(X)).all()


def test_24_a_hard_margin_has_limits_too():
    X, y = apart()
    for limit in ({"max_iter": 1}, {"time_limit": 1e-9}):
        with pytest.warns(ConvergenceWarning):
            model = mm.LinearSVC(C=np.inf, **limit).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        assert not model.certificate_.holds(TOL)


def test_no_limit_at_all():
    model = mm.LinearSVC(max_iter=-1).fit(*cloud())
    assert model.certificate_.holds(TOL)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_callback_sees_every_step_and_stops(solver, loss):
    X, y = cloud()
    seen = []

    def watch(step):
        seen.append((step.iteration, step.objective))
        return len(seen) == 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = made(C=100.0, tol=1e-10, solver=solver, loss=loss, callback=watch).fit(X, y)
    assert model.status_ is mm.Status.STOPPED
    assert [iteration for iteration, _ in seen] == [1, 2]
    assert model.trace_.objective.tolist() == [objective for _, objective in seen]
    assert model.n_iter_ == 2
    assert not model.certificate_.holds(1e-10)
    assert np.isfinite(model.certificate_.gap)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_recorder_keeps_what_was(solver, n_classes):
    X, y = cloud(n_classes=n_classes)
    recorder = mm.Recorder()
    model = made(callback=recorder, solver=solver).fit(X, y)
    assert {step.task for step in recorder.steps} == set(range(len(model.coef_)))
    assert sum(len(trace) for trace in model.traces_) == len(recorder.steps)
    for k, w in enumerate(model.coef_):
        last = [step for step in recorder.steps if step.task == k][-1]
        np.testing.assert_allclose(last.planes()[0][0], w, atol=0.5)
    assert_certified(model, X, y)


def test_verbose_prints_a_line_a_step(capsys):
    X, y = cloud(n_classes=3)
    model = made(verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(len(trace) for trace in model.traces_)
    for name in ("[0 against the rest]", "[2 against the rest]"):
        assert any(line.startswith(name) and "objective" in line for line in lines)
    made().fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("max_iter", [-1, 1000])
def test_progress_bars_of_scikit_learn(max_iter, capsys):
    callback = pytest.importorskip("sklearn.callback")
    X, y = cloud(n_classes=3)
    model = made(max_iter=max_iter).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "LinearSVC" in capsys.readouterr().out
    assert_certified(model, X, y)


LONG_FITS = {
    "newton": "mm.LinearSVC(loss='hinge', tol=1e-12).fit(*many(500_000, 30))",
    "coordinate-descent": "X, y = many(100_000, 30); mm.LinearSVC(C=100.0, loss='hinge', "
    "solver='coordinate-descent', tol=1e-12).fit(sparse.csr_matrix(X), y)",
}


@pytest.mark.parametrize("name", LONG_FITS)
def test_23_ctrl_c_stops_a_long_fit(interpreter, name):
    interpreter.interrupt("mm.LinearSVC().fit(*small); " + LONG_FITS[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "solver='interior-point'",
        "loss='squared_hinge', solver='newton'",
        "C=np.inf",
        "multi_class='crammer_singer'",
    ],
)
def test_23_ctrl_c_stops_other_solvers(interpreter, options):
    options = f"**{{'loss': 'hinge', 'tol': 1e-14, **dict({options})}}"
    statement = f"mm.LinearSVC({options}).fit(*many(1_000_000, 60, 3))"
    interpreter.interrupt("mm.LinearSVC().fit(*small); " + statement, wait=3.0)


# Warm starts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["newton", "coordinate-descent"])
def test_a_path_of_costs(solver, loss, n_classes):
    X, y = cloud(400, n_classes=n_classes)
    options = {"solver": solver, "loss": loss, "random_state": 0, "tol": 1e-5}
    warm = made(warm_start=True, **options)
    warm_steps = cold_steps = 0
    for C in (1.0, 1.3, 1.6, 2.0, 2.5, 2.0, 1.0):
        cold = made(C=C, **options).fit(X, y)
        warm.set_params(C=C).fit(X, y)
        assert_certified(warm, X, y)
        for one, other in zip(warm.certificates_, cold.certificates_, strict=True):
            assert one.primal == pytest.approx(other.primal, rel=1e-4)
        warm_steps += warm.n_iter_
        cold_steps += cold.n_iter_
    assert warm_steps < cold_steps


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["newton", "coordinate-descent"])
def test_the_same_fit_again_takes_few_steps(solver, loss):
    X, y = cloud()
    model = made(warm_start=True, solver=solver, loss=loss).fit(X, y)
    first, steps = model.certificate_.primal, model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ <= max(3, steps // 3)
    assert_certified(model, X, y)
    assert model.certificate_.primal <= first * (1.0 + TOL)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_warm_start_on_other_rows(solver, multi_class):
    X, y = cloud(n_classes=3)
    model = made(warm_start=True, solver=solver, multi_class=multi_class).fit(X, y)
    for rows in (np.arange(150), np.arange(N)[::-1]):
        model.fit(X[rows], y[rows])
        assert_certified(model, X[rows], y[rows])
    labels = np.where(np.arange(N) < 10, 0, y)  # as many rows, of other classes
    model.fit(X, labels)
    assert_certified(model, X, labels)
    weights = (np.arange(N) >= 10).astype(float)
    model.fit(X, y, weights)
    assert_certified(model, X, y, weights)


def test_a_warm_start_across_everything_else():
    X, y = cloud()
    model = made(warm_start=True).fit(X, y)
    for change in (
        {"loss": "hinge"}, {"penalize_intercept": True}, {"fit_intercept": False}, {"C": 1e3},
        {"C": 1e-3}, {"solver": "coordinate-descent"}, {"solver": "interior-point"},
    ):  # fmt: skip
        model.set_params(**change).fit(X, y)
        assert_certified(model, X, y)


def test_a_warm_start_from_a_cold_fit():
    X, y = cloud()
    model = made().fit(X, y)
    model.set_params(warm_start=True, C=2.0).fit(X, y)
    assert_certified(model, X, y)


def test_a_warm_start_to_and_from_the_hard_margin():
    X, y = apart()
    model = made(C=1.0, warm_start=True).fit(X, y)
    for C in (np.inf, np.inf, 2.0):
        model.set_params(C=C).fit(X, y)
        assert model.certificate_.holds(TOL)


def test_what_a_warm_start_cannot_be():
    X, y = cloud(n_classes=3)
    model = made(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start.*classes"):
        model.fit(X, y + 1)
    with pytest.raises(ValueError, match=r"warm_start.*features"):
        model.fit(X[:, :2], y)
    with pytest.raises(ValueError, match=r"warm_start.*multi_class"):
        model.set_params(multi_class="ovo").fit(X, y)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


@pytest.mark.parametrize("limit", [{"max_iter": 2}, {"time_limit": 1e-9}])
@pytest.mark.parametrize("solver", ["newton", "coordinate-descent"])
def test_a_fit_that_was_cut_short_goes_on(solver, limit):
    X, y = cloud()
    model = mm.LinearSVC(C=10.0, loss="hinge", warm_start=True, solver=solver, **limit)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    before = model.certificate_.gap
    model.set_params(max_iter=1000, time_limit=SECONDS).fit(X, y)
    assert_certified(model, X, y)
    assert model.certificate_.gap < before


# Rows in blocks ----------------------------------------------------------------------------------


def blocks_of_every_kind(X, folder):
    """Yield X in blocks, by name."""
    n = len(X)
    cuts = [slice(0, 1), slice(1, n // 2), slice(n // 2, n)]
    yield "arrays", mm.RowBlocks([X[cut] for cut in cuts])
    yield "by columns", mm.RowBlocks([np.asfortranarray(X[cut]) for cut in cuts])
    yield "float32", mm.RowBlocks([X[cut].astype(np.float32) for cut in cuts])
    yield "csr", mm.RowBlocks([sparse.csr_matrix(X[cut]) for cut in cuts])
    yield "a function", mm.RowBlocks(lambda: (X[cut] for cut in cuts))
    maps = []
    for k, cut in enumerate(cuts):
        path = folder / f"{k}.npy"
        np.save(path, X[cut])
        maps.append(np.load(path, mmap_mode="r"))
    yield "memory-mapped", mm.RowBlocks(maps)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_are_the_array(loss, multi_class, n_classes, tmp_path):
    X, y = thin(N, n_classes=n_classes)
    weights = np.where(np.arange(N) % 4 == 1, 0.0, 1.0 + np.arange(N) % 3)
    options = {"loss": loss, "multi_class": multi_class, "tol": 1e-8}
    for weight in (None, weights):
        plain = made(**options).fit(X, y, weight)
        for name, blocks in blocks_of_every_kind(X, tmp_path):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model = made(**options).fit(blocks, y, weight)
            assert_certified(model, X, y, weight)
            assert model.n_features_in_ == X.shape[1], name
            np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)
            np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-3)
            np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_blocks_of_a_wide_sparse_matrix():
    X, y = cloud(60, 300)
    X *= np.random.default_rng(3).random(X.shape) < 0.1
    blocks = mm.RowBlocks([sparse.csr_matrix(X[:20]), sparse.csr_matrix(X[20:])])
    for loss in LOSSES:
        model = made(loss=loss).fit(blocks, y)
        assert_certified(model, X, y)


@pytest.mark.parametrize("solver", ["auto", "newton", "interior-point"])
@pytest.mark.parametrize("bias", BIASES)
def test_blocks_with_every_solver_that_takes_them(solver, bias):
    X, y = cloud()
    model = made(solver=solver, **BIASES[bias]).fit(mm.RowBlocks([X[:50], X[50:]]), y)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    ("options", "n_classes", "told"),
    [
        ({"solver": "coordinate-descent"}, 2, "solver='coordinate-descent'"),
        ({"multi_class": "crammer_singer", "loss": "hinge"}, 3, "crammer_singer"),
    ],
    ids=["coordinate descent", "joint"],
)
def test_blocks_where_they_cannot_be(options, n_classes, told):
    X, y = cloud(n_classes=n_classes)
    with pytest.raises(ValueError, match=told) as caught:
        made(**options).fit(mm.RowBlocks([X]), y)
    assert "RowBlocks" in str(caught.value)


def test_blocks_go_on_from_the_last_fit():
    X, y = cloud(400)
    blocks = mm.RowBlocks([X[:100], X[100:]])
    model = made(warm_start=True, loss="hinge").fit(blocks, y)
    cold = model.n_iter_
    model.set_params(C=1.1).fit(blocks, y)
    assert model.n_iter_ < cold
    assert_certified(model, X, y)
    model.fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_block_is_named(value):
    X, y = cloud()
    X[120, 2] = value
    for make in (np.asarray, sparse.csr_matrix):
        blocks = mm.RowBlocks([make(X[:100]), make(X[100:150]), make(X[150:])])
        with pytest.raises(ValueError, match=r"Rows 100 to 149 of X: .*(NaN|infinity)"):
            made().fit(blocks, y)


def test_blocks_that_are_out_of_range():
    X, y = cloud()
    X[150:] *= 1e200
    with pytest.raises(ValueError, match="rescale"):
        made().fit(mm.RowBlocks([X[:100], X[100:]]), y)


def test_blocks_that_change_are_refused_and_leave_nothing():
    X, y = cloud()
    parts = [X[:100], X[100:]]
    blocks = mm.RowBlocks(lambda: iter(parts))
    parts.pop()
    model = made()
    with pytest.raises(ValueError, match="same in every pass"):
        model.fit(blocks, y)
    assert not hasattr(model, "classes_")


def test_labels_and_weights_of_blocks_are_checked():
    X, y = cloud()
    blocks = mm.RowBlocks([X[:100], X[100:]])
    with pytest.raises(ValueError, match="inconsistent"):
        made().fit(blocks, y[:-1])
    with pytest.raises(ValueError, match="1 class"):
        made().fit(blocks, np.zeros(N))
    with pytest.raises(ValueError, match=r"(?i)weight"):
        made().fit(blocks, y, np.ones(N - 1))
    with pytest.raises(ValueError, match=r"(?i)label|continuous"):
        made().fit(blocks, np.linspace(0, 1, N))


def test_one_class_may_be_all_of_a_block():
    X, y = cloud()
    order = np.argsort(y, kind="stable")
    model = made().fit(mm.RowBlocks([X[order][:100], X[order][100:]]), y[order])
    assert_certified(model, X[order], y[order])


# Everyday use ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_bits_twice_and_on_any_number_of_cores(solver, n_classes, monkeypatch):
    monkeypatch.setattr(threads, "_available", lambda: 2)
    monkeypatch.setattr(features_module, "TUNING", features_module.Tuning(part_numbers=1 << 9))
    monkeypatch.setattr(primal_state, "TUNING", primal_state.Tuning(part_rows=1 << 8))
    X, y = cloud(800, 6, n_classes)
    models = [
        made(solver=solver, random_state=3, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 1, 2, 2)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        np.testing.assert_array_equal(model.intercept_, models[0].intercept_)
        np.testing.assert_array_equal(model.dual_coef_, models[0].dual_coef_)


def test_the_random_state_is_the_order_of_descent():
    X, y = cloud()
    one, same, other = (
        made(solver="coordinate-descent", random_state=seed).fit(X, y) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert not np.array_equal(one.coef_, other.coef_)
    np.testing.assert_allclose(other.coef_, one.coef_, atol=near(one, X))
    state = np.random.RandomState(1)
    again = made(solver="coordinate-descent", random_state=state).fit(X, y)
    np.testing.assert_array_equal(again.coef_, one.coef_)


@pytest.fixture
def pools(monkeypatch):
    """Threads that were started, on a machine of two cores."""
    pools, start = [], threads.start_new_thread

    def started(work, arguments):
        pools.append(work)
        return start(work, arguments)

    monkeypatch.setattr(threads, "start_new_thread", started)
    monkeypatch.setattr(threads, "_available", lambda: 2)
    monkeypatch.setattr(features_module, "TUNING", features_module.Tuning(part_numbers=1 << 9))
    return pools


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_job_is_one_thread(pools, n_classes):
    X, y = cloud(900, n_classes=n_classes)
    made(n_jobs=1).fit(X, y).predict(X)
    assert not pools
    made(n_jobs=2).fit(X, y)
    assert pools  # the test sees what it is about


@pytest.mark.parametrize("kind", DATA)
def test_nothing_of_the_callers_is_changed(kind):
    X, y = thin(N)
    given, labels, weights = DATA[kind](X), y.copy(), np.ones(N)
    weights[3] = 0.0
    parts = {"labels": labels, "weights": weights}
    if sparse.issparse(given):
        names = ["data", "row", "col"] if given.format == "coo" else ["data", "indices", "indptr"]
        parts |= {name: getattr(given, name) for name in names}
    elif isinstance(given, np.ndarray):
        parts["X"] = given
    copies = {name: part.copy() for name, part in parts.items()}
    for part in parts.values():
        part.flags.writeable = False
    for solver in SOLVERS:
        made(solver=solver).fit(given, labels, weights).predict(given)
    for name, part in parts.items():
        np.testing.assert_array_equal(part, copies[name])
        assert part.dtype == copies[name].dtype


@pytest.mark.parametrize("warm_start", [False, True])
def test_pickles_and_clones(warm_start):
    X, y = cloud(n_classes=3)
    model = made(warm_start=warm_start).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate_ == model.certificate_
    assert again.get_params() == model.get_params()
    bare = clone(model)
    assert bare.get_params() == model.get_params()
    assert not hasattr(bare, "classes_")
    if warm_start:
        assert again.fit(X, y).n_iter_ <= 3


def test_a_fit_leaves_no_work_behind():
    X, y = cloud(2000)
    model = made()
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before
    # Planes, α of the support, a trace: not X.
    assert len(pickle.dumps(model)) < 12 * model.support_.size + 20_000


@pytest.mark.parametrize(
    "names",
    [np.array(["no", "yes"]), np.array([False, True]), np.array([-1.0, 1.0]), np.array([3, 900])],
    ids=["str", "bool", "float", "int"],
)
def test_14_labels_of_any_type_come_back(names):
    X, y = cloud()
    plain = made().fit(X, y)
    model = made().fit(X, names[y])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    np.testing.assert_array_equal(predicted, names[plain.predict(X)])


def test_frames_have_names():
    pandas = pytest.importorskip("pandas")
    X, y = cloud()
    columns = ["mass", "width", "height", "depth"]
    frame = pandas.DataFrame(X, columns=columns)
    labels = pandas.Series(np.where(y == 1, "apple", "pear"))
    model = made(tol=TIGHT).fit(frame, labels, pandas.Series(np.ones(N)))
    assert model.feature_names_in_.tolist() == columns
    assert model.n_features_in_ == 4
    plain = made(tol=TIGHT).fit(X, labels.to_numpy())
    np.testing.assert_allclose(
        model.decision_function(frame), plain.decision_function(X), atol=1e-4
    )  # fmt: skip
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[columns[::-1]])
    with pytest.raises(ValueError, match="2 features"):
        plain.predict(X[:, :2])
    # Blocks have no names: those of the last fit are forgotten.
    model.fit(mm.RowBlocks([X]), labels)
    assert not hasattr(model, "feature_names_in_")
    model.predict(X)


def test_a_failed_fit_leaves_the_last_model_whole():
    X, y = cloud()
    model = made().fit(X, y)
    before = model.decision_function(X)

    def failing(step):
        raise ZeroDivisionError

    model.set_params(callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, np.where(y == 1, "b", "a"))
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert set(model.predict(X)) == {0, 1}


BAD_PARAMETERS = [
    *({"C": v} for v in (0, 0.0, -1.0, np.nan, "1", None)),
    *({"tol": v} for v in (0.0, -1.0, np.nan, "1")),
    *({"max_iter": v} for v in (-2, 0, 1.5, "1")),
    *({"time_limit": v} for v in (0.0, -1.0, "1")),
    {"loss": "logistic"},
    {"solver": "liblinear"},
    {"penalize_intercept": "yes"},
    {"fit_intercept": 3},
    {"multi_class": "kesler"},
    {"callback": 3},
    {"class_weight": "heavy"},
    {"class_weight": {0: -1.0}},
    {"n_jobs": 0},
    {"n_jobs": 1.5},
    {"random_state": "seed"},
]


@pytest.mark.parametrize("options", BAD_PARAMETERS, ids=str)
def test_16_bad_parameters_are_named(options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=name) as caught:
        mm.LinearSVC(**options).fit(*cloud(20))
    assert repr(value) in str(caught.value)


# Memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_makes_no_float64_copy_of_float32_rows(loss):
    rng = np.random.default_rng(0)
    n, d = 100_000, 50
    X = rng.standard_normal((n, d), dtype=np.float32)
    y = X[:, 0] + rng.standard_normal(n, dtype=np.float32) > 0
    made(loss=loss).fit(X[:5000], y[:5000])  # what is compiled is not what is measured
    tracemalloc.start()
    try:
        model = made(loss=loss).fit(X, y)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.certificate_.holds(TOL)
    assert most < X.nbytes  # a copy in float64 would be twice that


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
def test_blocks_are_not_kept():
    """A process grows by less than half of the 400 MB that it is given, a block at a time."""
    program = textwrap.dedent("""
        import numpy as np, maxmargin as mm
        mm.LinearSVC().fit(np.eye(4), [0, 0, 1, 1])
        n, d, parts = 25_000, 50, 40
        w = np.linspace(-1, 1, d)
        def source():
            for k in range(parts):
                yield np.random.default_rng(k).standard_normal((n, d))
        y = np.concatenate([
            X @ w + np.random.default_rng(10**6 + k).standard_normal(len(X)) > 0
            for k, X in enumerate(source())
        ])
        def peak():
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
        before, size = peak(), 8 * n * d * parts / 2**20
        model = mm.LinearSVC().fit(mm.RowBlocks(source), y)
        print(model.certificate_.holds(1e-4), peak() - before < 0.5 * size)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout == "True True\n", done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_many_rows(loss, C):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300_000, 20), dtype=np.float32)
    y = (X[:, 0] + rng.standard_normal(len(X)) > 0).astype(int)
    for solver in ("newton", "interior-point"):
        model = made(solver=solver, loss=loss, C=C, time_limit=300.0).fit(X, y)
        assert_certified(model, X, y)


# What must not matter ----------------------------------------------------------------------------

few = settings(max_examples=5, deadline=None)
seeds = st.integers(0, 2**20)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
@few
@given(seed=seeds)
def test_what_the_answer_does_not_depend_on(solver, loss, seed):
    X, y = cloud(60, 3, seed=seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(60)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    model = made(solver=solver, loss=loss, tol=1e-10).fit(X, y)
    expected = model.decision_function(X)
    close = {"rtol": 0, "atol": 1e-3 * np.abs(expected).max()}
    shuffled = clone(model).fit(X[order], y[order])
    flipped = clone(model).fit(X, 1 - y)
    turned = clone(model).fit(X @ turn, y)
    moved = clone(model).fit(X + 10.0, y)
    # w of a problem in other units is other units' w: C ‖x‖² is what counts.
    scaled = clone(model).set_params(C=1.0 / 4.0).fit(2.0 * X, y)
    np.testing.assert_allclose(shuffled.decision_function(X), expected, **close)
    np.testing.assert_allclose(-flipped.decision_function(X), expected, **close)
    np.testing.assert_allclose(turned.decision_function(X @ turn), expected, **close)
    np.testing.assert_allclose(moved.decision_function(X + 10.0), expected, **close)
    np.testing.assert_allclose(scaled.decision_function(2.0 * X), expected, **close)
    assert scaled.certificate_.primal == pytest.approx(model.certificate_.primal / 4.0, rel=1e-6)


@few
@given(seed=seeds)
def test_more_costs_leave_less_slack(seed):
    X, y = cloud(60, 3, seed=seed)
    for loss in LOSSES:
        slacks = []
        for C in (0.01, 0.1, 1.0, 10.0):
            model = made(C=C, loss=loss, tol=1e-8).fit(X, y)
            slack = np.maximum(1.0 - signs(y) * model.decision_function(X), 0.0)
            slacks.append(np.sum(slack if loss == "hinge" else slack**2))
        assert (np.diff(slacks) <= 1e-4 * slacks[0]).all()
