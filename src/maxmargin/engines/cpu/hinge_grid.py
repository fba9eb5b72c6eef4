"""Hinges of the planes of one task in all folds: passes over all rows, and steps on a few of them.

Rows far from the kink of every plane keep the side they are on, so that their losses are lines and
all their sums known; the others are copied to one small array, on which Newton's steps of all folds
run side by side, each compiled as a whole.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.row_access import compiled_part, row_add, rows_of
from ...runtime.row_products import add_combinations, products
from ...runtime.team import parallel
from ...runtime.threads import single_threaded_blas
from ...runtime.vectors import nonzero, part_count, part_rows
from ..planes import GOING, MET, STALLED, STRAYED
from .free_step import solve_by_root

if TYPE_CHECKING:
    from ...arrays import Floats, Integers
    from .features import Features

# Rows that are multiplied at a time, and rows that a quantile is computed from.
CHUNK_ROWS, QUANTILE_ROWS = 512, 4096
# Multiplications of the steps between two looks at the clock: some hundredths of a second.
SLICE_MULTIPLICATIONS = 5e7
# δ of a minimisation relative to that of the one before, and the least one.
NARROWER, NARROWEST = 0.7, 1e-6
# The largest step of a bias that nothing else bounds, and points of a line search.
LARGEST_BIAS_STEP, MOST_POINTS = 10.0, 30
# How far from the kink rows are that a best bias is looked for among, at first.
FIRST_REACH = 0.01
# How far scores may move on average, in units of the reach of rows held.
FARTHEST = 2.0
# Rows subtracted from a sum of curvatures, in units of those there, and the place of their number.
MOST_SUBTRACTED, SUBTRACTED = 4, 0
# Sums of a pass over held rows: Σ v and Σ v y of those that have a loss.
WEIGHT, SIGNED = 0, 1


class Hinges:
    """Scores of all rows, and α/(Cv), for the planes of one task in all folds.

    Parameters
    ----------
    features : Features
        X, dense or CSR.
    y : ndarray of shape (n,)
        Labels ±1.
    weights : ndarray of shape (n_folds, n)
        v, 0 of rows that a fold holds out.
    has_bias : bool
    """

    def __init__(self, features: Features, y: Floats, weights: Floats, *, has_bias: bool) -> None:
        self.features, self.y, self.weights = features, y, weights
        self.has_bias, self.has_moved = has_bias, False
        self.scores, self.moved = np.zeros(weights.shape), np.zeros(weights.shape)
        self.shares: Floats = np.full(weights.shape, 0.5)
        # Rows that are not held, and those held that met the kink, at this cost and the one before.
        self.is_near = np.ones(y.size, dtype=np.uint8)
        self.has_met, self.had_met = np.zeros((2, y.size), dtype=np.uint8)

    def begin(self, factors: Floats) -> None:
        """Begin with another cost: changes of scores count from here.

        The shares of every plane are multiplied by a factor.
        """
        for k in np.flatnonzero(factors != 1.0):
            self.shares[k] *= factors[k]
        self.has_moved = False
        self.has_met, self.had_met = np.zeros_like(self.has_met), self.has_met

    def place(self, planes: Floats) -> Floats:
        """Compute the scores of all rows, and return Σ v z₊ of every plane."""
        step, n_parts = self._parts()
        losses = np.zeros((n_parts, len(planes)))
        w, b = np.ascontiguousarray(planes[:, :-1]), planes[:, -1].copy()
        with single_threaded_blas():
            place_rows(
                n_parts, step, rows_of(self.features.X), self.y, self.weights, w, b,
                self.has_moved, self.shares, self.is_near, self.scores, self.moved, self.has_met,
                losses,
            )  # fmt: skip
        self.has_moved = True
        return np.asarray(losses.sum(axis=0))

    def centre(self) -> Floats:
        """Move the scores of every plane to the middle of those of its best biases.

        Return by how much.
        """
        shifts = np.zeros(len(self.weights))
        centre_scores(shifts.size, self.y, self.weights, self.scores, self.moved, shifts)
        return shifts

    def near(self, cost: float, ahead: float, share: float) -> NearRows:
        """Return about a share of the rows, those nearest to the kink, and hold the others.

        Scores are taken to go on by ``ahead`` times their change since the cost before. Rows that
        were held and met the kink all the same are among those returned.
        """
        n_planes, d = len(self.weights), self.features.n_columns
        step, n_parts = self._parts()
        reach = self._reach(ahead, share)
        totals, sums = np.zeros((n_parts, n_planes, d)), np.zeros((n_parts, n_planes, 2))
        np.bitwise_or(self.has_met, self.had_met, out=self.is_near)
        with single_threaded_blas():
            hold_rows(
                n_parts, step, rows_of(self.features.X), self.y, self.weights, self.scores,
                self.moved, ahead, reach, self.shares, self.is_near, totals, sums,
            )  # fmt: skip
        sums = cost * sums.sum(axis=0)
        held = np.column_stack([cost * totals.sum(axis=0), float(self.has_bias) * sums[:, SIGNED]])
        return NearRows(self, nonzero(self.is_near), cost, held, sums[:, WEIGHT], reach)

    def sample(self, cost: float, size: int) -> NearRows:
        """Return some of the rows, at random, with weights to stand for all of them."""
        n, n_planes = self.y.size, len(self.weights)
        rows = np.sort(np.random.default_rng(size).choice(n, size, replace=False))
        held = np.zeros((n_planes, self.features.n_columns + 1))
        return NearRows(self, rows, cost * n / size, held, np.zeros(n_planes), np.inf)

    def _parts(self) -> tuple[int, int]:
        """Return how many rows a part of a pass over all of them has, and how many parts."""
        n, per_row = self.y.size, self.features.stored_per_row
        step = part_rows(n, 2.0 * per_row * len(self.weights))
        return step, part_count(n, step)

    def _reach(self, ahead: float, share: float) -> float:
        """Return how far a share of the rows is from the kink of the nearest plane, about."""
        if share >= 1.0:
            return np.inf
        some = slice(None, None, max(1, self.y.size // QUANTILE_ROWS))
        scores = self.scores[:, some] + ahead * self.moved[:, some]
        return float(np.quantile(np.abs(1.0 - self.y[some] * scores).min(axis=0), share))


class NearRows:
    """Rows of `Hinges`, and the sums of all others.

    Parameters
    ----------
    hinges : Hinges
    rows : ndarray of int
        Their numbers.
    cost : float
        C, by which weights are multiplied.
    held : ndarray of shape (n_folds, d + 1)
        Σ αy(x, 1) of the others.
    constants : ndarray of shape (n_folds,)
        Their Σ α: the others have the loss Σ α − held·(w, b).
    reach : float
        How far the others are from the kink.
    """

    def __init__(
        self, hinges: Hinges, rows: Integers, cost: float, held: Floats, constants: Floats,
        reach: float,
    ) -> None:  # fmt: skip
        self.hinges, self.rows, self.reach = hinges, rows, reach
        self.held, self.constants = held, constants
        self.y = hinges.y[rows]
        self.upper = cost * hinges.weights[:, rows]
        self.centre = self.upper * hinges.shares[:, rows]
        self.alpha = self.centre.copy()
        # Values and gaps of the planes.
        self.found = np.zeros((len(self.upper), 2))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.rows.size

    @cached_property
    def table(self) -> Floats:
        """(x, 1) of the rows, in float64."""
        features = self.hinges.features
        table = np.empty((self.n_rows, features.n_columns + 1))
        step = part_rows(self.n_rows, 2.0 * features.n_columns)
        copy_rows(
            part_count(self.n_rows, step), step, rows_of(features.X), self.rows,
            self.hinges.has_bias, table,
        )  # fmt: skip
        return table

    @cached_property
    def curvatures(self) -> tuple[Any, ...]:
        """Σ u (x, 1)(x, 1)ᵀ over some rows for every plane, which they are, and counts."""
        n_planes, size = self.held.shape
        marks = np.zeros(self.upper.shape, dtype=np.uint8)
        return np.zeros((n_planes, size, size)), marks, np.zeros((n_planes, 1), np.intp)

    def minimise(
        self, planes: Floats, delta: Floats, penalty: Floats, aim: float, ends: Integers,
        most_steps: int,
    ) -> int:  # fmt: skip
        """Go some of Newton's steps with the planes whose end is `GOING`, and return their number.

        Planes, δ and ends change in place. ``penalty`` is the diagonal of M, ``aim`` the relative
        gap to end at.
        """
        m, size = self.table.shape
        work = 3.0 * m * size + min(m, 4 * size) * size**2 + size**3 / 3.0
        n_steps = int(min(max(SLICE_MULTIPLICATIONS / work, 1.0), most_steps))
        curvatures, marks, counts = self.curvatures
        with single_threaded_blas():
            step_planes(
                len(planes), self.table, self.y, self.upper, penalty, self.held, self.constants,
                aim, n_steps, FARTHEST * self.reach, planes, self.centre, self.alpha, delta,
                curvatures, marks, counts, self.found, ends,
            )  # fmt: skip
        return n_steps

    def free_shares(self) -> Floats:
        """Return the mean α/u over 0 < α < u for every plane, 1 where there are none."""
        free = (self.centre > 0.0) & (self.centre < self.upper)
        totals, bounds = (np.sum(each, axis=1, where=free) for each in (self.centre, self.upper))
        return np.divide(totals, bounds, out=np.ones(len(totals)), where=bounds > 0.0)

    def measured(self) -> tuple[Floats, Floats]:
        """Return the value of every plane after its last step, and by how much it may be less."""
        return self.found[:, 0], self.found[:, 1]

    def publish(self) -> None:
        """Let α/(Cv) of these rows be those of `Hinges`."""
        out = np.zeros(self.alpha.shape)
        self.hinges.shares[:, self.rows] = np.divide(
            self.alpha, self.upper, out=out, where=self.upper > 0.0
        )


# Passes over all rows ---------------------------------------------------------------------------


@parallel
def place_rows(
    part, step, rows, y, weights, w, b, adds, shares, is_near, scores, moved, has_met, losses
):
    """Compute scores and how they have moved; add up v z₊; mark held rows that met the kink."""
    n_planes, d = w.shape
    last, block = min((part + 1) * step, y.size), np.empty((CHUNK_ROWS, d))
    for first in range(part * step, last, CHUNK_ROWS):
        n = min(CHUNK_ROWS, last - first)
        some = slice(first, first + n)
        scored = products(rows, first, n, w, block)
        labels, near, met = y[some], is_near[some], has_met[some]
        for k in range(n_planes):
            now, change, line = scores[k, some], moved[k, some], scored[k]
            v, own, offset, loss = weights[k, some], shares[k, some], b[k], 0.0
            for r in range(n):
                score = line[r] + offset
                z = 1.0 - labels[r] * score
                change[r] = (change[r] if adds else 0.0) + (score - now[r])
                now[r] = score
                loss += v[r] * max(z, 0.0)
                is_wrong = (own[r] > 0.0) != (z > 0.0)
                met[r] |= is_wrong & (v[r] > 0.0) & (near[r] == 0)
            losses[part, k] += loss


@parallel
def centre_scores(part, y, weights, scores, moved, shifts):
    """Move the scores of one plane by the middle of all t whose loss Σ v(1 − y(s + t))₊ is least.

    Its slope in t begins with −Σ v over y = 1, and increases by v at t = y − s.
    """
    v, s, change = weights[part], scores[part], moved[part]
    positive, total = 0.0, 0.0
    for i in range(y.size):
        positive += v[i] if y[i] > 0.0 else 0.0
        total += v[i]
    rounding, reach, slope, n = 1e-12 * total, FIRST_REACH, 0.0, 0
    while True:  # few rows are near t = 0
        slope, inside, n = -positive, 0.0, 0
        for i in range(y.size):
            t = y[i] - s[i]
            is_near = abs(t) <= reach
            slope += v[i] if t < -reach else 0.0
            inside += v[i] if is_near else 0.0
            n += is_near
        if (slope < -rounding and slope + inside > rounding) or reach == np.inf:
            break
        reach = 8.0 * reach if reach < 1.0 else np.inf
    breaks, costs, k = np.empty(n), np.empty(n), 0
    for i in range(y.size):
        if abs(y[i] - s[i]) <= reach:
            breaks[k], costs[k] = y[i] - s[i], v[i]
            k += 1
    low, high, has_begun = 0.0, 0.0, False
    for k in np.argsort(breaks):
        slope += costs[k]
        if costs[k] > 0.0 and slope >= -rounding:
            low, high, has_begun = low if has_begun else breaks[k], breaks[k], True
            if slope > rounding:
                break
    shift = 0.5 * (low + high)
    for i in range(y.size):
        s[i] += shift
        change[i] += shift
    shifts[part] = shift


@parallel
def hold_rows(
    part, step, rows, y, weights, scores, moved, ahead, reach, shares, is_near, totals, sums
):
    """Mark the rows near the kink of a plane; add up v, v y and v y x of the others' losses."""
    n_planes, d = totals.shape[1:]
    last, block = min((part + 1) * step, y.size), np.empty((CHUNK_ROWS, d))
    for first in range(part * step, last, CHUNK_ROWS):
        n = min(CHUNK_ROWS, last - first)
        some = slice(first, first + n)
        slack, nearest = np.empty((n_planes, n)), np.full(n, np.inf)
        labels, near = y[some], is_near[some]
        for k in range(n_planes):
            now, change, line = scores[k, some], moved[k, some], slack[k]
            for r in range(n):
                line[r] = 1.0 - labels[r] * (now[r] + ahead * change[r])
                nearest[r] = min(nearest[r], abs(line[r]))
        for r in range(n):
            near[r] |= nearest[r] <= reach
        for k in range(n_planes):
            line, v, own, weight, signed = slack[k], weights[k, some], shares[k, some], 0.0, 0.0
            for r in range(n):
                side = 1.0 if line[r] > 0.0 else 0.0
                own[r] = own[r] if near[r] else side
                mine = 0.0 if near[r] else v[r] * side
                line[r] = mine * labels[r]
                weight += mine
                signed += line[r]
            sums[part, k, WEIGHT] += weight
            sums[part, k, SIGNED] += signed
        add_combinations(rows, first, slack, block, totals[part])


@parallel
def copy_rows(part, step, rows, chosen, has_bias, out):
    """Do out[k] ← (x, 1) of the k-th chosen row."""
    d = out.shape[1] - 1
    for k in range(part * step, min((part + 1) * step, chosen.size)):
        line = out[k]
        if len(rows) == 1:
            x = rows[0][chosen[k]]
            for j in range(d):
                line[j] = x[j]
        else:
            line[:] = 0.0
            row_add(rows, chosen[k], line[:d], 1.0)
        line[d] = 1.0 if has_bias else 0.0


# Newton's steps on a few rows -------------------------------------------------------------------


@parallel
def step_planes(
    part, table, y, upper, penalty, held, constants, aim, most_steps, farthest, planes, centre,
    alpha, delta, curvature, in_sum, counts, found, ends,
):  # fmt: skip
    """Go Newton's steps with one plane until its gap is below ``aim``, relative to its value.

    Min ½aᵀMa − held·a + constant + Σ max {αz − (δ/2u)(α − α⁰)² : 0 ≤ α ≤ u}, z = 1 − y a·(x, 1); at
    a minimum α⁰ ← α, and δ shrinks.
    """
    if ends[part] != GOING:
        return
    a, u, before, beta = planes[part], upper[part], centre[part], alpha[part]
    size = a.size
    scores, signed = np.dot(table, a), np.empty(y.size)
    n_steps, strayed = 0, 0.0
    while True:
        loss, slack = _project(scores, y, u, before, delta[part], beta, signed)
        gradient = penalty * a - held[part] - np.dot(signed, table)
        residual = 0.5 * np.dot(gradient[: size - 1], gradient[: size - 1])
        if penalty[size - 1] > 0.0:
            residual += 0.5 * gradient[size - 1] ** 2
        else:
            residual += abs(gradient[size - 1]) * (1.0 + abs(a[size - 1]))
        value = 0.5 * np.dot(penalty * a, a) - np.dot(held[part], a) + constants[part] + loss
        found[part, 0], found[part, 1] = value, slack + residual
        if slack + residual <= aim * value:
            ends[part] = MET
            return
        if strayed > farthest or value < 0.0:  # no losses are: lines of rows held have crossed 0
            ends[part] = STRAYED
            return
        if residual <= slack:
            if delta[part] < NARROWEST:
                ends[part] = STALLED
                return
            before[:] = beta
            delta[part] *= NARROWER
            continue
        if n_steps == most_steps:
            return
        n_steps += 1
        is_definite, direction = _direction(
            table, u, beta, penalty, gradient, delta[part], curvature[part], in_sum[part],
            counts[part],
        )  # fmt: skip
        if not is_definite:
            ends[part] = STALLED
            return
        along = np.dot(table, direction)
        line = penalty * a - held[part]
        t = _length(
            scores, along, y, u, before, delta[part], np.dot(line, direction),
            np.dot(penalty * direction, direction), np.dot(gradient, direction),
        )  # fmt: skip
        if not t > 0.0:
            ends[part] = STALLED
            return
        for j in range(size):
            a[j] += t * direction[j]
        moved = 0.0
        for r in range(y.size):
            scores[r] += t * along[r]
            moved += abs(along[r])
        strayed += t * moved / y.size


@compiled_part
def _alpha_at(z, before, u, delta):
    """Return the α that is best for z: α⁰ + uz/δ within its bounds."""
    return min(max(before + u * z / delta, 0.0), u)


@compiled_part
def _project(scores, y, upper, before, delta, alpha, signed):
    """Fill in α and αy; return Σ u z₊, and by how much it is more than Σ αz."""
    loss, slack = 0.0, 0.0
    for r in range(y.size):
        z, u = 1.0 - y[r] * scores[r], upper[r]
        value, line = _alpha_at(z, before[r], u, delta), u * max(z, 0.0)
        alpha[r] = value
        signed[r] = value * y[r]
        loss += line
        slack += line - value * z
    return loss, slack


@compiled_part
def _direction(table, upper, alpha, penalty, gradient, delta, curvature, in_sum, counts):
    """Return −H⁻¹g, H = M + Σ (u/δ)(x, 1)(x, 1)ᵀ over 0 < α < u, and whether H is definite.

    ``curvature`` is Σ u (x, 1)(x, 1)ᵀ over rows in the sum, which is brought up to date.
    """
    size = penalty.size
    inside, came, left = 0, 0, 0
    for r in range(alpha.size):
        now, was = 0.0 < alpha[r] < upper[r], in_sum[r] > 0
        inside += now
        came += now & (not was)
        left += was & (not now)
    counts[SUBTRACTED] += left
    # Rounding errors of what was subtracted stay: they must not outgrow what is there.
    if came + left >= inside or counts[SUBTRACTED] > MOST_SUBTRACTED * inside:
        in_sum[:], curvature[:], came, left, counts[SUBTRACTED] = 0, 0.0, inside, 0, 0
    for sign, n in ((1.0, came), (-1.0, left)):
        panel, k = np.empty((n, size)), 0
        for r in range(alpha.size):
            now, was = 0.0 < alpha[r] < upper[r], in_sum[r] > 0
            if (now and not was) if sign > 0.0 else (was and not now):
                root, row, line = np.sqrt(upper[r]), table[r], panel[k]
                for j in range(size):
                    line[j] = root * row[j]
                k += 1
        if n > 0:
            curvature += sign * np.dot(panel.T, panel)
    for r in range(alpha.size):
        in_sum[r] = 0.0 < alpha[r] < upper[r]
    H = curvature / delta
    for j in range(size):
        H[j, j] += penalty[j]
    least = abs(gradient[size - 1]) / LARGEST_BIAS_STEP
    H[size - 1, size - 1] = max(H[size - 1, size - 1], least, 1e-300)
    direction = -gradient
    try:
        root_of = np.linalg.cholesky(H)
    except Exception:  # the only kind that compiled code can catch
        return False, direction
    solve_by_root(root_of, direction)
    return True, direction


@compiled_part
def _length(scores, along, y, upper, before, delta, slope, bend, first):
    """Return a t at which the slope along a direction is still negative, and half or less."""
    low, high, at_low, at_high, t, most = 0.0, 0.0, first, 0.0, 1.0, 0.9
    for _ in range(MOST_POINTS):
        at = slope + t * bend
        for r in range(y.size):
            z = 1.0 - y[r] * (scores[r] + t * along[r])
            at -= _alpha_at(z, before[r], upper[r], delta) * y[r] * along[r]
        if at <= -1e-3 * first and (at >= 0.5 * first or t == 1.0):
            return t
        if at < 0.0:
            low, at_low, most = t, at, 0.9
        else:  # where a slope that is steep at first turns flat, secants hardly move this end
            high, at_high, most = t, at, 0.5 * most
        t = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), most)
    return low
