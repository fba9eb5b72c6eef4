"""The kernel perceptron as a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .. import validation
from ..arrays import Floats, Integers, Matrix, MatrixLike, on_host
from ..certificates import SeparationCertificate
from ..engines.base import Precision
from ..engines.registry import kernel_scores, received
from ..kernels import KERNELS, Kernel, Linear, Precomputed, resolve
from ..kernels.mercer import check_precomputed, warn_if_indefinite
from ..multiclass import Task
from ..problems import KernelSeparationProblem
from ..progress import Callback, Progress
from ..solution import Solution
from .base import (
    CertifiedClassifier,
    Constraints,
    Gamma,
    KernelLike,
    check_fitted,
    check_training,
    with_kernel,
)
from .claims import Separates
from .device import DEVICE, device_for_prediction
from .documentation import documented
from .expansion import Expansion
from .fitting import Attributes, Method, Work
from .saved import CLASSES, COUNTS, EXPANSION, Saved
from .training import ClassWeight, RandomState, Training


class DualStart(NamedTuple):
    """α and b to begin with."""

    alpha: Floats
    b: float


@documented
class KernelPerceptron(CertifiedClassifier[SeparationCertificate]):
    """The perceptron in dual form, with any kernel.

    y_m (Σ_l α_l y_l K(x_l, x_m) + b) ≤ 0 ⇒ α_m += 1, b += η y_m R², R² = max K(x, x).
    α counts mistakes; with the linear kernel and η = 1 they are those of
    ``Perceptron(bias="radius")`` with the same ``shuffle`` and ``random_state``, in the same order.

    Parameters
    ----------
    {{ kernel }}
    gamma : "scale", "auto" or float, default="scale"
        γ of rbf, poly and sigmoid: 1/(d·Var X), 1/d, or the number itself.
    sigma : float, optional
        Width of the Gaussian, γ = 1/2σ²: the other spelling of gamma.
    {{ degree }}
    {{ coef0 }}
    learning_rate : float, default=1.0
        η, what the bias moves by, in R².
    {{ fit_intercept }}
    multi_class : {"ovr", "ovo"}, default="ovr"
        One expansion per class against the rest, or one per pair of classes.
    {{ shuffle }}
    {{ passes }}
    {{ class_weight }}
    warm_start : bool, default=False
        Start at the α of the last fit, on the same samples.
    random_state : int, RandomState or None, default=0
        For ``shuffle``: the same number makes the same fit; None takes another one every time.
    {{ callback }}
    {{ verbose }}
    {{ device }}

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Rows of X on which some task made a mistake.
    support_vectors_ : array or CSR matrix of shape (n_support, n_features)
        Those rows (empty for a precomputed kernel).
    n_support_ : int
        Number of support vectors.
    dual_coef_ : ndarray of shape (n_planes, n_support)
        α y of each task.
    intercept_ : ndarray of shape (n_planes,)
        b of each task.
    kernel_ : Kernel
        The kernel with its parameters resolved.
    coef_ : ndarray of shape (n_planes, n_features)
        w of each task, of the linear kernel only.
    hyperplane_ : Hyperplane
        The plane of two classes, of the linear kernel only.
    n_iter_ : int
        Passes of the longest task.
    {{ separates }}
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    Perceptron : The same rule in the space of X.
    SVC : The plane of the largest margin.

    Notes
    -----
    A weight v is v visits in succession.

    References
    ----------
    Aizerman, Braverman, Rozonoer (1964); Cristianini, Shawe-Taylor (2000), section 2.1.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> model = mm.KernelPerceptron(kernel="poly", degree=2, coef0=1.0, gamma=1.0).fit(X, y)
    >>> print(model.separates_, model.predict(X))
    True [ 1 -1  1 -1]
    """

    support_: Integers
    support_vectors_: Matrix
    dual_coef_: Floats
    intercept_: Floats
    kernel_: Kernel
    n_iter_: int
    separates_: bool
    _linear_coef: Floats | None
    _n_rows: int

    _takes_partitions: ClassVar[bool] = False
    _saved: ClassVar[Saved] = Saved(
        (*EXPANSION, *CLASSES, "_linear_coef", "_n_rows"), COUNTS, added=("device",)
    )
    _parameter_constraints: ClassVar[Constraints] = {
        "kernel": [StrOptions(KERNELS.keys()), callable, Kernel],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "sigma": [Interval(Real, 0, None, closed="neither"), None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "multi_class": [StrOptions({"ovr", "ovo"})],
        "shuffle": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "device": DEVICE,
    }

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "scale",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        learning_rate: float = 1.0,
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo"] = "ovr",
        shuffle: bool = True,
        max_iter: int = 1000,
        class_weight: ClassWeight = None,
        warm_start: bool = False,
        random_state: RandomState = 0,
        callback: Callback | None = None,
        verbose: bool | int = False,
        device: str = "auto",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.device = device

    @property
    def n_support_(self) -> int:
        """Number of support vectors."""
        return len(self.support_)

    @property
    def coef_(self) -> Floats:
        """The planes of a linear kernel."""
        check_fitted(self)
        if self._linear_coef is None:
            raise AttributeError("coef_ is only available with kernel='linear'.")
        return self._linear_coef

    def _method(self) -> Method[KernelSeparationProblem, DualStart, SeparationCertificate]:
        return Method(
            name="KernelPerceptron",
            check=partial(
                check_training,
                self,
                class_weight=self.class_weight,
                random_state=self.random_state,
            ),
            multi_class=self.multi_class,
            begin=self._begin,
            resume=self._last_alpha,
            claims=Separates(),
            max_iter=self.max_iter,
            warm_start=self.warm_start,
            callback=self.callback,
            verbose=self.verbose,
        )

    def _begin(
        self, training: Training, tasks: list[Task]
    ) -> Work[KernelSeparationProblem, DualStart, SeparationCertificate]:
        from ..engines.registry import engine_for
        from ..solvers.separating.kernel_perceptron import DualPerceptron

        kernel = resolve(
            self.kernel, gamma=self.gamma, sigma=self.sigma, degree=self.degree,
            coef0=self.coef0, X=training.counted,
        )  # fmt: skip
        if isinstance(kernel, Precomputed):
            check_precomputed(training.X)
            warn_if_indefinite(kernel, training.X)
        precision: Precision = "fast" if training.X.dtype == np.float32 else "exact"
        everything = engine_for(training.X).gram(kernel, precision=precision)

        def pose(task: Task) -> KernelSeparationProblem:
            diagonal = everything.diagonal()[task.rows]
            step = float(self.learning_rate * diagonal.max()) if self.fit_intercept else 0.0
            return KernelSeparationProblem(
                kernel, training.X, task.labels, task.rows, training.weights[task.rows], step
            )

        def solve(
            problem: KernelSeparationProblem,
            start: DualStart | None,
            progress: Progress,
            max_iter: int,
        ) -> Solution:
            whole = problem.index.size == training.X.shape[0]
            gram = everything if whole else everything.restrict(problem.index)
            if gram.fits:
                gram.whole()
            solver = DualPerceptron(gram, max_iter, training.task_rng() if self.shuffle else None)
            if start is None:
                return solver.solve(problem, np.zeros(problem.index.size), 0.0, progress)
            return solver.solve(problem, start.alpha[problem.index], start.b, progress)

        return Work(pose, solve, partial(_attributes, kernel, training))

    def _last_alpha(self, training: Training, tasks: list[Task]) -> list[DualStart]:
        """Return where a warm start begins."""
        n = training.X.shape[0]
        if n != self._n_rows:
            raise ValueError(
                f"warm_start=True with {n} samples after {self._n_rows}: the dual "
                "variables belong to the samples. Use warm_start=False or the same samples."
            )
        starts = []
        for coefficients, b in zip(self.dual_coef_, self.intercept_, strict=True):
            alpha = np.zeros(n)
            alpha[self.support_] = np.abs(coefficients)
            starts.append(DualStart(alpha, float(b)))
        return starts

    def _compute_scores(self, X: MatrixLike) -> Any:
        check_fitted(self)
        device = device_for_prediction(self)
        X = validation.check_new_data(self, received(X, device))
        planes = self._expansion
        scores = kernel_scores(self, planes, self.intercept_, X, device)
        return planes.scores(on_host(X)) + self.intercept_ if scores is None else scores

    @property
    def _expansion(self) -> Expansion:
        counts = np.array([self.n_support_])
        return Expansion(
            self.kernel_, self.support_, self.support_vectors_, counts, self.dual_coef_, False
        )

    def __sklearn_tags__(self) -> Any:
        return with_kernel(super().__sklearn_tags__(), self.kernel)


def _attributes(
    kernel: Kernel, training: Training, tasks: Sequence[Task], solutions: Sequence[Solution]
) -> Attributes:
    X = training.X
    coefficients = np.zeros((len(tasks), X.shape[0]))
    for k, (task, solution) in enumerate(zip(tasks, solutions, strict=True)):
        coefficients[k, task.rows] = solution.alpha * task.labels
    support = np.flatnonzero(coefficients.any(axis=0))
    # By rows, as a file has them: sums of products are then the same to the last bit.
    dual = np.ascontiguousarray(coefficients[:, support])
    return {
        "kernel_": kernel,
        "support_": support,
        "support_vectors_": X[:0] if isinstance(kernel, Precomputed) else X[support],
        "dual_coef_": dual,
        "intercept_": np.concatenate([solution.b for solution in solutions]),
        "_linear_coef": dual @ X[support] if isinstance(kernel, Linear) else None,
        "_n_rows": X.shape[0],
    }
