"""Transformers that shift and scale every feature by itself, as one map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from ..arrays import Floats
from ..estimators.column_encoder import ColumnEncoder


@dataclass(frozen=True)
class Scaling:
    """x ↦ (x − shift)·factor, feature by feature."""

    shift: Floats
    factor: Floats

    def then(self, other: Scaling) -> Scaling:
        """Return this map followed by another."""
        return Scaling(self.shift + other.shift / self.factor, self.factor * other.factor)


def scaling_of(step: Any) -> Scaling | None:
    """Return what a transformer does before clipping; None where that is not a `Scaling`."""
    if isinstance(step, ColumnEncoder):
        if any(categories is not None for categories in step.categories_):
            return None
        return Scaling(step.mean_, 1.0 / step.scale_)
    n = getattr(step, "n_features_in_", 0)
    zero, one = np.zeros(n), np.ones(n)
    if isinstance(step, StandardScaler):
        shift = step.mean_ if step.with_mean else zero
        return Scaling(shift, 1.0 / step.scale_ if step.with_std else one)
    if isinstance(step, MinMaxScaler):  # x·scale_ + min_
        return Scaling(-step.min_ / step.scale_, step.scale_)
    if isinstance(step, MaxAbsScaler):
        return Scaling(zero, 1.0 / step.scale_)
    if isinstance(step, RobustScaler):
        shift = step.center_ if step.with_centering else zero
        return Scaling(shift, 1.0 / step.scale_ if step.with_scaling else one)
    return None
