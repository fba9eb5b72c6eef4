"""``convert``: formats of other programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from . import console
from .data import check_out, facts_of, load_model, own_facts, training_of

# Models of LIBSVM end in .model; .libsvm is common for its data.
SUFFIXES = {"libsvm": ".model", "onnx": ".onnx", "json": ".json", "maxmargin": ".mm"}


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.option("--to", "to", type=click.Choice(list(SUFFIXES)), required=True)
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="Output file; by default MODEL with another suffix.",
)
def convert(model_file: str, to: str, out: str | None) -> None:
    """Write MODEL in another format, or read LIBSVM's text format.

    In every format, a model with a kernel contains rows of its training data.

    \b
    Examples:
      maxmargin convert fruit.mm --to onnx
      maxmargin convert heart.mm --to libsvm
      maxmargin convert heart.model --to maxmargin --out heart.mm
    """
    model = load_model(model_file)
    from .. import persistence
    from ..diagnostics.fitted_model import FittedModel

    path = out or str(Path(model_file).with_suffix(SUFFIXES[to]))
    check_out(path, model_file)
    if out is None and Path(path).exists():
        raise click.UsageError(f"{path} exists already: pass another file by --out.")
    about = facts_of(model_file)
    writers: dict[str, Callable[[Any, str], None]] = {
        "libsvm": persistence.save_libsvm,
        "onnx": persistence.save_onnx,
        "json": persistence.save_json,
        "maxmargin": partial(persistence.save, about=own_facts(about)),
    }
    with console.collected_warnings() as warned:
        writers[to](model, path)
    if to == "libsvm" and training_of(about).get("first_index") == 0:
        warned.append("features are counted from 1 in this file, from 0 in the training data.")
    for message in warned:
        console.note(f"warning: {message}")
    click.echo(f"{FittedModel(model).name} written as {to}: {path}")


COMMANDS = [convert]
