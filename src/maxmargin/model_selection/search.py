"""A search over costs and kernels with cross-validation, as one computation.

Folds share kernel values, and costs begin with each other's answers (`kernel_grid`). What comes out
is what scikit-learn's GridSearchCV finds with the same estimator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils._tags import get_tags

from ..arrays import Integers, take
from ..caller import warn_caller
from ..estimators.claims import TimeLimit
from ..estimators.fitting import limited_threads
from ..estimators.formulation import checked_kernel
from ..estimators.training import Training
from ..kernels import Kernel
from ..runtime.memory import bytes_to_keep
from ..runtime.threads import in_parallel, n_threads
from ..solvers.dual.choice import Dual
from .folds import Fold, class_fold, splits_of, target_fold
from .grid import Grid
from .kernel_grid import Evaluated, KernelGrid
from .results import Results
from .scoring import (
    HeldOut,
    asks_for_accuracy,
    failed,
    known_classifier,
    known_regressor,
    scored,
    takes_weights,
)
from .search_progress import SearchProgress, Tell
from .strategies import going_on, is_bounded


class Block(NamedTuple):
    """Fits that share a kernel, or its name: numbers of a kernel, of folds and of costs."""

    kernel: int
    folds: list[int]
    costs: list[int]


class Search:
    """One search: its folds, candidates and results.

    Parameters
    ----------
    template : SVC or SVR
        The estimator of all candidates, with C = 1.
    grid : Grid
    X, y, sample_weight, groups
        The data.
    cv, scoring, error_score, strategy, time_limit, n_jobs, verbose
        Parameters of the search.
    tell : callable, optional
        (n, best) ↦ None, called after some fits with their number and the best mean score so far,
        by any thread, but by one at a time.
    """

    def __init__(
        self,
        template: Any,
        grid: Grid,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        *,
        cv: Any,
        scoring: Any,
        error_score: Any,
        strategy: str,
        time_limit: float | None,
        n_jobs: int | None,
        verbose: bool | int,
        tell: Tell | None = None,
    ) -> None:
        X, y, sample_weight, groups = indexable(X, y, sample_weight, groups)
        self.template, self.grid, self.X, self.y = template, grid, X, y
        self.error_score, self.strategy, self.verbose = error_score, strategy, verbose
        self.n_jobs, self.time_limit = n_jobs, TimeLimit(time_limit)
        self.scorer = check_scoring(template, scoring=scoring)
        _refuse_probabilities(self.scorer)
        self._is_bounded = is_bounded(self.scorer, is_classifier=is_classifier(template))
        # As GridSearchCV passes them on.
        self.weights = sample_weight if takes_weights(self.scorer) else None
        training = template._method().check(X, y, sample_weight, reset=True)
        self.training, place = _by_class(training, is_pairwise=self._is_pairwise)
        self.splits = splits_of(cv, X, y, groups, is_classifier=is_classifier(template))
        self.folds = [self._fold(place[train], place[test]) for train, test in self.splits]
        self.results = Results(grid.candidates(), len(self.folds))
        self.machines = KernelGrid(
            template, template._formulation(), self.training.X, self.time_limit
        )
        self._known: dict[int, HeldOut] = {}
        self.progress = SearchProgress(self.results, tell, is_fixed=strategy == "all")
        self.is_complete = False

    def run(self) -> None:
        """Evaluate all candidates, or as many as the strategy and the time limit leave."""
        with limited_threads(self.n_jobs):
            for k, fold in enumerate(self.folds):
                if fold.error is not None:
                    self.results.scores[:, k] = failed(fold.error, self.error_score)
            for blocks in self._blocks():
                if self.time_limit.left(1.0) == 0.0:
                    warn_caller(self.progress.ended_at(self.time_limit.seconds), ConvergenceWarning)
                    return
                self._evaluate(blocks)
        self.is_complete = True

    # Which fits ------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[list[Block]]:
        """Yield what is evaluated side by side."""
        grid, ascending = self.grid, np.argsort(self.grid.costs, kind="stable").tolist()
        usable = [k for k, fold in enumerate(self.folds) if fold.error is None]
        if self.strategy == "all":
            step = self.at_once
            for kernels in self._turns():
                blocks = [Block(k, usable, ascending) for k in kernels if usable]
                yield from (blocks[k : k + step] for k in range(0, len(blocks), step))
                self.machines.learn()
            return
        for n_before, fold in enumerate(usable):
            before = self.results.scores[:, usable[:n_before]]
            missing = len(usable) - n_before
            wanted = going_on(before, self.strategy, missing, bounded=self._is_bounded)
            blocks = []
            for kernel in range(len(grid.kernels)):
                costs = [c for c in ascending if wanted[grid.place(c, kernel)]]
                if costs:
                    blocks.append(Block(kernel, [fold], costs))
            step = self.at_once
            yield from (blocks[k : k + step] for k in range(0, len(blocks), step))
            self.machines.learn()

    def _turns(self) -> list[list[int]]:
        """Return the kernels, those of large γ first: most of their samples are support vectors.

        Every second one comes later, and begins with the answers of its neighbours.
        """
        kernels = self.grid.kernels
        if self.grid.name != "gamma" or any(isinstance(each, str) for each in kernels):
            return [list(range(len(kernels)))]
        falling = np.argsort(-np.array(kernels), kind="stable").tolist()
        return [falling[::2], falling[1::2]]

    @cached_property
    def at_once(self) -> int:
        """How many kernels are handed out at once: two per thread, if the memory holds their K."""
        n = self.training.X.shape[0]
        per_kernel = 2.0 * 8.0 * n * n  # K in double and in single precision, and parts of it
        side_by_side = int(max(bytes_to_keep() // max(per_kernel, 1.0), 1))
        return side_by_side if side_by_side < n_threads() else 2 * n_threads()

    # One kernel ------------------------------------------------------------------------------

    def _evaluate(self, blocks: list[Block]) -> None:
        """Fit the machines of some kernels side by side, and score them."""
        parts = [(block, part) for block in blocks for part in self._by_kernel(block)]
        done: dict[int, Evaluated] = {}

        def one(k: int, stop: Event) -> None:
            block, (kernel, folds) = parts[k]
            mine = [self.folds[fold] for fold in folds]
            with self.progress.part(len(folds) * len(block.costs)) as solved:
                costs = self.grid.costs[block.costs]
                found = self.machines.evaluate(kernel, mine, costs, solved, stop)
            if not stop.is_set():
                done[k] = found

        is_elementwise = all(kernel.elementwise for _, (kernel, _) in parts)
        Dual.load_solvers()
        try:
            in_parallel(one, range(len(parts)), alone=not is_elementwise or len(parts) == 1)
        finally:  # after Ctrl-C, too
            for k, evaluated in sorted(done.items()):
                block, (_, folds) = parts[k]
                self._score(block.kernel, folds, block.costs, evaluated)
        if self.verbose:
            print(self.progress.in_words(), flush=True)

    def _by_kernel(self, block: Block) -> list[tuple[Kernel, list[int]]]:
        """Return the folds of every kernel: gamma="scale" is another number in every fold."""
        if self.grid.name == "gamma" and not isinstance(self.grid.kernels[block.kernel], str):
            return [(self._kernel(block.kernel, self.folds[block.folds[0]]), block.folds)]
        found: dict[Any, list[int]] = {}
        for k in block.folds:
            found.setdefault(self._kernel(block.kernel, self.folds[k]), []).append(k)
        return list(found.items())

    def _kernel(self, number: int, fold: Fold) -> Kernel:
        """Return a kernel with the parameters that the training rows of a fold make."""
        model = clone(self.template).set_params(**{self.grid.name: self.grid.kernels[number]})
        training = fold.training
        if isinstance(model.gamma, str) and not self._is_pairwise:
            rows = fold.train
            training = replace(
                training, X=training.X[rows], y=training.y[rows], codes=training.codes[rows],
                sample_weights=training.sample_weights[rows], weights=training.weights[rows],
            )  # fmt: skip
        return checked_kernel(model, training)

    def _score(self, kernel: int, folds: list[int], costs: list[int], evaluated: Evaluated) -> None:
        results = self.results
        for at, k in enumerate(folds):
            held_out = self._held_out(k)
            for c, cost in enumerate(costs):
                place = self.grid.place(cost, kernel)
                value, seconds = scored(
                    held_out, self.scorer, evaluated.scores[at][c], self.error_score
                )
                results.scores[place, k], results.score_seconds[place, k] = value, seconds
                results.gaps[place, k] = evaluated.gaps[c, at]
                results.holds[place, k] = evaluated.holds[c, at]
                results.fit_seconds[place, k] = evaluated.seconds

    def _held_out(self, k: int) -> HeldOut:
        """Return what is scored in a fold."""
        if k not in self._known:
            fold, (train, test) = self.folds[k], self.splits[k]
            X, y = _safe_indexing(self.X, test), _safe_indexing(self.y, test)
            if self._is_pairwise:
                X = X[:, train]
            if is_classifier(self.template):
                known = known_classifier(self.template, fold.classes, X, len(fold.tasks))
            else:
                known = known_regressor(self.template, X)
            options = {}
            if self.weights is not None:
                options["sample_weight"] = _safe_indexing(self.weights, test)
            numbers = None
            if asks_for_accuracy(self.scorer, self.template, options):
                numbers = self._class_numbers(fold)
            self._known[k] = HeldOut(known, X, y, options, numbers)
        return self._known[k]

    def _class_numbers(self, fold: Fold) -> Integers:
        """Return which class of a fold each held-out row is of, −1 of those that it lacks."""
        own = np.searchsorted(self.training.classes, fold.classes)
        number = np.full(len(self.training.classes), -1)
        number[own] = np.arange(own.size)
        return number[self.training.codes[fold.test]]

    @property
    def _is_pairwise(self) -> bool:
        return bool(get_tags(self.template).input_tags.pairwise)

    def _fold(self, train: Any, test: Any) -> Fold:
        if is_classifier(self.template):
            weight, multi_class = self.template.class_weight, self.template.multi_class
            return class_fold(self.training, train, test, weight, multi_class)
        return target_fold(self.training, train, test)


def _by_class(training: Training, *, is_pairwise: bool) -> tuple[Training, Integers]:
    """Return the samples one class after the other, and the new place of each.

    The kernel values of two of many classes are then side by side.
    """
    n = training.X.shape[0]
    if len(training.classes) <= 2:
        return training, np.arange(n)
    order = np.argsort(training.codes, kind="stable")
    X = training.X[np.ix_(order, order)] if is_pairwise else take(training.X, order)
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    moved = replace(
        training, X=X, y=training.y[order], codes=training.codes[order],
        sample_weights=training.sample_weights[order], weights=training.weights[order],
    )  # fmt: skip
    return moved, place


def _refuse_probabilities(scorer: Any) -> None:
    """Refuse a scorer that needs probabilities: they would take further fits for every machine."""
    if getattr(scorer, "_response_method", None) == "predict_proba":
        raise ValueError(
            f"scoring={scorer!r} needs probabilities, which this search does not compute: use one "
            "of decision values or classes, or GridSearchCV with probability=True."
        )
