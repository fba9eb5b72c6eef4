"""Why a point has its α: the KKT conditions in words, to the tolerance of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

import maxmargin as mm

from ..diagnostics.fitted_model import FittedModel
from ..progress import counted
from .fitting import Outcome
from .notation import number
from .picture import Picture

# α is 0 or its bound C up to this share of the largest α, or of C.
ALPHA_ROUNDING = 1e-6
INEXACT = "the conditions hold to the tolerance of the fit only"


def reason_of(outcome: Outcome, picture: Picture, k: int, i: int, pair: str) -> list[str]:
    """Return the numbers of point i at step k or in the answer, and why they are so."""
    model, family = outcome.model, outcome.request.recipe.family
    at_step = k < len(outcome.frames)
    if not at_step and not picture.flat and FittedModel(model).is_any_machine:
        table = _table(outcome, pair)
        if table is not None:
            rows = np.flatnonzero(table.index == i)
            if not rows.size:
                return [f"It takes no part in {table.task}."]
            explain = {"regression": _of_tube, "one-class": _of_region}.get(family, _of_margin)
            return explain(outcome, table, int(rows[0]))
    return _numbers(outcome, picture, i, at_step=at_step)


def _table(outcome: Outcome, pair: str) -> Any:
    """Return the support table of a machine, None of joint models and fits that were stopped."""
    X, y = outcome.request.training
    model = outcome.model
    names = FittedModel(model).plane_names
    task = names.index(pair) if len(names) > 1 and pair in names else None
    try:
        return mm.diagnostics.support_table(model, X, y, task=task)
    except (ValueError, TypeError):
        return None


def _numbers(outcome: Outcome, picture: Picture, i: int, *, at_step: bool) -> list[str]:
    """Return what is known of a point at a step, or of a rule without a dual problem."""
    parts = []
    if picture.alpha is not None:
        parts.append(f"α = {number(float(picture.alpha[i]))}")
    if picture.predicted is not None:
        y = float(outcome.request.training[1][i])
        parts.append(f"y = {number(y)}, g = {number(float(picture.predicted[i]))}")
        parts.append(f"y − g = {number(y - float(picture.predicted[i]))}")
        return [", ".join(parts)]
    if picture.margins is None:
        wrong = picture.wrong is not None and bool(picture.wrong[i])
        text = "in the region of another class" if wrong else "in the region of its class"
        return [", ".join(parts)] * bool(parts) + ([text] if picture.wrong is not None else [])
    margin = float(picture.margins[i])
    one_class = outcome.request.recipe.family == "one-class"
    parts.append(f"{'g' if one_class else 'y·g'} = {number(margin)}")
    banded = bool(picture.band)
    if banded:
        parts.append(f"ξ = {number(max(1.0 - margin, 0.0))}")
    lines = [", ".join(parts), "" if one_class else _side(margin, banded=banded)]
    if isinstance(outcome.model, mm.KernelPerceptron) and picture.alpha is not None:
        n = int(picture.alpha[i])
        so_far = " so far" if at_step else ""
        lines.append(f"α counts mistakes: the point was corrected {counted(n, 'time')}{so_far}.")
    return [line for line in lines if line]


def _side(margin: float, *, banded: bool) -> str:
    """Return the side of the line on which a point is."""
    if abs(margin) <= 1e-12:
        return "On the line: y·g = 0."
    if margin < 0.0:
        return "On the wrong side: y·g < 0."
    if banded and margin < 1.0:
        return "On its side, inside the band: 0 < y·g < 1."
    return "On its side: y·g > 0."


# Machines ----------------------------------------------------------------------------------------


def _of_margin(outcome: Outcome, table: Any, row: int) -> list[str]:
    """Return y·g, α and ξ of a point of a classifier, and its KKT condition."""
    margin, alpha = float(table.margin[row]), float(table.alpha[row])
    numbers = f"α = {number(alpha)}, y·g = {number(margin)}, ξ = {number(float(table.slack[row]))}"
    level, bound = float(table.tol), float(table.bound[row])
    top = "its bound" if isinstance(outcome.model, mm.NuSVC) else "C"
    where = "on the wrong side" if margin < 0.0 else "inside the band"
    found = _reason(
        alpha, bound, float(table.cost[row]), float(np.max(table.alpha)),
        inner=margin > 1.0 + level, outer=margin < 1.0 - level, symbol="α", top=top,
        relation=f"y·g = {number(margin)}", limit="1", signs=(">", "<"),
        holds="it holds the band", beyond=where, slack=float(table.slack[row]),
    )  # fmt: skip
    return [numbers, found]


def _of_tube(outcome: Outcome, table: Any, row: int) -> list[str]:
    """Return the residual, α and ξ of a target, and its KKT condition."""
    residual, alpha = float(table.residual[row]), float(table.alpha[row])
    numbers = (
        f"y = {number(float(table.target[row]))}, g = {number(float(table.prediction[row]))}, "
        f"y − g = {number(residual)}, α − α* = {number(alpha)}, "
        f"ξ = {number(float(table.slack[row]))}"
    )
    size, epsilon = abs(residual), float(table.epsilon)
    side = "above the tube" if residual > 0.0 else "below the tube"
    found = _reason(
        abs(alpha), float(table.bound[row]), float(table.cost[row]),
        float(np.abs(table.alpha).max()), inner=size < epsilon - table.tol,
        outer=size > epsilon + table.tol, symbol="|α − α*|", top="C",
        relation=f"|y − g| = {number(size)}", limit=f"ε = {number(epsilon)}",
        signs=("<", ">"), holds="it is on the edge and holds the tube", beyond=side,
        slack=float(table.slack[row]),
    )  # fmt: skip
    return [numbers, found]


def _of_region(outcome: Outcome, table: Any, row: int) -> list[str]:
    """Return g, α and ξ of a point of a one-class machine, and its KKT condition."""
    g, alpha = float(table.score[row]), float(table.alpha[row])
    numbers = f"α = {number(alpha)}, g = {number(g)}, ξ = {number(float(table.slack[row]))}"
    found = _reason(
        alpha, float(table.bound[row]), float(table.bound[row]), float(np.max(table.alpha)),
        inner=g > table.tol, outer=g < -table.tol, symbol="α", top="its bound",
        relation=f"g = {number(g)}", limit="0", signs=(">", "<"),
        holds="it is on the boundary and holds the region", beyond="an outlier",
        slack=float(table.slack[row]),
    )  # fmt: skip
    return [numbers, found]


def _reason(
    alpha: float, bound: float, cost: float, largest: float, *, inner: bool, outer: bool,
    symbol: str, top: str, relation: str, limit: str, signs: tuple[str, str], holds: str,
    beyond: str, slack: float,
) -> str:  # fmt: skip
    """Return the KKT condition that a point fulfils.

    ``inner`` says that the constraint is not active, ``outer`` that it takes slack; ``limit`` is
    the value in between, and ``signs`` are those of the relation to it.
    """
    inside, outside = signs
    is_zero = alpha <= ALPHA_ROUNDING * max(largest, np.finfo(float).tiny)
    squared = not np.isfinite(bound) and np.isfinite(cost)
    is_full = np.isfinite(bound) and alpha >= (1.0 - ALPHA_ROUNDING) * bound
    if inner and is_zero:
        return f"{symbol} = 0 because {relation} {inside} {limit}."
    if outer and is_full:
        return f"{symbol} = {top} because {relation} {outside} {limit}: {beyond}."
    if outer and squared and abs(alpha - 2.0 * cost * slack) <= 0.01 * alpha:
        return f"{symbol} = 2Cξ because {relation} {outside} {limit}: {beyond}."
    if not (inner or outer):
        here = _equal(relation, limit)
        if is_zero:
            return f"{symbol} = 0 although {here}: it is on the edge, and is not needed to hold it."
        if is_full:
            return f"{symbol} = {top} and {here}: on the edge, with the largest {symbol} allowed."
        below = "" if not np.isfinite(bound) else f" < {top}"
        return f"0 < {symbol}{below} because {here}: {holds}."
    sign = inside if inner else outside
    return f"{symbol} = {number(alpha)} with {relation} {sign} {limit}: {INEXACT}."


def _equal(relation: str, limit: str) -> str:
    """Return that a number is at its limit, to the tolerance of the fit."""
    return f"{relation.split(' = ')[0]} = {limit.split(' = ')[0]}"
