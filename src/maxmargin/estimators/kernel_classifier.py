"""What SVC and NuSVC share beyond other kernel machines: classes and their predictions."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import StrOptions

from ..arrays import Floats, Labels, MatrixLike
from ..certificates import MarginCertificate
from ..engines.registry import host_array
from ..kernels.namespace import array_namespace
from ..multiclass import OneVsOne
from . import probability
from .base import CertifiedClassifier, Constraints, available, check_fitted, check_training
from .by_blocks import by_blocks
from .device import answered
from .kernel_machine import KernelMachine
from .probability import asks_for_probabilities
from .saved import CLASSES, MACHINE, Saved
from .training import ClassWeight, RandomState, Training


def _offers_probabilities(model: KernelClassifier) -> bool:
    if not asks_for_probabilities(model.probability):
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class KernelClassifier(CertifiedClassifier[MarginCertificate], KernelMachine):
    """What SVC and NuSVC share: parameters, classes and predictions."""

    class_weight: ClassWeight
    multi_class: Literal["ovo", "ovr", "crammer_singer"]
    decision_function_shape: Literal["ovr", "ovo"]
    break_ties: bool
    random_state: RandomState
    probability: bool | Literal["deprecated"]

    probA_: Floats  # noqa: N815
    probB_: Floats  # noqa: N815
    n_iter_: NDArray[np.int32]
    class_weight_: Floats

    _saved: ClassVar[Saved] = MACHINE._replace(
        always=(*MACHINE.always, *CLASSES),
        sometimes=(*MACHINE.sometimes, "separates_", "class_weight_", "probA_", "probB_"),
        added=(*MACHINE.added, "probability"),
    )
    _parameter_constraints: ClassVar[Constraints] = {
        **KernelMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
        "probability": ["boolean", StrOptions({"deprecated"})],
    }

    @by_blocks
    def predict(self, X: MatrixLike) -> Labels:
        """Return the class of each row: by votes for "ovo", else by the largest g.

        Equal votes go to the first class, or with ``break_ties=True`` to the one of the largest
        confidence. On the plane itself the answer is the second class, of a pair too.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        labels : ndarray or dask.array of shape (n_samples,)
            Predicted classes.
        """
        return answered(self._predicted(X), X)

    def _predicted(self, X: MatrixLike) -> Labels:
        check_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return self.classes_[host_array(self._chosen(self._compute_scores(X)))]

    def _chosen(self, scores: Any) -> Any:
        reduction = self._reduction()
        if isinstance(reduction, OneVsOne) and not self.break_ties:
            return reduction.votes(scores > 0, len(self.classes_)).argmax(1)
        return super()._chosen(scores)

    @by_blocks
    def decision_function(self, X: MatrixLike) -> Floats:
        """Return g(x), the score of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes) or (n_samples, n_pairs)
            g(x) of two classes. Of more, by ``decision_function_shape``: "ovr" is one confidence
            per class, for "ovo" machines votes plus a fraction from the scores; "ovo" is g of every
            pair of classes, positive for the first of them.
        """
        return answered(self._decisions(self._compute_scores(X)), X)

    def _decisions(self, scores: Any) -> Any:
        """Return what `decision_function` makes of the scores of all planes."""
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self.decision_function_shape == "ovo" and self._of_pairs:
            return scores
        return self._reduction().confidences(scores, len(self.classes_))

    @available(_offers_probabilities)
    @by_blocks
    def predict_proba(self, X: MatrixLike) -> Floats:
        """Return the probability of each class, where ``probability=True``.

        They come from sigmoids of the scores, fitted to scores of samples left out (five folds), so
        that the class of the largest probability may differ from that of ``predict``. Of a few
        samples they mean little.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        probabilities : ndarray or dask.array of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``; rows sum to 1.
        """
        check_fitted(self)
        if not hasattr(self, "probA_"):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        return answered(self._probabilities(X), X)

    def _probabilities(self, X: MatrixLike) -> Floats:
        return probability.probabilities(
            self._scores(X), self.probA_, self.probB_, len(self.classes_), self._of_pairs
        )

    @available(_offers_probabilities)
    @by_blocks
    def predict_log_proba(self, X: MatrixLike) -> Floats:
        """Return the logarithm of the probability of each class, where ``probability=True``.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        logarithms : ndarray or dask.array of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        probabilities = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return array_namespace(probabilities).log(probabilities)

    @property
    def _of_pairs(self) -> bool:
        return isinstance(self._reduction(), OneVsOne)

    def _check(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
    ) -> Training:
        return check_training(
            self,
            X,
            y,
            sample_weight,
            reset=reset,
            class_weight=self.class_weight,
            random_state=self.random_state,
        )
