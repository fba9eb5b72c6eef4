"""Certificates of many planes on the same rows: squared hinges, from one pass over all rows.

For P = ½‖w‖² [+ ½b²] + C Σ v z₊², z = 1 − y(w·x + b), every plane names a point of the dual by
itself, α = 2Cv z₊. With a free bias the heavier sign of α is shrunk until yᵀα = 0, and

    D(α) = Σα − ½‖Σ αyx‖² [− ½(Σ αy)²] − Σ α²/(4Cv)

is a lower bound of the optimum: nothing but the plane, X, y, v and C is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, blocks_of, row_block
from ..runtime.threads import in_parallel
from .centring import frobenius, score_error, sum_error
from .primal import Measures, PlaneCertificate, shown
from .scores import UNIT

# Parts that are added up on their own: sums do not depend on the number of threads.
N_PARTS = 16
SIGNS = np.array([1.0, -1.0])

Bias = Literal["free", "penalised", "none"]


class _Sums(NamedTuple):
    """What some rows say of every plane: (K, 2) by the sign of y, and (K, 2, d)."""

    loss: Floats  # Σ v z₊²
    slack: Floats  # Σ v z₊
    total: Floats  # Σ v z₊ x
    blur: Floats  # bounds of the rounding errors of that
    most_loss: Floats  # (K,): Σ v z₊², z as large as rounding allows
    error: Floats  # (K,): the largest bound of the error of a score

    @classmethod
    def zero(cls, n_planes: int, d: int) -> _Sums:
        """Return those of no rows."""
        both = (n_planes, 2)
        return cls(
            np.zeros(both), np.zeros(both), np.zeros((*both, d)), np.zeros(both),
            np.zeros(n_planes), np.zeros(n_planes),
        )  # fmt: skip


def certify_planes(
    X: Any,
    labels: Callable[[slice], Floats],
    weights: Floats,
    groups: tuple[Integers, Integers],
    planes: Floats,
    cost: float,
    bias: Bias,
) -> list[PlaneCertificate]:
    """Certify squared hinges at one cost, each by a dual value of its own.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    labels : callable
        A slice of rows ↦ their ±1 in every task, (n_tasks, n_rows).
    weights : ndarray of shape (n_folds, n)
        v of the rows in every fold, 0 of rows that do not count.
    groups : tuple of ndarray of shape (K,)
        The fold and the task of every plane.
    planes : ndarray of shape (K, d + 1)
        (w, b).
    cost : float
        C.
    bias : {"free", "penalised", "none"}

    Returns
    -------
    list of PlaneCertificate
    """
    (fold, task), (n, d) = groups, X.shape
    blocks = list(blocks_of(n, d + 4 * len(planes)))
    parts = [blocks[k::N_PARTS] for k in range(min(N_PARTS, len(blocks)))]
    n_terms = blocks[0].stop + len(blocks)

    def add_up(mine: list[slice], stop: Event) -> _Sums:
        found = _Sums.zero(len(planes), d)
        for block in mine:
            if stop.is_set():
                break
            rows = row_block(X, block)
            x = rows.toarray() if sparse.issparse(rows) else rows
            x = x.astype(np.float64, copy=False)  # squares of float32 overflow and underflow
            _add(x, labels(block)[task], weights[fold, block], planes, n_terms, found)
        return found

    some = in_parallel(add_up, parts)
    sums = _Sums(*(np.sum(each, axis=0) for each in zip(*some, strict=True)))
    found = sums._replace(error=np.max([each.error for each in some], axis=0))
    counted = np.count_nonzero(weights, axis=1)[fold]
    return [
        _certificate(_Sums(*(each[k] for each in found)), plane, cost, bias, n_terms, int(n_rows))
        for k, (plane, n_rows) in enumerate(zip(planes, counted, strict=True))
    ]


def _add(
    x: Floats, labels: Floats, weights: Floats, planes: Floats, n_terms: int, found: _Sums
) -> None:
    """Add what some rows say."""
    size, w, b = frobenius(x), planes[:, :-1], planes[:, -1]
    lengths = np.sqrt(np.sum(w**2, axis=1)) * (1.0 + 1e-6)
    wrong = np.array(
        [score_error(size, *plane, x.shape[1]) for plane in zip(lengths, b, strict=True)]
    )
    slack = 1.0 - labels * (w @ x.T + b[:, np.newaxis])
    most = np.maximum(slack + wrong[:, np.newaxis], 0.0)
    np.maximum(slack, 0.0, out=slack)
    found.most_loss[:] += (weights * most**2).sum(axis=1)
    np.maximum(found.error, wrong, out=found.error)
    for sign, y in enumerate((1.0, -1.0)):
        alpha = np.where(labels == y, weights * slack, 0.0)
        found.loss[:, sign] += (alpha * slack).sum(axis=1)
        found.slack[:, sign] += alpha.sum(axis=1)
        found.total[:, sign] += alpha @ x
        found.blur[:, sign] += [sum_error(size, each, n_terms) for each in alpha]


def _certificate(
    found: _Sums, plane: Floats, cost: float, bias: Bias, n_terms: int, n_rows: int
) -> PlaneCertificate:
    """Return the certificate of a plane: Σ α²/(4Cv) is C Σ v z₊², by the sign of y."""
    square, alpha = float(plane[:-1] @ plane[:-1]), 2.0 * cost * found.slack
    if bias == "penalised":
        square += float(plane[-1]) ** 2
    primal = 0.5 * square + cost * float(found.loss.sum())
    factors = np.ones(2)
    if bias == "free":
        factors = np.divide(alpha.min(), alpha, out=np.zeros(2), where=alpha > 0.0)
    gain, rest = float(factors @ alpha), float(factors @ (alpha * SIGNS))
    w = 2.0 * cost * (factors * SIGNS) @ found.total
    dual = gain - 0.5 * float(w @ w) - cost * float(factors**2 @ found.loss)
    blur = 2.0 * cost * float(factors @ found.blur)
    error = blur * (float(np.linalg.norm(w)) + 0.5 * blur)
    if bias == "free":  # what rounding leaves of Σ αy, times another bias
        error += (abs(rest) + n_terms * UNIT * gain) * abs(float(plane[-1]))
    elif bias == "penalised":
        dual -= 0.5 * rest**2
    error += (n_terms + 64) * UNIT * (primal + gain + abs(dual))
    error += cost * max(float(found.most_loss - found.loss.sum()), 0.0)
    balance = abs(float(alpha @ SIGNS)) / max(1.0, float(alpha.sum())) if bias == "free" else 0.0
    measures = Measures(primal, dual, error, 0.0, float(found.error))
    return shown(measures, balance, 0.0, n_rows)
