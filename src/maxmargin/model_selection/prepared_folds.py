"""Candidates on folds whose columns are prepared by the training rows of each.

Machines for which there is a search that shares kernel values or begins with the plane before are
evaluated by it, fold by fold; others one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from ..arrays import Integers
from ..estimators.claims import SOLVER_TIME_SHARE, TimeLimit
from ..estimators.linear_svc import LinearSVC
from ..estimators.linear_svr import LinearSVR
from ..estimators.svc import SVC
from ..estimators.svr import SVR
from .families import Block, Family, blocks_of, chains_of
from .linear_svc_cv import LinearSVCCV
from .results import Parameters, Results
from .search_progress import Tell
from .strategies import going_on, is_bounded
from .svc_cv import SVCCV
from .svr_cv import SVRCV

SEARCHES: dict[type, Any] = {SVC: SVCCV, SVR: SVRCV, LinearSVC: LinearSVCCV}
# Parameters of a machine that a search chooses, or has for itself.
OWN = {"C", "gamma", "time_limit", "verbose", "warm_start", "callback"}
# Machines that are fitted faster from the answer at the cost before. For ν-machines, whose sums of
# α are given, fits from the beginning were as fast or faster.
WARM = (LinearSVR,)


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
    error : Exception or None
        Why the first of the fits failed that did.
    """

    family: Family
    folds: PreparedFolds
    scorer: Any
    scoring: str | None
    strategy: str
    results: Results = field(init=False)
    n_done: int = 0
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.results = Results(self.family.candidates(), len(self.folds))

    @property
    def is_complete(self) -> bool:
        """Whether all folds are complete."""
        return self.n_done == len(self.folds)

    @property
    def is_scored(self) -> bool:
        """Whether some candidate was scored on all folds, be it by a score that is not a number."""
        return bool((~np.isnan(self.results.score_seconds)).all(axis=1).any())

    def run(self, time_limit: TimeLimit, tell: Tell) -> None:
        """Fit and score the candidates, fold by fold, until the time is over.

        ``tell`` is called after some fits with their number, which may be part of one, and the best
        mean score; candidates that the strategy has dropped are counted at the end of a fold.
        """
        search = _search_like(self.family.model)
        for k in range(len(self.folds)):
            if time_limit.left(1.0) == 0.0:
                return
            wanted, left = self._wanted(k), float(len(self.results.candidates))

            def told(n: float, best: float) -> None:
                nonlocal left
                left -= n
                # Scores of a fold alone are compared with each other, in the first one.
                tell(n, self.best_mean() if self.n_done else max(best, self.best_mean()))

            if search is None:
                self._one_by_one(k, wanted, time_limit, told)
            else:
                self._by_blocks(search, k, wanted, time_limit, told)
            if self._was_cut_short(k, wanted, time_limit):
                return
            self.n_done = k + 1
            tell(max(left, 0.0), self.best_mean())

    def _was_cut_short(self, k: int, wanted: list[int], time_limit: TimeLimit) -> bool:
        """Return whether the time was over before a fold was complete.

        Fits that it has ended are not scored: other candidates would be compared with what is not
        their machine.
        """
        results, is_late = self.results, time_limit.left(SOLVER_TIME_SHARE) == 0.0
        ended = [place for place in wanted if is_late and not results.holds[place, k]]
        results.scores[ended, k] = np.nan
        return bool(ended) or bool(np.isnan(results.fit_seconds[wanted, k]).any())

    def so_far(self) -> Results:
        """Return the results of complete folds; of the first one where none is complete."""
        n, own = max(self.n_done, 1), self.results
        found = Results(own.candidates, n)
        for name in ("scores", "gaps", "fit_seconds", "score_seconds", "holds"):
            setattr(found, name, getattr(own, name)[:, :n])
        return found

    def begun(self) -> list[Parameters]:
        """Return the candidates that were fitted, to the first fold at least."""
        fitted = np.flatnonzero(~np.isnan(self.results.fit_seconds[:, 0]))
        return [self.results.candidates[k] for k in fitted]

    def best_mean(self) -> float:
        """Return the largest mean score of the complete folds, −∞ without one."""
        return float(np.nanmax(np.append(self.so_far().means(), -np.inf)))

    def _wanted(self, k: int) -> list[int]:
        """Return the candidates that go on to a fold, as the strategy says."""
        bounded = is_bounded(self.scorer, is_classifier=is_classifier(self.family.model))
        before, missing = self.results.scores[:, :k], len(self.folds) - k
        going = going_on(before, self.strategy, missing, bounded=bounded)
        return np.flatnonzero(going).tolist()  # type: ignore[no-any-return]

    def _by_blocks(
        self,
        search: Callable[..., Any],
        k: int,
        wanted: list[int],
        time_limit: TimeLimit,
        tell: Tell,
    ) -> None:
        """Evaluate costs, and kernels of the same costs, by searches that share computations."""
        X = self.folds.prepared(k)
        for block in blocks_of(self.results.candidates, wanted):
            left = time_limit.left(1.0)
            if left == 0.0:
                return
            one = search(block)
            one.set_params(
                cv=[self.folds.splits[k]], scoring=self.scoring, refit=False, error_score="raise",
                time_limit=left,
            )  # fmt: skip
            one._progress_callback = tell
            try:
                one.fit(X, self.folds.y)
            except ValueError:
                if not getattr(one, "is_complete_", False):
                    raise
                # All was fitted, but no score is a number: others may have one.
            finally:  # what was found before Ctrl-C is kept
                self._take(getattr(one, "cv_results_", None), block.places, k)

    def _take(self, table: dict[str, Any] | None, places: list[int], k: int) -> None:
        """Take the results of a search on one fold."""
        if table is None:
            return
        results = self.results
        results.scores[places, k] = table["mean_test_score"]
        results.gaps[places, k] = table["worst_gap"]
        results.holds[places, k] = table["certified"]
        results.fit_seconds[places, k] = table["mean_fit_time"]
        results.score_seconds[places, k] = table["mean_score_time"]

    def _one_by_one(self, k: int, wanted: list[int], time_limit: TimeLimit, tell: Tell) -> None:
        """Evaluate any model by a fit per candidate; those that cannot be fitted have no score."""
        X, (train, test) = self.folds.prepared(k), self.folds.splits[k]
        learn, hold, y = X[train], X[test], self.folds.y
        results = self.results
        for chain in chains_of(results.candidates, wanted):
            model = clone(self.family.model)
            for place in chain:
                left = time_limit.left(1.0)
                if left == 0.0:
                    return
                if not isinstance(model, WARM):
                    model = clone(self.family.model)
                model.set_params(**results.candidates[place], time_limit=left)
                model.set_params(warm_start=isinstance(model, WARM))
                started = time.perf_counter()
                try:
                    model.fit(learn, y[train])
                except ValueError as error:  # such as ν that the folds do not allow
                    self.error = self.error or error
                    results.fit_seconds[place, k] = time.perf_counter() - started
                    model = clone(self.family.model)
                else:
                    results.fit_seconds[place, k] = time.perf_counter() - started
                    self._score(model, hold, y[test], place, k)
                tell(1, float(np.nanmax(np.append(results.scores[:, k], -np.inf))))

    def _score(self, model: Any, X: Any, y: Any, place: int, k: int) -> None:
        """Score a fitted model on the held-out rows of a fold, and take its certificates."""
        results, started = self.results, time.perf_counter()
        results.scores[place, k] = self.scorer(model, X, y)
        results.score_seconds[place, k] = time.perf_counter() - started
        proofs = model.certificates_
        results.gaps[place, k] = max(abs(each.relative_gap) for each in proofs)
        results.holds[place, k] = all(each.holds(model.tol) for each in proofs)


def _search_like(model: Any) -> Callable[[Block], Any] | None:
    """Return what makes the search of a block of candidates; None where none does what model does.

    A search has most parameters of its machine, and chooses those that it lacks.
    """
    search = SEARCHES.get(type(model))
    if search is None or getattr(model, "multi_class", "") == "crammer_singer":
        return None
    known, given = set(search._get_param_names()), model.get_params(deep=False)
    usual = type(model)().get_params(deep=False)
    if any(given[name] != usual[name] for name in set(given) - known - OWN):
        return None
    shared = {name: given[name] for name in known & set(given) - OWN}

    def made(block: Block) -> Any:
        chosen: dict[str, Any] = {"Cs": block.costs, **block.others}
        if "gammas" in known:
            usual = getattr(model, "gamma", "scale")
            chosen["gammas"] = [usual if each is None else each for each in block.gammas]
        return search(**{**shared, **chosen})

    return made
