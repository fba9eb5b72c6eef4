"""Files read in batches; reading leaves no open files behind."""

import bz2
import gzip
import os
import subprocess
import sys
import tempfile

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import maxmargin as mm
from maxmargin.files import DataFileError, Table, batches, read
from tests.helpers.data_files import X, Y, packed_npz, parquet, refused, text

# Batches ------------------------------------------------------------------------------------------


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
    with pytest.raises(DataFileError, match=r"t\.csv: the columns 'c', 'd', on which"):
        list(batches(path, ["a", "c", "d"]))
    with pytest.raises(DataFileError, match="no target column 'z'"):
        list(batches(path, ["a"], target="z"))
    with pytest.raises(DataFileError, match="has a header but no rows"):
        list(batches(put("h.csv", "a,b,y\n"), ["a"]))
    with pytest.raises(DataFileError, match="line 3 has 1 fields"):
        list(batches(put("r.csv", "a,b\n1,2\n3\n"), ["a", "b"]))
    with pytest.raises(DataFileError, match="line 3: 'x' is not a number"):
        list(batches(put("n.csv", "a,b\n1,2\nx,2\n1,2\n"), ["a", "b"]))


# Files and arrays of the caller -------------------------------------------------------------------


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


@pytest.mark.slow
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
            check=True, timeout=600,
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
    with pytest.raises(DataFileError, match="no effect on the format svmlight"):
        read(path, **option)
    with pytest.raises(DataFileError, match="no effect on the format svmlight"):
        list(batches(path, **option))
