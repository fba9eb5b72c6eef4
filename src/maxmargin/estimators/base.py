"""The one fit: validate, reduce to tasks, pose, solve, certify, publish.

A subclass says which problem a task is (`_pose`), which solver answers it (`_answer`) and which
attributes a list of solutions becomes (`_publish`).
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from .. import validation
from ..arrays import Floats, Integers
from ..certificates import Certificate, certify
from ..geometry import Hyperplane
from ..kernels import Precomputed
from ..multiclass import Reduction, Task, reduction_for
from ..progress import Callback, Limits, Progress
from ..runtime.threads import in_parallel
from ..solution import Solution, Status
from .callbacks import CallbackSupportMixin, Printer, sklearn_callbacks


@dataclass(frozen=True)
class Training:
    """Checked data of one fit: class numbers and weights (with those of classes) of all rows."""

    X: Any
    y: Any
    classes: NDArray[Any]
    codes: Integers
    sample_weights: Floats
    weights: Floats
    rng: np.random.RandomState
    class_weights: Floats

    @cached_property
    def rows(self) -> Integers:
        """Rows of positive weight: the others are as if they were not there."""
        return np.flatnonzero(self.weights > 0)

    def task_rng(self) -> np.random.RandomState:
        """Return random numbers for a task: the same for each, as if it were the only one."""
        return deepcopy(self._first_rng)

    @cached_property
    def _first_rng(self) -> np.random.RandomState:
        first = deepcopy(self.rng)
        self.rng.random_sample()  # a generator that the caller holds goes on from fit to fit
        return first

    @property
    def counted(self) -> Any:
        """X without the rows that do not count."""
        return self.X if self.rows.size == self.X.shape[0] else self.X[self.rows]


# Shares of a time limit at which solvers end, and at which the proof and all that follows should.
FOR_SOLVERS, FOR_ALL = 0.9, 1.1
UNFINISHED = {Status.ITERATION_LIMIT, Status.DIVERGED}


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave the attributes as they were where a fit fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        # What scikit-learn keeps there about callbacks it still needs to end them.
        new = [name for name in vars(estimator) if name not in before and "callback" not in name]
        for name in new:
            delattr(estimator, name)
        vars(estimator).update(before)
        raise


def with_kernel(tags: Any, kernel: Any) -> Any:
    """Return scikit-learn's tags for an estimator with this kernel: given values are dense."""
    tags.input_tags.pairwise = kernel == "precomputed" or isinstance(kernel, Precomputed)
    tags.input_tags.sparse = not tags.input_tags.pairwise
    return tags


class CertifiedClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Common ground of all estimators.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    certificates_ : list of Certificate
        One per task.
    certificate_ : Certificate
        The worst of them.
    statuses_ : list of Status
        Which rule ended each task; ``status_`` is that of the worst certificate.
    n_iter_ : int
        Passes or steps of the longest task; an array, one number per task, of SVC and NuSVC.
    n_updates_ : int
        Corrections made in all tasks.
    separates_ : bool
        Every task's plane has all of its samples strictly on their side. Of the separating rules
        and least squares; support vector machines claim optimality, and have none.
    traces_ : list of Trace
        Objective, errors and time after each iteration, one trace per task; ``trace_`` is the
        longest. `maxmargin.solution.Trace` says what an iteration and errors are.
    """

    classes_: NDArray[Any]
    # Frames between a warning of the end of a fit and the caller of fit.
    _frames: ClassVar[int] = 5
    _reduced_by: str
    max_iter: int
    multi_class: str
    class_weight: Any
    random_state: Any
    callback: Callback | None
    verbose: Any
    warm_start: bool

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the plane, or the planes of many classes, and prove what came out.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            float32 and float64 are used as they are, without a copy.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of at least 0, not all of them 0: a sample of weight 0 is as if it were not
            there. Negative weights raise ValueError, in every estimator but SVC and NuSVC, which
            leave such samples out, as scikit-learn's do.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row; on the plane itself the positive (second) class."""
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return self.classes_[(scores[:, 0] >= 0).astype(int)]
        return self.classes_[self._reduction().confidences(scores, len(self.classes_)).argmax(1)]

    def decision_function(self, X: Any) -> Floats:
        """Return g(x): shape (n,) for two classes, one confidence a class for more.

        For "ovo" these are votes plus a fraction from the scores, as of scikit-learn's SVC.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return self._reduction().confidences(scores, len(self.classes_))

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the task that is furthest from its claim."""
        return self.certificates_[self._worst]

    @property
    def status_(self) -> Status:
        """Which rule ended the task with the worst certificate."""
        return self.statuses_[self._worst]

    @property
    def hyperplane_(self) -> Hyperplane:
        """The plane of a two-class model that has one (a linear kernel, or no kernel)."""
        check_is_fitted(self)
        coef, intercept = self.coef_, self.intercept_  # type: ignore[attr-defined]
        coef = coef.toarray() if sparse.issparse(coef) else coef
        if len(coef) != 1:
            raise AttributeError(
                f"{len(coef)} planes, not one: hyperplane_ is for two classes. "
                "Rows of coef_ and intercept_ hold the planes of many."
            )
        return Hyperplane(coef[0], float(intercept[0]))

    @property
    def trace_(self) -> Any:
        """The trace of the task that took the most iterations."""
        return max((trace for trace in self.traces_ if trace is not None), key=len)

    @property
    def _worst(self) -> int:
        check_is_fitted(self)
        return int(np.argmax([certificate.violation for certificate in self.certificates_]))

    # What a subclass says ------------------------------------------------------------------

    @abstractmethod
    def _pose(self, training: Training, task: Task) -> Any:
        """Return the problem of a task."""

    @abstractmethod
    def _answer(
        self, problem: Any, start: Any, progress: Progress, training: Training, max_iter: int
    ) -> Solution:
        """Solve a problem, from ``start`` where it is not None."""

    @abstractmethod
    def _restart(self, X: Any, tasks: list[Task]) -> list[Any]:
        """Return what the tasks of a warm start begin with."""

    @abstractmethod
    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        """Return the fitted attributes of these solutions, which may not yet be final."""

    @abstractmethod
    def _scores(self, X: Any) -> Floats:
        """Return the scores of checked new data, (n, n_planes)."""

    def _begin(self, training: Training) -> None:
        """Prepare what all tasks of a fit share."""

    def _side_by_side(self, training: Training, tasks: list[Task]) -> bool:
        """Whether tasks that nobody watches are small enough to be solved one on each core."""
        return False

    def _end(self) -> None:
        """Let go of what the tasks of a fit shared."""

    def _finish(self, training: Training, solutions: list[Solution]) -> list[Solution]:
        """Change solutions before they are certified."""
        return solutions

    # How it is done ------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        resume = self.warm_start and hasattr(self, "classes_")
        training = self._check_training(X, y, sample_weight, reset=True)
        if resume and not np.array_equal(training.classes, self.classes_):
            raise ValueError(
                f"warm_start=True with other classes: {training.classes!r} after "
                f"{self.classes_!r}. Use warm_start=False or the same labels."
            )
        if resume and self.multi_class != self._reduced_by:
            raise ValueError(
                f"warm_start=True with multi_class={self.multi_class!r} after "
                f"{self._reduced_by!r}: use warm_start=False or the same multi_class."
            )
        self.classes_, self._reduced_by = training.classes, self.multi_class
        tasks = self._tasks(training)
        starts = self._restart(training.X, tasks) if resume else [None] * len(tasks)
        self._begin(training)
        try:
            problems, solutions = self._solve_all(training, tasks, starts, int(self.max_iter))
        finally:
            self._end()
        solutions = self._finish(training, solutions)
        self._publish(training, tasks, problems, solutions)
        self._warn_if_unfinished(training, tasks)

    def _check_training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        X, y = validation.check_training_data(
            self, X, y, reset=reset, accept_sparse=get_tags(self).input_tags.sparse
        )
        return self._weighted(X, y, sample_weight)

    def _weighted(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Return checked X and y with class numbers and weights."""
        weights = validation.check_sample_weight(sample_weight, X)
        counts = slice(None) if (weights > 0).all() else weights > 0
        classes, codes = validation.encode_labels(y[counts])
        validation.check_two_classes(classes)
        if not isinstance(counts, slice):
            used, codes = codes, np.zeros(len(y), dtype=codes.dtype)
            codes[counts] = used
        of_class = validation.class_weights(weights, self.class_weight, classes, y[counts], codes)
        weighted = weights if (of_class == 1.0).all() else weights * of_class[codes]
        rng = check_random_state(self.random_state)
        return Training(X, y, classes, codes, weights, weighted, rng, of_class)

    def _solve_all(
        self, training: Training, tasks: list[Task], starts: list[Any], max_iter: int
    ) -> tuple[list[Any], list[Solution]]:
        watched = self.callback or self.verbose or getattr(self, "_skl_callbacks", None)
        if len(tasks) > 1 and not watched and self._side_by_side(training, tasks):

            def work(k: int, stop: Event) -> tuple[Any, Solution]:
                problem = self._pose(training, tasks[k])
                return problem, self._answer(problem, starts[k], Progress(), training, max_iter)

            done = in_parallel(work, range(len(tasks)))
            return [problem for problem, _ in done], [solution for _, solution in done]
        listeners: list[Callback] = [self.callback] if self.callback is not None else []
        if self.verbose:
            listeners.append(Printer([task.name for task in tasks]))
        known = max_iter if max_iter > 0 else None
        bridge = sklearn_callbacks(self, training.X, training.y, len(tasks), known)
        problems: list[Any] = []
        solutions: list[Solution] = []
        for k, (task, start) in enumerate(zip(tasks, starts, strict=True)):
            if bridge:
                bridge.begin_task(task.name, self._so_far(training, tasks, list(solutions)))
            hearing: list[Callback] = [*listeners, bridge] if bridge else listeners
            progress = Progress(hearing, k, task.rows, task.labels)
            problem = self._pose(training, task)
            solutions.append(self._answer(problem, start, progress, training, max_iter))
            problems.append(problem)
            if bridge:
                bridge.end_task()
        if bridge:
            bridge.end()
        return problems, solutions

    def _so_far(
        self, training: Training, tasks: list[Task], done: list[Solution]
    ) -> Callable[[Solution], dict[str, Any]]:
        """Return solution ↦ attributes while the task after ``done`` is at work."""
        known = tasks[: len(done) + 1]
        return lambda now: self._attributes(training, known, [*done, now])

    def _publish(
        self,
        training: Training,
        tasks: list[Task],
        problems: list[Any],
        solutions: list[Solution],
    ) -> None:
        self.certificates_ = self._certify(problems, solutions)
        solutions = [
            replace(solution, status=self._verdict(solution.status, certificate))
            for solution, certificate in zip(solutions, self.certificates_, strict=True)
        ]
        self.statuses_ = [solution.status for solution in solutions]
        self.traces_ = [solution.trace for solution in solutions]
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        self.n_updates_ = sum(solution.n_updates for solution in solutions)
        self._publish_claims()
        for name, value in self._attributes(training, tasks, solutions).items():
            setattr(self, name, value)

    def _verdict(self, status: Status, certificate: Any) -> Status:
        """Return how a task ended, by its proof."""
        return status

    def _certify(self, problems: list[Any], solutions: list[Solution]) -> list[Any]:
        return [certify(p, s) for p, s in zip(problems, solutions, strict=True)]

    def _publish_claims(self) -> None:
        """Set what the certificates say of the whole model."""
        self.separates_ = all(c.separates for c in self.certificates_)

    def _warn_if_unfinished(self, training: Training, tasks: list[Task]) -> None:
        left = [
            (task.name, status, certificate)
            for task, status, certificate in zip(
                tasks, self.statuses_, self.certificates_, strict=True
            )
            if self._disappointing(status, certificate)
        ]
        if not left:
            return
        name, status, certificate = left[0]
        # P = ∞: the plane of a hard margin separates nothing, and no proof says that none can.
        undecided = np.isinf(getattr(certificate, "primal", 0.0))
        verdict = "undecided whether a plane separates the classes, " if undecided else ""
        ratio = validation.scale_ratio(training.X)
        scaling = f"The widest feature spreads {ratio:.3g} times as far as the narrowest"
        scaling += "; StandardScaler may help. " if ratio > 100 else ". "
        warnings.warn(
            f"{type(self).__name__}: {len(left)} of {len(tasks)} tasks not done; "
            f"'{name}' ended at {status} (max_iter={self.max_iter}): {verdict}"
            f"{getattr(certificate, 'measures', certificate)}. "
            f"{scaling}{self._undecided if undecided else self._remedy(status)}",
            ConvergenceWarning,
            stacklevel=self._frames,
        )

    @property
    def _undecided(self) -> str:
        """Why a hard margin ended without a plane and without a proof, and what to do."""
        return (
            "Neither a margin nor a proof that there is none stands out of rounding, or the limits "
            "came first: use a finite C, raise the limits, or ask maxmargin.separability(X, y)."
        )

    def _disappointing(self, status: Status, certificate: Any) -> bool:
        """Whether a task ended in a way that the caller should be told of."""
        return status in UNFINISHED and not certificate.separates

    def _remedy(self, status: Status) -> str:
        if status is Status.DIVERGED:
            return "Its steps grew without bound: use a smaller rate."
        return "Raise max_iter, or ask maxmargin.separability(X, y) whether any plane separates."

    def _reduction(self) -> Reduction:
        return reduction_for(self._reduced_by, len(self.classes_))

    def _tasks(self, training: Training) -> list[Task]:
        names = [str(name) for name in self.classes_]
        return self._reduction().tasks(training.codes, training.rows, names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}


class ClaimsOptimality:
    """What support vector machines add: limits of time, and a claim that the certificate judges."""

    tol: float
    time_limit: float | None
    statuses_: list[Status]
    certificates_: list[Any]
    _clock: Progress

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the seconds of all tasks together, and of what comes before and after them."""
        self._clock = Progress()
        try:
            yield
        finally:
            del self._clock

    def _limits(self, max_iter: int) -> Limits:
        """Return what is left to a task; −1 iterations set no limit."""
        seconds = self._seconds_left(FOR_SOLVERS)
        return Limits(None if max_iter == -1 else max_iter, seconds)

    def _seconds_left(self, share: float) -> float | None:
        """Return the seconds until a share of the time limit is used up; None without a limit."""
        if self.time_limit is None:
            return None
        return max(0.0, share * self.time_limit - self._clock.seconds)

    def _publish_claims(self) -> None:
        """Claims are those of the certificates; there are none of separation."""

    def _verdict(self, status: Status, certificate: Any) -> Status:
        # A solver may believe what its arithmetic cannot know: the certificate has the last word.
        if status in (Status.CONVERGED, Status.PATIENCE):
            return Status.CONVERGED if certificate.holds(self.tol) else Status.PATIENCE
        return status

    def _disappointing(self, status: Status, certificate: Any) -> bool:
        return status is not Status.STOPPED and not certificate.holds(self.tol)
