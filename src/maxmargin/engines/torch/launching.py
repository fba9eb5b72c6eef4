"""How Triton's kernels are launched."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def launch(kernel: Any, grid: tuple[int, ...]) -> Callable[..., Any]:
    """Return a kernel to be called with its arguments, once per program of a grid.

    Products and sums may be fused: Triton warns where a launch does not say.
    """
    return partial(kernel[grid], enable_fp_fusion=True)
