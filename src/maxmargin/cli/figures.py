"""``plot``: figures of data and of saved models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..estimators.registry import MODELS
from . import console, guidance, options
from .data import (  # fmt: skip
    NewRows,
    Reading,
    check_out,
    facts_of,
    is_libsvm,
    labels_of,
    load_model,
    targets_of,
    train,
    training_of,
)
from .file_options import ColumnChoice, FileForm
from .verification import training_rows, training_table

if TYPE_CHECKING:
    from ..arrays import Labels, Matrix
    from ..diagnostics.fitted_model import ModelLike
    from ..files import DataTable

OF_MODELS = ("boundary", "margins", "support", "regression", "convergence")
OF_DATA = ("separability", "gram", "path", "animation")
TWO_FEATURES = ("boundary", "regression", *OF_DATA)
# The figures of a model, the first by default, by what it learns from.
FIGURES = {
    "classes": ("boundary", "margins", "support", "convergence"),
    "numbers": ("regression", "support", "convergence"),
    "none": ("boundary", "margins", "support", "convergence"),
}
READING = tuple(each.name for each in fields(FileForm))
PREPARING = (*(each.name for each in fields(ColumnChoice)), "no_scale", "impute", "float32")


@click.command()
@click.argument("source", metavar="MODEL|DATA")
@click.argument("data", metavar="[DATA]", required=False)
@click.option("--kind", type=click.Choice([*OF_MODELS, *OF_DATA]),
              help="By default boundary or regression for a model, separability for "
              "data.")  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False),
              help="Output file: PNG, SVG, PDF; GIF or HTML for an animation. By default "
              "KIND.png or KIND.gif.")  # fmt: skip
@click.option("--features", nargs=2, metavar="A B", help="The two features to draw.")
@click.option("--pair", nargs=2, metavar="A B", help="Only these two of the classes.")
@click.option("--model", "name", type=click.Choice(options.MODEL_NAMES),
              help="Fit this model to DATA first; perceptron for path and animation.")  # fmt: skip
@click.option("--dpi", type=click.IntRange(20, 1000),
              help="Dots per inch: 150 by default, 100 for an animation.")  # fmt: skip
@options.target
@options.modelling
@options.reading
@options.preparing
@options.seed
def plot(
    source: str, data: str | None, kind: str | None, out: str | None,
    features: tuple[str, str] | None, pair: tuple[str, str] | None, name: str | None,
    dpi: int | None,
    target: str | None, settings: tuple[str, ...], seed: int, **given: Any,
) -> None:  # fmt: skip
    """Draw a saved MODEL on DATA, or DATA alone.

    \b
    For a model:  boundary, margins, support (on its training rows; those that fit --test held out
                  are left out), convergence; for a regression regression (the function and its
                  tube) in place of the first two.
    For data:     separability (the hulls, and the widest band or a common point), gram (the
                  kernel matrix), path and animation (the steps of an algorithm on two features);
                  with --model also the figures of a model fitted to them.
    \b
    Examples:
      maxmargin plot fruit.mm fruit.csv --out fruit.png --dpi 300
      maxmargin plot fruit.mm fruit.csv --features mass_g width_cm
      maxmargin plot fruit.csv --target fruit --pair apple lemon --kind separability
      maxmargin plot fruit.csv --target fruit --pair apple lemon --features mass_g width_cm \\
          --kind animation --out perceptron.gif
    """
    given_model = {key: given.pop(key) for key in options.MODELLING}
    reading, of_model = Reading(target, **given), is_model(source)
    model = load_model(source) if of_model else None
    name = name or ("svr" if kind == "regression" and not of_model else None)
    kind = _figure_of(kind, source, model, name)
    _check_effect(kind, source, of_model)
    out = out or f"{kind}.{'gif' if kind == 'animation' else 'png'}"
    endings = options.FILMS if kind == "animation" else options.PICTURES
    check_out(out, source, *([data] if data else []), endings=endings)
    is_page = Path(out).suffix.lower() == ".html"
    options.forbid(("dpi",) if is_page else (), "is for pictures, an HTML page has no dots.")
    if of_model:
        subject = _saved(model, source, data, reading, kind)
    elif data is not None:
        raise click.UsageError(
            f"{source} must be a model where DATA is given; it is data: pass one of the two files."
        )
    else:
        subject = _of_data(source, reading, kind, pair, features, name, given_model, settings, seed)
    _draw(kind, subject, features, pair, out, dpi, given_model["kernel"])
    click.echo(f"{kind}: {out}")


def _figure_of(kind: str | None, source: str, model: ModelLike, name: str | None) -> str:
    """Return the kind of figure; raise where the model has none of this kind."""
    if model is None and name is None and kind in (None, *OF_DATA):
        return kind or "separability"
    targets = MODELS[name or "svc"].targets if model is None else targets_of(model)
    figures = FIGURES[targets]
    kind = kind or figures[0]
    if kind not in figures and (kind in OF_MODELS or targets != "classes"):
        what = source if model is not None else f"--model {name or 'svc'}"
        raise click.UsageError(
            f"--kind {kind} is not for {what}, {options.KINDS[targets]}: pass "
            f"{' or '.join(figures)}."
        )
    return kind


def _check_effect(kind: str, source: str, of_model: bool) -> None:
    """Raise for options that have no effect on this figure."""
    fitting = (*options.MODELLING, "name", "settings")
    if of_model:
        options.forbid((*fitting, *PREPARING, "seed"), f"is for data; {source} is a model.")
        options.forbid(
            () if kind == "support" else ("pair",), f"is for support and data, not for {kind}."
        )
    elif kind in ("separability", "gram"):
        unused = [key for key in fitting if (kind, key) != ("gram", "kernel")]
        options.forbid([*unused, "seed"], f"is for figures of a model, not for {kind}.")
    options.forbid(() if kind in TWO_FEATURES else ("features",), f"is not for {kind}.")
    if of_model and kind == "convergence":
        options.forbid(("target", *READING), f"has no effect on {kind}, which needs no data.")


@dataclass(frozen=True)
class Subject:
    """What is drawn: a model and rows in its features, or rows alone.

    ``y`` is None for a one-class model.
    """

    X: Matrix
    y: Any
    names: Sequence[str]
    model: ModelLike = None
    labels: Sequence[str] | None = None
    target: str = "y"


def is_model(path: str) -> bool:
    """Say whether a file holds a model, of maxmargin or LIBSVM, rather than data."""
    if path == "-" or not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        start = file.read(9)
    ours = start[8:9] == b"{" and int.from_bytes(start[:8], "little") < Path(path).stat().st_size
    return ours or is_libsvm(path)


def _saved(model: ModelLike, source: str, data: str | None, reading: Reading, kind: str) -> Subject:
    import numpy as np

    if kind in OF_DATA:
        raise click.UsageError(f"--kind {kind} is for data; {source} is a model.")
    if data is None:
        if kind != "convergence":
            raise click.UsageError(f"--kind {kind} needs data: maxmargin plot MODEL DATA.")
        return Subject(np.empty((0, 0)), np.empty(0), [], model)
    target = reading.target or training_of(facts_of(source)).get("target")
    rows = training_rows_of if kind == "support" else rows_of
    return features_of(model, *rows(model, source, data, reading), target)


def training_rows_of(
    model: ModelLike, model_file: str, data: str, reading: Reading
) -> tuple[Any, Any]:
    """Return the rows of a file that a model was fitted to, in their order, and their targets.

    Rows that ``fit --test`` held out are left out; so many rows that none can be are refused.
    """
    about = facts_of(model_file)
    learnt = about.get("training_rows")
    X, y = rows_of(model, model_file, data, reading)
    if learnt is None or X.shape[0] == learnt:
        return X, y
    if "split" in about:
        form = {name: getattr(reading, name) for name in READING}
        table = training_table(model, about, data, reading.target, form)
        part, is_known, _ = training_rows(model, about, table)
        if is_known:
            out = X.shape[0] - learnt
            console.note(f"{out:,} of {X.shape[0]:,} rows were held out of the fit: left out.")
            return part.X, part.y
    raise click.ClickException(
        f"{data} has {X.shape[0]:,} rows, {model_file} was fitted to {learnt:,}, and they cannot "
        "be told apart: pass the file of the fit, unchanged, or only its training rows."
    )


def rows_of(model: ModelLike, model_file: str, data: str, reading: Reading) -> tuple[Any, Any]:
    """Return all rows of a file with the columns of the model, and their labels or numbers."""
    from scipy import sparse

    form = {name: getattr(reading, name) for name in READING}
    rows = NewRows(model, training_of(facts_of(model_file)), data, reading.target, **form)
    parts = list(rows.parts(labelled=True))
    y = _targets_of(model, parts, data)
    if len(parts) == 1:
        X, vectors = parts[0].X, getattr(model, "support_vectors_", None)
        dense = sparse.issparse(X) and vectors is not None and not sparse.issparse(vectors)
        return X.toarray() if dense else X, y
    from ..files.column_types import polars

    return polars().concat([part.X for part in parts]), y


def _targets_of(model: ModelLike, parts: list[DataTable], data: str) -> Labels | None:
    """Return the targets of some rows; labels must be classes of the model."""
    import numpy as np

    from ..files.table import cut

    targets = targets_of(model)
    if targets == "none":  # its figures show what it predicts
        return None
    y = np.concatenate([part.labels for part in parts])
    if targets == "numbers":
        return y
    y = labels_of(model.classes_.tolist(), y)
    strange = sorted(set(map(str, y.tolist())) - set(map(str, model.classes_.tolist())))
    if strange:
        raise click.ClickException(
            f"{data}: labels must be classes of the model, {_listed(model.classes_)}; got "
            f"{cut(strange[0])}."
        )
    return y.astype(model.classes_.dtype)


def _listed(labels: Any) -> str:
    from ..files.table import listed

    return listed(list(labels))


def features_of(model: ModelLike, X: Matrix, y: Labels | None, target: str | None) -> Subject:
    """Return the rows in the features of the figures."""
    from ..plots.drawn import as_drawn

    with console.collected_warnings():
        drawn = as_drawn(model, X)
    return Subject(drawn.X, y, drawn.names, drawn.model, drawn.labels, target or "y")


def _of_data(
    source: str, reading: Reading, kind: str, pair: Any, features: Any, name: str | None,
    given: dict[str, Any], settings: tuple[str, ...], seed: int,
) -> Subject:  # fmt: skip
    """Return rows to draw, with a model on request, of two classes or features if so chosen."""
    from dataclasses import replace

    import numpy as np

    from ..progress import Recorder

    targets = MODELS[name or "svc"].targets
    table = reading.table(source, targets)
    if pair is not None:
        if targets != "classes":
            raise click.UsageError(f"--pair is for classes, not for --model {name}.")
        chosen = np.flatnonzero(np.isin(table.labels.astype(str), pair))
        if np.unique(table.labels[chosen]).size < 2:
            raise click.UsageError(
                f"--pair {' '.join(pair)}: pass two of {_listed(np.unique(table.labels))}."
            )
        table = replace(table, X=table.X[chosen], y=table.labels[chosen])
    if kind in OF_MODELS:
        model = options.make_model(name or "svc", given, settings, seed)
        fresh = replace(table, X=table.X.copy() if hasattr(table.X, "copy") else table.X)
        with console.progress(f"fitting {type(model).__name__}") as bar:
            trained = train(reading, fresh, model, bar)
        for message in trained.warnings:
            console.note(f"warning: {message}")
        return features_of(trained.model, table.X, table.y, table.target)
    encoder = reading.encoder()
    X = encoder.fit_transform(table.X)
    names = [str(n) for n in encoder.get_feature_names_out(table.names)]
    if features is not None:
        columns = [_place(f, names, source) for f in features]
        X, names = X[:, columns], [names[k] for k in columns]
    if kind in ("path", "animation"):
        if X.shape[1] != 2:
            raise click.UsageError(f"--kind {kind} needs two features: pass --features A B.")
        model = options.make_model(name or "perceptron", given, settings, seed)
        guidance.announce_recording(model, X, table.labels)
        # The figure shows the end of the fit.
        with console.progress(f"recording {type(model).__name__}"), console.collected_warnings():
            model.set_params(callback=Recorder(every_update=True)).fit(X, table.labels)
        return Subject(X, table.labels, names, model)
    return Subject(X, table.labels, names)


def _place(name: str, names: list[str], source: str) -> int:
    from ..files.table import find_column

    return find_column(name, names, source, "feature")


def _draw(
    kind: str,
    subject: Subject,
    features: Any,
    pair: Any,
    out: str,
    dpi: int | None,
    kernel: str | None,
) -> None:
    from .. import plots

    resolution = {} if dpi is None else {"dpi": float(dpi)}
    X, y, model = subject.X, subject.y, subject.model
    if kind == "animation":
        with console.collected_warnings():
            with console.progress("computing frames"):
                film = plots.animate(model, X, y, feature_names=subject.names)
            if Path(out).suffix.lower() == ".gif":
                guidance.announce_film(film)
            with console.progress("drawing", len(film)) as bar:
                film.save(
                    out, progress=lambda k, n: bar.advance(f"frame {k + 1} of {n}"), **resolution
                )
        return
    places = features and [_place(name, list(subject.names), "the model") for name in features]
    figures: dict[str, Callable[[], Any]] = {
        "boundary": lambda: plots.boundary(
            model, X, y, features=places, feature_names=subject.labels
        ),
        "regression": lambda: plots.regression(
            model, X, y, features=places, feature_names=subject.labels, target_name=subject.target
        ),
        "margins": lambda: plots.margins(model, X, y),
        "support": lambda: _support(subject, pair),
        "convergence": lambda: plots.convergence(model),
        "gram": lambda: plots.gram(kernel or "rbf", X, y),
        "path": lambda: plots.path(model, X, y, feature_names=subject.names),
        "separability": lambda: plots.separability(
            _verdict(X, y), X, y, feature_names=subject.names
        ),
    }
    with console.progress("drawing"), console.collected_warnings():
        figures[kind]().save(out, **resolution)


def _support(subject: Subject, pair: tuple[str, str] | None) -> Any:
    from .. import plots

    model, X = subject.model, subject.X
    has_classes = targets_of(model) == "classes"
    if pair and not has_classes:
        raise click.UsageError("--pair is for classes, which the model has none of.")
    if not has_classes or len(model.classes_) == 2:
        return plots.support(model, X, subject.y)
    known = {str(label): label for label in model.classes_.tolist()}
    strange = [name for name in pair or () if name not in known]
    if not pair or strange:
        raise click.UsageError(
            f"--kind support needs two classes: pass --pair A B of {', '.join(known)}."
        )
    task = [known[name] for name in pair]
    return plots.support(model, X, subject.y, task=task)


def _verdict(X: Matrix, y: Labels) -> Any:
    import numpy as np

    from ..solvers.separability import separability

    if np.unique(y).size > 2:
        raise click.UsageError(
            f"separability needs two classes: pass --pair A B of {_listed(np.unique(y))}."
        )
    return separability(X, y, maximum_margin=True)


COMMANDS = [plot]
