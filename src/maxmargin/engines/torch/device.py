"""Devices of torch by their names."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch


def find_device(name: str) -> Any:
    """Return the card that is called "cuda" or "cuda:1"; raise ValueError where there is none."""
    instead = 'use device="cpu"'
    if torch.version.cuda is None and torch.version.hip is None:
        raise ValueError(
            f"device={name!r} needs a torch that was built for CUDA, got torch "
            f"{torch.__version__}: install such a build (https://pytorch.org/get-started), or "
            f"{instead}."
        )
    if not torch.cuda.is_available():
        raise ValueError(
            f"device={name!r} needs a GPU, and torch finds none: {_reason()} Check the card and "
            f"its driver with nvidia-smi, or {instead}."
        )
    n_cards = torch.cuda.device_count()
    _, _, number = name.partition(":")
    index = int(number) if number else torch.cuda.current_device()
    if index >= n_cards:
        known = ", ".join(repr(f"cuda:{k}") for k in range(n_cards))
        raise ValueError(
            f"device={name!r} is not a card of this machine: use one of {known}, or {instead}."
        )
    device = torch.device("cuda", index)
    try:
        _use(device)
    except torch.OutOfMemoryError:  # for which there are other remedies
        pass
    except RuntimeError as error:
        raise ValueError(
            f"device={name!r} cannot be used: {_first_line(error)} See which processes use it with "
            f"nvidia-smi, or {instead}."
        ) from error
    return device


@cache
def _use(device: Any) -> None:
    """Compute something on a device, which fails where it is taken or torch is not made for it."""
    torch.zeros(1, device=device)


def is_card(device: Any) -> bool:
    """Return whether a device has an engine of its own: where data on it stay there."""
    return device.type == "cuda"


def _reason() -> str:
    """Return what torch says of the driver."""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return _first_line(error)
    return "no card is visible to this process."


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].strip().rstrip(".") + "."
