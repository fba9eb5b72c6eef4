"""Where kernel values come from: tiles K[rows, columns], by the products that suit the data.

Dense rows are multiplied by BLAS. Of rows that are mostly zeros only the others are multiplied,
with panels of samples that lie feature by feature; that pays below a quarter of non-zeros, in dense
arrays as well. The kernel's formula is then applied to the tile while it is in the cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
from numba.extending import overload
from scipy import sparse

from ..kernels import RBF, Kernel, Precomputed
from ..kernels.products import finite
from ..lanes import aligned, count, fill, load, store
from ..rows import compiled
from ..samples import Floats, Integers
from ..threads import in_parallel

# Columns of a tile, and rows of X worked on at a time: a tile of float32 is half a megabyte.
WIDTH = 512
HEIGHT = 256
# The share of non-zeros up to which they are multiplied one by one; of rows so narrow that a panel
# of them fits the nearest cache, where BLAS is not at its best.
SPARSE = 0.25
SPARSE_NARROW, NARROW = 0.7, 64
# Vectors in a panel: as many running sums stay in registers.
PANEL = 8


class Values(ABC):
    """K(x_i, x_j) for the rows of X named by ``index``, in ``dtype``."""

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        self.kernel = kernel
        self.X = X
        self.index = index
        self.dtype = np.dtype(dtype)
        self.n_samples = X.shape[0] if index is None else index.size

    @property
    def cost(self) -> float:
        """Multiplications a value, about: what a kept one spares."""
        return float(self.X.shape[1])

    def of(self, rows: Any) -> Any:
        """Return rows of X."""
        return self.X[rows if self.index is None else self.index[rows]]

    def prepare(self, rows: Integers) -> Any:
        """Return what `tile` needs to know of some rows."""
        return rows

    @abstractmethod
    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        """Write K[rows[part], columns] to ``out``."""

    def against(self, columns: Integers) -> Any:
        """Return what `block` needs to know of some columns."""
        return columns

    @abstractmethod
    def block(self, rows: Integers, columns: Any) -> Floats:
        """Return K[rows, columns], the columns made ready by `against`."""


def values_of(kernel: Kernel, X: Any, index: Integers | None, dtype: Any, budget: float) -> Values:
    """Return the way to kernel values that suits the kernel, the data and the memory."""
    if isinstance(kernel, Precomputed):
        return Given(kernel, X, index, dtype)
    if not kernel.elementwise:
        return Opaque(kernel, X, index, dtype)
    if _density(X) > (SPARSE_NARROW if X.shape[1] <= NARROW else SPARSE):
        return DenseProducts(kernel, X, index, dtype)
    if X.shape[0] * X.shape[1] * np.dtype(dtype).itemsize <= budget:
        return SparseProducts(kernel, X, index, dtype)
    return WideProducts(kernel, X, index, dtype)


class Given(Values):
    """The caller's own Gram matrix."""

    cost = 0.0

    def tile(self, prepared: Integers, part: slice, columns: slice, out: Floats) -> None:
        out[:] = self.block(prepared[part], np.arange(columns.start, columns.stop))

    def block(self, rows: Integers, columns: Any) -> Floats:
        if self.index is not None:
            rows, columns = self.index[rows], self.index[columns]
        return np.asarray(self.X[np.ix_(rows, columns)], dtype=self.dtype)


class Opaque(Values):
    """Any function of two sets of rows."""

    cost = np.inf

    def tile(self, prepared: Integers, part: slice, columns: slice, out: Floats) -> None:
        out[:] = self.block(prepared[part], np.arange(columns.start, columns.stop))

    def block(self, rows: Integers, columns: Any) -> Floats:
        return np.asarray(self.kernel(self.of(rows), self.of(columns)), dtype=self.dtype)


class _Products(Values):
    """A formula of ⟨x,z⟩, ‖x‖² and ‖z‖²; the ways to ⟨x,z⟩ differ."""

    squares: Floats

    def _transform(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> None:
        if type(self.kernel) is RBF:
            gaussian(dot, x_sq, z_sq, self.kernel.gamma)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                dot[:] = finite(self.kernel.from_products(dot, x_sq, z_sq), repr(self.kernel))


class DenseProducts(_Products):
    """⟨x,z⟩ by BLAS, of rows that are cast, centred and made dense.

    All of them once where they are no larger than X was, else a tile at a time.
    """

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, X, index, dtype)
        self.centre: Any = 0.0
        if kernel.shift_invariant:
            # About the mean ‖x‖² + ‖z‖² − 2⟨x,z⟩ loses the least.
            some = self._dense(slice(0, None, max(1, self.n_samples // 4096)))
            self.centre = some.mean(axis=0, dtype=np.float64).astype(dtype)
        self.rows: Any = None
        self.squares = np.empty(self.n_samples, dtype=dtype)
        keep = not sparse.issparse(X) and self.dtype.itemsize <= X.dtype.itemsize
        kept = np.empty((self.n_samples, X.shape[1]), dtype=dtype) if keep else None
        for start in range(0, self.n_samples, WIDTH):
            part = slice(start, start + WIDTH)
            rows = self._centred(part)
            self.squares[part] = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
            if kept is not None:
                kept[part] = rows
        self.rows = kept

    def _dense(self, rows: Any) -> Floats:
        X = self.of(rows)
        return X.toarray() if sparse.issparse(X) else X

    def _centred(self, rows: Any) -> Floats:
        if self.rows is not None:
            return self.rows[rows]
        X = self._dense(rows).astype(self.dtype, copy=False)
        return X - self.centre if self.kernel.shift_invariant else X

    def prepare(self, rows: Integers) -> Any:
        return self._centred(rows), self.squares[rows]

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        x, x_sq = prepared
        np.dot(x[part], self._centred(columns).T, out=out)
        self._transform(out, x_sq[part], self.squares[columns])

    def against(self, columns: Integers) -> Any:
        return self._centred(columns).T, self.squares[columns]

    def block(self, rows: Integers, columns: Any) -> Floats:
        z, z_sq = columns
        out = np.empty((rows.size, z_sq.size), dtype=self.dtype)

        def work(start: int, stop: Event) -> None:
            part = slice(start, start + HEIGHT)
            np.dot(self._centred(rows[part]), z, out=out[part])
            self._transform(out[part], self.squares[rows[part]], z_sq)

        in_parallel(work, range(0, rows.size, HEIGHT))
        return out


class SparseProducts(_Products):
    """⟨x,z⟩ from the non-zeros of x alone, for a panel of samples z at a time."""

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, X, index, dtype)
        self.csr = _csr(X, index, self.dtype)
        self.panel = PANEL * count(np.empty(0, dtype=dtype))
        n_panels = -(-self.n_samples // self.panel)
        # Zeros beyond the last sample: tiles are computed in whole panels.
        self.squares = np.zeros(n_panels * self.panel, dtype=dtype)
        square_rows(*self.csr, self.squares)

    @cached_property
    def panels(self) -> Floats:
        """All samples, feature by feature."""
        return self._laid(np.arange(self.n_samples))

    def _laid(self, samples: Integers) -> Floats:
        n_panels = -(-samples.size // self.panel)
        panels = aligned((n_panels, self.X.shape[1], self.panel), self.dtype)
        several = max(1, n_panels // 8)

        def lay(first: int, stop: Event) -> None:
            some = samples[first * self.panel : (first + several) * self.panel]
            lay_panels(*self.csr, some, panels[first : first + several])

        in_parallel(lay, range(0, n_panels, several))
        return panels

    @property
    def cost(self) -> float:
        return 2.0 * self.csr[0].size / max(self.n_samples, 1)

    def tile(self, prepared: Integers, part: slice, columns: slice, out: Floats) -> None:
        rows = prepared[part]
        first, last = columns.start // self.panel, -(-columns.stop // self.panel)
        whole = slice(columns.start, last * self.panel)
        buffer = out
        if whole.stop > columns.stop:
            buffer = np.empty((rows.size, whole.stop - whole.start), dtype=self.dtype)
        sparse_products(*self.csr, rows, self.panels[first:last], buffer)
        self._transform(buffer, self.squares[rows], self.squares[whole])
        if buffer is not out:
            out[:] = buffer[:, : out.shape[1]]

    def against(self, columns: Integers) -> Any:
        panels = self._laid(columns)
        z_sq = np.zeros(panels.shape[0] * self.panel, dtype=self.dtype)
        z_sq[: columns.size] = self.squares[columns]
        return panels, z_sq, columns.size

    def block(self, rows: Integers, columns: Any) -> Floats:
        panels, z_sq, n_columns = columns
        out = np.empty((rows.size, z_sq.size), dtype=self.dtype)

        def work(start: int, stop: Event) -> None:
            part = slice(start, start + HEIGHT)
            sparse_products(*self.csr, rows[part], panels, out[part])
            self._transform(out[part], self.squares[rows[part]], z_sq)

        in_parallel(work, range(0, rows.size, HEIGHT))
        return out[:, :n_columns]


class WideProducts(_Products):
    """⟨x,z⟩ of CSR rows with so many columns that dense panels of them all would not fit."""

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, sparse.csr_matrix(X), index, dtype)
        self.squares = np.zeros(self.n_samples, dtype=dtype)
        for start in range(0, self.n_samples, WIDTH):
            rows = self.of(slice(start, start + WIDTH)).astype(np.float64)
            self.squares[start : start + WIDTH] = rows.multiply(rows).sum(axis=1).A1

    @property
    def cost(self) -> float:
        return 4.0 * self.X.nnz / max(self.X.shape[0], 1)

    def prepare(self, rows: Integers) -> Any:
        return self.of(rows).astype(self.dtype, copy=False), self.squares[rows]

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        x, x_sq = prepared
        z = self.of(columns).astype(self.dtype, copy=False)
        out[:] = (x[part] @ z.T).toarray()
        self._transform(out, x_sq[part], self.squares[columns])

    def against(self, columns: Integers) -> Any:
        return self.of(columns).astype(self.dtype, copy=False).T, self.squares[columns]

    def block(self, rows: Integers, columns: Any) -> Floats:
        z, z_sq = columns
        out = np.asarray((self.of(rows).astype(self.dtype, copy=False) @ z).toarray())
        self._transform(out, self.squares[rows], z_sq)
        return out


def _density(X: Any) -> float:
    """The share of non-zeros, seen on some rows where X is dense."""
    if sparse.issparse(X):
        return X.nnz / max(1, X.shape[0] * X.shape[1])
    some = X[:: max(1, X.shape[0] // 256)]
    return np.count_nonzero(some) / max(1, some.size)


def _csr(X: Any, index: Integers | None, dtype: Any) -> tuple[Floats, Integers, Integers]:
    """Return rows of X as data, indices and indptr."""
    if sparse.issparse(X):
        rows = X if index is None else X[index]
        return rows.data.astype(dtype, copy=False), rows.indices, rows.indptr
    rows = np.arange(X.shape[0]) if index is None else index
    parts = np.array_split(rows, max(1, rows.size // 1024))
    counts = in_parallel(lambda part, stop: np.count_nonzero(X[part], axis=1), parts)
    indptr = np.zeros(rows.size + 1, dtype=np.int64)
    np.cumsum(np.concatenate(counts), out=indptr[1:])
    data, indices = np.empty(indptr[-1], dtype=dtype), np.empty(indptr[-1], dtype=np.int32)
    starts = np.cumsum([0, *(part.size for part in parts)])
    in_parallel(
        lambda k, stop: pick_nonzeros(
            X, parts[k], indptr[starts[k] : starts[k + 1]], data, indices
        ),
        range(len(parts)),
    )
    return data, indices, indptr


# Compiled ------------------------------------------------------------------------------------


@compiled
def pick_nonzeros(X, rows, starts, data, indices):
    """Write the non-zeros of dense rows to their places in a CSR matrix."""
    for r in range(rows.size):
        x, k = X[rows[r]], starts[r]
        for j in range(x.size):
            if x[j] != 0.0:
                data[k] = x[j]
                indices[k] = j
                k += 1


@compiled
def square_rows(data, indices, indptr, squares):
    """Do squares_i ← ‖x_i‖², summed in float64."""
    for i in range(indptr.size - 1):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[k]) * data[k]
        squares[i] = total


@compiled
def lay_panels(data, indices, indptr, samples, panels):
    """Write samples into panels of zeros, feature by feature."""
    width = panels.shape[2]
    for s in range(samples.size):
        panel, column = panels[s // width], s % width
        i = samples[s]
        for k in range(indptr[i], indptr[i + 1]):
            panel[indices[k], column] = data[k]


@compiled
def sparse_products(data, indices, indptr, rows, panels, out):
    """Do out[r] ← ⟨x_rows[r], x_s⟩ for all samples s of the panels, eight vectors at a time."""
    n, width = count(data), panels.shape[2]
    for p in range(panels.shape[0]):
        panel, start = panels[p], p * width
        for r in range(rows.size):
            i = rows[r]
            a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = fill(data, 0.0)
            for k in range(indptr[i], indptr[i + 1]):
                x, z = fill(data, data[k]), panel[np.uint32(indices[k])]
                a0 = a0 + x * load(z, 0)
                a1 = a1 + x * load(z, n)
                a2 = a2 + x * load(z, 2 * n)
                a3 = a3 + x * load(z, 3 * n)
                a4 = a4 + x * load(z, 4 * n)
                a5 = a5 + x * load(z, 5 * n)
                a6 = a6 + x * load(z, 6 * n)
                a7 = a7 + x * load(z, 7 * n)
            dot = out[r]
            store(dot, start, a0)
            store(dot, start + n, a1)
            store(dot, start + 2 * n, a2)
            store(dot, start + 3 * n, a3)
            store(dot, start + 4 * n, a4)
            store(dot, start + 5 * n, a5)
            store(dot, start + 6 * n, a6)
            store(dot, start + 7 * n, a7)


@compiled
def gaussian(dot, x_sq, z_sq, gamma):
    """Do dot ← exp(−γ‖x − z‖²) from inner products: `RBF.from_products` in one pass."""
    scale = dot.dtype.type(gamma * 1.4426950408889634)
    zero = dot.dtype.type(0.0)
    for r in range(dot.shape[0]):
        values, own = dot[r], scale * x_sq[r]
        for s in range(values.size):
            power = scale * (values[s] + values[s]) - scale * z_sq[s] - own
            values[s] = exp2(power if power < zero else zero)


def exp2(power: Any) -> Any:
    """Return 2^power for power ≤ 0."""
    return np.exp2(power)


@overload(exp2, inline="always")
def _exp2(power):
    # 2^n 2^f with |f| ≤ ½: n goes to the exponent's bits, 2^f is a polynomial. LLVM vectorises
    # this; a call of the library's exp it would not. float32 to 2e-7, float64 to 3e-16.
    if power.bitwidth == 32:

        def single(power):
            one = np.float32(1.0)
            t = max(power, np.float32(-126.0))
            n = np.floor(t + np.float32(0.5))
            f = t - n
            p = np.float32(1.5403530e-4) * f + np.float32(1.3333558e-3)
            p = p * f + np.float32(9.6181291e-3)
            p = p * f + np.float32(5.5504109e-2)
            p = p * f + np.float32(2.4022651e-1)
            p = p * f + np.float32(6.9314718e-1)
            p = p * f + one
            bits = np.int32((np.int32(n) + np.int32(127)) << np.int32(23))
            return p * bits.view(np.float32)

        return single

    def double(power):
        t = max(power, -1022.0)
        n = np.floor(t + 0.5)
        x = (t - n) * 0.6931471805599453
        p = x / 6227020800.0 + 1.0 / 479001600.0
        p = p * x + 1.0 / 39916800.0
        p = p * x + 1.0 / 3628800.0
        p = p * x + 1.0 / 362880.0
        p = p * x + 1.0 / 40320.0
        p = p * x + 1.0 / 5040.0
        p = p * x + 1.0 / 720.0
        p = p * x + 1.0 / 120.0
        p = p * x + 1.0 / 24.0
        p = p * x + 1.0 / 6.0
        p = p * x + 0.5
        p = p * x + 1.0
        p = p * x + 1.0
        bits = np.int64((np.int64(n) + np.int64(1023)) << np.int64(52))
        return p * bits.view(np.float64)

    return double
