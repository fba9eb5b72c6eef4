"""The state of a linear machine in partitions.

`engines.linear.PrimalState` says what each operation means. Operations that the client need not
wait for are put off to the next round, and what a round may be asked next it answers at once: a
whole step of Newton's method, with the sums for the step after it, takes one round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Floats, Integers
from ...problems import PrimalProblem
from ..cpu.features import Features
from ..cpu.primal_state import PrimalState, WeightedRows
from ..linear import ColumnSystem, Held, Kink, Projection
from . import linear_part as rounds
from .best_bias import flat_biases
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
from .weighted_rows import DaskWeightedRows

if TYPE_CHECKING:
    from .cluster import Handle
    from .features import DaskFeatures


@dataclass(frozen=True)
class Tuning:
    """Sizes."""

    kink_numbers: int = 1 << 23  # of rows on the kink that may come to the client


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
        self._measures: Evaluation | None = None  # of β now, where that is not of the scores
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
        self.plane: Floats | None = None  # (w, b) of the scores, of which operations may be due

    # The plane and α -----------------------------------------------------------------------

    def place(self, w: Floats, b: float) -> None:
        """Compute the scores of a plane, in the next round."""
        plane = np.append(w, b)
        if self.plane is None or not np.array_equal(plane, self.plane):
            self._put_off("place", w, b)
            self.plane = plane
            self._loss = None if w.any() else self._loss_without_plane(b)

    def shift(self, t: float) -> None:
        """Add t to the bias, and to all scores, in the next round."""
        if t:
            self._put_off("shift", t)
            assert self.plane is not None
            self.plane = np.append(self.plane[:-1], self.plane[-1] + t)

    def start(self, alpha: Any) -> None:
        """Begin with α from the host or in partitions, put into its bounds."""
        alphas = self.features.rows.column(alpha)
        self._total = self._round(rounds.restart, rounds.added, 0.0, own=[alphas])
        self._found = self._measures = None

    def sample(self, rows: int | Integers, times: float) -> PrimalState | None:
        """Return the state of some rows in the memory of this process."""
        if isinstance(rows, np.ndarray):
            X, problem = self._fetched(self.features.rows.places_in(rows))[:2]
        else:
            X, problem = self._every(rows)
            times = self.features.n_rows / problem.y.size
        y = problem.y
        if not problem.two_sided and abs(float(y.sum())) == y.size:
            return None
        part = replace(problem, upper=problem.upper * times, ridge=problem.ridge / times)
        return PrimalState(part, Features(X))

    def _every(self, size: int) -> tuple[Any, PrimalProblem]:
        """Return about so many rows of the sample, evenly spaced."""
        X, problem = self.sampled
        some = slice(None, None, max(1, problem.y.size // size))
        upper, ridge = (v if v.size == 1 else v[some] for v in (problem.upper, problem.ridge))
        return X[some], replace(problem, y=problem.y[some], upper=upper, ridge=ridge)

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
        assert self.plane is not None
        plane = self.plane + t * self._step
        self._put_off("advance", t)
        self.plane = plane
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
        assert self.sampled is not None  # which comes with them
        return self._costs_of_both

    def best_biases(self, b: float) -> tuple[float, float]:
        """Return the least and the largest t for which b + t is the best bias."""
        return flat_biases(self)

    def dual(self, total: Floats | None = None, *, of_scores: bool = False) -> float:
        """Return D(α), after Σβ = 0 is restored where the bias is free."""
        found = self._evaluation()
        sums, below = found.sums, found.below
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

    def _evaluation(self) -> Evaluation:
        """Return the sums of β now, which is that of the scores or one from before."""
        if self._found is not None:
            return self._found
        if self._measures is None:
            self._measures = self.ask(rounds.measure, rounds.merge_evaluations, 0.0)
        return self._measures

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
        reads: bool = True, own: Sequence[Any] = (),
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
            work, merge, self._blocks(reads), *self._terms, states, *own,
            common=(request, *common), reads=reads, spent=states,
        )  # fmt: skip
        self._operations, self._is_recentred = (), False
        return found

    def ask(self, work: Any, merge: Any, delta: float, *common: Any, reads: bool = True) -> Any:
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
        self._found, self._measures, self._delta = found, None, delta
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
        sums = self._evaluation().sums
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
    def sampled(self) -> tuple[Any, PrimalProblem]:
        """Every k-th row, with its label and costs, in the memory of this process."""
        rows = self.features.rows
        step = max(1, -(-self.features.n_rows // self.features.most_sampled))
        X, problem, costs = self._fetched(
            [slice(int(-start % step), None, step) for start in rows.first_rows]
        )
        self._costs_of_both = float(costs[0]), float(costs[1])
        rows.remember(X)
        return X, problem

    def _fetched(
        self, places: Sequence[Integers | slice]
    ) -> tuple[Any, PrimalProblem, Floats]:  # fmt: skip
        """Return some rows of each partition with their problem, and the costs of both classes."""
        rows = self.features.rows
        are_vectors = [v.size > 1 for v in (self.problem.upper, self.problem.ridge)]
        found: rounds.Sample = rows.cluster.round(
            rounds.sampled, rounds.Sample.merged, rows.blocks, *self._terms, places,
            common=(self._posed, are_vectors),
        )  # fmt: skip
        upper, ridge = (
            np.concatenate(of_rows) if is_vector else of_rows[0]
            for of_rows, is_vector in zip((found.upper, found.ridge), are_vectors, strict=True)
        )
        problem = replace(self._posed, y=np.concatenate(found.y), upper=upper, ridge=ridge)
        return stacked(found.X), problem, found.class_costs


@dataclass(frozen=True)
class _Kept:
    """States of all partitions, and how Σβ = 0 is restored from them."""

    states: list[Any]
    operations: tuple[Operation, ...]
    heavier: float = 0.0
    factor: float = 1.0
    below: bool = False


def _read_rows(operations: tuple[Operation, ...]) -> bool:
    """Return whether operations need the rows: the scores of a plane that has a normal do."""
    return any(name == "place" and arguments[0].any() for name, *arguments in operations)


def _zeros(y: Floats) -> Floats:
    return np.zeros(y.size)
