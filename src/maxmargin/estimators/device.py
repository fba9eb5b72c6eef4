"""The parameter ``device``: where a machine is fitted and predicts."""

from __future__ import annotations

import re
from typing import Any

from sklearn.utils._param_validation import StrOptions


class _DeviceName(StrOptions):  # type: ignore[misc]
    """The name of a device: "cuda" may have the number of a card."""

    def __init__(self) -> None:
        super().__init__({"auto", "cpu", "cuda"})

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether a value is such a name."""
        return isinstance(val, str) and bool(re.fullmatch(r"auto|cpu|cuda(:\d+)?", val))

    def __str__(self) -> str:
        return "'auto', 'cpu', 'cuda', or 'cuda:' and the number of a card"


DEVICE: list[Any] = [_DeviceName()]


def device_of(model: Any) -> str:
    """Return the device of a model: the CPU for those that know no other, and of older pickles."""
    return getattr(model, "device", "cpu")
