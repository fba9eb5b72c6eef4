"""The hyperplane g(x) = w·x + b: distances, feet of perpendiculars, intercepts and margins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from .arrays import Floats, Matrix, MatrixLike, blocks_of, row_block, row_length


@dataclass(frozen=True, eq=False, init=False)
class Hyperplane:
    """The plane g(x) = w·x + b = 0 and its positive side.

    Methods take X, array-like or sparse of shape (n, d), or one row of shape (d,), for which they
    return numbers instead of arrays of shape (n,); y holds −1 and +1. ``w = 0`` may be stored (an
    untrained model has it), but methods that divide by ‖w‖ raise ValueError.

    Parameters
    ----------
    w : array-like of shape (d,)
        The normal vector; a read-only float64 copy is kept.
    b : float, default=0.0
        The bias.

    References
    ----------
    Duda, Hart, Stork, *Pattern Classification*, section 5.2.1; for margins Schölkopf, Smola,
    *Learning with Kernels*, sections 7.1 and 7.2.

    Examples
    --------
    >>> plane = Hyperplane([3.0, 4.0], -5.0)
    >>> print(plane.signed_distance([[3.0, 4.0], [0.0, 0.0]]))
    [ 4. -1.]
    """

    w: Floats
    b: float

    def __init__(self, w: ArrayLike, b: float = 0.0) -> None:
        normal = np.array(w, dtype=np.float64)
        if normal.ndim != 1 or normal.size == 0:
            raise ValueError(
                f"w must be a 1-D array, one number per feature; got shape {normal.shape}."
            )
        if not (np.isfinite(normal).all() and math.isfinite(b)):
            raise ValueError(f"w and b must be finite, got w={normal}, b={b}.")
        normal.flags.writeable = False
        object.__setattr__(self, "w", normal)
        object.__setattr__(self, "b", float(b))

    def decision(self, X: MatrixLike) -> Floats:
        """Return g(x) = w·x + b for every row, in float64.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or one row of shape (d,)
            Points.

        Returns
        -------
        ndarray of shape (n,), or a number for one row
            The scores.

        Examples
        --------
        >>> import maxmargin as mm
        >>> print(mm.Hyperplane([1, -1], 2).decision([[0, 0], [0, 2]]))
        [2. 0.]
        """
        return self._affine(X, self.w, self.b)

    def signed_distance(self, X: MatrixLike) -> Floats:
        """Return g(x)/‖w‖ for every row: positive on the side w points to.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or one row of shape (d,)
            Points.

        Returns
        -------
        ndarray of shape (n,), or a number for one row
            The distances.

        Examples
        --------
        >>> import maxmargin as mm
        >>> float(mm.Hyperplane([0, 1e200], 1e200).signed_distance([7, 1]))
        2.0
        """
        return self._affine(X, *self._unit())

    def project(self, X: MatrixLike) -> Floats:
        """Return the foot of the perpendicular, x − g(x)·w/‖w‖², of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or one row of shape (d,)
            Points.

        Returns
        -------
        ndarray of the shape of X
            The feet, dense; float32 for a float32 X, else float64.

        Examples
        --------
        >>> import maxmargin as mm
        >>> print(mm.Hyperplane([0, 2], -2).project([3, 5]))
        [3. 1.]
        """
        unit, offset = self._unit()
        distance = np.atleast_1d(self._affine(X, unit, offset))
        rows, single = _as_rows(X, unit.size)
        feet = np.empty(rows.shape, dtype=np.float32 if rows.dtype == np.float32 else np.float64)
        for block in blocks_of(len(feet), row_length(rows)):
            values = row_block(rows, block)
            x = values.toarray() if sp.issparse(values) else values
            feet[block] = x - distance[block, None] * unit
        return feet[0] if single else feet

    def intercepts(self) -> Floats:
        """Return where the plane cuts the axes, −b/w_j.

        Returns
        -------
        ndarray of shape (d,)
            The intercepts, nan where w_j = 0.

        Examples
        --------
        >>> import maxmargin as mm
        >>> print(mm.Hyperplane([2, 0, -1], 4).intercepts())
        [-2. nan  4.]
        """
        self._unit()
        cut = np.full(self.w.shape, np.nan)
        with np.errstate(over="ignore"):
            np.divide(-self.b, self.w, out=cut, where=self.w != 0)
        return cut + 0.0  # −0 becomes 0

    def distance_to_origin(self) -> float:
        """Return |b|/‖w‖.

        Returns
        -------
        float
            The distance.

        Examples
        --------
        >>> import maxmargin as mm
        >>> mm.Hyperplane([3, 4], 10).distance_to_origin()
        2.0
        """
        return abs(self._unit()[1])

    def normalized(self) -> Hyperplane:
        """Return the same plane with ‖w‖ = 1, namely (w/‖w‖, b/‖w‖).

        Returns
        -------
        Hyperplane
            The plane.

        Examples
        --------
        >>> import maxmargin as mm
        >>> mm.Hyperplane([0, 4], 2).normalized()
        Hyperplane(w=array([0., 1.]), b=0.5)
        """
        return Hyperplane(*self._unit())

    def margins(self, X: MatrixLike, y: ArrayLike) -> Floats:
        """Return the functional margins y·g(x).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or one row of shape (d,)
            Points.
        y : array-like of shape (n,)
            Labels −1 and +1.

        Returns
        -------
        ndarray of shape (n,), or a number for one row
            The margins.

        Examples
        --------
        >>> import maxmargin as mm
        >>> plane = mm.Hyperplane([-1/3, 1/5], 2/15)
        >>> print(plane.margins([[1, 10], [10, 4]], [1, -1]).round(12))
        [1.8 2.4]
        """
        g = self.decision(X)
        return _signs(y, np.shape(g)) * g

    def geometric_margin(self, X: MatrixLike, y: ArrayLike) -> float:
        """Return min_i y_i g(x_i)/‖w‖: positive if and only if the plane separates.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or one row of shape (d,)
            Points.
        y : array-like of shape (n,)
            Labels −1 and +1.

        Returns
        -------
        float
            The margin of the set.

        Examples
        --------
        >>> import maxmargin as mm
        >>> mm.Hyperplane([2, 0]).geometric_margin([[3, 1], [-1, 0]], [1, -1])
        1.0
        """
        distance = self.signed_distance(X)
        return float(np.min(_signs(y, np.shape(distance)) * distance))

    def margin_width(self) -> float:
        """Return 2/‖w‖, the width of the band |g(x)| ≤ 1 of a support vector machine.

        Returns
        -------
        float
            The width.

        Examples
        --------
        >>> import maxmargin as mm
        >>> round(mm.Hyperplane([-1/3, 1/5], 2/15).margin_width(), 9)
        5.144957554
        """
        unit, _ = self._unit()
        # max|w_j|/‖w‖ over max|w_j|: no square that overflows.
        return 2.0 * float(np.abs(unit).max()) / float(np.abs(self.w).max())

    def mistake_bound(self, X: MatrixLike, y: ArrayLike) -> float:
        """Return Novikoff's bound (2R/γ)² on the updates of a perceptron with bias step η y R².

        R = max ‖x‖, and γ is the geometric margin of this plane on (X, y). The bound holds only for
        samples of both classes: the proof needs |b|/‖w‖ ≤ R, which holds for every plane that
        separates two classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or one row of shape (d,)
            Points.
        y : array-like of shape (n,)
            Labels −1 and +1.

        Returns
        -------
        float
            The bound, inf where the plane does not separate.

        References
        ----------
        Novikoff (1962); Cristianini, Shawe-Taylor, *Support Vector Machines*, theorem 2.3.

        Examples
        --------
        >>> import maxmargin as mm
        >>> mm.Hyperplane([1, 0]).mistake_bound([[1, 0], [-2, 0]], [1, -1])
        16.0
        """
        gamma = self.geometric_margin(X, y)
        if np.unique(np.asarray(y)).size < 2:
            raise ValueError(f"y must hold both labels, got only {np.ravel(y)[0]}.")
        if gamma <= 0:
            return math.inf
        ratio = 2.0 * _largest_norm(_as_rows(X, self.w.size)[0]) / gamma
        return ratio * ratio

    def same_plane(self, other: Hyperplane, tol: float = 1e-12) -> bool:
        """Say whether another plane is (c·w, c·b) with c > 0, within tol after normalisation.

        Parameters
        ----------
        other : Hyperplane
            The other plane.
        tol : float, default=1e-12
            Tolerance of the normalised w and b.

        Returns
        -------
        bool
            Whether the planes are equal.

        Examples
        --------
        >>> import maxmargin as mm
        >>> mm.Hyperplane([1, 2], 3).same_plane(mm.Hyperplane([2, 4], 6))
        True
        """
        if self.w.size != other.w.size:
            return False
        (u, p), (v, q) = self._unit(), other._unit()
        close = abs(p - q) <= tol * max(1.0, abs(p), abs(q))
        return bool(close and np.abs(u - v).max() <= tol)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hyperplane):
            return NotImplemented
        return self.b == other.b and np.array_equal(self.w, other.w)

    def __hash__(self) -> int:
        return hash((*self.w.tolist(), self.b))

    def _unit(self) -> tuple[Floats, float]:
        """Return (w/‖w‖, b/‖w‖), scaled by max|w_j| first so that no square overflows."""
        scale = float(np.abs(self.w).max())
        if scale == 0:
            raise ValueError("w must not be 0: fit a model, or pass another w.")
        direction = self.w / scale
        norm = float(np.linalg.norm(direction))
        return direction / norm, self.b / scale / norm

    def _affine(self, X: MatrixLike, w: Floats, b: float) -> Floats:
        rows, single = _as_rows(X, w.size)
        g = np.empty(rows.shape[0])
        with np.errstate(over="ignore", invalid="ignore"):
            for block in blocks_of(len(g), row_length(rows)):
                g[block] = row_block(rows, block) @ w + b
        if not np.isfinite(g).all():
            raise ValueError(_fault(rows, int(np.isfinite(g).argmin())))
        return g[0] if single else g


def _as_rows(X: MatrixLike, d: int) -> tuple[Matrix, bool]:
    """Return X as a 2-D array or CSR array, and whether it was one row of shape (d,)."""
    rows = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    if rows.dtype.kind not in "biufO":
        raise ValueError(f"X must hold real numbers, got dtype {rows.dtype}.")
    if rows.ndim not in (1, 2) or rows.shape[-1] != d:
        raise ValueError(f"X must have shape (n, {d}) or ({d},), as w has; got {rows.shape}.")
    return (rows[None, :], True) if rows.ndim == 1 else (rows, False)


def _largest_norm(rows: Matrix) -> float:
    largest = 0.0
    for block in blocks_of(rows.shape[0], row_length(rows)):
        values = row_block(rows, block)
        if sp.issparse(values):
            values = values.copy()  # summing duplicates must not change the data of the caller
            values.sum_duplicates()
        scale = float(abs(values).max()) or 1.0  # so that no square overflows
        scaled = values / scale
        squares = scaled.multiply(scaled) if sp.issparse(scaled) else scaled * scaled
        longest = squares.sum(axis=1).max()
        largest = max(largest, scale * math.sqrt(longest))
    return largest


def _fault(rows: Matrix, i: int) -> str:
    row = rows[[i]].toarray()[0] if sp.issparse(rows) else rows[i].astype(np.float64)
    for j in np.flatnonzero(~np.isfinite(row)):
        return f"X must be finite, got X[{i}, {j}]={row[j]}: remove or impute it."
    return f"w·x + b overflows float64 at row {i}: rescale the features or the plane."


def _signs(y: ArrayLike, shape: tuple[int, ...]) -> Floats:
    labels = np.asarray(y)
    if labels.shape != shape:
        raise ValueError(f"y must have shape {shape}, one label per row; got {labels.shape}.")
    if labels.dtype.kind not in "iuf" or not np.isin(labels, (-1, 1)).all():
        found = np.unique(labels)[:5].tolist()
        raise ValueError(
            f"y must hold -1 and +1 only, got {found}: pass np.where(y == positive_label, 1, -1)."
        )
    return labels.astype(np.float64)
