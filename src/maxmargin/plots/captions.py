"""What happened in the steps of a fit of two classes, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Floats, dense
from ..diagnostics.summary import Summary, summarize
from ..estimators.pocket import Pocket
from .canvas import number
from .recording import Caption, written
from .steps import Moment, Run

# Weights that are written out, and relative errors of an update that has a rule.
MOST_WEIGHTS = 4
ROUNDING = 1e-9
# Relative to P and D, what the solver's own sums of both may be off by.
SUM_ROUNDING = 1e-12


def captions_of(run: Run, errors: Sequence[int | None]) -> list[Caption]:
    """Return what is said of the start, of every step and of the answer.

    Parameters
    ----------
    run : Run
        The moments of a fit.
    errors : sequence of int or None
        How many samples are not on their side at every moment; None where there is no plane.
    """
    n, start = run.n_steps, _zero(run)
    steps = [
        Caption(
            f"Step {k:,} of {n:,}",
            _step(run, moment, before or start, wrong),
            _facts(run, moment, plane=moment.sample is None or moment.w is None),
        )
        for k, moment, before, wrong in zip(
            run.numbers, run.moments, run.before, errors, strict=True
        )
    ]
    if not run.ends_with_step:
        steps.pop()
    return [_start(run, start), *steps, _answer(run, errors[-1])]


def _zero(run: Run) -> Moment | None:
    """Return the state before the first update by one sample where it is known to be 0."""
    clf, first = run.model.classifier, run.moments[0]
    if first.sample is None or getattr(clf, "init", "zeros") != "zeros":
        return None
    if getattr(clf, "warm_start", False):
        return None
    w, alpha = (None if part is None else np.zeros_like(part) for part in (first.w, first.alpha))
    return Moment(0, math.nan, None, w, 0.0, alpha)


def _start(run: Run, zero: Moment | None) -> Caption:
    n = number(len(run.signs), "sample")
    state = "no plane is drawn yet"
    if zero is not None:
        state = f"{'α' if zero.w is None else 'w'} = 0 and b = 0: there is no plane yet"
    return Caption("Start", f"{n}, before the first step; {state}.")


def _step(run: Run, moment: Moment, before: Moment | None, errors: int | None) -> str:
    if moment.sample is not None:
        happened = f"{_reason(run, moment.sample, before)}: {_update(run, moment, before)}"
    elif pair := moved_rows(moment, before):
        happened = _moved_pair(moment, pair)
    elif moment.unit == "step":
        return f"{errors_in_words(errors)}."
    else:
        happened = f"After {moment.unit} {moment.iteration:,}"
        if isinstance(run.model.classifier, Pocket) and moment.unit == "pass":
            happened += ", the plane in the pocket"
    return f"{happened}. {errors_in_words(errors)}."


def errors_in_words(errors: int | None) -> str:
    """Return how many samples are not on their side; None where w = 0.

    >>> errors_in_words(1), errors_in_words(0)
    ('1 point is not on its side', 'All points are on their sides')
    """
    if errors is None:
        return "w = 0: there is no plane"
    if not errors:
        return "All points are on their sides"
    are = "is not on its side" if errors == 1 else "are not on their sides"
    return f"{number(errors, 'point')} {are}"


def _reason(run: Run, row: int, before: Moment | None) -> str:
    """Return the sample that is corrected, and where it was before."""
    point = f"Point {row + 1:,}"
    if before is None:
        return f"{point} is corrected"
    margin = float(run.signs[row] * run.evaluator(run.X[[row]])(before)[0])
    value = f"y g(x) = {written(margin)}"
    return f"{point} is on the wrong side, {value}" if margin < 0.0 else f"{point} has {value}"


def _update(run: Run, moment: Moment, before: Moment | None) -> str:
    """Return w and b after an update by one sample, and the rule where the numbers follow it."""
    row = moment.sample
    if moment.w is None:
        assert moment.alpha is not None
        return f"α ← {written(float(moment.alpha[row]))}, b = {written(moment.b)}"
    if len(moment.w) > MOST_WEIGHTS or run.model.steps:
        return "w and b are changed"
    rate = _rate(run, moment, before)
    if rate is None:
        return f"w = {vector(moment.w)}, b = {written(moment.b)}"
    sign, size = "+" if rate > 0 else "−", abs(rate)
    factor = "" if math.isclose(size, 1.0, rel_tol=ROUNDING) else f"{written(size)} "
    return f"w ← w {sign} {factor}y x = {vector(moment.w)}, b = {written(moment.b)}"


def _rate(run: Run, moment: Moment, before: Moment | None) -> float | None:
    """Return r of w ← w + r y x where w has changed in this way."""
    if moment.w is None or before is None or before.w is None:
        return None
    way = run.signs[moment.sample] * dense(run.X[[moment.sample]]).ravel()
    change = moment.w - before.w
    rate = float(change @ way / max(float(way @ way), 1e-300))
    near = np.abs(change - rate * way).max() <= ROUNDING * np.abs([moment.w, before.w]).max()
    return rate if near and rate else None


def vector(values: Floats) -> str:
    """Return a vector.

    >>> vector(np.array([2.0, -1.0]))
    '(2, −1)'
    """
    return f"({', '.join(map(written, values.tolist()))})"


def _moved_pair(moment: Moment, rows: list[int]) -> str:
    """Return which one or two α have changed, and to what."""
    assert moment.alpha is not None
    points = " and ".join(f"{row + 1:,}" for row in rows)
    values = " and ".join(written(value) for value in moment.alpha[rows].tolist())
    verb = "becomes" if len(rows) == 1 else "become"
    return f"α of {'point' if len(rows) == 1 else 'points'} {points} {verb} {values}"


def moved_rows(moment: Moment, before: Moment | None) -> list[int]:
    """Return the row that was corrected, or the one or two rows whose α changed."""
    if moment.sample is not None:
        return [moment.sample]
    if moment.alpha is None or (before is not None and before.alpha is None):
        return []
    last = np.zeros_like(moment.alpha) if before is None else before.alpha
    changed = np.flatnonzero(moment.alpha != last).tolist()
    return changed if len(changed) <= 2 else []


def _facts(run: Run, moment: Moment, *, plane: bool) -> str:
    """Return the plane where it is wanted, how many α are not 0, and P and D where known."""
    facts, w = [], run.weights(moment)
    if plane and w is not None and len(w) <= MOST_WEIGHTS and not run.model.steps:
        facts.append(f"w = {vector(w)}, b = {written(moment.b)}")
    if moment.alpha is not None:
        facts.append(f"{number(int(np.count_nonzero(moment.alpha)), 'sample')} with α > 0")
    return " · ".join([*facts, *bounds(moment.primal, moment.dual)])


def bounds(primal: float, dual: float) -> list[str]:
    """Return P, D and their gap, those that are known.

    >>> bounds(2.0, 1.5), bounds(2.0, math.nan), bounds(2.0, 2.0 + 4e-16)
    (['primal 2', 'dual 1.5', 'gap 0.5'], ['primal 2'], ['primal 2', 'dual 2', 'gap 0 to rounding'])
    """
    sides = {"primal": (primal, 6), "dual": (dual, 6), "gap": (primal - dual, 2)}
    told = [f"{name} {written(*value)}" for name, value in sides.items() if math.isfinite(value[0])]
    is_rounding = abs(primal - dual) <= SUM_ROUNDING * max(abs(primal), abs(dual))
    return [*told[:2], "gap 0 to rounding"] if is_rounding else told


def thinned_in_words(shown: int, n: int) -> list[str]:
    """Return how many of n steps are shown, where some are left out.

    >>> thinned_in_words(100, 700), thinned_in_words(99, 100), thinned_in_words(100, 100)
    (['100 of 700 steps shown, about one in 7'], ['99 of 100 steps shown'], [])
    >>> thinned_in_words(100, 16244)
    ['100 of 16,244 steps shown, about one in 162']
    """
    if shown >= n:
        return []
    share = f"{n / shown:.2g}" if n < 10 * shown else f"{n / shown:,.0f}"
    about = "" if share == "1" else f", about one in {share}"
    return [f"{shown:,} of {n:,} steps shown{about}"]


def run_in_words(run: Run) -> str:
    """Return that the steps overflow, or are not those of this fit, where it is so."""
    parts = []
    if run.is_another_fit:
        parts.append("the steps are those of another fit with the same parameters")
    if run.ends_elsewhere:
        parts[-1] += ", which ended elsewhere"
    if run.overflows:
        parts.append("the steps end where the numbers overflow")
    return "; ".join(parts)


def _answer(run: Run, errors: int | None) -> Caption:
    """Return how the fit ended, with what its certificate proves."""
    found = summarize(run.model.model)
    facts = _facts(run, run.moments[-1], plane=True)
    return Caption(
        "The answer", f"{proved_in_words(found)} {errors_in_words(errors)}.", facts,
        found.is_proved,
    )  # fmt: skip


def proved_in_words(found: Summary) -> str:
    """Return the end of a fit and its certificate as sentences."""
    if found.certificate is None:
        return "There is no certificate."
    verdict = "Proved" if found.is_proved else "Not proved"
    if found.coverage == "sampled":
        verdict = "Checked on a sample, not proved"
    ended = f"{found.ended}"
    return f"{ended[:1].upper()}{ended[1:]}. {verdict}: {found.certificate}."
