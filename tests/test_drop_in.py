"""scikit-learn's own tests of support vector machines, run on ours."""

import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

TOOL = Path(__file__).resolve().parents[1] / "tools" / "drop_in.py"


@pytest.mark.skipif(
    not sklearn.__version__.startswith("1.9."), reason="tests change with scikit-learn's versions"
)
def test_scikit_learn_tests_pass():
    # Lists of lists are converted at once to the CSR matrices and arrays that stay.
    run = subprocess.run(
        [sys.executable, TOOL, "-k", "not lil_"], capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 0, run.stdout + run.stderr
