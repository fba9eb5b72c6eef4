"""Shares and values of a joint kernel machine on the CPU."""

from __future__ import annotations

from threading import Event

import numpy as np

from ...arrays import Floats, Integers
from ...problems import JointKernelProblem
from ...runtime.threads import in_parallel
from ..base import HostGram
from ..joint_kernel import JointSurvey
from .joint_blocks import ROUNDING, solve_joint_block

# Kernel values computed at a time, and columns of a product that a thread takes.
VALUES_PER_STEP, STRIP_COLUMNS = 1 << 23, 2048
# The share of the worst violation that a sample must have for a step to pay.
LEAST_SHARE = 0.5
# K(x, x), relative to the largest, below which a sample is taken to have that much.
FLAT = 1e-12


class CpuJointKernelState:
    """Shares p (n, c) and values s (c, n) of a machine, s_i^k = (k ≠ y_i) + w_k·φ(x_i) + b_k.

    α_i = C_i(e_y − p_i), as in `maxmargin.solvers.joint`.
    """

    def __init__(self, problem: JointKernelProblem, gram: HostGram) -> None:
        n, c = problem.labels.size, problem.n_classes
        self.labels, self.cost, self.gram = problem.labels.astype(np.int64), problem.cost, gram
        self.own = np.arange(n), self.labels
        self.diagonal = gram.diagonal()
        self.largest = float(np.abs(self.diagonal).max(initial=0.0))
        self.p: Floats = np.zeros((n, c))
        self.p[self.own] = 1.0
        self.b: Floats = np.zeros(c)
        self.values: Floats = np.empty((c, n))
        self._kept: tuple[float, Floats] | None = None
        self.refresh()

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return self.labels.size

    def start(self, alpha: Floats, b: Floats) -> None:
        """Begin with α, made feasible, and b."""
        flows = np.maximum(-alpha, 0.0) / self.cost[:, np.newaxis]
        flows[self.own] = 0.0
        flows /= np.maximum(flows.sum(axis=1, keepdims=True), 1.0)
        rest = 1.0 - flows.sum(axis=1)
        self.p = flows
        self.p[self.own] = np.where(rest < ROUNDING, 0.0, rest)
        self.b = b.copy()
        self.refresh()

    def refresh(self) -> None:
        """Compute the values anew, from α."""
        self.values[:] = 1.0 + self.b[:, np.newaxis]
        self.values[self.labels, self.own[0]] -= 1.0
        alpha = self.alpha()
        rows = np.flatnonzero(alpha.any(axis=1))
        self._add(rows, alpha[rows])

    def alpha(self, factors: Floats | None = None) -> Floats:
        """Return α (n, c); flows that yield are multiplied by factors (c, c)."""
        flows = self._flows()
        if factors is not None:
            some = self._yielding
            flows[some] *= factors[self.labels[some]]
        alpha = -flows
        alpha[self.own] = flows.sum(axis=1)
        return alpha

    def _flows(self) -> Floats:
        """Return −α of the rivals, 0 of the own class."""
        flows: Floats = self.p * self.cost[:, np.newaxis]
        flows[self.own] = 0.0
        return flows

    def shift(self, by: Floats) -> None:
        """Move the biases."""
        self.b += by
        self.values += by[:, np.newaxis]

    def survey(self) -> JointSurvey:
        """Return sums over all samples, and keep how much each violates."""
        values, flows = self.values, self._flows()
        top, own = values.max(axis=0), values[self.labels, self.own[0]]
        with_share = np.where(self.p.T > 0.0, values, np.inf)
        self.violations = top - with_share.min(axis=0)
        rest = -flows.sum(axis=0)
        totals = flows.sum(axis=1)
        np.add.at(rest, self.labels, totals)
        flow = float(totals.sum())
        gap = float(self.cost @ ((top - values) * self.p.T).sum(axis=0))
        # Σ α·s is ‖w‖² + b·Σα − Σ α^y.
        products = float(totals @ own) - float(np.vdot(flows, values.T))
        square = products - float(self.b @ rest) + flow
        loss = float(self.cost @ (top - own))
        rivals = np.where(np.arange(len(values))[:, np.newaxis] == self.labels, -np.inf, values)
        errors = int(np.count_nonzero(rivals.max(axis=0) - 1.0 >= own))
        return JointSurvey(
            float(self.violations.max(initial=0.0)), gap, loss, square, flow, rest, errors
        )

    @property
    def _yielding(self) -> Integers:
        """The samples whose own class has a share."""
        return np.flatnonzero(self.p[self.own] > 0.0)

    def class_flows(self) -> tuple[Floats, Floats]:
        """Return what flows from each class to each, (c, c): all of it, and what yields."""
        flows, sums = self._flows(), np.zeros((2, len(self.b), len(self.b)))
        np.add.at(sums[0], self.labels, flows)
        some = self._yielding
        np.add.at(sums[1], self.labels[some], flows[some])
        return sums[0], sums[1]

    def choose(self, present: Integers, size: int, n_fresh: int) -> Integers:
        """Return the samples of the next block: the worst violators, and those that may move on."""
        order = np.argsort(-self.violations, kind="stable")[:size]
        order = order[self.violations[order] > 0.0]
        several = np.count_nonzero(self.p[present] > 0.0, axis=1) > 1
        kept = np.setdiff1d(present[several], order[:n_fresh])[: size - min(n_fresh, order.size)]
        rest = np.setdiff1d(order[n_fresh:], kept)
        rest = rest[np.argsort(-self.violations[rest], kind="stable")]
        chosen = np.concatenate([order[:n_fresh], kept, rest])[:size]
        return np.sort(chosen)

    def solve(self, rows: Integers, bias_step: float, stop: float, max_steps: int) -> int:
        """Solve the problem of some samples, all others held fixed; return the steps taken.

        b moves with them, by ``bias_step`` Σ_i α_i.
        """
        is_all = rows.size == self.n_samples
        K = self._block(rows, bias_step)
        before = self.p[rows]
        p, values = before.copy(), np.ascontiguousarray(self.values[:, rows])
        steps, _ = solve_joint_block(
            K, self.labels[rows], self.cost[rows], p, values, stop, LEAST_SHARE, max_steps
        )
        change = (before - p) * self.cost[rows][:, np.newaxis]
        own = np.arange(rows.size), self.labels[rows]
        change[own] = 0.0
        change[own] = -change.sum(axis=1)
        self.p[rows] = p
        by = bias_step * change.sum(axis=0)
        self.b += by
        if is_all:
            self.values = values
            return steps
        self.values += by[:, np.newaxis]
        moved = np.flatnonzero(change.any(axis=1))
        self._add(rows[moved], change[moved])
        return steps

    def _block(self, rows: Integers, added: float) -> Floats:
        """Return K[rows, rows] with a number added everywhere, and a diagonal that is positive.

        That of all samples is kept.
        """
        key = added if rows.size == self.n_samples else None
        if key is not None and self._kept is not None and self._kept[0] == key:
            return self._kept[1]
        if self.gram.fits:
            K = self.gram.whole()[np.ix_(rows, rows)]
        else:
            K = np.array(self.gram.block(rows), dtype=np.float64)
        K += added
        np.fill_diagonal(K, np.maximum(K.diagonal(), FLAT * self.largest or 1.0))
        if key is not None:
            self._kept = key, K
        return K

    def _add(self, rows: Integers, change: Floats) -> None:
        """Do s ← s + K[:, rows] change."""
        if not rows.size:
            return
        if self.gram.fits:
            K = self.gram.whole()

            def add(start: int, stop: Event) -> None:
                part = slice(start, start + STRIP_COLUMNS)
                self.values[:, part] += (K[part][:, rows] @ change).T

            in_parallel(add, range(0, self.n_samples, STRIP_COLUMNS))
            return
        step = max(16, VALUES_PER_STEP // rows.size)
        for start in range(0, self.n_samples, step):
            some = np.arange(start, min(start + step, self.n_samples))
            self.values[:, some] += (self.gram.block(some, rows) @ change).T
