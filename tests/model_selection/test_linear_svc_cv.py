"""LinearSVCCV finds what GridSearchCV finds with LinearSVC, and every fit of it is certified."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm
from maxmargin.model_selection import linear_grid, linear_svc_cv
from maxmargin.solvers.primal import hinge_grid, plane_grid

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
        {"loss": "hinge", "class_weight": "balanced", "fit_intercept": False},
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


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sparse_rows_and_weights(loss):
    X, y = data()
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.4, X, 0.0))
    weights = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    options = {"tol": 1e-8, "loss": loss}
    model = mm.LinearSVCCV(CS, cv=3, **options).fit(rows, y, sample_weight=weights)
    expected = grid(options, rows, y, cv=3, sample_weight=weights)
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


@pytest.mark.parametrize("kind", [np.array, np.float32, sparse.csr_matrix])
@pytest.mark.parametrize("penalize_intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_folds_at_once_are_those_one_by_one(monkeypatch, loss, penalize_intercept, kind):
    X, y = data(3)
    X, weights = kind(X), np.random.default_rng(1).integers(0, 3, y.size).astype(float)
    options = {
        "class_weight": "balanced", "penalize_intercept": penalize_intercept, "cv": 4,
        "loss": loss, "tol": 1e-7,
    }  # fmt: skip
    together = mm.LinearSVCCV([*CS, 1e-3], **options).fit(X, y, sample_weight=weights)
    monkeypatch.setattr(linear_svc_cv, "folds_at_once", lambda *given: None)
    apart = mm.LinearSVCCV([*CS, 1e-3], **options).fit(X, y, sample_weight=weights)
    for k in range(4):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(together.cv_results_[name], apart.cv_results_[name])
    assert together.cv_results_["certified"].all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_nothing_is_left_to_fits_one_by_one(monkeypatch, loss):
    monkeypatch.setattr(linear_svc_cv._Paths, "_fold", lambda *given: None)
    model = mm.LinearSVCCV(cv=4, loss=loss, refit=False).fit(*data(3))
    assert model.cv_results_["certified"].all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_what_is_not_proved_at_once_is_fitted_apart(monkeypatch, loss):
    monkeypatch.setattr(plane_grid, "MOST_STEPS", 1)
    monkeypatch.setattr(hinge_grid, "TUNING", hinge_grid.Tuning(most_steps=1))
    X, y = data()
    options = {"tol": 1e-8, "loss": loss}
    model = mm.LinearSVCCV(CS, cv=3, **options).fit(X, y)
    assert model.cv_results_["certified"].all()
    expected = grid(options, X, y, cv=3)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected["mean_test_score"])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_columns_of_very_different_scales(shift, loss):
    X, y = data()
    X = X * 10.0 ** np.array([-6, 0, 3, 6, -2]) + shift
    model = mm.LinearSVCCV([1e-4, 1.0], cv=3, loss=loss).fit(X, y)
    assert model.cv_results_["certified"].all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_fold_that_lacks_a_class_of_three(loss):
    X, y = data(3)
    y[:] = np.where(np.arange(y.size) < 50, y, y % 2)  # the third class is in the first fold alone
    model = mm.LinearSVCCV(CS, cv=KFold(3), tol=1e-7, loss=loss).fit(X, y)
    expected = grid({"tol": 1e-7, "loss": loss}, X, y, cv=KFold(3))
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected["mean_test_score"])


def test_scorers_that_need_whole_fits():
    def fewest_steps(model, X, y):
        return -float(np.max(model.n_iter_))

    model = mm.LinearSVCCV(CS, cv=3, scoring=fewest_steps).fit(*data())
    assert (model.cv_results_["mean_test_score"] < 0.0).all()


def test_folds_are_solved_by_as_many_as_memory_allows(monkeypatch):
    X, y = data(3, n=60)
    together = mm.LinearSVCCV(CS, cv=5).fit(X, y)
    monkeypatch.setattr(linear_svc_cv, "FOLD_NUMBERS", 2 * 60)
    monkeypatch.setattr(linear_svc_cv._Paths, "_fold", lambda *given: None)
    by_two = mm.LinearSVCCV(CS, cv=5).fit(X, y)
    for name in ("mean_test_score", "certified"):
        np.testing.assert_array_equal(by_two.cv_results_[name], together.cv_results_[name])


@pytest.mark.parametrize(
    ("loss", "name"), [("hinge", "certify_hinges"), ("squared_hinge", "certify_planes")]
)
def test_nothing_is_certified_after_the_time_limit(monkeypatch, loss, name):
    late, asked = [], []
    certify = getattr(linear_grid, name)

    def slow(*given, **named):
        asked.append(given)
        late.append(True)
        return certify(*given, **named)

    monkeypatch.setattr(linear_grid, name, slow)
    monkeypatch.setattr(linear_svc_cv._Paths, "_is_late", lambda self: bool(late))
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = mm.LinearSVCCV(CS, cv=3, time_limit=100.0, loss=loss).fit(*data())
    assert len(asked) == 1
    assert model.best_params_ == {"C": min(CS)}  # the costs ascend


def test_folds_side_by_side_leave_the_filters_of_warnings_alone():
    with warnings.catch_warnings():
        before = list(warnings.filters)
        for _ in range(5):  # what threads do to each other depends on chance
            mm.LinearSVCCV(CS, penalty="l1", cv=6, refit=False).fit(*data())
            assert list(warnings.filters) == before
