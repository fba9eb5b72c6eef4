"""The HTML page on a model: complete, self-contained, and safe whatever the labels are."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import report
from maxmargin.diagnostics.summary import smallest_distance, summarize
from maxmargin.estimators.registry import MODELS
from maxmargin.plots.drawn import as_drawn
from maxmargin.report import figures as report_figures
from tests.helpers.report_page import Page, check_page

EVIL = "<script>alert(1)</script>"
NAMES = ["a&b", "<i>c</i>", "\"quoted\" 'too'"]


@pytest.fixture(scope="module")
def evil():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        np.vstack([rng.normal(0, 1, (20, 3)), rng.normal(3, 1, (20, 3))]), columns=NAMES
    )
    y = np.array([EVIL] * 20 + ['b"&'] * 20)
    model = make_pipeline(mm.ColumnEncoder(), mm.SVC(kernel="linear", C=2)).fit(X, y)
    about = {
        "data": {"source": "<b>file</b>.csv", "rows": 40, "columns": 3, "target": "<u>",
                 "dropped": [], "classes": {EVIL: 20, 'b"&': 20}},
        "training_rows": 30, "training_error": 0.1, "date": "2030-01-02",
        "test": {"rows": 10, "error": 0.2},
    }  # fmt: skip
    return model, X, y, report.render(model, X, y, about=about, data="<img src=x onerror=alert(2)>")


def recall(label, y, predicted):
    """Return the share of the rows of a class that a model finds, in words."""
    return f"{100 * float(np.mean(predicted[y == label] == label)):.1f} %"


def nothing_drawn(display):
    """Stand in for a picture of a figure, which takes most of the time of a page."""
    return "data:image/png;base64,"


@pytest.fixture
def undrawn(monkeypatch):
    """Make figures, but write no pictures of them: the test is about words."""
    monkeypatch.setattr(report_figures, "_drawn", nothing_drawn)


def test_everything_is_escaped(evil):
    _, _, _, text = evil
    page = check_page(text)
    assert EVIL not in text
    assert "<img src=x" not in text
    assert "<b>file" not in text
    assert "<i>c" not in text
    # and yet it is all there, to be read
    for words in (EVIL, "<img src=x onerror=alert(2)>", "<b>file</b>.csv", *NAMES):
        assert words in page.text
    assert re.search(r"<title>[^<]*&lt;img", text)


def test_the_page_has_the_proof_the_confusion_and_the_facts(evil):
    model, X, y, text = evil
    page, found = check_page(text), summarize(model)
    assert found.certificate in page.text
    assert "It proves what the estimator promises." in page.text
    predicted = model.predict(X)
    for label, counts in zip(model.classes_, confusion_matrix(y, predicted), strict=True):
        assert [label, *map(str, counts), recall(label, y, predicted)] in page.cells
    right = int((predicted == y).sum())
    assert f"Of 40 training rows, the model puts {right} in the right class" in page.text
    counts = zip(model[-1].n_support_, model.classes_, strict=True)
    by_class = ", ".join(f"{n} of {label}" for n, label in counts)
    assert ["support vectors", f"{found.n_support}: {by_class}"] in page.cells
    words = f"{found.margin:.6g} (1/‖w‖, half the width of the band)"
    assert ["margin", words] in page.cells
    assert ["ended", found.ended] in page.cells
    assert ["training error", "10.00 %"] in page.cells
    assert ["test error", "20.00 % (10 rows)"] in page.cells
    assert ["date", "2030-01-02"] in page.cells
    w, b = model[-1].coef_[0], model[-1].intercept_[0]
    for name, value in zip([*NAMES, "b"], [*w, b], strict=True):
        shown = [row[1] for row in page.cells if row[:1] == [name] and len(row) == 2]
        assert f"{value:.6g}" in shown, name
    assert len(page.pictures) == 3
    assert "Not drawn: the fit ended after one round." in page.text


@pytest.mark.parametrize(
    "name", [name for name, variant in MODELS.items() if variant.targets == "classes"]
)
def test_every_classifier_has_a_page(name):
    X, y = mm.datasets.load_fruit(return_X_y=True)
    X = StandardScaler().fit_transform(X)[y < 3]
    y = y[y < 3]
    model = MODELS[name]().fit(X, y)
    page = check_page(report.render(model, X, y))
    assert str(model.certificate_) in page.text
    predicted = model.predict(X)
    for label, row in zip(range(3), confusion_matrix(y, predicted), strict=True):
        assert [str(label), *map(str, row), recall(label, y, predicted)] in page.cells
    assert len(page.pictures) >= 2


@pytest.mark.parametrize(
    "name", [name for name, variant in MODELS.items() if variant.targets == "numbers"]
)
def test_every_regression_has_a_page(name, monkeypatch):
    X, y = mm.datasets.load_fruit(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:, :2], X[:, 2]
    model = MODELS[name]().fit(X, y)
    page = check_page(report.render(model, X, y))
    assert str(model.certificate_) in page.text
    assert ["R²", f"{model.score(X, y):.4g}"] in page.cells
    assert "mean of the training targets" not in page.text
    assert "Where the answers go" not in page.text
    assert ["ε", f"{getattr(model, 'epsilon_', None) or model.epsilon:.6g}"] in page.cells
    assert len(page.pictures) == 2 + (len(model.trace_) > 1)
    assert "SVR: the targets fit R² " in page.text
    assert " within ε = " in page.text
    assert "residual state alpha" in page.text
    about = {"data": {"targets": {"mean": float(y.mean())}}}
    monkeypatch.setattr(report_figures, "_drawn", nothing_drawn)
    page = Page(report.render(model, X, y, about=about))
    assert "always answering the mean of the training targets, off by " in page.text
    assert ["R²", f"{model.score(X, y):.4g}", "0"] in page.cells
    other = Page(report.render(model, X + 1.0, y))
    assert "the targets fit" not in other.text
    assert "Not drawn: " in other.text


@pytest.mark.usefixtures("undrawn")
def test_the_figure_of_a_regression_names_the_target(monkeypatch):
    X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]
    drawn, regression = [], report_figures.plots.regression
    monkeypatch.setattr(
        report_figures.plots,
        "regression",
        lambda *a, **k: drawn.append(regression(*a, **k)) or drawn[-1],
    )
    model = mm.SVR().fit(X, y)
    for about in ({"data": {"target": "price"}}, {"data": "my own"}, None):
        report.render(model, X, y, about=about)
    assert [display.labels[1] for display in drawn] == ["price", "y", "y"]


def test_a_one_class_machine_has_a_page():
    X = StandardScaler().fit_transform(mm.datasets.load_fruit(return_X_y=True)[0])[:, :2]
    model = mm.OneClassSVM(nu=0.2).fit(X)
    page = check_page(report.render(model, X))
    outliers = int((model.predict(X) < 0).sum())
    assert (
        f"{outliers} of 150 training rows are outliers: {100 * outliers / 150:.2f} %. ν = 0.2 is"
        in page.text
    )
    assert "Where the answers go" not in page.text
    assert "misclassified" not in page.text
    assert ["outliers", f"{100 * outliers / 150:.2f} %", "20.0 %"] in page.cells
    assert len(page.pictures) == 3 + (len(model.trace_) > 1)
    assert "OneClassSVM: the region outliers" in page.text


def test_badly_scaled_data_are_named():
    X = StandardScaler().fit_transform(mm.datasets.load_fruit(return_X_y=True)[0])
    y = 1e5 * X[:, 2]
    page = check_page(report.render(mm.SVR().fit(X[:, :2], y), X[:, :2], y))
    assert "Scales C = 1 is only 1e-05 standard deviations of y" in page.text
    wide = X * [1.0, 1e4, *[1.0] * (X.shape[1] - 2)]
    page = check_page(report.render(mm.SVC().fit(wide, y > 0), wide, y > 0))
    assert "Scales The widest feature spreads" in page.text


def test_a_fit_that_proves_nothing_says_so():
    X, y = mm.datasets.load_xor(return_X_y=True)
    with pytest.warns(UserWarning, match="max_iter"):
        model = mm.Perceptron(max_iter=5).fit(X, y)
    page = check_page(report.render(model, X, y))
    assert "It does not prove what the estimator promises" in page.text


def test_frames_words_and_many_features():
    rng = np.random.default_rng(0)
    X = pl.DataFrame(
        {f"f{k}": rng.normal(size=50) for k in range(40)} | {"w": rng.choice(["u", "v"], 50)}
    )
    y = rng.choice([0, 1], 50)
    model = make_pipeline(mm.ColumnEncoder(), mm.LinearSVC()).fit(X, y)
    page = check_page(report.render(model, X, y))
    assert re.search(r"\b30\b[^.]*\b42 weights", page.text)
    largest = model[:-1].get_feature_names_out()[np.abs(model[-1].coef_[0]).argmax()]
    assert largest in [row[0] for row in page.cells if row]


def test_sparse_rows():
    from scipy import sparse

    X = sparse.random(60, 30, 0.2, format="csr", random_state=0)
    y = np.arange(60) % 2
    model = mm.LinearSVC().fit(X, y)
    page = check_page(report.render(model, X, y))
    assert ["features", "30"] in page.cells


def test_a_model_of_another_program(tmp_path):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    mm.persistence.save_libsvm(mm.SVC(kernel="linear").fit(X, y), tmp_path / "six.model")
    model = mm.persistence.load_libsvm(tmp_path / "six.model")
    page = check_page(report.render(model, X, y))
    assert "No certificate" in page.text


def test_rows_with_one_class_or_strange_labels():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(kernel="linear").fit(X, y)
    page = check_page(report.render(model, X[:3], y[:3]))
    assert ["1", "0", "3", "100.0 %"] in page.cells
    assert ["-1", "0", "0", "–"] in page.cells


def test_a_row_of_an_unknown_class_is_in_the_table():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(kernel="linear").fit(X, y)
    page = check_page(report.render(model, X, [1, 1, 7, -1, -1, -1]))
    assert "Of 6 training rows, the model puts 5 in the right class" in page.text
    assert ["7", "0", "1", "0.0 %"] in page.cells
    assert ["3", "7", "1", "–", "4", "11"] in page.cells  # its margin is unknown


def test_facts_of_ones_own():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(kernel="linear").fit(X, y)
    check_page(report.render(model, X, y, about={"data": "six points"}))


def test_nothing_is_left_open_or_changed():
    from matplotlib import pyplot as plt

    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(kernel="linear").fit(X, y)
    before, figures = X.copy(), plt.get_fignums()
    report.render(model, X, y)
    np.testing.assert_array_equal(X, before)
    assert plt.get_fignums() == figures


def test_write_replaces_the_whole_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old" * 1000)
    report.write("ü – neu", path)
    assert path.read_text(encoding="utf-8") == "ü – neu"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def axes_of(model, X, y, monkeypatch):
    """Return what is written along the axes of the first figure, and its limits."""
    shown = []
    drawn = report_figures._drawn

    def watched(display):
        ax = display.figure_.axes[0]
        shown.append((ax.get_xlabel(), ax.get_ylabel(), ax.get_xlim()))
        return drawn(display)

    monkeypatch.setattr(report_figures, "_drawn", watched)
    return report.render(model, X, y), shown[0]


def test_two_columns_are_drawn_in_their_own_units(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"mass": rng.normal(3000, 900, 60), "width": rng.normal(0, 1e-3, 60)})
    y = np.where(X["mass"] > 3000, "heavy", "light")
    model = make_pipeline(mm.ColumnEncoder(), mm.SVC(kernel="linear")).fit(X, y)
    _, (across, up, (left, right)) = axes_of(model, X, y, monkeypatch)
    assert (across, up) == ("mass", "width")
    assert left < X["mass"].min() < X["mass"].max() < right


def test_features_that_were_scaled_say_so(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)) * [1e3, 1, 1e-3], columns=["mass", "width", "age"])
    y = np.where(X["mass"] > 0, "heavy", "light")
    model = make_pipeline(mm.ColumnEncoder(), mm.SVC(kernel="linear")).fit(X, y)
    page, _ = axes_of(model, X, y, monkeypatch)
    assert "x after ColumnEncoder" in page
    drawn = as_drawn(model, X)
    assert list(drawn.labels) == ["mass (scaled)", "width (scaled)", "age (scaled)"]
    assert list(drawn.names) == ["mass", "width", "age"]


@pytest.mark.usefixtures("undrawn")
def test_a_perceptron_has_no_support_vectors_to_draw():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    page = report.render(mm.Perceptron().fit(X, y), X, y)
    assert "<h3>Margins</h3>" in page
    assert "<h3>Support vectors</h3>" not in page
    assert "Not drawn" not in page


@pytest.mark.usefixtures("undrawn")
def test_rows_may_be_lists():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = make_pipeline(StandardScaler(), mm.SVC(kernel="linear", C=10)).fit(X, y)
    page = report.render(model, X.tolist(), y.tolist())
    assert page.count("<img") == 3


def captions(model, X, y):
    return re.findall(r"<figcaption>(.*?)</figcaption>", report.render(model, X, y))


@pytest.mark.usefixtures("undrawn")
def test_captions_promise_what_is_drawn():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    many = captions(mm.SVC().fit(X, y), X, y)
    assert not any("band" in caption for caption in many)  # there is none of many classes
    assert many[2] == "Not drawn: the fit ended after one round."
    assert "the rival wins below 0, slack below 1" in many[1]
    assert many[1].endswith("All 150 rows.")
    assert re.search(r"for \d against \d: its 60 training rows", many[3])
    with pytest.warns(UserWarning, match="not"):
        rules = captions(mm.Perceptron(max_iter=5).fit(X, y), X, y)
    assert "1 of 5 tasks" in rules[2]
    two = captions(mm.SVC().fit(X[y < 2], y[y < 2]), X[y < 2], y[y < 2])
    assert "the band |g| ≤ 1" in two[0]
    assert "slack below 1" in two[1]
    rule = captions(mm.Perceptron().fit(X[y < 2], y[y < 2]), X[y < 2], y[y < 2])
    assert not any("band" in caption or "support" in caption for caption in rule)
    assert "slack" not in rule[1]
    assert "mistakes met" in rule[2]
    xor = mm.datasets.load_xor(return_X_y=True)
    none = captions(mm.SVC(kernel="linear").fit(*xor), *xor)
    assert none[0].startswith("No plane")


@pytest.mark.usefixtures("undrawn")
def test_one_count_has_one_unit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, 1, -1)
    model = mm.SVC(C=10).fit(X, y)
    ended = summarize(model).ended
    steps, rounds = model.n_iter_[0], len(model.trace_)
    assert ended == f"converged after {steps:,} steps in {rounds} round{'s' * (rounds > 1)}"
    assert ["ended", ended] in Page(report.render(model, X, y)).cells
    title = mm.plots.convergence(model).ax_.get_title().replace("\n", " ")
    assert f"after {rounds} round{'s' * (rounds > 1)} ({steps:,} steps)" in title


def test_a_sampled_certificate_is_called_no_proof():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    found = summarize(mm.SVC(kernel="linear").fit(X, y))
    assert found.is_proved
    sampled = replace(found, coverage="sampled")
    assert not sampled.is_proved
    assert "a sample of the rows only" in sampled.verdict
    assert "proves" not in sampled.verdict
    for coverage in ("complete", "bounded"):
        assert replace(found, coverage=coverage).is_proved


def test_one_sampled_task_of_many_is_reported():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    model = mm.SVC().fit(StandardScaler().fit_transform(X), y)
    assert summarize(model).coverage == "complete"
    best = min(range(10), key=lambda k: model.certificates_[k].violation)
    model.certificates_[best] = replace(model.certificates_[best], coverage="sampled")
    found = summarize(model)
    assert (found.coverage, found.is_proved) == ("sampled", False)


def test_margin_of_many_tasks_is_the_smallest():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    X = StandardScaler().fit_transform(X)[y < 3]
    y = y[y < 3]
    rule = mm.Pseudoinverse(multi_class="ovo").fit(X, y)
    distances = [certificate.geometric_margin for certificate in rule.certificates_]
    assert summarize(rule).margin == min(distances)
    assert "smallest distance" in summarize(rule).margin_in_words


@pytest.mark.parametrize("make", [
    lambda: mm.SVC(kernel="linear", C=10), lambda: mm.SVC(), lambda: mm.LinearSVC(),
    lambda: mm.LinearSVC(multi_class="crammer_singer"), lambda: mm.NuSVC(nu=0.2),
    lambda: mm.LinearSVC(multi_class="ovo"), lambda: mm.Perceptron(),
])  # fmt: skip
def test_the_smallest_distance_is_that_of_a_sample(make):
    X, y = mm.datasets.load_fruit(return_X_y=True)
    X = StandardScaler().fit_transform(X)[y < 3]
    y = y[y < 3]
    for some in (y < 2, y < 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(X[some], y[some])
        found = smallest_distance(model, X[some], y[some])
        assert np.isfinite(found)
        if some.sum() < len(y) and hasattr(model, "coef_"):
            plane = model.hyperplane_
            signs = np.where(y[some] == model.classes_[1], 1.0, -1.0)
            distances = signs * (X[some] @ plane.w + plane.b) / np.linalg.norm(plane.w)
            assert found == pytest.approx(distances.min())


@pytest.mark.usefixtures("undrawn")
def test_a_search_is_drawn_in_the_report():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    model = mm.SVCCV([1.0, 10.0], [0.01, 0.1], cv=3).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), mm.SVCCV([1.0, 10.0], [0.01, 0.1], cv=3)).fit(X, y)
    for each in (model, pipeline):
        page = mm.report.render(each, X, y)
        assert "<h3>The search</h3>" in page
        assert "Mean accuracy of cross-validation" in page
    page = mm.report.render(model.best_estimator_, X, y, about={"search": "of my own"})
    assert "The search" in page
    assert "Mean accuracy of cross-validation" not in page
    assert "<h3>The search</h3>" not in mm.report.render(model.best_estimator_, X, y)
