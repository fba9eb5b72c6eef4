"""Exact leave-one-out predictions, against a loop of fits."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.model_selection import leave_one_out

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
TWO = np.where(X[:, 0] + 0.7 * RNG.normal(size=40) > 0.0, "b", "a")
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=40), [-0.5, 0.5])
TARGETS = X[:, 0] ** 2 + 0.1 * RNG.normal(size=40)
WEIGHTS = RNG.uniform(0.2, 2.0, 40)

CASES = {
    "rbf": (mm.SVC(gamma=0.5), TWO, None),
    "linear": (mm.SVC(kernel="linear", C=10.0), TWO, None),
    "no free α": (mm.SVC(C=1e-3, gamma=0.5), TWO, None),
    "no free α, balanced": (mm.SVC(C=1e-3, kernel="linear"), np.arange(40) % 2, None),
    "large C": (mm.SVC(C=1e4, gamma=0.5), TWO, None),
    "pairs": (mm.SVC(gamma=0.5, C=3.0), THREE, None),
    "scores of pairs": (mm.SVC(gamma=0.5, decision_function_shape="ovo"), THREE, None),
    "one against the rest": (mm.SVC(gamma=0.5, multi_class="ovr"), THREE, None),
    "weights": (mm.SVC(gamma=0.5), TWO, WEIGHTS),
    "squared hinge": (mm.SVC(gamma=0.5, loss="squared_hinge"), TWO, None),
    "no bias": (mm.SVC(gamma=0.5, fit_intercept=False), TWO, None),
    "regression": (mm.SVR(gamma=0.5), TARGETS, None),
    "squared regression": (mm.SVR(gamma=0.5, loss="squared_epsilon_insensitive"), TARGETS, None),
    "ν-classifier": (mm.NuSVC(nu=0.3, gamma=0.5), TWO, None),
    "ν-classifier, linear": (mm.NuSVC(nu=0.6, kernel="linear"), TWO, None),
    "ν-classifier, weights": (mm.NuSVC(nu=0.3, gamma=0.5), TWO, WEIGHTS),
    "ν-classifier, two weights": (mm.NuSVC(nu=0.3, gamma=0.5), TWO, 1.0 + np.arange(40) % 2),
    "ν-classifier, class weights": (
        mm.NuSVC(nu=0.35, gamma=0.5, class_weight={"a": 3.0}),
        TWO,
        None,
    ),
    "ν-classifier, pairs": (mm.NuSVC(nu=0.3, gamma=0.5), THREE, None),
    "ν-classifier, one against the rest": (
        mm.NuSVC(nu=0.2, gamma=2.0, multi_class="ovr"),
        THREE,
        None,
    ),
    "ν-regression": (mm.NuSVR(nu=0.3, gamma=0.5, C=2.0), TARGETS, None),
    "ν-regression, weights": (mm.NuSVR(kernel="linear"), TARGETS, WEIGHTS),
    "ν-regression, two weights": (mm.NuSVR(gamma=0.5), TARGETS, 1.0 + np.arange(40) % 2),
    "one class": (mm.OneClassSVM(nu=0.21, gamma=0.5), None, None),
    "one class, weights": (mm.OneClassSVM(nu=0.3, gamma=0.5), None, WEIGHTS),
    "one class, polynomial": (
        mm.OneClassSVM(nu=0.33, kernel="poly", coef0=1.0, gamma=1.0),
        None,
        None,
    ),
    "regression, no bias": (mm.SVR(kernel="linear", fit_intercept=False), TARGETS, WEIGHTS),
}


def fitted_in_turn(model, X, y, weights):
    """Return predictions and scores of each sample by the machine of the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 1e-9 is not always reached
        return _fitted_in_turn(model, X, y, weights)


def _fitted_in_turn(model, X, y, weights):
    labels, scores = [], []
    for row in range(len(X)):
        others = np.arange(len(X)) != row
        machine = clone(model).set_params(tol=1e-9)
        machine.fit(
            X[others],
            None if y is None else y[others],
            None if weights is None else weights[others],
        )
        is_regression = isinstance(model, mm.SVR | mm.NuSVR)
        score = machine.predict if is_regression else machine.decision_function
        labels.append(machine.predict(X[[row]])[0])
        scores.append(score(X[[row]])[0])
    return np.array(labels), np.array(scores)


@pytest.mark.parametrize("name", CASES)
def test_result_is_that_of_a_loop(name):
    model, y, weights = CASES[name]
    result = leave_one_out(model, X, y, weights)
    labels, scores = fitted_in_turn(model, X, y, weights)
    np.testing.assert_allclose(result.decision_values, scores, atol=1e-6)
    assert result.certificate.holds(1e-6)
    assert result.is_known.all()
    if not isinstance(model, mm.SVR | mm.NuSVR):
        y = np.ones(40) if y is None else y
        np.testing.assert_array_equal(result.predictions, labels)
        assert result.error == pytest.approx(np.mean(labels != y))
        assert result.score == pytest.approx(np.mean(labels == y))
    else:
        np.testing.assert_allclose(result.predictions, labels, atol=1e-6)
        assert result.error == pytest.approx(np.mean((labels - y) ** 2))


def test_only_support_vectors_are_refitted():
    model = mm.SVC(gamma=0.5, tol=1e-8)
    result = leave_one_out(model, X, TWO)
    assert not hasattr(model, "support_")  # it is not changed
    assert result.n_refits == len(model.fit(X, TWO).support_) < 40
    before = model.dual_coef_.copy()
    again = leave_one_out(model, X, TWO)
    np.testing.assert_array_equal(again.decision_values, result.decision_values)
    np.testing.assert_array_equal(model.dual_coef_, before)
    assert f"by {result.n_refits} refits" in str(result)


def test_kernel_and_class_weights_are_those_of_all_samples():
    model = mm.SVC(class_weight="balanced")
    result = leave_one_out(model, X, TWO)
    whole = mm.SVC(class_weight="balanced").fit(X, TWO)
    weights = dict(zip(whole.classes_, whole.class_weight_, strict=True))
    same = mm.SVC(gamma=whole.kernel_.gamma, class_weight=weights)
    _, scores = fitted_in_turn(same, X, TWO, None)
    np.testing.assert_allclose(result.decision_values, scores, atol=1e-6)


def test_rows_of_other_kinds():
    expected = leave_one_out(mm.SVC(kernel="linear"), X, TWO).decision_values
    given = leave_one_out(mm.SVC(kernel="precomputed"), X @ X.T, TWO)
    np.testing.assert_allclose(given.decision_values, expected, atol=1e-8)
    csr = leave_one_out(mm.SVC(kernel="linear"), sparse.csr_matrix(X), TWO)
    np.testing.assert_allclose(csr.decision_values, expected, atol=1e-8)
    far = leave_one_out(mm.SVC(kernel="linear"), X + 1e5, TWO)
    np.testing.assert_allclose(far.decision_values, expected, atol=1e-6)


def test_samples_of_weight_zero_are_predicted_and_do_not_count():
    weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    model = mm.SVC(gamma=0.5, tol=1e-8)
    result = leave_one_out(model, X, TWO, weights)
    some = leave_one_out(model, X[:30], TWO[:30])
    np.testing.assert_allclose(result.decision_values[:30], some.decision_values, atol=1e-8)
    assert result.error == some.error
    expected = model.fit(X[:30], TWO[:30]).decision_function(X[30:])
    np.testing.assert_allclose(result.decision_values[30:], expected, atol=1e-6)


def test_bad_input_is_refused():
    for other in (mm.Perceptron(), "SVC"):
        with pytest.raises(TypeError, match="must be an SVC, NuSVC"):
            leave_one_out(other, X, TWO)
    with pytest.raises(TypeError, match=r"SVC\(kernel='linear'\)"):
        leave_one_out(mm.LinearSVC(), X, TWO)
    with pytest.raises(TypeError, match=r"SVR\(kernel='linear'\)"):
        leave_one_out(mm.LinearSVR(), X, TARGETS)
    with pytest.raises(ValueError, match="crammer_singer"):
        leave_one_out(mm.SVC(multi_class="crammer_singer"), X, THREE)
    for hard in (mm.SVC(C=np.inf), mm.SVR(C=np.inf)):
        with pytest.raises(ValueError, match="C must be finite"):
            leave_one_out(hard, X, TWO)
    with pytest.raises(ValueError, match="at least 2 samples"):
        leave_one_out(mm.SVC(), X, np.concatenate([["c"], TWO[1:]]))
    with pytest.raises(ValueError, match="at least 2 samples"):
        leave_one_out(mm.SVC(), X[:2], ["a", "b"])
    with pytest.raises(ValueError, match="at least 2 samples of positive weight, got 1"):
        leave_one_out(mm.OneClassSVM(), X[:2], sample_weight=[1.0, 0.0])
    with pytest.raises(ValueError, match="same class"):
        leave_one_out(mm.SVC(), X, np.ones(40))
    with pytest.raises(ValueError, match="y"):
        leave_one_out(mm.SVC(), X)
    with pytest.raises(ValueError, match="C"):
        leave_one_out(mm.SVC(C=-1.0), X, TWO)
    with pytest.raises(ValueError, match="time_limit"):
        leave_one_out(mm.SVC(), X, TWO, time_limit=0.0)
    with pytest.raises(ValueError, match="callback"):
        leave_one_out(mm.SVC(), X, TWO, callback=3)


def test_nu_must_be_feasible_without_every_sample():
    y = np.arange(20) % 2
    with pytest.raises(ValueError, match=r"without row \d+ of X.*nu is infeasible.*at most 0\.947"):
        leave_one_out(mm.NuSVC(nu=1.0), X[:20], y)
    assert leave_one_out(mm.NuSVC(nu=0.9), X[:20], y).is_known.all()


def test_refits_of_nu_machines_are_those_of_support_vectors():
    """Samples of one weight and class leave the same bounds and sums behind."""
    for model, y, n_weights in [
        (mm.NuSVC(nu=0.2, gamma=0.5), TWO, 2),
        (mm.NuSVR(nu=0.2, gamma=0.5, C=0.3), TARGETS, 1),
        (mm.OneClassSVM(nu=0.2, gamma=0.5), None, 1),
    ]:
        result = leave_one_out(model, X, y)
        n_support = len(model.set_params(tol=1e-8).fit(X, y).support_)
        # Those of the machine with the sums that a sample leaves behind are a few more or less.
        assert result.n_refits == pytest.approx(n_support + n_weights, abs=4)
        assert result.n_refits < 30
        assert leave_one_out(model, X, y, WEIGHTS).n_refits == 40


def test_hard_margins_of_nu_machines_do_not_depend_on_samples_without_support():
    """Where no α is at its bound, another sum is another scale of α."""
    y = np.where(X[:, 0] > 0.0, 1, -1)
    far = X + 2.0 * y[:, np.newaxis]
    model = mm.NuSVC(nu=0.04, kernel="linear", tol=1e-8)
    result, whole = leave_one_out(model, far, y), model.fit(far, y)
    others = np.setdiff1d(np.arange(40), whole.support_)
    assert (whole.n_support_ <= 2).all()
    expected = whole.decision_function(far[others])
    np.testing.assert_allclose(result.decision_values[others], expected, rtol=1e-7)
    assert result.n_refits == whole.n_support_.sum() + 2


def test_one_class_machines_reject_what_they_have_not_seen():
    result = leave_one_out(mm.OneClassSVM(nu=0.1, gamma=0.5), X)
    assert result.predictions.dtype.kind == "i"
    assert result.error == np.mean(result.predictions == -1) == pytest.approx(1.0 - result.score)
    # A row that is there twice is on the border at the outermost, and so inside, without one.
    twice = leave_one_out(mm.OneClassSVM(nu=0.01, gamma=0.5), np.repeat(X, 2, axis=0))
    assert twice.error == 0.0
    np.testing.assert_array_equal(
        leave_one_out(mm.OneClassSVM(nu=0.1, gamma=0.5), X, y="ignored").decision_values,
        result.decision_values,
    )


@pytest.mark.parametrize(
    "model", [mm.SVR(), mm.NuSVR(), mm.SVR(epsilon=0.0), mm.OneClassSVM(gamma=0.5)]
)
@pytest.mark.filterwarnings("error")
def test_two_samples(model):
    y = None if isinstance(model, mm.OneClassSVM) else np.array([1.0, 3.0])
    result = leave_one_out(model, X[:2], y)
    if y is None:
        expected = [model.fit(X[[1 - k]]).decision_function(X[[k]])[0] for k in (0, 1)]
        np.testing.assert_allclose(result.decision_values, expected, atol=1e-9)
    else:
        np.testing.assert_allclose(result.predictions, [3.0, 1.0], atol=1e-9)
        assert result.error == pytest.approx(4.0)


@pytest.mark.parametrize("model", [mm.SVR(gamma=0.5), mm.NuSVR(gamma=0.5), mm.SVR(epsilon=0.0)])
@pytest.mark.filterwarnings("error")
def test_constant_targets(model):
    result = leave_one_out(model, X, np.full(40, 7.0))
    np.testing.assert_array_equal(result.predictions, 7.0)
    assert result.error == 0.0
    other = leave_one_out(model, X, np.r_[np.full(39, 7.0), 9.0])
    assert other.predictions[-1] == 7.0
    _, scores = fitted_in_turn(model.set_params(gamma=0.5), X, np.r_[np.full(39, 7.0), 9.0], None)
    other = leave_one_out(model, X, np.r_[np.full(39, 7.0), 9.0])
    np.testing.assert_allclose(other.predictions, scores, atol=1e-6)


def test_repeated_and_contradicting_rows():
    rows, y = np.r_[X[:15], X[:15], X[:5]], np.r_[TWO[:15], TWO[:15], TWO[15:20]]
    for model in (mm.SVC(gamma=0.5), mm.NuSVC(nu=0.3, gamma=0.5)):
        result = leave_one_out(model, rows, y)
        labels, scores = fitted_in_turn(model, rows, y, None)
        np.testing.assert_allclose(result.decision_values, scores, atol=1e-6)
        np.testing.assert_array_equal(result.predictions, labels)


def test_indefinite_kernels_end_with_an_answer():
    model = mm.SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = leave_one_out(model, X, TWO)
    assert result.is_known.all()
    assert np.isfinite(result.decision_values).all()


def test_samples_that_are_objects():
    words = ["a", "ab", "abc", "b", "bc", "bcd", "c", "cd"]

    def common(first, second):
        return np.array([[float(len(set(s) & set(t))) for t in second] for s in first])

    y = [0, 0, 0, 0, 1, 1, 1, 1]
    given = leave_one_out(mm.SVC(kernel="precomputed"), common(words, words), y)
    result = leave_one_out(mm.SVC(kernel=common), words, y)
    np.testing.assert_allclose(result.decision_values, given.decision_values, atol=1e-9)


def test_time_limit_keeps_what_is_known():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1200, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=1200) > 0.0, "b", "a")
    model = mm.SVC(gamma=0.3)
    leave_one_out(model, X[:300], y[:300])  # compiles
    started = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0\.3 s with \d+ of 1200 samples"):
        some = leave_one_out(model, X, y, time_limit=0.3)
    assert time.perf_counter() - started < 5.0
    known = some.is_known
    assert some.status is mm.Status.TIME_LIMIT
    assert 0 < known.sum() < 1200
    assert np.isnan(some.decision_values[~known]).all()
    assert all(each is None for each in some.predictions[~known])
    assert np.isnan(some.error)
    assert np.isnan(some.score)
    whole = leave_one_out(model, X, y)
    assert some.error_bounds[0] < whole.error < some.error_bounds[1]
    assert whole.error_bounds == (whole.error, whole.error)
    n_wrong = np.count_nonzero(some.predictions[known] != y[known])
    assert some.error_bounds == pytest.approx(
        (n_wrong / 1200, (n_wrong + 1200 - known.sum()) / 1200)
    )
    assert "samples known (time limit)" in str(some)
    rows = np.flatnonzero(known)[:5]
    for row in rows:
        others = np.arange(1200) != row
        single = mm.SVC(gamma=0.3, tol=1e-8).fit(X[others], y[others])
        score = single.decision_function(X[[row]])[0]
        assert some.decision_values[row] == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("model", [mm.SVC(), mm.NuSVC(nu=0.1), mm.SVR(), mm.OneClassSVM()])
def test_nothing_is_known_without_time(model):
    y = TARGETS if isinstance(model, mm.SVR) else THREE
    with pytest.warns(ConvergenceWarning, match="0 of 40 samples"):
        result = leave_one_out(model, X, y, time_limit=1e-9)
    assert not result.is_known.any()
    assert np.isnan(result.decision_values).all()
    assert np.isnan(result.score)
    assert np.isnan(result.error)
    assert result.error_bounds == (0.0, np.inf if isinstance(model, mm.SVR) else 1.0)


def test_callbacks_see_the_refits_and_end_them(capsys):
    steps = []
    whole = leave_one_out(mm.SVC(gamma=0.5), X, TWO, callback=steps.append, verbose=True)
    assert steps[-1].n_done == steps[-1].n_refits == whole.n_refits
    assert steps[-1].seconds_left == 0.0
    assert steps[0].seconds_left > 0.0
    assert f"{whole.n_refits} of {whole.n_refits} refits" in capsys.readouterr().out

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = leave_one_out(mm.SVC(gamma=0.5), X, TWO, callback=lambda step: True)
    assert some.status is mm.Status.STOPPED
    assert 0 < some.n_refits < whole.n_refits
    known = some.is_known
    np.testing.assert_allclose(some.decision_values[known], whole.decision_values[known])

    def interrupt(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave_one_out(mm.SVC(gamma=0.5), X, TWO, callback=interrupt)


def test_caller_keeps_its_data():
    rows, y, weights = X.copy(), TARGETS.copy(), WEIGHTS.copy()
    for each in (rows, y, weights):
        each.flags.writeable = False
    leave_one_out(mm.NuSVR(gamma=0.5), rows, y, weights)
    np.testing.assert_array_equal(rows, X)
