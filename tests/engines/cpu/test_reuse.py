"""An engine outlives a fit: folds, paths and pairs of classes share kernel values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.registry import engine_for
from maxmargin.kernels import RBF, Custom, Precomputed
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solvers.dual.decomposition import Decomposition

KERNEL = RBF(gamma=0.05)


def cloud(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


def posed(X, y, rows, C):
    n = rows.size
    return DualProblem.classification(
        KERNEL, X, y[rows], np.full(n, float(C)), np.zeros(n), index=rows
    )


def solve(engine, problem, tol, alpha=None):
    precision = engine.precision(problem.kernel, tol)
    gram, exact = engine.gram(problem.kernel, problem.index, precision), None
    if precision == "fast":
        exact = engine.gram(problem.kernel, problem.index, keep=False)
    return Decomposition(gram, exact, tol, Limits()).solve(problem, alpha, Progress())


@pytest.mark.parametrize(("tol", "n_costs"), [(1e-3, 10), (1e-6, 3)], ids=["float32", "float64"])
def test_folds_and_a_path_compute_each_value_at_most_once(tol, n_costs):
    X, y = cloud(5000, 20)
    engine = engine_for(X, reuse=True, budget=2.0**30)
    folds = np.arange(5000) % 5
    for fold in range(5):
        rows, alpha, last = np.flatnonzero(folds != fold), None, None
        for C in np.geomspace(0.01, 10.0, n_costs):
            alpha = None if alpha is None else alpha * (C / last)
            problem = posed(X, y, rows, C)
            solution = solve(engine, problem, tol, alpha)
            alpha, last = solution.alpha, C
        assert mm.certify(problem, solution).holds(tol)
    assert engine.n_computed
    for n_computed in engine.n_computed.values():
        assert 0 < n_computed <= 5000**2


def test_a_store_gives_the_values_that_are_computed_without_it():
    X, _ = cloud(700, 6)
    rows = np.random.default_rng(1).permutation(700)[:300]
    part = np.arange(0, 300, 7)
    v = np.random.default_rng(2).standard_normal(part.size)
    for kind in (np.asarray, sparse.csr_array):
        for precision, near in (("fast", 2e-6), ("exact", 1e-14)):
            plain, stored = (
                engine_for(kind(X), reuse=reuse).gram(KERNEL, rows, precision)
                for reuse in (False, True)
            )
            np.testing.assert_allclose(stored.block(part), plain.block(part), atol=near)
            np.testing.assert_allclose(
                stored.block(part, part[:5]), plain.block(part, part[:5]), atol=near
            )
            errors = [np.zeros(300), np.zeros(300)]
            products = [
                gram.dot(part, v, error=error)
                for gram, error in zip((plain, stored), errors, strict=True)
            ]
            assert (np.abs(products[0] - products[1]) <= errors[0] + errors[1]).all()
            np.testing.assert_allclose(
                stored.restrict(part).whole(), plain.restrict(part).whole(), atol=near
            )


def test_views_share_the_store():
    X, _ = cloud(400, 5)
    engine = engine_for(X, reuse=True)
    gram = engine.gram(KERNEL)
    gram.block(np.arange(30), np.arange(400))
    before = dict(engine.n_computed)
    view = gram.restrict(np.arange(20, 40))
    view.block(np.arange(10), np.arange(20))
    view.dot(np.arange(10), np.ones(10))
    engine.gram(KERNEL, np.arange(5, 25)).whole()
    assert engine.n_computed == before
    view.whole()
    assert sum(engine.n_computed.values()) == sum(before.values()) + 10 * 400


def test_what_does_not_fit_is_not_kept():
    X, _ = cloud(400, 5)
    engine = engine_for(X, reuse=True, budget=1000.0)
    engine.gram(KERNEL, np.arange(100)).block(np.arange(10))
    assert not engine.n_computed


def test_other_kernels():
    X, _ = cloud(300, 4)
    K = KERNEL(X)
    rows = np.arange(0, 300, 3)
    given = engine_for(K, reuse=True).gram(Precomputed(), rows)
    np.testing.assert_array_equal(given.block(np.arange(100)), K[np.ix_(rows, rows)])
    calls = []

    def function(A, B):
        calls.append(len(A) * len(B))
        return KERNEL(A, B)

    engine = engine_for(X, reuse=True)
    for _ in range(3):
        whole = engine.gram(Custom(function), rows).whole()
    np.testing.assert_allclose(whole, K[np.ix_(rows, rows)], atol=1e-13)
    assert sum(calls) <= 100 * 300 + 64 * 300  # and the diagonal, in blocks
