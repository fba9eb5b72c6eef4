"""Parameters chosen by cross-validation, for ``tune`` and ``fit --C auto``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

import click

from . import console
from .data import Reading, folds_of

if TYPE_CHECKING:
    from ..arrays import Matrix
    from ..files import DataTable
    from ..model_selection.prepared_search import Candidate, Family, PreparedSearch

# Models whose parameters can be chosen.
MODELS = ("svc", "nusvc", "linear-svc")
CLASSES = {"SVC": "svc", "NuSVC": "nusvc", "LinearSVC": "linear-svc"}
# Powers of 2 of a linear machine's default costs, and candidates of an axis.
LINEAR_COSTS, N_DEFAULT = (-10.0, 10.0), 7
# The least default ν, and the largest as a share of the largest possible.
NUS = (0.01, 0.95)
# Headings of the parameters.
SYMBOLS = {"C": "C", "nu": "ν", "gamma": "γ"}
# Candidates that are printed.
SHOWN = 10


def numbers(ctx: Any, param: Any, text: str | None) -> int | list[Any] | None:
    """Return how many values there are, or the values: the callback of --Cs and --gammas."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = ("scale", "auto") if param.name == "gammas" else ()
    try:
        if "," not in text and text.strip().isdigit() and int(text) > 0:
            return int(text)
        values = [word if word in names else float(word) for word in words]
    except ValueError:
        values = []
    if not values or any(not (isinstance(v, str) or 0.0 < v < float("inf")) for v in values):
        raise click.BadParameter(
            f"must be a number of values, or positive numbers with commas, got {text!r}."
        )
    return sorted(set(values), key=lambda value: (not isinstance(value, str), value))


@dataclass(frozen=True)
class Plan:
    """How candidates are compared, and which: options of a command.

    ``searched`` are the parameters to choose; those of a model that are not among them stay.
    """

    folds: int = 5
    seed: int = 0
    scoring: str | None = None
    strategy: str = "all"
    time_limit: float | None = None
    one_standard_error: bool = False
    Cs: int | list[Any] | None = None
    gammas: int | list[Any] | None = None
    searched: tuple[str, ...] = ("C", "nu", "gamma")
    started: float = field(default_factory=time.perf_counter)

    def prepare(self, reading: Reading, table: DataTable, models: Sequence[Any]) -> PreparedSearch:
        """Return the search of these models on the rows of a table."""
        from ..model_selection.prepared_search import PreparedFolds, PreparedSearch

        encoder = reading.encoder()
        splits = folds_of(table, self.folds, self.seed)
        with console.progress("preparing"), console.collected_warnings():
            X = reading.encoder().fit_transform(table.X)
        families = [self._family(model, X, table.labels) for model in models]
        folds = PreparedFolds(table.X, table.labels, encoder, splits)
        return PreparedSearch(families, folds, self.scoring, self.strategy, self.time_limit)

    def run(self, search: PreparedSearch) -> Candidate:
        """Search with a progress bar; return the chosen candidate."""
        # The certificates of the candidates tell what warnings of their fits would.
        with console.progress("searching", search.n_fits) as bar, console.collected_warnings():
            search.run(lambda n, best: bar.advance(f"best {best:.4f}", n))
        found = search.chosen(one_standard_error=self.one_standard_error)
        if found is None:
            raise click.ClickException(
                "no candidate has a score: "
                + ("raise --time-limit." if not search.is_complete else "every fit failed.")
            )
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
            "scoring": self.scoring or "accuracy",
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

    def _family(self, model: Any, X: Matrix, y: Any) -> Family:
        """Return a model with its grid: that of the options, or powers of 2."""
        import numpy as np

        from ..model_selection.model_search import COSTS
        from ..model_selection.prepared_search import Family, rounded

        name = CLASSES[type(model).__name__]
        if "gamma" not in self.searched or not has_gamma(model):
            gammas: Any = None
        elif isinstance(self.gammas, list):
            gammas = self.gammas
        else:
            gammas = _gammas(model, X, self.gammas or N_DEFAULT)
        n = self.Cs if isinstance(self.Cs, int) else N_DEFAULT
        if name == "nusvc":
            costs = rounded(np.geomspace(NUS[0], NUS[1] * _largest_nu(y), n))
        elif isinstance(self.Cs, list):
            costs = self.Cs
        else:
            powers = LINEAR_COSTS if name == "linear-svc" else COSTS
            costs = rounded(np.logspace(*powers, n, base=2.0))
        first = "nu" if name == "nusvc" else "C"
        axes = {first: costs} | ({} if gammas is None else {"gamma": gammas})
        given = {"C": self.Cs, "gamma": self.gammas}
        refined = tuple(key for key in axes if not isinstance(given.get(key), list))
        return Family(name, model, axes, refined)


def plan_of_fit(
    name: str, modelling: dict[str, Any], cv: int | None, seed: int, scheduler: str | None
) -> Plan | None:
    """Return the search that ``--C auto`` asks for, and take it from the options; else None."""
    if modelling.get("C") != "auto":
        return None
    if name not in ("svc", "linear-svc"):
        raise click.UsageError(f"--C auto is for svc and linear-svc, not for {name}.")
    if scheduler is not None:
        raise click.UsageError("--C auto is not for --scheduler: pass a number.")
    modelling["C"] = None
    searched = ["C"]
    if modelling["gamma"] == "auto":
        if name != "svc":
            raise click.UsageError(f"--gamma is for models with a kernel, not for {name}.")
        modelling["gamma"] = None
        searched.append("gamma")
    return Plan(cv or 5, seed, time_limit=modelling.pop("time_limit"), searched=tuple(searched))


def has_gamma(model: Any) -> bool:
    """Return whether the kernel of a model takes γ."""
    from ..kernels import KERNELS

    kernel = model.get_params().get("kernel")
    return kernel in KERNELS and "gamma" in signature(KERNELS[kernel]).parameters


def _gammas(model: Any, X: Matrix, n: int) -> list[float]:
    """Return powers of 2 in units of 1/(d·Var X), of features that are prepared."""
    import numpy as np

    from ..kernels import resolve
    from ..model_selection.kernel_search import GAMMAS
    from ..model_selection.prepared_search import rounded

    scale = resolve(model.kernel, gamma="scale", X=X).gamma  # type: ignore[attr-defined]
    return rounded(scale * np.logspace(*GAMMAS, n, base=2.0))


def _largest_nu(y: Any) -> float:
    """Return the largest ν that every pair of classes allows."""
    import numpy as np

    counts = np.sort(np.unique(y, return_counts=True)[1])
    return float(2.0 * counts[0] / (counts[0] + counts[-1]))


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


def print_search(record: dict[str, Any], source: str) -> None:
    """Print the best candidates of a search, and the best of each model where there are several."""
    of, n = record["scoring"].replace("_", " "), record["candidates"]
    told = f"{of}, mean ± standard error of {record['folds']} folds"
    if len(record["by_model"]) > 1:
        _print_lines(record["by_model"], f"{source}: the best of each model ({told})")
    best = record["best"]
    _print_lines(best, f"{source}: the best {len(best)} of {n} candidates ({told})")


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

    figure = SearchDisplay.from_record(record).figure_
    figure.savefig(picture, dpi=150, bbox_inches="tight")
