"""Descent of the same task in several folds at one cost, side by side, all rows in memory.

The variables are those of all rows of the group: of rows that a task holds out both bounds are 0,
so that Kβ is known of them, too. Pairs of variables are moved: of all of them where these are few
or a round is short, else of a working set of those that violate most in any of the folds. Its part
of K fits the cache, and is gathered row by row, when a variable is moved first. Folds share working
sets, and the rows of K by which f changes, at the beginning of a cost; then each goes on alone.
Where pairs have taken as long as a Newton step of the free variables would, and these violate most,
one is made, in single precision while that helps.
"""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled_part
from ...runtime.simd import added, count, fill, largest, load, vectors, where_greater
from .free_step import MAX_FREE, free_step, free_step_numbers
from .smo import pair_steps
from .task_descent import (
    BIAS,
    CONVERGED,
    GAP_TOLS,
    PAIR_GOAL_TOLS,
    STEPS,
    firm_gap,
    gap_of_groups,
    multiplier,
    settle,
)
from .task_rows import VECTOR
from .values import UNIT

# Variables of a working set, multiples of the numbers in a vector, and steps with it per variable.
SET_SIZE, FIRST_SET, LEAST_SET, STEPS_PER_VARIABLE = 768, 384, 128, 20
# Numbers per row of a group that its folds pass over together before they go on one by one.
SHARED_NUMBERS = 1e4
# Steps between two Newton steps, at least.
LEAST_STEPS = 128
# Numbers that the pair steps of one call pass over at most.
NUMBERS_PER_CALL = 1e8
# How long a number takes that is gathered, or by which f changes, relative to one of a pair step.
GATHERING, APPLYING, CHOOSING = 3.0, 0.3, 5.0
# A round ends at this share of the violation before it.
ROUND_SHARE = 0.1
# A Newton step is made if free variables make up such a share of the violation; single precision
# does while it leaves at most such a share of that.
FREE_SHARE, LEFT_BY_SINGLE = 0.5, 0.5
# f is computed anew where rounding may have changed it by this share of the violation allowed.
DRIFT_SHARE = 0.01
# Classes of violations into which variables are counted, to find the worst of them.
N_BINS = 128
# Below 1: classes are numbered by shares of the largest violation.
JUST_BELOW_ONE = 0.999
# The vectors of a task, one number per row of its group.
SIGNS, TARGET, ZERO, LOW, UP, BETA, F, CHANGE = range(8)
N_STATE = 8
# The numbers that a descent keeps from one slice to the next: the goal relative to the usual one,
# steps so far, numbers that may yet be passed, those since the last Newton step, how much longer
# the next one waits, whether f has just been computed anew, whether this has ended; the largest f
# that may grow, the least that may shrink, and by how much they may differ; variables of the next
# working set (of all folds); by how much f of free variables differed at the last Newton step, and
# whether the next one takes double precision; and, from one cost to the next, what rounding may
# have done to f before.
TIGHTENED, MADE, LEFT, PASSED, PATIENCE, FRESH, ENDED = range(7)
TOP, LEAST, STOP, SIZE, IS_WHOLE, BEFORE, IS_DOUBLE = range(7, 14)
N_FREE, SPREAD, SHARED, BLUR = range(14, 18)
N_KEPT = 18


@compiled_part
def begin(kept, n, most_numbers, has_failed):
    """Write what a descent begins with, or that there is none."""
    for k in range(BLUR):
        kept[k] = 0.0
    kept[LEFT], kept[ENDED] = most_numbers, 1.0 if has_failed else 0.0
    kept[TIGHTENED] = kept[PATIENCE] = 1.0
    kept[IS_WHOLE], kept[SIZE], kept[SHARED] = 1.0, FIRST_SET, SHARED_NUMBERS * n


@compiled_part
def vectors_of(state, v):
    """Return the vectors of the task in a fold, as `task_descent` takes them."""
    return (
        state[SIGNS, v], state[TARGET, v], state[ZERO, v], state[LOW, v], state[UP, v],
        state[BETA, v], state[F, v],
    )  # fmt: skip


@compiled_part
def descend(K, curvature, places, edges, state, n, goal, memory, kept, budget, numbers):
    """Descend from β, whose f is known, until the KKT conditions hold and the gaps are small.

    Parameters
    ----------
    K : ndarray
        Of the rows of the group.
    curvature : ndarray
        The diagonal of K.
    places, edges : ndarray of int
        The rows of each task, one task after the other, and where each begins and ends.
    state : ndarray of shape (N_STATE, n_folds, ≥ n)
        The vectors of the tasks.
    n : int
        Rows of the group.
    goal : ndarray
        The tol of the caller, the one to reach, and the relative rounding error of a score.
    memory : ndarray
        For a working set's part of K.
    kept : ndarray of shape (n_folds, N_KEPT)
        What is kept from one call to the next, and changed.
    budget : float
        Numbers that may be passed over by this call.
    numbers : ndarray of shape (n_folds, N_NUMBERS)
        The bias, the number of steps, and 1 if it has converged.

    Returns
    -------
    (float, bool)
        What is left of the budget, and whether all have ended.
    """
    n_folds = state.shape[1]
    while True:
        takes_part, n_going = turn(kept), 0
        for v in range(n_folds):
            if takes_part[v]:
                own = places[edges[v, 0] : edges[v, 1]]
                budget -= examine(K, curvature, own, state, v, n, goal, kept[v], numbers[v])
                takes_part[v] = kept[v, ENDED] == 0.0
            n_going += kept[v, ENDED] == 0.0
        if n_going == 0 or budget < 0.0:
            return budget, n_going == 0
        budget -= improve(K, curvature, state, n, memory, kept, takes_part)


@compiled_part
def turn(kept):
    """Return which folds go on now: those that share rounds, or else the first of the others."""
    takes_part, first = (kept[:, ENDED] == 0.0) & (kept[:, SHARED] > 0.0), kept.shape[0]
    for v in range(kept.shape[0] - 1, -1, -1):
        first = v if kept[v, ENDED] == 0.0 else first
    if not takes_part.any() and first < kept.shape[0]:
        takes_part[first] = True
    return takes_part


@compiled_part
def examine(K, curvature, own, state, v, n, goal, kept, numbers):
    """Note how far a task is, and whether it has ended; return the numbers passed over."""
    signs, target, zero, low, up, beta, f = vectors_of(state, v)
    task = own, signs, target, zero, low, up, beta, f
    tol, final_tol, rounding, work = goal[0], goal[1], goal[2], 0.0
    while True:
        top, least, mean = survey(f, beta, low, up, kept)
        b, stop = multiplier(top, least, mean, final_tol), PAIR_GOAL_TOLS * final_tol
        stop *= kept[TIGHTENED]
        numbers[BIAS], numbers[STEPS] = b, kept[MADE]
        kept[TOP], kept[LEAST], kept[STOP] = top, least, stop
        if top - least > stop:
            kept[ENDED] = kept[LEFT] <= 0.0
            return work
        if settle(beta, low, up):
            continue
        gap, _ = gap_of_groups(task, n, None, b, b)
        scale = max(abs(gap - objective(beta, target, f, n)), 1e-300)
        blurred = kept[BLUR] + drift(beta, n, kept[MADE])
        if kept[FRESH] == 0.0 and blurred > DRIFT_SHARE * sharpness(stop, final_tol * scale, task):
            work += refresh(K, state, v, n)
            kept[FRESH], kept[BLUR] = 1.0, 0.0
            continue
        if gap > GAP_TOLS * final_tol * scale and kept[TIGHTENED] >= 1e-6:
            kept[TIGHTENED] *= 0.5  # many small violations add up
            continue
        firm = firm_gap(task, curvature, f.size, b, b, 1.0, gap, rounding)
        numbers[CONVERGED] = firm <= 2.0 * tol * scale
        kept[ENDED] = 1.0
        return work


@compiled_part
def survey(f, beta, low, up, kept):
    """Return the largest f that may grow, the least that may shrink, and the mean of the free.

    Note how many variables are free, and by how much their f differ. Those beyond the end of a task
    have equal bounds.
    """
    zero, one, far = fill(f, 0.0), fill(f, 1.0), fill(f, np.inf)
    total, n_free = zero, zero
    top = highest = zero - far
    least = lowest = far
    for k in range(0, f.size, count(f)):
        value, now = load(f, k), load(beta, k)
        floor, ceiling = load(low, k), load(up, k)
        top = where_greater(ceiling, now, where_greater(value, top, value, top), top)
        least = where_greater(now, floor, where_greater(least, value, value, least), least)
        is_free = where_greater(now, floor, where_greater(ceiling, now, one, zero), zero)
        total = total + where_greater(is_free, zero, value, zero)
        n_free = n_free + is_free
        highest = where_greater(
            is_free, zero, where_greater(value, highest, value, highest), highest
        )
        lowest = where_greater(is_free, zero, where_greater(lowest, value, value, lowest), lowest)
    n = added(n_free)
    kept[N_FREE], kept[SPREAD] = n, largest(highest) + largest(zero - lowest)
    return largest(top), -largest(zero - least), added(total) / n if n > 0.0 else np.nan


@compiled_part
def sharpness(stop, gap, task):
    """Return the error of f that matters to a violation or, at all bounds together, to a gap."""
    room = 0.0
    for k in task[0]:
        room += task[5][k] - task[4][k]
    return min(stop, gap / max(room, 1e-300))


@compiled_part
def objective(beta, target, f, n):
    """Return ½βᵀKβ − βᵀ target."""
    value = 0.0
    for k in range(n):
        value -= 0.5 * beta[k] * (f[k] + target[k])
    return value


@compiled_part
def improve(K, curvature, state, n, memory, kept, takes_part):
    """Make a Newton step or steps of pairs in some folds; return the numbers passed over."""
    n_folds = state.shape[1]
    n_free, due = np.zeros(n_folds, dtype=np.intp), np.zeros(n_folds)
    by_pairs, work = np.zeros(n_folds, dtype=np.bool_), 0.0
    for v in range(n_folds):
        if not takes_part[v]:
            continue
        kept[v, FRESH] = 0.0
        n_free[v], spread = int(kept[v, N_FREE]), kept[v, SPREAD]
        due[v] = kept[v, PATIENCE] * free_step_numbers(n_free[v])
        by_pairs[v] = not 1 < n_free[v] <= MAX_FREE or kept[v, PASSED] < due[v]
        by_pairs[v] |= spread < FREE_SHARE * (kept[v, TOP] - kept[v, LEAST])
        if not by_pairs[v]:
            move_free(K, state, v, n, n_free[v], spread, kept[v])
            work += free_step_numbers(n_free[v])
    if by_pairs.any():
        work += move_pairs(K, curvature, state, n, memory, kept, by_pairs, n_free, due)
    return work + float(apply_change(K, state, n)) * n


@compiled_part
def move_pairs(K, curvature, state, n, memory, kept, by_pairs, n_free, due):
    """Move pairs of variables in some folds; return the numbers passed over."""
    n_pairs, v = 0, 0
    for k in range(by_pairs.size):
        n_pairs += by_pairs[k]
        v = k if by_pairs[k] else v
    if n > SET_SIZE and (n_pairs > 1 or kept[v, IS_WHOLE] == 0.0):
        size = int(kept[v, SIZE])
        return move_sets(K, curvature, state, n, size, memory, kept, by_pairs, n_free, due)
    most = most_steps(kept[v], n, n_free[v], due[v])
    if n > SET_SIZE:
        most = min(most, int(set_numbers(n, kept[v, SIZE], n) / n) + 1)
    made = all_pairs(K, curvature, state, v, 0.5 * kept[v, STOP], most)
    kept[v, IS_WHOLE] = 0.0
    return note_steps(kept[v], made, float(made) * n)


@compiled_part
def move_sets(K, curvature, state, n, size, memory, kept, by_pairs, n_free, due):
    """Move pairs of one working set in some folds; return the numbers passed over."""
    members = chosen(state, n, size, kept, by_pairs)
    m, n_pairs, n_moved, n_made, total = members.size, by_pairs.sum(), 0, 0, 0.0
    rows = memory, np.zeros(m, dtype=np.bool_), K, members  # see task_rows.DRAWN
    for v in range(by_pairs.size):
        if not by_pairs[v]:
            continue
        most = min(most_steps(kept[v], m, n_free[v], due[v]), STEPS_PER_VARIABLE * m)
        enough = max(0.5 * kept[v, STOP], ROUND_SHARE * (kept[v, TOP] - kept[v, LEAST]))
        made, moved = some_pairs(curvature, state, v, rows, enough, most)
        n_moved, n_made = max(n_moved, moved), n_made + made
        work = float(made) * m
        work += (GATHERING * float(m) * min(m, moved) + APPLYING * float(moved) * n) / n_pairs
        total += note_steps(kept[v], made, work)
        kept[v, IS_WHOLE] = 1.0 if float(made) * n < set_numbers(n, m, made) else 0.0
    size = next_size(m, n_moved)
    if float(n_made) * m < n_pairs * (CHOOSING + APPLYING * n_moved) * n:  # steps cost least
        size = min(max(2 * m, LEAST_SET), SET_SIZE)
    for v in range(by_pairs.size):
        kept[v, SIZE] = size if by_pairs[v] else kept[v, SIZE]
    return total


@compiled_part
def most_steps(kept, m, n_free, due):
    """Return how many steps may be made with so many variables before other work is due."""
    most = max(int(min(kept[LEFT], NUMBERS_PER_CALL) / m), 1)
    if 1 < n_free <= MAX_FREE:
        most = min(most, int(max(due - kept[PASSED], 0.0) / m) + LEAST_STEPS)
    return most


@compiled_part
def set_numbers(n, m, steps):
    """Return about how many numbers a working set passes over, with so many steps at most."""
    moved = min(m, 2.0 * steps)
    return steps * m + GATHERING * m * moved + APPLYING * moved * n + CHOOSING * n


@compiled_part
def note_steps(kept, made, work):
    """Note steps of a task, and that it has ended if there are none; return the work."""
    kept[MADE] += made
    kept[PASSED] += work
    kept[LEFT] -= work
    kept[SHARED] -= work
    if made == 0:  # none of the others would be either
        kept[ENDED] = 1.0
    return work


@compiled_part
def all_pairs(K, curvature, state, v, stop, most):
    """Move pairs of all variables of a task, and f with them; return the steps."""
    f = state[F, v]
    edges, scratch = np.empty(2, dtype=np.intp), vectors(2, f.size, f)
    edges[0], edges[1] = 0, f.size
    return pair_steps(
        K, curvature, state[BETA, v], state[LOW, v], state[UP, v], f, scratch[0], scratch[1],
        edges, stop, most,
    )  # fmt: skip


@compiled_part
def some_pairs(curvature, state, v, rows, stop, most):
    """Move pairs of a working set, and note the changes; return the steps, and how many moved."""
    memory, _, _, members = rows
    _, _, _, low, up, beta, f = vectors_of(state, v)
    change, m = state[CHANGE, v], members.size
    edges, size = np.empty(2, dtype=np.intp), m + -m % VECTOR
    edges[0], edges[1] = 0, size
    scratch = vectors(7, size, memory)
    bend, now, slopes = scratch[0], scratch[1], scratch[2]
    lowest, highest = scratch[3], scratch[4]
    for u in range(m, size):
        bend[u] = now[u] = lowest[u] = highest[u] = slopes[u] = 0.0
    for u in range(m):
        k = members[u]
        bend[u], now[u], slopes[u] = curvature[k], beta[k], f[k]
        lowest[u], highest[u] = low[k], up[k]
    steps = pair_steps(
        rows, bend, now, lowest, highest, slopes, scratch[5], scratch[6], edges, stop, most
    )
    moved = 0
    for u in range(m):
        k = members[u]
        if now[u] != beta[k]:
            change[k] = now[u] - beta[k]
            beta[k] = now[u]
            moved += 1
    return steps, moved


@compiled_part
def apply_change(K, state, n):
    """Change f by what has changed in β; return how many rows of K that took."""
    n_folds, n_rows = state.shape[1], 0
    moved, size = np.empty(n + 3, dtype=np.intp), np.zeros(n)
    for v in range(n_folds):
        change = state[CHANGE, v]
        for k in range(n):
            size[k] += abs(change[k])
    for k in range(n):
        moved[n_rows] = k
        n_rows += size[k] > 0.0
    for at in range(0, n_rows, 4):  # four at a time: f is read and written less often
        for missing in range(n_rows, at + 4):
            moved[missing] = moved[at]
        four = moved[at : at + 4]
        for v in range(n_folds):
            by = state[CHANGE, v]
            weights = (
                by[four[0]], by[four[1]] if at + 1 < n_rows else 0.0,
                by[four[2]] if at + 2 < n_rows else 0.0, by[four[3]] if at + 3 < n_rows else 0.0,
            )  # fmt: skip
            if weights[0] == weights[1] == weights[2] == weights[3] == 0.0:
                continue
            subtract_four(K, four, weights, state[F, v], n)
        for v in range(n_folds):
            for k in four:
                state[CHANGE, v, k] = 0.0
    return n_rows


@compiled_part
def subtract_four(K, rows, by, f, n):
    """Subtract multiples of four rows of K from f."""
    first, second, third, fourth = K[rows[0]], K[rows[1]], K[rows[2]], K[rows[3]]
    p, q, r, s = by
    for j in range(n):
        f[j] -= (p * first[j] + q * second[j]) + (r * third[j] + s * fourth[j])


@compiled_part
def subtract(row, by, f, n):
    """Do f ← f − by·row."""
    for j in range(n):
        f[j] -= by * row[j]


@compiled_part
def gather(K, members, out):
    """Write the part of K of some variables."""
    for u in range(members.size):
        row, values = K[members[u]], out[u]
        for j in range(members.size):
            values[j] = row[members[j]]


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
def refresh(K, state, v, n):
    """Compute f anew; return the numbers passed over."""
    target, beta, f = state[TARGET, v], state[BETA, v], state[F, v]
    work = 0.0
    for k in range(n):
        f[k] = target[k]
    for k in range(n):
        if beta[k] != 0.0:
            subtract(K[k], beta[k], f, n)
            work += n
    return work


@compiled_part
def move_free(K, state, v, n, n_free, spread, kept):
    """Make a Newton step of the free variables, whose f differ by ``spread``."""
    if kept[BEFORE] > 0.0 and spread > LEFT_BY_SINGLE * kept[BEFORE]:
        kept[IS_DOUBLE] = 1.0
    kept[BEFORE], kept[PASSED] = spread, 0.0
    kept[LEFT] -= free_step_numbers(n_free)
    if kept[IS_DOUBLE] == 0.0:
        single = np.empty((n_free, n_free), dtype=np.float32)
        gains = newton_step(K, state, v, n, single)
        kept[IS_DOUBLE] = 0.0 if gains else 1.0
        return
    double = np.empty((n_free, n_free))
    gains = newton_step(K, state, v, n, double)
    kept[PATIENCE] = 1.0 if gains else 2.0 * kept[PATIENCE]


@compiled_part
def newton_step(K, state, v, n, A):
    """Make a Newton step of the free variables, and note the changes; return whether it gains.

    ``A`` has room for K of them, in the precision of the step.
    """
    low, up, beta, f = state[LOW, v], state[UP, v], state[BETA, v], state[F, v]
    n_free, m = A.shape[0], 0
    free = np.empty(n_free, dtype=np.intp)
    for k in range(n):
        if low[k] < beta[k] < up[k]:
            free[m] = k
            m += 1
    gather(K, free, A)
    slopes, lowest, highest = np.empty(n_free), np.empty(n_free), np.empty(n_free)
    for u in range(n_free):
        k = free[u]
        slopes[u], lowest[u], highest[u] = f[k], low[k] - beta[k], up[k] - beta[k]
    change, gains = free_step(A, slopes, lowest, highest)
    if not gains:
        return False
    for u in range(n_free):
        k, by, before = free[u], change[u], beta[free[u]]
        # The bound itself, not what rounding makes of it.
        if by <= lowest[u]:
            beta[k] = low[k]
        elif by >= highest[u]:
            beta[k] = up[k]
        else:
            beta[k] += by
        state[CHANGE, v, k] = beta[k] - before
    return True


@compiled_part
def chosen(state, n, size, kept, by_pairs):
    """Choose the variables that violate most in any fold, as many that may grow as may shrink.

    Violations of a fold are relative to its largest one. The worst two variables of every fold are
    always chosen; of others, which are counted by their violation, those of the last class that has
    room are taken in order.
    """
    members = np.empty(min(size, n), dtype=np.intp)
    share, kind = np.zeros(n), np.zeros(n)
    for v in range(state.shape[1]):
        if by_pairs[v]:
            add_violations(state, v, n, kept[v, TOP], kept[v, LEAST], share, kind)
    counts = np.zeros((2, N_BINS), dtype=np.intp)
    m = 0
    for k in range(n):
        if share[k] >= 1.0 and m < members.size:
            members[m] = k
            m += 1
        elif share[k] > 0.0:
            counts[int(kind[k]), int(share[k] * (N_BINS - 1))] += 1
    size = members.size - m
    totals = counts[0].sum(), counts[1].sum()
    first = min(totals[0], max(size // 2, size - totals[1]))
    second = min(totals[1], size - first)
    edge0, room0 = last_class(counts[0], first)
    edge1, room1 = last_class(counts[1], second)
    for k in range(n):
        if share[k] <= 0.0 or share[k] >= 1.0:
            continue
        at = int(share[k] * (N_BINS - 1))
        if kind[k] == 0.0 and (at > edge0 or (at == edge0 and room0 > 0)):
            room0 -= at == edge0
        elif kind[k] == 1.0 and (at > edge1 or (at == edge1 and room1 > 0)):
            room1 -= at == edge1
        else:
            continue
        members[m] = k
        m += 1
    return members[:m]


@compiled_part
def add_violations(state, v, n, top, least, share, kind):
    """Raise shares to those of the violations in a fold, and note which way β is to move."""
    low, up, beta, f = state[LOW, v], state[UP, v], state[BETA, v], state[F, v]
    scale = JUST_BELOW_ONE / (top - least)
    for k in range(n):
        grows = scale * (f[k] - least) if beta[k] < up[k] else 0.0
        shrinks = scale * (top - f[k]) if beta[k] > low[k] else 0.0
        excess = max(grows, shrinks)
        kind[k] = kind[k] if share[k] >= excess else (1.0 if shrinks > grows else 0.0)
        share[k] = max(share[k], excess)
    at = to = 0
    while not (f[at] == top and beta[at] < up[at]):
        at += 1
    while not (f[to] == least and beta[to] > low[to]):
        to += 1
    share[at] = share[to] = 1.0


@compiled_part
def last_class(counts, wanted):
    """Return the class down to which the largest ones hold so many, and how many of its own."""
    at = counts.size - 1
    while at > 0 and wanted > counts[at]:
        wanted -= counts[at]
        at -= 1
    return at, wanted
