"""Kernel machines in their dual form: one record for classification, regression and one class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Floats, Integers
from ..kernels import Kernel

# K(x, x), relative to its median, beyond which a row is far from all others.
FAR = 1e3


@dataclass(frozen=True)
class DualProblem:
    """The dual of a kernel machine.

        min ½αᵀ(Q + D)α + pᵀα   subject to   l ≤ α ≤ u,  Σ_{i∈G} s_i α_i = t_G for each group G

    with Q_ij = s_i s_j K(x_i, x_j) and s = ±1. With w = Σ α_i s_i φ(x_i), one multiplier μ_G per
    group and z_i = −p_i − s_i (w·φ(x_i) + μ_G), it is the dual of

        min ½‖w‖² + Σ_i h_i(z_i) + Σ_G t_G μ_G,   h_i(z) = max {az − ½D_i a² : l_i ≤ a ≤ u_i}.

    The bias b is the mean of the multipliers μ_G, and 0 where there is no group. Machines with two
    groups have a second free number, half of the difference of the two: −ρ of the ν-classifier, ε
    of the ν-regression. Of the one-class machine b = −ρ.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features), or a precomputed Gram matrix
    index : ndarray of int of shape (n,)
        The row of X that each variable belongs to. Rows may repeat: regression has two variables
        per row.
    signs : ndarray of shape (n,)
        s: −1 or +1.
    p : ndarray of shape (n,)
    lower, upper : ndarray of shape (n,)
        l, which is finite, and u, which may be ∞.
    ridge : ndarray of shape (n,)
        The diagonal of D.
    groups : tuple of ndarray of int
        Variables whose signed sum is fixed: none, one or two groups. Where there are any, every
        variable belongs to exactly one of them.
    sums : tuple of float
        t, one per group.

    References
    ----------
    Cristianini, Shawe-Taylor (2000), chapter 6; Schölkopf, Smola, *Learning with Kernels* (2002),
    chapters 7 to 9; Chang, Lin, "LIBSVM", *ACM TIST* 2 (2011).
    """

    kernel: Kernel
    X: Any
    index: Integers
    signs: Floats
    p: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    groups: tuple[Integers, ...] = ()
    sums: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.groups) > 2 or len(self.groups) != len(self.sums):
            raise ValueError(
                "groups must be at most two, with one sum each, got "
                f"{len(self.groups)} groups and {len(self.sums)} sums."
            )
        n_grouped = sum(group.size for group in self.groups)
        if self.groups and n_grouped != self.n_variables:
            raise ValueError(
                "groups must hold every variable exactly once, got "
                f"{n_grouped} places for {self.n_variables} variables."
            )

    @property
    def n_variables(self) -> int:
        """The number of dual variables."""
        return self.index.size

    @property
    def total(self) -> float:
        """Σ_G |t_G|: 0 where α = 0 satisfies the sums."""
        return float(sum(map(abs, self.sums)))

    @cached_property
    def has_unit_margin(self) -> bool:
        """Whether this is a classifier of margin 1: p = −1, l = 0 and all sums 0."""
        return bool((self.p == -1.0).all() and not self.lower.any() and not self.total)

    @cached_property
    def target_scale(self) -> float:
        """Half the range of the targets, the unit of scores: 1 of a classifier.

        −s_i p_i are the targets of a regression less s_i ε. Where all are equal it is ε, or
        max |p|; 0 where p = 0: scores then have the unit of ρ.
        """
        if self.has_unit_margin:
            return 1.0
        targets, is_above = -self.signs * self.p, self.signs > 0
        of_sides = (_half_range(targets[side]) for side in (is_above, ~is_above))
        return max(of_sides) or _half_range(targets) or float(np.abs(self.p).max())

    def restrict(self, rows: Integers) -> DualProblem:
        """Return the problem in some of its variables.

        Its sums are those of all variables: what the others contribute is the caller's to subtract.
        """
        groups = self.groups
        if len(groups) == 1 and groups[0].size == self.n_variables:
            groups = (np.arange(rows.size),)
        elif groups:
            number = np.full(self.n_variables, -1)
            for k, group in enumerate(groups):
                number[group] = k
            groups = tuple(np.flatnonzero(number[rows] == k) for k in range(len(groups)))
        return replace(
            self, index=self.index[rows], signs=self.signs[rows], p=self.p[rows],
            lower=self.lower[rows], upper=self.upper[rows], ridge=self.ridge[rows], groups=groups,
        )  # fmt: skip

    @classmethod
    def classification(
        cls,
        kernel: Kernel,
        X: Any,
        y: Floats,
        upper: Floats,
        ridge: Floats,
        *,
        index: Integers | None = None,
        bias: bool = True,
    ) -> DualProblem:
        """Pose a classifier with margin 1: p = −1, 0 ≤ α ≤ u and, with a bias, yᵀα = 0.

        Parameters
        ----------
        kernel : Kernel
        X : array or CSR matrix
        y : ndarray of shape (n,)
            Labels −1 and +1.
        upper, ridge : ndarray of shape (n,)
            u and the diagonal of D.
        index : ndarray of int of shape (n,), optional
            Rows of X that take part, all by default.
        bias : bool, default=True
        """
        n = len(y)
        groups = (np.arange(n),) if bias else ()
        return cls(
            kernel, X, np.arange(n) if index is None else index, y, np.full(n, -1.0), np.zeros(n),
            upper, ridge, groups, (0.0,) * len(groups),
        )  # fmt: skip

    @classmethod
    def hard(cls, kernel: Kernel, X: Any, y: Floats, *, bias: bool = True) -> DualProblem:
        """Pose the hard margin, C = ∞: every sample has y g(x) ≥ 1."""
        n = len(y)
        return cls.classification(kernel, X, y, np.full(n, np.inf), np.zeros(n), bias=bias)

    @classmethod
    def hinge(
        cls, kernel: Kernel, X: Any, y: Floats, C: Floats | float, *, bias: bool = True
    ) -> DualProblem:
        """Pose min ½‖w‖² + Σ C_i ξ_i: u = C (one number, or one per sample), D = 0."""
        upper = np.broadcast_to(C, len(y)) * 1.0
        return cls.classification(kernel, X, y, upper, np.zeros(len(y)), bias=bias)

    @classmethod
    def squared_hinge(
        cls, kernel: Kernel, X: Any, y: Floats, C: Floats | float, *, bias: bool = True
    ) -> DualProblem:
        """Pose min ½‖w‖² + Σ C_i ξ_i²: u = ∞, D = 1/(2C)."""
        n = len(y)
        ridge = 0.5 / np.broadcast_to(C, n)
        return cls.classification(kernel, X, y, np.full(n, np.inf), ridge, bias=bias)

    @classmethod
    def nu(
        cls,
        kernel: Kernel,
        X: Any,
        y: Floats,
        nu: float,
        *,
        index: Integers | None = None,
        upper: Floats | None = None,
    ) -> DualProblem:
        """Pose the ν-classifier, min ½‖w‖² − νρ + Σ u_i ξ_i with y g(x) ≥ ρ − ξ.

        ν bounds the fraction of margin errors from above and of support vectors from below. The
        costs u are 1/n by default.
        """
        n = len(y)
        upper = np.full(n, 1.0 / n) if upper is None else upper
        groups = (np.flatnonzero(y > 0), np.flatnonzero(y < 0))
        largest = 2.0 * min(float(upper[group].sum()) for group in groups)
        if not 0.0 < nu <= largest * (1.0 + 1e-12):
            raise ValueError(
                f"nu={nu} is infeasible: it must be more than 0 and at most {largest:g} for class "
                f"counts {groups[0].size} and {groups[1].size} (2·min/n)."
            )
        return cls(
            kernel, X, np.arange(n) if index is None else index, y, np.zeros(n), np.zeros(n),
            upper, np.zeros(n), groups, (0.5 * nu, -0.5 * nu),
        )  # fmt: skip

    @classmethod
    def regression(
        cls,
        kernel: Kernel,
        X: Any,
        y: Floats,
        C: Floats | float,
        epsilon: float,
        *,
        index: Integers | None = None,
        squared: bool = False,
        bias: bool = True,
    ) -> DualProblem:
        """Pose ε-regression, min ½‖w‖² + Σ C_i (\\|y_i − g(x_i)\\| − ε)₊, or its square.

        Its 2n variables are α of y − g(x) ≤ ε + ξ, then α* of g(x) − y ≤ ε + ξ*;
        w = Σ (α_i − α*_i) φ(x_i).
        """
        n = len(y)
        cost = np.tile(np.broadcast_to(C, n), 2) * 1.0
        groups = (np.arange(2 * n),) if bias else ()
        return cls(
            kernel, X, np.tile(np.arange(n) if index is None else index, 2),
            np.repeat([1.0, -1.0], n), np.concatenate([epsilon - y, epsilon + y]), np.zeros(2 * n),
            np.full(2 * n, np.inf) if squared else cost,
            0.5 / cost if squared else np.zeros(2 * n), groups, (0.0,) * len(groups),
        )  # fmt: skip

    @classmethod
    def nu_regression(
        cls,
        kernel: Kernel,
        X: Any,
        y: Floats,
        C: Floats | float,
        nu: float,
        *,
        index: Integers | None = None,
    ) -> DualProblem:
        """Pose ν-regression, min ½‖w‖² + νεΣC_i + Σ C_i (\\|y_i − g(x_i)\\| − ε)₊ over w, b and ε.

        ν bounds the fraction of samples outside the tube from above and of support vectors from
        below. C is the cost of a sample, as LIBSVM scales it.
        """
        if not 0.0 < nu <= 1.0:
            raise ValueError(f"nu must be more than 0 and at most 1, got nu={nu}.")
        n = len(y)
        cost = np.broadcast_to(C, n) * 1.0
        half = 0.5 * nu * float(cost.sum())
        return cls(
            kernel, X, np.tile(np.arange(n) if index is None else index, 2),
            np.repeat([1.0, -1.0], n), np.concatenate([-y, y]), np.zeros(2 * n), np.tile(cost, 2),
            np.zeros(2 * n),
            (np.arange(n), np.arange(n, 2 * n)), (half, -half),
        )  # fmt: skip

    @classmethod
    def one_class(
        cls,
        kernel: Kernel,
        X: Any,
        nu: float,
        weights: Floats | None = None,
        *,
        index: Integers | None = None,
    ) -> DualProblem:
        """Pose the one-class machine, min ½‖w‖² − νρΣc_i + Σ c_i (ρ − w·φ(x_i))₊.

        The weights c are 1 by default, as LIBSVM scales it: 0 ≤ α ≤ c and Σα = νΣc. ν bounds the
        fraction of outliers (w·φ(x) < ρ) from above and of support vectors from below.
        """
        if not 0.0 < nu <= 1.0:
            raise ValueError(f"nu must be more than 0 and at most 1, got nu={nu}.")
        index = np.arange(X.shape[0]) if index is None else index
        n = index.size
        upper = np.ones(n) if weights is None else weights
        return cls(
            kernel, X, index, np.ones(n), np.zeros(n), np.zeros(n), upper, np.zeros(n),
            (np.arange(n),), (nu * float(upper.sum()),),
        )  # fmt: skip


def _half_range(values: Floats) -> float:
    return 0.5 * (float(values.max()) - float(values.min())) if values.size else 0.0


def usual_length(lengths: Floats) -> float:
    """Return the largest K(x, x), rows that are far from all others left out."""
    largest = float(lengths.max())
    return min(largest, FAR * float(np.median(lengths))) or largest
