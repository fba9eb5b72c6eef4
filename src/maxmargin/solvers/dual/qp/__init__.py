"""The dual as a standard quadratic program, answered by a general interior-point library.

    min ½xᵀPx + qᵀx   subject to   Gx ≤ h,  Ax = b

For a kernel machine x = α, P = ssᵀ∘K + D, q = p, G and h hold α ≤ u and −α ≤ −l, and A, b have one
row per group of variables with a fixed sum. P has n² numbers, so that this is a solver for some
thousand samples, and what the others are compared with.

Reference: Vanderbei, *Linear Programming* (2020), chapter 24; Schwan et al., PIQP, *CDC* (2023);
Goulart, Chen, Clarabel (2024).
"""

from .program import QP, QPSolution, QPStatus, solve
from .solver import QuadraticProgram, dual_program

__all__ = ["QP", "QPSolution", "QPStatus", "QuadraticProgram", "dual_program", "solve"]
