"""The lessons of the lab: each is a start, two sentences, a question and its answer."""

from __future__ import annotations

from dataclasses import dataclass

# Goals of a lesson at most.
MOST_GOALS = 4


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
    """

    key: str
    title: str
    sentences: str
    question: str
    answer: str


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
        ),
        Lesson(
            "perceptron",
            "How many mistakes can a perceptron make?",
            "The perceptron moves its plane only when a point is on the wrong side. Where a plane "
            "separates the points, Novikoff's theorem bounds the number of these corrections.",
            "What happens to the bound when the two classes come closer to each other?",
            "The bound is (R/γ)², where R is the length of the longest sample and γ the distance "
            "of the nearest one from a separating plane. Half the distance means four times the "
            "bound; the number of corrections may stay far below it.",
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
        ),
        Lesson(
            "lms",
            "When does LMS explode?",
            "LMS takes a step of ρ along the error of one sample after the other. The squared "
            "length of the samples limits the ρ for which the weights stay finite.",
            "Above which learning rate do the weights grow without end?",
            "The rule is stable in the mean for ρ below 2/trace(R), where R is the mean of the "
            "products zzᵀ of the samples with themselves. Far above, each step overshoots by more "
            "than the one before.",
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
        ),
    )
}
