"""What titles and legends say about a fitted model."""

from __future__ import annotations

import numpy as np

from ..certificates import SeparationCertificate
from ..kernels import RBF, Custom, Kernel, Linear, Polynomial, Precomputed, Sigmoid
from .canvas import Bools, number
from .model import FigureModel


def kernel_in_words(kernel: Kernel | None) -> str:
    """Return the kernel in words.

    >>> kernel_in_words(RBF(0.5))
    'RBF γ = 0.5'
    """
    if kernel is None or isinstance(kernel, Linear):
        return "linear"
    if isinstance(kernel, RBF):
        return f"RBF γ = {kernel.gamma:.3g}"
    if isinstance(kernel, Polynomial):
        return f"polynomial of degree {kernel.degree}"
    if isinstance(kernel, Sigmoid):
        return "sigmoid kernel"
    return "given kernel values" if isinstance(kernel, (Custom, Precomputed)) else repr(kernel)


def cost_in_words(model: FigureModel) -> str:
    """Return C, ν and ε of a support vector machine, an empty text for other models."""
    machine = model.classifier
    if not model.is_any_machine:
        return ""
    words = []
    if hasattr(machine, "C"):
        words.append("C = ∞" if np.isinf(machine.C) else f"C = {machine.C:g}")
    if hasattr(machine, "nu"):
        words.append(f"ν = {machine.nu:g}")
    elif model.has_targets:
        words.append(f"ε = {machine.epsilon:g}")
    return ", ".join(words)


def described(model: FigureModel, width: float | None = None) -> str:
    """Return the model and the state of its certificate in a few words."""
    machine, name = model.classifier, model.name
    if model.has_classes and not model.is_binary:
        return f"{name}{_options(model)}, {_reduced(model)}{_unfinished(model)}"
    if not model.is_any_machine:
        return f"{name}: {_separation(machine.certificate_)}"
    parts = []
    if model.is_support_vector_machine and np.isinf(getattr(machine, "C", 0.0)):
        parts.append(
            "hard margin" + ("" if model.is_linear else f" ({kernel_in_words(model.kernel)})")
        )
    else:
        parts.append(f"{name}{_options(model)}")
    if width is not None and np.isfinite(width):
        parts.append(f"width {width:.4g}")
    if hasattr(machine, "epsilon_"):
        parts.append(f"ε = {machine.epsilon_:.4g}")
    if model.support is not None:  # α of a fit to a Dask collection is not known here
        parts.append(number(int(model.is_active.sum()), "support vector"))
    proof = getattr(machine, "certificate_", None)  # None for models of other programs
    if proof is not None and not proof.holds(machine.tol):
        parts.append(f"not optimal: gap {proof.relative_gap:.1e}")
    return ", ".join(parts)


def outliers_in_words(is_outlier: Bools) -> str:
    """Return how many samples are outliers.

    >>> outliers_in_words(np.array([True, False, False, False]))
    '1 of 4 samples is an outlier'
    """
    n = int(np.count_nonzero(is_outlier))
    are = "is an outlier" if n == 1 else "are outliers"
    return f"{n:,} of {number(is_outlier.size, 'sample')} {are}"


def _options(model: FigureModel) -> str:
    words = []
    if model.kernel is not None:
        words.append(kernel_in_words(model.kernel))
    if model.is_any_machine:
        words.append(cost_in_words(model))
    return f" ({', '.join(words)})" if words else ""


def _reduced(model: FigureModel) -> str:
    c = len(model.classes)
    if model.scheme == "ovo":
        return f"{c * (c - 1) // 2} pairs of {c} classes"
    if model.scheme == "joint":
        return f"a linear machine of {c} classes"
    return f"{c} classes, each against the rest"


def _unfinished(model: FigureModel) -> str:
    """Return how many tasks of a support vector machine are not optimal."""
    proofs = getattr(model.classifier, "certificates_", None)
    if not isinstance(proofs, list) or not model.is_support_vector_machine:
        return ""
    left = sum(not proof.holds(model.classifier.tol) for proof in proofs)
    return f", {left} of {len(proofs)} tasks not optimal" if left else ""


def _separation(certificate: SeparationCertificate) -> str:
    n, wrong = certificate.n_samples, getattr(certificate, "n_errors", 0)
    if certificate.separates:
        return f"separates all {n:,} samples, smallest distance {certificate.geometric_margin:.3g}"
    if getattr(certificate, "refutes", False):
        return "no plane separates (proved)"
    return f"{wrong:,} of {n:,} samples not on their side"
