"""The terms of a report, each explained in a sentence or two for people who decide."""

from __future__ import annotations

TERMS = {
    "held-out rows": (
        "Rows that were set aside before the fit: how the model does on them is what to expect "
        "of new rows of the same kind."
    ),
    "training rows": (
        "Rows that the model was fitted to. It usually does better on them than on new rows."
    ),
    "error": "The share of rows in the wrong class.",
    "balanced accuracy": (
        "The mean of the recalls of all classes: a class with few rows counts as much as one "
        "with many."
    ),
    "macro F1": "The mean over the classes of F1, the harmonic mean of precision and recall.",
    "AUC": (
        "The area under the ROC curve: how often a row of a class scores higher for it than a "
        "row of another class. 0.5 is chance, 1 is perfect."
    ),
    "log loss": (
        "The mean of −log p of the true class: small where probabilities are confident and right."
    ),
    "R²": (
        "1 less the squared errors relative to those of the mean of these targets: 1 is exact, "
        "0 as good as the mean, below 0 worse."
    ),
    "MAE": "The mean size of the errors, in the unit of the target.",
    "RMSE": (
        "The root of the mean squared error, in the unit of the target: large errors count more."
    ),
    "outliers": "The share of rows that lie outside of the region that the model found.",
    "baseline": (
        "What the simplest answer would reach: the most frequent class, or the mean of the "
        "targets, for every row."
    ),
    "recall": "Of the rows of a class, the share that the model finds.",
    "precision": "Of the rows that the model puts in a class, the share that belongs there.",
    "F1": "The harmonic mean of precision and recall.",
    "certificate": (
        "A proof that comes with the fit: its numbers were recomputed from the data by other "
        "code than found the answer."
    ),
    "proved": (
        "The certificate holds to the tolerance, for all training rows: the model is what the "
        "estimator promises, such as the optimum of its problem. It says nothing about new "
        "rows."
    ),
    "gap": (
        "How far the value of this model is from the best possible one, at most, relative to "
        "that value. 0 is the optimum."
    ),
    "violation": (
        "By how much the worst row misses the conditions of the optimum, or of the claim."
    ),
    "scores recomputed": (
        "The rows that the check has computed anew: all; some, with a bound of the rounding "
        "errors of the others; or a random sample, which proves nothing for the others."
    ),
    "tolerance": (
        "The parameter tol: how large a violation may be, and a gap, which may be twice as large "
        "for machines with a kernel."
    ),
    "ended": "The rule that ended the fit: convergence, or a limit that was reached first.",
    "tasks": (
        "Problems that the fit consists of: with more than two classes one per pair of classes, "
        "or one per class against the rest."
    ),
    "kernel": (
        "The measure of similarity between rows. A linear kernel gives planes, others give "
        "curved boundaries."
    ),
    "support vectors": (
        "The training rows that make up the model. The others could be left out without a change."
    ),
    "α": (
        "The weight of a training row in the model; 0 for rows that do not matter, at most C "
        "times the weight of the row."
    ),
    "margin": (
        "How far a row is on the right side of the boundary, in units of the band around it: "
        "negative for wrong answers, below 1 inside of the band. Of many classes, against the "
        "strongest rival."
    ),
    "residual": "The target less the answer.",
    "score g": "The value of the function that the model found: below 0 are outliers.",
    "C": (
        "The cost of rows on the wrong side of the band: large values fit the training rows "
        "more closely."
    ),
    "nu": (
        "ν: at least this share of the training rows are support vectors, at most this share "
        "are on the wrong side of the band or outliers."
    ),
    "ν": (
        "At most this share of the training rows are outliers, at least this share are support "
        "vectors."
    ),
    "ε": "Half the width of the tube in which errors of a regression cost nothing.",
    "epsilon": "Half the width of the tube in which errors of a regression cost nothing.",
    "gamma": (
        "How fast the similarity of two rows falls with their distance: large values give more "
        "curved boundaries."
    ),
    "tol": "The tolerance of the fit, and of the proof.",
    "max_iter": "The limit of iterations; −1 or a large number is none.",
    "class_weight": "Factors of C by class, for classes that matter more, or are rare.",
    "loss": "How errors are charged: in proportion to the slack, or to its square.",
    "penalty": (
        "What keeps the weights small: the sum of squares (l2), or of sizes (l1), which makes "
        "many of them 0."
    ),
    "multi_class": (
        "How several classes become tasks: one per pair, one per class, or all jointly."
    ),
    "fit_intercept": "Whether the plane may pass beside the origin.",
    "approximation": (
        "Finite features in the place of the kernel. What is proved is proved of them."
    ),
    "weights": "The factors of the features in the score g(x) = w·x + b.",
}


class Explained:
    """Explains the terms that a page uses, and lists them for its end."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def meaning(self, name: str) -> str:
        """Return what a term means; "" for a word that needs no explanation."""
        if name in TERMS:
            self.used.add(name)
        return TERMS.get(name, "")

    def listed(self) -> list[tuple[str, str]]:
        """Return the terms that were used, with their meanings."""
        return [(name, meaning) for name, meaning in TERMS.items() if name in self.used]
