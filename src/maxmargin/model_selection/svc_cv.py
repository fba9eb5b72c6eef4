"""The support vector classifier that chooses its C and kernel by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from ..arrays import MatrixLike
from ..estimators.base import Constraints, KernelLike, validated
from ..estimators.documentation import documented
from ..estimators.svc import SVC
from ..estimators.training import ClassWeight, RandomState
from .kernel_search import KernelSearch


@documented
class SVCCV(KernelSearch, SVC):  # type: ignore[misc, override]
    """The support vector machine whose C and kernel are chosen by cross-validation.

    What GridSearchCV finds with `SVC`, as one computation: all folds share kernel values, every C
    begins with the answer of the one before, and every fit is certified. After ``fit`` it is an
    `SVC`, fitted to all samples with the chosen parameters.

    Parameters
    ----------
    Cs : int or array-like of float, default=7
        Costs, or how many powers of 2 between 2⁻⁵ and 2¹⁵.
    gammas : int or array-like of float or {"scale", "auto"}, default=7
        γ of the kernel, or how many powers of 2 between 2⁻⁸ and 2⁶ times ``gamma="scale"``. Not
        used by kernels without γ.
    kernel : str, callable, Kernel or list of them, default="rbf"
        As in `SVC`; the kernels of a list are candidates in place of γ.
    {{ degree }}
    {{ coef0 }}
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Norm of the slack: ξ or ξ².
    cv : int, splitter or iterable, default=None
        Folds as in scikit-learn; None means 5 stratified ones.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn; None is the accuracy. One that needs probabilities is refused.
    refit : bool, default=True
        Fit the best candidate to all samples.
    one_standard_error : bool, default=False
        Choose the simplest candidate, that is of the least C and then the least γ, whose mean score
        is within one standard error of the best.
    strategy : {"all", "bounded", "halving"}, default="all"
        Which fits are made: all; none of a candidate that can no longer win, as far as the scorer
        is known to lie between 0 and 1; or after every fold only those of the better half.
        Candidates without all folds have no mean score.
    error_score : "raise" or float, default=nan
        The score of folds that cannot be fitted or scored, with a warning.
    {{ kkt_tol }}
    {{ cache_size }}
    {{ class_weight }}
    {{ steps }}
    time_limit : float, optional
        Seconds after which the search ends with what it has found. A fit that is under way is
        ended as well; the one to all samples is not.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest.
    {{ decision_function_shape }}
    {{ break_ties }}
    {{ shrinking }}
    {{ n_jobs }}
    {{ fit_intercept }}
    {{ verbose }}
    {{ fold_random_state }}
    {{ probability }}
    {{ device }}
        Of the fit to all samples: the search itself computes on the CPU.

    Attributes
    ----------
    C_, gamma_ : float
        The chosen ones.
    cv_results_ : dict
        As of GridSearchCV, and for every candidate ``certified``, whether the certificates of all
        its fits hold to tol, and ``worst_gap``, the largest certified relative gap of them.
    best_index_, best_score_, best_params_, best_estimator_, n_splits_
        As of GridSearchCV.
    is_complete_ : bool
        Whether the search came to its end.
    {{ machine_attributes }}
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    SVC : The same with given parameters.
    maxmargin.model_selection.c_path : The machines of all C between two.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_fruit(return_X_y=True)
    >>> model = mm.SVCCV(Cs=[1, 10, 100], gammas=[0.01, 0.1], cv=3).fit(X, y)
    >>> sorted(model.best_params_)
    ['C', 'gamma']
    >>> bool(model.cv_results_["certified"].all())
    True
    """

    # Kernel values are shared by all folds: there is no search on features of kernels.
    approximate: Any = None
    n_components: Any = 300
    landmarks: Any = "kmeans++"

    _machine: ClassVar[Any] = SVC
    _parameter_constraints: ClassVar[Constraints] = {
        **{k: v for k, v in SVC._parameter_constraints.items() if k not in ("C", "gamma")},
        **KernelSearch._searched,
        "kernel": [*SVC._parameter_constraints["kernel"], list, tuple],
        "multi_class": [StrOptions({"ovo", "ovr"})],  # the joint machine has another dual
    }

    def __init__(
        self,
        Cs: Any = 7,
        gammas: Any = 7,
        *,
        kernel: KernelLike | list[KernelLike] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        loss: Literal["hinge", "squared_hinge"] = "hinge",
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        one_standard_error: bool = False,
        strategy: Literal["all", "bounded", "halving"] = "all",
        error_score: float | Literal["raise"] = np.nan,
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        class_weight: ClassWeight = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        shrinking: bool = True,
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        verbose: bool | int = False,
        random_state: RandomState = None,
        probability: bool | Literal["deprecated"] = False,
        device: str = "auto",
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.kernel = kernel  # type: ignore[assignment]
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.one_standard_error = one_standard_error
        self.strategy = strategy
        self.error_score = error_score
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.shrinking = shrinking
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.verbose = verbose
        self.random_state = random_state
        self.probability = probability
        self.device = device

    @validated
    def fit(  # type: ignore[override]
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Search, and fit the best candidate to all samples.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training samples; the Gram matrix (n_samples, n_samples) for a precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C in fits; passed to scorers that take them, as in GridSearchCV.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.

        Returns
        -------
        self : object
            The machine of the best candidate.
        """
        self._search(X, y, sample_weight, groups)
        return self
