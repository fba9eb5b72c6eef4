"""Every algorithm by name: what the command line fits and compares, and the tests run over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .base import CertifiedClassifier
from .kernel_perceptron import KernelPerceptron
from .least_squares import HoKashyap, Pseudoinverse
from .linear_svc import LinearSVC
from .perceptron import LMS, Perceptron, Pocket, Relaxation
from .svc import SVC, NuSVC

SEPARATING: dict[str, Callable[..., CertifiedClassifier]] = {
    "perceptron": Perceptron,
    "perceptron, R² bias": partial(Perceptron, bias="radius"),
    "perceptron, batch": partial(Perceptron, update="batch"),
    "pocket": Pocket,
    "relaxation": Relaxation,
    "relaxation, batch": partial(Relaxation, update="batch"),
    "LMS": LMS,
    "LMS, batch": partial(LMS, update="batch"),
    "pseudoinverse": Pseudoinverse,
    "Fisher": partial(Pseudoinverse, margins="fisher"),
    "Ho–Kashyap": HoKashyap,
    "kernel perceptron, RBF": KernelPerceptron,
}

MACHINES: dict[str, Callable[..., CertifiedClassifier]] = {
    "SVC, RBF": SVC,
    "SVC, linear, C=100": partial(SVC, kernel="linear", C=100.0),
    "ν-SVC, RBF, ν=0.2": partial(NuSVC, nu=0.2),
    "LinearSVC, hinge": partial(LinearSVC, loss="hinge"),
}

# As the command line spells them.
MODELS: dict[str, Callable[..., CertifiedClassifier]] = {
    "svc": SVC,
    "nusvc": NuSVC,
    "linear-svc": LinearSVC,
    "perceptron": Perceptron,
    "batch-perceptron": partial(Perceptron, update="batch"),
    "pocket": Pocket,
    "kernel-perceptron": KernelPerceptron,
    "relaxation": Relaxation,
    "lms": LMS,
    "pseudoinverse": Pseudoinverse,
    "fisher": partial(Pseudoinverse, margins="fisher"),
    "ho-kashyap": HoKashyap,
}
