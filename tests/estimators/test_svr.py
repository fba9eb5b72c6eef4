"""SVR and NuSVR: certificates, agreement with scikit-learn, limits, degenerate targets, errors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score

import maxmargin as mm
from maxmargin.kernels import RBF
from tests.helpers.regression import (
    KERNELS,
    SECONDS,
    STORAGE,
    N,
    assert_agrees,
    assert_pickles_and_clones,
    coefficients,
    proof,
    rows_for,
    targets,
    weights_for,
)

X, Y = targets()
FEW, Y_FEW = targets(40)
MODELS = [mm.SVR, mm.NuSVR]
THEIRS = {mm.SVR: svm.SVR, mm.NuSVR: svm.NuSVR}


# Agreement with scikit-learn --------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_parameters_are_scikit_learns_and_more(model):
    ours, theirs = (inspect.signature(each).parameters for each in (model, THEIRS[model]))
    assert list(ours)[: len(theirs)] == list(theirs)
    for name, parameter in theirs.items():
        assert parameter.kind is ours[name].kind
        if name != "cache_size":  # a share of the free memory
            assert ours[name].default == parameter.default
    assert repr(model(C=2.0)) == repr(THEIRS[model](C=2.0))


@pytest.mark.filterwarnings("ignore:The kernel")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", MODELS)
def test_agrees_with_scikit_learn(model, kernel, storage, weighted):
    rows = rows_for(kernel, storage, X)
    if rows is None:
        pytest.skip("kernel values are given as a dense matrix")
    if storage == "csr" and kernel == "callable":
        rows = X  # scikit-learn's makes a model of another kind
    if weighted and kernel in ("precomputed", "callable"):
        pytest.skip("scikit-learn's support_ counts only rows of positive weight")
    weights = weights_for() if weighted else None
    # Where νΣC is a whole number no α need be free, and the bias is not unique.
    others = {"nu": 0.43} if model is mm.NuSVR else {}
    others |= KERNELS[kernel]
    tol = 1e-6 if (kernel, storage) == ("callable", "float32") else 1e-8
    ours = model(tol=tol, time_limit=SECONDS, **others).fit(rows, Y, weights)
    theirs = THEIRS[model](tol=1e-9, **others).fit(rows, Y, weights)
    assert_agrees(ours, theirs, rows)
    assert ours.certificate_.holds(tol)
    if not weighted:
        np.testing.assert_array_equal(ours.support_, theirs.support_)


# Certificates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize(
    "model",
    [
        mm.SVR(),
        mm.SVR(C=100.0, epsilon=0.01),
        mm.SVR(loss="squared_epsilon_insensitive"),
        mm.SVR(fit_intercept=False),
        mm.NuSVR(),
        mm.NuSVR(nu=0.05, C=10.0),
        mm.NuSVR(nu=0.9),
    ],
    ids=repr,
)
def test_certificate_of_the_published_model_holds(model, kernel):
    model = model.set_params(time_limit=SECONDS, **KERNELS[kernel])
    for weights in (None, weights_for()):
        model.fit(X, Y, weights)
        assert model.status_ is mm.Status.CONVERGED
        assert model.certificate_.holds(model.tol)
        found = proof(model, X, Y, weights)
        assert found.holds(2.0 * model.tol), found
        assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("model", [mm.SVR(), mm.NuSVR()], ids=repr)
def test_bounded_certificates_claim_no_more_than_complete_ones(model):
    rows, values = targets(4200, 10)
    model.fit(rows, values)
    claim, found = model.certificate_, proof(model, rows, values)
    assert claim.coverage == "bounded"
    assert found.coverage == "complete"
    assert claim.holds(model.tol)
    # The published bias is rounded once more.
    assert found.violation <= (claim.violation + claim.rounding) * (1.0 + 1e-6)
    assert found.relative_gap <= claim.relative_gap * (1.0 + 1e-3) + 1e-9


@pytest.mark.parametrize("solver", ["decomposition", "smo", "active-set", "qp"])
@pytest.mark.parametrize("model", [mm.SVR(), mm.NuSVR()], ids=repr)
def test_every_solver_finds_the_same(model, solver):
    if solver == "qp":
        pytest.importorskip("piqp")
    first = model.set_params(tol=1e-8, solver="auto").fit(FEW, Y_FEW).predict(FEW)
    again = model.set_params(solver=solver).fit(FEW, Y_FEW).predict(FEW)
    np.testing.assert_allclose(again, first, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_a_quadratic_program(weighted):
    pytest.importorskip("piqp")
    costs = 2.0 * (np.random.default_rng(0).uniform(0.5, 2.0, 40) if weighted else np.ones(40))
    model = mm.SVR(C=2.0, epsilon=0.2, gamma=0.4, tol=1e-9).fit(FEW, Y_FEW, costs / 2.0)
    K = RBF(0.4)(FEW)
    # min ½βᵀKβ − yᵀβ + ε Σt with −t ≤ β ≤ t ≤ C and Σβ = 0.
    eye, none = np.eye(40), np.zeros((40, 40))
    program = mm.qp.QP(
        np.block([[K, none], [none, 1e-300 * eye]]),
        np.concatenate([-Y_FEW, np.full(40, 0.2)]),
        np.block([[eye, -eye], [-eye, -eye], [none, eye]]),
        np.concatenate([np.zeros(80), costs]),
        np.concatenate([np.ones(40), np.zeros(40)])[np.newaxis],
        np.zeros(1),
    )
    found = mm.qp.solve(program)
    assert -found.objective == pytest.approx(model.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(coefficients(model, 40), found.x[:40], atol=1e-5)


# Limits of the theory ---------------------------------------------------------------------------


def test_interpolates_without_tube_and_with_large_cost():
    for C in (1e9, np.inf):
        model = mm.SVR(C=C, epsilon=0.0, gamma=2.0).fit(FEW, Y_FEW)
        np.testing.assert_allclose(model.predict(FEW), Y_FEW, atol=1e-6)
        assert model.certificate_.holds(model.tol)


@pytest.mark.parametrize("C", [1.0, 1e6, np.inf])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_wide_tube_needs_no_function(kernel, C):
    half = 0.5 * np.ptp(Y)
    for epsilon in (half * (1.0 + 1e-12), 2.0 * half):
        model = mm.SVR(kernel=kernel, C=C, epsilon=epsilon).fit(X, Y)
        assert model.n_support_ == 0
        assert model.support_.size == model.dual_coef_.size == 0
        assert (model.predict(X) == model.intercept_).all()
        assert model.intercept_ == pytest.approx(0.5 * (Y.min() + Y.max()))
        assert model.certificate_.primal == 0.0
        assert model.certificate_.holds(1e-9)


@pytest.mark.parametrize("value", [0.0, 5.0, -1e6, 1e-12])
@pytest.mark.parametrize("C", [1.0, 1e6, np.inf])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("n", [1, 2, 30, N])
def test_constant_targets(n, epsilon, C, value):
    for kernel in ("linear", "rbf"):
        model = mm.SVR(kernel=kernel, C=C, epsilon=epsilon).fit(X[:n], np.full(n, value))
        assert model.n_support_ == 0
        assert (model.predict(X) == value).all()
        assert model.certificate_.holds(1e-9)
        if np.isfinite(C):
            model = mm.NuSVR(kernel=kernel, C=C).fit(X[:n], np.full(n, value))
            assert model.n_support_ == 0
            assert (model.predict(X) == value).all()
            assert model.epsilon_ == 0.0
            assert model.certificate_.holds(model.tol)


def test_two_samples_have_the_exact_line():
    model = mm.SVR(kernel="linear", C=np.inf, epsilon=0.5).fit([[0.0], [4.0]], [1.0, 6.0])
    np.testing.assert_allclose(model.coef_, [[1.0]], rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, 1.5, rtol=1e-12)


def test_hard_tube_without_a_function_is_warned_of():
    rows, values = np.repeat(FEW, 2, axis=0), np.tile([0.0, 1.0], 40)
    with pytest.warns(ConvergenceWarning, match="within epsilon of every target"):
        model = mm.SVR(C=np.inf, epsilon=0.1).fit(rows, values)
    assert np.isfinite(model.predict(rows)).all()
    assert np.abs(model.predict(rows)).max() < 10.0
    assert not model.certificate_.holds(model.tol)
    assert np.isfinite([model.certificate_.primal, model.certificate_.dual]).all()


@pytest.mark.parametrize("nu", [0.1, 0.3, 0.7])
def test_nu_bounds_errors_and_support_vectors(nu):
    model = mm.NuSVR(nu=nu, gamma=0.3, tol=1e-6).fit(X, Y)
    off = np.abs(Y - model.predict(X)) - model.epsilon_
    assert np.mean(off > 1e-4) <= nu <= model.n_support_[0] / N
    same = mm.SVR(epsilon=model.epsilon_, gamma=0.3, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(same.predict(X), model.predict(X), atol=1e-4)


def test_far_targets_are_as_good_as_near_ones():
    near = mm.SVR(gamma=0.3, tol=1e-6).fit(X, Y)
    far = mm.SVR(gamma=0.3, tol=1e-6).fit(X, Y + 2.0**30)
    np.testing.assert_allclose(far.predict(X) - 2.0**30, near.predict(X), atol=1e-3)
    assert far.certificate_.holds(far.tol)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_scale_of_targets_does_not_matter(scale):
    model = mm.SVR(gamma=0.3).fit(X, Y)
    scaled = mm.SVR(gamma=0.3, C=scale, epsilon=0.1 * scale).fit(X, scale * Y)
    np.testing.assert_allclose(scaled.predict(X) / scale, model.predict(X), atol=1e-2)
    assert scaled.certificate_.holds(scaled.tol)


def test_repeated_rows_are_rows_of_weight_two():
    for model in (mm.SVR(tol=1e-8), mm.NuSVR(tol=1e-8)):
        model.set_params(gamma=0.3)
        twice = model.fit(np.vstack([FEW, FEW[:20]]), np.append(Y_FEW, Y_FEW[:20])).predict(X)
        weights = np.where(np.arange(40) < 20, 2.0, 1.0)
        np.testing.assert_allclose(model.fit(FEW, Y_FEW, weights).predict(X), twice, atol=1e-6)


# Input ------------------------------------------------------------------------------------------

BAD_TARGETS = {
    "nan": (np.where(np.arange(40) == 3, np.nan, Y_FEW), "NaN"),
    "infinite": (np.where(np.arange(40) == 3, np.inf, Y_FEW), "infinity"),
    "text": (np.array(["low", "high"] * 20), "numbers"),
    "objects": (np.array(["low", 1.0] * 20, dtype=object), "could not convert"),
    "complex": (Y_FEW + 1j, "Complex"),
    "two columns": (np.column_stack([Y_FEW, Y_FEW]), "1d array"),
    "too few": (Y_FEW[:-1], "inconsistent"),
    "huge": (1e200 * Y_FEW, "overflow"),
    "none": (None, "y"),
}


@pytest.mark.parametrize("name", BAD_TARGETS)
@pytest.mark.parametrize("model", MODELS)
def test_bad_targets_are_refused(model, name):
    values, message = BAD_TARGETS[name]
    with pytest.raises(ValueError, match=message):
        model().fit(FEW, values)


@pytest.mark.parametrize("values", [np.arange(40), Y_FEW > 0.0, list(Y_FEW), Y_FEW.astype("f4")])
def test_targets_of_any_numeric_type(values):
    expected = mm.SVR().fit(FEW, np.asarray(values, dtype=np.float64)).predict(FEW)
    np.testing.assert_array_equal(mm.SVR().fit(FEW, values).predict(FEW), expected)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        *((mm.SVR, {"epsilon": value}) for value in (-0.1, np.nan, "0.1", None)),
        *((mm.NuSVR, {"nu": value}) for value in (0.0, -0.5, 1.5, np.nan, "half")),
        *((each, {"C": value}) for each in MODELS for value in (0.0, -1.0, np.nan, "1")),
        (mm.NuSVR, {"C": np.inf}),
        (mm.SVR, {"loss": "hinge"}),
    ],
)
def test_bad_parameters_are_refused(model, parameters):
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter"):
        model(**parameters).fit(FEW, Y_FEW)


@pytest.mark.parametrize("model", MODELS)
def test_bad_weights_are_refused(model):
    for weights in (np.zeros(40), -np.ones(40)):
        with pytest.raises(ValueError, match="all samples have zero or negative weights"):
            model().fit(FEW, Y_FEW, weights)
    with pytest.raises(ValueError, match="NaN"):
        model().fit(FEW, Y_FEW, np.where(np.arange(40) == 2, np.nan, 1.0))


@pytest.mark.parametrize("model", MODELS)
def test_input_is_not_changed(model):
    for storage in STORAGE.values():
        rows, values, weights = storage(X.copy()), Y.copy(), weights_for()
        before = rows.copy()
        model().fit(rows, values, weights).predict(rows)
        difference = abs(rows - before)
        assert difference.max() == 0.0
        np.testing.assert_array_equal(values, Y)
        np.testing.assert_array_equal(weights, weights_for())


def test_a_model_of_dense_rows_refuses_sparse_ones():
    with pytest.raises(ValueError, match="sparse"):
        mm.SVR().fit(FEW, Y_FEW).predict(sparse.csr_matrix(FEW))


def test_samples_may_be_objects():
    words = ["a", "ab", "abc", "b", "bc"]

    def common(some, others):
        return np.array([[len(set(x) & set(z)) for z in others] for x in some], dtype=float)

    model = mm.SVR(kernel=common, C=10.0, epsilon=0.1).fit(words, [1.0, 2.0, 3.0, 1.0, 2.0])
    np.testing.assert_allclose(model.predict(words), [1.0, 2.0, 3.0, 1.0, 2.0], atol=0.2)


@pytest.mark.parametrize("model", MODELS)
def test_needs_a_fit(model):
    with pytest.raises(NotFittedError):
        model().predict(FEW)


# Fits that end early, go on, and are watched -----------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_warm_start_goes_on(model):
    first = model(gamma=0.3, warm_start=True, tol=1e-5).fit(X, Y)
    steps, predicted = first.n_iter_, first.predict(X)
    again = first.fit(X, Y)
    assert again.n_iter_ <= steps // 4
    np.testing.assert_allclose(again.predict(X), predicted, atol=1e-4)
    other = first.set_params(C=2.0).fit(X, Y)
    assert other.certificate_.holds(1e-5)
    with pytest.raises(ValueError, match="warm_start=True"):
        first.fit(X[:-1], Y[:-1])


@pytest.mark.parametrize("model", MODELS)
def test_iteration_limit(model):
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        limited = model(max_iter=3).fit(X, Y)
    assert limited.fit_status_ == 1
    assert limited.n_iter_ == 3
    assert limited.status_ is mm.Status.ITERATION_LIMIT
    assert np.isfinite(limited.certificate_.relative_gap)


def test_time_limit():
    rows, values = targets(4000, 5)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = mm.SVR(C=1e4, epsilon=0.0, time_limit=0.2).fit(rows, values)
    assert model.status_ is mm.Status.TIME_LIMIT
    assert np.isfinite(model.predict(rows[:5])).all()


@pytest.mark.parametrize("model", MODELS)
def test_callbacks_follow_and_stop_a_fit(model):
    recorder = mm.Recorder()
    model(callback=recorder, tol=1e-6).fit(X, Y)
    assert len(recorder.steps) >= 2
    np.testing.assert_array_equal(recorder.steps[-1].labels, Y)
    stopped = model(callback=lambda step: True, tol=1e-6).fit(X, Y)
    assert stopped.status_ is mm.Status.STOPPED


def test_verbose_prints_lines(capsys):
    mm.SVR(verbose=True).fit(FEW, Y_FEW)
    assert "[all samples]" in capsys.readouterr().out


@pytest.mark.parametrize("model", MODELS)
def test_pickles_and_clones(model):
    assert_pickles_and_clones(model(gamma=0.3).fit(X, Y), X)


def test_scores_and_searches_take_it_for_a_regressor():
    assert mm.SVR(gamma=0.3, C=10.0).fit(X, Y).score(X, Y) > 0.9
    assert cross_val_score(mm.SVR(gamma=0.3), X, Y).mean() > 0.8
    K = X @ X.T
    precomputed = cross_val_score(mm.SVR(kernel="precomputed", tol=1e-8), K[:60, :60], Y[:60])
    direct = cross_val_score(mm.SVR(kernel="linear", tol=1e-8), X[:60], Y[:60])
    np.testing.assert_allclose(precomputed, direct, rtol=1e-6)


def test_same_answer_with_one_thread():
    one = mm.SVR(n_jobs=1).fit(X, Y)
    np.testing.assert_array_equal(mm.SVR(n_jobs=2).fit(X, Y).predict(X), one.predict(X))


# What certificates are relative to, and about ----------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "decomposition"])
def test_violations_are_relative_to_half_the_range_of_the_targets(solver):
    epsilon = 0.3 * np.ptp(Y)
    model = mm.SVR(epsilon=epsilon, solver=solver, max_iter=3)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, Y)
    beta, r = coefficients(model, Y.size), Y - model.predict(X)
    grow = np.where(beta < model.C, r - np.where(beta >= 0.0, epsilon, -epsilon), 0.0)
    shrink = np.where(beta > -model.C, np.where(beta > 0.0, epsilon, -epsilon) - r, 0.0)
    worst = max(grow.max(), shrink.max())
    assert model.certificate_.violation == pytest.approx(worst / (0.5 * np.ptp(Y)), rel=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_the_certificate_is_about_the_bias_as_it_is_rounded(model):
    assert model().fit(FEW, Y_FEW + 2.0**30).certificate_.holds(1e-6)
    with pytest.warns(ConvergenceWarning):
        far = model().fit(FEW, Y_FEW + 2.0**53)
    # The bias is a multiple of 2 there.
    assert far.intercept_[0] % 2.0 == 0.0
    assert far.certificate_.relative_gap > 1e-2


def test_a_tube_beyond_the_range_of_squares():
    model = mm.SVR(epsilon=1e300).fit(X, Y)
    assert not model.support_.size
    assert model.certificate_.holds(1e-10)


def test_a_finer_tolerance_gives_no_coarser_answer():
    rough, fine = (
        mm.SVR(kernel="poly", coef0=0.0, gamma=1.0, C=100.0, tol=tol) for tol in (1e-4, 1e-12)
    )
    rough.fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        fine.fit(X, Y)
    assert fine.certificate_.relative_gap <= max(rough.certificate_.relative_gap, 1e-6)


def test_verbose_counts_no_errors(capsys):
    mm.SVR(verbose=True).fit(X, X[:, 0])
    printed = capsys.readouterr().out
    assert "violation" in printed
    assert "errors" not in printed
