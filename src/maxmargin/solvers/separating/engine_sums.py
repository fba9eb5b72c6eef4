"""Products with Z by an engine, for solvers that compute them in every step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ...arrays import Floats
from ...engines.registry import engine_for
from ...problems import SeparationProblem

Problem = TypeVar("Problem", bound=SeparationProblem)
Answer = TypeVar("Answer")
Merge = Callable[[list[Answer]], Answer]


def on_engine(problem: Problem) -> Problem:
    """Return the problem with the sums over rows of the engine for X.

    The certificate is computed from the original problem, with plain sums of its own. Of a problem
    in partitions, the engine is that of each partition: `reduced`, `stepped`.
    """
    if problem.in_partitions:
        return problem
    return problem.computed_by(engine_for(problem.Z.X).sums(problem.Z.subset))


def reduced(
    problem: SeparationProblem, work: Callable[..., Answer], merge: Merge[Answer], *vectors: Any,
    common: tuple[Any, ...] = (),
) -> Answer:  # fmt: skip
    """Return `SeparationProblem.reduce`, computed by the engine where the rows are."""
    return problem.reduce(_there(problem, work), merge, *vectors, common=common)


def stepped(
    problem: SeparationProblem, work: Callable[..., tuple[Any, Answer]], merge: Merge[Answer],
    *vectors: Any, common: tuple[Any, ...] = (),
) -> tuple[Any, Answer]:  # fmt: skip
    """Return `SeparationProblem.step`, computed by the engine where the rows are."""
    return problem.step(_there(problem, work), merge, *vectors, common=common)


def mapped(
    problem: SeparationProblem, work: Callable[..., Floats], *vectors: Any,
    common: tuple[Any, ...] = (),
) -> Any:  # fmt: skip
    """Return `SeparationProblem.map`, computed by the engine where the rows are."""
    return problem.map(_there(problem, work), *vectors, common=common)


def _there(problem: SeparationProblem, work: Callable[..., Any]) -> Callable[..., Any]:
    return partial(_by_engine, work) if problem.in_partitions else work


def _by_engine(work: Callable[..., Any], problem: SeparationProblem, *arguments: Any) -> Any:
    return work(on_engine(problem), *arguments)
