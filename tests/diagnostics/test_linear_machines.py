"""Support tables and margin reports of LinearSVC."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from maxmargin.diagnostics import margin_report, support_table
from tests.helpers.machines import HARD, TIGHT, leave_one_out, overlapping, three_classes

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
        with pytest.raises(TypeError, match=r"3 weight vectors jointly: .*='ovr' or 'ovo'"):
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
    with pytest.raises(ValueError, match=r"but the sample is a support vector|samples here"):
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
    with pytest.raises(ValueError, match=r"X has 60 rows, but row \d+ is a support vector"):
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
