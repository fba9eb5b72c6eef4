"""Semismooth Newton on the augmented Lagrangian: minimisations of Φ, and the steps of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...arrays import Floats
from ...solution import Solution, Status
from ..line_search import line_search
from . import directions
from .candidate import ROUNDING, TINY, Candidate, Run


@dataclass(frozen=True)
class Tuning:
    """What Newton's method decides by."""

    least_first_delta: float = 0.1  # the least δ to begin with where no answer is nearby
    # δ is multiplied by the factor after a minimisation of at most so many steps (steps, factor).
    narrower: tuple[tuple[int, float], ...] = ((0, 0.04), (8, 0.2), (15, 0.5), (25, 1.0))
    most_steps: int = 40  # of a minimisation
    wider: float = 5.0  # δ grows by where these were not enough
    residual_to_slack: float = 0.1  # at which a minimisation ends
    farthest: float = 64.0  # times a step that a line search goes at most
    patience: int = 8  # minimisations in a row that bring nothing: rounding allows no more
    most_rounds: int = 200  # minimisations in all
    directions: directions.Tuning = field(default_factory=directions.Tuning)

    def factor(self, n_steps: int) -> float:
        """Return what δ is multiplied by after a minimisation of so many steps."""
        if n_steps >= self.most_steps:
            return self.wider
        return next((by for most, by in self.narrower if n_steps <= most), 1.0)


class _Best(NamedTuple):
    """What came out of a minimisation: steps beyond what rounding allows may lead away from it."""

    doubt: float
    primal: float
    a: Floats
    scale: float


class Newton:
    """Minimisations of Φ for narrower and narrower δ, each with the samples near a kink only."""

    def __init__(self, candidate: Candidate, delta: float | None, tuning: Tuning) -> None:
        self.candidate, self.delta, self.tuning = candidate, delta, tuning
        # Σ_i α_i (x_i, 1), which w and the gradient of b are made of.
        self.total = candidate.state.sums().total
        candidate.state.place(candidate.a)
        self.gap, self.primal, self.errors = np.inf, np.inf, 0

    def run(self, run: Run) -> None:
        """Alternate minimisations with surveys of all samples."""
        candidate, state, tuning = self.candidate, self.candidate.state, self.tuning
        self._look()
        delta = self._widest() if self.delta is None else self.delta
        idle, reach, within = 0, 0.0, np.inf
        best = self._keep()
        for _ in range(tuning.most_rounds):
            steps = _Steps(self, within, delta)
            n_steps = steps.run(run)
            steps.hand_back()
            # Samples farther from a kink than values have moved will hardly meet it next time.
            reach = within = max(state.place(candidate.a), 0.3 * reach)
            self._look()
            run.progress.measured(*candidate.bounds(self.primal, self.primal - self.gap))
            if run.converged(candidate, self.gap, self.primal):
                return
            # Few steps for a large δ are no bad sign: it shrinks by much then.
            early = delta > tuning.least_first_delta and n_steps <= tuning.narrower[1][0]
            idle = 0 if self.doubt < 0.9 * best.doubt or early else idle + 1
            if idle:  # rounding adds up in what was only kept up to date
                self.total = state.sums().total
            if self.doubt < best.doubt:
                best = self._keep()
            if run.status is not None or idle >= tuning.patience:
                break
            delta *= tuning.factor(n_steps)
        state.restore()
        candidate.a, candidate.scale = best.a, best.scale
        if run.proved(candidate, best.primal):
            run.status = Status.CONVERGED

    def _keep(self) -> _Best:
        self.candidate.state.keep()
        return _Best(self.doubt, self.primal, self.candidate.a, self.candidate.scale)

    @property
    def doubt(self) -> float:
        """The gap, and what it may grow by when a free bias's Σ_i α_i^k are made 0."""
        if self.candidate.bias != "free":
            return self.gap
        a = self.candidate.a
        return abs(self.gap) + float(np.abs(self.total[:, -1]) @ (1.0 + np.abs(a[:, -1])))

    def _widest(self) -> float:
        """Return the δ to begin with, by the gap: at ``natural`` Φ bends along x as ½‖w‖² does."""
        relative = self.gap / max(abs(self.primal), TINY)
        natural = self.candidate.state.mean_curvature()
        return max(min(relative, 1.0) * natural, self.tuning.least_first_delta)

    def _look(self) -> None:
        """Measure the gap over all samples."""
        candidate = self.candidate
        found = candidate.state.survey()
        self.errors = found.errors
        dual = candidate.state.flow() - 0.5 * candidate.square(self.total)
        self.primal = candidate.primal(found.loss, found.worst)
        self.gap = self.primal - dual


class _Steps:
    """Newton steps with some samples; all others keep the one class that has all of their p."""

    def __init__(self, newton: Newton, reach: float, delta: float) -> None:
        candidate = newton.candidate
        self.newton, self.candidate, self.delta = newton, candidate, delta
        self.tuning = newton.tuning
        self.a: Floats = candidate.a
        self.total: Floats = newton.total
        whole_flow = candidate.state.flow()
        self.state = candidate.state.near(reach)
        # Σ α (x, 1) and Σ α^y of the samples that keep theirs.
        mine, self.flow = self.state.sums()
        self.held, self.held_flow = self.total - mine, whole_flow - self.flow
        # What Φ has of ½a²: all of w, a penalised bias, nothing of a free one.
        self.ridge = np.ones(self.a.shape[1])
        if candidate.has_bias:
            self.ridge[-1] = candidate.penalty

    def hand_back(self) -> None:
        """Make the candidate what came out."""
        self.candidate.state.take_back()
        self.candidate.a, self.candidate.scale = self.a, 1.0
        self.newton.total = self.total

    def run(self, run: Run) -> int:
        """Minimise Φ; return the steps it took."""
        slack, _ = self.state.smooth(0.0, self.delta)
        self.state.advance(0.0)
        self._add_up()
        for n_steps in range(self.tuning.most_steps):
            gradient = self.ridge * self.a - self.total
            # D falls short of Φ by as much: w is not quite Σ αx, nor Σ α 0.
            residual = 0.5 * float(np.sum(self.ridge * gradient**2))
            unbalanced = (1.0 - self.ridge) * np.abs(gradient)
            residual += float(np.sum(unbalanced * (1.0 + np.abs(self.a))))
            dual = self.held_flow + self.flow - 0.5 * float(np.sum(self.ridge * self.total**2))
            aim = 0.5 * run.aim * abs(dual + slack + residual)
            if residual <= self.tuning.residual_to_slack * slack or slack + residual <= aim:
                return n_steps
            moved = self._move(self._direction(gradient), gradient)
            if moved is None:
                return n_steps
            slack = moved
            gap, errors = slack + residual, self.newton.errors
            if run.report(dual, gap, errors, self._snapshot, self._bounds(slack)):
                return n_steps
        return self.tuning.most_steps

    def _bounds(self, slack: float) -> tuple[float, float]:
        """Return P and D now, P only where all samples take part: others may have met a kink."""
        flow, primal = self.held_flow + self.flow, np.nan
        if self.state.features.n_rows == self.candidate.state.features.n_rows:
            square = float(np.sum(self.ridge * self.a**2))
            # Σ C_i (max_k s_i^k − s_i^y), of which p_i·s_i − s_i^y is Σ α^y − Σ_k a_k·Σ α^k (x, 1).
            primal = 0.5 * square + slack + flow - float(np.vdot(self.a, self.total))
        dual = flow - 0.5 * float(np.sum(self.ridge * self.total**2))
        return self.candidate.bounds(primal, dual)

    def _snapshot(self) -> Solution:
        self.hand_back()
        return self.candidate.snapshot()

    def _add_up(self) -> None:
        """Make the sums those of p."""
        mine, self.flow = self.state.sums()
        self.total = self.held + mine

    def _direction(self, gradient: Floats) -> Floats:
        """Return −H⁻¹g, H the Hessian at p."""
        rows = self.state.curvature(self.delta)
        return directions.newton_direction(
            rows, gradient, self.ridge, self.candidate.bias, self.tuning.directions
        )

    def _move(self, step: Floats, gradient: Floats) -> float | None:
        """Go along the step as far as Φ descends; return the gap there, None if it is nowhere."""
        size = self.state.aim(step)
        first = float(np.vdot(gradient, step))
        if not -first > ROUNDING * size:
            return None
        base = float(np.sum((self.ridge * self.a - self.held) * step))
        bend = float(np.sum(self.ridge * step**2))
        gap = 0.0

        def slope(t: float) -> float:
            nonlocal gap
            gap, of_losses = self.state.smooth(t, self.delta)
            return base + t * bend + of_losses

        t = line_search(slope, first, self.tuning.farthest)
        self.a = self.a + t * step
        self.state.advance(t)
        self._add_up()
        return gap
