"""Factored systems of linear equations."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.solvers.linear_systems import Factored
from tests.helpers.primal_solvers import ROUNDING


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_factored_matrices_solve(scale):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((6, 6)) * np.array([1.0, scale, 1.0, 1.0, scale, 1.0])
    H = B.T @ B + np.diag(np.diag(B.T @ B)) * 1e-3
    before = H.copy()
    x = rng.standard_normal(6)
    found = Factored(H).solve(x)
    assert (np.abs(H @ found - x) <= ROUNDING * (np.abs(H) @ np.abs(found))).all()
    np.testing.assert_array_equal(H, before)


def test_factored_matrices_of_low_rank_end():
    b = np.array([1.0, 2.0, 3.0, 0.0])
    x = Factored(np.outer(b, b)).solve(b)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(np.outer(b, b) @ x, b, rtol=1e-2)
