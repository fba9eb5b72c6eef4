"""The solver: ever larger samples of the rows, then all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...arrays import Floats
from ...problems import JointProblem
from ...progress import Limits, Progress
from ...runtime.threads import single_threaded_blas
from ...solution import Solution, Status
from .ascent import SequentialAscent
from .machine import Machine, Run
from .newton import Newton
from .passes import survey

# A sample of the rows has so many times fewer of them, no fewer than these in all and of a class;
# the gap that is enough for it; and δ from there on.
LEVEL, FEWEST, RARE = 16, 5000, 20
ROUGH, NEARBY = 1e-2, 0.2
# The least multiple of an unfinished w that is looked at.
SHORTEST = 1e-6


@dataclass(frozen=True)
class CrammerSinger:
    """Sequential dual ascent, then semismooth Newton steps, to a relative duality gap of ``tol``.

    Parameters
    ----------
    tol : float, default=1e-4
        The relative duality gap to end at.
    limits : Limits, optional
        Iterations are rounds of passes over the samples not left out, and Newton steps.
    seed : int, default=0
        Of the order in which samples are visited.

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.array([[0.0], [2.0], [4.0]]), np.array([0, 1, 2])
    >>> problem = JointProblem(X, labels, 3, np.full(3, 10.0))
    >>> solution = CrammerSinger(tol=1e-9).solve(problem, None, Progress())
    >>> print((X @ solution.w.T + solution.b).argmax(axis=1), solution.w.ravel().round(4) + 0.0)
    [0 1 2] [-1. 0. 1.]
    """

    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    seed: int = 0

    def solve(self, problem: JointProblem, start: Floats | None, progress: Progress) -> Solution:
        """Return w, b and α, starting from α of shape (n, c) or from nothing."""
        run = Run(self.tol, self.limits, progress)
        rng = np.random.RandomState(self.seed)
        with single_threaded_blas():
            plane = _from_samples(problem, run, rng) if start is None else None
            machine = Machine(problem, start)
            _fit(machine, plane, run, rng)
            if run.status is not Status.CONVERGED:
                _shorten(machine)
                machine.replace_if_useless()
        return machine.solution(run.status or Status.PATIENCE, progress)


def _shorten(machine: Machine) -> None:
    """Scale w and b of a fit that was cut short down to about the least P along their ray.

    P of w and b on their way may be far above that of w = 0, though their direction is good. P is
    convex along the ray.
    """
    values, half = machine.values(), 0.5 * machine.square(machine.w, machine.b)
    scratch = np.empty(len(machine.p))

    def primal(t: float) -> float:
        loss = survey(t * values, machine.labels, machine.cost, machine.p, scratch)[0]
        return t * t * half + float(loss)

    t, least = machine.scale, primal(machine.scale)
    while t > SHORTEST and (shorter := primal(0.5 * t)) < least:
        t, least = 0.5 * t, shorter
    machine.scale = t if least <= float(machine.cost.sum()) else 0.0


def _fit(
    machine: Machine, plane: tuple[Floats, Floats] | None, run: Run, rng: np.random.RandomState
) -> None:
    """Bring the gap below the run's tol, from w and b nearby or from the machine's α."""
    if plane is not None:
        machine.w, machine.b = plane
        if run.status is None:
            machine.decide()
            Newton(machine, NEARBY).run(run)
        return
    SequentialAscent(machine, rng).run(run)
    if run.status is None:
        Newton(machine, None).run(run)


def _from_samples(
    problem: JointProblem, run: Run, rng: np.random.RandomState
) -> tuple[Floats, Floats] | None:
    """Return w and b near the answer, from ever larger samples of many rows; None of few rows."""
    n, sizes = int(np.count_nonzero(problem.cost)), []
    least = max(FEWEST, 4 * problem.n_classes * (problem.X.shape[1] + 1))
    while (n := n // LEVEL) >= least:
        sizes.append(n)
    plane = None
    rough = Run(max(run.tol, ROUGH), run.limits, run.progress)
    for size in reversed(sizes):
        machine = Machine(_sample(problem, size, rng), None, is_sample=True)
        _fit(machine, plane, rough, rng)
        plane = machine.w, machine.b
        if rough.status in (Status.STOPPED, Status.TIME_LIMIT, Status.ITERATION_LIMIT):
            run.status = rough.status
            break
        rough.status = None
    return plane


def _sample(problem: JointProblem, size: int, rng: np.random.RandomState) -> JointProblem:
    """Return the problem of about so many rows, with a share of every class and its cost."""
    chosen, factors = [], []
    part = size / np.count_nonzero(problem.cost)
    for k in range(problem.n_classes):
        rows = np.flatnonzero((problem.labels == k) & (problem.cost > 0.0))
        wanted = min(rows.size, max(RARE, int(part * rows.size)))
        chosen.append(rng.permutation(rows)[:wanted])
        factors.append(np.full(wanted, rows.size / max(wanted, 1)))
    rows, factor = np.concatenate(chosen), np.concatenate(factors)
    in_turn = np.argsort(rows)
    rows, factor = rows[in_turn], factor[in_turn]
    return replace(
        problem, X=problem.X[rows], labels=problem.labels[rows], cost=problem.cost[rows] * factor
    )
