"""Draw the pictures of the README: ``python tools/make_pictures.py [FOLDER]`` (docs by default)."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

import maxmargin as mm


def main() -> None:
    """Draw a hard margin, a kernel machine, and five kinds of fruit told apart by lines."""
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


if __name__ == "__main__":
    main()
