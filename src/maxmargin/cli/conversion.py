"""``convert`` and ``warmup``: formats of other programs, and compilation in advance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..estimators.registry import MODELS
from . import console, options
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
    from .. import persistence
    from ..diagnostics.fitted_model import FittedModel

    model = load_model(model_file)
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


@click.command()
@options.as_json
def warmup(as_json: bool) -> None:
    """Compile everything once, so that the first fit of a program starts faster.

    The compiled code is cached beside the package, or in NUMBA_CACHE_DIR, for all programs.

    \b
    Example:
      maxmargin warmup
    """
    import time

    seconds: dict[str, float] = {}
    with console.progress("compiling", len(options.MODEL_NAMES)) as bar:
        for name in options.MODEL_NAMES:
            started = time.perf_counter()
            _compile(name)
            seconds[name] = time.perf_counter() - started
            bar.advance(name)
    if as_json:
        console.print_json({"seconds": seconds, "total": sum(seconds.values())})
        return
    for name, value in seconds.items():
        click.echo(f"{name:20} {console.seconds(value)}")
    click.echo(f"compiled in {console.seconds(sum(seconds.values()))}")


def _compile(name: str) -> None:
    """Fit a model to small data of every type for which it has compiled code."""
    import numpy as np
    from scipy import sparse
    from sklearn.datasets import make_blobs

    X, y = make_blobs(240, centers=3, n_features=4, cluster_std=3.0, random_state=0)
    with console.collected_warnings():
        for dtype in (np.float64, np.float32):
            for rows in (X.astype(dtype), sparse.csr_matrix(X.astype(dtype))):
                for labels in (y, np.minimum(y, 1)):
                    for options_of in _variants(name):
                        MODELS[name](**options_of).fit(rows, labels)


def _variants(name: str) -> list[dict[str, Any]]:
    """Return the settings that use different compiled code."""
    solvers = {
        "svc": ("decomposition", "smo", "active-set"),
        "linear-svc": ("newton", "interior-point", "coordinate-descent"),
    }
    chosen: list[dict[str, Any]] = [{"solver": solver} for solver in solvers.get(name, ())]
    if name == "linear-svc":
        chosen.append({"multi_class": "crammer_singer"})
    return chosen or [{}]


COMMANDS = [convert, warmup]
