"""Proofs of what came out, recomputed in float64 by code that did not produce it.

`certify` looks at the problem and at the bare numbers of the answer, never at a solver's state.
A plane separates when the smallest margin exceeds what rounding could have made of it; a set is
inseparable when u ≥ 0, Σu = 1, Zᵀu = 0 (Gordan's alternative) holds up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from threading import Event
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigvalsh

from .kernels import Kernel, Precomputed
from .problem import (
    KernelSeparationProblem,
    LeastSquaresProblem,
    MarginProblem,
    SeparationProblem,
)
from .samples import Floats, Integers, Samples, blocks_of
from .solution import Solution
from .threads import in_parallel

# Side of the tiles in which kernel values are recomputed: they fit a core's cache.
TILE = 512
# Terms of a sum, and steps of an elimination, up to which they are done in rational numbers: some
# tenths of a second.
LARGEST_EXACT = 50_000
LARGEST_ELIMINATION = 12_000
ROUNDING = float(np.finfo(np.float64).eps)


class Certificate(Protocol):
    """What every certificate can do."""

    @property
    def violation(self) -> float:
        """How far the claim is from holding, 0 where it holds exactly."""

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the claim holds to ``tol``."""


@dataclass(frozen=True)
class SeparationCertificate:
    """Whether a plane separates, or whether none can.

    Parameters
    ----------
    n_samples, n_errors : int
        Samples, and those with z·a ≤ 0.
    margin : float
        The smallest functional margin min z·a.
    geometric_margin : float
        The smallest distance min z·a/‖w‖, negative when a sample is on the wrong side.
        Between two classes of a linear machine it is the distance to their common plane.
    rounding : float
        Bound on what float64 rounding may have added to ``margin``.
    radius : float
        R = max‖x‖.
    augmented_margin : float
        min z·a/‖a‖ with the bias as a coordinate: what the perceptron's mistake bound is made of.
    augmented_radius : float
        max‖z‖.
    refutation : float or None
        ‖Zᵀu‖∞ of the multipliers u offered as a proof of inseparability, relative to what its
        terms sum to without signs; None when none were offered.
    refutes : bool
        The multipliers prove that no plane separates: Zᵀu = 0 up to rounding, and exactly for some
        u ≥ 0 with the same support where that could be checked in rational arithmetic.
    """

    n_samples: int
    n_errors: int
    margin: float
    geometric_margin: float
    rounding: float
    radius: float
    augmented_margin: float
    augmented_radius: float
    refutation: float | None = None
    refutes: bool = False

    @property
    def separates(self) -> bool:
        """Every sample lies strictly on its side, by more than rounding."""
        return self.margin > self.rounding

    @property
    def violation(self) -> float:
        """0 with a proof either way, else how far the worst sample is on the wrong side."""
        if self.separates or self.refutes:
            return 0.0
        return max(-self.geometric_margin, float(np.finfo(float).tiny))

    @property
    def mistake_bound(self) -> float:
        """(max‖z‖/γ)² ≥ updates of the fixed-increment perceptron from zero; ∞ if not separating.

        γ = min z·a/‖a‖ of this plane, any separating plane gives a bound (Novikoff, 1962). With
        the R² bias convention it is at most (2R/γ)² in the terms of the plane's own margin.
        """
        if not self.separates:
            return np.inf
        return float((self.augmented_radius / self.augmented_margin) ** 2)

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether there is a proof either way; ``tol`` plays no part, only rounding does."""
        return self.separates or self.refutes

    def __str__(self) -> str:
        if self.separates:
            return (
                f"separates all {self.n_samples} samples: smallest distance to the plane "
                f"{self.geometric_margin:.6g}"
            )
        wrong = f"{self.n_errors} of {self.n_samples} samples not strictly on their side"
        if self.refutes:
            return (
                f"no plane separates (Gordan multipliers, residual {self.refutation:.1e}); {wrong}"
            )
        return f"not separated, not refuted: {wrong}"


@dataclass(frozen=True)
class LeastSquaresCertificate(SeparationCertificate):
    """Whether a minimises ‖Za − m‖² (+ ε‖a‖²), and whether it separates.

    ``stationarity`` is the largest entry of the gradient Zᵀ V(Za − m) + εa, each relative to what
    it could be at most; ``residual`` is the criterion's value.
    """

    stationarity: float = np.nan
    residual: float = np.nan

    @property
    def violation(self) -> float:
        """The relative gradient."""
        return self.stationarity

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the gradient vanishes to ``tol``."""
        return bool(self.stationarity <= tol)

    def __str__(self) -> str:
        return (
            f"least squares {self.residual:.6g}, relative gradient {self.stationarity:.1e}; "
            + super().__str__()
        )


@dataclass(frozen=True)
class MarginCertificate:
    """How far a support vector machine is from its optimum.

    Parameters
    ----------
    primal, dual : float
        P(w, b) and D(α), with P ≥ D for every feasible answer and P = D at the optimum.
    gap, relative_gap : float
        P − D, and that relative to P.
    violation : float
        The worst violation of the KKT conditions at b.
    balance : float
        \\|yᵀα\\| before it was repaired.
    box : float
        How far α was outside of 0 ≤ α ≤ u before it was clipped.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    violation: float
    balance: float
    box: float

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the KKT conditions hold to ``tol`` and α is feasible to ``tol``."""
        return max(self.violation, self.balance, self.box) <= tol

    def __str__(self) -> str:
        return (
            f"optimal to a relative gap of {self.relative_gap:.1e}: primal {self.primal:.8g}, dual "
            f"{self.dual:.8g}, worst KKT violation {self.violation:.1e}"
        )


class NotSeparableError(ValueError):
    """No plane separates the classes; ``proof`` says why."""

    def __init__(self, message: str, proof: Any = None) -> None:
        super().__init__(message)
        self.proof = proof


@singledispatch
def certify(problem: Any, solution: Solution) -> Any:
    """Recompute in float64 what ``solution`` proves about ``problem``.

    Parameters
    ----------
    problem : SeparationProblem, LeastSquaresProblem, KernelSeparationProblem or MarginProblem
    solution : Solution

    Returns
    -------
    Certificate
        With ``holds(tol)``, ``violation`` and ``str()`` for people.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.problem import SeparationProblem
    >>> from maxmargin.samples import SignedSamples
    >>> from maxmargin.solution import Solution, Status
    >>> Z = SignedSamples(np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]))
    >>> plane = Solution(w=np.array([[1.0]]), b=np.array([-1.0]), status=Status.CONVERGED)
    >>> print(certify(SeparationProblem(Z), plane))
    separates all 2 samples: smallest distance to the plane 1
    """
    raise TypeError(f"certify knows no {type(problem).__name__}.")


@certify.register
def _(problem: SeparationProblem, solution: Solution) -> SeparationCertificate:
    return SeparationCertificate(**_separation_measures(problem, solution))


@certify.register
def _(problem: LeastSquaresProblem, solution: Solution) -> LeastSquaresCertificate:
    Z, weights = problem.Z, problem.row_weights
    a = Z.pack(solution.w, solution.b)
    error = Z.dot(a) - problem.margins
    gradient = problem.restrict(_gradient(Z, weights * error) + problem.ridge * a)
    sizes = np.sqrt(weights @ error**2) + np.sqrt(weights @ problem.margins**2)
    # What each entry of the gradient could be at most: features of any scale count alike.
    columns = np.sqrt(Z.rows_per_sample * Z.squared_columns(problem.weights))
    scale = np.tile(columns, Z.n_vectors) * sizes + problem.ridge * np.abs(a)
    gradient = np.abs(gradient) / np.where(scale > 0, scale, 1.0)
    return LeastSquaresCertificate(
        **_separation_measures(problem, solution),
        stationarity=float(gradient.max()),
        residual=float(weights @ error**2 + problem.ridge * (a @ a)),
    )


def _gradient(Z: Samples, u: Floats) -> Floats:
    """Zᵀu with the plain bias, whichever convention the algorithm used."""
    gradient = Z.adjoint(u).reshape(Z.n_vectors, -1)
    gradient[:, -1] /= Z.bias_step or 1.0
    return gradient.ravel()


@certify.register
def _(problem: KernelSeparationProblem, solution: Solution) -> SeparationCertificate:
    assert solution.alpha is not None
    b = float(solution.b[0])
    scores, magnitude = _kernel_scores(problem, solution.alpha * problem.y)
    norm = np.sqrt(max(float((solution.alpha * problem.y) @ scores), 0.0))
    margins = problem.y * (scores + b)
    largest = float(problem.kernel.diagonal(problem.X)[problem.index].max())
    radius = np.sqrt(max(largest, 0.0))  # an indefinite kernel may have no radius
    step = np.sqrt(max(problem.bias_step, 0.0))
    n_terms = int(np.count_nonzero(solution.alpha)) + 1
    return SeparationCertificate(
        n_samples=problem.index.size,
        n_errors=int((margins <= 0).sum()),
        margin=float(margins.min()),
        geometric_margin=_ratio(margins.min(), norm),
        rounding=4 * ROUNDING * np.sqrt(n_terms) * (magnitude + abs(b)),
        radius=radius,
        augmented_margin=_ratio(margins.min(), np.hypot(norm, b / step if step else 0.0)),
        augmented_radius=np.hypot(radius, step),
    )


@certify.register
def _(problem: MarginProblem, solution: Solution) -> MarginCertificate:
    assert solution.alpha is not None
    alpha = np.clip(solution.alpha, 0.0, problem.upper)
    box = float(np.abs(alpha - solution.alpha).max())
    box = max(box, problem.total - float(alpha.sum()))
    below, above = alpha < problem.upper, alpha > 0.0
    balance = abs(float(problem.y @ alpha)) if problem.balanced else 0.0
    alpha = _balanced(alpha, problem.y) if problem.balanced else alpha
    scores, _ = _kernel_scores(problem, alpha * problem.y)
    margins = problem.y * (scores + float(solution.b[0]))
    square = float((alpha * problem.y) @ scores)
    dual = problem.linear * float(alpha.sum()) - 0.5 * square
    dual -= 0.5 * float(problem.ridge @ alpha**2)
    rho = _best_rho(problem, margins) if problem.total else problem.linear
    primal = _primal(problem, square, margins, rho)
    # ∂/∂α_i of the dual with b as the multiplier of yᵀα = 0, and ρ as that of 1ᵀα ≥ s.
    slope = margins + problem.ridge * alpha - rho
    violation = max(
        float(np.max(-slope[below], initial=0.0)),
        float(np.max(slope[above], initial=0.0)),
    )
    gap = primal - dual
    relative = gap / max(abs(primal), np.finfo(float).tiny)
    return MarginCertificate(primal, dual, gap, relative, violation, balance, box)


def _best_rho(problem: MarginProblem, margins: Floats) -> float:
    """The ρ that minimises −sρ + Σ u_i (ρ − y_i g(x_i))₊: a weighted quantile of the margins."""
    order = np.argsort(margins, kind="stable")
    sums = np.cumsum(problem.upper[order])
    reached = int(np.searchsorted(sums, problem.total * (1.0 - 1e-12)))
    return float(margins[order[min(reached, order.size - 1)]])


def _primal(problem: MarginProblem, square: float, margins: Floats, rho: float) -> float:
    """P(w, b); for the hard margin that of the plane scaled up until every y g(x) ≥ 1."""
    if problem.total:
        slack = np.maximum(rho - margins, 0.0)
        return 0.5 * square - problem.total * rho + float(problem.upper @ slack)
    hard = np.isinf(problem.upper) & (problem.ridge == 0.0)
    if hard.all():
        smallest = float(margins.min())
        return 0.5 * square / min(smallest, 1.0) ** 2 if smallest > 0 else np.inf
    slack = np.maximum(1.0 - margins, 0.0)
    if slack[hard].any():
        return np.inf
    linear, squared = np.isfinite(problem.upper), problem.ridge > 0.0
    cost = float(problem.upper[linear] @ slack[linear])
    return 0.5 * square + cost + float((0.5 / problem.ridge[squared]) @ slack[squared] ** 2)


def _balanced(alpha: Floats, y: Floats) -> Floats:
    """Shrink the heavier class of α until yᵀα = 0: it stays in its box."""
    sums = alpha[y > 0].sum(), alpha[y < 0].sum()
    target = min(sums)
    factors = [target / total if total > 0 else 0.0 for total in sums]
    return np.where(y > 0, factors[0], factors[1]) * alpha


def _separation_measures(problem: SeparationProblem, solution: Solution) -> dict[str, Any]:
    Z = problem.Z
    a = Z.pack(solution.w, solution.b)
    margins = Z.dot(a)
    lengths = np.sqrt(Z.squared_norms())
    per_sample = Z.worst_of_each(margins)
    largest = float(lengths.max())
    u = solution.multipliers
    return {
        "n_samples": Z.n_samples,
        "n_errors": int((per_sample <= 0).sum()),
        "margin": float(margins.min()),
        "geometric_margin": float((margins / _plane_norms(Z, solution.w)).min()),
        "rounding": _rounding(Z, a, margins, largest),
        "radius": float(np.sqrt(Z.squared_rows.max())),
        "augmented_margin": _ratio(margins.min(), Z.norm(a)),
        "augmented_radius": largest,
        "refutation": None if u is None else gordan_residual(Z, u),
        "refutes": u is not None and refutes(Z, u),
    }


def _rounding(Z: Samples, a: Floats, margins: Floats, largest: float) -> float:
    """Bound what rounding may have added to the smallest margin (Higham, 2002, section 3.1)."""
    unit = (Z.X.shape[1] + 2) * ROUNDING
    crude = unit * largest * Z.norm(a)  # γ_n ‖z‖ ‖a‖
    smallest = float(margins.min())
    if not 0.0 < smallest <= crude:
        return float(crude)
    # Features of uneven scale make that bound far too large: γ_n |z|·|a|, sample by sample.
    return smallest - float((margins - unit * Z.magnitude(a)).min())


def _plane_norms(Z: Samples, w: Floats) -> Floats | float:
    """‖w‖ that turns each row's functional margin into a distance; ∞ where there is no plane."""
    if Z.n_vectors == 1:
        norm = float(np.linalg.norm(w))
        return norm if norm > 0 else np.inf
    pairwise = np.array([np.linalg.norm(w - row, axis=1) for row in w])
    norms = pairwise[Z.labels[:, np.newaxis], Z.rivals].ravel()  # type: ignore[attr-defined]
    return np.where(norms > 0, norms, np.inf)


def refutes(Z: Samples, u: Floats) -> bool:
    """Return whether u proves that Za > 0 has no solution.

    Rounding leaves a residual r = Zᵀu even of a true proof, and a margin of a few rounding units
    leaves one as small. But u less its projection onto the range of Z (the rows used) is an exact
    solution, and moved by at most ‖r‖/σ, σ their smallest singular value: where that is less than
    the smallest entry of u, it is positive still. Where σ is 0, or as good as, only rational
    numbers know: what they do not show proves nothing.
    """
    if not gordan_residual(Z, u) <= 64.0 * ROUNDING * np.sqrt(Z.shape[1]):
        return False
    support = np.flatnonzero(u)
    scale = np.sqrt(np.tile(Z.squared_columns(np.ones(Z.n_samples)), Z.n_vectors))
    scale = np.where(scale > 0, scale, 1.0)
    square = np.zeros((Z.shape[1], Z.shape[1]))
    residual = np.zeros(Z.shape[1], dtype=np.longdouble)
    for block in blocks_of(support.size, Z.shape[1]):
        rows = Z.take(support[block]) / scale
        square += rows.T @ rows
        residual += u[support[block]].astype(np.longdouble) @ rows.astype(np.longdouble)
    values = eigvalsh(square)
    if values[0] > 1e-12 * values[-1]:
        moved = 2.0 * np.linalg.norm(residual.astype(float)) / np.sqrt(values[0])
        return bool(moved < u[support].min())
    return support.size * Z.shape[1] <= LARGEST_EXACT and _holds_exactly(
        Z.take(support), u[support]
    )


def _holds_exactly(rows: Floats, u: Floats) -> bool:
    """Whether Σ u_i z_i = 0 has an exact solution u ≥ 0, u ≠ 0, near the one given.

    Tried are u itself, its neighbours of small denominator (which integer data have), and, where
    the system is small, elimination over the rationals.
    """
    equations = [[Fraction(entry) for entry in column] for column in rows.T.tolist()]
    given = [Fraction(share) for share in u.tolist()]
    for values in (given, [share.limit_denominator(10**6) for share in given]):
        sums = (sum(a * b for a, b in zip(e, values, strict=True) if a) for e in equations)
        if max(values) > 0 and not any(sums):
            return True
    if rows.shape[0] * rows.shape[1] ** 2 > LARGEST_ELIMINATION:
        return False
    values = _eliminate(equations, given)
    return min(values) >= 0 and max(values) > 0


def _eliminate(equations: list[list[Fraction]], values: list[Fraction]) -> list[Fraction]:
    """Solve homogeneous equations exactly; free variables keep the values given."""
    pivots: list[tuple[int, list[Fraction]]] = []
    for equation in equations:
        for pivot, other in pivots:
            factor = equation[pivot]
            if factor:
                equation = [a - factor * b for a, b in zip(equation, other, strict=True)]
        open_ones = [k for k, entry in enumerate(equation) if entry]
        if open_ones:
            # Large shares are solved for: they stay positive, and small ones are left alone.
            pivot = max(open_ones, key=lambda k: values[k])
            scale = equation[pivot]
            pivots.append((pivot, [entry / scale for entry in equation]))
    values = list(values)
    for pivot, equation in reversed(pivots):
        others = (e * values[k] for k, e in enumerate(equation) if e and k != pivot)
        values[pivot] = -sum(others, Fraction(0))
    return values


def gordan_residual(Z: Samples, u: Floats) -> float:
    """‖Zᵀu‖∞ relative to Σ u_i |z_ij|, or ∞ for u that is no convex combination."""
    if u.min() < 0 or not np.isclose(u.sum(), 1.0):
        return np.inf
    support = np.flatnonzero(u)
    residual = np.zeros(Z.shape[1], dtype=np.longdouble)
    scale = np.zeros(Z.shape[1])
    for block in blocks_of(support.size, Z.shape[1]):
        rows, share = Z.take(support[block]), u[support[block]]
        residual += share.astype(np.longdouble) @ rows.astype(np.longdouble)
        scale += share @ np.abs(rows)
    # One scale a feature, whichever class's weight vector it belongs to.
    scale = scale.reshape(Z.n_vectors, -1).max(axis=0)
    worst = np.abs(residual).reshape(Z.n_vectors, -1).max(axis=0)
    return float((worst / np.where(scale > 0, scale, 1.0)).max())


def _kernel_scores(
    problem: KernelSeparationProblem | MarginProblem, coefficients: Floats
) -> tuple[Floats, float]:
    """Return Σ_l c_l K(x_l, x_m) for every m, and the largest Σ_l |c_l K(x_l, x_m)|, in float64."""
    support = np.flatnonzero(coefficients)
    n = problem.index.size

    def part(rows: slice, stop: Event) -> tuple[Floats, float]:
        scores, magnitude = np.zeros(rows.stop - rows.start), np.zeros(rows.stop - rows.start)
        for first in range(0, support.size, TILE):
            if stop.is_set():
                break
            some = support[first : first + TILE]
            tile = _float64_gram(
                problem.kernel, problem.X, problem.index[rows], problem.index[some]
            )
            scores += tile @ coefficients[some]
            magnitude += np.abs(tile) @ np.abs(coefficients[some])
        return scores, float(magnitude.max())

    slices = [slice(k, min(k + TILE, n)) for k in range(0, n, TILE)]
    parts = in_parallel(part, slices, alone=not problem.kernel.elementwise)
    return np.concatenate([scores for scores, _ in parts]), max(size for _, size in parts)


def _float64_gram(kernel: Kernel, X: Any, rows: Integers, columns: Integers) -> Floats:
    if isinstance(kernel, Precomputed):
        return np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)
    return kernel(X[rows].astype(np.float64), X[columns].astype(np.float64))


def margin_bound(Z: Samples, alpha: Floats | None) -> float:
    """Return half the distance of two points in the hulls of two classes: no margin exceeds it.

    The points are the combinations of each class with weights proportional to ``alpha`` ≥ 0.
    """
    if alpha is None or alpha.min() < 0:
        return np.inf
    shares = np.where(Z.labels > 0, alpha, 0.0), np.where(Z.labels < 0, alpha, 0.0)
    if not (shares[0].any() and shares[1].any()):
        return np.inf
    u = shares[0] / shares[0].sum() + shares[1] / shares[1].sum()
    return 0.5 * float(np.linalg.norm(Z.adjoint(u)[:-1]))


def _ratio(value: float, norm: float) -> float:
    return float(value / norm) if norm > 0 else 0.0
