"""Points that are dragged, without a browser."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab.dragging import with_moved
from maxmargin.lab.points import SAMPLES
from tests.helpers.lab import page_alone


@pytest.fixture
def lab():
    with page_alone() as page:
        page.load(page.points)
        yield page


def test_dragged_points_are_fitted_and_undone_at_once(lab):
    before, past = lab.points, list(lab.memory.past)
    for x in (1.0, 2.0, 3.0):
        lab.dragging.moved.data = {"k": [1], "x": [x], "y": [0.5]}
        asked = lab.panels[0].request.points
        assert asked.X[1].tolist() == [x, 0.5]
        np.testing.assert_array_equal(np.delete(asked.X, 1, axis=0), np.delete(before.X, 1, axis=0))
    assert lab.points is before
    assert list(lab.memory.past) == past
    released = {key: list(values) for key, values in lab.source.data.items()}
    released["x"][1], released["y"][1] = 3.0, 0.5
    lab.source.data = released  # what the tool sends in the end
    assert lab.points.X[1].tolist() == [3.0, 0.5]
    assert len(lab.memory.past) == len(past) + 1
    lab.undo()
    np.testing.assert_array_equal(lab.points.X, before.X)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"k": [], "x": [], "y": []},
        {"k": [6], "x": [0.0], "y": [0.0]},
        {"k": [-1], "x": [0.0], "y": [0.0]},
        {"k": [0], "x": [float("nan")], "y": [0.0]},
        {"k": [0], "x": [1e300], "y": [0.0]},
        {"k": [0], "x": ["<b>"], "y": [0.0]},
        {"k": [0], "x": [0.0, 1.0], "y": [0.0]},
        {"k": [0, 1], "x": [0.0], "y": [0.0]},
    ],
)
def test_foreign_positions_are_refused(data):
    assert with_moved(SAMPLES["six points"](), data) is None


def test_the_browser_hears_of_positions_that_are_refused(lab):
    """It sends the next ones after an answer."""
    request, (answered,) = lab.panels[0].request, lab.dragging.moved.tags
    lab.dragging.moved.data = {"k": [99], "x": [0.0], "y": [0.0]}
    assert lab.panels[0].request is request
    assert lab.dragging.moved.tags == [answered + 1]
