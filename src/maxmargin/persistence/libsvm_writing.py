"""Models written as LIBSVM's text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..arrays import Floats, dense
from ..caller import warn_caller
from ..diagnostics.fitted_model import FittedModel, ModelLike, Planes
from ..diagnostics.scaling import Scaling, scaling_of
from ..estimators.column_encoder import ColumnEncoder
from ..estimators.kernel_machine import KernelMachine
from ..kernels import Kernel, Linear, Precomputed
from ..multiclass import OneVsOne
from .errors import PathLike
from .libsvm_format import KERNELS, LARGEST_INT, PROBABILITIES, SVM_TYPES
from .writing import write_text

__all__ = ["save_libsvm"]


@dataclass(frozen=True)
class _Contents:
    """The contents of a file: coefficients of shape (n_classes − 1, n_support), rho of pairs.

    Labels and counts of support vectors are those of classes, None without them.
    """

    svm_type: str
    kernel: Kernel
    labels: list[int] | None
    rho: Floats
    counts: list[int] | None
    coefficients: Floats
    vectors: Any
    serials: NDArray[np.integer[Any]] | None = None
    probabilities: Mapping[str, Floats] = field(default_factory=dict)


def save_libsvm(model: ModelLike, path: PathLike) -> None:
    """Write a model as LIBSVM's text, which svm-predict and many other programs read.

    SVC and NuSVC of two classes, or of pairs of many, SVR, NuSVR and OneClassSVM, with any of
    LIBSVM's kernels, keep their support vectors (rows of the training data). LinearSVR or a linear
    model of two classes becomes one support vector, w, and so do the planes of a linear kernel in a
    pipeline that scales features; the scaling becomes a part of w. For other kernels the scaling is
    written to ``path``.range, for ``svm-scale -r``.

    Parameters
    ----------
    model : kernel machine, LinearSVR, linear classifier of two classes, or Pipeline of scalers and\
 one
        A fitted model.
    path : str or path
        The file; the write is atomic.

    Raises
    ------
    TypeError, ValueError
        For a model that LIBSVM cannot represent.

    Warns
    -----
    UserWarning
        Where labels are not integers, and become 0, 1, …; where ``break_ties=True`` or the
        imputation of missing values is lost; and where data must be scaled by svm-scale first.

    See Also
    --------
    load_libsvm : Read such a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin as mm
    >>> from maxmargin.persistence import save_libsvm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "six.model")
    >>> save_libsvm(mm.SVC(kernel="linear").fit(X, y), path)
    >>> print(open(path).readline().strip())
    svm_type c_svc
    """
    fitted = FittedModel(model)
    fitted.require_fitted_steps()
    scaling = _scaling(fitted.steps)
    folded = None if scaling is None else _folded(scaling, fitted)
    contents = folded or _contents(fitted)
    if scaling is not None and folded is None:  # the kernel cannot include the scaling
        ranges = f"{os.fspath(path)}.range"
        write_text(ranges, _range_lines(scaling))
        warn_caller(
            f"LIBSVM's models do not scale features, as steps before {fitted.name} do: scale data "
            f"first, by svm-scale -r {ranges}."
        )
    if contents.labels is not None and contents.labels != fitted.classes.tolist():
        pairs = zip(contents.labels, fitted.classes.tolist(), strict=True)
        meaning = ", ".join(f"{number} = {label!r}" for number, label in pairs)
        warn_caller(f"LIBSVM's labels are integers; in this file {meaning}.")
    if getattr(fitted.classifier, "break_ties", False) and not fitted.is_binary:
        warn_caller("break_ties=True is lost: LIBSVM takes the first of classes with equal votes.")
    encoders = [step for step in fitted.steps if isinstance(step, ColumnEncoder)]
    if any(fill is not None for encoder in encoders for fill in encoder.fill_):
        warn_caller(
            "impute=True is lost: LIBSVM reads a missing value as 0. Fill data first with the "
            "values of fill_ of the ColumnEncoder."
        )
    write_text(path, _lines(contents))


def _contents(fitted: FittedModel) -> _Contents:
    if isinstance(fitted.classifier, KernelMachine):
        return _of_kernel_machine(fitted)
    return _of_planes(fitted, _plane(fitted))


def _of_kernel_machine(fitted: FittedModel) -> _Contents:
    _require_pairs(fitted)
    fitted.refuse_approximation("LIBSVM's format")
    clf, kernel = fitted.classifier, fitted.kernel
    if kernel is None or not isinstance(kernel, tuple(kind for kind, _, _ in KERNELS.values())):
        raise TypeError(
            f"the kernel must be one of LIBSVM's, linear, poly, rbf, sigmoid or precomputed; got "
            f"{kernel!r}."
        )
    sign, svm_type = _sign(fitted), _svm_type(fitted)
    found = {name: getattr(clf, f"{name}_", None) for name in PROBABILITIES[svm_type]}
    return _Contents(
        svm_type,
        kernel,
        _labels(fitted),
        -sign * clf.intercept_,
        clf.n_support_.tolist() if fitted.has_classes else None,
        sign * dense(clf.dual_coef_),
        clf.support_vectors_,
        clf.support_ + 1 if isinstance(kernel, Precomputed) else None,
        {name: values for name, values in found.items() if values is not None},
    )


def _of_planes(fitted: FittedModel, planes: Planes) -> _Contents:
    """Return planes with one support vector each, w; that of a pair of classes is of its first."""
    sign, n_classes = _sign(fitted), max(2, len(fitted.classes))
    coefficients = np.zeros((n_classes - 1, len(planes.w)))
    for k, (_, j) in enumerate(OneVsOne.pairs(n_classes)):
        coefficients[j - 1, k] = sign
    counts = [n_classes - 1 - i for i in range(n_classes)] if fitted.has_classes else None
    return _Contents(
        _svm_type(fitted),
        Linear(),
        _labels(fitted),
        -sign * planes.b,
        counts,
        coefficients,
        planes.w,
    )


def _sign(fitted: FittedModel) -> float:
    """Return −1 for two classes: g is positive for the second, LIBSVM's for the first."""
    return -1.0 if fitted.scheme == "binary" else 1.0


def _scaling(steps: list[Any]) -> Scaling | None:
    """Return the scaling of the steps before a classifier; None where it changes nothing."""
    whole: Scaling | None = None
    for step in steps:
        scaling = scaling_of(step)
        if scaling is None or getattr(step, "clip", False):
            raise TypeError(
                f"{type(step).__name__} does more than shift and scale every feature, which LIBSVM "
                "cannot represent: save the estimator alone, model[-1], or use save_onnx."
            )
        whole = scaling if whole is None else whole.then(scaling)
    is_nothing = whole is None or ((whole.shift == 0.0) & (whole.factor == 1.0)).all()
    return None if is_nothing else whole


def _folded(scaling: Scaling, fitted: FittedModel) -> _Contents | None:
    """Return a linear model with the scaling in its w and b; None of another model."""
    if isinstance(fitted.classifier, KernelMachine):
        _require_pairs(fitted)
    else:
        _plane(fitted)
    if not isinstance(fitted.decision, Planes):
        return None
    return _of_planes(fitted, fitted.decision.before(scaling))


def _range_lines(scaling: Scaling) -> Iterator[str]:
    """Yield the file of svm-scale: shift ∓ 1/factor become ∓1, so x becomes (x − shift)·factor."""
    yield "x\n-1 1\n"
    reach = 1.0 / scaling.factor
    for k, (low, high) in enumerate(
        zip(scaling.shift - reach, scaling.shift + reach, strict=True), 1
    ):
        yield f"{k} {low:.17g} {high:.17g}\n"


def _plane(fitted: FittedModel) -> Planes:
    """Return the plane of a model without support vectors; raise where it does not have one."""
    one = fitted.scheme in ("binary", "targets")
    if one and isinstance(fitted.decision, Planes):
        return fitted.decision
    many = "" if one else f" of {len(fitted.classes)} classes"
    raise TypeError(
        f"LIBSVM has no model for {fitted.name}{many}: pass SVC, NuSVC, SVR, NuSVR, OneClassSVM, "
        "LinearSVR, or a linear classifier of two classes."
    )


def _require_pairs(fitted: FittedModel) -> None:
    if fitted.scheme in ("ovr", "joint"):
        raise TypeError(
            "LIBSVM has many classes by pairs only, this "
            f"{fitted.name} has multi_class={fitted.classifier.multi_class!r}: fit with "
            "multi_class='ovo'."
        )


def _svm_type(fitted: FittedModel) -> str:
    machines = (name for name, kind in SVM_TYPES.items() if isinstance(fitted.classifier, kind))
    return next(machines, "epsilon_svr" if fitted.has_targets else "c_svc")


def _labels(fitted: FittedModel) -> list[int] | None:
    """Return integers for labels: themselves where they are whole numbers, else 0, 1, …"""
    if not fitted.has_classes:
        return None
    labels = fitted.classes.tolist()
    whole = all(isinstance(v, bool | int | float) and v == int(v) for v in labels)
    if whole and all(abs(v) <= LARGEST_INT for v in labels):
        return [int(label) for label in labels]
    return list(range(len(labels)))


def _lines(contents: _Contents) -> Iterator[str]:
    name, (_, _, parameters) = next(
        (name, entry) for name, entry in KERNELS.items() if isinstance(contents.kernel, entry[0])
    )
    yield f"svm_type {contents.svm_type}\n"
    yield f"kernel_type {name}\n"
    for parameter in parameters:
        yield f"{parameter} {getattr(contents.kernel, parameter):.17g}\n"
    yield f"nr_class {len(contents.coefficients) + 1}\n"
    yield f"total_sv {contents.coefficients.shape[1]}\n"
    yield f"rho {_numbers(contents.rho)}\n"
    if contents.labels is not None:
        yield f"label {' '.join(map(str, contents.labels))}\n"
    for name, values in contents.probabilities.items():
        yield f"{name} {_numbers(values)}\n"
    if contents.counts is not None:
        yield f"nr_sv {' '.join(map(str, contents.counts))}\n"
    yield "SV\n"
    for k, coefficients in enumerate(contents.coefficients.T):
        yield f"{_numbers(coefficients)} {_entries(contents, k)}\n"


def _numbers(values: Floats) -> str:
    return " ".join(f"{value:.17g}" for value in values.tolist())


def _entries(contents: _Contents, k: int) -> str:
    """Return a support vector as index:value, zeros left out."""
    if contents.serials is not None:
        return f"0:{contents.serials[k]} "
    vectors = contents.vectors
    if sparse.issparse(vectors):
        part = slice(vectors.indptr[k], vectors.indptr[k + 1])
        columns, values = vectors.indices[part], vectors.data[part]
        order = np.argsort(columns, kind="stable")
        columns, values = columns[order], values[order]
    else:
        columns, values = np.arange(vectors.shape[1]), vectors[k]
    pairs = zip(columns.tolist(), values.tolist(), strict=True)
    return "".join(f"{column + 1}:{value:.17g} " for column, value in pairs if value != 0.0)
