"""Support vector machines with a kernel, in their dual form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Floats, Integers
from ..kernels import Kernel


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

    @property
    def signs(self) -> Floats:
        """s: the sign of each variable in Q and in the sums."""
        return self.y

    @cached_property
    def p(self) -> Floats:
        """The linear term of the objective."""
        return np.full(self.y.size, -self.linear)

    @cached_property
    def lower(self) -> Floats:
        """l: the lower bounds."""
        return np.zeros(self.y.size)

    @cached_property
    def groups(self) -> tuple[Integers, ...]:
        """Variables whose Σ s_i α_i is fixed: all, each class (ν), or none (no bias)."""
        if not self.balanced:
            return ()
        if self.total:
            return np.flatnonzero(self.y > 0), np.flatnonzero(self.y < 0)
        return (np.arange(self.y.size),)

    @property
    def sums(self) -> tuple[float, ...]:
        """t: Σ s_i α_i of each group."""
        if not self.balanced:
            return ()
        return (0.5 * self.total, -0.5 * self.total) if self.total else (0.0,)

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
