"""The Gram matrices of a fit: fast and exact ones, of all rows, of pairs of classes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import Kernel
from ...kernels.products import far_columns, shifted
from ...problems import DualProblem

# Samples up to which a task has its whole Gram matrix, and those of many classes are solved side
# by side.
SMALL = 3000
# The tolerance down to which float32 kernel values, with float64 corrections, are of use.
FINEST = 1e-5
# Samples up to which float64, and numbers up to which dense rows, take no longer: the answer is
# then the same for X dense or sparse, and for K computed by us or by the caller.
FEW = 256
NUMBERS = 1 << 20
# The error α ΔK of float32 up to which descent with corrections is faster than in float64.
COARSEST = 1e-2


class Engines:
    """What the tasks of a fit share: the ways to kernel values, and those within a class.

    ``codes`` are the classes of the rows, where tasks are about pairs of more than two of them.
    ``largest`` is what no α exceeds, about: float32 is not chosen where its errors would matter.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        codes: Integers | None,
        tol: float,
        budget: float | None,
        largest: float = 1.0,
    ) -> None:
        self.kernel, self.X, self.budget = kernel, _about_centre(kernel, X), budget
        self.few = self.X.shape[0] <= FEW
        if (
            self.few
            and sparse.issparse(self.X)
            and kernel.elementwise
            and np.prod(self.X.shape) <= NUMBERS
        ):
            self.X = self.X.toarray()
        self.codes = codes
        # float32 rows of K where float64 corrections make up for it; given values as they are.
        coarse = tol >= FINEST and kernel.elementwise and not self.few and _moderate(kernel, self.X)
        self.dtype: Any = np.float32 if coarse else np.float64
        self._within: dict[int, Floats] = {}
        if coarse and not self._fine_enough(largest):
            self.dtype = np.float64
            del self._all_fast

    def _fine_enough(self, largest: float) -> bool:
        """Whether what float32 does to K is far below the margin, α being so large at most."""
        values = self._all_fast.values
        errors = values.relative
        if errors is None:
            lengths = self._all_fast.diagonal()
            errors = values.bound(slice(None), np.array([lengths.argmax()]), np.ones(1))
        return bool(float(errors.max()) * max(largest, 1.0) <= COARSEST)

    def fast(self, problem: DualProblem) -> Any:
        """Return the engine of a task, with all of K where that is small."""
        small = problem.n_variables <= SMALL
        if small and self.codes is not None and self.kernel.elementwise:
            return self._assembled(problem, self.codes)
        index = _unless_all(problem.index, self.X)
        gram = self._all_fast if index is None else self._gram(self.dtype, index)
        if small and gram.fits:
            gram.whole()
        return gram

    def exact(self, problem: DualProblem) -> Any:
        """Return the engine of a task in float64."""
        return self._gram(np.float64, _unless_all(problem.index, self.X))

    def corrections(self, problem: DualProblem) -> Any:
        """Return float64 values for what the fast engine lacks; None where it lacks nothing."""
        from ...engines.cpu.gram import Selected

        if self.dtype == np.float64:
            return None
        return Selected(self._all_exact, problem.index)

    def _gram(self, dtype: Any, index: Integers | None = None) -> Any:
        from ...engines.cpu.gram import Gram

        return Gram(self.kernel, self.X, index, self.budget, dtype)

    @cached_property
    def _all_exact(self) -> Any:
        return self._gram(np.float64)

    @cached_property
    def _all_fast(self) -> Any:
        return self._gram(self.dtype)

    def _assembled(self, problem: DualProblem, codes: Integers) -> Any:
        """Return an engine on K put together from blocks within and between two sets of rows."""
        from ...engines.cpu.gram import Assembled

        n_first = int(np.count_nonzero(problem.signs > 0))  # they come first
        first, second = problem.index[:n_first], problem.index[n_first:]
        between = np.ascontiguousarray(self._all_fast.block(first, second))
        return Assembled(
            self._block_within(first, codes), between, self._block_within(second, codes),
            self._all_fast, problem.index,
        )  # fmt: skip

    def _block_within(self, rows: Integers, codes: Integers) -> Floats:
        """Return K of rows; that of a whole class is kept, for every pair needs it."""
        label = int(codes[rows[0]])
        if label in self._within and self._within[label].shape[0] == rows.size:
            return self._within[label]
        K: Floats = np.ascontiguousarray(self._all_fast.block(rows))
        if (codes[rows] == label).all():
            self._within[label] = K
        return K


def _about_centre(kernel: Kernel, X: Any) -> Any:
    """Return CSR rows with far columns moved to 0, where that changes nothing but the rounding."""
    if not (sparse.issparse(X) and kernel.shift_invariant):
        return X  # dense rows are moved tile by tile
    centre = far_columns(X).astype(X.dtype)
    return shifted(X, centre) if centre.any() else X


def _moderate(kernel: Kernel, X: Any) -> bool:
    """Whether squares of X and kernel values are far from float32's overflow."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return largest < 1e15 and float(kernel.diagonal(X).max()) < 1e30


def _unless_all(index: Integers, X: Any) -> Integers | None:
    """Return None where the index names every row in turn: rows then need not be picked."""
    return None if np.array_equal(index, np.arange(X.shape[0])) else index
