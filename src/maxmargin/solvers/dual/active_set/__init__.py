"""The dual of a kernel machine solved exactly, by a primal active-set method.

    min ½αᵀ(Q + D)α + pᵀα   subject to   l ≤ α ≤ u,  Aα = a

A has one row per group of variables with a fixed sum. F is the set of free variables, all others
rest at a bound. On F the problem is a linear system; α moves towards its solution as far as the
bounds allow, the variable that meets a bound leaves F, and where F is solved the one that violates
its KKT condition most enters. Finitely many steps end at the optimum, to rounding.

Reference: Nocedal, Wright, *Numerical Optimization* (2006), section 16.5; singular directions as in
Gill, Murray, Saunders, Wright, *SIAM Review* 33 (1991); for support vector machines Scheinberg,
*JMLR* 7 (2006).
"""

from .solver import ActiveSet
from .tuning import Tuning

__all__ = ["ActiveSet", "Tuning"]
