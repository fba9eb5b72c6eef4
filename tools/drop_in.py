"""Run scikit-learn's own tests of support vector machines on ours.

    python tools/drop_in.py [further arguments for pytest]

The test files are those of the installed scikit-learn, as they are: all tests of support vector
machines, and the tests of what is built on estimators (many classes, calibration, searches, …)
whose text names one of them. The classes of `sklearn.svm` are ours while they run; all other
estimators stay scikit-learn's. A test is expected to fail (`EXCLUDED`) only where it is about a
deprecation of scikit-learn's or internals of LIBSVM and LIBLINEAR. An exclusion that passes is a
failure too, unless rounding decides about it, and so is an entry about a test that is gone.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import sklearn
import sklearn.calibration
import sklearn.svm

import maxmargin
from maxmargin.patch import MACHINES

OURS = [getattr(maxmargin, name) for name in MACHINES if hasattr(maxmargin, name)]
FILES = ("svm/tests/test_svm.py", "svm/tests/test_sparse.py", "svm/tests/test_bounds.py")
# Of these, the tests that name one of ours.
USERS = (
    "tests/test_multiclass.py",
    "tests/test_multioutput.py",
    "tests/test_calibration.py",
    "model_selection/tests/test_search.py",
    "metrics/tests/test_score_objects.py",
    "feature_extraction/tests/test_text.py",
    "feature_selection/tests/test_from_model.py",
)
# But not these, which take long for what is not ours: random forests, the start of processes.
SLOW = {
    "test_calibration.py::test_calibration_multiclass",
    "test_calibration.py::test_parallel_execution",
}
# The lists below are about the tests of this version.
VERSION = "1.9"

LAST_DIGIT = "compares R² to the last digit, though sums may be made in another order"
FREE_BIAS = "LIBLINEAR: penalises the bias; ours does with penalize_intercept=True only"

# Test (all of its cases, or one) → why it cannot pass.
EXCLUDED: dict[str, str] = {
    "test_svm.py::test_probability_raises_futurewarning": "tests a deprecation of scikit-learn's",
    "test_svm.py::test_svc_nusvc_probA_probB_deprecated": "tests a deprecation of scikit-learn's",
    "test_svm.py::test_svc_raises_error_internal_representation": (
        "LIBSVM: the private _n_support, by which it would read beyond its arrays"
    ),
    "test_svm.py::test_svr_errors": "LIBSVM: takes kernel values of a wrong shape until predict",
    "test_svm.py::test_custom_kernel_not_array_input[SVR]": LAST_DIGIT,
    "test_svm.py::test_tweak_params": "LIBSVM: the private _dual_coef_, a copy of dual_coef_",
    "test_svm.py::test_gamma_scale": "LIBSVM: the private _gamma, here that of kernel_",
    "test_svm.py::test_linear_svm_convergence_warnings": (
        "LIBLINEAR: names itself; and ours is done with six samples in two steps"
    ),
    "test_svm.py::test_dense_liblinear_intercept_handling": FREE_BIAS,
    "test_sparse.py::test_sparse_liblinear_intercept_handling": FREE_BIAS,
    **{
        f"test_bounds.py::test_l1_min_c[fit-intercept-squared_hinge-{kind}]": FREE_BIAS
        for kind in ("csr_matrix", "csr_array", "array")
    },
}


@contextmanager
def copied_files() -> Iterator[Path]:
    """Hold copies of the test files while they are run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for file in (*FILES, *USERS):
            shutil.copy(Path(sklearn.__file__).parent / file, folder)
        yield folder


def concerns_us(item: pytest.Item) -> bool:
    """Return whether a test is about these machines, or names one and is not slow."""
    if item.path.name in {Path(file).name for file in FILES}:
        return True
    text = inspect.getsource(item.function)  # type: ignore[attr-defined]
    names_ours = any(ours.__name__ in text for ours in OURS)
    return names_ours and item.nodeid.partition("[")[0] not in SLOW


class Ledger:
    """A pytest plugin that expects the excluded tests to fail, and keeps count of all."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.passed: list[str] = []
        self.excluded: list[str] = []
        self.failed: list[str] = []
        self.skipped: list[str] = []
        self.makers: dict[str, set[str]] = {ours.__name__: set() for ours in OURS}
        self._running = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            names = {item.nodeid, item.nodeid.partition("[")[0]}
            self.found |= names
            for name in names & EXCLUDED.keys():
                # One that passes is stale, and so a failure, unless the machine decides.
                strict = EXCLUDED[name] != LAST_DIGIT
                item.add_marker(pytest.mark.xfail(reason=EXCLUDED[name], strict=strict))
        items[:] = filter(concerns_us, items)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running = nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            (self.excluded if hasattr(report, "wasxfail") else self.skipped).append(report.nodeid)
        elif report.when == "call":
            self.passed.append(report.nodeid)

    def make(self, cls: type, *args: Any, **options: Any) -> Any:
        """Stand in for ``__new__``: the test that is running makes one of ours."""
        for ours in OURS:
            if issubclass(cls, ours):
                self.makers[ours.__name__].add(self._running)
        return object.__new__(cls)

    @property
    def stale(self) -> list[str]:
        """Entries about tests that there are not."""
        return sorted({*EXCLUDED, *SLOW} - self.found)

    def __str__(self) -> str:
        made = {name: makers.intersection(self.passed) for name, makers in self.makers.items()}
        counts = ", ".join(f"{len(tests)} with {name}" for name, tests in made.items())
        lines = [f"scikit-learn {sklearn.__version__} (the lists are for {VERSION})"]
        lines += ["excluded:", *(f"  {test}: {reason}" for test, reason in EXCLUDED.items())]
        lines += [f"stale: {test} does not exist" for test in self.stale]
        lines += [f"failed: {test}" for test in self.failed]
        return "\n".join(lines) + (
            f"\n{len(self.passed)} passed ({counts}), "
            f"{len(self.excluded)} excluded, {len(self.skipped)} skipped, {len(self.failed)} failed"
        )


def main(arguments: list[str]) -> int:
    """Run the tests, print what came of them, and return an exit code."""
    ledger = Ledger()
    # Settings of the caller's own test runs, which these know nothing of.
    strange = {name for name in os.environ if name.startswith(("PYTEST_", "SKLEARN_"))}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ))
        for name in strange:
            del os.environ[name]
        folder = stack.enter_context(copied_files())
        for ours in OURS:
            stack.enter_context(mock.patch.object(sklearn.svm, ours.__name__, ours))
            stack.enter_context(mock.patch.object(ours, "__new__", ledger.make))
        # The default of CalibratedClassifierCV.
        stack.enter_context(
            mock.patch.object(sklearn.calibration, "LinearSVC", maxmargin.LinearSVC)
        )
        options = ["--rootdir", str(folder), "-c", str(folder / "pytest.ini"), "-q", "--tb=short"]
        options += ["--disable-warnings", "-p", "sklearn.conftest"]
        options += ["-p", "no:cacheprovider", "-p", "no:xdist"]
        code = int(pytest.main([*options, *arguments, str(folder)], plugins=[ledger]))
    print(ledger)
    return code or int(bool(ledger.stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
