"""What the certificates of a fitted model prove, task by task, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..certificates import Certificate
from .fitted_model import FittedModel

# The tolerance of estimators without one.
TOLERANCE = 1e-6
# From strong to weak.
COVERAGES = ("complete", "bounded", "sampled")


@dataclass(frozen=True)
class TaskProof:
    """What the certificate of one task proves.

    Parameters
    ----------
    name : str
        What the task separates.
    words : str
        The certificate in words.
    holds : bool
        Whether it holds to the tolerance of the estimator.
    coverage : {"complete", "bounded", "sampled"}
        The rows that it covers, as in `MarginCertificate`.
    status : str
        The rule that ended the fit of the task.
    violation : float
        By how much the claim fails to hold, rounding included.
    gap : float or None
        The relative duality gap; None where the claim has none.
    checked : str
        How many scores were recomputed, in words.
    """

    name: str
    words: str
    holds: bool
    coverage: str
    status: str
    violation: float
    gap: float | None
    checked: str

    @property
    def is_proved(self) -> bool:
        """Whether the certificate holds, for all rows rather than a random sample of them."""
        return self.holds and self.coverage != "sampled"

    @property
    def verdict(self) -> str:
        """What is proved, in a few words."""
        if self.coverage == "sampled":
            return "checked on a sample, not proved"
        return "proved" if self.holds else "not proved"


def task_proofs(fitted: FittedModel) -> list[TaskProof]:
    """Return what is proved of every task; nothing of a model that another program trained.

    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> (proof,) = task_proofs(FittedModel(mm.SVC(kernel="linear").fit(X, y)))
    >>> proof.name, proof.verdict, proof.checked
    ('1 against -1', 'proved', 'all')
    """
    clf = fitted.classifier
    certificates = getattr(clf, "certificates_", None)
    if not certificates:
        return []
    is_joint = fitted.scheme == "joint"
    names = [f"all {len(fitted.classes)} classes jointly"] if is_joint else fitted.task_names
    parts = zip(names, certificates, clf.statuses_, strict=True)
    return [_proof(name, each, str(status), tolerance(clf)) for name, each, status in parts]


def _proof(name: str, certificate: Any, status: str, tol: float) -> TaskProof:
    coverage = getattr(certificate, "coverage", COVERAGES[0])
    rounding = certificate.rounding if hasattr(certificate, "relative_gap") else 0.0
    checked = "all"
    if coverage != COVERAGES[0]:
        rest = "the others bounded" if coverage == "bounded" else "a sample"
        checked = f"{certificate.n_checked:,} of {certificate.n_samples:,}, {rest}"
    return TaskProof(
        name=name,
        words=str(certificate),
        holds=bool(certificate.holds(tol)),
        coverage=coverage,
        status=status,
        violation=float(certificate.violation + rounding),
        gap=getattr(certificate, "relative_gap", None),
        checked=checked,
    )


def verdict_of(proofs: Sequence[TaskProof]) -> str:
    """Return in a few words what is proved of all tasks.

    >>> verdict_of([])
    'No certificate: the model was trained by another program'
    """
    if not proofs:
        return "No certificate: the model was trained by another program"
    counts, n = Counter(proof.verdict for proof in proofs), len(proofs)
    if n == 1:
        return proofs[0].verdict.capitalize()
    if counts["not proved"] == n:
        return f"None of {n} tasks proved"
    found = ", ".join(f"{k} of {n} tasks {verdict}" for verdict, k in counts.items())
    return f"All {n} tasks {proofs[0].verdict}" if len(counts) == 1 else found


def tolerance(clf: Any) -> float:
    """Return the tolerance to which the certificates of an estimator should hold."""
    return float(getattr(clf, "tol", TOLERANCE))


def weakest_coverage(certificates: Iterable[Certificate]) -> str:
    """Return the weakest coverage; certificates of separating rules cover all rows."""
    known = [getattr(certificate, "coverage", COVERAGES[0]) for certificate in certificates]
    return max(known, key=COVERAGES.index, default=COVERAGES[0])


def sentence(holds: bool | None, coverage: str) -> str:
    """Return what certificates prove together, in a sentence.

    >>> sentence(True, "bounded")
    'It proves what the estimator promises.'
    """
    if coverage == "sampled":
        return "It was checked on a sample of the rows only: it is not a proof for all rows."
    if not holds:
        return (
            "It does not prove what the estimator promises: the fit ended too early, or "
            "there is no such plane or function."
        )
    return "It proves what the estimator promises."
