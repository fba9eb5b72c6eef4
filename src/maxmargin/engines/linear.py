"""The engine contract for linear machines: X, seen through the states of problems posed on it.

The rule is that of `engines.base`: vectors of length n belong to the engine. A solver sees
a = (w, b), sums over rows of that size and its square, and indices of rows. Vectors of length n
come to the host when a fit ends (`PrimalState.alpha`, `JointState.alpha`), or when a callback takes
a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..arrays import Floats, Integers

if TYPE_CHECKING:
    from ..problems import JointProblem, PrimalProblem


class Features(Protocol):
    """X, for solvers of the primal: its size, and the states of problems posed on its rows.

    An engine's own methods go on from there: Xw, Xᵀc, Xᵀdiag(c)X and the like, each a sum over the
    rows, written once per engine and shared by its states.
    """

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def n_columns(self) -> int:
        """The number of columns, d."""

    @property
    def stored_per_row(self) -> float:
        """The mean number of stored values per row."""

    @property
    def is_dense(self) -> bool:
        """Whether rows are stored as arrays."""

    @property
    def on_device(self) -> bool:
        """Whether rows are outside of the memory of the host: Newton's method alone is there."""

    @property
    def random_access(self) -> bool:
        """Whether rows can be visited one at a time, in any order.

        Coordinate descent and sequential ascent need it (`DescentFeatures`, `AscentFeatures`).
        """

    @property
    def by_rows(self) -> bool:
        """Whether the numbers of a row are stored next to each other, so that visits are fast."""

    @property
    def slopes_at_once(self) -> int:
        """How many points of a line search take about as long as one."""

    @property
    def has_curvature(self) -> bool:
        """Whether `PrimalState.curvature` is known after every projection, and costs nothing."""

    @property
    def whole_step_first(self) -> bool:
        """Whether a whole step takes less time than other points of a line search."""

    @property
    def holds_rows(self) -> bool:
        """Whether `PrimalState.hold` pays: elsewhere all rows take part in every step."""

    @property
    def most_sampled(self) -> int:
        """Rows of a sample at most."""

    def draw(self, size: int) -> Any:
        """Return a sample of the rows, in order: one of each of ``size`` runs of consecutive rows.

        It is for `PrimalState.sample`, and may be on the device.
        """

    def primal_state(self, problem: PrimalProblem) -> PrimalState:
        """Return the state of a linear machine at w = 0, b = 0 and α = 0."""

    def joint_state(self, problem: JointProblem) -> JointState:
        """Return the state of a joint machine at w = 0, b = 0 and α = 0.

        Engines that leave joint machines to the CPU engine raise NotImplementedError.
        """


class Projection(NamedTuple):
    """What `PrimalState.project` found."""

    slack: float  # Σ h_i(z_i) − (β_i r_i − ε|β_i| − ½D_i β_i²)
    loss: float  # Σ h_i(z_i)
    errors: int  # rows on the wrong side, or outside of the tube
    change: Floats  # Σ (change of β_i) (x_i, 1)
    moved: float  # the largest change of a score in the last `PrimalState.advance`
    largest: float  # the largest score after it


class Held(NamedTuple):
    """The rows near the kink, and the loss of all others as a quadratic of a = (w, b).

    That is ½aᵀMa − v·a + constant; M is None where it is 0.
    """

    state: PrimalState
    M: Floats | None
    v: Floats
    constant: float
    errors: int  # rows on the wrong side among those held
    reach: float  # how far z of a row held is from the kink, at least


class Kink(NamedTuple):
    """How many rows are on the kink, and how many a sum over them has to read."""

    n_rows: int
    n_changed: int


class ColumnSystem(NamedTuple):
    """What Newton's matrix has besides the curvature of the rows on the kink.

    M, or the identity for w and ``penalty`` for b where it is None; what the bias counts is at
    least ``damping``.
    """

    M: Floats | None
    penalty: float
    has_bias: bool
    damping: float


class PrimalState(Protocol):
    """Scores s_i = w·x_i + b, α_i, its centre α⁰_i, y_i, u_i and D_i of one linear machine.

    z_i is the slack of a row, h_i its loss: with r_i = y_i − s_i it is y_i r_i
    of labels, |r_i| − ε of targets. β_i is y_i α_i of labels; solvers and callers see the β of
    targets where they see the α of labels. A row is on the kink where 0 < |β_i| < u_i: there the
    loss, rounded off by the proximal term (δ/2u_i)(β − β⁰_i)², has the curvature 1/(D_i + δ/u_i).
    """

    @property
    def features(self) -> Features:
        """The rows."""

    def place(self, w: Floats, b: float) -> None:
        """Compute the scores of a plane."""

    def shift(self, t: float) -> None:
        """Add t to the bias, and to all scores."""

    def start(self, alpha: Floats) -> None:
        """Begin with α, as `alpha` returns it, put into its bounds; it becomes α⁰ as well."""

    def sample(self, rows: Any, times: float) -> PrimalState | None:
        """Return the state of some rows, in increasing order, their costs multiplied by ``times``.

        The rows are indices on the host, or what `Features.draw` has returned.

        None where all of them are labels of one class.
        """

    def total(self) -> Floats:
        """Return Σ β_i (x_i, 1)."""

    def project(self, delta: float) -> Projection:
        """Make β that of the scores: argmax βr − ε|β| − ½Dβ² − (δ/2u)(β − β⁰)² in its bounds."""

    def recentre(self) -> None:
        """Make α⁰ the α now."""

    def aim(self, step: Floats) -> None:
        """Compute the scores of a step (of w, of b), for `slopes` and `advance`."""

    def slopes(self, points: list[float], delta: float) -> list[float]:
        """Return Σ β_i (x_i, 1)·step for every t of some, β being that of the scores there."""

    def advance(self, t: float) -> None:
        """Go t steps; the next projection says how far scores have moved."""

    def reach(self, share: float, delta: float) -> float:
        """Return about how far z is from the kink at most, of the share of rows nearest to it."""

    def hold(self, share: float, delta: float) -> Held:
        """Hold all rows but a share of them near the kink: α of those held goes to its bound.

        For `Features.holds_rows`; other engines raise NotImplementedError, of `reach` as well.
        """

    def take_back(self) -> None:
        """Take over α from the rows that were not held, and release them."""

    def kink(self) -> Kink:
        """Find the rows on the kink."""

    def curvature(self, delta: float) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over the rows on the kink, c_i = 1/(D_i + δ/u_i)."""

    def solve_columns(self, delta: float, system: ColumnSystem, gradient: Floats) -> Floats | None:
        """Return −(M + curvature)⁻¹g, factored where the rows are; None where the host is to."""

    def kink_rows(self, delta: float) -> WeightedRows:
        """Return the rows on the kink, with their c_i."""

    def loss(self) -> float:
        """Return Σ h_i(z_i)."""

    def class_costs(self) -> tuple[float, float]:
        """Return Σ u, or Σ 1/D where u = ∞, of the classes +1 and −1; targets count in both."""

    def best_biases(self, b: float) -> tuple[float, float]:
        """Return the least and the largest t for which b + t is the best bias, b that of now."""

    def dual(self, total: Floats | None = None, *, of_scores: bool = False) -> float:
        """Return D(α), after Σβ = 0 is restored where the bias is free.

        ``total`` is that of α, where it is known. With ``of_scores``, α of rows with u_i = ∞ is
        that of their scores: `hold` does not keep it up to date.
        """

    def keep(self) -> None:
        """Remember the α that `dual` measured last."""

    def alpha(self, *, kept: bool = False) -> Floats:
        """Bring α to the host: with Σβ = 0 where the bias is free, or the one remembered.

        α of rows in partitions stays there, as a ``PartitionedVector``.
        """


class WeightedRows(Protocol):
    """Some rows x_i, each with a weight c_i > 0: the Hessian of a loss, and systems with it.

    `gram`, `scores` and `combine` are for few rows: their vectors are on the host.
    """

    n_rows: int

    def squares(self) -> Floats:
        """Return Σ c_i (x_i∘x_i, 1)."""

    def product(self, p: Floats) -> Floats:
        """Return Σ c_i (x_i, 1) (x_i, 1)·p."""

    def gram(self, factors: Floats | None = None) -> Floats:
        """Return XXᵀ + diag(1/c), columns multiplied by factors."""

    def scores(self, w: Floats) -> Floats:
        """Return Xw."""

    def combine(self, q: Floats) -> Floats:
        """Return Xᵀq."""


class JointSums(NamedTuple):
    """Sums over the rows of a joint machine."""

    total: Floats  # Σ_i α_i^k (x_i, 1), of shape (c, d + 1), or (c, d) without a bias
    flow: float  # Σ_i α_i^y: what flows from the own classes to their rivals


class Survey(NamedTuple):
    """What the values of all rows say, ξ_i = max_k s_i^k − s_i^y being the slack of a row."""

    loss: float  # Σ C_i ξ_i
    worst: float  # the largest ξ_i
    errors: int  # rows on the wrong side


class JointState(Protocol):
    """Values w_k·x_i + b_k and shares p_i^k of one joint machine, for its rows of cost C_i > 0.

    s_i^k is the value, plus 1 for rivals k ≠ y_i. The shares are ≥ 0 and add up to 1, and
    α_i = C_i (e_y − p_i); they begin as those of α = 0. Arrays of a state are of shape (n, c),
    those of a solver a = (w, b) of shape (c, d + 1), or (c, d) without a bias.
    """

    @property
    def features(self) -> Features:
        """The rows that count."""

    def sample(self, share: float, least: int, rng: np.random.RandomState) -> JointState:
        """Return the state of a share of the rows of every class, ``least`` of them at least.

        It begins with w = 0 and α = 0. Costs are multiplied so that every class keeps its weight.
        """

    def start(self, alpha: Floats) -> None:
        """Begin with α of all samples from the host, made feasible."""

    def clear(self) -> None:
        """Give all shares to the own class: α = 0."""

    def decide(self) -> None:
        """Give all shares to the class of the largest s_i^k."""

    def place(self, a: Floats) -> float:
        """Compute the values of a; return the largest change of a value."""

    def sums(self, factors: Floats | None = None) -> JointSums:
        """Return sums of α, what flows from class y to class k multiplied by factors[y, k]."""

    def flow(self) -> float:
        """Return Σ_i α_i^y."""

    def flows(self) -> Floats:
        """Return F_kl, what flows from class k to class l: Σ −α_i^l over the rows of class k."""

    def mean_curvature(self) -> float:
        """Return the mean of C_i ‖x_i‖²."""

    def survey(self, scale: float = 1.0) -> Survey:
        """Return sums over all rows, their values multiplied by a number, for `near` to use."""

    def near(self, reach: float) -> JointState:
        """Return the state of the rows within a reach of a kink; p⁰ is their p.

        Those have several shares, or a largest value that exceeds all others by no more.
        """

    def take_back(self) -> None:
        """Take over the shares of the rows that `near` returned last."""

    def aim(self, step: Floats) -> float:
        """Compute the values of a step; return Σ_i C_i max_k |of the step|."""

    def smooth(self, t: float, delta: float) -> tuple[float, float]:
        """Find the shares after t steps, of largest p·s_i − (δ/2)‖p − p⁰_i‖².

        Return Σ C_i (max_k s_i^k − p_i·s_i), and Σ C_i (p_i − e_y)·(the values of the step).
        """

    def advance(self, t: float) -> None:
        """Go t steps, and take the shares that `smooth` found last."""

    def curvature(self, delta: float) -> JointRows:
        """Return the rows with several shares, with the curvature of their loss."""

    def keep(self) -> None:
        """Remember the shares."""

    def restore(self) -> None:
        """Take the shares remembered."""

    def alpha(self) -> Floats:
        """Bring α of all samples to the host."""


class JointRows(Protocol):
    """Rows with shares of several classes A_i, and H = Σ_i (C_i/δ) P_i ⊗ (x_i, 1)(x_i, 1)ᵀ.

    P_i = diag(1_A) − 1_A 1_Aᵀ/|A|. Z_k are the rows with a share of class k, each multiplied by
    the root of its (C_i/δ)(1 − 1/|A_i|): vectors of their length are on the host, for few rows.
    """

    @property
    def class_sizes(self) -> list[int]:
        """The number of rows of every Z_k."""

    def squares(self) -> Floats:
        """Return the diagonal of H."""

    def product(self, step: Floats) -> Floats:
        """Return H times a step."""

    def hessian(self) -> Floats:
        """Return H, of shape (c, d + 1, c, d + 1): its lower half is enough."""

    def class_blocks(self) -> list[Floats]:
        """Return the diagonal blocks Z_kᵀZ_k of H."""

    def class_grams(self, bias: Floats) -> list[Floats]:
        """Return Z_k diag(1, …, 1, bias_k) Z_kᵀ."""

    def class_scores(self, step: Floats) -> list[Floats]:
        """Return Z_k step_k."""

    def class_combine(self, q: list[Floats]) -> Floats:
        """Return Z_kᵀ q_k."""


class InteriorFeatures(Features, Protocol):
    """`Features` of an engine that has the operations of the interior point method."""

    def interior_state(self, problem: PrimalProblem) -> InteriorState:
        """Return the first iterate of the interior point method."""


class InteriorState(Protocol):
    """Scores, α and the slacks s and ξ of the interior point method, all but scores positive.

    Targets have an α, s and ξ on either side; sums are over both.

    A step is computed twice from one matrix: for τ = 0, then with the products of that first step.
    """

    @property
    def state(self) -> PrimalState:
        """The scores and α, for the duality gap."""

    def publish(self, *, rounded: bool = False) -> None:
        """Hand α to `state`: put to the bound that it approaches with ``rounded``."""

    def errors(self) -> int:
        """Return how many rows are on the wrong side."""

    def curvature(self) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ, c_i = 1/(s_i/α_i + ξ_i/μ_i + D_i)."""

    def right_side(self, centre: float, *, corrected: bool) -> Floats:
        """Return Σ y_i (α_i + c_i e_i)(x_i, 1) of a step to s α = τv, ξ μ = τv."""

    def change(self, step: Floats) -> None:
        """Compute the change of everything that a step of (w, b) brings about."""

    def reach(self, most: float) -> float:
        """Return the longest step, at most ``most``, at which nothing is negative."""

    def average(self, t: float) -> float:
        """Return τ, the mean product of what is complementary, after t steps."""

    def advance(self, t: float) -> None:
        """Go t steps."""


class DescentFeatures(Features, Protocol):
    """`Features` with random access to rows, for methods that visit one row at a time."""

    def descent_state(self, problem: PrimalProblem) -> DescentState:
        """Return the state of coordinate descent at α = 0."""


class Visits(NamedTuple):
    """What visits of some rows met."""

    kept: Integers  # the rows to visit again, in the same order
    highest: float  # the largest projected slope G
    lowest: float  # the least
    gap: float  # Σ h_i(z_i) − (α_i z_i − ½D_i α_i²), each at its visit


class DescentState(Protocol):
    """β, w = Σ β_i x_i and b of coordinate descent, which move together."""

    w: Floats
    b: float
    penalty: float  # ρ: what b moves by when an α moves by 1
    work: float  # numbers of X visited so far

    @property
    def state(self) -> PrimalState:
        """α, and scores where they were placed, for the duality gap."""

    def start(self, alpha: Floats) -> None:
        """Begin with α from the host, put into its bounds, and its w."""

    def visit(self, order: Integers, left_out: tuple[float, float]) -> Visits:
        """Visit rows in turn and move their α, w and b; ``order`` is overwritten.

        A row with α = 0 and a slope above the first number, or α = u and a slope below the second,
        is left out.
        """

    def visit_again(self, rows: Integers, enough: float, times: int) -> None:
        """Visit the same rows until their α violate by less than ``enough``, or so often."""

    def free(self, rows: Integers) -> Integers:
        """Return those of some rows with 0 < α < u."""

    def settle(self, radius: float, doubt: float) -> Integers:
        """Put α to its bound where that is certain; return the other rows.

        w is within ``radius`` of the optimum, and a free b within ``doubt`` and what follows.
        """

    def mark_errors(self) -> None:
        """Count as errors what the scores placed say."""

    def errors(self) -> int:
        """Return how many rows were on the wrong side when they were last visited."""

    def mean_square(self) -> float:
        """Return the mean ‖x_i‖²."""

    def imbalance(self) -> float:
        """Return Σ β."""

    def dual_value(self) -> float:
        """Return D(α), without the term of the multiplier of a free bias."""

    def alpha(self) -> Floats:
        """Bring α to the host, as it is."""


class AscentFeatures(Features, Protocol):
    """`Features` with random access to rows, for sequential dual ascent."""

    def ascent_state(self, state: JointState, a: Floats, relative_step: float) -> AscentState:
        """Return the state of sequential ascent from α of a state, and a = (w, b).

        The step of the bias is relative to the mean ‖x_i‖².
        """


class AscentState(Protocol):
    """Shares, w, b and Σ_i α_i^k, which move together as one row after the other is visited.

    Every row has a list of classes that take part in its visits.
    """

    w: Floats
    b: Floats
    balance: Floats  # Σ_i α_i^k
    flow: float  # Σ_i α_i^y
    step: float  # what b_k moves by when Σ_i α_i^k moves by 1

    def work(self, order: Integers) -> float:
        """Return the multiplications of visits to some rows."""

    def visit(
        self, order: Integers, far: float, stop: Callable[[], bool]
    ) -> tuple[float, float, int]:
        """Visit rows in turn; return the gap met, the worst violation and the number of errors.

        A class without a share, whose value is more than ``far`` below all that have one, leaves
        the list of its row. Visits end early where ``stop`` returns True.
        """

    def open(self, rows: Integers) -> Integers:
        """Return those of some rows with several classes left."""

    def reopen(self) -> None:
        """Let all classes take part again."""


class HostFeatures(InteriorFeatures, DescentFeatures, AscentFeatures, Protocol):
    """`Features` whose vectors are NumPy arrays, for solvers that keep vectors of length n."""

    def scores(self, w: Floats, b: Floats | float = 0.0) -> Floats:
        """Return w·x_i + b of every row; (n, c) for w of shape (c, d)."""

    def combine(self, c: Floats) -> Floats:
        """Return Xᵀc; (c, d) for coefficients of shape (n, c)."""

    def moments(self, c: Floats) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ for c ≥ 0."""

    def squared_lengths(self) -> Floats:
        """Return ‖x_i‖² of every row."""

    def restrict(self, rows: Integers) -> HostFeatures:
        """Return some of the rows, in increasing order."""
