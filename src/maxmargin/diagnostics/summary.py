"""A fitted model in words and numbers, for the command line, the report and the lab."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats, Integers, Labels, MatrixLike
from ..kernels import Linear
from ..progress import counted
from . import margin_report
from .fitted_model import FittedModel, ModelLike, Planes
from .proofs import sentence, tolerance, weakest_coverage

# Relative to the sum of the sizes of the terms of a sum.
SUM_ROUNDING = 1e-15
# Support vectors up to which ‖w‖ is summed over all pairs of them.
MOST_PAIRED_VECTORS = 4000
# Weights up to which the planes are made dense.
MOST_WEIGHTS = 50_000_000


@dataclass(frozen=True)
class Summary:
    """A fitted model in words and numbers; what `summarize` returns.

    Parameters
    ----------
    name : str
        The estimator.
    parameters : dict
        Those that differ from their defaults.
    classes : ndarray of shape (n_classes,)
    features : sequence of str
        Features of the planes: columns after the steps of a pipeline.
    kernel : str or None
    planes : list of str
        The classes that each plane separates.
    n_support : int or None
    margin : float or None
        Half the width of the narrowest band of a support vector machine, 1/‖w‖; for other
        algorithms the smallest distance of a sample to its plane, negative where one is on the
        wrong side. Both are equal for the hard margin; `margin_in_words` says which it is. None of
        models without classes.
    status, n_iter
        The rule that ended the task of the worst certificate, and iterations of the longest task.
    ended : str or None
        How the fit ended, in words.
    certificate : str or None
        The certificate in words; None for a model that another program has trained.
    proof : dict
        The numbers of the certificate.
    holds : bool or None
        Whether the certificates of all tasks hold.
    n_tasks : int
        Tasks of the fit; the certificate is that of the worst.
    coverage : {"complete", "bounded", "sampled"}
        The rows that the certificates cover, as in `MarginCertificate`: the weakest of all tasks.
    epsilon : float or None
        Half the width of the tube of a regression; None where another program has trained it.
    approximation : str or None
        What the kernel was approximated by, how well, and what the certificate is about then; None
        of other models.
    """

    name: str
    parameters: dict[str, Any]
    classes: Labels
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
    epsilon: float | None = None
    approximation: str | None = None

    @property
    def is_proved(self) -> bool:
        """Whether the certificate holds, and covers all rows rather than a random sample."""
        return bool(self.holds) and self.coverage != "sampled"

    @property
    def verdict(self) -> str:
        """What the certificate proves, in a sentence."""
        return sentence(self.holds, self.coverage)

    @property
    def margin_in_words(self) -> str | None:
        """The margin in words, with its definition."""
        if self.margin is None:
            return None
        if "primal" in self.proof:
            of = f", the narrowest of {len(self.planes)}" if len(self.planes) > 1 else ""
            return f"{self.margin:.6g} (1/‖w‖, half the width of the band{of})"
        where = "" if self.kernel is None else ", in the space of the kernel"
        return f"{self.margin:.6g} (smallest distance of a training sample{where})"


def summarize(model: ModelLike) -> Summary:
    """Describe a fitted estimator, or a pipeline or search that ends in one.

    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> found = summarize(mm.SVC(C=float("inf"), kernel="linear").fit(X, y))
    >>> found.n_support, round(found.margin, 6), found.planes
    (3, 2.572479, ['1 against -1'])
    """
    fitted = FittedModel(model)
    clf = fitted.classifier
    certificates = getattr(clf, "certificates_", None)
    certificate: Any = clf.certificate_ if certificates else None
    return Summary(
        name=fitted.name,
        parameters=changed(clf),
        classes=fitted.classes,
        features=fitted.feature_names,
        kernel=kernel_in_words(fitted),
        planes=fitted.plane_names,
        n_support=None if fitted.support is None else len(fitted.support),
        margin=_margin(fitted),
        status=str(clf.status_) if certificates else None,
        n_iter=int(np.max(clf.n_iter_)) if hasattr(clf, "n_iter_") else None,
        ended=ending(clf) if certificates else None,
        certificate=str(certificate) if certificates else None,
        proof={} if certificate is None else asdict(certificate),
        holds=_holds(clf) if certificates else None,
        n_tasks=len(certificates) if certificates else 1,
        coverage=weakest_coverage(certificates or []),
        epsilon=fitted.epsilon,
        approximation=approximation_in_words(fitted),
    )


def approximation_in_words(fitted: FittedModel) -> str | None:
    """Return what a kernel was approximated by, and what is certified then.

    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(approximate="nystroem", n_components=6, random_state=0).fit(X, y)
    >>> approximation_in_words(FittedModel(model))[:32]
    'Nyström, 6 landmarks → 6 feature'
    """
    if not fitted.is_approximated:
        return None
    clf = fitted.classifier
    n, (rms, largest) = clf.feature_coef_.shape[1], clf.kernel_error_
    how = f"random Fourier, {n} features"
    if hasattr(clf, "landmarks_"):
        how = f"Nyström, {clf.landmarks_.shape[0]} landmarks → {n} features"
    return (
        f"{how}; certified is the optimum in the space of these features; their kernel differs "
        f"from the one above by {rms:.2g} (root mean square; at most {largest:.2g}) in a sample"
    )


def kernel_in_words(fitted: FittedModel) -> str | None:
    """Return the kernel with its numbers rounded to six digits; None without one."""
    if fitted.kernel is None:
        return None
    text = repr(fitted.kernel)
    return re.sub(r"\d+\.\d{6,}(e[-+]\d+)?", lambda found: f"{float(found[0]):.6g}", text)


def support_by_class(fitted: FittedModel) -> list[int] | None:
    """Return the number of support vectors of every class; None where the model has no such."""
    counts = np.ravel(getattr(fitted.classifier, "n_support_", []))
    known = fitted.has_classes and counts.size == len(fitted.classes)
    return [int(count) for count in counts] if known else None


def ending(clf: ModelLike) -> str:
    """Return how a fit ended: the rule, and the number of steps, passes or rounds.

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


def outlier_bound(fitted: FittedModel) -> float | None:
    """Return ν of a one-class machine; None where another program has trained it."""
    clf = fitted.classifier
    return float(clf.nu) if getattr(clf, "certificates_", None) else None


def linear_verdict(report: object) -> str:
    """Return a result of `separability` in words that say it is about planes.

    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> linear_verdict(mm.separability(X, y))[:23]
    'not linearly separable:'
    """
    return re.sub(r"^(not )?separable", r"\1linearly separable", str(report))


def smallest_distance(model: ModelLike, X: MatrixLike, y: ArrayLike) -> float | None:
    """Return the smallest signed distance of a training sample to the planes of its tasks.

    Distances are in the space of the features, or of the kernel; negative on the wrong side. None
    where ‖w‖ is unknown or 0.
    """
    fitted = FittedModel(model)
    clf = fitted.classifier
    if hasattr(clf.certificate_, "geometric_margin"):
        return _margin(fitted)
    if not fitted.is_linear and len(clf.support_) > MOST_PAIRED_VECTORS:
        return None
    codes, scores = np.searchsorted(fitted.classes, np.asarray(y)), clf._scores(X)
    linear = planes(fitted)
    if fitted.scheme == "joint":
        assert linear is not None
        return _joint_distance(scores, linear.w, codes)
    norms = _norms(fitted, linear)
    if norms is None or not (norms > _rounded_norm(fitted)).all():
        return None
    tasks = fitted.reduction.tasks(codes, np.arange(len(codes)), fitted.class_names)
    return min(
        float((task.labels * scores[task.rows, k]).min() / norms[k]) for k, task in enumerate(tasks)
    )


def _norms(fitted: FittedModel, linear: Planes | None) -> Floats | None:
    """Return ‖w‖ of every plane, None where kernel values are not kept with the model."""
    if linear is not None or fitted.is_approximated:
        w = fitted.classifier.feature_coef_ if linear is None else linear.w
        norms: Floats = np.linalg.norm(w, axis=1)
        return norms
    try:
        return np.array([task.norm for task in margin_report(fitted.classifier).tasks])
    except (ValueError, TypeError):
        return None


def _joint_distance(scores: Floats, w: Floats, codes: Integers) -> float | None:
    """Return the smallest distance to the plane between the own class and another."""
    rows = np.arange(len(codes))
    lead = scores[rows, codes][:, np.newaxis] - scores
    norms = np.array([np.linalg.norm(w - own, axis=1) for own in w])[codes]
    lead[rows, codes], norms[rows, codes] = np.inf, 1.0
    return float((lead / norms).min()) if (norms > 0).all() else None


def _rounded_norm(fitted: FittedModel) -> float:
    """Return the largest ‖w‖ that may be 0, a sum of support vectors that cancel."""
    clf = fitted.classifier
    vectors = getattr(clf, "support_vectors_", None)
    if vectors is None or vectors.shape[0] == 0:
        return 0.0
    longest = float(np.sqrt(np.abs(clf.kernel_.diagonal(vectors)).max()))
    # ‖w‖² of a kernel is exact to rounding, ‖w‖ only to its root.
    unit = SUM_ROUNDING if isinstance(clf.kernel_, Linear) else np.sqrt(SUM_ROUNDING)
    return float(unit * abs(clf.dual_coef_).sum() * longest)


def changed(clf: ModelLike) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    usual = type(clf)().get_params()
    hidden = ("callback", "verbose")
    return {
        name: value
        for name, value in clf.get_params().items()
        if name not in hidden and not _same(value, usual[name])
    }


def planes(fitted: FittedModel) -> Planes | None:
    """Return the planes of a linear model, None of another, or where there are too many weights."""
    if not fitted.is_linear:
        return None
    clf = fitted.classifier
    too_many = clf.intercept_.size * clf.n_features_in_ > MOST_WEIGHTS
    decision = None if too_many else fitted.decision
    return decision if isinstance(decision, Planes) else None


def _margin(fitted: FittedModel) -> float | None:
    clf = fitted.classifier
    certificate = clf.certificate_ if getattr(clf, "certificates_", None) else None
    if certificate is None or not fitted.has_classes:
        return None
    if hasattr(certificate, "geometric_margin"):
        return min(float(each.geometric_margin) for each in clf.certificates_)
    n_support = 0 if fitted.support is None else len(fitted.support)
    if not hasattr(certificate, "primal") or n_support > MOST_PAIRED_VECTORS:
        return None
    norms = None if fitted.scheme == "joint" else _norms(fitted, planes(fitted))
    if norms is None:
        return None
    known = norms[norms > _rounded_norm(fitted)]
    return float(1.0 / known.max()) if known.size else None


def _holds(clf: ModelLike) -> bool:
    return all(bool(each.holds(tolerance(clf))) for each in clf.certificates_)


def _same(a: object, b: object) -> bool:
    try:
        return type(a) is type(b) and bool(np.all(a == b))
    except (TypeError, ValueError):
        return False
