"""Certificates of many planes on the same rows: squared hinges, from one pass over all rows.

For P = ½‖w‖² [+ ½b²] + C Σ v z₊², z = 1 − y(w·x + b), every plane names a point of the dual by
itself, α = 2Cv z₊. With a free bias the heavier sign of α is shrunk until yᵀα = 0, and

    D(α) = Σα − ½‖Σ αyx‖² [− ½(Σ αy)²] − Σ α²/(4Cv)

is a lower bound of the optimum: nothing but the plane, X, y, v and C is needed.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..arrays import Floats, Integers
from ..runtime.row_access import rows_of
from ..runtime.team import parallel
from ..runtime.threads import single_threaded_blas
from ..runtime.vectors import part_count, part_rows
from .centring import score_error
from .primal import Measures, PlaneCertificate, shown
from .scores import UNIT

# Rows that are multiplied at a time.
CHUNK_ROWS = 512
# How norms are rounded up.
UPWARDS = 1.0 + 1e-6
SIGNS = np.array([1.0, -1.0])
# Sums of every plane, of each sign of y: Σ v z₊², Σ v z₊, and bounds of the rounding errors of
# Σ v z₊ x; of both: Σ v z₊² with z as large as rounding allows, and the largest error of a score.
LOSS, SLACK, BLUR, MOST_LOSS, ERROR = 0, 2, 4, 6, 7
N_FOUND = 8

Bias = Literal["free", "penalised", "none"]


def certify_planes(
    X: Floats,
    codes: Integers,
    positive: Integers,
    weights: Floats,
    fold: Integers,
    planes: Floats,
    cost: float,
    bias: Bias,
) -> list[PlaneCertificate]:
    """Certify squared hinges at one cost, each by a dual value of its own.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    codes : ndarray of int of shape (n,)
        The class of every row.
    positive : ndarray of int of shape (K,)
        The class whose rows are +1, of every plane.
    weights : ndarray of shape (n_folds, n)
        v of the rows in every fold, 0 of rows that do not count.
    fold : ndarray of int of shape (K,)
        The fold of every plane.
    planes : ndarray of shape (K, d + 1)
        (w, b).
    cost : float
        C.
    bias : {"free", "penalised", "none"}

    Returns
    -------
    list of PlaneCertificate
    """
    (n, d), n_planes = X.shape, len(planes)
    step = part_rows(n, 2.0 * d * n_planes)
    n_parts = part_count(n, step)
    # Of a sum over some rows, and of those of all of them.
    n_terms = CHUNK_ROWS + n // CHUNK_ROWS + 2 * n_parts
    w, b = np.ascontiguousarray(planes[:, :-1]), planes[:, -1].copy()
    lengths = np.sqrt(np.sum(w**2, axis=1)) * UPWARDS
    # A bound of the error of a score per unit of ‖x‖, and what comes with the bias.
    slope, level = (
        np.array([score_error(size, *plane, d) for plane in zip(lengths, np.abs(b), strict=True)])
        for size in (1.0, 0.0)
    )
    found, totals = np.zeros((n_parts, n_planes, N_FOUND)), np.zeros((n_parts, 2, n_planes, d))
    with single_threaded_blas():
        measure(
            n_parts, step, rows_of(X), codes, positive, weights, fold, w, b, slope - level, level,
            float(n_terms), found, totals,
        )  # fmt: skip
    sums, total, counted = found.sum(axis=0), totals.sum(axis=0), np.count_nonzero(weights, axis=1)
    sums[:, ERROR] = found[:, :, ERROR].max(axis=0)
    return [
        _certificate(sums[k], total[:, k], plane, cost, bias, n_terms, int(counted[fold[k]]))
        for k, plane in enumerate(planes)
    ]


def _certificate(
    found: Floats, total: Floats, plane: Floats, cost: float, bias: Bias, n_terms: int, n_rows: int
) -> PlaneCertificate:
    """Return the certificate of a plane: Σ α²/(4Cv) is C Σ v z₊², by the sign of y."""
    loss, slack, blurs = (found[k : k + 2] for k in (LOSS, SLACK, BLUR))
    square, alpha = float(plane[:-1] @ plane[:-1]), 2.0 * cost * slack
    if bias == "penalised":
        square += float(plane[-1]) ** 2
    primal = 0.5 * square + cost * float(loss.sum())
    factors = np.ones(2)
    if bias == "free":
        factors = np.divide(alpha.min(), alpha, out=np.zeros(2), where=alpha > 0.0)
    gain, rest = float(factors @ alpha), float(factors @ (alpha * SIGNS))
    w = 2.0 * cost * (factors * SIGNS) @ total
    dual = gain - 0.5 * float(w @ w) - cost * float(factors**2 @ loss)
    blur = 2.0 * cost * float(factors @ blurs)
    error = blur * (float(np.linalg.norm(w)) + 0.5 * blur)
    if bias == "free":  # what rounding leaves of Σ αy, times another bias
        error += (abs(rest) + n_terms * UNIT * gain) * abs(float(plane[-1]))
    elif bias == "penalised":
        dual -= 0.5 * rest**2
    error += (n_terms + 64) * UNIT * (primal + gain + abs(dual))
    error += cost * max(float(found[MOST_LOSS] - loss.sum()), 0.0)
    balance = abs(float(alpha @ SIGNS)) / max(1.0, float(alpha.sum())) if bias == "free" else 0.0
    measures = Measures(primal, dual, error, 0.0, float(found[ERROR]))
    return shown(measures, balance, 0.0, n_rows)


@parallel
def measure(
    part, step, rows, codes, positive, weights, fold, w, b, slope, level, n_terms, found, totals
):
    """Add what some rows say of every plane: `LOSS`, …, and Σ v z₊ x of each sign of y."""
    X, n_planes, d = rows[0], w.shape[0], w.shape[1]
    last, lines, sums = min((part + 1) * step, X.shape[0]), found[part], totals[part]
    block, norms = np.empty((CHUNK_ROWS, d)), np.empty(CHUNK_ROWS)
    for first in range(part * step, last, CHUNK_ROWS):
        n, largest = min(CHUNK_ROWS, last - first), 0.0
        for r in range(n):
            x, line, square = X[first + r], block[r], 0.0
            for j in range(d):
                line[j] = x[j]
                square += line[j] * line[j]
            norms[r] = np.sqrt(square) * UPWARDS
            largest = max(largest, norms[r])
        scores = np.dot(w, block[:n].T)
        minus = np.empty(scores.shape)
        for k in range(n_planes):
            mine, other, v, line = scores[k], minus[k], weights[fold[k]], lines[k]
            squares = np.zeros(2)
            for r in range(n):
                is_minus = 1 if codes[first + r] != positive[k] else 0
                y, wrong = 1.0 - 2.0 * is_minus, slope[k] * norms[r] + level[k]
                z = 1.0 - y * (mine[r] + b[k])
                slack, most = max(z, 0.0), max(z + wrong, 0.0)
                weighted = v[first + r] * slack
                line[LOSS + is_minus] += weighted * slack
                line[SLACK + is_minus] += weighted
                line[MOST_LOSS] += v[first + r] * most * most
                squares[is_minus] += (weighted * norms[r]) ** 2
                mine[r], other[r] = (0.0, weighted) if is_minus else (weighted, 0.0)
            line[ERROR] = max(line[ERROR], slope[k] * largest + level[k])
            for sign in range(2):
                # |Σ c_r x_r| of n terms is wrong by at most n_terms ε Σ |c_r| ‖x_r‖.
                line[BLUR + sign] += n_terms * UNIT * UPWARDS * np.sqrt(n * squares[sign])
        sums[0] += np.dot(scores, block[:n])
        sums[1] += np.dot(minus, block[:n])
