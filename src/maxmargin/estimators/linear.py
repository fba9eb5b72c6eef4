"""What linear classifiers share: planes in, planes out; passes over new samples."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import validation
from ..arrays import Floats, container, linear_scores
from ..data.normalised_samples import KeslerSamples, Samples, SignedSamples
from ..multiclass import Task
from ..problems import SeparationProblem
from ..progress import Progress
from ..solution import Solution, Status
from .base import CertifiedClassifier, Training, all_or_nothing


class Start(NamedTuple):
    """Planes to begin with, and the updates that made them."""

    w: Floats
    b: Floats
    updates: int = 0


class LinearClassifier(CertifiedClassifier):
    """What the linear estimators share: planes in, planes out."""

    fit_intercept: bool

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
        if self._bias_convention() == "plain":
            return 1.0
        samples = SignedSamples(X, task.labels, index=task.rows, bias_step=0.0)
        return float(samples.squared_lengths.max()) or 1.0

    def _bias_convention(self) -> str:
        return getattr(self, "bias", "plain")

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
        rng = training.task_rng()
        a = self._start(problem.Z, start, rng)
        updates = start.updates if start else 0
        return self._solver(max_iter, rng, updates).solve(problem, a, progress)

    def _start(self, Z: Samples, start: Start | None, rng: np.random.RandomState) -> Floats:
        """Where a begins: at the planes of a warm start, at zero, or at a random vector."""
        if start is not None:
            return Z.pack(start.w, start.b)
        if getattr(self, "init", "zeros") == "random":
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
            coef = self.coef_[planes]
            coef = coef.toarray() if sparse.issparse(coef) else coef
            starts.append(Start(coef, self.intercept_[planes]))
            first = planes.stop
        return starts

    def _finish(self, training: Training, solutions: list[Solution]) -> list[Solution]:
        """Leave constant features to the bias: w_j c_j goes into b, and w_j becomes 0."""
        if not self.fit_intercept:
            return solutions
        columns, values = validation.constant_features(training.counted)
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
        # coef_ may have been made sparse by the caller.
        coef = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_
        parts = [
            linear_scores(validation.check_new_data(self, piece), coef) + self.intercept_
            for _, piece in container(X).pieces()
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


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
            As of `fit`.

        Returns
        -------
        self
            Its certificates are about the samples of this call, one for each task that has any.
        """
        with all_or_nothing(self):
            self._partial_fit(X, y, classes, sample_weight)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        X, y = validation.check_training_data(self, X, y, reset=first)
        if first:
            self.classes_, self._reduced_by = np.unique(classes), self.multi_class
            validation.check_two_classes(self.classes_)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} is not {self.classes_!r} of the first call.")
        training = self._check_more(X, y, sample_weight)
        tasks = self._tasks(training)
        planes = [self._zero_start(X, task) for task in tasks] if first else self._states(X, tasks)
        starts = [None if first else plane for plane in planes]
        self._pass_once(training, tasks, starts, planes)

    def _check_more(self, X: Any, y: Any, sample_weight: Any) -> Training:
        weights = validation.check_sample_weight(sample_weight, X)
        _, codes = validation.encode_labels(y, self.classes_)
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all samples at once: pass a dict, or sample_weight."
            )
        of_class = validation.class_weights(weights, self.class_weight, self.classes_, y, codes)
        rng = check_random_state(self.random_state)
        weighted = weights * of_class[codes]
        return Training(X, y, self.classes_, codes, weights, weighted, rng, of_class)

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
