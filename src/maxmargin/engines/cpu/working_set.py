"""The working set of a decomposition: K + D of its members in one aligned block."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...arrays import Floats, Integers
from ...runtime.simd import aligned, square
from ...runtime.team import parallel
from .coordinate_ascent import single_steps
from .smo import pair_steps

# Columns of the block that one core writes at a time.
STRIP_COLUMNS = 128
# Numbers in a vector of float32: the places of a group begin at whole vectors.
VECTOR = 16


class KernelBlocks(Protocol):
    """Where K of some variables comes from."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the kernel values."""

    def padded(self) -> Floats | None:
        """Return all of K if it is stored so that vectors may be read beyond the end of a row."""

    def block(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """Return K[rows, columns]."""


class BlockState(Protocol):
    """The state of a problem, as far as a working set of it needs that on the host."""

    everything: Integers
    curvature: Floats
    lower: Floats
    upper: Floats
    ridge: Floats

    @property
    def gram(self) -> KernelBlocks:
        """K."""

    @property
    def has_groups(self) -> bool:
        """Whether the sums of groups are fixed."""

    def moving(self, rows: Integers) -> tuple[Floats, Floats]:
        """Return β and f of some variables."""


class WorkingSet:
    """Some variables of a state at places of their own, and K + D among them.

    A variable keeps its place, and its kernel values, until another one is put there. Places
    without a variable have equal bounds, so that nothing moves there.
    """

    def __init__(self, capacity: list[int]) -> None:
        self.edges = np.cumsum([0, *(-(-n // VECTOR) * VECTOR for n in capacity)])
        self.members: Integers = np.full(self.edges[-1], -1)
        self._K: Floats | None = None

    def hold(self, state: BlockState, members: list[Integers]) -> None:
        """Hold these variables, and fetch the kernel values of those that are new at a place."""
        wanted = np.full(self.members.size, -1)
        for start, rows in zip(self.edges, members, strict=False):
            wanted[start : start + rows.size] = rows
        fresh = np.flatnonzero(wanted != self.members)
        self.members, n = wanted, state.everything.size
        if fresh.size == n and np.array_equal(wanted[:n], state.everything):
            self._K = _whole(state)
        elif self._K is None:
            self._K = aligned((wanted.size, wanted.size), state.gram.dtype)
            self._fetch(state, self._K, fresh)
        elif fresh.size:
            self._fetch(state, self._K, fresh)

    def _fetch(self, state: BlockState, K: Floats, fresh: Integers) -> None:
        """Write the kernel values of the variables at some places to the block."""
        present = np.flatnonzero(self.members >= 0)
        rows, is_fresh = self.members[fresh], np.isin(present, fresh)
        values = np.ascontiguousarray(state.gram.block(rows, self.members[present]))
        write_block(-(-present.size // STRIP_COLUMNS), values, fresh, present, is_fresh, K)
        K[fresh, fresh] = state.curvature[rows]

    def solve(self, state: BlockState, stop: float, max_steps: int) -> tuple[Integers, Floats, int]:
        """Solve the problem of the members; return them, their β and the steps made."""
        K = self._K
        assert K is not None
        present = self.members >= 0
        rows = self.members[present]
        size = self.members.size
        beta, lower, upper = aligned((3, size), np.float64)
        f, curvature, raisable, lowerable = aligned((4, size), K.dtype)
        beta[present], f[present] = state.moving(rows)
        lower[present], upper[present] = state.lower[rows], state.upper[rows]
        curvature[present] = state.curvature[rows]
        parts = (K, curvature, beta, lower, upper, f, raisable, lowerable)
        if state.has_groups:
            steps = pair_steps(*parts, self.edges, stop, max_steps)
        else:
            steps = single_steps(*parts, stop, max_steps)
        return rows, beta[present], int(steps)


def _whole(state: BlockState) -> Floats:
    """Return K + D of all variables; the stored matrix itself where that may be."""
    gram, n = state.gram, state.everything.size
    if not state.ridge.any():
        stored = gram.padded()
        if stored is not None:
            return stored
    K: Floats = square(n, gram.dtype)
    K[:] = gram.block(np.arange(n), np.arange(n))
    np.fill_diagonal(K, state.curvature)
    return K


@parallel
def write_block(part, values, fresh, present, is_fresh, K):
    """Write values[r, c] to K[fresh_r, present_c] and to its mirror image, in squares.

    Rows of fresh places are written as they are: their mirror images may differ by rounding, and
    which of the two came last would depend on the threads.
    """
    square = np.empty((64, 64), dtype=K.dtype)  # rows of values lie too far apart for the cache
    start = part * STRIP_COLUMNS
    stop = min(start + STRIP_COLUMNS, present.size)
    for first in range(0, fresh.size, 64):
        height = min(64, fresh.size - first)
        for c in range(start, stop, 64):
            width = min(64, stop - c)
            for r in range(height):
                row, numbers = K[fresh[first + r]], values[first + r][c : c + width]
                for s in range(width):
                    row[present[c + s]] = numbers[s]
                    square[s, r] = numbers[s]
            for s in range(width):
                if is_fresh[c + s]:
                    continue
                row, numbers = K[present[c + s]], square[s]
                for r in range(height):
                    row[fresh[first + r]] = numbers[r]
