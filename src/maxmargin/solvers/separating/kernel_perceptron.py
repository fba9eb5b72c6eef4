"""The perceptron in dual form (Aizerman et al., 1964; Cristianini, Shawe-Taylor, section 2.1).

α_m is the number of mistakes on sample m; the plane Σ α_m y_m φ(x_m) is never formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...arrays import Floats, Integers
from ...engines.base import HostGram
from ...problems import KernelSeparationProblem
from ...progress import Progress
from ...runtime.row_access import compiled
from ...solution import Solution, Status
from .compiled_passes import visits_needed
from .visiting_orders import VisitingOrders


@dataclass(frozen=True)
class Tuning:
    """Constants of the kernel perceptron."""

    # Samples per compiled pass, which needs the Gram matrix among them.
    block_samples: int = 1024


TUNING = Tuning()


@dataclass(frozen=True)
class DualPerceptron:
    """y_m (Σ_l α_l y_l K(x_l, x_m) + b) ≤ 0 ⇒ α_m += 1, b += y_m bias_step.

    The decision values of all samples are stored. A block of samples is visited in compiled code
    with its own Gram block; afterwards one product K[:, mistakes] (αy) updates the decision values
    of all samples. A weight v represents v consecutive visits. Ends after a pass without a mistake.
    """

    gram: HostGram
    max_iter: int
    rng: np.random.RandomState | None = None

    def solve(
        self, problem: KernelSeparationProblem, alpha: Floats, b: float, progress: Progress
    ) -> Solution:
        """Increase ``alpha`` in place, starting from the bias ``b``."""
        y = problem.y
        bias = np.array([b])
        support = np.flatnonzero(alpha)
        decision = (
            self.gram.dot(support, (alpha * y)[support]) if support.size else np.zeros(y.size)
        )
        show = partial(_snapshot, alpha, bias)
        progress.unit = "pass"
        status, updates = Status.ITERATION_LIMIT, 0
        orders = VisitingOrders(y.size, self.rng)
        at_most = 1 if progress.watchers else y.size
        for _ in range(self.max_iter):
            mistakes, objective, stop = 0, 0.0, False
            order = next(orders)
            for first in range(0, y.size, TUNING.block_samples):
                rows = order[first : first + TUNING.block_samples]
                for last, count, loss in self._block(problem, alpha, bias, decision, rows, at_most):
                    mistakes += count
                    objective += loss
                    stop = count > 0 and progress.update(loss, int(problem.index[last]), show)
                    if stop:
                        break
                if stop:
                    break
            updates += mistakes
            stop |= progress.iteration(objective, mistakes, objective, show)
            if mistakes == 0 or stop:
                status = Status.STOPPED if stop else Status.CONVERGED
                break
        return _snapshot(alpha, bias, status, progress, updates)

    def _block(
        self,
        problem: KernelSeparationProblem,
        alpha: Floats,
        bias: Floats,
        decision: Floats,
        rows: Integers,
        at_most: int,
    ) -> Iterator[tuple[int, int, float]]:
        """Visit a block, then update the decision values of all samples.

        Yields the sample last corrected, the mistakes and the criterion after ``at_most`` mistakes.
        """
        K = self.gram.block(rows)
        local = decision[rows]
        y, gain = problem.y[rows], problem.weights[rows]
        before = alpha[rows]
        raised = before.copy()
        position = 0
        while position < rows.size:
            position, count, loss, last = dual_pass(
                K, local, y, gain, raised, bias, problem.bias_step, position, at_most
            )
            alpha[rows] = raised
            yield int(rows[last]), count, loss
        moved = np.flatnonzero(raised != before)
        if moved.size:
            decision += self.gram.dot(rows[moved], y[moved] * (raised - before)[moved])


def _snapshot(
    alpha: Floats,
    bias: Floats,
    status: Status = Status.STOPPED,
    progress: Progress | None = None,
    updates: int = 0,
) -> Solution:
    no_planes = np.empty((0, 0))
    if progress is None:
        return Solution(no_planes, bias.copy(), status, alpha=alpha.copy())
    trace = progress.trace()
    return Solution(
        no_planes, bias.copy(), status, len(trace), updates, progress.seconds, alpha.copy(),
        trace=trace,
    )  # fmt: skip


@compiled
def dual_pass(K, decision, y, gain, alpha, bias, bias_step, position, at_most):
    """Visit the samples of a block from ``position`` on until ``at_most`` mistakes are made."""
    mistakes = 0
    objective = 0.0
    last = position
    while position < y.size and mistakes < at_most:
        m = position
        position += 1
        margin = y[m] * (decision[m] + bias[0])
        if margin <= 0.0:
            mistakes += 1
            objective -= margin
            last = m
            step = gain[m]
            if step > 1.0:
                step = min(step, visits_needed(margin, 1.0, K[m, m] + bias_step))
            alpha[m] += step
            bias[0] += step * y[m] * bias_step
            for j in range(y.size):
                decision[j] += step * y[m] * K[m, j]
    return position, mistakes, objective, last
