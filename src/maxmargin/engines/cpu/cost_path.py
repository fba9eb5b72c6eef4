"""Tasks of one group at one cost after the other: where each descent begins.

The first task of a group begins at a cost with its answer at the cost before: β is multiplied by
the number of the largest dual value, which needs no kernel value. Every other task, such as the
same two classes in another fold, has a second candidate: the answer of the first one at the same
cost, without the rows that are held out now, and with those that were. The better of the two counts.
"""

from __future__ import annotations

import numpy as np

from ...runtime.atomics import now
from ...runtime.row_access import compiled_part
from ...runtime.simd import vectors
from ...runtime.team import parallel
from .cost_descent import (
    N_VECTORS,
    SET_SIZE,
    begin,
    descend,
    objective,
    subtract_row,
)
from .task_descent import BIAS, DIAGONAL, LOWER, SIGN, UPPER, P
from .task_rows import VECTOR

# Numbers that a call may pass over: some hundredths of a second.
SLICE_NUMBERS = 1e8
# The vectors of the state of a chain.
SIGNS, TARGET, ZERO, LOW, UP, BETA, F, CURVATURE = range(8)
N_STATE = 8
# The columns of a chain: its rows, the place of its state, its members, which member and which cost
# it is at, and whether that has begun.
FIRST_ROW, END_ROW, PLACE, MEMBER, END_MEMBER, COST, BEGUN, GROUP = range(8)
N_COLUMNS = 8
# The columns of a task: its first variable, their number, steps at most, whether it is the first of
# its group, and where the scores of held-out rows are written, if they are.
START, N_OWN, MAX_STEPS, IS_FIRST, FIRST_TEST, END_TEST = range(6)
# Parts in which what is missing in a sum is handed out, and the sum that is rounding.
N_SHARES, NEGLIGIBLE_SUM = 16, 1e-14
# The least curvature.
FLAT = 1e-12


@parallel
def advance(
    part, going, chains, members, tasks, variables, places, rows, tests, whole, costs, goal, kept,
    state, seeds, alpha, numbers, scores,
):  # fmt: skip
    """Solve the tasks of a chain at one cost after the other, until a slice of time is over."""
    chain = chains[going[part]]
    mine = rows[chain[FIRST_ROW] : chain[END_ROW]]
    n = mine.size
    few = min(n, SET_SIZE)
    few += -few % VECTOR
    memory = vectors(few + N_VECTORS, few, state)
    t0 = now()
    if n <= SET_SIZE:
        gather(whole, mine, memory)
        K = whole
    elif n == whole.shape[0]:
        K = whole
    else:
        K = vectors(n, n + -n % VECTOR, whole)
        gather(whole, mine, K)
    kept[going[part]][14] += now() - t0
    budget, has_ended = SLICE_NUMBERS, True
    while has_ended and chain[MEMBER] < chain[END_MEMBER]:
        t, c, own = members[chain[MEMBER]], chain[COST], kept[going[part]]
        task, curvature = task_of(chain, tasks[t], places, state)
        if chain[BEGUN] == 0:
            if c == 0:
                pose(task, curvature, tasks[t], variables)
            t0 = now()
            start(K, memory, task, curvature, n, chain, tasks[t], variables, costs, c, seeds)
            own[12] += now() - t0
            begin(own)
            chain[BEGUN] = 1
        t0 = now()
        budget, has_ended = descend(
            K, curvature, task, n, goal, tasks[t, MAX_STEPS], memory, own, budget, numbers[c, t]
        )
        own[13] += now() - t0
        if has_ended:
            b = numbers[c, t, BIAS]
            write_answer(task, n, chain, tasks[t], b, c, tests, seeds, alpha, scores)
            chain[BEGUN], chain[COST] = 0, c + 1
            if c + 1 == costs.size:
                chain[COST], chain[MEMBER] = 0, chain[MEMBER] + 1


@compiled_part
def gather(whole, rows, out):
    """Do out ← K[rows, rows], and 0 beyond them."""
    for r in range(rows.size):
        row, values = whole[rows[r]], out[r]
        for c in range(rows.size):
            values[c] = row[rows[c]]
        for c in range(rows.size, values.size):
            values[c] = 0.0


@compiled_part
def task_of(chain, numbers, places, state):
    """Return the vectors of a task, of all rows of its group, and the diagonal of K."""
    first, size = chain[PLACE], chain[END_ROW] - chain[FIRST_ROW]
    last = first + size + -size % VECTOR
    own = places[numbers[START] : numbers[START] + numbers[N_OWN]]
    return (
        own, state[SIGNS][first:last], state[TARGET][first:last], state[ZERO][first:last],
        state[LOW][first:last], state[UP][first:last], state[BETA][first:last],
        state[F][first:last],
    ), state[CURVATURE][first:last]  # fmt: skip


@compiled_part
def pose(task, curvature, numbers, variables):
    """Write the vectors of a task at β = 0."""
    places, signs, target, _, low, up, beta, f = task
    for k in range(f.size):
        signs[k] = target[k] = low[k] = up[k] = beta[k] = f[k] = 0.0
    for v in range(places.size):
        k, i = places[v], numbers[START] + v
        signs[k] = variables[SIGN, i]
        target[k] = f[k] = -signs[k] * variables[P, i]


@compiled_part
def start(K, memory, task, curvature, n, chain, numbers, variables, costs, c, seeds):
    """Write the bounds at a cost, and where the descent begins, with its f."""
    places, _, target, _, low, up, beta, f = task
    by, most = 1.0, 1.0
    if c > 0:
        most = costs[c] / costs[c - 1]
        by = growth(target, beta, f, n, most)
    for v in range(places.size):
        k, i = places[v], numbers[START] + v
        lower, upper = costs[c] * variables[LOWER, i], costs[c] * variables[UPPER, i]
        was_full = beta[k] != 0.0 and (beta[k] <= low[k] or beta[k] >= up[k])
        is_positive = variables[SIGN, i] > 0.0
        low[k] = lower if is_positive else -upper
        up[k] = upper if is_positive else -lower
        beta[k] = min(max(by * beta[k], low[k]), up[k])
        if was_full and by == most:  # not what rounding makes of it
            beta[k] = up[k] if beta[k] > 0.0 else low[k]
    for k in range(n):
        f[k] = target[k] - by * (target[k] - f[k])
    if numbers[IS_FIRST] == 0:
        other = vectors(2, f.size, f)
        sums_up = transfer(K, memory, task, curvature, n, chain, c, seeds, other[0], other[1])
        if sums_up and objective(other[0], target, other[1], n) < objective(beta, target, f, n):
            for k in range(n):
                beta[k], f[k] = other[0, k], other[1, k]


@compiled_part
def growth(target, beta, f, n, most):
    """Return the t between 1 and ``most`` of the largest dual value of tβ."""
    linear, square = 0.0, 0.0
    for k in range(n):
        linear += beta[k] * target[k]
        square += beta[k] * (target[k] - f[k])
    return min(max(linear / square, 1.0), most) if square > 0.0 else most


@compiled_part
def transfer(K, memory, task, curvature, n, chain, c, seeds, beta, f):
    """Write the answer of the first task of the group as one of this task, and its f.

    Of rows that only this task has α is what their own loss would make it, at most C. Then Σβ = 0
    is restored by those variables that gain most from it, or lose least. Return whether it is.
    """
    _, signs, target, _, low, up, _, _ = task
    seed_beta, seed_product, seed_target, seed_b = seeds
    first, level = chain[FIRST_ROW], seed_b[c, chain[GROUP]]
    for k in range(n):
        f[k], beta[k] = target[k] - seed_product[c, first + k], seed_beta[c, first + k]
    for k in range(n):
        before = beta[k]
        if seed_target[first + k] == 0.0 and signs[k] != 0.0:
            fall = signs[k] * (target[k] - seed_product[c, first + k] - level)
            beta[k] = signs[k] * max(fall, 0.0) / max(curvature[k], FLAT)
        beta[k] = min(max(beta[k], low[k]), up[k])
        if beta[k] != before:
            subtract_row(K, memory, k, beta[k] - before, f, n)
    for share in range(3 * N_SHARES):
        missing, size = 0.0, 0.0
        for k in range(n):
            missing -= beta[k]
            size += abs(beta[k])
        if abs(missing) <= NEGLIGIBLE_SUM * size:
            return True
        k = fittest(beta, low, up, f, n, missing > 0.0)
        if k < 0:
            return False
        by = min(abs(missing), up[k] - beta[k] if missing > 0.0 else beta[k] - low[k])
        if share < 2 * N_SHARES:
            by = min(by, max(abs(f[k] - level) / max(curvature[k], FLAT), abs(missing) / N_SHARES))
        before = beta[k]
        beta[k] = min(max(before + (by if missing > 0.0 else -by), low[k]), up[k])
        subtract_row(K, memory, k, beta[k] - before, f, n)
    return False


@compiled_part
def fittest(beta, low, up, f, n, may_grow):
    """Return the variable of the largest f that may grow, or of the least that may shrink."""
    best, at = -np.inf, -1
    for k in range(n):
        if may_grow and beta[k] < up[k] and f[k] > best:
            best, at = f[k], k
        elif not may_grow and beta[k] > low[k] and -f[k] > best:
            best, at = -f[k], k
    return at


@compiled_part
def write_answer(task, n, chain, numbers, b, c, tests, seeds, alpha, scores):
    """Write α, the scores of held-out rows where they are known, and what other tasks begin with.

    The rows of held-out scores are places in X: all of X are rows of the group then.
    """
    places, signs, target, _, _, _, beta, f = task
    for v in range(places.size):
        k = places[v]
        alpha[c, numbers[START] + v] = signs[k] * beta[k] + 0.0
    for v in range(numbers[FIRST_TEST], numbers[END_TEST]):
        k = tests[v]
        scores[c, v] = target[k] - f[k] + b
    if numbers[IS_FIRST] == 1:
        seed_beta, seed_product, seed_target, seed_b = seeds
        first = chain[FIRST_ROW]
        seed_b[c, chain[GROUP]] = b
        for k in range(n):
            seed_beta[c, first + k], seed_product[c, first + k] = beta[k], target[k] - f[k]
            seed_target[first + k] = target[k]
