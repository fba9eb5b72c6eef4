"""Models as plain JSON, for programs without maxmargin."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MinMaxScaler, Normalizer

from ..diagnostics.fitted_model import FittedModel, KernelExpansion, ModelLike, Planes
from ..diagnostics.scaling import scaling_of
from ..estimators.column_encoder import ColumnEncoder
from ..estimators.probability import LEAST
from ..kernels import RBF, Kernel, Linear, Polynomial, Precomputed, Product, Scaled, Sigmoid, Sum
from ..multiclass import OneVsOne
from .errors import PathLike
from .writing import write_text

__all__ = ["save_json", "to_json"]

FORMAT, VERSION = "maxmargin-json", 1
FORMULAS: dict[type[Kernel], tuple[str, str]] = {
    Linear: ("linear", "x.z"),
    Polynomial: ("polynomial", "(gamma*x.z + coef0)^degree"),
    RBF: ("rbf", "exp(-gamma*|x - z|^2)"),
    Sigmoid: ("sigmoid", "tanh(gamma*x.z + coef0)"),
    Precomputed: ("precomputed", "x[support], x holding the values against all training rows"),
    Sum: ("sum", "the sum of its parts"),
    Product: ("product", "the product of its parts"),
    Scaled: ("scaled", "factor*kernel"),
}
RULES = {
    "binary": "classes[1] where g[0] >= 0, else classes[0]",
    "ovr": "classes[k] of the largest g[k]",
    "joint": "classes[k] of the largest g[k]",
    "votes": "each pair (i, j) votes for i where g > 0, else for j; classes[k] of the most votes, "
    "the first among equals",
    "one-class": "classes[1] where g[0] >= -rounding, else classes[0]",
    "targets": "the prediction is g[0]",
    "confidences": "each pair (i, j) votes for i where g >= 0, else for j; s[k] is the sum of g of "
    "pairs (k, j) less that of pairs (i, k); classes[k] of the largest "
    "votes[k] + s[k]/(3*(|s[k]| + 1))",
}

PROBABILITIES = {
    "binary": "p[0] = 1/(1 + exp(B[0] - A[0]*g[0])), p[1] = 1 - p[0]",
    "ovr": "q[k] = 1/(1 + exp(A[k]*g[k] + B[k])), p = q/sum(q)",
    "ovo": "r(i, j) = 1/(1 + exp(A*g + B)) of each pair (i, j), r(j, i) = 1 - r(i, j); p of sum 1 "
    "minimises the sum over pairs of (r(j, i)*p[i] - r(i, j)*p[j])^2",
}


def to_json(model: ModelLike) -> dict[str, Any]:
    """Return a fitted model as lists, numbers and text that suffice to predict.

    A row x goes through the steps of ``preparation``; then g = w·x + b of every plane, or
    g = Σ_i dual_coef_i K(x, support vector i) + b; ``label_rule`` says how they give a label, or
    the prediction of a regression, which has no classes; those of OneClassSVM are −1 (outliers)
    and 1. Infinite numbers and NaN, which JSON does not have, are "inf", "-inf" and "nan".

    A kernel model contains rows of its training data.

    Parameters
    ----------
    model : estimator of maxmargin, or a Pipeline of scalers, `ColumnEncoder` and one
        A fitted model.

    Returns
    -------
    dict
        ``format``, ``version``, ``model``, ``parameters``, ``n_features``, ``feature_names``,
        ``preparation``, ``classes``, ``scheme``, ``pairs`` (indices into ``classes``),
        ``label_rule``, ``w`` and ``b`` of linear models, ``kernel``, ``support``,
        ``support_vectors``, ``n_support`` and ``dual_coef`` (one row per plane) of kernel models,
        ``probability`` (A, B and a rule for p of the classes) of ``probability=True``, ``epsilon``
        of regressions, ``rounding`` of OneClassSVM, ``status`` and ``certificate``.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from maxmargin.persistence import to_json
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> plain = to_json(mm.LinearSVC(C=float("inf"), tol=1e-10).fit(X, y))
    >>> plain["label_rule"], plain["parameters"]["C"]
    ('classes[1] where g[0] >= 0, else classes[0]', 'inf')
    """
    from .. import __version__

    fitted = FittedModel(model)
    fitted.require_fitted_steps()
    steps, classifier = fitted.steps, fitted.classifier
    names = getattr(steps[0] if steps else classifier, "feature_names_in_", None)
    plain = {
        "format": FORMAT,
        "version": VERSION,
        "maxmargin_version": __version__,
        "model": fitted.name,
        "parameters": _parameters(classifier),
        "n_features": fitted.n_features,
        "feature_names": None if names is None else [str(name) for name in names],
        "preparation": [_preparation(step) for step in steps],
        "classes": fitted.classes.tolist(),
        **_label_rule(fitted),
        **_scores(fitted),
        **_probability(fitted),
        **_proof(classifier),
    }
    return _plain(plain)  # type: ignore[no-any-return]


def save_json(model: ModelLike, path: PathLike) -> None:
    """Write a model as JSON, one entry per line; the write is atomic.

    Parameters
    ----------
    model : estimator of maxmargin, or a Pipeline of scalers, `ColumnEncoder` and one
        A fitted model.
    path : str or path
        The file.

    See Also
    --------
    to_json : The contents of the file.

    Examples
    --------
    >>> import json, os, tempfile
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "six.json")
    >>> mm.persistence.save_json(mm.Perceptron(shuffle=False).fit(X, y), path)
    >>> with open(path) as file:
    ...     json.load(file)["classes"]
    [-1, 1]
    """
    entries = [
        f"  {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in to_json(model).items()
    ]
    lines = (f"{entry},\n" for entry in entries[:-1])
    write_text(path, chain(["{\n"], lines, [f"{entries[-1]}\n}}\n"]))


def _parameters(classifier: Any) -> dict[str, Any]:
    given = classifier.get_params(deep=False)
    # The callback and the random state are not part of the model.
    given.pop("callback", None)
    if isinstance(given.get("random_state"), np.random.RandomState):
        given["random_state"] = None
    return given  # type: ignore[no-any-return]


def _preparation(step: Any) -> dict[str, Any]:
    name = type(step).__name__
    if isinstance(step, ColumnEncoder):
        return {
            "transformer": name,
            "does": "numbers as they are, fill where missing; 1 at its place among words for a "
            "word, else 0; then (x - mean)/scale",
            "columns": [
                {"words": words, "fill": fill}
                for words, fill in zip(step.categories_, step.fill_, strict=True)
            ],
            "mean": step.mean_,
            "scale": step.scale_,
        }
    if isinstance(step, Normalizer):
        return {"transformer": name, "does": "x/norm(x), 0 for 0", "norm": step.norm}
    record: dict[str, Any] = {"transformer": name, "does": "(x - shift)*factor"}
    if getattr(step, "clip", False):
        low, high = step.feature_range if isinstance(step, MinMaxScaler) else (-1.0, 1.0)
        record |= {"does": "(x - shift)*factor, then cut off at clip", "clip": [low, high]}
    scaling = scaling_of(step)
    if scaling is None:
        raise TypeError(f"{name} cannot be written as JSON: pass the estimator alone, model[-1].")
    return record | {"shift": scaling.shift, "factor": scaling.factor}


def _label_rule(fitted: FittedModel) -> dict[str, Any]:
    rule: str = fitted.scheme
    record: dict[str, Any] = {"scheme": fitted.scheme}
    if fitted.scheme == "ovo":
        rule = "votes" if fitted.by_votes else "confidences"
        record["pairs"] = OneVsOne.pairs(len(fitted.classes))
    elif fitted.scheme == "one-class":
        record["rounding"] = fitted.classifier._rounding()
    elif fitted.scheme == "targets":
        record["epsilon"] = fitted.epsilon
    return record | {"label_rule": RULES[rule]}


def _scores(fitted: FittedModel) -> dict[str, Any]:
    classifier, decision = fitted.classifier, fitted.decision
    record: dict[str, Any] = {}
    if isinstance(decision, Planes):
        record["w"] = decision.w
    record["b"] = decision.b
    if fitted.kernel is None:
        return record
    record["kernel"] = _kernel(fitted.kernel)
    record["n_support"] = classifier.n_support_
    if isinstance(fitted.kernel, Precomputed):
        record["support"] = classifier.support_
    record["support_vectors"] = _rows(classifier.support_vectors_)
    if isinstance(decision, KernelExpansion):
        record["dual_coef"] = decision.coefficients
    return record


def _probability(fitted: FittedModel) -> dict[str, Any]:
    clf = fitted.classifier
    if not fitted.has_classes or not hasattr(clf, "probA_"):
        return {}
    rule = f"{PROBABILITIES[fitted.scheme]}; every 1/(1 + exp) is kept within [least, 1 - least]"
    return {"probability": {"A": clf.probA_, "B": clf.probB_, "least": LEAST, "rule": rule}}


def _kernel(kernel: Kernel) -> dict[str, Any]:
    if type(kernel) not in FORMULAS:
        raise TypeError(
            f"{kernel!r} is code, which JSON cannot hold: use linear, poly, rbf, sigmoid, or sums "
            "and products of them."
        )
    name, formula = FORMULAS[type(kernel)]
    record: dict[str, Any] = {"name": name, "formula": formula}
    for field in fields(kernel):  # type: ignore[arg-type]
        value = getattr(kernel, field.name)
        if isinstance(value, Kernel):
            value = _kernel(value)
        elif isinstance(value, tuple):
            value = [_kernel(part) for part in value]
        record[field.name] = value
    return record


def _rows(vectors: Any) -> Any:
    """Return rows as lists; sparse ones as indices (from 0) and values."""
    if not sparse.issparse(vectors):
        return vectors
    ends = vectors.indptr
    return [{"index": vectors.indices[a:b], "value": vectors.data[a:b]} for a, b in pairwise(ends)]


def _proof(classifier: Any) -> dict[str, Any]:
    try:
        certificate, status = classifier.certificate_, classifier.status_
    except AttributeError:  # another program's
        return {"status": None, "certificate": None}
    numbers = {field.name: getattr(certificate, field.name) for field in fields(certificate)}
    record = {"kind": type(certificate).__name__, **numbers, "says": str(certificate)}
    return {"status": status.value, "certificate": record}


def _plain(value: Any) -> Any:
    """Return a value as lists, numbers and text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Kernel) and type(value) in FORMULAS:
        return _plain(_kernel(value))
    if is_dataclass(value) and not isinstance(value, type):
        numbers = {field.name: getattr(value, field.name) for field in fields(value)}
        return _plain({"name": type(value).__name__, **numbers})
    return repr(value)
