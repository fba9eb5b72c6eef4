"""Planes of least squares: Pseudoinverse and Ho–Kashyap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from ..arrays import Floats, Partitioned, PartitionedVector
from ..certificates import LeastSquaresCertificate, SeparationCertificate
from ..data.columns import constant_features
from ..data.partitioned_samples import added
from ..multiclass import Task
from ..problems import LeastSquaresProblem, SeparationProblem
from ..progress import Callback, Progress
from ..solution import Solution, Status
from .base import Constraints, check_training
from .claims import Separates, unfinished
from .documentation import documented
from .fitting import Attributes, Method, Work, unchanged
from .linear import (
    LinearClassifier,
    MultiClass,
    PlaneStart,
    bias_step,
    least_squares,
    plane_attributes,
    separation,
    weights_of_task,
    without_constant_features,
)
from .saved import PLANES, Saved
from .training import ClassWeight, Training


@documented
class Pseudoinverse(LinearClassifier[LeastSquaresCertificate]):
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
    {{ fit_intercept }}
    {{ multi_class }}
    max_iter : int, default=10000
        Iterations of LSMR, where it is used.
    {{ class_weight }}
    {{ callback }}
    {{ verbose }}

    Attributes
    ----------
    {{ plane_attributes }}
    {{ separates }}
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    LMS : Descends the same criterion step by step.
    HoKashyap : Least squares with margins that grow.

    Notes
    -----
    Of Dask collections every partition is factorised on its worker, and the triangles are merged
    by QR: one round, for up to 1023 features.

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

    separates_: bool

    _parameter_constraints: ClassVar[Constraints] = {
        **LinearClassifier._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left")],
        "margins": [StrOptions({"fisher"}), "array-like", None],
    }

    def __init__(
        self,
        *,
        ridge: float = 0.0,
        margins: Literal["fisher"] | ArrayLike | None = None,
        fit_intercept: bool = True,
        multi_class: MultiClass = "ovr",
        max_iter: int = 10_000,
        class_weight: ClassWeight = None,
        callback: Callback | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.ridge = ridge
        self.margins = margins
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.callback = callback
        self.verbose = verbose

    def _method(self) -> Method[LeastSquaresProblem, PlaneStart, LeastSquaresCertificate]:
        return Method(
            name="Pseudoinverse",
            check=partial(check_training, self, class_weight=self.class_weight),
            multi_class=self.multi_class,
            begin=self._begin,
            resume=lambda training, tasks: [None] * len(tasks),
            claims=Separates(
                unfinished,
                limited="LSMR has not converged: raise max_iter, or use ridge > 0.",
                diverged="LSMR has not converged: raise max_iter, or use ridge > 0.",
            ),
            max_iter=self.max_iter,
            callback=self.callback,
            verbose=self.verbose,
        )

    def _begin(
        self, training: Training, tasks: list[Task]
    ) -> Work[LeastSquaresProblem, PlaneStart, LeastSquaresCertificate]:
        constant, _ = constant_features(training.counted)
        excluded = constant if self.fit_intercept else constant[:0]

        def pose(task: Task) -> LeastSquaresProblem:
            step = bias_step(training, task, self.fit_intercept)
            problem = least_squares(training, task, step, self._targets(training, task))
            return replace(problem, ridge=float(self.ridge), excluded=excluded)

        return Work(pose, _solve_least_squares, plane_attributes)

    def _targets(self, training: Training, task: Task) -> Floats | None:
        """Return m of each row of Z, None for all 1."""
        if self.margins is None:
            return None
        if isinstance(training.X, Partitioned):
            return self._targets_in_partitions(training, task)
        if isinstance(self.margins, str):
            # m_i = n/n_class, a sample of weight 2 counting twice; class_weight is not a count.
            weights = training.sample_weights[task.rows]
            _, member = np.unique(task.labels, return_inverse=True)
            m = weights.sum() / np.bincount(member, weights=weights)[member]
        else:
            m = _check_margins(self.margins, training.X.shape[0])[task.rows]
        return np.repeat(m, max(task.n_vectors - 1, 1))

    def _targets_in_partitions(self, training: Training, task: Task) -> Floats:
        """Return m of each row where the rows are."""
        X, labels = training.X, cast(Any, task.labels)
        m: Floats
        if isinstance(self.margins, str):
            weights = weights_of_task(training, task, training.sample_weights)
            counts = np.ones(1) if weights is None else weights
            totals = X.reduce(_class_totals, added, labels, counts, reads_rows=False)
            m = labels.combined(_of_class, labels, totals.sum() / totals)
        else:
            given = cast(ArrayLike, self.margins)
            m = X.split(_check_margins(given, X.shape[0]))
        return m


def _class_totals(labels: Floats, weights: Floats) -> Floats:
    """Return the weights of the classes −1 and +1."""
    weights = np.broadcast_to(weights, labels.shape)
    return np.array([weights[labels < 0.0].sum(), weights[labels > 0.0].sum()])


def _of_class(labels: Floats, of_class: Floats) -> Floats:
    """Return the number of the class of each label."""
    return np.where(labels > 0.0, of_class[1], of_class[0])


def _solve_least_squares(
    problem: LeastSquaresProblem, start: PlaneStart | None, progress: Progress, max_iter: int
) -> Solution:
    from ..solvers.separating.pseudoinverse import LeastSquares

    return LeastSquares(max_iter).solve(problem, np.zeros(problem.Z.shape[1]), progress)


@documented
class HoKashyap(LinearClassifier[SeparationCertificate]):
    """Ho–Kashyap: least squares in which the margins grow too, with a proof either way.

    e = Za − m, m ← m + 2β max(e, 0), a ← Z⁺m. Separable data end with Za = m > 0; others with
    e ≤ 0, e ≠ 0, a proof that no plane separates, kept in ``multipliers_``.

    Parameters
    ----------
    learning_rate : float, default=0.5
        β, 0 < β < 1.
    tol : float, default=1e-3
        Stop when |e| ≤ tol·m, so that Za ≥ (1 − tol) m > 0.
    {{ fit_intercept }}
    {{ multi_class }}
    max_iter : int, default=1000
        Steps.
    {{ class_weight }}
    warm_start : bool, default=False
        Go on with the margins m of the last fit, on the same samples.
    {{ callback }}
    {{ verbose }}

    Attributes
    ----------
    {{ plane_attributes }}
    {{ separates }}
    refuted_ : bool
        Whether some task was proved inseparable.
    multipliers_ : list of ndarray or None
        One per task: u ≥ 0 with Σu = 1 and Zᵀu = 0 where no plane exists.
    margins_ : list of ndarray
        m at the end, one array per task.
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    maxmargin.separability : Decides whether any plane separates two classes.

    Notes
    -----
    Of Dask collections, of up to 1023 features, every step is one round. ``margins_`` and
    ``multipliers_`` are vectors on the workers then, with one number per row of X, 0 of rows that
    do not take part; ``np.asarray`` brings them to this process. Files of `maxmargin.save` have
    them, pickles of the model do not.

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

    separates_: bool
    refuted_: bool
    multipliers_: list[Floats | None]
    margins_: list[Floats]

    _saved: ClassVar[Saved] = PLANES._replace(
        always=(*PLANES.always, "multipliers_", "margins_", "refuted_")
    )
    _parameter_constraints: ClassVar[Constraints] = {
        **LinearClassifier._parameter_constraints,
        "learning_rate": [Interval(Real, 0, 1, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        learning_rate: float = 0.5,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        multi_class: MultiClass = "ovr",
        max_iter: int = 1000,
        class_weight: ClassWeight = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: bool | int = False,
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

    def __getstate__(self) -> dict[str, Any]:
        """Leave out vectors on workers: to wait for them where Dask pickles would be for ever."""
        state: dict[str, Any] = super().__getstate__()
        for name in ("margins_", "multipliers_"):
            if any(isinstance(each, PartitionedVector) for each in state.get(name, ())):
                state = {key: value for key, value in state.items() if key != name}
        return state

    def _method(self) -> Method[SeparationProblem, Floats, SeparationCertificate]:
        return Method(
            name="HoKashyap",
            check=partial(check_training, self, class_weight=self.class_weight),
            multi_class=self.multi_class,
            begin=self._begin,
            resume=self._last_margins,
            claims=Separates(),
            max_iter=self.max_iter,
            warm_start=self.warm_start,
            callback=self.callback,
            verbose=self.verbose,
        )

    def _begin(
        self, training: Training, tasks: list[Task]
    ) -> Work[SeparationProblem, Floats, SeparationCertificate]:
        def pose(task: Task) -> SeparationProblem:
            return separation(training, task, bias_step(training, task, self.fit_intercept))

        fold = partial(without_constant_features, training) if self.fit_intercept else unchanged
        return Work(pose, self._solve, _attributes, fold)

    def _solve(
        self, problem: SeparationProblem, start: Floats | None, progress: Progress, max_iter: int
    ) -> Solution:
        from ..solvers.separating.ho_kashyap import HoKashyap as Solver

        if start is not None:
            problem = replace(problem, margins=_where_rows_are(problem, start))
        solver = Solver(self.learning_rate, self.tol, max_iter)
        return solver.solve(problem, np.zeros(problem.Z.shape[1]), progress)

    def _last_margins(self, training: Training, tasks: list[Task]) -> list[Floats]:
        """Return where a warm start begins."""
        if any(m is None for m in self.margins_):
            raise ValueError(
                "warm_start=True after loading: the file has no margins of so many samples. Use "
                "warm_start=False, or save with keep_dual=True."
            )
        for task, m in zip(tasks, self.margins_, strict=True):
            if m.size != task.rows.size * max(task.n_vectors - 1, 1):
                raise ValueError(
                    f"warm_start=True with {task.rows.size} samples of '{task.name}', other than "
                    "before: the margins belong to the samples. Use warm_start=False."
                )
        return list(self.margins_)


def _attributes(tasks: Sequence[Task], solutions: Sequence[Solution]) -> Attributes:
    return {
        **plane_attributes(tasks, solutions),
        "multipliers_": [solution.multipliers for solution in solutions],
        "margins_": [solution.margins for solution in solutions],
        "refuted_": any(solution.status is Status.INSEPARABLE for solution in solutions),
    }


def _where_rows_are(problem: SeparationProblem, margins: Floats) -> Floats:
    """Return the margins of the last fit where the rows of this one are."""
    if not problem.in_partitions:
        return np.asarray(margins)
    X = problem.Z.X
    if isinstance(margins, PartitionedVector) and margins.sizes == X.sizes:
        return margins
    there: Floats = X.split(np.asarray(margins))
    return there


def _check_margins(margins: ArrayLike, n_samples: int) -> Floats:
    """Return the margins m, one positive number per sample."""
    m = np.asarray(margins, dtype=np.float64)
    if m.shape != (n_samples,) or not np.isfinite(m).all() or not (m > 0).all():
        raise ValueError(
            f"margins of shape {m.shape}, smallest {m.min() if m.size else 'none'}: "
            f"pass {n_samples} positive numbers, one per sample."
        )
    return m
