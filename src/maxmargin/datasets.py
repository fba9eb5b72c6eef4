"""Bundled data sets, loaded like those of scikit-learn: six points, XOR, AND and fruits."""

from __future__ import annotations

import csv
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

_SIGN_NAMES = ("-1", "+1")

_SIX_POINTS = """Six points in the plane, three of each class, linearly separable.

The maximum-margin plane is w = (-1/3, 1/5), b = 2/15, with the dual solution
alpha = (8/225, 0, 1/25, 0, 17/225, 0): points 1, 3 and 5 are the support vectors and the
margin band is 2/||w|| = 5.144957554... wide.
"""

_XOR = """The four corners (+-1, +-1); the class is the sign of x1 * x2.

No plane separates them. With the kernel (<x, z> + 1)^2 the maximum-margin machine has
alpha = 1/8 for all four points, dual value 1/4 and decision function g(x) = x1 * x2.
See Duda, Hart, Stork, Pattern Classification, section 5.11.
"""

_AND = """The truth table of AND: the corners of the unit square, of which (1, 1) alone is +1.

The classes are linearly separable.
"""

_FRUIT = """Synthetic measurements of 150 fruits of five kinds, 30 of each.

This table is synthetic and holds no measurements. The program tools/make_fruit.py of the maxmargin
sources generates it with a fixed seed, from means and spreads that are plausible and give both
separable and overlapping pairs.

Features: mass_g (g), width_cm and height_cm (cm).
Classes: apple, banana, lemon, orange, pear.

Linearly separable pairs: apple-banana, apple-lemon, banana-lemon, banana-orange, banana-pear,
lemon-orange. The pairs apple-orange, apple-pear, lemon-pear and orange-pear overlap.
"""


def load_six_points(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the six points whose maximum-margin plane is w = (−1/3, 1/5), b = 2/15.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether data are a pandas DataFrame and target a Series.

    Returns
    -------
    Bunch
        With data of shape (6, 2), target of shape (6,) holding +1 and −1, frame, feature_names,
        target_names and DESCR; or the tuple ``(data, target)``.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels*, section 7.3, for the problem these points solve.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> X[0].tolist(), y.tolist()
    ([1.0, 6.0], [1, 1, 1, -1, -1, -1])
    """
    points = [(1, 6), (1, 10), (4, 11), (5, 2), (7, 6), (10, 4)]
    return _signed(points, [1, 1, 1, -1, -1, -1], _SIX_POINTS, return_X_y, as_frame)


def load_xor(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the four points of XOR, y = x₁x₂ on the corners (±1, ±1): not linearly separable.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether data are a pandas DataFrame and target a Series.

    Returns
    -------
    Bunch
        With data of shape (4, 2), target of shape (4,) holding +1 and −1, frame, feature_names,
        target_names and DESCR; or the tuple ``(data, target)``.

    References
    ----------
    Duda, Hart, Stork, *Pattern Classification*, section 5.11, example 2.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> bool((y == X[:, 0] * X[:, 1]).all())
    True
    """
    points = [(1, 1), (1, -1), (-1, -1), (-1, 1)]
    return _signed(points, [1, -1, 1, -1], _XOR, return_X_y, as_frame)


def load_and(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the truth table of AND on {0, 1}²: +1 at (1, 1), −1 elsewhere; linearly separable.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether data are a pandas DataFrame and target a Series.

    Returns
    -------
    Bunch
        With data of shape (4, 2), target of shape (4,) holding +1 and −1, frame, feature_names,
        target_names and DESCR; or the tuple ``(data, target)``.

    References
    ----------
    Duda, Hart, Stork, *Pattern Classification*, section 5.4 (the linearly separable case).

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.datasets.load_and().target.tolist()
    [-1, -1, -1, 1]
    """
    points = [(0, 0), (0, 1), (1, 0), (1, 1)]
    return _signed(points, [-1, -1, -1, 1], _AND, return_X_y, as_frame)


def load_fruit(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the synthetic table of 150 fruits: mass, width and height of five kinds.

    ``tools/make_fruit.py`` of the project generates the table; it holds no measurements.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether data are a pandas DataFrame and target a Series.

    Returns
    -------
    Bunch
        With data of shape (150, 3), target of shape (150,) holding indices into target_names,
        frame, feature_names, target_names and DESCR; or the tuple ``(data, target)``.

    Examples
    --------
    >>> import maxmargin as mm
    >>> fruit = mm.datasets.load_fruit()
    >>> fruit.data.shape, fruit.target_names.tolist()
    ((150, 3), ['apple', 'banana', 'lemon', 'orange', 'pear'])
    """
    header, *table = csv.reader(fruit_file().read_text(encoding="ascii").splitlines())
    data = np.array([row[:-1] for row in table], dtype=np.float64)
    names, target = np.unique([row[-1] for row in table], return_inverse=True)
    return _bunch(data, target, header[:-1], names, _FRUIT, return_X_y, as_frame)


def fruit_file() -> Traversable:
    """Return the path of the bundled table of fruits, to try the command line on.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.datasets.fruit_file().name
    'fruit.csv'
    """
    return resources.files("maxmargin") / "data" / "fruit.csv"


def _signed(
    points: list[tuple[int, int]],
    labels: list[int],
    description: str,
    return_X_y: bool,
    as_frame: bool,
) -> Any:
    data = np.array(points, dtype=np.float64)
    names = np.array(_SIGN_NAMES)
    return _bunch(data, np.array(labels), ["x1", "x2"], names, description, return_X_y, as_frame)


def _bunch(
    data: Any,
    target: Any,
    feature_names: list[str],
    target_names: NDArray[np.str_],
    description: str,
    return_X_y: bool,
    as_frame: bool,
) -> Any:
    frame = None
    if as_frame:
        frame = _frame(data, target, feature_names)
        data, target = frame[feature_names], frame["target"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=target_names,
        DESCR=description,
    )


def _frame(data: NDArray[Any], target: NDArray[Any], feature_names: list[str]) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas, which is not installed: pip install pandas"
        ) from error
    frame = pd.DataFrame(data, columns=feature_names)
    frame["target"] = target
    return frame
