"""Run scikit-learn's own tests of SVC, NuSVC and LinearSVC on ours.

    python tools/drop_in.py [further arguments for pytest]

The test files are those of the installed scikit-learn: all tests of support vector machines, and
the tests of what is built on classifiers (many classes, calibration, searches, …) whose text names
one of the three. `sklearn.svm.SVC`, `NuSVC` and `LinearSVC` are ours while they run; all other
estimators stay scikit-learn's. A test is changed (`ADAPTED`) or expected to fail (`EXCLUDED`) only
where it is about what is not offered here (``penalty``, ``dual`` and ``intercept_scaling`` of
LinearSVC), about a deprecation of scikit-learn's or about internals of LIBSVM and LIBLINEAR. An
exclusion that passes is a failure too, and so is an entry about a test that is gone.
"""

from __future__ import annotations

import ast
import inspect
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
import sklearn.calibration
import sklearn.svm

from maxmargin import SVC, LinearSVC, NuSVC

OURS = (SVC, NuSVC, LinearSVC)
FILES = ("svm/tests/test_svm.py", "svm/tests/test_sparse.py")
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
    "test_svm.py::test_linearsvc_parameters": (
        "penalty, dual: not offered; the losses with each solver instead",
        {
            '["l1", "l2"]': '["l2"]',
            "[True, False]": '["newton", "interior-point", "coordinate-descent"]',
            "penalty=penalty, loss=loss, dual=dual": "loss=loss, solver=dual",
        },
    ),
    "test_svm.py::test_linearsvc": (
        "penalty, dual: not offered; another solver instead",
        {
            'penalty="l1",': 'solver="interior-point",',
            "        dual=False,\n": "",
            'penalty="l2", dual=True': 'solver="coordinate-descent"',
            'penalty="l2", loss="hinge", dual=True': 'loss="hinge"',
        },
    ),
    "test_svm.py::test_linearsvm_liblinear_sample_weight": (
        "penalty, dual: not offered; each solver instead",
        {
            '"penalty": "l1", "loss": "squared_hinge", "dual": False': (
                '"loss": "squared_hinge", "solver": "interior-point"'
            ),
            '"penalty": "l2", "loss": "squared_hinge", "dual": True': (
                '"loss": "squared_hinge", "solver": "coordinate-descent"'
            ),
            '"penalty": "l2", "loss": "squared_hinge", "dual": False': (
                '"loss": "squared_hinge", "solver": "newton"'
            ),
            '"penalty": "l2", "loss": "hinge", "dual": True': '"loss": "hinge"',
        },
    ),
    "test_svm.py::test_dense_liblinear_intercept_handling": (
        "penalty, intercept_scaling: not offered; penalize_intercept instead, by which b is nearer "
        "to 0 (with the penalty l1, at 0), and without which it is the same of every solver",
        {
            'penalty="l1",': "penalize_intercept=True,",
            "        dual=False,\n": "",
            "assert clf.intercept_scaling == 1, clf.intercept_scaling": (
                "assert not classifier().penalize_intercept"
            ),
            "    clf.intercept_scaling = 1\n": "",
            "assert_almost_equal(clf.intercept_, 0, decimal=5)": "assert -1 < clf.intercept_ < 0",
            "clf.intercept_scaling = 1000": 'clf.solver = "interior-point"',
            "clf.intercept_scaling = 100": "clf.penalize_intercept = False",
        },
    ),
    "test_sparse.py::test_sparse_liblinear_intercept_handling": (
        "calls the test above, as it is here",
        {"    test_svm.test": "    import test_svm\n\n    test_svm.test"},
    ),
    "test_svm.py::test_linear_svm_convergence_warnings": (
        "LIBLINEAR: names itself; and ours is done with six samples in two steps",
        {
            "match=warning_msg):\n        lsvc.fit(X, Y)": (
                'match="LinearSVC: .* not done.*Raise max_iter"):\n'
                "        lsvc.fit(iris.data, iris.target)"
            ),
        },
    ),
}

# Test (all of its cases, or one) → why it cannot pass.
EXCLUDED: dict[str, str] = {
    "test_svm.py::test_probability_raises_futurewarning": "probability: tests its deprecation",
    "test_svm.py::test_svc_nusvc_probA_probB_deprecated": "probability: tests a deprecation",
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
            decorators = getattr(node, "decorator_list", [])
            first = min(part.lineno for part in (node, *decorators))
            span = slice(first - 1, node.end_lineno)
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
        for file in (*FILES, *USERS):
            path = Path(sklearn.__file__).parent / file
            text = adapted(path.name, path.read_text(encoding="utf-8"))
            (folder / path.name).write_text(text, encoding="utf-8")
        yield folder


def concerns_us(item: pytest.Item) -> bool:
    """Whether a test is about support vector machines, or names one of ours and is not slow."""
    if item.path.name in {Path(file).name for file in FILES}:
        return True
    names_ours = "SVC" in inspect.getsource(item.function)  # type: ignore[attr-defined]
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
                # One that passes is stale, and so a failure.
                item.add_marker(pytest.mark.xfail(reason=EXCLUDED[name], strict=True))
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
        return sorted({*ADAPTED, *EXCLUDED, *SLOW} - self.found)

    def __str__(self) -> str:
        made = {name: makers.intersection(self.passed) for name, makers in self.makers.items()}
        counts = ", ".join(f"{len(tests)} with {name}" for name, tests in made.items())
        lines = [f"scikit-learn {sklearn.__version__} (the lists are for {VERSION})", "adapted:"]
        lines += [f"  {test}: {reason}" for test, (reason, _) in ADAPTED.items()]
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
        folder = stack.enter_context(adapted_files())
        for ours in OURS:
            stack.enter_context(mock.patch.object(sklearn.svm, ours.__name__, ours))
            stack.enter_context(mock.patch.object(ours, "__new__", ledger.make))
        # The default of CalibratedClassifierCV.
        stack.enter_context(mock.patch.object(sklearn.calibration, "LinearSVC", LinearSVC))
        options = ["--rootdir", str(folder), "-c", str(folder / "pytest.ini"), "-q", "--tb=short"]
        options += ["--disable-warnings", "-p", "sklearn.conftest"]
        options += ["-p", "no:cacheprovider", "-p", "no:xdist"]
        code = int(pytest.main([*options, *arguments, str(folder)], plugins=[ledger]))
    print(ledger)
    return code or int(bool(ledger.stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
