"""Fits of all kinds; as a program, print which functions they still compile, as a JSON list.

A test and a benchmark run it after ``maxmargin warmup``: the list should be empty.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core import event
from scipy import sparse
from sklearn.datasets import make_blobs

import maxmargin as mm

# Rows, and the numbers of classes: below and above all sizes at which other code is chosen.
SIZES = {30: (2, 4), 300: (2, 4), 700: (2, 4), 2500: (2, 20), 4500: (2, 3)}
# Columns, and the share of non-zeros.
SHAPES = ((5, 1.0), (200, 0.08))


def models(n: int, n_classes: int) -> Iterator[Any]:
    """Yield estimators for so many rows and classes."""
    yield from (
        mm.SVC(), mm.SVC(C=50.0), mm.SVC(kernel="linear"), mm.SVC(kernel="poly"),
        mm.SVC(loss="squared_hinge"), mm.SVC(fit_intercept=False), mm.NuSVC(nu=0.1),
        mm.LinearSVC(), mm.LinearSVC(loss="hinge"), mm.Perceptron(max_iter=3),
        mm.LinearSVC(loss="hinge", solver="coordinate-descent"),
        mm.LinearSVC(loss="hinge", solver="interior-point"), mm.LinearSVC("l1"),
        mm.LinearSVC("l1", solver="coordinate-descent", penalize_intercept=True),
    )  # fmt: skip
    if n_classes > 2:
        yield mm.SVC(multi_class="ovr")
        yield mm.LinearSVC(multi_class="ovo")
        yield mm.LinearSVC(multi_class="crammer_singer", max_iter=20)
        yield mm.Perceptron(multi_class="kesler", max_iter=3)
    if n < 500:
        yield from (
            mm.SVC(solver="active-set"), mm.SVC(solver="smo"), mm.SVC(solver="decomposition"),
            mm.SVC(C=np.inf, gamma=5.0), mm.SVC(kernel="sigmoid"), mm.LinearSVC(C=np.inf),
            mm.KernelPerceptron(max_iter=3), mm.Pocket(max_iter=3), mm.LMS(max_iter=3),
            mm.Perceptron(update="batch", max_iter=3), mm.Relaxation(max_iter=3),
            mm.Perceptron(max_iter=30), mm.Perceptron(shuffle=False, max_iter=30),
            mm.HoKashyap(max_iter=3), mm.Pseudoinverse(), mm.Pseudoinverse(margins="fisher"),
            mm.SVCCV([1.0, 10.0], [0.1], cv=2), mm.LinearSVCCV([1.0, 10.0], cv=2),
        )  # fmt: skip


def kinds(X: Any) -> Iterator[Any]:
    """Yield X as arrays and matrices of all types that reach compiled code."""
    locked = X.copy()
    locked.setflags(write=False)
    yield from (X, X.astype(np.float32), np.asfortranarray(X), locked)
    yield from (sparse.csr_matrix(X), sparse.csr_matrix(X, dtype=np.float32))


def fits() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield fits with predictions, and tests of separability, each with its name."""
    rng = np.random.default_rng(1)
    for n, counts in SIZES.items():
        for k, (d, share) in ((k, shape) for k in counts for shape in SHAPES):
            X, y = make_blobs(n, d, centers=k, random_state=1, cluster_std=4.0)
            X = X / np.abs(X).max() * (rng.random(X.shape) <= share)
            weights = rng.uniform(0.5, 2.0, n)
            for rows in kinds(X):
                about = f"{n} x {d}, {k} classes, {type(rows).__name__} {rows.dtype}"
                for model in models(n, k):
                    yield f"{model} of {about}", _fitted(model, rows, y, None)
                for model in (
                    mm.SVC(), mm.LinearSVC(loss="hinge"), mm.LinearSVC("l1"),
                    mm.Perceptron(max_iter=3),
                ):  # fmt: skip
                    yield f"{model} of {about}, weighted", _fitted(model, rows, y, weights)
                if k == 2:
                    yield f"separability of {about}", lambda X=rows, y=y: mm.separability(X, y)


def _fitted(model: Any, X: Any, y: Any, weights: Any) -> Callable[[], Any]:
    return lambda: model.fit(X, y, sample_weight=weights).predict(X[:1])


class _Names(event.Listener):
    """The functions of the package that are compiled, and for which fit."""

    def __init__(self) -> None:
        self.fit, self.found = "", []

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("maxmargin."):
            self.found.append(f"{function.__qualname__} for {self.fit}: {event.data['args']}")

    def on_end(self, event: Any) -> None:
        pass


def main() -> None:
    """Make all fits."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    names = _Names()
    event.register("numba:compile", names)
    for names.fit, fit in fits():
        try:
            fit()
        except ValueError:  # not separable, or not such rows
            continue
    print(json.dumps(names.found))


if __name__ == "__main__":
    main()
