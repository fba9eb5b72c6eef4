"""SVCCV finds what GridSearchCV finds with SVC, and every fit of it is certified."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score, check_scoring, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm
from maxmargin.engines.cpu import cost_descent, cost_grid, engine
from maxmargin.kernels import RBF, Polynomial
from maxmargin.model_selection import kernel_grid, search, strategies
from maxmargin.solvers.dual import cost_grid as costs_of_tasks
from maxmargin.solvers.dual.cost_grid import solve_small_costs

CS, GAMMAS = [0.05, 1.0, 30.0], [0.02, 0.5, 4.0]


def data(classes=2, n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    level = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.4 * rng.standard_normal(n)
    y = np.digitize(level, np.quantile(level, np.arange(1, classes) / classes))
    return X, np.array(["a", "b", "c", "d"])[y]


def grid(model, X, y, cv=4, scoring=None, parameters=None, **options):
    parameters = parameters or {"C": CS, "gamma": GAMMAS}
    found = GridSearchCV(model, parameters, cv=cv, scoring=scoring, refit=False)
    return found.fit(X, y, **options).cv_results_


def check_same(found, expected, per_sample=0.0):
    """Assert the same candidates and scores; samples on a plane may be off by so much of a fold."""
    assert [dict(each) for each in found["params"]] == [dict(each) for each in expected["params"]]
    splits = [name for name in expected if name.startswith("split")]
    for name in [*splits, "mean_test_score", "std_test_score"]:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-12 + per_sample)
    if not per_sample:
        np.testing.assert_array_equal(found["rank_test_score"], expected["rank_test_score"])


# What is about many classes is tested with three of them, the rest with two.
OPTIONS = [
    (2, {}),
    (3, {}),
    (2, {"loss": "squared_hinge"}),
    (3, {"class_weight": "balanced"}),
    (2, {"fit_intercept": False}),
    (3, {"multi_class": "ovr", "tol": 1e-6}),
    (2, {"kernel": "poly", "coef0": 1.0, "degree": 2, "tol": 1e-6}),
    (3, {"break_ties": True}),
    (2, {"max_iter": 100000}),
]
OTHERS = [(5 - classes, options) for classes, options in OPTIONS if options]


@pytest.mark.parametrize(
    ("classes", "options"),
    [*OPTIONS, *(pytest.param(*other, marks=pytest.mark.slow) for other in OTHERS)],
    ids=str,
)
def test_scores_are_those_of_grid_search(classes, options):
    X, y = data(classes)
    model = mm.SVCCV(Cs=CS, gammas=GAMMAS, cv=4, **options).fit(X, y)
    check_same(model.cv_results_, grid(mm.SVC(**options), X, y))
    assert model.cv_results_["certified"].all()
    assert (model.cv_results_["worst_gap"] <= 2.0 * model.tol).all()
    best = mm.SVC(**options, C=model.C_, gamma=model.gamma_).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), best.predict(X))
    np.testing.assert_allclose(model.decision_function(X), best.decision_function(X), atol=1e-9)
    assert model.certificate_.holds(model.tol)
    assert isinstance(model, mm.SVC)
    assert model.best_params_ == {"C": model.C_, "gamma": model.gamma_}
    assert model.best_score_ == model.cv_results_["mean_test_score"][model.best_index_]


@pytest.mark.parametrize("scoring", ["roc_auc", "f1_macro", "balanced_accuracy", "callable"])
def test_scorers(scoring):
    X, y = data(2)
    if scoring == "callable":
        scoring = make_scorer(lambda truth, answer: float(np.mean(truth == answer)) ** 2)
    found = mm.SVCCV(CS, GAMMAS, cv=4, scoring=scoring, tol=1e-5).fit(X, y)
    expected = grid(mm.SVC(tol=1e-5), X, y, scoring=scoring)
    check_same(found.cv_results_, expected, per_sample=2e-3)


def test_other_rows_and_kernels():
    X, y = data(3)
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    check_same(mm.SVCCV(CS, GAMMAS, cv=4).fit(rows, y).cv_results_, grid(mm.SVC(), rows, y))
    kernels = [RBF(0.5), Polynomial(degree=2, gamma=0.3, coef0=1.0), "linear"]
    found = mm.SVCCV(CS, kernel=kernels, cv=4).fit(X, y)
    check_same(found.cv_results_, grid(mm.SVC(), X, y, parameters={"C": CS, "kernel": kernels}))
    assert not hasattr(found, "gamma_")
    K = RBF(0.5)(X)
    found = mm.SVCCV(CS, kernel="precomputed", cv=4).fit(K, y)
    expected = grid(mm.SVC(), K, y, parameters={"C": CS, "kernel": ["precomputed"]})
    check_same(found.cv_results_, expected)
    np.testing.assert_array_equal(
        found.predict(K), mm.SVC(kernel="precomputed", C=found.C_).fit(K, y).predict(K)
    )


def test_gamma_of_the_folds():
    X, y = data()
    given = ["scale", 0.3, "auto"]
    found = mm.SVCCV(CS, given, cv=4).fit(X, y)
    check_same(found.cv_results_, grid(mm.SVC(), X, y, parameters={"C": CS, "gamma": given}))


def test_gamma_of_the_folds_with_several_kernels():
    """gamma="scale" is that of the training rows, as in GridSearchCV: the others are not seen."""
    X, y = data(n=120)
    X[80:] *= 20.0
    kernels = ["rbf", "linear"]
    splits = [(np.arange(80), np.arange(80, 120)), (np.arange(40, 120), np.arange(40))]
    found = mm.SVCCV([1.0, 10.0], kernel=kernels, cv=splits, refit=False).fit(X, y).cv_results_
    check_same(found, grid(mm.SVC(), X, y, splits, parameters={"C": [1.0, 10.0],
                                                              "kernel": kernels}))  # fmt: skip


def test_weights_and_folds():
    X, y = data(3)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    folds = KFold(3, shuffle=True, random_state=0)
    found = mm.SVCCV(CS, GAMMAS, cv=folds).fit(X, y, sample_weight=weights)
    check_same(found.cv_results_, grid(mm.SVC(), X, y, cv=folds, sample_weight=weights))
    groups = np.arange(len(y)) % 7
    found = mm.SVCCV(CS, GAMMAS, cv=GroupKFold(3)).fit(X, y, groups=groups)
    check_same(found.cv_results_, grid(mm.SVC(), X, y, cv=GroupKFold(3), groups=groups))
    splits = list(StratifiedKFold(3).split(X, y))
    found = mm.SVCCV(CS, GAMMAS, cv=splits).fit(X, y)
    check_same(found.cv_results_, grid(mm.SVC(), X, y, cv=splits))


def test_costs_in_any_order():
    X, y = data()
    costs = [30.0, 0.05, 1.0, 1.0]
    found = mm.SVCCV(costs, [0.5], cv=4).fit(X, y)
    check_same(found.cv_results_, grid(mm.SVC(), X, y, parameters={"C": costs, "gamma": [0.5]}))


def test_tasks_beyond_the_compiled_path(monkeypatch):
    X, y = data(n=400)
    monkeypatch.setattr(engine, "MOST_SHARED", 100)
    found = mm.SVCCV(CS, GAMMAS, cv=4).fit(X, y)
    check_same(found.cv_results_, grid(mm.SVC(), X, y), per_sample=0.011)
    assert found.cv_results_["certified"].all()


@pytest.mark.parametrize("n", [1100, 900])
def test_working_sets_of_the_compiled_path(n):
    assert n * 0.75 > cost_descent.SET_SIZE or n == 900
    X, y = data(n=n, seed=2)
    y = np.where(np.random.default_rng(0).random(n) < 0.1, "a", y)
    model = mm.SVCCV([0.1, 10.0, 3000.0], [0.1, 10.0], cv=4, tol=1e-5, refit=False).fit(X, y)
    assert model.cv_results_["certified"].all()
    expected = grid(mm.SVC(tol=1e-5), X, y, parameters={"C": [0.1, 10.0, 3000.0],
                                                        "gamma": [0.1, 10.0]})  # fmt: skip
    check_same(model.cv_results_, expected, per_sample=1.1 / (n // 4))


def test_teams_of_folds(monkeypatch):
    """Folds of large groups share their rounds for a while."""
    X, y = data(n=1200, seed=3)
    y = np.where(np.random.default_rng(0).random(1200) < 0.1, "a", y)
    costs, options = [0.1, 10.0, 1000.0], {"cv": 5, "tol": 1e-5, "refit": False}
    alone = mm.SVCCV(costs, [0.1, 10.0], **options).fit(X, y).cv_results_
    monkeypatch.setattr(cost_grid, "TOGETHER", 100)
    found = [mm.SVCCV(costs, [0.1, 10.0], n_jobs=n, **options).fit(X, y) for n in (1, 2)]
    for model in found:
        assert model.cv_results_["certified"].all()
        check_same(model.cv_results_, alone, per_sample=1.1 / 240)
    np.testing.assert_array_equal(*(model.cv_results_["mean_test_score"] for model in found))
    gaps = [model.cv_results_["worst_gap"] for model in found]
    np.testing.assert_allclose(*gaps, rtol=0.0, atol=1e-11)  # sums may differ in their last digits


# Choosing -----------------------------------------------------------------------------------------


def test_one_standard_error():
    X, y = data()
    best = mm.SVCCV(CS, GAMMAS, cv=4).fit(X, y)
    model = mm.SVCCV(CS, GAMMAS, cv=4, one_standard_error=True).fit(X, y)
    found = model.cv_results_
    scores = np.array([found[f"split{k}_test_score"] for k in range(4)])
    error = scores[:, best.best_index_].std(ddof=1) / 2.0
    near = found["mean_test_score"] >= best.best_score_ - error
    simplest = min(
        np.flatnonzero(near), key=lambda k: (found["params"][k]["C"], found["params"][k]["gamma"])
    )
    assert model.best_index_ == simplest
    assert model.C_ <= best.C_


def test_strategies():
    X, y = data(n=200)
    everything = mm.SVCCV(7, 7, cv=5, refit=False).fit(X, y)
    bounded = mm.SVCCV(7, 7, cv=5, strategy="bounded", refit=False).fit(X, y)
    assert bounded.best_index_ == everything.best_index_
    assert bounded.best_score_ == everything.best_score_
    known = ~np.isnan(bounded.cv_results_["mean_test_score"])
    np.testing.assert_allclose(
        bounded.cv_results_["mean_test_score"][known],
        everything.cv_results_["mean_test_score"][known],
    )
    halving = mm.SVCCV(7, 7, cv=5, strategy="halving", refit=False).fit(X, y)
    counts = [
        np.count_nonzero(~np.isnan(halving.cv_results_[f"split{k}_test_score"])) for k in range(5)
    ]
    assert counts[0] == 49
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < 25


def test_scores_that_may_be_negative_are_not_bounded():
    adjusted = make_scorer(balanced_accuracy_score, adjusted=True)
    plain = make_scorer(balanced_accuracy_score)
    assert not strategies.is_bounded(adjusted, is_classifier=True)
    assert strategies.is_bounded(plain, is_classifier=True)
    assert strategies.is_bounded(check_scoring(mm.SVC()), is_classifier=True)
    assert not strategies.is_bounded(lambda model, X, y: -1.0, is_classifier=True)
    assert not strategies.is_bounded(check_scoring(mm.SVR()), is_classifier=False)


def test_memory_of_kernel_values():
    X, y = data(n=200)
    small = mm.SVCCV(CS, GAMMAS, cv=4, cache_size=0.01, tol=1e-5).fit(X, y)  # K does not fit
    check_same(small.cv_results_, grid(mm.SVC(tol=1e-5), X, y))
    assert small.cv_results_["certified"].all()


def test_default_grids():
    X, y = data()
    model = mm.SVCCV(cv=3, refit=False).fit(1e4 * X, y)
    found = model.cv_results_
    assert len(found["params"]) == 49
    assert found["param_C"].min() == 2.0**-5
    assert found["param_C"].max() == 2.0**15
    scale = 1.0 / (3.0 * np.var(1e4 * X))
    assert found["param_gamma"].min() == pytest.approx(scale * 2.0**-8)
    assert model.best_score_ > 0.8
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert model.fit_best(1e4 * X, y) is model
    assert model.predict(1e4 * X).shape == (120,)


# What goes wrong ----------------------------------------------------------------------------------


def test_folds_without_a_class():
    X, y = data(3)
    order = np.argsort(y)
    X, y = X[order], y[order]
    found = mm.SVCCV(CS, GAMMAS, cv=KFold(3)).fit(X, y)  # two of three classes in each
    check_same(found.cv_results_, grid(mm.SVC(), X, y, cv=KFold(3)))
    few = y != "c"
    with (
        pytest.warns(FitFailedWarning, match="1 class"),
        pytest.raises(ValueError, match="No cand"),
    ):
        mm.SVCCV(CS, GAMMAS, cv=KFold(2)).fit(X[few], np.sort(y[few]))
    with pytest.raises(ValueError, match="greater than one"):
        mm.SVCCV(CS, GAMMAS, cv=KFold(2), error_score="raise").fit(X[few], np.sort(y[few]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": []}, "Cs must hold positive"),
        ({"Cs": [0.0, 1.0]}, "Cs must hold positive"),
        ({"Cs": [np.inf]}, "Cs must hold positive"),
        ({"gammas": []}, "gammas must hold one"),
        ({"gammas": [-1.0]}, "gamma"),
        ({"strategy": "best"}, "strategy"),
        ({"scoring": "neg_log_loss"}, "needs probabilities"),
        ({"scoring": "nonsense"}, "nonsense"),
        ({"cv": 1000}, "n_splits"),
    ],
)
def test_refused(options, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        mm.SVCCV(**options).fit(X, y)


def test_scores_that_fail():
    X, y = data()

    def raises(model, X, y):
        raise RuntimeError("no score")

    with pytest.raises(RuntimeError, match="no score"):
        mm.SVCCV(CS, GAMMAS, scoring=raises, error_score="raise").fit(X, y)
    with pytest.warns(UserWarning, match="Scoring failed"), pytest.raises(ValueError, match="No c"):
        mm.SVCCV(CS, GAMMAS, scoring=raises).fit(X, y)

    def sometimes(model, X, y):
        return np.nan if model.decision_function(X).std() < 1e-3 else 1.0

    model = mm.SVCCV([1e-8, 1.0], [0.5], scoring=sometimes).fit(X, y)
    assert model.C_ == 1.0
    assert model.cv_results_["rank_test_score"].tolist() == [2, 1]
    constant = mm.SVCCV(CS, GAMMAS, scoring=lambda model, X, y: 0.5).fit(X, y)
    assert constant.best_index_ == 0


def test_interrupted(monkeypatch):
    X, y = data()
    evaluate = search.Search._evaluate

    def interrupted(self, blocks):
        if blocks[0].kernel == 1:  # the last: it begins with the answers of its neighbours
            raise KeyboardInterrupt
        evaluate(self, blocks)

    monkeypatch.setattr(search.Search, "_evaluate", interrupted)
    monkeypatch.setattr(search.Search, "at_once", 1)
    model = mm.SVCCV(CS, GAMMAS, cv=4)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not model.is_complete_
    assert np.isnan(model.cv_results_["mean_test_score"]).sum() == 3
    model.fit_best(X, y)
    assert model.gamma_ in GAMMAS[::2]
    assert model.predict(X).shape == y.shape


def test_kernels_that_are_done_are_kept_when_others_are_interrupted(monkeypatch):
    X, y = data()
    evaluate = kernel_grid.KernelGrid.evaluate

    def interrupted(self, kernel, *given):
        if kernel.gamma == GAMMAS[0]:
            raise KeyboardInterrupt
        return evaluate(self, kernel, *given)

    monkeypatch.setattr(kernel_grid.KernelGrid, "evaluate", interrupted)
    model = mm.SVCCV(CS, GAMMAS, cv=4, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    kept = ~np.isnan(model.cv_results_["mean_test_score"])
    assert [each["gamma"] for each in np.array(model.cv_results_["params"])[kept]] == 3 * [4.0]


def test_time_limit():
    X, y = data()
    model = mm.SVCCV(CS, GAMMAS, time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    assert not model.is_complete_
    with pytest.raises(NotFittedError):
        model.predict(X)


# As an estimator ----------------------------------------------------------------------------------


def test_in_a_pipeline_and_cloned():
    X, y = data()
    model = make_pipeline(StandardScaler(), mm.SVCCV(CS, GAMMAS, cv=3)).fit(X, y)
    assert model.score(X, y) > 0.8
    again = clone(model[-1])
    assert not hasattr(again, "C_")
    assert again.get_params()["Cs"] == CS
    before = X.copy(), y.copy()
    again.fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    assert again.C == again.C_


def test_progress_is_printed(capsys):
    X, y = data()
    mm.SVCCV(CS, GAMMAS, cv=4, verbose=True).fit(X, y)
    printed = capsys.readouterr().out
    assert "36 of 36 fits" in printed
    assert "best mean score" in printed


@parametrize_with_checks([mm.SVCCV(CS[:2], GAMMAS[:1], cv=2, error_score=0.0)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_joint_machine_is_refused():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    with pytest.raises(ValueError, match="multi_class"):
        mm.SVCCV([1.0], [0.1], multi_class="crammer_singer").fit(X, y)


def test_linear_kernels_of_rows_far_from_the_origin():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    y = (X[:, 0] + 0.5 * rng.standard_normal(90) > 0.0).astype(int)
    near, far = (
        mm.SVCCV([0.1, 10.0], kernel="linear", cv=3, tol=1e-6).fit(rows, y)
        for rows in (X, X + 2.0**20)
    )
    assert far.cv_results_["certified"].all()
    name = "mean_test_score"
    np.testing.assert_allclose(far.cv_results_[name], near.cv_results_[name])


@pytest.fixture
def grids(monkeypatch):
    """Return a list to which every compiled grid is added."""
    found = []

    def solve(*given):
        found.append(solve_small_costs(*given))
        return found[-1]

    monkeypatch.setattr(kernel_grid, "solve_small_costs", solve)
    return found


@pytest.mark.parametrize("n", [60, 900])
def test_folds_of_the_same_rows_are_solved_once(grids, n):
    """The answer of the first fold is that of the others: they need no steps, at no cost."""
    X, y = data(3, n=n)
    rows = np.random.default_rng(0).permutation(n)
    splits = [(rows[n // 3 :], rows[: n // 3])] * 3
    model = mm.SVCCV([0.1, 1.0, 30.0], [0.5], cv=splits, refit=False, n_jobs=1).fit(X, y)
    steps = grids[0].steps.reshape(3, 3, -1)  # cost, fold, pair of classes
    assert (steps[:, 0] > 0).all()
    assert (steps[:, 1:] == 0).all()
    assert model.cv_results_["certified"].all()


def test_a_kernel_begins_with_the_answers_of_its_neighbour(grids, monkeypatch):
    """γ that hardly differ have nearly the same answers: the second one takes few steps."""
    X, y = data(n=200)
    gammas = [0.5, 0.5 * (1.0 + 1e-9)]
    monkeypatch.setattr(search.Search, "at_once", 1)
    model = mm.SVCCV([0.1, 1.0, 30.0], gammas, cv=4, refit=False, n_jobs=1).fit(X, y)
    first, second = (each.steps[:, 0] for each in grids)
    assert (first > 0).all()
    assert (second == 0).all()
    assert model.cv_results_["certified"].all()


def test_what_takes_long_is_left_to_other_solvers(grids, monkeypatch):
    """A task that does not end at a cost is not begun at the next one; all are certified."""
    monkeypatch.setattr(costs_of_tasks, "MAX_NUMBERS", 3e5)
    X, y = data(n=1200)
    y = np.where(np.random.default_rng(0).random(1200) < 0.2, "a", y)
    model = mm.SVCCV([0.01, 1.0, 100.0, 1e4], [0.5], cv=3, refit=False).fit(X, y)
    converged, steps = grids[0].converged, grids[0].steps
    assert not converged[-1].any()
    assert (steps[1:][~converged[:-1]] == 0).all()
    assert model.cv_results_["certified"].all()
    expected = grid(mm.SVC(), X, y, cv=3, parameters={"C": [0.01, 1.0, 100.0, 1e4],
                                                      "gamma": [0.5]})  # fmt: skip
    check_same(model.cv_results_, expected, per_sample=1.1 / 400)


def test_a_bias_that_may_be_any_of_an_interval_is_the_middle_of_it():
    """All variables are at their bounds: none of them may be free by rounding, in no fold."""
    X, y = data(n=200)
    costs = np.logspace(-2, 0, 5)
    together, alone = (
        mm.SVCCV(costs, [0.007], cv=5, strategy=strategy, refit=False).fit(X, y).cv_results_
        for strategy in ("all", "bounded")
    )
    known = ~np.isnan(alone["mean_test_score"])
    assert known.sum() > 1
    check_same(together, grid(mm.SVC(), X, y, cv=5, parameters={"C": costs, "gamma": [0.007]}))
    np.testing.assert_array_equal(
        together["mean_test_score"][known], alone["mean_test_score"][known]
    )


def test_balanced_classes_at_tiny_costs_have_the_bias_of_single_fits():
    """All α are at their bounds, and Σu of both classes is equal: the bias has an interval."""
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.3).astype(int)
    X = rng.standard_normal((200, 4)) + 0.8 * y[:, np.newaxis]
    costs, gammas, weight = [1e-4, 1e-3, 1e-2], [0.01, 0.25], "balanced"
    found = mm.SVCCV(costs, gammas, cv=5, class_weight=weight, refit=False).fit(X, y)
    single = grid(mm.SVC(class_weight=weight), X, y, cv=5, parameters={"C": costs, "gamma": gammas})
    check_same(found.cv_results_, single)


def test_compiled_steps_are_as_many_as_the_time_limit_allows(grids, monkeypatch):
    monkeypatch.setattr(costs_of_tasks, "NUMBERS_PER_SECOND", 10.0)
    X, y = data(2)
    model = mm.SVCCV([0.1, 10.0], [0.5], cv=3, time_limit=60.0, refit=False).fit(X, y)
    assert grids[0].steps.max() <= 10.0 * 60.0
    assert not grids[0].converged.all()
    assert model.cv_results_["certified"].all()  # by the solver that watches the clock
