"""Draw the pictures of the README: ``python tools/make_pictures.py [FOLDER]`` (docs by default).

That of the lab is a screenshot, for which playwright and Debian's chromium are needed.
"""

import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

import maxmargin as mm


def main() -> None:
    """Draw a hard margin, a kernel machine, and five kinds of fruit separated by lines."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs"
    figure, axes = plt.subplots(1, 3, figsize=(16, 4.6), layout="constrained")
    X, y = mm.datasets.load_six_points(return_X_y=True)
    hard = mm.SVC(kernel="linear", C=float("inf")).fit(X, y)
    mm.plots.boundary(hard, X, y, ax=axes[0], legend=False)
    X, y = make_moons(120, noise=0.22, random_state=3)
    soft = mm.SVC(C=3).fit(X, y)
    mm.plots.boundary(soft, X, y, ax=axes[1], legend=False)
    fruit = mm.datasets.load_fruit()
    X, y = fruit.data[:, 1:], fruit.target_names[fruit.target]
    five = mm.SVC(kernel="linear", C=10).fit(X, y)
    mm.plots.boundary(five, X, y, ax=axes[2], feature_names=fruit.feature_names[1:], legend=False)
    figure.savefig(folder / "boundaries.png", dpi=110)
    draw_lab(folder / "lab.png")


def draw_lab(path: Path) -> None:
    """Open the lab in a browser, compare two algorithms on two moons, and take a picture."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "maxmargin", "lab", "--port", "0", "--no-browser"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as p,
    ):
        assert server.stdout is not None
        address = server.stdout.readline().split()[2]
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(address)
        page.get_by_label("data set").select_option(label="moons")
        page.get_by_label("kernel").first.select_option(label="rbf")
        page.get_by_role("button", name="compare with a second").click()
        page.wait_for_timeout(3000)
        page.get_by_label("algorithm").nth(1).select_option(label="Pocket")
        page.wait_for_timeout(4000)
        page.screenshot(path=path)
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main()
