"""Passes over vectors of a linear machine, in torch: for devices without `primal_kernels`.

Each reads scores, β, y, u and D of all rows, and returns sums as a tensor on the device: nothing
here waits for it. u, D and β⁰ hold one number per row, or a single one for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

Tensor = Any


class Terms(NamedTuple):
    """What the losses of rows are made of: y, u, D, and the tube of targets."""

    y: Tensor
    upper: Tensor
    ridge: Tensor
    two_sided: bool
    epsilon: float

    def of(self, rows: Tensor) -> Terms:
        """Return those of some rows."""
        upper, ridge = (
            v if v.numel() == 1 else v.index_select(0, rows) for v in (self.upper, self.ridge)
        )
        return self._replace(y=self.y.index_select(0, rows), upper=upper, ridge=ridge)


def slacks(terms: Terms, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return r = y − s and z."""
    r = terms.y - scores
    return r, (r.abs() - terms.epsilon if terms.two_sided else terms.y * r)


def losses(terms: Terms, z: Tensor) -> Tensor:
    """Return h(z)."""
    u, D = terms.upper, terms.ridge
    z = z.clamp(min=0.0)
    return torch.where(u * D <= z, u * (z - 0.5 * D * u), 0.5 * (z / D) * z)


def proximal_beta(terms: Terms, r: Tensor, center: Tensor, delta: float) -> Tensor:
    """Return the β that maximises βr − ε|β| − ½Dβ² − (δ/2u)(β − β⁰)² in its bounds."""
    u, D = terms.upper, terms.ridge
    is_finite = torch.isfinite(u)
    pull = torch.where(is_finite, u * r + delta * center, r)
    bend = torch.where(is_finite, u * D + delta, D)
    threshold = torch.where(is_finite, u * terms.epsilon, terms.epsilon)
    side = torch.where(pull > 0.0, 1.0, -1.0).to(r.dtype) if terms.two_sided else terms.y
    alpha = (side * pull - threshold).clamp(min=0.0) / bend
    return torch.where(u == 0.0, 0.0, side * torch.minimum(alpha, u))


def on_kink(terms: Terms, beta: Tensor) -> Tensor:
    """Return which rows are on the kink."""
    size = beta.abs()
    return (size > 0.0) & (size < terms.upper)


def project(
    terms: Terms, scores: Tensor, center: Tensor, delta: float, beta: Tensor, change: Tensor,
    kink: Tensor,
) -> Tensor:  # fmt: skip
    """Fill in β, its change, and which rows are on the kink.

    Return what is not proved of the loss, the loss, errors, the change of Σβ, and how many rows
    are on the kink.
    """
    r, z = slacks(terms, scores)
    value = proximal_beta(terms, r, center, delta)
    loss = losses(terms, z)
    finite = torch.where(torch.isfinite(terms.ridge), terms.ridge, 0.0)
    size = value.abs()
    short = loss - value * r + size * (terms.epsilon + 0.5 * finite * size)
    short = torch.where(torch.isfinite(terms.upper), short, 0.0)
    torch.sub(value, beta, out=change)
    beta.copy_(value)
    errors = (z > (0.0 if terms.two_sided else 1.0)).sum()
    kink.copy_(on_kink(terms, beta))
    sums = (short.sum(), loss.sum(), errors.double(), change.sum(), kink.sum().double())
    return torch.stack(sums)


def slopes(
    terms: Terms, scores: Tensor, along: Tensor, center: Tensor, delta: float, points: list[float]
) -> Tensor:
    """Return Σ β_i p_i at the scores s + tp, for several t."""
    sums = [
        proximal_beta(terms, terms.y - (scores + t * along), center, delta) @ along for t in points
    ]
    return torch.stack(sums)


def advance(scores: Tensor, along: Tensor, t: float) -> Tensor:
    """Go t steps; return the largest change of a score and the largest score."""
    scores.add_(along, alpha=t)
    return torch.stack([along.abs().amax() * abs(t), scores.abs().amax()])


def loss(terms: Terms, scores: Tensor) -> Tensor:
    """Return Σ h_i(z_i)."""
    return losses(terms, slacks(terms, scores)[1]).sum()


def balance(
    terms: Terms, beta: Tensor, is_free: bool, relative: bool, change: Tensor, out: Tensor | None
) -> Tensor:
    """Restore Σβ = 0 where the bias is free: β of the heavier sign shrinks.

    What of it is |β| < u shrinks alone if that is enough. ``out`` is the new β, where it is given;
    ``change`` is it, too, or its change. Return Σ yβ − ε|β|, Σ Dβ² and Σβ.
    """
    value = beta
    if is_free:
        below = beta.abs() < terms.upper
        positive, negative = beta.clamp(min=0.0), beta.clamp(max=0.0)
        totals = torch.stack([positive.sum(), -negative.sum()])
        insides = torch.stack([(positive * below).sum(), -(negative * below).sum()])
        excess = totals[0] - totals[1]
        heavier = (excess < 0.0).long()
        enough = insides[heavier] >= excess.abs()
        total = torch.where(enough, insides[heavier], totals[heavier])
        factor = torch.where(excess == 0.0, 1.0, 1.0 - excess.abs() / total)
        shrinks = (beta * torch.sign(excess) > 0.0) & (below | ~enough)
        value = torch.where(shrinks, factor * beta, beta)
    if out is not None:
        out.copy_(value)
    torch.sub(value, beta if relative else 0.0, out=change)
    finite = torch.where(torch.isfinite(terms.ridge), terms.ridge, 0.0)
    gain = value * terms.y - terms.epsilon * value.abs()
    return torch.stack([gain.sum(), (finite * value * value).sum(), value.sum()])


class Marks(NamedTuple):
    """Rows near the kink, rows held on a parabola, and sums over those held."""

    near: Tensor
    parabolas: Tensor
    sums: Tensor  # the constant of their quadratic, its slopes at 0; near, parabolas, errors


def hold(
    terms: Terms,
    scores: Tensor,
    width: Tensor,
    reach: Tensor,
    beta: Tensor | None,
    slope: Tensor,
) -> Marks:
    """Mark the rows near the kink; put β of the others to its bound, and fill in their slopes.

    β stays as it is where it is None: of losses that are parabolas throughout.
    """
    u, D = terms.upper, terms.ridge
    r, z = slacks(terms, scores)
    near = off_kink(z, width) <= reach
    sloping = ~near & (z > 0.0)
    side = torch.where(r > 0.0, 1.0, -1.0).to(r.dtype)
    target = terms.y - side * terms.epsilon
    is_line = torch.isfinite(u)
    finite_u, finite_D = torch.where(is_line, u, 0.0), torch.where(torch.isfinite(D), D, 0.0)
    at_bound = torch.where(sloping, side * finite_u, 0.0)
    force = torch.where(is_line, at_bound, torch.where(sloping, target / D, 0.0))
    constants = torch.where(
        is_line, at_bound * target - 0.5 * finite_D * at_bound * at_bound, 0.5 * force * target
    )
    if beta is not None:
        beta.copy_(torch.where(near, beta, at_bound))
    slope.copy_(force)
    parabolas = sloping & ~is_line
    errors = sloping & (z > (0.0 if terms.two_sided else 1.0))
    sums = [constants.sum(), force.sum(), *(m.sum().double() for m in (near, parabolas, errors))]
    return Marks(near, parabolas, torch.stack(sums))


def off_kink(z: Tensor, width: Tensor) -> Tensor:
    """Return how far z is from 0 ≤ z ≤ width."""
    return (z - 0.5 * width).abs() - 0.5 * width
