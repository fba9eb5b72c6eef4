"""Compare the Triton kernels of kernel machines with their twins in torch; run by a test.

Triton's interpreter, which TRITON_INTERPRET=1 chooses before Triton is imported, runs them on the
CPU.
"""

from __future__ import annotations

import copy

import numpy as np
import torch

from maxmargin.engines.base import TaskArrays
from maxmargin.engines.torch import blocks, selection_kernels, triton_kernels
from maxmargin.engines.torch.device_rows import DeviceRows
from maxmargin.engines.torch.kernel_rows import KernelRows
from maxmargin.engines.torch.row_store import RowStore
from maxmargin.engines.torch.selection import WorkingSets
from maxmargin.engines.torch.task_state import TaskState
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem

N, SIZE, KEPT = 300, 64, 32
KERNEL = RBF(0.123456789012345)
STOP = torch.full((2,), 1e-3, dtype=torch.float64)


def near(found, expected, error=1e-12):
    torch.testing.assert_close(found, expected, rtol=error, atol=error)


def samples():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4))
    return X, [np.where(X[:, k] + 0.3 * rng.standard_normal(N) > 0, 1.0, -1.0) for k in (0, 1)]


def compare_values():
    X = torch.from_numpy(samples()[0])
    rows, slots = torch.tensor([4, 9, 33]), torch.tensor([7, 1, 3])
    squares, dot = (X * X).sum(1), X[rows] @ X.T
    K = torch.exp(-KERNEL.gamma * ((X[rows][:, None] - X[None]) ** 2).sum(2))
    found = dot.clone()
    triton_kernels.gaussian_(found, squares[rows], squares, KERNEL.gamma)
    near(found, K)
    out = torch.zeros(10, N, dtype=torch.float64)
    triton_kernels.gaussian_rows(
        dot, squares[rows], squares, KERNEL.gamma, rows, out, slots
    )  # fmt: skip
    near(out[slots], K)
    assert (out[slots, rows] == 1.0).all()
    assert not out[0].any()


def states(pose):
    X, labels = samples()
    problems = [pose(KERNEL, X, y, 2.0) for y in labels]
    rows = KernelRows(KERNEL, DeviceRows.upload(X, torch.device("cpu")), torch.float64)
    state = TaskState.of(TaskArrays.of(problems), rows.diagonal())
    return rows, state, copy.deepcopy(state)


def compare_rounds(pose):
    """Rounds of both, from the same β and working sets: sets, β and f.

    Which of two pairs of nearly the same gain is moved is a matter of rounding: β then differs by
    what is left of the violation.
    """
    rows, state, twin = states(pose)
    store, sets = RowStore(rows, 1e9, True), WorkingSets(state, SIZE, False, KEPT)
    taken = torch.zeros_like(state.f, dtype=torch.int8)
    for number in range(1, 4):
        chosen, _, numbers = selection_kernels.renew(
            sets.members.clone(), sets._since.clone(), taken, number, KEPT, twin
        )
        found = sets.renew(state)
        near(numbers, found.numbers)
        if number > 1:
            same_members(chosen, found.members)
        members = found.members
        taken.zero_().scatter_(1, members, 1)
        block = blocks.gather_blocks(store, members, state, torch.float64)
        out = torch.empty_like(block)
        triton_kernels.gather(store.values, store.slot, members, twin, out)
        near(out, block)
        changes = triton_kernels.pair_steps(block, members, twin, store.slot, STOP, 500)
        triton_kernels.subtract(store.values, changes, twin)
        blocks.solve_blocks(store, members, state, STOP, torch.float64, 500)
        near(twin.beta, state.beta, 1e-2)
        near(twin.f[:, :N], state.f[:, :N], 1e-2)
        assert twin.beta.sum(1).abs().max() < 1e-12
        twin.beta.copy_(state.beta)
        twin.f.copy_(state.f)


def same_members(first, second):
    """Both choose the same variables, but for ties of violations that fall into one bin."""
    for mine, others in zip(first.tolist(), second.tolist(), strict=True):
        assert len(set(mine)) == SIZE
        assert len(set(mine) ^ set(others)) <= 4


def compare_missing():
    rows, state, _ = states(DualProblem.hinge)
    members = torch.randperm(N)[:SIZE][None]
    members[0, 5] = state.f.shape[1] - 1  # stands for no variable
    store = RowStore(rows, 1e9, False)
    known = members[0, 6:16]
    store.slot[known] = torch.arange(10, dtype=torch.int32)
    missing = torch.full((SIZE,), -1)
    count = selection_kernels.note_missing(members, state, store.slot, missing, 10, N)
    unknown = [row for row in members[0].tolist() if row < N and row not in known.tolist()]
    assert int(count) == len(unknown)
    assert missing[: int(count)].tolist() == unknown
    assert store.slot[missing[: int(count)]].tolist() == list(range(10, 10 + int(count)))
    again = selection_kernels.note_missing(members, state, store.slot, missing, 10, N)
    assert int(again) == 0


if __name__ == "__main__":
    compare_values()
    compare_rounds(DualProblem.hinge)
    compare_rounds(DualProblem.squared_hinge)
    compare_missing()
