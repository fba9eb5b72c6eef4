"""X of linear machines on a device: what the contract's tests do not show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin.data.row_blocks import RowBlocks
from maxmargin.engines.linear import ColumnSystem
from maxmargin.problems import PrimalProblem

torch = pytest.importorskip("torch")

from maxmargin.engines.torch import features, primal_state, row_products  # noqa: E402
from maxmargin.engines.torch.device_rows import DeviceRows  # noqa: E402
from maxmargin.engines.torch.device_vector import DeviceVector  # noqa: E402
from maxmargin.engines.torch.features import TorchFeatures  # noqa: E402
from maxmargin.engines.torch.streamed_rows import StreamedRows  # noqa: E402

N, D = 200, 6


def cloud(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = np.round(8 * rng.standard_normal((N, D))) / 8 * (rng.random((N, D)) < 0.6)
    return X.astype(dtype)


def held(X):
    return TorchFeatures.of(DeviceRows.upload(X, "cpu"))


@pytest.fixture(params=["dense", "csr", "blocks", "csr blocks"])
def products(request, monkeypatch):
    """X and its products, of a device with blocks of a few rows."""
    monkeypatch.setattr(row_products, "TUNING", row_products.Tuning(block_numbers=8 * D))
    monkeypatch.setattr(features, "TUNING", features.Tuning(dense_columns=0))
    X, cpu = cloud(np.float32), torch.device("cpu")
    parts = [X[:7], X[7:9], X[9:]]
    made = {
        "dense": lambda: DeviceRows.upload(X, cpu),
        "csr": lambda: DeviceRows.upload(sparse.csr_matrix(X), cpu),
        "blocks": lambda: StreamedRows(RowBlocks(parts), cpu),
        "csr blocks": lambda: StreamedRows(RowBlocks([sparse.csr_matrix(p) for p in parts]), cpu),
    }
    return X.astype(np.float64), TorchFeatures.of(made[request.param]()).products


def test_products(products):
    X, rows = products
    rng = np.random.default_rng(1)
    plane, c = rng.standard_normal(D + 1), rng.standard_normal(N)
    out = torch.empty(N, dtype=torch.float64)
    rows.scores(torch.from_numpy(plane), out)
    np.testing.assert_allclose(out, X @ plane[:-1] + plane[-1])
    np.testing.assert_allclose(rows.combine(torch.from_numpy(c)), c @ X, atol=1e-12)
    np.testing.assert_allclose(rows.squared_columns(torch.from_numpy(c)), c @ X**2, atol=1e-12)
    for chosen in (np.arange(0, N, 3), np.arange(5, 9), np.array([], dtype=int)):
        A = np.column_stack([X[chosen], np.ones(chosen.size)])
        weights, some = np.abs(c[chosen]), torch.from_numpy(chosen)
        found = rows.moments(torch.from_numpy(weights), some)
        np.testing.assert_allclose(found, (weights * A.T) @ A, atol=1e-12)
        found = rows.moments(torch.tensor([0.5], dtype=torch.float64), some)
        np.testing.assert_allclose(found, 0.5 * A.T @ A, atol=1e-12)
        np.testing.assert_allclose(rows.float64_rows(some), X[chosen])
        part = rows.take(some)
        assert (part.n_rows, part.n_columns) == (chosen.size, D)
        np.testing.assert_allclose(part.float64_rows(slice(0, chosen.size)), X[chosen])
        q = torch.from_numpy(c[chosen])
        np.testing.assert_allclose(part.combine(q), c[chosen] @ X[chosen], atol=1e-12)


def test_few_columns_are_made_dense():
    X = DeviceRows.upload(sparse.csr_matrix(cloud()), "cpu")
    assert isinstance(TorchFeatures.of(X).products, row_products.DenseProducts)


@pytest.mark.parametrize("M", [None, np.diag(np.arange(1.0, D + 2))])
@pytest.mark.parametrize("has_bias", [True, False])
def test_systems_of_columns_are_solved_on_the_device(M, has_bias, monkeypatch):
    X, rng = cloud(), np.random.default_rng(2)
    y = np.where(X[:, 0] + rng.standard_normal(N) > 0, 1.0, -1.0)
    state = held(X).primal_state(PrimalProblem.of(None, y, 1.0))
    state.place(np.linspace(-0.2, 0.2, D), 0.1)
    state.project(0.5)
    gradient, system = rng.standard_normal(D + 1), ColumnSystem(M, 0.0, has_bias, 1e-3)
    assert state.solve_columns(0.5, system, gradient) is None
    monkeypatch.setattr(primal_state, "TUNING", primal_state.Tuning(host_columns=0))
    H = state.curvature(0.5) + (np.diag([1.0] * D + [0.0]) if M is None else M)
    used = slice(None) if has_bias else slice(-1)
    expected = np.linalg.solve(H[used, used], gradient[used])
    step = state.solve_columns(0.5, system, gradient)
    np.testing.assert_allclose(step[used], -expected, rtol=1e-9)


def test_a_sample_has_a_row_of_every_run():
    for n, size in [(13, 2), (1000, 166), (50, 50)]:
        found = np.asarray(held(np.zeros((n, 1))).draw(size))
        ends = np.arange(size + 1) * n // size
        assert (found >= ends[:-1]).all()
        assert (found < ends[1:]).all()
        np.testing.assert_array_equal(found, np.asarray(held(np.zeros((n, 1))).draw(size)))


def test_a_vector_is_an_array_where_it_must_be():
    values = np.array([1.0, -2.0, 0.0])
    vector = DeviceVector(torch.from_numpy(values))
    assert isinstance(2.0 * vector, DeviceVector)
    np.testing.assert_array_equal(np.asarray(2.0 * vector - 1.0), 2.0 * values - 1.0)
    np.testing.assert_array_equal(vector * values, values**2)
    np.testing.assert_array_equal(np.isfinite(vector), [True] * 3)
    np.testing.assert_array_equal(vector[:2], values[:2])
    np.testing.assert_array_equal(vector[np.array([2, 0])], values[[2, 0]])
    places, found = vector.nonzero(values)
    np.testing.assert_array_equal(places, [0, 1])
    np.testing.assert_array_equal(found, [1.0, 4.0])
