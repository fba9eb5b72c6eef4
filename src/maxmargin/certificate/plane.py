"""How far a linear support vector machine is from its optimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from ..blocks import RowBlocks
from ..problem import LinearMarginProblem
from ..samples import Floats, blocks_of, row_block, row_length
from ..solution import Solution
from ..threads import in_parallel
from .base import certify
from .margin import ROUNDING, MarginCertificate

# Numbers of X that are looked at between two chances to stop.
PART = 1 << 22


@dataclass(frozen=True)
class PlaneCertificate(MarginCertificate):
    """How far a plane is from the optimum of a linear support vector machine.

    P is that of the plane itself, D that of α: every number of both is recomputed.
    """

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the relative duality gap is at most ``tol``, and α feasible to ``tol``."""
        return max(abs(self.relative_gap), self.balance, self.box) <= tol


class _Sums(NamedTuple):
    """What a pass over some rows adds up to."""

    loss: float
    w: Floats
    least_margin: float
    least_slope: float
    largest_slope: float


@certify.register
def _(
    problem: LinearMarginProblem, solution: Solution, *, sample: int | None = None
) -> PlaneCertificate:
    assert solution.alpha is not None
    w, b = solution.w[0], float(solution.b[0])
    alpha = np.clip(solution.alpha, 0.0, problem.box)
    outside = max(float((solution.alpha - alpha).max()), float((alpha - solution.alpha).max()))
    box = outside / max(1.0, float(alpha.max()))
    if problem.bias == "none":
        box = max(box, abs(b))  # a bias that there must not be
    total = [float(np.sum(alpha, where=problem.y == sign)) for sign in (1.0, -1.0)]
    balance, factors = 0.0, np.ones(2)
    if problem.bias == "free":
        balance = abs(total[0] - total[1]) / max(1.0, sum(total))
        # The heavier class is shrunk until yᵀα = 0: α stays in its box.
        factors = np.array([min(total) / of_class if of_class else 0.0 for of_class in total])
    signed: Floats = np.where(problem.y > 0, factors[0], -factors[1]) * alpha
    passes = list(_passes(problem, w, b, alpha, signed))
    np.abs(signed, out=alpha)
    from_alpha = np.sum([each.w for each in passes], axis=0)
    square = float(w @ w) + (b * b if problem.bias == "penalised" else 0.0)
    primal = 0.5 * square + sum(each.loss for each in passes)
    if problem.hard:
        # P of the plane scaled up until every y g(x) ≥ 1.
        least = min(each.least_margin for each in passes)
        primal = 0.5 * square / min(least, 1.0) ** 2 if least > 0.0 else np.inf
    dual = float(alpha.sum()) - 0.5 * float(from_alpha @ from_alpha)
    if problem.bias == "penalised":
        dual -= 0.5 * float(problem.y @ alpha) ** 2
    if problem.ridge.any():
        ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
        dual -= 0.5 * float(np.sum(ridge * alpha**2))
    gap = primal - dual
    violation = max(
        1.0 - min(each.least_slope for each in passes),
        max(each.largest_slope for each in passes) - 1.0,
        0.0,
    )
    relative = gap / max(abs(primal), np.finfo(float).tiny) if np.isfinite(primal) else np.inf
    return PlaneCertificate(
        primal, dual, gap, relative, violation, balance, box, n_checked=len(problem.y)
    )


def _passes(
    problem: LinearMarginProblem, w: Floats, b: float, alpha: Floats, signed: Floats
) -> Iterator[_Sums]:
    """Yield the sums over all rows, part by part, on all cores."""
    start = 0
    for X in problem.X if isinstance(problem.X, RowBlocks) else (problem.X,):
        step = max(64, PART // row_length(X))
        parts = [slice(k, min(k + step, X.shape[0])) for k in range(0, X.shape[0], step)]

        def part(rows: slice, stop: Event, X: Any = X, start: int = start) -> _Sums | None:
            return None if stop.is_set() else _part(problem, w, b, alpha, signed, X, rows, start)

        yield from (each for each in in_parallel(part, parts) if each is not None)
        start += X.shape[0]


def _part(
    problem: LinearMarginProblem,
    w: Floats,
    b: float,
    alpha: Floats,
    signed: Floats,
    X: Any,
    rows: slice,
    start: int,
) -> _Sums:
    """Return the sums over some rows of a block that begins at row ``start``."""
    upper, ridge = problem.upper, problem.ridge
    largest = float(alpha.max())
    loss, total = 0.0, np.zeros(w.size)
    margin, least, most = np.inf, np.inf, -np.inf
    for block in blocks_of(rows.stop - rows.start, row_length(X)):
        here = slice(rows.start + block.start, rows.start + block.stop)
        everywhere = slice(start + here.start, start + here.stop)
        x, y, a = row_block(X, here), problem.y[everywhere], alpha[everywhere]
        u = upper if upper.size == 1 else upper[everywhere]
        D = ridge if ridge.size == 1 else ridge[everywhere]
        total += x.T @ signed[everywhere]
        margins = y * (x @ w + b)
        loss += _loss(np.maximum(1.0 - margins, 0.0), u, D)
        counts = (u > 0.0) & np.isfinite(D)
        slope = margins + np.where(np.isfinite(D), D, 0.0) * a
        margin = min(margin, float(margins[np.broadcast_to(counts, y.shape)].min(initial=np.inf)))
        # At its bound is what rounding cannot tell from it.
        below = counts & (a < (1.0 - ROUNDING) * u)
        above = counts & (a > ROUNDING * np.minimum(u, largest))
        least = min(least, float(slope[below].min(initial=np.inf)))
        most = max(most, float(slope[above].max(initial=-np.inf)))
    return _Sums(loss, total, margin, least, most)


def _loss(slack: Floats, upper: Floats, ridge: Floats) -> float:
    """Return Σ h(z) for z ≥ 0; 0 for the hard margin, which allows none."""
    if np.isinf(upper).all():
        with np.errstate(divide="ignore"):
            return float(np.sum(np.where(ridge > 0.0, 0.5 / ridge, 0.0) * slack**2))
    if np.isinf(upper).any():  # a hard margin, but for samples that do not count
        return 0.0
    return float(np.sum(upper * slack))
