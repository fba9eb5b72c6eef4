"""Newton's direction −H⁻¹g for the linear machine, by the cheapest way to it.

H = M + Σ_F c_i (x_i, 1)(x_i, 1)ᵀ over the rows F on the kink; M is the identity (for w) and what
rows held contribute. It is factored in the d + 1 unknowns; or in the rows on the kink, where they
are fewer (Woodbury); or H is only multiplied with (conjugate gradients), which is tried first where
a few products take less time than the sum, and the loss has a curvature of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from ...arrays import Floats
from ...engines.linear import ColumnSystem, Features, PrimalState, WeightedRows
from ...runtime.memory import free_memory
from ..linear_systems import LIFT, Factored


@dataclass(frozen=True)
class Tuning:
    """How a direction is computed."""

    direct_multiplications: float = 3e10  # up to which a system is factored
    memory_share: float = 0.25  # of the free memory that it may take
    sparse_slower: float = 4.0  # a multiplication of a product of sparse rows, in time
    largest_bias_step: float = 10.0  # where nothing else bounds it
    cg_accuracy: float = 0.03  # the relative residual at which conjugate gradients end
    cg_products: int = 100  # at most
    # Products with H that are tried first where the loss is curved and H has many columns, and what
    # a multiplication of theirs takes, in time, of one of the sum that makes H.
    first_products: int = 20
    product_slower: float = 10.0


@dataclass(frozen=True)
class Quadratic:
    """½aᵀMa − v·a + constant of a = (w, b): all of the objective but the rows that take part.

    Parameters
    ----------
    bias : {"free", "penalised", "none"}
    v : ndarray of shape (d + 1,)
    constant : float
    M : ndarray of shape (d + 1, d + 1), optional
        The identity for w, and 1 or 0 for b, by default.
    """

    bias: str
    v: Floats
    constant: float = 0.0
    M: Floats | None = None

    @property
    def penalty(self) -> float:
        """What ½b² counts."""
        return float(self.bias == "penalised")

    def plus(self, M: Floats | None, v: Floats, constant: float) -> Quadratic:
        """Return this, of no rows, plus the quadratic of rows held."""
        if M is not None:
            M[np.diag_indices(v.size - 1)] += 1.0
            M[-1, -1] += self.penalty
        return Quadratic(self.bias, v, constant, M)

    def apply(self, a: Floats) -> Floats:
        """Return Ma."""
        if self.M is not None:
            return self.M @ a
        out = a.copy()
        out[-1] *= self.penalty
        return out

    def value(self, a: Floats) -> float:
        """Return the value at a."""
        return 0.5 * float(a @ self.apply(a)) - float(self.v @ a) + self.constant

    def diagonal(self) -> Floats:
        """Return the diagonal of M."""
        return np.diag(self.M) if self.M is not None else self.apply(np.ones_like(self.v))


def newton_direction(
    state: PrimalState,
    quadratic: Quadratic,
    gradient: Floats,
    delta: float,
    tuning: Tuning,
    *,
    try_products: bool = False,
) -> tuple[Floats, bool]:
    """Return −H⁻¹g, and False where few products with H were tried first and not enough.

    They may be where the loss is a parabola on the kink, however small δ is.
    """
    kink, features = state.kink(), state.features
    d = features.n_columns
    normal = normal_work(features, kink.n_changed)
    gram = gram_work(features, kink.n_rows, tuning) if quadratic.M is None else np.inf
    damping = max(abs(gradient[-1]) / tuning.largest_bias_step, np.finfo(float).tiny)
    too_large = 8 * min(d, kink.n_rows) ** 2 > int(free_memory() * tuning.memory_share)
    if min(normal, gram) > tuning.direct_multiplications or too_large:
        rows = state.kink_rows(delta)
        most = tuning.cg_products
        return by_conjugate_gradients(rows, quadratic, gradient, damping, tuning, most)[0], True
    if features.has_curvature:
        gram = np.inf
    few = try_products or not features.holds_rows
    tried = few and not features.has_curvature
    tried = tried and product_work(features, kink.n_rows, tuning) < min(normal, gram)
    if tried:
        rows = state.kink_rows(delta)
        most = tuning.first_products if features.holds_rows else tuning.cg_products
        step, met = by_conjugate_gradients(rows, quadratic, gradient, damping, tuning, most)
        if met:
            return step, True
    if gram < normal:
        return by_gram(state.kink_rows(delta), quadratic, gradient, damping), not tried
    system = ColumnSystem(quadratic.M, quadratic.penalty, quadratic.bias != "none", damping)
    solved = state.solve_columns(delta, system, gradient)
    if solved is None:
        solved = by_columns(state.curvature(delta), system, gradient)
    return solved, not tried


def by_columns(H: Floats, system: ColumnSystem, gradient: Floats) -> Floats:
    """Factor M + H in the d + 1 unknowns, in the place of H."""
    if system.M is not None:
        H += system.M
    else:
        H[np.diag_indices(gradient.size - 1)] += 1.0
        H[-1, -1] += system.penalty
    H[-1, -1] = max(H[-1, -1], system.damping)
    if not system.has_bias:
        H[-1], H[:, -1], H[-1, -1] = 0.0, 0.0, 1.0
    return -Factored(H, LIFT).solve(gradient)


def by_gram(rows: WeightedRows, quadratic: Quadratic, gradient: Floats, damping: float) -> Floats:
    """Solve in the q = S(X_F p_w + p_b) of the rows on the kink, fewer than columns.

    (X_F M⁻¹X_Fᵀ + S⁻¹)q − p_b 1 = −X_F M⁻¹g_w and 1ᵀq + κp_b = −g_b give
    p_w = −M⁻¹(g_w + X_Fᵀq), S being the weights, κ the curvature of the bias and M the
    identity, lifted where rounding requires it.
    """
    g_w, g_b = gradient[:-1], gradient[-1]
    lift = LIFT * rows.squares()[:-1]
    root: Floats | None = None
    if lift.max(initial=0.0) > np.finfo(float).eps:
        root = 1.0 / np.sqrt(1.0 + lift)
    inverse = 1.0 if root is None else root * root  # M⁻¹
    q: Floats = np.ones(rows.n_rows)
    one = q
    if rows.n_rows:
        system = Factored(rows.gram(root))
        q, one = -system.solve(rows.scores(g_w * inverse)), system.solve(one)
    step = np.zeros(gradient.size)
    if quadratic.bias != "none":
        kappa = quadratic.penalty
        kappa = max(kappa, damping if one.sum() + kappa < damping else 0.0)
        step[-1] = -(g_b + q.sum()) / (one.sum() + kappa)
        q = q + step[-1] * one
    step[:-1] = -(g_w + rows.combine(q)) * inverse
    return step


def by_conjugate_gradients(
    rows: WeightedRows,
    quadratic: Quadratic,
    gradient: Floats,
    damping: float,
    tuning: Tuning,
    most: int,
) -> tuple[Floats, bool]:
    """Multiply with H, and divide by its diagonal; say whether ``most`` products were enough."""
    diagonal = rows.squares() + quadratic.diagonal()
    extra = max(0.0, damping - diagonal[-1])
    diagonal[-1] += extra
    has_bias = quadratic.bias != "none"

    def product(p: Floats) -> Floats:
        out = quadratic.apply(p) + rows.product(np.append(p[:-1], p[-1] * has_bias))
        out[-1] += extra * p[-1]
        if not has_bias:
            out[-1] = p[-1]
        return out

    if not has_bias:
        diagonal[-1] = 1.0
    size = gradient.size
    operator = LinearOperator((size, size), matvec=product)
    inverse = LinearOperator((size, size), matvec=lambda r: r / diagonal)
    step, status = cg(operator, -gradient, rtol=tuning.cg_accuracy, maxiter=most, M=inverse)
    return step, status == 0


def normal_work(features: Features, n_rows: int) -> float:
    """Return the multiplications of a step that solves for the columns."""
    return n_rows * (features.stored_per_row + 1.0) ** 2 + features.n_columns**3 / 3.0


def gram_work(features: Features, n_rows: int, tuning: Tuning) -> float:
    """Return the multiplications of a step that solves for the rows on the kink."""
    slower = 1.0 if features.is_dense else tuning.sparse_slower
    return slower * n_rows**2 * features.stored_per_row + n_rows**3 / 3.0


def product_work(features: Features, n_rows: int, tuning: Tuning) -> float:
    """Return the multiplications of a step by few products, in units of the sum.

    Sparse rows in memory, or on a device, have other methods, which take less time.
    """
    if not features.is_dense and features.holds_rows:
        return np.inf
    products = tuning.first_products * tuning.product_slower
    return products * n_rows * (features.stored_per_row + 1.0)


def step_work(features: Features, n_rows: int, tuning: Tuning) -> float:
    """Return the multiplications of a step with so many rows on the kink."""
    return min(normal_work(features, n_rows), gram_work(features, n_rows, tuning))
