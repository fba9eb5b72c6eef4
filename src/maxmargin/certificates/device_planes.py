"""The sums of `plane_sums` for rows on a device, as operations on whole tensors.

The numbers, and the bounds of their rounding errors, are those of the compiled sums: products are
in float64, of blocks of rows that are converted one after the other. The order of a sum is the
device's; its bound is that of any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrays import Floats
from ..problems import PrimalProblem
from .dual_tasks import ROUNDING, TINY
from .plane_sums import BLUR, CHUNK_ROWS, N_FOUND, UPWARDS
from .scores import UNIT

if TYPE_CHECKING:
    from .primal import Claim

# A tensor of some library on a device: its methods are all that is used here.
Tensor = Any
# Numbers of X that are converted to float64 at a time.
BLOCK_NUMBERS = 1 << 26


class Terms(NamedTuple):
    """Vectors of rows on the device; one number where it is that of all rows."""

    y: Tensor
    alpha: Tensor
    box: Tensor
    upper: Tensor
    ridge: Tensor

    def of(self, rows: slice) -> Terms:
        """Return those of some rows."""
        return Terms(*(v if v.shape[0] == 1 else v[rows] for v in self))


def terms_of(problem: PrimalProblem, alpha: Any) -> Terms:
    """Return the vectors of a problem, and α, on the device of its rows."""
    place = problem.X.vector
    upper, ridge = place(problem.upper), place(problem.ridge)
    box = upper.where(ridge.isfinite(), upper.new_zeros(()))
    return Terms(place(problem.y), place(alpha), box, upper, ridge)


def add_up_alpha(problem: PrimalProblem, terms: Terms) -> Floats:
    """Return what `plane_sums.add_up_alpha` finds of all rows, as one line."""
    inside = _inside(terms, problem.two_sided)
    size = inside.abs()
    is_positive = (inside if problem.two_sided else terms.y) > 0.0
    outside = (terms.alpha - inside).abs().amax()
    sums = (size * is_positive).sum(), (size * ~is_positive).sum()
    line: Floats = problem.X.fetch(*sums, size.amax(), outside)
    return line[np.newaxis]


def measure(claim: Claim, terms: Terms) -> tuple[Floats, Floats]:
    """Return what all rows say, as one line of `plane_sums`, and Σ βx."""
    X, place = claim.problem.X, claim.problem.X.vector
    w, centre, d = place(claim.w), place(claim.origin.centre), claim.w.size
    offset = abs(claim.b)
    if (claim.origin.centre * claim.w).any():  # then b, or the shift, was rounded
        offset += abs(claim.shift)
    length = float(np.linalg.norm(claim.w)) * UPWARDS
    n_chunks, sizes = 0, w.new_zeros(())
    is_centred = bool(claim.origin.centre.any())
    lines: list[Tensor] = []
    total = w.new_zeros(d)
    for rows, block in _blocks(X):
        here = terms.of(rows)
        x = block.double()
        if is_centred:
            x = x - centre
        squares = x.square().sum(1)
        wrong = (d + 4) * UNIT * (squares.sqrt() * (UPWARDS * length) + offset)
        restored = _restored(claim, here)
        some, blur, size = _sums(x, squares, restored)
        # Of the sum over all chunks; there are two more than whole ones in a block, at most.
        n_chunks, sizes = n_chunks + x.shape[0] // CHUNK_ROWS + 2, sizes + size
        lines += _judged(claim, here, x @ w + claim.b, wrong, restored, blur)
        total = total + some
    numbers = X.fetch(*lines, n_chunks * UNIT * UPWARDS**2 * sizes, total)
    found: Floats = numbers[: len(lines)].reshape(-1, N_FOUND)
    found[0, BLUR] += numbers[len(lines)]
    return found, numbers[len(lines) + 1 :]


def _blocks(X: Any) -> Iterator[tuple[slice, Tensor]]:
    """Yield rows on the device, some at a time, with their places."""
    step = max(1, BLOCK_NUMBERS // max(X.shape[1], 1) // CHUNK_ROWS) * CHUNK_ROWS
    for start, rows in X.device_blocks():
        for first in range(0, rows.shape[0], step):
            block = rows[first : first + step]
            yield slice(start + first, start + first + block.shape[0]), block


def _inside(terms: Terms, two_sided: bool) -> Tensor:
    """Return α clipped to 0 ≤ α ≤ u, or to |α| ≤ u; a NaN stays one."""
    low = -terms.box if two_sided else terms.box.new_zeros(())
    inside = terms.alpha.where(~(terms.alpha > terms.box), terms.box)
    return inside.where(~(terms.alpha < low), low)


def _restored(claim: Claim, terms: Terms) -> Tensor:
    """Return β with Σβ = 0."""
    signed = _inside(terms, claim.problem.two_sided)
    if not claim.problem.two_sided:
        signed = signed * terms.y
    plus, minus = claim.factors
    return (plus * signed).where(signed > 0.0, minus * signed)


def _sums(x: Tensor, squares: Tensor, beta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ βx, chunk by chunk, a bound of the error of each chunk's, and Σ ‖x‖‖β‖ of them."""
    n, d = x.shape
    whole = n // CHUNK_ROWS * CHUNK_ROWS
    total, blur = x.new_zeros(d), x.new_zeros(())
    sizes = blur
    for rows, size in ((slice(0, whole), CHUNK_ROWS), (slice(whole, n), n - whole)):
        if rows.stop == rows.start:
            continue
        chunks = beta[rows].reshape(-1, 1, size)
        total = total + (chunks @ x[rows].reshape(-1, size, d)).sum((0, 1))
        of_rows = squares[rows].reshape(-1, size).sum(1)
        here = (of_rows * chunks.square().sum((1, 2))).sqrt().sum()
        blur, sizes = blur + (size + 2) * UNIT * UPWARDS**2 * here, sizes + here
    return total, blur, sizes


def _judged(
    claim: Claim, terms: Terms, scores: Tensor, wrong: Tensor, restored: Tensor, blur: Tensor
) -> list[Tensor]:
    """Return sums over rows and the worst of the KKT conditions, as `plane_sums` names them."""
    problem, epsilon = claim.problem, float(claim.problem.epsilon)
    u, D, a = terms.upper, terms.ridge, _inside(terms, problem.two_sided)
    zero = scores.new_zeros(())
    finite = D.where(D.isfinite(), zero)
    size = restored.abs()
    unexplained = farthest = zero
    if problem.two_sided:
        target, lost = _difference(terms.y, claim.shift)
        r = target - scores
        side = r.where(a > 0.0, -r).where(a != 0.0, r.abs())
        y_score, z = 1.0 + epsilon - side, r.abs() - epsilon
        unsure = wrong + lost.abs()
        unsure = unsure + (2.0 * UNIT * r.abs()).where(scores != 0.0, zero)
        gain = restored * target - epsilon * size
        terms_sum = (size * (target.abs() + epsilon)).sum()
        farthest = target.abs().amax()
        unexplained = _losses(target.abs(), u, D).sum()
    else:
        y_score = terms.y * scores
        z, unsure, gain, terms_sum = 1.0 - y_score, wrong, size, size.sum()
    squares = (finite * (restored.square() + TINY)).where(restored != 0.0, zero)
    counts = (u > 0.0) & D.isfinite()
    far = scores.new_full((), np.inf)
    a = a.abs()
    slope = y_score + finite * a
    least = slope.where(counts & (a < (1.0 - ROUNDING) * u), far).amin()
    bound = u.clamp(max=claim.largest)
    most = slope.where(counts & (a > ROUNDING * bound), -far).amax()
    return [
        _losses(z, u, D).sum(), _losses(z + unsure, u, D).sum(), gain.sum(), terms_sum,
        size.sum(), restored.sum(), squares.sum(), blur, unexplained,
        y_score.where(counts, far).amin(), least, most, unsure.amax(), farthest,
    ]  # fmt: skip


def _difference(a: Tensor, b: float) -> tuple[Tensor, Tensor]:
    """Return a − b as it is rounded, and what was lost."""
    rounded = a - b
    part = rounded - a
    return rounded, (a - (rounded - part)) - (b + part)


def _losses(z: Tensor, u: Tensor, D: Tensor) -> Tensor:
    """Return h(z); 0 for a hard margin, which allows no slack."""
    slack = z.clamp(min=0.0)
    line = u * slack
    square = (0.5 * slack * slack / D).where(D > 0.0, 0.0 * slack)
    a = (slack / D).minimum(u)
    bent = (a * (slack - 0.5 * D * a)).where(D.isfinite(), 0.0 * slack)
    return square.where(u.isinf(), line.where(D == 0.0, bent))
