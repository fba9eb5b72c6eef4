"""Tolerances and numbers of classes for the tests of the separating algorithms."""

from __future__ import annotations

import pytest

from tests.helpers.algorithms import TOLERANCE

ROUNDING, SOLVE = TOLERANCE["rounding"], TOLERANCE["solve"]
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
