"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..estimators.registry import MODELS
from . import file_options
from .class_weights import ClassWeight
from .console import progress

if TYPE_CHECKING:
    from ..files.targets import Targets

Command = TypeVar("Command", bound=Callable[..., Any])

# files/reading.py holds these names too, but imports NumPy and more, which --help does not need.
FORMATS = ("csv", "tsv", "parquet", "arrow", "xlsx", "ods", "arff", "svmlight", "npz")
MODEL_NAMES = tuple(MODELS)

KINDS = {"classes": "a classifier", "numbers": "a regression", "none": "a one-class model"}
LOSSES = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")

# Suffixes of figures and of animations.
PICTURES = ("png", "svg", "pdf", "jpg", "jpeg", "webp", "tif", "tiff", "eps", "ps")
FILMS = ("gif", "html")

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
target = click.option(
    "--target",
    metavar="COL",
    help="Column of labels, or of numbers for a regression, by name or number (-1 is the last).",
)
seed = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of random numbers."
)
device = click.option(
    "--device",
    metavar="NAME",
    help="Where to compute: cpu, cuda (a GPU), or cuda:1 for the second GPU of several.",
)
scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Compute on a Dask cluster: its address, such as tcp://10.0.0.1:8786; local: processes "
    "on all cores of this machine; local:4: four of them.",
)
out_folder = click.Path(file_okay=False, writable=True)


def several(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return options as one decorator, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _one_character(ctx: Any, param: Any, value: str | None) -> str | None:
    """Return one character; a tab may be written as \\t or tab."""
    value = "\t" if value in ("\\t", "tab") else value
    if value is not None and (len(value) != 1 or ord(value) > 127):
        raise click.BadParameter(f"{value!r} is not one ASCII character.")
    return value


reading = several(
    click.option(
        "--format", type=click.Choice(FORMATS), help="Format of DATA; by default inferred."
    ),
    click.option(
        "--separator",
        metavar="CHAR",
        callback=_one_character,
        help="Separator of a CSV file, such as ';'.",
    ),
    click.option("--no-header", is_flag=True, help="The same as --header no."),
    *file_options.READING,
    click.option(
        "--first-index",
        type=click.IntRange(0, 1),
        help="Number of the first feature in svmlight text; by default inferred.",
    ),
)
choosing = several(
    click.option(
        "--drop", multiple=True, metavar="COL", help="Leave out a column; may be repeated."
    ),
    click.option(
        "--words",
        multiple=True,
        metavar="COL",
        help="Read a column of numbers as categories; may be repeated.",
    ),
    *file_options.CHOOSING,
    click.option(
        "--impute",
        is_flag=True,
        help="Fill missing values: by the median, or the most frequent category.",
    ),
    click.option("--float32", is_flag=True, help="Store features in float32, at half the memory."),
)
preparing = several(
    choosing,
    click.option("--no-scale", is_flag=True, help="Do not centre and scale the features."),
)


def _number(text: str) -> float | str:
    if text == "auto":  # by cross-validation, in `fit`
        return text
    return float("inf") if text.lower() in ("inf", "∞", "infinity") else float(text)


class KernelName(click.Choice):  # type: ignore[type-arg]
    """A name in the registry of kernels; help names the built-in ones, without importing NumPy."""

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the name, or fail with the list of all names."""
        from ..kernels import KERNELS

        names = [name for name in KERNELS if name != "precomputed"]
        return click.Choice(names).convert(value, param, ctx)


kernel = click.option(
    "--kernel",
    type=KernelName(["linear", "poly", "rbf", "sigmoid"]),
    help="Kernel of svc, nusvc, svr, nu-svr, one-class and kernel-perceptron.",
)
kernel_constants = several(
    click.option("--degree", type=int, help="Degree of kernel poly."),
    click.option("--coef0", type=float, help="Constant of kernels poly and sigmoid."),
)
class_weight = click.option(
    "--class-weight",
    type=ClassWeight(),
    metavar="WEIGHTS",
    help="Weights of classes by their labels, such as pos=5,neg=1, of others 1; or balanced: "
    "inversely to their frequency.",
)
tol = click.option("--tol", type=float, help="Tolerance of the optimum.")
modelling = several(
    click.option(
        "--C",
        "C",
        type=_number,
        metavar="C",
        help="Cost of slack; inf is the hard margin; fit: auto chooses it by cross-validation.",
    ),
    click.option("--nu", type=float, metavar="ν", help="ν of nusvc, nu-svr and one-class."),
    click.option(
        "--epsilon",
        type=_number,
        metavar="ε",
        help="Half the width of the tube of svr and linear-svr, in units of the target; fit: auto "
        "chooses it with --C auto.",
    ),
    kernel,
    click.option(
        "--gamma",
        metavar="γ",
        help="γ of the kernel: a number, scale or auto; auto is 1/d, and with --C auto chosen by "
        "cross-validation.",
    ),
    kernel_constants,
    click.option(
        "--loss", type=click.Choice(LOSSES), help="Loss of slack: the last two for regressions."
    ),
    click.option(
        "--multi-class", metavar="HOW", help="Many classes: ovr, ovo, kesler or crammer_singer."
    ),
    class_weight,
    click.option("--solver", metavar="NAME", help="Solver of a support vector machine."),
    tol,
    click.option("--max-iter", type=int, help="Largest number of passes or steps."),
    click.option(
        "--approximate",
        type=click.Choice(["nystroem", "fourier"]),
        help="Fit svc to features of its kernel, for very many rows; fourier for rbf only.",
    ),
    click.option(
        "--components",
        "n_components",
        type=click.IntRange(1),
        metavar="N",
        help="Number of these features, 300 by default.",
    ),
    click.option("--time-limit", type=float, metavar="SECONDS", help="Time limit of the fit."),
    device,
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Any other parameter of the estimator, as JSON or text; may be repeated.",
    ),
)
MODELLING = (
    "C", "nu", "epsilon", "kernel", "gamma", "degree", "coef0", "loss", "multi_class",
    "class_weight", "solver", "tol", "max_iter", "approximate", "n_components", "time_limit",
    "device",
)  # fmt: skip


def forbid(names: Sequence[str], why: str) -> None:
    """Raise for those of these options that are on the command line, or in its file."""
    context, given = click.get_current_context(), click.core.ParameterSource
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if param.name in names and source in (given.COMMANDLINE, given.DEFAULT_MAP):
            raise click.UsageError(f"{param.opts[-1]} {why}")


def make_model(name: str, given: dict[str, Any], settings: Sequence[str], seed: int) -> Any:
    """Return the estimator with the given options; raise for one that it does not have."""
    with progress("loading"):
        model = MODELS[name]()
    known = model.get_params()
    options = {key: value for key, value in given.items() if value is not None}
    if "gamma" in options:
        options["gamma"] = _value(options["gamma"])
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise click.UsageError(f"--set must be NAME=VALUE, got {setting}.")
        if key in options:
            raise click.UsageError(f"{key} is given twice.")
        options[key] = _value(text)
    for key in options:
        if key not in known or key in ("callback", "verbose"):
            names = ", ".join(k for k in known if k not in ("callback", "verbose"))
            raise click.UsageError(f"{name} has no parameter {key!r}; it has {names}.")
    _check_kernel_parameters(options, options.get("kernel", known.get("kernel")))
    if "n_components" in options and options.get("approximate") is None:
        raise click.UsageError("--components has no effect without --approximate.")
    if "random_state" in known:
        options.setdefault("random_state", seed)
    model.set_params(**options)
    _check_parameters(model)
    return model


def common_targets(names: Sequence[str]) -> Targets:
    """Return the kind of target that all of these models have; raise where there are several."""
    kinds = {MODELS[name].targets: name for name in reversed(names)}
    if len(kinds) > 1:
        said = " and ".join(f"{name} ({KINDS[kind]})" for kind, name in reversed(kinds.items()))
        raise click.UsageError(f"models of one kind can be compared, got {said}.")
    return next(iter(kinds))


def use_device(model: Any, name: str | None) -> None:
    """Let a model, or the last step of a pipeline, compute on a device; None leaves it as it is."""
    if name is None:
        return
    last = model[-1] if hasattr(model, "steps") else model
    if "device" not in last.get_params():
        raise click.UsageError(f"--device is not for {type(last).__name__}, which uses the CPU.")
    _check_parameters(last.set_params(device=name))


def _check_parameters(model: Any) -> None:
    """Raise for parameters out of range, and for a device that is not here."""
    try:
        model._validate_params()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if getattr(model, "device", "cpu") not in ("auto", "cpu"):
        from ..engines.registry import find_device

        find_device(model.device)


def _check_kernel_parameters(options: dict[str, Any], kernel: Any) -> None:
    """Raise for parameters that the kernel does not have."""
    from ..kernels import KERNELS

    for name in ("gamma", "degree", "coef0"):
        kernels = [key for key, kind in KERNELS.items() if name in signature(kind).parameters]
        if name in options and kernel not in kernels:
            raise click.UsageError(f"--{name} needs kernel {' or '.join(kernels)}, got {kernel}.")


def _value(text: str) -> Any:
    """Return a JSON value, or the text itself where it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return float("inf") if text == "inf" else text
