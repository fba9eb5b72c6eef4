"""Targets in units of their spread."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.problems import PrimalProblem
from maxmargin.problems.losses import TARGET_LOSSES
from maxmargin.progress import Progress, Recorder
from maxmargin.solution import Solution, Status
from maxmargin.solvers.primal.ledger import Plane
from maxmargin.solvers.targets import Units, solve_in_units

N = 40


def posed(y, loss="epsilon_insensitive", bias="free", epsilon=0.0, C=1.0):
    X = np.random.default_rng(0).standard_normal((y.size, 2))
    return PrimalProblem.of(X, y, C, loss, bias, epsilon=epsilon)


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_spread_and_centre_of_targets(scale, bias):
    y = scale * np.random.default_rng(0).standard_normal(N)
    units = Units.of(posed(y + 5.0 * scale, bias=bias))
    assert np.frexp(units.scale)[0] == 0.5  # a power of 2
    assert abs(units.centre / scale - 5.0 * (bias == "free")) < 1.0
    inside = units.of_targets(y + 5.0 * scale)
    assert 0.1 < np.median(np.abs(inside)) < 10.0
    np.testing.assert_allclose(inside * units.scale + units.centre, y + 5.0 * scale, rtol=1e-12)


def test_units_of_targets_of_which_most_are_equal():
    y = np.where(np.arange(N) % 10 == 0, 1e6, 0.0)
    assert Units.of(posed(y)).scale > 1e4
    assert Units.of(posed(np.where(np.arange(N) == 7, 1e6, 0.0))).scale > 1e4
    assert Units.of(posed(np.ones(N))).scale == 1.0


@pytest.mark.parametrize("loss", TARGET_LOSSES)
def test_a_problem_in_units_is_the_same_problem(loss):
    """P and D of any plane and any β are those of the caller, divided by σ²."""
    rng = np.random.default_rng(1)
    y = 1e5 * rng.standard_normal(N) + 3e6
    problem = posed(y, loss, epsilon=2e4, C=7.0)
    units = Units.of(problem)
    beta = rng.uniform(-1.0, 1.0, N)
    plane = Plane(1e5 * rng.standard_normal(2), 3e6, beta - beta.mean())
    inside = units.entered(plane)
    claims = [
        mm.certify(
            p, Solution(each.w[np.newaxis], np.array([each.b]), Status.STOPPED, alpha=each.alpha)
        )
        for p, each in ((problem, plane), (units.posed(problem), inside))
    ]
    for name in ("primal", "dual"):
        there, here = (getattr(claim, name) for claim in claims)
        assert here * units.scale**2 == pytest.approx(there, rel=1e-9)
    back = units.back(
        Solution(inside.w[np.newaxis], np.array([inside.b]), Status.STOPPED, alpha=inside.alpha)
    )
    np.testing.assert_allclose(back.w[0], plane.w)
    np.testing.assert_allclose(back.b[0], plane.b)
    np.testing.assert_allclose(back.alpha, plane.alpha)


def test_reports_are_in_the_units_of_the_caller():
    y = 1e5 * np.random.default_rng(1).standard_normal(N) + 3e6
    problem, recorder = posed(y), Recorder()
    progress = Progress([recorder])

    def solve(inside, start, reports):
        assert start is None
        assert np.abs(inside.y).max() < 10.0
        solution = Solution(np.ones((1, 2)), np.ones(1), Status.CONVERGED, alpha=np.ones(N))
        reports.iteration(3.0, 1, 0.1, lambda: solution, primal=3.0, dual=2.0)
        reports.measured(2.5, 2.25)
        return solution

    found = solve_in_units(solve, problem, None, progress)
    units = Units.of(problem)
    step, trace = recorder.steps[0], progress.trace()
    assert step.primal == 3.0 * units.scale**2
    assert (trace.primal[0], trace.dual[0]) == (2.5 * units.scale**2, 2.25 * units.scale**2)
    np.testing.assert_array_equal(step.planes()[0], found.w)
    np.testing.assert_array_equal(found.w, units.scale * np.ones((1, 2)))
    assert found.b[0] == units.scale + units.centre


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
def test_a_tube_that_holds_all_targets_needs_no_solver(bias):
    def solve(*_):
        raise AssertionError

    y = np.linspace(-2.0, 6.0, N)
    epsilon = 4.0 if bias == "free" else 6.0
    found = solve_in_units(solve, posed(y, bias=bias, epsilon=epsilon), None, Progress())
    assert found.b[0] == (2.0 if bias == "free" else 0.0)
    assert not found.w.any()
    assert mm.certify(posed(y, bias=bias, epsilon=epsilon), found).gap == 0.0
    with pytest.raises(AssertionError):
        solve_in_units(solve, posed(y, bias=bias, epsilon=0.9 * epsilon), None, Progress())


def test_targets_that_do_not_count_need_not_be_in_the_tube():
    y = np.append(np.linspace(-1.0, 1.0, N - 1), 100.0)
    for loss in TARGET_LOSSES:
        costs = np.append(np.ones(N - 1), 0.0)
        problem = posed(y, loss, epsilon=1.0, C=costs)
        found = solve_in_units(None, problem, None, Progress())
        assert not found.w.any()
        assert mm.certify(problem, found).gap == 0.0
