"""The iterate of the interior point method, as NumPy arrays (`engines.base.InteriorState`).

Every sample has one side, that of its label, or two of a target: arrays are of shape (sides, n).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...arrays import Floats
from ...problems import PrimalProblem
from .primal_state import PrimalState

if TYPE_CHECKING:
    from .features import Features

TINY = float(np.finfo(float).tiny)
# Times the slack: α/u, or 1 − α/u, that is as good as 0.
NEGLIGIBLE = 0.1


class _Change(NamedTuple):
    """A step of everything."""

    scores: Floats
    alpha: Floats
    slack: Floats
    xi: Floats | None


class InteriorState:
    """Scores, α, s and ξ, all of them strictly positive but the scores.

    Parameters
    ----------
    problem : PrimalProblem
        u is finite for all samples, or for none.
    features : Features
    """

    def __init__(self, problem: PrimalProblem, features: Features) -> None:
        self.state = PrimalState(problem, features)
        self.features, self.problem = features, problem
        # The sign of β on every side.
        self.signs = np.array([[1.0], [-1.0]]) if problem.two_sided else problem.y[np.newaxis]
        upper, ridge = problem.upper, problem.ridge
        # Samples that do not count have an α of 0, with no interior: they get no weight.
        self.counts = np.broadcast_to((upper > 0.0) & np.isfinite(ridge), problem.y.shape)
        self.upper = None if np.isinf(upper).all() else upper
        self.ridge = np.where(np.isfinite(ridge), ridge, 0.0)
        self.has_ridge = bool(self.ridge.any())
        shape = (len(self.signs), features.n_rows)
        with np.errstate(divide="ignore"):
            costs = np.where(self.counts, 1.0 / ridge if self.upper is None else upper, 0.0)
        # For the squared hinge α goes with the costs, and so do the products: a sample of weight 2
        # is two samples. For the hinge u bounds α.
        mean = float(np.sum(costs) / max(np.count_nonzero(self.counts), 1))
        self.parts = costs / mean if self.upper is None else np.ones(shape)
        self.alpha = self._first_alpha(costs)
        self.slack = np.ones(shape)
        self.xi = None if self.upper is None else np.ones(shape)
        self._step: _Change | None = None

    def publish(self, *, rounded: bool = False) -> None:
        """Hand β to the state of the plane."""
        alpha = self._rounded() if rounded else np.where(self.counts, self.alpha, 0.0)
        self.state.values = self._combined(alpha)

    def errors(self) -> int:
        """Return how many samples are on the wrong side."""
        return int(np.count_nonzero(self.problem.errors(self.state.scores)))

    def curvature(self) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ."""
        self._step = None
        self._residual = self._residuals()
        self._weights = self._curvatures()
        return self.features.moments(self._weights.sum(axis=0))

    def right_side(self, centre: float, *, corrected: bool) -> Floats:
        """Return Σ y (α + ce)(x_i, 1) over all sides, e what the linear conditions lack."""
        first = self._step if corrected else None
        self._of_slack = centre * self.parts - self.alpha * self.slack
        if first is not None:
            self._of_slack -= first.alpha * first.slack
        e = self._residual + self._of_slack / self.alpha
        if self.xi is not None:
            self._of_xi = centre * self.parts - self._mu * self.xi
            if first is not None and first.xi is not None:
                self._of_xi += first.alpha * first.xi
            e -= self._of_xi / np.maximum(self._mu, TINY)
        e *= self._weights
        self._e = e
        signed = self._combined(np.where(self.counts, self.alpha, 0.0) + e)
        return np.append(self.features.combine(signed), signed.sum())

    def change(self, step: Floats) -> None:
        """Compute the change of everything that a step of (w, b) brings about."""
        scores = self.features.scores(step[:-1], float(step[-1]))
        alpha = self._e - self._weights * self.signs * scores
        slack = (self._of_slack - self.slack * alpha) / self.alpha
        xi = None
        if self.xi is not None:
            xi = (self._of_xi + self.xi * alpha) / np.maximum(self._mu, TINY)
        self._step = _Change(scores, alpha, slack, xi)

    def reach(self, most: float) -> float:
        """Return the longest step, at most ``most``, at which nothing is negative."""
        step = self._step
        assert step is not None
        pairs = [(self.alpha, step.alpha), (self.slack, step.slack)]
        if self.xi is not None and step.xi is not None:
            pairs += [(self._mu, -step.alpha), (self.xi, step.xi)]
        fastest = 1.0 / most
        for values, changes in pairs:
            ratios = np.where(self.counts, -changes / np.maximum(values, TINY), 0.0)
            fastest = max(fastest, float(ratios.max()))
        return 1.0 / fastest

    def average(self, t: float) -> float:
        """Return the mean product of what is complementary, after t steps."""
        alpha, slack, xi, step = self.alpha, self.slack, self.xi, self._step
        if step is not None and t != 0.0:
            alpha, slack = alpha + t * step.alpha, slack + t * step.slack
            xi = None if xi is None or step.xi is None else xi + t * step.xi
        total = float(np.sum(np.where(self.counts, alpha * slack, 0.0)))
        pairs = len(self.signs) * int(np.count_nonzero(self.counts))
        if xi is None or self.upper is None:
            return total / pairs
        return (total + float(np.sum(np.where(self.counts, (self.upper - alpha) * xi, 0.0)))) / (
            2 * pairs
        )

    def advance(self, t: float) -> None:
        """Go t steps."""
        step = self._step
        assert step is not None
        self.state.scores += t * step.scores
        self.alpha += t * step.alpha
        self.slack += t * step.slack
        if self.xi is not None and step.xi is not None:
            self.xi += t * step.xi

    # How it is done ------------------------------------------------------------------------

    def _combined(self, alpha: Floats) -> Floats:
        """Return β: what α of all sides adds up to."""
        beta: Floats = (self.signs * alpha).sum(axis=0)
        return beta

    def _first_alpha(self, costs: Floats) -> Floats:
        """Return α inside its box with Σβ = 0; any number for samples that do not count."""
        all_costs = np.broadcast_to(costs, (len(self.signs), costs.size))
        totals = [float(np.sum(all_costs, where=self.signs == sign)) for sign in (1.0, -1.0)]
        shares = [0.5 * min(totals) / max(total, TINY) for total in totals]
        return np.where(self.counts, costs * np.where(self.signs > 0, *shares), 1.0)

    @property
    def _mu(self) -> Floats:
        """u − α; any number for samples that do not count."""
        assert self.upper is not None
        return np.where(self.counts, self.upper - self.alpha, 1.0)

    def _residuals(self) -> Floats:
        """Return z − ξ − Dα + s, which is 0 at a solution; z = yr − ε on each side."""
        r = self.problem.y - self.state.scores
        out: Floats = self.signs * r - self.problem.epsilon + self.slack
        if self.xi is not None:
            out -= self.xi
        return out - self.ridge * self.alpha if self.has_ridge else out

    def _curvatures(self) -> Floats:
        """Return c = 1/(s/α + ξ/μ + D)."""
        width = self.slack / self.alpha
        if self.xi is not None:
            width += self.xi / np.maximum(self._mu, TINY)
        if self.has_ridge:
            width = width + self.ridge
        return np.where(self.counts, 1.0 / width, 0.0)

    def _rounded(self) -> Floats:
        """Return α, at its bound where what is complementary to it is far from 0."""
        alpha = np.where(self.counts, self.alpha, 0.0)
        if self.xi is None or self.upper is None:
            scale = 1.0 / np.maximum(self.state.problem.ridge, TINY)
            return np.where(alpha < NEGLIGIBLE * scale * self.slack, 0.0, alpha)
        alpha = np.where(alpha < NEGLIGIBLE * self.upper * self.slack, 0.0, alpha)
        return np.where(self._mu < NEGLIGIBLE * self.upper * self.xi, self.upper, alpha)
