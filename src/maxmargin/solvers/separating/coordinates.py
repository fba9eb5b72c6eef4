"""Coordinates for the linear program: separability does not depend on them, rounding does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers, blocks_of
from ...certificates.compensated import compensated_dot, exact_dot, two_sums
from ...data.normalised_samples import Samples

# Lower and upper bound of a weight, None for none.
Bound = tuple[float | None, float | None]
Bounds = list[Bound]


@dataclass(frozen=True)
class Tuning:
    """When directions are enlarged, and how."""

    # Singular value of the rows, relative to the largest, below which a direction is flat.
    flat_singular_value: float = 1e-6
    max_columns: int = 400
    # Orthogonalisations of a flat direction against the steep ones.
    orthogonalisations: int = 3
    # Values up to which a direction is 0 on all rows: the rounding of twice the precision.
    zero_value: float = 1e-28


TUNING = Tuning()


@dataclass(frozen=True)
class Coordinates:
    """Centred and scaled features, (x − centre)/scale; scales are powers of two."""

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, Z: Samples) -> Coordinates:
        """Return the coordinates in which every feature of Z has about the range −1 to 1."""
        low, high = _column_range(Z)
        shifts = Z.bias_step and not sparse.issparse(Z.X)
        centre = low + 0.5 * (high - low) if shifts else np.zeros_like(low)
        spread = np.maximum(np.abs(high - centre), np.abs(centre - low))
        return cls(centre, np.ldexp(1.0, np.frexp(np.where(spread > 0, spread, 0.5))[1]))

    def rows(self, Z: Samples, rows: Integers) -> tuple[Floats, Floats]:
        """Return rows of Z, (n_rows, n_vectors, width), and the number that divided each."""
        z = Z.take(rows).reshape(rows.size, Z.n_vectors, -1)
        z[..., :-1] = (z[..., :-1] - self.centre * z[..., -1:]) / self.scale
        return z, np.ones(rows.size)

    def bounds(self, Z: Samples) -> Bounds:
        """Return the bounds of each weight: |w_j| ≤ 1, and none for a bias."""
        free: Bound = (None, None) if Z.bias_step else (0.0, 0.0)
        width = Z.X.shape[1] + 1
        bounds: Bounds = [*[(-1.0, 1.0)] * (width - 1), free] * Z.n_vectors
        # Adding one vector to those of all classes changes nothing: fix the last one at 0.
        if Z.n_vectors > 1:
            bounds[-width:] = [(0.0, 0.0)] * width
        return bounds

    def weights(self, scaled: Floats, Z: Samples) -> Floats:
        """Return the a of Z with these weights in the coordinates."""
        vectors = scaled.reshape(Z.n_vectors, -1)
        w = vectors[:, :-1] / self.scale
        return Z.pack(w, vectors[:, -1] - w @ self.centre)

    def margins(self, Z: Samples, scaled: Floats) -> Floats:
        """Return Za for the a of these weights, computed in the coordinates."""
        if not self.centre.any():
            return Z.dot(self.weights(scaled, Z))
        margins = np.empty(Z.shape[0])
        for block in blocks_of(Z.shape[0], Z.shape[1]):
            z, _ = self.rows(Z, np.arange(block.start, block.stop))
            margins[block] = z.reshape(len(z), -1) @ scaled
        return margins

    def enlarged(self, Z: Samples, rows: Integers) -> EnlargedCoordinates | None:
        """Return coordinates that enlarge the directions in which the rows are flat, but not 0.

        None if there is no such direction, or if there are too many columns.
        """
        if Z.n_vectors > 1 or Z.shape[1] > TUNING.max_columns or not rows.size:
            return None
        z = self.rows(Z, rows)[0].reshape(rows.size, -1)
        _, values, turn = np.linalg.svd(z)
        n_steep = int(np.count_nonzero(values > TUNING.flat_singular_value * values[0]))
        if n_steep == turn.shape[0]:
            return None
        steep, raw = turn[:n_steep].T, Z.take(rows)
        found = [self._flattened(v, z @ steep, steep, raw) for v in turn[n_steep:]]
        flat = [direction for direction in found if direction is not None]
        if not flat:
            return None
        return EnlargedCoordinates(self.centre, self.scale, self, steep, tuple(flat))

    def _flattened(self, v: Floats, along: Floats, steep: Floats, raw: Floats) -> Direction | None:
        """Return v minus its least-squares fit by the steep directions, in twice the precision.

        None if the difference is 0: then columns depend on each other exactly.
        """
        direction = self.direction(v)
        for _ in range(TUNING.orthogonalisations):
            values = direction.values(raw)
            size = float(np.abs(values).max())
            part = np.linalg.lstsq(along, values, rcond=None)[0]
            if size <= TUNING.zero_value or np.abs(values - along @ part).max() > 0.5 * size:
                break
            direction = direction.minus(self.direction(steep @ part))
        size = float(np.abs(direction.values(raw)).max())
        return direction.times(1.0 / size) if size > TUNING.zero_value else None

    def direction(self, v: Floats) -> Direction:
        """Return the combination v of these coordinates as a combination of columns of Z."""
        w = v[:-1] / self.scale
        b = Fraction(float(v[-1])) - exact_dot(self.centre, w)
        high, low = np.append(w, float(b)), np.zeros(v.size)
        low[-1] = float(b - Fraction(float(b)))
        return Direction(high, low)


@dataclass(frozen=True)
class Direction:
    """A combination of the columns of Z: the sum of two vectors, for twice the precision."""

    high: Floats
    low: Floats

    def values(self, raw: Floats) -> Floats:
        """Return the values of the combination on rows of Z."""
        both = np.hstack([raw, raw])
        return compensated_dot(both, np.concatenate([self.high, self.low]))[0]

    def minus(self, other: Direction) -> Direction:
        """Return the difference of two directions."""
        high, low = two_sums(self.high, -other.high)
        return Direction(*two_sums(high, low + (self.low - other.low)))

    def times(self, factor: float) -> Direction:
        """Return the direction times the power of two next to ``factor``, which is exact."""
        power = float(np.ldexp(1.0, int(np.frexp(factor)[1])))
        return Direction(self.high * power, self.low * power)


@dataclass(frozen=True)
class EnlargedCoordinates(Coordinates):
    """Steep directions of other coordinates, and flat ones enlarged; entries are at most 1."""

    base: Coordinates
    steep: Floats
    flat: tuple[Direction, ...]

    def rows(self, Z: Samples, rows: Integers) -> tuple[Floats, Floats]:
        raw = Z.take(rows)
        z = self.base.rows(Z, rows)[0].reshape(rows.size, -1) @ self.steep
        z = np.column_stack([z, *(direction.values(raw) for direction in self.flat)])
        sizes = np.maximum(np.abs(z).max(axis=1), np.finfo(float).tiny)
        return (z / sizes[:, np.newaxis])[:, np.newaxis], sizes

    def bounds(self, Z: Samples) -> Bounds:
        return [(-1.0, 1.0)] * (self.steep.shape[1] + len(self.flat))

    def weights(self, scaled: Floats, Z: Samples) -> Floats:
        n_steep = self.steep.shape[1]
        a = self.base.weights(self.steep @ scaled[:n_steep], Z)
        for weight, direction in zip(scaled[n_steep:], self.flat, strict=True):
            a = a + weight * direction.high
        if not Z.bias_step:
            a[-1] = 0.0
        return a

    def margins(self, Z: Samples, scaled: Floats) -> Floats:
        return Z.dot(self.weights(scaled, Z))


def _column_range(Z: Samples) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of each feature over the samples of Z."""
    low = np.full(Z.X.shape[1], np.inf)
    high = np.full(Z.X.shape[1], -np.inf)
    for block in blocks_of(Z.n_samples, Z.X.shape[1]):
        rows = Z.X[Z.index[block]]
        if sparse.issparse(Z.X):
            rows = sparse.vstack([rows.min(axis=0), rows.max(axis=0)]).toarray()
        np.minimum(low, rows.min(axis=0), out=low)
        np.maximum(high, rows.max(axis=0), out=high)
    return low, high
