"""The parameters of a model by cross-validation, its columns prepared anew in every fold.

A search over a coarse grid is followed by one over a fine grid around the best candidate. `SVCCV`
and its relatives share kernel values between folds; here every fold has its own preparation, such
as means and scales of its training rows, and shares them between candidates alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from ..arrays import Floats
from ..estimators.claims import TimeLimit
from .families import Family
from .prepared_folds import GridOnFolds, PreparedFolds
from .results import Parameters
from .search_progress import Tell


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

    def run(self, tell: Tell = lambda n, best: None) -> None:
        """Search; ``tell`` is called after some fits, with their number and the best mean so far.

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
             for grid in self.counted() for each in grid.begun()}
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
