"""Margins, support vectors and planes of a fitted model, for figures in the space of X."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..arrays import Floats, Integers, MatrixLike, dense
from ..diagnostics.fitted_model import FittedModel
from ..multiclass import OneVsOne
from .canvas import Bools

# Kernel values whose computation takes seconds at most.
MOST_KERNEL_VALUES = 1_000_000_000
# Features up to which the plane of a pipeline is found by a step along each of them.
MOST_FEATURES = 2000
# Relative to the largest α: what an interior-point method leaves of 0.
ZERO_ALPHA = 1e-6


class FigureModel(FittedModel):
    """A fitted model with what the figures compute from it."""

    def refuse_targets(self) -> None:
        """Raise TypeError for a regression, whose scores separate nothing."""
        if self.has_targets:
            raise TypeError(
                f"{self.name} predicts targets, not classes: plots.regression draws it, and "
                "plots.support, plots.convergence and plots.gram do."
            )

    def labelled(self, X: MatrixLike, y: ArrayLike | None, n: int) -> Integers:
        """Return the class number of each of n rows; the predicted one of a region without y."""
        if y is not None:
            return self.codes(y, n)
        if self.has_classes:
            raise ValueError("y must hold the labels of the rows, got None.")
        return self.predict(X)

    def margins(self, scores: Floats, codes: Integers) -> Floats:
        """Return y·g of two classes, else how far the own class is ahead of its strongest rival.

        Of one plane per pair, that is y·g of the plane between the own class, y = 1, and the rival
        that wins where the own class does not.
        """
        if self.is_binary:
            return np.where(codes == 1, 1.0, -1.0) * scores[:, 0]
        n = len(self.classes)
        confidences = self.reduction.confidences(scores, n)
        rows = np.arange(len(codes))
        own = confidences[rows, codes]
        rivals = confidences.copy()
        rivals[rows, codes] = -np.inf
        if self.scheme != "ovo":
            return own - rivals.max(axis=1)
        place = np.zeros((n, n), dtype=np.intp)
        for k, (i, j) in enumerate(OneVsOne.pairs(n)):
            place[i, j] = place[j, i] = k
        strongest = rivals.argmax(axis=1)
        signs = np.where(codes < strongest, 1.0, -1.0)
        return signs * scores[rows, place[codes, strongest]]

    def answers(self, X: MatrixLike, scores: Floats) -> Integers:
        """Return the class number that `predict` gives to rows, from their scores if possible."""
        if not self.has_classes:  # the border itself is exact to rounding
            return self.predict(X)
        if self.is_binary:
            return (scores[:, 0] >= 0).astype(np.intp)
        n = len(self.classes)
        if not self.by_votes:
            return self.reduction.confidences(scores, n).argmax(axis=1)
        votes = np.zeros((len(scores), n))
        for k, (i, j) in enumerate(OneVsOne.pairs(n)):
            votes[:, i] += scores[:, k] > 0
            votes[:, j] += scores[:, k] <= 0
        return votes.argmax(axis=1)

    def has_no_plane(self, X: MatrixLike, scores: Floats) -> bool:
        """Say whether w of two classes is 0 to rounding: g is constant."""
        return self.is_binary and self.is_constant(self.transform(X), scores)

    def affordable(self, n: int) -> bool:
        """Say whether scores of n rows take seconds at most."""
        n_support = 0 if self.support is None else len(self.support)
        return self.is_linear or n * n_support <= MOST_KERNEL_VALUES

    @property
    def is_active(self) -> Bools:
        """Which of the support vectors have an α that is not 0 to rounding."""
        alpha = self.support_alpha
        return alpha > ZERO_ALPHA * alpha.max(initial=0.0)

    def support_rows(
        self,
        n: int,
        margins: Floats | None = None,
        take: Callable[[Integers], MatrixLike] | None = None,
    ) -> Bools:
        """Say which of n rows are support vectors; none where the model was not fitted on them.

        Parameters
        ----------
        n : int
            Rows of X.
        margins : ndarray of shape (n,), optional
            Margins of the rows: those of support vectors are at most 1.
        take : callable, optional
            Returns rows of X by number, to compare them with the support vectors.
        """
        is_support = np.zeros(n, dtype=bool)
        rows = self.support
        if not self.is_any_machine or rows is None:
            return is_support
        n_fit = getattr(self.classifier, "shape_fit_", (n,))[0]
        if n_fit != n or (rows.size and rows.max() >= n):
            return is_support
        if take is not None and rows.size and not self._holds(take(rows)):
            return is_support
        rows = rows[self.is_active]
        has_margin = self.is_support_vector_machine and self.is_binary
        if has_margin and margins is not None and (margins[rows] > 1.1).any():
            return is_support  # other rows of the same number
        is_support[rows] = True
        return is_support

    def _holds(self, X: MatrixLike) -> bool:
        """Say whether the rows of X are the support vectors.

        A kernel machine keeps its support vectors. A linear one does not, but
        P(w) − D(α) ≥ ½‖w − Σ α_i y_i x_i‖² holds for its own.
        """
        given, clf = self.transform(X), self.classifier
        if given.shape[1] != clf.n_features_in_:
            return False
        kept = getattr(clf, "support_vectors_", None)
        if kept is not None:
            return bool(np.allclose(dense(given), dense(kept), rtol=1e-6, atol=1e-12))
        W = self.W
        rest = W - clf.dual_coef_ @ (given if sparse.issparse(given) else dense(given))
        gap = sum(certificate.gap for certificate in clf.certificates_)
        return bool(0.5 * np.sum(rest**2) <= gap + 1e-9 * np.sum(W**2))

    def affine(
        self, origin: Floats, fill: Callable[[Floats], MatrixLike]
    ) -> tuple[Floats, Floats] | None:
        """Return W and b of g(x) = Wx + b in the space of X, None where g is not affine there.

        For a pipeline, g is evaluated at ``origin`` and one unit along each feature from there;
        the plane through these points must then predict g at two other points.
        """
        if not self.is_linear:
            return None
        if not self.steps:
            return self.W, dense(self.classifier.intercept_)
        d = origin.size
        if d > MOST_FEATURES:
            return None
        unit = np.maximum(np.abs(origin), 1.0)
        probe = origin + np.vstack([np.zeros(d), np.diag(unit), np.outer([-1.0, 0.37], unit)])
        g = self.scores(fill(probe))
        W = ((g[1 : d + 1] - g[0]) / unit[:, None]).T
        b = g[0] - W @ origin
        predicted = probe[d + 1 :] @ W.T + b
        scale = np.abs(g).max() + 1e-300
        return (W, b) if np.abs(predicted - g[d + 1 :]).max() <= 1e-6 * scale else None
