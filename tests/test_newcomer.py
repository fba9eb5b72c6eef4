"""More than thirty commands of somebody new, over five awkward files, in order.

What they print, write and refuse is right, and measures are those of scikit-learn.
"""

import json
import shlex

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics

import maxmargin as mm
from tests.helpers.command_line import bad, call, good, is_picture, records
from tests.helpers.report_page import Page


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def type_in(line):
    """Run a line as it would be typed after ``maxmargin``."""
    return call(*shlex.split(line))


def two_clouds(n, seed, apart=1.6):
    """Return n rows of two features and their classes, 0 and 1, in a random order."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % 2)
    return rng.normal(size=(n, 2)) + apart * truth[:, np.newaxis], truth


def summary_of(text):
    """Return the lines of a summary by the words that they begin with."""
    pairs = [line.split("  ", 1) for line in text.splitlines() if "  " in line]
    return {name.strip(): rest.strip() for name, rest in pairs}


def assert_measures(found, true, labels, scores=None):
    """Compare the measures of the command line with those of scikit-learn."""
    assert found["rows"] == len(true)
    assert found["error"] == pytest.approx(1 - metrics.accuracy_score(true, labels))
    expected = metrics.balanced_accuracy_score(true, labels)
    assert found["balanced_accuracy"] == pytest.approx(expected)
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(true, labels, average="macro"))
    each = metrics.precision_recall_fscore_support(true, labels, labels=found["classes"])
    rows = [[c[k] for k in ("precision", "recall", "f1", "support")]
            for c in found["per_class"].values()]  # fmt: skip
    assert_allclose(rows, np.transpose(each))
    assert found["confusion"] == metrics.confusion_matrix(true, labels).tolist()
    if scores is not None:
        positive = np.asarray(true) == found["classes"][1]
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(positive, scores))


# 1. A German spreadsheet saved as CSV: Latin-1, semicolons, decimal commas ------------------------


@pytest.fixture
def messwerte(here):
    X, truth = two_clouds(120, 0)
    lines = ["Größe;Gewicht;Sorte"]
    for (a, b), k in zip(1000 * X + 5000, truth, strict=True):
        lines.append(f"{a:.1f};{b:.2f};{('Äpfel', 'Birnen')[k]}".replace(".", ","))
    (here / "messwerte.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    return here


def test_a_german_file(messwerte):
    said = bad(type_in("fit messwerte.csv --target Sorte"), "--separator ';'")
    assert len(said) < 200
    said = bad(type_in("fit messwerte.csv --target Sorte --separator ;"), "'Größe'", "--decimal ,")
    assert len(said) < 200

    done = type_in("fit messwerte.csv --target Sorte --separator ; --decimal , --test 0.25 --cv 4 "
                   "--metrics-out fit.json --save-config sorten.toml --out sorten.mm")  # fmt: skip
    shown = summary_of(good(done))
    assert done.err == "note: messwerte.csv: not UTF-8, read as Latin-1: " \
                       "pass --encoding if that is wrong.\n"  # fmt: skip
    assert shown["data"] == "120 rows, 2 columns → 2 features; 90 training rows"
    assert shown["classes"] == "Birnen (45), Äpfel (45)"
    assert shown["baseline"].startswith("50.00 %, balanced accuracy 50.00 % (always ")
    assert shown["certificate"].startswith("optimal to a relative gap of ")
    fit = json.loads((messwerte / "fit.json").read_text())
    assert f"{fit['test']['error']:.2%}".replace("%", " %") in shown["test error"]
    assert f"{fit['cv']['error']:.2%}".replace("%", " %") in shown["cross-validation"]
    assert "standard errors of 4 folds" in shown["cross-validation"]
    assert np.mean(fit["cv"]["by_fold"]["auc"]) == pytest.approx(fit["cv"]["auc"])
    deviation = np.std(fit["cv"]["by_fold"]["error"], ddof=1) / 2
    assert fit["cv"]["standard_errors"]["error"] == pytest.approx(deviation)

    # The same run from the saved options; what the command line says comes first.
    again = summary_of(good(type_in("fit --config sorten.toml --out again.mm --quiet")))
    assert not again
    assert (
        mm.load("again.mm")[-1].dual_coef_.tolist() == mm.load("sorten.mm")[-1].dual_coef_.tolist()
    )

    out = good(type_in("evaluate sorten.mm messwerte.csv --metrics-out seen.json"))
    assert out.index("held-out rows") < out.index("training rows")
    seen = json.loads((messwerte / "seen.json").read_text())
    assert seen["held_out"]["confusion"] == fit["test"]["confusion"]
    assert (seen["held_out"]["rows"], seen["training"]["rows"]) == (30, 90)

    good(type_in("predict sorten.mm messwerte.csv --keep Sorte,Größe --out sorten.parquet"))
    table = pl.read_parquet("sorten.parquet")
    assert table.columns == ["Sorte", "Größe", "label", "score_Äpfel"]
    assert_measures(seen, table["Sorte"], table["label"], table["score_Äpfel"])

    good(type_in("report sorten.mm messwerte.csv --out sorten.html"))
    page = Page((messwerte / "sorten.html").read_text())
    assert page.headings.index("Held-out rows") < page.headings.index("Training rows")
    assert "Äpfel" in page.text


# 2. A sheet of prices, with an empty column of remarks and a code for missing values --------------


@pytest.fixture
def prices(here):
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    rng = np.random.default_rng(1)
    area, rooms = rng.uniform(30, 150, 80).round(1), rng.integers(1, 6, 80)
    price = (3.2 * area + 20 * rooms + rng.normal(0, 12, 80)).round(1)
    heated = ["n/a" if k % 20 == 7 else ("gas", "oil", "wood")[k % 3] for k in range(80)]
    columns = {"area": area, "rooms": rooms, "heating": heated, "price": price}
    pl.DataFrame(columns).write_excel("prices.xlsx", worksheet="flats")
    return here


def test_a_sheet_of_prices(prices):
    said = bad(type_in("fit prices.xlsx --target price --sheet houses"), "'houses'", "flats")
    assert len(said) < 200
    reading = "--sheet flats --missing n/a"
    bad(type_in(f"fit prices.xlsx --target price --model svr {reading}"),
        "4 missing values (4 in heating)", "--impute")  # fmt: skip

    options = f"--model svr --C 1000 --epsilon 5 {reading} --impute --test 0.25 --cv 4"
    fit = type_in(f"fit prices.xlsx --target price {options} --out prices.mm")
    shown = summary_of(good(fit))
    assert shown["categories"] == "heating (3)"
    assert "standard errors of 4 folds" in shown["cross-validation"]

    good(type_in("predict prices.mm prices.xlsx --keep price --out guesses.arrow"))
    guesses = pl.read_ipc("guesses.arrow")
    truth, guess = guesses["price"].to_numpy(), guesses["prediction"].to_numpy()
    (seen,) = records(good(type_in("evaluate prices.mm prices.xlsx --json")))
    assert seen["r2"] == pytest.approx(metrics.r2_score(truth, guess))
    assert seen["mae"] == pytest.approx(metrics.mean_absolute_error(truth, guess))
    assert seen["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, guess))
    assert shown["test"].startswith(f"R² {seen['held_out']['r2']:.4g}, MAE ")
    assert seen["held_out"]["r2"] > 0.9 > 0 >= seen["held_out"]["baseline"]["r2"]

    out = good(type_in("verify prices.mm prices.xlsx"))
    assert "60 rows: the training data, by their fingerprint" in out
    assert "verified: what the model claims was found again" in out


# 3. What pandas writes: an index, an id, rows sorted by class -------------------------------------


@pytest.fixture
def export(here):
    X, truth = two_clouds(120, 2)
    order = np.argsort(truth, kind="stable")
    columns = {"": range(120), "Unnamed: 0": range(7, 127), "id": [f"P{k}" for k in range(120)],
               "x": X[order, 0], "y": X[order, 1]}  # fmt: skip
    table = pl.DataFrame(columns).with_columns(
        kind=pl.Series(np.array(["neg", "pos"])[truth[order]])
    )
    table.write_csv("export.csv")
    table.drop("", "Unnamed: 0", "y").write_csv("narrow.csv")
    return here


def test_an_export_with_indexes(export):
    bad(type_in("fit export.csv --target kind --drop kinds"), "'kinds'")
    done = type_in("compare export.csv --target kind --model svc --model linear-svc "
                   "--drop id --test 0.25 --metrics-out models.json")  # fmt: skip
    assert "linear-svc" in good(done)
    assert "columns Unnamed: 0, (no name) are indexes, and left out" in done.err
    rows = json.loads((export / "models.json").read_text())["rows"]
    assert [row["algorithm"] for row in rows] == ["svc", "linear-svc"]
    assert all(0 < row["test_error"] < 0.4 for row in rows)  # the order of the rows does not leak

    # Kept on purpose, an index tells the class.
    leaked = type_in("fit export.csv --target kind --drop id --keep-index --model linear-svc "
                     "--C 1000 --test 0.25 --json")  # fmt: skip
    assert "note" not in leaked.err
    (leak,) = records(good(leaked))
    assert leak["test"]["error"] < min(row["test_error"] for row in rows)

    done = type_in("fit export.csv --target kind --drop id --test 0.25 --class-weight pos=5,neg=1 "
                   "--set probability=true --out kinds.mm")  # fmt: skip
    assert "class_weight={'pos': 5.0, 'neg': 1.0}" in summary_of(good(done))["parameters"]
    plain = pl.read_csv("export.csv").select("x", "y")
    good(type_in("predict kinds.mm export.csv --keep id,kind --proba --out kinds.tsv"))
    table = pl.read_csv("kinds.tsv", separator="\t")
    assert table.columns == ["id", "kind", "label", "score_pos", "probability_neg",
                             "probability_pos"]  # fmt: skip
    model = mm.load("kinds.mm")
    assert_allclose(table.select("probability_neg", "probability_pos").to_numpy(),
                    model.predict_proba(plain))  # fmt: skip
    (seen,) = records(good(type_in("evaluate kinds.mm export.csv --json")))
    assert_measures(seen, table["kind"], table["label"], table["score_pos"])
    chances = table.select("probability_neg", "probability_pos").to_numpy()
    expected = metrics.log_loss(table["kind"], chances, labels=["neg", "pos"])
    assert seen["log_loss"] == pytest.approx(expected)
    assert seen["per_class"]["pos"]["recall"] > seen["per_class"]["neg"]["recall"]

    assert "verified" in good(type_in("verify kinds.mm export.csv"))
    pl.read_csv("export.csv").with_columns(x=pl.col("x") + 0.5).write_csv("moved.csv")
    done = type_in("verify kinds.mm moved.csv")
    assert done.code == 3
    assert "not the training data" in done.out
    said = bad(type_in("evaluate kinds.mm narrow.csv"), "'y'", "missing")
    assert len(said) < 200


# 4. A file of numbers without a header ------------------------------------------------------------


@pytest.fixture
def bare(here):
    X, _ = two_clouds(200, 3, apart=2.0)
    inside = (X[:, 0] - 1) ** 2 + (X[:, 1] - 1) ** 2 < 1.6
    rows = [f"{a:.4f},{b:.4f},{('out', 'in')[int(k)]}" for (a, b), k in zip(X, inside, strict=True)]
    (here / "bare.csv").write_text("\n".join(rows) + "\n")
    (here / "new.csv").write_text("1.0,1.0\n4.0,4.0\n0.9,1.1\n")
    return here


def test_a_file_without_a_header(bare):
    said = bad(type_in("fit bare.csv --target kind"), "'kind'", "column_0, column_1, column_2")
    assert len(said) < 200
    done = type_in("tune bare.csv --target -1 --Cs 1.0,10.0 --gammas 0.5,2.0 --cv 3 --test 0.2 "
                   "--plot search.png --out bare.mm --metrics-out search.json")  # fmt: skip
    assert summary_of(good(done))["data"] == "200 rows, 2 columns → 2 features; 160 training rows"
    assert "pass --header yes if it names the columns" in done.err
    is_picture("search.png")
    found = json.loads((bare / "search.json").read_text())
    assert found["test"]["error"] < 0.15 < found["test"]["baseline"]["error"]

    # The rows of a model without names of columns have none either, and the first one counts.
    table = pl.read_csv(good(type_in("predict bare.mm new.csv")).encode())
    assert table["label"].to_list() == ["in", "out", "in"]
    (seen,) = records(good(type_in("evaluate bare.mm bare.csv --json")))
    assert seen["held_out"]["confusion"] == found["test"]["confusion"]
    for kind in ("boundary", "margins"):
        good(type_in(f"plot bare.mm bare.csv --kind {kind} --out {kind}.png"))
        is_picture(f"{kind}.png")


# 5. A table of everything: marks of missing values, dates, free text ------------------------------


@pytest.fixture
def visits(here):
    rng = np.random.default_rng(4)
    words = (["quick", "kind", "clean"], ["slow", "rude", "dirty"])
    lines = ["day,minutes,ward,remark,again"]
    for k in range(120):
        minutes = (
            ("-", "n/a")[k % 2] if k % 15 == 4 else f"{10 + 20 * (k % 2) + 4 * rng.normal():.1f}"
        )
        remark = " ".join([*rng.choice(words[k % 2], 2), *rng.choice(["the", "nurse", "room"], 4)])
        ward = "#N/A" if k == 50 else "ABC"[k % 3]
        day = f"{1 + k % 28:02}/{1 + k % 12:02}/2024"
        lines.append(f'{day},{minutes},{ward},"{remark}, {k}",{("yes", "no")[k % 2]}')
    (here / "visits.csv").write_text("\n".join(lines) + "\n")
    return here


def test_a_table_of_everything(visits):
    said = bad(type_in("fit visits.csv --target again"), "'day' holds dates", "--dates parts")
    assert len(said) < 200
    dates = "--dates parts --date-format %d/%m/%Y"
    said = bad(type_in(f"fit visits.csv --target again {dates}"), "line 6", "'-'", "--missing")
    assert len(said) < 200
    marks = f"--missing n/a,-,#N/A {dates} --text remark"
    assert "--impute" in bad(type_in(f"fit visits.csv --target again {marks}"), "missing values (")
    done = type_in(f"fit visits.csv --target again {marks} --impute --C 100 --approximate nystroem "
                   "--components 40 --test 0.25 --out visits.mm")  # fmt: skip
    shown = summary_of(good(done))
    assert shown["text"].startswith("remark (")
    assert shown["approximation"].startswith("Nyström, 40 landmarks → 40 features; certified is")
    good(type_in("predict visits.mm visits.csv --keep all --no-scores --out visits.tsv"))
    table = pl.read_csv("visits.tsv", separator="\t")
    assert table.columns == ["day", "minutes", "ward", "remark", "again", "label"]
    (seen,) = records(good(type_in("evaluate visits.mm visits.csv --json")))
    assert_measures(seen, table["again"], table["label"])
    assert seen["held_out"]["error"] < 0.2 < seen["baseline"]["error"]
    good(type_in("report visits.mm visits.csv --out visits.html"))
    assert "approximat" in Page((visits / "visits.html").read_text()).text
