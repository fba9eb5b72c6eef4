"""Every fit of SVC and NuSVC ends, with a proof or a warning."""

from __future__ import annotations

from itertools import repeat

import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.solution import Status
from tests.helpers.clocks import set_clock
from tests.helpers.fits import TOL, assert_proved, noisy, p_of_nothing, quiet_fit


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rbf_of_any_cost_ends_with_its_proof(C, loss):
    X, y = noisy(300)
    assert_proved(mm.SVC(C=C, loss=loss).fit(X, y))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_large_kernel_values_end(loss):
    X, y = noisy(600)
    model = mm.SVC(kernel="poly", gamma=1.0, coef0=1.0, loss=loss)
    model, warned = quiet_fit(model, 10.0 * X, y)
    # What rounding of such values can do may be more than tol; what is known of it is not.
    certificate = model.certificate_
    assert certificate.violation <= TOL
    assert certificate.relative_gap <= 2.0 * TOL
    assert certificate.holds(TOL) or warned


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("nu", [0.05, 0.5])
@pytest.mark.filterwarnings("ignore:.*positive semidefinite")
def test_nu_machines_end_with_their_proof(kernel, nu):
    X, y = noisy(300)
    assert_proved(mm.NuSVC(nu=nu, kernel=kernel).fit(X, y))


@pytest.mark.parametrize("coef0", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.filterwarnings("ignore:.*positive semidefinite")
def test_indefinite_kernels_end(coef0, C):
    X, y = noisy(300)
    model = mm.SVC(C=C, kernel="sigmoid", gamma=1.0, coef0=coef0)
    model, warned = quiet_fit(model, X, y)
    assert warned or model.certificate_.holds(TOL)


def test_columns_of_far_apart_scales_end_with_a_warning():
    X, y = noisy(40)
    X = X * [1e-8, 1.0, 1e8]
    for solver in ("auto", "active-set", "smo"):
        model, warned = quiet_fit(mm.SVC(kernel="linear", solver=solver), X, y)
        assert warned or model.certificate_.holds(TOL)
        assert model.certificate_.primal <= p_of_nothing(y, 1.0) * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["smo", "decomposition", "coordinate-ascent"])
def test_named_solvers_stop_when_progress_stalls(solver):
    X, y = noisy(300)
    model = mm.SVC(kernel="linear", solver=solver, fit_intercept=solver != "coordinate-ascent",
                   time_limit=600.0)  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="use solver='auto'"):
        model.fit(1e4 * X, y)
    assert model.status_ is Status.PATIENCE


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_qp_answers_are_proved(scale, fit_intercept, loss, kernel):
    pytest.importorskip("piqp")
    for seed in range(3):
        X, y = noisy(60, 2, seed)
        model = mm.SVC(kernel=kernel, loss=loss, fit_intercept=fit_intercept, solver="qp")
        assert_proved(model.fit(scale * X, y))


@pytest.mark.parametrize("make", [mm.SVC, mm.NuSVC, mm.LinearSVC])
def test_the_clock_counts_from_the_beginning_of_the_fit(make, monkeypatch):
    """All of the time passes before the solver starts."""
    X, y = noisy(60, 3)
    set_clock(monkeypatch, repeat(100.0))
    model, warned = quiet_fit(make(time_limit=50.0), X, y)
    assert model.status_ is Status.TIME_LIMIT
    assert warned
