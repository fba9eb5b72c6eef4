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

from ...arrays import Floats, Integers
from ...kernels import RBF, Kernel, Precomputed, squared_norms
from ...kernels.products import far_columns, finite
from ...runtime.row_access import compiled
from ...runtime.simd import aligned, count, fill, load, store
from ...runtime.threads import in_parallel

# Columns of a tile, and rows of X worked on at a time: a tile of float32 is half a megabyte.
WIDTH = 512
HEIGHT = 256
# The share of non-zeros up to which they are multiplied one by one; of rows so narrow that a panel
# of them fits the nearest cache, where BLAS is not at its best.
SPARSE = 0.25
SPARSE_NARROW, NARROW = 0.7, 64
# Vectors in a panel: as many running sums stay in registers.
PANEL = 8
# Products of sparse rows that are summed before they are added to the others: a sum of n numbers in
# parts has the rounding errors of CHUNK + n/CHUNK.
CHUNK = 16
# What the kernel itself makes of a value, where differences of rows are used (RBF.bounded).
EXACT = 1e-11
UNIT = 0.5 * float(np.finfo(np.float64).eps)
# The relative error of float32 kernel values that is of no concern, and the share of rows that may
# be computed in float64 where it is larger.
FINE, FAR = 1e-5, 1.0 / 64.0
# The share of the mean ‖x‖² that the square of the mean has where the mean matters.
OFF_CENTRE = 0.9
# How many times as far as the median a far row is from the centre.
OUTLYING = 8.0
# The relative error of float64 kernel values from which on all come from differences of rows.
COARSE = 1e-7


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

    @property
    def unit(self) -> float:
        """The unit roundoff."""
        return 0.5 * float(np.finfo(self.dtype).eps)

    @property
    def relative(self) -> Floats | None:
        """ρ with Σ_j \\|v_j ΔK_ij\\| ≤ ρ_i Σ_j `weights`_j K_ij, where K ≥ 0; else None."""
        return None

    def weights(self, columns: Integers, v: Floats) -> Floats:
        """Return the weights that go with `relative`."""
        return np.abs(v)

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors Σ_j \\|v_j ΔK_ij\\| for the rows i."""
        n = self.n_samples if isinstance(rows, slice) else rows.size
        # What the caller computed is not wrong; of other formulas nothing is known.
        return np.full(n, np.inf if self.kernel.elementwise else 0.0)


def values_of(kernel: Kernel, X: Any, index: Integers | None, dtype: Any, budget: float) -> Values:
    """Return the way to kernel values that suits the kernel, the data and the memory."""
    if isinstance(kernel, Precomputed):
        return Given(kernel, X, index, dtype)
    if not kernel.elementwise or _blurred(kernel, X):
        return Opaque(kernel, X, index, dtype)
    values = _products_of(kernel, X, index, dtype, budget)
    return Mended.where_needed(values) if type(kernel) is RBF else values


def _products_of(
    kernel: Kernel, X: Any, index: Integers | None, dtype: Any, budget: float
) -> _Products:
    if kernel.shift_invariant and not sparse.issparse(X) and _off_centre(X):
        return DenseProducts(kernel, X, index, dtype)
    if _density(X) > (SPARSE_NARROW if X.shape[1] <= NARROW else SPARSE):
        return DenseProducts(kernel, X, index, dtype)
    if X.shape[0] * X.shape[1] * np.dtype(dtype).itemsize <= budget:
        return SparseProducts(kernel, X, index, dtype)
    return WideProducts(kernel, X, index, dtype)


def _blurred(kernel: Kernel, X: Any) -> bool:
    """Whether the kernel, a composed one, is better computed part by part."""
    if not hasattr(kernel, "parts"):
        return False
    farthest = np.array([squared_norms(X).max(initial=0.0)])
    return kernel.blurred(farthest, farthest, X.shape[1], UNIT)


def _off_centre(X: Any) -> bool:
    """Whether rows are much farther from 0 than from their mean, as seen on some of them."""
    some = X[:: max(1, X.shape[0] // 4096)]
    centre = far_columns(some)
    power = float(np.einsum("ij,ij->", some, some, dtype=np.float64)) / some.shape[0]
    return float(centre @ centre) > OFF_CENTRE * power


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
        x, z = (self.of(some).astype(self.dtype, copy=False) for some in (rows, columns))
        return np.asarray(self.kernel(x, z), dtype=self.dtype)


class _Products(Values):
    """A formula of ⟨x,z⟩, ‖x‖² and ‖z‖²; the ways to ⟨x,z⟩ differ.

    ``squares`` are ‖x‖², and ``terms`` the roundings of an inner product at most.
    """

    squares: Floats
    terms: int

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        squares, weights = self.squares[: self.n_samples], np.abs(v)
        own = squares[rows].astype(np.float64)
        # Sums of float64 numbers, whatever K is.
        size = self.kernel._largest(own, squares[columns]) * float(weights.sum())
        sums = (columns.size + 2) * UNIT * size
        if self.relative is not None:
            return self.relative[rows] * float(self.weights(columns, v).sum()) + sums
        others = squares[columns].astype(np.float64)
        return self.kernel.rounding(own, others, weights, self.terms, self.unit) + sums

    @cached_property
    def typical(self) -> float:
        """A typical ‖x‖², which outliers do not move."""
        squares = self.squares[: self.n_samples]
        return float(np.median(squares)) or float(np.mean(squares, dtype=np.float64))

    @cached_property
    def relative(self) -> Floats | None:
        return self.relative_within(np.inf)

    def relative_within(self, radius: float) -> Floats | None:
        """Return ρ with \\|ΔK_ij\\| ≤ ρ_i (1 + ‖x_j‖²/q) K_ij for all ‖x_j‖² ≤ ``radius``.

        The error of γ‖x − z‖² is at most some units times 2γ(‖x‖² + ‖z‖²), and that sum at most
        max(‖x‖², q)(1 + ‖z‖²/q), q a typical ‖x‖².
        """
        if type(self.kernel) is not RBF:
            return None
        squares = self.squares[: self.n_samples].astype(np.float64)
        farthest = float(squares.max(initial=0.0, where=squares <= radius))
        # The squares are sums of float64 numbers: of the error of a distance half is left, that of
        # the inner product, and 7 roundings: of x, z, their squares, γ and three sums.
        terms = 0.5 * self.terms + 7.5 if self.dtype == np.float32 else self.terms + 8.0
        errors = 2.0 * self.kernel.gamma * terms * self.unit
        most = np.minimum(errors * (squares + farthest), 700.0)
        growth = np.expm1(most) / np.maximum(most, np.finfo(float).tiny)
        return errors * growth * np.maximum(squares, self.typical) + 6.0 * self.unit

    def weights(self, columns: Integers, v: Floats) -> Floats:
        """Return \\|v_j\\|(1 + ‖x_j‖²/q), by which `relative` multiplies K."""
        squares = self.squares[columns].astype(np.float64)
        return np.abs(v) * (1.0 + squares / max(self.typical, np.finfo(float).tiny))

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
            self.centre = _middle(some)
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
        self.rows, self.terms = kept, X.shape[1]

    def _dense(self, rows: Any) -> Floats:
        X = self.of(rows)
        return X.toarray() if sparse.issparse(X) else X

    def _centred(self, rows: Any) -> Floats:
        if self.rows is not None:
            return self.rows[rows]
        X = self._dense(rows)
        if self.kernel.shift_invariant:  # before digits are lost
            X = X - self.centre.astype(np.result_type(X.dtype, self.dtype), copy=False)
        return X.astype(self.dtype, copy=False)

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
        longest = int(np.diff(self.csr[2]).max(initial=0))
        self.terms = min(longest, CHUNK + -(-longest // CHUNK))

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
        self.terms = int(np.diff(self.X.indptr).max(initial=0))

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


class Mended(Values):
    """Gaussian kernel values, those of a few far rows by the kernel itself in float64.

    ‖x‖² + ‖z‖² − 2⟨x,z⟩ of rows far from all others, an outlier's or a cluster of them, has lost
    the digits that count: their values are replaced.
    """

    def __init__(self, values: _Products, far: Integers) -> None:
        super().__init__(values.kernel, values.X, values.index, values.dtype)
        self.values, self.far = values, far
        self.is_far = np.zeros(self.n_samples, dtype=bool)
        self.is_far[far] = True
        self.squares = values.squares

    @classmethod
    def where_needed(cls, values: _Products) -> Values:
        """Return values, mended where that is needed and few rows need it."""
        relative, squares = values.relative, values.squares[: values.n_samples]
        assert relative is not None
        fine = FINE * values.unit / (0.5 * float(np.finfo(np.float32).eps))
        if float(relative.max(initial=0.0)) <= fine:
            return values
        far = np.flatnonzero(squares > OUTLYING**2 * float(np.median(squares)))
        if 0 < far.size <= FAR * values.n_samples:
            return cls(values, far)
        if values.dtype == np.float64 and float(relative.max()) > COARSE:
            return Opaque(values.kernel, values.X, values.index, values.dtype)
        return values

    @property
    def cost(self) -> float:
        return self.values.cost

    @cached_property
    def relative(self) -> Floats | None:
        near = float(self.squares[: self.n_samples][~self.is_far].max(initial=0.0))
        relative = self.values.relative_within(near)
        assert relative is not None
        relative[self.far] = 0.0
        return relative + 16.0 * self.unit + EXACT

    def weights(self, columns: Integers, v: Floats) -> Floats:
        return np.where(self.is_far[columns], np.abs(v), self.values.weights(columns, v))

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        assert self.relative is not None
        weight = float(self.weights(columns, v).sum())
        return (self.relative[rows] + (columns.size + 2) * UNIT) * weight

    def prepare(self, rows: Integers) -> Any:
        return self.values.prepare(rows), rows

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        inner, rows = prepared
        self.values.tile(inner, part, columns, out)
        self._mend(out, rows[part], np.arange(columns.start, columns.stop))

    def against(self, columns: Integers) -> Any:
        return self.values.against(columns), columns

    def block(self, rows: Integers, columns: Any) -> Floats:
        inner, chosen = columns
        out = self.values.block(rows, inner)
        self._mend(out, rows, chosen)
        return out

    def _mend(self, out: Floats, rows: Integers, columns: Integers) -> None:
        """Replace the values of far rows and far columns."""
        for places, turned in ((np.flatnonzero(self.is_far[rows]), False),
                               (np.flatnonzero(self.is_far[columns]), True)):  # fmt: skip
            if not places.size:
                continue
            far, others = (columns[places], rows) if turned else (rows[places], columns)
            x, z = (self.of(some).astype(np.float64) for some in (far, others))
            values = self.kernel(x, z)
            if turned:
                out[:, places] = values.T
            else:
                out[places] = values


def _middle(rows: Floats) -> Floats:
    """Return the median of the means of some groups of rows: a mean that outliers do not move."""
    groups = np.array_split(rows, min(64, max(1, len(rows))))
    means = np.array([group.mean(axis=0, dtype=np.float64) for group in groups])
    return np.median(means, axis=0)


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
    zero = fill(data, 0.0)
    for p in range(panels.shape[0]):
        panel, start = panels[p], p * width
        for r in range(rows.size):
            i = rows[r]
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
            k, last = indptr[i], indptr[i + 1]
            while k < last:
                a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = zero
                end = min(k + CHUNK, last)
                while k < end:
                    x, z = fill(data, data[k]), panel[np.uint32(indices[k])]
                    a0 = a0 + x * load(z, 0)
                    a1 = a1 + x * load(z, n)
                    a2 = a2 + x * load(z, 2 * n)
                    a3 = a3 + x * load(z, 3 * n)
                    a4 = a4 + x * load(z, 4 * n)
                    a5 = a5 + x * load(z, 5 * n)
                    a6 = a6 + x * load(z, 6 * n)
                    a7 = a7 + x * load(z, 7 * n)
                    k += 1
                s0, s1, s2, s3 = s0 + a0, s1 + a1, s2 + a2, s3 + a3
                s4, s5, s6, s7 = s4 + a4, s5 + a5, s6 + a6, s7 + a7
            dot = out[r]
            store(dot, start, s0)
            store(dot, start + n, s1)
            store(dot, start + 2 * n, s2)
            store(dot, start + 3 * n, s3)
            store(dot, start + 4 * n, s4)
            store(dot, start + 5 * n, s5)
            store(dot, start + 6 * n, s6)
            store(dot, start + 7 * n, s7)


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
