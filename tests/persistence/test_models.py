"""Saved models behave as before."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

import maxmargin as mm
from maxmargin.diagnostics import support_table
from maxmargin.estimators.column_encoder import ColumnEncoder
from maxmargin.estimators.text_encoder import TextEncoder
from maxmargin.kernels import RBF, Custom, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.persistence import ModelFileError, about, load, models, save, writing
from maxmargin.persistence.values import Decoder, Encoder
from maxmargin.schedules import Constant, Harmonic
from tests.helpers.saved_models import (
    ESTIMATORS,
    answers,
    assert_same,
    dot,
    frame_of_words,
    samples,
    targets,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LABELS: dict[str, Any] = {
    "int": np.array([3, 1, 7]),
    "float": np.array([0.0, 1.0, 2.0]),
    "str": np.array(["pear", "fig", "Äpfel"]),
    "object": np.array(["pear", "fig", "apple"], dtype=object),
}


def through_file(model: Any, folder: Path) -> Any:
    save(model, folder / "model.safetensors")
    return load(folder / "model.safetensors")


# Saved and loaded models --------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["dense", "CSR", "float32"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_comes_back(name: str, n_classes: int, storage: str, tmp_path: Path) -> None:
    X, codes = samples(n_classes)
    X = {"dense": X, "CSR": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[storage]
    y = targets(ESTIMATORS[name], codes, LABELS["str"])
    model = clone(ESTIMATORS[name]).fit(X, y)
    back = through_file(model, tmp_path)
    assert type(back) is type(model)
    forgotten = {"_memory", "_fitted_on", "_objects", "_skl_callbacks", "_callback_fit_ctx"}
    assert set(vars(back)) - forgotten == set(vars(model)) - forgotten
    for attribute in set(vars(model)) - forgotten:
        assert_same(getattr(model, attribute), getattr(back, attribute))
    assert_same(answers(model, X), answers(back, X))
    if hasattr(model, "score"):
        assert back.score(X, y) == model.score(X, y)
    assert back.certificate_ == model.certificate_
    assert back.status_ is model.status_
    assert_same(model.trace_, back.trace_)
    assert str(back.certificate_) == str(model.certificate_)
    for attribute in ("coef_", "hyperplane_", "offset_"):
        if hasattr(model, attribute):
            assert_same(getattr(model, attribute), getattr(back, attribute))
    assert back.get_params() == model.get_params()


def test_every_estimator_of_the_library_is_on_the_list() -> None:
    fitted = {type(model) for model in ESTIMATORS.values()} | {ColumnEncoder, TextEncoder}
    ours = {e for e in models.ESTIMATORS if e.__module__.startswith("maxmargin")}
    assert fitted == ours


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_keep_their_type(labels: str, n_classes: int, tmp_path: Path) -> None:
    X, codes = samples(n_classes)
    y = LABELS[labels][codes]
    model = mm.SVC().fit(X, y)
    assert_same(model.predict(X), through_file(model, tmp_path).predict(X))


def test_labels_may_be_truth_values(tmp_path: Path) -> None:
    X, codes = samples(2)
    back = through_file(mm.Perceptron().fit(X, codes.astype(bool)), tmp_path)
    assert back.predict(X).dtype == bool


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_may_be_unfitted(name: str, tmp_path: Path) -> None:
    back = through_file(ESTIMATORS[name], tmp_path)
    assert back.get_params() == ESTIMATORS[name].get_params()
    X, codes = samples()
    y = targets(back, codes)
    with pytest.raises(NotFittedError):
        back.predict(X)
    assert_same(clone(ESTIMATORS[name]).fit(X, y).predict(X), back.fit(X, y).predict(X))


def test_parameters_survive_a_file(tmp_path: Path) -> None:
    y = samples()[1]
    margins = np.linspace(1.0, 2.0, len(y))
    cases: list[tuple[Any, str]] = [
        (mm.SVC(class_weight={0: 2.0, 1: 1.0, 2: 0.5}), "class_weight"),
        (mm.SVC(class_weight={np.int64(0): np.float32(2.0)}), "class_weight"),
        (mm.SVC(C=float("inf")), "C"),
        (mm.SVC(kernel=Linear() + 2.0 * RBF(0.5) * Polynomial(2, 0.1, 1.0)), "kernel"),
        (mm.SVC(kernel=Sigmoid(0.1, -1.0)), "kernel"),
        (mm.NuSVC(kernel=RBF(sigma=2.0)), "kernel"),
        (mm.Perceptron(learning_rate=Harmonic(2.0, 3.0)), "learning_rate"),
        (mm.LMS(learning_rate=Constant(0.01), random_state=7), "learning_rate"),
        (mm.Pseudoinverse(margins=margins), "margins"),
        (mm.LinearSVC(time_limit=1e-3, n_jobs=2), "time_limit"),
        (mm.SVR(C=float("inf"), kernel=RBF(0.5) + Linear()), "kernel"),
        (mm.OneClassSVM(nu=0.1), "nu"),
    ]
    for model, name in cases:
        back = through_file(model, tmp_path)
        assert_same(getattr(model, name), getattr(back, name))


def test_code_and_state_are_not_saved(tmp_path: Path) -> None:
    X, y = samples()
    steps: list[Any] = []
    rng = np.random.RandomState(0)
    model = mm.Perceptron(callback=steps.append, random_state=rng, shuffle=True).fit(X, y)
    back = through_file(model, tmp_path)
    assert back.callback is None
    assert back.random_state is None
    assert_array_equal(back.coef_, model.coef_)


def test_passes_over_new_samples_go_on(tmp_path: Path) -> None:
    X, y = samples()
    rate = Harmonic(1.0)
    model = mm.Perceptron(learning_rate=rate).partial_fit(X[::2], y[::2], classes=[0, 1, 2])
    back = through_file(model, tmp_path)
    for one in (model, back):
        one.partial_fit(X[1::2], y[1::2])
    assert_same(model.coef_, back.coef_)
    assert model.n_updates_ == back.n_updates_


def test_a_batch_without_some_classes_can_be_saved(tmp_path: Path) -> None:
    X, y = samples()
    model = mm.Perceptron(multi_class="ovo")
    model.partial_fit(X, y, classes=[0, 1, 2]).partial_fit(X[:10], y[:10])
    assert len(model.certificates_) == 2  # of three pairs
    assert_same(model.predict(X), through_file(model, tmp_path).predict(X))


@pytest.mark.parametrize(
    "name",
    [
        "SVC", "SVC, joint", "NuSVC", "LinearSVC", "LinearSVC, l1", "Ho-Kashyap",
        "kernel perceptron", "perceptron", "SVR", "NuSVR", "LinearSVR", "one-class",
    ],
)  # fmt: skip
def test_a_warm_start_continues(name: str, tmp_path: Path) -> None:
    X, codes = samples()
    y = targets(ESTIMATORS[name], codes)
    model = clone(ESTIMATORS[name]).set_params(warm_start=True).fit(X, y)
    back = through_file(model, tmp_path).fit(X, y)
    assert back.certificate_.holds(1e-3) or not model.certificate_.holds(1e-3)
    assert_allclose(back.predict(X), model.fit(X, y).predict(X), atol=1e-2)


def test_tables_are_those_of_the_model(tmp_path: Path) -> None:
    X, y = samples(2)
    model = mm.SVC().fit(X, y)
    back = through_file(model, tmp_path)
    assert support_table(back, X, y).to_dict() == support_table(model, X, y).to_dict()


def test_precomputed_kernels_survive_a_file(tmp_path: Path) -> None:
    X, y = samples()
    K = X @ X.T
    for model in (
        mm.SVC(kernel="precomputed"),
        mm.KernelPerceptron(kernel=Precomputed()),
        mm.SVR(kernel="precomputed"),
        mm.OneClassSVM(kernel="precomputed"),
    ):
        back = through_file(model.fit(K, y), tmp_path)
        assert_same(answers(model, K), answers(back, K))


def test_sparse_planes_survive_a_file(tmp_path: Path) -> None:
    X, y = samples()
    model = mm.LinearSVC().fit(X, y).sparsify()
    back = through_file(model, tmp_path)
    assert sparse.issparse(back.coef_)
    assert_same(model.decision_function(X), back.decision_function(X))


def test_csr_arrays_stay_arrays(tmp_path: Path) -> None:
    X, y = samples()
    back = through_file(mm.SVC().fit(sparse.csr_array(X), y), tmp_path)
    assert isinstance(back.support_vectors_, sparse.csr_array)


def test_feature_names_survive_a_file(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y = samples()
    frame = pd.DataFrame(X, columns=["mass", "width", "height"])
    back = through_file(mm.SVC().fit(frame, y), tmp_path)
    assert list(back.feature_names_in_) == ["mass", "width", "height"]
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame.rename(columns={"mass": "weight"}))


# Pipelines ----------------------------------------------------------------------------------------


SCALERS: list[Any] = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1, 1), clip=True),
    MaxAbsScaler(),
    RobustScaler(quantile_range=(10.0, 90.0)),
    RobustScaler(with_centering=False, with_scaling=False),
    Normalizer(norm="l1"),
    ColumnEncoder(),
    ColumnEncoder(scale=False),
    "passthrough",
]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_pipelines_survive_a_file(scaler: Any, tmp_path: Path) -> None:
    X, y = samples()
    model = make_pipeline(scaler, mm.SVC()).fit(X, y)
    back = through_file(model, tmp_path)
    assert isinstance(back, Pipeline)
    assert_same(model.decision_function(X), back.decision_function(X))
    assert [name for name, _ in back.steps] == [name for name, _ in model.steps]
    assert_same(clone(back).fit(X, y).decision_function(X), model.decision_function(X))


def test_nested_pipelines_survive_a_file(tmp_path: Path) -> None:
    X, y = samples()
    inner = make_pipeline(StandardScaler(), Normalizer())
    model = make_pipeline(inner, MinMaxScaler(), mm.LinearSVC()).fit(X, y)
    assert_same(model.decision_function(X), through_file(model, tmp_path).decision_function(X))


def test_text_columns_survive_a_file(tmp_path: Path) -> None:
    frame, y = frame_of_words()
    frame.loc[3, "width"] = np.nan
    frame.loc[5, "colour"] = None
    model = make_pipeline(ColumnEncoder(impute=True), mm.SVC()).fit(frame, y)
    back = through_file(model, tmp_path)
    frame.loc[7, "colour"] = "violet"
    assert_same(model.decision_function(frame), back.decision_function(frame))
    assert_same(model[0].categories_, back[0].categories_)
    assert list(back[0].get_feature_names_out()) == list(model[0].get_feature_names_out())


# What cannot be saved -----------------------------------------------------------------------------


class Subclass(mm.SVC):
    """Not on the list."""


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (mm.SVC(kernel=dot), r"SVC\(kernel\)=.*dot.* is code"),
        (mm.SVC(kernel=Custom(dot)), r"SVC\(kernel\)=Custom\(dot\) is code"),
        (mm.SVC(kernel=RBF(1.0) + Custom(dot)), r"kernel\).parts\[1\]=Custom\(dot\) is code"),
        (mm.Perceptron(learning_rate=lambda t: 1.0 / t), r"Perceptron\(learning_rate\)=.*is code"),
        (mm.SVC(class_weight={0: object()}), r"SVC\(class_weight\)\[0\] is of type object"),
        (GridSearchCV(mm.SVC(), {"C": [1.0]}), "save its best_estimator_"),
        (
            mm.LinearSVCCV([1.0], cv=2).fit([[0], [1], [2], [3]], [0, 0, 1, 1]),
            "its best_estimator_",
        ),
        (
            LogisticRegression(),
            "sklearn's LogisticRegression cannot be saved: the model must be one of",
        ),
        (make_pipeline(StandardScaler(), LogisticRegression()), "LogisticRegression cannot be"),
        (Subclass(), "Subclass cannot be saved"),
        (mm.SVC, r"SVC is a class: pass a model, SVC\(\)"),
        (None, "NoneType cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_named(model: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=says):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_fit_with_a_function_as_kernel_cannot_be_saved(tmp_path: Path) -> None:
    words, y = ["a", "bb", "ccc", "dddd"], [0, 0, 1, 1]
    lengths = mm.SVC(kernel=lambda A, B: np.array([[len(a) * len(b) for b in B] for a in A]))
    with pytest.raises(TypeError, match="is code"):
        save(lengths.fit(words, y), tmp_path / "model")


def test_a_model_that_contradicts_itself_is_not_saved(tmp_path: Path) -> None:
    X, y = samples()
    model = mm.LinearSVC().fit(X, y)
    model.coef_ = model.coef_[:, :2]
    with pytest.raises(ValueError, match=r"coef_ must have shape \(3, 3\), got \(3, 2\)"):
        save(model, tmp_path / "model")


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -(2**80), 0.1, 5e-324, float("inf"), -float("inf"), float("nan"), "",
        "ä\n\ud800", [], [1, [2.5, None]], (), (1, "a", (2,)), {},
        {0: 1, "0": 2, (1, 2): [3], None: {True: 1.5}},
        np.float32(0.1), np.float64("nan"), np.int8(-3), np.bool_(True), np.uint64(2**64 - 1),
        np.array(3.5), np.empty((0, 3)), np.empty((2, 0), dtype=np.int32), np.array([True, False]),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(8)[::2],
        np.arange(4, dtype=">f8"), np.broadcast_to(1.5, (2, 2)), np.array(["a", "bcd"]),
        np.array(["a"], dtype="<U9"),
        np.array([["x", "y"]], dtype=object), np.array([1, "b", 2.5], dtype=object),
        sparse.csr_matrix(np.eye(3)), sparse.csr_array(np.zeros((2, 4))),
        RBF(0.1) * Linear() + 3.0 * Sigmoid(), Harmonic(0.5, 2.0), mm.Status.PATIENCE,
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_values_survive_a_file(value: Any) -> None:
    encoder = Encoder()
    text = json.dumps(encoder.encode(value, "value"), allow_nan=False)
    decoder = Decoder(encoder.tensors)
    back = decoder.decode(json.loads(text))
    assert not decoder.tensors
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype.newbyteorder("=")
        assert back.shape == value.shape
        assert_array_equal(back, value)
    else:
        assert_same(value, back)


@pytest.mark.parametrize(
    "value", [1j, b"bytes", {1, 2}, np.array([1j]), np.array(["2020"], dtype="M8[D]"), dot, object]
)
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="the_name"):
        Encoder().encode(value, "the_name")


def test_endless_values_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError, match="nested more than"):
        Encoder().encode(endless, "value")


# Facts about training -----------------------------------------------------------------------------


def test_facts_are_kept_with_the_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    facts = {"data": "fruit.csv", "rows": 40, "names": ["a", "b"], "nested": {"error": 0.25}}
    save(mm.SVC(), path, about=facts)
    told = about(path)
    assert told.pop("maxmargin_version") == mm.__version__
    assert told.pop("format_version") == 1
    assert told.pop("sklearn_version")
    assert told == facts


def test_facts_are_read_without_the_tensors(tmp_path: Path) -> None:
    path = damaged_tensor(tmp_path)
    assert about(path)["rows"] == 36
    with pytest.raises(ModelFileError, match="SHA-256 differs"):
        load(path)


def damaged_tensor(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    X, y = samples()
    save(mm.SVC().fit(X, y), path, about={"rows": 36})
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("facts", [{"x": np.arange(3)}, {"x": float("nan")}, {1: 2}, {"x": (1, 2)}])
def test_facts_that_are_no_json_are_refused(facts: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="about="):
        save(mm.SVC(), tmp_path / "model", about=facts)


def test_facts_do_not_hide_ours(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'format_version', which is added to every file"):
        save(mm.SVC(), tmp_path / "model", about={"format_version": 9})


# Writing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["safetensors.numpy.save_file", "os.replace", "os.fsync"])
def test_a_failed_write_leaves_the_old_file(
    error: BaseException, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    save(mm.SVC(C=2.0), path)

    def fail(*args: Any, **options: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(type(error)):
            save(mm.SVC(C=3.0), path)
    assert load(path).C == 2.0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_are_those_of_any_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    before = os.umask(0o027)
    try:
        save(mm.SVC(), path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    save(mm.SVC(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "model", tmp_path / "link"
    save(mm.SVC(C=2.0), target)
    link.symlink_to(target)
    save(mm.SVC(C=3.0), link)
    assert link.is_symlink()
    assert load(target).C == 3.0


def test_places_that_are_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        save(mm.SVC(), tmp_path)
    with pytest.raises(FileNotFoundError):
        save(mm.SVC(), tmp_path / "none" / "model")
    with pytest.raises(OSError, match="must be a regular file"):
        save(mm.SVC(), os.devnull)
    assert not list(tmp_path.iterdir())


def test_text_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("old")

    def lines() -> Any:
        yield "new\n"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        writing.write_text(path, lines())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# Imports ------------------------------------------------------------------------------------------


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, maxmargin.persistence as p; "
        "heavy = {'safetensors', 'onnx', 'numba', 'sklearn', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy; p.save; p.load_libsvm; "
        "heavy = {'onnx', 'skl2onnx', 'llvmlite'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
