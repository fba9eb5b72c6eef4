"""One row per training sample: margin, slack, α and the KKT conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Integers, Labels, MatrixLike
from ..problems import DualProblem
from .checks import check_data, check_tolerance, checked_model, task_number, trained
from .fitted_model import SupportVectorMachine
from .text import aligned, near_one

STATES = ("outside", "on margin", "inside", "misclassified")


@dataclass(frozen=True, eq=False)
class SupportTable:
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

    def __len__(self) -> int:
        return self.index.size

    @property
    def counts(self) -> dict[str, int]:
        """How many samples are in each state."""
        return {state: int(np.count_nonzero(self.state == state)) for state in STATES}

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists of plain numbers and strings.

        Returns
        -------
        dict of str to list
            The columns by name.
        """
        return {name: column.tolist() for name, column in self._columns().items()}

    def to_pandas(self) -> Any:
        """Return the columns as a DataFrame with the rows of X as its index.

        Returns
        -------
        pandas.DataFrame
            One row per sample.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_pandas() needs pandas, which is not installed: pip install pandas"
            ) from error
        return pd.DataFrame(self._columns()).set_index("index")

    def to_text(
        self, n_rows: int | None = 20, sort: Literal["alpha", "margin"] | None = None
    ) -> str:
        """Return the first rows as an aligned table.

        Parameters
        ----------
        n_rows : int or None, default=20
            Number of rows; None prints all.
        sort : {"alpha", "margin"} or None, default=None
            The largest α, or the smallest margins, first; None keeps the order of X.

        Returns
        -------
        str
            The table.
        """
        keys = {"alpha": -self.alpha, "margin": self.margin, None: self.index}
        if sort not in keys:
            raise ValueError(f"sort must be 'alpha', 'margin' or None, got {sort!r}.")
        if n_rows is not None and n_rows < 0:
            raise ValueError(f"n_rows must be at least 0, or None for all; got {n_rows}.")
        rows = np.argsort(keys[sort], kind="stable")[:n_rows]
        columns: list[tuple[str, Iterable[str]]] = [
            ("row", map(str, self.index[rows])),
            ("label", map(str, self.label[rows])),
            ("state", self.state[rows]),
            ("alpha", map("{:.6g}".format, self.alpha[rows])),
            ("y·g", map(near_one, self.margin[rows])),
            ("slack", map(near_one, self.slack[rows])),
            ("residual", map("{:.1e}".format, self.complementarity[rows])),
            ("C", map("{:.6g}".format, self.cost[rows])),
        ]
        lines = aligned(columns, left=("label", "state"))
        more = len(self) - rows.size
        if more:
            lines.append(f"… {more} more: to_text(n_rows=None) prints all")
        return "\n".join([self._summary(), *lines])

    def __str__(self) -> str:
        return self.to_text()

    def _summary(self) -> str:
        found = ", ".join(f"{n} {state}" for state, n in self.counts.items() if n)
        n_support = int(np.count_nonzero(self.alpha))
        return f"{self.task}: {len(self)} samples, {n_support} support vectors; {found}"

    def _columns(self) -> dict[str, NDArray[Any]]:
        names = [field.name for field in fields(self) if field.name not in ("task", "tol")]
        return {name: getattr(self, name) for name in names}


def support_table(
    clf: SupportVectorMachine,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    task: object = None,
    tol: float | None = None,
) -> SupportTable:
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

    Parameters
    ----------
    clf : SVC, NuSVC or LinearSVC
        Fitted on this X, y and sample_weight. That is checked: shape, classes, support vectors,
        α ≤ C_i, and the primal value against the certificate of the fit. A `LinearSVC` keeps no
        support vectors; its primal and dual value must agree with the certificate.
    X : array-like or CSR matrix of shape (n_samples, n_features), or the precomputed Gram matrix
        Samples of the fit; for a `LinearSVC` also RowBlocks.
    y : array-like of shape (n_samples,)
        Labels of the fit.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the fit; samples of weight 0 are left out.
    task : int, or labels, optional
        The task of a model of many classes: its number; for "ovo" the pair of labels, for "ovr" the
        label in a tuple, ``("apple",)``. Not needed for two classes.
    tol : float, optional
        y g within ``tol`` of 1 is on the margin; by default ``clf.tol``. That of a `LinearSVC` is
        a gap, which determines margins to about its root, the default there.

    Returns
    -------
    SupportTable
        One row per sample of the task.

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
        complementarity=_complementarity(problem, alpha, margins),
        cost=cost,
        bound=problem.upper,
        tol=level,
    )


def _states(margins: Floats, tol: float) -> NDArray[np.str_]:
    conditions = [margins > 1.0 + tol, margins >= 1.0 - tol, margins >= 0.0]
    return np.select(conditions, STATES[:3], STATES[3])


def _complementarity(problem: DualProblem, alpha: Floats, margins: Floats) -> Floats:
    """Return each sample's part of the gap, c(ξ) + c*(α) + α(y g − 1), c the cost of the slack."""
    beyond, slack = np.maximum(margins - 1.0, 0.0), np.maximum(1.0 - margins, 0.0)
    if problem.ridge.any():
        return alpha * beyond + 0.5 * problem.ridge * (slack / problem.ridge - alpha) ** 2
    if np.isinf(problem.upper).all():
        return alpha * np.abs(margins - 1.0)
    return np.maximum(alpha * beyond, slack * np.abs(problem.upper - alpha))
