"""One row per training sample: margin, slack, α and the KKT conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Integers, Labels, MatrixLike
from ..estimators.one_class import OneClassSVM
from ..estimators.training import Training
from .checks import check_data, check_tolerance, checked_model, task_number, trained
from .fitted_model import AnyMachine, FittedModel, SupportVectorMachine, SupportVectorRegression
from .region import RegionTable, region_table
from .table import SampleTable, complementarity
from .text import near_one
from .tube import TubeTable, tube_table

STATES = ("outside", "on margin", "inside", "misclassified")


@dataclass(frozen=True, eq=False)
class SupportTable(SampleTable):
    """Margin, α and KKT state of every training sample of a task; what `support_table` returns.

    Parameters
    ----------
    task : str
        The classes of the task, that of y = +1 first.
    index : ndarray of int of shape (n,)
        The rows of X that take part.
    label, sign : ndarray of shape (n,)
        The labels as given, and y = ±1.
    alpha : ndarray of shape (n,)
        α, scaled to a margin of 1.
    margin : ndarray of shape (n,)
        y g(x).
    slack : ndarray of shape (n,)
        ξ = max(0, 1 − y g(x)).
    state : ndarray of str of shape (n,)
        "outside", "on margin", "inside" or "misclassified".
    complementarity : ndarray of shape (n,)
        Violation of complementary slackness: the sample's part of the duality gap.
    cost, bound : ndarray of shape (n,)
        C_i, and the upper bound of α_i: C_i for the hinge, ∞ for the squared hinge.
    tol : float
        y g(x) within ``tol`` of 1 is on the margin.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> mm.diagnostics.support_table(model, X, y).counts["outside"]
    3
    """

    task: str
    index: Integers
    label: Labels
    sign: Floats
    alpha: Floats
    margin: Floats
    slack: Floats
    state: NDArray[np.str_]
    complementarity: Floats
    cost: Floats
    bound: Floats
    tol: float
    states: ClassVar[Sequence[str]] = STATES
    left: ClassVar[Sequence[str]] = ("label", "state")

    def _orders(self) -> dict[str, Floats]:
        return {"margin": self.margin}

    def _cells(self, rows: Integers) -> list[tuple[str, Iterable[str]]]:
        return [
            ("label", map(str, self.label[rows])),
            ("state", self.state[rows]),
            ("alpha", map("{:.6g}".format, self.alpha[rows])),
            ("y·g", map(near_one, self.margin[rows])),
            ("slack", map(near_one, self.slack[rows])),
            ("residual", map("{:.1e}".format, self.complementarity[rows])),
            ("C", map("{:.6g}".format, self.cost[rows])),
        ]


@overload
def support_table(
    clf: SupportVectorMachine,
    X: MatrixLike,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    task: object = None,
    tol: float | None = None,
) -> SupportTable: ...
@overload
def support_table(
    clf: SupportVectorRegression,
    X: MatrixLike,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    task: object = None,
    tol: float | None = None,
) -> TubeTable: ...
@overload
def support_table(
    clf: OneClassSVM,
    X: MatrixLike,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    task: object = None,
    tol: float | None = None,
) -> RegionTable: ...
def support_table(
    clf: AnyMachine,
    X: MatrixLike,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    task: object = None,
    tol: float | None = None,
) -> SupportTable | TubeTable | RegionTable:
    """Return margin, slack, α and KKT state of every training sample.

    y g ≥ 1 with α = 0 (outside), y g = 1 with 0 ≤ α ≤ C (on the margin), y g < 1 with α = C and
    slack ξ = 1 − y g, classified correctly for ξ ≤ 1 (inside), misclassified for ξ > 1 (on the
    plane itself, ξ = 1, either label is correct). Complementary slackness requires
    α_i (y_i g_i − 1 + ξ_i) = 0 and ξ_i (C_i − α_i) = 0; the larger of the two is reported. One of
    them is always 0, and with yᵀα = 0 they sum to the duality gap. The squared hinge, whose α has
    no bound, has α_i (y_i g_i − 1 + ξ_i) + (2C_i ξ_i − α_i)²/(4C_i) in their place, which sums to
    its gap, the hard margin α_i \\|y_i g_i − 1\\|, where a slack is a violated constraint.

    α and b are those of the fit, from ``dual_coef_``, ``support_`` and ``intercept_``; g is
    recomputed in float64, and from it everything else. A `NuSVC` is scaled to a margin of 1, where
    C_i is u_i/ρ. The g of a `LinearSVC` is that of its ``coef_``, which is approximately
    Σ α_i y_i x_i: the values sum to the gap less half the square of their difference.

    Of a regression the rows have the residual r = y − g in the place of the margin. With α = 0 they
    are in the tube, −ε < r < ε, with α = ±C above or below it, ξ = ±r − ε, and others are on its
    edge. Of a `OneClassSVM` the rows have g = w·φ(x) − ρ. With α = 0 they are inside, g > 0,
    with α at its bound they are outliers, ξ = −g, and others are on the boundary.

    Parameters
    ----------
    clf : SVC, NuSVC, LinearSVC, SVR, NuSVR, LinearSVR or OneClassSVM
        Fitted on this X, y and sample_weight. That is checked: shape, classes, support vectors,
        α ≤ C_i, and the primal value against the certificate of the fit. A linear machine keeps no
        support vectors; its primal and dual value must agree with the certificate.
    X : array-like or CSR matrix of shape (n_samples, n_features), or the precomputed Gram matrix
        Samples of the fit; for a linear machine also RowBlocks.
    y : array-like of shape (n_samples,)
        Labels or targets of the fit; not needed for a `OneClassSVM`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the fit; samples of weight 0 are left out.
    task : int, or labels, optional
        The task of a model of many classes: its number; for "ovo" the pair of labels, for "ovr" the
        label in a tuple, ``("apple",)``. Not needed for two classes.
    tol : float, optional
        y g within ``tol`` of 1 is on the margin; by default ``clf.tol``. That of a `LinearSVC` is
        a gap, which determines margins to about its root, the default there. Of a regression it is
        the distance from the edge of the tube in units of y, of a `OneClassSVM` that of g from 0:
        by default the accuracy that the certificate proves, and at most ``clf.tol``.

    Returns
    -------
    SupportTable, TubeTable or RegionTable
        One row per sample of the task, of a classifier, a regression or a `OneClassSVM`.

    References
    ----------
    Cristianini, Shawe-Taylor (2000), *An Introduction to Support Vector Machines*, section 6.1.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> table = mm.diagnostics.support_table(model, X, y)
    >>> print((225 * table.alpha).round(6))
    [ 8. 0. 9. 0. 17. 0.]
    >>> print(table.to_text(n_rows=3, sort="alpha"))
    1 against -1: 6 samples, 3 support vectors; 3 outside, 3 on margin
    row  label  state          alpha  y·g  slack  residual    C
      4  -1     on margin  0.0755556    1      0  ...       inf
      2  1      on margin       0.04    1      0  ...       inf
      0  1      on margin  0.0355556    1      0  ...       inf
    … 3 more: to_text(n_rows=None) prints all
    """
    model = checked_model(clf)
    if not model.has_classes:
        return _of_one_task(model, check_data(model, X, y, sample_weight), task, tol)
    level = check_tolerance(model, tol)
    number = task_number(model, task)
    training = check_data(model, X, y, sample_weight)
    (machine,) = trained(model, training, [number])
    if machine.rho == 0.0:
        raise ValueError(
            f"'{machine.name}' has ρ = 0: this ν-machine found no margin, to which states are "
            "relative. Use a larger nu, or another kernel."
        )
    problem, alpha, margins = machine.problem, machine.alpha, machine.margins
    with np.errstate(divide="ignore"):
        cost = np.where(problem.ridge > 0.0, 0.5 / problem.ridge, problem.upper)
    return SupportTable(
        task=machine.name,
        index=problem.index,
        label=training.y[problem.index],
        sign=problem.signs,
        alpha=alpha,
        margin=margins,
        slack=machine.slack,
        state=_states(margins, level),
        complementarity=complementarity(problem.upper, problem.ridge, alpha, 1.0 - margins),
        cost=cost,
        bound=problem.upper,
        tol=level,
    )


def _of_one_task(
    model: FittedModel, training: Training, task: object, tol: float | None
) -> TubeTable | RegionTable:
    """Return the table of a machine without classes."""
    if task not in (None, 0):
        raise ValueError(f"the model has one task only: leave out task={task!r}.")
    if tol is not None and not 0.0 <= tol < np.inf:
        raise ValueError(f"tol must be a number of at least 0, got {tol}.")
    make = tube_table if model.has_targets else region_table
    return make(model, training, tol)


def _states(margins: Floats, tol: float) -> NDArray[np.str_]:
    conditions = [margins > 1.0 + tol, margins >= 1.0 - tol, margins >= 0.0]
    return np.select(conditions, STATES[:3], STATES[3])
