"""Hard margins end with a plane that separates, a verified proof, or the word undecided.

Verdicts are compared with exact arithmetic: on a line by comparing numbers, in the plane and beyond
by checking planes and proofs in rational numbers.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.kernels import RBF, Linear, Polynomial

LINEAR_SOLVERS = ["auto", "newton", "interior-point", "coordinate-descent"]
KERNEL_SOLVERS = ["auto", "decomposition", "smo", "active-set", "qp"]
MACHINES = {
    **{f"LinearSVC-{s}": lambda s=s: mm.LinearSVC(C=np.inf, solver=s) for s in LINEAR_SOLVERS},
    **{f"SVC-{s}": lambda s=s: mm.SVC(C=np.inf, kernel="linear", solver=s) for s in KERNEL_SOLVERS},
}
NO_BIAS = {
    **{
        f"LinearSVC-{s}": lambda s=s: mm.LinearSVC(C=np.inf, solver=s, fit_intercept=False)
        for s in LINEAR_SOLVERS
    },
    **{
        f"SVC-{s}": lambda s=s: mm.SVC(C=np.inf, kernel="linear", solver=s, fit_intercept=False)
        for s in ("auto", "active-set", "coordinate-ascent")
    },
}


def ending(model, X, y):
    """Fit, and return "plane", "proof" or "undecided", each of them checked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except mm.NotSeparableError as error:
            u = error.proof.multipliers
            assert u.min() >= 0.0
            assert u.sum() == pytest.approx(1.0)
            return "proof"
    told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    if any("undecided" in message for message in told):
        assert not model.certificate_.holds(model.tol)
        return "undecided"
    if told:  # a plane that is not proved to be the widest
        assert not model.certificate_.holds(model.tol)
        return "plane" if separates(model, X, y) else "undecided"
    assert model.certificate_.holds(model.tol)
    assert separates(model, X, y), "a plane that does not separate, without a word"
    assert ((model.decision_function(X) > 0) == (y == model.classes_[1])).all()
    return "plane"


def separates(model, X, y):
    """Whether the plane separates, in rational numbers."""
    return rationally(model.coef_[0], model.intercept_[0], X, y)


def rationally(w, b, X, y):
    w, b = [Fraction(float(v)) for v in w], Fraction(float(b))
    signs = np.where(y == np.unique(y)[1], 1, -1).tolist()
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    scores = (sum(Fraction(v) * c for v, c in zip(row, w, strict=True)) + b for row in X.tolist())
    return all(sign * score > 0 for sign, score in zip(signs, scores, strict=True))


def has_threshold(x, y):
    sides = [[a for a, label in zip(x, y, strict=True) if label == k] for k in (0, 1)]
    return max(sides[0]) < min(sides[1]) or max(sides[1]) < min(sides[0])


def line_sets(largest):
    """Yield integers from −2 to 2 with both labels: all sets of at most so many points.

    A set and its mirror image cover both names of the classes.
    """
    for n in range(2, largest + 1):
        for x in combinations_with_replacement(range(-2, 3), n):
            for y in product((0, 1), repeat=n):
                if y[0] < max(y):
                    yield x, y


@pytest.mark.parametrize("name", MACHINES)
def test_all_small_sets_on_a_line(name):
    for x, y in line_sets(3):
        found = ending(MACHINES[name](), np.array(x, dtype=float)[:, np.newaxis], np.array(y))
        assert found == ("plane" if has_threshold(x, y) else "proof"), (x, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LinearSVC-auto", "SVC-auto", "SVC-decomposition"])
def test_all_sets_of_five_on_a_line(name):
    for x, y in line_sets(5):
        found = ending(MACHINES[name](), np.array(x, dtype=float)[:, np.newaxis], np.array(y))
        assert found == ("plane" if has_threshold(x, y) else "proof"), (x, y)


@pytest.mark.parametrize("name", NO_BIAS)
def test_all_small_sets_on_a_line_without_a_bias(name):
    for x, y in line_sets(3):
        signed = [a * (2 * label - 1) for a, label in zip(x, y, strict=True)]
        truth = min(signed) > 0 or max(signed) < 0
        found = ending(NO_BIAS[name](), np.array(x, dtype=float)[:, np.newaxis], np.array(y))
        assert found == ("plane" if truth else "proof"), (x, y)


@pytest.mark.parametrize("solver", LINEAR_SOLVERS)
def test_all_small_sets_on_a_line_with_a_penalised_bias(solver):
    for x, y in line_sets(3):
        model = mm.LinearSVC(C=np.inf, solver=solver, penalize_intercept=True)
        found = ending(model, np.array(x, dtype=float)[:, np.newaxis], np.array(y))
        assert found == ("plane" if has_threshold(x, y) else "proof"), (x, y)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("labels", [[0, 1, 0], [1, 0, 1]])
def test_a_sample_between_two_of_the_other_class(name, labels):
    with pytest.raises(mm.NotSeparableError, match="finite C") as caught:
        MACHINES[name]().fit([[-2.0], [-1.0], [2.0]], labels)
    signs = 2.0 * np.array(labels) - 1.0
    u = caught.value.proof.multipliers
    np.testing.assert_allclose(signs * u @ [[-2.0, 1], [-1.0, 1], [2.0, 1]], 0.0, atol=1e-15)


@pytest.mark.parametrize("name", MACHINES)
def test_far_and_close_rows_are_separable(name):
    for X in ([[1e7, 0.0], [1e7 + 2, 0.0]], [[1.0], [1.0000001]]):
        X = np.array(X)
        model = MACHINES[name]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, [0, 1])
        assert separates(model, X, np.array([0, 1]))
        assert (model.predict(X) == [0, 1]).all()


@pytest.mark.parametrize("name", MACHINES)
def test_a_margin_of_a_ten_thousandth(name):
    x = np.array([-1e-4, 1e-4, -2.2, 1.5, -0.5, 0.3])
    model = MACHINES[name]().fit(x[:, np.newaxis], x > 0)
    assert ending(MACHINES[name](), x[:, np.newaxis], x > 0) == "plane"
    assert 1.0 / np.linalg.norm(model.coef_) == pytest.approx(1e-4, rel=1e-3)


def near(seed, gap, offset, scales, d):
    """Return rows with a plane of about this margin between them, moved and scaled."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([10, 40, 120]))
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    y = (X @ w > 0).astype(int)
    y[:2] = [0, 1]
    at = rng.choice(n, 2 * d + 2, replace=False)
    at = np.union1d(at, [0, 1])
    X[at] += np.outer((2 * y[at] - 1) * gap - X[at] @ w, w)
    X *= 10.0 ** rng.uniform(-scales, scales, size=d)
    return X + offset * np.abs(X).max(axis=0), y


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("scales", [0, 8])
def test_near_separable_data_never_get_a_wrong_verdict(gap, offset, scales):
    """Every plane is checked in rational numbers; a proof must be that of `separability`."""
    for seed, d in enumerate([1, 2, 4]):
        X, y = near(seed, gap, offset, scales, d)
        report = mm.separability(X, y, tol=0.0)
        if report.separable:
            assert rationally(report.hyperplane.w, report.hyperplane.b, X, y)
        for make in (MACHINES["LinearSVC-auto"], MACHINES["SVC-auto"]):
            found = ending(make(), X, y)
            assert found in {True: ("plane", "undecided"), False: ("proof",)}.get(
                report.separable, ("undecided", "plane")
            )
        if offset == 0.0 and gap >= 1e-9:
            assert report.separable
            assert ending(MACHINES["LinearSVC-auto"](), X, y) == "plane"


@pytest.mark.parametrize("name", ["LinearSVC-auto", "SVC-auto"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, np.float32])
def test_contradicting_rows_are_refused_at_once(name, form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] > 0).astype(int)
    X[17], y[17] = X[200], 1 - y[200]
    with pytest.raises(mm.NotSeparableError) as caught:
        MACHINES[name]().fit(form(X), y)
    assert np.flatnonzero(caught.value.proof.multipliers).tolist() == [17, 200]


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_contradicting_rows_are_a_proof_for_every_kernel(kernel):
    X = np.array([[0.0, 1.0], [2.0, -1.0], [1.0, 1.0], [2.0, -1.0]])
    with pytest.raises(mm.NotSeparableError) as caught:
        mm.SVC(C=np.inf, kernel=kernel).fit(X, [0, 0, 1, 1])
    assert caught.value.proof.multipliers.tolist() == [0.0, 0.5, 0.0, 0.5]
    K = RBF(gamma=1.0)(X)
    with pytest.raises(mm.NotSeparableError):
        mm.SVC(C=np.inf, kernel="precomputed").fit(K, [0, 0, 1, 1])


def test_a_gaussian_kernel_separates_all_rows_that_differ():
    """Margins may be too small for float64: then the verdict is undecided, never a proof."""
    for close in (1e-1, 1e-3, 1e-5, 1e-8):
        X = close * np.arange(14.0)[:, np.newaxis]
        y = np.arange(14) % 3 == 0
        model = mm.SVC(C=np.inf, gamma=0.5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        if not model.certificate_.holds(model.tol):
            assert "undecided" in str(caught[0].message)
        else:
            assert (model.predict(X) == y).all()


def test_polynomials_are_refuted_in_exact_arithmetic():
    """Alternating labels on a line have a plane for polynomials of high degree only."""
    X, y = np.arange(6.0)[:, np.newaxis], np.arange(6) % 2
    for degree in range(1, 7):
        model = mm.SVC(C=np.inf, kernel="poly", degree=degree, gamma=1.0, coef0=1.0)
        if degree >= 5:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)  # five sign changes take degree five
            continue
        with pytest.raises(mm.NotSeparableError) as caught:
            model.fit(X, y)
        u = caught.value.proof.multipliers * (2 * y - 1)
        powers = X ** np.arange(degree + 1)
        np.testing.assert_allclose(u @ powers, 0.0, atol=1e-12 * np.abs(powers).max())


@pytest.mark.parametrize("kernel", [Polynomial(2, coef0=1.0), Linear() + Polynomial(2), RBF(1.0)])
def test_a_small_distance_in_feature_space_is_no_proof(kernel):
    """Rows 1e-9 apart with different labels: kernels have no digits left for their difference."""
    X = np.array([[1.0, 0.5], [1.0 + 1e-9, 0.5], [-1.0, 0.25], [0.3, 2.0]])
    y = np.array([0, 1, 0, 1])
    assert mm.separability(X, y, tol=0.0).separable is True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mm.SVC(C=np.inf, kernel=kernel).fit(X, y)
    assert model.certificate_.holds(model.tol) or "undecided" in str(caught[0].message)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("solver", KERNEL_SOLVERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_finite_costs_never_raise_the_error_of_hard_margins(kernel, solver, loss):
    for X in ([[1e7], [1e7]], [[1e7, 1.0], [1e7, 2.0], [1e7, 1.5]], [[0.0], [0.0]]):
        y = np.arange(len(X)) % 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mm.SVC(C=1.0, kernel=kernel, solver=solver, loss=loss).fit(X, y)


def test_undecided_is_a_warning_and_no_claim():
    """A margin that float64 kernel values do not show."""
    X = np.array([[0.0], [1e-6], [1.0], [2.0]])
    y = np.array([0, 1, 0, 1])
    with pytest.warns(ConvergenceWarning, match="undecided whether a plane separates"):
        model = mm.SVC(C=np.inf, gamma=1e-3).fit(X, y)
    assert model.status_ is not mm.Status.CONVERGED
    assert not model.certificate_.holds(model.tol)
