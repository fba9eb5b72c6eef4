"""Bad data files: errors name the file, the line and the column."""

import bz2
import gzip
import io
import os
import pickle
import tracemalloc

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from maxmargin.files import DataFileError, batches, read
from maxmargin.files.reading import FORMATS
from tests.helpers.data_files import X, Y, packed_npz, parquet, refused, text

# Errors -------------------------------------------------------------------------------------------


LATE = "a,b,y\n" + "1,2,u\n3,4,v\n" * 11_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("\n\n\n", "is empty"),
        ("a,b,y\n", "has a header but no rows"),
        ("a,b,y", "has a header but no rows"),
        ("y\n1\n2\n", "no feature is left besides y, the target."),
        ("a,b,z\n1,2,3\n4,5,6\n", "there is no target column 'y'; the file has a, b, z"),
        ("a,b,Y\n1,2,3\n4,5,6\n", "there is no target column 'y'; the file has a, b, Y"),
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
        ('a,b,y\n1,2,"u\n' + "3,4,v\n" * 20_000, "line 2: a quote is not closed"),
        ('a,b,y\n1,"2,u\n' + "3,4,v\n" * 20_000, "line 2: a quote is not closed"),
        ('a,b,y\n1,"p",u\n2,"q,v\n,r,u\n', "line 3: a quote is not closed"),
        (LATE + '"1,2,u\n' + "3,4,v\n" * 20_000, "line 22002: a quote is not closed"),
        ('a,"b,y\n' + "3,4,v\n" * 40_000, "line 1: a quote is not closed"),
        (f"a,{'b' * 140_000},y\n1,2,u\n3,4,v\n", "line 1 cannot be read: use the same"),
        (LATE + "1,oops,u\n", "line 22002: 'oops' is not a number, as others in column 'b'"),
        ("a,a,y\n1,2,u\n3,4,v\n", "line 1 names the column 'a' twice"),
        ("a;b;y\n1;2;u\n3;4;v\n", "pass --separator ';'"),
        ("a\tb\ty\n1\t2\tu\n", "separator"),
        (
            "größe,b,y\n1,röt,u\n".encode() + b"2,gr\xfcn,v\n",
            "line 3 is not UTF-8 text: pass the enc",
        ),
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
    assert "use the same line end on all lines" in refused(put("t.csv", "a,b,y\r1,2,u\r3,4,v\n"))


def test_no_column_is_left(put):
    path = put("t.csv", "a,b,c,y\n1,2,3,u\n4,5,6,v\n")
    message = refused(path, drop=["a", "b", "c"])
    assert "no feature is left besides y, the target, and a, b, c, dropped." in message
    message = refused(path, None, labelled=False, drop=["a", "b", "c", "y"])
    assert "no feature is left besides a, b, c, y, dropped." in message


def test_duplicate_names_after_a_byte_order_mark(put):
    assert "'a' twice" in refused(put("t.csv", "\ufeffa,a,y\n1,2,u\n3,4,v\n"))


def test_what_a_dropped_column_holds_does_not_matter(put):
    lines = "a,n,y\n" + "1,2,u\n3,4,v\n" * 11_000 + "1,see below,u\n"
    assert read(put("t.csv", lines), "y", drop=["n"]).X.shape == (22_001, 1)


def test_contents_of_dropped_columns_do_not_matter(put):
    lines = "a,n\n" + "1,2\n3,4\n" * 11_000 + "1,see below\n"
    assert sum(len(part.X) for part in batches(put("t.csv", lines), ["a"])) == 22_001


@pytest.mark.parametrize(
    "content", [b"\x7f\x01\xff" * 500, b"\x00" * 5000, b"\xff\xfe\x00\xd8" * 99]
)
def test_a_binary_file_is_not_printed(put, content):
    message = refused(put("t.csv", content))
    assert len(message) < 500
    assert message.isprintable()


def test_separators(put):
    path = put("t.csv", text(";"))
    for separator in (";;", "", "€", '"', "\n"):
        assert f"got {separator!r}." in refused(path, separator=separator)
        with pytest.raises(DataFileError, match="one ASCII character"):
            list(batches(path, separator=separator))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"1 1:2\n-1 1:x\n", "line 2: '1:x' is not index:value"),
        (b"1 1:2\n# so\nfoo 1:3\n", "line 3: the label 'foo' is not a number"),
        (b"1 2:2 1:3\n-1 1:1\n", "line 1: indices must increase, but 1 follows 2"),
        (b"1 2:2\n-1 7\n", "line 2: '7' is not index:value"),
        (b"1 2:1\n-1 -3:1\n", "line 2: '-3:1' is out of range"),
        (b"1,2 2:1\n-1 3:1\n", "line 1: the label '1,2' is not a number"),
        (b"# nothing\n", "the file has no rows"),
        (b"1.5 1:2\n2 1:2\n", "whole numbers or text, got 1.5"),
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
    with pytest.raises(DataFileError, match="npz; got 'xls'"):
        read(tmp_path / "t.csv", "y", format="xls")


def test_a_near_miss_is_named(put):
    path = put("t.csv", "mass,colour\n1,red\n2,blue\n")
    assert "Did you mean 'colour'?" in refused(path, "color")
    assert "no dropped column 'size'" in refused(path, "colour", drop=["size"])
    assert "no target column '7'" in refused(path, "7")
    assert "pass the column of labels" in refused(path, None)


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


# Very long lines ----------------------------------------------------------------------------------


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
    with pytest.raises(DataFileError, match="/dev/zero: must be a file, got a device"):
        read("/dev/zero", "y", format=format)
