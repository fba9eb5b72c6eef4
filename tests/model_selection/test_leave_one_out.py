"""Exact leave-one-out predictions, against a loop of fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

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
    "regression, no bias": (mm.SVR(kernel="linear", fit_intercept=False), TARGETS, WEIGHTS),
}


def fitted_in_turn(model, X, y, weights):
    """Return predictions and scores of each sample by the machine of the others."""
    labels, scores = [], []
    for row in range(len(y)):
        others = np.arange(len(y)) != row
        machine = clone(model).set_params(tol=1e-9)
        machine.fit(X[others], y[others], None if weights is None else weights[others])
        score = machine.decision_function if isinstance(model, mm.SVC) else machine.predict
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
    if isinstance(model, mm.SVC):
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
    for other in (mm.NuSVC(), mm.LinearSVC(), mm.OneClassSVM()):
        with pytest.raises(TypeError, match="must be an SVC or an SVR"):
            leave_one_out(other, X, TWO)
    with pytest.raises(ValueError, match="crammer_singer"):
        leave_one_out(mm.SVC(multi_class="crammer_singer"), X, THREE)
    with pytest.raises(ValueError, match="C must be finite"):
        leave_one_out(mm.SVC(C=np.inf), X, TWO)
    with pytest.raises(ValueError, match="at least 2 samples"):
        leave_one_out(mm.SVC(), X, np.concatenate([["c"], TWO[1:]]))
    with pytest.raises(ValueError, match="same class"):
        leave_one_out(mm.SVC(), X, np.ones(40))
    with pytest.raises(ValueError, match="C"):
        leave_one_out(mm.SVC(C=-1.0), X, TWO)
