"""What holds for the tests and for the examples in docstrings."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _close_figures():
    """No test sees the figures of another one, in whatever order they run."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
