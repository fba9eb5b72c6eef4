"""The textbook's quadratic program of a support vector machine, and a solver for such programs.

    min ½αᵀPα + qᵀα   subject to   Gα ≤ h,  Aα = b

`dual_qp` builds the matrices from samples, `solve` hands them to PIQP or Clarabel (the extra
``maxmargin[qp]``). Reference: Cristianini, Shawe-Taylor (2000), chapters 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import validation
from .arrays import Floats, Matrix, MatrixLike
from .kernels import Kernel, Precomputed, resolve
from .kernels.mercer import check_precomputed
from .problems import DualProblem
from .solvers.dual.qp import QP, QPSolution, QPStatus, dual_program, solve

__all__ = ["QP", "QPSolution", "QPStatus", "dual_qp", "solve"]


def dual_qp(
    X: MatrixLike,
    y: ArrayLike,
    *,
    C: ArrayLike = 1.0,
    kernel: str | Kernel | Callable[[Any, Any], Any] = "linear",
    gamma: float | Literal["scale", "auto"] = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    loss: Literal["hinge", "squared_hinge"] = "hinge",
    nu: float | None = None,
) -> QP:
    """Return the dual of a support vector machine as a standard quadratic program.

    P = yyᵀ∘K (+ diag 1/(2C) for the squared hinge), q = −1, A = yᵀ (one row), b = 0. Hinge:
    G = [I; −I], h = [C·1; 0]. Hard margin (C = ∞) and squared hinge: G = −I, h = 0. ν-machine:
    q = 0, G = [I; −I; −1ᵀ], h = [1/n; 0; −ν].

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Samples; the square Gram matrix for kernel="precomputed".
    y : array of shape (n_samples,)
        Labels of any two values; the second in sorted order is y = +1.
    C : float or array of shape (n_samples,), default=1.0
        Cost of the slack, one for all samples or one per sample; ``np.inf`` is the hard margin.
    kernel : str, Kernel or callable, default="linear"
        The kernel, as in `KernelPerceptron`.
    gamma : float, "scale" or "auto", default="scale"
        γ of the kernel, as in `KernelPerceptron`.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Loss of the slack.
    nu : float, optional
        0 < ν ≤ 2·min(n₊, n₋)/n, in place of C.

    Returns
    -------
    QP
        The program.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from maxmargin import qp
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> program = qp.dual_qp(X, y, C=np.inf)
    >>> print(program.P[0])
    [ 37. 61. 70. -17. -43. -34.]
    >>> print((225 * qp.solve(program).x).round(5) + 0.0)
    [ 8. 0. 9. 0. 17. 0.]
    """
    _refuse_other_classes(y)
    X, signs = validation.check_two_labels(X, y)
    X = X.astype(np.float64, copy=False)
    which = resolve(kernel, gamma=gamma, degree=degree, coef0=coef0, X=X)
    if isinstance(which, Precomputed):
        check_precomputed(X)
    costs = _costs(C, len(signs))
    if loss not in ("hinge", "squared_hinge"):
        raise ValueError(f"loss must be 'hinge' or 'squared_hinge', got {loss!r}.")
    if nu is not None:
        if loss != "hinge" or (costs != 1.0).any():
            raise ValueError(f"nu={nu} replaces C and the squared hinge: pass one of them.")
        return _nu_qp(which, X, signs, nu)
    pose = DualProblem.hinge if loss == "hinge" else DualProblem.squared_hinge
    return dual_program(pose(which, X, signs, costs), which(X))


def _nu_qp(kernel: Kernel, X: Matrix, y: Floats, nu: float) -> QP:
    """Return the ν-machine's program with Σα ≥ ν, as textbooks write it."""
    feasible = DualProblem.nu(kernel, X, y, nu)
    program = dual_program(DualProblem.hinge(kernel, X, y, feasible.upper), kernel(X))
    return replace(
        program, q=np.zeros(y.size), G=np.vstack([program.G, -np.ones(y.size)]),
        h=np.append(program.h, -nu),
    )  # fmt: skip


def _costs(C: ArrayLike, n: int) -> Floats:
    costs = np.asarray(C, dtype=np.float64)
    if costs.shape not in ((), (n,)):
        raise ValueError(f"C has shape {costs.shape}: pass a number, or {n} of them.")
    if not (costs > 0).all():  # NaN included
        raise ValueError(f"C={C!r} is not positive: pass C > 0, np.inf for the hard margin.")
    return np.broadcast_to(costs, n)


def _refuse_other_classes(y: ArrayLike) -> None:
    try:
        classes = np.unique(np.asarray(y))
    except TypeError:  # labels of several types: said better below
        return
    if len(classes) != 2:
        raise ValueError(
            f"a support vector machine is about 2 classes, y holds {len(classes)}: "
            "choose a pair of them."
        )
