"""Modules are imported in the main thread: Ctrl-C in an import of another one blocks later fits."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = textwrap.dedent("""
    import sys, threading
    import numpy as np, maxmargin as mm

    class Watch:
        elsewhere = []
        def find_spec(self, name, path=None, target=None):
            if threading.current_thread() is not threading.main_thread():
                self.elsewhere.append(name)

    sys.meta_path.insert(0, Watch())
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 4, size=300)
    eval(sys.argv[1]).fit(X, y)
    ours = [name for name in Watch.elsewhere if name.startswith("maxmargin")]
    assert not ours, ours
""")


@pytest.mark.parametrize(
    "model",
    [
        "mm.SVC(n_jobs=2)",
        "mm.SVC(n_jobs=2, multi_class='ovr', solver='decomposition')",
        "mm.SVC(kernel='linear', C=100.0, n_jobs=2)",
        "mm.NuSVC(nu=0.2, n_jobs=2)",
        "mm.LinearSVC(n_jobs=2)",
        "mm.LinearSVC(loss='hinge', solver='coordinate-descent', n_jobs=2)",
        "mm.KernelPerceptron(max_iter=5)",
    ],
)
def test_no_module_is_imported_by_another_thread(model):
    done = subprocess.run([sys.executable, "-c", PROGRAM, model], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
