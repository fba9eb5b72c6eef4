"""The kernel machine solved in the space of its features."""

from __future__ import annotations

import numpy as np

import maxmargin as mm
from maxmargin.engines.cpu.features import Features
from maxmargin.kernels import Linear
from maxmargin.problems import DualProblem
from maxmargin.progress import Progress
from maxmargin.solvers.dual.feature_space import FeatureSpace
from tests.helpers.fits import noisy


def test_steps_show_p_and_d_of_their_snapshots():
    X, y = noisy(200, 3)
    problem = DualProblem.hinge(Linear(), X, y, 1.0)
    seen = []

    def look(step):
        solution = step.snapshot()
        certificate = mm.certify(problem, solution)
        seen.append((step.primal, certificate.primal, step.dual, certificate.dual))

    FeatureSpace(Features(X)).solve(problem, None, Progress([look]))
    primal, true_primal, dual, true_dual = np.array(seen).T
    assert np.allclose(primal, true_primal, rtol=1e-9)
    assert np.allclose(dual, true_dual, rtol=1e-9, atol=1e-9)
