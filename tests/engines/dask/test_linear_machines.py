"""Linear machines of Dask collections: the answers and proofs of the same data in memory."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.dask import features, primal_state
from maxmargin.engines.registry import engine_for, received_partitions
from maxmargin.problems import PrimalProblem
from maxmargin.solvers import linear

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

N, D = 900, 6


@pytest.fixture(autouse=True)
def _on_the_workers(monkeypatch):
    """Solve even few rows where they are."""
    tuning = linear.Tuning(gathered_numbers=0)
    monkeypatch.setattr(linear.Primal, "of", partial(_of, tuning))


def _of(tuning, X, solver, tol, seed):
    return linear.Primal(solver, tol, seed, tuning)


def data(classes=2, seed=0):
    """Return rows that no plane separates."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=N)
    X = rng.standard_normal((N, D)) + 0.8 * rng.standard_normal((classes, D))[y]
    return X, y


def partitioned(X, y, kind="dense", rows=250):
    """Return the same rows as Dask arrays; with CSR blocks, of unknown sizes or of a frame."""
    if kind == "unknown":
        keep = da.from_array(np.ones(len(y), dtype=bool), chunks=rows)
        X, y = da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)
        return X[keep], y[keep]
    if kind == "frame":
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(label=y)
        collection = dd.from_pandas(frame, chunksize=rows)
        return collection.drop(columns="label"), collection["label"]
    dX = da.from_array(X, chunks=(rows, 4))
    if kind == "csr":
        dX = da.from_array(X, chunks=(rows, -1)).map_blocks(sparse.csr_matrix)
    return dX, da.from_array(y, chunks=rows + 50)


def close(model, other, tol=1e-5):
    """Assert that two fits have the same planes."""
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=tol, atol=tol)


@pytest.mark.parametrize("kind", ["dense", "csr", "unknown", "frame"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_same_plane_and_proof_as_in_memory(kind, loss):
    X, y = data()
    dX, dy = partitioned(X, y, kind)
    model = mm.LinearSVC(loss=loss, tol=1e-9).fit(dX, dy)
    other = mm.LinearSVC(loss=loss, tol=1e-9).fit(X, y)
    close(model, other)
    assert model.certificate_.holds(1e-8)
    assert model.certificate_.n_checked == N
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-8)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_several_classes(multi_class):
    X, y = data(classes=3)
    names = np.array(["pear", "apple", "fig"])[y]
    dX, _ = partitioned(X, y)
    model = mm.LinearSVC(tol=1e-9, multi_class=multi_class).fit(dX, da.from_array(names, 400))
    other = mm.LinearSVC(tol=1e-9, multi_class=multi_class).fit(X, names)
    close(model, other)
    np.testing.assert_array_equal(model.classes_, ["apple", "fig", "pear"])


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_weight": "balanced"},
        {"class_weight": {0: 3.0}},
        {"penalize_intercept": True},
        {"fit_intercept": False},
        {"C": 0.01},
    ],
)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_parameters(parameters, loss):
    X, y = data()
    dX, dy = partitioned(X, y)
    model = mm.LinearSVC(loss=loss, tol=1e-9, **parameters).fit(dX, dy)
    close(model, mm.LinearSVC(loss=loss, tol=1e-9, **parameters).fit(X, y))
    assert model.certificate_.holds(1e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_of_samples(loss):
    X, y = data()
    weights = np.random.default_rng(1).integers(3, size=N).astype(float)
    dX, dy = partitioned(X, y)
    model = mm.LinearSVC(loss=loss, tol=1e-9).fit(dX, dy, da.from_array(weights, 100))
    close(model, mm.LinearSVC(loss=loss, tol=1e-9).fit(X, y, weights))
    assert model.certificate_.holds(1e-8)


def test_a_sample_that_takes_no_row_of_a_partition(monkeypatch):
    """A partition of one row has vectors of one number, which are not those of all rows."""
    monkeypatch.setattr(features, "TUNING", replace(features.TUNING, sampled_numbers=N * D // 3))
    X, y = data()
    signs, costs = 2.0 * y - 1.0, np.linspace(0.5, 2.0, N)
    rows, _, _ = received_partitions(da.from_array(X, chunks=((400, 1, 499), -1)), None, None)
    problem = PrimalProblem(None, signs, costs, np.zeros(1))
    state = engine_for(rows).features().primal_state(problem)
    sample = state.sample(state.features.draw(N // 3), 3.0)
    np.testing.assert_array_equal(sample.features.X, X[::3])
    np.testing.assert_array_equal(sample.problem.y, signs[::3])
    np.testing.assert_array_equal(sample.problem.upper, 3.0 * costs[::3])


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_targets(loss):
    X, _ = data()
    y = 100.0 + 7.0 * (X @ np.arange(D)) + np.random.default_rng(2).standard_normal(N)
    dX, dy = partitioned(X, y)
    model = mm.LinearSVR(loss=loss, tol=1e-9, epsilon=0.1).fit(dX, dy)
    close(model, mm.LinearSVR(loss=loss, tol=1e-9, epsilon=0.1).fit(X, y))
    assert model.certificate_.holds(1e-8)


def test_wide_rows_on_the_kink_come_when_they_are_needed(monkeypatch):
    """Newton's systems in the rows on the kink, of which no evaluation brings any along."""
    monkeypatch.setattr(primal_state, "TUNING", replace(primal_state.TUNING, kink_numbers=-1))
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 1100))
    y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)
    dX, dy = partitioned(X, y, rows=25)
    model = mm.LinearSVC(loss="hinge", C=1e-3, tol=1e-8).fit(dX, dy)
    assert "kink_rows" in [each.name for each in model.fit_report_.all_rounds]
    close(model, mm.LinearSVC(loss="hinge", C=1e-3, tol=1e-8).fit(X, y))
    assert model.certificate_.holds(1e-7)


def test_few_rows_are_solved_in_this_process(monkeypatch):
    monkeypatch.undo()
    X, y = data()
    dX, dy = partitioned(X, y)
    model = mm.LinearSVC(loss="hinge").fit(dX, dy)
    assert model.fit_report_.rounds <= 8
    assert model.certificate_.holds(1e-4)
    assert model.certificate_.n_checked == N
    close(model, mm.LinearSVC(loss="hinge").fit(X, y), tol=1e-12)


def test_rounds_and_bytes_are_counted():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60_000, 10))
    y = np.where(X @ rng.standard_normal(10) + rng.standard_normal(60_000) > 0, 1, -1)
    for n in (20_000, 60_000):
        dX, dy = da.from_array(X[:n], chunks=(n // 4, -1)), da.from_array(y[:n], chunks=n // 4)
        report = mm.LinearSVC(loss="hinge").fit(dX, dy).fit_report_
        assert report.rounds <= 40
        assert report.n_samples == n
        assert 0 < report.passes <= report.rounds
        moved = [
            r.bytes_sent + r.bytes_received
            for r in report.all_rounds
            if r.name not in ("sampled", "_some_rows")
        ]
        assert max(moved) < 4 * 8 * 20 * (10 + 1) ** 2 + 300_000
    assert "rounds" in str(report)
