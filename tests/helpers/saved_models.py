"""Models to save, and the comparison of what comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import is_classifier, is_regressor

import maxmargin as mm

ESTIMATORS: dict[str, Any] = {
    "perceptron": mm.Perceptron(max_iter=30),
    "pocket": mm.Pocket(max_iter=5),
    "relaxation": mm.Relaxation(max_iter=5),
    "LMS": mm.LMS(max_iter=5),
    "pseudoinverse": mm.Pseudoinverse(margins="fisher"),
    "Ho-Kashyap": mm.HoKashyap(max_iter=20),
    "kernel perceptron": mm.KernelPerceptron(max_iter=20),
    "kernel perceptron, linear": mm.KernelPerceptron(kernel="linear", max_iter=20),
    "SVC": mm.SVC(),
    "SVC, linear": mm.SVC(kernel="linear", C=10.0),
    "SVC, probability": mm.SVC(probability=True, random_state=0),
    "SVC, joint": mm.SVC(multi_class="crammer_singer"),
    "NuSVC": mm.NuSVC(nu=0.2),
    "LinearSVC": mm.LinearSVC(),
    "LinearSVC, l1": mm.LinearSVC(penalty="l1"),
    "SVR": mm.SVR(),
    "SVR, linear": mm.SVR(kernel="linear", loss="squared_epsilon_insensitive"),
    "NuSVR": mm.NuSVR(nu=0.3),
    "LinearSVR": mm.LinearSVR(epsilon=0.1),
    "one-class": mm.OneClassSVM(nu=0.3),
}


def samples(n_classes: int = 3, n: int = 12, d: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_classes)
    centres = 3.0 * rng.normal(size=(n_classes, d))
    X = np.vstack([centre + rng.normal(size=(n, d)) for centre in centres])
    return X, np.repeat(np.arange(n_classes), n)


# What every fitted model that has these methods answers.
PLAIN = ("predict", "decision_function", "score_samples")


def answers(
    model: Any, X: Any, methods: tuple[str, ...] = (*PLAIN, "predict_proba")
) -> dict[str, Any]:
    """Return all that a model says about rows."""
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


def targets(model: Any, codes: Any, labels: Any = None) -> Any:
    """Return what a model is fitted to: labels of classes, or numbers."""
    if is_classifier(model) and labels is not None:
        return labels[codes]
    return codes + 0.25 * np.cos(np.arange(len(codes))) if is_regressor(model) else codes


def assert_same(value: Any, other: Any) -> None:
    """The same type, the same numbers to the last bit, all the way down."""
    assert type(value) is type(other)
    if sparse.issparse(value):
        assert value.shape == other.shape
        for part in ("data", "indices", "indptr"):
            assert_array_equal(getattr(value, part), getattr(other, part))
    elif isinstance(value, np.ndarray):
        assert value.dtype == other.dtype
        assert_array_equal(value, other)
    elif isinstance(value, list | tuple):
        assert len(value) == len(other)
        for pair in zip(value, other, strict=True):
            assert_same(*pair)
    elif isinstance(value, dict):
        assert list(value) == list(other)
        assert_same(list(value.values()), list(other.values()))
    elif hasattr(value, "__dataclass_fields__"):
        assert_same(vars(value), vars(other))
    elif isinstance(value, float) and np.isnan(value):
        assert np.isnan(other)
    else:
        assert value == other


def frame_of_words() -> tuple[Any, Any]:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "mass of it": 10.0 * rng.normal(size=40),
            "colour": rng.choice(["red", "grün", "blue"], 40),
            "width": rng.normal(size=40),
        }
    )
    return frame, np.where(frame["colour"].eq("red") | (frame["width"] > 0.5), "yes", "no")


def dot(X: Any, Z: Any) -> Any:
    return X @ Z.T
