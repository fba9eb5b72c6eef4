"""torch's CPU device in the place of a card, so that what runs on a GPU is tested without one."""

from __future__ import annotations


def pretend_card(monkeypatch, *, everywhere=False):
    """Let "cuda" mean torch's CPU device; ``everywhere`` also takes tensors there for a card's."""
    import torch

    from maxmargin.engines.torch import device

    monkeypatch.setattr(device, "find_device", lambda name: torch.device("cpu"))
    if everywhere:
        monkeypatch.setattr(device, "is_card", lambda where: True)
