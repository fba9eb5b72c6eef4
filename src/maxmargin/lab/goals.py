"""What lessons ask for: goals that judge what was seen, readings of it, and points of their own.

What was seen since a lesson began is a sequence, the latest last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

import maxmargin as mm

from ..progress import counted
from .observing import Seen
from .points import Points, checked

# Relative differences of widths up to which they are equal, and from which they differ.
EQUAL, DIFFERENT = 1e-3, 1e-2
# A share of the extent of the points by which one must move to count as moved.
MOVED = 0.02
# Weights above this have exploded; those of a stable fit of these points stay below 1.
EXPLODED = 1e3

History: TypeAlias = Sequence[Seen]


# What was seen ---------------------------------------------------------------------------------


def _alike(a: Points, b: Points) -> bool:
    return np.array_equal(a.X, b.X) and np.array_equal(a.codes, b.codes)


def _moved(a: Points, b: Points) -> int | None:
    """Return the point that alone was moved from a to b, by a distance that one sees."""
    if a.X.shape != b.X.shape or not np.array_equal(a.codes, b.codes):
        return None
    changed = np.flatnonzero((a.X != b.X).any(axis=1))
    extent = float(np.ptp(a.X, axis=0).max())
    if changed.size != 1 or np.linalg.norm((a.X - b.X)[changed]) < MOVED * extent:
        return None
    return int(changed[0])


def _same_machine(a: Seen, b: Seen) -> bool:
    return a.algorithm == b.algorithm and a.parameters == b.parameters


def _pairs(history: History) -> list[Seen]:
    """Return what was seen before of the same machine, if both are proved to be optimal."""
    now = history[-1]
    if not (now.proved and now.linear and now.width):
        return []
    return [then for then in history[:-1] if then.proved and _same_machine(then, now)]


def _of_machine(now: Seen) -> bool:
    """Say whether a fitted support vector machine with its proof is shown."""
    return now.proved and now.width > 0 and now.step is None


# Goals -----------------------------------------------------------------------------------------


def moved_free_point(history: History) -> bool:
    """A point without α was moved, and the band stayed."""
    now = history[-1]
    for then in _pairs(history):
        k = _moved(then.points, now.points)
        if k is None or then.support[k] or now.support[k]:
            continue
        if abs(now.width - then.width) <= EQUAL * then.width:
            return True
    return False


def moved_support_vector(history: History) -> bool:
    """A point with α > 0 was moved, and the width of the band changed."""
    now = history[-1]
    for then in _pairs(history):
        k = _moved(then.points, now.points)
        if k is None or not then.support[k]:
            continue
        if abs(now.width - then.width) >= DIFFERENT * then.width:
            return True
    return False


def followed_corrections(history: History) -> bool:
    """A step of the perceptron was shown at which a point was still on the wrong side."""
    now = history[-1]
    return now.algorithm == "perceptron" and now.step is not None and now.errors > 0


@cache
def _margin_apart() -> float:
    points = apart()
    return float(mm.separability(points.X, points.labels, maximum_margin=True).margin)


def halved_margin(history: History) -> bool:
    """The margin was halved at least, and the perceptron separated the points all the same."""
    now = history[-1]
    if now.algorithm != "perceptron" or not now.proved or not now.separable:
        return False
    as_many = len(now.points.X) >= len(apart().X)
    return as_many and 0 < now.widest <= 0.5 * _margin_apart()


def another_line_failed(history: History) -> bool:
    """Another linear algorithm ran on four points or more that no line separates."""
    now = history[-1]
    linear = now.linear and now.algorithm != "perceptron" and now.step is None
    return linear and now.separable is False and (now.failed or now.errors > 0)


def kernel_separated(history: History) -> bool:
    """A kernel machine has all points strictly on their side, which no line can."""
    now = history[-1]
    curved = not now.linear and now.proved and now.step is None
    return curved and now.separable is False and now.margins is not None and now.errors == 0


def emptied_band(history: History) -> bool:
    """A support vector machine has no point inside of its band."""
    now = history[-1]
    return _of_machine(now) and now.linear and now.n_inside == 0


def doubled_width(history: History) -> bool:
    """Of the same points, a band was empty, and another one twice as wide."""
    now = history[-1]
    for then in history[:-1]:
        narrow, wide = sorted((then, now), key=lambda each: each.width)
        both = _of_machine(then) and _of_machine(now) and _alike(then.points, now.points)
        linear = then.linear and now.linear
        inside = narrow.n_inside == 0 < wide.n_inside
        if both and linear and inside and wide.width >= 2.0 * narrow.width:
            return True
    return False


def memorised(history: History) -> bool:
    """Nearly all points are support vectors, and none is on the wrong side."""
    now = history[-1]
    many = _of_machine(now) and not now.linear and len(now.points.X) >= 20
    return many and now.share(now.n_support) >= 0.9 and now.errors == 0


def smoothed(history: History) -> bool:
    """At most a quarter of the points are support vectors, and few are on the wrong side."""
    now = history[-1]
    many = _of_machine(now) and not now.linear and len(now.points.X) >= 20
    return many and now.share(now.n_support) <= 0.25 and now.share(now.errors) <= 0.05


def exploded(history: History) -> bool:
    """The weights of LMS grew without end."""
    now = history[-1]
    return now.algorithm == "lms" and not now.failed and not now.largest <= EXPLODED


def tamed(history: History) -> bool:
    """On the same points LMS exploded, and with a rate at most ten times smaller it did not."""
    now = history[-1]
    if now.algorithm != "lms" or now.failed or not now.largest <= EXPLODED:
        return False
    return any(
        exploded([then]) and _alike(then.points, now.points)
        and _rate(now) >= 0.1 * _rate(then) and _same_update(then, now)
        for then in history[:-1]
    )  # fmt: skip


def _rate(each: Seen) -> float:
    rate = each.parameters["learning_rate"]
    return float(getattr(rate, "c", rate))


def _same_update(a: Seen, b: Seen) -> bool:
    names = ("update", "max_iter")
    kinds = [type(each.parameters["learning_rate"]) for each in (a, b)]
    return kinds[0] is kinds[1] and all(a.parameters[n] == b.parameters[n] for n in names)


def perceptron_did_not_end(history: History) -> bool:
    """The perceptron ran on points that no line separates."""
    now = history[-1]
    return now.algorithm == "perceptron" and now.separable is False and not now.proved


def pocket_kept_better(history: History) -> bool:
    """Of the same points, the pocket's plane has fewer errors than a step of the perceptron."""
    now = history[-1]

    def better(pocket: Seen, other: Seen) -> bool:
        kinds = (pocket.algorithm, other.algorithm) == ("pocket", "perceptron")
        shown = pocket.step is None and other.step is not None
        apart = pocket.separable is False and not pocket.failed
        fewer = pocket.errors < other.errors
        return kinds and shown and apart and fewer and _alike(pocket.points, other.points)

    return any(better(now, then) or better(then, now) for then in history[:-1])


def bounds_hold(now: Seen) -> bool:
    """Say whether the share of margin errors is at most ν, and that of support vectors at least."""
    if now.algorithm != "nusvc" or not _of_machine(now):
        return False
    nu = now.parameters["nu"]
    return now.share(now.n_inside) <= nu <= now.share(now.n_support)


def bounds_at_small(history: History) -> bool:
    """Both bounds were seen at a small ν."""
    return bounds_hold(history[-1]) and history[-1].parameters["nu"] <= 0.25


def bounds_at_large(history: History) -> bool:
    """Both bounds were seen at a large ν."""
    return bounds_hold(history[-1]) and history[-1].parameters["nu"] >= 0.6


# Readings --------------------------------------------------------------------------------------


def band_in_words(now: Seen) -> str:
    """Return the width of the band and its support vectors."""
    if not _of_machine(now):
        return ""
    return f"The band is {now.width:.4g} wide and has {counted(now.n_support, 'support vector')}."


def corrections_in_words(now: Seen) -> str:
    """Return the corrections of a perceptron and their bound."""
    if now.algorithm != "perceptron" or now.failed:
        return ""
    if not now.proved:
        return f"{counted(now.corrections, 'correction')} until it was stopped."
    known = np.isfinite(now.bound)
    bound = f", at most {math.floor(now.bound):,} by Novikoff's bound" if known else ""
    return (
        f"{counted(now.corrections, 'correction')}{bound}; the margin of the widest band is "
        f"{now.widest:.3g}."
    )


def right_in_words(now: Seen) -> str:
    """Return how many points are on their side."""
    right = len(now.points.X) - now.errors
    return f"{right:,} of {len(now.points.X):,} points are strictly on their side."


def inside_band_in_words(now: Seen) -> str:
    """Return the width of the band and the points inside of it."""
    if not _of_machine(now):
        return ""
    inside = counted(now.n_inside, "point")
    return f"The band is {now.width:.4g} wide; {inside} inside of it or beyond."


def support_in_words(now: Seen) -> str:
    """Return the share of support vectors, and the errors."""
    if not _of_machine(now):
        return ""
    share = now.share(now.n_support)
    return f"{share:.0%} of the points are support vectors; {now.errors} are on the wrong side."


def rates_in_words(now: Seen) -> str:
    """Return the learning rate, where it explodes about, and the largest weight."""
    if now.algorithm != "lms" or now.failed:
        return ""
    energy = float((now.points.X**2).sum(axis=1).mean()) + 1.0
    words = f"{now.largest:.3g}" if np.isfinite(now.largest) else "not finite"
    return f"ρ = {_rate(now):.4g}, 2/trace(R) = {2 / energy:.4g}; the largest weight is {words}."


def shares_in_words(now: Seen) -> str:
    """Return ν between the two shares that it bounds."""
    if now.algorithm != "nusvc" or not _of_machine(now):
        return ""
    inside, nu, support = now.share(now.n_inside), now.parameters["nu"], now.share(now.n_support)
    signs = ["≤" if a <= b else ">" for a, b in ((inside, nu), (nu, support))]
    return (
        f"{inside:.1%} margin errors {signs[0]} ν = {nu:.1%} {signs[1]} {support:.1%} support "
        "vectors."
    )


# Points ----------------------------------------------------------------------------------------


LEFT = [
    (1, 1.2),
    (1.4, 2.6),
    (2.1, 0.6),
    (2.2, 3.3),
    (0.6, 3.2),
    (1.8, 1.8),
    (2.9, 1.1),
    (0.8, 2.1),
]
RIGHT = [(6.4, 5.2), (5.1, 5.6), (6.9, 3.9), (6.1, 6.3), (7.2, 5.8), (5, 4), (7.6, 4.6)]


def _of_two(first: list[tuple[float, float]], second: list[tuple[float, float]]) -> Points:
    return checked([*first, *second], [0] * len(first) + [1] * len(second))


def apart() -> Points:
    """Two groups of points that a line separates with room to spare."""
    return _of_two(LEFT, RIGHT)


def close() -> Points:
    """The same two groups, of which each has a point near the other one."""
    return _of_two([*LEFT, (4.3, 2.9)], [*RIGHT, (5.6, 4.2), (5.6, 3.1)])
