"""Small tasks at one cost after the other, and the scores of held-out rows.

K of a task is gathered once for all costs. From one cost C to the next, C', every α is multiplied
by the number t ≤ C'/C of the largest dual value, which needs no kernel value, and the descent goes
on from there: by SMO on all variables where they are few, else on those that violate most, whose
part of K fits the cache. Where SMO has taken as long as a Newton step of the free variables would,
one is made.
"""

from __future__ import annotations

from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from ...runtime.row_access import compiled_part
from ...runtime.simd import vectors
from ...runtime.team import parallel
from ...runtime.threads import in_parallel, single_threaded_blas
from ..base import CostGrid, TaskArrays, TaskGoal
from .free_step import MAX_FREE, free_step, free_step_numbers
from .small_tasks import padded_values
from .smo import pair_steps
from .task_descent import (
    BIAS,
    CONVERGED,
    GAP_TOLS,
    N_NUMBERS,
    PAIR_GOAL_TOLS,
    STEPS,
    extremes,
    firm_gap,
    gap_of_groups,
    multiplier,
    posed,
    subtract,
    write_alpha,
)
from .task_rows import VECTOR, copy
from .values import UNIT

if TYPE_CHECKING:
    from ...arrays import Floats, Integers
    from .gram import Gram

# Variables of a working set, a multiple of the numbers in a vector, and steps with it per variable.
SET_SIZE, LEAST_SET, STEPS_PER_VARIABLE = 768, 128, 20
# Vectors of a working set beside its part of K.
N_VECTORS = 7
# A round ends at this share of the violation before it.
ROUND_SHARE = 0.1
# f is computed anew where rounding may have changed it by this share of the violation allowed.
DRIFT_SHARE = 0.01
# Classes of violations into which variables are counted, to find the worst of them.
N_BINS = 128


def solve_cost_grid(
    gram: Gram, tasks: TaskArrays, costs: Floats, tests: list[Integers], goal: TaskGoal
) -> CostGrid:
    """Solve every task at every cost, those with most variables first.

    ``tasks`` are those of C = 1, with a bias; ``tests`` the rows of X whose scores are wanted.
    """
    n_tasks, m = tasks.sizes.size, costs.size
    order = np.argsort(-tasks.sizes, kind="stable")
    columns = tasks.starts[:-1], tasks.sizes, goal.max_steps
    listed = np.column_stack([order, *(column[order] for column in columns)])
    variables = np.array(
        [tasks.signs, tasks.p, tasks.lower, tasks.upper, tasks.ridge, gram.diagonal()[tasks.index]]
    )
    alpha, numbers = np.zeros((m, tasks.index.size)), np.zeros((m, n_tasks, N_NUMBERS))
    tols = np.array([goal.tol, goal.final_tol, goal.rounding])
    K = padded_values(gram)
    solve_path(n_tasks, listed, variables, K, tasks.index, costs, tols, alpha, numbers)
    columns_of = (numbers[:, :, k] for k in (BIAS, CONVERGED, STEPS))
    b, converged, steps = (np.ascontiguousarray(each) for each in columns_of)
    return CostGrid(alpha, b, converged > 0.0, steps, held_out_scores(K, tasks, alpha, b, tests))


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


@parallel
def solve_path(part, tasks, variables, whole, index, costs, goal, alpha, numbers):
    """Solve a task at every cost."""
    t, start, n, max_steps = tasks[part, 0], tasks[part, 1], tasks[part, 2], tasks[part, 3]
    task, curvature, _ = posed(start, n, n, variables, alpha[0], index, whole)
    mine, few = index[start : start + n], min(n, SET_SIZE)
    few += -few % VECTOR
    # Kβ of all rows of X where most of them take part, which needs no gathering; else of the task.
    total = np.zeros(whole.shape[1] if 2 * n > whole.shape[0] else n)
    # K of all variables where they are few, else of a working set; and its vectors.
    memory = vectors(few + N_VECTORS, few, whole)
    if n <= SET_SIZE:
        gather(whole, mine, mine, memory)
        for k in range(n):
            memory[k, k] = curvature[k]
    low, up, before = task[4], task[5], 1.0
    for c in range(costs.size):
        ratio = costs[c] / before
        before = costs[c]
        for k in range(n):
            low[k] *= ratio
            up[k] *= ratio
        if c > 0:
            grow(task, n, ratio, total)
        descend(whole, mine, curvature, task, goal, max_steps, memory, total, numbers[c, t])
        write_alpha(task, start, alpha[c])


@compiled_part
def gather(whole, rows, columns, out):
    """Do out ← K[rows, columns], and 0 beyond them."""
    for r in range(rows.size):
        row, values = whole[rows[r]], out[r]
        for c in range(columns.size):
            values[c] = row[columns[c]]
        for c in range(columns.size, values.size):
            values[c] = 0.0


@compiled_part
def grow(task, n, most, total):
    """Multiply β by the t between 1 and ``most`` of the largest dual value, and f with it."""
    _, _, target, _, low, up, beta, f = task
    linear, square = 0.0, 0.0
    for k in range(n):
        linear += beta[k] * target[k]
        square += beta[k] * (target[k] - f[k])
    by = most
    if square > 0.0:
        by = min(max(linear / square, 1.0), most)
    for k in range(n):
        f[k] = target[k] - by * (target[k] - f[k])
        beta[k] = min(max(by * beta[k], low[k]), up[k])
    for k in range(total.size):
        total[k] *= by


@compiled_part
def descend(whole, mine, curvature, task, goal, max_steps, memory, total, numbers):
    """Descend from β, whose f is known, until the KKT conditions hold and the gap is small."""
    _, _, target, _, low, up, beta, f = task
    tol, final_tol, rounding, n = goal[0], goal[1], goal[2], mine.size
    tightened, steps, b, is_fresh = 1.0, 0, 0.0, False
    passed, patience, set_size = 0.0, 1.0, SET_SIZE
    while True:
        top, least, mean = extremes(f, beta, low, up, 0, n)
        violation, b = top - least, multiplier(top, least, mean, final_tol)
        stop = tightened * PAIR_GOAL_TOLS * final_tol
        if violation > stop:
            if steps >= max_steps:
                break
            n_free = count_free(beta, low, up, n)
            due = patience * free_step_numbers(n_free)
            may_solve = 1 < n_free <= MAX_FREE
            if may_solve and passed >= due:
                gains = move_free(whole, mine, task, n_free, memory, total)
                passed, patience, is_fresh = 0.0, 1.0 if gains else 2.0 * patience, False
                continue
            most = max_steps - steps
            if may_solve:
                most = min(most, int((due - passed) / min(n, set_size)) + min(n, set_size))
            made, moved, size = move(
                whole, mine, curvature, task, top, least, stop, most, memory, total, set_size
            )
            steps, is_fresh = steps + made, False
            passed += float(made) * size + (0.0 if n <= SET_SIZE else size**2 + float(moved) * n)
            set_size = next_size(size, moved)
            if made == 0:
                break
            continue
        if not is_fresh and drift(beta, n, steps) > DRIFT_SHARE * stop:
            refresh(whole, mine, task, memory, total)
            is_fresh = True
            continue
        gap, _ = gap_of_groups(task, n, None, b, b)
        value = 0.0
        for k in range(n):
            value -= 0.5 * beta[k] * (f[k] + target[k])
        scale = max(abs(gap - value), 1e-300)
        if gap > GAP_TOLS * final_tol * scale and tightened >= 1e-6:
            tightened *= 0.5  # many small violations add up
            continue
        firm = firm_gap(task, curvature, f.size, b, b, 1.0, gap, rounding)
        numbers[CONVERGED] = firm <= 2.0 * tol * scale
        break
    numbers[BIAS], numbers[STEPS] = b, steps


@compiled_part
def next_size(size, moved):
    """Return the size of the next working set, for one of which so many variables have moved."""
    wanted = 2 * moved + -(2 * moved) % VECTOR
    return min(max(wanted, size // 2, LEAST_SET), SET_SIZE)


@compiled_part
def drift(beta, n, steps):
    """Return about how far rounding may have moved f in so many steps."""
    largest = 0.0
    for k in range(n):
        largest = max(largest, abs(beta[k]))
    return UNIT * (steps + n) * largest


@compiled_part
def count_free(beta, low, up, n):
    """Return how many variables are between their bounds."""
    found = 0
    for k in range(n):
        found += low[k] < beta[k] < up[k]
    return found


@compiled_part
def move_free(whole, mine, task, n_free, memory, total):
    """Make a Newton step of the free variables, and move f with them; return whether it gains."""
    _, _, _, _, low, up, beta, f = task
    n, m = mine.size, 0
    free = np.empty(n_free, dtype=np.intp)
    for k in range(n):
        if low[k] < beta[k] < up[k]:
            free[m] = k
            m += 1
    A, slopes = np.empty((n_free, n_free)), np.empty(n_free)
    lowest, highest = np.empty(n_free), np.empty(n_free)
    is_small = n <= SET_SIZE
    for v in range(n_free):
        k = free[v]
        row, out = memory[k] if is_small else whole[mine[k]], A[v]
        for u in range(n_free):
            out[u] = row[free[u] if is_small else mine[free[u]]]
        slopes[v], lowest[v], highest[v] = f[k], low[k] - beta[k], up[k] - beta[k]
    change, gains = free_step(A, slopes, lowest, highest)
    if not gains:
        return False
    for v in range(n_free):
        k, by = free[v], change[v]
        before = beta[k]
        # The bound itself, not what rounding makes of it.
        if by <= lowest[v]:
            beta[k] = low[k]
        elif by >= highest[v]:
            beta[k] = up[k]
        else:
            beta[k] += by
        if is_small:
            subtract(memory[k], beta[k] - before, f)
        else:
            add_row(whole[mine[k]], beta[k] - before, mine, total)
    if not is_small:
        read(mine, task, total)
    return True


@compiled_part
def refresh(whole, mine, task, memory, total):
    """Compute f anew."""
    _, _, target, _, _, _, beta, f = task
    n = mine.size
    if n <= SET_SIZE:
        copy(target, f)
        for k in range(n):
            if beta[k] != 0.0:
                subtract(memory[k], beta[k], f)
        return
    for k in range(total.size):
        total[k] = 0.0
    for k in range(n):
        if beta[k] != 0.0:
            add_row(whole[mine[k]], beta[k], mine, total)
    read(mine, task, total)


@compiled_part
def add_row(row, by, mine, total):
    """Add a multiple of a row of K to Kβ."""
    if total.size == mine.size:
        for j in range(mine.size):
            total[j] += by * row[mine[j]]
        return
    for j in range(total.size):
        total[j] += by * row[j]


@compiled_part
def read(mine, task, total):
    """Do f ← target − Kβ."""
    target, f = task[2], task[7]
    is_own = total.size == mine.size
    for k in range(mine.size):
        f[k] = target[k] - total[k if is_own else mine[k]]


@compiled_part
def move(whole, mine, curvature, task, top, least, stop, most, memory, total, set_size):
    """Move pairs of variables, those that violate most where there are many, and f with them.

    Return the steps, how many variables moved, and of how many.
    """
    _, _, _, _, low, up, beta, f = task
    edges, n = np.empty(2, dtype=np.intp), mine.size
    edges[0], edges[1] = 0, f.size
    last = memory.shape[0] - N_VECTORS
    if n <= SET_SIZE:
        steps = pair_steps(
            memory, curvature, beta, low, up, f, memory[last], memory[last + 1], edges, 0.5 * stop,
            most,
        )  # fmt: skip
        return steps, n, n
    members, rows = np.empty(set_size, dtype=np.intp), np.empty(set_size, dtype=np.intp)
    m = choose(f, beta, low, up, n, top, least, members)
    size = m + -m % VECTOR
    edges[1] = size
    bend, now = memory[last][:size], memory[last + 1][:size]
    lowest, highest = memory[last + 2][:size], memory[last + 3][:size]
    slopes, grows, shrinks = (
        memory[last + 4][:size], memory[last + 5][:size], memory[last + 6][:size],
    )  # fmt: skip
    for v in range(size):
        bend[v] = now[v] = lowest[v] = highest[v] = slopes[v] = 0.0
    for v in range(m):
        k = members[v]
        rows[v], bend[v], now[v], slopes[v] = mine[k], curvature[k], beta[k], f[k]
        lowest[v], highest[v] = low[k], up[k]
    for v in range(m):
        row, out = whole[rows[v]], memory[v]
        for u in range(m):
            out[u] = row[rows[u]]
        for u in range(m, size):
            out[u] = 0.0
    enough = max(0.5 * stop, ROUND_SHARE * (top - least))
    most = min(most, STEPS_PER_VARIABLE * m)
    steps = pair_steps(
        memory, bend, now, lowest, highest, slopes, grows, shrinks, edges, enough, most
    )
    moved = 0
    for v in range(m):
        k = members[v]
        if now[v] != beta[k]:
            add_row(whole[mine[k]], now[v] - beta[k], mine, total)
            beta[k] = now[v]
            moved += 1
    read(mine, task, total)
    return steps, moved, m


@compiled_part
def choose(f, beta, low, up, n, top, least, members):
    """Choose the variables that violate most, as many that may grow as that may shrink.

    They are counted by their violation; those of the last class that has room are taken in order.
    """
    counts, size = np.zeros((2, N_BINS), dtype=np.intp), members.size
    per_bin = (N_BINS - 1) / (top - least)
    for k in range(n):
        kind, excess = violation_of(f[k], beta[k] < up[k], beta[k] > low[k], top, least)
        if excess > 0.0:
            counts[kind, int(excess * per_bin)] += 1
    totals = counts[0].sum(), counts[1].sum()
    first = min(totals[0], max(size // 2, size - totals[1]))
    second = min(totals[1], size - first)
    edge0, room0 = last_class(counts[0], first)
    edge1, room1 = last_class(counts[1], second)
    m = 0
    for k in range(n):
        kind, excess = violation_of(f[k], beta[k] < up[k], beta[k] > low[k], top, least)
        if excess <= 0.0:
            continue
        at = int(excess * per_bin)
        if kind == 0 and (at > edge0 or (at == edge0 and room0 > 0)):
            room0 -= at == edge0
        elif kind == 1 and (at > edge1 or (at == edge1 and room1 > 0)):
            room1 -= at == edge1
        else:
            continue
        members[m] = k
        m += 1
    return m


@compiled_part
def violation_of(f, grows, shrinks, top, least):
    """Return whether a variable is to shrink rather than to grow, and by how much f is off."""
    rise = f - least if grows else -1.0
    fall = top - f if shrinks else -1.0
    if rise >= fall:
        return 0, rise
    return 1, fall


@compiled_part
def last_class(counts, wanted):
    """Return the class down to which the largest ones hold so many, and how many of its own."""
    at = counts.size - 1
    while at > 0 and wanted > counts[at]:
        wanted -= counts[at]
        at -= 1
    return at, wanted
