"""Dual problems of kernel machines with large costs and large kernel values."""

from __future__ import annotations

import numpy as np

from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.problems import DualProblem

PROBLEMS = {
    "rbf": lambda X, y: DualProblem.hinge(RBF(0.3), X, y, 1e4),
    "rbf, squared": lambda X, y: DualProblem.squared_hinge(RBF(0.3), X, y, 1e8),
    "nu": lambda X, y: DualProblem.nu(RBF(0.3), X, y, 0.3),
    "nu, no margin": lambda X, y: DualProblem.nu(Linear(), X, y, 0.1),
    "poly": lambda X, y: DualProblem.hinge(Polynomial(3, coef0=1.0), 10 * X, y, 1.0),
    "weights": lambda X, y: DualProblem.hinge(RBF(0.3), X, y, np.geomspace(1e-3, 1e3, len(y))),
}
