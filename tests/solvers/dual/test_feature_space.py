"""The kernel machine solved in the space of its features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.cpu.features import Features
from maxmargin.kernels import Linear
from maxmargin.problems import DualProblem
from maxmargin.progress import Progress
from maxmargin.solution import Status
from maxmargin.solvers.dual.feature_space import FeatureSpace, linear_machine
from tests.helpers.fits import noisy


def targets(n, d, seed=0):
    """Return rows, and targets far from 0 with noise of heavy tails."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, 100.0 + X @ rng.standard_normal(d) + rng.standard_t(3, n)


@pytest.mark.parametrize("loss", ["labels", "targets"])
def test_steps_show_p_and_d_of_their_snapshots(loss):
    X, y = noisy(200, 3)
    problem = DualProblem.hinge(Linear(), X, y, 1.0)
    if loss == "targets":
        X, y = targets(200, 3)
        problem = DualProblem.regression(Linear(), X, y, 1.0, 0.2)
    seen = []

    def look(step):
        solution = step.snapshot()
        certificate = mm.certify(problem, solution)
        seen.append((step.primal, certificate.primal, step.dual, certificate.dual))

    FeatureSpace(Features(X)).solve(problem, None, Progress([look]))
    primal, true_primal, dual, true_dual = np.array(seen).T
    assert np.allclose(primal, true_primal, rtol=1e-9)
    assert np.allclose(dual, true_dual, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_regressions_are_solved_in_feature_space(squared, bias, epsilon):
    X, y = targets(400, 5)
    y = y if bias else y - 100.0
    C = np.random.default_rng(1).uniform(0.1, 10.0, 400)
    problem = DualProblem.regression(Linear(), X, y, C, epsilon, squared=squared, bias=bias)
    solution = FeatureSpace(Features(X)).solve(problem, None, Progress())
    assert solution.status is Status.CONVERGED
    assert mm.certify(problem, solution).holds(1e-8)
    again = FeatureSpace(Features(X)).solve(problem, solution.alpha, Progress())
    assert mm.certify(problem, again).holds(1e-8)


def test_a_tube_around_all_targets_needs_no_steps():
    X, y = targets(400, 5)
    problem = DualProblem.regression(Linear(), X, y, 1.0, float(np.ptp(y)))
    solution = FeatureSpace(Features(X)).solve(problem, None, Progress())
    assert solution.status is Status.CONVERGED
    assert not solution.alpha.any()


def test_linear_machines_are_recognised():
    X, y = targets(40, 5)
    kernel = Linear()
    of_targets = linear_machine(DualProblem.regression(kernel, X, y, 1.0, 0.25))
    assert of_targets.two_sided
    assert np.isclose(of_targets.epsilon, 0.25)
    assert np.allclose(of_targets.y, y)
    assert of_targets.upper.size == 1
    labels = np.where(y > 100.0, 1.0, -1.0)
    assert not linear_machine(DualProblem.hinge(kernel, X, labels, 1.0)).two_sided
    assert linear_machine(DualProblem.nu_regression(kernel, X, y, 1.0, 0.5)) is None
    assert linear_machine(DualProblem.one_class(kernel, X, 0.5)) is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_svr_of_a_linear_kernel_is_linear_svr(form):
    X, y = targets(2000, 8)
    kernel = mm.SVR(kernel="linear", epsilon=0.3, tol=1e-6).fit(form(X), y)
    plane = mm.LinearSVR(epsilon=0.3, tol=1e-10).fit(form(X), y)
    coef = kernel.coef_ if form is np.asarray else kernel.coef_.toarray()
    assert kernel.certificate_.holds(1e-6)
    assert np.allclose(coef[0], plane.coef_, atol=1e-4)
    assert kernel.n_iter_ < 500


def test_decomposition_goes_on_where_alpha_of_the_plane_is_not_good_enough():
    X, y = targets(5000, 300)
    model = mm.SVR(kernel="linear").fit(X.cumsum(axis=1), y)
    assert model.status_ == "converged"
    assert model.certificate_.holds(1e-3)
