"""Linear machines of few features: the ℓ1 norm of w in place of its square."""

from __future__ import annotations

from dataclasses import dataclass

from .primal import PrimalProblem


@dataclass(frozen=True)
class L1Problem(PrimalProblem):
    """The linear machine with the squared hinge whose penalty is ‖w‖₁.

        min ‖w‖₁ + Σ C_i max(0, 1 − y_i (w·x_i + b))²

    with the records of a `PrimalProblem`: u = ∞, D_i = 1/(2C_i). Its dual is

        max Σ α_i − Σ α_i²/(4C_i)   subject to   α ≥ 0, |Σ α_i y_i x_ij| ≤ 1 for every j,

    and yᵀα = 0 where the bias is free. A penalised bias adds |b|/s to the objective and
    s |yᵀα| ≤ 1 to the dual, as if every sample had one more feature of value s, the
    ``intercept_scaling``.
    """

    @property
    def bias_penalty(self) -> float:
        """What a unit of the bias costs."""
        return 1.0 / self.intercept_scaling if self.bias == "penalised" else 0.0
