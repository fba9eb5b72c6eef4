"""A vector of length n on a device; host code sees an array, which it copies when it must."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from ...arrays import Floats, Integers, Labels, VectorOnDevice

# Functions of NumPy that stay on the device where the other operands are numbers or on it, too.
_ON_DEVICE = {
    np.add: torch.add,
    np.subtract: torch.sub,
    np.multiply: torch.mul,
    np.true_divide: torch.div,
    np.absolute: torch.abs,
}


# Types of labels whose classes are found on a device.
LABELS = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32,
    torch.float64,
}  # fmt: skip


class DeviceVector(NDArrayOperatorsMixin, VectorOnDevice):
    """Labels, targets, costs or α of a fit on a device.

    The torch engine reads ``tensor``; any other code may treat it as an array, at the price of a
    copy to the host.

    Parameters
    ----------
    tensor : torch.Tensor of shape (n,)
    """

    ndim = 1

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self._host: NDArray[Any] | None = None
        self._encoded: list[tuple[Labels, DeviceVector] | None] = []

    @property
    def size(self) -> int:
        """The number of values."""
        return int(self.tensor.shape[0])

    @property
    def shape(self) -> tuple[int]:
        """The number of values, in a tuple."""
        return (self.size,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values on the host."""
        return np.dtype(str(self.tensor.dtype).removeprefix("torch."))

    @property
    def host(self) -> NDArray[Any]:
        """The values in the memory of the host, copied when they are first asked for."""
        if self._host is None:
            self._host = self.tensor.cpu().numpy()
        return self._host

    def __len__(self) -> int:
        return self.size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.host, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = _ON_DEVICE.get(ufunc) if method == "__call__" and not options else None
        if function is not None and all(isinstance(each, (DeviceVector, float)) for each in inputs):
            tensors = (each.tensor if isinstance(each, DeviceVector) else each for each in inputs)
            return DeviceVector(function(*tensors))
        on_host = (each.host if isinstance(each, DeviceVector) else each for each in inputs)
        return getattr(ufunc, method)(*on_host, **options)

    def __getitem__(self, rows: Any) -> Any:
        """Return some values in the memory of the host."""
        if self._host is None and isinstance(rows, slice):
            return self.tensor[rows].cpu().numpy()
        return self.host[rows]

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (self.host,)

    def encoded(self) -> tuple[Labels, DeviceVector] | None:
        """Return the different labels, and the class number of every one."""
        if not self._encoded:
            self._encoded.append(self._encode())
        return self._encoded[0]

    def _encode(self) -> tuple[Labels, DeviceVector] | None:
        y = self.tensor
        if y.ndim != 1 or not y.numel() or y.dtype not in LABELS:
            return None
        numbers = y.to(torch.uint8) if y.dtype == torch.bool else y
        low, high = torch.aminmax(numbers)
        # Two classes need no sorting.
        if bool(((numbers == low) | (numbers == high)).all() & (low < high)):
            classes, codes = torch.stack([low, high]), (numbers == high).to(torch.uint8)
        else:
            classes, codes = torch.unique(numbers, return_inverse=True)
        if 2 * len(classes) > len(y) or bool((classes != classes).any()):
            return None
        return classes.to(y.dtype).cpu().numpy(), DeviceVector(codes)

    def signs(self, k: int) -> DeviceVector:
        """Return +1.0 for class number k and −1.0 for all others."""
        return DeviceVector((self.tensor == k).to(torch.float64).mul_(2.0).sub_(1.0))

    def rows(self) -> DeviceVector:
        """Return the places of all values."""
        return DeviceVector(torch.arange(self.size, device=self.tensor.device))

    def nonzero(self, factors: Any = None) -> tuple[Integers, Floats]:
        """Return the places of values other than 0, and those values times factors, on the host."""
        places = torch.nonzero(self.tensor)[:, 0]
        values = self.tensor[places]
        if factors is not None:
            values = values * on_device(factors, values.device)[places]
        return places.int().cpu().numpy(), values.cpu().numpy()

    def as_targets(self, largest: float) -> DeviceVector | None:
        """Return float64 numbers; None where one is larger than this, or NaN."""
        y = self.tensor
        if y.ndim != 1 or not y.numel() or y.is_complex():
            return None
        y = y.to(torch.float64)
        return DeviceVector(y) if bool((y.abs() <= largest).all()) else None

    def min(self) -> float:
        """Return the least value."""
        return float(self.tensor.min())

    def max(self) -> float:
        """Return the largest value."""
        return float(self.tensor.max())

    def sum(self) -> float:
        """Return the sum of all values."""
        return float(self.tensor.sum())

    def any(self) -> bool:
        """Return whether some value is not 0."""
        return bool(self.tensor.any())

    def reshape(self, *shape: Any) -> NDArray[Any]:
        """Return the values in the memory of the host, in another shape."""
        return self.host.reshape(*shape)


def on_device(values: Any, device: Any) -> Any:
    """Return a vector of the host, or of a device already, as a float64 tensor."""
    if isinstance(values, DeviceVector):
        return values.tensor.to(device, torch.float64)
    host = np.ascontiguousarray(values, dtype=np.float64)
    if not host.flags.writeable:
        host = host.copy()
    # What is not pinned is read before this returns.
    return torch.from_numpy(host).to(device, non_blocking=True)


def fetch(*tensors: Any) -> Floats:
    """Return the numbers of all tensors as one vector of the host, in one transfer."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    found: Floats = (torch.cat(flat) if len(flat) > 1 else flat[0]).cpu().numpy()
    return found
