"""Decomposition among some of the variables."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.engines.registry import engine_for
from maxmargin.kernels import Linear
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.dual.decomposition import Decomposition, Tuning

# Restricts itself from 20 variables on, to almost any share of them.
EAGER = Tuning(restrict_from=20, restricted_share=0.9, fresh_variables=12)


@pytest.mark.parametrize(("seed", "n_near"), [(21, 15), (27, 5), (57, 7)])
def test_a_part_may_have_no_variable_of_a_group(seed, n_near):
    """All α of the negative class are at a bound, and its far samples nowhere near moving."""
    rng = np.random.default_rng(seed)
    rng.integers(2)  # seeds whose parts lack a group, with the numbers drawn after this one
    near = rng.normal([-0.3, 0.0], 0.02, (n_near, 2))
    far = rng.normal([-6.0, 0.0], 0.02, (100 - n_near, 2))
    X = np.concatenate([near, far, rng.normal([1.0, 0.0], 1.2, (100, 2))])
    problem = DualProblem.nu(Linear(), X, np.repeat([-1.0, 1.0], 100), n_near / 100)
    gram = engine_for(X).gram(Linear())
    solver = Decomposition(gram, None, 1e-6, Limits(100_000), 24, tuning=EAGER)
    solution = solver.solve(problem, None, Progress())
    assert solution.status is Status.CONVERGED
    assert mm.certify(problem, solution).holds(2e-6)
