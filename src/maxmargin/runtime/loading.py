"""Modules that load the compiler, imported before threads start.

They are imported when something is fitted, not with the package. An import that Ctrl-C ends in
another thread than the main one may leave the module's lock taken, and every later import of it
waits for ever.
"""

from __future__ import annotations

from importlib import import_module


def load(*names: str, package: str | None) -> None:
    """Import modules of a package in this thread."""
    for name in names:
        import_module(f".{name}", package)
