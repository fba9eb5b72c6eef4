"""Data files: what is read is what is written, and what is wrong is named by file, line, column."""

import bz2
import datetime
import gzip
import io
import os
import pickle
import subprocess
import sys
import tempfile
import tracemalloc

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import maxmargin as mm
from maxmargin.files import DataFileError, Table, batches, read, tabular
from maxmargin.files.reading import FORMATS, SUFFIXES

ROWS = [(1.5, -2.0, "x"), (3.0, 4.25, "z"), (0.0, 1e-3, "x")]
X = np.array([row[:2] for row in ROWS])
Y = np.array([row[2] for row in ROWS])


def text(separator=",", header=True, end="\n"):
    lines = [["a", "b", "y"]] if header else []
    lines += [[repr(v) if isinstance(v, float) else v for v in row] for row in ROWS]
    return end.join(separator.join(line) for line in lines) + end


@pytest.fixture
def put(tmp_path):
    """Write a file, and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def packed_npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def parquet(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def refused(path, target="y", **options):
    """Return the message of the refusal, which names the file in one line."""
    with pytest.raises(DataFileError) as caught:
        read(path, target, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


# The same table in every format -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("t.csv", text(), {}),
        ("T.CSV", text(), {}),
        ("t.csv", text(end="\r\n"), {}),
        ("t.csv", "\ufeff" + text(), {}),
        ("t.csv", text().rstrip("\n"), {}),
        ("t.csv", "\n" + text().replace("\n", "\n\n"), {}),
        ("t.csv", text(";"), {"separator": ";"}),
        ("t.csv", text("\t"), {"format": "tsv"}),
        ("t.csv", text(header=False), {"header": False, "target": "-1"}),
        ("t.tsv", text("\t"), {}),
        ("t.tab", text("\t"), {}),
        ("t.csv.gz", gzip.compress(text().encode(), mtime=0), {}),
        ("t.csv.bz2", bz2.compress(text().encode()), {}),
        ("t.tsv.GZ", gzip.compress(text("\t").encode(), mtime=0), {}),
        ("t.parquet", parquet(pl.DataFrame(ROWS, schema=["a", "b", "y"], orient="row")), {}),
        ("t.pq", parquet(pl.DataFrame(ROWS, schema=["a", "b", "y"], orient="row")), {}),
        ("t.npz", packed_npz(X=X, y=Y), {}),
        ("t.npz", packed_npz(data=X, target=Y), {"target": None}),
        # By their beginning:
        ("t.txt", text(), {}),
        ("t.data", text("\t"), {}),
        ("table", parquet(pl.DataFrame(ROWS, schema=["a", "b", "y"], orient="row")), {}),
        ("arrays", packed_npz(X=X, y=Y), {}),
        ("t.gz", gzip.compress(text().encode(), mtime=0), {}),
        # A name that is no pattern:
        ("t[1]*.csv", text(), {}),
        ("two words, ünïcode.csv", text(), {}),
    ],
)
def test_every_format_gives_the_same_table(put, name, content, options):
    path = put(name, content)
    options = {"target": "y"} | options
    table = read(path, **options)
    assert isinstance(table.X, np.ndarray)
    assert table.X.dtype == np.float64
    assert_array_equal(table.X, X)
    assert_array_equal(table.y, Y)
    assert table.source == str(path)
    if "npz" in name or name == "arrays":
        assert table.names is None
    elif options.get("header", True):
        assert table.names == ["a", "b"]
        assert table.target == "y"


def test_svmlight_packed_or_not_and_by_its_beginning(put):
    lines = b"# by hand\n+1 1:0.5 3:2\n\n-1 2:1 # a comment\n"
    expected = [[0.5, 0, 2], [0, 1, 0]]
    for name, content in {
        "t.svm": lines, "t.svmlight": lines, "t.libsvm": lines,
        "t.svm.gz": gzip.compress(lines, mtime=0),
        "T.SVM.GZ": gzip.compress(lines, mtime=0), "T.SVM.BZ2": bz2.compress(lines),
        "t.svm.bz2": bz2.compress(lines), "a9a": lines[10:], "a9a.t": lines[10:],
        "a9a.bz2": bz2.compress(lines[10:]),
    }.items():  # fmt: skip
        table = read(put(name, content))
        assert sparse.issparse(table.X)
        assert table.X.indices.dtype == np.int32
        assert_array_equal(table.X.toarray(), expected)
        assert_array_equal(table.y, [1, -1])
        assert table.y.dtype == np.int64
        assert table.names is None
    assert read(put("z.svm", b"1 0:7 2:1\n-1 1:1\n")).X.toarray().tolist() == [[7, 0, 1], [0, 1, 0]]
    assert read(put("w.svm", lines), n_features=5).X.shape == (2, 5)
    assert read(put("w.svm", lines), dtype="float32").X.dtype == np.float32
    assert read(put("q.svm", b"1 qid:3 1:2\n-1 qid:4 1:1\n")).X.toarray().tolist() == [[2], [1]]


def test_formats_have_readers():
    assert set(SUFFIXES.values()) == set(FORMATS)


def test_the_target_by_place_and_columns_to_drop(put):
    path = put("t.csv", "id,a,b,y\n1,5,6,u\n2,7,8,v\n")
    for target in ("y", "-1", "3"):
        table = read(path, target, drop=["id"])
        assert table.names == ["a", "b"]
        assert table.target == "y"
        assert table.dropped == ["id"]
        assert_array_equal(table.X, [[5, 6], [7, 8]])
    assert read(path, "y", drop=["0", "-2"]).names == ["a"]
    assert read(path, "y", drop="id").names == ["a", "b"]
    assert "no dropped column 'ab'" in refused(path, drop="ab")
    assert read(path, "y", words="id").X["id"].to_list() == ["1", "2"]
    # A name that is a number is a name first.
    numbered = put("n.csv", "1,0,y\n5,6,7\n5,8,9\n")
    assert read(numbered, "0").target == "0"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), "float64", float])
def test_types_of_numbers(put, dtype):
    for path in (put("t.csv", text()), put("t.npz", packed_npz(X=X, y=Y))):
        table = read(path, "y", dtype=dtype)
        assert table.X.dtype == np.dtype(dtype)
        assert_array_equal(table.X, X.astype(dtype))
    path = put("t.npz", packed_npz(X=X.astype(np.int8), y=Y))
    assert read(path, dtype=dtype).X.dtype == np.dtype(dtype)
    for rows in (X.astype(np.float32), np.full((3, 1), np.float32(np.inf))):
        path = put("t.npz", packed_npz(X=rows, y=Y))
        assert read(path, dtype=dtype).X.dtype == np.float32
    assert read(put("t.svm", b"1 1:2\n-1 2:1\n"), dtype=dtype).X.dtype == np.dtype(dtype)
    frame = read(put("w.csv", "a,w,y\n1,p,u\n2,q,v\n"), "y", dtype=dtype).X
    assert frame["a"].to_numpy().dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["float16", np.int64, "words", None, np.longdouble])
def test_other_types_of_numbers_are_refused(put, dtype):
    with pytest.raises(ValueError, match=r"dtype=.*: pass float64 or float32"):
        read(put("t.csv", text()), "y", dtype=dtype)


TOO_LARGE = {
    "t.csv": ("a,b,y\n\n1,2,u\n3,{},v\n5,{},u\n", "line 4, column 'b'"),
    "w.csv": ("a,w,b,y\n1,p,2,u\n3,q,{},v\n", "line 3, column 'b'"),
    "s.csv": ("a,b,y\n1,2 ,u\n3, {} ,v\n", "line 3, column 'b'"),
    "t.svm": ("1 1:1\n# so\n-1 qid:2 1:2 7:{}\n", "line 3, feature 7"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(
    ("value", "dtype", "said"),
    [
        ("1e39", "float32", "1e+39 is too large, it does not fit float32: use float64"),
        ("1e200", "float64", "1e+200 is too large, squares of such numbers leave float64: rescale"),
    ],
)
def test_numbers_that_are_too_large_are_named(put, sign, value, dtype, said):
    said, number = f": {sign}{said}", float(sign + value)
    for name, (content, where) in TOO_LARGE.items():
        path = put(name, content.replace("{}", sign + value))
        target = None if name == "t.svm" else "y"
        assert where + said in refused(path, target, dtype=dtype)
        fitting = put(name, content.replace("{}", sign + "1e38"))
        assert read(fitting, target, dtype=dtype).infinite() == {}
        infinite = put(name, content.replace("{}", "inf"))
        assert read(infinite, target, dtype=dtype).infinite()
    rows = np.array([[1, 2], [3, number], [np.inf, np.nan]])
    matrix = sparse.csr_matrix(rows)
    packed = packed_npz(
        data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=(3, 2), format=b"csr",
        y=Y,
    )  # fmt: skip
    for path in (put("t.npz", packed_npz(X=rows, y=Y)), put("s.npz", packed)):
        assert "row 2, column 2" + said in refused(path, None, dtype=dtype)
    frame = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "y": Y})
    assert "row 2, column 'b'" + said in refused(put("t.parquet", parquet(frame)), dtype=dtype)


def test_new_rows_with_numbers_that_are_too_large(put):
    with pytest.raises(DataFileError, match=r"t\.csv: line 3, column 'a': 1e\+200 is too large"):
        list(batches(put("t.csv", "a,b\n1,2\n1e200,3\n"), ["a", "b"], words=[]))


def test_without_labels(put):
    table = read(put("t.csv", "a,b\n1,2\n3,4\n"), labelled=False)
    assert table.y is None
    assert table.names == ["a", "b"]
    assert read(put("t.npz", packed_npz(X=X)), labelled=False).y is None


def test_standard_input(put, monkeypatch):
    for content, options in ((text(), {}), (text("\t"), {}), (text(";"), {"separator": ";"})):
        stream = io.TextIOWrapper(io.BytesIO(content.encode()))
        monkeypatch.setattr(sys, "stdin", stream)
        table = read("-", "y", format="csv" if options else None, **options)
        assert_array_equal(table.X, X)
        assert table.source == "standard input"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataFileError, match="standard input: is empty"):
        read("-", "y")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    with pytest.raises(DataFileError, match=r"standard input: .* format"):
        read("-", "y")


# Labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "2", "1"], np.array([1, 2, 1])),
        (["-1", "+1", "-1"], np.array([-1, 1, -1])),
        (["1.0", "2.0", "1"], np.array([1, 2, 1])),
        (["1.", "2.00", "0"], np.array([1, 2, 0])),
        # What a program would take for a number, but print otherwise, or for the same one:
        (["1_1", "1_2", "1_1"], np.array(["1_1", "1_2", "1_1"])),
        (["01", "1", "01"], np.array(["01", "1", "01"])),
        (["1e1", "2e1", "1e1"], np.array(["1e1", "2e1", "1e1"])),
        (["1e2", "2", "2"], np.array(["1e2", "2", "2"])),
        (["١", "٢", "١"], np.array(["١", "٢", "١"])),
        (["1" * 19, "2" * 25, "3"], np.array(["1" * 19, "2" * 25, "3"])),
        (["1", "b", "1"], np.array(["1", "b", "1"])),
        (["u", "v", "u"], np.array(["u", "v", "u"])),
        (["true", "false", "true"], np.array(["true", "false", "true"])),
        ([" u", "u ", "v"], np.array(["u", "u", "v"])),
        (["grün", "日本", "grün"], np.array(["grün", "日本", "grün"])),
        (["2020-01-01", "2020-01-02", "2020-01-01"], None),
        (["inf", "1", "1"], np.array(["inf", "1", "1"])),
    ],
)
def test_types_of_labels(put, words, expected):
    lines = ["a,y", *(f"{k},{word}" for k, word in enumerate(words))]
    table = read(put("t.csv", "\n".join(lines) + "\n"), "y")
    expected = np.array(words) if expected is None else expected
    assert_array_equal(table.y, expected)
    assert table.y.dtype.kind == expected.dtype.kind


def test_labels_that_turn_into_words_late(put):
    lines = ["a,y", *(f"{k},{k % 2}" for k in range(11_000)), "7,other"]
    table = read(put("t.csv", "\n".join(lines)), "y")
    assert table.y.dtype.kind == "U"
    assert sorted(set(table.y.tolist())) == ["0", "1", "other"]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([True, False, True], ["true", "false", "true"]),
        ([1.0, 2.0, 1.0], [1, 2, 1]),
        ([1, 0, 1], [1, 0, 1]),
        (pl.Series(["u", "v", "u"], dtype=pl.Categorical), ["u", "v", "u"]),
        (pl.Series(["u", "v", "u"], dtype=pl.Enum(["v", "u"])), ["u", "v", "u"]),
    ],
)
def test_labels_of_parquet(put, column, expected):
    path = put("t.parquet", parquet(pl.DataFrame({"a": [1.0, 2, 3], "y": column})))
    assert read(path, "y").y.tolist() == expected


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([0, 1, 0], "i"), ([0.0, 1.0, 0.0], "i"), (["u", "v", "u"], "U"), ([True, False, True], "b")],
)
def test_labels_of_npz(put, labels, kind):
    table = read(put("t.npz", packed_npz(X=X, y=labels)))
    assert table.y.dtype.kind == kind
    assert table.y.tolist() == labels


def test_labels_that_are_measurements_or_missing(put):
    assert "1.5, a measurement" in refused(put("t.csv", "a,y\n1,1.5\n2,2\n"))
    assert "0.5, a measurement" in refused(put("t.csv", "a,y\n1,0.5\n2,1.5\n"))
    assert "0.02, a measurement" in refused(put("t.csv", "a,y\n1,2e-2\n2,1e1\n3,07\n"))
    message = refused(put("t.csv", "a,y\n1,u\n2,\n3,NA\n4,v\n"))
    assert "column 'y' lacks 2 values" in message
    assert "row 2" in refused(put("t.npz", packed_npz(X=X, y=[1, np.nan, 2])))
    one = read(put("t.csv", "a,y\n1,u\n2,u\n"), "y")
    with pytest.raises(DataFileError, match=r"t\.csv: column 'y' is u in all 2 rows: got 1 class"):
        one.labels_to_learn()
    many = read(put("t.csv", "a,y\n" + "".join(f"{k},{k}\n" for k in range(50))), "y")
    with pytest.raises(DataFileError, match="holds 50 different values in 50 rows"):
        many.labels_to_learn()


def test_large_whole_numbers_stay_different(put):
    table = read(put("t.csv", "a,y\n1,9007199254740993\n2,9007199254740992\n"), "y")
    assert len(set(table.y.tolist())) == 2


@pytest.mark.parametrize("name", ["t.csv", "t.npz"])
def test_labels_beyond_int64_do_not_become_one_class(put, name):
    if name == "t.csv":
        path = put(name, "a,y\n1,1e300\n2,2e300\n3,1e300\n")
    else:
        path = put(name, packed_npz(X=X, y=[1.0, np.inf, 2.0]))
    try:
        labels = read(path, "y").y
    except DataFileError:
        return
    assert -(2**63) not in labels.tolist()


def test_nan_in_labels_of_parquet_is_missing(put):
    path = put("t.parquet", parquet(pl.DataFrame({"a": [1.0, 2, 3], "y": [1.0, np.nan, 2.0]})))
    assert "lacks 1" in refused(path)


# Columns ------------------------------------------------------------------------------------------


def test_words_make_a_frame_of_categories(put):
    path = put("t.csv", "a,w,flag,y\n1,red,true,u\n2, blue ,false,v\n3,red,true,u\n")
    table = read(path, "y")
    assert table.X.columns == ["a", "w", "flag"]
    assert table.X.dtypes == [pl.Float64, pl.Categorical, pl.Float64]
    assert table.X.rows() == [(1, "red", 1), (2, "blue", 0), (3, "red", 1)]
    assert table.names == ["a", "w", "flag"]


def test_columns_of_parquet(put):
    frame = pl.DataFrame(
        {
            "int": pl.Series([1, 2, 3], dtype=pl.UInt8),
            "float": pl.Series([1, None, 3], dtype=pl.Float32),
            "decimal": pl.Series([1, 2, 3]).cast(pl.Decimal(10, 2)),
            "word": ["u", None, "v"],
            "flag": [True, False, None],
            "category": pl.Series(["p", "q", "p"], dtype=pl.Categorical),
            "y": ["x", "z", "x"],
        }
    )
    table = read(put("t.parquet", parquet(frame)), "y")
    kinds = [pl.Float64] * 3 + [pl.Categorical, pl.Float64, pl.Categorical]
    assert table.X.schema.dtypes() == kinds
    assert table.X["float"].to_list() == [1, None, 3]
    assert table.X["word"].to_list() == ["u", None, "v"]
    assert table.X["flag"].to_list() == [1, 0, None]
    assert table.missing() == {"float": 1, "word": 1, "flag": 1}


def test_an_enum_is_a_category(put):
    column = pl.Series(["p", "q"], dtype=pl.Enum(["p", "q"]))
    path = put("t.parquet", parquet(pl.DataFrame({"a": column, "y": [0, 1]})))
    assert read(path, "y").X["a"].to_list() == ["p", "q"]


def test_columns_that_are_neither_numbers_nor_words(put):
    dates = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]
    for values in (dates, [[1], [2]], [None, None]):
        path = put("t.parquet", parquet(pl.DataFrame({"when": values, "y": [0, 1]})))
        assert "column 'when'" in refused(path)
        path = put("t.parquet", parquet(pl.DataFrame({"a": [1, 2], "when": values, "y": [0, 1]})))
        assert read(path, "y", drop=["when"]).names == ["a"]


def test_missing_values_are_nan_and_counted_by_column(put):
    content = "a,b,c,y\n1,?,3,u\nNA,nan,3,v\n,2,NULL,u\n4,None,4,v\n"
    table = read(put("t.csv", content), "y")
    assert_array_equal(np.isnan(table.X), [[0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert table.missing() == {"a": 2, "b": 3, "c": 1}
    assert read(put("t.svm", b"1 1:nan 2:1\n-1 2:nan\n")).missing() == {
        "column 1": 1,
        "column 2": 1,
    }
    assert read(put("t.npz", packed_npz(X=[[np.nan, 1.0]] * 3, y=Y))).missing() == {"column 1": 3}
    assert read(put("t.npz", packed_npz(X=[[1, 2]] * 3, y=Y))).missing() == {}


@pytest.mark.parametrize("cell", ["NA", "?", '""', "nan", " NA "])
def test_a_missing_value_alone_in_its_row_is_a_row(put, cell):
    path = put("t.csv", f"x\n1.0\n{cell}\n3.0\n")
    table = read(path, labelled=False)
    assert_array_equal(table.X, [[1], [np.nan], [3]])
    assert table.missing() == {"x": 1}
    assert [len(part.X) for part in batches(path, ["x"], words=[])] == [3]


@pytest.mark.parametrize("row", [",,", "NA,?,NA", '"",,', " , , ", "NULL,,nan"])
def test_rows_of_missing_values_alone_are_rows(put, row):
    path = put("t.csv", f"a,b,w\n1,2,p\n{row}\n\n{row}\n3,4,q\n")
    table = read(path, labelled=False)
    assert table.X.rows() == [(1, 2, "p"), (None,) * 3, (None,) * 3, (3, 4, "q")]
    assert table.missing() == {"a": 2, "b": 2, "w": 2}
    (part,) = batches(path, ["b"], words=[])
    assert part.X["b"].to_list() == [2, None, None, 4]
    assert "column 'w' lacks 2 values" in refused(path, "w")


def test_blank_lines_are_no_rows_wherever_they_are(put, small_pieces):
    blank = ["", "  ", "\t", "\r"]
    lines = [f"{k},{k * k},{'uv'[k % 2]}\n{blank[k % 4]}" for k in range(3000)]
    lines[1500] = "NA,NA,u"
    path = put("t.csv", "\n  \n".join(["\na,b,y", *lines]))
    table = read(path, "y")
    expected = np.array([[k, k * k] for k in range(3000)], dtype=float)
    expected[1500] = np.nan
    assert_array_equal(table.X, expected)
    assert len(table.y) == 3000
    assert sum(len(part.X) for part in batches(path, ["b"], words=[])) == 3000
    bare = put("h.csv", "\n1,2\n\n,\n3,4\n")
    assert_array_equal(
        read(bare, header=False, labelled=False).X, [[1, 2], [np.nan, np.nan], [3, 4]]
    )


def test_line_ends_in_quotes_are_no_blank_lines(put):
    path = put("t.csv", 'w,a\n"p\n\n  \nq",1\n\n"say ""hi"", ",\n"",\nr,2\n')
    table = read(path, labelled=False)
    assert table.X["w"].to_list() == ["p\n\n  \nq", 'say "hi",', None, "r"]
    assert table.X["a"].to_list() == [1, None, None, 2]


def test_a_row_of_parquet_without_values_is_a_row(put):
    path = put("t.parquet", parquet(pl.DataFrame({"a": [1.0, None, 3.0], "b": [2.0, None, 4.0]})))
    assert_array_equal(read(path, labelled=False).X, [[1, 2], [np.nan, np.nan], [3, 4]])


def test_missing_values_after_a_space(put):
    table = read(put("t.csv", "a,w,y\n1, red, u\n2, ?, v\n3, red, v\n"), "y")
    assert table.missing() == {"w": 1}


def test_numbers_with_spaces_and_signs(put):
    path = put("t.csv", "a,b,y\n 1.5,+2,u\n2 , -3e-2,v\n")
    assert_array_equal(read(path, "y").X, [[1.5, 2], [2, -0.03]])


def test_quoted_fields(put):
    content = 'a,"b, c",d,y\n1,"x\ny",2,u\n"3","say ""p, q""",4,"v\nw"\n'
    table = read(put("t.csv", content), "y")
    assert table.names == ["a", "b, c", "d"]
    assert table.X.rows() == [(1, "x\ny", 2), (3, 'say "p, q"', 4)]
    assert table.y.tolist() == ["u", "v\nw"]


def test_quotes_in_names(put):
    assert read(put("t.csv", 'a,"say ""hi""",y\n1,2,u\n3,4,v\n'), "y").names == ["a", 'say "hi"']


# What is wrong is said ----------------------------------------------------------------------------

LATE = "a,b,y\n" + "1,2,u\n3,4,v\n" * 11_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("\n\n\n", "is empty"),
        ("a,b,y\n", "has a header, but no rows"),
        ("a,b,y", "has a header, but no rows"),
        ("y\n1\n2\n", "no column besides y, the target."),
        ("a,b,z\n1,2,3\n4,5,6\n", "no target column 'y'; it has a, b, z"),
        ("a,b,Y\n1,2,3\n4,5,6\n", "no target column 'y'; it has a, b, Y"),
        ("a,b,y\n1,2,u\n3,4,v,9\n", "line 3 has 4 fields, line 1 has 3"),
        ("a,b,y\n1,2,u\n3,4\n5,6,v\n", "line 3 has 2 fields, line 1 has 3"),
        ("a,b,y\n1,2,u\n3\n5,6,v\n", "line 3 has 1 fields, line 1 has 3"),
        ('a,b,y\n1,2,"u\nu"\n3,4\n5,6,v\n', "line 4 has 2 fields, line 1 has 3"),
        (LATE + "1,2,u,4\n", "line 22002 has 4 fields"),
        (LATE + "1,2\n", "line 22002 has 2 fields"),
        ("a,b,y\n1,2,u\n3,oops,v\n5,6,u\n", "line 3: 'oops' is not a number"),
        ("a,b,y\n\n1,2,u\n\n3,oops,v\n5,6,u\n", "line 5: 'oops' is not a number"),
        ("\n\na,b,y\n\n1,2,u\n\n3,oops,v\n5,6,u\n", "line 7: 'oops' is not a number"),
        ("\na,b,y\n1,2,u\n3,4\n", "line 4 has 2 fields, line 2 has 3"),
        ('a,b,y\n1,2,"u\n' + "3,4,v\n" * 20_000, "line 2: a quote is never closed"),
        ('a,b,y\n1,"2,u\n' + "3,4,v\n" * 20_000, "line 2: a quote is never closed"),
        ('a,b,y\n1,"p",u\n2,"q,v\n,r,u\n', "line 3: a quote is never closed"),
        (LATE + '"1,2,u\n' + "3,4,v\n" * 20_000, "line 22002: a quote is never closed"),
        ('a,"b,y\n' + "3,4,v\n" * 40_000, "line 1: a quote is never closed"),
        (f"a,{'b' * 140_000},y\n1,2,u\n3,4,v\n", "line 1 cannot be read: end all"),
        (LATE + "1,oops,u\n", "line 22002: 'oops' is not a number, as others in column 'b'"),
        ("a,a,y\n1,2,u\n3,4,v\n", "line 1 names the column 'a' twice"),
        ("a;b;y\n1;2;u\n3;4;v\n", "pass ';' as separator"),
        ("a\tb\ty\n1\t2\tu\n", "separator"),
        ("größe,b,y\n1,rot,u\n2,grün,v\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_bad_csv_is_named(put, content, said):
    assert said in refused(put("t.csv", content))


def test_the_line_of_a_bad_number_after_quoted_newlines(put):
    path = put("t.csv", 'a,b,y\n1,2,"u\nu"\n3,4,v\noops,4,v\n5,6,v\n')
    assert "line 5: 'oops'" in refused(path)


@pytest.mark.parametrize("field", ["x" * 140_000, '"' + 'x, ""y""\n' * 20_000 + '"'])
def test_long_fields(put, field):
    path = put("t.csv", f"a,n,y\n1,{field},u\n,x,v\n3,x,v\n")
    assert read(path, "y").missing() == {"a": 1}
    path = put("t.csv", f"a,n,y\n1,2,u\n2,{field},v\n3,4,v\noops,5,u\n")
    line = 5 + field.count("\n")
    assert f"line {line}: 'oops'" in refused(path, drop=["n"])


@pytest.mark.parametrize("start", ["", "\r", "\ufeff"])
def test_line_ends_of_old_macs(put, start):
    content = start + text(end="\r").replace("4.25", "NA") + "\r\r"
    for name in ("t.csv", "t.txt"):
        table = read(put(name, content), "y")
        assert table.names == ["a", "b"]
        assert table.missing() == {"b": 1}
        assert_array_equal(table.y, Y)
    assert "line 3 has 2 fields" in refused(put("t.csv", "a,b,y\r1,2,u\r3,4\r"))
    assert "end all lines in one way" in refused(put("t.csv", "a,b,y\r1,2,u\r3,4,v\n"))


def test_no_column_is_left(put):
    path = put("t.csv", "a,b,c,y\n1,2,3,u\n4,5,6,v\n")
    message = refused(path, drop=["a", "b", "c"])
    assert "no column besides y, the target, and a, b, c, dropped." in message
    message = refused(path, None, labelled=False, drop=["a", "b", "c", "y"])
    assert "no column besides a, b, c, y, dropped." in message


def test_duplicate_names_after_a_byte_order_mark(put):
    assert "'a' twice" in refused(put("t.csv", "\ufeffa,a,y\n1,2,u\n3,4,v\n"))


def test_what_a_dropped_column_holds_does_not_matter(put):
    lines = "a,n,y\n" + "1,2,u\n3,4,v\n" * 11_000 + "1,see below,u\n"
    assert read(put("t.csv", lines), "y", drop=["n"]).X.shape == (22_001, 1)


def test_what_a_column_that_nobody_wants_holds_does_not_matter(put):
    lines = "a,n\n" + "1,2\n3,4\n" * 11_000 + "1,see below\n"
    assert sum(len(part.X) for part in batches(put("t.csv", lines), ["a"])) == 22_001


def test_labels_that_are_not_utf8(put):
    refused(put("t.csv", "a,y\n1,grün\n2,rot\n".encode("latin-1")))


def test_names_that_are_not_utf8(put):
    refused(put("t.csv", "größe,b,y\n1,2,u\n3,4,v\n".encode("latin-1")))


@pytest.mark.parametrize(
    "content", [b"\x7f\x01\xff" * 500, b"\x00" * 5000, text().encode("utf-16")]
)
def test_a_binary_file_is_not_printed(put, content):
    message = refused(put("t.csv", content))
    assert len(message) < 500
    assert message.isprintable()


def test_separators(put):
    path = put("t.csv", text(";"))
    for separator in (";;", "", "€", '"', "\n"):
        assert f"separator={separator!r}: pass one ASCII" in refused(path, separator=separator)
        with pytest.raises(DataFileError, match="pass one ASCII"):
            list(batches(path, separator=separator))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"1 1:2\n-1 1:x\n", "line 2: '1:x' is not index:value"),
        (b"1 1:2\n# so\nfoo 1:3\n", "line 3: the label 'foo' is not a number"),
        (b"1 2:2 1:3\n-1 1:1\n", "line 1: indices must grow, 1 comes after 2"),
        (b"1 2:2\n-1 7\n", "line 2: '7' is not index:value"),
        (b"1 2:1\n-1 -3:1\n", "line 2: '-3:1' is out of range"),
        (b"1,2 2:1\n-1 3:1\n", "line 1: the label '1,2' is not a number"),
        (b"# nothing\n", "holds no rows"),
        (b"1.5 1:2\n2 1:2\n", "1.5, a measurement"),
    ],
)
@pytest.mark.parametrize("pack", [lambda content: content, gzip.compress, bz2.compress])
def test_bad_svmlight_is_named_by_line(put, content, said, pack):
    ending = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(pack, "")
    assert said in refused(put(f"t.svm{ending}", pack(content)), None)


def test_svmlight_beyond_the_features_of_a_model(put):
    path = put("t.svm", b"1 1:1\n-1 9:1\n")
    with pytest.raises(
        DataFileError, match=r"line 2: '9:1' is beyond the last feature of the model, 3"
    ):
        read(path, n_features=3)


def test_svmlight_without_features(put):
    assert "no features" in refused(put("t.svm", b"1\n-1\n"), None)


def damaged(content):
    """Return a file whose middle is overwritten."""
    content, middle = bytearray(content), len(content) // 2
    content[middle : middle + 50] = b"\xff" * 50
    return bytes(content)


LONG = "a,b,y\n" + "".join(f"{k},{k * k % 97},{'uv'[k % 2]}\n" for k in range(5000))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.gz", gzip.compress(LONG.encode(), mtime=0)[:-500]),
        ("t.csv.gz", LONG.encode()),
        ("t.csv.gz", gzip.compress(b"", mtime=0)),
        ("t.csv.bz2", bz2.compress(LONG.encode())[:-500]),
        ("t.csv.bz2", damaged(bz2.compress(LONG.encode()))),
        ("t.csv.bz2", LONG.encode()),
        ("t.svm.gz", gzip.compress(b"1 1:2\n" * 5000, mtime=0)[:-20]),
        ("t.svm.bz2", b"1 1:2\n"),
        ("t.parquet", parquet(pl.DataFrame({"a": range(5000)}))[:-20]),
        ("t.parquet", b"PAR1" + b"\xff" * 200 + b"PAR1"),
        ("t.parquet", LONG.encode()),
        ("t.npz", packed_npz(X=X, y=Y)[:-60]),
        ("t.npz", LONG.encode()),
        ("t.npz", pickle.dumps({"X": X})),
        ("t.npz", packed_npz(X=X, y=np.array(["u", 1, None], dtype=object))),
        ("t.npz", packed_npz(X=X)),
        ("t.npz", packed_npz(Z=X, y=Y)),
        ("t.npz", packed_npz(X=X * 1j, y=Y)),
        ("t.npz", packed_npz(X=X[0], y=Y)),
        ("t.npz", packed_npz(X=X, y=Y[:2])),
        ("t.npz", packed_npz(X=X, y=[Y])),
        ("t.npz", packed_npz(X=np.empty((0, 2)), y=[])),
    ],
)
def test_damaged_files_are_named(put, name, content):
    refused(put(name, content))


@pytest.mark.parametrize("name", ["t.csv.gz", "t.gz", "t.npz"])
def test_damage_inside_the_packed_bytes(put, name):
    content = damaged(gzip.compress(LONG.encode(), mtime=0))
    if name == "t.gz":
        content = content[:20] + b"\xff" * 100
    if name == "t.npz":
        values = np.random.default_rng(0).random((300, 30)).round(2)
        content = bytearray(packed_npz(X=values, y=np.arange(300) % 2))
        content[500:600] = b"\xff" * 100
        content = bytes(content)
    refused(put(name, content))


def test_an_npy_file_named_npz(put):
    buffer = io.BytesIO()
    np.save(buffer, X)
    refused(put("t.npz", buffer.getvalue()))


def csr_npz(shift=0):
    matrix = sparse.csr_matrix(np.array([[0, 1.0], [2, 0], [0, 3]]))
    return packed_npz(
        data=matrix.data, indices=matrix.indices + shift, indptr=matrix.indptr, shape=(3, 2),
        format=b"csr", y=Y,
    )  # fmt: skip


def test_a_sparse_matrix_in_npz(put):
    table = read(put("t.npz", csr_npz()))
    assert sparse.issparse(table.X)
    assert_array_equal(table.X.toarray(), [[0, 1], [2, 0], [0, 3]])


def test_a_sparse_matrix_with_columns_out_of_range(put):
    refused(put("t.npz", csr_npz(shift=1000)))


def test_no_file_and_a_folder(tmp_path):
    assert "no such file" in refused(tmp_path / "nowhere.csv")
    assert "folder" in refused(tmp_path)
    with pytest.raises(DataFileError, match="format='xls' is unknown: pass one of csv"):
        read(tmp_path / "t.csv", "y", format="xls")


def test_a_near_miss_is_named(put):
    path = put("t.csv", "mass,colour\n1,red\n2,blue\n")
    assert "Did you mean 'colour'?" in refused(path, "color")
    assert "no dropped column 'size'" in refused(path, "colour", drop=["size"])
    assert "no target column '7'" in refused(path, "7")
    assert "name the column of labels" in refused(path, None)


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("t.npz", packed_npz(X=X, y=Y), {"drop": ["0"]}),
        ("t.svm", b"1 1:2 2:3\n-1 1:1\n", {"drop": ["0"]}),
        ("t.npz", packed_npz(X=X, y=Y), {"dtype": "float32"}),
    ],
)
def test_options_are_followed_or_refused(put, name, content, options):
    try:
        table = read(put(name, content), None, **options)
    except DataFileError:
        return
    assert table.X.shape[1] == 1 or table.X.dtype == np.float32


# Some rows at a time ------------------------------------------------------------------------------


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(tabular, "PIECE", 1)


def wide_table(n=5000):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "a": rng.normal(size=n).round(6),
            "w": rng.choice(["red", "green", "blue"], size=n),
            "b": rng.integers(-5, 5, size=n),
            "extra": rng.choice(["not", "wanted"], size=n),
            "y": rng.choice(["u", "v"], size=n),
        }
    )


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_batches_are_the_rows_of_read(tmp_path, small_pieces, kind):
    frame = wide_table()
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "csv":
        frame.write_csv(path)
    else:
        path.write_bytes(gzip.compress(frame.write_csv().encode(), mtime=0))
    whole = read(path, "y", drop=["extra"])
    parts = list(batches(path, ["b", "w", "a"], target="y", labelled=True))
    assert len(parts) > 1
    assert all(isinstance(part, Table) and part.names == ["b", "w", "a"] for part in parts)
    assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)
    together = pl.concat([part.X for part in parts])
    assert together.columns == ["b", "w", "a"]
    for name in together.columns:
        assert together[name].to_list() == whole.X[name].to_list() == frame[name].to_list()


def test_reading_in_pieces_changes_nothing(tmp_path, small_pieces):
    frame = wide_table().select("a", "b", "y")
    frame.write_csv(tmp_path / "t.csv")
    table = read(tmp_path / "t.csv", "y")
    assert_array_equal(table.X, frame.select("a", "b").to_numpy())
    assert_array_equal(table.y, frame["y"].to_numpy())


def test_batches_of_other_files_come_in_one_piece(put):
    for path in (put("t.npz", packed_npz(X=X, y=Y)), put("t.svm", b"1 1:2\n-1 2:1\n")):
        whole = read(path)
        (part,) = batches(path, labelled=True)
        assert part.source == str(path)
        assert_array_equal(part.y, whole.y)
        assert part.X.shape == whole.X.shape


def test_batches_say_what_they_lack(put):
    path = put("t.csv", "a,b,y\n1,2,u\n")
    with pytest.raises(DataFileError, match=r"t\.csv: lacks 'c', 'd' of the columns"):
        list(batches(path, ["a", "c", "d"]))
    with pytest.raises(DataFileError, match="no target column 'z'"):
        list(batches(path, ["a"], target="z"))
    with pytest.raises(DataFileError, match="has a header, but no rows"):
        list(batches(put("h.csv", "a,b,y\n"), ["a"]))
    with pytest.raises(DataFileError, match="line 3 has 1 fields"):
        list(batches(put("r.csv", "a,b\n1,2\n3\n"), ["a", "b"]))
    with pytest.raises(DataFileError, match="line 3: 'x' is not a number"):
        list(batches(put("n.csv", "a,b\n1,2\nx,2\n1,2\n"), ["a", "b"]))


# The caller's things ------------------------------------------------------------------------------


def test_files_are_left_as_they_are_and_nothing_stays_behind(put, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    for path in (
        put("t.csv", text()),
        put("t.csv.gz", gzip.compress(text().encode(), mtime=0)),
        put("t.csv.bz2", bz2.compress(text().encode())),
        put("t.npz", packed_npz(X=X, y=Y)),
    ):
        before, when = path.read_bytes(), path.stat().st_mtime_ns
        read(path, "y").X[:] = 0
        list(batches(path, labelled=False))
        for part in batches(path, labelled=False):
            del part
            break  # given up in the middle
        assert path.read_bytes() == before
        assert path.stat().st_mtime_ns == when
        assert list(folder.iterdir()) == []
    path = put("bad.csv.gz", gzip.compress(b"a,b,y\n1,2,u\n3,4,v,5\n", mtime=0))
    refused(path)
    with pytest.raises(DataFileError):
        list(batches(path))
    assert list(folder.iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "bad.csv.gz", "t.csv", "t.csv.bz2", "t.csv.gz", "t.npz", "temporary"
    ]  # fmt: skip


def test_a_read_only_file(put):
    path = put("t.csv", text())
    path.chmod(0o400)
    assert_array_equal(read(path, "y").X, X)


MEASURED = """
import sys, threading, time
import maxmargin as mm

def taken():
    with open("/proc/self/status") as lines:  # what is not backed by a file
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

def watch():
    while True:
        top.append(max(top[-1], taken()))
        time.sleep(0.002)

mm.files.read("small.csv", "y")
top = [before := taken()]
threading.Thread(target=watch, daemon=True).start()
if sys.argv[1] == "read":
    rows = len(mm.files.read("large.csv", "y").X)
else:
    rows = sum(len(part.X) for part in mm.files.batches("large.csv", ["c0", "c7"]))
print(rows, max(top[-1], taken()) - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads Linux' /proc")
def test_memory_of_a_large_file(tmp_path):
    values = np.random.default_rng(0).normal(size=(800_000, 20)).round(4)
    frame = pl.DataFrame(values, schema=[f"c{k}" for k in range(20)])
    frame = frame.with_columns(y=pl.Series(np.where(values[:, 0] > 0, "up", "down")))
    frame.write_csv(tmp_path / "large.csv")
    frame.head(100).write_csv(tmp_path / "small.csv")
    assert (tmp_path / "large.csv").stat().st_size > 100e6
    for how, limit in (("read", 3.0 * values.nbytes), ("batches", 3.0 * values.nbytes)):
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, how], cwd=tmp_path, capture_output=True, text=True,
            check=True, timeout=120,
        )  # fmt: skip
        rows, extra = map(int, done.stdout.split())
        assert rows == 800_000
        assert extra < limit, f"{how}: {extra / 1e6:.0f} MB"


def test_public_names():
    assert mm.files.read is read
    assert mm.files.DataFileError is DataFileError
    assert issubclass(DataFileError, ValueError)
    table = mm.files.read(mm.datasets.fruit_file(), "fruit")
    assert_array_equal(table.X, mm.datasets.load_fruit().data)


def test_truth_is_one_or_nought_in_every_format(put):
    frame = pl.DataFrame({"flag": [True, False, True], "a": [1.0, 2, 3], "y": ["u", "v", "u"]})
    texts = [
        "flag,a,y\nTrue,1,u\nFalse,2,v\nTrue,3,u\n",
        "flag,a,y\ntrue,1,u\n FALSE,2,v\nTRUE,3,u\n",
    ]
    paths = [put("t.parquet", parquet(frame)), *(put(f"t{k}.csv", t) for k, t in enumerate(texts))]
    for path in paths:
        X = read(path, "y").X
        assert_array_equal(X, [[1, 1], [0, 2], [1, 3]])


def test_dates_are_no_categories(put):
    dates = "".join(f"2024-01-{k + 1:02d},{k},{'uv'[k % 2]}\n" for k in range(28))
    with pytest.raises(DataFileError, match=r"t\.csv: column 'day' holds dates: drop it"):
        read(put("t.csv", f"day,a,y\n{dates}"), "y")


def test_numbers_may_be_words(put):
    table = read(put("t.csv", "code,a,y\n1,5,u\n2,6,v\n1,7,u\n"), "y", words=["code"])
    assert table.X.rows() == [("1", 5), ("2", 6), ("1", 7)]


@pytest.mark.parametrize("option", [{"separator": ";"}, {"header": False}])
def test_options_of_csv_files_are_refused_of_others(put, option):
    path = put("a.svm", "1 1:2\n-1 1:3\n")
    with pytest.raises(DataFileError, match="is read as svmlight, which has no separator"):
        read(path, **option)
    with pytest.raises(DataFileError, match="is read as svmlight, which has no separator"):
        list(batches(path, **option))


# Lines without an end ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.svm", "1 1:1\n1 1:1" + 300 * " 2:1"),
        ("b.svm", "1 1:1\n" + 300 * "1"),
        ("c.svm", "x 1:1\n1" + 300 * " "),
        ("a.csv", 300 * "a" + ",b,y\n1,2,x\n"),
        ("b.csv", 'a,b,y\n1,2,x\n1,"' + 300 * " " + "\n"),
        ("a.tsv", 300 * "\t"),
    ],
)
def test_lines_that_are_too_long_are_refused(put, name, content, monkeypatch):
    monkeypatch.setattr("maxmargin.files.table.LONGEST_LINE", 200)
    path = put(name, content)
    with pytest.raises(DataFileError) as caught:
        read(path, None if name.endswith("svm") else "y")
    assert name in str(caught.value)
    if name not in ("b.csv", "c.svm"):
        assert "has more than 200 characters: pass a file with one row per line" in str(
            caught.value
        )


@pytest.mark.parametrize("name", ["a.svm", "a.csv", "a.svm.gz"])
def test_a_long_line_is_not_read_whole(tmp_path, name):
    """200 MB that gzip packs into little."""
    path = tmp_path / name
    with (gzip.open if name.endswith("gz") else open)(path, "wb") as file:
        for _ in range(200):
            file.write(b"1" * 1_000_000)
    tracemalloc.start()
    with pytest.raises(DataFileError, match="line 1 has more than 67108864 characters"):
        read(path, None if "svm" in name else "y")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The line as far as it was read, and what decodes it.
    assert peak < 4 * (1 << 26)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="has no /dev/zero")
@pytest.mark.parametrize("format", FORMATS)
def test_devices_are_no_data_files(format):
    with pytest.raises(DataFileError, match="/dev/zero: is a device"):
        read("/dev/zero", "y", format=format)
