"""What a user's type checker knows of the package."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin as mm
from maxmargin.estimators.registry import MODULES

PASSES = """
from typing import assert_type

import numpy as np
import maxmargin as mm
from maxmargin.certificates import (
    LeastSquaresCertificate, MarginCertificate, SeparationCertificate,
)

X, y = np.eye(4), np.array([0, 0, 1, 1])
model = mm.SVC(C=10.0, kernel="linear").fit(X, y)
assert_type(model, mm.SVC)
assert_type(model.certificate_, MarginCertificate)
assert_type(model.certificate_.relative_gap, float)
assert_type(model.status_, mm.Status)
assert_type(model.hyperplane_, mm.Hyperplane)
assert_type(model.fit_status_, int)
assert_type(mm.LinearSVC().fit(X, y).certificate_.relative_gap, float)
assert_type(mm.Perceptron().fit(X, y).certificate_, SeparationCertificate)
assert_type(mm.Perceptron().fit(X, y).mistake_bound_, float)
assert_type(mm.Perceptron().partial_fit(X, y, classes=[0, 1]), mm.Perceptron)
assert_type(mm.KernelPerceptron().fit(X, y).separates_, bool)
assert_type(mm.LMS().fit(X, y).certificate_, LeastSquaresCertificate)
assert_type(mm.HoKashyap().fit(X, y).refuted_, bool)
mm.NuSVC().fit([[0.0], [1.0]], ["a", "b"], sample_weight=[1, 2]).predict([[0.5]]).tolist()
"""
# Line by line: what is wrong, and what the type checker says.
FAILS = {
    "mm.no_such_name": 'Module has no attribute "no_such_name"',
    'mm.SVC(kernal="linear")': 'Unexpected keyword argument "kernal"',
    'mm.SVC(loss="square")': 'Argument "loss" to "SVC" has incompatible type',
    "mm.SVC().certificate_.no_such_measure": 'has no attribute "no_such_measure"',
    "mm.Perceptron().certificate_.relative_gap": 'has no attribute "relative_gap"',
    'mm.Pocket(patience="long")': 'Argument "patience" to "Pocket" has incompatible type',
}


def checked(program, folder, cache):
    """Return the errors that mypy finds in a program, by line."""
    pytest.importorskip("mypy")
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    source = str(Path(mm.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary",
         "--cache-dir", str(cache), "--config-file=", path.name],
        cwd=folder, capture_output=True, text=True, env={**os.environ, "MYPYPATH": source},
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return {int(k): m for k, m in re.findall(r"^program.py:(\d+): error: (.*)$", done.stdout, re.M)}


def test_a_program_of_a_user(tmp_path, request):
    kept = getattr(request.config, "cache", None)  # pytest's own, unless it was told to have none
    cache = kept.mkdir("mypy") if kept else tmp_path
    assert checked(PASSES, tmp_path, cache) == {}
    found = checked("\n".join(["import maxmargin as mm", *FAILS]), tmp_path, cache)
    assert list(found) == list(range(2, len(FAILS) + 2))
    for message, expected in zip(found.values(), FAILS.values(), strict=True):
        assert expected in message


@pytest.mark.parametrize("name", MODULES)
def test_fitted_attributes_are_declared(name):
    estimator = getattr(mm, name)
    X, y = mm.datasets.load_six_points(return_X_y=True)
    declared = {key for base in estimator.__mro__ for key in vars(base).get("__annotations__", ())}
    for key in vars(estimator().fit(X, y)).keys() - estimator().get_params().keys():
        assert key in declared, key
