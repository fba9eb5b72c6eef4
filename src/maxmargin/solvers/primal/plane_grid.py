"""Newton's method for squared hinges of many folds and classes at once, cost after cost.

Given: X, labels of some tasks, weights v of the rows in every fold, and ascending costs C. Wanted:
the planes a = (w, b) of

    min ½‖w‖² [+ ½b²] + C Σ v_i (1 − y_i a·(x_i, 1))₊²

for every fold, task and cost. Folds have most of their rows in common, so that the Hessian
M + 2C Σ v (x, 1)(x, 1)ᵀ over the rows with a loss, averaged over the folds of a task and over a
sample of the rows, is close to that of each: steps with it converge linearly, by a factor that is
the share in which folds differ, and take one pass over X for all planes. Planes that have not
converged after some steps, as of few rows, go on with curvatures of their own. The next cost begins
where the line through the planes of the last two costs, over log C, leads.

Certificates tell which planes have not converged after some steps: they are for another solver.

Reference: Mangasarian, "A finite Newton method for classification", *Optim. Methods Softw.* 17
(2002).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...arrays import Floats, Integers
from ...engines.planes import PassesForPlanes, PlaneTasks

# Steps at each cost, and the least share of the decrease that the slope promises.
MOST_STEPS, ENOUGH = 20, 1e-4
# Steps with one curvature, and steps after which every plane has its own.
CURVED_EVERY, OWN_AFTER = 3, 6
# Numbers in curvatures of all planes up to which they have their own.
OWN_NUMBERS = 1 << 22
# By this share of the largest curvature the diagonal is raised: rounding leaves it definite.
RAISED = 1e-13
# Of tol, the relative gap at which steps end.
AIM = 0.3


@dataclass(frozen=True)
class PlaneGrid:
    """The solver of squared hinges on the same rows.

    Parameters
    ----------
    features : PassesForPlanes
        X, as an engine holds it.
    tasks : PlaneTasks
    bias : {"free", "penalised", "none"}
    tol : float
        The relative duality gap to stop at.
    """

    features: PassesForPlanes
    tasks: PlaneTasks
    bias: Literal["free", "penalised", "none"]
    tol: float

    def solve(self, costs: Floats, n_columns: int, stopped: Callable[[], bool]) -> Iterator[Floats]:
        """Yield the planes of every cost, which ascend, until stopped."""
        planes: Floats = np.zeros((self.tasks.n_planes, n_columns + 1))
        ahead = planes
        levels = np.log(costs)
        for c, cost in enumerate(costs.tolist()):
            if stopped():
                return
            before, planes = planes, self._at(cost, planes + ahead, stopped)
            yield planes
            ahead = np.zeros_like(planes)
            if 0 < c < costs.size - 1 and levels[c] > levels[c - 1]:
                ratio = (levels[c + 1] - levels[c]) / (levels[c] - levels[c - 1])
                ahead = min(ratio, 1.0) * (planes - before)

    def _at(self, cost: float, start: Floats, stopped: Callable[[], bool]) -> Floats:
        """Return the planes of one cost."""
        planes: Floats = start.copy()
        base = start.copy()
        step, length = np.zeros_like(planes), np.ones(len(planes))
        least, slope = np.full(len(planes), np.inf), np.zeros(len(planes))
        active = np.arange(len(planes))
        group = self.tasks.task_of
        moments: Floats = np.empty(0)
        for k in range(MOST_STEPS):
            if stopped():
                break
            if k >= OWN_AFTER and active.size * planes.shape[1] ** 2 <= OWN_NUMBERS:
                group[active] = np.arange(active.size)
            is_new = k % CURVED_EVERY == 0 or k >= OWN_AFTER
            found = self.features.hinge_sums(
                self.tasks, planes[active], active, group[active] if is_new else None
            )
            moments = found.moments if is_new else moments
            value, gradient = self._measured(cost, planes[active], found.loss, found.total)
            gap = 0.5 * np.sum(gradient[:, :-1] ** 2, axis=1)
            gap += np.abs(gradient[:, -1]) * (1.0 + np.abs(planes[active, -1]))
            going = gap > AIM * self.tol * value
            descends = value <= least[active] + ENOUGH * length[active] * slope[active]
            new = going & descends
            at, length[active] = active[new], 0.5 * length[active]
            base[at], least[at], length[at] = planes[at], value[new], 1.0
            step[at] = self._direction(cost, gradient[new], moments, group[at])
            slope[at] = np.sum(gradient[new] * step[at], axis=1)
            active = active[going]
            if not active.size:
                break
            planes[active] = base[active] + length[active, np.newaxis] * step[active]
        return planes

    def _measured(
        self, cost: float, planes: Floats, loss: Floats, total: Floats
    ) -> tuple[Floats, Floats]:
        """Return P and its gradient."""
        penalised = planes.copy()
        if self.bias != "penalised":
            penalised[:, -1] = 0.0
        gradient = penalised - 2.0 * cost * total
        if self.bias == "none":
            gradient[:, -1] = 0.0
        return 0.5 * np.sum(penalised**2, axis=1) + cost * loss, gradient

    def _direction(self, cost: float, gradient: Floats, moments: Floats, group: Integers) -> Floats:
        """Return −H⁻¹g, H that of the group of each plane."""
        direction = np.empty_like(gradient)
        for g in np.unique(group).tolist():
            H, mine = 2.0 * cost * moments[g], group == g
            diagonal = np.einsum("ii->i", H)
            diagonal += RAISED * max(float(diagonal.max()), 1.0)
            diagonal[:-1] += 1.0
            diagonal[-1] += float(self.bias == "penalised")
            if self.bias == "none":
                H[-1], H[:, -1], diagonal[-1] = 0.0, 0.0, 1.0
            direction[mine] = -np.linalg.solve(H, gradient[mine].T).T
        return direction
