"""Cross-validated scores of the points over C and γ, row by row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

import maxmargin as mm

from ..arrays import Floats
from ..model_selection.grid import Grid
from ..model_selection.results import Results
from .algorithms import ALGORITHMS, Algorithm, Slide
from .fitting import heard
from .points import Points

SEARCHES = {"svc": mm.SVCCV, "linear-svc": mm.LinearSVCCV, "svr": mm.SVRCV}
# Settings on which scores do not depend, or that are on the axes.
LEFT_OUT = ("C", "gamma", "solver")
MOST_FOLDS, LEAST_FOLDS = 5, 3
# R² of a fold takes two points.
POINTS_PER_FOLD = 2


@dataclass(frozen=True)
class SearchLimits:
    """Limits of the searches of the page."""

    # Variables of a fit: one per point, two of a regression.
    most_variables: int = 500
    # After which a search is stopped.
    seconds: float = 20.0
    # After which fits of one γ are ended.
    piece_seconds: float = 2.0
    # Above which larger costs of polynomial kernels are left out.
    cell_seconds: float = 0.3
    # Between two reports of what has been found so far.
    report_seconds: float = 0.5
    # Between two looks at whether the fits of the page are done.
    pause_seconds: float = 0.02


LIMITS = SearchLimits()


@dataclass(frozen=True)
class Question:
    """What to search: points, and an algorithm with all settings but C and γ."""

    points: Points
    algorithm: str
    settings: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, points: Points, algorithm: str, values: dict[str, Any]) -> Question:
        """Return the question about an algorithm with its values."""
        given = ALGORITHMS[algorithm].parameters(values)
        kept = tuple((name, given[name]) for name in sorted(given) if name not in LEFT_OUT)
        return cls(points, algorithm, kept)

    @property
    def recipe(self) -> Algorithm:
        """The algorithm with its controls."""
        return ALGORITHMS[self.algorithm]

    @property
    def kernel(self) -> str:
        """The name of the kernel."""
        return str(dict(self.settings).get("kernel", "linear"))

    @property
    def score(self) -> str:
        """What the scores are."""
        return "accuracy" if self.recipe.has_classes else "R²"

    @property
    def costs(self) -> Floats:
        """Positions of the slider of C: decades of a map, half of them on a curve."""
        return _positions(self.recipe, "C", 1.0 if self.gammas.size else 0.5)

    @property
    def gammas(self) -> Floats:
        """Positions of the slider of γ; none of a kernel without it."""
        return _positions(self.recipe, "gamma", 0.5) if self.kernel != "linear" else np.empty(0)

    @property
    def n_folds(self) -> int:
        """As many folds as there are points for; at most five."""
        if self.recipe.has_classes:
            counts = np.unique(self.points.codes, return_counts=True)[1]
            return min(MOST_FOLDS, int(counts.min(initial=len(self.points.X))))
        return min(MOST_FOLDS, len(self.points.X) // POINTS_PER_FOLD)

    def refusal(self) -> str:
        """Return why there are no scores, "" where there are some."""
        if self.algorithm not in SEARCHES:
            those = ", ".join(ALGORITHMS[key].title for key in SEARCHES)
            return f"Scores over C are computed for: {those}. Choose one of them."
        n, has_classes = len(self.points.X), self.recipe.has_classes
        most = LIMITS.most_variables // (1 if has_classes else 2)
        if n > most:
            return f"Scores are computed for up to {most} points; there are {n}: delete some."
        if not has_classes:
            return self._refusal_of_targets()
        if self.points.n_classes < 2:
            return "Cross-validation needs points of two classes at least: draw some."
        if self.n_folds < LEAST_FOLDS:
            few = int(np.bincount(self.points.codes)[np.unique(self.points.codes)].argmin())
            name = self.points.names[np.unique(self.points.codes)[few]]
            return (
                f"Cross-validation needs {LEAST_FOLDS} points of each class at least, one per "
                f"fold; class {name} has {self.n_folds}."
            )
        return ""

    def _refusal_of_targets(self) -> str:
        n, least = len(self.points.X), LEAST_FOLDS * POINTS_PER_FOLD
        if self.n_folds < LEAST_FOLDS:
            return (
                f"Cross-validation needs {least} points at least, {POINTS_PER_FOLD} in each of "
                f"{LEAST_FOLDS} folds; there {'is' if n == 1 else 'are'} {n}."
            )
        if np.ptp(self.points.X[:, 1]) == 0.0:
            return "All points are at the same height, so that R² is not defined: move some."
        return ""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of all candidates, as far as they are known.

    Parameters
    ----------
    question : Question
    results : Results
        One candidate per cost and γ, in the order of ``grid``.
    seconds : float
        Time that the search took, without that in which it waited.
    is_over : bool
        Whether the search has ended.
    is_complete : bool
        Whether it came to its end before its limit.
    failure : str
        Why there are no scores.
    """

    question: Question
    results: Results
    seconds: float = 0.0
    is_over: bool = False
    is_complete: bool = False
    failure: str = ""

    @classmethod
    def none_of(cls, question: Question) -> Scores:
        """Return the scores before the first is known."""
        return cls(question, Results(_grid(question).candidates(), question.n_folds))

    @property
    def errors(self) -> Floats:
        """The standard error of every mean score."""
        folds = self.results.scores
        return np.asarray(folds.std(axis=1, ddof=1) / np.sqrt(folds.shape[1]))

    @property
    def known(self) -> Any:
        """Whether a candidate has a score on all folds."""
        return np.isfinite(self.results.means())

    @property
    def certified(self) -> Any:
        """Whether all fits of a candidate are certified."""
        return self.results.holds.all(axis=1)

    @property
    def best(self) -> int | None:
        """The candidate of the best mean score."""
        return self.results.best()

    @property
    def simplest(self) -> int | None:
        """The one of least C and γ within one standard error of the best."""
        return self.results.simplest(_grid(self.question).from_simple())

    def place(self, candidate: int) -> tuple[float, float | None]:
        """Return where the sliders of C and γ have a candidate."""
        costs, gammas = self.question.costs, self.question.gammas
        if not gammas.size:
            return float(costs[candidate]), None
        return float(costs[candidate // gammas.size]), float(gammas[candidate % gammas.size])

    def at(self, cost: float, gamma: float | None) -> int | None:
        """Return the candidate in whose cell a place is; None outside of all cells."""
        c = _cell(self.question.costs, cost)
        if not self.question.gammas.size or c is None:
            return c
        g = None if gamma is None else _cell(self.question.gammas, gamma)
        return None if g is None else c * self.question.gammas.size + g


def search(
    question: Question,
    is_dropped: Callable[[], bool],
    tell: Callable[[Scores], None],
    is_busy: Callable[[], bool] = lambda: False,
) -> None:
    """Compute scores until they are complete or dropped, and tell what is found now and then.

    Fits of the page come first: the search waits while ``is_busy``.
    """
    found, told = Scores.none_of(question), 0.0
    pieces = _pieces(question, found.results)
    while not is_dropped():
        if is_busy():
            time.sleep(LIMITS.pause_seconds)
            continue
        found = _continued(found, pieces)
        if is_dropped():
            return
        if found.is_over:
            tell(found)
            return
        if found.seconds - told > LIMITS.report_seconds:
            told = found.seconds
            tell(replace(found, results=deepcopy(found.results)))


def _continued(found: Scores, pieces: Iterator[list[int]]) -> Scores:
    """Compute the next piece; return what is found."""
    started, failure, is_complete = time.perf_counter(), "", False
    try:
        with heard():  # of limits and convergence, which certificates state
            is_complete = next(pieces, None) is None
    except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
        failure = str(error)
    seconds = found.seconds + time.perf_counter() - started
    is_over = is_complete or bool(failure) or seconds > LIMITS.seconds
    return replace(
        found, seconds=seconds, is_over=is_over, is_complete=is_complete, failure=failure
    )


def _pieces(question: Question, results: Results) -> Iterator[list[int]]:
    """Fill the results γ by γ, and yield after each piece.

    Fits of polynomial kernels take the longer the larger C and γ are, without a limit: they are
    made cost by cost, and where one takes long the larger ones are left out, of larger γ as well.
    """
    grid = _grid(question)
    every = most = grid.costs.size
    step = 1 if question.kernel == "poly" else every
    for g in range(len(grid.kernels)):
        for first in range(0, most, step):
            started = time.perf_counter()
            places = [grid.place(c, g) for c in range(first, first + step)]
            _evaluate(question, results, places)
            yield places
            if time.perf_counter() - started > LIMITS.cell_seconds * step and step < every:
                most = first + step
                break


def _evaluate(question: Question, results: Results, places: list[int]) -> None:
    """Cross-validate candidates of one γ."""
    X, y = question.points.training(question.recipe.family)
    some = [results.candidates[place] for place in places]
    options: dict[str, Any] = dict(question.settings)
    if "gamma" in some[0]:
        options["gammas"] = [some[0]["gamma"]]
    folds = StratifiedKFold if question.recipe.has_classes else KFold
    machine = SEARCHES[question.algorithm](
        [each["C"] for each in some], refit=False, time_limit=LIMITS.piece_seconds,
        # Points of many data sets are in order.
        cv=folds(question.n_folds, shuffle=True, random_state=0), **options,
    )  # fmt: skip
    table = machine.fit(X, y).cv_results_
    for k in range(question.n_folds):
        results.scores[places, k] = table[f"split{k}_test_score"]
    results.holds[places] = table["certified"][:, np.newaxis]


def _grid(question: Question) -> Grid:
    """Return the candidates: the numbers at positions of the sliders."""
    costs = _numbers(question.recipe, "C", question.costs)
    if not question.gammas.size:
        return Grid(np.array(costs), "", [None])
    return Grid(np.array(costs), "gamma", _numbers(question.recipe, "gamma", question.gammas))


def slide_of(recipe: Algorithm, name: str) -> Slide:
    """Return the slider of a parameter."""
    return next(c for c in recipe.controls if c.name == name and isinstance(c, Slide))


def _positions(recipe: Algorithm, name: str, step: float) -> Floats:
    """Return positions of a slider, those without a finite number excluded."""
    slide = slide_of(recipe, name)
    every = np.arange(slide.low, slide.high + step / 2.0, step)
    return every[every < slide.high] if slide.top else every


def _numbers(recipe: Algorithm, name: str, positions: Floats) -> list[float]:
    slide = slide_of(recipe, name)
    return [slide.number(each) for each in positions.tolist()]


def _cell(positions: Floats, at: float) -> int | None:
    """Return the number of the cell around a position; None outside of all."""
    step = positions[1] - positions[0]
    nearest = int(np.abs(positions - at).argmin())
    return nearest if abs(positions[nearest] - at) <= step / 2.0 + 1e-9 else None
