"""Compare the Triton kernels of linear machines with their twins in torch; run by a test.

Triton's interpreter, which TRITON_INTERPRET=1 chooses before Triton is imported, runs them on the
CPU.
"""

from __future__ import annotations

import itertools

import torch

from maxmargin.engines.torch import primal_kernels, primal_passes, row_kernels
from maxmargin.engines.torch.primal_passes import Terms

N = 700


def near(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def compare_rows(d, dtype):
    X = torch.randn(N, d).to(dtype)
    plane, c = torch.randn(d + 1, dtype=torch.float64), torch.randn(N, dtype=torch.float64)
    c[::3] = 0.0
    out = torch.empty(N, dtype=torch.float64)
    row_kernels.row_scores(X, plane, out)
    near(out, X.double() @ plane[:-1] + plane[-1])
    near(row_kernels.column_sums(X, c), c @ X.double())
    rows = torch.nonzero(c)[:, 0]
    ones, root = torch.ones(rows.numel(), 1).double(), torch.rand(rows.numel()).double()
    A = torch.cat([X[rows].double(), ones], 1)
    near(row_kernels.gathered(X, rows, None), A)
    near(row_kernels.gathered(X, rows, root), root[:, None] * A)


def terms_of(two_sided, upper, ridge):
    y = torch.randn(N, dtype=torch.float64)
    return Terms(y if two_sided else y.sign(), upper, ridge, two_sided, 0.3 * two_sided)


def vectors(*sizes):
    return [torch.randn(size, dtype=torch.float64) for size in sizes]


def both(function, terms, inputs, *written):
    """Call a function of either module with copies of what it writes to; compare everything."""
    found = []
    for module in (primal_kernels, primal_passes):
        copies = [None if each is None else each.clone() for each in written]
        result = getattr(module, function)(*terms, *inputs, *copies)
        found.append([result, *(each for each in copies if each is not None)])
    for one, other in zip(*found, strict=True):
        for a, b in zip(
            *((x if isinstance(x, tuple) else (x,)) for x in (one, other)), strict=True
        ):
            near(a, b)


def compare_passes(two_sided, upper, ridge, center):
    terms = terms_of(two_sided, upper, ridge)
    scores, beta, change = vectors(N, N, N)
    beta = beta.clamp(-1.0, 1.0) if two_sided else beta.abs().clamp(max=1.0) * terms.y
    beta = torch.minimum(torch.maximum(beta, -upper), upper)
    kink = torch.zeros(N, dtype=torch.bool)
    both("project", (terms, scores, center, 0.4), (), beta, change, kink)
    both("slopes", (terms, scores, change, center, 0.4, [0.0, 0.5, 2.0]), ())
    both("loss", (terms, scores), ())
    for is_free, relative in itertools.product((False, True), repeat=2):
        both("balance", (terms, beta, is_free, relative), (), change, None if relative else change)
    width, reach = (upper * ridge + 0.4).nan_to_num(posinf=0.0), torch.tensor(0.3).double()
    for placed in (beta, None):
        both("hold", (terms, scores, width, reach), (), placed, change)


def main():
    torch.manual_seed(0)
    for d, dtype in itertools.product((1, 5, 200), (torch.float32, torch.float64)):
        compare_rows(d, dtype)
    one, each = torch.ones(1, dtype=torch.float64), torch.rand(N, dtype=torch.float64) + 0.5
    each[::5] = 0.0
    pairs = [(one, 0 * one), (each, 0 * one), (torch.inf * one, 0.5 * one), (each, 0.5 * one)]
    pairs.append((torch.inf * one, 0.5 / each))
    for two_sided, (upper, ridge) in itertools.product((False, True), pairs):
        for center in (0 * one, 0.5 * torch.minimum(each, upper)):
            compare_passes(two_sided, upper, ridge, center)
    scores, along = vectors(N, N)
    for module in (primal_kernels, primal_passes):
        moved = scores.clone()
        found = module.advance(moved, along, 0.7)
        near(moved, scores + 0.7 * along)
        near(found, torch.stack([(0.7 * along).abs().amax(), moved.abs().amax()]))


if __name__ == "__main__":
    main()
