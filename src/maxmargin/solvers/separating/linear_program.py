"""The linear program that decides with a proof whether a plane separates.

    maximise t   subject to   z·a ≥ t for every row z of Z,   |w_j| ≤ 1

t > 0 gives a separating plane; at t = 0 the multipliers of the constraints are u ≥ 0 with Zᵀu = 0
(Gordan's alternative). Only rows that some plane violates are constraints, so that 100,000 rows
take a few programs of some hundred rows. Solved by SciPy's HiGHS in centred, scaled features.

Where features depend on each other up to rounding (all 0/1 columns of a category, standardised),
the tolerance of HiGHS, about 1e-9, is too coarse. If its multipliers prove nothing, the program is
solved again with such combinations of features, summed in twice the precision, as features of their
own scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.optimize import linprog, nnls

from ...arrays import Floats, Integers
from ...certificates import gordan_residual, nearest_proof
from ...certificates.separation import rounded_margins
from ...data.normalised_samples import Samples
from ...data.partitioned_samples import PartitionedSamples
from ...problems import SeparationProblem
from ...progress import Progress
from ...runtime.threads import interruptible
from ...solution import Solution, Status
from ..middle_bias import middle_bias
from .coordinates import Bounds, Coordinates, EnlargedCoordinates
from .online import snapshot


@dataclass(frozen=True)
class Tuning:
    """Sizes and tolerances of the programs."""

    # t up to which a program has found no margin (features are at most 1): HiGHS's tolerance.
    zero_margin: float = 1e-9
    feasibility_tolerance: float = 1e-10
    # Rows added per program: at least these, up to so many per column of Z, and at most so many
    # numbers in all.
    min_rows_added: int = 200
    rows_added_per_column: int = 4
    max_numbers_added: int = 1 << 23
    # Rows from which multipliers are refined, at least.
    min_refined_rows: int = 400


TUNING = Tuning()


@dataclass(frozen=True)
class LinearProgram:
    """Constraint generation over the rows of Z.

    The solution has a plane (``CONVERGED``), multipliers that refute one (``INSEPARABLE``), or
    neither (``ITERATION_LIMIT``) if the margin is too small for float64.
    """

    max_iter: int = 1000
    seed: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Write the plane found to ``a``."""
        Z = problem.Z
        rng = np.random.default_rng(self.seed)
        wanted = TUNING.rows_added_per_column * Z.shape[1]
        batch = max(TUNING.min_rows_added, min(wanted, TUNING.max_numbers_added // Z.shape[1]))
        state = _State(Coordinates.of(Z), _first_rows(Z, a, 2 * batch, rng))
        status = self._generate(Z, a, state, batch, progress)
        if status is Status.ITERATION_LIMIT and state.enlarge(Z):
            status = self._generate(Z, a, state, batch, progress)
        proof = state.multipliers if status is Status.INSEPARABLE else None
        return snapshot(Z, a, status, progress, multipliers=proof)

    def _generate(
        self, Z: Samples, a: Floats, state: _State, batch: int, progress: Progress
    ) -> Status:
        """Add rows that planes violate until a plane or a proof is found, or neither can be."""
        coordinates = state.coordinates
        for _ in range(self.max_iter):
            z, sizes = coordinates.rows(Z, state.rows)
            t, scaled, shares = _solve(z, coordinates.bounds(Z))
            state.multipliers = _spread(Z, state.rows, shares / sizes)
            if t <= TUNING.zero_margin:
                proof = nearest_proof(Z, refine_multipliers(Z, state.multipliers, coordinates))
                if proof is None:
                    return Status.ITERATION_LIMIT
                state.multipliers = proof
                return Status.INSEPARABLE
            found = coordinates.weights(scaled, Z)
            margins, level = coordinates.margins(Z, scaled), 0.5 * t
            wrong = int((margins <= 0).sum())
            if wrong == 0 or isinstance(coordinates, EnlargedCoordinates):
                found, margins, wrong = _exactly(Z, found)
                level = 0.0
            a[:] = found
            progress.iteration(t, wrong, float(max(0.0, -margins.min())), lambda: snapshot(Z, a))
            short = np.setdiff1d(np.flatnonzero(margins <= level), state.rows)
            if wrong == 0 or not short.size:
                return Status.CONVERGED if wrong == 0 else Status.ITERATION_LIMIT
            worst = short[np.argsort(margins[short], kind="stable")[:batch]]
            state.rows = np.union1d(state.rows, worst)
        return Status.ITERATION_LIMIT


@dataclass
class _State:
    """The coordinates and rows of the programs, and the multipliers of the last one."""

    coordinates: Coordinates
    rows: Integers
    multipliers: Floats = field(default_factory=lambda: np.zeros(0))

    def enlarge(self, Z: Samples) -> bool:
        """Enlarge the directions in which the rows are flat; return whether there are any."""
        enlarged = self.coordinates.enlarged(Z, self.rows)
        self.coordinates = enlarged or self.coordinates
        return enlarged is not None


def _exactly(Z: Samples, a: Floats) -> tuple[Floats, Floats, int]:
    """Return a, with the best bias if that increases the least margin, Za, and the violations."""
    margins, errors = rounded_margins(Z, a)
    if (margins <= errors).any() and Z.bias_step and Z.n_vectors == 1:
        moved = middle_bias(Z, a)
        better = rounded_margins(Z, moved)
        if (better[0] - better[1]).min() > (margins - errors).min():
            a, (margins, errors) = moved, better
    return a, margins, int((margins <= errors).sum())


def proof_near(Z: Samples, u: Floats) -> Floats | None:
    """Return multipliers near u that prove that no plane separates, from its largest entries.

    Of samples in partitions those rows come to this process: a proof for them is one for all.
    """
    if not isinstance(Z, PartitionedSamples):
        return nearest_proof(Z, refine_multipliers(Z, u))
    places, values = Z.reduce(_largest, partial(_merged_largest, _most_refined(Z)), u)
    order = np.argsort(places)
    places, values = places[order], values[order]
    held = Z.held(Z.some_rows(places))
    found = nearest_proof(held, refine_multipliers(held, values / values.sum()))
    return None if found is None else Z.spread(places, found)


def _most_refined(Z: Samples) -> int:
    """Return the number of rows from which multipliers are refined."""
    return max(TUNING.min_refined_rows, 2 * Z.shape[1] + 2)


def _largest(Z: Samples, u: Floats) -> tuple[Integers, Floats]:
    """Return the rows of the largest multipliers of a partition, and those."""
    some = np.argsort(-u, kind="stable")[: min(_most_refined(Z), np.count_nonzero(u))]
    return Z.places(some), u[some]


def _merged_largest(count: int, found: list[tuple[Integers, Floats]]) -> tuple[Integers, Floats]:
    places, values = (np.concatenate(each) for each in zip(*found, strict=True))
    some = np.argsort(-values, kind="stable")[:count]
    return places[some], values[some]


def refine_multipliers(Z: Samples, u: Floats, coordinates: Coordinates | None = None) -> Floats:
    """Solve Zᵀu = 0, Σu = 1, u ≥ 0 to rounding on the largest entries of an approximate u.

    Non-negative least squares (Lawson, Hanson, 1974, chapter 23) ends with few positive entries,
    which solve a small linear system. Returns u itself if its residual is smaller.
    """
    at_most = min(_most_refined(Z), np.count_nonzero(u))
    candidates = np.sort(np.argsort(-u, kind="stable")[:at_most])
    columns, sizes = (coordinates or Coordinates.of(Z)).rows(Z, candidates)
    system = np.vstack([columns.reshape(candidates.size, -1).T, np.ones(candidates.size)])
    target = np.zeros(system.shape[0])
    target[-1] = 1.0
    try:
        shares, _ = interruptible(partial(nnls, system, target))
    except RuntimeError:  # it did not converge: no refinement
        return u
    if not shares.any():
        return u
    refined = np.zeros_like(u)
    refined[candidates] = shares / sizes
    refined /= refined.sum()
    if isinstance(coordinates, EnlargedCoordinates):
        return refined  # in the features of Z the residuals are equal to rounding
    return min(u, refined, key=lambda multipliers: gordan_residual(Z, multipliers))


def _first_rows(Z: Samples, a: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Return the rows of the first program: those of the least margins, and random ones."""
    n_rows = Z.shape[0]
    if n_rows <= count:
        return np.arange(n_rows)
    chosen = rng.choice(n_rows, size=count // 2, replace=False)
    if a.any():
        hardest = np.argsort(Z.dot(a), kind="stable")[: count // 2]
        chosen = np.concatenate([chosen, hardest])
    # Without a row of each class the program is unbounded.
    first_of_each = np.unique(Z.to_rows(Z.labels.astype(float)), return_index=True)[1]
    return np.unique(np.concatenate([chosen, first_of_each]))


def _solve(z: Floats, bounds: Bounds) -> tuple[float, Floats, Floats]:
    """Return t, the weights of all columns and the multipliers of the program on these rows."""
    n = z.shape[0]
    constraints = np.column_stack([-z.reshape(n, -1), np.ones(n)])
    cost = np.zeros(constraints.shape[1])
    cost[-1] = -1.0
    bounds = [*bounds, (0.0, 2.0 * len(bounds))]
    tolerance = TUNING.feasibility_tolerance
    options = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }
    program = partial(linprog, cost, A_ub=constraints, b_ub=np.zeros(n), bounds=bounds)
    answer = interruptible(partial(program, method="highs-ds", options=options))
    if answer.x is None:
        return 0.0, np.zeros(len(bounds) - 1), np.zeros(n)
    return float(answer.x[-1]), answer.x[:-1], np.maximum(-answer.ineqlin.marginals, 0.0)


def _spread(Z: Samples, rows: Integers, shares: Floats) -> Floats:
    total = shares.sum()
    u = np.zeros(Z.shape[0])
    u[rows] = shares / total if total > 0 else 1.0 / rows.size
    return u
