"""Kernel values on a device: blocks of K, computed from rows of X as they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...kernels import RBF, Custom, Kernel, Precomputed
from .callables import tensor_function
from .triton_kernels import gaussian_, gaussian_rows, has_triton

if TYPE_CHECKING:
    from .device_rows import DeviceRows

# Cards of these compute capabilities multiply float64 matrices about as fast as float32 ones.
FAST_DOUBLES = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}
# Columns up to which sparse rows are made dense: products of dense rows are faster.
MAX_DENSE_COLUMNS = 8192


def value_type(device: Any) -> Any:
    """Return the type of kernel values that a device computes fast: float64 where that is free."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) in FAST_DOUBLES:
        return torch.float64
    return torch.float32


class KernelRows:
    """K(x_i, x_j) of rows of X on a device.

    Rows are stored in the type of the kernel values, about their mean where the kernel does not
    depend on the origin. Functions of the caller are computed on the host unless they take tensors.

    Parameters
    ----------
    kernel : Kernel
    X : DeviceRows
    dtype : torch.dtype
        Of the kernel values.
    """

    def __init__(self, kernel: Kernel, X: DeviceRows, dtype: Any) -> None:
        self.kernel, self.dtype, self.device, self._X = kernel, dtype, X.device, X
        self.n_rows, self.n_terms = X.shape
        self._is_formula = kernel.elementwise and not isinstance(kernel, Precomputed | Custom)
        self._function = tensor_function(kernel, X)
        if not self._is_formula:
            return
        self._rows, wide = _dense_rows(X), torch.float64
        if kernel.shift_invariant and not _is_csr(self._rows):
            centre = self._rows.mean(0, dtype=wide)
            self._rows = (self._rows.to(wide) - centre).to(dtype)
        else:
            self._rows = self._rows.to(dtype)
        self.squares = _squares(self._rows)

    def values(self, rows: Any, columns: Any = None, out: Any = None) -> Any:
        """Return K[rows, columns], of all columns by default.

        Parameters
        ----------
        rows, columns : tensor of int, or slice
        out : tensor of shape (n_rows, n_columns), optional
            Where to write it.
        """
        if not self._is_formula:
            return _into(out, self._given(rows, columns))
        x_sq = self.squares[rows]
        z_sq = self.squares if columns is None else self.squares[columns]
        if _is_csr(self._rows):
            dot = self._sparse_products(rows, columns)
        else:
            z = self._rows if columns is None else self._rows[columns]
            dot = torch.mm(self._rows[rows], z.T, out=out)
        is_wide = columns is None and not isinstance(rows, slice)
        if type(self.kernel) is RBF and has_triton(dot):
            gaussian_(dot, x_sq, z_sq, self.kernel.gamma, rows if is_wide else None)
            return _into(out, dot)
        dot = self.kernel.from_products(dot, x_sq, z_sq)
        if self.kernel.shift_invariant and is_wide:
            # Rounding may leave K(x, x) a little below its value.
            dot[torch.arange(len(rows), device=self.device), rows] = self.diagonal()[rows].to(dot)
        return _into(out, dot)

    def write(self, rows: Any, out: Any, slots: Any) -> None:
        """Write rows of K, all columns of them, to the rows of ``out`` named by ``slots``."""
        if not (self._is_formula and type(self.kernel) is RBF and has_triton(rows)):
            out[slots] = self.values(rows)
            return
        if _is_csr(self._rows):
            dot = self._sparse_products(rows, None)
        else:
            dot = torch.mm(self._rows[rows], self._rows.T)
        gaussian_rows(dot, self.squares[rows], self.squares, self.kernel.gamma, rows, out, slots)

    def diagonal(self) -> Any:
        """Return K(x_i, x_i) in float64."""
        if not hasattr(self, "_diagonal"):
            self._diagonal = self._compute_diagonal()
        return self._diagonal

    def _compute_diagonal(self) -> Any:
        if self._is_formula:
            squares = self.squares.to(torch.float64)[:, None]
            return self.kernel.from_products(squares[:, :, None].clone(), squares, squares).ravel()
        if isinstance(self.kernel, Precomputed):
            return self._X.tensor.diagonal().to(torch.float64)
        return torch.from_numpy(self.kernel.diagonal(self._X.host)).to(self.device)

    def _given(self, rows: Any, columns: Any) -> Any:
        """Return values of a precomputed kernel, or of a function of the caller's."""
        if isinstance(self.kernel, Precomputed):
            some = self._X.tensor[rows]
            return (some if columns is None else some[:, columns]).to(self.dtype)
        if self._function is not None:
            X = self._X.tensor
            z = X if columns is None else X[columns]
            return self._function(X[rows], z).to(self.dtype)
        host = self._X.host
        z = host if columns is None else host[_on_host(columns)]
        K = np.ascontiguousarray(self.kernel(host[_on_host(rows)], z))
        return torch.from_numpy(K).to(self.device, self.dtype)

    def _sparse_products(self, rows: Any, columns: Any) -> Any:
        """Return inner products of sparse rows, some of them made dense at a time."""
        host = self._X.host
        some = torch.from_numpy(host[_on_host(rows)].toarray()).to(self.device, self.dtype)
        dot = torch.mm(self._rows, some.T).T
        return (dot if columns is None else dot[:, columns]).contiguous()


def _on_host(rows: Any) -> Any:
    return rows if isinstance(rows, slice) else rows.cpu().numpy()


def _is_csr(rows: Any) -> bool:
    return rows.layout is torch.sparse_csr


def _dense_rows(X: DeviceRows) -> Any:
    """Return the rows, sparse ones made dense where that is small."""
    if X.sparse and X.shape[1] <= MAX_DENSE_COLUMNS:
        return X.tensor.to_dense()
    return X.tensor


def _squares(rows: Any) -> Any:
    """Return ‖x‖² of every row."""
    if not _is_csr(rows):
        return torch.linalg.vecdot(rows, rows)
    starts = rows.crow_indices()
    of_row = torch.repeat_interleave(
        torch.arange(rows.shape[0], device=rows.device), starts[1:] - starts[:-1]
    )
    squares = torch.zeros(rows.shape[0], dtype=rows.dtype, device=rows.device)
    return squares.index_add_(0, of_row, rows.values() ** 2)


def _into(out: Any, values: Any) -> Any:
    return values if out is None or out is values else out.copy_(values)
