"""What is asked: plain data, no algorithm.

A solver answers a problem with a `Solution`; `certify` checks the answer from the problem alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .kernels import Kernel
from .samples import Floats, Integers, Samples


@dataclass(frozen=True)
class SeparationProblem:
    """Find a with Za > 0, or Za ≥ m for given margins m > 0.

    Parameters
    ----------
    Z : Samples
        The normalised samples.
    margins : ndarray of shape (n_rows of Z,), optional
        m, all 1 by default.
    weights : ndarray of shape (n_samples,), optional
        What each sample counts in a criterion, all 1 by default; strictly positive.
    """

    Z: Samples
    margins: Any = None
    weights: Any = None

    def __post_init__(self) -> None:
        if self.margins is None:
            object.__setattr__(self, "margins", np.ones(self.Z.shape[0]))
        if self.weights is None:
            object.__setattr__(self, "weights", np.ones(self.Z.n_samples))

    @property
    def row_weights(self) -> Floats:
        """The weight of each row of Z."""
        return self.Z.to_rows(self.weights)


@dataclass(frozen=True)
class LeastSquaresProblem(SeparationProblem):
    """Minimise Σ_i v_i (z_i·a − m_i)² + ε‖a‖²; of several minimisers the one of least norm.

    ``weights`` holds the v_i and ``ridge`` the ε ≥ 0. The features named in ``excluded`` keep
    weight 0: constant ones, which are the bias's business.
    """

    ridge: float = 0.0
    excluded: Integers = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def restrict(self, a: Floats) -> Floats:
        """Return a with 0 for the excluded features."""
        a = np.array(a).reshape(self.Z.n_vectors, -1)
        a[:, self.excluded] = 0.0
        return a.ravel()


@dataclass(frozen=True)
class KernelSeparationProblem:
    """Find α ≥ 0 and b with y_m (Σ_l α_l y_l K(x_l, x_m) + b) > 0 for every sample m.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features)
        For a precomputed kernel the square Gram matrix.
    y : ndarray of shape (n,)
        Labels −1 and +1 of the rows named by ``index``.
    index : ndarray of int of shape (n,)
        Rows of X that take part.
    weights : ndarray of shape (n,)
        Visits in a row that each sample stands for.
    bias_step : float
        What b moves by when α moves by 1: ηR² in Novikoff's convention, 0 without a bias.
    """

    kernel: Kernel
    X: Any
    y: Floats
    index: Integers
    weights: Floats
    bias_step: float


@dataclass(frozen=True)
class MarginProblem:
    """The support vector machine, in its dual form for every norm of the slack.

        min ½αᵀ(Q + D)α − p 1ᵀα   subject to   0 ≤ α ≤ u,  yᵀα = 0,  1ᵀα ≥ s,   Q = yyᵀ∘K

    is, with p = 1 and s = 0, the dual of min ½‖w‖² + Σ C_i ξ_i (hinge: u = C, D = 0), of
    min ½‖w‖² + Σ C_i ξ_i² (squared hinge: u = ∞, D = diag 1/(2C_i)) and of the hard margin (u = ∞,
    D = 0); with p = 0, u = 1/n and s = ν it is that of the ν-machine. Without a bias yᵀα = 0 falls
    away. Weights of samples and classes are just C_i.
    Reference: Cristianini, Shawe-Taylor (2000), chapter 6.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features), or a precomputed Gram matrix
    y : ndarray of shape (n,)
        Labels −1 and +1 of the rows named by ``index``.
    index : ndarray of int of shape (n,)
    upper : ndarray of shape (n,)
        u.
    ridge : ndarray of shape (n,)
        The diagonal of D.
    linear : float, default=1.0
        p.
    total : float, default=0.0
        s.
    balanced : bool, default=True
        Whether there is a bias, and so yᵀα = 0.
    """

    kernel: Kernel
    X: Any
    y: Floats
    index: Integers
    upper: Floats
    ridge: Floats
    linear: float = 1.0
    total: float = 0.0
    balanced: bool = True

    @classmethod
    def hard(cls, kernel: Kernel, X: Any, y: Floats) -> MarginProblem:
        """C = ∞: every sample on its side with y g(x) ≥ 1."""
        n = len(y)
        return cls(kernel, X, y, np.arange(n), np.full(n, np.inf), np.zeros(n))

    @classmethod
    def hinge(cls, kernel: Kernel, X: Any, y: Floats, C: Floats | float) -> MarginProblem:
        """Norm-1 slack of cost C, a number or one a sample."""
        n = len(y)
        return cls(kernel, X, y, np.arange(n), np.broadcast_to(C, n) * 1.0, np.zeros(n))

    @classmethod
    def squared_hinge(cls, kernel: Kernel, X: Any, y: Floats, C: Floats | float) -> MarginProblem:
        """Norm-2 slack of cost C, a number or one a sample."""
        n = len(y)
        return cls(kernel, X, y, np.arange(n), np.full(n, np.inf), 0.5 / np.broadcast_to(C, n))

    @classmethod
    def nu(cls, kernel: Kernel, X: Any, y: Floats, nu: float) -> MarginProblem:
        """ν bounds the fraction of margin errors from above, of support vectors from below."""
        n = len(y)
        largest = 2.0 * min(np.sum(y > 0), np.sum(y < 0)) / n
        if not 0.0 < nu <= largest:
            raise ValueError(
                f"nu={nu} is infeasible: more than 0 and at most {largest:g} for class counts "
                f"{np.sum(y > 0)} and {np.sum(y < 0)} (2·min/n)."
            )
        return cls(kernel, X, y, np.arange(n), np.full(n, 1.0 / n), np.zeros(n), 0.0, float(nu))


@dataclass(frozen=True)
class LinearMarginProblem:
    """The linear support vector machine, in its primal form.

        min ½‖w‖² + Σ h_i(1 − y_i (w·x_i + b)),   h_i(z) = max {αz − ½D_i α² : 0 ≤ α ≤ u_i}

    is that of the hinge C_i z₊ (u = C, D = 0), of the squared hinge C_i z₊² (u = ∞, D = 1/(2C_i))
    and of the hard margin (u = ∞, D = 0). Its dual is that of a `MarginProblem` with the linear
    kernel; a penalised bias adds ½b², as if every sample had one more feature of value 1.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks of shape (n, n_features)
    y : ndarray of shape (n,)
        Labels −1 and +1.
    upper, ridge : ndarray of shape (n,) or (1,)
        u and D, of each sample or of all; a sample of u = 0, or D = ∞, does not count.
    bias : {"free", "penalised", "none"}
    """

    X: Any
    y: Floats
    upper: Floats
    ridge: Floats
    bias: Literal["free", "penalised", "none"] = "free"

    @classmethod
    def of(
        cls, X: Any, y: Floats, C: Floats | float, loss: str = "hinge", bias: Any = "free"
    ) -> LinearMarginProblem:
        """Pose it for a cost C, a number or one a sample, and loss "hinge" or "squared_hinge"."""
        costs = np.atleast_1d(np.asarray(C, dtype=np.float64))
        if loss == "hinge":
            return cls(X, y, costs, np.zeros(1), bias)
        with np.errstate(divide="ignore"):
            return cls(X, y, np.full(1, np.inf), 0.5 / costs, bias)

    @property
    def box(self) -> Floats:
        """What α is at most: u, and 0 of a sample that does not count."""
        if np.isfinite(self.ridge).all():
            return self.upper
        return np.where(np.isfinite(self.ridge), self.upper, 0.0)

    @property
    def hard(self) -> bool:
        """Whether some α has nothing that keeps it from growing."""
        return bool((np.isinf(self.upper) & (self.ridge == 0.0)).any())


@dataclass(frozen=True)
class JointMarginProblem:
    """The linear machine of c classes with the largest margin between any two of them.

        min ½Σ_k‖w_k‖² + Σ C_i ξ_i   subject to
        (w_y − w_k)·x_i + b_y − b_k ≥ 1 − ξ_i   for every class k other than y = y_i.

    The slack ξ_i ≥ 0 is one number a sample. A penalised bias adds ½Σ b_k², as if every sample had
    one more feature of value 1. The dual has a number for every sample and class,

        max Σ_i α_i^y − ½Σ_k‖w_k‖²,   w_k = Σ_i α_i^k x_i,   Σ_k α_i^k = 0,
        α_i^y ≤ C_i,   α_i^k ≤ 0 for k ≠ y,

    and Σ_i α_i^k = 0 for every class k where the bias is free.
    Reference: Crammer, Singer, *JMLR* 2 (2001).

    Parameters
    ----------
    X : array or CSR matrix of shape (n, n_features)
    labels : ndarray of int of shape (n,)
        Class numbers 0 … c − 1.
    n_classes : int
        c.
    cost : ndarray of shape (n,)
        C, finite; a sample of C_i = 0 does not count.
    bias : {"free", "penalised", "none"}
    """

    X: Any
    labels: Integers
    n_classes: int
    cost: Floats
    bias: Literal["free", "penalised", "none"] = "free"
