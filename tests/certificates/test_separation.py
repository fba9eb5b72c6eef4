"""`certify` must reject every wrong claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.data.normalised_samples import KeslerSamples, SignedSamples
from maxmargin.problems import KernelSeparationProblem, LeastSquaresProblem, SeparationProblem
from maxmargin.solution import Solution, Status
from tests.helpers.algorithms import ALGORITHMS, blobs, cloud, materialised, over, quiet


def claim(w, b, **numbers):
    return Solution(
        np.atleast_2d(np.asarray(w, dtype=float)),
        np.atleast_1d(float(b)),
        Status.CONVERGED,
        **numbers,
    )


def binary(X, y, kind=SeparationProblem, **options):
    return kind(SignedSamples(np.asarray(X, dtype=float), 2.0 * np.asarray(y) - 1.0), **options)


LINE = np.array([[-3.0], [-1.0], [1.0], [2.0]])
SIDES = np.array([0, 0, 1, 1])


def test_a_separating_plane():
    certificate = mm.certify(binary(LINE, SIDES), claim([2.0], 0.0))
    assert certificate.separates
    assert certificate.holds()
    assert certificate.violation == 0.0
    assert (certificate.margin, certificate.geometric_margin) == (2.0, 1.0)
    assert (certificate.n_errors, certificate.n_samples) == (0, 4)
    assert certificate.radius == 3.0
    assert certificate.mistake_bound == pytest.approx(10.0)  # max‖z‖² = 10, γ = 1
    assert str(certificate) == "separates all 4 samples: smallest distance to the plane 1"


@pytest.mark.parametrize(
    ("w", "b", "errors"),
    [(1.0, 1.5, 1), (1.0, -1.0, 1), (-1.0, 0.0, 4), (0.0, 0.0, 4), (0.0, 1.0, 2)],
)
def test_a_plane_with_errors(w, b, errors):
    certificate = mm.certify(binary(LINE, SIDES), claim([w], b))
    assert not certificate.separates
    assert not certificate.holds(1.0)
    assert certificate.n_errors == errors
    assert certificate.mistake_bound == np.inf
    assert f"{errors} of 4" in str(certificate)


def test_what_does_not_hold_is_violated():
    """A plane through a sample, or none at all, is no proof: its violation is not 0."""
    for w, b in ((0.0, 0.0), (1.0, -1.0)):
        certificate = mm.certify(binary(LINE, SIDES), claim([w], b))
        assert not certificate.holds()
        assert certificate.violation > 0.0


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_a_margin_inside_rounding_does_not_count(offset):
    X = np.array([[offset], [np.nextafter(offset, 1e9)]])
    certificate = mm.certify(binary(X, [0, 1]), claim([1.0], -offset))
    assert not certificate.separates


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**20), exponents=st.lists(st.integers(-9, 9), min_size=3, max_size=3))
def test_separation_does_not_depend_on_the_scale_of_features(seed, exponents):
    X, y = blobs(20, 3, seed=seed)
    scale = 10.0 ** np.array(exponents)
    w = np.array([1.0, 0.2, -0.1])
    plain = mm.certify(binary(X, y), claim(w, 0.3))
    scaled = mm.certify(binary(X * scale, y), claim(w / scale, 0.3))
    assert plain.separates
    assert scaled.margin == pytest.approx(plain.margin)
    assert scaled.separates


XOR, XOR_Y = mm.datasets.load_xor(return_X_y=True)


@pytest.mark.parametrize(
    ("u", "refutes"),
    [
        ([0.25, 0.25, 0.25, 0.25], True),
        ([0.5, 0.5, 0.5, 0.5], False),  # no convex combination
        ([1.0, 1.0, -0.5, -0.5], False),  # not ≥ 0
        ([0.25, 0.25, 0.25, 0.25 + 1e-6], False),
        ([0.26, 0.24, 0.26, 0.24], False),  # Σ u y ≠ 0
        ([0.5, 0.5, 0.0, 0.0], False),
        ([0.0, 0.0, 0.0, 0.0], False),
        ([np.nan, 0.5, 0.25, 0.25], False),
    ],
)
def test_multipliers(u, refutes):
    problem = binary(XOR, XOR_Y > 0)
    certificate = mm.certify(problem, claim([0, 0], 0, multipliers=np.array(u)))
    assert certificate.refutes == refutes
    assert certificate.holds() == refutes
    assert not certificate.separates
    assert ("no plane separates" in str(certificate)) == refutes


def test_multipliers_of_a_feature_of_small_scale():
    """The one feature that separates is tiny: its residual must not drown in the others'."""
    X = np.array([[1e6, -1e-6], [1e6, 1e-6]])
    u = np.array([0.5, 0.5])
    certificate = mm.certify(binary(X, [0, 1]), claim([0, 0], 0, multipliers=u))
    assert not certificate.refutes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_least_squares_that_are_not_least(n_classes):
    X, y = cloud(30, 3, n_classes, seed=1)
    Z = (
        SignedSamples(X, 2.0 * y - 1.0)
        if n_classes == 2
        else KeslerSamples(X, y, n_classes=n_classes)
    )
    dense = materialised(X, y, n_classes)
    a = np.linalg.pinv(dense) @ np.ones(len(dense))
    problem = LeastSquaresProblem(Z)
    best = mm.certify(problem, Solution(*Z.unpack(a), Status.CONVERGED))
    assert best.holds(1e-12)
    assert best.residual == pytest.approx(((dense @ a - 1) ** 2).sum())
    for k in range(a.size):
        moved = a.copy()
        moved[k] += 1e-3
        worse = mm.certify(problem, Solution(*Z.unpack(moved), Status.CONVERGED))
        assert not worse.holds(1e-6)
        assert worse.violation > best.violation
        assert f"relative gradient {worse.stationarity:.1e}" in str(worse)


def test_least_squares_that_forget_a_feature_of_small_scale():
    X, y = cloud(60, 3, seed=2)
    X[:, 0] += 2.0 * y
    scale = np.array([1e-8, 1.0, 1e8])
    Z = SignedSamples(X * scale, 2.0 * y - 1.0)
    without = X[:, 1:], y
    plane = mm.Pseudoinverse().fit(without[0] * scale[1:], y)
    solution = claim(np.append(0.0, plane.coef_[0]), plane.intercept_[0])
    certificate = mm.certify(LeastSquaresProblem(Z), solution)
    assert not certificate.holds(1e-6), str(certificate)


def test_ridge_is_part_of_the_criterion():
    X, y = cloud(30, 3, seed=3)
    Z = SignedSamples(X, 2.0 * y - 1.0)
    dense = materialised(X, y)
    ridge = np.linalg.solve(dense.T @ dense + 2.0 * np.eye(4), dense.sum(axis=0))
    least = np.linalg.pinv(dense) @ np.ones(30)
    problem = LeastSquaresProblem(Z, ridge=2.0)
    assert mm.certify(problem, Solution(*Z.unpack(ridge), Status.CONVERGED)).holds(1e-12)
    assert not mm.certify(problem, Solution(*Z.unpack(least), Status.CONVERGED)).holds(1e-6)


def test_kernel_claims():
    X, y = blobs(20, 3, seed=4)
    signs = 2.0 * y - 1.0
    problem = KernelSeparationProblem(
        mm.kernels.Linear(), X, signs, np.arange(20), np.ones(20), 1.0
    )
    model = mm.KernelPerceptron(kernel="linear").fit(X, y)
    alpha = np.zeros(20)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    good = Solution(np.empty((0, 0)), model.intercept_, Status.CONVERGED, alpha=alpha)
    certificate = mm.certify(problem, good)
    w = (alpha * signs) @ X
    plane = mm.Hyperplane(w, float(model.intercept_[0]))
    assert certificate.separates
    assert certificate.margin == pytest.approx(plane.margins(X, signs).min())
    assert certificate.geometric_margin == pytest.approx(plane.geometric_margin(X, signs))
    assert certificate.radius == pytest.approx(np.linalg.norm(X, axis=1).max())
    far = replace(good, b=np.array([1e6]))
    assert mm.certify(problem, far).n_errors == (y == 0).sum()
    nothing = replace(good, alpha=np.zeros(20), b=np.zeros(1))
    assert not mm.certify(problem, nothing).holds()


def test_unknown_problem():
    with pytest.raises(TypeError, match="dict"):
        mm.certify({}, claim([1.0], 0.0))


@over([a for a in ALGORITHMS if a.kesler])
@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
def test_published_certificates_tell_the_truth(algorithm, n_classes):
    """Margin, errors and distance of each certificate, recomputed here from coef_."""
    X, y = blobs(60, 3, n_classes, gap=4.0, seed=5)
    for multi_class in ("ovr", "kesler"):
        model = algorithm.make(multi_class=multi_class, max_iter=100).fit(X, y)
        if n_classes == 2 or multi_class == "ovr":
            scores = X @ model.coef_.T + model.intercept_
            labels = [1] if n_classes == 2 else range(n_classes)
            for k, certificate in enumerate(model.certificates_):
                margins = np.where(y == labels[k], 1, -1) * scores[:, k]
                assert certificate.margin == pytest.approx(margins.min(), rel=1e-9)
                assert certificate.n_errors == (margins <= 0).sum()
                distance = margins.min() / np.linalg.norm(model.coef_[k])
                assert certificate.geometric_margin == pytest.approx(distance, rel=1e-9)
        else:
            scores = X @ model.coef_.T + model.intercept_
            own = scores[np.arange(60), y]
            rivals = np.where(np.eye(3, dtype=bool)[y], -np.inf, scores)
            assert model.certificate_.margin == pytest.approx((own - rivals.max(1)).min(), rel=1e-9)
            assert model.certificate_.n_errors == (own <= rivals.max(1)).sum()


@quiet
@pytest.mark.parametrize("seed", range(5))
def test_the_certificate_of_many_is_the_worst(seed):
    X, y = cloud(60, 2, 3, seed=seed)
    X[y == 2] += 20.0  # one class is easily told from the rest, the other two are not
    model = mm.Perceptron(max_iter=7).fit(X, y)
    held = [certificate.holds() for certificate in model.certificates_]
    assert held == [False, False, True]
    assert not model.certificate_.holds()
    assert model.status_ is mm.Status.ITERATION_LIMIT


@quiet
def test_the_worst_of_many_is_not_one_that_holds():
    """A task that ends at w = 0 has no plane at all: nothing is worse."""
    X = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [9.0, 9.0]])
    y = np.array([0, 1, 1, 0, 2])
    for max_iter in range(1, 9):
        model = mm.Perceptron(max_iter=max_iter).fit(X, y)
        assert not all(certificate.holds() for certificate in model.certificates_)
        assert not model.certificate_.holds()


def test_not_separable_error_carries_its_proof():
    proof = mm.separability(XOR, XOR_Y)
    error = mm.NotSeparableError("no plane", proof)
    assert isinstance(error, ValueError)
    assert error.proof.separable is False


@pytest.mark.parametrize("exponent", [-12, -9, -5, 0, 9])
def test_radius_of_small_samples(exponent):
    X, y = blobs(20, 3, seed=6)
    certificate = mm.certify(binary(X * 10.0**exponent, y), claim([1.0, 0.0, 0.0], 0.0))
    radius = np.linalg.norm(X, axis=1).max() * 10.0**exponent
    assert certificate.radius == pytest.approx(radius, rel=1e-9)
