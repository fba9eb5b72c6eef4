"""Products of dense rows with panels of samples that lie feature by feature.

Four rows are multiplied with a panel two vectors wide at a time, all eight running sums in
registers. BLAS, which has to lay out both of its operands anew for every call, takes twice as long
where rows have some ten features, and a sixth longer where they have hundreds.
"""

from __future__ import annotations

from ...runtime.row_access import compiled
from ...runtime.simd import count, fill, load, store
from ...runtime.team import parallel

# Vectors in a panel.
PANEL_VECTORS = 2
# Products that are summed before they are added to the others: a sum of n numbers in parts has the
# rounding errors of CHUNK + n/CHUNK.
CHUNK = 64
# Rows of X that one core copies at a time.
TAKEN_ROWS = 32


def roundings(n_features: int) -> int:
    """Return the roundings of an inner product at most."""
    return min(n_features, CHUNK + -(-n_features // CHUNK))


@compiled
def dense_products(x, panels, out):
    """Do out[r] ← ⟨x_r, x_s⟩ for all samples s of the panels."""
    n, d, last = count(x), x.shape[1], x.shape[0] - 1
    zero = fill(x, 0.0)
    for p in range(panels.shape[0]):
        panel, at = panels[p], 2 * n * p
        for r in range(0, last + 1, 4):
            # Beyond the last row that one is computed again.
            i, j, k = min(r + 1, last), min(r + 2, last), min(r + 3, last)
            xa, xb, xc, xd = x[r], x[i], x[j], x[k]
            a0 = a1 = b0 = b1 = c0 = c1 = d0 = d1 = zero
            first = 0
            while first < d:
                s0 = s1 = t0 = t1 = u0 = u1 = v0 = v1 = zero
                end = min(first + CHUNK, d)
                for f in range(first, end):
                    z0, z1 = load(panel[f], 0), load(panel[f], n)
                    factor = fill(x, xa[f])
                    s0, s1 = s0 + factor * z0, s1 + factor * z1
                    factor = fill(x, xb[f])
                    t0, t1 = t0 + factor * z0, t1 + factor * z1
                    factor = fill(x, xc[f])
                    u0, u1 = u0 + factor * z0, u1 + factor * z1
                    factor = fill(x, xd[f])
                    v0, v1 = v0 + factor * z0, v1 + factor * z1
                a0, a1, b0, b1 = a0 + s0, a1 + s1, b0 + t0, b1 + t1
                c0, c1, d0, d1 = c0 + u0, c1 + u1, d0 + v0, d1 + v1
                first = end
            store(out[r], at, a0)
            store(out[r], at + n, a1)
            store(out[i], at, b0)
            store(out[i], at + n, b1)
            store(out[j], at, c0)
            store(out[j], at + n, c1)
            store(out[k], at, d0)
            store(out[k], at + n, d1)


@compiled
def lay_rows(rows, panels):
    """Write rows into panels, feature by feature."""
    width = panels.shape[2]
    for top in range(0, rows.shape[1], 64):  # features that stay in the cache
        for r in range(rows.shape[0]):
            x, panel, column = rows[r], panels[r // width], r % width
            for f in range(top, min(top + 64, x.size)):
                panel[f, column] = x[f]


@parallel
def lay_parts(part, rows, panels):
    """Write some rows into a panel of their own."""
    width = panels.shape[2]
    lay_rows(rows[part * width : part * width + width], panels[part : part + 1])


@parallel
def take_rows(part, X, samples, centre, out):
    """Do out[k] ← x_samples[k] − centre for some k."""
    for k in range(part * TAKEN_ROWS, min(part * TAKEN_ROWS + TAKEN_ROWS, samples.size)):
        x, row = X[samples[k]], out[k]
        for f in range(row.size):
            row[f] = x[f] - centre[f]
