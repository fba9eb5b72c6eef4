"""Compiled functions where nothing can be cached, and those of other programs."""

from __future__ import annotations

import ast
import ctypes
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.runtime import compilation
from maxmargin.runtime.row_access import rows_of
from tests.helpers.bad_input import X, Y


def test_no_place_for_the_cache(monkeypatch):
    def refuse(function):
        raise RuntimeError("cannot cache function 'f': no locator available")

    monkeypatch.setattr(compilation, "CodeCache", refuse)
    double = compilation.compiled(lambda x: 2.0 * x)
    assert double(1.5) == 3.0


def test_code_is_read_without_the_tables_of_the_compiler():
    fit = "maxmargin as mm; mm.SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])"
    compile_ = "numba; numba.njit(lambda x: x + 1)(1)"
    # The first fit compiles, unless it was done before.
    loaded = [
        subprocess.run(
            [sys.executable, "-c", f"import sys, {work}; print('numba.np.linalg' in sys.modules)"],
            text=True, capture_output=True, timeout=600, check=True,
        ).stdout.strip()
        for work in (fit, fit, compile_)
    ]  # fmt: skip
    assert loaded[1:] == ["False", "True"]


def test_compiled_functions_of_other_programs_still_work():

    mm.Perceptron().fit(X, Y)
    names = {}
    exec("def f(x): return x + 1", names)
    assert numba.njit(names["f"])(3) == 4


def returned_classes(path):
    """Yield the compiled functions of a module that return an instance of a class."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef):
            continue
        if not any("compiled" in ast.unparse(decorator) for decorator in node.decorator_list):
            continue
        for part in ast.walk(node):
            value = part.value if isinstance(part, ast.Return) else None
            if isinstance(value, ast.Call) and ast.unparse(value.func)[0].isupper():
                yield node.name


def test_compiled_functions_return_plain_tuples():
    # A NamedTuple is made by a call of its class: an interruption pending at that moment makes the
    # call fail, which compiled code does not expect.
    package = Path(mm.__file__).parent
    found = {path.name: list(returned_classes(path)) for path in package.rglob("*.py")}
    assert not {name: functions for name, functions in found.items() if functions}


def test_rows_of_any_layout_are_of_one_type():
    X = np.arange(12.0).reshape(4, 3)
    locked, csr = X.copy(), sparse.csr_matrix(X)
    locked.setflags(write=False)
    wide = csr.copy()
    wide.indices, wide.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    for given, expected in [
        (np.asfortranarray(X), X), (np.repeat(X, 2, axis=1)[:, ::2], X), (locked, X), (wide, csr)
    ]:  # fmt: skip
        found, plain = rows_of(given), rows_of(expected)
        assert [numba.typeof(each) for each in found] == [numba.typeof(each) for each in plain]
        for here, there in zip(found, plain, strict=True):
            np.testing.assert_array_equal(here, there)
    assert rows_of(X)[0] is X
    assert not locked.flags.writeable
    assert wide.indices.dtype == np.int64


def test_an_interruption_that_a_callback_swallows_is_raised(monkeypatch):
    @ctypes.CFUNCTYPE(None)
    def called_by_c():
        signal.raise_signal(signal.SIGINT)
        for _ in range(1000):  # Python looks for signals now and then
            pass

    printed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), compilation.interruptions_kept():
            called_by_c()
        assert not printed
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)


def test_a_handler_that_does_not_raise_stops_nothing():
    calls = []
    handler = signal.signal(signal.SIGINT, lambda *_: calls.append(1))
    try:
        with compilation.interruptions_kept():
            signal.raise_signal(signal.SIGINT)
        assert calls == [1]
    finally:
        signal.signal(signal.SIGINT, handler)


def test_compiling_keeps_interruptions(monkeypatch):
    entered = []

    @contextmanager
    def watched():
        entered.append(1)
        yield

    monkeypatch.setattr(compilation, "interruptions_kept", watched)
    assert compilation.compiled(lambda x: 2.0 * x)(1.5) == 3.0
    assert entered
