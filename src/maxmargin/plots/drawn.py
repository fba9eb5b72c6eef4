"""A model and rows in the features that figures show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..arrays import Floats, MatrixLike, refuse_partitions
from ..diagnostics.fitted_model import FittedModel, ModelLike, NumberedNames


@dataclass(frozen=True)
class Drawn:
    """A model and rows as figures show them, with names of the features and labels of the axes."""

    model: ModelLike
    X: MatrixLike
    names: Sequence[str]
    labels: Sequence[str]


def as_drawn(model: ModelLike, X: MatrixLike) -> Drawn:
    """Return a model and rows as figures show them.

    One or two columns of numbers are drawn in their own units, through the pipeline. Otherwise
    figures are in the features of the classifier, and the axes say which are scaled.
    """
    refuse_partitions(X)
    fitted = FittedModel(model)
    names = fitted.feature_names
    if not fitted.steps:
        return Drawn(fitted.classifier, X, names, names)
    X = X if hasattr(X, "shape") else np.asarray(X)
    if X.shape[1] <= 2 and not sparse.issparse(X):
        rows = X.to_numpy() if hasattr(X, "to_numpy") else X
        if rows.dtype.kind in "fiub":
            known = getattr(fitted.model, "feature_names_in_", NumberedNames(X.shape[1]))
            names = [str(name) for name in known]
            return Drawn(fitted.model, X, names, names)
    scale = getattr(fitted.steps[-1], "scale_", None)
    return Drawn(fitted.classifier, fitted.transform(X), names, _labels(names, scale))


def _labels(names: Sequence[str], scale: Floats | None) -> Sequence[str]:
    if scale is None or isinstance(names, NumberedNames):
        return names
    pairs = zip(names, scale, strict=True)
    return [f"{name} (scaled)" if factor != 1 else name for name, factor in pairs]
