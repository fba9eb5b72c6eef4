"""Model files changed at random and signed anew: each is refused by name, or predicts.

The digest of a file finds damage; whoever changes a file on purpose computes it again. So every
file that `load` lets through must predict proper labels and finite scores, whatever was changed.
"""

from __future__ import annotations

import copy
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

import maxmargin as mm
from maxmargin.estimators.base import CertifiedEstimator
from maxmargin.estimators.column_encoder import ColumnEncoder
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.persistence import ModelFileError, files, load, save
from maxmargin.persistence.models import is_fitted
from tests.helpers.saved_models import PLAIN, answers

D = 3
MIXED = 0.5 * RBF(0.3) + Polynomial(2, 0.1, 1.0) * Linear()


def samples(n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_classes)
    centres = 3.0 * rng.normal(size=(n_classes, D))
    X = np.vstack([centre + rng.normal(size=(6, D)) for centre in centres])
    return X, np.repeat(np.arange(n_classes), 6)


def words(X: Any) -> Any:
    """Return rows whose last column is a word."""
    rows = X.astype(object)
    rows[:, -1] = np.where(X[:, -1] > 0, "fig", "pear")
    return rows


def gram(X: Any) -> Any:
    return X @ X.T


def labels_of(model: Any, y: Any) -> Any:
    """Return numbers for a regressor, words for others."""
    return y + 0.5 if is_regressor(model) else np.array(["fig", "pear", "plum"])[y]


MODELS: dict[str, tuple[Any, Any]] = {
    "perceptron": (mm.Perceptron(max_iter=5, multi_class="kesler"), np.asarray),
    "pocket": (mm.Pocket(max_iter=5, multi_class="ovo"), np.asarray),
    "relaxation": (mm.Relaxation(max_iter=5), sparse.csr_matrix),
    "LMS": (mm.LMS(max_iter=5, learning_rate=mm.Harmonic(0.1, 3.0)), np.asarray),
    "pseudoinverse": (mm.Pseudoinverse(), np.asarray),
    "Ho-Kashyap": (mm.HoKashyap(max_iter=5), np.asarray),
    "kernel perceptron": (mm.KernelPerceptron(max_iter=5), sparse.csr_matrix),
    "kernel perceptron, linear": (mm.KernelPerceptron(kernel="linear"), np.asarray),
    "kernel perceptron, given": (mm.KernelPerceptron(kernel="precomputed"), gram),
    "SVC": (mm.SVC(), np.asarray),
    "SVC, sparse": (mm.SVC(kernel="poly"), sparse.csr_matrix),
    "SVC, given": (mm.SVC(kernel="precomputed", multi_class="ovr"), gram),
    "SVC, mixed": (mm.SVC(kernel=MIXED, decision_function_shape="ovo"), np.asarray),
    "NuSVC": (mm.NuSVC(nu=0.2, kernel="sigmoid", break_ties=True), np.asarray),
    "LinearSVC": (mm.LinearSVC(), np.asarray),
    "LinearSVC, joint": (mm.LinearSVC(multi_class="crammer_singer"), sparse.csr_matrix),
    "LinearSVC, l1": (mm.LinearSVC(penalty="l1"), np.asarray),
    "SVC, probability": (mm.SVC(probability=True), np.asarray),
    "SVC, joint": (mm.SVC(multi_class="crammer_singer"), np.asarray),
    "SVR": (mm.SVR(), sparse.csr_matrix),
    "SVR, scaled": (make_pipeline(StandardScaler(), mm.SVR(kernel="linear")), np.asarray),
    "NuSVR": (mm.NuSVR(kernel="poly"), np.asarray),
    "LinearSVR": (mm.LinearSVR(epsilon=0.1), np.asarray),
    "one-class": (mm.OneClassSVM(nu=0.3), np.asarray),
    "one-class, given": (mm.OneClassSVM(kernel="precomputed"), gram),
    "words": (make_pipeline(ColumnEncoder(impute=True), mm.SVC()), words),
    "standard": (make_pipeline(StandardScaler(), mm.SVC(kernel="linear")), np.asarray),
    "scalers": (
        make_pipeline(MinMaxScaler(), MaxAbsScaler(), RobustScaler(), Normalizer(), mm.LinearSVC()),
        np.asarray,
    ),
}
NUMBERS = [0, 1, -1, 2, 3, 7, 2**31, 2**62, 10**30, 0.5, -0.5, 1e-320, 1e30, 1e200, 1.7e308, -1e308]
VALUES: list[Any] = [
    *NUMBERS, None, True, False, "", "x", "rbf", "linear", "precomputed", "ovr", "ovo", "kesler",
    "t0", "nan", [], [0], [[1]], {}, {"$": "float", "value": "nan"}, {"$": "float", "value": "inf"},
    {"$": "tuple", "items": []}, {"$": "tuple", "items": [1, 2]}, {"$": "dict", "items": []},
    {"$": "scalar", "dtype": "float32", "value": 1e300}, {"$": "scalar", "dtype": "?", "value": 3},
    {"$": "words", "shape": [2], "words": ["a", 1]}, {"$": "Unproved", "program": "p"},
    {"$": "Linear", "fields": {}}, {"$": "Precomputed", "fields": {}},
    {"$": "Polynomial", "fields": {"degree": 10**6, "gamma": 1e30, "coef0": 1e30}},
    {"$": "Polynomial", "fields": {"degree": 0, "gamma": 0.0, "coef0": 0.0}},
]  # fmt: skip
DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "u8", "?"]


@cache
def original(name: str, n_classes: int, folder: Path) -> tuple[Any, Any, Any, Any]:
    """Return metadata, JSON and tensors of a model's file, and rows to predict."""
    model, storage = MODELS[name]
    X, y = samples(n_classes)
    rows, path = storage(X), folder / "good"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(model.fit(rows, labels_of(model, y)), path)
    with safe_open(path, framework="np") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    return metadata, json.loads(metadata["model"]), tensors, rows


def places(value: Any, way: tuple[Any, ...] = ()) -> Any:
    """Yield every place in JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*way, key)
        if isinstance(item, dict | list):
            yield from places(item, (*way, key))


def at(record: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        record = record[key]
    return record


def change_json(record: Any, rng: np.random.Generator) -> None:
    """Put something else in a place, or what is in another; take it away, or give it twice."""
    ways = list(places(record))
    *way, last = ways[rng.integers(len(ways))]
    inside, kind = at(record, tuple(way)), rng.integers(8)
    value = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    if kind == 0:
        value = copy.deepcopy(at(record, ways[rng.integers(len(ways))]))
    if kind == 1:
        del inside[last]
    elif kind == 2 and isinstance(inside, list):
        inside.insert(last, copy.deepcopy(inside[last]))
    elif kind == 3 and isinstance(inside[last], int | float):
        inside[last] = inside[last] * (10.0 ** int(rng.integers(-320, 300)))
    else:
        inside[last] = value


def change_tensor(tensors: dict[str, Any], rng: np.random.Generator) -> None:
    """Change numbers, type or shape of an array, or take another one in its place."""
    names = sorted(tensors)
    name = names[rng.integers(len(names))]
    array, kind = tensors[name].copy(), rng.integers(9)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == 0 and array.size:
            value = NUMBERS[rng.integers(len(NUMBERS))]
            array.flat[rng.integers(array.size)] = np.array(float(value)).astype(array.dtype)
        elif kind == 1:
            array = array.astype(DTYPES[rng.integers(len(DTYPES))])
        elif kind == 2:
            array = array[: rng.integers(len(array) + 1)] if array.ndim else array[np.newaxis]
        elif kind == 3 and array.ndim:
            array = np.concatenate([array, array[:1]])
        elif kind == 4:
            array = rng.permutation(array) if array.ndim else array
        elif kind == 5:
            array = array.T if array.ndim > 1 else array.reshape(1, -1)
        elif kind == 6:
            array = tensors[names[rng.integers(len(names))]].copy()
        elif kind == 7 and array.dtype.kind == "f":
            array = array * array.dtype.type(10.0 ** int(rng.integers(-300, 300)))
        elif array.size:
            array.flat[rng.integers(array.size)] = (
                [np.nan, np.inf, -np.inf][rng.integers(3)] if array.dtype.kind == "f" else 1
            )
    tensors[name] = np.ascontiguousarray(array) if array.ndim else array


def predicts(model: Any, rows: Any) -> None:
    """Check that a model that was loaded predicts, if it is fitted."""
    last = model[-1] if hasattr(model, "steps") else model
    if not isinstance(last, CertifiedEstimator) or not is_fitted(last):
        return
    width = model.n_features_in_
    if rows.shape[1] != width:  # another model than before, and as good
        rows = np.zeros((4, width))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        said = answers(model, rows) if hasattr(last, "probA_") else answers(model, rows, PLAIN)
    assert said["predict"].shape == (rows.shape[0],)
    if is_classifier(last):
        assert set(said.pop("predict").tolist()) <= set(last.classes_.tolist())
    assert all(np.isfinite(each).all() for each in said.values())


def attack(name: str, n_classes: int, rounds: int, seed: int, folder: Path) -> int:
    """Change a file many times; return how often it was refused."""
    metadata, record, tensors, rows = original(name, n_classes, folder)
    path, refused = folder / "spoiled", 0
    for k in range(rounds):
        rng = np.random.default_rng([seed, k])
        model, arrays = copy.deepcopy(record), dict(tensors)
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.5:
                change_json(model, rng)
            else:
                change_tensor(arrays, rng)
        signed = {**metadata, "model": json.dumps(model)}
        signed["digest"] = files._digest(signed, arrays)
        save_file(arrays, path, metadata=signed)
        try:
            loaded = load(path)
        except ModelFileError:
            refused += 1
            continue
        try:
            predicts(loaded, rows)
        except Exception as error:
            raise AssertionError(f"{name}, {n_classes} classes, seed [{seed}, {k}]") from error
    return refused


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_signed_files_are_refused_or_predict(name: str, n_classes: int, tmp_path: Path) -> None:
    assert attack(name, n_classes, 60, 0, tmp_path) > 20


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_many_signed_files_are_refused_or_predict(
    name: str, n_classes: int, tmp_path: Path
) -> None:
    assert attack(name, n_classes, 3000, 1, tmp_path) > 1000
