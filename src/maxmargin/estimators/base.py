"""What all estimators share: fit, prediction by scores, and the properties of a fitted model."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context
from sklearn.utils import get_tags
from sklearn.utils._param_validation import make_constraint
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import validation
from ..arrays import Floats, Labels, MatrixLike
from ..engines.registry import host_array, is_partitioned
from ..geometry import Hyperplane
from ..kernels import Kernel, Precomputed
from ..kernels.namespace import as_numbers
from ..multiclass import Reduction, reduction_for
from ..runtime.threads import at_most
from ..runtime.vectors import in_slices
from ..solution import Status, Trace
from . import fitting
from .by_blocks import accuracy, by_blocks, determination
from .callbacks import CallbackSupportMixin
from .claims import Proof
from .device import answered
from .fitting import Method
from .notebook import NotebookMixin
from .saved import Saved
from .training import ClassWeight, RandomState, Training, weighted

Constraints = dict[str, list[Any]]
KernelLike = str | Callable[..., ArrayLike] | Kernel
Gamma = Literal["scale", "auto"] | float
Function = TypeVar("Function", bound=Callable[..., Any])


def validated(fit: Function) -> Function:
    """Check the parameters before a fit, with the types of the method kept for type checkers."""
    return cast(Function, _fit_context(prefer_skip_nested_validation=True)(fit))


def available(check: Callable[[Any], bool]) -> Callable[[Function], Function]:
    """Offer a method where ``check(estimator)`` is true, with its types kept."""
    return cast(Callable[[Function], Function], available_if(check))


class CertifiedEstimator(
    NotebookMixin, CallbackSupportMixin, BaseEstimator, Generic[Proof], metaclass=ABCMeta
):
    """An estimator whose every fit is certified."""

    n_features_in_: int
    feature_names_in_: Labels
    certificates_: list[Proof]
    statuses_: list[Status]
    traces_: list[Trace | None]
    n_updates_: int
    fit_report_: Any

    _parameter_constraints: ClassVar[Constraints] = {}
    # Fitted attributes that a file keeps.
    _saved: ClassVar[Saved]
    # The measure of a certificate by which the worst of several is found.
    _ranked_by: ClassVar[str] = "violation"

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters, read from the constructor once."""
        names: list[str] = super()._get_param_names()
        return names

    def _validate_params(self) -> None:
        """Check the parameters that are not the default."""
        for name, default, constraints in _parameters(type(self)):
            value = getattr(self, name)
            if value is not default and not any(c.is_satisfied_by(value) for c in constraints):
                super()._validate_params()  # raises
                return

    @abstractmethod
    def _method(self) -> Method[Any, Any, Proof]:
        """Return what this estimator is, made from its parameters for one fit."""

    @abstractmethod
    def _compute_scores(self, X: MatrixLike) -> Any:
        """Return the scores of new data, (n, n_planes), on the device where they are computed."""

    def _scores(self, X: MatrixLike) -> Floats:
        """Return the scores of new data, (n, n_planes), as an array of NumPy."""
        scores: Floats = host_array(self._compute_scores(X))
        return scores

    @property
    def certificate_(self) -> Proof:
        """The certificate of the task that is furthest from its claim."""
        return self.certificates_[self._worst()]

    @property
    def status_(self) -> Status:
        """Which rule ended the task with the worst certificate."""
        return self.statuses_[self._worst()]

    @property
    def trace_(self) -> Trace:
        """The trace of the task that took the most iterations."""
        return max((trace for trace in self.traces_ if trace is not None), key=len)

    def _worst(self) -> int:
        """Return the number of the task with the worst certificate."""
        check_fitted(self)
        return int(np.argmax([getattr(each, self._ranked_by) for each in self.certificates_]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class CertifiedClassifier(ClassifierMixin, CertifiedEstimator[Proof]):
    """A classifier whose every fit is certified."""

    classes_: Labels
    _reduced_by: str

    @validated
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the plane, or the planes of several classes, and certify the result.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            Training samples. float32 and float64 are used as they are, without a copy. The rows of
            a Dask array or frame stay on the workers; estimators that cannot be fitted to
            partitions refuse it.
        y : array-like or Dask collection of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Weights of at least 0, not all of them 0: a sample of weight 0 does not count. Negative
            weights raise ValueError; SVC and NuSVC leave such samples out, as scikit-learn's do.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        fitting.fit(self, self._method(), X, y, sample_weight)
        return self

    @by_blocks
    def predict(self, X: MatrixLike) -> Labels:
        """Return the class of each row; on the plane itself it is the positive (second) class.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        labels : ndarray or dask.array of shape (n_samples,)
            Predicted classes.
        """
        return answered(self._predicted(X), X)

    def _predicted(self, X: MatrixLike) -> Labels:
        """Return the class of each row as an array of NumPy."""
        scores = self._compute_scores(X)
        if not isinstance(scores, np.ndarray):
            return self.classes_[host_array(self._chosen(scores))]
        labels = np.empty(len(scores), dtype=self.classes_.dtype)

        def decide(some: slice) -> None:
            labels[some] = self.classes_[self._chosen(scores[some])]

        with at_most(getattr(self, "n_jobs", None)):
            in_slices(decide, len(scores), float(scores.shape[1]))
        return labels

    def _chosen(self, scores: Any) -> Any:
        """Return the number of the class that the scores of each row are for."""
        if len(self.classes_) == 2:
            return as_numbers(scores[:, 0] >= 0)
        return self._reduction().confidences(scores, len(self.classes_)).argmax(1)

    @by_blocks
    def decision_function(self, X: MatrixLike) -> Floats:
        """Return g(x), the score of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        scores : ndarray or dask.array of shape (n_samples,) or (n_samples, n_classes)
            g(x) of two classes, one confidence per class of more. For "ovo" these are votes plus a
            fraction from the scores, as of scikit-learn's SVC.
        """
        scores = self._compute_scores(X)
        if len(self.classes_) == 2:
            return answered(scores[:, 0], X)
        return answered(self._reduction().confidences(scores, len(self.classes_)), X)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy: the share of rows whose class is the predicted one.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            Samples.
        y : array-like or Dask collection of shape (n_samples,)
            Their labels.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        if is_partitioned(X):
            return accuracy(self, X, y, sample_weight)
        predicted, y, sample_weight = self._predicted(X), host_array(y), host_array(sample_weight)
        numbers = predicted.dtype.kind in "biuf"
        if sample_weight is None and numbers and validation.are_plain_labels(y, len(predicted)):
            return float((predicted == y).mean())  # without a search for the kinds of labels
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    @property
    def hyperplane_(self) -> Hyperplane:
        """The plane of a two-class model with a linear kernel or without a kernel."""
        check_fitted(self)
        coef, intercept = self.coef_, self.intercept_  # type: ignore[attr-defined]
        coef = coef.toarray() if sparse.issparse(coef) else coef
        if len(coef) != 1:
            raise AttributeError(
                f"{len(coef)} planes, not one: hyperplane_ is for two classes. "
                "Rows of coef_ and intercept_ hold the planes of several."
            )
        return Hyperplane(coef[0], float(intercept[0]))

    def _reduction(self) -> Reduction:
        """Return how the classes of the last fit were reduced to tasks."""
        return reduction_for(self._reduced_by, len(self.classes_))


class CertifiedRegressor(RegressorMixin):
    """The score of a regression."""

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination R² of the predicted targets.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            Samples.
        y : array-like or Dask collection of shape (n_samples,)
            Their targets.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        r2 : float
            At most 1; 0 of the mean of y as the answer to everything.
        """
        if is_partitioned(X):
            return determination(self, X, y, sample_weight)
        from sklearn.metrics import r2_score

        y, predicted = host_array(y), host_array(self.predict(X))  # type: ignore[attr-defined]
        return float(r2_score(y, predicted, sample_weight=host_array(sample_weight)))


def check_fitted(model: CertifiedEstimator[Any]) -> None:
    """Raise scikit-learn's NotFittedError before a first fit."""
    if not fitting.is_fitted(model):
        check_is_fitted(model)


@cache
def _parameters(kind: type[BaseEstimator]) -> list[tuple[str, object, list[Any]]]:
    """Return the parameters of a class of estimators: name, default and constraints."""
    # A subclass need not name the parameters in its constructor.
    defaults = {name: each.default for name, each in signature(kind).parameters.items()}
    declared = kind._parameter_constraints
    return [
        (
            name,
            defaults.get(name, Parameter.empty),
            [make_constraint(each) for each in declared[name]],
        )
        for name in kind._get_param_names()
        if name in declared
    ]


def check_training(
    model: CertifiedClassifier[Any],
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    reset: bool,
    class_weight: ClassWeight,
    random_state: RandomState = None,
) -> Training:
    """Return the checked data of a fit."""
    X, labels = validation.check_training_data(
        model, X, y, reset=reset, accept_sparse=sparse_allowed(model, X)
    )
    return weighted(X, labels, sample_weight, class_weight, random_state)


def sparse_allowed(model: CertifiedEstimator[Any], X: MatrixLike) -> bool:
    """Return whether X is dense, or may be sparse."""
    return not sparse.issparse(X) or bool(get_tags(model).input_tags.sparse)


def with_kernel(tags: Any, kernel: object) -> Any:
    """Return scikit-learn's tags of an estimator with this kernel: given values are dense."""
    tags.input_tags.pairwise = kernel == "precomputed" or isinstance(kernel, Precomputed)
    tags.input_tags.sparse = not tags.input_tags.pairwise
    return tags
