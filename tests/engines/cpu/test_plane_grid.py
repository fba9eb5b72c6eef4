"""Sums of squared hinges of many planes, from one pass over the rows."""

import numpy as np
import pytest

from maxmargin.engines.cpu.features import Features
from maxmargin.engines.cpu.plane_grid import hinge_sums
from maxmargin.engines.planes import PlaneTasks


@pytest.mark.filterwarnings("error")
def test_groups_without_an_active_plane_have_no_curvature():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((50, 3)), rng.integers(0, 3, (2, 50)).astype(float)
    tasks, active = PlaneTasks(np.arange(50) % 3, 3, weights), np.array([2, 5])
    planes = rng.standard_normal((2, 4))
    found = hinge_sums(Features(X), tasks, planes, active, tasks.task_of[active])
    rows = np.column_stack([X, np.ones(50)])
    near = np.where(tasks.codes == 2, 1.0, -1.0) * (planes @ rows.T) < 1.0
    expected = np.einsum("kn,ni,nj->ij", 0.5 * weights * near, rows, rows)
    np.testing.assert_allclose(found.moments[2], expected)
    assert not found.moments[:2].any()
