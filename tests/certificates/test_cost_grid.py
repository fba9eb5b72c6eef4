"""Certificates of the same tasks at several costs, against those of single ones."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.certificates.cost_grid import SquaredDistances, certify_costs
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.solution import Solution, Status

COSTS = np.array([0.5, 20.0])
KERNEL = RBF(0.4)


def classifier(X, y, rows):
    labels, ones = np.where(y[rows] > 0, 1.0, -1.0), np.ones(rows.size)
    return DualProblem.classification(KERNEL, X, labels, ones, 0.0 * ones, index=rows)


def regression(X, y, rows):
    return DualProblem.regression(KERNEL, X, y[rows], 1.0, 0.1, index=rows)


def posed(pose, n=150):
    """Return tasks of three folds and some α of each, which is not the best one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(n)
    folds = [np.flatnonzero(np.arange(n) % 3 != k) for k in range(3)]
    problems = [pose(X, y, rows) for rows in folds]
    size = sum(problem.n_variables for problem in problems)
    shares = rng.random((COSTS.size, size)) * (rng.random((COSTS.size, size)) < 0.5)
    upper = np.concatenate([problem.upper for problem in problems])
    b = rng.standard_normal((COSTS.size, len(problems)))
    return X, problems, COSTS[:, np.newaxis] * shares * upper, b


@pytest.mark.parametrize("names", ["aaa", "aba", "abc"])
@pytest.mark.parametrize("pose", [classifier, regression])
def test_they_are_those_of_single_tasks(pose, names):
    X, problems, alpha, b = posed(pose)
    proofs = certify_costs(problems, names, COSTS, alpha, b, SquaredDistances.of(X), 1e-3)
    ends = np.cumsum([problem.n_variables for problem in problems])[:-1]
    for c, cost in enumerate(COSTS):
        for t, (problem, own) in enumerate(zip(problems, np.split(alpha[c], ends), strict=True)):
            problem = replace(problem, upper=problem.upper * cost, ridge=problem.ridge / cost)
            answer = Solution(
                np.empty((0, 0)), b[c, [t]], Status.STOPPED, n_iter=0, n_updates=0, seconds=0.0,
                alpha=own,
            )  # fmt: skip
            single, proof = mm.certify(problem, answer), proofs[c][t]
            assert proof.primal == pytest.approx(single.primal, rel=1e-9)
            assert proof.dual == pytest.approx(single.dual, rel=1e-9)
            assert proof.violation == pytest.approx(single.violation, rel=1e-9)
            assert proof.coverage == "complete"
