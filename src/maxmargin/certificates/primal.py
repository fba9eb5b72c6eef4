"""How far a linear support vector machine is from its optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..arrays import (
    Floats,
    Partitioned,
    PartitionedVector,
    blocks_of,
    container,
    row_block,
    row_length,
    row_pieces,
)
from ..problems import PrimalProblem
from ..runtime.threads import in_parallel
from ..runtime.vectors import part_count, part_rows
from ..solution import Solution
from .base import certify
from .centring import Origin, frobenius, score_error, sum_error
from .compensated import compensated_dot
from .dual import MarginCertificate
from .scores import UNIT

# Rounding, relative to P, that is worth a computation in twice the digits, and the rows and numbers
# of X up to which there is time for it.
COARSE_ERROR, TALL_ROWS, COMPENSATED_NUMBERS = 1e-7, 1 << 14, 1 << 20
# What rounding leaves of P, relative to the losses of the targets themselves.
RESOLUTION = 1e-11


@dataclass(frozen=True)
class PlaneCertificate(MarginCertificate):
    """How far a plane is from the optimum of a linear support vector machine.

    P is that of the plane itself, D that of α: every number of both is recomputed, and ``gap`` is
    as large as rounding allows. Of targets it is relative to 10⁻¹¹ of their losses with no plane,
    at the median cost, where P is less: rounding leaves no more of them.
    """

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the relative duality gap is at most ``tol``, and α feasible to ``tol``."""
        return bool(max(abs(self.relative_gap), self.balance, self.box) <= tol)

    def _worst(self) -> float:
        return max(self.balance, self.box)


@certify.register
def _(problem: PrimalProblem, solution: Solution, *, sample: int | None = None) -> PlaneCertificate:
    assert solution.alpha is not None
    held = container(problem.X)
    if held.on_device and held.sparse:
        problem = problem.on_host()
    w, b = solution.w[0], float(solution.b[0])
    claim, totals, box = claim_of(problem, w, b, solution.alpha)
    if problem.bias == "none":
        box = max(box, abs(b))  # a bias that there must not be
    balance = imbalance(problem, totals)
    square = float(w @ w)
    if problem.bias == "penalised":
        square += (b / problem.intercept_scaling) ** 2
    found = _measures(claim, square, exactly=False)
    if compensates(problem, found.blur, found.primal):
        if container(problem.X).on_device:
            return certify(problem.on_host(), solution)  # type: ignore[no-any-return]
        found = _measures(claim, square, exactly=True)
    unit = score_unit(problem)
    found = found._replace(
        violation=found.violation / unit, rounding=found.rounding / unit,
        unexplained=_typical_share(problem) * found.unexplained if problem.two_sided else 0.0,
    )  # fmt: skip
    return shown(found, balance, box, len(problem.y))


def score_unit(problem: PrimalProblem) -> float:
    """Return half the range of targets, their size where all are equal; 1 of labels."""
    if not problem.two_sided:
        return 1.0
    low, high = float(problem.y.min()), float(problem.y.max())
    return 0.5 * high - 0.5 * low or abs(high) or 1.0


def _typical_share(problem: PrimalProblem) -> float:
    """Return the median cost of slack relative to the mean, at most 1.

    Losses of a few rows of huge weights say nothing of how well those of the others are known.
    """
    costs: Any = problem.upper if np.isfinite(problem.upper).all() else 1.0 / problem.ridge
    if isinstance(costs, PartitionedVector):  # the median is no less than the least of them
        n = len(costs)
        return min(1.0, float(costs.min()) / (float(costs.sum()) / n)) if n > 1 else 1.0
    costs = costs[(costs > 0.0) & np.isfinite(costs)]
    return min(1.0, float(np.median(costs) / costs.mean())) if costs.size > 1 else 1.0


def imbalance(problem: PrimalProblem, totals: tuple[float, float]) -> float:
    """Return how far Σβ is from 0 where the bias is free, relative to Σ|β|.

    That of labels is at least 1: margins are.
    """
    if problem.bias != "free":
        return 0.0
    least = np.finfo(float).tiny if problem.two_sided else 1.0
    return abs(totals[0] - totals[1]) / max(float(least), sum(totals))


def compensates(problem: PrimalProblem, blur: float, primal: float) -> bool:
    """Whether rounding is worth a computation in twice the digits, and there is time for it."""
    n, d = problem.X.shape
    coarse = blur > COARSE_ERROR * abs(primal)
    return bool(coarse and n <= TALL_ROWS and n * d <= COMPENSATED_NUMBERS)


def shown(found: Measures, balance: float, box: float, n: int) -> PlaneCertificate:
    """Return the certificate of what was found: as far from the optimum as rounding allows."""
    primal, dual = found.primal + found.blur, found.dual - found.blur
    gap = found.primal - found.dual + found.blur
    size = max(found.primal - found.blur, RESOLUTION * found.unexplained, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        relative = float(np.divide(gap, size)) if np.isfinite(gap) else np.inf
    return PlaneCertificate(
        primal, dual, gap, relative, found.violation, balance, box, found.rounding,
        n_checked=n, n_samples=n,
    )  # fmt: skip


class Claim(NamedTuple):
    """A plane about an origin, α, and the factors of both signs for Σβ = 0.

    ``shift`` is a free bias of targets; ``b`` is then 0. ``alpha`` has the other vectors of rows on
    a device, too.
    """

    problem: PrimalProblem
    origin: Origin
    w: Floats
    b: float
    alpha: Any
    largest: float
    factors: tuple[float, float]
    shift: float


def claim_of(
    problem: PrimalProblem, w: Floats, b: float, given: Floats
) -> tuple[Claim, tuple[float, float], float]:
    """Return what is claimed, Σ|β| of both signs, and how far α was outside of its box."""
    from .plane_sums import LARGEST, NEGATIVE, OUTSIDE, POSITIVE

    alpha: Any = given
    if container(problem.X).on_device:
        from . import device_planes

        alpha = device_planes.terms_of(problem, given)
        found = device_planes.add_up_alpha(problem, alpha)
    elif isinstance(problem.X, Partitioned):
        found = problem.X.reduce(
            _alpha_lines, np.vstack, *_vectors(problem, given), common=(_without_rows(problem),),
            reads_rows=False,
        )  # fmt: skip
    else:
        alpha = np.ascontiguousarray(given, dtype=np.float64)
        found = _alpha_lines(problem.y, alpha, problem.upper, problem.ridge, problem)
    totals = float(found[:, POSITIVE].sum()), float(found[:, NEGATIVE].sum())
    largest, outside = float(found[:, LARGEST].max()), float(found[:, OUTSIDE].max())
    factors = (1.0, 1.0)
    if problem.bias == "free":
        # The heavier sign is shrunk until Σβ = 0: β stays in its box.
        least = min(totals)
        factors = least / totals[0] if totals[0] else 0.0, least / totals[1] if totals[1] else 0.0
    origin = Origin(problem.X, problem.bias == "free")
    w, b, shift = np.ascontiguousarray(w[origin.order], dtype=np.float64), origin.bias(w, b), 0.0
    least = 1.0
    if problem.two_sided:
        least = float(np.finfo(float).tiny)
        if problem.bias == "free":
            b, shift = 0.0, b
    return (
        Claim(problem, origin, w, b, alpha, largest, factors, shift), totals,
        outside / max(least, largest),
    )  # fmt: skip


class Measures(NamedTuple):
    """P and D, by how much P − D may be more than their difference, and the KKT conditions.

    ``unexplained`` are the losses of targets with no plane: P below what rounding makes of them
    is 0.
    """

    primal: float
    dual: float
    blur: float
    violation: float
    rounding: float
    unexplained: float = 0.0


def _measures(claim: Claim, square: float, *, exactly: bool) -> Measures:
    """Return what passes over all rows say, in twice the digits of float64 on request."""
    from .plane_sums import Found

    lines, w = passes(claim, exactly)
    found = Found.of(lines)
    primal, most = 0.5 * square + found.loss, 0.5 * square + found.most_loss
    if claim.problem.hard:
        # P of the plane scaled up until every y g(x) ≥ 1.
        primal = _scaled(square, found.least_margin)
        most = _scaled(square, found.least_margin - found.error)
    blur = most - primal if np.isfinite(primal) else 0.0
    dual = found.gain - 0.5 * float(w @ w) - 0.5 * found.ridge
    error = found.blur * (float(np.linalg.norm(w)) + 0.5 * found.blur)
    if claim.problem.bias == "free":  # what rounding leaves of Σβ, times another bias
        error += (abs(found.rest) + 64.0 * UNIT * found.alpha) * (abs(claim.b) + found.farthest)
    elif claim.problem.bias == "penalised":
        dual -= 0.5 * (claim.problem.intercept_scaling * found.rest) ** 2
    error += 64.0 * UNIT * (found.terms + abs(dual))
    violation = max(1.0 - found.least_slope, found.largest_slope - 1.0, 0.0)
    blur += error + 64.0 * UNIT * square
    return Measures(primal, dual, blur, violation, found.error, found.unexplained)


def _scaled(square: float, margin: float) -> float:
    return 0.5 * square / min(margin, 1.0) ** 2 if margin > 0.0 else np.inf


def _alpha_lines(
    y: Floats, alpha: Floats, upper: Floats, ridge: Floats, problem: PrimalProblem
) -> Floats:
    """Return what `plane_sums.add_up_alpha` finds of some rows, as one line."""
    from .plane_sums import LARGEST, add_up_alpha

    box = replace(problem, y=y, upper=upper, ridge=ridge).box
    step = part_rows(y.size)
    found = np.zeros((part_count(y.size, step), 4))
    add_up_alpha(len(found), step, alpha, box, y, problem.two_sided, found)
    sums, most = found[:, :LARGEST].sum(axis=0), found[:, LARGEST:].max(axis=0)
    return np.hstack([sums, most])[np.newaxis]


def _vectors(problem: PrimalProblem, alpha: Any) -> tuple[Any, ...]:
    """Return what the rows have one number each of."""
    return problem.y, alpha, problem.upper, problem.ridge


def _without_rows(problem: PrimalProblem) -> PrimalProblem:
    """Return a problem without what its rows have."""
    one = np.ones(1)
    return replace(problem, X=None, y=one, upper=one, ridge=one)


def passes(claim: Claim, exactly: bool) -> tuple[Floats, Floats]:
    """Return what every part of the rows says (`plane_sums`), and Σ αyx."""
    problem = claim.problem
    if container(problem.X).on_device:
        from . import device_planes

        return device_planes.measure(claim, claim.alpha)
    if isinstance(problem.X, Partitioned):
        sent = claim._replace(problem=_without_rows(problem), alpha=None)
        return problem.X.reduce(
            _of_piece, _merged_pieces, *_vectors(problem, claim.alpha), common=(sent, exactly)
        )
    pieces = []
    for start, X in row_pieces(problem.X):
        if X.shape[0]:
            here = slice(start, start + X.shape[0])
            y, alpha, upper, ridge = (
                v[here] if v.size > 1 else v for v in _vectors(problem, claim.alpha)
            )
            pieces.append(_of_piece(X, y, alpha, upper, ridge, claim, exactly))
    return _merged_pieces(pieces)


def _merged_pieces(pieces: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Add up what pieces of X say, and what rounding does to that sum."""
    from .plane_sums import BLUR, UPWARDS, merged

    lines, totals = zip(*pieces, strict=True)
    line = merged(np.vstack(lines))
    if len(pieces) > 1:
        size = sum(float(np.linalg.norm(each)) for each in totals)
        line[0, BLUR] += len(pieces) * UNIT * UPWARDS * size
    return line, np.sum(totals, axis=0)


def _of_piece(
    X: Any, y: Floats, alpha: Floats, upper: Floats, ridge: Floats, claim: Claim, exactly: bool
) -> tuple[Floats, Floats]:
    """Return what some rows say, as one line of `plane_sums`, and their Σ αyx."""
    from ..runtime.row_access import rows_of
    from .plane_sums import BLUR, N_FOUND, judge, measure, merged

    problem = replace(claim.problem, X=None, y=y, upper=upper, ridge=ridge)
    n, d, box = X.shape[0], claim.w.size, problem.box
    judged = (
        y, problem.two_sided, float(problem.epsilon), claim.shift, alpha, box, *claim.factors,
        upper, ridge, claim.largest,
    )  # fmt: skip
    # Columns of a sparse X that lie far from 0 would have to be made dense.
    if exactly or (sparse.issparse(X) and claim.origin.centre.any()):
        step = part_rows(n)
        found = np.zeros((part_count(n, step), N_FOUND))
        scores, wrong, total, blur = _scores(claim, problem, X, alpha, exactly)
        judge(len(found), step, scores, wrong, *judged, found)
        found[0, BLUR] = blur
        return merged(found), total
    step = part_rows(n, row_length(X) + 4.0)
    found = np.zeros((part_count(n, step), N_FOUND))
    sums = np.zeros((len(found), d))
    rows = rows_of(X if X.dtype.kind == "f" else X.astype(np.float64))
    measure(len(found), step, rows, claim.origin.centre, claim.w, claim.b, *judged, found, sums)
    return merged(found), sums.sum(axis=0)


def _scores(
    claim: Claim, problem: PrimalProblem, X: Any, alpha: Floats, exactly: bool
) -> tuple[Floats, Floats, Floats, float]:
    """Return w·x + b of the rows of a piece, with bounds of errors, and Σ αyx with its own."""
    w, b, length = claim.w, claim.b, float(np.linalg.norm(claim.w))
    # About another origin the shift was rounded.
    offset = claim.shift if claim.origin.centre.any() and length else 0.0
    beta = problem.beta(alpha)
    beta = np.where(beta > 0, *claim.factors) * beta

    def part(block: slice) -> tuple[Any, Any, Any, float]:
        signed, n = beta[block], block.stop - block.start
        x = claim.origin.rows(row_block(X, block))
        if exactly:
            x = x.toarray() if sparse.issparse(x) else x
            some, unsure = compensated_dot(x.T, signed)
            scores, wrong = compensated_dot(np.column_stack([x, np.ones(n)]), np.append(w, b))
            return scores, wrong + UNIT * abs(offset), some, float(np.linalg.norm(unsure))
        size = frobenius(x)
        wrong = np.full(n, score_error(size, length, abs(b) + abs(offset), w.size))
        return x @ w + b, wrong, x.T @ signed, sum_error(size, signed, n)

    blocks = list(blocks_of(X.shape[0], row_length(X)))
    done = in_parallel(lambda block, stop: part(block), blocks)
    scores, wrong, sums, blurs = zip(*done, strict=True)
    return (
        np.concatenate(scores), np.concatenate(wrong), np.sum(sums, axis=0), float(sum(blurs)),
    )  # fmt: skip
