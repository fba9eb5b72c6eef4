"""The CPU engine: X in memory, kernel values computed on all cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers, has_repeats
from ...kernels import Kernel, Precomputed
from ...kernels.products import far_columns, shifted
from ...problems import JointKernelProblem
from ...problems.held_out_rows import HeldOutRows
from ...problems.shared_rows import SharedRows
from ...runtime.row_access import readable
from ..base import CostGrid, Ended, Precision, TaskArrays, TaskGoal
from .class_pairs import ClassBlocks, PairGram
from .cost_grid import solve_cost_grid
from .features import Features
from .gram import Gram, GramView
from .joint_kernel_state import CpuJointKernelState
from .repeated_rows import RepeatedGram
from .small_tasks import PairBlocks, solve_tasks
from .store import Store


@dataclass(frozen=True)
class Tuning:
    """Which kernel values are float32, and which rows are made dense."""

    # Samples up to which float64 takes no longer, and numbers up to which dense rows do not: the
    # answer is then the same for X dense or sparse, and for K computed here or by the caller.
    few_samples: int = 256
    few_numbers: int = 1 << 20
    # Rows of X up to which small tasks share all of K in float64.
    whole_samples: int = 2048
    # The tolerance down to which float32 kernel values, with float64 corrections, are of use.
    finest_tol: float = 1e-5
    # The error α ΔK of float32 up to which descent with corrections is faster than in float64.
    coarsest_error: float = 1e-2
    # Numbers, and kernel values, that are far from the overflow of float32.
    largest_number: float = 1e15
    largest_value: float = 1e30


TUNING = Tuning()


# Variables of a task that is solved in one call: beyond, steps with all of them take too long.
MOST_VARIABLES = 3000
# The same where folds and costs share K.
MOST_SHARED = 1 << 14


class CpuEngine:
    """X in the memory of this machine.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features), or a precomputed Gram matrix
    codes : ndarray of int of shape (n_samples,), optional
        The class of every row, where tasks are about pairs of several classes: K within a class is
        then computed once.
    budget : float, optional
        Bytes that kernel values may take, a quarter of the free memory by default.
    reuse : bool, default=False
        Keep every kernel value that is computed, where all of K fits the budget: for folds, paths
        and refits on the same rows. Elsewhere each `gram` keeps values of its own.
    """

    most_variables = MOST_VARIABLES

    def __init__(
        self,
        X: Any,
        *,
        codes: Integers | None = None,
        budget: float | None = None,
        reuse: bool = False,
    ) -> None:
        self._X: Any = readable(X) if isinstance(X, np.ndarray) else X
        self._codes, self._budget, self._reuse = codes, budget, reuse
        self.is_few = X.shape[0] <= TUNING.few_samples
        self._sources: dict[tuple[Kernel, Precision], Gram] = {}
        self._stores: dict[tuple[Kernel, Precision], Store] = {}
        self._blocks: dict[tuple[Kernel, Precision], ClassBlocks] = {}

    @property
    def n_computed(self) -> dict[tuple[Kernel, Precision], int]:
        """Kernel values computed so far by the stores, per kernel and precision."""
        return {key: store.n_computed for key, store in self._stores.items()}

    def precision(self, kernel: Kernel, tol: float, largest: float = 1.0) -> Precision:
        """Return "fast" where float32 kernel values, with float64 corrections, are precise enough.

        Parameters
        ----------
        kernel : Kernel
        tol : float
            The largest violation of the KKT conditions at the end.
        largest : float
            A number that no α exceeds, about: errors of K are multiplied by it.
        """
        if tol < TUNING.finest_tol or not kernel.elementwise or self.is_few:
            return "exact"
        X = self._rows(kernel)
        if not _is_moderate(kernel, X) or not self._is_fine(kernel, largest):
            return "exact"
        return "fast"

    def gram(
        self,
        kernel: Kernel,
        index: Integers | None = None,
        precision: Precision = "exact",
        *,
        keep: bool = True,
    ) -> Gram | GramView:
        """Return K of the rows of X named by ``index``, all of them by default.

        Without ``keep`` nothing is kept but what there is already.
        """
        if index is not None and has_repeats(index):
            rows, places = np.unique(index, return_inverse=True)
            return RepeatedGram(self.gram(kernel, rows, precision, keep=keep), places)
        source, key = self._source(kernel, precision), (kernel, precision)
        if not keep:
            return GramView(source, np.arange(source.n_samples) if index is None else index)
        if index is None or np.array_equal(index, np.arange(source.n_samples)):
            return source
        if self._codes is not None and kernel.elementwise and key not in self._stores:
            if key not in self._blocks:
                self._blocks[key] = ClassBlocks(source, self._codes)
            return PairGram(self._blocks[key], index)
        return source.restrict(index)

    def features(self, index: Integers | None = None) -> Features:
        """Return the rows of X named by ``index``, all of them by default."""
        every = index is None or np.array_equal(index, np.arange(self._X.shape[0]))
        return Features(self._X if every else self._X[index])

    def sums(self, index: Integers | None = None) -> Features:
        """Return sums over the rows of X named by ``index``, which are not copied."""
        return Features(self._X, index)

    def joint_state(self, problem: JointKernelProblem) -> CpuJointKernelState:
        """Return the state of a joint machine at α = 0 and b = 0."""
        return CpuJointKernelState(problem, self.gram(problem.kernel, problem.index))

    def solve_small(
        self, kernel: Kernel, tasks: TaskArrays, precision: Precision, goal: TaskGoal
    ) -> Ended | None:
        """Solve classifiers of few samples each; None where kernel values are not at hand."""
        if self._X.shape[0] <= TUNING.whole_samples:
            gram = self._source(kernel, "exact")
            return solve_tasks(gram, None, tasks, goal) if gram.fits else None
        gram, codes = self._source(kernel, precision), self._codes
        pairs = None if codes is None or tasks.total else PairBlocks.of(gram, codes, tasks)
        return None if pairs is None else solve_tasks(gram, pairs, tasks, goal)

    def cost_grid(
        self,
        kernel: Kernel,
        tasks: TaskArrays,
        shared: SharedRows,
        costs: Floats,
        recalled: Floats,
        held_out: HeldOutRows,
        goal: TaskGoal,
        is_over: Callable[[], bool],
    ) -> CostGrid | None:
        """Solve small tasks at one cost after the other; None where all of K does not fit.

        ``tasks`` are those of C = 1. ``held_out`` are rows of X whose scores are wanted.
        """
        if int(tasks.sizes.max()) > MOST_SHARED:
            return None
        # All of K is computed at once, and kept by this call alone.
        gram = Gram(kernel, self._rows(kernel), None, self._budget, np.float64)
        if not gram.fits:
            return None
        return solve_cost_grid(gram, tasks, shared, costs, recalled, held_out, goal, is_over)

    def _source(self, kernel: Kernel, precision: Precision) -> Gram:
        """Return K of all rows."""
        key = kernel, precision
        if key not in self._sources:
            dtype = np.float32 if precision == "fast" else np.float64
            gram = Gram(kernel, self._rows(kernel), None, self._budget, dtype)
            if self._reuse and gram.fits and not isinstance(kernel, Precomputed):
                self._stores[key] = Store(gram.values, gram.diagonal())
                gram = Gram(kernel, gram.X, None, gram.budget, dtype, self._stores[key])
            self._sources[key] = gram
        return self._sources[key]

    def _rows(self, kernel: Kernel) -> Any:
        """Return X as this kernel reads it."""
        if not sparse.issparse(self._X) or not kernel.elementwise:
            return self._X
        if self.is_few and np.prod(self._X.shape) <= TUNING.few_numbers:
            return (self._centred if kernel.shift_invariant else self._X).toarray()
        return self._centred if kernel.shift_invariant else self._X

    @cached_property
    def _centred(self) -> Any:
        """CSR rows with far columns moved to 0, in float64: differences of float32 are rounded.

        Dense rows are moved tile by tile.
        """
        centre = far_columns(self._X)
        return shifted(self._X, centre) if centre.any() else self._X

    def _is_fine(self, kernel: Kernel, largest: float) -> bool:
        """Whether what float32 does to K is far below the margin, α being so large at most."""
        gram = self._source(kernel, "fast")
        errors = gram.values.relative
        if errors is None:
            lengths = gram.diagonal()
            errors = gram.values.bound(slice(None), np.array([lengths.argmax()]), np.ones(1))
        fine = bool(float(errors.max()) * max(largest, 1.0) <= TUNING.coarsest_error)
        if not fine:
            for kept in (self._sources, self._stores):
                kept.pop((kernel, "fast"), None)
        return fine


def _is_moderate(kernel: Kernel, X: Any) -> bool:
    """Whether squares of X and kernel values are far from float32's overflow."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest >= TUNING.largest_number:
        return False
    return float(kernel.diagonal(X).max()) < TUNING.largest_value
