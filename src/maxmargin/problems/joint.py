"""The linear machine of several classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from ..arrays import Floats, Integers, container


@dataclass(frozen=True)
class JointProblem:
    """The linear machine of c classes with the largest margin between any two of them.

        min ½Σ_k‖w_k‖² + Σ C_i ξ_i   subject to
        (w_y − w_k)·x_i + b_y − b_k ≥ 1 − ξ_i   for every class k other than y = y_i.

    The slack ξ_i ≥ 0 is one number per sample. A penalised bias adds ½Σ (b_k/s)², as if every
    sample had one more feature of value s. The dual has a number for every sample and class,

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
    intercept_scaling : float, default=1.0
        s, of a penalised bias.
    """

    X: Any
    labels: Integers
    n_classes: int
    cost: Floats
    bias: Literal["free", "penalised", "none"] = "free"
    intercept_scaling: float = 1.0

    def on_host(self) -> Self:
        """Return the same problem with all of its arrays in the memory of the host."""
        if not container(self.X).on_device:
            return self
        labels, cost = np.asarray(self.labels), np.asarray(self.cost)
        return replace(self, X=self.X.host, labels=labels, cost=cost)
