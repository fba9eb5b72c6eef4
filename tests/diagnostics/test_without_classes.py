"""Tables and reports of regressions and machines of one class, and advice on scaling."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.diagnostics import margin_report, scaling_advice, support_table
from maxmargin.diagnostics.targets import target_errors
from maxmargin.kernels import RBF

REGRESSIONS = {
    "SVR": mm.SVR(tol=1e-8),
    "squares": mm.SVR(loss="squared_epsilon_insensitive", tol=1e-8),
    "no bias": mm.SVR(fit_intercept=False, tol=1e-8),
    "linear": mm.SVR(kernel="linear", epsilon=0.5, tol=1e-8),
    "NuSVR": mm.NuSVR(nu=0.4, tol=1e-8),
    "LinearSVR": mm.LinearSVR(epsilon=0.5, tol=1e-8),
    "penalised": mm.LinearSVR(epsilon=0.5, penalize_intercept=True, tol=1e-8),
    "linear squares": mm.LinearSVR(
        epsilon=0.5, loss="squared_epsilon_insensitive", tol=1e-8, fit_intercept=False
    ),
}
regressions = pytest.mark.parametrize("model", REGRESSIONS.values(), ids=REGRESSIONS)
REGIONS = {
    "rbf": mm.OneClassSVM(nu=0.2, tol=1e-8),
    "polynomial": mm.OneClassSVM(kernel="poly", degree=2, coef0=1.0, nu=0.2, tol=1e-8),
}
regions = pytest.mark.parametrize("model", REGIONS.values(), ids=REGIONS)
weighted = pytest.mark.parametrize("are_weighted", [False, True], ids=["equal", "weighted"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    return X, 5.0 + 3.0 * X[:, 0] ** 2 + 0.3 * rng.normal(size=80)


def weights(are_weighted):
    if not are_weighted:
        return None
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 80)
    weights[3] = 0.0
    return weights


# Regressions ----------------------------------------------------------------------------------


@regressions
@weighted
def test_rows_about_the_tube(model, are_weighted, data):
    X, y = data
    w = weights(are_weighted)
    model.fit(X, y, w)
    table = support_table(model, X, y, w)
    epsilon = getattr(model, "epsilon_", getattr(model, "epsilon", None))
    np.testing.assert_array_equal(table.index, np.arange(80) if w is None else np.flatnonzero(w))
    np.testing.assert_allclose(table.prediction, model.predict(X)[table.index], atol=1e-9)
    np.testing.assert_allclose(table.residual, y[table.index] - table.prediction)
    np.testing.assert_allclose(table.slack, np.maximum(np.abs(table.residual) - epsilon, 0.0))
    alpha = np.zeros(80)
    alpha[model.support_] = np.ravel(model.dual_coef_)
    np.testing.assert_allclose(table.alpha, alpha[table.index])
    assert (np.sign(table.alpha)[table.state == "above"] == 1).all()
    assert (np.sign(table.alpha)[table.state == "below"] == -1).all()
    inside = table.state == "in the tube"
    assert np.abs(table.alpha[inside]).max(initial=0.0) <= 1e-4 * np.abs(table.alpha).max()
    assert sum(table.counts.values()) == len(table)


@regressions
def test_complementarity_sums_to_the_gap(model, data):
    X, y = data
    model.fit(X, y)
    certificate = model.certificate_
    total = support_table(model, X, y).complementarity.sum()
    # A plane need not be Σ α x: that part of the gap is of no sample.
    assert total <= certificate.gap + 1e-6 * certificate.primal


@regressions
@weighted
def test_reports_of_regressions(model, are_weighted, data):
    X, y = data
    w = weights(are_weighted)
    model.fit(X, y, w)
    report = margin_report(model, X, y, w)
    used = np.arange(80) if w is None else np.flatnonzero(w)
    g = model.predict(X)[used]
    assert report.errors.r2 == pytest.approx(r2_score(y[used], g))
    assert report.errors.mae == pytest.approx(mean_absolute_error(y[used], g))
    assert report.errors.rmse == pytest.approx(root_mean_squared_error(y[used], g))
    assert report.n_free + report.n_bound == report.n_support == model.support_.size
    counts = support_table(model, X, y, w).counts
    assert (report.errors.n_above, report.errors.n_below) == (counts["above"], counts["below"])
    if report.nu is not None:
        assert report.outside <= report.nu + 1e-9 <= report.support_fraction + 2e-9
    if isinstance(model, mm.NuSVR):
        assert report.epsilon == model.epsilon_
        assert report.nu == pytest.approx(0.4)
    bare = margin_report(model)
    assert bare.errors is None
    assert bare.norm == pytest.approx(report.norm, rel=1e-5)
    if hasattr(model, "coef_") and not are_weighted:
        assert bare.norm == pytest.approx(np.linalg.norm(model.coef_))
    text = str(report)
    assert text.startswith(f"{report.estimator}: the targets\n  fit            R² ")
    assert "optimal to a relative gap" in text


def test_a_limit_is_not_called_optimal(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [
            mm.SVR(C=1e4, max_iter=3),
            mm.OneClassSVM(max_iter=3),
            mm.NuSVR(C=1e3, max_iter=3),
        ]
        for model in models:
            report = str(margin_report(model.fit(X, y), X, y))
            assert "not optimal: relative gap" in report
            assert "iteration limit" in report
            support_table(model, X, y)


def test_text_of_a_tube(data):
    X, y = data
    table = support_table(mm.SVR().fit(X, y), X, y)
    lines = table.to_text(n_rows=3, sort="residual").splitlines()
    assert lines[0].startswith("the targets: 80 samples")
    assert lines[1].split() == [
        "row", "target", "prediction", "residual", "state", "alpha", "slack", "violation", "C"
    ]  # fmt: skip
    assert int(lines[2].split()[0]) == np.abs(table.residual).argmax()
    with pytest.raises(ValueError, match="sort must be 'alpha', 'residual' or None, got 'margin'"):
        table.to_text(sort="margin")
    assert set(table.to_dict()) >= {"target", "prediction", "residual", "alpha", "state"}
    assert table.to_pandas()["state"].tolist() == table.state.tolist()


# One class ------------------------------------------------------------------------------------


@regions
@weighted
def test_rows_about_the_region(model, are_weighted, data):
    X, _ = data
    w = weights(are_weighted)
    model.fit(X, sample_weight=w)
    table = support_table(model, X, sample_weight=w)
    np.testing.assert_allclose(table.score, model.decision_function(X)[table.index], atol=1e-6)
    outlier = table.state == "outlier"
    np.testing.assert_allclose(table.alpha[outlier], table.bound[outlier])
    assert not table.alpha[table.state == "inside"].any()
    assert table.complementarity.sum() == pytest.approx(model.certificate_.gap, abs=1e-6)
    report = margin_report(model, X, sample_weight=w)
    assert report.n_outliers == outlier.sum()
    assert report.outliers <= 0.2 + 1e-9 <= report.support_fraction + 2e-9
    assert report.rho == model.offset_[0]
    assert margin_report(model).norm == pytest.approx(report.norm, rel=1e-6)
    assert f"(outliers) ≤ {model.nu:.4g} ≤" in str(report)


def test_text_of_a_region(data):
    X, _ = data
    text = support_table(mm.OneClassSVM().fit(X), X).to_text(n_rows=2, sort="score")
    assert text.splitlines()[1].split()[:3] == ["row", "g(x)", "state"]
    assert "outlier" in text


# Data of every kind, and what is refused ----------------------------------------------------------


@pytest.mark.parametrize("make", [mm.SVR, mm.NuSVR, mm.OneClassSVM])
def test_precomputed_sparse_and_float32_say_the_same(make, data):
    X, y = data
    expected = support_table(make(kernel=RBF(gamma=0.5), tol=1e-9).fit(X, y), X, y)
    K = RBF(gamma=0.5)(X)
    for kernel, given in [("precomputed", K), (RBF(gamma=0.5), sparse.csr_matrix(X))]:
        table = support_table(make(kernel=kernel, tol=1e-9).fit(given, y), given, y)
        np.testing.assert_allclose(table.alpha, expected.alpha, atol=1e-5)
    near = X.astype(np.float32)
    table = support_table(make(kernel=RBF(gamma=0.5)).fit(near, y), near, y)
    assert len(table) == 80
    with pytest.raises(ValueError, match="holds no kernel values: pass X"):
        margin_report(make(kernel="precomputed").fit(K, y))


@pytest.mark.parametrize("diagnose", [support_table, margin_report])
@pytest.mark.parametrize("model", [mm.SVR(), mm.NuSVR(), mm.LinearSVR(), mm.OneClassSVM()])
def test_other_data_are_refused(diagnose, model, data):
    X, y = data
    model.fit(X, y)
    others = [(1.01 * X, y), (X[:50], y[:50]), (X[:, :1], y)]
    if not isinstance(model, mm.OneClassSVM):
        others += [(X, y + 0.1 * np.arange(80)), (X, y[::-1])]
    for given in others:
        with pytest.raises(ValueError, match=r"X|primal|dual|features|samples here"):
            diagnose(model, *given)


def test_wrong_options_are_named(data):
    X, y = data
    model = mm.SVR().fit(X, y)
    with pytest.raises(ValueError, match="y must hold the targets of the fit, got None"):
        support_table(model, X)
    with pytest.raises(ValueError, match="one task only: leave out task=1"):
        support_table(model, X, y, task=1)
    with pytest.raises(ValueError, match="tol must be a number of at least 0, got -1"):
        support_table(model, X, y, tol=-1)
    with pytest.raises(ValueError, match="C=9 was set after the fit"):
        support_table(mm.SVR().fit(X, y).set_params(C=9), X, y)


def test_a_tolerance_widens_the_edge(data):
    X, y = data
    model = mm.SVR().fit(X, y)
    counts = [support_table(model, X, y, tol=tol).counts["on its edge"] for tol in (0.0, 0.1, 99.0)]
    assert counts == sorted(counts)
    assert counts[-1] == 80


# Errors and scales --------------------------------------------------------------------------------


def test_errors_of_targets():
    errors = target_errors([0.0, 1.0, 2.0], [0.5, 1.0, 1.0], epsilon=0.25)
    assert (errors.n_above, errors.n_below, errors.n_inside) == (1, 1, 1)
    assert np.isnan(target_errors([1.0], [1.0], 0.1).r2)
    assert str(target_errors([1.0, 1.0], [1.0, 2.0], 0.1)).startswith("R² –, MAE 0.5")
    with pytest.raises(ValueError, match="one target per row of X, got 2 for 3 rows"):
        target_errors([1.0, 1.0], [1.0, 2.0, 3.0], 0.1)


def test_advice_on_scales(data):
    X, y = data
    assert scaling_advice(mm.SVR().fit(X, y), X, y) == []
    wide = X * [1.0, 1e4]
    (advice,) = scaling_advice(mm.SVR().fit(wide, y), wide, y)
    assert advice.startswith("The widest feature spreads")
    assert advice.endswith("scale them (StandardScaler).")
    scaled = make_pipeline(StandardScaler(), mm.SVR()).fit(wide, y)
    assert scaling_advice(scaled, wide, y) == []
    assert scaling_advice(mm.SVC().fit(wide, y > 6.0), wide, y > 6.0) == [advice]


@pytest.mark.parametrize(
    ("model", "factor", "words"),
    [
        (mm.SVR(), 1e4, "C = 1 is only"),
        (mm.NuSVR(), 1e4, "C = 1 is only"),
        (mm.SVR(), 1e-3, "holds all targets and w = 0: lower epsilon"),
        (mm.LinearSVR(epsilon=8.0), 1.0, "standard deviations of y: lower epsilon"),
    ],
)
def test_advice_on_targets(model, factor, words, data):
    X, y = data
    (advice,) = scaling_advice(model.fit(X, factor * y), X, factor * y)
    assert words in advice
    assert "TransformedTargetRegressor" in advice
