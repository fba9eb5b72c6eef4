"""The machine with an ℓ1 penalty: quadratic programs, a closed form, and its certificate."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin import qp
from maxmargin.engines.cpu.features import Features
from maxmargin.problems import L1Problem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.primal.l1_newton import L1Newton, Tuning, equal_columns
from maxmargin.solvers.primal.ledger import Plane
from tests.helpers.primal_solvers import BIASES, KINDS, WEIGHTS, cloud, weights

TOL = 1e-8
# The accuracy of the value that the quadratic program's solver finds.
REFERENCE = 1e-6
LIMITS = Limits(500)
# Constants under which small data take the ways of large ones.
WAYS = {
    "matrix": ("matrix", Tuning()),
    "columns": ("columns", Tuning()),
    "working sets": ("auto", Tuning(few_columns=0, first_columns=2)),
    "working sets, matrix": ("matrix", Tuning(few_columns=0, first_columns=2)),
    "working sets, columns": ("columns", Tuning(few_columns=0, first_columns=2)),
}


def wide(n=40, d=120, *, seed=0):
    """Return X of more features than samples, and y that few of them decide."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    return X, np.where(X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(n) > 0.1, 1.0, -1.0)


def posed(X, y, C=1.0, bias="free", s=1.0):
    return L1Problem.of(X, y, C, "squared_hinge", bias, s)


def solved(problem, tol=TOL, way=None, start=None, progress=None, limits=LIMITS):
    ways = WAYS[way] if way else ("auto", Tuning())
    solver = L1Newton(Features(problem.X), 0.99 * tol, limits, *ways)
    return solver.solve(problem, start, progress or Progress())


def assert_solves(problem, tol=TOL, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solved(problem, tol, **options)
        certificate = mm.certify(problem, found)
    assert certificate.holds(tol), f"{found.status}: {certificate}"
    assert found.status is Status.CONVERGED
    assert found.alpha.min() >= 0.0
    return found, certificate


def optimum(X, y, C, bias, s=1.0):
    """Return the least P as a quadratic program: w = p − q, p, q ≥ 0, and slacks."""
    pytest.importorskip("clarabel")
    n, d = X.shape
    C = np.broadcast_to(C, n)
    counts = C > 0.0
    X, y, C = X[counts], y[counts], C[counts]
    n = len(y)
    last = {"free": 0.0, "penalised": 1.0 / s, "none": 0.0}[bias]
    # p, q, the two parts of b, ξ
    c = np.concatenate([np.ones(2 * d), [last, last], np.zeros(n)])
    P = np.diag(np.concatenate([np.zeros(2 * d + 2), 2.0 * C]))
    ones = np.ones((n, 1)) if bias != "none" else np.zeros((n, 1))
    A = y[:, np.newaxis] * np.hstack([X, -X, ones, -ones])
    G = np.vstack([-np.hstack([A, np.eye(n)]), -np.eye(c.size)])
    if bias == "free":  # one part is enough, without a sign
        G[n + 2 * d] = G[n + 2 * d + 1] = 0.0
        P[2 * d + 1, 2 * d + 1] = 1.0
        G[:, 2 * d + 1] = 0.0
    h = np.concatenate([-np.ones(n), np.zeros(c.size)])
    program = qp.QP(P, c, G, h, np.empty((0, c.size)), np.empty(0))
    answer = qp.solve(program, "clarabel")
    assert answer.status is qp.QPStatus.SOLVED
    return answer.objective


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data(kind, name, bias):
    X, y = cloud()
    reference = solved(posed(X, y, weights(name), bias))
    found, _ = assert_solves(posed(KINDS[kind](X), y, weights(name), bias))
    np.testing.assert_allclose(found.w, reference.w, atol=1e-5)
    np.testing.assert_allclose(found.b, reference.b, atol=1e-5)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", [cloud, wide])
@pytest.mark.parametrize("name", ["equal", "some zero"])
def test_ways_against_a_quadratic_program(data, way, bias, name):
    X, y = data()
    C = weights(name, len(y))
    for rows in (X, sparse.csr_matrix(X)):
        _, certificate = assert_solves(posed(rows, y, C, bias, 3.0), way=way)
        best = optimum(X, y, C, bias, 3.0)
        assert certificate.primal == pytest.approx(best, rel=REFERENCE)
        assert certificate.dual <= best * (1.0 + REFERENCE)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("C", [0.02, 0.1, 0.5])
def test_orthogonal_design(way, C):
    """Features of their own rows: w_j x_j = (1 − 1/(4C k_j |x_j|))₊ for 2k_j rows of ±x_j."""
    sizes, counts = np.array([1.0, 2.0, -0.5, 0.25, 4.0]), np.array([6, 3, 9, 1, 2])
    owners = np.repeat(np.arange(5), 2 * counts)
    signs = np.tile([1.0, -1.0], counts.sum())
    X = np.zeros((owners.size, 5))
    X[np.arange(owners.size), owners] = signs * sizes[owners]
    expected = np.maximum(1.0 - 1.0 / (4.0 * C * counts * np.abs(sizes)), 0.0) / sizes
    for bias in BIASES:
        found, _ = assert_solves(posed(X, signs, C, bias), 1e-10, way=way)
        np.testing.assert_array_equal(found.w[0] != 0.0, expected != 0.0)
        np.testing.assert_allclose(found.w[0], expected, atol=1e-9)
        assert found.b[0] == pytest.approx(0.0, abs=1e-9)


def test_a_start_at_the_optimum_is_the_answer():
    X, y = wide()
    problem = posed(X, y)
    found = solved(problem)
    again = solved(problem, start=Plane(found.w[0], float(found.b[0])))
    assert again.n_iter <= 2
    np.testing.assert_allclose(again.w, found.w, atol=1e-7)


def test_a_start_that_is_worse_than_nothing_is_not_taken():
    X, y = wide()
    problem = posed(X, y)
    found = solved(problem, start=Plane(np.full(X.shape[1], 1e6), 0.0), limits=Limits(1))
    assert mm.certify(problem, found).primal <= 1.0 * len(y) + 1e-9


@pytest.mark.parametrize("limits", [Limits(1), Limits(3), Limits(None, 1e-9)])
def test_limits_give_what_there_is(limits):
    X, y = wide()
    problem = posed(X, y, 100.0)
    found = solved(problem, limits=limits)
    assert found.status in (Status.ITERATION_LIMIT, Status.TIME_LIMIT)
    certificate = mm.certify(problem, found)
    assert 0.0 <= certificate.dual <= certificate.primal
    assert certificate.relative_gap > TOL


def test_a_callback_sees_bounds_that_close_and_can_stop():
    X, y = wide()
    steps = []

    def listen(step):
        steps.append(step)
        return len(steps) == 4

    found = solved(posed(X, y, 100.0), progress=Progress([listen]))
    assert found.status is Status.STOPPED
    assert len(steps) == 4
    assert all(step.dual <= step.primal for step in steps)
    assert steps[-1].snapshot().alpha.shape == y.shape


def test_nothing_enters_below_the_least_cost():
    X, y = cloud()
    share = np.mean(y > 0)
    slopes = np.where(y > 0, 1.0 - share, -share) @ X
    least = 1.0 / (4.0 * np.abs(slopes).max())
    for C, n_used in ((0.999 * least, 0), (1.001 * least, 1)):
        found, _ = assert_solves(posed(X, y, C))
        assert np.count_nonzero(found.w) == n_used


@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_equal_columns_are_found(kind):
    X, y = wide()
    X = KINDS[kind](np.hstack([X, -X[:, 5:6], X[:, 7:8], np.zeros((40, 2))]))
    first, sign = equal_columns(Features(X).l1_state(posed(X, y)), 1e-12)
    assert first.tolist() == [*range(120), 5, 7, 122, 122]
    assert sign[120:122].tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("C", [1e3, 1e6])
def test_equal_features_and_large_costs_end_soon(C):
    """The first took hundreds of steps, the second all that were allowed."""
    X, y = wide(100, 300)
    once = solved(posed(X, y, C), 1e-6)
    several, _ = assert_solves(posed(np.hstack([X, -X, X[:, :50]]), y, C), 1e-6)
    assert max(once.n_iter, several.n_iter) <= 150
    assert np.isclose(np.abs(several.w).sum(), np.abs(once.w).sum(), rtol=1e-5)


def test_equal_features_share_one_weight():
    X, y = wide(100, 300)
    problem = posed(np.hstack([X, -X]), y, 1e3)
    found = solved(problem, way="working sets")
    halves = found.w[0].reshape(2, -1)
    assert not (halves[0] * halves[1]).any()
