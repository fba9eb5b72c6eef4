"""How far a kernel machine of several classes is from its optimum.

With w_k = Σ α_i^k φ(x_i), values s_i^k = (k ≠ y_i) + w_k·φ(x_i) + b_k and what each class has of
C_i, σ_i = C_i e_y − α_i ≥ 0, the duality gap of an α with Σ_i α_i = 0 is a sum of terms that are
not negative,

    P(w, b) − D(α) = Σ_i Σ_k σ_i^k (max_l s_i^l − s_i^k).

Where a bias is free and the sums of α are not quite 0, flows between classes are lowered until
they are, by Δ in all: that takes Σ Δ·s + ½Σ_k‖Σ_i Δ_i^k φ(x_i)‖² from D. What rounding may have
done to the values is bounded sample by sample, and the claims are as large as these bounds allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

import numpy as np

from ..arrays import Floats
from ..kernels import Linear
from ..problems import JointKernelProblem
from ..runtime.threads import in_parallel
from ..solution import Solution
from .base import certify
from .dual import MarginCertificate
from .dual_tasks import ROUNDING, TINY
from .joint import circulating, dual_variables, rival_flows
from .scores import TUNING, UNIT, float64_tile, kernel_scores


@certify.register
def _(
    problem: JointKernelProblem, solution: Solution, *, sample: int | None = None
) -> MarginCertificate:
    assert solution.alpha is not None
    flows = rival_flows(problem, solution.alpha)
    alpha = dual_variables(problem.labels, flows)
    scale = max(1.0, float(np.abs(alpha).max(initial=0.0)))
    box = float(np.abs(alpha - solution.alpha).max(initial=0.0)) / scale
    values = _Values.of(problem, alpha, solution.b)
    balance, repair = 0.0, 0.0
    if problem.bias == "free":
        balance = float(np.abs(alpha.sum(axis=0)).max()) / max(1.0, float(flows.sum()))
        repair = _repair(problem, flows, values)
    nominal, worst = values.violations(alpha)
    primal, unknown = values.primal(alpha, solution.b)
    gap = values.gap(alpha) + repair + 64.0 * UNIT * values.size(alpha)
    least = max(primal - unknown, TINY)
    relative = gap / least if np.isfinite(gap) else np.inf
    n = problem.labels.size
    return MarginCertificate(
        primal + unknown, primal - unknown - gap, gap, relative, nominal, balance, box,
        worst - nominal, n, n,
    )  # fmt: skip


@dataclass(frozen=True)
class _Values:
    """s (n, c), and by how much each number of a row may be wrong at most (n,)."""

    problem: JointKernelProblem
    values: Floats
    errors: Floats

    @classmethod
    def of(cls, problem: JointKernelProblem, alpha: Floats, b: Floats) -> _Values:
        values, errors = _scores(problem, alpha, b)
        values += 1.0
        errors += 2.0 * UNIT * (1.0 + np.abs(values).max(axis=1))
        values[np.arange(len(values)), problem.labels] -= 1.0
        return cls(problem, values, errors)

    def shares(self, alpha: Floats) -> Floats:
        """Return σ."""
        shares = -alpha
        shares[np.arange(len(alpha)), self.problem.labels] += self.problem.cost
        # Own shares that rounding made of sums of flows.
        return np.maximum(shares, 0.0)

    def _short(self, errors: Floats) -> Floats:
        """Return by how much each class is below the largest of the others, at most: (n, c)."""
        n = len(self.values)
        best = self.values.argmax(axis=1)
        others = self.values.copy()
        others[np.arange(n), best] = -np.inf
        rivals = np.repeat(self.values.max(axis=1)[:, np.newaxis], self.values.shape[1], axis=1)
        rivals[np.arange(n), best] = others.max(axis=1)
        short: Floats = rivals - self.values + 2.0 * errors[:, np.newaxis]
        return np.maximum(short, 0.0)

    def gap(self, alpha: Floats) -> float:
        """Return Σ σ (max s − s), at most."""
        shares = self.shares(alpha)
        # What rounding leaves of C_i − Σ flows is as uncertain as that.
        unsure = 8.0 * UNIT * self.problem.cost
        shares[np.arange(len(alpha)), self.problem.labels] += unsure
        return float(np.sum(shares * self._short(self.errors)))

    def violations(self, alpha: Floats) -> tuple[float, float]:
        """Return the worst KKT violation, and what it may be at most."""
        taking = self.shares(alpha) > ROUNDING * self.problem.cost[:, np.newaxis]
        found = [
            float(np.where(taking, self._short(errors), 0.0).max(initial=0.0))
            for errors in (np.zeros_like(self.errors), self.errors)
        ]
        return found[0], found[1]

    def primal(self, alpha: Floats, b: Floats) -> tuple[float, float]:
        """Return P, and by how much it may be wrong."""
        n, cost = len(alpha), self.problem.cost
        own = self.values[np.arange(n), self.problem.labels]
        rivals = self.values.copy()
        rivals[np.arange(n), self.problem.labels] = -np.inf
        slack = rivals.max(axis=1) - own
        loss = float(cost @ np.maximum(slack, 0.0))
        blur = float(cost @ np.maximum(slack + 2.0 * self.errors, 0.0)) - loss
        flow = float(alpha[np.arange(n), self.problem.labels].sum())
        sizes = np.abs(alpha).sum(axis=1)
        square = float(np.vdot(alpha, self.values)) + flow - float(b @ alpha.sum(axis=0))
        unknown = blur + 0.5 * float(sizes @ self.errors)
        return 0.5 * square + loss, unknown + 64.0 * UNIT * self.size(alpha)

    def size(self, alpha: Floats) -> float:
        """Return the sum of the sizes of all terms that P and D have."""
        most = np.abs(self.values).max(axis=1)
        return float((np.abs(alpha).sum(axis=1) + self.problem.cost) @ (1.0 + most))


def _repair(problem: JointKernelProblem, flows: Floats, values: _Values) -> float:
    """Return what D loses at most when flows are lowered until Σ_i α_i = 0, rounding included."""
    lost = flows - circulating(problem.labels, flows)
    n, diagonal = len(lost), problem.kernel.diagonal(problem.X)[problem.index]
    own = values.values[np.arange(n), problem.labels]
    below = values.values - own[:, np.newaxis]
    slope = float(np.sum(lost * (below + 2.0 * values.errors[:, np.newaxis])))
    left = dual_variables(problem.labels, flows - lost).sum(axis=0)
    lost[np.arange(n), problem.labels] = lost.sum(axis=1)
    lengths = np.sqrt(np.abs(diagonal)) * (1.0 + 8.0 * UNIT)
    length = float(np.linalg.norm(lengths @ lost))
    # What rounding leaves of the sums after the repair could be lowered in the same way.
    rest = float(np.abs(left).sum()) + 64.0 * UNIT * float(flows.sum())
    steepest = float(np.abs(below).max(initial=0.0) + 2.0 * values.errors.max(initial=0.0))
    more = 2.0 * rest * float(lengths.max(initial=0.0))
    return slope + rest * steepest + 0.5 * (length + more) ** 2


def _scores(problem: JointKernelProblem, alpha: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return w_k·φ(x_i) + b_k (n, c), and bounds of the errors of each row (n,)."""
    if isinstance(problem.kernel, Linear):
        planes = zip(alpha.T, b.tolist(), strict=True)
        columns, blurs = zip(*(kernel_scores(problem, a, b=b) for a, b in planes), strict=True)
        return np.column_stack(columns), np.max(blurs, axis=0)
    n, rows = len(alpha), TUNING.tile_rows
    support = np.flatnonzero(alpha.any(axis=1))
    # Errors are bounded for the largest coefficient of any class.
    weights = np.abs(alpha).max(axis=1)
    n_terms = support.size + 2

    def part(start: int, stop: Event) -> tuple[Floats, Floats]:
        some = np.arange(start, min(start + rows, n))
        scores, errors = np.zeros((some.size, len(b))), np.zeros(some.size)
        for first in range(0, support.size, rows):
            if stop.is_set():
                break
            others = support[first : first + rows]
            tile, error, size = float64_tile(
                problem.kernel, problem.X, problem.index[some], problem.index[others],
                weights[others],
            )  # fmt: skip
            scores += tile @ alpha[others]
            errors += error + n_terms * UNIT * size
        return scores, errors

    alone = n * support.size <= TUNING.unthreaded_values or not problem.kernel.elementwise
    done = in_parallel(part, range(0, n, rows), alone=alone)
    scores = np.concatenate([each for each, _ in done]) + b
    errors = np.concatenate([each for _, each in done])
    largest = np.abs(scores).max(axis=1) + float(np.abs(b).max())
    return scores, errors + 2.0 * UNIT * largest
