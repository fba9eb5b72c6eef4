"""The Crammer–Singer machine and its certificate, compared with a QP and with LIBLINEAR."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import SVC, LinearSVC

from maxmargin import qp
from maxmargin.certificates import certify
from maxmargin.engines.cpu import joint_passes as passes
from maxmargin.problems.circulation import circulation
from maxmargin.progress import Limits, Recorder
from maxmargin.runtime.row_access import rows_of
from maxmargin.solution import Solution, Status
from maxmargin.solvers.joint import solver
from tests.helpers.joint_solvers import BIASES, FEW, WAYS, blobs, posed, solved, tuned


def optimum(problem):
    """P of the quadratic program in w, b and ξ, by a library."""
    counted = np.flatnonzero(problem.cost)
    X, labels = np.asarray(problem.X, dtype=float)[counted], problem.labels[counted]
    (n, d), c = X.shape, problem.n_classes
    size = c * (d + 1) + n
    P = np.zeros(size)
    P[: c * d] = 1.0
    P[c * d : c * (d + 1)] = problem.bias == "penalised"
    q = np.concatenate([np.zeros(c * (d + 1)), problem.cost[counted]])
    rows, h = [], []
    for i in range(n):
        for k in range(c):
            row = np.zeros(size)
            for m, sign in ((k, 1.0), (labels[i], -1.0)):
                row[m * d : (m + 1) * d] += sign * X[i]
                row[c * d + m] += sign * (problem.bias != "none")
            row[c * (d + 1) + i] = -1.0
            rows.append(row)
            h.append(-float(k != labels[i]))
    # Of a free bias only differences matter.
    A = np.zeros((1, size))
    A[0, c * d : c * (d + 1)] = 1.0
    program = qp.QP(np.diag(P), q, np.array(rows), np.array(h), A, np.zeros(1))
    return qp.solve(program, tol=1e-10).objective


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("way", WAYS)
def test_reaches_the_optimum_of_the_quadratic_program(way, bias):
    X, labels = blobs(40, 3, 3, seed=1)
    C = np.random.default_rng(2).uniform(0.1, 3.0, 40)
    C[::7] = 0.0
    problem = posed(X, labels, C, bias)
    solution = solved(problem, 1e-7, tuning=WAYS[way])
    certificate = certify(problem, solution)
    assert solution.status is Status.CONVERGED
    assert certificate.holds(1e-7)
    assert certificate.primal == pytest.approx(optimum(problem), rel=1e-6)
    assert not solution.alpha[::7].any()
    assert max(certificate.box, certificate.balance) < 1e-5


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("C", [1e-3, 1e3])
@pytest.mark.parametrize("data", ["scales", "wide", "apart"])
def test_converges_whatever_the_cost_and_the_features(data, C, bias):
    tuning = solver.Tuning()
    if data == "wide":
        X, labels = blobs(40, 400, 4, seed=3)
        X[:, :30] += 5.0 * X[:, 30:31]  # correlated
        tuning = tuned(0.01)
    else:
        X, labels = blobs(90, 6, 4, seed=4, spread=0.7 if data == "scales" else 8.0)
    if data == "scales":
        X = X * 10.0 ** np.arange(-3, 3) + 10.0
    problem = posed(X, labels, C, bias)
    solution = solved(problem, tuning=tuning)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution).holds(1.1e-6)  # and what rounding may add


def test_agrees_with_liblinear():
    X, labels = load_digits(return_X_y=True)
    X = X / 16.0
    problem = posed(X, labels, 0.1, "penalised")
    solution = solved(problem, 1e-4)
    certificate = certify(problem, solution)
    assert certificate.holds(1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = LinearSVC(multi_class="crammer_singer", C=0.1, tol=1e-3, random_state=0)
        reference.fit(X, labels)
    answer = replace(solution, w=reference.coef_, b=reference.intercept_)
    theirs = certify(problem, answer).primal
    assert certificate.primal <= theirs * (1.0 + 1e-4)
    assert certificate.dual <= theirs <= certificate.primal * (1.0 + 1e-2)
    assert np.mean(labels == (X @ solution.w.T + solution.b).argmax(axis=1)) > 0.97


def test_two_classes_are_the_support_vector_machine():
    """With w₂ = −w₁ = w/2 it is ¼‖w‖² + C Σξ: half of the machine of cost 2C."""
    X, labels = blobs(80, 4, 2, seed=5)
    problem = posed(X, labels, 0.5)
    solution = solved(problem, 1e-8)
    reference = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, labels)
    difference = solution.w[1] - solution.w[0]
    np.testing.assert_allclose(difference, reference.coef_[0], atol=1e-3)
    assert solution.b[1] - solution.b[0] == pytest.approx(reference.intercept_[0], abs=1e-3)
    np.testing.assert_allclose(solution.w.sum(axis=0), 0.0, atol=1e-9)
    hinge = np.maximum(1.0 - (2 * labels - 1) * reference.decision_function(X), 0.0)
    half = 0.25 * float(np.sum(reference.coef_**2)) + 0.5 * hinge.sum()
    assert certify(problem, solution).primal == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize("bias", BIASES)
def test_many_classes_some_without_samples(bias):
    X, labels = blobs(150, 5, 14, seed=6, spread=2.0)
    labels[labels == 3] = 4
    problem = posed(X, labels, 2.0, bias, n_classes=15)
    solution = solved(problem)
    assert solution.w.shape == (15, 5)
    assert certify(problem, solution).holds(1e-6)
    assert not np.isin((X @ solution.w.T + solution.b).argmax(axis=1), [3, 14]).any()


def test_separable_classes_have_no_slack_for_a_large_cost():
    X, labels = blobs(60, 20, 3, seed=7, spread=6.0)
    large, larger = (certify(p, solved(p)) for p in (posed(X, labels, C) for C in (1e4, 1e8)))
    assert large.holds(1e-6)
    # C = 1e8 times the rounding of 60 margins counts, about as much as the objective's third digit.
    assert larger.gap <= 4 * 60 * 1e8 * np.finfo(np.float64).eps
    assert large.dual <= larger.primal <= large.primal + larger.gap


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_storage_makes_no_difference(C, bias):
    X, labels = blobs(120, 30, 4, seed=8)
    X[np.abs(X) < 0.8] = 0.0
    X = X.astype(np.float32)
    primals = []
    for kind in (X.astype(np.float64), X, sparse.csr_matrix(X)):
        kept = kind.copy()
        problem = posed(kind, labels, C, bias)
        solution = solved(problem)
        certificate = certify(problem, solution)
        assert solution.status is Status.CONVERGED
        assert certificate.holds(1e-6)
        assert abs(kind - kept).max() == 0.0
        primals.append(certificate.primal)
    np.testing.assert_allclose(primals, primals[0], rtol=1e-6)


def test_weights_are_repetitions_and_nothing():
    X, labels = blobs(60, 3, 3, seed=9)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    weighted = posed(X, labels, weights * 0.5)
    again = np.repeat(np.arange(60), weights)
    repeated = posed(X[again], labels[again], 0.5)
    first, second = (certify(p, solved(p, 1e-7)) for p in (weighted, repeated))
    assert first.primal == pytest.approx(second.primal, rel=1e-6)


def test_zero_rows_and_constant_features():
    X, labels = blobs(50, 4, 3, seed=10)
    X[::4], X[:, 1] = 0.0, 3.0
    for bias in BIASES:
        problem = posed(X, labels, 1.0, bias)
        solution = solved(problem)
        assert certify(problem, solution).holds(1e-6)
        if bias == "free":
            assert np.abs(solution.w[:, 1]).max() < 1e-3  # the bias's business


def test_the_same_seed_gives_the_same_answer():
    X, labels = blobs(100, 5, 4, seed=11)
    problem = posed(X, labels)
    once, twice, other = (solved(problem, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once.w, twice.w)
    np.testing.assert_array_equal(once.alpha, twice.alpha)
    assert (once.alpha != other.alpha).any()


@pytest.mark.parametrize("bias", BIASES)
def test_a_start_is_used(bias):
    X, labels = blobs(200, 8, 4, seed=12)
    problem = posed(X, labels, 1.0, bias)
    cold = solved(problem)
    start = cold.alpha.copy()
    warm = solved(problem, start=start)
    np.testing.assert_array_equal(start, cold.alpha)
    assert certify(problem, warm).holds(1e-6)
    assert warm.n_iter < cold.n_iter
    nonsense = solved(problem, start=np.random.default_rng(0).standard_normal(start.shape) * 1e3)
    assert certify(problem, nonsense).holds(1e-6)


@pytest.mark.parametrize("steps", [0.0, 1e6], ids=["newton", "sequential"])
@pytest.mark.parametrize("bias", BIASES)
def test_limits(steps, bias):
    tuning = tuned(steps)
    X, labels = blobs(100, 5, 3, seed=13)
    problem = posed(X, labels, 5.0, bias)
    short = solved(problem, 1e-9, limits=Limits(iterations=2), tuning=tuning)
    assert short.status is Status.ITERATION_LIMIT
    assert short.n_iter == 2
    assert len(short.trace) == 2
    certificate = certify(problem, short)
    assert certificate.dual <= optimum(problem) * (1.0 + 1e-8) <= certificate.primal * (1.0 + 2e-8)
    late = solved(problem, 1e-9, limits=Limits(seconds=0.0), tuning=tuning)
    assert late.status is Status.TIME_LIMIT
    assert late.n_iter <= 1
    assert late.alpha.shape == (100, 3)


@pytest.mark.parametrize("steps", [0.0, 1e6], ids=["newton", "sequential"])
def test_callbacks_watch_and_stop(steps):
    tuning = tuned(steps)
    X, labels = blobs(100, 5, 3, seed=14)
    problem = posed(X, labels, 5.0)
    recorder = Recorder()
    watchers = [recorder, lambda step: step.iteration == 3]
    stopped = solved(problem, 1e-9, callbacks=watchers, tuning=tuning)
    assert stopped.status is Status.STOPPED
    assert stopped.n_iter == len(recorder.steps) == 3
    for step in recorder.steps:
        w, b = step.planes()
        seen = Solution(w, b, Status.STOPPED, alpha=step.alpha())
        certificate = certify(problem, seen)
        assert certificate.gap > 0.0
        assert certificate.box < 1e-12
        assert np.isfinite([step.objective, step.violation]).all()
    watched = Recorder()
    done = solved(problem, 1e-6, callbacks=[watched], tuning=tuning)
    assert done.status is Status.CONVERGED
    assert watched.steps[-1].violation < watched.steps[0].violation
    assert -watched.steps[-1].objective == pytest.approx(optimum(problem), rel=1e-3)


@pytest.mark.parametrize("bias", BIASES)
def test_many_rows_begin_with_samples_of_them(bias):
    X, labels = blobs(900, 2, 3, seed=19)
    labels[labels == 2] = 1
    labels[:30] = 2  # a rare class
    C = np.where(np.arange(900) % 10, 1.0, 0.0)
    problem = posed(X, labels, C, bias)
    solution = solved(problem, 1e-5, tuning=FEW)
    certificate = certify(problem, solution)
    assert solution.status is Status.CONVERGED
    assert certificate.holds(1e-5)
    assert certificate.primal == pytest.approx(certify(problem, solved(problem)).primal, rel=2e-5)


def test_a_stop_among_samples_leaves_a_plane():
    X, labels = blobs(900, 2, 3, seed=20)
    problem = posed(X, labels)
    recorder = Recorder()
    stopped = solved(problem, callbacks=[recorder, lambda step: step.iteration == 2], tuning=FEW)
    assert stopped.status is Status.STOPPED
    assert stopped.w.any()
    assert (stopped.alpha.shape, stopped.alpha.any()) == ((900, 3), False)
    assert recorder.steps[0].alpha() is None
    assert certify(problem, stopped).primal < 900.0


@pytest.mark.parametrize("bias", BIASES)
def test_no_alpha_proves_too_much(bias):
    X, labels = blobs(30, 3, 4, seed=15)
    C = np.random.default_rng(0).uniform(0.0, 2.0, 30)
    problem = posed(X, labels, C, bias)
    best, solution = optimum(problem), solved(problem, 1e-8)
    rng = np.random.default_rng(1)
    for size in (1e-9, 1e-6, 1e-3, 0.1, 1.0, 100.0):
        wrong = solution.alpha + size * rng.standard_normal(solution.alpha.shape)
        certificate = certify(problem, replace(solution, alpha=wrong))
        assert certificate.dual <= best * (1.0 + 1e-7)
        assert certificate.box > 0.1 * size / max(1.0, size)
        assert certificate.gap >= -1e-7 * best
    one_way = np.where(np.arange(4) == labels[:, np.newaxis], 1.0, -1.0 / 3.0) * C[:, np.newaxis]
    one_way[labels != 0] = 0.0  # out of class 0, and nothing into it
    certificate = certify(problem, replace(solution, alpha=one_way))
    assert certificate.dual <= best
    assert (certificate.dual == 0.0) == (bias == "free")
    assert (certificate.balance > 0.0) == (bias == "free")
    nothing = certify(problem, replace(solution, alpha=np.full_like(wrong, np.nan)))
    assert not nothing.holds(1.0)


def test_certificate_measures_w_and_b_themselves():
    X, labels = blobs(30, 3, 3, seed=16)
    problem = posed(X, labels)
    solution = solved(problem)
    certificate = certify(problem, solution)
    assert certificate.holds(1e-6)
    assert certificate.violation < 1e-3
    assert str(certificate).startswith("optimal to a relative gap of")
    elsewhere = certify(problem, replace(solution, w=solution.w * 1.1))
    assert not elsewhere.holds(1e-4)
    assert elsewhere.primal > certificate.primal
    assert elsewhere.dual == certificate.dual
    shifted = certify(problem, replace(solution, b=solution.b + 7.0))  # of all classes alike
    assert shifted.primal == pytest.approx(certificate.primal, rel=1e-12)


def test_certificate_of_nothing_is_the_sum_of_costs():
    X, labels = load_iris(return_X_y=True)
    problem = posed(X, labels, 0.5)
    nothing = Solution(np.zeros((3, 4)), np.zeros(3), Status.STOPPED, alpha=np.zeros((150, 3)))
    certificate = certify(problem, nothing)
    assert (certificate.primal, certificate.dual) == (75.0, 0.0)
    assert certificate.relative_gap == pytest.approx(1.0, rel=1e-12)


squares = st.integers(1, 6).flatmap(
    lambda c: arrays.arrays(float, (c, c), elements=st.sampled_from([0.0, 1e-12, 0.3, 1.0, 7.0]))
)


@settings(max_examples=200, deadline=None)
@given(squares)
def test_circulation_is_balanced_and_below(F):
    np.fill_diagonal(F, 0.0)
    inside = circulation(F)
    assert (inside >= 0.0).all()
    assert (inside <= F).all()
    np.testing.assert_allclose(inside.sum(axis=0), inside.sum(axis=1), atol=1e-12 * F.sum())
    balanced = F + F.T
    np.testing.assert_array_equal(circulation(balanced), balanced)


def projected(v):
    """Return the projection onto the simplex, by sorting."""
    u = np.sort(v)[::-1]
    sums = (np.cumsum(u) - 1.0) / np.arange(1, v.size + 1)
    return np.maximum(v - sums[np.flatnonzero(u > sums)[-1]], 0.0)


@pytest.mark.parametrize("function", ["compiled", "python"])
def test_threshold_is_that_of_the_projection(function):
    kernel = passes.simplex_threshold
    kernel = numba.njit(kernel) if function == "compiled" else kernel
    rng = np.random.default_rng(0)
    for _ in range(50):
        v, own = rng.standard_normal(6) * rng.choice([0.1, 1.0, 10.0]), int(rng.integers(6))
        without = v.copy()
        without[own] -= 1.0
        theta = kernel(without, 6, own, np.empty(6, dtype=np.int64))
        np.testing.assert_allclose(np.maximum(v - theta, 0.0), projected(v), atol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_compiled_pass_equals_its_python(storage):
    X, labels = blobs(30, 6, 5, seed=17)
    X[np.abs(X) < 0.5] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    rng = np.random.default_rng(0)
    lengths = np.sum(X**2, axis=1)
    rows = rows_of(X if storage == "dense" else sparse.csr_matrix(X, dtype=np.float32))

    def run(kernel):
        p = np.eye(5)[labels]
        w = np.zeros((5, 6), order="C" if storage == "dense" else "F")
        b, balance = np.zeros(5), np.zeros(5)
        classes = np.tile(np.arange(5, dtype=np.int32), (30, 1))
        count = np.full(30, 5, dtype=np.int32)
        told = [
            kernel(
                rows, np.arange(30), labels, np.full(30, 0.7), 0.7 * (lengths + 0.2), p, w, b, 0.2,
                balance, order, classes, count, far,
            )
            for order, far in zip(orders, (np.inf, 1.0, 0.3), strict=True)
        ]  # fmt: skip
        alpha = 0.7 * (np.eye(5)[labels] - p)
        np.testing.assert_allclose(w, alpha.T @ X, atol=1e-12)
        np.testing.assert_allclose(balance, alpha.sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(sum(each[3] for each in told), 0.7 * np.sum(1 - p[own]))
        return np.array(told), p, w, b, count

    own = np.arange(30), labels
    orders = [rng.permutation(30) for _ in range(3)]
    seen, expected = (
        run(kernel) for kernel in (passes.sequential_pass, passes.sequential_pass.py_func)
    )
    for here, there in zip(seen, expected, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-12)
    assert seen[-1].min() < 5  # some classes were left out


def plain(region):
    """Return the Python of a region, for all parts in turn."""

    def run(n_parts, *arguments):
        for part in range(n_parts):
            region.kernel.py_func(part, *arguments)

    return run


def test_compiled_looks_equal_their_python():
    _, labels = blobs(40, 3, 4, seed=18)
    rng = np.random.default_rng(0)
    values, along = rng.standard_normal((2, 40, 4))
    cost, center = rng.uniform(0.5, 2.0, 40), rng.dirichlet(np.ones(4), 40)
    found = []
    for run in (passes.smoothed_maxima, plain(passes.smoothed_maxima)):
        p, sums = np.empty((40, 4)), np.zeros((3, 2))
        run(3, 16, values, along, 0.3, labels, cost, center, 0.5, p, sums)
        found.append((*sums.sum(axis=0), p))
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-15)
    s = values + 0.3 * along + 1.0 - np.eye(4)[labels]
    expected = np.array([projected(v) for v in center + s / 0.5])
    np.testing.assert_allclose(found[0][2], expected, atol=1e-12)
    surveyed = []
    center[::3] = np.eye(4)[s.argmax(axis=1)][::3]
    for run in (passes.survey, plain(passes.survey)):
        distance, lines = np.empty(40), np.zeros((3, 3))
        run(3, 16, values, 1.0, labels, cost, center, distance, lines)
        surveyed.append((lines, distance))
    for here, there in zip(*surveyed, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-12)
