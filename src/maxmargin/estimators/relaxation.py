"""Relaxation with margin."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from ..certificates import SeparationCertificate
from ..multiclass import Task
from ..problems import SeparationProblem
from ..progress import Callback
from .base import Constraints
from .claims import Separates
from .documentation import documented
from .fitting import Method
from .linear import (
    Init,
    MultiClass,
    OnlineClassifier,
    PlaneSolver,
    PlaneStart,
    Rule,
    bias_step,
    rule_method,
    separation,
)
from .training import ClassWeight, RandomState, Training


@documented
class Relaxation(OnlineClassifier[SeparationCertificate]):
    """Relaxation with margin: move the plane towards z·a = m for every sample short of it.

    Single-sample: z·a ≤ m ⇒ a ← a + β (m − z·a)/‖z‖² z; batch: the sum of these steps.

    Parameters
    ----------
    margin : float, default=1.0
        m > 0.
    relaxation : float, default=1.0
        β, 0 < β < 2: 1 moves exactly onto z·a = m, less under-, more over-relaxes.
    {{ update }}
    tol : float, default=1e-3
        A sample with z·a > (1 − tol) m is left alone; the textbook's 0 is met in the limit only.
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

    Notes
    -----
    For "single" a weight v is v visits in succession: the factor 1 − (1 − β)^v for β < 1, β
    otherwise. In a batch it multiplies the sample's step, and weight 2 makes the steps of the row
    given twice (to rounding, which many steps may magnify where no plane separates). Where the sums
    of a batch overshoot (the criterion has not fallen), steps go no farther than β times to the
    least criterion along them from then on.

    References
    ----------
    Agmon (1954); Motzkin, Schoenberg (1954); Duda, Hart, Stork, section 5.6.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_and(return_X_y=True)
    >>> mm.Relaxation(relaxation=1.5).fit(X, y).separates_
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **OnlineClassifier._parameter_constraints,
        "margin": [Interval(Real, 0, None, closed="neither")],
        "relaxation": [Interval(Real, 0, 2, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        *,
        margin: float = 1.0,
        relaxation: float = 1.0,
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
        self.margin = margin
        self.relaxation = relaxation
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

    def _method(self) -> Method[SeparationProblem, PlaneStart, SeparationCertificate]:
        rule = Rule(self._solver, self.shuffle, self.init, self.random_state)
        return rule_method(self, rule, self._pose, Separates())

    def _pose(self, training: Training, task: Task) -> SeparationProblem:
        margins = np.full(task.rows.size * max(task.n_vectors - 1, 1), float(self.margin))
        step = bias_step(training, task, self.fit_intercept)
        return separation(training, task, step, margins)

    def _solver(self, max_iter: int, rng: np.random.RandomState | None, before: int) -> PlaneSolver:
        from ..solvers.separating.relaxation import BatchRelaxation, OnlineRelaxation

        if self.update == "batch":
            return BatchRelaxation(self.relaxation, self.tol, max_iter)
        return OnlineRelaxation(self.relaxation, self.tol, max_iter, rng, before)
