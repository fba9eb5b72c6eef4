"""Kernels that are functions of the caller: computed on the device where they take tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...kernels import Custom, Kernel

if TYPE_CHECKING:
    from .device_rows import DeviceRows

# Rows on which a function is tried, and how far its values may be from those on the host.
TRIED_ROWS, LARGEST_DIFFERENCE = 8, 1e-6


def tensor_function(kernel: Kernel, X: DeviceRows) -> Callable[[Any, Any], Any] | None:
    """Return K(x, z) for tensors, or None where only the host can compute it.

    A function is used on the device if it returns a tensor there, with the values that it has on
    the host: f(x, z) = x @ z.T does, one that calls NumPy does not.
    """
    if not isinstance(kernel, Custom) or X.sparse or not X.shape[0]:
        return None
    function, some = kernel.function, X.tensor[:TRIED_ROWS]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = function(some, some)
    except Exception:  # whatever a function does with what it was not made for
        return None
    if not torch.is_tensor(found) or found.device != some.device or found.is_sparse:
        return None
    expected = kernel(X[:TRIED_ROWS])
    if tuple(found.shape) != expected.shape:
        return None
    near = LARGEST_DIFFERENCE * np.abs(expected).max()
    if not np.allclose(found.detach().cpu().numpy(), expected, rtol=0.0, atol=near):
        return None

    def values(x: Any, z: Any) -> Any:
        K = function(x, z).detach()
        if K.shape != (x.shape[0], z.shape[0]) or not bool(torch.isfinite(K).all()):
            kernel(x.cpu().numpy(), z.cpu().numpy())  # raises
            raise ValueError(f"{kernel!r} is not finite for some rows on {x.device}.")
        return K

    return values
