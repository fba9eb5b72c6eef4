"""LinearSVC with an ℓ1 penalty, and the parameters that it shares with scikit-learn's."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel

import maxmargin as mm
from maxmargin.problems import L1Problem
from maxmargin.solution import Solution
from tests.helpers.linear_svc import BIASES, cloud, made

SOLVERS = ["auto", "newton", "coordinate-descent"]
TIGHT = 1e-9


def sparse_cloud(n=80, d=200, *, seed=0):
    """Return X of many features, and y that few of them decide."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    return X, (X[:, :4].sum(axis=1) + 0.2 * rng.standard_normal(n) > 0.1).astype(int)


def assert_certified(model, X, y, weights=None, tol=None):
    """Every plane is proved, from the bare attributes of the model."""
    tol = model.tol if tol is None else tol
    bias = "free" if model.fit_intercept else "none"
    bias = "penalised" if bias == "free" and model.penalize_intercept else bias
    codes = np.searchsorted(model.classes_, y)
    n_planes = len(model.coef_)
    for k, (w, b) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
        labels = np.where(codes == (1 if n_planes == 1 else k), 1.0, -1.0)
        alpha = np.zeros(len(y))
        alpha[model.support_] = np.abs(model.dual_coef_[k])
        costs = model.C * (np.ones(len(y)) if weights is None else weights)
        problem = L1Problem.of(X, labels, costs, "squared_hinge", bias, model.intercept_scaling)
        answer = Solution(w[np.newaxis], np.array([b]), model.statuses_[k], alpha=alpha)
        certificate = mm.certify(problem, answer)
        assert certificate.holds(tol), certificate
        claim = model.certificates_[k].relative_gap
        assert certificate.relative_gap == pytest.approx(claim, rel=1e-2, abs=1e-13)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scaling", [1.0, 20.0])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_agrees_with_liblinear(n_classes, penalty, scaling, solver):
    X, y = cloud(120, n_classes=n_classes)
    options = {"C": 0.3, "intercept_scaling": scaling}
    theirs = svm.LinearSVC(penalty, dual=False, tol=1e-10, max_iter=10**6, **options).fit(X, y)
    ours = made(penalty=penalty, solver=solver, penalize_intercept=True, tol=1e-10, **options)
    ours.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)
    assert ours.certificate_.holds(1e-10)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, np.float32])
def test_is_certified(make, solver, bias):
    X, y = sparse_cloud()
    model = made(penalty="l1", solver=solver, tol=TIGHT, **BIASES[bias]).fit(make(X), y)
    assert_certified(model, make(X), y)
    assert 4 <= np.count_nonzero(model.coef_) < 60
    assert model.status_ == "converged"


def test_several_classes_and_weights():
    X, y = cloud(150, n_classes=4)
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 150)
    weights[:10] = 0.0
    model = made(penalty="l1", tol=TIGHT, class_weight={0: 2.0}).fit(X, y, weights)
    assert_certified(model, X, y, weights * np.where(y == 0, 2.0, 1.0))
    pairs = made(penalty="l1", multi_class="ovo").fit(X, y, weights)
    assert len(pairs.coef_) == 6
    assert pairs.certificate_.holds(1e-4)


def test_a_weight_of_two_is_two_samples():
    X, y = sparse_cloud(60, 30)
    twice = made(penalty="l1", tol=TIGHT).fit(np.vstack([X, X[:20]]), np.append(y, y[:20]))
    weighted = made(penalty="l1", tol=TIGHT).fit(X, y, np.where(np.arange(60) < 20, 2.0, 1.0))
    np.testing.assert_allclose(weighted.coef_, twice.coef_, atol=1e-6)


# What could go wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "change",
    {
        "duplicated features": lambda X: np.hstack([X, X, X[:, :5]]),
        "columns of zeros": lambda X: np.where(np.arange(X.shape[1]) % 3, X, 0.0),
        "constant columns": lambda X: np.hstack([X, np.full((len(X), 2), 7.0)]),
        "scales": lambda X: X * np.logspace(-4, 4, X.shape[1]),
        "far away": lambda X: X + 1e4,
        "one feature": lambda X: X[:, :1],
        "no information": lambda X: 0.0 * X,
    }.items(),
    ids=lambda item: item[0],
)
def test_awkward_features(change, solver):
    X, y = sparse_cloud()
    X = change[1](X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = made(penalty="l1", solver=solver, tol=1e-6).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("C", [1e-12, 1e-3, 1e3, 1e6, 1e8])
def test_costs_of_any_size(C):
    X, y = sparse_cloud()
    model = made(penalty="l1", C=C).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_separable_data_with_a_huge_cost_tend_to_the_hard_margin(C):
    X = np.array([[0.0, 1.0], [0.0, -1.0], [4.0, 3.0], [5.0, 0.0]])
    model = made(penalty="l1", C=C, tol=1e-8).fit(X, [0, 0, 1, 1])
    assert_certified(model, X, [0, 0, 1, 1])
    if C == 1e6:  # the least ‖w‖₁ with y g ≥ 1: half the distance along the first feature
        np.testing.assert_allclose(model.coef_, [[0.5, 0.0]], atol=1e-5)
        np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-5)


def test_one_sample_per_class():
    X, y = np.array([[1.0, 0.0, 2.0], [-1.0, 0.0, -2.0]]), [0, 1]
    model = made(penalty="l1", C=10.0, tol=1e-8).fit(X, y)
    assert_certified(model, X, y)
    np.testing.assert_array_equal(model.coef_ != 0.0, [[False, False, True]])


def test_data_are_left_alone_and_fits_repeat():
    X, y = sparse_cloud()
    before = X.copy()
    first = made(penalty="l1").fit(X, y)
    second = made(penalty="l1", n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(first.coef_, second.coef_)


# Limits, callbacks, starts, files -----------------------------------------------------------------


def test_limits_warn_and_give_what_there_is():
    X, y = sparse_cloud()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = made(penalty="l1", C=100.0, max_iter=2).fit(X, y)
    assert model.n_iter_ == 2
    assert not model.certificate_.holds()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        made(penalty="l1", C=100.0, time_limit=1e-9).fit(X, y)


def test_callbacks_follow_and_stop():
    X, y = sparse_cloud()
    recorder = mm.Recorder()
    model = made(penalty="l1", callback=recorder).fit(X, y)
    assert len(recorder.steps) == model.n_iter_ == len(model.trace_)
    assert model.trace_.unit == "step"
    stopped = made(penalty="l1", callback=lambda step: True).fit(X, y)
    assert stopped.n_iter_ == 1


def test_warm_start_goes_on():
    X, y = sparse_cloud()
    model = made(penalty="l1", C=3.0, warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    cold = made(penalty="l1", C=4.0, tol=TIGHT).fit(X, y)
    warm = model.set_params(C=4.0, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-6)


def test_row_blocks():
    X, y = cloud(90)
    blocks = mm.RowBlocks([X[:20], X[20:60], X[60:]])
    whole = made(penalty="l1", tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(
        made(penalty="l1", tol=TIGHT).fit(blocks, y).coef_, whole.coef_, atol=1e-7
    )
    with pytest.raises(ValueError, match=r"intercept_scaling=2\.0 needs a copy"):
        made(penalize_intercept=True, intercept_scaling=2.0).fit(blocks, y)


def test_sparsify_save_and_select(tmp_path):
    X, y = sparse_cloud()
    model = made(penalty="l1").fit(X, y)
    expected = model.decision_function(X)
    kept = SelectFromModel(model, prefit=True).transform(X)
    assert kept.shape[1] == np.count_nonzero(np.abs(model.coef_) > 1e-5)
    again = pickle.loads(pickle.dumps(model)).sparsify()
    assert sparse.issparse(again.coef_)
    np.testing.assert_allclose(again.decision_function(X), expected, atol=1e-12)
    np.testing.assert_array_equal(again.densify().coef_, model.coef_)
    mm.save(model, tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    assert loaded.get_params() == {**model.get_params(), "callback": None}
    np.testing.assert_array_equal(loaded.decision_function(X), expected)


def test_report_and_table():
    X, y = sparse_cloud()
    model = made(penalty="l1").fit(X, y)
    report = mm.diagnostics.margin_report(model, X, y)
    assert "LinearSVC" in str(report)
    assert report.tasks[0].loo_bound is None  # ξα is about ½‖w‖²
    assert report.tasks[0].loo_support == len(model.support_) / len(y)
    mm.diagnostics.support_table(model, X, y)


# Parameters ---------------------------------------------------------------------------------------


def test_order_and_defaults_are_those_of_scikit_learn():
    theirs = list(inspect.signature(svm.LinearSVC).parameters.values())
    ours = list(inspect.signature(mm.LinearSVC).parameters.values())[: len(theirs)]
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("dual", ["auto", True, False])
def test_combinations_that_scikit_learn_refuses_are_refused(dual, penalty, loss):
    X, y = cloud(30)
    options = {"penalty": penalty, "loss": loss, "dual": dual}
    try:
        svm.LinearSVC(**options).fit(X, y)
    except ValueError:
        pattern = f"Unsupported set of arguments.*penalty='{penalty}.*loss='{loss}.*dual={dual!r}"
        with pytest.raises(ValueError, match=pattern):
            made(**options).fit(X, y)
    else:
        made(**options).fit(X, y)


def test_what_is_not_offered_with_an_l1_penalty():
    X, y = cloud(30)
    with pytest.raises(ValueError, match="interior-point"):
        made(penalty="l1", solver="interior-point").fit(X, y)
    with pytest.raises(ValueError, match="C=inf with penalty='l1'"):
        made(penalty="l1", C=np.inf).fit(X, y)


def test_crammer_singer_ignores_penalty_loss_and_dual():
    X, y = cloud(60, n_classes=3)
    plain = made(multi_class="crammer_singer").fit(X, y)
    other = clone(plain).set_params(penalty="l1", loss="hinge", dual=False).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, other.coef_)
    scaled = made(
        multi_class="crammer_singer", penalize_intercept=True, intercept_scaling=9.0, tol=1e-9
    ).fit(X, y)
    theirs = svm.LinearSVC(
        multi_class="crammer_singer", intercept_scaling=9.0, tol=1e-9, max_iter=10**6
    ).fit(X, y)
    np.testing.assert_allclose(scaled.coef_, theirs.coef_, atol=1e-4)
    assert scaled.certificate_.holds(1e-9)


def test_steps_of_a_scaled_bias_show_planes_with_a_bias():
    X, y = cloud(60)
    recorder = mm.Recorder()
    model = made(penalize_intercept=True, intercept_scaling=5.0, callback=recorder).fit(X, y)
    w, b = recorder.steps[-1].planes()
    assert (w.shape, b.shape) == (model.coef_.shape, (1,))
    np.testing.assert_allclose(w, model.coef_, atol=1e-2)
