"""Fused passes in Triton: kernel values, steps of pairs and gradients of many tasks at once.

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
