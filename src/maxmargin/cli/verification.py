"""``verify``: the certificate of a saved model, recomputed from its training data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, options
from .data import (
    NewRows,
    check_input,
    facts_of,
    labels_of,
    load_model,
    split,
    targets_of,
    training_of,
)

if TYPE_CHECKING:
    from ..diagnostics.fitted_model import ModelLike
    from ..diagnostics.verification import TaskVerification, Verification
    from ..files import DataTable

# Tasks that are all shown; of more only the worst, or those that differ.
SHOWN_TASKS = 3
SAME, OTHER, UNKNOWN = (
    "the training data, by their fingerprint",
    "not the training data: their fingerprint is another one, by values or by the order of rows",
    "unknown whether the training data: the model file has no fingerprint",
)


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option("--full", is_flag=True,
              help="Recompute all rows of a large kernel machine, not a sample.")  # fmt: skip
@options.target
@options.reading
@options.as_json
def verify(
    model_file: str, data: str, full: bool, target: str | None, as_json: bool, **given: Any
) -> None:
    """Recompute the whole certificate of MODEL from its training DATA, in float64.

    Problems are posed anew from DATA and the parameters of MODEL; planes and dual variables are
    those of the file. What the file claims and what was found is printed side by side. The exit
    code is 3 where they differ. Numbers agree up to rounding; gaps and violations may be smaller
    than claimed.

    The file has a fingerprint of the rows that the model was trained on, by content: DATA may be
    in another format. The rows of --test are left out again. Large kernel machines are checked on
    all support vectors and a random sample of the other rows, unless --full is given. Linear
    models without dual variables in the file are solved again for a dual value.

    \b
    Examples:
      maxmargin verify fruit.mm fruit.csv
      maxmargin verify a9a.mm a9a.bz2 --full
      maxmargin verify fruit.mm fruit.parquet --json
    """
    from ..diagnostics.verification import OtherDataError
    from ..diagnostics.verification import verify as recompute

    check_input(data)
    model, about = load_model(model_file), facts_of(model_file)
    table = training_table(model, about, data, target, given)
    with console.progress(f"reading {data}"):
        table, is_known, what = training_rows(model, about, table)
    if is_known is False:
        console.note(f"warning: {data}: {what}.")
    try:
        labels = _labels(model, table)
        with console.progress(f"verifying {model_file}"), console.collected_warnings():
            found = recompute(model, table.X, labels, full=full)
    except OtherDataError as error:
        _print_other(model_file, data, what, str(error), as_json)
        raise click.exceptions.Exit(3) from None
    except TypeError as error:
        raise click.ClickException(f"{model_file}: {error}") from None
    if as_json:
        console.print_json(_record(found, is_known, what))
    else:
        _print(f"{Path(model_file).name} on {Path(data).name}", found, table, what)
    if not found.agrees:
        raise click.exceptions.Exit(3)


# The rows of the fit -----------------------------------------------------------------------------


def training_table(
    model: ModelLike, about: dict[str, Any], data: str, target: str | None, given: dict[str, Any]
) -> DataTable:
    """Return all rows of a file with the columns of a model, in the type of the fit."""
    import numpy as np

    rows = NewRows(model, training_of(about), data, target, **given)
    labelled = targets_of(model) != "none"
    with console.progress(f"reading {data}"):
        parts = list(rows.parts(labelled=labelled))
    if not parts:
        raise click.ClickException(f"{data}: no rows.")
    dtype = np.dtype(fingerprint_of(about).get("dtype", "float64"))
    y = np.concatenate([part.labels for part in parts]) if labelled else None
    return replace(parts[0], X=stacked([part.X for part in parts], dtype), y=y)


def stacked(parts: list[Any], dtype: Any) -> Any:
    """Return parts of the rows as one matrix, or as a frame where columns hold text."""
    import numpy as np

    if hasattr(parts[0], "columns"):
        import polars

        frame = polars.concat(parts)
        if all(kind.is_numeric() for kind in frame.dtypes):
            return frame.to_numpy().astype(dtype, copy=False)
        to = polars.Float32 if dtype == np.float32 else polars.Float64
        return frame.with_columns(polars.selectors.numeric().cast(to))
    if hasattr(parts[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(parts, format="csr").astype(dtype, copy=False)
    return np.concatenate(parts).astype(dtype, copy=False)


def fingerprint_of(about: dict[str, Any]) -> dict[str, Any]:
    """Return the fingerprint of the training rows; nothing where the file has none."""
    found = about.get("fingerprint")
    return found if isinstance(found, dict) and "sha256" in found else {}


def training_rows(
    model: ModelLike, about: dict[str, Any], table: DataTable
) -> tuple[DataTable, bool | None, str]:
    """Return the rows that the model was trained on, whether that is known, and in words."""
    import numpy as np

    from ..files import fingerprint

    known, parts = fingerprint_of(about), about.get("split")
    if targets_of(model) == "classes":
        table = replace(table, y=_of_classes(model, table))

    def matches(some: DataTable) -> bool:
        return bool(fingerprint(some.X, some.y)["sha256"] == known.get("sha256"))

    if known and matches(table):
        return table, True, SAME
    if isinstance(parts, dict) and {"test", "seed"} <= set(parts):
        whole = replace(table, X=np.array(table.X) if isinstance(table.X, np.ndarray) else table.X)
        learnt, _ = split(whole, float(parts["test"]), int(parts["seed"]), targets_of(model))
        if known and matches(learnt):
            rows = f"{learnt.X.shape[0]} of {table.X.shape[0]} rows"
            return learnt, True, f"{SAME} ({rows}; the others were for the test)"
        if not known or table.X.shape[0] != known["rows"]:
            table = learnt
    return table, (False if known else None), OTHER if known else UNKNOWN


def _of_classes(model: ModelLike, table: DataTable) -> Any:
    """Return labels of a file as those of the model, in the type of its classes."""
    import numpy as np

    from ..diagnostics.fitted_model import FittedModel

    classes = FittedModel(model).classes
    labels = labels_of(classes.tolist(), table.labels)
    if set(labels.tolist()) <= set(classes.tolist()):
        return labels.astype(classes.dtype)
    return np.array([str(label) for label in labels.tolist()])


def _labels(model: ModelLike, table: DataTable) -> Any:
    """Return what the model learns from; raise for labels that it does not know."""
    from ..diagnostics.fitted_model import FittedModel
    from ..diagnostics.verification import OtherDataError

    fitted = FittedModel(model)
    if not fitted.has_classes or table.y is None:
        return table.y
    unknown = sorted({str(label) for label in table.y.tolist()} - set(fitted.class_names))
    if unknown:
        raise OtherDataError(f"the label {unknown[0]!r:.50} is not a class of the model.")
    return table.y


# Output ------------------------------------------------------------------------------------------


def _print(title: str, found: Verification, table: DataTable, what: str) -> None:
    rows = {
        None: None, True: "all of them are rows of the data",
        False: "not the rows of the data that they were, by values or by the order of rows",
    }  # fmt: skip
    notes = []
    if found.solved_again:
        notes.append("the file has no dual variables: the dual value is that of a new solution")
    if found.is_sample:
        notes.append("a sample of the rows was checked: --full recomputes all of them")
    console.print_facts(
        title,
        {
            "data": f"{table.X.shape[0]} rows: {what}",
            "support vectors": rows[found.has_its_rows],
            "note": "; ".join(notes),
        },
    )
    shown = _shown(found.tasks)
    for task in shown:
        lines = [
            [each.name, _value(each.claimed), _value(each.found), "" if each.agrees else "differs"]
            for each in task.compared
        ]
        name = task.name if len(found.tasks) > 1 else None
        console.print_table(["", "claimed", "found", "difference"], lines, title=name,
                            colours={"differs": "bold red"})  # fmt: skip
    if len(shown) < len(found.tasks):
        click.echo(f"{len(shown)} of {len(found.tasks)} tasks; --json has all")
    click.echo(found.verdict)


def _shown(tasks: list[TaskVerification]) -> list[TaskVerification]:
    """Return the tasks to print: all of a few, else those that differ, or the worst."""
    if len(tasks) <= SHOWN_TASKS:
        return tasks
    wrong = [task for task in tasks if not task.agrees][:SHOWN_TASKS]
    return wrong or [max(tasks, key=lambda task: float(task.finding.violation))]


def _value(value: float | bool | int) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _record(found: Verification, is_known: bool | None, what: str) -> dict[str, Any]:
    tasks = [
        {
            "task": task.name,
            "agrees": task.agrees,
            "compared": [vars(each) for each in task.compared],
            "claim": str(task.claim),
            "finding": str(task.finding),
        }
        for task in found.tasks
    ]
    return {
        "agrees": found.agrees, "verdict": found.verdict, "holds": found.holds, "data": what,
        "is_training_data": is_known, "has_its_rows": found.has_its_rows,
        "solved_again": found.solved_again, "is_sample": found.is_sample, "tasks": tasks,
    }  # fmt: skip


def _print_other(model_file: str, data: str, what: str, why: str, as_json: bool) -> None:
    """Say that the data are not those of the fit."""
    verdict = f"not verified: {why}"
    if as_json:
        console.print_json({"agrees": False, "verdict": verdict, "data": what, "tasks": []})
        return
    console.print_facts(f"{Path(model_file).name} on {Path(data).name}", {"data": what})
    click.echo(verdict)


COMMANDS = [verify]
