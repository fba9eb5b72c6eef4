"""The lessons of the lab: each is a start, two sentences, a question, goals and an answer.

A goal is a function of what was seen since the lesson began, the latest last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import goals
from .algorithms import ALGORITHMS
from .goals import History
from .observing import Seen
from .points import SAMPLES, Points
from .state import State

# Goals of a lesson at most.
MOST_GOALS = 4


@dataclass(frozen=True)
class Goal:
    """Something to do, in words, and a function that says whether it was done."""

    words: str
    is_met: Callable[[History], bool]


@dataclass(frozen=True)
class Lesson:
    """A lesson of the lab.

    Parameters
    ----------
    key : str
        Its name in addresses and on the command line.
    title : str
    sentences : str
        Two sentences that say what is on the page.
    question : str
    answer : str
        Shown when the lesson is done.
    points : callable
        Returns the points at the start.
    algorithms : tuple of (str, mapping)
        The algorithms at the start, with the settings that are not their defaults.
    goals : tuple of Goal
    reading : callable
        Returns the numbers that the lesson is about, in words.
    sample : str
        The name of the data set, "" for points of the lesson's own.
    """

    key: str
    title: str
    sentences: str
    question: str
    answer: str
    points: Callable[[], Points]
    algorithms: tuple[tuple[str, Mapping[str, Any]], ...]
    goals: tuple[Goal, ...]
    reading: Callable[[Seen], str]
    sample: str = ""

    def start(self) -> State:
        """Return the page at the start of the lesson."""
        chosen = tuple(
            (key, ALGORITHMS[key].defaults() | dict(values)) for key, values in self.algorithms
        )
        return State(
            self.points(), chosen, compared=len(chosen) > 1, sample=self.sample, lesson=self.key
        )

    def met(self, history: History) -> tuple[int, ...]:
        """Return which goals were reached with the latest of what was seen."""
        if not history:
            return ()
        return tuple(k for k, goal in enumerate(self.goals) if goal.is_met(history))


LESSONS: dict[str, Lesson] = {
    lesson.key: lesson
    for lesson in (
        Lesson(
            "six-points",
            "Which points hold the band?",
            "The hard-margin machine has found the widest band between the two classes. Points "
            "with a ring are its support vectors: they have α > 0.",
            "Which points can you move without changing the band, and which not?",
            "The plane is a sum over the support vectors alone. A point with α = 0 can move as "
            "long as y·g(x) stays above 1; a support vector takes the band with it.",
            SAMPLES["six points"],
            (("svc", {"C": 5.0}),),
            (
                Goal(
                    "Move a point without a ring, so that the band stays.", goals.moved_free_point
                ),
                Goal(
                    "Move a point with a ring, so that the width changes.",
                    goals.moved_support_vector,
                ),
            ),
            goals.band_in_words,
            sample="six points",
        ),
        Lesson(
            "perceptron",
            "How many mistakes can a perceptron make?",
            "The perceptron moves its plane only when a point is on the wrong side. Where a plane "
            "separates the points, Novikoff's theorem bounds the number of these corrections.",
            "What happens to the bound when the two classes come closer to each other?",
            "The bound is (R/γ)², where R is the length of the longest sample and γ the distance "
            "of the nearest one from a separating plane, both with a 1 appended to every sample. "
            "Half the distance means four times the bound; the number of corrections may stay far "
            "below it.",
            goals.apart,
            (("perceptron", {}),),
            (
                Goal(
                    "Step back to where a point is still on the wrong side.",
                    goals.followed_corrections,
                ),
                Goal(
                    "Move points so that the margin of the widest band is at most half of that at "
                    "the start, and a line still separates them.",
                    goals.halved_margin,
                ),
            ),
            goals.corrections_in_words,
        ),
        Lesson(
            "xor",
            "No line separates XOR. What does?",
            "Opposite corners belong to the same class, and the convex hulls of the two classes "
            "share a point: this proves that no line separates them. A kernel replaces the inner "
            "product by that of a space in which a plane may separate.",
            "Which kernels separate the four points?",
            "The polynomial kernel of degree 2 contains the product x₁x₂, whose sign is the class; "
            "the Gaussian (rbf) kernel separates any distinct points. The boundary is a plane in "
            "the space of the kernel and a curve here.",
            SAMPLES["XOR"],
            (("perceptron", {}),),
            (
                Goal("Try another algorithm that draws a line.", goals.another_line_failed),
                Goal(
                    "Choose an algorithm and a kernel that have all points on their side.",
                    goals.kernel_separated,
                ),
            ),
            goals.right_in_words,
            sample="XOR",
        ),
        Lesson(
            "c",
            "A wide band or few errors?",
            "The soft-margin machine weighs a wide band against the slack of the points that are "
            "inside of it or beyond. C is the price of slack.",
            "What is gained with a large C, and what is lost?",
            "With a large C few points are inside the band, and one can decide how narrow it is. "
            "With a small C the band is wide and follows the bulk of the points; a few of them "
            "are inside of it.",
            goals.close,
            (("svc", {"C": 0.0}),),
            (
                Goal("Raise C until no point is inside the band.", goals.emptied_band),
                Goal(
                    "Lower C until the band is at least twice as wide as that.", goals.doubled_width
                ),
            ),
            goals.inside_band_in_words,
        ),
        Lesson(
            "gamma",
            "Smooth or memorised?",
            "The Gaussian kernel exp(−γ‖x − z‖²) compares points at a distance of about 1/√γ. "
            "The curve is the boundary that it gives for two noisy half-moons.",
            "Which γ makes the machine memorise its points, and how do you notice?",
            "With a large γ every point is a support vector with a region of its own: no error "
            "among these points says nothing about new ones. A smaller γ makes a few errors here "
            "and has fewer support vectors. The tab of scores measures both on points that the "
            "machine has not seen.",
            SAMPLES["moons"],
            (("svc", {"C": 1.0, "kernel": "rbf", "gamma": -1.0}),),
            (
                Goal(
                    "Raise γ until nine in ten points are support vectors and none is on the wrong "
                    "side.",
                    goals.memorised,
                ),
                Goal(
                    "Find a γ with at most a quarter of support vectors, and at most one point in "
                    "twenty on the wrong side.",
                    goals.smoothed,
                ),
            ),
            goals.support_in_words,
            sample="moons",
        ),
        Lesson(
            "lms",
            "When does LMS explode?",
            "LMS takes a step of ρ along the error of one sample after the other. The squared "
            "length of the samples limits the ρ for which the weights stay finite.",
            "Above which learning rate do the weights grow without end?",
            "For samples in random order, the mean of the weights converges if ρ is below "
            "2/trace(R), where R is the mean of the products zzᵀ of the samples with themselves. A "
            "single run may explode below that, too; far above, each step overshoots by more than "
            "the one before.",
            SAMPLES["six points"],
            (("lms", {}),),
            (
                Goal("Raise ρ until the weights explode.", goals.exploded),
                Goal(
                    "Lower ρ again, by no more than a factor of ten, so that they do not.",
                    goals.tamed,
                ),
            ),
            goals.rates_in_words,
            sample="six points",
        ),
        Lesson(
            "outlier",
            "What does one outlier do?",
            "The perceptron stops when no point is on the wrong side. The pocket algorithm runs "
            "the same corrections and keeps the best plane that it has seen.",
            "Where does the perceptron end when one point lies among the other class?",
            "No plane separates the points any more, so the perceptron corrects for ever and ends "
            "wherever it is stopped. The pocket algorithm returns the plane with the fewest "
            "errors that the run has met.",
            goals.apart,
            (("perceptron", {}),),
            (
                Goal(
                    "Drag a point among the other class, so that no line separates them.",
                    goals.perceptron_did_not_end,
                ),
                Goal(
                    "Show a step of the perceptron that has more errors than the pocket algorithm "
                    "ends with; compare the two.",
                    goals.pocket_kept_better,
                ),
            ),
            goals.right_in_words,
        ),
        Lesson(
            "nu",
            "What does ν count?",
            "The ν-machine has no C: ν says how many points may be inside the band. It is an "
            "upper bound of the share of margin errors, and a lower bound of that of support "
            "vectors.",
            "Do both bounds hold for a small and for a large ν?",
            "Points inside the band all have the largest α allowed, and their sum is limited by "
            "ν: at most a share ν of them fits. Every support vector adds at most that much, so at "
            "least a share ν of the points is needed.",
            SAMPLES["blobs, 200"],
            (("nusvc", {"nu": 0.4}),),
            (
                Goal("See both bounds hold at a ν of at most 0.25.", goals.bounds_at_small),
                Goal("See both bounds hold at a ν of at least 0.6.", goals.bounds_at_large),
            ),
            goals.shares_in_words,
            sample="blobs, 200",
        ),
    )
}
