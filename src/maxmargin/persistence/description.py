"""A fitted model as other programs see it: what is done to x, scores of planes, the way to labels.

x ↦ (x − shift)·factor, or words as 0/1 columns ↦ g_k(x) = w_k·x + b_k, or Σ_i c_ki K(x, x_i) + b_k
↦ a label, by the sign, the largest score or votes. All exports are made from this description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats
from ..estimators.base import CertifiedClassifier
from ..estimators.column_encoder import ColumnEncoder
from ..estimators.kernel_perceptron import KernelPerceptron
from ..estimators.svc import KernelMachine
from ..kernels import Kernel, Linear
from ..multiclass import Binary, Kesler, OneVsOne

__all__ = ["Affine", "Expansion", "Machine", "Planes", "affine", "describe", "unwrap"]

Scheme = Literal["binary", "ovr", "ovo", "joint"]


@dataclass(frozen=True)
class Affine:
    """x ↦ (x − shift)·factor, feature by feature."""

    shift: Floats
    factor: Floats

    def then(self, other: Affine) -> Affine:
        """Return this map, followed by another."""
        return Affine(self.shift + other.shift / self.factor, self.factor * other.factor)


@dataclass(frozen=True)
class Planes:
    """g_k(x) = w_k·x + b_k, w of shape (n_planes, n_features)."""

    w: Floats
    b: Floats

    def of(self, map_: Affine) -> Planes:
        """Return the planes in the space before a map."""
        w = self.w * map_.factor
        return Planes(w, self.b - w @ map_.shift)


@dataclass(frozen=True)
class Expansion:
    """g_k(x) = Σ_i c_ki K(x, x_i) + b_k, c of shape (n_planes, n_support)."""

    kernel: Kernel
    vectors: Any
    coefficients: Floats
    b: Floats


@dataclass(frozen=True)
class Machine:
    """From scores to labels.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    scheme : {"binary", "ovr", "ovo", "joint"}
        g ≥ 0 is the second class; the largest of one g a class (twice); or g of pairs of classes
        (0, 1), (0, 2), …, positive for the first of them.
    scores : Planes or Expansion
    by_votes : bool
        Of pairs: the most votes win, the first class among equals, a pair votes for its first class
        where g > 0. Else the largest confidence (`OneVsOne.confidences`) wins.
    shows_pairs : bool
        Of pairs: whether decision_function returns g itself, not confidences.
    """

    classes: NDArray[Any]
    scheme: Scheme
    scores: Planes | Expansion
    by_votes: bool = False
    shows_pairs: bool = False


def unwrap(model: Any) -> tuple[list[Any], Any]:
    """Return the fitted steps before the classifier of a pipeline, and the classifier."""
    steps: list[Any] = []
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            steps += _transformers(step)
        model = model.steps[-1][1]
        more, model = unwrap(model) if isinstance(model, Pipeline) else ([], model)
        steps += more
    if not isinstance(model, CertifiedClassifier):
        raise TypeError(
            f"{type(model).__name__} is no classifier of maxmargin: pass one, or a Pipeline that "
            "ends with one."
        )
    for step in (*steps, model):
        check_is_fitted(step)
    return steps, model


def _transformers(step: Any) -> list[Any]:
    """Return the transformers of a step, which may be a pipeline or nothing at all."""
    if isinstance(step, Pipeline):
        return [inner for _, part in step.steps for inner in _transformers(part)]
    return [] if step in (None, "passthrough") else [step]


def affine(step: Any) -> Affine | None:
    """Return a transformer as x ↦ (x − shift)·factor (before clipping), None where it is not so."""
    if isinstance(step, ColumnEncoder):
        if any(words is not None for words in step.categories_):
            return None
        return Affine(step.mean_, 1.0 / step.scale_)
    n = getattr(step, "n_features_in_", 0)
    zero, one = np.zeros(n), np.ones(n)
    if isinstance(step, StandardScaler):
        shift = step.mean_ if step.with_mean else zero
        return Affine(shift, 1.0 / step.scale_ if step.with_std else one)
    if isinstance(step, MinMaxScaler):  # x·scale_ + min_
        return Affine(-step.min_ / step.scale_, step.scale_)
    if isinstance(step, MaxAbsScaler):
        return Affine(zero, 1.0 / step.scale_)
    if isinstance(step, RobustScaler):
        shift = step.center_ if step.with_centering else zero
        return Affine(shift, 1.0 / step.scale_ if step.with_scaling else one)
    return None


def describe(model: CertifiedClassifier) -> Machine:
    """Return a fitted classifier as scores and the way from them to labels."""
    check_is_fitted(model)
    reduction = model._reduction()
    schemes: dict[type, Scheme] = {Binary: "binary", OneVsOne: "ovo", Kesler: "joint"}
    scheme = schemes.get(type(reduction), "ovr")
    pairs, votes, shows = scheme == "ovo", False, False
    if isinstance(model, KernelMachine):
        votes = pairs and not model.break_ties
        shows = pairs and model.decision_function_shape == "ovo"
    return Machine(model.classes_, scheme, _scores(model), votes, shows)


def _scores(model: Any) -> Planes | Expansion:
    b = np.asarray(model.intercept_, dtype=np.float64)
    if not isinstance(model, KernelMachine | KernelPerceptron):
        return Planes(_dense(model.coef_), b)
    if isinstance(model.kernel_, Linear):
        return Planes(_dense(model.coef_), b)
    coefficients = _dense(model.dual_coef_)
    if not coefficients.shape[1]:  # no mistake was ever made
        return Planes(np.zeros((b.size, model.n_features_in_)), b)
    if isinstance(model, KernelMachine) and isinstance(model._reduction(), OneVsOne):
        coefficients = _of_pairs(coefficients, model.n_support_)
    return Expansion(model.kernel_, model.support_vectors_, coefficients, b)


def _of_pairs(dual: Floats, n_support: NDArray[Any]) -> Floats:
    """Return one row of coefficients a pair of classes, from LIBSVM's table of them."""
    ends = np.cumsum([0, *n_support])
    parts = [slice(ends[c], ends[c + 1]) for c in range(n_support.size)]
    pairs = OneVsOne.pairs(n_support.size)
    coefficients = np.zeros((len(pairs), dual.shape[1]))
    for k, (i, j) in enumerate(pairs):
        coefficients[k, parts[i]] = dual[j - 1, parts[i]]
        coefficients[k, parts[j]] = dual[i, parts[j]]
    return coefficients


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)
