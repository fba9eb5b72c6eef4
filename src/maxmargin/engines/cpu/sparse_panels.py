"""Products of sparse rows with panels of samples that lie feature by feature."""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled
from ...runtime.simd import count, fill, load, store

# Vectors in a panel: as many running sums stay in registers.
PANEL_VECTORS = 8
# Products of sparse rows that are summed before they are added to the others: a sum of n numbers in
# parts has the rounding errors of CHUNK + n/CHUNK.
CHUNK = 16


@compiled
def pick_nonzeros(X, rows, starts, data, indices):
    """Write the non-zeros of dense rows to their places in a CSR matrix."""
    for r in range(rows.size):
        x, k = X[rows[r]], starts[r]
        for j in range(x.size):
            if x[j] != 0.0:
                data[k] = x[j]
                indices[k] = j
                k += 1


@compiled
def square_rows(data, indices, indptr, squares):
    """Do squares_i ← ‖x_i‖², summed in float64."""
    for i in range(indptr.size - 1):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[k]) * data[k]
        squares[i] = total


@compiled
def lay_panels(data, indices, indptr, samples, panels):
    """Write samples into panels of zeros, feature by feature."""
    width = panels.shape[2]
    for s in range(samples.size):
        panel, column = panels[s // width], s % width
        i = samples[s]
        for k in range(indptr[i], indptr[i + 1]):
            panel[indices[k], column] = data[k]


@compiled
def sparse_products(data, indices, indptr, rows, panels, out):
    """Do out[r] ← ⟨x_rows[r], x_s⟩ for all samples s of the panels, eight vectors at a time."""
    n, width = count(data), panels.shape[2]
    zero = fill(data, 0.0)
    for p in range(panels.shape[0]):
        panel, start = panels[p], p * width
        for r in range(rows.size):
            i = rows[r]
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
            k, last = indptr[i], indptr[i + 1]
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
            dot = out[r]
            store(dot, start, s0)
            store(dot, start + n, s1)
            store(dot, start + 2 * n, s2)
            store(dot, start + 3 * n, s3)
            store(dot, start + 4 * n, s4)
            store(dot, start + 5 * n, s5)
            store(dot, start + 6 * n, s6)
            store(dot, start + 7 * n, s7)
