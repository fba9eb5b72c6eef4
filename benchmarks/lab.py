"""How soon the lab answers: its start, and a slider moved on 200 and on 2,000 points.

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
# From the key to the certificate of the new answer, on the page's own clock.
MOVE = """async (key) => {
  const named = (name) => [...Bokeh.documents[0]._all_models.values()].find((m) => m.name == name)
  const slider = named('C-A'), proof = named('proof-A')
  const started = performance.now()
  const answered = new Promise((resolve) => proof.properties.text.change.connect(resolve))
  slider.value += key
  await answered
  return performance.now() - started
}"""


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
        for sample in SAMPLES:
            times = _moved(page, sample, moves)
            print(
                f"a slider on {sample.split()[1]} points: median {statistics.median(times):.0f} ms,"
                f" longest {max(times):.0f} ms of {moves} moves"
            )
        browser.close()
        server.terminate()


def _moved(page: Any, sample: str, moves: int) -> list[float]:
    """Return the milliseconds of every move of C, once the sample is there and compiled for."""
    page.get_by_label("samples").select_option(label=sample)
    page.wait_for_timeout(5000)
    page.evaluate(MOVE, -0.1)
    times = []
    for k in range(moves):
        page.wait_for_timeout(1000)
        times.append(page.evaluate(MOVE, 0.1 if k % 2 else -0.1))
    return times


if __name__ == "__main__":
    main()
