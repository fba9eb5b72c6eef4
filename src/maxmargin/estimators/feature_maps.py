"""Finite features whose inner products approximate a kernel: Nyström's and random Fourier's.

Nyström: with landmarks z and K_zz = UΛUᵀ, φ̂(x) = Λ^(−½)Uᵀk(z, x). The kernel of φ̂ is the
projection of K on the span of the landmarks, exact on them. Fourier: for K(x, z) = exp(−γ‖x − z‖²)
and ω of the normal distribution of variance 2γ, φ̂(x) = √(2/D) cos(ω·x + β).

References
----------
Williams, Seeger, *NIPS* 13 (2000); Rahimi, Recht, *NIPS* 20 (2007); Musco, Musco, *NIPS* 30 (2017).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal, Protocol

import numpy as np
from scipy import linalg

from ..arrays import Floats, Integers, Matrix, blocks_of
from ..kernels import RBF, Kernel
from ..runtime.threads import in_parallel

Approximate = Literal["nystroem", "fourier"]
Landmarks = Literal["kmeans++", "leverage"]


@dataclass(frozen=True)
class Tuning:
    """Sizes of samples, and what counts as 0."""

    # Rows among which landmarks are chosen, per landmark.
    candidates_per_landmark: int = 8
    # Eigenvalues of K_zz, relative to the largest, below which a direction is left out: features
    # in float32 would be rounding there.
    least_eigenvalue: float = 1e-6
    # Rows of a block of features, and features from which float32 is used.
    block_rows: int = 2048
    float32_features: int = 1 << 22
    # Rows whose kernel values are compared with their approximation.
    compared_rows: int = 256
    # λ of ridge leverage scores, relative to the mean eigenvalue.
    ridge: float = 1.0


TUNING = Tuning()


class FeatureMap(Protocol):
    """x ↦ φ̂(x)."""

    @property
    def n_features(self) -> int:
        """The length of φ̂."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""

    def features(self, X: Matrix) -> Floats:
        """Return φ̂ of some rows, computed at once."""

    def attributes(self) -> dict[str, Any]:
        """Return what a model keeps of it."""


@dataclass(frozen=True)
class Nystroem:
    """φ̂(x) = k(x, z) M of the landmarks z."""

    kernel: Kernel
    landmarks: Matrix
    normalization: Floats

    @property
    def n_features(self) -> int:
        """The length of φ̂."""
        return int(self.normalization.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""
        return self.normalization.dtype

    def features(self, X: Matrix) -> Floats:
        """Return φ̂ of some rows, computed at once."""
        values = self.kernel(X.astype(self.dtype, copy=False), self.landmarks)
        return np.asarray(values, dtype=self.dtype) @ self.normalization

    def attributes(self) -> dict[str, Any]:
        """Return what a model keeps of it."""
        return {"landmarks_": self.landmarks, "normalization_": self.normalization}

    @classmethod
    def of(
        cls, kernel: Kernel, X: Matrix, n: int, how: Landmarks, rng: np.random.RandomState,
        dtype: np.dtype[Any],
    ) -> Nystroem:  # fmt: skip
        """Return the map of n landmarks among the rows of X."""
        n_rows = X.shape[0]
        n = min(n, n_rows)
        size = min(n_rows, TUNING.candidates_per_landmark * n)
        candidates = X[np.sort(rng.choice(n_rows, size, replace=False))].astype(np.float64)
        chosen = np.arange(n)
        if n < size:
            chosen = (_spread if how == "kmeans++" else _of_leverage)(kernel, candidates, n, rng)
        landmarks = candidates[chosen]
        values, vectors = linalg.eigh(kernel(landmarks))
        kept = values > TUNING.least_eigenvalue * max(float(values[-1]), 0.0)
        if not kept.any():
            raise ValueError(f"{kernel!r} is 0 on all landmarks: scale the features.")
        factor = (vectors[:, kept] / np.sqrt(values[kept])).astype(dtype)
        return cls(kernel, landmarks.astype(dtype), np.ascontiguousarray(factor))


def _spread(kernel: Kernel, rows: Matrix, n: int, rng: np.random.RandomState) -> Integers:
    """Return rows that are far from each other, by k-means++."""
    from sklearn.cluster import kmeans_plusplus

    chosen: Integers = np.unique(kmeans_plusplus(rows, n, random_state=rng)[1])
    return chosen


def _of_leverage(kernel: Kernel, rows: Matrix, n: int, rng: np.random.RandomState) -> Integers:
    """Return rows drawn by their ridge leverage, as a uniform sample estimates it."""
    size, sample = rows.shape[0], rng.choice(rows.shape[0], n, replace=False)
    K, diagonal = kernel(rows, rows[sample]), kernel.diagonal(rows)
    ridge = TUNING.ridge * float(diagonal.mean())
    inner = K[sample] + ridge * (n / size) * np.eye(n)
    explained = (K * linalg.solve(inner, K.T, assume_a="pos").T).sum(axis=1)
    leverage = np.maximum(diagonal - explained, 1e-12 * diagonal.max())
    chosen: Integers = rng.choice(size, n, replace=False, p=leverage / leverage.sum())
    return np.sort(chosen)


@dataclass(frozen=True)
class Fourier:
    """φ̂(x) = √(2/D) cos(ω·x + β) of D frequencies ω."""

    frequencies: Floats
    offsets: Floats

    @property
    def n_features(self) -> int:
        """The length of φ̂."""
        return int(self.offsets.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""
        return self.offsets.dtype

    def features(self, X: Matrix) -> Floats:
        """Return φ̂ of some rows, computed at once."""
        angles: Any = X.astype(self.dtype, copy=False) @ self.frequencies
        angles += self.offsets
        np.cos(angles, out=angles)
        angles *= self.dtype.type(np.sqrt(2.0 / self.n_features))
        return np.asarray(angles)

    def attributes(self) -> dict[str, Any]:
        """Return what a model keeps of it."""
        return {"frequencies_": self.frequencies, "offsets_": self.offsets}

    @classmethod
    def of(
        cls, kernel: Kernel, X: Matrix, n: int, rng: np.random.RandomState, dtype: np.dtype[Any]
    ) -> Fourier:
        """Return the map of n random frequencies of a Gaussian kernel."""
        if not isinstance(kernel, RBF):
            raise ValueError(
                f"approximate='fourier' is for kernel='rbf', got {kernel!r}: use "
                "approximate='nystroem', which takes any kernel."
            )
        frequencies = np.sqrt(2.0 * kernel.gamma) * rng.standard_normal((X.shape[1], n))
        offsets = rng.uniform(0.0, 2.0 * np.pi, n)
        return cls(frequencies.astype(dtype), offsets.astype(dtype))


def map_of_model(model: Any) -> FeatureMap:
    """Return the map of a fitted model."""
    if hasattr(model, "landmarks_"):
        return Nystroem(model.kernel_, model.landmarks_, model.normalization_)
    return Fourier(model.frequencies_, model.offsets_)


# Features of many rows ---------------------------------------------------------------------------


def transformed(phi: FeatureMap, X: Matrix) -> Floats:
    """Return φ̂ of all rows, by blocks on all cores."""
    found = np.empty((X.shape[0], phi.n_features), dtype=phi.dtype)

    def fill(rows: slice, stop: Event) -> None:
        if not stop.is_set():
            found[rows] = phi.features(X[rows])

    in_parallel(fill, list(_blocks(X.shape[0])))
    return found


def scores_of(phi: FeatureMap, X: Matrix, W: Floats) -> Floats:
    """Return w·φ̂(x) of every row and plane in float64, without keeping features."""
    scores = np.empty((X.shape[0], len(W)))

    def fill(rows: slice, stop: Event) -> None:
        if not stop.is_set():
            scores[rows] = phi.features(X[rows]).astype(np.float64, copy=False) @ W.T

    in_parallel(fill, list(_blocks(X.shape[0])))
    return scores


def _blocks(n: int) -> Iterator[slice]:
    return (slice(k, min(k + TUNING.block_rows, n)) for k in range(0, n, TUNING.block_rows))


def feature_blocks(phi: FeatureMap, X: Matrix) -> Iterator[Floats]:
    """Yield φ̂ of blocks of rows, each computed on all cores."""
    for block in blocks_of(X.shape[0], phi.n_features):
        yield transformed(phi, X[block])


def kernel_errors(
    kernel: Kernel, phi: FeatureMap, X: Matrix, rng: np.random.RandomState
) -> tuple[float, float]:
    """Return the root mean square and the largest |K(x, z) − φ̂(x)·φ̂(z)| of a sample of rows."""
    n = min(TUNING.compared_rows, X.shape[0])
    rows = X[np.sort(rng.choice(X.shape[0], n, replace=False))].astype(np.float64)
    features = transformed(phi, rows).astype(np.float64)
    error = np.abs(kernel(rows) - features @ features.T)
    return float(np.sqrt(np.square(error).mean())), float(error.max())


def type_of_features(X: Matrix, n: int) -> np.dtype[Any]:
    """Return float32 where X is, or where features are many, else float64."""
    many = X.shape[0] * n >= TUNING.float32_features
    return np.dtype(np.float32 if many or X.dtype == np.float32 else np.float64)
