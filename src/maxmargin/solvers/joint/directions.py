"""The ways to a Newton step: the Hessian of Φ, and what its systems are solved with."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import numpy as np

from ...arrays import Floats, Integers
from ...runtime.threads import in_parallel
from ..linear_systems import LIFT, Factored
from .machine import TINY
from .rows import Rows

# Unknowns up to which the Hessian is factored whole, and numbers of its diagonal blocks, one for
# every class, up to which these are; the least curvature of a bias, relative to the block's.
WHOLE, BLOCKS = 1000, 1 << 24
LEAST = 1e-3
# How far a step takes a bias that nothing holds.
DARING = 50.0
# Conjugate gradients: the accuracy of a direction, and products for it at most.
ACCURACY, PRODUCTS = 0.1, 300


class Way:
    """−H⁻¹g by conjugate gradients, on a preconditioner that subclasses choose.

    H = diag(ridge) + Σ_i (C_i/δ) P_i ⊗ (x_i, 1)(x_i, 1)ᵀ over the samples with several classes;
    ``weight`` are the C_i/δ.
    """

    def __init__(self, rows: Rows, p: Floats, weight: Floats, ridge: Floats, bias: str) -> None:
        member = p > 0.0
        several = np.flatnonzero(member.sum(axis=1) > 1)
        self.rows = rows.take(several)
        self.member = member[several].astype(np.float64)
        self.size = self.member.sum(axis=1)
        self.weight = weight[several]
        # The diagonal of (C_i/δ) P_i.
        self.bend = self.member * (self.weight * (1.0 - 1.0 / self.size))[:, np.newaxis]
        self.ridge = np.tile(ridge, (p.shape[1], 1))
        self.is_free, self.has_bias = bias == "free", bias != "none"

    def step(self, gradient: Floats) -> Floats:
        """Return −H⁻¹g."""
        if self.is_free:
            # Along (1, …, 1) Φ does not change with b, nor does it bend along 1 of classes that no
            # sample hesitates to part from the others: there b goes no farther than DARING.
            least = 1e-10 * float(self.bend.sum(axis=0).max(initial=0.0))
            far = float(np.abs(gradient[:, -1]).max()) / DARING
            self.ridge[:, -1] = max(far, least, TINY)
        self.ridge[:, : self.rows.n_columns] += LIFT * self.rows.squares(self.bend)
        return self._conjugate_gradients(-gradient, self._preconditioner())

    def _preconditioner(self) -> Callable[[Floats], Floats]:
        """Return a map near H⁻¹, positive definite: divide by H's diagonal."""
        diagonal = self.rows.squares(self.bend)
        if self.has_bias:
            diagonal = np.column_stack([diagonal, self.bend.sum(axis=0)])
        diagonal += self.ridge
        return lambda residual: residual / diagonal

    def _product(self, step: Floats) -> Floats:
        """Return H times a step."""
        change = self.rows.scores(*parted(step, self.has_bias)) * self.member
        change -= self.member * (change.sum(axis=1) / self.size)[:, np.newaxis]
        change *= self.weight[:, np.newaxis]
        out = augmented(self.rows.combine(change), change.sum(axis=0), self.has_bias)
        out += self.ridge * step
        return out

    def _conjugate_gradients(
        self, residual: Floats, preconditioned: Callable[[Floats], Floats]
    ) -> Floats:
        step = np.zeros_like(residual)
        direction = preconditioned(residual)
        size = first = float(np.vdot(residual, direction))
        for _ in range(PRODUCTS):
            product = self._product(direction)
            bend = float(np.vdot(direction, product))
            if not bend > 0.0:  # of a residual that is nothing but rounding
                break
            t = size / bend
            step += t * direction
            residual = residual - t * product
            better = preconditioned(residual)
            before, size = size, float(np.vdot(residual, better))
            if not size > ACCURACY**2 * first:
                break
            direction = better + (size / before) * direction
        return step


class Whole(Way):
    """H factored whole: one step of conjugate gradients is the solution."""

    def _preconditioner(self) -> Callable[[Floats], Floats]:
        c, size = self.ridge.shape
        H = np.zeros((c * size, c * size))
        blocks = H.reshape(c, size, c, size)
        share = self.weight / self.size
        for block, rows in self.rows.augmented(self.has_bias):
            member = self.member[block]
            for k in range(c):
                of_k = np.flatnonzero(member[:, k])
                X = rows[of_k]
                blocks[k, :, k] += (X * self.bend[block][of_k, k, np.newaxis]).T @ X
                for m in range(k):
                    both = np.flatnonzero(member[of_k, m])
                    if both.size:
                        Z = X[both]
                        blocks[k, :, m] -= (Z * share[block][of_k[both], np.newaxis]).T @ Z
        H[np.diag_indices(c * size)] += self.ridge.ravel()
        solve = Factored(H).solve  # which reads the lower half
        return lambda residual: solve(residual.ravel()).reshape(residual.shape)


class _ClassBlocks(Way):
    """The diagonal blocks of H, one a class, factored; its diagonal alone where they are too large.

    P_i 1 = 0, and so steps of all classes add up to 0: leaving that direction out, where H bends
    much less than its blocks do, is what makes them good.
    """

    def _preconditioner(self) -> Callable[[Floats], Floats]:
        c, size = self.ridge.shape
        members = [np.flatnonzero(column) for column in self.member.T]
        rows, columns = sum(of_k.size**2 for of_k in members), c * size**2
        if min(rows, columns) > BLOCKS:
            return super()._preconditioner()
        divide = self._by_rows(members) if rows < columns else self._by_columns(members)

        def divide_within(residual: Floats) -> Floats:
            step = divide(residual)
            return step - step.mean(axis=0)

        return divide_within

    def _by_columns(self, members: list[Integers]) -> Callable[[Floats], Floats]:
        """Factor the blocks diag(ridge) + Σ_i bend_i (x_i, 1)(x_i, 1)ᵀ."""
        root = np.sqrt(self.bend)

        def part(k: int, stop: Event) -> Callable[[Floats], Floats]:
            block, roots = np.diag(self.ridge[k]), root[members[k], k, np.newaxis]
            for some, rows in self.rows.take(members[k]).augmented(self.has_bias):
                Z = rows * roots[some]
                block += Z.T @ Z
            return Factored(block).solve

        solves = in_parallel(part, range(len(members)))
        return lambda residual: np.array(
            [solve(r) for solve, r in zip(solves, residual, strict=True)]
        )

    def _by_rows(self, members: list[Integers]) -> Callable[[Floats], Floats]:
        """Factor I + Z ridge⁻¹ Zᵀ of every class, Z its rows (x, 1)√bend (Woodbury's formula)."""
        ridge, root = self.ridge.copy(), np.sqrt(self.bend)
        if self.has_bias:
            ridge[:, -1] = np.maximum(ridge[:, -1], LEAST * self.bend.sum(axis=0))

        def part(k: int, stop: Event) -> Callable[[Floats], Floats]:
            gram = self.rows.gram(members[k]) + (1.0 / ridge[k, -1] if self.has_bias else 0.0)
            gram *= np.outer(root[members[k], k], root[members[k], k])
            gram[np.diag_indices(len(gram))] += 1.0
            return Factored(gram).solve

        solves = in_parallel(part, range(len(members)))

        def divide(residual: Floats) -> Floats:
            step = residual / ridge
            change = root * self.rows.scores(*parted(step, self.has_bias))
            for k, of_k in enumerate(members):
                change[of_k, k] = solves[k](change[of_k, k])
            change *= root
            whole = augmented(self.rows.combine(change), change.sum(axis=0), self.has_bias)
            return step - whole / ridge

        return divide


def way_for(c: int, size: int) -> type[Way]:
    """Return the way to a step of c vectors of a size."""
    return Whole if c * size <= WHOLE else _ClassBlocks


def augmented(w: Floats, b: Floats, has_bias: bool) -> Floats:
    """Return a = (w, b), one row a class."""
    return np.column_stack([w, b]) if has_bias else np.array(w, order="C")


def parted(a: Floats, has_bias: bool) -> tuple[Floats, Floats]:
    """Return w and b of a."""
    return (a[:, :-1].copy(), a[:, -1].copy()) if has_bias else (a.copy(), np.zeros(len(a)))
