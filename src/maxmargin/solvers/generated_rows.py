"""Separability of rows in partitions, decided on few of them (constraint generation).

Some rows are held in the memory of this process, and the question is decided for them there. A
proof that no plane separates them is a proof for all rows. A plane that separates them is sent to
the workers, which return the rows that it does not separate: these are held as well, and the
question is asked again. Every round adds such rows, of which there are finitely many; the last
plane separates all rows, as the certificate verifies in a pass over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..arrays import Floats
from ..certificates import SeparationCertificate, certify
from ..certificates.separation import rounded_margins
from ..data.normalised_samples import SignedSamples
from ..data.partitioned_samples import PartitionedSamples, SomeRows, merged_rows, rows_of_samples
from ..geometry import Hyperplane
from ..problems import SeparationProblem
from ..solution import Solution, Status
from .separability import Separability, decide


@dataclass(frozen=True)
class Tuning:
    """Sizes."""

    # Rows asked for per round: at least these, and so many per column of Z.
    min_rows_added: int = 200
    rows_added_per_column: int = 4
    min_rows_per_partition: int = 8
    # Numbers of all rows that are held.
    max_numbers_held: int = 1 << 23
    # A row is added where its margin is less than this share of the least of the rows held: of any
    # plane that separates them, and of the widest.
    added_share: float = 0.5
    widest_share: float = 1.0 - 1e-9


TUNING = Tuning()


class Worst(NamedTuple):
    """What all rows say of a plane.

    Attributes
    ----------
    n_wrong : int
        Rows whose z·a is not positive by more than its rounding error.
    smallest, largest : float
        The least z·a, and the largest |z·a|.
    rows : SomeRows
        Those of the least z·a in each partition.
    """

    n_wrong: int
    smallest: float
    largest: float
    rows: SomeRows


class HeldRows:
    """Rows of a collection in the memory of this process.

    Parameters
    ----------
    whole : PartitionedSamples
        All rows.
    some : SomeRows
        Those held at first.
    """

    def __init__(self, whole: PartitionedSamples, some: SomeRows) -> None:
        self.whole, self.some = whole, some
        wanted = TUNING.rows_added_per_column * whole.shape[1]
        shared = 2 * max(TUNING.min_rows_added, wanted) // len(whole.X.sizes)
        self._per_partition = max(TUNING.min_rows_per_partition, shared)

    @classmethod
    def first(cls, whole: PartitionedSamples) -> HeldRows:
        """Hold evenly spaced rows, and some of each class."""
        columns = whole.shape[1]
        wanted = 2 * max(TUNING.min_rows_added, TUNING.rows_added_per_column * columns)
        count = max(1, min(wanted, TUNING.max_numbers_held // columns))
        step = max(1, whole.n_samples // count)
        return cls(whole, whole.reduce(_spaced, merged_rows, common=(step,)))

    @property
    def samples(self) -> SignedSamples:
        """The rows held as normalised samples."""
        return self.whole.held(self.some)

    def ask(self, a: Floats, level: float) -> Worst:
        """Return what all rows say of a plane, and those with z·a ≤ level: one round."""
        common = a, self.whole.longest, level, self._per_partition
        return self.whole.reduce(worst_of, merged_worst, common=common)

    def add(self, rows: SomeRows) -> bool:
        """Hold more rows; return whether some of them are new."""
        new = np.flatnonzero(~np.isin(rows.places, self.some.places))
        if not new.size:
            return False
        numbers = _numbers(self.some.X) + _numbers(rows.X)
        if numbers > TUNING.max_numbers_held:
            raise MemoryError(
                f"Separability in partitions is decided on rows near the plane, of at most "
                f"{TUNING.max_numbers_held:,} numbers, in the memory of this process, got "
                f"{numbers:,}: use LinearSVC with a finite C, which needs none of them."
            )
        added = SomeRows(rows.places[new], rows.X[new], rows.labels[new])
        self.some = merged_rows([self.some, added])
        return True


def _numbers(X: Any) -> int:
    return int(X.nnz if sparse.issparse(X) else X.size)


def decide_in_partitions(
    Z: PartitionedSamples, tol: float, maximum_margin: bool = False
) -> Separability:
    """Return the verdict on samples in partitions; see `maxmargin.separability`."""
    problem, held = SeparationProblem(Z), HeldRows.first(Z)
    undecided = partial(_undecided, problem, tol)
    widest = maximum_margin
    while True:
        report = decide(held.samples, 0.0, widest)
        if report.separable is None:
            return undecided()
        if not report.separable:
            return refuted_by(held, report, tol) or undecided()
        plane = report.hyperplane
        assert plane is not None
        share = TUNING.widest_share if widest else TUNING.added_share
        worst = held.ask(np.append(plane.w, plane.b), share * report.certificate.margin)
        grew = bool(worst.n_wrong or widest) and held.add(worst.rows)
        if grew:
            continue
        if worst.n_wrong:
            return undecided()
        plane, certificate = _verified(problem, plane, unit=not maximum_margin)
        if certificate.separates and certificate.margin > tol * worst.largest:
            margin, bound = certificate.geometric_margin, report.margin_bound
            return Separability(True, plane, margin, None, None, certificate, tol, bound)
        if widest:
            return undecided()
        widest = True  # the plane of maximum margin decides


def refuted_by(held: HeldRows, report: Separability, tol: float) -> Separability | None:
    """Return the proof that no plane separates the rows held as one for all rows.

    It is verified on the workers; None where that fails.
    """
    assert report.multipliers is not None
    Z = held.whole
    u = Z.spread(held.some.places, report.multipliers)
    no_plane = np.zeros((1, Z.X.shape[1])), np.zeros(1)
    solution = Solution(*no_plane, status=Status.INSEPARABLE, multipliers=u)
    certificate = certify(SeparationProblem(Z), solution)
    if not certificate.refutes:
        return None
    return replace(report, multipliers=u, certificate=certificate, tol=tol)


def _verified(
    problem: SeparationProblem, plane: Hyperplane, *, unit: bool
) -> tuple[Hyperplane, SeparationCertificate]:
    """Return a plane with its certificate, with ‖w‖ = 1 if wanted and rounding allows it."""
    tried = [plane.normalized(), plane] if unit else [plane]
    for each in tried:
        solution = Solution(each.w[np.newaxis], np.array([each.b]), Status.CONVERGED)
        certificate: SeparationCertificate = certify(problem, solution)
        if certificate.separates:
            break
    return each, certificate


def _undecided(problem: SeparationProblem, tol: float) -> Separability:
    no_plane = np.zeros((1, problem.Z.X.shape[1])), np.zeros(1)
    certificate = certify(problem, Solution(*no_plane, status=Status.ITERATION_LIMIT))
    return Separability(None, None, np.nan, None, None, certificate, tol)


# What workers do ----------------------------------------------------------------------------------


def _spaced(Z: SignedSamples, step: int) -> SomeRows:
    """Return every k-th sample, and the first of each class."""
    first = [np.flatnonzero(Z.labels == sign)[:1] for sign in (1.0, -1.0)]
    return rows_of_samples(Z, np.unique(np.concatenate([np.arange(0, Z.n_samples, step), *first])))


def worst_of(Z: SignedSamples, a: Floats, longest: float, level: float, count: int) -> Worst:
    """Return what the rows of a partition say of a plane."""
    margins, errors = rounded_margins(Z, a, longest)
    short = np.flatnonzero(margins <= np.maximum(level, errors))
    if short.size > count:
        short = np.sort(short[np.argpartition(margins[short], count - 1)[:count]])
    return Worst(
        int((margins <= errors).sum()), float(margins.min()), float(np.abs(margins).max()),
        rows_of_samples(Z, short),
    )  # fmt: skip


def merged_worst(found: list[Worst]) -> Worst:
    """Put together what partitions say."""
    n_wrong, smallest, largest, rows = zip(*found, strict=True)
    return Worst(sum(n_wrong), min(smallest), max(largest), merged_rows(list(rows)))
