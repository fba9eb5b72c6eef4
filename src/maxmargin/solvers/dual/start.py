"""Feasible α to begin with."""

from __future__ import annotations

import numpy as np

from ...arrays import Floats, Integers
from ...problems import DualProblem


def feasible(problem: DualProblem, alpha: Floats | None) -> Floats:
    """Return α in its box with the sums it must have, near ``alpha`` where that is given.

    In a group whose Σ s_i α_i is too large the terms with s = +1 are lowered in proportion, and
    where that is not enough those with s = −1 are raised; likewise where the sum is too small.
    Without ``alpha``, as few variables as possible are away from the bound nearest to 0.
    """
    near = np.zeros(problem.signs.size) if alpha is None else alpha
    result = np.clip(near, problem.lower, problem.upper)
    for group, total in zip(problem.groups, problem.sums, strict=True):
        if alpha is None:
            _fill(problem, result, group, total)
        else:
            _balance(problem, result, group, total)
    return result


def _fill(problem: DualProblem, alpha: Floats, group: Integers, total: float) -> None:
    """Raise variables of a group, one after the other to its bound, until their sum is right."""
    s = problem.signs[group]
    missing = total - float(s @ alpha[group])
    if missing == 0.0:
        return
    rows = group[s == np.sign(missing)]
    room = problem.upper[rows] - alpha[rows]
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    alpha[rows] += np.clip(abs(missing) - before, 0.0, room)


def _balance(problem: DualProblem, alpha: Floats, group: Integers, total: float) -> None:
    """Bring Σ s_i α_i of a group to ``total``: lower what is too large, else raise the others."""
    s = problem.signs[group]
    sides = {sign: group[s == sign] for sign in (1.0, -1.0)}
    sums = {sign: float(alpha[rows].sum()) for sign, rows in sides.items()}
    excess = sums[1.0] - sums[-1.0] - total
    if abs(excess) <= 1e-12 * max(sums[1.0], sums[-1.0]):
        return
    too_large = float(np.sign(excess))
    rows, others = sides[too_large], sides[-too_large]
    least = problem.lower[rows]
    above = float((alpha[rows] - least).sum())
    goal = max(0.0, sums[-too_large] + too_large * total - float(least.sum()))
    if above > 0.0:
        alpha[rows] = least + (alpha[rows] - least) * (min(goal, above) / above)
    rest = abs(excess) - above
    if rest > 0.0 and others.size:
        room = problem.upper[others] - alpha[others]
        room = room if np.isfinite(room).all() else np.minimum(room, rest)
        alpha[others] += room * min(1.0, rest / float(room.sum()))
