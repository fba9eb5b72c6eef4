"""The proof per task, the parameters, how columns were prepared, and other facts of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..diagnostics.fitted_model import FittedModel, ModelLike
from ..diagnostics.proofs import TaskProof, task_proofs, tolerance, verdict_of
from ..diagnostics.summary import Summary, changed, planes, support_by_class
from ..kernels.registry import KERNELS
from .samples import cell

# Tasks, columns and weights that are shown at once.
SHOWN_TASKS, SHOWN_COLUMNS, SHOWN_WEIGHTS, SHOWN_WORDS = 12, 40, 30, 12
# Numbers of a certificate below this are not told apart: rounding decides them.
LEAST = 1e-9
# Parameters that are shown where they have their defaults, and those of some kernels only.
OF_KERNELS = ("gamma", "degree", "coef0", "sigma")
MATTER = (
    "C", "nu", "epsilon", "kernel", *OF_KERNELS, "loss", "penalty", "tol", "max_iter",
    "class_weight", "multi_class", "fit_intercept", "bias", "update", "learning_rate",
)  # fmt: skip


@dataclass(frozen=True)
class Proof:
    """What is proved, and of which tasks.

    Parameters
    ----------
    verdict : str
        In a few words, of all tasks.
    is_proved : bool
        Whether the certificates of all tasks hold, for all rows.
    tol : str
        The tolerance to which they should hold.
    worst, others : list of TaskProof
        The tasks, the worst first, and those that are folded.
    has_gaps : bool
        Whether there are duality gaps.
    """

    verdict: str
    is_proved: bool
    tol: str
    worst: list[TaskProof]
    others: list[TaskProof]
    has_gaps: bool


def proof_of(fitted: FittedModel) -> Proof:
    """Return what the certificates prove, the worst tasks first."""
    proofs = task_proofs(fitted)
    by_gap = fitted.classifier._ranked_by == "relative_gap"
    ranked = sorted(proofs, key=lambda each: (each.is_proved, -_distance(each, by_gap)))
    return Proof(
        verdict=verdict_of(proofs),
        is_proved=bool(proofs) and all(proof.is_proved for proof in proofs),
        tol=f"{tolerance(fitted.classifier):g}",
        worst=ranked[:SHOWN_TASKS],
        others=ranked[SHOWN_TASKS:],
        has_gaps=any(proof.gap is not None for proof in proofs),
    )


def _distance(proof: TaskProof, by_gap: bool) -> float:
    """Return what `certificate_` is chosen by, the larger the worse."""
    return proof.gap if by_gap and proof.gap is not None else proof.violation


def small(value: float | None) -> str:
    """Return a gap or a violation; what rounding decides is no finding.

    >>> small(2.1e-16), small(0.0123), small(None), small(float("inf"))
    ('< 1e-09', '0.012', '–', '∞')
    """
    if value is None or np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞"
    return f"< {LEAST:.0e}" if value < LEAST else f"{value:.2g}"


def certificate_numbers(proof: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the numbers of the worst certificate in words."""
    return [(name.replace("_", " "), _shown(name, value)) for name, value in proof.items()]


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "–" if value is None else str(value)
    if isinstance(value, float) and name not in ("primal", "dual", "norm"):
        return small(value) if 0.0 <= value < LEAST else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.8g}"


def facts_of(
    found: Summary, fitted: FittedModel, about: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return what the model is, by the terms that the page explains."""
    facts = [
        ("estimator", found.name),
        ("classes", _some(map(str, found.classes)) if fitted.has_classes else None),
        ("features", f"{len(found.features):,}"),
        ("kernel", found.kernel),
        ("approximation", found.approximation),
        ("tasks", f"{found.n_tasks:,}" if found.n_tasks > 1 else None),
        ("support vectors", _support(found, fitted)),
        ("margin", found.margin_in_words),
        ("ε", None if found.epsilon is None else f"{found.epsilon:.6g}"),
        ("ended", found.ended),
        ("fit time", f"{about['seconds']:.3g} s" if "seconds" in about else None),
    ]
    return [(name, str(value)) for name, value in facts if value is not None]


def _support(found: Summary, fitted: FittedModel) -> str | None:
    """Return how many support vectors there are, by class where the model knows."""
    if found.n_support is None:
        return None
    counts = support_by_class(fitted)
    if counts is None:
        return f"{found.n_support:,}"
    each = (f"{n:,} of {label}" for label, n in zip(fitted.class_names, counts, strict=True))
    return f"{found.n_support:,}: {_some(each)}"


def _some(words: Any) -> str:
    listed = [*words]
    more = f", … ({len(listed)} in all)" if len(listed) > SHOWN_WORDS else ""
    return ", ".join(listed[:SHOWN_WORDS]) + more


def parameters_of(clf: Any) -> list[tuple[str, str, bool]]:
    """Return parameters by name and value, and whether they were given: those come first."""
    given, own = changed(clf), clf.get_params()
    kernel = KERNELS.get(own["kernel"]) if isinstance(own.get("kernel"), str) else None
    has_effect = set(getattr(kernel, "__dataclass_fields__", OF_KERNELS))
    usual = [
        name for name in MATTER
        if name in own and name not in given and (name not in OF_KERNELS or name in has_effect)
    ]  # fmt: skip
    return [(name, _parameter(own[name]), name in given) for name in (*given, *usual)]


def _parameter(value: Any) -> str:
    return "None" if value is None else cell(value)


def weights_of(fitted: FittedModel, names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the largest weights of a linear model, one number per plane, and then its biases."""
    linear = planes(fitted)
    if linear is None:
        return []
    w, b = linear.w, linear.b
    largest = np.argsort(-np.abs(w).max(axis=0), kind="stable")[:SHOWN_WEIGHTS]
    unit = 1e-12 * float(np.abs(w).max(initial=0.0))
    lines = [(names[k], w[:, k]) for k in largest.tolist()]
    return [
        (cell(name), [f"{x:.6g}" if abs(x) > unit else "0" for x in values.tolist()])
        for name, values in [*lines, ("b", b)]
    ]


# Preparation --------------------------------------------------------------------------------------


def steps_of(model: ModelLike) -> str:
    """Return the transformers before the classifier, in words."""
    return ", ".join(type(step).__name__ for step in FittedModel(model).steps)


def prepared_columns(model: ModelLike, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return what becomes of every column, where an encoder of maxmargin prepares them."""
    for step in FittedModel(model).steps[:1]:
        if hasattr(step, "categories_") and len(step.categories_) == len(columns):
            return _prepared(step, columns)
    return []


def _prepared(encoder: Any, columns: Sequence[str]) -> list[tuple[str, str]]:
    texts, place, found = list(getattr(encoder, "text_columns_", ())), 0, []
    for k, name in enumerate(columns[:SHOWN_COLUMNS]):
        words, fill = encoder.categories_[k], encoder.fill_[k]
        if k in texts:
            found.append(
                (cell(name), f"tf-idf of {len(encoder.vocabulary_[texts.index(k)]):,} words")
            )
            continue
        if words is None:
            how = _scaled(float(encoder.mean_[place]), float(encoder.scale_[place]))
        else:
            how = f"0/1 columns of {len(words)} categories: {_some(map(cell, words))}"
        if fill is not None:
            how += f"; missing values become {cell(fill)}"
        place += 1 if words is None else len(words)
        found.append((cell(name), how))
    return found


def _scaled(mean: float, scale: float) -> str:
    if mean == 0.0 and scale == 1.0:
        return "as it is"
    return f"divided by {scale:.4g}" if mean == 0.0 else f"less {mean:.4g}, divided by {scale:.4g}"
