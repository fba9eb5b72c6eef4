"""The losses of the linear machine: their formulas, and what a new one takes."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.certificates import plane_sums
from maxmargin.engines.cpu import primal_passes
from maxmargin.problems import PrimalProblem
from maxmargin.problems.losses import (
    LOSSES,
    TARGET_LOSSES,
    Loss,
    loss_value,
    proximal_beta,
    slack,
)

# u and D: a kink, a parabola, a parabola that turns into a line, and samples without weight.
BOUNDS = [(2.0, 0.0), (np.inf, 0.25), (2.0, 0.25), (0.5, 4.0), (0.0, 0.0), (np.inf, np.inf)]
SLACKS = np.array([-1.0, 0.0, 1e-9, 0.3, 0.5, 1.0, 7.0])


def by_definition(z, u, D):
    """Return max {αz − ½Dα² : 0 ≤ α ≤ u} over a fine grid."""
    if np.isinf(D):
        return 0.0
    alpha = np.linspace(0.0, min(u, 100.0), 2_000_001)
    return float(np.max(alpha * z - 0.5 * D * alpha**2))


@pytest.mark.parametrize(("u", "D"), BOUNDS)
def test_solvers_and_certificates_have_the_loss_of_the_definition(u, D):
    for z in SLACKS:
        expected = by_definition(z, u, D)
        of_certificate = plane_sums.loss_of(z, u, D)
        for found in (loss_value(z, u, D), primal_passes._loss_value(z, u, D), of_certificate):
            assert found == pytest.approx(expected, abs=1e-9)


# A label of each class, and targets with and without a tube: y, two_sided and ε.
SIDES = [(1.0, False, 0.0), (-1.0, False, 0.0), (3.0, True, 0.0), (-2.0, True, 0.4)]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("u", "D"), BOUNDS)
def test_beta_is_the_derivative_of_the_loss(u, D, side):
    y, two_sided, epsilon = side
    low, high = (-u, u) if two_sided else sorted((0.0, y * u))
    for r in np.concatenate([-SLACKS, SLACKS]) * 1.1 + 0.01:

        def loss(r):
            return loss_value(slack(r, *side), u, D)

        if D > 0.0:
            slope = (loss(r + 1e-6) - loss(r - 1e-6)) / 2e-6
            assert proximal_beta(r, *side, 0.0, u, D, 0.0) == pytest.approx(slope, abs=1e-5)
        for before in (0.0, 0.3 * np.clip(y, max(low, -1.0), min(high, 1.0))):
            beta = proximal_beta(r, *side, before, u, D, 0.7)
            assert beta == primal_passes._proximal_beta(r, *side, before, u, D, 0.7)
            if 0.0 < u < np.inf:
                near = np.clip(beta + np.array([-1e-4, 0.0, 1e-4]), low, high)
                values = near * r - epsilon * np.abs(near) - 0.5 * D * near**2
                values -= 0.35 / u * (near - before) ** 2
                assert values[1] >= values.max() - 1e-12


def test_costs_scale_a_loss():
    costs = np.array([0.5, 2.0, 0.0])
    for loss in (*LOSSES.values(), *TARGET_LOSSES.values(), Loss(1.0, 0.5)):
        upper, ridge = (np.broadcast_to(each, 3) for each in loss.bounds(costs))
        unit = loss_value(1.3, loss.upper, loss.ridge)
        values = [loss_value(1.3, float(u), float(D)) for u, D in zip(upper, ridge, strict=True)]
        np.testing.assert_allclose(values, costs * unit, rtol=1e-12)


@pytest.fixture
def smoothed(monkeypatch):
    """A new loss: the hinge, rounded off over a width of ½. One line of the registry."""
    monkeypatch.setitem(LOSSES, "rounded_hinge", Loss(upper=1.0, ridge=0.5))


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("solver", ["auto", "newton", "interior-point", "coordinate-descent"])
def test_a_new_loss_is_a_line_of_the_registry(smoothed, solver, multi_class):
    X, y = mm.datasets.load_fruit(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    options = {"loss": "rounded_hinge", "tol": 1e-6, "max_iter": 5000}
    model = mm.LinearSVC(solver=solver, multi_class=multi_class, random_state=0, **options)
    model.fit(X, y)
    assert all(each.holds(1e-6) for each in model.certificates_)
    assert model.score(X, y) > 0.8


def test_a_new_loss_lies_between_the_hinge_and_nothing(smoothed):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    primals = [
        mm.LinearSVC(C=0.01, loss=loss, tol=1e-8).fit(X, y).certificate_.primal
        for loss in ("rounded_hinge", "hinge")
    ]
    assert 0.0 < primals[0] < primals[1]


def test_a_loss_that_is_not_registered():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    with pytest.raises(ValueError, match="'loss' parameter of LinearSVC must be a str among"):
        mm.LinearSVC(loss="logistic").fit(X, y)
    with pytest.raises(KeyError):
        PrimalProblem.of(X, y, 1.0, "logistic")
