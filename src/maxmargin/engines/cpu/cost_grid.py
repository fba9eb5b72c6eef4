"""Tasks of several folds at one cost after the other, and the scores of held-out rows.

K of a group of tasks, such as two classes in all folds, is gathered once for all of them; where the
rows of a group are all rows it is K itself. The first task of every group goes first: the others
begin with its answers where those are better than their own at the cost before.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from ...problems.shared_rows import SharedRows
from ...runtime.simd import aligned
from ...runtime.threads import in_parallel, single_threaded_blas
from ..base import CostGrid, TaskArrays, TaskGoal
from .cost_descent import N_KEPT
from .cost_path import N_COLUMNS, N_STATE, CURVATURE, advance
from .small_tasks import padded_values
from .task_descent import BIAS, CONVERGED, N_NUMBERS, STEPS
from .task_rows import VECTOR

if TYPE_CHECKING:
    from ...arrays import Floats, Integers
    from .gram import Gram


def solve_cost_grid(
    gram: Gram,
    tasks: TaskArrays,
    shared: SharedRows,
    costs: Floats,
    tests: list[Integers],
    goal: TaskGoal,
    is_over: Callable[[], bool],
) -> CostGrid:
    """Solve every task at every cost.

    ``tasks`` are those of C = 1, with a bias; ``tests`` the rows of X whose scores are wanted.
    """
    n_tasks, m = tasks.sizes.size, costs.size
    K = padded_values(gram)
    ends = np.cumsum([0, *(test.size for test in tests)])
    alpha, numbers = np.zeros((m, tasks.index.size)), np.zeros((m, n_tasks, N_NUMBERS))
    scores = np.empty((m, ends[-1]))
    is_known = solve_chains(
        gram, K, tasks, shared, costs, tests, ends, goal, is_over, alpha, numbers, scores
    )
    columns_of = (numbers[:, :, k] for k in (BIAS, CONVERGED, STEPS))
    b, converged, steps = (np.ascontiguousarray(each) for each in columns_of)
    if not is_known:
        scores = held_out_scores(K, tasks, alpha, b, tests)
    return CostGrid(alpha, b, converged > 0.0, steps, scores)


KEPT=[]
def solve_chains(
    gram, K, tasks, shared, costs, tests, ends, goal, is_over, alpha, numbers, scores
) -> bool:
    """Solve all chains; return whether the scores of held-out rows are known, too."""
    n_groups, n_tasks, m = shared.starts.size - 1, tasks.sizes.size, costs.size
    sizes = np.diff(shared.starts)
    is_whole = bool((sizes == K.shape[0]).all())
    first_tasks = shared.members[shared.firsts[:-1]]
    listed = np.zeros((n_tasks, 6), dtype=np.intp)
    listed[:, 0], listed[:, 1], listed[:, 2] = tasks.starts[:-1], tasks.sizes, goal.max_steps
    listed[first_tasks, 3] = 1
    if is_whole:
        listed[:, 4], listed[:, 5] = ends[:-1], ends[1:]
    group_of = np.empty(n_tasks, dtype=np.intp)
    group_of[shared.members] = np.repeat(np.arange(n_groups), np.diff(shared.firsts))
    places = shared.places - np.repeat(shared.starts[group_of], tasks.sizes)
    variables = np.array(
        [tasks.signs, tasks.p, tasks.lower, tasks.upper, tasks.ridge, gram.diagonal()[tasks.index]]
    )
    n_rows = shared.rows.size
    seeds = (np.zeros((m, n_rows)), np.zeros((m, n_rows)), np.zeros(n_rows), np.zeros((m, n_groups)))
    tols = np.array([goal.tol, goal.final_tol, goal.rounding])
    all_tests = np.concatenate(tests)
    diagonal = gram.diagonal()
    for chains in chains_of(shared, sizes, separate=is_whole):
        begins = np.cumsum([0, *(VECTOR * -(-(chain[1] - chain[0]) // VECTOR) for chain in chains)])
        chains[:, 2] = begins[:-1]
        state, kept = aligned((N_STATE, int(begins[-1])), np.float64), np.zeros((len(chains), N_KEPT))
        for chain in chains:
            mine = shared.rows[chain[0] : chain[1]]
            state[CURVATURE, chain[2] : chain[2] + mine.size] = diagonal[mine]
        KEPT.append(kept)
        going = np.argsort(chains[:, 0] - chains[:, 1], kind="stable")
        while going.size and not is_over():
            advance(
                going.size, going, chains, shared.members, listed, variables, places, shared.rows,
                all_tests, K, costs, tols, kept, state, seeds, alpha, numbers, scores,
            )
            going = going[chains[going, 3] < chains[going, 4]]
    return is_whole


def chains_of(shared, sizes, *, separate: bool):
    """Return chains of tasks."""
    n_groups = sizes.size
    found = np.zeros((n_groups, N_COLUMNS), dtype=np.intp)
    found[:, 0], found[:, 1] = shared.starts[:-1], shared.starts[1:]
    found[:, 3], found[:, 4] = shared.firsts[:-1], shared.firsts[1:]
    found[:, 7] = np.arange(n_groups)
    if not separate:
        return [found]
    first = found.copy()
    first[:, 4] = first[:, 3] + 1
    others = np.repeat(found, np.diff(shared.firsts) - 1, axis=0)
    number = np.concatenate([np.arange(a + 1, b) for a, b in pairwise(shared.firsts)])
    others[:, 3], others[:, 4] = number, number + 1
    return [first, others] if len(others) else [first]


def held_out_scores(
    K: Floats, tasks: TaskArrays, alpha: Floats, b: Floats, tests: list[Integers]
) -> Floats:
    """Return the scores of the rows that every task holds out, one task after the other.

    Tasks that hold out the same rows are a fold. Where several of them have a class in common, its
    kernel values are gathered once, and multiplied by the coefficients of all of them.
    """
    ends = np.cumsum([0, *(test.size for test in tests)])
    coefficients, scores = alpha * tasks.signs, np.empty((len(alpha), ends[-1]))
    folds: dict[int, list[int]] = {}
    for t, test in enumerate(tests):
        folds.setdefault(id(test), []).append(t)

    def score(members: list[int], stop: Event) -> None:
        test = tests[members[0]]
        found = {t: np.repeat(b[:, t, None], test.size, axis=1) for t in members}
        for columns, users in _classes(tasks, members):
            if stop.is_set():
                return
            weights = np.concatenate([coefficients[:, part] for _, part in users])
            products = np.split(weights @ K[np.ix_(columns, test)], len(users))
            for (t, _), product in zip(users, products, strict=True):
                found[t] += product
        for t, values in found.items():
            scores[:, ends[t] : ends[t + 1]] = values

    with single_threaded_blas():
        in_parallel(score, list(folds.values()))
    return scores


def _classes(
    tasks: TaskArrays, members: list[int]
) -> list[tuple[Integers, list[tuple[int, slice]]]]:
    """Return rows of equal sign, and the tasks in which they have it with their variables."""
    found: dict[bytes, tuple[Integers, list[tuple[int, slice]]]] = {}
    if len(members) == 1:  # nothing to share
        whole = slice(int(tasks.starts[members[0]]), int(tasks.starts[members[0] + 1]))
        return [(tasks.index[whole], [(members[0], whole)])]
    for t in members:
        first, last = int(tasks.starts[t]), int(tasks.starts[t + 1])
        changes = 1 + first + np.flatnonzero(np.diff(tasks.signs[first:last]))
        for start, end in pairwise([first, *changes.tolist(), last]):
            rows = tasks.index[start:end]
            found.setdefault(rows.tobytes(), (rows, []))[1].append((t, slice(start, end)))
    return list(found.values())
