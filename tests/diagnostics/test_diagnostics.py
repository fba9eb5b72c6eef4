"""Tables a person reads: what they say is what theory section 4 says of the same numbers."""

import builtins
import warnings
from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin.diagnostics import margin_report, support_table
from maxmargin.kernels import RBF, Polynomial

TIGHT = 1e-9
HARD = float("inf")


def overlapping(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1, -1)
    return X, y


def three_classes(n=90, seed=1):
    rng = np.random.default_rng(seed)
    labels = np.array(["apple", "lemon", "pear"])
    codes = np.arange(n) % 3
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    return centres[codes] + 0.9 * rng.standard_normal((n, 2)), labels[codes]


MACHINES = {
    "hinge": lambda **options: mm.SVC(tol=TIGHT, **options),
    "large C": lambda **options: mm.SVC(C=50.0, tol=TIGHT, **options),
    "squared": lambda **options: mm.SVC(loss="squared_hinge", tol=TIGHT, **options),
    "nu": lambda **options: mm.NuSVC(nu=0.4, tol=TIGHT, **options),
    "no bias": lambda **options: mm.SVC(fit_intercept=False, tol=TIGHT, **options),
}
machines = pytest.mark.parametrize("make", MACHINES.values(), ids=MACHINES)


# Worked examples -------------------------------------------------------------------------------


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


# KKT -------------------------------------------------------------------------------------------


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
        with pytest.raises(ValueError, match=r"pass a number in \[0, 1\)"):
            support_table(model, X, y, tol=tol)


# Weights ---------------------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match="yet the sample is a support vector"):
        support_table(model, X, y, weights)


# ν ---------------------------------------------------------------------------------------------


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


# The margin ------------------------------------------------------------------------------------


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


def leave_one_out(model, X, y, weights=None):
    errors = 0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        kept = None if weights is None else weights[rest]
        errors += model.fit(X[rest], y[rest], kept).predict(X[i : i + 1])[0] != y[i]
    return errors / len(y)


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
    monkeypatch.setattr("maxmargin.diagnostics.report.WHOLE", 10)
    (coarse,) = margin_report(model, given, y).tasks
    if kernel in ("precomputed", "sigmoid"):  # nothing is known of their values
        assert coarse.radius is coarse.loo_bound is None
    else:
        assert exact.radius <= coarse.radius
        assert exact.loo_bound <= coarse.loo_bound


# Many classes ----------------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match="task=7 is not there"):
        support_table(model, X, codes, task=7)


# The plane of a LinearSVC ----------------------------------------------------------------------


PLANES = {
    "hinge": {"loss": "hinge"},
    "squared": {},
    "large C": {"C": 50.0, "loss": "hinge"},
    "no bias": {"loss": "hinge", "fit_intercept": False},
    "squared, no bias": {"fit_intercept": False},
    "penalised": {"loss": "hinge", "penalize_intercept": True},
    "squared, penalised": {"penalize_intercept": True},
}
planes = pytest.mark.parametrize("options", PLANES.values(), ids=PLANES)


def by_hand(model, X, y, number, row):
    """Return α and y g of one task in plain NumPy, ``row`` being y = ±1."""
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[number])
    margins = row * (X @ model.coef_[number] + model.intercept_[number])
    return alpha, margins


@planes
def test_planes_by_hand(options):
    X, y = overlapping()
    weights = np.random.default_rng(3).uniform(0.2, 3.0, 80)
    weights[::9] = 0.0
    model = mm.LinearSVC(tol=TIGHT, class_weight={-1: 0.5, 1: 1.5}, **options).fit(X, y, weights)
    table = support_table(model, X, y, weights, tol=1e-4)
    kept = weights > 0
    alpha, margins = (values[kept] for values in by_hand(model, X, y, 0, y))
    costs = (model.C * weights * np.where(y > 0, 1.5, 0.5))[kept]
    np.testing.assert_array_equal(table.index, np.flatnonzero(kept))
    np.testing.assert_array_equal(table.label, y[kept])
    np.testing.assert_array_equal(table.sign, y[kept])
    np.testing.assert_array_equal(table.alpha, alpha)
    np.testing.assert_allclose(table.margin, margins, atol=1e-13)
    np.testing.assert_allclose(table.slack, np.maximum(0.0, 1.0 - margins), atol=1e-13)
    np.testing.assert_allclose(table.cost, costs)
    squared = model.loss == "squared_hinge"
    np.testing.assert_allclose(table.bound, np.inf if squared else costs)
    if squared:
        share = alpha * np.maximum(margins - 1, 0)
        share += (2 * costs * table.slack - alpha) ** 2 / (4 * costs)
        np.testing.assert_allclose(table.alpha, 2 * costs * table.slack, atol=1e-3)
    else:
        share = np.maximum(alpha * np.maximum(margins - 1, 0), table.slack * (costs - alpha))
    np.testing.assert_allclose(table.complementarity, share, atol=1e-10)
    expected = np.select(
        [margins > 1 + 1e-4, margins >= 1 - 1e-4, margins >= 0],
        ["outside", "on margin", "inside"],
        "misclassified",
    )
    np.testing.assert_array_equal(table.state, expected)
    assert not np.signbit(table.alpha).any()


@planes
def test_planes_say_what_the_kernel_machine_says(options):
    X, y = overlapping()
    model = mm.LinearSVC(tol=1e-12, **options).fit(X, y)
    given, names = X, {"C", "loss", "fit_intercept"}
    same = {"loss": "squared_hinge", **{k: v for k, v in options.items() if k in names}}
    if options.get("penalize_intercept"):  # one more feature, of value 1
        given, same["fit_intercept"] = np.c_[X, np.ones(80)], False
    machine = mm.SVC(kernel="linear", tol=1e-12, **same).fit(given, y)
    table, expected = support_table(model, X, y, tol=1e-4), support_table(machine, given, y)
    np.testing.assert_allclose(table.margin, expected.margin, atol=1e-5)
    np.testing.assert_allclose(table.alpha, expected.alpha, atol=1e-3 * expected.alpha.max())
    np.testing.assert_array_equal(table.cost, expected.cost)
    np.testing.assert_array_equal(table.bound, expected.bound)
    assert table.counts == support_table(machine, given, y, tol=1e-4).counts
    assert table.complementarity.max() < 1e-5
    (task,), (other,) = (
        margin_report(clf, rows, y).tasks for clf, rows in ((model, X), (machine, given))
    )
    w = np.linalg.norm(model.coef_)
    assert task.norm == pytest.approx(w, rel=1e-12)
    assert task.width == pytest.approx(2 / w, rel=1e-12)
    if not options.get("penalize_intercept"):  # b is then no part of w
        assert task.width == pytest.approx(other.width, rel=1e-6)
    if options.get("loss") != "hinge":
        assert (task.n_support, task.n_bound, task.nu) == (other.n_support, 0, None)
    else:
        assert task.nu == pytest.approx(other.nu, rel=1e-5)
        assert task.n_bound == pytest.approx(other.n_bound, abs=1)
    assert (task.C, task.rho, task.n_samples) == (other.C, None, 80)
    assert task.margin_errors == pytest.approx(other.margin_errors, abs=0.05)
    assert (task.radius is None) == (other.radius is None)
    if task.radius is not None:
        assert task.radius == pytest.approx(other.radius)
    assert task.loo_bound == pytest.approx(other.loo_bound, abs=0.03)


@pytest.mark.parametrize("bias", [{}, {"penalize_intercept": True}, {"fit_intercept": False}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_shares_of_a_plane_sum_to_its_gap(loss, bias):
    """But for ½‖w − Σ α y x‖²: w and α come from different times."""
    X, y = overlapping()
    model = mm.LinearSVC(loss=loss, tol=1e-2, solver="interior-point", **bias).fit(X, y)
    table = support_table(model, X, y)
    rows, w = X, model.coef_[0]
    if bias.get("penalize_intercept"):
        rows, w = np.c_[X, np.ones(80)], np.append(w, model.intercept_)
    between = w - (table.alpha * y) @ rows
    gap = model.certificate_.gap
    assert gap > 1e-4
    assert table.complementarity.sum() + 0.5 * between @ between == pytest.approx(gap, rel=1e-6)


def test_hard_margin_of_a_plane():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.LinearSVC(C=HARD, tol=1e-12).fit(X, y)
    table = support_table(model, X, y)
    np.testing.assert_allclose(table.alpha, [8 / 225, 0, 1 / 25, 0, 17 / 225, 0], atol=1e-6)
    np.testing.assert_allclose(table.margin, y * (X @ [-1 / 3, 1 / 5] + 2 / 15), atol=1e-6)
    assert table.state.tolist() == ["on margin", "outside"] * 3
    assert np.isinf(table.cost).all()
    assert np.isinf(table.bound).all()
    for report in (margin_report(model, X, y), margin_report(model)):
        assert report.width == pytest.approx(5.144957554, abs=1e-6)
        (task,) = report.tasks
        assert (task.n_support, task.n_free, task.n_bound) == (3, 3, 0)
        assert task.loo_support == 0.5
    assert "LinearSVC: 1 against -1" in str(report)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_planes_of_many_classes(loss, multi_class):
    X, y = three_classes()
    model = mm.LinearSVC(loss=loss, multi_class=multi_class, tol=1e-10).fit(X, y)
    machine = mm.SVC(kernel="linear", loss=loss, multi_class=multi_class, tol=1e-10).fit(X, y)
    report, other = margin_report(model, X, y), margin_report(machine, X, y)
    assert [task.name for task in report.tasks] == [task.name for task in other.tasks]
    np.testing.assert_allclose(report.width, other.width, rtol=1e-4)
    names = ["apple", "lemon", "pear"]
    pairs = [("apple", "lemon"), ("apple", "pear"), ("lemon", "pear")]
    for number, labels in enumerate(pairs if multi_class == "ovo" else [(k,) for k in names]):
        table = support_table(model, X, y, task=labels)
        rows = np.flatnonzero(np.isin(y, labels)) if multi_class == "ovo" else np.arange(90)
        sign = np.where(y == labels[0], 1.0, -1.0)
        alpha, margins = by_hand(model, X, y, number, sign)
        np.testing.assert_array_equal(table.index, rows)
        np.testing.assert_array_equal(table.sign, sign[rows])
        np.testing.assert_array_equal(table.alpha, alpha[rows])
        np.testing.assert_allclose(table.margin, margins[rows], atol=1e-13)
        expected = support_table(machine, X, y, task=labels)
        assert table.task == expected.task
        np.testing.assert_allclose(table.margin, expected.margin, atol=1e-4)
        task, bare = report.tasks[number], margin_report(model).tasks[number]
        assert task.n_support == np.count_nonzero(alpha) == bare.n_support
        assert task.n_samples == rows.size
        assert bare.n_samples == (None if multi_class == "ovo" else 90)
        assert (bare.norm, bare.width) == (task.norm, task.width)
    assert len(str(report).splitlines()) == 6


def test_joint_planes_have_no_table():
    X, y = three_classes()
    model = mm.LinearSVC(multi_class="crammer_singer").fit(X, y)
    for diagnose in (lambda: support_table(model, X, y), lambda: margin_report(model)):
        with pytest.raises(TypeError, match=r"3 weight vectors jointly: .*='ovr' and 'ovo'"):
            diagnose()
    two = np.isin(y, ["apple", "pear"])  # which are one plane under every name
    model = mm.LinearSVC(multi_class="crammer_singer").fit(X[two], y[two])
    assert len(support_table(model, X[two], y[two])) == 60


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_planes_of_data_of_every_kind(multi_class):
    X, y = three_classes()
    weights = np.where(np.arange(90) % 8, 1.0, 0.0)
    model = mm.LinearSVC(multi_class=multi_class).fit(X, y, weights)
    expected, report = (
        support_table(model, X, y, weights, task=1),
        margin_report(model, X, y, weights),
    )
    blocks = mm.RowBlocks([X[:20], X[20:25], X[25:]])
    of_blocks = mm.LinearSVC(multi_class=multi_class).fit(blocks, y, weights)
    of_sparse = mm.LinearSVC(multi_class=multi_class).fit(sparse.csr_matrix(X), y, weights)
    for clf, given in [
        (model, sparse.csr_matrix(X)),
        (model, blocks),
        (of_blocks, blocks),
        (of_blocks, X),
        (of_sparse, X),
        (model.sparsify(), X),
    ]:
        table = support_table(clf, given, y, weights, task=1)
        np.testing.assert_array_equal(table.index, expected.index)
        np.testing.assert_allclose(table.margin, expected.margin, atol=1e-2)
        width = margin_report(clf, given, y, weights).width
        assert width == pytest.approx(report.width, rel=1e-2)
    small = mm.LinearSVC(multi_class=multi_class).fit(X.astype(np.float32), y)
    assert support_table(small, X.astype(np.float32), y, task=0).margin.dtype == np.float64


def test_margins_of_planes_are_known_to_the_root_of_a_gap():
    X, y = overlapping()
    model = mm.LinearSVC(tol=1e-4, loss="hinge").fit(X, y)
    assert support_table(model, X, y).tol == pytest.approx(1e-2)
    assert support_table(model, X, y, tol=1e-3).tol == 1e-3
    (task,) = margin_report(model, X, y).tasks
    assert task.margin_errors <= task.nu + 1e-2
    assert task.nu <= task.support_fraction + 1e-2


@pytest.mark.parametrize(
    "options",
    [{"C": 0.3, "loss": "hinge"}, {"C": 0.1}, {"C": 0.3, "loss": "hinge", "fit_intercept": False},
     {"C": 0.3, "penalize_intercept": True}],
    ids=str,
)  # fmt: skip
def test_leave_one_out_bounds_of_planes(options):
    X, y = overlapping(n=40, seed=5)
    model = mm.LinearSVC(tol=1e-8, **options)
    (task,) = margin_report(model.fit(X, y), X, y).tasks
    assert leave_one_out(model, X, y) <= min(task.loo_bound, task.loo_support)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("diagnose", [partial(support_table, task=0), margin_report])
def test_data_of_another_fit_are_noticed_by_planes(diagnose, multi_class):
    X, y = three_classes()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 90)
    model = mm.LinearSVC(loss="hinge", multi_class=multi_class).fit(X, y, weights)
    before = dict(vars(model))
    diagnose(model, X, y, weights)
    with pytest.raises(ValueError, match=r"samples here, \d+ in the fit"):
        diagnose(model, X[1:], y[1:], weights[1:])
    with pytest.raises(ValueError, match="3 features"):
        diagnose(model, np.c_[X, X[:, 0]], y, weights)
    with pytest.raises(ValueError, match=r"\(90, 3\), the model was fitted on \(90, 2\)"):
        diagnose(model, mm.RowBlocks([np.c_[X, X[:, 0]]]), y, weights)
    with pytest.raises(ValueError, match=r"classes \[.*\], the model was fitted on"):
        diagnose(model, X, np.where(y == "pear", "plum", y), weights)
    with pytest.raises(ValueError, match="pass the X, y and sample_weight of the fit"):
        diagnose(model, X[::-1], y[::-1], weights[::-1])
    with pytest.raises(ValueError, match=r"(primal|dual) value"):
        diagnose(model, 1.001 * X, y, weights)
    support = model.support_[model.dual_coef_[0] != 0.0]
    flipped = y.copy()
    flipped[support[0]] = "lemon" if y[support[0]] == "apple" else "apple"
    with pytest.raises(ValueError, match=r"on another side in the fit|samples here"):
        diagnose(model, X, flipped, weights)
    absent = weights.copy()
    absent[support[0]] = 0.0
    with pytest.raises(ValueError, match=r"yet the sample is a support vector|samples here"):
        diagnose(model, X, y, absent)
    for other in (None, 2.0 * weights):
        with pytest.raises(ValueError, match=r"above its bound|(primal|dual) value"):
            diagnose(model, X, y, other)
    with pytest.raises(ValueError, match=r"C=7 was set after the fit, which had C=1: fit again"):
        diagnose(mm.LinearSVC().fit(X, y).set_params(C=7.0), X, y)
    with pytest.raises(ValueError, match=r"above its bound|(primal|dual) value"):
        diagnose(mm.LinearSVC().fit(X, y).set_params(loss="hinge"), X, y)
    assert dict(vars(model)).keys() == before.keys()
    with pytest.raises(NotFittedError):
        diagnose(mm.LinearSVC(), X, y)


def test_rows_that_a_support_vector_is_not_in():
    X, y = overlapping()
    weights = np.where(np.arange(80) < 20, 0.0, 1.0)
    model = mm.LinearSVC().fit(X, y, weights)
    with pytest.raises(ValueError, match=r"X has 60 rows, yet row \d+ is a support vector"):
        support_table(model, X[:60], y[:60])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["newton", "interior-point", "coordinate-descent"])
def test_planes_that_were_cut_short(solver):
    X, y = three_classes()
    for options in ({}, {"loss": "hinge"}, {"loss": "hinge", "penalize_intercept": True}):
        model = mm.LinearSVC(C=10.0, max_iter=1, solver=solver, **options).fit(X, y)
        for report in (margin_report(model, X, y), margin_report(model)):
            assert report.tasks[0].status is model.statuses_[0]
            assert str(report)
        assert len(support_table(model, X, y, task=2)) == 90


# Data of every kind ----------------------------------------------------------------------------


@machines
def test_precomputed_sparse_and_float32_say_the_same(make):
    X, y = overlapping()
    names = np.where(y > 0, "yes", "no")
    expected = support_table(make(kernel=RBF(gamma=0.5)).fit(X, names), X, names)
    width = margin_report(make(kernel=RBF(gamma=0.5)).fit(X, names)).width
    K = RBF(gamma=0.5)(X)
    for kernel, given in [("precomputed", K), (RBF(gamma=0.5), sparse.csr_matrix(X))]:
        model = make(kernel=kernel).fit(given, names)
        table = support_table(model, given, names)
        np.testing.assert_allclose(table.alpha, expected.alpha, atol=1e-6)
        np.testing.assert_allclose(table.margin, expected.margin, atol=1e-6)
        assert margin_report(model, given, names).width == pytest.approx(width, rel=1e-6)
    model = make(kernel=RBF(gamma=0.5)).fit(X.astype(np.float32), names)
    table = support_table(model, X.astype(np.float32), names)
    np.testing.assert_allclose(table.margin, expected.margin, atol=1e-4)


def test_sparse_and_dense_of_the_same_data_are_interchangeable():
    X, y = overlapping()
    S = sparse.csr_matrix(X)
    np.testing.assert_allclose(
        support_table(mm.SVC().fit(S, y), X, y).margin,
        support_table(mm.SVC().fit(X, y), S, y).margin,
        atol=1e-3,
    )


def test_precomputed_needs_its_matrix():
    X, y = overlapping()
    model = mm.SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="holds no kernel values: pass X"):
        margin_report(model)
    with pytest.raises(ValueError, match="primal value"):
        support_table(model, 1.01 * X @ X.T, y)


def test_data_frames():
    pd = pytest.importorskip("pandas")
    X, y = overlapping()
    frame, series = pd.DataFrame(X, columns=["a", "b"]), pd.Series(y).map({1: "yes", -1: "no"})
    model = mm.SVC().fit(frame, series)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = support_table(model, frame, series)
        margin_report(model, frame, series)
        margin_report(model)
    assert table.label.tolist() == series.tolist()
    result = table.to_pandas()
    assert result.index.tolist() == list(range(80))
    assert result["state"].value_counts().to_dict() == {k: v for k, v in table.counts.items() if v}


def test_a_sampled_certificate_is_enough_to_know_the_data_by(monkeypatch):
    monkeypatch.setattr("maxmargin.estimators.kernel_machine.THOROUGH", 1)
    X, y = overlapping(n=3500)
    model = mm.SVC().fit(X, y)
    assert model.certificate_.n_checked < 3500
    table = support_table(model, X, y)
    np.testing.assert_allclose(table.margin, y * model.decision_function(X), atol=1e-10)
    other = X.copy()
    other[table.margin > 1.1] *= -1.0  # no support vectors, on the wrong side now
    with pytest.raises(ValueError, match="primal value"):
        support_table(model, other, y)


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("diagnose", [support_table, margin_report])
def test_what_is_refused(diagnose):
    X, y = overlapping()
    model = mm.SVC().fit(X, y)
    with pytest.raises(NotFittedError):
        diagnose(mm.SVC(), X, y)
    with pytest.raises(TypeError, match="SVC, NuSVC and LinearSVC, got Perceptron"):
        diagnose(mm.Perceptron(max_iter=5000).fit(*mm.datasets.load_and(return_X_y=True)), X, y)
    with pytest.raises(TypeError, match="got Pipeline"):
        diagnose(make_pipeline(model), X, y)
    with pytest.raises(ValueError, match=r"X has shape \(79, 2\), the model was fitted on \(80, 2"):
        diagnose(model, X[1:], y[1:])
    with pytest.raises(ValueError, match="3 features"):
        diagnose(model, np.c_[X, X[:, 0]], y)
    with pytest.raises(ValueError, match=r"classes \[0, 1\], the model was fitted on \[-1, 1\]"):
        diagnose(model, X, (y + 1) // 2)
    with pytest.raises(ValueError, match=r"row \d+ of X differs from the support vector"):
        diagnose(model, X + 1e-9, y)
    with pytest.raises(ValueError, match="differs from the support vector"):
        diagnose(model, sparse.csr_matrix(1.5 * X), y)
    flipped = y.copy()
    flipped[model.support_[0]] *= -1
    with pytest.raises(ValueError, match=r"y\[\d+\] is .*, a support vector of class"):
        diagnose(model, X, flipped)
    with pytest.raises(ValueError, match="same order"):
        diagnose(model, X[::-1], y[::-1])
    outside = np.setdiff1d(np.arange(80), model.support_)[0]
    other = y.copy()
    other[outside] *= -1  # no support vector, but now an error
    with pytest.raises(ValueError, match="primal value"):
        diagnose(model, X, other)
    with pytest.raises(ValueError, match=r"C=7 was set after the fit, which had C=1: fit again"):
        diagnose(mm.SVC().fit(X, y).set_params(C=7.0), X, y)
    with pytest.raises(ValueError, match="primal value"):
        diagnose(mm.SVC().fit(X, y).set_params(loss="squared_hinge"), X, y)


def test_report_takes_data_whole_or_not_at_all():
    X, y = overlapping()
    model = mm.SVC().fit(X, y)
    for arguments in [{"X": X}, {"y": y}]:
        with pytest.raises(ValueError, match="pass both, or neither"):
            margin_report(model, **arguments)
    with pytest.raises(ValueError, match="pass X and y with it"):
        margin_report(model, sample_weight=np.ones(80))


# Text and columns ------------------------------------------------------------------------------


def test_text_is_aligned_and_sorted():
    X, y = overlapping()
    model = mm.SVC().fit(X, y)
    table = support_table(model, X, y)
    first, header, *rows, last = str(table).splitlines()
    assert first.startswith("1 against -1: 80 samples, ")
    assert header.split() == ["row", "label", "state", "alpha", "y·g", "slack", "residual", "C"]
    assert [int(row.split()[0]) for row in rows] == list(range(20))
    assert last == "… 60 more: to_text(n_rows=None) prints all"
    assert len({len(line) for line in [header.rstrip(), *rows]}) == 1
    everything = table.to_text(n_rows=None, sort="margin").splitlines()
    assert len(everything) == 82
    assert int(everything[2].split()[0]) == np.argmin(table.margin)
    largest = table.to_text(n_rows=1, sort="alpha").splitlines()[2]
    assert int(largest.split()[0]) == np.argmax(table.alpha)
    with pytest.raises(ValueError, match="sort='slack' is none"):
        table.to_text(sort="slack")
    with pytest.raises(ValueError, match="n_rows=-1 is negative"):
        table.to_text(n_rows=-1)


def test_columns():
    X, y = overlapping()
    table = support_table(mm.SVC().fit(X, y), X, y)
    columns = table.to_dict()
    assert set(map(len, columns.values())) == {80}
    assert {type(columns[name][0]) for name in columns} == {int, float, str}
    assert list(columns) == [
        "index", "label", "sign", "alpha", "margin", "slack", "state", "complementarity", "cost",
        "bound",
    ]  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        table.alpha = None


def test_without_pandas(monkeypatch):
    X, y = overlapping()
    table = support_table(mm.SVC().fit(X, y), X, y)
    genuine = builtins.__import__

    def refuse(name, *arguments, **options):
        if name == "pandas":
            raise ImportError(name)
        return genuine(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install pandas$"):
        table.to_pandas()


def test_report_for_people():
    X, y = overlapping()
    text = str(margin_report(mm.NuSVC(nu=0.4).fit(X, y), X, y))
    for part in (
        "width 2/‖w‖ = ",
        "ρ = ",
        "the machine of C = ",
        "≤ 0.4 ≤",
        "ξα, R² = ",
        "optimal",
    ):
        assert part in text
    X, y = three_classes()
    lines = str(margin_report(mm.SVC(multi_class="ovr").fit(X, y), X, y)).splitlines()
    assert lines[0] == "SVC: 3 tasks"
    assert [line.split("  ")[0] for line in lines[2:5]] == [
        f"{name} against the rest" for name in ("apple", "lemon", "pear")
    ]
    assert lines[5].startswith("worst proof, ")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [mm.SVC, mm.NuSVC])
def test_fits_that_were_cut_short(make):
    X, y = three_classes()
    for max_iter in (0, 1, 5, 20):
        model = make(max_iter=max_iter).fit(X, y)
        assert not model.certificate_.holds(1e-3)
        for report in (margin_report(model, X, y), margin_report(model)):
            assert not any(task.width <= 0.0 for task in report.tasks)
            assert report.tasks[0].status is model.statuses_[0]
            assert str(report)


def test_indefinite_kernel_has_no_width():
    X, y = overlapping(n=30)
    K = -X @ X.T
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = mm.SVC(kernel="precomputed", max_iter=200).fit(K, y)
    report = margin_report(model, K, y)
    assert np.isnan(report.width)
    assert "not positive semidefinite" in str(report)
