"""The exact path over C: against single fits, by hand, on degenerate data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.model_selection import breakpoints, c_path
from maxmargin.solution import Status
from maxmargin.solvers.dual.cost_path import CostWalk, Leg, Pause

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 2))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=80) > 0.0, 1, -1)
GRID = np.round(2.0 * X)
BINARY = (RNG.random((120, 5)) > 0.5).astype(float)
COIN = np.where(RNG.random(120) > 0.5, 1, -1)
WEIGHTS = RNG.integers(0, 3, 80).astype(float)
TWICE, TWICE_Y = np.r_[X, X, X[:20]], np.r_[Y, Y, Y[:20]]

CASES = {
    "rbf": (X, Y, {}),
    "linear": (X, Y, {"kernel": "linear"}),
    "wide": (X, Y, {"kernel": "linear", "C_min": 1e-5, "C_max": 1e5}),
    "polynomial": (X, Y, {"kernel": "poly"}),
    "repeated rows": (TWICE, TWICE_Y, {}),
    "repeated rows, linear": (TWICE, TWICE_Y, {"kernel": "linear"}),
    "contradicting rows": (TWICE, np.r_[Y, -Y, Y[:20]], {}),
    "contradicting rows, linear": (TWICE, np.r_[Y, -Y, Y[:20]], {"kernel": "linear"}),
    "integers": (GRID, Y, {"C_min": 1e-4, "C_max": 1e4}),
    "integers, linear": (GRID, Y, {"kernel": "linear"}),
    "binary features": (BINARY, COIN, {"kernel": "linear"}),
    "binary features, rbf": (BINARY, COIN, {"C_max": 1e4}),
    "unbalanced": (X, np.where(X[:, 0] > 1.2, 1, -1), {"C_min": 1e-4}),
    "separable": (X + 3.0 * Y[:, None], Y, {"kernel": "linear", "C_min": 1e-4, "C_max": 1e4}),
    "class weights": (X, Y, {"class_weight": "balanced"}),
    "sample weights": (X, Y, {"sample_weight": WEIGHTS}),
    "far, linear": (X + 1e6, Y, {"kernel": "linear"}),
    "far": (X + 1e6, Y, {}),
    "CSR": (sparse.csr_matrix(GRID), Y, {}),
    "callable": (X, Y, {"kernel": lambda a, b: (a @ b.T + 1.0) ** 2}),
    "nearly constant kernel": (X, Y, {"gamma": 1e-6, "C_max": 1e5}),
    "nearly diagonal kernel": (X, Y, {"gamma": 1e4}),
    "equal rows": (np.zeros((10, 2)), np.r_[np.ones(5), -np.ones(5)], {"kernel": "linear"}),
    "equal rows, unbalanced": (np.zeros((11, 2)), np.r_[np.ones(5), -np.ones(6)], {}),
    "float32": (X.astype(np.float32), Y, {}),
}


def alpha_of(model, n):
    alpha = np.zeros(n)
    dual = model.dual_coef_
    alpha[model.support_] = np.abs(dual.toarray() if sparse.issparse(dual) else dual)[0]
    return alpha


def has_free(model, y, weights):
    """Whether some α lies between its bounds by more than rounding."""
    weights = np.ones(len(y)) if weights is None else weights
    of_class = model.class_weight_[np.searchsorted(model.classes_, y)]
    share = alpha_of(model, len(y)) / np.maximum(model.C * weights * of_class, 1e-300)
    return bool(((share > 1e-6) & (share < 1.0 - 1e-6)).any())


@pytest.mark.parametrize("name", CASES)
def test_path_is_that_of_single_fits(name):
    samples, y, options = CASES[name]
    path = c_path(samples, y, **options)
    assert path.status is Status.CONVERGED
    assert path.C[0] == options.get("C_min", 1e-2)
    assert path.C[-1] == options.get("C_max", 1e2)
    assert (np.diff(path.C) >= 0.0).all()
    assert all(each.holds(1e-6) for each in path.certificates)
    weights = options.get("sample_weight")
    single = {k: v for k, v in options.items() if k not in ("C_min", "C_max", "sample_weight")}
    ends = np.log(path.C[[0, -1]])
    for C in np.exp(np.random.default_rng(0).uniform(*ends, size=5)):
        model = path.at(C)
        fitted = mm.SVC(C=C, tol=1e-8, **single).fit(samples, y, weights)
        assert model.certificate_.holds(1e-6)
        primal = fitted.certificate_.primal
        assert model.certificate_.primal == pytest.approx(primal, rel=1e-6)
        found, expected = (each.decision_function(samples[:40]) for each in (model, fitted))
        if not has_free(fitted, y, weights):  # any b of an interval is optimal
            found, expected = found - model.intercept_, expected - fitted.intercept_
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_nearly_dependent_rows(seed):
    """On a line, kernel values of ten free samples have hardly any independent digits left."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(47, 1)), np.where(rng.random(47) < 0.3, 1, -1)
    weights = rng.integers(0, 3, 47)
    weights[np.unique(y, return_index=True)[1]] = 1
    path = c_path(X, y, C_min=0.1, C_max=10.0, sample_weight=weights)
    assert path.status is Status.CONVERGED
    assert all(each.holds(1e-6) for each in path.certificates)
    assert path.at(1.0).certificate_.holds(1e-6)


def test_row_far_from_all_others():
    samples = X.copy()
    samples[0] = 1e6
    path = c_path(samples, Y, kernel="linear")
    assert path.status is Status.CONVERGED
    assert all(each.holds(1e-6) for each in path.certificates)
    for C in np.geomspace(0.011, 99.0, 9):
        assert path.at(C).certificate_.holds(1e-6)
    # The numbers of a point are those of its α, whichever solver it is from.
    w = (path.alpha * Y) @ samples
    np.testing.assert_allclose(path.margin, 1.0 / np.linalg.norm(w, axis=1), rtol=1e-5)
    predicted = np.where(w @ samples.T + path.intercept[:, np.newaxis] >= 0.0, 1, -1)
    np.testing.assert_allclose(path.training_error, (predicted != Y).mean(axis=1), atol=2 / 80)


def test_rows_far_apart_from_all_others_end_with_a_warning():
    """Their α are known to fewer digits than the certificate sees."""
    samples = X.copy()
    samples[:2] = [[1e6], [-1e6]]
    with pytest.warns(ConvergenceWarning, match="breakpoints are not optimal.*StandardScaler"):
        path = c_path(samples, Y, kernel="linear")
    assert path.status is Status.PATIENCE
    assert path.C[-1] == 100.0
    assert any(each.holds(1e-6) for each in path.certificates)


def test_weights_below_the_rounding_of_others():
    tiny = np.where(np.arange(80) % 2, 1.0, 1e-300)
    path = c_path(X, Y, sample_weight=tiny)
    assert path.status is Status.CONVERGED
    assert path.n_resolved == 0
    assert all(each.holds(1e-6) for each in path.certificates)


def test_path_that_cannot_be_certified_has_an_end():
    with pytest.warns(ConvergenceWarning, match="breakpoints are not optimal"):
        path = c_path(1e8 * X, Y, kernel="linear", C_max=1.0)
    assert path.status is Status.PATIENCE
    assert path.C[-1] == 1.0
    assert len(path) < 100


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_alpha_is_that_of_single_fits(kernel):
    path = c_path(X, Y, kernel)
    for C in (0.0137, 0.31, 2.7, 41.0):
        single = mm.SVC(C=C, kernel=kernel, tol=1e-10).fit(X, Y)
        found = alpha_of(path.at(C), 80)
        np.testing.assert_allclose(found, alpha_of(single, 80), atol=1e-6 * C)


def test_six_points_by_hand():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    path = c_path(X, y, kernel="linear", C_min=0.01, C_max=10.0)
    # From C = 17/225 on the machine is that of the hard margin.
    np.testing.assert_allclose(path.C[-2], 17 / 225)
    np.testing.assert_allclose(225 * path.alpha[-1], [8, 0, 9, 0, 17, 0], atol=1e-9)
    np.testing.assert_allclose(path.intercept[-1], 2 / 15)
    np.testing.assert_allclose(2 * path.margin[-1], 5.144957554, rtol=1e-9)
    np.testing.assert_allclose(path.alpha[-2], path.alpha[-1], atol=1e-12)


def test_two_points_by_hand():
    path = c_path([[0.0], [1.0]], [0, 1], kernel="linear", C_min=0.5, C_max=8.0)
    np.testing.assert_allclose(path.C, [0.5, 2.0, 8.0])
    np.testing.assert_allclose(path.alpha, [[0.5, 0.5], [2.0, 2.0], [2.0, 2.0]])
    np.testing.assert_allclose(path.at(1.0).coef_, [[1.0]])
    np.testing.assert_allclose(path.margin, [2.0, 0.5, 0.5])


def test_xor_by_hand():
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]])
    path = c_path(X, [1, -1, 1, -1], "poly", degree=2, coef0=1.0, gamma=1.0)
    np.testing.assert_allclose(path.C, [0.01, 0.125, 100.0])
    np.testing.assert_allclose(path.alpha[1:], 0.125)
    np.testing.assert_allclose(path.margin[1:], np.sqrt(2.0))


def test_scikit_learn_agrees():
    path = c_path(X, Y, gamma=0.5)
    for C in (0.05, 1.0, 20.0):
        reference = svm.SVC(C=C, gamma=0.5, tol=1e-8).fit(X, Y)
        np.testing.assert_allclose(
            path.at(C).decision_function(X), reference.decision_function(X), atol=1e-5
        )


def test_numbers_along_the_path():
    path = c_path(X, Y)
    np.testing.assert_allclose(path.error(X, Y), path.training_error)
    np.testing.assert_allclose(path.score(X, Y), 1.0 - path.training_error)
    scores = path.decision_function(X[:7])
    for k in (0, len(path) // 2, len(path) - 1):
        model = path.at(path.C[k])
        np.testing.assert_allclose(scores[:, k], model.decision_function(X[:7]), atol=1e-8)
        assert model.score(X, Y) == pytest.approx(1.0 - path.training_error[k])
        assert path.n_support[k] == pytest.approx(len(model.support_), abs=1)
        report = mm.diagnostics.margin_report(model, X, Y)
        assert path.margin[k] == pytest.approx(0.5 * report.width)
        assert path.objective[k] == pytest.approx(model.certificate_.primal)
    assert (path.n_free <= path.n_support).all()
    shares = path.shares([0.05, 3.0])
    for row, C in zip(shares, (0.05, 3.0), strict=True):
        np.testing.assert_allclose(C * row, alpha_of(path.at(C), 80), atol=1e-9)
    assert f"{len(path)} breakpoints" in str(path)


def test_samples_of_weight_zero_do_not_count():
    path = c_path(X, Y, gamma=0.5, sample_weight=WEIGHTS)
    some = WEIGHTS > 0
    other = c_path(X[some], Y[some], gamma=0.5, sample_weight=WEIGHTS[some])
    np.testing.assert_allclose(path.C, other.C)
    np.testing.assert_allclose(path.alpha[:, some], other.alpha, atol=1e-9)
    assert not path.alpha[:, ~some].any()


def test_labels_of_any_type_and_precomputed_kernels():
    names = np.where(Y > 0, "yes", "no")
    path = c_path(X, names, "linear")
    assert (
        path.at(1.0).predict(X[:3]).tolist()
        == mm.SVC(kernel="linear").fit(X, names).predict(X[:3]).tolist()
    )
    given = c_path(X @ X.T, names, "precomputed")
    np.testing.assert_allclose(given.C, path.C, rtol=1e-9)
    np.testing.assert_allclose(given.error(X[:9] @ X.T, names[:9]), path.error(X[:9], names[:9]))
    with pytest.raises(ValueError, match="features"):
        given.error(X[:9] @ X[:9].T, names[:9])


def test_large_paths_are_sparse(monkeypatch):
    dense = c_path(X, Y)
    monkeypatch.setattr("maxmargin.model_selection.path.MOST_DENSE_NUMBERS", 10)
    path = c_path(X, Y)
    assert sparse.issparse(path.alpha)
    np.testing.assert_array_equal(path.alpha.toarray(), dense.alpha)
    np.testing.assert_array_equal(path.at(3.0).dual_coef_, dense.at(3.0).dual_coef_)
    np.testing.assert_array_equal(path.error(X, Y), dense.error(X, Y))


def test_results_cannot_be_changed():
    path = c_path(X, Y)
    with pytest.raises(AttributeError):
        path.C = None
    for values in (path.C, path.alpha, path.intercept):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0


class Stumbling(CostWalk):
    """A walk that errs from time to time."""

    def leg(self, C):
        leg = super().leg(C)
        self.n_legs = getattr(self, "n_legs", 0) + 1
        if self.n_legs % 2 == 0 and leg.pause is Pause.FULL:
            return Leg(leg.numbers, leg.a * 0.9, leg.at, leg.pause)
        return leg


class Stalling(CostWalk):
    """A walk that comes no further from time to time."""

    def leg(self, C):
        leg = super().leg(C)
        self.n_legs = getattr(self, "n_legs", 0) + 1
        return leg._replace(pause=Pause.STALLED) if self.n_legs == 1 else leg


@pytest.mark.parametrize("kind", [Stumbling, Stalling])
def test_path_goes_on_where_a_step_is_wrong(kind, monkeypatch):
    expected = c_path(X, Y, C_min=1e-4, C_max=1e4)
    monkeypatch.setattr(breakpoints, "CostWalk", kind)
    path = c_path(X, Y, C_min=1e-4, C_max=1e4)
    assert path.n_resolved > 0
    assert path.status is Status.CONVERGED
    assert path.C[-1] == 1e4
    assert all(each.holds(1e-6) for each in path.certificates)
    np.testing.assert_allclose(
        path.at(7.0).decision_function(X), expected.at(7.0).decision_function(X), atol=1e-6
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"C_min": 0.0}, "0 < C_min < C_max"),
        ({"C_min": -1.0}, "0 < C_min < C_max"),
        ({"C_min": 2.0, "C_max": 2.0}, "0 < C_min < C_max"),
        ({"C_min": 3.0, "C_max": 2.0}, "0 < C_min < C_max"),
        ({"C_max": np.inf}, "0 < C_min < C_max"),
        ({"C_min": np.nan}, "0 < C_min < C_max"),
        ({"y": np.ones(80)}, "same class"),
        ({"y": np.arange(80) % 3}, "two classes, got 3"),
        ({"X": np.where(X > 2.0, np.nan, X)}, "NaN"),
        ({"y": Y[:5]}, "inconsistent"),
        ({"kernel": "sigmoid", "gamma": 1.0}, "positive semidefinite"),
        ({"kernel": "unknown"}, "kernel"),
        ({"tol": 0.0}, "tol"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"max_breakpoints": 0}, "max_breakpoints"),
        ({"max_breakpoints": 1.5}, "max_breakpoints"),
        ({"sample_weight": np.ones(5)}, "sample_weight"),
    ],
)
@pytest.mark.filterwarnings("ignore:The kernel")
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        c_path(**{"X": X, "y": Y, **changes})


@pytest.mark.parametrize("changes", [{"C_min": "0.1"}, {"C_max": None}, {"C_max": [1.0]}])
def test_costs_that_are_not_numbers_are_refused(changes):
    with pytest.raises(TypeError, match="C_min and C_max must be numbers"):
        c_path(X, Y, **changes)


def test_costs_outside_of_the_path_are_refused():
    path = c_path(X, Y)
    for C in (1e-3, 101.0, np.nan):
        with pytest.raises(ValueError, match=r"between 0\.01 and 100"):
            path.at(C)
    with pytest.raises(ValueError, match="inconsistent"):
        path.error(X, Y[:5])


def test_limits_end_the_path():
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        path = c_path(X, Y, max_breakpoints=10)
    assert len(path) == len(path.certificates) == 10
    assert path.status is Status.ITERATION_LIMIT
    whole = c_path(X, Y)
    np.testing.assert_allclose(path.C, whole.C[:10])
    assert path.at(path.C[5]).certificate_.holds(1e-6)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        path = c_path(np.repeat(X, 3, axis=0), np.repeat(Y, 3), time_limit=1e-6)
    assert path.status is Status.TIME_LIMIT


def test_callbacks_see_the_path_and_end_it():
    steps = []
    whole = c_path(X, Y, callback=steps.append)
    assert steps
    assert steps[-1].alpha().shape == (80,)
    assert steps[-1].dual == pytest.approx(whole.objective[-1])

    def first(step):
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = c_path(X, Y, callback=first)
    assert path.status is Status.STOPPED
    assert 1 < len(path) < len(whole)

    def interrupt(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        c_path(X, Y, callback=interrupt)
