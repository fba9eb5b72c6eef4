"""Certificates of hinges of several planes on the same rows, against single ones and fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.certificates.hinge_grid import certify_hinges
from maxmargin.problems import PrimalProblem
from maxmargin.solution import Solution, Status

COST = 3.0


def posed(scale=1.0, n=60, d=4, seed=0):
    """Return X, labels, weights of two folds, and planes and shares at random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * scale
    weights = np.vstack([rng.integers(0, 3, n), 0.5 * (np.arange(n) % 3 > 0)]).astype(float)
    shares = rng.random((2, n)).round(1)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return X, y, weights, rng.standard_normal((2, d + 1)) / scale, shares


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
@pytest.mark.parametrize("kind", [np.array, np.float32, sparse.csr_matrix])
def test_they_are_those_of_single_planes(kind, bias):
    X, y, weights, planes, shares = posed()
    if bias == "none":
        planes[:, -1] = 0.0
    X = kind(X)
    proofs = certify_hinges(X, y, weights, planes, shares, COST, bias)
    for proof, v, plane, share in zip(proofs, weights, planes, shares, strict=True):
        rows = np.flatnonzero(v)
        problem = PrimalProblem.of(X[rows], y[rows], COST * v[rows], "hinge", bias)
        alpha = (COST * v * share)[rows]
        single = mm.certify(
            problem, Solution(plane[np.newaxis, :-1], plane[-1:], Status.STOPPED, alpha=alpha)
        )
        for name in ("primal", "dual", "relative_gap"):
            assert getattr(proof, name) == pytest.approx(getattr(single, name), rel=1e-9)
        assert proof.balance == pytest.approx(single.balance, abs=1e-12)
        assert proof.violation == pytest.approx(single.violation, rel=1e-9)
        assert proof.n_samples == rows.size


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
def test_their_bounds_hold_in_exact_arithmetic(scale):
    X, y, weights, planes, shares = posed(scale, n=30)
    X[0] *= 1e3  # a row far from the others
    proofs = certify_hinges(X, y, weights, planes, shares, COST, "free")
    C = Fraction(COST)
    for proof, v, plane, share in zip(proofs, weights, planes, shares, strict=True):
        a = [Fraction(value) for value in plane.tolist()]
        loss, size = Fraction(0), {1: Fraction(0), -1: Fraction(0)}
        sums = {sign: [Fraction(0)] * X.shape[1] for sign in size}
        for i in np.flatnonzero(v):
            x, sign = [Fraction(value) for value in X[i].tolist()], int(y[i])
            score = sum((p * q for p, q in zip(a, x, strict=False)), a[-1])
            loss += Fraction(v[i]) * max(1 - sign * score, 0)
            alpha = Fraction(v[i]) * Fraction(share[i])
            size[sign] += alpha
            sums[sign] = [s + alpha * q for s, q in zip(sums[sign], x, strict=True)]
        least = min(size.values())
        by = {sign: least / total if total else Fraction(0) for sign, total in size.items()}
        w = [C * (by[1] * p - by[-1] * q) for p, q in zip(sums[1], sums[-1], strict=True)]
        dual = C * sum(by[sign] * size[sign] for sign in by) - sum(p * p for p in w) / 2
        primal = sum(p * p for p in a[:-1]) / 2 + C * loss
        assert proof.primal >= primal
        assert proof.dual <= dual
        assert proof.gap >= primal - dual


def test_shares_beyond_their_bounds_prove_no_more_than_those_at_them():
    X, y, weights, planes, shares = posed()
    beyond = np.where(shares > 0.5, 7.0, -3.0)
    for proof, same in zip(
        certify_hinges(X, y, weights, planes, beyond, COST, "free"),
        certify_hinges(X, y, weights, planes, np.clip(beyond, 0.0, 1.0), COST, "free"),
        strict=True,
    ):
        assert proof == same


def test_numbers_that_are_none_prove_nothing():
    X, y, weights, planes, shares = posed()
    planes[0, 0] = np.nan
    proofs = certify_hinges(X, y, weights, planes, shares, COST, "free")
    assert not proofs[0].holds(1e9)


def test_rows_of_one_sign_have_the_dual_value_of_none():
    X, y, weights, planes, shares = posed()
    for proof in certify_hinges(X, np.ones_like(y), weights, planes, shares, COST, "free"):
        assert -1e-9 <= proof.dual <= 0.0
        assert not proof.holds(1e-2)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_rounding_of_float32_rows_is_bounded_at_any_scale(scale):
    X, *given = posed(scale)
    X = X.astype(np.float32)  # whose squares are 0 or infinite
    for proof, same in zip(
        certify_hinges(X, *given, COST, "free"),
        certify_hinges(X.astype(float), *given, COST, "free"),
        strict=True,
    ):
        assert proof.rounding == same.rounding > 0.0
        assert proof.gap == same.gap < np.inf
