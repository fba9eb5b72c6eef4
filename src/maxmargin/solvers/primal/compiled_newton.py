"""Compiled sums over the rows of small machines of a squared loss, for `dense_newton`.

Rows are a_i = (x_i, 1); ``steepness`` holds 1/D, one number or one per row; M is a diagonal. f is
β_i D_i, the slack with its sign: 0 of a row without loss.
"""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled, compiled_part


@compiled_part
def _slope(r, y, two_sided, epsilon):
    """Return D times the derivative of the loss."""
    if two_sided:
        return max(r - epsilon, 0.0) + min(r + epsilon, 0.0)
    return r if y * r > 0.0 else 0.0


@compiled
def measure(rows, y, two_sided, epsilon, steepness, balances, M, v, r, f, gradient):
    """Fill in r = y − a·v, f and the gradient Mv − Σ βa of P; return P, D, and the errors.

    D is that of β after the heavier sign was shrunk, where ``balances``.
    """
    n, width = rows.shape
    combined = np.zeros((2, width))
    total = np.zeros(2)
    gain = np.zeros(2)
    square = np.zeros(2)
    errors = 0
    for i in range(n):
        score = 0.0
        for j in range(width):
            score += rows[i, j] * v[j]
        r[i] = y[i] - score
        f[i] = _slope(r[i], y[i], two_sided, epsilon)
        if f[i] == 0.0:
            continue
        errors += two_sided or abs(f[i]) > 1.0
        side = 1 if f[i] > 0.0 else 0
        beta = f[i] * steepness[i if steepness.size > 1 else 0]
        total[side] += abs(beta)
        gain[side] += beta * y[i] - epsilon * abs(beta)
        square[side] += beta * f[i]
        for j in range(width):
            combined[side, j] += beta * rows[i, j]
    shares = np.ones(2)
    if balances:
        lighter = min(total[0], total[1])
        for side in range(2):
            shares[side] = lighter / total[side] if total[side] > 0.0 else 0.0
    primal = 0.5 * (square[0] + square[1])
    dual = 0.0
    for side in range(2):
        dual += shares[side] * gain[side] - 0.5 * shares[side] ** 2 * square[side]
    for j in range(width):
        gradient[j] = M[j] * v[j] - combined[0, j] - combined[1, j]
        primal += 0.5 * M[j] * v[j] ** 2
        dual -= 0.5 * M[j] * (shares[0] * combined[0, j] + shares[1] * combined[1, j]) ** 2
    return primal, dual, errors


@compiled
def solve_newton(rows, steepness, M, f, gradient, least_curvature, direction):
    """Fill in −H⁻¹g with H = M + Σ a aᵀ/D over f ≠ 0; return whether H is positive definite.

    H of the bias is at least ``least_curvature``.
    """
    n, width = rows.shape
    H = np.zeros((width, width))
    for i in range(n):
        if f[i] == 0.0:
            continue
        weight = steepness[i if steepness.size > 1 else 0]
        for j in range(width):
            part = weight * rows[i, j]
            for k in range(j + 1):
                H[j, k] += part * rows[i, k]
    for j in range(width):
        H[j, j] += M[j]
    H[-1, -1] = max(H[-1, -1], least_curvature)
    # Cholesky's factors of the lower triangle, and the solution in their steps.
    for j in range(width):
        for k in range(j):
            part = H[j, k]
            for m in range(k):
                part -= H[j, m] * H[k, m]
            H[j, k] = part / H[k, k]
        pivot = H[j, j]
        for m in range(j):
            pivot -= H[j, m] ** 2
        if not pivot > 0.0:
            return False
        H[j, j] = np.sqrt(pivot)
        part = -gradient[j]
        for k in range(j):
            part -= H[j, k] * direction[k]
        direction[j] = part / H[j, j]
    for j in range(width - 1, -1, -1):
        direction[j] /= H[j, j]
        for k in range(j):
            direction[k] -= H[j, k] * direction[j]
    return True


@compiled
def slope_of_losses(r, y, two_sided, epsilon, change, steepness, t):
    """Return the slope of the losses at r − t·change in t."""
    slope = 0.0
    for i in range(r.size):
        there = _slope(r[i] - t * change[i], y[i], two_sided, epsilon)
        if there != 0.0:
            slope -= there * change[i] * steepness[i if steepness.size > 1 else 0]
    return slope
