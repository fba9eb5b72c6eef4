"""Cross-validated scores of the lab's points over C and γ."""

import threading
import time

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score

import maxmargin as mm

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab import searching
from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.background import Background
from maxmargin.lab.points import SAMPLES, checked
from maxmargin.lab.searching import Question, Scores, SearchLimits, search
from tests.helpers.lab import never, points_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def no_limits(monkeypatch):
    """Let searches take their time: what they find must not depend on the speed of a machine."""
    monkeypatch.setattr(searching, "LIMITS", SearchLimits(seconds=600.0, piece_seconds=600.0))


def question(points=None, key="svc", **values):
    points = points_of() if points is None else points
    return Question.of(points, key, ALGORITHMS[key].defaults() | values)


def searched(asked):
    told = []
    search(asked, never, told.append)
    return told[-1]


def line(n):
    """Return points on a line with a slope, for a regression."""
    x = np.linspace(-2.0, 2.0, n)
    return checked(np.column_stack([x, 3.0 * x + np.sin(9.0 * x)]), np.zeros(n))


def test_scores_are_those_of_scikit_learn_and_certified():
    asked = question(kernel="rbf")
    scores = searched(asked)
    assert scores.is_complete
    assert scores.certified.all()
    assert len(scores.results.candidates) == asked.costs.size * asked.gammas.size
    for cost, gamma in ((0.0, 0.0), (2.0, -1.5), (-3.0, 2.0)):
        k = scores.at(cost, gamma)
        assert scores.place(k) == (cost, gamma)
        model = mm.SVC(kernel="rbf", C=10.0**cost, gamma=float(f"{10.0**gamma:.3g}"))
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        X, y = asked.points.X, asked.points.labels
        np.testing.assert_array_equal(
            scores.results.scores[k], cross_val_score(model, X, y, cv=folds)
        )


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("svc", {"kernel": "linear"}),
        ("linear-svc", {"multi_class": "crammer_singer"}),
        ("svr", {"kernel": "linear", "loss": "squared_epsilon_insensitive"}),
    ],
)
def test_a_machine_without_gamma_has_scores_over_C(key, values):
    points = line(12) if key == "svr" else points_of(3)
    asked = question(points, key, **values)
    scores = searched(asked)
    assert asked.gammas.size == 0
    assert np.isfinite(scores.results.means()).all()
    assert scores.place(3) == (asked.costs[3], None)
    assert scores.at(asked.costs[3] + 0.1, None) == 3
    assert scores.results.means()[scores.simplest] >= (
        scores.results.means()[scores.best] - scores.errors[scores.best]
    )
    assert scores.simplest <= scores.best


def test_a_place_outside_of_all_cells_has_no_candidate():
    scores = Scores.none_of(question(kernel="rbf"))
    assert scores.at(5.0, 0.0) is None  # C = ∞
    assert scores.at(0.0, None) is None
    assert scores.at(0.0, 9.0) is None
    assert scores.best is None
    assert scores.simplest is None


def test_a_question_is_about_all_settings_but_C_gamma_and_the_solver():
    points = points_of()
    asked = question(points, kernel="rbf")
    assert asked == question(points, kernel="rbf", C=2.0, gamma=-1.0, solver="smo")
    assert asked != question(points, kernel="rbf", loss="squared_hinge")
    assert asked != question(points, kernel="poly")
    assert asked != question(points_of(), kernel="rbf")


@pytest.mark.parametrize(
    ("points", "key", "words"),
    [
        (points_of(), "perceptron", "Choose one of them"),
        (SAMPLES["blobs, 2,000"](), "svc", "up to 500 points; there are 2000"),
        (SAMPLES["blobs, 2,000"](), "svr", "up to 250 points; there are 2000"),
        (checked(np.empty((0, 2)), []), "svc", "two classes"),
        (SAMPLES["XOR"](), "svc", "3 points of each class at least, one per fold; class -1 has 2"),
        (line(5), "svr", "needs 6 points at least, 2 in each of 3 folds; there are 5"),
        (checked([[k, 1.0] for k in range(9)], np.zeros(9)), "svr", "at the same height"),
    ],
)
def test_what_has_no_scores_is_refused_with_a_reason(points, key, words):
    assert words in question(points, key).refusal()


def test_a_search_ends_at_its_limit_with_what_it_has(monkeypatch):
    monkeypatch.setattr(searching, "LIMITS", SearchLimits(seconds=0.0, report_seconds=0.0))
    scores = searched(question(kernel="rbf"))
    known = np.isfinite(scores.results.means())
    assert not scores.is_complete
    assert 0 < known.sum() < known.size
    assert not scores.certified[~known].any()


def test_costs_that_take_long_with_a_polynomial_are_left_out(monkeypatch):
    monkeypatch.setattr(searching, "LIMITS", SearchLimits(cell_seconds=0.0))
    scores = searched(question(kernel="poly"))
    asked, known = scores.question, np.isfinite(scores.results.means())
    assert scores.is_complete
    assert known.sum() == asked.gammas.size
    assert known[: asked.gammas.size].all()  # those of the least C


def test_an_error_is_what_is_told(monkeypatch):
    def fails(*given):
        raise ValueError("no such fold")

    monkeypatch.setattr(searching, "_evaluate", fails)
    scores = searched(question(kernel="rbf"))
    assert scores.failure == "no such fold"
    assert scores.best is None


def test_a_search_waits_for_fits_and_can_be_dropped():
    """Nothing is computed while fits are at work, and nothing is told of a dropped search."""
    is_busy, told = threading.Event(), []
    is_busy.set()
    background = Background(
        lambda asked, is_dropped: search(asked, is_dropped, told.append, is_busy.is_set)
    )
    assert not background.is_busy
    background.ask(question(kernel="rbf"))
    time.sleep(0.1)
    assert background.is_busy
    assert told == []
    background.drop()
    _wait(lambda: not background.is_busy)
    assert told == []
    is_busy.clear()
    background.ask(question(kernel="linear"))
    _wait(lambda: not background.is_busy)
    assert told[-1].is_complete
    background.close()


def _wait(condition):
    end = time.perf_counter() + 120.0
    while not condition():
        assert time.perf_counter() < end, "waited in vain"
        time.sleep(0.01)
