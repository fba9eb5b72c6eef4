"""The page: what a report shows, in the order in which it is read, and the file it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike

from .. import __version__
from ..arrays import MatrixLike
from ..diagnostics import margin_report, scaling_advice, support_table
from ..diagnostics.fitted_model import ModelLike
from ..diagnostics.summary import summarize
from ..persistence.training_facts import training_facts
from ..persistence.writing import write_bytes
from ..templates import rendered
from . import internals
from .checked import CheckedRows, take
from .figures import figures_of
from .measures import caution, parts_of
from .samples import row_tables
from .terms import Explained

# Rows of the table of a machine without classes.
SHOWN_SAMPLES = 15


def render(
    model: ModelLike,
    X: MatrixLike,
    y: ArrayLike | None = None,
    *,
    about: dict[str, Any] | None = None,
    data: str = "the data",
    parts: Mapping[str, ArrayLike] | None = None,
    training: ArrayLike | None = None,
) -> str:
    """Return an HTML page about a model and its results on some rows.

    The page says first how good the answers are, beside a baseline, and whether the fit is proved;
    then come figures, the certificate of every task, rows to look at, and what the model consists
    of. It needs no other file, and can be printed.

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
        Masks of rows that are measured apart, by their names, "held-out rows" and "training rows"
        for example, in the order in which they are shown.
    training : array-like of int, optional
        The rows of X that the model was fitted to, in the order of the fit. By default all rows
        where the support vectors of the model are found among them.

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
    facts = about or {}
    found = summarize(model)
    checked = CheckedRows.of(model, X, y, parts or {}, training, facts)
    fitted = checked.fitted
    return rendered(
        "report.html",
        data=data,
        found=found,
        version=__version__,
        explained=Explained(),
        parts=parts_of(checked),
        caution=caution(checked),
        figures=list(figures_of(checked)),
        proof=internals.proof_of(fitted),
        small=internals.small,
        numbers=internals.certificate_numbers(found.proof),
        rows=row_tables(checked),
        facts=internals.facts_of(found, fitted, facts),
        parameters=internals.parameters_of(fitted.classifier),
        training=training_facts(facts),
        columns=internals.prepared_columns(checked.model, checked.columns),
        n_rows=f"{len(checked):,}",
        n_columns=checked.X.shape[1],
        has_classes=fitted.has_classes,
        today=date.today().isoformat(),
        versions=_versions(),
        steps=internals.steps_of(checked.model),
        advice=scaling_advice(model, X, y),
        texts=_texts(checked),
        weights=internals.weights_of(fitted, found.features),
        meaning=_meaning(checked),
    )


def _versions() -> str:
    """Return the versions of what this report depends on."""
    names = ("maxmargin", "scikit-learn", "numpy")
    known = (__version__, sklearn.__version__, np.__version__)
    return ", ".join(f"{name} {version}" for name, version in zip(names, known, strict=True))


def _meaning(checked: CheckedRows) -> str:
    """Return what the sign of g says."""
    if checked.fitted.has_classes:
        return "positive for the class named first"
    return "the prediction" if checked.fitted.has_targets else "positive inside of the region"


def _texts(checked: CheckedRows) -> list[str]:
    """Return the report and the table of a machine without classes, on the rows of its fit."""
    fitted = checked.fitted
    if fitted.has_classes or checked.training is None:
        return []
    rows = fitted.transform(take(checked.X, checked.training))
    y = None if checked.y is None else np.asarray(checked.y)[checked.training]
    try:
        table = support_table(fitted.classifier, rows, y)
        text = table.to_text(SHOWN_SAMPLES, "residual" if fitted.has_targets else "score")
        return [str(margin_report(fitted.classifier, rows, y)), text.rsplit("\n…", 1)[0]]
    except (TypeError, ValueError):  # such as a model without its dual variables
        return []


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
