"""Which variables of every task are in its working set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from . import selection_kernels
from .triton_kernels import has_triton

if TYPE_CHECKING:
    from .task_state import Survey, TaskState

# Larger than any number of rounds.
MANY_ROUNDS = 1 << 24


class Selected(NamedTuple):
    """Members of the working sets, and the top, low and value of every task (`TaskState`)."""

    members: Any
    numbers: Any


class WorkingSets:
    """The working set of every task: half of it stays from round to round, half is new.

    Variables strictly between their bounds stay first, then those that came last; new are those
    that violate most, half of them with a large f that may grow, half with a small f that may
    shrink. Members are distinct, but for the last column of a state, which stands for none.

    Parameters
    ----------
    state : TaskState
    size : int
        A power of two.
    is_all : bool
        Whether all variables are members.
    n_kept : int
        Members that stay.
    """

    def __init__(self, state: TaskState, size: int, is_all: bool, n_kept: int) -> None:
        n_tasks, width = state.f.shape
        self.size, self.is_all, self.n_kept, self._now = size, is_all, n_kept, 0
        device = state.f.device
        if is_all:
            row = torch.arange(size, device=device).clamp_max(width - 1)
            self.members = row.expand(n_tasks, -1).contiguous()
            return
        self.members = torch.full((n_tasks, size), width - 1, device=device)
        self._since = torch.zeros((n_tasks, size), dtype=torch.int32, device=device)
        self._taken = torch.zeros((n_tasks, width), dtype=torch.int8, device=device)

    def restrict(self, tasks: Any) -> None:
        """Go on with some of the tasks."""
        self.members = self.members[tasks]
        if not self.is_all:
            self._since, self._taken = self._since[tasks], self._taken[tasks]

    def renew(self, state: TaskState) -> Selected:
        """Choose the members of the next round."""
        self._now += 1
        if self.is_all:
            return Selected(self.members, _numbers(state, state.survey()))
        if has_triton(self.members):
            self.members, self._since, numbers = selection_kernels.renew(
                self.members, self._since, self._taken, self._now, self.n_kept, state
            )
            return Selected(self.members, numbers)
        seen = state.survey()
        self.members, self._since = self._renewed(state, seen)
        return Selected(self.members, _numbers(state, seen))

    def _renewed(self, state: TaskState, seen: Survey) -> tuple[Any, Any]:
        members, last = self.members, state.f.shape[1] - 1
        beta = state.beta.gather(1, members)
        free = beta > state.lower.gather(1, members)
        free &= beta < state.upper.gather(1, members)
        order = (self._since + free * MANY_ROUNDS).argsort(dim=1, descending=True, stable=True)
        at = order[:, : self.n_kept]
        kept, since = members.gather(1, at), self._since.gather(1, at)
        up, down = (each.scatter(1, kept, far) for each, far in zip(seen, _FAR, strict=False))
        half = min((self.size - self.n_kept) // 2, last)
        # Where fewer may grow, the rest are variables that may shrink: they are not taken yet.
        rising = _finite(up.topk(half, 1), last)
        falling = _finite(down.scatter(1, rising, torch.inf).topk(half, 1, largest=False), last)
        spare = torch.full(
            (len(kept), self.size - self.n_kept - 2 * half), last, device=kept.device
        )
        chosen = torch.cat([kept, rising, falling, spare], 1)
        now = torch.full_like(chosen[:, self.n_kept :], self._now, dtype=torch.int32)
        return chosen, torch.cat([since, now], 1)


_FAR = (-torch.inf, torch.inf)


def _finite(found: Any, instead: int) -> Any:
    """Return the places of the values found that are finite, and one place for all others."""
    return torch.where(torch.isfinite(found.values), found.indices, instead)


def _numbers(state: TaskState, seen: Survey) -> Any:
    return torch.stack([seen.top, seen.low, state.value()], 1)
