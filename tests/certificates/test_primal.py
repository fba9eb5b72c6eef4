"""Certificates of linear machines."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.certificates import primal as plane_certificate
from maxmargin.kernels import Linear
from maxmargin.problems import DualProblem, PrimalProblem
from maxmargin.runtime import vectors
from maxmargin.solution import Solution, Status
from tests.helpers.primal_solvers import (
    BIASES,
    KINDS,
    LOSSES,
    METHODS,
    REFERENCE,
    ROUNDING,
    WEIGHTS,
    D,
    N,
    answer,
    best,
    cloud,
    feasible,
    posed,
    values_by_hand,
    weights,
)


def certified(problem, w, b, alpha):
    found = Solution(
        np.asarray(w, float)[np.newaxis], np.array([float(b)]), Status.STOPPED, alpha=alpha
    )
    return mm.certify(problem, found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_hold_the_values_of_the_definition(loss, bias, kind, monkeypatch):
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=64))
    X, y = cloud()
    problem = posed(KINDS[kind](X), y, weights("some zero"), loss, bias)
    w, b = np.linspace(-1, 1, D), 0.0 if bias == "none" else 0.7
    alpha = feasible(problem)
    primal, dual = values_by_hand(problem, w, b, alpha)
    found = certified(problem, w, b, alpha)
    assert found.primal == pytest.approx(primal, rel=1e-12)
    assert found.dual == pytest.approx(dual, rel=1e-12)
    assert found.gap == pytest.approx(primal - dual, rel=1e-12)
    assert found.relative_gap == pytest.approx((primal - dual) / primal, rel=1e-12)
    assert found.box == 0.0
    assert found.balance <= ROUNDING
    assert found.n_checked == N
    # The conditions: y g + Dα ≥ 1 below the bound, ≤ 1 above 0.
    upper, D_ = (np.broadcast_to(v, y.shape) for v in (problem.upper, problem.ridge))
    counts = (upper > 0) & np.isfinite(D_)
    slope = (y * (X @ w + b) + np.where(np.isfinite(D_), D_, 0.0) * alpha) - 1.0
    violation = max(
        (-slope[counts & (alpha < upper)]).max(), slope[counts & (alpha > 0)].max(), 0.0
    )
    assert found.violation == pytest.approx(violation, rel=1e-9)
    assert not found.holds(1e-4)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_answer_looks_better_than_the_optimum(loss, bias, name):
    """Whatever is handed in: P is never below, nor D above, so that no gap can be feigned."""
    problem = posed(*cloud(), weights(name), loss, bias)
    least = best(loss, bias, name)
    exact = answer(METHODS[0], problem, tol=1e-8)
    assert exact.status is Status.CONVERGED
    rng = np.random.default_rng(4)
    for k in range(60):
        size = 10.0 ** rng.uniform(-6, 2)
        w = exact.w[0] + size * rng.standard_normal(D)
        b = exact.b[0] + size * rng.standard_normal() * (bias != "none")
        alpha = exact.alpha + size * rng.standard_normal(N) * (rng.random(N) < 0.3)
        if k % 3 == 0:
            alpha = exact.alpha * rng.uniform(0.0, 2.0)
        found = certified(problem, w, b, alpha)
        assert found.primal >= least * (1.0 - REFERENCE)
        assert found.dual <= least * (1.0 + REFERENCE)
        assert found.gap >= -REFERENCE * least
        assert certified(problem, w, b, exact.alpha).dual == pytest.approx(least, rel=1e-6)
        assert certified(problem, exact.w[0], exact.b[0], alpha).primal == pytest.approx(
            least, rel=1e-6
        )


@pytest.mark.parametrize("size", [1e-3, 10.0])
def test_infeasible_multipliers_are_reported(size):
    X, y = cloud()
    problem = posed(X, y, 1.0)
    exact = answer(METHODS[0], problem, tol=1e-8)
    plane = exact.w[0], exact.b[0]
    assert certified(problem, *plane, exact.alpha).holds(1e-8)
    zero, full = np.argmin(exact.alpha), np.argmax(exact.alpha)
    assert (exact.alpha[zero], exact.alpha[full]) == (0.0, 1.0)

    def changed(i, value):
        alpha = exact.alpha.copy()
        alpha[i] = value
        return certified(problem, *plane, alpha)

    negative, above = changed(zero, -size), changed(full, 1.0 + size)
    assert negative.box == pytest.approx(size)
    assert above.box == pytest.approx(size)
    for found in (negative, above):
        assert not found.holds(0.5 * size)
        assert found.dual <= found.primal
    unbalanced = changed(zero, min(size, 1.0))
    total = exact.alpha.sum() + min(size, 1.0)
    assert unbalanced.box == 0.0
    assert unbalanced.balance == pytest.approx(min(size, 1.0) / total, rel=1e-3)
    assert not unbalanced.holds(1e-6)


@pytest.mark.parametrize("bias", ["penalised", "none"])
def test_no_balance_is_asked_where_the_bias_is_not_free(bias):
    problem = posed(*cloud(), 1.0, "hinge", bias)
    found = certified(problem, np.zeros(D), 0.0, (problem.y > 0) * 0.5)
    assert found.balance == 0.0


def test_a_bias_that_is_not_asked_for_proves_nothing():
    """Where there is to be none, a plane that has one must not look better than the optimum."""
    X, y = cloud(shift=1.5)
    problem = posed(X, y, 1.0, "hinge", "none")
    with_bias, without = (
        answer(METHODS[0], replace(problem, bias=bias), tol=1e-8) for bias in ("free", "none")
    )
    least = mm.certify(problem, without).dual
    found = certified(problem, with_bias.w[0], with_bias.b[0], without.alpha)
    assert found.primal >= least * (1.0 - REFERENCE) or not found.holds(1e-3)


def test_a_gap_below_0_is_no_proof():
    """P < D happens to no feasible answer, by more than rounding: something is wrong then."""
    found = plane_certificate.PlaneCertificate(99.0, 100.0, -1.0, -0.0101, 0.0, 0.0, 0.0)
    assert not found.holds(1e-4)
    assert replace(found, gap=-1e-14, relative_gap=-1e-16).holds(1e-4)


def test_certificates_of_the_hard_margin():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    y = y.astype(float)
    hard = PrimalProblem(X, y, np.full(1, np.inf), np.zeros(1))
    alpha = np.array([8, 0, 9, 0, 17, 0]) / 225
    w, b = np.array([-1 / 3, 1 / 5]), 2 / 15
    exact = certified(hard, w, b, alpha)
    assert exact.holds(1e-12)
    assert exact.primal == pytest.approx(17 / 225)
    assert exact.dual == pytest.approx(17 / 225)
    assert hard.hard
    assert not posed(X, y, 1.0).hard
    # A plane that is too near is scaled until no margin is below 1; one that errs has no value.
    near = certified(hard, 0.5 * w, 0.5 * b, alpha)
    assert near.primal == pytest.approx(17 / 225)
    assert certified(hard, 2.0 * w, 2.0 * b, alpha).primal == pytest.approx(4 * 17 / 225)
    wrong = certified(hard, -w, b, alpha)
    assert wrong.primal == wrong.relative_gap == np.inf
    assert not wrong.holds(1e6)
    # Of samples that do not count nothing is asked.
    some = replace(hard, upper=np.array([np.inf, np.inf, np.inf, np.inf, np.inf, 0.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert certified(some, w, b, alpha).holds(1e-12)


def test_the_certificate_of_the_kernel_machine_is_the_same():
    X, y = cloud()
    C = weights("unequal")
    for loss in ("hinge", "squared_hinge"):
        problem = posed(X, y, C, loss)
        found = answer(METHODS[0], problem, tol=1e-10)
        alpha = found.alpha
        pose = DualProblem.hinge if loss == "hinge" else DualProblem.squared_hinge
        plane, kernel = (
            certified(problem, (alpha * y) @ X, found.b[0], alpha),
            mm.certify(
                pose(Linear(), X, y, C), Solution(np.empty((0, 0)), found.b, Status.CONVERGED,
                                                  alpha=alpha)
            ),
        )  # fmt: skip
        assert plane.primal == pytest.approx(kernel.primal, rel=1e-10)
        assert plane.dual == pytest.approx(kernel.dual, rel=1e-10)
        assert plane.violation == pytest.approx(kernel.violation, rel=1e-6, abs=1e-12)


def test_text_of_certificates():
    problem = posed(*cloud(), 1.0)
    text = str(mm.certify(problem, answer(METHODS[0], problem)))
    for told in ("relative gap", "primal", "dual", "KKT"):
        assert told in text
