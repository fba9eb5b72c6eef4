"""From a data file to features, and from features to a fitted pipeline."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from .console import Progress, collected_warnings, progress


@dataclass(frozen=True)
class Reading:
    """How a data file is to be read and prepared: the options of the command line."""

    target: str | None = None
    format: str | None = None
    separator: str | None = None
    no_header: bool = False
    first_index: int | None = None
    drop: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    no_scale: bool = False
    impute: bool = False
    float32: bool = False

    def table(self, data: str) -> Any:
        """Read a file to learn from; missing values are refused unless they are filled."""
        from .. import files

        for name in set(self.words) & {*self.drop, self.target}:
            raise click.UsageError(f"--words {name}: is left out, or the target.")
        with progress(f"reading {data}"):
            table = files.read(
                data,
                self.target,
                format=self.format,
                separator=self.separator,
                header=not self.no_header,
                drop=self.drop,
                words=self.words,
                first_index=self.first_index,
                dtype="float32" if self.float32 else "float64",
            )
        _refuse_of_other_formats(table, self.target, self.first_index)
        table.labels_to_learn()
        if not self.impute:
            refuse(
                table, table.missing(), "missing",
                "pass --impute to fill them, --drop a column, or remove those rows",
            )  # fmt: skip
        refuse(table, table.infinite(), "infinite", "--drop a column, or remove those rows")
        return table

    def encoder(self, *, copy: bool = True) -> Any:
        """Return what prepares the columns."""
        from ..estimators.column_encoder import ColumnEncoder

        return ColumnEncoder(scale=not self.no_scale, impute=self.impute, copy=copy)


def _refuse_of_other_formats(table: Any, target: str | None, first_index: int | None) -> None:
    """Refuse options that say nothing of this file; only svmlight text has a first index."""
    is_svmlight = table.first_index is not None
    if first_index is not None and not is_svmlight:
        raise click.UsageError(f"--first-index is of svmlight text, which {table.source} is not.")
    if target is not None and is_svmlight:
        raise click.UsageError(f"--target: {table.source} has its labels in front of the features.")


def refuse(table: Any, counts: dict[str, int], what: str, remedy: str) -> None:
    """Refuse values that nobody can learn from, with their places."""
    if not counts:
        return
    places = ", ".join(f"{count} in {name}" for name, count in list(counts.items())[:5])
    places += ", …" if len(counts) > 5 else ""
    raise click.ClickException(
        f"{table.source}: {sum(counts.values())} {what} values ({places}): {remedy}."
    )


def check_out(out: str | None, *inputs: str, endings: Collection[str] = ()) -> None:
    """Refuse to write where nothing can be, over what was read, or what cannot be written."""
    if out is None:
        return
    if out == "-":
        raise click.UsageError("- is no file: this cannot go to standard output.")
    ending = Path(out).suffix.lower().lstrip(".")
    if endings and ending not in endings:
        raise click.UsageError(f"{out}: no ending of a picture; take {', '.join(sorted(endings))}.")
    path = Path(out)
    if not path.absolute().parent.is_dir():
        raise click.UsageError(f"{out}: there is no such folder to write to.")
    for name in inputs:
        if name != "-" and path.exists() and Path(name).exists() and path.samefile(name):
            raise click.UsageError(f"{out} would replace {name}: choose another name.")


def split(table: Any, test: float, seed: int) -> tuple[Any, Any]:
    """Return rows to learn from and rows to test on, the same share of every class in each.

    Rows of an array change places within it, so that both parts are views and nothing is copied.
    """
    import numpy as np
    from sklearn.model_selection import train_test_split

    y, n = table.y, len(table.y)
    counts = np.unique(y, return_counts=True)[1]
    rows = np.arange(n)
    n_test = int(np.ceil(test * n))
    possible = counts.min() >= 2 and min(n_test, n - n_test) >= counts.size
    learn, hold = train_test_split(
        rows, test_size=test, random_state=seed, stratify=y if possible else None
    )
    if np.unique(y[learn]).size < 2:
        raise click.ClickException(f"{table.source}: too few rows to hold {test:g} of them back.")
    X = table.X
    if isinstance(X, np.ndarray):
        order = np.concatenate([learn, hold])
        for k in range(X.shape[1]):
            X[:, k] = X[order, k]
        parts = X[: learn.size], X[learn.size :]
    else:
        parts = X[learn], X[hold]
    return replace(table, X=parts[0], y=y[learn]), replace(table, X=parts[1], y=y[hold])


@dataclass(frozen=True)
class Trained:
    """A fitted classifier, or the pipeline that ends in it, and how the fit went."""

    model: Any
    seconds: float
    training_error: float
    warnings: list[str]


def train(reading: Reading, table: Any, model: Any, bar: Progress | None = None) -> Trained:
    """Prepare the columns, in place where that can be, and fit; the table is used up."""
    encoder = reading.encoder(copy=False)
    X = encoder.fit_transform(table.X)
    trained = fit_features(X, table.y, model, bar)
    return replace(trained, model=joined(encoder, trained.model, table.names))


def fit_features(X: Any, y: Any, model: Any, bar: Progress | None = None) -> Trained:
    """Fit a classifier to prepared features; what it warns of is kept."""
    import numpy as np

    callback = bar.callback if bar is not None else None
    if callback is not None:
        model.set_params(callback=callback)
    with collected_warnings() as warned:
        started = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - started
    model.set_params(callback=None)
    error = float(np.mean(model.predict(X) != y))
    return Trained(model, seconds, error, warned)


def joined(encoder: Any, model: Any, names: list[str] | None) -> Any:
    """Return a pipeline of fitted parts that knows the columns by name."""
    import numpy as np
    from sklearn.pipeline import Pipeline

    encoder.set_params(copy=True)  # rows to predict belong to the caller
    if names is not None:
        encoder.feature_names_in_ = np.array(names, dtype=object)
    return Pipeline([("columns", encoder), ("model", model)])


def load_model(path: str) -> Any:
    """Load a classifier: a model of ours, or one in LIBSVM's text format."""
    from sklearn.exceptions import NotFittedError

    from .. import persistence
    from ..diagnostics.fitted_model import FittedModel

    if not Path(path).exists():
        raise click.ClickException(f"{path}: no such file.")
    if Path(path).is_dir():
        raise click.ClickException(f"{path}: is a folder, not a model.")
    model = persistence.load_libsvm(path) if is_libsvm(path) else persistence.load(path)
    try:
        FittedModel(model)
    except TypeError as error:
        raise click.ClickException(f"{path}: {error}") from None
    except NotFittedError:
        raise click.ClickException(f"{path}: the model must be fitted: fit it first.") from None
    return model


def is_libsvm(path: str) -> bool:
    """Say whether a file begins as LIBSVM's text models do."""
    with Path(path).open("rb") as file:
        return file.read(9).startswith(b"svm_type")


def facts_of(path: str) -> dict[str, Any]:
    """Return what was stored beside a model; nothing of one in another format."""
    from .. import persistence

    return {} if is_libsvm(path) else persistence.about(path)


def own_facts(about: dict[str, Any]) -> dict[str, Any]:
    """Return what the one who saved a model said of it, without what is added by itself."""
    from ..persistence.files import ADDED_KEYS

    return {name: fact for name, fact in about.items() if name not in ADDED_KEYS}


def training_of(about: dict[str, Any]) -> dict[str, Any]:
    """Return what ``fit`` wrote of the data; nothing where somebody else wrote something else."""
    data = about.get("data")
    return data if isinstance(data, dict) and {"source", "target", "classes"} <= set(data) else {}


@dataclass(frozen=True)
class Rows:
    """The rows of a file as a model wants them, some at a time."""

    model: Any
    model_file: str
    data: str
    target: str | None
    format: str | None = None
    separator: str | None = None
    no_header: bool = False
    first_index: int | None = None

    def parts(self, *, labelled: bool) -> Iterator[Any]:
        """Yield tables of rows; values that the model has no answer for are refused."""
        from .. import files
        from ..diagnostics.fitted_model import FittedModel

        learnt = training_of(facts_of(self.model_file))
        encoder = getattr(self.model, "named_steps", {}).get("columns")
        names = getattr(self.model, "feature_names_in_", None)
        words = None
        if encoder is not None and names is not None:
            pairs = zip(names, encoder.categories_, strict=True)
            words = [str(name) for name, known in pairs if known is not None]
        for part in files.batches(
            self.data,
            None if names is None else [str(name) for name in names],
            words=words,
            target=self.target or (learnt.get("target") if labelled else None),
            labelled=labelled,
            format=self.format,
            separator=self.separator,
            header=not self.no_header,
            n_features=FittedModel(self.model).n_features,
            first_index=learnt.get("first_index") if self.first_index is None else self.first_index,
        ):
            _refuse_of_other_formats(part, self.target, self.first_index)
            if encoder is None or not encoder.impute:
                refuse(
                    part, part.missing(), "missing",
                    "remove those rows, or fit a model with --impute",
                )  # fmt: skip
            refuse(part, part.infinite(), "infinite", "remove those rows")
            yield part


def labels_of(model: Any, y: Any) -> Any:
    """Return labels of a file as the model has them, whatever their type in the file."""
    import numpy as np

    classes = model.classes_.tolist()
    exactly = {str(label): label for label in classes}
    by_value = {_value(label): label for label in classes}
    meanings = {
        label: exactly.get(str(label), by_value.get(_value(label), label))
        for label in np.unique(y).tolist()
    }
    return np.array([meanings[label] for label in y.tolist()], dtype=object)


def _value(label: Any) -> Any:
    """Return the number that a label is, true and false included; else the label as a word."""
    word = str(label)
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?", word):
        return float(word)
    return {"true": 1.0, "false": 0.0}.get(word.lower(), word)
