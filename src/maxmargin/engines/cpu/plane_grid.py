"""Squared hinges of many planes on the same rows, from one pass over them.

Blocks of rows stay in the cache of a core while they are multiplied by all planes: a pass takes
hardly longer than one plane would.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ...arrays import row_block
from ...runtime.threads import in_parallel
from ..linear import HingeSums, PlaneTasks

if TYPE_CHECKING:
    from ...arrays import Floats, Integers

# Numbers of a block of rows, with those of all planes.
BLOCK_NUMBERS = 1 << 17
# Parts that are added up on their own, so that sums do not depend on the number of threads, and the
# numbers in curvatures of all of them.
N_PARTS, PART_NUMBERS = 16, 1 << 24
# Rows per column that the curvature is computed from, about.
CURVED_ROWS = 256


def hinge_sums(
    X: Any, tasks: PlaneTasks, planes: Floats, active: Integers, groups: Integers | None
) -> HingeSums:
    """Return Σ v z₊², Σ v z₊ y (x, 1) and the mean curvature of groups of planes."""
    n, d = X.shape
    step = max(64, BLOCK_NUMBERS // (d + 4 * active.size))
    stride = max(1, n // (CURVED_ROWS * (d + 1)))
    blocks = [slice(first, min(first + step, n)) for first in range(0, n, step)]
    n_groups = 0 if groups is None else int(groups.max()) + 1
    n_parts = min(N_PARTS, len(blocks), max(1, PART_NUMBERS // max(1, n_groups * (d + 1) ** 2)))
    parts = [blocks[k::n_parts] for k in range(n_parts)]

    def add_up(mine: list[slice], stop: Event) -> HingeSums:
        found = HingeSums.zero(planes, n_groups)
        for block in mine:
            if stop.is_set():
                break
            rows = row_block(X, block)
            x = rows.toarray() if sparse.issparse(rows) else rows
            curved = _add_losses(x, block, tasks, planes, active, found)[:, ::stride]
            for g in () if groups is None else np.unique(groups).tolist():
                c = stride * curved[groups == g].mean(axis=0)
                _add_moments(x[::stride], c, found.moments[g])
        return found

    found = in_parallel(add_up, parts)
    return HingeSums(*(np.sum(each, axis=0) for each in zip(*found, strict=True)))


def _add_losses(
    x: Floats, block: slice, tasks: PlaneTasks, planes: Floats, active: Integers, found: HingeSums
) -> Floats:
    """Add the losses of some rows; return v where z > 0, else 0."""
    fold, task = tasks.fold_of[active], tasks.task_of[active]
    labels, weights = tasks.labels(block)[task], tasks.weights[fold, block]
    slack = planes[:, :-1] @ x.T
    slack += planes[:, -1:]
    slack *= labels
    np.subtract(1.0, slack, out=slack)
    np.maximum(slack, 0.0, out=slack)
    alpha = weights * slack
    found.loss[:] += (alpha * slack).sum(axis=1)
    alpha *= labels
    found.total[:, :-1] += alpha @ x
    found.total[:, -1] += alpha.sum(axis=1)
    return np.where(slack > 0.0, weights, 0.0)


def _add_moments(x: Floats, c: Floats, moments: Floats) -> None:
    """Add Σ c (x, 1)(x, 1)ᵀ."""
    used = np.flatnonzero(c)
    root = np.sqrt(c[used])
    scaled = x[used] * root[:, np.newaxis]
    moments[:-1, :-1] += scaled.T @ scaled
    moments[-1, :-1] += root @ scaled
    moments[:-1, -1] = moments[-1, :-1]
    moments[-1, -1] += root @ root
