"""Data files as features, and fitted pipelines."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from .console import Progress, collected_warnings, note, progress
from .file_options import ColumnChoice, FileForm, tell

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from ..arrays import Integers, Labels, Matrix
    from ..diagnostics.fitted_model import ModelLike
    from ..estimators.base import CertifiedEstimator
    from ..estimators.column_encoder import ColumnEncoder
    from ..estimators.text_encoder import TextEncoder
    from ..files import DataTable
    from ..files.targets import Labelled, Targets

# Distinct whole numbers above which a target may be a measurement.
MANY_NUMBERS = 50


@dataclass(frozen=True)
class Reading(FileForm, ColumnChoice):
    """Options for reading and preparing a data file."""

    target: str | None = None
    no_scale: bool = False
    impute: bool = False
    float32: bool = False

    def table(self, data: str, targets: Targets = "classes") -> DataTable:
        """Read training data; raise for missing values unless they are filled."""
        check_input(data)
        self.check_words()
        with progress(f"reading {data}"):
            import numpy as np

            from .. import files

            table = files.read(
                data,
                self.target,
                **self.form(),
                **self.choice(),
                first_index=self.first_index,
                dtype="float32" if self.float32 else "float64",
                targets=targets,
            )
        tell(table)
        for name in set(self.text) - set(table.names or ()):
            raise click.UsageError(f"--text must be the name of a column, got {name!r}.")
        self.check_options(table, targets)
        if targets == "classes":
            note_many_classes(np.unique(table.labels_to_learn()))
        self.check_values(table.source, table.missing(), table.infinite())
        return table

    def check_words(self) -> None:
        """Raise for columns that cannot be categories."""
        for option in ("words", "text"):
            for name in set(getattr(self, option)) & {*self.drop, self.target}:
                raise click.UsageError(f"--{option} {name}: the column is dropped, or the target.")

    def check_options(self, table: Described, targets: Targets) -> None:
        """Raise for options that have no effect."""
        _check_options(table, self.target, self.first_index)
        if targets == "none" and self.target is not None and table.names is None:
            raise click.UsageError(
                f"--target has no effect: a one-class model uses no labels of {table.source}."
            )

    def check_values(self, source: str, missing: dict[str, int], infinite: dict[str, int]) -> None:
        """Raise for values that cannot be learnt from."""
        if not self.impute:
            require_none(
                source, missing, "missing",
                "pass --impute to fill them, --drop a column, or remove those rows",
            )  # fmt: skip
        require_none(source, infinite, "infinite", "--drop a column, or remove those rows")

    def encoder(self, *, copy: bool = True) -> ColumnEncoder | TextEncoder:
        """Return the transformer of the columns."""
        from ..estimators.column_encoder import ColumnEncoder

        if self.text:
            from ..estimators.text_encoder import TextEncoder

            names = [str(name) for name in self.text]
            return TextEncoder(names, scale=not self.no_scale, impute=self.impute, copy=copy)
        return ColumnEncoder(scale=not self.no_scale, impute=self.impute, copy=copy)


class Described(Protocol):
    """What is checked of the rows of a file, or of many."""

    @property
    def source(self) -> str:
        """What they are called."""

    @property
    def names(self) -> list[str] | None:
        """The columns."""

    @property
    def first_index(self) -> int | None:
        """The first feature of svmlight text."""


def _check_options(table: Described, target: str | None, first_index: int | None) -> None:
    """Raise for options that have no effect on the format of the file."""
    is_svmlight = table.first_index is not None
    if first_index is not None and not is_svmlight:
        raise click.UsageError(f"--first-index is for svmlight text, which {table.source} is not.")
    if target is not None and is_svmlight:
        raise click.UsageError(
            f"--target has no effect on svmlight text, in which labels come first: {table.source}."
        )


def note_many_classes(classes: Labels) -> None:
    """Warn of classes that look like measurements."""
    n_classes = len(classes)
    if classes.dtype.kind == "i" and n_classes > MANY_NUMBERS:
        note(
            f"warning: {n_classes} different whole numbers are {n_classes} classes here: use "
            "--model svr if the target is a quantity."
        )


def require_none(source: str, counts: dict[str, int], what: str, remedy: str) -> None:
    """Raise where columns have missing or infinite values, with their counts."""
    if not counts:
        return
    places = ", ".join(f"{count} in {name}" for name, count in list(counts.items())[:5])
    places += ", …" if len(counts) > 5 else ""
    raise click.ClickException(
        f"{source}: {sum(counts.values())} {what} values ({places}): {remedy}."
    )


def check_input(path: str) -> None:
    """Raise where an input file does not exist, before anything is imported to read it."""
    if path != "-" and not Path(path).exists():
        raise click.ClickException(f"{path}: no such file.")


def check_out(out: str | None, *inputs: str, endings: Collection[str] = ()) -> None:
    """Raise where the output file cannot be written, or is an input."""
    if out is None:
        return
    if out == "-":
        raise click.UsageError("the output must be a file, got -: it cannot go to standard output.")
    ending = Path(out).suffix.lower().lstrip(".")
    if endings and ending not in endings:
        raise click.UsageError(f"{out}: the suffix must be one of {', '.join(sorted(endings))}.")
    path = Path(out)
    if not path.absolute().parent.is_dir():
        raise click.UsageError(f"{out}: the folder does not exist.")
    for name in inputs:
        if name != "-" and path.exists() and Path(name).exists() and path.samefile(name):
            raise click.UsageError(f"{out} would replace the input {name}: choose another name.")


def split(
    table: DataTable, test: float, seed: int, targets: Targets = "classes"
) -> tuple[DataTable, DataTable]:
    """Return training and test rows, with the same fractions of the classes in both.

    Rows of an array are permuted in place, so that both parts are views and nothing is copied.
    """
    import numpy as np
    from sklearn.model_selection import train_test_split

    X, y, n = table.X, table.y, table.X.shape[0]
    n_test = int(np.ceil(test * n))
    classes = None
    if targets == "classes":
        counts = np.unique(table.labels, return_counts=True)[1]
        possible = counts.min() >= 2 and min(n_test, n - n_test) >= counts.size
        classes = y if possible else None
    few = click.ClickException(f"{table.source}: too few rows for a test fraction of {test:g}.")
    if n_test >= n:
        raise few
    learn, hold = train_test_split(
        np.arange(n), test_size=test, random_state=seed, stratify=classes
    )
    if targets == "classes" and np.unique(table.labels[learn]).size < 2:
        raise few
    if isinstance(X, np.ndarray):
        order = np.concatenate([learn, hold])
        for k in range(X.shape[1]):
            X[:, k] = X[order, k]
        parts = X[: learn.size], X[learn.size :]
    else:
        parts = X[learn], X[hold]
    of = [None, None] if y is None else [y[learn], y[hold]]
    return replace(table, X=parts[0], y=of[0]), replace(table, X=parts[1], y=of[1])


def folds_of(
    table: DataTable, n_folds: int, seed: int, targets: Targets = "classes"
) -> list[tuple[Integers, Integers]]:
    """Return training and test rows of every fold.

    They have the same fractions of the classes unless a class has fewer rows than there are folds.
    """
    import numpy as np
    from sklearn.model_selection import KFold, StratifiedKFold

    n, how = table.X.shape[0], KFold
    if n_folds > n:
        raise click.UsageError(f"--cv must be at most the number of rows, {n}; got {n_folds}.")
    if targets == "classes" and np.unique(table.labels, return_counts=True)[1].min() >= n_folds:
        how = StratifiedKFold
    return list(how(n_folds, shuffle=True, random_state=seed).split(np.empty(n), table.y))


@dataclass(frozen=True)
class Trained:
    """A fitted estimator, or the pipeline that ends in it, with time, measures and warnings.

    ``measures`` are those of its predictions for the training rows.
    """

    model: ModelLike
    seconds: float
    measures: dict[str, Any]
    warnings: list[str]


def train(
    reading: Reading, table: DataTable, model: CertifiedEstimator[Any], bar: Progress | None = None
) -> Trained:
    """Prepare the columns, in place if possible, and fit; the table must not be used again."""
    encoder = reading.encoder(copy=False)
    X = encoder.fit_transform(table.X)
    trained = fit_features(X, table.y, model, bar)
    return replace(trained, model=joined(encoder, trained.model, table.names))


def fit_features(
    X: Matrix, y: Labels | None, model: CertifiedEstimator[Any], bar: Progress | None = None
) -> Trained:
    """Fit an estimator to prepared features, and collect its warnings."""
    from ..diagnostics.answers import Answers
    from ..diagnostics.metrics import alone, baseline_of, measure

    targets = targets_of(model)
    # A GPU solves all tasks at once; a callback would have it solve one after the other.
    watched = bar is not None and getattr(model, "device", "cpu") in ("auto", "cpu")
    callback = bar.callback(has_classes=targets == "classes") if bar and watched else None
    if callback is not None:
        model.set_params(callback=callback)
    with collected_warnings() as warned:
        started = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - started
    model.set_params(callback=None)
    given = Answers(model.predict(X))
    measures = measure(targets, y, given, classes_of(model), baseline_of(y, targets))
    return Trained(model, seconds, alone(measures), warned)


def classes_of(model: ModelLike) -> list[Any]:
    """Return the classes of a classifier, none of other models."""
    return list(getattr(model, "classes_", ())) if targets_of(model) == "classes" else []


def targets_of(model: ModelLike) -> Targets:
    """Return what a model learns from: labels of classes, numbers, or rows alone."""
    from sklearn.utils import get_tags

    kinds: dict[str | None, Targets] = {"regressor": "numbers", "outlier_detector": "none"}
    return kinds.get(get_tags(model).estimator_type, "classes")


def joined(
    encoder: ColumnEncoder | TextEncoder, model: CertifiedEstimator[Any], names: list[str] | None
) -> Pipeline:
    """Return a pipeline of fitted parts with the names of the columns."""
    import numpy as np
    from sklearn.pipeline import Pipeline

    encoder.set_params(copy=True)  # rows to predict must not change
    if names is not None:
        encoder.feature_names_in_ = np.array(names, dtype=object)
    return Pipeline([("columns", encoder), ("model", model)])


def load_model(path: str) -> ModelLike:
    """Load an estimator: a model file, or one in LIBSVM's text format."""
    if not Path(path).exists():
        raise click.ClickException(f"{path}: no such file.")
    if Path(path).is_dir():
        raise click.ClickException(f"{path}: must be a model file, got a folder.")
    with progress(f"loading {path}"):
        from sklearn.exceptions import NotFittedError

        from .. import persistence
        from ..diagnostics.fitted_model import FittedModel

    model = persistence.load_libsvm(path) if is_libsvm(path) else persistence.load(path)
    try:
        FittedModel(model)
    except TypeError as error:
        raise click.ClickException(f"{path}: {error}") from None
    except NotFittedError:
        raise click.ClickException(f"{path}: the model must be fitted: fit it first.") from None
    return model


def is_libsvm(path: str) -> bool:
    """Say whether a file begins like LIBSVM's text models."""
    with Path(path).open("rb") as file:
        return file.read(9).startswith(b"svm_type")


def facts_of(path: str) -> dict[str, Any]:
    """Return the facts stored with a model; none for LIBSVM's format."""
    from .. import persistence

    return {} if is_libsvm(path) else persistence.about(path)


def own_facts(about: dict[str, Any]) -> dict[str, Any]:
    """Return the facts given when a model was saved, without those that every file has."""
    from ..persistence.files import ADDED_KEYS

    return {name: fact for name, fact in about.items() if name not in ADDED_KEYS}


def training_of(about: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that ``fit`` wrote about the data; none where others wrote them."""
    data, written = about.get("data"), {"source", "target", "rows", "columns"}
    if not isinstance(data, dict) or not written <= set(data):
        return {}
    return data | {key: about[key] for key in ("held_out",) if key in about}


@dataclass(frozen=True)
class NewRows(FileForm):
    """The rows of a file with the columns of a model, some at a time.

    ``learnt`` are the facts about the training data, of `training_of`.
    """

    model: ModelLike
    learnt: dict[str, Any]
    data: str
    target: str | None
    keep: tuple[str, ...] = ()

    def parts(self, *, labelled: bool) -> Iterator[DataTable]:
        """Yield tables of rows; raise for values that the model cannot handle.

        Labels of the rows of a one-class model are read where the file has them.
        """
        from .. import files
        from ..diagnostics.fitted_model import FittedModel

        learnt = self.learnt
        encoder = getattr(self.model, "named_steps", {}).get("columns")
        names = getattr(self.model, "feature_names_in_", None)
        words = None
        if encoder is not None and names is not None:
            pairs = zip(names, encoder.categories_, strict=True)
            words = [str(name) for name, known in pairs if known is not None]
        text = [] if names is None else [names[k] for k in getattr(encoder, "text_columns_", ())]
        words = words if words is None else [*words, *text]
        targets = targets_of(self.model)
        required: Labelled = labelled
        if not labelled:
            targets = "none"
        elif targets == "none":
            targets, required = "classes", True if self.target else "if present"
        told = False
        for part in files.batches(
            self.data,
            None if names is None else [str(name) for name in names],
            words=words,
            target=self.target or (learnt.get("target") if labelled else None),
            labelled=required,
            targets=targets,
            **self.form(),
            text=text,
            like=learnt.get("reading"),
            n_features=FittedModel(self.model).n_features,
            first_index=learnt.get("first_index") if self.first_index is None else self.first_index,
            keep=None if self.keep == ("all",) else self.keep,
        ):
            _check_options(part, self.target, self.first_index)
            if not told:
                tell(part)
                told = True
            if encoder is None or not encoder.impute:
                require_none(
                    part.source, part.missing(), "missing",
                    "remove those rows, or fit a model with --impute",
                )  # fmt: skip
            require_none(part.source, part.infinite(), "infinite", "remove those rows")
            yield part


def labels_of(classes: Sequence[object], y: Labels) -> Labels:
    """Return labels of a file as classes of a model, for any type in the file."""
    import numpy as np

    meanings = label_meanings(classes, np.unique(y).tolist())
    return np.array([meanings[label] for label in y.tolist()], dtype=object)


def label_meanings(classes: Sequence[object], labels: Iterable[Any]) -> dict[Any, Any]:
    """Return the class that each label means, for any type; labels that mean none as they are."""
    exactly = {str(label): label for label in classes}
    by_value = {_value(label): label for label in classes}
    return {label: exactly.get(str(label), by_value.get(_value(label), label)) for label in labels}


def _value(label: object) -> float | str:
    """Return the number that a label is, also for true and false; else the label as text."""
    word = str(label)
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?", word):
        return float(word)
    return {"true": 1.0, "false": 0.0}.get(word.lower(), word)
