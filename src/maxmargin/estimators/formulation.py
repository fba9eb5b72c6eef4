"""How kernel machines are fitted; a `Formulation` says what distinguishes one from another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import get_tags

from .. import certificates, validation
from ..arrays import (
    Floats,
    Matrix,
    MatrixLike,
    OnDevice,
    Partitioned,
    PartitionedVector,
    by_rows,
    container,
)
from ..certificates import MarginCertificate, certify, certify_tasks
from ..kernels import Kernel, Precomputed, resolve
from ..kernels.mercer import check_precomputed, warn_if_indefinite
from ..multiclass import OneVsOne, Task, reduction_for
from ..problems import DualProblem
from ..progress import Progress
from ..runtime.kernel_cache import digest_of
from ..runtime.loading import load
from ..runtime.memory import bytes_to_keep
from ..runtime.threads import in_parallel, n_threads
from ..solution import Solution, Status
from ..solvers.dual.choice import Dual, WarmStart
from ..solvers.dual.sizes import SMALL_SAMPLES
from . import probability
from .claims import TOTAL_TIME_SHARE, Optimal, TimeLimit
from .expansion import expanded
from .fitting import Attributes, Method, Outcome, Remark, Work, limited_threads, no_remarks
from .kernel_machine import KernelMachine
from .training import Training


@dataclass(frozen=True)
class Tuning:
    """When scores are recomputed for a certificate, all of them or some."""

    # Kernel values up to which every score is recomputed: some hundredths of a second.
    thorough_values: int = 1 << 23
    # Samples of all tasks on which the bounds of a solver's scores are checked beyond.
    checked_samples: int = 128
    # Seconds of a core per kernel value in float64, and per product in it.
    seconds_per_value: float = 5e-9
    seconds_per_product: float = 1e-10
    # The share of a time limit for the fit itself where fits for probabilities follow.
    share_before_folds: float = 0.3
    # Rows in partitions, and numbers in them, up to which a task is solved in memory.
    gathered_rows: int = 8192
    gathered_numbers: int = 1 << 22


TUNING = Tuning()


def signed(
    kernel: Kernel, training: Training, task: Task, solution: Solution
) -> tuple[Floats, float]:
    """Return α y and b as they are."""
    assert solution.alpha is not None
    return solution.alpha * task.labels, float(solution.b[0])


def no_centre(task: Task) -> float:
    """Return 0: labels are as they are."""
    return 0.0


def no_attributes(kernel: Kernel, training: Training, task: Task, solution: Solution) -> Attributes:
    """Return no attributes beyond those of all kernel machines."""
    return {}


@dataclass(frozen=True)
class Formulation:
    """What distinguishes one kernel machine from another.

    Parameters
    ----------
    pose : callable
        (kernel, training, task) ↦ the problem of a task.
    largest_cost : callable
        training ↦ what α of a margin of 1 does not exceed, where that is known, else 1.
    may_centre : bool
        Whether rows of a linear kernel may be moved: the bias takes it up. Verdicts on hard margins
        are those on the rows as they are.
    multi_class : str, optional
        How several classes are reduced to tasks; None where y holds no classes.
    expand : callable, default=signed
        (kernel, training, task, solution) ↦ the coefficients of the rows of a task in w, and b.
    centre : callable
        task ↦ what its targets are reduced by when they are posed; `expand` adds it to b.
    variables_per_row : int, default=1
    growth : callable
        By how much α of the last fit is multiplied in a warm start.
    remarks : callable
        outcome ↦ warnings.
    attributes : callable
        (kernel, training, task, solution) ↦ fitted attributes of its own, from the first task.
    of_some : Formulation, optional
        The same for some of the samples of a task, where it differs.
    remedy : str, optional
        What to do where no solver comes further.
    """

    pose: Callable[[Kernel, Training, Task], DualProblem]
    largest_cost: Callable[[Training], float]
    may_centre: bool
    multi_class: str | None = None
    expand: Callable[[Kernel, Training, Task, Solution], tuple[Floats, float]] = signed
    centre: Callable[[Task], float] = no_centre
    variables_per_row: int = 1
    growth: Callable[[], float] = lambda: 1.0
    remarks: Callable[[Outcome[DualProblem, MarginCertificate]], list[Remark]] = no_remarks
    attributes: Callable[[Kernel, Training, Task, Solution], Attributes] = no_attributes
    of_some: Formulation | None = None
    remedy: str | None = None


def machine_method(
    model: KernelMachine, formulation: Formulation
) -> Method[DualProblem, WarmStart, MarginCertificate]:
    """Return the method of a kernel machine."""
    whole = TimeLimit(model.time_limit)
    time_limit = whole.shortened(TUNING.share_before_folds) if _wants_folds(model) else whole
    return Method(
        name=type(model).__name__,
        check=partial(_check_training, model),
        multi_class=formulation.multi_class,
        begin=partial(_begin, model, formulation, time_limit),
        resume=partial(_last_alpha, model, formulation),
        claims=_claims(model, formulation.remedy),
        max_iter=model.max_iter,
        warm_start=model.warm_start,
        callback=model.callback,
        verbose=model.verbose,
        by_class=True,  # blocks of K between classes are then whole
        remarks=formulation.remarks,
        threads=limited_threads(model.n_jobs),
        afterwards=partial(_probabilities, model, formulation, whole),
    )


def _check_training(
    model: KernelMachine,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    reset: bool,
) -> Training:
    """Return checked data; of samples that are objects the matrix of their kernel values."""
    if isinstance(X, Partitioned):
        return _check_partitions(model, X, y, sample_weight, reset=reset)
    if sparse.issparse(X) and get_tags(model).input_tags.pairwise:
        raise TypeError("Sparse precomputed kernels are not supported: pass X.toarray().")
    objects, kernel = None, model.kernel
    if callable(kernel) and not isinstance(kernel, Kernel) and validation.holds_objects(X):
        objects, X = X, kernel(X, X)
    try:
        training = model._check(X, y, validation.without_negative(sample_weight), reset=reset)
    except validation.OutOfRangeError as error:
        raise ValueError(f"The dual coefficients or intercepts are not finite: {error}") from None
    return replace(training, objects=objects)


def _check_partitions(
    model: KernelMachine, X: Partitioned, y: Any, sample_weight: Any, *, reset: bool
) -> Training:
    """Return checked data; labels and weights, like the dual variables, are in this process.

    X stays where it is unless it is small.
    """
    name = type(model).__name__
    if get_tags(model).input_tags.pairwise:
        raise TypeError(
            f"{name}(kernel='precomputed') takes a Gram matrix in memory, got one in partitions: "
            "use another kernel, or X.compute()."
        )
    for option in ("warm_start", "probability"):
        if getattr(model, option, False) not in (False, "deprecated"):
            raise ValueError(
                f"{name}({option}=True) needs X in memory, got X in partitions: use {option}=False."
            )
    y, weights = (
        each.host if isinstance(each, PartitionedVector) else each for each in (y, sample_weight)
    )
    training = model._check(X, y, validation.without_negative(weights), reset=reset)
    is_few = _are_few(X, X.shape[0])
    return replace(training, X=by_rows(X[np.arange(X.shape[0])])) if is_few else training


def _are_few(X: Partitioned, n_rows: int) -> bool:
    """Return whether a task of so many rows is solved in memory."""
    per_row = X.stored() / X.shape[0]
    return n_rows <= min(TUNING.gathered_rows, TUNING.gathered_numbers / max(per_row, 1.0))


def _pose(formulation: Formulation, kernel: Kernel, training: Training, task: Task) -> DualProblem:
    """Return the problem of a task, on rows of its own where few of those in partitions count."""
    problem = formulation.pose(kernel, training, task)
    X = problem.X
    if not isinstance(X, Partitioned) or not _are_few(X, task.rows.size):
        return problem
    rows, index = np.unique(problem.index, return_inverse=True)
    return replace(problem, X=by_rows(X[rows]), index=index)


def _begin(
    model: KernelMachine,
    formulation: Formulation,
    time_limit: TimeLimit,
    training: Training,
    tasks: list[Task],
) -> Work[DualProblem, WarmStart, MarginCertificate]:
    load("gaussian_scores", package=certificates.__name__)
    kernel = checked_kernel(model, training)
    if isinstance(training.X, Partitioned):
        return _begin_in_partitions(model, formulation, time_limit, kernel, training, tasks)
    together = _solved_together(kernel, training, tasks)
    at_once = 1 if together else _at_once(kernel, training, tasks)
    dual = _dual(model, formulation, kernel, training, len(tasks), at_once)
    if at_once > 1:
        dual.load_solvers()

    def solve(
        problem: DualProblem, start: WarmStart | None, progress: Progress, max_iter: int
    ) -> Solution:
        return dual.solve(problem, start, progress, time_limit.limits(max_iter))

    return Work(
        partial(formulation.pose, kernel, training),
        solve,
        partial(_attributes, model, formulation, kernel, training),
        finish=partial(_as_published, [formulation.centre(task) for task in tasks]),
        certify=partial(certify_fit, model.tol, time_limit),
        side_by_side=at_once > 1,
        solve_all=partial(_solve_all, dual, time_limit) if together else None,
    )


def _begin_in_partitions(
    model: KernelMachine,
    formulation: Formulation,
    time_limit: TimeLimit,
    kernel: Kernel,
    training: Training,
    tasks: list[Task],
) -> Work[DualProblem, WarmStart, MarginCertificate]:
    """Return how tasks are solved one after the other, each where its rows are."""
    whole = _dual(model, formulation, kernel, training, len(tasks))

    def solve(
        problem: DualProblem, start: WarmStart | None, progress: Progress, max_iter: int
    ) -> Solution:
        dual, limits = whole, time_limit.limits(max_iter)
        if problem.X is not training.X:
            own = replace(training, X=problem.X)
            dual = _dual(model, formulation, kernel, own, n_tasks=1)
        return dual.solve(problem, start, progress, limits)

    return Work(
        partial(_pose, formulation, kernel, training),
        solve,
        partial(_attributes, model, formulation, kernel, training),
        finish=partial(_as_published, [formulation.centre(task) for task in tasks]),
        certify=partial(_certify_each, model.tol, time_limit),
    )


def _as_published(centres: Sequence[float], solutions: list[Solution]) -> list[Solution]:
    """Return solutions with b as it is once a centre of the targets has been added.

    That is rounded, and the proof is one of the published model.
    """
    return [
        replace(solution, b=(solution.b + centre) - centre) if centre else solution
        for centre, solution in zip(centres, solutions, strict=True)
    ]


def _solved_together(kernel: Kernel, training: Training, tasks: Sequence[Task]) -> bool:
    """Return whether one call solves all tasks: small ones, and those of any size on a device."""
    if container(training.X).on_device:
        return True
    return kernel.elementwise and max(task.rows.size for task in tasks) <= SMALL_SAMPLES


def _at_once(kernel: Kernel, training: Training, tasks: Sequence[Task]) -> int:
    """Return how many large tasks are solved at the same time: one per core, if memory allows.

    Steps of SMO keep one core busy each; in what else a task does those help that have none.
    """
    count = min(n_threads(), len(tasks))
    row_length = container(training.X).stored() / training.X.shape[0]
    copies = 8 * count * row_length * max(task.rows.size for task in tasks)
    return count if kernel.elementwise and copies <= bytes_to_keep() else 1


def _solve_all(
    dual: Dual,
    time_limit: TimeLimit,
    problems: list[DualProblem],
    starts: Sequence[WarmStart | None],
    max_iter: int,
) -> list[Solution]:
    """Solve tasks side by side, from kernel values to α in one call of the engine if possible."""
    on_device = container(problems[0].X).on_device
    free = time_limit.seconds is None and not any(starts)
    quick = []
    if max_iter == -1 and (free or on_device):
        quick = dual.solve_small(problems, starts, time_limit.limits(max_iter))
    if quick and all(each.status is Status.CONVERGED for each in quick):
        return quick
    dual.load_solvers()

    def one(k: int, stop: Event) -> Solution:
        if quick and quick[k].status is Status.CONVERGED:
            return quick[k]
        start = _beginning(quick[k]) if quick else starts[k]
        return dual.solve(problems[k], start, Progress(stop=stop), time_limit.limits(max_iter))

    return in_parallel(one, range(len(problems)))


def _dual(
    model: KernelMachine,
    formulation: Formulation,
    kernel: Kernel,
    training: Training,
    n_tasks: int,
    at_once: int = 1,
) -> Dual:
    """Return how the duals of tasks on these samples are solved, some of them at once."""
    budget = None if model.cache_size == "auto" else float(model.cache_size) * 2**20
    if at_once > 1:
        budget = (bytes_to_keep() if budget is None else budget) / at_once
    return Dual.of(
        kernel,
        training.X,
        model.solver,
        model.tol,
        codes=training.codes if n_tasks > 1 and len(training.classes) > 2 else None,
        shrinking=model.shrinking,
        may_centre=formulation.may_centre,
        n_tasks=n_tasks,
        budget=budget,
        largest=formulation.largest_cost(training),
    )


def _wants_folds(model: KernelMachine) -> bool:
    """Return whether the fit is followed by those that probabilities need."""
    return probability.asks_for_probabilities(getattr(model, "probability", False))


def _probabilities(
    model: KernelMachine,
    formulation: Formulation,
    time_limit: TimeLimit,
    outcome: Outcome[DualProblem, MarginCertificate],
) -> Attributes:
    """Return the sigmoids that turn scores into probabilities, where they are wanted."""
    for name in ("probA_", "probB_"):  # of an earlier fit
        if hasattr(model, name):
            delattr(model, name)
    if not _wants_folds(model):
        return {}
    kernel = outcome.problems[0].kernel
    of_some = formulation.of_some or formulation

    def fit(training: Training, tasks: list[Task]) -> list[tuple[Floats, float]]:
        dual = _dual(model, formulation, kernel, training, n_tasks=1)
        problems = [of_some.pose(kernel, training, task) for task in tasks]
        if _solved_together(kernel, training, tasks):
            solutions = _solve_all(dual, time_limit, problems, [None] * len(tasks), model.max_iter)
        else:
            shares = 1.0 / np.arange(len(problems), 0, -1)  # of what is left
            solutions = [
                dual.solve(problem, None, Progress(), time_limit.limits(model.max_iter, share))
                for problem, share in zip(problems, shares.tolist(), strict=True)
            ]
        return [
            of_some.expand(kernel, training, task, solution)
            for task, solution in zip(tasks, solutions, strict=True)
        ]

    Dual.load_solvers()
    return probability.sigmoids(fit, outcome)


def _beginning(solution: Solution) -> WarmStart:
    assert solution.alpha is not None
    return WarmStart(solution.alpha, None)


def checked_kernel(model: KernelMachine, training: Training) -> Kernel:
    """Return the kernel with its parameters resolved, after a look at its values."""
    kernel = _resolved(model, training)
    if isinstance(kernel, Precomputed):
        check_precomputed(training.X)
    warn_if_indefinite(kernel, training.X)
    return kernel


def _resolved(model: KernelMachine, training: Training) -> Kernel:
    """Return the kernel with its parameters resolved."""
    if training.objects is not None:
        return Precomputed()
    X, weights = training.X, training.sample_weights
    if not isinstance(X, Partitioned):  # where rows of weight 0 are not left out
        X, weights = training.counted, weights[training.rows]
    gamma = model.gamma
    if gamma == "scale" and (weights != weights[0]).any():
        # A sample of weight 2 counts as two samples.
        variance = validation.weighted_variance(X, weights)
        gamma = 1.0 / (X.shape[1] * variance) if variance else 1.0
    return resolve(model.kernel, gamma=gamma, degree=model.degree, coef0=model.coef0, X=X)


def growth_with_cost(model: Any) -> float:
    """Return how C has grown since the last fit: α scales with it."""
    ratio = model.C / model._fitted_with
    return float(ratio) if np.isfinite(ratio) and ratio > 0.0 else 1.0


def _last_alpha(
    model: KernelMachine, formulation: Formulation, training: Training, tasks: list[Task]
) -> list[WarmStart | None]:
    """Return where a warm start begins: at α of the last fit, with its scores if X is the same."""
    if model._memory is None:  # the last fit did not keep α
        return [None] * len(tasks)
    X = training.X
    sizes = [alpha.size // formulation.variables_per_row for alpha, *_ in model._memory]
    if X.shape[0] != model.shape_fit_[0] or sizes != [task.rows.size for task in tasks]:
        raise ValueError(
            f"warm_start=True with {X.shape[0]} samples after {model.shape_fit_[0]}, or others "
            "of a class or of positive weight: the dual variables belong to the samples. Use "
            "warm_start=False or the same samples."
        )
    by, same = formulation.growth(), _fingerprint(X) == model._fitted_on
    return [
        WarmStart(alpha * by, scores * by, bounds * by)
        if same and scores is not None and bounds is not None
        else WarmStart(alpha * by, None)
        for alpha, scores, bounds in model._memory
    ]


def certify_fit(
    tol: float,
    time_limit: TimeLimit,
    problems: Sequence[DualProblem],
    solutions: Sequence[Solution],
) -> list[MarginCertificate]:
    """Recompute every proof: completely where that is quick, else as far as needed.

    Where a time limit leaves no time for that, proofs claim no more than what is known.
    """
    vectors = [int(np.count_nonzero(s.alpha)) for s in solutions]  # type: ignore[arg-type]
    work = sum(p.n_variables * n for p, n in zip(problems, vectors, strict=True))
    on_device = container(problems[0].X).on_device  # where all scores take milliseconds
    no_claims = all(each.scores is None for each in solutions)
    if work <= TUNING.thorough_values or no_claims or on_device:
        return certify_tasks(problems, solutions)
    sample = max(32, TUNING.checked_samples // int(len(problems) ** 0.5))
    seconds = time_limit.left(TOTAL_TIME_SHARE)
    affordable = np.inf if seconds is None else seconds * _values_per_second(problems[0])
    hurried = work > affordable

    def one(k: int, stop: Event) -> MarginCertificate:
        most = int(affordable / len(problems) / max(vectors[k], 1)) if hurried else None
        certificate: MarginCertificate = certify(
            problems[k], solutions[k], sample=sample, at_most=most
        )
        unproved = solutions[k].status is Status.CONVERGED and not certificate.holds(tol)
        if certificate.coverage != "complete" and unproved and not hurried:
            return certify(problems[k], solutions[k])  # type: ignore[no-any-return]
        return certificate

    side_by_side = len(problems) > 1 and problems[0].kernel.elementwise
    return in_parallel(one, range(len(problems)), alone=not side_by_side)


def _certify_each(
    tol: float,
    time_limit: TimeLimit,
    problems: Sequence[DualProblem],
    solutions: Sequence[Solution],
) -> list[MarginCertificate]:
    """Recompute the proofs of tasks that have rows of their own."""
    parts = zip(problems, solutions, strict=True)
    return [certify_fit(tol, time_limit, [problem], [solution])[0] for problem, solution in parts]


def _values_per_second(problem: DualProblem) -> float:
    """Return about how many float64 kernel values the cores compute per second."""
    per_value = TUNING.seconds_per_value + TUNING.seconds_per_product * problem.X.shape[1]
    return n_threads() / per_value


def _attributes(
    model: KernelMachine,
    formulation: Formulation,
    kernel: Kernel,
    training: Training,
    tasks: Sequence[Task],
    solutions: Sequence[Solution],
) -> Attributes:
    coefficients, b = zip(
        *(
            formulation.expand(kernel, training, task, solution)
            for task, solution in zip(tasks, solutions, strict=True)
        ),
        strict=True,
    )
    planes = expanded(kernel, training, tasks, coefficients, _of_pairs(formulation, training))
    kept = [(each.alpha, each.scores, each.score_bounds) for each in solutions]
    return {
        "kernel_": kernel,
        "support_": planes.support,
        "support_vectors_": planes.vectors,
        "n_support_": planes.counts,
        "dual_coef_": planes.dual,
        "intercept_": np.array(b),
        "fit_status_": int(any(each.status is not Status.CONVERGED for each in solutions)),
        "shape_fit_": training.X.shape,
        "_memory": kept if model.warm_start else None,
        "_fitted_on": _fingerprint(training.X) if model.warm_start else None,
        "_objects": training.objects,
        **_of_tasks(formulation, training, solutions),
        **formulation.attributes(kernel, training, tasks[0], solutions[0]),
    }


def _of_pairs(formulation: Formulation, training: Training) -> bool:
    """Return whether there is a plane for every pair of more than two classes."""
    if formulation.multi_class is None:
        return False
    return isinstance(reduction_for(formulation.multi_class, len(training.classes)), OneVsOne)


def _of_tasks(
    formulation: Formulation, training: Training, solutions: Sequence[Solution]
) -> Attributes:
    """Return the attributes that only classifiers have one of per task or class."""
    steps = [solution.n_iter for solution in solutions]
    if formulation.multi_class is None:
        return {"n_iter_": steps[0]}
    return {
        "n_iter_": np.array(steps, dtype=np.int32),
        "class_weight_": training.class_weights,
    }


def _fingerprint(X: Matrix) -> bytes:
    """Return a digest of the numbers in X: scores of a last fit belong to them."""
    if isinstance(X, OnDevice):
        return X.digest()
    return digest_of(X)


def _claims(model: KernelMachine, remedy: str | None) -> Optimal:
    """Return what a kernel machine claims, with what to do where it does not hold."""
    named = (
        f"solver={model.solver!r} came no further: use solver='auto', scale the features "
        "(StandardScaler), lower C, or raise tol."
    )
    rounding = (
        "Kernel values of this size leave float64 no digits, or an indefinite kernel no "
        "descent: scale the features (StandardScaler), lower C or gamma, or raise tol."
    )
    return Optimal(
        model.tol,
        {
            Status.TIME_LIMIT: f"Raise time_limit={model.time_limit}, or go on with "
            "warm_start=True.",
            Status.PATIENCE: remedy or (rounding if model.solver == "auto" else named),
        },
        f"Solver terminated early (max_iter={model.max_iter}).  Consider pre-processing your "
        "data with StandardScaler or MinMaxScaler. Or raise max_iter; warm_start=True goes on "
        "from here.",
        undecided="The margin, if there is one, is below what float64 kernel values show, or the "
        "limits came first: use a finite C, raise the limits, or, for a linear kernel, LinearSVC.",
    )
