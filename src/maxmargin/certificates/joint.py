"""How far a linear machine of several classes is from its optimum."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

import numpy as np

from ..arrays import Floats, Integers, blocks_of, row_block, row_length
from ..problems import JointKernelProblem, JointProblem
from ..problems.circulation import circulation
from ..runtime.threads import in_parallel
from ..runtime.vectors import in_slices
from ..solution import Solution
from .base import certify
from .centring import Origin, frobenius, row_norms, score_error, sum_error
from .dual import MarginCertificate
from .dual_tasks import ROUNDING
from .scores import UNIT


@dataclass(frozen=True)
class JointMarginCertificate(MarginCertificate):
    """How far a linear machine of c classes is from its optimum.

    P is that of w and b themselves; D that of α after it was made feasible, which no answer can
    undercut. ``violation`` is by how much a class k with α_i^k < 0 (or α_i^y < C_i of the own one)
    falls short of the largest of (k ≠ y) + w_k·x_i + b_k; ``balance`` is the largest Σ_i α_i^k
    relative to Σ_i α_i^y, where the bias is free; ``box`` how far α was outside of its bounds, or
    Σ_k α_i^k from 0.
    """

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the relative duality gap is at most ``tol``."""
        return self.relative_gap <= tol


@certify.register
def _(
    problem: JointProblem, solution: Solution, *, sample: int | None = None
) -> JointMarginCertificate:
    assert solution.alpha is not None
    problem = problem.on_host()
    flows = rival_flows(problem, solution.alpha)
    alpha = dual_variables(problem.labels, flows)
    scale = max(1.0, float(np.abs(alpha).max(initial=0.0)))
    box = float(np.abs(alpha - solution.alpha).max(initial=0.0)) / scale
    origin = Origin(problem.X, problem.bias == "free")
    biases = np.array([origin.bias(w, b) for w, b in zip(solution.w, solution.b, strict=True)])
    planes = solution.w[:, origin.order], biases
    loss, blur, violation = _losses(problem, origin, *planes, alpha)
    balance = 0.0
    if problem.bias == "free":
        balance = float(np.abs(alpha.sum(axis=0)).max()) / max(1.0, float(flows.sum()))
        flows = circulating(problem.labels, flows)
        alpha = dual_variables(problem.labels, flows)
    s = problem.intercept_scaling if problem.bias == "penalised" else 0.0
    penalty = 1.0 / s**2 if s else 0.0
    w, wrong = combined(problem.X, alpha, origin)
    square = float(np.vdot(w, w)) + s**2 * float(np.sum(alpha.sum(axis=0) ** 2))
    dual = float(flows.sum()) - 0.5 * square
    square = float(np.vdot(solution.w, solution.w)) + penalty * float(solution.b @ solution.b)
    primal = 0.5 * square + loss
    error = blur + wrong * (float(np.linalg.norm(w)) + 0.5 * wrong)
    if problem.bias == "free":  # what rounding leaves of Σ_i α_i^k
        rest = float(np.abs(alpha.sum(axis=0)).max()) + 64.0 * UNIT * float(flows.sum())
        error += rest * float(np.abs(biases).sum())
    gap = primal - dual + error + 64.0 * UNIT * (abs(primal) + abs(dual))
    return JointMarginCertificate(
        primal, dual, gap, gap / max(abs(primal) - blur, float(np.finfo(float).tiny)), violation,
        balance, box, n_checked=len(problem.labels), n_samples=len(problem.labels),
    )  # fmt: skip


def rival_flows(problem: JointProblem | JointKernelProblem, alpha: Floats) -> Floats:
    """Return −α_i^k ≥ 0 of the rival classes k ≠ y_i, 0 of the own class: (n, c).

    What flows from class y_i to its rivals says all about α: Σ_k α_i^k = 0 gives the rest. Negative
    flows are cut off, and those that add up to more than C_i scaled down to it.
    """
    flows: Floats = np.empty(alpha.shape)

    def cut(some: slice) -> None:
        here, labels, cost = flows[some], problem.labels[some], problem.cost[some]
        np.maximum(-np.asarray(alpha[some], dtype=np.float64), 0.0, out=here)
        here[np.arange(len(here)), labels] = 0.0
        totals = here.sum(axis=1)
        over = totals > cost
        here[over] *= (cost[over] / totals[over])[:, np.newaxis]

    in_slices(cut, len(flows), flows.shape[1])
    return flows


def dual_variables(labels: Integers, flows: Floats) -> Floats:
    """Return α of the flows to rival classes."""
    alpha = np.empty_like(flows)

    def write(some: slice) -> None:
        np.negative(flows[some], out=alpha[some])
        alpha[some][np.arange(len(flows[some])), labels[some]] = flows[some].sum(axis=1)

    in_slices(write, len(flows), flows.shape[1])
    return alpha


def circulating(labels: Integers, flows: Floats) -> Floats:
    """Return flows, none of them larger than before, with Σ_i α_i^k = 0 for every class k.

    All that matters are the sums F_kl of what flows from class k to class l, and a factor
    0 ≤ f_kl ≤ 1 for each of them: as much must flow out of a class as into it.
    """
    n_classes = flows.shape[1]
    sums = np.zeros((n_classes, n_classes))
    for k in range(n_classes):
        sums[k] = flows[labels == k].sum(axis=0)
    factors = circulation(sums) / np.where(sums > 0.0, sums, 1.0)
    return flows * factors[labels]


def combined(X: object, alpha: Floats, origin: Origin) -> tuple[Floats, float]:
    """Return w_k = Σ_i α_i^k x_i of every class, (c, d), and a bound of its rounding errors."""

    def part(block: slice, stop: Event) -> tuple[Floats, float]:
        x = origin.rows(row_block(X, block))
        error = sum_error(frobenius(x), alpha[block], x.shape[0])
        return np.asarray(x.T @ alpha[block]).T, error

    done = in_parallel(part, list(blocks_of(len(alpha), row_length(X))))
    w = np.zeros((alpha.shape[1], X.shape[1]))  # type: ignore[attr-defined]
    for some, _ in done:
        w += some
    return w, sum(error for _, error in done)


def _losses(
    problem: JointProblem, origin: Origin, w: Floats, b: Floats, alpha: Floats
) -> tuple[float, float, float]:
    """Return Σ C_i ξ_i, a bound of its rounding errors, and the worst KKT violation."""
    longest, largest = float(np.linalg.norm(w, axis=1).max()), float(np.abs(b).max())

    def part(block: slice, stop: Event) -> tuple[float, float, float]:
        labels, cost = problem.labels[block], problem.cost[block]
        own = np.arange(labels.size), labels
        x = origin.rows(row_block(problem.X, block))
        values = x @ w.T + b + 1.0
        values[own] -= 1.0
        wrong = score_error(row_norms(x), longest, largest + 1.0, x.shape[1])
        top = values.max(axis=1)
        slack = top - values[own]
        loss = float(cost @ slack)
        # A sample whose own class leads by more than rounding has no slack for certain.
        values[own] -= 2.0 * wrong
        blur = float(cost @ (values.max(axis=1) - values[own] - slack))
        values[own] += 2.0 * wrong
        # What a class has of C_i: −α of a rival, C − α of the own one; 0 is what rounding makes.
        shares = -alpha[block]
        shares[own] += cost
        short = np.where(shares > ROUNDING * cost[:, np.newaxis], top[:, np.newaxis] - values, 0.0)
        short += np.where(short > 0.0, 2.0 * wrong[:, np.newaxis], 0.0)
        return loss, blur, float(short.max(initial=0.0))

    blocks = list(blocks_of(len(alpha), row_length(problem.X) + alpha.shape[1]))
    losses, blurs, violations = zip(*in_parallel(part, blocks), strict=True)
    return sum(losses), sum(blurs), max(0.0, *violations)
