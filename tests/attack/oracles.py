"""The truth, by arithmetic that shares nothing with the library.

Small problems are recomputed in rational numbers (every float is one; exp and tanh to 50 digits),
larger ones in float64 from differences of rows and in extended precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement
from math import inf, prod
from typing import Any

import numpy as np

DIGITS = 50
# α that rounding cannot tell from a bound is at that bound, as `MarginCertificate` documents.
AT_BOUND = Fraction(1, 10**14)
Rows = list[list[Fraction]]


def rational(values: Any) -> Any:
    """Return floats, or rows of floats, as the rational numbers that they are."""
    if isinstance(values, list | tuple):
        return [rational(value) for value in values]
    if isinstance(values, np.ndarray):
        return rational(values.astype(np.float64).tolist())
    return Fraction(values)


def dense(X: Any) -> np.ndarray:
    """Return X as an array of float64, whatever it was."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


# Kernels ------------------------------------------------------------------------------------------


def kernel_value(kernel: tuple[Any, ...], x: list[Fraction], z: list[Fraction]) -> Fraction:
    """Return K(x, z) of a described kernel, exactly where it is rational."""
    name, *rest = kernel
    if name in ("sum", "product"):
        first, second = (kernel_value(part, x, z) for part in rest)
        return first + second if name == "sum" else first * second
    if name == "scaled":
        return Fraction(rest[0]) * kernel_value(rest[1], x, z)
    if name == "rbf":
        square = sum(((a - b) ** 2 for a, b in zip(x, z, strict=True)), Fraction(0))
        return exponential(-Fraction(rest[0]) * square)
    dot = sum((a * b for a, b in zip(x, z, strict=True)), Fraction(0))
    if name == "linear":
        return dot
    if name == "poly":
        degree, gamma, coef0 = rest
        return (Fraction(gamma) * dot + Fraction(coef0)) ** int(degree)
    assert name == "sigmoid", kernel
    argument = Fraction(rest[0]) * dot + Fraction(rest[1])
    shrunk = exponential(-2 * abs(argument))
    value = (1 - shrunk) / (1 + shrunk)
    return value if argument > 0 else -value


def exponential(exponent: Fraction) -> Fraction:
    """Return exp of a number to 50 digits; 0 below 10⁻⁴⁰⁰, where no float is left."""
    if exponent < -1000:
        return Fraction(0)
    with localcontext() as context:
        context.prec = DIGITS + 10
        value = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        context.prec = DIGITS
        return Fraction(+value)


def exact_scores(kernel: tuple[Any, ...], X: Rows, beta: list[Fraction]) -> list[Fraction]:
    """Return Σ_j β_j K(x_j, x_i) of every row i."""
    used = [j for j, share in enumerate(beta) if share]
    if kernel[0] == "precomputed":
        return [sum((beta[j] * row[j] for j in used), Fraction(0)) for row in X]
    if kernel[0] == "linear":
        w = plane_of(X, beta)
        return [kernel_value(kernel, x, w) for x in X]
    return [sum((beta[j] * kernel_value(kernel, X[j], x) for j in used), Fraction(0)) for x in X]


def plane_of(X: Rows, beta: list[Fraction]) -> list[Fraction]:
    """Return w = Σ β_i x_i."""
    used = [i for i, share in enumerate(beta) if share]
    return [sum((beta[i] * X[i][k] for i in used), Fraction(0)) for k in range(len(X[0]))]


# The support vector machine -----------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """What a fit was asked for: labels ±1, costs C_i (None is ∞), loss, and kind of bias."""

    y: list[int]
    cost: list[Fraction | None]
    loss: str = "hinge"
    bias: str = "free"

    @property
    def hard(self) -> bool:
        """Whether slack is forbidden."""
        return self.cost[0] is None

    @property
    def upper(self) -> list[Fraction | None]:
        """The largest α; None is ∞."""
        return self.cost if self.loss == "hinge" else [None] * len(self.y)

    @property
    def ridge(self) -> list[Fraction]:
        """D of the dual: 1/(2C) of the squared hinge."""
        if self.loss == "hinge" or self.hard:
            return [Fraction(0)] * len(self.y)
        return [1 / (2 * c) for c in self.cost if c is not None]

    @property
    def at_zero(self) -> Fraction:
        """P of w = 0 with the best bias: what no fit should be worse than."""
        sums = [
            sum((c for c, s in zip(self.cost, self.y, strict=True) if s == sign), Fraction(0))
            for sign in (1, -1)
        ]
        if self.bias != "free":
            return sum(sums, Fraction(0))
        if self.loss == "hinge":
            return 2 * min(sums)
        return 4 * sums[0] * sums[1] / (sums[0] + sums[1])


@dataclass(frozen=True)
class Truth:
    """What a certificate should have said: the same quantities, exactly."""

    primal: float
    dual: float
    relative_gap: float
    violation: float
    balance: float
    box: float


def repaired(alpha: list[Fraction], y: Sequence[int]) -> list[Fraction]:
    """Shrink the heavier class until yᵀα = 0."""
    sums = {
        sign: sum((a for a, s in zip(alpha, y, strict=True) if s == sign), Fraction(0))
        for sign in (1, -1)
    }
    target = min(sums.values())
    factor = {sign: target / total if total else Fraction(0) for sign, total in sums.items()}
    return [a * factor[s] for a, s in zip(alpha, y, strict=True)]


def clipped(alpha: list[Fraction], upper: list[Fraction | None]) -> list[Fraction]:
    """Return α moved into its box."""
    return [
        max(Fraction(0), a if u is None else min(a, u)) for a, u in zip(alpha, upper, strict=True)
    ]


def exact_primal(machine: Machine, square: Fraction, margins: list[Fraction]) -> Fraction | None:
    """Return P from ‖w‖² and the margins y g(x); None is ∞."""
    if machine.hard:
        least = min(margins)
        return square / (2 * min(least, Fraction(1)) ** 2) if least > 0 else None
    slack = [max(1 - m, Fraction(0)) for m in margins]
    power = 1 if machine.loss == "hinge" else 2
    losses = (c * s**power for c, s in zip(machine.cost, slack, strict=True) if c is not None)
    return square / 2 + sum(losses, Fraction(0))


def exact_violation(machine: Machine, alpha: list[Fraction], margins: list[Fraction]) -> Fraction:
    """Return the worst violation of the KKT conditions."""
    largest, worst = max(alpha), Fraction(0)
    for a, u, d, m in zip(alpha, machine.upper, machine.ridge, margins, strict=True):
        slope = m + d * a
        if u is None or a < (1 - AT_BOUND) * u:
            worst = max(worst, 1 - slope)
        if a > AT_BOUND * (largest if u is None else min(u, largest)):
            worst = max(worst, slope - 1)
    return worst


def kernel_truth(
    machine: Machine, kernel: tuple[Any, ...], X: Rows, alpha: list[Fraction], b: Fraction
) -> Truth:
    """Return the truth about a model given by α and b.

    P and the violation are the smaller ones of the model that was handed out and of that of the
    repaired α, so that no claim about either of the two is called false.
    """
    feasible = clipped(alpha, machine.upper)
    balanced = repaired(feasible, machine.y) if machine.bias == "free" else feasible
    found = [_values(machine, kernel, X, a, b) for a in (alpha, balanced)]
    _, _, square = found[1]
    dual = sum(balanced, Fraction(0)) - square / 2
    dual -= sum((d * a * a for d, a in zip(machine.ridge, balanced, strict=True)), Fraction(0)) / 2
    primals = [p for p, _, _ in found if p is not None]
    return _truth(
        machine, min(primals, default=None), dual, min(v for _, v, _ in found), alpha, feasible
    )


def _values(
    machine: Machine, kernel: tuple[Any, ...], X: Rows, alpha: list[Fraction], b: Fraction
) -> tuple[Fraction | None, Fraction, Fraction]:
    beta = [a * s for a, s in zip(alpha, machine.y, strict=True)]
    scores = exact_scores(kernel, X, beta)
    margins = [s * (score + b) for s, score in zip(machine.y, scores, strict=True)]
    square = sum((c * score for c, score in zip(beta, scores, strict=True)), Fraction(0))
    return (
        exact_primal(machine, square, margins),
        exact_violation(machine, alpha, margins),
        square,
    )


def plane_truth(
    machine: Machine, X: Rows, alpha: list[Fraction], w: list[Fraction], b: Fraction
) -> Truth:
    """Return the truth about a plane (w, b) and the α offered as its proof."""
    feasible = clipped(alpha, machine.upper)
    balanced = repaired(feasible, machine.y) if machine.bias == "free" else feasible
    signed = [a * s for a, s in zip(balanced, machine.y, strict=True)]
    v, total = plane_of(X, signed), sum(signed, Fraction(0))
    dual = sum(balanced, Fraction(0)) - sum((each * each for each in v), Fraction(0)) / 2
    square = sum((each * each for each in w), Fraction(0))
    if machine.bias == "penalised":
        dual, square = dual - total * total / 2, square + b * b
    dual -= sum((d * a * a for d, a in zip(machine.ridge, balanced, strict=True)), Fraction(0)) / 2
    margins = [
        s * (sum((p * q for p, q in zip(x, w, strict=True)), Fraction(0)) + b)
        for s, x in zip(machine.y, X, strict=True)
    ]
    primal = exact_primal(machine, square, margins)
    violation = min(exact_violation(machine, a, margins) for a in (feasible, balanced))
    return _truth(machine, primal, dual, violation, alpha, feasible)


def _truth(
    machine: Machine,
    primal: Fraction | None,
    dual: Fraction,
    violation: Fraction,
    alpha: list[Fraction],
    feasible: list[Fraction],
) -> Truth:
    total = sum(feasible, Fraction(0))
    unbalanced = sum((a * s for a, s in zip(feasible, machine.y, strict=True)), Fraction(0))
    outside = max(abs(a - c) for a, c in zip(alpha, feasible, strict=True))
    relative = inf
    if primal is not None:
        relative = number((primal - dual) / abs(primal)) if primal else 0.0
    return Truth(
        inf if primal is None else number(primal),
        number(dual),
        relative,
        number(violation),
        number(abs(unbalanced) / max(Fraction(1), total)) if machine.bias == "free" else 0.0,
        number(outside / max(Fraction(1), max(feasible))),
    )


def number(value: Fraction) -> float:
    """Return the nearest float, ±∞ where there is none."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


# Larger problems ----------------------------------------------------------------------------------


def gram_block(kernel: tuple[Any, ...], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return K(x_i, z_j) in float64, distances from differences and products exactly summed."""
    name, *rest = kernel
    if name in ("sum", "product"):
        first, second = (gram_block(part, X, Z) for part in rest)
        return first + second if name == "sum" else first * second
    if name == "scaled":
        return rest[0] * gram_block(rest[1], X, Z)
    if name == "rbf":
        square = np.zeros((len(X), len(Z)))
        for x, z in zip(X.T, Z.T, strict=True):
            square += np.square(x[:, None] - z[None, :])
        return np.exp(-rest[0] * square)
    dot = np.zeros((len(X), len(Z)), dtype=np.longdouble)
    for x, z in zip(X.T.astype(np.longdouble), Z.T.astype(np.longdouble), strict=True):
        dot += x[:, None] * z[None, :]
    if name == "linear":
        return dot
    if name == "poly":
        return (rest[1] * dot + rest[2]) ** rest[0]
    assert name == "sigmoid", kernel
    return np.tanh(rest[0] * dot + rest[1])


def float_scores(
    kernel: tuple[Any, ...], X: np.ndarray, beta: np.ndarray, block: int = 256
) -> tuple[np.ndarray, float]:
    """Return Σ_j β_j K(x_j, x_i) of every row, and what rounding may have done to one of them."""
    used = np.flatnonzero(beta)
    extended = beta[used].astype(np.longdouble)
    if kernel[0] == "linear":
        rows = X.astype(np.longdouble)
        scores = rows @ (extended @ rows[used])
        largest = float((np.abs(rows) @ (np.abs(extended) @ np.abs(rows[used]))).max())
        return scores.astype(float), 1e-17 * (len(used) + X.shape[1]) * largest
    scores, largest = np.empty(len(X)), 0.0
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        values = (
            X[rows][:, used] if kernel[0] == "precomputed" else gram_block(kernel, X[rows], X[used])
        )
        scores[rows] = values @ extended
        largest = max(largest, float((np.abs(values) @ np.abs(extended)).max(initial=0.0)))
    return scores, 1e-14 * largest


def float_truth(
    y: np.ndarray,
    cost: np.ndarray,
    loss: str,
    kernel: tuple[Any, ...],
    X: np.ndarray,
    alpha: np.ndarray,
    b: float,
    bias: str = "free",
) -> tuple[Truth, float]:
    """Return the truth about a larger kernel machine, and the error of its scores."""
    scores, error = float_scores(kernel, X, alpha * y)
    margins = y * (scores + b)
    hinge = loss == "hinge"
    upper = cost if hinge else np.full(len(y), inf)
    ridge = np.zeros(len(y)) if hinge else 0.5 / cost
    square = float((alpha * y) @ scores)
    slack = np.maximum(1.0 - margins, 0.0)
    primal = 0.5 * square + float(cost @ (slack if hinge else slack**2))
    sums = alpha[y > 0].sum(), alpha[y < 0].sum()
    unbalanced = abs(sums[0] - sums[1]) if bias == "free" else 0.0
    balanced = alpha
    if unbalanced > 1e-13 * sum(sums):
        balanced = alpha * np.where(y > 0, *(min(sums) / max(each, 1e-300) for each in sums))
        square = float((balanced * y) @ float_scores(kernel, X, balanced * y)[0])
    dual = float(balanced.sum()) - 0.5 * square - 0.5 * float(ridge @ balanced**2)
    slope = margins + ridge * alpha
    below, above = alpha < (1 - 1e-14) * upper, alpha > 1e-14 * np.minimum(upper, alpha.max())
    violation = max(1.0 - slope[below].min(initial=inf), slope[above].max(initial=-inf) - 1.0, 0.0)
    outside = float(np.maximum(alpha - upper, -alpha).max())
    return Truth(
        primal,
        dual,
        (primal - dual) / abs(primal),
        float(violation),
        float(unbalanced / max(1.0, alpha.sum())),
        max(0.0, outside) / max(1.0, float(alpha.max())),
    ), error


def nu_truth(
    y: np.ndarray, nu: float, share: np.ndarray, scores: np.ndarray, alpha: np.ndarray, b: float
) -> tuple[float, float]:
    """Return the relative gap and the violation of a ν-machine scaled to margin 1.

    α and b are those divided by ρ, so that Σα = ν/ρ tells ρ; ``share`` are the u_i.
    """
    total = alpha.sum()
    rho = nu / total
    upper = share / rho
    margins = y * (scores + b)
    below, above = alpha < (1 - 1e-11) * upper, alpha > 1e-11 * alpha.max()
    least, most = margins[below].min(initial=inf), margins[above].max(initial=-inf)
    middle = 0.5 * (least + most)
    square = float((alpha * y) @ scores)
    # min over the margin m of ½‖w‖² − (ν/ρ)m + Σ u (m − y g)₊: a weighted quantile.
    order = np.argsort(margins)
    reached = np.searchsorted(np.cumsum(upper[order]), total * (1 - 1e-12))
    m = margins[order[min(reached, len(order) - 1)]]
    primal = 0.5 * square - total * m + float(upper @ np.maximum(m - margins, 0.0))
    gap = primal + 0.5 * square
    return gap / max(abs(primal), total * middle), max(0.0, 0.5 * (most - least)) / middle


# Separability -------------------------------------------------------------------------------------


def separable(X: Rows, y: Sequence[int]) -> bool:
    """Decide exactly whether some plane has y (w·x + b) > 0 for every row.

    By Gordan's alternative it has unless u ≥ 0, Σu = 1, Σ u_i y_i (x_i, 1) = 0 has a solution,
    which phase 1 of the simplex method decides in rational numbers (Bland's rule: it ends).
    """
    distinct = {(tuple(x), s) for x, s in zip(X, y, strict=True)}
    if any((x, -s) in distinct for x, s in distinct):
        return False
    columns = [[s * each for each in (*x, Fraction(1))] for x, s in sorted(distinct)]
    return not _feasible([[*column, Fraction(1)] for column in columns])


def _feasible(columns: list[list[Fraction]]) -> bool:
    """Whether Σ u_j c_j = (0, …, 0, 1) has a solution u ≥ 0."""
    rows, n = len(columns[0]), len(columns)
    table = [
        [column[i] for column in columns]
        + [Fraction(int(i == k)) for k in range(rows)]
        + [Fraction(int(i == rows - 1))]
        for i in range(rows)
    ]
    basis = [n + i for i in range(rows)]
    # Minimise the sum of the artificial variables.
    cost = [-sum((row[j] for row in table), Fraction(0)) for j in range(n)]
    cost += [Fraction(0)] * rows + [-sum((row[-1] for row in table), Fraction(0))]
    while cost[-1]:
        entering = next((j for j in range(n) if cost[j] < 0), None)
        if entering is None:
            return False
        ratios = [
            (row[-1] / row[entering], basis[i], i)
            for i, row in enumerate(table)
            if row[entering] > 0
        ]
        _, _, leaving = min(ratios)
        pivot = table[leaving] = [each / table[leaving][entering] for each in table[leaving]]
        for i, row in enumerate(table):
            if i != leaving and row[entering]:
                factor = row[entering]
                table[i] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
        factor = cost[entering]
        cost = [a - factor * b for a, b in zip(cost, pivot, strict=True)]
        basis[leaving] = entering
    return True


def separates(X: Rows, y: Sequence[int], w: list[Fraction], b: Fraction) -> bool:
    """Whether y (w·x + b) > 0 for every row, exactly."""
    return all(
        s * (sum((p * q for p, q in zip(x, w, strict=True)), Fraction(0)) + b) > 0
        for x, s in zip(X, y, strict=True)
    )


def squared_margin(X: Rows, y: Sequence[int], w: list[Fraction], b: Fraction) -> Fraction:
    """Return (min y (w·x + b))²/‖w‖², negative where a row is on the wrong side."""
    least = min(
        s * (sum((p * q for p, q in zip(x, w, strict=True)), Fraction(0)) + b)
        for x, s in zip(X, y, strict=True)
    )
    square = sum((each * each for each in w), Fraction(0))
    return least * abs(least) / square if square else Fraction(-1)


def monomials(X: Rows, degree: int, homogeneous: bool) -> Rows:
    """Return the monomials of a polynomial kernel's feature space, without their coefficients.

    Positive multiples of coordinates change no verdict.
    """
    d = len(X[0])
    table = [
        chosen
        for k in range(degree if homogeneous else 1, degree + 1)
        for chosen in combinations_with_replacement(range(d), k)
    ]
    return [[prod((x[j] for j in chosen), start=Fraction(1)) for chosen in table] for x in X]
