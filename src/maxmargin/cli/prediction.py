"""``predict`` and ``evaluate``: saved models on new rows, some at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import cluster, console, file_options, options
from .answers import Predictions, baseline_of, heading, score_names, tally_rows
from .data import (
    NewRows,
    check_input,
    check_out,
    facts_of,
    load_model,
    targets_of,
    training_of,
)
from .held_out import CALLED, HeldOut
from .measures import (
    baseline_in_words,
    metrics_out,
    print_by_class,
    print_confusion,
    undefined_in_words,
    write_metrics,
)
from .output import form_of

if TYPE_CHECKING:
    from ..diagnostics.metrics import AnyTally


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA", nargs=-1, required=True)
@click.option("--out", default="-", show_default=True,
              help="A file: CSV, or by its suffix .tsv, .parquet, .arrow or .feather; - is "
              "standard output. With --scheduler a folder.")  # fmt: skip
@click.option("--keep", multiple=True, metavar="COL,…", callback=file_options.listed,
              help="Write these columns of DATA first, also those that the model does not use; all "
              "for all of them.")  # fmt: skip
@click.option("--proba", is_flag=True,
              help="Write the probability of every class, of models with probability=true.",
              )  # fmt: skip
@click.option("--no-scores", is_flag=True, help="Write no scores.")
@options.target
@options.device
@options.reading
@options.scheduler
@options.as_json
def predict(
    model_file: str, data: tuple[str, ...], out: str, keep: tuple[str, ...], proba: bool,
    no_scores: bool, target: str | None, device: str | None, scheduler: str | None, as_json: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Predict the labels or numbers of the rows of DATA by a saved MODEL.

    Columns are found by name, in any order; other columns, such as a known label, are ignored.
    Each line of the output has the label and its scores: g(x) of two classes, called by the second,
    such as score_lemon, for which it is positive; or one score per class; of a model with
    decision_function_shape=ovo one per pair, score_apple_vs_lemon, positive for the first. A
    one-class model gives -1 to outliers and 1 to others, with its score, negative for outliers; a
    regression gives one number. Where DATA has a kept column of such a name, the model's begins
    with predicted_. A model that was fitted on a GPU predicts there if there is one, unless
    --device says otherwise.

    With --scheduler DATA may be many files, by their names, a pattern or a folder: workers of a
    Dask cluster write one file for each, of the same base name, into the folder --out.

    \b
    Examples:
      maxmargin predict fruit.mm new.csv --out labels.csv
      maxmargin predict houses.mm new.csv --out prices.parquet --keep id,street
      maxmargin predict fruit.mm new.csv --keep all --no-scores --out labelled.tsv
      maxmargin predict likely.mm new.csv --proba --quiet
      cat new.csv | maxmargin predict fruit.mm - --format csv --json
      maxmargin predict y.mm 'data/*.parquet' --scheduler local:4 --out labels/
    """
    files = cluster.data_files(data, scheduler)
    outs, form = [out], "json" if as_json else "csv"
    if scheduler is not None:
        options.forbid(("device",), cluster.NO_DEVICE)
        outs = cluster.output_files(out, files, model_file, "jsonl" if as_json else "csv")
    elif out != "-":
        check_out(out, model_file, *files)
        form = form_of(out, as_json=as_json)
    if scheduler is None:
        check_input(files[0])
    model = load_model(model_file)
    options.use_device(model, device)
    names = score_names(model)
    if not names:
        options.forbid(("no_scores",), f"has no effect: {model_file} predicts numbers.")
    likely = _with_probabilities(model, model_file) if proba else []
    predictions = Predictions(heading(model), [] if no_scores else names, likely, form)
    learnt = training_of(facts_of(model_file))
    rows = NewRows(model, learnt, files[0], target, keep, **given)
    if scheduler is None:
        n, told = _predicted(rows, out, predictions)
    else:
        with cluster.session(scheduler):
            n, told = cluster.predict_files(rows, files, outs, predictions)
    for message in told:
        console.note(f"warning: {message}")
    if out != "-" and not console.is_quiet():
        done = "predicted" if targets_of(model) == "numbers" else "labelled"
        n_files = f"{len(outs)} file{'s' * (len(outs) != 1)}"
        into = f"{n_files} in {out}" if scheduler is not None else out
        click.echo(f"{n} rows {done}: {into}")


def _with_probabilities(model: Any, model_file: str) -> list[str]:
    """Return the classes of a model with probabilities; raise for another one."""
    from ..diagnostics.fitted_model import FittedModel

    if not hasattr(model, "predict_proba"):
        raise click.UsageError(
            f"--proba: {model_file} has no probabilities: fit svc or nusvc with "
            "--set probability=true."
        )
    return FittedModel(model).class_names


def _predicted(rows: NewRows, out: str, predictions: Predictions) -> tuple[int, list[str]]:
    """Write the predictions for a file; return the number of rows, and warnings."""
    n, told = 0, []  # type: int, list[str]
    with console.progress(f"predicting {rows.data}") as bar:
        for n_rows in predictions.write(out, rows, told):
            n += n_rows
            bar.advance(f"{n} rows")
    return n, told


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA", nargs=-1, required=True)
@options.target
@options.device
@options.reading
@options.scheduler
@metrics_out
@options.as_json
def evaluate(
    model_file: str, data: tuple[str, ...], target: str | None, device: str | None,
    scheduler: str | None, metrics_out: str | None, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Compare the predictions of MODEL for the rows of DATA with their labels or numbers.

    A classifier is compared with its most frequent class as the answer to everything, a regression
    with the mean of its training targets. Of many classes the AUC is that of each class against the
    rest, averaged; the log loss needs probabilities. A one-class model needs no labels: the
    outliers are counted, for each label where DATA has labels. Of a model that was fitted with
    --test, rows that were held out and rows of the training are shown apart.

    Files of any size are read in pieces. The AUC is exact for 4 million scores (rows times classes,
    of two classes one score per row); for more it is known up to auc_bound, far below 0.001.

    \b
    Examples:
      maxmargin evaluate fruit.mm test.csv
      maxmargin evaluate a9a.mm a9a.t.bz2 --json --device cuda
      maxmargin evaluate fruit.mm test.csv --metrics-out metrics.json
      maxmargin evaluate letters.mm letters.csv --verbose
      maxmargin evaluate houses.mm new.csv --target price
      maxmargin evaluate sensors.mm new.csv --target label
      maxmargin evaluate y.mm test/ --scheduler local
    """
    files = cluster.data_files(data, scheduler)
    check_out(metrics_out, model_file, *files)
    if scheduler is None:
        check_input(files[0])
    else:
        options.forbid(("device",), cluster.NO_DEVICE)
    model = load_model(model_file)
    options.use_device(model, device)
    rows = NewRows(model, training_of(facts_of(model_file)), files[0], target, **given)
    told: list[str] = []
    apart: dict[str, AnyTally] = {}
    if scheduler is None:
        with console.progress(f"evaluating {rows.data}") as bar:
            held_out = HeldOut.of(rows.learnt, targets_of(model) != "none")
            tally = tally_rows(rows, told, bar, held_out)
            apart = {} if held_out is None else held_out.groups()
    else:
        with cluster.session(scheduler):
            tally, told = cluster.tally_files(rows, files)
    record = _measured(rows, tally)
    parts = {name: _measured(rows, some) for name, some in apart.items()}
    for message in told:
        console.note(f"warning: {message}")
    write_metrics(metrics_out, "evaluate", {"data": list(data), **record, **parts})
    if as_json:
        console.print_json(record | parts)
        return
    title = f"{Path(model_file).name} on {', '.join(Path(name).name for name in data)}"
    show = {"classes": _print_classes, "numbers": _print_numbers, "none": _print_outliers}[
        targets_of(model)
    ]
    for name, some in parts.items():
        show(f"{title}: {CALLED[name]}", some)
    if not parts:
        show(title, record)


def _measured(rows: NewRows, tally: AnyTally) -> dict[str, Any]:
    """Return the measures of the predictions for the rows of a file."""
    from ..diagnostics.fitted_model import FittedModel
    from ..diagnostics.metrics import tally_record
    from ..diagnostics.summary import outlier_bound

    fitted = FittedModel(rows.model)
    record = tally_record(tally, fitted.classes, baseline_of(rows))
    is_alone = not fitted.has_classes and not fitted.has_targets
    return record | ({"nu": outlier_bound(fitted)} if is_alone else {})


def _print_classes(title: str, record: dict[str, Any]) -> None:
    from ..diagnostics.metrics import in_words

    console.print_facts(
        title,
        {
            "rows": record["rows"],
            "errors": record["errors"],
            "error": in_words(record),
            **baseline_in_words(record["baseline"]),
            **undefined_in_words(record),
        },
    )
    print_confusion(record)
    print_by_class(record)


def _print_numbers(title: str, record: dict[str, Any]) -> None:
    from ..diagnostics.metrics import in_words

    facts = {"rows": record["rows"], "measures": in_words(record)}
    console.print_facts(title, facts | baseline_in_words(record.get("baseline")))


def _print_outliers(title: str, record: dict[str, Any]) -> None:
    share = console.percent(record["outlier_share"])
    share += "" if record["nu"] is None else f" (ν = {record['nu']:g})"
    console.print_facts(
        title,
        {"rows": record["rows"], "outliers": record["outliers"], "share of outliers": share},
    )
    if record["labels"]:
        rows = [
            [label or "(none)", of["rows"], of["outliers"],
             console.percent(of["outliers"] / of["rows"])]
            for label, of in record["labels"].items()
        ]  # fmt: skip
        console.print_table(["label", "rows", "called outliers", "share"], rows)


COMMANDS = [predict, evaluate]
