"""The points of the page: drawn, loaded or uploaded, up to a limit."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from .. import datasets
from ..arrays import Floats, Integers, MatrixLike
from ..estimators.registry import Family

MOST_POINTS = 2000
MOST_CLASSES = 4
MOST_BYTES = 2_000_000
MOST_LETTERS = 40
MOST_COORDINATE = 1e9


@dataclass(frozen=True, eq=False)
class Points:
    """Points in the plane and their classes.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
    codes : ndarray of int of shape (n,)
        0 to 3.
    names : tuple of str
        Names of the classes.
    axes : tuple of str
        Names of the coordinates.
    """

    X: Floats
    codes: Integers
    names: tuple[str, ...] = ("A", "B", "C", "D")
    axes: tuple[str, str] = ("x₁", "x₂")

    @property
    def n_classes(self) -> int:
        """Number of classes that have points."""
        return int(np.unique(self.codes).size)

    @property
    def labels(self) -> Any:
        """The names of the classes of the points."""
        return np.array(self.names)[self.codes]

    def training(self, family: Family) -> tuple[Floats, Any]:
        """Return X and y of a fit.

        y holds the classes, the second coordinate for a regression (X is the first alone), and is
        None for one class.
        """
        if family == "regression":
            return self.X[:, :1], self.X[:, 1]
        return self.X, None if family == "one-class" else self.labels

    def to_csv(self, *, classes: bool = True) -> str:
        """Return the points as a table with a header, with or without their classes."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*self.axes, *(["class"] if classes else [])])
        for row, name in zip(self.X.tolist(), self.labels.tolist(), strict=True):
            writer.writerow([*map(repr, row), *([name] if classes else [])])
        return out.getvalue()


def checked(X: MatrixLike, codes: Any, names: Any = (), axes: Any = ("x₁", "x₂")) -> Points:
    """Return points that the page can show; raise ValueError for others."""
    rows = np.asarray(X, dtype=np.float64).reshape(-1, 2)
    numbers = np.asarray(codes, dtype=np.int64).ravel()
    if len(rows) != len(numbers):
        raise ValueError(f"{len(rows)} points, {len(numbers)} classes: pass one class per point.")
    if len(rows) > MOST_POINTS:
        raise ValueError(f"The lab shows at most {MOST_POINTS} points, got {len(rows)}.")
    if not np.isfinite(rows).all() or (np.abs(rows) > MOST_COORDINATE).any():
        raise ValueError(f"Coordinates must be finite and at most {MOST_COORDINATE:,.0f}.")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < MOST_CLASSES):
        raise ValueError(f"Classes must be 0 to {MOST_CLASSES - 1}.")
    named = _different([str(name) for name in names][:MOST_CLASSES])
    across, up = (str(axis)[:MOST_LETTERS] for axis in axes)
    return Points(rows, numbers, named, (across, up))


def _different(names: list[str]) -> tuple[str, ...]:
    """Return a short distinct name for each of four classes."""
    found: list[str] = []
    for name in names:
        short, number = name[:MOST_LETTERS], 2
        while short in found:
            short, number = f"{name[: MOST_LETTERS - 4]} {number}", number + 1
        found.append(short)
    spare = [letter for letter in "ABCDEFGH" if letter not in found]
    return (*found, *spare[: MOST_CLASSES - len(found)])


# Samples ---------------------------------------------------------------------------------------


def _of(load: Callable[..., Any]) -> Points:
    bunch = load()
    return checked(bunch.data, (bunch.target > 0).astype(int), ("-1", "1"))


def _fruit(first: str, second: str) -> Points:
    fruit = datasets.load_fruit()
    kinds = fruit.target_names[fruit.target]
    rows = np.isin(kinds, (first, second))
    names, codes = np.unique(kinds[rows], return_inverse=True)
    columns = [fruit.feature_names.index(name) for name in ("width_cm", "height_cm")]
    return checked(fruit.data[rows][:, columns], codes, names, ("width_cm", "height_cm"))


def _iris(first: int, second: int) -> Points:
    from sklearn.datasets import load_iris

    iris = load_iris()
    rows = np.isin(iris.target, (first, second))
    codes = (iris.target[rows] == second).astype(int)
    names = iris.target_names[[first, second]]
    return checked(iris.data[rows][:, 2:], codes, names, ("petal length", "petal width"))


def _all_iris() -> Points:
    from sklearn.datasets import load_iris

    iris = load_iris()
    return checked(
        iris.data[:, 2:], iris.target, iris.target_names, ("petal length", "petal width")
    )


def _generated(name: str, n: int, **options: Any) -> Points:
    from sklearn import datasets as generators

    X, codes = getattr(generators, name)(n, random_state=7, **options)
    return checked(X.round(3), codes)


def _on_a_line(x: Floats, y: Floats) -> Points:
    """Return points (x, y) of a regression; all are of one class."""
    return checked(np.column_stack([x, y]).round(3) + 0.0, np.zeros(len(x)), axes=("x", "y"))


def _sinc() -> Points:
    rng = np.random.default_rng(7)
    x = np.sort(rng.uniform(-3, 3, 80))
    return _on_a_line(x, np.sinc(x) + rng.normal(0, 0.08, x.size))


def _noisy_sine() -> Points:
    rng = np.random.default_rng(7)
    x = np.linspace(0, 4 * np.pi, 100)
    return _on_a_line(x, 2 * np.sin(x) + rng.normal(0, 0.4, x.size))


def _line_with_outliers() -> Points:
    rng = np.random.default_rng(7)
    x = np.linspace(0, 10, 40)
    y = 0.5 * x + 1 + rng.normal(0, 0.2, x.size)
    y[[3, 8, 11]] += 5.0
    y[[30, 36]] -= 4.0
    return _on_a_line(x, y)


def _of_one_class(X: Floats) -> Points:
    return checked(X.round(3) + 0.0, np.zeros(len(X)))


def _blob_with_outliers() -> Points:
    rng = np.random.default_rng(7)
    return _of_one_class(np.vstack([rng.normal(0, 1, (90, 2)), rng.uniform(-6, 6, (10, 2))]))


def _ring() -> Points:
    rng = np.random.default_rng(7)
    angle, radius = rng.uniform(0, 2 * np.pi, 120), rng.normal(3, 0.3, 120)
    return _of_one_class(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))


def _two_blobs() -> Points:
    rng = np.random.default_rng(7)
    centres = np.repeat([[-2.5, -1.0], [2.5, 1.5]], 50, axis=0)
    return _of_one_class(centres + rng.normal(0, 0.8, centres.shape))


OF_CLASSES: dict[str, Callable[[], Points]] = {
    "six points": partial(_of, datasets.load_six_points),
    "AND": partial(_of, datasets.load_and),
    "XOR": partial(_of, datasets.load_xor),
    **{
        f"fruit: {a}, {b}": partial(_fruit, a, b)
        for a, b in combinations(("apple", "banana", "lemon", "orange", "pear"), 2)
    },
    "moons": partial(_generated, "make_moons", 120, noise=0.2),
    "circles": partial(_generated, "make_circles", 120, noise=0.1, factor=0.5),
    "blobs": partial(_generated, "make_blobs", 90, centers=3, cluster_std=1.5),
    "four blobs": partial(_generated, "make_blobs", 120, centers=4, cluster_std=1.8),
    "blobs, 200": partial(_generated, "make_blobs", 200, centers=2, cluster_std=2.5),
    "blobs, 2,000": partial(_generated, "make_blobs", 2000, centers=2, cluster_std=2.5),
    "iris: setosa, versicolor": partial(_iris, 0, 1),
    "iris: setosa, virginica": partial(_iris, 0, 2),
    "iris: versicolor, virginica": partial(_iris, 1, 2),
    "iris, all": _all_iris,
}
OF_A_LINE: dict[str, Callable[[], Points]] = {
    "sinc": _sinc,
    "noisy sine": _noisy_sine,
    "line with outliers": _line_with_outliers,
}
OF_ONE_CLASS: dict[str, Callable[[], Points]] = {
    "blob with outliers": _blob_with_outliers,
    "ring": _ring,
    "two blobs": _two_blobs,
}
SAMPLES = OF_CLASSES | OF_A_LINE | OF_ONE_CLASS
