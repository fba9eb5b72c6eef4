"""Compare the fitted attributes of all estimators between two versions of the package.

    python tools/fitted_attributes.py write before.npz     # with the one version on the path
    python tools/fitted_attributes.py write after.npz      # with the other
    python tools/fitted_attributes.py compare before.npz after.npz

`write` fits every estimator to the worked examples and ten data sets and stores all fitted arrays
and numbers, the certificates, predictions and scores. `compare` prints what differs, and by how
much relative to the largest value, and exits with 1 where anything does.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

import maxmargin as mm

# Clocks and what depends on them.
IGNORED = {"traces_", "seconds"}


def models() -> dict[str, Any]:
    """Return the estimators to fit, by name."""
    return {
        "Perceptron": mm.Perceptron(),
        "Perceptron batch": mm.Perceptron(update="batch", max_iter=200),
        "Perceptron radius": mm.Perceptron(bias="radius"),
        "Perceptron kesler": mm.Perceptron(multi_class="kesler"),
        "Pocket": mm.Pocket(),
        "KernelPerceptron": mm.KernelPerceptron(max_iter=50),
        "Relaxation": mm.Relaxation(),
        "Relaxation batch": mm.Relaxation(update="batch", max_iter=200),
        "LMS": mm.LMS(max_iter=50),
        "LMS batch": mm.LMS(update="batch", max_iter=50),
        "Pseudoinverse": mm.Pseudoinverse(),
        "Fisher": mm.Pseudoinverse(margins="fisher"),
        "HoKashyap": mm.HoKashyap(max_iter=200),
        "SVC rbf": mm.SVC(),
        "SVC linear": mm.SVC(kernel="linear", C=10.0),
        "SVC poly": mm.SVC(kernel="poly", degree=2, coef0=1.0),
        "SVC active set": mm.SVC(C=5.0, solver="active-set"),
        "SVC squared": mm.SVC(loss="squared_hinge"),
        "SVC bias-free": mm.SVC(fit_intercept=False),
        "SVC weighted": mm.SVC(class_weight="balanced", C=3.0),
        "SVC rest": mm.SVC(multi_class="ovr"),
        "NuSVC": mm.NuSVC(nu=0.1),
        "LinearSVC": mm.LinearSVC(),
        "LinearSVC hinge": mm.LinearSVC(loss="hinge"),
        "LinearSVC descent": mm.LinearSVC(solver="coordinate-descent"),
        "LinearSVC interior": mm.LinearSVC(loss="hinge", solver="interior-point"),
        "LinearSVC penalised": mm.LinearSVC(penalize_intercept=True),
        "LinearSVC joint": mm.LinearSVC(multi_class="crammer_singer"),
    }


def problems() -> Iterator[tuple[str, Any, Any]]:
    """Yield the worked examples and the data sets."""
    for name in ("six_points", "and", "xor", "fruit"):
        yield name, *getattr(mm.datasets, f"load_{name}")(return_X_y=True)
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        chosen = np.random.RandomState(0).permutation(len(y))[:400]
        yield name, StandardScaler().fit_transform(X)[chosen], y[chosen]
    yield "blobs", *datasets.make_blobs(300, centers=3, cluster_std=2.0, random_state=0)
    yield "moons", *datasets.make_moons(300, noise=0.2, random_state=0)
    yield "circles", *datasets.make_circles(300, noise=0.1, factor=0.5, random_state=0)
    X, y = datasets.make_classification(5000, 20, n_informative=8, random_state=0)
    yield "5000 rows", X, y
    yield "float32", X[:1000].astype(np.float32), y[:1000]
    X, y = datasets.make_classification(600, 60, n_informative=8, random_state=1)
    yield "sparse", sparse.csr_matrix(np.where(np.abs(X) > 1.2, X, 0.0)), y


def numbers(value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays and numbers that a fitted attribute holds."""
    if name.rsplit("/", 1)[-1] in IGNORED:
        return
    if is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            yield from numbers(getattr(value, part.name), f"{name}/{part.name}")
    elif isinstance(value, (list, tuple)):
        for k, each in enumerate(value):
            yield from numbers(each, f"{name}/{k}")
    elif sparse.issparse(value):
        yield name, value.toarray()
    elif isinstance(value, (np.ndarray, np.number, float, int, bool, str)):
        array = np.asarray(value)
        yield name, array if array.dtype.kind in "biufU" else array.astype(str)


def write(path: str) -> None:
    """Fit everything and store what was fitted."""
    found: dict[str, np.ndarray] = {}
    for data, X, y in problems():
        for name, model in models().items():
            if data == "5000 rows" and not name.startswith(("SVC rbf", "LinearSVC", "Pseudo")):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    if "random_state" in model.get_params():
                        model.set_params(random_state=0)
                    model.fit(X, y)
                except (ValueError, ArithmeticError) as error:
                    found[f"{data}/{name}/error"] = np.asarray(type(error).__name__)
                    continue
                fitted = {k: v for k, v in vars(model).items() if k.endswith("_")}
                fitted["predict"] = model.predict(X)
                fitted["decision_function"] = model.decision_function(X)
            for attribute, value in fitted.items():
                found.update(numbers(value, f"{data}/{name}/{attribute}"))
    np.savez_compressed(path, **found)
    print(f"{len(found)} arrays written to {path}")


def compare(before: str, after: str) -> int:
    """Print the differences; return how many there are."""
    one, two = np.load(before), np.load(after)
    different = 0
    for name in sorted({*one.files, *two.files}):
        if name not in one.files or name not in two.files:
            print(f"{name}: only in {before if name in one.files else after}")
            different += 1
            continue
        a, b = one[name], two[name]
        if np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"):
            continue
        different += 1
        if a.shape != b.shape or a.dtype.kind not in "biuf":
            print(f"{name}: {a.shape} {a.ravel()[:3]} became {b.shape} {b.ravel()[:3]}")
        else:
            largest = max(float(np.abs(a).max(initial=0.0)), np.finfo(float).tiny)
            off = float(np.abs(np.subtract(a, b, dtype=float)).max()) / largest
            print(f"{name}: differs by {off:.1e} of the largest value")
    print(f"{different} of {len(one.files)} differ")
    return different


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("path")
    pair = commands.add_parser("compare")
    pair.add_argument("before")
    pair.add_argument("after")
    options = parser.parse_args()
    if options.command == "write":
        write(options.path)
    else:
        sys.exit(compare(options.before, options.after) > 0)


if __name__ == "__main__":
    main()
