"""The linear machine of c classes with the largest margin (Crammer, Singer, JMLR 2, 2001).

Given: X, y, C of a `JointProblem`. Wanted: w_k and b_k of every class, and α.

With the shares p_i = e_y − α_i/C_i, which are ≥ 0 and add up to 1, and the values
s_i^k = (k ≠ y_i) + w_k·x_i + b_k, the loss of a sample is C_i(max_k s_i^k − s_i^y), and

    w_k = Σ_i C_i (e_y − p_i)^k x_i,        gap = Σ_i C_i (max_k s_i^k − p_i·s_i).

So p_i is optimal when it has shares of the largest values only. Two methods follow each other:

*Sequential dual ascent* moves the shares of one sample after the other to where the dual is
largest, the projection of p_i + s_i/(C_i‖x_i‖²) onto the simplex. Classes far below
the largest value are left out for a while, and with them most samples. It is quick to begin with,
and to the end where features are many and samples much unlike each other (Keerthi et al., *KDD*,
2008). The bias follows by the proximal point method.

*Semismooth Newton on the augmented Lagrangian* takes over where that converges slowly. A step of
the proximal point method on the dual, max D(p) − Σ_i C_i (δ/2)‖p_i − p⁰_i‖², minimises

    Φ(w, b) = ½Σ_k‖w_k‖² + Σ_i C_i max {p·s_i − (δ/2)‖p − p⁰_i‖² : p in the simplex} − C_i s_i^y,

smooth and piecewise quadratic: the maximum, rounded off over a width of δ. The p that attains it is
the projection of p⁰_i + s_i/δ; its generalised Hessian is I + Σ_i (C_i/δ) P_i ⊗ x_i x_iᵀ, where
P_i = diag(1_A) − 1_A 1_Aᵀ/|A| and A are the classes with a share. Only samples with several of them
count, few once δ is small. Then p⁰ ← p, and δ shrinks (Rockafellar, *Math. Oper. Res.* 1, 1976; Li,
Sun, Toh, *SIAM J. Optim.* 28, 2018).
"""

from .solver import CrammerSinger

__all__ = ["CrammerSinger"]
