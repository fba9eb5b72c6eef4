"""The one fit: check, reduce to tasks, pose, solve, certify, publish.

An estimator says what it is by a `Method`; the functions here do the rest, in the same way for
every estimator, for ``fit`` and for ``partial_fit``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from .. import validation
from ..arrays import Labels, MatrixLike, OnDevice, Partitioned, container, on_host
from ..caller import warn_caller
from ..certificates import certify
from ..data.columns import MOST_FEATURE_RATIO, scale_ratio
from ..engines.registry import (
    host_array,
    is_memory_full,
    is_partitioned,
    placed,
    received,
    received_partitions,
    received_vector,
)
from ..multiclass import Task, reduction_for
from ..progress import Callback, Progress
from ..runtime.threads import at_most, blas_for, in_parallel, single_threaded_blas
from ..solution import Solution
from .callbacks import Printer, sklearn_callbacks
from .claims import Claims, Proof
from .device import device_of
from .registry import IN_PARTITIONS
from .saved import APPROXIMATION, SUPPORT
from .training import ClassWeight, RandomState, Training, weighted

Problem = TypeVar("Problem")
Start = TypeVar("Start")
Attributes = dict[str, object]


class Check(Protocol):
    """A way to check the data of a fit."""

    def __call__(
        self, X: MatrixLike, y: Any, sample_weight: ArrayLike | None, *, reset: bool
    ) -> Training:
        """Return checked data; ``reset`` says whether their features become those of the model."""


def unchanged(solutions: list[Solution]) -> list[Solution]:
    """Return the solutions as they are."""
    return solutions


def one_by_one(problems: Sequence[Problem], solutions: Sequence[Solution]) -> list[Proof]:
    """Certify every solution, one after the other."""
    return [certify(p, s) for p, s in zip(problems, solutions, strict=True)]


@dataclass(frozen=True)
class Work(Generic[Problem, Start, Proof]):
    """What one fit does with its tasks; the functions share what is computed once per fit.

    Parameters
    ----------
    pose : callable
        task ↦ its problem.
    solve : callable
        (problem, start or None, progress, max_iter) ↦ its solution.
    attributes : callable
        (tasks, solutions) ↦ fitted attributes; the solutions need not be final.
    finish : callable, default=unchanged
        What is done to solutions before they are certified.
    certify : callable, default=one_by_one
        (problems, solutions) ↦ certificates.
    side_by_side : bool, default=False
        Whether tasks are solved at the same time, each in a thread of its own.
    solve_all : callable, optional
        (problems, starts, max_iter) ↦ solutions of all tasks, where no callback follows them; it
        may leave some to ``solve``.
    """

    pose: Callable[[Task], Problem]
    solve: Callable[[Problem, Start | None, Progress, int], Solution]
    attributes: Callable[[Sequence[Task], Sequence[Solution]], Attributes]
    finish: Callable[[list[Solution]], list[Solution]] = unchanged
    certify: Callable[[Sequence[Problem], Sequence[Solution]], list[Proof]] = one_by_one
    side_by_side: bool = False
    solve_all: Callable[[list[Problem], Sequence[Start | None], int], list[Solution]] | None = None


@dataclass(frozen=True)
class Outcome(Generic[Problem, Proof]):
    """Solved and certified tasks: what `Method.remarks` are made from."""

    training: Training
    tasks: list[Task]
    problems: list[Problem]
    solutions: list[Solution]
    certificates: list[Proof]


@dataclass(frozen=True)
class Remark:
    """A warning for the caller."""

    text: str
    category: type[Warning] = UserWarning


def no_attributes(outcome: Outcome[Problem, Proof]) -> Attributes:
    """Return no further attributes."""
    return {}


def no_remarks(outcome: Outcome[Problem, Proof]) -> list[Remark]:
    """Return nothing to tell the caller."""
    return []


@dataclass(frozen=True)
class Method(Generic[Problem, Start, Proof]):
    """What an estimator is, made from its parameters for one fit.

    Parameters
    ----------
    name : str
        For messages.
    check : Check
        How X, y and weights are checked.
    multi_class : str or None
        How several classes are reduced to tasks; None where y holds no classes.
    begin : callable
        (training, tasks) ↦ the `Work` of the fit.
    resume : callable
        (training, tasks) ↦ where the tasks of a warm start begin.
    claims : Claims
        What the certificates are to prove.
    max_iter : int
    warm_start : bool, default=False
    callback : callable, optional
    verbose : bool, default=False
    by_class : bool, default=False
        Whether the rows of the positive class of each of several tasks come first.
    remarks : callable, optional
        outcome ↦ warnings that are the estimator's own.
    threads : context manager, optional
        In which the fit runs: limits of threads.
    afterwards : callable, optional
        outcome ↦ further fitted attributes.
    keeps_y_on_device : bool, default=False
        Whether labels or targets that are on a device stay there, as a `VectorOnDevice`.
    streams : bool, default=False
        Whether X that does not fit a device may pass through it block by block.
    """

    name: str
    check: Check
    multi_class: str | None
    begin: Callable[[Training, list[Task]], Work[Problem, Start, Proof]]
    resume: Callable[[Training, list[Task]], Sequence[Start | None]]
    claims: Claims[Proof]
    max_iter: int
    warm_start: bool = False
    callback: Callback | None = None
    verbose: bool | int = False
    by_class: bool = False
    remarks: Callable[[Outcome[Problem, Proof]], list[Remark]] = no_remarks
    threads: AbstractContextManager[None] | None = None
    afterwards: Callable[[Outcome[Problem, Proof]], Attributes] = no_attributes
    keeps_y_on_device: bool = False
    streams: bool = False

    def tasks(self, training: Training, multi_class: str | None = None) -> list[Task]:
        """Return the tasks of a fit, reduced as given or as in an earlier fit."""
        multi_class = multi_class or self.multi_class
        if multi_class is None:
            rows, y = training.rows, training.y
            return [Task(rows, y if rows.size == len(y) else y[rows], "all samples")]
        reduction = reduction_for(multi_class, len(training.classes))
        names = [str(name) for name in training.classes]
        return reduction.tasks(training.codes, training.rows, names, by_class=self.by_class)


@contextmanager
def limited_threads(n_jobs: int | None) -> Iterator[None]:
    """Use so many cores, and one thread of BLAS in each."""
    with at_most(n_jobs), single_threaded_blas():
        yield


# Fitting -----------------------------------------------------------------------------------------


def is_fitted(model: Any) -> bool:
    """Return whether a model of this package has been fitted: all of them have a bias."""
    return "intercept_" in vars(model)


def fit(
    model: Any,
    method: Method[Problem, Start, Proof],
    X: MatrixLike,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> None:
    """Fit a model: all of its attributes are set, or none."""
    device = device_of(model)
    with all_or_nothing(model), ExitStack() as limits:
        limits.enter_context(method.threads or nullcontext())
        report = None  # of rounds, where X is in partitions
        if is_partitioned(X):
            _refuse_partitions_of(model)
            X, y, sample_weight = received_partitions(X, y, sample_weight)
            limits.push(X.free_after_error)
            report = X.report
        X, sample_weight = received(X, device), host_array(sample_weight)

        def attempt(X: MatrixLike, device: str) -> None:
            keep = method.keeps_y_on_device and isinstance(X, OnDevice)
            labels = received_vector(y) if keep else host_array(y)
            training = method.check(X, labels, sample_weight, reset=True)
            training = replace(training, X=placed(training.X, device, streams=method.streams))
            if method.threads is None:
                limits.enter_context(blas_for(container(training.X).stored()))
            _fit(model, method, training)

        try:
            attempt(X, device)
        except (MemoryError, RuntimeError) as error:
            if not is_memory_full(error):
                raise
            full = str(error)
        else:
            if report is not None:
                model.fit_report_ = report
            return
        # Outside of the clause, whose traceback holds what filled the memory.
        warn_caller(f"The memory of the device is full ({full}): fitted on the CPU instead.")
        attempt(on_host(X), "cpu")


def adopt(
    model: Any,
    method: Method[Problem, Start, Proof],
    training: Training,
    solutions: Sequence[Solution],
) -> None:
    """Certify solutions that are known already, and publish them as a fit to checked data does."""
    with all_or_nothing(model), method.threads or nullcontext():
        tasks = method.tasks(training)
        work = method.begin(training, tasks)
        problems = [work.pose(task) for task in tasks]
        outcome = _certified(method, work, training, tasks, problems, list(solutions))
        _publish(model, method, work, outcome, tasks, outcome.solutions, method.multi_class)
        for remark in [*method.remarks(outcome), *_shortcomings(method, outcome)]:
            warn_caller(remark.text, remark.category)


def _fit(model: Any, method: Method[Problem, Start, Proof], training: Training) -> None:
    """Solve, certify and publish a fit to checked data."""
    if isinstance(training.X, Partitioned):
        _refuse_joint(method, training)
    resumed = method.warm_start and is_fitted(model)
    if resumed and method.multi_class is not None:
        _check_same(method, training, model.classes_, model._reduced_by)
    tasks = method.tasks(training)
    starts = method.resume(training, tasks) if resumed else [None] * len(tasks)
    work = method.begin(training, tasks)
    problems, solutions = _solve(model, method, work, training, tasks, starts, int(method.max_iter))
    outcome = _certified(method, work, training, tasks, problems, work.finish(solutions))
    _publish(model, method, work, outcome, tasks, outcome.solutions, method.multi_class)
    for remark in [*method.remarks(outcome), *_shortcomings(method, outcome)]:
        warn_caller(remark.text, remark.category)


def _refuse_partitions_of(model: Any) -> None:
    """Refuse a Dask collection where an estimator takes none."""
    if any(kind.__name__ in IN_PARTITIONS for kind in type(model).__mro__):
        return
    raise TypeError(
        f"{type(model).__name__} takes arrays, CSR matrices and frames in the memory of this "
        f"process, got a Dask collection: use {', '.join(IN_PARTITIONS)}, which take them, or "
        "pass X.compute()."
    )


def _refuse_joint(method: Method[Problem, Start, Proof], training: Training) -> None:
    """Refuse a joint task of several classes in partitions."""
    if method.multi_class == "kesler" and len(training.classes) > 2:
        raise ValueError(
            f"multi_class must be 'ovr' or 'ovo' for {len(training.classes)} classes of a Dask "
            "collection, got 'kesler': use one of them, or an array."
        )


def partial_fit(
    model: Any,
    method: Method[Problem, Start, Proof],
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    classes: ArrayLike | None,
    class_weight: ClassWeight,
    random_state: RandomState,
    kept: Callable[[Training, list[Task]], list[Solution]],
) -> None:
    """Pass once over new data, from where the model stands.

    ``kept`` are the solutions of tasks of which the new data have no sample.
    """
    with all_or_nothing(model):
        first = not hasattr(model, "classes_")
        if is_partitioned(X):
            raise TypeError(
                "partial_fit takes the samples of one call in the memory of this process, got a "
                "Dask collection: use fit, with warm_start=True and max_iter=1 for one more pass."
            )
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        X, y, sample_weight = received(X), host_array(y), host_array(sample_weight)
        X, labels = validation.check_training_data(model, X, y, reset=first)
        known = _known_classes(model, classes)
        if class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all samples at once: pass a dict, or sample_weight."
            )
        training = weighted(X, labels, sample_weight, class_weight, random_state, known)
        multi_class = method.multi_class if first else model._reduced_by
        tasks = method.tasks(training, multi_class)
        starts = [None] * len(tasks) if first else method.resume(training, tasks)
        solutions = kept(training, tasks)
        held = [k for k, task in enumerate(tasks) if task.rows.size]
        work = method.begin(training, tasks)
        mine = [tasks[k] for k in held]
        problems, solved = _solve(
            model, method, work, training, mine, [starts[k] for k in held], max_iter=1
        )
        outcome = _certified(method, work, training, mine, problems, solved)
        for k, solution in zip(held, outcome.solutions, strict=True):
            solutions[k] = solution
        _publish(model, method, work, outcome, tasks, solutions, multi_class)


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Leave the attributes as they were where a fit fails or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        # scikit-learn still needs what it keeps there about callbacks, to end them.
        new = [name for name in vars(model) if name not in before and "callback" not in name]
        for name in new:
            delattr(model, name)
        vars(model).update(before)
        raise


def _check_same(
    method: Method[Problem, Start, Proof], training: Training, classes: Labels, multi_class: str
) -> None:
    """Refuse a warm start whose tasks are not those of the last fit."""
    if not np.array_equal(training.classes, classes):
        raise ValueError(
            f"warm_start=True with other classes: {training.classes!r} after "
            f"{classes!r}. Use warm_start=False or the same labels."
        )
    if method.multi_class != multi_class:
        raise ValueError(
            f"warm_start=True with multi_class={method.multi_class!r} after "
            f"{multi_class!r}: use warm_start=False or the same multi_class."
        )


def _known_classes(model: Any, classes: ArrayLike | None) -> Labels:
    """Return the classes of the first call of partial_fit."""
    if not hasattr(model, "classes_"):
        first: Labels = np.unique(classes)  # type: ignore[arg-type]
        validation.check_two_classes(first)
        return first
    known: Labels = model.classes_
    if classes is not None and not np.array_equal(np.unique(classes), known):
        raise ValueError(f"classes={classes!r} is not {known!r} of the first call.")
    return known


def _solve(
    model: Any,
    method: Method[Problem, Start, Proof],
    work: Work[Problem, Start, Proof],
    training: Training,
    tasks: list[Task],
    starts: Sequence[Start | None],
    max_iter: int,
) -> tuple[list[Problem], list[Solution]]:
    """Pose and solve every task; those that no callback follows side by side, where they may."""
    watched = method.callback or method.verbose or getattr(model, "_skl_callbacks", None)
    problems: list[Problem] = []
    solutions: list[Solution] = []
    if work.solve_all and not watched:
        problems = [work.pose(task) for task in tasks]
        return problems, work.solve_all(problems, starts, max_iter)
    if len(tasks) > 1 and not watched and work.side_by_side:

        def one(k: int, stop: Event) -> tuple[Problem, Solution]:
            problem = work.pose(tasks[k])
            return problem, work.solve(problem, starts[k], Progress(stop=stop), max_iter)

        done = in_parallel(one, range(len(tasks)))
        return [problem for problem, _ in done], [solution for _, solution in done]
    listeners: list[Callback] = [method.callback] if method.callback is not None else []
    if method.verbose:
        has_classes = method.multi_class is not None
        listeners.append(Printer([task.name for task in tasks], has_classes))
    known = max_iter if max_iter > 0 else None
    is_here = not isinstance(training.X, Partitioned)
    data = training.X, training.y
    if watched and is_here:
        data = on_host(training.X), np.asarray(training.y)
    bridge = sklearn_callbacks(model, *data, len(tasks), known)
    for k, (task, start) in enumerate(zip(tasks, starts, strict=True)):
        if bridge:
            bridge.begin_task(
                task.name, _so_far(method, work, training, tasks[: k + 1], list(solutions))
            )
        hearing: list[Callback] = [*listeners, bridge] if bridge else listeners
        seen = (np.asarray(task.rows), np.asarray(task.labels)) if hearing and is_here else ()
        progress = Progress(hearing, k, *seen)
        problem = work.pose(task)
        solutions.append(work.solve(problem, start, progress, max_iter))
        problems.append(problem)
        if bridge:
            bridge.end_task()
    if bridge:
        bridge.end()
    return problems, solutions


def _so_far(
    method: Method[Problem, Start, Proof],
    work: Work[Problem, Start, Proof],
    training: Training,
    tasks: list[Task],
    done: list[Solution],
) -> Callable[[Solution], Attributes]:
    """Return solution ↦ attributes while the task after ``done`` is being solved."""
    return lambda now: {
        **_of_classes(training, method.multi_class),
        **work.attributes(tasks, [*done, now]),
    }


def _certified(
    method: Method[Problem, Start, Proof],
    work: Work[Problem, Start, Proof],
    training: Training,
    tasks: list[Task],
    problems: list[Problem],
    solutions: list[Solution],
) -> Outcome[Problem, Proof]:
    """Certify the solutions; how each task ended is then decided by its certificate."""
    certificates = work.certify(problems, solutions)
    judged = []
    for solution, certificate in zip(solutions, certificates, strict=True):
        status = method.claims.verdict(solution.status, certificate)
        judged.append(solution if status is solution.status else replace(solution, status=status))
    return Outcome(training, tasks, problems, judged, certificates)


# Publishing --------------------------------------------------------------------------------------


def _of_classes(training: Training, multi_class: str | None) -> Attributes:
    if multi_class is None:
        return {}
    return {"classes_": training.classes, "_reduced_by": multi_class}


def _publish(
    model: Any,
    method: Method[Problem, Start, Proof],
    work: Work[Problem, Start, Proof],
    outcome: Outcome[Problem, Proof],
    tasks: list[Task],
    solutions: list[Solution],
    multi_class: str | None,
) -> None:
    """Set the fitted attributes: proofs are of the tasks just solved, planes of all tasks."""
    attributes: Attributes = {
        **_of_classes(outcome.training, multi_class),
        "certificates_": outcome.certificates,
        "statuses_": [solution.status for solution in outcome.solutions],
        "traces_": [solution.trace for solution in outcome.solutions],
        "n_iter_": max(solution.n_iter for solution in outcome.solutions),
        "n_updates_": sum(solution.n_updates for solution in solutions),
        **method.claims.attributes(outcome.certificates),
        **work.attributes(tasks, solutions),
        **method.afterwards(outcome),
    }
    for name in (
        *SUPPORT,
        *APPROXIMATION,
        "fit_report_",
    ):  # of an earlier fit, which had rows of another kind
        vars(model).pop(name, None)
    for name, value in attributes.items():
        setattr(model, name, value)


def _shortcomings(
    method: Method[Problem, Start, Proof], outcome: Outcome[Problem, Proof]
) -> list[Remark]:
    """Return a warning of the tasks whose claims do not hold, if there are any."""
    claims = method.claims
    short = [
        (task.name, solution.status, certificate)
        for task, solution, certificate in zip(
            outcome.tasks, outcome.solutions, outcome.certificates, strict=True
        )
        if claims.falls_short(solution.status, certificate)
    ]
    if not short:
        return []
    name, status, certificate = short[0]
    ratio = scale_ratio(outcome.training.X)
    scaling = ""
    if ratio > MOST_FEATURE_RATIO:
        scaling = (
            f"The widest feature spreads {ratio:.3g} times as far as the narrowest; "
            "StandardScaler may help. "
        )
    text = (
        f"{method.name}: {len(short)} of {len(outcome.tasks)} tasks not done; "
        f"'{name}' ended at {status} (max_iter={method.max_iter}): "
        f"{claims.measures(certificate)}. {scaling}{claims.remedy(status, certificate)}"
    )
    return [Remark(text, ConvergenceWarning)]
