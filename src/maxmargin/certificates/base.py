"""The interface of certificates, and the function that makes them."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any, Protocol

from ..solution import Solution

if TYPE_CHECKING:
    from ..solvers.separability import Separability
    from .multipliers import FeatureSpaceRefutation


class Certificate(Protocol):
    """A claim about an answer that was recomputed from the problem.

    All certificates have these members. Those of a fitted estimator are its attributes
    ``certificate_`` and ``certificates_``, one per task.

    Attributes
    ----------
    violation : float
        By how much the claim fails to hold, 0 if it holds exactly.

    See Also
    --------
    certify : Make the certificate of a solution.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> mm.SVC(kernel="linear").fit(X, y).certificate_.holds(1e-6)
    True
    """

    @property
    def violation(self) -> float:
        """By how much the claim fails to hold, 0 if it holds exactly."""

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the claim holds to ``tol``."""


class NotSeparableError(ValueError):
    """Error raised by a hard-margin fit to classes that no plane separates.

    Parameters
    ----------
    message : str
        What cannot be separated.
    proof : Separability, FeatureSpaceRefutation or None, default=None
        The multipliers that prove it.

    Attributes
    ----------
    proof : Separability, FeatureSpaceRefutation or None
        The multipliers that prove it.

    See Also
    --------
    separability : Decide with a proof whether a plane separates two classes.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> try:
    ...     mm.SVC(kernel="linear", C=np.inf).fit(X, y)
    ... except mm.NotSeparableError as error:
    ...     print(error.proof.multipliers)
    [0.25 0.25 0.25 0.25]
    """

    def __init__(
        self, message: str, proof: Separability | FeatureSpaceRefutation | None = None
    ) -> None:
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
    problem : object
        The problem that was posed: a SeparationProblem, LeastSquaresProblem,
        KernelSeparationProblem, DualProblem, PrimalProblem, L1Problem, JointProblem or
        JointKernelProblem.
    solution : Solution
        The answer to check.
    sample : int, optional
        For a DualProblem: recompute the scores of this many samples and of all that can affect the
        claim, and use the solver's scores of the others, with its bounds of their errors
        (``coverage`` is then "bounded"; without bounds "sampled"). All by default, and on a device.
    at_most : int, optional
        With ``sample``: if more scores than this would have to be recomputed, none are, and the
        certificate claims no more than the bounds prove. There is no limit by default.

    Returns
    -------
    Certificate
        The proof, with ``holds(tol)``, ``violation`` and a readable ``str()``.

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
    raise TypeError(
        f"problem must be of a type that certify has been registered for, got "
        f"{type(problem).__name__}."
    )
