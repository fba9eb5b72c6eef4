"""Points and fits of the lab, without a browser."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document

from maxmargin.lab.algorithms import ALGORITHMS, Choice
from maxmargin.lab.fitting import Request, answered, recorded
from maxmargin.lab.page import Lab
from maxmargin.lab.points import checked

# Classifiers, and all.
KEYS = [key for key, algorithm in ALGORITHMS.items() if algorithm.has_classes]
ALL_KEYS = list(ALGORITHMS)


def never(step=None):
    return False


def points_of(n_classes=2, seed=0):
    """Return a few points of classes that overlap a little."""
    rng = np.random.default_rng(seed)
    codes = np.arange(12 * n_classes) % n_classes
    centres = np.array([(0.0, 0.0), (3.0, 1.0), (0.5, 3.5), (4.0, 4.0)])
    return checked((centres[codes] + rng.normal(0, 0.9, (codes.size, 2))).round(3), codes)


def fitted(key, points, **values):
    values = ALGORITHMS[key].settled(ALGORITHMS[key].defaults() | values)
    request = Request(points, key, values)
    found = answered(request, never)
    assert found.failure is None, found.failure
    return replace(found, **recorded(request, never)._asdict(), recorded=True)


@contextmanager
def page_alone():
    """Yield a page of the lab that no browser shows."""
    document = Document()
    page = Lab(document)
    for root in page.roots():
        document.add_root(root)
    yield page
    page.close()


def extremes(control):
    return control.options if isinstance(control, Choice) else (control.low, control.high)
