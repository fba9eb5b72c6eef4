"""Kernel values that are a formula of ⟨x,z⟩, ‖x‖² and ‖z‖², and bounds of their rounding errors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...kernels import RBF
from ...kernels.products import finite
from .gaussian import gaussian
from .values import UNIT, Values


class Products(Values):
    """A formula of ⟨x,z⟩, ‖x‖² and ‖z‖²; the ways to ⟨x,z⟩ differ.

    ``squares`` are ‖x‖², and ``terms`` the roundings of an inner product at most.
    """

    squares: Floats
    terms: int

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
                dot[:] = finite(self.kernel.from_products(dot, x_sq, z_sq), repr(self.kernel))
