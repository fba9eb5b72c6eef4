"""SVC(multi_class="crammer_singer"): the joint machine with any kernel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import maxmargin as mm
from maxmargin.certificates import certify
from maxmargin.problems import JointKernelProblem

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def joint(**parameters) -> mm.SVC:
    return mm.SVC(**{"multi_class": "crammer_singer", **parameters})


def three_class_xor(n=120):
    """Return points of three classes, each in two opposite sectors of the plane."""
    rng = np.random.RandomState(0)
    labels = np.arange(n) % 3
    angle = labels * np.pi / 3 + np.pi * rng.randint(2, size=n) + rng.uniform(-0.3, 0.3, n)
    return rng.uniform(1.0, 2.0, n)[:, None] * np.column_stack(
        [np.cos(angle), np.sin(angle)]
    ), labels


def test_attributes():
    model = joint().fit(X, NAMES[y])
    n_support = model.support_.size
    assert model.dual_coef_.shape == (3, n_support)
    assert model.support_vectors_.shape == (n_support, 4)
    assert model.n_support_.sum() == n_support
    assert model.intercept_.shape == (3,)
    assert len(model.certificates_) == 1
    assert model.certificate_.holds(model.tol)
    assert model.fit_status_ == 0
    np.testing.assert_array_equal(NAMES, model.classes_)
    np.testing.assert_array_equal(NAMES[y][model.support_], np.repeat(NAMES, model.n_support_))
    # Σ_k α_i^k = 0, α_i^y ≤ C, rivals ≤ 0; Σ_i α_i^k = 0 with a bias.
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-6)
    own = model.dual_coef_[y[model.support_], np.arange(n_support)]
    assert ((own > 0.0) & (own <= 1.0 + 1e-12)).all()


def test_predictions_are_the_largest_scores():
    model = joint(gamma=0.5).fit(X, NAMES[y])
    scores = model.decision_function(X)
    expected = rbf_kernel(X, X[model.support_], gamma=0.5) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(scores, expected, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), NAMES[scores.argmax(axis=1)])
    assert model.score(X, NAMES[y]) > 0.95


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_kernel_is_the_linear_machine(fit_intercept):
    model = joint(kernel="linear", tol=1e-6, fit_intercept=fit_intercept).fit(X, y)
    linear = mm.LinearSVC(
        multi_class="crammer_singer", tol=1e-9, fit_intercept=fit_intercept
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(model.coef_, linear.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, linear.intercept_, atol=1e-4)
    if not fit_intercept:
        np.testing.assert_array_equal(model.intercept_, 0.0)


def test_certificate_is_that_of_the_problem():
    model = joint(C=3.0, gamma=0.5).fit(X, y)
    alpha = np.zeros((150, 3))
    alpha[model.support_] = model.dual_coef_.T
    problem = JointKernelProblem(model.kernel_, X, np.arange(150), y, 3, np.full(150, 3.0))
    from maxmargin.solution import Solution, Status

    answer = Solution(np.empty((0, 0)), model.intercept_, Status.CONVERGED, alpha=alpha)
    again = certify(problem, answer)
    assert again.primal == pytest.approx(model.certificate_.primal)
    assert again.holds(1e-3)


def test_three_classes_that_no_planes_separate():
    rows, labels = three_class_xor()
    assert joint(C=10.0).fit(rows, labels).score(rows, labels) == 1.0
    assert joint(kernel="linear").fit(rows, labels).score(rows, labels) < 0.7


def test_weights_are_repetitions():
    rng = np.random.RandomState(0)
    times = rng.randint(3, size=150)
    rows = np.repeat(np.arange(150), times)
    weighted = joint(gamma=0.5, tol=1e-6).fit(X, y, sample_weight=times)
    repeated = joint(gamma=0.5, tol=1e-6).fit(X[rows], y[rows])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-3
    )


def test_class_weights_are_weights():
    of_classes = joint(gamma=0.5, class_weight={0: 1.0, 1: 3.0, 2: 0.5}).fit(X, y)
    weights = np.array([1.0, 3.0, 0.5])
    of_samples = joint(gamma=0.5).fit(X, y, sample_weight=weights[y])
    np.testing.assert_allclose(
        of_classes.decision_function(X), of_samples.decision_function(X), atol=1e-10
    )
    np.testing.assert_array_equal(of_classes.class_weight_, weights)


def test_sparse_precomputed_callable_and_single_precision():
    model = joint(gamma=0.5, tol=1e-5).fit(X, y)
    scores = model.decision_function(X)
    K = rbf_kernel(X, gamma=0.5)
    rows = sparse.csr_matrix(X)
    of_rows = joint(gamma=0.5, tol=1e-5).fit(rows, y)
    assert sparse.issparse(of_rows.dual_coef_)
    np.testing.assert_allclose(of_rows.decision_function(rows), scores, atol=1e-3)
    given = joint(kernel="precomputed", tol=1e-5).fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), scores, atol=1e-3)
    own = joint(kernel=lambda a, b: rbf_kernel(a, b, gamma=0.5), tol=1e-5).fit(X, y)
    np.testing.assert_allclose(own.decision_function(X), scores, atol=1e-3)
    single = joint(gamma=0.5, tol=1e-5).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(X.astype(np.float32)), scores, atol=1e-3)


def test_two_classes_are_one_machine():
    two = y < 2
    model, plain = joint().fit(X[two], y[two]), mm.SVC().fit(X[two], y[two])
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    assert model.decision_function(X).shape == (150,)


def test_warm_start():
    model = joint(warm_start=True, tol=1e-5).fit(X, y)
    first = int(model.n_iter_[0])
    model.fit(X, y)
    assert model.n_iter_[0] < 0.5 * first
    model.set_params(C=1.1).fit(X, y)
    assert model.certificate_.holds(1e-5)
    with pytest.raises(ValueError, match="warm_start=True"):
        model.fit(X[1:], y[1:])
    with pytest.raises(ValueError, match="multi_class"):
        model.set_params(multi_class="ovo").fit(X, y)


def test_limits_and_callbacks():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = joint(max_iter=5).fit(X, y)
    assert model.n_iter_[0] == 5
    assert model.fit_status_ == 1
    recorder = mm.Recorder()
    joint(callback=recorder).fit(X, y)
    assert recorder.steps[-1].alpha().shape == (150, 3)
    stopped = joint(callback=lambda step: True).fit(X, y)
    assert stopped.statuses_[0] == "stopped by a callback"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"probability": True}, "probability=True"),
        ({"probability": np.True_}, "probability=True"),
        ({"loss": "squared_hinge"}, "loss='squared_hinge'"),
        ({"C": np.inf}, "C=inf"),
        ({"solver": "smo"}, "solver='smo'"),
    ],
)
def test_what_is_not_offered(parameters, message):
    with pytest.raises(ValueError, match=message):
        joint(**parameters).fit(X, y)


def test_nu_machine_refuses():
    with pytest.raises(ValueError, match="multi_class"):
        mm.NuSVC(multi_class="crammer_singer").fit(X, y)


def test_saved_and_exported(tmp_path):
    model = joint(gamma=0.5).fit(X, y)
    path = tmp_path / "model.mm"
    mm.save(model, path)
    loaded = mm.load(path)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.certificate_ == model.certificate_
    for kernel in ("rbf", "linear"):
        model = joint(kernel=kernel).fit(X, y)
        with pytest.raises(TypeError, match="crammer_singer"):
            mm.persistence.save_libsvm(model, tmp_path / "model.libsvm")


def test_onnx_graph_predicts_the_same():
    runtime = pytest.importorskip("onnxruntime")
    model = joint().fit(X, y)
    session = runtime.InferenceSession(mm.persistence.to_onnx(model).SerializeToString())
    labels = session.run(None, {session.get_inputs()[0].name: X})[0]
    np.testing.assert_array_equal(labels.ravel(), model.predict(X))


def test_clone_and_search():
    model = clone(joint(C=2.0))
    assert model.multi_class == "crammer_singer"
    from sklearn.model_selection import cross_val_score

    assert cross_val_score(model, X, y, cv=3).mean() > 0.9


def test_order_of_rows_does_not_matter():
    order = np.random.RandomState(0).permutation(150)
    model = joint(gamma=0.5, tol=1e-6).fit(X, y)
    other = joint(gamma=0.5, tol=1e-6).fit(X[order], y[order])
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-4)
