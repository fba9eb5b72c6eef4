"""The state of a joint machine, values and shares, as NumPy arrays (see `engines.linear`)."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...problems import JointProblem
from ...runtime.team import Region
from ...runtime.threads import in_parallel
from ...runtime.vectors import copied, in_slices, nonzero, part_count, part_rows, taken
from ..linear import JointSums, Survey
from . import joint_passes as passes

if TYPE_CHECKING:
    from .features import Features


NO_FACTORS = np.empty((0, 0))
# Multiplications of a part of the Hessian from which several cores share them.
PARALLEL_MULTIPLICATIONS = 1e7


class JointState:
    """Values and shares of some rows.

    Parameters
    ----------
    problem : JointProblem
    features : Features
        The rows.
    places : ndarray of int
        Their places in the problem, or in the state that they were taken from.
    cost : ndarray of float
        C_i.
    """

    def __init__(
        self,
        problem: JointProblem,
        features: Features,
        places: Integers,
        labels: Integers,
        cost: Floats,
    ) -> None:
        self.problem, self.features, self.places = problem, features, places
        self.labels = np.ascontiguousarray(labels, dtype=np.intp)
        self.costs = np.ascontiguousarray(cost, dtype=np.float64)
        self.has_bias = problem.bias != "none"
        self.own = np.arange(self.labels.size), self.labels
        shape = self.labels.size, problem.n_classes
        self.values: Floats = np.zeros(shape)
        self.p: Floats = np.zeros(shape)
        self.p[self.own] = 1.0
        self.center: Floats = self.p
        self.distance: Floats = np.zeros(shape[0])
        self._along: Floats | None = None
        self._found: Floats = self.p
        self._kept: Floats = self.p
        self._part: JointState | None = None

    @classmethod
    def of(cls, problem: JointProblem, features: Features) -> JointState:
        """Return the state of the samples that count, at α = 0."""
        counted = np.flatnonzero(problem.cost > 0.0)
        rows = features if counted.size == problem.cost.size else features.view(counted)
        return cls(problem, rows, counted, problem.labels[counted], problem.cost[counted])

    def sample(self, share: float, least: int, rng: np.random.RandomState) -> JointState:
        """Return the state of a share of the rows of every class."""
        chosen, factors = [], []
        for k in range(self.problem.n_classes):
            rows = np.flatnonzero(self.labels == k)
            wanted = min(rows.size, max(least, int(share * rows.size)))
            chosen.append(rng.permutation(rows)[:wanted])
            factors.append(np.full(wanted, rows.size / max(wanted, 1)))
        rows, factor = np.concatenate(chosen), np.concatenate(factors)
        in_turn = np.argsort(rows)
        rows, cost = rows[in_turn], self.costs[rows[in_turn]] * factor[in_turn]
        features = self.features.restrict(rows)
        return JointState(self.problem, features, rows, self.labels[rows], cost)

    # Shares --------------------------------------------------------------------------------

    def start(self, alpha: Floats) -> None:
        """Begin with α of all samples, made feasible: cut off at 0, then scaled down to C_i."""
        flows = np.maximum(-np.asarray(alpha, dtype=np.float64)[self.places], 0.0)
        flows[self.own] = 0.0
        totals = flows.sum(axis=1)
        over = totals > self.costs
        flows[over] *= (self.costs[over] / totals[over])[:, np.newaxis]
        self.p = flows / self.costs[:, np.newaxis]
        self.p[self.own] = np.maximum(1.0 - self.p.sum(axis=1), 0.0)

    def clear(self) -> None:
        """Give all shares to the own class."""
        self.p = np.zeros_like(self.p)
        self.p[self.own] = 1.0

    def decide(self) -> None:
        """Give all shares to the class of the largest s_i^k."""
        values = self.values + 1.0
        values[self.own] -= 1.0
        self.p = np.zeros_like(self.p)
        self.p[np.arange(self.labels.size), values.argmax(axis=1)] = 1.0

    def keep(self) -> None:
        """Remember the shares."""
        self._kept = copied(self.p)

    def restore(self) -> None:
        """Take the shares remembered."""
        self.p = self._kept

    def alpha(self) -> Floats:
        """Return α of all samples."""
        out = np.zeros((self.problem.cost.size, self.problem.n_classes))
        out[self.places] = self._alpha()
        return out

    def _alpha(self) -> Floats:
        return self._multipliers(NO_FACTORS)[0]

    def _multipliers(self, factors: Floats) -> tuple[Floats, Floats]:
        """Return α, and its sums: of every class, and of the own ones."""
        alpha = np.empty_like(self.p)
        arrays = (self.p, self.labels, self.costs, factors, alpha)
        return alpha, self._lines(passes.multipliers, alpha.shape[1] + 1, *arrays).sum(axis=0)

    def _lines(self, region: Region[...], n_sums: int, *arguments: Any) -> Floats:
        """Return what a region adds up, one line for each part of the rows."""
        n, c = self.p.shape
        step = part_rows(n, 4.0 * c)
        lines = np.zeros((part_count(n, step), n_sums))
        region(len(lines), step, *arguments, lines)
        return lines

    # Sums ----------------------------------------------------------------------------------

    def place(self, a: Floats) -> float:
        """Compute the values of a; return the largest change of a value."""
        before, values = self.values, self._scores(a)
        self.values = values

        def moved(some: slice) -> float:
            return float(np.abs(values[some] - before[some]).max(initial=0.0))

        return max(in_slices(moved, *values.shape))

    def sums(self, factors: Floats | None = None) -> JointSums:
        """Return Σ_i α_i (x_i, 1) and Σ_i α_i^y, flows multiplied by factors of their classes."""
        alpha, sums = self._multipliers(NO_FACTORS if factors is None else factors)
        return JointSums(self._augmented(self.features.combine(alpha), sums[:-1]), float(sums[-1]))

    def flow(self) -> float:
        """Return Σ_i α_i^y."""
        return float(self._multipliers(NO_FACTORS)[1][-1])

    def flows(self) -> Floats:
        """Return what flows from class k to class l."""
        flows = np.maximum(-self._alpha(), 0.0)
        flows[self.own] = 0.0
        n_classes = self.problem.n_classes
        return np.array([flows[self.labels == k].sum(axis=0) for k in range(n_classes)])

    def mean_curvature(self) -> float:
        """Return the mean of C_i ‖x_i‖²."""
        return float(np.mean(self.costs * self.features.squared_lengths()))

    def survey(self, scale: float = 1.0) -> Survey:
        """Look at all rows, and how far they are from a kink."""
        arrays = (self.values, float(scale), self.labels, self.costs, self.p, self.distance)
        found = self._lines(passes.survey, 3, *arrays)
        loss, _, errors = found.sum(axis=0)
        return Survey(float(loss), float(found[:, 1].max()), int(errors))

    # Newton's method -----------------------------------------------------------------------

    def near(self, reach: float) -> JointState:
        """Return the state of the rows within a reach of a kink."""
        rows = nonzero(self.distance <= reach)
        features = self.features.take(rows) if rows.size < self.labels.size else self.features
        labels, costs = taken(self.labels, rows), taken(self.costs, rows)
        part = JointState(self.problem, features, rows, labels, costs)
        part.values, part.p = taken(self.values, rows), taken(self.p, rows)
        part.center = part._found = part.p
        self._part = part
        return part

    def take_back(self) -> None:
        """Take over the shares of the rows that `near` returned last."""
        if self._part is not None:
            self.p[self._part.places] = self._part.p

    def aim(self, step: Floats) -> float:
        """Compute the values of a step; return Σ_i C_i max_k |of the step|."""
        self._along, self._found = self._scores(step), self.p
        return float(self._lines(passes.add_up_moves, 1, self._along, self.costs).sum())

    def smooth(self, t: float, delta: float) -> tuple[float, float]:
        """Find the shares after t steps; return the gap of the rows there, and the slope."""
        along = np.zeros_like(self.values) if self._along is None else self._along
        # What a line search found before is of no use: its memory is.
        in_use = any(self._found is other for other in (self.p, self.center, self._kept))
        p = np.empty_like(self.center) if in_use else self._found
        gap, slope = self._lines(
            passes.smoothed_maxima, 2, self.values, along, float(t), self.labels, self.costs,
            self.center, float(delta), p,
        ).sum(axis=0)  # fmt: skip
        self._found = p
        return float(gap), float(slope)

    def advance(self, t: float) -> None:
        """Go t steps, and take the shares found last."""
        if self._along is not None:
            values, along = self.values, self._along
            in_slices(
                lambda some: np.add(values[some], t * along[some], out=values[some]), *values.shape
            )
        self.p = self._found

    def curvature(self, delta: float) -> JointRows:
        """Return the rows with several shares, with the curvature of their loss."""
        have_several = np.empty(self.labels.size, dtype=bool)

        def count(some: slice) -> None:
            np.greater(np.count_nonzero(self.p[some], axis=1), 1, out=have_several[some])

        in_slices(count, *self.p.shape)
        several = nonzero(have_several)
        weight = taken(self.costs, several) / delta
        rows = self.features.take(several)
        return JointRows(rows, taken(self.p, several) > 0.0, weight, self.has_bias)

    def _scores(self, a: Floats) -> Floats:
        return _class_scores(self.features, a, self.has_bias)

    def _augmented(self, w: Floats, b: Floats) -> Floats:
        return np.column_stack([w, b]) if self.has_bias else np.array(w, order="C")


class JointRows:
    """Rows with shares of several classes, and their Hessian."""

    def __init__(
        self, features: Features, member: NDArray[np.bool_], weight: Floats, has_bias: bool
    ) -> None:
        self.features, self.weight, self.has_bias = features, weight, has_bias
        self.member = member.astype(np.float64)
        self.size = self.member.sum(axis=1)
        # The diagonal of (C_i/δ) P_i.
        self.bend = self.member * (self.weight * (1.0 - 1.0 / self.size))[:, np.newaxis]
        self._members = [np.flatnonzero(column) for column in self.member.T]
        self._root = np.sqrt(self.bend)

    @property
    def class_sizes(self) -> list[int]:
        """The number of rows with a share of every class."""
        return [of_k.size for of_k in self._members]

    def squares(self) -> Floats:
        """Return the diagonal of H."""
        return self._augmented(self.features.squared_columns(self.bend), self.bend.sum(axis=0))

    def product(self, step: Floats) -> Floats:
        """Return H times a step."""
        change = _class_scores(self.features, step, self.has_bias) * self.member
        change -= self.member * (change.sum(axis=1) / self.size)[:, np.newaxis]
        change *= self.weight[:, np.newaxis]
        return self._augmented(self.features.combine(change), change.sum(axis=0))

    def hessian(self) -> Floats:
        """Return H, the blocks of its lower half."""
        c, size = self.member.shape[1], self.features.n_columns + self.has_bias
        H = np.zeros((c, size, c, size))
        share = self.weight / self.size
        for block, rows in self.features.augmented(self.has_bias):
            member, bend, shares = self.member[block], self.bend[block], share[block]

            def add(
                k: int, stop: Event, rows=rows, member=member, bend=bend, shares=shares
            ) -> None:
                of_k = np.flatnonzero(member[:, k])
                X = rows[of_k]
                H[k, :, k] += (X * bend[of_k, k, np.newaxis]).T @ X
                for m in range(k):
                    both = np.flatnonzero(member[of_k, m])
                    if both.size:
                        Z = X[both]
                        H[k, :, m] -= (Z * shares[of_k[both], np.newaxis]).T @ Z

            # The last classes, which have the most pairs, first.
            alone = c * rows.shape[0] * size**2 < PARALLEL_MULTIPLICATIONS
            in_parallel(add, range(c - 1, -1, -1), alone=alone)
        return H

    def class_blocks(self) -> list[Floats]:
        """Return the diagonal blocks of H."""
        size = self.features.n_columns + self.has_bias

        def part(k: int, stop: Event) -> Floats:
            block, roots = np.zeros((size, size)), self._root[self._members[k], k, np.newaxis]
            for some, rows in self.features.take(self._members[k]).augmented(self.has_bias):
                Z = rows * roots[some]
                block += Z.T @ Z
            return block

        return in_parallel(part, range(len(self._members)))

    def class_grams(self, bias: Floats) -> list[Floats]:
        """Return Z_k diag(1, …, 1, bias_k) Z_kᵀ."""

        def part(k: int, stop: Event) -> Floats:
            roots = self._root[self._members[k], k]
            gram = self.features.gram(self._members[k]) + bias[k]
            gram *= np.outer(roots, roots)
            return gram

        return in_parallel(part, range(len(self._members)))

    def class_scores(self, step: Floats) -> list[Floats]:
        """Return Z_k step_k."""
        change = self._root * _class_scores(self.features, step, self.has_bias)
        return [change[of_k, k] for k, of_k in enumerate(self._members)]

    def class_combine(self, q: list[Floats]) -> Floats:
        """Return Z_kᵀ q_k."""
        change = np.zeros_like(self._root)
        for k, of_k in enumerate(self._members):
            change[of_k, k] = q[k]
        change *= self._root
        return self._augmented(self.features.combine(change), change.sum(axis=0))

    def _augmented(self, w: Floats, b: Floats) -> Floats:
        return np.column_stack([w, b]) if self.has_bias else np.array(w, order="C")


def _class_scores(features: Features, a: Floats, has_bias: bool) -> Floats:
    """Return w_k·x_i + b_k."""
    if has_bias:
        return features.scores(a[:, :-1].copy(), a[:, -1].copy())
    return features.scores(a.copy())
