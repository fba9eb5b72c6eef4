"""SVRCV finds what GridSearchCV finds with SVR, and every fit of it is certified."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm

CS, GAMMAS = [0.1, 3.0, 100.0], [0.1, 2.0]


def data(n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    return X, 100.0 + 3.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "squared_epsilon_insensitive"},
        {"fit_intercept": False},
        {"epsilon": 0.5, "kernel": "poly", "coef0": 1.0},
        {"scoring": "neg_mean_absolute_error"},
    ],
    ids=str,
)
def test_scores_are_those_of_grid_search(options):
    X, y = data()
    scoring = options.pop("scoring", None)
    given = {"tol": 1e-6, **options}
    model = mm.SVRCV(CS, GAMMAS, cv=4, scoring=scoring, **given).fit(X, y)
    expected = GridSearchCV(
        mm.SVR(**given), {"C": CS, "gamma": GAMMAS}, cv=4, scoring=scoring, refit=False
    ).fit(X, y).cv_results_  # fmt: skip
    assert model.cv_results_["params"] == expected["params"]
    for name in ("split0_test_score", "split3_test_score", "mean_test_score"):
        np.testing.assert_allclose(model.cv_results_[name], expected[name], rtol=1e-4, atol=1e-5)
    assert model.cv_results_["certified"].all()
    best = mm.SVR(**given, C=model.C_, gamma=model.gamma_).fit(X, y)
    np.testing.assert_allclose(model.predict(X), best.predict(X))
    assert isinstance(model, mm.SVR)
    assert model.certificate_.holds(1e-6)


def test_weights():
    X, y = data()
    weights = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    model = mm.SVRCV(CS, GAMMAS, cv=3, tol=1e-6).fit(X, y, sample_weight=weights)
    grid = GridSearchCV(mm.SVR(tol=1e-6), {"C": CS, "gamma": GAMMAS}, cv=3, refit=False)
    expected = grid.fit(X, y, sample_weight=weights).cv_results_
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], expected["mean_test_score"], rtol=1e-4, atol=1e-5
    )


@parametrize_with_checks([mm.SVRCV(CS[:2], GAMMAS[:1], cv=2, error_score=0.0)])
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)
