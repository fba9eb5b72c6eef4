"""The support vector machine solved exactly: a primal active-set method for its dual.

    min ½αᵀ(Q + D)α − p 1ᵀα   subject to   0 ≤ α ≤ u,  Aα = a

A has the row y where there is a bias, and for the ν-machine one row a class (Σα = s in all: on a
positive semidefinite kernel α can always be shrunk until 1ᵀα ≥ s is tight). F is the set of free
variables, all others rest at a bound. On F the problem is a linear system; its solution is gone to
as far as the bounds allow, the variable met there leaves F, and where F is solved the one that
violates its KKT condition most enters. Finitely many steps end at the optimum, to rounding.
Reference: Nocedal, Wright, *Numerical Optimization* (2006), section 16.5; singular directions as in
Gill, Murray, Saunders, Wright, *SIAM Review* 33 (1991); for support vector machines Scheinberg,
*JMLR* 7 (2006).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dpstrf

from ...arrays import Floats, Integers, blocks_of
from ...kernels import Precomputed
from ...problems import DualProblem
from ...progress import Limits, Progress
from ...runtime.row_access import compiled
from ...solution import Solution, Status
from .feasibility import Constraints, Mask
from .optimality import kkt_interval, middle, primal_value, violations

# Variables up to which all of them are looked at in every step; beyond, F and the worst violators.
WHOLE = 256
VIOLATORS = 256
EPSILON = float(np.finfo(np.float64).eps)
# Curvature along d, relative to (Σ|d_i|√H_ii)², that rounding cannot tell from none.
FLAT = 32.0 * EPSILON
# A pivot, relative to the diagonal, of a variable that depends on the others.
DEPENDENT = 1e-10
# What rounding may make of y g(x) before α is too large to go on with.
BLURRED = 1e-2
# Steps in a row without descent after which variables are chosen by Bland's rule; rounding has the
# last word when as many as the chunk has variables, and HOPELESS more, have brought none.
DEGENERATE, HOPELESS = 20, 200
# Chunks in a row that may bring nothing.
PATIENCE = 5
# Multiplications that a kernel value, and the interpreter in a step, take the time of.
FETCHED, OVERHEAD = 10, 2e5


class GramMatrix(Protocol):
    """What this solver needs of an engine."""

    def block(self, rows: Integers) -> Floats:
        """K[rows, rows]."""

    def dot(self, rows: Integers, v: Floats) -> Floats:
        """K[:, rows] v."""

    def diagonal(self) -> Floats:
        """K(x_i, x_i)."""


@dataclass(frozen=True)
class ActiveSet:
    """min ½αᵀ(Q + D)α − p 1ᵀα, 0 ≤ α ≤ u, Aα = a, by Newton steps on the free variables.

    Beyond some hundred samples F is solved together with the worst violators only, whose Gram
    block is fetched once; the others are looked at again when those are settled. A start is
    clipped to the box and made to satisfy Aα = a; what is then strictly within its bounds is free,
    so that a nearly optimal α is polished in a few steps. Kernel values are float64 whatever X is:
    the engine's where its blocks are, else computed here.

    Ends with ``CONVERGED`` when no KKT condition is violated by more than ``tol``, or by more than
    rounding makes of Σ α_j K(x_i, x_j); ``INSEPARABLE`` when α can grow for ever along some d ≥ 0,
    whose multiple of sum 1 is returned as multipliers (Σ d_i y_i φ(x_i) = 0, yᵀd = 0: Gordan's
    alternative in feature space, as far as float64 kernel values show it, to which a margin of
    1e-7 max‖φ(x)‖ is none); ``DIVERGED`` when it can because the kernel is not positive
    semidefinite; ``PATIENCE`` when rounding allows no further descent. b is the mean of
    y_i − w·φ(x_i) over the free α, or the midpoint of the interval that the KKT conditions leave
    where none is free.

    Parameters
    ----------
    gram : GramMatrix
        The engine of the rows ``problem.index``.
    tol : float, default=1e-10
        Largest violation of a KKT condition, in units of y g(x).
    limits : Limits, optional
        Steps (changes of the active set) and seconds.
    work : float, default=∞
        Multiplications after which it gives up with ``PATIENCE``: rounding may let it go round in
        circles of many variables, which no count of steps without descent finds.

    Examples
    --------
    >>> from maxmargin.datasets import load_six_points
    >>> from maxmargin.engines.cpu.gram import Gram
    >>> from maxmargin.kernels import Linear
    >>> X, y = load_six_points(return_X_y=True)
    >>> problem = DualProblem.hard(Linear(), X, y.astype(float))
    >>> solution = ActiveSet(Gram(Linear(), X)).solve(problem, None, Progress())
    >>> print((225 * solution.alpha).round(10))
    [ 8. 0. 9. 0. 17. 0.]
    """

    gram: GramMatrix
    tol: float = 1e-10
    limits: Limits = field(default_factory=Limits)
    work: float = np.inf

    def solve(self, problem: DualProblem, alpha: Floats | None, progress: Progress) -> Solution:
        """Return α and b, starting from ``alpha`` or from nothing."""
        return self._solve(_Point(problem, self.gram, alpha), progress)

    def _solve(self, point: _Point, progress: Progress) -> Solution:
        status: Status | None = None
        before = len(progress.history)
        while status is None:
            if point.work > self.work:
                status = Status.PATIENCE
                break
            tol = max(self.tol * point.unit, point.rounding())
            chunk = point.chunk(tol)
            if chunk is None:
                status = Status.CONVERGED
            else:
                status = self._descend(point, chunk, tol, progress, before)
                point.absorb(chunk)
            if status is Status.DIVERGED:
                point, status = self._from_hulls(point, progress)
            elif status is None and not point.descends():
                status = Status.PATIENCE
        return replace(point.solution(status, progress), n_iter=len(progress.history) - before)

    def _from_hulls(self, point: _Point, progress: Progress) -> tuple[_Point, Status]:
        """Return the hard margin from the nearest points of the hulls, where α grew without end.

        Their squared half distance uᵀQu is 0 of inseparable classes; of others α = u/uᵀQu. The
        steps reported meanwhile are those of u.
        """
        problem, found = point.problem, hulls(point.problem)
        if found is None:
            return point, Status.DIVERGED
        closest, constraints = found
        to_rounding = replace(self, tol=16.0 * EPSILON * max(point.sigma, 1.0))
        nearest = to_rounding._solve(_Point(closest, self.gram, None, constraints), progress)
        assert nearest.alpha is not None
        u = convex(point.A, nearest.alpha)
        square = float(u @ dual_gradient(closest, point.gram, u))
        if abs(square) <= FLAT * float(u @ point.sizes) ** 2:
            point.proof = u
            return point, Status.INSEPARABLE
        if square < 0.0:
            return point, Status.DIVERGED
        ended = nearest.status is not Status.CONVERGED
        return _Point(problem, self.gram, u / square), nearest.status if ended else Status.PATIENCE

    def _descend(
        self, point: _Point, chunk: _Chunk, tol: float, progress: Progress, before: int
    ) -> Status | None:
        """Take steps until the chunk is solved (None) or one of the other ends is reached."""
        show = partial(point.snapshot, chunk)
        point.work += FETCHED * chunk.rows.size**2
        while point.work <= self.work:
            status = chunk.step(tol)
            point.work += OVERHEAD + chunk.rows.size * chunk.free.size
            if status is Status.CONVERGED:
                return None
            errors, primal, dual = point.look(chunk)
            if progress.iteration(
                chunk.objective, errors, chunk.violation, show, primal=primal, dual=dual
            ):
                return Status.STOPPED
            status = status or self.limits.reached(len(progress.history) - before, progress)
            if status is not None:
                return status
        return Status.PATIENCE


@dataclass(frozen=True)
class Float64Gram:
    """Kernel values in float64: the engine's where it has them, else computed from the rows.

    An engine on float32 rows answers in float32, whose rounding α of 1e-10 would notice.
    """

    problem: DualProblem
    gram: GramMatrix

    @cached_property
    def _exact(self) -> bool:
        return self.gram.block(np.zeros(1, dtype=np.intp)).dtype == np.float64

    def block(self, rows: Integers) -> Floats:
        """Return K[rows, rows]."""
        return self.gram.block(rows) if self._exact else self._values(rows, rows)

    def dot(self, rows: Integers, v: Floats) -> Floats:
        """Return K[:, rows] v."""
        if self._exact:
            return self.gram.dot(rows, v)
        total = np.zeros(self.problem.index.size)
        everything = np.arange(total.size)
        for some in blocks_of(total.size, rows.size):
            total[some] = self._values(everything[some], rows) @ v
        return total

    def _values(self, rows: Integers, columns: Integers) -> Floats:
        problem = self.problem
        rows, columns = problem.index[rows], problem.index[columns]
        if isinstance(problem.kernel, Precomputed):
            return problem.X[np.ix_(rows, columns)].astype(np.float64)
        return problem.kernel(
            problem.X[rows].astype(np.float64), problem.X[columns].astype(np.float64)
        )


def dual_gradient(problem: DualProblem, gram: Float64Gram, alpha: Floats) -> Floats:
    """Return (Q + D)α − p."""
    support = np.flatnonzero(alpha)
    gradient = problem.ridge * alpha + problem.p
    if support.size:
        gradient += problem.signs * gram.dot(support, (alpha * problem.signs)[support])
    return gradient


def multipliers(constraints: Constraints, alpha: Floats, gradient: Floats, free: Mask) -> Floats:
    """Return μ of Aα = a, for which the gradient + Aᵀμ of the free variables is 0 on average.

    Where a row of A has no free variable, the KKT conditions leave an interval for its μ: the
    midpoint is taken, or the end there is.
    """
    found = np.zeros(len(constraints.A))
    for k, row in enumerate(constraints.A):
        inner = free & (row != 0)
        if inner.any():
            found[k] = -np.mean((row * gradient)[inner])
        else:
            found[k] = middle(constraints, row, alpha, gradient)
    return found


def bias(problem: DualProblem, found: Floats) -> float:
    """Return b, the mean of the multipliers of the groups' sums; 0 where there are none."""
    return float(np.mean(found)) if problem.groups else 0.0


def hulls(problem: DualProblem) -> tuple[DualProblem, Constraints] | None:
    """Return the problem of the nearest points in the hulls of the samples without slack.

        min ½uᵀQu   subject to   u ≥ 0,  Σu = 1,  yᵀu = 0

    is the ν-machine's with ν = 1, and bounded where the hard margin's dual is not. Without a bias
    only Σu = 1 is left, whatever the signs. None where some class has no such samples, and for
    machines other than classifiers of margin 1.
    """
    hard, signs = np.isinf(problem.upper) & (problem.ridge == 0.0), problem.signs
    if not problem.has_unit_margin or len(set(signs[hard])) < (2 if problem.groups else 1):
        return None
    nearest = replace(problem, upper=np.where(hard, 1.0, 0.0), p=np.zeros(signs.size))
    if not problem.groups:
        A, a = np.ones((1, signs.size)), np.ones(1)
        return nearest, Constraints(A, a, nearest.lower, nearest.upper)
    classes = (np.flatnonzero(signs > 0), np.flatnonzero(signs < 0))
    nearest = replace(nearest, groups=classes, sums=(0.5, -0.5))
    return nearest, Constraints.of(nearest)


def convex(A: Floats, u: Floats) -> Floats:
    """Return u scaled to Σu = 1, and each class to half of that where y is a row of A."""
    u = u.copy()
    for members in [*(A > 0), *(A < 0)]:
        u[members] /= u[members].sum() or 1.0
    return u / u.sum()


class _Point:
    """α of all samples with its gradient, and the free set with its factor.

    ``constraints`` other than those of the problem are those of one on the way to it.
    """

    def __init__(
        self,
        problem: DualProblem,
        gram: GramMatrix,
        alpha: Floats | None,
        constraints: Constraints | None = None,
    ) -> None:
        self.problem, self.is_part = problem, constraints is not None
        self.constraints = constraints or Constraints.of(problem)
        self.gram = Float64Gram(problem, gram)
        self.A, self.a = self.constraints.A, self.constraints.a
        self.sizes = np.sqrt(np.maximum(gram.diagonal(), 0.0))
        self.sigma = float(self.sizes.max()) ** 2 or 1.0
        # y g(x) is about 1 at the margin, but of the ν-machine about what its kernel is.
        self.unit = 1.0 if problem.p.any() else min(1.0, float(np.abs(self.a).sum()) * self.sigma)
        self.alpha = self.constraints.snapped(self.constraints.nearest(alpha))
        self.gradient = dual_gradient(problem, self.gram, self.alpha)
        self.free = np.flatnonzero(self.constraints.inside(self.alpha))
        self.factor: _Factor | None = None
        self.proof: Floats | None = None
        self.lowest = self.least = np.inf
        self.patience = PATIENCE
        self.work = 0.0
        self._fresh = True

    @property
    def objective(self) -> float:
        """½αᵀ(Q + D)α − p 1ᵀα, for the gradient is (Q + D)α − p."""
        alpha = self.alpha
        return 0.5 * float(alpha @ self.gradient + self.problem.p @ alpha)

    def rounding(self) -> float:
        """Bound what rounding makes of the terms α_j K(x_i, x_j) of the gradient."""
        return EPSILON * float(self.sizes.max() * (self.sizes @ self.alpha))

    def chunk(self, tol: float) -> _Chunk | None:
        """Return the free variables and the worst violators, or None when nothing is violated."""
        self._price()
        if self.worst.max() <= tol and not self._fresh:
            # The gradient is a sum of many steps: the end is seen on a new one.
            self.gradient = dual_gradient(self.problem, self.gram, self.alpha)
            self._fresh = True
            self._price()
        if self.worst.max() <= tol:
            return None
        rows = np.concatenate([self.free, self._violators()])
        self._outside = int(self._wrong.sum() - self._wrong[rows].sum())
        chunk = _Chunk(self, rows, tol)
        self.factor = chunk.factor
        return chunk

    def _violators(self) -> Integers:
        """Return what joins the free variables: all others if they are few, else the worst.

        As many as would raise a row of Aα as would lower it: they can move in pairs only.
        """
        others = np.ones(self.alpha.size, dtype=bool)
        others[self.free] = False
        if others.size <= WHOLE:
            return np.flatnonzero(others)
        others &= self.worst > 0
        pulls = self.A * self.slope
        sides = [others & (pull < 0) for pull in (*pulls, *-pulls)] or [others]
        return np.concatenate([self._first(side, VIOLATORS // len(sides)) for side in sides])

    def _first(self, side: Mask, count: int) -> Integers:
        rows = np.flatnonzero(side)
        return rows[np.argsort(-self.worst[rows], kind="stable")[:count]]

    def _price(self) -> None:
        """Find the violation of every KKT condition, and which samples are on the wrong side."""
        problem, free = self.problem, np.zeros(self.alpha.size, dtype=bool)
        free[self.free] = True
        found = multipliers(self.constraints, self.alpha, self.gradient, free)
        self.slope = self.gradient + found @ self.A
        self.worst = violations(self.constraints, self.alpha, self.slope)
        self._wrong = margins_of(problem, self.alpha, self.gradient, found)[1] <= 0.0

    def look(self, chunk: _Chunk) -> tuple[int, float, float]:
        """Return how many samples are on the wrong side, P and D.

        Wrong are those of the chunk now, and of the others those when last looked at. P is known
        where all samples are in the chunk.
        """
        plain, margins = margins_of(chunk.problem, chunk.alpha, chunk.gradient, chunk.found)
        errors = self._outside + int(np.count_nonzero(margins <= 0.0))
        if self.is_part:
            return errors, np.nan, np.nan
        if chunk.rows.size < self.alpha.size:
            return errors, np.nan, -chunk.objective
        scores, b = chunk.problem.signs * plain, bias(chunk.problem, chunk.found)
        primal = primal_value(chunk.problem, float(chunk.alpha @ plain), scores, b)
        return errors, primal, -chunk.objective

    def absorb(self, chunk: _Chunk) -> None:
        """Take over what the steps of a chunk have changed."""
        problem, rows = self.problem, chunk.rows
        change = chunk.alpha - self.alpha[rows]
        moved = np.flatnonzero(change)
        self.alpha[rows] = chunk.alpha
        change, moved = change[moved], rows[moved]
        if moved.size:
            self.gradient += problem.signs * self.gram.dot(moved, problem.signs[moved] * change)
            self.gradient[moved] += problem.ridge[moved] * change
            self._fresh = False
        self.free = rows[chunk.free]
        if chunk.proof is not None:
            self.proof = np.zeros(self.alpha.size)
            self.proof[rows] = chunk.proof

    def descends(self) -> bool:
        """Whether the objective or the violation has fallen in one of the last few chunks."""
        self._price()
        objective, violation = self.objective, float(self.worst.max())
        falls = objective < self.lowest or violation < self.least
        self.lowest, self.least = min(objective, self.lowest), min(violation, self.least)
        self.patience = PATIENCE if falls else self.patience - 1
        return self.patience > 0

    def snapshot(self, chunk: _Chunk) -> Solution:
        """Return the state within a chunk."""
        alpha = self.alpha.copy()
        alpha[chunk.rows] = chunk.alpha
        b = np.array([bias(self.problem, chunk.found)])
        return Solution(np.empty((0, 0)), b, Status.STOPPED, alpha=alpha)

    def solution(self, status: Status, progress: Progress) -> Solution:
        """Return the final state."""
        problem, trace = self.problem, progress.trace()
        alpha = self.constraints.snapped(self.alpha)
        inner = self.constraints.inside(alpha)
        found = multipliers(self.constraints, alpha, self.gradient, inner)
        return Solution(
            w=np.empty((0, 0)),
            b=np.array([bias(problem, found)]),
            status=status,
            n_iter=len(trace),
            seconds=progress.seconds,
            alpha=alpha,
            multipliers=self.proof,
            scores=problem.signs * margins_of(problem, self.alpha, self.gradient, found)[0],
            trace=trace,
        )


def margins_of(
    problem: DualProblem, alpha: Floats, gradient: Floats, found: Floats
) -> tuple[Floats, Floats]:
    """Return y(g(x) − b) and y g(x), from the gradient y(g(x) − b) + Dα − p."""
    plain = gradient - problem.p - problem.ridge * alpha
    return plain, plain + problem.signs * bias(problem, found)


class _Chunk:
    """The problem in some of its variables, the others at rest, and the active-set steps on it.

    H̃ = H + σAᵀA agrees with H = Q + D wherever Ad = 0, and is positive definite on F exactly when
    H is so on {Ad = 0}: that is what its Cholesky factor is kept for. Only variables that leave it
    so enter F; one that does not is the end of a direction of no curvature, along which α moves
    until some variable meets its bound.
    """

    def __init__(self, point: _Point, rows: Integers, tol: float) -> None:
        problem = point.problem
        self.problem = problem.restrict(rows)
        y, upper, ridge = self.problem.signs, self.problem.upper, self.problem.ridge
        self.rows = rows
        self.H = point.gram.block(rows) * y * y[:, np.newaxis]
        self.H[np.diag_indices(rows.size)] += ridge
        whole = point.constraints
        A, lower = np.ascontiguousarray(whole.A[:, rows]), whole.lower[rows]
        self.constraints = Constraints(A, whole.a, lower, upper)
        self.A, self.lower = A, lower
        self.alpha, self.gradient = point.alpha[rows], point.gradient[rows]
        self.upper = upper
        self.objective = self.lowest = point.objective
        # What the chunk's share of Aα has to be.
        self.a = self.A @ self.alpha - (point.A @ point.alpha - point.a)
        self.sigma = point.sigma
        diagonal = self.H.diagonal() + self.sigma * (self.A != 0).any(axis=0)
        self.scale = np.sqrt(np.maximum(diagonal, 0.0))
        self.proof: Floats | None = None
        self.entering: int | None = None
        self.refined = self.stalled = 0
        self.factor, self.free = self._factor(point)
        self._look()
        self.stationary = self._settled(tol)

    def _factor(self, point: _Point) -> tuple[_Factor, Integers]:
        """Return the factor of F, the first rows of the chunk, and which of them it holds."""
        free = np.arange(point.free.size)
        if point.factor is not None and point.factor.updates < max(free.size, 50):
            return point.factor, free
        block = self.H[: free.size, : free.size] + self.sigma * (
            self.A[:, : free.size].T @ self.A[:, : free.size]
        )
        factor = _Factor.of(block)
        if factor is not None:
            return factor, free
        # Of a start: what depends on others stays where it is, until it is found to violate.
        return _Factor.of_independent(block)

    @property
    def violation(self) -> float:
        """The worst violation of a KKT condition."""
        return float(self.violations.max())

    def _look(self) -> None:
        """Find λ and what it leaves violated."""
        free = np.zeros(self.rows.size, dtype=bool)
        free[self.free] = True
        self.found = multipliers(self.constraints, self.alpha, self.gradient, free)
        self.slope = self.gradient + self.found @ self.A
        self.violations = violations(self.constraints, self.alpha, self.slope)

    def _settled(self, tol: float) -> bool:
        """Whether the free variables are stationary."""
        return bool(np.abs(self.slope[self.free]).max(initial=0.0) < 0.1 * tol)

    def step(self, tol: float) -> Status | None:
        """Move once; CONVERGED without a move when no KKT condition is violated by ``tol``."""
        if self.stationary and self.entering is None:
            j = self._violator(tol)
            if j is None:
                return Status.CONVERGED
            self._enter(j)
        status = self._newton(tol) if self.entering is None else self._slide(self.entering)
        if status is None and self.stalled > self.rows.size + HOPELESS:
            status = Status.PATIENCE
        grown = EPSILON * self.sigma * float(self.alpha[np.isinf(self.upper)].sum())
        return Status.DIVERGED if status is None and grown > BLURRED else status

    def _violator(self, tol: float) -> int | None:
        """Return the variable to enter F: the worst, or the first by Bland's rule in a stall."""
        outside = self.violations.copy()
        outside[self.free] = 0.0
        if outside.max() <= tol:
            return None
        bland = self.stalled > DEGENERATE
        candidates = np.flatnonzero(outside > tol)
        j = int(candidates[self.rows[candidates].argmin()] if bland else outside.argmax())
        for row in self.A:
            if row[j] and not row[self.free].any():
                # λ of this row is open: one end of the violated interval fixes it, free but in
                # its place, and the other end is the violator.
                pivot, j = kkt_interval(self.constraints, row, self.alpha, self.gradient)[:2]
                self._enter(pivot)
                self._look()
        return j

    def _enter(self, j: int) -> None:
        """Free variable j, or keep it in waiting where that would leave F without curvature."""
        column = self.H[self.free, j] + self.sigma * (self.A[:, j] @ self.A[:, self.free])
        diagonal = self.H[j, j] + self.sigma * float(self.A[:, j] @ self.A[:, j])
        sizes = self.scale[np.append(self.free, j)]
        independent, self.dependence = self.factor.append(column, diagonal, sizes)
        if independent:
            self.free = np.append(self.free, j)
            self.stationary, self.refined, self.entering = False, 0, None
        else:
            self.entering = j

    def _newton(self, tol: float) -> Status | None:
        """Go to the minimum over F, or until a bound is met."""
        free = self.free
        A = self.A[:, free]
        present = A.any(axis=1)
        A, excess = A[present], (self.A @ self.alpha - self.a)[present]
        direction = -self.factor.solve(self.slope[free])
        if len(A):
            V = np.column_stack([self.factor.solve(row) for row in A])
            direction -= V @ np.linalg.solve(A @ V, excess + A @ direction)
        reach, k = self._reach(free, direction)
        self._move(free, direction, min(reach, 1.0))
        if reach < 1.0:
            self._leave(k, direction[k])
            self.refined = 0
        else:
            self.refined += 1
            # A second step on the same F is iterative refinement.
            self.stationary = self.refined > 2 or self._settled(tol)
        return None

    def _slide(self, j: int) -> Status | None:
        """Move along the direction of no curvature that variable j would bring into F."""
        if self.violations[j] <= 0.0:
            self.entering = None
            return None
        rows = np.append(self.free, j)
        direction = np.append(-self.dependence, 1.0) * -np.sign(self.slope[j])
        reach, k = self._reach(rows, direction)
        # An entry that is rounding may pretend to be the bound of an unbounded direction.
        if np.isinf(reach) or abs(direction[k]) < 1e-8 * np.abs(direction).max():
            status = self._unbounded(rows, direction)
            if status or np.isinf(reach):
                return status or Status.DIVERGED
        self._move(rows, direction, reach)
        if k == self.free.size:
            self.alpha[j] = self.lower[j] if direction[k] < 0 else self.upper[j]
            self.entering = None
        else:
            self._leave(k, direction[k])
            self._enter(j)
        return None

    def _unbounded(self, rows: Integers, direction: Floats) -> Status | None:
        """Check whether the direction, without what rounding makes negative, is Gordan's proof."""
        u: Floats = np.zeros(self.rows.size)
        u[rows] = np.maximum(direction, 0.0)
        bounded = np.isfinite(self.upper) | (self.problem.ridge > 0.0)
        if not u.any() or bounded[u > 0].any() or not self.problem.has_unit_margin:
            return None
        u = convex(self.A, u)
        curvature = float(u @ self.H @ u)
        noise = 2.0 * FLAT * float(u @ self.scale) ** 2
        if abs(curvature) > noise or np.abs(self.A @ u).max(initial=0.0) > 1e-12:
            return None
        self.proof = u
        return Status.INSEPARABLE

    def _move(self, rows: Integers, direction: Floats, length: float) -> None:
        """α ← α + length·direction, with its gradient and the objective."""
        change, turned = length * direction, np.zeros(self.rows.size)
        add_rows(self.H, rows, change, turned)
        self.objective += float(change @ (self.slope[rows] + 0.5 * turned[rows]))
        self.alpha[rows] = np.clip(self.alpha[rows] + change, self.lower[rows], self.upper[rows])
        self.gradient += turned
        self._look()
        self.stalled = 0 if self.objective < self.lowest else self.stalled + 1
        self.lowest = min(self.objective, self.lowest)

    def _leave(self, k: int, direction: float) -> None:
        """Put the k-th free variable to rest at the bound it has met."""
        j = self.free[k]
        self.alpha[j] = self.lower[j] if direction < 0 else self.upper[j]
        self.factor.drop(k)
        self.free = np.delete(self.free, k)
        self._look()

    def _reach(self, rows: Integers, direction: Floats) -> tuple[float, int]:
        """Return how far the direction goes within the bounds, and which entry ends it."""
        if not rows.size:
            return np.inf, 0
        size = np.abs(direction)
        alpha = self.alpha[rows]
        room = np.where(direction > 0, self.upper[rows] - alpha, alpha - self.lower[rows])
        ratios = np.full(rows.size, np.inf)
        with np.errstate(over="ignore"):
            np.divide(room, size, out=ratios, where=size > 0)
        reach = float(ratios.min())
        ties = np.flatnonzero(ratios <= reach * (1.0 + 1e-12))
        if self.stalled > DEGENERATE:  # Bland's rule
            return reach, int(ties[self.rows[rows[ties]].argmin()])
        return reach, int(ties[size[ties].argmax()])


class _Factor:
    """R with RᵀR = H̃[F, F], kept as F gains and loses variables."""

    def __init__(self) -> None:
        self.R = np.zeros((64, 64))
        self.size = self.updates = 0

    @classmethod
    def of(cls, block: Floats) -> _Factor | None:
        """Return the factor of a positive definite block, None where it is near singular."""
        factor = cls()
        if not block.size:
            return factor
        try:
            R = cholesky(block)
        except LinAlgError:
            return None
        if (R.diagonal() ** 2 <= DEPENDENT * block.diagonal()).any():
            return None
        factor.size = len(block)
        factor._grow()
        factor.R[: factor.size, : factor.size] = R
        return factor

    @classmethod
    def of_independent(cls, block: Floats) -> tuple[_Factor, Integers]:
        """Return the factor of as many variables as are independent, and which, by pivoting."""
        factor, scale = cls(), np.sqrt(np.maximum(block.diagonal(), np.finfo(float).tiny))
        R, order, rank, _ = dpstrf(block / scale / scale[:, np.newaxis], tol=DEPENDENT)
        kept = order[:rank].astype(np.intp) - 1
        factor.size = int(rank)
        factor._grow()
        factor.R[:rank, :rank] = np.triu(R[:rank, :rank]) * scale[kept]
        return factor, kept

    def append(self, column: Floats, diagonal: float, sizes: Floats) -> tuple[bool, Floats]:
        """Add a variable unless it depends on the others; return H̃[F, F]⁻¹ times its column too.

        d = (−that, 1) has the curvature dᵀH̃d of the new pivot.
        """
        x = column.copy()
        solve_transposed(self.R, self.size, x)
        pivot = diagonal - float(x @ x)
        border = x.copy()
        solve_upper(self.R, self.size, x)
        if pivot <= FLAT * float(np.abs(x) @ sizes[:-1] + sizes[-1]) ** 2:
            return False, x
        self.size += 1
        self._grow()
        self.R[: self.size - 1, self.size - 1] = border
        self.R[self.size - 1, self.size - 1] = np.sqrt(pivot)
        self.updates += 1
        return True, x

    def drop(self, k: int) -> None:
        """Take out the k-th variable."""
        drop_column(self.R, self.size, k)
        self.size -= 1
        self.updates += 1

    def solve(self, b: Floats) -> Floats:
        """Return H̃[F, F]⁻¹ b."""
        x = np.array(b)
        solve_transposed(self.R, self.size, x)
        solve_upper(self.R, self.size, x)
        return x

    def _grow(self) -> None:
        if self.size > len(self.R):
            larger = np.zeros((2 * self.size, 2 * self.size))
            larger[: len(self.R), : len(self.R)] = self.R
            self.R = larger


@compiled
def add_rows(H: Floats, rows: Integers, v: Floats, total: Floats) -> None:
    """Do total ← total + Σ_k v_k H[rows_k]."""
    for k in range(rows.size):
        row = H[rows[k]]
        for j in range(total.size):
            total[j] += v[k] * row[j]


@compiled
def solve_transposed(R: Floats, size: int, x: Floats) -> None:
    """Do x ← R⁻ᵀx, R upper triangular of the given size."""
    for k in range(size):
        row = R[k]
        x[k] /= row[k]
        for j in range(k + 1, size):
            x[j] -= x[k] * row[j]


@compiled
def solve_upper(R: Floats, size: int, x: Floats) -> None:
    """Do x ← R⁻¹x."""
    for k in range(size - 1, -1, -1):
        row = R[k]
        known = 0.0
        for j in range(k + 1, size):
            known += row[j] * x[j]
        x[k] = (x[k] - known) / row[k]


@compiled
def drop_column(R: Floats, size: int, k: int) -> None:
    """Turn R of RᵀR = M into that of M without row and column k, by rotations of its rows."""
    lost = R[k, :size].copy()
    for i in range(k):
        for j in range(k, size - 1):
            R[i, j] = R[i, j + 1]
    for i in range(k + 1, size):
        # The rows below k plus the lost one: M₂₂ = R₂₂ᵀR₂₂ + lost lostᵀ.
        length = np.hypot(R[i, i], lost[i])
        c, s = R[i, i] / length, lost[i] / length
        for j in range(i, size):
            old = R[i, j]
            R[i - 1, j - 1] = c * old + s * lost[j]
            lost[j] = c * lost[j] - s * old
