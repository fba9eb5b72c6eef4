"""Sequential dual ascent: the shares of one sample after the other."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ...arrays import Integers, row_length
from ...runtime.row_access import rows_of
from .directions import Whole, way_for
from .machine import Machine, Run
from .passes import sequential_pass, survey

# Multiplications in a slice of a pass: a tenth of a second at most. As many passes as make this
# many, up to so many passes, are made in a row.
SLICE = 5e7
ROUND, PASSES = 1e6, 16
# Classes are left out whose value is below those with a share by this part of the worst violation.
FAR = 0.5
# The step of the bias, relative to the mean ‖x‖².
BIAS = 0.1
# Newton steps that a fit may take, and how much faster BLAS multiplies than a pass over rows does:
# the sequential method may take as long as they would, so that no fit takes more than twice the
# time of the better method.
STEPS, BLAS = 40, 8.0


class SequentialAscent:
    """Passes over the samples, one at a time, with most of them soon left out."""

    def __init__(self, machine: Machine, rng: np.random.RandomState) -> None:
        self.machine, self.rng = machine, rng
        n, c = machine.p.shape
        lengths = machine.rows.squared_lengths()
        mean = float(lengths.mean()) if n else 1.0
        # The proximal point method on the bias: a pass has ½(b − b⁰)²/step in place of a free one's
        # 0, and besides a penalised one's ½b². A small step decouples samples from each other.
        step = BIAS * (mean or 1.0)
        self.step = {"none": 0.0, "penalised": min(step, 1.0), "free": step}[machine.problem.bias]
        self.curvature = machine.cost * np.maximum(lengths + self.step, 1e-12 * (mean or 1.0))
        if sparse.issparse(machine.problem.X):
            machine.w = np.asfortranarray(machine.w)
        self.balance = machine.alpha.sum(axis=0)
        self.classes = np.tile(np.arange(c, dtype=np.int32), (n, 1))
        self.count = np.full(n, c, dtype=np.int32)
        self.names = machine.rows.names
        self.a_row = row_length(machine.problem.X)
        self.flow = machine.flow

    @property
    def dual(self) -> float:
        """D, apart from the balance of a free bias."""
        machine = self.machine
        return self.flow - 0.5 * machine.square(machine.w, self.balance)

    def run(self, run: Run) -> None:
        """Make passes until the gap is small, or Newton steps would take less time."""
        machine = self.machine
        budget = _expected_work(machine)
        n, c = machine.p.shape
        order, far, aim = np.arange(n), np.inf, run.aim
        while budget > 0.0:
            work = 4.0 * self.a_row * float(self.count[order].sum())
            times = int(np.clip(ROUND / max(work, 1.0), 1, PASSES))
            budget -= times * work
            visits = np.concatenate([self.rng.permutation(order) for _ in range(times)])
            gap, worst, errors = self._pass(visits, far, run)
            gap, errors, dual = gap / times, errors // times, self.dual
            # The gap is that met on the way: not that of the w in the end.
            if run.tell(dual, gap, errors, machine.snapshot, machine.bounds(np.nan, dual)):
                return
            far = FAR * worst
            order = order[self.count[order] > 1]
            if gap <= aim * abs(dual + gap) or not order.size:
                gap, primal = self._measure()
                run.progress.measured(*machine.bounds(primal, primal - gap))
                budget -= 2.0 * machine.rows.numbers * c / BLAS
                if run.converged(machine, gap, primal):
                    return
                # Gaps of a pass are those met on the way, and of the samples not left out.
                aim *= 0.5
                order, far = np.arange(n), np.inf
                self.count[:] = c

    def _pass(self, order: Integers, far: float, run: Run) -> tuple[float, float, int]:
        """Visit samples, in slices; return the gap met, the worst violation, and errors."""
        machine = self.machine
        machine.scale = 1.0
        # b⁰ becomes the b of the pass before.
        machine.b *= 1.0 - machine.penalty * self.step
        machine.b += self.step * self.balance
        step = max(1, int(SLICE / (4.0 * self.a_row * machine.p.shape[1])))
        gap, worst, errors = 0.0, 0.0, 0
        for first in range(0, order.size, step):
            met, violation, wrong, flow = sequential_pass(
                rows_of(machine.problem.X), self.names, machine.labels, machine.cost,
                self.curvature, machine.p, machine.w, machine.b, self.step, self.balance,
                order[first : first + step], self.classes, self.count, far,
            )  # fmt: skip
            gap, worst, errors = gap + met, max(worst, violation), errors + wrong
            self.flow += flow
            if run.overdue:
                break
        return gap, worst, errors

    def _measure(self) -> tuple[float, float]:
        """Return the gap and P, with w made that of α again: rounding adds up."""
        machine = self.machine
        w, self.balance = machine.combined()
        machine.w[:] = w
        loss, worst, _ = survey(
            machine.values(), machine.labels, machine.cost, machine.p, np.empty(len(machine.p))
        )
        primal = machine.primal(loss, worst)
        return primal - self.dual, primal


def _expected_work(machine: Machine) -> float:
    """Return what Newton steps may take, in multiplications of a pass over rows."""
    n, c = machine.p.shape
    size, a_row = machine.rows.n_columns + 1, row_length(machine.problem.X)
    everywhere = 4.0 * machine.rows.numbers * c
    several = min(n, c * size)  # samples with more than one class, two or three of them
    # Products with sparse rows are no faster than passes.
    slow = BLAS if sparse.issparse(machine.rows.X) else 1.0
    if way_for(c, size) is Whole:
        step = (c * size) ** 3 / 3.0 + 6.0 * several * size**2
    else:
        side = min(size, 3 * several // c)
        step = c * side**3 / 3.0 + c * side**2 * (a_row if side < size else 3 * several // c)
        step += 20.0 * slow * 8.0 * several * a_row * c
    return STEPS * (slow * everywhere + step) / BLAS
