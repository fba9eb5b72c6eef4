"""Support tables and margin reports of kernel machines: the dual, its states and its margin."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.diagnostics import margin_report, support_table
from maxmargin.kernels import RBF, Polynomial
from tests.helpers.machines import HARD, TIGHT, leave_one_out, machines, overlapping, three_classes

# Worked examples ----------------------------------------------------------------------------------


def test_six_points():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(C=HARD, kernel="linear").fit(X, y)
    table = support_table(model, X, y)
    np.testing.assert_allclose(table.alpha, [8 / 225, 0, 1 / 25, 0, 17 / 225, 0], atol=1e-14)
    w, b = np.array([-1 / 3, 1 / 5]), 2 / 15
    np.testing.assert_allclose(table.margin, y * (X @ w + b), atol=1e-13)
    assert table.state.tolist() == ["on margin", "outside"] * 3
    assert table.complementarity.max() < 1e-14
    assert np.isinf(table.cost).all()
    assert np.isinf(table.bound).all()
    assert table.label.tolist() == y.tolist()
    assert not np.signbit(table.alpha).any()
    for report in (margin_report(model, X, y), margin_report(model)):
        assert report.width == pytest.approx(2 / np.linalg.norm(w), abs=1e-12)
        assert report.width == pytest.approx(5.144957554, abs=1e-9)
        (task,) = report.tasks
        assert (task.n_support, task.n_free, task.n_bound) == (3, 3, 0)
        assert task.loo_support == 0.5
        assert task.certificate.holds(1e-12)
        assert task.nu is None


def test_xor_in_feature_space():
    X, y = mm.datasets.load_xor(return_X_y=True)
    model = mm.SVC(C=HARD, kernel=Polynomial(degree=2, coef0=1.0)).fit(X, y)
    table = support_table(model, X, y)
    np.testing.assert_allclose(table.alpha, 1 / 8, atol=1e-14)
    np.testing.assert_allclose(table.margin, 1.0, atol=1e-14)
    assert table.counts == {"outside": 0, "on margin": 4, "inside": 0, "misclassified": 0}
    report = margin_report(model, X, y)
    assert report.width == pytest.approx(2 * np.sqrt(2), abs=1e-13)  # margin √2 on either side
    assert report.tasks[0].support_fraction == 1.0


# KKT ----------------------------------------------------------------------------------------------


@machines
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_tight_fit_satisfies_kkt(make, kernel):
    X, y = overlapping()
    model = make(kernel=kernel).fit(X, y)
    table = support_table(model, X, y, tol=1e-6)
    assert len(table) == 80
    np.testing.assert_allclose(table.margin, y * model.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(table.slack, np.maximum(0.0, 1.0 - table.margin))
    assert table.complementarity.min() >= 0.0
    assert table.complementarity.max() < 1e-7
    wrong = model.predict(X) != y
    assert wrong.any()
    np.testing.assert_array_equal(table.state == "misclassified", wrong)
    np.testing.assert_array_equal(np.flatnonzero(table.alpha), np.sort(model.support_))
    assert (table.alpha[table.state == "outside"] < 1e-12).all()
    within = np.isin(table.state, ["inside", "misclassified"])
    if np.isinf(table.bound).all():
        np.testing.assert_allclose(table.alpha, 2 * table.cost * table.slack, atol=1e-6)
    else:
        np.testing.assert_allclose(table.alpha[within], table.bound[within], rtol=1e-9)
        np.testing.assert_array_equal(table.cost, table.bound)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_complementarity_sums_to_the_gap(loss):
    X, y = overlapping()
    model = mm.SVC(loss=loss, tol=1e-2, solver="decomposition").fit(X, y)
    table = support_table(model, X, y)
    assert model.certificate_.gap > 1e-6
    assert table.complementarity.sum() == pytest.approx(model.certificate_.gap, rel=1e-6)


def test_states_at_tolerances():
    X, y = overlapping()
    model = mm.SVC(tol=TIGHT).fit(X, y)
    assert support_table(model, X, y).tol == TIGHT
    exact = support_table(model, X, y, tol=0.0)
    assert exact.counts["on margin"] < support_table(model, X, y, tol=0.1).counts["on margin"]
    for state, low, high in [("outside", 1, 9), ("inside", 0, 1), ("misclassified", -9, 0)]:
        margins = exact.margin[exact.state == state]
        assert ((margins >= low) & (margins <= high)).all()
    assert sum(exact.counts.values()) == 80
    for tol in (-1e-3, 1.0, np.nan):
        with pytest.raises(ValueError, match=r"must be a number in \[0, 1\)"):
            support_table(model, X, y, tol=tol)


# Weights ------------------------------------------------------------------------------------------


def test_weights_are_bounds():
    X, y = overlapping()
    weights = np.random.default_rng(3).uniform(0.2, 3.0, 80)
    weights[::7] = 0.0
    model = mm.SVC(C=2.0, class_weight={-1: 0.5, 1: 1.5}, tol=TIGHT).fit(X, y, weights)
    table = support_table(model, X, y, weights)
    np.testing.assert_array_equal(table.index, np.flatnonzero(weights))
    costs = 2.0 * weights * np.where(y > 0, 1.5, 0.5)
    np.testing.assert_allclose(table.bound, costs[weights > 0])
    assert table.complementarity.max() < 1e-7
    (task,) = margin_report(model, X, y, weights).tasks
    assert task.n_samples == np.count_nonzero(weights)
    assert task.margin_errors <= task.nu + 1e-9
    assert task.nu <= task.support_fraction + 1e-9


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("make", [mm.SVC, mm.NuSVC])
def test_weights_of_another_fit_are_noticed(make, class_weight):
    X, y = overlapping()
    weights = np.random.default_rng(3).uniform(0.2, 3.0, 80)
    model = make(class_weight=class_weight).fit(X, y, weights)
    support_table(model, X, y, weights)
    for other in (None, weights[::-1]):
        with pytest.raises(ValueError, match="sample_weight of the fit"):
            support_table(model, X, y, other)
    weights[model.support_[0]] = 0.0
    with pytest.raises(ValueError, match="but the sample is a support vector"):
        support_table(model, X, y, weights)


# ν ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.3, 0.45, 0.7])
def test_nu_lies_between_its_bounds(nu):
    X, y = overlapping()
    model = mm.NuSVC(nu=nu, tol=TIGHT).fit(X, y)
    (task,) = margin_report(model, X, y).tasks
    assert task.nu == pytest.approx(nu, rel=1e-12)
    assert task.margin_errors <= nu + 1e-12
    assert nu <= task.support_fraction + 1e-12
    assert task.n_bound + task.n_free == task.n_support
    assert task.n_bound / 80 <= nu + 1e-12
    assert task.C * 80 * task.rho == pytest.approx(1.0)
    # It is the machine of that C, which has that ν.
    same = mm.SVC(C=task.C, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(
        support_table(same, X, y).alpha, support_table(model, X, y).alpha, atol=1e-6
    )
    (other,) = margin_report(same, X, y).tasks
    assert other.rho is None
    assert other.nu == pytest.approx(nu, abs=1e-6)
    assert other.width == pytest.approx(task.width, rel=1e-6)
    (bare,) = margin_report(model).tasks
    assert (bare.rho, bare.nu) == (pytest.approx(task.rho), nu)


def test_nu_without_a_margin():
    X, y = np.repeat([[0.0], [1.0]], 4, axis=0), np.tile([-1, 1], 4)  # every point in both classes
    model = mm.NuSVC(nu=0.5, kernel="linear").fit(X, y)
    (task,) = margin_report(model, X, y).tasks
    assert task.rho == 0.0
    assert task.C is None
    assert np.isnan(task.width)
    assert "ρ = 0" in str(task)
    with pytest.raises(ValueError, match="found no margin"):
        support_table(model, X, y)


# The margin ---------------------------------------------------------------------------------------


@machines
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_norm_is_that_of_coef(make, multi_class):
    X, y = three_classes()
    model = make(kernel="linear", multi_class=multi_class).fit(X, y)
    norms = np.linalg.norm(model.coef_, axis=1)
    for report in (margin_report(model, X, y), margin_report(model)):
        assert len(report) == 3
        np.testing.assert_allclose([task.norm for task in report.tasks], norms, rtol=1e-10)
        np.testing.assert_allclose([task.width for task in report.tasks], 2 / norms, rtol=1e-10)
        assert report.norm == pytest.approx(norms.max())
        assert report.width == pytest.approx(2 / norms.max())


def test_bound_and_free_support_vectors():
    X, y = overlapping()
    model = mm.SVC(C=0.5, tol=TIGHT).fit(X, y)
    (task,) = margin_report(model, X, y).tasks
    alpha = np.abs(model.dual_coef_[0])
    assert task.n_bound == np.count_nonzero(alpha == 0.5) > 0
    assert task.n_free == np.count_nonzero(alpha < 0.5) > 0
    assert task.C == 0.5
    (bare,) = margin_report(model).tasks
    assert (bare.n_bound, bare.n_free, bare.margin_errors, bare.loo_bound) == (None,) * 4
    assert bare.loo_support == task.loo_support == task.n_support / 80
    assert "pass X and y" in str(bare)


@pytest.mark.parametrize("kernel", ["linear", RBF(gamma=0.5)], ids=["linear", "rbf"])
@pytest.mark.parametrize(
    "options",
    [
        {"C": 0.02},
        {"C": 0.3},
        {"C": 30.0},
        {"C": 0.3, "fit_intercept": False},
        {"C": 0.1, "loss": "squared_hinge"},
        {"C": 5.0, "loss": "squared_hinge", "fit_intercept": False},
    ],
    ids=str,
)
def test_leave_one_out_bounds_hold(kernel, options):
    X, y = overlapping(n=40, seed=5)
    X[:, 0] += 3.0
    model = mm.SVC(kernel=kernel, tol=1e-6, **options)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    for given in (None, weights):
        (task,) = margin_report(model.fit(X, y, given), X, y, given).tasks
        error = leave_one_out(model, X, y, given)
        assert error <= task.loo_support
        assert error <= task.loo_bound
        assert task.loo_bound <= task.loo_support  # else it would be of no use here


@pytest.mark.parametrize(
    "options",
    [
        {"C": 1.0},
        {"C": 10.0, "kernel": "linear"},
        {"loss": "squared_hinge"},
        {"fit_intercept": False},
    ],
    ids=str,
)
def test_span_is_close_to_the_leave_one_out_error(options):
    for seed in range(3):
        X, y = overlapping(n=60, seed=seed)
        model = mm.SVC(tol=1e-8, **options).fit(X, y)
        report = margin_report(model, X, y)
        (task,) = report.tasks
        error = mm.model_selection.leave_one_out(model, X, y).error
        assert error <= task.loo_bound
        assert task.loo_span == pytest.approx(error, abs=0.09)
        assert f"about {task.loo_span:.4g} (span)" in str(report)


def test_hard_margin_leave_one_out():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(C=HARD, kernel="linear")
    (task,) = margin_report(model.fit(X, y), X, y).tasks
    assert leave_one_out(model, X, y) <= min(task.loo_bound, task.loo_support)


@pytest.mark.filterwarnings("ignore:The kernel Sigmoid")
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed", "sigmoid"])
def test_radius_of_many_samples_is_bounded(kernel, monkeypatch):
    X, y = overlapping()
    given = X @ X.T if kernel == "precomputed" else X
    model = mm.SVC(kernel=kernel, C=0.1).fit(given, y)
    (exact,) = margin_report(model, given, y).tasks
    monkeypatch.setattr("maxmargin.diagnostics.report.MOST_GRAM_ROWS", 10)
    (coarse,) = margin_report(model, given, y).tasks
    if kernel in ("precomputed", "sigmoid"):  # nothing is known of their values
        assert coarse.radius is coarse.loo_bound is None
    else:
        assert exact.radius <= coarse.radius
        assert exact.loo_bound <= coarse.loo_bound


# Many classes -------------------------------------------------------------------------------------


def test_pairs_by_labels():
    X, y = three_classes()
    model = mm.SVC(tol=TIGHT).fit(X, y)
    for number, pair in enumerate([("apple", "lemon"), ("apple", "pear"), ("lemon", "pear")]):
        table = support_table(model, X, y, task=pair)
        assert table.task == f"{pair[0]} against {pair[1]}"
        rows = np.flatnonzero(np.isin(y, pair))
        np.testing.assert_array_equal(table.index, rows)
        np.testing.assert_array_equal(table.sign, np.where(y[rows] == pair[0], 1.0, -1.0))
        alone = mm.SVC(tol=TIGHT, kernel=model.kernel_).fit(X[rows], y[rows])
        expected = support_table(alone, X[rows], y[rows])  # its positive class is the other one
        np.testing.assert_allclose(table.alpha, expected.alpha, atol=1e-6)
        np.testing.assert_allclose(table.margin, expected.margin, atol=1e-6)
        for same in (number, np.int64(number), pair[::-1], list(pair)):
            np.testing.assert_array_equal(support_table(model, X, y, task=same).alpha, table.alpha)
    report = margin_report(model, X, y)
    assert [task.n_samples for task in report.tasks] == [60, 60, 60]
    assert [task.n_samples for task in margin_report(model).tasks] == [None] * 3


def test_one_against_the_rest():
    X, y = three_classes()
    model = mm.SVC(multi_class="ovr", tol=TIGHT).fit(X, y)
    table = support_table(model, X, y, task=("lemon",))
    np.testing.assert_array_equal(support_table(model, X, y, task="lemon").alpha, table.alpha)
    np.testing.assert_array_equal(support_table(model, X, y, task=1).alpha, table.alpha)
    np.testing.assert_array_equal(table.sign, np.where(y == "lemon", 1.0, -1.0))
    np.testing.assert_allclose(table.margin, table.sign * model.decision_function(X)[:, 1])
    assert table.complementarity.max() < 1e-7
    assert [task.n_samples for task in margin_report(model).tasks] == [90] * 3


@pytest.mark.parametrize("task", [None, 3, -1, "apple", ("apple",), ("apple", "plum"), 1.5, True])
def test_tasks_that_are_not_there(task):
    X, y = three_classes()
    model = mm.SVC().fit(X, y)
    with pytest.raises(ValueError, match=r"pass task=0 to 2, or labels such as task=\('apple'"):
        support_table(model, X, y, task=task)


def test_integer_labels_are_named_in_a_tuple():
    X, y = three_classes()
    codes = np.unique(y, return_inverse=True)[1] + 5
    model = mm.NuSVC(nu=0.3).fit(X, codes)
    assert support_table(model, X, codes, task=(7, 5)).task == "5 against 7"
    model = mm.NuSVC(nu=0.3, multi_class="ovr").fit(X, codes)
    assert support_table(model, X, codes, task=(7,)).task == "7 against the rest"
    assert support_table(model, X, codes, task=0).task == "5 against the rest"
    with pytest.raises(ValueError, match="there is no task=7"):
        support_table(model, X, codes, task=7)
