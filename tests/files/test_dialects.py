"""Files that people have: sheets, other encodings, commas, dates, no header, an index."""

import datetime
import io
import sys
import zipfile

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from maxmargin.files import DataFileError, batches, read
from maxmargin.files.row_hashes import row_hashes
from tests.helpers.data_files import ROWS, X, Y, refused, text

FRAME = pl.DataFrame(ROWS, schema=["a", "b", "y"], orient="row")

ODS = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" office:version="1.2">
<office:body><office:spreadsheet><table:table table:name="one">{rows}</table:table>
</office:spreadsheet></office:body></office:document-content>"""

ARFF = """% the same table
@RELATION 'three rows'
@attribute a NUMERIC
@attribute 'b' real
@attribute y {x, z}
@DATA
1.5,-2,x
3,4.25,'z'
% a remark
0,0.001,x
"""
SPARSE_ARFF = ARFF[: ARFF.index("1.5,")] + "{0 1.5,1 -2}\n{0 3,1 4.25,2 z}\n{1 0.001}\n"


def written(write):
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


def ods():
    cells = [["a", "b", "y"], *ROWS]
    rows = "".join(
        "<table:table-row>" + "".join(map(_cell, row)) + "</table:table-row>" for row in cells
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr("META-INF/manifest.xml", manifest)
        archive.writestr("content.xml", ODS.format(rows=rows))
    return buffer.getvalue()


def _cell(value):
    if isinstance(value, float):
        of = f'office:value-type="float" office:value="{value!r}"'
        return f"<table:table-cell {of}><text:p>{value!r}</text:p></table:table-cell>"
    return (
        f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
    )


COMMAS = text(";").replace(".", ",")
SHEET = written(FRAME.write_excel)


# The same table in every form ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("t.xlsx", SHEET, {}),
        ("table", SHEET, {}),
        ("t.xlsx", SHEET, {"sheet": "Sheet1"}),
        ("t.xlsx", SHEET, {"sheet": "1"}),
        ("t.ods", ods(), {}),
        ("table", ods(), {}),
        ("t.feather", written(FRAME.write_ipc), {}),
        ("t.arrow", written(lambda f: FRAME.write_ipc(f, compression="zstd")), {}),
        ("t.arrow", written(FRAME.write_ipc_stream), {}),
        ("table", written(FRAME.write_ipc), {}),
        ("t.arff", ARFF, {}),
        ("t.arff", SPARSE_ARFF, {}),
        ("table", ARFF, {}),
        ("t.csv.zip", zipped(t__csv=text()), {}),
        ("t.zip", zipped(t__tsv=text("\t")), {}),
        ("table", zipped(t__csv=text()), {}),
        ("t.zip", zipped(t__parquet=written(FRAME.write_parquet)), {}),
        ("t.csv", text().encode("utf-16"), {}),
        ("t.csv", text().encode("utf-16-le"), {}),
        ("t.csv", text().encode("utf-16-be"), {}),
        ("t.csv", text().encode("utf-32"), {}),
        ("t.txt", text().encode("utf-16"), {}),
        ("t.csv", text().encode("cp037"), {"encoding": "cp037"}),
        ("t.csv", COMMAS, {"separator": ";", "decimal": ","}),
        ("t.csv", text(header=False), {"target": "-1"}),
        ("t.csv", text(header=False), {"target": "-1", "header": False}),
        ("t.csv", text(), {"header": True}),
    ],
)
def test_every_form_gives_the_same_table(put, name, content, options):
    path = put(name, content)
    table = read(path, **({"target": "y"} | options))
    assert_array_equal(np.asarray(table.X, dtype=float), X)
    assert_array_equal(table.y, Y)
    known = {key: v for key, v in options.items() if key not in ("target", "header")}
    parts = list(
        batches(path, table.names, target=table.target, labelled=True, like=table.reading, **known)
    )
    assert_array_equal(np.concatenate([part.X.to_numpy() for part in parts]), X)
    assert_array_equal(np.concatenate([part.y for part in parts]), Y)


def test_a_zip_file_needs_one_member(put):
    path = put("t.zip", zipped(a__csv=text(), b__csv=text()))
    assert "must hold one data file, got 2: a.csv, b.csv" in refused(path)
    assert "got 0" in refused(put("t.zip", zipped()))
    assert "cannot be read" in refused(put("t.zip", b"PK\x03\x04 and then nothing"))


def test_sheets_by_name(put):
    import xlsxwriter

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        FRAME.write_excel(book, worksheet="rows")
        book.add_worksheet("empty")
    path = put("t.xlsx", buffer.getvalue())
    table = read(path, "y")
    assert table.notes == [
        f"{path}: the first sheet, rows, is read: pass --sheet for another (empty)."
    ]
    assert not read(path, "y", sheet="rows").notes
    assert "there is no sheet 'two'; the file has rows, empty" in refused(path, sheet="two")
    assert "the sheet 'empty' is empty" in refused(path, sheet="2")


@pytest.mark.parametrize(
    ("module", "name", "content", "said"),
    [
        ("fastexcel", "t.xlsx", SHEET, r'pip install "maxmargin\[excel\]"'),
        ("arff", "t.arff", ARFF, r'pip install "maxmargin\[arff\]"'),
    ],
)
def test_readers_that_are_not_installed(put, monkeypatch, module, name, content, said):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=said):
        read(put(name, content), "y")


def test_damaged_files(put):
    assert "the sheet cannot be read" in refused(put("t.xlsx", b"PK\x03\x04 nothing"))
    assert "the Arrow file cannot be read" in refused(put("t.arrow", b"ARROW1\0\0 nothing"))
    assert "the Arrow file cannot be read" in refused(put("t.feather", b"nothing at all"))
    assert "the ARFF file cannot be read" in refused(put("t.arff", "@relation r\n@data\n1,2\n"))


def test_nominal_numbers_of_arff_are_categories(put):
    content = "@relation r\n@attribute a {1,2,3}\n@attribute b {0,1}\n@attribute y {u,v}\n@data\n"
    table = read(put("t.arff", content + "1,0,u\n2,?,v\n3,1,u\n"), "y")
    assert table.X.schema["a"] == pl.Categorical
    assert table.X["b"].to_list() == [0.0, None, 1.0]


# Encodings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "word", "said"),
    [
        ("latin-1", "grün", "Latin-1"),
        ("cp1252", "5 €", "Windows-1252"),
        ("utf-16", "grün", "UTF-16"),
    ],
)
def test_guessed_encodings_are_noted(put, encoding, word, said):
    path = put("t.csv", f"größe,b,y\n1,rot,{word}\n2,{word},v\n".encode(encoding))
    table = read(path, "y")
    assert table.names == ["größe", "b"]
    assert table.X["b"].to_list() == ["rot", word]
    assert table.y.tolist() == [word, "v"]
    assert len(table.notes) == 1
    assert f"not UTF-8, read as {said}" in table.notes[0]
    assert not read(path, "y", encoding=encoding).notes


def test_an_encoding_is_remembered_for_text_that_is_not_utf8(put):
    path = put("t.csv", "a,b,y\n1,łódź,u\n2,rot,v\n".encode("cp1250"))
    table = read(path, "y", encoding="cp1250")
    assert table.X["b"][0] == "łódź"
    (part,) = batches(path, ["b"], like=table.reading)
    assert part.X["b"][0] == "łódź"
    (part,) = batches(put("u.csv", "a,b\n1,łódź\n"), ["b"], like=table.reading)
    assert part.X["b"][0] == "łódź"


def test_encodings_that_are_wrong(put):
    path = put("t.csv", "größe,b,y\n1,2,u\n3,4,v\n".encode("latin-1"))
    assert "is not text in ascii" in refused(path, encoding="ascii")
    with pytest.raises(DataFileError, match="encoding must be one that Python knows"):
        read(path, "y", encoding="klingon")
    # Most of it is UTF-8: one byte is damaged.
    path = put("t.csv", "größe,ähre,y\n1,2,ü\n3,4,".encode() + b"\xfc\n")
    assert "line 3 is not UTF-8 text: pass the encoding" in refused(path)


# Numbers and missing values -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "options", "values"),
    [
        (["1,5", "-2", "3,25"], {"decimal": ","}, [1.5, -2, 3.25]),
        (["1.234,5", "12", "1.000.000"], {"decimal": ",", "thousands": "."}, [1234.5, 12, 1e6]),
        (["1,234.5", "12.25", "1,000,000"], {"thousands": ","}, [1234.5, 12.25, 1e6]),
        (["1 234", "12", "1\u00a0000"], {"thousands": " "}, [1234, 12, 1000]),
        (["1'234", "12", "5"], {"thousands": "'"}, [1234, 12, 5]),
        (["1e3", "n/a", "2"], {"missing": "n/a"}, [1000, np.nan, 2]),
        (["-", "7", "#N/A"], {"missing": ["-", "#N/A"]}, [np.nan, 7, np.nan]),
        (["-999", "7", "1"], {"missing": "-999"}, [np.nan, 7, 1]),
    ],
)
def test_how_numbers_are_written(put, texts, options, values):
    path = put("t.csv", "a;n;y\n" + "".join(f"1;{t};{'uv'[k % 2]}\n" for k, t in enumerate(texts)))
    table = read(path, "y", separator=";", **options)
    assert_array_equal(table.X[:, 1], values)
    (part,) = batches(path, ["n"], like=table.reading)
    assert_array_equal(part.X["n"].to_numpy(), values)
    regression = read(path, "a", separator=";", targets="numbers", drop="y", **options)
    assert_array_equal(regression.X[:, 0], values)


def test_marks_of_missing_numbers_in_typed_files(put):
    frame = pl.DataFrame({"a": [1, -999, 3], "w": ["p", "n/a", "q"], "y": ["u", "v", "u"]})
    path = put("t.parquet", written(frame.write_parquet))
    table = read(path, "y", missing=["-999", "n/a"])
    assert table.missing() == {"a": 1, "w": 1}


def test_numbers_that_are_not_of_the_style(put):
    path = put("t.csv", "a;y\n1,5;u\n2.5;v\n3,5;u\n")
    message = refused(path, separator=";", decimal=",")
    assert "line 3: '2.5' is not a number" in message
    path = put("t.csv", "a;y\n1,000;u\n2,5;v\n3,5;u\n")
    assert "--decimal , for decimal commas" in refused(path, separator=";")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decimal": "x"}, "decimal must be one character"),
        ({"thousands": ".,"}, "thousands must be one character"),
        ({"thousands": "."}, "decimal and thousands must differ"),
        ({"header": "maybe"}, "header must be True, False or 'auto'"),
        ({"dates": "words"}, "dates must be 'parts' or 'numbers'"),
        ({"date_format": "%Y"}, "date_format has no effect without dates"),
        ({"missing": [1]}, "missing must be texts"),
    ],
)
def test_options_that_are_wrong(put, options, said):
    with pytest.raises(ValueError, match=said):
        read(put("t.csv", text()), "y", **options)


@pytest.mark.parametrize(
    "options", [{"decimal": ","}, {"encoding": "latin-1"}, {"sheet": "a"}, {"header": False}]
)
def test_options_without_effect(put, options):
    path = put("t.parquet", written(FRAME.write_parquet))
    assert f"{next(iter(options))} has no effect on the format parquet" in refused(path, **options)


def test_long_values_are_cut(put):
    long = "x" * 5000
    for content in (
        f"a,b,y\n1,2,u\n3,{long},v\n5,6,u\n",
        f"a,b,z\n1,2,{long}\n3,4,v\n",
        f"{long},b,z\n1,2,u\n3,4,v\n",
        f"{long},{long},y\n1,2,u\n3,4,v\n",
    ):
        message = refused(put("t.csv", content))
        assert len(message) < 400
        assert "…" in message or "there is no target" in message


# Headers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "has_header", "noted"),
    [
        (["5.1,3.5,setosa", "4.9,3.0,setosa", "7.0,3.2,virginica"], False, True),
        (["39,clerk,A", "50,smith,B", "38,smith,A"], False, True),
        (["-1,2,u", "3,4,v", "5,6,u"], False, True),
        (["a,b,y", "1,2,u", "3,4,v"], True, False),
        (["a,b,y", "p,q,u", "r,s,v"], True, False),
        (["mass,2020,y", "1,2,u", "3,4,v"], True, False),  # a name above a number
        (["0,1,y", "p,2,u", "q,4,v"], True, True),  # which counts
        (["2019,2020,2021,y", "5,6,7,u", "8,9,1,v"], True, True),  # years
        (["2,1,y", "1,2,u", "3,4,v"], False, True),
        (["NA,2.5,u", "1,2,u", "3,4,v"], False, True),
        (["1;5,2", "2;6,5", "3;7,1"], False, True),
    ],
)
def test_headers_are_found(put, lines, has_header, noted):
    path = put("t.csv", "\n".join(lines) + "\n")
    style = {"separator": ";", "decimal": ","} if ";" in lines[0] else {}
    table = read(path, labelled=False, **style)
    assert len(table.X) == len(lines) - has_header
    assert (table.names[0] == "column_0") == (not has_header)
    assert bool(table.notes) == noted
    assert table.reading.get("header", True) == has_header
    for header in (True, False):
        words = list(map(str, range(len(table.names))))
        asked = read(path, labelled=False, header=header, words=words, **style)
        assert len(asked.X) == len(lines) - header
        assert not asked.notes


def test_columns_that_are_asked_for_are_a_header(put):
    path = put("t.csv", "1.5,b,y\np,q,u\nr,s,v\n")
    assert read(path, "y").names == ["1.5", "b"]
    (part,) = batches(path, ["b"])
    assert len(part.X) == 2


# Index columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("Unnamed: 0", [0, 1, 2, 3], "certain"),
        ("Unnamed: 0.1", [7, 3, 9, 1], "certain"),
        ("__index_level_0__", [7, 3, 9, 1], "certain"),
        ("", [0, 1, 2, 3], "certain"),
        ("", [1, 2, 3, 4], "certain"),
        ("", [4, 7, 1, 9], "likely"),
        ("id", [4, 7, 1, 9], "likely"),
        ("ID", ["p", "q", "r", "s"], "likely"),
        ("patient_id", [1, 2, 3, 4], "likely"),
        ("customerId", [1, 2, 3, 4], "likely"),
        ("id", [1, 1, 2, 2], "feature"),
        ("id", [1.5, 2.5, 3.5, 4.5], "feature"),
        ("width", [0, 1, 2, 3], "feature"),
        ("squid", [4, 7, 1, 9], "feature"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_index_columns(put, name, values, kind, ending):
    frame = pl.DataFrame({name: values, "a": [1.5, 2.0, 2.5, 9.0], "y": list("uvuv")})
    write = frame.write_csv if ending == "csv" else frame.write_parquet
    path = put(f"t.{ending}", written(write))
    table = read(path, "y")
    assert (name in table.names) == (kind != "certain")
    assert (name in table.dropped) == (kind == "certain")
    assert any("--keep-index" in note for note in table.notes) == (kind == "certain")
    assert table.index_like == ([name] if kind == "likely" else [])
    kept = read(path, "y", keep_index=True)
    assert kept.names == [name, "a"]
    assert not kept.notes
    assert not kept.index_like


def test_an_index_may_be_the_target(put):
    path = put("t.csv", "Unnamed: 0,a\n0,1.5\n1,2.5\n2,4.0\n")
    table = read(path, "Unnamed: 0", targets="numbers")
    assert table.y.tolist() == [0, 1, 2]


# Dates --------------------------------------------------------------------------------------------

DAY = datetime.datetime(2024, 2, 29, 13, 45)
NEXT = datetime.datetime(2023, 12, 31, 0, 30)


@pytest.mark.parametrize(
    "form",
    ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%Y-%m-%d %H:%M:%S",
     "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%d/%m/%Y %H:%M"],
)  # fmt: skip
def test_forms_of_dates(put, form):
    path = put("t.csv", f"when,a,y\n{DAY:{form}},1,u\n,2,v\n{NEXT:{form}},3,u\n")
    assert "column 'when' holds dates" in refused(path)
    table = read(path, "y", dates="parts")
    parts = [[2024, 2, 29, 4], [np.nan] * 4, [2023, 12, 31, 7]]
    if "%H" in form:
        parts = [[*parts[0], 13, 45], [np.nan] * 6, [*parts[2], 0, 30]]
    names = ["year", "month", "day", "weekday", "hour", "minute"][: len(parts[0])]
    assert table.names == [*(f"when.{name}" for name in names), "a"]
    assert_array_equal(table.X, np.column_stack([parts, [1, 2, 3]]))
    (part,) = batches(path, table.names, like=table.reading)
    assert_array_equal(part.X.to_numpy(), table.X)
    days = read(path, "y", dates="numbers")
    assert days.names == ["when.days", "a"]
    share = (13 * 60 + 45) / 1440 if "%H" in form else 0
    assert days.X[0, 0] == pytest.approx(19782 + share, abs=1e-9)
    assert np.isnan(days.X[1, 0])


def test_dates_of_typed_files_and_of_text_are_the_same(put):
    days = [datetime.date(2024, 1, 31), datetime.date(2023, 5, 1), datetime.date(2022, 7, 4)]
    frame = pl.DataFrame({"when": days, "a": [1.0, 2.0, 3.0], "y": ["u", "v", "u"]})
    typed = put("t.parquet", written(frame.write_parquet))
    sheet = put("t.xlsx", written(frame.write_excel))
    plain = put("t.csv", written(frame.write_csv))
    assert "--dates parts or --dates numbers" in refused(typed)
    tables = {path: read(path, "y", dates="numbers") for path in (typed, sheet, plain)}
    for one in tables.values():
        for path in tables:
            (part,) = batches(path, one.names, like=one.reading)
            assert_array_equal(part.X.to_numpy(), tables[typed].X)


def test_the_order_of_day_and_month(put):
    path = put("t.csv", "when,y\n01/02/2024,u\n03/04/2024,v\n")
    table = read(path, "y", dates="parts")
    assert table.X[:, 1].tolist() == [1, 3]
    assert "read as month/day/year: pass --date-format %d/%m/%Y" in table.notes[0]
    table = read(path, "y", dates="parts", date_format="%d/%m/%Y")
    assert table.X[:, 1].tolist() == [2, 4]
    assert not table.notes
    (part,) = batches(put("u.csv", "when\n05/06/2024\n"), table.names, like=table.reading)
    assert part.X["when.month"].to_list() == [6]


def test_wrong_dates(put):
    path = put("t.csv", "when,y\n2024-01-31,u\n2024-02-31,v\n2024-03-01,u\n")
    assert "line 3: '2024-02-31' in column 'when' is not a date" in refused(path, dates="parts")
    assert "--dates has no effect" in refused(put("t.csv", text()), dates="parts")
    path = put("t.csv", "when,when.days,y\n2024-01-31,1,u\n2024-02-01,2,v\n")
    assert "'when.days' would be made of the dates" in refused(path, dates="numbers")


# Text, and hashes of rows -------------------------------------------------------------------------


def test_free_text_stays_text(put):
    path = put("t.csv", "note,a,y\ngood fruit,1,u\n,2,v\nbad fruit,3,u\n")
    table = read(path, "y", text="note")
    assert table.X.schema["note"] == pl.String
    assert table.X["note"].to_list() == ["good fruit", "", "bad fruit"]
    (part,) = batches(path, ["note", "a"], words=["note"], text="note")
    assert part.X["note"].to_list() == ["good fruit", "", "bad fruit"]


def test_hashes_are_those_of_the_contents(put):
    path = put("t.csv", "c,a,b,y\np,1.5,0,u\nq,-0.0,NA,v\np,1.5,0,v\n")
    table = read(path, "y")
    hashes = row_hashes(table.X, table.y)
    assert len(set(hashes.tolist())) == 3
    assert row_hashes(table.X)[0] == row_hashes(table.X)[2]
    (part,) = batches(path, table.names, words=["c"], target="y", labelled=True)
    assert_array_equal(row_hashes(part.X, part.y), hashes)
    single = read(path, "y", dtype="float32")
    assert_array_equal(row_hashes(single.X, single.y, single=True),
                       row_hashes(part.X, part.y, single=True))  # fmt: skip
    assert hashes[0] == 2753988886902384475  # on every machine, in every version
