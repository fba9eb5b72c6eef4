"""What a model answers for some rows: labels or numbers, scores of classes, probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Labels, MatrixLike
from .fitted_model import FittedModel, ModelLike


class Answers(NamedTuple):
    """Predictions for some rows; scores and probabilities where they are known.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Labels, numbers, or 1 and −1 of a one-class machine.
    scores : ndarray of shape (n,) or (n, n_classes), optional
        One per class, the largest for the most likely class; of two classes one, large for the
        second.
    probabilities : ndarray of shape (n, n_classes), optional
    """

    labels: Labels
    scores: Floats | None = None
    probabilities: Floats | None = None

    def of(self, rows: Labels) -> Answers:
        """Return the answers for some of the rows."""
        scores, probabilities = (None if part is None else part[rows] for part in self[1:])
        return Answers(self.labels[rows], scores, probabilities)


def joined(parts: Sequence[Answers]) -> Answers:
    """Return the answers for all rows."""
    if len(parts) == 1:
        return parts[0]
    labels, *more = zip(*parts, strict=True)
    scores, probabilities = (None if each[0] is None else np.concatenate(each) for each in more)
    return Answers(np.concatenate(labels), scores, probabilities)


def answers(model: ModelLike, X: MatrixLike) -> Answers:
    """Return what a model answers for rows, with the scores of its classes if it has classes.

    The scores of all planes are computed once, for the labels as well.
    """
    fitted = FittedModel(model)
    if not fitted.has_classes:
        return Answers(np.asarray(fitted.model.predict(X)))
    planes, classifier = fitted.scores(X), fitted.classifier
    labels = fitted.classes[np.asarray(classifier._chosen(planes))]
    scores = planes[:, 0]
    if not fitted.is_binary:
        scores = fitted.reduction.confidences(planes, len(fitted.classes))
    probabilities = None
    if hasattr(fitted.model, "predict_proba"):
        probabilities = np.asarray(fitted.model.predict_proba(X))
    return Answers(labels, scores, probabilities)
