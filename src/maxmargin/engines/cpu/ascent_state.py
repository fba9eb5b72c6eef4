"""Sequential dual ascent: compiled visits of one row after the other (`AscentState`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Floats, Integers, row_length
from .joint_passes import sequential_pass

if TYPE_CHECKING:
    from .joint_state import JointState


@dataclass(frozen=True)
class Tuning:
    """Sizes of passes over the rows."""

    slice_multiplications: float = 5e7  # between two chances to stop: a tenth of a second at most


TUNING = Tuning()


class AscentState:
    """Shares of a `JointState`, w, b and Σ_i α_i^k as they move.

    Parameters
    ----------
    state : JointState
    a : ndarray of shape (c, d + 1) or (c, d)
        w and b.
    relative_step : float
        What b_k moves by when Σ_i α_i^k moves by 1, relative to the mean ‖x‖².
    """

    def __init__(self, state: JointState, a: Floats, relative_step: float) -> None:
        self.state = state
        features = state.features
        n, c = state.p.shape
        lengths = features.squared_lengths()
        mean = (float(lengths.mean()) if n else 1.0) or 1.0
        # The proximal point method on the bias: a pass has ½(b − b⁰)²/step in place of a free one's
        # 0, and besides a penalised one's ½b². A small step decouples samples from each other.
        step = relative_step * mean
        step = {"none": 0.0, "penalised": min(step, 1.0), "free": step}[state.problem.bias]
        self.step = step
        self._curvature = state.costs * np.maximum(lengths + step, 1e-12 * mean)
        w = a[:, :-1] if state.has_bias else a
        # A sparse row meets all classes at once: w is then stored feature by feature.
        self.w: Floats = np.array(w, order="C" if features.is_dense else "F")
        self.b: Floats = a[:, -1].copy() if state.has_bias else np.zeros(c)
        alpha = state._alpha()
        self.balance: Floats = alpha.sum(axis=0)
        self.flow = float(alpha[state.own].sum())
        self._classes = np.tile(np.arange(c, dtype=np.int32), (n, 1))
        self._count = np.full(n, c, dtype=np.int32)
        self._rows, self._places = features.compiled_rows(), features.places()
        self._per_row = row_length(features.X)

    def work(self, order: Integers) -> float:
        """Return the multiplications of visits to some rows."""
        return 4.0 * self._per_row * float(self._count[order].sum())

    def visit(
        self, order: Integers, far: float, stop: Callable[[], bool]
    ) -> tuple[float, float, int]:
        """Visit rows in turn; return the gap met, the worst violation and the number of errors."""
        state = self.state
        step = max(1, int(TUNING.slice_multiplications / (4.0 * self._per_row * len(self.b))))
        gap, worst, errors = 0.0, 0.0, 0
        for first in range(0, order.size, step):
            met, violation, wrong, flow = sequential_pass(
                self._rows, self._places, state.labels, state.costs, self._curvature, state.p,
                self.w, self.b, self.step, self.balance, order[first : first + step],
                self._classes, self._count, far,
            )  # fmt: skip
            gap, worst, errors = gap + met, max(worst, violation), errors + wrong
            self.flow += flow
            if stop():
                break
        return gap, worst, errors

    def open(self, rows: Integers) -> Integers:
        """Return those of some rows with several classes left."""
        return rows[self._count[rows] > 1]

    def reopen(self) -> None:
        """Let all classes take part again."""
        self._count[:] = len(self.b)
