"""How far a linear support vector machine is from its optimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..arrays import Floats, blocks_of, container, row_block, row_length
from ..problems import PrimalProblem
from ..runtime.threads import in_parallel
from ..solution import Solution
from .base import certify
from .centring import Origin, frobenius, score_error, sum_error
from .compensated import compensated_dot
from .dual import MarginCertificate
from .dual_tasks import ROUNDING
from .scores import UNIT

# Numbers of X that are read between two checks for Ctrl-C.
NUMBERS_PER_CHECK = 1 << 22
# Rounding, relative to P, that is worth a computation in twice the digits, and the rows and numbers
# of X up to which there is time for it.
COARSE_ERROR, TALL_ROWS, COMPENSATED_NUMBERS = 1e-7, 1 << 14, 1 << 20


@dataclass(frozen=True)
class PlaneCertificate(MarginCertificate):
    """How far a plane is from the optimum of a linear support vector machine.

    P is that of the plane itself, D that of α: every number of both is recomputed, and ``gap`` is
    as large as rounding allows.
    """

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the relative duality gap is at most ``tol``, and α feasible to ``tol``."""
        return bool(max(abs(self.relative_gap), self.balance, self.box) <= tol)


class _Sums(NamedTuple):
    """What a pass over some rows adds up to."""

    loss: float
    most_loss: float
    w: Floats
    error_of_w: float
    least_margin: float
    least_slope: float
    largest_slope: float
    error: float


@dataclass(frozen=True)
class _Claim:
    """A plane about an origin, α in its box, and α y repaired so that yᵀα = 0."""

    problem: PrimalProblem
    origin: Origin
    w: Floats
    b: float
    alpha: Floats
    signed: Floats


@certify.register
def _(problem: PrimalProblem, solution: Solution, *, sample: int | None = None) -> PlaneCertificate:
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
    origin = Origin(problem.X, problem.bias == "free")
    claim = _Claim(problem, origin, w[origin.order], origin.bias(w, b), alpha, signed)
    square = float(w @ w) + (b * b if problem.bias == "penalised" else 0.0)
    found = _measures(claim, square, exactly=False)
    if (
        found.blur > COARSE_ERROR * abs(found.primal)
        and problem.X.shape[0] <= TALL_ROWS
        and (problem.X.shape[0] * problem.X.shape[1] <= COMPENSATED_NUMBERS)
    ):
        found = _measures(claim, square, exactly=True)
    primal, dual = found.primal + found.blur, found.dual - found.blur
    gap = found.primal - found.dual + found.blur
    size = max(found.primal - found.blur, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        relative = float(np.divide(gap, size)) if np.isfinite(gap) else np.inf
    return PlaneCertificate(
        primal, dual, gap, relative, found.violation, balance, box, found.rounding,
        n_checked=len(problem.y), n_samples=len(problem.y),
    )  # fmt: skip


class _Measures(NamedTuple):
    """P and D, by how much P − D may be more than their difference, and the KKT conditions."""

    primal: float
    dual: float
    blur: float
    violation: float
    rounding: float


def _measures(claim: _Claim, square: float, *, exactly: bool) -> _Measures:
    """Return what passes over all rows say, in twice the digits of float64 on request."""
    passes = list(_passes(claim, exactly))
    rounding = max(each.error for each in passes)
    primal, most = (
        0.5 * square + sum(losses)
        for losses in zip(*((each.loss, each.most_loss) for each in passes), strict=True)
    )
    if claim.problem.hard:
        # P of the plane scaled up until every y g(x) ≥ 1.
        least = min(each.least_margin for each in passes)
        primal, most = _scaled(square, least), _scaled(square, least - rounding)
    dual, error = _dual(claim, np.abs(claim.signed), passes)
    blur = most - primal if np.isfinite(primal) else 0.0
    violation = max(
        1.0 - min(each.least_slope for each in passes),
        max(each.largest_slope for each in passes) - 1.0,
        0.0,
    )
    return _Measures(primal, dual, blur + error + 64.0 * UNIT * square, violation, rounding)


def _scaled(square: float, margin: float) -> float:
    return 0.5 * square / min(margin, 1.0) ** 2 if margin > 0.0 else np.inf


def _dual(claim: _Claim, alpha: Floats, passes: list[_Sums]) -> tuple[float, float]:
    """Return D(α) and a bound of its rounding errors."""
    problem = claim.problem
    w = np.sum([each.w for each in passes], axis=0)
    dual = float(alpha.sum()) - 0.5 * float(w @ w)
    blur = sum(each.error_of_w for each in passes)
    error = blur * (float(np.linalg.norm(w)) + 0.5 * blur)
    rest = abs(float(np.sum(claim.signed)))
    if problem.bias == "free":  # what rounding leaves of yᵀα
        error += (rest + 64.0 * UNIT * float(alpha.sum())) * abs(claim.b)
    elif problem.bias == "penalised":
        dual -= 0.5 * rest**2
    if problem.ridge.any():
        ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
        dual -= 0.5 * float(np.sum(ridge * alpha**2))
    return dual, error + 64.0 * UNIT * (float(alpha.sum()) + abs(dual))


def _passes(claim: _Claim, exactly: bool) -> Iterator[_Sums]:
    """Yield the sums over all rows, part by part, on all cores."""
    for start, X in container(claim.problem.X).pieces():
        step = max(64, NUMBERS_PER_CHECK // row_length(X))
        parts = [slice(k, min(k + step, X.shape[0])) for k in range(0, X.shape[0], step)]

        def part(rows: slice, stop: Event, X: Any = X, start: int = start) -> _Sums | None:
            return None if stop.is_set() else _part(claim, X, rows, start, exactly)

        yield from (each for each in in_parallel(part, parts) if each is not None)


def _part(claim: _Claim, X: Any, rows: slice, start: int, exactly: bool) -> _Sums:
    """Return the sums over some rows of a block that begins at row ``start``."""
    problem, w, b = claim.problem, claim.w, claim.b
    upper, ridge = problem.upper, problem.ridge
    largest, length = float(claim.alpha.max()), float(np.linalg.norm(w))
    loss = most_loss = blur = error = 0.0
    total = np.zeros(w.size)
    margin, least, most = np.inf, np.inf, -np.inf
    for block in blocks_of(rows.stop - rows.start, row_length(X)):
        here = slice(rows.start + block.start, rows.start + block.stop)
        everywhere = slice(start + here.start, start + here.stop)
        x = claim.origin.rows(row_block(X, here))
        y, a = problem.y[everywhere], claim.alpha[everywhere]
        u = upper if upper.size == 1 else upper[everywhere]
        D = ridge if ridge.size == 1 else ridge[everywhere]
        signed = claim.signed[everywhere]
        if exactly:
            x = x.toarray() if sparse.issparse(x) else x
            some, unsure = compensated_dot(x.T, signed)
            scores, wrong = compensated_dot(np.column_stack([x, np.ones(y.size)]), np.append(w, b))
            blur += float(np.linalg.norm(unsure))
        else:
            size = frobenius(x)
            some, scores = x.T @ signed, x @ w + b
            wrong = score_error(size, length, b, w.size)
            blur += sum_error(size, signed, y.size)
        total += some
        margins = y * scores
        error = max(error, float(np.max(wrong)))
        loss += _loss(np.maximum(1.0 - margins, 0.0), u, D)
        most_loss += _loss(np.maximum(1.0 + wrong - margins, 0.0), u, D)
        counts = (u > 0.0) & np.isfinite(D)
        slope = margins + np.where(np.isfinite(D), D, 0.0) * a
        margin = min(margin, float(margins[np.broadcast_to(counts, y.shape)].min(initial=np.inf)))
        # At its bound is what rounding cannot tell from it.
        below = counts & (a < (1.0 - ROUNDING) * u)
        above = counts & (a > ROUNDING * np.minimum(u, largest))
        least = min(least, float(slope[below].min(initial=np.inf)))
        most = max(most, float(slope[above].max(initial=-np.inf)))
    return _Sums(loss, most_loss, total, blur, margin, least, most, error)


def _loss(slack: Floats, upper: Floats, ridge: Floats) -> float:
    """Return Σ h(z) for z ≥ 0; 0 for the hard margin, which allows none."""
    if (np.isinf(upper) & (ridge == 0.0)).any():
        return 0.0
    if not ridge.any():
        return float(np.sum(upper * slack))
    if np.isinf(upper).all():
        with np.errstate(divide="ignore"):
            return float(np.sum(np.where(ridge > 0.0, 0.5 / ridge, 0.0) * slack**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.minimum(slack / ridge, upper)
        curved = np.where(a > 0.0, a * (slack - 0.5 * ridge * a), 0.0)
        return float(np.sum(np.where(ridge > 0.0, curved, upper * slack)))
