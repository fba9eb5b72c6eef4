"""Every fit of at most 2,000 rows ends, and its words follow the verdict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from . import checks, oracles
from .generators import LOSSES, SHAPES, Case, cloud, medium_case, seeds

few = settings(max_examples=2, deadline=None, phases=(Phase.explicit, Phase.generate))


def assert_none(found, case):
    assert not found, "\n".join([str(case), *found])


def unscaled_line():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, 1, -1)
    return "SVC", {"kernel": "linear", "loss": "squared_hinge"}, 1e4 * X, y


def unscaled_polynomial():
    rng = np.random.default_rng(0)
    X = 10 * rng.normal(size=(600, 3))
    y = np.where(X[:, 0] + 10 * rng.normal(size=600) > 0, 1, -1)
    return "SVC", {"kernel": "poly", "gamma": 1.0, "coef0": 1.0}, X, y


def uneven_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)
    return "SVC", {"kernel": "linear"}, X * [1e-8, 1.0, 1e8], y


def far_from_the_origin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)
    return "SVC", {"kernel": "linear", "solver": "active-set"}, X + 1e7, y


def raw_measurements():
    # Salaries beside ages: 2,000 rows, noisy labels, a linear kernel.
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(18, 90, 2000), rng.lognormal(10.5, 0.6, 2000)])
    y = np.where(X[:, 0] / 40 + np.log(X[:, 1]) / 10 + 0.4 * rng.normal(size=2000) > 2.3, 1, -1)
    return "SVC", {"kernel": "linear"}, X, y


def many_raw_features():
    rng = np.random.default_rng(0)
    X = np.round(480 + 40 * rng.normal(size=(1500, 300)))
    y = np.where(X[:, 0] - X[:, 1] + 60 * rng.normal(size=1500) > 0, 1, -1)
    return "SVC", {"kernel": "linear"}, X, y


@pytest.mark.parametrize(
    "make",
    [
        unscaled_line,
        unscaled_polynomial,
        uneven_columns,
        far_from_the_origin,
        raw_measurements,
        many_raw_features,
    ],
)
def test_unscaled_data_end(make):
    case = Case(*make(), None, make.__name__)
    assert_none(checks.large(case), case)


@pytest.mark.parametrize("shape", sorted(SHAPES))
@few
@given(seed=seeds)
def test_fits_of_all_shapes_end(shape, seed):
    case = medium_case(shape, seed, rows=(100, 500))
    assert_none(checks.large(case), case)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("kernel", "solver"),
    [
        ("linear", "auto"),
        ("linear", "active-set"),
        ("linear", "smo"),
        ("linear", "qp"),
        ("rbf", "auto"),
        ("rbf", "active-set"),
        ("poly", "auto"),
        ("poly", "decomposition"),
    ],
)
@few
@given(seed=seeds, scale=st.sampled_from([1e-6, 1e-3, 1e2, 1e4]), C=st.sampled_from([1.0, 1e4]))
def test_scales_and_costs_do_not_prevent_an_end(kernel, solver, loss, seed, scale, C):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 150, 2, noise=1.0)
    params = {"C": C, "kernel": kernel, "loss": loss, "solver": solver, "gamma": 1.0, "coef0": 1.0}
    case = Case("SVC", params, X * scale, y, None, f"seed {seed}, scale {scale:g}")
    assert_none(checks.large(case), case)


@pytest.mark.parametrize("solver", ["auto", "newton", "interior-point", "coordinate-descent"])
@pytest.mark.parametrize("penalize", [False, True])
def test_linear_machines_survive_any_unit_and_weight(solver, penalize):
    rng = np.random.default_rng(0)
    X, y = cloud(rng, 60, 2)
    for factor, power in ((1e5, 0), (1e-5, 0), (1.0, 11), (1e3, -11)):
        weight = None if power == 0 else 10.0 ** rng.uniform(min(power, 0), max(power, 0), 60)
        for loss in LOSSES:
            params = {"solver": solver, "penalize_intercept": penalize, "loss": loss}
            case = Case("LinearSVC", params, X * [factor, 1.0], y, weight, f"column of {factor:g}")
            assert_none(checks.small(case), case)


@pytest.mark.parametrize("limit", [1e-6, 1e-3, 0.02, 0.1])
@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "rbf", "gamma": 1.0},
        {"kernel": "linear"},
        {"kernel": "linear", "loss": "squared_hinge"},
        {"kernel": "rbf", "gamma": 1.0, "solver": "smo"},
        {"kernel": "linear", "C": 1e4},
        {},
        {"loss": "hinge", "C": 1e3},
    ],
    ids=str,
)
def test_models_of_a_time_limit_are_no_worse_than_none(params, limit):
    rng = np.random.default_rng(0)
    X, y = cloud(rng, 800, 3, noise=1.0)
    estimator = "SVC" if "kernel" in params else "LinearSVC"
    case = Case(estimator, {**params, "time_limit": limit}, 30.0 * X, y, None, f"limit {limit:g}")
    answer = checks.run(case)
    assert_none(checks.ended(answer), case)
    found = checks.warned(case, answer)
    labels = np.where(case.y == answer["classes"][1], 1.0, -1.0)
    loss = params.get("loss", "hinge" if estimator == "SVC" else "squared_hinge")
    cost = np.full(len(labels), params.get("C", 1.0))
    if estimator == "SVC":
        beta = checks.alpha_of(answer, labels) * labels
        scores, _ = oracles.float_scores(answer["kernel"], case.X, beta)
        square = float(beta @ scores)
    else:
        scores, square = case.X @ answer["coef"][0], float(answer["coef"][0] @ answer["coef"][0])
    slack = np.maximum(1.0 - labels * (scores + answer["intercept"][0]), 0.0)
    primal = 0.5 * square + float(cost @ (slack if loss == "hinge" else slack**2))
    nothing = float(checks.posed(case, labels.astype(int)).at_zero)
    if not primal <= nothing * (1 + 1e-6):
        found.append(f"worse than w = 0: P = {primal:g}, that of w = 0 is {nothing:g}")
    claimed = answer["certificate"]["primal"]
    if not claimed >= primal * (1 - 1e-6):
        found.append(f"primal: claimed {claimed:g}, true {primal:g}")
    assert_none(found, case)


@pytest.mark.parametrize("solver", ["auto", "smo", "decomposition", "active-set", "qp"])
def test_limits_of_iterations_are_said(solver):
    rng = np.random.default_rng(1)
    X, y = cloud(rng, 200, 3, noise=1.0)
    case = Case("SVC", {"max_iter": 3, "solver": solver, "gamma": 1.0}, X, y, None, "3 steps")
    assert_none(checks.large(case), case)
