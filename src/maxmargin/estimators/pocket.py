"""The pocket algorithm."""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..certificates import SeparationCertificate
from ..multiclass import Task
from ..problems import SeparationProblem
from ..progress import Callback
from ..schedules import as_schedule
from .base import Constraints
from .claims import Separates
from .documentation import documented
from .fitting import Method
from .linear import (
    RATE,
    Bias,
    Init,
    LearningRate,
    MultiClass,
    PlaneSolver,
    PlaneStart,
    Rule,
    RuleClassifier,
    bias_step,
    rule_method,
    separation,
)
from .training import ClassWeight, RandomState, Training


@documented
class Pocket(RuleClassifier[SeparationCertificate]):
    """The pocket algorithm: perceptron corrections, keeping the plane with fewest mistakes.

    After every correction the samples are counted; a plane goes into the pocket only for strictly
    more (weighted) samples right. It begins with w = 0 and the bias of the more frequent class, so
    that the plane of no task is worse than that. For data that no plane separates.

    Parameters
    ----------
    patience : int, default=10
        Stop when the pocket has not changed for this many passes.
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
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    Perceptron : The rule without a pocket, with ``partial_fit``.

    Notes
    -----
    ``status_`` says whether patience or ``max_iter`` ended the fit. A weight v is v visits in
    succession, and v in the count. There is no ``partial_fit``: a pocket filled on other samples
    says nothing about these. A count takes as long as a pass: of n > 5000 samples every
    (n/5000)²th correction is counted.

    References
    ----------
    Gallant (1990), *Perceptron-based learning algorithms*.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> model = mm.Pocket(patience=50).fit(X, y)
    >>> print(model.score(X, y), model.status_)
    0.75 patience ran out
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **RuleClassifier._parameter_constraints,
        "patience": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": RATE,
        "bias": [StrOptions({"plain", "radius"})],
    }

    def __init__(
        self,
        *,
        patience: int = 10,
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
        self.patience = patience
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

    def _method(self) -> Method[SeparationProblem, PlaneStart, SeparationCertificate]:
        rule = Rule(self._solver, self.shuffle, self.init, self.random_state)
        return rule_method(self, rule, self._pose, Separates())

    def _pose(self, training: Training, task: Task) -> SeparationProblem:
        step = bias_step(training, task, self.fit_intercept, self.bias)
        return separation(training, task, step)

    def _solver(self, max_iter: int, rng: np.random.RandomState | None, before: int) -> PlaneSolver:
        from ..solvers.separating.pocket import OnlinePocket

        return OnlinePocket(as_schedule(self.learning_rate), self.patience, max_iter, rng)
