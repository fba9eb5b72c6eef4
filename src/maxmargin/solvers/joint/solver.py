"""The solver: ever larger samples of the rows, then all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ...arrays import Floats
from ...engines.linear import AscentFeatures, Features, JointState
from ...problems import JointProblem
from ...progress import Limits, Progress
from ...runtime.threads import single_threaded_blas
from ...solution import Solution, Status
from . import ascent, newton
from .ascent import SequentialAscent
from .candidate import Candidate, Run
from .newton import Newton


@dataclass(frozen=True)
class Tuning:
    """How samples of the rows are used, and the methods."""

    sample_factor: int = 16  # a sample has so many times fewer rows
    fewest_rows: int = 5000  # of a sample
    fewest_of_class: int = 20
    sample_gap: float = 1e-2  # the relative gap that is enough for a sample
    nearby_delta: float = 0.2  # δ of a start from the answer of a sample
    shortest: float = 1e-6  # the least multiple of an unfinished w that is tried
    ascent: ascent.Tuning = field(default_factory=ascent.Tuning)
    newton: newton.Tuning = field(default_factory=newton.Tuning)


@dataclass(frozen=True)
class CrammerSinger:
    """Sequential dual ascent, then semismooth Newton steps, to a relative duality gap of ``tol``.

    Where rows cannot be visited in any order, Newton steps are all.

    Parameters
    ----------
    features : Features
        X, as an engine holds it.
    tol : float, default=1e-4
        The relative duality gap to end at.
    limits : Limits, optional
        Iterations are rounds of passes over the samples not left out, and Newton steps.
    seed : int, default=0
        Of the order in which samples are visited.
    tuning : Tuning

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.engines.registry import engine_for
    >>> X, labels = np.array([[0.0], [2.0], [4.0]]), np.array([0, 1, 2])
    >>> problem = JointProblem(X, labels, 3, np.full(3, 10.0))
    >>> solver = CrammerSinger(engine_for(X).features(), tol=1e-9)
    >>> solution = solver.solve(problem, None, Progress())
    >>> print((X @ solution.w.T + solution.b).argmax(axis=1), solution.w.ravel().round(4) + 0.0)
    [0 1 2] [-1. 0. 1.]
    """

    features: Features
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    tuning: Tuning = field(default_factory=Tuning)

    def solve(self, problem: JointProblem, start: Floats | None, progress: Progress) -> Solution:
        """Return w, b and α, starting from α of shape (n, c) or from nothing."""
        run = Run(self.tol, self.limits, progress)
        rng = np.random.RandomState(self.seed)
        # Numbers may overflow at huge costs; the proof shows it.
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            state = self.features.joint_state(problem)
            size = self.features.n_columns + (problem.bias != "none")
            candidate = Candidate(problem.bias, state, np.zeros((problem.n_classes, size)))
            nearby = None
            if start is None:
                nearby = self._from_samples(candidate, run, rng)
            else:
                candidate.start(start)
            self._fit(candidate, self.features, nearby, run, rng)
            if run.status is not Status.CONVERGED:
                cost = float(problem.cost.sum())
                candidate.shorten(self.tuning.shortest, cost)
                candidate.replace_if_useless(cost)
        return candidate.solution(run.status or Status.PATIENCE, progress)

    def _fit(
        self,
        candidate: Candidate,
        features: Features,
        nearby: Floats | None,
        run: Run,
        rng: np.random.RandomState,
    ) -> None:
        """Bring the gap below the run's tol, from w and b nearby or from the candidate's α."""
        delta = None
        if nearby is not None:
            candidate.a, delta = nearby, self.tuning.nearby_delta
            if run.status is None:
                candidate.state.place(nearby)
                candidate.state.decide()
        elif features.random_access:
            visited = cast(AscentFeatures, features)
            SequentialAscent(candidate, visited, rng, self.tuning.ascent).run(run)
        if run.status is None:
            Newton(candidate, delta, self.tuning.newton).run(run)

    def _from_samples(
        self, whole: Candidate, run: Run, rng: np.random.RandomState
    ) -> Floats | None:
        """Return a = (w, b) near the answer, from ever larger samples; None for few rows."""
        tuning, a = self.tuning, whole.a
        n_rows, sizes = whole.state.features.n_rows, []
        n, least = n_rows, max(tuning.fewest_rows, 4 * len(a) * (self.features.n_columns + 1))
        while (n := n // tuning.sample_factor) >= least:
            sizes.append(n)
        nearby = None
        rough = Run(max(run.tol, tuning.sample_gap), run.limits, run.progress)
        for size in reversed(sizes):
            state: JointState = whole.state.sample(size / n_rows, tuning.fewest_of_class, rng)
            candidate = Candidate(whole.bias, state, np.zeros_like(a), is_sample=True)
            self._fit(candidate, state.features, nearby, rough, rng)
            nearby = candidate.a
            if rough.status in (Status.STOPPED, Status.TIME_LIMIT, Status.ITERATION_LIMIT):
                run.status = rough.status
                break
            rough.status = None
        return nearby
