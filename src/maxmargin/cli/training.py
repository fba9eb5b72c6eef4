"""``fit`` and ``compare``: models trained on a data file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, options
from .data import Reading, Trained, check_input, check_out, fit_features, split, train

if TYPE_CHECKING:
    from ..arrays import Labels, Matrix
    from ..diagnostics.fitted_model import ModelLike


@click.command()
@click.argument("data", metavar="DATA")
@options.target
@click.option(
    "--model", "name", type=click.Choice(options.MODEL_NAMES), default="svc", show_default=True
)
@options.modelling
@click.option("--test", type=click.FloatRange(0, 1, True, True), metavar="FRACTION",
              help="Test on this fraction of the rows, not used for training.")  # fmt: skip
@click.option("--cv", type=click.IntRange(2), metavar="K", help="Cross-validate in K folds.")
@click.option("--out", type=click.Path(dir_okay=False), help="File in which the model is saved.")
@click.option("--strict", is_flag=True, help="Exit with code 3 if the certificate does not hold.")
@options.reading
@options.preparing
@options.seed
@options.as_json
def fit(
    data: str, target: str | None, name: str, settings: tuple[str, ...], test: float | None,
    cv: int | None, out: str | None, strict: bool, seed: int, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Train a classifier on DATA and certify the result.

    DATA is CSV, TSV, Parquet, svmlight/LIBSVM text or npz, also .gz or .bz2; - is standard input.
    Numbers are centred and scaled (sparse ones scaled), categories become 0/1 columns; the model
    includes this preparation. A model with a kernel contains rows of DATA.

    \b
    Examples:
      maxmargin fit fruit.csv --target fruit --out fruit.mm
      maxmargin fit fruit.csv --target fruit --model linear-svc --C 10 --cv 5
      maxmargin fit a9a.bz2 --kernel rbf --gamma 0.05 --test 0.2 --out a9a.mm
      maxmargin fit six.csv --target y --kernel linear --C inf
    """
    check_input(data)
    model = options.make_model(name, {k: given.pop(k) for k in options.MODELLING}, settings, seed)
    if test is not None and cv is not None:
        raise click.UsageError("pass either --test or --cv, not both.")
    check_out(out, data)
    reading = Reading(target, **given)
    table = reading.table(data)
    record: dict[str, Any] = {"data": _described(table)}
    if cv is not None:
        record["cv"] = _cross_validated(reading, table, model, cv, seed)
    held = None
    if test is not None:
        table, held = split(table, test, seed)
    with console.progress(f"fitting {type(model).__name__}") as bar:
        trained = train(reading, table, model, bar)
    record["data"]["classes"] = _described(table)["classes"]  # of the training rows
    record |= {"training_rows": len(table.labels)} | _outcome(trained)
    if held is not None:
        record["test"] = _tested(trained.model, held)
    if out is not None:
        from .. import persistence

        persistence.save(trained.model, out, about=_about(record))
        record["saved"] = out
    console.print_json(record) if as_json else _print_fit(record)
    for message in trained.warnings:
        console.note(f"warning: {message}")
    if strict and not record["holds"]:
        raise click.exceptions.Exit(3)


def _described(table: Any) -> dict[str, Any]:
    import numpy as np

    classes, counts = np.unique(table.labels, return_counts=True)
    return {
        "source": Path(table.source).name,
        "rows": int(table.X.shape[0]),
        "columns": int(table.X.shape[1]),
        "target": table.target,
        "dropped": table.dropped,
        "first_index": table.first_index,
        "classes": {str(c): int(n) for c, n in zip(classes, counts, strict=True)},
    }


def _cross_validated(
    reading: Reading, table: Any, model: ModelLike, folds: int, seed: int
) -> dict[str, Any]:
    """Return the error on each fold of a pipeline trained on the other folds."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline

    least = int(np.unique(table.labels, return_counts=True)[1].min())
    if folds > len(table.labels):
        raise click.UsageError(
            f"--cv must be at most the number of rows, {len(table.labels)}; got {folds}."
        )
    how = StratifiedKFold if least >= folds else KFold
    errors = []
    with (
        console.progress("cross-validating", folds) as bar,
        console.collected_warnings(),
    ):
        for learn, hold in how(folds, shuffle=True, random_state=seed).split(
            table.labels, table.labels
        ):
            pipeline = make_pipeline(reading.encoder(), clone(model))
            pipeline.fit(table.X[learn], table.labels[learn])
            errors.append(float(np.mean(pipeline.predict(table.X[hold]) != table.labels[hold])))
            bar.advance(f"error {console.percent(errors[-1])}")
    return {"folds": folds, "error": float(np.mean(errors)), "std": float(np.std(errors)),
            "errors": errors}  # fmt: skip


def _outcome(trained: Trained) -> dict[str, Any]:
    from ..diagnostics.summary import summarize

    found = summarize(trained.model)
    return {
        "model": found.name,
        "parameters": found.parameters,
        "kernel": found.kernel,
        "features": len(found.features),
        "words": words_of(trained.model),
        "training_error": trained.training_error,
        "margin": found.margin,
        "margin_in_words": found.margin_in_words,
        "support_vectors": found.n_support,
        "status": found.status,
        "iterations": found.n_iter,
        "ended": found.ended,
        "certificate": found.certificate,
        "proof": found.proof,
        "holds": found.holds,
        "seconds": trained.seconds,
        "warnings": trained.warnings,
    }


def words_of(pipeline: Any) -> dict[str, int]:
    """Return the columns of categories, and the number of categories of each."""
    encoder = pipeline[0]
    names = getattr(encoder, "feature_names_in_", ())
    pairs = zip(names, encoder.categories_, strict=False)
    return {str(name): len(known) for name, known in pairs if known is not None}


def _tested(pipeline: Any, held: Any) -> dict[str, Any]:
    import numpy as np

    with console.collected_warnings():  # the names of the columns are not passed again
        wrong = pipeline.predict(held.X) != held.labels
    return {"rows": len(held.labels), "error": float(np.mean(wrong))}


def _about(record: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about the training that a model file holds."""
    import datetime

    kept = ("data", "training_rows", "training_error", "test", "cv", "seconds", "warnings")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": today} | {k: console.plain(record[k]) for k in kept if k in record}


def _print_fit(record: dict[str, Any]) -> None:
    data, test, cv = record["data"], record.get("test"), record.get("cv")
    size = f"{data['rows']} rows, {data['columns']} columns → {record['features']} features"
    size += f"; {record['training_rows']} training rows" if test else ""
    spread = cv and f"{console.percent(cv['error'])} ± {console.percent(cv['std'])}"
    chosen = ", ".join(f"{k}={v}" for k, v in record["parameters"].items() if k != "random_state")
    console.print_facts(
        f"{record['model']} on {data['source']}",
        {
            "data": size,
            "categories": ", ".join(f"{name} ({n})" for name, n in record["words"].items()),
            "classes": ", ".join(f"{c} ({n})" for c, n in list(data["classes"].items())[:12]),
            "parameters": chosen or "defaults",
            "kernel": record["kernel"],
            "training error": console.percent(record["training_error"]),
            "test error": test and f"{console.percent(test['error'])} of {test['rows']} rows",
            "cross-validation": cv and f"{spread}, {cv['folds']} folds",
            "margin": record["margin_in_words"],
            "support vectors": record["support_vectors"],
            "ended": record["ended"],
            "certificate": record["certificate"],
            "time": console.seconds(record["seconds"]),
            "saved": record.get("saved"),
        },
    )


@click.command()
@click.argument("data", metavar="DATA")
@options.target
@click.option("--test", type=click.FloatRange(0, 1, True, True), default=0.25, show_default=True,
              metavar="FRACTION", help="Fraction of the rows to test on.")  # fmt: skip
@click.option("--picture", type=click.Path(dir_okay=False), default="comparison.png",
              show_default=True, help="File in which the figure is saved.")  # fmt: skip
@click.option("--time-limit", type=click.FloatRange(0, min_open=True), default=60.0,
              show_default=True, metavar="SECONDS",
              help="Time limit of each algorithm, which then returns its best plane.")  # fmt: skip
@options.reading
@options.preparing
@options.seed
@options.as_json
def compare(
    data: str, target: str | None, test: float, picture: str, time_limit: float, seed: int,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Train all algorithms on the same rows of DATA, and test them on the others.

    \b
    Examples:
      maxmargin compare fruit.csv --target fruit
      maxmargin compare heart_scale --test 0.5 --picture heart.png --json
    """
    check_input(data)
    check_out(picture, data, endings=options.PICTURES)
    reading = Reading(target, **given)
    learn, hold = split(reading.table(data), test, seed)
    rows = compare_all(reading, learn, hold, seed, time_limit)
    _draw_comparison(rows, Path(data).name, picture)
    if as_json:
        console.print_json({"data": _described(learn), "test_rows": len(hold.labels), "rows": rows,
                            "picture": picture})  # fmt: skip
        return
    print_comparison(
        rows, f"{Path(data).name}: {len(learn.labels)} training rows, {len(hold.labels)} test rows"
    )
    click.echo(f"picture: {picture}")


def compare_all(
    reading: Reading, learn: Any, hold: Any, seed: int, time_limit: float
) -> list[dict[str, Any]]:
    """Fit all algorithms to the same features, prepared once."""
    encoder = reading.encoder(copy=False)
    X, X_test = encoder.fit_transform(learn.X), encoder.transform(hold.X)
    rows = []
    with console.progress("comparing", len(options.MODEL_NAMES)) as bar:
        for name in options.MODEL_NAMES:
            rows.append(_compared(name, X, learn.labels, X_test, hold.labels, seed, time_limit))
            bar.advance(name)
    return rows


def _compared(
    name: str,
    X: Matrix,
    y: Labels,
    X_test: Matrix,
    y_test: Any,
    seed: int,
    time_limit: float,
) -> dict[str, Any]:
    import numpy as np

    model = options.make_model(name, {}, (), seed)
    if "time_limit" in model.get_params():
        model.set_params(time_limit=time_limit)
    else:
        model.set_params(callback=_clock(time_limit))
    try:
        warm(model, X, y)
        trained = fit_features(X, y, model)
    except (ValueError, TypeError, MemoryError) as error:
        return {"algorithm": name, "outcome": "cannot", "reason": str(error)}
    return record_of(name, trained, X, y) | {
        "test_error": float(np.mean(model.predict(X_test) != y_test))
    }


def record_of(name: str, trained: Trained, X: Matrix, y: Labels) -> dict[str, Any]:
    """Return the result of an algorithm on its training rows, as a line of a comparison.

    ``margin`` is the smallest distance of a row to the plane, for every algorithm; ``half_width``
    is 1/‖w‖ of a support vector machine, half the width of its band.
    """
    from ..diagnostics.summary import smallest_distance, summarize

    found = summarize(trained.model)
    return {
        "algorithm": name,
        "training_error": trained.training_error,
        "seconds": trained.seconds,
        "gap": found.proof.get("relative_gap"),
        "margin": smallest_distance(trained.model, X, y),
        "half_width": found.margin if "primal" in found.proof else None,
        "kernel": found.kernel,
        "support_vectors": found.n_support,
        "outcome": outcome(trained.model, trained.training_error),
        "certificate": found.certificate,
        "ended": found.status,
    }


def warm(model: ModelLike, X: Matrix, y: Labels) -> None:
    """Fit to a few rows first, so that times do not include loading compiled code."""
    import numpy as np
    from sklearn.base import clone

    few = np.concatenate([np.flatnonzero(y == label)[:20] for label in np.unique(y)])
    with console.collected_warnings():
        clone(model).set_params(callback=None).fit(X[few], y[few])


def _clock(limit: float) -> Any:
    """Return a callback that stops a fit at its time limit."""
    end = time.perf_counter() + limit
    return lambda step: time.perf_counter() > end


def outcome(model: ModelLike, training_error: float) -> str:
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
    rows: list[dict[str, Any]], title: str, caption: str | None = None, tested: bool = True
) -> None:
    """Print one algorithm per line."""
    columns = [
        "algorithm", "training error", "test error", "time", "gap", "smallest distance", "outcome",
    ]  # fmt: skip
    lines = [
        [
            row["algorithm"],
            console.percent(row.get("training_error")),
            console.percent(row.get("test_error")),
            console.seconds(row["seconds"]) if "seconds" in row else "–",
            "–" if row.get("gap") is None else f"{max(row['gap'], 0.0):.1e}",
            _distance(row),
            row["outcome"],
        ]
        for row in rows
    ]
    if not tested:
        columns.pop(2)
        lines = [line[:2] + line[3:] for line in lines]
    console.print_table(
        columns, lines, title=title, caption=caption, left=["outcome"], colours=COLOURS
    )
    if any("*" in line[-2] for line in lines):
        click.echo("* in the feature space of the kernel, not comparable with the others")
    for row in rows:
        if "reason" in row:
            console.note(f"{row['algorithm']}: {row['reason']}")


def _distance(row: dict[str, Any]) -> str:
    """Return the smallest distance of a training row, marked where it is in a kernel's space."""
    text = console.number(row.get("margin"))
    mapped = (row.get("kernel") or "Linear()") != "Linear()" and text != "–"
    return f"{text}*" if mapped else text


def _draw_comparison(rows: list[dict[str, Any]], title: str, picture: str) -> None:
    from ..plots.comparison import comparison

    comparison(rows, title=title).figure_.savefig(picture, dpi=150, bbox_inches="tight")


COMMANDS = [fit, compare]
