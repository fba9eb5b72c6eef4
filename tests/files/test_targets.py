"""Targets of a regression: numbers as they are, and errors that name the row and the value."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from maxmargin.files import DataFileError, batches, read
from tests.helpers.data_files import X, packed_npz, parquet


def numbers(path, **options):
    return read(path, "y", targets="numbers", **options).y


def fault(path):
    """Return the error of reading a file, which is that of reading it in batches."""
    with pytest.raises(DataFileError) as whole:
        numbers(path)
    with pytest.raises(DataFileError) as parts:
        list(batches(path, ["a"], target="y", labelled=True, targets="numbers"))
    assert str(parts.value) == str(whole.value)
    return str(whole.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,y\n1,1\n2,2\n3,3\n", [1, 2, 3]),
        ("a,y\n1,1.5\n2, -2e3 \n\n3,+.25\n", [1.5, -2000, 0.25]),
        ("w,y\nred,007\nblue,1e-300\n", [7, 1e-300]),
    ],
)
def test_numbers_are_numbers(put, content, expected):
    path = put("t.csv", content)
    y = numbers(path)
    assert y.dtype == np.float64
    assert_array_equal(y, expected)
    (part,) = batches(path, target="y", labelled=True, targets="numbers")
    assert_array_equal(part.y, expected)


def test_every_format_gives_the_same_numbers(put):
    y = np.array([1.5, -2.0, 0.1])
    frame = pl.DataFrame({"a": X[:, 0], "y": y})
    assert_array_equal(numbers(put("t.parquet", parquet(frame))), y)
    assert_array_equal(numbers(put("t.npz", packed_npz(X=X, y=y))), y)
    assert_array_equal(numbers(put("w.npz", packed_npz(X=X, y=[3, 1, 2]))), [3, 1, 2])
    path = put("t.svm", "1.5 1:2\n-2 2:1\n0.1 1:1\n")
    assert_array_equal(read(path, targets="numbers").y, y)


def test_pieces_are_joined(put, small_pieces):
    path = put("t.csv", "a,y\n" + "".join(f"{k},{k / 8}\n" for k in range(3000)))
    expected = np.arange(3000) / 8
    assert_array_equal(numbers(path), expected)
    parts = list(batches(path, ["a"], target="y", labelled=True, targets="numbers"))
    assert len(parts) > 1
    assert_array_equal(np.concatenate([part.y for part in parts]), expected)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("oops", "must be a finite number, got 'oops': correct it, or use a classifier"),
        ("true", "got 'true'"),
        ("inf", "got inf"),
        ("1e200", "got 1e+200: rescale the targets"),
        ('"1,5"', "got '1,5': pass --decimal"),
        ("", "the target is missing: every row needs a number"),
        ("NA", "the target is missing"),
        ("nan", "the target is missing"),
    ],
)
def test_the_line_and_the_value_are_named(put, value, said):
    message = fault(put("t.csv", f"a,y\n1,1.5\n\n2,{value}\n3,\n"))
    assert "t.csv: line 4, column 'y': " in message
    assert said in message


def test_text_after_the_lines_that_types_are_inferred_from(put):
    message = fault(put("t.csv", "a,y\n" + "1,2\n3,4.5\n" * 11_000 + "1,late\n"))
    assert "line 22002, column 'y': the target must be a finite number, got 'late'" in message


def test_rows_of_other_formats_are_named(put):
    for y, said in (([1.0, None, 2.0], "row 2, column 'y': the target is missing"),
                    ([True, False, True], "row 1, column 'y'"),
                    (["u", "v", "w"], "got 'u'")):  # fmt: skip
        assert said in fault(put("t.parquet", parquet(pl.DataFrame({"a": X[:, 0], "y": y}))))
    for y, said in (([1, np.nan, 2], "y, row 2: the target is missing"),
                    ([1, 2, -np.inf], "y, row 3: the target must be a finite number, got -inf"),
                    (["u", "v", "w"], "got 'u'"), ([True, False, True], "got True")):  # fmt: skip
        with pytest.raises(DataFileError, match=r"t\.npz: ") as error:
            numbers(put("t.npz", packed_npz(X=X, y=y)))
        assert said in str(error.value)


def test_numbers_for_classes_are_given_the_advice(put):
    with pytest.raises(DataFileError, match=r"got 1\.5: .* a regression \(SVR, --model svr\)"):
        read(put("t.csv", "a,y\n1,1.5\n2,2.5\n"), "y")
    many = read(put("t.csv", "a,y\n" + "".join(f"{k},{k}\n" for k in range(50))), "y")
    with pytest.raises(DataFileError, match=r"50 distinct values in 50 rows: .* --model svr"):
        many.labels_to_learn()
    words = read(put("t.csv", "a,y\n" + "".join(f"{k},w{k}\n" for k in range(50))), "y")
    with pytest.raises(DataFileError, match=r"in 50 rows: pass the column of classes\."):
        words.labels_to_learn()


def test_a_target_that_is_left_out(put):
    path = put("t.csv", "a,b,y\n1,2,\n3,4,1.5\n5,6,u\n")
    table = read(path, "y", targets="none")
    assert table.y is None
    assert table.names == ["a", "b"]
    assert table.target == "y"
    assert read(path, targets="none", drop="y").names == ["a", "b"]
    (part,) = batches(path, target="y", targets="none")
    assert part.y is None
    assert part.names == ["a", "b"]
    assert read(put("t.npz", packed_npz(X=X, y=[1, np.nan, 2])), targets="none").y is None
    assert read(put("t.svm", "1.5 1:2\n-2 2:1\n"), targets="none").y is None
    with pytest.raises(DataFileError, match="there is no target column 'z'"):
        read(path, "z", targets="none")


def test_labels_that_may_be_absent(put):
    path = put("t.csv", "a,y\n1,u\n3,\n")
    (part,) = batches(path, ["a"], target="y", labelled="if present")
    assert part.y.tolist() == ["u", ""]
    (part,) = batches(path, ["a"], target="z", labelled="if present")
    assert part.y is None
    (part,) = batches(put("t.npz", packed_npz(X=X)), labelled="if present")
    assert part.y is None
    (part,) = batches(put("t.npz", packed_npz(X=X, y=[1.0, np.nan, 2.5])), labelled="if present")
    assert part.y.tolist() == ["1", "", "2.5"]
    (part,) = batches(put("t.svm", "0 1:2\n-1 2:1\n"), labelled="if present")
    assert part.y.tolist() == ["0", "-1"]


def test_another_kind_of_target_is_refused(put):
    path = put("t.csv", "a,y\n1,2\n3,4\n")
    with pytest.raises(ValueError, match="targets must be one of classes, numbers, none; got"):
        read(path, "y", targets="words")
    with pytest.raises(ValueError, match="targets must be one of"):
        next(batches(path, targets="words"))
