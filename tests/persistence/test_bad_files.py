"""Files that are not models are refused, whatever is in them."""

from __future__ import annotations

import json
import pickle
import tracemalloc
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.estimators.column_encoder import ColumnEncoder
from maxmargin.persistence import ModelFileError, about, files, load, save
from tests.helpers.saved_models import ESTIMATORS, assert_same, frame_of_words, samples, targets

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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
    "text": (lambda path: path.write_text("a,b,c\n1,2,3\n"), "not a model of maxmargin"),
    "short": (lambda path: path.write_bytes(b"\x00"), "not a model of maxmargin"),
    "zeros": (lambda path: path.write_bytes(bytes(1000)), "not a model of maxmargin"),
    "safetensors": (of_another_program, "a safetensors file, but not a model of maxmargin"),
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
    X, codes = samples()
    model = clone(ESTIMATORS[name])
    return model.fit(storage(X), targets(model, codes))


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
    "boolean bias": ("SVC", attribute("intercept_")(lambda a: a > 0), "be an array of numbers"),
    "few counted": ("SVC", attribute("n_support_")(ones(0)), "must sum to"),
    "negative count": ("SVC", attribute("n_support_")(ones(-1)), "n_support_ holds -1"),
    "counts of four": ("SVC", attribute("n_support_")(lambda a: np.r_[a, 0]), "n_support_"),
    "row beyond": ("SVC", attribute("support_")(ones(36)), "support_ names row 36 of 36"),
    "row below": ("SVC", attribute("support_")(ones(-1)), "support_ holds -1"),
    "row twice": ("SVC", attribute("support_")(lambda a: a * 0), "twice"),
    "real rows": ("SVC", attribute("support_")(lambda a: a * 1.0), "must be a vector of integers"),
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
    "γ": ("SVC", put("fitted", "kernel_", "fields", "gamma")(-1.0), "gamma must be > 0"),
    "no γ": ("SVC", put("fitted", "kernel_", "fields")({}), "RBF must have"),
    "γ of text": ("SVC", put("fitted", "kernel_", "fields", "gamma")("1"), "RBF holds"),
    "kernel": ("SVC", put("fitted", "kernel_")({"$": "Custom", "fields": {}}), "Custom"),
    "given": ("SVC", put("fitted", "kernel_")({"$": "Precomputed", "fields": {}}), "became"),
    "class": ("SVC", put("class")("LogisticRegression"), "LogisticRegression.*unknown"),
    "code": ("SVC", put("class")("os.system"), "unknown"),
    "no class": ("SVC", put("class")(None), "unknown"),
    "parameter": ("SVC", put("parameters", "Z")(1.0), "unknown parameters"),
    "no parameter": ("SVC", drop("parameters", "C"), "the parameter C of SVC is missing"),
    "C": ("SVC", put("parameters", "C")(-1.0), "'C' parameter"),
    "C of text": ("SVC", put("parameters", "C")("1.0"), "'C' parameter"),
    "callback": (
        "SVC",
        put("parameters", "callback")({"$": "Constant", "fields": {"rate": 1.0}}),
        "never saved",
    ),
    "attribute": ("SVC", put("fitted", "predict")(1), "unknown attributes"),
    "no attribute": ("SVC", drop("fitted", "dual_coef_"), "has no dual_coef_"),
    "parts": ("SVC", put("extra")(1), "must have the parts"),
    "certificate": ("SVC", put("fitted", "certificates_", 0)(1.0), "certificate has another type"),
    "few certificates": ("SVC", put("fitted", "certificates_")([]), "0 certificates"),
    "status": ("SVC", put("fitted", "statuses_", 0)({"$": "Status", "value": "x"}), "'x'"),
    "trace": ("SVC", put("fitted", "traces_", 0)(1), "a trace has another type"),
    "unit": ("SVC", put("fitted", "traces_", 0, "fields", "unit")("lap"), "Trace holds"),
    "coverage": (
        "SVC", put("fitted", "certificates_", 0, "fields", "coverage")([1, 2]), "MarginCertificate",
    ),
    "lost tensor": ("SVC", put("fitted", "intercept_")({"$": "array", "tensor": "t99"}), "t99"),
    "tensor twice": (
        "SVC", put("fitted", "intercept_")({"$": "array", "tensor": "t1"}), "missing, or used",
    ),
    "spare tensor": (
        "SVC",
        lambda metadata, model, tensors: tensors.update(more=np.eye(2)),
        "are not used",
    ),
    "type": ("SVC", put("fitted", "n_updates_")({"$": "object"}), "unknown type 'object'"),
    "no type": ("SVC", put("fitted", "n_updates_")({}), "unknown type None"),
    "count": ("SVC", put("fitted", "n_updates_")("many"), "n_updates_ is 'many'"),
    "wide word": (
        "SVC",
        put("fitted", "classes_")({"$": "words", "shape": [1], "width": 10**9, "words": ["a"]}),
        "width 1000000000",
    ),
    "deep list": ("SVC", put("fitted", "n_updates_")(json.loads("[" * 90 + "]" * 90)), "nested"),
    "huge rows": ("SVC", attribute("support_vectors_")(ones(1e100)), r"got 1e\+100"),
    "huge dual": ("SVC", attribute("dual_coef_")(ones(-1e300)), r"dual_coef_ must be at most"),
    "huge plane": ("LinearSVC", attribute("coef_")(ones(1e300)), r"coef_ must be at most"),
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
    "margins": ("Ho-Kashyap", put("fitted", "margins_")([None] * 2), "margins_"),
    "rows": ("kernel perceptron", put("fitted", "_n_rows")(1), "support_ names row"),
    "planes": (
        "kernel perceptron, linear", put("fitted", "_linear_coef")(None), "need a linear kernel",
    ),
    "half a sigmoid": ("SVC, probability", drop("fitted", "probA_"), "half of the sigmoids"),
    "few sigmoids": ("SVC, probability", attribute("probB_")(lambda a: a[:1]), "probB_ must have"),
    "NaN sigmoid": ("SVC, probability", attribute("probA_")(ones(np.nan)), "not finite"),
    "two biases": ("SVR", attribute("intercept_")(lambda a: np.r_[a, a]), "intercept_ must have"),
    "classes of targets": ("SVR", put("fitted", "classes_")([0, 1]), "unknown attributes"),
    "C of a tube": ("SVR", put("fitted", "_fitted_with")(0.0), "fitted with C=0.0"),
    "no tube": ("NuSVR", drop("fitted", "epsilon_"), "epsilon_"),
    "negative tube": ("NuSVR", put("fitted", "epsilon_")(-0.5), "epsilon_ is -0.5"),
    "counts of a region": ("one-class", attribute("n_support_")(ones(1)), "must sum to"),
    "two planes": ("LinearSVR", attribute("coef_")(lambda a: a[[0, 1]]), "coef_ must have"),
    "row of a target": ("LinearSVR", attribute("support_")(ones(36)), "names row 36 of 36"),
    "two certificates": (
        "one-class",
        lambda metadata, model, tensors: model["fitted"].update(
            certificates_=2 * model["fitted"]["certificates_"]
        ),
        "2 certificates for 1 tasks",
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
def test_invalid_json_is_refused(part: str, text: str, tmp_path: Path) -> None:
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
        ("indices", lambda a: a * 1.0, "must be integers"),
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


@pytest.mark.parametrize(
    ("name", "added"),
    [
        ("SVC", "probability"),
        ("NuSVC", "probability"),
        ("LinearSVC", "dual"),
        *((name, "device") for name in ("SVC", "NuSVC", "LinearSVC", "kernel perceptron", "SVR")),
    ],
)
def test_files_before_a_parameter_have_its_default(name: str, added: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(fitted(name), path)
    rewrite(path, drop("parameters", added))
    assert load(path).get_params() == fitted(name).get_params()


def with_words() -> Any:
    frame, y = frame_of_words()
    return make_pipeline(ColumnEncoder(), StandardScaler(), mm.SVC()).fit(frame, y)


@pytest.mark.parametrize(
    ("step", "name", "value", "says"),
    [
        (0, "categories_", [None, None, None], "must be 3, got 5"),
        (0, "categories_", [None], "one entry per column"),
        (0, "categories_", [None, ["a", "a", "b"], None], "category twice"),
        (0, "categories_", [None, [1, 2, 3], None], "categories_ holds"),
        (0, "fill_", [None, 1.0, None], "fill_ holds 1.0"),
        (0, "feature_names_in_", {"$": "words", "shape": [1], "words": ["a"]}, "names of shape"),
        (1, "n_features_in_", 4, "shape \\(4,\\), got"),
        (1, "scale_", None, "has no scale_"),
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
    with pytest.raises(ValueError, match="step 'b' takes 3 features, but gets 2"):
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
