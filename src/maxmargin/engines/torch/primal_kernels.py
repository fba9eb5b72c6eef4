"""Passes over vectors of a linear machine on a card, in Triton: each reads its vectors once.

The functions are those of `primal_passes`, with the same sums: every part of the rows has a line of
them, which are added up afterwards, always in the same order.
"""

from __future__ import annotations

from typing import Any

import torch

from .launching import launch

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for the CPU comes without it
    triton = None

from .primal_passes import Marks, Terms
from .row_kernels import parts_of

Tensor = Any
BLOCK = 512
# Slopes of one launch.
POINTS = 8


def _lines(like: Tensor, n_sums: int) -> tuple[Tensor, int]:
    """Return a line of sums for every part of the rows, and the rows of a part."""
    n = like.shape[0]
    n_parts = parts_of(n)
    step = triton.cdiv(triton.cdiv(n, n_parts), BLOCK) * BLOCK
    return torch.empty(n_parts, n_sums, dtype=torch.float64, device=like.device), step


def _of(values: Tensor) -> tuple[Tensor, int]:
    """Return values with 1 where there is one per row, 0 where one number is that of all."""
    return values, int(values.shape[0] > 1)


def project(
    terms: Terms, scores: Tensor, center: Tensor, delta: float, beta: Tensor, change: Tensor,
    kink: Tensor,
) -> Tensor:  # fmt: skip
    """Fill in β, its change and the rows on the kink, as `primal_passes.project` does."""
    lines, step = _lines(scores, 5)
    launch(_project, (lines.shape[0],))(
        scores, terms.y, *_of(terms.upper), *_of(terms.ridge), *_of(center), beta, change, kink,
        lines, scores.shape[0], step, terms.epsilon, delta, terms.two_sided, BLOCK,
    )  # fmt: skip
    return lines.sum(0)


def slopes(
    terms: Terms, scores: Tensor, along: Tensor, center: Tensor, delta: float, points: list[float]
) -> Tensor:
    """Return Σ β_i p_i at the scores s + tp, for several t."""
    lines, step = _lines(scores, POINTS)
    given = [*points, *[0.0] * (POINTS - len(points))]
    launch(_slopes, (lines.shape[0],))(
        scores, along, terms.y, *_of(terms.upper), *_of(terms.ridge), *_of(center), lines,
        scores.shape[0], step, terms.epsilon, delta, *given, terms.two_sided, BLOCK,
    )  # fmt: skip
    return lines.sum(0)[: len(points)]


def advance(scores: Tensor, along: Tensor, t: float) -> Tensor:
    """Go t steps; return the largest change of a score and the largest score."""
    lines, step = _lines(scores, 2)
    launch(_advance, (lines.shape[0],))(scores, along, lines, scores.shape[0], step, t, BLOCK)
    return lines.amax(0)


def loss(terms: Terms, scores: Tensor) -> Tensor:
    """Return Σ h_i(z_i)."""
    lines, step = _lines(scores, 1)
    launch(_loss, (lines.shape[0],))(
        scores, terms.y, *_of(terms.upper), *_of(terms.ridge), lines, scores.shape[0], step,
        terms.epsilon, terms.two_sided, BLOCK,
    )  # fmt: skip
    return lines.sum()


def balance(
    terms: Terms, beta: Tensor, is_free: bool, relative: bool, change: Tensor, out: Tensor | None
) -> Tensor:
    """Restore Σβ = 0 where the bias is free, as `primal_passes.balance` does."""
    lines, step = _lines(beta, 4)
    totals = lines
    if is_free:
        launch(_sign_totals, (lines.shape[0],))(
            beta, *_of(terms.upper), lines, beta.shape[0], step, BLOCK
        )
        totals = lines.sum(0)
    lines, _ = _lines(beta, 3)
    launch(_balance, (lines.shape[0],))(
        beta, terms.y, *_of(terms.upper), *_of(terms.ridge), totals, change,
        change if out is None else out, lines, beta.shape[0], step, terms.epsilon, is_free,
        relative, out is not None, BLOCK,
    )  # fmt: skip
    return lines.sum(0)


def hold(
    terms: Terms, scores: Tensor, width: Tensor, reach: Tensor, beta: Tensor | None, slope: Tensor
) -> Marks:
    """Mark the rows near the kink, as `primal_passes.hold` does."""
    lines, step = _lines(scores, 5)
    near, parabolas = torch.empty(2, scores.shape[0], dtype=torch.bool, device=scores.device)
    launch(_hold, (lines.shape[0],))(
        scores, terms.y, *_of(terms.upper), *_of(terms.ridge), *_of(width), reach,
        slope if beta is None else beta, slope, near, parabolas, lines, scores.shape[0], step,
        terms.epsilon, terms.two_sided, beta is not None, BLOCK,
    )  # fmt: skip
    return Marks(near, parabolas, lines.sum(0))


if triton is not None:
    FAR = tl.constexpr(float("inf"))
    FIXED = ["n", "step"]

    @triton.jit
    def _slack(r, y, epsilon, TWO_SIDED: tl.constexpr):
        return tl.abs(r) - epsilon if TWO_SIDED else y * r

    @triton.jit
    def _value(z, u, D):
        """Return h(z)."""
        z = tl.maximum(z, 0.0)
        return tl.where(u * D <= z, u * (z - 0.5 * D * u), 0.5 * (z / D) * z)

    @triton.jit
    def _proximal(r, y, epsilon, before, u, D, delta, TWO_SIDED: tl.constexpr):
        """Return β of a residual."""
        finite = u < FAR
        pull = tl.where(finite, u * r + delta * before, r)
        bend = tl.where(finite, u * D + delta, D)
        threshold = tl.where(finite, u * epsilon, epsilon)
        side = tl.where(pull > 0.0, 1.0, -1.0).to(tl.float64) if TWO_SIDED else y
        alpha = tl.maximum(side * pull - threshold, 0.0) / bend
        return tl.where(u == 0.0, 0.0, side * tl.minimum(alpha, u))

    @triton.jit(do_not_specialize=FIXED)
    def _project(
        S, Y, U, OF_U: tl.constexpr, R, OF_R: tl.constexpr, B, OF_B: tl.constexpr, BETA, CHANGE,
        KINK, LINES, n, step, epsilon: tl.float64, delta: tl.float64, TWO_SIDED: tl.constexpr,
        BLOCK: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0).to(tl.int64)
        short = tl.zeros([BLOCK], dtype=tl.float64)
        losses, changes = short, short
        errors = tl.zeros([BLOCK], dtype=tl.int32)
        inside = errors
        for k in range(0, step, BLOCK):
            i = part * step + k + tl.arange(0, BLOCK)
            here = i < n
            y = tl.load(Y + i, mask=here, other=0.0)
            r = y - tl.load(S + i, mask=here, other=0.0)
            u = tl.load(U + i * OF_U, mask=here, other=0.0)
            D = tl.load(R + i * OF_R, mask=here, other=0.0)
            before = tl.load(B + i * OF_B, mask=here, other=0.0)
            z = _slack(r, y, epsilon, TWO_SIDED)
            value = _proximal(r, y, epsilon, before, u, D, delta, TWO_SIDED)
            loss = tl.where(here, _value(z, u, D), 0.0)
            finite, size = tl.where(D < FAR, D, 0.0), tl.abs(value)
            missing = loss - value * r + size * (epsilon + 0.5 * finite * size)
            moved = value - tl.load(BETA + i, mask=here, other=0.0)
            kink = (size > 0.0) & (size < u) & here
            short += tl.where(here & (u < FAR), missing, 0.0)
            losses += loss
            changes += tl.where(here, moved, 0.0)
            errors += (here & (z > (0.0 if TWO_SIDED else 1.0))).to(tl.int32)
            inside += kink.to(tl.int32)
            tl.store(CHANGE + i, moved, mask=here)
            tl.store(BETA + i, value, mask=here)
            tl.store(KINK + i, kink, mask=here)
        line = LINES + part * 5
        tl.store(line, tl.sum(short))
        tl.store(line + 1, tl.sum(losses))
        tl.store(line + 2, tl.sum(errors).to(tl.float64))
        tl.store(line + 3, tl.sum(changes))
        tl.store(line + 4, tl.sum(inside).to(tl.float64))

    @triton.jit
    def _at(s, p, t, y, epsilon, before, u, D, delta, TWO_SIDED: tl.constexpr):
        return _proximal(y - (s + t * p), y, epsilon, before, u, D, delta, TWO_SIDED) * p

    @triton.jit(do_not_specialize=FIXED)
    def _slopes(
        S, P, Y, U, OF_U: tl.constexpr, R, OF_R: tl.constexpr, B, OF_B: tl.constexpr, LINES, n,
        step, epsilon: tl.float64, delta: tl.float64, t0: tl.float64, t1: tl.float64,
        t2: tl.float64, t3: tl.float64, t4: tl.float64, t5: tl.float64, t6: tl.float64,
        t7: tl.float64, TWO_SIDED: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0).to(tl.int64)
        s0 = tl.zeros([BLOCK], dtype=tl.float64)
        s1, s2, s3, s4, s5, s6, s7 = s0, s0, s0, s0, s0, s0, s0
        for k in range(0, step, BLOCK):
            i = part * step + k + tl.arange(0, BLOCK)
            here = i < n
            y = tl.load(Y + i, mask=here, other=0.0)
            s = tl.load(S + i, mask=here, other=0.0)
            p = tl.load(P + i, mask=here, other=0.0)
            # Rows that are not there do not count.
            u = tl.load(U + i * OF_U, mask=here, other=0.0)
            D = tl.load(R + i * OF_R, mask=here, other=0.0)
            b = tl.load(B + i * OF_B, mask=here, other=0.0)
            s0 += _at(s, p, t0, y, epsilon, b, u, D, delta, TWO_SIDED)
            s1 += _at(s, p, t1, y, epsilon, b, u, D, delta, TWO_SIDED)
            s2 += _at(s, p, t2, y, epsilon, b, u, D, delta, TWO_SIDED)
            s3 += _at(s, p, t3, y, epsilon, b, u, D, delta, TWO_SIDED)
            s4 += _at(s, p, t4, y, epsilon, b, u, D, delta, TWO_SIDED)
            s5 += _at(s, p, t5, y, epsilon, b, u, D, delta, TWO_SIDED)
            s6 += _at(s, p, t6, y, epsilon, b, u, D, delta, TWO_SIDED)
            s7 += _at(s, p, t7, y, epsilon, b, u, D, delta, TWO_SIDED)
        line = LINES + part * 8
        tl.store(line, tl.sum(s0))
        tl.store(line + 1, tl.sum(s1))
        tl.store(line + 2, tl.sum(s2))
        tl.store(line + 3, tl.sum(s3))
        tl.store(line + 4, tl.sum(s4))
        tl.store(line + 5, tl.sum(s5))
        tl.store(line + 6, tl.sum(s6))
        tl.store(line + 7, tl.sum(s7))

    @triton.jit(do_not_specialize=FIXED)
    def _advance(S, P, LINES, n, step, t: tl.float64, BLOCK: tl.constexpr):
        part = tl.program_id(0).to(tl.int64)
        moved = tl.zeros([BLOCK], dtype=tl.float64)
        largest = moved
        for k in range(0, step, BLOCK):
            i = part * step + k + tl.arange(0, BLOCK)
            here = i < n
            change = t * tl.load(P + i, mask=here, other=0.0)
            score = tl.load(S + i, mask=here, other=0.0) + change
            tl.store(S + i, score, mask=here)
            moved, largest = tl.maximum(moved, tl.abs(change)), tl.maximum(largest, tl.abs(score))
        tl.store(LINES + part * 2, tl.max(moved))
        tl.store(LINES + part * 2 + 1, tl.max(largest))

    @triton.jit(do_not_specialize=FIXED)
    def _loss(
        S, Y, U, OF_U: tl.constexpr, R, OF_R: tl.constexpr, LINES, n, step, epsilon: tl.float64,
        TWO_SIDED: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0).to(tl.int64)
        losses = tl.zeros([BLOCK], dtype=tl.float64)
        for k in range(0, step, BLOCK):
            i = part * step + k + tl.arange(0, BLOCK)
            here = i < n
            y = tl.load(Y + i, mask=here, other=0.0)
            r = y - tl.load(S + i, mask=here, other=0.0)
            u = tl.load(U + i * OF_U, mask=here, other=0.0)
            D = tl.load(R + i * OF_R, mask=here, other=0.0)
            z = _slack(r, y, epsilon, TWO_SIDED)
            losses += tl.where(here, _value(z, u, D), 0.0)
        tl.store(LINES + part, tl.sum(losses))

    @triton.jit(do_not_specialize=FIXED)
    def _sign_totals(BETA, U, OF_U: tl.constexpr, LINES, n, step, BLOCK: tl.constexpr):
        part = tl.program_id(0).to(tl.int64)
        positive = tl.zeros([BLOCK], dtype=tl.float64)
        negative, below_positive, below_negative = positive, positive, positive
        for k in range(0, step, BLOCK):
            i = part * step + k + tl.arange(0, BLOCK)
            here = i < n
            beta = tl.load(BETA + i, mask=here, other=0.0)
            size = tl.abs(beta)
            below = tl.where(size < tl.load(U + i * OF_U, mask=here, other=0.0), size, 0.0)
            positive += tl.where(beta > 0.0, size, 0.0)
            negative += tl.where(beta > 0.0, 0.0, size)
            below_positive += tl.where(beta > 0.0, below, 0.0)
            below_negative += tl.where(beta > 0.0, 0.0, below)
        line = LINES + part * 4
        tl.store(line, tl.sum(positive))
        tl.store(line + 1, tl.sum(negative))
        tl.store(line + 2, tl.sum(below_positive))
        tl.store(line + 3, tl.sum(below_negative))

    @triton.jit(do_not_specialize=FIXED)
    def _balance(
        BETA, Y, U, OF_U: tl.constexpr, R, OF_R: tl.constexpr, TOTALS, CHANGE, OUT, LINES, n, step,
        epsilon: tl.float64, IS_FREE: tl.constexpr, RELATIVE: tl.constexpr, WRITES: tl.constexpr,
        BLOCK: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0).to(tl.int64)
        gain = tl.zeros([BLOCK], dtype=tl.float64)
        squares, rest = gain, gain
        if IS_FREE:
            positive, negative = tl.load(TOTALS), tl.load(TOTALS + 1)
            excess = positive - negative
            below = tl.where(excess > 0.0, tl.load(TOTALS + 2), tl.load(TOTALS + 3))
            enough = below >= tl.abs(excess)
            total = tl.where(enough, below, tl.maximum(positive, negative))
            factor = tl.where(excess == 0.0, 1.0, 1.0 - tl.abs(excess) / total)
        for k in range(0, step, BLOCK):
            i = part * step + k + tl.arange(0, BLOCK)
            here = i < n
            before = tl.load(BETA + i, mask=here, other=0.0)
            value = before
            if IS_FREE:
                u = tl.load(U + i * OF_U, mask=here, other=0.0)
                shrinks = (before * excess > 0.0) & ((tl.abs(before) < u) | (enough == 0))
                value = tl.where(shrinks, factor * before, before)
            D = tl.load(R + i * OF_R, mask=here, other=0.0)
            finite = tl.where(D < FAR, D, 0.0)
            y = tl.load(Y + i, mask=here, other=0.0)
            gain += value * y - epsilon * tl.abs(value)
            squares += finite * value * value
            rest += value
            if WRITES:
                tl.store(OUT + i, value, mask=here)
            tl.store(CHANGE + i, value - before if RELATIVE else value, mask=here)
        line = LINES + part * 3
        tl.store(line, tl.sum(gain))
        tl.store(line + 1, tl.sum(squares))
        tl.store(line + 2, tl.sum(rest))

    @triton.jit(do_not_specialize=FIXED)
    def _hold(
        S, Y, U, OF_U: tl.constexpr, R, OF_R: tl.constexpr, W, OF_W: tl.constexpr, REACH, BETA,
        SLOPE, NEAR, PARABOLAS, LINES, n, step, epsilon: tl.float64, TWO_SIDED: tl.constexpr,
        PLACES_BETA: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0).to(tl.int64)
        constants = tl.zeros([BLOCK], dtype=tl.float64)
        forces = constants
        n_near = tl.zeros([BLOCK], dtype=tl.int32)
        n_bent, errors = n_near, n_near
        reach = tl.load(REACH)
        for k in range(0, step, BLOCK):
            i = part * step + k + tl.arange(0, BLOCK)
            here = i < n
            y = tl.load(Y + i, mask=here, other=0.0)
            r = y - tl.load(S + i, mask=here, other=0.0)
            u = tl.load(U + i * OF_U, mask=here, other=0.0)
            D = tl.load(R + i * OF_R, mask=here, other=0.0)
            half = 0.5 * tl.load(W + i * OF_W, mask=here, other=0.0)
            z = _slack(r, y, epsilon, TWO_SIDED)
            near = (tl.abs(z - half) - half <= reach) & here
            sloping = (near == 0) & (z > 0.0) & here
            side = tl.where(r > 0.0, 1.0, -1.0).to(tl.float64)
            target = y - side * epsilon
            line, finite = u < FAR, tl.where(D < FAR, D, 0.0)
            bound = tl.where(sloping & line, side * tl.where(line, u, 0.0), 0.0)
            bent = sloping & (line == 0)
            force = tl.where(line, bound, tl.where(bent, target / D, 0.0))
            constant = tl.where(
                line, bound * target - 0.5 * finite * bound * bound, 0.5 * force * target
            )
            constants += tl.where(here, constant, 0.0)
            forces += tl.where(here, force, 0.0)
            n_near += near.to(tl.int32)
            n_bent += bent.to(tl.int32)
            errors += (sloping & (z > (0.0 if TWO_SIDED else 1.0))).to(tl.int32)
            if PLACES_BETA:
                beta = tl.load(BETA + i, mask=here, other=0.0)
                tl.store(BETA + i, tl.where(near, beta, bound), mask=here)
            tl.store(SLOPE + i, force, mask=here)
            tl.store(NEAR + i, near, mask=here)
            tl.store(PARABOLAS + i, bent, mask=here)
        line_of = LINES + part * 5
        tl.store(line_of, tl.sum(constants))
        tl.store(line_of + 1, tl.sum(forces))
        tl.store(line_of + 2, tl.sum(n_near).to(tl.float64))
        tl.store(line_of + 3, tl.sum(n_bent).to(tl.float64))
        tl.store(line_of + 4, tl.sum(errors).to(tl.float64))
