"""What kernel machines share: their parameters, support vectors and scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args

from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from .. import validation
from ..arrays import Floats, Integers, Matrix, MatrixLike, container, on_host
from ..certificates import MarginCertificate
from ..engines.registry import kernel_scores, received
from ..kernels import KERNELS, Custom, Kernel, Linear, Precomputed
from ..progress import Callback
from ..runtime.threads import at_most
from ..solvers.dual.choice import Solver
from .base import CertifiedEstimator, Constraints, Gamma, KernelLike, check_fitted, with_kernel
from .device import DEVICE, device_for_prediction
from .expansion import Expansion
from .saved import MACHINE, Saved
from .training import Training


class KernelMachine(CertifiedEstimator[MarginCertificate]):
    """What kernel machines share: parameters, support vectors and scores."""

    kernel: KernelLike
    gamma: Gamma
    degree: int
    coef0: float
    solver: Solver
    tol: float
    cache_size: Literal["auto"] | float
    max_iter: int
    time_limit: float | None
    warm_start: bool
    shrinking: bool
    n_jobs: int | None
    callback: Callback | None
    verbose: bool | int
    device: str

    support_: Integers
    support_vectors_: Matrix
    n_support_: Integers
    dual_coef_: Matrix
    intercept_: Floats
    kernel_: Kernel
    fit_status_: int
    shape_fit_: tuple[int, int]
    # α, scores and their bounds of each task, for a warm start on the same numbers.
    _memory: list[tuple[Floats, Floats | None, Floats | None]] | None
    _fitted_on: bytes | None
    _objects: Sequence[object] | None

    _saved: ClassVar[Saved] = MACHINE
    _parameter_constraints: ClassVar[Constraints] = {
        "kernel": [StrOptions(KERNELS.keys()), callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "solver": [StrOptions(set(get_args(Solver)))],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "shrinking": ["boolean"],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "device": DEVICE,
    }

    @abstractmethod
    def _check(
        self, X: MatrixLike, y: Any, sample_weight: ArrayLike | None, *, reset: bool
    ) -> Training:
        """Return the checked data of a fit."""

    def _compute_scores(self, X: MatrixLike) -> Any:
        check_fitted(self)
        device = device_for_prediction(self)
        with at_most(self.n_jobs):
            X = self._check_new_data(received(X, device))
            planes = self._expansion
            scores = kernel_scores(self, planes, self.intercept_, X, device)
            return planes.scores(on_host(X)) + self.intercept_ if scores is None else scores

    def _check_new_data(self, X: MatrixLike) -> Matrix:
        if self._objects is not None and callable(self.kernel):
            X = self.kernel(X, self._objects)
        X = validation.check_new_data(self, X)
        dense = not sparse.issparse(self.support_vectors_)
        if container(X).sparse and dense and not isinstance(self.kernel_, Custom):
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
        if not isinstance(self.kernel_, Linear) or "feature_coef_" in vars(self):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._expansion.planes()
        # Writing to it would have no effect on predictions: refuse it.
        (coef.data if sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    @property
    def _of_pairs(self) -> bool:
        """Whether there is a plane for every pair of more than two classes."""
        return False

    def __sklearn_tags__(self) -> Any:
        return with_kernel(super().__sklearn_tags__(), self.kernel)
