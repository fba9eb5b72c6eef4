"""Semismooth Newton on the augmented Lagrangian: minimisations of Φ, and the steps of each."""

from __future__ import annotations

from threading import Event
from typing import NamedTuple

import numpy as np

from ...arrays import Floats, Integers
from ...runtime.threads import in_parallel
from ...solution import Solution, Status
from ..line_search import line_search
from .directions import augmented, parted, way_for
from .machine import ROUNDING, TINY, Machine, Run, alpha_of
from .passes import smoothed_maxima, survey

# The least δ to begin with where no answer is nearby; then it shrinks by as much as steps were few
# (steps up to, factor); beyond, it is kept, and it grows where so many steps were not enough.
NARROWEST = 0.1
NARROWER = ((0, 0.04), (8, 0.2), (15, 0.5), (25, 1.0))
WIDER, MANY = 5.0, 40
# A minimisation ends where what steps still promise is this fraction of the gap that δ leaves.
ENOUGH = 0.1
# How many times a step a line search goes at most.
FARTHEST = 64.0
# Numbers of a pass over samples that are one core's part.
PART = 1 << 18
# Minimisations in a row that bring nothing: rounding allows no more; and minimisations in all.
PATIENCE, ROUNDS = 8, 200


class _Answer(NamedTuple):
    """What came out of a minimisation: steps beyond what rounding allows may lead away from it."""

    doubt: float
    primal: float
    p: Floats
    a: Floats
    scale: float


class Newton:
    """Minimisations of Φ for narrower and narrower δ, each with the samples near a kink only."""

    def __init__(self, machine: Machine, delta: float | None) -> None:
        self.machine, self.delta = machine, delta
        self.a = augmented(machine.w, machine.b, machine.has_bias)
        # Σ_i α_i (x_i, 1), which w and the gradient of b are made of.
        self.total = augmented(*machine.combined(), machine.has_bias)
        self.values = machine.values()
        self.gap, self.primal, self.errors = np.inf, np.inf, 0

    def run(self, run: Run) -> None:
        """Alternate minimisations with looks at all samples."""
        machine = self.machine
        near = np.arange(self._look().size)
        delta = self._widest() if self.delta is None else self.delta
        idle, reach = 0, 0.0
        best = self._answer()
        for _ in range(ROUNDS):
            steps = _Steps(self, near, delta)
            n_steps = steps.run(run)
            steps.hand_back()
            before = self.values
            self.values = machine.values()
            # Samples farther from a kink than values have moved will hardly meet it next time.
            reach = max(float(np.abs(self.values - before).max()), 0.3 * reach)
            near = np.flatnonzero(self._look() <= reach)
            run.progress.measured(*machine.bounds(self.primal, self.primal - self.gap))
            if run.converged(machine, self.gap, self.primal):
                return
            # Few steps for a large δ are no bad sign: it shrinks by much then.
            early = delta > NARROWEST and n_steps <= NARROWER[1][0]
            idle = 0 if self.doubt < 0.9 * best.doubt or early else idle + 1
            if idle:  # rounding adds up in what was only kept up to date
                self.total = augmented(*machine.combined(), machine.has_bias)
            if self.doubt < best.doubt:
                best = self._answer()
            if run.status is not None or idle >= PATIENCE:
                break
            delta *= _factor(n_steps)
        machine.p, machine.scale = best.p, best.scale
        machine.w, machine.b = parted(best.a, machine.has_bias)
        if run.proved(machine, best.primal):
            run.status = Status.CONVERGED

    def _answer(self) -> _Answer:
        machine = self.machine
        return _Answer(self.doubt, self.primal, machine.p.copy(), self.a, machine.scale)

    @property
    def doubt(self) -> float:
        """The gap, and what it may grow by when a free bias's Σ_i α_i^k are made 0."""
        if self.machine.problem.bias != "free":
            return self.gap
        return abs(self.gap) + float(np.abs(self.total[:, -1]) @ (1.0 + np.abs(self.a[:, -1])))

    def _widest(self) -> float:
        """Return the δ to begin with, by the gap: at ``natural`` Φ bends along x as ½‖w‖² does."""
        machine = self.machine
        relative = self.gap / max(abs(self.primal), TINY)
        natural = float(np.mean(machine.cost * machine.rows.squared_lengths()))
        return max(min(relative, 1.0) * natural, NARROWEST)

    def _look(self) -> Floats:
        """Measure the gap over all samples; return their distances from a kink."""
        machine = self.machine
        distance = np.empty(machine.labels.size)
        loss, worst, self.errors = survey(
            self.values, machine.labels, machine.cost, machine.p, distance
        )
        w, b = parted(self.total, machine.has_bias)
        dual = machine.flow - 0.5 * machine.square(w, b)
        self.primal = machine.primal(loss, worst)
        self.gap = self.primal - dual
        return distance


class _Steps:
    """Newton steps with some samples; all others keep the one class that has all of their p."""

    def __init__(self, newton: Newton, near: Integers, delta: float) -> None:
        machine = newton.machine
        self.newton, self.machine, self.near, self.delta = newton, machine, near, delta
        self.rows = machine.rows.take(near) if near.size < machine.labels.size else machine.rows
        self.labels, self.cost = machine.labels[near], machine.cost[near]
        self.own = np.arange(near.size), self.labels
        self.a: Floats = newton.a
        self.total: Floats = newton.total
        self.values: Floats = newton.values[near]
        self.center: Floats = machine.p[near]
        self.p: Floats = self.center
        # Σ α (x, 1) and Σ α^y of the samples that keep theirs.
        mine, flow = self._sums()
        self.held, self.held_flow = self.total - mine, machine.flow - flow
        self.flow = flow
        # What Φ has of ½a²: all of w, a penalised bias, nothing of a free one.
        self.ridge = np.ones(self.a.shape[1])
        if machine.has_bias:
            self.ridge[-1] = machine.penalty

    def hand_back(self) -> None:
        """Tell all samples what came out."""
        machine = self.machine
        machine.p[self.near] = self.p
        machine.w, machine.b = parted(self.a, machine.has_bias)
        machine.scale = 1.0
        self.newton.a, self.newton.total = self.a, self.total

    def run(self, run: Run) -> int:
        """Minimise Φ; return the steps it took."""
        slack, _, self.p = self._smoothed(np.zeros_like(self.values), 0.0)
        self._add_up()
        for n_steps in range(MANY):
            gradient = self.ridge * self.a - self.total
            # D falls short of Φ by as much: w is not quite Σ αx, nor Σ α 0.
            residual = 0.5 * float(np.sum(self.ridge * gradient**2))
            unbalanced = (1.0 - self.ridge) * np.abs(gradient)
            residual += float(np.sum(unbalanced * (1.0 + np.abs(self.a))))
            dual = self.held_flow + self.flow - 0.5 * float(np.sum(self.ridge * self.total**2))
            aim = 0.5 * run.aim * abs(dual + slack + residual)
            if residual <= ENOUGH * slack or slack + residual <= aim:
                return n_steps
            moved = self._move(self._direction(gradient), gradient)
            if moved is None:
                return n_steps
            slack = moved
            gap, errors = slack + residual, self.newton.errors
            if run.tell(dual, gap, errors, self._snapshot, self._bounds(slack)):
                return n_steps
        return MANY

    def _bounds(self, slack: float) -> tuple[float, float]:
        """Return P and D now, P only where all samples take part: others may have met a kink."""
        flow, primal = self.held_flow + self.flow, np.nan
        if self.near.size == self.machine.labels.size:
            square = float(np.sum(self.ridge * self.a**2))
            # Σ C_i (max_k s_i^k − s_i^y), of which p_i·s_i − s_i^y is Σ α^y − Σ_k a_k·Σ α^k (x, 1).
            primal = 0.5 * square + slack + flow - float(np.vdot(self.a, self.total))
        return self.machine.bounds(primal, flow - 0.5 * float(np.sum(self.ridge * self.total**2)))

    def _snapshot(self) -> Solution:
        self.hand_back()
        return self.machine.snapshot()

    def _sums(self) -> tuple[Floats, float]:
        """Return Σ_i α_i (x_i, 1) and Σ_i α_i^y of the samples that take part."""
        alpha = alpha_of(self.p, self.cost, self.own)
        total = augmented(self.rows.combine(alpha), alpha.sum(axis=0), self.machine.has_bias)
        return total, float(alpha[self.own].sum())

    def _add_up(self) -> None:
        """Make the sums those of p."""
        mine, self.flow = self._sums()
        self.total = self.held + mine

    def _smoothed(self, along: Floats, t: float) -> tuple[float, float, Floats]:
        """Return the gap of the samples at values + t·along, Φ's slope there, and p."""
        p = np.empty_like(self.center)
        n, c = p.shape
        step = max(1, PART // c)

        def part(first: int, stop: Event) -> tuple[float, float]:
            some = slice(first, first + step)
            return smoothed_maxima(
                self.values[some], along[some], t, self.labels[some], self.cost[some],
                self.center[some], self.delta, p[some],
            )  # fmt: skip

        done = in_parallel(part, range(0, n, step)) if n > step else [part(0, Event())]
        gap, slope = (sum(each) for each in zip(*done, strict=True))
        return float(gap), float(slope), p

    def _direction(self, gradient: Floats) -> Floats:
        """Return −H⁻¹g, H the Hessian at p."""
        bias, weight = self.machine.problem.bias, self.cost / self.delta
        way = way_for(*self.a.shape)
        return way(self.rows, self.p, weight, self.ridge, bias).step(gradient)

    def _move(self, step: Floats, gradient: Floats) -> float | None:
        """Go along the step as far as Φ descends; return the gap there, None if it is nowhere."""
        along = self.rows.scores(*parted(step, self.machine.has_bias))
        first = float(np.vdot(gradient, step))
        if not -first > ROUNDING * float(self.cost @ np.abs(along).max(axis=1, initial=0.0)):
            return None
        base = float(np.sum((self.ridge * self.a - self.held) * step))
        bend = float(np.sum(self.ridge * step**2))
        found: tuple[float, float, Floats] = (0.0, 0.0, self.p)

        def slope(t: float) -> float:
            nonlocal found
            found = self._smoothed(along, t)
            return base + t * bend + found[1]

        t = line_search(slope, first, FARTHEST)
        self.a = self.a + t * step
        self.values = self.values + t * along
        self.p = found[2]
        self._add_up()
        return found[0]


def _factor(n_steps: int) -> float:
    """Return what δ is multiplied by after a minimisation of so many steps."""
    if n_steps >= MANY:
        return WIDER
    return next((by for most, by in NARROWER if n_steps <= most), 1.0)
