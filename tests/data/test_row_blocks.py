"""Rows that come in blocks."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from tests.helpers.primal_solvers import N, cloud, dense, in_blocks


def test_blocks_know_their_shape_and_kind():
    X = cloud()[0]
    blocks = in_blocks(X)
    assert blocks.shape == X.shape
    assert len(blocks) == N
    assert not blocks.sparse
    assert sum(blocks.sizes) == N
    assert in_blocks(X, sparse.csr_matrix).sparse
    for _ in range(2):  # again and again
        np.testing.assert_array_equal(np.vstack(list(blocks)), X)


@pytest.mark.parametrize(
    "chosen", [np.arange(N), np.array([0, 1, 2]), np.array([44, 45, 89]), np.arange(0)]
)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_some_rows_of_blocks(make, chosen):
    X = cloud()[0]
    some = in_blocks(X, make)[chosen]
    np.testing.assert_array_equal(dense(some), X[chosen])
    assert sparse.issparse(some) == (make is not np.asarray)


def test_blocks_of_any_numbers_become_floats():
    X = np.arange(12).reshape(6, 2)
    for dtype in (np.int64, np.uint8, bool, np.float16, np.float32, np.float64):
        expected = np.float32 if dtype is np.float32 else np.float64
        for block in mm.RowBlocks([X[:4].astype(dtype), X[4:].astype(dtype)]):
            assert block.dtype == expected
    assert mm.RowBlocks([X[:4].tolist(), X[4:].tolist()]).shape == (6, 2)
    kept = X.astype(np.float32)
    assert all(np.shares_memory(block, kept) for block in mm.RowBlocks([kept[:4], kept[4:]]))


def test_sparse_blocks_of_any_form_become_canonical():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    doubled = sparse.csr_matrix(
        (np.array([1.0, 1.0, 1.0, 3.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    before = doubled.data.copy(), doubled.indices.copy()
    for other in (doubled, sparse.csc_matrix(X), sparse.coo_array(X)):
        (block,) = mm.RowBlocks([other])
        assert block.format == "csr"
        assert block.has_canonical_format
        np.testing.assert_array_equal(block.toarray(), X)
    np.testing.assert_array_equal(doubled.data, before[0])
    np.testing.assert_array_equal(doubled.indices, before[1])


def test_a_function_makes_the_blocks_anew():
    X, made = cloud()[0], []

    def source():
        made.append(1)
        yield X[:50]
        yield X[50:]

    blocks = mm.RowBlocks(source)
    count = len(made)
    np.testing.assert_array_equal(np.vstack(list(blocks)), X)
    np.testing.assert_array_equal(np.vstack(list(blocks)), X)
    assert len(made) == count + 2


def test_one_block_is_held_at_a_time():
    """A source that makes its blocks as they are asked for finds the last one forgotten."""
    alive, most = [], []

    def source():
        for k in range(5):
            block = np.full((10, 2), float(k))
            alive.append(weakref.ref(block))
            most.append(sum(each() is not None for each in alive))
            yield block
            del block

    for _ in mm.RowBlocks(source):
        pass
    assert max(most) <= 2  # the one that is being read, and the next


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (lambda X: (X[k : k + 10] for k in range(0, N, 10)), TypeError, "more than once"),
        (lambda X: iter([X]), TypeError, "more than once"),
        (lambda X: [X, X[:, :2]], ValueError, "width"),
        (lambda X: [X, sparse.csr_matrix(X)], ValueError, "one kind"),
        (lambda X: [], ValueError, "no block"),
        (lambda X: list, ValueError, "no block"),
        (lambda X: [X[:, 0]], ValueError, "(?i)2-?d|column|shape|dimension"),
    ],
    ids=["generator", "iterator", "widths", "kinds", "none", "none made", "flat"],
)
def test_invalid_blocks_are_refused(make, error, told):
    with pytest.raises(error, match=told):
        mm.RowBlocks(make(cloud()[0]))


@pytest.mark.parametrize("change", ["fewer", "more", "narrower"])
def test_blocks_that_change_between_passes_are_refused(change):
    X = cloud()[0]
    parts = [X[:30], X[30:60]]
    blocks = mm.RowBlocks(lambda: iter(parts))
    list(blocks)
    if change == "fewer":
        parts.pop()
    elif change == "more":
        parts.append(X[60:])
    else:
        parts[1] = parts[1][:, :2]
    with pytest.raises(ValueError, match="same in every pass"):
        list(blocks)
