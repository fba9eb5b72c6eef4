"""Functions compiled when first called, and kept on disk for later programs."""

from __future__ import annotations

import logging
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from types import FrameType
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime import rtsys
from numba.extending import register_jitable

from .loading import uncollected

F = TypeVar("F", bound=Callable[..., Any])


# Parts -------------------------------------------------------------------------------------------


class _PartCode(JITCodeLibrary):
    """Code that is linked into that of its callers, and optimised and translated only there."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


def _never_called(library: Any, description: Any, environment: Any) -> Callable[..., None]:
    """Return what stands for a part in the compiler's tables: some built-in method of its own."""
    return [].append


class PartCompiler(Compiler):
    """The compiler of functions that only compiled functions call.

    numba would optimise each of them on its own and translate it to machine code, before all of it
    is done again as part of the caller: half of the time.
    """

    def __init__(self, typingctx, targetctx, library, *rest):
        super().__init__(typingctx, targetctx, library, *rest)
        context = self.state.targetctx
        context.get_executable = _never_called
        self.state.library = _PartCode(context.codegen(), "part")


class _WholeCompiler(Compiler):
    """The compiler of functions that Python calls, and of their parts."""

    def _compile_core(self):
        result = super()._compile_core()
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
        return result


# Sums may be reordered so that they vectorise; NaN and ∞ keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}
OPTIONS = {
    "nogil": True, "error_model": "numpy", "fastmath": REORDER, "no_cfunc_wrapper": True,
}  # fmt: skip
PART = {**OPTIONS, "pipeline_class": PartCompiler}


# The cache ---------------------------------------------------------------------------------------


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """Return what compiled code knows of its module: constants, such as messages of errors.

    numba imports the module, for its globals. Code of numba's own modules does without: it is part
    of ours, and they belong to the compiler.
    """
    if module in sys.modules or not module.startswith("numba."):
        return _rebuild_env(module, constants, name)
    known = lookup_environment(name)
    if known is None:
        known = Environment({"__name__": module})
        known.consts[:], known.env_name = constants, name
        Environment._memo[name] = known
    return known


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        wanted = (module, name) == (_rebuild_env.__module__, _rebuild_env.__name__)
        return _environment if wanted else super().find_class(module, name)


class _CodeFile(IndexDataCacheFile):
    def _load_data(self, name):
        with open(self._data_path(name), "rb") as file:
            return _Unpickler(file).load()


class CodeCache(FunctionCache):
    """Compiled code on disk, read without the tables of the compiler.

    numba fills the tables of its compiler, which takes longer than a small fit, before it reads
    code that is compiled already. To run, that code needs no more than the runtime library.
    """

    def __init__(self, function):
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _CodeFile(
            self._cache_path, self._impl.filename_base, locator.get_source_stamp()
        )

    def load_overload(self, sig, target_context):
        """Return the code of a signature, or None."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


@dataclass
class Preparation:
    """What was prepared before it could run: functions that were compiled, or read from disk.

    ``tell`` is called when a function begins to be compiled.
    """

    tell: Callable[[], None]
    n_functions: int = 0


_prepared = threading.local()


@contextmanager
def watched(tell: Callable[[], None]) -> Iterator[Preparation]:
    """Yield a record of the functions that this thread prepares."""
    _prepared.here = found = Preparation(tell)
    try:
        yield found
    finally:
        _prepared.here = None


def _watcher() -> Preparation | None:
    return getattr(_prepared, "here", None)


class _CompilationNotice(event.Listener):
    """Log once per process why a first fit takes seconds."""

    given = False

    def on_start(self, event):
        module = str(event.data["dispatcher"].py_func.__module__)
        watcher = _watcher()
        if watcher is not None:
            watcher.tell()
        if not _CompilationNotice.given and module.startswith("maxmargin."):
            _CompilationNotice.given = True
            logging.getLogger("maxmargin").warning(
                "maxmargin: compiling (once; cached on disk where possible)"
            )

    def on_end(self, event):
        pass


event.register("numba:compile", _CompilationNotice())


@contextmanager
def interruptions_kept() -> Iterator[None]:
    """Raise an interruption (Ctrl-C) again at the end if the block has swallowed it.

    LLVM calls back into Python; what is raised there would be printed and forgotten.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    raised: list[BaseException] = []

    def remember(number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as interruption:
            raised.append(interruption)
            raise

    print_ignored = sys.unraisablehook

    def print_others(ignored: Any) -> None:
        if not any(ignored.exc_value is each for each in raised):
            print_ignored(ignored)

    signal.signal(signal.SIGINT, remember)
    sys.unraisablehook = print_others
    try:
        yield
    finally:
        sys.unraisablehook = print_ignored
        signal.signal(signal.SIGINT, handler)
        if raised:
            raise raised[0]


def compiled(function: F) -> F:
    """Compile ``function`` when it is first called, and cache it on disk if possible.

    Where a compiled function calls it, it is compiled as a part of that.
    """
    dispatcher = numba.njit(**OPTIONS, pipeline_class=_WholeCompiler)(function)
    compile_or_load = dispatcher.compile
    part = numba.njit(**PART, no_cpython_wrapper=True)(function)

    @wraps(compile_or_load)
    def compile_(signature: Any) -> Any:
        watcher = _watcher()
        if watcher is not None:
            watcher.n_functions += 1
        with interruptions_kept(), uncollected():
            return compile_or_load(signature)

    dispatcher.compile = compile_
    dispatcher.get_call_template = part.get_call_template
    dispatcher.get_overload = part.get_overload
    with suppress(RuntimeError):  # a read-only install without a home has no place for the cache
        dispatcher._cache = CodeCache(function)
    return dispatcher


def compiled_part(function: F) -> F:
    """Compile ``function`` with the compiled functions that call it, and not on its own."""
    return register_jitable(**PART)(function)
