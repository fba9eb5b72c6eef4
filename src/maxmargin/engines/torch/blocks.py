"""Working sets of many tasks: K among their members, pair steps, and the gradient afterwards.

On a card Triton does it (`triton_kernels`); on other devices torch, and for the steps themselves
the compiled solver of the CPU engine, on a copy of the block in the memory of the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...runtime.simd import aligned
from ..cpu.smo import pair_steps
from . import triton_kernels
from .triton_kernels import has_triton

if TYPE_CHECKING:
    from .row_store import RowStore
    from .task_state import TaskState


def gather_blocks(store: RowStore, members: Any, state: TaskState, dtype: Any) -> Any:
    """Return K + D of the members of every task, of shape (n_tasks, Q, Q)."""
    n_tasks, size = members.shape
    if has_triton(members):
        out = torch.empty((n_tasks, size, size), dtype=dtype, device=members.device)
        triton_kernels.gather(store.values, store.slot, members, state, out)
        return out
    rows = state.index.gather(1, members)
    slots = store.slot[rows].long()
    blocks = store.values[slots[:, :, None], rows[:, None, :]].to(dtype)
    diagonal = blocks.diagonal(dim1=1, dim2=2)
    diagonal.copy_(state.curve.gather(1, members))
    return blocks


def solve_blocks(
    store: RowStore, members: Any, state: TaskState, stop: Any, dtype: Any, max_steps: int
) -> None:
    """Solve the problem of the members of every task, and update f of all its variables."""
    blocks = gather_blocks(store, members, state, dtype)
    if has_triton(members):
        changes = triton_kernels.pair_steps(blocks, members, state, store.slot, stop, max_steps)
        triton_kernels.subtract(store.values, changes, state)
        return
    rows = state.index.gather(1, members)
    for t in range(len(members)):
        moved = _step_on_host(blocks[t], members[t], state, t, float(stop[t]), max_steps)
        some = store.values[store.slot[rows[t]].long()]
        state.f[t] -= (moved @ some.to(torch.float64))[state.index[t]]
        state.f[t].index_add_(0, members[t], -state.ridge[t, members[t]] * moved)


def _step_on_host(
    block: Any, members: Any, state: TaskState, t: int, stop: float, max_steps: int
) -> Any:
    """Solve the problem of the members of one task by the solver of the CPU engine."""
    K, size = block.cpu().numpy(), len(members)
    beta, lower, upper = aligned((3, size), np.float64)
    f, curve, raisable, lowerable = aligned((4, size), K.dtype)
    for out, name in ((beta, "beta"), (lower, "lower"), (upper, "upper"), (f, "f")):
        out[:] = getattr(state, name)[t, members].cpu().numpy()
    curve[:] = state.curve[t, members].cpu().numpy()
    before = beta.copy()
    steps = pair_steps(
        K, curve, beta, lower, upper, f, raisable, lowerable, np.array([0, size]), stop, max_steps
    )
    state.beta[t, members] = torch.from_numpy(beta).to(members.device)
    state.steps[t] += steps
    return torch.from_numpy(beta - before).to(members.device)
