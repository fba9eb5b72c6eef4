"""Linear separating classifiers: Perceptron, Pocket, Relaxation, LMS, Pseudoinverse, HoKashyap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..geometry import Hyperplane
from ..multiclass import Task
from ..problem import LeastSquaresProblem, SeparationProblem
from ..samples import Floats, KeslerSamples, Samples, SignedSamples, linear_scores
from ..schedules import Constant, Function, Harmonic, Schedule, as_schedule
from ..solution import Callback, Progress, Solution, Status
from . import validation
from .base import CertifiedClassifier, Training

LearningRate = float | Schedule | Callable[[int], float]

RATE: list[Any] = [
    Interval(Real, 0, None, closed="neither"),
    Constant,
    Harmonic,
    Function,
    callable,
]
TOL = [Interval(Real, 0, None, closed="left")]


class Start(NamedTuple):
    """Planes to begin with, and the updates that made them."""

    w: Floats
    b: Floats
    updates: int = 0


class LinearClassifier(CertifiedClassifier):
    """What the linear estimators share: planes in, planes out."""

    fit_intercept: bool
    init: str = "zeros"
    bias: str = "plain"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "multi_class": [StrOptions({"ovr", "ovo", "kesler"})],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }

    @property
    def hyperplane_(self) -> Hyperplane:
        """The plane of a two-class model."""
        check_is_fitted(self)
        if len(self.coef_) != 1:
            raise AttributeError(
                f"{len(self.coef_)} planes, not one: hyperplane_ is for two classes. "
                "Rows of coef_ and intercept_ hold the planes of many."
            )
        return Hyperplane(self.coef_[0], float(self.intercept_[0]))

    def _pose(self, training: Training, task: Task) -> SeparationProblem:
        return SeparationProblem(
            self._samples(training.X, task),
            self._margins(training, task),
            training.weights[task.rows],
        )

    def _samples(self, X: Any, task: Task) -> Samples:
        everything = task.rows.size == X.shape[0]
        rows = None if everything else task.rows
        step = self._bias_step(X, task)
        if task.n_vectors == 1:
            return SignedSamples(X, task.labels, index=rows, bias_step=step)
        return KeslerSamples(X, task.labels, n_classes=task.n_vectors, index=rows, bias_step=step)

    def _bias_step(self, X: Any, task: Task) -> float:
        """What b moves by when w moves by x: 0, 1, or Novikoff's R² = max‖x‖²."""
        if not self.fit_intercept:
            return 0.0
        if self.bias == "plain":
            return 1.0
        samples = SignedSamples(X, task.labels, index=task.rows, bias_step=0.0)
        return float(samples.squared_lengths.max()) or 1.0

    def _margins(self, training: Training, task: Task) -> Floats | None:
        """Return m of each row of Z, None for all 1."""
        return None

    def _answer(
        self,
        problem: Any,
        start: Start | None,
        progress: Progress,
        training: Training,
        max_iter: int,
    ) -> Solution:
        a = self._start(problem.Z, start, training.rng)
        updates = start.updates if start else 0
        return self._solver(max_iter, training.rng, updates).solve(problem, a, progress)

    def _start(self, Z: Samples, start: Start | None, rng: np.random.RandomState) -> Floats:
        """Where a begins: at the planes of a warm start, at zero, or at a random vector."""
        if start is not None:
            return Z.pack(start.w, start.b)
        if self.init == "random":
            return Z.pack(*Z.unpack(rng.standard_normal(Z.shape[1])))
        return np.zeros(Z.shape[1])

    def _solver(self, max_iter: int, rng: np.random.RandomState, updates_before: int) -> Any:
        """Return the solver; those that visit rows in turn may ignore ``rng``."""
        raise NotImplementedError

    def _restart(self, X: Any, tasks: list[Task]) -> list[Any]:
        if self.coef_.shape[1] != X.shape[1]:
            raise ValueError(
                f"warm_start=True with {X.shape[1]} features after {self.coef_.shape[1]}: "
                "use warm_start=False or the same features."
            )
        starts, first = [], 0
        for task in tasks:
            planes = slice(first, first + task.n_vectors)
            starts.append(Start(self.coef_[planes], self.intercept_[planes]))
            first = planes.stop
        return starts

    def _finish(self, training: Training, solutions: list[Solution]) -> list[Solution]:
        """Leave constant features to the bias: w_j c_j goes into b, and w_j becomes 0."""
        if not self.fit_intercept:
            return solutions
        columns, values = validation.constant_features(training.X)
        if not columns.size:
            return solutions
        return [self._fold(solution, columns, values) for solution in solutions]

    @staticmethod
    def _fold(solution: Solution, columns: Any, values: Floats) -> Solution:
        w = solution.w.copy()
        b = solution.b + w[:, columns] @ values
        w[:, columns] = 0.0
        return replace(solution, w=w, b=b)

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        return {
            "coef_": np.vstack([solution.w for solution in solutions]),
            "intercept_": np.concatenate([solution.b for solution in solutions]),
            "_updates_of_tasks": [solution.n_updates for solution in solutions],
        }

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validation.check_new_data(self, X)
        return linear_scores(X, self.coef_) + self.intercept_


def _visits_single_samples(estimator: Any) -> bool:
    if getattr(estimator, "update", "single") != "single":
        raise AttributeError("partial_fit is for update='single'.")
    return True


class OnlineClassifier(LinearClassifier):
    """Rules that visit one sample at a time, and can go on with new data."""

    @available_if(_visits_single_samples)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Pass once over new samples, going on from the planes so far.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All labels that will ever come; needed by the first call only.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
            Its certificates are about the samples of this call.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        X, y = validation.check_training_data(self, X, y, reset=first)
        if first:
            self.classes_ = np.unique(classes)
            validation.check_two_classes(self.classes_)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} is not {self.classes_!r} of the first call.")
        training = self._check_more(X, y, sample_weight)
        tasks = self._tasks(training)
        planes = [self._zero_start(X, task) for task in tasks] if first else self._states(X, tasks)
        starts = [None if first else plane for plane in planes]
        self._pass_once(training, tasks, starts, planes)
        return self

    def _check_more(self, X: Any, y: Any, sample_weight: Any) -> Training:
        weights = validation.check_sample_weight(sample_weight, X)
        _, codes = validation.encode_labels(y, self.classes_)
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all samples at once: pass a dict, or sample_weight."
            )
        weighted = validation.times_class_weight(
            weights, self.class_weight, self.classes_, y, codes
        )
        rng = check_random_state(self.random_state)
        return Training(X, y, self.classes_, codes, weights, weighted, rng)

    def _pass_once(
        self, training: Training, tasks: list[Task], starts: list[Any], planes: list[Start]
    ) -> None:
        # A batch may hold no sample of a pair of classes: its plane stays.
        held = [k for k, task in enumerate(tasks) if task.rows.size]
        problems, solved = self._solve_all(
            training, [tasks[k] for k in held], [starts[k] for k in held], max_iter=1
        )
        self._publish(training, tasks, problems, solved)
        solutions = [
            Solution(plane.w, plane.b, Status.CONVERGED, n_updates=plane.updates)
            for plane in planes
        ]
        for k, solution in zip(held, solved, strict=True):
            solutions[k] = solution
        for name, value in self._attributes(training, tasks, solutions).items():
            setattr(self, name, value)
        self.n_updates_ = sum(self._updates_of_tasks)

    def _states(self, X: Any, tasks: list[Task]) -> list[Start]:
        starts = self._restart(X, tasks)
        updates = self._updates_of_tasks
        return [start._replace(updates=u) for start, u in zip(starts, updates, strict=True)]

    @staticmethod
    def _zero_start(X: Any, task: Task) -> Start:
        return Start(np.zeros((task.n_vectors, X.shape[1])), np.zeros(task.n_vectors))


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
        "radius" is Novikoff's convention: b moves by ρR², R = max‖x‖.
    init : {"zeros", "random"}, default="zeros"
        Where a starts.
    fit_intercept : bool, default=True
    multi_class : {"ovr", "ovo", "kesler"}, default="ovr"
        One plane a class, one a pair of classes, or a linear machine by Kesler's construction.
    shuffle : bool, default=False
        Visit the rows in a new random order each pass ("single" only).
    max_iter : int, default=1000
        Passes over the data.
    class_weight : dict, "balanced" or None
    warm_start : bool, default=False
        Start at the planes of the last fit.
    random_state : int, RandomState or None
        For ``shuffle`` and ``init="random"``.
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
        the plane found; the largest of the tasks, ∞ where one is not separated.

    Notes
    -----
    For "batch" a weight multiplies the correction of its sample, and weight 2 is the same as the row
    given twice. For "single" a weight v is v visits in a row: after the one that puts the sample
    right the others do nothing, so that it is not the same as the row given v times here and there.

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
        shuffle: bool = False,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
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
        """The largest mistake bound of the tasks."""
        check_is_fitted(self)
        return max(certificate.mistake_bound for certificate in self.certificates_)

    def _solver(self, max_iter: int, rng: Any, updates_before: int) -> Any:
        from ..separation.perceptron import BatchPerceptron, OnlinePerceptron

        schedule = as_schedule(self.learning_rate)
        if self.update == "batch":
            return BatchPerceptron(schedule, max_iter)
        return OnlinePerceptron(schedule, max_iter, rng if self.shuffle else None, updates_before)


class Pocket(LinearClassifier):
    """The pocket algorithm: perceptron corrections, keeping the plane with fewest mistakes.

    After every correction the samples are counted; a plane goes into the pocket only for strictly
    more (weighted) samples right. For data that no plane separates.

    Parameters
    ----------
    patience : int, default=1000
        Stop when the pocket has not changed for this many updates.
    learning_rate, bias, init, fit_intercept, multi_class, shuffle, max_iter, class_weight, \
    warm_start, random_state, callback, verbose
        As of `Perceptron`. ``status_`` says whether patience or max_iter ended the fit.

    Notes
    -----
    A weight v is v visits in a row, and v in the count. There is no
    ``partial_fit``: a pocket filled on other samples says nothing about these.

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
        patience: int = 1000,
        learning_rate: LearningRate = 1.0,
        bias: Literal["plain", "radius"] = "plain",
        init: Literal["zeros", "random"] = "zeros",
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        shuffle: bool = False,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
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
        from ..separation.pocket import OnlinePocket

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
    In a batch it multiplies the sample's step, and weight 2 is the same as the row given twice.
    Where the sums of a batch overshoot (the criterion grows beyond its value at a = 0), steps go β
    times as far as the least criterion along them from then on.

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
        shuffle: bool = False,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
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
        from ..separation.relaxation import BatchRelaxation, OnlineRelaxation

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
        shuffle: bool = False,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
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

    @property
    def bias(self) -> str:
        """The convention for b: plain for a rate given, Novikoff's for one chosen here."""
        return "radius" if self.learning_rate is None else "plain"

    def _solver(self, max_iter: int, rng: Any, updates_before: int) -> Any:
        from ..separation.lms import BatchLMS, OnlineLMS

        rate = self.learning_rate
        schedule = None if rate is None else as_schedule(rate)
        if self.update == "batch":
            return BatchLMS(schedule, self.tol, max_iter)
        rng = rng if self.shuffle else None
        return OnlineLMS(schedule, self.tol, max_iter, rng, updates_before)

    def _good_enough(self, certificate: Any) -> bool:
        return False

    def _remedy(self, status: Status) -> str:
        if status is Status.DIVERGED:
            return super()._remedy(status)
        return "Raise max_iter or tol, or use Pseudoinverse for the exact minimiser."


class Pseudoinverse(LinearClassifier):
    """The least-squares plane a = Z⁺m, of least norm where there are several.

    Minimises Σ v_i (z_i·a − m_i)² + ε‖a‖² by a stable factorisation in blocks of rows; ZᵀZ is not
    formed. Where even the compressed problem is too large (many sparse features), LSMR iterates.

    Parameters
    ----------
    ridge : float, default=0.0
        ε ≥ 0.
    margins : None, "fisher" or array-like of shape (n_samples,), default=None
        m: all 1, n/n_class of each sample's class (which gives Fisher's direction), or any
        positive numbers.
    fit_intercept, multi_class, class_weight, callback, verbose
        As of `Perceptron`.
    max_iter : int, default=10000
        Iterations of LSMR, where it is used.

    References
    ----------
    Duda, Hart, Stork, sections 5.8.1 and 5.8.2; Fong, Saunders (2011) for LSMR.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> mm.Pseudoinverse().fit(X, y).certificate_.holds(1e-12)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left")],
        "margins": [StrOptions({"fisher"}), "array-like", None],
    }

    warm_start = False
    random_state = None

    def __init__(
        self,
        *,
        ridge: float = 0.0,
        margins: Any = None,
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        max_iter: int = 10_000,
        class_weight: Any = None,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.ridge = ridge
        self.margins = margins
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.callback = callback
        self.verbose = verbose

    def _pose(self, training: Training, task: Task) -> LeastSquaresProblem:
        problem = super()._pose(training, task)
        return LeastSquaresProblem(
            problem.Z, problem.margins, problem.weights, ridge=float(self.ridge)
        )

    def _margins(self, training: Training, task: Task) -> Floats | None:
        if self.margins is None:
            return None
        if isinstance(self.margins, str):
            # m_i = n/n_class, a sample of weight 2 counting twice; class_weight is no count.
            weights = training.sample_weights[task.rows]
            _, member = np.unique(task.labels, return_inverse=True)
            m = weights.sum() / np.bincount(member, weights=weights)[member]
        else:
            m = validation.check_margins(self.margins, training.X.shape[0])[task.rows]
        return np.repeat(m, max(task.n_vectors - 1, 1))

    def _solver(self, max_iter: int, rng: Any, updates_before: int) -> Any:
        from ..separation.pseudoinverse import LeastSquares

        return LeastSquares(max_iter)

    def _good_enough(self, certificate: Any) -> bool:
        return False

    def _remedy(self, status: Status) -> str:
        return "LSMR has not converged: raise max_iter, or use ridge > 0."


class HoKashyap(LinearClassifier):
    """Ho–Kashyap: least squares in which the margins grow too, with a proof either way.

    e = Za − m, m ← m + 2β max(e, 0), a ← Z⁺m. Separable data end with Za = m > 0; others with
    e ≤ 0, e ≠ 0, a proof that no plane separates, kept in ``multipliers_``.

    Parameters
    ----------
    learning_rate : float, default=0.5
        β, 0 < β < 1.
    tol : float, default=1e-3
        Stop when |e| ≤ tol·m, so that Za ≥ (1 − tol) m > 0.
    max_iter : int, default=1000
        Steps.
    fit_intercept, multi_class, class_weight, callback, verbose
        As of `Perceptron`.
    warm_start : bool, default=False
        Go on with the margins m of the last fit, on the same samples.

    Attributes
    ----------
    refuted_ : bool
        Some task was proved inseparable.
    multipliers_ : list of ndarray or None
        One a task: u ≥ 0 with Σu = 1 and Zᵀu = 0 where no plane exists.
    margins_ : list of ndarray
        m at the end, one a task.

    References
    ----------
    Ho, Kashyap (1965); Duda, Hart, Stork, section 5.9.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> model = mm.HoKashyap().fit(X, y)
    >>> print(model.status_, model.multipliers_[0])
    proved inseparable [0.25 0.25 0.25 0.25]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "learning_rate": [Interval(Real, 0, 1, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="left")],
    }

    random_state = None

    def __init__(
        self,
        *,
        learning_rate: float = 0.5,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.learning_rate = learning_rate
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    def _restart(self, X: Any, tasks: list[Task]) -> list[Any]:
        return [
            m if m.size == task.rows.size * max(task.n_vectors - 1, 1) else None
            for task, m in zip(tasks, self.margins_, strict=True)
        ]

    def _answer(
        self, problem: Any, start: Any, progress: Progress, training: Training, max_iter: int
    ) -> Solution:
        from ..separation.ho_kashyap import HoKashyap as Solver

        if start is not None:
            problem = replace(problem, margins=start)
        solver = Solver(self.learning_rate, self.tol, max_iter)
        return solver.solve(problem, np.zeros(problem.Z.shape[1]), progress)

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        return {
            **super()._attributes(training, tasks, solutions),
            "multipliers_": [solution.multipliers for solution in solutions],
            "margins_": [solution.margins for solution in solutions],
            "refuted_": any(solution.status is Status.INSEPARABLE for solution in solutions),
        }
