"""LIBSVM's text models: names of kernels and of types of machines.

A file holds one parameter per line and, after ``SV``, the support vectors, class by class: their
k − 1 coefficients and index:value pairs. For classes i < j in the order of ``label``,
Σ coef K(x, sv) − rho > 0 is a vote for i (Chang, Lin, *LIBSVM*, 2011; its README, "Model file").
"""

from __future__ import annotations

from ..estimators.kernel_machine import KernelMachine
from ..estimators.svc import SVC, NuSVC
from ..kernels import RBF, Kernel, Linear, Polynomial, Precomputed, Sigmoid

# LIBSVM's name of a kernel → its class, our name, and its parameters.
KERNELS: dict[str, tuple[type[Kernel], str, tuple[str, ...]]] = {
    "linear": (Linear, "linear", ()),
    "polynomial": (Polynomial, "poly", ("degree", "gamma", "coef0")),
    "rbf": (RBF, "rbf", ("gamma",)),
    "sigmoid": (Sigmoid, "sigmoid", ("gamma", "coef0")),
    "precomputed": (Precomputed, "precomputed", ()),
}
SVM_TYPES: dict[str, type[KernelMachine]] = {"c_svc": SVC, "nu_svc": NuSVC}
LARGEST_INT = 2**31 - 1
