"""Which variables of every task violate most, found in Triton; `selection` says what is wanted.

Violations are counted into bins, part by part: there is no need to sort them. No order of programs
changes the answer.
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

# Variables that one program surveys at least, such programs per task at most, and bins into which
# violations are counted.
MIN_PART, MAX_PARTS, BINS = 1024, 128, 512


if triton is not None:

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
