"""``inspect`` and ``separable``: a model in words, and whether a plane separates data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, options
from .data import Reading, facts_of, load_model, targets_of
from .held_out import without_hashes
from .training import tube_in_words

if TYPE_CHECKING:
    from ..arrays import Labels, Matrix
    from ..diagnostics.fitted_model import ModelLike

SHOWN_WEIGHTS = 20
# Planes side by side; terms of a plane on one line; pairs of classes shown in full.
PLANE_COLUMNS, TERMS_PER_LINE, FULL_PAIRS = 6, 6, 6
VERDICTS = {True: "separable", False: "not separable", None: "undecided"}


@click.command("inspect")
@click.argument("model_file", metavar="MODEL")
@click.option("--weights", "n_weights", type=click.IntRange(0), default=SHOWN_WEIGHTS,
              show_default=True,
              help="Number of weights to show per plane, the largest first.")  # fmt: skip
@options.as_json
def inspect_model(model_file: str, n_weights: int, as_json: bool) -> None:
    """Show a saved MODEL: planes, kernel, support vectors, certificate, training.

    \b
    Examples:
      maxmargin inspect fruit.mm
      maxmargin inspect fruit.mm --json | python -m json.tool
    """
    model, about = load_model(model_file), facts_of(model_file)
    from ..diagnostics.fitted_model import FittedModel
    from ..diagnostics.summary import planes, summarize
    from ..persistence.training_facts import training_facts

    found, linear = summarize(model), planes(FittedModel(model))
    if as_json:
        record: dict[str, Any] = (
            {"file": Path(model_file).name} | vars(found) | {"about": without_hashes(about)}
        )
        record["features"] = list(found.features[:100_000])
        if linear is not None:
            record |= {"w": linear.w, "b": linear.b}
        console.print_json(record)
        return
    chosen = ", ".join(f"{k}={v}" for k, v in found.parameters.items() if k != "random_state")
    has_classes = targets_of(model) == "classes"
    console.print_facts(
        Path(model_file).name,
        {
            "model": found.name,
            "parameters": chosen or "defaults",
            "classes": ", ".join(map(str, found.classes[:20])) if has_classes else None,
            "features": f"{len(found.features)}: {_some(found.features)}",
            "kernel": found.kernel,
            "approximation": found.approximation,
            "planes": f"{len(found.planes)}: {_some(found.planes)}" if has_classes else None,
            "support vectors": found.n_support,
            "margin": found.margin_in_words,
            "tube": tube_in_words(found.epsilon),
            "ended": found.ended,
            "certificate": found.certificate or "none: trained by another program",
            **_preparation(model),
            **training_facts(about),
        },
    )
    if linear is not None:
        _print_planes(found.planes, found.features, linear.w, linear.b, n_weights)


def _some(names: Any) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _preparation(model: ModelLike) -> dict[str, str]:
    """Return how the columns become features, for a pipeline of the command line."""
    encoder = getattr(model, "named_steps", {}).get("columns")
    if encoder is None:
        return {}
    how = ["scaled"] if encoder.scale else ["as they are"]
    how = ["centred and scaled"] if encoder.mean_.any() else how
    words = sum(c is not None for c in encoder.categories_)
    how += [f"{words} columns of categories as 0/1"] if words else []
    texts = len(getattr(encoder, "text_columns_", ()))
    how += [f"{texts} columns of text as tf-idf of words"] if texts else []
    how += ["missing values filled"] if encoder.impute else []
    return {"preparation": ", ".join(how)}


def _print_planes(planes: list[str], features: Any, w: Any, b: Any, n_weights: int) -> None:
    """Print w and b of the planes side by side, the largest weights first."""
    import numpy as np

    largest = np.argsort(-np.abs(w).max(axis=0), kind="stable")[:n_weights]
    for first in range(0, len(planes), PLANE_COLUMNS):
        some = slice(first, first + PLANE_COLUMNS)
        rows = [[features[k], *(f"{v:.6g}" for v in w[some, k])] for k in largest]
        rows.append(["b", *(f"{v:.6g}" for v in b[some])])
        console.print_table(["w", *planes[some]], rows)
    if len(largest) < len(features):
        click.echo(f"the largest {len(largest)} of {len(features)} weights; --weights N shows more")


@click.command()
@click.argument("data", metavar="DATA")
@options.target
@click.option("--pair", nargs=2, metavar="A B", help="Only these two classes.")
@click.option("--widest", is_flag=True, help="Find the plane of the largest margin.")
@click.option("--proof", is_flag=True, help="Show the rows of the proof and their multipliers.")
@click.option("--weights", "n_weights", type=click.IntRange(0), default=SHOWN_WEIGHTS,
              show_default=True,
              help="Number of weights to show per plane, the largest first.")  # fmt: skip
@click.option("--exit-code", is_flag=True, help="Exit with 3 unless all pairs are separable.")
@options.reading
@options.choosing
@options.as_json
def separable(
    data: str, target: str | None, pair: tuple[str, str] | None, widest: bool, proof: bool,
    n_weights: int, exit_code: bool, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Decide with a proof whether a plane separates the classes of DATA, pair by pair.

    Either there is a plane, given with its margin, or the convex hulls of the two classes share a
    point, given as a combination of rows. Planes, margins and points are in the units of the file,
    categories as 0/1 columns. Many pairs are listed in a table; --pair shows one of them.

    \b
    Examples:
      maxmargin separable fruit.csv --target fruit
      maxmargin separable fruit.csv --target fruit --pair apple lemon --widest
    """
    reading = Reading(target, no_scale=True, **given)
    table = reading.table(data)
    encoder = reading.encoder(copy=False)
    X = encoder.fit_transform(table.X)
    names = [str(n) for n in encoder.get_feature_names_out(table.names)]
    verdicts = list(_verdicts(X, table.labels, pair, widest, table.source))
    if as_json:
        for first, second, report, rows in verdicts:
            console.print_json(_as_record(first, second, report, rows, names))
    elif len(verdicts) > FULL_PAIRS and not proof:
        _print_summary(verdicts)
    else:
        for first, second, report, rows in verdicts:
            _print_verdict(first, second, report, rows, names, n_weights, proof)
    if exit_code and not all(report.separable for _, _, report, _ in verdicts):
        raise click.exceptions.Exit(3)


def _verdicts(X: Matrix, y: Labels, pair: tuple[str, str] | None, widest: bool, source: str) -> Any:
    """Yield the names of two classes, the result for them, and their rows."""
    from itertools import combinations

    import numpy as np

    from ..files.table import cut, listed
    from ..solvers.separability import separability

    classes = {str(label): label for label in np.unique(y).tolist()}
    for name in pair or ():
        if name not in classes:
            raise click.UsageError(
                f"{source}: there is no class {cut(name)}; the file has {listed(list(classes))}."
            )
    if pair and pair[0] == pair[1]:
        raise click.UsageError("--pair needs two different classes.")
    pairs = [pair] if pair else list(combinations(classes, 2))
    with console.progress("deciding", len(pairs)) as bar:
        for first, second in pairs:
            rows = np.flatnonzero((y == classes[first]) | (y == classes[second]))
            signs = np.where(y[rows] == classes[second], 1, -1)
            yield first, second, separability(X[rows], signs, maximum_margin=widest), rows
            bar.advance(f"{first}, {second}")


def _as_record(first: str, second: str, report: Any, rows: Any, names: list[str]) -> dict[str, Any]:
    import numpy as np

    record: dict[str, Any] = {
        "pair": [first, second], "separable": report.separable, "verdict": str(report),
        "margin": report.margin, "margin_bound": report.margin_bound,
    }  # fmt: skip
    if report.hyperplane is not None:
        record |= {"features": names, "w": report.hyperplane.w, "b": report.hyperplane.b}
    if report.multipliers is not None:
        used = np.flatnonzero(report.multipliers)
        record |= {"common_point": dict(zip(names, report.common_point.tolist(), strict=True)),
                   "rows": rows[used] + 1, "multipliers": report.multipliers[used]}  # fmt: skip
    return record


def _print_verdict(
    first: str, second: str, report: Any, rows: Any, names: list[str], n_weights: int, proof: bool
) -> None:
    import numpy as np

    facts: dict[str, Any] = {"verdict": str(report)}
    listed = False
    if report.hyperplane is not None:
        w, b = report.hyperplane.w, report.hyperplane.b
        sides = f"> 0 for {second}, < 0 for {first}"
        if np.count_nonzero(w) <= min(TERMS_PER_LINE, n_weights):
            terms = " ".join(f"{w[k]:+.6g}·{names[k]}" for k in np.flatnonzero(w))
            facts["plane"] = f"{terms} {b:+.6g} {sides}"
        else:
            facts["plane"], listed = f"w·x + b {sides}, with these w and b", True
    if report.common_point is not None:
        point = [f"{n} = {v:.6g}" for n, v in zip(names, report.common_point, strict=True)]
        cut = f" (the first 8 of {len(point)} columns; --json has all)" if len(point) > 8 else ""
        facts["common point"] = _some(point) + cut
    console.print_facts(f"{first} against {second}", facts)
    if listed:
        _print_weights(names, w, b, n_weights)
    if proof and report.multipliers is not None:
        used = np.flatnonzero(report.multipliers)
        used = used[np.argsort(-report.multipliers[used], kind="stable")]
        lines = [[int(rows[k]) + 1, f"{report.multipliers[k]:.6g}"] for k in used]
        console.print_table(["row", "u"], lines)
        click.echo("u ≥ 0, Σu = 1, Σ u y (x, 1) = 0")


def _print_weights(names: list[str], w: Any, b: float, n_weights: int) -> None:
    """Print the largest weights of a plane, and whether some are left out."""
    import numpy as np

    largest = np.argsort(-np.abs(w), kind="stable")[:n_weights]
    table = [[names[k], f"{w[k]:.6g}"] for k in largest]
    console.print_table(["column", "w"], [*table, ["b", f"{b:.6g}"]])
    if len(largest) < len(names):
        click.echo(
            f"the largest {len(largest)} of {len(names)} weights: the plane needs all of them, "
            f"--weights {len(names)} shows them"
        )


def _print_summary(verdicts: list[Any]) -> None:
    """Print one line per pair of classes."""
    import numpy as np

    rows, counts = [], {True: 0, False: 0, None: 0}
    for first, second, report, _ in verdicts:
        counts[report.separable] += 1
        used = "" if report.multipliers is None else np.count_nonzero(report.multipliers)
        margin = console.number(report.margin) if report.separable else ""
        rows.append([first, second, VERDICTS[report.separable], margin, used])
    console.print_table(["class", "against", "verdict", "margin", "rows of the proof"], rows,
                        left=("against", "verdict"))  # fmt: skip
    said = ", ".join(f"{n} {VERDICTS[key]}" for key, n in counts.items() if n)
    click.echo(f"{len(verdicts)} pairs: {said}; --pair A B shows a plane or a common point")


COMMANDS = [inspect_model, separable]
