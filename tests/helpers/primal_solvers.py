"""The registry of the linear machine's solvers, and problems to solve.

A new solver gets one line in `METHODS`, a new kind of X one in `KINDS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin import qp
from maxmargin.engines.cpu.features import Features
from maxmargin.engines.cpu.primal_state import PrimalState
from maxmargin.problems import PrimalProblem, losses
from maxmargin.problems.best_bias import balanced
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.primal import coordinate_descent, direction, interior_point, newton
from maxmargin.solvers.primal.coordinate_descent import CoordinateDescent
from maxmargin.solvers.primal.interior_point import InteriorPoint
from maxmargin.solvers.primal.newton import SemismoothNewton
from tests.helpers.storage import long_indices, read_only

# A line of the registry is all that a new loss takes.
losses.LOSSES.setdefault("smoothed_hinge", losses.Loss(upper=1.0, ridge=0.5))

LOSSES = ["hinge", "squared_hinge", "smoothed_hinge"]

BIASES = ["free", "penalised", "none"]

# The default, and one that only second-order steps get to.
TOLERANCES = [1e-4, 1e-8]

# A certificate adds up in another order than a solver does.
AIM = 0.99

# The accuracy of the value that the quadratic program's solver finds.
REFERENCE = 1e-7

# The same numbers added up in another order.
ROUNDING = 1e-12

# Far more than these problems need: a solver that does not end fails instead. None of seconds: to
# compile the first step may take minutes on a busy machine.
LIMITS = Limits(2000)

N, D = 90, 5


@dataclass(frozen=True)
class Method:
    """A solver; ``warm`` ones use a start, ``blocks`` ones take rows that come in blocks.

    ``counts`` ones know of every sample, at every step, whether it is on its side.
    """

    name: str
    make: Callable[..., Any]
    module: Any
    warm: bool = True
    blocks: bool = True
    counts: bool = True


METHODS = [
    Method("newton", SemismoothNewton, newton),
    Method("interior-point", InteriorPoint, interior_point, warm=False),
    Method("coordinate-descent", CoordinateDescent, coordinate_descent, blocks=False, counts=False),
]


def cloud(n=N, d=D, *, seed=0, noise=0.7, density=0.7, shift=0.3):
    """Return X, exact in float32 and with some zeros, and y = ±1 of classes that overlap."""
    rng = np.random.default_rng(seed)
    X = np.round(8 * rng.standard_normal((n, d))) / 8 * (rng.random((n, d)) < density)
    return X, np.where(X[:, 0] + noise * rng.standard_normal(n) + shift > 0, 1.0, -1.0)


def in_blocks(X, make=np.asarray):
    """Return X as blocks of unequal sizes."""
    n = X.shape[0]
    return mm.RowBlocks([make(X[rows]) for rows in np.split(np.arange(n), [1, n // 3, n // 2])])


KINDS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "by columns, float32": lambda X: np.asfortranarray(X.astype(np.float32)),
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read only": read_only,
    "csr": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csr int64": long_indices,
    "blocks": in_blocks,
    "blocks float32": lambda X: in_blocks(X.astype(np.float32)),
    "csr blocks": lambda X: in_blocks(X, sparse.csr_matrix),
    "blocks of columns": lambda X: in_blocks(X, np.asfortranarray),
}


def dense(X):
    """Return X of any kind as an array in float64."""
    if isinstance(X, mm.RowBlocks):
        return np.vstack([dense(block) for block in X])
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def weights(name, n=N):
    rng = np.random.default_rng(1)
    return {
        "equal": 2.0,
        "unequal": rng.uniform(0.2, 5.0, n),
        "some zero": np.where(np.arange(n) % 4 == 1, 0.0, rng.uniform(0.2, 5.0, n)),
    }[name]


WEIGHTS = ["equal", "unequal", "some zero"]


def posed(X, y, C=1.0, loss="hinge", bias="free"):
    return PrimalProblem.of(X, y, C, loss, bias)


def answer(method, problem, start=None, *, tol=1e-6, limits=LIMITS, progress=None):
    solver = method.make(Features(problem.X), AIM * tol, limits)
    return solver.solve(problem, start, progress or Progress())


def assert_solves(method, problem, tol=1e-6, **options):
    """The solver converges, to a certificate that says so, and warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = answer(method, problem, tol=tol, **options)
        certificate = mm.certify(problem, found)
    assert certificate.holds(tol), f"{found.status}: {certificate}"
    assert found.status is Status.CONVERGED
    assert found.alpha.min() >= 0.0
    assert (found.alpha <= problem.upper).all()
    if problem.bias == "none":
        assert found.b[0] == 0.0
    return found, certificate


# Values and optima from their definitions ---------------------------------------------------------


def by_hand(problem):
    """Return y, C and K = XXᵀ (+ 1) of the samples that count, and the curvature D of the loss."""
    y = problem.y
    upper, D = (np.broadcast_to(values, y.shape) for values in (problem.upper, problem.ridge))
    counts = (upper > 0.0) & np.isfinite(D)
    X = dense(problem.X)[counts]
    K = X @ X.T + float(problem.bias == "penalised")
    return y[counts], upper[counts], D[counts], K


def optimum(problem):
    """Return the value of the dual as a general quadratic program."""
    pytest.importorskip("clarabel")
    y, upper, D, K = by_hand(problem)
    n = y.size
    above = np.isfinite(upper)
    G = np.vstack([-np.eye(n), np.eye(n)[above]])
    h = np.concatenate([np.zeros(n), upper[above]])
    A = y[np.newaxis] if problem.bias == "free" else np.empty((0, n))
    program = qp.QP(np.outer(y, y) * K + np.diag(D), -np.ones(n), G, h, A, np.zeros(len(A)))
    solved = qp.solve(program, "clarabel")
    assert solved.status is qp.QPStatus.SOLVED
    return -solved.objective


@cache
def best(loss, bias, name):
    """Return the optimum of the problems of the matrix below; all kinds of X hold the same rows."""
    return optimum(posed(*cloud(), weights(name), loss, bias))


def loss_value(problem, z):
    """Return Σ h(z) over the last axis, from the definition of the losses."""
    z = np.maximum(z, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = np.where(problem.ridge > 0.0, np.minimum(z / problem.ridge, problem.upper), np.nan)
        alpha = np.where(problem.ridge > 0.0, alpha, problem.upper)
        ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
    return np.sum(alpha * z - 0.5 * ridge * alpha**2, axis=-1)


def values_by_hand(problem, w, b, alpha):
    """Return P(w, b) and D(α), from their definitions."""
    X, y = dense(problem.X), problem.y
    penalty = b**2 if problem.bias == "penalised" else 0.0
    primal = 0.5 * (w @ w + penalty) + loss_value(problem, 1.0 - y * (X @ w + b))
    v, s = (alpha * y) @ X, float(alpha @ y)
    penalty = s**2 if problem.bias == "penalised" else 0.0
    ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
    dual = alpha.sum() - 0.5 * (v @ v + penalty) - 0.5 * np.sum(ridge * alpha**2)
    return primal, dual


def feasible(problem, seed=0):
    """Return some α of 0 ≤ α ≤ u, with yᵀα = 0 where the bias is free."""
    rng = np.random.default_rng(seed)
    upper = np.broadcast_to(np.minimum(problem.upper, 1.0), problem.y.shape)
    alpha = np.where(np.isfinite(problem.ridge), upper, 0.0) * rng.random(problem.y.size)
    return balanced(problem, alpha) if problem.bias == "free" else alpha


# The ways of Newton's method ----------------------------------------------------------------------

MANY = 2000


@dataclass(frozen=True)
class Way:
    """Constants under which small data take the way of large ones, and what is then called."""

    name: str
    tuning: newton.Tuning
    called: list[tuple[Any, str]]


DIRECT = direction.Tuning(direct_multiplications=0.0)

WAYS = [
    Way("rows near the kink", newton.Tuning(whole_numbers=100), [(PrimalState, "hold")]),
    Way(
        "samples of the rows",
        newton.Tuning(whole_numbers=100, sample_factor=4, fewest_rows=100),
        [(newton._Run, "from_samples"), (PrimalState, "hold")],
    ),
    Way(
        "conjugate gradients", newton.Tuning(direction=DIRECT),
        [(direction, "by_conjugate_gradients")],
    ),
    Way(
        "conjugate gradients near the kink", newton.Tuning(whole_numbers=100, direction=DIRECT),
        [(direction, "by_conjugate_gradients"), (PrimalState, "hold")],
    ),
]  # fmt: skip
