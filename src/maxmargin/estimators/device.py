"""The parameter ``device``: where a machine is fitted and predicts."""

from __future__ import annotations

import re
from typing import Any

from sklearn import get_config
from sklearn.utils._param_validation import StrOptions

from ..arrays import MatrixLike
from ..caller import warn_caller
from ..engines import registry


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


def device_for_prediction(model: Any) -> str:
    """Return the device of a model, or with a warning the CPU where that device is not here."""
    device = device_of(model)
    if device in ("auto", "cpu"):
        return device
    try:
        registry.find_device(device)
    except (ImportError, ValueError) as error:
        warn_caller(f"{type(model).__name__}: predicting on the CPU. {error}")
        return "cpu"
    return device


def answered(values: Any, X: MatrixLike) -> Any:
    """Return answers as NumPy's, or as X is where scikit-learn's ``array_api_dispatch`` is on."""
    if registry.is_foreign(X) and get_config()["array_api_dispatch"]:
        return registry.as_given(values, X)
    return registry.host_array(values)
