"""Support vector regression that chooses its C and kernel by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import MatrixLike
from ..estimators.base import Constraints, KernelLike, validated
from ..estimators.documentation import documented
from ..estimators.svr import SVR
from .kernel_search import KernelSearch


@documented
class SVRCV(KernelSearch, SVR):  # type: ignore[misc, override]
    """Support vector regression whose C and kernel are chosen by cross-validation.

    What GridSearchCV finds with `SVR`, as one computation: all folds share kernel values, every C
    begins with the answer of the one before, and every fit is certified. After ``fit`` it is an
    `SVR`, fitted to all samples with the chosen parameters.

    Parameters
    ----------
    Cs : int or array-like of float, default=7
        Costs, or how many powers of 2 between 2⁻⁵ and 2¹⁵.
    gammas : int or array-like of float or {"scale", "auto"}, default=7
        γ of the kernel, or how many powers of 2 between 2⁻⁸ and 2⁶ times ``gamma="scale"``. Not
        used by kernels without γ.
    kernel : str, callable, Kernel or list of them, default="rbf"
        As in `SVR`; the kernels of a list are candidates in place of γ.
    {{ degree }}
    {{ coef0 }}
    epsilon : float, default=0.1
        ε, half the width of the tube in which errors cost nothing, in units of y.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        Norm of the slack: ξ or ξ².
    cv : int, splitter or iterable, default=None
        Folds as in scikit-learn; None means 5.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn; None is R².
    refit : bool, default=True
        Fit the best candidate to all samples.
    one_standard_error : bool, default=False
        Choose the simplest candidate, that is of the least C and then the least γ, whose mean score
        is within one standard error of the best.
    strategy : {"all", "bounded", "halving"}, default="all"
        Which fits are made: all; none of a candidate that can no longer win, which no score of a
        regression shows; or after every fold only those of the better half. Candidates without all
        folds have no mean score.
    error_score : "raise" or float, default=nan
        The score of folds that cannot be fitted or scored, with a warning.
    {{ regression_tol }}
    {{ cache_size }}
    {{ steps }}
    time_limit : float, optional
        Seconds after which the search ends with what it has found. A fit that is under way is
        ended as well; the one to all samples is not.
    {{ shrinking }}
    {{ n_jobs }}
    {{ fit_intercept }}
    {{ verbose }}
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
    {{ regression_attributes }}
    {{ certified_attributes }}

    See Also
    --------
    SVR : The same with given parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = np.linspace(0.0, 6.0, 40)[:, np.newaxis]
    >>> model = mm.SVRCV(Cs=[0.01, 10.0], gammas=[0.5], epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> model.C_
    10.0
    """

    _machine: ClassVar[Any] = SVR
    _parameter_constraints: ClassVar[Constraints] = {
        **{k: v for k, v in SVR._parameter_constraints.items() if k not in ("C", "gamma")},
        **KernelSearch._searched,
        "kernel": [*SVR._parameter_constraints["kernel"], list, tuple],
    }

    def __init__(
        self,
        Cs: Any = 7,
        gammas: Any = 7,
        *,
        kernel: KernelLike | list[KernelLike] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        epsilon: float = 0.1,
        loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive"] = (
            "epsilon_insensitive"
        ),
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        one_standard_error: bool = False,
        strategy: Literal["all", "bounded", "halving"] = "all",
        error_score: float | Literal["raise"] = np.nan,
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        max_iter: int = -1,
        time_limit: float | None = None,
        shrinking: bool = True,
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        verbose: bool | int = False,
        device: str = "auto",
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.kernel = kernel  # type: ignore[assignment]
        self.degree = degree
        self.coef0 = coef0
        self.epsilon = epsilon
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.one_standard_error = one_standard_error
        self.strategy = strategy
        self.error_score = error_score
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.shrinking = shrinking
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.verbose = verbose
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
            Targets: finite numbers.
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
