"""Draw the synthetic fruit table of `maxmargin.datasets.load_fruit`.

    python tools/make_fruit.py [path]

Widths and heights are normal, and a fruit's mass is density · π/6 · width² · height, that of an
ellipsoid, times a normal factor. The numbers are invented, not measured. Only ``random.random``
is drawn from, the one generator whose stream Python promises to keep.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import NamedTuple, TextIO

SEED = 1943
ROWS_PER_FRUIT = 30
HEADER = ("mass_g", "width_cm", "height_cm", "fruit")
TARGET = Path(__file__).resolve().parents[1] / "src" / "maxmargin" / "data" / "fruit.csv"


class Fruit(NamedTuple):
    """Means and standard deviations of one kind of fruit; density in g/cm³ of the ellipsoid."""

    name: str
    width: NormalDist
    height: NormalDist
    density: NormalDist


FRUITS = (
    Fruit("apple", NormalDist(7.4, 0.45), NormalDist(6.9, 0.45), NormalDist(0.85, 0.04)),
    Fruit("banana", NormalDist(3.6, 0.25), NormalDist(18.5, 1.40), NormalDist(0.98, 0.05)),
    Fruit("lemon", NormalDist(5.6, 0.35), NormalDist(7.6, 0.50), NormalDist(0.92, 0.04)),
    Fruit("orange", NormalDist(7.5, 0.45), NormalDist(7.2, 0.45), NormalDist(0.89, 0.04)),
    Fruit("pear", NormalDist(6.7, 0.45), NormalDist(8.7, 0.75), NormalDist(0.86, 0.05)),
)


def write_table(stream: TextIO) -> None:
    """Write the whole table as CSV, the same bytes every time."""
    rng = Random(SEED)
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(HEADER)
    for fruit in FRUITS:
        for _ in range(ROWS_PER_FRUIT):
            width, height, density = (
                normal.inv_cdf(rng.random())
                for normal in (fruit.width, fruit.height, fruit.density)
            )
            mass = density * math.pi / 6 * width**2 * height
            table.writerow((f"{mass:.1f}", f"{width:.2f}", f"{height:.2f}", fruit.name))


def main() -> None:
    """Write the table to the path given, or to the package's data folder."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    with target.open("w", encoding="ascii", newline="") as stream:
        write_table(stream)


if __name__ == "__main__":
    main()
