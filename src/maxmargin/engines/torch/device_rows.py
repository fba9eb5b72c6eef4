"""X on a device of torch, with a copy on the host where one is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy import sparse

from ...arrays import Container, Matrix, container


class DeviceRows:
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
            return cls(torch.from_numpy(np.ascontiguousarray(X)).to(device), X)
        parts = (torch.from_numpy(np.ascontiguousarray(part)) for part in (X.indptr, X.indices))
        tensor = torch.sparse_csr_tensor(*parts, torch.from_numpy(X.data), size=X.shape)
        return cls(tensor.to(device), X)

    @property
    def device(self) -> Any:
        """Where X is."""
        return self.tensor.device

    @property
    def host(self) -> Matrix:
        """X in the memory of the host, copied when it is first asked for."""
        if self._host is None:
            self._host = _to_host(self.tensor)
        return self._host

    def __getitem__(self, rows: Any) -> Matrix:
        """Return some rows in the memory of the host."""
        if self._host is not None or self.sparse:
            return self.host[rows]
        if isinstance(rows, np.ndarray):
            chosen = np.flatnonzero(rows) if rows.dtype == bool else rows
            return _to_host(self.tensor[torch.from_numpy(chosen.astype(np.int64)).to(self.device)])
        return _to_host(self.tensor[rows])

    def __len__(self) -> int:
        return self.shape[0]

    def pieces(self) -> Iterator[tuple[int, Matrix]]:
        """Yield X in the memory of the host."""
        yield 0, self.host

    def stored(self) -> int:
        """Return how many numbers are stored."""
        return int(self.tensor.values().numel() if self.sparse else self.tensor.numel())


@container.register
def _(X: DeviceRows) -> Container:
    return X


def _to_host(tensor: Any) -> Matrix:
    if tensor.layout is not torch.sparse_csr:
        return tensor.cpu().numpy()
    parts = tensor.values(), tensor.col_indices(), tensor.crow_indices()
    return sparse.csr_matrix(tuple(part.cpu().numpy() for part in parts), shape=tuple(tensor.shape))
