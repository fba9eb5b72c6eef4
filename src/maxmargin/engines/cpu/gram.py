"""The Gram matrix on the CPU: computed in tiles on all cores, rows kept where memory allows."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Floats, Integers
from ...kernels import Kernel, Precomputed
from ...runtime.memory import free_memory
from ...runtime.row_access import compiled
from ...runtime.simd import square
from ...runtime.threads import in_parallel
from .tiles import HEIGHT, WIDTH, values_of

if TYPE_CHECKING:
    from ...problems import DualProblem
    from ..base import Claim
    from .dual_state import CpuDualState

# The share of the free memory that kept values may take.
SHARE = 0.25
# Values computed at a time: 16 MiB in float32.
BLOCK = 1 << 22
# Values of so few multiplications are computed again as fast as the system hands out the memory to
# keep them in: of those no more than this many bytes are kept.
TRIFLING = 40.0
MODEST = 512 << 20
# Values of fewer multiplications may be computed anew for rows of another length.
CHEAP = 100.0
# Requests after which a kept row that none of them wanted may go.
STALE = 32
# The unit roundoff of the sums.
UNIT = 0.5 * float(np.finfo(np.float64).eps)


class Gram:
    """K = (K(x_i, x_j)) of some rows of X: the narrow waist between solvers and engines.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features), or the square Gram matrix itself for
        a precomputed kernel.
    index : ndarray of int, optional
        The rows that take part, all by default.
    budget : int, optional
        Bytes that kept values may take, a quarter of the free memory by default; what does not
        fit is computed each time it is asked for.
    dtype : dtype, optional
        In which values are computed, that of X by default. Sums are made in float64.

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
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.index = np.arange(X.shape[0]) if index is None else index
        self.dtype = np.dtype(X.dtype if dtype is None else dtype)
        self.budget = free_memory() * SHARE if budget is None else budget
        self._subset = index
        self._values: Any = None
        self._kept: Any = None
        self._diagonal: Any = None
        self._spare: list[Floats] = []
        # A Gram matrix that the caller computed is there already.
        given = isinstance(kernel, Precomputed) and index is None
        self._whole: Any = X if given and X.dtype == self.dtype else None
        # Whether vectors may be read beyond the end of a row of it, as of `lanes.square`.
        self._padded = False

    @property
    def n_samples(self) -> int:
        """Rows of K."""
        return self.index.size

    @property
    def values(self) -> Any:
        """Where values are computed."""
        if self._values is None:
            self._values = values_of(self.kernel, self.X, self._subset, self.dtype, self.budget / 4)
        return self._values

    @property
    def cheap(self) -> bool:
        """Whether values may as well be computed anew for rows of another length."""
        return bool(self.values.cost < CHEAP)

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
            self._diagonal = self.kernel.diagonal(self.X)[self.index]
        return self._diagonal

    def restrict(self, rows: Integers) -> Gram:
        """Return the Gram matrix of some of these rows."""
        return Gram(self.kernel, self.X, self.index[rows], self.budget, self.dtype)

    def whole(self) -> Floats:
        """Return all of K, and keep it."""
        if self._whole is None:
            K = square(self.n_samples, self.dtype)
            edges = range(0, self.n_samples, WIDTH)
            corners = [(i, j) for i in edges for j in edges if i <= j]

            def fill(corner: tuple[int, int], stop: Event) -> None:
                """Compute one tile on or above the diagonal, and mirror it."""
                if stop.is_set():
                    return
                rows, columns = (slice(k, min(k + WIDTH, self.n_samples)) for k in corner)
                tile = np.empty((rows.stop - rows.start, columns.stop - columns.start), self.dtype)
                prepared = self.values.prepare(np.arange(rows.start, rows.stop))
                self.values.tile(prepared, slice(None), columns, tile)
                K[rows, columns] = tile
                K[columns, rows] = tile.T

            in_parallel(fill, corners, alone=not self.kernel.elementwise)
            np.fill_diagonal(K, self.diagonal())
            self._whole, self._padded = K, True
        return self._whole

    def padded(self) -> Floats | None:
        """Return all of K if it is stored so that vectors may be read beyond the end of a row."""
        return self._whole if self._padded else None

    def dual_state(
        self,
        problem: DualProblem,
        alpha: Floats,
        exact: Gram | Selected | None = None,
        claim: Claim | None = None,
    ) -> CpuDualState:
        """Return the state of a problem at a feasible α."""
        from .dual_state import CpuDualState

        return CpuDualState(problem, self, alpha, exact, claim)

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
        self, rows: Integers, v: Floats, keep: Any = None, error: Floats | None = None
    ) -> Floats:
        """Return K[:, rows] v in float64.

        Where the boolean array ``keep`` is true the row is kept for a next time, if memory allows.
        A bound of the rounding errors of the answer is added to ``error``, where that is given.
        """
        weighs = error is not None and self.dtype == np.float32
        relative = self.values.relative if weighs else None
        # Errors of float32 are relative to Σ w_j K_ij, which is wanted beside Σ v_j K_ij.
        weights = None if relative is None else self.values.weights(rows, v).astype(self.dtype)
        sums = _Sums(self.n_samples, None if weights is None else self.dtype)
        if self._whole is not None:
            self._add_kept(self._whole, rows, v, weights, sums)
        else:
            slots = self._slots(rows, keep)
            known = slots.known
            if known.any():
                w = None if weights is None else weights[known]
                self._add_kept(slots.cache, slots.of[known], v[known], w, sums)
            if not known.all():
                w = None if weights is None else weights[~known]
                self._add_new(rows[~known], v[~known], w, slots, slots.of[~known], sums)
        if error is not None and relative is not None:
            # The sum of weights is itself a sum of rounded numbers.
            inflated = 1.0 + (rows.size + 8) * self.values.unit
            error += inflated * (relative + (rows.size + 2) * UNIT) * sums.sizes
        elif error is not None:
            error += self.bound(slice(None), rows, v)
        return sums.total

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v, not knowing K."""
        bound: Floats = self.values.bound(rows, columns, v)
        return bound

    def product(self, rows: Integers, columns: Integers, v: Floats) -> Floats:
        """Return K[rows, columns] v in float64."""
        total = np.empty(rows.size)
        ready = self.values.against(columns)
        step = max(16, BLOCK // max(1, columns.size))
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            total[part] = self.values.block(rows[part], ready).astype(np.float64, copy=False) @ v
        return total

    def _slots(self, rows: Integers, keep: Any) -> _Slots:
        if self._kept is None:
            trifling = self.values.cost < TRIFLING
            budget = min(self.budget, MODEST) if trifling else self.budget
            self._kept = _Kept(self.n_samples, self.dtype, budget)
        return self._kept.slots(rows, keep)

    def _add_kept(
        self, cache: Floats, at: Integers, v: Floats, weights: Floats | None, sums: _Sums
    ) -> None:
        """Add Σ_k v_k cache[at_k]."""

        def work(start: int, stop: Event) -> None:
            sums.add(cache, at, v, weights, start, slice(start, start + 8192))

        in_parallel(work, range(0, self.n_samples, 8192))

    def _add_new(
        self,
        rows: Integers,
        v: Floats,
        weights: Floats | None,
        slots: _Slots,
        at: Integers,
        sums: _Sums,
    ) -> None:
        """Compute rows of K tile by tile, add them up, keep those that have a slot."""
        prepared = self.values.prepare(rows)
        own = self.diagonal()[rows] if self.kernel.elementwise else None

        def work(start: int, stop: Event) -> None:
            columns = slice(start, min(start + WIDTH, self.n_samples))
            # Memory from the system comes page by page, at the price of the values in it.
            memory = self._spare.pop() if self._spare else np.empty((HEIGHT, WIDTH), self.dtype)
            for first in range(0, rows.size, HEIGHT):
                if stop.is_set():
                    return
                part = slice(first, min(first + HEIGHT, rows.size))
                size = (part.stop - first) * (columns.stop - start)
                tile = memory.reshape(-1)[:size].reshape(-1, columns.stop - start)
                self.values.tile(prepared, part, columns, tile)
                if own is not None:  # exactly the diagonal, not what rounding makes of it
                    here = np.flatnonzero((rows[part] >= start) & (rows[part] < columns.stop))
                    tile[here, rows[part][here] - start] = own[part][here]
                w = None if weights is None else weights[part]
                sums.add(tile, np.arange(tile.shape[0]), v[part], w, 0, columns)
                keep_rows(tile, at[part], start, slots.cache)
            self._spare.append(memory)

        in_parallel(work, range(0, self.n_samples, WIDTH), alone=not self.kernel.elementwise)


class _Sums:
    """Σ v_j K_ij in float64, and Σ w_j K_ij in the type of K where it is wanted."""

    def __init__(self, size: int, dtype: Any) -> None:
        self.total = np.zeros(size)
        self.sizes = np.zeros(0 if dtype is None else size, dtype=dtype)

    def add(
        self, K: Floats, rows: Integers, v: Floats, weights: Floats | None, start: int, at: slice
    ) -> None:
        """Add rows of K, from column ``start`` on, to some of the sums."""
        if weights is None:
            add_rows(K, rows, v, start, self.total[at])
        else:
            add_rows_and_sizes(K, rows, v, weights, start, self.total[at], self.sizes[at])


class Selected:
    """Some rows of a Gram matrix that computes what it is asked for and keeps nothing."""

    cheap = False

    def __init__(self, gram: Gram, index: Integers) -> None:
        self.gram, self.index, self.dtype = gram, index, gram.dtype

    def diagonal(self) -> Floats:
        """Return K(x_i, x_i)."""
        return self.gram.diagonal()[self.index]

    def block(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """Return K[rows, columns], K[rows, rows] by default."""
        return self.gram.block(self.index[rows], None if columns is None else self.index[columns])

    def product(self, rows: Integers, columns: Integers, v: Floats) -> Floats:
        """Return K[rows, columns] v."""
        return self.gram.product(self.index[rows], self.index[columns], v)

    def dot(
        self, rows: Integers, v: Floats, keep: Any = None, error: Floats | None = None
    ) -> Floats:
        """Return K[:, rows] v, and add a bound of its rounding errors to ``error``."""
        if error is not None:
            error += self.bound(slice(None), rows, v)
        return self.gram.product(self.index, self.index[rows], v)

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v."""
        return self.gram.bound(self.index[rows], self.index[columns], v)

    def dual_state(
        self,
        problem: DualProblem,
        alpha: Floats,
        exact: Gram | Selected | None = None,
        claim: Claim | None = None,
    ) -> CpuDualState:
        """Return the state of a problem at a feasible α."""
        from .dual_state import CpuDualState

        return CpuDualState(problem, self, alpha, exact, claim)

    def padded(self) -> Floats | None:
        """Return None: nothing is stored."""
        return None

    def restrict(self, rows: Integers) -> Selected:
        """Return some of these rows."""
        return Selected(self.gram, self.index[rows])


class _Slots:
    """Where the rows of one request are kept: −1 for those that have no place."""

    def __init__(self, cache: Floats, of: Integers, known: Any) -> None:
        self.cache = cache
        self.of = of
        self.known = known


class _Kept:
    """Rows of K that were computed: as many as the budget holds, the least recently used go."""

    def __init__(self, n_samples: int, dtype: np.dtype[Any], budget: float) -> None:
        capacity = int(min(n_samples, budget // max(1, n_samples * dtype.itemsize)))
        # Pages of an empty array cost nothing until a row is written to them.
        self.cache = np.empty((capacity, n_samples), dtype=dtype)
        self.slot = np.full(n_samples, -1)
        self.owner = np.full(capacity, -1)
        self.used = np.zeros(capacity, dtype=np.int64)
        self.n_given = 0
        self.clock = 0

    def slots(self, rows: Integers, keep: Any) -> _Slots:
        """Return the slots of ``rows``; those with ``keep`` are given one if they have none."""
        self.clock += 1
        at = self.slot[rows]
        known = at >= 0
        self.used[at[known]] = self.clock
        if keep is not None:
            wanted = np.flatnonzero(~known & keep)
            at[wanted] = self._give(rows[wanted])
        return _Slots(self.cache, at, known)

    def _give(self, rows: Integers) -> Integers:
        """Give slots to rows: empty ones, then those unused for long; −1 where there are none.

        Rows that are asked for in turns would drive each other out before they are of use.
        """
        slots = np.full(rows.size, -1)
        fresh = np.arange(self.n_given, min(self.n_given + rows.size, self.owner.size))
        self.n_given += fresh.size
        # Two cores that meet in a new page would both make it: one of them beforehand does it once.
        self.cache[fresh, :: 4096 // self.cache.itemsize] = 0
        self.used[fresh] = self.clock
        n = min(rows.size - fresh.size, self.owner.size)
        if n > 0:
            oldest = np.argpartition(self.used, n - 1)[:n]
            fresh = np.concatenate([fresh, oldest[self.used[oldest] < self.clock - STALE]])
        owners = self.owner[fresh]
        self.slot[owners[owners >= 0]] = -1
        slots[: fresh.size] = fresh
        self.owner[fresh], self.slot[rows[: fresh.size]] = rows[: fresh.size], fresh
        self.used[fresh] = self.clock
        return slots


class Assembled(Gram):
    """The Gram matrix of two sets of rows from its blocks within and between them.

    ``source`` computed them, and knows how exact they are; ``index`` are its rows.
    """

    def __init__(
        self, first: Floats, between: Floats, second: Floats, source: Gram, index: Integers
    ) -> None:
        K = square(first.shape[0] + second.shape[0], first.dtype)
        assemble(first, between, second, K)
        super().__init__(Precomputed(), K)
        self._padded = True
        self._source = Selected(source, index)

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        return self._source.bound(rows, columns, v)


@compiled
def add_rows(K, rows, v, start, total):
    """Do total ← total + Σ_k v_k K[rows_k, start:], in strips that stay in the cache."""
    for first in range(0, total.size, 2048):
        part = total[first : first + 2048]
        low, high = start + first, start + first + part.size
        k = 0
        while k + 4 <= rows.size:  # four rows share the reading and writing of the sums
            a, b = K[rows[k]][low:high], K[rows[k + 1]][low:high]
            c, d = K[rows[k + 2]][low:high], K[rows[k + 3]][low:high]
            va, vb, vc, vd = v[k], v[k + 1], v[k + 2], v[k + 3]
            for j in range(part.size):
                part[j] += va * a[j] + vb * b[j] + vc * c[j] + vd * d[j]
            k += 4
        while k < rows.size:
            a, va = K[rows[k]][low:high], v[k]
            for j in range(part.size):
                part[j] += va * a[j]
            k += 1


@compiled
def add_rows_and_sizes(K, rows, v, weights, start, total, sizes):
    """Do total ← total + Σ_k v_k K[rows_k, start:], and the same for sizes with weights ≥ 0."""
    for first in range(0, total.size, 2048):
        part, size = total[first : first + 2048], sizes[first : first + 2048]
        low, high = start + first, start + first + part.size
        k = 0
        while k + 4 <= rows.size:
            a, b = K[rows[k]][low:high], K[rows[k + 1]][low:high]
            c, d = K[rows[k + 2]][low:high], K[rows[k + 3]][low:high]
            va, vb, vc, vd = v[k], v[k + 1], v[k + 2], v[k + 3]
            wa, wb, wc, wd = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            for j in range(part.size):
                part[j] += va * a[j] + vb * b[j] + vc * c[j] + vd * d[j]
                size[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
            k += 4
        while k < rows.size:
            a, va, wa = K[rows[k]][low:high], v[k], weights[k]
            for j in range(part.size):
                part[j] += va * a[j]
                size[j] += wa * a[j]
            k += 1


@compiled
def assemble(first, between, second, K):
    """Do K ← [first, between; betweenᵀ, second], in squares."""
    n, m = between.shape
    for i in range(n):
        K[i, :n] = first[i]
        K[i, n:] = between[i]
    for j in range(m):
        K[n + j, n:] = second[j]
    for top in range(0, n, 32):
        for left in range(0, m, 32):
            for j in range(left, min(left + 32, m)):
                for i in range(top, min(top + 32, n)):
                    K[n + j, i] = between[i, j]


@compiled
def keep_rows(tile, at, start, cache):
    """Do cache[at_k, start:] ← tile[k] for the rows k that have a slot."""
    for k in range(at.size):
        if at[k] >= 0:
            values, row = tile[k], cache[at[k]][start : start + tile.shape[1]]
            for j in range(values.size):
                row[j] = values[j]
