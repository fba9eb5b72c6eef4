"""Files that people have, from the command line: what is read, noted, remembered and refused."""

import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import maxmargin as mm
from maxmargin.cli import main
from maxmargin.cli.options import FORMATS
from maxmargin.files import reading
from tests.helpers.command_line import FRUIT, bad, call, good, records, table
from tests.helpers.report_page import Page

FRAME = pl.read_csv(FRUIT)
READING = ["--header", "--encoding", "--decimal", "--thousands", "--missing", "--sheet"]
CHOOSING = ["--keep-index", "--dates", "--date-format", "--text"]
OF_DATA = ("fit", "tune", "compare", "separable", "plot")
OF_MODELS = ("predict", "evaluate", "report")


@pytest.fixture
def files(here):
    """The fruit, in the forms that people have."""
    lines = FRUIT.read_text().splitlines()
    FRAME.write_csv("bare.data", include_header=False)
    FRAME.with_row_index("Unnamed: 0").write_csv("index.csv")
    FRAME.with_row_index("__index_level_0__").write_parquet("index.parquet")
    FRAME.with_row_index("id").write_csv("id.csv")
    FRAME.write_excel("fruit.xlsx")
    swapped = [line.replace(",", ";").replace(".", ",").replace("apple", "Äpfel") for line in lines]
    (here / "latin.csv").write_bytes("\n".join(swapped).encode("latin-1"))
    gaps = [lines[0], "n/a" + lines[1][lines[1].index(",") :], "#N/A,-,5," + "apple", *lines[3:]]
    (here / "gaps.csv").write_text("\n".join(gaps))
    days = pl.date_range(pl.date(2023, 1, 1), pl.date(2023, 5, 30), eager=True)
    FRAME.with_columns(when=days.dt.strftime("%d/%m/%Y")).write_csv("dated.csv")
    return here


def fitted(*args):
    done = call("fit", *args, "--model", "linear-svc", "--json", "--out", "m.mm")
    return json.loads(good(done)), done.err


def error_of(file, *options):
    return records(good(call("evaluate", "m.mm", file, *options, "--json")))[0]["error"]


def test_formats_are_those_of_the_reader():
    assert FORMATS == reading.FORMATS


# Silent traps -------------------------------------------------------------------------------------


def test_a_file_without_a_header(files):
    record, err = fitted("bare.data", "--format", "csv", "--target", "-1")
    assert record["data"]["rows"] == 150
    assert err.startswith("note: bare.data: the first line, ")
    assert "pass --header yes" in err
    assert record["training_error"] == error_of("bare.data", "--format", "csv")
    out = good(call("predict", "m.mm", "bare.data", "--format", "csv"))
    assert len(table(out)) == 150
    for command, out in (("report", "o.html"), ("plot", "o.png")):
        good(call(command, "m.mm", "bare.data", "--format", "csv", "--out", out))
    record, err = fitted("bare.data", "--format", "csv", "--target", "3", "--header", "no")
    assert record["data"]["rows"] == 150
    assert "note" not in err
    record, _ = fitted("bare.data", "--format", "csv", "--target", "-1", "--header", "yes")
    assert record["data"]["rows"] == 149
    bad(call("fit", "bare.data", "--header", "yes", "--no-header"), "not both", code=2)


def test_a_model_remembers_that_there_is_no_header(files):
    FRAME.select(pl.exclude("mass_g")).with_columns(c=pl.lit("red")).select("c", "fruit").write_csv(
        "words.csv", include_header=False
    )
    fitted("words.csv", "--target", "1", "--header", "no")
    assert records(good(call("evaluate", "m.mm", "words.csv", "--json")))[0]["rows"] == 150


@pytest.mark.parametrize("file", ["index.csv", "index.parquet"])
def test_an_index_is_left_out(files, file):
    record, err = fitted(file, "--target", "fruit")
    plain, _ = fitted("fruit.csv", "--target", "fruit")
    assert record["data"]["columns"] == 3
    assert record["training_error"] == plain["training_error"]
    assert err.count("note: ") == 1
    assert "is an index, and left out: pass --keep-index" in err
    record, err = fitted(file, "--target", "fruit", "--keep-index")
    assert record["data"]["columns"] == 4
    assert not err


@pytest.mark.parametrize("command", ["compare", "tune", "separable"])
def test_an_index_is_left_out_everywhere(files, command):
    more = {"compare": ["--model", "linear-svc"], "separable": ["--pair", "apple", "lemon"],
            "tune": ["--model", "linear-svc", "--Cs", "1.0,2.0", "--cv", "2"]}[command]  # fmt: skip
    done = call(command, "index.csv", "--target", "fruit", *more)
    good(done)
    assert "column Unnamed: 0 is an index" in done.err


def test_a_likely_index_is_kept_with_a_warning(files):
    record, err = fitted("id.csv", "--target", "fruit")
    assert record["data"]["columns"] == 4
    assert "warning: column 'id' has a different value in every row" in err
    assert "--drop id" in err
    assert "--keep-index" in err
    for option in (["--drop", "id"], ["--keep-index"]):
        assert not fitted("id.csv", "--target", "fruit", *option)[1]


# Rows that were held out --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("fruit.csv", ["--target", "fruit"]),
        ("fruit.csv", ["--target", "fruit", "--float32"]),
        ("fruit.csv", ["--target", "mass_g", "--model", "svr"]),
        ("fruit.csv", ["--model", "one-class", "--drop", "fruit"]),
        ("twice.csv", ["--target", "fruit"]),
        ("d.svm", []),
        ("d.npz", []),
    ],
)
def test_held_out_rows_are_shown_apart(files, signs, file, options):
    pl.concat([FRAME, FRAME.head(40)]).write_csv("twice.csv")
    np.savez("d.npz", X=signs[0], y=signs[1])
    fit = records(good(call("fit", file, *options, "--test", 0.3, "--json", "--out", "t.mm")))[0]
    assert "held_out" not in fit
    found = records(good(call("evaluate", "t.mm", file, "--json")))[0]
    (measure,) = {"error", "rmse", "outlier_share"} & set(found)
    assert found["held_out"]["rows"] == fit["test"]["rows"]
    assert found["training"]["rows"] == fit["training_rows"]
    assert found["held_out"][measure] == pytest.approx(fit["test"][measure])
    assert found["training"][measure] == pytest.approx(fit["training"][measure])
    out = good(call("evaluate", "t.mm", file))
    assert out.index(f"t.mm on {file}: held-out rows") < out.index(f"t.mm on {file}: training rows")
    good(call("report", "t.mm", file, "--out", "r.html"))
    page = Page((files / "r.html").read_text())
    parts = [name for name in page.headings if name in ("Held-out rows", "Training rows")]
    assert parts == ["Held-out rows", "Training rows"]
    # The rows of the fit are found, in its order: the table of the support vectors checks it.
    assert "Not drawn: y[" not in page.text
    assert re.search(rf"Of {fit['training_rows']} training rows, \d+ have a weight", page.text)


def test_rows_of_other_files(models):
    lines = FRUIT.read_text().splitlines()
    (models / "some.csv").write_text("\n".join([lines[0], "1,2,3,apple", *lines[1:100]]))
    out = good(call("evaluate", "fruit.mm", "some.csv"))
    assert "held-out rows" in out
    assert "other rows, which may be training rows" in out
    (models / "new.csv").write_text("\n".join([lines[0], "1,2,3,apple", "4,5,6,lemon"]))
    out = good(call("evaluate", "fruit.mm", "new.csv"))
    assert "held-out" not in out
    good(call("report", "fruit.mm", "new.csv", "--out", "r.html"))
    page = Page((models / "r.html").read_text())
    assert "Held-out rows" not in page.headings
    assert "Whether the model was fitted to some of these rows is not known." in page.text
    assert "Not shown: the rows that the model was fitted to were not found" in page.text


def test_hashes_are_in_the_file_and_not_printed(models):
    about = mm.persistence.about("fruit.mm")
    assert about["held_out"]["rows"] == 30
    shown = records(good(call("inspect", "fruit.mm", "--json")))[0]["about"]["held_out"]
    assert "hashes" not in shown
    assert shown["rows"] == 30


# Files people have --------------------------------------------------------------------------------


def test_a_sheet(files):
    record, err = fitted("fruit.xlsx", "--target", "fruit")
    assert not err
    assert record["training_error"] == error_of("fruit.csv") == error_of("fruit.xlsx")
    bad(call("fit", "fruit.xlsx", "--target", "fruit", "--sheet", "two"), "there is no sheet 'two'")


def test_latin_semicolons(files):
    options = ["--separator", ";", "--decimal", ","]
    record, err = fitted("latin.csv", "--target", "fruit", *options)
    assert "Äpfel" in record["data"]["classes"]
    assert err == "note: latin.csv: not UTF-8, read as Latin-1: pass --encoding if that is wrong.\n"
    # The model remembers the separator and the decimal mark.
    assert error_of("latin.csv") == record["training_error"]
    done = call("predict", "m.mm", "latin.csv")
    assert "Äpfel" in good(done)
    _, err = fitted("latin.csv", "--target", "fruit", *options, "--encoding", "latin-1")
    assert not err
    message = bad(
        call("fit", "latin.csv", "--target", "fruit", *options[:2], "--encoding", "latin-1")
    )
    assert "--decimal ," in message
    # Options override what is remembered.
    good(call("predict", "m.mm", "fruit.csv", "--separator", ",", "--decimal", "."))


def test_marks_of_missing_values(files):
    message = bad(call("fit", "gaps.csv", "--target", "fruit"))
    assert "line 2: 'n/a' is not a number" in message
    assert "--missing" in message
    marks = ["--missing", "n/a,-,#N/A"]
    message = bad(call("fit", "gaps.csv", "--target", "fruit", *marks))
    assert "3 missing values (2 in mass_g, 1 in width_cm)" in message
    record, _ = fitted("gaps.csv", "--target", "fruit", *marks, "--impute")
    assert error_of("gaps.csv") == record["training_error"]


def test_thousands(here):
    rows = [f"{k}.{k:03d},5;{'ab'[k % 2]}" for k in range(1, 20)]
    (here / "t.csv").write_text("n;y\n" + "\n".join(rows))
    marks = ["--separator", ";", "--decimal", ",", "--thousands", "."]
    record, _ = fitted("t.csv", "--target", "y", *marks)
    assert mm.load("m.mm")[0].mean_[0] == np.mean([1001 * k + 0.5 for k in range(1, 20)])
    assert error_of("t.csv") == record["training_error"]


@pytest.mark.parametrize("how", ["parts", "numbers"])
def test_dates(files, how):
    assert "--dates parts or --dates numbers" in bad(call("fit", "dated.csv", "--target", "fruit"))
    record, _ = fitted("dated.csv", "--target", "fruit", "--dates", how)
    assert record["data"]["columns"] == 3 + {"parts": 4, "numbers": 1}[how]
    assert error_of("dated.csv") == record["training_error"]
    good(call("report", "m.mm", "dated.csv", "--out", "r.html"))
    good(call("plot", "m.mm", "dated.csv", "--out", "p.png"))
    assert "no column holds dates" in bad(
        call("fit", "fruit.csv", "--target", "fruit", "--dates", how)
    )
    said = "--date-format has no effect without --dates"
    bad(call("fit", "dated.csv", "--target", "fruit", "--date-format", "%Y"), said, code=2)


PLAIN = """
import sys

class NotInstalled:
    names = ("fastexcel", "arff", "pandas", "pyarrow", "dask", "bokeh", "onnx", "torch")

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NotInstalled())
from maxmargin.cli import main
main(["fit", sys.argv[1], "--target", "fruit", "--model", "linear-svc"])
"""


def test_plain_files_need_no_extra(here):
    FRAME.write_csv("fruit.tsv", separator="\t")
    FRAME.write_parquet("fruit.parquet")
    FRAME.write_ipc("fruit.feather")
    for name in ("fruit.csv", "fruit.tsv", "fruit.parquet", "fruit.feather"):
        done = subprocess.run([sys.executable, "-c", PLAIN, name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "150 rows, 3 columns" in done.stdout


# Text ---------------------------------------------------------------------------------------------


@pytest.fixture
def reviews(here):
    """Reviews whose words tell the class, one of them without words."""
    rng = np.random.default_rng(0)
    words = {"pos": ["good", "sweet", "fresh"], "neg": ["bad", "sour", "brown"]}
    lines = ["review,stars,y"]
    for k in range(80):
        label = ("pos", "neg")[k % 2]
        said = [*rng.choice(words[label], 2), *rng.choice(["fruit", "shop", "the"], 5)]
        lines.append(f'"{" ".join(said) if k else ""}, {k}th",{rng.integers(1, 6)},{label}')
    (here / "reviews.csv").write_text("\n".join(lines))
    return here


def test_free_text(reviews):
    assert "encode free text by TextEncoder (--text)" in bad(
        call("fit", "reviews.csv", "--target", "y")
    )
    done = call(
        "fit", "reviews.csv", "--target", "y", "--text", "review", "--test", 0.25, "--out", "m.mm"
    )
    assert "text             review (" in good(done)
    found = records(good(call("evaluate", "m.mm", "reviews.csv", "--json")))[0]
    assert found["held_out"]["error"] < 0.1
    assert len(table(good(call("predict", "m.mm", "reviews.csv")))) == 80
    good(call("report", "m.mm", "reviews.csv", "--out", "r.html"))
    good(call("plot", "m.mm", "reviews.csv", "--kind", "margins", "--out", "p.png"))
    assert "columns of text as tf-idf" in good(call("inspect", "m.mm"))
    data = ["reviews.csv", "--target", "y", "--text", "review"]
    assert "linear-svc" in good(call("compare", *data, "--model", "svc", "--model", "linear-svc"))
    good(call("tune", "reviews.csv", "--target", "y", "--text", "review", "--Cs", "1.0,2.0",
              "--gammas", "scale", "--cv", "2"))  # fmt: skip
    good(call("separable", "reviews.csv", "--target", "y", "--text", "review"))
    assert "cannot be exported" in bad(call("convert", "m.mm", "--to", "onnx", "--out", "m.onnx"))


def test_text_that_is_wrong(reviews):
    args = ["fit", "reviews.csv", "--target", "y"]
    bad(call(*args, "--text", "y"), "the column is dropped, or the target", code=2)
    bad(call(*args, "--text", "review", "--words", "review"), "either --text or --words", code=2)
    bad(call(*args, "--text", "0"), "--text must be the name of a column", code=2)
    assert "there is no text column 'revue'" in bad(call(*args, "--text", "revue"))


# Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [*OF_DATA, *OF_MODELS])
def test_help_has_an_example_of_every_option(command):
    text = good(call(command, "--help"))
    examples = [line for line in text.splitlines() if line.strip().startswith("maxmargin ")]
    for option in READING + (CHOOSING if command in OF_DATA else []):
        assert option in text
        assert any(f"{option} " in line or line.endswith(option) for line in examples), option


@pytest.mark.parametrize("command", [*OF_DATA, *OF_MODELS])
def test_examples_of_the_help_are_options_of_the_command(command):
    known = {name for param in main.commands[command].params for name in param.opts}
    text = good(call(command, "--help"))
    for line in text.splitlines():
        if line.strip().startswith(f"maxmargin {command} "):
            assert {word for word in line.split() if word.startswith("--")} <= known
