"""Rows of K that have been computed, kept on the device as far as they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .selection_kernels import note_missing
from .triton_kernels import has_triton

if TYPE_CHECKING:
    from .kernel_rows import KernelRows
    from .task_state import TaskState

# Rows of K that are computed together at most, and the bytes that they may take.
BATCH_ROWS = 4096
BATCH_BYTES = 1 << 31


class RowStore:
    """Rows of K at slots: all of them, or those used last.

    Parameters
    ----------
    source : KernelRows
    budget : float
        Bytes that kernel values may take.
    whole : bool
        Whether to compute all of K now, where it fits.

    Attributes
    ----------
    values : tensor of shape (n_slots, n)
    slot : tensor of int32 of shape (n,)
        Where each row is, −1 where it is not.
    """

    def __init__(self, source: KernelRows, budget: float, whole: bool) -> None:
        n, self.source, self.device = source.n_rows, source, source.device
        row_bytes = source.dtype.itemsize * n
        self.n_slots = min(n, int(budget / row_bytes))
        self.is_whole = whole and self.n_slots == n
        self.n_used, self._clock = 0, 0
        self._batch = max(64, min(BATCH_ROWS, BATCH_BYTES // row_bytes))
        self.values = torch.empty((self.n_slots, n), dtype=source.dtype, device=self.device)
        self.slot = torch.full((n,), -1, dtype=torch.int32, device=self.device)
        if self.is_whole:
            self._fill()
            return
        self._row_at = torch.full((self.n_slots,), -1, device=self.device)
        self._used_at = torch.zeros(self.n_slots, dtype=torch.int32, device=self.device)
        self._missing: Any = None

    def _fill(self) -> None:
        """Compute all of K: what is right of the diagonal, and its mirror image."""
        n = len(self.values)
        for first in range(0, n, self._batch):
            last = min(first + self._batch, n)
            strip = self.values[first:last, first:]
            self.source.values(slice(first, last), slice(first, n), out=strip)
            self.values[last:, first:last] = strip[:, last - first :].T
        self.slot = torch.arange(n, dtype=torch.int32, device=self.device)

    def missing(self, members: Any, state: TaskState) -> Any:
        """Note which rows of the working sets are not here; return how many, as a tensor."""
        if self.is_whole:
            return torch.zeros(1, dtype=torch.float64, device=self.device)
        if len(members) == 1 and has_triton(members):
            self._missing = torch.empty(members.shape[1], dtype=torch.int64, device=self.device)
            return note_missing(members, state, self.slot, self._missing, self.n_used, self.n_slots)
        rows = state.index.gather(1, members).reshape(-1)
        wanted = torch.zeros_like(self.slot, dtype=torch.bool)
        wanted[rows] = True
        wanted &= self.slot < 0
        self._missing = wanted
        return wanted.sum(dtype=torch.float64)[None]

    def fetch(self, members: Any, state: TaskState, n_missing: int) -> None:
        """Compute the rows noted last, in the place of those that were not used for longest."""
        if self.is_whole or not n_missing:
            return
        if self._missing.dtype == torch.bool:
            missing = self._missing.nonzero_static(size=n_missing).reshape(-1)
        else:
            missing = self._missing[:n_missing]
        first, last = self.n_used, self.n_used + n_missing
        if last > self.n_slots:
            self._replace(state.index.gather(1, members).reshape(-1), missing)
            return
        self._write(missing, torch.arange(first, last, device=self.device))
        self.n_used = last

    def _replace(self, rows: Any, missing: Any) -> None:
        """Compute missing rows in the slots of others; ``rows`` are all that are wanted."""
        self._clock, self.n_used = self._clock + 1, self.n_slots
        held = self.slot[rows].long()
        self._used_at[held[held >= 0]] = self._clock
        slots = self._used_at.topk(len(missing), largest=False).indices
        gone = self._row_at[slots]
        # A row that two variables ask for may have two slots, and only one of them counts.
        counts = (gone >= 0) & (self.slot[gone.clamp_min(0)] == slots)
        self.slot[gone[counts]] = -1
        self._write(missing, slots)
        self._used_at[slots] = self._clock

    def _write(self, rows: Any, slots: Any) -> None:
        """Compute rows, and store them at some slots."""
        for start in range(0, len(rows), self._batch):
            some = slice(start, start + self._batch)
            self.source.write(rows[some], self.values, slots[some])
        self.slot[rows] = slots.to(torch.int32)
        self._row_at[slots] = rows
