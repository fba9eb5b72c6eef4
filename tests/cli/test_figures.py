"""`plot`, and options of figures that have no effect."""

import pytest
from PIL import Image

from tests.helpers.command_line import bad, call, good, is_picture

# plot ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["boundary", "margins", "convergence", "support"])
def test_plots_of_models(models, kind):
    pair = ["--pair", "apple", "lemon"] if kind == "support" else []
    assert good(call("plot", "two.mm", "two.csv", "--kind", kind, "--out", "a.png"))
    small = is_picture(models / "a.png")
    assert good(call("plot", "fruit.mm", "fruit.csv", "--kind", kind, "--out", "b.png", *pair))
    is_picture(models / "b.png")
    good(call("plot", "two.mm", "two.csv", "--kind", kind, "--out", "c.png", "--dpi", 300))
    assert is_picture(models / "c.png")[0] == pytest.approx(2 * small[0], abs=2)


def test_support_vectors_are_those_of_the_training_rows(models):
    pair = ["--kind", "support", "--pair", "apple", "lemon"]
    done = call("plot", "fruit.mm", "fruit.csv", *pair)
    assert good(done) == "support: support.png\n"
    assert "30 of 150 rows were held out of the fit: left out." in done.err
    rows = (models / "fruit.csv").read_text().splitlines()
    (models / "mixed.csv").write_text("\n".join([rows[0], *rows[:0:-1]]) + "\n")
    for name, n in (("mixed.csv", 150), ("two.csv", 60)):
        said = bad(call("plot", "fruit.mm", name, *pair), f"has {n} rows", "fitted to 120")
        assert "pass the file of the fit, unchanged, or only its training rows" in said
    # Without --test nothing is left out, and nothing is said.
    assert call("plot", "two.mm", "two.csv", "--kind", "support").err == ""


TWO = ["fruit.csv", "--target", "fruit", "--pair", "apple", "lemon"]


@pytest.mark.parametrize("kind", ["separability", "gram", "boundary", "margins", "support"])
def test_plots_of_data(here, kind):
    more = ["--model", "linear-svc"] if kind in ("boundary", "margins") else []
    assert good(call("plot", *TWO, "--kind", kind, *more)) == f"{kind}: {kind}.png\n"
    is_picture(here / f"{kind}.png")


@pytest.mark.parametrize("name", ["perceptron", "relaxation", "svc"])
def test_paths(here, name):
    more = ["--kernel", "linear"] if name == "svc" else []
    good(call("plot", *TWO, "--features", "mass_g", "width_cm", "--kind", "path", "--model", name,
              *more))  # fmt: skip
    is_picture(here / "path.png")


def test_animations(here):
    args = [*TWO, "--features", "mass_g", "width_cm", "--kind", "animation", "--max-iter", 5]
    good(call("plot", *args, "--out", "a.gif"))
    with Image.open(here / "a.gif") as film:
        assert film.n_frames > 1
        size = film.size
    good(call("plot", *args, "--out", "small.gif", "--dpi", 50))
    with Image.open(here / "small.gif") as film:
        assert film.size == tuple(side // 2 for side in size)
    good(call("plot", *args, "--out", "a.html"))
    assert (here / "a.html").read_text().startswith("<!doctype html>")


def test_plots_as_other_files(models):
    good(
        call("plot", "fruit.mm", "fruit.csv", "--features", "mass_g", "width_cm", "--out", "a.svg")
    )
    text = (models / "a.svg").read_text()
    assert "<svg" in text
    good(call("plot", "fruit.mm", "fruit.csv", "--out", "a.pdf"))
    assert (models / "a.pdf").read_bytes().startswith(b"%PDF")


def test_plots_that_cannot_be(models):
    bad(call("plot", "fruit.mm"), "needs data", code=2)
    bad(call("plot", "fruit.mm", "fruit.csv", "--kind", "gram"), "is a model", code=2)
    bad(call("plot", "fruit.mm", "fruit.csv", "--model", "svc"), "is a model.", code=2)
    bad(call("plot", "fruit.csv", "two.csv", "--target", "fruit"), "is data", code=2)
    bad(call("plot", "fruit.csv", "--target", "fruit"), "--pair A B", code=2)
    bad(call("plot", *TWO, "--kind", "path"), "--features A B", code=2)
    bad(call("plot", "fruit.csv", "--target", "fruit", "--pair", "apple", "stone"), "pear", code=2)
    bad(call("plot", "fruit.mm", "fruit.csv", "--features", "mass_g", "colour"), "'colour'")
    bad(
        call("plot", "fruit.mm", "fruit.csv", "--out", "a.xyz"), "the suffix must be one of", code=2
    )
    bad(call("plot", "nowhere.mm", "fruit.csv"), "nowhere.mm", code=2)
    assert not list(models.glob("*.png"))


def test_a_pair_of_a_model_is_drawn_or_refused(models):
    done = call("plot", "fruit.mm", "fruit.csv", "--pair", "apple", "no such class")
    assert done.code != 0


def test_features_of_a_separability_figure(here):
    args = ["plot", *TWO, "--kind", "separability"]
    good(call(*args, "--features", "width_cm", "height_cm", "--out", "two.png"))
    good(call(*args, "--out", "all.png"))
    good(call(*args, "--features", "width_cm", "height_cm", "--out", "two.svg"))
    assert "<!-- height_cm -->" in (here / "two.svg").read_text()  # not "feature 1"
    assert (here / "two.png").read_bytes() != (here / "all.png").read_bytes()


# Options and columns that have no effect ----------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fruit.mm", "fruit.csv", "--C", 10], "--C is for data"),
        (["fruit.mm", "fruit.csv", "--impute"], "--impute is for data"),
        (["fruit.mm", "fruit.csv", "--model", "svc"], "--model is for data"),
        (["fruit.mm", "fruit.csv", "--kind", "margins", "--features", "mass_g", "width_cm"],
         "--features is not for margins"),
        (["fruit.csv", "--target", "fruit", "--kind", "gram", "--C", 3], "--C is for figures of a"),
    ],
)  # fmt: skip
def test_plot_refuses_options_that_change_nothing(models, arguments, said):
    bad(call("plot", *arguments), said, code=2)


def test_more_options_that_change_nothing(models):
    model = ("plot", "fruit.mm", "--kind", "convergence")
    bad(call(*model, "--target", "fruit"), "--target has no effect", code=2)
    bad(call(*model, "--no-header"), "--no-header has no effect", code=2)
    data = ("plot", "fruit.csv", "--target", "fruit")
    bad(call(*data, "--kind", "gram", "--seed", 3), "--seed is for figures", code=2)


def test_nothing_is_trained_for_a_picture_that_cannot_be(here):
    done = call("compare", "fruit.csv", "--target", "fruit", "--picture", "out.xyz")
    bad(done, "out.xyz: the suffix must be one of", code=2)
    for limit in (0, -1):
        done = call("compare", "fruit.csv", "--target", "fruit", "--time-limit", limit)
        bad(done, "--time-limit", code=2)


def test_negative_numbers_of_weights(models):
    bad(call("inspect", "fruit.mm", "--weights", -1), "--weights", code=2)


# Models of LIBSVM ---------------------------------------------------------------------------------


def test_figures_of_models_that_another_program_trained(here, signs):
    good(call("fit", "d.svm", "--no-scale", "--gamma", 0.01, "--C", 5, "--out", "d.mm"))
    good(call("convert", "d.mm", "--to", "libsvm"))
    for kind in ("boundary", "margins"):
        good(call("plot", "d.model", "d.svm", "--kind", kind))
        assert (here / f"{kind}.png").exists()
    for kind in ("convergence", "support"):
        bad(call("plot", "d.model", "d.svm", "--kind", kind), "trained by another program")
    good(call("report", "d.model", "d.svm"))
    page = (here / "report.html").read_text()
    assert page.count("<img") == 2
    assert page.count("Not drawn: ") == page.count("trained by another program, wh") == 2


def test_a_page_of_an_animation_has_no_dots(here):
    args = [*TWO, "--features", "mass_g", "width_cm", "--kind", "animation", "--max-iter", 5]
    bad(call("plot", *args, "--out", "a.html", "--dpi", 50), "--dpi is for pictures", code=2)
    assert not (here / "a.html").exists()
