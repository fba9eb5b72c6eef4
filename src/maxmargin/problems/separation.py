"""Separating planes and least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeVar, cast

import numpy as np

from ..arrays import Floats, Integers, Matrix
from ..data.normalised_samples import Samples
from ..data.partitioned_samples import PartitionedSamples
from ..data.row_sums import RowSums
from ..kernels import Kernel

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class SeparationProblem:
    """Find a with Za > 0, or Za ≥ m for given margins m > 0.

    Parameters
    ----------
    Z : Samples
        The normalised samples.
    margins : ndarray of shape (n_rows of Z,), optional
        m, all 1 by default.
    weights : ndarray of shape (n_samples,), optional
        The weight of each sample in a criterion, all 1 by default; strictly positive.
    """

    Z: Samples
    margins: Any = None
    weights: Any = None

    def __post_init__(self) -> None:
        if self.margins is None:
            object.__setattr__(self, "margins", self.Z.ones())
        if self.weights is None:
            object.__setattr__(self, "weights", self._ones_of_samples())

    def _ones_of_samples(self) -> Floats:
        return self.Z.ones() if self.in_partitions else np.ones(self.Z.n_samples)

    @property
    def in_partitions(self) -> bool:
        """Whether the rows are in partitions, on the workers of a cluster."""
        return isinstance(self.Z, PartitionedSamples)

    @property
    def row_weights(self) -> Floats:
        """The weight of each row of Z."""
        return self.Z.to_rows(self.weights)

    def restrict(self, a: Floats) -> Floats:
        """Return a with 0 for the features that are not used: here, all of them are."""
        return np.ravel(a)

    def reduce(
        self,
        work: Callable[..., Answer],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
    ) -> Answer:
        """Return ``work(problem, *vectors, *common)``.

        In partitions it is computed for the problem of each of them, with its parts of vectors of
        one number per row of Z, and the answers are merged.
        """
        if not self.in_partitions:
            return work(self, *vectors, *common)
        return self.Z.reduce(
            self._sent(work), merge, self.margins, self.weights, *vectors, common=common
        )

    def step(
        self,
        work: Callable[..., tuple[Any, Answer]],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
    ) -> tuple[Any, Answer]:
        """Return ``work(problem, *vectors, *common)``: a new vector, and an answer as `reduce`."""
        if not self.in_partitions:
            return work(self, *vectors, *common)
        return self.Z.step(
            self._sent(work), merge, self.margins, self.weights, *vectors, common=common
        )

    def map(self, work: Callable[..., Floats], *vectors: Any, common: tuple[Any, ...] = ()) -> Any:
        """Return ``work(problem, *vectors, *common)``, a vector that stays where the rows are."""
        if not self.in_partitions:
            return work(self, *vectors, *common)
        return self.Z.map(self._sent(work), self.margins, self.weights, *vectors, common=common)

    def chain(
        self,
        work: Callable[..., Answer],
        state: Answer,
        *vectors: Any,
        order: Integers,
        common: tuple[Any, ...] = (),
    ) -> Answer:
        """Visit partitions one after the other: ``work(problem, *vectors, state, *common)``."""
        assert isinstance(self.Z, PartitionedSamples)
        return self.Z.chain(
            self._sent(work), state, self.margins, self.weights, *vectors, order=order,
            common=common,
        )  # fmt: skip

    def _sent(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return work on the problem of a partition, of which the rows and vectors are there."""
        one, there = np.ones(1), cast(Any, None)
        return partial(_on_part, replace(self, Z=there, margins=one, weights=one), work)

    def computed_by(self, sums: RowSums) -> Self:
        """Return the problem with the sums over rows of an engine's features, for its solver."""
        return replace(self, Z=self.Z.computed_by(sums))


def _on_part(
    posed: SeparationProblem, work: Callable[..., Any], Z: Samples, margins: Floats,
    weights: Floats, *arguments: Any,
) -> Any:  # fmt: skip
    """Do work on the problem of one partition."""
    return work(replace(posed, Z=Z, margins=margins, weights=weights), *arguments)


@dataclass(frozen=True)
class LeastSquaresProblem(SeparationProblem):
    """Minimise Σ_i v_i (z_i·a − m_i)² + ε‖a‖²; of several minimisers the one of least norm.

    ``weights`` holds the v_i and ``ridge`` the ε ≥ 0. The features in ``excluded`` have weight 0:
    those that are constant, which the bias represents.
    """

    ridge: float = 0.0
    excluded: Integers = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def restrict(self, a: Floats) -> Floats:
        """Return a with 0 for the excluded features."""
        a = np.array(a).reshape(self.Z.n_vectors, -1)
        a[:, self.excluded] = 0.0
        return a.ravel()


@dataclass(frozen=True)
class KernelSeparationProblem:
    """Find α ≥ 0 and b with y_m (Σ_l α_l y_l K(x_l, x_m) + b) > 0 for every sample m.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features)
        For a precomputed kernel the square Gram matrix.
    y : ndarray of shape (n,)
        Labels −1 and +1, aligned with ``index``.
    index : ndarray of int of shape (n,)
        The rows of X to use.
    weights : ndarray of shape (n,)
        The number of consecutive visits that each sample represents.
    bias_step : float
        The change of b when some α_m grows by 1: ηR² in Novikoff's convention, 0 without a bias.
    """

    kernel: Kernel
    X: Matrix
    y: Floats
    index: Integers
    weights: Floats
    bias_step: float
