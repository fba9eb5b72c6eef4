"""The Gram matrix on a device: rows computed as they are needed, kept where memory allows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...kernels import RBF
from ...runtime.simd import square
from ..base import Claim
from ..base import Gram as BaseGram
from .dual_state import TorchDualState
from .kept_rows import KeptRows
from .memory import bytes_to_use, with_smaller_blocks

if TYPE_CHECKING:
    from ...problems import DualProblem
    from .kernel_rows import KernelRows

# The unit roundoff of float64, in which sums are made.
UNIT = 0.5 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Tuning:
    """What is kept of K, and how much is computed at a time."""

    # The share of the usable memory that rows of K may take.
    kept_share: float = 0.5
    # Bytes of a tile of kernel values.
    tile_bytes: float = float(1 << 28)
    # The relative error of float64 values from which on those of the host are used: they come from
    # differences of rows where ‖x‖² + ‖z‖² − 2⟨x,z⟩ cancels.
    coarse_error: float = 1e-7
    # The error α ΔK of float32 up to which descent with corrections is faster than in float64, and
    # the values of K that are far from its overflow.
    coarsest_fast_error: float = 1e-2
    largest_fast_value: float = 1e30


TUNING = Tuning()


def is_blurred(source: KernelRows) -> bool:
    """Return whether values from inner products in float64 have lost digits that count."""
    kernel = source.kernel
    if not kernel.elementwise:
        return False
    farthest, terms = source.squares.max().double().cpu().numpy()[None], source.n_terms
    if type(kernel) is RBF:
        error = kernel.relative_rounding(farthest, float(farthest[0]), terms, UNIT)
        return bool(error[0] > TUNING.coarse_error)
    return kernel.blurred(farthest, farthest, terms, UNIT)


def is_coarse(source: KernelRows, largest: float) -> bool:
    """Return whether what float32 does to K shows, α being so large at most."""
    squares = source.squares.double()
    farthest, value = torch.stack([squares.max(), source.diagonal().max()]).cpu().numpy()
    unit = 0.5 * torch.finfo(torch.float32).eps
    errors = source.kernel.rounding(
        farthest[None], farthest[None], np.ones(1), source.n_terms, unit
    )
    fine = float(errors[0]) * max(largest, 1.0) <= TUNING.coarsest_fast_error
    return not (fine and max(farthest, value) < TUNING.largest_fast_value)


class TorchGram:
    """K = (K(x_i, x_j)) of some rows of X on a device.

    A row that is named more than once, as by the two variables of a regression, is computed and
    kept once. Answers to solvers that keep vectors on the host are NumPy arrays.

    Parameters
    ----------
    source : KernelRows
    index : ndarray of int, optional
        The rows of X that take part, all by default.
    budget : float, optional
        Bytes that kept rows may take; half of the usable memory by default.
    """

    def __init__(
        self, source: KernelRows, index: Integers | None = None, budget: float | None = None
    ) -> None:
        self.source, self.kernel, self.device = source, source.kernel, source.device
        self.index = np.arange(source.n_rows) if index is None else index
        self.dtype = np.dtype(np.float32 if source.dtype == torch.float32 else np.float64)
        self._budget = budget
        self._different, places = np.unique(self.index, return_inverse=True)
        self._places: Integers | None = places
        if self._different.size == self.index.size:
            self._different, self._places = self.index, None
        self._is_everything = np.array_equal(self._different, np.arange(source.n_rows))
        self._whole: Floats | None = None

    @property
    def n_samples(self) -> int:
        """Rows of K."""
        return self.index.size

    @property
    def budget(self) -> float:
        """Bytes that kept rows may take."""
        if self._budget is None:
            self._budget = TUNING.kept_share * bytes_to_use(self.device)
        return self._budget

    @property
    def fits(self) -> bool:
        """Whether the whole of K fits the budget."""
        return self._whole is not None or self.n_samples**2 * self.dtype.itemsize <= self.budget

    def restrict(self, rows: Integers) -> TorchGram:
        """Return the Gram matrix of some of these rows."""
        return TorchGram(self.source, self.index[rows], self._budget)

    def dual_state(
        self,
        problem: DualProblem,
        alpha: Floats,
        exact: BaseGram | None = None,
        claim: Claim | None = None,
    ) -> TorchDualState:
        """Return the state of a problem at a feasible α. A claim is not used."""
        assert exact is None or isinstance(exact, TorchGram)
        return TorchDualState.of(problem, self, alpha, exact)

    # On the device ------------------------------------------------------------------------------

    def put(self, values: NDArray[Any]) -> Any:
        """Return an array of the host as a tensor on the device."""
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def column_sums(self, rows: Integers, v: Floats) -> tuple[Any, Any]:
        """Return K[:, rows] v in float64, and a bound of its rounding errors.

        Rows of K are kept for a next time, if memory allows.
        """
        own, v = self._of_different(rows, v)
        add = partial(self._add_columns, own, v)
        sums, errors = with_smaller_blocks(add, TUNING.tile_bytes)
        return self._expanded(sums), self._expanded(errors)

    def _add_columns(self, own: Integers, v: Floats, tile_bytes: float) -> tuple[Any, Any]:
        """Return sums of different rows, those that are kept first."""
        sums = torch.zeros((2, self._different.size), dtype=torch.float64, device=self.device)
        known = self._store.knows(own)
        order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
        n_known, factors = int(known.sum()), self.put(np.stack([v, np.abs(v)])[:, order])
        own = own[order]
        step = _step(self._different.size, tile_bytes)
        for first in range(0, n_known, step):
            part = slice(first, min(first + step, n_known))
            _add(sums, factors[:, part], self._store.rows(own[part]), self._is_positive)
        for first in range(n_known, own.size, step):
            part = slice(first, first + step)
            tile = self._values(own[part], None)
            _add(sums, factors[:, part], tile, self._is_positive)
            self._store.keep(own[part], tile)
        return sums[0], self._error(None, own, factors[1], sums[1])

    def row_sums(self, rows: Integers, columns: Integers, v: Floats) -> tuple[Any, Any]:
        """Return K[rows, columns] v in float64, and a bound of its rounding errors."""
        others, v = self._of_different(columns, v)
        own, places = rows, None
        if self._places is not None:
            own, places = np.unique(self._places[rows], return_inverse=True)
        add = partial(self._add_rows, own, others, v)
        sums, errors = with_smaller_blocks(add, TUNING.tile_bytes)
        if places is None:
            return sums, errors
        at = self.put(places)
        return sums[at], errors[at]

    def _add_rows(
        self, own: Integers, others: Integers, v: Floats, tile_bytes: float
    ) -> tuple[Any, Any]:
        """Return sums of different rows and columns."""
        factors = self.put(np.stack([v, np.abs(v)]))
        sums = torch.zeros((2, own.size), dtype=torch.float64, device=self.device)
        step = _step(others.size, tile_bytes)
        for first in range(0, own.size, step):
            part = slice(first, first + step)
            tile = self._values(own[part], others)
            _add(sums[:, part], factors, tile.T, self._is_positive)
        return sums[0], self._error(own, others, factors[1], sums[1])

    @cached_property
    def diagonals(self) -> Any:
        """K(x_i, x_i) on the device."""
        return self.source.diagonal()[self.put(self.index)]

    @cached_property
    def _store(self) -> KeptRows:
        return KeptRows(self._different.size, self.source.dtype, self.device, self.budget)

    @cached_property
    def _columns(self) -> Any:
        """Different rows of X, None where those are all."""
        return None if self._is_everything else self.put(self._different)

    @cached_property
    def _expansion(self) -> Any:
        assert self._places is not None
        return self.put(self._places)

    def _expanded(self, of_rows: Any) -> Any:
        """Return what belongs to different rows for every variable."""
        return of_rows if self._places is None else of_rows[self._expansion]

    def _of_different(self, rows: Integers, v: Floats) -> tuple[Integers, Floats]:
        """Return different rows, and the sum of the coefficients of each."""
        if self._places is None:
            return rows, v
        own, places = np.unique(self._places[rows], return_inverse=True)
        return own, np.bincount(places, v).astype(np.float64, copy=False)

    def _values(self, rows: Integers, columns: Integers | None) -> Any:
        """Return K of different rows, of all columns by default."""
        chosen = self._columns if columns is None else self.put(self._different[columns])
        return self.source.values(self.put(self._different[rows]), chosen)

    @property
    def _is_positive(self) -> bool:
        """Whether K ≥ 0."""
        return type(self.kernel) is RBF

    @property
    def _unit(self) -> float:
        """The unit roundoff of kernel values."""
        return 0.5 * torch.finfo(self.source.dtype).eps

    def _error(self, rows: Integers | None, columns: Integers, weights: Any, sizes: Any) -> Any:
        """Return a bound of the rounding errors of K v, from Σ|v_j||K_ij| of every row."""
        sums = (columns.size + 2) * UNIT * sizes
        if not self.kernel.elementwise:  # what the caller computed is not wrong
            return sums + (self._unit * sizes if self.dtype == np.float32 else 0.0)
        squares = self._squares if rows is None else self._squares[self.put(rows)]
        if self._relative is not None:
            relative = self._relative if rows is None else self._relative[self.put(rows)]
            return relative * sizes * (1.0 + self._unit) + sums
        others = self._squares[self.put(columns)]
        return self.kernel.rounding(squares, others, weights, self._terms, self._unit) + sums

    @cached_property
    def _squares(self) -> Any:
        """‖x‖² of different rows in float64."""
        squares = self.source.squares.double()
        return squares if self._is_everything else squares[self._columns]

    @property
    def _terms(self) -> int:
        return int(self.source.n_terms)

    @cached_property
    def _relative(self) -> Any:
        """A bound of |ΔK_ij|/K_ij for every row i, where there is one."""
        if type(self.kernel) is not RBF:
            return None
        relative = self.kernel.relative_rounding(
            self._squares, self._squares.max(), self._terms, self._unit
        )
        return relative * (1.0 + relative)  # relative to the rounded value

    # On the host --------------------------------------------------------------------------------

    def diagonal(self) -> Floats:
        """Return K(x_i, x_i) in float64."""
        return self._diagonal

    @cached_property
    def _diagonal(self) -> Floats:
        values: Floats = self.diagonals.cpu().numpy()
        return values

    def whole(self) -> Floats:
        """Return all of K, and keep it."""
        if self._whole is None:
            everything = np.arange(self.n_samples)
            K = square(self.n_samples, self.dtype)
            K[:] = self.block(everything, everything)
            np.fill_diagonal(K, self.diagonal())
            self._whole = K
        return self._whole

    def padded(self) -> Floats | None:
        """Return all of K if it is there, stored as `simd.square` does."""
        return self._whole

    def block(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """Return K[rows, columns], K[rows, rows] by default."""
        others = rows if columns is None else columns
        if self._whole is not None:
            return self._whole[np.ix_(rows, others)]
        if self._places is not None:
            rows, others = self._places[rows], self._places[others]
        K: Floats = self._values(rows, others).cpu().numpy()
        if columns is None:
            np.fill_diagonal(K, self.source.diagonal()[self.put(self._different[rows])].cpu())
        return K

    def dot(
        self,
        rows: Integers,
        v: Floats,
        keep: NDArray[np.bool_] | None = None,
        error: Floats | None = None,
    ) -> Floats:
        """Return K[:, rows] v in float64, and add a bound of its rounding errors to ``error``."""
        sums, errors = torch.stack(self.column_sums(rows, v)).cpu().numpy()
        if error is not None:
            error += errors
        return sums  # type: ignore[no-any-return]

    def product(
        self, rows: Integers, columns: Integers, v: Floats, error: Floats | None = None
    ) -> Floats:
        """Return K[rows, columns] v in float64, and add a bound of its errors to ``error``."""
        sums, errors = torch.stack(self.row_sums(rows, columns, v)).cpu().numpy()
        if error is not None:
            error += errors
        return sums  # type: ignore[no-any-return]

    def bound(self, rows: Integers | slice, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v."""
        chosen = np.arange(self.n_samples)[rows]
        return self.row_sums(chosen, columns, v)[1].cpu().numpy()  # type: ignore[no-any-return]


def _step(width: int, tile_bytes: float) -> int:
    """Return the rows of a tile, which is made of float64 numbers once."""
    return max(1, int(tile_bytes / (12 * max(1, width))))


def _add(sums: Any, factors: Any, tile: Any, is_positive: bool) -> None:
    """Add Σ_k v_k K_k and Σ_k |v_k||K_k| to sums, ``factors`` being v and |v|."""
    tile = tile.double()
    if is_positive:
        sums += factors @ tile
        return
    sums[0] += factors[0] @ tile
    sums[1] += factors[1] @ tile.abs()
