"""The address of the lab in a browser: reload, back and forward, and a server that ends."""

import signal
import subprocess
import sys

import pytest

from tests.helpers.lab_page import CHROMIUM, Page, ended, start_lab

pytest.importorskip("bokeh", reason="bokeh is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium or Chrome is installed", allow_module_level=True)

READY = "() => window.Bokeh && Bokeh.documents.length && model('rows') && drawn >= 0"


def again(lab, do):
    """Load the page anew and wait for it."""
    do()
    lab.page.wait_for_function(READY)
    lab.page.wait_for_function("() => model('scene-A').title.text != ''")
    lab.settle()


def written(lab, change):
    """Change something, and wait until the address has changed, too."""
    before = lab.page.url
    change()
    lab.page.wait_for_function("(before) => location.href != before", arg=before)
    lab.settle()


def test_reload_back_and_forward_restore_the_page(opened, address):
    lab = opened()
    assert lab.page.url == address
    written(lab, lambda: lab.sample("moons"))
    written(lab, lambda: lab.algorithm("Perceptron"))
    written(lab, lambda: lab.button("|◀").click())
    written(lab, lambda: lab.button("step ▶").click())
    written(lab, lambda: lab.tab("points"))
    written(lab, lambda: lab.button("dark").click())
    lab.until("() => model('scene-A').title.text.startsWith('step 1 of')")
    points = lab.points()[0]

    again(lab, lab.page.reload)
    lab.until("() => model('scene-A').title.text.startsWith('step 1 of')")
    assert (lab.points()[0] == points).all()
    assert lab.model("algorithm-A", "value") == "perceptron"
    assert lab.model("dark", "active")
    assert lab.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert lab.page.locator(".slick-row").first.is_visible()
    lab.page.get_by_text("data set (moons)").wait_for()

    lab.page.go_back()
    lab.until("() => model('algorithm-A').value == 'svc'")
    lab.settle()
    assert (lab.points()[0] == points).all()
    lab.page.go_back()
    lab.until("() => model('points').data.x.length == 6")
    assert lab.page.url == address
    lab.page.go_forward()
    lab.until("() => model('points').data.x.length == 120")
    lab.page.go_forward()
    lab.until("() => model('algorithm-A').value == 'perceptron'")


def test_keys_undo_and_redo_unless_they_edit_text(lab):
    lab.sample("AND")
    lab.page.mouse.move(0, 0)
    keyboard = lab.page.keyboard
    lab.act(lambda: keyboard.press("Control+z"))
    assert len(lab.points()[0]) == 6
    lab.act(lambda: keyboard.press("Control+Shift+z"))
    assert len(lab.points()[0]) == 4
    lab.act(lambda: keyboard.press("Control+z"))
    lab.act(lambda: keyboard.press("Control+y"))
    assert len(lab.points()[0]) == 4
    lab.tab("points")
    lab.page.get_by_label("x", exact=True).focus()
    keyboard.press("Control+z")
    lab.settle()
    assert len(lab.points()[0]) == 4


@pytest.mark.slow
def test_two_thousand_points_survive_a_reload_of_their_tab(opened, address):
    lab = opened()
    written(lab, lambda: lab.sample("blobs, 2,000"))
    assert "?kept=" in lab.page.url
    assert "this tab keeps them" in lab.note()
    points = lab.points()[0]
    lab.page.reload()
    lab.page.wait_for_function("() => window.Bokeh && Bokeh.documents.length && model('points')")
    lab.until("() => model('points').data.x.length == 2000")
    assert abs(lab.points()[0] - points).max() < 1e-6
    other = opened(query=lab.page.url.removeprefix(address))
    other.page.get_by_text("kept in the tab that drew them").wait_for()
    assert len(other.points()[0]) == 6


@pytest.mark.slow
def test_a_page_comes_back_with_its_server(browser):
    process, port = start_lab()
    lab = Page(browser, f"http://127.0.0.1:{port}/")
    try:
        written(lab, lambda: lab.sample("XOR"))
        ended(process, signal.SIGTERM)
        lab.page.get_by_role("alert").get_by_text("The server of the lab is away").wait_for()
        command = [sys.executable, "-m", "maxmargin", "lab", "--port", str(port), "--no-browser"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lab.page.wait_for_event("load")
        lab.page.wait_for_function(READY)
        lab.until("() => model('points').data.x.length == 4")
        assert not lab.page.get_by_text("The server of the lab is away").is_visible()
    finally:
        ended(process, signal.SIGTERM)
        lab.context.close()
