"""The hard margin: worked examples through the certificate, and the plane of maximum margin."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC, NuSVC

import maxmargin as mm
from maxmargin.certificates.dual import certify_tasks
from maxmargin.kernels import RBF, Linear, Polynomial, Precomputed
from maxmargin.problems import DualProblem
from maxmargin.solution import Solution, Status

SIX_ALPHA = np.array([8 / 225, 0, 1 / 25, 0, 17 / 225, 0])


def answer(alpha, b, w=None):
    w = np.empty((0, 0)) if w is None else w
    return Solution(w=w, b=np.array([b]), status=Status.CONVERGED, alpha=np.asarray(alpha, float))


def test_six_points_certificate_is_tight():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    certificate = mm.certify(DualProblem.hard(Linear(), X, y), answer(SIX_ALPHA, 2 / 15))
    assert certificate.holds(1e-13)
    assert abs(certificate.gap) < 1e-13
    assert certificate.dual == pytest.approx(17 / 225, abs=1e-14)  # ½‖w‖², w = (−1/3, 1/5)


def test_xor_certificate_is_tight_and_the_wrong_note_is_caught():
    X, y = mm.datasets.load_xor(return_X_y=True)
    problem = DualProblem.hard(Polynomial(degree=2, coef0=1.0), X, y)
    right = mm.certify(problem, answer(np.full(4, 1 / 8), 0.0))
    assert right.holds(1e-13)  # what rounding may have done counts
    assert right.dual == pytest.approx(0.25)
    wrong = mm.certify(problem, answer(np.full(4, 1 / 4), 0.0))
    assert wrong.dual == pytest.approx(0.0)
    assert not wrong.holds(1e-3)


@pytest.mark.parametrize("tampered", [SIX_ALPHA * 1.01, SIX_ALPHA[::-1], np.zeros(6), -SIX_ALPHA])
def test_certificate_catches_wrong_alpha(tampered):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    certificate = mm.certify(DualProblem.hard(Linear(), X, y), answer(tampered, 2 / 15))
    assert not certificate.holds(1e-4)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_hinge_certificate_agrees_with_libsvm(C):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = np.sign(X[:, 0] + rng.standard_normal(120))
    svc = SVC(C=C, gamma=0.5, tol=1e-10).fit(X, y)
    alpha = np.zeros(120)
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    problem = DualProblem.hinge(RBF(gamma=0.5), X, y, C)
    certificate = mm.certify(problem, answer(alpha, svc.intercept_[0]))
    assert certificate.holds(1e-5)  # LIBSVM keeps its kernel values in float32
    assert -1e-12 < certificate.relative_gap < 1e-6
    early = mm.certify(problem, answer(0.5 * alpha, svc.intercept_[0]))
    assert early.relative_gap > 1e-3
    assert not early.holds(1e-3)


def test_squared_hinge_is_the_hard_margin_of_a_ridged_kernel():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(60))
    C = 2.0
    K = RBF(gamma=0.5)(X)
    svc = SVC(C=1e9, kernel="precomputed", tol=1e-12).fit(K + np.eye(60) / (2 * C), y)
    alpha = np.zeros(60)
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    problem = DualProblem.squared_hinge(RBF(gamma=0.5), X, y, C)
    certificate = mm.certify(problem, answer(alpha, svc.intercept_[0]))
    assert certificate.holds(1e-5)  # what LIBSVM reaches at C = 1e9
    assert certificate.relative_gap < 1e-10


def test_six_points_maximum_margin_is_exact():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    report = mm.separability(X, y, maximum_margin=True)
    np.testing.assert_allclose(report.hyperplane.w, [-1 / 3, 1 / 5], atol=1e-12)
    assert report.hyperplane.b == pytest.approx(2 / 15, abs=1e-12)
    assert 2 * report.margin == pytest.approx(5.144957554275265, abs=1e-12)
    assert report.margin_bound == pytest.approx(report.margin, rel=1e-12)
    assert "none has more" in str(report)


def test_two_samples_give_the_bisector():
    report = mm.separability([[0.0, 0.0], [3.0, 4.0]], ["a", "b"], maximum_margin=True)
    assert report.margin == pytest.approx(2.5)
    np.testing.assert_allclose(report.hyperplane.project([0.0, 0.0]), [1.5, 2.0])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.01, 1.0))
def test_maximum_margin_meets_its_bound(seed, d, gap):
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((40, d))
    y = np.where(X @ w > 0, 1, -1)
    if len(set(y)) < 2:
        return
    report = mm.separability(X + gap * np.outer(y, w), y, maximum_margin=True)
    assert report.separable
    assert report.margin >= gap * (1 - 1e-9)
    assert report.margin_bound == pytest.approx(report.margin, rel=1e-7)


def test_nearest_points_solve_the_hard_margin_dual():
    from maxmargin.data.normalised_samples import SignedSamples
    from maxmargin.problems import SeparationProblem
    from maxmargin.progress import Progress
    from maxmargin.solvers.dual.nearest_points import NearestPoints

    X, y = mm.datasets.load_six_points(return_X_y=True)
    Z = SignedSamples(X, y.astype(float))
    solution = NearestPoints().solve(SeparationProblem(Z), Progress())
    np.testing.assert_allclose(solution.alpha, SIX_ALPHA, atol=1e-12)
    assert mm.certify(DualProblem.hard(Linear(), X, y), solution).holds(1e-10)
    assert not mm.certify(
        DualProblem.hard(Linear(), X, y), replace(solution, b=solution.b + 0.1)
    ).holds(1e-3)


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_nu_certificate_agrees_with_libsvm(nu):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 3))
    y = np.sign(X[:, 0] + 0.7 * rng.standard_normal(100))
    svc = NuSVC(nu=nu, gamma=0.5, tol=1e-10).fit(X, y)
    scale = nu / np.abs(svc.dual_coef_).sum()  # LIBSVM divides by ρ; here Σα = ν
    alpha = np.zeros(100)
    alpha[svc.support_] = scale * np.abs(svc.dual_coef_[0])
    alpha[np.isclose(alpha, 0.01)] = 0.01  # at its bound 1/n, but for rounding
    problem = DualProblem.nu(RBF(gamma=0.5), X, y, nu)
    certificate = mm.certify(problem, answer(alpha, scale * svc.intercept_[0]))
    assert certificate.holds(1e-5)
    assert abs(certificate.gap) < 1e-7
    short = mm.certify(problem, answer(0.5 * alpha, scale * svc.intercept_[0]))
    assert not short.holds(1e-3)


def test_infeasible_nu_names_the_largest():
    X = np.arange(5.0)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"nu=0.9 is infeasible.*at most 0.4"):
        DualProblem.nu(Linear(), X, np.array([1, -1, -1, -1, -1.0]), 0.9)


def test_no_bias_needs_no_balance():
    X = np.array([[1.0], [2.0]])
    problem = DualProblem.hard(Linear(), X, np.ones(2), bias=False)
    assert mm.certify(problem, answer([1.0, 0.0], 0.0)).holds(1e-14)


POSED = {
    "hinge": lambda kernel, X, y: DualProblem.hinge(kernel, X, y, 2.0),
    "hinge without a bias": lambda kernel, X, y: DualProblem.hinge(kernel, X, y, 2.0, bias=False),
    "squared hinge": lambda kernel, X, y: DualProblem.squared_hinge(kernel, X, y, 2.0),
    "hard margin": DualProblem.hard,
    "nu": lambda kernel, X, y: DualProblem.nu(kernel, X, y, 0.1),
    "one class": lambda kernel, X, y: DualProblem.one_class(kernel, X, 0.3),
}


@pytest.mark.parametrize("posed", POSED)
@pytest.mark.parametrize("kernel", [RBF(0.3), Linear(), Polynomial(2, coef0=1.0)], ids=repr)
def test_tasks_are_certified_together_as_one_by_one(kernel, posed):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3)) + 3.0
    problems, solutions = [], []
    for n in (60, 40, 25):  # tasks of different rows and sizes
        index = rng.permutation(60)[:n]
        y = np.where(rng.standard_normal(n) > 0.0, 1.0, -1.0)
        problem = replace(POSED[posed](kernel, X[:n], y), X=X, index=index)
        problems.append(problem)
        alpha = rng.uniform(-0.1, 1.1, n) * np.minimum(problem.upper, 2.0) * (index % 3 > 0)
        solutions.append(answer(alpha, rng.standard_normal()))
    together = mm.certificates.certify_tasks(problems, solutions)
    for found, problem, solution in zip(together, problems, solutions, strict=True):
        alone = mm.certify(problem, solution)
        for name, value in vars(alone).items():
            if name == "rounding":  # its bound is one for all tasks
                assert value <= found.rounding * (1.0 + 1e-6) <= 50.0 * value
            elif name != "coverage":
                close = pytest.approx(value, rel=1e-7, abs=1e-9, nan_ok=True)
                assert getattr(found, name) == close
        assert found.coverage == alone.coverage == "complete"


def test_hard_and_soft_tasks_may_be_mixed():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    problems = [DualProblem.hard(Linear(), X, y), DualProblem.hinge(Linear(), X, y, 1.0)]
    solution = answer(SIX_ALPHA, 2 / 15)
    together = mm.certificates.certify_tasks(problems, [solution] * 2)
    assert together == [mm.certify(problem, solution) for problem in problems]


@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(2), Linear(), Precomputed()], ids=str)
@pytest.mark.parametrize("regression", [False, True])
def test_problems_on_the_same_rows_are_certified_as_each_alone(kernel, regression):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 3))
    y = np.sign(X[:, 0] + 0.5)
    X = X @ X.T if isinstance(kernel, Precomputed) else X
    first = DualProblem.hinge(kernel, X, y, 1.0)
    if regression:
        first = DualProblem.regression(kernel, X, y, 1.0, 0.1)
    problems = [replace(first, upper=C * first.upper) for C in (0.1, 1.0, 10.0)]
    solutions = [
        answer(rng.random(each.n_variables) * each.upper, rng.normal()) for each in problems
    ]
    for proof, problem, solution in zip(
        certify_tasks(problems, solutions), problems, solutions, strict=True
    ):
        alone = mm.certify(problem, solution)
        assert proof.coverage == alone.coverage == "complete"
        for name in ("primal", "dual", "gap", "violation", "balance"):
            assert getattr(proof, name) == pytest.approx(getattr(alone, name), rel=1e-9)
