"""``compare``: several models trained on the same rows of a data file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..estimators.registry import MODELS
from . import console, options
from .data import (
    Reading,
    Trained,
    check_input,
    check_out,
    classes_of,
    fit_features,
    split,
    targets_of,
)
from .measures import metrics_out, write_metrics
from .training import described

if TYPE_CHECKING:
    from ..arrays import Labels, Matrix
    from ..diagnostics.fitted_model import ModelLike
    from ..files import DataTable
    from ..files.targets import Targets


@click.command()
@click.argument("data", metavar="DATA")
@options.target
@click.option("--model", "names", type=click.Choice(options.MODEL_NAMES), multiple=True,
              help="Compare this model, may be repeated; by default all classifiers.")  # fmt: skip
@click.option("--test", type=click.FloatRange(0, 1, True, True), default=0.25, show_default=True,
              metavar="FRACTION", help="Fraction of the rows to test on.")  # fmt: skip
@click.option("--picture", type=click.Path(dir_okay=False), default="comparison.png",
              show_default=True,
              help="File in which the figure is saved; only of classifiers.")  # fmt: skip
@click.option("--time-limit", type=click.FloatRange(0, min_open=True), default=60.0,
              show_default=True, metavar="SECONDS",
              help="Time limit of each algorithm, which then returns its best plane.")  # fmt: skip
@options.device
@options.reading
@options.preparing
@options.seed
@metrics_out
@options.as_json
def compare(
    data: str, target: str | None, names: tuple[str, ...], test: float, picture: str,
    time_limit: float, device: str | None, seed: int, metrics_out: str | None, as_json: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Train several models on the same rows of DATA, and test them on the others.

    Shown are the error, the balanced accuracy, and the AUC on the test rows; the last line is the
    most frequent class as the answer to everything, or the mean of the targets of a regression.
    --device is for those models that can use one.

    \b
    Examples:
      maxmargin compare fruit.csv --target fruit
      maxmargin compare fruit.csv --target fruit --metrics-out metrics.json
      maxmargin compare --config fruit.toml --quiet
      maxmargin compare heart_scale --test 0.5 --picture heart.png --json
      maxmargin compare houses.csv --target price --model svr --model nu-svr --model linear-svr
    """
    check_input(data)
    check_out(metrics_out, data)
    chosen, targets = _chosen(names)
    if targets == "classes":
        check_out(picture, data, endings=options.PICTURES)
    reading = Reading(target, **given)
    learn, hold = split(reading.table(data, targets), test, seed, targets)
    record: dict[str, Any] = {"data": described(learn, targets), "test_rows": int(hold.X.shape[0])}
    rows = _compare_all(chosen, reading, learn, hold, seed, time_limit, device)
    if targets == "classes":
        _draw_comparison(rows, Path(data).name, picture)
        record["picture"] = picture
    write_metrics(metrics_out, "compare", record | {"rows": rows})
    if as_json:
        console.print_json(record | {"rows": rows})
        return
    counts = f"{record['data']['rows']} training rows, {record['test_rows']} test rows"
    print_comparison(rows, f"{Path(data).name}: {counts}", targets=targets)
    if targets == "classes":
        click.echo(f"picture: {picture}")


def _chosen(names: tuple[str, ...]) -> tuple[list[str], Targets]:
    """Return the models to compare, and the kind of target that all of them have."""
    if not names:
        return [name for name, model in MODELS.items() if model.targets == "classes"], "classes"
    chosen, targets = list(dict.fromkeys(names)), options.common_targets(names)
    if targets != "classes":
        options.forbid(("picture",), f"is for classifiers, not for {', '.join(chosen)}.")
    return chosen, targets


def _compare_all(
    names: list[str],
    reading: Reading,
    learn: DataTable,
    hold: DataTable,
    seed: int,
    time_limit: float,
    device: str | None,
) -> list[dict[str, Any]]:
    """Fit several models to the same features, prepared once."""
    encoder = reading.encoder(copy=False)
    with console.collected_warnings() as messages:
        X, X_test = encoder.fit_transform(learn.X), encoder.transform(hold.X)
    for message in messages:
        console.note(f"warning: {message}")
    rows = []
    with console.progress("comparing", len(names)) as bar:
        for name in names:
            model = _limited(name, seed, time_limit, device)
            rows.append(_compared(name, model, X, learn.y, X_test, hold.y))
            bar.advance(name)
    return rows


def _limited(name: str, seed: int, time_limit: float, device: str | None) -> Any:
    """Return a model with a time limit, on the device where it can use one."""
    model = options.make_model(name, {}, (), seed)
    if "device" in model.get_params():
        options.use_device(model, device)
    if "time_limit" in model.get_params():
        return model.set_params(time_limit=time_limit)
    return model.set_params(callback=_clock(time_limit))


def _compared(
    name: str, model: Any, X: Matrix, y: Labels | None, X_test: Matrix, y_test: Labels | None
) -> dict[str, Any]:
    from ..diagnostics.answers import answers
    from ..diagnostics.metrics import alone, baseline_of, measure

    targets = MODELS[name].targets
    try:
        warm(model, X, y)
        trained = fit_features(X, y, model)
    except (ValueError, TypeError, MemoryError) as error:
        return {"algorithm": name, "outcome": "cannot", "reason": str(error)}
    given = answers(model, X_test)
    tested = measure(targets, y_test, given, classes_of(model), baseline_of(y, targets))
    shown = alone(tested) | {k: tested[k] for k in ("per_class", "confusion") if k in tested}
    return record_of(name, trained, X, y) | {f"test_{key}": value for key, value in shown.items()}


def record_of(name: str, trained: Trained, X: Matrix, y: Labels | None) -> dict[str, Any]:
    """Return the result of an algorithm on its training rows, as a line of a comparison.

    ``margin`` is the smallest distance of a row to the plane, for every algorithm; ``half_width``
    is 1/‖w‖ of a support vector machine, half the width of its band.
    """
    from ..diagnostics.summary import smallest_distance, summarize

    found = summarize(trained.model)
    labels = y if targets_of(trained.model) == "classes" else None
    return {
        "algorithm": name,
        **{f"training_{key}": value for key, value in trained.measures.items()},
        "seconds": trained.seconds,
        "gap": found.proof.get("relative_gap"),
        "margin": None if labels is None else smallest_distance(trained.model, X, labels),
        "half_width": found.margin if "primal" in found.proof else None,
        "kernel": found.kernel,
        "support_vectors": found.n_support,
        "outcome": outcome(trained.model, trained.measures.get("error")),
        "certificate": found.certificate,
        "ended": found.status,
    }


def warm(model: ModelLike, X: Matrix, y: Labels | None) -> None:
    """Fit to a few rows first, so that times do not include loading compiled code."""
    import numpy as np
    from sklearn.base import clone

    few = np.arange(min(40, X.shape[0]))
    if y is not None and targets_of(model) == "classes":
        few = np.concatenate([np.flatnonzero(y == label)[:20] for label in np.unique(y)])
    with console.collected_warnings():
        clone(model).set_params(callback=None).fit(X[few], None if y is None else y[few])


def _clock(limit: float) -> Any:
    """Return a callback that stops a fit at its time limit."""
    end = time.perf_counter() + limit
    return lambda step: time.perf_counter() > end


def outcome(model: ModelLike, training_error: float | None) -> str:
    """Return what the certificates of a model prove, in a few words."""
    certificates = model.certificates_
    if hasattr(certificates[0], "separates"):
        if all(c.separates for c in certificates):
            return "separated"
        refuted = any(getattr(c, "refutes", False) for c in certificates)
        return "refuted" if refuted else "not separated"
    optimal = all(c.holds(model.tol) for c in certificates)
    if not optimal:
        return "not optimal"
    if any(getattr(c, "coverage", "complete") == "sampled" for c in certificates):
        return "not proved: sampled"
    return "optimal, separated" if training_error == 0 else "optimal"


COLOURS = {
    "separated": "green", "optimal, separated": "green", "optimal": "green",
    "refuted": "yellow", "not proved: sampled": "yellow", "not separated": "red",
    "not optimal": "red", "cannot": "red",
}  # fmt: skip


def print_comparison(
    rows: list[dict[str, Any]],
    title: str,
    caption: str | None = None,
    tested: bool = True,
    targets: Targets = "classes",
) -> None:
    """Print one algorithm per line."""
    from ..diagnostics.metrics import in_words

    measures = _shown_measures(targets, tested=tested)
    columns = ["algorithm", *(name for _, name, _ in measures), "time", "gap"]
    columns += ["smallest distance"] if targets == "classes" else ["support vectors"]
    lines = []
    for row in rows:
        shown = [in_words({key: row.get(place)}, named=False) for place, _, key in measures]
        time_taken = console.seconds(row["seconds"]) if "seconds" in row else "–"
        gap = "–" if row.get("gap") is None else f"{max(row['gap'], 0.0):.1e}"
        last = _distance(row) if targets == "classes" else str(row.get("support_vectors", "–"))
        lines.append([row["algorithm"], *shown, time_taken, gap, last, row["outcome"]])
    measured = next((row for row in rows if "test_baseline" in row), None)
    if measured is not None:
        lines.append(_baseline(measured, measures, targets))
    console.print_table(
        [*columns, "outcome"], lines, title=title, caption=caption, left=["outcome"],
        colours=COLOURS,
    )  # fmt: skip
    if any("*" in line[-2] for line in lines):
        click.echo("* in the feature space of the kernel, not comparable with the others")
    for row in rows:
        if "reason" in row:
            console.note(f"{row['algorithm']}: {row['reason']}")


def _shown_measures(targets: Targets, *, tested: bool) -> list[tuple[str, str, str]]:
    """Return the columns of measures: key in a line, heading, and key of the measure."""
    from ..diagnostics.metrics import MEASURES

    when = ["training", "test"] if tested else ["training"]
    found = [(part, key) for part in when for key in MEASURES[targets]]
    if targets == "classes":
        found = [(part, "error") for part in when]
        found += [("test", "balanced_accuracy"), ("test", "auc")] if tested else []
    return [(f"{part}_{key}", f"{part} {MEASURES[targets][key]}", key) for part, key in found]


def _baseline(
    row: dict[str, Any], measures: list[tuple[str, str, str]], targets: Targets
) -> list[str]:
    """Return the line of a constant answer, which needs no model."""
    from ..diagnostics.metrics import in_words
    from ..files.table import cut

    parts = [(place.removesuffix(f"_{key}"), key) for place, _, key in measures]
    of = [(key, row[f"{part}_baseline"].get(key)) for part, key in parts]
    shown = [in_words({key: value}, named=False) for key, value in of]
    constant = row["test_baseline"]["prediction"]
    name = "the mean" if targets == "numbers" else f"always {cut(constant, 20)}"
    return [name, *shown, "–", "–", "–", ""]


def _distance(row: dict[str, Any]) -> str:
    """Return the smallest distance of a training row, marked where it is in a kernel's space."""
    text = console.number(row.get("margin"))
    mapped = (row.get("kernel") or "Linear()") != "Linear()" and text != "–"
    return f"{text}*" if mapped else text


def _draw_comparison(rows: list[dict[str, Any]], title: str, picture: str) -> None:
    from ..plots.comparison import comparison

    comparison(rows, title=title).save(picture)


COMMANDS = [compare]
