"""How much memory of a device may be used, and what happens when it is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...arrays import Answer
from ...runtime.memory import free_memory
from ...runtime.settings import setting
from ..base import DeviceMemoryFull

# The share of the memory of the host, where torch's device is the CPU: others use it as well.
HOST_SHARE = 0.25
# Bytes of the least block that is tried before the memory counts as full.
LEAST_BLOCK = 1 << 20


def bytes_to_use(device: Any) -> float:
    """Return how many bytes of the free memory of a device may be taken.

    Memory that torch keeps for itself, and would use again, counts as free.
    """
    if device.type != "cuda":
        return HOST_SHARE * free_memory()
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return float(setting("gpu_memory")) * (free + kept)


def with_smaller_blocks(
    function: Callable[[float], Answer], size: float, least: float = LEAST_BLOCK
) -> Answer:
    """Return ``function(size)``, with half the size again and again where memory is full.

    Parameters
    ----------
    function : callable
        What is computed, in blocks of at most so many bytes.
    size : float
        Bytes of a block to begin with.
    least : float
        Bytes of the smallest block that is tried.

    Raises
    ------
    DeviceMemoryFull
        Where blocks of ``least`` bytes do not fit.
    """
    while True:
        try:
            return function(size)
        except torch.OutOfMemoryError as error:
            if size <= least:
                raise DeviceMemoryFull(str(error)) from None
        # Outside of the clause, whose traceback holds the tensors that did not fit.
        _empty_cache()
        size = max(0.5 * size, least)


def _empty_cache() -> None:
    """Give back memory that torch keeps for later."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
