"""The Gram matrix on the CPU: computed in tiles on all cores, rows kept where memory allows."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ...arrays import Floats, Integers
from ...kernels import Kernel, Precomputed
from ...kernels.registry import KERNELS
from ...runtime.kernel_cache import digest_of, kernel_cache
from ...runtime.memory import bytes_to_keep
from ...runtime.row_access import readable
from ...runtime.simd import square
from ...runtime.threads import in_parallel
from .dual_state import CpuDualState
from .kernel_values import fits_dense, is_few, values_of
from .products import Products
from .row_cache import STRIP_COLUMNS, RowCache, Slots, keep_rows, strip_of
from .row_sums import RowSums
from .tiles import (
    BLOCK_ROWS,
    add_columns,
    add_strips,
    add_tiles,
    fill_square,
    multiply_rows,
    n_parts,
)
from .values import TILE_COLUMNS, TILE_ROWS, UNIT, Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...problems import DualProblem
    from ..base import Claim
    from ..base import Gram as BaseGram
    from .store import Store


@dataclass(frozen=True)
class Tuning:
    """What is kept of K, and what is computed anew."""

    # Values computed at a time: 16 MiB in float32.
    values_per_step: int = 1 << 22
    # Values of so few multiplications are computed again as fast as the system allocates memory to
    # keep them in: of those no more than this many bytes are kept.
    trifling_multiplications: float = 40.0
    trifling_bytes: int = 64 << 20
    # Values of fewer multiplications may be computed anew for rows of another length.
    cheap_multiplications: float = 100.0


TUNING = Tuning()
# Columns of K that a part adds up, and rows of a product that are fetched at a time.
SUM_COLUMNS = 2048
PRODUCT_ROWS = 8192


class Gram:
    """K = (K(x_i, x_j)) of some rows of X.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features), or the square Gram matrix itself for
        a precomputed kernel.
    index : ndarray of int, optional
        The rows that take part, all by default.
    budget : int, optional
        Bytes that kept values may take, a quarter of the free memory by default; what does not
        fit is computed each time it is needed.
    dtype : dtype, optional
        In which values are computed, that of X by default. Sums are made in float64.
    store : Store, optional
        Where values of all rows of X are kept, for this Gram matrix and others.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> gram = Gram(Linear(), np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> gram.dot(np.array([1]), np.array([2.0]))
    array([ 2., 10.])
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        index: Integers | None = None,
        budget: float | None = None,
        dtype: Any = None,
        store: Store | None = None,
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.index = np.arange(X.shape[0]) if index is None else index
        self.dtype = np.dtype(X.dtype if dtype is None else dtype)
        self.budget = bytes_to_keep() if budget is None else budget
        self._subset, self._store = index, store
        self._values: Values | None = None
        self._making = Lock()  # tasks that are solved at the same time share one source
        self._kept: RowCache | None = None
        self._diagonal: Floats | None = None
        self._spare: list[Floats] = []
        # Of the type that weights have: compiled code is the same with and without them.
        self._no_weights: Floats = np.empty(0, dtype=self.dtype)
        # A Gram matrix that the caller computed is there already.
        given = isinstance(kernel, Precomputed) and index is None
        self._whole: Floats | None = X if given and X.dtype == self.dtype else None
        # Whether vectors may be read beyond the end of a row of it, as of `simd.square`.
        self._padded = False

    @property
    def n_samples(self) -> int:
        """Rows of K."""
        return self.index.size

    @property
    def values(self) -> Values:
        """Where values come from."""
        with self._making:
            if self._values is None and self._store is not None:
                self._values = self._store.view(self.index)
            elif self._values is None:
                how = self.dtype, self._share
                self._values = values_of(self.kernel, self.X, self._subset, *how)
        return self._values

    @property
    def _share(self) -> float:
        """Bytes that rows may take which are made ready for products."""
        return self.budget / 4

    @property
    def cheap(self) -> bool:
        """Whether values may as well be computed anew for rows of another length."""
        return bool(self.values.cost < TUNING.cheap_multiplications)

    @property
    def is_whole(self) -> bool:
        """Whether all of K is there."""
        return self._whole is not None

    @property
    def fits(self) -> bool:
        """Whether the whole of K fits the budget."""
        return self._whole is not None or self.n_samples**2 * self.dtype.itemsize <= self.budget

    def diagonal(self) -> Floats:
        """Return K(x_i, x_i) in float64."""
        if self._diagonal is None:
            store = self._store
            values = self.kernel.diagonal(self.X) if store is None else store.diagonal
            self._diagonal = values[self.index]
        return self._diagonal

    def restrict(self, rows: Integers) -> Gram:
        """Return the Gram matrix of some of these rows, from the same store where there is one."""
        return Gram(self.kernel, self.X, self.index[rows], self.budget, self.dtype, self._store)

    def whole(self) -> Floats:
        """Return all of K, and keep it."""
        if self._whole is None:
            if self._may_be_known:
                K = readable(kernel_cache.matrix(self._content(), self._computed))
            else:
                K = self._computed()
            self._whole, self._padded = K, True
        return self._whole

    def _computed(self) -> Floats:
        """Return all of K in memory of its own."""
        K = square(self.n_samples, self.dtype)
        if self._is_quick:
            K[:] = self.kernel(self.X[self.index].astype(np.float64, copy=False))
        else:
            if self._store is not None:
                self._store.fill(self.index)
            self._fill(K)
        np.fill_diagonal(K, self.diagonal())
        return K

    @property
    def _may_be_known(self) -> bool:
        """Whether the cache of the process has room for K, and the kernel is one of ours."""
        n_bytes = self.n_samples**2 * self.dtype.itemsize
        if n_bytes > kernel_cache.max_bytes or self._store is not None:
            return False
        return self.kernel.elementwise and type(self.kernel) in KERNELS.values()

    def _content(self) -> tuple[Any, ...]:
        """Return what the values of K depend on, to the last bit."""
        rows = None if self._subset is None else digest_of(self._subset)
        # In which order products are added depends on these, too.
        way = (
            getattr(self.X, "strides", None),
            self._is_quick,
            fits_dense(self.X, self.dtype, self._share),
        )
        return digest_of(self.X), rows, self.kernel, self.dtype, way

    @property
    def _is_quick(self) -> bool:
        """Whether the kernel has computed K of few rows before these are made ready for tiles."""
        is_new = self._values is None and self._store is None
        return is_new and self.kernel.elementwise and self.dtype == np.float64 and is_few(self.X)

    def _fill(self, K: Floats) -> None:
        """Compute the tiles of K on or above the diagonal, and mirror them."""
        values, edges = self.values, range(0, self.n_samples, TILE_ROWS)
        corners = [(i, j) for i in edges for j in edges if i <= j]
        if is_compiled(values):
            operands = values.left(), values.right(), values.formula, values.gamma
            fill_square(len(corners), *operands, np.array(corners), K, *values.scratch.tiles())
            return

        def fill(corner: tuple[int, int], stop: Event) -> None:
            if stop.is_set():
                return
            rows, columns = (slice(k, min(k + TILE_ROWS, self.n_samples)) for k in corner)
            tile = np.empty((rows.stop - rows.start, columns.stop - columns.start), self.dtype)
            prepared = values.prepare(np.arange(rows.start, rows.stop))
            values.tile(prepared, slice(None), columns, tile)
            if rows == columns and self.kernel.elementwise:  # as symmetric as its formula
                tile = 0.5 * (tile + tile.T)
            K[rows, columns] = tile
            K[columns, rows] = tile.T

        in_parallel(fill, corners, alone=not self.kernel.elementwise)

    def padded(self) -> Floats | None:
        """Return all of K if it is stored so that vectors may be read beyond the end of a row."""
        return self._whole if self._padded else None

    def dual_state(
        self,
        problem: DualProblem,
        alpha: Floats,
        exact: BaseGram | None = None,
        claim: Claim | None = None,
    ) -> CpuDualState:
        """Return the state of a problem at a feasible α."""
        return _dual_state(problem, self, alpha, exact, claim)

    def block(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """Return K[rows, columns], K[rows, rows] by default."""
        own = columns is None
        columns = rows if columns is None else columns
        if self._whole is not None:
            first = rows[0] if rows.size else 0
            if own and (rows == np.arange(first, first + rows.size)).all():
                return self._whole[first : first + rows.size, first : first + rows.size].copy()
            return self._whole[np.ix_(rows, columns)]
        K = self.values.block(rows, self.values.against(columns))
        if own and self.kernel.elementwise:
            np.fill_diagonal(K, self.diagonal()[rows])
        return K

    def dot(
        self,
        rows: Integers,
        v: Floats,
        keep: NDArray[np.bool_] | None = None,
        error: Floats | None = None,
    ) -> Floats:
        """Return K[:, rows] v in float64.

        Where the boolean array ``keep`` is true the row is kept for a next time, if memory allows.
        A bound of the rounding errors of the answer is added to ``error``, where that is given.
        """
        weighs = error is not None and self.dtype == np.float32
        relative = self.values.relative if weighs else None
        # Errors of float32 are relative to Σ w_j K_ij, which is wanted beside Σ v_j K_ij.
        weights = None if relative is None else self.values.weights(rows, v).astype(self.dtype)
        sums = RowSums(self.n_samples, self.dtype, weights is not None)
        if self._whole is not None:
            self._add_kept(self._whole, rows, v, weights, sums)
        elif self._store is not None and self._spans_store(self.n_samples):
            sums = self._stored_sums(self._store, self.index[rows], v, weights).of(self.index)
        else:
            slots = self._slots(rows, keep)
            known = slots.known
            if known.any():
                self._add_cached(slots, v, weights, sums)
            if not known.all():
                w = None if weights is None else weights[~known]
                self._add_new(rows[~known], v[~known], w, slots, slots.of[~known], sums)
        if error is not None and relative is not None:
            error += _weighed_bound(relative, self.values.unit, rows.size, sums.sizes)
        elif error is not None:
            error += self.bound(slice(None), rows, v)
        return sums.total

    def bound(self, rows: Integers | slice, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v, not knowing K."""
        return self.values.bound(rows, columns, v)

    def product(
        self, rows: Integers, columns: Integers, v: Floats, error: Floats | None = None
    ) -> Floats:
        """Return K[rows, columns] v in float64.

        A bound of the rounding errors of the answer is added to ``error``, where that is given.
        """
        if error is not None and self._is_weighed:
            return self._weighed_product(rows, columns, v, error)
        if error is not None:
            error += self.bound(rows, columns, v)
        if self._store is not None and self._spans_store(rows.size):
            sums = self._stored_sums(self._store, self.index[columns], v, None)
            return sums.total[self.index[rows]]
        total = np.empty(rows.size)
        values, ready = self.values, self.values.against(columns)
        if isinstance(values, Products) and values.formula is not None:
            for start in range(0, rows.size, PRODUCT_ROWS):
                part = slice(start, start + PRODUCT_ROWS)
                operands = values.left(rows[part]), ready[0], values.formula, values.gamma
                some = total[part]
                height = TILE_ROWS if some.size >= PRODUCT_ROWS else BLOCK_ROWS
                tiles = values.scratch.tiles()
                multiply_rows(n_parts(some.size, height), *operands, height, v, some, *tiles)
            return total
        step = max(16, TUNING.values_per_step // max(1, columns.size))
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            total[part] = values.block(rows[part], ready).astype(np.float64, copy=False) @ v
        return total

    @property
    def _is_weighed(self) -> bool:
        """Whether errors of products are bounded by sums of kernel values, in compiled code."""
        values = self.values
        is_known = isinstance(values, Products) and values.formula is not None
        return is_known and self.dtype == np.float32 and values.relative is not None

    def _weighed_product(
        self, rows: Integers, columns: Integers, v: Floats, error: Floats
    ) -> Floats:
        """Return K[rows, columns] v; K is symmetric, and rows take the place of columns."""
        values = self.values
        assert isinstance(values, Products)
        assert values.relative is not None
        weights = values.weights(columns, v).astype(self.dtype)
        sums, nowhere = RowSums(rows.size, self.dtype, weighs=True), np.full(columns.size, -1)
        operands = values.left(columns), values.right(rows), values.formula, values.gamma
        own, cache = np.zeros(columns.size), np.empty(0, dtype=self.dtype)
        sinks = nowhere, own, v, weights, nowhere, cache, 0, sums.total, sums.sizes
        add_tiles(n_parts(rows.size, TILE_COLUMNS), *operands, *sinks, *values.scratch.tiles())
        error += _weighed_bound(values.relative[rows], values.unit, columns.size, sums.sizes)
        return sums.total

    def _spans_store(self, n_rows: int) -> bool:
        """Whether adding whole rows of the store takes less than picking values from them."""
        return self._store is not None and 2 * n_rows >= self._store.values.n_samples

    def _stored_sums(
        self, store: Store, rows: Integers, v: Floats, weights: Floats | None
    ) -> RowSums:
        """Return sums of whole rows of the store."""
        store.fill(rows)
        sums = RowSums(store.values.n_samples, self.dtype, weights is not None)
        self._add_kept(store.K, rows, v, weights, sums)
        return sums

    def _slots(self, rows: Integers, keep: NDArray[np.bool_] | None) -> Slots:
        if self._kept is None:
            trifling = self.values.cost < TUNING.trifling_multiplications
            budget = min(self.budget, TUNING.trifling_bytes) if trifling else self.budget
            self._kept = RowCache(self.n_samples, self.dtype, budget)
        return self._kept.slots(rows, keep)

    def _add_kept(
        self, K: Floats, rows: Integers, v: Floats, weights: Floats | None, sums: RowSums
    ) -> None:
        """Add Σ_k v_k K[rows_k]."""
        w = self._no_weights if weights is None else weights
        strips = n_parts(sums.total.size, SUM_COLUMNS)
        add_columns(strips, K, rows, v, w, sums.total, sums.sizes, SUM_COLUMNS)

    def _add_cached(self, slots: Slots, v: Floats, weights: Floats | None, sums: RowSums) -> None:
        """Add Σ_k v_k times the known row k."""
        strips, cache = n_parts(self.n_samples, STRIP_COLUMNS), (slots.cache, slots.capacity)
        # In the order in which they lie.
        known = np.flatnonzero(slots.known)
        known = known[np.argsort(slots.of[known])]
        w = self._no_weights if weights is None else weights[known]
        add_strips(strips, *cache, slots.of[known], v[known], w, sums.total, sums.sizes)

    def _add_new(
        self,
        rows: Integers,
        v: Floats,
        weights: Floats | None,
        slots: Slots,
        at: Integers,
        sums: RowSums,
    ) -> None:
        """Compute rows of K tile by tile, add them up, keep those that have a slot."""
        values, cache = self.values, (slots.cache, slots.capacity)
        strips = n_parts(self.n_samples, TILE_COLUMNS)
        own = self.diagonal()[rows] if self.kernel.elementwise else None
        if own is not None and is_compiled(values):
            operands = values.left(rows), values.right(), values.formula, values.gamma
            w = self._no_weights if weights is None else weights
            sinks = rows, own, v, w, at, *cache, sums.total, sums.sizes
            add_tiles(strips, *operands, *sinks, *values.scratch.tiles())
            return
        prepared = values.prepare(rows)

        def work(strip: int, stop: Event) -> None:
            start = strip * TILE_COLUMNS
            columns = slice(start, min(start + TILE_COLUMNS, self.n_samples))
            # Memory from the system comes page by page, at the price of the values in it.
            most = TILE_ROWS * TILE_COLUMNS
            memory = self._spare.pop() if self._spare else np.empty(most, self.dtype)
            for first in range(0, rows.size, TILE_ROWS):
                if stop.is_set():
                    return
                part = slice(first, min(first + TILE_ROWS, rows.size))
                size = (part.stop - first) * (columns.stop - start)
                tile = memory[:size].reshape(-1, columns.stop - start)
                values.tile(prepared, part, columns, tile)
                if own is not None:  # exactly the diagonal, not what rounding makes of it
                    here = np.flatnonzero((rows[part] >= start) & (rows[part] < columns.stop))
                    tile[here, rows[part][here] - start] = own[part][here]
                w = None if weights is None else weights[part]
                sums.add(tile, np.arange(tile.shape[0]), v[part], w, 0, columns)
                kept = strip_of(*cache, self.n_samples, start // STRIP_COLUMNS)
                keep_rows(tile, at[part], start % STRIP_COLUMNS, kept)
            self._spare.append(memory)

        in_parallel(work, range(strips), alone=not self.kernel.elementwise)


def _weighed_bound(relative: Floats, unit: float, n_terms: int, sizes: Floats) -> Floats:
    """Return a bound of the errors of Σ v_j K_ij from Σ w_j K_ij, a sum of rounded numbers."""
    bound: Floats = (1.0 + (n_terms + 8) * unit) * (relative + (n_terms + 2) * UNIT) * sizes
    return bound


def is_compiled(values: Values) -> TypeGuard[Products]:
    """Whether compiled code computes tiles of all columns."""
    return isinstance(values, Products) and values.has_columns and values.formula is not None


class GramView:
    """Some rows of a Gram matrix: what that one has stored is used, and nothing else is kept."""

    def __init__(self, gram: Gram | GramView, index: Integers) -> None:
        self.gram, self.index = gram, index
        self.dtype: np.dtype[Any] = gram.dtype

    @property
    def cheap(self) -> bool:
        """Whether values may as well be computed anew for rows of another length."""
        return False

    @property
    def budget(self) -> float:
        """Bytes that kept values may take."""
        return self.gram.budget

    @property
    def n_samples(self) -> int:
        """Rows of K."""
        return self.index.size

    @property
    def fits(self) -> bool:
        """Whether the whole of K fits the budget."""
        return self.n_samples**2 * self.dtype.itemsize <= self.budget

    def diagonal(self) -> Floats:
        """Return K(x_i, x_i)."""
        return self.gram.diagonal()[self.index]

    def whole(self) -> Floats:
        """Return all of K."""
        return self.gram.block(self.index)

    def padded(self) -> Floats | None:
        """Return None: nothing is stored."""
        return None

    def block(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """Return K[rows, columns], K[rows, rows] by default."""
        return self.gram.block(self.index[rows], None if columns is None else self.index[columns])

    def product(
        self, rows: Integers, columns: Integers, v: Floats, error: Floats | None = None
    ) -> Floats:
        """Return K[rows, columns] v, and add a bound of its rounding errors to ``error``."""
        return self.gram.product(self.index[rows], self.index[columns], v, error)

    def dot(
        self,
        rows: Integers,
        v: Floats,
        keep: NDArray[np.bool_] | None = None,
        error: Floats | None = None,
    ) -> Floats:
        """Return K[:, rows] v, and add a bound of its rounding errors to ``error``."""
        if error is not None:
            error += self.bound(slice(None), rows, v)
        return self.gram.product(self.index, self.index[rows], v)

    def bound(self, rows: Integers | slice, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v."""
        return self.gram.bound(self.index[rows], self.index[columns], v)

    def restrict(self, rows: Integers) -> Gram | GramView:
        """Return some of these rows."""
        return GramView(self.gram, self.index[rows])

    def dual_state(
        self,
        problem: DualProblem,
        alpha: Floats,
        exact: BaseGram | None = None,
        claim: Claim | None = None,
    ) -> CpuDualState:
        """Return the state of a problem at a feasible α."""
        return _dual_state(problem, self, alpha, exact, claim)


def _dual_state(
    problem: DualProblem,
    gram: Gram | GramView,
    alpha: Floats,
    exact: BaseGram | None,
    claim: Claim | None,
) -> CpuDualState:
    assert exact is None or isinstance(exact, Gram | GramView)
    return CpuDualState(problem, gram, alpha, exact, claim)
