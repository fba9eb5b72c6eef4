"""What the lab says of answers and steps."""

import html
import re
from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.card import plane_words, point_words
from maxmargin.lab.drawing import picture_of
from maxmargin.lab.fitting import Request, answered
from maxmargin.lab.points import SAMPLES, checked
from maxmargin.lab.step_words import best_so_far, mistake_bound, step_words
from maxmargin.lab.words import headline, words_of
from tests.helpers.lab import ALL_KEYS, KEYS, fitted, never, points_of

pytestmark = pytest.mark.filterwarnings("ignore")


def judged(key, points, **values):
    """Return a fit with the verdict on its points."""
    found = mm.separability(points.X, points.labels, maximum_margin=True)
    return replace(fitted(key, points, **values), verdict=found)


def refused(key, points, **values):
    """Return a fit that fails, with the verdict on its points."""
    settled = ALGORITHMS[key].settled(ALGORITHMS[key].defaults() | values)
    found = mm.separability(points.X, points.labels)
    return answered(Request(points, key, settled), never, found)


# The first sentence -------------------------------------------------------------------------------


def test_the_first_words_of_a_machine_are_its_band():
    six = SAMPLES["six points"]()
    assert headline(judged("svc", six)) == (
        "Separated. The band is 5.14 wide and is held by 3 points."
    )
    assert headline(judged("svc", six, C=5.0)) == (
        "Separated. The band is 5.14 wide, is the widest of all and is held by 3 points."
    )


def test_inseparable_points_are_said_to_have_a_common_point():
    xor = SAMPLES["XOR"]()
    shared = "No line separates these points: their hulls share a point."
    assert headline(refused("svc", xor, C=5.0)) == shared
    assert headline(judged("svc", xor, kernel="rbf")).startswith("Separated by a curve.")
    assert shared in headline(judged("svc", xor, kernel="rbf"))
    assert headline(judged("ho-kashyap", xor)) == f"There is no line: w = 0. {shared}"
    moons = judged("linear-svc", SAMPLES["moons"]())
    wrong = int((moons.model.predict(moons.request.points.X) != moons.request.points.labels).sum())
    assert headline(moons) == (
        f"Not separated by this line: {wrong} of 120 points are on the wrong side. {shared}"
    )


def test_a_line_that_is_not_found_is_said_to_exist():
    points = checked([[0, 0], [1, 0], [0, 1], [2, 2], [30, 30]], [0, 0, 0, 1, 1])
    outcome = judged("svc", points, C=-3.0)
    assert outcome.verdict.separable
    if (outcome.model.predict(points.X) != points.labels).any():
        assert headline(outcome).endswith("A line that separates them exists.")
    else:
        assert headline(outcome).startswith("Separated.")


@pytest.mark.parametrize("key", ["svc", "nusvc", "linear-svc", "svr", "one-class"])
def test_only_what_is_proved_is_called_optimal(key):
    """A fit that is stopped at once has a certificate that does not hold."""
    points = SAMPLES["sinc"]() if key == "svr" else SAMPLES["moons"]()
    values = ALGORITHMS[key].defaults() | ({"solver": "smo"} if key != "linear-svc" else {})
    outcome = answered(Request(points, key, values), lambda step=None: True)
    assert not outcome.model.certificate_.holds(outcome.model.tol)
    words = words_of(outcome, 0, "")
    assert "class='good'" not in words
    assert "Not proved to be optimal" in words
    assert "<summary>not proved: what is known</summary>" in words
    assert "is optimal" not in words
    assert "widest" not in words


@pytest.mark.parametrize("key", ALL_KEYS)
def test_every_answer_and_every_step_has_words(key):
    outcome = fitted(key, SAMPLES["sinc"]() if key not in KEYS else points_of())
    n = len(outcome.frames)
    answer = words_of(outcome, n, "the answer")
    assert re.match(r"<p class='(good|open)'>[A-Zw]", answer)
    assert str(outcome.model.certificate_)[:20] in answer.partition("<details>")[2]
    for k in {0, 1, n // 2, n - 1} & set(range(n)):
        words = words_of(outcome, k, f"step {k}")
        assert words.startswith(f"<p class='step'>Step {k}.</p>")
        assert headline(outcome) not in words.partition("<details>")[0]
        assert "nan" not in words
        assert "<p class=''></p>" not in words


def test_joint_machines_of_many_classes_have_words_at_every_step():
    """Their α are a matrix: one row per point, one column per class."""
    outcome = fitted("linear-svc", points_of(3), multi_class="crammer_singer")
    for k in range(len(outcome.frames) + 1):
        words_of(outcome, k, "a step")
    assert "w of A = (" in " ".join(step_words(outcome, len(outcome.frames) - 1))


def test_warnings_about_the_end_are_not_said_of_a_step():
    outcome = judged("perceptron", SAMPLES["XOR"]())
    assert outcome.warnings
    first, _, folded = words_of(outcome, 0, "a step").partition("<details")
    assert "Warning" not in first
    assert "Warning" in folded
    assert "Warning" in words_of(outcome, len(outcome.frames), "").partition("<details")[0]


def test_a_kernel_without_a_hard_margin_is_said_in_plain_words():
    points = checked([[0, 0], [1, 1], [0, 0], [3, 3]], [0, 0, 1, 1])
    outcome = refused("svc", points, C=5.0, kernel="rbf")
    assert headline(outcome) == (
        "There is no hard margin. The kernel does not separate these classes; take a finite C."
    )
    assert str(outcome.failure) in html.unescape(words_of(outcome, 0, "").partition("<details")[2])


def test_no_larger_nu_than_1_is_advised():
    xor = SAMPLES["XOR"]()
    assert "raise ν" in headline(judged("nusvc", xor))
    assert "raise ν" not in headline(judged("nusvc", xor, nu=1.0))


def test_small_scores_are_no_scores_of_the_line():
    """Far from all support vectors a kernel leaves small terms, whose sum is exact."""
    outcome = judged("kernel-perceptron", SAMPLES["six points"](), kernel="rbf")
    y = np.where(outcome.request.points.labels == outcome.model.classes_[1], 1, -1)
    assert (y * outcome.model.decision_function(outcome.request.points.X) > 0).all()
    assert headline(outcome) == "Separated by a curve."


def test_words_are_no_markup():
    points = checked([[0, 0], [1, 0], [3, 3], [4, 3]], [0, 0, 1, 1], ("<b>", "&"), ("<i>", "y"))
    outcome = fitted("perceptron", points)
    for k in range(len(outcome.frames) + 1):
        assert "<b>" not in words_of(outcome, k, "<b>")
    assert "<i>" in plane_words(outcome, len(outcome.frames))[0]  # escaped by the card


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("lms", {"learning_rate": 0.0}),
        ("lms", {"update": "batch", "learning_rate": 0.0}),
        ("perceptron", {"max_iter": 1}),
        ("pocket", {"max_iter": 1}),
        ("relaxation", {"max_iter": 1}),
        ("kernel-perceptron", {"max_iter": 1}),
    ],
)
def test_warnings_of_a_fit_are_said_beside_steps_and_answers(key, values):
    outcome = fitted(key, SAMPLES["moons"](), **values)
    assert outcome.warnings
    for k in (0, len(outcome.frames)):
        assert words_of(outcome, k, "").count("Warning: ") == len(outcome.warnings)
    if key == "lms":
        bound = "2/trace(R)" if "update" not in values else "2/λ_max(ZᵀZ)"
        assert bound in words_of(outcome, 0, "")


# Steps --------------------------------------------------------------------------------------------


def test_an_update_of_the_perceptron_is_said_in_numbers():
    outcome = judged("perceptron", SAMPLES["six points"]())
    assert outcome.frames[0].is_start
    assert "w = 0 and b = 0" in step_words(outcome, 0)[0]
    update, so_far = step_words(outcome, 2)
    assert update == (
        "Point 4 = (5, 2) (class -1, y = −1) is on the wrong side: y·g = −18. "
        "w ← w + ρ y x = (1, 6) + 1·(−1)·(5, 2) = (−4, 4), b ← 1 − 1 = 0."
    )
    assert so_far.startswith("2 mistakes so far. Novikoff's bound: at most ")
    assert "no mistake was met" in step_words(outcome, 4)[0]


@pytest.mark.parametrize("bias", ["plain", "radius"])
def test_the_bound_holds_and_is_that_of_the_bias(bias):
    for name in ("six points", "AND", "iris: setosa, versicolor"):
        outcome = judged("perceptron", SAMPLES[name](), bias=bias)
        bound, radius, gamma, _ = mistake_bound(outcome)
        assert outcome.model.n_updates_ <= bound
        factor = 4.0 if bias == "radius" else 1.0
        assert -1e-9 < factor * (radius / gamma) ** 2 - bound < 1.0


@pytest.mark.parametrize(
    ("key", "values"),
    [("perceptron", {"update": "batch"}), ("perceptron", {"schedule": "harmonic"}), ("lms", {}),
     ("relaxation", {})],
)  # fmt: skip
def test_rules_without_a_bound_get_none(key, values):
    assert mistake_bound(judged(key, SAMPLES["six points"](), **values)) is None
    assert mistake_bound(judged("perceptron", SAMPLES["XOR"]())) is None


@pytest.mark.parametrize("key", ["perceptron", "pocket", "relaxation", "lms"])
def test_the_numbers_of_an_update_add_up(key):
    """w + factor · x, as written, is the w of the step, to the digits that are shown."""
    outcome = fitted(key, SAMPLES["AND"]())
    vector = r"\(([^()]*?), ([^()]*?)\)"
    for k in range(1, min(len(outcome.frames), 12)):
        frame = outcome.frames[k]
        if frame.sample is None:
            continue
        words = step_words(outcome, k)[0].replace("−", "-").partition(" w ← ")[2]
        found = re.search(rf"x = {vector} \+ (.*)·{vector} = {vector}", words)
        a, b, factors, x1, x2, w1, w2 = found.groups()
        factor = np.prod([float(part.strip("()")) for part in factors.split("·")])
        expected = [float(a) + factor * float(x1), float(b) + factor * float(x2)]
        np.testing.assert_allclose([float(w1), float(w2)], expected, atol=0.02)
        np.testing.assert_allclose([float(w1), float(w2)], frame.w[0], rtol=0.01, atol=1e-6)


def test_pairs_of_smo_are_named():
    outcome = fitted("svc", SAMPLES["six points"]())
    update, sides = step_words(outcome, 1)
    assert re.fullmatch(
        r"The round moves the α of points . and .: α. ← 0 \+ .* = .*, α. ← .*\.", update
    )
    frame = outcome.frames[1]
    assert sides.startswith(f"primal = {frame.primal:.6g}, dual = {frame.dual:.6g}, gap = ")


def test_the_best_plane_so_far_is_the_one_in_the_pocket():
    outcome = fitted("pocket", SAMPLES["moons"]())
    X, labels = outcome.request.points.X, outcome.request.points.labels
    y = np.where(labels == outcome.model.classes_[1], 1.0, -1.0)
    least = np.inf
    for k, frame in enumerate(outcome.frames[:300]):
        w, b, wrong = best_so_far(outcome, k)
        assert wrong == (y * (X @ w + b) <= 0.0).sum()
        assert wrong <= least
        least = wrong
        if frame.sample is None and not frame.is_start:  # the step holds the pocket
            np.testing.assert_array_equal(w, frame.w[0])


# The card -----------------------------------------------------------------------------------------


def test_the_card_has_the_plane_and_its_norm():
    outcome = fitted("svc", SAMPLES["six points"](), C=5.0)
    assert plane_words(outcome, len(outcome.frames)) == [
        "g(x) = −0.333 x₁ + 0.2 x₂ + 0.133", "‖w‖ = 0.389, the band is 2/‖w‖ = 5.14 wide",
    ]  # fmt: skip
    curve = fitted("svc", SAMPLES["XOR"](), kernel="rbf")
    first, second = plane_words(curve, len(curve.frames))
    assert "over 4 support vectors, K(x, z) = exp(−1 ‖x − z‖²)" in first
    w = np.ravel(curve.model.dual_coef_)
    K = curve.model.kernel_(curve.model.support_vectors_, curve.model.support_vectors_)
    assert second.startswith(f"‖w‖ = {np.sqrt(w @ K @ w):.3g} ")


def reasons(outcome, point):
    picture = picture_of(outcome)
    return point_words(outcome, picture, len(outcome.frames), point, "")


def test_reasons_follow_the_conditions():
    points = SAMPLES["blobs, 200"]()
    outcome = fitted("svc", points)
    table = mm.diagnostics.support_table(outcome.model, points.X, points.labels)
    seen = set()
    for row, i in enumerate(table.index):
        *_, reason = reasons(outcome, int(i))
        if table.alpha[row] == 0.0 and table.margin[row] > 1.0 + table.tol:
            assert re.fullmatch(r"α = 0 because y·g = .* > 1\.", reason)
            seen.add("zero")
        elif table.margin[row] < 1.0 - table.tol:
            where = "on the wrong side" if table.margin[row] < 0 else "inside the band"
            assert reason.startswith("α = C because y·g = ")
            assert reason.endswith(f"< 1: {where}.")
            seen.add("full")
        elif 0.0 < table.alpha[row] < 1.0:
            assert reason == "0 < α < C because y·g = 1: it holds the band."
            seen.add("free")
    assert seen == {"zero", "full", "free"}


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("svc", {"loss": "squared_hinge"}, r"α = 2Cξ because y·g = .* < 1: "),
        ("svc", {"kernel": "rbf"}, r"α = C because y·g = .* < 1: "),
        ("nusvc", {}, r"α = its bound because y·g = .* < 1: "),
        ("linear-svc", {}, r"α = 2Cξ because y·g = .* < 1: "),
        ("linear-svc", {"loss": "hinge"}, r"α = C because y·g = .* < 1: "),
        ("svr", {}, r"\|α − α\*\| = C because \|y − g\| = .* > ε = 0.1: (above|below) the tube"),
        ("one-class", {}, r"α = its bound because g = −.* < 0: an outlier"),
    ],
)
def test_each_machine_has_reasons_of_its_own(key, values, expected):
    name = {"svr": "sinc", "one-class": "ring", "nusvc": "blobs, 200"}.get(key, "moons")
    points = SAMPLES[name]()
    outcome = fitted(key, points, **values)
    found = [reasons(outcome, i)[-1] for i in range(len(points.X))]
    assert any(re.match(expected, text) for text in found)
    assert any(re.match(r"\|?α.* = 0 because ", text) for text in found)
    inexact = [text for text in found if "tolerance of the fit only" in text]
    assert len(inexact) <= 0.02 * len(found)


def test_points_of_rules_without_alpha_have_their_side():
    outcome = fitted("perceptron", SAMPLES["AND"]())
    for i in range(4):
        assert reasons(outcome, i)[-1] == "On its side: y·g > 0."
    counted = fitted("kernel-perceptron", SAMPLES["XOR"](), kernel="rbf")
    assert reasons(counted, 0)[-1].startswith("α counts mistakes: the point was corrected ")
    many = fitted("svc", SAMPLES["blobs"]())
    assert reasons(many, 0)[0].startswith("Point 1 = (")
