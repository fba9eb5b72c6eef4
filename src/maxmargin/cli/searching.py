"""Parameters chosen by cross-validation, for ``tune`` and ``fit --C auto``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from . import console, guidance
from .data import Reading, folds_of, targets_of
from .search_grids import Asked, family_of

if TYPE_CHECKING:
    from ..arrays import Integers
    from ..files import DataTable
    from ..files.targets import Targets
    from ..model_selection.prepared_search import Candidate, PreparedSearch

# The score of a model by default.
SCORES = {"classes": "accuracy", "numbers": "r2"}
# Headings of the parameters.
SYMBOLS = {"C": "C", "nu": "ν", "gamma": "γ", "epsilon": "ε"}
# Candidates that are printed.
SHOWN = 10


@dataclass(frozen=True)
class Plan:
    """How candidates are compared, and which: options of a command.

    ``asked`` are values of the parameters, or how many; ``searched`` are those to choose: the
    others of a model stay.
    """

    folds: int = 5
    seed: int = 0
    scoring: str | None = None
    strategy: str = "all"
    time_limit: float | None = None
    one_standard_error: bool = False
    asked: Mapping[str, Asked] = field(default_factory=dict)
    searched: tuple[str, ...] = ("C", "nu", "gamma", "epsilon")
    started: float = field(default_factory=time.perf_counter)

    def prepare(self, reading: Reading, table: DataTable, models: Sequence[Any]) -> PreparedSearch:
        """Return the search of these models, which are of one kind, on the rows of a table."""
        from ..model_selection.prepared_folds import PreparedFolds
        from ..model_selection.prepared_search import PreparedSearch

        targets = targets_of(models[0])
        self._check_targets(table, targets)
        splits = folds_of(table, self.folds, self.seed, targets)
        self._check_folds(table, targets, splits)
        encoder = reading.encoder()
        with console.progress("preparing"), console.collected_warnings():
            X = reading.encoder().fit_transform(table.X)
        families = [
            family_of(model, X, table.labels, self.asked, self.searched) for model in models
        ]
        folds = PreparedFolds(table.X, table.labels, encoder, splits)
        search = PreparedSearch(families, folds, self.scoring, self.strategy, self.time_limit)
        for model in models:
            guidance.announce_fit(encoder, table, model, search.n_fits // len(models))
        return search

    def run(self, search: PreparedSearch) -> Candidate:
        """Search with a progress bar; return the chosen candidate."""
        # The certificates of the candidates tell what warnings of their fits would.
        with console.progress("searching", search.n_fits) as bar, console.collected_warnings():
            search.run(lambda n, best: bar.advance(_best_in_words(best), n))
        found = search.chosen(one_standard_error=self.one_standard_error)
        if found is None:
            raise click.ClickException(f"no candidate has a score: {self._why(search)}")
        if not search.is_complete:
            console.note(
                f"warning: the search ended at --time-limit {self.time_limit:g} before all "
                "candidates were compared: raise it, or use a smaller grid."
            )
        return found

    def record(self, search: PreparedSearch, found: Candidate) -> dict[str, Any]:
        """Return what a search has found, for JSON and the model file."""
        ranked = search.ranked()
        mine = [grid for grid in search.counted() if grid.family.name == found.family.name]
        return {
            "scoring": self.scoring or SCORES[targets_of(found.family.model)],
            "folds": int(found.scores.size),
            "strategy": self.strategy,
            "one_standard_error": self.one_standard_error,
            "complete": search.is_complete,
            "seconds": time.perf_counter() - self.started,
            "candidates": search.n_candidates,
            "chosen": line_of(found),
            "by_model": [line_of(each) for each in _first_of_each(ranked)],
            "best": [line_of(each) for each in ranked[:SHOWN]],
            "grids": [
                {"parameters": (results := grid.so_far()).candidates, "scores": results.scores}
                for grid in mine
            ],
        }

    def _check_targets(self, table: DataTable, targets: Targets) -> None:
        """Raise for targets of which nothing can be chosen."""
        import numpy as np

        y = table.labels
        if targets == "numbers" and np.ptp(y) <= 1e-12 * np.abs(y).max():
            raise click.ClickException(
                f"{table.source}: all targets are {y[0]:g}, so that no candidate is better than "
                "another: pass another --target."
            )

    def _check_folds(
        self, table: DataTable, targets: Targets, splits: list[tuple[Integers, Integers]]
    ) -> None:
        """Raise for folds that cannot be fitted or scored."""
        import numpy as np

        if targets == "classes":
            classes, counts = np.unique(table.labels, return_counts=True)
            few = counts.argmin()
            if any(len(np.unique(table.labels[learn])) < 2 for learn, _ in splits):
                raise click.UsageError(
                    f"--cv {self.folds} leaves a fold with training rows of one class only: "
                    f"{classes[few]} has {counts[few]} of {len(table.labels)} rows. Add rows of it"
                    + (", or try another --seed." if counts[few] > 1 else ".")
                )
            self._check_scorer(table)
        elif self.scoring in (None, "r2") and min(len(hold) for _, hold in splits) < 2:
            raise click.UsageError(
                f"R² needs two rows or more in every fold, which --cv {self.folds} of "
                f"{len(table.labels)} rows does not leave: use fewer folds, or --scoring "
                "neg_mean_absolute_error."
            )

    def _check_scorer(self, table: DataTable) -> None:
        """Raise for a scorer that does not take the classes of a table."""
        import numpy as np
        from sklearn.dummy import DummyClassifier
        from sklearn.metrics import get_scorer

        if self.scoring is None:
            return
        y = table.labels
        rows = np.zeros((y.size, 1))
        try:
            with console.collected_warnings():
                get_scorer(self.scoring)(DummyClassifier().fit(rows, y), rows, y)
        except ValueError as error:
            raise click.UsageError(
                f"--scoring {self.scoring} does not take the {len(np.unique(y))} classes of "
                f"{table.source}: use one such as f1_macro or balanced_accuracy. Details: "
                f"{' '.join(str(error).split())}"
            ) from None

    def _why(self, search: PreparedSearch) -> str:
        """Return why no candidate has a score."""
        if not search.is_complete:
            return "raise --time-limit."
        errors = [str(grid.error) for grid in search.grids if grid.error is not None]
        if errors and not any(grid.is_scored for grid in search.grids):
            return errors[0]
        return (
            f"{self.scoring or 'the score'} is not a number on some fold, as where its held-out "
            f"rows are of one class: use fewer folds than --cv {self.folds}, or another --scoring."
        )


def plan_of_fit(
    name: str, modelling: dict[str, Any], cv: int | None, seed: int, scheduler: str | None
) -> Plan | None:
    """Return the search that ``--C auto`` asks for, and take it from the options; else None."""
    searched = ["C"]
    if modelling.get("C") != "auto":
        if modelling.get("epsilon") == "auto":
            raise click.UsageError("--epsilon auto needs --C auto, with which it is chosen.")
        return None
    if name not in ("svc", "linear-svc", "svr", "linear-svr"):
        raise click.UsageError(
            f"--C auto is for svc, linear-svc, svr and linear-svr, not for {name}."
        )
    if scheduler is not None:
        raise click.UsageError("--C auto is not for --scheduler: pass a number.")
    modelling["C"] = None
    if modelling["gamma"] == "auto":
        if name.startswith("linear"):
            raise click.UsageError(f"--gamma is for models with a kernel, not for {name}.")
        modelling["gamma"] = None
        searched.append("gamma")
    if modelling["epsilon"] == "auto":
        if not name.endswith("svr"):
            raise click.UsageError(f"--epsilon is for regressions, not for {name}.")
        modelling["epsilon"] = None
        searched.append("epsilon")
    return Plan(cv or 5, seed, time_limit=modelling.pop("time_limit"), searched=tuple(searched))


def _first_of_each(ranked: list[Candidate]) -> list[Candidate]:
    """Return the best candidate of every model."""
    found: dict[str, Candidate] = {}
    for each in ranked:
        found.setdefault(each.family.name, each)
    return list(found.values())


def line_of(found: Candidate) -> dict[str, Any]:
    """Return a candidate as a line of a table."""
    return {
        "model": found.family.name,
        "parameters": dict(found.parameters),
        "score": found.mean,
        "standard_error": found.standard_error,
        "certified": found.certified,
        "seconds": found.seconds,
    }


def _best_in_words(best: float) -> str:
    """Return the best score so far, for the progress bar; nothing where there is none."""
    from ..persistence.training_facts import score_in_words

    is_known = best > float("-inf")
    return f"best {score_in_words({'score': best, 'standard_error': None})}" if is_known else ""


def print_search(record: dict[str, Any], source: str) -> None:
    """Print the best candidates of a search, and the best of each model where there are several."""
    from ..diagnostics.metrics import scorer_in_words

    n, folds = record["candidates"], record["folds"]
    spread = f"mean ± standard error of {folds} folds" if folds > 1 else "of one fold"
    told = f"{scorer_in_words(record['scoring'])}, {spread}"
    if len(record["by_model"]) > 1:
        _print_lines(record["by_model"], f"{source}: the best of each model ({told})")
    best = record["best"]
    many = f"the best {len(best)} of {n} candidates" if n > 1 else "one candidate"
    _print_lines(best, f"{source}: {many} ({told})")


def _print_lines(lines: list[dict[str, Any]], title: str) -> None:
    from ..persistence.training_facts import score_in_words

    names = [name for name in SYMBOLS if any(name in line["parameters"] for line in lines)]
    rows = []
    for line in lines:
        values = [_shown(line["parameters"].get(name)) for name in names]
        proved = "yes" if line["certified"] else "no"
        time_taken = console.seconds(line["seconds"])
        rows.append([line["model"], *values, score_in_words(line), proved, time_taken])
    headings = ["model", *(SYMBOLS[name] for name in names)]
    console.print_table(
        [*headings, "score", "certified", "time per fit"], rows, title=title,
        colours={"no": "yellow"},
    )  # fmt: skip


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else console.number(value)


def draw_search(record: dict[str, Any], picture: str) -> None:
    """Draw the scores of the chosen model."""
    from ..plots import SearchDisplay

    SearchDisplay.from_record(record).save(picture)
