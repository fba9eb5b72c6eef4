"""A fitted model in words and numbers: what the command line prints and a report shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .diagnostics import margin_report
from .multiclass import OneVsOne
from .persistence.files import OURS
from .samples import Floats

# Support vectors up to which ‖w‖ is summed up over all pairs of them.
PAIRS = 4000
# Weights up to which all of them are laid out.
MANY = 50_000_000


@dataclass(frozen=True)
class Summary:
    """What a fitted model is; see `summarize`.

    Parameters
    ----------
    name : str
        The estimator.
    parameters : dict
        Those that differ from their defaults.
    classes : ndarray of shape (n_classes,)
    features : list of str
        What the planes are drawn through: columns after their preparation.
    kernel : str or None
    planes : list of str
        What each plane tells from what.
    n_support : int or None
    margin : float or None
        Half the width of the narrowest band of a support vector machine, 1/‖w‖; of other algorithms
        the smallest distance of a sample to its plane, negative where one is on the wrong side.
        Both are the same for the hard margin.
    status, n_iter
        Which rule ended the fit, and after how many steps.
    certificate : str or None
        The proof in words; None of a model that another program has trained.
    proof : dict
        The numbers of the certificate.
    holds : bool or None
        Whether it proves what the estimator promises.
    """

    name: str
    parameters: dict[str, Any]
    classes: NDArray[Any]
    features: Sequence[str]
    kernel: str | None
    planes: list[str]
    n_support: int | None
    margin: float | None
    status: str | None
    n_iter: int | None
    certificate: str | None
    proof: dict[str, Any]
    holds: bool | None


def machine_of(model: Any) -> Any:
    """Return the classifier itself, which a pipeline holds at its end."""
    check_is_fitted(model)
    return model[-1] if isinstance(model, Pipeline) else model


def summarize(model: Any) -> Summary:
    """Say of a fitted estimator, or a pipeline that ends in one, what came out.

    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> found = summarize(mm.SVC(C=float("inf"), kernel="linear").fit(X, y))
    >>> found.n_support, round(found.margin, 6), found.planes
    (3, 2.572479, ['1 against -1'])
    """
    clf = machine_of(model)
    certificates = getattr(clf, "certificates_", None)
    certificate: Any = clf.certificate_ if certificates else None
    return Summary(
        name=type(clf).__name__,
        parameters=changed(clf),
        classes=clf.classes_,
        features=feature_names(model),
        kernel=_shortened(repr(clf.kernel_)) if hasattr(clf, "kernel_") else None,
        planes=plane_names(clf),
        n_support=len(clf.support_) if hasattr(clf, "support_") else None,
        margin=_margin(clf, certificate),
        status=str(clf.status_) if certificates else None,
        n_iter=int(np.max(clf.n_iter_)) if hasattr(clf, "n_iter_") else None,
        certificate=str(certificate) if certificates else None,
        proof=asdict(certificate) if certificates else {},
        holds=_holds(clf) if certificates else None,
    )


def changed(clf: Any) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    usual = type(clf)().get_params()
    hidden = ("callback", "verbose")
    return {
        name: value
        for name, value in clf.get_params().items()
        if name not in hidden and not _same(value, usual[name])
    }


def feature_names(model: Any) -> Sequence[str]:
    """Return the names of the features of the classifier itself."""
    clf = machine_of(model)
    names = None
    if isinstance(model, Pipeline) and len(model) > 1:
        try:
            names = model[:-1].get_feature_names_out()
        except (AttributeError, ValueError):  # a step that cannot tell
            names = None
    names = names if names is not None else getattr(clf, "feature_names_in_", None)
    if names is None:
        return Numbered(clf.n_features_in_)
    return [str(name) for name in names]


@dataclass(frozen=True)
class Drawn:
    """A model and rows as figures show them, with names of features and what axes call them."""

    model: Any
    X: Any
    names: Sequence[str]
    labels: Sequence[str]


def as_drawn(model: Any, X: Any) -> Drawn:
    """Return what figures show of a model on some rows.

    Two columns of numbers are drawn in their own units, through the whole pipeline; otherwise
    figures are in the features of the classifier itself, and axes say which are scaled.
    """
    names = feature_names(model)
    if not isinstance(model, Pipeline) or len(model) == 1:
        return Drawn(machine_of(model), X, names, names)
    X = X if hasattr(X, "shape") else np.asarray(X)
    if X.shape[1] == 2 and not sparse.issparse(X):
        rows = X.to_numpy() if hasattr(X, "to_numpy") else X
        if rows.dtype.kind in "fiub":
            names = [str(name) for name in getattr(model, "feature_names_in_", Numbered(2))]
            return Drawn(model, X, names, names)
    return Drawn(machine_of(model), model[:-1].transform(X), names, _labels(model, names))


def _labels(model: Pipeline, names: Sequence[str]) -> Sequence[str]:
    scale = getattr(model[-2], "scale_", None)
    if scale is None or isinstance(names, Numbered):
        return names
    pairs = zip(names, scale, strict=True)
    return [f"{name} (scaled)" if factor != 1 else name for name, factor in pairs]


class Numbered(Sequence[str]):
    """x0, x1, … for features without names, of which there may be millions: made when asked for.

    >>> list(Numbered(10**9)[:2])
    ['x0', 'x1']
    """

    def __init__(self, n: int) -> None:
        self.places = range(n)

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, k: Any) -> Any:
        return [f"x{j}" for j in self.places[k]] if isinstance(k, slice) else f"x{self.places[k]}"


def plane_names(clf: Any) -> list[str]:
    """Return what each plane tells from what: the class of its positive side first."""
    names = [str(name) for name in clf.classes_]
    if len(names) == 2:
        return [f"{names[1]} against {names[0]}"]
    reduction = clf._reduction()
    if isinstance(reduction, OneVsOne):
        return [f"{names[i]} against {names[j]}" for i, j in reduction.pairs(len(names))]
    joint = clf.multi_class in ("kesler", "crammer_singer")
    return names if joint else [f"{name} against the rest" for name in names]


def planes(model: Any) -> tuple[Floats, Floats] | None:
    """Return w (n_planes, n_features) and b of a linear model, None of another."""
    clf = machine_of(model)
    coef = getattr(clf, "coef_", None)
    if coef is None or coef.shape[0] * coef.shape[1] > MANY:
        return None
    coef = coef.toarray() if sparse.issparse(coef) else coef
    return np.asarray(coef, dtype=np.float64), np.asarray(clf.intercept_, dtype=np.float64)


def _margin(clf: Any, certificate: Any) -> float | None:
    if certificate is None:
        return None
    if hasattr(certificate, "geometric_margin"):
        return float(certificate.geometric_margin)
    if not hasattr(certificate, "primal") or clf.support_.size > PAIRS:
        return None
    if getattr(clf, "multi_class", "") == "crammer_singer" and len(clf.classes_) > 2:
        return None
    coef = planes(clf)
    if coef is not None:
        norms = np.linalg.norm(coef[0], axis=1)
        return float(1.0 / norms.max()) if norms.max() > 0 else None
    try:
        widths = [task.width for task in margin_report(clf).tasks]
    except (ValueError, TypeError):  # given kernel values are not kept
        return None
    return float(np.nanmin(widths)) / 2.0 if np.isfinite(widths).any() else None


def _shortened(text: str) -> str:
    """Return text whose numbers have six digits at most."""
    return re.sub(r"\d+\.\d{6,}(e[-+]\d+)?", lambda found: f"{float(found[0]):.6g}", text)


def _holds(clf: Any) -> bool:
    tol = getattr(clf, "tol", 1e-6)
    return all(bool(certificate.holds(tol)) for certificate in clf.certificates_)


def _same(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(np.all(a == b))
    except (TypeError, ValueError):
        return False


def training_facts(about: Mapping[str, Any]) -> dict[str, str]:
    """Return in words what a model file says of its training, whoever wrote it."""
    try:
        return _facts_of_fit(about)
    except (KeyError, TypeError, ValueError, AttributeError):
        return {str(name): str(fact) for name, fact in about.items() if name not in OURS}


def _facts_of_fit(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what the command line writes."""
    data = about["data"]
    rows, classes = about.get("training_rows", data["rows"]), data["classes"].items()
    facts = {
        "trained on": f"{data['source']}: {rows} of {data['rows']} rows, {data['columns']} columns",
        "target": str(data["target"] or "in front"),
        "rows of classes": _some([f"{label} ({count})" for label, count in classes]),
        "training error": f"{100 * about['training_error']:.2f} %",
    }
    if "test" in about:
        test = about["test"]
        facts["test error"] = f"{100 * test['error']:.2f} % of {test['rows']} rows"
    if "cv" in about:
        facts["cross-validation"] = f"{100 * about['cv']['error']:.2f} %"
    if "seconds" in about:
        facts["time"] = f"{about['seconds']:.3g} s"
    if "date" in about:
        facts["date"] = str(about["date"])
    if "maxmargin_version" in about:
        facts["written by"] = f"maxmargin {about['maxmargin_version']}"
    return facts


def _some(words: list[str]) -> str:
    return ", ".join(words[:12]) + (", …" if len(words) > 12 else "")


def confusion(classes: Any, pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Count what true labels (rows) were taken for (columns), over pairs of arrays of labels.

    True labels that the model does not know have rows of their own, after its classes.

    >>> found = confusion(["a", "b"], [(np.array(["a", "b", "c"]), np.array(["a", "a", "b"]))])
    >>> found["confusion"], found["errors"], found["unknown_classes"]
    ([[1, 0], [1, 0], [0, 1]], 2, ['c'])
    """
    counts: Counter[tuple[str, str]] = Counter()
    for truth, given in pairs:
        counts.update(zip(map(str, truth.tolist()), map(str, given.tolist()), strict=True))
    known = [str(label) for label in classes]
    unknown = sorted({truth for truth, _ in counts} - set(known))
    n = sum(counts.values())
    errors = sum(count for (truth, given), count in counts.items() if truth != given)
    matrix = [[counts[truth, given] for given in known] for truth in [*known, *unknown]]
    return {
        "rows": n, "errors": errors, "error": errors / n, "classes": known,
        "unknown_classes": unknown, "confusion": matrix,
    }  # fmt: skip
