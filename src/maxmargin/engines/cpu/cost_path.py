"""Tasks of one group at one cost after the other: where each descent begins.

Every task begins at a cost with its answer at the cost before, β being multiplied by the number of
the largest dual value, which needs no kernel value, or with a better candidate. For the first task
of a group that is its answer at this cost with another kernel, if one is known. For the others,
such as the same two classes in another fold, it is the answer of the first one at this cost,
without the rows that are held out now, and with those that were.
"""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled_part
from ...runtime.simd import vectors
from ...runtime.team import parallel
from .cost_descent import (
    BETA,
    BLUR,
    MADE,
    N_STATE,
    SET_SIZE,
    SIGNS,
    TARGET,
    F,
    begin,
    descend,
    drift,
    objective,
    subtract,
    vectors_of,
)
from .task_descent import BIAS, CONVERGED, LOWER, N_NUMBERS, NEGLIGIBLE, SIGN, UPPER, P
from .task_rows import VECTOR
from .values import UNIT

# Numbers that a call may pass over: a tenth of a second, or two where rows come from memory.
SLICE_NUMBERS = 1.5e8
# The columns of a chain: its rows, the place of its state, its group, the next of its tasks, the
# end of those that are solved side by side with it, the end of all, how many are, after the first,
# the cost that they are at, and whether that has begun.
FIRST_ROW, END_ROW, PLACE, GROUP, MEMBER, END_TEAM, END_MEMBER, MOST_TOGETHER = range(8)
COST, BEGUN, N_COLUMNS = range(8, 11)
# The columns of a task: its first variable, their number, the numbers that may be passed over at a
# cost, whether it is the first of its group, and where the scores of held-out rows are written, if
# they are.
START, N_OWN, MOST_NUMBERS, IS_FIRST, FIRST_TEST, END_TEST = range(6)
# Parts in which what is missing in a sum is handed out.
N_SHARES = 16
# The least curvature.
FLAT = 1e-12


@parallel
def advance(
    part, going, chains, members, tasks, variables, places, rows, tests, whole, diagonal, costs,
    goal, kept, memory, seeds, alpha, numbers, scores,
):  # fmt: skip
    """Solve the tasks of a chain at one cost after the other, until a slice of time is over.

    A task that does not converge at a cost is left to others from there on.
    """
    chain = chains[going[part]]
    mine = rows[chain[FIRST_ROW] : chain[END_ROW]]
    n = mine.size
    size = n + -n % VECTOR
    few = min(size, SET_SIZE)
    near, curvature = vectors(few, few, memory), vectors(1, size, memory)[0]
    for k in range(size):
        curvature[k] = diagonal[mine[k]] if k < n else 0.0
    K = whole
    if n <= SET_SIZE:
        K = near
        gather_runs(whole, mine, few, K)
    elif n < whole.shape[0]:
        K = vectors(n, size, whole)
        gather_runs(whole, mine, size, K)
    budget, has_ended = SLICE_NUMBERS, True
    while has_ended and chain[MEMBER] < chain[END_MEMBER]:
        first, width, c = chain[MEMBER], chain[END_TEAM] - chain[MEMBER], chain[COST]
        numbers_here = N_STATE * width * size
        state = memory[chain[PLACE] : chain[PLACE] + numbers_here].reshape(N_STATE, width, size)
        team, own = members[first : first + width], kept[first : first + width]
        edges = np.empty((width, 2), dtype=np.intp)
        for v in range(width):
            edges[v, 0] = tasks[team[v], START]
            edges[v, 1] = edges[v, 0] + tasks[team[v], N_OWN]
        if chain[BEGUN] == 0:
            for v in range(width):
                task = tasks[team[v]]
                if c == 0:
                    pose(state, v, places[edges[v, 0] : edges[v, 1]], task, variables)
                    own[v, BLUR] = 0.0
                start(
                    K, state, v, curvature, n, places, chain, task, variables, costs, c,
                    seeds, own[v],
                )  # fmt: skip
                has_failed = c > 0 and numbers[c - 1, team[v], CONVERGED] == 0.0
                begin(own[v], n, task[MOST_NUMBERS], has_failed)
            chain[BEGUN] = 1
        found = np.empty((width, N_NUMBERS))
        for v in range(width):
            found[v] = numbers[c, team[v]]
        budget, has_ended = descend(
            K, curvature, places, edges, state, n, goal, near, own, budget, found
        )
        for v in range(width):
            numbers[c, team[v]] = found[v]
        if has_ended:
            for v in range(width):
                b, task = found[v, BIAS], tasks[team[v]]
                own[v, BLUR] += drift(state[BETA, v], n, own[v, MADE])
                write_answer(
                    state, v, n, places, chain, task, b, own[v, BLUR], c, tests, seeds, alpha,
                    scores,
                )  # fmt: skip
            chain[BEGUN], chain[COST] = 0, c + 1
            if c + 1 == costs.size:
                chain[COST], chain[MEMBER] = 0, chain[END_TEAM]
                chain[END_TEAM] = min(chain[MEMBER] + chain[MOST_TOGETHER], chain[END_MEMBER])


@compiled_part
def gather_runs(whole, rows, width, out):
    """Write the part of K of rows that ascend, with 0 beyond it, run after run of them."""
    n, n_runs = rows.size, 1
    for k in range(1, n):
        n_runs += rows[k] != rows[k - 1] + 1
    runs = np.empty(n_runs + 1, dtype=np.intp)
    runs[0], runs[n_runs], at = 0, n, 1
    for k in range(1, n):
        if rows[k] != rows[k - 1] + 1:
            runs[at] = k
            at += 1
    for r in range(n):
        row, values = whole[rows[r]], out[r]
        for part in range(n_runs):
            first, last = runs[part], runs[part + 1]
            shift = rows[first] - first
            for j in range(first, last):
                values[j] = row[j + shift]
        for j in range(n, width):
            values[j] = 0.0


@compiled_part
def pose(state, v, own, numbers, variables):
    """Write the vectors of a task at β = 0."""
    for k in range(state.shape[2]):
        for each in range(N_STATE):
            state[each, v, k] = 0.0
    for u in range(own.size):
        k, i = own[u], numbers[START] + u
        sign = variables[SIGN, i]
        state[SIGNS, v, k] = sign
        state[TARGET, v, k] = state[F, v, k] = -sign * variables[P, i]


@compiled_part
def start(
    K, state, v, curvature, n, places, chain, numbers, variables, costs, c, seeds, kept
):  # fmt: skip
    """Write the bounds at a cost, and where the descent begins, with its f and what blurs it."""
    _, target, _, low, up, beta, f = vectors_of(state, v)
    by, most = 1.0, 1.0
    if c > 0:
        most = costs[c] / costs[c - 1]
        by = growth(target, beta, f, n, 1.0, most)
    for u in range(numbers[N_OWN]):
        k, i = places[numbers[START] + u], numbers[START] + u
        lower, upper = costs[c] * variables[LOWER, i], costs[c] * variables[UPPER, i]
        was_full = beta[k] != 0.0 and (beta[k] <= low[k] or beta[k] >= up[k])
        is_positive = variables[SIGN, i] > 0.0
        low[k] = lower if is_positive else -upper
        up[k] = upper if is_positive else -lower
        beta[k] = min(max(by * beta[k], low[k]), up[k])
        if was_full and by == most:  # not what rounding makes of it
            beta[k] = up[k] if beta[k] > 0.0 else low[k]
    largest = 0.0
    for k in range(n):
        largest = max(largest, abs(target[k]) + abs(f[k]))
        f[k] = target[k] - by * (target[k] - f[k])
    kept[BLUR] = by * (kept[BLUR] + 2.0 * UNIT * largest)
    other, blur = vectors(2, f.size, f), 0.0
    if numbers[IS_FIRST] == 0:
        serves = transfer(K, state, v, curvature, n, chain, c, seeds, other[0], other[1])
        blur = seeds[-1][c, chain[GROUP]]
    else:
        serves = recall(K, state, v, n, places, numbers, c, seeds, other[0], other[1])
    if serves and objective(other[0], target, other[1], n) < objective(beta, target, f, n):
        for k in range(n):
            beta[k], f[k] = other[0, k], other[1, k]
        kept[BLUR] = blur + drift(beta, n, n)


@compiled_part
def growth(target, beta, f, n, least, most):
    """Return the t between ``least`` and ``most`` of the largest dual value of tβ."""
    linear, square = 0.0, 0.0
    for k in range(n):
        linear += beta[k] * target[k]
        square += beta[k] * (target[k] - f[k])
    return min(max(linear / square, least), most) if square > 0.0 else most


@compiled_part
def recall(K, state, v, n, places, numbers, c, seeds, beta, f):
    """Write the answer with another kernel, if there is one, its length the best, and its f."""
    signs, target, has_any = state[SIGNS, v], state[TARGET, v], False
    for k in range(n):
        beta[k], f[k] = 0.0, target[k]
    recalled = seeds[0]
    for u in range(numbers[START], numbers[START] + numbers[N_OWN]):
        k = places[u]
        beta[k] = signs[k] * recalled[c, u]
        if beta[k] != 0.0:
            has_any = True
            subtract(K[k], beta[k], f, n)
    if has_any:
        by = growth(target, beta, f, n, 0.0, 1.0)
        for k in range(n):
            beta[k], f[k] = by * beta[k], target[k] - by * (target[k] - f[k])
    return has_any


@compiled_part
def transfer(K, state, v, curvature, n, chain, c, seeds, beta, f):
    """Write the answer of the first task of the group as one of this task, and its f.

    Of rows that only this task has α is what their own loss would make it, at most C. Then Σβ = 0
    is restored by those variables that gain most from it, or lose least. Return whether it is.
    """
    signs, target, _, low, up, _, _ = vectors_of(state, v)
    _, seed_beta, seed_product, seed_target, seed_b, _ = seeds
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
            subtract(K[k], beta[k] - before, f, n)
    for share in range(3 * N_SHARES):
        missing, size = 0.0, 0.0
        for k in range(n):
            missing -= beta[k]
            size += abs(beta[k])
        if abs(missing) <= NEGLIGIBLE * size:
            return True
        k = fittest(beta, low, up, f, n, missing > 0.0)
        if k < 0:
            return False
        by = min(abs(missing), up[k] - beta[k] if missing > 0.0 else beta[k] - low[k])
        if share < 2 * N_SHARES:
            by = min(by, max(abs(f[k] - level) / max(curvature[k], FLAT), abs(missing) / N_SHARES))
        before = beta[k]
        beta[k] = min(max(before + (by if missing > 0.0 else -by), low[k]), up[k])
        subtract(K[k], beta[k] - before, f, n)
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
def write_answer(state, v, n, places, chain, numbers, b, blur, c, tests, seeds, alpha, scores):
    """Write α, the scores of held-out rows where they are known, and what other tasks begin with.

    The rows of held-out scores are places in X: all of X are rows of the group then.
    """
    signs, target, _, _, _, beta, f = vectors_of(state, v)
    for u in range(numbers[START], numbers[START] + numbers[N_OWN]):
        k = places[u]
        alpha[c, u] = signs[k] * beta[k] + 0.0
    for u in range(numbers[FIRST_TEST], numbers[END_TEST]):
        k = tests[u]
        scores[c, u] = target[k] - f[k] + b
    if numbers[IS_FIRST] == 1:
        _, seed_beta, seed_product, seed_target, seed_b, seed_blur = seeds
        first = chain[FIRST_ROW]
        seed_b[c, chain[GROUP]], seed_blur[c, chain[GROUP]] = b, blur
        for k in range(n):
            seed_beta[c, first + k], seed_product[c, first + k] = beta[k], target[k] - f[k]
            seed_target[first + k] = target[k]
