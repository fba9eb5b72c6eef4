"""Gaussian kernel values where a few rows are far from all others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from .products import Products
from .values import UNIT, Opaque, Values


@dataclass(frozen=True)
class Tuning:
    """When rows are far, and when their values are computed apart."""

    # The relative error of float32 kernel values that is of no concern.
    fine_error: float = 1e-5
    # The largest share of rows that are computed apart.
    largest_far_share: float = 1.0 / 64.0
    # How many times as far from the centre as the median a far row is.
    far_over_median: float = 8.0
    # The relative error of float64 values from which on all come from differences of rows.
    coarse_error: float = 1e-7
    # The relative error of a value from the difference of two rows (RBF.bounded).
    difference_error: float = 1e-11


TUNING = Tuning()


class FarRows(Values):
    """Gaussian kernel values, those of a few far rows by the kernel itself in float64.

    ‖x‖² + ‖z‖² − 2⟨x,z⟩ of rows far from all others, an outlier's or a cluster of them, has lost
    the digits that count: their values are replaced.
    """

    def __init__(self, values: Products, far: Integers) -> None:
        super().__init__(values.kernel, values.X, values.index, values.dtype)
        self.values, self.far = values, far
        self.is_far = np.zeros(self.n_samples, dtype=bool)
        self.is_far[far] = True
        self.squares = values.squares

    @classmethod
    def where_needed(cls, values: Products) -> Values:
        """Return values, mended where that is needed and few rows need it."""
        relative, squares = values.relative, values.squares[: values.n_samples]
        assert relative is not None
        fine = TUNING.fine_error * values.unit / (0.5 * float(np.finfo(np.float32).eps))
        if float(relative.max(initial=0.0)) <= fine:
            return values
        far = np.flatnonzero(squares > TUNING.far_over_median**2 * float(np.median(squares)))
        if 0 < far.size <= TUNING.largest_far_share * values.n_samples:
            return cls(values, far)
        if values.dtype == np.float64 and float(relative.max()) > TUNING.coarse_error:
            return Opaque(values.kernel, values.X, values.index, values.dtype)
        return values

    @property
    def cost(self) -> float:
        return self.values.cost

    @cached_property
    def relative(self) -> Floats | None:
        near = float(self.squares[: self.n_samples][~self.is_far].max(initial=0.0))
        relative = self.values.relative_within(near)
        assert relative is not None
        relative[self.far] = 0.0
        return relative + 16.0 * self.unit + TUNING.difference_error

    def weights(self, columns: Integers, v: Floats) -> Floats:
        return np.where(self.is_far[columns], np.abs(v), self.values.weights(columns, v))

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        assert self.relative is not None
        weight = float(self.weights(columns, v).sum())
        return (self.relative[rows] + (columns.size + 2) * UNIT) * weight

    def prepare(self, rows: Integers) -> Any:
        return self.values.prepare(rows), rows

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        inner, rows = prepared
        self.values.tile(inner, part, columns, out)
        self._mend(out, rows[part], np.arange(columns.start, columns.stop))

    def against(self, columns: Integers) -> Any:
        return self.values.against(columns), columns

    def block(self, rows: Integers, columns: Any) -> Floats:
        inner, chosen = columns
        out = self.values.block(rows, inner)
        self._mend(out, rows, chosen)
        return out

    def _mend(self, out: Floats, rows: Integers, columns: Integers) -> None:
        """Replace the values of far rows and far columns."""
        for places, turned in ((np.flatnonzero(self.is_far[rows]), False),
                               (np.flatnonzero(self.is_far[columns]), True)):  # fmt: skip
            if not places.size:
                continue
            far, others = (columns[places], rows) if turned else (rows[places], columns)
            x, z = (self.of(some).astype(np.float64) for some in (far, others))
            values = self.kernel(x, z)
            if turned:
                out[:, places] = values.T
            else:
                out[places] = values
