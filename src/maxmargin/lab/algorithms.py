"""The estimators in the lab: a sentence, an equation and controls for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import maxmargin as mm

from ..estimators.registry import LESSONS, Family

Value = float | int | str


@dataclass(frozen=True)
class Control:
    """A parameter that can be changed on the page.

    ``when`` of the subclasses names another control and the values for which this one has an
    effect.
    """

    name: str
    title: str
    default: Value

    def accepts(self, value: Any) -> bool:
        """Say whether a value, which may come from a link, is valid."""
        raise NotImplementedError


@dataclass(frozen=True)
class Choice(Control):
    """One of several options."""

    options: tuple[str, ...] = ()
    when: tuple[str, tuple[str, ...]] | None = None

    def accepts(self, value: Any) -> bool:
        return value in self.options


@dataclass(frozen=True)
class Slide(Control):
    """A number in a range; with ``log`` the slider is logarithmic.

    With ``top`` it ends at ∞, which ``top`` explains.
    """

    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    log: bool = False
    top: str = ""
    when: tuple[str, tuple[str, ...]] | None = None

    def accepts(self, value: Any) -> bool:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.low <= value <= self.high

    def number(self, value: float) -> float:
        """Return the number at a position of the slider."""
        if self.top and value >= self.high:
            return float("inf")
        # Steps of the slider are summed with rounding errors: 0.9400000000000001.
        return float(f"{10.0**value:.3g}") if self.log else round(value, 10)

    def title_at(self, value: float) -> str:
        """Return the title of the slider at a position."""
        number = self.number(value)
        return f"{self.title} = " + (f"∞ ({self.top})" if math.isinf(number) else f"{number:g}")


@dataclass(frozen=True)
class Algorithm:
    """An estimator with a sentence that describes it, its equation and its controls."""

    key: str
    title: str
    family: Family
    estimator: str
    sentence: str
    equation: str
    controls: tuple[Choice | Slide, ...]

    @property
    def has_classes(self) -> bool:
        """Whether it tells classes apart: not a regression, nor a machine of one class."""
        return self.family not in WITHOUT_CLASSES

    def defaults(self) -> dict[str, Value]:
        """Return the initial values of the controls."""
        return {control.name: control.default for control in self.controls}

    def settled(self, values: Mapping[str, Any]) -> dict[str, Value]:
        """Return valid values: those given, and defaults for the others."""
        return {
            c.name: values[c.name] if c.name in values and c.accepts(values[c.name]) else c.default
            for c in self.controls
        }

    def matters(self, control: Choice | Slide, values: Mapping[str, Any]) -> bool:
        """Say whether a control has an effect, given the values of the others."""
        if control.when is None:
            return True
        other, wanted = control.when
        return str(values[other]) in wanted

    def parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the estimator."""
        found: dict[str, Any] = {}
        for control in self.controls:
            if not self.matters(control, values):
                continue
            value = values[control.name]
            found[control.name] = control.number(value) if isinstance(control, Slide) else value
            if isinstance(control, Slide) and control.step == 1 and not control.log:
                found[control.name] = int(value)
        if "schedule" in found:
            schedule, rate = found.pop("schedule"), found["learning_rate"]
            found["learning_rate"] = mm.Harmonic(rate) if schedule == "harmonic" else rate
        if found.get("margins") == "1":
            del found["margins"]
        if self.estimator in SEEDED:
            found["random_state"] = 0
        if self.estimator in IN_ORDER:
            found["shuffle"] = False
        return found

    def build(self, values: Mapping[str, Any], **more: Any) -> Any:
        """Return the estimator."""
        return getattr(mm, self.estimator)(**self.parameters(values), **more)


WITHOUT_CLASSES: tuple[Family, ...] = ("regression", "one-class")
SEEDED = ("SVC", "NuSVC", "LinearSVC", "Pocket", "Perceptron", "LMS", "LinearSVR")
# Rules that visit the samples in the order of the table, as in textbooks.
IN_ORDER = ("Perceptron", "Pocket", "Relaxation", "LMS", "KernelPerceptron")
RATE = Slide("learning_rate", "learning rate ρ", 0.0, low=-3, high=1, step=0.05, log=True)
SCHEDULE = Choice("schedule", "schedule", "constant", options=("constant", "harmonic"))
UPDATE = Choice("update", "update", "single", options=("single", "batch"))
MULTI_CLASS = Choice("multi_class", "many classes", "ovr", options=("ovr", "ovo", "kesler"))
PASSES = Slide("max_iter", "passes at most", 200, low=1, high=1000, step=1)
C = Slide("C", "C", 0.0, low=-3, high=5, step=0.05, log=True, top="hard margin")
FINITE_C = replace(C, top="")
EPSILON = Slide("epsilon", "ε", 0.1, low=0, high=2, step=0.02)
NU = Slide("nu", "ν", 0.3, low=0.02, high=1.0, step=0.02)
KERNEL = Choice("kernel", "kernel", "linear", options=("linear", "poly", "rbf", "sigmoid"))
CURVED_KERNEL = replace(KERNEL, default="rbf")
CURVED = ("poly", "rbf", "sigmoid")
KERNEL_PARAMETERS = (
    Slide("gamma", "γ", 0.0, low=-3, high=2, step=0.05, log=True, when=("kernel", CURVED)),
    Slide("degree", "degree p", 2, low=1, high=8, step=1, when=("kernel", ("poly",))),
    Slide("coef0", "r", 1.0, low=-3, high=3, step=0.1, when=("kernel", ("poly", "sigmoid"))),
)
BY_PAIRS = Choice("multi_class", "many classes", "ovo", options=("ovo", "ovr"))
KERNEL_SOLVER = Choice(
    "solver", "solver", "auto", options=("auto", "decomposition", "smo", "active-set")
)
LINEAR_SOLVER = Choice(
    "solver", "solver", "auto", options=("auto", "newton", "interior-point", "coordinate-descent")
)
TUBE_LOSS = Choice(
    "loss", "loss", "epsilon_insensitive",
    options=("epsilon_insensitive", "squared_epsilon_insensitive"),
)  # fmt: skip

CONTROLS: dict[str, tuple[Choice | Slide, ...]] = {
    "perceptron": (
        RATE,
        SCHEDULE,
        UPDATE,
        Choice("bias", "bias", "plain", options=("plain", "radius")),
        PASSES,
        MULTI_CLASS,
    ),
    "pocket": (RATE, SCHEDULE, PASSES, MULTI_CLASS),
    "relaxation": (
        Slide("margin", "margin m", 1.0, low=0.1, high=10, step=0.1),
        Slide("relaxation", "relaxation β", 1.0, low=0.1, high=1.9, step=0.05),
        UPDATE,
        PASSES,
        MULTI_CLASS,
    ),
    "lms": (
        Slide("learning_rate", "learning rate ρ", -2.0, low=-5, high=0, step=0.05, log=True),
        SCHEDULE,
        UPDATE,
        PASSES,
        MULTI_CLASS,
    ),
    "pseudoinverse": (
        Slide("ridge", "ridge", 0.0, low=0, high=10, step=0.1),
        Choice("margins", "margins m", "1", options=("1", "fisher")),
        MULTI_CLASS,
    ),
    "ho-kashyap": (
        Slide("learning_rate", "β", 0.5, low=0.05, high=0.95, step=0.05),
        PASSES,
        MULTI_CLASS,
    ),
    "kernel-perceptron": (
        KERNEL,
        *KERNEL_PARAMETERS,
        PASSES,
        Choice("multi_class", "many classes", "ovr", options=("ovr", "ovo")),
    ),
    "svc": (
        C,
        Choice("loss", "loss", "hinge", options=("hinge", "squared_hinge")),
        KERNEL,
        *KERNEL_PARAMETERS,
        KERNEL_SOLVER,
        BY_PAIRS,
    ),
    "nusvc": (
        NU,
        KERNEL,
        *KERNEL_PARAMETERS,
        KERNEL_SOLVER,
        BY_PAIRS,
    ),
    "linear-svc": (
        C,
        Choice("loss", "loss", "squared_hinge", options=("squared_hinge", "hinge")),
        LINEAR_SOLVER,
        Choice("multi_class", "many classes", "ovr", options=("ovr", "ovo", "crammer_singer")),
    ),
    "svr": (
        replace(C, top="hard tube"),
        EPSILON,
        TUBE_LOSS,
        CURVED_KERNEL,
        *KERNEL_PARAMETERS,
        KERNEL_SOLVER,
    ),
    "nu-svr": (FINITE_C, NU, CURVED_KERNEL, *KERNEL_PARAMETERS, KERNEL_SOLVER),
    "linear-svr": (FINITE_C, EPSILON, TUBE_LOSS, LINEAR_SOLVER),
    "one-class": (
        replace(NU, default=0.1),
        CURVED_KERNEL,
        replace(KERNEL_PARAMETERS[0], default=-1.0),
        *KERNEL_PARAMETERS[1:],
        KERNEL_SOLVER,
    ),
}

ALGORITHMS: dict[str, Algorithm] = {
    key: Algorithm(
        key,
        variant.lesson.heading,
        variant.family,
        variant.estimator,
        variant.lesson.sentence,
        variant.lesson.equation,
        CONTROLS.get(key, ()),
    )
    for key, variant in LESSONS.items()
    if variant.lesson
}
