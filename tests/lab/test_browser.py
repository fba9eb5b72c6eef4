"""The lab in a real browser: drawing, watching, reading, downloads and limits."""

import re

import numpy as np
import pytest

import maxmargin as mm
from tests.helpers.lab_page import (
    CHROMIUM,
    GOOD,
    SIX,
    csv_of,
    forged,
    packed,
)

pytest.importorskip("bokeh", reason="bokeh is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium or Chrome is installed", allow_module_level=True)

MARKUP = "<img src=x onerror=alert(1)>"


# Drawing ------------------------------------------------------------------------------------------


def test_six_points_drawn_by_clicks_are_separated_and_proved(lab):
    lab.draw_six()
    X, codes = lab.points()
    assert codes == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(X, np.vstack(SIX), atol=0.05)

    lab.algorithm("Perceptron")
    assert "0 of 6 points misclassified" in lab.proof()
    assert lab.page.get_by_text("0 of 6 points misclassified").is_visible()

    lab.algorithm("Support vector machine")
    lab.act(lambda: lab.slide("C-A", "End"))
    lab.page.get_by_text("C = ∞ (hard margin)").wait_for()
    X, codes = lab.points()
    model = mm.SVC(C=np.inf, kernel="linear", random_state=0).fit(X, np.array(["A", "B"])[codes])
    assert f"primal {model.certificate_.primal:.6g}" in lab.proof()
    proof = lab.page.get_by_text(f"primal {model.certificate_.primal:.6g}").first
    assert not proof.is_visible()
    lab.page.get_by_text("proof", exact=True).focus()
    lab.page.keyboard.press("Enter")
    proof.wait_for()
    lab.act(lambda: lab.slide("C-A", "ArrowLeft"))
    lab.act(lambda: lab.slide("C-A", "End"))
    assert proof.is_visible()  # unfolded, with every answer
    lab.page.get_by_text("proof", exact=True).focus()
    lab.page.keyboard.press("Enter")
    lab.until("() => !model('unfolded-A').data.open[0]")
    assert f"{len(model.support_)} support vectors" in lab.proof()


@pytest.mark.slow
def test_the_table_shows_what_the_machine_says_and_selects_points(lab):
    lab.draw_six()
    lab.tab("points")
    lab.page.locator(".slick-row").nth(5).wait_for()
    X, codes = lab.points()
    y = np.array(["A", "B"])[codes]
    model = mm.SVC(C=1.0, kernel="linear", random_state=0).fit(X, y)
    table = mm.diagnostics.support_table(model, X, y)
    shown = lab.table()
    assert [row[0] for row in shown] == ["1", "2", "3", "4", "5", "6"]
    assert [row[1] for row in shown] == y.tolist()
    order = np.argsort(table.index)
    for column, name in ((2, "alpha"), (3, "margin"), (4, "slack")):
        np.testing.assert_allclose(
            [float(row[column]) for row in shown], getattr(table, name)[order], atol=1e-3
        )
    assert [row[5] for row in shown] == np.asarray(table.state)[order].tolist()

    # The same rows hold other numbers now, and are drawn anew.
    lab.algorithm("Perceptron")
    assert [float(row[3]) for row in lab.table()] == pytest.approx(lab.data("rows")["margin"])
    assert {row[2] for row in lab.table()} == {"-"}

    lab.page.locator(".slick-row").nth(3).locator(".slick-cell").first.click()
    lab.until("() => model('points').selected.indices.join() == '3'")
    lab.click(*X[1])
    lab.until("() => model('rows').selected.indices.join() == '1'")
    lab.page.locator(".slick-row").nth(1).locator(".slick-cell.selected").first.wait_for()


@pytest.mark.slow
def test_points_are_dragged_deleted_and_taken_back(lab):
    lab.press("clear")
    lab.sample("AND")
    before, codes = lab.points()
    page = lab.page
    answers, lines = lab.model("moved", "tags[0]"), lab.data("planes-A")
    end = lab.place(1.3, 0.8)
    page.mouse.move(*lab.place(*before[3]))
    page.mouse.down()
    page.mouse.move(*end, steps=4)  # at once: a button that is held for long is no drag
    lab.until("(n) => model('moved').tags[0] > n", answers)
    lab.until("(old) => `${model('planes-A').data.xs}` != `${old}`", lines["xs"])
    lab.act(page.mouse.up)
    after, _ = lab.points()
    np.testing.assert_allclose(after[3], (1.3, 0.8), atol=0.03)
    np.testing.assert_array_equal(after[:3], before[:3])
    lab.press("undo")
    np.testing.assert_array_equal(lab.points()[0], before)

    lab.click(*before[2])
    lab.until("() => model('points').selected.indices.join() == '2'")
    lab.act(lambda: page.keyboard.press("Backspace"))
    np.testing.assert_array_equal(lab.points()[0], np.delete(before, 2, axis=0))
    assert "3 points" in lab.note()
    lab.press("undo")
    assert lab.points()[1] == codes
    lab.press("undo")  # of choosing the sample
    assert lab.points()[1] == []


def test_points_are_put_and_deleted_by_the_keyboard(lab):
    lab.button("-1").click()
    lab.tab("points")
    keyboard = lab.page.keyboard
    lab.page.get_by_label("x", exact=True).focus()
    keyboard.press("Control+A")
    keyboard.type("2.5")
    keyboard.press("Tab")
    keyboard.type("-4")
    keyboard.press("Tab")
    lab.act(lambda: keyboard.press("Enter"))  # add
    X, codes = lab.points()
    assert X[6].tolist() == [2.5, -4.0]
    assert codes[6] == 0
    lab.page.get_by_label("point", exact=True).focus()
    keyboard.press("Control+A")
    keyboard.type("2")
    keyboard.press("Tab")
    lab.until("() => model('rows').selected.indices.join() == '1'")
    lab.settle()
    lab.button("delete").focus()
    lab.act(lambda: keyboard.press("Enter"))
    np.testing.assert_array_equal(lab.points()[0], np.delete(X, 1, axis=0))


@pytest.mark.slow
def test_no_points_are_no_error(lab):
    lab.press("clear")
    assert "two classes" in lab.proof()
    assert lab.title() == "no answer"
    lab.click(1.0, 1.0)
    lab.until("() => model('points').data.x.length == 1")
    assert "two classes" in lab.proof()


# Watching -----------------------------------------------------------------------------------------


def test_steps_are_run_paused_scrubbed_and_begun_anew(lab):
    lab.sample("moons")
    lab.algorithm("Perceptron")
    end = lab.model("scrubber", "end")
    assert end > 40
    lab.button("|◀").click()
    lab.until("() => model('scene-A').title.text.startsWith('step 0 of')")
    picture = lab.page.locator(".bk-Figure").first
    first = picture.screenshot()
    lab.button("step ▶").click()
    lab.until("() => model('scene-A').title.text.startsWith('step 1 of')")
    lab.button("step ▶").click()
    lab.until("() => model('scene-A').title.text.startsWith('step 2 of')")
    lab.settle()
    assert picture.screenshot() != first
    lab.button("◀ step").click()
    lab.until("() => model('scene-A').title.text.startsWith('step 1 of')")

    lab.button("|◀").click()
    lab.button("▶ run").click()
    lab.until("() => model('run').label == '⏸ pause' && model('scrubber').value >= 3")
    lab.button("⏸ pause").click()
    lab.until("() => model('run').label == '▶ run'")
    lab.settle()
    stood = lab.model("scrubber", "value")
    assert 3 <= stood < end
    lab.page.wait_for_timeout(500)
    assert lab.model("scrubber", "value") == stood

    lab.slide("scrubber", "Home")
    lab.until("() => model('scene-A').title.text.startsWith('step 0 of')")
    lab.button("▶|").click()
    lab.until("() => model('scene-A').title.text.startsWith('the answer (its first')")


@pytest.mark.slow
def test_a_run_ends_at_the_answer(lab):
    end = lab.model("scrubber", "end")
    lab.button("▶ run").click()
    lab.until(
        "(end) => model('scene-A').title.text == 'the answer' && !model('run').active"
        " && model('scrubber').value == end && model('scrubber').title.startsWith('the answer')",
        arg=end,
    )
    assert lab.button("▶ run").is_visible()


UNITS = """() => {
  const {x_range: x, y_range: y, inner_width, inner_height} = model('scene-A')
  return [(x.end - x.start) / inner_width, (y.end - y.start) / inner_height]
}"""


def test_axes_are_equal_unless_they_shall_not_be(lab):
    lab.sample("six points")
    lab.until(f"() => {{ const [x, y] = ({UNITS})(); return Math.abs(x / y - 1) < 0.02 }}")
    lab.button("equal axes").click()
    lab.until(f"() => {{ const [x, y] = ({UNITS})(); return Math.abs(x / y - 1) > 0.1 }}")
    window = [
        lab.model("scene-A", f"{axis}_range.{side}") for axis in "xy" for side in ("start", "end")
    ]
    assert window == lab.model("scene-A", "tags")[:4]
    lab.button("equal axes").click()
    lab.until(f"() => {{ const [x, y] = ({UNITS})(); return Math.abs(x / y - 1) < 0.02 }}")


def test_two_algorithms_are_compared(lab):
    figures = lab.page.locator(".bk-Figure")
    visible = sum(figure.is_visible() for figure in figures.all())
    alone = lab.page.locator(".bk-Figure").first.bounding_box()["width"]
    lab.press("compare with a second algorithm")
    assert sum(figure.is_visible() for figure in figures.all()) == visible + 1
    assert lab.page.locator(".bk-Figure").first.bounding_box()["width"] < alone
    assert lab.page.get_by_text("points misclassified").count() == 2
    lab.algorithm("Least squares", nth=1)
    assert "Least squares" in lab.proof("B")
    assert lab.proof("A") != lab.proof("B")
    start, end = (lab.model("scene-B", f"x_range.{side}") for side in ("start", "end"))
    low, high = (lab.model("scene-B", f"y_range.{side}") for side in ("start", "end"))
    lab.click(start + 0.06 * (end - start), low + 0.5 * (high - low), "scene-B")  # of both figures
    lab.until("() => model('points').data.x.length == 7")
    lab.settle()
    assert "of 7 points" in lab.proof("A")
    assert "of 7 points" in lab.proof("B")
    lab.press("compare with a second algorithm")
    assert sum(figure.is_visible() for figure in figures.all()) == visible


@pytest.mark.slow
def test_dark_reaches_the_page_the_figures_and_the_widgets(lab):
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = lab.page.evaluate(ground)
    lab.button("dark").click()
    lab.until("() => model('scene-A').background_fill_color != '#ffffff'")
    assert lab.page.evaluate(ground) != light
    colour = "(e) => getComputedStyle(e).backgroundColor"
    assert lab.button("undo").evaluate(colour) == lab.page.evaluate(ground)
    lab.button("dark").click()
    lab.until("() => model('scene-A').background_fill_color == '#ffffff'")
    assert lab.page.evaluate(ground) == light


@pytest.mark.slow
def test_a_system_that_prefers_dark_gets_dark(browser, address):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("() => document.documentElement.dataset.theme == 'dark'")
    context.close()


@pytest.mark.slow
def test_many_classes_by_all_their_ways(lab):
    lab.sample("blobs")
    X, codes = lab.points()
    y = np.array(["A", "B", "C"])[codes]
    for way in ("ovr", "ovo"):
        lab.choose("many classes", way)
        # Followed step by step as in the lab: a sample lies midway between two classes.
        machine = mm.SVC(kernel="linear", multi_class=way, callback=lambda step: None)
        wrong = machine.fit(X, y).predict(X) != y
        assert f"{wrong.sum()} of 90 points misclassified" in lab.proof()
    lab.tab("points")
    lab.page.locator(".slick-row").first.wait_for()
    assert lab.page.get_by_label("pair").is_visible()
    lab.algorithm("Perceptron")
    for way in ("kesler", "ovo", "ovr"):
        if way != "ovr":
            lab.choose("many classes", way)
        assert "of 90 points misclassified" in lab.proof()
        lab.button("|◀").click()
        lab.until("() => model('scene-A').title.text.startsWith('step 0 of')")
        lab.button("▶|").click()
        lab.until("() => model('scene-A').title.text == 'the answer'")


def test_what_no_plane_separates_is_proved(lab):
    lab.sample("XOR")
    lab.act(lambda: lab.slide("C-A", "End"))
    assert "No plane separates" in lab.proof()
    lab.choose("kernel", "rbf")
    assert "0 of 4 points misclassified" in lab.proof()


@pytest.mark.slow
def test_two_thousand_points_stay_usable(lab):
    lab.sample("blobs, 2,000")
    assert len(lab.points()[0]) == 2000
    lab.sample("AND")  # and what came after is not kept waiting
    assert len(lab.points()[0]) == 4


# Uploads ------------------------------------------------------------------------------------------


def test_a_file_is_uploaded_and_its_columns_are_chosen(lab):
    lab.act(lambda: lab.upload(csv_of(GOOD, "length,width,weight,ripe")))
    X, codes = lab.points()
    np.testing.assert_array_equal(X, [row[:2] for row in GOOD])
    assert codes == [0, 0, 1, 1]
    assert lab.model("scene-A", "below[0].axis_label") == "length"
    lab.act(lambda: lab.page.get_by_label("up", exact=True).select_option(label="weight"))
    np.testing.assert_array_equal(lab.points()[0], [(row[0], row[2]) for row in GOOD])
    lab.page.get_by_role("button", name="yes", exact=True).click()
    lab.page.get_by_label("up", exact=True).select_option(label="length")
    lab.page.get_by_text("Choose three different columns.").wait_for()


def test_bad_files_are_refused_with_a_message(lab):
    before = lab.points()
    lab.refused(b"x,y,class\n1,2,A\n3,B\n4,5,B\n", "Line 3 has 2 fields, line 1 has 3.")
    lab.refused(b"x,y,class\n1,2,A\n3,four,B\n", "Line 3: 'four' in column 'y' is not a number.")
    lab.refused(b"x,class\n1,A\n2,B\n", "3 columns or more")
    lab.refused(b"x,y,class\n1,nan,A\n2,3,B\n", "must be finite")
    lab.refused(csv_of([(k, k, k) for k in range(5)]), "2 to 4 classes, got 5")
    lab.refused(csv_of([(k, k, k % 2) for k in range(2001)]), "2000 rows, got 2001")
    lab.refused(b"x,y,class\n" + b"1.000000,2.000000,A\n" * 110_000, "must have at most")
    lab.refused(b"\xff\xfe\x00\x01" * 10, "must be UTF-8 text")
    after = lab.points()
    np.testing.assert_array_equal(after[0], before[0])
    assert after[1] == before[1]


@pytest.mark.slow
def test_files_are_checked_before_they_are_sent(lab):
    """The server would end the connection on a message as long as the second one."""
    connections = []
    lab.page.on("websocket", lambda socket: connections.append(socket))
    lab.refused(b"", "The file is empty.")
    lab.page.locator("input[type=file]").evaluate(
        """(input) => {
          const given = new DataTransfer()
          given.items.add(new File([new Uint8Array(80_000_000)], 'large.csv'))
          input.files = given.files
          input.dispatchEvent(new Event('change'))
        }"""
    )
    lab.page.get_by_text("must have at most 2000000 bytes, got 80000000.").first.wait_for()
    lab.act(lambda: lab.upload(csv_of(GOOD, "a,b,c,d")))
    assert len(lab.points()[0]) == 4
    assert connections == []  # the first one holds


@pytest.mark.slow
def test_the_same_file_may_be_uploaded_again(lab):
    lab.act(lambda: lab.upload(csv_of(GOOD, "a,b,c,d")))
    lab.press("clear")
    lab.act(lambda: lab.upload(csv_of(GOOD, "a,b,c,d")))
    assert len(lab.points()[0]) == 4


@pytest.mark.slow
def test_the_same_sample_may_be_loaded_again(lab):
    lab.sample("XOR")
    lab.press("clear")
    lab.act(lambda: lab.page.get_by_label("data set").select_option(label="XOR"))
    assert len(lab.points()[0]) == 4


def test_names_and_files_do_not_become_markup(lab):
    header = f"{MARKUP},<b>y</b>,<script>alert(2)</script>"
    rows = [(0, 0, MARKUP), (1, 0, MARKUP), (3, 3, "<svg onload=alert(3)>"), (4, 3, "\"'&")]
    lab.act(lambda: lab.upload(csv_of(rows, header)))
    lab.page.get_by_role("button", name=MARKUP, exact=True).wait_for()
    for name in ("points", "take away"):
        lab.tab(name)
        if name == "points":
            lab.page.locator(".slick-row").first.wait_for()
            assert MARKUP in [row[1] for row in lab.table()]
    lab.refused(csv_of([(0, MARKUP, "A"), (1, 2, "B")]), "is not a number")
    assert MARKUP in lab.note()
    lab.page.wait_for_timeout(200)
    assert lab.page.locator("img[src=x]").count() == 0
    assert lab.page.locator("svg[onload]").count() == 0
    assert lab.dialogs == []


@pytest.mark.slow
def test_names_and_files_do_not_become_formulas(lab):
    """Bokeh typesets what stands between $$, which may be a link to a script."""
    formula = r"$$\href{javascript:alert(1)}{x}$$"
    lab.refused(csv_of([(0, formula, "A"), (1, 2, "B")]), "is not a number")
    lab.act(lambda: lab.upload(csv_of(GOOD, f"{formula},b,c,d")))
    lab.page.wait_for_timeout(500)
    assert lab.page.locator("mjx-container").count() == 0
    assert lab.foreign == []
    assert formula in lab.note() or not lab.note()


# Scores -------------------------------------------------------------------------------------------


def test_candidates_are_chosen_from_a_map_and_from_a_list(lab):
    lab.choose("kernel", "rbf")
    lab.tab("scores")
    lab.page.get_by_text("3-fold cross-validation at 8 × 11 values of C and γ").wait_for()
    lab.compute_scores()
    picture = lab.page.get_by_role("img", name="Map over C and γ of the mean accuracy. Best:")
    assert picture.is_visible()
    assert len(lab.data("cells")["mean"]) == 88
    assert lab.data("score-sliders") == {"x": [0], "y": [0]}

    lab.act(lambda: lab.click(2.1, -1.4, "score-map"))
    assert (lab.model("C-A", "value"), lab.model("gamma-A", "value")) == (2, -1.5)
    assert lab.page.get_by_text("C = 100:", exact=True).is_visible()  # of the slider
    lab.page.get_by_text("Sliders: C = 100, γ = 0.0316:").wait_for()
    assert lab.data("score-sliders") == {"x": [2], "y": [-1.5]}

    # By the keyboard: an option further down.
    lab.until("() => model('candidate').value != ''")
    lab.page.get_by_label("candidate", exact=True).focus()
    lab.act(lambda: lab.page.keyboard.press("ArrowDown"))
    assert (lab.model("C-A", "value"), lab.model("gamma-A", "value")) == (2, -1)
    lab.button("use the simplest").focus()
    lab.act(lambda: lab.page.keyboard.press("Enter"))
    simplest = lab.data("score-simplest")
    assert [lab.model("C-A", "value"), lab.model("gamma-A", "value")] == [
        simplest["x"][0], simplest["y"][0],
    ]  # fmt: skip

    lab.choose("kernel", "linear")
    lab.page.get_by_text("Points or settings have changed.").wait_for()
    assert not picture.is_visible()
    lab.compute_scores()
    assert lab.page.get_by_role("img", name="Curve over C of the mean accuracy.").is_visible()
    lab.act(lambda: lab.click(-2.0, lab.data("score-curve")["mean"][2], "score-curve-figure"))
    assert lab.model("C-A", "value") == -2


@pytest.mark.slow
def test_scores_are_read_on_a_narrow_dark_page(opened):
    lab = opened(width=390, height=844)
    lab.button("dark").click()
    lab.sample("moons")
    lab.choose("kernel", "rbf")
    lab.tab("scores")
    lab.compute_scores()
    assert lab.model("score-map", "background_fill_color") != "#ffffff"
    assert lab.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for part in (lab.page.locator(".bk-Figure:visible").last, lab.button("use the simplest")):
        box = part.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    lab.algorithm("Perceptron")
    lab.page.get_by_text("Scores over C are computed for: Support vector machine").wait_for()
    assert lab.button("compute scores").is_disabled()


# Without classes ----------------------------------------------------------------------------------


def test_a_regression_is_read_and_taken_away(lab, tmp_path):
    """What has no meaning leaves the page, and comes back with a classifier."""
    lab.algorithm("Support vector regression")
    lab.sample("sinc")
    X, _ = lab.points()
    model = mm.SVR(kernel="rbf", gamma=1.0).fit(X[:, :1], X[:, 1])
    assert f"{len(model.support_)} support vectors" in lab.proof()
    assert lab.page.get_by_text("targets outside of the tube").first.is_visible()
    assert lab.page.get_by_text("weight space").count() == 0
    assert not lab.button("A").is_visible()
    lab.tab("points")
    lab.page.locator(".slick-row").nth(5).wait_for()
    assert "residual" in lab.page.locator(".slick-header").first.inner_text()
    residual = X[:, 1] - model.predict(X[:, :1])
    found = [float(row[3]) for row in lab.table()]
    np.testing.assert_allclose(found, residual[: len(found)], atol=1e-3)

    lab.tab("take away")
    space = {}
    exec(compile(lab.download("code ↓", tmp_path).read_text("utf-8"), "model.py", "exec"), space)
    np.testing.assert_allclose(space["model"].predict(X[:, :1]), X[:, 1] - residual, atol=1e-3)
    assert lab.download("CSV ↓", tmp_path).read_text("utf-8").splitlines()[0] == "x,y"

    lab.algorithm("Perceptron")
    assert "two classes" in lab.proof()
    lab.tab("weight space")


@pytest.mark.slow
def test_a_link_restores_a_machine_of_one_class(opened):
    one = opened()
    one.algorithm("One-class machine")
    one.sample("ring")
    one.act(lambda: one.slide("nu-A", "ArrowRight", "ArrowRight"))
    assert "of 120 points are outliers" in one.proof()
    other = opened(query="?" + one.link().split("?")[1])
    assert other.model("algorithm-A", "value") == "one-class"
    assert other.model("nu-A", "value") == pytest.approx(0.14)
    assert not other.model("pen", "visible")
    assert re.sub(r"[\d.]+ ms", "", other.proof()) == re.sub(r"[\d.]+ ms", "", one.proof())


# Downloads ----------------------------------------------------------------------------------------


def test_recordings_are_taken_away_and_play_alone(lab, browser, tmp_path):
    lab.algorithm("Perceptron")
    lab.act(lambda: lab.button("compare with a second algorithm").click())
    lab.tab("take away")
    path = lab.download("recording ↓", tmp_path)
    assert path.name == "recording.html"
    context = browser.new_context()
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.goto(path.as_uri())
    page.keyboard.press("End")
    captions = page.locator(".caption").all_text_contents()
    context.close()
    assert len(captions) == 2
    assert all(caption.startswith("The answer") for caption in captions)
    assert "separates all 6 samples" in captions[0]
    assert faults == []


def test_points_model_and_code_are_taken_away(lab, tmp_path):
    lab.sample("moons")
    lab.choose("kernel", "rbf")
    X, codes = lab.points()
    y = np.array(["A", "B"])[codes]
    expected = mm.SVC(kernel="rbf", gamma=1.0, random_state=0).fit(X, y).decision_function(X)

    path = lab.download("CSV ↓", tmp_path)
    assert path.name == "points.csv"
    rows = [line.split(",") for line in path.read_text("utf-8").splitlines()]
    assert rows[0][-1] == "class"
    np.testing.assert_array_equal([list(map(float, row[:2])) for row in rows[1:]], X)
    assert [row[2] for row in rows[1:]] == y.tolist()

    lab.tab("take away")
    model = mm.load(lab.download("model ↓", tmp_path))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)

    program = lab.download("code ↓", tmp_path)
    text = program.read_text("utf-8")
    assert text == lab.model("code", "text")
    shown = lab.page.locator("pre").last.inner_text()
    assert shown.strip() == text.strip()
    space = {}
    exec(compile(text, str(program), "exec"), space)
    np.testing.assert_array_equal(space["model"].predict(X), model.predict(X))


def test_a_link_restores_points_algorithms_and_settings(opened):
    one = opened()
    one.act(lambda: one.upload(csv_of(GOOD, "length,width,weight,ripe")))
    one.choose("kernel", "poly")
    one.act(lambda: one.slide("C-A", "ArrowRight", "ArrowRight"))
    one.act(lambda: one.slide("degree-A", "ArrowRight"))
    one.press("compare with a second algorithm")
    one.algorithm("Ho–Kashyap", nth=1)
    link = one.link()
    assert one.page.url == link

    other = opened(query="?" + link.split("?")[1])
    np.testing.assert_array_equal(other.points()[0], one.points()[0])
    assert other.points()[1] == one.points()[1]
    for name in ("algorithm-A", "algorithm-B", "kernel-A", "degree-A", "C-A"):
        assert other.model(name, "value") == one.model(name, "value")
    assert other.model("degree-A", "value") == 3
    assert other.model("pen", "labels") == one.model("pen", "labels")
    assert other.model("scene-A", "below[0].axis_label") == "length"

    def timeless(text):
        return re.sub(r"[\d.]+ ms", "", text)

    assert timeless(other.proof("A")) == timeless(one.proof("A"))
    assert timeless(other.proof("B")) == timeless(one.proof("B"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        pytest.param("?lab=%3Cscript%3Ealert(1)%3C/script%3E", id="garbage"),
        pytest.param("?lab=" + "A" * 20_000, id="long"),
        pytest.param(packed(b" " * 5_000_000), id="bomb"),
        pytest.param(forged(algorithms=[["__import__", {}]]), id="unknown-algorithm"),
        pytest.param(
            forged(codes=[0, 0, 1, 10**30]),
            id="huge-class",
        ),
        pytest.param(forged(points=[[0, 0], [1, 0], [3, 3], [4, 1e300]]), id="far-point"),
        pytest.param(
            packed(b"[" * 200_000),
            id="deep",
        ),
    ],
)
def test_forged_links_are_refused(opened, query):
    page = opened(query=query)
    assert len(page.points()[0]) == 6
    assert "points misclassified" in page.proof()


@pytest.mark.slow
def test_a_refused_link_is_reported(opened):
    page = opened(query="?lab=garbage")
    assert "The link" in page.note()


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"names": [MARKUP, "<script>alert(2)</script>"], "axes": [MARKUP, "$$x^2$$"]},
                     id="markup"),
        pytest.param({"algorithms": [["svc", {"C": 1e99, "kernel": "os.system", "gamma": []}]]},
                     id="settings"),
        pytest.param({"names": ["A", "A"]}, id="same-names"),
        pytest.param({"names": ["\ud800", "B"]}, id="surrogate"),
    ],
)  # fmt: skip
def test_forged_links_are_harmless(opened, changes):
    page = opened(query=forged(**changes))
    assert len(page.points()[0]) in (4, 6)
    page.tab("points")
    page.page.wait_for_timeout(200)
    assert page.page.locator("img[src=x]").count() == 0
    assert page.title() == "the answer"
    assert "points misclassified" in page.proof()


# Layout -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "height"),
    [
        (1366, 768),
        pytest.param(
            1024,
            768,
        ),
    ],
)
def test_nothing_is_cut_off(opened, width, height):
    lab = opened(width=width, height=height)
    page = lab.page
    for tab in ("convergence", "weight space", "points", "scores", "take away"):
        lab.tab(tab)
        inner, outer = page.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert inner <= outer, tab
        for section in ("left", "middle", "right"):
            inside, seen = page.evaluate(
                "(name) => { const e = document.querySelector('.' + name);"
                " return [e.scrollWidth, e.clientWidth] }",
                section,
            )
            assert inside <= seen + 1, (tab, section)
    for name in ("undo", "clear", "CSV ↓", "dark", "|◀", "◀ step", "▶ run", "step ▶", "▶|"):
        box = lab.button(name).bounding_box()
        assert lab.button(name).is_visible()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= height, name
    scene = page.locator(".bk-Figure").first.bounding_box()
    assert scene["width"] >= 350
    assert scene["height"] >= 280


@pytest.mark.slow
def test_both_figures_fit_a_tablet(opened):
    lab = opened(width=1024, height=768)
    lab.press("compare with a second algorithm")
    page = lab.page
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    inside, seen = page.evaluate(
        "() => ['scrollWidth', 'clientWidth'].map((key) => document.querySelector('.middle')[key])"
    )
    assert inside <= seen + 1


@pytest.mark.slow
def test_the_keyboard_reaches_every_control(lab):
    """Tab goes through buttons, choices, sliders and the names of tabs."""
    reached = set()
    for _ in range(45):
        lab.page.keyboard.press("Tab")
        reached.add(
            lab.page.evaluate(
                """() => {
                  let e = document.activeElement
                  while (e && e.shadowRoot && e.shadowRoot.activeElement)
                    e = e.shadowRoot.activeElement
                  return e ? (e.textContent || e.className || e.tagName).trim().slice(0, 40) : ''
                }"""
            )
        )
    text = " | ".join(reached)
    for name in ("dark", "undo", "clear", "▶ run", "step ▶", "compare with a second"):
        assert name in text


# Lessons ------------------------------------------------------------------------------------------


def test_a_lesson_is_followed_to_its_end(opened):
    lab = opened(query="?lesson=xor")
    card = lab.page.get_by_role("region", name="lesson")
    card.get_by_text("No line separates XOR. What does?").wait_for()
    card.get_by_text("0 of 4 points are strictly on their side.").wait_for()
    lab.algorithm("Support vector machine")
    card.get_by_text("Try another algorithm that draws a line. (reached)").wait_for()
    lab.choose("kernel", "rbf")
    card.get_by_text("✓ Done.").wait_for()
    announced = lab.model("lesson-heard", "text")
    assert "The lesson is done" in announced
    assert "✓ No line separates XOR. What does?" in [
        text for _, text in lab.model("lesson", "options")
    ]
    lab.act(lambda: card.get_by_role("button", name="next ▶").click())
    card.get_by_text("Lesson 4 of 8").wait_for()
    lab.until("() => location.search.startsWith('?lab=')")
    lab.page.go_back()
    card.get_by_text("Lesson 3 of 8").wait_for()
    card.get_by_role("button", name="close").click()
    lab.until("() => !model('card-of-lesson').visible")
    choice = lab.page.get_by_role("combobox", name="lesson")
    lab.act(lambda: choice.select_option(label="What does ν count?"))
    card.get_by_text("≤ ν = 40.0% ≤").wait_for()


@pytest.mark.slow
def test_a_support_vector_is_dragged(opened):
    lab = opened(query="?lesson=six-points")
    card = lab.page.get_by_role("region", name="lesson")
    points = lab.points()[0]
    for k, place, words in ((1, (0.4, 11), "stays. (reached)"), (0, (0, 7), "changes. (reached)")):
        lab.page.mouse.move(*lab.place(*points[k]))
        lab.page.mouse.down()
        lab.page.mouse.move(*lab.place(*place), steps=6)
        lab.act(lab.page.mouse.up)
        card.get_by_text(words).wait_for()
    card.get_by_text("✓ Done.").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1024, 768), (390, 844)])
def test_lessons_fit_the_page(opened, width, height):
    lab = opened(width=width, height=height, query="?lesson=perceptron")
    box = lab.page.get_by_role("region", name="lesson").bounding_box()
    scene = lab.page.locator(".bk-Figure").first.bounding_box()
    assert lab.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert box["y"] < height / 2  # in sight at once
    below, beside = box["y"] + box["height"] <= scene["y"], scene["x"] + scene["width"] <= box["x"]
    assert below or beside
    for name in ("◀ previous", "next ▶", "start again", "close"):
        assert lab.button(name).is_visible()
