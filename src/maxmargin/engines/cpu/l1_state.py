"""The state of a machine of few features: scores and α as NumPy arrays.

See `engines.l1.L1State` for what each operation means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...problems import L1Problem
from ...problems.best_bias import best_biases
from ...runtime.row_access import StoredRows, rows_of
from ...runtime.team import Region
from ...runtime.vectors import in_slices, nonzero, part_count, part_rows, taken
from ..l1 import SlackSums
from . import l1_passes as passes
from .panel_products import TILE

if TYPE_CHECKING:
    from .features import Features


@dataclass(frozen=True)
class Tuning:
    """Sizes and limits."""

    bias_steps: int = 30  # of Newton's method for the bias, before all breaks are sorted
    copied_numbers: int = 1 << 24  # of columns of a dense X that are copied
    call_numbers: int = 1 << 24  # visited by compiled code before Python is asked to go on
    few_columns: int = 256  # of a sparse X, whose moments are computed whole
    moments_parts: int = 16
    gradient_passes: float = 3.0  # in the time of a step of conjugate gradients


TUNING = Tuning()


class L1State:
    """Scores and α of the rows of X.

    Parameters
    ----------
    problem : L1Problem
        Its X is not used.
    features : Features
        The rows.
    """

    def __init__(self, problem: L1Problem, features: Features) -> None:
        n = features.n_rows
        self.problem, self.features, self.n_rows = replace(problem, X=None), features, n
        self.scores = np.zeros(n)
        self.costs = 1.0 / problem.ridge  # 2C, and 0 of rows that do not count
        self._signed = np.zeros(n)  # α y
        self._along = np.empty(0)
        self._kept: tuple[Floats, float] = np.zeros(n), 0.0
        self._inside: Integers | None = None

    # The plane and α -----------------------------------------------------------------------

    def place(self, w: Floats, b: float) -> None:
        """Compute the scores of a plane."""
        self._inside = None
        if w.any():
            self.features.scores(w, b, out=self.scores)
        else:
            in_slices(lambda some: self.scores[some].fill(b), self.n_rows)

    def settle(self) -> float:
        """Move the bias to the best one for these scores; return by how much."""
        t = self._best_shift()
        in_slices(lambda some: np.add(self.scores[some], t, out=self.scores[some]), self.n_rows)
        return t

    def _best_shift(self) -> float:
        """Return where Σ α y = 0: Newton's method ends exactly, where it ends."""
        t, low, high = 0.0, -np.inf, np.inf
        for _ in range(TUNING.bias_steps):
            balance, curvature = self._sums(
                passes.bias_slope, 2, self.scores, self.problem.y, self.costs, t
            )
            low, high = (t, high) if balance > 0.0 else (low, t)
            if not curvature > 0.0:
                break
            after = t + balance / curvature
            if abs(after - t) <= 4.0 * np.finfo(float).eps * max(1.0, abs(t)):
                return t
            if not low <= after <= high:
                break
            t = after
        # A sum over all breaks, in order.
        return best_biases(self.problem, self.scores)[0]

    def measure(self) -> SlackSums:
        """Find α of the scores; return sums of it."""
        self._inside = None
        loss, total, balance, errors, inside = self._sums(
            passes.measure, 5, self.scores, self.problem.y, self.costs, self._signed
        )
        return SlackSums(float(loss), float(total), float(balance), int(errors), int(inside))

    def correlations(self) -> Floats:
        """Return Σ α_i y_i x_i."""
        return self.features.combine(self._signed)

    def random_sums(self, seed: int) -> Floats:
        """Return Σ r_i x_i, r being standard normal numbers."""
        return self.features.combine(np.random.default_rng(seed).standard_normal(self.n_rows))

    def keep(self, factor: float) -> None:
        """Remember the α measured last, multiplied by a factor."""
        memory = self._kept[0]
        in_slices(lambda some: np.copyto(memory[some], self._signed[some]), self.n_rows)
        self._kept = memory, factor

    def alpha(self) -> Floats:
        """Bring the α that was remembered to the host."""
        signed, factor = self._kept
        out = np.abs(signed)
        out *= factor
        return out

    # Steps ---------------------------------------------------------------------------------

    def aim(self, step: Floats, shift: float) -> None:
        """Compute the scores of a step."""
        if self._along.size != self.n_rows:
            self._along = np.empty(self.n_rows)
        self.features.scores(step, shift, out=self._along)

    def slope(self, t: float) -> float:
        """Return Σ α_i y_i p_i after t steps."""
        arrays = self.scores, self._along, self.problem.y, self.costs
        return float(self._sums(passes.slope, 1, *arrays, t)[0])

    def advance(self, t: float) -> None:
        """Go t steps."""
        self._inside = None

        def add(some: slice) -> None:
            self.scores[some] += t * self._along[some]

        in_slices(add, self.n_rows)

    # Columns -------------------------------------------------------------------------------

    @property
    def _rows_inside(self) -> Integers:
        if self._inside is None:
            self._inside = nonzero(self._signed)
        return self._inside

    def _costs_inside(self) -> Floats:
        return self.costs if self.costs.size == 1 else taken(self.costs, self._rows_inside)

    @cached_property
    def _counts(self) -> Floats:
        """Numbers stored in every column."""
        counts = np.zeros(self.features.n_columns)
        for _, piece in self.features._pieces():
            counts += np.bincount(piece.indices, minlength=counts.size)
        return counts

    def stored(self, columns: Integers) -> float:
        """Return about how many numbers of some columns lie in rows inside."""
        inside = self._rows_inside.size
        if self.features.is_dense:
            return float(inside * columns.size)
        return float(self._counts[columns].sum()) * inside / max(self.n_rows, 1)

    def curvature(self, columns: Integers) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over the rows inside, of some columns."""
        features, inside, c = self.features, self._rows_inside, self._costs_inside()
        d, m = features.n_columns, columns.size
        if m == d:
            return features.moments(c, inside)
        if features.is_dense:
            return self._dense_curvature(columns)
        if d <= TUNING.few_columns:
            which = np.append(columns, d)
            return features.moments(c, inside)[np.ix_(which, which)]
        total = np.zeros((m + 1, m + 1))
        for start, piece in features._pieces():
            low, high = np.searchsorted(inside, [start, start + piece.shape[0]])
            some = piece[inside[low:high] - start][:, columns]
            part = type(features)(some)
            total += part.moments(c if c.size == 1 else c[low:high], np.arange(high - low))
        return total

    def _dense_curvature(self, columns: Integers) -> Floats:
        inside, c, m = self._rows_inside, self._costs_inside(), columns.size
        side = -(-(m + 1) // TILE) * TILE
        total = np.zeros((m + 1, m + 1))
        for start, piece in self.features._pieces():
            low, high = np.searchsorted(inside, [start, start + piece.shape[0]])
            used, here = inside[low:high] - start, c if c.size == 1 else c[low:high]
            n_parts = max(1, min(TUNING.moments_parts, int(used.size * side**2 / 1e6)))
            step = max(1, -(-used.size // n_parts))
            sums = np.zeros((part_count(used.size, step), side, side))
            passes.column_moments(len(sums), step, rows_of(piece), used, columns, here, sums)
            total += np.tril(sums.sum(axis=0)[: m + 1, : m + 1])
        return np.asarray(total + np.tril(total, -1).T)

    def columns(
        self, columns: Integers, slopes: Floats, *, bias: bool, free: bool
    ) -> Columns | None:
        """Return some columns of the rows inside; None where they are too many to copy."""
        features, inside = self.features, self._rows_inside
        too_many = features.is_dense and inside.size * columns.size > TUNING.copied_numbers
        if not features.random_access or features.index is not None or too_many:
            return None
        X, roots = features.X, np.sqrt(self._costs_inside())
        laid: Any
        if features.is_dense:
            laid = np.ascontiguousarray(X[np.ix_(inside, columns)].T) * roots.astype(X.dtype)
        else:
            laid = _laid_columns(X, inside, columns, roots)
        ones = np.broadcast_to(roots, inside.size)
        if bias:
            laid = _with_row(laid, ones)
        residuals = (taken(self.problem.y, inside) - taken(self.scores, inside)) * ones
        return Columns(laid, ones, residuals, slopes, free=free)

    # Passes --------------------------------------------------------------------------------

    def _sums(self, region: Region[...], n_sums: int, *arguments: Any) -> Floats:
        step = part_rows(self.n_rows)
        sums = np.zeros((part_count(self.n_rows, step), n_sums))
        region(len(sums), step, *arguments, sums)
        return np.asarray(sums.sum(axis=0))


def _laid_columns(X: Any, inside: Integers, columns: Integers, roots: Floats) -> Any:
    """Return columns of some rows of a CSR matrix as rows, every sample times its factor."""
    rows, place = rows_of(X), np.full(X.shape[1], -1, dtype=np.intp)
    place[columns] = np.arange(columns.size)
    ends = np.zeros(columns.size + 1, dtype=np.intp)
    passes.count_columns(rows, inside, place, ends)
    np.cumsum(ends, out=ends)
    data, indices = np.empty(ends[-1], dtype=X.dtype), np.empty(ends[-1], dtype=np.int32)
    passes.lay_columns(rows, inside, roots, place, ends[:-1].copy(), data, indices)
    shape = columns.size, inside.size
    return sparse.csr_array((data, indices, ends.astype(np.int32)), shape=shape)


def _with_row(laid: Any, row: Floats) -> Any:
    if sparse.issparse(laid):
        last = sparse.csr_array(row[np.newaxis].astype(laid.dtype))
        return sparse.vstack([laid, last], format="csr")
    return np.vstack([laid, row[np.newaxis].astype(laid.dtype)])


class Columns:
    """Columns of the rows inside, each row multiplied by √c, as rows: ½‖e − Bᵀ(u − w)‖².

    Parameters
    ----------
    laid : array or CSR matrix of shape (m, n_inside)
        B.
    roots : ndarray of shape (n_inside,)
        √c, the column of the bias.
    residuals : ndarray of shape (n_inside,)
        e, which moves with u.
    slopes : ndarray of shape (m,)
        Be before B was rounded.
    free : bool
        Whether a bias is at its best for every u.
    """

    def __init__(
        self, laid: Any, roots: Floats, residuals: Floats, slopes: Floats, *, free: bool
    ) -> None:
        self._laid, self._residuals = laid, residuals
        self._rows: StoredRows = rows_of(laid)
        self._squares = np.asarray(
            laid.multiply(laid).sum(axis=1, dtype=np.float64)
            if sparse.issparse(laid)
            else np.einsum("ij,ij->i", laid, laid, dtype=np.float64)
        ).ravel()
        self._numbers = max(1, int(laid.nnz if sparse.issparse(laid) else laid.size))
        self._weight, self._sums = np.inf, np.zeros(laid.shape[0])
        self._rest = np.zeros(1)  # Σ √c e
        self._lost = slopes - laid @ residuals  # to the rounding of B
        if free:
            # Without rows inside a bias has no bearing.
            self._weight = float(roots @ roots) or np.inf
            self._sums = np.asarray(laid @ roots, dtype=np.float64)
            self._rest[0] = float(roots @ residuals)

    @property
    def shift(self) -> float:
        """The change of a free bias that belongs to the coefficients now."""
        return float(self._rest[0]) / self._weight

    def descend(self, u: Floats, penalties: Floats, enough: float, n_passes: int) -> float:
        """Move one coefficient at a time, some passes before Python is asked to go on."""
        done, worst = 0, np.inf
        at_once = max(1, TUNING.call_numbers // self._numbers)
        while done < n_passes and worst > enough:
            n = min(at_once, n_passes - done)
            worst = passes.descend(
                self._rows, self._squares, self._sums, self._weight, penalties, u,
                self._residuals, self._rest, self._lost, enough, n,
            )  # fmt: skip
            done += n
        return float(worst)

    def direction(
        self, some: Integers, penalties: Floats, enough: float, n_passes: int
    ) -> Floats | None:
        """Return p with H_SS p = slopes_S − λ_S, by conjugate gradients."""
        B, sums = self._laid[some], self._sums[some]
        scale = self._squares[some] - sums**2 / self._weight
        scale = np.maximum(scale, 1e-8 * scale.max())
        rest = self._slopes(some, B) - penalties
        p: Floats = np.zeros(some.size)
        z = rest / scale
        along, before = z, float(rest @ z)
        for _ in range(max(1, int(n_passes / TUNING.gradient_passes))):
            if np.abs(rest).max() <= enough or not before > 0.0:
                break
            turned = B @ (B.T @ along) - sums * (float(sums @ along) / self._weight)
            bend = float(along @ turned)
            if not bend > 0.0:
                break
            p += (before / bend) * along
            rest = rest - (before / bend) * turned
            z = rest / scale
            now = float(rest @ z)
            along, before = z + (now / before) * along, now
        return p if np.isfinite(p).all() else None

    def change(self, some: Integers, step: Floats) -> float:
        """Return by how much a step would change the quadratic."""
        B = self._laid[some]
        turned, shared = B.T @ step, float(self._sums[some] @ step)
        bend = float(turned @ turned) - shared**2 / self._weight
        return 0.5 * bend - float(self._slopes(some, B) @ step)

    def move(self, some: Integers, step: Floats) -> None:
        """Go a step of some coefficients."""
        self._residuals -= self._laid[some].T @ step
        self._rest[0] -= float(self._sums[some] @ step)

    def _slopes(self, some: Integers, B: Any) -> Floats:
        shared = self._sums[some] * (self._rest[0] / self._weight)
        return np.asarray(B @ self._residuals + self._lost[some] - shared)
