"""All free variables of a state of the decomposition, moved at once."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.certificates import certify
from maxmargin.engines.cpu.engine import CpuEngine
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solvers.dual import decomposition
from maxmargin.solvers.dual.decomposition import Decomposition

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.4 * RNG.normal(size=300) > 0.0, 1.0, -1.0)
KERNEL = RBF(0.5)


def problem(C):
    return DualProblem.hinge(KERNEL, X, Y, np.full(300, C))


def state_after(C, steps):
    """Return a state some steps after α = 0."""
    gram = CpuEngine(X).gram(KERNEL)
    state = gram.dual_state(problem(C), np.zeros(300))
    state.solve_block([np.arange(300)], 1e-3, steps)
    return state


def test_a_step_lowers_the_objective_and_keeps_what_is_known():
    state = state_after(1e3, 20_000)
    before = state.value
    assert np.isfinite(state.free_step_numbers())
    assert state.move_free()
    assert state.value < before
    assert (state.lower <= state.beta).all()
    assert (state.beta <= state.upper).all()
    assert abs(state.beta.sum()) <= 1e-9 * np.abs(state.beta).sum()
    K = KERNEL(X, X)
    np.testing.assert_allclose(state.f, Y - K @ state.beta, atol=1e-6)
    assert state.value == pytest.approx(0.5 * state.beta @ K @ state.beta - Y @ state.beta)


def test_no_step_without_free_variables_or_with_other_sums():
    gram = CpuEngine(X).gram(KERNEL)
    assert gram.dual_state(problem(1.0), np.zeros(300)).free_step_numbers() == np.inf
    fast = CpuEngine(X).gram(KERNEL, None, "fast")
    state = fast.dual_state(problem(1e3), np.zeros(300), gram)
    state.solve_block([np.arange(300)], 1e-3, 2000)
    assert state.free_step_numbers() == np.inf  # float32


def test_large_costs_take_fewer_steps_and_are_certified(monkeypatch):
    def solved():
        gram = CpuEngine(X).gram(KERNEL)
        return Decomposition(gram, None, 1e-5, Limits(), 128).solve(problem(1e5), None, Progress())

    with_steps = solved()
    monkeypatch.setattr(decomposition._Descent, "free_step", lambda self: False)
    without = solved()
    assert certify(problem(1e5), with_steps).holds(1e-5)
    assert certify(problem(1e5), without).holds(1e-5)
    assert with_steps.n_updates < 0.5 * without.n_updates


def test_weights_and_the_squared_hinge():
    weights = RNG.uniform(0.5, 2.0, size=300)
    for loss in ("hinge", "squared_hinge"):
        model = mm.SVC(C=1e4, gamma=0.5, loss=loss, tol=1e-5, solver="smo")
        model.fit(X, Y, sample_weight=weights)
        assert model.certificate_.holds(1e-5)
