"""verify: certificates of fitted models, recomputed from their data."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.diagnostics import verification
from maxmargin.files import fingerprint


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, (X[:, 0] + X[:, 1] ** 2 > 0.7).astype(int)


@pytest.mark.parametrize("name", sorted(mm.estimators.registry.MODELS))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_estimator_is_verified(data, name):
    X, y = data
    variant = mm.estimators.registry.MODELS[name]
    targets = {"classes": y, "numbers": X[:, 0] + np.sin(X[:, 1]), "none": None}[variant.targets]
    model = variant(**({"max_iter": 20} if variant.family == "plane" else {}))
    if "max_iter" not in model.get_params():
        model = variant()
    found = mm.verify(model.fit(X, targets), X, targets)
    assert found.agrees, found.tasks


def test_weights_and_many_classes(data):
    X, y = data
    labels = np.where(X[:, 3] > 0.5, "c", np.where(y == 1, "b", "a"))
    weights = np.arange(300) % 3 + 0.5
    model = mm.SVC(C=3.0, class_weight="balanced").fit(X, labels, weights)
    assert mm.verify(model, X, labels, weights).agrees
    assert not mm.verify(model, X, labels).agrees


def test_a_search_and_a_hard_margin(data):
    X, y = data
    assert mm.verify(mm.SVCCV(Cs=[1.0, 10.0], gammas=[0.1, 1.0]).fit(X, y), X, y).agrees
    X, y = mm.datasets.load_six_points(return_X_y=True)
    assert mm.verify(mm.SVC(C=np.inf, kernel="linear").fit(X, y), X, y).agrees


@pytest.mark.parametrize(
    "model",
    [
        mm.LinearSVC(loss="hinge"),
        mm.LinearSVC(),
        mm.LinearSVC(penalty="l1"),
        mm.LinearSVC(loss="hinge", multi_class="crammer_singer"),
    ],
)
def test_planes_without_dual_variables_are_solved_again(data, model):
    X, _ = data
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    model.fit(X, y)
    del model.dual_coef_, model.support_
    found = mm.verify(model, X, y)
    assert found.solved_again
    assert found.agrees
    assert found.holds
    model.coef_ = model.coef_ * 1.01
    assert not mm.verify(model, X, y).agrees


@pytest.mark.parametrize("kind", ["svc", "svr"])
def test_large_machines_are_checked_on_a_sample(data, monkeypatch, kind):
    X, y = data
    model = mm.SVC(C=0.5).fit(X, y) if kind == "svc" else mm.SVR(C=5.0).fit(X, X[:, 0])
    targets = y if kind == "svc" else X[:, 0]
    small = verification.Tuning(thorough_values=10, checked_rows=20)
    monkeypatch.setattr(verification, "TUNING", small)
    found = mm.verify(model, X, targets)
    assert found.agrees
    assert found.is_sample
    assert not found.holds
    (task,) = found.tasks
    assert task.finding.n_checked < task.finding.n_samples == task.claim.n_samples
    assert task.finding.primal == pytest.approx(task.claim.primal, rel=1e-9)
    whole = mm.verify(model, X, targets, full=True)
    assert whole.agrees
    assert not whole.is_sample


def test_sampled_rows_find_wrong_alpha(data, monkeypatch):
    X, y = data
    model = mm.SVC().fit(X, y)
    model.dual_coef_ = 0.5 * model.dual_coef_
    monkeypatch.setattr(
        verification, "TUNING", verification.Tuning(thorough_values=10, checked_rows=20)
    )
    assert not mm.verify(model, X, y).agrees


def test_data_that_cannot_be_those_of_the_fit(data):
    X, y = data
    model = mm.SVC().fit(X, y)
    with pytest.raises(verification.OtherDataError, match="299 rows"):
        mm.verify(model, X[:-1], y[:-1])
    with pytest.raises(verification.OtherDataError, match="classes"):
        mm.verify(model, X, y + 1)


def test_the_model_is_not_changed(data):
    X, y = data
    model = mm.SVC().fit(X, y)
    before = {name: id(value) for name, value in vars(model).items()}
    mm.verify(model, X, y)
    assert {name: id(value) for name, value in vars(model).items()} == before


def test_fingerprints_are_of_the_content():
    X = np.arange(12.0).reshape(4, 3)
    y = np.array(["a", "b", "a", "b"])
    print_of = fingerprint(X, y)
    assert fingerprint(np.asfortranarray(X), y.astype(object)) == print_of
    assert fingerprint(X[::-1], y[::-1])["sha256"] != print_of["sha256"]
    assert fingerprint(X, y[::-1])["sha256"] != print_of["sha256"]
    assert fingerprint(-0.0 * X)["sha256"] == fingerprint(0.0 * X)["sha256"]
    assert fingerprint(X.astype(np.float32), y)["dtype"] == "float32"


@pytest.mark.parametrize("model", [mm.SVC(), mm.LinearSVC(), mm.LMS(max_iter=5)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_false_claims_of_any_size_are_found(data, model):
    X, y = data
    claim = model.fit(X, y).certificate_
    of_plane = hasattr(claim, "geometric_margin")
    for name in ("geometric_margin", "residual") if of_plane else ("primal", "dual"):
        for false in (np.inf, -np.inf, np.nan, 1e300, 1.01 * getattr(claim, name) + 1.0):
            model.certificates_ = [replace(claim, **{name: false})]
            assert not mm.verify(model, X, y).agrees, (name, false)
    if of_plane:  # the radius of the rows is no claim, and gives other claims no room
        model.certificates_ = [replace(claim, radius=np.inf, geometric_margin=5.0)]
        assert not mm.verify(model, X, y).agrees


def test_support_vectors_in_another_order_are_said_to_be_so(data):
    X, y = data
    found = mm.verify(mm.SVC().fit(X, y), X[::-1], y[::-1])
    assert found.has_its_rows is False
    assert "the order of rows" in found.verdict
