"""Compiled sums over the rows of small machines of the squared hinge, for `dense_newton`.

Rows are a_i = y_i (x_i, 1); ``steepness`` holds 1/D, one number or one per row; M is a diagonal.
"""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled


@compiled
def measure(rows, steepness, is_positive, balances, M, v, z, gradient):
    """Fill in z = 1 − a·v and the gradient Mv − Σ α a of P; return P, D, and the errors.

    D is that of α after the heavier class was shrunk, where ``balances``.
    """
    n, width = rows.shape
    combined = np.zeros((2, width))
    total = np.zeros(2)
    square = np.zeros(2)
    errors = 0
    for i in range(n):
        margin = 0.0
        for j in range(width):
            margin += rows[i, j] * v[j]
        z[i] = 1.0 - margin
        if z[i] <= 0.0:
            continue
        errors += z[i] > 1.0
        side = 1 if is_positive[i] else 0
        alpha = z[i] * steepness[i if steepness.size > 1 else 0]
        total[side] += alpha
        square[side] += alpha * z[i]
        for j in range(width):
            combined[side, j] += alpha * rows[i, j]
    shares = np.ones(2)
    if balances:
        lighter = min(total[0], total[1])
        for side in range(2):
            shares[side] = lighter / total[side] if total[side] > 0.0 else 0.0
    primal = 0.5 * (square[0] + square[1])
    dual = 0.0
    for side in range(2):
        dual += shares[side] * total[side] - 0.5 * shares[side] ** 2 * square[side]
    for j in range(width):
        gradient[j] = M[j] * v[j] - combined[0, j] - combined[1, j]
        primal += 0.5 * M[j] * v[j] ** 2
        dual -= 0.5 * M[j] * (shares[0] * combined[0, j] + shares[1] * combined[1, j]) ** 2
    return primal, dual, errors


@compiled
def solve_newton(rows, steepness, M, z, gradient, least_curvature, direction):
    """Fill in −H⁻¹g with H = M + Σ a aᵀ/D over z > 0; return whether H is positive definite.

    H of the bias is at least ``least_curvature``.
    """
    n, width = rows.shape
    H = np.zeros((width, width))
    for i in range(n):
        if z[i] <= 0.0:
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
def slope_of_losses(z, change, steepness, t):
    """Return the slope of Σ h(z − t·change) in t."""
    slope = 0.0
    for i in range(z.size):
        there = z[i] - t * change[i]
        if there > 0.0:
            slope -= there * change[i] * steepness[i if steepness.size > 1 else 0]
    return slope
