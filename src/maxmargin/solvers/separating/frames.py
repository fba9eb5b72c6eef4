"""Coordinates in which to ask for a plane: separability does not depend on them, rounding does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers, blocks_of
from ...certificates.compensated import compensated_dot, exact_dot, two_sums
from ...data.normalised_samples import Samples

# Relative singular value of the rows below which a direction is enlarged, the columns up to which
# this is done, and how often a direction is made flatter.
FLAT, WIDEST, PASSES = 1e-6, 400, 3
# What twice the precision leaves of a direction that is 0 on all rows.
NOTHING = 1e-28


@dataclass(frozen=True)
class Frame:
    """Centred and scaled features, (x − centre)/scale; scales are powers of two."""

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, Z: Samples) -> Frame:
        """Return the frame in which every feature of Z goes from −1 to 1, about."""
        low, high = _column_range(Z)
        shifts = Z.bias_step and not sparse.issparse(Z.X)
        centre = low + 0.5 * (high - low) if shifts else np.zeros_like(low)
        spread = np.maximum(np.abs(high - centre), np.abs(centre - low))
        return cls(centre, np.ldexp(1.0, np.frexp(np.where(spread > 0, spread, 0.5))[1]))

    def rows(self, Z: Samples, rows: Integers) -> tuple[Floats, Floats]:
        """Return rows of Z in this frame, (n_rows, n_vectors, width), and what divided them."""
        z = Z.take(rows).reshape(rows.size, Z.n_vectors, -1)
        z[..., :-1] = (z[..., :-1] - self.centre * z[..., -1:]) / self.scale
        return z, np.ones(rows.size)

    def bounds(self, Z: Samples) -> list[Any]:
        """Return the range of each weight: |w_j| ≤ 1, and of a bias everything."""
        free = (None, None) if Z.bias_step else (0.0, 0.0)
        width = Z.X.shape[1] + 1
        bounds: list[Any] = ([(-1.0, 1.0)] * (width - 1) + [free]) * Z.n_vectors
        # A linear machine does not change when all its classes move together: pin the last one.
        if Z.n_vectors > 1:
            bounds[-width:] = [(0.0, 0.0)] * width
        return bounds

    def weights(self, scaled: Floats, Z: Samples) -> Floats:
        """Turn weights for this frame into a of Z."""
        vectors = scaled.reshape(Z.n_vectors, -1)
        w = vectors[:, :-1] / self.scale
        return Z.pack(w, vectors[:, -1] - w @ self.centre)

    def margins(self, Z: Samples, scaled: Floats) -> Floats:
        """Return Za for a of these weights, as accurate as this frame is."""
        if not self.centre.any():
            return Z.dot(self.weights(scaled, Z))
        margins = np.empty(Z.shape[0])
        for block in blocks_of(Z.shape[0], Z.shape[1]):
            z, _ = self.rows(Z, np.arange(block.start, block.stop))
            margins[block] = z.reshape(len(z), -1) @ scaled
        return margins

    def enlarged(self, Z: Samples, rows: Integers) -> EnlargedFrame | None:
        """Return a frame that enlarges the directions in which the rows are flat, but not 0.

        None where there is none, or where there are too many columns.
        """
        if Z.n_vectors > 1 or Z.shape[1] > WIDEST or not rows.size:
            return None
        z = self.rows(Z, rows)[0].reshape(rows.size, -1)
        _, values, turn = np.linalg.svd(z)
        n_steep = int(np.count_nonzero(values > FLAT * values[0]))
        if n_steep == turn.shape[0]:
            return None
        steep, raw = turn[:n_steep].T, Z.take(rows)
        found = [self._flattened(v, z @ steep, steep, raw) for v in turn[n_steep:]]
        flat = [direction for direction in found if direction is not None]
        return EnlargedFrame(self.centre, self.scale, self, steep, tuple(flat)) if flat else None

    def _flattened(self, v: Floats, along: Floats, steep: Floats, raw: Floats) -> Direction | None:
        """Return the direction v less what of it the steep ones explain, to twice the precision.

        None where nothing is left: columns that depend on each other exactly.
        """
        direction = self.direction(v)
        for _ in range(PASSES):
            values = direction.values(raw)
            size = float(np.abs(values).max())
            part = np.linalg.lstsq(along, values, rcond=None)[0]
            if size <= NOTHING or np.abs(values - along @ part).max() > 0.5 * size:
                break
            direction = direction.minus(self.direction(steep @ part))
        size = float(np.abs(direction.values(raw)).max())
        return direction.times(1.0 / size) if size > NOTHING else None

    def direction(self, v: Floats) -> Direction:
        """Return the combination v of columns of this frame as one of the columns of Z."""
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
        """Return the combination of rows of Z."""
        both = np.hstack([raw, raw])
        return compensated_dot(both, np.concatenate([self.high, self.low]))[0]

    def minus(self, other: Direction) -> Direction:
        """Return the difference of two directions."""
        high, low = two_sums(self.high, -other.high)
        return Direction(*two_sums(high, low + (self.low - other.low)))

    def times(self, factor: float) -> Direction:
        """Return the direction times about a factor: a power of two, which rounds nothing."""
        power = float(np.ldexp(1.0, int(np.frexp(factor)[1])))
        return Direction(self.high * power, self.low * power)


@dataclass(frozen=True)
class EnlargedFrame(Frame):
    """Steep directions of a frame, and flat ones enlarged; rows are scaled to at most 1."""

    base: Frame
    steep: Floats
    flat: tuple[Direction, ...]

    def rows(self, Z: Samples, rows: Integers) -> tuple[Floats, Floats]:
        raw = Z.take(rows)
        z = self.base.rows(Z, rows)[0].reshape(rows.size, -1) @ self.steep
        z = np.column_stack([z, *(direction.values(raw) for direction in self.flat)])
        sizes = np.maximum(np.abs(z).max(axis=1), np.finfo(float).tiny)
        return (z / sizes[:, np.newaxis])[:, np.newaxis], sizes

    def bounds(self, Z: Samples) -> list[Any]:
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
    """Smallest and largest value of each feature over the samples of Z."""
    low = np.full(Z.X.shape[1], np.inf)
    high = np.full(Z.X.shape[1], -np.inf)
    for block in blocks_of(Z.n_samples, Z.X.shape[1]):
        rows = Z.X[Z.index[block]]
        if sparse.issparse(Z.X):
            rows = sparse.vstack([rows.min(axis=0), rows.max(axis=0)]).toarray()
        np.minimum(low, rows.min(axis=0), out=low)
        np.maximum(high, rows.max(axis=0), out=high)
    return low, high
