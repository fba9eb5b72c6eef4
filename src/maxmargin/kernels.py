"""Kernels K(x, z) = φ(x)·φ(z) as frozen values: formulas of (⟨x,z⟩, ‖x‖², ‖z‖²).

Whoever has the data does the matrix product; a kernel turns the products into its values in place.
Schölkopf, Smola, *Learning with Kernels*, chapters 2 and 13, is the reference.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from itertools import combinations_with_replacement
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigvalsh

Floats: TypeAlias = NDArray[np.floating[Any]]
Rows: TypeAlias = ArrayLike | sp.spmatrix | sp.sparray

_BLOCK = 1 << 18  # numbers worked on at a time, so that temporaries stay in cache
_LARGEST_MAP = 10_000_000  # numbers in an explicit feature map
_LARGEST_GRAM = 2 << 30  # bytes of the Gram matrix of `mercer`


@dataclass(frozen=True, eq=False)
class Kernel(ABC):
    """A kernel: a comparable, hashable value that maps inner products elementwise.

    Sums, products and positive multiples of kernels are kernels: ``K1 + K2``, ``K1 * K2``,
    ``2 * K1`` (Schölkopf, Smola, section 13.1).

    Examples
    --------
    >>> 0.5 * Linear() + RBF(sigma=1.0)
    0.5 * Linear() + RBF(gamma=0.5)
    """

    __array_ufunc__: ClassVar[None] = None  # lets numpy scalars leave ``2 * K`` to __rmul__

    @property
    def elementwise(self) -> bool:
        """Whether `from_products` defines this kernel."""
        return True

    @property
    def shift_invariant(self) -> bool:
        """Whether K(x − c, z − c) = K(x, z), so that rows may be centred for accuracy."""
        return False

    @abstractmethod
    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        """Return K from inner products, in the dtype of ``dot`` and, where possible, its memory.

        Parameters
        ----------
        dot : ndarray of shape (..., n, m)
            Inner products ⟨x,z⟩; given away by the caller, and overwritten.
        x_sq : ndarray of shape (..., n)
            ‖x‖². Passing the diagonal of ``dot`` where X = Z makes that of an RBF exactly 1.
        z_sq : ndarray of shape (..., m)
            ‖z‖².

        Returns
        -------
        ndarray of shape (..., n, m)

        Examples
        --------
        >>> one = np.ones(1)
        >>> print(Polynomial(2, coef0=1.0).from_products(np.array([[3.0]]), one, one))
        [[16.]]
        """

    def __call__(self, X: Rows, Z: Rows | None = None) -> Floats:
        """Return the Gram block K(x_i, z_j).

        Parameters
        ----------
        X : array-like or sparse of shape (n, d)
        Z : array-like or sparse of shape (m, d), optional
            X itself by default.

        Returns
        -------
        ndarray of shape (n, m): float32 where X and Z both are, else float64.

        Examples
        --------
        >>> print(Linear()([[1, 2], [3, 4]]))
        [[ 5. 11.]
         [11. 25.]]
        """
        pair = _Pair(X, Z, exclusive=self.elementwise, centre=self.shift_invariant)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self._gram(pair)
        if not _all_finite(K):
            raise ValueError(f"{self!r} overflows {K.dtype} on X: rescale the features.")
        return K

    def diagonal(self, X: Rows) -> NDArray[np.float64]:
        """Return K(x_i, x_i) for every row, shape (n,), in float64.

        Examples
        --------
        >>> print(Polynomial(2).diagonal([[1, 1], [0, 3]]))
        [ 4. 81.]
        """
        squares = squared_norms(X)[:, None]
        with np.errstate(over="ignore"):
            K = self.from_products(squares[:, :, None].copy(), squares, squares)
        if not _all_finite(K):
            raise ValueError(f"{self!r} overflows float64 on X: rescale the features.")
        return K.reshape(-1).astype(np.float64, copy=False)

    def _gram(self, pair: _Pair) -> Floats:
        dot, x_sq, z_sq = pair.products
        return self.from_products(dot if pair.exclusive else dot.copy(), x_sq, z_sq)

    def __add__(self, other: Kernel) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum(_parts_of(self, Sum) + _parts_of(other, Sum))

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(_parts_of(self, Product) + _parts_of(other, Product))
        return Scaled(other, self) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__

    def __sklearn_clone__(self) -> Kernel:
        return self  # frozen: a value is its own copy


@dataclass(frozen=True)
class Linear(Kernel):
    """K(x, z) = ⟨x, z⟩ (Schölkopf, Smola, section 2.1).

    Examples
    --------
    >>> float(Linear()([[1, 2]], [[3, 4]])[0, 0])
    11.0
    """

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        return dot

    def feature_map(self, X: Rows) -> Rows:
        """Return φ(x) = x, that is X itself.

        Examples
        --------
        >>> Linear().feature_map([[1, 2]])
        [[1, 2]]
        """
        return X


@dataclass(frozen=True)
class Polynomial(Kernel):
    """K(x, z) = (γ⟨x, z⟩ + r)^p (Schölkopf, Smola, sections 2.1 and 2.3).

    Positive semidefinite for r ≥ 0; a negative r is allowed and in general is not.

    Parameters
    ----------
    degree : int, default=3
        p ≥ 1.
    gamma : float, default=1.0
        γ > 0.
    coef0 : float, default=0.0
        r; 0 is the homogeneous kernel, 1 the textbook's.

    Examples
    --------
    >>> float(Polynomial(2, coef0=1.0)([[1, 2]], [[3, 4]])[0, 0])
    144.0
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.degree, Integral) or isinstance(self.degree, bool):
            raise ValueError(f"degree={self.degree!r} must be an int: pass one, at least 1.")
        if self.degree < 1:
            raise ValueError(f"degree={self.degree!r} must be at least 1: pass 1, 2, 3, ….")
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "gamma", _positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", _finite("coef0", self.coef0))

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        dot *= self.gamma
        dot += self.coef0
        for block in _row_slices(dot):
            _raise_to(dot[block], self.degree)
        return dot

    def monomials(self, d: int) -> list[tuple[int, ...]]:
        """Return the exponents (k_1, …, k_d) of the coordinates of `feature_map`, in its order.

        Order: total degree, then largest exponent, both ascending, then x₁ before x₂ before ….
        There are C(d+p, p) of them, and C(d+p−1, p), all of degree p, where coef0 = 0.

        Examples
        --------
        >>> Polynomial(2, coef0=1.0).monomials(2)
        [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)]
        """
        if not isinstance(d, Integral) or isinstance(d, bool) or d < 1:
            raise ValueError(f"d={d!r} must be an int of at least 1: pass the number of features.")
        self._refuse_large(int(d), "exponents", int(d))
        return [tuple(map(indices.count, range(d))) for indices in self._indices(int(d))]

    def feature_map(self, X: Rows) -> Floats:
        """Return φ(X) with ⟨φ(x), φ(z)⟩ = K(x, z): the coordinate of x₁^k₁…x_d^k_d is
        √(p!/(k₀!k₁!…k_d!) γ^(p−k₀) r^k₀) x₁^k₁…x_d^k_d with k₀ = p − Σk_j.

        Parameters
        ----------
        X : array-like or sparse of shape (n, d)

        Returns
        -------
        ndarray of shape (n, D), D the length of ``monomials(d)``; float32 where X is.

        Examples
        --------
        >>> print(Polynomial(2, coef0=1.0).feature_map([[1, 3]]).round(4))
        [[1.     1.4142 4.2426 4.2426 1.     9.    ]]
        """
        if self.coef0 < 0:
            raise ValueError(f"coef0={self.coef0} < 0 has no real feature map: pass coef0 >= 0.")
        rows = _as_rows(X, "X")
        n, d = rows.shape
        self._refuse_large(d, f"numbers ({n} rows)", max(n, self.degree))
        # (γ⟨x,z⟩ + r)^p is the homogeneous kernel of the rows (√γ x, √r); index d is the √r.
        dense = rows.toarray() if _is_sparse(rows) else rows
        unit = np.full((n, 1), math.sqrt(self.coef0), dtype=rows.dtype)
        augmented = np.hstack([dense * math.sqrt(self.gamma), unit])
        table = [i + (d,) * (self.degree - len(i)) for i in self._indices(d)]
        phi = np.empty((n, len(table)), dtype=rows.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            phi[:] = [_root_multinomial(indices) for indices in table]
            for column in np.array(table, dtype=np.intp).T:
                phi *= augmented[:, column]
        if not _all_finite(phi):
            raise ValueError(f"the feature map of {self!r} overflows on X: rescale the features.")
        return phi

    def _indices(self, d: int) -> list[tuple[int, ...]]:
        """Monomials as sorted variable indices: x₀x₀x₁ is (0, 0, 1)."""
        degrees = range(0 if self.coef0 else self.degree, self.degree + 1)
        return [
            indices
            for k in degrees
            for indices in sorted(combinations_with_replacement(range(d), k), key=_largest_exponent)
        ]

    def _refuse_large(self, d: int, what: str, each: int) -> None:
        p = self.degree
        size = each * (math.comb(d + p, p) if self.coef0 else math.comb(d + p - 1, p))
        if size > _LARGEST_MAP:
            raise ValueError(
                f"the feature map of {self!r} in {d} dimensions needs {size} {what}, more than "
                f"{_LARGEST_MAP}: use the kernel itself, fewer rows or a lower degree."
            )


@dataclass(frozen=True, init=False)
class RBF(Kernel):
    """K(x, z) = exp(−γ‖x − z‖²), γ = 1/2σ² (Schölkopf, Smola, section 2.3).

    Parameters
    ----------
    gamma, sigma : float
        Exactly one of γ > 0 and σ > 0; both can be read afterwards.

    Examples
    --------
    >>> RBF(sigma=2.0), RBF(gamma=0.125).sigma
    (RBF(gamma=0.125), 2.0)
    """

    gamma: float

    def __init__(self, gamma: float | None = None, sigma: float | None = None) -> None:
        if (gamma is None) == (sigma is None):
            raise ValueError(f"gamma={gamma!r}, sigma={sigma!r}: pass exactly one of the two.")
        if sigma is not None:
            width = _positive("sigma", sigma)
            gamma = 0.5 / width / width
            if not 0 < gamma < math.inf:
                raise ValueError(f"sigma={sigma!r} gives gamma={gamma}: pass it nearer to 1.")
        object.__setattr__(self, "gamma", _positive("gamma", gamma))

    @property
    def sigma(self) -> float:
        """σ = 1/√(2γ)."""
        return math.sqrt(0.5 / self.gamma)

    @property
    def shift_invariant(self) -> bool:
        return True

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        # −½‖x − z‖² = ⟨x,z⟩ − ½‖x‖² − ½‖z‖²: exactly 0 where the three products are equal.
        dot -= (0.5 * x_sq).astype(dot.dtype)[..., :, None]
        dot -= (0.5 * z_sq).astype(dot.dtype)[..., None, :]
        np.minimum(dot, 0.0, out=dot)
        dot *= 2.0 * self.gamma
        return np.exp(dot, out=dot)


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """K(x, z) = tanh(γ⟨x, z⟩ + r), not positive semidefinite in general.

    See Schölkopf, Smola, section 2.3. γ > 0; r is any finite number.

    Examples
    --------
    >>> float(Sigmoid()([[0.0, 0.0]])[0, 0])
    0.0
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", _finite("coef0", self.coef0))

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        dot *= self.gamma
        dot += self.coef0
        return np.tanh(dot, out=dot)


@dataclass(frozen=True, eq=False)
class _Opaque(Kernel):
    """A kernel that is no formula of inner products."""

    @property
    def elementwise(self) -> bool:
        return False

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        raise TypeError(f"{self!r} is no function of inner products: call it on the rows instead.")


@dataclass(frozen=True)
class Precomputed(_Opaque):
    """X already holds K(x_i, z_j) against the training rows z_j: calling it returns X itself.

    Examples
    --------
    >>> print(Precomputed()([[2.0, 1.0], [1.0, 2.0]]))
    [[2. 1.]
     [1. 2.]]
    """

    def diagonal(self, X: Rows) -> NDArray[np.float64]:
        """Return the diagonal of a square X."""
        rows = _as_rows(X, "X")
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(f"X has shape {rows.shape}: pass the square Gram matrix.")
        return np.array(rows.diagonal(), dtype=np.float64)

    def _gram(self, pair: _Pair) -> Floats:
        if not pair.same and pair.X.shape[1] != pair.Z.shape[0]:
            raise ValueError(
                f"X has {pair.X.shape[1]} columns for {pair.Z.shape[0]} training rows: pass "
                "kernel values of shape (n_samples, n_training_rows)."
            )
        K = pair.X.toarray() if _is_sparse(pair.X) else pair.X
        if not _all_finite(K):
            raise ValueError("X holds NaN or inf as kernel values: pass finite ones.")
        return K


@dataclass(frozen=True, repr=False)
class Custom(_Opaque):
    """K(X, Z) from any callable f(X, Z) → array of shape (n, m), whose result is checked.

    Parameters
    ----------
    function : callable
        Receives two 2-D arrays (CSR where the data are). Its float dtype is kept.

    Examples
    --------
    >>> print(Custom(lambda X, Z: X @ Z.T)([[1.0, 2.0]], [[3.0, 4.0]]))
    [[11.]]
    """

    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise ValueError(f"function={self.function!r} must be a callable f(X, Z): pass one.")

    def __repr__(self) -> str:
        return f"Custom({getattr(self.function, '__qualname__', repr(self.function))})"

    def diagonal(self, X: Rows) -> NDArray[np.float64]:
        """Return K(x_i, x_i), from the diagonals of small square blocks."""
        rows = _as_rows(X, "X")
        values = np.empty(rows.shape[0])
        for start in range(0, rows.shape[0], 64):
            values[start : start + 64] = self(rows[start : start + 64]).diagonal()
        return values

    def _gram(self, pair: _Pair) -> Floats:
        value = self.function(pair.X, pair.Z)
        K: NDArray[Any] = value.toarray() if _is_sparse(value) else np.asarray(value)
        expected = (pair.X.shape[0], pair.Z.shape[0])
        if K.shape != expected:
            raise ValueError(
                f"{self!r} returned shape {K.shape} for X of shape {pair.X.shape} and Z of shape "
                f"{pair.Z.shape}: return {expected}."
            )
        if K.dtype.kind not in "biuf":
            raise ValueError(f"{self!r} returned dtype {K.dtype}: return real numbers.")
        if K.dtype not in (np.float32, np.float64):
            K = K.astype(np.float64)
        if not _all_finite(K):
            i, j = np.argwhere(~np.isfinite(K))[0]
            raise ValueError(f"{self!r} returned {K[i, j]} at [{i}, {j}]: return finite values.")
        return K


@dataclass(frozen=True, repr=False)
class _Composition(Kernel):
    """Several kernels joined by one operation on the same inner products."""

    parts: tuple[Kernel, ...]
    combine: ClassVar[np.ufunc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts or not all(isinstance(part, Kernel) for part in self.parts):
            raise ValueError(f"parts={self.parts!r} must be kernels: pass at least one.")

    @property
    def elementwise(self) -> bool:
        return all(part.elementwise for part in self.parts)

    @property
    def shift_invariant(self) -> bool:
        return all(part.shift_invariant for part in self.parts)

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        for block in _row_slices(dot):  # so that only blocks, not dot, are copied for the parts
            x, z = x_sq[block], z_sq if dot.ndim == 2 else z_sq[block]
            values = (part.from_products(dot[block].copy(), x, z) for part in self.parts)
            dot[block] = reduce(self.combine, values)
        return dot

    def diagonal(self, X: Rows) -> NDArray[np.float64]:
        """Return K(x_i, x_i), joined from the diagonals of the parts."""
        with np.errstate(over="ignore"):
            K = reduce(self.combine, (part.diagonal(X) for part in self.parts))
        if not _all_finite(K):
            raise ValueError(f"{self!r} overflows float64 on X: rescale the features.")
        return K

    def _gram(self, pair: _Pair) -> Floats:
        if self.elementwise:
            return super()._gram(pair)
        return reduce(self.combine, (part._gram(pair) for part in self.parts))


@dataclass(frozen=True, repr=False)
class Sum(_Composition):
    """K(x, z) = Σ_k K_k(x, z) (Schölkopf, Smola, section 13.1).

    Examples
    --------
    >>> Linear() + RBF(1.0) == Sum((Linear(), RBF(1.0)))
    True
    """

    combine = np.add

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


@dataclass(frozen=True, repr=False)
class Product(_Composition):
    """K(x, z) = Π_k K_k(x, z) (Schölkopf, Smola, section 13.1).

    Examples
    --------
    >>> Linear() * RBF(1.0)
    Linear() * RBF(gamma=1.0)
    """

    combine = np.multiply

    def __repr__(self) -> str:
        return " * ".join(map(_as_factor, self.parts))


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """c·K(x, z) with c > 0 (Schölkopf, Smola, section 13.1).

    Examples
    --------
    >>> 2 * (3 * Linear())
    6.0 * Linear()
    """

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        factor, kernel = _positive("factor", self.factor), self.kernel
        if isinstance(kernel, Scaled):
            factor, kernel = _positive("factor", factor * kernel.factor), kernel.kernel
        if not isinstance(kernel, Kernel):
            raise ValueError(f"kernel={kernel!r} must be a kernel: pass one, such as Linear().")
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "kernel", kernel)

    @property
    def elementwise(self) -> bool:
        return self.kernel.elementwise

    @property
    def shift_invariant(self) -> bool:
        return self.kernel.shift_invariant

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_as_factor(self.kernel)}"

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        K = self.kernel.from_products(dot, x_sq, z_sq)
        K *= self.factor
        return K

    def diagonal(self, X: Rows) -> NDArray[np.float64]:
        """Return c·K(x_i, x_i)."""
        return self.factor * self.kernel.diagonal(X)

    def _gram(self, pair: _Pair) -> Floats:
        if self.elementwise:
            return super()._gram(pair)
        return self.kernel._gram(pair) * self.factor


KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "poly": Polynomial,
    "rbf": RBF,
    "sigmoid": Sigmoid,
    "precomputed": Precomputed,
}


def resolve(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: float | Literal["scale", "auto"] = "scale",
    sigma: float | None = None,
    degree: int = 3,
    coef0: float = 0.0,
    X: Rows | None = None,
) -> Kernel:
    """Turn scikit-learn's spelling of a kernel into a `Kernel`.

    γ = 1/(d·Var X) for "scale" (1 where the variance is 0), 1/d for "auto", else the number given;
    σ replaces it for "rbf". A `Kernel` is returned as it is, any other callable as `Custom`.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, Kernel or callable
    gamma, sigma, degree, coef0 :
        Parameters of the named kernels; as in scikit-learn those a kernel lacks are not used,
        except sigma, which is an error.
    X : array-like or sparse of shape (n, d), optional
        Needed for gamma="scale" and "auto" only.

    Examples
    --------
    >>> resolve("rbf", gamma="auto", X=[[0.0, 1.0]])
    RBF(gamma=0.5)
    """
    if isinstance(kernel, str) and kernel not in KERNELS:
        known = ", ".join(map(repr, KERNELS))
        raise ValueError(f"kernel={kernel!r} is unknown: pass {known}, a Kernel or a callable.")
    if sigma is not None and kernel != "rbf":
        raise ValueError(f'sigma={sigma!r} is for kernel="rbf" only: leave it out.')
    if sigma is not None and not isinstance(gamma, str):
        raise ValueError(f"gamma={gamma!r} and sigma={sigma!r}: pass only one of the two.")
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        if not callable(kernel) or isinstance(kernel, type):
            raise ValueError(f"kernel={kernel!r} is none: pass a name, a Kernel or a callable.")
        return Custom(kernel)
    if sigma is not None:
        return RBF(sigma=sigma)
    build: Callable[..., Kernel] = KERNELS[kernel]
    wanted = {field.name for field in fields(KERNELS[kernel])}
    options: dict[str, Any] = {"degree": degree, "coef0": coef0}
    chosen = {name: value for name, value in options.items() if name in wanted}
    if "gamma" in wanted:
        chosen["gamma"] = _resolve_gamma(gamma, X)
    return build(**chosen)


@dataclass(frozen=True)
class MercerReport:
    """What `mercer` found: symmetry and extreme eigenvalues of a Gram matrix.

    Examples
    --------
    >>> print(MercerReport(0.0, 1.0, 3.0, True, 2))
    positive semidefinite on 2 rows: eigenvalues 1 to 3, asymmetry 0
    """

    asymmetry: float
    smallest_eigenvalue: float
    largest_eigenvalue: float
    positive_semidefinite: bool
    n_samples: int

    def __str__(self) -> str:
        verdict = "positive semidefinite" if self.positive_semidefinite else "NOT a Mercer kernel"
        return (
            f"{verdict} on {self.n_samples} rows: eigenvalues {self.smallest_eigenvalue:.6g} to "
            f"{self.largest_eigenvalue:.6g}, asymmetry {self.asymmetry:.3g}"
        )


def mercer(kernel: Kernel, X: Rows, tol: float | None = None) -> MercerReport:
    """Check Mercer's condition on a sample: K = Kᵀ and vᵀKv ≥ 0 for every v.

    Parameters
    ----------
    kernel : Kernel
    X : array-like or sparse of shape (n, d)
    tol : float, optional
        Rounding allowed, relative to the largest |eigenvalue|; 10·max(n, d)·2⁻⁵² by default.

    Returns
    -------
    MercerReport
        Asymmetry max|K − Kᵀ| and the extreme eigenvalues of (K + Kᵀ)/2.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels*, section 2.2.

    Examples
    --------
    >>> mercer(Sigmoid(coef0=-1.0), [[0.0], [1.0]]).positive_semidefinite
    False
    """
    rows = _as_rows(X, "X").astype(np.float64, copy=False)
    n, d = rows.shape
    if n == 0 or 8 * n * n > _LARGEST_GRAM:
        largest = math.isqrt(_LARGEST_GRAM // 8)
        raise ValueError(f"X has {n} rows: pass a subset of between 1 and {largest} rows.")
    K = kernel(rows)
    if K.shape != (n, n):
        raise ValueError(f"{kernel!r} gives a matrix of shape {K.shape}: pass a square one.")
    asymmetry = float((K - K.T).max())
    spectrum = eigvalsh(0.5 * (K + K.T).T, overwrite_a=True)
    scale = float(np.abs(spectrum).max())
    if tol is None:
        tol = 10 * max(n, d) * float(np.finfo(np.float64).eps)
    fine = spectrum[0] >= -tol * scale and asymmetry <= tol * scale
    return MercerReport(asymmetry, float(spectrum[0]), float(spectrum[-1]), bool(fine), n)


def squared_norms(X: Rows) -> NDArray[np.float64]:
    """Return ‖x_i‖² for every row, shape (n,), summed in float64 without a float64 copy of X.

    Examples
    --------
    >>> print(squared_norms([[3, 4], [1, 0]]))
    [25.  1.]
    """
    rows = _as_rows(X, "X")
    return _refuse_overflow(_squares(rows), rows, "X")


class _Pair:
    """Rows X and Z in their common dtype; their inner products are formed once, when needed."""

    def __init__(self, X: Rows, Z: Rows | None, *, exclusive: bool, centre: bool) -> None:
        self.same = Z is None or Z is X
        self.exclusive = exclusive  # whether a single kernel uses, and so may overwrite, them
        self.centre = centre
        self.X = self.Z = _as_rows(X, "X")
        if not self.same:
            self.Z = _as_rows(Z, "Z")
            common = np.result_type(self.X.dtype, self.Z.dtype)
            self.X = self.X.astype(common, copy=False)
            self.Z = self.Z.astype(common, copy=False)

    @cached_property
    def products(self) -> tuple[Floats, Floats, Floats]:
        """⟨x,z⟩ of shape (n, m), ‖x‖² of shape (n,) and ‖z‖² of shape (m,)."""
        X, Z = self.X, self.Z
        if X.shape[1] != Z.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns, Z has {Z.shape[1]}: pass as many.")
        if self.centre and Z.shape[0] and not (_is_sparse(X) or _is_sparse(Z)):
            X, Z = _centred(X, Z)
        dot = _inner_products(X, Z)
        if self.same:  # the very numbers on the diagonal, so that ‖x − x‖² is exactly 0
            squares = _refuse_overflow(dot.diagonal().copy(), self.X, "X")
            return dot, squares, squares
        x_sq, z_sq = (_squares(rows).astype(dot.dtype, copy=False) for rows in (X, Z))
        _refuse_overflow(x_sq, self.X, "X")
        return dot, x_sq, _refuse_overflow(z_sq, self.Z, "Z")


def _inner_products(X: Any, Z: Any) -> Floats:
    if not (_is_sparse(X) and _is_sparse(Z)):
        return np.asarray(X @ Z.T)
    dot = np.empty((X.shape[0], Z.shape[0]), dtype=X.dtype)
    for block in _row_slices(dot):  # a full sparse product would hold three times dot
        dot[block] = (X[block] @ Z.T).toarray()
    return dot


def _centred(X: Any, Z: Any) -> tuple[Any, Any]:
    """Subtract from X and Z the mean of those columns of Z whose mean exceeds their spread.

    There ‖x‖² + ‖z‖² − 2⟨x,z⟩ would cancel; elsewhere the mean may be that of an outlier.
    """
    mean = Z.mean(axis=0, dtype=np.float64)
    power = np.einsum("ij,ij->j", Z, Z, dtype=np.float64) / Z.shape[0]
    centre = np.where(2.0 * mean**2 > power, mean, 0.0).astype(Z.dtype)
    if not centre.any():
        return X, Z
    moved = Z - centre
    return (moved if X is Z else X - centre), moved


def _squares(rows: Any) -> NDArray[np.float64]:
    if not _is_sparse(rows):
        return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    total = rows.astype(np.float64, copy=False).power(2).sum(axis=1)
    return np.asarray(total, dtype=np.float64).reshape(-1)


def _refuse_overflow(squares: NDArray[Any], rows: Any, name: str) -> NDArray[Any]:
    """Return ‖x_i‖² if finite: then, by Cauchy-Schwarz, so are all inner products."""
    if _all_finite(squares):
        return squares
    i = int(np.flatnonzero(~np.isfinite(squares))[0])
    row = rows[[i]].toarray()[0] if _is_sparse(rows) else rows[i]
    bad = np.flatnonzero(~np.isfinite(row))
    if bad.size:
        raise ValueError(f"{name}[{i}, {bad[0]}]={row[bad[0]]} is not finite: impute or remove it.")
    raise ValueError(f"‖x‖² of {name}[{i}] overflows {rows.dtype}: rescale the features.")


def _as_rows(X: Any, name: str) -> Any:
    """Return X as a float32 or float64 2-D array or CSR matrix without duplicate entries."""
    rows: Any = X.tocsr() if _is_sparse(X) else np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(
            f"{name} has shape {rows.shape}: pass (n, d) with d >= 1; one row is x.reshape(1, -1)."
        )
    if rows.dtype.kind not in "biufO":
        raise ValueError(f"{name} has dtype {rows.dtype}: pass real numbers.")
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if _is_sparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _resolve_gamma(gamma: float | str, X: Rows | None) -> float:
    if not isinstance(gamma, str):
        return gamma
    if gamma not in ("scale", "auto"):
        raise ValueError(f'gamma={gamma!r} is unknown: pass "scale", "auto" or a number > 0.')
    if X is None:
        raise ValueError(f"gamma={gamma!r} depends on the data: pass X, or a number as gamma.")
    rows = _as_rows(X, "X")
    if gamma == "auto":
        return 1.0 / rows.shape[1]
    variance = _variance(rows)
    return 1.0 / (rows.shape[1] * variance) if variance else 1.0


def _variance(rows: Any) -> float:
    """Variance of all entries, the zeros of a sparse X included, summed in float64 by blocks."""
    stored = rows.data[:, None] if _is_sparse(rows) else rows
    size = rows.shape[0] * rows.shape[1]
    if size == 0:
        raise ValueError('X has no rows: gamma="scale" needs at least one.')
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(stored.sum(dtype=np.float64)) / size
        total = (size - stored.size) * mean * mean
        for block in _row_slices(stored):
            total += float(np.square(stored[block].astype(np.float64) - mean).sum())
    if not math.isfinite(total):
        raise ValueError('X holds NaN, inf or too large values for gamma="scale": rescale X.')
    return total / size


def _is_sparse(X: Any) -> bool:
    return bool(sp.issparse(X))


def _all_finite(values: NDArray[Any]) -> bool:
    # Extremes need no temporary of the size of a Gram matrix, and NaN is one.
    return not values.size or bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def _row_slices(values: NDArray[Any]) -> list[slice]:
    step = max(1, _BLOCK // max(1, math.prod(values.shape[1:])))
    return [slice(i, i + step) for i in range(0, values.shape[0], step)]


def _raise_to(values: Floats, p: int) -> None:
    """Do values ← values^p by squaring: several times faster than pow."""
    base = values.copy()
    for bit in bin(p)[3:]:
        values *= values
        if bit == "1":
            values *= base


def _largest_exponent(indices: tuple[int, ...]) -> int:
    return max(Counter(indices).values(), default=0)


def _root_multinomial(indices: tuple[int, ...]) -> float:
    ways = math.factorial(len(indices))
    for repeats in Counter(indices).values():
        ways //= math.factorial(repeats)
    try:
        return math.sqrt(ways)
    except OverflowError:
        return math.inf


def _finite(name: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else None
    except OverflowError:  # an int beyond the floats
        number = None
    if number is None or not math.isfinite(number):
        raise ValueError(f"{name}={value!r} is not a finite number: pass a float.")
    return number


def _positive(name: str, value: object) -> float:
    number = _finite(name, value)
    if number <= 0:
        raise ValueError(f"{name}={value!r} is not positive: pass a number > 0.")
    return number


def _parts_of(kernel: Kernel, kind: type[_Composition]) -> tuple[Kernel, ...]:
    return kernel.parts if isinstance(kernel, kind) else (kernel,)


def _as_factor(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, _Composition | Scaled) else repr(kernel)
