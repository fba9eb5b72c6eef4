"""What the certificates of a fit claim, and the warnings where they fall short."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from ..certificates import Certificate, MarginCertificate, SeparationCertificate
from ..progress import Limits
from ..solution import Status

Proof = TypeVar("Proof", bound=Certificate)
P_contra = TypeVar("P_contra", bound=Certificate, contravariant=True)
Separation = TypeVar("Separation", bound=SeparationCertificate)

UNFINISHED = frozenset({Status.ITERATION_LIMIT, Status.DIVERGED})
# Shares of a time limit at which solvers end, and at which the proof and all that follows should.
SOLVER_TIME_SHARE, TOTAL_TIME_SHARE = 0.9, 1.1


class Claims(Protocol[P_contra]):
    """What an estimator claims of the tasks of a fit."""

    def verdict(self, status: Status, certificate: P_contra) -> Status:
        """Return how a task ended, by its certificate."""

    def falls_short(self, status: Status, certificate: P_contra) -> bool:
        """Return whether a task ended in a way that the caller is warned of."""

    def measures(self, certificate: P_contra) -> str:
        """Return how far the claim is from holding, in words."""

    def remedy(self, status: Status, certificate: P_contra) -> str:
        """Return what the caller can do."""

    def attributes(self, certificates: Sequence[P_contra]) -> dict[str, object]:
        """Return the fitted attributes that say whether the claims hold."""


def unfinished(status: Status, certificate: SeparationCertificate) -> bool:
    """Return whether a limit came first."""
    return status in UNFINISHED


def unseparated(status: Status, certificate: SeparationCertificate) -> bool:
    """Return whether a limit came before a separating plane."""
    return status in UNFINISHED and not certificate.separates


@dataclass(frozen=True)
class Separates(Generic[Separation]):
    """A plane separates the classes of every task.

    Parameters
    ----------
    short : callable, default=unseparated
        (status, certificate) ↦ whether a task ended in a way that the caller is warned of.
    limited, diverged : str
        What to do where a limit came first, and where steps grew without bound.
    """

    short: Callable[[Status, Separation], bool] = unseparated
    limited: str = (
        "Raise max_iter, or ask maxmargin.separability(X, y) whether any plane separates."
    )
    diverged: str = "Its steps grew without bound: use a smaller rate."

    def verdict(self, status: Status, certificate: Separation) -> Status:
        """Return how a task ended: as its solver says."""
        return status

    def falls_short(self, status: Status, certificate: Separation) -> bool:
        """Return whether a task ended in a way that the caller is warned of."""
        return self.short(status, certificate)

    def measures(self, certificate: Separation) -> str:
        """Return the certificate in words."""
        return str(certificate)

    def remedy(self, status: Status, certificate: Separation) -> str:
        """Return what the caller can do."""
        return self.diverged if status is Status.DIVERGED else self.limited

    def attributes(self, certificates: Sequence[Separation]) -> dict[str, object]:
        """Return whether all tasks are separated."""
        return {"separates_": all(certificate.separates for certificate in certificates)}


@dataclass(frozen=True)
class Optimal:
    """A machine is optimal to a tolerance.

    Parameters
    ----------
    tol : float
    remedies : mapping of Status to str
        What to do where a task ended in this way; ``otherwise`` in all others.
    otherwise : str
    undecided : str
        What to do where a hard margin ended without a plane and without a proof that there is none.
    """

    tol: float
    remedies: Mapping[Status, str]
    otherwise: str
    undecided: str

    def verdict(self, status: Status, certificate: MarginCertificate) -> Status:
        """Return how a task ended: whether it converged, the certificate decides."""
        # A solver's tolerance is met in its own arithmetic, which may be that of float32.
        if status in (Status.CONVERGED, Status.PATIENCE):
            return Status.CONVERGED if certificate.holds(self.tol) else Status.PATIENCE
        return status

    def falls_short(self, status: Status, certificate: MarginCertificate) -> bool:
        """Return whether a task that no callback stopped is not optimal."""
        return status is not Status.STOPPED and not certificate.holds(self.tol)

    def measures(self, certificate: MarginCertificate) -> str:
        """Return the duality gap and the violation in words."""
        verdict = (
            "undecided whether a plane separates the classes, " if _undecided(certificate) else ""
        )
        return verdict + certificate.measures

    def remedy(self, status: Status, certificate: MarginCertificate) -> str:
        """Return what the caller can do."""
        if _undecided(certificate):
            return self.undecided
        return self.remedies.get(status, self.otherwise)

    def attributes(self, certificates: Sequence[MarginCertificate]) -> dict[str, object]:
        """Return nothing: the certificates themselves say it."""
        return {}


def _undecided(certificate: MarginCertificate) -> bool:
    """Whether P = ∞: no plane of a hard margin was found, nor a proof that there is none."""
    return bool(np.isinf(certificate.primal))


@dataclass(frozen=True)
class TimeLimit:
    """The seconds that all tasks of a fit may take together, checks and proofs included."""

    seconds: float | None
    started: float = field(default_factory=time.perf_counter)

    def left(self, share: float) -> float | None:
        """Return the seconds until a share of the limit is used up; None without a limit."""
        if self.seconds is None:
            return None
        return max(0.0, share * self.seconds - (time.perf_counter() - self.started))

    def shortened(self, share: float) -> TimeLimit:
        """Return a share of the limit, from its beginning."""
        return self if self.seconds is None else replace(self, seconds=share * self.seconds)

    def limits(self, max_iter: int, share: float = 1.0) -> Limits:
        """Return what is left to a solver, or a share of it; −1 iterations set no limit."""
        left = self.left(SOLVER_TIME_SHARE)
        seconds = None if left is None else share * left
        return Limits(None if max_iter == -1 else max_iter, seconds)
