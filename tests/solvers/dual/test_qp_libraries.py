"""Quadratic programs solved in a process of their own."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import qp
from maxmargin.progress import Limits
from maxmargin.solvers.dual.qp.libraries import Answer, Program, TimeUpError
from tests.helpers.fits import noisy


@pytest.mark.parametrize("library", ["piqp", "clarabel"])
def test_a_program_is_answered_alike_in_another_process(library):
    pytest.importorskip(library)
    X, y = noisy(50)
    program = qp.dual_qp(X, y, kernel="rbf", gamma=0.3)
    arrays = program.P, program.q, program.G, program.h, program.A, program.b
    asked = Program(*arrays, library, 1e-9, 60)
    here, there = asked.answer(), asked.answer_elsewhere()
    assert here.status == there.status == "solved"
    assert here.n_iter == there.n_iter
    for name in ("x", "y", "z"):
        assert np.array_equal(getattr(here, name), getattr(there, name))
    again = Answer.unpacked(here.packed())
    assert np.array_equal(again.x, here.x)
    assert again.status == here.status


def test_a_program_is_left_when_the_time_is_up():
    pytest.importorskip("piqp")
    X, y = noisy(1500)
    program = qp.dual_qp(X, y, kernel="rbf", gamma=0.3)
    answer = qp.solve(program, "piqp", limits=Limits(None, 0.2))
    assert answer.status is qp.QPStatus.TIME_LIMIT
    assert not answer.x.any()
    with pytest.raises(TimeUpError):
        Program(*vars(program).values(), "piqp", 1e-9, 60, 0.01).answer_elsewhere()


def test_a_failure_of_the_library_says_so():
    pytest.importorskip("piqp")
    X, y = noisy(5)
    program = qp.dual_qp(X, y)
    wrong = Program(program.P, program.q[:3], *list(vars(program).values())[2:], "piqp", 1e-9, 60)
    with pytest.raises(RuntimeError, match="piqp failed"):
        wrong.answer_elsewhere()
