"""Models written as LIBSVM's text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
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
from ..estimators.svc import NuSVC
from ..kernels import Kernel, Linear, Precomputed
from ..multiclass import OneVsOne
from .errors import PathLike
from .libsvm_format import KERNELS, LARGEST_INT
from .writing import write_text

__all__ = ["save_libsvm"]


@dataclass(frozen=True)
class _Contents:
    """The contents of a file: coefficients of shape (n_classes − 1, n_support), rho of pairs."""

    svm_type: str
    kernel: Kernel
    labels: list[int]
    rho: Floats
    counts: list[int]
    coefficients: Floats
    vectors: Any
    serials: NDArray[np.integer[Any]] | None = None
    sigmoids: tuple[Floats, Floats] | None = None


def save_libsvm(model: ModelLike, path: PathLike) -> None:
    """Write a model as LIBSVM's text, which svm-predict and many other programs read.

    SVC and NuSVC of two classes, or of pairs of many, with any of LIBSVM's kernels keep their
    support vectors (rows of the training data). A linear model of two classes becomes one support
    vector, w, and so do the planes of a linear SVC in a pipeline that scales features; the scaling
    becomes a part of w. For other kernels the scaling is written to ``path``.range, for
    ``svm-scale -r``.

    Parameters
    ----------
    model : SVC, NuSVC, a linear classifier of two classes, or a Pipeline of scalers and one
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
    fitted.require_classes()
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
    if contents.labels != fitted.classes.tolist():
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
    decision = fitted.decision
    if not isinstance(decision, Planes) or not fitted.is_binary:
        many = "" if fitted.is_binary else f" of {len(fitted.classes)} classes"
        raise TypeError(
            f"LIBSVM has no model for {fitted.name}{many}: pass SVC, NuSVC, or a linear "
            "classifier of two classes."
        )
    return _of_planes("c_svc", fitted.classes, decision)


def _of_kernel_machine(fitted: FittedModel) -> _Contents:
    _require_pairs(fitted)
    clf, kernel = fitted.classifier, fitted.kernel
    if kernel is None or not isinstance(kernel, tuple(kind for kind, _, _ in KERNELS.values())):
        raise TypeError(
            f"the kernel must be one of LIBSVM's, linear, poly, rbf, sigmoid or precomputed; got "
            f"{kernel!r}."
        )
    dual, two = dense(clf.dual_coef_), fitted.is_binary
    # g of two classes is positive for the second, LIBSVM's for the first.
    return _Contents(
        _svm_type(fitted),
        kernel,
        _labels(fitted.classes),
        clf.intercept_ if two else -clf.intercept_,
        clf.n_support_.tolist(),
        -dual if two else dual,
        clf.support_vectors_,
        clf.support_ + 1 if isinstance(kernel, Precomputed) else None,
        (clf.probA_, clf.probB_) if hasattr(clf, "probA_") else None,
    )


def _of_planes(svm_type: str, classes: NDArray[Any], planes: Planes) -> _Contents:
    """Return planes of pairs with one support vector each: w_ij, of class i."""
    n_classes = len(classes)
    pairs = OneVsOne.pairs(n_classes)
    coefficients = np.zeros((n_classes - 1, len(pairs)))
    for k, (_, j) in enumerate(pairs):
        coefficients[j - 1, k] = -1.0 if n_classes == 2 else 1.0
    counts = [n_classes - 1 - i for i in range(n_classes)]
    rho = planes.b if n_classes == 2 else -planes.b
    return _Contents(svm_type, Linear(), _labels(classes), rho, counts, coefficients, planes.w)


def _scaling(steps: list[Any]) -> Scaling | None:
    """Return the scaling of the steps before a classifier; None where it changes nothing."""
    whole: Scaling | None = None
    for step in steps:
        scaling = scaling_of(step)
        if scaling is None or getattr(step, "clip", False):
            raise TypeError(
                f"{type(step).__name__} does more than shift and scale every feature, which LIBSVM "
                "cannot represent: save the classifier alone, model[-1], or use save_onnx."
            )
        whole = scaling if whole is None else whole.then(scaling)
    is_nothing = whole is None or ((whole.shift == 0.0) & (whole.factor == 1.0)).all()
    return None if is_nothing else whole


def _folded(scaling: Scaling, fitted: FittedModel) -> _Contents | None:
    """Return a linear model with the scaling in its w and b; None of another model."""
    if isinstance(fitted.classifier, KernelMachine):
        _require_pairs(fitted)
    elif not fitted.is_binary:
        return _contents(fitted)  # which raises
    if not isinstance(fitted.decision, Planes):
        return None
    return _of_planes(_svm_type(fitted), fitted.classes, fitted.decision.before(scaling))


def _range_lines(scaling: Scaling) -> Iterator[str]:
    """Yield the file of svm-scale: shift ∓ 1/factor become ∓1, so x becomes (x − shift)·factor."""
    yield "x\n-1 1\n"
    reach = 1.0 / scaling.factor
    for k, (low, high) in enumerate(
        zip(scaling.shift - reach, scaling.shift + reach, strict=True), 1
    ):
        yield f"{k} {low:.17g} {high:.17g}\n"


def _require_pairs(fitted: FittedModel) -> None:
    if not fitted.is_binary and fitted.scheme != "ovo":
        raise TypeError(
            "LIBSVM has many classes by pairs only, this "
            f"{fitted.name} has multi_class={fitted.classifier.multi_class!r}: fit with "
            "multi_class='ovo'."
        )


def _svm_type(fitted: FittedModel) -> str:
    return "nu_svc" if isinstance(fitted.classifier, NuSVC) else "c_svc"


def _labels(classes: NDArray[Any]) -> list[int]:
    """Return integers for labels: themselves where they are whole numbers, else 0, 1, …"""
    labels = classes.tolist()
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
    yield f"nr_class {len(contents.labels)}\n"
    yield f"total_sv {sum(contents.counts)}\n"
    yield f"rho {' '.join(f'{value:.17g}' for value in contents.rho.tolist())}\n"
    yield f"label {' '.join(map(str, contents.labels))}\n"
    for name, values in zip(("probA", "probB"), contents.sigmoids or (), strict=False):
        yield f"{name} {' '.join(f'{value:.17g}' for value in values.tolist())}\n"
    yield f"nr_sv {' '.join(map(str, contents.counts))}\n"
    yield "SV\n"
    for k, coefficients in enumerate(contents.coefficients.T.tolist()):
        numbers = " ".join(f"{value:.17g}" for value in coefficients)
        yield f"{numbers} {_entries(contents, k)}\n"


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
