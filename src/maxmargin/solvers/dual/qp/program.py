"""A convex quadratic program, and its solution with what can be checked about it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from scipy import sparse

from ....arrays import Floats
from ....progress import Limits
from .libraries import Answer, Program, TimeUpError

Library = Literal["auto", "piqp", "clarabel"]


@dataclass(frozen=True)
class Tuning:
    """What the call of a library is tuned by."""

    max_iter: int = 60
    # Variables up to which a library is called in this process: about a tenth of a second.
    here_up_to_variables: int = 800
    # Seconds that a library has at least.
    least_seconds: float = 1e-3
    # Residuals and gap of a solved program, relative to what they are the difference of.
    accuracy: float = 1e-8
    # What a normalised direction may leave of Pd = 0, Gd ≤ 0, Ad = 0 to be one without end.
    ray_residual: float = 1e-6


TUNING = Tuning()


class QPStatus(StrEnum):
    """How a quadratic program ended.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.qp.QPStatus("solved").name
    'SOLVED'
    """

    SOLVED = "solved"
    UNBOUNDED = "unbounded"
    INFEASIBLE = "infeasible"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INACCURATE = "not solved to the tolerance"


@dataclass(frozen=True)
class QP:
    """A quadratic program, min ½xᵀPx + qᵀx subject to Gx ≤ h, Ax = b.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Symmetric, positive semidefinite.
    q : ndarray of shape (n,)
        Linear term of the objective.
    G : array or sparse matrix of shape (m, n)
        Left side of the inequalities.
    h : ndarray of shape (m,)
        Right side of the inequalities; ∞ is no constraint.
    A : array or sparse matrix of shape (k, n)
        Left side of the equations.
    b : ndarray of shape (k,)
        Right side of the equations.

    Examples
    --------
    >>> import maxmargin as mm
    >>> none = np.empty((0, 1)), np.empty(0)
    >>> mm.qp.QP(np.eye(1), -np.ones(1), *none, *none).objective(np.ones(1))
    -0.5
    """

    P: Floats
    q: Floats
    G: Any
    h: Floats
    A: Any
    b: Floats

    def objective(self, x: Floats) -> float:
        """Return ½xᵀPx + qᵀx.

        Parameters
        ----------
        x : ndarray of shape (n,)
            A point.

        Returns
        -------
        float
            The objective at x.
        """
        return float(0.5 * (x @ self.P @ x) + self.q @ x)


@dataclass(frozen=True)
class QPSolution:
    """A solution x with the multipliers of its constraints, and their residuals.

    Parameters
    ----------
    x : ndarray of shape (n,)
        The solution; for an unbounded program a direction of descent with Σ|x_i| = 1 instead.
    equality : ndarray of shape (k,)
        Multipliers of Ax = b, with Px + q + Gᵀz + Aᵀy = 0.
    inequality : ndarray of shape (m,)
        Multipliers z ≥ 0 of Gx ≤ h.
    status : QPStatus
        How the library ended.
    objective : float
        ½xᵀPx + qᵀx.
    primal_residual, dual_residual, gap : float
        max(Gx − h, |Ax − b|), ‖Px + q + Gᵀz + Aᵀy‖∞ and |xᵀPx + qᵀx + hᵀz + bᵀy|, recomputed from
        the program.
    n_iter : int
        Iterations of the library.
    seconds : float
        Time of the solution.
    solver : str
        The library.

    Examples
    --------
    >>> import maxmargin as mm
    >>> none = np.empty((0, 1)), np.empty(0)
    >>> mm.qp.solve(mm.qp.QP(np.eye(1), -np.ones(1), *none, *none)).status
    <QPStatus.SOLVED: 'solved'>
    """

    x: Floats
    equality: Floats
    inequality: Floats
    status: QPStatus
    objective: float
    primal_residual: float
    dual_residual: float
    gap: float
    n_iter: int
    seconds: float
    solver: str


def solve(
    qp: QP,
    solver: Library = "auto",
    *,
    tol: float = 1e-9,
    limits: Limits | None = None,
) -> QPSolution:
    """Solve a convex quadratic program with PIQP or Clarabel.

    Parameters
    ----------
    qp : QP
        The program.
    solver : {"auto", "piqp", "clarabel"}, default="auto"
        The library; by default PIQP, which is faster for dense P, or Clarabel without it.
    tol : float, default=1e-9
        Residuals and duality gap, absolute and relative.
    limits : Limits, optional
        Iterations (60 by default) and seconds. A program of more than 800 variables is solved in a
        separate process, which is ended at the time limit, without an x, and at Ctrl-C.

    Returns
    -------
    QPSolution
        The solution, with residuals recomputed from the program.

    Examples
    --------
    >>> qp = QP(np.eye(2), np.zeros(2), np.empty((0, 2)), np.empty(0), np.ones((1, 2)), np.ones(1))
    >>> print(solve(qp).x.round(6))  # the point of x₁ + x₂ = 1 nearest to 0
    [0.5 0.5]
    """
    _check(qp)
    limits = limits or Limits()
    name = _choose(solver)
    started = time.perf_counter()
    answer = _ask(qp, name, tol, limits)
    status, x = QPStatus(answer.status), answer.x
    residuals = _residuals(qp, x, answer.y, answer.z)
    if _optimal(qp, x, residuals):
        status = QPStatus.SOLVED
    elif (ray := _ray(qp, x)) is not None:
        status, x = QPStatus.UNBOUNDED, ray
    elif _refuted(qp, answer.y, answer.z):
        status = QPStatus.INFEASIBLE
    elif status is QPStatus.SOLVED:
        status = QPStatus.INACCURATE
    return QPSolution(
        x, answer.y, answer.z, status, qp.objective(x), *residuals,
        answer.n_iter, time.perf_counter() - started, name,
    )  # fmt: skip


def _check(qp: QP) -> None:
    """Raise an error for matrices that do not fit each other or are not finite."""
    n = len(qp.q)
    shapes = {"P": (n, n), "G": (len(qp.h), n), "A": (len(qp.b), n)}
    for name, expected in shapes.items():
        if np.shape(getattr(qp, name)) != expected:
            raise ValueError(
                f"{name} has shape {np.shape(getattr(qp, name))} for {n} variables: "
                f"pass {expected}."
            )
    for name in ("P", "q", "G", "A", "b"):
        value = getattr(qp, name)
        if not np.isfinite(value.data if sparse.issparse(value) else value).all():
            raise ValueError(f"{name} holds NaN or ∞: pass finite numbers.")
    if np.isnan(qp.h).any() or (qp.h == -np.inf).any():
        raise ValueError("h holds NaN or −∞: pass numbers, or ∞ for no constraint.")
    asymmetry = float(np.abs(qp.P - qp.P.T).max(initial=0.0))
    if asymmetry > 1e-8 * float(np.abs(qp.P).max(initial=0.0)):
        raise ValueError(f"P is not symmetric, by up to {asymmetry:.3g}: pass (P + P.T)/2.")


def _ask(qp: QP, library: str, tol: float, limits: Limits) -> Answer:
    """Return the library's answer; x = 0 where the time was up before there was one."""
    seconds = np.inf if limits.seconds is None else float(limits.seconds)
    max_iter = TUNING.max_iter if limits.iterations is None else limits.iterations
    program = Program(
        qp.P,
        qp.q,
        qp.G,
        qp.h,
        qp.A,
        qp.b,
        library,
        tol,
        max_iter,
        max(seconds, TUNING.least_seconds),
    )
    try:
        return (
            program.answer_elsewhere()
            if len(qp.q) > TUNING.here_up_to_variables
            else program.answer()
        )
    except TimeUpError:
        x, y, z = (np.zeros(len(part)) for part in (qp.q, qp.b, qp.h))
        return Answer(x, y, z, QPStatus.TIME_LIMIT.value, 0)


def _choose(solver: Library) -> str:
    """Return the library to call; raise where it is not installed."""
    preferred = ("piqp", "clarabel")
    if solver not in ("auto", *preferred):
        raise ValueError(f"solver must be 'auto', 'piqp' or 'clarabel', got {solver!r}.")
    wanted = preferred if solver == "auto" else (solver,)
    for name in wanted:
        if find_spec(name) is not None:
            return name
    raise ImportError(
        f'a general quadratic program needs {" or ".join(wanted)}: pip install "maxmargin[qp]", '
        'or in a clone of the repository pip install ".[qp]"'
    )


def _optimal(qp: QP, x: Floats, residuals: tuple[float, float, float]) -> bool:
    """Whether residuals and gap are small, each relative to what it is the difference of."""
    primal, dual, gap = residuals
    sizes = (
        np.abs(qp.h[np.isfinite(qp.h)]).max(initial=1.0),
        np.abs(qp.P @ x).max(initial=1.0),
        max(abs(qp.objective(x)), 1.0),
    )
    return all(
        r <= TUNING.accuracy * size for r, size in zip((primal, dual, gap), sizes, strict=True)
    )


def _ray(qp: QP, x: Floats) -> Floats | None:
    """Return x/Σ|x_i| if the program falls along it for ever: Pd = 0, qᵀd < 0, Gd ≤ 0, Ad = 0."""
    total = float(np.abs(x).sum())
    if not np.isfinite(total) or total == 0.0:
        return None
    d = x / total
    bounded = np.isfinite(qp.h)
    flat = np.abs(qp.P @ d).max() <= TUNING.ray_residual * max(float(np.abs(qp.P).max()), 1e-300)
    inside = (qp.G @ d)[bounded].max(initial=0.0) <= TUNING.ray_residual
    along = np.abs(qp.A @ d).max(initial=0.0) <= TUNING.ray_residual
    return (
        d
        if flat and inside and along and qp.q @ d < -TUNING.ray_residual * np.abs(qp.q).max()
        else None
    )


def _refuted(qp: QP, y: Floats, z: Floats) -> bool:
    """Whether the multipliers show that nothing is feasible: Gᵀz + Aᵀy = 0, hᵀz + bᵀy < 0."""
    total = float(np.abs(y).sum() + z.sum())
    if not np.isfinite(total) or total == 0.0 or z.min(initial=0.0) < 0.0:
        return False
    y, z, bounded = y / total, z / total, np.isfinite(qp.h)
    right = float(qp.h[bounded] @ z[bounded] + qp.b @ y)
    return bool(
        np.abs(qp.G.T @ z + qp.A.T @ y).max() <= TUNING.ray_residual
        and right < -TUNING.ray_residual * np.abs(qp.h[bounded]).max(initial=1.0)
    )


def _residuals(qp: QP, x: Floats, y: Floats, z: Floats) -> tuple[float, float, float]:
    bounded = np.isfinite(qp.h)
    excess = (qp.G @ x)[bounded] - qp.h[bounded]
    primal = max(float(excess.max(initial=0.0)), float(np.abs(qp.A @ x - qp.b).max(initial=0.0)))
    Px = qp.P @ x
    dual = float(np.abs(Px + qp.q + qp.G.T @ z + qp.A.T @ y).max())
    gap = abs(float(x @ Px + qp.q @ x + qp.h[bounded] @ z[bounded] + qp.b @ y))
    return primal, dual, gap
