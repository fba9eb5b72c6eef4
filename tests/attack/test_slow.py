"""The larger run, on demand: ``pytest -m slow tests/attack``, about ten minutes.

``MAXMARGIN_ATTACK_SEED`` begins elsewhere, ``MAXMARGIN_ATTACK_MINUTES`` changes the time.
"""

from __future__ import annotations

import os
import time

import pytest

from . import checks
from .generators import SHAPES, large_case, medium_case, small_case

SEED = int(os.environ.get("MAXMARGIN_ATTACK_SEED", "1000"))
MINUTES = float(os.environ.get("MAXMARGIN_ATTACK_MINUTES", "10"))
# Shares of the time.
SMALL, MEDIUM, LARGE = 0.2, 0.2, 0.2


def survey(share, cases, check):
    """Check cases until the time is over, and list everything found."""
    until, found, n = time.monotonic() + 60.0 * share * MINUTES, [], 0
    for case in cases:
        n += 1
        findings = check(case)
        if findings:
            found.append("\n".join([str(case), *findings]))
        if time.monotonic() > until or len(found) >= 40:
            break
    assert not found, f"{len(found)} of {n} fits:\n" + "\n".join(found)


def endless(make, *arguments):
    seed = SEED
    while True:
        for shape in sorted(SHAPES):
            yield make(shape, *arguments, seed)
        seed += 1


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["SVC", "LinearSVC", "NuSVC"])
def test_many_small_fits(estimator):
    survey(SMALL, endless(small_case, estimator), checks.small)


@pytest.mark.slow
def test_many_medium_fits():
    survey(MEDIUM, endless(medium_case), checks.large)


@pytest.mark.slow
def test_many_large_fits():
    survey(LARGE, endless(large_case), lambda case: checks.large(case, 120.0))
