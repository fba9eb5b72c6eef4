"""LIBSVM's text models: names of kernels and of types of machines.

A file holds one parameter per line and, after ``SV``, the support vectors, class by class: their
k − 1 coefficients and index:value pairs. For classes i < j in the order of ``label``,
g(x) = Σ coef K(x, sv) − rho > 0 is a vote for i. Machines without classes have one g, k = 2 and
neither ``label`` nor ``nr_sv``: g is the prediction of a regression, and positive inside of the
region of one class (Chang, Lin, *LIBSVM*, 2011; its README, "Model file").
"""

from __future__ import annotations

from ..estimators.kernel_machine import KernelMachine
from ..estimators.one_class import OneClassSVM
from ..estimators.svc import SVC, NuSVC
from ..estimators.svr import SVR, NuSVR
from ..kernels import RBF, Kernel, Linear, Polynomial, Precomputed, Sigmoid

# LIBSVM's name of a kernel → its class, our name, and its parameters.
KERNELS: dict[str, tuple[type[Kernel], str, tuple[str, ...]]] = {
    "linear": (Linear, "linear", ()),
    "polynomial": (Polynomial, "poly", ("degree", "gamma", "coef0")),
    "rbf": (RBF, "rbf", ("gamma",)),
    "sigmoid": (Sigmoid, "sigmoid", ("gamma", "coef0")),
    "precomputed": (Precomputed, "precomputed", ()),
}
SVM_TYPES: dict[str, type[KernelMachine]] = {
    "c_svc": SVC,
    "nu_svc": NuSVC,
    "one_class": OneClassSVM,
    "epsilon_svr": SVR,
    "nu_svr": NuSVR,
}
# What files of a type may say about probabilities, all of it or nothing: A and B of the sigmoids of
# pairs of classes, or the scale of the Laplace distribution of a regression's errors.
PROBABILITIES: dict[str, tuple[str, ...]] = {
    "c_svc": ("probA", "probB"),
    "nu_svc": ("probA", "probB"),
    "one_class": (),
    "epsilon_svr": ("probA",),
    "nu_svr": ("probA",),
}
LARGEST_INT = 2**31 - 1
