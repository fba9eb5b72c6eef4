"""Scores of the rows that folds hold out, of all tasks and costs, from K of all rows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ...problems.held_out_rows import HeldOutRows
from ...runtime.columns import runs_of, some_columns, used_columns
from ...runtime.row_access import compiled_part
from ...runtime.team import parallel
from ...runtime.threads import single_threaded_blas
from ..base import TaskArrays

if TYPE_CHECKING:
    from ...arrays import Floats

# Held-out rows of a part.
PART_ROWS = 256


def held_out_scores(
    K: Floats, tasks: TaskArrays, alpha: Floats, b: Floats, held_out: HeldOutRows
) -> list[Floats]:
    """Return the scores of the rows that each fold holds out, (n_costs, n_rows, n_tasks).

    Where several tasks of a fold have a class in common, its kernel values are gathered once, and
    multiplied by the coefficients of all of them at all costs.
    """
    sizes, n_tasks = np.diff(held_out.ends), np.diff(held_out.tasks)
    places = np.cumsum([0, *(len(alpha) * sizes * n_tasks).tolist()])
    n_parts = -(-sizes // PART_ROWS)
    fold = np.repeat(np.arange(sizes.size), n_parts)
    begin = PART_ROWS * (np.arange(fold.size) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts))
    where = (
        held_out.rows, held_out.ends, held_out.tasks, held_out.classes, held_out.firsts,
        held_out.users, places,
    )  # fmt: skip
    scores = np.empty(places[-1])
    with single_threaded_blas():
        add_scores(fold.size, fold, begin, where, K, tasks.index, tasks.signs, alpha, b, scores)
    shapes = zip(pairwise(places.tolist()), sizes.tolist(), n_tasks.tolist(), strict=True)
    return [
        np.moveaxis(scores[first:last].reshape(len(alpha), count, size), 1, 2)
        for (first, last), size, count in shapes
    ]


@parallel
def add_scores(part, fold, begin, where, K, index, signs, alpha, b, scores):
    """Write the scores of some of the rows that a fold holds out."""
    rows, ends, tasks, classes, firsts, users, places = where
    g, (m, n_tasks) = fold[part], (b.shape[0], tasks[fold[part] + 1] - tasks[fold[part]])
    n = ends[g + 1] - ends[g]
    first, last = begin[part], min(begin[part] + PART_ROWS, n)
    mine = rows[ends[g] + first : ends[g] + last]
    found = scores[places[g] : places[g + 1]].reshape(m, n_tasks, n)[:, :, first:last]
    for c in range(m):
        for t in range(n_tasks):
            line, bias = found[c, t], b[c, tasks[g] + t]
            for r in range(line.size):
                line[r] = bias
    for k in range(firsts[g], firsts[g + 1]):
        start, size, user = classes[k]
        n_users = (classes[k + 1, 2] if k + 1 < len(classes) else len(users) - 1) - user
        weights = np.empty((m * n_users, size))
        for v in range(n_users):
            some = slice(users[user + v, 1], users[user + v, 1] + size)
            own = signs[some]
            for c in range(m):
                given, line = alpha[c, some], weights[c * n_users + v]
                for i in range(size):
                    line[i] = given[i] * own[i]
        support = used_columns(weights)
        if support.size == 0:
            continue
        values = np.empty((mine.size, support.size))
        gather(K, mine, index[start : start + size][support], values)
        products = np.dot(some_columns(weights, support), values.T)
        for c in range(m):
            for v in range(n_users):
                line, own = found[c, users[user + v, 0] - tasks[g]], products[c * n_users + v]
                for r in range(line.size):
                    line[r] += own[r]


@compiled_part
def gather(K, rows, columns, out):
    """Do out ← K[rows, columns]."""
    edges = runs_of(columns)
    are_long = 8 * edges.size < columns.size
    for r in range(rows.size):
        row, values = K[rows[r]], out[r]
        if are_long:
            for run in range(edges.size - 1):
                source, some = row[columns[edges[run]] :], values[edges[run] : edges[run + 1]]
                for k in range(some.size):
                    some[k] = source[k]
        else:
            for k in range(values.size):
                values[k] = row[columns[k]]
