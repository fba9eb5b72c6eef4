"""Kernel values that are a formula of ⟨x,z⟩, ‖x‖² and ‖z‖², and bounds of their rounding errors."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...kernels import RBF, Kernel
from ...kernels.products import finite
from ...runtime.threads import in_parallel
from .gaussian import gaussian
from .tiles import BLOCK_ROWS, LINEAR, Scratch, fill_block, formula_of, n_parts
from .values import TILE_COLUMNS, TILE_ROWS, UNIT, Values


class Products(Values):
    """A formula of ⟨x,z⟩, ‖x‖² and ‖z‖²; the ways to ⟨x,z⟩ differ.

    ``squares`` are ‖x‖², ``terms`` the roundings of an inner product at most, ``formula`` the
    kernel's number in compiled code, which does not know all kernels, and ``has_columns`` says
    whether `right` may be asked for all columns.
    """

    squares: Floats
    terms: int
    formula: int | None
    has_columns = True

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, X, index, dtype)
        self.formula = formula_of(kernel)
        self.gamma = float(getattr(kernel, "gamma", 0.0))
        self.scratch = Scratch(dtype)

    @abstractmethod
    def left(self, rows: Integers | None = None) -> tuple[Any, ...]:
        """Return rows, all by default, as the left operand of tiles."""

    @abstractmethod
    def right(self, rows: Integers | None = None) -> tuple[Any, ...]:
        """Return rows, all by default, as the right operand of tiles."""

    def prepare(self, rows: Integers) -> tuple[Any, ...]:
        return self.left(rows)

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        left = (*prepared[:-2], prepared[-2][part], prepared[-1][part])
        self._fill(left, self._strip(columns), out)

    def _strip(self, columns: slice) -> tuple[Any, ...]:
        """Return consecutive columns, from the first of a panel on, as the right operand."""
        if not self.has_columns:
            return self.right(np.arange(columns.start, columns.stop))
        panels, squares = self.right()
        width = panels.shape[2]
        first, last = columns.start // width, -(-columns.stop // width)
        return panels[first:last], squares[first * width : last * width]

    def against(self, columns: Integers) -> Any:
        return self.right(columns), columns.size

    def block(self, rows: Integers, columns: Any) -> Floats:
        right, n_columns = columns
        out = np.empty((rows.size, n_columns), dtype=self.dtype)
        self._fill(self.left(rows), right, out)
        return out

    def _fill(self, left: tuple[Any, ...], right: tuple[Any, ...], out: Floats) -> None:
        """Write K of the operands to ``out``."""
        height, width = out.shape
        formula = LINEAR if self.formula is None else self.formula
        parts = n_parts(height, BLOCK_ROWS) * n_parts(width, TILE_COLUMNS)
        fill_block(parts, left, right, formula, self.gamma, out, *self.scratch.tiles())
        if self.formula is None:

            def work(start: int, stop: Event) -> None:
                part = slice(start, start + TILE_ROWS)
                self._transform(out[part], left[-1][part], right[-1][:width])

            in_parallel(work, range(0, height, TILE_ROWS))

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        squares, weights = self.squares[: self.n_samples], np.abs(v)
        own = squares[rows].astype(np.float64)
        # Sums of float64 numbers, whatever K is.
        size = self.kernel._largest(own, squares[columns]) * float(weights.sum())
        sums = (columns.size + 2) * UNIT * size
        if self.relative is not None:
            return self.relative[rows] * float(self.weights(columns, v).sum()) + sums
        others = squares[columns].astype(np.float64)
        return self.kernel.rounding(own, others, weights, self.terms, self.unit) + sums

    @cached_property
    def typical(self) -> float:
        """A typical ‖x‖², which outliers do not move."""
        squares = self.squares[: self.n_samples]
        return float(np.median(squares)) or float(np.mean(squares, dtype=np.float64))

    @cached_property
    def relative(self) -> Floats | None:
        return self.relative_within(np.inf)

    def relative_within(self, radius: float) -> Floats | None:
        """Return ρ with \\|ΔK_ij\\| ≤ ρ_i (1 + ‖x_j‖²/q) K_ij for all ‖x_j‖² ≤ ``radius``.

        The error of γ‖x − z‖² is at most some units times 2γ(‖x‖² + ‖z‖²), and that sum at most
        max(‖x‖², q)(1 + ‖z‖²/q), q a typical ‖x‖².
        """
        if type(self.kernel) is not RBF:
            return None
        squares = self.squares[: self.n_samples].astype(np.float64)
        farthest = float(squares.max(initial=0.0, where=squares <= radius))
        # The squares are sums of float64 numbers: of the error of a distance half is left, that of
        # the inner product, and 7 roundings: of x, z, their squares, γ and three sums.
        terms = 0.5 * self.terms + 7.5 if self.dtype == np.float32 else self.terms + 8.0
        errors = 2.0 * self.kernel.gamma * terms * self.unit
        most = np.minimum(errors * (squares + farthest), 700.0)
        growth = np.expm1(most) / np.maximum(most, np.finfo(float).tiny)
        return errors * growth * np.maximum(squares, self.typical) + 6.0 * self.unit

    def weights(self, columns: Integers, v: Floats) -> Floats:
        """Return \\|v_j\\|(1 + ‖x_j‖²/q), by which `relative` multiplies K."""
        squares = self.squares[columns].astype(np.float64)
        return np.abs(v) * (1.0 + squares / max(self.typical, np.finfo(float).tiny))

    def _transform(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> None:
        if type(self.kernel) is RBF:
            gaussian(dot, x_sq, z_sq, self.kernel.gamma)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                dot[:] = finite(self.kernel.from_products(dot, x_sq, z_sq), self.kernel)
