"""Searches whose columns are prepared in every fold."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.estimators.claims import TimeLimit
from maxmargin.model_selection.families import Family
from maxmargin.model_selection.prepared_folds import GridOnFolds, PreparedFolds
from maxmargin.model_selection.prepared_search import PreparedSearch

AXES = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}


@pytest.fixture(scope="module")
def fruit():
    bunch = mm.datasets.load_fruit()
    return bunch.data, bunch.target_names[bunch.target]


@pytest.fixture(scope="module")
def folds(fruit):
    X, y = fruit
    splits = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    return PreparedFolds(X, y, StandardScaler(), splits)


@pytest.mark.parametrize(
    ("model", "axes"),
    [
        (mm.SVC(), AXES),
        (mm.SVC(kernel="linear", class_weight="balanced"), {"C": [0.1, 1.0]}),
        (mm.LinearSVC(), {"C": [0.01, 0.1]}),
        (mm.NuSVC(), {"nu": [0.1, 0.3], "gamma": [0.1, 1.0]}),
    ],
)
@pytest.mark.filterwarnings("ignore:NuSVC")
def test_scores_are_those_of_grid_search_over_the_pipeline(fruit, folds, model, axes):
    search = PreparedSearch([Family("it", model, axes)], folds)
    search.run()
    assert search.is_complete
    (grid,) = search.grids
    pipeline = Pipeline([("prepared", StandardScaler()), ("it", model)])
    named = {f"it__{name}": values for name, values in axes.items()}
    expected = GridSearchCV(pipeline, named, cv=folds.splits).fit(*fruit).cv_results_
    table = grid.results.table()
    # scikit-learn sorts the parameters by name.
    order = [expected["params"].index({f"it__{name}": value for name, value in each.items()})
             for each in table["params"]]  # fmt: skip
    for name in ("mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(table[name], expected[name][order], atol=1e-12)
    assert table["certified"].all()


def test_a_fine_grid_lies_around_the_best(folds):
    family = Family("svc", mm.SVC(), AXES, refined=("C", "gamma"))
    search = PreparedSearch([family], folds)
    told = []
    search.run(lambda n, best: told.append((n, best)))
    coarse, fine = search.grids
    best = coarse.results.candidates[coarse.results.best()]
    steps = 10.0 ** (np.arange(-2, 3) / 3.0)
    np.testing.assert_allclose(fine.family.axes["C"], best["C"] * steps, rtol=1e-5)
    assert sum(n for n, _ in told) == pytest.approx(search.n_fits)
    assert search.n_fits == 4 * (9 + 25)
    chosen = search.chosen()
    assert chosen.mean == max(np.nanmax(grid.results.means()) for grid in search.grids)
    assert told[-1][1] == pytest.approx(fine.results.means().max())
    assert len(search.ranked()) == 9 + 25 - 1  # the centre is in both


def test_values_that_are_given_are_not_refined(folds):
    family = Family("svc", mm.SVC(), {"C": [1.0, 10.0], "gamma": ["scale"]}, refined=("C",))
    finer = family.around({"C": 10.0, "gamma": "scale"})
    assert finer.axes["gamma"] == ["scale"]
    assert len(finer.axes["C"]) == 5
    assert Family("svc", mm.SVC(), AXES).around({"C": 1.0, "gamma": 0.1}) is None
    nu = Family("nusvc", mm.NuSVC(), {"nu": [0.01, 0.9]}, refined=("nu",))
    assert max(nu.around({"nu": 0.9}).axes["nu"]) <= 1.0


def test_of_equal_scores_the_first_family_and_the_simplest_are_chosen(folds):
    families = [Family(name, mm.SVC(), {"C": [1.0, 1.001]}) for name in ("one", "two")]
    search = PreparedSearch(families, folds)
    search.run()
    assert len({each.mean for each in search.ranked()}) == 1
    assert search.chosen().family.name == "one"
    assert search.chosen().parameters == {"C": 1.0}


def test_nu_that_is_infeasible_has_no_score(folds):
    rows = np.flatnonzero(np.isin(folds.y, ["apple", "lemon"]))[10:]  # fewer apples
    X, y = folds.X[rows], folds.y[rows]
    few = PreparedFolds(X, y, StandardScaler(), list(StratifiedKFold(2).split(X, y)))
    search = PreparedSearch([Family("nusvc", mm.NuSVC(), {"nu": [0.2, 1.0]})], few)
    search.run()
    assert [each.parameters["nu"] for each in search.ranked()] == [0.2]


@pytest.mark.parametrize("strategy", ["bounded", "halving"])
def test_strategies(folds, strategy):
    families = [Family("svc", mm.SVC(), AXES)]
    every, some = PreparedSearch(families, folds), PreparedSearch(families, folds, None, strategy)
    every.run()
    some.run()
    scores, known = every.grids[0].results.scores, some.grids[0].results.scores
    scored = ~np.isnan(known)
    np.testing.assert_array_equal(known[scored], scores[scored])
    counts = scored.sum(axis=0)
    assert counts[0] == 9
    assert (np.diff(counts) <= 0).all()
    if strategy == "halving":
        assert (counts < 9)[1:].all()
    else:
        assert some.chosen().parameters == every.chosen().parameters


def test_an_interrupted_search_keeps_complete_folds(folds):
    family = Family("svc", mm.SVC(), AXES, refined=("C", "gamma"))
    whole = PreparedSearch([family], folds)
    whole.run()

    def stopped_after(n_fits):
        search, told = PreparedSearch([family], folds), []

        def tell(n, best):
            told.append(n)
            if sum(told) > n_fits + 0.5:  # within the next fold
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            search.run(tell)
        assert not search.is_complete
        return search

    first = stopped_after(2 * 9)
    assert {each.scores.size for each in first.ranked()} == {2}
    scores = whole.grids[0].results.scores[:, :2].mean(axis=1)
    assert first.chosen().mean == pytest.approx(scores.max())
    # Scores on some folds are not compared with those on all.
    second = stopped_after(4 * 9 + 2 * 25)
    assert {each.scores.size for each in second.ranked()} == {4}
    assert second.chosen().mean == pytest.approx(whole.grids[0].results.means().max())


def test_a_search_ends_at_its_time_limit(folds):
    search = PreparedSearch([Family("svc", mm.SVC(), AXES)], folds, time_limit=1e-9)
    search.run()
    assert not search.is_complete
    assert search.chosen() is None


@pytest.mark.filterwarnings("ignore:NuSVC")
@pytest.mark.parametrize(
    "family", [Family("svc", mm.SVC(), AXES), Family("nusvc", mm.NuSVC(), {"nu": [0.1, 0.3]})]
)
def test_fits_that_the_time_limit_ended_have_no_score(folds, monkeypatch, family):
    whole = PreparedSearch([family], folds)
    whole.run()
    full = whole.grids[0].results.scores
    search, left, take = PreparedSearch([family], folds), TimeLimit.left, GridOnFolds._was_cut_short

    def cut_short(self, k, wanted, time_limit):
        if k == 1:  # the time is over in the second fold, the last fit unfinished
            self.results.holds[wanted[-1], k] = False
            with monkeypatch.context() as patch:
                patch.setattr(TimeLimit, "left", lambda self, share: 0.0)
                return take(self, k, wanted, time_limit)
        return take(self, k, wanted, time_limit)

    monkeypatch.setattr(GridOnFolds, "_was_cut_short", cut_short)
    search.run()
    assert TimeLimit.left is left
    assert not search.is_complete
    scores = search.grids[0].results.scores
    assert np.isnan(scores[-1, 1])
    np.testing.assert_array_equal(scores[:-1, 1], full[:-1, 1])
    assert {each.scores.size for each in search.ranked()} == {1}
    assert search.chosen().mean == pytest.approx(full[:, 0].max())
    assert search.n_candidates == len(full)


def test_scores_that_are_not_numbers(fruit):
    X, y = fruit
    two = np.isin(y, ["apple", "lemon"])
    X, y = X[two], y[two]
    one_row = PreparedFolds(X, y, StandardScaler(), [(np.arange(1, y.size), np.arange(1))])
    for model in mm.SVC(), mm.LinearSVC():
        search = PreparedSearch([Family("it", model, {"C": [1.0]})], one_row, "roc_auc")
        with pytest.warns(UserWarning, match="one class"):
            search.run()
        assert search.is_complete
        assert search.chosen() is None


def test_one_standard_error_is_the_simplest_near_the_best(folds):
    search = PreparedSearch([Family("svc", mm.SVC(), AXES)], folds)
    search.run()
    best, simple = search.chosen(), search.chosen(one_standard_error=True)
    assert simple.mean >= best.mean - best.standard_error
    key = [(each.parameters["C"], each.parameters["gamma"]) for each in search.ranked()
           if each.mean >= best.mean - best.standard_error]  # fmt: skip
    assert (simple.parameters["C"], simple.parameters["gamma"]) == min(key)
