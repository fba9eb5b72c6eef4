"""The state of a linear machine on a device: scores, β and its centre, as tensors.

`engines.linear.PrimalState` says what each operation means. Numbers that an operation returns come
to the host in one transfer; nothing else waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...arrays import Floats
from ...problems import PrimalProblem
from ...problems.best_bias import best_biases
from ..linear import ColumnSystem, Held, Kink, Projection
from . import primal_kernels, primal_passes
from .best_biases import flat_biases
from .device_vector import DeviceVector, fetch
from .primal_passes import Terms, off_kink, slacks
from .triton_kernels import has_triton
from .weighted_rows import TorchWeightedRows, solve_columns

if TYPE_CHECKING:
    from .features import TorchFeatures

Tensor = Any


@dataclass(frozen=True)
class Tuning:
    """Sizes."""

    quantile_rows: int = 10_000  # rows that a quantile is estimated from
    same_turn: float = 1e-9  # relative spread of the u_i D_i that are one number
    # Columns up to which the host factors a system: it takes less time than to start on a device.
    host_columns: int = 128


TUNING = Tuning()


class TorchPrimalState:
    """Scores, β and β⁰ of the rows of X, on a device.

    Parameters
    ----------
    problem : PrimalProblem
        Its vectors need not be of these rows: ``terms`` and ``turn`` are.
    features : TorchFeatures
        The rows.
    terms : Terms
        y, u and D on the device.
    turn : torch.Tensor
        z = uD, of each row or of all.
    """

    def __init__(
        self, problem: PrimalProblem, features: TorchFeatures, terms: Terms, turn: Tensor
    ) -> None:
        self.problem, self.features, self.terms, self._turn = problem, features, terms, turn
        self.n_rows = features.n_rows
        self._passes: Any = primal_kernels if has_triton(terms.y) else primal_passes
        self.scores, self.values = features.zeros(), features.zeros()
        self.center: Tensor | None = self.scores.new_zeros(1)
        self._change, self._along = features.zeros(), features.zeros()
        self._old_center: Tensor | None = None
        # The rows on the kink of the last projection, how many they are, and a list of them.
        self._mask = torch.zeros_like(self.values, dtype=torch.bool)
        self._n_kink: int | None = None
        self._kink: Tensor | None = None
        self._moved = self.scores.new_zeros(2)
        self._measured: Tensor | None = None
        self._kept: Tensor | None = None
        self._rows: Tensor | None = None
        self._part: TorchPrimalState | None = None
        self._curved, self._all_curved = problem.curved, bool(np.isinf(problem.upper).all())
        # u and D where each is one number: what follows from them takes no operation of the device.
        self._one: tuple[float, float] | None = None
        self._matrix: tuple[Floats, Tensor] | None = None

    @classmethod
    def of(cls, problem: PrimalProblem, features: TorchFeatures) -> TorchPrimalState:
        """Return the state at w = 0, b = 0 and α = 0."""
        place = features.place_vector
        terms = Terms(
            place(problem.y), place(problem.upper), place(problem.ridge), problem.two_sided,
            float(problem.epsilon),
        )  # fmt: skip
        state = cls(replace(problem, X=None), features, terms, _turn(terms))
        if problem.upper.size == 1 and problem.ridge.size == 1:
            state._one = float(problem.upper[0]), float(problem.ridge[0])
        return state

    # The plane and α -----------------------------------------------------------------------

    def place(self, w: Floats, b: float) -> None:
        """Compute the scores of a plane."""
        if w.any():
            self.features.scores(w, b, self.scores)
        else:
            self.scores.fill_(b)

    def shift(self, t: float) -> None:
        """Add t to the bias, and to all scores."""
        self.scores += t

    def start(self, alpha: Floats) -> None:
        """Begin with α, put into its bounds."""
        given, u = self.features.place_vector(alpha), self.terms.upper
        box = torch.where(torch.isfinite(self.terms.ridge), u, 0.0)
        if self.problem.two_sided:
            self.values = torch.maximum(torch.minimum(given, box), -box)
        else:
            self.values = torch.minimum(given.clamp(min=0.0), box) * self.terms.y
        self.center = self._n_kink = None

    def sample(self, rows: Any, times: float) -> TorchPrimalState | None:
        """Return the state of some rows, each of which costs ``times`` as much."""
        chosen = self.features.place_rows(rows)
        terms = self.terms.of(chosen)
        if not terms.two_sided and abs(float(terms.y.sum())) == chosen.numel():
            return None
        terms = terms._replace(upper=terms.upper * times, ridge=terms.ridge / times)
        part = TorchPrimalState(
            self.problem, self.features.restrict(chosen), terms, self._turn_of(chosen)
        )
        if self._one is not None:
            part._one = self._one[0] * times, self._one[1] / times
        return part

    def total(self) -> Floats:
        """Return Σ β_i (x_i, 1)."""
        return fetch(self.features.products.combine(self.values), self.values.sum())

    def recentre(self) -> None:
        """Make β⁰ the β now."""
        if self._old_center is None or self._old_center.numel() != self.n_rows:
            self._old_center = torch.empty_like(self.values)
        self.center = self._old_center.copy_(self.values)

    # Newton's method -----------------------------------------------------------------------

    def project(self, delta: float) -> Projection:
        """Make β that of the scores."""
        sums = self._passes.project(
            self.terms, self.scores, self._center(), delta, self.values, self._change, self._mask
        )
        found = fetch(self.features.products.combine(self._change), sums, self._moved)
        slack, loss, errors, changes, n_kink, moved, largest = (float(x) for x in found[-7:])
        self._n_kink, self._kink = int(n_kink), None
        change = np.append(found[:-7], changes)
        return Projection(slack, loss, int(errors), change, moved, largest)

    def aim(self, step: Floats) -> None:
        """Compute the scores of a step."""
        self.features.scores(step[:-1], float(step[-1]), self._along)

    def slopes(self, points: list[float], delta: float) -> list[float]:
        """Return Σ β_i (x_i, 1)·step after t steps, for several t."""
        sums = self._passes.slopes(
            self.terms, self.scores, self._along, self._center(), delta, points
        )
        return [float(value) for value in fetch(sums)]

    def advance(self, t: float) -> None:
        """Go t steps."""
        self._moved = self._passes.advance(self.scores, self._along, float(t))

    def reach(self, share: float, delta: float) -> float:
        """Return about how far z is from the kink at most, of a share of the rows."""
        return float(self._reach(share, delta))

    def hold(self, share: float, delta: float) -> Held:
        """Hold all rows but a share of them near the kink."""
        reach = self._reach(share, delta)
        width = self._placed(self._width(delta))
        marks = self._passes.hold(
            self.terms, self.scores, width, reach,
            None if self._all_curved else self.values, self._change,
        )  # fmt: skip
        found = fetch(self.features.products.combine(self._change), marks.sums, reach)
        constant, total, n_near, n_bent, errors, distance = found[-6:]
        M = None
        if self._curved:
            bent = chosen_rows(marks.parabolas, int(n_bent))
            costs = 1.0 / (self.terms.ridge if self._one is None else self._one[1])
            M = fetch(self.features.products.moments(_of(costs, bent), bent))
            M = M.reshape(self.features.n_columns + 1, -1)
        self._part = self._restricted(chosen_rows(marks.near, int(n_near)))
        self.center = self._n_kink = None
        v = np.append(found[:-6], total)
        return Held(self._part, M, v, float(constant), int(errors), float(distance))

    def take_back(self) -> None:
        """Take over β from the rows that were not held, and forget them."""
        part, self._part = self._part, None
        if part is not None:
            self.values[part._rows] = part.values
            self._n_kink = None

    def kink(self) -> Kink:
        """Find the rows on the kink."""
        if self._n_kink is None:
            self._mask = primal_passes.on_kink(self.terms, self.values)
            self._n_kink, self._kink = int(self._mask.sum()), None
        return Kink(self._n_kink, self._n_kink)

    def curvature(self, delta: float) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over the rows on the kink."""
        size = self.features.n_columns + 1
        return fetch(self._curvature(delta)).reshape(size, size)

    def solve_columns(self, delta: float, system: ColumnSystem, gradient: Floats) -> Floats | None:
        """Return −(M + curvature)⁻¹g, None where the host is to solve for it."""
        if self.features.n_columns <= TUNING.host_columns:
            return None
        H = self._curvature(delta)
        if system.M is not None:
            if self._matrix is None or self._matrix[0] is not system.M:
                self._matrix = system.M, self.features.place_vector(system.M)
            H += self._matrix[1]
        return solve_columns(H, system, self.features.place_vector(gradient))

    def kink_rows(self, delta: float) -> TorchWeightedRows:
        """Return the rows on the kink, with their c_i."""
        rows = self._on_kink()
        everywhere = rows.numel() == self.n_rows
        features = self.features if everywhere else self.features.restrict(rows)
        weights = self._placed(_of(self._costs(delta), rows))
        return TorchWeightedRows(features, weights.expand(rows.numel()))

    # Values --------------------------------------------------------------------------------

    def loss(self) -> float:
        """Return Σ h_i(z_i)."""
        return float(self._passes.loss(self.terms, self.scores))

    def best_biases(self, b: float) -> tuple[float, float]:
        """Return the least and the largest t for which b + t is the best bias."""
        if self.problem.bias == "free" and not self.terms.ridge.any():
            found = flat_biases(self.terms, self.scores)
            if found is not None:
                return found
        return best_biases(self._host_problem(), self.scores.cpu().numpy(), b)

    def class_costs(self) -> tuple[float, float]:
        """Return Σ u, or Σ 1/D where u = ∞, of the classes +1 and −1; targets count in both."""
        terms = self.terms
        costs = torch.where(torch.isinf(terms.upper), 1.0 / terms.ridge, terms.upper)
        positive = torch.ones_like(terms.y) if terms.two_sided else (terms.y > 0.0).double()
        total = costs.sum() * (self.n_rows if costs.numel() == 1 else 1)
        first, both = fetch((costs * positive).sum(), total)
        return float(first), float(both if terms.two_sided else both - first)

    def dual(self, total: Floats | None = None, *, of_scores: bool = False) -> float:
        """Return D(α), after Σβ = 0 is restored where the bias is free."""
        given = self._beta_of_scores() if of_scores and self._curved else self.values
        out = torch.empty_like(given) if total is None else None
        sums = self._balance(given, relative=total is not None, out=out)
        found = fetch(self.features.products.combine(self._change), sums)
        gain, squares, balance = found[-3:]
        w = found[:-3] if total is None else total[:-1] + found[:-3]
        self._measured = out
        value = float(gain) - 0.5 * float(w @ w) - 0.5 * float(squares)
        if self.problem.bias == "penalised":
            value -= 0.5 * float(balance) ** 2
        return value

    def keep(self) -> None:
        """Remember the α that `dual` measured last."""
        self._kept = self._measured

    def alpha(self, *, kept: bool = False) -> Any:
        """Return a copy of α with Σβ = 0 where the bias is free, or of the one remembered."""
        if kept:
            out = torch.zeros_like(self.values) if self._kept is None else self._kept.clone()
        else:
            out = torch.empty_like(self.values)
            self._balance(self.values, relative=False, out=out)
        return DeviceVector(out if self.problem.two_sided else out.abs_())

    # How it is done ------------------------------------------------------------------------

    def _center(self) -> Tensor:
        if self.center is None:
            self.recentre()
        return self.center

    def _balance(self, beta: Tensor, *, relative: bool, out: Tensor | None) -> Tensor:
        is_free = self.problem.bias == "free"
        return self._passes.balance(self.terms, beta, is_free, relative, self._change, out)

    def _beta_of_scores(self) -> Tensor:
        """Return β where u = ∞ as the scores have it."""
        r, zero = self.terms.y - self.scores, self.scores.new_zeros(1)
        beta = primal_passes.proximal_beta(self.terms, r, zero, 0.0)
        return torch.where(torch.isinf(self.terms.upper), beta, self.values)

    def _reach(self, share: float, delta: float) -> Tensor:
        some = slice(None, None, max(1, self.n_rows // TUNING.quantile_rows))
        z = slacks(self.terms._replace(y=self.terms.y[some]), self.scores[some])[1]
        distances = off_kink(z, self._width(delta, some))
        return torch.kthvalue(distances, 1 + int(share * (distances.numel() - 1))).values

    def _width(self, delta: float, some: slice = slice(None)) -> Tensor | float:
        """Return how wide the kink is: between 0 and there rounding off bends the loss."""
        if self._one is not None:
            turn = self._one[0] * self._one[1]
            return turn + delta if np.isfinite(turn) else 0.0
        of_rows = self._turn if self._turn.numel() == 1 else self._turn[some]
        return torch.where(torch.isfinite(of_rows), of_rows + delta, 0.0)

    def _costs(self, delta: float) -> Tensor | float:
        """Return the curvatures 1/(D_i + δ/u_i) on the kink."""
        if self._one is not None:
            upper, ridge = self._one
            return 1.0 / (ridge + delta / upper) if upper > 0.0 else 0.0
        return 1.0 / (self.terms.ridge + delta / self.terms.upper)

    def _placed(self, values: Tensor | float) -> Tensor:
        """Return a number as a vector of one on the device."""
        return self.values.new_full((1,), values) if isinstance(values, float) else values

    def _on_kink(self) -> Tensor:
        """Return the rows on the kink, of β as `kink` found it."""
        n_rows = self.kink().n_rows
        if self._kink is None:
            self._kink = chosen_rows(self._mask, n_rows)
        return self._kink

    def _curvature(self, delta: float) -> Tensor:
        rows = self._on_kink()
        return self.features.products.moments(_of(self._costs(delta), rows), rows)

    def _turn_of(self, rows: Tensor) -> Tensor:
        return _of(self._turn, rows)

    def _restricted(self, rows: Tensor) -> TorchPrimalState:
        part = TorchPrimalState(
            self.problem, self.features.restrict(rows), self.terms.of(rows), self._turn_of(rows)
        )
        part.scores, part.values = self.scores[rows], self.values[rows]
        part._rows = rows
        part.center = _of(self.center, rows) if self.center is not None else None
        part._one = self._one
        return part

    def _host_problem(self) -> PrimalProblem:
        y, upper, ridge = (v.cpu().numpy() for v in self.terms[:3])
        return replace(self.problem, y=y, upper=upper, ridge=ridge)


def chosen_rows(mask: Tensor, count: int) -> Tensor:
    """Return the rows of a mask, in increasing order, given how many there are."""
    return torch.nonzero_static(mask, size=count)[:, 0]


def _turn(terms: Terms) -> Tensor:
    """Return where the parabola of a loss turns into a line, z = uD; one number where it is one."""
    upper, ridge = terms.upper, terms.ridge
    if upper.numel() == 1 and ridge.numel() == 1:
        return torch.nan_to_num(upper * ridge, nan=0.0, posinf=torch.inf)
    turns = torch.nan_to_num(upper * ridge, nan=0.0, posinf=torch.inf).expand(terms.y.shape)
    counted = turns[turns > 0.0]
    if not counted.numel():
        return turns.new_zeros(1)
    low, high = fetch(counted.min(), counted.max())
    if low == high or high - low <= TUNING.same_turn * high:
        return counted[:1]
    return turns


def _of(values: Any, rows: Tensor) -> Any:
    """Return the values of some rows; a single value is that of all."""
    if isinstance(values, float) or values.numel() == 1:
        return values
    return values.index_select(0, rows)
