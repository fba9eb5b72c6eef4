"""The span estimate of the leave-one-out error.

Where leaving out sample p changes neither which α are 0 nor which are at their bound, the machine
without it has y_p g(x_p) less by α_p S_p². S_p is the distance of φ(x_p) from the span of the free
support vectors (their affine span where there is a bias): of a free one from that of the others.

Reference: Vapnik, Chapelle, *Neural Computation* 12 (2000); Chapelle, Vapnik, Bousquet, Mukherjee,
*Machine Learning* 46 (2002), section 4.4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..arrays import Floats, Integers
from ..kernels import Precomputed
from ..problems import DualProblem
from .measured_task import AT_BOUND, MeasuredTask, diagonal

# Free support vectors up to which their Gram matrix is inverted.
MOST_FREE = 3000
# What is added to its diagonal, relative to its largest number: rows may repeat.
JITTER = 1e-12


def span_errors(machine: MeasuredTask) -> NDArray[np.bool_] | None:
    """Return which samples are misclassified when left out, by the span estimate.

    None where there are too many free support vectors, or a kernel is not positive semidefinite.
    """
    problem, alpha = machine.problem, machine.alpha
    support = np.flatnonzero(alpha)
    is_free = alpha[support] < problem.upper[support] * (1.0 - AT_BOUND)
    free, bound = support[is_free], support[~is_free]
    if free.size > MOST_FREE:
        return None
    squares = np.zeros(alpha.size)
    lengths = diagonal(problem)
    squares[bound] = lengths[bound]
    if free.size:
        K = _gram(problem, free, free)
        K[np.diag_indices_from(K)] += problem.ridge[free] + JITTER * float(lengths[free].max())
        try:
            factor = cho_factor(K)
        except LinAlgError:
            return None
        squares[free] = _free_spans(factor, free.size, bool(problem.groups)) - problem.ridge[free]
        if bound.size:
            k = _gram(problem, free, bound)
            squares[bound] -= _explained(factor, k, bool(problem.groups))
    return alpha * np.maximum(squares, 0.0) >= machine.margins


def _free_spans(factor: tuple[Floats, bool], n: int, has_bias: bool) -> Floats:
    """Return S² of the free support vectors: 1 over the diagonal of the inverse."""
    inverse: Floats = cho_solve(factor, np.eye(n))
    diagonal = inverse.diagonal().copy()
    if has_bias:
        sums = inverse.sum(axis=0)
        diagonal -= sums**2 / sums.sum()
    # A single free one fixes b: without it nothing bounds the distance but the machine itself.
    with np.errstate(divide="ignore"):
        return np.where(diagonal > 0.0, 1.0 / diagonal, np.inf)


def _explained(factor: tuple[Floats, bool], k: Floats, has_bias: bool) -> Floats:
    """Return what the span of the free support vectors has of ‖φ(x)‖² of others."""
    solved = cho_solve(factor, k)
    explained: Floats = np.einsum("ij,ij->j", k, solved)
    if has_bias:
        ones = cho_solve(factor, np.ones(len(k)))
        explained -= (solved.sum(axis=0) - 1.0) ** 2 / ones.sum()
    return explained


def _gram(problem: DualProblem, rows: Integers, columns: Integers) -> Floats:
    X, (i, j) = problem.X, (problem.index[rows], problem.index[columns])
    if isinstance(problem.kernel, Precomputed):
        return np.array(X[np.ix_(i, j)], dtype=np.float64)
    return problem.kernel(X[i].astype(np.float64), X[j].astype(np.float64))
