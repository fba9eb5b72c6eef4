"""Sequential dual ascent: the shares of one sample after the other. It needs random access."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...engines.linear import AscentFeatures, AscentState, Features
from ...solution import Solution
from . import directions
from .candidate import Candidate, Run


@dataclass(frozen=True)
class Tuning:
    """What sequential ascent decides by."""

    round_multiplications: float = 1e6  # of the passes made in a row
    round_passes: int = 16  # at most
    far: float = 0.5  # below the shares, of the worst violation: classes there are left out
    bias_step: float = 0.1  # relative to the mean ‖x‖²
    # Newton steps that a fit may take: sequential ascent may take as long as they would, so that
    # no fit takes more than twice the time of the better method.
    newton_steps: float = 40
    blas_faster: float = 8.0  # its multiplications in the time of one of a pass over rows
    directions: directions.Tuning = field(default_factory=directions.Tuning)


class SequentialAscent:
    """Passes over the samples, one at a time, with most of them soon left out.

    Parameters
    ----------
    candidate : Candidate
        Its state and a = (w, b) are where the passes begin, and are those of the last pass in the
        end.
    features : AscentFeatures
        X, as an engine with random access to its rows holds it.
    rng : RandomState
        For the order of the samples.
    tuning : Tuning
    """

    def __init__(
        self,
        candidate: Candidate,
        features: AscentFeatures,
        rng: np.random.RandomState,
        tuning: Tuning,
    ) -> None:
        self.candidate, self.rng, self.tuning = candidate, rng, tuning
        self.ascent: AscentState = features.ascent_state(
            candidate.state, candidate.a, tuning.bias_step
        )

    @property
    def dual(self) -> float:
        """D, apart from the balance of a free bias."""
        ascent = self.ascent
        return ascent.flow - 0.5 * self.candidate.square_of(ascent.w, ascent.balance)

    def run(self, run: Run) -> None:
        """Make passes until the gap is small, or Newton steps would take less time."""
        self._passes(run)
        self._hand_back()

    def _passes(self, run: Run) -> None:
        candidate, ascent, tuning = self.candidate, self.ascent, self.tuning
        budget = _expected_work(candidate, tuning)
        n = candidate.state.features.n_rows
        order, far, aim = np.arange(n), np.inf, run.aim
        while budget > 0.0:
            work = ascent.work(order)
            times = tuning.round_multiplications / max(work, 1.0)
            times = int(np.clip(times, 1, tuning.round_passes))
            budget -= times * work
            visits = np.concatenate([self.rng.permutation(order) for _ in range(times)])
            candidate.scale = 1.0
            # b⁰ becomes the b of the pass before.
            ascent.b *= 1.0 - candidate.penalty * ascent.step
            ascent.b += ascent.step * ascent.balance
            gap, worst, errors = ascent.visit(visits, far, run.overdue)
            gap, errors, dual = gap / times, errors // times, self.dual
            # The gap is that met on the way: not that of the w in the end.
            if run.report(dual, gap, errors, self._snapshot, candidate.bounds(np.nan, dual)):
                return
            far = tuning.far * worst
            order = ascent.open(order)
            if gap <= aim * abs(dual + gap) or not order.size:
                gap, primal = self._measure()
                run.progress.measured(*candidate.bounds(primal, primal - gap))
                budget -= 2.0 * _numbers(candidate) * len(ascent.b) / tuning.blas_faster
                if run.converged(candidate, gap, primal):
                    return
                # Gaps of a pass are those met on the way, and of the samples not left out.
                aim *= 0.5
                order, far = np.arange(n), np.inf
                ascent.reopen()

    def _measure(self) -> tuple[float, float]:
        """Return the gap and P, with w made that of α again: rounding adds up."""
        candidate, ascent = self.candidate, self.ascent
        total = candidate.state.sums().total
        if candidate.has_bias:
            ascent.w[:], ascent.balance = total[:, :-1], total[:, -1].copy()
        else:
            ascent.w[:] = total
        self._hand_back()
        candidate.state.place(candidate.a)
        found = candidate.state.survey()
        primal = candidate.primal(found.loss, found.worst)
        return primal - self.dual, primal

    def _hand_back(self) -> None:
        """Make a that of the last pass."""
        w, b = self.ascent.w, self.ascent.b
        self.candidate.a = np.column_stack([w, b]) if self.candidate.has_bias else np.array(w)

    def _snapshot(self) -> Solution:
        self._hand_back()
        return self.candidate.snapshot()


def _numbers(candidate: Candidate) -> int:
    """Return about how many numbers the rows have."""
    features = candidate.state.features
    return features.n_rows * _per_row(features)


def _per_row(features: Features) -> int:
    return int(features.stored_per_row) + (not features.is_dense)


def _expected_work(candidate: Candidate, tuning: Tuning) -> float:
    """Return what Newton steps may take, in multiplications of a pass over rows."""
    features, c = candidate.state.features, len(candidate.a)
    n, size, per_row = features.n_rows, features.n_columns + 1, _per_row(features)
    everywhere = 4.0 * _numbers(candidate) * c
    several = min(n, c * size)  # samples with more than one class, two or three of them
    # Products with sparse rows are no faster than passes.
    slow = 1.0 if features.is_dense else tuning.blas_faster
    if directions.is_small(c, size, tuning.directions):
        step = (c * size) ** 3 / 3.0 + 6.0 * several * size**2
    else:
        side = min(size, 3 * several // c)
        step = c * side**3 / 3.0 + c * side**2 * (per_row if side < size else 3 * several // c)
        step += 20.0 * slow * 8.0 * several * per_row * c
    return tuning.newton_steps * (slow * everywhere + step) / tuning.blas_faster
