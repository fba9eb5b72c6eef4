"""LinearSVR: answers, certificates, limits, input and what it shares with scikit-learn's."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import qp
from maxmargin.problems import PrimalProblem
from maxmargin.solution import Solution
from tests.helpers.regression import targets

LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
SOLVERS = ["auto", "newton", "interior-point", "coordinate-descent"]
BIASES = {
    "free": {},
    "penalised": {"penalize_intercept": True},
    "none": {"fit_intercept": False},
}
# A number of rows at which all ways of the solvers are short, and seconds that they never need.
N, SECONDS = 150, 30.0
# The accuracy of a quadratic program's solver, and that of planes at the tolerance of `tight`.
REFERENCE, DIGITS = 1e-6, 1e-4

losses = pytest.mark.parametrize("loss", LOSSES)
biases = pytest.mark.parametrize("bias", BIASES)
solvers = pytest.mark.parametrize("solver", SOLVERS)


def made(**options):
    """Return a machine that ends, and does the same every time."""
    return mm.LinearSVR(**{"time_limit": SECONDS, "random_state": 0, **options})


def tight(**options):
    return made(tol=1e-10, **options)


def fitted(model, X, y, weights=None):
    """Return the model after a fit that warns of nothing, certified from its bare attributes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, weights)
    proof = certificate(model, X, y, weights)
    assert proof.holds(model.tol), proof
    assert model.certificate_.holds(model.tol)
    assert model.status_ is mm.Status.CONVERGED
    return model


def certificate(model, X, y, weights=None):
    """Return the certificate of a problem posed by hand, for the attributes of a model."""
    beta, costs = np.zeros(X.shape[0]), model.C * np.ones(X.shape[0])
    beta[model.support_] = model.dual_coef_[0]
    costs *= 1.0 if weights is None else weights
    bias = "none"
    if model.fit_intercept:
        bias = "penalised" if model.penalize_intercept else "free"
    problem = PrimalProblem.of(
        X, y, costs, model.loss, bias, model.intercept_scaling, model.epsilon
    )
    plane = model.coef_[np.newaxis], model.intercept_
    return mm.certify(problem, Solution(*plane, mm.Status.CONVERGED, alpha=beta))


def objective(model, X, y, weights=1.0):
    """Return P from its definition."""
    z = np.maximum(np.abs(y - X @ model.coef_ - model.intercept_[0]) - model.epsilon, 0.0)
    slack = z**2 if model.loss == "squared_epsilon_insensitive" else z
    square = model.coef_ @ model.coef_
    if model.penalize_intercept and model.fit_intercept:
        square += (model.intercept_[0] / model.intercept_scaling) ** 2
    return 0.5 * square + float(np.sum(model.C * weights * slack))


def optimum(X, y, loss, bias, epsilon, C):
    """Return the least P, as that of a general quadratic program in (α, α*)."""
    pytest.importorskip("clarabel")
    n = y.size
    K = X @ X.T + float(bias == "penalised")
    if loss == "squared_epsilon_insensitive":
        K = K + 0.5 / C * np.eye(n)
    P = np.block([[K, -K], [-K, K]])
    G, h = -np.eye(2 * n), np.zeros(2 * n)
    if loss == "epsilon_insensitive":
        G, h = np.vstack([G, np.eye(2 * n)]), np.append(h, np.full(2 * n, C))
    A = np.append(np.ones(n), -np.ones(n))[np.newaxis] if bias == "free" else np.empty((0, 2 * n))
    program = qp.QP(P, np.append(epsilon - y, epsilon + y), G, h, A, np.zeros(len(A)))
    solved = qp.solve(program, "clarabel")
    assert solved.status is qp.QPStatus.SOLVED
    return -solved.objective


# Answers ------------------------------------------------------------------------------------------


@solvers
@biases
@losses
def test_the_answer_is_that_of_a_quadratic_program(loss, bias, solver):
    X, y = targets(60)
    for epsilon, C in ((0.0, 1.0), (0.5, 0.1), (0.3, 30.0)):
        model = made(loss=loss, epsilon=epsilon, C=C, solver=solver, tol=1e-8, **BIASES[bias])
        fitted(model, X, y)
        expected = optimum(X, y, loss, bias, epsilon, C)
        assert objective(model, X, y) == pytest.approx(expected, rel=REFERENCE)
        assert model.certificate_.primal == pytest.approx(objective(model, X, y), rel=1e-9)
        if bias == "none":
            assert model.intercept_[0] == 0.0


@losses
def test_the_answer_is_that_of_a_general_minimiser(loss):
    X, y = targets(40)
    model = fitted(tight(loss=loss, epsilon=0.2), X, y)

    def value(a):
        z = np.maximum(np.abs(y - X @ a[:-1] - a[-1]) - 0.2, 0.0)
        return 0.5 * a[:-1] @ a[:-1] + np.sum(z if loss == "epsilon_insensitive" else z**2)

    found = np.append(model.coef_, model.intercept_)
    method = {"method": "Nelder-Mead", "options": {"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-12}}
    assert value(found) <= minimize(value, found, **method).fun + 1e-8


@losses
@pytest.mark.parametrize("scaling", [1.0, 3.0])
def test_agreement_with_scikit_learn(loss, scaling):
    X, y = targets()
    options = {"loss": loss, "epsilon": 0.3, "C": 0.5, "intercept_scaling": scaling}
    theirs = sklearn.svm.LinearSVR(tol=1e-10, max_iter=1_000_000, random_state=0, **options)
    theirs.fit(X, y)
    ours = fitted(tight(penalize_intercept=True, **options), X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=DIGITS)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=DIGITS)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=DIGITS)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=DIGITS)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    assert type(ours.n_iter_) is int
    assert ours.n_features_in_ == theirs.n_features_in_


@losses
def test_agreement_with_the_kernel_machine(loss):
    X, y = targets()
    linear = fitted(tight(loss=loss, epsilon=0.3), X, y)
    kernel = mm.SVR(kernel="linear", loss=loss, epsilon=0.3, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(linear.predict(X), kernel.predict(X), atol=1e-3)
    assert linear.certificate_.primal == pytest.approx(kernel.certificate_.primal, rel=1e-5)


def test_parameters_are_those_of_scikit_learn():
    theirs = sklearn.svm.LinearSVR().get_params()
    ours = mm.LinearSVR().get_params()
    assert theirs.items() <= ours.items()


def test_attributes():
    X, y = targets()
    model = fitted(tight(epsilon=0.3), X, y)
    np.testing.assert_allclose(model.dual_coef_[0] @ X[model.support_], model.coef_, atol=DIGITS)
    assert abs(model.dual_coef_.sum()) <= 1e-10
    outside = np.abs(y - model.predict(X)) > 0.3 + DIGITS
    assert set(np.flatnonzero(outside)) <= set(model.support_)
    assert model.shape_fit_ == X.shape
    assert len(model.certificates_) == len(model.statuses_) == len(model.traces_) == 1
    assert model.predict(X).dtype == np.float64
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "decision_function")


# Storage and weights ------------------------------------------------------------------------------

KINDS = {
    "float32": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "csr": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csc": sparse.csc_matrix,
    "list": lambda X: X.tolist(),
    "blocks": lambda X: mm.RowBlocks([X[:7], X[7:100], X[100:]]),
}


@losses
@biases
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_X_give_the_same_answer(kind, bias, loss):
    X, y = targets(N)
    X = np.round(8 * X) / 8 * (np.abs(X) > 0.3)  # exact in float32
    expected = fitted(tight(loss=loss, epsilon=0.2, **BIASES[bias]), X, y)
    found = tight(loss=loss, epsilon=0.2, **BIASES[bias]).fit(KINDS[kind](X), y)
    assert found.certificate_.holds(1e-10)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=DIGITS)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=DIGITS)


@losses
@solvers
def test_weights_are_repetitions(loss, solver):
    X, y = targets(N)
    times = np.arange(N) % 3
    options = {"loss": loss, "epsilon": 0.2, "solver": solver}
    weighted = fitted(tight(**options), X, y, times.astype(float))
    repeated = fitted(tight(**options), np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=DIGITS)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=DIGITS)
    assert not set(weighted.support_) & set(np.flatnonzero(times == 0))


def test_weights_of_blocks():
    X, y = targets(N)
    weights = (np.arange(N) % 3).astype(float)
    blocks = mm.RowBlocks([X[:50], X[50:]])
    for loss in LOSSES:
        expected = fitted(tight(loss=loss, epsilon=0.2), X, y, weights)
        found = tight(loss=loss, epsilon=0.2).fit(blocks, y, weights)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=DIGITS)
        np.testing.assert_array_equal(found.support_, expected.support_)


def test_nothing_of_the_caller_changes():
    X, y = targets(N)
    weights = np.linspace(0.0, 1.0, N)
    before = [each.copy() for each in (X, y, weights)]
    for each in (X, y, weights):
        each.setflags(write=False)
    for loss in LOSSES:
        for solver in SOLVERS:
            made(loss=loss, solver=solver).fit(X, y, weights).predict(X)
    for each, kept in zip((X, y, weights), before, strict=True):
        np.testing.assert_array_equal(each, kept)


# Symmetries and scales ----------------------------------------------------------------------------


@losses
@pytest.mark.parametrize("scale", [1e-8, 1e8, 3e20])
def test_units_of_the_targets(scale, loss):
    X, y = targets(N)
    C = 1.0 if loss == "squared_epsilon_insensitive" else scale
    expected = fitted(tight(loss=loss, epsilon=0.2), X, y)
    found = fitted(tight(loss=loss, epsilon=0.2 * scale, C=C), X, scale * y)
    np.testing.assert_allclose(found.coef_ / scale, expected.coef_, atol=DIGITS)
    np.testing.assert_allclose(found.intercept_ / scale, expected.intercept_, atol=DIGITS)
    assert found.certificate_.primal == pytest.approx(
        scale**2 * expected.certificate_.primal, rel=1e-6
    )
    # What callbacks and traces see is in the caller's units, too.
    trace = found.trace_
    assert trace.primal[-1] == pytest.approx(found.certificate_.primal, rel=1e-3)


@losses
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_words_of_the_certificate_do_not_depend_on_the_units(scale, loss):
    X, y = targets(N)
    model = made(loss=loss, C=scale if loss == "epsilon_insensitive" else 1.0).fit(X, scale * y)
    assert str(model.certificate_).startswith("optimal to a relative gap")
    kernel = mm.SVR(kernel="linear", loss=loss, C=model.C, epsilon=0.0).fit(X, scale * y)
    assert max(model.certificate_.violation, kernel.certificate_.violation) < 0.02


@losses
@solvers
def test_targets_far_from_0(loss, solver):
    X, y = targets(N)
    y = np.round(y * 1024) / 1024  # exact after the shift
    options = {"loss": loss, "epsilon": 0.25, "solver": solver, "tol": 1e-6}
    expected = fitted(made(**options), X, y)
    found = fitted(made(**options), X, y + 2.0**27)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    np.testing.assert_allclose(found.intercept_ - 2.0**27, expected.intercept_, atol=1e-6)


@losses
def test_rows_far_from_0(loss):
    X, y = targets(N)
    expected = fitted(tight(loss=loss, epsilon=0.2), X, y)
    found = fitted(made(loss=loss, epsilon=0.2, tol=1e-6), X + 1e7, y)
    np.testing.assert_allclose(found.predict(X + 1e7), expected.predict(X), atol=1e-2)


@losses
def test_mirrored_targets(loss):
    X, y = targets(N)
    one, other = (fitted(tight(loss=loss, epsilon=0.2), X, sign * y) for sign in (1.0, -1.0))
    np.testing.assert_allclose(one.coef_, -other.coef_, atol=DIGITS)
    np.testing.assert_allclose(one.intercept_, -other.intercept_, atol=DIGITS)


@losses
@pytest.mark.parametrize("C", [1e-6, 1e4])
def test_outliers_and_heavy_tails(loss, C):
    X, y = targets(N)
    y = y * np.exp(3.0 * np.random.default_rng(0).standard_normal(N))
    y[:3] = 1e6, -1e8, 1e9
    fitted(made(loss=loss, C=C, epsilon=0.1), X, y)


# Degenerate answers -------------------------------------------------------------------------------


@losses
@solvers
@pytest.mark.parametrize("value", [0.0, 0.1, -1e8, 1e-300])
def test_constant_targets(value, solver, loss):
    X, _ = targets(N)
    model = fitted(made(loss=loss, solver=solver), X, np.full(N, value))
    assert not model.coef_.any()
    assert model.intercept_[0] == value
    assert model.certificate_.gap == 0.0
    assert not model.support_.size


@losses
def test_a_tube_that_holds_all_targets(loss):
    X, y = targets(N)
    half = 0.5 * float(np.ptp(y))
    for epsilon in (half, 1.5 * half, 1e6 * half):
        model = fitted(made(loss=loss, epsilon=epsilon), X, y)
        assert not model.coef_.any()
        assert np.abs(y - model.intercept_[0]).max() <= epsilon * (1.0 + 1e-15)
    model = fitted(made(loss=loss, epsilon=float(np.abs(y).max()), fit_intercept=False), X, y)
    assert not model.coef_.any()
    # A little less, and there is a slope.
    assert fitted(made(loss=loss, epsilon=0.9 * half, C=10.0), X, y).coef_.any()


@losses
@biases
def test_few_samples(bias, loss):
    X, y = targets(3)
    for n in (1, 2, 3):
        fitted(made(loss=loss, **BIASES[bias]), X[:n], y[:n])
    model = fitted(made(loss=loss), X[:1], y[:1])
    assert model.predict(X[:1])[0] == y[0]


@losses
@solvers
def test_more_features_than_samples(loss, solver):
    X, y = np.random.default_rng(0).standard_normal((20, 300)), targets(20)[1]
    model = fitted(made(loss=loss, epsilon=0.1, C=1e3, solver=solver, tol=1e-6), X, y)
    assert np.abs(y - model.predict(X)).max() <= 0.1 + 1e-2


@losses
def test_duplicate_and_constant_columns(loss):
    X, y = targets(N)
    model = fitted(tight(loss=loss), np.column_stack([X, X[:, 0], np.full(N, 5.0)]), y)
    assert model.coef_[-1] == 0.0
    assert model.coef_[0] == pytest.approx(model.coef_[-2], abs=DIGITS)


def test_interpolation_as_the_cost_grows():
    X = targets(N)[0]
    y = X @ [1.0, -2.0, 0.5] + 3.0
    for loss in LOSSES:
        model = fitted(made(loss=loss, C=1e6), X, y)
        np.testing.assert_allclose(model.predict(X), y, atol=1e-3)


# Certificates under attack ------------------------------------------------------------------------


@losses
@biases
@pytest.mark.parametrize("seed", range(5))
def test_certificates_claim_no_less_than_exact_sums(seed, bias, loss):
    """The claimed P, D and gap of any plane and β bound those of sums in more digits."""
    rng = np.random.default_rng(seed)
    n = 30
    X = rng.standard_normal((n, 3)) * 10.0 ** rng.integers(-5, 6, 3) + 10.0 ** rng.integers(-3, 7)
    y = 10.0 ** rng.integers(-6, 7) * rng.standard_normal(n) + 10.0 ** rng.integers(-3, 8)
    epsilon = float(np.abs(y).mean() * 0.1)
    problem = PrimalProblem.of(X, y, rng.uniform(0.1, 2.0, n), loss, bias, epsilon=epsilon)
    w, b = rng.standard_normal(3) / np.abs(X).max(), float(np.median(y)) * (bias != "none")
    beta = rng.uniform(-1.0, 1.0, n) * np.minimum(problem.upper, 1.0)
    if bias == "free":
        beta -= beta.mean()
        beta *= np.minimum(1.0, np.min(problem.upper / np.abs(beta)))
    claim = mm.certify(
        problem, Solution(w[np.newaxis], np.array([b]), mm.Status.STOPPED, alpha=beta)
    )
    L = np.longdouble
    r = y.astype(L) - X.astype(L) @ w.astype(L) - L(b)
    z = np.maximum(np.abs(r) - L(epsilon), 0)
    costs = problem.upper if loss == "epsilon_insensitive" else 0.5 / problem.ridge
    slack = z if loss == "epsilon_insensitive" else z**2
    primal = 0.5 * (w.astype(L) @ w.astype(L)) + np.sum(costs.astype(L) * slack)
    v, centre = beta.astype(L), L(b) if bias == "free" else L(0)
    dual = v @ (y.astype(L) - centre) - L(epsilon) * np.abs(v).sum()
    u = (X.astype(L) - (X.astype(L).mean(axis=0) if bias == "free" else 0)).T @ v
    dual -= 0.5 * (u @ u) + (0.5 * np.sum(v**2 / (2 * costs.astype(L))) if slack is not z else 0)
    if bias == "penalised":
        primal += 0.5 * L(b) ** 2
        dual -= 0.5 * v.sum() ** 2
    # β is shrunk by what rounding leaves of its sum: not less than a few units of that.
    unsure = 1e-13 * float(np.abs(v) @ np.abs(y - float(centre)) + u @ u)
    assert claim.primal >= float(primal) * (1.0 - 1e-15)
    assert claim.dual <= float(dual) + unsure
    assert claim.gap >= float(primal - dual) - unsure


@losses
def test_a_wrong_answer_is_not_certified(loss):
    X, y = targets(N)
    model = fitted(made(loss=loss, epsilon=0.1), X, y)
    for name, value in (
        ("coef_", 1.5 * model.coef_),
        ("intercept_", model.intercept_ + 1.0),
        ("dual_coef_", 0.5 * model.dual_coef_),
        ("dual_coef_", np.abs(model.dual_coef_)),
        ("dual_coef_", 1e3 * model.dual_coef_),
    ):
        wrong = pickle.loads(pickle.dumps(model))
        setattr(wrong, name, value)
        assert not certificate(wrong, X, y).holds(1e-4)


@losses
@biases
def test_large_data_take_all_ways_of_newtons_method(bias, loss):
    """Samples of the rows, rows held and not held."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 4)).astype(np.float32)
    y = X @ [1.0, 2.0, 0.0, -1.0] + rng.standard_t(2, len(X)) + 5.0
    for epsilon in (0.0, 0.7):
        fitted(made(loss=loss, epsilon=epsilon, **BIASES[bias]), X, y)


# Limits, callbacks and warm starts ----------------------------------------------------------------


@losses
@solvers
def test_an_iteration_limit_warns_and_keeps_the_best(loss, solver):
    X, y = targets(N)
    model = made(loss=loss, solver=solver, epsilon=0.1, max_iter=1, tol=1e-12, C=100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    claim = certificate(model, X, y)
    assert np.isfinite(claim.gap)
    assert claim.gap == pytest.approx(model.certificate_.gap, rel=1e-6, abs=1e-9)


def test_a_limit_that_comes_first_is_warned_of():
    X, y = targets(N)
    with pytest.warns(ConvergenceWarning, match="LinearSVR.*Raise max_iter"):
        made(max_iter=1, tol=1e-12, solver="newton").fit(X, y)


@losses
@solvers
def test_callbacks_see_planes_in_the_units_of_the_caller(loss, solver):
    X, y = targets(N)
    seen = []

    def watch(step):
        seen.append(step)
        w, _ = step.planes()
        assert w.shape == (1, 3)
        assert np.isfinite(w).all()
        return len(seen) == 2

    model = made(loss=loss, solver=solver, epsilon=1.0, tol=1e-12, callback=watch)
    model.fit(X, 1e6 * y + 1e8)
    assert len(seen) <= 2
    assert model.status_ in (mm.Status.STOPPED, mm.Status.CONVERGED)
    w, b = seen[-1].planes()
    assert np.abs(1e6 * y + 1e8 - X @ w[0] - b[0]).mean() < 1e7


@losses
@solvers
def test_a_warm_start_goes_on(loss, solver):
    X, y = targets(N)
    model = made(loss=loss, solver=solver, epsilon=0.1, warm_start=True, tol=1e-6)
    fitted(model, X, y)
    steps = model.n_iter_
    again = fitted(model, X, y).n_iter_
    if solver != "interior-point":  # which has no use for a start
        assert again <= steps
    fitted(model.set_params(C=2.0), X, y)
    fitted(model, X[:100], y[:100])
    with pytest.raises(ValueError, match="features"):
        model.fit(X[:, :2], y)


def test_answers_do_not_depend_on_the_number_of_threads():
    X, y = targets(N)
    one, two = (made(n_jobs=n, epsilon=0.1).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_clones_and_pickles():
    X, y = targets(N)
    model = fitted(made(epsilon=0.1), X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    np.testing.assert_array_equal(clone(model).fit(X, y).coef_, model.coef_)


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"epsilon": -0.1}, "'epsilon' parameter of LinearSVR must be a float in the range"),
        ({"epsilon": "1"}, "'epsilon' parameter"),
        ({"C": 0.0}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"C": np.inf}, "'C' parameter"),
        ({"C": np.nan}, "'C' parameter"),
        ({"loss": "hinge"}, "'loss' parameter of LinearSVR must be a str among"),
        ({"intercept_scaling": 0.0}, "'intercept_scaling' parameter"),
        ({"loss": "epsilon_insensitive", "dual": False}, "not supported when dual=False"),
    ],
)
def test_bad_parameters(options, match):
    X, y = targets(20)
    with pytest.raises(ValueError, match=match):
        mm.LinearSVR(**options).fit(X, y)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.full(20, np.nan), "y contains NaN"),
        (np.full(20, np.inf), "y contains infinity"),
        (np.full(20, "a"), "y must hold numbers"),
        (np.array(["a", 1] * 10, dtype=object), "could not convert|must hold numbers"),
        (np.ones((20, 2)), "1d array|y should be a 1d array"),
        (np.ones(19), "inconsistent numbers of samples"),
        (np.full(20, 1e100), "rescale y"),
        (None, "requires y"),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, lambda X: mm.RowBlocks([X])], ids=["array", "blocks"])
def test_bad_targets(y, match, kind):
    if y is None and kind is not np.asarray:
        pytest.skip("blocks come with y")
    with pytest.raises(ValueError, match=match):
        mm.LinearSVR().fit(kind(targets(20)[0]), y)


@pytest.mark.parametrize("weights", [-np.ones(20), np.zeros(20), np.full(20, np.nan), np.ones(3)])
def test_bad_weights(weights):
    X, y = targets(20)
    with pytest.raises(ValueError, match=r"weight|sample_weight|NaN"):
        mm.LinearSVR().fit(X, y, weights)


def test_blocks_do_not_allow_all():
    X, y = targets(20)
    blocks = mm.RowBlocks([X])
    with pytest.raises(ValueError, match="coordinate-descent"):
        mm.LinearSVR(solver="coordinate-descent").fit(blocks, y)
    with pytest.raises(ValueError, match="intercept_scaling"):
        mm.LinearSVR(penalize_intercept=True, intercept_scaling=2.0).fit(blocks, y)


def test_targets_of_whole_numbers_and_of_one_column():
    X, y = targets(N)
    whole = np.round(y).astype(int)
    expected = fitted(made(), X, whole.astype(float))
    np.testing.assert_array_equal(made().fit(X, whole).coef_, expected.coef_)
    with pytest.warns(UserWarning, match="column-vector"):
        np.testing.assert_array_equal(made().fit(X, whole[:, np.newaxis]).coef_, expected.coef_)


@losses
def test_a_huge_weight_hides_no_gap_of_the_other_rows(loss):
    X, y = targets(80)
    weights = np.where(np.arange(80) == 0, 1e30, 1.0)
    with pytest.warns(ConvergenceWarning):
        model = made(loss=loss).fit(X, y, sample_weight=weights)
    certificate = model.certificate_
    assert certificate.primal - certificate.dual > 1.0
    assert not certificate.holds(0.1)


@losses
def test_costs_beyond_the_range_of_products_are_one_warning(loss):
    X, y = targets(80)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made(C=1e300, loss=loss).fit(X, y)
    assert {each.category for each in caught} <= {ConvergenceWarning}
