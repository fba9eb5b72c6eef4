"""2^x in loops that the compiler vectorises."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from .compilation import PART


def exp2(power: Any) -> Any:
    """Return 2^power for power ≤ 0."""
    return np.exp2(power)


@overload(exp2, jit_options=PART)
def _exp2(power):
    # 2^n 2^f with |f| ≤ ½: n goes to the exponent's bits, 2^f is a polynomial. LLVM vectorises
    # this; a call of the library's exp it would not. float32 to 2e-7, float64 to 3e-16.
    if power.bitwidth == 32:

        def single(power):
            one = np.float32(1.0)
            t = power if power > np.float32(-100.0) else np.float32(-100.0)
            n = np.floor(t + np.float32(0.5))
            f = t - n
            p = np.float32(1.5403530e-4) * f + np.float32(1.3333558e-3)
            p = p * f + np.float32(9.6181291e-3)
            p = p * f + np.float32(5.5504109e-2)
            p = p * f + np.float32(2.4022651e-1)
            p = p * f + np.float32(6.9314718e-1)
            p = p * f + one
            return p * from_bits(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))

        return single

    def double(power):
        t = power if power > -960.0 else -960.0
        n = np.floor(t + 0.5)
        x = (t - n) * 0.6931471805599453
        p = x / 6227020800.0 + 1.0 / 479001600.0
        p = p * x + 1.0 / 39916800.0
        p = p * x + 1.0 / 3628800.0
        p = p * x + 1.0 / 362880.0
        p = p * x + 1.0 / 40320.0
        p = p * x + 1.0 / 5040.0
        p = p * x + 1.0 / 720.0
        p = p * x + 1.0 / 120.0
        p = p * x + 1.0 / 24.0
        p = p * x + 1.0 / 6.0
        p = p * x + 0.5
        p = p * x + 1.0
        p = p * x + 1.0
        return p * from_bits(np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)))

    return double


@intrinsic
def from_bits(context, bits):
    """Return the floating-point number of the same bits as an integer."""
    single = bits.bitwidth == 32

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType() if single else ir.DoubleType())

    return (types.float32 if single else types.float64)(bits), codegen
