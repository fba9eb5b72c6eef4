"""Compare what a fit claims with what is true: every check returns findings, none if all is well.

A finding is "class: what was claimed, what is true".
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np

from . import oracles
from .generators import Case
from .oracles import Machine, Truth
from .worker import LIMIT, Worker

# What a claim may exceed the truth by: digits of the comparison, not of the claim.
RELATIVE = 1e-6
# Values P and D are shown with, and compared to, nine digits.
DIGITS = 1e-9
# Violations and gaps below it are not worth a word.
NOISE = 1e-12

WORKER = Worker()


def run(case: Case, seconds: float = LIMIT) -> dict[str, Any]:
    """Fit a case in the worker process."""
    return WORKER.ask("fit", seconds, **case.request)


def ended(answer: dict[str, Any]) -> list[str]:
    """Findings about how the fit ended: in time, without a crash, with a finite model."""
    if "hang" in answer:
        return [f"hang: no end after {answer['hang']:g} s"]
    if "crash" in answer:
        return [f"crash: the process ended with {answer['crash']}"]
    found = []
    if answer.get("changed"):
        found.append("changed input: the caller's arrays are not what they were")
    if "error" in answer:
        known = re.search(r"overflow|finite|rescale|infeasible", answer["message"])
        if not (answer["error"] == "ValueError" and known):
            found.append(f"error: {answer['error']}: {answer['message']}")
        return found
    if not all(np.isfinite(answer[name]).all() for name in ("dual_coef", "intercept", "decision")):
        found.append("not finite: dual_coef_, intercept_ or decision_function")
    return found


def warned(case: Case, answer: dict[str, Any]) -> list[str]:
    """Findings about the words: a fit that did not converge says so, and claims nothing."""
    texts = [text for name, text in answer["warnings"] if name == "ConvergenceWarning"]
    found = []
    for name, text in answer["warnings"]:
        if name in ("RuntimeWarning", "LinAlgWarning"):
            found.append(f"stray warning: {name}: {text}")
    if answer["status"] != "converged" and not texts:
        found.append(f"silent: {answer['status']} without a ConvergenceWarning")
    certificate = answer["certificate"]
    tol = case.params.get("tol", 1e-4 if case.estimator == "LinearSVC" else 1e-3)
    if answer["status"] != "converged":
        for text in texts:
            if claims_optimality(text):
                found.append(f"words: unconverged, but warned with {text!r}")
    if not certificate["relative_gap"] <= max(0.1, 2 * tol) and claims_optimality(
        certificate["text"]
    ):
        found.append(
            f"words: certificate of gap {certificate['relative_gap']:.1e} reads "
            f"{certificate['text']!r}"
        )
    if answer["status"] == "converged" and texts:
        found.append(f"words: converged, yet warned: {texts[0]!r}")
    return found


def claims_optimality(text: str) -> bool:
    """Whether a text calls something optimal (and not "not optimal")."""
    return re.search(r"(?<!not )(?<!from )(?<!not proved )\boptimal\b", text.lower()) is not None


def posed(case: Case, labels: np.ndarray) -> Machine:
    """Return the machine that a case asks for, in rational numbers."""
    C, weight = case.params.get("C", 1.0), case.sample_weight
    if np.isinf(C):
        cost: list[Fraction | None] = [None] * len(labels)
    else:
        products = np.full(len(labels), C) if weight is None else C * np.asarray(weight, float)
        cost = [Fraction(c) for c in products.tolist()]
    bias = "free" if case.params.get("fit_intercept", True) else "none"
    if case.params.get("penalize_intercept"):
        bias = "penalised"
    loss = case.params.get("loss", "squared_hinge" if case.estimator == "LinearSVC" else "hinge")
    return Machine(labels.tolist(), cost, "hinge" if np.isinf(C) else loss, bias)


def alpha_of(answer: dict[str, Any], labels: np.ndarray) -> np.ndarray:
    """Return α of every row, positive where the signs agree with the labels."""
    alpha = np.zeros(len(labels))
    alpha[answer["support"]] = answer["dual_coef"][0]
    return alpha * labels


def exact_truth(case: Case, answer: dict[str, Any]) -> Truth:
    """Return the truth about a small fit."""
    labels = np.where(case.y == answer["classes"][1], 1, -1)
    machine = posed(case, labels)
    X = oracles.rational(oracles.dense(case.X))
    alpha = oracles.rational(alpha_of(answer, labels))
    b = Fraction(float(answer["intercept"][0]))
    if case.estimator == "LinearSVC":
        return oracles.plane_truth(machine, X, alpha, oracles.rational(answer["coef"][0]), b)
    return oracles.kernel_truth(machine, answer["kernel"], X, alpha, b)


def claims(case: Case, answer: dict[str, Any], truth: Truth, error: float = 0.0) -> list[str]:
    """Findings about numbers: the certificate claims no more than is true.

    ``error`` is what the true scores are uncertain by.
    """
    claim, found = answer["certificate"], []
    noise = NOISE + error
    known = claim["violation"] + claim["rounding"]
    if not known >= truth.violation * (1 - RELATIVE) - noise:
        found.append(f"violation: claimed {known:.3e}, true {truth.violation:.3e}")
    if not claim["relative_gap"] >= truth.relative_gap * (1 - RELATIVE) - DIGITS - error:
        found.append(f"gap: claimed {claim['relative_gap']:.3e}, true {truth.relative_gap:.3e}")
    size = max(abs(truth.primal), abs(truth.dual)) if np.isfinite(truth.primal) else 1.0
    # P and D are documented to be as exact as the solver's scores unless all were recomputed.
    digits = DIGITS if claim.get("coverage", "complete") == "complete" else 1e-6
    if not claim["primal"] >= truth.primal - digits * size - error * size:
        found.append(f"primal: claimed {claim['primal']:.12g}, true {truth.primal:.12g}")
    if not claim["dual"] <= truth.dual + digits * size + error * size:
        found.append(f"dual: claimed {claim['dual']:.12g}, true {truth.dual:.12g}")
    for tol, holds in claim["holds"].items():
        if holds:
            found += [f"holds({tol:g}): {each}" for each in broken(case, truth, tol, error)]
            if found and found[-1].startswith("holds"):
                break
    tol = case.params.get("tol", 1e-4 if case.estimator == "LinearSVC" else 1e-3)
    if answer["status"] == "converged":
        found += [f"converged: {each}" for each in broken(case, truth, tol, error)]
    return found


def broken(case: Case, truth: Truth, tol: float, error: float = 0.0) -> list[str]:
    """Return the promises that are not kept to ``tol``."""
    linear = case.estimator == "LinearSVC"
    limits = {
        "relative_gap": tol if linear else 2.0 * tol,
        "violation": np.inf if linear else tol,
        "balance": tol,
        "box": tol,
    }
    return [
        f"{name} is {getattr(truth, name):.3e} for tol={tol:g}"
        for name, limit in limits.items()
        if not getattr(truth, name) <= limit * (1 + RELATIVE) + 4.0 * error
    ]


def small(case: Case, seconds: float = LIMIT) -> list[str]:
    """Fit a small case and compare all of its claims with exact arithmetic."""
    answer = run(case, seconds)
    found = ended(answer)
    if found or "error" in answer:
        return found
    found = warned(case, answer)
    if case.estimator == "NuSVC":
        return found + nu_claims(case, answer)
    return found + claims(case, answer, exact_truth(case, answer))


def large(case: Case, seconds: float = LIMIT) -> list[str]:
    """Fit a larger kernel machine and compare with a recomputation of all rows."""
    answer = run(case, seconds)
    found = ended(answer)
    if found or "error" in answer:
        return found
    found = warned(case, answer) + coverage(answer, case.X.shape[0])
    if case.estimator == "NuSVC":
        return found + nu_claims(case, answer)
    labels = np.where(case.y == answer["classes"][1], 1.0, -1.0)
    if case.estimator == "LinearSVC":
        return found  # its certificate adds up the same rows in the same arithmetic
    cost = np.full(len(labels), float(case.params.get("C", 1.0)))
    if case.sample_weight is not None:
        cost = cost * case.sample_weight
    truth, error = oracles.float_truth(
        labels,
        cost,
        case.params.get("loss", "hinge"),
        answer["kernel"],
        oracles.dense(case.X),
        alpha_of(answer, labels),
        float(answer["intercept"][0]),
    )
    return found + claims(case, answer, truth, error)


def coverage(answer: dict[str, Any], n: int) -> list[str]:
    """Findings about what a certificate says of the rows that it did not recompute."""
    claim = answer["certificate"]
    kind, text = claim.get("coverage"), claim["text"].replace(",", "")
    if kind not in ("complete", "bounded", "sampled"):
        return [f"coverage: {kind!r} is not complete, bounded or sampled"]
    found = []
    if kind == "complete" and claim["n_checked"] < n:
        found.append(f"coverage: complete, but {claim['n_checked']} of {n} rows were recomputed")
    if kind == "sampled":
        if "sampl" not in text or str(claim["n_checked"]) not in text:
            found.append(f"coverage: sampled, but reads {claim['text']!r}")
        if re.search(r"(?<!not )(?<!un)proved", text):
            found.append(f"coverage: sampled, but calls itself proved: {claim['text']!r}")
    return found


def nu_claims(case: Case, answer: dict[str, Any]) -> list[str]:
    """Findings about a ν-machine; its α and b are those divided by ρ."""
    labels = np.where(case.y == answer["classes"][1], 1.0, -1.0)
    alpha, b = alpha_of(answer, labels), float(answer["intercept"][0])
    X = oracles.dense(case.X)
    kernel = answer["kernel"]
    if len(labels) <= 64 and kernel[0] != "precomputed":
        beta = oracles.rational(alpha * labels)
        scores = np.array(
            [float(s) for s in oracles.exact_scores(kernel, oracles.rational(X), beta)]
        )
        error = 1e-15 * float(np.abs(scores).max())
    else:
        scores, error = oracles.float_scores(kernel, X, alpha * labels)
    said = any(
        name == "ConvergenceWarning" or "leaves no margin" in text
        for name, text in answer["warnings"]
    )
    margins = labels * (scores + b)
    # ρ as the model's own margins have it, which were divided by it.
    rho = float(np.median(margins[alpha > 0])) if (alpha > 0).any() else 0.0
    if not rho > 1e-6 * np.abs(margins).max(initial=0.0):
        return [] if said else ["no margin: ρ = 0, and nothing says so"]
    nu = case.params.get("nu", 0.5)
    share = np.full(len(labels), 1.0 / len(labels))
    gap, violation = oracles.nu_truth(labels, nu, share, scores, alpha, b)
    truth = Truth(np.nan, np.nan, gap, violation, 0.0, 0.0)
    claim, found = answer["certificate"], []
    noise = 1e-9 + 4.0 * error
    known = claim["violation"] + claim["rounding"]
    if not known >= violation * (1 - RELATIVE) - noise:
        found.append(f"violation: claimed {known:.3e}, true {violation:.3e}")
    if not claim["relative_gap"] >= gap * (1 - RELATIVE) - noise:
        found.append(f"gap: claimed {claim['relative_gap']:.3e}, true {gap:.3e}")
    if answer["status"] == "converged":
        tol = case.params.get("tol", 1e-3)
        found += [f"converged: {each}" for each in broken(case, truth, tol, noise)]
    return found
