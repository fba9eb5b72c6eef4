"""``fit``: a model trained on a data file."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import cluster, console, guidance, options, searching
from .class_weights import use_labels
from .config import save_config as write_config
from .data import (
    Reading,
    Trained,
    check_input,
    check_out,
    classes_of,
    folds_of,
    split,
    targets_of,
    train,
)
from .held_out import held_out_record
from .measures import (
    baseline_in_words,
    fit_metrics,
    metrics_out,
    print_by_class,
    undefined_in_words,
    write_metrics,
)

if TYPE_CHECKING:
    from ..diagnostics.fitted_model import ModelLike
    from ..files import DataTable
    from ..files.targets import Targets

# Of more classes the summary names the first.
NAMED_CLASSES = 12


@click.command()
@click.argument("data", metavar="DATA", nargs=-1, required=True)
@options.target
@click.option(
    "--model", "name", type=click.Choice(options.MODEL_NAMES), default="svc", show_default=True
)
@options.modelling
@click.option("--test", type=click.FloatRange(0, 1, True, True), metavar="FRACTION",
              help="Test on this fraction of the rows, not used for training.")  # fmt: skip
@click.option("--cv", type=click.IntRange(2), metavar="K", help="Cross-validate in K folds.")
@click.option("--out", type=click.Path(dir_okay=False), help="File in which the model is saved.")
@click.option("--keep-dual", is_flag=True,
              help="Save α of all training rows of a linear model, also of many.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit with code 3 if the certificate does not hold.")
@click.option("--save-config", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write the options of this run to a TOML file, for --config.")  # fmt: skip
@options.reading
@options.preparing
@options.scheduler
@options.seed
@metrics_out
@options.as_json
def fit(
    data: tuple[str, ...], target: str | None, name: str, settings: tuple[str, ...],
    test: float | None, cv: int | None, out: str | None, keep_dual: bool, strict: bool,
    save_config: str | None, scheduler: str | None, seed: int, metrics_out: str | None,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Train a classifier, a regression or a one-class model on DATA, and certify the result.

    DATA is CSV, TSV, Parquet, svmlight/LIBSVM text or npz, also .gz or .bz2; - is standard input.
    Numbers are centred and scaled (sparse ones scaled), categories become 0/1 columns; the model
    includes this preparation. A model with a kernel contains rows of DATA. The target of svr,
    nu-svr and linear-svr is a column of numbers; one-class needs none, and leaves it out.

    --C auto chooses C of svc, linear-svc, svr and linear-svr by cross-validation (in 5 folds, or K
    of --cv), --gamma auto with it γ, and --epsilon auto ε, as tune does, which has more options.

    With --scheduler DATA may be many files of one format, CSV, Parquet or svmlight text, by their
    names, a pattern or a folder. Workers of a Dask cluster read and keep them, in partitions.

    \b
    Examples:
      maxmargin fit fruit.csv --target fruit --out fruit.mm
      maxmargin fit fruit.csv --target fruit --model linear-svc --C 10 --cv 5 --test 0.2
      maxmargin fit fruit.csv --target fruit --cv 5 --metrics-out metrics.json
      maxmargin fit a9a.bz2 --kernel rbf --gamma 0.05 --test 0.2 --out a9a.mm
      maxmargin fit six.csv --target y --kernel linear --C inf
      maxmargin fit fruit.csv --target fruit --C auto --gamma auto --test 0.25 --out fruit.mm
      maxmargin fit houses.csv --target price --model svr --C 100 --epsilon 0.5 --cv 5
      maxmargin fit houses.csv --target price --model svr --C auto --gamma auto --epsilon auto
      maxmargin fit houses.csv --target price --model linear-svr --loss squared_epsilon_insensitive
      maxmargin fit big.csv --target y --model linear-svc --out big.mm --keep-dual
      maxmargin fit spam.csv --target kind --class-weight "spam=1,ham=5"
      maxmargin fit fruit.csv --target fruit --C 10 --save-config fruit.toml
      maxmargin fit --config fruit.toml --seed 1 --quiet
      maxmargin fit letters.csv --target letter --test 0.25 --verbose
      maxmargin fit sensors.csv --model one-class --nu 0.01 --test 0.25 --out sensors.mm
      maxmargin fit a9a.bz2 --device cuda --out a9a.mm
      maxmargin fit big.parquet --target y --approximate nystroem --components 500 --out big.mm
      maxmargin fit 'data/*.parquet' --target y --model linear-svc --scheduler local --out y.mm
      maxmargin fit data/ --target y --model linear-svc --scheduler tcp://10.0.0.1:8786
    """
    files = cluster.data_files(data, scheduler)
    modelling = {k: given.pop(k) for k in options.MODELLING}
    plan = searching.plan_of_fit(name, modelling, cv, seed, scheduler)
    model = options.make_model(name, modelling, settings, seed)
    check_out(out, *files)
    check_out(metrics_out, *files, *([out] if out else []))
    check_out(save_config, *files, *(each for each in (out, metrics_out) if each))
    reading, targets = Reading(target, **given), targets_of(model)
    write_config(save_config)
    if scheduler is not None:
        cluster.refuse_options(model, name)
    # Some of what is saved may be on the workers.
    with nullcontext() if scheduler is None else cluster.session(scheduler):
        if scheduler is None:
            record, trained = _fitted(reading, files[0], model, test, cv, seed, plan)
        else:
            record, trained = cluster.fitted(reading, files, " ".join(data), model)
        publish(
            record, trained, targets, "fit", out=out, metrics_out=metrics_out, strict=strict,
            as_json=as_json, keep_dual=keep_dual,
        )  # fmt: skip


def publish(
    record: dict[str, Any], trained: Trained, targets: Targets, command: str, *, out: str | None,
    metrics_out: str | None, strict: bool, as_json: bool, keep_dual: bool = False,
) -> None:  # fmt: skip
    """Save a model, and print what came out; exit with code 3 where it is strict and not proved."""
    record |= _outcome(trained)
    if out is not None:
        from .. import persistence

        persistence.save(trained.model, out, about=_about(record), keep_dual=keep_dual)
        record["saved"] = out
    record.pop("held_out", None)  # hashes, for the file only
    write_metrics(metrics_out, command, fit_metrics(record))
    if as_json:
        console.print_json(record)
    elif not console.is_quiet():
        _print_fit(record, targets)
    for message in (*trained.warnings, *([] if as_json else record["advice"])):
        console.note(f"warning: {message}")
    if strict and not record["holds"]:
        raise click.exceptions.Exit(3)


def _fitted(
    reading: Reading, data: str, model: Any, test: float | None, cv: int | None, seed: int,
    plan: searching.Plan | None,
) -> tuple[dict[str, Any], Trained]:  # fmt: skip
    """Return a pipeline fitted to a file, and the facts about its data and its tests."""
    check_input(data)
    targets = targets_of(model)
    table = reading.table(data, targets)
    record: dict[str, Any] = {"data": described(table, targets)}
    use_labels(model, classes_in(table, targets), record["data"]["source"])
    held = None
    if test is not None:
        table, held = split(table, test, seed, targets)
        record["split"] = {"test": test, "seed": seed}
    if plan is None:
        guidance.announce_fit(reading.encoder(), table, model, 1 + (cv or 0))
    if cv is not None and plan is None:
        record["cv"] = _cross_validated(reading, table, model, cv, seed)
    if plan is not None:
        search = plan.prepare(reading, table, [model])
        found = plan.run(search)
        model.set_params(**found.parameters)
        record["search"] = plan.record(search, found)
    return record, refitted(reading, table, held, model, record)


def refitted(
    reading: Reading, table: DataTable, held: DataTable | None, model: Any, record: dict[str, Any]
) -> Trained:
    """Return a pipeline fitted to training rows; record the facts about it and its test."""
    from ..diagnostics.metrics import baseline_of
    from ..files import fingerprint

    targets = targets_of(model)
    if held is not None:
        record["held_out"] = held_out_record(table, held, targets, single=reading.float32)
    record["fingerprint"] = fingerprint(table.X, table.y if targets != "none" else None)
    with console.progress(f"fitting {type(model).__name__}") as bar:
        trained = train(reading, table, model, bar)
    record["data"] |= _of_targets(table, targets)  # of the training rows
    record["training_rows"] = int(table.X.shape[0])
    record["advice"] = _advice(trained.model, table, record.get("search"))
    if held is not None:
        record["test"] = _tested(trained.model, held, baseline_of(table.y, targets))
    return trained


def _advice(model: ModelLike, table: DataTable, search: dict[str, Any] | None) -> list[str]:
    """Return what is wrong with C and ε beside the targets of a regression, if given by hand."""
    from ..diagnostics.advice import target_advice
    from ..diagnostics.fitted_model import FittedModel

    fitted = FittedModel(model)
    chosen = search["chosen"]["parameters"] if search else ()
    return target_advice(fitted, table.labels, chosen) if fitted.has_targets else []


def classes_in(table: DataTable, targets: Targets) -> list[Any]:
    """Return the labels of a file, none of a regression or a one-class machine."""
    import numpy as np

    return np.unique(table.labels).tolist() if targets == "classes" else []


def described(table: DataTable, targets: Targets) -> dict[str, Any]:
    """Return the facts about a data file that are printed and saved."""
    return {
        "source": Path(table.source).name,
        "rows": int(table.X.shape[0]),
        "columns": int(table.X.shape[1]),
        "target": table.target,
        "dropped": table.dropped,
        "first_index": table.first_index,
        **({"reading": table.reading} if table.reading else {}),
    } | _of_targets(table, targets)


def _of_targets(table: DataTable, targets: Targets) -> dict[str, Any]:
    """Return the rows of every class, or where the numbers are."""
    import numpy as np

    if targets == "none":
        return {}
    y = table.labels
    if targets == "numbers":
        return {"targets": {"mean": float(y.mean()), "std": float(y.std()),
                            "min": float(y.min()), "max": float(y.max())}}  # fmt: skip
    classes, counts = np.unique(y, return_counts=True)
    return {"classes": {str(c): int(n) for c, n in zip(classes, counts, strict=True)}}


def _cross_validated(
    reading: Reading, table: DataTable, model: ModelLike, folds: int, seed: int
) -> dict[str, Any]:
    """Return the measures on each fold of a pipeline trained on the other folds."""
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    from ..diagnostics.answers import answers
    from ..diagnostics.class_metrics import of_all_rows
    from ..diagnostics.metrics import baseline_of, in_words, of_folds, tally_of, tally_record

    targets, y, found = targets_of(model), table.y, list[dict[str, Any]]()
    tallies: list[Any] = []
    splits = folds_of(table, folds, seed, targets)
    with (
        console.progress("cross-validating", folds) as bar,
        console.collected_warnings(),
    ):
        for learn, hold in splits:
            known, truth = (None, None) if y is None else (y[learn], y[hold])
            pipeline = make_pipeline(reading.encoder(), clone(model)).fit(table.X[learn], known)
            given = answers(pipeline, table.X[hold])
            baseline, classes = baseline_of(known, targets), classes_of(pipeline)
            tallies.append(tally_of(targets, truth, given, classes, baseline))
            found.append(tally_record(tallies[-1], classes, baseline))
            bar.advance(in_words(found[-1]))
    record = of_folds(found)
    if targets != "none":
        record["baseline"] = of_folds([each["baseline"] for each in found])
    if targets == "classes":
        record["baseline"]["prediction"] = str(baseline_of(y, targets))
        record |= of_all_rows(tallies)
    return record


def _outcome(trained: Trained) -> dict[str, Any]:
    from ..diagnostics.summary import summarize

    found = summarize(trained.model)
    return {
        "model": found.name,
        "parameters": found.parameters,
        "kernel": found.kernel,
        "approximation": found.approximation,
        "features": len(found.features),
        "words": words_of(trained.model),
        "text": texts_of(trained.model),
        **_measured(trained.measures),
        "margin": found.margin,
        "margin_in_words": found.margin_in_words,
        "support_vectors": found.n_support,
        "epsilon": found.epsilon,
        "status": found.status,
        "iterations": found.n_iter,
        "ended": found.ended,
        "certificate": found.certificate,
        "proof": found.proof,
        "holds": found.holds,
        "seconds": trained.seconds,
        "warnings": trained.warnings,
    }


def _measured(measures: dict[str, Any]) -> dict[str, Any]:
    """Return the measures on the training rows; the error of a classifier also by itself."""
    alone = {"training_error": measures["error"]} if "error" in measures else {}
    return {"training": measures} | alone


def words_of(pipeline: Any) -> dict[str, int]:
    """Return the columns of categories, and the number of categories of each."""
    encoder = pipeline[0]
    names = getattr(encoder, "feature_names_in_", ())
    pairs = zip(names, encoder.categories_, strict=False)
    return {str(name): len(known) for name, known in pairs if known is not None}


def texts_of(pipeline: Any) -> dict[str, int]:
    """Return the columns of free text, and the number of words of each."""
    encoder = pipeline[0]
    pairs = zip(getattr(encoder, "text_columns_", ()), getattr(encoder, "vocabulary_", ()),
                strict=True)  # fmt: skip
    return {str(encoder.feature_names_in_[k]): len(words) for k, words in pairs}


def _tested(pipeline: Any, held: DataTable, baseline: Any) -> dict[str, Any]:
    from ..diagnostics.answers import answers
    from ..diagnostics.metrics import measure

    with console.collected_warnings():  # the names of the columns are not passed again
        given = answers(pipeline, held.X)
    return measure(targets_of(pipeline), held.y, given, classes_of(pipeline), baseline)


def _about(record: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about the training that a model file holds."""
    import datetime

    from ..diagnostics.metrics import MOST_LABELS

    kept = ("data", "training_rows", "training", "training_error", "test", "cv", "search",
            "split", "fingerprint", "seconds", "fit_report", "warnings", "held_out")  # fmt: skip
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    facts = {k: console.plain(record[k]) for k in kept if k in record}
    for part in ("test", "cv"):
        if len(facts.get(part, {}).get("confusion", ())) > MOST_LABELS:  # its square, in a file
            del facts[part]["confusion"]
    return {"date": today} | facts


def _classes_in_words(counts: dict[str, int]) -> str:
    """Return the classes with their rows; of many the first, and how many others there are."""
    named = [f"{label} ({n})" for label, n in list(counts.items())[:NAMED_CLASSES]]
    more = len(counts) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _print_fit(record: dict[str, Any], targets: Targets) -> None:
    data, test = record["data"], record.get("test")
    of = f" in {data['files']} files" if data.get("files", 1) > 1 else ""
    size = f"{data['rows']} rows{of}, {data['columns']} column"
    size += f"{'s' * (data['columns'] != 1)} → {record['features']} features"
    size += f"; {record['training_rows']} training rows" if test else ""
    chosen = ", ".join(f"{k}={v}" for k, v in record["parameters"].items() if k != "random_state")
    console.print_facts(
        f"{record['model']} on {data['source']}",
        {
            "data": size,
            "categories": ", ".join(f"{name} ({n})" for name, n in record["words"].items()),
            "text": ", ".join(f"{name} ({n} words)" for name, n in record["text"].items()),
            "classes": _classes_in_words(data.get("classes", {})),
            "targets": _range_in_words(data.get("targets")),
            "parameters": chosen or "defaults",
            "kernel": record["kernel"],
            "approximation": record["approximation"],
            **_measures_in_words(record, targets),
            "margin": record["margin_in_words"],
            "tube": tube_in_words(record["epsilon"]),
            "support vectors": record["support_vectors"],
            "ended": record["ended"],
            "certificate": record["certificate"],
            "time": console.seconds(record["seconds"]),
            "cluster": record.get("fit_report", {}).get("text"),
            "saved": record.get("saved"),
        },
    )
    by_class = test or record.get("cv")
    if by_class and targets == "classes":
        print_by_class(by_class, title="test rows" if test else "rows of all folds")


def _range_in_words(targets: dict[str, float] | None) -> str | None:
    from ..diagnostics.metrics import rounded

    if targets is None:
        return None
    mean, std, low, high = (rounded(targets[key]) for key in ("mean", "std", "min", "max"))
    return f"from {low} to {high}, mean {mean}, standard deviation {std}"


def tube_in_words(epsilon: float | None) -> str | None:
    """Return what ε of a regression means."""
    if epsilon == 0.0:
        return "none, every error costs (ε = 0)"
    return None if epsilon is None else f"errors up to {epsilon:.4g} cost nothing (ε)"


def _measures_in_words(record: dict[str, Any], targets: Targets) -> dict[str, Any]:
    """Return the measures on training rows, test rows and folds, and those of the baseline."""
    from ..diagnostics.metrics import CALLED, MEASURES, in_words
    from ..persistence.training_facts import search_in_words

    called, test, cv = CALLED[next(iter(MEASURES[targets]))], record.get("test"), record.get("cv")
    facts = {called.format("training"): in_words(record["training"])}
    if targets == "none":
        nu = record["parameters"].get("nu", 0.5)
        facts[called.format("training")] += f" (ν = {nu:g})"
    if test:
        facts[called.format("test")] = f"{in_words(test)} ({test['rows']} rows)"
    if "search" in record:
        facts["cross-validation"] = search_in_words(record["search"])
    if cv:
        spread = in_words(cv, cv["standard_errors"])
        what = " outliers" if targets == "none" else ""
        facts["cross-validation"] = f"{spread}{what} (standard errors of {cv['folds']} folds)"
    baseline = (test or cv or record["training"]).get("baseline")
    return facts | baseline_in_words(baseline) | undefined_in_words(test or {})


COMMANDS = [fit]
