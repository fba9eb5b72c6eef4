"""A step of a fit in numbers: what was corrected, by how much, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import maxmargin as mm

from ..arrays import Floats
from ..progress import counted
from .fitting import Frame, Outcome, evaluated, starts_from_zero
from .notation import in_brackets, number, numbered, plus, vector

# Of the changed α of a round, those that are named.
MOST_NAMED = 2


def step_words(outcome: Outcome, k: int) -> list[str]:
    """Return sentences about step k: its update in numbers, and the mistakes so far."""
    frame = outcome.frames[k]
    if frame.is_start:
        return [_start(outcome, frame)]
    before = before_step(outcome, k)
    return [text for text in (_update(outcome, frame, before), *_so_far(outcome, k)) if text]


def before_step(outcome: Outcome, k: int) -> Frame | None:
    """Return the state before step k, None where it is not known."""
    frame = outcome.frames[k]
    earlier = (other for other in reversed(outcome.frames[:k]) if other.task == frame.task)
    if isinstance(outcome.model, mm.Pocket):  # ends of passes hold the pocket
        earlier = (other for other in earlier if other.sample is not None or other.is_start)
    known = next(earlier, None)
    if known is None and starts_from_zero(outcome.request):
        return Frame.start_of(frame)
    return known


def _start(outcome: Outcome, frame: Frame) -> str:
    what = "α = 0, so that w = 0" if frame.alpha is not None else "w = 0 and b = 0"
    yet = " There is no plane yet." if outcome.request.recipe.has_classes else ""
    return f"The start, before any step: {what}.{yet}"


def _update(outcome: Outcome, frame: Frame, before: Frame | None) -> str:
    """Return what changed in a step."""
    if frame.sample is not None and before is not None:
        correct = CORRECTIONS.get(outcome.request.algorithm)
        if correct is not None and (len(frame.w) == 1 or frame.alpha is not None):
            return correct(outcome, frame, before)
        return _moved_planes(outcome, frame, before)
    batch = BATCHES.get(outcome.request.algorithm) if frame.unit == "step" else None
    if batch is not None and before is not None and len(frame.w) == 1:
        return _all_at_once(batch, frame, before)
    if frame.unit == "pass" and outcome.request.algorithm in CORRECTIONS:
        return _end_of_pass(outcome, frame)
    # α of all classes at once is a matrix, of which the planes say enough.
    one = frame.alpha is not None and frame.alpha.ndim == 1
    if one and before is not None and before.alpha is not None:
        if not len(frame.w):
            return _moved_alpha(frame, before)
        return f"{_moved_alpha(frame, before)} {_moved_planes(outcome, frame, before)}"
    return _moved_planes(outcome, frame, before)


class Correction:
    """A sample that corrects a plane: x, y, g before, and the plane before and after."""

    def __init__(self, outcome: Outcome, frame: Frame, before: Frame) -> None:
        assert frame.sample is not None
        points, values = outcome.request.points, outcome.request.values
        self.frame, self.before, self.values = frame, before, values
        self.x = points.X[frame.sample]
        place = int(np.flatnonzero(frame.rows == frame.sample)[0])
        self.place, self.y = place, float(np.asarray(frame.labels)[place])
        rows = points.X[[frame.sample]]
        self.g = float(evaluated(before, outcome.model, points.X, rows)[0, 0])
        self.named = (
            f"Point {frame.sample + 1:,} = {vector(self.x)} "
            f"(class {points.names[points.codes[frame.sample]]}, y = {number(self.y)})"
        )

    @property
    def margin(self) -> float:
        """y g(x) before the correction, 0 to rounding."""
        return 0.0 if abs(self.g) <= 1e-12 else self.y * self.g

    @property
    def mistake(self) -> str:
        """Why a perceptron corrects."""
        if self.margin == 0.0:
            return f"{self.named} is on the line, which counts as a mistake: y·g = 0."
        return f"{self.named} is on the wrong side: y·g = {number(self.margin)}."

    def moved(self, rule: str, factor: float, factors: str, bias: str = "") -> str:
        """Return w ← w + factor·x and what b becomes, in numbers."""
        w, b = self.before.w[0], float(self.before.b[0])
        new, change = self.frame.w[0], float(self.frame.b[0]) - b
        rate = factors or in_brackets(factor)
        return (
            f"w ← w + {rule} x = {vector(w)} + {rate}·{vector(self.x)} = {vector(new)}, "
            f"b ← {bias}{number(b)} {plus(change)} = {number(float(self.frame.b[0]))}."
        )

    @property
    def factor(self) -> float:
        """By how many x the weights moved; by how much b did where x = 0."""
        square = float(self.x @ self.x)
        if square > 0.0:
            return float((self.frame.w[0] - self.before.w[0]) @ self.x) / square
        return float(self.frame.b[0] - self.before.b[0])


def _perceptron(outcome: Outcome, frame: Frame, before: Frame) -> str:
    found = Correction(outcome, frame, before)
    rate = found.factor * found.y
    bias = "b + ρ y R² = " if found.values.get("bias") == "radius" else ""
    factors = f"{in_brackets(rate)}·{in_brackets(found.y)}"
    return f"{found.mistake} {found.moved('ρ y', found.factor, factors, bias)}"


def _relaxation(outcome: Outcome, frame: Frame, before: Frame) -> str:
    found = Correction(outcome, frame, before)
    margin = float(found.values["margin"])
    why = f"{found.named}: y·g = {number(found.margin)} is below m = {number(margin)}."
    factors = f"{in_brackets(found.factor * found.y)}·{in_brackets(found.y)}"
    return f"{why} {found.moved('β (m − y·g)/‖z‖² y', found.factor, factors)}"


def _lms(outcome: Outcome, frame: Frame, before: Frame) -> str:
    found = Correction(outcome, frame, before)
    error = found.y - found.g
    why = f"{found.named}: g = {number(found.g)}, the error is y − g = {number(error)}."
    rate = found.factor / error if error else 0.0
    factors = f"{in_brackets(rate)}·{in_brackets(error)}"
    return f"{why} {found.moved('ρ (y − g)', found.factor, factors)}"


def _kernel_perceptron(outcome: Outcome, frame: Frame, before: Frame) -> str:
    found = Correction(outcome, frame, before)
    assert frame.alpha is not None
    assert before.alpha is not None
    old, new = float(before.alpha[found.place]), float(frame.alpha[found.place])
    name, b = numbered("α", int(frame.sample or 0) + 1), float(before.b[0])
    moved = f"{name} ← {number(old)} + {number(new - old)} = {number(new)}"
    after = float(frame.b[0])
    return (
        f"{found.mistake} {moved}, b ← b + y R² = {number(b)} {plus(after - b)} = {number(after)}."
    )


CORRECTIONS: dict[str, Callable[[Outcome, Frame, Frame], str]] = {
    "perceptron": _perceptron,
    "pocket": _perceptron,
    "relaxation": _relaxation,
    "lms": _lms,
    "kernel-perceptron": _kernel_perceptron,
}


# Corrections by all samples at once.
BATCHES = {
    "perceptron": "w ← w + ρ Σ y x, over all points on the wrong side,",
    "relaxation": "w ← w + β Σ (m − y·g)/‖z‖² y x, over all points with y·g ≤ m,",
    "lms": "w ← w + ρ Σ (y − g) x, over all points,",
}


def _all_at_once(rule: str, frame: Frame, before: Frame) -> str:
    w, b = before.w[0], float(before.b[0])
    change = float(frame.b[0]) - b
    return (
        f"{rule} = {vector(w)} + {vector(frame.w[0] - w)} = {vector(frame.w[0])}, "
        f"b ← {number(b)} {plus(change)} = {number(float(frame.b[0]))}."
    )


def _moved_planes(outcome: Outcome, frame: Frame, before: Frame | None) -> str:
    """Return the planes that moved, from where and to where."""
    if not len(frame.w):
        return ""
    names = _plane_names(outcome, frame)
    lines = []
    for k, (w, b) in enumerate(zip(frame.w, frame.b, strict=True)):
        now = f"w{names[k]} = {vector(w)}, b = {number(float(b))}"
        if before is None or len(before.w) != len(frame.w):
            lines.append(now)
        elif not (np.array_equal(w, before.w[k]) and b == before.b[k]):
            old = f"from w = {vector(before.w[k])}, b = {number(float(before.b[k]))}"
            lines.append(f"{now}, {old}")
    who = f"Point {frame.sample + 1:,} moves the planes: " if frame.sample is not None else ""
    return f"{who}{'; '.join(lines)}." if lines else "The plane stays."


def _plane_names(outcome: Outcome, frame: Frame) -> list[str]:
    if len(frame.w) == 1:
        return [""]
    return [f" of {label}" for label in outcome.model.classes_.tolist()]


def _end_of_pass(outcome: Outcome, frame: Frame) -> str:
    if isinstance(outcome.model, mm.Pocket):
        return f"The end of pass {frame.iteration}: shown is the plane in the pocket."
    if frame.errors == 0:
        return f"The end of pass {frame.iteration}: no mistake was met in it."
    return f"The end of pass {frame.iteration}: the plane stays."


def _moved_alpha(frame: Frame, before: Frame) -> str:
    """Return the α that moved: a pair of SMO, or how many of a round."""
    now, old = _alphas(frame), _alphas(before)
    moved = np.flatnonzero(now != old)
    if not moved.size:
        return "No α moves."
    largest = moved[np.argsort(-np.abs(now - old)[moved], kind="stable")][:MOST_NAMED]
    letter = "α" if frame.alpha is not None and frame.alpha.size == frame.rows.size else "(α − α*)"
    parts = ", ".join(
        f"{numbered(letter, int(frame.rows[i]) + 1)} ← {number(old[i])} {plus(now[i] - old[i])} = "
        f"{number(now[i])}"
        for i in sorted(largest)
    )
    if moved.size <= MOST_NAMED:
        pair = " and ".join(f"{frame.rows[i] + 1:,}" for i in sorted(moved))
        what = "points" if moved.size == 2 else "point"
        return f"The {frame.unit} moves the α of {what} {pair}: {parts}."
    return f"The {frame.unit} moves {moved.size} α, most of all {parts}."


def _alphas(frame: Frame) -> Floats:
    assert frame.alpha is not None
    return frame.alpha if frame.alpha.size == frame.rows.size else frame.coefficients


# Mistakes so far ---------------------------------------------------------------------------------


def _so_far(outcome: Outcome, k: int) -> list[str]:
    """Return the corrections up to step k with their bound, or both sides of the gap."""
    frame = outcome.frames[k]
    sides = [
        f"{name} = {value:.6g}"
        for name, value in (("primal", frame.primal), ("dual", frame.dual))
        if math.isfinite(value)
    ]
    if len(sides) == 2:
        sides.append(f"gap = {number(frame.primal - frame.dual)}")
    lines = [", ".join(sides)] if sides else []
    if outcome.request.algorithm in CORRECTIONS and outcome.request.values.get("update") != "batch":
        done = sum(f.sample is not None and f.task == frame.task for f in outcome.frames[: k + 1])
        what = "correction" if outcome.request.algorithm in ("relaxation", "lms") else "mistake"
        text = f"{counted(done, what)} so far."
        lines.append(" ".join(filter(None, [text, bound_in_words(outcome)])))
    best = best_so_far(outcome, k)
    if best is not None:
        lines.append(f"The best plane so far, in the pocket, misclassifies {best[2]:,}.")
    return lines


def bound_in_words(outcome: Outcome) -> str:
    """Return Novikoff's bound of the mistakes, where a plane separates and the rule has one."""
    found = mistake_bound(outcome)
    if found is None:
        return ""
    bound, radius, gamma, formula = found
    return (
        f"Novikoff's bound: at most {bound:,} "
        f"({formula} with R = {number(radius)} and γ = {number(gamma)})."
    )


def mistake_bound(outcome: Outcome) -> tuple[int, float, float, str] | None:
    """Return Novikoff's bound with R, γ and the formula; None where it is not known to hold.

    It is about single corrections of a constant rate from zero. The plane that gives γ is the one
    of the verdict; b is the weight of a constant feature of 1, or of R with that of the R² form.
    """
    values, verdict = outcome.request.values, outcome.verdict
    known = outcome.request.algorithm in ("perceptron", "pocket")
    usual = values.get("schedule") == "constant" and values.get("update", "single") == "single"
    if not (known and usual) or verdict is None or not verdict.separable:
        return None
    found: Any = verdict.certificate
    if values.get("bias") == "radius":
        radius, gamma, formula = found.radius, found.geometric_margin, "4R²/γ²"
        bound = (2.0 * radius / gamma) ** 2
    else:
        radius, gamma, formula = found.augmented_radius, found.augmented_margin, "R²/γ²"
        bound = found.mistake_bound
    return math.floor(bound * (1.0 + 1e-12)), radius, gamma, formula


def best_so_far(outcome: Outcome, k: int) -> tuple[Floats, float, int] | None:
    """Return w, b and the errors of the plane in the pocket at step k; None of other rules."""
    if not isinstance(outcome.model, mm.Pocket) or len(outcome.model.classes_) != 2:
        return None
    X, y = outcome.request.points.X, outcome.signs
    # It starts with w = 0 and the bias of the larger class.
    w, b = np.zeros(2), 1.0 if (y > 0).sum() >= (y < 0).sum() else -1.0
    wrong = _errors(w, b, X, y)
    for frame in outcome.frames[: k + 1]:
        if frame.is_start or len(frame.w) != 1:
            continue
        count = _errors(frame.w[0], float(frame.b[0]), X, y)
        # At the end of a pass the step holds the pocket itself.
        if count < wrong or frame.sample is None:
            w, b, wrong = frame.w[0], float(frame.b[0]), count
    return w, b, wrong


def _errors(w: Floats, b: float, X: Floats, y: Floats) -> int:
    return int((y * (X @ w + b) <= 0.0).sum())
