"""torch's CPU device in the place of a card, so that what runs on a GPU is tested without one."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest

from maxmargin.engines.registry import engine_for
from maxmargin.solvers import linear


def torch_engines():
    """Return makers of the torch engine by name, none without torch; "torch, cuda" needs a card."""
    if find_spec("torch") is None:
        return {}
    return {
        "torch": lambda X: engine_for(X, "torch", device="cpu"),
        "torch, cuda": lambda X: engine_for(X, "torch", device="cuda"),
    }


def marked(names):
    """Return names as parameters of tests, those that need a card marked."""
    return [pytest.param(n, marks=pytest.mark.gpu) if "cuda" in n else n for n in names]


def pretend_card(monkeypatch, *, everywhere=False):
    """Let "cuda" mean torch's CPU device; ``everywhere`` also takes tensors there for a card's."""
    import torch

    from maxmargin.engines.torch import device

    monkeypatch.setattr(device, "find_device", lambda name: torch.device("cpu"))
    if everywhere:
        monkeypatch.setattr(device, "is_card", lambda where: True)
    stay_on_device(monkeypatch)


def stay_on_device(monkeypatch):
    """Solve linear machines on a device however small they are."""
    monkeypatch.setattr(linear, "TUNING", replace(linear.TUNING, device_numbers=0))


def pretend_no_card(monkeypatch):
    """Let torch be one that was not built for CUDA, on machines with a card, too."""
    import torch

    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
