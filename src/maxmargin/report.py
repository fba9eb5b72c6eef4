"""One self-contained HTML page about a model: figures, certificate, tables."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import __version__, plots
from .arrays import MatrixLike
from .diagnostics import margin_report, scaling_advice, support_table
from .diagnostics.fitted_model import FittedModel, ModelLike
from .diagnostics.metrics import confusion, in_words, outlier_counts, regression_errors
from .diagnostics.summary import Summary, outlier_bound, planes, summarize
from .persistence.training_facts import training_facts
from .persistence.writing import write_bytes
from .plots.drawn import as_drawn

SHOWN_WEIGHTS = 30
SHOWN_SAMPLES = 15
# Names of features that are passed to figures.
MOST_NAMES = 100_000


@dataclass(frozen=True)
class Figure:
    """A picture of the page as a data URI, or the reason why there is none.

    Parameters
    ----------
    title, caption : str
        Heading, and the text below the picture.
    data : str or None
        The picture.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.report.Figure("Margins", "Not drawn.", None).data is None
    True
    """

    title: str
    caption: str
    data: str | None


def render(
    model: ModelLike,
    X: MatrixLike,
    y: ArrayLike | None = None,
    *,
    about: dict[str, Any] | None = None,
    data: str = "the data",
    parts: Mapping[str, ArrayLike] | None = None,
) -> str:
    """Return an HTML page about a model and its results on some rows.

    The page holds figures, the certificate and tables, and needs no other file.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends in one
        The model.
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Rows to test it on.
    y : array-like of shape (n_samples,)
        Their labels, or the targets of a regression; not used for a one-class model.
    about : dict, optional
        Facts that were stored with the model, as `persistence.about` returns them.
    data : str, default="the data"
        Name of the rows.
    parts : dict of str to array-like of bool, optional
        Masks of rows that are measured apart, by their names, such as held-out and training rows.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(kernel="linear", C=10).fit(X, y)
    >>> page = mm.report.render(model, X, y, data="six <points>")
    >>> "six &lt;points&gt;" in page
    True
    """
    from jinja2 import Environment

    found = summarize(model)
    template = resources.files("maxmargin") / "templates" / "report.html"
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        data=data,
        found=found,
        version=__version__,
        **_measured_apart(model, X, y, about or {}, parts or {}),
        advice=scaling_advice(model, X, y),
        texts=_texts(model, X, y),
        weights=_weights(model, found),
        facts=_facts(found, FittedModel(model).has_classes),
        training=training_facts(about or {}),
        prepared=_prepared(model),
        figures=list(_figures(model, X, y, about or {})),
    )


def _about_data(about: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the command line noted of the data; facts of one's own are not read."""
    data = (about or {}).get("data")
    return data if isinstance(data, dict) else {}


def _measured_apart(
    model: ModelLike,
    X: MatrixLike,
    y: ArrayLike | None,
    about: dict[str, Any],
    parts: Mapping[str, ArrayLike],
) -> dict[str, Any]:
    """Return how good the predictions are, for all rows or for parts of them."""
    found = {"": _measured(model, X, y, about)}
    if parts:
        found = {}
        for name, mask in parts.items():
            chosen = np.asarray(mask, dtype=bool)
            rows: Any = X
            rows = rows.filter(chosen) if hasattr(rows, "filter") else rows[chosen]
            labels = None if y is None else np.asarray(y)[chosen]
            found[name] = _measured(model, rows, labels, about)
    return {
        "sentences": [(name, of["sentence"]) for name, of in found.items()],
        "confusions": [(n, of["confusion"]) for n, of in found.items() if "confusion" in of],
        "meaning": next(iter(found.values()))["meaning"],
    }


def _measured(
    model: ModelLike, X: MatrixLike, y: ArrayLike | None, about: dict[str, Any]
) -> dict[str, Any]:
    """Return how good the predictions are: a sentence, and the confusion matrix of classes."""
    fitted, given = FittedModel(model), np.asarray(model.predict(X))
    meaning = "positive for the class named first"
    if fitted.has_classes:
        table = confusion(fitted.classes, [(np.asarray(y), given)])
        labels = [*table["classes"], *table["unknown_classes"]]
        return {
            "sentence": f"{table['errors']} of {table['rows']} rows on the wrong side: an error of "
            f"{in_words(table)}.",
            "confusion": list(zip(labels, table["confusion"], strict=True)),
            "meaning": meaning,
        }
    if fitted.has_targets:
        mean = _about_data(about).get("targets", {}).get("mean")
        errors = regression_errors([(np.asarray(y, dtype=float), given)], mean)
        sentence = f"{in_words(errors)} on {errors['rows']} rows."
        if mean is not None:
            sentence += (
                f" The mean of the training targets instead: {in_words(errors['baseline'])}."
            )
        return {"sentence": sentence, "meaning": "the prediction"}
    counts, nu = outlier_counts([(None, given)]), outlier_bound(fitted)
    beside = "" if nu is None else f" (ν = {nu:g})"
    return {
        "sentence": f"{counts['outliers']} of {counts['rows']} rows are outliers: "
        f"{in_words(counts)}{beside}.",
        "meaning": "positive inside of the region",
    }


def write(page: str, path: str | Path) -> None:
    """Write a page to a file; the write is atomic.

    Parameters
    ----------
    page : str
        The text of the page.
    path : str or Path
        The file.

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin as mm
    >>> path = os.path.join(tempfile.mkdtemp(), "page.html")
    >>> mm.report.write("<p>six points</p>", path)
    >>> os.path.getsize(path)
    17
    """
    write_bytes(path, page.encode("utf-8"))


def _facts(found: Summary, has_classes: bool) -> list[tuple[str, str]]:
    chosen = ", ".join(f"{name}={value}" for name, value in found.parameters.items())
    facts = [
        ("estimator", found.name),
        ("parameters", chosen or "defaults"),
        ("classes", ", ".join(map(str, found.classes)) if has_classes else None),
        ("features", str(len(found.features))),
        ("kernel", found.kernel),
        ("support vectors", None if found.n_support is None else str(found.n_support)),
        ("margin", found.margin_in_words),
        ("ε", None if found.epsilon is None else f"{found.epsilon:.6g}"),
        ("ended", found.ended),
    ]
    return [(name, value) for name, value in facts if value is not None]


def _weights(model: ModelLike, found: Summary) -> list[tuple[str, list[float]]]:
    """Return the largest weights of a linear model, one number per plane, and then its biases."""
    linear = planes(FittedModel(model))
    if linear is None:
        return []
    w, b = linear.w, linear.b
    largest = np.argsort(-np.abs(w).max(axis=0), kind="stable")[:SHOWN_WEIGHTS]
    return [*((found.features[k], w[:, k].tolist()) for k in largest), ("b", b.tolist())]


def _prepared(model: ModelLike) -> str:
    """Return the transformers before the classifier, in words."""
    return ", ".join(type(step).__name__ for step in FittedModel(model).steps)


def _figures(
    model: ModelLike, X: MatrixLike, y: ArrayLike | None, about: dict[str, Any]
) -> Iterator[Figure]:
    """Yield the figures that can be drawn of this model on these rows."""
    target = str(_about_data(about).get("target") or "y")
    drawn = as_drawn(model, X)
    clf, rows, names = drawn.model, drawn.X, list(drawn.labels[:MOST_NAMES])
    of: Any = y  # None for a one-class model only
    wanted: dict[str, tuple[Callable[[Any], str], Callable[[], Any]]] = {
        "The boundary": (_about_boundary,
                         lambda: plots.boundary(clf, rows, of, feature_names=names)),
        "The regression": (_about_regression,
                           lambda: plots.regression(clf, rows, of, feature_names=names,
                                                    target_name=target)),
        "Margins": (_about_margins, lambda: plots.margins(clf, rows, of)),
        "Convergence": (_about_convergence, lambda: plots.convergence(model)),
        "The search": (_about_search, lambda: _drawn_search(model, about)),
        "Support vectors": (_about_support, lambda: plots.support(clf, rows, of, task=0)),
    }  # fmt: skip
    for title in _titles(model, about):
        describe, draw = wanted[title]
        try:
            display = draw()
            yield Figure(title, describe(display), _drawn(display))
        # Figures that this model, or these rows, do not have.
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            yield Figure(title, f"Not drawn: {error}", None)


def _titles(model: ModelLike, about: dict[str, Any]) -> list[str]:
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


def _drawn_search(model: ModelLike, about: dict[str, Any]) -> plots.SearchDisplay:
    """Draw the search of a model, or the one that the command line has stored with it."""
    search = _search_in(model)
    if search is not None:
        return plots.search(search)
    return plots.SearchDisplay.from_record(about["search"])


def _texts(model: ModelLike, X: MatrixLike, y: ArrayLike | None) -> list[str]:
    """Return the report and the table of a machine without classes, if these rows are its own."""
    fitted = FittedModel(model)
    if fitted.has_classes:
        return []
    machine, rows = fitted.classifier, fitted.transform(X)
    labels = None if y is None else np.asarray(y)
    try:
        table = support_table(machine, rows, labels)
        text = table.to_text(SHOWN_SAMPLES, "residual" if fitted.has_targets else "score")
        return [str(margin_report(machine, rows, labels)), text.rsplit("\n…", 1)[0]]
    except ValueError:  # other rows than those of the fit, or a model of another program
        return []


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
    return f"Margins of the rows ({display.label}): errors below 0{slack}."


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
    along = display.ax_.get_xlabel().removesuffix("(x)")
    return f"α against {along}, and the conditions of optimality, for {display.table.task}."


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
