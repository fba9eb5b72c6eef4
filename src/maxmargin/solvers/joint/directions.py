"""Newton's direction −H⁻¹g for a joint machine: the Hessian of Φ, and how its systems are solved.

H = diag(ridge) + Σ_i (C_i/δ) P_i ⊗ (x_i, 1)(x_i, 1)ᵀ over the samples with several classes. The
direction comes by conjugate gradients, on a preconditioner: H itself, factored, where it is small;
its diagonal blocks, one per class, factored in the columns or in the rows, whichever are fewer; or
its diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

import numpy as np

from ...arrays import Floats
from ...engines.linear import JointRows
from ...runtime.threads import in_parallel
from ..linear_systems import LIFT, Factored
from .candidate import TINY

Preconditioner = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Tuning:
    """How a direction is computed."""

    whole_unknowns: int = 1000  # up to which the Hessian is factored whole
    block_numbers: int = 1 << 24  # of its diagonal blocks, up to which these are factored
    least_bias_curvature: float = 1e-3  # relative to that of the block
    largest_bias_step: float = 50.0  # where nothing else bounds it
    cg_accuracy: float = 0.1  # the residual, relatively, at which conjugate gradients end
    cg_products: int = 300  # at most


def is_small(c: int, size: int, tuning: Tuning) -> bool:
    """Return whether H of c vectors of a size is factored whole."""
    return c * size <= tuning.whole_unknowns


def newton_direction(
    rows: JointRows, gradient: Floats, ridge: Floats, bias: str, tuning: Tuning
) -> Floats:
    """Return −H⁻¹g."""
    squares = rows.squares()
    ridges = np.tile(ridge, (len(gradient), 1))
    if bias == "free":
        # Along (1, …, 1) Φ does not change with b, nor does it bend along 1 of classes that no
        # sample hesitates to part from the others: there b goes no farther than a limit.
        least = 1e-10 * float(squares[:, -1].max(initial=0.0))
        far = float(np.abs(gradient[:, -1]).max()) / tuning.largest_bias_step
        ridges[:, -1] = max(far, least, TINY)
    columns = slice(None, None if bias == "none" else -1)
    ridges[:, columns] += LIFT * squares[:, columns]
    system = _System(rows, squares, ridges, bias != "none", tuning)
    return system.conjugate_gradients(-gradient, system.preconditioner())


@dataclass(frozen=True)
class _System:
    """H, by the rows with several classes and by its ridge."""

    rows: JointRows
    squares: Floats
    ridge: Floats
    has_bias: bool
    tuning: Tuning

    def preconditioner(self) -> Preconditioner:
        """Return a map near H⁻¹, positive definite."""
        c, size = self.ridge.shape
        if is_small(c, size, self.tuning):
            return self._whole()
        n_rows = sum(n**2 for n in self.rows.class_sizes)
        n_columns = c * size**2
        if min(n_rows, n_columns) > self.tuning.block_numbers:
            diagonal = self.squares + self.ridge
            return lambda residual: residual / diagonal
        divide = self._by_rows() if n_rows < n_columns else self._by_columns()

        # P_i 1 = 0, and so steps of all classes add up to 0: leaving that direction out, where H
        # bends much less than its blocks do, is what makes them good.
        def divide_within(residual: Floats) -> Floats:
            step = divide(residual)
            return step - step.mean(axis=0)

        return divide_within

    def conjugate_gradients(self, residual: Floats, preconditioned: Preconditioner) -> Floats:
        """Return about H⁻¹r."""
        step = np.zeros_like(residual)
        direction = preconditioned(residual)
        size = first = float(np.vdot(residual, direction))
        for _ in range(self.tuning.cg_products):
            product = self.rows.product(direction)
            product += self.ridge * direction
            bend = float(np.vdot(direction, product))
            if not bend > 0.0:  # of a residual that is nothing but rounding
                break
            t = size / bend
            step += t * direction
            residual = residual - t * product
            better = preconditioned(residual)
            before, size = size, float(np.vdot(residual, better))
            if not size > self.tuning.cg_accuracy**2 * first:
                break
            direction = better + (size / before) * direction
        return step

    def _whole(self) -> Preconditioner:
        """Factor H: one step of conjugate gradients is the solution."""
        c, size = self.ridge.shape
        H = self.rows.hessian().reshape(c * size, c * size)
        H[np.diag_indices(c * size)] += self.ridge.ravel()
        solve = Factored(H).solve  # which reads the lower half
        return lambda residual: solve(residual.ravel()).reshape(residual.shape)

    def _by_columns(self) -> Preconditioner:
        """Factor the blocks diag(ridge) + Z_kᵀZ_k."""
        blocks = self.rows.class_blocks()

        def part(k: int, stop: Event) -> Callable[[Floats], Floats]:
            blocks[k][np.diag_indices(self.ridge.shape[1])] += self.ridge[k]
            return Factored(blocks[k]).solve

        solves = in_parallel(part, range(len(blocks)))
        return lambda residual: np.array(
            [solve(r) for solve, r in zip(solves, residual, strict=True)]
        )

    def _by_rows(self) -> Preconditioner:
        """Factor I + Z_k ridge⁻¹ Z_kᵀ of every class (Woodbury's formula)."""
        ridge = self.ridge.copy()
        inverse: Floats = np.zeros(len(ridge))
        if self.has_bias:
            least = self.tuning.least_bias_curvature * self.squares[:, -1]
            ridge[:, -1] = np.maximum(ridge[:, -1], least)
            inverse = 1.0 / ridge[:, -1]
        grams = self.rows.class_grams(inverse)

        def part(k: int, stop: Event) -> Callable[[Floats], Floats]:
            grams[k][np.diag_indices(len(grams[k]))] += 1.0
            return Factored(grams[k]).solve

        solves = in_parallel(part, range(len(grams)))

        def divide(residual: Floats) -> Floats:
            step = residual / ridge
            scores = self.rows.class_scores(step)
            solved = [solve(r) for solve, r in zip(solves, scores, strict=True)]
            return step - self.rows.class_combine(solved) / ridge

        return divide
