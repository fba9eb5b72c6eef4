"""X on torch's CPU device: what the checks ask of it, and its rows in the memory of the host."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin.validation import weighted_variance

torch = pytest.importorskip("torch")

from maxmargin.engines.torch import device_rows  # noqa: E402
from maxmargin.engines.torch.device_rows import DeviceRows  # noqa: E402
from maxmargin.engines.torch.device_vector import DeviceVector  # noqa: E402

RNG = np.random.default_rng(0)
X = np.where(RNG.random((40, 6)) < 0.5, RNG.normal(size=(40, 6)), 0.0)
KINDS = {
    "float64": X,
    "float32": X.astype(np.float32),
    "csr": sparse.csr_matrix(X),
    "csr float32": sparse.csr_matrix(X.astype(np.float32)),
}


@pytest.fixture(params=KINDS)
def held(request, monkeypatch):
    """X, and the same on a device without a copy on the host; sums take several parts."""
    monkeypatch.setattr(device_rows, "NUMBERS_AT_A_TIME", 50)
    rows = KINDS[request.param]
    return rows, DeviceRows(DeviceRows.upload(rows, torch.device("cpu")).tensor)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def test_rows_come_to_the_host(held):
    rows, there = held
    assert there.shape == rows.shape
    assert there.dtype == rows.dtype
    for some in (slice(3, 9), np.array([7, 1, 1, 30]), np.arange(40) % 3 == 0, slice(None, 0)):
        found = there[some]
        assert sparse.issparse(found) == sparse.issparse(rows)
        np.testing.assert_array_equal(dense(found), dense(rows[some]))
    np.testing.assert_array_equal(dense(there.take(np.array([5, 2])).host), dense(rows[[5, 2]]))
    np.testing.assert_array_equal(dense(there.host), dense(rows))
    assert there.stored() == (rows.nnz if sparse.issparse(rows) else rows.size)


def test_sums_over_the_rows(held):
    rows, there = held
    exact = dense(rows).astype(np.float64)
    assert there.extremes() == (min(exact.min(), 0.0), exact.max())
    assert there.variance() == pytest.approx(exact.var(), rel=1e-12)
    weights = RNG.random(40)
    assert there.variance(weights) == pytest.approx(weighted_variance(rows, weights), rel=1e-12)
    means, squares = there.column_means()
    np.testing.assert_allclose(means, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(squares, (exact**2).mean(axis=0), rtol=1e-12)


def test_digests_tell_numbers_apart(held):
    _, there = held
    same = DeviceRows(there.tensor.clone())
    assert there.digest() == same.digest()
    values = same.tensor.values() if same.sparse else same.tensor.view(-1)
    values[3], values[4] = values[4].item() + 1.0, values[3].item()
    assert there.digest() != same.digest()


def test_asymmetry():
    K = X[:, :6].T @ X[:, :6]
    K[1, 4] += 0.25
    there = DeviceRows(torch.tensor(K))
    assert there.asymmetry() == pytest.approx((0.25, np.abs(K).max()))
    np.testing.assert_array_equal(there[np.ix_([1, 2], [4, 0])], K[np.ix_([1, 2], [4, 0])])


def test_rows_that_are_read_only():
    rows = X.copy()
    rows.flags.writeable = False
    np.testing.assert_array_equal(DeviceRows.upload(rows, torch.device("cpu")).tensor, X)


@pytest.mark.parametrize(
    ("labels", "classes", "codes"),
    [
        ([3, 1, 3, 1, 1], [1, 3], [1, 0, 1, 0, 0]),
        ([True, False, True, True], [False, True], [1, 0, 1, 1]),
        ([5.0, 2.0, 9.0, 5.0, 2.0, 9.0], [2.0, 5.0, 9.0], [1, 0, 2, 1, 0, 2]),
        ([4, 4, 4], [4], [0, 0, 0]),
    ],
)
def test_labels_are_encoded(labels, classes, codes):
    found, numbers = DeviceVector(torch.tensor(np.array(labels))).encoded()
    np.testing.assert_array_equal(found, classes)
    assert found.dtype == np.asarray(labels).dtype
    np.testing.assert_array_equal(numbers, codes)
    np.testing.assert_array_equal(numbers.signs(1), np.where(np.array(codes) == 1, 1.0, -1.0))


@pytest.mark.parametrize(
    "labels", [[1, 2, 3], [[1, 2], [2, 1]], [1.0, float("nan"), 1.0, 2.0], [1j, 2j, 1j]]
)
def test_what_are_not_labels_of_few_classes(labels):
    assert DeviceVector(torch.tensor(labels)).encoded() is None


def test_targets():
    found = DeviceVector(torch.tensor([1, 2, 3])).as_targets(1e75)
    assert found.tensor.dtype == torch.float64
    for bad in ([1.0, float("nan")], [1e80, 0.0], [float("inf")], [[1.0], [2.0]]):
        assert DeviceVector(torch.tensor(bad, dtype=torch.float64)).as_targets(1e75) is None
