"""Decision values of kernel expansions, recomputed in float64 on all cores."""

from __future__ import annotations

from threading import Event
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import Kernel, Precomputed
from ..problem import KernelSeparationProblem, MarginProblem
from ..samples import Floats, Integers
from ..threads import in_parallel, n_threads

# Side of the tiles in which kernel values are recomputed: they fit a core's cache.
TILE = 512
# Columns up to which tiles of sparse rows are made dense.
NARROW = 4096


def kernel_scores(
    problem: KernelSeparationProblem | MarginProblem,
    coefficients: Floats,
    rows: Integers | None = None,
) -> tuple[Floats, float]:
    """Return Σ_l c_l K(x_l, x_m) for every m of ``rows``, and the largest Σ_l |c_l K(x_l, x_m)|."""
    support = np.flatnonzero(coefficients)
    rows = np.arange(problem.index.size) if rows is None else rows

    def part(some: Integers, stop: Event) -> tuple[Floats, float]:
        scores, magnitude = np.zeros(some.size), np.zeros(some.size)
        for first in range(0, support.size, TILE):
            if stop.is_set():
                break
            others = support[first : first + TILE]
            tile = _float64_gram(
                problem.kernel, problem.X, problem.index[some], problem.index[others]
            )
            scores += tile @ coefficients[others]
            magnitude += np.abs(tile) @ np.abs(coefficients[others])
        return scores, float(magnitude.max(initial=0.0))

    side = max(1, min(TILE, -(-rows.size // n_threads())))
    parts = [rows[k : k + side] for k in range(0, rows.size, side)]
    done = in_parallel(part, parts, alone=not problem.kernel.elementwise)
    scores = np.concatenate([np.empty(0), *(scores for scores, _ in done)])
    return scores, max((size for _, size in done), default=0.0)


def _float64_gram(kernel: Kernel, X: Any, rows: Integers, columns: Integers) -> Floats:
    if isinstance(kernel, Precomputed):
        return np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)
    x, z = X[rows].astype(np.float64), X[columns].astype(np.float64)
    if sparse.issparse(X) and kernel.elementwise and X.shape[1] <= NARROW:
        x, z = x.toarray(), z.toarray()  # products of dense tiles are faster
    return kernel(x, z)
