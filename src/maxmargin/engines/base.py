"""The engine contract: where the data of a fit live, and what a solver may ask of them.

The rule: **a solver's loop sees scalars, vectors of length d, (d+1)² matrices, row indices and
blocks of a few thousand rows. Whatever has length n belongs to the engine.** Then the same loop
runs on the threads of one machine, on a GPU and on a cluster, and an engine is one package that
implements the protocols below and one line of `engines.registry`.

An `Engine` holds X. It hands out a `Gram`, K of some rows, for solvers of the dual. A `Gram` hands
out the `DualState` of one problem, which holds β, the gradient and the bounds, and a `DualState`
hands out the `Block` of a working set. Vectors of length n come to the host when a fit ends
(`DualState.result`), or when a callback asks for a snapshot.

Solvers that keep vectors of length n themselves, for a few thousand samples, ask for a `HostGram`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers

if TYPE_CHECKING:
    from ..kernels import Kernel
    from ..problems import DualProblem

# "fast" values may be float32; "exact" ones are float64.
Precision = Literal["fast", "exact"]


class Engine(Protocol):
    """X, where it lives. It may outlive a fit: what it has computed serves the next one."""

    def gram(
        self, kernel: Kernel, index: Integers | None = None, precision: Precision = "exact"
    ) -> Gram:
        """Return K of the rows of X named by ``index``, all of them by default."""


class Gram(Protocol):
    """K = (K(x_i, x_j)) of some rows of X. What it stores is its own affair."""

    @property
    def n_samples(self) -> int:
        """The number of rows of K."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in which values are computed."""

    def block(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """Return K[rows, columns], K[rows, rows] by default, for a few thousand rows."""

    def restrict(self, rows: Integers) -> Gram:
        """Return K[rows, rows]: a view that shares the values this one has stored."""

    def dual_state(
        self,
        problem: DualProblem,
        alpha: Floats,
        exact: Gram | None = None,
        claim: Claim | None = None,
    ) -> DualState:
        """Return the state of a problem at a feasible α.

        Parameters
        ----------
        problem : DualProblem
            Its rows are those of this Gram matrix.
        alpha : ndarray of shape (n,)
        exact : Gram, optional
            The same matrix in float64, where this one is not.
        claim : Claim, optional
            Scores of α that are believed to be known. An engine that uses them checks them first.
        """


class Claim(NamedTuple):
    """Scores (Kβ)_i and bounds of their errors, as an earlier solver left them."""

    scores: Floats
    bounds: Floats


class Totals(NamedTuple):
    """Sums over the variables of a `DualState`, at one multiplier λ per group.

    With z_i = −p_i − s_i((Kβ)_i + λ) and h_i(z) = max {za − ½D_i a² : l_i ≤ a ≤ u_i} the duality
    gap is Σ h_i(z_i) − α_i z_i + ½D_i α_i², a sum of terms ≥ 0.
    """

    gap: float
    square: float  # βᵀKβ = ‖w‖²
    smallest: float  # the least s_i((Kβ)_i + λ) of all variables
    size: float  # Σ|β_i|
    errors: int  # variables with s_i((Kβ)_i + b) ≤ 0, b the mean of the λ


class Result(NamedTuple):
    """Vectors of length n that come back to the host.

    ``scores`` are Kβ, known to within ``bounds``; both are None where that is not known.
    """

    alpha: Floats
    scores: Floats | None
    bounds: Floats | None


Level = tuple[float, float]


class DualState(Protocol):
    """β = sα, its bounds, and the gradient f = −sp − (K + D)β of one dual problem.

    In every group G of variables Σβ is fixed. β is optimal when, in every group, no f_i with
    β_i < upper_i exceeds an f_j with β_j > lower_j, or, without groups, no f_i of the former is
    above 0 and no f_j of the latter below 0. Variables are numbered from 0 to n − 1, groups as in
    the problem; without groups, all variables are group 0.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of variables in each group; (n,) without groups."""

    @property
    def largest(self) -> float:
        """The largest diagonal element of K + D."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the kernel values in use: float32 leaves rounding errors in f."""

    @property
    def may_restrict(self) -> bool:
        """Whether K among some of the variables is cheap enough for `near` to pay."""

    def levels(self) -> list[Level]:
        """Return, per group, the largest f that may grow and the least f that may shrink."""

    def mean_free(self, group: int) -> float:
        """Return the mean of f over the variables strictly between their bounds, else NaN."""

    def totals(self, multipliers: list[float]) -> Totals:
        """Return sums over all variables, for one multiplier per group (0 without groups)."""

    def best_shift(self, b: float) -> float:
        """Return the ρ for which the multipliers λ = b − sgn(t)ρ of two groups fit best.

        That is the least ρ at which the bounds u_i of all variables with
        p_i + s_i((Kβ)_i + b) ≤ ρ add up to Σ|t|, t the sums of the groups.
        """

    def objective(self) -> float:
        """Return ½βᵀ(K + D)β + pᵀα, computed from f."""

    def violators(
        self, group: int, level: Level, most: float, wanted: int, taken: Integers
    ) -> Integers:
        """Return up to ``wanted`` variables of a group that violate most, none of ``taken``.

        Half of them have a large f that may grow, half a small f that may shrink; ``most`` is an
        upper bound of the violation.
        """

    def free(self, rows: Integers) -> NDArray[np.bool_]:
        """Return which of some variables lie strictly between their bounds."""

    def near(self, levels: list[Level], reach: float, at_most: int) -> DualState | None:
        """Return the state of the variables that matter for a while: the others are held fixed.

        Those are the free ones, those that violate, and those that a change of f by ``reach``
        would make violate. None where they are more than ``at_most``.
        """

    def block(self, capacity: list[int]) -> Block:
        """Return an empty working set with room for so many variables of each group."""

    def take(self, part: DualState | Block) -> float | None:
        """Take over β from a part and update f; return by how much the objective fell.

        None where nothing has moved.
        """

    def refresh(self) -> None:
        """Compute f anew, from exact kernel values where the state has them."""

    def correct(self, multipliers: list[float], little: float) -> int:
        """Compute f anew, exactly, where rounding may hide a violation; return of how many.

        In doubt are variables whose f is wrong by more than ``little``, for all that is known, and
        that may violate by more than that.
        """

    def turn_exact(self) -> None:
        """Use exact kernel values from here on."""

    def result(self) -> Result:
        """Return α of all variables of the problem, also of those that `near` left out."""


class Block(Protocol):
    """The working set: some variables at places of their own, and K + D among them."""

    members: Integers  # the variable at each place, −1 where there is none

    def places(self, group: int) -> Integers:
        """Return the places for variables of a group."""

    def put(self, places: Integers, rows: Integers) -> None:
        """Put variables at places, in the stead of those that were there."""

    def solve(self, stop: float, max_steps: int) -> int:
        """Solve the problem of the members, the others held fixed; return the steps made.

        It ends when no two members of a group, or no single one without groups, violate by more
        than ``stop``. What it found, `DualState.take` takes over.
        """


class HostGram(Gram, Protocol):
    """A `Gram` whose vectors are NumPy arrays, for solvers that keep vectors of length n."""

    @property
    def fits(self) -> bool:
        """Whether the whole of K fits the memory set aside for it."""

    def diagonal(self) -> Floats:
        """Return K(x_i, x_i) in float64."""

    def whole(self) -> Floats:
        """Return all of K, and keep it."""

    def dot(
        self,
        rows: Integers,
        v: Floats,
        keep: NDArray[np.bool_] | None = None,
        error: Floats | None = None,
    ) -> Floats:
        """Return K[:, rows] v in float64.

        ``keep`` says which rows are likely to be asked for again. A bound of the rounding errors
        is added to ``error``.
        """

    def product(self, rows: Integers, columns: Integers, v: Floats) -> Floats:
        """Return K[rows, columns] v in float64."""

    def bound(self, rows: Integers | slice, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v."""
