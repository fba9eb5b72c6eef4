"""Every separating algorithm by name: what the command line compares and the tests run over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .base import CertifiedClassifier
from .kernel import KernelPerceptron
from .least_squares import HoKashyap, Pseudoinverse
from .online import LMS, Perceptron, Pocket, Relaxation

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
