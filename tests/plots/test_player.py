"""The page that plays a recorded run, in a browser."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import plots
from tests.helpers.recordings import data_of

DOCS = Path(__file__).parents[2] / "docs" / "_static" / "recordings.js"
SITE = "http://site.test/"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The page of a fit that takes about ten steps, and its shots."""
    X, y = mm.datasets.load_six_points(return_X_y=True)
    target = tmp_path_factory.mktemp("player") / "run.html"
    plots.animate(mm.Relaxation(random_state=0, max_iter=4), X, y, target, fps=16)
    (scene,) = data_of(target.read_text(encoding="utf-8"))["scenes"]
    return target, scene["shots"]


@pytest.fixture
def opened(browser):
    """Open a page; in the end, nothing may have been complained of or asked of a network."""
    contexts, faults = [], []

    def open_page(address, **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.on("dialog", lambda dialog: (faults.append("dialog"), dialog.dismiss()))
        page.on("request", lambda request: faults.append(request.url)
                if not request.url.startswith(("file:", "data:", SITE)) else None)  # fmt: skip
        page.route(SITE + "**", lambda route: route.fulfill(
            path=FILES[route.request.url.removeprefix(SITE)]))  # fmt: skip
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


FILES = {"recordings.js": DOCS}


def shown(page):
    """Return the caption that is shown, and the place of the slider."""
    caption = page.locator(".caption")
    parts = [caption.locator(part).text_content() for part in ("strong", "span:not(.facts)")]
    return (*parts, int(page.locator("#slider").input_value()))


def is_at(page, shots, k):
    assert shown(page) == (shots[k]["heading"], shots[k]["text"], k)
    assert page.locator("#slider").get_attribute("aria-valuetext") == shots[k]["heading"]
    assert page.locator(".moved").count() - page.locator(".legend .moved").count() == len(
        shots[k].get("moved", [])
    )
    drawn = page.locator(".inner .line")
    assert [drawn.nth(j).get_attribute("d") for j in range(drawn.count())] == [
        path for _, path in shots[k].get("lines", [])
    ]


def test_buttons_slider_and_keys_go_to_steps(opened, run):
    target, shots = run
    end = len(shots) - 1
    assert end > 8
    page = opened(target.as_uri())
    is_at(page, shots, 0)
    button = {name: page.get_by_role("button", name=name, exact=True) for name in
              ("First", "Step back", "Step forward", "Last")}  # fmt: skip
    assert button["First"].is_disabled()
    for name, k in (("Step forward", 1), ("Step forward", 2), ("Step back", 1), ("Last", end),
                    ("First", 0)):  # fmt: skip
        button[name].click()
        is_at(page, shots, k)
    page.locator("body").click(position={"x": 2, "y": 2})
    for key, k in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", end),
                   ("ArrowRight", end), ("Home", 0), ("ArrowLeft", 0)):  # fmt: skip
        page.keyboard.press(key)
        is_at(page, shots, k)
    page.locator("#slider").fill("5")
    is_at(page, shots, 5)
    page.locator("#slider").focus()
    page.keyboard.press("ArrowRight")
    is_at(page, shots, 6)


def test_a_run_plays_to_its_end_and_pauses(opened, run):
    target, shots = run
    end = len(shots) - 1
    page = opened(target.as_uri())
    assert page.get_by_label("steps per second").input_value() == "16"
    page.get_by_label("steps per second").select_option("30")
    page.get_by_role("button", name="Play").click()
    assert page.locator(".caption").get_attribute("aria-live") == "off"
    page.get_by_role("button", name="Play").wait_for()
    is_at(page, shots, end)
    assert page.locator(".caption").get_attribute("aria-live") == "polite"
    assert "proved" in page.locator(".caption").get_attribute("class")
    page.locator("body").click(position={"x": 2, "y": 2})
    page.get_by_label("steps per second").select_option("0.5")
    page.locator("#slider").focus()
    page.keyboard.press("Space")  # from the start
    page.get_by_role("button", name="Pause").wait_for()
    assert shown(page)[2] == 0
    page.keyboard.press("Space")
    page.get_by_role("button", name="Play").wait_for()


def test_pictures_and_controls_have_names(opened, run):
    target, _ = run
    page = opened(target.as_uri())
    picture = page.get_by_role("img").first
    assert "6 samples (3 of class -1, 3 of class 1)" in picture.get_attribute("aria-label")
    assert page.get_by_role("slider", name="Step").count() == 1
    assert page.get_by_role("group", name="Playback").get_by_role("button").count() == 5
    assert page.locator(".caption").get_attribute("role") == "status"
    described = page.locator(f"#{picture.get_attribute('aria-describedby')}")
    assert described.locator("strong").text_content() == "Start"


@pytest.mark.parametrize("width", [320, 390, 1366])
def test_pages_fit_any_width(opened, run, width):
    target, shots = run
    page = opened(target.as_uri(), viewport={"width": width, "height": 800})
    heights = set()
    for k in range(len(shots) - 1):
        page.evaluate(f"jump({k})")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        heights.add(page.locator(".caption").bounding_box()["height"])
    assert len(heights) == 1  # nothing jumps


def test_dark_pages_reduced_motion_and_print(opened, run):
    target, shots = run
    page = opened(target.as_uri(), color_scheme="dark", reduced_motion="reduce")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(21, 27, 33)"
    assert page.get_by_label("steps per second").input_value() == "1"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    is_at(page, shots, len(shots) - 1)
    page.emulate_media(media="print")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert not page.locator("#controls").is_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    is_at(page, shots, 0)


@pytest.mark.parametrize("has_script", [True, False])
@pytest.mark.parametrize("on_disk", [True, False])
def test_embedded_recordings_follow_the_page(opened, run, tmp_path, on_disk, has_script):
    target, shots = run
    script = DOCS.read_text(encoding="utf-8") if has_script else ""
    around = tmp_path / "around.html"
    around.write_text(
        f'<!doctype html><html data-theme="dark"><script>{script}</script><link rel="icon" '
        f'href="data:,"><iframe class="recording" src="{target.as_uri() if on_disk else "run"}" '
        'style="width: 100%; height: 100px; border: 0"></iframe></html>'
    )
    FILES["run"], FILES["around"] = target, around
    page = opened(around.as_uri() if on_disk else f"{SITE}around")
    frame = page.frame_locator("iframe")
    frame.locator("#slider").wait_for()
    inner = page.frames[1]
    ink = "getComputedStyle(document.body).color"
    follows = has_script or not on_disk
    inner.wait_for_function(f"{ink} == '{LIGHT_INK if follows else DARK_INK}'")
    if has_script:
        page.wait_for_function("() => document.querySelector('iframe').offsetHeight > 300")
        high = inner.evaluate("document.documentElement.scrollHeight")
        assert page.locator("iframe").bounding_box()["height"] == pytest.approx(high, abs=1)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    inner.wait_for_function(f"{ink} == '{DARK_INK}'")
    frame.get_by_role("button", name="Last").click()
    if has_script:  # and the higher caption of the answer is in view
        page.wait_for_function(
            "() => document.querySelector('iframe').offsetHeight >= "
            + str(inner.evaluate("document.documentElement.scrollHeight"))
        )
    assert frame.locator(".caption strong").text_content() == shots[-1]["heading"]


DARK_INK, LIGHT_INK = "rgb(29, 39, 51)", "rgb(230, 235, 240)"


def test_markup_in_names_stays_text(opened, tmp_path):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    names = ["</script><img src=x onerror=alert(1)>", "<b>bold</b>"]
    labels = np.array(names)[(y > 0).astype(int)]
    target = tmp_path / "run.html"
    plots.animate(mm.Perceptron(), X, labels, target, feature_names=names)
    page = opened(target.as_uri())
    page.keyboard.press("End")
    assert page.locator("b, img:not(svg)").count() == 0
    assert sorted(page.locator(".legend li span").all_text_contents()[:2]) == sorted(names)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_barriers(opened, run, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    target, shots = run
    page = opened(target.as_uri(), color_scheme=scheme)
    for k in (0, 3, len(shots) - 1):
        page.evaluate(f"jump({k})")
        found = axe.Axe().run(page).response["violations"]
        assert [(each["id"], each["impact"]) for each in found] == []


def test_long_numbers_on_an_axis_do_not_overlap(opened, tmp_path):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    plots.animate(mm.Perceptron(), 1e10 + X / 8, y, tmp_path / "far.html")
    page = opened((tmp_path / "far.html").as_uri(), viewport={"width": 390, "height": 700})
    texts = page.locator('.axes text[text-anchor="middle"]:not(.label)')
    boxes = [texts.nth(k).bounding_box() for k in range(texts.count())]
    assert len(boxes) >= 2
    for one, other in pairwise(boxes):
        assert one["x"] + one["width"] < other["x"]
