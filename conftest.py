"""What holds for the tests and for the examples in docstrings."""

import os
import sys

import pytest


def pytest_configure(config):
    """Let the processes of pytest-xdist share the cores.

    Threads of BLAS and OpenMP spin while they wait for each other: with some in every process,
    linear algebra of small matrices takes twice as long. Our own threads are as many as ever.
    """
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(autouse=True)
def _close_figures():
    """No test sees the figures of another one, in whatever order they run."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
