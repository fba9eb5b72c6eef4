"""What is said before long computations, and tables on narrow terminals."""

import io
import re
import sys

import numpy as np
import pytest

from maxmargin.cli import console, guidance
from maxmargin.estimators.registry import MODELS
from tests.helpers.command_line import call, good, on_terminal


@pytest.fixture
def many(here, monkeypatch):
    """A file of more rows than are thought to be many here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3)).round(3)
    labels = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    rows = [",".join(map(str, row)) + f",{label}" for row, label in zip(X, labels, strict=True)]
    (here / "many.csv").write_text("a,b,c,y\n" + "\n".join(rows) + "\n")
    monkeypatch.setattr(guidance, "MANY_ROWS", 1000)
    monkeypatch.setattr(guidance, "SAMPLES", (100, 200, 500))
    return here


def test_kernel_fits_of_many_rows_are_announced(many, monkeypatch):
    done = call("fit", "many.csv", "--target", "y")
    good(done)
    assert re.search(r"1500 rows with a kernel: the fit will take about \d+ s", done.err)
    assert "samples of 200 and 500 rows took" in done.err
    assert "--approximate" not in done.err  # it is short
    monkeypatch.setattr(guidance, "LONG_SECONDS", 0.0)
    done = call("fit", "many.csv", "--target", "y", "--cv", "3")
    assert "4 fits will take" in done.err
    assert "use --approximate nystroem, which keeps the kernel, or --model linear-svc" in done.err
    assert "--time-limit SECONDS" in done.err
    done = call("fit", "many.csv", "--target", "c", "--model", "svr")
    assert "use --model linear-svr;" in done.err


def test_searches_of_many_rows_are_announced(many):
    done = call("tune", "many.csv", "--target", "y", "--Cs", "1,10", "--gammas", "0.1,1", "--cv", 3)
    good(done)
    assert re.search(r"1500 rows with a kernel: \d+ fits will take about", done.err)


@pytest.mark.parametrize(
    "options",
    [["--model", "linear-svc"], ["--kernel", "linear"], ["--approximate", "nystroem"],
     ["--model", "pocket", "--max-iter", "5"]],
)  # fmt: skip
def test_fits_that_grow_with_the_rows_are_not(many, options):
    done = call("fit", "many.csv", "--target", "y", *options)
    good(done)
    assert "will take" not in done.err


def test_few_rows_are_not_timed(here):
    done = call("fit", "fruit.csv", "--target", "fruit")
    good(done)
    assert "will take" not in done.err


def test_every_kernel_machine_has_another_model_to_name():
    kernels = {v.estimator for v in MODELS.values() if "kernel" in v().get_params()}
    assert kernels == set(guidance.INSTEAD)


@pytest.mark.parametrize(("power", "expected"), [(2.0, 100.0), (0.5, 10.0), (5.0, 1000.0)])
def test_estimates_are_powers_of_the_rows_within_reason(power, expected):
    timed = [(1000, 1.0 / 2.0**power), (2000, 1.0)]
    assert guidance.extrapolated(timed, 20_000) == pytest.approx(expected)


def test_estimates_say_what_a_fit_takes(many):
    from maxmargin import SVC, files

    table = files.read("many.csv", target="y")
    timed = guidance._timed_samples(_encoder(), table, SVC())
    assert [n for n, _ in timed] == [200, 500]
    assert all(seconds > 0 for _, seconds in timed)
    table.y[:] = "no"  # one class: the fit itself says so
    assert guidance._timed_samples(_encoder(), table, SVC()) is None


def _encoder():
    from maxmargin import ColumnEncoder

    return ColumnEncoder()


def test_animations_and_recordings_that_take_long_say_so_before(here, monkeypatch):
    plot = ["plot", "fruit.csv", "--target", "fruit", "--pair", "apple", "lemon", "--features",
            "mass_g", "width_cm", "--kind", "animation", "--out", "p.gif"]  # fmt: skip
    assert "will take" not in call(*plot, "--max-iter", 2).err
    monkeypatch.setattr(guidance, "PATIENCE_SECONDS", 0.0)
    done = call(*plot)
    good(done)
    assert re.search(r"recording 60 rows in up to 1000 passes may take up to [\d.]+ \w+", done.err)
    assert re.search(r"\d+ frames will take about [\d.]+ \w+\.", done.err)
    assert (here / "p.gif").stat().st_size > 1000


def test_progress_of_an_animation_has_its_frames(here):
    import maxmargin as mm

    X, y = mm.datasets.load_six_points(return_X_y=True)
    seen = []
    film = mm.plots.animate(mm.Perceptron(shuffle=False).fit(X, y), X, y)
    film.save(here / "p.gif", progress=lambda k, n: seen.append((k, n)))
    assert seen == [(k, len(film)) for k in range(len(film))]


@pytest.mark.parametrize("width", [80, 120])
def test_names_are_whole_in_tables_of_any_width(monkeypatch, width):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    names = [name for name, model in MODELS.items() if model.targets == "classes"]
    rows = [[name, "16.96 %", "21.05 %", "109.5 ms", "1.1e-13", "-0.06191*", "optimal, separated"]
            for name in names]  # fmt: skip
    columns = ["algorithm", "training error", "test error", "time", "gap", "smallest distance"]
    console.print_table([*columns, "outcome"], rows, left=["outcome"])
    text = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert text.count("separated") == len(names)
    for name in names:
        (line,) = [line for line in lines if name in re.split(r"[\s│]+", line)]
        for cell in rows[0][1:6]:
            assert cell in line


def test_compare_on_a_terminal(here):
    done = on_terminal("compare", "fruit.csv", "--target", "fruit", "--model", "kernel-perceptron",
                       "--model", "linear-svc", cwd=here)  # fmt: skip
    assert done.code == 0
    assert "kernel-perceptron" in done.out


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (90, "90 s"), (600, "10 minutes"), (9000, "2.5 hours"), (1e6, "12 days")],
)
def test_durations(seconds, words):
    assert console.duration(seconds) == words
