"""Data that libraries fail on: seeded generators of cases, and hypothesis strategies over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

Data = tuple[np.ndarray, np.ndarray]
Generator = np.random.Generator

COSTS = (1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e5, 1e8)
LOSSES = ("hinge", "squared_hinge")
SVC_SOLVERS = ("auto", "decomposition", "smo", "active-set", "qp")
LINEAR_SOLVERS = ("auto", "newton", "interior-point", "coordinate-descent")


@dataclass
class Case:
    """One fit: the estimator, its parameters and its data."""

    estimator: str
    params: dict[str, Any]
    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None = None
    origin: str = field(default="", compare=False)

    def __str__(self) -> str:
        weights = "" if self.sample_weight is None else ", weights"
        form = "CSR" if sparse.issparse(self.X) else "dense"
        return (
            f"{self.origin}: {self.estimator}({self.params}) on {form} {self.X.dtype} "
            f"{self.X.shape}{weights}"
        )

    __repr__ = __str__

    @property
    def request(self) -> dict[str, Any]:
        """What the worker is asked."""
        return {
            "estimator": self.estimator,
            "params": self.params,
            "X": self.X,
            "y": self.y,
            "sample_weight": self.sample_weight,
        }


# Data ---------------------------------------------------------------------------------------------


def labels(rng: Generator, scores: np.ndarray) -> np.ndarray:
    """Return the signs of noisy scores, both of which occur."""
    y = np.where(scores > np.median(scores), 1, -1)
    y[rng.integers(len(y))] = 1
    if (y == y[0]).all():
        y[0] = -y[0]
    return y


def cloud(rng: Generator, n: int, d: int, noise: float = 0.5) -> Data:
    """Normal rows, labels of a noisy plane."""
    X = rng.normal(size=(n, d))
    return X, labels(rng, X[:, 0] + noise * rng.normal(size=n))


def outliers(rng: Generator, n: int, d: int) -> Data:
    """A cloud with tight clusters of both labels at one to three far places."""
    X, y = cloud(rng, n, d)
    for _ in range(rng.integers(1, 4)):
        size = int(rng.integers(1, max(2, min(7, n // 3))))
        rows = rng.choice(n, size=size, replace=False)
        direction = rng.normal(size=d)
        centre = 10.0 ** rng.uniform(1, 6) * direction / np.linalg.norm(direction)
        X[rows] = centre + rng.uniform(0.1, 1.0) * rng.normal(size=(size, d))
        y[rows] = rng.choice([-1, 1], size=size)
    return X, labels_of_both(y)


def heavy_tails(rng: Generator, n: int, d: int) -> Data:
    """Cauchy or lognormal entries."""
    X = rng.standard_cauchy((n, d)) if rng.random() < 0.5 else rng.lognormal(0, 3, (n, d))
    return X, labels(rng, np.log(np.abs(X[:, 0])) * np.sign(X[:, 0]) + rng.normal(size=n))


def offset(rng: Generator, n: int, d: int) -> Data:
    """All rows, or one column, far from the origin."""
    X, y = cloud(rng, n, d)
    shift = np.full(d, 10.0 ** rng.uniform(0, 8)) * rng.choice([-1.0, 1.0])
    if rng.random() < 0.3:
        shift = shift * (np.arange(d) == rng.integers(d))
    return X + shift, y


def scales(rng: Generator, n: int, d: int) -> Data:
    """Columns of units between 1e-8 and 1e8."""
    X, y = cloud(rng, n, d)
    return X * 10.0 ** rng.uniform(-8, 8, size=d), y


def units(rng: Generator, n: int, d: int) -> Data:
    """One unit for all columns, between 1e-8 and 1e8."""
    X, y = cloud(rng, n, d)
    return X * 10.0 ** rng.uniform(-8, 8), y


def duplicates(rng: Generator, n: int, d: int) -> Data:
    """Few distinct rows, each with both labels."""
    few = rng.normal(size=(max(1, n // 4), d))
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    return few[rng.integers(len(few), size=n)], y


def integers(rng: Generator, n: int, d: int) -> Data:
    """Small integers: ties, degenerate positions, duplicates."""
    X = rng.integers(-3, 4, size=(n, d)).astype(float)
    return X, labels_of_both(rng.choice([-1, 1], size=n))


def near_separable(rng: Generator, n: int, d: int) -> Data:
    """Classes on both sides of a plane, 1e-3 to 1e-12 apart."""
    margin = 10.0 ** rng.uniform(-12, -3)
    return separated(rng, n, d, margin)


def separated(rng: Generator, n: int, d: int, margin: float) -> Data:
    """Classes whose nearest rows are ``margin`` from a plane each, up to rounding."""
    X = rng.normal(size=(n, d))
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    y = labels_of_both(np.where(rng.random(n) < 0.5, 1, -1))
    along = np.abs(rng.normal(size=n)) + margin
    along[np.flatnonzero(y > 0)[0]] = along[np.flatnonzero(y < 0)[0]] = margin
    X += ((y * along) - X @ direction)[:, None] * direction
    return X, y


def dependent(rng: Generator, n: int, d: int) -> Data:
    """Constant, equal and dependent columns."""
    X, y = cloud(rng, n, max(1, d - 1))
    extra = [X[:, :1], np.full((n, 1), rng.choice([0.0, 1.0, 1e3])), X.sum(axis=1, keepdims=True)]
    return np.hstack([X, extra[rng.integers(3)]]), y


def categories(rng: Generator, n: int, d: int) -> Data:
    """One-hot categories beside numbers of other units."""
    X, y = cloud(rng, n, d)
    return np.hstack([np.eye(3)[rng.integers(3, size=n)], X * 10.0 ** rng.uniform(0, 5)]), y


def labels_of_both(y: np.ndarray) -> np.ndarray:
    """Return labels of which both occur."""
    if (y == y[0]).all():
        y[rng_place(y)] = -y[0]
    return y


def rng_place(y: np.ndarray) -> int:
    """Return the middle row."""
    return len(y) // 2


SHAPES: dict[str, Callable[[Generator, int, int], Data]] = {
    "cloud": cloud,
    "outliers": outliers,
    "heavy tails": heavy_tails,
    "offset": offset,
    "scales": scales,
    "units": units,
    "duplicates": duplicates,
    "integers": integers,
    "near separable": near_separable,
    "dependent": dependent,
    "categories": categories,
}


def sets_on_a_line(largest: int = 5) -> Iterator[Data]:
    """All labelled sets of two to five integers of 0 … 4, up to the names of the classes."""
    for size in range(2, largest + 1):
        for points in combinations(range(5), size):
            for signs in product((-1, 1), repeat=size - 1):
                if -1 in signs:
                    yield np.array(points, dtype=float)[:, None], np.array([1, *signs])
    for size in range(2, 5):
        # The same point with both labels, among others.
        for points in combinations(range(4), size - 1):
            for signs in product((-1, 1), repeat=size - 1):
                doubled = np.array([*points, points[0]], dtype=float)[:, None]
                yield doubled, np.array([*signs, -signs[0]])


# Fits ---------------------------------------------------------------------------------------------


def kernels(rng: Generator, X: np.ndarray, composed: bool = True) -> tuple[Any, ...]:
    """Return a described kernel whose width suits the data, or does not."""
    spread = float(np.var(X)) or 1.0
    gamma = float(10.0 ** rng.uniform(-2, 2) / (X.shape[1] * spread))
    choices: list[tuple[Any, ...]] = [
        ("linear",),
        ("poly", int(rng.integers(1, 4)), gamma, float(rng.choice([0.0, 1.0]))),
        ("rbf", gamma),
        ("rbf", float(10.0 ** rng.uniform(-2, 1))),
        ("sigmoid", min(gamma, 1.0), float(rng.choice([0.0, -1.0]))),
    ]
    if composed:
        choices += [
            ("sum", ("rbf", gamma), ("linear",)),
            ("product", ("rbf", gamma), ("poly", 2, gamma, 1.0)),
            ("scaled", 3.0, ("rbf", gamma)),
        ]
    return choices[rng.integers(len(choices))]


def weights(rng: Generator, n: int) -> np.ndarray | None:
    """Return no weights, ordinary ones, or weights between 1e-11 and 1e11."""
    kind = rng.random()
    if kind < 0.7:
        return None
    return rng.uniform(0.5, 2.0, n) if kind < 0.85 else 10.0 ** rng.uniform(-11, 11, n)


def small_case(shape: str, estimator: str, seed: int, largest: int = 24) -> Case:
    """Return a fit small enough for rational arithmetic."""
    rng = np.random.default_rng([seed, sorted(SHAPES).index(shape), len(estimator)])
    n, d = int(rng.integers(2, largest + 1)), int(rng.integers(1, 5))
    X, y = SHAPES[shape](rng, n, d)
    y = labels_of_both(y)
    form = rng.random()
    X = X.astype(np.float32) if form < 0.1 else X
    params: dict[str, Any] = {"C": float(rng.choice(COSTS)), "loss": str(rng.choice(LOSSES))}
    params["tol"] = float(rng.choice([1e-3, 1e-3, 1e-6]))
    if estimator == "LinearSVC":
        params["solver"] = str(rng.choice(LINEAR_SOLVERS))
        params["fit_intercept"] = bool(rng.random() < 0.8)
        params["penalize_intercept"] = bool(params["fit_intercept"] and rng.random() < 0.3)
    elif estimator == "SVC":
        params["solver"] = str(rng.choice(SVC_SOLVERS))
        params["kernel"] = kernels(rng, X)
        if rng.random() < 0.1:
            params["fit_intercept"] = False
            if params["solver"] == "smo":  # moves pairs
                params["solver"] = "coordinate-ascent"
    else:
        smallest = min((y > 0).sum(), (y < 0).sum()) / len(y)
        params = {
            "nu": float(2.0 * smallest * rng.uniform(0.05, 1.0)),
            "kernel": kernels(rng, X),
            "solver": str(rng.choice(["auto", "decomposition", "smo"])),
            "tol": 1e-3,
        }
    sample_weight = None if estimator == "NuSVC" else weights(rng, n)
    X = sparse.csr_matrix(X) if form > 0.85 else X
    return Case(estimator, params, X, y, sample_weight, f"{shape}, seed {seed}")


def medium_case(shape: str, seed: int, rows: tuple[int, int] = (200, 1200)) -> Case:
    """Return a fit of up to 2,000 rows, with the parameters that people use."""
    rng = np.random.default_rng([seed, sorted(SHAPES).index(shape), 7])
    n, d = int(rng.integers(*rows)), int(rng.integers(1, 9))
    X, y = SHAPES[shape](rng, n, d)
    y = labels_of_both(y)
    estimator = str(rng.choice(["SVC", "SVC", "LinearSVC"]))
    params: dict[str, Any] = {"C": float(rng.choice([0.01, 1.0, 1.0, 100.0, 1e4]))}
    params["loss"] = str(rng.choice(LOSSES))
    if estimator == "SVC":
        params["kernel"] = str(rng.choice(["linear", "rbf", "poly"]))
        params["gamma"] = ["scale", 1.0][int(rng.integers(2))]
        params["coef0"] = 1.0
        if n <= 400:
            params["solver"] = str(rng.choice(["auto", "auto", "active-set", "smo", "qp"]))
    else:
        params["solver"] = str(rng.choice(LINEAR_SOLVERS))
    X = sparse.csr_matrix(X) if rng.random() < 0.15 else X
    return Case(estimator, params, X, y, None, f"{shape}, seed {seed}")


def large_case(shape: str, seed: int, n: int = 6000) -> Case:
    """Return a fit whose certificate is not worth a complete recomputation."""
    rng = np.random.default_rng([seed, sorted(SHAPES).index(shape), 11])
    X, y = SHAPES[shape](rng, n, int(rng.integers(2, 7)))
    estimator = str(rng.choice(["SVC", "SVC", "SVC", "NuSVC"]))
    params: dict[str, Any] = {"gamma": float(10.0 ** rng.uniform(-1, 0.5))}
    params["kernel"] = "rbf"
    if estimator == "NuSVC":
        params["nu"] = 0.3 * 2.0 * min((y > 0).mean(), (y < 0).mean())
    return Case(estimator, params, X, y, None, f"{shape}, seed {seed}")


seeds = st.integers(0, 2**16)
