"""The machines of a task without one of its samples.

Of a machine with given costs a sample with α = 0 changes nothing. In a ν-machine the sums that α
must have, and the bounds of a ν-classifier, are those of the samples there are: all of them change
with every sample that is left out. But samples of the same weight (and class) leave the same
bounds and sums behind. The machine of all samples with these is solved once for them; it is the
one without a sample that has α = 0 there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import Floats, Integers
from ..certificates import MarginCertificate
from ..certificates.dual import certify_tasks
from ..engines.base import HostGram
from ..estimators.one_class import OneClassSVM, border_rounding
from ..estimators.svc import SVC, NuSVC, with_unit_margin
from ..estimators.svr import SVR, NuSVR, centre_of
from ..estimators.training import Training
from ..kernels import Kernel, Precomputed
from ..multiclass import Task
from ..problems import DualProblem
from ..progress import Limits
from ..solution import Solution, Status
from ..solvers.dual.choice import Dual
from ..solvers.dual.feasibility import Constraints
from ..solvers.dual.optimality import kkt_interval

Machine = SVC | NuSVC | SVR | NuSVR | OneClassSVM


@dataclass(frozen=True, eq=False)
class Solved:
    """A problem with its solution, about the origin of the engine."""

    problem: DualProblem
    solution: Solution

    @property
    def alpha(self) -> Floats:
        """The dual variables."""
        assert self.solution.alpha is not None
        return self.solution.alpha

    @property
    def is_known(self) -> bool:
        """Whether the solver came to its end."""
        return self.solution.status is not Status.TIME_LIMIT


@dataclass(frozen=True, eq=False)
class Refit:
    """A sample to be left out, and the machine whose α a solver begins with.

    Parameters
    ----------
    row : int
        The number of the sample in its task.
    problem : DualProblem
        What the sample leaves behind, with the variables of all samples.
    start : ndarray of shape (n_variables,)
    """

    row: int
    problem: DualProblem
    start: Floats


@dataclass(eq=False)
class LeftOutTask:
    """The machine of one task, and those without one of its samples.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
    kernel : Kernel
    training : Training
    task : Task
    dual : Dual
        How problems are solved, on kernel values that all machines share.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        Of every sample by the machine without it, without what targets were reduced by; NaN where
        it is not known.
    certificates : list of MarginCertificate
        Of the machines that scores come from, but that of all samples.
    """

    model: Machine
    kernel: Kernel
    training: Training
    task: Task
    dual: Dual
    scores: Floats = field(init=False)
    certificates: list[MarginCertificate] = field(default_factory=list)
    n_refits: int = 0

    def __post_init__(self) -> None:
        self.problem = self.model._pose(self.kernel, self.training, self.task)
        self.scores = np.full(self.n_rows, np.nan)
        self.gram: HostGram = self.dual.engine.gram(self.kernel, self.problem.index)

    @property
    def n_rows(self) -> int:
        """Samples of the task."""
        return self.task.rows.size

    def solve_whole(self, limits: Limits) -> Solved:
        """Return the machine of all samples."""
        if self.gram.fits:
            self.gram.whole()
        return self._solve(self.problem, None, limits)

    def begin(self, whole: Solved, limits: Limits) -> list[Refit]:
        """Find the scores that take no refit of their own; return the refits that others take."""
        refits: list[Refit] = []
        shared: list[Solved] = []
        for rows, problem in self._behind():
            if problem is self.problem:
                machine = whole
            elif rows.size == 1:  # no other sample leaves the same behind
                refits.append(Refit(int(rows[0]), problem, _rescaled(whole, problem)))
                continue
            else:
                machine = self._solve(problem, _rescaled(whole, problem), limits)
                self.n_refits += 1
                if not machine.is_known:
                    break
                shared.append(machine)
            refits += self._share(machine, rows)
        self.certify(shared)
        for row, score in self._constants():
            self.scores[row] = score
        return [each for each in refits if np.isnan(self.scores[each.row])]

    def refit(self, refit: Refit, limits: Limits) -> Solved:
        """Return the machine without a sample: its α cannot be other than 0."""
        upper, start = refit.problem.upper.copy(), refit.start.copy()
        for each in (upper, start):
            each[self._variables(refit.row)] = 0.0
        return self._solve(replace(refit.problem, upper=upper), start, limits)

    def take(self, refits: Sequence[Refit], machines: Sequence[Solved]) -> None:
        """Certify the machines without a sample, and keep what they say about it."""
        known = [k for k, machine in enumerate(machines) if machine.is_known]
        for k in known:
            row = np.array([refits[k].row])
            self.scores[row] = self._scores(machines[k], row)
        self.n_refits += len(known)
        self.certify([machines[k] for k in known])

    def certify(self, machines: Sequence[Solved]) -> None:
        """Certify machines on the rows where they are."""
        if machines:
            problems = [each.problem for each in machines]
            back = [self.dual.moved_back(each.problem, each.solution) for each in machines]
            self.certificates += certify_tasks(problems, back)

    # What samples leave behind ------------------------------------------------------------------

    def _behind(self) -> Iterator[tuple[Integers, DualProblem]]:
        """Yield samples that leave the same bounds and sums behind, and the problem with those."""
        every = np.arange(self.n_rows)
        if isinstance(self.model, SVC | SVR):
            yield every, self.problem
            return
        keys = self.training.weights[self.task.rows][:, np.newaxis]
        if isinstance(self.model, NuSVC):
            keys = np.column_stack([keys, self.task.labels])
        _, key = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(key.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(key.ravel()))[:-1]
        for rows in np.split(order, ends):
            yield rows, self._without_cost(rows)

    def _without_cost(self, rows: Integers) -> DualProblem:
        """Return the problem that one of some samples, which are alike, leaves behind.

        Its variables are those of all samples. The bounds of the one that is left out are those of
        another one that is alike, and 0 where there is none.
        """
        others = np.delete(np.arange(self.n_rows), rows[0])
        task = replace(self.task, rows=self.task.rows[others], labels=self.task.labels[others])
        try:
            left = self.model._pose(self.kernel, self.training, task)
        except ValueError as error:
            row = int(self.task.rows[rows[0]])
            raise ValueError(f"without row {row} of X, {error}") from None
        upper = np.zeros(self.problem.n_variables)
        for place, side in enumerate(np.split(left.upper, upper.size // self.n_rows)):
            first = place * self.n_rows
            upper[first + others] = side
            if rows.size > 1:
                upper[first + rows[0]] = upper[first + rows[1]]
        return replace(self.problem, upper=upper, sums=left.sums)

    def _constants(self) -> Iterator[tuple[int, float]]:
        """Yield samples whose absence leaves equal targets, with those: the function is constant.

        Its P is 0, of which rounding would leave no certificate.
        """
        if not isinstance(self.model, SVR | NuSVR) or not self.problem.groups:
            return
        targets, places, counts = np.unique(
            self.task.labels, return_inverse=True, return_counts=True
        )
        centre = centre_of(self.task.labels)
        if targets.size > 2:
            return
        for row, place in enumerate(places.tolist()):
            if targets.size == 1:
                yield row, 0.0
            elif counts[place] == 1:
                yield row, float(targets[1 - place]) - centre

    # One machine --------------------------------------------------------------------------------

    def _solve(self, problem: DualProblem, start: Floats | None, limits: Limits) -> Solved:
        solution = self.dual.solve_exactly(problem, start, limits, gram=self.gram)
        return Solved(problem, solution)

    def _share(self, machine: Solved, rows: Integers) -> list[Refit]:
        """Take the scores of the samples that have α = 0 in a machine; return the other ones."""
        supports = np.flatnonzero(machine.alpha) % self.n_rows
        needed = np.union1d(supports, np.fromiter(self._ends(machine), dtype=np.intp))
        spared = np.setdiff1d(rows, needed)
        self.scores[spared] = self._scores(machine, spared)
        taken = np.intersect1d(rows, needed).tolist()
        return [Refit(row, machine.problem, machine.alpha) for row in taken]

    def _ends(self, machine: Solved) -> Iterator[int]:
        """Yield samples without which b is another one, though they may have α = 0.

        Where no α is free, b is the middle of an interval, whose ends are due to two samples.
        """
        problem, alpha = machine.problem, machine.alpha
        constraints = Constraints.of(problem)
        inside = constraints.inside(alpha)
        gradient: Floats | None = None
        for row in constraints.A:
            if inside[row != 0].any():
                continue
            if gradient is None:
                support, rows = np.flatnonzero(alpha), np.arange(self.n_rows)
                plain = self.gram.product(rows, support, (alpha * problem.signs)[support])
                plain = np.resize(plain, alpha.size)
                gradient = problem.signs * plain + problem.ridge * alpha + problem.p
            for end in kkt_interval(constraints, row, alpha, gradient)[:2]:
                yield end % self.n_rows

    def _scores(self, machine: Solved, rows: Integers) -> Floats:
        """Return what a machine says about some samples of the task."""
        if not rows.size:
            return np.empty(0)
        problem, b = machine.problem, float(machine.solution.b[0])
        coefficients: Floats = machine.alpha * problem.signs
        if isinstance(self.model, NuSVC):
            coefficients, b = with_unit_margin(self.dual.moved(problem), machine.solution)
        support = np.flatnonzero(coefficients)
        found: Floats = np.zeros(rows.size)
        if support.size:
            found = self.gram.product(rows, support, coefficients[support])
        scores: Floats = found + b
        if isinstance(self.model, OneClassSVM):
            scores[np.abs(scores) <= self._border(coefficients, support, b)] = 0.0
        return scores

    def _border(self, coefficients: Floats, support: Integers, b: float) -> float:
        """Return what rounding may make of the score of a sample on the border of a region."""
        largest = 0.0
        if support.size and not isinstance(self.kernel, Precomputed):
            largest = float(np.abs(self.gram.diagonal()[support]).max())
        n_terms = self.training.X.shape[1] + support.size
        return border_rounding(b, n_terms, float(np.abs(coefficients).sum()), largest)

    def _variables(self, row: int) -> Integers:
        """Return the variables of a sample."""
        return np.arange(row, self.problem.n_variables, self.n_rows)


def _rescaled(whole: Solved, problem: DualProblem) -> Floats:
    """Return α of all samples within the bounds of a problem, those at a bound again at one."""
    before = whole.problem.upper
    share = np.divide(whole.alpha, before, out=np.zeros(before.size), where=before > 0.0)
    return share * problem.upper
