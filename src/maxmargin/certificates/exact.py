"""Linear systems of float64 numbers in exact arithmetic.

float64 numbers are dyadic, so that rows times powers of two are integers. Independent rows are
found by elimination modulo a prime; square systems are solved by p-adic lifting (Dixon,
*Numerische Mathematik* 40, 1982): one inverse modulo p, then a digit of the solution per step, with
floating-point products that are exact because their factors have few bits.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers

Exact = NDArray[Any]  # of Python integers
Residues = NDArray[np.int64]

PRIME = 2**31 - 1
# Bits of the parts of integers whose products BLAS sums exactly, for up to some thousand terms.
PART_BITS = 20
# Bits to which the values of free variables are rounded.
FREE_VARIABLE_BITS = 30


@dataclass(frozen=True)
class Deadline:
    """A time limit for exact arithmetic, whose integers may become long."""

    seconds: float
    started: float = field(default_factory=time.perf_counter)

    @property
    def passed(self) -> bool:
        """Whether the time limit has been reached."""
        return time.perf_counter() - self.started > self.seconds


def integer_columns(rows: Floats) -> Exact:
    """Return rows as integers, each column multiplied by a power of two."""
    mantissas, exponents = np.frexp(np.asarray(rows, dtype=np.float64))
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    low = whole & -whole
    zeros = np.where(whole != 0, np.frexp(low.astype(np.float64))[1] - 1, 0)
    whole >>= zeros
    exponents = exponents.astype(np.int64) - 53 + zeros
    least = np.where(whole != 0, exponents, np.iinfo(np.int64).max).min(axis=0, initial=2**62)
    shift = np.where(whole != 0, exponents - least, 0)
    return np.left_shift(whole.astype(object), shift.astype(object))


def exact_multipliers(rows: Floats, u: Floats, deadline: Deadline) -> Exact | None:
    """Return integers v ≥ 0, v ≠ 0 with Σ v_i rows_i = 0, about proportional to u, or None."""
    return exact_solution(integer_columns(rows), u, deadline)


def exact_solution(rows: Exact, u: Floats, deadline: Deadline) -> Exact | None:
    """Return the same as `exact_multipliers`, for rows of integers.

    The unknowns are the largest u_i whose rows are independent; the others keep their values. None
    if there is no such v, if an entry is negative, or if the time limit is reached.
    """
    order = np.argsort(-u, kind="stable")
    equations = rows[order].T
    equations = equations[[any(equation) for equation in equations]]
    if not len(equations):
        return np.array([1] * u.size, dtype=object)
    residues = (equations % PRIME).astype(np.int64)
    chosen, pivots = independent(residues, deadline)
    free = np.setdiff1d(np.arange(u.size), pivots)
    if not free.size or deadline.passed:
        return None
    values = np.ones(free.size, dtype=object)
    if free.size > 1:
        scaled = np.ldexp(u[order][free] / u.max(), FREE_VARIABLE_BITS)
        values = np.array([max(1, round(share)) for share in scaled.tolist()], dtype=object)
    right = -(equations[np.ix_(chosen, free)] @ values)
    found = solve_integers(equations[np.ix_(chosen, pivots)], right, deadline)
    if found is None:
        return None
    numerators, denominator = found
    v = np.zeros(u.size, dtype=object)
    v[pivots], v[free] = numerators, values * denominator
    if min(v) < 0 or (equations @ v).any():
        return None
    unordered = np.zeros(u.size, dtype=object)
    unordered[order] = v
    return unordered


def independent(matrix: Residues, deadline: Deadline) -> tuple[Integers, Integers]:
    """Return rows and columns of a largest block that is regular modulo the prime.

    A column is chosen if it does not depend on those before it. Columns that are independent modulo
    a prime are independent.
    """
    work = matrix.copy()
    rows, columns = np.arange(len(work)), []
    rank = 0
    for column in range(work.shape[1]):
        if rank == len(work) or deadline.passed:
            break
        below = np.flatnonzero(work[rank:, column])
        if not below.size:
            continue
        pivot = rank + int(below[0])
        work[[rank, pivot]], rows[[rank, pivot]] = work[[pivot, rank]], rows[[pivot, rank]]
        work[rank] = work[rank] * pow(int(work[rank, column]), -1, PRIME) % PRIME
        others = rank + 1 + np.flatnonzero(work[rank + 1 :, column])
        factors = work[others, column][:, np.newaxis]
        work[others] = (work[others] - factors * work[rank] % PRIME) % PRIME
        columns.append(column)
        rank += 1
    return rows[:rank], np.array(columns, dtype=np.intp)


def solve_integers(A: Exact, b: Exact, deadline: Deadline) -> tuple[Exact, int] | None:
    """Return x and a common denominator q > 0 with Ax = qb, A regular modulo the prime.

    None if the time limit is reached before there are enough digits.
    """
    inverse = _inverse((A % PRIME).astype(np.int64), deadline)
    if inverse is None:
        return None
    parts, inverse_parts = _parts(A), _parts(inverse.astype(object))
    residual, solution, modulus, attempt = b.copy(), np.zeros(b.size, dtype=object), 1, 2
    steps = 0
    while not deadline.passed:
        digit = _product(inverse_parts, (residual % PRIME).astype(np.int64)) % PRIME
        solution = solution + digit * modulus
        modulus *= PRIME
        residual = (residual - _product(parts, digit.astype(np.int64))) // PRIME
        steps += 1
        if steps == attempt or not residual.any():
            attempt *= 2
            found = _rationals(solution, modulus)
            if found is not None and not (A @ found[0] - found[1] * b).any():
                return found
    return None


def _inverse(A: Residues, deadline: Deadline) -> Residues | None:
    """Return A⁻¹ modulo the prime (Gauss–Jordan)."""
    n = len(A)
    work = np.hstack([A, np.eye(n, dtype=np.int64)])
    for k in range(n):
        if deadline.passed:
            return None
        pivot = k + int(np.flatnonzero(work[k:, k])[0])
        work[[k, pivot]] = work[[pivot, k]]
        work[k] = work[k] * pow(int(work[k, k]), -1, PRIME) % PRIME
        others = np.flatnonzero(work[:, k])
        others = others[others != k]
        work[others] = (work[others] - work[others, k][:, np.newaxis] * work[k] % PRIME) % PRIME
    return work[:, n:]


def _parts(A: Exact) -> list[Floats]:
    """Return matrices of short integers, as floats, with A = Σ_k 2^(PART_BITS·k) parts_k."""
    signs = np.sign(A).astype(np.float64)
    rest: Exact = np.abs(A)
    parts: list[Floats] = []
    while rest.any() or not parts:
        parts.append(signs * (rest & (2**PART_BITS - 1)).astype(np.float64))
        rest = rest >> PART_BITS
    return parts


def _product(parts: list[Floats], x: Residues) -> Exact:
    """Return Ax exactly, for A in parts and 0 ≤ x < 2³¹."""
    low, high = (x & 0xFFFF).astype(np.float64), (x >> 16).astype(np.float64)
    total: Exact = np.zeros(parts[0].shape[0], dtype=object)
    for k, part in enumerate(parts):
        sums = (part @ high).astype(np.int64).astype(object) * 2**16
        sums = sums + (part @ low).astype(np.int64).astype(object)
        total = total + sums * 2 ** (PART_BITS * k)
    return total


def _rationals(residues: Exact, modulus: int) -> tuple[Exact, int] | None:
    """Return numerators and a common denominator that are ``residues`` modulo ``modulus``.

    Each is the only fraction of that residue with numerator and denominator below √(modulus/2)
    (Wang, 1981); None if some residue has no such fraction.
    """
    bound = math.isqrt(modulus // 2)
    denominator = 1
    for residue in residues.tolist():
        r, s = modulus, (residue * denominator) % modulus
        if min(s, modulus - s) <= bound // denominator:
            continue
        t, v = 0, 1
        while s > bound:
            quotient = r // s
            r, s, t, v = s, r - quotient * s, v, t - quotient * v
        if not v or abs(v) * denominator > bound:
            return None
        denominator *= abs(v)
    numerators = [residue * denominator % modulus for residue in residues.tolist()]
    return np.array([n if 2 * n <= modulus else n - modulus for n in numerators], object), (
        denominator
    )
