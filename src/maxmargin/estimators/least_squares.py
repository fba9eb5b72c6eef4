"""Planes of least squares: Pseudoinverse and Ho–Kashyap."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .. import validation
from ..arrays import Floats
from ..multiclass import Task
from ..problems import LeastSquaresProblem
from ..progress import Callback, Progress
from ..solution import Solution, Status
from .base import UNFINISHED, Training
from .linear import LinearClassifier


class Pseudoinverse(LinearClassifier):
    """The least-squares plane a = Z⁺m, of least norm where there are several.

    Minimises Σ v_i (z_i·a − m_i)² + ε‖a‖² by a stable factorisation in blocks of rows; ZᵀZ is not
    formed. Where even the compressed problem is too large (many sparse features), LSMR iterates.

    Parameters
    ----------
    ridge : float, default=0.0
        ε ≥ 0.
    margins : None, "fisher" or array-like of shape (n_samples,), default=None
        m: all 1, n/n_class of each sample's class (which gives Fisher's direction), or any
        positive numbers.
    fit_intercept, multi_class, class_weight, callback, verbose
        As of `Perceptron`.
    max_iter : int, default=10000
        Iterations of LSMR, where it is used.

    References
    ----------
    Duda, Hart, Stork, sections 5.8.1 and 5.8.2; Fong, Saunders (2011) for LSMR.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> mm.Pseudoinverse().fit(X, y).certificate_.holds(1e-12)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left")],
        "margins": [StrOptions({"fisher"}), "array-like", None],
    }

    warm_start = False
    random_state = None

    def __init__(
        self,
        *,
        ridge: float = 0.0,
        margins: Any = None,
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        max_iter: int = 10_000,
        class_weight: Any = None,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.ridge = ridge
        self.margins = margins
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.callback = callback
        self.verbose = verbose

    def _pose(self, training: Training, task: Task) -> LeastSquaresProblem:
        problem = super()._pose(training, task)
        excluded = self._constant if self.fit_intercept else self._constant[:0]
        return LeastSquaresProblem(
            problem.Z, problem.margins, problem.weights, float(self.ridge), excluded
        )

    def _begin(self, training: Training) -> None:
        self._constant, _ = validation.constant_features(training.counted)

    def _end(self) -> None:
        del self._constant

    def _finish(self, training: Training, solutions: list[Solution]) -> list[Solution]:
        return solutions

    def _margins(self, training: Training, task: Task) -> Floats | None:
        if self.margins is None:
            return None
        if isinstance(self.margins, str):
            # m_i = n/n_class, a sample of weight 2 counting twice; class_weight is no count.
            weights = training.sample_weights[task.rows]
            _, member = np.unique(task.labels, return_inverse=True)
            m = weights.sum() / np.bincount(member, weights=weights)[member]
        else:
            m = validation.check_margins(self.margins, training.X.shape[0])[task.rows]
        return np.repeat(m, max(task.n_vectors - 1, 1))

    def _solver(self, max_iter: int, rng: Any, updates_before: int) -> Any:
        from ..solvers.separating.pseudoinverse import LeastSquares

        return LeastSquares(max_iter)

    def _disappointing(self, status: Status, certificate: Any) -> bool:
        return status in UNFINISHED

    def _remedy(self, status: Status) -> str:
        return "LSMR has not converged: raise max_iter, or use ridge > 0."


class HoKashyap(LinearClassifier):
    """Ho–Kashyap: least squares in which the margins grow too, with a proof either way.

    e = Za − m, m ← m + 2β max(e, 0), a ← Z⁺m. Separable data end with Za = m > 0; others with
    e ≤ 0, e ≠ 0, a proof that no plane separates, kept in ``multipliers_``.

    Parameters
    ----------
    learning_rate : float, default=0.5
        β, 0 < β < 1.
    tol : float, default=1e-3
        Stop when |e| ≤ tol·m, so that Za ≥ (1 − tol) m > 0.
    max_iter : int, default=1000
        Steps.
    fit_intercept, multi_class, class_weight, callback, verbose
        As of `Perceptron`.
    warm_start : bool, default=False
        Go on with the margins m of the last fit, on the same samples.

    Attributes
    ----------
    refuted_ : bool
        Some task was proved inseparable.
    multipliers_ : list of ndarray or None
        One a task: u ≥ 0 with Σu = 1 and Zᵀu = 0 where no plane exists.
    margins_ : list of ndarray
        m at the end, one a task.

    References
    ----------
    Ho, Kashyap (1965); Duda, Hart, Stork, section 5.9.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> model = mm.HoKashyap().fit(X, y)
    >>> print(model.status_, model.multipliers_[0])
    proved inseparable [0.25 0.25 0.25 0.25]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "learning_rate": [Interval(Real, 0, 1, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="left")],
    }

    random_state = None

    def __init__(
        self,
        *,
        learning_rate: float = 0.5,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo", "kesler"] = "ovr",
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.learning_rate = learning_rate
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    def _restart(self, X: Any, tasks: list[Task]) -> list[Any]:
        for task, m in zip(tasks, self.margins_, strict=True):
            if m.size != task.rows.size * max(task.n_vectors - 1, 1):
                raise ValueError(
                    f"warm_start=True with {task.rows.size} samples of '{task.name}', other than "
                    "before: the margins belong to the samples. Use warm_start=False."
                )
        return list(self.margins_)

    def _answer(
        self, problem: Any, start: Any, progress: Progress, training: Training, max_iter: int
    ) -> Solution:
        from ..solvers.separating.ho_kashyap import HoKashyap as Solver

        if start is not None:
            problem = replace(problem, margins=start)
        solver = Solver(self.learning_rate, self.tol, max_iter)
        return solver.solve(problem, np.zeros(problem.Z.shape[1]), progress)

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        return {
            **super()._attributes(training, tasks, solutions),
            "multipliers_": [solution.multipliers for solution in solutions],
            "margins_": [solution.margins for solution in solutions],
            "refuted_": any(solution.status is Status.INSEPARABLE for solution in solutions),
        }
