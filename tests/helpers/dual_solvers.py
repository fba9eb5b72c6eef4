"""The registry of the dual's solvers, and problems of classification to solve.

A new solver gets one line in `METHODS`: a factory f(gram, tol, limits) and what it promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.engines.cpu.gram import Gram, GramView
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solvers.dual.active_set import ActiveSet
from maxmargin.solvers.dual.decomposition import Decomposition
from maxmargin.solvers.dual.qp import QuadraticProgram


@dataclass(frozen=True)
class Method:
    """A solver: how it is made, what is asked of it, and what its certificate must hold to.

    ``handles`` names the problems it knows; ``warm`` ones use a start; ``steps`` ones report every
    step, ``rounds`` ones several steps at a time; ``proves`` ones return multipliers of inseparable
    classes. ``exact`` is what their α may differ by from rational numbers of the worked examples.
    """

    name: str
    make: Callable[[Any, float, Limits], Any]
    tol: float
    holds: float
    exact: float = 1e-12
    handles: Callable[[DualProblem], bool] = lambda problem: True
    warm: bool = True
    steps: bool = True
    rounds: bool = False
    proves: bool = True
    needs: str = "numpy"


def in_float64(gram, tol, limits, **options):
    gram = Gram(gram.kernel, gram.X, gram.index, dtype=np.float64)
    return Decomposition(gram, None, tol, limits, **options)


def in_float32(gram, tol, limits):
    fast, exact = (Gram(gram.kernel, gram.X, dtype=dtype) for dtype in (np.float32, np.float64))
    return Decomposition(fast.restrict(gram.index), GramView(exact, gram.index), tol, limits)


def on_the_whole(gram, tol, limits):
    gram = Gram(gram.kernel, gram.X, gram.index, dtype=np.float64)
    gram.whole()
    return Decomposition(gram, None, tol, limits, gram.n_samples)


def is_soft(problem):
    return bool((np.isfinite(problem.upper) | (problem.ridge > 0.0)).all())


# These stop at the very tolerance they are given, and have no proof of inseparability.
DESCENT = {"rounds": True, "proves": False}

# Interior points know a degenerate α, 0 as its multiplier is, to the root of their tolerance only:
# 1e-12 for PIQP, 1e-10 for Clarabel.
METHODS = [
    Method("active-set", ActiveSet, tol=1e-10, holds=1e-8),
    Method(
        "piqp", lambda *options: QuadraticProgram(*options, "piqp"),
        tol=1e-12, holds=1e-6, exact=1e-7, warm=False, steps=False, needs="piqp",
    ),
    Method(
        "clarabel", lambda *options: QuadraticProgram(*options, "clarabel"),
        tol=1e-12, holds=1e-4, exact=1e-7, warm=False, steps=False, needs="clarabel",
    ),
    Method("decomposition", in_float64, tol=1e-9, holds=4e-9, exact=1e-9, **DESCENT),
    Method(
        "decomposition-float32", in_float32, tol=1e-5, holds=1e-5, exact=1e-5, **DESCENT
    ),
    Method(
        "decomposition-in-parts", partial(in_float64, working_set=32),
        tol=1e-6, holds=1e-6, exact=1e-6, handles=is_soft, **DESCENT,
    ),
    Method(
        "smo", on_the_whole, tol=1e-9, holds=4e-9, exact=1e-9,
        handles=lambda problem: problem.groups, **DESCENT,
    ),
    Method(
        "coordinate-ascent", on_the_whole, tol=1e-9, holds=1e-9, exact=1e-9,
        handles=lambda problem: not problem.groups, **DESCENT,
    ),
]  # fmt: skip

SIX_ALPHA = np.array([8 / 225, 0, 1 / 25, 0, 17 / 225, 0])


def blobs(n, d, seed, noise=0.7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)


def six_points():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    return DualProblem.hard(Linear(), X, y.astype(float))


def xor(kernel):
    X, y = mm.datasets.load_xor(return_X_y=True)
    return DualProblem.hard(kernel, X, y.astype(float))


def weighted_hinge():
    X, y = blobs(120, 3, 0)
    return DualProblem.hinge(RBF(gamma=0.5), X, y, np.random.default_rng(1).uniform(0.2, 5, 120))


def squared_hinge():
    return DualProblem.squared_hinge(RBF(gamma=0.5), *blobs(90, 2, 2), 2.0)


def nu_machine():
    return DualProblem.nu(RBF(gamma=0.5), *blobs(100, 3, 3), 0.4)


def no_bias():
    return DualProblem.hinge(Linear(), *blobs(80, 3, 4), 1.0, bias=False)


def rank_deficient():
    X, y = blobs(60, 2, 5)
    X = np.round(2 * X)  # many samples are equal, and K has rank 2
    return DualProblem.hinge(Linear(), np.vstack([X, X]), np.append(y, y), 0.5)


def two_samples():
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    return DualProblem.hinge(Linear(), X, np.array([-1.0, 1.0]), 10.0)


def all_at_bound():
    X = np.array([[0.0], [0.3], [0.2], [0.5]])
    return DualProblem.hinge(Linear(), X, np.array([-1.0, -1.0, 1.0, 1.0]), 0.01)


PROBLEMS = {
    "six points": six_points,
    "xor": lambda: xor(Polynomial(2, coef0=1.0)),
    "weighted hinge": weighted_hinge,
    "squared hinge": squared_hinge,
    "nu": nu_machine,
    "no bias": no_bias,
    "rank deficient": rank_deficient,
    "two samples": two_samples,
    "all at bound": all_at_bound,
    "hard rbf": lambda: DualProblem.hard(RBF(gamma=1.0), *blobs(80, 2, 6)),
    "large C": lambda: DualProblem.hinge(Linear(), *blobs(60, 2, 7), 1000.0),
}


def answer(method, problem, alpha=None, progress=None, limits=None, tol=None):
    gram = Gram(problem.kernel, problem.X, dtype=np.float64)
    if problem.index.size != problem.X.shape[0]:
        gram = gram.restrict(problem.index)
    solver = method.make(gram, tol or method.tol, limits or Limits())
    return solver.solve(problem, alpha, progress or Progress())


def posed(method, name):
    problem = PROBLEMS[name]()
    if not method.handles(problem):
        pytest.skip(f"{method.name} does not solve this problem")
    return problem


def scores(problem, solution):
    return problem.kernel(problem.X) @ (solution.alpha * problem.signs)
