"""Compiled descent on a block of K: the shares of one sample of a joint machine after the other."""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled
from .joint_passes import project

# A share of the own class, 1 less those of its rivals, that is no more than rounding.
ROUNDING = 1e-15


@compiled
def solve_joint_block(K, labels, cost, p, values, stop, least_share, max_steps):
    """Move the shares p of samples to the optimum of their own problems, in place.

    ``values`` (c, n) are those of all classes and samples, kept up to date. A pass moves samples
    that violate by more than ``least_share`` of the worst violation of the pass before: the worst
    come first, and a step of another pays less. Ends when none violates by more than ``stop``, or
    after ``max_steps``; returns the steps and the worst violation of the last pass.
    """
    c, n = values.shape
    s, v, steps = np.empty(c), np.empty(c), np.empty(c)
    moved, notes = np.empty(c, dtype=np.int64), np.empty(c, dtype=np.int64)
    every = np.arange(c)
    n_steps, bar, worst = 0, np.inf, np.inf
    while worst > stop and n_steps < max_steps:
        worst = 0.0
        n_before = n_steps
        for i in range(n):
            top, least = -np.inf, np.inf
            for k in range(c):
                s[k] = values[k, i]
                top = max(top, s[k])
                if p[i, k] > 0.0:
                    least = min(least, s[k])
            worst = max(worst, top - least)
            if top - least <= bar or n_steps >= max_steps:
                continue
            curvature = cost[i] * K[i, i]
            n_moved, _ = project(
                s, every, c, labels[i], p[i], top, curvature, v, notes, moved, steps
            )
            if p[i, labels[i]] < ROUNDING:
                p[i, labels[i]] = 0.0
            row = K[i]
            for m in range(n_moved):
                by, line = cost[i] * steps[m], values[moved[m]]
                for j in range(n):
                    line[j] += by * row[j]
            n_steps += n_moved > 0
        if n_steps == n_before and bar < np.inf:
            break  # rounding allows no more
        bar = max(stop, least_share * worst)
    return n_steps, worst
