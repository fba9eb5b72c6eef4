"""Tasks of several folds at one cost after the other, and the scores of held-out rows.

K of a group of tasks, such as two classes in all folds, is gathered once for all of them; where the
rows of a group are all rows it is K itself. The first task of every group goes first: the others
begin with its answers where those are better than their own at the cost before (`cost_path`), and
go side by side where they are large (`cost_descent`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...problems.held_out_rows import HeldOutRows
from ...problems.shared_rows import SharedRows
from ...runtime.simd import aligned
from ..base import CostGrid, TaskArrays, TaskGoal
from .cost_descent import N_KEPT, N_STATE
from .cost_path import (
    END_MEMBER,
    END_ROW,
    END_TEAM,
    END_TEST,
    FIRST_ROW,
    FIRST_TEST,
    GROUP,
    IS_FIRST,
    MEMBER,
    MOST_NUMBERS,
    MOST_TOGETHER,
    N_COLUMNS,
    N_OWN,
    PLACE,
    START,
    advance,
)
from .held_out import held_out_scores
from .small_tasks import padded_values
from .task_descent import BIAS, CONVERGED, N_NUMBERS, STEPS
from .task_rows import VECTOR

# Rows of a group above which its tasks, but for the first, are solved side by side.
TOGETHER = 4096

if TYPE_CHECKING:
    from ...arrays import Floats, Integers
    from .gram import Gram


def solve_cost_grid(
    gram: Gram,
    tasks: TaskArrays,
    shared: SharedRows,
    costs: Floats,
    recalled: Floats,
    held_out: HeldOutRows,
    goal: TaskGoal,
    is_over: Callable[[], bool],
) -> CostGrid:
    """Solve every task at every cost.

    ``tasks`` are those of C = 1, with a bias; ``recalled`` are α with another kernel, or 0;
    ``held_out`` the rows of X whose scores are wanted.
    """
    K, m, n_rows = padded_values(gram), costs.size, shared.rows.size
    ends = held_out.ends_of_tasks
    # Where every group has all rows of X, the scores of those held out are known with the others.
    is_whole = bool((np.diff(shared.starts) == K.shape[0]).all())
    known_ends = ends if is_whole else np.zeros_like(ends)
    listed, places = _listed(tasks, shared, known_ends, goal.max_steps)
    chains, memory = _chains(shared)
    variables = np.array([tasks.signs, tasks.p, tasks.lower, tasks.upper])
    tols = np.array([goal.tol, goal.final_tol, goal.rounding])
    alpha, scores = np.zeros((m, tasks.index.size)), np.empty((m, known_ends[-1]))
    numbers, kept = np.zeros((m, len(listed), N_NUMBERS)), np.zeros((len(listed), N_KEPT))
    of_rows = np.zeros((m, n_rows)), np.zeros((m, n_rows)), np.zeros(n_rows)
    of_groups = np.zeros((m, len(chains))), np.zeros((m, len(chains)))
    seeds = (recalled, *of_rows, *of_groups)
    diagonal = gram.diagonal()
    tests = held_out.rows_of_tasks() if is_whole else held_out.rows
    going = np.argsort(-np.diff(shared.starts), kind="stable")
    while going.size and not is_over():
        advance(
            going.size, going, chains, shared.members, listed, variables, places, shared.rows,
            tests, K, diagonal, costs, tols, kept, memory, seeds, alpha, numbers, scores,
        )  # fmt: skip
        going = going[chains[going, MEMBER] < chains[going, END_MEMBER]]
    columns_of = (numbers[:, :, k] for k in (BIAS, CONVERGED, STEPS))
    b, converged, steps = (np.ascontiguousarray(each) for each in columns_of)
    of_folds = (
        _by_fold(scores, held_out) if is_whole else held_out_scores(K, tasks, alpha, b, held_out)
    )
    return CostGrid(alpha, b, converged > 0.0, steps, of_folds)


def _by_fold(scores: Floats, held_out: HeldOutRows) -> list[Floats]:
    """Return scores of one task after the other as (n_costs, n_rows, n_tasks) of every fold."""
    sizes, n_tasks = np.diff(held_out.ends), np.diff(held_out.tasks)
    ends = np.cumsum(sizes * n_tasks)[:-1]
    shapes = zip(np.split(scores, ends, axis=1), n_tasks.tolist(), sizes.tolist(), strict=True)
    return [np.moveaxis(part.reshape(len(part), *shape), 1, 2) for part, *shape in shapes]


def _listed(
    tasks: TaskArrays, shared: SharedRows, ends: Integers, max_steps: Integers
) -> tuple[Integers, Integers]:
    """Return the columns of the tasks, and which row of its group each variable belongs to."""
    n_members = np.diff(shared.firsts)
    listed = np.zeros((tasks.sizes.size, 6), dtype=np.intp)
    listed[:, START], listed[:, N_OWN] = tasks.starts[:-1], tasks.sizes
    listed[:, MOST_NUMBERS] = max_steps * tasks.sizes
    listed[shared.members[shared.firsts[:-1]], IS_FIRST] = 1
    listed[:, FIRST_TEST], listed[:, END_TEST] = ends[:-1], ends[1:]
    first_row = np.empty(tasks.sizes.size, dtype=np.intp)
    first_row[shared.members] = np.repeat(shared.starts[:-1], n_members)
    return listed, shared.places - np.repeat(first_row, tasks.sizes)


def _chains(shared: SharedRows) -> tuple[Integers, Floats]:
    """Return the columns of the chains, one of each group, and memory for what they work on."""
    sizes, n_members = np.diff(shared.starts), np.diff(shared.firsts)
    chains = np.zeros((sizes.size, N_COLUMNS), dtype=np.intp)
    chains[:, FIRST_ROW], chains[:, END_ROW] = shared.starts[:-1], shared.starts[1:]
    chains[:, GROUP] = np.arange(sizes.size)
    chains[:, MEMBER], chains[:, END_MEMBER] = shared.firsts[:-1], shared.firsts[1:]
    chains[:, END_TEAM] = chains[:, MEMBER] + 1
    chains[:, MOST_TOGETHER] = np.where(sizes > TOGETHER, np.maximum(n_members - 1, 1), 1)
    widths = N_STATE * chains[:, MOST_TOGETHER] * VECTOR * -(-sizes // VECTOR)
    places = np.cumsum([0, *widths.tolist()])
    chains[:, PLACE] = places[:-1]
    return chains, aligned((int(places[-1]),), np.float64)
