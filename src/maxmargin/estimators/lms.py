"""Least mean squares."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from ..certificates import LeastSquaresCertificate
from ..multiclass import Task
from ..problems import LeastSquaresProblem
from ..progress import Callback
from ..schedules import as_schedule
from ..solution import Status
from .base import Constraints
from .claims import UNFINISHED, Separates
from .documentation import documented
from .fitting import Method
from .linear import (
    RATE,
    Bias,
    Init,
    LearningRate,
    MultiClass,
    OnlineClassifier,
    PlaneSolver,
    PlaneStart,
    Rule,
    bias_step,
    least_squares,
    rule_method,
)
from .training import ClassWeight, RandomState, Training


@documented
class LMS(OnlineClassifier[LeastSquaresCertificate]):
    """Least mean squares (Widrow–Hoff): descend E(y − a·x')², sample by sample or all at once.

    Single-sample: a ← a + ρ(k)(y − a·x') x'. Batch: a ← a + ρ Zᵀ(1 − Za). A plane results for any
    data, and on separable data not necessarily a separating one: ``separates_`` says.

    Parameters
    ----------
    learning_rate : float, Constant, Harmonic, callable or None, default=None
        ρ(k). None takes a safe one from the data: single-sample n/((n + k − 1) max‖x'‖²), which
        decays; batch 1/λ_max(ZᵀZ); both with R² = max‖x‖² times as much for the bias, so that it
        keeps up with features of any scale. A constant of 2/trace(R) or more, R = mean x'x'ᵀ,
        cannot converge and gets a warning that names the bound.
    {{ update }}
    tol : float, default=1e-3
        θ: stop when every step of a pass is shorter.
    {{ init }}
    {{ fit_intercept }}
    {{ multi_class }}
    {{ shuffle }}
    {{ passes }}
    {{ class_weight }}
    {{ warm_planes }}
    {{ random_state }}
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
    Pseudoinverse : The exact minimiser of the same criterion.

    Notes
    -----
    ``partial_fit`` without a rate takes one from each batch anew: pass a schedule there.

    A weight multiplies the step of its sample. In a batch weight 2 is the same as the row given
    twice; single-sample a row given twice is visited twice.

    {{ visited_in_partitions }}

    References
    ----------
    Widrow, Hoff (1960); Robbins, Monro (1951); Duda, Hart, Stork, section 5.8.4.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_and(return_X_y=True)
    >>> mm.LMS(update="batch", max_iter=10_000).fit(X, y).separates_
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **OnlineClassifier._parameter_constraints,
        "learning_rate": [*RATE, None],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        learning_rate: LearningRate | None = None,
        update: Literal["single", "batch"] = "single",
        tol: float = 1e-3,
        init: Init = "zeros",
        fit_intercept: bool = True,
        multi_class: MultiClass = "ovr",
        shuffle: bool = True,
        max_iter: int = 1000,
        class_weight: ClassWeight = None,
        warm_start: bool = False,
        random_state: RandomState = 0,
        callback: Callback | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.learning_rate = learning_rate
        self.update = update
        self.tol = tol
        self.init = init
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _method(self) -> Method[LeastSquaresProblem, PlaneStart, LeastSquaresCertificate]:
        rule = Rule(self._solver, self.shuffle, self.init, self.random_state)
        remedy = "Raise max_iter, change tol, or use Pseudoinverse for the exact minimiser."
        return rule_method(self, rule, self._pose, Separates(_far_from_minimum, remedy))

    def _pose(self, training: Training, task: Task) -> LeastSquaresProblem:
        bias: Bias = "radius" if self.learning_rate is None else "plain"
        return least_squares(training, task, bias_step(training, task, self.fit_intercept, bias))

    def _solver(self, max_iter: int, rng: np.random.RandomState | None, before: int) -> PlaneSolver:
        from ..solvers.separating.lms import BatchLMS, OnlineLMS

        rate = self.learning_rate
        schedule = None if rate is None else as_schedule(rate)
        if self.update == "batch":
            return BatchLMS(schedule, self.tol, max_iter)
        return OnlineLMS(schedule, self.tol, max_iter, rng, before)


def _far_from_minimum(status: Status, certificate: LeastSquaresCertificate) -> bool:
    # Steps may be short because features are large, far from the least squares.
    short = status is Status.CONVERGED and certificate.stationarity > 0.1
    return short or status in UNFINISHED
