"""What holds for the tests and for the examples in docstrings."""

import os
import sys
from importlib.util import find_spec

import pytest

HAS_TORCH, HAS_DASK = (find_spec(name) is not None for name in ("torch", "distributed"))
# Engines are imported with their libraries only; without them there is nothing to collect.
collect_ignore_glob = []
if not HAS_TORCH:
    collect_ignore_glob += ["src/maxmargin/engines/torch/*", "tests/engines/torch/interpreted_*"]
if not HAS_DASK:
    collect_ignore_glob += ["src/maxmargin/engines/dask/*", "tests/engines/dask/*"]


def pytest_configure(config):
    """Let the processes of pytest-xdist share the cores.

    Threads of BLAS and OpenMP spin while they wait for each other: with some in every process,
    linear algebra of small matrices takes twice as long. Our own threads are as many as ever.
    """
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_collection_modifyitems(config, items):
    """Leave out the tests that need a card unless ``-m gpu`` asks for them; skip without a card."""
    if "gpu" not in config.getoption("markexpr"):
        needing = [item for item in items if "gpu" in item.keywords]
        config.hook.pytest_deselected(items=needing)
        items[:] = [item for item in items if "gpu" not in item.keywords]
    elif not _has_card():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="there is no GPU here"))


def _has_card():
    if not HAS_TORCH:
        return False
    import torch

    return torch.cuda.is_available()


def pytest_terminal_summary(terminalreporter):
    """Say what was not tested."""
    if not HAS_TORCH:
        terminalreporter.write_line(
            'torch is not installed: tests of the GPU engine were skipped (pip install ".[gpu]").'
        )
    if not HAS_DASK:
        terminalreporter.write_line(
            'dask is not installed: tests of the Dask engine were skipped (pip install ".[dask]").'
        )


@pytest.fixture(autouse=True)
def _close_figures():
    """No test sees the figures of another one, in whatever order they run."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
