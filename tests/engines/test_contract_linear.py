"""Every engine does what `maxmargin.engines.linear` says, as a plain reference computes it.

Engines × X dense or CSR × float32 or float64. Vectors of length n are compared through what a state
tells of them: sums, and α on the host.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from maxmargin.engines.registry import engine_for
from maxmargin.problems import JointProblem, PrimalProblem, losses

from .dask_rows import HAS_DASK, dask_engine
from .plain_features import PlainFeatures
from .torch_features import torch_features

N, D, C = 80, 5, 4
MAKERS = {"cpu": lambda X: engine_for(X, "cpu").features()}
MAKERS["plain"] = PlainFeatures
if find_spec("torch"):
    MAKERS["torch"] = torch_features
if HAS_DASK:
    MAKERS["dask"] = lambda X: dask_engine(X).features()
KINDS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_matrix(X, dtype=np.float32),
}
LOSSES = {**losses.LOSSES, "smoothed_hinge": losses.Loss(1.0, 0.5), **losses.TARGET_LOSSES}
BIASES = ["free", "penalised", "none"]
DELTA = 0.4
# Engines that leave joint machines to the CPU engine.
OF_ONE_PLANE = ("maxmargin.engines.torch", "maxmargin.engines.dask")


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


# Every partition is one of the CPU engine, whose own tests are of all kinds.
OF_DASK = ("float64", "csr float32")
HELD = [(maker, kind) for maker in MAKERS for kind in (OF_DASK if maker == "dask" else KINDS)]


@pytest.fixture(params=HELD, ids="-".join)
def held(request):
    """X, exact in float32, and the same as an engine holds it."""
    maker, kind = request.param
    rng = np.random.default_rng(0)
    X = np.round(8 * rng.standard_normal((N, D))) / 8 * (rng.random((N, D)) < 0.7)
    return X, MAKERS[maker](KINDS[kind](X))


def test_sizes(held):
    X, features = held
    assert (features.n_rows, features.n_columns) == X.shape
    assert features.stored_per_row in (D, np.count_nonzero(X) / N)


# The linear machine -------------------------------------------------------------------------------


class Primal:
    """A state at a plane and a β, and what it has by the formulas of the contract."""

    def __init__(self, held, loss, bias):
        self.X, features = held
        rng = np.random.default_rng(1)
        self.A = np.column_stack([self.X, np.ones(N)])
        self.two_sided = loss in losses.TARGET_LOSSES
        self.epsilon = 0.3 * self.two_sided
        self.y = self.X[:, 0] + 0.7 * rng.standard_normal(N)
        if not self.two_sided:
            self.y = np.where(self.y > 0, 1.0, -1.0)
        upper, ridge = LOSSES[loss].bounds(rng.uniform(0.5, 2.0, N))
        self.problem = PrimalProblem(
            None, self.y, upper, ridge, bias, two_sided=self.two_sided, epsilon=self.epsilon
        )
        self.u, self.D = upper + np.zeros(N), ridge + np.zeros(N)
        self.low = -self.u if self.two_sided else np.where(self.y > 0, 0.0, -self.u)
        self.high = self.u if self.two_sided else np.where(self.y > 0, self.u, 0.0)
        self.a = np.append(np.linspace(-0.5, 0.5, D), 0.0 if bias == "none" else 0.2)
        self.step = np.append(rng.standard_normal(D), 0.3 * (bias != "none"))
        signs = rng.choice([-1.0, 1.0], N) if self.two_sided else self.y
        self.center = signs * np.minimum(self.u, 1.0) * rng.random(N)
        self.state = features.primal_state(self.problem)
        self.state.place(self.a[:-1], self.a[-1])
        self.state.start(self.center if self.two_sided else np.abs(self.center))

    def r(self, t=0.0):
        return self.y - self.A @ (self.a + t * self.step)

    @property
    def z(self):
        return np.abs(self.r()) - self.epsilon if self.two_sided else self.y * self.r()

    @property
    def errors(self):
        return np.count_nonzero(self.z > (0.0 if self.two_sided else 1.0))

    def beta(self, t=0.0, delta=DELTA):
        prox = np.where(np.isinf(self.u), 0.0, delta / self.u)
        pull = self.r(t) + prox * self.center
        pull = np.sign(pull) * np.maximum(np.abs(pull) - self.epsilon, 0.0)
        return np.clip(pull / (self.D + prox), self.low, self.high)

    def value(self, beta):
        return beta * self.r() - self.epsilon * np.abs(beta) - 0.5 * self.D * beta**2

    @property
    def loss(self):
        return float(self.value(self.beta(delta=1e-12)).sum())


@pytest.fixture(params=[(loss, bias) for loss in LOSSES for bias in BIASES], ids="-".join)
def primal(request, held):
    return Primal(held, *request.param)


def test_alpha_and_its_sums(primal):
    near(primal.state.total(), primal.center @ primal.A)
    near(primal.state.loss(), primal.loss)
    found, beta = primal.state.project(DELTA), primal.beta()
    near(found.loss, primal.loss)
    near(found.slack, primal.loss - primal.value(beta).sum())
    assert found.errors == primal.errors
    near(found.change, (beta - primal.center) @ primal.A)
    near(primal.state.total(), beta @ primal.A)


def test_recentring(primal):
    primal.state.project(DELTA)
    primal.state.recentre()
    primal.center = primal.beta()
    primal.state.project(DELTA)
    near(primal.state.total(), primal.beta() @ primal.A)


def test_steps(primal):
    primal.state.project(DELTA)
    primal.state.aim(primal.step)
    along = primal.A @ primal.step
    for t in (0.0, 0.5, 2.0):
        near(primal.state.slopes([t], DELTA), [primal.beta(t) @ along])
    primal.state.advance(0.5)
    found = primal.state.project(DELTA)
    near(found.moved, np.abs(0.5 * along).max())
    near(found.largest, np.abs(primal.A @ primal.a + 0.5 * along).max())
    near(primal.state.total(), primal.beta(0.5) @ primal.A)


def test_the_kink(primal):
    primal.state.project(DELTA)
    beta, kink = primal.beta(), primal.state.kink()
    inside = (beta != 0.0) & (np.abs(beta) < primal.u)
    assert kink.n_rows == np.count_nonzero(inside)
    prox = np.where(np.isinf(primal.u), 0.0, DELTA / primal.u)
    A, c = primal.A[inside], 1.0 / (primal.D + prox)[inside]
    near(primal.state.curvature(DELTA), (c * A.T) @ A)
    rows = primal.state.kink_rows(DELTA)
    near(rows.squares(), c @ A**2)
    near(rows.product(primal.step), (c * (A @ primal.step)) @ A)
    factors = np.linspace(0.5, 1.0, D)
    X, q = A[:, :-1], np.linspace(-1.0, 1.0, len(A))
    near(rows.gram(), X @ X.T + np.diag(1.0 / c))
    near(rows.gram(factors), (X * factors**2) @ X.T + np.diag(1.0 / c))
    near(rows.scores(primal.a[:-1]), X @ primal.a[:-1])
    near(rows.combine(q), q @ X)


def test_rows_held_and_not_held_make_the_whole(primal):
    """The quadratic of rows held is their loss, as long as none of them meets the kink."""
    state = primal.state
    state.project(DELTA)
    if not state.features.holds_rows:
        with pytest.raises(NotImplementedError, match=r"all rows .* take part in every step"):
            state.hold(0.6, DELTA)
        return
    held = state.hold(0.6, DELTA)
    if held.reach <= 0.0:
        pytest.skip("too many rows are on the kink")
    part = held.state.project(DELTA)
    a = primal.a
    loss = held.constant - held.v @ a + (0.5 * a @ held.M @ a if held.M is not None else 0.0)
    near(part.loss + loss, primal.loss)
    assert part.errors + held.errors == primal.errors
    state.take_back()
    if not primal.problem.curved:
        width = primal.u * primal.D + DELTA
        far = np.abs(primal.z - 0.5 * width) - 0.5 * width > held.reach
        bound = np.where(primal.z > 0, np.sign(primal.r()) * primal.u, 0.0)
        near(state.total(), np.where(far, bound, primal.beta()) @ primal.A)


def test_samples(primal):
    rows = np.arange(0, N, 3)
    part = primal.state.sample(rows, 3.0)
    part.place(primal.a[:-1], primal.a[-1])
    near(part.loss(), 3.0 * primal.value(primal.beta(delta=1e-12))[rows].sum())
    one_class = primal.state.sample(np.flatnonzero(primal.y > 0), 2.0)
    assert (one_class is None) == (not primal.two_sided)


def test_both_sides_of_the_gap(primal):
    state, y, bias = primal.state, primal.y, primal.problem.bias
    dual = state.dual()
    state.keep()
    alpha = np.asarray(state.alpha(kept=True))
    beta = alpha if primal.two_sided else alpha * y
    assert (beta >= primal.low).all()
    assert (beta <= primal.high).all()
    w = beta @ primal.A
    square = w @ w if bias == "penalised" else w[:-1] @ w[:-1]
    gain = y @ beta - primal.epsilon * np.abs(beta).sum()
    near(dual, gain - 0.5 * square - 0.5 * np.sum(primal.D * beta**2))
    if bias == "free":
        near(w[-1], 0.0)
    else:
        near(beta, primal.center)
        near(state.dual(state.total()), dual)
    near(state.alpha().sum(), alpha.sum())
    if primal.problem.curved:
        near(state.dual(of_scores=True), state.dual(of_scores=True))
    state.project(DELTA)
    near(np.asarray(state.alpha(kept=True)), alpha)
    state.start(state.alpha(kept=True))
    near(state.total(), w)
    near(state.dual(), dual)


def test_the_best_bias(primal):
    if primal.problem.ridge.any() or primal.problem.bias == "none":
        pytest.skip("for the hinge")
    b, kappa = primal.a[-1], float(primal.problem.bias == "penalised")
    low, high = primal.state.best_biases(b)

    def value(t):
        primal.state.place(primal.a[:-1], b + t)
        return primal.state.loss() + 0.5 * kappa * (b + t) ** 2

    least = min(value(t) for t in np.linspace(-3.0, 3.0, 601))
    slack = 2e-2 if kappa else 1e-9
    assert max(value(low), value(high)) <= least + slack
    primal.state.place(primal.a[:-1], b)
    primal.state.shift(low)
    near(primal.state.loss() + 0.5 * kappa * (b + low) ** 2, value(low))


# The joint machine --------------------------------------------------------------------------------


class Joint:
    """A state at a = (w, b) and some shares, and what it has by the formulas of the contract."""

    def __init__(self, held, bias):
        X, features = held
        rng = np.random.default_rng(2)
        labels, cost = rng.integers(0, C, N), rng.choice([0.5, 1.0, 2.0], N)
        labels[:C] = np.arange(C)
        cost[::7] = 0.0
        self.problem = JointProblem(X, labels, C, cost, bias)
        self.rows = np.flatnonzero(cost)
        self.A = np.column_stack([X, np.ones(N)])[self.rows][:, : D + (bias != "none")]
        self.labels, self.cost = labels[self.rows], cost[self.rows]
        self.own = np.eye(C)[self.labels]
        self.a = rng.standard_normal((C, self.A.shape[1])) / 2
        self.step = rng.standard_normal(self.a.shape)
        p = rng.multinomial(4, np.full(C, 1.0 / C), N) / 4  # exact, and many of them 0
        p[: N // 4] = np.eye(C)[rng.integers(0, C, N // 4)]
        self.start = cost[:, np.newaxis] * (np.eye(C)[labels] - p)
        self.p = self.own - self.start[self.rows] / self.cost[:, np.newaxis]
        self.state = features.joint_state(self.problem)
        self.state.place(self.a)
        self.state.start(self.start)

    def s(self, t=0.0):
        return self.A @ (self.a + t * self.step).T + 1.0 - self.own

    def alpha(self, p):
        return self.cost[:, np.newaxis] * (self.own - p)

    def smoothed(self, t):
        """Return the projections of p⁰ + s/δ onto the simplex."""
        v = self.p + self.s(t) / DELTA
        u = -np.sort(-v, axis=1)
        theta = (np.cumsum(u, axis=1) - 1.0) / np.arange(1, C + 1)
        last = np.count_nonzero(u > theta, axis=1) - 1
        return np.maximum(v - theta[np.arange(len(v)), last][:, np.newaxis], 0.0)


@pytest.fixture(params=BIASES)
def joint(request, held):
    if type(held[1]).__module__.startswith(OF_ONE_PLANE):
        with pytest.raises(NotImplementedError, match="joint machines are solved by the CPU"):
            Joint(held, request.param)
        pytest.skip("joint machines are solved by the CPU engine")
    return Joint(held, request.param)


def test_shares_and_their_sums(joint):
    state, alpha = joint.state, joint.alpha(joint.p)
    near(state.sums().total, alpha.T @ joint.A)
    near([state.sums().flow, state.flow()], (alpha * joint.own).sum())
    flows = joint.own.T @ np.where(joint.own > 0, 0.0, -alpha)
    near(state.flows(), flows)
    factors = np.random.default_rng(0).random((C, C))
    some = factors[joint.labels] * np.where(joint.own > 0, 0.0, -alpha)
    some = joint.own * some.sum(axis=1, keepdims=True) - some
    near(state.sums(factors).total, some.T @ joint.A)
    host = state.alpha()
    near(host[joint.rows], alpha)
    assert not np.delete(host, joint.rows, axis=0).any()
    near(state.mean_curvature(), np.mean(joint.cost * (joint.A[:, :D] ** 2).sum(axis=1)))


def test_shares_that_are_given(joint):
    state = joint.state
    state.keep()
    state.decide()
    near(state.sums().total, joint.alpha(np.eye(C)[joint.s().argmax(axis=1)]).T @ joint.A)
    state.restore()
    near(state.sums().total, joint.alpha(joint.p).T @ joint.A)
    state.clear()
    assert not state.alpha().any()


def test_looks(joint):
    for scale in (1.0, 0.3):
        s = scale * (joint.s() - 1.0 + joint.own) + 1.0 - joint.own
        slack = s.max(axis=1) - (s * joint.own).sum(axis=1)
        found = joint.state.survey(scale)
        near([found.loss, found.worst], [joint.cost @ slack, slack.max()])
        assert found.errors == np.count_nonzero(slack >= 1.0)
    near(joint.state.place(joint.a + joint.step), np.abs(joint.A @ joint.step.T).max())


def test_steps_of_a_joint_machine(joint):
    joint.state.survey()
    part = joint.state.near(np.inf)
    along = joint.A @ joint.step.T
    near(part.aim(joint.step), joint.cost @ np.abs(along).max(axis=1))
    for t in (0.0, 0.4):
        gap, slope = part.smooth(t, DELTA)
        s, p = joint.s(t), joint.smoothed(t)
        near(gap, joint.cost @ (p * (s.max(axis=1, keepdims=True) - s)).sum(axis=1))
        near(slope, joint.cost @ ((p - joint.own) * along).sum(axis=1))
    part.advance(0.4)
    near(part.sums().total, joint.alpha(p).T @ joint.A)
    joint.state.take_back()
    near(joint.state.sums().total, joint.alpha(p).T @ joint.A)


def test_rows_near_a_kink(joint):
    joint.state.survey()
    s = np.sort(joint.s(), axis=1)
    whole = joint.p[np.arange(len(s)), joint.s().argmax(axis=1)] == 1.0
    distance = np.where(whole, s[:, -1] - s[:, -2], 0.0)
    part = joint.state.near(0.5)
    assert part.features.n_rows == np.count_nonzero(distance <= 0.5)
    near(part.sums().total, joint.alpha(joint.p)[distance <= 0.5].T @ joint.A[distance <= 0.5])


def test_curvature_of_a_joint_machine(joint):
    member = (joint.p > 0.0) * 1.0
    several = member.sum(axis=1) > 1
    A, member, weight = joint.A[several], member[several], joint.cost[several] / DELTA
    shares = member[:, :, np.newaxis] * member[:, np.newaxis]
    P = np.eye(C) * member[:, np.newaxis] - shares / member.sum(axis=1)[:, np.newaxis, np.newaxis]
    P *= weight[:, np.newaxis, np.newaxis]
    H = np.einsum("ikm,ia,ib->kamb", P, A, A)
    rows = joint.state.curvature(DELTA)
    size = joint.a.size
    near(np.tril(rows.hessian().reshape(size, size)), np.tril(H.reshape(size, size)))
    near(rows.squares().ravel(), np.diag(H.reshape(size, size)))
    near(rows.product(joint.step), np.einsum("kamb,mb->ka", H, joint.step))
    blocks = [H[k, :, k] for k in range(C)]
    near(rows.class_blocks(), blocks)
    root = np.sqrt(np.einsum("ikk->ik", P))
    Z = [(root[:, k, np.newaxis] * A)[member[:, k] > 0] for k in range(C)]
    assert list(rows.class_sizes) == [len(each) for each in Z]
    bias = np.linspace(0.5, 2.0, C) if joint.problem.bias != "none" else np.zeros(C)
    scale = np.ones((C, A.shape[1]))
    if joint.problem.bias != "none":
        scale[:, -1] = bias
    for k, gram in enumerate(rows.class_grams(bias)):
        near(gram, (Z[k] * scale[k]) @ Z[k].T)
    scores = rows.class_scores(joint.step)
    for k in range(C):
        near(scores[k], Z[k] @ joint.step[k])
    near(rows.class_combine(scores), [scores[k] @ Z[k] for k in range(C)])


def test_samples_of_a_joint_machine(joint):
    part = joint.state.sample(0.5, 3, np.random.RandomState(0))
    assert part.features.n_rows < len(joint.rows)
    assert part.features.n_rows >= 3 * C
    assert part.flow() == 0.0
    # At w = 0 every slack is 1.
    assert part.survey().loss == pytest.approx(joint.cost.sum(), rel=0.3)
