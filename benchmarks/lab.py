"""How soon the lab answers: its start, and a slider and a point moved on 200 and on 2,000 points.

    python benchmarks/lab.py [--moves 20]

Needs the extra ``[lab]``, playwright and Debian's chromium. Server and browser share the machine.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

SAMPLES = ("blobs, 200", "blobs, 2,000")
# The model of the page with a name.
NAMED = """window.named = (name) =>
  [...Bokeh.documents[0]._all_models.values()].find((m) => m.name == name)"""
# From the key to the certificate of the new answer, on the page's own clock.
MOVE = """async (key) => {
  const slider = named('C-A'), proof = named('proof-A')
  const started = performance.now()
  const answered = new Promise((resolve) => proof.properties.text.change.connect(resolve))
  slider.value += key
  await answered
  return performance.now() - started
}"""
# From the first movement of the mouse that is not answered yet to the frame with its answer.
WATCH = """() => {
  let since = null
  window.frames_of_drag = []
  document.addEventListener('pointermove', () => { since ??= performance.now() }, true)
  named('moved').properties.tags.change.connect(() => requestAnimationFrame(() => {
    if (since != null) { frames_of_drag.push(performance.now() - since) }
    since = null
  }))
}"""
GRIP = """() => {
  const view = Bokeh.index.find_one_by_id(named('scene-A').id), {x, y} = named('points').data
  const box = view.el.getBoundingClientRect(), {x_scale, y_scale} = view.frame
  return [box.x + x_scale.compute(x[0]), box.y + y_scale.compute(y[0])]
}"""


# Pictures and steps that are shown in some seconds of playback at its highest speed.
PLAY = """async (seconds) => {
  const named = (name) => [...Bokeh.documents[0]._all_models.values()].find((m) => m.name == name)
  const scrubber = named('scrubber'), run = named('run'), title = named('scene-A').title
  named('speed').value = named('speed').end
  scrubber.value = 0
  await new Promise((resolve) => setTimeout(resolve, 1000))
  let pictures = 0
  title.properties.text.change.connect(() => { pictures += 1 })
  const from = scrubber.value, started = performance.now()
  run.active = true
  while (run.active && performance.now() - started < 1000 * seconds) {
    await new Promise(requestAnimationFrame)
  }
  const took = (performance.now() - started) / 1000
  run.active = false
  return [pictures / took, (scrubber.value - from) / took, named('speed').value]
}"""
PLAY_SECONDS = 5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=20)
    moves = parser.parse_args().moves
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "maxmargin", "lab", "--port", "0", "--no-browser"]
    started = time.perf_counter()
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as driver,
    ):
        assert server.stdout is not None
        address = server.stdout.readline().split()[2]
        print(f"start: {time.perf_counter() - started:.2f} s")
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(address)
        page.wait_for_function("() => window.Bokeh && Bokeh.documents.length")
        page.evaluate(NAMED)
        page.evaluate(WATCH)
        for sample in SAMPLES:
            _load(page, sample)
            for what, times in (
                ("a slider", _slid(page, moves)),
                ("a dragged point, the linear machine", _dragged(page, moves)),
            ):
                _print(what, sample, times)
            page.get_by_label("kernel").first.select_option(label="rbf")
            page.wait_for_timeout(3000)
            _print("a dragged point, the rbf kernel", sample, _dragged(page, moves))
            page.get_by_label("kernel").first.select_option(label="linear")
        page.get_by_label("data set").select_option(label=SAMPLES[0])
        page.get_by_label("algorithm").first.select_option(label="Perceptron")
        page.wait_for_timeout(5000)
        pictures, steps, speed = page.evaluate(PLAY, PLAY_SECONDS)
        print(
            f"playback of 200 points at {speed} steps/s: {steps:.0f} steps/s in "
            f"{pictures:.0f} pictures/s"
        )
        browser.close()
        server.terminate()


def _print(what: str, sample: str, times: list[float]) -> None:
    print(
        f"{what} on {sample.split()[1]} points: median {statistics.median(times):.0f} ms,"
        f" longest {max(times):.0f} ms of {len(times)}"
    )


def _load(page: Any, sample: str) -> None:
    """Load a sample, and wait until it is compiled for."""
    page.get_by_label("data set").select_option(label=sample)
    page.wait_for_timeout(5000)


def _slid(page: Any, moves: int) -> list[float]:
    """Return the milliseconds of every move of C."""
    page.evaluate(MOVE, -0.1)
    times = []
    for k in range(moves):
        page.wait_for_timeout(1000)
        times.append(page.evaluate(MOVE, 0.1 if k % 2 else -0.1))
    return times


def _dragged(page: Any, moves: int) -> list[float]:
    """Return the milliseconds from the mouse to the frame with the answer, one move at a time."""
    x, y = page.evaluate(GRIP)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 20, y + 20)  # short movements are clicks
    page.wait_for_timeout(1000)
    page.evaluate("frames_of_drag.length = 0")
    for k in range(moves):
        page.mouse.move(x + 2 * (k % 10), y + k % 7)
        page.wait_for_timeout(100)
    times: list[float] = page.evaluate("frames_of_drag")
    page.mouse.move(x, y)
    page.mouse.up()
    page.wait_for_timeout(1000)
    return times


if __name__ == "__main__":
    main()
