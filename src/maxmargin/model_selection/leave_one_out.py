"""Exact leave-one-out predictions of kernel machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from ..arrays import Floats, Labels, MatrixLike
from ..caller import warn_caller
from ..certificates import MarginCertificate
from ..engines.registry import host_array, is_partitioned, received
from ..estimators.claims import TimeLimit
from ..estimators.fitting import adopt, limited_threads
from ..estimators.formulation import checked_kernel
from ..estimators.linear_svc import LinearSVC
from ..estimators.linear_svr import LinearSVR
from ..estimators.one_class import OneClassSVM
from ..estimators.svc import SVC, NuSVC
from ..estimators.svr import SVR, NuSVR
from ..estimators.training import Training
from ..progress import Limits, Progress
from ..solution import Status
from ..solvers.dual.choice import Dual
from .left_out import LeftOutTask, Machine, Refit, Solved

# Violation of a KKT condition up to which a machine counts as exact.
EXACT = 1e-6
# Refits that are certified together at most, and the seconds that they are to take: callbacks and
# time limits wait for so long.
MOST_TOGETHER = 128
SECONDS_TOGETHER = 0.2


@dataclass(frozen=True)
class RefitStep:
    """How far a leave-one-out computation is: what its callback is called with.

    Parameters
    ----------
    n_done, n_refits : int
        Refits so far, and how many there are in all.
    seconds, seconds_left : float
        Time since the start, and about the time until the end.

    Examples
    --------
    >>> import maxmargin as mm
    >>> print(mm.model_selection.RefitStep(n_done=3, n_refits=12, seconds=1.5, seconds_left=4.5))
    3 of 12 refits in 1.5 s, about 4 s left
    """

    n_done: int
    n_refits: int
    seconds: float
    seconds_left: float

    def __str__(self) -> str:
        return (
            f"{self.n_done} of {self.n_refits} refits in {self.seconds:.1f} s, about "
            f"{self.seconds_left:.0f} s left"
        )


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What a machine fitted without a sample says about it, for all samples.

    Parameters
    ----------
    predictions : ndarray of shape (n_samples,)
        Label or target that is predicted for each sample by the machine fitted to the others. Where
        it is not known, None (dtype is then object), of a regression NaN.
    decision_values : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        Its score, as ``decision_function`` returns it; of a regression the prediction. NaN where it
        is not known.
    score : float
        Accuracy, or R² of a regression, over the samples of positive weight; of a one-class machine
        the fraction of them that it accepts. NaN where some are not known: those that are known
        without a refit are classified better than others.
    error : float
        The fraction of misclassified samples, the mean squared error of a regression, or the
        fraction of samples that a one-class machine without them rejects. NaN as the score.
    error_bounds : tuple of float
        The error if all samples that are not known were predicted rightly, and if they were not; ∞
        of a regression.
    n_refits : int
        Machines that were solved beside those of all samples.
    certificate : MarginCertificate
        The worst certificate of all machines.
    is_known : ndarray of bool of shape (n_samples,)
        Whether the machine without a sample was found, before a time limit or a callback ended it.
    status : Status
        ``CONVERGED``, ``TIME_LIMIT`` or ``STOPPED`` by a callback.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> print(mm.model_selection.leave_one_out(mm.SVC(kernel="linear"), X, y))
    leave one out: score 1, error 0, by 3 refits; worst proof: optimal to a relative gap of ...
    """

    predictions: Labels
    decision_values: Floats
    score: float
    error: float
    error_bounds: tuple[float, float]
    n_refits: int
    certificate: MarginCertificate = field(repr=False)
    is_known: NDArray[np.bool_] = field(repr=False)
    status: Status = Status.CONVERGED

    def __str__(self) -> str:
        found = f"score {self.score:.4g}, error {self.error:.4g}"
        if self.status is not Status.CONVERGED:
            known, n = int(np.count_nonzero(self.is_known)), self.is_known.size
            least, most = self.error_bounds
            found = f"error between {least:.4g} and {most:.4g}, {known} of {n} samples known"
            found = f"{found} ({self.status})"
        return f"leave one out: {found}, by {self.n_refits} refits; worst proof: {self.certificate}"


def leave_one_out(
    model: Machine,
    X: MatrixLike,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    time_limit: float | None = None,
    callback: Callable[[RefitStep], Any] | None = None,
    verbose: bool | int = False,
) -> LeaveOneOut:
    """Return what a machine fitted to all samples but one predicts for that one, for all samples.

    A sample with α = 0 does not change the machine of given costs: its prediction is that of the
    machine of all samples. Only the support vectors are left out in turn, each refit starting from
    the α of all samples; all refits share the kernel values, and are certified. The result is that
    of n fits.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        The machine, fitted or not; it is not changed. Several classes are those of
        ``multi_class="ovo"`` or ``"ovr"``. C must be finite. Its ``tol``, ``max_iter``,
        ``time_limit``, ``callback`` and ``verbose`` are those of a single fit, and are not used.
    X : array-like or CSR matrix of shape (n_samples, n_features)
        Samples; the Gram matrix of a precomputed kernel.
    y : array-like of shape (n_samples,)
        Labels or targets; not used by a one-class machine.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the fits. A sample of weight 0 is in none of them, and does not count in the
        score.
    time_limit : float, optional
        Seconds after which it ends with what is known, and a ConvergenceWarning.
    callback : callable, optional
        Called with a `RefitStep` several times per second; a true answer ends the computation with
        what is known.
    verbose : bool or int, default=False
        Print how many refits there are, how many are done, and about how long the others take.

    Returns
    -------
    LeaveOneOut
        Predictions, scores, error, and the worst certificate.

    See Also
    --------
    maxmargin.diagnostics.margin_report : Bounds of the leave-one-out error without refits.

    Notes
    -----
    What depends on all samples is taken from all of them: γ of ``gamma="scale"`` and weights of
    ``class_weight="balanced"``. Every machine is solved to a violation of 1e-6 of its KKT
    conditions or less, whatever ``tol`` is; where several b are optimal, b is the middle of them.

    There is one refit per support vector of every binary task, and at most two more where no α of
    it lies between its bounds. Of the ν-machines every sample counts, α = 0 or not: Σα is ν times
    the weight of all samples that are left. But samples of equal weight (of `NuSVC`: and class)
    leave the same bounds and sums behind. The machine of all samples with those is solved once for
    all of them, and is the one without any sample that has α = 0 in it. There are as many refits
    as support vectors, then, and one for each different weight; all samples need one where all
    weights differ. ν of a `NuSVC` must be feasible without each of the samples.

    The error of a `OneClassSVM` is the rate at which it rejects new samples of the same kind.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels* (2002), section 12.2.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> result = mm.model_selection.leave_one_out(mm.SVC(kernel="linear"), X, y)
    >>> result.error, result.n_refits
    (0.0, 3)
    """
    own = _checked(model)
    own.set_params(time_limit=time_limit, callback=callback, verbose=verbose)
    own._validate_params()
    own.set_params(time_limit=None, callback=None, verbose=False)  # of all fits, and not of one
    clock = TimeLimit(time_limit)
    with limited_threads(own.n_jobs):
        computation = LeavingOut(own, clock, callback, verbose=bool(verbose))
        result = computation.run(X, y, sample_weight)
    if result.status is Status.TIME_LIMIT:
        known, (least, most) = int(np.count_nonzero(result.is_known)), result.error_bounds
        warn_caller(
            f"leave_one_out ended at time_limit={time_limit:g} s with {known} of "
            f"{result.is_known.size} samples: the error is between {least:.4g} and {most:.4g}. "
            "Raise time_limit.",
            ConvergenceWarning,
        )
    return result


def _checked(model: Any) -> Machine:
    """Return a copy of the model that is not fitted, without what is for a single fit."""
    if isinstance(model, LinearSVC | LinearSVR):
        other = "SVC(kernel='linear')" if isinstance(model, LinearSVC) else "SVR(kernel='linear')"
        raise TypeError(
            f"model must be a kernel machine, got {type(model).__name__}: use {other}, which is "
            "the same machine where the loss is and the bias is not penalised."
        )
    if not isinstance(model, SVC | NuSVC | SVR | NuSVR | OneClassSVM):
        raise TypeError(
            "model must be an SVC, NuSVC, SVR, NuSVR or OneClassSVM, got "
            f"{type(model).__name__}: use cross_val_predict(model, X, y, cv=LeaveOneOut()) of "
            "scikit-learn."
        )
    if getattr(model, "multi_class", "") == "crammer_singer":
        raise ValueError(
            "multi_class must be 'ovo' or 'ovr', got 'crammer_singer': joint machines have no "
            "binary tasks to leave a sample out of. Use SVC(multi_class='ovr')."
        )
    machine = cast(Machine, clone(model))
    machine._validate_params()
    if not np.isfinite(getattr(machine, "C", 1.0)):
        raise ValueError(
            f"C must be finite, got {machine.C}: pass a large C. Samples that are not separable "
            "have no hard margin, though they may have one without a sample."
        )
    return machine.set_params(warm_start=False)


class LeavingOut:
    """One leave-one-out computation.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        It is fitted to all samples on the way.
    clock : TimeLimit
    callback : callable, optional
    verbose : bool
    """

    def __init__(
        self,
        model: Machine,
        clock: TimeLimit,
        callback: Callable[[RefitStep], Any] | None,
        *,
        verbose: bool,
    ) -> None:
        self.model, self.clock, self.callback, self.verbose = model, clock, callback, verbose
        self.formulation = model._formulation()
        self.status = Status.CONVERGED

    def run(self, X: MatrixLike, y: Any, sample_weight: Any) -> LeaveOneOut:
        """Solve all machines, as far as the limits allow."""
        model, method = self.model, self.model._method()
        if getattr(model, "approximate", None) is not None:
            raise ValueError(
                f"leave_one_out refits support vectors, which approximate={model.approximate!r} "
                "does not have: use approximate=None, or cross-validation."
            )
        if is_partitioned(X):
            raise TypeError("X must be in memory, got a Dask collection: pass X.compute().")
        y = None if isinstance(model, OneClassSVM) else host_array(y)
        training = method.check(received(X), y, host_array(sample_weight), reset=True)
        _check_sizes(training)
        kernel = checked_kernel(model, training)
        dual = Dual.of(
            kernel, training.X, "auto", EXACT, may_centre=self.formulation.may_centre,
            largest=self.formulation.largest_cost(training),
        )  # fmt: skip
        Dual.load_solvers()
        tasks = [
            LeftOutTask(model, kernel, training, task, dual) for task in method.tasks(training)
        ]
        wholes = [task.solve_whole(self._limits()) for task in tasks]
        proofs: list[MarginCertificate] = []
        scores = np.full((training.X.shape[0], len(tasks)), np.nan)
        if all(whole.is_known for whole in wholes):
            trace = Progress().trace()
            back = [replace(dual.moved_back(each.problem, each.solution), trace=trace)
                    for each in wholes]  # fmt: skip
            adopt(model, method, training, back)
            proofs += model.certificates_
            self._refit_all(tasks, wholes)
            scores = self._of_whole(training)
            for k, task in enumerate(tasks):
                scores[task.task.rows, k] = task.scores + self.formulation.centre(task.task)
        else:
            self.status = Status.TIME_LIMIT
            for task, whole in zip(tasks, wholes, strict=True):
                task.certify([whole])
        proofs += [each for task in tasks for each in task.certificates]
        return self._result(training, scores, sum(task.n_refits for task in tasks), proofs)

    def _limits(self) -> Limits:
        return self.clock.limits(-1)

    def _of_whole(self, training: Training) -> Floats:
        """Return scores by the machines of all samples, in which those of weight 0 are not."""
        model = self.model
        scores: Floats = model._expansion.scores(training.X) + model.intercept_
        if isinstance(model, OneClassSVM):
            scores[np.abs(scores) <= model._rounding()] = 0.0
        return scores

    def _refit_all(self, tasks: list[LeftOutTask], wholes: list[Solved]) -> None:
        """Leave out the samples that change their machine."""
        refits: list[tuple[LeftOutTask, Refit]] = []
        for task, whole in zip(tasks, wholes, strict=True):
            refits += [(task, each) for each in task.begin(whole, self._limits())]
        started, done, together = time.perf_counter(), 0, 1
        while done < len(refits) and self.status is Status.CONVERGED:
            before = time.perf_counter()
            some = refits[done : done + together]
            self._refit_some(some)
            done += len(some)
            now = time.perf_counter()
            if now - before < 0.5 * SECONDS_TOGETHER:
                together = min(2 * together, MOST_TOGETHER)
            elif now - before > SECONDS_TOGETHER:
                together = max(together // 2, 1)
            self._tell(done, len(refits), now - started)
        if not any(np.isnan(task.scores).any() for task in tasks):
            self.status = Status.CONVERGED
        elif self.status is Status.CONVERGED:
            self.status = Status.TIME_LIMIT

    def _refit_some(self, some: list[tuple[LeftOutTask, Refit]]) -> None:
        """Leave out some samples, one after the other, and certify the machines.

        Threads do not help: a refit takes few steps, and most of their time is the interpreter's.
        """
        found: dict[int, list[tuple[Refit, Solved]]] = {}
        for task, refit in some:
            limits = self._limits()
            if limits.seconds == 0.0:
                self.status = Status.TIME_LIMIT
                break
            machine = task.refit(refit, limits)
            found.setdefault(id(task), []).append((refit, machine))
        for task in {id(task): task for task, _ in some}.values():
            mine = found.get(id(task), [])
            task.take([refit for refit, _ in mine], [machine for _, machine in mine])

    def _tell(self, done: int, total: int, seconds: float) -> None:
        """Tell how far the refits are; a callback may end them."""
        step = RefitStep(done, total, seconds, seconds / done * (total - done))
        if self.verbose:
            print(step, flush=True)
        if self.callback is not None and self.callback(step) and done < total:
            self.status = Status.STOPPED

    def _result(
        self,
        training: Training,
        scores: Floats,
        n_refits: int,
        proofs: list[MarginCertificate],
    ) -> LeaveOneOut:
        """Return predictions, and what they are worth."""
        model, is_known = self.model, np.logical_not(np.isnan(scores).any(axis=1))
        rows, n = training.rows[is_known[training.rows]], training.rows.size
        true, worst = np.asarray(training.y)[rows], _worst(proofs, self.status)
        score, n_missing = np.nan, n - rows.size
        if isinstance(model, SVR | NuSVR):
            predictions = decisions = scores[:, 0]
            errors, unknown = (decisions[rows] - true) ** 2, np.inf
            if not n_missing:
                score = float(r2_score(true, decisions[rows]))
        else:
            predictions, decisions = self._labels(training, scores, is_known)
            errors, unknown = (predictions[rows] != true).astype(float), 1.0
            if not n_missing:
                score = 1.0 - float(np.mean(errors))
        least = float(errors.sum()) / n
        most = least + unknown * n_missing / n if n_missing else least
        error = np.nan if n_missing else least
        return LeaveOneOut(
            predictions, decisions, score, error, (least, most), n_refits, worst, is_known,
            self.status,
        )  # fmt: skip

    def _labels(
        self, training: Training, scores: Floats, is_known: NDArray[np.bool_]
    ) -> tuple[Labels, Floats]:
        """Return labels, None where they are not known, and what decision_function returns."""
        model = self.model
        if isinstance(model, OneClassSVM):
            decisions = scores[:, 0]
            labels: Labels = np.where(decisions < 0.0, -1, 1)
        else:
            assert isinstance(model, SVC | NuSVC)
            # Where not even the machines of all samples are known.
            model.classes_, model._reduced_by = training.classes, model.multi_class
            decisions, labels = model._decisions(scores), model.classes_[model._chosen(scores)]
        if not is_known.all():
            decisions, labels = decisions.copy(), labels.astype(object)
            decisions[~is_known], labels[~is_known] = np.nan, None
        return labels, decisions


def _check_sizes(training: Training) -> None:
    """Refuse a class that has only one sample, which cannot be left out."""
    counts = np.bincount(training.codes[training.rows], minlength=len(training.classes))
    if len(training.classes) and counts.min() < 2:
        label = np.asarray(training.classes[int(counts.argmin())]).item()
        raise ValueError(
            f"every class must have at least 2 samples of positive weight, got {counts.min()} of "
            f"class {label!r}: without it there would be no such class."
        )
    if training.rows.size < 2:
        raise ValueError(
            f"X must have at least 2 samples of positive weight, got {training.rows.size}."
        )


def _worst(proofs: list[MarginCertificate], status: Status) -> MarginCertificate:
    """Return the worst certificate, and warn of those that do not hold."""
    worst = max(proofs, key=lambda each: max(each.violation + each.rounding, each.relative_gap))
    n_short = sum(not each.holds(EXACT) for each in proofs)
    if n_short and status is Status.CONVERGED:
        warn_caller(
            f"leave_one_out: {n_short} of {len(proofs)} machines are not optimal to {EXACT:g}; the "
            f"worst: {worst.measures}. Scale the features (StandardScaler), or lower C.",
            ConvergenceWarning,
        )
    return worst
