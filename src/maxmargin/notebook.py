"""A fitted estimator in a notebook: its certificate, its support vectors, a small picture.

`estimators.notebook` adds this below scikit-learn's diagram. It is quick, whatever the size of the
model, keeps nothing, and never opens a figure.
"""

from __future__ import annotations

import base64
import io
import warnings
from typing import Any

import numpy as np

from .arrays import Labels, MatrixLike
from .diagnostics.fitted_model import FittedModel
from .diagnostics.proofs import TaskProof, task_proofs, verdict_of
from .diagnostics.summary import (
    approximation_in_words,
    ending,
    kernel_in_words,
    support_by_class,
)
from .estimators.fitting import is_fitted
from .templates import rendered

# Kernel values that a picture may take: a tenth of a second.
MOST_KERNEL_VALUES = 10_000_000
# Points of the picture along each axis, and its size.
RESOLUTION, INCHES, DPI = 100, (4.6, 2.6), 96
# Classes whose support vectors are counted in words.
SHOWN_CLASSES = 12


def described(clf: Any) -> str:
    """Return what was proved of a fitted estimator as HTML; nothing before a fit.

    Parameters
    ----------
    clf : estimator
        An estimator of maxmargin.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> "Support vectors: 3: 1 of -1, 2 of 1" in described(mm.SVC(kernel="linear", C=10).fit(X, y))
    True
    """
    if not is_fitted(clf):
        return ""
    fitted = FittedModel(clf)
    proofs = task_proofs(fitted)
    picture = _picture(fitted)
    return rendered(
        "notebook.html",
        is_proved=bool(proofs) and all(proof.is_proved for proof in proofs),
        verdict=_verdict(fitted, proofs),
        certificate=str(fitted.classifier.certificate_) if proofs else "",
        facts=_facts(fitted, proofs),
        picture=picture,
        caption="The regions of the model and its support vectors; other rows are not kept."
        if fitted.has_classes
        else "Levels of g(x) and the support vectors; other rows are not kept.",
    )


def _verdict(fitted: FittedModel, proofs: list[TaskProof]) -> str:
    """Return what is proved of all tasks, and which of several the certificate is of."""
    found = verdict_of(proofs)
    if len(proofs) > 1:
        found += f"; the worst, {proofs[fitted.classifier._worst()].name}"
    return found


def _facts(fitted: FittedModel, proofs: list[TaskProof]) -> list[tuple[str, str]]:
    clf = fitted.classifier
    facts = [
        ("Support vectors", _support(fitted)),
        ("Kernel", kernel_in_words(fitted) or ""),
        ("Approximation", approximation_in_words(fitted) or ""),
        ("Ended", ending(clf) if proofs else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _support(fitted: FittedModel) -> str:
    """Return how many support vectors there are, by class where the model knows."""
    if fitted.support is None:
        return ""
    n, labels = len(fitted.support), fitted.class_names
    text = f"{n:,}"
    counts = support_by_class(fitted)
    if counts is None:
        return text
    shown = [f"{count:,} of {label}" for label, count in zip(labels, counts, strict=True)]
    more = f", … ({len(shown)} classes)" if len(shown) > SHOWN_CLASSES else ""
    return f"{text}: {', '.join(shown[:SHOWN_CLASSES])}{more}"


def _picture(fitted: FittedModel) -> str | None:
    """Return boundary and support vectors of two features as a data URI, None without them."""
    clf = fitted.classifier
    vectors = getattr(clf, "support_vectors_", None)
    if vectors is None or fitted.has_targets or vectors.shape[1] != 2 or not vectors.shape[0]:
        return None
    if vectors.shape[0] * RESOLUTION**2 > MOST_KERNEL_VALUES:
        return None
    labels = None
    if fitted.has_classes:
        counts = support_by_class(fitted)
        if counts is None:
            return None
        labels = np.repeat(fitted.classes, counts)
    try:
        return _drawn(clf, vectors, labels)
    # Whatever a library for figures raises: the words are shown without a picture.
    except Exception:
        return None


def _drawn(clf: Any, vectors: MatrixLike, labels: Labels | None) -> str:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from .plots import boundary

    # Not one of pyplot's figures, which it would keep and notebooks would show.
    figure = Figure(figsize=INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        display = boundary(
            clf, vectors, labels, ax=figure.subplots(), resolution=RESOLUTION,
            max_points=vectors.shape[0], legend=labels is None or len(set(labels.tolist())) <= 10,
        )  # fmt: skip
        display.ax_.set_title("")  # it counts errors, of the support vectors alone
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI, bbox_inches="tight")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
