"""The linear machine in one partition: what a worker does in a round.

A state is a record of arrays that is never changed: a round makes a new one. Between two rounds the
client may have decided several things that need no answer (a step of some length, a new centre):
they are the first operations of the next round.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Floats, Integers
from ...problems import PrimalProblem
from ..cpu import primal_passes as passes
from ..cpu.features import Features
from ..cpu.primal_state import PrimalState
from .checks import Block


class PartState(NamedTuple):
    """Scores, β, its centre β⁰ (one number per row, or one for all), and the scores of a step."""

    scores: Floats
    beta: Floats
    center: Floats
    along: Floats | None = None

    def __dask_sizeof__(self) -> int:
        """Return the bytes, for Dask's own account of the memory."""
        return sum(each.nbytes for each in self if each is not None)


# An operation of `LinearPart` and its arguments.
Operation = tuple[Any, ...]


class Request(NamedTuple):
    """What all partitions are asked.

    Parameters
    ----------
    problem : PrimalProblem
        Without its vectors.
    operations : tuple of Operation
        Those before the question, by their names.
    delta : float
    with_matrix : bool
        Whether the curvature of the rows on the kink is wanted.
    most_numbers : float
        Of the rows on the kink of this partition that are wanted themselves.
    """

    problem: PrimalProblem
    operations: tuple[Operation, ...]
    delta: float = 0.0
    with_matrix: bool = False
    most_numbers: float = 0.0


class Evaluation(NamedTuple):
    """Sums over rows after a projection; `merge_evaluations` adds them up.

    D(α) after Σβ = 0 is restored follows from sums over the rows with |β| < u, by their sign.
    """

    sums: Floats  # as named below
    most: Floats  # the largest change of a score, and the largest score
    change: Floats  # Σ (change of β_i) (x_i, 1)
    below: Floats  # Σ β_i x_i of the rows with |β_i| < u_i, of both signs
    curvature: Floats | None
    # Rows on the kink of every partition, with their curvatures; None where they are too many.
    rows: list[Any] | None = None
    weights: list[Floats] | None = None


SLACK, LOSS, ERRORS, N_KINK, GAIN, SQUARES, POSITIVE, NEGATIVE = range(8)
# Of rows below their bound, of both signs: Σ|β|, Σ yβ − ε|β| and Σ Dβ².
BELOW, BELOW_GAIN, BELOW_SQUARES = slice(8, 10), slice(10, 12), slice(12, 14)
N_SUMS = 14


class LinearPart(PrimalState):
    """The state of one partition while a round works on it, with operations of its own."""

    @classmethod
    def resume(
        cls, block: Block | None, y: Floats, upper: Floats, ridge: Floats, state: PartState | None,
        problem: PrimalProblem,
    ) -> LinearPart:  # fmt: skip
        """Go on from a state, whose arrays are the caller's to copy before they change.

        The block is None where nothing is asked that needs the rows.
        """
        X = np.empty((y.size, 0)) if block is None else block.X
        part = cls(replace(problem, y=y, upper=upper, ridge=ridge), Features(X))
        if state is not None:
            part.scores, part.values, part.center = state.scores, state.beta, state.center
            if state.along is not None:
                part._change = state.along
        return part

    def own(self) -> None:
        """Copy the arrays of the state, which must not change, before they would."""
        self.scores, self.values = self.scores.copy(), self.values.copy()
        self._change = self._change.copy()

    def settle(self, delta: float) -> None:
        """Make β that of the scores, and add up nothing: it is known."""
        arrays = (self.scores, *self._targets(), self._center(), *self._bounds(), delta)
        self._sums(passes.project, 4, *arrays, self.values, self._scratch())

    def record(self, *, along: bool = False) -> PartState:
        """Return the arrays that the next round needs."""
        center = self._center()
        if center is self._old_center:  # of which the memory is used again
            center = center.copy()
        return PartState(self.scores, self.values, center, self._change if along else None)

    def evaluate(self, request: Request) -> Evaluation:
        """Make β that of the scores, and add up all that may be asked of it."""
        delta = request.delta
        found = self.project(delta)
        sums, below = self.measure()
        sums[SLACK], sums[LOSS], sums[ERRORS] = found.slack, found.loss, found.errors
        curvature = self.curvature(delta) if request.with_matrix else None
        most = np.array([found.moved, found.largest])
        out = Evaluation(sums, most, found.change, below, curvature)
        if sums[N_KINK] * self.features.stored_per_row > request.most_numbers:
            return out
        some = self.kink_rows(delta)
        return out._replace(rows=[some.features.X], weights=[some.weights])

    def measure(self) -> tuple[Floats, Floats]:
        """Find the rows on the kink, and add up what D(α) follows from."""
        sums = np.zeros(N_SUMS)
        sums[N_KINK] = self.kink().n_rows
        beta, upper = self.values, self.problem.upper
        totals = self._sums(passes.sign_totals, 4, beta, upper)
        sums[[POSITIVE, NEGATIVE]], sums[BELOW] = totals[:2], totals[2:]
        rows = self._sum.rows()
        below = np.zeros((2, self.features.n_columns))
        for k, sign in enumerate((1.0, -1.0)):
            mine = rows[beta[rows] * sign > 0.0]
            below[k] = self.features.view(mine).combine(beta[mine])
            sums[BELOW_GAIN][k], sums[BELOW_SQUARES][k] = self._gain(mine, totals[2 + k])
        sums[GAIN], sums[SQUARES] = self._gain(slice(None), totals[:2].sum())
        return sums, below

    def _gain(self, rows: Integers | slice, size: float) -> tuple[float, float]:
        """Return Σ yβ − ε|β| and Σ Dβ² of some rows with Σ|β| = ``size``."""
        beta, ridge, squares = self.values[rows], self.problem.ridge, 0.0
        if ridge.any():
            D = ridge if ridge.size == 1 else ridge[rows]
            squares = float((np.where(np.isfinite(D), D, 0.0) * beta) @ beta)
        if not self.problem.two_sided:  # yβ = |β|
            return size, squares
        return float(beta @ self.problem.y[rows]) - self.problem.epsilon * size, squares


def merge_evaluations(found: list[Evaluation]) -> Evaluation:
    """Add up the evaluations of some partitions."""
    matrices = [each.curvature for each in found if each.curvature is not None]
    curvature: Floats | None = np.sum(matrices, axis=0) if matrices else None
    return Evaluation(
        np.sum([e.sums for e in found], axis=0), np.max([e.most for e in found], axis=0),
        np.sum([e.change for e in found], axis=0), np.sum([e.below for e in found], axis=0),
        curvature, *_rows_of_all(found),
    )  # fmt: skip


def _rows_of_all(found: list[Evaluation]) -> tuple[list[Any] | None, list[Floats] | None]:
    rows, weights = [e.rows for e in found], [e.weights for e in found]
    if any(each is None for each in rows):
        return None, None
    return [a for b in rows for a in b or []], [a for b in weights for a in b or []]


def merge_aims(found: list[tuple[Floats, Evaluation]]) -> tuple[Floats, Evaluation]:
    """Add up the slopes and evaluations of some partitions."""
    slopes, evaluations = zip(*found, strict=True)
    return np.sum(slopes, axis=0), merge_evaluations(list(evaluations))


def added(found: list[Any]) -> Any:
    """Return the sum of numbers or arrays."""
    return np.sum(found, axis=0)


# Rounds -------------------------------------------------------------------------------------------


def begin(y: Floats) -> PartState:
    """Return the state at w = 0, b = 0 and α = 0."""
    return PartState(np.zeros(y.size), np.zeros(y.size), np.zeros(1))


def restart(
    block: Block, y: Floats, upper: Floats, ridge: Floats, state: PartState, alpha: Floats,
    request: Request,
) -> tuple[PartState, Floats]:  # fmt: skip
    """Make a given α, put into its bounds, α and its centre; return Σ β_i (x_i, 1)."""
    part = _resumed(block, y, upper, ridge, state, request, owned=True)
    part.start(alpha)
    return part.record(), part.total()


def measure(
    block: Block, y: Floats, upper: Floats, ridge: Floats, state: PartState, request: Request
) -> Evaluation:
    """Add up what D(α) follows from, of a β that need not be that of the scores."""
    part = _resumed(block, y, upper, ridge, state, request)
    sums, below = part.measure()
    return Evaluation(sums, np.zeros(2), np.zeros(1), below, None)


def evaluate(
    block: Block, y: Floats, upper: Floats, ridge: Floats, state: PartState, request: Request
) -> tuple[PartState, Evaluation]:
    """Make β that of the scores."""
    part = _resumed(block, y, upper, ridge, state, request, owned=True)
    found = part.evaluate(request)
    return part.record(), found


def aim(
    block: Block, y: Floats, upper: Floats, ridge: Floats, state: PartState, request: Request,
    step: Floats, points: list[float],
) -> tuple[PartState, tuple[Floats, Evaluation]]:  # fmt: skip
    """Return the slopes along a step, and what follows if it is taken as a whole."""
    part = _resumed(block, y, upper, ridge, state, request)
    part._change = np.empty(y.size)
    part.aim(step)
    slopes = np.array(part.slopes(points, request.delta))
    state = part.record(along=True)
    trial = LinearPart.resume(block, y, upper, ridge, state, request.problem)
    trial.own()
    trial.advance(1.0)
    return state, (slopes, trial.evaluate(request))


def slopes_again(
    y: Floats, upper: Floats, ridge: Floats, state: PartState, request: Request,
    points: list[float],
) -> Floats:  # fmt: skip
    """Return slopes at other points of the same step."""
    part = LinearPart.resume(None, y, upper, ridge, state, request.problem)
    return np.array(part.slopes(points, request.delta))


def loss(
    block: Block | None, y: Floats, upper: Floats, ridge: Floats, state: PartState, request: Request
) -> tuple[PartState, float]:
    """Return the loss of the scores."""
    part = _resumed(block, y, upper, ridge, state, request)
    return part.record(), part.loss()


def beta_of(
    block: Block | None, y: Floats, upper: Floats, ridge: Floats, state: PartState,
    request: Request, heavier: float, factor: float, below: bool,
) -> Floats:  # fmt: skip
    """Return β, that of the heavier sign multiplied by a factor."""
    part = _resumed(block, y, upper, ridge, state, request)
    beta = part.values
    mine = beta * heavier > 0.0
    if below:
        mine &= np.abs(beta) < upper
    out: Floats = np.where(mine, factor * beta, beta)
    return out if request.problem.two_sided else np.abs(out)


def dual_sums(
    block: Block, y: Floats, alpha: Floats, upper: Floats, ridge: Floats, problem: PrimalProblem
) -> Floats:
    """Return Σ yβ − ε|β|, Σ Dβ², Σβ and Σ βx."""
    part = LinearPart(replace(problem, y=y, upper=upper, ridge=ridge), Features(block.X))
    part.values = alpha if problem.two_sided else alpha * y
    gain, squares = part._gain(slice(None), float(np.abs(part.values).sum()))
    return np.append([gain, squares, part.values.sum()], part.features.combine(part.values))


def kink_product(
    block: Block, y: Floats, upper: Floats, ridge: Floats, state: PartState, request: Request,
    p: Floats | None,
) -> Floats:  # fmt: skip
    """Return Σ c_i (x_i, 1)(x_i, 1)·p over the rows on the kink, or Σ c_i (x_i∘x_i, 1)."""
    part = _resumed(block, y, upper, ridge, state, request)
    part.kink()
    rows = part.kink_rows(request.delta)
    return rows.squares() if p is None else rows.product(p)


def kink_rows(
    block: Block, y: Floats, upper: Floats, ridge: Floats, state: PartState, request: Request
) -> tuple[list[Any], list[Floats]]:
    """Return the rows on the kink, and their curvatures."""
    part = _resumed(block, y, upper, ridge, state, request)
    part.kink()
    rows = part.kink_rows(request.delta)
    return [rows.features.X], [rows.weights]


class Sample(NamedTuple):
    """Some rows of every partition, with their labels and costs, and the costs of all rows."""

    X: list[Any]
    y: list[Floats]
    upper: list[Floats]
    ridge: list[Floats]
    class_costs: Floats

    @classmethod
    def merged(cls, found: list[Sample]) -> Sample:
        """Put the rows of several partitions one after the other."""
        *lists, costs = zip(*found, strict=True)
        X, y, upper, ridge = ([each for some in parts for each in some] for parts in lists)
        return cls(X, y, upper, ridge, np.sum(costs, axis=0))


def sampled(
    block: Block, y: Floats, upper: Floats, ridge: Floats, some: Integers | slice,
    problem: PrimalProblem, are_vectors: list[bool],
) -> Sample:  # fmt: skip
    """Return some rows, with their labels and costs, and the costs of both classes.

    ``are_vectors`` says of u and of D whether they have one number per row.
    """
    costs = replace(problem, y=y, upper=upper, ridge=ridge).class_costs()
    pairs = zip((upper, ridge), are_vectors, strict=True)
    upper, ridge = (v[some] if is_vector else v for v, is_vector in pairs)
    return Sample([block.X[some].copy()], [y[some].copy()], [upper], [ridge], np.array(costs))


def joined(found: list[tuple[list[Any], ...]]) -> tuple[list[Any], ...]:
    """Put lists of several partitions one after the other."""
    return tuple([each for some in lists for each in some] for lists in zip(*found, strict=True))


def breaks_in_bins(
    block: Block | None, y: Floats, upper: Floats, ridge: Floats, state: PartState,
    request: Request, edges: Floats,
) -> Floats:  # fmt: skip
    """Return how many breaks of the loss as a function of the bias each bin has, and their costs.

    The first and the last bin are what is below and above all edges.
    """
    t, costs = _breaks(_resumed(block, y, upper, ridge, state, request))
    bins = np.searchsorted(edges, t)
    size = edges.size + 1
    return np.array(
        [np.bincount(bins, minlength=size), np.bincount(bins, weights=costs, minlength=size)]
    )


class Breaks(NamedTuple):
    """Breaks of the loss as a function of the bias, their costs, and the costs of those below."""

    t: list[Floats]
    costs: list[Floats]
    below: float

    @classmethod
    def merged(cls, found: list[Breaks]) -> Breaks:
        """Put the breaks of several partitions one after the other."""
        t, costs, below = zip(*found, strict=True)
        return cls([a for b in t for a in b], [a for b in costs for a in b], sum(below))


def breaks_between(
    block: Block | None, y: Floats, upper: Floats, ridge: Floats, state: PartState,
    request: Request, low: float, high: float, most: int,
) -> Breaks:  # fmt: skip
    """Return the breaks low < t ≤ high, ``most`` of them at most, and their costs."""
    t, costs = _breaks(_resumed(block, y, upper, ridge, state, request))
    inside = np.flatnonzero((t > low) & (t <= high))[:most]
    return Breaks([t[inside]], [costs[inside]], float(costs @ (t <= low)))


def _breaks(part: LinearPart) -> tuple[Floats, Floats]:
    """Return the changes of the bias at which the slope of a row's loss jumps, and by how much."""
    t = part.problem.y - part.scores
    costs = np.broadcast_to(part.problem.upper, t.shape)
    if not part.problem.two_sided:
        return t, costs
    epsilon = part.problem.epsilon
    return np.concatenate([t - epsilon, t + epsilon]), np.tile(costs, 2)


def _resumed(
    block: Block | None, y: Floats, upper: Floats, ridge: Floats, state: PartState,
    request: Request, *, owned: bool = False,
) -> LinearPart:  # fmt: skip
    """Go on from a state, with the operations that were decided since."""
    part = LinearPart.resume(block, y, upper, ridge, state, request.problem)
    if owned or request.operations:
        part.own()
    for name, *arguments in request.operations:
        getattr(part, name)(*arguments)
    return part
