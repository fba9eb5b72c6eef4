"""All tasks of a fit side by side on a device: a working set each, round after round.

The method is the decomposition of `maxmargin.solvers.dual.decomposition`. In every round each task
selects the variables that violate its optimality conditions most, solves their problem with the
others held fixed, pair by pair (one program of the card per task), and updates f of all its
variables from the rows of K that moved. Tasks that fit into a working set are solved in one round.
Where rounds are long, Newton's method moves the free variables of a task all at once (`newton`).

Rows of K are shared by all tasks. Steps within a working set may be float32: f is summed up in
float64 from what has moved, and the next round begins with that. Where the stored rows of K are
float32 themselves, f is computed anew from float64 values before the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...progress import Progress
from ..base import DeviceMemoryFull, Ended
from .blocks import solve_blocks
from .newton import newton_step
from .row_store import RowStore
from .selection import WorkingSets
from .task_state import Measures, TaskState

if TYPE_CHECKING:
    from ...arrays import Floats
    from ..base import TaskArrays, TaskGoal
    from .kernel_rows import KernelRows


@dataclass(frozen=True)
class Tuning:
    """How large the parts of a descent are, and when each ends."""

    # Variables of a task up to which all of them are in the working set, and the size of one else:
    # of few tasks, whose steps keep few multiprocessors busy, and of many.
    whole_up_to_variables: int = 4096
    working_set: int = 2048
    small_working_set: int = 1024
    few_tasks: int = 8
    # The size where K does not fit the memory: rounds, which compute rows of K, are dear then.
    large_working_set: int = 4096
    # The share of it that is new in every round.
    fresh_share: float = 0.5
    # A round ends when its part violates by this share of what the whole did before it: of few
    # tasks, and where rounds take longer than their steps.
    round_share: float = 0.3
    deep_round_share: float = 0.1
    # Steps of a round per variable, where all of them are in the working set, and else.
    whole_steps_per_variable: int = 20
    steps_per_variable: int = 8
    # Steps of a round per variable from which on Newton's method follows.
    newton_from: float = 2.0
    # Two variables may be 2·tol apart with each within tol of the bias; some is left to rounding.
    pair_goal_tols: float = 1.75
    # The largest relative gap at the end, in units of tol.
    gap_tols: float = 1.6
    # Rounds without progress after which a task ends: the objective has not improved, nor is the
    # violation below this share of the least so far.
    patience_rounds: int = 100
    better_share: float = 0.7
    # Rounds after which steps are counted.
    rounds_per_count: int = 4
    # Σ|β| ulp(float32) beyond this share of tol makes the steps float64.
    coarse_share: float = 0.3
    # A goal below so many ulp(float32) makes the steps float64, too.
    finest_ulps: float = 64.0
    max_corrections: int = 5
    # The share of the memory for all but rows of K, and numbers per variable of a task there.
    state_share: float = 0.3
    vectors_of_task: int = 40
    # The share of the usual goal below which a gap that stays large is given up.
    tightest: float = 1e-9
    # The share of tasks that go on, below which the others are put aside.
    live_share: float = 0.7


TUNING = Tuning()


def solve_in_turns(
    rows: KernelRows, exact: KernelRows, tasks: TaskArrays, goal: TaskGoal, budget: float
) -> Ended:
    """Solve every task from the α it begins with, as many at a time as the memory has room for.

    Parameters
    ----------
    rows, exact : KernelRows
        K in the type of most of the work, and in float64.
    tasks : TaskArrays
        With one group each.
    goal : TaskGoal
    budget : float
        Bytes that all of it may take.
    """
    n_tasks, at_once = tasks.sizes.size, _at_once(rows, tasks, budget)
    if at_once >= n_tasks:
        return _solve(rows, exact, tasks, goal, budget)
    found = []
    for first in range(0, n_tasks, at_once):
        last = min(first + at_once, n_tasks)
        part = replace(goal, max_steps=goal.max_steps[first:last])
        found.append(_solve(rows, exact, tasks.part(first, last), part, budget))
    return Ended(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _at_once(rows: KernelRows, tasks: TaskArrays, budget: float) -> int:
    """Return how many tasks are solved at a time: their working sets must be in memory."""
    n_tasks, n = tasks.sizes.size, rows.n_rows
    slots = (1.0 - TUNING.state_share) * budget / (rows.dtype.itemsize * n)
    size = min(_padded_size(int(tasks.sizes.max()), n_tasks, slots >= n), n)
    by_rows = n_tasks if slots >= n else int(slots / size)
    by_state = int(TUNING.state_share * budget / _bytes_of_task(tasks, n_tasks))
    if min(by_rows, by_state) < 1:
        raise DeviceMemoryFull(f"{budget / 2**20:.0f} MB are less than a working set takes")
    return min(n_tasks, by_rows, by_state)


def _bytes_of_task(tasks: TaskArrays, n_tasks: int) -> float:
    """Return what a task takes beside rows of K: its vectors, and K of its working set."""
    largest = int(tasks.sizes.max())
    size = _padded_size(largest, n_tasks, fits=False)
    return 8.0 * (TUNING.vectors_of_task * largest + size**2)


def _solve(
    rows: KernelRows, exact: KernelRows, tasks: TaskArrays, goal: TaskGoal, budget: float
) -> Ended:
    """Solve tasks side by side."""
    state = TaskState.of(tasks, rows.diagonal())
    room = budget - tasks.sizes.size * _bytes_of_task(tasks, tasks.sizes.size)
    store = RowStore(rows, room, whole=_is_dense(tasks, rows.n_rows))
    descent = _Descent(state, store, exact, goal, tasks)
    if tasks.alpha.any():
        descent.refresh()
    return descent.run()


def _is_dense(tasks: TaskArrays, n_rows: int) -> bool:
    """Whether most rows of K are going to be needed in the first rounds."""
    wanted = np.minimum(tasks.sizes, _working_set(tasks.sizes.size))
    return bool(wanted.sum() >= 0.25 * n_rows or tasks.sizes.max() <= TUNING.whole_up_to_variables)


def _padded_size(n_variables: int, n_tasks: int, fits: bool) -> int:
    """Return the size of a working set, a power of two; ``fits`` says whether K does."""
    is_all = n_variables <= TUNING.whole_up_to_variables
    size = n_variables if is_all else _working_set(n_tasks, fits)
    return max(16, 1 << (size - 1).bit_length())


def _working_set(n_tasks: int, fits: bool = True) -> int:
    if n_tasks >= TUNING.few_tasks:
        return TUNING.small_working_set
    return TUNING.working_set if fits else TUNING.large_working_set


class _Descent:
    """The rounds of all tasks; ``live`` are those in ``part``, of which some may be over."""

    def __init__(
        self, state: TaskState, store: RowStore, exact: KernelRows, goal: TaskGoal,
        tasks: TaskArrays,
    ) -> None:  # fmt: skip
        self.state, self.store, self.exact, self.goal = state, store, exact, goal
        # Violations are relative to 1; where p = 0 to ρ.
        self.unit = 0.0 if tasks.total else 1.0
        self.total, self.sizes = tasks.total, tasks.sizes
        self.limits, self.progress = goal.limits, Progress()
        n_tasks, width = state.f.shape
        self.device, self.part, self.live = state.f.device, state, np.arange(n_tasks)
        self.tightened = np.ones(n_tasks)
        self.best, self.least = np.full((2, n_tasks), np.inf)
        self.idle = np.zeros(n_tasks, dtype=int)
        self.converged = np.zeros(n_tasks, dtype=bool)
        self.going = np.ones(n_tasks, dtype=bool)  # of those live
        # Corrections of f of each task, and the round when it was last corrected.
        self.n_corrections, self.fresh_at = np.zeros(n_tasks, dtype=int), np.full(n_tasks, -1)
        is_all = width - 1 <= TUNING.whole_up_to_variables
        fits = store.n_slots == exact.n_rows
        is_few = n_tasks < TUNING.few_tasks
        self.round_share = TUNING.round_share if fits and is_few else TUNING.deep_round_share
        size = _padded_size(width - 1, n_tasks, fits)
        n_kept = size - int(TUNING.fresh_share * size)
        self.sets = WorkingSets(state, size, is_all, n_kept)
        self.dtype = self._step_type()
        self.n_rounds = 0
        # Steps of each task so far, failures of Newton's method, and when it may be tried again.
        self.n_steps = np.zeros(n_tasks)
        self.n_failures, self.waits_until = np.zeros((2, n_tasks), dtype=int)

    def _step_type(self) -> Any:
        """Return float64 where float32 steps of β are too coarse for tol."""
        reach = torch.where(torch.isfinite(self.state.upper), self.state.upper, 0.0).amax()
        depth = torch.where(torch.isfinite(self.state.lower), -self.state.lower, 0.0).amax()
        size = float(torch.maximum(reach, depth) * self.state.curve.amax())
        is_open = bool(torch.isinf(self.state.upper).any() | torch.isinf(self.state.lower).any())
        coarse = size * torch.finfo(torch.float32).eps
        small = TUNING.coarse_share * self.goal.final_tol * (self.unit or 1.0)
        return torch.float64 if is_open or coarse > small else torch.float32

    def run(self) -> Ended:
        """Go on until all tasks are solved, or something ends them."""
        while self.going.any():
            members, numbers = self.sets.renew(self.part)
            missing = self.store.missing(members, self.part)
            found = torch.cat([numbers.view(-1), self.part.steps.double(), missing]).tolist()
            n_missing, n_live = int(found.pop()), self.live.size
            top, low, value = np.array(found[: 3 * n_live]).reshape(-1, 3).T
            violation, unit = top - low, self._units(top, low)
            self.store.fetch(members, self.part, n_missing)
            if self._judge(violation, value, unit):
                continue
            if self._newton(np.array(found[3 * n_live :])):
                continue
            if not self.going.any() or self.limits.reached(0, self.progress):
                break
            self._round(members, violation, unit)
            if self.going.mean() < TUNING.live_share:
                self._keep()
        return self._ended()

    def _newton(self, steps: Floats) -> bool:
        """Move the free variables of tasks whose last round was long all at once.

        Return whether any has moved. Where that fails, it is not tried again for a while.
        """
        made, self.n_steps[self.live] = steps - self.n_steps[self.live], steps
        if self.sets.is_all or self.live.size >= TUNING.few_tasks:
            return False
        long = self.going & (made > TUNING.newton_from * self.sets.size)
        moved = False
        for t in np.flatnonzero(long & (self.n_rounds >= self.waits_until[self.live])).tolist():
            task = self.live[t]
            succeeded = newton_step(self.part, t, self.exact)
            self.n_failures[task] = 0 if succeeded else self.n_failures[task] + 1
            self.waits_until[task] = self.n_rounds + (1 << self.n_failures[task])
            moved |= succeeded
        return moved

    def _units(self, top: Floats, low: Floats) -> Floats:
        """Return what violations are relative to: ρ where p = 0, as b = −ρ."""
        if self.unit:
            return np.full(top.size, self.unit)
        return np.maximum(-0.5 * (top + low), 1e-12 * np.abs(top) + 1e-300)

    def _round(self, members: Any, violation: Floats, unit: Floats) -> None:
        """Solve the problems of the members, and update f of all variables."""
        self.n_rounds += 1
        least = 0.5 * self._goals(unit)
        share = 0.0 if self.sets.is_all else self.round_share
        stops = np.where(self.going, np.maximum(share * violation, least), np.inf)
        stop = torch.from_numpy(stops).to(self.device)
        is_all = self.sets.is_all
        most = TUNING.whole_steps_per_variable if is_all else TUNING.steps_per_variable
        most *= self.sets.size
        solve_blocks(self.store, members, self.part, stop, self.dtype, most)

    def _goals(self, unit: Floats) -> Floats:
        """Return the violation of a pair at which each of the tasks ends."""
        tols = TUNING.pair_goal_tols * self.goal.final_tol
        return np.asarray(self.tightened[self.live] * tols * unit)

    def _judge(self, violation: Floats, value: Floats, unit: Floats) -> bool:
        """Note which tasks are solved or come no further; return whether f has been corrected."""
        live, goals = self.live, self._goals(unit)
        settled = self.going & ~(violation > goals)
        better = violation < TUNING.better_share * self.least[live]
        better |= value < self.best[live] - 1e-14 * np.abs(value)
        self.idle[live] = np.where(better, 0, self.idle[live] + 1)
        self.least[live] = np.minimum(self.least[live], violation)
        self.best[live] = np.minimum(self.best[live], value)
        idle = self.idle[live] > TUNING.patience_rounds
        stuck = (idle | self._have_spent()) & self.going & ~settled
        if not (settled.any() or stuck.any()):
            return False
        room = torch.from_numpy(np.maximum(0.5 * (goals - violation), 0.0)).to(self.device)
        found = self.part.measures(self.part.survey(), room, self.total)
        gap = (found.gap / found.scale).cpu().numpy()
        loose = settled & (gap > TUNING.gap_tols * self.goal.final_tol)
        self.tightened[live[loose]] *= 0.5
        stuck |= loose & (self.tightened[live] < TUNING.tightest)
        if self._refines(loose, stuck & idle, unit):
            stuck &= ~idle
        done = settled & ~loose
        if self._corrects(done):
            return True
        self.converged[live[done]] = True
        self.going &= ~(done | stuck)
        return False

    def _refines(self, loose: Any, idle: Any, unit: Floats) -> bool:
        """Go on with float64 steps where float32 ones come no further; return whether that is new.

        They are too coarse for goals that a large gap has made small.
        """
        finest = TUNING.finest_ulps * torch.finfo(torch.float32).eps * unit
        is_needed = (idle | (loose & (self._goals(unit) < finest))).any()
        if self.dtype is torch.float64 or not is_needed:
            return False
        self.dtype = torch.float64
        self.idle[:] = 0
        return True

    def _have_spent(self) -> Any:
        """Return which live tasks have made their steps, which is looked up now and then."""
        if self.n_rounds % TUNING.rounds_per_count != TUNING.rounds_per_count - 1:
            return np.zeros(self.live.size, dtype=bool)
        return self.part.steps.cpu().numpy() >= self.goal.max_steps[self.live]

    def _corrects(self, done: Any) -> bool:
        """Compute f anew where K is float32 and tasks seem solved; return whether that was done."""
        tasks = self.live[done]
        doubtful = self.fresh_at[tasks] != self.n_rounds
        doubtful &= self.n_corrections[tasks] < TUNING.max_corrections
        if self.store.source.dtype == torch.float64 or not doubtful.any():
            return False
        self.n_corrections[tasks] += 1
        self.fresh_at[self.live] = self.n_rounds
        self.refresh()
        return True

    def _keep(self) -> None:
        """Put aside the tasks that are over."""
        chosen = torch.from_numpy(np.flatnonzero(self.going)).to(self.device)
        if self.part is not self.state:
            self.state.put(torch.from_numpy(self.live).to(self.device), self.part)
        self.live, self.going = self.live[self.going], self.going[self.going]
        self.part = self.part.restrict(chosen)
        self.sets.restrict(chosen)

    def refresh(self) -> None:
        """Compute f of the live tasks anew from float64 kernel values."""
        part, n = self.part, self.exact.n_rows
        coefficients = torch.zeros((len(part.f), n), dtype=torch.float64, device=self.device)
        coefficients.scatter_add_(1, part.index, part.beta)
        support = (coefficients != 0.0).any(0).nonzero().reshape(-1)
        scores = torch.zeros_like(coefficients)
        step = max(1, int((1 << 27) // n))
        for first in range(0, len(support), step):
            some = support[first : first + step]
            scores += coefficients[:, some] @ self.exact.values(some)
        part.f = part.target - part.ridge * part.beta - scores.gather(1, part.index)

    def _ended(self) -> Ended:
        """Return α and the numbers of all tasks."""
        if self.part is not self.state:
            self.state.put(torch.from_numpy(self.live).to(self.device), self.part)
        state = self.state
        seen = state.survey()
        top, low = (each.cpu().numpy() for each in (seen.top, seen.low))
        unit = self._units(top, low)
        # The bias is the one with which the gap was judged.
        tols = TUNING.pair_goal_tols * self.goal.final_tol * self.tightened * unit
        room = torch.from_numpy(np.maximum(0.5 * (tols - (top - low)), 0.0)).to(self.device)
        found: Measures = state.measures(seen, room, self.total)
        alpha = (state.signs * state.beta + 0.0).cpu().numpy()
        b, value, gap, _, errors = (each.cpu().numpy().astype(float) for each in found)
        parts = [alpha[k, :n] for k, n in enumerate(self.sizes.tolist())]
        return Ended(
            np.concatenate(parts), b, state.steps.cpu().numpy().astype(float),
            self.converged.astype(float), top - low, value, gap, errors,
        )  # fmt: skip
