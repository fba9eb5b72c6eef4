"""A Cholesky factor that is updated as variables come and go."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dpstrf

from ....arrays import Floats, Integers
from ....runtime.row_access import compiled

# No right-hand sides.
NOTHING = np.empty((0, 0))
# A pivot, relative to the diagonal, of a variable that depends on the others.
DEPENDENT = 1e-10


class Factor:
    """R with RᵀR = H̃[F, F], kept as F gains and loses variables."""

    def __init__(self) -> None:
        self.R = np.zeros((64, 64))
        self.size = self.updates = 0

    @classmethod
    def of(cls, block: Floats) -> Factor | None:
        """Return the factor of a positive definite block, None where it is near singular."""
        factor = cls()
        if not block.size:
            return factor
        try:
            R = cholesky(block)
        except LinAlgError:
            return None
        if (R.diagonal() ** 2 <= DEPENDENT * block.diagonal()).any():
            return None
        factor.size = len(block)
        factor._grow()
        factor.R[: factor.size, : factor.size] = R
        return factor

    @classmethod
    def of_independent(cls, block: Floats) -> tuple[Factor, Integers]:
        """Return the factor of as many variables as are independent, and which, by pivoting."""
        factor, scale = cls(), np.sqrt(np.maximum(block.diagonal(), np.finfo(float).tiny))
        R, order, rank, _ = dpstrf(block / scale / scale[:, np.newaxis], tol=DEPENDENT)
        kept = order[:rank].astype(np.intp) - 1
        factor.size = int(rank)
        factor._grow()
        factor.R[:rank, :rank] = np.triu(R[:rank, :rank]) * scale[kept]
        return factor, kept

    def append(
        self, column: Floats, diagonal: float, sizes: Floats, flat: float
    ) -> tuple[bool, Floats]:
        """Add a variable unless it depends on the others; return H̃[F, F]⁻¹ times its column too.

        d = (−that, 1) has the curvature dᵀH̃d of the new pivot; up to ``flat``, relative to
        (Σ|d_i| sizes_i)², it counts as 0.
        """
        x = column.copy()
        solve_transposed(self.R, self.size, x)
        pivot = diagonal - float(x @ x)
        border = x.copy()
        solve_upper(self.R, self.size, x)
        if pivot <= flat * float(np.abs(x) @ sizes[:-1] + sizes[-1]) ** 2:
            return False, x
        self.size += 1
        self._grow()
        self.R[: self.size - 1, self.size - 1] = border
        self.R[self.size - 1, self.size - 1] = np.sqrt(pivot)
        self.updates += 1
        return True, x

    def drop(self, k: int) -> None:
        """Take out the k-th variable."""
        drop_column(self.R, self.size, k, NOTHING)
        self.size -= 1
        self.updates += 1

    def solve(self, b: Floats) -> Floats:
        """Return H̃[F, F]⁻¹ b."""
        x = np.array(b)
        solve_transposed(self.R, self.size, x)
        solve_upper(self.R, self.size, x)
        return x

    def _grow(self) -> None:
        if self.size > len(self.R):
            larger = np.zeros((2 * self.size, 2 * self.size))
            larger[: len(self.R), : len(self.R)] = self.R
            self.R = larger


@compiled
def add_rows(H: Floats, rows: Integers, v: Floats, total: Floats) -> None:
    """Do total ← total + Σ_k v_k H[rows_k]."""
    for k in range(rows.size):
        row = H[rows[k]]
        for j in range(total.size):
            total[j] += v[k] * row[j]


@compiled
def solve_transposed(R: Floats, size: int, x: Floats) -> None:
    """Do x ← R⁻ᵀx, R upper triangular of the given size."""
    for k in range(size):
        row = R[k]
        x[k] /= row[k]
        for j in range(k + 1, size):
            x[j] -= x[k] * row[j]


@compiled
def solve_upper(R: Floats, size: int, x: Floats) -> None:
    """Do x ← R⁻¹x."""
    for k in range(size - 1, -1, -1):
        row = R[k]
        known = 0.0
        for j in range(k + 1, size):
            known += row[j] * x[j]
        x[k] = (x[k] - known) / row[k]


@compiled
def drop_column(R: Floats, size: int, k: int, Z: Floats) -> None:
    """Turn R of RᵀR = M into that of M without row and column k, by rotations of its rows.

    The rows of Z are vectors R⁻ᵀv, and become those of v without its k-th entry.
    """
    lost = R[k, :size].copy()
    rest = Z[:, k].copy() if len(Z) else np.empty(0)
    for i in range(k):
        for j in range(k, size - 1):
            R[i, j] = R[i, j + 1]
    for i in range(k + 1, size):
        # The rows below k plus the lost one: M₂₂ = R₂₂ᵀR₂₂ + lost lostᵀ.
        length = np.hypot(R[i, i], lost[i])
        c, s = R[i, i] / length, lost[i] / length
        for j in range(i, size):
            old = R[i, j]
            R[i - 1, j - 1] = c * old + s * lost[j]
            lost[j] = c * lost[j] - s * old
        for m in range(len(Z)):
            old = Z[m, i]
            Z[m, i - 1] = c * old + s * rest[m]
            rest[m] = c * rest[m] - s * old
