"""The numbers that the active-set method is tuned by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Tuning:
    """What the active-set method is tuned by."""

    # Variables up to which all of them are checked in every step.
    whole_up_to_variables: int = 256
    # The worst violators that join the free variables where there are more.
    violators_per_chunk: int = 256
    # Curvature along d, relative to (Σ|d_i|√H_ii)², that counts as 0: it may be rounding.
    flat_curvature: float = 32.0 * EPSILON
    # The error of y g(x) at which α is too large to go on with.
    blurred_margin: float = 1e-2
    # Steps in a row without descent after which variables are chosen by Bland's rule.
    degenerate_steps: int = 20
    # Steps in a row without descent, beyond the variables of the chunk, after which it is given up.
    hopeless_steps: int = 200
    # Chunks in a row that may fail to improve anything.
    idle_chunks: int = 5
    # Multiplications that take as long as a kernel value, and as the interpreter in a step.
    work_per_kernel_value: float = 10.0
    work_per_step: float = 2e5
