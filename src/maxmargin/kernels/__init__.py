"""Kernels K(x, z) = φ(x)·φ(z) as frozen values: formulas of (⟨x,z⟩, ‖x‖², ‖z‖²).

Schölkopf, Smola, *Learning with Kernels*, chapters 2 and 13, is the reference.
"""

from .base import Kernel
from .composition import Product, Scaled, Sum
from .elementwise import RBF, Linear, Polynomial, Sigmoid
from .mercer import MercerReport, mercer
from .opaque import Custom, Precomputed
from .products import squared_norms
from .registry import KERNELS, resolve

__all__ = [
    "KERNELS", "RBF", "Custom", "Kernel", "Linear", "MercerReport", "Polynomial", "Precomputed",
    "Product", "Scaled", "Sigmoid", "Sum", "mercer", "resolve", "squared_norms",
]  # fmt: skip
