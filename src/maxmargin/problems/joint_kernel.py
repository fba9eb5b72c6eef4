"""The machine of several classes with any kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..arrays import Floats, Integers
from ..kernels import Kernel


@dataclass(frozen=True)
class JointKernelProblem:
    """The machine of c classes with the largest margin between any two of them, for any kernel.

    It is that of `JointProblem` with φ(x) in place of x: the dual

        max Σ_i α_i^y − ½Σ_k Σ_ij α_i^k α_j^k K(x_i, x_j),   Σ_k α_i^k = 0,
        α_i^y ≤ C_i,   α_i^k ≤ 0 for k ≠ y,

    and Σ_i α_i^k = 0 for every class k where there is a bias, gives w_k = Σ_i α_i^k φ(x_i).
    Reference: Crammer, Singer, *JMLR* 2 (2001).

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features), or a precomputed Gram matrix
    index : ndarray of int of shape (n,)
        The rows of X that take part.
    labels : ndarray of int of shape (n,)
        Their class numbers 0 … c − 1.
    n_classes : int
        c.
    cost : ndarray of shape (n,)
        C, positive and finite.
    bias : {"free", "none"}
    """

    kernel: Kernel
    X: Any
    index: Integers
    labels: Integers
    n_classes: int
    cost: Floats
    bias: Literal["free", "none"] = "free"
