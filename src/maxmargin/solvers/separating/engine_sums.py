"""Products with Z by an engine, for solvers that compute them in every step."""

from __future__ import annotations

from typing import TypeVar

from ...engines.registry import engine_for
from ...problems import SeparationProblem

Problem = TypeVar("Problem", bound=SeparationProblem)


def on_engine(problem: Problem) -> Problem:
    """Return the problem with the sums over rows of the engine for X.

    The certificate is computed from the original problem, with plain sums of its own.
    """
    return problem.computed_by(engine_for(problem.Z.X).sums(problem.Z.subset))
