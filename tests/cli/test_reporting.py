"""`report`: the page for people who decide, as the command line writes it."""

import csv
import json
import re

import numpy as np
import polars as pl
import pytest

import maxmargin as mm
from maxmargin.report import figures
from tests.helpers.command_line import FRUIT, bad, call, good, records
from tests.helpers.report_page import Page, check_page

SECTIONS = ["Verdict", "Pictures", "The proof", "Rows to look at", "The model", "The data", "Terms"]


def page_of(model, data):
    """Return the page about a model, as it is read."""
    good(call("report", model, data, "--out", "r.html"))
    with open("r.html", encoding="utf-8") as file:
        return Page(file.read())


def table_with(page, *head):
    """Return the rows of the table with this head, as dictionaries."""
    first = next(k for k, row in enumerate(page.cells) if row[: len(head)] == list(head))
    names = page.cells[first]
    rows = []
    for row in page.cells[first + 1 :]:
        if len(row) != len(names) or row[0] in ("row", "class", "task"):
            break
        rows.append(dict(zip(names, row, strict=True)))
    return rows


@pytest.fixture
def undrawn(monkeypatch):
    """Make figures, but write no pictures of them: the test is about words."""
    monkeypatch.setattr(figures, "_drawn", lambda display: "data:image/png;base64,")


@pytest.fixture
def fruit_page(models, undrawn):
    """The page about a model of five classes that was fitted with --test."""
    return page_of("fruit.mm", "fruit.csv")


def test_report(models):
    assert good(call("report", "fruit.mm", "fruit.csv")) == "report: report.html\n"
    page = check_page((models / "report.html").read_text(encoding="utf-8"))
    assert [name for name in page.headings if name in SECTIONS] == SECTIONS
    assert len(page.pictures) == 3
    record = json.loads(good(call("evaluate", "fruit.mm", "fruit.csv", "--json")))
    for name, part in (("held-out", record["held_out"]), ("training", record["training"])):
        n, right = part["rows"], part["rows"] - part["errors"]
        words = f"Of {n} {name} rows, the model puts {right} in the right class: "
        assert (
            f"{words}{100 * right / n:.1f} %. Always answering “apple” would be right for 20.0 %"
            in (page.text)
        )
        for label, counts in zip(part["classes"], part["confusion"], strict=True):
            found = part["per_class"][label]["recall"]
            assert [label, *map(str, counts), f"{100 * found:.1f} %"] in page.cells
        assert [
            "balanced accuracy",
            f"{100 * part['balanced_accuracy']:.2f} %",
            "20.00 %",
        ] in page.cells
    assert page.text.index("held-out rows, the model") < page.text.index("training rows, the model")
    drawn_of = re.findall(r"(all [0-9]+ rows|[0-9]+ held-out rows)\.", page.text)
    assert drawn_of == ["all 150 rows", "30 held-out rows"]  # the boundary, and the margins


def test_the_proof_is_told_pair_by_pair(fruit_page):
    model = mm.load("fruit.mm")[-1]
    names = [
        f"{a} against {b}" for k, a in enumerate(model.classes_) for b in model.classes_[k + 1 :]
    ]
    found = table_with(fruit_page, "task", "verdict")
    assert {line["task"] for line in found} == set(names)
    assert {line["verdict"] for line in found} == {"✔ proved"}
    assert found[0]["task"] == names[model._worst()]
    assert str(model.certificate_) in fruit_page.text
    assert "✔ All 10 tasks proved." in fruit_page.text


def test_rows_are_shown_with_their_values_in_the_file(fruit_page, models):
    with FRUIT.open() as file:
        lines = list(csv.DictReader(file))
    model, given = (
        mm.load("fruit.mm"),
        records(good(call("evaluate", "fruit.mm", "fruit.csv", "--json"))),
    )
    influential = table_with(fruit_page, "row", "part", "class", "answer", "margin", "α")
    doubtful = table_with(fruit_page, "row", "part", "class", "answer", "margin", "mass_g")
    assert len(influential) == len(doubtful) == 15
    answers = model.predict(pl.read_csv(FRUIT).drop("fruit").to_numpy())
    for row in (*influential, *doubtful):
        line, k = lines[int(row["row"]) - 1], int(row["row"]) - 1
        assert row["class"] == line["fruit"]
        assert row["answer"] == answers[k]
        for name in ("mass_g", "width_cm", "height_cm"):
            assert float(row[name]) == float(line[name])
    assert {row["part"] for row in influential} == {"training"}
    alphas = [float(row["α"]) for row in influential]
    assert alphas == sorted(alphas, reverse=True)
    assert alphas[0] == pytest.approx(np.abs(model[-1].dual_coef_).max(), rel=1e-3)
    wrong = [row["class"] != row["answer"] for row in doubtful]
    assert wrong == sorted(wrong, reverse=True)
    n_errors = sum(given[0][part]["errors"] for part in ("held_out", "training"))
    assert f"{sum(wrong)} of {n_errors} wrong answers" in fruit_page.text
    margins = [float(row["margin"]) for row in doubtful]
    assert margins[: sum(wrong)] == sorted(margins[: sum(wrong)])


def test_parameters_preparation_and_versions_are_shown(fruit_page):
    cells = fruit_page.cells
    assert ["C", "10 (given)"] in cells
    assert ["gamma", "scale (default)"] in cells
    assert ["class_weight", "None (default)"] in cells
    assert not any(row[:1] == ["degree"] for row in cells)  # which this kernel does not have
    encoder = mm.load("fruit.mm")[0]
    scaled = f"less {encoder.mean_[0]:.4g}, divided by {encoder.scale_[0]:.4g}"
    assert ["mass_g", scaled] in cells
    (versions,) = [row[1] for row in cells if row[:1] == ["versions"]]
    assert f"maxmargin {mm.__version__}" in versions
    assert any(row[:1] == ["date"] for row in cells)
    assert any(row[:1] == ["trained on"] and "fruit.csv: 120 of 150" in row[1] for row in cells)


def test_terms_are_explained_where_they_are_used_and_at_the_end(fruit_page, models):
    text = (models / "r.html").read_text(encoding="utf-8")
    listed = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))
    assert {"recall", "balanced accuracy", "gap", "support vectors", "α", "proved"} <= set(listed)
    assert "R²" not in listed  # a term of other models
    assert set(listed.values()) == {tip.replace("&", "&amp;") for tip in fruit_page.tips}
    # Without a script: by the pointer, the keyboard, or a tap.
    assert text.count('<span class="term" tabindex="0">') == len(fruit_page.tips)
    assert ".term:hover > .tip, .term:focus > .tip" in text
    assert "@media print" in text


@pytest.mark.usefixtures("undrawn")
def test_a_fit_that_was_cut_short_is_never_called_proved(here):
    done = call("fit", "fruit.csv", "--target", "fruit", "--max-iter", 5, "--out", "cut.mm")
    assert "10 of 10 tasks not done" in done.err
    page = page_of("cut.mm", "fruit.csv")
    assert "✘ None of 10 tasks proved. It does not prove what the estimator promises" in page.text
    assert {line["verdict"] for line in table_with(page, "task", "verdict")} == {"✘ not proved"}
    assert "✔" not in page.text
    assert "These are the rows that the model was fitted to" in page.text
    assert ["max_iter", "5 (given)"] in page.cells


@pytest.mark.usefixtures("undrawn")
def test_many_classes_are_folded(here):
    rng = np.random.default_rng(0)
    letters = [chr(ord("A") + k) for k in range(26)]
    X = rng.normal(size=(26, 5))[np.arange(208) % 26] + rng.normal(size=(208, 5))
    frame = pl.DataFrame({f"f{k}": X[:, k] for k in range(5)} | {"letter": letters * 8})
    frame.write_csv("letters.csv")
    good(call("fit", "letters.csv", "--target", "letter", "--out", "l.mm"))
    page = page_of("l.mm", "letters.csv")
    model = mm.load("l.mm")
    assert len(table_with(page, "task", "verdict")) == 12
    assert "The other 313 tasks" in page.text
    assert "The other 14 classes and the whole table" in page.text
    answers, truth = model.predict(X), np.array(frame["letter"])
    found = table_with(page, "true class", "answer")
    counts = [np.sum((truth == line["true class"]) & (answers == line["answer"])) for line in found]
    assert [int(line["rows"]) for line in found] == counts
    pairs = truth[answers != truth] + answers[answers != truth]
    assert counts[0] == np.unique(pairs, return_counts=True)[1].max()
    recalls = [float(line["recall"].split()[0]) for line in table_with(page, "class", "recall")]
    assert len(recalls) == 12
    assert recalls == sorted(recalls)


@pytest.mark.usefixtures("undrawn")
def test_long_texts_are_cut_and_sparse_rows_show_their_largest_values(here):
    words = ["fine"] * 40 + ["poor"] * 40
    lines = [f"{word} and a long tale of {'x' * 90} number {k % 5},{k % 3},{word}"
             for k, word in enumerate(words)]  # fmt: skip
    (here / "t.csv").write_text("review,stars,mood\n" + "\n".join(lines) + "\n")
    good(call("fit", "t.csv", "--target", "mood", "--text", "review", "--model", "linear-svc",
              "--out", "t.mm"))  # fmt: skip
    found = table_with(page_of("t.mm", "t.csv"), "row", "class", "answer", "margin", "review")
    assert found
    for row in found:
        line = lines[int(row["row"]) - 1]
        assert row["review"] == line[:60] + "…"
        assert row["stars"] == line.split(",")[1]
    rows = [f"{k % 2} " + " ".join(f"{j + 1}:{j + k % 2}" for j in range(9)) for k in range(20)]
    (here / "s.svm").write_text("\n".join(rows) + "\n")
    good(call("fit", "s.svm", "--model", "linear-svc", "--out", "s.mm"))
    found = table_with(page_of("s.mm", "s.svm"), "row", "class", "answer", "margin", "values")
    assert found[0]["values"].count(" = ") == 6
    assert found[0]["values"].endswith(", …")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "perceptron", "--max-iter", 3], "the algorithm has no weight α per row"),
        (["--approximate", "nystroem", "--components", 20], "the model has weights of features"),
    ],
)
def test_models_without_alpha_say_so(here, options, said):
    call("fit", "fruit.csv", "--target", "fruit", *options, "--out", "m.mm")
    page = page_of("m.mm", "fruit.csv")
    assert f"Not shown: {said}" in page.text
    assert "The most doubtful rows" in page.headings


def test_reports_escape_what_files_say(here):
    evil = "<script>alert(1)</script>"
    lines = ["a&<b>,c,y"]
    lines += [f"{k},{k % 3},{evil}" for k in range(9)] + [f"{k + 9},{k % 2},b" for k in range(9)]
    (here / "evil <b>.csv").write_text("\n".join(lines) + "\n")
    fit = ["fit", "evil <b>.csv", "--target", "y", "--model", "linear-svc", "--out", "evil.mm"]
    good(call(*fit))
    good(call("report", "evil.mm", "evil <b>.csv", "--out", "evil.html"))
    text = (here / "evil.html").read_text()
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "a&amp;&lt;b&gt;" in text


def test_reports_that_cannot_be(models):
    bad(call("report", "fruit.mm", "nowhere.csv"), "nowhere.csv: no such file")
    bad(
        call("report", "two.mm", "fruit.csv"),
        "must be classes of the model, apple, lemon; got 'banana'",
    )
    pl.read_csv(FRUIT).drop("mass_g").write_csv(models / "less.csv")
    bad(call("report", "fruit.mm", "less.csv"), "less.csv: the columns 'mass_g', on which")
    assert not (models / "report.html").exists()


def test_the_page_fits_phones_and_explains_terms_to_the_keyboard(fruit_page, models, browser):
    for width, scheme in ((390, "light"), (1366, "dark"), (683, "light")):
        page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
        page.goto((models / "r.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        term = page.locator(".term", has_text="balanced accuracy").first
        tip = term.locator(".tip")
        assert not tip.is_visible()
        term.focus()
        assert tip.is_visible()
        box = tip.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert page.evaluate("document.compatMode") == "CSS1Compat"
        page.emulate_media(media="print")
        assert not tip.is_visible()
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        page.close()
