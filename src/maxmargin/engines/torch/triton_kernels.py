"""Fused passes in Triton: kernel values, working sets and gradients of many tasks at once.

Every function takes tensors on a card; `blocks` has the same for other devices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from .launching import launch

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for the CPU comes without it
    triton = None


# Variables that one program surveys at least, such programs per task at most, and bins into which
# violations are counted.
MIN_PART, MAX_PARTS, BINS = 1024, 128, 512


class Changes(NamedTuple):
    """By how much variables of every task have moved, where their rows of K are, how many."""

    moved: Any
    slots: Any
    count: Any

    @classmethod
    def empty(cls, n_tasks: int, size: int, device: Any) -> Changes:
        """Return memory for the changes of working sets."""
        shape = n_tasks, size
        return cls(
            torch.empty(shape, dtype=torch.float64, device=device),
            torch.empty(shape, dtype=torch.int32, device=device),
            torch.empty(n_tasks, dtype=torch.int32, device=device),
        )


def has_triton(tensor: Any) -> bool:
    """Return whether a tensor is where Triton's kernels run."""
    return triton is not None and tensor.is_cuda


if triton is not None:
    # Larger than any gradient, for variables that may not be chosen; the least curvature.
    FAR = tl.constexpr(3e38)
    FLAT = tl.constexpr(1e-12)

    @triton.jit
    def _gaussian(
        DOT, X_SQ, Z_SQ, ROWS, K, SLOTS, gamma, rest, n, stride, length,
        IS_WIDE: tl.constexpr, HAS_SLOTS: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        """Turn inner products into kernel values, which are written to the rows of their slots."""
        row = tl.program_id(0).to(tl.int64)
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        square = tl.load(X_SQ + row) + tl.load(Z_SQ + at, mask=inside, other=0.0)
        square -= 2.0 * tl.load(DOT + row * stride + at, mask=inside, other=0.0)
        if IS_WIDE:  # K(x, x) = 1, which rounding may have left a little below
            square = tl.where(at == tl.load(ROWS + row), 0.0, square)
        slot = row
        if HAS_SLOTS:
            slot = tl.load(SLOTS + row).to(tl.int64)
        square = tl.maximum(square, 0.0)
        # Numbers are passed as float32: γ is the sum of two of them.
        values = tl.exp(-(gamma * square + rest * square))
        tl.store(K + slot * length + at, values, mask=inside)

    @triton.jit
    def _highest(f, i, room, curve, low, g, j, other_room, other_curve, other_low):
        """Return the larger f with its place, of equals the last, and the least of the others."""
        wins = (g > f) | ((g == f) & (j > i))
        return (
            tl.where(wins, g, f),
            tl.where(wins, j, i),
            tl.where(wins, other_room, room),
            tl.where(wins, other_curve, curve),
            tl.minimum(low, other_low),
        )

    @triton.jit
    def _best(gain, i, room, bend, fall, other, j, other_room, other_bend, other_fall):
        """Return the larger gain with its place, of equals the last."""
        wins = (other > gain) | ((other == gain) & (j > i))
        return (
            tl.where(wins, other, gain),
            tl.where(wins, j, i),
            tl.where(wins, other_room, room),
            tl.where(wins, other_bend, bend),
            tl.where(wins, other_fall, fall),
        )

    @triton.jit
    def _roomiest(room, i, other, j):
        wins = (other > room) | ((other == room) & (j > i))
        return tl.where(wins, other, room), tl.where(wins, j, i)

    @triton.jit(do_not_specialize=["max_steps"])
    def _pair_steps(
        K, SET, INDEX, SLOT, F, BETA, LOWER, UPPER, CURVE, RIDGE, STOP, MOVED, FROM, COUNT, STEPS,
        width, max_steps, Q: tl.constexpr, HAS_RIDGE: tl.constexpr,
    ):  # fmt: skip
        """Solve the problem of one working set per program, pair by pair; see `engines.cpu.smo`."""
        t = tl.program_id(0).to(tl.int64)
        o = tl.arange(0, Q)
        K += t * Q * Q
        place = t * width + tl.load(SET + t * Q + o)
        kind = K.dtype.element_ty
        f = tl.load(F + place).to(kind)
        curve = tl.load(CURVE + place).to(kind)
        beta, lower, upper = tl.load(BETA + place), tl.load(LOWER + place), tl.load(UPPER + place)
        low, high = (lower - beta).to(kind), (upper - beta).to(kind)
        d = tl.zeros([Q], kind)
        stop = tl.load(STOP + t).to(kind)
        steps = 0
        violation = stop + 1.0
        while (violation > stop) & (steps < max_steps):
            shrinks = d > low
            top, i, room_i, curve_i, least = tl.reduce(
                (
                    tl.where(d < high, f, -FAR),
                    o,
                    high - d,
                    curve,
                    tl.where(shrinks, f, FAR),
                ),
                0,
                _highest,
            )
            violation = top - least
            Ki = tl.load(K + i * Q + o)
            fall = top - f
            bend = tl.maximum(curve_i + curve - 2.0 * Ki, FLAT)
            gain = tl.where(shrinks & (fall > 0.0), fall * fall / bend, -1.0)
            _, j, room_j, bend_j, fall_j = tl.reduce((gain, o, d - low, bend, fall), 0, _best)
            Kj = tl.load(K + j * Q + o)
            step = tl.minimum(tl.minimum(fall_j / bend_j, room_i), room_j)
            step = tl.where(violation > stop, step, 0.0)
            f -= step * (Ki - Kj)
            d = tl.where(o == i, tl.where(step >= room_i, high, d + step), d)
            d = tl.where(o == j, tl.where(step >= room_j, low, d - step), d)
            steps += (violation > stop).to(tl.int32)
        # At a bound β is that bound; what rounding has made of Σβ the roomiest variable takes up.
        new = tl.where(d >= high, upper, tl.where(d <= low, lower, beta + d.to(tl.float64)))
        new = tl.where(d == 0.0, beta, new)
        rest = tl.sum(new - beta, 0)
        room, i = tl.reduce((tl.minimum(new - lower, upper - new), o), 0, _roomiest)
        rest = tl.where(room > tl.abs(rest), rest, 0.0)
        new = tl.where(o == i, new - rest, new)
        change = new - beta
        tl.store(BETA + place, new)
        if HAS_RIDGE:
            tl.store(F + place, tl.load(F + place) - tl.load(RIDGE + place) * change)
        # Those that moved, one after the other.
        has_moved = change != 0.0
        at = t * Q + tl.cumsum(has_moved.to(tl.int32), 0) - 1
        tl.store(MOVED + at, change, mask=has_moved)
        tl.store(FROM + at, tl.load(SLOT + tl.load(INDEX + place)), mask=has_moved)
        tl.store(COUNT + t, tl.sum(has_moved.to(tl.int32), 0))
        tl.store(STEPS + t, tl.load(STEPS + t) + steps)

    @triton.jit
    def _gather(STORE, SLOT, INDEX, SET, CURVE, OUT, width, length, Q: tl.constexpr):
        """Write K + D of one row of a working set."""
        t, r = tl.program_id(0).to(tl.int64), tl.program_id(1)
        o = tl.arange(0, Q)
        mine = tl.load(SET + t * Q + r)
        others = tl.load(SET + t * Q + o)
        slot = tl.maximum(tl.load(SLOT + tl.load(INDEX + t * width + mine)), 0).to(tl.int64)
        values = tl.load(STORE + slot * length + tl.load(INDEX + t * width + others))
        values = tl.where(o == r, tl.load(CURVE + t * width + mine), values)
        tl.store(OUT + (t * Q + r) * Q + o, values.to(OUT.dtype.element_ty))

    @triton.jit
    def _subtract(
        STORE, INDEX, MOVED, FROM, COUNT, F, width, length, Q: tl.constexpr, ROWS: tl.constexpr,
        COLUMNS: tl.constexpr,
    ):  # fmt: skip
        """Do f ← f − K[:, set] moved, for some columns of one task."""
        t = tl.program_id(0).to(tl.int64)
        c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        inside = c < width
        column = tl.load(INDEX + t * width + c, mask=inside, other=0)
        total = tl.zeros([ROWS, COLUMNS], tl.float64)
        n_moved = tl.load(COUNT + t)
        for k in range(0, n_moved, ROWS):
            r = k + tl.arange(0, ROWS)
            by = tl.load(MOVED + t * Q + r, mask=r < n_moved, other=0.0)
            slot = tl.load(FROM + t * Q + r, mask=r < n_moved, other=0).to(tl.int64)
            values = tl.load(
                STORE + slot[:, None] * length + column[None, :], mask=inside[None, :], other=0.0
            )
            total += by[:, None] * values.to(tl.float64)
        place = F + t * width + c
        before = tl.load(place, mask=inside, other=0.0)
        tl.store(place, before - tl.sum(total, 0), mask=inside)

    @triton.jit
    def _wrong(F, BETA, LOWER, UPPER, TAKEN, c, inside, top, low, scale, BINS: tl.constexpr):
        """Return in which bin the violations of some variables are, of rising and of falling f.

        Bin 0 is for variables that do not violate in this way, or are in the working set already.
        """
        f = tl.load(F + c, mask=inside, other=0.0)
        beta = tl.load(BETA + c, mask=inside, other=0.0)
        is_open = inside & (tl.load(TAKEN + c, mask=inside, other=1) == 0)
        rises = is_open & (beta < tl.load(UPPER + c, mask=inside, other=0.0))
        falls = is_open & (beta > tl.load(LOWER + c, mask=inside, other=0.0))
        up, down = tl.where(rises, f - low, 0.0), tl.where(falls, top - f, 0.0)
        is_up = up >= down
        up, down = tl.where(is_up, up, 0.0), tl.where(is_up, 0.0, down)
        most = BINS - 1
        up_bin = tl.where(up > 0.0, tl.minimum(1.0 + up * scale, most), 0.0).to(tl.int32)
        down_bin = tl.where(down > 0.0, tl.minimum(1.0 + down * scale, most), 0.0).to(tl.int32)
        return up_bin, down_bin

    @triton.jit
    def _threshold(counts, wanted, BINS: tl.constexpr):
        """Return the bin down to which variables are taken, and how many of that bin itself."""
        b = tl.arange(0, BINS)
        counts = tl.where(b > 0, counts, 0)
        from_here = tl.cumsum(counts, 0, reverse=True)
        bin = tl.max(tl.where((from_here >= wanted) & (b > 0), b, 1), 0)
        above = tl.sum(tl.where(b > bin, counts, 0), 0)
        return bin, wanted - above, tl.sum(counts, 0)

    @triton.jit(do_not_specialize=["now"])
    def _survey(
        F, BETA, LOWER, UPPER, TARGET, SET, SINCE, NEW_SET, NEW_SINCE, TAKEN, KEPT, PARTS, now,
        width, Q: tl.constexpr, MOST: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        """Survey some variables of a task; the first program keeps members of the last set."""
        t, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
        F += t * width
        BETA += t * width
        LOWER += t * width
        UPPER += t * width
        c = part * BLOCK + tl.arange(0, BLOCK)
        inside = c < width
        f, beta = tl.load(F + c, mask=inside, other=0.0), tl.load(BETA + c, mask=inside, other=0.0)
        rises = beta < tl.load(UPPER + c, mask=inside, other=0.0)
        falls = beta > tl.load(LOWER + c, mask=inside, other=0.0)
        value = beta * (f + tl.load(TARGET + t * width + c, mask=inside, other=0.0))
        place = PARTS + (t * tl.num_programs(1) + part) * 3
        tl.store(place, tl.max(tl.where(rises & inside, f, float("-inf")), 0))
        tl.store(place + 1, tl.min(tl.where(falls & inside, f, float("inf")), 0))
        tl.store(place + 2, -0.5 * tl.sum(value, 0))
        if part == 0:
            # Free variables stay first, then those that came last.
            o = tl.arange(0, Q)
            members, since = tl.load(SET + t * Q + o), tl.load(SINCE + t * Q + o)
            present, now_at = members < width - 1, tl.load(BETA + members)
            free = (now_at > tl.load(LOWER + members)) & (now_at < tl.load(UPPER + members))
            bin = 255 - tl.minimum(now - since, 254) + tl.where(free, 256, 0)
            last, more, _ = _threshold(tl.histogram(bin, 512, mask=present), MOST, 512)
            at_last = (present & (bin == last)).to(tl.int32)
            stays = present & ((bin > last) | ((at_last > 0) & (tl.cumsum(at_last, 0) <= more)))
            at = t * Q + tl.cumsum(stays.to(tl.int32), 0) - 1
            tl.store(NEW_SET + at, members, mask=stays)
            tl.store(NEW_SINCE + at, since, mask=stays)
            tl.store(KEPT + t, tl.sum(stays.to(tl.int32), 0))
            tl.store(TAKEN + t * width + members, stays.to(tl.int8))

    @triton.jit
    def _extremes(PARTS, t, n_parts, P: tl.constexpr):
        p = tl.arange(0, P)
        place = PARTS + (t * n_parts + p) * 3
        tops = tl.load(place, mask=p < n_parts, other=float("-inf"))
        lows = tl.load(place + 1, mask=p < n_parts, other=float("inf"))
        values = tl.load(place + 2, mask=p < n_parts, other=0.0)
        return tl.max(tops, 0), tl.min(lows, 0), tl.sum(values, 0)

    @triton.jit
    def _bins(
        F, BETA, LOWER, UPPER, TAKEN, PARTS, t, width, P: tl.constexpr, BINS: tl.constexpr,
        BLOCK: tl.constexpr,
    ):  # fmt: skip
        """Return variables of a part with the bins of their violations."""
        top, low, _ = _extremes(PARTS, t, tl.num_programs(1), P)
        scale = (BINS - 2) / tl.maximum(top - low, 1e-300)
        c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        at = t * width
        up, down = _wrong(
            F + at, BETA + at, LOWER + at, UPPER + at, TAKEN + at, c, c < width, top, low, scale,
            BINS,
        )  # fmt: skip
        return c, up, down

    @triton.jit
    def _count(
        F, BETA, LOWER, UPPER, TAKEN, PARTS, COUNTS, width, P: tl.constexpr, BINS: tl.constexpr,
        BLOCK: tl.constexpr,
    ):  # fmt: skip
        """Count the violators of a part by the size of their violation."""
        t = tl.program_id(0).to(tl.int64)
        _, up, down = _bins(F, BETA, LOWER, UPPER, TAKEN, PARTS, t, width, P, BINS, BLOCK)
        b = tl.arange(0, BINS)
        place = COUNTS + (t * tl.num_programs(1) + tl.program_id(1)) * 2 * BINS + b
        tl.store(place, tl.histogram(up, BINS, mask=up > 0))
        tl.store(place + BINS, tl.histogram(down, BINS, mask=down > 0))

    @triton.jit(do_not_specialize=["now"])
    def _share(
        COUNTS, KEPT, PARTS, LIMITS, PLACES, NEW_SET, NEW_SINCE, NUMBERS, now, width, n_parts,
        Q: tl.constexpr, P: tl.constexpr, BINS: tl.constexpr, SOME: tl.constexpr,
    ):  # fmt: skip
        """Find the bins down to which violators are taken, and where each part puts its own."""
        t = tl.program_id(0).to(tl.int64)
        COUNTS += t * n_parts * 2 * BINS
        b, s = tl.arange(0, BINS), tl.arange(0, SOME)
        rising, falling = tl.zeros([BINS], tl.int32), tl.zeros([BINS], tl.int32)
        for first in range(0, n_parts, SOME):
            p = first + s
            place = COUNTS + p[:, None] * 2 * BINS + b[None, :]
            there = (p < n_parts)[:, None]
            rising += tl.sum(tl.load(place, mask=there, other=0), 0)
            falling += tl.sum(tl.load(place + BINS, mask=there, other=0), 0)
        kept = tl.load(KEPT + t)
        half = (Q - kept) // 2
        up_bin, up_more, n_up = _threshold(rising, half, BINS)
        down_bin, down_more, n_down = _threshold(falling, Q - kept - tl.minimum(n_up, half), BINS)
        if n_down < half:  # the others may have the room
            up_bin, up_more, n_up = _threshold(rising, Q - kept - n_down, BINS)
        tl.store(LIMITS + 2 * t, up_bin)
        tl.store(LIMITS + 2 * t + 1, down_bin)
        before = kept
        for first in range(0, n_parts, SOME):
            p = first + s
            place = COUNTS + p[:, None] * 2 * BINS + b[None, :]
            there = (p < n_parts)[:, None]
            up = tl.load(place, mask=there, other=0)
            down = tl.load(place + BINS, mask=there, other=0)
            above = tl.sum(tl.where(b[None, :] > up_bin, up, 0), 1)
            above += tl.sum(tl.where(b[None, :] > down_bin, down, 0), 1)
            at_up = tl.sum(tl.where(b[None, :] == up_bin, up, 0), 1)
            at_down = tl.sum(tl.where(b[None, :] == down_bin, down, 0), 1)
            more_up = up_more - (tl.cumsum(at_up, 0) - at_up)
            more_down = down_more - (tl.cumsum(at_down, 0) - at_down)
            taken = above + tl.minimum(tl.maximum(more_up, 0), at_up)
            taken += tl.minimum(tl.maximum(more_down, 0), at_down)
            place = PLACES + (t * n_parts + p) * 3
            tl.store(place, before + tl.cumsum(taken, 0) - taken, mask=p < n_parts)
            tl.store(place + 1, more_up, mask=p < n_parts)
            tl.store(place + 2, more_down, mask=p < n_parts)
            before += tl.sum(taken, 0)
            up_more -= tl.sum(at_up, 0)
            down_more -= tl.sum(at_down, 0)
        o = tl.arange(0, Q)
        tl.store(NEW_SET + t * Q + o, (o * 0 + width - 1).to(tl.int64), mask=o >= before)
        tl.store(NEW_SINCE + t * Q + o, o * 0 + now, mask=o >= kept)
        top, low, value = _extremes(PARTS, t, n_parts, P)
        tl.store(NUMBERS + 3 * t, top)
        tl.store(NUMBERS + 3 * t + 1, low)
        tl.store(NUMBERS + 3 * t + 2, value)

    @triton.jit
    def _pick(
        F, BETA, LOWER, UPPER, TAKEN, PARTS, LIMITS, PLACES, NEW_SET, width,
        Q: tl.constexpr, P: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        """Put the violators of a part into the working set."""
        t = tl.program_id(0).to(tl.int64)
        c, up, down = _bins(F, BETA, LOWER, UPPER, TAKEN, PARTS, t, width, P, BINS, BLOCK)
        up_bin, down_bin = tl.load(LIMITS + 2 * t), tl.load(LIMITS + 2 * t + 1)
        place = PLACES + (t * tl.num_programs(1) + tl.program_id(1)) * 3
        at_up, at_down = (up == up_bin).to(tl.int32), (down == down_bin).to(tl.int32)
        take = (up > up_bin) | (down > down_bin)
        take |= (at_up > 0) & (tl.cumsum(at_up, 0) <= tl.load(place + 1))
        take |= (at_down > 0) & (tl.cumsum(at_down, 0) <= tl.load(place + 2))
        at = tl.load(place) + tl.cumsum(take.to(tl.int32), 0) - 1
        tl.store(NEW_SET + t * Q + at, c.to(tl.int64), mask=take & (at < Q))

    @triton.jit(do_not_specialize=["n_used", "n_slots"])
    def _note_missing(
        SET, INDEX, SLOT, MISSING, COUNT, n_used, n_slots, width, Q: tl.constexpr
    ):  # fmt: skip
        """List the rows of a working set that are not stored, and give them slots in order."""
        o = tl.arange(0, Q)
        members = tl.load(SET + o)
        row = tl.load(INDEX + members)
        is_missing = (tl.load(SLOT + row) < 0) & (members < width - 1)
        place = tl.cumsum(is_missing.to(tl.int32), 0) - 1
        count = tl.sum(is_missing.to(tl.int32), 0)
        tl.store(MISSING + place, row, mask=is_missing)
        end = tl.where(count + n_used <= n_slots, Q, 0)
        tl.store(SLOT + row, (place + n_used).to(tl.int32), mask=is_missing & (place < end))
        tl.store(COUNT, count.to(tl.float64))


def gaussian_(dot: Any, x_sq: Any, z_sq: Any, gamma: float, rows: Any = None) -> None:
    """Turn inner products into exp(−γ‖x − z‖²), in place; ``rows`` are those of all columns."""
    _write_gaussian(dot, x_sq, z_sq, gamma, rows, dot, None)


def gaussian_rows(
    dot: Any, x_sq: Any, z_sq: Any, gamma: float, rows: Any, out: Any, slots: Any
) -> None:
    """Write exp(−γ‖x − z‖²) of some rows and all columns to the rows of ``out`` at their slots."""
    _write_gaussian(dot, x_sq, z_sq, gamma, rows, out, slots)


def _write_gaussian(
    dot: Any, x_sq: Any, z_sq: Any, gamma: float, rows: Any, out: Any, slots: Any
) -> None:
    (n, m), block, high = dot.shape, 1024, float(np.float32(gamma))
    launch(_gaussian, (n, triton.cdiv(m, block)))(
        dot, x_sq, z_sq, x_sq if rows is None else rows, out, x_sq if slots is None else slots,
        high, gamma - high, m, dot.stride(0), out.stride(0),
        IS_WIDE=rows is not None, HAS_SLOTS=slots is not None, BLOCK=block,
    )  # fmt: skip


def warps(size: int) -> int:
    """Return the warps of a program that steps over a working set of this size."""
    return max(1, min(8, size // 128))


def pair_steps(
    block: Any, members: Any, state: Any, slot: Any, stop: Any, max_steps: int
) -> Changes:
    """Solve the problem of one working set per task; write β, and return by how much it moved."""
    n_tasks, size = members.shape
    changes = Changes.empty(n_tasks, size, members.device)
    launch(_pair_steps, (n_tasks,))(
        block, members, state.index, slot, state.f, state.beta, state.lower, state.upper,
        state.curve, state.ridge, stop, *changes, state.steps, state.f.shape[1], max_steps,
        Q=size, HAS_RIDGE=state.has_ridge, num_warps=warps(size),
    )  # fmt: skip
    return changes


def gather(store: Any, slot: Any, members: Any, state: Any, out: Any) -> None:
    """Write K + D of the working sets to ``out``, of shape (n_tasks, Q, Q)."""
    n_tasks, size = members.shape
    launch(_gather, (n_tasks, size))(
        store, slot, state.index, members, state.curve, out, state.f.shape[1], store.shape[1],
        Q=size,
    )  # fmt: skip


def subtract(store: Any, changes: Changes, state: Any) -> None:
    """Do f ← f − K[:, set] moved for all variables of all tasks."""
    n_tasks, size = changes.moved.shape
    width, columns = state.f.shape[1], 128
    launch(_subtract, (n_tasks, triton.cdiv(width, columns)))(
        store, state.index, *changes, state.f, width, store.shape[1],
        Q=size, ROWS=min(16, size), COLUMNS=columns,
    )  # fmt: skip


def renew(members: Any, since: Any, taken: Any, now: int, n_kept: int, state: Any) -> Any:
    """Return the next working sets, since when each member is there, and numbers of the tasks."""
    (n_tasks, size), width, device = members.shape, state.f.shape[1], members.device
    block = max(MIN_PART, triton.next_power_of_2(triton.cdiv(width, MAX_PARTS)))
    n_parts = triton.cdiv(width, block)
    grid, sizes = (n_tasks, n_parts), {"P": triton.next_power_of_2(n_parts), "BINS": BINS}
    numbers, parts = (
        torch.empty(shape, dtype=torch.float64, device=device)
        for shape in ((n_tasks, 3), (n_tasks, n_parts, 3))
    )
    counts, places, limits, kept = (
        torch.empty(shape, dtype=torch.int32, device=device)
        for shape in ((n_tasks, n_parts, 2, BINS), (n_tasks, n_parts, 3), (n_tasks, 2), (n_tasks,))
    )
    chosen, times = torch.empty_like(members), torch.empty_like(since)
    variables = state.f, state.beta, state.lower, state.upper
    launch(_survey, grid)(
        *variables, state.target, members, since, chosen, times, taken, kept, parts, now, width,
        Q=size, MOST=n_kept, BLOCK=block,
    )  # fmt: skip
    launch(_count, grid)(*variables, taken, parts, counts, width, BLOCK=block, **sizes)
    launch(_share, (n_tasks,))(
        counts, kept, parts, limits, places, chosen, times, numbers, now, width, n_parts,
        Q=size, SOME=16, num_warps=8, **sizes,
    )  # fmt: skip
    launch(_pick, grid)(
        *variables, taken, parts, limits, places, chosen, width, Q=size, BLOCK=block, **sizes
    )
    return chosen, times, numbers


def note_missing(
    members: Any, state: Any, slot: Any, missing: Any, n_used: int, n_slots: int
) -> Any:
    """Write the rows of one working set that are not stored, and return how many there are.

    They are given slots in order from ``n_used`` on, where there are as many.
    """
    count = torch.empty(1, dtype=torch.float64, device=members.device)
    launch(_note_missing, (1,))(
        members, state.index, slot, missing, count, n_used, n_slots, state.f.shape[1],
        Q=members.shape[1], num_warps=8,
    )  # fmt: skip
    return count
