"""Settings of the process: what holds for every fit, whoever asks for it."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np

from .kernel_cache import bytes_of, kernel_cache

# The names of the settings, and their values now.
_values: dict[str, Any] = {"gpu_memory": 0.9, "kernel_cache": kernel_cache.max_bytes}
# None turns the cache off.
_UNCHANGED: Any = object()


def setting(name: str) -> Any:
    """Return the value of a setting now."""
    return _values[name]


class config:  # noqa: N801
    """Change settings of the process, for good or for a ``with`` block.

    A call changes them at once. Used as a context manager, it puts the former values back at the
    end of the block. Settings hold for all threads of the process.

    Parameters
    ----------
    gpu_memory : float, optional
        The share of a GPU's free memory that a fit or a prediction may take, more than 0 and at
        most 1; 0.9 at the start. Less leaves room for other programs on the same card.
    kernel_cache : int, str or None, optional
        Bytes that Gram matrices may take which are kept for later fits to the same rows with the
        same kernel, as those of GridSearchCV are: ``10**9``, "500MB" or "1GiB"; None or 0 for no
        such cache, and what it holds is dropped. At the start it is what the environment variable
        MAXMARGIN_KERNEL_CACHE says, which also reaches the worker processes of joblib, and else 0.
        `maxmargin.kernel_cache` tells what the cache holds.

    Raises
    ------
    ValueError
        For a value that is not allowed; no setting is changed then.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.config(gpu_memory=0.5)
    config(gpu_memory=0.5, kernel_cache=0)
    >>> with mm.config(gpu_memory=0.25):
    ...     pass  # fits in here take at most a quarter of the free memory
    >>> mm.config()
    config(gpu_memory=0.5, kernel_cache=0)
    >>> mm.config(gpu_memory=0.9)
    config(gpu_memory=0.9, kernel_cache=0)
    """

    def __init__(
        self, *, gpu_memory: float | None = None, kernel_cache: int | str | None = _UNCHANGED
    ) -> None:
        self._before = dict(_values)
        changed: dict[str, Any] = {}
        if gpu_memory is not None:
            changed["gpu_memory"] = _share("gpu_memory", gpu_memory)
        if kernel_cache is not _UNCHANGED:
            changed["kernel_cache"] = bytes_of("kernel_cache", kernel_cache)
        _change(changed)

    def __enter__(self) -> config:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _change(self._before)

    def __repr__(self) -> str:
        return f"config({', '.join(f'{name}={value!r}' for name, value in _values.items())})"


def _change(values: dict[str, Any]) -> None:
    """Change settings to values that are allowed."""
    _values.update(values)
    if kernel_cache.max_bytes != _values["kernel_cache"]:
        kernel_cache.resize(_values["kernel_cache"])


def _share(name: str, value: object) -> float:
    """Return a share as a float; raise ValueError where it is not one."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and 0.0 < value <= 1.0):  # type: ignore[operator]
        raise ValueError(f"{name} must be a share, more than 0 and at most 1, got {value!r}.")
    return float(value)  # type: ignore[arg-type]
