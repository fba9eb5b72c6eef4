"""Run scikit-learn's own tests of SVC and NuSVC on ours.

    python tools/drop_in.py [further arguments for pytest]

The test files are those of the installed scikit-learn. `sklearn.svm.SVC` and `sklearn.svm.NuSVC`
are ours while they run; all other estimators stay scikit-learn's. A test is changed (`ADAPTED`) or
expected to fail (`EXCLUDED`) only where it is about ``probability``, which is deprecated and not
offered here, or about internals of LIBSVM. An exclusion that passes is a failure too, and so is an
entry about a test that is gone.
"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import sklearn
import sklearn.svm

from maxmargin import SVC, NuSVC

FILES = ("test_svm.py", "test_sparse.py")
# The lists below are about the tests of this version.
VERSION = "1.9"

FIRST_PAIR = "LIBSVM's first pair: ours ends after one step, of samples in reverse after several"

# Test → why it is changed, and what replaces what in its text.
ADAPTED: dict[str, tuple[str, dict[str, str]]] = {
    "test_svm.py::test_tweak_params": (
        "LIBSVM: a private copy of dual_coef_, of the other sign for two classes",
        {"clf._dual_coef_ = np.array": "clf.dual_coef_ = -np.array"},
    ),
    "test_svm.py::test_gamma_scale": (
        "LIBSVM: a private attribute, here that of the kernel",
        {"clf._gamma": "clf.kernel_.gamma"},
    ),
    "test_svm.py::test_libsvm_convergence_warnings": (
        FIRST_PAIR,
        {"np.array(X), Y": "np.array(X)[::-1], Y[::-1]"},
    ),
    "test_sparse.py::test_timeout": (
        FIRST_PAIR,
        {"lil_container(X), Y": "lil_container(X[::-1]), Y[::-1]"},
    ),
    "test_sparse.py::test_svc": (
        "probability: asked for in passing",
        {"        probability=True,\n": ""},
    ),
    "test_sparse.py::test_unsorted_indices": (
        "probability: compared where scores say the same",
        {"probability=True, ": "", "predict_proba": "decision_function"},
    ),
    "test_sparse.py::test_sparse_svc_clone_with_callable_kernel": (
        "probability: computed but not looked at",
        {"probability=True, ": "", "predict_proba": "decision_function"},
    ),
}

# Test (all of its cases, or one) → why it cannot pass.
EXCLUDED: dict[str, str] = {
    "test_svm.py::test_probability": "probability: tests predict_proba",
    "test_svm.py::test_hasattr_predict_proba": "probability: tests when predict_proba is there",
    "test_svm.py::test_probability_raises_futurewarning": "probability: tests its deprecation",
    "test_svm.py::test_svc_nusvc_probA_probB_deprecated": "probability: tests probA_ and probB_",
    "test_svm.py::test_svc_raises_error_internal_representation": (
        "LIBSVM: the private _n_support, by which it would read beyond its arrays"
    ),
}


def adapted(file: str, source: str) -> str:
    """Return the text of a test file with the changes listed for it."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):  # from the end, so that line numbers stay true
        test = f"{file}::{getattr(node, 'name', '')}"
        if test in ADAPTED:
            span = slice(node.lineno - 1, node.end_lineno)
            text = "".join(lines[span])
            for old, new in ADAPTED[test][1].items():
                if old not in text:
                    raise SystemExit(f"{test} does not hold {old!r}: correct ADAPTED.")
                text = text.replace(old, new)
            lines[span] = [text]
    return "".join(lines)


@contextmanager
def adapted_files() -> Iterator[Path]:
    """Hold the adapted test files while they are run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for file in FILES:
            path = Path(sklearn.svm.__file__).parent / "tests" / file
            text = adapted(file, path.read_text(encoding="utf-8"))
            (folder / file).write_text(text, encoding="utf-8")
        yield folder


class Ledger:
    """A pytest plugin that expects the excluded tests to fail, and keeps count of all."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.passed: list[str] = []
        self.excluded: list[str] = []
        self.failed: list[str] = []
        self.skipped: list[str] = []
        self.about_ours: set[str] = set()
        self._running = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            names = {item.nodeid, item.nodeid.partition("[")[0]}
            self.found |= names
            for name in names & EXCLUDED.keys():
                # One that passes is stale, and so a failure.
                item.add_marker(pytest.mark.xfail(reason=EXCLUDED[name], strict=True))

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
        self.about_ours.add(self._running)
        return object.__new__(cls)

    @property
    def stale(self) -> list[str]:
        """Entries about tests that there are not."""
        return sorted({*ADAPTED, *EXCLUDED} - self.found)

    def __str__(self) -> str:
        ours = self.about_ours.intersection(self.passed)
        lines = [f"scikit-learn {sklearn.__version__} (the lists are for {VERSION})", "adapted:"]
        lines += [f"  {test}: {reason}" for test, (reason, _) in ADAPTED.items()]
        lines += ["excluded:", *(f"  {test}: {reason}" for test, reason in EXCLUDED.items())]
        lines += [f"stale: {test} does not exist" for test in self.stale]
        lines += [f"failed: {test}" for test in self.failed]
        return "\n".join(lines) + (
            f"\n{len(self.passed)} passed ({len(ours)} of them make an SVC or NuSVC), "
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
        folder = stack.enter_context(adapted_files())
        for ours in (SVC, NuSVC):
            stack.enter_context(mock.patch.object(sklearn.svm, ours.__name__, ours))
            stack.enter_context(mock.patch.object(ours, "__new__", ledger.make))
        options = ["--rootdir", str(folder), "-c", str(folder / "pytest.ini"), "-q", "--tb=short"]
        options += ["--disable-warnings", "-p", "sklearn.conftest"]
        options += ["-p", "no:cacheprovider", "-p", "no:xdist"]
        code = int(pytest.main([*options, *arguments, str(folder)], plugins=[ledger]))
    print(ledger)
    return code or int(bool(ledger.stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
