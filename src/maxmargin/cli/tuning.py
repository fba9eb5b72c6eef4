"""``tune``: the model and its parameters by cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..estimators.registry import MODELS
from . import console, options, search_grids, searching
from .class_weights import use_labels
from .data import Reading, check_input, check_out, split
from .measures import metrics_out
from .training import classes_in, described, publish, refitted

if TYPE_CHECKING:
    from ..files.targets import Targets

SHARED = ("kernel", "degree", "coef0", "epsilon", "class_weight", "tol")
# What the scorers of a kind of target are called, with examples.
SCORERS = {
    "classes": ("a scorer of classes", "balanced_accuracy, f1_macro or roc_auc"),
    "numbers": ("a scorer of regressions", "r2 or neg_mean_absolute_error"),
}


def _scorer(ctx: Any, param: Any, name: str | None) -> str | None:
    """Return the name of a scorer; raise where there is none, or where it needs probabilities."""
    if name is None:
        return None
    from sklearn.metrics import get_scorer, get_scorer_names

    if name not in get_scorer_names():
        raise click.BadParameter(
            "must be a scorer of scikit-learn, such as balanced_accuracy, f1_macro, roc_auc, or "
            f"neg_mean_absolute_error of a regression, got {name!r}."
        )
    if getattr(get_scorer(name), "_response_method", None) == "predict_proba":
        raise click.BadParameter(
            f"must be a scorer of classes or of decision values, such as roc_auc; {name} needs "
            "probabilities."
        )
    return name


def _check_score(scoring: str | None, strategy: str, targets: Targets) -> None:
    """Raise for a scorer of other targets, and for a strategy that has no effect on it."""
    from sklearn.metrics import get_scorer

    from ..model_selection.strategies import is_bounded

    scorer = get_scorer(scoring or searching.SCORES[targets])
    is_of_numbers = scorer._score_func.__module__.endswith("_regression")
    if is_of_numbers != (targets == "numbers"):
        what, such = SCORERS[targets]
        raise click.UsageError(f"--scoring must be {what}, such as {such}, got {scoring!r}.")
    if strategy == "bounded" and not is_bounded(scorer, is_classifier=targets == "classes"):
        from ..diagnostics.metrics import scorer_in_words

        name = scorer_in_words(scoring or searching.SCORES[targets])
        raise click.UsageError(
            f"--strategy bounded needs scores between 0 and 1, such as the accuracy, which {name} "
            "is not: use --strategy halving."
        )


@click.command()
@click.argument("data", metavar="DATA")
@options.target
@click.option("--model", "names", type=click.Choice(search_grids.MODELS), multiple=True,
              default=("svc",), show_default=True,
              help="Tune this model; may be repeated for several of one kind, classifiers or "
              "regressions: the best of all is chosen.")  # fmt: skip
@click.option("--Cs", "Cs", callback=search_grids.numbers, metavar="N|C,C,…",
              help="Costs C, or how many powers of 2; 7 by default. Those of a regression are in "
              "units of the standard deviation of the target.")  # fmt: skip
@click.option("--gammas", callback=search_grids.numbers, metavar="N|γ,γ,…",
              help="γ of the kernel, or how many powers of 2; 7 by default.")  # fmt: skip
@click.option("--epsilons", callback=search_grids.numbers, metavar="N|ε,ε,…",
              help="ε of svr and linear-svr, or how many powers of 2 between 1/64 and 1/2 of the "
              "standard deviation of the target; 3 by default.")  # fmt: skip
@click.option("--epsilon", type=click.FloatRange(0), metavar="ε",
              help="The only ε of svr and linear-svr, in units of the target.")  # fmt: skip
@click.option("--nus", callback=search_grids.numbers, metavar="N|ν,ν,…",
              help="ν of nusvc and nu-svr, or how many; by default 7 and 3.")  # fmt: skip
@options.kernel
@options.kernel_constants
@options.class_weight
@click.option("--cv", type=click.IntRange(2), metavar="K", default=5, show_default=True,
              help="Cross-validate in K folds, those of classifiers stratified by class.",
              )  # fmt: skip
@click.option("--scoring", callback=_scorer, metavar="NAME",
              help="A scorer of scikit-learn, such as balanced_accuracy, roc_auc, or "
              "neg_mean_absolute_error of a regression; by default accuracy, or R².")  # fmt: skip
@click.option("--one-standard-error", is_flag=True,
              help="Choose the simplest candidate of the best model (the least C, then the least "
              "γ, then the largest ε) whose score is within one standard error of the best.",
              )  # fmt: skip
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
              help="Draw the scores over C and γ, at the chosen ε or ν: PNG, SVG, PDF.",
              )  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False),
              help="File in which the chosen model is saved, fitted to all training rows.",
              )  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit with code 3 if the certificate does not hold.")
@options.reading
@options.preparing
@options.seed
@metrics_out
@options.as_json
def tune(
    data: str, target: str | None, names: tuple[str, ...], Cs: Any, gammas: Any, epsilons: Any,
    nus: Any, cv: int, test: float | None, picture: str | None, out: str | None, strict: bool,
    seed: int, as_json: bool, scoring: str | None, one_standard_error: bool, strategy: str,
    time_limit: float | None, metrics_out: str | None, **given: Any,
) -> None:  # fmt: skip
    """Choose a classifier or a regression and its parameters by cross-validation on DATA.

    A coarse grid of C and γ, and of ε or ν of a regression, is followed by a fine one around its
    best candidate; values that are listed by --Cs, --gammas, --epsilons or --nus are taken as they
    are. Every fold is prepared as fit prepares DATA, by its own training rows. The chosen model is
    fitted to all of them, certified and saved as fit does it. The score of the best of many
    candidates is optimistic: --test measures it on rows that had no part in the choice. Ctrl-C ends
    the search, and prints the best so far.

    \b
    Examples:
      maxmargin tune fruit.csv --target fruit --out fruit.mm
      maxmargin tune fruit.csv --target fruit --test 0.25 --plot search.png
      maxmargin tune fruit.csv --target fruit --test 0.25 --metrics-out metrics.json
      maxmargin tune spam.csv --target kind --class-weight balanced
      maxmargin tune --config fruit.toml --quiet
      maxmargin tune fruit.csv --target fruit --model svc --model linear-svc --cv 10
      maxmargin tune heart_scale --Cs 0.1,1,10,100 --gammas scale --scoring roc_auc
      maxmargin tune a9a.bz2 --strategy halving --one-standard-error --time-limit 600
      maxmargin tune houses.csv --target price --model svr --plot search.png --out price.mm
      maxmargin tune houses.csv --target price --model svr --model linear-svr --epsilons 0,1,5
      maxmargin tune houses.csv --target price --model nu-svr --scoring neg_mean_absolute_error
    """
    check_input(data)
    check_out(picture, data, endings=options.PICTURES)
    check_out(out, data)
    check_out(metrics_out, data, *([out] if out else []))
    names = tuple(dict.fromkeys(names))
    targets = options.common_targets(names)
    shared = {key: given.pop(key) for key in SHARED}
    asked = {"C": Cs, "gamma": gammas, "epsilon": epsilons, "nu": nus}
    _check_score(scoring, strategy, targets)
    models = _models(names, shared, asked, seed)
    searched = tuple(key for key in asked if key != "epsilon" or shared["epsilon"] is None)
    plan = searching.Plan(
        cv, seed, scoring, strategy, time_limit, one_standard_error, asked, searched
    )
    reading = Reading(target, **given)
    table, held = reading.table(data, targets), None
    record: dict[str, Any] = {"data": described(table, targets)}
    for model in models:
        use_labels(model, classes_in(table, targets), record["data"]["source"])
    if test is not None:
        table, held = split(table, test, seed, targets)
        record["split"] = {"test": test, "seed": seed}
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
    if not as_json and not console.is_quiet():
        searching.print_search(record["search"], Path(data).name)
    model = found.family.model.set_params(**found.parameters)
    trained = refitted(reading, table, held, model, record)
    publish(
        record, trained, targets, "tune", out=out, metrics_out=metrics_out, strict=strict,
        as_json=as_json,
    )  # fmt: skip
    if picture is not None and not (as_json or console.is_quiet()):
        click.echo(f"picture: {picture}")


def _models(
    names: tuple[str, ...], shared: dict[str, Any], asked: dict[str, Any], seed: int
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
    if shared["epsilon"] is not None and asked["epsilon"] is not None:
        raise click.UsageError("pass either --epsilon or --epsilons, not both.")
    axes = {key for model in made for key in search_grids.axes_of(model)}
    for key, values in asked.items():
        if values is not None and key not in axes:
            needed = "a model whose kernel has γ" if key == "gamma" else _with_axis(key)
            raise click.UsageError(f"--{key}s needs {needed}, got {' and '.join(names)}.")
    return made


def _with_axis(key: str) -> str:
    """Return the models of which a parameter is chosen."""
    return " or ".join(name for name, axes in search_grids.AXES.items() if key in axes)


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
