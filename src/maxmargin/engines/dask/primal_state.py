"""The state of a linear machine in partitions.

`engines.linear.PrimalState` says what each operation means. Operations that the client need not
wait for are put off to the next round, and what a round may be asked next it answers at once: a
whole step of Newton's method, with the sums for the step after it, takes one round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Floats
from ...problems import PrimalProblem
from ...problems.best_bias import flat_part
from ..cpu.features import Features
from ..cpu.primal_state import PrimalState, WeightedRows
from ..linear import ColumnSystem, Held, Kink, Projection
from . import linear_part as rounds
from .linear_part import (
    BELOW,
    BELOW_GAIN,
    BELOW_SQUARES,
    ERRORS,
    GAIN,
    LOSS,
    N_KINK,
    NEGATIVE,
    POSITIVE,
    SLACK,
    SQUARES,
    Evaluation,
    Operation,
    Request,
)
from .rows import stacked
from .vector import DaskVector

if TYPE_CHECKING:
    from .cluster import Handle
    from .features import DaskFeatures


@dataclass(frozen=True)
class Tuning:
    """Sizes."""

    kink_numbers: int = 1 << 23  # of rows on the kink that may come to the client
    bins: int = 2048  # of the breaks of the loss as a function of the bias
    most_breaks: int = 20_000  # that may come to the client
    nearest_break: float = 1e-12  # the edges of bins nearest to 0, and farthest from it
    farthest_break: float = 1e6
    most_refinements: int = 6


TUNING = Tuning()


class DaskPrimalState:
    """Scores, β and β⁰ of the rows of X, in partitions.

    Parameters
    ----------
    problem : PrimalProblem
        y is a `DaskVector`; u and D may be.
    features : DaskFeatures
        The rows.
    """

    def __init__(self, problem: PrimalProblem, features: DaskFeatures) -> None:
        self.problem, self.features = problem, features
        rows = features.rows
        self._terms = [rows.column(v) for v in (problem.y, problem.upper, problem.ridge)]
        # The problem without its vectors, as it is sent.
        one = np.ones(1)
        self._posed = replace(problem, X=None, y=one, upper=one, ridge=one)
        self._states: list[Handle] = rows.cluster.start(rounds.begin, self._terms[0])
        self._operations: tuple[Operation, ...] = ()
        self._total = np.zeros(features.n_columns + 1)
        self._found: Evaluation | None = None  # of the scores now, once projected
        self._delta = np.nan  # of that projection
        self._is_recentred = False  # since then
        self._loss: float | None = None
        # A step: its vector, slopes that are known, and the evaluation where it is taken whole.
        self._step: Floats | None = None
        self._is_aimed = False
        self._slopes: dict[float, float] = {}
        self._trial: Evaluation | None = None
        # Points of the last search that went on after a whole step: often so does the next.
        self._guess: list[float] = []
        self._measured: _Kept | None = None
        self._kept: _Kept | None = None
        self._alpha: DaskVector | None = None  # that was kept, of states that are gone
        self._plane: Floats | None = None  # (w, b) of the scores, of which operations may be due

    # The plane and α -----------------------------------------------------------------------

    def place(self, w: Floats, b: float) -> None:
        """Compute the scores of a plane, in the next round."""
        plane = np.append(w, b)
        if self._plane is None or not np.array_equal(plane, self._plane):
            self._put_off("place", w, b)
            self._plane = plane
            self._loss = None if w.any() else self._loss_without_plane(b)

    def shift(self, t: float) -> None:
        """Add t to the bias, and to all scores, in the next round."""
        if t:
            self._put_off("shift", t)
            assert self._plane is not None
            self._plane = np.append(self._plane[:-1], self._plane[-1] + t)

    def start(self, alpha: Any) -> None:
        """Begin with w and b alone: α is that of the scores after the first projection."""

    def sample(self, rows: int, times: float) -> PrimalState | None:
        """Return the state of some rows in the memory of this process."""
        X, problem = self._sampled
        step = max(1, problem.y.size // rows)
        some = slice(None, None, step)
        y = problem.y[some]
        if not problem.two_sided and abs(float(y.sum())) == y.size:
            return None
        times = self.features.n_rows / y.size
        upper, ridge = (v if v.size == 1 else v[some] for v in (problem.upper, problem.ridge))
        part = replace(problem, y=y, upper=upper * times, ridge=ridge / times)
        return PrimalState(part, Features(X[some]))

    def total(self) -> Floats:
        """Return Σ β_i (x_i, 1)."""
        return self._total.copy()

    def recentre(self) -> None:
        """Make β⁰ the β now, in the next round."""
        self._operations += (("recentre",),)
        self._is_recentred = True

    # Newton's method -----------------------------------------------------------------------

    def project(self, delta: float) -> Projection:
        """Make β that of the scores."""
        if self._found is None or delta != self._delta or self._is_recentred:
            found = self._round(rounds.evaluate, rounds.merge_evaluations, delta)
            self._adopt(found, delta)
        found = self._found
        assert found is not None
        moved, largest = (float(each) for each in found.most)
        return Projection(
            float(found.sums[SLACK]), float(found.sums[LOSS]), int(found.sums[ERRORS]),
            found.change, moved, largest,
        )  # fmt: skip

    def aim(self, step: Floats) -> None:
        """Keep a step; its scores are computed with the first slopes along it."""
        self._step, self._is_aimed, self._slopes, self._trial = step, False, {}, None

    def slopes(self, points: list[float], delta: float) -> list[float]:
        """Return Σ β_i (x_i, 1)·step after t steps, for several t."""
        assert self._step is not None
        wanted = [t for t in points if t not in self._slopes]
        if not self._is_aimed:
            wanted = [t for t in {*wanted, *self._guess} if t != 1.0]
            found, self._trial = self._round(
                rounds.aim, rounds.merge_aims, delta, self._step, wanted
            )
            self._is_aimed, self._delta = True, delta
            self._slopes[1.0] = float((self._total + self._trial.change) @ self._step)
        elif wanted:
            self._guess = wanted
            found = self.features.rows.cluster.round(
                rounds.slopes_again, rounds.added, *self._terms, self._states,
                common=(self._request(delta), wanted), reads=False,
            )  # fmt: skip
        if wanted:
            self._slopes.update(zip(wanted, found.tolist(), strict=True))
        return [self._slopes[t] for t in points]

    def advance(self, t: float) -> None:
        """Go t steps; of a whole step the evaluation is known."""
        trial, delta = self._trial, self._delta
        assert self._step is not None
        assert self._plane is not None
        plane = self._plane + t * self._step
        self._put_off("advance", t)
        self._plane = plane
        if t == 1.0:
            self._guess = []
        if t == 1.0 and trial is not None:
            self._operations += (("settle", delta),)
            self._adopt(trial, delta)
        self._step, self._is_aimed, self._trial = None, False, None

    def reach(self, share: float, delta: float) -> float:
        """Rows are never held."""
        raise NotImplementedError("all rows of a cluster take part in every step")

    def hold(self, share: float, delta: float) -> Held:
        """Rows are never held."""
        raise NotImplementedError("all rows of a cluster take part in every step")

    def take_back(self) -> None:
        """Rows are never held."""

    def kink(self) -> Kink:
        """Return how many rows are on the kink after the last projection."""
        assert self._found is not None
        n = int(self._found.sums[N_KINK])
        return Kink(n, n)

    def curvature(self, delta: float) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over the rows on the kink."""
        found = self._found
        if found is None or found.curvature is None or delta != self._delta:
            found = self._round(rounds.evaluate, rounds.merge_evaluations, delta, matrix=True)
            self._adopt(found, delta)
        assert found is not None
        assert found.curvature is not None
        return found.curvature.copy()

    def solve_columns(self, delta: float, system: ColumnSystem, gradient: Floats) -> None:
        """Leave the system to the caller."""

    def kink_rows(self, delta: float) -> Any:
        """Return the rows on the kink with their c_i: here where they are few."""
        found = self._found
        assert found is not None
        if found.rows is None or found.weights is None:
            return DaskWeightedRows(self, delta, self.kink().n_rows)
        return WeightedRows(Features(stacked(found.rows)), np.concatenate(found.weights))

    # Values --------------------------------------------------------------------------------

    def loss(self) -> float:
        """Return Σ h_i(z_i)."""
        if self._found is not None:
            return float(self._found.sums[LOSS])
        if self._loss is None:
            self._loss = float(self._round(rounds.loss, rounds.added, 0.0, reads=False))
        return self._loss

    def _loss_without_plane(self, b: float) -> float | None:
        """Return the loss where all scores are b: known of labels from the costs of the classes."""
        if self.problem.two_sided:
            return None
        slacks = np.maximum([1.0 - b, 1.0 + b], 0.0)
        losses = 0.5 * slacks * slacks if self.problem.curved else slacks
        return float(losses @ self.class_costs())

    def class_costs(self) -> tuple[float, float]:
        """Return Σ u, or Σ 1/D where u = ∞, of the classes +1 and −1; targets count in both."""
        assert self._sampled is not None  # which comes with them
        return self._costs_of_both

    def best_biases(self, b: float) -> tuple[float, float]:
        """Return the least and the largest t for which b + t is the best bias, of a loss of lines.

        Breaks of the loss near 0 come to the client: about as near as the sample says.
        """
        positive, negative = self.class_costs()
        before, rounding = -positive, 1e-12 * (positive + negative)
        high = self._nearby()
        low = -high
        for _ in range(TUNING.most_refinements):
            found = self._breaks(low, high)
            t, costs = np.concatenate(found.t), np.concatenate(found.costs)
            left, right = before + found.below, before + found.below + float(costs.sum())
            if left < -rounding and right > rounding and t.size <= TUNING.most_breaks:
                return flat_part(t, costs, left, rounding)
            low, high = self._bracket(before, rounding)
        return 0.5 * (low + high), 0.5 * (low + high)

    def _breaks(self, low: float, high: float) -> rounds.Breaks:
        """Return the breaks between two changes of the bias."""
        found: rounds.Breaks = self._ask(
            rounds.breaks_between, rounds.Breaks.merged, 0.0, low, high, TUNING.most_breaks + 1,
            reads=False,
        )  # fmt: skip
        return found

    def _nearby(self) -> float:
        """Return how near to 0 about as many breaks are as may come to the client."""
        assert self._plane is not None
        X, problem = self._sampled
        scores = Features(X).scores(self._plane[:-1], float(self._plane[-1]))
        share = min(1.0, 0.25 * TUNING.most_breaks / self.features.n_rows)
        away = np.abs(problem.y - scores)
        if problem.two_sided:
            away = np.abs(away - problem.epsilon)
        return float(np.quantile(away, share)) * 2.0 or 1.0

    def _bracket(self, before: float, rounding: float) -> tuple[float, float]:
        """Return an interval with few breaks in which the slope of the loss changes its sign."""
        edges = _first_edges()
        while True:
            counts, costs = self._ask(rounds.breaks_in_bins, rounds.added, 0.0, edges, reads=False)
            slopes = before + np.cumsum(costs)
            last = min(int(np.searchsorted(slopes, rounding, side="right")), slopes.size - 1)
            first = min(int(np.searchsorted(slopes, -rounding)), last)
            low, high = np.append(-np.inf, edges)[first], np.append(edges, np.inf)[last]
            few = counts[first : last + 1].sum() <= TUNING.most_breaks
            narrow = not high - low > 1e-14 * max(abs(low), abs(high))
            if few or narrow or first < last or not np.isfinite(high - low):
                return float(low), float(high)
            edges = np.linspace(low, high, TUNING.bins)

    def dual(self, total: Floats | None = None, *, of_scores: bool = False) -> float:
        """Return D(α), after Σβ = 0 is restored where the bias is free."""
        if self._found is None:
            return -np.inf
        sums, below = self._found.sums, self._found.below
        gain, squares, w = sums[GAIN], sums[SQUARES], self._total[:-1]
        kept = _Kept(self._states, self._operations)
        if self.problem.bias == "free":
            excess = float(sums[POSITIVE] - sums[NEGATIVE])
            k = 0 if excess > 0.0 else 1
            if excess and sums[BELOW][k] < abs(excess):
                return self._dual_of_all(kept, 1.0 - 2.0 * k, excess)
            if excess:
                factor = 1.0 - abs(excess) / float(sums[BELOW][k])
                kept = _Kept(self._states, self._operations, 1.0 - 2.0 * k, factor, True)
                gain = gain + (factor - 1.0) * sums[BELOW_GAIN][k]
                squares = squares + (factor * factor - 1.0) * sums[BELOW_SQUARES][k]
                w = w + (factor - 1.0) * below[k]
        self._measured = kept
        value = float(gain) - 0.5 * float(w @ w) - 0.5 * float(squares)
        if self.problem.bias == "penalised":
            value -= 0.5 * float(self._total[-1]) ** 2
        return value

    def keep(self) -> None:
        """Remember the α that `dual` measured last."""
        self._kept = self._measured

    def alpha(self, *, kept: bool = False) -> DaskVector:
        """Return α, which stays where the rows are."""
        if not kept:
            self.dual()
        if kept and self._kept is None and self._alpha is not None:
            return self._alpha
        return self._restored(self._kept if kept else self._measured)

    # How it is done ------------------------------------------------------------------------

    def _put_off(self, name: str, *arguments: Any) -> None:
        """Do something to the scores in the next round: what is known of them is no longer."""
        self._operations += ((name, *arguments),)
        self._found = self._loss = None

    def _request(self, delta: float, matrix: bool | None = None) -> Request:
        if matrix is None:
            matrix = self.features.has_curvature
        numbers = 0.0 if matrix else TUNING.kink_numbers / len(self.features.rows.blocks)
        return Request(self._posed, self._operations, delta, matrix, numbers)

    def _round(
        self, work: Any, merge: Any, delta: float, *common: Any, matrix: bool | None = None,
        reads: bool = True,
    ) -> Any:  # fmt: skip
        """Ask all partitions, which go on to their next states.

        Those before are released one by one, so that the workers hold them once and not twice.
        """
        cluster, request = self.features.rows.cluster, self._request(delta, matrix)
        reads, states = reads or _read_rows(self._operations), self._states
        if self._kept is not None:
            self._alpha, self._kept = self._restored(self._kept), None
        self._measured = None
        self._states, found = cluster.step(
            work, merge, self._blocks(reads), *self._terms, states, common=(request, *common),
            reads=reads, spent=states,
        )  # fmt: skip
        self._operations, self._is_recentred = (), False
        return found

    def _ask(self, work: Any, merge: Any, delta: float, *common: Any, reads: bool = True) -> Any:
        """Ask all partitions, whose states stay as they are."""
        cluster, request = self.features.rows.cluster, self._request(delta)
        reads = reads or _read_rows(self._operations)
        return cluster.round(
            work, merge, self._blocks(reads), *self._terms, self._states,
            common=(request, *common), reads=reads,
        )  # fmt: skip

    def _blocks(self, reads: bool) -> list[Handle | None]:
        """Return the partitions, or nothing of each where no row of it is needed."""
        blocks = self.features.rows.blocks
        return list(blocks) if reads else [None] * len(blocks)

    def _adopt(self, found: Evaluation, delta: float) -> None:
        """Take in an evaluation."""
        self._found, self._delta = found, delta
        self._total = self._total + found.change

    def _restored(self, which: _Kept | None) -> DaskVector:
        """Return α of some states with Σβ = 0; 0 where there are none."""
        rows = self.features.rows
        if which is None:
            return DaskVector(rows.cluster, rows.cluster.start(_zeros, self._terms[0]), rows.sizes)
        request = Request(self._posed, which.operations)
        parts = rows.cluster.start(
            rounds.beta_of, self._blocks(_read_rows(which.operations)), *self._terms, which.states,
            common=(request, which.heavier, which.factor, which.below),
        )  # fmt: skip
        return DaskVector(rows.cluster, parts, rows.sizes)

    def _dual_of_all(self, kept: _Kept, heavier: float, excess: float) -> float:
        """Return D(α) where all β of the heavier sign are made smaller."""
        assert self._found is not None
        sums = self._found.sums
        total = float(sums[POSITIVE] if heavier > 0.0 else sums[NEGATIVE])
        self._measured = replace(
            kept, heavier=heavier, factor=1.0 - abs(excess) / total, below=False
        )
        rows = self.features.rows
        alpha = self._restored(self._measured)
        found = rows.cluster.round(
            rounds.dual_sums, rounds.added, rows.blocks, self._terms[0], alpha.parts,
            *self._terms[1:], common=(self._posed,),
        )  # fmt: skip
        gain, squares, w = float(found[0]), float(found[1]), found[3:]
        return gain - 0.5 * float(w @ w) - 0.5 * squares

    @cached_property
    def _sampled(self) -> tuple[Any, PrimalProblem]:
        """Every k-th row, with its label and costs, in the memory of this process."""
        rows = self.features.rows
        step = max(1, -(-self.features.n_rows // self.features.most_sampled))
        starts = np.cumsum([0, *rows.sizes[:-1]])
        firsts = [int(-start % step) for start in starts]
        found: rounds.Sample = rows.cluster.round(
            rounds.sampled, rounds.Sample.merged, rows.blocks, *self._terms, firsts,
            common=(step, self._posed),
        )  # fmt: skip
        self._costs_of_both = float(found.class_costs[0]), float(found.class_costs[1])
        X = stacked(found.X)
        rows.remember(X)
        upper, ridge = (
            of_rows[0] if vector.size == 1 else np.concatenate(of_rows)
            for of_rows, vector in (
                (found.upper, self.problem.upper), (found.ridge, self.problem.ridge),
            )
        )  # fmt: skip
        return X, replace(self._posed, y=np.concatenate(found.y), upper=upper, ridge=ridge)


@dataclass(frozen=True)
class _Kept:
    """States of all partitions, and how Σβ = 0 is restored from them."""

    states: list[Any]
    operations: tuple[Operation, ...]
    heavier: float = 0.0
    factor: float = 1.0
    below: bool = False


class DaskWeightedRows:
    """The rows on the kink where they are: every product is a round."""

    def __init__(self, state: DaskPrimalState, delta: float, n_rows: int) -> None:
        self._state, self._delta, self.n_rows = state, delta, n_rows

    def squares(self) -> Floats:
        """Return Σ c_i (x_i∘x_i, 1)."""
        found: Floats = self._state._ask(rounds.kink_product, rounds.added, self._delta, None)
        return found

    def product(self, p: Floats) -> Floats:
        """Return Σ c_i (x_i, 1) (x_i, 1)·p."""
        found: Floats = self._state._ask(rounds.kink_product, rounds.added, self._delta, p)
        return found


def _first_edges() -> Floats:
    """Return edges of bins that are narrow about 0."""
    sizes = np.geomspace(TUNING.nearest_break, TUNING.farthest_break, TUNING.bins // 2)
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def _read_rows(operations: tuple[Operation, ...]) -> bool:
    """Return whether operations need the rows: the scores of a plane that has a normal do."""
    return any(name == "place" and arguments[0].any() for name, *arguments in operations)


def _zeros(y: Floats) -> Floats:
    return np.zeros(y.size)
