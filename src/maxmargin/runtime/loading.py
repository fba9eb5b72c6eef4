"""Modules that load the compiler, imported before threads start.

They are imported when something is fitted, not with the package. An import that Ctrl-C ends in
another thread than the main one may leave the module's lock taken, and every later import of it
waits for ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector: classes and functions that imports make are no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load(*names: str, package: str | None) -> None:
    """Import modules of a package in this thread."""
    with uncollected():
        for name in names:
            import_module(f".{name}", package)
