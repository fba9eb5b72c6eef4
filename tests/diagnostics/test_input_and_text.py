"""Support tables and margin reports: data of every kind, errors, and their text."""

import builtins
import warnings
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin.diagnostics import margin_report, support_table
from maxmargin.estimators import formulation
from maxmargin.kernels import RBF
from tests.helpers.machines import machines, overlapping, three_classes

# Data of every kind -------------------------------------------------------------------------------


@machines
def test_precomputed_sparse_and_float32_say_the_same(make):
    X, y = overlapping()
    names = np.where(y > 0, "yes", "no")
    expected = support_table(make(kernel=RBF(gamma=0.5)).fit(X, names), X, names)
    width = margin_report(make(kernel=RBF(gamma=0.5)).fit(X, names)).width
    K = RBF(gamma=0.5)(X)
    for kernel, given in [("precomputed", K), (RBF(gamma=0.5), sparse.csr_matrix(X))]:
        model = make(kernel=kernel).fit(given, names)
        table = support_table(model, given, names)
        np.testing.assert_allclose(table.alpha, expected.alpha, atol=1e-6)
        np.testing.assert_allclose(table.margin, expected.margin, atol=1e-6)
        assert margin_report(model, given, names).width == pytest.approx(width, rel=1e-6)
    model = make(kernel=RBF(gamma=0.5)).fit(X.astype(np.float32), names)
    table = support_table(model, X.astype(np.float32), names)
    np.testing.assert_allclose(table.margin, expected.margin, atol=1e-4)


def test_sparse_and_dense_of_the_same_data_are_interchangeable():
    X, y = overlapping()
    S = sparse.csr_matrix(X)
    np.testing.assert_allclose(
        support_table(mm.SVC().fit(S, y), X, y).margin,
        support_table(mm.SVC().fit(X, y), S, y).margin,
        atol=1e-3,
    )


def test_precomputed_needs_its_matrix():
    X, y = overlapping()
    model = mm.SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="holds no kernel values: pass X"):
        margin_report(model)
    with pytest.raises(ValueError, match="primal value"):
        support_table(model, 1.01 * X @ X.T, y)


def test_data_frames():
    pd = pytest.importorskip("pandas")
    X, y = overlapping()
    frame, series = pd.DataFrame(X, columns=["a", "b"]), pd.Series(y).map({1: "yes", -1: "no"})
    model = mm.SVC().fit(frame, series)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = support_table(model, frame, series)
        margin_report(model, frame, series)
        margin_report(model)
    assert table.label.tolist() == series.tolist()
    result = table.to_pandas()
    assert result.index.tolist() == list(range(80))
    assert result["state"].value_counts().to_dict() == {k: v for k, v in table.counts.items() if v}


def test_a_sampled_certificate_is_enough_to_know_the_data_by(monkeypatch):
    monkeypatch.setattr(formulation, "TUNING", replace(formulation.TUNING, thorough_values=1))
    X, y = overlapping(n=3500)
    model = mm.SVC().fit(X, y)
    assert model.certificate_.n_checked < 3500
    table = support_table(model, X, y)
    np.testing.assert_allclose(table.margin, y * model.decision_function(X), atol=1e-10)
    other = X.copy()
    other[table.margin > 1.1] *= -1.0  # no support vectors, on the wrong side now
    with pytest.raises(ValueError, match="primal value"):
        support_table(model, other, y)


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("diagnose", [support_table, margin_report])
def test_what_is_refused(diagnose):
    X, y = overlapping()
    model = mm.SVC().fit(X, y)
    with pytest.raises(NotFittedError):
        diagnose(mm.SVC(), X, y)
    with pytest.raises(TypeError, match="LinearSVR or OneClassSVM, got Perceptron"):
        diagnose(mm.Perceptron(max_iter=5000).fit(*mm.datasets.load_and(return_X_y=True)), X, y)
    with pytest.raises(TypeError, match="got Pipeline"):
        diagnose(make_pipeline(model), X, y)
    with pytest.raises(ValueError, match=r"X has shape \(79, 2\), the model was fitted on \(80, 2"):
        diagnose(model, X[1:], y[1:])
    with pytest.raises(ValueError, match="3 features"):
        diagnose(model, np.c_[X, X[:, 0]], y)
    with pytest.raises(ValueError, match=r"classes \[0, 1\], the model was fitted on \[-1, 1\]"):
        diagnose(model, X, (y + 1) // 2)
    with pytest.raises(ValueError, match=r"row \d+ of X differs from the support vector"):
        diagnose(model, X + 1e-9, y)
    with pytest.raises(ValueError, match="differs from the support vector"):
        diagnose(model, sparse.csr_matrix(1.5 * X), y)
    flipped = y.copy()
    flipped[model.support_[0]] *= -1
    with pytest.raises(ValueError, match=r"y\[\d+\] is .*, a support vector of class"):
        diagnose(model, X, flipped)
    with pytest.raises(ValueError, match="same order"):
        diagnose(model, X[::-1], y[::-1])
    outside = np.setdiff1d(np.arange(80), model.support_)[0]
    other = y.copy()
    other[outside] *= -1  # no support vector, but now an error
    with pytest.raises(ValueError, match="primal value"):
        diagnose(model, X, other)
    with pytest.raises(ValueError, match=r"C=7 was set after the fit, which had C=1: fit again"):
        diagnose(mm.SVC().fit(X, y).set_params(C=7.0), X, y)
    with pytest.raises(ValueError, match="primal value"):
        diagnose(mm.SVC().fit(X, y).set_params(loss="squared_hinge"), X, y)


def test_report_takes_data_whole_or_not_at_all():
    X, y = overlapping()
    model = mm.SVC().fit(X, y)
    for arguments in [{"X": X}, {"y": y}]:
        with pytest.raises(ValueError, match="pass both, or neither"):
            margin_report(model, **arguments)
    with pytest.raises(ValueError, match="pass X and y with it"):
        margin_report(model, sample_weight=np.ones(80))


# Text and columns ---------------------------------------------------------------------------------


def test_text_is_aligned_and_sorted():
    X, y = overlapping()
    model = mm.SVC().fit(X, y)
    table = support_table(model, X, y)
    first, header, *rows, last = str(table).splitlines()
    assert first.startswith("1 against -1: 80 samples, ")
    assert header.split() == ["row", "label", "state", "alpha", "y·g", "slack", "residual", "C"]
    assert [int(row.split()[0]) for row in rows] == list(range(20))
    assert last == "… 60 more: to_text(n_rows=None) prints all"
    assert len({len(line) for line in [header.rstrip(), *rows]}) == 1
    everything = table.to_text(n_rows=None, sort="margin").splitlines()
    assert len(everything) == 82
    assert int(everything[2].split()[0]) == np.argmin(table.margin)
    largest = table.to_text(n_rows=1, sort="alpha").splitlines()[2]
    assert int(largest.split()[0]) == np.argmax(table.alpha)
    with pytest.raises(ValueError, match="must be 'alpha', 'margin' or None, got 'slack'"):
        table.to_text(sort="slack")
    with pytest.raises(ValueError, match="n_rows must be at least 0"):
        table.to_text(n_rows=-1)


def test_columns():
    X, y = overlapping()
    table = support_table(mm.SVC().fit(X, y), X, y)
    columns = table.to_dict()
    assert set(map(len, columns.values())) == {80}
    assert {type(columns[name][0]) for name in columns} == {int, float, str}
    assert list(columns) == [
        "index", "label", "sign", "alpha", "margin", "slack", "state", "complementarity", "cost",
        "bound",
    ]  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        table.alpha = None


def test_without_pandas(monkeypatch):
    X, y = overlapping()
    table = support_table(mm.SVC().fit(X, y), X, y)
    genuine = builtins.__import__

    def refuse(name, *arguments, **options):
        if name == "pandas":
            raise ImportError(name)
        return genuine(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install pandas$"):
        table.to_pandas()


def test_report_as_text():
    X, y = overlapping()
    text = str(margin_report(mm.NuSVC(nu=0.4).fit(X, y), X, y))
    for part in (
        "width 2/‖w‖ = ",
        "ρ = ",
        "the machine of C = ",
        "≤ 0.4 ≤",
        "ξα, R² = ",
        "optimal",
    ):
        assert part in text
    X, y = three_classes()
    lines = str(margin_report(mm.SVC(multi_class="ovr").fit(X, y), X, y)).splitlines()
    assert lines[0] == "SVC: 3 tasks"
    assert [line.split("  ")[0] for line in lines[2:5]] == [
        f"{name} against the rest" for name in ("apple", "lemon", "pear")
    ]
    assert lines[5].startswith("worst proof, ")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [mm.SVC, mm.NuSVC])
def test_fits_that_were_cut_short(make):
    X, y = three_classes()
    for max_iter in (0, 1, 5, 20):
        model = make(max_iter=max_iter).fit(X, y)
        assert not model.certificate_.holds(1e-3)
        for report in (margin_report(model, X, y), margin_report(model)):
            assert not any(task.width <= 0.0 for task in report.tasks)
            assert report.tasks[0].status is model.statuses_[0]
            assert str(report)


def test_indefinite_kernel_has_no_width():
    X, y = overlapping(n=30)
    K = -X @ X.T
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = mm.SVC(kernel="precomputed", max_iter=200).fit(K, y)
    report = margin_report(model, K, y)
    assert np.isnan(report.width)
    assert "not positive semidefinite" in str(report)
