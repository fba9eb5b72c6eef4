"""Newton's method on working sets of features: the linear machine with an ℓ1 penalty.

Given: X, y, D of an `L1Problem`. Wanted: w and b, α that proves them.

With ξ_i = max(0, 1 − y_i g(x_i)) and c_i = 2C_i the loss ½Σ c_i ξ_i² is a parabola on the rows
inside, ξ_i > 0, and 0 elsewhere: near a plane it is its own quadratic model. A step minimises that
model plus the penalty over a working set of features, those with w_j ≠ 0 and those that violate
|Σ α_i y_i x_ij| ≤ 1 the most, at most as many as were in the set before; a free bias is at its
optimum all the time. The model is minimised over its matrix where rows are many and features few,
over columns of the working set elsewhere. A line search follows on the loss itself.

α_i = c_i ξ_i, multiplied by a factor that makes it feasible, gives D after every step, and the gap.

Equal features leave the model flat: after some steps only one of them stays.

Where features are many and costs large, most features would violate at first, and hardly one in the
end. Costs then begin at a share τ of their own, with which few features enter, and grow; P and D
are those of the costs themselves all the time.

References: Yuan, Ho, Lin, *JMLR* 13 (2012) (newGLMNET); Massias, Gramfort, Salmon, *ICML* (2018)
(working sets by the dual).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...arrays import Floats, Integers
from ...engines.l1 import L1Features, L1State, SlackSums
from ...problems import L1Problem
from ...progress import Limits, Progress
from ...solution import Solution, Status
from ..line_search import line_search
from . import lasso
from .ledger import Plane, bias_without_plane

Form = Literal["auto", "matrix", "columns"]


@dataclass(frozen=True)
class Tuning:
    """What the method decides by."""

    few_columns: int = 64  # up to which all features are in the working set,
    rows_per_column: int = 50  # or with so many rows for each, of no more numbers than that
    first_columns: int = 64  # that may enter an empty working set
    most_columns: int = 2000  # of a matrix
    first_ratio: float = 4.0  # of the first costs to the least with which a feature enters
    growth: float = 10.0  # of the costs
    stage_gap: float = 0.02  # at which they grow: large ones leave the path of the answers else
    stage_steps: int = 20  # after which they do in any case
    equal_after: int = 20  # steps, that equal features are looked for
    equal: float = 1e-12  # relative difference of sums that equal features may have
    fall: float = 0.05  # of the violation, that a model is minimised to
    passes: tuple[int, int] = (60, 4000)  # over features, for a model: at first, and at most
    settled: float = 0.01  # violation that an answer may have
    settling_steps: int = 4  # to get there once the gap is small enough
    patience: int = 6  # steps without progress before giving up
    progress: float = 1e-12  # of P or D, relative, that counts as such
    # Time of a number visited in a pass over columns, and of one of a matrix, in products of its
    # making.
    visit: float = 12.0
    entry: float = 4.0
    lasso: lasso.Tuning = field(default_factory=lasso.Tuning)


@dataclass(frozen=True)
class L1Newton:
    """The solver of the linear machine with an ℓ1 penalty.

    Parameters
    ----------
    features : L1Features
        X, as an engine holds it.
    tol : float
        The relative duality gap to stop at.
    limits : Limits
        Of steps, and seconds.
    form : {"auto", "matrix", "columns"}
        Whether models are matrices, or columns where an engine has them.
    tuning : Tuning
    """

    features: L1Features
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    form: Form = "auto"
    tuning: Tuning = field(default_factory=Tuning)

    def solve(self, problem: L1Problem, start: Plane | None, progress: Progress) -> Solution:
        """Return the plane, and α that proves it."""
        state = self.features.l1_state(problem)
        progress.unit = "step"
        fit = _Fit(problem, state, self.tol, self.form, self.tuning)
        if start is not None and start.w.any():
            fit.compare(start)
        n_iter = 0
        while True:
            found = fit.look()
            status = None
            if n_iter:
                stop = progress.iteration(
                    found.value, found.sums.errors, found.violation, fit.snapshot,
                    primal=found.primal, dual=fit.dual,
                )  # fmt: skip
                status = Status.STOPPED if stop else self.limits.reached(n_iter, progress)
            if fit.gap <= self.tol and fit.is_settled(found):
                return fit.solution(Status.CONVERGED, n_iter, progress)
            if status is None:
                n_iter += 1
                moved = fit.step(found) or fit.grow()
                if moved and fit.idle <= self.tuning.patience:
                    continue
            status = Status.CONVERGED if fit.gap <= self.tol else status or Status.PATIENCE
            return fit.solution(status, n_iter, progress)


@dataclass(frozen=True)
class _Found:
    """What is known of the plane now."""

    sums: SlackSums
    correlations: Floats  # Σ α y x, and Σ α y last where the bias is penalised
    primal: float
    value: float  # P of the costs now
    violation: float


def _factor(sums: SlackSums, top: float, share: float) -> float:
    """Return the multiple of α, feasible, that has the largest D for a share of the costs."""
    if not sums.loss > 0.0:  # α is 0
        return 0.0
    best = 0.5 * share * sums.total / sums.loss
    return best if best * top <= 1.0 else 1.0 / top


def _dual(sums: SlackSums, top: float, share: float) -> float:
    """Return D of the best multiple of α for a share of the costs."""
    factor = _factor(sums, top, share)
    # factor·loss is at most share·total/2, while factor² may overflow.
    return factor * (sums.total - factor * sums.loss / share)


def equal_columns(state: L1State, difference: float) -> tuple[Integers, Floats]:
    """Return the first column that each is equal to, and the sign that makes it so.

    By two sums over the rows with random weights, which equal columns alone have in common.
    """
    one, other = (state.random_sums(seed) for seed in (0, 1))
    size = np.abs(one)
    sign = np.where(one < 0.0, -1.0, 1.0)
    other = sign * other
    order = np.argsort(size, kind="stable")
    little = difference * (size + np.abs(other))[order]
    same = (np.diff(size[order]) <= little[1:]) & (np.abs(np.diff(other[order])) <= little[1:])
    begins = np.flatnonzero(np.append(True, ~same))
    first = np.empty(size.size, dtype=np.intp)
    leaders = np.minimum.reduceat(order, begins)
    first[order] = np.repeat(leaders, np.diff(np.append(begins, size.size)))
    return first, sign * sign[first]


class _Fit:
    """The plane, the best plane and the best α so far; w ends with b where it is penalised."""

    def __init__(
        self, problem: L1Problem, state: L1State, tol: float, form: Form, tuning: Tuning
    ) -> None:
        self.state, self.tol, self.form, self.tuning = state, tol, form, tuning
        self.d = state.features.n_columns
        self.has_bias, self.free = problem.bias == "penalised", problem.bias == "free"
        self.penalties = np.ones(self.d + self.has_bias)
        if self.has_bias:
            self.penalties[-1] = problem.bias_penalty
        self.w: Floats = np.zeros(self.penalties.size)
        self.b = bias_without_plane(problem) if self.free else 0.0
        state.place(self.w[: self.d], self.b)
        self.best = self.plane
        self.primal, self.dual, self.idle = np.inf, 0.0, 0
        features, few = state.features, tuning.few_columns
        self.takes_all = self.d <= few or (
            self.d * tuning.rows_per_column <= features.n_rows and features.stored_per_row <= few
        )
        self.set_size = tuning.first_columns
        self.passes = tuning.passes[0]
        self.share = 1.0  # τ
        self.settling, self.n_steps = 0, 0
        self.usable = np.ones(self.w.size, dtype=bool)
        # With this share: the least violation, and the steps.
        self.least, self.steps = np.inf, 0

    @property
    def plane(self) -> Plane:
        """The plane now."""
        b = float(self.w[-1]) if self.has_bias else self.b
        return Plane(self.w[: self.d].copy(), b)

    @property
    def gap(self) -> float:
        """(P − D)/P of the best."""
        return (self.primal - self.dual) / max(self.primal, np.finfo(float).tiny)

    def is_settled(self, found: _Found) -> bool:
        """Whether features of small weights have had the time to leave."""
        self.settling += 1
        last = self.settling > self.tuning.settling_steps
        small = found.violation <= max(self.tuning.settled, self.tol)
        return last or (self.share == 1.0 and small)

    def compare(self, start: Plane) -> None:
        """Begin with another plane, if that is better."""
        before, loss = (self.w.copy(), self.b), self.state.measure().loss
        value = loss + float(self.penalties @ np.abs(self.w))
        self.w[: self.d], self.b = start.w, start.b if self.free else 0.0
        if self.has_bias:
            self.w[-1] = start.b
        self._place()
        if self.state.measure().loss + float(self.penalties @ np.abs(self.w)) >= value:
            self.w, self.b = before
            self._place()

    def _place(self) -> None:
        plane = self.plane
        self.state.place(plane.w, plane.b)
        if self.free:
            self.b += self.state.settle()

    def look(self) -> _Found:
        """Measure P and D of the plane now, and keep the best of both; let costs grow."""
        state = self.state
        if self.free:
            self.b += state.settle()
        sums = state.measure()
        v = state.correlations()
        if self.has_bias:
            v = np.append(v, sums.balance)
        penalty, top = float(self.penalties @ np.abs(self.w)), self._most(v)
        if self.share == 1.0 and not (self.takes_all or self.w.any()):
            self.share = self.tuning.first_ratio / max(top, self.tuning.first_ratio)
        self._enter(sums, penalty, top)
        value = penalty + self.share * sums.loss
        dual = _dual(sums, top, self.share)
        if self.share < 1.0 and (
            self.steps >= self.tuning.stage_steps or value - dual <= self.tuning.stage_gap * value
        ):
            self.grow()
            value = penalty + self.share * sums.loss
        ratios = self.share * v / self.penalties
        off = np.where(
            self.w != 0.0, np.abs(ratios - np.sign(self.w)), np.maximum(np.abs(ratios) - 1.0, 0.0)
        )
        violation = float(off.max(initial=0.0))
        return _Found(sums, v, penalty + sums.loss, value, violation)

    def _most(self, v: Floats) -> float:
        """Return by how much α is to be divided at least, to be feasible."""
        return float((np.abs(v) / self.penalties).max(initial=0.0))

    def _enter(self, sums: SlackSums, penalty: float, top: float) -> None:
        """Keep the plane, and α, if they are the best so far."""
        primal, factor = penalty + sums.loss, _factor(sums, top, 1.0)
        dual = factor * (sums.total - factor * sums.loss)
        better = self.tuning.progress * max(primal, np.finfo(float).tiny)
        moved = primal < self.primal - better or dual > self.dual + better
        self.idle = 0 if moved or self.share < 1.0 else self.idle + 1
        if primal < self.primal:
            self.primal, self.best = primal, self.plane
        if dual > self.dual:
            self.dual = dual
            self.state.keep(factor)

    def grow(self) -> bool:
        """Let costs grow; return whether they were less than their own."""
        before, self.share = self.share, min(1.0, self.tuning.growth * self.share)
        self.least, self.steps = np.inf, 0
        return before < 1.0

    # A step --------------------------------------------------------------------------------

    def step(self, found: _Found) -> bool:
        """Minimise the model on a working set, and go along; return whether the plane moved."""
        self.steps += 1
        self.n_steps += 1
        if self.n_steps == self.tuning.equal_after:
            self._merge_equal()
        chosen = self._working_set(found.correlations)
        self.least = min(self.least, found.violation)
        enough = max(self.tuning.fall * self.least, 1e-3 * self.tol) / self.share
        u, shift = self._minimum(chosen, found, enough)
        step = np.zeros_like(self.w)
        step[chosen] = u - self.w[chosen]
        if not step.any() and shift == 0.0:
            return False
        target = self.w.copy()
        target[chosen] = u
        return self._go(step, shift, target)

    def _merge_equal(self) -> None:
        """Give the weights of features that are equal, up to a sign, to the first of each.

        The penalty does not grow by it, and scores stay.
        """
        first, sign = equal_columns(self.state, self.tuning.equal)
        others = np.flatnonzero(first != np.arange(self.d))
        if not others.size:
            return
        self.usable[others] = False
        np.add.at(self.w, first[others], sign[others] * self.w[others])
        self.w[others] = 0.0
        self._place()

    def _working_set(self, v: Floats) -> Integers:
        """Return the features with w_j ≠ 0, and those of the largest violations."""
        if self.takes_all:
            return np.flatnonzero(self.usable)
        used = self.w != 0.0
        excess = np.abs(v) / self.penalties - 1.0 / self.share
        excess = np.where(used | ~self.usable, 0.0, excess)
        others = np.flatnonzero(excess > 0.0)
        most = max(self.set_size, int(used.sum()))
        if others.size > most:
            others = others[np.argpartition(-excess[others], most)[:most]]
        chosen = np.flatnonzero(used)
        chosen = np.sort(np.concatenate([chosen, others]))
        self.set_size = max(self.tuning.first_columns, chosen.size)
        return chosen

    def _minimum(self, chosen: Integers, found: _Found, enough: float) -> tuple[Floats, float]:
        """Return the minimum of the model over some features, and the change of a free bias."""
        columns = chosen[chosen < self.d]
        with_bias = columns.size < chosen.size
        slopes, model = found.correlations[chosen], None
        if not self._prefers_matrix(columns, found.sums.n_inside):
            model = self.state.columns(columns, slopes, bias=with_bias, free=self.free)
        if model is None:
            model = self._matrix(columns, with_bias, slopes, found.sums.balance)
        penalties = self.penalties[chosen] / self.share
        u, done = lasso.minimise(
            model, self.w[chosen], penalties, enough, self.passes, self.tuning.lasso
        )
        fewest, most = self.tuning.passes
        self.passes = max(self.passes // 2, fewest) if done else min(2 * self.passes, most)
        return u, model.shift if self.free else 0.0

    def _matrix(
        self, columns: Integers, with_bias: bool, slopes: Floats, balance: float
    ) -> lasso.Matrix:
        """Return the model with its matrix; a free bias is eliminated from it."""
        H = self.state.curvature(columns)
        sums, weight = H[-1, :-1], float(H[-1, -1])
        H = H if with_bias else H[:-1, :-1]
        if not (self.free and weight > 0.0):
            return lasso.Matrix(H, slopes, np.zeros(len(H)), 0.0, self.tuning.lasso)
        sums, shift = sums / weight, balance / weight
        H = H - np.outer(sums, weight * sums)
        return lasso.Matrix(H, slopes - weight * shift * sums, sums, shift, self.tuning.lasso)

    def _prefers_matrix(self, columns: Integers, n_inside: int) -> bool:
        """Whether the matrix of the model takes less time than passes over its columns."""
        if self.form != "auto":
            return self.form == "matrix"
        m, stored = columns.size, self.state.stored(columns)
        if m > self.tuning.most_columns:
            return False
        per_row = stored / max(n_inside, 1)
        matrix = stored * per_row + self.tuning.entry * self.passes * m**2
        return matrix < self.tuning.visit * self.passes * stored

    def _go(self, step: Floats, shift: float, target: Floats) -> bool:
        """Go along a step as far as P descends."""
        change = float(step[-1]) if self.has_bias else shift
        self.state.aim(step[: self.d], change)
        moving = np.flatnonzero(step)
        before, by, ends = (values[moving] for values in (self.w, step, target))
        costs = self.penalties[moving] / self.share

        def slope(t: float) -> float:
            """Return the slope of P after t steps: of those at a kink the nearest to 0."""
            there = ends if t == 1.0 else before + t * by
            kinks = there == 0.0
            value = float(costs @ (np.sign(there) * by)) - self.state.slope(t)
            turn = float(costs[kinks] @ np.abs(by[kinks]))
            return float(np.sign(value)) * max(abs(value) - turn, 0.0)

        signs = np.where(before != 0.0, np.sign(before) * by, np.abs(by))
        first = float(costs @ signs) - self.state.slope(0.0)
        t = line_search(slope, first)
        if t == 0.0:
            return False
        self.state.advance(t)
        self.w = target if t == 1.0 else self.w + t * step
        self.b += t * shift
        return True

    # Answers -------------------------------------------------------------------------------

    def snapshot(self) -> Solution:
        """Return the best plane and the best α."""
        return Solution(
            self.best.w[np.newaxis].copy(), np.array([self.best.b]), Status.STOPPED,
            alpha=self.state.alpha(),
        )  # fmt: skip

    def solution(self, status: Status, n_iter: int, progress: Progress) -> Solution:
        """Return the best as the answer."""
        progress.measured(self.primal, self.dual)
        return Solution(
            w=self.best.w[np.newaxis], b=np.array([self.best.b]), status=status, n_iter=n_iter,
            seconds=progress.seconds, alpha=self.state.alpha(), trace=progress.trace(),
        )  # fmt: skip
