"""LinearSVC and LinearSVR with device="cuda", which is made to mean torch's CPU device here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.engines.registry import engine_class
from maxmargin.solvers import linear
from tests.helpers.devices import pretend_card

torch = pytest.importorskip("torch")

KINDS = {
    "array": lambda X: X,
    "float64": lambda X: X.astype(np.float64),
    "csr": sparse.csr_matrix,
    "tensor": torch.from_numpy,
}
CLASSIFIERS = {
    "hinge": {"loss": "hinge"},
    "squared hinge": {},
    "l1": {"penalty": "l1"},
    "one-vs-one": {"multi_class": "ovo", "loss": "hinge"},
    "joint": {"multi_class": "crammer_singer"},
    "scaled bias": {"penalize_intercept": True, "intercept_scaling": 2.0},
    "no bias": {"fit_intercept": False, "loss": "hinge"},
    "coordinate descent": {"solver": "coordinate-descent"},
    "interior point": {"solver": "interior-point"},
    "class weights": {"class_weight": "balanced", "loss": "hinge"},
}
REGRESSORS = {
    "tube": {"epsilon": 0.1},
    "absolute": {},
    "squares": {"loss": "squared_epsilon_insensitive", "epsilon": 0.1},
    "penalised": {"epsilon": 0.2, "penalize_intercept": True},
    "all inside": {"epsilon": 100.0},
}


@pytest.fixture(autouse=True)
def cuda(monkeypatch):
    pretend_card(monkeypatch, everywhere=True)


def data(n=900, d=7, c=3):
    """Return X with some zeros and a constant column, class numbers and targets."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.8)).astype(np.float32)
    X[:, 3] = 1.0
    scores = X @ rng.standard_normal((d, c)) + rng.standard_normal((n, c))
    return X, scores.argmax(axis=1), scores[:, 0]


def agree(found, expected):
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=5e-3)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=5e-3)
    assert found.certificate_.holds(2e-5)
    for name in ("coef_", "intercept_", "support_", "dual_coef_"):
        assert isinstance(getattr(found, name), np.ndarray), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", CLASSIFIERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers(which, kind, n_classes):
    X, y, _ = data()
    y = np.minimum(y, n_classes - 1)
    weights = np.arange(len(y)) % 3
    models = [mm.LinearSVC(tol=1e-5, device=name, **CLASSIFIERS[which]) for name in ("cpu", "cuda")]
    agree(models[1].fit(KINDS[kind](X), y), models[0].fit(X, y))
    agree(models[1].fit(KINDS[kind](X), y, weights), models[0].fit(X, y, weights))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", REGRESSORS)
def test_regressors(which, kind):
    X, _, y = data()
    models = [mm.LinearSVR(tol=1e-5, device=name, **REGRESSORS[which]) for name in ("cpu", "cuda")]
    agree(models[1].fit(KINDS[kind](X), y), models[0].fit(X, y))


@pytest.mark.parametrize("which", ["hinge", "one-vs-one", "l1", "coordinate descent"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_on_the_device(which, n_classes):
    X, y, _ = data()
    y = np.minimum(y, n_classes - 1)
    models = [mm.LinearSVC(tol=1e-5, device="auto", **CLASSIFIERS[which]) for _ in range(2)]
    found = models[1].fit(torch.from_numpy(X), torch.from_numpy(y))
    expected = models[0].fit(torch.from_numpy(X), y)
    agree(found, expected)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_allclose(found.dual_coef_, expected.dual_coef_)
    assert found.support_.dtype == expected.support_.dtype


@pytest.mark.parametrize("which", REGRESSORS)
def test_targets_on_the_device(which):
    X, _, y = data()
    models = [mm.LinearSVR(tol=1e-5, device="auto", **REGRESSORS[which]) for _ in range(2)]
    found = models[1].fit(torch.from_numpy(X), torch.from_numpy(y))
    expected = models[0].fit(torch.from_numpy(X), y)
    agree(found, expected)
    np.testing.assert_array_equal(found.support_, expected.support_)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hard_margin_is_proved(kind):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.LinearSVC(C=np.inf, tol=1e-8, device="cuda").fit(KINDS[kind](X), y)
    assert model.certificate_.holds(1e-8)
    X, y = mm.datasets.load_xor(return_X_y=True)
    with pytest.raises(mm.NotSeparableError) as refusal:
        mm.LinearSVC(C=np.inf, device="cuda").fit(KINDS[kind](X), y)
    assert refusal.value.proof.multipliers.sum() == pytest.approx(1.0)


def test_a_warm_start_begins_at_the_answer():
    X, y, targets = data()
    for model, of in ((mm.LinearSVC(loss="hinge"), y), (mm.LinearSVR(epsilon=0.1), targets)):
        model.set_params(tol=1e-6, device="cuda", warm_start=True).fit(X, of)
        before = model.n_iter_
        model.fit(X, of)
        assert model.n_iter_ < before
        assert model.certificate_.holds(2e-6)


def test_rows_far_from_the_origin():
    X, y, _ = data()
    far = X.astype(np.float64) + 1e6 * (np.arange(X.shape[1]) == 2)
    models = [mm.LinearSVC(loss="hinge", tol=1e-5, device=name) for name in ("cpu", "cuda")]
    found, expected = models[1].fit(far, y), models[0].fit(far, y)
    assert found.certificate_.holds(2e-5)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=5e-3)


def test_callbacks_see_arrays_and_stop():
    X, y, _ = data()
    seen = []

    def callback(step):
        seen.append((step, step.snapshot()))
        return len(seen) == 3

    model = mm.LinearSVC(loss="hinge", device="cuda", callback=callback)
    for labels in (np.minimum(y, 1), torch.from_numpy(np.minimum(y, 1))):
        seen.clear()
        model.fit(torch.from_numpy(X), labels)
        assert len(seen) == 3
        step, solution = seen[-1]
        assert all(isinstance(v, np.ndarray) for v in (solution.alpha, step.rows, step.labels))


def test_a_time_limit_ends_it():
    X, y, _ = data()
    model = mm.LinearSVC(loss="hinge", tol=1e-12, device="cuda", time_limit=1e-9)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert set(model.statuses_) == {"time limit"}


def test_the_engine_is_that_of_the_device(monkeypatch):
    X, y, _ = data()
    used = []
    features = engine_class(None, "torch").features
    monkeypatch.setattr(
        engine_class(None, "torch"), "features",
        lambda engine, index=None: used.append(engine) or features(engine, index),
    )  # fmt: skip
    mm.LinearSVC(loss="hinge", device="cuda").fit(X, np.minimum(y, 1))
    assert used


BLOCKS = {
    "arrays": lambda X: mm.RowBlocks([X[:100], X[100:101], X[101:]]),
    "csr": lambda X: mm.RowBlocks([sparse.csr_matrix(part) for part in (X[:300], X[300:])]),
    "generator": lambda X: mm.RowBlocks(lambda: iter([X[:500], X[500:]])),
}


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_row_blocks_pass_through_the_device(kind, loss, n_classes, streams):
    X, y, _ = data(9000)
    y = np.minimum(y, n_classes - 1)
    models = [mm.LinearSVC(loss=loss, tol=1e-5, device=name) for name in ("cpu", "cuda")]
    agree(models[1].fit(BLOCKS[kind](X), y), models[0].fit(X, y))
    weights = np.arange(len(y)) % 3
    agree(models[1].fit(BLOCKS[kind](X), y, weights), models[0].fit(X, y, weights))
    assert streams


@pytest.mark.parametrize("kind", ["array", "csr"])
def test_what_does_not_fit_passes_through_the_device(kind, monkeypatch, streams):
    from maxmargin.engines.torch import streamed_rows

    tuning = streamed_rows.Tuning(block_bytes=1000, whole_share=0.0)
    monkeypatch.setattr(streamed_rows, "TUNING", tuning)
    X, y, targets = data()
    models = [mm.LinearSVC(loss="hinge", tol=1e-5, device=name) for name in ("cpu", "cuda")]
    agree(models[1].fit(KINDS[kind](X), y), models[0].fit(X, y))
    models = [mm.LinearSVR(epsilon=0.1, tol=1e-5, device=name) for name in ("cpu", "cuda")]
    agree(models[1].fit(KINDS[kind](X), targets), models[0].fit(X, targets))
    assert streams


@pytest.mark.parametrize("which", ["l1", "joint", "scaled bias", "coordinate descent"])
def test_what_cannot_pass_through_it_does_not(which, monkeypatch, streams):
    from maxmargin.engines.torch import streamed_rows

    monkeypatch.setattr(streamed_rows, "TUNING", streamed_rows.Tuning(whole_share=0.0))
    X, y, _ = data()
    agree(
        mm.LinearSVC(tol=1e-5, device="cuda", **CLASSIFIERS[which]).fit(X, y),
        mm.LinearSVC(tol=1e-5, **CLASSIFIERS[which]).fit(X, y),
    )
    assert not streams


@pytest.fixture
def streams(monkeypatch):
    """Return a list of the features that were streamed."""
    from maxmargin.engines.torch import features

    made = []
    kind = features.StreamedProducts
    monkeypatch.setattr(features, "StreamedProducts", lambda X: made.append(X) or kind(X))
    return made


def test_small_tasks_are_solved_on_the_host(monkeypatch):
    """Launches of a card take longer than they do, most of all where rows are badly scaled."""
    monkeypatch.setattr(linear, "TUNING", linear.Tuning())
    monkeypatch.setattr(engine_class(None, "torch"), "features", None)
    X, y, targets = data(n=300)
    for make, of in ((mm.LinearSVC, y), (mm.LinearSVR, targets)):
        models = [make(device=name).fit(X, of) for name in ("cpu", "cuda")]
        np.testing.assert_allclose(models[1].coef_, models[0].coef_, rtol=1e-9, atol=1e-12)
        assert models[1].certificate_.holds(models[1].tol)
