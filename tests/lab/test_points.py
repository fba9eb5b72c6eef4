"""Points of the lab: samples, uploads, limits."""

import numpy as np
import pytest

import maxmargin as mm

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab.points import (
    MOST_BYTES,
    MOST_POINTS,
    OF_A_LINE,
    OF_CLASSES,
    OF_ONE_CLASS,
    SAMPLES,
    checked,
    chosen_columns,
    read_upload,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", list(OF_CLASSES))
def test_samples_load_and_travel_as_csv(name):
    points = SAMPLES[name]()
    assert 2 <= points.n_classes <= 4
    assert 0 < len(points.X) <= MOST_POINTS
    assert len(set(points.names[: points.n_classes])) == points.n_classes
    table = read_upload(points.to_csv().encode())
    back = chosen_columns(table, *table[0])
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
    assert table[0] == list(points.axes)
    np.testing.assert_array_equal(chosen_columns(table, *table[0]).X, points.X)
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
        ([[0, 1e10]], [0], "1e9"),
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


def test_long_names_of_classes_differ():
    long = "a" * 50
    table = read_upload(f"x,y,c\n0,0,{long}1\n1,1,{long}2\n2,2,{long}2\n".encode())
    points = chosen_columns(table, "x", "y", "c")
    assert len(set(points.labels.tolist())) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must have a header"),
        (b"x,y,c\n1,2,A\n", "a header and at least two rows"),
        (b"x,y,c\n1,2,A\n3,B\n", "Line 3 has 2 fields"),
        (b"x,c\n1,A\n2,B\n", "3 columns or more"),
        (b"x,y,c\n" * (MOST_POINTS + 3), "2000 rows, got 2002"),
        (b"a" * (MOST_BYTES + 1), "bytes"),
        (b"\xff\xfex\x00,\x00", "UTF-8"),
        ("x,y,c\n1,2,A\n3,4,ä\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_bad_uploads_are_refused(content, words):
    with pytest.raises(ValueError, match=words):
        read_upload(content)


def test_one_column_is_too_few():
    with pytest.raises(ValueError, match=r"2 columns or more \(x and y\), got 1"):
        read_upload(b"x\n1\n2\n", classes=False)


def test_a_field_without_end_is_refused():
    with pytest.raises(ValueError, match="field"):
        read_upload(b'x,y,c\n1,2,"' + b"a\n" * 100_000)


def test_the_line_of_a_file_is_told_as_an_editor_counts_it():
    with pytest.raises(ValueError, match="Line 5"):
        read_upload(b"x,y,c\n1,2,A\n\n3,4,B\n5,B\n")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_uploads_are_separated_by_what_they_use(separator):
    lines = ["\ufeffx,y,c", "1,2,A", "3,4,B", ""]
    table = read_upload("\r\n".join(lines).replace(",", separator).encode())
    assert table == [["x", "y", "c"], ["1", "2", "A"], ["3", "4", "B"]]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (("x", "x", "c"), "three different"),
        (("x", "z", "c"), "no column 'z'"),
        (("x", "t", "c"), "Line 3: 'two' in column 't' is not a number"),
        (("x", "y", "one"), "2 to 4 classes, got 1"),
        (("x", "y", "many"), "2 to 4 classes, got 5"),
        (("x", "x"), "two different"),
        (("x", "t"), "Line 3: 'two'"),
    ],
)
def test_bad_columns_are_refused(chosen, words):
    table = [["x", "y", "c", "t", "one", "many"]]
    table += [[str(k), "2", "AB"[k % 2], "1" if k == 0 else "two", "A", str(k)] for k in range(5)]
    with pytest.raises(ValueError, match=words):
        chosen_columns(table, *chosen)
