"""Certificates of many planes on the same rows, against those of single ones and fractions."""

from fractions import Fraction

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.certificates.plane_grid import certify_planes
from maxmargin.engines.planes import PlaneTasks
from maxmargin.problems import PrimalProblem
from maxmargin.solution import Solution, Status

COST = 3.0


def posed(n_classes=3, scale=1.0, n=60, d=4, seed=0):
    """Return X, tasks of two folds, and planes at random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * scale
    weights = np.vstack([rng.integers(0, 3, n), 0.5 * (np.arange(n) % 3 > 0)]).astype(float)
    tasks = PlaneTasks(rng.integers(0, n_classes, n), n_classes if n_classes > 2 else 1, weights)
    return X, tasks, rng.standard_normal((tasks.n_planes, d + 1)) / scale


def certified(X, tasks, planes, bias="free"):
    return certify_planes(
        X, tasks.codes, tasks.positive, tasks.weights, tasks.fold_of, planes, COST, bias
    )


def task_of(X, tasks, k):
    """Return labels, weights and the rows that count of a task."""
    weights = tasks.weights[tasks.fold_of[k]]
    labels = np.where(tasks.codes == tasks.positive[k], 1.0, -1.0)
    return labels, weights, np.flatnonzero(weights)


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
@pytest.mark.parametrize("kind", [np.array, np.float32])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_they_are_those_of_single_planes(n_classes, kind, bias):
    X, tasks, planes = posed(n_classes)
    if bias == "none":
        planes[:, -1] = 0.0
    X = kind(X)
    proofs = certified(X, tasks, planes, bias)
    for k, (proof, plane) in enumerate(zip(proofs, planes, strict=True)):
        y, v, rows = task_of(X, tasks, k)
        problem = PrimalProblem.of(X[rows], y[rows], COST * v[rows], "squared_hinge", bias)
        slack = np.maximum(1.0 - y[rows] * (X[rows] @ plane[:-1] + plane[-1]), 0.0)
        alpha = 2.0 * COST * v[rows] * slack
        single = mm.certify(
            problem, Solution(plane[np.newaxis, :-1], plane[-1:], Status.STOPPED, alpha=alpha)
        )
        assert proof.primal == pytest.approx(single.primal, rel=1e-9)
        assert proof.dual == pytest.approx(single.dual, rel=1e-9)
        assert proof.relative_gap == pytest.approx(single.relative_gap, rel=1e-9)
        assert proof.balance == pytest.approx(single.balance, abs=1e-12)
        assert proof.violation <= 1e-12
        assert proof.n_samples == rows.size


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
def test_their_bounds_hold_in_exact_arithmetic(scale):
    X, tasks, planes = posed(2, scale, n=30)
    X[0] *= 1e3  # a row far from the others
    proofs = certified(X, tasks, planes)
    for k, (proof, plane) in enumerate(zip(proofs, planes, strict=True)):
        y, v, rows = task_of(X, tasks, k)
        a = [Fraction(x) for x in plane.tolist()]
        loss, sums = (
            Fraction(0),
            {1.0: [Fraction(0)] * X.shape[1], -1.0: [Fraction(0)] * X.shape[1]},
        )
        slack, square = {1.0: Fraction(0), -1.0: Fraction(0)}, {1.0: Fraction(0), -1.0: Fraction(0)}
        for i in rows:
            x, sign = [Fraction(value) for value in X[i].tolist()], float(y[i])
            score = sum((p * q for p, q in zip(a, x, strict=False)), a[-1])
            z = max(1 - int(sign) * score, 0)
            loss += Fraction(v[i]) * z * z
            slack[sign] += Fraction(v[i]) * z
            square[sign] += Fraction(v[i]) * z * z
            sums[sign] = [s + Fraction(v[i]) * z * q for s, q in zip(sums[sign], x, strict=True)]
        C = Fraction(COST)
        primal = sum(w * w for w in a[:-1]) / 2 + C * loss
        least = min(slack.values())
        by = {sign: least / total if total else Fraction(0) for sign, total in slack.items()}
        w = [2 * C * (by[1.0] * p - by[-1.0] * q)
             for p, q in zip(sums[1.0], sums[-1.0], strict=True)]  # fmt: skip
        dual = 2 * C * sum(by[sign] * slack[sign] for sign in by) - sum(p * p for p in w) / 2
        dual -= C * sum(by[sign] ** 2 * square[sign] for sign in by)
        assert proof.primal >= primal
        assert proof.dual <= dual
        assert proof.gap >= primal - dual


def test_rows_of_one_sign_have_the_dual_value_of_none():
    X, tasks, planes = posed(2)
    one_sided = PlaneTasks(np.ones_like(tasks.codes), 1, tasks.weights)
    for proof in certified(X, one_sided, planes):
        assert -1e-9 <= proof.dual <= 0.0
        assert not proof.holds(1e-2)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_rounding_of_float32_rows_is_bounded_at_any_scale(scale):
    X, tasks, planes = posed(scale=scale)
    X = X.astype(np.float32)  # whose squares are 0 or infinite
    for proof, same in zip(
        certified(X, tasks, planes), certified(X.astype(float), tasks, planes), strict=True
    ):
        assert proof.rounding == same.rounding > 0.0
        assert proof.gap == same.gap < np.inf
