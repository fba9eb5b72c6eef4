"""Systems with positive definite matrices, as solvers of second order have them."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..arrays import Floats
from ..runtime.threads import interruptible

# Curvature that is added to every unknown's own, relative to it: rounding, divided by less, would
# make steps without a limit.
LIFT = float(np.finfo(float).eps)
# Unknowns of a system that takes a tenth of a second.
LARGE = 1500


class Factored:
    """A matrix H that is positive definite up to rounding, scaled to a diagonal of 1, factored."""

    def __init__(self, H: Floats, lift: float = 0.0) -> None:
        self.scale = 1.0 / np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
        scaled = H * self.scale[:, np.newaxis] * self.scale
        diagonal = np.diag_indices(self.scale.size)
        while lift <= 1.0:
            scaled[diagonal] = 1.0 + lift
            try:
                # A large one takes seconds, for which Ctrl-C need not wait.
                factorise = partial(cho_factor, scaled, lower=True, check_finite=False)
                self.factor = interruptible(factorise) if H.shape[0] > LARGE else factorise()
                return
            except LinAlgError:
                lift = max(10.0 * lift, 1e-14)
        # Not a number of it can be relied on: the diagonal, then, and short steps.
        self.factor = np.eye(self.scale.size), True

    def solve(self, right: Floats) -> Floats:
        """Return H⁻¹r."""
        return self.scale * cho_solve(self.factor, self.scale * right, check_finite=False)
