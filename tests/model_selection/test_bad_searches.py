"""What all searches do with bad input: classifiers and regressions, kernels and planes."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold

import maxmargin as mm
from maxmargin.model_selection import linear_svc_cv

CS = [0.1, 1.0, 10.0]
SEARCHES = [(mm.SVCCV, {"gammas": [0.1, 1.0]}), (mm.SVRCV, {"gammas": [0.1, 1.0]}),
            (mm.LinearSVCCV, {})]  # fmt: skip
every = pytest.mark.parametrize(("kind", "options"), SEARCHES)


def data():
    X, y = make_classification(90, 4, n_informative=3, n_redundant=0, random_state=0)
    return X, y.astype(float)


@every
def test_grid_of_one(kind, options):
    one = {"gammas": [0.5]} if options else {}
    model = kind([1.0], **one, cv=3).fit(*data())
    assert model.best_index_ == 0
    assert model.C_ == 1.0
    assert model.cv_results_["rank_test_score"].tolist() == [1]
    assert kind([1.0], **one, cv=3, one_standard_error=True).fit(*data()).C_ == 1.0


@every
def test_empty_grid(kind, options):
    with pytest.raises(ValueError, match="Cs must hold"):
        kind([], **options).fit(*data())
    if options:
        with pytest.raises(ValueError, match="gammas must hold"):
            kind(CS, gammas=[]).fit(*data())


@every
def test_groups(kind, options):
    X, y = data()
    groups = np.arange(y.size) // 10
    model = kind(CS, **options, cv=GroupKFold(3), tol=1e-6).fit(X, y, groups=groups)
    axes = {"C": CS, **({"gamma": options["gammas"]} if options else {})}
    same = GridSearchCV(kind._machine(tol=1e-6), axes, cv=GroupKFold(3), refit=False)
    expected = same.fit(X, y, groups=groups).cv_results_["mean_test_score"]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected, atol=1e-4)
    with pytest.raises(ValueError, match="groups"):
        kind(CS, **options, cv=GroupKFold(3)).fit(X, y)


@every
def test_constant_and_missing_scores(kind, options):
    X, y = data()
    constant = kind(CS, **options, cv=3, scoring=lambda model, X, y: 0.5).fit(X, y)
    assert constant.best_index_ == 0
    assert set(constant.cv_results_["rank_test_score"]) == {1}
    with pytest.raises(ValueError, match="No candidate has a score"):
        kind(CS, **options, cv=3, scoring=lambda model, X, y: np.nan).fit(X, y)


@every
def test_a_scorer_that_raises(kind, options):
    X, y = data()

    def first_fold(model, X, y):
        if len(y) == 31:
            raise RuntimeError("no score")
        return float(np.mean(np.abs(model.predict(X))))

    folds = [(np.arange(31, 90), np.arange(31)), (np.arange(60), np.arange(60, 90))]
    with pytest.raises(RuntimeError, match="no score"):
        kind(CS, **options, cv=folds, scoring=first_fold, error_score="raise").fit(X, y)
    with pytest.warns(UserWarning, match="set to -7"):
        model = kind(CS, **options, cv=folds, scoring=first_fold, error_score=-7.0).fit(X, y)
    assert set(model.cv_results_["split0_test_score"]) == {-7.0}
    assert (model.cv_results_["split1_test_score"] >= 0.0).all()


@every
def test_interrupted_between_folds(kind, options, monkeypatch):
    """The best on complete folds can be fitted where no candidate has all folds."""
    X, y = data()
    fold_by_fold = {**options, "strategy": "halving"} if options else {}
    whole = kind(CS, **options, cv=3).fit(X, y)
    monkeypatch.setattr(linear_svc_cv, "SIDE_BY_SIDE_NUMBERS", 0)
    monkeypatch.setattr(linear_svc_cv, "folds_at_once", lambda *given: None)
    calls = []

    def after_one_fold(model, X, y):
        calls.append(1)
        if len(calls) > len(whole.cv_results_["params"]):
            raise KeyboardInterrupt
        return model.score(X, y)

    model = kind(CS, **fold_by_fold, cv=3, scoring=after_one_fold)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not model.is_complete_
    first = model.cv_results_["split0_test_score"]
    np.testing.assert_allclose(first, whole.cv_results_["split0_test_score"], atol=1e-3)
    assert model.best_score_ == first.max()
    assert model.fit_best(X, y).predict(X).shape == y.shape


@every
def test_interrupted_at_once(kind, options, monkeypatch):
    X, y = data()

    def interrupted(*args):
        raise KeyboardInterrupt

    model = kind(CS, **options, cv=3, scoring=interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.fit_best(X, y)


@every
def test_splits_may_count_rows_from_the_end(kind, options):
    X, y = data()
    splits = [(np.arange(-60, 0), np.arange(30)), (np.arange(60), np.arange(-30, 0))]
    same = [(np.arange(90)[train], np.arange(90)[test]) for train, test in splits]
    found, expected = (  # by one thread: several may add up in another order
        kind(CS, **options, cv=each, n_jobs=1).fit(X, y).cv_results_ for each in (splits, same)
    )
    np.testing.assert_array_equal(found["mean_test_score"], expected["mean_test_score"])
    with pytest.raises(IndexError, match="out of bounds"):
        kind(CS, **options, cv=[(np.arange(60), np.array([90]))]).fit(X, y)
