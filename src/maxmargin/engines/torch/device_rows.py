"""X on a device of torch, with a copy on the host where one is needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from ...arrays import (
    Answer,
    Container,
    Floats,
    Integers,
    Matrix,
    OnDevice,
    container,
    with_constant,
)
from ...data.columns import constant_features
from .device_vector import fetch, on_device
from .memory import bytes_to_use, with_smaller_blocks

# Numbers that are converted to float64 at a time.
NUMBERS_AT_A_TIME = 1 << 24
# Bytes of a block of computations on a card, and where torch's device is the CPU: of its caches.
BLOCK_BYTES = 4 << 30
HOST_BLOCK_BYTES = 64 << 20
# Rows that are compared first, about.
FEW_ROWS = 1024
REAL = {
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool, torch.uint8,
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64,
}  # fmt: skip


class DeviceRows(OnDevice):
    """X on a device: a tensor of shape (n, d) in float32 or float64, dense or CSR.

    The torch engine holds X where it is; code that has no place on a device reads `host`.

    Parameters
    ----------
    tensor : torch.Tensor
        Dense, row by row, or of the layout ``torch.sparse_csr``.
    host : array or CSR matrix, optional
        The same numbers in the memory of the host, where they are there already.
    """

    random_access = True
    on_device = True

    def __init__(self, tensor: Any, host: Matrix | None = None) -> None:
        self.tensor, self._host = tensor, host
        self.sparse = tensor.layout is torch.sparse_csr
        self.shape: tuple[int, int] = tuple(tensor.shape)
        self.dtype = np.dtype(np.float32 if tensor.dtype == torch.float32 else np.float64)

    @classmethod
    def upload(cls, X: Matrix, device: Any) -> DeviceRows:
        """Copy X from the host to a device."""
        if not sparse.issparse(X):
            return cls(as_tensor(X).to(device), X)
        parts = (as_tensor(part).to(device) for part in (X.indptr, X.indices, X.data))
        return cls(torch.sparse_csr_tensor(*parts, size=X.shape), X)

    @property
    def device(self) -> Any:
        """Where X is."""
        return self.tensor.device

    @property
    def host(self) -> Matrix:
        """X in the memory of the host, copied when it is first asked for."""
        if self._host is None:
            self._host = to_host(self.tensor)
        return self._host

    def __getitem__(self, rows: Any) -> Matrix:
        """Return some rows in the memory of the host."""
        if self._host is not None:
            return self._host[rows]
        if isinstance(rows, tuple):  # np.ix_(rows, columns)
            rows, columns = (np.asarray(each).ravel() for each in rows)
            return to_host(self.take(rows, columns).tensor)
        if not self.sparse and not isinstance(rows, np.ndarray):
            return to_host(self.tensor[rows])
        return to_host(self.take(np.arange(self.shape[0])[rows]).tensor)

    def take(self, rows: Integers, columns: Integers | None = None) -> DeviceRows:
        """Return some rows, and some of their columns, on the device."""
        chosen = self._index(rows)
        if self.sparse:
            return DeviceRows(_sparse_rows(self.tensor, chosen))
        if columns is None:
            return DeviceRows(self.tensor[chosen])
        return DeviceRows(self.tensor[chosen[:, None], self._index(columns)])

    def _index(self, rows: Integers) -> Any:
        return as_tensor(rows.astype(np.int64, copy=False)).to(self.device)

    def __len__(self) -> int:
        return self.shape[0]

    def less(self, centre: Floats) -> DeviceRows:
        """Return x − c for every row, in the type of X; rows become dense."""
        X = self.tensor.to_dense() if self.sparse else self.tensor
        return DeviceRows((X - self.vector(centre)).to(X.dtype))

    def with_constant(self, value: float) -> DeviceRows:
        """Return X with one more column of a constant value."""
        if self.sparse:
            return DeviceRows.upload(with_constant(self.host, value), self.device)
        column = self.tensor.new_full((self.shape[0], 1), value)
        return DeviceRows(torch.cat([self.tensor, column], dim=1))

    def constant_columns(self) -> tuple[Integers, Floats]:
        """Return the columns that hold one value throughout, and those values."""
        if self.sparse:
            return constant_features(self.host)
        X, first = self.tensor, self.tensor[0]
        some = first == X[-1]
        # Most columns differ between few rows already.
        few = X[:: max(1, self.shape[0] // FEW_ROWS)]
        candidates = torch.nonzero(some & (few == first).all(dim=0))[:, 0]
        if candidates.numel():
            same = [
                (part.index_select(1, candidates) == first[candidates]).all(dim=0)
                for part in X.split(max(1, NUMBERS_AT_A_TIME // self.shape[1]))
            ]
            candidates = candidates[torch.stack(same).all(dim=0)]
        return to_host(candidates), to_host(first[candidates].double())

    def device_blocks(self) -> Iterator[tuple[int, Any]]:
        """Yield X, with the place of its first row."""
        yield 0, self.tensor

    def vector(self, values: Any) -> Any:
        """Return a number per row, or one for all, as a float64 tensor on the device."""
        return on_device(values, self.device)

    def fetch(self, *tensors: Any) -> Floats:
        """Return the numbers of tensors as one vector in the memory of the host."""
        return fetch(*tensors)

    def pieces(self) -> Iterator[tuple[int, Matrix]]:
        """Yield X in the memory of the host."""
        yield 0, self.host

    def stored(self) -> int:
        """Return how many numbers are stored."""
        return int(self._values.numel())

    @property
    def _values(self) -> Any:
        """The numbers that are stored."""
        return self.tensor.values() if self.sparse else self.tensor

    def as_numbers(self) -> DeviceRows | None:
        """Return X in float32 or float64, stored row by row, or as CSR without duplicates."""
        tensor = self.tensor
        if tensor.ndim != 2 or 0 in self.shape or tensor.dtype not in REAL:
            return None
        if tensor.layout is not torch.strided:
            tensor = _canonical(tensor)
        if tensor.dtype in (torch.float16, torch.bfloat16):
            tensor = tensor.to(torch.float32)
        elif tensor.dtype not in (torch.float32, torch.float64):
            tensor = tensor.to(torch.float64)
        if tensor.layout is torch.strided:
            tensor = tensor.contiguous()
        return self if tensor is self.tensor else DeviceRows(tensor)

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest value stored; both are NaN where one is."""
        if not self.stored():
            return 0.0, 0.0
        low, high = torch.stack(torch.aminmax(self._values)).tolist()
        return low, high

    def variance(self, weights: Floats | None = None) -> float:
        """Return the variance of all entries, those of a row counted ``weights`` times."""
        n, d = self.shape
        if weights is None:
            shares = torch.full((n,), 1.0 / (n * d), dtype=torch.float64, device=self.device)
        else:
            shares = as_tensor(weights / (weights.sum() * d)).to(self.device)
        if self.sparse:
            shares = torch.repeat_interleave(shares, self.tensor.crow_indices().diff())
        values = self._values if self.sparse else self.tensor
        mean = sum(of @ _sums(part) for part, of in _parts(values, shares))
        total = sum(of @ _sums((part - mean).square()) for part, of in _parts(values, shares))
        if self.sparse:
            total = total + (1.0 - shares.sum()) * mean**2
        return float(total)

    def squared_norms(self) -> Floats:
        """Return ‖x‖² of every row, summed in float64."""
        if self.sparse:
            squares = self.tensor.values().to(torch.float64).square()
            lengths = self.tensor.crow_indices().diff()
            return to_host(torch.segment_reduce(squares, "sum", lengths=lengths))  # type: ignore[no-any-return]
        found = torch.empty(self.shape[0], dtype=torch.float64, device=self.device)
        step = max(1, NUMBERS_AT_A_TIME // self.shape[1])
        for k in range(0, self.shape[0], step):
            some = self.tensor[k : k + step].to(torch.float64)
            found[k : k + step] = torch.linalg.vecdot(some, some)
        return to_host(found)  # type: ignore[no-any-return]

    def diagonal(self) -> Floats:
        """Return the diagonal of a square X in float64."""
        return to_host(self.tensor.diagonal().to(torch.float64))  # type: ignore[no-any-return]

    def put(self, values: NDArray[Any]) -> Any:
        """Return an array of the host as a tensor on the device."""
        tensor = as_tensor(values)
        return tensor.to(self.device, copy=tensor.device == self.device)

    def get(self, values: Any) -> NDArray[Any]:
        """Return a tensor on the device as an array of the host."""
        return to_host(values)  # type: ignore[no-any-return]

    def float64_rows(self, rows: Any) -> Any:
        """Return some rows in float64 on the device, dense: those of a slice, or of a tensor."""
        if not self.sparse:
            return self.tensor[rows].to(torch.float64)
        if isinstance(rows, slice):
            rows = torch.arange(self.shape[0], device=self.device)[rows]
        return _sparse_rows(self.tensor, rows).to_dense().to(torch.float64)

    def in_blocks(self, compute: Callable[[float], Answer]) -> Answer:
        """Return ``compute(n)`` for as many bytes n as a block may take, fewer where it is full."""
        most = BLOCK_BYTES if self.device.type == "cuda" else HOST_BLOCK_BYTES
        return with_smaller_blocks(compute, min(most, 0.5 * bytes_to_use(self.device)))

    def column_means(self) -> tuple[Floats, Floats]:
        """Return the means of the columns, and those of their squares."""
        n, d = self.shape
        if self.sparse:
            columns = self.tensor.col_indices()
            values = self._values.to(torch.float64)[torch.argsort(columns, stable=True)]
            counts = torch.bincount(columns, minlength=d)
            both = [
                torch.segment_reduce(each, "sum", lengths=counts, initial=0.0)
                for each in (values, values.square())
            ]
        else:
            both = [torch.zeros(d, dtype=torch.float64, device=self.device) for _ in range(2)]
            for part, _ in _parts(self.tensor, self.tensor):
                both[0] += part.sum(dim=0)
                both[1] += part.square().sum(dim=0)
        means, squares = to_host(torch.stack(both) / n)
        return means, squares

    def digest(self) -> bytes:
        """Return what is the same for equal numbers, and hardly ever for others."""
        tensor = self.tensor
        parts = [tensor]
        if self.sparse:
            parts = [tensor.values(), tensor.col_indices(), tensor.crow_indices()]
        sums = torch.stack([_hashed(part) for part in parts])
        return repr((self.shape, str(tensor.dtype), sums.tolist())).encode()

    def asymmetry(self) -> tuple[float, float]:
        """Return max |K − Kᵀ| and max |K| of a square X."""
        K, step = self.tensor, max(1, NUMBERS_AT_A_TIME // self.shape[1])
        worst = [
            (K[k : k + step] - K[:, k : k + step].T).abs().amax()
            for k in range(0, self.shape[0], step)
        ]
        low, high = self.extremes()
        return float(torch.stack(worst).amax()), max(high, -low)


def _hear_warnings() -> None:
    """Let torch say here what it says once per process: of read-only arrays and CSR tensors.

    Later is too late for filters: those of other threads would change with them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one = np.ones(1)
        one.flags.writeable = False
        places = torch.tensor([0, 1]), torch.tensor([0])
        torch.sparse_csr_tensor(*places, torch.from_numpy(one), size=(1, 1))


_hear_warnings()


@container.register
def _(X: DeviceRows) -> Container:
    return X


def as_tensor(values: Floats | Integers) -> Any:
    """Return an array of NumPy as a tensor that shares its memory, and is only read."""
    return torch.from_numpy(np.ascontiguousarray(values))


def to_host(tensor: Any) -> Matrix:
    """Return a tensor as an array of NumPy, or as a CSR matrix; one on the host is not copied."""
    if tensor.layout is torch.strided:
        if tensor.dtype == torch.bfloat16:  # NumPy has no such type
            tensor = tensor.to(torch.float32)
        return tensor.cpu().numpy()
    tensor = _canonical(tensor)
    parts = tensor.values(), tensor.col_indices(), tensor.crow_indices()
    return sparse.csr_matrix(tuple(to_host(part) for part in parts), shape=tuple(tensor.shape))


def _canonical(tensor: Any) -> Any:
    """Return a sparse tensor as CSR, its columns in order and without duplicates."""
    if tensor.layout is torch.sparse_csr:
        crow, columns = tensor.crow_indices(), tensor.col_indices()
        rows = torch.repeat_interleave(crow.long().diff())
        place = rows * tensor.shape[1] + columns
        if bool((place.diff() > 0).all()):
            return tensor
    return tensor.to_sparse_coo().coalesce().to_sparse_csr()


def _sparse_rows(tensor: Any, rows: Any) -> Any:
    """Return some rows of a CSR tensor."""
    crow = tensor.crow_indices()
    first, counts = crow[rows], crow[rows + 1] - crow[rows]
    ends = torch.cat([crow.new_zeros(1), counts.cumsum(0)])
    places = torch.arange(int(ends[-1]), device=tensor.device, dtype=crow.dtype)
    places += torch.repeat_interleave(first - ends[:-1], counts)
    return torch.sparse_csr_tensor(
        ends.to(crow.dtype), tensor.col_indices()[places], tensor.values()[places],
        size=(rows.numel(), tensor.shape[1]),
    )  # fmt: skip


def _parts(values: Any, shares: Any) -> Iterator[tuple[Any, Any]]:
    """Yield values in float64, some at a time, with the shares of their rows."""
    step = max(1, NUMBERS_AT_A_TIME // (values.shape[1] if values.ndim == 2 else 1))
    for k in range(0, values.shape[0], step):
        yield values[k : k + step].to(torch.float64), shares[k : k + step]


def _hashed(values: Any) -> Any:
    """Return Σ bits_i m_i modulo 2⁶⁴ of all values, with multipliers that look random."""
    bits = values.reshape(-1).view(torch.int64 if values.element_size() == 8 else torch.int32)
    total = torch.zeros((), dtype=torch.int64, device=values.device)
    for first in range(0, bits.numel(), NUMBERS_AT_A_TIME):
        part = bits[first : first + NUMBERS_AT_A_TIME].to(torch.int64)
        m = torch.arange(first + 1, first + 1 + part.numel(), device=values.device)
        for multiplier, shift in ((-7046029254386353131, 30), (-4658895280553007687, 27)):
            m = m * multiplier
            m ^= m >> shift
        total += (part * (m | 1)).sum()
    return total


def _sums(values: Any) -> Any:
    """Return the sum of every row."""
    return values.sum(dim=1) if values.ndim == 2 else values
