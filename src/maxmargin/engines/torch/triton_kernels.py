"""Fused passes in Triton: kernel values, working sets and gradients of many tasks at once.

Every function takes tensors on a card; `blocks` has the same for other devices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for the CPU comes without it
    triton = None


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
    def _gaussian(K, X_SQ, Z_SQ, gamma, n, stride, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        place = K + row * stride + at
        square = tl.load(X_SQ + row) + tl.load(Z_SQ + at, mask=inside, other=0.0)
        square -= 2.0 * tl.load(place, mask=inside, other=0.0)
        tl.store(place, tl.exp(-gamma * tl.maximum(square, 0.0)), mask=inside)

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

    @triton.jit
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
        slot = tl.load(SLOT + tl.load(INDEX + t * width + mine)).to(tl.int64)
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

    @triton.jit
    def _renew(
        F, BETA, LOWER, UPPER, TARGET, SET, SINCE, NEW_SET, NEW_SINCE, TAKEN, NUMBERS, now, width,
        Q: tl.constexpr, KEPT: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        """Choose the next working set of one task; see `selection.renew`."""
        t = tl.program_id(0).to(tl.int64)
        F += t * width
        BETA += t * width
        LOWER += t * width
        UPPER += t * width
        TARGET += t * width
        TAKEN += t * width
        o, chunk = tl.arange(0, Q), tl.arange(0, BLOCK)
        tops = tl.full([BLOCK], float("-inf"), tl.float64)
        lows = tl.full([BLOCK], float("inf"), tl.float64)
        values = tl.zeros([BLOCK], tl.float64)
        for start in range(0, width, BLOCK):
            c = start + chunk
            inside = c < width
            f = tl.load(F + c, mask=inside, other=0.0)
            beta = tl.load(BETA + c, mask=inside, other=0.0)
            rises = inside & (beta < tl.load(UPPER + c, mask=inside, other=0.0))
            falls = inside & (beta > tl.load(LOWER + c, mask=inside, other=0.0))
            tops = tl.maximum(tops, tl.where(rises, f, float("-inf")))
            lows = tl.minimum(lows, tl.where(falls, f, float("inf")))
            values += beta * (f + tl.load(TARGET + c, mask=inside, other=0.0))
        top, low = tl.max(tops, 0), tl.min(lows, 0)
        tl.store(NUMBERS + 3 * t, top)
        tl.store(NUMBERS + 3 * t + 1, low)
        tl.store(NUMBERS + 3 * t + 2, -0.5 * tl.sum(values, 0))
        # Of the last set, free variables stay first, then those that came last.
        members, since = tl.load(SET + t * Q + o), tl.load(SINCE + t * Q + o)
        beta = tl.load(BETA + members)
        free = (beta > tl.load(LOWER + members)) & (beta < tl.load(UPPER + members))
        key = (since + tl.where(free, 1 << 24, 0)).to(tl.int64) * Q + o
        order = tl.sort(key, descending=True) % Q
        chosen = tl.load(SET + t * Q + order)
        kept = o < KEPT
        tl.store(TAKEN + members, tl.zeros([Q], tl.int8))
        tl.debug_barrier()
        tl.store(TAKEN + chosen, tl.full([Q], 1, tl.int8), mask=kept)
        tl.store(NEW_SET + t * Q + o, tl.where(kept, chosen, width - 1))
        tl.store(NEW_SINCE + t * Q + o, tl.where(kept, tl.load(SINCE + t * Q + order), now))
        tl.debug_barrier()
        scale = (BINS - 2) / tl.maximum(top - low, 1e-300)
        rising, falling = tl.zeros([BINS], tl.int32), tl.zeros([BINS], tl.int32)
        for start in range(0, width, BLOCK):
            c = start + chunk
            up, down = _wrong(F, BETA, LOWER, UPPER, TAKEN, c, c < width, top, low, scale, BINS)
            rising += tl.histogram(up, BINS)
            falling += tl.histogram(down, BINS)
        fresh = Q - KEPT
        up_bin, up_more, n_up = _threshold(rising, fresh // 2, BINS)
        wanted = fresh - tl.minimum(n_up, fresh // 2)
        down_bin, down_more, _ = _threshold(falling, wanted, BINS)
        count = KEPT
        for start in range(0, width, BLOCK):
            c = start + chunk
            up, down = _wrong(F, BETA, LOWER, UPPER, TAKEN, c, c < width, top, low, scale, BINS)
            at_up, at_down = (up == up_bin).to(tl.int32), (down == down_bin).to(tl.int32)
            take = (up > up_bin) | (down > down_bin)
            take |= (at_up > 0) & (tl.cumsum(at_up, 0) <= up_more)
            take |= (at_down > 0) & (tl.cumsum(at_down, 0) <= down_more)
            up_more -= tl.sum(at_up, 0)
            down_more -= tl.sum(at_down, 0)
            place = count + tl.cumsum(take.to(tl.int32), 0) - 1
            tl.store(NEW_SET + t * Q + place, c.to(tl.int64), mask=take & (place < Q))
            count += tl.sum(take.to(tl.int32), 0)


def gaussian_(dot: Any, x_sq: Any, z_sq: Any, gamma: float) -> None:
    """Turn inner products into exp(−γ‖x − z‖²), in place."""
    n, m = dot.shape
    block = 1024
    _gaussian[(n, triton.cdiv(m, block))](dot, x_sq, z_sq, gamma, m, dot.stride(0), BLOCK=block)


def warps(size: int) -> int:
    """Return the warps of a program that steps over a working set of this size."""
    return max(1, min(8, size // 128))


def pair_steps(
    block: Any, members: Any, state: Any, slot: Any, stop: Any, max_steps: int
) -> Changes:
    """Solve the problem of one working set per task; write β, and return by how much it moved."""
    n_tasks, size = members.shape
    changes = Changes.empty(n_tasks, size, members.device)
    _pair_steps[(n_tasks,)](
        block, members, state.index, slot, state.f, state.beta, state.lower, state.upper,
        state.curve, state.ridge, stop, *changes, state.steps, state.f.shape[1], max_steps,
        Q=size, HAS_RIDGE=state.has_ridge, num_warps=warps(size),
    )  # fmt: skip
    return changes


def gather(store: Any, slot: Any, members: Any, state: Any, out: Any) -> None:
    """Write K + D of the working sets to ``out``, of shape (n_tasks, Q, Q)."""
    n_tasks, size = members.shape
    _gather[(n_tasks, size)](
        store, slot, state.index, members, state.curve, out, state.f.shape[1], store.shape[1],
        Q=size,
    )  # fmt: skip


def subtract(store: Any, changes: Changes, state: Any) -> None:
    """Do f ← f − K[:, set] moved for all variables of all tasks."""
    n_tasks, size = changes.moved.shape
    width, columns = state.f.shape[1], 128
    _subtract[(n_tasks, triton.cdiv(width, columns))](
        store, state.index, *changes, state.f, width, store.shape[1],
        Q=size, ROWS=min(16, size), COLUMNS=columns,
    )  # fmt: skip


def renew(members: Any, since: Any, taken: Any, now: int, n_kept: int, state: Any) -> Any:
    """Return the next working sets, since when each member is there, and numbers of the tasks."""
    n_tasks, size = members.shape
    width = state.f.shape[1]
    numbers = torch.empty((n_tasks, 3), dtype=torch.float64, device=members.device)
    chosen, times = torch.empty_like(members), torch.empty_like(since)
    block = min(8192, triton.next_power_of_2(width))
    _renew[(n_tasks,)](
        state.f, state.beta, state.lower, state.upper, state.target, members, since, chosen, times,
        taken, numbers, now, width, Q=size, KEPT=n_kept, BINS=512, BLOCK=block,
        num_warps=max(4, min(16, block // 256)),
    )  # fmt: skip
    return chosen, times, numbers
