"""Scores of new rows on a device, in float64: sums over support vectors, and planes.

Rows and support vectors are taken in tiles: all kernel values are never there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy import sparse

from ...arrays import Floats, Integers, Matrix
from ...caller import warn_caller
from ...kernels import RBF, Kernel, Linear, Precomputed
from ...kernels.base import UNIT
from ...kernels.products import far_columns
from ..base import DeviceMemoryFull
from .callables import tensor_function
from .device_rows import DeviceRows, as_tensor
from .memory import bytes_to_use, with_smaller_blocks
from .triton_kernels import gaussian_, has_triton

# Kernel values, and numbers of X, in one tile.
TILE_NUMBERS = 1 << 25
# Numbers of X that are copied to the device at a time.
COPIED_NUMBERS = 1 << 27
# Sparse rows of more columns are not made dense: their products are computed on the host.
MAX_DENSE_COLUMNS = 1 << 16
# The largest error of a kernel value by cancellation; beyond, the host computes differences.
LARGEST_ERROR = 1e-9


class Planes(Protocol):
    """The planes of a fitted model, as sums over its support vectors."""

    kernel: Kernel
    support: Integers
    vectors: Matrix
    dual: Matrix

    def coefficients(self) -> Floats:
        """Return the coefficients of the vectors in every plane, (n_support, n_planes)."""

    def planes(self) -> Matrix:
        """Return w of every plane, of a linear kernel."""


def kernel_scores(model: object, planes: Planes, b: Floats, X: Matrix, device: Any) -> Any:
    """Return Σ α y K(x, z) + b of every plane on the device, or None: the host has to compute them.

    Parameters
    ----------
    model : object
        To whose fit what is copied to the device belongs: it is kept as long as the model is.
    planes : Planes
    b : ndarray of shape (n_planes,)
    X : DeviceRows, or array or CSR matrix of shape (n, n_features)
        Rows of the host are copied some at a time.
    device : torch.device
    """
    if isinstance(planes.kernel, Linear):
        w = planes.planes()
        return plane_scores(X, w.toarray() if sparse.issparse(w) else w, b, device)

    def compute(tile: int) -> Any:
        kept, parts = _kept(model, planes, device), []
        for rows in _on_device(X, device):
            parts.append(kept.scores(rows, tile))
            if parts[-1] is None:
                return None
        return torch.cat(parts)

    scores = _within_memory(compute, device)
    if scores is None:
        return None
    scores += as_tensor(b).to(device)
    return scores if bool(torch.isfinite(scores).all()) else None


def plane_scores(X: Matrix, w: Floats, b: Floats, device: Any) -> Any:
    """Return w_k·x + b_k on the device, or None: the host has to compute them."""

    def compute(tile: int) -> Any:
        columns = as_tensor(np.asarray(w, dtype=np.float64)).to(device).T.contiguous()
        shift = as_tensor(b).to(device)
        parts = []
        for rows in _on_device(X, device):
            step = max(1, tile // (rows.shape[1] if not rows.sparse else max(1, len(b))))
            for first in range(0, rows.shape[0], step):
                some = _rows(rows, slice(first, first + step))
                parts.append(torch.addmm(shift, some.to(torch.float64), columns))
        return torch.cat(parts)

    return _within_memory(compute, device)


class _Kept:
    """What a prediction needs of a fitted model, on a device."""

    def __init__(self, planes: Planes, device: Any) -> None:
        self.kernel, self.device = planes.kernel, device
        # Other arrays are those of another fit.
        self.of = planes.vectors, planes.support, planes.dual
        self.coefficients = as_tensor(planes.coefficients()).to(device)
        if isinstance(planes.kernel, Precomputed):
            self.support = as_tensor(planes.support.astype(np.int64)).to(device)
            return
        self.vectors = DeviceRows.upload(planes.vectors, device)
        self.function = tensor_function(planes.kernel, self.vectors)
        self.centre = None
        if planes.kernel.shift_invariant:
            centre = far_columns(planes.vectors)
            self.centre = as_tensor(centre).to(device) if centre.any() else None

    def scores(self, X: DeviceRows, tile: int) -> Any:
        """Return Σ α y K(x, z) of every plane; None where rounding is better avoided elsewhere."""
        if not self._is_computed_here(X):
            return None
        n, (n_support, n_planes) = X.shape[0], self.coefficients.shape
        sums = torch.zeros(n, n_planes, dtype=torch.float64, device=self.device)
        widest = n_support if isinstance(self.kernel, Precomputed) else X.shape[1]
        n_vectors = max(1, min(n_support, tile // max(widest, 1)))
        step = max(1, min(n, tile // max(widest, n_vectors, 1)))
        farthest = []
        for first in range(0, n, step):
            rows = slice(first, min(first + step, n))
            if isinstance(self.kernel, Precomputed):
                K = X.tensor[rows][:, self.support].to(torch.float64)
                sums[rows] = K @ self.coefficients
                continue
            x = self._about_centre(X, rows)
            x_sq = torch.linalg.vecdot(x, x)
            for begin in range(0, n_support, n_vectors):
                some = slice(begin, min(begin + n_vectors, n_support))
                z = self._about_centre(self.vectors, some)
                if self.function is not None:
                    K = self.function(x, z).to(torch.float64)
                else:
                    z_sq = torch.linalg.vecdot(z, z)
                    farthest.append(torch.stack([x_sq.amax(), z_sq.amax()]))
                    K = _values(self.kernel, x @ z.T, x_sq, z_sq)
                sums[rows].addmm_(K, self.coefficients[some])
        return None if self._is_blurred(farthest, X.shape[1]) else sums

    def _is_computed_here(self, X: DeviceRows) -> bool:
        """Return whether the kernel, on rows like these, is one for the device."""
        if isinstance(self.kernel, Precomputed) or self.function is not None:
            return True
        return self.kernel.elementwise and not (X.sparse and X.shape[1] > MAX_DENSE_COLUMNS)

    def _about_centre(self, X: DeviceRows, rows: slice) -> Any:
        """Return some rows in float64, dense, about the centre of the vectors."""
        some = _rows(X, rows)
        some = (some.to_dense() if X.sparse else some).to(torch.float64)
        return some if self.centre is None else some - self.centre

    def _is_blurred(self, farthest: list[Any], terms: int) -> bool:
        """Return whether ‖x‖² + ‖z‖² − 2⟨x,z⟩ of some rows may lose digits that K needs."""
        if not farthest or not self.kernel.shift_invariant:
            return False
        x_sq, z_sq = torch.stack(farthest).amax(0).cpu().numpy()
        one = np.ones(1)
        error = self.kernel.rounding(one * x_sq, one * z_sq, one, terms, UNIT)[0]
        return bool(LARGEST_ERROR < error < np.inf)


# Of each model the last one only, and none of a model that is gone.
_KEPT: WeakKeyDictionary[Any, _Kept] = WeakKeyDictionary()


def _kept(model: object, planes: Planes, device: Any) -> _Kept:
    """Return what is on the device of this fit of a model, copied if it is not there yet."""
    kept = _KEPT.get(model)
    now = planes.vectors, planes.support, planes.dual
    same = kept is not None and all(a is b for a, b in zip(kept.of, now, strict=True))
    if kept is None or not same or kept.device != device or kept.kernel != planes.kernel:
        _KEPT.pop(model, None)
        _KEPT[model] = kept = _Kept(planes, device)
    return kept


def _values(kernel: Kernel, dot: Any, x_sq: Any, z_sq: Any) -> Any:
    """Return K from inner products, in their place."""
    if type(kernel) is RBF and has_triton(dot):
        gaussian_(dot, x_sq, z_sq, kernel.gamma)
        return dot
    return kernel.from_products(dot, x_sq, z_sq)


def _on_device(X: Matrix, device: Any) -> Iterator[DeviceRows]:
    """Yield X on the device: rows of the host are copied some at a time."""
    if isinstance(X, DeviceRows):
        yield X
        return
    step = max(1, COPIED_NUMBERS // max(1, X.shape[1]))
    for first in range(0, X.shape[0], step):
        yield DeviceRows.upload(X[first : first + step], device)


def _rows(X: DeviceRows, rows: slice) -> Any:
    """Return consecutive rows of X as a tensor of the same layout."""
    if not X.sparse:
        return X.tensor[rows]
    crow = X.tensor.crow_indices()[rows.start : rows.stop + 1]
    begin, end = crow[[0, -1]].tolist()
    stored = slice(begin, end)
    return torch.sparse_csr_tensor(
        crow - begin, X.tensor.col_indices()[stored], X.tensor.values()[stored],
        size=(crow.numel() - 1, X.shape[1]),
    )  # fmt: skip


def _within_memory(compute: Callable[[int], Any], device: Any) -> Any:
    """Return ``compute(tile)`` with the largest tiles that the device has room for, else None."""
    largest = min(8.0 * TILE_NUMBERS, bytes_to_use(device) / 8.0)
    try:
        return with_smaller_blocks(lambda size: compute(int(size) // 8), largest)
    except DeviceMemoryFull:
        _KEPT.clear()
    warn_caller(
        f"The memory of {device} is full: predicting on the CPU. Free memory on the card, or use "
        'device="cpu".'
    )
    return None
