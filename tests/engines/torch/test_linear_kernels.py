"""The Triton kernels of linear machines: run by Triton's interpreter, and compiled for a card."""

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
        [sys.executable, "-m", "tests.engines.torch.interpreted_linear"],
        env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


PASSES = ["_project", "_slopes", "_advance", "_loss", "_sign_totals", "_balance", "_hold"]
PRODUCTS = ["_scores", "_column_sums", "_gather"]
# The types of arguments that are not float64 vectors or constants.
TYPES = {"X": "*fp32", "KINK": "*i1", "NEAR": "*i1", "PARABOLAS": "*i1", "chosen": "*i64"}
NUMBERS = {"n": "i32", "d": "i32", "step": "i32"}
CONSTANTS = {"BLOCK": 512, "ROWS": 64, "COLUMNS": 32}
FLAGS = {"OF_U": 0, "OF_R": 0, "OF_B": 1, "OF_W": 0}


@pytest.mark.parametrize("name", PASSES + PRODUCTS)
@pytest.mark.parametrize("flag", [0, 1])
def test_kernels_compile_for_a_card(name, flag):
    """It takes no card: types and shapes that do not match show here."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from maxmargin.engines.torch import primal_kernels, row_kernels

    kernel = getattr(primal_kernels, name, None) or getattr(row_kernels, name)
    signature, constants = {}, {}
    for parameter in kernel.params:
        key = parameter.name
        if parameter.is_constexpr:
            signature[key], constants[key] = "constexpr", {**CONSTANTS, **FLAGS}.get(key, flag)
        else:
            types = {**TYPES, **NUMBERS}
            signature[key] = parameter.annotation_type or types.get(key, "*fp64")
    compiled = triton.compile(
        ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32)
    )
    assert compiled.asm["ptx"]
