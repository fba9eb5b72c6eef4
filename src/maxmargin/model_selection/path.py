"""The exact path of the support vector machine over its cost C."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length

from ..arrays import Floats, Integers, Labels, MatrixLike, blocks_of
from ..caller import warn_caller
from ..certificates import MarginCertificate, certify
from ..certificates.scores import kernel_scores
from ..engines.registry import host_array
from ..estimators.base import Gamma, KernelLike
from ..estimators.fitting import adopt, limited_threads
from ..estimators.svc import SVC
from ..estimators.training import ClassWeight
from ..progress import Callback, Limits, Progress
from ..runtime.threads import single_threaded_blas
from ..solution import Solution, Status
from ..solvers.dual.cost_path import LOWER, UPPER, Places
from ..solvers.dual.optimality import Optimality, exactly_balanced
from .breakpoints import FollowedPath
from .path_source import PathSource, path_source

# Numbers of α, all breakpoints together, beyond which they are stored as a CSR matrix.
MOST_DENSE_NUMBERS = 1 << 25
# The distance of α from its bound, relative to it, that counts as 0.
AT_BOUND = 1e-9


@dataclass(frozen=True, eq=False)
class CPath:
    """The machines of all costs between two, exact at every C; what `c_path` returns.

    α and b are affine in C between two breakpoints that follow each other. Where the kernel values
    of free samples are linearly dependent, as of repeated rows, α may jump to another optimum of
    the same machine: two breakpoints then have the same C.

    Parameters
    ----------
    C : ndarray of shape (n_breakpoints,)
        Costs at which the set of free support vectors changes, ascending; the first and the last
        are the ends of the path.
    alpha : ndarray or CSR matrix of shape (n_breakpoints, n_samples)
        α at each of them; CSR where that is large.
    intercept : ndarray of shape (n_breakpoints,)
        b.
    objective : ndarray of shape (n_breakpoints,)
        ½‖w‖² + C Σ c_i ξ_i.
    n_support : ndarray of int of shape (n_breakpoints,)
        Samples with α > 0.
    margin : ndarray of shape (n_breakpoints,)
        1/‖w‖, half of the width of the band.
    training_error : ndarray of shape (n_breakpoints,)
        Fraction of the samples of positive weight that are misclassified.
    certificates : tuple of MarginCertificate
        One per breakpoint.
    classes : ndarray of shape (2,)
        The labels.
    status : Status
        ``CONVERGED``, or why the path ends before the last C or holds a point that is not optimal
        to ``tol``.
    n_resolved : int
        How often rounding ended the path, so that the machine of a single C was solved to go on.

    See Also
    --------
    c_path : Computes it.
    maxmargin.plots.c_path : Draws it.

    References
    ----------
    Hastie, Rosset, Tibshirani, Zhu, *JMLR* 5 (2004).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> path = mm.model_selection.c_path(X, y, kernel="linear", C_min=0.01, C_max=1.0)
    >>> model = path.at(0.05)
    >>> model.C, model.certificate_.holds(1e-9)
    (0.05, True)
    """

    C: Floats
    alpha: Any
    intercept: Floats
    objective: Floats
    n_support: Integers
    margin: Floats
    training_error: Floats
    certificates: tuple[MarginCertificate, ...] = field(repr=False)
    classes: Labels
    status: Status
    n_resolved: int
    # Where each variable is between a breakpoint and the one before.
    _at: Places = field(init=False, repr=False)
    _source: PathSource = field(init=False, repr=False)

    def __len__(self) -> int:
        return self.C.size

    def __str__(self) -> str:
        worst = max(self.certificates, key=lambda each: each.violation + each.rounding)
        best = int(self.training_error.argmin())
        return (
            f"path of {len(self)} breakpoints, C from {self.C[0]:.4g} to {self.C[-1]:.4g}: "
            f"{self.n_support[0]} to {self.n_support[-1]} support vectors, training error "
            f"{self.training_error[0]:.4g} to {self.training_error[-1]:.4g}, least "
            f"{self.training_error[best]:.4g} at C = {self.C[best]:.4g}; worst proof: {worst}"
        )

    def at(self, C: float) -> SVC:
        """Return the machine of one cost, as a fitted `SVC` with a certificate of its own.

        Parameters
        ----------
        C : float
            A cost between the first and the last breakpoint.

        Returns
        -------
        SVC
            The model, with the parameters of the path.
        """
        source = self._source
        model = copy(source.model)
        model.C = float(C)
        solution = self._refined(float(C), self._interpolated(float(C)))
        solution = replace(solution, trace=Progress().trace())
        with limited_threads(model.n_jobs):
            adopt(model, model._method(), source.training, [solution])
        return model

    def _refined(self, C: float, solution: Solution) -> Solution:
        """Return the solution, or another one where it is not certified to tol and that is."""
        machine, tol = self._source.machine, float(self._source.model.tol)
        if certify(machine.at(C), solution).holds(tol):
            return solution
        assert solution.alpha is not None
        return machine.otherwise(C, solution.alpha, tol, Limits()) or solution

    @property
    def n_free(self) -> Integers:
        """Support vectors with α below its bound, at every breakpoint."""
        share = np.array([self._share(_dense(self.alpha[[k]])[0], k) for k in range(len(self))])
        free: Integers = np.count_nonzero((share > 0.0) & (share < 1.0 - AT_BOUND), axis=1)
        return free

    @property
    def codes(self) -> Integers:
        """Class numbers of the samples of the path: 0 or 1."""
        return np.asarray(self._source.training.codes)

    def shares(self, C: ArrayLike) -> Floats:
        """Return α_i/(C c_i), the share that α has of its bound.

        Parameters
        ----------
        C : array-like of shape (n_costs,)
            Costs between the first and the last breakpoint.

        Returns
        -------
        shares : ndarray of shape (n_costs, n_samples)
            Numbers between 0 and 1; 0 of samples of weight 0.
        """
        costs = np.asarray(C, dtype=np.float64)
        found = np.zeros((costs.size, self.alpha.shape[1]))
        for row, cost in zip(found, costs.tolist(), strict=True):
            j, k, share = self._segment(cost)
            # α/C is affine in 1/C.
            first, last = (self._share(_dense(self.alpha[[m]])[0], m) for m in (j, k))
            share *= float(self.C[k]) / cost
            row[:] = first + share * (last - first)
        return found

    def _share(self, alpha: Floats, k: int) -> Floats:
        weights = self._source.training.weights
        return np.divide(alpha, self.C[k] * weights, out=np.zeros(alpha.size), where=weights > 0.0)

    def _segment(self, C: float) -> tuple[int, int, float]:
        """Return the breakpoints on either side of C, and how far C is from one to the other."""
        if not self.C[0] <= C <= self.C[-1]:
            raise ValueError(
                f"C must be between {self.C[0]:g} and {self.C[-1]:g}, the ends of the path, got "
                f"{C!r}: call c_path with other ends."
            )
        k = min(int(np.searchsorted(self.C, C, side="right")), len(self) - 1)
        j = max(k - 1, 0)
        width = float(self.C[k] - self.C[j])
        return j, k, (C - float(self.C[j])) / width if width else 1.0

    def _interpolated(self, C: float) -> Solution:
        """Return α and b of one cost."""
        j, k, share = self._segment(C)
        source = self._source
        problem = source.machine.at(C)
        costs, rows = source.machine.problem.upper, source.task.rows
        first, last = (_dense(self.alpha[[row]])[0, rows] for row in (j, k))
        at = self._at[k]
        full = (at == UPPER) | ((first >= self.C[j] * costs) & (last >= self.C[k] * costs))
        alpha = np.clip(first + share * (last - first), 0.0, problem.upper)
        alpha = np.where(full, problem.upper, np.where(at == LOWER, 0.0, alpha))
        alpha = exactly_balanced(problem, alpha)
        # b as of every fit: where no α is free, the middle of the interval that is optimal.
        scores = kernel_scores(problem, alpha * problem.signs)[0]
        b = Optimality.of(problem, alpha, scores).b
        return Solution(np.empty((0, 0)), np.array([b]), Status.CONVERGED, alpha=alpha)

    def decision_function(self, X: MatrixLike) -> Floats:
        """Return the scores w·φ(x) + b of every sample at every breakpoint.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_breakpoints)
            Scores, positive for ``classes[1]``.
        """
        X = self._source.checked(X)
        scores = np.empty((X.shape[0], len(self)))
        for some in blocks_of(len(self), X.shape[0]):
            planes = self._source.planes(_dense(self.alpha[some]))
            scores[:, some] = planes.scores(X) + self.intercept[some]
        return scores

    def error(self, X: MatrixLike, y: ArrayLike) -> Floats:
        """Return the fraction of misclassified samples at every breakpoint.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        errors : ndarray of shape (n_breakpoints,)
            Fractions between 0 and 1.
        """
        labels = np.asarray(host_array(y))
        check_consistent_length(X, labels)
        # On the plane the positive class is predicted, as by every estimator.
        predicted = self.classes[(self.decision_function(X) >= 0.0).astype(np.intp)]
        return np.mean(predicted != labels[:, np.newaxis], axis=0)

    def score(self, X: MatrixLike, y: ArrayLike) -> Floats:
        """Return the accuracy at every breakpoint.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        scores : ndarray of shape (n_breakpoints,)
            Fractions between 0 and 1.
        """
        return 1.0 - self.error(X, y)


def c_path(
    X: MatrixLike,
    y: ArrayLike,
    kernel: KernelLike = "rbf",
    *,
    C_min: float = 1e-2,
    C_max: float = 1e2,
    gamma: Gamma = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    class_weight: ClassWeight = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_breakpoints: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
) -> CPath:
    """Return the support vector machines of two classes for all costs between two.

    The dual optimum of min ½‖w‖² + C Σ c_i ξ_i, with c_i the weights of the samples, is piecewise
    linear in C: between two breakpoints the sets of α = 0, of free α and of α = C c_i are the same,
    and the free α and b are affine in C. The path begins at the optimum of ``C_min`` and follows
    the breakpoints, each of which takes O(n_free² + n·n_free) operations. Every breakpoint is
    certified; where rounding leaves one that is not optimal to ``tol``, the machine of that C is
    solved by itself, and the path goes on from there.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        Samples; the Gram matrix for ``kernel="precomputed"``.
    y : array-like of shape (n_samples,)
        Labels of two classes.
    kernel : str, callable or Kernel, default="rbf"
        As of `SVC`; it must be positive semidefinite. All n² kernel values are kept in memory.
    C_min, C_max : float, default=1e-2, 1e2
        The ends of the path, 0 < C_min < C_max < ∞.
    gamma : {"scale", "auto"} or float, default="scale"
        As of `SVC`.
    degree : int, default=3
        As of `SVC`.
    coef0 : float, default=0.0
        As of `SVC`.
    class_weight : dict, "balanced" or None, default=None
        As of `SVC`: multiplies C of the samples of a class.
    sample_weight : array-like of shape (n_samples,), optional
        Multiplies C of each sample; samples of weight 0 do not count.
    tol : float, default=1e-6
        The largest violation of a KKT condition at a breakpoint; its relative duality gap is at
        most twice that.
    max_breakpoints : int, optional
        Where the path ends at the latest.
    time_limit : float, optional
        Seconds after which it ends.
    callback : callable, optional
        Called with a `Step` about every 60 breakpoints; a true answer ends the path.

    Returns
    -------
    CPath
        Breakpoints, with α, b, error, margin and a certificate each. One that ends early, as its
        ``status`` says, holds all machines up to there.

    See Also
    --------
    maxmargin.SVC : The machine of one C.
    maxmargin.plots.c_path : A figure of the path.

    References
    ----------
    Hastie, Rosset, Tibshirani, Zhu, "The entire regularization path for the support vector
    machine", *JMLR* 5 (2004).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> path = mm.model_selection.c_path(X, y, kernel="linear", C_min=0.01, C_max=1.0)
    >>> print(path.C.round(4), path.n_support)
    [0.01 0.0171 0.019 0.0227 0.0486 0.0708 0.0756 1. ] [6 4 4 4 4 3 3 3]
    >>> print((225 * path.alpha[-1]).round(6), path.intercept[-1].round(6))
    [ 8. 0. 9. 0. 17. 0.] 0.133333
    """
    _check_ends(C_min, C_max, max_breakpoints)
    progress = Progress([callback] if callback is not None else [])
    model = SVC(
        C=C_min, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, tol=tol,
        class_weight=class_weight, time_limit=time_limit, callback=callback,
    )  # fmt: skip
    model._validate_params()
    model.time_limit = model.callback = None  # of the path, and not of its machines
    limits = Limits(max_breakpoints, time_limit)
    with single_threaded_blas():
        source = path_source(model, C_max, X, y, sample_weight)
        followed = FollowedPath(source.machine, (C_min, C_max), tol, limits, progress).follow()
    path = _published(source, followed)
    if path.status in (Status.PATIENCE, Status.TIME_LIMIT, Status.ITERATION_LIMIT):
        warn_caller(_shortcoming(path, C_max, tol), ConvergenceWarning)
    return path


def _check_ends(C_min: float, C_max: float, max_breakpoints: int | None) -> None:
    if not (isinstance(C_min, Real) and isinstance(C_max, Real)):
        raise TypeError(
            f"C_min and C_max must be numbers, got C_min={C_min!r} and C_max={C_max!r}."
        )
    if not 0.0 < C_min < C_max < np.inf:
        raise ValueError(
            f"C_min and C_max must satisfy 0 < C_min < C_max < inf, got C_min={C_min!r} and "
            f"C_max={C_max!r}."
        )
    is_count = isinstance(max_breakpoints, Integral) and max_breakpoints >= 1
    if max_breakpoints is not None and not is_count:
        raise ValueError(
            f"max_breakpoints must be an integer of at least 1 or None, got {max_breakpoints!r}."
        )


def _published(source: PathSource, followed: FollowedPath) -> CPath:
    points, rows = followed.points, source.task.rows
    C, b, squares, errors = np.array(points.numbers).T.copy()
    proofs = tuple(points.certificates)
    alpha = np.array(points.alpha)
    if rows.size < source.training.X.shape[0] or (rows != np.arange(rows.size)).any():
        inner, alpha = alpha, np.zeros((len(C), source.training.X.shape[0]))
        alpha[:, rows] = inner
    n_support = np.count_nonzero(alpha, axis=1)
    with np.errstate(divide="ignore"):
        margin = 1.0 / np.sqrt(np.maximum(squares, 0.0))
    arrays = [C, b, np.array([each.primal for each in proofs]), n_support, margin]
    for each in arrays:
        each.flags.writeable = False
    kept: Any = sparse.csr_array(alpha) if alpha.size > MOST_DENSE_NUMBERS else alpha
    (kept.data if sparse.issparse(kept) else kept).flags.writeable = False
    path = CPath(
        C, kept, b, arrays[2], n_support, margin, errors / rows.size, proofs,
        source.training.classes, followed.status, followed.n_resolved,
    )  # fmt: skip
    object.__setattr__(path, "_at", np.array(points.at))
    object.__setattr__(path, "_source", source)
    return path


def _shortcoming(path: CPath, C_max: float, tol: float) -> str:
    if path.status is Status.PATIENCE:
        n_short = sum(not each.holds(tol) for each in path.certificates)
        return (
            f"c_path: {n_short} of {len(path)} breakpoints are not optimal to tol={tol:g}: scale "
            "the features (StandardScaler), lower C_max, or raise tol."
        )
    return (
        f"c_path: the path ended at C = {path.C[-1]:g} of {C_max:g} ({path.status}): raise "
        "time_limit or max_breakpoints, or lower C_max."
    )


def _dense(alpha: Any) -> Floats:
    return alpha.toarray() if sparse.issparse(alpha) else alpha
