"""Hard margins end with a separating plane, a verified proof, or the word "undecided"."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from . import checks, oracles
from .generators import SHAPES, Case, labels_of_both, seeds, separated, sets_on_a_line

few = settings(max_examples=6, deadline=None, phases=(Phase.explicit, Phase.generate))
MACHINES = {
    "SVC": ("SVC", {"kernel": ("linear",)}),
    "SVC active-set": ("SVC", {"kernel": ("linear",), "solver": "active-set"}),
    "SVC decomposition": ("SVC", {"kernel": ("linear",), "solver": "decomposition"}),
    "SVC qp": ("SVC", {"kernel": ("linear",), "solver": "qp"}),
    "LinearSVC": ("LinearSVC", {}),
    "LinearSVC newton": ("LinearSVC", {"solver": "newton"}),
    "LinearSVC interior-point": ("LinearSVC", {"solver": "interior-point"}),
    "LinearSVC coordinate-descent": ("LinearSVC", {"solver": "coordinate-descent"}),
}
machines = pytest.mark.parametrize("machine", MACHINES)


def outcome(machine, X, y, truth=None, kernel=("linear",)):
    """Return (verdict, findings): True separated, False refuted, None undecided."""
    estimator, params = MACHINES[machine] if isinstance(machine, str) else machine
    case = Case(estimator, {"C": np.inf, **params}, X, y, None, "hard margin")
    answer = checks.run(case)
    if "hang" in answer or "crash" in answer:
        return "ended", checks.ended(answer)
    words = [text for _, text in answer.get("warnings", [])] + [answer.get("message", "")]
    if truth is None:
        truth = oracles.separable(oracles.rational(X), y.tolist())
    if "error" in answer:
        return _refused(answer, words, X, y, truth, kernel)
    labels = np.where(y == answer["classes"][1], 1, -1)
    found = checks.claims(case, answer, checks.exact_truth(case, answer))
    found += [each for each in checks.warned(case, answer) if not each.startswith("stray")]
    margins = labels * answer["decision"]
    if kernel == ("linear",):
        w, b = oracles.rational(answer["coef"][0]), Fraction(float(answer["intercept"][0]))
        right = oracles.separates(oracles.rational(X), labels.tolist(), w, b)
    else:
        right = bool(margins.min() > 0)
    if right:
        return True, found
    if any("undecided" in text for text in words):
        return None, found
    return "wrong", [*found, f"plane: {words} and a plane that separates nothing"]


def _refused(answer, words, X, y, truth, kernel):
    if answer["error"] == "NotSeparableError" and "undecided" not in answer["message"]:
        found = []
        if truth:
            found.append(f"refuted: separable, but {answer['message']}")
        if not answer["proof"] or answer["proof"]["multipliers"] is None:
            found.append("refuted: the error carries no multipliers")
        elif kernel == ("linear",):
            used = np.flatnonzero(answer["proof"]["multipliers"])
            if oracles.separable([oracles.rational(X)[i] for i in used], y[used].tolist()):
                found.append("refuted: the rows of the proof are separable")
        return False, found
    if any("undecided" in text for text in words):
        return None, []
    return "error", [f"error: {answer['error']}: {answer['message']}"]


def assert_right(machine, X, y, decided, **options):
    truth = options.pop("truth", oracles.separable(oracles.rational(X), y.tolist()))
    said, found = outcome(machine, X, y, truth, **options)
    text = f"{X.tolist()}, {y.tolist()}: said {said}, is {truth}; {found}"
    assert not found, text
    assert said in ((truth,) if decided else (truth, None)), text


@machines
def test_all_small_sets_on_a_line_are_decided(machine):
    sets = list(sets_on_a_line())
    wrong = []
    for X, y in sets if machine in ("SVC", "LinearSVC") else sets[::9]:
        truth = oracles.separable(oracles.rational(X), y.tolist())
        said, found = outcome(machine, X, y, truth)
        if said is not truth or found:
            wrong.append((X.ravel().tolist(), y.tolist(), said, truth, found))
        if len(wrong) > 5:
            break
    assert not wrong, "\n".join(map(str, wrong))


@machines
@few
@given(shape=st.sampled_from(sorted(SHAPES)), seed=seeds, n=st.integers(2, 16))
def test_verdicts_are_never_wrong(machine, shape, seed, n):
    X, y = SHAPES[shape](np.random.default_rng(seed), n, 2)
    assert_right(machine, X, labels_of_both(y), decided=False)


@machines
@few
@given(seed=seeds, exponent=st.integers(0, 5), d=st.integers(1, 4))
def test_clear_margins_are_found(machine, seed, exponent, d):
    X, y = separated(np.random.default_rng(seed), 14, d, 10.0**-exponent)
    assert_right(machine, X, y, decided=True)


@machines
@few
@given(seed=seeds, exponent=st.integers(6, 12))
def test_small_margins_are_found_or_undecided(machine, seed, exponent):
    X, y = separated(np.random.default_rng(seed), 12, 2, 10.0**-exponent)
    assert_right(machine, X, y, decided=False)


@machines
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1e7, 0.0], [1e7 + 2, 0.0]], [-1, 1]),
        ([[1.0], [1.0000001]], [-1, 1]),
        ([[-2.0], [-1.0], [2.0]], [-1, 1, -1]),
        ([[0.0], [0.0]], [-1, 1]),
        ([[-1e-4], [1e-4], [-2.2], [1.5], [-0.5], [0.3]], [-1, 1, -1, 1, -1, 1]),
        ([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [-1, -1, 1, 1]),
    ],
)
def test_known_sets_are_decided(machine, X, y):
    assert_right(machine, np.array(X), np.array(y), decided=True)


@few
@given(seed=seeds, n=st.integers(2, 14), coef0=st.sampled_from([0.0, 1.0]))
def test_polynomial_verdicts_are_never_wrong(seed, n, coef0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, 2)).astype(float)
    y = labels_of_both(rng.choice([-1, 1], size=n))
    kernel = ("poly", 2, 1.0, coef0)
    features = oracles.monomials(oracles.rational(X), 2, homogeneous=coef0 == 0.0)
    truth = oracles.separable(features, y.tolist())
    machine = ("SVC", {"kernel": kernel})
    assert_right(machine, X, y, decided=False, truth=truth, kernel=kernel)


@few
@given(seed=seeds, n=st.integers(2, 14), exponent=st.integers(0, 7))
def test_distinct_rows_are_separable_by_a_gaussian(seed, n, exponent):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(n, 2)).astype(float) * 10.0**-exponent
    y = labels_of_both(rng.choice([-1, 1], size=n))
    signs = {tuple(x): set() for x in X.tolist()}
    for x, s in zip(X.tolist(), y, strict=True):
        signs[tuple(x)].add(int(s))
    truth = all(len(s) == 1 for s in signs.values())
    machine = ("SVC", {"kernel": ("rbf", 1.0)})
    assert_right(machine, X, y, decided=exponent == 0, truth=truth, kernel=("rbf", 1.0))


@pytest.mark.parametrize("solver", ["auto", "active-set", "decomposition", "smo", "qp"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_finite_costs_have_no_hard_margin_error(solver, loss):
    for x in (0.0, 1.0, 1e7):
        X, y = np.array([[x], [x]]), np.array([0, 1])
        params = {"C": 1.0, "loss": loss, "solver": solver, "kernel": ("linear",)}
        case = Case("SVC", params, X, y, None, f"twice {x:g}")
        found = checks.small(case)
        assert not found, "\n".join([str(case), *found])
