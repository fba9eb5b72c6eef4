"""Which engine holds X: the one place that lists them all.

An engine is added by a package that implements `maxmargin.engines.base` and a line of `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..arrays import container
from ..runtime.loading import uncollected

if TYPE_CHECKING:
    from .base import HostEngine
    from .cpu.engine import CpuEngine
    from .torch.engine import TorchEngine


def _cpu() -> type[CpuEngine]:
    with uncollected():
        from .cpu.engine import CpuEngine

    return CpuEngine


def _torch() -> type[TorchEngine]:
    from .torch.engine import TorchEngine

    return TorchEngine


# The name of an engine, whether X is of its kind, and how its class is imported.
ENGINES: dict[str, tuple[Callable[[Any], bool], Callable[[], Any]]] = {
    "cpu": (lambda X: isinstance(X, np.ndarray) or sparse.issparse(X), _cpu),
    "torch": (lambda X: container(X).on_device, _torch),
}


def engine_class(X: Any, name: str = "auto") -> Callable[..., HostEngine]:
    """Return the class of the engine for X, imported; the parameters are those of `engine_for`."""
    if name == "auto":
        name = next((each for each, (holds, _) in ENGINES.items() if holds(X)), "cpu")
    if name not in ENGINES:
        raise ValueError(f"engine must be 'auto' or one of {sorted(ENGINES)}, got {name!r}.")
    found: Callable[..., HostEngine] = ENGINES[name][1]()
    return found


def engine_for(X: Any, name: str = "auto", **options: Any) -> HostEngine:
    """Return an engine that holds X.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    name : str, default="auto"
        A key of `ENGINES`; "auto" takes the first one whose kind X is.
    **options
        Of the engine's class.
    """
    return engine_class(X, name)(X, **options)
