"""A fit that is cut short publishes the best model that it has seen."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from tests.helpers.fits import noisy, p_of_nothing, quiet_fit


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("max_iter", [1, 3, 30])
@pytest.mark.parametrize("solver", ["auto", "smo", "decomposition", "active-set"])
def test_an_unfinished_kernel_machine_is_no_worse_than_nothing(loss, C, max_iter, solver):
    X, y = noisy(200, 5)
    nothing = p_of_nothing(y, C, loss) * (1 + 1e-9)
    for kernel in ("linear", "rbf", "poly"):
        model = mm.SVC(C=C, loss=loss, solver=solver, kernel=kernel, max_iter=max_iter)
        model, _ = quiet_fit(model, 10.0 * X, y)
        assert model.certificate_.primal <= nothing
        trace = model.trace_
        known = np.isfinite(trace.primal) & np.isfinite(trace.dual)
        assert np.all(trace.dual[known] <= trace.primal[known] * (1 + 1e-9))


@pytest.mark.parametrize("solver", ["newton", "interior-point", "coordinate-descent"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_an_unfinished_linear_machine_is_no_worse_than_nothing(solver, loss):
    X, y = noisy(200, 5)
    for C in (1.0, 1e4):
        for max_iter in (1, 3):
            model = mm.LinearSVC(C=C, loss=loss, solver=solver, max_iter=max_iter)
            model, _ = quiet_fit(model, 1e3 * X, y)
            assert model.certificate_.primal <= p_of_nothing(y, C, loss) * (1 + 1e-9)


def test_an_unfinished_joint_machine_is_no_worse_than_nothing():
    X, _ = noisy(400, 5)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for C in (1.0, 1e3):
        for scale in (1.0, 1e3):
            model = mm.LinearSVC(C=C, multi_class="crammer_singer", max_iter=1)
            model, _ = quiet_fit(model, scale * X, y)
            assert model.certificate_.primal <= C * 400 * (1 + 1e-9)
