"""Scores of new rows on torch's CPU device: tiles, origins, sparse rows and rounding."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from tests.helpers.algorithms import blobs

torch = pytest.importorskip("torch")

from maxmargin.engines.torch import prediction  # noqa: E402
from maxmargin.engines.torch.callables import tensor_function  # noqa: E402
from maxmargin.engines.torch.device_rows import DeviceRows  # noqa: E402

X, Y = blobs(120, 5, 4, seed=1)
X = X + np.random.default_rng(1).normal(scale=2.0, size=X.shape)
CPU = torch.device("cpu")
KERNELS = {
    "rbf": {},
    "poly": {"kernel": "poly", "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
    "linear": {"kernel": "linear"},
    "sum": {"kernel": mm.kernels.RBF(0.1) + 0.5 * mm.kernels.Linear()},
}


def scores(model, rows):
    return prediction.kernel_scores(model, model._expansion, model.intercept_, rows, CPU)


def on_host(model, rows):
    return model._expansion.scores(rows) + model.intercept_


@pytest.mark.filterwarnings("ignore:The kernel")
@pytest.mark.parametrize("tile", [1, 100, 1 << 12, 1 << 20])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("name", KERNELS)
def test_tiles_of_any_size(name, multi_class, tile, monkeypatch):
    monkeypatch.setattr(prediction, "TILE_NUMBERS", tile)
    monkeypatch.setattr(prediction, "COPIED_NUMBERS", 7 * tile)
    model = mm.SVC(multi_class=multi_class, **KERNELS[name]).fit(X, Y)
    expected = on_host(model, X)
    for rows in (X, DeviceRows.upload(X, CPU)):
        np.testing.assert_allclose(scores(model, rows), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_float32(dtype):
    rows = sparse.csr_matrix(np.where(np.abs(X) > 2.0, X, 0.0).astype(dtype))
    for model in (mm.SVC(), mm.SVC(kernel="linear")):
        model.fit(rows, Y)
        for given in (rows, rows.toarray(), DeviceRows.upload(rows, CPU)):
            found = scores(model, given)
            assert found.dtype == torch.float64
            np.testing.assert_allclose(found, on_host(model, rows), rtol=1e-9, atol=1e-9)
    plane = np.ones((2, X.shape[1])), np.array([1.0, -1.0])
    expected = rows.toarray().astype(np.float64).sum(axis=1)[:, None] + plane[1]
    np.testing.assert_allclose(prediction.plane_scores(rows, *plane, CPU), expected)


def test_rows_far_from_the_origin_are_taken_about_the_vectors():
    far = X + 1e6
    model = mm.SVC(gamma=0.05).fit(far, Y)
    np.testing.assert_allclose(scores(model, far), on_host(model, far), atol=1e-6)


def test_the_host_computes_what_rounding_would_blur():
    model = mm.SVC(gamma=0.05).fit(X, Y)
    outlying = np.vstack([X[:3], np.full((1, X.shape[1]), 1e6)])
    assert scores(model, outlying) is None
    model.set_params(device="cpu")
    assert np.isfinite(model.decision_function(outlying)).all()


def test_values_that_overflow_are_left_to_the_host():
    model = mm.SVC(kernel="poly", degree=9).fit(X, Y)
    assert scores(model, 1e60 * X) is None


def test_many_columns_and_functions_are_left_to_the_host(monkeypatch):
    model = mm.SVC(kernel=lambda a, b: np.asarray(a @ b.T)).fit(X, Y)
    assert scores(model, X) is None
    monkeypatch.setattr(prediction, "MAX_DENSE_COLUMNS", 4)
    rows = sparse.csr_matrix(X)
    assert scores(mm.SVC().fit(rows, Y), rows) is None


def test_functions_that_take_tensors(monkeypatch):
    seen = []

    def product(a, b):
        seen.append(type(a))
        return (1.0 + a @ b.T) ** 2

    model = mm.SVC(kernel=product).fit(X, Y)
    expected = on_host(model, X)
    seen.clear()
    monkeypatch.setattr(prediction, "TILE_NUMBERS", 1000)
    np.testing.assert_allclose(scores(model, X), expected, rtol=1e-9, atol=1e-9)
    assert seen.count(torch.Tensor) > 2


def nan_for_new(a, b):
    K = a @ b.T
    K[a[:, 0] > 1e3] = np.nan
    return K


FUNCTIONS = {
    "other values": lambda a, b: (2.0 if torch.is_tensor(a) else 1.0) * (a @ b.T),
    "another shape": lambda a, b: (a @ b.T)[0] if torch.is_tensor(a) else a @ b.T,
    "an error": lambda a, b: np.einsum("ij,kj->ik", a, b) if isinstance(a, np.ndarray) else 1 / 0,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_do_not_take_tensors(name):
    rows = DeviceRows.upload(X, CPU)
    assert tensor_function(mm.kernels.Custom(FUNCTIONS[name]), rows) is None
    model = mm.SVC(kernel=FUNCTIONS[name]).fit(X, Y)
    assert scores(model, X) is None


def test_functions_that_are_not_finite():
    model = mm.SVC(kernel=nan_for_new).fit(X, Y)
    with pytest.raises(ValueError, match="is nan at"):
        scores(model, np.vstack([X, np.full((1, X.shape[1]), 1e4)]))


def test_no_support_vectors():
    model = mm.SVR(epsilon=100.0).fit(X, X[:, 0])
    assert not model.support_.size
    np.testing.assert_array_equal(scores(model, X), on_host(model, X))


PROGRAM = """
import torch
from maxmargin.engines.torch.triton_kernels import gaussian_
x, z = torch.rand(3, 5, dtype=torch.float64), torch.rand(1500, 5, dtype=torch.float64)
K = x @ z.T
gaussian_(K, (x * x).sum(1), (z * z).sum(1), 1.0 / 3.0)
assert (K - torch.exp(-torch.cdist(x, z) ** 2 / 3.0)).abs().max() < 1e-14
"""


def test_gamma_is_not_rounded_to_float32():
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=300)
