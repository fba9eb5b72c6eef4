"""A kernel that is added as CONTRIBUTING describes: one dataclass, and one line in the registry."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import persistence
from maxmargin.kernels import KERNELS, RBF, Kernel, Linear
from tests.helpers.command_line import bad, call, good

X, Y = mm.datasets.load_fruit(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
LABELS = mm.datasets.load_fruit().target_names[Y]


@dataclass(frozen=True)
class Cauchy(Kernel):
    """The Cauchy kernel K(x, z) = 1/(1 + γ‖x − z‖²)."""

    gamma: float = 1.0

    @property
    def positive_semidefinite(self):
        return True

    def from_products(self, dot, x_sq, z_sq):
        dot *= -2.0
        dot += x_sq[..., :, None] + z_sq[..., None, :]
        dot *= self.gamma
        dot += 1.0
        return 1.0 / dot


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(KERNELS, "cauchy", Cauchy)


def values(A, B, gamma):
    """K(A, B) as a caller would write it."""
    return 1.0 / (1.0 + gamma * np.sum((A[:, None] - B[None]) ** 2, axis=2))


@pytest.mark.parametrize("make", [mm.SVC, lambda **options: mm.NuSVC(nu=0.1, **options)])
def test_machines_fit_certify_and_predict(make):
    model = make(kernel="cauchy", gamma=0.5, tol=1e-6).fit(X, LABELS)
    assert model.kernel_ == Cauchy(0.5)
    assert all(certificate.holds(1e-6) for certificate in model.certificates_)
    by_hand = make(kernel=lambda A, B: values(A, B, 0.5), tol=1e-6).fit(X, LABELS)
    np.testing.assert_allclose(model.decision_function(X), by_hand.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), by_hand.predict(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("solver", ["decomposition", "smo", "active-set"])
def test_solvers_and_sizes_beyond_one_working_set(solver):
    rng = np.random.default_rng(0)
    n = 3500 if solver == "decomposition" else 300
    rows = rng.standard_normal((n, 3)).astype(np.float32)
    labels = rows[:, 0] + 0.5 * rng.standard_normal(n) > 0
    model = mm.SVC(kernel="cauchy", solver=solver).fit(rows, labels)
    assert model.certificate_.holds(1e-3)


def test_gamma_has_its_rules():
    model = mm.SVC(kernel="cauchy").fit(X, LABELS)
    assert model.kernel_.gamma == pytest.approx(1.0 / (X.shape[1] * X.var()))


def test_the_kernel_perceptron_knows_it():
    rows, labels = mm.datasets.load_xor(return_X_y=True)
    model = mm.KernelPerceptron(kernel="cauchy", gamma=2.0).fit(rows, labels)
    assert model.separates_


def test_sums_and_products():
    kernel = 0.5 * Cauchy(0.5) + Cauchy(2.0) * RBF(0.1) + Linear()
    expected = 0.5 * values(X, X, 0.5) + values(X, X, 2.0) * RBF(0.1)(X) + X @ X.T
    np.testing.assert_allclose(kernel(X), expected, atol=1e-12)
    model = mm.SVC(kernel=kernel).fit(X, LABELS)
    assert all(certificate.holds(1e-3) for certificate in model.certificates_)
    assert mm.kernels.mercer(kernel, X).positive_semidefinite


@pytest.mark.parametrize("kernel", ["cauchy", 0.5 * Cauchy(0.5) + Linear()], ids=["name", "sum"])
def test_models_are_saved_and_loaded(kernel, tmp_path):
    model = mm.SVC(kernel=kernel).fit(X, LABELS)
    persistence.save(model, tmp_path / "fruit.mm")
    again = persistence.load(tmp_path / "fruit.mm")
    assert again.kernel_ == model.kernel_
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_file_is_refused_where_the_kernel_is_unknown(tmp_path, monkeypatch):
    persistence.save(mm.SVC(kernel="cauchy").fit(X, LABELS), tmp_path / "fruit.mm")
    monkeypatch.delitem(KERNELS, "cauchy")
    with pytest.raises(ValueError, match="cauchy"):
        persistence.load(tmp_path / "fruit.mm")
    with pytest.raises(ValueError, match=r"'kernel' parameter.*'cauchy'"):
        mm.SVC(kernel="cauchy").fit(X, LABELS)


@pytest.mark.parametrize(
    ("export", "program"),
    [
        (persistence.save_libsvm, "LIBSVM"),
        (persistence.save_onnx, "ONNX"),
        (persistence.save_json, "JSON"),
    ],
    ids=["libsvm", "onnx", "json"],
)
def test_programs_without_the_formula_are_named(export, program, tmp_path):
    if program == "ONNX":
        pytest.importorskip("skl2onnx")
    model = mm.SVC(kernel="cauchy").fit(X, LABELS)
    with pytest.raises(TypeError, match=program):
        export(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(",".join([*map(str, x), label]) for x, label in zip(X, LABELS, strict=True))
    columns = ",".join(f"x{k}" for k in range(X.shape[1]))
    (tmp_path / "fruit.csv").write_text(f"{columns},y\n{rows}\n")
    fit = ("fit", "fruit.csv", "--target", "y", "--kernel")
    good(call(*fit, "cauchy", "--gamma", 0.5, "--no-scale", "--out", "fruit.mm"))
    model = persistence.load("fruit.mm")
    expected = mm.SVC(kernel="cauchy", gamma=0.5).fit(X, LABELS).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)
    bad(call(*fit, "cauchy", "--degree", 2), "--degree needs kernel poly, got cauchy", code=2)
    bad(call(*fit, "laplace"), "'laplace'", "'cauchy'", code=2)
