"""The values of parameters among which ``tune`` and ``fit --C auto`` choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

import click

from ..estimators.registry import MODELS as VARIANTS

if TYPE_CHECKING:
    from ..arrays import Matrix
    from ..model_selection.families import Family

# Models whose parameters can be chosen, and which of them.
AXES = {
    "svc": ("C", "gamma"),
    "nusvc": ("nu", "gamma"),
    "linear-svc": ("C",),
    "svr": ("C", "gamma", "epsilon"),
    "nu-svr": ("C", "gamma", "nu"),
    "linear-svr": ("C", "epsilon"),
}
MODELS = tuple(AXES)
NAMES = {VARIANTS[name].estimator: name for name in MODELS}
# Values of an axis by default, and of the third.
N_DEFAULT, N_FEWER = 7, 3
# Powers of 2 of the default costs of linear machines, and of regressions with a kernel. Costs of a
# regression are in units of the standard deviation of the targets, unless its loss is squared.
LINEAR_COSTS, REGRESSION_COSTS = (-10.0, 10.0), (-5.0, 10.0)
# Powers of 2 of the default ε, in units of the same.
EPSILONS = (-6.0, -1.0)
# The least default ν, and the largest as a share of the largest possible.
NUS = (0.01, 0.95)
# Those of a regression.
REGRESSION_NUS = (0.2, 0.8)

# A number of values, the values, or None for the default.
Asked = int | list[Any] | None

# What the values of an option must be.
RULES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "Cs": ("positive numbers", lambda value: 0.0 < value < float("inf")),
    "gammas": ("positive numbers", lambda value: 0.0 < value < float("inf")),
    "nus": ("numbers above 0 and at most 1", lambda value: 0.0 < value <= 1.0),
    "epsilons": ("numbers of 0 or more", lambda value: 0.0 <= value < float("inf")),
}


def numbers(ctx: Any, param: Any, text: str | None) -> Asked:
    """Return how many values there are, or the values: the callback of --Cs and the like."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = ("scale", "auto") if param.name == "gammas" else ()
    what, is_allowed = RULES[param.name]
    if words == ["1"] and "," not in text:
        raise click.BadParameter(
            "must be a number of values, 2 or more, or the values themselves, got '1': write 1.0 "
            "for the value 1."
        )
    try:
        if "," not in text and text.strip().isdigit() and int(text) > 0:
            return int(text)
        values = [word if word in names else float(word) for word in words]
    except ValueError:
        values = []
    if not values or not all(isinstance(value, str) or is_allowed(value) for value in values):
        raise click.BadParameter(
            f"must be a number of values, or {what} with commas, got {text!r}."
        )
    return sorted(set(values), key=lambda value: (not isinstance(value, str), value))


def has_gamma(model: Any) -> bool:
    """Return whether the kernel of a model takes γ."""
    from ..kernels import KERNELS

    kernel = model.get_params().get("kernel")
    return kernel in KERNELS and "gamma" in signature(KERNELS[kernel]).parameters


def axes_of(model: Any) -> list[str]:
    """Return the parameters of a model that can be chosen."""
    names = AXES[NAMES[type(model).__name__]]
    return [name for name in names if name != "gamma" or has_gamma(model)]


def family_of(
    model: Any, X: Matrix, y: Any, asked: Mapping[str, Asked], searched: tuple[str, ...]
) -> Family:
    """Return a model with its grid: the values that are asked for, or powers of 2.

    Parameters
    ----------
    model : estimator
    X : array or CSR matrix
        Prepared features.
    y : ndarray
    asked : dict
        Values of parameters, or how many.
    searched : tuple of str
        The parameters to choose; others stay as they are in the model.
    """
    from ..model_selection.families import Family

    axes: dict[str, list[Any]] = {}
    for k, name in enumerate(axes_of(model)):
        given = asked.get(name)
        if name not in searched:
            continue
        if isinstance(given, list):
            axes[name] = given
        else:
            n = given or (N_DEFAULT if k < 2 and name != "epsilon" else N_FEWER)
            axes[name] = _values(model, name, n, X, y)
    refined = tuple(name for name in axes if not isinstance(asked.get(name), list))
    return Family(NAMES[type(model).__name__], model, axes, refined)


def _values(model: Any, name: str, n: int, X: Matrix, y: Any) -> list[float]:
    """Return the default values of a parameter: powers of 2 in its unit, or shares."""
    import numpy as np

    from ..kernels import resolve
    from ..model_selection.families import rounded
    from ..model_selection.kernel_search import GAMMAS
    from ..model_selection.model_search import COSTS

    is_regression = VARIANTS[NAMES[type(model).__name__]].targets == "numbers"
    if name == "nu":
        low, high = REGRESSION_NUS if is_regression else (NUS[0], NUS[1] * _largest_nu(y))
        return rounded(np.geomspace(low, high, n))
    unit = 1.0
    if name == "gamma":  # in units of 1/(d·Var X)
        powers, unit = GAMMAS, resolve(model.kernel, gamma="scale", X=X).gamma  # type: ignore[attr-defined]
    elif name == "epsilon":
        powers, unit = EPSILONS, float(y.std())
    else:
        powers = REGRESSION_COSTS if is_regression else COSTS
        powers = powers if hasattr(model, "kernel") else LINEAR_COSTS
        if is_regression and not getattr(model, "loss", "").startswith("squared"):
            unit = float(y.std())
    return rounded(unit * np.logspace(*powers, n, base=2.0))


def _largest_nu(y: Any) -> float:
    """Return the largest ν that every pair of classes allows."""
    import numpy as np

    counts = np.sort(np.unique(y, return_counts=True)[1])
    return float(2.0 * counts[0] / (counts[0] + counts[-1]))
