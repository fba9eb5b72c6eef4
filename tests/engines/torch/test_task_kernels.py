"""The Triton kernels of kernel machines: run by Triton's interpreter, and compiled for a card."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")


def test_kernels_do_what_their_twins_do():
    """In a process of its own: Triton reads the variable when it is imported."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.torch.interpreted_tasks"],
        env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


KERNELS = [
    "_gaussian", "_pair_steps", "_gather", "_subtract", "_survey", "_count",
    "_share", "_pick", "_note_missing",
]  # fmt: skip
# The types of arguments that are not float64 vectors or constants.
TYPES = {
    **dict.fromkeys(["SET", "NEW_SET", "INDEX", "MISSING", "ROWS", "SLOTS"], "*i64"),
    **dict.fromkeys(["SLOT", "FROM", "COUNT", "STEPS", "SINCE", "NEW_SINCE", "KEPT"], "*i32"),
    **dict.fromkeys(["COUNTS", "LIMITS", "PLACES"], "*i32"),
    **dict.fromkeys(["gamma", "rest"], "fp32"),
    "TAKEN": "*i8",
}
OF_KERNEL = {
    "_pair_steps": {"K": "*fp32"},
    "_gather": {"OUT": "*fp32"},
    "_note_missing": {"COUNT": "*fp64"},
}
CONSTANTS = {
    "Q": 2048, "MOST": 1024, "BLOCK": 1024, "BINS": 512, "P": 64, "SOME": 16, "ROWS": 16,
    "COLUMNS": 128,
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile_for_a_card(name):
    """It takes no card: types and shapes that do not match show here."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from maxmargin.engines.torch import selection_kernels, triton_kernels

    kernel = getattr(triton_kernels, name, None) or getattr(selection_kernels, name)
    signature, constants = {}, {}
    for parameter in kernel.params:
        key = parameter.name
        if parameter.is_constexpr:
            signature[key], constants[key] = "constexpr", CONSTANTS.get(key, True)
        else:
            types = {**TYPES, **OF_KERNEL.get(name, {})}
            signature[key] = types.get(key, "*fp64" if key.isupper() else "i32")
    compiled = triton.compile(
        ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32)
    )
    assert compiled.asm["ptx"]
