"""The minimum-squared-error plane a = Z⁺m (Duda, Hart, Stork, section 5.8.1).

ZᵀZ is never formed: orthogonal transformations compress the n rows of Z, block by block and on all
cores, into a triangle R of at most as many rows as columns with the same least-squares problem
(Golub, Van Loan, *Matrix Computations*, section 5.3), whose singular values determine the rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from threading import Event

import numpy as np
from scipy.linalg import svd
from scipy.linalg.lapack import dgeqrf
from scipy.sparse.linalg import LinearOperator, lsmr

from ...arrays import Floats, Integers
from ...data.normalised_samples import Samples
from ...problems import LeastSquaresProblem, SeparationProblem
from ...progress import Progress
from ...runtime.threads import in_parallel, interruptible, n_threads
from ...solution import Solution, Status
from .engine_sums import on_engine, reduced
from .online import snapshot


@dataclass(frozen=True)
class Tuning:
    """Sizes of the factorisation, and the tolerances of LSMR, used for larger problems."""

    # Numbers in the compressed problem up to which it is factorised.
    max_factorised_numbers: int = 1 << 20
    # Rows compressed in one QR factorisation, at least.
    min_block_rows: int = 1024
    lsmr_relative_tolerance: float = 1e-12
    lsmr_iterations_per_column: int = 10


TUNING = Tuning()
# The reason that LSMR returns when it has reached ``maxiter``.
LSMR_ITERATION_LIMIT = 7


@dataclass(frozen=True)
class LeastSquares:
    """Solve min ‖V^½(Za − m)‖² + ε‖a‖² by factorisation, or by LSMR if that is too large."""

    max_iter: int | None = None

    def solve(self, problem: LeastSquaresProblem, a: Floats, progress: Progress) -> Solution:
        """Write the minimiser of least norm to ``a``."""
        problem = on_engine(problem)
        if is_factorised(problem):
            a[:] = problem.restrict(Compressed.of(problem).minimiser(problem.ridge))
            n_iter, status = 1, Status.CONVERGED
        else:
            a[:], n_iter, converged = iterate(
                problem, problem.margins, ridge=problem.ridge, max_iter=self.max_iter
            )
            status = Status.CONVERGED if converged else Status.ITERATION_LIMIT
        squares, errors = reduced(problem, _squares, _added, common=(a,))
        objective = squares + problem.ridge * float(a @ a)
        progress.iteration(objective, errors, 0.0, partial(snapshot, problem.Z, a), exact=True)
        solution = snapshot(problem.Z, a, status, progress, n_updates=1)
        return replace(solution, n_iter=n_iter)


def _squares(problem: LeastSquaresProblem, a: Floats) -> tuple[float, int]:
    """Return Σ v (z·a − m)², and the samples with z·a ≤ 0."""
    error = problem.Z.dot(a) - problem.margins
    errors = int((problem.Z.worst_of_each(error + problem.margins) <= 0).sum())
    return float(problem.row_weights @ error**2), errors


def _added(found: list[tuple[float, int]]) -> tuple[float, int]:
    squares, errors = zip(*found, strict=True)
    return sum(squares), sum(errors)


@dataclass(frozen=True)
class Compressed:
    """A small dense problem min ‖Ma − r‖² with the same minimisers as the large one, and its SVD.

    Columns are scaled to unit length first, so that features of very different scales are not taken
    for rank deficiency. ``null`` spans the directions (of the unscaled a) that change nothing, if
    the rank is deficient: the minimiser orthogonal to them has the least norm.
    """

    M: Floats
    r: Floats
    columns: Floats
    U: Floats
    s: Floats
    Vt: Floats
    null: Floats

    @classmethod
    def of(cls, problem: SeparationProblem) -> Compressed:
        """Compress Z and m of a problem."""
        M, r = problem.reduce(compress, merged_compressed)
        M = M * problem.restrict(np.ones(M.shape[1]))
        norms = np.linalg.norm(M, axis=0)
        # With fewer rows than columns the minimiser of least norm is in the unscaled row space.
        wide = M.shape[0] < M.shape[1]
        columns = np.ones_like(norms) if wide else np.where(norms > 0, norms, 1.0)
        U, s, Vt = _svd(M / columns)
        rank = int((s > max(problem.Z.shape) * np.finfo(float).eps * s[0]).sum())
        null = Vt[:0].T if wide else np.linalg.qr((Vt[rank:] / columns).T)[0]
        return cls(M, r, columns, U[:, :rank], s[:rank], Vt[:rank], null)

    def minimiser(self, ridge: float = 0.0) -> Floats:
        """Return the a of least norm, or the ridge solution."""
        if ridge:
            U, s, Vt = _svd(self.M)
            return Vt.T @ ((U.T @ self.r) * s / (s * s + ridge))
        coordinates = (self.U.T @ self.r) / self.s
        return self._least_norm(self.Vt.T @ coordinates / self.columns)

    def normal_inverse(self, g: Floats) -> Floats:
        """Return (ZᵀVZ)⁺ g."""
        coordinates = (self.Vt @ (g / self.columns)) / self.s**2
        return self._least_norm(self.Vt.T @ coordinates / self.columns)

    def _least_norm(self, a: Floats) -> Floats:
        return a - self.null @ (self.null.T @ a)


def _svd(M: Floats) -> tuple[Floats, Floats, Floats]:
    return interruptible(partial(svd, M, full_matrices=False, check_finite=False))


def is_factorised(problem: SeparationProblem) -> bool:
    """Return whether the compressed problem is small enough; refuse others in partitions."""
    if fits(problem.Z):
        return True
    if problem.in_partitions:
        raise ValueError(
            "Least squares on Dask collections factorise (d + 1)² numbers, at most "
            f"{TUNING.max_factorised_numbers}, got d = {problem.Z.X.shape[1]} features: use "
            "LMS(update='batch') or LinearSVC, or an array."
        )
    return False


def fits(Z: Samples) -> bool:
    """Return whether the compressed problem is small enough to be factorised."""
    rows, columns = Z.shape
    n_numbers = min(rows, columns * Z.rows_per_sample) * columns
    return n_numbers <= TUNING.max_factorised_numbers


def compress(problem: SeparationProblem) -> tuple[Floats, Floats]:
    """Return the small dense (M, r) with ‖Ma − r‖² = ‖V^½(Za − m)‖² + constant."""
    Z, d = problem.Z, problem.Z.X.shape[1] + 1
    parts, targets = [], []
    for group in Z.groups(problem.margins):
        # One triangle of (x, 1) serves all rows of Z of these samples.
        T = _triangle(Z, group.samples, group.targets, problem.weights[group.samples])
        for k, signs in enumerate(group.signs):
            rows = np.zeros((T.shape[0], Z.n_vectors, d))
            for vector in np.flatnonzero(signs):
                rows[:, vector] = signs[vector] * T[:, :d]
            parts.append(rows.reshape(T.shape[0], -1))
            targets.append(T[:, d + k])
    return np.vstack(parts), np.concatenate(targets)


def merged_compressed(found: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Compress the problems of several partitions into one (TSQR: Demmel et al., 2012)."""
    stacked = np.vstack([np.column_stack(each) for each in found])
    n, width = stacked.shape
    T = stacked if n <= width else _upper(np.asfortranarray(stacked))
    return T[:, :-1], T[:, -1]


def _triangle(Z: Samples, chosen: Integers, targets: Floats, weights: Floats) -> Floats:
    """Return the triangle of V^½[X' targets] of some samples, or the rows if they are few."""
    width = Z.X.shape[1] + 1 + targets.shape[1]
    if chosen.size <= width:
        return _weighted_block(Z, chosen, targets, weights, slice(0, chosen.size))
    bounds = np.linspace(0, chosen.size, n_threads() + 1).astype(int)
    parts = [slice(lo, hi) for lo, hi in pairwise(bounds) if lo < hi]
    work = partial(_triangle_of_part, Z, chosen, targets, weights)
    triangles = in_parallel(work, parts)
    return _upper(np.asfortranarray(np.vstack(triangles))) if len(parts) > 1 else triangles[0]


def _triangle_of_part(
    Z: Samples, chosen: Integers, targets: Floats, weights: Floats, part: slice, stop: Event
) -> Floats:
    width = Z.X.shape[1] + 1 + targets.shape[1]
    step = max(TUNING.min_block_rows, 2 * width)
    T = np.zeros((width, width))
    for first in range(part.start, part.stop, step):
        if stop.is_set():
            break
        block = slice(first, min(first + step, part.stop))
        stacked = np.empty((block.stop - first + width, width), order="F")
        stacked[:width] = T
        stacked[width:] = _weighted_block(Z, chosen, targets, weights, block)
        T = _upper(stacked)
    return T


def _weighted_block(
    Z: Samples, chosen: Integers, targets: Floats, weights: Floats, block: slice
) -> Floats:
    rows = np.column_stack([Z.augmented(chosen[block]), targets[block]])
    return rows * np.sqrt(weights[block])[:, np.newaxis]


def _upper(A: Floats) -> Floats:
    """Overwrite A by its QR factorisation and return R."""
    qr, _, _, info = dgeqrf(A, lwork=64 * A.shape[1], overwrite_a=True)
    assert info == 0
    return np.triu(qr[: A.shape[1]])


def iterate(
    problem: SeparationProblem,
    residual: Floats,
    *,
    ridge: float = 0.0,
    max_iter: int | None = None,
) -> tuple[Floats, int, bool]:
    """Return Z⁺ residual, the iterations and whether they converged, by LSMR on the implicit Z."""
    Z = problem.Z
    root = np.sqrt(problem.row_weights)
    operator = LinearOperator(
        Z.shape,
        matvec=lambda a: root * Z.dot(problem.restrict(a)),
        rmatvec=lambda u: problem.restrict(Z.adjoint(root * np.ravel(u))),
        dtype=np.float64,
    )
    limit = max_iter or TUNING.lsmr_iterations_per_column * min(Z.shape)
    tolerance = TUNING.lsmr_relative_tolerance
    a, reason, n_iter, *_ = lsmr(
        operator, root * residual, damp=float(np.sqrt(ridge)), atol=tolerance, btol=tolerance,
        conlim=0.0, maxiter=limit,
    )  # fmt: skip
    return a, int(n_iter), reason != LSMR_ITERATION_LIMIT
