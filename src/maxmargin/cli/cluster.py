"""``--scheduler``: many files, read, fitted and predicted by the workers of a Dask cluster."""

from __future__ import annotations

import glob
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, options
from .answers import Predictions, tally_rows
from .class_weights import use_labels
from .data import NewRows, Reading, Trained, check_out, joined, note_many_classes, targets_of
from .file_options import ALONE, look_at_first

if TYPE_CHECKING:
    from ..arrays import Labels, Matrix
    from ..engines.dask.files import FileCollection
    from ..estimators.base import CertifiedEstimator
    from ..files.targets import Targets


NO_DEVICE = "is not for --scheduler: workers choose where they compute."


def data_files(data: Sequence[str], scheduler: str | None) -> list[str]:
    """Return the files that are meant by names, patterns and folders; one without a cluster."""
    if scheduler is None:
        if len(data) > 1:
            raise click.UsageError(
                f"DATA must be one file, got {len(data)}: several need --scheduler, such as "
                "--scheduler local."
            )
        return list(data)
    files: list[str] = []
    for name in data:
        if name == "-":
            raise click.UsageError("--scheduler needs files: it cannot read standard input.")
        files += _expanded(name)
    # Workers have other current folders.
    return list(dict.fromkeys(str(Path(file).absolute()) for file in files))


def _expanded(name: str) -> list[str]:
    path = Path(name)
    if path.is_file():
        return [name]
    if path.is_dir():
        # Names of other programs' own files begin like this.
        found = [p for p in path.iterdir() if p.is_file() and not p.name.startswith((".", "_"))]
        if not found:
            raise click.ClickException(f"{name}: the folder holds no data files.")
        return sorted(map(str, found))
    matches = sorted(match for match in glob.glob(name, recursive=True) if Path(match).is_file())
    if not matches:
        what = "no file matches the pattern" if glob.has_magic(name) else "no such file"
        raise click.ClickException(f"{name}: {what}.")
    return matches


def refuse_options(model: CertifiedEstimator[Any], name: str) -> None:
    """Raise for options and models that have no meaning on a cluster."""
    options.forbid(("test", "cv"), "is not for --scheduler: use evaluate with other files.")
    options.forbid(("device",), NO_DEVICE)
    options.forbid(ALONE, "is not for --scheduler: convert the files to Parquet or plain CSV.")
    from ..estimators.registry import IN_PARTITIONS, MODELS

    if type(model).__name__ not in IN_PARTITIONS:
        known = ", ".join(key for key, kind in MODELS.items() if kind.estimator in IN_PARTITIONS)
        raise click.UsageError(
            f"--model {name} cannot be fitted on a cluster: use one of {known}, or no --scheduler."
        )


@contextmanager
def session(scheduler: str) -> Iterator[None]:
    """Connect to a cluster; its errors are those of the command."""
    from ..engines.registry import connected, is_cluster_error

    try:
        with console.progress(f"connecting to {scheduler}"):
            connection = connected(scheduler)
            connection.__enter__()
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None
    try:
        yield
    except Exception as error:
        if is_cluster_error(error):
            raise click.ClickException(str(error)) from error
        raise
    finally:
        connection.__exit__(None, None, None)


# Fitting -----------------------------------------------------------------------------------------


def fitted(
    reading: Reading, files: list[str], source: str, model: CertifiedEstimator[Any]
) -> tuple[dict[str, Any], Trained]:
    """Return a pipeline fitted to files, and the facts about its data."""
    targets = targets_of(model)
    table = _read(reading, files, source, targets)
    use_labels(model, table.classes if targets == "classes" else (), table.source)
    with console.progress(f"preparing {table.n_rows} rows"):
        encoder = reading.encoder()
        X = encoder.fit(table.X).transform(table.X)
    with console.progress(f"fitting {type(model).__name__}") as bar:
        trained = _fit(X, table, model, targets, bar)
    record: dict[str, Any] = {
        "data": _described(table, targets),
        "training_rows": table.n_rows,
        "fit_report": _reported(model),
        "advice": _advice(model, table, targets),
    }
    return record, _joined(encoder, trained, table)


def _read(reading: Reading, files: list[str], source: str, targets: Targets) -> FileCollection:
    from ..engines.registry import read_files

    reading.check_words()
    wanted = (*([reading.target] if reading.target else []), *reading.drop, *reading.words)
    header, index = look_at_first(files[0], reading, wanted, keep_index=reading.keep_index)
    with console.progress(f"reading {len(files)} files"):
        table = read_files(
            files, drop=(*reading.drop, *index), words=reading.words, source=source,
            kind=reading.format,
            separator=reading.separator, header=header, targets=targets,
            dtype="float32" if reading.float32 else "float64", first_index=reading.first_index,
            target=reading.target,
        )  # fmt: skip
    reading.check_options(table, targets)
    reading.check_values(table.source, table.missing, table.infinite)
    if targets == "classes":
        import numpy as np

        note_many_classes(np.array(list(table.classes)))
    return table


def _fit(
    X: Any, table: FileCollection, model: CertifiedEstimator[Any], targets: Targets,
    bar: console.Progress,
) -> Trained:  # fmt: skip
    callback = bar.callback(has_classes=targets == "classes")
    if callback is not None:
        model.set_params(callback=callback)
    with console.collected_warnings() as warned:
        started = time.perf_counter()
        model.fit(X, table.y)
        seconds = time.perf_counter() - started
    model.set_params(callback=None)
    return Trained(model, seconds, _measured(X, table, model, targets), warned)


def _joined(encoder: Any, trained: Trained, table: FileCollection) -> Trained:
    return replace(trained, model=joined(encoder, trained.model, table.names))  # type: ignore[arg-type]


def _measured(
    X: Any, table: FileCollection, model: CertifiedEstimator[Any], targets: Targets
) -> dict[str, Any]:
    """Return the measures on all rows, counted where the rows are."""
    from ..diagnostics.metrics import alone, tally_record
    from ..engines.registry import reduced_partitions
    from ..estimators.by_blocks import for_prediction

    baseline: Any = table.mean if targets == "numbers" else None
    work = partial(_tallied, targets, baseline)
    tally = reduced_partitions(for_prediction(model, X), work, _merged, X, table.y)
    return alone(tally_record(tally, table.classes, baseline))


def _tallied(
    targets: Targets, baseline: float | None, model: Any, X: Matrix, y: Labels | None, weights: None
) -> Any:
    from ..diagnostics.answers import Answers
    from ..diagnostics.metrics import tally_of

    if not X.shape[0]:
        return None
    return tally_of(targets, y, Answers(model.predict(X)), baseline=baseline)


def _merged(tallies: list[Any]) -> Any:
    from ..diagnostics.metrics import merged_tallies

    filled = [each for each in tallies if each is not None]
    return merged_tallies(filled) if filled else None


def _described(table: FileCollection, targets: Targets) -> dict[str, Any]:
    """Return the facts about the files that are printed and saved."""
    facts: dict[str, Any] = {
        "source": table.source,
        "files": table.n_files,
        "rows": table.n_rows,
        "columns": table.n_columns,
        "target": table.target,
        "dropped": table.dropped,
        "first_index": table.first_index,
    }
    if targets == "numbers":
        facts["targets"] = {"mean": table.mean, "std": table.std,
                            "min": table.least, "max": table.largest}  # fmt: skip
    elif targets == "classes":
        facts["classes"] = {str(label): n for label, n in table.classes.items()}
    return facts


def _advice(model: CertifiedEstimator[Any], table: FileCollection, targets: Targets) -> list[str]:
    """Return what is wrong with C and ε beside the targets of a regression."""
    from ..diagnostics.advice import spread_advice
    from ..diagnostics.fitted_model import FittedModel

    if targets != "numbers":
        return []
    return spread_advice(FittedModel(model), table.std, table.largest - table.least)


def _reported(model: CertifiedEstimator[Any]) -> dict[str, Any]:
    """Return what the fit took of the cluster."""
    report: Any = model.fit_report_  # type: ignore[attr-defined]
    return {
        "scheduler": report.scheduler,
        "workers": report.n_workers,
        "threads": report.n_threads,
        "partitions": report.n_partitions,
        "read_anew": report.streamed,
        "rounds": report.rounds,
        "passes": report.passes,
        "bytes_moved": report.bytes_moved,
        "most_bytes_per_round": report.most_bytes,
        "computing_seconds": report.computing_seconds,
        "waiting_seconds": report.waiting_seconds,
        "text": str(report),
    }


# New rows ----------------------------------------------------------------------------------------


def output_files(out: str, files: list[str], model_file: str, ending: str) -> list[str]:
    """Return the output of each file, of the same base name, in a folder that is made here."""
    if out == "-":
        raise click.UsageError("--scheduler needs a folder for its files: pass --out FOLDER.")
    folder = Path(out).absolute()
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{out}: must be a folder with --scheduler, got a file.")
    made: dict[str, str] = {}
    for file in files:
        name = str(folder / f"{_base_name(file)}.{ending}")
        if name in made:
            raise click.UsageError(
                f"{made[name]} and {file} would have the same output, {name}: predict them apart."
            )
        made[name] = file
    folder.mkdir(parents=True, exist_ok=True)
    for name in made:
        check_out(name, model_file, *files)
    return list(made)


def _base_name(file: str) -> str:
    path = Path(file)
    if path.suffix.lower() in (".gz", ".bz2"):
        path = path.with_suffix("")
    return path.stem


def predict_files(
    rows: NewRows, files: list[str], outs: list[str], predictions: Predictions
) -> tuple[int, list[str]]:
    """Predict every file into one of its own, by the workers; return all rows, and warnings."""
    n, told = 0, list[str]()
    with console.progress(f"predicting {len(files)} files", len(files)) as bar:
        for n_rows, warned in _each(predict_file, files, outs, common=(rows, predictions)):
            n, told = n + n_rows, told + [each for each in warned if each not in told]
            bar.advance(f"{n} rows")
    unseen = [out for out in outs if not Path(out).exists()]
    if unseen:
        raise click.ClickException(
            f"{unseen[0]}: written by a worker, but not found here: the folder must be one that "
            "all machines share."
        )
    return n, told


def predict_file(file: str, out: str, common: tuple[NewRows, Predictions]) -> tuple[int, list[str]]:
    """Predict the rows of a file, on a worker."""
    rows, predictions = common
    told: list[str] = []
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    n = sum(predictions.write(out, replace(rows, data=file), told))
    return n, told


def tally_files(rows: NewRows, files: list[str]) -> tuple[Any, list[str]]:
    """Return the counts of predictions for the rows of files, by the workers, and warnings."""
    merged: Any = None
    told: list[str] = []
    with console.progress(f"evaluating {len(files)} files", len(files)) as bar:
        for tally, warned in _each(tally_file, files, common=rows):
            merged = _merged([merged, tally])
            told += [each for each in warned if each not in told]
            bar.advance()
    return merged, told


def tally_file(file: str, rows: NewRows) -> tuple[Any, list[str]]:
    """Return the counts of predictions for the rows of a file, on a worker."""
    told: list[str] = []
    return tally_rows(replace(rows, data=file), told), told


def _each(work: Any, *columns: Sequence[Any], common: Any) -> Iterator[Any]:
    from ..engines.registry import answers_of_each

    return answers_of_each(work, *columns, common=common)
