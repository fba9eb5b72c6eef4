"""What every certificate is, and the one function that makes them."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Protocol

from ..solution import Solution


class Certificate(Protocol):
    """What every certificate can do."""

    @property
    def violation(self) -> float:
        """How far the claim is from holding, 0 where it holds exactly."""

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the claim holds to ``tol``."""


class NotSeparableError(ValueError):
    """No plane separates the classes; ``proof`` says why."""

    def __init__(self, message: str, proof: Any = None) -> None:
        super().__init__(message)
        self.proof = proof


@singledispatch
def certify(
    problem: Any,
    solution: Solution,
    *,
    sample: int | None = None,
    at_most: int | None = None,
) -> Any:
    """Recompute in float64 what ``solution`` proves about ``problem``.

    Parameters
    ----------
    problem : SeparationProblem, LeastSquaresProblem, KernelSeparationProblem, DualProblem,
        PrimalProblem or JointProblem
    solution : Solution
    sample : int, optional
        For a DualProblem: recompute the scores of so many samples and of all that matter, and
        take the solver's own scores of the others, with the bounds of their errors that it gives
        (``coverage`` is then "bounded"; without bounds "sampled"). All by default.
    at_most : int, optional
        With ``sample``: where more scores than that would have to be recomputed, none is, and the
        certificate claims no more than the bounds prove. There is no limit by default.

    Returns
    -------
    Certificate
        With ``holds(tol)``, ``violation`` and ``str()`` for people.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.problems import SeparationProblem
    >>> from maxmargin.data.normalised_samples import SignedSamples
    >>> from maxmargin.solution import Solution, Status
    >>> Z = SignedSamples(np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]))
    >>> plane = Solution(w=np.array([[1.0]]), b=np.array([-1.0]), status=Status.CONVERGED)
    >>> print(certify(SeparationProblem(Z), plane))
    separates all 2 samples: smallest distance to the plane 1
    """
    raise TypeError(f"certify knows no {type(problem).__name__}.")
