"""Rules that correct a plane sample by sample: Perceptron, Pocket, Relaxation, LMS."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats
from ..multiclass import Task
from ..problems import LeastSquaresProblem
from ..progress import Callback
from ..schedules import Constant, Function, Harmonic, Schedule, as_schedule
from ..solution import Status
from .base import UNFINISHED, Training
from .linear import LinearClassifier, OnlineClassifier

LearningRate = float | Schedule | Callable[[int], float]

RATE: list[Any] = [
    Interval(Real, 0, None, closed="neither"),
    Constant,
    Harmonic,
    Function,
    callable,
]
TOL = [Interval(Real, 0, None, closed="left")]


class Perceptron(OnlineClassifier):
    """The perceptron: correct a plane on its mistakes until it makes none.

    Single-sample: z·a ≤ 0 ⇒ a ← a + ρ(t) z. Batch: a ← a + ρ(t) Σ_{z·a ≤ 0} z, with z = y (x, 1).
    On separable data it ends with a separating plane; on others it goes round until ``max_iter``.

    Parameters
    ----------
    update : {"single", "batch"}, default="single"
    learning_rate : float, Constant, Harmonic or callable, default=1.0
        ρ(t), t = 1, 2, … the number of the update. A callable must depend on t alone.
    bias : {"plain", "radius"}, default="plain"
        "radius" is Novikoff's convention: b moves by ρR², R = max‖x‖ (of a batch in partial_fit).
    init : {"zeros", "random"}, default="zeros"
        Where a starts.
    fit_intercept : bool, default=True
    multi_class : {"ovr", "ovo", "kesler"}, default="ovr"
        One plane a class, one a pair of classes, or a linear machine by Kesler's construction.
    shuffle : bool, default=True
        Visit the rows in a new random order each pass; False visits them as they come, which is
        the textbook's order, and a poor one for rows that are sorted by class. A batch has no
        order: ``update="batch"`` is the same either way.
    max_iter : int, default=1000
        Passes over the data.
    class_weight : dict, "balanced" or None
    warm_start : bool, default=False
        Start at the planes of the last fit.
    random_state : int, RandomState or None, default=0
        For ``shuffle`` and ``init="random"``: the same number makes the same fit; None takes
        another one every time.
    callback : callable, optional
        Given a `Step` after each pass (and each update if it has a true ``every_update``); a true
        answer stops the fit.
    verbose : bool, default=False

    Attributes
    ----------
    coef_ : ndarray of shape (n_planes, n_features)
    intercept_ : ndarray of shape (n_planes,)
    mistake_bound_ : float
        Bound on the updates of a constant-rate, zero-start, unweighted run, (max‖z‖/γ)² with γ of
        the plane found, summed over the tasks; ∞ where one is not separated.

    Notes
    -----
    For "batch" a weight multiplies the correction of its sample: weight 2 is the row given twice.
    For "single" a weight v is v visits in a row: after the one that puts the sample right the
    others do nothing, so that it is not the same as the row given v times here and there.

    References
    ----------
    Rosenblatt (1958); Novikoff (1962); Duda, Hart, Stork, *Pattern Classification*, section 5.5.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.Perceptron().fit(X, y)
    >>> model.separates_, model.n_updates_ <= model.mistake_bound_
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "update": [StrOptions({"single", "batch"})],
        "learning_rate": RATE,
        "bias": [StrOptions({"plain", "radius"})],
        "init": [StrOptions({"zeros", "random"})],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        *,
        update: Literal["single", "batch"] = "single",
        learning_rate: LearningRate = 1.0,
        bias: Literal["plain", "radius"] = "plain",
        init: Literal["zeros", "random"] = "zeros",
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        shuffle: bool = True,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = 0,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.update = update
        self.learning_rate = learning_rate
        self.bias = bias
        self.init = init
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @property
    def mistake_bound_(self) -> float:
        """The sum of the mistake bounds of the tasks."""
        check_is_fitted(self)
        return float(sum(certificate.mistake_bound for certificate in self.certificates_))

    def _solver(self, max_iter: int, rng: Any, updates_before: int) -> Any:
        from ..solvers.separating.perceptron import BatchPerceptron, OnlinePerceptron

        schedule = as_schedule(self.learning_rate)
        if self.update == "batch":
            return BatchPerceptron(schedule, max_iter)
        return OnlinePerceptron(schedule, max_iter, rng if self.shuffle else None, updates_before)


class Pocket(LinearClassifier):
    """The pocket algorithm: perceptron corrections, keeping the plane with fewest mistakes.

    After every correction the samples are counted; a plane goes into the pocket only for strictly
    more (weighted) samples right. It begins with w = 0 and the bias of the more frequent class, so
    that the plane of no task is worse than that. For data that no plane separates.

    Parameters
    ----------
    patience : int, default=10
        Stop when the pocket has not changed for this many passes.
    learning_rate, bias, init, fit_intercept, multi_class, shuffle, max_iter, class_weight, \
    warm_start, random_state, callback, verbose
        As of `Perceptron`. ``status_`` says whether patience or max_iter ended the fit.

    Notes
    -----
    A weight v is v visits in a row, and v in the count. There is no
    ``partial_fit``: a pocket filled on other samples says nothing about these. A count takes as
    long as a pass: of n > 5000 samples every (n/5000)²th correction is counted.

    References
    ----------
    Gallant (1990), *Perceptron-based learning algorithms*.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> model = mm.Pocket(patience=50).fit(X, y)
    >>> print(model.score(X, y), model.status_)
    0.75 patience ran out
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "patience": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": RATE,
        "bias": [StrOptions({"plain", "radius"})],
        "init": [StrOptions({"zeros", "random"})],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        *,
        patience: int = 10,
        learning_rate: LearningRate = 1.0,
        bias: Literal["plain", "radius"] = "plain",
        init: Literal["zeros", "random"] = "zeros",
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        shuffle: bool = True,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = 0,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.patience = patience
        self.learning_rate = learning_rate
        self.bias = bias
        self.init = init
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _solver(self, max_iter: int, rng: Any, updates_before: int) -> Any:
        from ..solvers.separating.pocket import OnlinePocket

        schedule = as_schedule(self.learning_rate)
        return OnlinePocket(schedule, self.patience, max_iter, rng if self.shuffle else None)


class Relaxation(OnlineClassifier):
    """Relaxation with margin: move the plane towards z·a = m for every sample short of it.

    Single-sample: z·a ≤ m ⇒ a ← a + β (m − z·a)/‖z‖² z; batch: the sum of these steps.

    Parameters
    ----------
    margin : float, default=1.0
        m > 0.
    relaxation : float, default=1.0
        β, 0 < β < 2: 1 moves exactly onto z·a = m, less under-, more over-relaxes.
    update : {"single", "batch"}, default="single"
    tol : float, default=1e-3
        A sample with z·a > (1 − tol) m is left alone; the textbook's 0 is met in the limit only.
    init, fit_intercept, multi_class, shuffle, max_iter, class_weight, warm_start, random_state, \
    callback, verbose
        As of `Perceptron`.

    Notes
    -----
    For "single" a weight v is v visits in a row: the factor 1 − (1 − β)^v for β < 1, β otherwise.
    In a batch it multiplies the sample's step, and weight 2 makes the steps of the row given twice
    (to rounding, which many steps may magnify where no plane separates). Where the sums of a batch
    overshoot (the criterion has not fallen), steps go no farther than β times to the least
    criterion along them from then on.

    References
    ----------
    Agmon (1954); Motzkin, Schoenberg (1954); Duda, Hart, Stork, section 5.6.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_and(return_X_y=True)
    >>> mm.Relaxation(relaxation=1.5).fit(X, y).separates_
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "margin": [Interval(Real, 0, None, closed="neither")],
        "relaxation": [Interval(Real, 0, 2, closed="neither")],
        "update": [StrOptions({"single", "batch"})],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "init": [StrOptions({"zeros", "random"})],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        *,
        margin: float = 1.0,
        relaxation: float = 1.0,
        update: Literal["single", "batch"] = "single",
        tol: float = 1e-3,
        init: Literal["zeros", "random"] = "zeros",
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        shuffle: bool = True,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = 0,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.margin = margin
        self.relaxation = relaxation
        self.update = update
        self.tol = tol
        self.init = init
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _margins(self, training: Training, task: Task) -> Floats:
        return np.full(task.rows.size * max(task.n_vectors - 1, 1), float(self.margin))

    def _solver(self, max_iter: int, rng: Any, updates_before: int) -> Any:
        from ..solvers.separating.relaxation import BatchRelaxation, OnlineRelaxation

        if self.update == "batch":
            return BatchRelaxation(self.relaxation, self.tol, max_iter)
        rng = rng if self.shuffle else None
        return OnlineRelaxation(self.relaxation, self.tol, max_iter, rng, updates_before)


class LMS(OnlineClassifier):
    """Least mean squares (Widrow–Hoff): descend E(y − a·x')², sample by sample or all at once.

    Single-sample: a ← a + ρ(k)(y − a·x') x'. Batch: a ← a + ρ Zᵀ(1 − Za). A plane comes out for
    any data, and on separable data not necessarily a separating one: ``separates_`` says.

    Parameters
    ----------
    learning_rate : float, Constant, Harmonic, callable or None, default=None
        ρ(k). None takes a safe one from the data: single-sample n/((n + k − 1) max‖x'‖²), which
        decays; batch 1/λ_max(ZᵀZ); both with R² = max‖x‖² times as much for the bias, so that it
        keeps up with features of any scale. A constant of 2/trace(R) or more, R = mean x'x'ᵀ,
        cannot converge and gets a warning that names the bound.
    update : {"single", "batch"}, default="single"
    tol : float, default=1e-3
        θ: stop when every step of a pass is shorter.
    init, fit_intercept, multi_class, shuffle, max_iter, class_weight, warm_start, random_state, \
    callback, verbose
        As of `Perceptron`.

    Notes
    -----
    ``partial_fit`` without a rate takes one from each batch anew: pass a schedule there.

    A weight multiplies the step of its sample. In a batch weight 2 is the same as the row given
    twice; single-sample a row given twice is visited twice.

    References
    ----------
    Widrow, Hoff (1960); Robbins, Monro (1951); Duda, Hart, Stork, section 5.8.4.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_and(return_X_y=True)
    >>> mm.LMS(update="batch", max_iter=10_000).fit(X, y).separates_
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "learning_rate": [*RATE, None],
        "update": [StrOptions({"single", "batch"})],
        "tol": TOL,
        "init": [StrOptions({"zeros", "random"})],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        *,
        learning_rate: LearningRate | None = None,
        update: Literal["single", "batch"] = "single",
        tol: float = 1e-3,
        init: Literal["zeros", "random"] = "zeros",
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        shuffle: bool = True,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = 0,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.learning_rate = learning_rate
        self.update = update
        self.tol = tol
        self.init = init
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _pose(self, training: Training, task: Task) -> LeastSquaresProblem:
        problem = super()._pose(training, task)
        return LeastSquaresProblem(problem.Z, problem.margins, problem.weights)

    def _bias_convention(self) -> str:
        return "radius" if self.learning_rate is None else "plain"

    def _solver(self, max_iter: int, rng: Any, updates_before: int) -> Any:
        from ..solvers.separating.lms import BatchLMS, OnlineLMS

        rate = self.learning_rate
        schedule = None if rate is None else as_schedule(rate)
        if self.update == "batch":
            return BatchLMS(schedule, self.tol, max_iter)
        rng = rng if self.shuffle else None
        return OnlineLMS(schedule, self.tol, max_iter, rng, updates_before)

    def _disappointing(self, status: Status, certificate: Any) -> bool:
        # Steps may be short because features are large, far from the least squares.
        short = status is Status.CONVERGED and certificate.stationarity > 0.1
        return short or status in UNFINISHED

    def _remedy(self, status: Status) -> str:
        if status is Status.DIVERGED:
            return super()._remedy(status)
        return "Raise max_iter, change tol, or use Pseudoinverse for the exact minimiser."
