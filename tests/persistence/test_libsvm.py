"""LIBSVM's text models, read and written, compared with libsvm-official."""

from __future__ import annotations

import ctypes
import io
import re
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

import maxmargin as mm
from maxmargin.estimators.column_encoder import ColumnEncoder
from maxmargin.kernels import RBF, Linear
from maxmargin.persistence import (
    ModelFileError,
    libsvm_reading,
    load,
    load_libsvm,
    save,
    save_libsvm,
    to_json,
)

KERNELS = ["linear", "poly", "rbf", "sigmoid", "precomputed"]
NUMBERS = {name: k for k, name in enumerate(KERNELS)}  # LIBSVM's -t


def samples(n_classes: int = 3, n: int = 15) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_classes)
    centres = 1.5 * rng.normal(size=(n_classes, 4))
    X = np.vstack([centre + rng.normal(size=(n, 4)) for centre in centres])
    X[np.abs(X) < 0.3] = 0.0  # LIBSVM leaves zeros out
    return X, np.repeat(np.arange(n_classes), n)


def targets_for(machine: Any, y: Any) -> Any:
    """Return numbers for a regressor, labels for others."""
    return y + np.sin(np.arange(len(y))) if is_regressor(machine) else 10 * y - 3


def new_samples() -> Any:
    return 2.0 * np.random.default_rng(9).normal(size=(60, 4))


def by_libsvm(path: Path, X: Any, precomputed: bool = False) -> tuple[Any, Any]:
    """Return LIBSVM's labels and values.

    Not by its svm_predict: of a ν-machine of many classes that makes room for one value only, and
    writes beyond it.
    """
    svm = pytest.importorskip("libsvm.svm")
    model = svm.libsvm.svm_load_model(str(path).encode())
    assert model
    k = svm.libsvm.svm_get_nr_class(model)
    values = (ctypes.c_double * (k * (k - 1) // 2))()
    labels, all_values = [], []
    for i, row in enumerate(X.tolist()):
        entries = {j + 1: value for j, value in enumerate(row)}
        entries = {0: i + 1, **entries} if precomputed else entries
        x, _ = svm.gen_svm_nodearray(entries, isKernel=precomputed)
        labels.append(svm.libsvm.svm_predict_values(model, x, values))
        all_values.append(values[:])
    svm.libsvm.svm_free_and_destroy_model(ctypes.pointer(model))
    return np.array(labels), np.array(all_values)


def probabilities_by_libsvm(path: Path, X: Any) -> Any:
    """Return LIBSVM's probabilities of the classes, in the order of the file."""
    svm = pytest.importorskip("libsvm.svm")
    model = svm.libsvm.svm_load_model(str(path).encode())
    assert svm.libsvm.svm_check_probability_model(model)
    values = (ctypes.c_double * svm.libsvm.svm_get_nr_class(model))()
    found = []
    for row in X.tolist():
        x, _ = svm.gen_svm_nodearray({j + 1: value for j, value in enumerate(row)})
        svm.libsvm.svm_predict_probability(model, x, values)
        found.append(values[:])
    svm.libsvm.svm_free_and_destroy_model(ctypes.pointer(model))
    return np.array(found)


def as_libsvm(model: Any, X: Any) -> Any:
    """Return our decision values in LIBSVM's way."""
    if is_regressor(model):
        return model.predict(X)[:, np.newaxis]
    g = model.decision_function(X)
    if not is_classifier(model):
        return g[:, np.newaxis]
    return -g[:, np.newaxis] if len(model.classes_) == 2 else g


def assert_agree(model: Any, X: Any, labels: Any, values: Any) -> None:
    """Compare LIBSVM's labels and values with ours: where w = 0 its labels are rounding."""
    expected = as_libsvm(model, X)
    assert_allclose(values, expected, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(expected).max()))
    clear = np.abs(expected[:, 0]) > 1e-9 if isinstance(model, mm.OneClassSVM) else slice(None)
    assert_allclose(labels[clear], model.predict(X)[clear], rtol=1e-9, atol=1e-9)


# To LIBSVM ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "machine",
    [
        mm.SVC(decision_function_shape="ovo"),
        mm.NuSVC(nu=0.3, decision_function_shape="ovo"),
        mm.SVR(epsilon=0.2),
        mm.SVR(loss="squared_epsilon_insensitive"),
        mm.NuSVR(nu=0.3),
        mm.OneClassSVM(nu=0.3),
    ],
)
@pytest.mark.filterwarnings("ignore:The kernel")
def test_libsvm_predicts_as_we_do(
    machine: Any, kernel: str, n_classes: int, storage: Any, tmp_path: Path
) -> None:
    given = kernel == "precomputed"
    if given and storage is not np.asarray:
        return
    X, y = samples(n_classes)
    new = new_samples()
    model = clone(machine).set_params(kernel=kernel, coef0=0.5)
    model.fit(X @ X.T if given else storage(X), targets_for(model, y))
    ours = new @ X.T if given else new
    path = tmp_path / "model.txt"
    save_libsvm(model, path)
    labels, values = by_libsvm(path, ours, given)
    assert_agree(model, ours, labels, values)

    back = load_libsvm(path, n_features=ours.shape[1])
    assert type(back) is type(machine)
    if is_classifier(model):
        assert_array_equal(back.classes_, model.classes_)
    assert_agree(back, ours, labels, values)
    assert_array_equal(back.n_support_, model.n_support_)
    if given:
        assert_array_equal(back.support_, model.support_)


def test_a_sample_on_the_plane_gets_the_same_label(tmp_path: Path) -> None:
    X = np.array([[-1.0], [1.0]])
    for y in ([-1, 1], [1, -1], [2, 7]):
        model = mm.SVC(kernel="linear", C=10.0).fit(X, y)
        assert model.decision_function([[0.0]])[0] == 0.0
        save_libsvm(model, tmp_path / "model")
        labels, _ = by_libsvm(tmp_path / "model", np.array([[0.0]]))
        assert_array_equal(labels, model.predict([[0.0]]))
        assert_array_equal(load_libsvm(tmp_path / "model").predict([[0.0]]), labels)


# Of the labels 5, 2, 9: 5 beats 2, 2 beats 9, 9 beats 5 at x = 0, and g = 0 on planes elsewhere.
TIED = """svm_type c_svc
kernel_type linear
nr_class 3
total_sv 3
rho -1 1 -1
label 5 2 9
nr_sv 1 1 1
SV
1 -1 1:1
-1 1 1:1
-1 -1 1:1
"""


def test_equal_votes_go_to_the_same_class(tmp_path: Path) -> None:
    path = tmp_path / "tied"
    path.write_text(TIED)
    X = np.array([[0.0], [-1.0], [1.0], [0.5], [-0.5], [2.0], [-2.0]])
    labels, values = by_libsvm(path, X)
    assert (values == 0.0).any()
    model = load_libsvm(path)
    assert_array_equal(model.classes_, [5, 2, 9])
    assert_array_equal(model.predict(X), labels)
    assert_array_equal(model.decision_function(X), values)
    assert model.predict([[0.0]]) == [5]
    save_libsvm(model, tmp_path / "again")
    assert_array_equal(by_libsvm(tmp_path / "again", X)[0], labels)


@pytest.mark.parametrize(
    ("labels", "written"),
    [([-1.0, 1.0], "-1 1"), ([False, True], "0 1"), ([2.0, 30.0], "2 30"), ([-7, 7], "-7 7")],
)
def test_whole_numbers_stay_labels(labels: Any, written: str, tmp_path: Path) -> None:
    X, y = samples(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_libsvm(mm.SVC().fit(X, np.array(labels)[y]), tmp_path / "model")
    assert f"\nlabel {written}\n" in (tmp_path / "model").read_text()


@pytest.mark.parametrize("labels", [["fig", "pear"], [1, 2**40]])
def test_other_labels_are_numbered_with_a_warning(labels: Any, tmp_path: Path) -> None:
    X, y = samples(2)
    model = mm.SVC().fit(X, np.array(labels)[y])
    mapping = ", ".join(f"{k} = {label!r}" for k, label in enumerate(labels))
    with pytest.warns(UserWarning, match=re.escape(f"in this file {mapping}")) as caught:
        save_libsvm(model, tmp_path / "model")
    assert caught[0].filename == __file__
    predicted, _ = by_libsvm(tmp_path / "model", X)
    assert_array_equal(np.array(labels)[predicted.astype(int)], model.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        mm.Perceptron(), mm.Pocket(), mm.Relaxation(), mm.LMS(), mm.Pseudoinverse(),
        mm.HoKashyap(max_iter=50), mm.LinearSVC(), mm.LinearSVC(penalty="l1"), mm.LinearSVR(),
    ],
    ids=str,
)  # fmt: skip
def test_planes_become_one_support_vector(model: Any, tmp_path: Path) -> None:
    X, y = samples(2)
    model = clone(model).fit(X, y)
    save_libsvm(model, tmp_path / "model")
    labels, values = by_libsvm(tmp_path / "model", new_samples())
    assert_allclose(labels, model.predict(new_samples()))
    assert_allclose(values, as_libsvm(model, new_samples()), rtol=1e-12)
    back = load_libsvm(tmp_path / "model", n_features=4)
    assert_allclose(np.ravel(back.coef_), np.ravel(model.coef_), rtol=1e-15)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [MinMaxScaler((-1, 2))],
        [MaxAbsScaler(), StandardScaler(with_mean=False)],
        [ColumnEncoder()],
        ["passthrough"],
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "machine",
    [
        mm.SVC(kernel="linear", decision_function_shape="ovo"),
        mm.NuSVC(nu=0.3, kernel="linear", decision_function_shape="ovo"),
        mm.SVR(kernel="linear"),
        mm.NuSVR(kernel="linear"),
        mm.OneClassSVM(kernel="linear"),
        mm.LinearSVR(),
    ],
)
def test_scaling_goes_into_planes(machine: Any, steps: Any, n_classes: int, tmp_path: Path) -> None:
    X, y = samples(n_classes)
    model = make_pipeline(*steps, clone(machine))
    model.fit(100.0 * X + 7.0, targets_for(machine, y))
    save_libsvm(model, tmp_path / "model")
    new = 100.0 * new_samples()
    assert_agree(model[-1], model[:-1].transform(new), *by_libsvm(tmp_path / "model", new))
    kind = mm.SVR if type(machine) is mm.LinearSVR else type(machine)
    assert type(load_libsvm(tmp_path / "model")) is kind


@pytest.mark.parametrize("steps", [[StandardScaler()], [MinMaxScaler(), ColumnEncoder()]])
def test_scaling_before_a_kernel_goes_into_a_file_of_svm_scale(steps, tmp_path: Path) -> None:
    X, y = samples()
    model = make_pipeline(*steps, mm.SVC(decision_function_shape="ovo")).fit(100.0 * X + 7.0, y)
    with pytest.warns(UserWarning, match=r"svm-scale -r .*model\.range"):
        save_libsvm(model, tmp_path / "model")
    axis, ends, *lines = (tmp_path / "model.range").read_text().splitlines()
    assert (axis, ends) == ("x", "-1 1")
    number, low, high = np.array([line.split() for line in lines], dtype=float).T
    assert_array_equal(number, np.arange(X.shape[1]) + 1)
    new = 100.0 * new_samples()
    scaled = -1.0 + 2.0 * (new - low) / (high - low)  # what svm-scale does
    labels, values = by_libsvm(tmp_path / "model", scaled)
    assert_array_equal(labels, model.predict(new))
    assert_allclose(values, as_libsvm(model, new), atol=1e-6)


def test_a_step_that_changes_nothing_needs_no_file(tmp_path: Path) -> None:
    X, y = samples()
    model = make_pipeline(ColumnEncoder(scale=False), mm.SVC()).fit(X, y)
    save_libsvm(model, tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    labels, _ = by_libsvm(tmp_path / "model", new_samples())
    assert_array_equal(labels, model.predict(new_samples()))


def frame() -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"colour": ["red", "blue"] * 15, "mass": np.arange(30.0)})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_libsvm_cannot_say_is_refused(tmp_path: Path) -> None:
    X, y = samples()
    two, binary = samples(2)
    cases: list[tuple[Any, str]] = [
        (mm.SVC(multi_class="ovr").fit(X, y), "multi_class='ovr': fit with multi_class='ovo'"),
        (mm.SVC(kernel=RBF(1.0) + Linear()).fit(X, y), "one of LIBSVM's.* got RBF"),
        (mm.LinearSVC().fit(X, y), "LinearSVC of 3 classes"),
        (mm.LinearSVC(multi_class="ovo").fit(X, y), "LinearSVC of 3 classes"),
        (mm.KernelPerceptron().fit(two, binary), "no model for KernelPerceptron"),
        (make_pipeline(Normalizer(), mm.LinearSVC()).fit(two, binary), "Normalizer does more"),
        (
            make_pipeline(MinMaxScaler(clip=True), mm.LinearSVC()).fit(two, binary),
            "MinMaxScaler does more",
        ),
        (make_pipeline(ColumnEncoder(), mm.LinearSVC()).fit(frame(), binary), "ColumnEncoder does"),
        (make_pipeline(StandardScaler(), mm.LinearSVC()).fit(X, y), "LinearSVC of 3 classes"),
        (StandardScaler().fit(X), "got StandardScaler"),
    ]
    for model, says in cases:
        with pytest.raises(TypeError, match=says):
            save_libsvm(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_linear_kernel_perceptron_is_a_plane_with_and_without_scaling(tmp_path: Path) -> None:
    X, y = samples(2)
    for machine in (
        mm.KernelPerceptron(kernel="linear", max_iter=50),
        make_pipeline(StandardScaler(), mm.KernelPerceptron(kernel="linear", max_iter=50)),
    ):
        model = machine.fit(X, y)
        save_libsvm(model, tmp_path / "model")
        again = load_libsvm(tmp_path / "model")
        assert_allclose(
            again.decision_function(new_samples()),
            model.decision_function(new_samples()),
            atol=1e-9,
        )
    scaled = make_pipeline(StandardScaler(), mm.KernelPerceptron()).fit(X, y)
    with pytest.raises(TypeError, match="no model for KernelPerceptron"):
        save_libsvm(scaled, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("machine", [mm.LinearSVC(), mm.SVC()])
def test_lost_imputation_is_reported(machine: Any, tmp_path: Path) -> None:
    X, y = samples(2)
    X[3, 1] = np.nan
    model = make_pipeline(ColumnEncoder(impute=True), machine).fit(X, y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        save_libsvm(model, tmp_path / "model")
    assert any("impute=True is lost" in str(warning.message) for warning in told)


def test_nothing_is_reported_without_imputation(tmp_path: Path) -> None:
    X, y = samples(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_libsvm(make_pipeline(ColumnEncoder(), mm.LinearSVC()).fit(X, y), tmp_path / "model")


def test_lost_confidences_are_reported(tmp_path: Path) -> None:
    X, y = samples()
    with pytest.warns(UserWarning, match="break_ties=True is lost"):
        save_libsvm(mm.SVC(break_ties=True).fit(X, y), tmp_path / "model")


def test_numbers_are_written_to_the_last_bit(tmp_path: Path) -> None:
    X, y = samples(3)
    model = mm.SVC(gamma=1.0 / 3.0, decision_function_shape="ovo").fit(X, y)
    save_libsvm(model, tmp_path / "model")
    back = load_libsvm(tmp_path / "model")
    assert_array_equal(back.support_vectors_, model.support_vectors_)
    assert_array_equal(back.dual_coef_, model.dual_coef_)
    assert_array_equal(back.intercept_, model.intercept_)
    assert back.kernel_ == model.kernel_
    save_libsvm(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


# From LIBSVM --------------------------------------------------------------------------------------


def trained_by_libsvm(path: Path, X: Any, y: Any, options: str) -> None:
    svmutil = pytest.importorskip("libsvm.svmutil")
    given = "-t 4" in options
    rows = [
        {**({0: i + 1} if given else {}), **{j + 1: v for j, v in enumerate(row) if given or v}}
        for i, row in enumerate(X.tolist())
    ]
    problem = svmutil.svm_problem(y.tolist(), rows, isKernel=given)
    model = svmutil.svm_train(problem, f"{options} -q")
    svmutil.svm_save_model(str(path), model)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "kind", ["-s 0 -c 2", "-s 1 -n 0.3", "-s 2 -n 0.3", "-s 3 -p 0.2", "-s 4 -n 0.4"]
)
def test_we_predict_as_libsvm_does(kind: str, kernel: str, n_classes: int, tmp_path: Path) -> None:
    X, y = samples(n_classes)
    order = np.random.default_rng(3).permutation(len(y))  # labels come as they are met
    X, y = X[order], 5 - 2 * y[order]
    path, given = tmp_path / "model", kernel == "precomputed"
    trained_by_libsvm(path, X @ X.T if given else X, y, f"{kind} -t {NUMBERS[kernel]} -r 0.5")
    new = new_samples()
    ours = new @ X.T if given else new
    model = load_libsvm(path, n_features=ours.shape[1])
    labels, values = by_libsvm(path, ours, given)
    if not is_regressor(model):
        assert_array_equal(model.predict(ours), labels)
    assert_allclose(as_libsvm(model, ours), values, rtol=1e-6, atol=1e-6)
    if is_classifier(model):
        assert set(model.classes_) == set(y)
    if kernel == "linear":
        g = model._scores(new) * (-1.0 if is_classifier(model) and n_classes == 2 else 1.0)
        assert_allclose(g, values, rtol=1e-6, atol=1e-6)
        assert_allclose(new @ model.coef_.T + model.intercept_, model._scores(new), atol=1e-9)
    save_libsvm(model, tmp_path / "again")
    again = by_libsvm(tmp_path / "again", ours, given)[1]
    # Without classes LIBSVM's threads sum in an order of their own.
    assert_allclose(again, values, rtol=0.0 if is_classifier(model) else 1e-9)


def test_there_is_no_certificate_of_others(tmp_path: Path) -> None:
    (tmp_path / "tied").write_text(TIED)
    model = load_libsvm(tmp_path / "tied")
    save(model, tmp_path / "model")
    for one in (model, load(tmp_path / "model")):
        for name in ("certificate_", "status_", "trace_"):
            with pytest.raises(AttributeError, match="trained by another program \\(LIBSVM\\)"):
                getattr(one, name)
            assert not hasattr(one, name)
        assert_array_equal(one.predict([[0.0]]), [5])
        assert to_json(one)["certificate"] is None
    assert model.C == 1.0


def test_a_model_of_others_can_be_fitted_anew(tmp_path: Path) -> None:
    (tmp_path / "tied").write_text(TIED)
    X, y = samples()
    model = clone(load_libsvm(tmp_path / "tied")).fit(X, y)
    assert model.certificate_.holds(1e-3)
    assert load_libsvm(tmp_path / "tied").fit(X, y).certificate_.holds(1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_libsvm(n_classes: int, tmp_path: Path) -> None:
    X, y = samples(n_classes)
    trained_by_libsvm(tmp_path / "model", X, y, "-b 1")
    model = load_libsvm(tmp_path / "model")
    expected = probabilities_by_libsvm(tmp_path / "model", X)
    # LIBSVM couples pairs to 0.005/k, we to the last digit.
    assert_allclose(model.predict_proba(X), expected, atol=1e-9 if n_classes == 2 else 0.005)
    save_libsvm(model, tmp_path / "again")
    assert_allclose(probabilities_by_libsvm(tmp_path / "again", X), expected, atol=1e-9)


def test_probabilities_go_into_a_file(tmp_path: Path) -> None:
    X, y = samples(2)
    model = mm.SVC(probability=True, random_state=0).fit(X, y)
    save_libsvm(model, tmp_path / "model")
    expected = model.predict_proba(X)
    found = probabilities_by_libsvm(tmp_path / "model", X)
    assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "peer"),
    [
        ("-s 2 -n 0.3", sklearn.svm.OneClassSVM(nu=0.3, gamma=0.25)),
        ("-s 3 -p 0.2 -c 2", sklearn.svm.SVR(epsilon=0.2, C=2.0, gamma=0.25)),
        ("-s 4 -n 0.4", sklearn.svm.NuSVR(nu=0.4, gamma=0.25)),
    ],
)
def test_machines_without_classes_have_the_numbers_of_scikit_learn(
    options: str, peer: Any, tmp_path: Path
) -> None:
    X, y = samples(3)
    y = targets_for(mm.SVR(), y)
    trained_by_libsvm(tmp_path / "model", X, y, f"{options} -g 0.25")
    model, peer = load_libsvm(tmp_path / "model"), clone(peer).fit(X, y)
    assert_allclose(model.support_vectors_, peer.support_vectors_, rtol=1e-7)
    assert_allclose(model.dual_coef_, peer.dual_coef_, atol=1e-9)
    assert_allclose(model.intercept_, peer.intercept_, atol=1e-9)
    assert_array_equal(model.n_support_, peer.n_support_)
    if isinstance(model, mm.OneClassSVM):
        assert_allclose(model.offset_, peer.offset_, atol=1e-9)
        assert_allclose(model.score_samples(X), peer.score_samples(X), atol=1e-9)


@pytest.mark.parametrize("kind", ["-s 3", "-s 4"])
def test_the_scale_of_errors_is_kept(kind: str, tmp_path: Path) -> None:
    X, y = samples()
    trained_by_libsvm(tmp_path / "model", X, targets_for(mm.SVR(), y), f"{kind} -b 1")
    model = load_libsvm(tmp_path / "model")
    assert model.probA_.shape == (1,)
    save(model, tmp_path / "saved")
    assert_array_equal(load(tmp_path / "saved").probA_, model.probA_)
    save_libsvm(model, tmp_path / "again")
    assert_array_equal(load_libsvm(tmp_path / "again").probA_, model.probA_)
    svm_functions = pytest.importorskip("libsvm.svm").libsvm
    again = svm_functions.svm_load_model(str(tmp_path / "again").encode())
    assert svm_functions.svm_get_svr_probability(again) == model.probA_[0]
    svm_functions.svm_free_and_destroy_model(ctypes.pointer(again))
    assert not hasattr(model.fit(X, y), "probA_")  # it was that of another fit


def test_marks_of_a_density_are_read_over(tmp_path: Path) -> None:
    X, y = samples()
    trained_by_libsvm(tmp_path / "model", np.tile(X, (5, 1)), np.tile(y, 5), "-s 2 -n 0.3 -b 1")
    assert "prob_density_marks" in (tmp_path / "model").read_text()
    assert type(load_libsvm(tmp_path / "model")) is mm.OneClassSVM


def test_a_regression_of_others_does_not_know_its_tube(tmp_path: Path) -> None:
    X, y = samples()
    trained_by_libsvm(tmp_path / "model", X, targets_for(mm.SVR(), y), "-s 4")
    model = load_libsvm(tmp_path / "model")
    assert not hasattr(model, "epsilon_")
    save(model, tmp_path / "saved")
    assert not hasattr(load(tmp_path / "saved"), "certificate_")
    assert model.fit(X, y).epsilon_ >= 0.0


def test_half_a_sigmoid_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").write_text(two_classes("1 1:1\n-1 1:2\n", probA="-1.5"))
    with pytest.raises(ModelFileError, match="1 numbers in probB, not 0"):
        load_libsvm(tmp_path / "model")


def two_classes(vectors: str, total: int = 2, **changes: str) -> str:
    header = {
        "svm_type": "c_svc", "kernel_type": "rbf", "gamma": "0.5", "nr_class": "2",
        "total_sv": str(total), "rho": "0.25", "label": "1 -1", "nr_sv": f"{total - 1} 1",
    }  # fmt: skip
    header |= changes
    lines = [f"{name} {value}" for name, value in header.items() if value is not None]
    return "\n".join([*lines, "SV", vectors])


def test_wide_rows_stay_sparse(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text(two_classes("1 3:1 100000000:0.5 \n-1 7:2\n"))
    tracemalloc.start()
    model = load_libsvm(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e6
    assert model.n_features_in_ == 100_000_000
    assert sparse.issparse(model.support_vectors_)


def test_enormous_rows_have_to_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text(two_classes("1 3:1 2000000000:0.5 \n-1 7:2\n"))
    with pytest.raises(ModelFileError, match="line 10: index 2000000000 would take gigabytes"):
        load_libsvm(path)
    assert load_libsvm(path, n_features=2_000_000_000).support_vectors_.nnz == 3


def test_sparse_support_vectors_take_dense_rows(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text(two_classes("1 3:1 40:0.5 \n-1 7:2\n"))
    model = load_libsvm(path, n_features=50)
    assert sparse.issparse(model.support_vectors_)
    X = np.random.default_rng(0).normal(size=(20, 50))
    labels, values = by_libsvm(path, X)
    for rows in (X, sparse.csr_matrix(X)):
        assert_array_equal(model.predict(rows), labels)
        assert_allclose(as_libsvm(model, rows), values, rtol=1e-9)
    save(model, tmp_path / "saved")
    assert_array_equal(load(tmp_path / "saved").predict(X), labels)


def test_features_beyond_the_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text(two_classes("1 1:1 3:1\n-1 2:1\n"))
    assert load_libsvm(path).n_features_in_ == 3
    assert load_libsvm(path, n_features=8).n_features_in_ == 8
    with pytest.raises(ValueError, match=r"n_features=2, but .* has index 3"):
        load_libsvm(path, n_features=2)


def without_classes(svm_type: str, **changes: str) -> str:
    return two_classes(GOOD, **{"svm_type": svm_type, "label": None, "nr_sv": None, **changes})


GOOD = "1 1:1 2:0.5\n-1 1:2\n"
MALFORMED = {
    "empty": ("", "empty"),
    "no SV": ("svm_type c_svc\n", "line 1: .*no line 'SV'"),
    "text": ("hello\n", "line 1: 'hello' is not an entry"),
    "binary": ("svm_type c_svc\nkernel_type \xff\xfe\n", "line 2: the line must be ASCII text"),
    "type": (two_classes(GOOD, svm_type="svdd"), "svm_type must be one of c_svc, .*got 'svdd'"),
    "labels of targets": (two_classes(GOOD, svm_type="epsilon_svr"), "epsilon_svr has no label"),
    "counts of one class": (
        two_classes(GOOD, svm_type="one_class", label=None), "of one_class has no nr_sv",
    ),
    "many of one class": (
        without_classes("one_class", nr_class="3"), "nr_class of one_class must be 2, got 3",
    ),
    "two levels": (without_classes("nu_svr", rho="1 2"), "nu_svr has 1 numbers in rho, not 2"),
    "two scales": (without_classes("nu_svr", probA="1 2"), "1 numbers in probA, not 2"),
    "sigmoid of targets": (without_classes("nu_svr", probB="1"), "of nu_svr has no probB"),
    "negative total": (without_classes("nu_svr", total_sv="-1"), "at least 0, got -1"),
    "kernel": (two_classes(GOOD, kernel_type="laplace"), "kernel_type 'laplace' is unknown"),
    "no γ": (two_classes(GOOD, gamma=None), "gamma of the rbf kernel is missing"),
    "γ": (two_classes(GOOD, gamma="-1"), "gamma must be > 0, got -1.0"),
    "NaN γ": (two_classes(GOOD, gamma="nan"), "line 3: gamma holds 'nan'"),
    "two γ": (two_classes(GOOD, gamma="1 2"), "line 3: gamma takes one number"),
    "degree": (
        two_classes(GOOD, kernel_type="polynomial", degree="2.5", coef0="0"), "degree holds '2.5'",
    ),
    "no rho": (two_classes(GOOD, rho=None), "rho is missing"),
    "NaN rho": (two_classes(GOOD, rho="nan"), "line 6: rho holds 'nan'"),
    "two rho": (two_classes(GOOD, rho="1 2"), "1 numbers in rho, not 2"),
    "one label": (two_classes(GOOD, label="1"), "2 numbers in label, not 1"),
    "label twice": (two_classes(GOOD, label="1 1"), "label holds a label twice"),
    "real label": (two_classes(GOOD, label="1 0.5"), "line 7: label holds '0.5'"),
    "large label": (two_classes(GOOD, label="1 9999999999"), "line 7: label holds"),
    "classes": (two_classes(GOOD, nr_class="1"), "nr_class must be at least 2, got 1"),
    "many classes": (two_classes(GOOD, nr_class="2000000000"), "2000000000 classes have"),
    "no classes": (two_classes(GOOD, nr_class="two"), "line 4: nr_class holds 'two'"),
    "counts": (two_classes(GOOD, nr_sv="1 2"), "does not add up to total_sv 2"),
    "negative": (two_classes(GOOD, nr_sv="3 -1"), "does not add up to total_sv"),
    "huge total": (two_classes(GOOD, total_sv="2000000000", nr_sv="1999999999 1"), "2 of 2000"),
    "twice": (two_classes(GOOD).replace("label", "rho 1\nlabel"), "line 7: rho is given twice"),
    "few vectors": (two_classes("1 1:1\n"), "line 10: the file ends after 1 of 2"),
    "more vectors": (two_classes(GOOD + "1 1:1\n"), "line 12: total_sv is 2"),
    "blank": (two_classes("1 1:1\n\n-1 1:2\n"), "line 12: a line before this one is blank"),
    "no coefficient": (two_classes("1:1\n-1 1:2\n"), "line 10: '1:1' is not a number"),
    "NaN coefficient": (two_classes("nan 1:1\n-1 1:2\n"), "line 10: 'nan' is not a finite"),
    "NaN value": (two_classes("1 1:nan\n-1 1:2\n"), "line 10: 'nan' is not a finite number"),
    "infinite value": (two_classes("1 1:1e999\n-1 1:2\n"), "line 10: '1e999' is not a finite"),
    "index 0": (two_classes("1 0:1\n-1 1:2\n"), "line 10: indices must increase from 1, but 0"),
    "index −1": (two_classes("1 -1:1\n-1 1:2\n"), "line 10: '-1:1' is not index:value"),
    "unordered": (two_classes("1 2:1 1:1\n-1 1:2\n"), "indices must increase from 1, but 1 fol"),
    "index twice": (two_classes("1 2:1 2:1\n-1 1:2\n"), "indices must increase from 1, but 2 fol"),
    "enormous": (two_classes("1 99999999999:1\n-1 1:2\n"), "line 10: '99999999999:1' is not index"),
    "no colon": (two_classes("1 1\n-1 1:2\n"), "line 10: '1' is not index:value"),
    "no value": (two_classes("1 1:\n-1 1:2\n"), "line 10: '' is not a number"),
    "underscore": (two_classes("1_0 1:1\n-1 1:2\n"), "line 10: '1_0' is not a finite number"),
    "serial": (two_classes("1 1:1\n-1 0:2\n", kernel_type="precomputed"), "line 10: .*0:serial"),
    "serial 0": (two_classes("1 0:0\n-1 0:2\n", kernel_type="precomputed"), "line 10: .*0:serial"),
    "half serial": (two_classes("1 0:1.5\n-1 0:2\n", kernel_type="precomputed"), "line 10: "),
    "no serial": (two_classes("1\n-1 0:2\n", kernel_type="precomputed"), "line 10: .*0:serial"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_refused_with_their_line(name: str, tmp_path: Path) -> None:
    content, says = MALFORMED[name]
    path = tmp_path / "the_file"
    path.write_bytes(content.encode("latin-1"))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=says) as caught:
        load_libsvm(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "the_file" in str(caught.value)
    assert peak < 2e6


def test_the_well_formed_file_is_read(tmp_path: Path) -> None:
    """What the malformed ones are made of is itself good."""
    for content in (two_classes(GOOD), without_classes("nu_svr"), without_classes("one_class")):
        (tmp_path / "model").write_text(content + "\n\n")
        assert load_libsvm(tmp_path / "model").kernel_ == RBF(0.5)


def test_damaged_files_bring_nothing_else_about(tmp_path: Path) -> None:
    path, content = tmp_path / "model", TIED.encode()
    rng = np.random.default_rng(0)
    refused = 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] = int(rng.integers(256))
        for damaged in (content[:place], bytes(changed)):
            path.write_bytes(damaged)
            try:
                model = load_libsvm(path)
                model.predict(np.zeros((1, model.n_features_in_)))
            except ModelFileError:
                refused += 1
    assert refused > len(content)


def test_missing_files_are_ordinary_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_libsvm(tmp_path / "none")


class Endless(io.RawIOBase):
    """A stream of the same bytes again and again, that counts what is taken."""

    def __init__(self, start: bytes, again: bytes) -> None:
        self.rest, self.again, self.taken = start, again, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        while len(self.rest) < size:
            self.rest += self.again * 1000
        buffer[:], self.rest = self.rest[:size], self.rest[size:]
        self.taken += size
        return size


ENDLESS = {
    "zeros": (b"", bytes(1000), "a word has more than 1000 letters"),
    "letters": (b"svm_type ", b"c" * 1000, "a word has more than 1000 letters"),
    "label": (b"label", b" 1", "label has more than 1000 numbers"),
    "rho": (b"rho 1", b" 1", "rho has more than 1000 numbers"),
    "lines": (b"", b"\n", "'' is not an entry"),
    "coefficients": (two_classes("").encode(), b"1 ", "line 10: '1' is not index:value"),
    "digits": (two_classes("1 ").encode(), b"1" * 1000, "a word has more than 1000 letters"),
    "entries": (two_classes("1").encode(), b" 7:1", "line 10: indices must increase"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_lines_without_an_end_are_refused_early(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, again, says = ENDLESS[name]
    stream = Endless(start, again)
    monkeypatch.setattr(libsvm_reading, "MOST_WORDS", 1000)
    monkeypatch.setattr(libsvm_reading, "open", lambda *_: io.BufferedReader(stream), raising=False)
    with pytest.raises(ModelFileError, match=says):
        load_libsvm(tmp_path / "model")
    assert stream.taken < 1 << 18


def test_a_long_line_takes_no_more_memory_than_its_numbers(tmp_path: Path) -> None:
    """Blanks of 50 MB between two entries."""
    path = tmp_path / "model"
    path.write_text(two_classes("1 3:1" + " " * 50_000_000 + "4:0.5 \n-1 7:2\n"))
    tracemalloc.start()
    model = load_libsvm(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6
    assert_array_equal(model.support_vectors_[[0]].toarray(), [[0, 0, 1, 0.5, 0, 0, 0]])


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 50])
def test_words_that_pieces_cut_are_put_together(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = samples()
    path = tmp_path / "model"
    save_libsvm(mm.SVC().fit(X, y), path)
    expected = load_libsvm(path)
    monkeypatch.setattr(libsvm_reading, "PIECE_BYTES", piece)
    model = load_libsvm(path)
    assert_array_equal(model.support_vectors_, expected.support_vectors_)
    assert_array_equal(model.dual_coef_, expected.dual_coef_)
    assert_array_equal(model.intercept_, expected.intercept_)


@pytest.mark.parametrize(
    "machine",
    [*(mm.SVC(kernel=kernel) for kernel in KERNELS), mm.SVR(), mm.NuSVR(), mm.OneClassSVM()],
)
def test_models_changed_at_random_are_refused_or_predict(machine: Any, tmp_path: Path) -> None:
    X, y = samples()
    path, refused = tmp_path / "model", 0
    save_libsvm(clone(machine).fit(X @ X.T if machine.kernel == "precomputed" else X, y), path)
    words = path.read_text().replace("\n", " \n ").split(" ")
    others = ["0", "-1", "2", "1e308", "-1e308", "1e-320", "3:1e300", "99:1", "0:1", "x", "", "\n"]
    for seed in range(400):
        rng = np.random.default_rng(seed)
        changed = list(words)
        for place in rng.integers(len(words), size=rng.integers(1, 4)):
            changed[place] = rng.choice([*others, words[rng.integers(len(words))]])
        path.write_text(" ".join(changed).replace("\n ", "\n"))
        try:
            model = load_libsvm(path)
        except ModelFileError:
            refused += 1
            continue
        rows = np.ones((4, model.n_features_in_))
        with np.errstate(all="ignore"):
            if is_classifier(model):
                assert set(model.predict(rows)) <= set(model.classes_)
            assert np.isfinite(as_libsvm(model, rows)).all()
    assert refused > 100
