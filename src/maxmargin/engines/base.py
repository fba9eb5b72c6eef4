"""The engine contract: where the data of a fit live, and what a solver may do with them.

The rule: **a solver's loop sees scalars, vectors of length d, (d+1)² matrices, row indices and
blocks of a few thousand rows. Whatever has length n belongs to the engine.** Then the same loop
runs on the threads of one machine, on a GPU and on a cluster, and an engine is one package that
implements the protocols below and one line of `engines.registry`.

An `Engine` holds X. It provides `Features` for solvers of the primal, whose contract is
`engines.linear`, and a `Gram`, K of some rows, for solvers of the dual. A `Gram`
creates the `DualState` of one problem, which holds β, the gradient and the bounds. Its vectors come
to the host (`DualState.result`) when a fit ends, or when a callback takes a snapshot.

Solvers that keep vectors of length n themselves, for a few thousand samples, take a `HostGram`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..progress import Limits

if TYPE_CHECKING:
    from ..data.row_sums import RowSums
    from ..kernels import Kernel
    from ..problems import DualProblem, JointKernelProblem
    from ..problems.held_out_rows import HeldOutRows
    from ..problems.shared_rows import SharedRows
    from .joint_kernel import JointKernelState
    from .linear import Features, HostFeatures

# "fast" values may be float32; "exact" ones are float64.
Precision = Literal["fast", "exact"]


class Engine(Protocol):
    """X, where it lives. It may outlive a fit: what it has computed serves the next one."""

    def precision(self, kernel: Kernel, tol: float, largest: float = 1.0) -> Precision:
        """Return "fast" where float32 kernel values, with float64 corrections, are precise enough.

        ``tol`` is the largest violation at the end, ``largest`` a number that no α exceeds, about.
        """

    def gram(
        self,
        kernel: Kernel,
        index: Integers | None = None,
        precision: Precision = "exact",
        *,
        keep: bool = True,
    ) -> Gram:
        """Return K of the rows of X named by ``index``, all of them by default.

        ``keep`` says whether the same values are likely to be needed again.
        """

    def features(self, index: Integers | None = None) -> Features:
        """Return the rows of X named by ``index``, all of them by default."""


class Gram(Protocol):
    """K = (K(x_i, x_j)) of some rows of X. What it stores is private to the engine."""

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


class Level(NamedTuple):
    """Bounds of a group's multiplier: at an optimum ``top`` ≤ ``low``."""

    top: float  # the largest f of the variables with β < upper, −∞ where there are none
    low: float  # the least f of the variables with β > lower, ∞ where there are none
    free: float  # the mean f of the variables strictly between their bounds, NaN where none is


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


class DualState(Protocol):
    """β = sα, its bounds, and the gradient f = −sp − (K + D)β of one dual problem.

    In every group G of variables Σβ is fixed. β is optimal when, in every group, no f_i with
    β_i < upper_i exceeds an f_j with β_j > lower_j, or, without groups, no f_i of the former is
    above 0 and no f_j of the latter below 0. Variables are numbered from 0 to n − 1, groups as in
    the problem; without groups, all variables are group 0.
    """

    @property
    def value(self) -> float:
        """The objective ½βᵀ(K + D)β + pᵀα of the whole problem."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of variables in each group; (n,) without groups."""

    @property
    def largest(self) -> float:
        """The largest diagonal element of K + D."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the kernel values in use: float32 leaves rounding errors in f."""

    def levels(self) -> list[Level]:
        """Return the bounds of every group's multiplier."""

    def totals(self, multipliers: list[float]) -> Totals:
        """Return sums over all variables, for one multiplier per group (0 without groups)."""

    def best_shift(self, b: float) -> float:
        """Return the ρ of the least gap where the multipliers of two groups are b − ρ and b + ρ.

        Without D that is a weighted quantile: the slope of the gap grows by upper_i − lower_i at
        ρ_i = b − f_i in the first group, at ρ_i = f_i − b in the second.
        """

    def violators(
        self, group: int, level: Level, most: float, wanted: int, taken: Integers
    ) -> Integers:
        """Return up to ``wanted`` variables of a group that violate most, none of ``taken``.

        Half of them have a large f that may grow, half a small f that may shrink; ``most`` is an
        upper bound of the violation.
        """

    def free(self, rows: Integers) -> NDArray[np.bool_]:
        """Return which of some variables lie strictly between their bounds."""

    def solve_block(self, members: list[Integers], stop: float, max_steps: int) -> Moves:
        """Solve the problem of some variables of each group, the others held fixed; update f.

        It ends when no two members of a group, or no single one without groups, violate by more
        than ``stop``. −1 is a place without a member. A member that was at the same place in the
        last call has its kernel values there already.
        """

    def near(self, levels: list[Level], reach: float, at_most: int) -> Integers | None:
        """Return the variables that matter for a while.

        Those are the free ones, those that violate, and those that a change of f by ``reach``
        would make violate. None where they are more than ``at_most``, or where `restrict` does
        not pay. Where rows are fetched to be solved, an engine has a limit of its own in the place
        of ``at_most``, and may return the worst of more variables.
        """

    def restrict(self, rows: Integers) -> DualState:
        """Return the state of some variables, the others held fixed."""

    def take(self, rows: Integers, part: DualState) -> bool:
        """Take β of some variables from their own state and update f; False if none has moved."""

    def refresh(self, multipliers: list[float] | None = None, little: float = 0.0) -> bool:
        """Compute f anew, from exact kernel values where the state has them.

        With multipliers, only where rounding may hide a violation, and False if nowhere: of
        variables whose f is wrong by more than ``little``, for all that is known, and that may
        violate by more than that.
        """

    def result(self) -> Result:
        """Return α of these variables, and their scores."""


class Moves(NamedTuple):
    """What solving a block has done."""

    steps: int
    moved: bool  # whether any β has changed


class HostGram(Gram, Protocol):
    """A `Gram` whose vectors are NumPy arrays, for solvers that keep vectors of length n."""

    @property
    def n_samples(self) -> int:
        """The number of rows of K."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in which values are computed."""

    @property
    def fits(self) -> bool:
        """Whether the whole of K fits the memory set aside for it."""

    def diagonal(self) -> Floats:
        """Return K(x_i, x_i) in float64."""

    def whole(self) -> Floats:
        """Return all of K, and keep it."""

    def block(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """Return K[rows, columns], K[rows, rows] by default."""

    def dot(
        self,
        rows: Integers,
        v: Floats,
        keep: NDArray[np.bool_] | None = None,
        error: Floats | None = None,
    ) -> Floats:
        """Return K[:, rows] v in float64.

        ``keep`` says which rows are likely to be needed again. A bound of the rounding errors
        is added to ``error``.
        """

    def product(
        self, rows: Integers, columns: Integers, v: Floats, error: Floats | None = None
    ) -> Floats:
        """Return K[rows, columns] v in float64; add a bound of its rounding errors to ``error``."""

    def bound(self, rows: Integers | slice, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v."""

    def restrict(self, rows: Integers) -> HostGram:
        """Return K[rows, rows]: a view that shares the values this one has stored."""


@dataclass(frozen=True)
class TaskArrays:
    """The problems of several tasks, their variables one after the other.

    Names are those of `DualProblem`; ``starts`` are the first variable of each task, and the end.
    Where there are two groups, the variables of the first, ``n_first`` of them, precede the others;
    ``total`` is Σ|t| of each task where p = 0, so that ρ is the unit of violations, and else 0.
    ``alpha`` is where they begin.
    """

    starts: Integers
    n_first: Integers
    total: float
    alpha: Floats
    index: Integers
    signs: Floats
    p: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    has_bias: bool

    @classmethod
    def of(cls, problems: Sequence[DualProblem], alpha: Floats | None = None) -> TaskArrays:
        """Put the variables of problems one after the other; begin with α = 0 by default."""
        starts = np.cumsum([0, *(problem.n_variables for problem in problems)])
        two = len(problems[0].groups) == 2
        n_first = np.array([each.groups[0].size for each in problems]) if two else np.diff(starts)
        alpha = np.zeros(starts[-1]) if alpha is None else alpha
        index, signs, p, lower, upper, ridge = (
            np.concatenate([getattr(problem, name) for problem in problems])
            for name in ("index", "signs", "p", "lower", "upper", "ridge")
        )
        has_bias = bool(problems[0].groups)
        return cls(
            starts,
            n_first,
            0.0 if p.any() else problems[0].total,
            alpha,
            index,
            signs,
            p,
            lower,
            upper,
            ridge,
            has_bias,
        )

    @property
    def sizes(self) -> Integers:
        """Variables of each task."""
        return np.diff(self.starts)

    def part(self, first: int, last: int) -> TaskArrays:
        """Return some consecutive tasks."""
        some = slice(int(self.starts[first]), int(self.starts[last]))
        names = ("alpha", "index", "signs", "p", "lower", "upper", "ridge")
        return replace(
            self, starts=self.starts[first : last + 1] - self.starts[first],
            n_first=self.n_first[first:last], **{name: getattr(self, name)[some] for name in names},
        )  # fmt: skip


@dataclass(frozen=True)
class CostGrid:
    """Tasks solved at one cost after the other: the first axis of all arrays.

    Parameters
    ----------
    alpha : ndarray of shape (n_costs, n_variables)
    b, converged, steps : ndarray of shape (n_costs, n_tasks)
    scores : list of ndarray of shape (n_costs, n_rows, n_tasks)
        Of the rows that every fold holds out, by its tasks.
    """

    alpha: Floats
    b: Floats
    converged: NDArray[np.bool_]
    steps: Floats
    scores: list[Floats]


@dataclass(frozen=True)
class TaskGoal:
    """How far small tasks are solved.

    Parameters
    ----------
    tol : float
        The largest violation of the KKT conditions that the caller accepts.
    final_tol : float
        The one that tasks are solved to.
    max_steps : ndarray of int of shape (n_tasks,)
        Steps of each task at most.
    rounding : float
        The relative error of a score, as a sum of products.
    limits : Limits
        Of seconds, for tasks of any size.
    """

    tol: float
    final_tol: float
    max_steps: Integers
    rounding: float
    limits: Limits = field(default_factory=Limits)


class Ended(NamedTuple):
    """How small tasks ended: α of all variables, and one number per task of the others."""

    alpha: Floats
    b: Floats
    steps: Floats
    converged: Floats  # 1 or 0
    violation: Floats
    value: Floats  # ½αᵀ(Q + D)α + pᵀα
    gap: Floats  # P − D
    errors: Floats


class DeviceMemoryFull(MemoryError):  # noqa: N818
    """Error raised where even small blocks do not fit the memory of a device."""


@runtime_checkable
class MovesFree(Protocol):
    """A `DualState` that can move all variables between their bounds at once."""

    def free_step_numbers(self) -> float:
        """Return how many numbers of K steps of pairs pass over in the time of one such step.

        ∞ where none can be made.
        """

    def move_free(self) -> bool:
        """Make a Newton step of the free variables; return whether it lowers the objective."""


@runtime_checkable
class SolvesCosts(Protocol):
    """An engine that solves small tasks at one cost after the other, in one call."""

    def cost_grid(
        self,
        kernel: Kernel,
        tasks: TaskArrays,
        shared: SharedRows,
        costs: Floats,
        recalled: Floats,
        held_out: HeldOutRows,
        goal: TaskGoal,
        is_over: Callable[[], bool],
    ) -> CostGrid | None:
        """Return the answers at every cost; None where all of K does not fit, or tasks are large.

        ``tasks`` are those of C = 1, with a bias and D = 0; ``shared`` tells which of them have
        rows in common. ``recalled``, of shape (n_costs, n_variables), are answers with another
        kernel, 0 where there are none. ``held_out`` are the rows of X whose scores are wanted of
        the tasks of each fold. Where ``is_over``, what is left has not converged.
        """


class HostEngine(Engine, Protocol):
    """An engine of `HostGram`, and of features in the memory of this machine."""

    is_few: bool  # so few samples that float64 takes no longer than float32
    most_variables: float  # of a task that `solve_small` takes

    def gram(
        self,
        kernel: Kernel,
        index: Integers | None = None,
        precision: Precision = "exact",
        *,
        keep: bool = True,
    ) -> HostGram:
        """Return K of the rows of X named by ``index``, all of them by default."""

    def features(self, index: Integers | None = None) -> HostFeatures:
        """Return the rows of X named by ``index``, all of them by default."""

    def sums(self, index: Integers | None = None) -> RowSums:
        """Return sums over the rows of X named by ``index``, which are not copied."""

    def joint_state(self, problem: JointKernelProblem) -> JointKernelState:
        """Return the state of a joint machine with a kernel, at α = 0 and b = 0."""

    def solve_small(
        self,
        kernel: Kernel,
        tasks: TaskArrays,
        precision: Precision,
        goal: TaskGoal,
    ) -> Ended | None:
        """Solve tasks side by side, with finite costs; None where that is not known.

        A task that did not converge is the caller's to solve in another way.
        """
