"""Rows are kept as far as there is room, and are those that were put there."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from maxmargin.engines.torch import kept_rows  # noqa: E402
from maxmargin.engines.torch.kept_rows import KeptRows  # noqa: E402

K = torch.arange(36.0).reshape(6, 6)


def store(n_rows):
    return KeptRows(6, torch.float32, torch.device("cpu"), 24.0 * n_rows)


def keep(kept, *rows):
    kept.keep(np.array(rows), K[list(rows)])


def test_the_oldest_make_room():
    kept = store(3)
    keep(kept, 4, 1)
    assert kept.knows(np.arange(6)).tolist() == [False, True, False, False, True, False]
    keep(kept, 0, 2)
    assert kept.knows(np.arange(6)).tolist() == [True, True, True, False, False, False]
    rows = np.array([2, 0, 1])
    assert torch.equal(kept.rows(rows), K[rows])


def test_more_rows_than_there_is_room_for():
    kept = store(2)
    keep(kept, 5, 3, 1)
    assert kept.knows(np.arange(6)).sum() == 2
    assert torch.equal(kept.rows(np.array([3, 5])), K[[3, 5]])


def test_no_room():
    kept = store(0)
    keep(kept, 5, 3)
    assert not kept.knows(np.arange(6)).any()


def test_less_is_kept_where_memory_is_full(monkeypatch):
    empty = torch.empty

    def full(shape, **options):
        if shape[0] > 2:
            raise torch.OutOfMemoryError
        return empty(shape, **options)

    monkeypatch.setattr(kept_rows.torch, "empty", full)
    kept = store(6)
    keep(kept, 0, 1, 2, 3)
    assert kept.knows(np.arange(6)).sum() == 1
