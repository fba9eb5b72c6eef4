"""The planes, or the α, of the steps of a fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats, Integers, Matrix, MatrixLike, dense, refuse_partitions
from ..diagnostics.fitted_model import ModelLike
from ..estimators.svc import NuSVC
from ..kernels import Linear
from ..progress import Callback, Recorder, Step
from .model import FigureModel

MOST_KERNEL_VALUES = 100_000_000  # held for all moments
# Of scores near the samples; larger ones may overflow somewhere in the picture.
MOST_SIZE = 1e300
# Relative to the answer, what the same fit made twice may differ by.
SAME_ANSWER = 1e-6

Item = TypeVar("Item")
Evaluate: TypeAlias = Callable[["Moment"], Floats]


@dataclass(frozen=True, eq=False)
class Moment:
    """The state of an algorithm: w (d,) or α (n,), or both, and b.

    ``sample`` is the row being corrected, None at the end of a pass; ``unit`` is what an iteration
    is; ``primal`` and ``dual`` are those of `maxmargin.Step`, NaN where they are not known.
    """

    iteration: int
    objective: float
    sample: int | None
    w: Floats | None
    b: float
    alpha: Floats | None
    unit: str = "step"
    primal: float = np.nan
    dual: float = np.nan

    def same_as(self, other: Moment) -> bool:
        """Say whether nothing changed in between."""
        pairs = ((self.w, other.w), (self.alpha, other.alpha))
        return self.b == other.b and all(
            (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b))
            for a, b in pairs
        )


class Run:
    """The moments of a fit of two classes, first to last, the fitted model at the end.

    Parameters
    ----------
    model : FigureModel
    X : array or CSR matrix of shape (n, d)
        Features of the classifier.
    signs : ndarray of shape (n,)
        y = ±1.
    moments : list of Moment
        Those of the ``n_moments`` moments of the fit that were kept.

    Attributes
    ----------
    numbers : ndarray of int
        The numbers of the moments that were kept, from 1.
    before : list of Moment or None
        For every moment that was kept the state that it changed; None before the first.
    ends_with_step : bool
        Whether the answer is the state after the last step, rather than a moment of its own.
    overflows : bool
        Whether steps are left out, from the first one on whose numbers overflow.
    is_another_fit : bool
        Whether the steps are those of a fit that has gone another way than that of the model.
    ends_elsewhere : bool
        Whether that fit has another answer.
    """

    def __init__(
        self, model: FigureModel, X: MatrixLike, signs: Floats, moments: list[Moment]
    ) -> None:
        self.model, self.X, self.signs, self.moments = model, X, signs, moments
        self.n_moments = len(moments)
        self.numbers: Integers = np.arange(1, self.n_moments + 1)
        self.before = predecessors(moments)
        self.ends_with_step = True
        self.overflows = self.is_another_fit = self.ends_elsewhere = False

    @property
    def n_steps(self) -> int:
        """Moments of the fit but for an answer that no step has reached."""
        return self.n_moments - (not self.ends_with_step)

    @property
    def unit(self) -> str:
        """What a moment comes after: an update by one sample, a pass, a round or a step."""
        if any(moment.sample is not None for moment in self.moments):
            return "update"
        return self.moments[0].unit

    def weights(self, moment: Moment) -> Floats | None:
        """Return w: the solver's, or Σ α_i y_i x_i of a linear kernel, None of another."""
        if moment.w is not None:
            return moment.w
        if moment.alpha is None or not isinstance(self.model.kernel, Linear):
            return None
        return np.asarray((moment.alpha * self.signs) @ self.X).ravel()

    def is_flat(self, moment: Moment, scores: Floats) -> bool:
        """Say whether w = 0 to rounding; ``scores`` are g of samples and of other points."""
        kernel = self.model.kernel
        if moment.alpha is None or kernel is None:
            return moment.w is not None and not moment.w.any()
        terms = np.abs(moment.alpha).sum() * np.abs(kernel.diagonal(self.X)).max()
        return self.model.are_equal(scores, float(terms))

    def evaluator(self, rows: Matrix) -> Evaluate:
        """Return moment ↦ g of these rows; kernel values are computed once."""
        K: Floats | None = None
        if not self.model.is_linear:
            assert self.model.kernel is not None
            if rows.shape[0] * self.X.shape[0] > MOST_KERNEL_VALUES:
                raise ValueError(
                    f"{rows.shape[0]:,} points times {self.X.shape[0]:,} samples are too many "
                    "kernel values: lower resolution, or fit on fewer samples."
                )
            K = self.model.kernel(rows, self.X)

        def evaluate(moment: Moment) -> Floats:
            if K is not None:
                assert moment.alpha is not None
                return np.asarray(K @ (moment.alpha * self.signs) + moment.b)
            w = self.weights(moment)
            assert w is not None
            return np.asarray(rows @ w + moment.b).ravel()

        return evaluate


def fitted_classifier(clf: ModelLike, X: MatrixLike, y: ArrayLike) -> FigureModel:
    """Return a fitted classifier as it is, another one fitted to X and y with a recorder."""
    refuse_partitions(X, y)
    try:
        check_is_fitted(clf)
    except NotFittedError:
        last = f"{clf.steps[-1][0]}__callback" if isinstance(clf, Pipeline) else "callback"
        given = clf.get_params()
        # A search has no callback: its best model is fitted once more, to see its steps.
        watched = {last: _Listening(given[last])} if last in given else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf = clone(clf).set_params(**watched).fit(X, y)
    model = FigureModel(clf)
    answer = "plots.regression" if model.has_targets else "plots.boundary"
    model.require_classes(f"plots.convergence draws how its fit went, {answer} where it ended")
    return model


def run_of(model: FigureModel, X: MatrixLike, y: ArrayLike, limit: int) -> Run:
    """Return at most ``limit`` moments of the fit: as recorded by its callback, or of a new fit.

    A new fit with the same parameters has the same steps, unless it is random without a seed.
    """
    if not model.is_binary:
        raise ValueError(
            f"the steps of an algorithm are drawn for two classes, got {len(model.classes)} "
            "classes: fit a pair."
        )
    rows = model.transform(X)
    rows = rows if sparse.issparse(rows) else np.asarray(rows, dtype=float)
    signs = np.where(model.codes(y, rows.shape[0]) == 1, 1.0, -1.0)
    recorded = model.classifier.callback
    if isinstance(recorded, Recorder) and recorded.steps:
        fitted, steps = model.classifier, _last_fit(recorded.steps)
    else:
        fitted, steps = _again(model.classifier, rows, y)
    all_moments = [_moment(step) for step in steps]
    _check_rows(all_moments, len(signs))
    moments = _before_overflow(all_moments, rows)
    run = Run(model, rows, signs, moments)
    run.overflows = len(moments) < len(all_moments)
    run.ends_elsewhere = not _same_answer(fitted, model.classifier)
    is_as_long = np.array_equal(fitted.n_iter_, model.classifier.n_iter_)
    run.is_another_fit = run.ends_elsewhere or not is_as_long
    run.moments = [_of_margin_one(run, moment) for moment in moments]
    steps_alone = _different(run.moments)
    every = _different([*steps_alone, _answer(model, len(signs), run.moments)])
    run.ends_with_step = len(every) == len(steps_alone)
    run.n_moments = len(every)
    run.numbers = np.array(thinned(range(1, run.n_moments + 1), limit))
    run.moments = thinned(every, limit)
    run.before = thinned(predecessors(every), limit)
    return run


def predecessors(moments: Sequence[Moment]) -> list[Moment | None]:
    """Return for every moment the state that it changed, None for the first one.

    An update changes the state after the last update: the end of a pass may show another plane, the
    one in the pocket.
    """
    found: list[Moment | None] = []
    last = updated = None
    for moment in moments:
        found.append(updated if moment.sample is not None and updated is not None else last)
        last = moment
        updated = moment if moment.sample is not None else updated
    return found


def thinned(items: Sequence[Item], limit: int) -> list[Item]:
    """Return at most ``limit`` items, evenly spaced, with the first and the last."""
    if len(items) <= limit:
        return list(items)
    chosen = np.unique(np.linspace(0, len(items) - 1, max(limit, 2)).round().astype(int))
    return [items[k] for k in chosen]


def early(numbers: Integers, most: int) -> Integers:
    """Return the places of at most so many numbers: the first, the last, by equal factors between.

    >>> early(np.arange(1, 1001), 4).tolist()
    [0, 9, 99, 999]
    """
    wanted = np.geomspace(max(numbers[0], 1), max(numbers[-1], 1), most).round()
    return np.unique([int(np.abs(numbers - k).argmin()) for k in wanted])


def early_and_even(numbers: Integers, most: int) -> Integers:
    """Return the places of at most so many numbers: half of them evenly, half of them early."""
    if len(numbers) <= most:
        return np.arange(len(numbers))
    even = np.linspace(0, len(numbers) - 1, most // 2).round().astype(int)
    return np.union1d(even, early(numbers, most // 2))


def _last_fit(steps: list[Step]) -> list[Step]:
    """Return the steps of the last fit in a recorder."""
    number = [step.iteration for step in steps]
    starts = [k for k in range(1, len(steps)) if number[k] < number[k - 1]]
    return steps[starts[-1] :] if starts else steps


class _Listening(Recorder):
    """Keep every update, and hand on to a callback what it would hear without a recorder."""

    def __init__(self, callback: Callback | None) -> None:
        super().__init__(every_update=True)
        self.callback = callback

    def __call__(self, step: Step) -> bool:  # type: ignore[override]
        super().__call__(step)
        hears = step.sample is None or getattr(self.callback, "every_update", False)
        return bool(self.callback is not None and hears and self.callback(step))


def _again(machine: ModelLike, X: MatrixLike, y: ArrayLike) -> tuple[ModelLike, list[Step]]:
    """Fit a model with the same parameters, and return it with every update."""
    recorder = Recorder(every_update=True)
    given = machine.get_params(deep=False)
    wanted = {"callback": recorder, "warm_start": False, "verbose": False}
    again = type(machine)(**given | {name: wanted[name] for name in wanted if name in given})
    with warnings.catch_warnings():
        # The first fit has warned already.
        warnings.simplefilter("ignore", ConvergenceWarning)
        again.fit(X, np.asarray(y))
    return again, recorder.steps


def _same_answer(one: ModelLike, other: ModelLike) -> bool:
    """Say whether two fits of one estimator have ended at the same plane or the same α."""
    if one is other:
        return True
    if not np.array_equal(getattr(one, "support_", ()), getattr(other, "support_", ())):
        return False
    answers = [_numbers_of(each) for each in (one, other)]
    scale = float(np.abs(answers).max())
    return bool(np.abs(np.subtract(*answers)).max() <= SAME_ANSWER * scale)


def _numbers_of(machine: ModelLike) -> Floats:
    """Return b, and w or α."""
    vectors = machine.dual_coef_ if hasattr(machine, "dual_coef_") else machine.coef_
    return np.concatenate([np.ravel(machine.intercept_), dense(vectors).ravel()])


def _before_overflow(moments: list[Moment], X: Matrix) -> list[Moment]:
    """Return the moments before the first one whose scores may overflow."""
    largest = float(abs(X).max())

    def overflows(moment: Moment) -> bool:
        w, alpha = moment.w, moment.alpha
        with np.errstate(over="ignore", invalid="ignore"):
            size = abs(moment.b) + (0.0 if w is None else float(np.abs(w).sum()) * largest)
            size += 0.0 if alpha is None else float(np.abs(alpha).sum())
        return not size < MOST_SIZE

    return list(takewhile(lambda moment: not overflows(moment), moments))


def _moment(step: Step) -> Moment:
    now = step.snapshot()
    w = now.w[0] if len(now.w) else None
    return Moment(
        step.iteration, step.objective, step.sample, w, float(now.b[0]), now.alpha, step.unit,
        step.primal, step.dual,
    )  # fmt: skip


def _answer(model: FigureModel, n: int, before: list[Moment]) -> Moment:
    """Return the fitted model as the last moment; its plane may be an earlier, better one."""
    machine = model.classifier
    last = before[-1] if before else None
    w = dense(machine.coef_)[0] if model.is_linear else None
    alpha = None if model.support is None else model.alpha(n)
    objective = np.nan if last is None else last.objective
    iteration = 0 if last is None else last.iteration
    return Moment(iteration, objective, None, w, float(machine.intercept_[0]), alpha)


def _of_margin_one(run: Run, moment: Moment) -> Moment:
    """Return a moment of the ν-machine divided by its ρ, so that its margin is 1."""
    alpha = moment.alpha
    if not isinstance(run.model.classifier, NuSVC) or alpha is None or not alpha.any():
        return moment
    margins = run.signs * run.evaluator(run.X)(moment)
    free = (alpha > 1e-8 * alpha.max()) & (alpha < (1.0 - 1e-8) * alpha.max())
    rho = float(np.median(margins[free if free.any() else alpha > 0]))
    if rho <= 0:
        return moment
    w = None if moment.w is None else moment.w / rho
    return replace(moment, w=w, b=moment.b / rho, alpha=alpha / rho)


def _different(moments: list[Moment]) -> list[Moment]:
    """Leave out moments at which nothing changed."""
    kept: list[Moment] = []
    for moment in moments:
        if not kept or not moment.same_as(kept[-1]):
            kept.append(moment)
    return kept


def _check_rows(moments: list[Moment], n: int) -> None:
    for moment in moments:
        if moment.alpha is not None and len(moment.alpha) != n:
            raise ValueError(
                f"the recorded α are of {len(moment.alpha)} samples, X has {n}: pass the X and y "
                "of the fit, or fit without samples of weight 0."
            )
