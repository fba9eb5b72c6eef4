"""Every engine does what `maxmargin.engines.l1` says, as NumPy computes it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin.engines.registry import engine_for
from maxmargin.problems import L1Problem

N, D = 80, 7
KINDS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "csr": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_matrix(X, dtype=np.float32),
}
COSTS = {"equal": 0.7, "unequal": np.linspace(0.0, 2.0, N)}
SOME = np.array([0, 2, 3, 6])


def near(found, expected, rtol=1e-9):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-10)


class Held:
    """A state at a plane, and what it has by the formulas of the contract."""

    def __init__(self, engine, kind, costs):
        rng = np.random.default_rng(0)
        self.X = np.round(8 * rng.standard_normal((N, D))) / 8 * (rng.random((N, D)) < 0.7)
        self.y = np.where(self.X[:, 0] + rng.standard_normal(N) > 0.2, 1.0, -1.0)
        self.c = np.broadcast_to(2.0 * np.asarray(COSTS[costs]), N)
        problem = L1Problem.of(KINDS[kind](self.X), self.y, COSTS[costs], "squared_hinge")
        self.state = engine_for(problem.X, engine).features().l1_state(problem)
        self.w, self.b = rng.standard_normal(D), 0.25
        self.state.place(self.w, self.b)
        self.scores = self.X @ self.w + self.b

    @property
    def slack(self):
        return np.maximum(1.0 - self.y * self.scores, 0.0)

    @property
    def signed(self):
        return self.c * self.slack * self.y


ENGINES = ("cpu",)  # on a device X goes to the host for this machine


@pytest.fixture(params=[(e, k, c) for e in ENGINES for k in KINDS for c in COSTS], ids="-".join)
def held(request):
    return Held(*request.param)


def test_sums(held):
    sums = held.state.measure()
    near(sums.loss, 0.5 * np.sum(held.c * held.slack**2))
    near(sums.total, np.abs(held.signed).sum())
    near(sums.balance, held.signed.sum())
    assert sums.errors == np.count_nonzero(held.slack > 1.0)
    assert sums.n_inside == np.count_nonzero(held.signed)
    near(held.state.correlations(), held.X.T @ held.signed)
    weights = np.random.default_rng(3).standard_normal(held.X.shape[0])
    near(held.state.random_sums(3), held.X.T @ weights)


def test_the_bias_settles_where_the_balance_is_0(held):
    held.scores = held.scores + held.state.settle()
    assert abs(held.signed.sum()) <= 1e-10 * np.abs(held.signed).sum()
    near(held.state.measure().total, np.abs(held.signed).sum())


def test_steps(held):
    step = np.linspace(-1.0, 1.0, D)
    held.state.aim(step, 0.5)
    along, before = held.X @ step + 0.5, held.scores
    for t in (0.0, 0.5, 2.0):
        held.scores = before + t * along
        near(held.state.slope(t), held.signed @ along)
    held.state.advance(2.0)
    near(held.state.measure().total, np.abs(held.signed).sum())


def test_alpha_is_the_one_that_was_kept(held):
    held.state.measure()
    held.state.keep(0.5)
    expected = 0.5 * np.abs(held.signed)
    held.state.place(0.0 * held.w, 0.0)
    held.state.measure()
    near(held.state.alpha(), expected)


@pytest.mark.parametrize("columns", [SOME, np.arange(D)])
def test_curvature(held, columns):
    held.state.measure()
    A = np.column_stack([held.X[:, columns], np.ones(N)])
    c = np.where(held.signed != 0.0, held.c, 0.0)
    near(held.state.curvature(columns), A.T @ (c[:, np.newaxis] * A))
    assert held.state.stored(columns) > 0.0


@pytest.mark.parametrize("free", [True, False])
def test_columns(held, free):
    """The quadratic of columns moves and changes like the one that has its matrix."""
    held.scores = held.scores + held.state.settle()
    sums = held.state.measure()
    slopes = held.state.correlations()[SOME]
    H = held.state.curvature(SOME)
    G, weight, h = H[:-1, :-1], H[-1, -1], H[-1, :-1]
    if free:
        G = G - np.outer(h, h) / weight
    model = held.state.columns(SOME, slopes, bias=False, free=free)
    if model is None:
        pytest.skip("no columns")
    some, step = np.array([0, 3]), np.array([0.2, -0.1])
    part = G[np.ix_(some, some)]
    near(model.change(some, step), 0.5 * step @ part @ step - slopes[some] @ step, rtol=1e-5)
    penalties = np.array([0.1, 0.2])
    p = model.direction(some, penalties, 1e-10, 1000)
    near(p, np.linalg.solve(part, slopes[some] - penalties), rtol=1e-5)
    model.move(some, p)
    near(model.change(some, np.array([1e-3, 0.0])), 0.5e-6 * part[0, 0] - 1e-4, rtol=1e-4)
    if free:
        near(model.shift, (sums.balance - h[some] @ p) / weight, rtol=1e-5)
    u, penalties = np.zeros(4), np.full(4, 0.5)
    model = held.state.columns(SOME, slopes, bias=False, free=free)
    assert model.descend(u, penalties, 1e-9, 10_000) <= 1e-9
    rest = slopes - G @ u
    off = np.where(u != 0.0, np.abs(rest - 0.5 * np.sign(u)), np.maximum(np.abs(rest) - 0.5, 0.0))
    assert off.max() <= 1e-5
