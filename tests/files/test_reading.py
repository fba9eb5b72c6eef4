"""Data files: every format gives back the table that was written."""

import bz2
import datetime
import gzip
import io
import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from maxmargin.files import DataFileError, batches, read
from maxmargin.files.reading import FORMATS, SUFFIXES
from tests.helpers.data_files import ROWS, X, Y, packed_npz, parquet, refused, text

# The same table in every format -------------------------------------------------------------------


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
    with pytest.raises(ValueError, match=r"dtype must be float64 or float32"):
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
        ("1e39", "float32", "1e+39 is too large, it overflows float32: use float64"),
        ("1e200", "float64", "1e+200 is too large, its square overflows float64: rescale"),
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
    with pytest.raises(DataFileError, match="standard input: the file is empty"):
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
    assert "whole numbers or text, got 1.5" in refused(put("t.csv", "a,y\n1,1.5\n2,2\n"))
    assert "whole numbers or text, got 0.5" in refused(put("t.csv", "a,y\n1,0.5\n2,1.5\n"))
    assert "whole numbers or text, got 0.02" in refused(put("t.csv", "a,y\n1,2e-2\n2,1e1\n3,07\n"))
    message = refused(put("t.csv", "a,y\n1,u\n2,\n3,NA\n4,v\n"))
    assert "column 'y' has 2 missing values" in message
    assert "row 2" in refused(put("t.npz", packed_npz(X=X, y=[1, np.nan, 2])))
    one = read(put("t.csv", "a,y\n1,u\n2,u\n"), "y")
    with pytest.raises(DataFileError, match=r"t\.csv: column 'y' must hold at least two classes"):
        one.labels_to_learn()
    many = read(put("t.csv", "a,y\n" + "".join(f"{k},{k}\n" for k in range(50))), "y")
    with pytest.raises(DataFileError, match="got 50 distinct values in 50 rows"):
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
    assert "has 1 missing" in refused(path)


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
    assert "column 'w' has 2 missing values" in refused(path, "w")


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
