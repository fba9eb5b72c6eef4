"""Every estimator of the library, and every variant of one that has a name of its own.

One record per name: the command line, model files, the lab, ``import maxmargin`` and the tests
read them. Classes are imported when they are used, so that reading the list costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from ..files.targets import Targets
    from .base import CertifiedEstimator

Family = Literal["plane", "expansion", "machine", "regression", "one-class"]


class Lesson(NamedTuple):
    """An estimator as the lab presents it: a heading, a sentence and its equation."""

    heading: str
    sentence: str
    equation: str


class Variant(NamedTuple):
    """An estimator with some of its parameters preset.

    Parameters
    ----------
    family : {"plane", "expansion", "machine", "regression", "one-class"}
        Classifiers: planes in the space of X, sums over samples by a kernel, or support vector
        machines. Machines for targets, and for samples of one class.
    module : str
        File of the class.
    estimator : str
        Name of the class.
    title : str
        Name for people; "" for those that comparisons leave out.
    command : str
        Name on the command line; "" for those that it does not offer.
    parameters : dict
        What is preset.
    lesson : Lesson, optional
        How the lab presents it; None for those that it does not offer.
    """

    family: Family
    module: str
    estimator: str
    title: str = ""
    command: str = ""
    parameters: Mapping[str, object] = {}
    lesson: Lesson | None = None

    @property
    def type(self) -> type[CertifiedEstimator[Any]]:
        """The class."""
        return getattr(import_module(f".{self.module}", __package__), self.estimator)

    @property
    def targets(self) -> Targets:
        """What it learns from: labels of classes, numbers, or rows alone."""
        kinds: dict[str, Targets] = {"regression": "numbers", "one-class": "none"}
        return kinds.get(self.family, "classes")

    def __call__(self, **parameters: Any) -> CertifiedEstimator[Any]:
        """Return an estimator with these parameters on top of the preset ones."""
        return self.type(**{**self.parameters, **parameters})


VARIANTS = (
    Variant(
        "machine", "svc", "SVC", "SVC, RBF", "svc", {},
        Lesson(
            "Support vector machine",
            "The widest band between the classes; C is the cost of a sample inside of it.",
            "min ½‖w‖² + C Σ ξ  (or ξ²),   y g(x) ≥ 1 − ξ",
        ),
    ),
    Variant("machine", "svc", "SVC", "SVC, linear, C=100", "", {"kernel": "linear", "C": 100.0}),
    Variant(
        "machine", "svc", "NuSVC", "", "nusvc", {},
        Lesson(
            "ν-machine",
            "The same with ν: a lower bound of support vectors, an upper one of margin errors.",
            "min ½‖w‖² − νρ + (1/n) Σ ξ,   y g(x) ≥ ρ − ξ",
        ),
    ),
    Variant("machine", "svc", "NuSVC", "ν-SVC, RBF, ν=0.2", "", {"nu": 0.2}),
    Variant(
        "machine", "linear_svc", "LinearSVC", "", "linear-svc", {},
        Lesson(
            "Linear machine at scale",
            "The linear support vector machine, with solvers for millions of rows.",
            "min ½‖w‖² + C Σ ξ²  (or ξ)",
        ),
    ),
    Variant("machine", "linear_svc", "LinearSVC", "LinearSVC, hinge", "", {"loss": "hinge"}),
    Variant(
        "plane", "perceptron", "Perceptron", "perceptron", "perceptron", {},
        Lesson(
            "Perceptron",
            "Corrects the plane by each sample on the wrong side; ends if a plane separates.",
            "y(w·x + b) ≤ 0  ⇒  w ← w + ρ y x,  b ← b + ρ y",
        ),
    ),
    Variant("plane", "perceptron", "Perceptron", "perceptron, R² bias", "", {"bias": "radius"}),
    Variant(
        "plane", "perceptron", "Perceptron", "perceptron, batch", "batch-perceptron",
        {"update": "batch"},
    ),
    Variant(
        "plane", "pocket", "Pocket", "pocket", "pocket", {},
        Lesson(
            "Pocket",
            "A perceptron that keeps the plane with the fewest errors so far.",
            "perceptron;  pocket ← (w, b) whenever it has fewer errors on all samples",
        ),
    ),
    Variant(
        "expansion", "kernel_perceptron", "KernelPerceptron", "kernel perceptron, RBF",
        "kernel-perceptron", {},
        Lesson(
            "Kernel perceptron",
            "The perceptron in dual form: it counts the mistakes α of each sample; any kernel.",
            "y Σ α_l y_l K(x_l, x) + y b ≤ 0  ⇒  α ← α + 1",
        ),
    ),
    Variant(
        "plane", "relaxation", "Relaxation", "relaxation", "relaxation", {},
        Lesson(
            "Relaxation",
            "Moves the plane for every sample nearer than the margin, by a part of the way.",
            "y g(x) ≤ m  ⇒  a ← a + β (m − z·a)/‖z‖² z,   z = y(x, 1)",
        ),
    ),
    Variant("plane", "relaxation", "Relaxation", "relaxation, batch", "", {"update": "batch"}),
    Variant(
        "plane", "lms", "LMS", "LMS", "lms", {},
        Lesson(
            "LMS (Widrow–Hoff)",
            "Descends the squared difference between g(x) and the label, sample by sample.",
            "a ← a + ρ(t) (y − a·x′) x′",
        ),
    ),
    Variant("plane", "lms", "LMS", "LMS, batch", "", {"update": "batch"}),
    Variant(
        "plane", "least_squares", "Pseudoinverse", "pseudoinverse", "pseudoinverse", {},
        Lesson(
            "Least squares",
            "The plane of least squared error, in one step; Fisher's discriminant for his margins.",
            "a = Z⁺ m",
        ),
    ),
    Variant(
        "plane", "least_squares", "Pseudoinverse", "Fisher", "fisher", {"margins": "fisher"}
    ),
    Variant(
        "plane", "least_squares", "HoKashyap", "Ho–Kashyap", "ho-kashyap", {},
        Lesson(
            "Ho–Kashyap",
            "Least squares with growing margins: it separates, or proves that no plane can.",
            "m ← m + 2β max(Za − m, 0),   a ← Z⁺ m",
        ),
    ),
    Variant(
        "regression", "svr", "SVR", "", "svr", {},
        Lesson(
            "Support vector regression",
            "A curve within ε of most targets y; C is the cost of a target outside of the tube.",
            "min ½‖w‖² + C Σ ξ  (or ξ²),   |y − g(x)| ≤ ε + ξ",
        ),
    ),
    Variant(
        "regression", "svr", "NuSVR", "", "nu-svr", {},
        Lesson(
            "ν-regression",
            "The same with ν in place of ε, which is found: ν bounds the targets outside of the "
            "tube from above, and the support vectors from below.",
            "min ½‖w‖² + C (νnε + Σ ξ),   |y − g(x)| ≤ ε + ξ",
        ),
    ),
    Variant(
        "regression", "linear_svr", "LinearSVR", "", "linear-svr", {},
        Lesson(
            "Linear regression at scale",
            "A line within ε of most targets y, with solvers for millions of rows.",
            "min ½‖w‖² + C Σ ξ  (or ξ²),   |y − w·x − b| ≤ ε + ξ",
        ),
    ),
    Variant(
        "one-class", "one_class", "OneClassSVM", "", "one-class", {},
        Lesson(
            "One-class machine",
            "A region that holds most samples: ν bounds the outliers from above, and the support "
            "vectors from below.",
            "min ½‖w‖² − ρ + (1/νn) Σ ξ,   w·φ(x) ≥ ρ − ξ",
        ),
    ),
)  # fmt: skip


# Planes first, machines last.
_BY_FAMILY = sorted(VARIANTS, key=lambda variant: get_args(Family).index(variant.family))

# By the name on the command line.
MODELS = {variant.command: variant for variant in VARIANTS if variant.command}
# What comparisons show, by the name for people.
SEPARATING = {v.title: v for v in _BY_FAMILY if v.title and v.family != "machine"}
MACHINES = {v.title: v for v in _BY_FAMILY if v.title and v.family == "machine"}
# What the lab offers, by the name on the command line.
LESSONS = {variant.command: variant for variant in _BY_FAMILY if variant.lesson}
# Those that are fitted to Dask collections.
IN_PARTITIONS = (
    "LinearSVC", "LinearSVR", "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "Perceptron", "LMS",
    "Pseudoinverse", "HoKashyap",
)  # fmt: skip
# Class name → its module in this package.
MODULES = {variant.estimator: variant.module for variant in _BY_FAMILY}


def estimators() -> list[type[CertifiedEstimator[Any]]]:
    """Return every estimator."""
    return list({variant.estimator: variant.type for variant in _BY_FAMILY}.values())
