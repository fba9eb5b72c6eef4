"""Rows of K in the slots of a device: those of a working set are there, and right."""

import numpy as np
import pytest

from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem

torch = pytest.importorskip("torch")

from maxmargin.engines.base import TaskArrays  # noqa: E402
from maxmargin.engines.torch.device_rows import DeviceRows  # noqa: E402
from maxmargin.engines.torch.kernel_rows import KernelRows  # noqa: E402
from maxmargin.engines.torch.row_store import RowStore  # noqa: E402
from maxmargin.engines.torch.task_state import TaskState  # noqa: E402

N, KERNEL = 60, RBF(0.3)


def held(n_slots):
    """Return K, an empty store for some of its rows, and the state of a regression on them."""
    X = np.random.default_rng(0).standard_normal((N, 3))
    rows = KernelRows(KERNEL, DeviceRows.upload(X, torch.device("cpu")), torch.float64)
    problem = DualProblem.regression(KERNEL, X, X[:, 0], 1.0, 0.1)
    state = TaskState.of(TaskArrays.of([problem]), rows.diagonal())
    return KERNEL(X), RowStore(rows, 8.0 * N * n_slots, False), state


def are_there(K, store, wanted):
    slots = store.slot[wanted].long()
    assert (slots >= 0).all()
    np.testing.assert_allclose(store.values[slots].numpy(), K[wanted.numpy()], rtol=1e-12)


def test_all_of_k():
    K, store, _ = held(N)
    whole = RowStore(store.source, 8.0 * N * N, True)
    assert whole.is_whole
    are_there(K, whole, torch.arange(N))


@pytest.mark.parametrize("n_slots", [20, 33, N])
def test_rows_of_working_sets(n_slots):
    """Variables i and i + N of a regression share a row."""
    K, store, state = held(n_slots)
    rng = np.random.default_rng(1)
    for _ in range(30):
        members = torch.from_numpy(rng.permutation(2 * N)[:16])[None]
        store.fetch(members, state, int(store.missing(members, state)))
        are_there(K, store, members[0] % N)


@pytest.mark.parametrize("n_slots", [20, 33])
def test_rows_that_are_listed_twice(n_slots):
    """A card lists a row for each of its variables: the one may go, the other stays."""
    K, store, state = held(n_slots)
    rng = np.random.default_rng(2)
    for _ in range(30):
        rows = torch.from_numpy(rng.permutation(N)[:8])
        members = torch.cat([rows, rows + N])[None]
        store.missing(members, state)
        wanted = members[0] % N
        store._missing = wanted[store.slot[wanted] < 0]
        store.fetch(members, state, len(store._missing))
        are_there(K, store, wanted)
