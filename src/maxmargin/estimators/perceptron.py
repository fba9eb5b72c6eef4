"""The perceptron."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ..certificates import SeparationCertificate
from ..multiclass import Task
from ..problems import SeparationProblem
from ..progress import Callback
from ..schedules import as_schedule
from .base import Constraints, check_fitted
from .claims import Separates
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
    rule_method,
    separation,
)
from .training import ClassWeight, RandomState, Training


@documented
class Perceptron(OnlineClassifier[SeparationCertificate]):
    """The perceptron: correct a plane on its mistakes until it makes none.

    Single-sample: z·a ≤ 0 ⇒ a ← a + ρ(t) z. Batch: a ← a + ρ(t) Σ_{z·a ≤ 0} z, with z = y (x, 1).
    On separable data it ends with a separating plane; on others it goes on until ``max_iter``.

    Parameters
    ----------
    {{ update }}
    learning_rate : float, Constant, Harmonic or callable, default=1.0
        ρ(t), t = 1, 2, … the number of the update. A callable must depend on t alone.
    {{ bias }}
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
    mistake_bound_ : float
        Bound on the updates of a constant-rate, zero-start, unweighted run, (max‖z‖/γ)² with γ of
        the plane found, summed over the tasks; ∞ where one is not separated.
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    Pocket : Keeps the plane with the fewest mistakes, for data that no plane separates.
    KernelPerceptron : The same rule with any kernel.

    Notes
    -----
    For "batch" a weight multiplies the correction of its sample: weight 2 is the row given twice.
    For "single" a weight v is v visits in succession: after the one that puts the sample right the
    others do nothing, so it is not the same as the row given v times at different places.

    {{ visited_in_partitions }}

    References
    ----------
    Rosenblatt (1958); Novikoff (1962); Duda, Hart, Stork, *Pattern Classification*, section 5.5.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.Perceptron().fit(X, y)
    >>> model.separates_, model.n_updates_ <= model.mistake_bound_
    (True, True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **OnlineClassifier._parameter_constraints,
        "learning_rate": RATE,
        "bias": [StrOptions({"plain", "radius"})],
    }

    def __init__(
        self,
        *,
        update: Literal["single", "batch"] = "single",
        learning_rate: LearningRate = 1.0,
        bias: Bias = "plain",
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
        self.update = update
        self.learning_rate = learning_rate
        self.bias = bias
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

    @property
    def mistake_bound_(self) -> float:
        """The sum of the mistake bounds of the tasks."""
        check_fitted(self)
        return float(sum(certificate.mistake_bound for certificate in self.certificates_))

    def _method(self) -> Method[SeparationProblem, PlaneStart, SeparationCertificate]:
        rule = Rule(self._solver, self.shuffle, self.init, self.random_state)
        return rule_method(self, rule, self._pose, Separates())

    def _pose(self, training: Training, task: Task) -> SeparationProblem:
        step = bias_step(training, task, self.fit_intercept, self.bias)
        return separation(training, task, step)

    def _solver(self, max_iter: int, rng: np.random.RandomState | None, before: int) -> PlaneSolver:
        from ..solvers.separating.perceptron import BatchPerceptron, OnlinePerceptron

        schedule = as_schedule(self.learning_rate)
        if self.update == "batch":
            return BatchPerceptron(schedule, max_iter)
        return OnlinePerceptron(schedule, max_iter, rng, before)
