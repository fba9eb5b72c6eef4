"""Tasks of up to some thousand variables, from kernel values to the solution in compiled code.

The method is the decomposition of `maxmargin.solvers.dual.decomposition` with all variables in the
working set: SMO on K of whatever type, then f = −sp − (K + D)β summed up anew in float64, until the
KKT conditions hold and the duality gap is small. Where K is float32, f of some variables is
compared with float64 kernel values before the end; if they differ visibly f is computed anew from
float64 values of all, and the descent goes on from there.

What does not end well here is left unfinished: the caller goes on with other solvers.
"""

from __future__ import annotations

import numpy as np

from ...problems.dual import FAR
from ...runtime.exponential import exp2
from ...runtime.row_access import compiled_part
from ...runtime.simd import vectors
from ...runtime.team import parallel
from .coordinate_ascent import single_steps
from .gaussian import gaussian
from .selection import gap_sums
from .smo import pair_steps
from .task_rows import VECTOR, copy, fetch, gathered_rows, stored

# The columns of the numbers that a task returns.
BIAS, STEPS, CONVERGED, VIOLATION, VALUE, GAP, ERRORS = range(7)
N_NUMBERS = 7
# The rows of the variables of all tasks, and the columns of the tasks themselves.
SIGN, P, LOWER, UPPER, RIDGE, DIAGONAL = range(6)

# Two variables may be 2·tol apart with each within tol of the bias; some is left to rounding.
PAIR_GOAL_TOLS = 1.75
# The largest relative gap at the end, in units of tol.
GAP_TOLS = 1.6
# Where ρ is the unit of violations, steps end at this share of the violation before them.
ROUND_SHARE = 0.1
# Times that f is summed up anew, and corrected by float64 kernel values, at most.
MAX_ROUNDS, MAX_CORRECTIONS = 40, 5
# Variables on which float32 kernel values are checked, the shares of tol that their errors may add
# to a violation and to the gap, and what stands for an infinite cost, relative to α.
N_CHECKED, VIOLATION_SHARE, GAP_SHARE, FAR_COST = 32, 0.05, 0.3, 100.0
# The share of the largest variable, or of a sum, that is rounding.
NEGLIGIBLE = 1e-14
# Rows of X that are one part.
PART_ROWS = 256
# log₂ e
PER_NEPER = 1.4426950408889634


@parallel
def solve_gathered(part, tasks, variables, whole, index, goal, is_alone, of_nu, alpha, numbers):
    """Solve a task from the given α, with the values of K of all rows.

    Write its α, and what the columns of numbers say. The arrays are those of `small_tasks`: the
    tasks in the order of the parts, their variables one after the other, and how far to go. With a
    bias is_alone is None: the compiler then omits the search that moves variables alone; of_nu is
    None where all sums are 0.
    """
    t, start, n, max_steps = tasks[part, 0], tasks[part, 1], tasks[part, 2], tasks[part, 3]
    n_first = tasks[part, 4]
    task, curvature, is_ridged = posed(start, n_first, n, variables, alpha, index, whole)
    K = gathered_rows(whole, start, n_first, index, task[0], curvature, is_ridged)
    middle = n_first + -n_first % VECTOR
    descend(K, curvature, task, middle, None, goal, is_alone, of_nu, max_steps, numbers[t])
    write_alpha(task, start, alpha)


@parallel
def solve_pair(
    part, tasks, variables, classes, blocks, exact_rows, goal, is_alone, alpha, numbers
):  # fmt: skip
    """Do the same for two classes, with values computed between them, and those within shared.

    ``exact_rows`` are the rows in float64 where others are not, else None.
    """
    t, start, max_steps = tasks[part, 0], tasks[part, 1], tasks[part, 3]
    a, b = classes[t]
    rows, squares, gamma, edges, within, corners = blocks
    mine, others = slice(edges[a], edges[a + 1]), slice(edges[b], edges[b + 1])
    n, m = edges[a + 1] - edges[a], edges[b + 1] - edges[b]
    task, curvature, _ = posed(start, n, n + m, variables, alpha, edges, rows)
    between, across = np.empty((n, m), rows.dtype), np.empty((m, n), rows.dtype)
    np.dot(rows[mine], rows[others].T, between)
    gaussian(between, squares[mine], squares[others], gamma)
    transpose(between, across)
    within_first = within[corners[a] : corners[a + 1]].reshape(n, n)
    within_second = within[corners[b] : corners[b + 1]].reshape(m, m)
    size = curvature.size
    memory, is_there = vectors(size, size, curvature), np.zeros(size, dtype=np.bool_)
    # Put together here: from a tuple that a function returns, rows take twice as long to read.
    K = memory, is_there, curvature, within_first, within_second, between, across
    exact = None if exact_rows is None else (exact_rows, gamma, classes[t], edges)
    descend(K, curvature, task, 0, exact, goal, is_alone, None, max_steps, numbers[t])
    write_alpha(task, start, alpha)


@compiled_part
def posed(start, n_first, n, variables, alpha, index, like):
    """Return the vectors of a task, its curvature in the type of K, and whether D is not 0."""
    gap = -n_first % VECTOR
    size = n + gap
    size += -size % VECTOR
    places = vectors(1, n, index)[0]
    state, curvature = vectors(7, size, variables), vectors(1, size, like)[0]
    # One by one: rows that are unpacked are not known to be contiguous.
    s, target, D, low = state[0], state[1], state[2], state[3]
    up, beta, f = state[4], state[5], state[6]
    for k in range(size):
        curvature[k] = 0.0
        for j in range(7):
            state[j, k] = 0.0
    is_ridged = False
    for v in range(n):
        k, i = v + (gap if v >= n_first else 0), start + v
        sign, lower, upper = variables[SIGN, i], variables[LOWER, i], variables[UPPER, i]
        ridge = variables[RIDGE, i]
        places[v], s[k], D[k] = k, sign, ridge
        target[k] = f[k] = -sign * variables[P, i]
        curvature[k] = variables[DIAGONAL, i] + ridge
        low[k] = lower if sign > 0.0 else -upper
        up[k] = upper if sign > 0.0 else -lower
        beta[k] = sign * alpha[i]
        is_ridged |= ridge != 0.0
    return (places, s, target, D, low, up, beta, f), curvature, is_ridged


@compiled_part
def write_alpha(task, start, alpha):
    """Write α = sβ of the variables of a task."""
    places, s, beta = task[0], task[1], task[6]
    for v in range(places.size):
        alpha[start + v] = s[places[v]] * beta[places[v]] + 0.0


@compiled_part
def descend(K, curvature, task, middle, exact, goal, is_alone, of_nu, max_steps, numbers):
    """Descend from a feasible β, f being the target, until the conditions hold to the final tol.

    The second of two groups begins at ``middle``; the last number of ``goal`` is their Σ|t| where
    p = 0, else 0.
    """
    places, _, target, _, low, up, beta, f = task
    tol, final_tol, rounding, total = goal[0], goal[1], goal[2], goal[3]
    size, edges = f.size, vectors(1, 2 if of_nu is None else 3, places)[0]
    edges[0], edges[1] = 0, size
    scratch, before = vectors(3, size, curvature), vectors(2, size, f)
    single, raisable, lowerable = scratch[0], scratch[1], scratch[2]
    base, origin = before[0], before[1]  # f = base − (K + D)(β − origin)
    copy(f, base)
    for k in range(size):
        origin[k] = 0.0
    least_rho = 0.0
    if of_nu is not None:
        edges[1], edges[2] = middle, size
        subtract_moved(K, beta, origin, f)
        least_rho = smallest_margin(places, low, up, curvature)
    tightened, steps, n_corrections = 1.0, 0, 0
    violation, value, gap, errors, converged = np.inf, 0.0, np.inf, 0, False
    first, second, unit = 0.0, 0.0, 1.0
    for _ in range(MAX_ROUNDS):
        violation, first, second, unit = multipliers(
            f, beta, low, up, middle, is_alone, of_nu, final_tol, total, least_rho
        )
        stop = tightened * PAIR_GOAL_TOLS * final_tol * unit
        if is_alone is not None:
            stop *= 0.5
        if violation <= stop:
            if settle(beta, low, up):
                continue
            gap, errors = gap_of_groups(task, middle, of_nu, first, second)
            value = 0.0
            for k in places:
                value -= 0.5 * beta[k] * (f[k] + target[k])
            # Where p = 0, P is about −Σ|t|ρ, and may be 0.
            scale = max(abs(gap - value), total * unit, 1e-300)
            if gap > GAP_TOLS * final_tol * scale:  # many small violations add up
                if tightened < 1e-6:
                    break
                tightened *= 0.5
                continue
            if exact is not None:  # noqa: SIM102  the compiler omits this branch
                if n_corrections < MAX_CORRECTIONS and corrected(task, exact, tol, gap - value):
                    copy(f, base)
                    copy(beta, origin)
                    n_corrections += 1
                    continue
            firm = firm_gap(task, curvature, middle, first, second, unit, gap, rounding)
            converged = firm <= 2.0 * tol * scale
            converged &= n_corrections < MAX_CORRECTIONS
            break
        if steps >= max_steps:
            break
        copy(f, single)
        parts = (K, curvature, beta, low, up, single, raisable, lowerable)
        if is_alone is None:
            enough = 0.5 * stop
            if of_nu is not None:  # ρ, the unit of stop, is not yet known where much is violated
                enough = max(enough, ROUND_SHARE * violation)
            made = pair_steps(*parts, edges, enough, max_steps - steps)
        else:
            made = single_steps(*parts, 0.5 * stop, max_steps - steps)
        if made == 0:  # float32 sees no violators where there are some
            break
        steps += made
        copy(base, f)
        subtract_moved(K, beta, origin, f)
    numbers[BIAS], numbers[STEPS], numbers[CONVERGED] = 0.5 * (first + second), steps, converged
    numbers[VIOLATION], numbers[VALUE] = violation, value
    numbers[GAP], numbers[ERRORS] = gap, errors


@compiled_part
def settle(beta, low, up):
    """Move variables to the bounds that they miss by rounding alone; return whether any has moved.

    One that is free by rounding would fix the bias where it may be any of an interval. Rounding is
    relative to the largest variable, which may be far below its bound.
    """
    largest, has_moved = 0.0, False
    for k in range(beta.size):
        largest = max(largest, abs(beta[k]))
    for k in range(beta.size):
        close = NEGLIGIBLE * min(up[k] - low[k], largest)
        if low[k] < beta[k] <= low[k] + close:
            beta[k], has_moved = low[k], True
        elif up[k] > beta[k] >= up[k] - close:
            beta[k], has_moved = up[k], True
    return has_moved


@compiled_part
def subtract_moved(K, beta, origin, f):
    """Do f ← f − (K + D)(β − origin)."""
    rows = stored(K)
    for k in range(f.size):
        if beta[k] != origin[k]:
            fetch(K, k)
            subtract(rows[k], beta[k] - origin[k], f)


@compiled_part
def smallest_margin(places, low, up, curvature):
    """Return the ρ below which there is no margin to speak of: that of C = 10⁶/max K.

    Rows that are far from all others do not count, as in `usual_length`.
    """
    costs, lengths = 0.0, np.empty(places.size)
    for j, k in enumerate(places):
        costs += up[k] - low[k]
        lengths[j] = curvature[k]
    largest = np.max(lengths)
    usual = min(largest, FAR * np.median(lengths))
    return max(1e-6 * costs / places.size * (usual if usual > 0.0 else largest), 1e-300)


@compiled_part
def multipliers(f, beta, low, up, middle, is_alone, of_nu, tol, total, least_rho):
    """Return the largest violation, multipliers of the first and the last group, and their unit.

    Violations are relative to 1; where p = 0 to ρ: half of the difference of the multipliers of two
    groups, −b of one class.
    """
    if of_nu is None:
        top, least, mean = extremes(f, beta, low, up, 0, f.size)
        if is_alone is not None:
            return max(top, -least, 0.0), 0.0, 0.0, 1.0
        b = multiplier(top, least, mean, tol)
        return top - least, b, b, 1.0
    top, least, mean = extremes(f, beta, low, up, 0, middle)
    if middle == f.size:
        unit = max(-between(top, least), least_rho)
        b = multiplier(top, least, mean, tol * unit)
        return top - least, b, b, unit
    other_top, other_least, other_mean = extremes(f, beta, low, up, middle, f.size)
    unit = max(0.5 * (between(other_top, other_least) - between(top, least)), least_rho)
    unit = unit if total > 0.0 else 1.0
    first = multiplier(top, least, mean, tol * unit)
    second = multiplier(other_top, other_least, other_mean, tol * unit)
    return max(top - least, other_top - other_least), first, second, unit


@compiled_part
def extremes(f, beta, low, up, begin, end):
    """Return the largest f that may grow, the least that may shrink, and the mean of the free."""
    top, least, total, n_free = -np.inf, np.inf, 0.0, 0
    for k in range(begin, end):
        if beta[k] < up[k]:
            top = max(top, f[k])
        if beta[k] > low[k]:
            least = min(least, f[k])
            if beta[k] < up[k]:
                total += f[k]
                n_free += 1
    return top, least, total / n_free if n_free else np.nan


@compiled_part
def multiplier(top, least, mean, tol):
    """Return the mean f of the free, as far as it serves all others to tol."""
    middle, room = between(top, least), 0.5 * (PAIR_GOAL_TOLS * tol - (top - least))
    if np.isnan(mean) or room < 0.0:
        return middle
    return min(max(mean, middle - room), middle + room)


@compiled_part
def between(top, least):
    """Return the middle of the two, or the one that is finite."""
    if top == -np.inf or least == np.inf:
        return top if least == np.inf else least
    return 0.5 * (top + least)


@compiled_part
def gap_of_groups(task, middle, of_nu, first, second):
    """Return P − D at the multipliers of the groups, and how many samples are misclassified."""
    places, s, target, D, low, up, beta, f = task
    if of_nu is None:
        gap, _, _, _, errors = gap_sums(places, s, target, D, low, up, beta, f, first, first)
        return gap, errors
    total, errors, b, n_first = 0.0, 0, 0.5 * (first + second), 0
    while n_first < places.size and places[n_first] < middle:
        n_first += 1
    for group in range(2):
        some, level = (places[:n_first], first) if group == 0 else (places[n_first:], second)
        gap, _, _, _, wrong = gap_sums(some, s, target, D, low, up, beta, f, level, b)
        total, errors = total + gap, errors + wrong
    return total, errors


@compiled_part
def firm_gap(task, curvature, middle, first, second, unit, gap, rounding):
    """Return P − D where rounding has made every margin too large; ∞ where nothing is known."""
    places, s, _, D, low, up, beta, f = task
    largest, size = 0.0, 0.0
    for k in range(beta.size):
        root = np.sqrt(max(np.float64(curvature[k]), 0.0))
        largest = max(largest, root)
        size += root * abs(beta[k])
    if rounding * largest * size >= 8.0 * unit:  # not even the side of the margin
        return np.inf
    error = rounding * (largest * size + max(abs(first), abs(second)))
    for k in places:
        level = first if k < middle else second
        slack = s[k] * (f[k] + D[k] * beta[k] - level) + error
        if slack > 0.0 and D[k] > 0.0:
            gap += error * min(slack / D[k], up[k] - low[k])
        elif slack > 0.0:
            gap += min(error, slack) * (up[k] - low[k])
    return gap


@compiled_part
def corrected(task, exact, tol, primal):
    """Compute f anew from float64 kernel values if errors on some of the variables are visible.

    An error e of f changes violations by e, and the gap by at most e times the costs of the free
    variables: of those as many are checked as of all.
    """
    places, _, target, D, low, up, beta, f = task
    support, free, n_support, n_free = np.empty_like(places), np.empty_like(places), 0, 0
    costs = 1e-300
    for k in places:
        if beta[k] != 0.0:
            support[n_support] = k
            n_support += 1
            if low[k] < beta[k] < up[k]:
                free[n_free] = k
                n_free += 1
                costs += min(up[k] - low[k], FAR_COST * abs(beta[k]))
    support, off = support[:n_support], 0.0
    for some in (places, free[:n_free]):
        for v in range(0, some.size, max(1, some.size // N_CHECKED)):
            k = some[v]
            scored = exact_score(exact, k, support, beta)
            off = max(off, abs(target[k] - D[k] * beta[k] - scored - f[k]))
    if off <= tol * min(VIOLATION_SHARE, GAP_SHARE * primal / costs):
        return False
    for k in places:
        f[k] = target[k] - D[k] * beta[k] - exact_score(exact, k, support, beta)
    return True


@compiled_part
def exact_score(exact, k, support, beta):
    """Return Σ_j β_j K_kj of one variable, from differences of rows in float64."""
    rows, gamma, classes, edges = exact
    first, second = edges[classes[0]], edges[classes[1]]
    n_first = edges[classes[0] + 1] - first
    second -= n_first + -n_first % VECTOR
    x, total = rows[k + (first if k < n_first else second)], 0.0
    for j in support:
        z, square = rows[j + (first if j < n_first else second)], 0.0
        for c in range(x.size):
            square += (x[c] - z[c]) * (x[c] - z[c])
        total += beta[j] * exp2(-PER_NEPER * gamma * square)
    return total


@compiled_part
def subtract(row, by, f):
    """Do f ← f − by·row."""
    for k in range(f.size):
        f[k] -= by * row[k]


@compiled_part
def transpose(block, out):
    """Do out ← blockᵀ, in strips of rows that stay in the nearest cache."""
    for top in range(0, block.shape[0], 64):
        for j in range(block.shape[1]):
            column, row = block[top : top + 64, j], out[j, top : top + 64]
            for i in range(row.size):
                row[i] = column[i]


@parallel
def centre_rows(part, X, order, centre, exact, rows, squares):
    """Write rows of X less the centre, in float64 and in the type of ``rows``, and their ‖x‖²."""
    for i in range(PART_ROWS * part, min(PART_ROWS * (part + 1), order.size)):
        x, moved, out, square = X[order[i]], exact[i], rows[i], 0.0
        for k in range(x.size):
            moved[k] = x[k] - centre[k]
            out[k] = moved[k]
            square += np.float64(out[k]) * np.float64(out[k])
        squares[i] = square


@parallel
def fill_within(a, rows, squares, gamma, edges, corners, within):
    """Write K within class a."""
    n, mine = edges[a + 1] - edges[a], slice(edges[a], edges[a + 1])
    block = within[corners[a] : corners[a + 1]].reshape(n, n)
    np.dot(rows[mine], rows[mine].T, block)
    gaussian(block, squares[mine], squares[mine], gamma)
    for k in range(n):
        block[k, k] = 1.0
