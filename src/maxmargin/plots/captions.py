"""What happened in the steps of a fit of two classes, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Floats
from ..diagnostics.summary import Summary, summarize
from .canvas import number
from .recording import Caption, written
from .steps import Moment, Run

# Weights that are written out, and relative errors of an update that has a rule.
MOST_WEIGHTS = 4
ROUNDING = 1e-9


def captions_of(run: Run, errors: Sequence[int | None]) -> list[Caption]:
    """Return what is said of the start, of every step and of the answer.

    Parameters
    ----------
    run : Run
        The moments of a fit.
    errors : sequence of int or None
        How many samples are not on their side at every moment; None where there is no plane.
    """
    n = run.n_steps
    steps = [
        Caption(
            f"Step {k:,} of {n:,}",
            _step(run, moment, before, wrong),
            _facts(run, moment, plane=moment.sample is None or moment.w is None),
        )
        for k, moment, before, wrong in zip(
            run.numbers, run.moments, run.before, errors, strict=True
        )
    ]
    if not run.ends_with_step:
        steps.pop()
    return [_start(run), *steps, _answer(run, errors[-1])]


def _start(run: Run) -> Caption:
    n = number(len(run.signs), "sample")
    first = run.moments[0]
    zero = run.n_steps > 0 and first.sample is not None and _rate(run, first, None) is not None
    state = "w = 0 and b = 0: there is no plane yet" if zero else "no plane is drawn yet"
    return Caption("Start", f"{n}, before the first step; {state}.")


def _step(run: Run, moment: Moment, before: Moment | None, errors: int | None) -> str:
    if moment.sample is not None:
        happened = f"{_reason(run, moment, before)}: {_update(run, moment, before)}"
    elif pair := moved_rows(moment, before):
        happened = _moved_pair(moment, pair)
    elif moment.unit != "step":
        happened = f"After {moment.unit} {moment.iteration:,}"
    else:
        happened = ""
    return f"{happened}{'. ' if happened else ''}{errors_in_words(errors)}."


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


def _reason(run: Run, moment: Moment, before: Moment | None) -> str:
    """Return the sample that is corrected, and where it was before."""
    row = moment.sample
    assert row is not None
    point = f"Point {row + 1:,}"
    if before is None:
        return f"{point} is corrected first"
    margin = float(run.signs[row] * run.evaluator(run.X[[row]])(before)[0])
    value = f"y g(x) = {written(margin)}"
    if margin < 0.0:
        return f"{point} is on the wrong side, {value}"
    return f"{point} is on the plane, {value}" if margin == 0.0 else f"{point} has {value}"


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
    """Return r of w ← w + r y x where w has changed in this way, from 0 without a state before."""
    if moment.w is None or moment.sample is None:
        return None
    x = np.asarray(run.X[[moment.sample]].todense() if hasattr(run.X, "todense") else
                   run.X[[moment.sample]], dtype=float).ravel()  # fmt: skip
    before_w = np.zeros_like(moment.w) if before is None else before.w
    if before_w is None or not x.any():
        return None
    change, way = moment.w - before_w, run.signs[moment.sample] * x
    rate = float(change @ way / (way @ way))
    near = np.abs(change - rate * way).max() <= ROUNDING * np.abs([moment.w, before_w]).max()
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

    >>> bounds(2.0, 1.5), bounds(2.0, math.nan)
    (['primal 2', 'dual 1.5', 'gap 0.5'], ['primal 2'])
    """
    sides = {"primal": (primal, 6), "dual": (dual, 6), "gap": (primal - dual, 2)}
    return [f"{name} {written(*value)}" for name, value in sides.items() if math.isfinite(value[0])]


def thinned_in_words(shown: int, n: int) -> list[str]:
    """Return how many of n steps are shown, where some are left out.

    >>> thinned_in_words(100, 700), thinned_in_words(100, 100)
    (['100 of 700 steps shown, about one in 7'], [])
    """
    return [f"{shown:,} of {n:,} steps shown, about one in {n / shown:.2g}"] if shown < n else []


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
