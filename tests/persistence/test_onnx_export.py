"""ONNX graphs give the same labels and scores as the models they were made from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

import maxmargin as mm
from maxmargin.estimators.column_encoder import ColumnEncoder
from maxmargin.kernels import RBF, Custom, Linear, Polynomial, Sigmoid
from maxmargin.persistence import register_onnx, save_onnx, to_onnx

onnx = pytest.importorskip("onnx")
skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ESTIMATORS: dict[str, Any] = {
    "perceptron, ovr": mm.Perceptron(max_iter=20),
    "perceptron, ovo": mm.Perceptron(max_iter=20, multi_class="ovo"),
    "perceptron, kesler": mm.Perceptron(max_iter=20, multi_class="kesler"),
    "pocket": mm.Pocket(max_iter=5),
    "relaxation": mm.Relaxation(max_iter=5),
    "LMS": mm.LMS(max_iter=5),
    "pseudoinverse": mm.Pseudoinverse(),
    "Ho-Kashyap": mm.HoKashyap(max_iter=20),
    "LinearSVC, ovr": mm.LinearSVC(),
    "LinearSVC, joint": mm.LinearSVC(multi_class="crammer_singer"),
    "kernel perceptron, ovr": mm.KernelPerceptron(max_iter=20),
    "kernel perceptron, ovo": mm.KernelPerceptron(max_iter=20, multi_class="ovo"),
    "SVC": mm.SVC(),
    "SVC, linear": mm.SVC(kernel="linear"),
    "SVC, ovr": mm.SVC(multi_class="ovr"),
    "SVC, no ties": mm.SVC(break_ties=True),
    "SVC, pairs shown": mm.SVC(decision_function_shape="ovo"),
    "NuSVC": mm.NuSVC(nu=0.2),
    "SVR": mm.SVR(),
    "SVR, linear": mm.SVR(kernel="linear"),
    "SVR, wide tube": mm.SVR(epsilon=10.0),
    "NuSVR": mm.NuSVR(kernel="poly"),
    "LinearSVR": mm.LinearSVR(),
    "one-class": mm.OneClassSVM(nu=0.3),
    "one-class, linear": mm.OneClassSVM(nu=0.3, kernel="linear"),
}
LABELS: dict[str, Any] = {
    "int": np.array([3, -1, 7]),
    "str": np.array(["pear", "fig", "Äpfel"]),
    "object": np.array(["pear", "fig", "apple"], dtype=object),
    "float": np.array([0.0, 1.0, 2.0]),
}


def samples(n_classes: int = 3, n: int = 12, d: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_classes)
    centres = 2.0 * rng.normal(size=(n_classes, d))
    X = np.vstack([centre + rng.normal(size=(n, d)) for centre in centres])
    return X, np.repeat(np.arange(n_classes), n)


def new_samples(d: int = 3) -> Any:
    return 3.0 * np.random.default_rng(5).normal(size=(300, d))


def run(graph: Any, inputs: dict[str, Any]) -> tuple[Any, ...]:
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    assert names == (["label", "scores"] if len(names) == 2 else ["variable"])
    return tuple(session.run(None, inputs))


def assert_agrees(model: Any, X: Any, outcome: tuple[Any, ...], tol: float = 1e-9) -> None:
    *label, scores = outcome
    if is_regressor(model):
        assert not label
        expected = model.predict(X)[:, np.newaxis]
    else:
        assert_array_equal(*label, model.predict(X))
        expected = model.decision_function(X)
    assert scores.dtype == np.float64
    assert scores.shape == expected.shape
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(scores, expected, rtol=tol, atol=tol * scale)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_graphs_agree_with_models(name: str, n_classes: int) -> None:
    X, codes = samples(n_classes)
    new = new_samples()
    for storage in (np.asarray, sparse.csr_matrix):
        model = clone(ESTIMATORS[name]).fit(storage(X), codes)
        outcome = run(to_onnx(model), {"X": new})
        assert is_regressor(model) or outcome[0].dtype == np.int64
        assert_agrees(model, storage(new), outcome)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labels", LABELS)
def test_labels_are_integers_or_words(labels: str, n_classes: int) -> None:
    X, codes = samples(n_classes)
    model = mm.SVC().fit(X, LABELS[labels][codes])
    label, scores = run(to_onnx(model), {"X": new_samples()})
    assert (label.dtype == np.int64) == (labels in ("int", "float"))
    assert_agrees(model, new_samples(), (label, scores))


def test_truth_values_become_integers() -> None:
    X, codes = samples(2)
    model = mm.LinearSVC().fit(X, codes.astype(bool))
    assert_agrees(model, new_samples(), run(to_onnx(model), {"X": new_samples()}))


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(1, 0.3, 0.0),
        Polynomial(3, 1.0 / 3.0, 0.0),
        Polynomial(4, 0.1, -1.0),
        RBF(0.3),
        Sigmoid(0.1, 0.0),
        0.3 * RBF(0.3),
        0.3 * (0.7 * Polynomial(2, 0.1, 1.0)),
        0.3 * Linear() + RBF(0.3),
        RBF(0.1) * Linear() + 0.7 * (Polynomial(2) * (0.3 * Linear()) + RBF(1.0)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.filterwarnings("ignore:The kernel")
def test_kernels_are_computed_in_float64(kernel: Any, d: int) -> None:
    """A factor next to a product that onnxruntime takes into it becomes a float32."""
    X, y = samples(3, d=d)
    model = make_pipeline(ColumnEncoder(), mm.SVC(kernel=kernel, max_iter=1000)).fit(X / 3.0, y)
    new = new_samples(d)
    assert_agrees(model, new, run(to_onnx(model), {"X": new}))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.filterwarnings("ignore:NuSVC")
def test_a_nu_machine_without_a_margin_has_one_label(kernel: str, n_classes: int) -> None:
    """Its scores are 0, not what rounding makes of sums that cancel."""
    X = np.repeat(samples(2)[0], n_classes, axis=0)
    model = mm.NuSVC(kernel=kernel).fit(X, np.arange(len(X)) % n_classes)
    assert not model.n_support_.any()
    assert_agrees(model, new_samples(), run(to_onnx(model), {"X": new_samples()}))


def test_rows_far_from_the_origin_keep_their_digits() -> None:
    X, y = samples()
    model = mm.SVC(gamma=1.0).fit(X + 1e4, y)
    new = new_samples() + 1e4
    assert_agrees(model, new, run(to_onnx(model), {"X": new}))


def test_equal_votes_and_planes_are_decided_alike() -> None:
    """Points on planes, and three classes that beat each other in turn."""
    X, y = samples(3, d=1)
    grid = np.linspace(-3.0, 3.0, 13)[:, np.newaxis]
    planes = mm.Perceptron(multi_class="ovo", max_iter=2).fit(X, y)
    machine = mm.SVC(kernel="linear", decision_function_shape="ovo").fit(X, y)
    planes.coef_ = np.ones((3, 1))  # g = x + b of every pair
    machine.support_, machine.n_support_ = np.arange(3), np.ones(3, dtype=int)
    machine.support_vectors_, machine.dual_coef_ = np.ones((3, 1)), 0.5 * np.ones((2, 3))
    assert_array_equal(machine.coef_, planes.coef_)
    # All planes meet at 0, where an SVC votes for second classes and others for first ones; or
    # the classes beat each other in turn, which an SVC decides by order and others by scores.
    for b in ([0.0, 0.0, 0.0], [1.0, -1.0, 1.0]):
        planes.intercept_ = machine.intercept_ = np.array(b)
        assert (machine.predict(grid) != planes.predict(grid)).any()
        for model in (planes, machine):
            assert_agrees(model, grid, run(to_onnx(model), {"X": grid}))
    two = mm.SVC(kernel="linear", C=10.0).fit([[-1.0], [1.0]], ["a", "b"])
    assert two.decision_function([[0.0]]) == [0.0]
    assert_agrees(two, [[0.0]], run(to_onnx(two), {"X": np.zeros((1, 1))}))


def test_equal_confidences_go_to_the_first_class() -> None:
    X, y = samples(3, d=1)
    model = mm.LinearSVC().fit(X, y)
    model.coef_, model.intercept_ = np.zeros((3, 1)), np.array([0.0, 1.0, 1.0])
    label, _ = run(to_onnx(model), {"X": np.ones((1, 1))})
    assert_array_equal(label, [1])


def test_rows_on_the_border_of_a_region_are_inside() -> None:
    """Free support vectors, whose scores are rounding; where w = 0 all rows are that."""
    X, _ = samples()
    for rows in (X, np.vstack([X, -X])):
        model = mm.OneClassSVM(kernel="linear", nu=0.5).fit(rows)
        assert (model.decision_function(rows) == 0.0).any()
        assert_agrees(model, rows, run(to_onnx(model), {"X": rows}))


# Pipelines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [StandardScaler(with_mean=False)],
        [StandardScaler(with_std=False)],
        [StandardScaler(with_mean=False, with_std=False)],
        [MinMaxScaler((-1, 2))],
        [MinMaxScaler(clip=True)],
        [MaxAbsScaler()],
        [RobustScaler()],
        [ColumnEncoder()],
        [ColumnEncoder(scale=False)],
        ["passthrough"],
        [make_pipeline(StandardScaler(), MinMaxScaler()), MaxAbsScaler()],
    ],
    ids=str,
)
def test_pipelines_agree(steps: Any, d: int) -> None:
    X, y = samples(3, d=d)
    for last in (mm.LinearSVC(), mm.SVC(), mm.SVR(), mm.OneClassSVM()):
        model = make_pipeline(*steps, last).fit(10.0 * X + 3.0, y)
        new = 10.0 * new_samples(d)
        assert_agrees(model, new, run(to_onnx(model), {"X": new}))


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_rows_of_zeros_are_normalised(norm: Any) -> None:
    X, y = samples()
    model = make_pipeline(Normalizer(norm), mm.SVC()).fit(X, y)
    new = new_samples()
    new[0] = 0.0
    assert_agrees(model, new, run(to_onnx(model), {"X": new}))


def test_numbers_may_come_in_float32() -> None:
    X, y = samples()
    new = new_samples().astype(np.float32)
    for model in (mm.SVC(), make_pipeline(StandardScaler(), mm.SVC()), mm.LinearSVR()):
        model.fit(X, y)
        outcome = run(to_onnx(model, dtype="float32"), {"X": new})
        assert_agrees(model, new.astype(np.float64), outcome)
    with pytest.raises(ValueError, match="got 'float16'"):
        to_onnx(model, dtype="float16")  # type: ignore[arg-type]


def frame_of_words() -> tuple[Any, Any]:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "mass of it": 10.0 * rng.normal(size=40),
            "colour": rng.choice(["red", "grün", "blue"], 40),
            "scores": rng.normal(size=40),
            "form": rng.choice(["1", "2"], 40),
        }
    )
    return frame, np.where(frame["colour"].eq("red") | (frame["scores"] > 0.5), "yes", "no")


def columns(frame: Any, dtype: Any = np.float64) -> dict[str, Any]:
    """What a program that knows the names of columns hands over."""
    feed = {}
    for name in frame.columns:
        values = frame[name]
        if name in ("colour", "form"):
            words = ["" if value is None or value != value else value for value in values]
            feed[name] = np.array(words, dtype=object).reshape(-1, 1)
        else:
            feed[name] = values.to_numpy(dtype=dtype).reshape(-1, 1)
    feed["scores_"] = feed.pop("scores")
    return feed


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("missing", [False, True])
def test_columns_of_words_are_inputs_of_their_own(missing: bool, dtype: Any) -> None:
    frame, y = frame_of_words()
    frame[["mass of it", "scores"]] = frame[["mass of it", "scores"]].astype(np.float32)
    frame = frame.astype({"mass of it": float, "scores": float})
    if missing:
        frame.loc[3, "mass of it"] = np.nan
        frame.loc[5, "colour"] = None
    model = make_pipeline(ColumnEncoder(impute=missing), StandardScaler(), mm.SVC()).fit(frame, y)
    frame.loc[7, "colour"] = "violet"
    graph = to_onnx(model, dtype=dtype)
    names = [entry.name for entry in graph.graph.input]
    assert names == ["mass of it", "colour", "scores_", "form"]  # "scores" goes out
    assert_agrees(model, frame, run(graph, columns(frame, dtype)))


def test_missing_numbers_are_filled() -> None:
    X, y = samples()
    X[3, 1] = X[4, 0] = np.nan
    model = make_pipeline(ColumnEncoder(impute=True), mm.LinearSVC()).fit(X, y)
    assert_agrees(model, X, run(to_onnx(model), {"X": X}))


def test_skl2onnx_knows_the_models_once_registered() -> None:
    register_onnx()
    register_onnx()
    X, y = samples()
    model = make_pipeline(StandardScaler(), mm.SVC()).fit(X, y)
    assert_agrees(model, X, run(skl2onnx.to_onnx(model, X), {"X": X}))
    assert_agrees(model, X, run(skl2onnx.to_onnx(model, X, options={"zipmap": False}), {"X": X}))
    for alone in (mm.LinearSVC(), mm.SVR(), mm.OneClassSVM()):
        alone.fit(X, y)
        assert_agrees(alone, X, run(skl2onnx.to_onnx(alone, X), {"X": X}))
    frame, labels = frame_of_words()
    words = make_pipeline(ColumnEncoder(), mm.SVC()).fit(frame, labels)
    graph = skl2onnx.to_onnx(words, frame)
    assert len(graph.graph.input) == 4


def test_skl2onnx_is_told_how_words_go_in() -> None:
    register_onnx()
    frame, labels = frame_of_words()
    model = make_pipeline(ColumnEncoder(), mm.SVC()).fit(frame, labels)
    with pytest.raises(ValueError, match="must have 4 inputs, one per"):
        skl2onnx.to_onnx(model, np.zeros((2, 4)))


# Refusals and files -------------------------------------------------------------------------------


def test_what_has_no_formula_is_refused() -> None:
    X, y = samples()
    cases: list[tuple[Any, str]] = [
        (mm.SVC(kernel="precomputed").fit(X @ X.T, y), "Precomputed.. is not a formula"),
        (mm.SVC(kernel=Custom(lambda A, B: A @ B.T)).fit(X, y), "is not a formula of x and z"),
        (mm.SVC(kernel=lambda A, B: A @ B.T).fit(X, y), "is not a formula of x and z"),
        (make_pipeline(MaxAbsScaler(clip=True), mm.SVC()).fit(X, y), "clip=False")
        if "clip" in MaxAbsScaler().get_params()
        else (LogisticRegression().fit(X, y), "an estimator of maxmargin"),
        (LogisticRegression().fit(X, y), "got LogisticRegression"),
    ]
    for model, says in cases:
        with pytest.raises(TypeError, match=says):
            to_onnx(model)
    with pytest.raises(NotFittedError):
        to_onnx(mm.SVC())
    with pytest.raises(NotFittedError):
        to_onnx(make_pipeline(StandardScaler(), mm.SVC()))


def test_too_wide_support_vectors_are_refused() -> None:
    X = sparse.csr_matrix((np.ones(20), (np.arange(20), np.arange(20))), shape=(20, 50_000_000))
    model = mm.SVC(gamma=1.0).fit(X, np.arange(20) % 2)
    with pytest.raises(ValueError, match="more than an ONNX file holds"):
        to_onnx(model)


def test_without_mistakes_there_is_a_bias_only() -> None:
    X, y = samples(2)
    model = mm.KernelPerceptron().fit(X, y)
    model.support_ = model.support_[:0]
    model.support_vectors_ = model.support_vectors_[:0]
    model.dual_coef_ = model.dual_coef_[:, :0]
    assert_agrees(model, X, run(to_onnx(model), {"X": X}))


def test_files_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = samples()
    path = tmp_path / "model.onnx"
    model = mm.SVC().fit(X, y)
    save_onnx(model, path)
    assert_agrees(model, X, run(onnx.load(path), {"X": X}))
    before = path.read_bytes()

    def fail(*args: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_onnx(mm.LinearSVC().fit(X, y), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = samples()
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r'not installed: pip install "maxmargin\[onnx\]"'):
        to_onnx(mm.SVC().fit(X, y))
