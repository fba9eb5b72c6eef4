"""Certificates of hinges of several planes on the same rows, from one pass over all rows.

For P = ½‖w‖² [+ ½b²] + C Σ v z₊, z = 1 − y(w·x + b), every plane comes with shares 0 ≤ s ≤ 1 of
rows, which name the point α = Cvs of the dual. With a free bias the heavier sign of α is shrunk
until yᵀα = 0, and

    D(α) = Σα − ½‖Σ αyx‖² [− ½(Σ αy)²]

is a lower bound of the optimum, whatever the shares are: nothing is taken from a solver but they
and the planes.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..arrays import Floats, Matrix, row_length
from ..runtime.row_access import row_square, rows_of
from ..runtime.row_products import add_combinations, products
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
# Of every plane: Σ v z₊, the same with z as large as rounding allows, Σ vs and Σ vsy after yᵀα = 0
# is restored, and bounds of the rounding errors of Σ vsyx; the largest error of a score, and the
# worst violation of the KKT conditions.
LOSS, MOST_LOSS, GAIN, REST, BLUR, ERROR, VIOLATION = range(7)
N_FOUND = 7

Bias = Literal["free", "penalised", "none"]


def certify_hinges(
    X: Matrix,
    y: Floats,
    weights: Floats,
    planes: Floats,
    shares: Floats,
    cost: float,
    bias: Bias,
) -> list[PlaneCertificate]:
    """Certify hinges at one cost.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
        Labels ±1.
    weights : ndarray of shape (K, n)
        v of the rows for every plane, 0 of rows that do not count.
    planes : ndarray of shape (K, d + 1)
        (w, b).
    shares : ndarray of shape (K, n)
        α/(Cv); what is outside of 0 ≤ s ≤ 1 is taken to be at its bound.
    cost : float
        C.
    bias : {"free", "penalised", "none"}

    Returns
    -------
    list of PlaneCertificate
    """
    (n, d), n_planes = X.shape, len(planes)
    step = part_rows(n, 2.0 * row_length(X) * n_planes)
    n_parts = part_count(n, step)
    # Of a sum over some rows, and of those of all of them.
    n_terms = CHUNK_ROWS + n // CHUNK_ROWS + 2 * n_parts
    w, b = np.ascontiguousarray(planes[:, :-1]), planes[:, -1].copy()
    signs = np.zeros((n_parts, n_planes, 2))
    add_up_shares(n_parts, step, y, weights, shares, signs)
    heaviness = signs.sum(axis=0)
    factors = np.ones((n_planes, 2))
    if bias == "free":
        least = np.broadcast_to(heaviness.min(axis=1, keepdims=True), factors.shape)
        factors = np.divide(least, heaviness, out=np.zeros_like(factors), where=heaviness > 0.0)
        factors = np.minimum(factors, 1.0)
    lengths = np.sqrt(np.sum(w**2, axis=1)) * UPWARDS
    # A bound of the error of a score per unit of ‖x‖, and what comes with the bias.
    slope, level = (
        np.array([score_error(size, *plane, d) for plane in zip(lengths, np.abs(b), strict=True)])
        for size in (1.0, 0.0)
    )
    found, totals = np.zeros((n_parts, n_planes, N_FOUND)), np.zeros((n_parts, n_planes, d))
    with single_threaded_blas():
        measure(
            n_parts, step, rows_of(X), y, weights, shares, factors, w, b, slope - level, level,
            float(n_terms), found, totals,
        )  # fmt: skip
    sums, total = found.sum(axis=0), totals.sum(axis=0)
    sums[:, ERROR:] = found[:, :, ERROR:].max(axis=0)
    counted = np.count_nonzero(weights, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # at huge costs, of which nothing is proved
        return [
            _certificate(sums[k], total[k], heaviness[k], plane, cost, bias, n_terms, int(n_rows))
            for k, (plane, n_rows) in enumerate(zip(planes, counted, strict=True))
        ]


def _certificate(
    found: Floats, total: Floats, heaviness: Floats, plane: Floats, cost: float, bias: Bias,
    n_terms: int, n_rows: int,
) -> PlaneCertificate:  # fmt: skip
    """Return the certificate of a plane."""
    loss, most_loss, gain, rest, blur, rounding, violation = (float(value) for value in found)
    square = float(plane[:-1] @ plane[:-1])
    if bias == "penalised":
        square += float(plane[-1]) ** 2
    primal, gain, rest, w = 0.5 * square + cost * loss, cost * gain, cost * rest, cost * total
    dual, blur = gain - 0.5 * float(w @ w), cost * blur
    error = blur * (float(np.linalg.norm(w)) + 0.5 * blur)
    if bias == "free":  # what rounding leaves of Σ αy, times another bias
        error += (abs(rest) + n_terms * UNIT * gain) * abs(float(plane[-1]))
    elif bias == "penalised":
        dual -= 0.5 * rest**2
    error += (n_terms + 64) * UNIT * (primal + gain + abs(dual))
    error += cost * max(most_loss - loss, 0.0)
    balance = 0.0
    if bias == "free":
        plus, minus = (cost * float(each) for each in heaviness)
        balance = abs(plus - minus) / max(1.0, plus + minus)
    return shown(Measures(primal, dual, error, violation, rounding), balance, 0.0, n_rows)


@parallel
def add_up_shares(part, step, y, weights, shares, signs):
    """Add up v s of the rows of each sign."""
    for k in range(weights.shape[0]):
        v, s, plus, minus = weights[k], shares[k], 0.0, 0.0
        for i in range(part * step, min((part + 1) * step, y.size)):
            weighted = v[i] * min(max(s[i], 0.0), 1.0)
            plus += weighted if y[i] > 0.0 else 0.0
            minus += weighted if y[i] < 0.0 else 0.0
        signs[part, k, 0], signs[part, k, 1] = plus, minus


@parallel
def measure(
    part, step, rows, y, weights, shares, factors, w, b, slope, level, n_terms, found, totals
):
    """Add what some rows say of every plane: `LOSS`, …, and Σ vsyx."""
    n_planes, d = w.shape
    last, lines, sums = min((part + 1) * step, y.size), found[part], totals[part]
    block, norms = np.empty((CHUNK_ROWS, d)), np.empty(CHUNK_ROWS)
    for first in range(part * step, last, CHUNK_ROWS):
        n = min(CHUNK_ROWS, last - first)
        for r in range(n):
            norms[r] = np.sqrt(row_square(rows, first + r)) * UPWARDS
        scores = products(rows, first, n, w, block)
        for k in range(n_planes):
            mine, v, s, line = scores[k], weights[k], shares[k], lines[k]
            loss, most_loss, gain, rest, size = 0.0, 0.0, 0.0, 0.0, 0.0
            for r in range(n):
                i = first + r
                share, wrong = min(max(s[i], 0.0), 1.0), slope[k] * norms[r] + level[k]
                z = 1.0 - y[i] * (mine[r] + b[k])
                loss += v[i] * max(z, 0.0)
                most_loss += v[i] * max(z + wrong, 0.0)
                alpha = v[i] * share * (factors[k, 0] if y[i] > 0.0 else factors[k, 1])
                gain += alpha
                rest += alpha * y[i]
                size += alpha * norms[r]
                mine[r] = alpha * y[i]
                if v[i] > 0.0:
                    line[ERROR] = max(line[ERROR], wrong)
                    short = z if share < 1.0 else 0.0
                    line[VIOLATION] = max(line[VIOLATION], short, -z if share > 0.0 else 0.0)
            line[LOSS] += loss
            line[MOST_LOSS] += most_loss
            line[GAIN] += gain
            line[REST] += rest
            # |Σ c_r x_r| is wrong by at most n_terms ε Σ |c_r| ‖x_r‖.
            line[BLUR] += n_terms * UNIT * UPWARDS * size
        add_combinations(rows, first, scores, block, sums)
