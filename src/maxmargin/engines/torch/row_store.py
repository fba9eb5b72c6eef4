"""Rows of K that have been computed, kept on the device as far as they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .kernel_rows import KernelRows

# Rows of K that are computed together.
BATCH_ROWS = 4096


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
        fitting = int(budget / (source.dtype.itemsize * n))
        self.n_slots = min(n, fitting)
        self.is_whole = whole and self.n_slots == n
        self.n_used, self._clock = 0, 0
        self.values = torch.empty((self.n_slots, n), dtype=source.dtype, device=self.device)
        self.slot = torch.full((n,), -1, dtype=torch.int32, device=self.device)
        if self.is_whole:
            self._fill()
            return
        self._row_at = torch.full((self.n_slots,), -1, device=self.device)
        self._used_at = torch.zeros(self.n_slots, dtype=torch.int32, device=self.device)
        self._wanted = torch.zeros(n, dtype=torch.bool, device=self.device)

    def _fill(self) -> None:
        """Compute all of K: what is right of the diagonal, and its mirror image."""
        n = len(self.values)
        for first in range(0, n, BATCH_ROWS):
            last = min(first + BATCH_ROWS, n)
            strip = self.values[first:last, first:]
            self.source.values(slice(first, last), slice(first, n), out=strip)
            self.values[last:, first:last] = strip[:, last - first :].T
        self.slot = torch.arange(n, dtype=torch.int32, device=self.device)

    def missing(self, rows: Any) -> Any:
        """Note which of some rows are not here, and return how many they are, as a tensor."""
        if self.is_whole:
            return torch.zeros((), dtype=torch.int64, device=self.device)
        self._wanted.zero_()
        self._wanted[rows.reshape(-1)] = True
        self._wanted &= self.slot < 0
        return self._wanted.sum()

    def fetch(self, rows: Any, n_missing: int) -> None:
        """Compute the rows noted last, in the place of those that were not used for longest."""
        self._clock += 1
        if self.is_whole:
            return
        if n_missing:
            missing = self._wanted.nonzero_static(size=n_missing).reshape(-1)
            in_order = self.n_used + n_missing <= self.n_slots
            slots = self._free_slots(rows, n_missing)
            for first in range(0, n_missing, BATCH_ROWS):
                some, at = missing[first : first + BATCH_ROWS], slots[first : first + BATCH_ROWS]
                if in_order:
                    start = self.n_used + first
                    self.source.values(some, out=self.values[start : start + len(some)])
                else:
                    self.values[at] = self.source.values(some)
            self.n_used = min(self.n_used + n_missing, self.n_slots)
            self.slot[missing] = slots.to(torch.int32)
            self._row_at[slots] = missing
        if self.n_used == self.n_slots:
            self._used_at[self.slot[rows.reshape(-1)].long()] = self._clock

    def _free_slots(self, rows: Any, n_missing: int) -> Any:
        """Return slots for new rows; those of rows that go are taken from them."""
        if self.n_used + n_missing <= self.n_slots:
            return torch.arange(self.n_used, self.n_used + n_missing, device=self.device)
        # The rows asked for stay where they are.
        held = self.slot[rows.reshape(-1)].long()
        self._used_at[held[held >= 0]] = self._clock
        slots = self._used_at.topk(n_missing, largest=False).indices
        gone = self._row_at[slots]
        self.slot[gone[gone >= 0]] = -1
        return slots
