"""What SVC and NuSVC share: their parameters, support vectors and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from .. import validation
from ..arrays import Floats, Integers, Labels, Matrix, MatrixLike
from ..certificates import MarginCertificate
from ..kernels import KERNELS, Custom, Kernel, Linear, Precomputed
from ..multiclass import OneVsOne
from ..progress import Callback
from ..runtime.threads import at_most
from ..solvers.dual.choice import Solver
from .base import CertifiedClassifier, Constraints, Gamma, KernelLike, check_fitted, with_kernel
from .expansion import Expansion
from .saved import COUNTS, EXPANSION, Saved
from .training import ClassWeight, RandomState


class KernelMachine(CertifiedClassifier[MarginCertificate]):
    """What SVC and NuSVC share: parameters, support vectors and predictions."""

    kernel: KernelLike
    gamma: Gamma
    degree: int
    coef0: float
    solver: Solver
    tol: float
    cache_size: Literal["auto"] | float
    class_weight: ClassWeight
    max_iter: int
    time_limit: float | None
    warm_start: bool
    multi_class: Literal["ovo", "ovr"]
    decision_function_shape: Literal["ovr", "ovo"]
    break_ties: bool
    shrinking: bool
    n_jobs: int | None
    callback: Callback | None
    verbose: bool | int
    random_state: RandomState

    support_: Integers
    support_vectors_: Matrix
    n_support_: Integers
    dual_coef_: Matrix
    intercept_: Floats
    kernel_: Kernel
    fit_status_: int
    n_iter_: NDArray[np.int32]
    shape_fit_: tuple[int, int]
    class_weight_: Floats
    # α, scores and their bounds of each task, for a warm start on the same numbers.
    _memory: list[tuple[Floats, Floats | None, Floats | None]] | None
    _fitted_on: bytes | None
    _objects: Sequence[object] | None

    _saved: ClassVar[Saved] = Saved(
        (*EXPANSION, "n_support_", "shape_fit_"),
        (*COUNTS, "class_weight_", "fit_status_", "_fitted_with"),
        ("_memory", "_fitted_on", "_objects"),
    )
    _parameter_constraints: ClassVar[Constraints] = {
        "kernel": [StrOptions(KERNELS.keys()), callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "solver": [StrOptions(set(get_args(Solver)))],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "shrinking": ["boolean"],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def predict(self, X: MatrixLike) -> Labels:
        """Return the class of each row: by votes for "ovo", by the largest g for "ovr".

        Equal votes go to the first class, or with ``break_ties=True`` to the one of the largest
        confidence. On the plane itself the answer is the second class, of a pair too.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Predicted classes.
        """
        check_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return self.classes_[(scores[:, 0] >= 0).astype(int)]
        reduction = self._reduction()
        if isinstance(reduction, OneVsOne) and not self.break_ties:
            won = np.where(scores > 0, 1.0, -1.0)
            return self.classes_[reduction.votes(won, len(self.classes_)).argmax(1)]
        return self.classes_[reduction.confidences(scores, len(self.classes_)).argmax(1)]

    def decision_function(self, X: MatrixLike) -> Floats:
        """Return g(x), the score of each row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes) or (n_samples, n_pairs)
            g(x) of two classes. Of more, by ``decision_function_shape``: "ovr" is one confidence
            per class, for "ovo" machines votes plus a fraction from the scores; "ovo" is g of every
            pair of classes, positive for the first of them.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self.decision_function_shape == "ovo" and self._of_pairs:
            return scores
        return self._reduction().confidences(scores, len(self.classes_))

    def _scores(self, X: MatrixLike) -> Floats:
        """Return g of every plane, (n, n_planes)."""
        with at_most(self.n_jobs):
            X = self._check_new_data(X)
            return self._expansion.scores(X) + self.intercept_

    def _check_new_data(self, X: MatrixLike) -> Matrix:
        check_fitted(self)
        if self._objects is not None and callable(self.kernel):
            X = self.kernel(X, self._objects)
        X = validation.check_new_data(self, X)
        dense = not sparse.issparse(self.support_vectors_)
        if sparse.issparse(X) and dense and not isinstance(self.kernel_, Custom):
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data: pass "
                "X.toarray()."
            )
        if isinstance(self.kernel_, Precomputed) and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, the number of "
                "samples at training time"
            )
        return X

    @property
    def _expansion(self) -> Expansion:
        return Expansion(
            self.kernel_,
            self.support_,
            self.support_vectors_,
            self.n_support_,
            self.dual_coef_,
            self._of_pairs,
        )

    @property
    def coef_(self) -> Matrix:
        """The planes of a linear kernel, one per row."""
        check_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._expansion.planes()
        # Writing to it would have no effect on predictions: refuse it.
        (coef.data if sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    @property
    def _of_pairs(self) -> bool:
        """Whether there is a plane for every pair of more than two classes."""
        return isinstance(self._reduction(), OneVsOne)

    def __sklearn_tags__(self) -> Any:
        return with_kernel(super().__sklearn_tags__(), self.kernel)
