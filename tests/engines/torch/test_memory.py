"""Blocks become smaller where memory is full, and never more is used than allowed."""

import pytest

import maxmargin as mm

torch = pytest.importorskip("torch")

from maxmargin.engines.torch import memory  # noqa: E402
from maxmargin.engines.torch.memory import (  # noqa: E402
    DeviceMemoryFull,
    bytes_to_use,
    with_smaller_blocks,
)


def test_smaller_blocks_are_tried():
    tried = []

    def compute(size):
        tried.append(size)
        if size > 100:
            raise torch.OutOfMemoryError("full")
        return size

    assert with_smaller_blocks(compute, 700.0, least=10) == 87.5
    assert tried == [700.0, 350.0, 175.0, 87.5]


def test_the_memory_is_full():
    tried = []

    def compute(size):
        tried.append(size)
        raise torch.OutOfMemoryError("no more")

    with pytest.raises(DeviceMemoryFull, match="no more"):
        with_smaller_blocks(compute, 64.0, least=16.0)
    assert tried == [64.0, 32.0, 16.0]


def test_other_errors_pass():
    def compute(size):
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        with_smaller_blocks(compute, 64.0)


def test_a_share_of_the_host_memory(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    assert bytes_to_use(torch.device("cpu")) == memory.HOST_SHARE * 1000


def test_a_share_of_the_card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (800, 2000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 300)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 100)
    assert bytes_to_use(torch.device("cuda")) == 900
    with mm.config(gpu_memory=0.5):
        assert bytes_to_use(torch.device("cuda")) == 500
