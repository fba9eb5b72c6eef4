"""Arrays of torch and CuPy as they come in, and answers as they go out."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
import torch

from ...arrays import Matrix
from . import device as devices
from .device_rows import DeviceRows, to_host
from .device_vector import DeviceVector


def rows_of(X: Any, name: str) -> Any:
    """Return a matrix of torch or CuPy where ``name`` says: on a device, or as NumPy's.

    "auto" is where it is; arrays in the memory of the host are not copied. They go to a device
    like NumPy's: when they have been checked, and as far as there is room.
    """
    tensor = as_tensor(X)
    is_there = devices.is_card(tensor.device)
    if name not in ("auto", "cpu", "cuda") or (name == "cuda" and not is_there):
        device = devices.find_device(name)  # raises
        return DeviceRows(tensor.to(device)) if is_there else to_host(tensor)
    return DeviceRows(tensor) if is_there and name != "cpu" else to_host(tensor)


def vector_of(values: Any) -> Any:
    """Return labels or targets where they are: on a device, or as NumPy's."""
    tensor = as_tensor(values)
    if not devices.is_card(tensor.device) or tensor.dtype == torch.bfloat16:
        return to_host(tensor)
    return DeviceVector(tensor)


def host_array(values: Any) -> Matrix:
    """Return labels, targets or weights of torch or CuPy as NumPy's, uncopied where they can be."""
    return to_host(as_tensor(values))


def as_tensor(values: Any) -> Any:
    """Return an array of torch or CuPy as a tensor that shares its memory."""
    if array_api_compat.is_torch_array(values):
        return values.detach().resolve_conj().resolve_neg()
    return torch.from_dlpack(values)


def as_given(values: Any, X: Any) -> Any:
    """Return answers, a NumPy array or a tensor, in the library and on the device of X."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "biuf":
            return values  # there are no tensors of text
        values = torch.from_numpy(np.ascontiguousarray(values))
    tensor = values.to(as_tensor(X).device)
    if array_api_compat.is_torch_array(X):
        return tensor
    return array_api_compat.array_namespace(X).from_dlpack(tensor)
