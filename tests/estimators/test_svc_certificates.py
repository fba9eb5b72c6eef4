"""The certificate of SVC and NuSVC holds for every solver, kernel and loss."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from tests.helpers.svc import KERNELS, LOSSES, SECONDS, TOL, assert_certified, cloud, rows_for


@pytest.mark.parametrize("solver", ["auto", "decomposition", "smo", "active-set", "qp"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_certificate_holds(solver, loss, kernel):
    if solver == "qp":
        pytest.importorskip("piqp")
    X, y = cloud()
    X = rows_for(kernel, X)
    model = LOSSES[loss](solver=solver, time_limit=SECONDS, **KERNELS[kernel]).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("solver", ["auto", "decomposition", "coordinate-ascent", "active-set"])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_certificate_holds_without_a_bias(solver, loss, kernel):
    X, y = cloud()
    X = rows_for(kernel, X)
    model = LOSSES[loss](
        solver=solver, fit_intercept=False, time_limit=SECONDS, **KERNELS[kernel]
    ).fit(X, y)
    assert_certified(model, X, y)
    assert model.intercept_ == 0.0


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_holds_at_every_tolerance(tol, loss):
    X, y = cloud(500)
    model = LOSSES[loss](tol=tol, time_limit=SECONDS).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed", "callable"])
def test_certificate_holds_for_every_pair_or_class(multi_class, loss, kernel):
    X, y = cloud(n_classes=4)
    X = rows_for(kernel, X)
    model = LOSSES[loss](multi_class=multi_class, **KERNELS[kernel])
    if loss == "nu":
        model.set_params(nu=0.2)
    model.fit(X, y)
    assert len(model.certificates_) == (6 if multi_class == "ovo" else 4)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    ("solver", "fit_intercept"), [("coordinate-ascent", True), ("smo", False)]
)  # fmt: skip
def test_solvers_that_do_not_fit_the_bias_are_refused(solver, fit_intercept):
    with pytest.raises(ValueError, match=f"solver='{solver}'.*fit_intercept"):
        mm.SVC(solver=solver, fit_intercept=fit_intercept).fit(*cloud(20))


@pytest.mark.parametrize("solver", ["smo", "qp"])
def test_solvers_of_the_whole_matrix_refuse_what_does_not_fit(solver):
    with pytest.raises(ValueError, match=r"does not fit.*decomposition"):
        mm.SVC(solver=solver, cache_size=0.1).fit(*cloud())


@pytest.mark.parametrize("largest", [0, 1])
def test_scores_without_any_rounding(largest):
    """Every α is C, a power of 2, and every product a whole number."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-largest, largest + 1, (4500, 3)).astype(float), np.arange(4500) % 2
    model = mm.SVC(C=2.0**-10, kernel="linear").fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    "C",
    [1e3, 1e5],
)
def test_the_gap_is_twice_tol_at_most(C):
    """As documented; a slack of 1e-6 counts where its cost is 1e5."""
    X, y = cloud(400, gap=1.5)
    model = mm.SVC(C=C, time_limit=SECONDS).fit(X, y)
    assert model.certificate_.holds(TOL)
    assert model.certificate_.relative_gap <= 2 * TOL


@pytest.mark.parametrize(
    ("n", "kernel"), [(400, "rbf"), (400, "poly"), (400, "linear"), (1000, "rbf")]
)
def test_large_costs_of_float32_rows(n, kernel):
    X, y = cloud(n)
    X = X.astype(np.float32)
    model = mm.SVC(C=1e4, time_limit=SECONDS, **KERNELS[kernel]).fit(X, y)
    assert_certified(model, X, y)
