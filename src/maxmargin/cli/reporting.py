"""``report``: one page about a model and its results on some data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, options
from .data import Reading, check_out, facts_of, load_model, split, targets_of, training_of
from .figures import rows_of
from .held_out import HeldOut
from .verification import fingerprint_of, stacked

if TYPE_CHECKING:
    from ..arrays import Integers, Labels, Matrix
    from ..files.targets import Targets


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option("--out", type=click.Path(dir_okay=False), default="report.html", show_default=True)
@options.target
@options.reading
def report(model_file: str, data: str, out: str, target: str | None, **given: Any) -> None:
    """Write one HTML page about MODEL and its results on DATA, for people who decide.

    The page says first how good the answers are, beside a baseline, and whether the fit is proved;
    then come pictures, the certificate of every pair of classes, the most influential and the most
    doubtful rows with their values in DATA, parameters, preparation, and all terms explained.
    Of a model that was fitted with --test, rows that were held out come first, and apart from the
    rows of the training. The page needs no other file and no network, and can be printed.

    \b
    Example:
      maxmargin report fruit.mm fruit.csv --out report.html
    """
    from .. import report as page

    check_out(out, model_file, data)
    model = load_model(model_file)
    about, targets = facts_of(model_file), targets_of(model)
    X, y = rows_of(model, model_file, data, Reading(target, **given))
    held_out = HeldOut.of(training_of(about), targets != "none")
    parts = {} if held_out is None else held_out.masks(X, y)
    with console.progress("writing the report"), console.collected_warnings():
        training = training_order(about, X, y, targets)
        text = page.render(
            model, X, y, about=about, data=Path(data).name, parts=parts, training=training
        )
    page.write(text, out)
    click.echo(f"report: {out}")


def training_order(
    about: dict[str, Any], X: Matrix, y: Labels | None, targets: Targets
) -> Integers | None:
    """Return the rows of a file that a model was fitted to, in the order of the fit.

    They are known by the fingerprint of the model file: all rows, or those that --test left. None
    where they are others, or where there is no fingerprint.
    """
    import numpy as np

    from ..files import DataTable, fingerprint

    known, parts, n = fingerprint_of(about), about.get("split"), X.shape[0]
    if not known:
        return None
    rows = stacked([X], np.dtype(known.get("dtype", "float64")))

    def is_known(order: Integers) -> bool:
        some = fingerprint(rows[order], None if y is None else y[order])
        return bool(some["sha256"] == known["sha256"])

    if known["rows"] == n:
        return np.arange(n) if is_known(np.arange(n)) else None
    if not isinstance(parts, dict) or not {"test", "seed"} <= set(parts):
        return None
    if n - int(np.ceil(float(parts["test"]) * n)) != known["rows"]:
        return None
    numbers = DataTable(np.arange(n)[:, np.newaxis], y, None, "the data")
    try:
        learnt, _ = split(numbers, float(parts["test"]), int(parts["seed"]), targets)
    except click.ClickException:  # other rows of the same number, which cannot be split
        return None
    order: Integers = np.asarray(learnt.X)[:, 0]
    return order if is_known(order) else None


COMMANDS = [report]
