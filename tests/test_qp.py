"""Textbook matrices of the dual, and quadratic programs solved by a library."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import qp
from maxmargin.solution import Status
from maxmargin.solvers.dual.qp import program as qp_program
from maxmargin.solvers.dual.qp import solver as qp_solver
from tests.helpers.dual_solvers import METHODS, SIX_ALPHA, answer, two_samples, weighted_hinge


def test_textbook_matrices_of_the_six_points():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    hard = qp.dual_qp(X, y, C=np.inf)
    np.testing.assert_array_equal(hard.P[0], [37, 61, 70, -17, -43, -34])
    np.testing.assert_array_equal(hard.q, -np.ones(6))
    np.testing.assert_array_equal(hard.G, -np.eye(6))
    np.testing.assert_array_equal(hard.h, np.zeros(6))
    np.testing.assert_array_equal(hard.A, [[1, 1, 1, -1, -1, -1]])
    np.testing.assert_array_equal(hard.b, [0])
    soft = qp.dual_qp(X, y, C=3.0)
    np.testing.assert_array_equal(soft.G, np.vstack([np.eye(6), -np.eye(6)]))
    np.testing.assert_array_equal(soft.h, [3.0] * 6 + [0.0] * 6)
    squared = qp.dual_qp(X, y, C=500.0, loss="squared_hinge")
    np.testing.assert_allclose(squared.P - hard.P, 0.001 * np.eye(6), atol=1e-12)
    np.testing.assert_array_equal(squared.G, hard.G)
    nu = qp.dual_qp(X, y, nu=0.5)
    np.testing.assert_array_equal(nu.q, np.zeros(6))
    np.testing.assert_array_equal(nu.G[-1], -np.ones(6))
    assert nu.h[-1] == -0.5


def test_second_class_in_sorted_order_is_positive():
    program = qp.dual_qp([[0.0], [1.0]], ["pear", "apple"])
    np.testing.assert_array_equal(program.A, [[1, -1]])


@pytest.mark.parametrize("library", ["auto", "piqp", "clarabel"])
def test_worked_examples_as_programs(library):
    pytest.importorskip("piqp" if library == "auto" else library)
    X, y = mm.datasets.load_six_points(return_X_y=True)
    answer = qp.solve(qp.dual_qp(X, y, C=np.inf), library)
    assert answer.status is qp.QPStatus.SOLVED
    np.testing.assert_allclose(answer.x, SIX_ALPHA, atol=1e-8)
    assert answer.equality[0] == pytest.approx(2 / 15, abs=1e-7)  # b
    assert answer.inequality.min() >= 0
    assert max(answer.primal_residual, answer.dual_residual, answer.gap) < 1e-8
    assert answer.objective == pytest.approx(-17 / 225, abs=1e-9)
    # With 0.001·I added to H, as some notes do for stability.
    ridged = qp.solve(qp.dual_qp(X, y, C=500.0, loss="squared_hinge"), library)
    np.testing.assert_allclose(
        ridged.x, [0.035554, 0, 0.039998, 0, 0.075551, 0], atol=5e-7
    )  # fmt: skip


@pytest.mark.parametrize("library", ["piqp", "clarabel"])
def test_general_programs(library):
    pytest.importorskip(library)
    none = np.empty((0, 2)), np.empty(0)
    # Several bounds of one variable, scaled, one at ∞, and a row of two variables.
    G = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, -4.0], [0.0, 1.0], [1.0, 1.0]])
    h = np.array([1.0, 3.0, 4.0, np.inf, 0.2])
    program = qp.QP(np.eye(2), np.array([-3.0, 2.0]), G, h, *none)
    solved = qp.solve(program, library)
    assert solved.status is qp.QPStatus.SOLVED
    np.testing.assert_allclose(solved.x, [0.5, -1.0], atol=1e-7)
    stationary = program.P @ solved.x + program.q + G.T @ solved.inequality
    np.testing.assert_allclose(stationary, 0.0, atol=1e-7)
    np.testing.assert_allclose(solved.inequality[[1, 3, 4]], 0.0, atol=1e-7)
    unbounded = qp.solve(
        qp.QP(np.diag([1.0, 0.0]), np.array([0.0, -1.0]), -np.eye(2), np.zeros(2), *none), library
    )
    assert unbounded.status is qp.QPStatus.UNBOUNDED
    np.testing.assert_allclose(unbounded.x, [0.0, 1.0], atol=1e-6)
    crossed = qp.QP(np.eye(1), np.zeros(1), np.array([[1.0], [-1.0]]), -np.ones(2), *(
        np.empty((0, 1)), np.empty(0)
    ))  # fmt: skip
    assert qp.solve(crossed, library).status is qp.QPStatus.INFEASIBLE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C=0.0 is not positive"),
        ({"C": np.nan}, "not positive"),
        ({"C": [1.0, 2.0]}, "C has shape"),
        ({"loss": "huber"}, "loss must be .* got 'huber'"),
        ({"nu": 0.9}, "nu=0.9 is infeasible"),
        ({"nu": 0.2, "C": 2.0}, "nu=0.2 replaces C"),
        ({"kernel": "precomputed"}, "must be square"),
        ({"y": [1, 1, 1, 1]}, "2 classes, y holds 1"),
        ({"y": [1, 2, 3, 1]}, "2 classes, y holds 3"),
        ({"y": [1, 2]}, "inconsistent"),
        ({"X": [[np.nan, 0.0]] * 4}, "NaN"),
    ],
)
def test_bad_input_is_named(options, message):
    given = {"X": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], "y": [0, 1, 1, 1], **options}
    with pytest.raises(ValueError, match=message):
        qp.dual_qp(given.pop("X"), given.pop("y"), **given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"P": np.ones((2, 3))}, "P has shape"),
        ({"P": np.array([[1.0, 1.0], [0.0, 1.0]])}, "not symmetric"),
        ({"q": np.array([np.nan, 0.0])}, "q holds NaN"),
        ({"h": np.array([np.nan, 0.0])}, "h holds NaN"),
        ({"A": np.ones((2, 2))}, "A has shape"),
    ],
)
def test_bad_programs_are_named(change, message):
    program = qp.QP(np.eye(2), np.zeros(2), -np.eye(2), np.zeros(2), np.ones((1, 2)), np.ones(1))
    with pytest.raises(ValueError, match=message):
        qp.solve(replace(program, **change))


def test_unknown_and_missing_libraries(monkeypatch):
    program = qp.dual_qp([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"solver must be .* got 'cplex'"):
        qp.solve(program, "cplex")
    monkeypatch.setattr(qp_program, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[qp\]"'):
        qp.solve(program)


def test_too_large_a_program_is_refused(monkeypatch):
    monkeypatch.setattr(qp_solver, "free_memory", lambda: 1000)
    problem = two_samples()
    assert answer(METHODS[1], problem).status is Status.CONVERGED
    with pytest.raises(ValueError, match='solver="decomposition"'):
        answer(METHODS[1], weighted_hinge())
