"""Certificates of X on a device are those of X in memory, and never claim more than is true."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.certificates import certify_tasks
from maxmargin.certificates.scores import kernel_scores, scores_of_tasks
from maxmargin.kernels import RBF, Custom, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.problems import DualProblem
from maxmargin.solution import Solution, Status

from ..helpers.devices import marked
from ..helpers.exact_kernels import exact_value, fractions

torch = pytest.importorskip("torch")

from maxmargin.engines.torch import device_rows  # noqa: E402
from maxmargin.engines.torch.device_rows import DeviceRows  # noqa: E402

N = 60
KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(3, gamma=0.2, coef0=1.0),
    "gaussian": RBF(0.3),
    "sigmoid": Sigmoid(0.1),
    "sum": Linear() + 2.0 * RBF(0.5),
    "product": Polynomial(2, coef0=1.0) * RBF(0.1),
    "precomputed": Precomputed(),
    "custom": Custom(lambda X, Z: (X @ Z.T + 1.0) ** 2),
}
RNG = np.random.default_rng(0)
ROWS = {
    "normal": RNG.normal(size=(N, 3)),
    "offset": RNG.normal(size=(N, 3)) + 1e7,
    "outliers": np.vstack([RNG.normal(size=(N - 4, 3)), 1e6 + RNG.normal(size=(4, 3))]),
    "heavy tails": 100.0 * RNG.standard_cauchy(size=(N, 3)),
}
TARGETS = RNG.random(N)


@pytest.fixture(params=marked(["cpu", "cuda"]))
def on_device(request):
    return lambda X: DeviceRows.upload(X, torch.device(request.param))


def labels(seed=1):
    return np.where(np.random.default_rng(seed).random(N) < 0.5, 1.0, -1.0)


POSED = {
    "hinge": lambda kernel, X: DualProblem.hinge(kernel, X, labels(), 2.0),
    "squared": lambda kernel, X: DualProblem.squared_hinge(kernel, X, labels(), 2.0),
    "hard": lambda kernel, X: DualProblem.hard(kernel, X, labels()),
    "nu": lambda kernel, X: DualProblem.nu(kernel, X, labels(), 0.4),
    "no bias": lambda kernel, X: DualProblem.hinge(kernel, X, labels(), 2.0, bias=False),
    "regression": lambda kernel, X: DualProblem.regression(kernel, X, TARGETS, 2.0, 0.1),
    "nu regression": lambda kernel, X: DualProblem.nu_regression(
        kernel, X, RNG.random(N), 2.0, 0.3
    ),
    "one class": lambda kernel, X: DualProblem.one_class(kernel, X, 0.3),
}


def answer(problem, seed=2):
    """Some α and b, not those of an optimum, with scores that are wrong."""
    n = problem.n_variables
    rng = np.random.default_rng(seed)
    alpha = np.clip(rng.random(n) * (rng.random(n) < 0.6), problem.lower, problem.upper)
    scores = np.zeros(n)
    return Solution(
        np.empty((0, 0)), np.array([0.3]), Status.CONVERGED, alpha=alpha, scores=scores,
        score_bounds=np.full(n, 1e-9),
    )  # fmt: skip


def assert_same(found, expected):
    for name in ("primal", "dual", "gap", "violation", "balance", "box"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-9)
    assert found.coverage == "complete"
    assert found.n_checked == found.n_samples == expected.n_samples


@pytest.mark.parametrize("posed", POSED)
@pytest.mark.parametrize("name", KERNELS)
def test_certificates_are_those_of_the_host(on_device, name, posed):
    kernel, X = KERNELS[name], ROWS["normal"]
    X = RBF(0.3)(X) if name == "precomputed" else X
    problem = POSED[posed](kernel, X)
    moved, solution = replace(problem, X=on_device(X)), answer(problem)
    assert_same(mm.certify(moved, solution), mm.certify(problem, solution))
    assert_same(certify_tasks([moved], [solution])[0], mm.certify(problem, solution))


@pytest.mark.parametrize("name", ["gaussian", "linear", "polynomial", "precomputed"])
def test_all_scores_are_recomputed_whatever_is_asked(on_device, name):
    X = ROWS["normal"]
    problem = POSED["hinge"](KERNELS[name], RBF(0.3)(X) if name == "precomputed" else X)
    solution = answer(problem)
    found = mm.certify(replace(problem, X=on_device(problem.X)), solution, sample=4, at_most=2)
    assert_same(found, mm.certify(problem, solution))


def pairs(kernel, X, n_classes=4):
    """The tasks of all pairs of classes, and answers to them."""
    codes = np.random.default_rng(3).integers(0, n_classes, N)
    problems = []
    for a in range(n_classes):
        for b in range(a + 1, n_classes):
            index = np.flatnonzero((codes == a) | (codes == b))
            y = np.where(codes[index] == a, 1.0, -1.0)
            upper, ridge = np.full(y.size, 2.0), np.zeros(y.size)
            problems.append(
                DualProblem.classification(kernel, X, y, upper, ridge, index=index)
            )  # fmt: skip
    return problems, [answer(problem, k) for k, problem in enumerate(problems)]


@pytest.mark.parametrize("block_bytes", [1 << 26, 20_000, 3000])
@pytest.mark.parametrize("form", ["dense", "float32", "csr"])
@pytest.mark.parametrize("name", KERNELS)
def test_tasks_of_a_fit(on_device, name, form, block_bytes, monkeypatch):
    for name_of_limit in ("BLOCK_BYTES", "HOST_BLOCK_BYTES"):
        monkeypatch.setattr(device_rows, name_of_limit, block_bytes)
    kernel, X = KERNELS[name], ROWS["normal"]
    if name == "precomputed":
        X = RBF(0.3)(X)
    X = {"dense": X, "float32": X.astype(np.float32), "csr": sparse.csr_matrix(X)}[form]
    if form == "csr" and name in ("precomputed", "custom"):
        pytest.skip("of dense rows")
    problems, solutions = pairs(kernel, X)
    moved = on_device(X)
    found = certify_tasks([replace(problem, X=moved) for problem in problems], solutions)
    for each, problem, solution in zip(found, problems, solutions, strict=True):
        assert_same(each, mm.certify(problem, solution))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", ["linear", "polynomial", "gaussian", "sum", "product"])
def test_errors_are_within_their_bounds(on_device, name, rows):
    """Against exact arithmetic, and bounds are of the size of those of the host."""
    kernel, X = KERNELS[name], ROWS[rows]
    problem = POSED["hinge"](kernel, X)
    c, b = (answer(problem).alpha * problem.signs), 0.3
    moved = replace(problem, X=on_device(X))
    wanted = np.arange(0, N, 7)
    scores, errors = kernel_scores(moved, c, wanted, b)
    assert (errors <= 16.0 * kernel_scores(problem, c, wanted, b)[1]).all()
    exact, support = fractions(X), np.flatnonzero(c)
    for i, score, error in zip(wanted, scores, errors, strict=True):
        values = (Fraction(c[j]) * exact_value(kernel, exact[j], exact[i]) for j in support)
        assert abs(sum(values) + Fraction(b) - Fraction(score)) <= Fraction(error)


def test_no_support_vectors(on_device):
    problem = POSED["hinge"](RBF(0.3), on_device(ROWS["normal"]))
    scores, errors = kernel_scores(problem, np.zeros(N), b=0.25)
    np.testing.assert_array_equal(scores, np.full(N, 0.25))
    assert (errors <= 1e-15).all()


def test_the_host_does_it_where_memory_is_full(on_device, monkeypatch):
    problem = POSED["hinge"](RBF(0.3), ROWS["normal"])
    solution = answer(problem)

    def full(*args):
        raise torch.OutOfMemoryError("full")

    moved = on_device(ROWS["normal"])
    monkeypatch.setattr(DeviceRows, "float64_rows", full)
    found = scores_of_tasks([replace(problem, X=moved)], [solution.alpha * problem.signs], [0.3])
    expected = kernel_scores(problem, solution.alpha * problem.signs, b=0.3)
    np.testing.assert_allclose(found[0][0], expected[0], rtol=1e-12)
    assert_same(mm.certify(replace(problem, X=moved), solution), mm.certify(problem, solution))


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("name", KERNELS)
def test_diagonals(on_device, name, form):
    X = RBF(0.3)(ROWS["normal"]) if name == "precomputed" else ROWS["normal"]
    if form == "csr" and KERNELS[name].elementwise:
        X = sparse.csr_matrix(X * (X > 0))
    found = KERNELS[name].diagonal(on_device(X))
    np.testing.assert_allclose(found, KERNELS[name].diagonal(X), rtol=1e-13)
