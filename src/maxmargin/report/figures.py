"""The pictures of a report, with captions that say what is drawn."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import plots
from ..diagnostics.fitted_model import FittedModel, ModelLike
from ..plots.drawn import as_drawn
from .checked import HELD_OUT, TRAINING, CheckedRows

# Names of features that are passed to figures.
MOST_NAMES = 100_000
# Figures of how a model was found.
INTERNAL = ("Convergence", "Support vectors")


@dataclass(frozen=True)
class Figure:
    """A picture of the page as a data URI, or the reason why there is none.

    Parameters
    ----------
    title, caption : str
        Heading, and the text below the picture.
    data : str or None
        The picture.
    is_internal : bool, default=False
        Whether it shows how the model was found, rather than what it answers.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.report.Figure("Margins", "Not drawn.", None).data is None
    True
    """

    title: str
    caption: str
    data: str | None
    is_internal: bool = False


def figures_of(checked: CheckedRows) -> Iterator[Figure]:
    """Yield the figures that can be drawn of a model on some rows.

    The boundary is drawn with all rows, errors with the held-out rows if there are any, support
    vectors with the rows of the fit.
    """
    model, about = checked.model, checked.about
    target = str(checked.facts.get("target") or "y")
    task = checked.fitted.classifier._worst() if _has_worst(checked.fitted) else 0
    wanted: dict[str, tuple[str, Callable[[Any], str], Callable[..., Any]]] = {
        "The boundary": ("", _about_boundary, plots.boundary),
        "The regression": (HELD_OUT, _about_regression,
                           lambda *of, **names: plots.regression(*of, **names, target_name=target)),
        "Margins": (HELD_OUT, _about_margins, _without_names(plots.margins)),
        "Support vectors": (TRAINING, _about_support, _without_names(plots.support, task=task)),
    }  # fmt: skip
    for title in _titles(model, about):
        if title in wanted:
            part, describe, draw = wanted[title]
            yield _figure(title, describe, partial(_of_rows, checked, part, draw))
        elif title == "Convergence":
            yield _figure(title, _about_convergence, lambda: (_drawn_course(checked.fitted), ""))
        else:
            yield _figure(title, _about_search, lambda: (_drawn_search(model, about), ""))


def _has_worst(fitted: FittedModel) -> bool:
    return bool(getattr(fitted.classifier, "certificates_", None))


def _drawn_course(fitted: FittedModel) -> Any:
    """Draw the course of a fit, where there is more of it than its end."""
    known = [trace for trace in (fitted.classifier.traces_ or []) if trace is not None]
    if known and max(map(len, known)) < 2:
        raise ValueError(f"the fit ended after one {known[0].unit}.")
    return plots.convergence(fitted.classifier)


def _without_names(draw: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a figure that does not take the names of features."""
    return lambda model, X, y, feature_names: draw(model, X, y, **options)


def _of_rows(checked: CheckedRows, part: str, draw: Callable[..., Any]) -> tuple[Any, str]:
    """Return a figure of some rows, and which rows they are."""
    X, y, words = checked.some(part)
    words = "" if part == TRAINING else words  # of which a task may have some only
    drawn = as_drawn(checked.model, X)
    names = list(drawn.labels[:MOST_NAMES])
    return draw(drawn.model, drawn.X, y, feature_names=names), words


def _figure(
    title: str, describe: Callable[[Any], str], draw: Callable[[], tuple[Any, str]]
) -> Figure:
    try:
        display, rows = draw()
        notes = [note for note in (getattr(display, "note", ""), rows) if note]
        remark = f" {_sentence(['; '.join(notes)])}" if notes else ""
        return Figure(title, describe(display) + remark, _drawn(display), title in INTERNAL)
    # Figures that this model, or these rows, do not have.
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        return Figure(title, f"Not drawn: {error}", None, title in INTERNAL)


def _titles(model: ModelLike, about: Mapping[str, Any]) -> list[str]:
    """Return the figures of a model."""
    fitted = FittedModel(model)
    search = ["The search"] if "search" in about or _search_in(model) is not None else []
    drawn = ["The regression"] if fitted.has_targets else ["The boundary", "Margins"]
    support = ["Support vectors"] if fitted.is_any_machine else []  # others have no KKT conditions
    return [*drawn, *search, "Convergence", *support]


def _search_in(model: ModelLike) -> Any:
    """Return the search that a model is, or in which a pipeline ends; None without one."""
    last = model[-1] if hasattr(model, "steps") else model
    return last if hasattr(last, "cv_results_") else None


def _drawn_search(model: ModelLike, about: Mapping[str, Any]) -> plots.SearchDisplay:
    """Draw the search of a model, or the one that the command line has stored with it."""
    search = _search_in(model)
    if search is not None:
        return plots.search(search)
    return plots.SearchDisplay.from_record(about["search"])


def _about_regression(display: plots.RegressionDisplay) -> str:
    seen = {
        "curve": "the function and its tube",
        "surface": "levels of the function",
        "targets": "targets over predictions, and the tube around the diagonal",
    }
    parts = [seen[display.kind], "the rows above and below the tube"]
    if display.support_ is not None:
        parts.append("support vectors (rings, by the size of α)")
    return _sentence(parts)


def _about_boundary(display: plots.BoundaryDisplay) -> str:
    """Return what is drawn, as a sentence."""
    regions = "levels of g" if display.is_region else "regions of the classes"
    seen = ["no plane, since w = 0" if display.is_flat else regions]
    if any(pieces for _, pieces in display.boundaries):
        border = "the border g = 0" if display.is_region else "the plane or surface g = 0"
        seen.append(border if len(display.names) == 2 else "their borders")
    if display.band:
        seen.append("the band |g| ≤ 1")
    if display.is_support.any():
        seen.append("support vectors (rings)")
    if display.is_wrong.any() and not display.is_region:
        seen.append("misclassified rows (crosses)")
    return _sentence(seen)


def _about_margins(display: plots.MarginsDisplay) -> str:
    if display.is_region:
        return f"Scores of the rows, {display.label}: outliers below 0."
    slack = ", slack below 1" if display.has_band else ""
    # All pairs vote: the row may have its class all the same.
    below = "the rival wins below 0" if "pair" in display.label else "errors below 0"
    return f"Margins of the rows ({display.label}): {below}{slack}."


def _about_search(display: plots.SearchDisplay) -> str:
    seen = [f"{display.score} of cross-validation", "the chosen candidate (star)"]
    return _sentence([*seen, "those within one standard error of the best"])


def _about_convergence(display: plots.ConvergenceDisplay) -> str:
    (course,) = display.courses
    seen = ["the criterion that the algorithm minimises"]
    if course.knows_gap:
        seen = ["the least primal and the largest dual so far", "the gap between them"]
    if course.has_classes:
        counts = "mistakes met, not those of one plane"
        seen.append("errors" if course.knows_errors else counts)
    return _sentence([*seen, f"after each {course.unit} of the fit: {course.name}"])


def _about_support(display: plots.SupportDisplay) -> str:
    along, table = display.ax_.get_xlabel().removesuffix("(x)"), display.table
    drawn = f"for {table.task}: its {len(table):,} training rows"
    return f"α against {along}, and the conditions of optimality, {drawn}."


def _sentence(parts: list[str]) -> str:
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _drawn(display: Any) -> str:
    """Return a figure as a data URI."""
    from matplotlib import pyplot as plt

    buffer = io.BytesIO()
    display.figure_.savefig(buffer, format="png", dpi=130, bbox_inches="tight")
    plt.close(display.figure_)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
