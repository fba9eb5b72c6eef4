"""``tune``: the model and its parameters by cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..estimators.registry import MODELS
from . import console, options, searching
from .data import Reading, check_input, check_out, split
from .training import described, publish, refitted

SHARED = ("kernel", "degree", "coef0", "class_weight", "tol")


def _scorer(ctx: Any, param: Any, name: str | None) -> str | None:
    """Return the name of a scorer; raise where there is none, or where it needs probabilities."""
    if name is None:
        return None
    from sklearn.metrics import get_scorer, get_scorer_names

    if name not in get_scorer_names():
        raise click.BadParameter(
            f"must be a scorer of scikit-learn, such as balanced_accuracy, f1_macro or roc_auc, "
            f"got {name!r}."
        )
    if getattr(get_scorer(name), "_response_method", None) == "predict_proba":
        raise click.BadParameter(
            f"must be a scorer of classes or of decision values, such as roc_auc; {name} needs "
            "probabilities."
        )
    return name


@click.command()
@click.argument("data", metavar="DATA")
@options.target
@click.option("--model", "names", type=click.Choice(searching.MODELS), multiple=True,
              default=("svc",), show_default=True,
              help="Tune this model; may be repeated, the best of all is chosen.")  # fmt: skip
@click.option("--Cs", "Cs", callback=searching.numbers, metavar="N|C,C,…",
              help="Costs C, or how many powers of 2; 7 by default. Of nusvc: how many ν.",
              )  # fmt: skip
@click.option("--gammas", callback=searching.numbers, metavar="N|γ,γ,…",
              help="γ of the kernel, or how many powers of 2; 7 by default.")  # fmt: skip
@options.kernel
@options.kernel_constants
@options.class_weight
@click.option("--cv", type=click.IntRange(2), metavar="K", default=5, show_default=True,
              help="Cross-validate in K folds, stratified by class.")  # fmt: skip
@click.option("--scoring", callback=_scorer, metavar="NAME",
              help="A scorer of scikit-learn, such as balanced_accuracy or roc_auc; by default "
              "accuracy.")  # fmt: skip
@click.option("--one-standard-error", is_flag=True,
              help="Choose the simplest candidate of the best model (the least C, then the least "
              "γ) whose score is within one standard error of the best.")  # fmt: skip
@click.option("--strategy", type=click.Choice(["all", "bounded", "halving"]), default="all",
              show_default=True,
              help="Fit all candidates on all folds; none that can no longer win; or after every "
              "fold the better half.")  # fmt: skip
@options.tol
@click.option("--time-limit", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
              help="End the search after this time with the best so far.")  # fmt: skip
@click.option("--test", type=click.FloatRange(0, 1, True, True), metavar="FRACTION",
              help="Test the chosen model on this fraction of the rows, which the search does not "
              "see.")  # fmt: skip
@click.option("--plot", "picture", type=click.Path(dir_okay=False), metavar="FILE",
              help="Draw the scores over C and γ: PNG, SVG, PDF.")  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False),
              help="File in which the chosen model is saved, fitted to all training rows.",
              )  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit with code 3 if the certificate does not hold.")
@options.reading
@options.preparing
@options.seed
@options.as_json
def tune(
    data: str, target: str | None, names: tuple[str, ...], Cs: Any, gammas: Any, cv: int,
    test: float | None, picture: str | None, out: str | None, strict: bool, seed: int,
    as_json: bool, scoring: str | None, one_standard_error: bool, strategy: str,
    time_limit: float | None, **given: Any,
) -> None:  # fmt: skip
    """Choose a classifier and its parameters by cross-validation on DATA, and fit it.

    A coarse grid of C and γ is followed by a fine one around its best candidate; values that are
    listed by --Cs or --gammas are taken as they are. Every fold is prepared as fit prepares DATA,
    by its own training rows. The chosen model is fitted to all of them, certified and saved as fit
    does it. The score of the best of many candidates is optimistic: --test measures it on rows
    that had no part in the choice. Ctrl-C ends the search, and prints the best so far.

    \b
    Examples:
      maxmargin tune fruit.csv --target fruit --out fruit.mm
      maxmargin tune fruit.csv --target fruit --test 0.25 --plot search.png
      maxmargin tune fruit.csv --target fruit --model svc --model linear-svc --cv 10
      maxmargin tune heart_scale --Cs 0.1,1,10,100 --gammas scale --scoring roc_auc
      maxmargin tune a9a.bz2 --strategy halving --one-standard-error --time-limit 600
    """
    check_input(data)
    check_out(picture, data, endings=options.PICTURES)
    check_out(out, data)
    shared = {key: given.pop(key) for key in SHARED}
    models = _models(tuple(dict.fromkeys(names)), shared, Cs, gammas, seed)
    plan = searching.Plan(
        cv, seed, scoring, strategy, time_limit, one_standard_error, Cs, gammas
    )  # fmt: skip
    reading = Reading(target, **given)
    table, held = reading.table(data), None
    record: dict[str, Any] = {"data": described(table, "classes")}
    if test is not None:
        table, held = split(table, test, seed)
    search = plan.prepare(reading, table, models)
    try:
        found = plan.run(search)
    except KeyboardInterrupt:
        _print_so_far(plan, search, data)
        raise click.exceptions.Exit(130) from None
    record["search"] = plan.record(search, found)
    if picture is not None:
        searching.draw_search(record["search"], picture)
        record["picture"] = picture
    if not as_json:
        searching.print_search(record["search"], Path(data).name)
    model = found.family.model.set_params(**found.parameters)
    trained = refitted(reading, table, held, model, record)
    publish(record, trained, "classes", out=out, strict=strict, as_json=as_json)
    if picture is not None and not as_json:
        click.echo(f"picture: {picture}")


def _models(
    names: tuple[str, ...], shared: dict[str, Any], Cs: Any, gammas: Any, seed: int
) -> list[Any]:
    """Return the models, each with those of the options that it has; raise for others."""
    made = []
    left = {key for key, value in shared.items() if value is not None}
    for name in names:
        known = set(MODELS[name]().get_params())
        own = {key: value for key, value in shared.items() if len(names) == 1 or key in known}
        made.append(options.make_model(name, own, (), seed))
        left -= known
    if left:
        raise click.UsageError(f"{' and '.join(names)} have no parameter {min(left)!r}.")
    if isinstance(Cs, list) and names == ("nusvc",):
        raise click.UsageError("--Cs of nusvc, which has no C, must be a number of values of ν.")
    if gammas is not None and not any(searching.has_gamma(model) for model in made):
        raise click.UsageError("--gammas needs a model whose kernel has γ.")
    return made


def _print_so_far(plan: searching.Plan, search: Any, data: str) -> None:
    """Print the best candidates of a search that was interrupted."""
    found = search.chosen(one_standard_error=plan.one_standard_error)
    console.note("Aborted!")
    if found is None:
        console.note("no candidate has a score yet.")
        return
    searching.print_search(plan.record(search, found), Path(data).name)
    chosen = " ".join(f"--{name} {value}" for name, value in found.parameters.items())
    console.note(f"to fit the best so far: maxmargin fit … --model {found.family.name} {chosen}")


COMMANDS = [tune]
