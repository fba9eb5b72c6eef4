"""The bias of largest margin for a given w, as exactly as float64 has it."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats, blocks_of
from ..certificates.compensated import EPSILON, compensated_dot, exact_dot
from ..data.normalised_samples import Samples


def middle_bias(Z: Samples, a: Floats) -> Floats:
    """Return the plane with its bias in the middle between the classes, rounded to float64.

    The sample of each class nearest to the plane is found in twice the precision; its score is
    computed exactly.
    """
    a = a.copy()
    a[-1] = 0.0
    margins, errors = Z.dot(a), (a.size + 2) * EPSILON * Z.magnitude(a)
    ends = []
    for sign in (1.0, -1.0):
        side = np.flatnonzero(Z.labels == sign)
        lowest = margins[side] + errors[side]
        near = side[margins[side] - errors[side] <= lowest.min()]
        values = [compensated_dot(Z.take(near[k]), a)[0] for k in blocks_of(near.size, a.size)]
        end = near[[np.concatenate(values).argmin()]]
        ends.append(exact_dot(Z.take(end)[0], a))
    a[-1] = float((ends[1] - ends[0]) / 2)
    return a
