"""The lab without a mouse, without eyes, in dark, zoomed and on narrow screens."""

import importlib.resources
from itertools import combinations

import numpy as np
import pytest

from tests.helpers.lab_page import CHROMIUM

pytest.importorskip("bokeh", reason="bokeh is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium or Chrome is installed", allow_module_level=True)

AXE = (importlib.resources.files(axe) / "axe.min.js").read_text(encoding="utf-8")
TABS = ("convergence", "weight space", "points", "scores", "take away")
# 683: a screen of 1366 at 200 %.
WIDTHS = [1366, 1024, 683, 390]


def violations(page):
    """Return what axe finds serious or critical, with the first element that it names."""
    if not page.evaluate("() => window.axe !== undefined"):
        page.evaluate(AXE)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10  # it has looked into the widgets
    return [
        (rule["id"], rule["nodes"][0]["html"])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (1366, False),
        (390, True),
        *(pytest.param(*case, marks=pytest.mark.slow)
          for case in ((1366, True), (1024, False), (683, False), (390, False))),
    ],
)  # fmt: skip
def test_a_checker_of_accessibility_finds_nothing_serious(opened, width, dark):
    lab = opened(width=width, height=768)
    if dark:
        lab.button("dark").click()
        lab.settle()
    for tab in TABS:
        lab.tab(tab)
        assert violations(lab.page) == [], tab


def test_nothing_is_wider_than_the_page(opened):
    """What is wider would be scrolled sideways, or lie on something else."""
    lab = opened(width=WIDTHS[0], height=768)
    for width in WIDTHS:
        lab.page.set_viewport_size({"width": width, "height": 768})
        lab.press("compare with a second algorithm")
        found = lab.page.evaluate("() => document.documentElement.scrollWidth")
        lab.press("compare with a second algorithm")
        assert found <= width
        boxes = lab.page.evaluate(
            "() => ['data', 'controls', 'scenes', 'playback', 'proofs', 'insight'].map((name) => {"
            " const box = Bokeh.index.find_one_by_id(model(name).id).el.getBoundingClientRect();"
            " return [name, box.left, box.top, box.right, box.bottom] })"
        )
        for (one, *box), (other, *others) in combinations(boxes, 2):
            assert are_apart(box, others), (width, one, other)


def are_apart(box, other):
    """Say whether two boxes (left, top, right, bottom) overlap by at most a pixel."""
    left, top, right, bottom = box
    x0, y0, x1, y1 = other
    return right <= x0 + 1 or x1 <= left + 1 or bottom <= y0 + 1 or y1 <= top + 1


def test_the_picture_comes_first_on_a_narrow_screen(opened):
    lab = opened(width=390, height=844)
    picture = lab.page.get_by_role("img", name="6 points").bounding_box()
    assert picture["y"] < 100
    assert picture["y"] + picture["height"] < 844
    assert picture["width"] > 300


def test_points_are_edited_in_the_picture_by_keys(lab):
    before, codes = lab.points()
    lab.page.get_by_role("application").first.focus()
    keyboard = lab.page.keyboard
    keyboard.press("n")
    lab.until("() => model('points').selected.indices.join() == '0'")
    keyboard.press("p")
    lab.until("() => model('points').selected.indices.join() == '5'")
    lab.act(lambda: keyboard.press("Shift+ArrowRight"))
    lab.act(lambda: keyboard.press("ArrowUp"))
    X, _ = lab.points()
    np.testing.assert_array_equal(X[:5], before[:5])
    ranges = [
        [lab.model("scene-A", f"{axis}_range.{side}") for side in ("start", "end")] for axis in "xy"
    ]
    step = np.diff(ranges, axis=1)[:, 0] / 100
    np.testing.assert_allclose(X[5] - before[5], (5 * step[0], step[1]))
    lab.act(lambda: keyboard.press("a"))
    X, added = lab.points()
    assert len(X) == 7
    assert added == [*codes, lab.model("pen", "active")]
    lab.act(lambda: keyboard.press("Delete"))
    assert len(lab.points()[0]) == 6
    keyboard.press("n")
    keyboard.press("Escape")
    lab.until("() => model('points').selected.indices.length == 0")


def test_widgets_have_names_values_and_states(lab):
    page = lab.page
    slider = page.get_by_role("slider", name="C", exact=True)
    assert slider.get_attribute("aria-valuetext") == "1"
    lab.act(lambda: lab.slide("C-A", "End"))
    page.wait_for_function("(e) => e.ariaValueText.startsWith('∞')", arg=slider.element_handle())
    speed = page.get_by_role("slider", name="steps per second")
    assert speed.get_attribute("aria-valuetext") == "8"
    pens = page.get_by_role("group", name="class of new points")
    assert pens.get_by_role("button", pressed=True).count() == 1
    chosen = page.get_by_role("tab", selected=True)
    chosen.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.get_by_role("tab", name="points", selected=True).wait_for()
    page.get_by_role("grid", name="points").wait_for()
    page.get_by_role("gridcell", name="α: ").first.wait_for()
    assert page.get_by_role("button", name="draw", pressed=True).count() == 1


def test_the_picture_is_described_and_its_answer_is_announced(lab):
    picture = lab.page.get_by_role("img", name="6 points in 2 classes: 3 of -1, 3 of 1.").first
    lab.page.wait_for_function(
        "(e) => e.ariaLabel.includes('3 support vectors: 1, 3, 5')", arg=picture.element_handle()
    )
    assert "The line −0.333 x₁ + 0.2 x₂ + 0.133 = 0 with the band g = ±1." in lab.model(
        "heard", "text"
    )
    lab.sample("XOR")
    assert "4 points in 2 classes" in lab.model("heard", "text")


def test_browsers_do_not_keep_more_and_more_models(lab):
    count = "() => Bokeh.documents[0]._all_models.size"
    names = ("Perceptron", "ν-machine", "Support vector machine")
    for name in names:
        lab.algorithm(name)
    once = lab.page.evaluate(count)
    for name in names * 2:
        lab.algorithm(name)
    lab.act(lambda: lab.slide("C-A", *["ArrowRight"] * 10))
    assert lab.page.evaluate(count) <= once


def test_the_code_is_copied(lab):
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    lab.tab("take away")
    lab.button("copy code").click()
    lab.button("copied ✓").wait_for()
    copied = lab.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == lab.model("code", "text")
    assert "mm.SVC(" in copied
    lab.button("copy code").wait_for()


def test_a_picture_is_taken_away_in_its_size(lab, tmp_path):
    lab.tab("take away")
    width = lab.page.get_by_label("width (pixels)")
    width.fill("640")
    width.press("Tab")
    path = lab.download("picture ↓", tmp_path)
    assert path.name == "picture.png"
    assert int.from_bytes(path.read_bytes()[16:20], "big") == 640
