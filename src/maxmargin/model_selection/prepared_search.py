"""The parameters of a model by cross-validation, its columns prepared anew in every fold.

A search over a coarse grid is followed by one over a fine grid around the best candidate. `SVCCV`
and its relatives share kernel values between folds; here every fold has its own preparation, such
as means and scales of its training rows, and shares them between candidates alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import check_scoring

from ..arrays import Floats, Integers
from ..estimators.claims import TimeLimit
from ..estimators.svc import SVC
from .results import Parameters, Results
from .strategies import going_on, is_bounded
from .svc_cv import SVCCV

# Candidates of a fine grid on an axis, in steps of the coarse grid from its best candidate.
FINE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 3.0


@dataclass(frozen=True)
class Family:
    """A model, and the values of its parameters among which to choose.

    Parameters
    ----------
    name : str
        What it is called.
    model : estimator
        With all other parameters.
    axes : dict of str to list
        The values of each parameter, ascending. The first parameter is C or ν.
    refined : tuple of str
        The parameters that have a fine grid as well.
    """

    name: str
    model: Any
    axes: Mapping[str, list[Any]]
    refined: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values every parameter has."""
        return tuple(len(values) for values in self.axes.values())

    def candidates(self) -> list[Parameters]:
        """Return the parameters of every candidate, the last parameter varying fastest."""
        return [dict(zip(self.axes, each, strict=True)) for each in product(*self.axes.values())]

    def around(self, best: Parameters) -> Family | None:
        """Return the fine grid around a candidate; None where nothing is to be refined."""
        axes, is_finer = dict(self.axes), False
        for name, values in self.axes.items():
            if name in self.refined and len(values) > 1:
                steps = np.diff(np.log(np.asarray(values, dtype=float)))
                axes[name] = rounded(best[name] * np.exp(FINE * steps.mean()))
                is_finer = True
            elif name in self.refined:
                axes[name] = [best[name]]
        if "nu" in axes:
            axes["nu"] = [nu for nu in axes["nu"] if nu <= 1.0]
        return replace(self, axes=axes) if is_finer else None

    def simplicity(self, candidate: Parameters) -> tuple[float, ...]:
        """Return a key by which the simplest candidate comes first: a small C or large ν, small γ.

        Texts, such as ``gamma="scale"``, come before numbers.
        """
        values = [0.0 if isinstance(each, str) else float(each) for each in candidate.values()]
        return (-values[0] if "nu" in candidate else values[0], *values[1:])


def rounded(values: Floats) -> list[float]:
    """Return values with six digits, which can be read and typed.

    >>> rounded(np.array([2.0**-5, 2.0**0.3]))
    [0.03125, 1.23114]
    """
    return [float(f"{value:.6g}") for value in values]


@dataclass(frozen=True)
class PreparedFolds:
    """Rows, and how they are split and prepared.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Rows as they were read.
    y : ndarray of shape (n_samples,)
    preparation : transformer
        Fitted to the training rows of every fold.
    splits : list of (train, test)
        Row numbers.
    """

    X: Any
    y: Any
    preparation: Any
    splits: list[tuple[Integers, Integers]]

    def __len__(self) -> int:
        return len(self.splits)

    def prepared(self, k: int) -> Any:
        """Return all rows as the training rows of a fold prepare them."""
        return clone(self.preparation).fit(self.X[self.splits[k][0]]).transform(self.X)


@dataclass(eq=False)
class GridOnFolds:
    """The scores of the candidates of a family on the folds.

    Parameters
    ----------
    family : Family
    folds : PreparedFolds
    scorer : callable
        Of scikit-learn.
    scoring : str or None
        Its name, for `SVCCV`.
    strategy : {"all", "bounded", "halving"}
        As of `SVCCV`.

    Attributes
    ----------
    results : Results
    n_done : int
        How many folds are complete.
    """

    family: Family
    folds: PreparedFolds
    scorer: Any
    scoring: str | None
    strategy: str
    results: Results = field(init=False)
    n_done: int = 0

    def __post_init__(self) -> None:
        self.results = Results(self.family.candidates(), len(self.folds))

    @property
    def is_complete(self) -> bool:
        """Whether all folds are complete."""
        return self.n_done == len(self.folds)

    def run(self, time_limit: TimeLimit, tell: Callable[[int, float], None]) -> None:
        """Fit and score the candidates, fold by fold, until the time is over."""
        for k in range(len(self.folds)):
            if time_limit.left(1.0) == 0.0:
                return
            wanted = self._wanted(k)
            evaluate = self._by_paths if type(self.family.model) is SVC else self._one_by_one
            evaluate(k, wanted, time_limit)
            if np.isnan(self.results.fit_seconds[wanted, k]).any():  # the time is over
                return
            self.n_done = k + 1
            tell(len(self.results.candidates), self.best_mean())

    def so_far(self) -> Results:
        """Return the results of complete folds; of the first one where none is complete."""
        n, own = max(self.n_done, 1), self.results
        found = Results(own.candidates, n)
        for name in ("scores", "gaps", "fit_seconds", "score_seconds", "holds"):
            setattr(found, name, getattr(own, name)[:, :n])
        return found

    def best_mean(self) -> float:
        """Return the largest mean score of the complete folds."""
        return float(np.nanmax(np.append(self.so_far().means(), -np.inf)))

    def _wanted(self, k: int) -> NDArray[np.intp]:
        """Return the candidates that go on to a fold, as the strategy says."""
        bounded = is_bounded(self.scorer, is_classifier=True)
        before, missing = self.results.scores[:, :k], len(self.folds) - k
        return np.flatnonzero(going_on(before, self.strategy, missing, bounded=bounded))

    def _by_paths(self, k: int, wanted: NDArray[np.intp], time_limit: TimeLimit) -> None:
        """Evaluate machines of `SVC` along paths over C, kernels of the same costs together."""
        X, (names, shape) = self.folds.prepared(k), (list(self.family.axes), self.family.shape)
        mask = np.zeros(len(self.results.candidates), dtype=bool)
        mask[wanted] = True
        columns = mask.reshape(shape[0], -1)
        for pattern in np.unique(columns[:, columns.any(axis=0)], axis=1).T:
            costs = np.flatnonzero(pattern)
            kernels = np.flatnonzero((pattern == columns.T).all(axis=1))
            places = (costs[:, None] * columns.shape[1] + kernels).ravel()
            left = time_limit.left(1.0)
            if left == 0.0:
                return
            search = _search_like(self.family.model)(
                Cs=[self.family.axes["C"][c] for c in costs],
                gammas=[self.family.axes["gamma"][g] for g in kernels] if "gamma" in names
                else [self.family.model.gamma],
                cv=[self.folds.splits[k]], scoring=self.scoring, refit=False, error_score="raise",
                time_limit=left,
            ).fit(X, self.folds.y)  # fmt: skip
            table = search.cv_results_
            results = self.results
            results.scores[places, k] = table["mean_test_score"]
            results.gaps[places, k] = table["worst_gap"]
            results.holds[places, k] = table["certified"]
            results.fit_seconds[places, k] = table["mean_fit_time"]
            results.score_seconds[places, k] = table["mean_score_time"]

    def _one_by_one(self, k: int, wanted: NDArray[np.intp], time_limit: TimeLimit) -> None:
        """Evaluate any model by a fit per candidate; those that cannot be fitted have no score."""
        X, (train, test) = self.folds.prepared(k), self.folds.splits[k]
        learn, hold, y = X[train], X[test], self.folds.y
        results = self.results
        for place in wanted:
            left = time_limit.left(1.0)
            if left == 0.0:
                return
            model = clone(self.family.model).set_params(**results.candidates[place])
            model.set_params(time_limit=left)
            started = time.perf_counter()
            try:
                model.fit(learn, y[train])
            except ValueError:  # such as ν that the folds do not allow
                results.fit_seconds[place, k] = time.perf_counter() - started
                continue
            fitted = time.perf_counter()
            results.scores[place, k] = self.scorer(model, hold, y[test])
            results.fit_seconds[place, k] = fitted - started
            results.score_seconds[place, k] = time.perf_counter() - fitted
            proofs = model.certificates_
            results.gaps[place, k] = max(abs(each.relative_gap) for each in proofs)
            results.holds[place, k] = all(each.holds(model.tol) for each in proofs)


def _search_like(model: SVC) -> Callable[..., SVCCV]:
    """Return `SVCCV` with the parameters that it shares with a machine."""
    own = {"time_limit", "verbose"}
    shared = set(SVCCV._get_param_names()) & set(model._get_param_names()) - own
    given = {name: getattr(model, name) for name in shared}
    return lambda **parameters: SVCCV(**given, **parameters)


@dataclass(frozen=True)
class Candidate:
    """A candidate of a search, with its scores.

    Parameters
    ----------
    family : Family
    parameters : dict
    scores : ndarray of shape (n_folds,)
    certified : bool
        Whether the certificates of all its fits hold.
    seconds : float
        Of a fit, on average.
    """

    family: Family
    parameters: Parameters
    scores: Floats
    certified: bool
    seconds: float

    @property
    def mean(self) -> float:
        """The mean score."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """That of the mean score."""
        n = self.scores.size
        return float(self.scores.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan


@dataclass(eq=False)
class PreparedSearch:
    """A coarse and a fine search of one or several families of models, on the same folds.

    Parameters
    ----------
    families : list of Family
        With their coarse grids.
    folds : PreparedFolds
    scoring : str or None
        A scorer of scikit-learn; None is that of the model.
    strategy : {"all", "bounded", "halving"}
        As of `SVCCV`.
    time_limit : float or None
        Seconds after which the search ends with what it has found.

    Attributes
    ----------
    grids : list of GridOnFolds
        Those that were begun: the coarse ones, then the fine ones.
    is_complete : bool
    """

    families: list[Family]
    folds: PreparedFolds
    scoring: str | None = None
    strategy: str = "all"
    time_limit: float | None = None
    grids: list[GridOnFolds] = field(default_factory=list)
    is_complete: bool = False

    @property
    def n_fits(self) -> int:
        """How many fits all grids and folds have."""
        coarse = [family.candidates() for family in self.families]
        fine = [family.around(each[0]) for family, each in zip(self.families, coarse, strict=True)]
        grids = [*coarse, *(family.candidates() for family in fine if family is not None)]
        return sum(map(len, grids)) * len(self.folds)

    def run(self, tell: Callable[[int, float], None] = lambda done, best: None) -> None:
        """Search; ``tell`` is called after a fold with its fits and the best mean score so far.

        After an interruption, `ranked` and `chosen` are those of what was found.
        """
        time_limit = TimeLimit(self.time_limit)
        for family in self._stages():
            scorer = check_scoring(family.model, scoring=self.scoring)
            grid = GridOnFolds(family, self.folds, scorer, self.scoring, self.strategy)
            self.grids.append(grid)
            grid.run(time_limit, tell)
            if not grid.is_complete:
                return
        self.is_complete = True

    def _stages(self) -> Iterator[Family]:
        yield from self.families
        for coarse in self.grids[: len(self.families)]:
            best = coarse.results.best()
            if best is None:
                continue
            finer = coarse.family.around(coarse.results.candidates[best])
            if finer is not None:
                yield finer

    def counted(self) -> list[GridOnFolds]:
        """Return the grids whose scores can be compared: complete ones, else the first."""
        return [grid for grid in self.grids if grid.is_complete] or self.grids[:1]

    @property
    def n_candidates(self) -> int:
        """How many different candidates were compared, those that were dropped included."""
        return len(
            {(grid.family.name, *each.items())
             for grid in self.counted() for each in grid.results.candidates}
        )  # fmt: skip

    def ranked(self) -> list[Candidate]:
        """Return the candidates that were scored, each once, the best first.

        Of those with the same score, the first family and its simplest candidate come first.
        """
        found: dict[tuple[Any, ...], Candidate] = {}
        for grid in self.counted():
            results = grid.so_far()
            for k in np.flatnonzero(~np.isnan(results.means())):
                parameters = results.candidates[k]
                seconds = float(results.fit_seconds[k].mean())
                each = Candidate(
                    grid.family, parameters, results.scores[k], bool(results.holds[k].all()),
                    seconds,
                )  # fmt: skip
                found.setdefault((grid.family.name, *parameters.items()), each)
        names = [family.name for family in self.families]

        def rank(each: Candidate) -> tuple[Any, ...]:
            # Sums of the same scores in another order differ by rounding.
            score, family = round(each.mean, 12), each.family
            return -score, names.index(family.name), family.simplicity(each.parameters)

        return sorted(found.values(), key=rank)

    def chosen(self, *, one_standard_error: bool = False) -> Candidate | None:
        """Return the best candidate, or the simplest of its family near to it; None without one."""
        ranked = self.ranked()
        if not ranked or not one_standard_error:
            return ranked[0] if ranked else None
        best = ranked[0]
        least = best.mean - (0.0 if np.isnan(best.standard_error) else best.standard_error)
        near = [each for each in ranked
                if each.family.name == best.family.name and each.mean >= least]  # fmt: skip
        return min(near, key=lambda each: each.family.simplicity(each.parameters))
