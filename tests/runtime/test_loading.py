"""Modules are imported in the main thread: Ctrl-C in an import of another one blocks later fits."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

MODELS = [
    "mm.SVC(n_jobs=2)",
    "mm.SVC(n_jobs=2, multi_class='ovr', solver='decomposition')",
    "mm.SVC(kernel='linear', C=100.0, n_jobs=2)",
    "mm.NuSVC(nu=0.2, n_jobs=2)",
    "mm.LinearSVC(n_jobs=2)",
    "mm.LinearSVC(loss='hinge', solver='coordinate-descent', n_jobs=2)",
    "mm.KernelPerceptron(max_iter=5)",
]
# Every model is fitted in a process of its own, which has other libraries from its parent.
PROGRAM = textwrap.dedent("""
    import os, sys, threading
    import numpy as np, maxmargin as mm
    import numba, scipy.linalg, scipy.sparse, sklearn.base, sklearn.utils.multiclass

    class Watch:
        elsewhere = []
        def find_spec(self, name, path=None, target=None):
            if threading.current_thread() is not threading.main_thread():
                self.elsewhere.append(name)

    sys.meta_path.insert(0, Watch())
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 4, size=300)
    for model in sys.argv[1:]:
        assert "maxmargin.solvers" not in sys.modules
        if os.fork() == 0:
            eval(model).fit(X, y)
            ours = [name for name in Watch.elsewhere if name.startswith("maxmargin")]
            print("by other threads of", model, ours, flush=True)
            os._exit(0)
        _, status = os.wait()
        assert status == 0, model
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_module_is_imported_by_another_thread():
    done = subprocess.run([sys.executable, "-c", PROGRAM, *MODELS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"by other threads of {model} []" for model in MODELS]
