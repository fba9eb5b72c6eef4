"""No false claim: certificates are compared with exact arithmetic, or with all rows recomputed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse

from . import checks, oracles
from .generators import (
    LINEAR_SOLVERS,
    LOSSES,
    SHAPES,
    SVC_SOLVERS,
    Case,
    cloud,
    large_case,
    seeds,
    small_case,
)

# Shrinking would repeat a fit that hangs: the examples are small already.
few = settings(max_examples=3, deadline=None, phases=(Phase.explicit, Phase.generate))


def assert_none(found, case):
    assert not found, "\n".join([str(case), *found])


@pytest.mark.parametrize("estimator", ["SVC", "LinearSVC", "NuSVC"])
@pytest.mark.parametrize("shape", sorted(SHAPES))
@few
@given(seed=seeds)
def test_small_fits_claim_what_exact_arithmetic_confirms(shape, estimator, seed):
    case = small_case(shape, estimator, seed)
    assert_none(checks.small(case), case)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SVC_SOLVERS)
@settings(few, max_examples=3)
@given(seed=seeds, scale=st.sampled_from([1e-3, 1.0, 1e2, 1e4]))
def test_every_dual_solver_is_certified_truly(solver, loss, seed, scale):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 20, 2)
    params = {"solver": solver, "loss": loss, "kernel": ("linear",), "C": 1.0, "tol": 1e-3}
    case = Case("SVC", params, X * scale, y, None, f"seed {seed}, scale {scale:g}")
    assert_none(checks.small(case), case)


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", LINEAR_SOLVERS)
@settings(few, max_examples=3)
@given(seed=seeds, scale=st.sampled_from([1e-3, 1.0, 1e2, 1e5]))
def test_every_primal_solver_is_certified_truly(solver, loss, bias, seed, scale):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 20, 2)
    params = {
        "solver": solver,
        "loss": loss,
        "fit_intercept": bias != "none",
        "penalize_intercept": bias == "penalised",
    }
    case = Case("LinearSVC", params, X * scale, y, None, f"seed {seed}, scale {scale:g}")
    assert_none(checks.small(case), case)


@pytest.mark.parametrize("exponent", range(1, 9))
def test_claims_survive_an_offset(exponent):
    # n = 30, all rows shifted: products of rows cancel to few digits.
    rng = np.random.default_rng(exponent)
    X, y = cloud(rng, 30, 2)
    for kernel in (("linear",), ("rbf", 0.5), ("sum", ("rbf", 0.5), ("linear",))):
        for form in (np.asarray, sparse.csr_matrix):
            shifted = form(X + 4.0 * 10.0 ** (exponent - 1))
            case = Case("SVC", {"kernel": kernel}, shifted, y, None, f"offset 4e{exponent - 1}")
            assert_none(checks.small(case), case)


@pytest.mark.parametrize("seed", [1049, 1102])
def test_claims_of_nu_machines_survive_the_division_by_the_margin(seed):
    """Rows far from the origin show what it leaves of Σyα."""
    case = small_case("offset", "NuSVC", seed)
    assert_none(checks.small(case), case)


@pytest.mark.parametrize("kernel", [("linear",), ("rbf", 1.0), ("poly", 2, 1.0, 1.0)])
@settings(few, max_examples=6)
@given(seed=seeds, low=st.integers(-11, 0), high=st.integers(0, 11))
def test_claims_survive_uneven_weights(kernel, seed, low, high):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 16, 2)
    weight = 10.0 ** rng.uniform(low, high, 16)
    for loss in LOSSES:
        case = Case("SVC", {"kernel": kernel, "loss": loss}, X, y, weight, f"seed {seed}")
        assert_none(checks.small(case), case)


@settings(few, max_examples=4)
@given(seed=seeds, C=st.sampled_from([1e-3, 1.0, 1e5]))
def test_precomputed_kernels_are_certified_truly(seed, C):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 20, 3)
    indefinite = rng.normal(size=(20, 20))
    for K in (X @ X.T, np.exp(-np.abs(X[:, :1] - X[:, 0])), (indefinite + indefinite.T) / 2):
        K = (K + K.T) / 2
        case = Case("SVC", {"kernel": "precomputed", "C": C}, K, y, None, f"seed {seed}")
        assert_none(checks.small(case), case)


@pytest.mark.parametrize(
    ("shape", "seed"), [("outliers", 0), ("outliers", 1), ("heavy tails", 2), ("offset", 0)]
)
def test_certificates_of_many_rows_hold_for_every_row(shape, seed):
    case = large_case(shape, seed)
    assert_none(checks.large(case, 60.0), case)


def test_few_far_rows_with_both_labels_are_not_overlooked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=6000) > 0, 1, -1)
    X[50:56] = 2000 + 0.7 * rng.normal(size=(6, 5))
    y[50:56] = [1, 1, 1, -1, -1, -1]
    case = Case("SVC", {"gamma": 1.0}, X, y, None, "six rows at 2000")
    assert_none(checks.large(case, 60.0), case)


@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_converged_means_a_small_gap_too(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += y
    case = Case("SVC", {"kernel": "linear"}, scale * X, y, None, f"scale {scale:g}")
    assert_none(checks.large(case, 60.0), case)


@few
@given(seed=seeds, sample=st.sampled_from([32, 128]), lies=st.integers(1, 5))
def test_lies_about_few_scores_are_not_certified(seed, sample, lies):
    # Scores that a solver hands over are wrong in a few rows: what was not recomputed is not known.
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 1500, 2, noise=0.0)
    case = Case("SVC", {"kernel": ("rbf", 0.5), "tol": 1e-4}, X, y)
    answer = checks.run(case)
    assert answer["status"] == "converged"
    labels, b = np.where(y == 1, 1.0, -1.0), float(answer["intercept"][0])
    alpha = checks.alpha_of(answer, labels)
    scores, _ = oracles.float_scores(("rbf", 0.5), X, alpha * labels)
    # Flip rows of α = 0 far from the margin to the other class, and say that they were right.
    idle = np.flatnonzero((alpha == 0) & (labels * (scores + b) > 1.5))
    wrong = rng.choice(idle, size=lies, replace=False)
    flipped = labels.copy()
    flipped[wrong] *= -1
    forged = scores.copy()
    forged[wrong] = -scores[wrong] - 2.0 * b
    request = {"kernel": ("rbf", 0.5), "X": X, "y": flipped, "C": 1.0, "alpha": alpha, "b": b}
    claim = checks.WORKER.ask("certify", **request, scores=forged, sample=sample)["certificate"]
    honest = checks.WORKER.ask("certify", **request)["certificate"]
    assert honest["violation"] > 1.0
    assert not honest["holds"][0.1]
    if claim["holds"][0.1]:
        # Nothing but a sampled certificate, which says so, can be deceived.
        assert not checks.coverage({"certificate": claim}, len(y))
        assert claim["coverage"] == "sampled"


def test_the_oracle_knows_the_textbook():
    # Six points: α = (8/225, 0, 1/25, 0, 17/225, 0), w = (−1/3, 1/5), b = 2/15.
    X = oracles.rational(np.array([[1, 6], [1, 10], [4, 11], [5, 2], [7, 6], [10, 4]]))
    y = [1, 1, 1, -1, -1, -1]
    alpha = [Fraction(8, 225), 0, Fraction(1, 25), 0, Fraction(17, 225), 0]
    machine = oracles.Machine(y, [None] * 6)
    truth = oracles.kernel_truth(machine, ("linear",), X, alpha, Fraction(2, 15))
    assert truth.violation == truth.relative_gap == truth.balance == truth.box == 0.0
    assert truth.primal == truth.dual == pytest.approx(17 / 225)
    off = oracles.kernel_truth(machine, ("linear",), X, alpha, Fraction(2, 15) + Fraction(1, 8))
    assert off.violation == 0.125
    assert off.relative_gap > 0
