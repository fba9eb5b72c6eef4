"""exp(−γ‖x − z‖²) from inner products, in one pass over a tile."""

from __future__ import annotations

from ...runtime.compilation import compiled
from ...runtime.exponential import exp2


@compiled
def gaussian(dot, x_sq, z_sq, gamma):
    """Do dot ← exp(−γ‖x − z‖²) from inner products: `RBF.from_products` in one pass."""
    scale = dot.dtype.type(gamma * 1.4426950408889634)
    zero = dot.dtype.type(0.0)
    for r in range(dot.shape[0]):
        values, own = dot[r], scale * x_sq[r]
        for s in range(values.size):
            power = scale * (values[s] + values[s]) - scale * z_sq[s] - own
            values[s] = exp2(power if power < zero else zero)
