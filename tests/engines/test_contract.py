"""Every engine does what `maxmargin.engines.base` says, as a plain NumPy reference computes it.

Engines × X dense or CSR × kernel values float32 or float64.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.registry import engine_for
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.solution import Solution, Status

from ..helpers.devices import marked, torch_engines
from .dask_rows import HAS_DASK, dask_engine
from .plain_engine import PlainEngine

N = 90
KERNEL = RBF(gamma=0.3)
# What float32 or float64 kernel values do to a sum of N of them.
NEAR = {"fast": 1e-4, "exact": 1e-11}

MAKERS = {"cpu": lambda X: engine_for(X, "cpu")}
MAKERS["cpu, reuse"] = lambda X: engine_for(X, "cpu", reuse=True)
MAKERS["plain"] = PlainEngine
MAKERS.update(torch_engines())
if HAS_DASK:
    MAKERS["dask"] = dask_engine


def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4)) * (rng.random((N, 4)) < 0.7)
    return X, np.where(X[:, 0] + 0.7 * rng.standard_normal(N) > 0, 1.0, -1.0)


def mixed(X, y):
    """Variables of all kinds: bounds on both sides of 0, a ridge, weights, two groups."""
    rng = np.random.default_rng(1)
    lower, upper = -rng.random(N) * (rng.random(N) < 0.3), 0.5 + rng.random(N)
    groups = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    return DualProblem(
        KERNEL, X, np.arange(N), y, rng.standard_normal(N), lower, upper,
        rng.random(N) * (rng.random(N) < 0.5), groups, (4.0, -3.0),
    )  # fmt: skip


POSED = {
    "hinge": lambda X, y: DualProblem.hinge(KERNEL, X, y, 2.0),
    "squared": lambda X, y: DualProblem.squared_hinge(KERNEL, X, y, 2.0),
    "nu": lambda X, y: DualProblem.nu(KERNEL, X, y, 0.4),
    "no bias": lambda X, y: DualProblem.hinge(KERNEL, X, y, 2.0, bias=False),
    "regression": lambda X, y: DualProblem.regression(KERNEL, X, X[:, 0] + 0.1 * y, 2.0, 0.1),
    "one class": lambda X, y: DualProblem.one_class(KERNEL, X, 0.3),
    "mixed": mixed,
}


class Reference:
    """The state of a problem at α, by the formulas of the contract."""

    def __init__(self, problem, alpha):
        s, D = problem.signs, problem.ridge
        X = problem.X.toarray() if sparse.issparse(problem.X) else problem.X
        self.problem, self.alpha, self.beta = problem, alpha, s * alpha
        self.K = KERNEL(X)[np.ix_(problem.index, problem.index)]
        self.scores = self.K @ self.beta
        self.f = -s * problem.p - self.scores - D * self.beta
        ends = s * problem.lower, s * problem.upper
        self.lower, self.upper = np.minimum(*ends), np.maximum(*ends)
        self.may_rise, self.may_fall = self.beta < self.upper, self.beta > self.lower
        self.free = self.may_rise & self.may_fall
        self.groups = problem.groups or (np.arange(alpha.size),)

    @property
    def value(self):
        p, D = self.problem.p, self.problem.ridge
        return 0.5 * self.beta @ self.scores + 0.5 * D @ self.beta**2 + p @ self.alpha

    def gap(self, multipliers):
        """Σ h(z) − αz + ½Dα², h by a fine grid where there is a ridge."""
        problem, total = self.problem, 0.0
        for group, level in zip(self.groups, multipliers, strict=True):
            for i in group:
                z = -problem.p[i] - problem.signs[i] * (self.scores[i] + level)
                low, high, D = problem.lower[i], problem.upper[i], problem.ridge[i]
                ends = [low, high] if D == 0.0 else [np.clip(z / D, low, high)]
                h = max(a * z - 0.5 * D * a**2 for a in ends)
                total += h - self.alpha[i] * z + 0.5 * D * self.alpha[i] ** 2
        return total

    def violation(self, i, level):
        rises = self.f[i] - level.low if self.may_rise[i] else 0.0
        falls = level.top - self.f[i] if self.may_fall[i] else 0.0
        return max(rises, falls, 0.0)


@pytest.fixture(params=marked(MAKERS))
def make(request):
    return MAKERS[request.param]


@pytest.fixture(params=["dense", "csr"])
def data(request):
    X, y = rows()
    return (sparse.csr_matrix(X) if request.param == "csr" else X), y, X


@pytest.fixture(params=["fast", "exact"])
def precision(request):
    return request.param


@pytest.fixture(params=POSED)
def case(request, make, data, precision):
    """A state, its reference, and what they may differ by."""
    given, y, X = data
    problem = POSED[request.param](X, y)
    alpha = start(problem)
    engine = make(given)
    gram = engine.gram(KERNEL, problem.index, precision)
    exact = engine.gram(KERNEL, problem.index, keep=False) if precision == "fast" else None
    state = gram.dual_state(problem, alpha, exact)
    return state, Reference(problem, alpha), NEAR[precision]


def start(problem):
    """A feasible α with variables at both bounds and between them."""
    n = problem.n_variables
    alpha = np.clip(np.arange(n) % 3 * 0.5 * np.minimum(problem.upper, 1.0), problem.lower, None)
    for group, total in zip(problem.groups, problem.sums, strict=True):
        for sign in (1.0, -1.0):
            rows = group[problem.signs[group] == sign]
            missing = sign * (total - problem.signs[group] @ alpha[group])
            room = (problem.upper if missing > 0 else problem.lower)[rows] - alpha[rows]
            room = np.clip(room, -1.0, 1.0)
            if room.any():
                alpha[rows] += room * min(1.0, missing / room.sum())
        assert abs(problem.signs[group] @ alpha[group] - total) < 1e-9
    return alpha


def members_of(reference, size):
    return [group[:size].copy() for group in reference.groups]


def test_a_state_begins_where_it_is_reported(case):
    state, reference, near = case
    result = state.result()
    np.testing.assert_allclose(result.alpha, reference.alpha, atol=1e-15)
    if result.scores is not None:
        assert (np.abs(result.scores - reference.scores) <= result.bounds + 1e-13).all()
    assert state.value == pytest.approx(reference.value, abs=N * near)
    assert state.sizes == tuple(group.size for group in reference.groups)
    diagonal = np.diag(reference.K) + reference.problem.ridge
    assert state.largest == pytest.approx(diagonal.max(), rel=1e-6)


def test_levels(case):
    state, reference, near = case
    levels = state.levels()
    assert len(levels) == len(reference.groups)
    for level, group in zip(levels, reference.groups, strict=True):
        f, free = reference.f[group], reference.free[group]
        assert level.top == pytest.approx(
            f[reference.may_rise[group]].max(initial=-np.inf), abs=near
        )
        assert level.low == pytest.approx(
            f[reference.may_fall[group]].min(initial=np.inf), abs=near
        )
        mean = f[free].mean() if free.any() else np.nan
        assert level.free == pytest.approx(mean, abs=near, nan_ok=True)


def test_totals(case):
    state, reference, near = case
    problem, multipliers = reference.problem, [0.3, -0.2][: len(reference.groups)]
    totals, level = state.totals(multipliers), np.empty(reference.f.size)
    for group, multiplier in zip(reference.groups, multipliers, strict=True):
        level[group] = multiplier
    assert totals.gap == pytest.approx(reference.gap(multipliers), abs=N * near)
    assert totals.square == pytest.approx(reference.beta @ reference.scores, abs=N * near)
    margins = problem.signs * (reference.scores + level)
    assert totals.smallest == pytest.approx(margins.min(), abs=near)
    assert totals.size == pytest.approx(np.abs(reference.beta).sum())
    sides = problem.signs * (reference.scores + np.mean(multipliers))
    assert (sides < -near).sum() <= totals.errors <= (sides < near).sum()


def test_the_gap_is_that_of_the_certificate(case):
    """The engine's formula and the certificate's are written apart, and agree."""
    state, reference, near = case
    problem, b = reference.problem, 0.1
    if len(problem.groups) > 1:
        if problem.ridge.any():
            pytest.skip("the certificate's best ρ is that of a machine without a ridge")
        rho = state.best_shift(b)
        gap = state.totals([b - rho, b + rho]).gap
    else:
        b = b if problem.groups else 0.0
        gap = state.totals([b]).gap
    w = np.empty((0, 0))
    solution = Solution(w, np.array([b]), Status.STOPPED, alpha=reference.alpha)
    certificate = mm.certify(problem, solution)
    size = max(abs(certificate.primal), abs(certificate.dual), 1.0)
    assert gap == pytest.approx(certificate.primal - certificate.dual, abs=N * near * size)


def test_best_shift(case):
    state, reference, near = case
    if len(reference.problem.groups) != 2 or reference.problem.ridge.any():
        pytest.skip("of two groups without a ridge")
    b = 0.05
    rho = state.best_shift(b)
    least = reference.gap([b - rho, b + rho])
    for other in np.linspace(rho - 1.0, rho + 1.0, 41):
        assert least <= reference.gap([b - other, b + other]) + N * near


def test_violators(case):
    state, reference, near = case
    levels = state.levels()
    for k, (level, group) in enumerate(zip(levels, reference.groups, strict=True)):
        if not reference.problem.groups:
            level = type(level)(0.0, 0.0, level.free)
        wrong = np.array([reference.violation(i, level) for i in group])
        taken, most = group[:10], max(float(wrong.max()), 1e-12)
        chosen = state.violators(k, level, most, 12, taken)
        assert chosen.size <= 12
        assert chosen.size == np.unique(chosen).size
        assert not np.isin(chosen, taken).any()
        assert np.isin(chosen, group).all()
        each = np.array([reference.violation(i, level) for i in chosen])
        assert (each > -near).all()
        outside = wrong[~np.isin(group, taken)]
        if (outside > 10 * near).any():  # the worst of all is among them, or one as bad
            assert each.max(initial=0.0) >= outside.max() - most / 500 - near


def test_free(case):
    state, reference, _ = case
    chosen = np.arange(0, reference.f.size, 4)
    np.testing.assert_array_equal(state.free(chosen), reference.free[chosen])


def test_near(case):
    state, reference, near = case
    levels, reach = state.levels(), 0.2
    everything = state.near(levels, np.inf, reference.f.size)
    assert everything is not None
    if not type(state).__module__.startswith("maxmargin.engines.dask"):  # which has its own limit
        assert state.near(levels, np.inf, everything.size - 1) is None
    chosen = state.near(levels, reach, reference.f.size)
    surely, perhaps = reference.free.copy(), reference.free.copy()
    for level, group in zip(levels, reference.groups, strict=True):
        f, rise, fall = reference.f[group], reference.may_rise[group], reference.may_fall[group]
        for which, slack in ((surely, -near), (perhaps, near)):
            which[group] |= rise & (f > level.low - reach - slack)
            which[group] |= fall & (f < level.top + reach + slack)
    assert np.isin(np.flatnonzero(surely), chosen).all()
    assert np.isin(chosen, np.flatnonzero(perhaps)).all()
    assert (np.diff(chosen) > 0).all()


def test_a_dask_engine_fetches_the_worst_of_many(data, monkeypatch):
    """Where more variables are near than the client takes, it is given the worst of both kinds."""
    pytest.importorskip("distributed")
    from maxmargin.engines.dask import dual_state

    given, y, X = data
    problem = POSED["hinge"](X, y)
    alpha = start(problem)
    engine = dask_engine(given)
    state = engine.gram(KERNEL, problem.index).dual_state(problem, alpha)
    reference, (level,) = Reference(problem, alpha), state.levels()
    most = 12
    monkeypatch.setattr(dual_state, "TUNING", replace(dual_state.TUNING, most_rows=most))
    chosen = state.near([level], np.inf, N)
    assert chosen.size == np.unique(chosen).size == most
    f, rise, fall = reference.f, reference.may_rise, reference.may_fall
    assert np.argmax(np.where(rise, f, -np.inf)) in chosen
    assert np.argmin(np.where(fall, f, np.inf)) in chosen
    # Where that has not helped, working sets take over.
    assert state.near([level], np.inf, N) is None


def assert_moved(state, before, reference, near):
    """β is feasible, the objective has fallen, and f belongs to β."""
    problem, alpha = reference.problem, state.result().alpha
    assert (alpha >= problem.lower).all()
    assert (alpha <= problem.upper).all()
    for group, total in zip(problem.groups, problem.sums, strict=True):
        assert problem.signs[group] @ alpha[group] == pytest.approx(total, abs=1e-9)
    assert state.value < before
    after = Reference(problem, alpha)
    assert state.value == pytest.approx(after.value, abs=N * near)
    for level, group in zip(state.levels(), after.groups, strict=True):
        highest = after.f[group][after.may_rise[group]].max(initial=-np.inf)
        assert level.top == pytest.approx(highest, abs=10 * near)


def test_solve_block(case):
    state, reference, near = case
    before, stop = state.value, 1e-3
    members = members_of(reference, 16)
    members[0] = np.append(members[0], -1)
    steps, moved = state.solve_block(members, stop, 100_000)
    assert steps > 0
    assert moved
    assert_moved(state, before, reference, near)
    alpha = state.result().alpha
    inside = np.concatenate(members)
    outside = np.setdiff1d(np.arange(alpha.size), inside)
    np.testing.assert_array_equal(alpha[outside], reference.alpha[outside])
    after = Reference(reference.problem, alpha)
    for group in members:
        rows = group[group >= 0]
        top = after.f[rows][after.may_rise[rows]].max(initial=-np.inf)
        low = after.f[rows][after.may_fall[rows]].min(initial=np.inf)
        worst = top - low if reference.problem.groups else max(top, -low)
        assert worst <= stop + 10 * near
    # Members that stay need not be fetched again; others are.
    for group, each in zip(reference.groups, members, strict=True):
        each[:8] = group[16:24]
    before = state.value
    if state.solve_block(members, stop / 10, 100_000).moved:
        assert_moved(state, before, reference, near)


def test_steps_are_limited(case):
    state, reference, _ = case
    assert state.solve_block(members_of(reference, 16), 1e-9, 3).steps == 3


def test_restrict_and_take(case):
    state, reference, near = case
    chosen = np.arange(0, reference.f.size, 2)
    part, before = state.restrict(chosen), state.value
    assert part.value == state.value
    assert sum(part.sizes) == chosen.size
    np.testing.assert_allclose(part.result().alpha, reference.alpha[chosen], atol=1e-15)
    assert not state.take(chosen, part)
    groups = [np.flatnonzero(np.isin(chosen, group)) for group in reference.groups]
    assert part.solve_block([group[:16] for group in groups], 1e-3, 100_000).moved
    np.testing.assert_array_equal(state.result().alpha, reference.alpha)
    assert state.take(chosen, part)
    assert state.value == pytest.approx(part.value, abs=N * near)
    assert_moved(state, before, reference, near)


def test_refresh_is_exact(case):
    state, reference, _ = case
    state.solve_block(members_of(reference, 16), 1e-3, 100_000)
    state.refresh()
    after = Reference(reference.problem, state.result().alpha)
    assert state.value == pytest.approx(after.value, abs=1e-10 * max(1.0, abs(after.value)))
    for level, group in zip(state.levels(), after.groups, strict=True):
        highest = after.f[group][after.may_rise[group]].max(initial=-np.inf)
        assert level.top == pytest.approx(highest, abs=1e-10)


def test_precision(make, data):
    assert make(data[0]).precision(KERNEL, 1e-3) in ("fast", "exact")
    assert make(data[0]).precision(KERNEL, 1e-12) == "exact"
