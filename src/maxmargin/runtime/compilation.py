"""Functions compiled when first called, and kept on disk for later programs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys
from numba.extending import register_jitable

# Sums may be reordered so that they vectorise; NaN and ∞ keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": REORDER}

F = TypeVar("F", bound=Callable[..., Any])


class CodeCache(FunctionCache):
    """Compiled code on disk, read without the tables of the compiler.

    numba fills the tables of its compiler, which takes longer than a small fit, before it reads
    code that is compiled already. To run, that code needs no more than the runtime library.
    """

    def load_overload(self, sig, target_context):
        """Return the code of a signature, or None."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class _CompilationNotice(event.Listener):
    """Log once per process why a first fit takes seconds."""

    given = False

    def on_start(self, event):
        module = str(event.data["dispatcher"].py_func.__module__)
        if not _CompilationNotice.given and module.startswith("maxmargin."):
            _CompilationNotice.given = True
            logging.getLogger("maxmargin").warning(
                "maxmargin: compiling (once; cached on disk where possible)"
            )

    def on_end(self, event):
        pass


event.register("numba:compile", _CompilationNotice())


def compiled(function: F) -> F:
    """Compile ``function`` when it is first called, and cache it on disk if possible."""
    dispatcher = numba.njit(**OPTIONS)(function)
    with suppress(RuntimeError):  # a read-only install without a home has no place for the cache
        dispatcher._cache = CodeCache(function)
    return dispatcher


def compiled_part(function: F) -> F:
    """Compile ``function`` with the compiled functions that call it, and not on its own."""
    return register_jitable(**OPTIONS)(function)
