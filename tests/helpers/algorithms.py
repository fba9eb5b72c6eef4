"""The registry that the tests run over, the one table of tolerances, and plain references.

A new estimator gets one line in `ALGORITHMS`; every test over the registry then covers it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm

TOLERANCE = {
    "exact": 0.0,  # integer arithmetic below 2^53
    "rounding": 1e-12,  # the same numbers summed in another order
    "solve": 1e-8,  # two stable ways to the same least-squares solution
    "float32": 1e-5,  # input rounded to float32
    "iterative": 1e-3,  # a rule stopped at its own tol
}


@dataclass(frozen=True)
class Algorithm:
    """An estimator in one of its ways of working.

    ``online`` rules visit rows in order; ``kesler`` ones know linear machines; ``guaranteed`` ones
    separate whatever is separable; ``weighs`` ones take weight 2 for a row given twice.
    """

    name: str
    factory: Callable[..., Any]
    options: dict[str, Any]
    online: bool = False
    kesler: bool = True
    guaranteed: bool = True
    weighs: bool = False

    def make(self, **options: Any) -> Any:
        """Return the estimator, with ``options`` on top of its own, and rows in order."""
        order = {"shuffle": False} if self.online else {}
        return self.factory(**{**order, **self.options, **options})


def falling(t: int) -> float:
    """ρ(t) = t^(−1/2), a schedule given as a function."""
    return t**-0.5


ALGORITHMS = [
    Algorithm("perceptron", mm.Perceptron, {}, online=True),
    Algorithm("perceptron-radius", mm.Perceptron, {"bias": "radius"}, online=True),
    Algorithm(
        "perceptron-harmonic", mm.Perceptron, {"learning_rate": mm.Harmonic(2.0, 3.0)}, online=True
    ),
    Algorithm("perceptron-callable", mm.Perceptron, {"learning_rate": falling}, online=True),
    Algorithm(
        "perceptron-shuffled",
        mm.Perceptron,
        {"shuffle": True, "init": "random", "random_state": 0},
        online=True,
    ),
    Algorithm("perceptron-batch", mm.Perceptron, {"update": "batch"}, weighs=True),
    Algorithm(
        "perceptron-batch-radius", mm.Perceptron, {"update": "batch", "bias": "radius"}, weighs=True
    ),
    Algorithm("pocket", mm.Pocket, {"patience": 200}, online=True),
    Algorithm("relaxation", mm.Relaxation, {}, online=True),
    Algorithm("relaxation-under", mm.Relaxation, {"relaxation": 0.5}, online=True),
    Algorithm("relaxation-over", mm.Relaxation, {"relaxation": 1.7}, online=True),
    Algorithm("relaxation-batch", mm.Relaxation, {"update": "batch"}, weighs=True),
    Algorithm("lms", mm.LMS, {}, online=True, guaranteed=False),
    Algorithm("lms-rate", mm.LMS, {"learning_rate": 0.01}, online=True, guaranteed=False),
    Algorithm(
        "lms-batch",
        mm.LMS,
        {"update": "batch", "tol": 1e-6, "max_iter": 20_000},
        guaranteed=False,
        weighs=True,
    ),
    Algorithm("pseudoinverse", mm.Pseudoinverse, {}, guaranteed=False, weighs=True),
    Algorithm("ho-kashyap", mm.HoKashyap, {"max_iter": 20_000}, weighs=True),
    Algorithm(
        "kernel-linear", mm.KernelPerceptron, {"kernel": "linear"}, online=True, kesler=False
    ),
    Algorithm(
        "kernel-rbf",
        mm.KernelPerceptron,
        {"kernel": "rbf", "gamma": 0.5},
        online=True,
        kesler=False,
    ),
]
LINEAR = [algorithm for algorithm in ALGORITHMS if algorithm.kesler]
WEIGHING = [algorithm for algorithm in ALGORITHMS if algorithm.weighs]
GUARANTEED = [algorithm for algorithm in ALGORITHMS if algorithm.guaranteed]


def over(algorithms: list[Algorithm]) -> Any:
    """Parametrise a test by ``algorithm``."""
    return pytest.mark.parametrize("algorithm", algorithms, ids=lambda algorithm: algorithm.name)


quiet = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::RuntimeWarning"
)


def blobs(n: int, d: int, n_classes: int = 2, *, gap: float = 6.0, seed: int = 0) -> tuple:
    """Return X, y of well separated clouds, rows of the classes mixed."""
    rng = np.random.default_rng(seed)
    centres = (
        gap * np.eye(n_classes, d) if n_classes > 2 else gap * np.outer([-0.5, 0.5], np.eye(d)[0])
    )
    y = rng.permutation(np.arange(n) % n_classes)
    return centres[y] + rng.uniform(-1, 1, size=(n, d)), y


def cloud(n: int, d: int, n_classes: int = 2, *, seed: int = 0) -> tuple:
    """Return X, y of classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + 0.5 * y[:, np.newaxis], y


def integers(n: int, d: int, n_classes: int = 2, *, seed: int = 0) -> tuple:
    """Return small integer X, on which corrections are exact whatever the order of summation."""
    rng = np.random.default_rng(seed)
    return rng.integers(-9, 10, size=(n, d)).astype(float), np.arange(n) % n_classes


def materialised(X: Any, y: np.ndarray, n_classes: int = 2) -> np.ndarray:
    """Return Z as a matrix: y (x, 1), or the rows η_ij of Kesler's construction one by one."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    augmented = np.column_stack([X, np.ones(len(X))])
    if n_classes == 2:
        return (2.0 * np.asarray(y) - 1.0)[:, np.newaxis] * augmented
    rows = []
    for x, i in zip(augmented, y, strict=True):
        for j in range(n_classes):
            if j != i:
                eta = np.zeros((n_classes, x.size))
                eta[i], eta[j] = x, -x
                rows.append(eta.ravel())
    return np.array(rows)


def weights_of(model: Any) -> np.ndarray:
    """Return a = (w_1, b_1, w_2, b_2, …) of a fitted linear model."""
    return np.column_stack([model.coef_, model.intercept_]).ravel()


def ovo_pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of classes in the order of the planes."""
    return list(combinations(range(n_classes), 2))
