"""A fitted classifier, alone or at the end of a pipeline, as the figures see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats, Integers
from ..estimators.base import CertifiedClassifier
from ..estimators.linear import LinearClassifier
from ..estimators.linear_svc import LinearSVC
from ..estimators.svc import SVC, NuSVC
from ..kernels import RBF, Custom, Kernel, Linear, Polynomial, Precomputed, Sigmoid
from ..multiclass import Kesler, OneVsOne, Reduction
from .canvas import Bools, number

# g that differs by less than this share of its terms is the same everywhere.
ROUNDING = 1e-12
MACHINES = (SVC, NuSVC, LinearSVC)
# Numbers of X in a block that is evaluated at a time, and kernel values worth computing.
BLOCK = 1 << 22
MOST_VALUES = 1_000_000_000
# Features up to which the plane of a pipeline is found by moving along each of them.
MOST_FEATURES = 2000


class Model:
    """What a figure asks of a fitted classifier, in the space of the features it was given.

    ``machine`` is the classifier itself, at the end of the pipeline or the best of a search.
    """

    def __init__(self, clf: Any) -> None:
        fitted = getattr(clf, "best_estimator_", clf)
        self.clf = fitted
        self.machine: Any = fitted[-1] if isinstance(fitted, Pipeline) else fitted
        if not isinstance(self.machine, CertifiedClassifier):
            raise TypeError(
                f"figures are of maxmargin's classifiers, got {type(self.machine).__name__}: pass "
                "one, or a pipeline that ends in one."
            )
        check_is_fitted(self.machine)

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, in the order of their codes."""
        return self.machine.classes_

    @property
    def names(self) -> list[str]:
        """The labels as text."""
        return [str(label) for label in self.classes]

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.classes) == 2

    @property
    def in_pipeline(self) -> bool:
        """Whether something comes before the classifier."""
        return isinstance(self.clf, Pipeline) and len(self.clf) > 1

    @property
    def reduction(self) -> Reduction:
        """How many classes became tasks."""
        return self.machine._reduction()

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of a kernel machine."""
        return getattr(self.machine, "kernel_", None)

    @property
    def is_linear(self) -> bool:
        """Whether the classifier itself has planes."""
        return isinstance(self.machine, LinearClassifier) or isinstance(self.kernel, Linear)

    @property
    def is_machine(self) -> bool:
        """Whether |g| = 1 is a margin: that of a support vector machine."""
        return isinstance(self.machine, MACHINES)

    def codes(self, y: Any, n: int | None = None) -> Integers:
        """Return the class number of every label, of which there have to be n."""
        labels = np.asarray(y).ravel()
        if n is not None and labels.size != n:
            raise ValueError(f"y has {labels.size} labels, X {n} rows: pass one each.")
        order = {label: code for code, label in enumerate(self.classes.tolist())}
        unknown = [label for label in np.unique(labels).tolist() if label not in order]
        if unknown:
            raise ValueError(
                f"y holds {unknown[0]!r}, the model knows {self.classes.tolist()}: pass the labels "
                "that it was fitted on."
            )
        return np.array([order[label] for label in labels.tolist()], dtype=np.int64)

    def transform(self, X: Any) -> Any:
        """Return what the classifier itself gets to see."""
        return self.clf[:-1].transform(X) if self.in_pipeline else X

    def scores(self, X: Any) -> Floats:
        """Return g of every plane, (n, n_planes)."""
        return self.machine._scores(self.transform(X))

    def predict(self, X: Any) -> Integers:
        """Return the class number that the model gives to each row."""
        return self.codes(self.clf.predict(X))

    def margins(self, scores: Floats, codes: Integers) -> Floats:
        """Return y·g of two classes, else the score of the own class less its best rival's."""
        if self.binary:
            return np.where(codes == 1, 1.0, -1.0) * scores[:, 0]
        confidences = self.reduction.confidences(scores, len(self.classes))
        rows = np.arange(len(codes))
        own = confidences[rows, codes]
        rivals = confidences.copy()
        rivals[rows, codes] = -np.inf
        return own - rivals.max(axis=1)

    def is_flat(self, X: Any, scores: Floats) -> bool:
        """Whether w of two classes is 0, to rounding: g is the same everywhere, and no plane."""
        if not self.binary or not len(scores):
            return False
        dual = getattr(self.machine, "dual_coef_", None)
        if dual is None or isinstance(self.kernel, Precomputed):
            terms = float(np.abs(scores).max())
        else:
            rows = self.transform(X)
            rows = rows if sparse.issparse(rows) else np.asarray(rows, dtype=float)
            largest = np.abs((self.kernel or Linear()).diagonal(rows)).max()
            terms = float(abs(dual).sum() * largest)
        return bool(np.ptp(scores) <= ROUNDING * terms)

    def affordable(self, n: int) -> bool:
        """Whether scores of n rows take seconds at most."""
        return self.is_linear or n * len(getattr(self.machine, "support_", ())) <= MOST_VALUES

    def support(
        self, n: int, margins: Floats | None = None, take: Callable[[Integers], Any] | None = None
    ) -> Bools:
        """Say which of n rows are support vectors; none where the model was not fitted on them.

        Known from those rows, which ``take`` returns by number, and from margins.

        α of less than a millionth of the largest is what an interior-point method leaves of 0.
        """
        is_support = np.zeros(n, dtype=bool)
        if not self.is_machine:
            return is_support
        rows, dual = self.machine.support_, self.machine.dual_coef_
        fitted_on = getattr(self.machine, "shape_fit_", (n,))[0]
        if fitted_on != n or (rows.size and rows.max() >= n):
            return is_support
        if take is not None and rows.size and not self._holds(take(rows)):
            return is_support
        weight = np.abs(_dense(dual)).max(axis=0, initial=0.0)
        rows = rows[weight > 1e-6 * weight.max(initial=0.0)]
        # Other rows of the same number: support vectors lie on or inside the margin.
        if self.binary and margins is not None and (margins[rows] > 1.1).any():
            return is_support
        is_support[rows] = True
        return is_support

    def _holds(self, X: Any) -> bool:
        """Whether the rows of X are the support vectors.

        They are compared with those that a kernel machine keeps. A linear one keeps none, but
        P(w) − D(α) ≥ ½‖w − Σ α_i y_i x_i‖² holds of its own.
        """
        given = self.transform(X)
        if given.shape[1] != self.machine.n_features_in_:
            return False
        kept = getattr(self.machine, "support_vectors_", None)
        if kept is not None:
            given, kept = _dense(given), _dense(kept)
            return bool(np.allclose(given, kept, rtol=1e-6, atol=1e-12))
        W = _dense(self.machine.coef_)
        rest = W - self.machine.dual_coef_ @ (given if sparse.issparse(given) else _dense(given))
        gap = sum(certificate.gap for certificate in self.machine.certificates_)
        return bool(0.5 * np.sum(rest**2) <= gap + 1e-9 * np.sum(W**2))

    def affine(self, origin: Any, fill: Any) -> tuple[Floats, Floats] | None:
        """Return W and b of g(x) = Wx + b in the space of X, None where g is no plane there.

        A pipeline is asked for g at ``origin`` and one unit along each feature from there, and
        whether the plane through these points foretells g elsewhere.
        """
        if not self.is_linear:
            return None
        if not self.in_pipeline:
            return _dense(self.machine.coef_), np.asarray(self.machine.intercept_, dtype=float)
        d = origin.size
        if d > MOST_FEATURES:
            return None
        unit = np.maximum(np.abs(origin), 1.0)
        probe = origin + np.vstack([np.zeros(d), np.diag(unit), np.outer([-1.0, 0.37], unit)])
        g = self.scores(fill(probe))
        W = ((g[1 : d + 1] - g[0]) / unit[:, None]).T
        b = g[0] - W @ origin
        foretold = probe[d + 1 :] @ W.T + b
        scale = np.abs(g).max() + 1e-300
        return (W, b) if np.abs(foretold - g[d + 1 :]).max() <= 1e-6 * scale else None


def _dense(matrix: Any) -> Floats:
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix, dtype=float)


def kernel_in_words(kernel: Kernel | None) -> str:
    """Return the kernel as a title has it.

    >>> kernel_in_words(RBF(0.5))
    'RBF γ = 0.5'
    """
    if kernel is None or isinstance(kernel, Linear):
        return "linear"
    if isinstance(kernel, RBF):
        return f"RBF γ = {kernel.gamma:.3g}"
    if isinstance(kernel, Polynomial):
        return f"polynomial of degree {kernel.degree}"
    if isinstance(kernel, Sigmoid):
        return "sigmoid kernel"
    return "given kernel values" if isinstance(kernel, (Custom, Precomputed)) else repr(kernel)


def cost_in_words(model: Model) -> str:
    """Return what a support vector machine pays for errors, ν or C; nothing of other models."""
    machine = model.machine
    if isinstance(machine, NuSVC):
        return f"ν = {machine.nu:g}"
    if not model.is_machine:
        return ""
    return "C = ∞" if np.isinf(machine.C) else f"C = {machine.C:g}"


def described(model: Model, width: float | None = None) -> str:
    """Return what the model is and what its certificate says, in a few words."""
    machine, name = model.machine, type(model.machine).__name__
    if not model.binary:
        return f"{name}{_options(model)}, {_reduced(model)}{_unfinished(machine)}"
    if not model.is_machine:
        return f"{name}: {_separation(machine.certificate_)}"
    parts = []
    if np.isinf(getattr(machine, "C", 0.0)):
        parts.append(
            "hard margin" + ("" if model.is_linear else f" ({kernel_in_words(model.kernel)})")
        )
    else:
        parts.append(f"{name}{_options(model)}")
    if width is not None and np.isfinite(width):
        parts.append(f"width {width:.4g}")
    parts.append(number(int(model.support(_rows_fitted(machine)).sum()), "support vector"))
    proof = getattr(machine, "certificate_", None)  # which other programs do not give
    if proof is not None and not proof.holds(machine.tol):
        parts.append(f"not optimal: gap {proof.relative_gap:.1e}")
    return ", ".join(parts)


def _rows_fitted(machine: Any) -> int:
    known = getattr(machine, "shape_fit_", None)
    return int(known[0]) if known is not None else int(machine.support_.max(initial=-1)) + 1


def _options(model: Model) -> str:
    words = []
    if model.kernel is not None:
        words.append(kernel_in_words(model.kernel))
    if model.is_machine:
        words.append(cost_in_words(model))
    return f" ({', '.join(words)})" if words else ""


def _reduced(model: Model) -> str:
    c = len(model.classes)
    if isinstance(model.reduction, OneVsOne):
        return f"{c * (c - 1) // 2} pairs of {c} classes"
    if isinstance(model.reduction, Kesler):
        return f"a linear machine of {c} classes"
    return f"{c} classes, each against the rest"


def _unfinished(machine: Any) -> str:
    """Return how many tasks of a support vector machine are not optimal."""
    proofs = getattr(machine, "certificates_", None)
    if not isinstance(proofs, list) or not isinstance(machine, MACHINES):
        return ""
    left = sum(not proof.holds(machine.tol) for proof in proofs)
    return f", {left} of {len(proofs)} tasks not optimal" if left else ""


def _separation(certificate: Any) -> str:
    n, wrong = certificate.n_samples, getattr(certificate, "n_errors", 0)
    if certificate.separates:
        return f"separates all {n:,} samples, smallest distance {certificate.geometric_margin:.3g}"
    if getattr(certificate, "refutes", False):
        return "no plane separates (proved)"
    return f"{wrong:,} of {n:,} samples not on their side"
