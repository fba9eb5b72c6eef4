"""The adapter of a fitted estimator: what figures, reports, exports and checks read of it.

A model is an estimator of maxmargin, a pipeline that ends in one, or a search whose best
estimator is one of these. x ↦ steps of the pipeline ↦ g_k(x) = w_k·x + b_k, or
Σ_i c_ki K(x, x_i) + b_k ↦ a label, by the sign, the largest score or votes. Of a regression g is
the prediction; a machine of one class predicts +1 where g ≥ 0, and −1 elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats, Integers, Labels, Matrix, MatrixLike, dense, refuse_partitions
from ..estimators.approximation import is_approximated
from ..estimators.base import CertifiedClassifier, CertifiedEstimator
from ..estimators.kernel_machine import KernelMachine
from ..estimators.linear import LinearClassifier
from ..estimators.linear_svc import LinearSVC
from ..estimators.linear_svr import LinearSVR
from ..estimators.one_class import OneClassSVM
from ..estimators.svc import SVC, NuSVC
from ..estimators.svr import SVR, NuSVR
from ..kernels import Kernel, Linear, Precomputed
from ..multiclass import Binary, Kesler, OneVsOne, Reduction
from .scaling import Scaling

# An estimator, a Pipeline or a search: scikit-learn has no types.
ModelLike: TypeAlias = Any
Scheme = Literal["binary", "ovr", "ovo", "joint", "one-class", "targets"]
SupportVectorMachine: TypeAlias = SVC | NuSVC | LinearSVC
SupportVectorRegression: TypeAlias = SVR | NuSVR | LinearSVR
AnyMachine: TypeAlias = SupportVectorMachine | SupportVectorRegression | OneClassSVM

SCHEMES: dict[type[Reduction], Scheme] = {Binary: "binary", OneVsOne: "ovo", Kesler: "joint"}
# Scores that differ by less than this, relative to the terms that they sum, are equal: to the
# precision of α; to that of the sum alone; and of machines whose margin is 1, relative to it.
SCORE_ROUNDING = 1e-12
SUM_ROUNDING = 4.0 * float(np.finfo(float).eps)
MARGIN_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Planes:
    """g_k(x) = w_k·x + b_k, w of shape (n_planes, n_features)."""

    w: Floats
    b: Floats

    def before(self, scaling: Scaling) -> Planes:
        """Return the planes in the space before a scaling of the features."""
        w = self.w * scaling.factor
        return Planes(w, self.b - w @ scaling.shift)


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """g_k(x) = Σ_i c_ki K(x, x_i) + b_k, c of shape (n_planes, n_support)."""

    kernel: Kernel
    vectors: Matrix
    coefficients: Floats
    b: Floats


class FittedModel:
    """A fitted estimator of maxmargin, in a pipeline or a search or by itself.

    Parameters
    ----------
    model : estimator, Pipeline or search

    Attributes
    ----------
    model : estimator or Pipeline
        What predicts: the best estimator of a search.
    steps : list of transformers
        The steps before the estimator, nested pipelines flattened.
    classifier : CertifiedEstimator
        Also a regression, or a machine of one class.

    Raises
    ------
    TypeError
        Where there is no estimator of maxmargin at the end.
    sklearn.exceptions.NotFittedError
        Where it is not fitted.
    """

    def __init__(self, model: ModelLike) -> None:
        self.model: ModelLike = getattr(model, "best_estimator_", model)
        self.steps, last = _unwrapped(self.model)
        if not isinstance(last, CertifiedEstimator):
            inner = hasattr(last, "regressor_")  # a TransformedTargetRegressor
            remedy = ": pass its regressor_, with the targets that it was given" if inner else ""
            raise TypeError(
                f"the model must be an estimator of maxmargin, or a Pipeline or search that ends "
                f"in one; got {type(last).__name__}{remedy}."
            )
        check_is_fitted(last)
        self.classifier: Any = last

    # Classes and tasks -----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The class of the estimator."""
        return type(self.classifier).__name__

    @property
    def has_classes(self) -> bool:
        """Whether this is a classifier."""
        return isinstance(self.classifier, CertifiedClassifier)

    @property
    def has_targets(self) -> bool:
        """Whether this is a regression."""
        return self.scheme == "targets"

    def require_classes(self, instead: str = "") -> None:
        """Raise TypeError where the model is not a classifier; ``instead`` is the remedy."""
        if not self.has_classes:
            remedy = f": {instead}" if instead else ""
            raise TypeError(f"the model must be a classifier, got {self.name}{remedy}.")

    @property
    def classes(self) -> Labels:
        """The labels, in the order of their codes; none of a regression."""
        if self.has_targets:
            return np.empty(0)
        labels = (-1, 1) if self.scheme == "one-class" else self.classifier.classes_
        return np.asarray(labels)

    @property
    def class_names(self) -> list[str]:
        """The labels as text."""
        if self.scheme == "one-class":
            return ["outlier", "inside"]
        return [str(label) for label in self.classes]

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes; those of one-class machines are outliers and others."""
        return len(self.classes) == 2

    @property
    def reduction(self) -> Reduction:
        """How the classes became tasks."""
        reduction: Reduction = self.classifier._reduction()
        return reduction

    @property
    def scheme(self) -> Scheme:
        """From scores to predictions.

        "binary": g ≥ 0 is the second class; "ovr" and "joint": the largest of one g per class;
        "ovo": one g per pair of classes (0, 1), (0, 2), …, positive for the first of them;
        "one-class": g ≥ 0 is inside, +1, not an outlier, −1; "targets": g is the prediction.
        """
        if not self.has_classes:
            return "one-class" if isinstance(self.classifier, OneClassSVM) else "targets"
        return SCHEMES.get(type(self.reduction), "ovr")

    @property
    def by_votes(self) -> bool:
        """Whether the most votes of pairs win, the first class among equals.

        A pair votes for its first class where g > 0. Otherwise the largest confidence wins
        (`OneVsOne.confidences`).
        """
        is_machine = isinstance(self.classifier, KernelMachine)
        return self.scheme == "ovo" and is_machine and not self.classifier.break_ties

    @property
    def shows_pairs(self) -> bool:
        """Whether decision_function returns one g per pair of classes."""
        shape = getattr(self.classifier, "decision_function_shape", "ovr")
        return self.scheme == "ovo" and shape == "ovo"

    @property
    def task_names(self) -> list[str]:
        """What each task of the fit separates, the class of y = +1 first."""
        if not self.has_classes:
            return [{"one-class": "the region", "targets": "the targets"}[self.scheme]]
        codes = np.arange(len(self.classes))
        return [task.name for task in self.reduction.tasks(codes, codes, self.class_names)]

    @property
    def plane_names(self) -> list[str]:
        """What each plane separates; the class of each weight vector found jointly."""
        return self.class_names if self.scheme == "joint" else self.task_names

    def codes(self, y: ArrayLike, n: int | None = None) -> Integers:
        """Return the class number of every label, of which there must be n."""
        refuse_partitions(y)
        labels = np.asarray(y).ravel()
        if n is not None and labels.size != n:
            raise ValueError(f"y has {labels.size} labels, X {n} rows: pass one label per row.")
        order = {label: code for code, label in enumerate(self.classes.tolist())}
        unknown = [label for label in np.unique(labels).tolist() if label not in order]
        if unknown:
            raise ValueError(
                f"y must hold classes of the model, {self.classes.tolist()}; got {unknown[0]!r}."
            )
        return np.array([order[label] for label in labels.tolist()], dtype=np.intp)

    # Features and scores ---------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """Columns that the model takes."""
        parts = [*self.steps, self.classifier]
        return next(int(part.n_features_in_) for part in parts if hasattr(part, "n_features_in_"))

    @property
    def feature_names(self) -> Sequence[str]:
        """The names of the features of the classifier, after the steps of the pipeline."""
        names = None
        if self.steps:
            try:
                names = self.model[:-1].get_feature_names_out()
            except (AttributeError, ValueError):  # a step without names
                names = None
        if names is None:
            names = getattr(self.classifier, "feature_names_in_", None)
        if names is None:
            return NumberedNames(self.classifier.n_features_in_)
        return [str(name) for name in names]

    def require_fitted_steps(self) -> None:
        """Raise NotFittedError where a step before the classifier is not fitted."""
        for step in self.steps:
            check_is_fitted(step)

    def transform(self, X: MatrixLike) -> MatrixLike:
        """Return the features of the classifier: X after all steps of the pipeline."""
        refuse_partitions(X)
        for step in self.steps:
            X = step.transform(X)
        return X

    def scores(self, X: MatrixLike) -> Floats:
        """Return g of every plane, (n, n_planes)."""
        scores: Floats = self.classifier._scores(self.transform(X))
        return scores

    @property
    def epsilon(self) -> float | None:
        """Half the width of the tube of a regression, None of other models or where unknown."""
        if not self.has_targets:
            return None
        clf = self.classifier
        if not getattr(clf, "certificates_", None):  # from another program, whose file lacks it
            return None
        return float(clf.epsilon_ if hasattr(clf, "epsilon_") else clf.epsilon)

    def predict(self, X: MatrixLike) -> Integers:
        """Return the class number that the model gives to each row."""
        refuse_partitions(X)
        return self.codes(self.model.predict(X))

    def is_constant(self, features: MatrixLike, scores: Floats) -> bool:
        """Say whether w of all planes is 0 to rounding, so that no score depends on x.

        Parameters
        ----------
        features : array or CSR matrix of shape (n, d)
            Features of the classifier.
        scores : ndarray of shape (n, n_planes)
            Their scores.
        """
        if len(scores) < 2:
            return False
        dual = getattr(self.classifier, "dual_coef_", None)
        if dual is None or isinstance(self.kernel, Precomputed):
            terms = np.abs(scores).max(axis=0)
        else:
            rows = features if hasattr(features, "tocsr") else np.asarray(features, dtype=float)
            terms = abs(dual).sum() * np.abs((self.kernel or Linear()).diagonal(rows)).max()
        return self.are_equal(scores, terms)

    def are_equal(self, scores: Floats, terms: Floats | float) -> bool:
        """Say whether the scores of each plane differ by no more than rounding.

        Where features are large, Σ|α_i| K(x_i, x_i) is so much larger than the margin that a share
        of it says nothing: g may be far from constant all the same.

        Parameters
        ----------
        scores : ndarray of shape (n, n_planes)
        terms : float or ndarray of shape (n_planes,)
            The size of the terms that are summed.
        """
        spread, near = np.ptp(scores, axis=0), SCORE_ROUNDING * terms
        if isinstance(self.classifier, SVC | LinearSVC):
            near = np.minimum(near, MARGIN_ROUNDING)
        if self.kernel is not None:  # w is summed from α
            near = np.maximum(near, SUM_ROUNDING * terms)
        return bool((spread <= near).all())

    # Planes, kernel and support vectors ------------------------------------------------------

    @property
    def is_support_vector_machine(self) -> bool:
        """Whether |g| = 1 is a margin."""
        return isinstance(self.classifier, SupportVectorMachine)

    @property
    def is_any_machine(self) -> bool:
        """Whether this is a support vector machine for classes, targets or one class."""
        return isinstance(self.classifier, AnyMachine)

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, None of a model without one."""
        return getattr(self.classifier, "kernel_", None)

    @property
    def is_linear(self) -> bool:
        """Whether the classifier has planes in the space of its features."""
        linear = isinstance(self.classifier, (LinearClassifier, LinearSVR))
        return linear or (isinstance(self.kernel, Linear) and not self.is_approximated)

    @property
    def is_approximated(self) -> bool:
        """Whether a machine was fitted to features of its kernel, and has no support vectors."""
        return is_approximated(self.classifier)

    def refuse_approximation(self, what: str) -> None:
        """Raise TypeError where a machine has no sum over support vectors."""
        if self.is_approximated:
            raise TypeError(
                f"{what} needs support vectors, got {self.name}(approximate="
                f"{self.classifier.approximate!r}), which has none: use approximate=None."
            )

    @property
    def is_plane(self) -> bool:
        """Whether this is a support vector machine without a kernel."""
        return isinstance(self.classifier, (LinearSVC, LinearSVR))

    @property
    def W(self) -> Floats:
        """The weights of a linear model, (n_planes, n_features)."""
        return np.atleast_2d(dense(self.classifier.coef_))

    @cached_property
    def decision(self) -> Planes | KernelExpansion:
        """The functions g_k of the classifier."""
        self.refuse_approximation("a sum over kernel values")
        clf = self.classifier
        b = np.asarray(clf.intercept_, dtype=np.float64)
        if self.is_linear:
            return Planes(self.W, b)
        coefficients = self.coefficients
        if not coefficients.shape[1]:  # a kernel perceptron without a mistake
            return Planes(np.zeros((b.size, clf.n_features_in_)), b)
        return KernelExpansion(clf.kernel_, clf.support_vectors_, coefficients, b)

    @property
    def support(self) -> Integers | None:
        """The rows of the training data that are support vectors, None of a model without."""
        if self.is_approximated:
            return None
        return getattr(self.classifier, "support_", None)

    @property
    def support_codes(self) -> Integers:
        """The class number of every support vector of SVC and NuSVC: they come class by class."""
        return np.repeat(np.arange(len(self.classes)), self.classifier.n_support_)

    @property
    def coefficients(self) -> Floats:
        """α y of every task and support vector, (n_tasks, n_support)."""
        dual = dense(self.classifier.dual_coef_)
        if self.scheme != "ovo" or not isinstance(self.classifier, KernelMachine):
            return dual
        # LIBSVM's layout: a vector of class i has α y of the pair (i, j) in row j, or j − 1 > i.
        codes, pairs = self.support_codes, OneVsOne.pairs(len(self.classes))
        return np.array(
            [np.select([codes == i, codes == j], [dual[j - 1], dual[i]], 0.0) for i, j in pairs]
        )

    @property
    def support_alpha(self) -> Floats:
        """The largest α of every support vector over all tasks."""
        alpha: Floats = np.abs(dense(self.classifier.dual_coef_)).max(axis=0, initial=0.0)
        return alpha

    def alpha(self, n: int) -> Floats:
        """Return the largest α of each of n training rows over all tasks."""
        alpha = np.zeros(n)
        alpha[self.support] = self.support_alpha
        return alpha


def _unwrapped(model: ModelLike) -> tuple[list[Any], Any]:
    """Return the transformers of a pipeline, nested ones flattened, and what comes last."""
    if not isinstance(model, Pipeline):
        return [], model
    steps = [inner for _, step in model.steps[:-1] for inner in _transformers(step)]
    more, last = _unwrapped(model.steps[-1][1])
    return [*steps, *more], last


def _transformers(step: Any) -> list[Any]:
    if isinstance(step, Pipeline):
        return [inner for _, part in step.steps for inner in _transformers(part)]
    return [] if step in (None, "passthrough") else [step]


class NumberedNames(Sequence[str]):
    """x0, x1, … for features without names; nothing is stored, for there may be millions.

    >>> list(NumberedNames(10**9)[:2])
    ['x0', 'x1']
    """

    def __init__(self, n: int) -> None:
        self.numbers = range(n)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> list[str]: ...
    def __getitem__(self, k: int | slice) -> str | list[str]:
        if isinstance(k, slice):
            return [f"x{j}" for j in self.numbers[k]]
        return f"x{self.numbers[k]}"
