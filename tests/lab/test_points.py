"""Points of the lab: samples, uploads, limits."""

import numpy as np
import pytest

import maxmargin as mm

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab.points import (
    MOST_POINTS,
    OF_A_LINE,
    OF_CLASSES,
    OF_ONE_CLASS,
    SAMPLES,
    checked,
)
from maxmargin.lab.uploads import chosen_columns, read_upload

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", list(OF_CLASSES))
def test_samples_load_and_travel_as_csv(name):
    points = SAMPLES[name]()
    assert 2 <= points.n_classes <= 4
    assert 0 < len(points.X) <= MOST_POINTS
    assert len(set(points.names[: points.n_classes])) == points.n_classes
    table = read_upload(points.to_csv().encode())
    back = chosen_columns(table, *table.guessed())
    np.testing.assert_array_equal(back.X, points.X)
    assert back.labels.tolist() == points.labels.tolist()
    assert back.axes == points.axes


@pytest.mark.parametrize("name", [*OF_A_LINE, *OF_ONE_CLASS])
def test_samples_without_classes_travel_as_two_columns(name):
    points = SAMPLES[name]()
    assert points.n_classes == 1
    assert 30 <= len(points.X) <= MOST_POINTS
    content = points.to_csv(classes=False).encode()
    table = read_upload(content, classes=False)
    assert table.header == points.axes
    np.testing.assert_array_equal(chosen_columns(table, *table.guessed()[:2]).X, points.X)
    with pytest.raises(ValueError, match="3 columns or more"):
        read_upload(content)


def test_the_coordinates_are_what_a_family_learns_from():
    points = SAMPLES["six points"]()
    X, y = points.training("regression")
    np.testing.assert_array_equal(np.column_stack([X, y]), points.X)
    X, y = points.training("one-class")
    assert X is points.X
    assert y is None
    assert points.training("machine")[1].tolist() == points.labels.tolist()


def test_plus_one_is_the_positive_class():
    points = SAMPLES["six points"]()
    model = mm.SVC(kernel="linear").fit(points.X, points.labels)
    positive = model.decision_function(points.X) > 0
    np.testing.assert_array_equal(points.labels == "1", positive)


@pytest.mark.parametrize(
    ("X", "codes", "words"),
    [
        ([[0, 0]], [0, 1], "one class per point"),
        (np.zeros((MOST_POINTS + 1, 2)), np.zeros(MOST_POINTS + 1), "at most 2000"),
        ([[0, np.nan]], [0], "must be finite"),
        ([[0, 1e10]], [0], "at most 1,000,000,000"),
        ([[0, 0]], [4], "0 to 3"),
        ([[0, 0]], [-1], "0 to 3"),
    ],
)
def test_points_beyond_the_limits_are_refused(X, codes, words):
    with pytest.raises(ValueError, match=words):
        checked(X, codes)


def test_names_of_classes_differ():
    """Classes that a file calls C and D leave other names for what is drawn besides."""
    assert len(set(checked([[0, 0], [1, 1]], [0, 1], ("C", "D")).names)) == 4
