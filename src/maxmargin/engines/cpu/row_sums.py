"""Sums of rows of K, in float64 whatever the type of K."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...runtime.row_access import compiled


class RowSums:
    """Σ v_j K_ij in float64, and Σ w_j K_ij in the type of K where it is wanted."""

    def __init__(self, size: int, dtype: Any, weighs: bool) -> None:
        self.total = np.zeros(size)
        self.sizes = np.zeros(size if weighs else 0, dtype=dtype)

    def of(self, index: Integers) -> RowSums:
        """Return the sums of some columns."""
        part = RowSums(0, self.sizes.dtype, False)
        part.total, part.sizes = (
            self.total[index],
            self.sizes[index] if self.sizes.size else self.sizes,
        )
        return part

    def add(
        self, K: Floats, rows: Integers, v: Floats, weights: Floats | None, start: int, at: slice
    ) -> None:
        """Add rows of K, from column ``start`` on, to some of the sums."""
        if weights is None:
            add_rows(K, rows, v, start, self.total[at])
        else:
            add_rows_and_sizes(K, rows, v, weights, start, self.total[at], self.sizes[at])


@compiled
def add_rows(K, rows, v, start, total):
    """Do total ← total + Σ_k v_k K[rows_k, start:], in strips that stay in the cache."""
    for first in range(0, total.size, 2048):
        part = total[first : first + 2048]
        low, high = start + first, start + first + part.size
        k = 0
        while k + 4 <= rows.size:  # four rows share the reading and writing of the sums
            a, b = K[rows[k]][low:high], K[rows[k + 1]][low:high]
            c, d = K[rows[k + 2]][low:high], K[rows[k + 3]][low:high]
            va, vb, vc, vd = v[k], v[k + 1], v[k + 2], v[k + 3]
            for j in range(part.size):
                part[j] += va * a[j] + vb * b[j] + vc * c[j] + vd * d[j]
            k += 4
        while k < rows.size:
            a, va = K[rows[k]][low:high], v[k]
            for j in range(part.size):
                part[j] += va * a[j]
            k += 1


@compiled
def add_rows_and_sizes(K, rows, v, weights, start, total, sizes):
    """Do total ← total + Σ_k v_k K[rows_k, start:], and the same for sizes with weights ≥ 0."""
    for first in range(0, total.size, 2048):
        part, size = total[first : first + 2048], sizes[first : first + 2048]
        low, high = start + first, start + first + part.size
        k = 0
        while k + 4 <= rows.size:
            a, b = K[rows[k]][low:high], K[rows[k + 1]][low:high]
            c, d = K[rows[k + 2]][low:high], K[rows[k + 3]][low:high]
            va, vb, vc, vd = v[k], v[k + 1], v[k + 2], v[k + 3]
            wa, wb, wc, wd = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            for j in range(part.size):
                part[j] += va * a[j] + vb * b[j] + vc * c[j] + vd * d[j]
                size[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
            k += 4
        while k < rows.size:
            a, va, wa = K[rows[k]][low:high], v[k], weights[k]
            for j in range(part.size):
                part[j] += va * a[j]
                size[j] += wa * a[j]
            k += 1
