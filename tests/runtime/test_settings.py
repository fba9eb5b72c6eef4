"""Settings of the process: as a call, as a context manager, and what is refused."""

from __future__ import annotations

import pytest

import maxmargin as mm
from maxmargin.runtime.settings import setting


@pytest.fixture(autouse=True)
def _as_before():
    with mm.config():
        yield


def test_a_call_changes_a_setting():
    assert setting("gpu_memory") == 0.9
    mm.config(gpu_memory=0.5)
    assert setting("gpu_memory") == 0.5
    mm.config(kernel_cache="1MB")
    assert repr(mm.config()) == "config(gpu_memory=0.5, kernel_cache=1000000)"


def test_a_block_puts_the_former_value_back():
    mm.config(gpu_memory=0.5)
    with mm.config(gpu_memory=0.25), mm.config(gpu_memory=1):
        assert setting("gpu_memory") == 1.0
    assert setting("gpu_memory") == 0.5


@pytest.mark.parametrize("value", [0.0, -0.5, 1.5, float("nan"), "half", True])
def test_what_is_not_a_share_is_refused(value):
    with pytest.raises(ValueError, match="gpu_memory must be a share, more than 0 and at most 1"):
        mm.config(gpu_memory=value)
    assert setting("gpu_memory") == 0.9


def test_the_cache_has_the_size_of_the_setting():
    with mm.config(kernel_cache="1GiB"):
        with mm.config(gpu_memory=0.5):
            assert mm.kernel_cache.info().max_bytes == setting("kernel_cache") == 2**30
        with mm.config(kernel_cache=None):
            assert mm.kernel_cache.info().max_bytes == 0
        assert mm.kernel_cache.info().max_bytes == 2**30
    assert mm.kernel_cache.info().max_bytes == 0


def test_nothing_is_changed_where_one_setting_is_refused():
    with pytest.raises(ValueError, match="kernel_cache must be a number of bytes"):
        mm.config(gpu_memory=0.5, kernel_cache="much")
    assert setting("gpu_memory") == 0.9
