"""LinearSVC on rows that come in blocks, and the memory that a fit takes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from tests.helpers.linear_svc import BIASES, LOSSES, TOL, N, assert_certified, cloud, made
from tests.helpers.storage import thin


def blocks_of_every_kind(X, folder):
    """Yield X in blocks, by name."""
    n = len(X)
    cuts = [slice(0, 1), slice(1, n // 2), slice(n // 2, n)]
    yield "arrays", mm.RowBlocks([X[cut] for cut in cuts])
    yield "by columns", mm.RowBlocks([np.asfortranarray(X[cut]) for cut in cuts])
    yield "float32", mm.RowBlocks([X[cut].astype(np.float32) for cut in cuts])
    yield "csr", mm.RowBlocks([sparse.csr_matrix(X[cut]) for cut in cuts])
    yield "a function", mm.RowBlocks(lambda: (X[cut] for cut in cuts))
    maps = []
    for k, cut in enumerate(cuts):
        path = folder / f"{k}.npy"
        np.save(path, X[cut])
        maps.append(np.load(path, mmap_mode="r"))
    yield "memory-mapped", mm.RowBlocks(maps)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_are_the_array(loss, multi_class, n_classes, tmp_path):
    X, y = thin(N, n_classes=n_classes)
    weights = np.where(np.arange(N) % 4 == 1, 0.0, 1.0 + np.arange(N) % 3)
    options = {"loss": loss, "multi_class": multi_class, "tol": 1e-8}
    for weight in (None, weights):
        plain = made(**options).fit(X, y, weight)
        for name, blocks in blocks_of_every_kind(X, tmp_path):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model = made(**options).fit(blocks, y, weight)
            assert_certified(model, X, y, weight)
            assert model.n_features_in_ == X.shape[1], name
            np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)
            np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-3)
            np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_blocks_of_a_wide_sparse_matrix():
    X, y = cloud(60, 300)
    X *= np.random.default_rng(3).random(X.shape) < 0.1
    blocks = mm.RowBlocks([sparse.csr_matrix(X[:20]), sparse.csr_matrix(X[20:])])
    for loss in LOSSES:
        model = made(loss=loss).fit(blocks, y)
        assert_certified(model, X, y)


@pytest.mark.parametrize("solver", ["auto", "newton", "interior-point"])
@pytest.mark.parametrize("bias", BIASES)
def test_blocks_with_every_solver_that_takes_them(solver, bias):
    X, y = cloud()
    model = made(solver=solver, **BIASES[bias]).fit(mm.RowBlocks([X[:50], X[50:]]), y)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    ("options", "n_classes", "told"),
    [
        ({"solver": "coordinate-descent"}, 2, "solver='coordinate-descent'"),
        ({"multi_class": "crammer_singer", "loss": "hinge"}, 3, "crammer_singer"),
    ],
    ids=["coordinate descent", "joint"],
)
def test_blocks_are_refused_where_not_supported(options, n_classes, told):
    X, y = cloud(n_classes=n_classes)
    with pytest.raises(ValueError, match=told) as caught:
        made(**options).fit(mm.RowBlocks([X]), y)
    assert "RowBlocks" in str(caught.value)


def test_blocks_go_on_from_the_last_fit():
    X, y = cloud(400)
    blocks = mm.RowBlocks([X[:100], X[100:]])
    model = made(warm_start=True, loss="hinge").fit(blocks, y)
    cold = model.n_iter_
    model.set_params(C=1.1).fit(blocks, y)
    assert model.n_iter_ < cold
    assert_certified(model, X, y)
    model.fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_block_is_named(value):
    X, y = cloud()
    X[120, 2] = value
    for make in (np.asarray, sparse.csr_matrix):
        blocks = mm.RowBlocks([make(X[:100]), make(X[100:150]), make(X[150:])])
        with pytest.raises(ValueError, match=r"Rows 100 to 149 of X: .*(NaN|infinity)"):
            made().fit(blocks, y)


def test_blocks_that_are_out_of_range():
    X, y = cloud()
    X[150:] *= 1e200
    with pytest.raises(ValueError, match="rescale"):
        made().fit(mm.RowBlocks([X[:100], X[100:]]), y)


def test_blocks_that_change_are_refused_and_leave_nothing():
    X, y = cloud()
    parts = [X[:100], X[100:]]
    blocks = mm.RowBlocks(lambda: iter(parts))
    parts.pop()
    model = made()
    with pytest.raises(ValueError, match="same in every pass"):
        model.fit(blocks, y)
    assert not hasattr(model, "classes_")


def test_labels_and_weights_of_blocks_are_checked():
    X, y = cloud()
    blocks = mm.RowBlocks([X[:100], X[100:]])
    with pytest.raises(ValueError, match="inconsistent"):
        made().fit(blocks, y[:-1])
    with pytest.raises(ValueError, match="1 class"):
        made().fit(blocks, np.zeros(N))
    with pytest.raises(ValueError, match=r"(?i)weight"):
        made().fit(blocks, y, np.ones(N - 1))
    with pytest.raises(ValueError, match=r"(?i)label|continuous"):
        made().fit(blocks, np.linspace(0, 1, N))


def test_one_class_may_be_all_of_a_block():
    X, y = cloud()
    order = np.argsort(y, kind="stable")
    model = made().fit(mm.RowBlocks([X[order][:100], X[order][100:]]), y[order])
    assert_certified(model, X[order], y[order])


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_makes_no_float64_copy_of_float32_rows(loss):
    rng = np.random.default_rng(0)
    n, d = 100_000, 50
    X = rng.standard_normal((n, d), dtype=np.float32)
    y = X[:, 0] + rng.standard_normal(n, dtype=np.float32) > 0
    made(loss=loss).fit(X[:5000], y[:5000])  # what is compiled is not what is measured
    tracemalloc.start()
    try:
        model = made(loss=loss).fit(X, y)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.certificate_.holds(TOL)
    assert most < X.nbytes  # a copy in float64 would be twice that


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
def test_blocks_are_not_kept():
    """A process grows by less than half of the 400 MB that it is given, a block at a time."""
    program = textwrap.dedent("""
        import numpy as np, maxmargin as mm
        mm.LinearSVC().fit(np.eye(4), [0, 0, 1, 1])
        n, d, parts = 25_000, 50, 40
        w = np.linspace(-1, 1, d)
        def source():
            for k in range(parts):
                yield np.random.default_rng(k).standard_normal((n, d))
        y = np.concatenate([
            X @ w + np.random.default_rng(10**6 + k).standard_normal(len(X)) > 0
            for k, X in enumerate(source())
        ])
        def peak():
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
        before, size = peak(), 8 * n * d * parts / 2**20
        model = mm.LinearSVC().fit(mm.RowBlocks(source), y)
        print(model.certificate_.holds(1e-4), peak() - before < 0.5 * size)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout == "True True\n", done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_many_rows(loss, C):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300_000, 20), dtype=np.float32)
    y = (X[:, 0] + rng.standard_normal(len(X)) > 0).astype(int)
    for solver in ("newton", "interior-point"):
        model = made(solver=solver, loss=loss, C=C, time_limit=300.0).fit(X, y)
        assert_certified(model, X, y)
