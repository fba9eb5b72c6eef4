"""Fits on a Dask cluster of two worker processes, against the same fits in memory and Spark's.

    python benchmarks/cluster.py linear --data DIR     # covtype and 5,000,000 x 28
    python benchmarks/cluster.py kernel --data DIR     # a9a and 40,000 rows of covtype
    python benchmarks/cluster.py partitions            # 1 to 16 partitions per worker: a cost model
    python benchmarks/cluster.py wide --data DIR       # text: rounds, against local dual descent
    python benchmarks/cluster.py stream --rows 100000000
    python benchmarks/cluster.py weak                  # 1,000,000 rows on each of 1, 2, 4 … workers
    python benchmarks/cluster.py gpu                   # one worker, with and without its GPU

Every contestant runs in a process of its own. On the cluster X and y are on the workers before the
clock starts; the first fit, which compiles, is not counted, and of the others the fastest counts.
Spark is an optional peer (``pip install pyspark``, Java): LinearSVC in local[2] mode on cached
vectors, without standardisation, regParam = 1/(Cn); its plane is rescored here in float64. Data are
those of DIR, or generated where it is not given; ``--rows`` limits them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

WORKERS = 2
COLUMNS = 28


# Data ---------------------------------------------------------------------------------------------


def generated(n: int, d: int, seed: int) -> tuple[Any, Any]:
    """Return rows of a normal distribution, with labels of a plane and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    w = np.random.default_rng(99).standard_normal(d)
    return X, np.where(X @ w + 2.0 * rng.standard_normal(n) > 0.0, 1, -1)


def svmlight(path: Path) -> tuple[Any, Any]:
    """Return a file of LIBSVM's."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def covtype(data: Path) -> tuple[Any, Any]:
    """Return covtype, class 2 against the rest, columns scaled to [0, 1]."""
    X, y = svmlight(data / "covtype.bz2")
    X = X.toarray()
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12)
    return X.astype(np.float32), np.where(y == 2, 1, -1)


def saved(folder: Path, X: Any, y: Any) -> dict[str, Any]:
    """Write X and y where every contestant finds them."""
    X = X.toarray() if hasattr(X, "toarray") else X
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return {"folder": str(folder)}


def loaded(folder: str) -> tuple[Any, Any]:
    """Return X and y, read from disk when they are used."""
    return tuple(np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in "Xy")


# Contestants --------------------------------------------------------------------------------------


def in_memory(folder: str, model: str, options: dict[str, Any], fits: int) -> dict[str, Any]:
    """Fit in memory on all cores."""
    import maxmargin as mm

    X, y = (np.array(each) for each in loaded(folder))
    return _timed(lambda: getattr(mm, model)(**options).fit(X, y), fits)


def on_cluster(
    folder: str,
    model: str,
    options: dict[str, Any],
    fits: int,
    per_worker: int = 1,
    workers: int = WORKERS,
) -> dict[str, Any]:
    """Fit on worker processes of one thread each."""
    import dask
    from distributed import Client, LocalCluster, wait

    import maxmargin as mm

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        collections = dask.persist(*partitioned(folder, workers * per_worker))
        wait(collections)
        return _timed(lambda: getattr(mm, model)(**options).fit(*collections), fits)


def partitioned(folder: str, n: int) -> tuple[Any, Any]:
    """Return X and y as Dask arrays of n partitions, each read by the worker that needs it."""
    import dask
    import dask.array as da

    found = []
    for name, array in zip("Xy", loaded(folder), strict=True):
        ends = np.linspace(0, len(array), n + 1).astype(int)
        parts = [
            da.from_delayed(
                dask.delayed(_slice)(f"{folder}/{name}.npy", int(low), int(high)),
                (high - low, *array.shape[1:]),
                array.dtype,
            )
            for low, high in pairwise(ends)
        ]
        found.append(da.concatenate(parts))
    return found[0], found[1]


def _slice(path: str, low: int, high: int) -> Any:
    return np.array(np.load(path, mmap_mode="r")[low:high])


def _timed(fit: Callable[[], Any], fits: int) -> dict[str, Any]:
    fit()
    seconds, model = [], None
    for _ in range(fits):
        started = time.perf_counter()
        model = fit()
        seconds.append(time.perf_counter() - started)
    assert model is not None
    certificate = model.certificate_
    found = {
        "seconds": min(seconds), "primal": certificate.primal, "gap": certificate.relative_gap,
        "violation": certificate.violation, "holds": bool(certificate.holds(model.tol)),
    }  # fmt: skip
    report = getattr(model, "fit_report_", None)
    if report is not None:
        found["report"] = _facts(report)
    return found


def _facts(report: Any) -> dict[str, Any]:
    names = (
        "rounds", "passes", "bytes_moved", "most_bytes", "computing_seconds", "waiting_seconds",
        "n_partitions", "streamed",
    )  # fmt: skip
    return {name: getattr(report, name) for name in names}


def spark(folder: str, C: float, fits: int) -> dict[str, Any]:
    """Fit Spark's LinearSVC, and rescore its plane."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.ml.classification import LinearSVC
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    X, y = (np.array(each) for each in loaded(folder))
    names = [f"x{j}" for j in range(X.shape[1])]
    columns = {name: X[:, j].astype(np.float64) for j, name in enumerate(names)}
    path = str(Path(folder) / "rows.parquet")
    pq.write_table(pa.table({**columns, "label": (y > 0).astype(np.float64)}), path,
                   row_group_size=len(y) // 8 + 1)  # fmt: skip
    session = (
        SparkSession.builder.master(f"local[{WORKERS}]")
        .config("spark.driver.memory", "10g").config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(WORKERS)).getOrCreate()
    )  # fmt: skip
    session.sparkContext.setLogLevel("ERROR")
    frame = VectorAssembler(inputCols=names, outputCol="features").transform(
        session.read.parquet(path)
    )
    frame = frame.select("features", "label").cache()
    frame.count()
    machine = LinearSVC(regParam=1.0 / (C * len(y)), standardization=False, maxIter=200, tol=1e-6)
    machine.fit(frame.limit(1000))
    seconds = []
    for _ in range(fits):
        started = time.perf_counter()
        model = machine.fit(frame)
        seconds.append(time.perf_counter() - started)
    w, b = model.coefficients.toArray(), float(model.intercept)
    return {
        "seconds": min(seconds), "primal": objective(X, y, w, b, C),
        "iterations": int(model.summary().totalIterations) if model.hasSummary else None,
    }  # fmt: skip


def objective(X: Any, y: Any, w: Any, b: float, C: float) -> float:
    """Return ½‖w‖² + C Σ max(0, 1 − y g(x)) in float64."""
    loss = 0.0
    for first in range(0, len(y), 1 << 18):
        some = slice(first, first + (1 << 18))
        scores = X[some].astype(np.float64) @ w + b
        loss += float(np.maximum(0.0, 1.0 - y[some] * scores).sum())
    return 0.5 * float(w @ w) + C * loss


# Text: how many rounds ----------------------------------------------------------------------------


def wide(folder: str, n_partitions: int, tol: float) -> dict[str, Any]:
    """Count the rounds of a fit to sparse rows with many columns, on Dask's threads."""
    import dask
    import dask.array as da
    from scipy import sparse

    import maxmargin as mm

    X, y = sparse.load_npz(Path(folder) / "X.npz"), np.load(Path(folder) / "y.npy")
    step = -(-X.shape[0] // n_partitions)
    blocks = [X[k : k + step] for k in range(0, X.shape[0], step)]
    meta = sparse.csr_matrix((0, X.shape[1]))
    rows = da.concatenate(
        [da.from_delayed(dask.delayed(b), b.shape, X.dtype, meta=meta) for b in blocks]
    )
    model = mm.LinearSVC(loss="hinge", tol=tol, penalize_intercept=True)
    model.fit(rows, da.from_array(y, chunks=step))
    certificate = model.certificate_
    return {"gap": certificate.relative_gap, "report": _facts(model.fit_report_)}


def local_descent(folder: str, n_partitions: int, tol: float, most: int) -> dict[str, Any]:
    """Count the rounds of local dual coordinate descent, added up safely (Smith et al. 2018)."""
    import numba
    from scipy import sparse

    X, y = sparse.load_npz(Path(folder) / "X.npz"), np.load(Path(folder) / "y.npy")
    X = sparse.csr_matrix(sparse.hstack([X, np.ones((X.shape[0], 1))]))
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    X, y = X[order], y[order].astype(float)

    @numba.njit
    def visit(data, indices, indptr, y, squares, alpha, w, change, times, order):
        for i in order:
            score = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                score += data[k] * (w[indices[k]] + times * change[indices[k]])
            new = min(max(alpha[i] + (1.0 - y[i] * score) / (times * squares[i]), 0.0), 1.0)
            by = (new - alpha[i]) * y[i]
            alpha[i] = new
            for k in range(indptr[i], indptr[i + 1]):
                change[indices[k]] += by * data[k]

    parts = np.array_split(np.arange(len(y)), n_partitions)
    rows, labels = [X[p] for p in parts], [y[p] for p in parts]
    squares = [np.asarray(x.multiply(x).sum(axis=1)).ravel() for x in rows]
    alphas, w, gap = [np.zeros(p.size) for p in parts], np.zeros(X.shape[1]), np.inf
    n = 0
    while gap > tol and n < most:
        n += 1
        total = np.zeros_like(w)
        for x, s, q, alpha in zip(rows, labels, squares, alphas, strict=True):
            change = np.zeros_like(w)
            order = rng.permutation(s.size)
            visit(x.data, x.indices, x.indptr, s, q, alpha, w, change, float(n_partitions), order)
            total += change
        w = w + total
        dual = sum(alpha.sum() for alpha in alphas) - 0.5 * w @ w
        primal = 0.5 * w @ w + np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        gap = (primal - dual) / primal
    return {"rounds": n, "gap": float(gap)}


# Larger than the memory ---------------------------------------------------------------------------


def streamed(folder: str, rows: int, d: int, memory: str) -> dict[str, Any]:
    """Write rows to Parquet files, and fit them on two workers that cannot hold them."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import maxmargin as mm

    step = 1_000_000
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, memory_limit=memory
        ) as cluster,
        Client(cluster) as client,
    ):
        started = time.perf_counter()
        files = client.map(
            write_parquet, list(range(0, rows, step)), folder=folder, rows=rows, step=step, d=d
        )
        client.gather(files)
        del files  # or Dask would write them again after a worker was lost
        written = time.perf_counter() - started
        frame = dd.read_parquet(f"{folder}/part-*.parquet", split_row_groups=False)
        started = time.perf_counter()
        model = mm.LinearSVC(loss="hinge").fit(frame.drop(columns="label"), frame["label"])
        seconds = time.perf_counter() - started
        peaks = client.run(most_memory)
    size = sum(path.stat().st_size for path in Path(folder).glob("*.parquet"))
    return {
        "write_seconds": written, "seconds": seconds, "file_bytes": size,
        "gap": model.certificate_.relative_gap, "holds": bool(model.certificate_.holds(1e-4)),
        "report": _facts(model.fit_report_), "worker_peak_bytes": sorted(peaks.values()),
        "client_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip


def write_parquet(first: int, folder: str, rows: int, step: int, d: int) -> str:
    """Write some rows to a file."""
    import pandas as pd

    X, y = generated(min(step, rows - first), d, first)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]).assign(label=y.astype(np.int8))
    path = f"{folder}/part-{first // step:05d}.parquet"
    frame.to_parquet(path, index=False)
    return path


def most_memory() -> int:
    """Return the largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# Races --------------------------------------------------------------------------------------------


def race(contestant: str, **options: Any) -> dict[str, Any] | None:
    """Run a contestant in a process of its own; None where it fails, which is printed."""
    text = json.dumps({"contestant": contestant, **options})
    done = subprocess.run(
        [sys.executable, __file__, "one", "--options", text], capture_output=True, text=True
    )
    if done.returncode:
        print(f"{contestant} failed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def linear(data: Path | None, rows: int | None) -> None:
    """Race linear machines on dense rows."""
    cases: dict[str, Callable[[], tuple[Any, Any]]] = {}
    if data is not None:
        cases["covtype"] = lambda: covtype(data)
    cases["5,000,000 x 28"] = lambda: generated(rows or 5_000_000, COLUMNS, 0)
    for name, make in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            X, y = make()
            X, y = X[:rows], y[:rows]
            where = saved(Path(folder), X, y)
            shape = X.shape
            del X, y
            machine = {"model": "LinearSVC", "options": {"loss": "hinge"}, "fits": 3}
            ours = race("on_cluster", **where, **machine)
            here = race("in_memory", **where, **machine)
            peer = race("spark", **where, C=1.0, fits=1) if find_spec("pyspark") else None
        print(f"\n{name}, {shape[0]:,} x {shape[1]}, hinge, C=1")
        show("on the cluster", ours)
        show("in memory", here, ours)
        show("Spark", peer, ours)


def kernel(data: Path | None, rows: int | None) -> None:
    """Race kernel machines."""
    if data is None:
        X, y = generated(rows or 20_000, 20, 1)
        cases = {"generated": (X, y, {"C": 1.0, "gamma": 0.05})}
    else:
        X, y = svmlight(data / "a9a.bz2")
        cases = {"a9a": (X[:rows], y[:rows], {"C": 1.0, "gamma": 1.0 / 123})}
        X, y = covtype(data)
        some = np.random.default_rng(0).permutation(len(y))[: min(40_000, rows or 40_000)]
        cases["covtype, 40,000 rows"] = X[some], y[some], {"C": 10.0, "gamma": 1.0}
    for name, (X, y, options) in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            where = saved(Path(folder), X, y)
            machine = {"model": "SVC", "options": options, "fits": 2}
            ours = race("on_cluster", **where, **machine)
            here = race("in_memory", **where, **machine)
        print(f"\n{name}, SVC {options}")
        show("on the cluster", ours)
        show("in memory", here, ours)


def show(name: str, found: dict[str, Any] | None, ours: dict[str, Any] | None = None) -> None:
    """Print a line."""
    if found is None:
        print(f"  {name:15s} –")
        return
    text = f"  {name:15s} {found['seconds']:8.2f} s   P = {found['primal']:.8g}"
    if "gap" in found:
        text += f"   gap {found['gap']:.1e}   holds {found['holds']}"
    if ours is not None:
        text += f"   {found['seconds'] / ours['seconds']:.2f} x the cluster's time"
    print(text)
    if "report" in found:
        print(f"  {'':15s} {found['report']}")


def partitions(rows: int | None) -> None:
    """Fit with 1 to 16 partitions per worker, and fit a cost model to all of it.

    seconds = passes · n · d · a + rounds · (b + c · partitions): a per number and thread, b of a
    round, c of a task.
    """
    most = rows or 2_000_000
    lines, times = [], []
    machine = {"model": "LinearSVC", "options": {"loss": "hinge"}, "fits": 3}
    for n, numbers_of_partitions in ((most, (1, 2, 4, 8, 16)), (most // 4, (1, 4, 16))):
        with tempfile.TemporaryDirectory() as folder:
            where = saved(Path(folder), *generated(n, COLUMNS, 0))
            for per_worker in numbers_of_partitions:
                found = race("on_cluster", **where, **machine, per_worker=per_worker)
                if found is None:
                    continue
                report = found["report"]
                print(f"{n:,} rows, {per_worker} per worker: {found['seconds']:.2f} s, {report}")
                numbers = report["passes"] * n * COLUMNS / WORKERS
                tasks = report["rounds"] * report["n_partitions"]
                lines.append([numbers, report["rounds"], tasks])
                times.append(found["seconds"])
    model, *_ = np.linalg.lstsq(np.array(lines), np.array(times), rcond=None)
    per_number, per_round, per_task = (float(each) for each in model)
    print(f"{per_number * 1e9:.2f} ns per number, {per_round * 1e3:.1f} ms per round, "
          f"{per_task * 1e3:.2f} ms per task")  # fmt: skip
    for line, seconds in zip(lines, times, strict=True):
        print(f"  measured {seconds:.2f} s, by the model {float(np.dot(line, model)):.2f} s")
    passes, rounds, workers, parts = 15, 20, 64, 64
    compute = passes * 1e9 * 100 / workers * per_number
    wait = rounds * (per_round + parts * per_task)
    print(f"1e9 x 100 on 64 workers of one thread, one partition each: {compute:.0f} s computing, "
          f"{wait:.0f} s of rounds, {1e9 * 100 * 4 / workers / 1e9:.1f} GB of float32 rows per "
          f"worker, {rounds * parts * 101 * 101 * 8 / 1e9:.2f} GB moved")  # fmt: skip


def weak(rows: int | None) -> None:
    """Fit as many rows per worker on ever more workers, one core each, the client has another."""
    from maxmargin.runtime.threads import n_cores

    workers, machine = 1, {"model": "LinearSVC", "options": {"loss": "hinge"}, "fits": 3}
    while workers < n_cores():
        with tempfile.TemporaryDirectory() as folder:
            where = saved(Path(folder), *generated((rows or 1_000_000) * workers, COLUMNS, 0))
            found = race("on_cluster", **where, **machine, workers=workers)
        if found is not None:
            print(f"{workers} workers: {found['seconds']:.2f} s, {found['report']}", flush=True)
        workers *= 2


def gpu(rows: int | None) -> None:
    """Fit a kernel machine on one worker that has a GPU, and on the same without it."""
    import os

    n = rows or 40_000
    X, _ = generated(n, 50, 0)
    noise = np.random.default_rng(1).standard_normal(n)
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.7 * noise > 0.0, 1, -1)
    machine = {"model": "SVC", "options": {"C": 10.0, "gamma": 0.02}, "fits": 2}
    with tempfile.TemporaryDirectory() as folder:
        where = saved(Path(folder), X, y)
        for visible in ("0", ""):
            os.environ["CUDA_VISIBLE_DEVICES"] = visible
            show("GPU" if visible else "CPU", race("on_cluster", **where, **machine, workers=1))


def text(data: Path) -> None:
    """Count rounds on text."""
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfTransformer

    X, y = svmlight(data / "20news.bz2")
    X = TfidfTransformer(sublinear_tf=True).fit_transform(X).tocsr()
    y = np.where(y <= 10, 1, -1)
    with tempfile.TemporaryDirectory() as folder:
        sparse.save_npz(Path(folder) / "X.npz", X)
        np.save(Path(folder) / "y.npy", y)
        for n in (4, 16):
            common = {"folder": folder, "n_partitions": n, "tol": 1e-4}
            print(f"20news, {X.shape}, hinge, C=1, {n} partitions")
            print("  Newton's method    ", race("wide", **common))
            print("  local dual descent ", race("local_descent", **common, most=200))


CONTESTANTS = {
    each.__name__: each for each in (in_memory, on_cluster, spark, wide, local_descent, streamed)
}


def main() -> None:
    """Run one of the programs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    programs = ("linear", "kernel", "partitions", "wide", "stream", "weak", "gpu", "one")
    parser.add_argument("program", choices=programs)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--folder", type=Path, help="where the files of 'stream' are written")
    parser.add_argument("--options", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.program == "one":
        options = json.loads(given.options)
        print(json.dumps(CONTESTANTS[options.pop("contestant")](**options)))
    elif given.program == "linear":
        linear(given.data, given.rows)
    elif given.program == "kernel":
        kernel(given.data, given.rows)
    elif given.program == "partitions":
        partitions(given.rows)
    elif given.program == "wide":
        text(given.data)
    elif given.program in ("weak", "gpu"):
        {"weak": weak, "gpu": gpu}[given.program](given.rows)
    else:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            rows = given.rows or 100_000_000
            print(race("streamed", folder=folder, rows=rows, d=20, memory="4GB"))


if __name__ == "__main__":
    main()
