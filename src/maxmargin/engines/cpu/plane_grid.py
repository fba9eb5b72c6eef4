"""Squared hinges of many planes on the same rows, from one pass over them.

Some rows at a time stay in the cache of a core while they are multiplied by all planes, so that a
pass takes hardly longer than one of a single plane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...runtime.row_access import rows_of
from ...runtime.team import parallel
from ...runtime.threads import single_threaded_blas
from ...runtime.vectors import nonzero, part_count, part_rows
from ..planes import HingeSums, PlaneTasks

if TYPE_CHECKING:
    from ...arrays import Floats, Integers
    from .features import Features

# Rows that are multiplied at a time, and rows per column that the curvature is computed from.
CHUNK_ROWS, CURVED_ROWS = 512, 512


def hinge_sums(
    features: Features, tasks: PlaneTasks, planes: Floats, active: Integers,
    groups: Integers | None,
) -> HingeSums:  # fmt: skip
    """Return Σ v z₊², Σ v z₊ y (x, 1) and the mean curvature of groups of planes, of dense X."""
    (n, d), n_planes = features.X.shape, len(planes)
    stride = max(1, n // (CURVED_ROWS * (d + 1)))
    n_groups = 0 if groups is None else int(groups.max()) + 1
    of_plane = np.full(n_planes, -1) if groups is None else groups
    sizes = np.bincount(of_plane, minlength=1) if n_groups else np.ones(1)
    shares = 1.0 / np.maximum(sizes, 1.0)  # a group whose planes are all done is empty
    curved = np.zeros((n_groups, -(-n // stride)))
    # Parts begin with rows that the curvature is computed from.
    step = stride * -(-part_rows(n, 2.0 * d * n_planes) // stride)
    n_parts = part_count(n, step)
    losses, totals = np.zeros((n_parts, n_planes)), np.zeros((n_parts, *planes.shape))
    w, b = np.ascontiguousarray(planes[:, :-1]), planes[:, -1].copy()
    with single_threaded_blas():
        add_losses(
            n_parts, step, rows_of(features.X), tasks.codes, tasks.weights, tasks.fold_of[active],
            tasks.positive[active], w, b, stride, of_plane, shares, curved, losses, totals,
        )  # fmt: skip
    moments = np.empty((n_groups, d + 1, d + 1))
    for g, c in enumerate(curved):
        used = nonzero(c)
        moments[g] = features.moments(stride * c[used], stride * used)
    return HingeSums(losses.sum(axis=0), totals.sum(axis=0), moments)


@parallel
def add_losses(
    part, step, rows, codes, weights, fold, positive, w, b, stride, group, shares, curved, losses,
    totals,
):  # fmt: skip
    """Add the losses of some rows, and write the curvature of every ``stride``-th."""
    X, n_planes, d = rows[0], w.shape[0], w.shape[1]
    last = min((part + 1) * step, X.shape[0])
    block = np.empty((CHUNK_ROWS, d))
    for first in range(part * step, last, CHUNK_ROWS):
        n = min(CHUNK_ROWS, last - first)
        for r in range(n):
            x, line = X[first + r], block[r]
            for j in range(d):
                line[j] = x[j]
        scores = np.dot(w, block[:n].T)
        for k in range(n_planes):
            mine, v, kind, offset = scores[k], weights[fold[k]], positive[k], b[k]
            loss, total = 0.0, 0.0
            for r in range(n):
                y = 1.0 if codes[first + r] == kind else -1.0
                z = max(1.0 - y * (mine[r] + offset), 0.0)
                alpha = v[first + r] * z
                loss += alpha * z
                mine[r] = alpha * y
                total += alpha * y
            losses[part, k] += loss
            totals[part, k, d] += total
            if group[k] >= 0:
                to, share = curved[group[k]], shares[group[k]]
                for i in range(first + -first % stride, first + n, stride):
                    if mine[i - first] != 0.0:
                        to[i // stride] += share * v[i]
        sums = np.dot(scores, block[:n])
        for k in range(n_planes):
            for j in range(d):
                totals[part, k, j] += sums[k, j]
