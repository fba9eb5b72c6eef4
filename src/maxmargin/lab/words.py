"""What the page says of an answer or of a step: first in plain words, then the proof."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

import maxmargin as mm

from ..arrays import Floats
from ..diagnostics.fitted_model import FittedModel, SupportVectorMachine
from ..diagnostics.proofs import tolerance
from ..diagnostics.summary import Summary, linear_verdict, summarize
from ..progress import counted
from . import one_class, regression
from .drawing import is_flat
from .fitting import LIMITS, NO_KERNEL, NO_PLANE, Outcome
from .notation import number, points_are
from .step_words import step_words

# Sizes of y·g, relative to those of its terms, up to which a point is on the line.
ON_THE_LINE = 1e-12
NO_LINE = "No line separates these points: their hulls share a point."


def words_of(outcome: Outcome, k: int, title: str, *, is_open: bool = False) -> str:
    """Return what is said of step k, shown with a ``title``, or of the answer, as escaped HTML.

    ``is_open`` says whether the proof is unfolded.
    """
    if outcome.failure is not None:
        kind, text = _of_failure(outcome)
        inside = [outcome.failure, *_verdict(outcome, flat=False)] if kind != "bad" else []
        return line_of(kind, text) + _proof("proof", inside, is_open=is_open)
    found, flat = summarize(outcome.model), is_flat(outcome)
    warned = warnings_of(outcome)
    lines = []
    if k < len(outcome.frames):
        lines.append(line_of("step", f"{title[:1].upper()}{title[1:]}."))
        lines += [line_of("", text) for text in step_words(outcome, k)]
        heading = "the end of the fit, not this step, and its proof"
        inside = [headline(outcome), *warned]
    else:
        lines.append(line_of("good" if found.is_proved and not flat else "open", headline(outcome)))
        lines += [line_of("bad", text) for text in warned]
        lines.append(line_of("facts", " · ".join(_facts(outcome, found, flat))))
        heading = "proof" if found.is_proved else "not proved: what is known"
        inside = []
    inside += [str(found.certificate), *_margin(outcome, found, flat), *_verdict(outcome, flat)]
    return "".join(lines) + _proof(heading, inside, is_open=is_open)


def warnings_of(outcome: Outcome) -> list[str]:
    """Return the warnings of a fit, without the certificate that some quote: it is told apart."""
    certificate = summarize(outcome.model).certificate
    return [f"Warning: {text.replace(f': {certificate}', '')}" for text in outcome.warnings]


def line_of(kind: str, text: str) -> str:
    """Return a text as an escaped paragraph of a kind."""
    return f"<p class='{kind}'>{html.escape(text)}</p>"


def _proof(heading: str, lines: list[str], *, is_open: bool) -> str:
    """Return lines that are unfolded by their heading."""
    if not lines:
        return ""
    inside = "".join(line_of("facts", line) for line in lines)
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{html.escape(heading)}</summary>{inside}</details>"


# The first sentence ------------------------------------------------------------------------------


def headline(outcome: Outcome) -> str:
    """Return the answer in plain words, which claim no more than is proved."""
    if outcome.failure is not None:
        return _of_failure(outcome)[1]
    if is_flat(outcome):
        return _of_flat(outcome)
    family = outcome.request.recipe.family
    if family == "regression":
        text = _of_tube(outcome)
    elif family == "one-class":
        text = _of_region(outcome)
    elif len(outcome.model.classes_) > 2:
        text = _of_many(outcome)
    else:
        text = _of_two(outcome)
    return " ".join([text, *_unproved(outcome)])


def _of_failure(outcome: Outcome) -> tuple[str, str]:
    verdict, failure = outcome.verdict, str(outcome.failure)
    curved = outcome.request.values.get("kernel", "linear") != "linear"
    if verdict is not None and verdict.common_point is not None and not curved:
        return "open", NO_LINE
    for refusal in (NO_PLANE, NO_KERNEL):
        if failure.startswith(refusal):
            return "open", f"There is no hard margin. {refusal} these classes; take a finite C."
    return "bad", f"{failure[:1].upper()}{failure[1:]}"


def _of_flat(outcome: Outcome) -> str:
    """Return that w = 0, and what helps."""
    if str(getattr(outcome.model, "status_", "")) == mm.Status.DIVERGED:
        return "There is no line: the weights grew without bound, and w = 0 is the start."
    if not isinstance(outcome.model, SupportVectorMachine | mm.OneClassSVM):
        return f"There is no line: w = 0.{_beside(outcome)}"
    remedy = "try another kernel"
    if isinstance(outcome.model, mm.NuSVC) and outcome.model.nu < 1.0:
        remedy = "raise ν"
    elif isinstance(outcome.model, mm.LinearSVC):
        remedy = "no plane is better, to the tolerance of the fit"
    optimal = " is optimal" if summarize(outcome.model).is_proved else ""
    what = "region" if isinstance(outcome.model, mm.OneClassSVM) else "plane"
    return f"w = 0{optimal}: there is no {what}; {remedy}."


def _of_two(outcome: Outcome) -> str:
    model = outcome.model
    margins = outcome.signs * model.decision_function(outcome.request.points.X)
    level = ON_THE_LINE * _sizes(outcome)
    wrong, on_it = margins < -level, np.abs(margins) <= level
    line = "line" if outcome.is_linear else "curve"
    if wrong.any() or on_it.any():
        return f"Not separated by this {line}: {_where(wrong, on_it, line)}{_beside(outcome)}"
    separated = f"Separated by a {line}" if line == "curve" else "Separated"
    if not isinstance(model, SupportVectorMachine):
        return f"{separated}.{_nearest(outcome)}"
    return f"{separated}{_band(outcome, margins, line)}{_beside(outcome)}"


def _sizes(outcome: Outcome) -> Floats:
    """Return for each point the sum of the sizes of the terms of g."""
    model, X = outcome.model, outcome.request.points.X
    if not outcome.is_linear:
        K = np.abs(model.kernel_(X, model.support_vectors_))
        terms = K @ np.abs(np.ravel(model.dual_coef_))
    else:
        terms = np.abs(X) @ np.abs(np.ravel(model.coef_))
    return np.asarray(terms + abs(float(np.ravel(model.intercept_)[0])))


def _where(wrong: Any, on_it: Any, line: str) -> str:
    n, parts = wrong.size, []
    if wrong.any():
        verb = "is" if wrong.sum() == 1 else "are"
        parts.append(f"{wrong.sum():,} of {n:,} points {verb} on the wrong side")
    if on_it.any():
        parts.append(f"{points_are(int(on_it.sum()))} on the {line} itself")
    return f"{', '.join(parts)}."


def _band(outcome: Outcome, margins: Floats, line: str) -> str:
    """Return how wide the band is, and by how many points it is held."""
    model = outcome.model
    level = tolerance(model) if not isinstance(model, mm.LinearSVC) else tolerance(model) ** 0.5
    inside, support = int((margins < 1.0 - level).sum()), FittedModel(model).support
    parts = []
    if line == "line":
        parts.append(f"is {number(2.0 * _half_width(outcome))} wide")
        if _is_hard(outcome) and summarize(model).is_proved:
            parts.append("is the widest of all")
    if support is not None:
        parts.append(f"is held by {counted(len(support), 'point')}")
    text = f" The band {_listed(parts)}." if parts else ""
    return f".{text} {points_are(inside)} inside of it." if inside else f".{text}"


def _is_hard(outcome: Outcome) -> bool:
    return outcome.request.recipe.parameters(outcome.request.values).get("C") == np.inf


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _half_width(outcome: Outcome) -> float:
    found = summarize(outcome.model).margin
    return np.nan if found is None else found


def _nearest(outcome: Outcome) -> str:
    """Return how far the nearest point is, of a rule without a band."""
    distance = getattr(outcome.model.certificate_, "geometric_margin", None)
    if distance is None or not outcome.is_linear:
        return ""
    return f" The nearest point is {number(float(distance))} away from the line."


def _beside(outcome: Outcome) -> str:
    """Return whether a line separates, where that is known and this answer does not say it."""
    verdict = outcome.verdict
    certificate = getattr(outcome.model, "certificate_", None)
    if getattr(certificate, "refutes", False) or (verdict and verdict.separable is False):
        return f" {NO_LINE}"
    exists = verdict is not None and verdict.separable and outcome.is_linear
    points = outcome.request.points
    if exists and (outcome.model.predict(points.X) != points.labels).any():
        return " A line that separates them exists."
    return ""


def _of_many(outcome: Outcome) -> str:
    points = outcome.request.points
    wrong, n = int((outcome.model.predict(points.X) != points.labels).sum()), len(points.X)
    if not wrong:
        return f"All {n:,} points are in the region of their class."
    return (
        f"{wrong:,} of {n:,} points {'is' if wrong == 1 else 'are'} in the region of another class."
    )


def _of_tube(outcome: Outcome) -> str:
    found = regression.errors_of(outcome)
    outside = found.n_above + found.n_below
    text = (
        f"The tube is {number(2.0 * found.epsilon)} wide and holds {found.n_inside:,} of "
        f"{found.n_samples:,} targets"
    )
    if not outside:
        return f"{text}."
    return f"{text}; {found.n_above:,} above it, {found.n_below:,} below."


def _of_region(outcome: Outcome) -> str:
    X = outcome.request.points.X
    outside = int((outcome.model.predict(X) < 0).sum())
    text = f"The region holds {len(X) - outside:,} of {len(X):,} points"
    outliers = "is an outlier" if outside == 1 else "are outliers"
    return f"{text}; {outside:,} {outliers}." if outside else f"{text}."


def _unproved(outcome: Outcome) -> list[str]:
    """Return that a machine is not proved to be optimal, or how the fit of a rule ended."""
    found, model = summarize(outcome.model), outcome.model
    if str(getattr(model, "status_", "")) == mm.Status.DIVERGED:
        return ["The weights grew without bound: this is the plane of an earlier pass."]
    if found.is_proved or not FittedModel(model).is_any_machine:
        return []
    gap = found.proof.get("relative_gap")
    known = f": the gap is {100.0 * gap:.2g} % of the criterion" if gap else ""
    if gap and gap > 1.0:
        known = ": the gap is larger than the criterion"
    return [f"Not proved to be optimal{known} ({_ended(outcome, found)})."]


# Facts -------------------------------------------------------------------------------------------


def _ended(outcome: Outcome, found: Summary) -> str:
    if not outcome.overdue:
        return f"{found.ended}"
    stopped = f"stopped by the lab at {LIMITS.seconds:g} s"
    return f"{found.ended}".replace(str(mm.Status.STOPPED), stopped)


def _facts(outcome: Outcome, found: Summary, flat: bool) -> list[str]:
    """Return how the fit ended, its support vectors, and how well it fits."""
    recipe = outcome.request.recipe
    facts = [recipe.title, _ended(outcome, found), f"{1000 * outcome.seconds:.1f} ms"]
    if found.n_support is not None:
        facts.append(counted(found.n_support, "support vector"))
    if flat:  # labels would depend on rounding
        return facts
    of_family = {"regression": regression.facts, "one-class": one_class.facts}
    return [*facts, *of_family.get(recipe.family, _errors)(outcome)]


def _errors(outcome: Outcome) -> list[str]:
    """Return how many points are misclassified."""
    wrong = outcome.model.predict(outcome.request.points.X) != outcome.request.points.labels
    return [f"{int(wrong.sum())} of {len(wrong)} points misclassified"]


def _margin(outcome: Outcome, found: Summary, flat: bool) -> list[str]:
    if found.margin is None or flat or not outcome.request.recipe.has_classes:
        return []
    return [f"margin {found.margin_in_words}"]


def _verdict(outcome: Outcome, flat: bool) -> list[str]:
    """Return whether a plane separates, and whether the kernel does where no plane can."""
    if outcome.verdict is None:
        return []
    text = linear_verdict(outcome.verdict)
    if outcome.model is None or outcome.verdict.separable is not False or flat:
        return [text]
    points = outcome.request.points
    if not outcome.is_linear and (outcome.model.predict(points.X) == points.labels).all():
        return [f"No plane separates these points; the curve of this kernel does. {text}"]
    return [text]
