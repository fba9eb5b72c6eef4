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

from ..arrays import Floats
from ..kernels import Linear
from ..multiclass import Kesler, OneVsOne
from ..persistence.files import OURS
from ..progress import counted
from . import margin_report

# Of sums, relative to the sum of the sizes of their terms.
ROUNDING = 1e-15
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
        Both are the same for the hard margin; `margin_in_words` says which it is.
    status, n_iter
        Which rule ended the task of the worst certificate, and steps or passes of the longest one.
    ended : str or None
        How the fit ended, in words: the rule, and what it counts.
    certificate : str or None
        The proof in words; None of a model that another program has trained.
    proof : dict
        The numbers of the certificate.
    holds : bool or None
        Whether those of all tasks hold: what the estimator promises.
    n_tasks : int
        Tasks of the fit; the certificate is that of the worst.
    coverage : {"complete", "bounded", "sampled"}
        Which rows the certificates are about, as of `MarginCertificate`: the weakest of all tasks.
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
    ended: str | None
    certificate: str | None
    proof: dict[str, Any]
    holds: bool | None
    n_tasks: int = 1
    coverage: str = "complete"

    @property
    def is_proved(self) -> bool:
        """Whether the certificate holds, and is about all samples: not of a random sample."""
        return bool(self.holds) and self.coverage != "sampled"

    @property
    def verdict(self) -> str:
        """What the certificate is worth, in a sentence."""
        if not self.holds:
            return (
                "It does not prove what the estimator promises: the fit ended before, or there is "
                "no such plane."
            )
        if not self.is_proved:
            return "It was checked on a sample of the rows only: it is no proof for all of them."
        return "It proves what the estimator promises."

    @property
    def margin_in_words(self) -> str | None:
        """The margin, and what it is."""
        if self.margin is None:
            return None
        if "primal" in self.proof:
            of = f", the narrowest of {len(self.planes)}" if len(self.planes) > 1 else ""
            return f"{self.margin:.6g} (1/‖w‖, half the width of the band{of})"
        where = "" if self.kernel is None else ", in the space of the kernel"
        return f"{self.margin:.6g} (smallest distance of a training sample{where})"


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
        ended=ending(clf) if certificates else None,
        certificate=str(certificate) if certificates else None,
        proof=asdict(certificate) if certificates else {},
        holds=_holds(clf) if certificates else None,
        n_tasks=len(certificates) if certificates else 1,
        coverage=_coverage(certificates or []),
    )


def ending(clf: Any) -> str:
    """Return how a fit ended: which rule, and after how many steps, passes or rounds.

    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> ending(mm.Perceptron(shuffle=False).fit(X, y))
    'converged after 2 passes'
    """
    statuses = Counter(str(status) for status in clf.statuses_)
    counts = np.ravel(clf.n_iter_)
    k = int(np.argmax(counts)) if counts.size == len(clf.traces_) else 0
    longest = clf.traces_[k] if counts.size == len(clf.traces_) else clf.trace_
    unit = "iteration" if longest is None else longest.unit
    length = counted(int(counts.max()), "step" if unit == "round" else unit)
    if unit == "round":
        length += f" in {counted(len(longest), unit)}"
    n_tasks = len(clf.statuses_)
    if n_tasks == 1:
        return f"{clf.status_} after {length}"
    of = {status: "all" if n == n_tasks else f"{n} of" for status, n in statuses.items()}
    each = ", ".join(f"{status} ({which} {n_tasks} tasks)" for status, which in of.items())
    return f"{each}; the longest task took {length}"


def linear_verdict(report: Any) -> str:
    """Return a verdict of `separability` in words that no kernel contradicts.

    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> linear_verdict(mm.separability(X, y))[:23]
    'not linearly separable:'
    """
    return re.sub(r"^(not )?separable", r"\1linearly separable", str(report))


def smallest_distance(clf: Any, X: Any, y: Any) -> float | None:
    """Return the smallest signed distance of a training sample to the planes of its tasks.

    Distances are in the space of the features, or of the kernel; negative on the wrong side. None
    where ‖w‖ is not known, or is 0.
    """
    if hasattr(clf.certificate_, "geometric_margin"):
        return _margin(clf, clf.certificate_)
    linear = planes(clf)
    if linear is None and len(clf.support_) > PAIRS:
        return None
    names = [str(name) for name in clf.classes_]
    codes, scores = np.searchsorted(clf.classes_, np.asarray(y)), clf._scores(X)
    if isinstance(clf._reduction(), Kesler):
        assert linear is not None
        return _joint_distance(scores, linear[0], codes)
    try:
        norms = np.linalg.norm(linear[0], axis=1) if linear is not None else _norms(clf)
    except (ValueError, TypeError):  # given kernel values are not kept
        return None
    if not (norms > _rounded_norm(clf)).all():
        return None
    tasks = clf._reduction().tasks(codes, np.arange(len(codes)), names)
    return min(
        float((task.labels * scores[task.rows, k]).min() / norms[k]) for k, task in enumerate(tasks)
    )


def _norms(clf: Any) -> Floats:
    return np.array([task.norm for task in margin_report(clf).tasks])


def _joint_distance(scores: Floats, w: Floats, codes: Any) -> float | None:
    """Return the smallest distance to the plane between the own class and another."""
    rows = np.arange(len(codes))
    lead = scores[rows, codes][:, np.newaxis] - scores
    norms = np.array([np.linalg.norm(w - own, axis=1) for own in w])[codes]
    lead[rows, codes], norms[rows, codes] = np.inf, 1.0
    return float((lead / norms).min()) if (norms > 0).all() else None


def _rounded_norm(clf: Any) -> float:
    """Return what rounding may make of ‖w‖ = 0, a sum of support vectors that cancel."""
    vectors = getattr(clf, "support_vectors_", None)
    if vectors is None or vectors.shape[0] == 0:
        return 0.0
    longest = float(np.sqrt(np.abs(clf.kernel_.diagonal(vectors)).max()))
    # ‖w‖² of a kernel is known to rounding, and ‖w‖ to its root only.
    unit = ROUNDING if isinstance(clf.kernel_, Linear) else np.sqrt(ROUNDING)
    return float(unit * abs(clf.dual_coef_).sum() * longest)


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
        return min(float(each.geometric_margin) for each in clf.certificates_)
    if not hasattr(certificate, "primal") or clf.support_.size > PAIRS:
        return None
    if getattr(clf, "multi_class", "") == "crammer_singer" and len(clf.classes_) > 2:
        return None
    coef = planes(clf)
    if coef is not None:
        norms = np.linalg.norm(coef[0], axis=1)
        return float(1.0 / norms.max()) if norms.max() > _rounded_norm(clf) else None
    try:
        norms = _norms(clf)
    except (ValueError, TypeError):  # given kernel values are not kept
        return None
    known = norms[norms > _rounded_norm(clf)]
    return float(1.0 / known.max()) if known.size else None


def _shortened(text: str) -> str:
    """Return text whose numbers have six digits at most."""
    return re.sub(r"\d+\.\d{6,}(e[-+]\d+)?", lambda found: f"{float(found[0]):.6g}", text)


def _holds(clf: Any) -> bool:
    tol = getattr(clf, "tol", 1e-6)
    return all(bool(certificate.holds(tol)) for certificate in clf.certificates_)


def _coverage(certificates: Iterable[Any]) -> str:
    """Return the weakest coverage; separating rules recompute all rows."""
    known = [getattr(certificate, "coverage", "complete") for certificate in certificates]
    return max(known, key=("complete", "bounded", "sampled").index, default="complete")


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
