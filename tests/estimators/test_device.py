"""The parameter ``device``, on torch's CPU device: fits, predictions, input, files and errors."""

from __future__ import annotations

import gc
import pickle
import sys
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.estimators.registry import estimators
from tests.helpers.algorithms import blobs

torch = pytest.importorskip("torch")

from maxmargin.engines.torch import device as devices  # noqa: E402
from maxmargin.engines.torch import prediction  # noqa: E402
from maxmargin.engines.torch.device_rows import DeviceRows  # noqa: E402
from tests.helpers.devices import pretend_card, pretend_no_card, stay_on_device  # noqa: E402

X, Y = blobs(150, 4, 3, seed=3)
RNG = np.random.default_rng(0)
X = X + RNG.normal(scale=2.0, size=X.shape)  # classes that overlap
TARGETS = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(scale=0.3, size=len(X))

CLASSIFIERS = {
    "svc": mm.SVC(),
    "svc, squared": mm.SVC(C=10.0, loss="squared_hinge"),
    "svc, ovr": mm.SVC(multi_class="ovr", decision_function_shape="ovr"),
    "svc, poly": mm.SVC(kernel="poly", coef0=1.0),
    "svc, linear": mm.SVC(kernel="linear"),
    "svc, joint": mm.SVC(multi_class="crammer_singer"),
    "svc, no bias": mm.SVC(fit_intercept=False),
    "nu-svc": mm.NuSVC(nu=0.2),
    "linear": mm.LinearSVC(),
    "linear, hinge": mm.LinearSVC(loss="hinge", tol=1e-3),
    "linear, ovo": mm.LinearSVC(multi_class="ovo"),
    "linear, joint": mm.LinearSVC(multi_class="crammer_singer"),
    "linear, l1": mm.LinearSVC(penalty="l1"),
    "linear, descent": mm.LinearSVC(solver="coordinate-descent"),
    "kernel perceptron": mm.KernelPerceptron(gamma=2.0),
}
WITHOUT_CLASSES = {
    "svr": mm.SVR(),
    "svr, squared": mm.SVR(loss="squared_epsilon_insensitive"),
    "nu-svr": mm.NuSVR(),
    "linear svr": mm.LinearSVR(epsilon=0.1),
    "one-class": mm.OneClassSVM(nu=0.2),
}
FORMS = {
    "array": np.asarray,
    "float32": lambda rows: rows.astype(np.float32),
    "csr": sparse.csr_matrix,
    "tensor": lambda rows: torch.tensor(rows, requires_grad=True),
}
MACHINES = {**CLASSIFIERS, **WITHOUT_CLASSES}


WHERE = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=WHERE)
def card(request, monkeypatch):
    if request.param == "cpu":
        pretend_card(monkeypatch)
    stay_on_device(monkeypatch)


@pytest.fixture(params=WHERE)
def data_on_card(request, monkeypatch):
    if request.param == "cpu":
        pretend_card(monkeypatch, everywhere=True)
    stay_on_device(monkeypatch)
    monkeypatch.setattr(sys.modules[__name__], "DEVICE", request.param)


def with_device(model, device):
    return clone(model).set_params(device=device)


def target_of(name):
    return Y if name in CLASSIFIERS else TARGETS


def primals(model):
    return [each.primal for each in model.certificates_]


def parameters_of(estimator):
    return estimator().get_params()


# The parameter ------------------------------------------------------------------------------------


def test_eight_estimators_have_a_device():
    names = {each.__name__ for each in estimators() if "device" in parameters_of(each)}
    assert names == {
        "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR", "KernelPerceptron",
    }  # fmt: skip
    assert mm.SVC().device == "auto"
    assert clone(mm.SVC(device="cuda:1")).device == "cuda:1"


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CUDA", "mps", 0, None])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="'device' parameter of SVC must be 'auto', 'cpu', 'cuda'"):
        mm.SVC(device=name).fit(X, Y)


# Fits and predictions -----------------------------------------------------------------------------


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MACHINES)
def test_a_fit_on_a_device_is_that_of_the_cpu(name, form):
    rows, y = FORMS[form](X), target_of(name)
    here, there = (with_device(MACHINES[name], each).fit(rows, y) for each in ("cpu", "cuda"))
    assert there.device == "cuda"
    assert [str(each) for each in there.statuses_] == [str(each) for each in here.statuses_]
    if name != "kernel perceptron":
        assert all(each.holds(there.tol) for each in there.certificates_)
        assert primals(there) == pytest.approx(primals(here), rel=5e-3)
    for attribute in ("intercept_", "dual_coef_", "support_"):
        assert type(getattr(there, attribute)) is type(getattr(here, attribute))
    predicted = there.predict(rows)
    assert isinstance(predicted, np.ndarray)
    if name in CLASSIFIERS:
        assert np.mean(predicted == here.predict(rows)) > 0.99
    elif name != "one-class":
        spread = 0.02 * np.ptp(TARGETS)
        np.testing.assert_allclose(predicted, here.predict(rows), atol=spread)


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MACHINES)
def test_predictions_on_a_device_are_those_of_the_cpu(name, form):
    rows, y = FORMS[form](X), target_of(name)
    model = with_device(MACHINES[name], "cpu").fit(rows, y)
    methods = ["predict"]
    methods += ["decision_function"] if hasattr(model, "decision_function") else []
    expected = [getattr(model, method)(rows) for method in methods]
    score = model.score(rows, y) if hasattr(model, "score") else None
    model.set_params(device="cuda")
    for method, numbers in zip(methods, expected, strict=True):
        found = getattr(model, method)(rows)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, numbers, rtol=1e-9, atol=1e-9)
    if score is not None:
        assert model.score(rows, y) == pytest.approx(score, rel=1e-12)
        assert model.score(rows, torch.tensor(y)) == pytest.approx(score, rel=1e-12)


@pytest.mark.usefixtures("card")
def test_probabilities_and_ties():
    model = mm.SVC(probability=True, random_state=0, break_ties=True).fit(X, Y)
    proba, labels = model.predict_proba(X), model.predict(X)
    model.set_params(device="cuda")
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(proba), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), labels)
    again = mm.SVC(probability=True, random_state=0, device="cuda").fit(X, Y)
    np.testing.assert_allclose(again.predict_proba(X), proba, atol=0.02)
    ovo = mm.SVC(decision_function_shape="ovo").fit(X, Y)
    scores = ovo.decision_function(X)
    np.testing.assert_allclose(ovo.set_params(device="cuda").decision_function(X), scores)


@pytest.mark.usefixtures("card")
def test_precomputed_and_functions_of_the_caller():
    K = X @ X.T
    functions = (lambda a, b: np.asarray(a @ b.T), lambda a, b: a @ b.T)
    for kernel, rows in (("precomputed", K), *((each, X) for each in functions)):
        here = mm.SVC(kernel=kernel).fit(rows, Y)
        there = mm.SVC(kernel=kernel, device="cuda").fit(rows, Y)
        assert there.certificate_.holds(1e-3)
        assert primals(there) == pytest.approx(primals(here), rel=5e-3)
        scores = here.decision_function(rows)
        np.testing.assert_allclose(here.set_params(device="cuda").decision_function(rows), scores)


@pytest.mark.usefixtures("card")
def test_weights_warm_starts_and_callbacks():
    weights = np.where(np.arange(len(X)) % 3, 1.0, 2.5)
    weights[:5] = 0.0
    for model in (mm.SVC(), mm.LinearSVC(), mm.SVC(class_weight="balanced")):
        here, there = (with_device(model, each).fit(X, Y, weights) for each in ("cpu", "cuda"))
        assert there.certificate_.holds(there.tol)
        assert primals(there) == pytest.approx(primals(here), rel=5e-3)
        assert np.mean(there.predict(X) == here.predict(X)) > 0.98
    warm = mm.SVC(warm_start=True, device="cuda").fit(X, Y)
    warm.set_params(C=2.0).fit(X, Y)
    assert warm.certificate_.holds(1e-3)
    steps = []
    watched = mm.SVC(device="cuda", callback=steps.append).fit(X, Y)
    assert steps
    assert watched.certificate_.holds(1e-3)


@pytest.mark.usefixtures("card")
def test_searches_and_pipelines():
    model = make_pipeline(StandardScaler(), mm.SVC(device="cuda"))
    search = GridSearchCV(model, {"svc__C": [0.1, 1.0]}, cv=3).fit(X, Y)
    expected = GridSearchCV(model.set_params(svc__device="cpu"), {"svc__C": [0.1, 1.0]}, cv=3)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"],
        expected.fit(X, Y).cv_results_["mean_test_score"],
        atol=0.02,
    )


# Data on a card -----------------------------------------------------------------------------------


# Where `tensor` puts data.
DEVICE = "cpu"


def tensor(values, **options):
    return torch.tensor(np.asarray(values), device=DEVICE, **options)


@pytest.mark.usefixtures("data_on_card")
@pytest.mark.parametrize("name", MACHINES)
def test_data_on_a_card_stay_there(name):
    rows, y = tensor(X, requires_grad=True), tensor(target_of(name))
    there = clone(MACHINES[name]).fit(rows, y)
    here = with_device(MACHINES[name], "cpu").fit(X, target_of(name))
    assert [str(each) for each in there.statuses_] == [str(each) for each in here.statuses_]
    if name != "kernel perceptron":
        assert there.certificate_.holds(there.tol)
    found, expected = there.predict(rows), here.predict(X)
    assert isinstance(found, np.ndarray)
    if name in CLASSIFIERS:
        assert there.classes_.dtype == here.classes_.dtype
        assert np.mean(found == expected) > 0.99
    np.testing.assert_array_equal(rows.detach().cpu().numpy(), X)


@pytest.mark.usefixtures("data_on_card")
def test_rows_on_a_card_are_not_copied_to_the_host(monkeypatch):
    def refuse(self):
        raise AssertionError("X was copied")

    monkeypatch.setattr(DeviceRows, "host", property(refuse))
    rows = tensor(X, dtype=torch.float32)
    for model in (mm.SVC(), mm.SVC(kernel="poly", gamma="auto"), mm.LinearSVC()):
        model.fit(rows, tensor(Y)).predict(rows)


CONVERTED = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "bool": torch.bool,
}


@pytest.mark.usefixtures("data_on_card")
@pytest.mark.parametrize("kind", CONVERTED)
def test_other_types_of_numbers_are_converted(kind):
    rows = tensor(np.abs(np.rint(X))).to(CONVERTED[kind])
    same = rows.to(torch.float64).cpu().numpy()
    model, expected = mm.SVC(gamma=0.1).fit(rows, tensor(Y)), mm.SVC(gamma=0.1).fit(same, Y)
    assert model.support_vectors_.dtype == (np.float32 if "float" in kind else np.float64)
    np.testing.assert_allclose(model.predict(rows), expected.predict(same))


@pytest.mark.usefixtures("data_on_card")
@pytest.mark.parametrize("layout", ["columns", "csr", "coo", "unsorted"])
def test_other_layouts(layout):
    rows = tensor(X)
    if layout == "columns":
        rows = rows.T.contiguous().T
    elif layout == "csr":
        rows = rows.to_sparse_csr()
    elif layout == "coo":
        rows = rows.to_sparse_coo()
    else:
        crow = tensor(np.arange(0, X.size + 1, X.shape[1]))
        columns = tensor(np.tile(np.arange(X.shape[1])[::-1], len(X)))
        rows = torch.sparse_csr_tensor(crow, columns, rows.flip(1).ravel(), size=X.shape)
    model = mm.SVC().fit(rows, tensor(Y))
    assert sparse.issparse(model.support_vectors_) == (layout != "columns")
    expected = mm.SVC().fit(X, Y)
    assert model.kernel_.gamma == pytest.approx(expected.kernel_.gamma, rel=1e-12)
    assert np.mean(model.predict(rows) == expected.predict(X)) > 0.99


LABELS = {
    "whole": Y,
    "bytes": Y.astype(np.uint8),
    "floats": Y.astype(np.float64),
    "two": np.equal(Y, Y[0]),
    "uint16": Y.astype(np.uint16),
    "far": 1000 * Y,
}


@pytest.mark.usefixtures("data_on_card")
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("make", [mm.SVC, mm.LinearSVC])
def test_labels_on_a_card(make, kind):
    y = LABELS[kind]
    model, expected = make().fit(tensor(X), tensor(y)), make().fit(X, y)
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    assert model.classes_.dtype == expected.classes_.dtype
    assert model.predict(X).dtype == expected.predict(X).dtype
    assert np.mean(model.predict(X) == expected.predict(X)) > 0.99


def broken(values, at, value):
    values = np.array(values, dtype=float)
    values[at] = value
    return values


BAD = {
    "NaN": (broken(X, (3, 2), np.nan), Y),
    "inf": (broken(X, (5, 1), -np.inf), Y),
    "too large": (broken(X, (5, 1), 1e100), Y),
    "one dimension": (X[:, 0], Y),
    "three dimensions": (X[None], Y),
    "no rows": (X[:0], Y[:0]),
    "no columns": (X[:, :0], Y),
    "complex": (X.astype(complex), Y),
    "other lengths": (X, Y[:-1]),
    "one class": (X, np.zeros(len(X))),
    "fractions": (X, X[:, 0]),
    "NaN in y": (X, broken(Y, 7, np.nan)),
    "columns of y": (X, np.column_stack([Y, Y])),
}


def error_of(call):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    return str(caught.value)


@pytest.mark.usefixtures("data_on_card")
@pytest.mark.parametrize("make", [mm.SVC, mm.LinearSVC])
@pytest.mark.parametrize("fault", BAD)
def test_bad_input_has_the_messages_of_arrays(make, fault):
    rows, y = BAD[fault]
    expected = error_of(lambda: make().fit(rows, y))
    assert error_of(lambda: make().fit(tensor(rows), tensor(y))) == expected


@pytest.mark.usefixtures("data_on_card")
def test_bad_targets_weights_and_new_data():
    for y in (broken(TARGETS, 2, np.inf), broken(TARGETS, 2, 1e90), TARGETS[:-1]):
        for make in (mm.SVR, mm.LinearSVR):
            expected = error_of(lambda make=make, y=y: make().fit(X, y))
            assert error_of(lambda make=make, y=y: make().fit(tensor(X), tensor(y))) == expected
    for weights in (-np.ones(len(X)), np.zeros(len(X)), np.ones(3), broken(Y, 0, np.nan)):
        expected = error_of(lambda weights=weights: mm.LinearSVC().fit(X, Y, weights))
        found = error_of(lambda w=weights: mm.LinearSVC().fit(tensor(X), tensor(Y), tensor(w)))
        assert found == expected
    model = mm.SVC().fit(X, Y)
    for rows in (X[:, :2], X[0], broken(X, (3, 2), np.nan), X[:0]):
        expected = error_of(lambda rows=rows: model.predict(rows))
        assert error_of(lambda rows=rows: model.predict(tensor(rows))) == expected
    with pytest.raises(ValueError, match="cannot use sparse input in 'SVC' trained on dense data"):
        model.predict(tensor(X).to_sparse_csr())
    with pytest.raises(NotFittedError):
        mm.SVC().predict(tensor(X))
    K = X @ X.T
    for rows in (K[:, :5], K + np.triu(np.ones_like(K))):
        expected = error_of(lambda rows=rows: mm.SVC(kernel="precomputed").fit(rows, Y))
        found = error_of(lambda rows=rows: mm.SVC(kernel="precomputed").fit(tensor(rows), Y))
        assert found == expected


@pytest.mark.usefixtures("data_on_card")
def test_gamma_and_weighted_variance():
    weights = np.linspace(0.5, 2.0, len(X))
    for given in (None, weights):
        here = mm.SVC().fit(X, Y, given)
        for rows in (tensor(X), tensor(X).to_sparse_csr(), tensor(X, dtype=torch.float32)):
            there = mm.SVC().fit(rows, tensor(Y), given)
            assert there.kernel_.gamma == pytest.approx(here.kernel_.gamma, rel=1e-6)


# Array API ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_answers_are_what_was_passed_in(name, monkeypatch, data_on_card):
    check_answers(name, monkeypatch)


@pytest.mark.parametrize("name", MACHINES)
def test_answers_to_tensors_of_the_host(name, monkeypatch):
    check_answers(name, monkeypatch)


def check_answers(name, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    rows, y = tensor(X), tensor(target_of(name))
    model = clone(MACHINES[name]).fit(rows, y)
    expected = model.predict(X)
    with sklearn.config_context(array_api_dispatch=True):
        again = clone(MACHINES[name]).fit(rows, y)
        assert isinstance(again.intercept_, np.ndarray)
        predicted = model.predict(rows)
        assert isinstance(predicted, torch.Tensor)
        assert predicted.device == rows.device
        if hasattr(model, "decision_function"):
            assert isinstance(model.decision_function(rows), torch.Tensor)
        if hasattr(model, "score"):
            assert isinstance(model.score(rows, y), float)
        assert isinstance(model.predict(X), np.ndarray)
    np.testing.assert_allclose(predicted.cpu().numpy(), expected)


def test_labels_of_text_stay_arrays(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    model = mm.SVC().fit(X, Y.astype(str))
    with sklearn.config_context(array_api_dispatch=True):
        found = model.predict(torch.tensor(X))
    np.testing.assert_array_equal(found, model.predict(X))


def test_tensors_of_the_host_are_used_without_a_copy():
    rows = torch.tensor(X, requires_grad=True)
    seen = []
    mm.SVC(kernel=lambda a, b: (seen.append(a), a @ b.T)[1]).fit(rows, Y)
    assert any(np.shares_memory(a, rows.detach().numpy()) for a in seen)
    scaled = make_pipeline(StandardScaler(), mm.LinearSVC()).fit(X, Y)
    np.testing.assert_array_equal(scaled.predict(torch.tensor(X)), scaled.predict(X))


def test_other_estimators_take_tensors(data_on_card):
    for make in (mm.Perceptron, mm.Pseudoinverse, mm.LMS):
        model = make().fit(tensor(X), tensor(Y))
        np.testing.assert_array_equal(model.predict(tensor(X)), make().fit(X, Y).predict(X))


# Files, and machines without a card ---------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_a_model_of_a_card_predicts_without_one(name, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        pretend_card(patched)
        model = with_device(MACHINES[name], "cuda").fit(X, target_of(name))
        expected = model.predict(X)
    pretend_no_card(monkeypatch)
    mm.save(model, tmp_path / "model.mm")
    for again in (mm.load(tmp_path / "model.mm"), pickle.loads(pickle.dumps(model)), model):
        assert again.device == "cuda"
        with pytest.warns(UserWarning, match="predicting on the CPU") as warned:
            found = again.predict(X)
        assert len(warned) == 1
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        with pytest.raises(ValueError, match="device='cuda' needs"):
            again.fit(X, target_of(name))
        assert again.set_params(device="cpu").fit(X, target_of(name)) is again
        again.set_params(device="cuda")


@pytest.mark.usefixtures("card")
def test_other_formats_of_a_model_of_a_card(tmp_path):
    model = mm.SVC(device="cuda").fit(X, Y)
    mm.persistence.save_libsvm(model, tmp_path / "model.txt")
    again = mm.persistence.load_libsvm(tmp_path / "model.txt")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    mm.persistence.save_json(model, tmp_path / "model.json")
    pytest.importorskip("skl2onnx")
    mm.persistence.save_onnx(model, tmp_path / "model.onnx")


# What is kept on a device -------------------------------------------------------------------------


@pytest.mark.usefixtures("card")
def test_what_is_kept_belongs_to_one_fit():
    model = mm.SVC(device="cuda").fit(X, Y)
    first = model.decision_function(X)
    kept = prediction._KEPT[model]
    np.testing.assert_array_equal(model.decision_function(X), first)
    assert prediction._KEPT[model] is kept
    model.set_params(C=0.01).fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(X), mm.SVC(C=0.01).fit(X, Y).decision_function(X), atol=0.05
    )
    model.dual_coef_ = np.zeros_like(model.dual_coef_)
    model.intercept_ = np.ones_like(model.intercept_)
    assert np.ptp(model.decision_function(X), axis=0).max() == 0.0
    assert not any("device_rows" in str(type(value)) for value in vars(model).values())
    model = None
    gc.collect()
    assert all(key is not None for key in prediction._KEPT)


@pytest.mark.usefixtures("card")
def test_predictions_where_memory_is_short(monkeypatch):
    model = mm.SVC(device="cuda").fit(X, Y)
    expected, scores = model.decision_function(X), prediction._Kept.scores
    tiles = []

    def short(self, rows, tile):
        tiles.append(tile)
        if tile > room:
            raise torch.OutOfMemoryError("full")
        return scores(self, rows, tile)

    monkeypatch.setattr(prediction._Kept, "scores", short)
    room = 1 << 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.decision_function(X), expected)
    assert min(tiles) <= room < max(tiles)
    room = 0
    with pytest.warns(UserWarning, match="is full: predicting on the CPU"):
        np.testing.assert_allclose(model.decision_function(X), expected)


@pytest.mark.usefixtures("card")
def test_no_room_for_the_data(monkeypatch):
    def full(cls, rows, where):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(DeviceRows, "upload", classmethod(full))
    for rows in (X, torch.tensor(X)):
        with pytest.warns(UserWarning, match="is full: X is left"):
            model = mm.SVC(device="cuda").fit(rows, Y)
        assert model.certificate_.holds(1e-3)


# Names of devices ---------------------------------------------------------------------------------


@pytest.fixture
def cards(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(devices, "_use", lambda device: None)


@pytest.mark.usefixtures("cards")
def test_names_of_cards():
    assert devices.find_device("cuda") == torch.device("cuda", 0)
    assert devices.find_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match=r"'cuda:3' is not a card of this machine: use one of"):
        devices.find_device("cuda:3")


@pytest.mark.usefixtures("cards")
def test_a_card_that_is_taken(monkeypatch):
    def taken(device):
        raise RuntimeError("CUDA error: device(s) is/are busy or unavailable\nCompile with")

    monkeypatch.setattr(devices, "_use", taken)
    with pytest.raises(ValueError, match=r"cannot be used: CUDA error.* unavailable\. See which"):
        mm.SVC(device="cuda").fit(X, Y)


def test_no_build_for_cuda(monkeypatch):
    pretend_no_card(monkeypatch)
    with pytest.raises(ValueError, match=r"needs a torch that was built for CUDA.*install such"):
        mm.SVC(device="cuda").fit(X, Y)


def test_no_card(monkeypatch):
    def no_driver():
        raise RuntimeError("Found no NVIDIA driver on your system.\nPlease check")

    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", no_driver)
    with pytest.raises(ValueError, match=r"needs a GPU.*Found no NVIDIA driver on your system\."):
        mm.LinearSVC(device="cuda:1").fit(X, Y)


def test_no_torch(monkeypatch):
    model = mm.SVC().fit(X, Y).set_params(device="cuda")
    for name in list(sys.modules):
        if name.partition(".")[0] == "torch" or "engines.torch" in name:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.warns(UserWarning, match=r'pip install "maxmargin\[gpu\]"'):
        model.predict(X)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[gpu\]"'):
        model.fit(X, Y)
    assert mm.SVC().fit(X, Y).certificate_.holds(1e-3)


@pytest.mark.usefixtures("data_on_card")
def test_a_card_that_is_full_before_the_checks(monkeypatch):
    """Tensors of whole numbers are converted first, for which there may be no room."""
    monkeypatch.setattr(DeviceRows, "as_numbers", _full)
    X, y = tensor(np.arange(400).reshape(100, 4) % 7), tensor(np.arange(100) % 2)
    with pytest.warns(UserWarning, match="memory of the device is full"):
        model = mm.SVC().fit(X, y)
    assert model.certificate_.holds(1e-3)


def _full(rows):
    raise torch.OutOfMemoryError("no room")
