"""Products of sparse rows with panels of samples that lie feature by feature."""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled
from ...runtime.simd import count, fill, load, store
from ...runtime.team import parallel

# Vectors in a panel: as many running sums stay in registers.
PANEL_VECTORS = 8
# Products of sparse rows that are summed before they are added to the others: a sum of n numbers in
# parts has the rounding errors of CHUNK + n/CHUNK.
CHUNK = 16
# Rows that a thread makes ready at a time.
PART_ROWS = 256
# Features of a section of a panel, which many rows are multiplied with while it is in the nearest
# cache, and the non-zeros of a row there, on average, from which on that pays.
SECTION_FEATURES = 96
SECTION_NONZEROS = 16


def n_sections(n_features: int, n_nonzeros: float) -> int:
    """Return into how many sections panels are divided for rows of so many non-zeros."""
    return max(1, min(-(-n_features // SECTION_FEATURES), int(n_nonzeros / SECTION_NONZEROS)))


@parallel
def count_nonzeros(part, X, rows, counts):
    """Count the non-zeros of some dense rows."""
    for r in range(part * PART_ROWS, min(part * PART_ROWS + PART_ROWS, rows.size)):
        x, n = X[rows[r]], 0
        for j in range(x.size):
            n += x[j] != 0.0
        counts[r] = n


@parallel
def pick_nonzeros(part, X, rows, starts, data, indices):
    """Write the non-zeros of some dense rows to their places in a CSR matrix."""
    for r in range(part * PART_ROWS, min(part * PART_ROWS + PART_ROWS, rows.size)):
        x, k = X[rows[r]], starts[r]
        for j in range(x.size):
            if x[j] != 0.0:
                data[k] = x[j]
                indices[k] = j
                k += 1


@parallel
def measure_rows(part, data, indices, indptr, n_features, squares, starts):
    """Do squares_i ← ‖x_i‖², and starts[i, c] ← where the non-zeros in section c begin.

    Squares are summed in float64; the non-zeros of a row are sorted.
    """
    n = starts.shape[1] - 1
    width = -(-n_features // n)
    for i in range(part * PART_ROWS, min(part * PART_ROWS + PART_ROWS, starts.shape[0])):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[k]) * data[k]
        squares[i] = total
        k = indptr[i]
        for c in range(n):
            while k < indptr[i + 1] and indices[k] < c * width:
                k += 1
            starts[i, c] = k
        starts[i, n] = indptr[i + 1]


@parallel
def lay_panels(part, data, indices, indptr, samples, panels):
    """Write samples into a panel of zeros, feature by feature."""
    width, panel = panels.shape[2], panels[part]
    for s in range(part * width, min(part * width + width, samples.size)):
        i = samples[s]
        for k in range(indptr[i], indptr[i + 1]):
            panel[indices[k], s - part * width] = data[k]


@compiled
def sparse_products(data, indices, starts, rows, panels, out):
    """Do out[r] ← ⟨x_rows[r], x_s⟩ for all samples s of the panels, eight vectors at a time."""
    for p in range(panels.shape[0]):
        for c in range(starts.shape[1] - 1):
            add_section(data, indices, starts, c, rows, panels[p], p * panels.shape[2], out)


@compiled
def add_section(data, indices, starts, c, rows, panel, at, out):
    """Add the products with section c of a panel, the first of which are written to ``out``."""
    n, zero = count(data), fill(data, 0.0)
    for r in range(rows.size):
        k, last = starts[rows[r], c], starts[rows[r], c + 1]
        dot = out[r]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
        if c > 0:
            if k == last:
                continue
            s0, s1 = load(dot, at), load(dot, at + n)
            s2, s3 = load(dot, at + 2 * n), load(dot, at + 3 * n)
            s4, s5 = load(dot, at + 4 * n), load(dot, at + 5 * n)
            s6, s7 = load(dot, at + 6 * n), load(dot, at + 7 * n)
        while k < last:
            a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = zero
            end = min(k + CHUNK, last)
            while k < end:
                x, z = fill(data, data[k]), panel[np.uint32(indices[k])]
                a0 = a0 + x * load(z, 0)
                a1 = a1 + x * load(z, n)
                a2 = a2 + x * load(z, 2 * n)
                a3 = a3 + x * load(z, 3 * n)
                a4 = a4 + x * load(z, 4 * n)
                a5 = a5 + x * load(z, 5 * n)
                a6 = a6 + x * load(z, 6 * n)
                a7 = a7 + x * load(z, 7 * n)
                k += 1
            s0, s1, s2, s3 = s0 + a0, s1 + a1, s2 + a2, s3 + a3
            s4, s5, s6, s7 = s4 + a4, s5 + a5, s6 + a6, s7 + a7
        store(dot, at, s0)
        store(dot, at + n, s1)
        store(dot, at + 2 * n, s2)
        store(dot, at + 3 * n, s3)
        store(dot, at + 4 * n, s4)
        store(dot, at + 5 * n, s5)
        store(dot, at + 6 * n, s6)
        store(dot, at + 7 * n, s7)
