"""Words of memory that threads share in compiled code: atomic access, waiting, a clock."""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# The number of the system call, on the processors that numba supports.
FUTEX = {"x86_64": 202, "aarch64": 98, "ppc64le": 221, "s390x": 238}.get(platform.machine())
HAS_FUTEX = sys.platform == "linux" and FUTEX is not None
# Microseconds of a nap where there is no futex.
NAP_US = 200
# Whether threads can wait in compiled code at all.
SUPPORTED = os.name == "posix"

WORD = ir.IntType(64)
HALF = ir.IntType(32)


def pointer(builder: Any, address: Any, kind: Any = WORD) -> Any:
    """Return an address as LLVM's pointer."""
    return builder.inttoptr(address, kind.as_pointer())


def _external(builder: Any, name: str, result: Any, arguments: list[Any], several: bool) -> Any:
    """Declare a function of the system's library, which the linker finds by its name."""
    kind = ir.FunctionType(result, arguments, var_arg=several)
    return cgutils.get_or_insert_function(builder.module, kind, name)


@intrinsic
def add(context, address, value):
    """Add to a word; return what it was."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("add", pointer(builder, args[0]), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def read(context, address):
    """Return a word."""

    def codegen(context, builder, signature, args):
        return builder.load_atomic(pointer(builder, args[0]), "seq_cst", 8)

    return types.int64(types.int64), codegen


@intrinsic
def write(context, address, value):
    """Set a word."""

    def codegen(context, builder, signature, args):
        builder.store_atomic(args[1], pointer(builder, args[0]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def call(context, function, part, arguments):
    """Call the function at an address with a part and the address of the arguments."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(WORD, [WORD, WORD])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def pause(context):
    """Tell the processor that this thread spins."""

    def codegen(context, builder, signature, args):
        nothing, machine = ir.VoidType(), platform.machine().lower()
        if machine in ("x86_64", "amd64"):
            kind = ir.FunctionType(nothing, [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        elif machine in ("aarch64", "arm64"):
            kind = ir.FunctionType(nothing, [HALF])
            hint = builder.module.declare_intrinsic("llvm.aarch64.hint", (), kind)
            builder.call(hint, [HALF(1)])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def now(context):
    """Return nanoseconds of a clock that never goes back."""

    def codegen(context, builder, signature, args):
        clock = _external(builder, "clock_gettime", HALF, [HALF, WORD.as_pointer()], False)
        moment = cgutils.alloca_once(builder, WORD, size=2)
        builder.call(clock, [HALF(time.CLOCK_MONOTONIC), moment])
        seconds = builder.load(moment)
        rest = builder.load(builder.gep(moment, [HALF(1)]))
        return builder.add(builder.mul(seconds, WORD(10**9)), rest)

    return types.int64(), codegen


@intrinsic
def sleep(context, address, value, nanoseconds):
    """Sleep until woken, unless a word has another value by now; return at least after a while."""

    def codegen(context, builder, signature, args):
        if not HAS_FUTEX:
            nap = _external(builder, "usleep", HALF, [HALF], False)
            builder.call(nap, [HALF(NAP_US)])
            return context.get_dummy_value()
        moment = cgutils.alloca_once(builder, WORD, size=2)
        builder.store(builder.sdiv(args[2], WORD(10**9)), moment)
        rest = builder.gep(moment, [HALF(1)])
        builder.store(builder.srem(args[2], WORD(10**9)), rest)
        wait = 128  # FUTEX_WAIT of this process alone
        duration = builder.ptrtoint(moment, WORD)
        system = _external(builder, "syscall", WORD, [WORD], True)
        builder.call(
            system, [WORD(FUTEX), args[0], WORD(wait), args[1], duration, WORD(0), WORD(0)]
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def wake(context, address, count):
    """Wake some of those that sleep on a word."""

    def codegen(context, builder, signature, args):
        if HAS_FUTEX:
            wake = 129  # FUTEX_WAKE within this process
            system = _external(builder, "syscall", WORD, [WORD], True)
            zero = WORD(0)
            builder.call(system, [WORD(FUTEX), args[0], WORD(wake), args[1], zero, zero, zero])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen
