"""Rows of K that have been computed, kept on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...arrays import Integers
from ..base import DeviceMemoryFull
from .memory import with_smaller_blocks


class KeptRows:
    """Rows of K, as many as a budget allows: the oldest make room for others.

    Parameters
    ----------
    n_rows : int
        Rows, and columns, of K.
    dtype : torch.dtype
    device : torch.device
    budget : float
        Bytes that rows may take.
    """

    def __init__(self, n_rows: int, dtype: Any, device: Any, budget: float) -> None:
        self._row_bytes = max(1, n_rows * dtype.itemsize)
        self._most, self._dtype, self._device = n_rows, dtype, device
        self._budget = min(budget, float(n_rows * self._row_bytes))
        self._slots: Integers = np.full(n_rows, -1)
        self._memory: Any = None
        self._next = 0

    def knows(self, rows: Integers) -> NDArray[np.bool_]:
        """Return which of some rows are there."""
        return self._slots[rows] >= 0

    def rows(self, rows: Integers) -> Any:
        """Return rows that are there."""
        at = torch.from_numpy(self._slots[rows]).to(self._device)
        return self._memory.index_select(0, at)

    def keep(self, rows: Integers, values: Any) -> None:
        """Keep rows that are not there, or as many of them as there is room for."""
        if self._memory is None:
            self._reserve()
        capacity = len(self._owners)
        count = min(capacity, rows.size)
        if not count:
            return
        at = (self._next + np.arange(count)) % capacity
        self._next = int(at[-1] + 1) % capacity
        driven_out = self._owners[at]
        self._slots[driven_out[driven_out >= 0]] = -1
        self._owners[at], self._slots[rows[:count]] = rows[:count], at
        self._memory[torch.from_numpy(at).to(self._device)] = values[:count]

    def _reserve(self) -> None:
        """Allocate what the budget allows, less where the device has less."""

        def allocate(size: float) -> Any:
            count = int(size // self._row_bytes)
            return torch.empty((count, self._most), dtype=self._dtype, device=self._device)

        try:
            self._memory = with_smaller_blocks(allocate, self._budget, self._row_bytes)
        except DeviceMemoryFull:
            self._memory = allocate(0.0)
        self._owners: Integers = np.full(self._memory.shape[0], -1)
