"""``--scheduler``: many files on a Dask cluster, with the answers of one file in memory."""

import json
import time

import numpy as np
import pytest

import maxmargin as mm
from tests.helpers.command_line import bad, call, good, records, run, svmlight, table

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

N, FILES = 600, 3
FIT = ("--target", "label", "--model", "linear-svc", "--tol", "1e-9")


def frame(seed=0):
    """Return rows with a column of text, and a label that no plane separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3))
    colour = rng.choice(["red", "green", "blue"], N)
    score = 2 * X[:, 0] - X[:, 1] + (colour == "red") + 0.5 * rng.standard_normal(N)
    label = np.where(score > 0, "yes", "no")
    numbers = pd.DataFrame(X, columns=["a", "b", "c"])
    return numbers.assign(colour=colour, label=label, amount=score)


@pytest.fixture(scope="module")
def address():
    """The address of a scheduler in this process."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows as many files of each format, and as one."""
    here, rows = tmp_path_factory.mktemp("data"), frame()
    for kind in ("parquet", "csv", "svm"):
        (here / kind).mkdir()
    for k, part in enumerate(np.array_split(np.arange(N), FILES)):
        some = rows.iloc[part]
        some.drop(columns="amount").to_parquet(here / "parquet" / f"p{k}.parquet", index=False)
        some.drop(columns="amount").to_csv(here / "csv" / f"p{k}.csv", index=False)
        # The last feature is in one file only.
        X = some[["a", "b", "c"]].to_numpy()
        X = np.column_stack([X, np.full(len(X), 1.0 if k == 1 else 0.0)])
        (here / "svm" / f"p{k}.svm").write_bytes(svmlight(X, (some["label"] == "yes") * 2 - 1))
    rows.drop(columns="amount").to_csv(here / "one.csv", index=False)
    rows.drop(columns=["colour", "label"]).to_parquet(here / "amounts.parquet", index=False)
    parts = [(here / "svm" / f"p{k}.svm").read_bytes() for k in range(FILES)]
    (here / "one.svm").write_bytes(b"".join(parts))
    (here / "svm" / "_SUCCESS").write_text("")
    return here


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def in_memory(folder):
    """The fit to one file."""
    out = folder / "one.mm"
    good(call("fit", folder / "one.csv", *FIT, "--out", out))
    return mm.load(out)


def close(model, other):
    np.testing.assert_allclose(model[-1].coef_, other[-1].coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model[-1].intercept_, other[-1].intercept_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("data", ["parquet/*.parquet", "csv"])
def test_many_tables_give_the_model_of_one(data, here, in_memory, address):
    done = call("fit", data, *FIT, "--scheduler", address, "--out", "many.mm", "--json")
    (record,) = records(good(done))
    close(mm.load("many.mm"), in_memory)
    assert record["data"]["files"] == FILES
    assert record["data"]["rows"] == record["training_rows"] == N
    assert record["data"]["classes"] == frame()["label"].value_counts().to_dict()
    assert record["words"] == {"colour": 3}
    assert record["holds"] is True
    report = record["fit_report"]
    assert 0 < report["passes"] <= report["rounds"] <= 40
    assert report["partitions"] == FILES
    assert report["most_bytes_per_round"] <= report["bytes_moved"]
    expected = 1 - mm.load("many.mm").score(frame()[["a", "b", "c", "colour"]], frame()["label"])
    assert record["training_error"] == pytest.approx(expected)


def test_blocks_of_one_large_file(here, in_memory, address, monkeypatch):
    from maxmargin.engines.dask import files

    monkeypatch.setattr(files, "TUNING", files.Tuning(block_bytes=5000, held_share=0.0))
    done = call("fit", "one.csv", *FIT, "--scheduler", address, "--out", "blocks.mm", "--json")
    (record,) = records(good(done))
    close(mm.load("blocks.mm"), in_memory)
    assert record["fit_report"]["partitions"] > 3
    assert record["data"]["rows"] == N


def test_row_groups_of_one_file_and_a_regression(here, address, monkeypatch):
    from maxmargin.engines.dask import files

    frame().drop(columns=["colour", "label"]).to_parquet("groups.parquet", row_group_size=150)
    monkeypatch.setattr(files, "TUNING", files.Tuning(block_bytes=1))
    fit = ("--target", "amount", "--model", "linear-svr", "--tol", "1e-9", "--epsilon", "0.1")
    done = call("fit", "groups.parquet", *fit, "--scheduler", address, "--out", "g.mm", "--json")
    (record,) = records(good(done))
    good(call("fit", "amounts.parquet", *fit, "--out", "a.mm"))
    close(mm.load("g.mm"), mm.load("a.mm"))
    assert record["fit_report"]["partitions"] == 4
    assert record["data"]["targets"]["mean"] == pytest.approx(frame()["amount"].mean())
    assert record["data"]["targets"]["std"] == pytest.approx(frame()["amount"].std(ddof=0))
    assert 0.5 < record["training"]["r2"] < 1


def test_svmlight_files_of_different_widths(here, address):
    fit = ("--model", "linear-svc", "--tol", "1e-9")
    done = call("fit", "svm", *fit, "--scheduler", address, "--out", "s.mm", "--json")
    (record,) = records(good(done))
    good(call("fit", "one.svm", *fit, "--out", "o.mm"))
    close(mm.load("s.mm"), mm.load("o.mm"))
    assert record["data"]["columns"] == 4
    assert record["data"]["classes"].keys() == {"-1", "1"}


def test_files_without_rows_are_left_out(here, in_memory, address):
    (here / "some").mkdir()
    for k in range(FILES):
        (here / "some" / f"p{k}.csv").write_text((here / "csv" / f"p{k}.csv").read_text())
    (here / "some" / "empty.csv").write_text("a,b,c,colour,label\n")
    done = call("fit", "some", *FIT, "--scheduler", address, "--out", "h.mm")
    assert "600 rows in 4 files" in good(done)
    close(mm.load("h.mm"), in_memory)
    alone = call("fit", "some/empty.csv", *FIT, "--scheduler", address)
    bad(alone, "some/empty.csv: there are no rows.")


def test_a_model_that_leaves_vectors_on_the_workers_is_saved(here, address):
    fit = ("--target", "label", "--model", "ho-kashyap", "--max-iter", 5)
    good(call("fit", "csv", *fit, "--scheduler", address, "--out", "k.mm"))
    assert [each.shape for each in mm.load("k.mm")[-1].margins_] == [(N,)]
    done = call("predict", "k.mm", "csv/p0.csv", "--scheduler", address, "--out", "one")
    assert "200 rows labelled: 1 file in one" in good(done)


def test_predictions_of_every_file(here, in_memory, address):
    done = call(
        "predict", "one.mm", "csv/p0.csv", "csv/p2.csv", "--scheduler", address, "--out", "labels"
    )
    assert "400 rows labelled: 2 files in labels" in good(done)
    assert sorted(path.name for path in (here / "labels").iterdir()) == ["p0.csv", "p2.csv"]
    for k in (0, 2):
        alone = good(call("predict", "one.mm", f"csv/p{k}.csv"))
        assert (here / "labels" / f"p{k}.csv").read_text() == alone
        assert len(table(alone)) == N // FILES
    good(call("predict", "one.mm", "parquet", "--scheduler", address, "--out", "j", "--json"))
    lines = (here / "j" / "p1.jsonl").read_text().splitlines()
    assert len(lines) == N // FILES
    assert json.loads(lines[0]).keys() == {"label", "score"}


def test_evaluation_of_many_files(here, in_memory, address):
    done = call("evaluate", "one.mm", "parquet/*.parquet", "--scheduler", address, "--json")
    alone = call("evaluate", "one.mm", "one.csv", "--json")
    assert records(good(done)) == records(good(alone))


def test_a_cluster_of_its_own(here):
    done = run("fit", "parquet", *FIT, "--drop", "colour", "--scheduler", "local:1", cwd=here)
    out = good(done)
    assert "600 rows in 3 files" in out
    assert "optimal to a relative gap" in out
    assert "1 worker, 1 thread" in out
    assert done.err == ""


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here", "in_memory")
def test_options_without_a_meaning_are_refused(address):
    with_cluster = ("--scheduler", address)
    bad(call("fit", "csv", *FIT, "--cv", 3, *with_cluster), "--cv is not for --scheduler", code=2)
    bad(call("fit", "csv", *FIT, "--test", 0.2, *with_cluster), "--test is not for", code=2)
    bad(call("fit", "csv", *FIT, "--device", "cpu", *with_cluster), "--device is not for", code=2)
    bad(call("fit", "csv", "--target", "label", "--model", "kernel-perceptron", *with_cluster),
        "kernel-perceptron cannot be fitted on a cluster", "linear-svc", code=2)  # fmt: skip
    bad(call("fit", "-", *FIT, *with_cluster), "standard input", code=2)
    bad(call("fit", "csv/p0.csv", "csv/p1.csv", *FIT), "several need --scheduler", code=2)
    bad(call("predict", "one.mm", "csv", *with_cluster), "pass --out FOLDER", code=2)
    same = call(
        "predict", "one.mm", "csv/p0.csv", "parquet/p0.parquet", "--out", "x", *with_cluster
    )
    bad(same, "the same output", code=2)
    bad(call("predict", "one.mm", "csv", "--out", "csv", *with_cluster), "would replace", code=2)


@pytest.mark.usefixtures("here")
def test_files_that_cannot_be_read(here, address):
    (here / "odd").mkdir(exist_ok=True)
    frame().iloc[:20].to_csv(here / "odd" / "a.csv", index=False)
    frame().iloc[:20].drop(columns="b").to_csv(here / "odd" / "b.csv", index=False)
    fit = (*FIT, "--scheduler", address)
    bad(call("fit", "odd", *fit), "the same columns", "'b'")
    bad(call("fit", "none/*.csv", *fit), "no file matches the pattern")
    bad(call("fit", "csv/p0.csv", "parquet/p0.parquet", *fit), "of one format")
    bad(call("fit", "csv", "--target", "labl", *fit[2:]), "Did you mean 'label'?")
    (here / "gaps").mkdir(exist_ok=True)
    frame().assign(a=np.nan).to_csv(here / "gaps" / "a.csv", index=False)
    frame().to_csv(here / "gaps" / "b.csv", index=False)
    bad(call("fit", "gaps", *fit), "600 missing values (600 in a)", "--impute")
    good(call("fit", "gaps", *fit, "--impute", "--drop", "amount"))
    (here / "gaps" / "b.csv").write_text(
        "a,b,c,colour,label,amount\n1,x,1,red,no,2\n1,2,1,red,no,2\n1,3,1,red,yes,2\n"
    )
    bad(call("fit", "gaps", *fit), "b.csv: line 2: 'x' is not a number", "'b'")


@pytest.mark.usefixtures("here")
def test_wrong_addresses_are_told_within_seconds():
    started = time.perf_counter()
    fit = ("fit", "csv", *FIT, "--scheduler")
    bad(call(*fit, "tcp://127.0.0.1:9"), "There must be a Dask scheduler", "dask scheduler")
    bad(call(*fit, "somewhere"), "must be local, local:N", "'somewhere'", code=2)
    bad(call(*fit, "local:0"), "'local:0'", code=2)
    bad(call(*fit, "nonsense://1.2.3.4:5"), "nonsense://1.2.3.4:5")
    assert time.perf_counter() - started < 20
    with pytest.raises(ValueError, match="No clients found"):  # what failed leaves nothing behind
        distributed.default_client()
    assert da.ones(3).sum().compute() == 3


@pytest.mark.usefixtures("here")
def test_without_the_extra(monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.startswith("maxmargin.engines.dask")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "dask", None)
    bad(call("fit", "csv", *FIT, "--scheduler", "local"), 'pip install "maxmargin[dask]"')
