"""LinearSVCCV finds what GridSearchCV finds with LinearSVC, and every fit of it is certified."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm

CS = [1.0, 0.01, 100.0]


def data(classes=2, n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    level = X[:, 0] - X[:, 1] + 0.7 * rng.standard_normal(n)
    return X, np.digitize(level, np.quantile(level, np.arange(1, classes) / classes))


def grid(options, X, y, cv=4, **given):
    model = mm.LinearSVC(**options)
    return GridSearchCV(model, {"C": CS}, cv=cv, refit=False).fit(X, y, **given).cv_results_


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "hinge"},
        {"class_weight": "balanced", "fit_intercept": False},
        {"multi_class": "ovo"},
        {"penalty": "l1"},
    ],
    ids=str,
)
def test_scores_are_those_of_grid_search(classes, options):
    X, y = data(classes)
    options = {"tol": 1e-8, **options}
    model = mm.LinearSVCCV(CS, cv=4, **options).fit(X, y)
    expected = grid(options, X, y)
    assert model.cv_results_["params"] == expected["params"]
    for name in ("split0_test_score", "split3_test_score", "mean_test_score"):
        np.testing.assert_allclose(model.cv_results_[name], expected[name])
    assert model.cv_results_["certified"].all()
    best = mm.LinearSVC(C=model.C_, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-6)
    assert isinstance(model, mm.LinearSVC)


def test_sparse_rows_and_weights():
    X, y = data()
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.4, X, 0.0))
    weights = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    model = mm.LinearSVCCV(CS, cv=3, tol=1e-8).fit(rows, y, sample_weight=weights)
    expected = grid({"tol": 1e-8}, rows, y, cv=3, sample_weight=weights)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected["mean_test_score"])


def test_defaults_and_one_standard_error():
    X, y = data()
    model = mm.LinearSVCCV().fit(X, y)
    assert len(model.cv_results_["params"]) == 10
    assert model.cv_results_["param_C"].min() == pytest.approx(1e-4)
    simple = mm.LinearSVCCV(one_standard_error=True).fit(X, y)
    assert simple.C_ <= model.C_
    assert simple.cv_results_["mean_test_score"][simple.best_index_] <= model.best_score_


def test_what_goes_wrong():
    X, y = data()
    order = np.argsort(y)
    with pytest.warns(FitFailedWarning), pytest.raises(ValueError, match="No candidate"):
        mm.LinearSVCCV(CS, cv=KFold(2)).fit(X[order], np.sort(y))
    with pytest.raises(ValueError, match="Cs must hold"):
        mm.LinearSVCCV([-1.0]).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = mm.LinearSVCCV(CS, time_limit=1e-9).fit(X, y)
    assert not model.is_complete_

    def raises(model, X, y):
        raise RuntimeError("no score")

    with pytest.raises(RuntimeError, match="no score"):
        mm.LinearSVCCV(CS, scoring=raises, error_score="raise").fit(X, y)


def test_progress_is_printed(capsys):
    mm.LinearSVCCV(CS, cv=3, verbose=True).fit(*data())
    assert "9 of 9 fits" in capsys.readouterr().out


@parametrize_with_checks([mm.LinearSVCCV(CS[:2], cv=2, error_score=0.0)])
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)
