"""The tasks of some folds, posed once for all kernels and costs of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Integers
from ..certificates.cost_grid import CertifiedTasks
from ..kernels import Kernel
from ..multiclass import Task
from ..problems import DualProblem
from ..problems.held_out_rows import HeldOutRows
from ..problems.shared_rows import SharedRows
from ..solvers.dual.cost_grid import GridTasks
from .folds import Fold


@dataclass(frozen=True)
class Posed:
    """The tasks of some folds at C = 1, and what all kernels have of them in common.

    Parameters
    ----------
    folds : sequence of Fold
    tasks : list of (Fold, Task)
    problems : list of DualProblem
        With the kernel that came first.
    """

    folds: Sequence[Fold]
    tasks: list[tuple[Fold, Task]]
    problems: list[DualProblem]

    @classmethod
    def of(cls, pose: Callable[..., DualProblem], kernel: Kernel, folds: Sequence[Fold]) -> Posed:
        """Pose the tasks of folds."""
        tasks = [(fold, task) for fold in folds for task in fold.tasks]
        return cls(folds, tasks, [pose(kernel, fold.training, task) for fold, task in tasks])

    def with_kernel(self, kernel: Kernel) -> list[DualProblem]:
        """Return the problems of a kernel."""
        if self.problems[0].kernel == kernel:
            return self.problems
        return [replace(problem, kernel=kernel) for problem in self.problems]

    @cached_property
    def starts(self) -> Integers:
        """The first variable of every task, and the end."""
        return np.cumsum([0, *(problem.n_variables for problem in self.problems)])

    @cached_property
    def ends(self) -> Integers:
        """The first task of every fold, and the end."""
        return np.cumsum([0, *(len(fold.tasks) for fold in self.folds)])

    @cached_property
    def shared(self) -> SharedRows:
        """Rows that tasks of one name have in common."""
        return SharedRows.of(self.problems, [task.name for _, task in self.tasks])

    @cached_property
    def to_solve(self) -> GridTasks:
        """The tasks as their solver takes them."""
        tests, sizes = [fold.test for fold in self.folds], np.diff(self.ends).tolist()
        return GridTasks.of(self.problems, self.shared, HeldOutRows.of(self.problems, tests, sizes))

    @cached_property
    def to_certify(self) -> CertifiedTasks:
        """The tasks as their certificates take them."""
        return CertifiedTasks.of(self.problems, self.shared)
