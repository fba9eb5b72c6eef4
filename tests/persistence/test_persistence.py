"""Saved models behave as before; files that are none are refused, whatever is in them."""

from __future__ import annotations

import json
import os
import pickle
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
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
from maxmargin.kernels import RBF, Custom, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.persistence import (
    ModelFileError,
    about,
    files,
    load,
    models,
    save,
    save_json,
    to_json,
    writing,
)
from maxmargin.persistence.values import Decoder, Encoder
from maxmargin.schedules import Constant, Harmonic

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ESTIMATORS: dict[str, Any] = {
    "perceptron": mm.Perceptron(max_iter=30),
    "pocket": mm.Pocket(max_iter=5),
    "relaxation": mm.Relaxation(max_iter=5),
    "LMS": mm.LMS(max_iter=5),
    "pseudoinverse": mm.Pseudoinverse(margins="fisher"),
    "Ho-Kashyap": mm.HoKashyap(max_iter=20),
    "kernel perceptron": mm.KernelPerceptron(max_iter=20),
    "kernel perceptron, linear": mm.KernelPerceptron(kernel="linear", max_iter=20),
    "SVC": mm.SVC(),
    "SVC, linear": mm.SVC(kernel="linear", C=10.0),
    "NuSVC": mm.NuSVC(nu=0.2),
    "LinearSVC": mm.LinearSVC(),
}
LABELS: dict[str, Any] = {
    "int": np.array([3, 1, 7]),
    "float": np.array([0.0, 1.0, 2.0]),
    "str": np.array(["pear", "fig", "Äpfel"]),
    "object": np.array(["pear", "fig", "apple"], dtype=object),
}


def samples(n_classes: int = 3, n: int = 12, d: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_classes)
    centres = 3.0 * rng.normal(size=(n_classes, d))
    X = np.vstack([centre + rng.normal(size=(n, d)) for centre in centres])
    return X, np.repeat(np.arange(n_classes), n)


def through_file(model: Any, folder: Path) -> Any:
    save(model, folder / "model.safetensors")
    return load(folder / "model.safetensors")


def assert_same(value: Any, other: Any) -> None:
    """The same type, the same numbers to the last bit, all the way down."""
    assert type(value) is type(other)
    if sparse.issparse(value):
        assert value.shape == other.shape
        for part in ("data", "indices", "indptr"):
            assert_array_equal(getattr(value, part), getattr(other, part))
    elif isinstance(value, np.ndarray):
        assert value.dtype == other.dtype
        assert_array_equal(value, other)
    elif isinstance(value, list | tuple):
        assert len(value) == len(other)
        for pair in zip(value, other, strict=True):
            assert_same(*pair)
    elif isinstance(value, dict):
        assert list(value) == list(other)
        assert_same(list(value.values()), list(other.values()))
    elif hasattr(value, "__dataclass_fields__"):
        assert_same(vars(value), vars(other))
    elif isinstance(value, float) and np.isnan(value):
        assert np.isnan(other)
    else:
        assert value == other


# Models come back ----------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["dense", "CSR", "float32"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_comes_back(name: str, n_classes: int, storage: str, tmp_path: Path) -> None:
    X, codes = samples(n_classes)
    X = {"dense": X, "CSR": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[storage]
    y = LABELS["str"][codes]
    model = clone(ESTIMATORS[name]).fit(X, y)
    back = through_file(model, tmp_path)
    assert type(back) is type(model)
    forgotten = {"_memory", "_fitted_on", "_objects", "_skl_callbacks", "_callback_fit_ctx"}
    assert set(vars(back)) - forgotten == set(vars(model)) - forgotten
    for attribute in set(vars(model)) - forgotten:
        assert_same(getattr(model, attribute), getattr(back, attribute))
    assert_same(model.predict(X), back.predict(X))
    assert_same(model.decision_function(X), back.decision_function(X))
    assert back.score(X, y) == model.score(X, y)
    assert back.certificate_ == model.certificate_
    assert back.status_ is model.status_
    assert_same(model.trace_, back.trace_)
    assert str(back.certificate_) == str(model.certificate_)
    if hasattr(model, "coef_"):
        assert_same(model.coef_, back.coef_)
    if hasattr(model, "hyperplane_"):
        assert back.hyperplane_ == model.hyperplane_
    assert back.get_params() == model.get_params()


def test_every_estimator_of_the_library_is_on_the_list() -> None:
    fitted = {type(model) for model in ESTIMATORS.values()} | {ColumnEncoder}
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
    X, y = samples()
    with pytest.raises(NotFittedError):
        back.predict(X)
    assert_same(clone(ESTIMATORS[name]).fit(X, y).predict(X), back.fit(X, y).predict(X))


def test_parameters_come_back(tmp_path: Path) -> None:
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
    ]
    for model, name in cases:
        back = through_file(model, tmp_path)
        assert_same(getattr(model, name), getattr(back, name))


def test_what_is_code_or_state_is_left_behind(tmp_path: Path) -> None:
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
    "name", ["SVC", "NuSVC", "LinearSVC", "Ho-Kashyap", "kernel perceptron", "perceptron"]
)
def test_a_warm_start_goes_on(name: str, tmp_path: Path) -> None:
    X, y = samples()
    model = clone(ESTIMATORS[name]).set_params(warm_start=True).fit(X, y)
    back = through_file(model, tmp_path).fit(X, y)
    assert back.certificate_.holds(1e-3) or not model.certificate_.holds(1e-3)
    assert_array_equal(back.predict(X), model.fit(X, y).predict(X))


def test_tables_are_those_of_the_model(tmp_path: Path) -> None:
    X, y = samples(2)
    model = mm.SVC().fit(X, y)
    back = through_file(model, tmp_path)
    assert support_table(back, X, y).to_dict() == support_table(model, X, y).to_dict()


def test_given_kernel_values_come_back(tmp_path: Path) -> None:
    X, y = samples()
    K = X @ X.T
    for model in (mm.SVC(kernel="precomputed"), mm.KernelPerceptron(kernel=Precomputed())):
        back = through_file(model.fit(K, y), tmp_path)
        assert_same(model.decision_function(K), back.decision_function(K))


def test_sparse_planes_come_back(tmp_path: Path) -> None:
    X, y = samples()
    model = mm.LinearSVC().fit(X, y).sparsify()
    back = through_file(model, tmp_path)
    assert sparse.issparse(back.coef_)
    assert_same(model.decision_function(X), back.decision_function(X))


def test_csr_arrays_stay_arrays(tmp_path: Path) -> None:
    X, y = samples()
    back = through_file(mm.SVC().fit(sparse.csr_array(X), y), tmp_path)
    assert isinstance(back.support_vectors_, sparse.csr_array)


def test_names_of_features_come_back(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y = samples()
    frame = pd.DataFrame(X, columns=["mass", "width", "height"])
    back = through_file(mm.SVC().fit(frame, y), tmp_path)
    assert list(back.feature_names_in_) == ["mass", "width", "height"]
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame.rename(columns={"mass": "weight"}))


# Pipelines -----------------------------------------------------------------------------------

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
def test_pipelines_come_back(scaler: Any, tmp_path: Path) -> None:
    X, y = samples()
    model = make_pipeline(scaler, mm.SVC()).fit(X, y)
    back = through_file(model, tmp_path)
    assert isinstance(back, Pipeline)
    assert_same(model.decision_function(X), back.decision_function(X))
    assert [name for name, _ in back.steps] == [name for name, _ in model.steps]
    assert_same(clone(back).fit(X, y).decision_function(X), model.decision_function(X))


def test_a_pipeline_within_a_pipeline_comes_back(tmp_path: Path) -> None:
    X, y = samples()
    inner = make_pipeline(StandardScaler(), Normalizer())
    model = make_pipeline(inner, MinMaxScaler(), mm.LinearSVC()).fit(X, y)
    assert_same(model.decision_function(X), through_file(model, tmp_path).decision_function(X))


def frame_of_words() -> tuple[Any, Any]:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "mass of it": 10.0 * rng.normal(size=40),
            "colour": rng.choice(["red", "grün", "blue"], 40),
            "width": rng.normal(size=40),
        }
    )
    return frame, np.where(frame["colour"].eq("red") | (frame["width"] > 0.5), "yes", "no")


def test_columns_of_words_come_back(tmp_path: Path) -> None:
    frame, y = frame_of_words()
    frame.loc[3, "width"] = np.nan
    frame.loc[5, "colour"] = None
    model = make_pipeline(ColumnEncoder(impute=True), mm.SVC()).fit(frame, y)
    back = through_file(model, tmp_path)
    frame.loc[7, "colour"] = "violet"
    assert_same(model.decision_function(frame), back.decision_function(frame))
    assert_same(model[0].categories_, back[0].categories_)
    assert list(back[0].get_feature_names_out()) == list(model[0].get_feature_names_out())


# What cannot be saved ------------------------------------------------------------------------


def dot(X: Any, Z: Any) -> Any:
    return X @ Z.T


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
        (LogisticRegression(), "sklearn's LogisticRegression cannot be saved: pass one of"),
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
    with pytest.raises(ValueError, match=r"coef_ is of shape \(3, 2\), not \(3, 3\)"):
        save(model, tmp_path / "model")


# Values --------------------------------------------------------------------------------------


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
def test_values_come_back(value: Any) -> None:
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


# About ---------------------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match="'format_version', which is added by itself"):
        save(mm.SVC(), tmp_path / "model", about={"format_version": 9})


# Writing -------------------------------------------------------------------------------------


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
    with pytest.raises(OSError, match="no ordinary file"):
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


# Files that are no models --------------------------------------------------------------------


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model", "content")


def of_another_program(path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weight": np.eye(3)}, path, metadata={"format": "pt"})


FOREIGN = {
    "empty": (lambda path: path.write_bytes(b""), "the file is empty"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps(mm.SVC())), "a pickle"),
    "zip": (zipped, "a zip archive"),
    "npz": (lambda path: np.savez(path.open("wb"), x=np.eye(2)), "a zip archive"),
    "gzip": (lambda path: path.write_bytes(b"\x1f\x8b\x08" + bytes(20)), "gzip-compressed"),
    "LIBSVM": (lambda path: path.write_text("svm_type c_svc\nkernel_type rbf\n"), "load_libsvm"),
    "JSON": (lambda path: path.write_text('{"a": 1, "b": 2}'), "JSON text"),
    "text": (lambda path: path.write_text("a,b,c\n1,2,3\n"), "no model of maxmargin"),
    "short": (lambda path: path.write_bytes(b"\x00"), "no model of maxmargin"),
    "zeros": (lambda path: path.write_bytes(bytes(1000)), "no model of maxmargin"),
    "safetensors": (of_another_program, "a safetensors file, but no model of maxmargin"),
    "huge header": (
        lambda path: path.write_bytes((2**62).to_bytes(8, "little") + b"{}      "),
        "truncated: a header of 4611686018427387904 bytes in a file of 16",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_kinds_are_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / "the_file"
    write, says = FOREIGN[name]
    write(path)
    for read in (load, about):
        with pytest.raises(ModelFileError, match=says) as caught:
            read(path)
        assert "the_file" in str(caught.value)


def test_missing_files_and_folders_are_ordinary_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(OSError, match=r"directory|Permission"):
        load(tmp_path)


def rewrite(path: Path, change: Any) -> None:
    """Change metadata, model and tensors of a file, and make its digest right again."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    model = json.loads(metadata["model"])
    change(metadata, model, tensors)
    if model:
        metadata["model"] = json.dumps(model)
    metadata["digest"] = files._digest(metadata, tensors)
    save_file(tensors, path, metadata=metadata)


@cache
def fitted(name: str = "SVC", storage: Any = np.asarray) -> Any:
    X, y = samples()
    return clone(ESTIMATORS[name]).fit(storage(X), y)


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(fitted(), path)
    rewrite(path, lambda metadata, model, tensors: metadata.update(version="3"))
    for read in (load, about):
        with pytest.raises(
            ModelFileError, match="format version 3, this maxmargin reads up to 1: up"
        ):
            read(path)


@pytest.mark.parametrize("version", ["", "-1", "1e3", "²", "9" * 5000, "one"])
def test_a_strange_version_is_refused(version: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(mm.SVC(), path)
    rewrite(path, lambda metadata, model, tensors: metadata.update(version=version))
    with pytest.raises(ModelFileError, match="format version"):
        load(path)


@pytest.mark.parametrize("key", ["model", "about", "written", "digest", "version", "format"])
def test_a_header_without_a_part_is_refused(key: str, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "model"
    parts = dict.fromkeys(("model", "about", "written", "digest"), "{}")
    parts |= {"format": "maxmargin", "version": "1"}
    del parts[key]
    save_file({}, path, metadata=parts)
    with pytest.raises(ModelFileError):
        load(path)


def small_file(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    save(StandardScaler().fit([[0.0], [1.0], [3.0]]), path)
    return path


def test_files_cut_anywhere_are_refused(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            load(path)
    path.write_bytes(content + b"\x00")
    with pytest.raises(ModelFileError):
        load(path)


def test_files_with_a_changed_byte_are_refused(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load(path)


def attribute(name: str) -> Any:
    """A change of the tensor of a fitted attribute."""

    def of(function: Any) -> Any:
        def change(metadata: Any, model: Any, tensors: Any) -> None:
            tensor = model["fitted"][name]["tensor"]
            tensors[tensor] = np.ascontiguousarray(function(tensors[tensor]))

        return change

    return of


def put(*keys: Any) -> Any:
    """A change of the JSON at some place."""

    def with_value(value: Any) -> Any:
        def change(metadata: Any, model: Any, tensors: Any) -> None:
            *way, last = keys
            for key in way:
                model = model[key]
            model[last] = value

        return change

    return with_value


def drop(part: str, name: str) -> Any:
    return lambda metadata, model, tensors: model[part].pop(name)


def ones(value: float) -> Any:
    def changed(array: Any) -> Any:
        array = array.copy()
        array.flat[0] = value
        return array

    return changed


WRONG: dict[str, tuple[str, Any, str]] = {
    "fewer columns": ("SVC", attribute("support_vectors_")(lambda a: a[:, 1:]), "support_vec"),
    "fewer rows": ("SVC", attribute("support_vectors_")(lambda a: a[1:]), "support_vectors_"),
    "NaN rows": ("SVC", attribute("support_vectors_")(ones(np.nan)), "not finite"),
    "flat dual": ("SVC", attribute("dual_coef_")(np.ravel), "dual_coef_"),
    "dual of another": ("SVC", attribute("dual_coef_")(lambda a: a[:1]), "dual_coef_"),
    "infinite dual": ("SVC", attribute("dual_coef_")(ones(np.inf)), "not finite"),
    "one bias": ("SVC", attribute("intercept_")(lambda a: a[:1]), "intercept_"),
    "NaN bias": ("SVC", attribute("intercept_")(ones(np.nan)), "not finite"),
    "boolean bias": ("SVC", attribute("intercept_")(lambda a: a > 0), "no array of numbers"),
    "few counted": ("SVC", attribute("n_support_")(ones(0)), "adds up to"),
    "negative count": ("SVC", attribute("n_support_")(ones(-1)), "n_support_ holds -1"),
    "counts of four": ("SVC", attribute("n_support_")(lambda a: np.r_[a, 0]), "n_support_"),
    "row beyond": ("SVC", attribute("support_")(ones(36)), "support_ names row 36 of 36"),
    "row below": ("SVC", attribute("support_")(ones(-1)), "support_ holds -1"),
    "row twice": ("SVC", attribute("support_")(lambda a: a * 0), "twice"),
    "real rows": ("SVC", attribute("support_")(lambda a: a * 1.0), "no vector of integers"),
    "one class": ("SVC", attribute("classes_")(lambda a: a[:1]), "classes_ holds 1"),
    "four classes": ("SVC", attribute("classes_")(lambda a: np.arange(4)), "intercept_"),
    "class twice": ("SVC", attribute("classes_")(lambda a: a * 0), "label twice"),
    "no classes": ("SVC", put("fitted", "classes_")([0, 1, 2]), "classes_ is"),
    "features": ("SVC", put("fitted", "n_features_in_")(4), "shape_fit_|support_vectors_"),
    "no features": ("SVC", put("fitted", "n_features_in_")(0), "n_features_in_ is 0"),
    "real features": ("SVC", put("fitted", "n_features_in_")(3.0), "n_features_in_ is 3.0"),
    "shape": ("SVC", put("fitted", "shape_fit_")([36, 3]), "shape_fit_"),
    "scheme": ("SVC", put("fitted", "_reduced_by")("kesler"), "kesler"),
    "no scheme": ("SVC", put("fitted", "_reduced_by")("none"), "none"),
    "γ": ("SVC", put("fitted", "kernel_", "fields", "gamma")(-1.0), "gamma=-1.0"),
    "no γ": ("SVC", put("fitted", "kernel_", "fields")({}), "RBF has"),
    "γ of text": ("SVC", put("fitted", "kernel_", "fields", "gamma")("1"), "RBF holds"),
    "kernel": ("SVC", put("fitted", "kernel_")({"$": "Custom", "fields": {}}), "Custom"),
    "given": ("SVC", put("fitted", "kernel_")({"$": "Precomputed", "fields": {}}), "became"),
    "class": ("SVC", put("class")("LogisticRegression"), "LogisticRegression.*unknown"),
    "code": ("SVC", put("class")("os.system"), "unknown"),
    "no class": ("SVC", put("class")(None), "unknown"),
    "parameter": ("SVC", put("parameters", "Z")(1.0), "unknown parameters"),
    "no parameter": ("SVC", drop("parameters", "C"), "lacks the parameter C"),
    "C": ("SVC", put("parameters", "C")(-1.0), "'C' parameter"),
    "C of text": ("SVC", put("parameters", "C")("1.0"), "'C' parameter"),
    "callback": (
        "SVC",
        put("parameters", "callback")({"$": "Constant", "fields": {"rate": 1.0}}),
        "never saved",
    ),
    "attribute": ("SVC", put("fitted", "predict")(1), "unknown attributes"),
    "no attribute": ("SVC", drop("fitted", "dual_coef_"), "lacks dual_coef_"),
    "parts": ("SVC", put("extra")(1), "has the parts"),
    "certificate": ("SVC", put("fitted", "certificates_", 0)(1.0), "a certificate is none"),
    "few certificates": ("SVC", put("fitted", "certificates_")([]), "0 certificates"),
    "status": ("SVC", put("fitted", "statuses_", 0)({"$": "Status", "value": "x"}), "'x'"),
    "trace": ("SVC", put("fitted", "traces_", 0)(1), "a trace is none"),
    "unit": ("SVC", put("fitted", "traces_", 0, "fields", "unit")("lap"), "Trace holds"),
    "coverage": (
        "SVC", put("fitted", "certificates_", 0, "fields", "coverage")([1, 2]), "MarginCertificate",
    ),
    "lost tensor": ("SVC", put("fitted", "intercept_")({"$": "array", "tensor": "t99"}), "t99"),
    "tensor twice": (
        "SVC", put("fitted", "intercept_")({"$": "array", "tensor": "t0"}), "missing, or used",
    ),
    "spare tensor": (
        "SVC",
        lambda metadata, model, tensors: tensors.update(more=np.eye(2)),
        "belong to nothing",
    ),
    "type": ("SVC", put("fitted", "n_updates_")({"$": "object"}), "unknown type 'object'"),
    "no type": ("SVC", put("fitted", "n_updates_")({}), "unknown type None"),
    "count": ("SVC", put("fitted", "n_updates_")("many"), "n_updates_ is 'many'"),
    "wide word": (
        "SVC",
        put("fitted", "classes_")({"$": "words", "shape": [1], "width": 10**9, "words": ["a"]}),
        "take 1000000000",
    ),
    "deep list": ("SVC", put("fitted", "n_updates_")(json.loads("[" * 90 + "]" * 90)), "nested"),
    "huge rows": ("SVC", attribute("support_vectors_")(ones(1e100)), r"holds 1e\+100"),
    "huge dual": ("SVC", attribute("dual_coef_")(ones(-1e300)), r"dual_coef_ holds 1e\+300"),
    "huge plane": ("LinearSVC", attribute("coef_")(ones(1e300)), r"coef_ holds 1e\+300"),
    "ties": (
        "SVC",
        lambda metadata, model, tensors: model["parameters"].update(
            break_ties=True, decision_function_shape="ovo"
        ),
        "it cannot predict: break_ties",
    ),
    "plane": ("LinearSVC", attribute("coef_")(lambda a: a[:, :2]), "coef_"),
    "plane too many": ("LinearSVC", attribute("coef_")(lambda a: a[[0, 0, 1, 2]]), "coef_"),
    "row of a plane": ("LinearSVC", attribute("support_")(ones(36)), "names row 36 of 36"),
    "C of a fit": ("LinearSVC", put("fitted", "_fitted_with")("1"), "fitted with C='1'"),
    "updates": ("perceptron", put("fitted", "_updates_of_tasks")([1]), "updates of 3"),
    "margins": ("Ho-Kashyap", put("fitted", "margins_")([None] * 3), "margins_"),
    "rows": ("kernel perceptron", put("fitted", "_n_rows")(1), "support_ names row"),
    "planes": (
        "kernel perceptron, linear", put("fitted", "_linear_coef")(None), "not linear",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_contradictions_are_refused_though_the_digest_is_right(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    estimator, change, says = WRONG[name]
    save(fitted(estimator), path)
    rewrite(path, change)
    with pytest.raises(ModelFileError, match=says):
        load(path)


@pytest.mark.parametrize("part", ["about", "model", "written"])
@pytest.mark.parametrize("text", ["[" * 200_000, "[1, 2", "9" * 5000, '{"a": NaN', ""])
def test_json_that_is_none_is_refused(part: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(mm.SVC(), path)

    def spoil(metadata: Any, model: Any, tensors: Any) -> None:
        model.clear()
        metadata[part] = text

    rewrite(path, spoil)
    with pytest.raises(ModelFileError):
        (load if part == "model" else about)(path)


@pytest.mark.parametrize(
    ("part", "change", "says"),
    [
        ("indptr", lambda a: a[::-1], "out of order"),
        ("indptr", lambda a: a[[0, 2, 1, *range(3, len(a))]], "out of order"),
        ("indptr", lambda a: a[:-1], "other sizes"),
        ("indptr", lambda a: a + 1, "out of order"),
        ("indices", lambda a: a + 2, "column of a sparse matrix is out of range"),
        ("indices", lambda a: a - 3, "column of a sparse matrix is out of range"),
        ("indices", lambda a: a * 1.0, "no integers"),
        ("data", lambda a: a[1:], "other sizes"),
        ("data", lambda a: a * np.nan, "not finite"),
        ("data", lambda a: a.reshape(-1, 1), "three vectors"),
    ],
)
def test_sparse_rows_are_checked(part: str, change: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(fitted(storage=sparse.csr_matrix), path)

    def spoil(metadata: Any, model: Any, tensors: Any) -> None:
        name = model["fitted"]["support_vectors_"][part]
        tensors[name] = np.ascontiguousarray(change(tensors[name]))

    rewrite(path, spoil)
    with pytest.raises(ModelFileError, match=says):
        load(path)


def test_traces_of_files_before_say_less(tmp_path: Path) -> None:
    path = tmp_path / "model"
    model = fitted()
    save(model, path)
    assert_same(load(path).trace_, model.trace_)

    def as_before(metadata: Any, model: Any, tensors: Any) -> None:
        for trace in model["fitted"]["traces_"]:
            del tensors[trace["fields"].pop("exact")["tensor"]]
            del trace["fields"]["unit"]

    rewrite(path, as_before)
    trace = load(path).trace_
    assert not trace.exact.any()
    assert trace.unit == "step"


def with_words() -> Any:
    frame, y = frame_of_words()
    return make_pipeline(ColumnEncoder(), StandardScaler(), mm.SVC()).fit(frame, y)


@pytest.mark.parametrize(
    ("step", "name", "value", "says"),
    [
        (0, "categories_", [None, None, None], "3 features, not 5"),
        (0, "categories_", [None], "other columns"),
        (0, "categories_", [None, ["a", "a", "b"], None], "word twice"),
        (0, "categories_", [None, [1, 2, 3], None], "categories_ holds"),
        (0, "fill_", [None, 1.0, None], "fill_ holds 1.0"),
        (0, "feature_names_in_", {"$": "words", "shape": [1], "words": ["a"]}, "names of shape"),
        (1, "n_features_in_", 4, "not \\(4,\\)"),
        (1, "scale_", None, "lacks scale_"),
        (2, "n_features_in_", 2, "shape_fit_"),
    ],
)
def test_steps_are_checked(step: int, name: str, value: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(with_words(), path)

    def spoil(metadata: Any, model: Any, tensors: Any) -> None:
        model["steps"][step][1]["fitted"][name] = value

    rewrite(path, spoil)
    with pytest.raises(ModelFileError, match=says):
        load(path)


def test_steps_fit_together(tmp_path: Path) -> None:
    X, y = samples()
    save(Pipeline([("a", StandardScaler().fit(X)), ("b", mm.SVC().fit(X, y))]), tmp_path / "good")
    with pytest.raises(ValueError, match="step 'b' takes 3 features, and gets 2"):
        save(
            Pipeline([("a", StandardScaler().fit(X[:, :2])), ("b", mm.SVC().fit(X, y))]),
            tmp_path / "bad",
        )


def test_every_step_must_be_fitted_where_the_last_is(tmp_path: Path) -> None:
    X, y = samples()
    with pytest.raises(ValueError, match="cannot predict: the step StandardScaler is not fitted"):
        save(Pipeline([("a", StandardScaler()), ("b", mm.SVC().fit(X, y))]), tmp_path / "bad")
    save(Pipeline([("a", StandardScaler()), ("b", mm.SVC())]), tmp_path / "good")


@pytest.mark.parametrize(
    ("name", "value"), [("mean_", 1e300), ("mean_", np.nan), ("scale_", 1e-300), ("scale_", 0.0)]
)
def test_scalers_that_leave_nothing_to_predict_are_refused(
    name: str, value: float, tmp_path: Path
) -> None:
    X, y = samples()
    model = make_pipeline(StandardScaler(), mm.SVC()).fit(X, y)
    getattr(model[0], name)[0] = value
    with pytest.raises(ValueError, match=r"predict|scaled to|next to 0"):
        save(model, tmp_path / "bad")


def leaves(value: Any, way: tuple[Any, ...] = ()) -> Any:
    """Every place in JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*way, key)
        if isinstance(item, dict | list):
            yield from leaves(item, (*way, key))


@pytest.mark.parametrize("value", [None, 10**30, "x", [], {"$": "float", "value": "nan"}])
def test_nothing_in_the_json_brings_anything_else_about(value: Any, tmp_path: Path) -> None:
    X, y = samples(2, n=4)
    path, spoiled = tmp_path / "model", tmp_path / "spoiled"
    save(make_pipeline(StandardScaler(), mm.SVC()).fit(X, y), path)
    record = json.loads(safe_metadata(path)["model"])
    refused = 0
    tracemalloc.start()
    for way in leaves(record):
        spoiled.write_bytes(path.read_bytes())
        rewrite(spoiled, put(*way)(value))
        try:
            load(spoiled)
        except ModelFileError:
            refused += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused > 30
    assert peak < 20e6


def safe_metadata(path: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        return file.metadata()


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[:0],
        lambda a: a.reshape(-1)[:1],
        lambda a: np.concatenate([a, a]),
        lambda a: a.astype(np.uint8),
        lambda a: a[np.newaxis],
        lambda a: np.full(a.shape, np.nan),
        lambda a: np.full(a.shape, -1),
    ],
)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_nothing_in_the_tensors_brings_anything_else_about(
    change: Any, storage: Any, tmp_path: Path
) -> None:
    path, spoiled = tmp_path / "model", tmp_path / "spoiled"
    save(fitted(storage=storage), path)
    X, _ = samples()
    refused = 0
    for k in range(100):
        spoiled.write_bytes(path.read_bytes())
        try:
            rewrite(spoiled, lambda m, j, t, k=k: t.update({f"t{k}": change(t[f"t{k}"])}))
        except KeyError:
            break
        try:
            load(spoiled).predict(storage(X))
        except ModelFileError:
            refused += 1
    assert refused > 3


# JSON ----------------------------------------------------------------------------------------


def scores_from(plain: dict[str, Any], X: Any) -> Any:
    """What a stranger computes with NumPy from the JSON alone."""
    for step in plain["preparation"]:
        if "shift" in step:
            X = (X - np.array(step["shift"])) * np.array(step["factor"])
        if "clip" in step:
            X = np.clip(X, *step["clip"])
        if "norm" in step:
            lengths = np.abs(X).sum(axis=1, keepdims=True)
            X = X / np.where(lengths == 0.0, 1.0, lengths)
        if "columns" in step:
            X = expand(step, X)
    if "w" in plain:
        return X @ np.array(plain["w"]).T + np.array(plain["b"])
    vectors = plain["support_vectors"]
    if vectors and isinstance(vectors[0], dict):
        Z = np.zeros((len(vectors), plain["n_features"]))
        for row, entry in zip(Z, vectors, strict=True):
            row[entry["index"]] = entry["value"]
    else:
        Z = np.array(vectors)
    return values_of(plain["kernel"], X, Z) @ np.array(plain["dual_coef"]).T + np.array(plain["b"])


def expand(step: dict[str, Any], rows: Any) -> Any:
    columns = []
    for k, column in enumerate(step["columns"]):
        values = [column["fill"] if v is None or v != v else v for v in (row[k] for row in rows)]
        words = column["words"]
        features = [values] if words is None else [[v == w for v in values] for w in words]
        columns += [np.array(feature, dtype=float) for feature in features]
    return (np.column_stack(columns) - np.array(step["mean"])) / np.array(step["scale"])


def values_of(kernel: dict[str, Any], X: Any, Z: Any) -> Any:
    if kernel["name"] == "rbf":
        return np.exp(-kernel["gamma"] * ((X[:, None] - Z) ** 2).sum(axis=2))
    if kernel["name"] == "polynomial":
        return (kernel["gamma"] * X @ Z.T + kernel["coef0"]) ** kernel["degree"]
    if kernel["name"] == "scaled":
        return kernel["factor"] * values_of(kernel["kernel"], X, Z)
    parts = [values_of(part, X, Z) for part in kernel["parts"]]
    return np.sum(parts, axis=0) if kernel["name"] == "sum" else np.prod(parts, axis=0)


def labels_from(plain: dict[str, Any], g: Any) -> Any:
    classes = np.array(plain["classes"])
    if plain["scheme"] == "binary":
        return classes[(g[:, 0] >= 0).astype(int)]
    if plain["scheme"] in ("ovr", "joint"):
        return classes[g.argmax(axis=1)]
    votes, sums = np.zeros((2, len(g), len(classes)))
    strict = "g > 0" in plain["label_rule"]
    for k, (i, j) in enumerate(plain["pairs"]):
        won = g[:, k] > 0 if strict else g[:, k] >= 0
        votes[won, i] += 1
        votes[~won, j] += 1
        sums[:, i] += g[:, k]
        sums[:, j] -= g[:, k]
    return classes[(votes if strict else votes + sums / (3 * (np.abs(sums) + 1))).argmax(axis=1)]


@pytest.mark.parametrize(
    "model",
    [
        mm.LinearSVC(),
        mm.LinearSVC(multi_class="ovo"),
        mm.LinearSVC(multi_class="crammer_singer"),
        mm.Perceptron(multi_class="kesler"),
        mm.SVC(),
        mm.SVC(break_ties=True),
        mm.SVC(multi_class="ovr"),
        mm.SVC(kernel="linear"),
        mm.NuSVC(nu=0.2, kernel=0.5 * RBF(0.3) + RBF(0.1) * Polynomial(2, 0.1, 1.0)),
        mm.KernelPerceptron(),
        make_pipeline(StandardScaler(), mm.SVC()),
        make_pipeline(MinMaxScaler(clip=True), RobustScaler(), Normalizer("l1"), mm.LinearSVC()),
        make_pipeline(ColumnEncoder(), MaxAbsScaler(), mm.SVC()),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_stranger_can_predict_from_json(model: Any, n_classes: int, tmp_path: Path) -> None:
    X, codes = samples(n_classes)
    y = np.array(["a", "b", "c", "d"])[codes]
    for storage in (np.asarray, sparse.csr_matrix)[: 1 if isinstance(model, Pipeline) else 2]:
        check_stranger(clone(model).fit(storage(X), y), storage, tmp_path)


def check_stranger(model: Any, storage: Any, tmp_path: Path) -> None:
    save_json(model, tmp_path / "model.json")

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    plain = json.loads((tmp_path / "model.json").read_text(), parse_constant=refuse)
    assert plain == to_json(model)
    rng = np.random.default_rng(1)
    new = 3.0 * rng.normal(size=(200, 3))
    g = scores_from(plain, new)
    assert_array_equal(labels_from(plain, g), model.predict(storage(new)))
    if len(model.classes_) == 2:
        expected = model.decision_function(storage(new))
        np.testing.assert_allclose(g[:, 0], expected, rtol=1e-9, atol=1e-9)


def test_json_says_what_words_become(tmp_path: Path) -> None:
    frame, y = frame_of_words()
    frame.loc[3, "width"] = np.nan
    frame.loc[5, "colour"] = None
    model = make_pipeline(ColumnEncoder(impute=True), mm.SVC()).fit(frame, y)
    plain = json.loads(json.dumps(to_json(model), allow_nan=False))
    assert plain["feature_names"] == ["mass of it", "colour", "width"]
    frame.loc[7, "colour"] = "violet"
    g = scores_from(plain, frame.to_numpy(dtype=object).tolist())
    assert_array_equal(labels_from(plain, g), model.predict(frame))


def test_json_holds_the_proof_and_no_nan() -> None:
    X, y = samples(2)
    plain = to_json(mm.SVC(C=float("inf"), kernel="linear", class_weight={0: 2.0}).fit(X, y))
    json.dumps(plain, allow_nan=False)
    assert plain["format"] == "maxmargin-json"
    assert plain["version"] == 1
    assert plain["parameters"]["C"] == "inf"
    assert plain["parameters"]["class_weight"] == {"0": 2.0}
    assert plain["certificate"]["kind"] == "MarginCertificate"
    assert plain["certificate"]["relative_gap"] < 1e-6
    assert plain["status"] == "converged"
    assert plain["kernel"]["name"] == "linear"


def test_json_refuses_code_and_what_is_unfitted() -> None:
    X, y = samples()
    with pytest.raises(TypeError, match="is code"):
        to_json(mm.SVC(kernel=Custom(dot)).fit(X, y))
    with pytest.raises(NotFittedError):
        to_json(mm.SVC())
    with pytest.raises(TypeError, match="LogisticRegression is no classifier of maxmargin"):
        to_json(LogisticRegression().fit(X, y))


# Imports -------------------------------------------------------------------------------------


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, maxmargin.persistence as p; "
        "heavy = {'safetensors', 'onnx', 'numba', 'sklearn', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy; p.save; p.load_libsvm; "
        "heavy = {'onnx', 'skl2onnx', 'llvmlite'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
