"""The path of the soft margin over its cost, by a parametric active-set method.

With α = Ca and λ = 1/C, the dual of min ½‖w‖² + C Σ c_i ξ_i is

    min ½aᵀQa − λ 1ᵀa   subject to   0 ≤ a ≤ c,  yᵀa = 0,

whose feasible set does not depend on C. While the set F of free variables stays the same, a and the
multiplier β of yᵀa = 0 are affine in λ,

    Q_FF a_F + y_F β = λ1 − Q_FB a_B,

hence α and b = Cβ are affine in C. λ falls until a free variable meets a bound, which it then
rests at, or until the gradient Qa − λ1 + yβ of a resting one meets 0, which then becomes free.

Reference: Hastie, Rosset, Tibshirani, Zhu, *JMLR* 5 (2004); parametric programming in general, and
its degenerate cases, Best, *Applied Mathematics and Parallel Computing* (1996).
"""

from .events import LOWER, UPPER, Places
from .walk import CostWalk, Leg, Pause

__all__ = ["LOWER", "UPPER", "CostWalk", "Leg", "Pause", "Places"]
