"""Tables a person reads: margins, slacks, support vectors, KKT states, bounds.

`support_table` says of every training sample where it lies and what it weighs, `margin_report`
what the whole machine is worth. Both take a fitted `SVC` or `NuSVC`; α and b are the fitted ones,
all else is recomputed from the data in float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .certificate import MarginCertificate
from .certificate.margin import DOUBTFUL, primal_value
from .certificate.scores import kernel_scores
from .estimators.base import Training
from .estimators.svm import SVC, NuSVC
from .kernels import RBF, Precomputed
from .multiclass import OneVsOne, Task
from .problem import MarginProblem
from .samples import Floats, Integers
from .solution import Status

__all__ = ["MarginReport", "SupportTable", "TaskMargin", "margin_report", "support_table"]

Machine: TypeAlias = SVC | NuSVC

STATES = ("outside", "on margin", "inside", "misclassified")
# α within this of its bound, relative to it, is at the bound: a QP library stops short of it.
AT_BOUND = 1e-6
# Samples up to which the whole Gram matrix is looked at for R².
WHOLE = 2000
# Numerical zero of ‖w‖² next to (Σα)² max K(x, x), the most that it can be.
NO_MARGIN = 1e-12
# Relative gap of a ν-machine that is near enough to its optimum.
KNOWN = 1e-2


# One sample a row ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SupportTable:
    """Where every training sample of a task lies, and what it weighs; see `support_table`.

    Parameters
    ----------
    task : str
        What is told from what: the class of y = +1 first.
    index : ndarray of int of shape (n,)
        The rows of X that take part.
    label, sign : ndarray of shape (n,)
        The labels as given, and y = ±1.
    alpha : ndarray of shape (n,)
        α of the machine whose margin is 1.
    margin : ndarray of shape (n,)
        y g(x).
    slack : ndarray of shape (n,)
        ξ = max(0, 1 − y g(x)).
    state : ndarray of str of shape (n,)
        "outside", "on margin", "inside" or "misclassified".
    complementarity : ndarray of shape (n,)
        What is left of complementary slackness: the sample's share of the duality gap.
    cost, bound : ndarray of shape (n,)
        C_i, and the upper bound of α_i: C_i for the hinge, ∞ for the squared one.
    tol : float
        y g(x) within ``tol`` of 1 is on the margin.
    """

    task: str
    index: Integers
    label: NDArray[Any]
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
        """Return the columns as lists of plain numbers and strings."""
        return {name: column.tolist() for name, column in self._columns().items()}

    def to_pandas(self) -> Any:
        """Return the columns as a DataFrame with the rows of X as its index."""
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
        """Return an aligned table of the first rows.

        Parameters
        ----------
        n_rows : int or None, default=20
            None prints all.
        sort : {"alpha", "margin"} or None, default=None
            The largest α, or the smallest margins, first; None keeps the order of X.
        """
        keys = {"alpha": -self.alpha, "margin": self.margin, None: self.index}
        if sort not in keys:
            raise ValueError(f"sort={sort!r} is none: pass 'alpha', 'margin' or None.")
        if n_rows is not None and n_rows < 0:
            raise ValueError(f"n_rows={n_rows} is negative: pass a number of rows, None for all.")
        rows = np.argsort(keys[sort], kind="stable")[:n_rows]
        columns: list[tuple[str, Iterable[str]]] = [
            ("row", map(str, self.index[rows])),
            ("label", map(str, self.label[rows])),
            ("state", self.state[rows]),
            ("alpha", map("{:.6g}".format, self.alpha[rows])),
            ("y·g", map(_near_one, self.margin[rows])),
            ("slack", map(_near_one, self.slack[rows])),
            ("residual", map("{:.1e}".format, self.complementarity[rows])),
            ("C", map("{:.6g}".format, self.cost[rows])),
        ]
        lines = _aligned(columns, left=("label", "state"))
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
    clf: Machine,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    task: Any = None,
    tol: float | None = None,
) -> SupportTable:
    """Say of every training sample where it lies, what it weighs, and how well KKT holds there.

    y g ≥ 1 with α = 0 (outside), y g = 1 with 0 ≤ α ≤ C (on the margin), y g < 1 with α = C and
    slack ξ = 1 − y g, still right for ξ ≤ 1 (inside), wrong for ξ > 1 (misclassified; on the plane
    itself, ξ = 1, either label is right). Complementary slackness asks for α_i (y_i g_i − 1 + ξ_i)
    = 0 and ξ_i (C_i − α_i) = 0; the larger of the two is reported. One of them is always 0, and
    with yᵀα = 0 they sum to the duality gap. The squared hinge, whose α has no bound, has
    α_i (y_i g_i − 1 + ξ_i) + (2C_i ξ_i − α_i)²/(4C_i) in their place, which sums to its gap, the
    hard margin α_i \\|y_i g_i − 1\\|; there a slack is a violated constraint.

    α and b are those of the fit, from ``dual_coef_``, ``support_`` and ``intercept_``. Recomputed
    in float64 are g, and from it all else. A `NuSVC` is read as the machine of margin 1 that it
    published, whose C_i is u_i/ρ.

    Parameters
    ----------
    clf : SVC or NuSVC
        Fitted on this X, y and sample_weight. That is checked: shape, classes, support vectors,
        α ≤ C_i, and the primal value against that of the fit's certificate.
    X : array-like or CSR matrix of shape (n_samples, n_features), or the precomputed Gram matrix
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), optional
        As passed to fit; samples of weight 0 take no part.
    task : int, or labels, optional
        Which machine of many classes: its number; for "ovo" the pair of labels, for "ovr" the label
        in a tuple, ``("apple",)``. Two classes need none.
    tol : float, optional
        y g within ``tol`` of 1 is on the margin; ``clf.tol`` by default.

    Returns
    -------
    SupportTable

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
    _check_machine(clf)
    level = _check_tol(clf, tol)
    number = _task_number(clf, task)
    training = _check_data(clf, X, y, sample_weight)
    (machine,) = _trained(clf, training, [number])
    if machine.rho == 0.0:
        raise ValueError(
            f"'{machine.name}' has ρ = 0: this ν-machine found no margin, and states are relative "
            "to one. Use a larger nu, or another kernel."
        )
    problem, alpha, margins = machine.problem, machine.alpha, machine.margins
    with np.errstate(divide="ignore"):
        cost = np.where(problem.ridge > 0.0, 0.5 / problem.ridge, problem.upper)
    return SupportTable(
        task=machine.name,
        index=problem.index,
        label=training.y[problem.index],
        sign=problem.y,
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


def _complementarity(problem: MarginProblem, alpha: Floats, margins: Floats) -> Floats:
    """Each sample's share of the gap, c(ξ) + c*(α) + α(y g − 1), c the cost of the slack."""
    beyond, slack = np.maximum(margins - 1.0, 0.0), np.maximum(1.0 - margins, 0.0)
    if problem.ridge.any():
        return alpha * beyond + 0.5 * problem.ridge * (slack / problem.ridge - alpha) ** 2
    if np.isinf(problem.upper).all():
        return alpha * np.abs(margins - 1.0)
    return np.maximum(alpha * beyond, slack * np.abs(problem.upper - alpha))


# The machine as a whole ------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskMargin:
    """What one machine is worth; see `margin_report`. None is what the data are needed for.

    Parameters
    ----------
    name : str
    norm, width : float
        ‖w‖ in feature space and 2/‖w‖; nan where an indefinite kernel makes ‖w‖² negative, or a
        ν-machine found no margin.
    n_support : int
    certificate : MarginCertificate
    status : Status
    C : float or None
        Of the fit; for a ν-machine 1/(ρ Σ weights), which is 1/(nρ) without weights.
    rho : float or None
        Of a ν-machine: its margin before it was divided by ρ. 0 where it has none.
    n_samples, n_bound, n_free : int or None
        Samples of the task; support vectors with α at its upper bound, and all others.
    margin_errors, support_fraction : float or None
        Fractions of the samples, weighted by C_i, with y g < 1 and with α > 0: ν lies between.
    nu : float or None
        The ν of the ν-machine that this one is, Σα/ΣC_i; None without an upper bound.
    loo_support : float or None
        n_support/n_samples, which bounds the leave-one-out error.
    loo_bound : float or None
        A second bound of the leave-one-out error, the ξα-estimate.
    radius : float or None
        R² of the ξα-estimate.
    """

    name: str
    norm: float
    width: float
    n_support: int
    certificate: MarginCertificate
    status: Status
    C: float | None = None
    rho: float | None = None
    n_samples: int | None = None
    n_bound: int | None = None
    n_free: int | None = None
    margin_errors: float | None = None
    support_fraction: float | None = None
    nu: float | None = None
    loo_support: float | None = None
    loo_bound: float | None = None
    radius: float | None = None

    def __str__(self) -> str:
        lines = [
            ("margin", self._margin()),
            ("support", self._support()),
            ("ν", self._nu()),
            ("leave one out", self._leave_one_out()),
            ("proof", f"{self.certificate}; {self.status}"),
        ]
        body = [f"  {name:<13}  {text}" for name, text in lines if text]
        return "\n".join([self.name, *body])

    def _margin(self) -> str:
        if self.rho == 0.0:
            return "none: ρ = 0, w = 0 would do as well; use a larger nu, or another kernel"
        if np.isnan(self.norm):
            return "none: ‖w‖² is negative, for the kernel is not positive semidefinite"
        text = f"width 2/‖w‖ = {self.width:.7g}, ‖w‖ = {self.norm:.7g}"
        if self.rho is not None:
            text += f"; ρ = {self.rho:.6g}"
            text += "" if self.C is None else f", the machine of C = {self.C:.6g}"
        return text

    def _support(self) -> str:
        text = f"{self.n_support} support vectors"
        text += "" if self.n_samples is None else f" of {self.n_samples} samples"
        if self.n_bound is None:
            return f"{text} (pass X and y for more)"
        return f"{text}: {self.n_free} free, {self.n_bound} at their bound"

    def _nu(self) -> str:
        if self.margin_errors is None:
            return ""
        middle = "ν" if self.nu is None else f"{self.nu:.4g}"
        below, above = f"{self.margin_errors:.4g}", f"{self.support_fraction:.4g}"
        return f"{below} (margin errors) ≤ {middle} ≤ {above} (support vectors)"

    def _leave_one_out(self) -> str:
        if self.loo_support is None:
            return ""
        text = f"error at most {self.loo_support:.4g} (support vectors)"
        if self.loo_bound is None:
            return text
        how = "own term" if self.radius is None else f"ξα, R² = {self.radius:.4g}"
        return f"{text}, {self.loo_bound:.4g} ({how})"


@dataclass(frozen=True)
class MarginReport:
    """What a fitted machine is worth, task by task; see `margin_report`.

    Parameters
    ----------
    estimator : str
    tasks : tuple of TaskMargin
        One for two classes, else one a pair or one a class against the rest.
    """

    estimator: str
    tasks: tuple[TaskMargin, ...]

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def width(self) -> float:
        """2/‖w‖ of the task with the narrowest margin; for two classes the only one."""
        return float(np.min([task.width for task in self.tasks]))

    @property
    def norm(self) -> float:
        """‖w‖ of the task with the narrowest margin."""
        return float(np.max([task.norm for task in self.tasks]))

    def __str__(self) -> str:
        if len(self.tasks) == 1:
            return f"{self.estimator}: {self.tasks[0]}"
        columns = [
            ("task", [task.name for task in self.tasks]),
            ("width", [f"{task.width:.5g}" for task in self.tasks]),
            ("‖w‖", [f"{task.norm:.5g}" for task in self.tasks]),
            ("SVs", [str(task.n_support) for task in self.tasks]),
            ("bound", [_if_known(task.n_bound) for task in self.tasks]),
            ("margin errors", [_if_known(task.margin_errors) for task in self.tasks]),
            ("LOO by SVs", [_if_known(task.loo_support) for task in self.tasks]),
            ("LOO bound", [_if_known(task.loo_bound) for task in self.tasks]),
        ]
        lines = _aligned(columns, left=("task",))
        worst = max(self.tasks, key=lambda task: task.certificate.violation)
        last = f"worst proof, {worst.name}: {worst.certificate}; {worst.status}"
        return "\n".join([f"{self.estimator}: {len(self)} tasks", *lines, last])


def margin_report(
    clf: Machine, X: Any = None, y: Any = None, sample_weight: Any = None
) -> MarginReport:
    """Say how wide the margin is, what holds it, and what that says of new samples.

    The band −1 ≤ g ≤ 1 is 2/‖w‖ wide, ‖w‖² = αᵀQα = Σ_ij α_i y_i α_j y_j K(x_i, x_j). ν, where
    Σα = ν ΣC_i, lies between the fraction of margin errors and that of support vectors. The
    leave-one-out error is at most the fraction of support vectors, for the machine does not change
    when another sample is left out. It is at most that of samples with 2α_i R² + ξ_i ≥ 1 too, where
    all K(x, x') lie within R² of each other (in feature space about any origin: about 0 or the
    mean, whichever gives less), provided that the machines left over have a free α (Joachims's
    ξα-estimate). The squared hinge is there the hard margin of the kernel K + diag 1/(2C_i); a
    machine without a bias has α_i K(x_i, x_i) ≥ y_i g(x_i) in place of it (Jaakkola, Haussler).
    These bounds are those of the optimum, for a positive semidefinite kernel; what was found is as
    near to it as the certificate says.
    Those of a ν-machine are of the machine of the same C: C_i stays when a sample is left out.

    Recomputed in float64: ‖w‖ from the support vectors and ``dual_coef_``, and with X and y all
    margins. The certificate is that of the fit.

    Parameters
    ----------
    clf : SVC or NuSVC
    X, y, sample_weight : optional
        What it was fitted on, checked as in `support_table`. Without, there are only widths,
        numbers of support vectors and, unless each pair of classes has its own samples, their
        fraction. A precomputed kernel needs them, for the model holds no kernel values.

    Returns
    -------
    MarginReport

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett, *Neural Computation* 12 (2000), proposition 5 (ν);
    Vapnik, *The Nature of Statistical Learning Theory* (1995), section 5.2 (support vectors);
    Joachims, *ICML* (2000), and Jaakkola, Haussler, *AISTATS* (1999) (leave one out).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> report = mm.diagnostics.margin_report(model, X, y)
    >>> f"{report.width:.9f}"
    '5.144957554'
    >>> print(report)
    SVC: 1 against -1
      margin         width 2/‖w‖ = 5.144958, ‖w‖ = 0.3887301
      support        3 support vectors of 6 samples: 3 free, 0 at their bound
      ν              0 (margin errors) ≤ ν ≤ 0.5 (support vectors)
      leave one out  error at most 0.5 (support vectors), ...
      proof          optimal to a relative gap of ...
    """
    _check_machine(clf)
    if (X is None) != (y is None):
        raise ValueError("X and y belong together: pass both, or neither.")
    if X is None or y is None:
        if sample_weight is not None:
            raise ValueError("sample_weight is of the samples: pass X and y with it.")
        if isinstance(clf.kernel_, Precomputed):
            raise ValueError(
                "the model of a precomputed kernel holds no kernel values: pass X, the Gram matrix "
                "of the training samples, and y."
            )
        measured = [_without_data(clf, machine) for machine in _supported(clf)]
    else:
        training = _check_data(clf, X, y, sample_weight)
        machines = _trained(clf, training, range(len(clf.intercept_)))
        measured = [_with_data(clf, training, machine) for machine in machines]
    return MarginReport(type(clf).__name__, tuple(measured))


def _without_data(clf: Machine, machine: _Machine) -> TaskMargin:
    basics = _basics(clf, machine)
    n_samples = None if isinstance(clf._reduction(), OneVsOne) else int(clf.shape_fit_[0])
    bounded = isinstance(clf, NuSVC) or (clf.loss == "hinge" and np.isfinite(clf.C))
    return TaskMargin(
        **basics,
        C=None if isinstance(clf, NuSVC) else float(clf.C),
        n_samples=n_samples,
        n_bound=None if bounded else 0,
        n_free=None if bounded else basics["n_support"],
        nu=float(clf.nu) if isinstance(clf, NuSVC) else None,
        loo_support=None if n_samples is None else basics["n_support"] / n_samples,
    )


def _with_data(clf: Machine, training: Training, machine: _Machine) -> TaskMargin:
    basics = _basics(clf, machine)
    problem, alpha = machine.problem, machine.alpha
    n_samples, n_support = alpha.size, basics["n_support"]
    if machine.rho == 0.0:
        return TaskMargin(**basics, n_samples=n_samples, loo_support=n_support / n_samples)
    bounded = bool(np.isfinite(problem.upper).all())
    n_bound = int(np.count_nonzero(alpha >= problem.upper * (1.0 - AT_BOUND)))
    # What each sample counts: its cost, where that is what ν shares out.
    shares = problem.upper / problem.upper.sum() if bounded else np.full(n_samples, 1 / n_samples)
    C = problem.upper / training.weights[problem.index] if machine.rho else np.array([clf.C])
    radius = _radius(problem) if problem.balanced else None
    wrong = _may_be_wrong(machine, radius)
    return TaskMargin(
        **basics,
        C=float(C[0]),
        n_samples=n_samples,
        n_bound=n_bound,
        n_free=n_support - n_bound,
        margin_errors=float(shares[machine.margins < 1.0 - clf.tol].sum()),
        support_fraction=float(shares[alpha > 0.0].sum()),
        nu=float(alpha.sum() / problem.upper.sum()) if bounded else None,
        loo_support=n_support / n_samples,
        loo_bound=None if wrong is None else float(wrong.mean()),
        radius=radius,
    )


def _basics(clf: Machine, machine: _Machine) -> dict[str, Any]:
    has_margin = machine.square >= 0.0 and machine.rho != 0.0
    norm = np.sqrt(machine.square) if has_margin else np.nan
    return {
        "name": machine.name,
        "norm": float(norm),
        "width": float(2.0 / norm) if norm != 0.0 else np.inf,
        "n_support": int(np.count_nonzero(machine.alpha)),
        "certificate": clf.certificates_[machine.number],
        "status": clf.statuses_[machine.number],
        "rho": machine.rho,
    }


def _may_be_wrong(machine: _Machine, radius: float | None) -> NDArray[np.bool_] | None:
    """Which samples a machine fitted without them may get wrong."""
    problem, alpha = machine.problem, machine.alpha
    if not problem.balanced:
        diagonal = problem.kernel.diagonal(problem.X)[problem.index]
        return alpha * diagonal >= machine.margins
    if radius is None:
        return None
    # Norm-2 slack is part of the kernel.
    slack = np.where(problem.ridge > 0.0, 0.0, machine.slack)
    return 2.0 * alpha * radius + slack >= 1.0


def _radius(problem: MarginProblem) -> float | None:
    """R² with c ≤ K(x, x') ≤ c + R² for all samples; None where nothing bounds it cheaply."""
    top, ridge = float(problem.kernel.diagonal(problem.X)[problem.index].max()), problem.ridge
    if problem.y.size > WHOLE:
        if isinstance(problem.kernel, RBF):
            return top + float(ridge.max())
        # |K(x, x')|² ≤ K(x, x) K(x', x').
        return 2.0 * top + float(ridge.max()) if problem.kernel.positive_semidefinite else None
    K = _gram(problem)
    # yᵀα = 0 makes any point of feature space as good an origin as another.
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, None] + mean.mean()
    spreads = []
    for values in (K, centred):
        lowest = values.min()
        values[np.diag_indices_from(values)] += ridge
        spreads.append(float(values.max() - lowest))
    return min(spreads)


def _gram(problem: MarginProblem) -> Floats:
    if isinstance(problem.kernel, Precomputed):
        return problem.X[np.ix_(problem.index, problem.index)].astype(np.float64)
    return problem.kernel(problem.X[problem.index].astype(np.float64))


# What was fitted, and on what ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Machine:
    """One task as the machine whose margin is 1, with what was recomputed of it.

    ``rho`` is that of a ν-machine, ``magnitude`` the largest Σ \\|α K\\| of a sample, to which
    rounding is relative.
    """

    number: int
    name: str
    problem: MarginProblem
    alpha: Floats
    margins: Floats
    square: float
    magnitude: float
    rho: float | None = None

    @property
    def slack(self) -> Floats:
        return np.maximum(1.0 - self.margins, 0.0)


def _trained(clf: Machine, training: Training, numbers: Iterable[int]) -> Iterator[_Machine]:
    """Yield tasks of the fit on its training data, which they are verified to come from."""
    tasks, dual = clf._tasks(training), _dense(clf.dual_coef_)
    for number in numbers:
        rows, labels = tasks[number].rows, tasks[number].labels
        order = np.argsort(rows)
        task = replace(tasks[number], rows=rows[order], labels=labels[order])
        coefficients = np.zeros(training.X.shape[0])
        coefficients[clf.support_] = _coefficients(clf, dual, number)
        problem = clf._pose(training, task)
        machine = _measure(clf, number, task, problem, coefficients[task.rows])
        # What ρ was is known of a ν-machine near its optimum only, where Σα = ν.
        near = clf.certificates_[number].relative_gap < KNOWN
        if machine.rho is None or (machine.rho > 0.0 and near):
            _check_bounds(machine)
            _check_primal(clf, machine)
        yield machine


def _supported(clf: Machine) -> Iterator[_Machine]:
    """Yield the tasks of the fit on support vectors alone, whose costs nobody knows."""
    codes, dual = _support_codes(clf), _dense(clf.dual_coef_)
    names = [str(name) for name in clf.classes_]
    tasks = clf._reduction().tasks(codes, np.arange(codes.size), names)
    for number, task in enumerate(tasks):
        unknown = np.full(task.rows.size, np.nan)
        problem = MarginProblem(
            clf.kernel_, clf.support_vectors_, task.labels, task.rows, unknown, unknown
        )
        yield _measure(clf, number, task, problem, _coefficients(clf, dual, number)[task.rows])


def _measure(
    clf: Machine, number: int, task: Task, problem: MarginProblem, coefficients: Floats
) -> _Machine:
    scores: Floats = np.empty(0)
    magnitude = 0.0
    if problem.index.size:  # a solver that diverged may leave no support vector
        scores, magnitude = kernel_scores(problem, coefficients)
    alpha = np.abs(coefficients)
    margins = problem.y * (scores + float(clf.intercept_[number]))
    square = float(coefficients @ scores)
    machine = _Machine(number, task.name, problem, alpha, margins, square, magnitude)
    if not isinstance(clf, NuSVC):
        return machine
    largest = float(problem.kernel.diagonal(problem.X)[problem.index].max(initial=0.0))
    # w = 0 has the primal value 0: what is not better has no margin, and was not divided by it.
    none = clf.certificates_[number].primal >= 0.0
    if none or square <= NO_MARGIN * float(alpha.sum()) ** 2 * largest:
        return replace(machine, rho=0.0)
    # Σα = ν before α was divided by ρ > 0.
    rho = float(clf.nu / alpha.sum())
    hinge = replace(problem, upper=problem.upper / rho, linear=1.0, total=0.0)
    return replace(machine, problem=hinge, rho=rho)


def _coefficients(clf: Machine, dual: Floats, number: int) -> Floats:
    """Return α y of one task for every support vector, from LIBSVM's layout for pairs."""
    if not isinstance(clf._reduction(), OneVsOne):
        return dual[number]
    i, j = OneVsOne.pairs(len(clf.classes_))[number]
    codes = _support_codes(clf)
    return np.select([codes == i, codes == j], [dual[j - 1], dual[i]], 0.0)


def _support_codes(clf: Machine) -> Integers:
    """Return the class number of every support vector: they come class by class."""
    return np.repeat(np.arange(len(clf.classes_)), clf.n_support_)


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


def _check_machine(clf: Any) -> None:
    if not isinstance(clf, (SVC, NuSVC)):
        raise TypeError(
            f"diagnostics are of SVC and NuSVC, got {type(clf).__name__}: pass the machine itself, "
            "which a pipeline or a search holds in [-1] or best_estimator_, with its own X."
        )
    check_is_fitted(clf)
    if isinstance(clf, SVC) and clf._fitted_with != clf.C:
        raise ValueError(
            f"C={clf.C:g} was set after the fit, which had C={clf._fitted_with:g}: fit again."
        )


def _check_tol(clf: Machine, tol: float | None) -> float:
    level = float(clf.tol if tol is None else tol)
    if not 0.0 <= level < 1.0:
        raise ValueError(f"tol={tol} is no distance from the margin: pass a number in [0, 1).")
    return level


def _task_number(clf: Machine, task: Any) -> int:
    n_tasks, classes = len(clf.intercept_), clf.classes_.tolist()
    if task is None and n_tasks == 1:
        return 0
    known: Sequence[Sequence[int]] = [(0, 1)]
    if n_tasks > 1:
        pairs = isinstance(clf._reduction(), OneVsOne)
        known = OneVsOne.pairs(len(classes)) if pairs else [(k,) for k in range(len(classes))]
    example = tuple(classes[k] for k in known[0])
    remedy = f"pass task=0 to {n_tasks - 1}, or labels such as task={example!r}."
    if task is None:
        raise ValueError(f"{len(classes)} classes make {n_tasks} tasks, a table each: {remedy}")
    if isinstance(task, (int, np.integer)) and not isinstance(task, bool):
        if 0 <= task < n_tasks:
            return int(task)
        raise ValueError(f"task={task} is not there: {remedy}")
    labels = list(task) if isinstance(task, Iterable) and not isinstance(task, str) else [task]
    for label in labels:
        if label not in classes:
            raise ValueError(f"task={task!r} names {label!r}, no class of {classes}: {remedy}")
    wanted = {classes.index(label) for label in labels}
    for number, codes in enumerate(known):
        if wanted == set(codes):
            return number
    raise ValueError(f"task={task!r} is not there: {remedy}")


def _check_data(clf: Machine, X: Any, y: Any, sample_weight: Any) -> Training:
    """Return the training data with the weights of the fit, if the model was fitted on them."""
    remedy = "pass the X, y and sample_weight of the fit, in the same order."
    # A copy, so that the model stays as it is whatever is passed.
    training = copy(clf)._check_training(X, y, sample_weight, reset=False)
    if training.X.shape != tuple(clf.shape_fit_):
        raise ValueError(
            f"X has shape {training.X.shape}, the model was fitted on {tuple(clf.shape_fit_)}: "
            f"{remedy}"
        )
    if not np.array_equal(training.classes, clf.classes_):
        raise ValueError(
            f"y holds the classes {training.classes.tolist()}, the model was fitted on "
            f"{clf.classes_.tolist()}: {remedy}"
        )
    codes = _support_codes(clf)
    others = np.flatnonzero(training.codes[clf.support_] != codes)
    if others.size:
        k = others[0]
        raise ValueError(
            f"y[{clf.support_[k]}] is {training.y[clf.support_[k]]!r}, a support vector of class "
            f"{clf.classes_[codes[k]]!r} in the fit: {remedy}"
        )
    if not isinstance(clf.kernel_, Precomputed):
        _check_vectors(clf, training.X[clf.support_], remedy)
    weights = training.sample_weights * clf.class_weight_[training.codes]
    absent = np.flatnonzero(weights[clf.support_] == 0.0)
    if absent.size:
        raise ValueError(
            f"sample_weight[{clf.support_[absent[0]]}] is 0, yet the sample is a support vector: "
            f"{remedy}"
        )
    return replace(training, weights=weights)


def _check_vectors(clf: Machine, given: Any, remedy: str) -> None:
    fitted = clf.support_vectors_
    if sparse.issparse(given) or sparse.issparse(fitted):
        unequal = (sparse.csr_matrix(given) != sparse.csr_matrix(fitted)).sum(axis=1)
    else:
        unequal = (given != fitted).sum(axis=1)
    others = np.flatnonzero(np.asarray(unequal).ravel())
    if others.size:
        raise ValueError(
            f"row {clf.support_[others[0]]} of X differs from the support vector that it was in "
            f"the fit: {remedy}"
        )


def _check_bounds(machine: _Machine) -> None:
    excess = machine.alpha - machine.problem.upper * (1.0 + AT_BOUND)
    worst = int(np.argmax(excess))
    if excess[worst] > 0.0:
        raise ValueError(
            f"α of row {machine.problem.index[worst]} is {machine.alpha[worst]:.6g}, above its "
            f"bound C_i = {machine.problem.upper[worst]:.6g}: the fit had other weights or "
            "parameters. Pass the sample_weight of the fit, or fit again."
        )


def _check_primal(clf: Machine, machine: _Machine) -> None:
    """Refuse data on which the model has another primal value than it had in the fit.

    The value falls as margins grow, and those of the fit are known to some accuracy only.
    """
    problem, certificate = machine.problem, clf.certificates_[machine.number]
    claimed = certificate.primal
    if isinstance(clf, NuSVC) and machine.rho:
        # ½‖w‖² − νρ + Σ u_i ξ_i of the ν-machine is ρ² times that of margin 1, less νρ.
        claimed = (claimed + clf.nu * machine.rho) / machine.rho**2
    if not np.isfinite(claimed):
        return
    known = 1e-12 * machine.magnitude
    if problem.balanced and machine.alpha.any():  # the certificate repairs yᵀα = 0
        known += 2.0 * abs(problem.y @ machine.alpha) / machine.alpha.sum() * machine.magnitude
    if certificate.n_checked < machine.alpha.size:
        # The others' scores are the solver's, which may be so far off before they are refused.
        known += DOUBTFUL * max(1.0, float(np.abs(machine.margins).max()))
    slack = 1e-6 * abs(claimed) + known * float(machine.alpha.sum())
    lowest, highest = (
        primal_value(problem, machine.square, machine.margins + shift) for shift in (known, -known)
    )
    if not lowest - slack <= claimed <= highest + slack:
        now = primal_value(problem, machine.square, machine.margins)
        raise ValueError(
            f"'{machine.name}' has the primal value {now:.8g} on these data, {claimed:.8g} in the "
            "fit: pass the X, y and sample_weight of the fit, in the same order."
        )


# Text ------------------------------------------------------------------------------------------


def _near_one(value: float) -> str:
    """Return a margin or a slack without the rounding of numbers of the size of 1."""
    return f"{round(float(value), 9):.6g}"


def _if_known(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _aligned(columns: Iterable[tuple[str, Iterable[str]]], left: Sequence[str]) -> list[str]:
    """Return lines of named columns two blanks apart, to the right but for those in ``left``."""
    padded = []
    for name, values in columns:
        cells = [name, *values]
        width = max(map(len, cells))
        padded.append([c.ljust(width) if name in left else c.rjust(width) for c in cells])
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]
