"""The linear machine of c classes with the largest margin (Crammer, Singer, JMLR 2, 2001).

Given: X, y, C of a `JointMarginProblem`. Wanted: w_k and b_k of every class, and α.

With the shares p_i = e_y − α_i/C_i, which are ≥ 0 and add up to 1, and the values
s_i^k = (k ≠ y_i) + w_k·x_i + b_k, the loss of a sample is C_i(max_k s_i^k − s_i^y), and

    w_k = Σ_i C_i (e_y − p_i)^k x_i,        gap = Σ_i C_i (max_k s_i^k − p_i·s_i).

So p_i is optimal when it has shares of the largest values only. Two methods follow each other:

*Sequential dual ascent* moves the shares of one sample after the other to where the dual is
largest, the projection of p_i + s_i/(C_i‖x_i‖²) onto the simplex. Classes that come nowhere near
the largest value are left out for a while, and with them most samples. It is quick to begin with,
and to the end where features are many and samples much unlike each other (Keerthi et al., *KDD*,
2008). The bias follows by the proximal point method.

*Semismooth Newton on the augmented Lagrangian* ends what that creeps on. The proximal point method
on the dual, max D(p) − Σ_i C_i (δ/2)‖p_i − p⁰_i‖², asks in the primal for the minimum of

    Φ(w, b) = ½Σ_k‖w_k‖² + Σ_i C_i max {p·s_i − (δ/2)‖p − p⁰_i‖² : p in the simplex} − C_i s_i^y,

smooth and piecewise quadratic: the maximum, rounded off over a width of δ. The p that attains it is
the projection of p⁰_i + s_i/δ; its generalised Hessian is I + Σ_i (C_i/δ) P_i ⊗ x_i x_iᵀ, where
P_i = diag(1_A) − 1_A 1_Aᵀ/|A| and A are the classes with a share. Only samples with several of them
count, few once δ is small. Then p⁰ ← p, and δ shrinks (Rockafellar, *Math. Oper. Res.* 1, 1976; Li,
Sun, Toh, *SIAM J. Optim.* 28, 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..certificate.joint import circulating, rival_flows
from ..problem import JointMarginProblem
from ..rows import REORDER, compiled, row_add, row_dot, row_prefetch, row_square, rows_of
from ..samples import Floats, Integers, blocks_of, row_block, row_length
from ..solution import Limits, Progress, Solution, Status
from ..threads import in_parallel, single_threaded_blas
from .newton import line_search

# The gap aimed at, relative to tol: what is left to the repair of α, and to rounding.
AIM = 0.95
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
# A sample of the rows has so many times fewer of them, no fewer than these in all and of a class;
# the gap that is enough for it; and δ from there on.
LEVEL, FEWEST, RARE = 16, 5000, 20
ROUGH, NEARBY = 1e-2, 0.2
# The least δ to begin with else; then it shrinks by as much as steps were few (steps up to,
# factor); beyond, it is kept, and it grows where so many steps were not enough.
NARROWEST = 0.1
NARROWER = ((0, 0.04), (8, 0.2), (15, 0.5), (25, 1.0))
WIDER, MANY = 5.0, 40
# A minimisation ends where what steps still promise is this fraction of the gap that δ leaves.
ENOUGH = 0.1
# Unknowns up to which the Hessian is factored whole, and numbers of its diagonal blocks, one for
# every class, up to which these are; the least curvature of a bias, relative to the block's.
WHOLE, BLOCKS = 1000, 1 << 24
LEAST = 1e-3
# How far a step takes a bias that nothing holds.
DARING = 50.0
# Conjugate gradients: the accuracy of a direction, and products for it at most.
ACCURACY, PRODUCTS = 0.1, 300
# How many times a step a line search goes at most.
FARTHEST = 64.0
# Numbers of rows that are copied to spare finding them again.
HELD = 1 << 22
# Multiplications, and numbers of a pass over samples, that are shared between cores.
HEAVY, PART = 1e7, 1 << 18
# Minimisations in a row that bring nothing: rounding allows no more; and minimisations in all.
PATIENCE, ROUNDS = 8, 200
# A slope, relative to Σ C_i |change of values|, that may be rounding.
ROUNDING = 1e-15
TINY = float(np.finfo(np.float64).tiny)


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
    >>> problem = JointMarginProblem(X, labels, 3, np.full(3, 10.0))
    >>> solution = CrammerSinger(tol=1e-9).solve(problem, None, Progress())
    >>> print((X @ solution.w.T + solution.b).argmax(axis=1), solution.w.ravel().round(4) + 0.0)
    [0 1 2] [-1. 0. 1.]
    """

    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    seed: int = 0

    def solve(
        self, problem: JointMarginProblem, start: Floats | None, progress: Progress
    ) -> Solution:
        """Return w, b and α, starting from α of shape (n, c) or from nothing."""
        run = _Run(self.tol, self.limits, progress)
        rng = np.random.RandomState(self.seed)
        with single_threaded_blas():
            plane = _from_samples(problem, run, rng) if start is None else None
            machine = _Machine(problem, start)
            _fit(machine, plane, run, rng)
        return machine.solution(run.status or Status.PATIENCE, progress)


def _fit(
    machine: _Machine, plane: tuple[Floats, Floats] | None, run: _Run, rng: np.random.RandomState
) -> None:
    """Bring the gap below the run's tol, from w and b nearby or from the machine's α."""
    if plane is not None:
        machine.w, machine.b = plane
        if run.status is None:
            machine.decide()
            _Newton(machine, NEARBY).run(run)
        return
    _SequentialAscent(machine, rng).run(run)
    if run.status is None:
        _Newton(machine, None).run(run)


def _from_samples(
    problem: JointMarginProblem, run: _Run, rng: np.random.RandomState
) -> tuple[Floats, Floats] | None:
    """Return w and b near the answer, from ever larger samples of many rows; None of few rows."""
    n, sizes = int(np.count_nonzero(problem.cost)), []
    least = max(FEWEST, 4 * problem.n_classes * (problem.X.shape[1] + 1))
    while (n := n // LEVEL) >= least:
        sizes.append(n)
    plane = None
    rough = _Run(max(run.tol, ROUGH), run.limits, run.progress)
    for size in reversed(sizes):
        machine = _Machine(_sample(problem, size, rng), None, is_sample=True)
        _fit(machine, plane, rough, rng)
        plane = machine.w, machine.b
        if rough.status in (Status.STOPPED, Status.TIME_LIMIT, Status.ITERATION_LIMIT):
            run.status = rough.status
            break
        rough.status = None
    return plane


def _sample(problem: JointMarginProblem, size: int, rng: np.random.RandomState) -> Any:
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


class _Run:
    """The fit's clock: what it is aiming at, and what has ended it."""

    def __init__(self, tol: float, limits: Limits, progress: Progress) -> None:
        self.tol, self.limits, self.progress = tol, limits, progress
        self.status: Status | None = None

    @property
    def overdue(self) -> bool:
        """Whether time is up."""
        return self.limits.seconds is not None and self.progress.seconds >= self.limits.seconds

    def tell(
        self,
        dual: float,
        gap: float,
        errors: int,
        snapshot: Callable[[], Solution],
        bounds: tuple[float, float],
    ) -> bool:
        """Report an iteration; return whether a limit or a callback ends the fit.

        ``bounds`` are P and D of the whole problem, as far as they are known.
        """
        relative = gap / max(abs(dual + gap), TINY)
        if self.progress.iteration(
            -dual, errors, relative, snapshot, primal=bounds[0], dual=bounds[1]
        ):
            self.status = Status.STOPPED
        else:
            self.status = self.limits.reached(len(self.progress.history), self.progress)
        return self.status is not None

    def proved(self, machine: _Machine, primal: float) -> bool:
        """Return whether α proves that no answer undercuts P by more than tol·P."""
        dual = machine.feasible_dual()
        if not machine.is_sample:
            self.progress.measured(primal, dual)
        return primal - dual <= self.tol * abs(primal)


class _Machine:
    """The samples that count, their shares, and w and b: an answer in the making."""

    def __init__(
        self, problem: JointMarginProblem, start: Floats | None, *, is_sample: bool = False
    ) -> None:
        self.problem, self.is_sample = problem, is_sample
        counted = np.flatnonzero(problem.cost > 0.0)
        everything = counted.size == problem.cost.size
        self.counted = counted
        self.rows = _Rows(problem.X, None if everything else counted)
        self.labels = np.ascontiguousarray(problem.labels[counted], dtype=np.intp)
        self.cost = np.ascontiguousarray(problem.cost[counted], dtype=np.float64)
        self.has_bias = problem.bias != "none"
        # What ½Σ‖w_k‖² has of the square of a bias.
        self.penalty = float(problem.bias == "penalised")
        # What w and b are multiplied by in the end.
        self.scale = 1.0
        self.p: Floats = np.zeros((counted.size, problem.n_classes))
        if start is not None:
            self.p = rival_flows(problem, start)[counted] / self.cost[:, np.newaxis]
        self.p[self.own] = np.maximum(1.0 - self.p.sum(axis=1), 0.0)
        self.w, self.b = self.combined()
        if not self.flow >= 0.5 * self.square(self.w, self.b):  # worse than nothing
            self.p[:] = 0.0
            self.p[self.own] = 1.0
            self.w[:], self.b[:] = 0.0, 0.0
        self.b *= self.penalty

    @property
    def own(self) -> tuple[Integers, Integers]:
        """The places of the own classes in an array of shape (n, c)."""
        return np.arange(self.labels.size), self.labels

    @property
    def alpha(self) -> Floats:
        """α of the samples that count."""
        return _alpha(self.p, self.cost, self.own)

    def decide(self) -> None:
        """Give all shares to the class of the largest value."""
        values = self.values() + 1.0
        values[self.own] -= 1.0
        self.p[:] = 0.0
        self.p[np.arange(self.labels.size), values.argmax(axis=1)] = 1.0

    @property
    def flow(self) -> float:
        """Σ_i α_i^y, what flows from the own classes to their rivals."""
        return float(self.alpha[self.own].sum())

    def combined(self) -> tuple[Floats, Floats]:
        """Return Σ_i α_i^k (x_i, 1)."""
        alpha = self.alpha
        return self.rows.combine(alpha), alpha.sum(axis=0)

    def values(self) -> Floats:
        """Return w_k·x_i + b_k."""
        return self.rows.scores(self.w, self.b)

    def square(self, w: Floats, b: Floats) -> float:
        """Return Σ_k‖w_k‖², and b² where it is penalised."""
        return float(np.linalg.norm(w)) ** 2 + self.penalty * float(b @ b)

    def primal(self, loss: float, worst: float) -> float:
        """Return P of losses Σ C_i ξ_i, the largest ξ being ``worst``.

        Where all are small, w/(1 − worst) has none at all, at a price that does not grow with C.
        """
        half = 0.5 * self.square(self.w, self.b)
        self.scale = 1.0 / (1.0 - min(worst, 0.5) - 4.0 * ROUNDING)
        if worst < 0.5 and self.scale**2 * half < half + loss:
            return self.scale**2 * half
        self.scale = 1.0
        return half + loss

    def feasible(self) -> Floats:
        """Return α with Σ_i α_i^k = 0 where the bias is free."""
        alpha = self.alpha
        if self.problem.bias == "free":
            flows = np.maximum(-alpha, 0.0)
            flows[self.own] = 0.0
            alpha = -circulating(self.labels, flows)
            alpha[self.own] = 0.0
            alpha[self.own] = -alpha.sum(axis=1)
        return alpha

    def feasible_dual(self) -> float:
        """Return D of that α."""
        alpha = self.feasible()
        square = self.square(self.rows.combine(alpha), alpha.sum(axis=0))
        return float(alpha[self.own].sum()) - 0.5 * square

    def bounds(self, primal: float, dual: float) -> tuple[float, float]:
        """Return P and D as far as they are those of the whole problem.

        A sample's are not, nor is D of a free bias before Σ_i α_i^k = 0, which takes a pass.
        """
        if self.is_sample:
            return np.nan, np.nan
        return primal, dual if self.problem.bias != "free" else np.nan

    def snapshot(self) -> Solution:
        """Return the machine now, for those who watch."""
        return self.solution(Status.STOPPED, None)

    def solution(self, status: Status, progress: Progress | None) -> Solution:
        """Return w, b, and α of all samples."""
        w, b = self.scale * np.ascontiguousarray(self.w), self.scale * self.b
        if self.is_sample:
            return Solution(w, b, status)
        alpha = np.zeros((self.problem.cost.size, self.problem.n_classes))
        alpha[self.counted] = self.alpha
        if progress is None:
            return Solution(w, b, status, alpha=alpha)
        trace = progress.trace()
        return Solution(
            w, b, status, len(trace), seconds=progress.seconds, alpha=alpha, trace=trace
        )


def _alpha(p: Floats, cost: Floats, own: tuple[Integers, Integers]) -> Floats:
    """Return α of shares, the own class's from those of its rivals: Σ_k α_i^k = 0 to rounding."""
    alpha = -cost[:, np.newaxis] * p
    alpha[own] = 0.0
    alpha[own] = -alpha.sum(axis=1)
    return alpha


class _Rows:
    """Rows of X, all of them or those named: products in float64, block by block on all cores."""

    def __init__(self, X: Any, index: Integers | None) -> None:
        self.X, self.index = X, index
        self.n_rows = X.shape[0] if index is None else index.size
        self.n_columns = X.shape[1]

    @property
    def numbers(self) -> int:
        """Numbers stored in all rows, about."""
        return self.n_rows * row_length(self.X)

    @property
    def names(self) -> Integers:
        """The places of the rows in X."""
        return np.arange(self.n_rows) if self.index is None else self.index

    def take(self, rows: Integers) -> _Rows:
        """Return some of the rows: a copy in float64 where they are few."""
        taken = _Rows(self.X, rows if self.index is None else self.index[rows])
        if taken.numbers > max(HELD, self.X.shape[0] * row_length(self.X) // 8):
            return taken
        return _Rows(self.X[taken.index].astype(np.float64, copy=False), None)

    def scores(self, w: Floats, b: Floats) -> Floats:
        """Return w_k·x_i + b_k: (n_rows, c)."""
        out = np.empty((self.n_rows, len(w)))

        def work(block: slice, rows: Any) -> None:
            out[block] = rows @ w.T
            out[block] += b

        self._over(work, len(w))
        return out

    def combine(self, alpha: Floats) -> Floats:
        """Return Σ_i α_i^k x_i: (c, d)."""
        if sparse.issparse(self.X):
            total = np.zeros((self.n_columns, alpha.shape[1]))
            for block, rows in self._blocks():
                total += rows.T @ alpha[block]
            return np.asarray(total.T)
        parts = self._over(lambda block, rows: alpha[block].T @ rows, alpha.shape[1])
        return sum(parts, np.zeros((alpha.shape[1], self.n_columns)))

    def squares(self, weights: Floats) -> Floats:
        """Return Σ_i v_i^k x_ij² of every feature: (c, d)."""
        total = np.zeros((weights.shape[1], self.n_columns))
        for block, rows in self._blocks():
            squared = rows.multiply(rows) if sparse.issparse(rows) else rows**2
            total += (squared.T @ weights[block]).T
        return total

    def gram(self, chosen: Integers) -> Floats:
        """Return x_i·x_j of the rows chosen."""
        names = chosen if self.index is None else self.index[chosen]
        X = row_block(self.X, slice(0, names.size), names)
        product = X @ X.T
        return np.asarray(product.toarray() if sparse.issparse(product) else product)

    def augmented(self, has_bias: bool) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows (x, 1), or x without a bias, as dense blocks."""
        for block, rows in self._blocks():
            rows = rows.toarray() if sparse.issparse(rows) else rows
            yield block, np.column_stack([rows, np.ones(len(rows))]) if has_bias else rows

    def squared_lengths(self) -> Floats:
        """Return ‖x_i‖² of every row."""
        out = np.empty(self.n_rows)
        square_rows(rows_of(self.X), self.names, out)
        return out

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        for block in blocks_of(self.n_rows, row_length(self.X)):
            yield block, row_block(self.X, block, self.index)

    def _over(self, work: Callable[[slice, Any], Any], n_vectors: int) -> list[Any]:
        """Return ``work(block, rows)`` of every block; blocks depend on X alone."""
        if self.numbers * n_vectors < HEAVY:
            return [work(block, rows) for block, rows in self._blocks()]

        def part(block: slice, stop: Event) -> Any:
            return None if stop.is_set() else work(block, row_block(self.X, block, self.index))

        return in_parallel(part, list(blocks_of(self.n_rows, row_length(self.X))))


# The sequential method -----------------------------------------------------------------------


class _SequentialAscent:
    """Passes over the samples, one at a time, with most of them soon left out."""

    def __init__(self, machine: _Machine, rng: np.random.RandomState) -> None:
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

    def run(self, run: _Run) -> None:
        """Make passes until the gap is small, or Newton steps would take less time."""
        machine = self.machine
        budget = _expected_work(machine)
        n, c = machine.p.shape
        order, far, aim = np.arange(n), np.inf, AIM * run.tol
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
                if gap <= AIM * run.tol * primal and run.proved(machine, primal):
                    run.status = Status.CONVERGED
                    return
                # Gaps of a pass are those met on the way, and of the samples not left out.
                aim *= 0.5
                order, far = np.arange(n), np.inf
                self.count[:] = c

    def _pass(self, order: Integers, far: float, run: _Run) -> tuple[float, float, int]:
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


def _expected_work(machine: _Machine) -> float:
    """Return what Newton steps may take, in multiplications of a pass over rows."""
    n, c = machine.p.shape
    size, a_row = machine.rows.n_columns + 1, row_length(machine.problem.X)
    everywhere = 4.0 * machine.rows.numbers * c
    several = min(n, c * size)  # samples with more than one class, two or three of them
    # Products with sparse rows are no faster than passes.
    slow = BLAS if sparse.issparse(machine.rows.X) else 1.0
    if _way(c, size) is _Whole:
        step = (c * size) ** 3 / 3.0 + 6.0 * several * size**2
    else:
        side = min(size, 3 * several // c)
        step = c * side**3 / 3.0 + c * side**2 * (a_row if side < size else 3 * several // c)
        step += 20.0 * slow * 8.0 * several * a_row * c
    return STEPS * (slow * everywhere + step) / BLAS


# Newton's method -----------------------------------------------------------------------------


class _Answer(NamedTuple):
    """What came out of a minimisation: steps beyond what rounding allows may lead away from it."""

    doubt: float
    primal: float
    p: Floats
    a: Floats
    scale: float


class _Newton:
    """Minimisations of Φ for narrower and narrower δ, each with the samples near a kink only."""

    def __init__(self, machine: _Machine, delta: float | None) -> None:
        self.machine, self.delta = machine, delta
        self.a = _augmented(machine.w, machine.b, machine.has_bias)
        # Σ_i α_i (x_i, 1), which w and the gradient of b are made of.
        self.total = _augmented(*machine.combined(), machine.has_bias)
        self.values = machine.values()
        self.gap, self.primal, self.errors = np.inf, np.inf, 0

    def run(self, run: _Run) -> None:
        """Alternate minimisations with looks at all samples."""
        machine = self.machine
        near, delta = np.arange(self._look().size), self.delta
        if delta is None:
            relative = self.gap / max(abs(self.primal), TINY)
            delta = max(min(relative, 1.0) * self._natural(), NARROWEST)
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
            if self.gap <= AIM * run.tol * self.primal and run.proved(machine, self.primal):
                run.status = Status.CONVERGED
                return
            # Few steps for a large δ are no bad sign: it shrinks by much then.
            early = delta > NARROWEST and n_steps <= NARROWER[1][0]
            idle = 0 if self.doubt < 0.9 * best.doubt or early else idle + 1
            if idle:  # rounding adds up in what was only kept up to date
                self.total = _augmented(*machine.combined(), machine.has_bias)
            if self.doubt < best.doubt:
                best = self._answer()
            if run.status is not None or idle >= PATIENCE:
                break
            delta *= next((by for most, by in NARROWER if n_steps <= most), 1.0)
            if n_steps >= MANY:
                delta *= WIDER
        machine.p, machine.scale = best.p, best.scale
        machine.w, machine.b = _parted(best.a, machine.has_bias)
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

    def _natural(self) -> float:
        """Return the δ at which Φ bends as much along a row x as ½‖w‖² does."""
        machine = self.machine
        return float(np.mean(machine.cost * machine.rows.squared_lengths()))

    def _look(self) -> Floats:
        """Measure the gap over all samples; return their distances from a kink."""
        machine = self.machine
        distance = np.empty(machine.labels.size)
        loss, worst, self.errors = survey(
            self.values, machine.labels, machine.cost, machine.p, distance
        )
        w, b = _parted(self.total, machine.has_bias)
        dual = machine.flow - 0.5 * machine.square(w, b)
        self.primal = machine.primal(loss, worst)
        self.gap = self.primal - dual
        return distance


class _Steps:
    """Newton steps with some samples; all others keep the one class that has all of their p."""

    def __init__(self, newton: _Newton, near: Integers, delta: float) -> None:
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
        self.direction: _Way = _way(*self.a.shape)(self)

    def hand_back(self) -> None:
        """Tell all samples what came out."""
        machine = self.machine
        machine.p[self.near] = self.p
        machine.w, machine.b = _parted(self.a, machine.has_bias)
        machine.scale = 1.0
        self.newton.a, self.newton.total = self.a, self.total

    def run(self, run: _Run) -> int:
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
            aim = 0.5 * AIM * run.tol * abs(dual + slack + residual)
            if residual <= ENOUGH * slack or slack + residual <= aim:
                return n_steps
            moved = self._move(self.direction(gradient), gradient)
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
        alpha = _alpha(self.p, self.cost, self.own)
        total = _augmented(self.rows.combine(alpha), alpha.sum(axis=0), self.machine.has_bias)
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

    def _move(self, step: Floats, gradient: Floats) -> float | None:
        """Go along the step as far as Φ descends; return the gap there, None if it is nowhere."""
        along = self.rows.scores(*_parted(step, self.machine.has_bias))
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


def _augmented(w: Floats, b: Floats, has_bias: bool) -> Floats:
    """Return a = (w, b), one row a class."""
    return np.column_stack([w, b]) if has_bias else np.array(w, order="C")


def _parted(a: Floats, has_bias: bool) -> tuple[Floats, Floats]:
    """Return w and b of a."""
    return (a[:, :-1].copy(), a[:, -1].copy()) if has_bias else (a.copy(), np.zeros(len(a)))


# The way to a step ---------------------------------------------------------------------------


class _Way:
    """−H⁻¹g by conjugate gradients, on a preconditioner that subclasses choose.

    H = diag(ridge) + Σ_i (C_i/δ) P_i ⊗ (x_i, 1)(x_i, 1)ᵀ over the samples with several classes.
    """

    def __init__(self, steps: _Steps) -> None:
        self.steps = steps

    def __call__(self, gradient: Floats) -> Floats:
        """Return the step."""
        steps = self.steps
        member = steps.p > 0.0
        several = np.flatnonzero(member.sum(axis=1) > 1)
        self.rows = steps.rows.take(several)
        self.member = member[several].astype(np.float64)
        self.size = self.member.sum(axis=1)
        self.weight = steps.cost[several] / steps.delta
        # The diagonal of (C_i/δ) P_i.
        self.bend = self.member * (self.weight * (1.0 - 1.0 / self.size))[:, np.newaxis]
        self.ridge = np.tile(steps.ridge, (len(gradient), 1))
        if steps.machine.problem.bias == "free":
            # Along (1, …, 1) Φ does not change with b, nor does it bend along 1 of classes that no
            # sample hesitates to part from the others: there b goes no farther than DARING.
            least = 1e-10 * float(self.bend.sum(axis=0).max(initial=0.0))
            far = float(np.abs(gradient[:, -1]).max()) / DARING
            self.ridge[:, -1] = max(far, least, TINY)
        return self._conjugate_gradients(-gradient, self._preconditioner())

    def _preconditioner(self) -> Callable[[Floats], Floats]:
        """Return a map near H⁻¹, positive definite: divide by H's diagonal."""
        diagonal = self.rows.squares(self.bend)
        if self.steps.machine.has_bias:
            diagonal = np.column_stack([diagonal, self.bend.sum(axis=0)])
        diagonal += self.ridge
        return lambda residual: residual / diagonal

    def _product(self, step: Floats) -> Floats:
        """Return H times a step."""
        has_bias = self.steps.machine.has_bias
        change = self.rows.scores(*_parted(step, has_bias)) * self.member
        change -= self.member * (change.sum(axis=1) / self.size)[:, np.newaxis]
        change *= self.weight[:, np.newaxis]
        out = _augmented(self.rows.combine(change), change.sum(axis=0), has_bias)
        out += self.ridge * step
        return out

    def _conjugate_gradients(
        self, residual: Floats, preconditioned: Callable[[Floats], Floats]
    ) -> Floats:
        step = np.zeros_like(residual)
        direction = preconditioned(residual)
        size = first = float(np.vdot(residual, direction))
        for _ in range(PRODUCTS):
            product = self._product(direction)
            bend = float(np.vdot(direction, product))
            if not bend > 0.0:  # of a residual that is nothing but rounding
                break
            t = size / bend
            step += t * direction
            residual = residual - t * product
            better = preconditioned(residual)
            before, size = size, float(np.vdot(residual, better))
            if not size > ACCURACY**2 * first:
                break
            direction = better + (size / before) * direction
        return step


class _Whole(_Way):
    """H factored whole: one step of conjugate gradients is the solution."""

    def _preconditioner(self) -> Callable[[Floats], Floats]:
        c, size = self.ridge.shape
        H = np.zeros((c * size, c * size))
        blocks = H.reshape(c, size, c, size)
        share = self.weight / self.size
        for block, rows in self.rows.augmented(self.steps.machine.has_bias):
            member = self.member[block]
            for k in range(c):
                of_k = np.flatnonzero(member[:, k])
                X = rows[of_k]
                blocks[k, :, k] += (X * self.bend[block][of_k, k, np.newaxis]).T @ X
                for m in range(k):
                    both = np.flatnonzero(member[of_k, m])
                    if both.size:
                        Z = X[both]
                        blocks[k, :, m] -= (Z * share[block][of_k[both], np.newaxis]).T @ Z
        H[np.diag_indices(c * size)] += self.ridge.ravel()
        solve = factored(H)
        return lambda residual: solve(residual.ravel()).reshape(residual.shape)


class _ClassBlocks(_Way):
    """The diagonal blocks of H, one a class, factored; its diagonal alone where they are too large.

    P_i 1 = 0, and so steps of all classes add up to 0: leaving that direction out, where H bends
    much less than its blocks do, is what makes them good.
    """

    def _preconditioner(self) -> Callable[[Floats], Floats]:
        c, size = self.ridge.shape
        members = [np.flatnonzero(column) for column in self.member.T]
        rows, columns = sum(of_k.size**2 for of_k in members), c * size**2
        if min(rows, columns) > BLOCKS:
            return super()._preconditioner()
        divide = self._by_rows(members) if rows < columns else self._by_columns(members)

        def divide_within(residual: Floats) -> Floats:
            step = divide(residual)
            return step - step.mean(axis=0)

        return divide_within

    def _by_columns(self, members: list[Integers]) -> Callable[[Floats], Floats]:
        """Factor the blocks diag(ridge) + Σ_i bend_i (x_i, 1)(x_i, 1)ᵀ."""
        root = np.sqrt(self.bend)

        def part(k: int, stop: Event) -> Callable[[Floats], Floats]:
            block, roots = np.diag(self.ridge[k]), root[members[k], k, np.newaxis]
            rows = self.rows.take(members[k])
            for some, augmented in rows.augmented(self.steps.machine.has_bias):
                Z = augmented * roots[some]
                block += Z.T @ Z
            return factored(block)

        solves = in_parallel(part, range(len(members)))
        return lambda residual: np.array(
            [solve(r) for solve, r in zip(solves, residual, strict=True)]
        )

    def _by_rows(self, members: list[Integers]) -> Callable[[Floats], Floats]:
        """Factor I + Z ridge⁻¹ Zᵀ of every class, Z its rows (x, 1)√bend (Woodbury's formula)."""
        has_bias = self.steps.machine.has_bias
        ridge, root = self.ridge.copy(), np.sqrt(self.bend)
        if has_bias:
            ridge[:, -1] = np.maximum(ridge[:, -1], LEAST * self.bend.sum(axis=0))

        def part(k: int, stop: Event) -> Callable[[Floats], Floats]:
            gram = self.rows.gram(members[k]) + (1.0 / ridge[k, -1] if has_bias else 0.0)
            gram *= np.outer(root[members[k], k], root[members[k], k])
            gram[np.diag_indices(len(gram))] += 1.0
            return factored(gram)

        solves = in_parallel(part, range(len(members)))

        def divide(residual: Floats) -> Floats:
            step = residual / ridge
            change = root * self.rows.scores(*_parted(step, has_bias))
            for k, of_k in enumerate(members):
                change[of_k, k] = solves[k](change[of_k, k])
            change *= root
            whole = _augmented(self.rows.combine(change), change.sum(axis=0), has_bias)
            return step - whole / ridge

        return divide


def _way(c: int, size: int) -> type[_Way]:
    """Return the way to a step of c vectors of a size."""
    return _Whole if c * size <= WHOLE else _ClassBlocks


def factored(H: Floats) -> Callable[[Floats], Floats]:
    """Return H⁻¹ as a map; H, of which the lower half counts, is positive up to rounding."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(H), TINY))
    lift = 0.0
    for _ in range(20):
        scaled = H * scale[:, np.newaxis]
        scaled *= scale
        scaled[np.diag_indices(scale.size)] = 1.0 + lift
        try:
            factor = cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            lift = max(10.0 * lift, 1e-14)
        else:
            return lambda r: scale * cho_solve(factor, scale * r, check_finite=False)
    return lambda r: scale * scale * r


# Kernels ---------------------------------------------------------------------------------------


def class_scores(rows, i, w, classes, count, out, every):
    """Write w_k·x_i of the first ``count`` of some classes k to out; ``every`` is for notes.

    A sparse row meets all classes at once: w is then stored feature by feature.
    """
    for m in range(count):
        out[m] = row_dot(rows, i, w[classes[m]])


@overload(class_scores, jit_options={"fastmath": REORDER})
def _class_scores(rows, i, w, classes, count, out, every):
    if len(rows) == 1:

        def dense(rows, i, w, classes, count, out, every):
            for m in range(count):
                out[m] = row_dot(rows, i, w[classes[m]])

        return dense

    def csr(rows, i, w, classes, count, out, every):
        first, last = rows[2][i], rows[2][i + 1]
        if 3 * count < w.shape[0]:
            out[:count] = 0.0
            for k in range(first, last):
                x, column = rows[0][k], w[:, np.uint32(rows[1][k])]
                for m in range(count):
                    out[m] += x * column[np.uint32(classes[m])]
            return
        every[:] = 0.0
        for k in range(first, last):
            x, column = rows[0][k], w[:, np.uint32(rows[1][k])]
            for m in range(every.size):
                every[m] += x * column[m]
        for m in range(count):
            out[m] = every[classes[m]]

    return csr


def class_add(rows, i, w, classes, count, steps):
    """Do w_k ← w_k + step_k x_i for the first ``count`` of some classes k."""
    for m in range(count):
        row_add(rows, i, w[classes[m]], steps[m])


@overload(class_add, jit_options={"fastmath": REORDER})
def _class_add(rows, i, w, classes, count, steps):
    if len(rows) == 1:

        def dense(rows, i, w, classes, count, steps):
            for m in range(count):
                row_add(rows, i, w[classes[m]], steps[m])

        return dense

    def csr(rows, i, w, classes, count, steps):
        for k in range(rows[2][i], rows[2][i + 1]):
            x, column = rows[0][k], w[:, np.uint32(rows[1][k])]
            for m in range(count):
                column[np.uint32(classes[m])] += steps[m] * x

    return csr


@compiled
def square_rows(rows, names, out):
    """Write ‖x_i‖² of the rows named."""
    for i in range(names.size):
        out[i] = row_square(rows, names[i])


@compiled
def simplex_threshold(v, count, own, notes):
    """Return θ for which Σ max(v_k − θ, 0) = 1 over the first ``count`` entries.

    To that of the own class 1 is to be added: a share near 1 is told from 1 by what its rivals
    have, which the sum must not lose. The largest entries are looked for one after the other:
    few of them have a share.
    """
    for k in range(count):
        notes[k] = k
    total, theta, above = 0.0, -np.inf, 1.0
    for r in range(count):
        best, value = r, -np.inf
        for m in range(r, count):
            k = notes[m]
            full = v[k] + 1.0 if k == own else v[k]
            if full > value:
                best, value = m, full
        if value <= theta:
            break
        k = notes[best]
        notes[best] = notes[r]
        if k == own:
            above = 0.0
        total += v[k]
        theta = (total - above) / (r + 1)
    return theta


@compiled
def extremes(s, b, here, mine, label, share):
    """Make scores values; return the largest, the least with a share, the own's and rivals' score.

    ``here`` lists the classes of the sample, the first ``mine`` of which take part.
    """
    top, least, own, rival = -np.inf, np.inf, -np.inf, -np.inf
    for m in range(mine):
        k = here[m]
        s[m] += b[k]
        if k == label:
            own = s[m]
        else:
            rival = max(rival, s[m])
            s[m] += 1.0
        top = max(top, s[m])
        if share[k] > 0.0:
            least = min(least, s[m])
    return top, least, own, rival


@compiled
def leave_out(s, here, mine, share, least):
    """Move classes without a share and of a value below ``least`` to the end of the list.

    Returns how many are left.
    """
    m = 0
    while m < mine:
        k = here[m]
        if share[k] == 0.0 and s[m] < least:
            mine -= 1
            here[m], here[mine], s[m] = here[mine], k, s[mine]
        else:
            m += 1
    return mine


@compiled
def project(s, here, mine, label, share, top, curvature, v, notes, moved, steps):
    """Move shares to the projection of p + s/curvature; return how many moved, and the own's step.

    The classes that moved and what they gave away are listed in ``moved`` and ``steps``: the own
    one, if it did, last, with what its rivals gave or took.
    """
    given, at = 0.0, -1  # what the rivals have, and the place of the own class
    for m in range(mine):
        if here[m] == label:
            at = m
        else:
            given += share[here[m]]
    for m in range(mine):
        v[m] = (-given if m == at else share[here[m]]) + (s[m] - top) / curvature
    theta = simplex_threshold(v, mine, at, notes)
    n_moved, gone = 0, 0.0
    for m in range(mine):
        k, new = here[m], min(max(v[m] - theta, 0.0), 1.0)
        if m != at and new != share[k]:
            steps[n_moved], moved[n_moved] = share[k] - new, k
            gone += steps[n_moved]
            share[k] = new
            n_moved += 1
    if at < 0 or gone == 0.0:
        return n_moved, 0.0
    share[label] = min(max(v[at] + 1.0 - theta, 0.0), 1.0)
    steps[n_moved], moved[n_moved] = -gone, label
    return n_moved + 1, -gone


@compiled
def sequential_pass(
    rows, names, labels, cost, curvature, p, w, b, bias_step, balance, order, classes, count, far
):
    """Project the shares of samples one after the other, in place, and w, b, Σα with them.

    Classes without a share whose value is more than ``far`` below all that have one leave the
    sample's list; samples with one class left are not moved. Returns the gap met, the worst
    violation, samples on the wrong side, and the change of Σ_i α_i^y.
    """
    c = w.shape[0]
    s, v, every, steps = np.empty(c), np.empty(c), np.empty(c), np.empty(c)
    moved, notes = np.empty(c, dtype=classes.dtype), np.empty(c, dtype=np.int64)
    gap, worst, errors, flow = 0.0, 0.0, 0, 0.0
    for place in range(order.size):
        i = order[place]
        if place + 2 < order.size:
            row_prefetch(rows, names[order[place + 2]])
        here, mine, share = classes[i], count[i], p[i]
        class_scores(rows, names[i], w, here, mine, s, every)
        top, least, own, rival = extremes(s, b, here, mine, labels[i], share)
        for m in range(mine):
            gap += cost[i] * share[here[m]] * (top - s[m])
        errors += rival >= own
        worst = max(worst, top - least)
        mine = leave_out(s, here, mine, share, least - far)
        count[i] = mine
        if mine < 2 or top <= least:
            continue
        n_moved, own_step = project(
            s, here, mine, labels[i], share, top, curvature[i], v, notes, moved, steps
        )
        flow += cost[i] * own_step
        for m in range(n_moved):
            steps[m] *= cost[i]
            b[moved[m]] += bias_step * steps[m]
            balance[moved[m]] += steps[m]
        class_add(rows, names[i], w, moved, n_moved, steps)
    return gap, worst, errors, flow


@compiled
def smoothed_maxima(values, along, t, labels, cost, center, delta, p):
    """Write p = the projection of p⁰ + s/δ, s the values at values + t·along.

    Returns Σ C_i (max s − p·s), and the derivative of Φ's losses by t, Σ C_i (p − e_y)·along.
    """
    n, c = values.shape
    s, v, notes = np.empty(c), np.empty(c), np.empty(c, dtype=np.int64)
    gap, slope = 0.0, 0.0
    for i in range(n):
        y, top, given = labels[i], -np.inf, 0.0
        for k in range(c):
            s[k] = values[i, k] + t * along[i, k] + (1.0 if k != y else 0.0)
            top = max(top, s[k])
            given += center[i, k] if k != y else 0.0
        for k in range(c):
            v[k] = (center[i, k] if k != y else -given) + (s[k] - top) / delta
        theta = simplex_threshold(v, c, y, notes)
        for k in range(c):
            share = v[k] - theta if k != y else v[k] + 1.0 - theta
            share = min(max(share, 0.0), 1.0)
            p[i, k] = share
            gap += cost[i] * share * (top - s[k])
            slope += cost[i] * share * (along[i, k] - along[i, y])
    return gap, slope


@compiled
def survey(values, labels, cost, p, distance):
    """Write how far samples are from a kink; return Σ C_i ξ_i, the largest ξ, and errors.

    That is what the largest value exceeds all others by, 0 where it has not all of p.
    """
    n, c = values.shape
    loss, worst, errors = 0.0, 0.0, 0
    for i in range(n):
        y = labels[i]
        top, second, best = -np.inf, -np.inf, 0
        for k in range(c):
            s = values[i, k] + (1.0 if k != y else 0.0)
            if s > top:
                top, second, best = s, top, k
            else:
                second = max(second, s)
        own = values[i, y]
        loss += cost[i] * (top - own)
        worst = max(worst, top - own)
        errors += best != y and top - 1.0 >= own
        distance[i] = top - second if p[i, best] == 1.0 else 0.0
    return loss, worst, errors
