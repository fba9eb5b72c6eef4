"""Checked training data of one fit: class numbers, weights and random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .. import validation
from ..arrays import (
    Floats,
    Integers,
    Labels,
    Matrix,
    Partitioned,
    PartitionedVector,
    VectorOnDevice,
    by_rows,
    take,
)
from ..runtime.vectors import counting, is_one_number, nonzero

ClassWeight = Mapping[object, float] | str | None
RandomState = int | np.random.RandomState | None


@dataclass(frozen=True)
class Training:
    """Checked data of one fit.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Labels, the targets of a regression, or +1 of samples without either.
    classes : ndarray of shape (n_classes,)
        Different labels, in order; empty where y holds none.
    codes : ndarray of int of shape (n_samples,)
        Class numbers; 0 without classes.
    sample_weights : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,)
        Weights of samples times those of their classes.
    rng : RandomState
    class_weights : ndarray of shape (n_classes,)
    objects : sequence, optional
        Samples that are not rows of numbers; X is then the matrix of their kernel values.
    owns_rng : bool, default=False
        Whether nobody else holds ``rng``: it was made from a seed.
    """

    X: Matrix
    y: Labels
    classes: Labels
    codes: Integers
    sample_weights: Floats
    weights: Floats
    rng: np.random.RandomState
    class_weights: Floats
    objects: Sequence[object] | None = None
    owns_rng: bool = False

    @cached_property
    def rows(self) -> Integers:
        """Rows of positive weight; the others do not count."""
        weights: Any = self.weights
        everything: Integers
        if isinstance(weights, VectorOnDevice):  # in partitions: rows of weight 0 cost nothing
            everything = cast(VectorOnDevice, self.y).rows()
            return everything
        if is_one_number(weights) and weights[0] > 0 and isinstance(self.y, VectorOnDevice):
            everything = self.y.rows()
            return everything
        if is_one_number(weights):
            return counting(weights.size if weights[0] > 0 else 0)
        return nonzero(weights > 0)

    def task_rng(self) -> np.random.RandomState:
        """Return random numbers for a task: the same for each, as if it were the only one.

        Those of the task before are started again: tasks take turns.
        """
        rng, state = self._first_rng
        rng.set_state(state)
        return rng

    @cached_property
    def _first_rng(self) -> tuple[np.random.RandomState, dict[str, Any]]:
        rng = self.rng
        if not self.owns_rng:
            rng = deepcopy(rng)
            self.rng.random_sample()  # a generator that the caller holds advances from fit to fit
        return rng, rng.get_state(legacy=False)

    @property
    def counted(self) -> Matrix:
        """X without the rows that do not count."""
        return self.X if self.rows.size == self.X.shape[0] else take(self.X, self.rows)


def weighted(
    X: Matrix,
    y: Labels,
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight,
    random_state: RandomState,
    classes: Labels | None = None,
) -> Training:
    """Return checked X and y with class numbers and weights.

    The classes are those of the rows of positive weight, unless they are given.
    """
    weights = validation.check_sample_weight(sample_weight, X)
    if isinstance(X, Partitioned) and isinstance(y, PartitionedVector):
        return _of_partitions(X, y, weights, class_weight, random_state)
    if isinstance(y, VectorOnDevice):
        if sample_weight is None and class_weight is None and classes is None:
            return _all_on_device(X, y, weights, random_state)
        y = y.host
    all_count = is_one_number(weights) or bool((weights > 0).all())
    counts = slice(None) if classes is not None or all_count else weights > 0
    classes, codes = validation.encode_labels(y[counts], classes)
    validation.check_two_classes(classes)
    if not isinstance(counts, slice):
        used, codes = codes, np.zeros(len(y), dtype=codes.dtype)
        codes[counts] = used
    of_class = validation.class_weights(weights, class_weight, classes, y[counts], codes)
    total = weights if (of_class == 1.0).all() else weights * of_class[codes]
    rng = check_random_state(random_state)
    is_seed = isinstance(random_state, Integral)
    X = by_rows(X)
    return Training(X, y, classes, codes, weights, total, rng, of_class, owns_rng=is_seed)


def _all_on_device(
    X: Matrix, y: VectorOnDevice, weights: Floats, random_state: RandomState
) -> Training:
    """Return checked X and y of weight 1 with class numbers, all of them on the device."""
    encoded = y.encoded()
    assert encoded is not None
    classes, codes = encoded
    validation.check_two_classes(classes)
    rng, is_seed = check_random_state(random_state), isinstance(random_state, Integral)
    of_class = np.ones(len(classes))
    labels: Any = y
    return Training(X, labels, classes, codes, weights, weights, rng, of_class, owns_rng=is_seed)


def _of_partitions(
    X: Partitioned, y: Any, weights: Any, class_weight: ClassWeight, random_state: RandomState
) -> Training:
    """Return checked X and y with class numbers and weights, all of them in partitions."""
    classes, codes = y.encoded()
    validation.check_two_classes(classes)
    of_class: Floats = np.ones(len(classes))
    if class_weight == "balanced":
        common = (len(classes),)
        totals = X.reduce(
            _class_totals, _added, codes, _or_one(weights), common=common, reads_rows=False
        )
        of_class = totals.sum() / (len(classes) * totals)
    elif class_weight is not None:
        of_class = validation.class_weights(np.ones(1), class_weight, classes, classes, codes)
    total = weights
    if (of_class != 1.0).any():
        known = weights.ends if isinstance(weights, PartitionedVector) else None
        low, high = known or (1.0, 1.0)
        ends = low * float(of_class.min()), high * float(of_class.max())
        total = codes.combined(_times_class, codes, _or_one(weights), of_class, ends=ends)
    rng, is_seed = check_random_state(random_state), isinstance(random_state, Integral)
    return Training(X, y, classes, codes, weights, total, rng, of_class, owns_rng=is_seed)


def _or_one(weights: Any) -> Any:
    """Return a vector of weights in partitions, or the number 1 for all."""
    return weights if isinstance(weights, VectorOnDevice) else np.ones(1)


def _class_totals(codes: Integers, weights: Floats, n_classes: int) -> Floats:
    weights = np.broadcast_to(weights, codes.shape)
    totals: Floats = np.bincount(codes, weights=weights, minlength=n_classes).astype(float)
    return totals


def _times_class(codes: Integers, weights: Floats, of_class: Floats) -> Floats:
    return weights * of_class[codes.astype(np.intp)]


def _added(parts: list[Floats]) -> Floats:
    total: Floats = np.sum(parts, axis=0)
    return total


def without_classes(X: Matrix, y: Floats, sample_weight: ArrayLike | None) -> Training:
    """Return checked X and y, which holds targets or +1, with weights."""
    weights, none = validation.check_sample_weight(sample_weight, X), np.empty(0)
    codes: Integers = np.broadcast_to(np.intp(0), X.shape[0])
    rng = check_random_state(0)
    return Training(by_rows(X), y, none, codes, weights, weights, rng, none, owns_rng=True)
