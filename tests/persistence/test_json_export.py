"""Models exported as JSON hold all that a prediction needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

import maxmargin as mm
from maxmargin.estimators.column_encoder import ColumnEncoder
from maxmargin.kernels import RBF, Custom, Polynomial
from maxmargin.persistence import save_json, to_json
from tests.helpers.saved_models import dot, frame_of_words, samples

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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
    if plain["scheme"] == "targets":
        return g[:, 0]
    if plain["scheme"] == "one-class":
        return classes[(g[:, 0] >= -plain["rounding"]).astype(int)]
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


def probabilities_from(plain: dict[str, Any], g: Any) -> Any:
    A, B, least = (np.array(plain["probability"][name]) for name in ("A", "B", "least"))
    sign = -1.0 if plain["scheme"] == "binary" else 1.0
    r = np.clip(1.0 / (1.0 + np.exp(sign * A * g + B)), least, 1.0 - least)
    if plain["scheme"] == "binary":
        return np.hstack([r, 1.0 - r])
    if plain["scheme"] == "ovr":
        return r / r.sum(axis=1, keepdims=True)
    return np.array([coupled_from(plain, row) for row in r])


def coupled_from(plain: dict[str, Any], r: Any) -> Any:
    k = len(plain["classes"])
    V = np.zeros((len(r), k))
    for row, (i, j), of_first in zip(V, plain["pairs"], r, strict=True):
        row[i], row[j] = 1.0 - of_first, -of_first
    system = np.block([[V.T @ V, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.r_[np.zeros(k), 1.0])[:k]


@pytest.mark.parametrize(
    "model",
    [
        mm.LinearSVC(),
        mm.LinearSVC(multi_class="ovo"),
        mm.LinearSVC(multi_class="crammer_singer"),
        mm.Perceptron(multi_class="kesler"),
        mm.SVC(),
        mm.SVC(break_ties=True),
        mm.SVC(probability=True, random_state=0),
        mm.NuSVC(nu=0.2, probability=True, multi_class="ovr", random_state=0),
        mm.SVC(multi_class="ovr"),
        mm.SVC(kernel="linear"),
        mm.NuSVC(nu=0.2, kernel=0.5 * RBF(0.3) + RBF(0.1) * Polynomial(2, 0.1, 1.0)),
        mm.KernelPerceptron(),
        make_pipeline(StandardScaler(), mm.SVC()),
        make_pipeline(MinMaxScaler(clip=True), RobustScaler(), Normalizer("l1"), mm.LinearSVC()),
        make_pipeline(ColumnEncoder(), MaxAbsScaler(), mm.SVC()),
        mm.SVC(multi_class="crammer_singer"),
        mm.LinearSVC(penalty="l1"),
        mm.SVR(),
        mm.NuSVR(kernel="linear"),
        mm.LinearSVR(epsilon=0.1),
        mm.OneClassSVM(nu=0.3),
        make_pipeline(StandardScaler(), mm.SVR(kernel="poly")),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_stranger_can_predict_from_json(model: Any, n_classes: int, tmp_path: Path) -> None:
    X, codes = samples(n_classes)
    y = codes if is_regressor(model) else np.array(["a", "b", "c", "d"])[codes]
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
    found, expected = labels_from(plain, g), model.predict(storage(new))
    if is_regressor(model):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        return
    assert_array_equal(found, expected)
    if "probability" in plain:
        proba = model.predict_proba(storage(new))
        np.testing.assert_allclose(probabilities_from(plain, g), proba, rtol=1e-6, atol=1e-6)
    if len(plain["classes"]) == 2:
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


def test_json_holds_the_tube_of_a_regression() -> None:
    X, y = samples(2)
    model = mm.NuSVR().fit(X, y)
    plain = to_json(model)
    assert plain["epsilon"] == model.epsilon_
    assert plain["classes"] == []
    assert to_json(mm.LinearSVR(epsilon=0.25).fit(X, y))["epsilon"] == 0.25


def test_json_refuses_code_and_what_is_unfitted() -> None:
    X, y = samples()
    with pytest.raises(TypeError, match="is code"):
        to_json(mm.SVC(kernel=Custom(dot)).fit(X, y))
    with pytest.raises(NotFittedError):
        to_json(mm.SVC())
    with pytest.raises(TypeError, match="got LogisticRegression"):
        to_json(LogisticRegression().fit(X, y))
