"""The best plane and the best multipliers that a solver has seen."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.engines.cpu.features import Features
from maxmargin.progress import Progress
from maxmargin.solution import Status
from maxmargin.solvers.primal.ledger import Ledger, Plane
from tests.helpers.primal_solvers import (
    BIASES,
    LOSSES,
    WEIGHTS,
    D,
    cloud,
    feasible,
    posed,
    values_by_hand,
    weights,
)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_values_are_those_of_the_definition(loss, bias, name):
    X, y = cloud()
    problem = posed(X, y, weights(name), loss, bias)
    features, w, b = Features(X), np.linspace(-1, 1, D), 0.0 if bias == "none" else 0.7
    alpha = feasible(problem)
    primal, dual = values_by_hand(problem, w, b, alpha)
    state = features.primal_state(problem)
    ledger = Ledger(problem, state)
    state.place(w, b)
    state.start(alpha)
    assert ledger.enter(Plane(w, b)) == pytest.approx(primal, rel=1e-12)
    assert state.dual() == pytest.approx(dual, rel=1e-12)
    assert state.dual(state.total()) == pytest.approx(dual, rel=1e-12)
    np.testing.assert_allclose(state.alpha(), alpha, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bias", BIASES)
def test_the_ledger_keeps_the_best_of_both_sides(bias):
    X, y = cloud()
    problem = posed(X, y, 1.0, "hinge", bias)
    state = Features(X).primal_state(problem)
    ledger = Ledger(problem, state)
    assert ledger.gap == 1.0
    rng = np.random.default_rng(3)
    start = ledger.solution(Status.STOPPED, 0, Progress())
    primals, duals = map(list, zip(values_by_hand(problem, start.w[0], start.b[0], start.alpha)))
    for k in range(20):
        w, b = rng.standard_normal(D), float(rng.standard_normal() * (bias != "none"))
        alpha = feasible(problem, k) * rng.random()
        primal, dual = values_by_hand(problem, w, b, alpha)
        primals.append(primal)
        duals.append(dual)
        state.place(w, b)
        state.start(alpha)
        ledger.enter(Plane(w, b))
        state.values += 1e3  # what a solver does with it afterwards
        assert ledger.primal == pytest.approx(min(primals), rel=1e-12)
        assert ledger.dual == pytest.approx(max(duals), rel=1e-12)
        assert ledger.gap == pytest.approx(
            (min(primals) - max(duals)) / min(primals), rel=1e-9
        )  # fmt: skip
    found = ledger.solution(Status.CONVERGED, 20, Progress())
    primal, dual = values_by_hand(problem, found.w[0], found.b[0], found.alpha)
    assert dual == pytest.approx(max(duals), rel=1e-12)
    assert primal == pytest.approx(ledger.primal, rel=1e-12)
    if bias == "free":  # the best for w
        assert primal <= min(primals) * (1.0 + 1e-12)
        for shift in (-1e-3, 1e-3):
            moved = values_by_hand(problem, found.w[0], found.b[0] + shift, found.alpha)[0]
            assert primal <= moved * (1.0 + 1e-12)
    else:
        assert primal == pytest.approx(min(primals), rel=1e-12)
