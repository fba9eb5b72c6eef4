"""Files that are uploaded: what is refused, and with which words."""

import pytest

from maxmargin.lab.points import MOST_BYTES, MOST_POINTS
from maxmargin.lab.uploads import Table, chosen_columns, read_upload


def test_long_names_of_classes_differ():
    long = "a" * 50
    table = read_upload(f"x,y,c\n0,0,{long}1\n1,1,{long}2\n2,2,{long}2\n".encode())
    points = chosen_columns(table, "x", "y", "c")
    assert len(set(points.labels.tolist())) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \n\n", "is empty"),
        (b"x,y,c\n", "at least two rows of points, got 0"),
        (b"x,y,c\n1,2,A\n", "at least two rows of points, got 1"),
        (b"x\n1\n2\n", "3 columns or more .* got 1; commas"),
        (b"x y c\n1 2 A\n3 4 B\n", "3 columns or more .* got 1; commas"),
        (b"x,y,x\n1,2,A\n3,4,B\n", "names a column twice"),
        (b"x,y,c\n1,u,A\n2,v,B\n", "two columns of numbers, got 1: 'x'"),
        (b"x,y,c\na,b,c\n", "at least two rows"),
        (b"x,y,c\na,b,c\nd,e,f\n", "two columns of numbers, got 0"),
        (b"x,y,c\n1,2,A\n3,4,\0\n", "must be text"),
        (b"x,y,c\n1,2,A\n3,B\n", "Line 3 has 2 fields"),
        (b"x,c\n1,A\n2,B\n", "3 columns or more"),
        (b"x,y,c\n" + b"1,2,A\n" * (MOST_POINTS + 2), "2000 rows, got 2002"),
        (b"1,2,A\n" * (MOST_POINTS + 2), "2000 rows, got 2002"),
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
    assert table.header == ("x", "y", "c")
    assert table.rows == (("1", "2", "A"), ("3", "4", "B"))


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
    rows = [(str(k), "2", "AB"[k % 2], "1" if k == 0 else "two", "A", str(k)) for k in range(5)]
    table = Table(("x", "y", "c", "t", "one", "many"), tuple(rows), (2, 3, 4, 5, 6))
    with pytest.raises(ValueError, match=words):
        chosen_columns(table, *chosen)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("x,y,c\n1,2,A\n3,4,B\n", ("x", "y", "c"), id="last"),
        pytest.param("kind,x,y\nA,1,2\nB,3,4\n", ("x", "y", "kind"), id="first"),
        pytest.param("x,kind,y\n1,A,2\n3,B,4\n", ("x", "y", "kind"), id="between"),
        pytest.param("id,kind,x,y\nu,A,1,2\nv,B,3,4\nw,A,3,4\nz,A,3,4\nt,B,3,4\n",
                     ("x", "y", "kind"), id="names-of-rows"),
        pytest.param("class,x,y\n0,1,2\n1,3,4\n", ("x", "y", "class"), id="numbers-named"),
        pytest.param("x,t,y\n1,0,2\n3,1,4\n5,0,6\n7,1,8\n9,1,10\n", ("x", "y", "t"),
                     id="few-numbers"),
        pytest.param("x,t,class\n1,0,5\n3,1,5\n5,0,5\n", ("x", "t", "class"), id="named-of-one"),
        pytest.param("1,2,A\n3,4,B\n", ("column 1", "column 2", "column 3"), id="no-header"),
        pytest.param("A,1,2\nB,3,4\n", ("column 2", "column 3", "column 1"), id="no-header-first"),
        pytest.param("x,y,a,b\n1,2,9,8\n3,4,7,6\n5,6,5,4\n7,8,3,2\n9,10,1,0\n", ("x", "y", "b"),
                     id="no-classes"),
    ],
)  # fmt: skip
def test_the_columns_of_a_file_are_guessed(content, expected):
    table = read_upload(content.encode())
    assert table.guessed() == expected


def test_a_file_without_header_keeps_its_first_row():
    table = read_upload(b"1,2,A\n3,4,B\n\n5,6,B\n")
    points = chosen_columns(table, *table.guessed())
    assert points.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert points.labels.tolist() == ["A", "B", "B"]
    with pytest.raises(ValueError, match="Line 3: 'z'"):
        chosen_columns(read_upload(b"1,2,A\n3,4,B\nz,6,B\n"), "column 1", "column 2", "column 3")


def test_decimal_commas_are_named():
    with pytest.raises(ValueError, match=r"Line 2: '1,5'.* write a decimal point"):
        chosen_columns(read_upload(b"x;y;c\n1,5;2;A\n3;4;B\n4;4;B\n"), "x", "y", "c")


def test_classes_that_are_missing_are_refused():
    with pytest.raises(ValueError, match="Line 3 has no class in column 'c'"):
        chosen_columns(read_upload(b"x,y,c\n1,2,A\n3,4,\n5,6,B\n"), "x", "y", "c")


def test_lines_of_an_upload_are_counted_with_blank_ones():
    table = read_upload(b"x,y,class\n\n1,2,a\nzz,4,b\n")
    with pytest.raises(ValueError, match="Line 4: 'zz'"):
        chosen_columns(table, "x", "y", "class")
    table = read_upload(b"x,y,class\n\n1,2,a\n3,4,b\n")
    assert chosen_columns(table, "x", "y", "class").X.tolist() == [[1, 2], [3, 4]]
