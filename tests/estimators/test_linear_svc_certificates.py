"""The certificate of LinearSVC holds for every solver, loss, bias, cost and tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.cpu.features import Features
from maxmargin.problems import PrimalProblem
from maxmargin.solvers.primal.choice import suited
from tests.helpers.linear_svc import BIASES, LOSSES, SOLVERS, TOL, N, assert_certified, cloud, made
from tests.helpers.storage import DATA, thin


@pytest.mark.parametrize("kind", ["float64", "csr"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_certificate_holds(solver, loss, bias, kind):
    X, y = thin(N)
    given = DATA[kind](X)
    weights = np.where(np.arange(N) % 5 == 0, 0.0, 1.0 + (np.arange(N) % 3))
    for tol in (TOL, 1e-8):
        model = made(solver=solver, loss=loss, tol=tol, **BIASES[bias]).fit(given, y)
        assert_certified(model, given, y)
        model.fit(given, y, weights)
        assert_certified(model, given, y, weights)
        assert (weights[model.support_] > 0.0).all()
    if bias == "none":
        assert model.intercept_[0] == 0.0


@pytest.mark.parametrize("C", [1e-3, 100.0, 1e5])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_holds_at_every_cost(solver, loss, C):
    X, y = cloud()
    model = made(C=C, solver=solver, loss=loss).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_holds_at_every_tolerance(tol, loss):
    X, y = cloud()
    model = made(tol=tol, loss=loss).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_holds_for_every_pair_or_class(multi_class, loss, solver):
    X, y = cloud(n_classes=4)
    model = made(multi_class=multi_class, loss=loss, solver=solver).fit(X, y)
    planes = 6 if multi_class == "ovo" else 4
    assert model.coef_.shape == (planes, 4)
    assert model.dual_coef_.shape == (planes, model.support_.size)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    ("shape", "density", "solver"),
    [
        ((100_000, 20), 1.0, "newton"),
        ((100_000, 20), 0.2, "newton"),
        ((5000, 20_000), 0.002, "coordinate-descent"),
    ],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_chooses_by_shape_and_density(shape, density, solver, loss):
    if density == 1.0:
        X = np.zeros(shape)
    else:
        stored = int(shape[0] * shape[1] * density)
        where = np.random.default_rng(0).integers(0, shape, (stored, 2)).T
        X = sparse.csr_matrix((np.ones(stored), where), shape)
    problem = PrimalProblem.of(X, np.ones(shape[0]), 1.0, loss)
    assert suited(problem, Features(X)) == solver
    # Rows that come in blocks are not visited one by one, whatever their shape.
    blocks = PrimalProblem.of(mm.RowBlocks([X]), np.ones(shape[0]), 1.0, loss)
    assert suited(blocks, Features(blocks.X)) == "newton"
