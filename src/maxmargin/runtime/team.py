"""A team of threads that wait in compiled code and share parallel regions without the GIL.

A region is a compiled function of a part's number and of arrays and scalars::

    @parallel
    def double(part, x):
        for i in range(100 * part, min(100 * part + 100, x.size)):
            x[i] *= 2.0

    double(n_parts, x)

Everybody, the caller included, takes the next part by an atomic counter. The workers spin for a
moment after a region and sleep after that (futex on Linux, short naps elsewhere). Several callers
have regions open at the same time, each in a slot of its own, and a part may open regions itself:
free workers help where there is something left to do, and a caller without help does all parts
alone, so that nothing waits for a worker and there are never more threads than cores per caller.

The caller returns to Python every few hundredths of a second, where Ctrl-C is served.
"""

from __future__ import annotations

import ast
import atexit
import inspect
import os
import textwrap
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from threading import Lock
from typing import Any, Concatenate, Generic, ParamSpec

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .atomics import SUPPORTED, WORD, add, call, now, pause, pointer, read, sleep, wake, write
from .row_access import compiled, compiled_part
from .threads import LONGEST_WAIT_SECONDS, n_threads

Arguments = ParamSpec("Arguments")


# Pauses, of some 40 ns each, before a worker sleeps, or a caller that waits for the last parts.
PAUSES = 4000
# Workers that everyone who is awake wakes: all of them are after a few such steps.
WAKES_EACH = 3
# Nanoseconds after which a caller returns to Python for a moment.
SLICE_NS = 30_000_000
# Regions that may be open at the same time; further callers work alone.
N_SLOTS = 64

LINE = 64  # bytes of a cache line: every counter has one of its own
# Words of the team.
GENERATION, ASLEEP, WANTED, TICKETS, ENDED, N_USED, N_SERVING = (LINE * k for k in range(7))
FIRST_SLOT = 8 * LINE
# Words of a slot, and where the arguments of its region lie.
FUNCTION, PARTS, LIMIT, NEXT, LEFT, INSIDE, WAITING, FAILED, ARGUMENTS = (
    LINE * k for k in range(9)
)
ARGUMENT_BYTES = 4096
SLOT_BYTES = ARGUMENTS + ARGUMENT_BYTES
# A part's number that no region has.
NEVER = 1 << 40


def _borrowed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a value whose arrays count no references.

    What counts them ends with the call that took the arrays from Python. Whoever opens the region
    keeps them alive, and no counter is shared by all threads.
    """
    if isinstance(kind, types.BaseTuple):
        items = [
            _borrowed(context, builder, each, builder.extract_value(value, k))
            for k, each in enumerate(kind)
        ]
        return context.make_tuple(builder, kind, items)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    return value


@intrinsic
def lay(context, address, arguments):
    """Write the arguments of a region to an address; return that of a function for one part.

    That one calls the compiled function in which this is lowered: a region is compiled once, to
    open it and to compute its parts.
    """

    def codegen(context, builder, types_here, args):
        stored = args[1].type
        if context.get_abi_sizeof(stored) > ARGUMENT_BYTES:
            raise TypeError("too many arguments of a parallel region")
        builder.store(
            _borrowed(context, builder, arguments, args[1]), pointer(builder, args[0], stored)
        )
        region = context.fndesc
        builder.function.attributes.add("noinline")  # one copy of the code
        kind = ir.FunctionType(WORD, [WORD, WORD])
        function = ir.Function(builder.module, kind, f"part.{region.mangled_name}")
        function.linkage = "internal"
        inner = ir.IRBuilder(function.append_basic_block())
        values = inner.load(pointer(inner, function.args[1], stored))
        items = [inner.extract_value(values, k) for k in range(len(arguments.types))]
        status, _ = context.call_internal_no_propagate(
            inner, region, region.restype(*region.argtypes), [WORD(0), function.args[0], *items]
        )
        inner.ret(inner.zext(status.is_error, WORD))
        return builder.ptrtoint(function, WORD)

    return types.int64(types.int64, arguments), codegen


# Workers and callers -----------------------------------------------------------------------------


@compiled_part
def _take_parts(slot, until):
    """Do parts of a region until none is left, or a time has come (0: never); return which."""
    parts = read(slot + PARTS)
    while parts > 0:
        part = add(slot + NEXT, 1)
        if part >= parts:
            break
        if call(read(slot + FUNCTION), part, slot + ARGUMENTS) != 0:
            write(slot + FAILED, 1)
        if add(slot + LEFT, -1) == 1 and read(slot + WAITING) != 0:
            wake(slot + LEFT, 1)
        if until != 0 and now() > until:
            return False
    return True


@compiled_part
def _pass_on(team):
    """Wake a few of the workers that are wanted: each of them wakes further ones."""
    wanted = add(team + WANTED, -WAKES_EACH)
    if wanted > 0:
        wake(team + GENERATION, min(wanted, WAKES_EACH))


@compiled_part
def _announce(team, wanted):
    """Let workers know of something new, and wake one, who wakes the others that are wanted."""
    add(team + GENERATION, 1)
    asleep = read(team + ASLEEP)
    if asleep > 0 and wanted > 0:
        write(team + WANTED, min(asleep, wanted) - 1)
        wake(team + GENERATION, 1)


@compiled
def _serve(team):
    """Help wherever parts are left; return True where Python work waits, False at the end."""
    add(team + N_SERVING, 1)
    while True:
        seen = read(team + GENERATION)
        if read(team + ENDED) != 0:
            add(team + N_SERVING, -1)
            return False
        if read(team + TICKETS) > 0:
            if add(team + TICKETS, -1) > 0:
                add(team + N_SERVING, -1)
                return True
            add(team + TICKETS, 1)
        for k in range(read(team + N_USED)):
            slot = team + FIRST_SLOT + k * SLOT_BYTES
            if read(slot + NEXT) < read(slot + PARTS):
                if add(slot + INSIDE, 1) < read(slot + LIMIT):
                    _take_parts(slot, 0)
                add(slot + INSIDE, -1)
        pauses = 0
        while read(team + GENERATION) == seen:
            if pauses < PAUSES:
                pauses += 1
                pause()
            else:
                add(team + ASLEEP, 1)
                sleep(team + GENERATION, seen & 0xFFFFFFFF, 10**12)
                add(team + ASLEEP, -1)
                _pass_on(team)


@compiled
def _empty(slot):
    """Let nobody take further parts, and wait for those in work."""
    write(slot + NEXT, NEVER)
    write(slot + PARTS, 0)
    pauses = 0
    while read(slot + INSIDE) > 0:
        pauses += 1
        if pauses < PAUSES:
            pause()
        else:
            sleep(slot + INSIDE, NEVER & 0xFFFFFFFF, 10**6)


@compiled_part
def _open(team, slot, function, parts, limit):
    """Open a region of some parts to at most ``limit`` workers."""
    _empty(slot)
    write(slot + FUNCTION, function)
    write(slot + LIMIT, limit)
    write(slot + LEFT, parts)
    write(slot + WAITING, 0)
    write(slot + FAILED, 0)
    write(slot + NEXT, 0)
    write(slot + PARTS, parts)
    _announce(team, min(limit, parts - 1))


@compiled
def _work(slot, nanoseconds):
    """Do parts of a region; return whether all are done, after some time in any case."""
    until = now() + nanoseconds
    if not _take_parts(slot, until):
        return False
    pauses = 0
    while True:
        left = read(slot + LEFT)
        if left == 0:
            return True
        if pauses < PAUSES:
            pauses += 1
            pause()
        else:
            rest = until - now()
            if rest <= 0:
                return False
            write(slot + WAITING, 1)
            sleep(slot + LEFT, left & 0xFFFFFFFF, rest)


@compiled
def _run(team, slot, function, parts, limit, nanoseconds):
    """Open a region and work on it."""
    _open(team, slot, function, parts, limit)
    return _work(slot, nanoseconds)


@compiled
def _call_for_help(team, count):
    """Ask some workers to return to Python."""
    add(team + TICKETS, count)
    _announce(team, count)


@compiled
def _withdraw(team, count):
    """Take back what is left of a request."""
    for _ in range(count):
        if add(team + TICKETS, -1) <= 0:
            add(team + TICKETS, 1)
            break


@compiled
def _end(team):
    """Let all workers end."""
    write(team + ENDED, 1)
    add(team + GENERATION, 1)
    wake(team + GENERATION, 1 << 30)


@compiled
def _failed(slot):
    return read(slot + FAILED) != 0


class Team:
    """The threads of this process, and the slots in which their regions are open."""

    def __init__(self) -> None:
        memory = np.zeros((FIRST_SLOT + N_SLOTS * SLOT_BYTES) // 8 + LINE, dtype=np.int64)
        skipped = -memory.ctypes.data % LINE // 8
        self._words = memory[skipped:]
        self.address = int(self._words.ctypes.data)
        self._slots = list(reversed(range(N_SLOTS)))
        # What regions work on: known until the slot's next one, should Ctrl-C come at any moment.
        self._arguments: dict[int, tuple[Any, ...]] = {}
        self._jobs: deque[Callable[[], None]] = deque()
        self.n_workers = 0
        _serve.compile((types.int64,))  # type: ignore[attr-defined]
        atexit.register(self.end)

    def grow(self, n_workers: int) -> None:
        """Start threads until there are so many workers."""
        while self.n_workers < n_workers:
            self.n_workers += 1
            start_new_thread(self._live, ())

    def end(self) -> None:
        """Let the threads leave compiled code, which the interpreter is about to unload.

        After Ctrl-C one may be within BLAS, whose own threads the end of the process joins.
        """
        _end(self.address)
        until = time.monotonic() + LONGEST_WAIT_SECONDS
        while self._words[N_SERVING // 8] != 0 and time.monotonic() < until:
            time.sleep(1e-3)

    def _live(self) -> None:
        while _serve(self.address):
            # The caller may have done all parts by now, and withdrawn its request.
            with suppress(IndexError):
                self._jobs.popleft()()

    def run(self, region: Any, n_parts: int, n_helpers: int, arguments: tuple[Any, ...]) -> bool:
        """Run a region; return False where no slot is free for it."""
        try:
            k = self._slots.pop()
        except IndexError:
            return False
        self._words[N_USED // 8] = max(self._words[N_USED // 8], k + 1)
        slot = self.address + FIRST_SLOT + k * SLOT_BYTES
        try:
            self._arguments[k] = arguments
            function = region(slot + ARGUMENTS, 0, *arguments)
            done = _run(self.address, slot, function, n_parts, n_helpers, SLICE_NS)
            while not done:
                done = _work(slot, SLICE_NS)
            failed = _failed(slot)
        except BaseException:
            _empty(slot)
            self._slots.append(k)
            raise
        self._slots.append(k)
        if failed:
            raise MemoryError("a part of a parallel region could not be computed")
        return True

    def help(self, job: Callable[[], None], count: int) -> Callable[[], None]:
        """Let some workers call a function of Python; return what withdraws the request."""
        self._jobs.extend([job] * count)
        _call_for_help(self.address, count)

        def withdraw() -> None:
            _withdraw(self.address, self._jobs.count(job))
            with suppress(ValueError):
                while True:
                    self._jobs.remove(job)

        return withdraw


_team: Team | None = None
_founding = Lock()


def team_of(n_workers: int) -> Team:
    """Return the team of this process, with at least so many workers."""
    global _team
    with _founding:
        if _team is None:
            _team = Team()
        _team.grow(n_workers)
        return _team


def _forget() -> None:
    """Leave the threads of the parent process, which this one does not have."""
    global _team, _founding
    _team, _founding = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Region(Generic[Arguments]):
    """A compiled function of a part's number and further arguments, for all parts on all cores.

    Attributes
    ----------
    kernel : callable
        The function for one part, compiled on its own when it is called.
    """

    def __init__(self, kernel: Callable[Concatenate[int, Arguments], None]) -> None:
        self._kernel = kernel

    @cached_property
    def kernel(self) -> Callable[Concatenate[int, Arguments], None]:
        return compiled(self._kernel)

    @cached_property
    def _region(self) -> Any:
        return compiled(_region_of(self._kernel))

    def __call__(self, n_parts: int, *arguments: Arguments.args, **_: Arguments.kwargs) -> None:
        """Call the function for the parts 0 to n_parts − 1, and return when all are done."""
        n_helpers = min(n_threads(), n_parts) - 1 if SUPPORTED else 0
        if n_helpers > 0 and team_of(n_helpers).run(self._region, n_parts, n_helpers, arguments):
            return
        for part in range(n_parts):
            self._region(0, part, *arguments, **_)


def parallel(kernel: Callable[Concatenate[int, Arguments], None]) -> Region[Arguments]:
    """Make a parallel region of a function (part, *arguments) of arrays and scalars.

    Parts run in any order and side by side: they write to different places, take less than a
    twentieth of a second each, and call nothing of Python.
    """
    return Region(kernel)


def _region_of(kernel: Any) -> Any:
    """Return the kernel with one more argument, an address: unless 0, arguments are laid there.

    It is made from the kernel's source and belongs to its file: compiled code is cached by file and
    line, and is out of date when that file changes.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    names = [argument.arg for argument in function.args.args]
    laid = "".join(f"{name}, " for name in names[1:])
    for node in ast.walk(function):
        if isinstance(node, ast.Return):
            node.value = ast.Constant(0)
    function.name, function.decorator_list = f"{kernel.__name__}_region", []
    function.args.args.insert(0, ast.arg("address_"))
    opening = ast.parse(f"if address_: return lay_(address_, ({laid}))")
    function.body = [*opening.body, *function.body, ast.Return(ast.Constant(0))]
    ast.fix_missing_locations(tree)
    ast.increment_lineno(tree, kernel.__code__.co_firstlineno - 1)
    kernel.__globals__["lay_"] = lay
    made: dict[str, Any] = {}
    exec(compile(tree, kernel.__code__.co_filename, "exec"), kernel.__globals__, made)
    return made[function.name]
