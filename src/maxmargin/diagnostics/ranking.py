"""The area under the ROC curve, from the scores of any number of rows, some at a time.

The area (AUC) is the share of pairs, a row of the class and another row, in which the row of the
class has the larger score; equal scores count half. It needs the order of all scores. They are kept
up to a limit; beyond it neighbours are joined to bins, and the area is known up to a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Integers

# Scores that are kept, of all classes together: 32 MB, four million rows of two classes.
KEPT_SCORES = 1 << 22
# Bins of all classes together once there are more, and the least number for one class.
MOST_BINS, LEAST_BINS = 1 << 20, 1 << 10


class Area(NamedTuple):
    """An area under the ROC curve, and by how much it may be wrong: 0 where it is exact."""

    area: float
    bound: float


class Bins(NamedTuple):
    """Rows of one class and of the others by score: a bin has scores from ``low`` to ``high``."""

    low: Floats
    high: Floats
    inside: Floats
    others: Floats

    @classmethod
    def of(cls, scores: Floats, is_inside: Integers) -> Bins:
        """Return a bin for every score."""
        inside = is_inside.astype(np.float64)
        return cls(scores, scores, inside, 1.0 - inside)

    def merged(self, other: Bins) -> Bins:
        """Return the bins of both."""
        return Bins(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def joined(self, n_bins: int) -> Bins:
        """Return at most so many bins of about as many rows each, neighbours joined."""
        if self.low.size <= n_bins:
            return self
        low, high, inside, others = (part[np.lexsort((self.high, self.low))] for part in self)
        rows = np.cumsum(inside + others)
        group = np.minimum((rows - 1.0) * n_bins / rows[-1], n_bins - 1).astype(np.intp)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        return Bins(
            low[starts], np.maximum.reduceat(high, starts),
            np.add.reduceat(inside, starts), np.add.reduceat(others, starts),
        )  # fmt: skip

    def area(self) -> Area | None:
        """Return the area under the ROC curve; None where one side has no rows."""
        pairs = self.inside.sum() * self.others.sum()
        if pairs == 0.0:
            return None
        below = _totals_up_to(self.high, self.others, self.low, "left")
        reached = _totals_up_to(self.low, self.others, self.high, "right")
        # Others of the same score: bins of a single score are compared exactly.
        exact = np.flatnonzero(self.low == self.high)
        values, place = np.unique(self.low[exact], return_inverse=True)
        ties = np.zeros(self.low.size)
        ties[exact] = np.bincount(place, self.others[exact], values.size)[place]
        least = float(self.inside @ (below + ties / 2.0)) / pairs
        most = float(self.inside @ (reached - ties / 2.0)) / pairs
        return Area((least + most) / 2.0, max(most - least, 0.0) / 2.0)


def _totals_up_to(ends: Floats, rows: Floats, at: Floats, side: str) -> Floats:
    """Return the number of rows in bins whose end is below each value, or equal if "right"."""
    order = np.argsort(ends, kind="stable")
    totals = np.concatenate([[0.0], np.cumsum(rows[order])])
    places: Floats = totals[np.searchsorted(ends[order], at, side=side)]  # type: ignore[call-overload]
    return places


class RankTally(NamedTuple):
    """Scores of rows with the numbers of their true classes.

    Parameters
    ----------
    scores : tuple of ndarray of shape (n, n_columns)
        One column of two classes, large for the second; else one per class, large for the class.
    codes : tuple of ndarray of shape (n,)
        Class numbers; of two classes 1 is the second.
    bins : tuple of Bins
        Those of earlier rows, one per column; none before there are too many scores.
    """

    scores: tuple[Floats, ...]
    codes: tuple[Integers, ...]
    bins: tuple[Bins, ...] = ()

    @classmethod
    def of(cls, scores: Floats, codes: Integers) -> RankTally:
        """Return the tally of some rows."""
        columns = scores[:, None] if scores.ndim == 1 else scores
        return cls((columns.astype(np.float64, copy=False),), (codes,))._bounded()

    def merged(self, other: RankTally) -> RankTally:
        """Return the scores of both."""
        bins = self.bins or other.bins
        if self.bins and other.bins:
            bins = tuple(a.merged(b) for a, b in zip(self.bins, other.bins, strict=True))
        return RankTally(self.scores + other.scores, self.codes + other.codes, bins)._bounded()

    def areas(self) -> list[Area | None]:
        """Return the area of every column, None where a class has all the rows or none."""
        return [each.area() for each in self._all_bins()]

    def _bounded(self) -> RankTally:
        """Join scores to bins where there are too many."""
        if sum(part.size for part in self.scores) <= KEPT_SCORES and (
            not self.bins or self.bins[0].low.size <= 2 * _bins_per_column(len(self.bins))
        ):
            return self
        found = self._all_bins()
        return RankTally((), (), tuple(each.joined(_bins_per_column(len(found))) for each in found))

    def _all_bins(self) -> list[Bins]:
        if not self.scores:
            return list(self.bins)
        scores, codes = np.concatenate(self.scores), np.concatenate(self.codes)
        n_columns = scores.shape[1]
        wanted = [1] if n_columns == 1 else range(n_columns)
        found = [Bins.of(scores[:, k], codes == code) for k, code in enumerate(wanted)]
        if self.bins:
            found = [a.merged(b) for a, b in zip(self.bins, found, strict=True)]
        return found


def _bins_per_column(n_columns: int) -> int:
    return max(MOST_BINS // n_columns, LEAST_BINS)
