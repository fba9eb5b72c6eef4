"""Semismooth Newton on the augmented Lagrangian: the linear machine by second-order steps.

Given: X, y, u, D of a `PrimalProblem`. Wanted: a = (w, b) and α.

The proximal point method on the dual, α = argmax D(α) − Σ (δ/2u_i)(α_i − α⁰_i)², asks in the
primal for the minimum of a smooth convex function,

    Φ(a) = ½‖w‖² + Σ_i max {α z_i − ½D_i α² − (δ/2u_i)(α − α⁰_i)² : 0 ≤ α ≤ u_i},

z_i = 1 − y_i g(x_i), which is piecewise quadratic: where α⁰ = 0 it is the hinge, rounded off over a
width of δ. Its generalised Hessian is I + Σ_F x_i x_iᵀ/(D_i + δ/u_i) over the samples F on the
kink, 0 < α_i < u_i: few of them, once δ is small, and the cost of a step follows them. Newton's
method with a line search minimises it; then α⁰ ← α, and δ shrinks. For the squared hinge D > 0 does
what δ does, and one minimisation is all.

Samples far from the kink keep their α, or their parabola, and stay out of the steps: steps on the
rows near the kink alternate with passes over all of X, which measure the duality gap. Large n begin
with a sample of their rows.

References: Rockafellar, *Math. Oper. Res.* 1 (1976); Li, Sun, Toh, *SIAM J. Optim.* 28 (2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from ...arrays import Floats, Integers
from ...problems import PrimalProblem
from ...progress import Limits, Progress
from ...runtime.memory import free_memory
from ...runtime.row_access import compiled
from ...runtime.threads import in_parallel, interruptible
from ...solution import Solution, Status
from .ledger import Ledger, Plane, balanced, dual_value, of_some, restricted, squared, start_of

# δ: of a start from nothing, of a start from a plane nearby, and from one minimisation to the next.
WIDEST, NEARBY, NARROWER = 2.0, 0.2, 0.7
# Steps end where the residual is this many times the gap that the next δ will close.
ENOUGH = 1.0
# A sample of the rows has so many times fewer of them, and no fewer than these.
LEVEL, FEWEST = 6, 2000
# Numbers in X up to which all rows take part in every step; of more, a share of them.
WHOLE, SHARE = 1 << 16, 0.13
# The gap that is enough for a sample, and how far below tol steps on some rows aim.
ROUGH, BELOW = 0.01, 0.3
# Multiplications up to which a system is solved directly.
DIRECT = 3e10
# Points that a line search looks at, and the farthest of them.
SEARCH, FARTHEST = 60, 1e12
# Curvature that is added to every unknown's own, relative to it: rounding, divided by less, would
# be steps without a limit.
LIFT = float(np.finfo(float).eps)
# Unknowns of a system that takes a tenth of a second.
LARGE = 1500
# Samples in a part of a pass over them.
PART = 1 << 19
# Rounds in which nothing improves before giving up: rounding allows no more.
PATIENCE = 4
# Steps without a smaller residual before δ shrinks all the same, down to where they end. A step
# that moves scores by less than their rounding is the last of them.
STALLED, NARROWEST = 30, 1e-6
STILL = 4.0 * np.finfo(float).eps


class End(Enum):
    """Why a run of steps ended."""

    AIMED = "the gap aimed at is reached"
    SETTLED = "steps have become short: rows far from the kink will stay there"
    STRAYED = "steps have gone so far that rows held may have met the kink"
    LIMIT = "a limit, or a callback"


@dataclass
class State:
    """Where the method stands: a = (w, b), the scores of all rows, α, α⁰ and δ.

    α⁰ is one number a sample, a single 0 for all, or nothing where it is α.
    """

    a: Floats
    scores: Floats
    alpha: Floats
    center: Floats
    delta: float

    @classmethod
    def at(cls, problem: PrimalProblem, features: Any, plane: Plane | None) -> State:
        """Begin with a plane, or with none."""
        delta = WIDEST if plane is None else NEARBY
        plane = start_of(problem, plane or Plane.zero(features.n_columns))
        scores = features.scores(plane.w, plane.b)
        if plane.alpha is not None:
            return cls(plane.augmented, scores, plane.alpha.copy(), plane.alpha, delta)
        alpha = smoothed(problem, scores, delta)
        return cls(plane.augmented, scores, alpha, np.zeros(1), delta)

    @property
    def plane(self) -> Plane:
        """The plane now."""
        return Plane(self.a[:-1].copy(), float(self.a[-1]))


@dataclass(frozen=True)
class SemismoothNewton:
    """The solver of the linear machine for n ≫ d, hinge and squared hinge.

    Parameters
    ----------
    features : Features
        The engine of X.
    tol : float
        The relative duality gap to stop at.
    limits : Limits
        Of Newton steps, and seconds.
    """

    features: Any
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)

    def solve(self, problem: PrimalProblem, start: Plane | None, progress: Progress) -> Solution:
        """Return the plane, and α that proves it."""
        run = _Run(self.limits, progress)
        if start is None:
            start = run.from_samples(problem, self.features)
        return run.on_all(problem, self.features, start, self.tol)


class _Run:
    """The steps of a fit so far, and what ends it early."""

    def __init__(self, limits: Limits, progress: Progress) -> None:
        self.limits, self.progress = limits, progress
        self.n_iter = 0
        self.status: Status | None = None

    def from_samples(self, problem: PrimalProblem, features: Any) -> Plane | None:
        """Return a plane near the answer, from ever larger samples of the rows."""
        n, d = features.n_rows, features.n_columns
        sizes = []
        while (n := n // LEVEL) >= max(FEWEST, 4 * (d + 1)):
            sizes.append(n)
        if not sizes:
            return None
        plane, rng = None, np.random.default_rng(0)
        for size in reversed(sizes):
            rows = np.sort(rng.choice(len(problem.y), size, replace=False, shuffle=False))
            here = features.restrict(rows)
            some = restricted(problem, rows, here.X, len(problem.y) / size)
            if abs(some.y.sum()) < size and not self.status:  # both classes
                steps = _Steps(some, here, State.at(some, here, plane), is_whole=False)
                steps.run(self, ROUGH)
                plane = steps.state.plane
        return plane

    def on_all(
        self, problem: PrimalProblem, features: Any, start: Plane | None, tol: float
    ) -> Solution:
        """Alternate steps on the rows near the kink with passes over all rows."""
        ledger = Ledger(problem, features)
        state = State.at(problem, features, start)
        stored = features.mean_stored * features.n_rows
        # The parabolas of rows held make a square matrix, which must not outgrow X.
        wide = squared(problem) is not None and features.n_columns**2 > stored
        small = stored <= WHOLE or wide
        aim, idle, end = BELOW * tol, 0, End.STRAYED
        share = 1.0 if small else SHARE
        while True:
            everywhere = share > 0.5 or end is End.STRAYED
            steps = (
                _Steps(problem, features, state, share)
                if everywhere
                else _Steps.on_some_rows(problem, features, state, share)
            )
            end = steps.run(self, aim)
            steps.hand_back(state)
            del steps  # and the rows that it holds
            if end is End.SETTLED:
                continue
            if not everywhere:
                state.scores = features.scores(state.a[:-1], float(state.a[-1]))
            alpha = state.alpha
            if squared(problem) is not None:
                alpha = smoothed(problem, state.scores, 0.0)
            before = ledger.gap
            ledger.enter(state.plane, state.scores, alpha)
            self.progress.measured(ledger.primal, ledger.dual)
            idle = idle + (end is End.AIMED) if ledger.gap > 0.5 * before else 0
            if ledger.gap <= tol or self.status or idle > PATIENCE:
                break
            if end is End.AIMED:
                aim *= 0.3
            if end is End.STRAYED and not everywhere:
                share *= 2.0
        met = ledger.gap <= tol
        status = Status.CONVERGED if met else self.status or Status.PATIENCE
        return ledger.solution(status, self.n_iter, self.progress)

    def ended(self, steps: _Steps, gap: float) -> bool:
        """Tell of a step; return whether a limit or a callback ends the fit."""
        self.n_iter += 1
        relative = gap / max(abs(steps.value), np.finfo(float).tiny)
        primal, dual = steps.bounds()
        stop = self.progress.iteration(
            steps.value, steps.errors, relative, steps.snapshot, primal=primal, dual=dual
        )
        self.status = Status.STOPPED if stop else self.limits.reached(self.n_iter, self.progress)
        return self.status is not None


class _Steps:
    """Newton steps with some rows, all others held: min ½aᵀMa − v·a + Σ h_i(z_i).

    M is the identity (for w) plus the parabolas of those held on the sloping side of the squared
    hinge, v the sum of α y (x, 1) of those held. ``is_whole`` where none is held, and all rows of
    the problem asked for are here.
    """

    def __init__(
        self,
        problem: PrimalProblem,
        features: Any,
        state: State,
        share: float = 1.0,
        *,
        is_whole: bool = True,
    ) -> None:
        self.is_whole = is_whole
        self.problem, self.features, self.state, self.share = problem, features, state, share
        if not state.center.size:
            state.center = state.alpha.copy()
        self.rows: Integers | None = None
        self.reach = np.inf
        self.M: Floats | None = None
        self.v: Floats = np.zeros(state.a.size)
        self.constant, self.errors_held = 0.0, 0
        self._change = state.alpha * problem.y
        self._sum = self._total(self._change)
        costs = squared(problem)
        self._costs = problem.upper if costs is None else costs
        self._curvature = _Curvature(features, self._costs)

    @classmethod
    def on_some_rows(
        cls, problem: PrimalProblem, features: Any, state: State, share: float
    ) -> _Steps:
        """Let the rows near the kink take part, a share of them all."""
        z = np.multiply(problem.y, state.scores)
        np.subtract(1.0, z, out=z)
        costs = squared(problem)
        distance = off_kink(z, state.delta if costs is None else 0.0)
        reach = share_of(distance, share)
        near = distance <= reach
        del distance
        rows = np.flatnonzero(near)
        sloping = z > 0.0
        sloping[rows] = False
        errors = int(np.count_nonzero(sloping & (z > 1.0)))
        M, v, constant = _held(problem, features, state, near, sloping, costs, z)
        del z, near, sloping
        taking_part = features.restrict(rows)
        center = state.center if state.center.size else state.alpha
        here = replace(
            state,
            scores=state.scores[rows],
            alpha=state.alpha[rows],
            center=of_some(center, rows),
        )
        state.center = np.empty(0)
        some = restricted(problem, rows, taking_part.X)
        steps = cls(some, taking_part, here, is_whole=False)
        steps.rows, steps.reach, steps.errors_held = rows, reach, errors
        steps.M, steps.v, steps.constant = M, v, constant
        return steps

    def hand_back(self, state: State) -> None:
        """Tell all rows what came out."""
        state.a, state.delta = self.state.a, self.state.delta
        if self.rows is not None:
            state.alpha[self.rows] = self.state.alpha

    def snapshot(self) -> Solution:
        """Return the plane now, and α of all rows where they are here, for those who watch."""
        a, alpha = self.state.a, None
        if self.is_whole:
            alpha = self.state.alpha.copy()
            alpha = balanced(self.problem, alpha) if self.problem.bias == "free" else alpha
        return Solution(a[np.newaxis, :-1].copy(), a[-1:].copy(), Status.STOPPED, alpha=alpha)

    def bounds(self) -> tuple[float, float]:
        """Return P and D now.

        Rows held may have met the kink, and a sample of the rows is another problem: not known.
        """
        if not self.is_whole:
            return np.nan, np.nan
        state = self.state
        return self.value, dual_value(self.problem, self.features, state.alpha, self._sum[:-1])[0]

    # How it is done ------------------------------------------------------------------------

    def run(self, fit: _Run, aim: float) -> End:
        """Step until the gap is below ``aim``, relative to the value, or rows must change."""
        state, strayed, least, stalled = self.state, 0.0, np.inf, 0
        self._project()
        while True:
            gradient = self._apply(state.a) - self.v - self._sum
            if self.problem.bias == "none":
                gradient[-1] = 0.0
            # D(α) falls short of Φ by as much: w is not quite Σ αyx, nor yᵀα 0.
            residual = 0.5 * float(gradient[:-1] @ gradient[:-1])
            residual += abs(float(gradient[-1])) * (1.0 + abs(float(state.a[-1])))
            if self.slack + residual <= aim * abs(self.value):
                return End.AIMED
            # Rounding may leave a residual that no step makes smaller.
            stalled = 0 if residual < 0.9 * least else stalled + 1
            least = min(least, residual)
            if stalled > STALLED and state.delta < NARROWEST:
                return End.AIMED
            if residual <= ENOUGH * self.slack or stalled > STALLED:
                least, stalled = np.inf, 0
                state.center = state.alpha.copy()
                state.delta *= NARROWER
                self._project()
                continue
            moved = self._move(self._direction(gradient))
            strayed += moved
            if moved <= STILL * max(1.0, float(np.abs(state.scores).max())):
                stalled = STALLED + 1
            if fit.ended(self, self.slack + residual):
                return End.LIMIT
            if strayed > 0.5 * self.reach:
                return End.STRAYED
            if self.share <= 0.5 and 3.0 * moved < self._next_reach():
                return End.SETTLED

    def _next_reach(self) -> float:
        """Return how far from the kink the farthest row is that would take part."""
        state, some = self.state, slice(None, None, max(1, self.state.scores.size // 10_000))
        z = 1.0 - self.problem.y[some] * state.scores[some]
        distance = off_kink(z, state.delta if squared(self.problem) is None else 0.0)
        return share_of(distance, self.share)

    def _apply(self, a: Floats) -> Floats:
        """Return Ma."""
        if self.M is not None:
            return self.M @ a
        out = a.copy()
        out[-1] *= float(self.problem.bias == "penalised")
        return out

    def _total(self, signed: Floats) -> Floats:
        """Return Σ c_i (x_i, 1)."""
        return np.append(self.features.combine(signed), signed.sum())

    def _project(self) -> None:
        """Make α that of the scores, and all sums that go with it."""
        state, problem, change = self.state, self.problem, self._change
        arrays = (state.scores, problem.y, state.center, problem.upper, problem.ridge)
        done = in_parallel(
            lambda k, stop: _project(
                *arrays, state.delta, state.alpha, change, k, min(k + PART, change.size)
            ),
            _parts(change.size),
        )
        self.slack, losses, errors = np.sum(done, axis=0)
        self.errors = int(errors) + self.errors_held
        self._sum = self._sum + self._total(change)
        self.value = (
            0.5 * float(state.a @ self._apply(state.a))
            - float(self.v @ state.a)
            + self.constant
            + float(losses)
        )

    def _move(self, step: Floats) -> float:
        """Go along the step, as far as Φ descends; return how far the scores have moved."""
        state = self.state
        # In the place of the changes of α, which come after.
        along = self.features.scores(step[:-1], float(step[-1]), out=self._change)
        arrays = (state.scores, along, self.problem.y, state.center)
        costs = (self.problem.upper, self.problem.ridge)
        curve = self._apply(step)
        base = float((self._apply(state.a) - self.v) @ step), float(curve @ step)

        def slope(t: float) -> float:
            done = in_parallel(
                lambda k, stop: _slope(
                    *arrays, *costs, state.delta, t, k, min(k + PART, along.size)
                ),
                _parts(along.size),
            )
            return base[0] + t * base[1] - float(sum(done))

        t = line_search(slope, base[0] - float(self._sum @ step))
        state.a = state.a + t * step
        along *= t
        state.scores += along
        moved = float(max(along.max(), -along.min()))
        self._project()
        return moved

    def _direction(self, gradient: Floats) -> Floats:
        """Return −H⁻¹g, by the cheapest way to it."""
        inside = on_kink(self.state.alpha, self.problem.upper)
        free = np.flatnonzero(inside)
        d = self.features.n_columns
        normal = normal_work(self.features, self._curvature.changes(inside))
        gram = gram_work(self.features, free.size) if self.M is None else np.inf
        damping = max(abs(gradient[-1]) / 10.0, np.finfo(float).tiny)
        if min(normal, gram) > DIRECT or 8 * min(d, free.size) ** 2 > free_memory() // 4:
            return self._by_conjugate_gradients(gradient, free, damping)
        if gram < normal:
            return self._by_gram(gradient, free, damping)
        H = self._curvature.at(inside) * self._per_cost
        if self.M is not None:
            H += self.M
        else:
            H[np.diag_indices(d)] += 1.0
            H[-1, -1] += float(self.problem.bias == "penalised")
        H[-1, -1] = max(H[-1, -1], damping)
        if self.problem.bias == "none":
            H[-1], H[:, -1], H[-1, -1] = 0.0, 0.0, 1.0
        return -Factored(H, LIFT).solve(gradient)

    @property
    def _per_cost(self) -> float:
        """Curvature of a sample on the kink, 1/(D + δ/u), relative to u, or to 1/D."""
        return 1.0 / self.state.delta if squared(self.problem) is None else 1.0

    def _weights(self, free: Integers) -> Floats:
        """Return 1/(D + δ/u) of samples on the kink."""
        return np.broadcast_to(of_some(self._costs, free) * self._per_cost, free.size)

    def _by_gram(self, gradient: Floats, free: Integers, damping: float) -> Floats:
        """Solve in the q = S(X_F p_w + p_b) of the samples on the kink, fewer than features.

        (X_F M⁻¹X_Fᵀ + S⁻¹)q − p_b 1 = −X_F M⁻¹g_w and 1ᵀq + κp_b = −g_b give
        p_w = −M⁻¹(g_w + X_Fᵀq), S being the weights, κ the curvature of the bias and M the
        identity, lifted where rounding asks for it.
        """
        rows = self.features.restrict(free)
        weights = self._weights(free)
        g_w, g_b = gradient[:-1], gradient[-1]
        lift = LIFT * rows.squared_columns(weights)
        root: Floats | float = 1.0
        if lift.max(initial=0.0) > np.finfo(float).eps:
            root = 1.0 / np.sqrt(1.0 + lift)
            rows = rows.scaled(root)
            g_w = g_w * root
        q: Floats = np.ones(free.size)
        one = q
        if free.size:
            K = rows.gram()
            K[np.diag_indices(free.size)] += 1.0 / weights
            system = Factored(K)
            q, one = -system.solve(rows.scores(g_w)), system.solve(one)
        step = np.zeros(gradient.size)
        if self.problem.bias != "none":
            kappa = 1.0 if self.problem.bias == "penalised" else 0.0
            kappa = max(kappa, damping if one.sum() + kappa < damping else 0.0)
            step[-1] = -(g_b + q.sum()) / (one.sum() + kappa)
            q = q + step[-1] * one
        step[:-1] = -(g_w + rows.combine(q)) * root
        return step

    def _by_conjugate_gradients(self, gradient: Floats, free: Integers, damping: float) -> Floats:
        rows = self.features.restrict(free)
        weights = self._weights(free)
        squares = np.append(rows.squared_columns(weights), weights.sum())
        diagonal = squares + (
            np.diag(self.M) if self.M is not None else self._apply(np.ones_like(squares))
        )
        extra = max(0.0, damping - diagonal[-1])
        diagonal[-1] += extra
        has_bias = self.problem.bias != "none"

        def product(p: Floats) -> Floats:
            c = weights * rows.scores(p[:-1], float(p[-1]) * has_bias)
            out = self._apply(p) + np.append(rows.combine(c), c.sum())
            out[-1] += extra * p[-1]
            if not has_bias:
                out[-1] = p[-1]
            return out

        if not has_bias:
            diagonal[-1] = 1.0
        size = gradient.size
        operator = LinearOperator((size, size), matvec=product)
        inverse = LinearOperator((size, size), matvec=lambda r: r / diagonal)
        step, _ = cg(operator, -gradient, rtol=0.03, maxiter=100, M=inverse)
        return step


def _held(
    problem: PrimalProblem,
    features: Any,
    state: State,
    near: NDArray[np.bool_],
    sloping: NDArray[np.bool_],
    costs: Floats | None,
    scratch: Floats,
) -> tuple[Floats | None, Floats, float]:
    """Return M, v and the constant of the rows that are held; their α goes to its bound."""
    if costs is None:
        state.alpha[~near] = 0.0
        state.alpha[sloping] = of_some(problem.upper, sloping)
        signed = np.multiply(state.alpha, problem.y, out=scratch)
        signed[near] = 0.0
        M, constant = None, float(signed @ problem.y)
    else:
        rows = np.flatnonzero(sloping)
        costs = of_some(costs, rows)
        M = features.moments(costs, rows)
        M[np.diag_indices(features.n_columns)] += 1.0
        M[-1, -1] += float(problem.bias == "penalised")
        signed = scratch
        signed[:] = 0.0
        signed[rows] = costs * problem.y[rows]
        constant = 0.5 * float(np.sum(np.broadcast_to(costs, rows.shape)))
    return M, np.append(features.combine(signed), signed.sum()), constant


class _Curvature:
    """Σ c_i (x_i, 1)(x_i, 1)ᵀ over a set of samples, kept up to date as the set changes."""

    def __init__(self, features: Any, costs: Floats) -> None:
        self.features, self.costs = features, costs
        self.inside = np.zeros(features.n_rows, dtype=bool)
        self.total: Floats | None = None
        self.subtracted = 0

    def changes(self, inside: NDArray[np.bool_]) -> int:
        """Return how many rows the sum over a set would take."""
        whole = int(np.count_nonzero(inside))
        if self.total is None:
            return whole
        return min(whole, int(np.count_nonzero(inside != self.inside)))

    def at(self, inside: NDArray[np.bool_]) -> Floats:
        """Return the sum over a set."""
        left = self.inside & ~inside
        self.subtracted += int(np.count_nonzero(left))
        size = int(np.count_nonzero(inside))
        # Rounding of what was subtracted stays: it must not outgrow what is there.
        if self.total is None or self.changes(inside) >= size or self.subtracted > 4 * size:
            self.total, self.subtracted = self._sum(inside), 0
        else:
            self.total = self.total + self._sum(inside & ~self.inside) - self._sum(left)
        self.inside = inside
        return self.total

    def _sum(self, chosen: NDArray[np.bool_]) -> Floats:
        rows = np.flatnonzero(chosen)
        return self.features.moments(of_some(self.costs, rows), rows)


def off_kink(z: Floats, delta: float) -> Floats:
    """Return how far z is from 0 ≤ z ≤ δ."""
    distance = z - 0.5 * delta
    np.abs(distance, out=distance)
    distance -= 0.5 * delta
    return distance


def share_of(distances: Floats, share: float) -> float:
    """Return the distance within which a share of the rows lies."""
    return float(np.quantile(distances[:: max(1, distances.size // 10_000)], share))


def smoothed(problem: PrimalProblem, scores: Floats, delta: float) -> Floats:
    """Return α of the loss rounded off over a width of δ."""
    alpha, change = np.zeros(scores.size), np.empty(scores.size)
    arrays = (scores, problem.y, np.zeros(1), problem.upper, problem.ridge)
    in_parallel(
        lambda k, stop: _project(*arrays, delta, alpha, change, k, min(k + PART, scores.size)),
        _parts(scores.size),
    )
    return alpha


def on_kink(alpha: Floats, upper: Floats) -> NDArray[np.bool_]:
    """Return which samples are on the kink, 0 < α < u."""
    return (alpha > 0.0) & (alpha < upper)


def normal_work(features: Any, n_free: int) -> float:
    """Return the multiplications of a step that solves for the features."""
    return n_free * (features.mean_stored + 1.0) ** 2 + features.n_columns**3 / 3.0


def gram_work(features: Any, n_free: int) -> float:
    """Return the multiplications of a step that solves for the samples on the kink."""
    # A product of sparse rows takes as many look-ups, which are slower.
    slower = 1.0 if features.is_dense else 4.0
    return slower * n_free**2 * features.mean_stored + n_free**3 / 3.0


def step_work(features: Any, n_free: int) -> float:
    """Return the multiplications of a step."""
    return min(normal_work(features, n_free), gram_work(features, n_free))


def line_search(slope: Callable[[float], float], first: float, farthest: float = FARTHEST) -> float:
    """Return the t last asked for: a convex function has descended, to half its slope or less.

    ``first`` is the slope at 0; where rounding has left none that descends, the answer is 0. The
    interval where the slope changes sign is found by growing t, and narrowed down by the secant
    rule with a guard; where that ends without a t that will do, the answer is the last one that is
    known to descend, or 0.
    """
    if not first < 0.0:  # rounding: there is no descent along it
        return 0.0
    low, high, at_low, at_high, t = 0.0, np.inf, first, np.inf, 1.0
    for _ in range(SEARCH if first < 0.0 else 0):
        at = slope(t)
        if 0.5 * first <= at <= -1e-3 * first:
            return t
        if at < 0.0:
            low, at_low = t, at
        else:
            high, at_high = t, at
        if np.isinf(high):
            if t >= farthest:
                return t
            t *= 4.0
        else:
            share = at_low / (at_low - at_high)
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    slope(low)
    return low


class Factored:
    """A matrix H that is positive definite up to rounding, scaled to a diagonal of 1, factored."""

    def __init__(self, H: Floats, lift: float = 0.0) -> None:
        self.scale = 1.0 / np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
        scaled = H * self.scale[:, np.newaxis] * self.scale
        diagonal = np.diag_indices(self.scale.size)
        while lift <= 1.0:
            scaled[diagonal] = 1.0 + lift
            try:
                # A large one takes seconds, for which Ctrl-C need not wait.
                factorise = partial(cho_factor, scaled, lower=True, check_finite=False)
                self.factor = interruptible(factorise) if H.shape[0] > LARGE else factorise()
                return
            except LinAlgError:
                lift = max(10.0 * lift, 1e-14)
        # Not a number of it can be relied on: the diagonal, then, and short steps.
        self.factor = np.eye(self.scale.size), True

    def solve(self, right: Floats) -> Floats:
        """Return H⁻¹r."""
        return self.scale * cho_solve(self.factor, self.scale * right, check_finite=False)


def _parts(n: int) -> range:
    return range(0, max(n, 1), PART)


@compiled
def _project(scores, y, center, upper, ridge, delta, alpha, change, first, last):
    """Fill in α = clip((u z + δ α⁰)/(u D + δ), 0, u) and y times its change.

    Return Σ h − (α z − ½Dα²), Σ h, and the number of errors.
    """
    slack, losses, errors = 0.0, 0.0, 0.0
    u, D = upper[0], ridge[0]
    for i in range(first, last):
        if upper.size > 1:
            u = upper[i]
        if ridge.size > 1:
            D = ridge[i]
        z = 1.0 - y[i] * scores[i]
        if z > 1.0:
            errors += 1.0
        if u < np.inf:
            before = center[i] if center.size > 1 else center[0]
            a = min(max((u * z + delta * before) / (u * D + delta), 0.0), u)
            loss = u * max(z, 0.0)
            slack += loss - a * z
        else:
            a = max(z, 0.0) / D
            loss = 0.5 * a * max(z, 0.0)
        losses += loss
        change[i] = (a - alpha[i]) * y[i]
        alpha[i] = a
    return slack, losses, errors


@compiled
def _slope(scores, along, y, center, upper, ridge, delta, t, first, last):
    """Return Σ α_i y_i x_i·p at a + tp."""
    total = 0.0
    u, D = upper[0], ridge[0]
    for i in range(first, last):
        if upper.size > 1:
            u = upper[i]
        if ridge.size > 1:
            D = ridge[i]
        z = 1.0 - y[i] * (scores[i] + t * along[i])
        if u < np.inf:
            before = center[i] if center.size > 1 else center[0]
            a = min(max((u * z + delta * before) / (u * D + delta), 0.0), u)
        else:
            a = max(z, 0.0) / D
        total += a * y[i] * along[i]
    return total
