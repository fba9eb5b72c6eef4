"""LIBSVM's text models, both ways.

A file holds parameters, a line each, and after ``SV`` the support vectors, class by class: their
k − 1 coefficients and index:value pairs. Of classes i < j in the order of ``label``,
Σ coef K(x, sv) − rho > 0 is a vote for i (Chang, Lin, *LIBSVM*, 2011; its README, "Model file").
"""

from __future__ import annotations

import math
import os
import warnings
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats
from ..estimators.column_encoder import ColumnEncoder
from ..estimators.svc import SVC, KernelMachine, NuSVC
from ..kernels import RBF, Kernel, Linear, Polynomial, Precomputed, Sigmoid
from ..multiclass import OneVsOne
from .checks import check_model
from .description import Affine, Planes, affine, describe, unwrap
from .errors import InconsistentModelError, ModelFileError, PathLike
from .imported import Unproved
from .writing import write_text

__all__ = ["load_libsvm", "save_libsvm"]

# LIBSVM's names of kernels, ours, and what each has parameters of.
KERNELS: dict[str, tuple[type[Kernel], str, tuple[str, ...]]] = {
    "linear": (Linear, "linear", ()),
    "polynomial": (Polynomial, "poly", ("degree", "gamma", "coef0")),
    "rbf": (RBF, "rbf", ("gamma",)),
    "sigmoid": (Sigmoid, "sigmoid", ("gamma", "coef0")),
    "precomputed": (Precomputed, "precomputed", ()),
}
MACHINES: dict[str, type[KernelMachine]] = {"c_svc": SVC, "nu_svc": NuSVC}
# LIBSVM's int.
LARGEST = 2**31 - 1
# Features up to which nobody asks whether the file is right: products of sparse rows take memory in
# proportion.
WIDEST = 1 << 27
# What a header may say, and how: one word, one number, or several.
WORDS = ("svm_type", "kernel_type")
SINGLE = ("degree", "gamma", "coef0", "nr_class", "total_sv")
SEVERAL = ("rho", "label", "nr_sv", "probA", "probB", "prob_density_marks")
WHOLE = ("degree", "nr_class", "total_sv", "label", "nr_sv")
IGNORED = ("probA", "probB", "prob_density_marks")
# Bytes that are read at a time, of which no word takes more than these; and words of an entry of
# the header, of which rho has k(k − 1)/2.
PIECE, LONGEST_WORD, MOST_WORDS = 1 << 16, 1000, 1 << 22


# Writing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Contents:
    """What a file says: coefficients of shape (n_classes − 1, n_support), rho of pairs."""

    svm_type: str
    kernel: Kernel
    labels: list[int]
    rho: Floats
    counts: list[int]
    coefficients: Floats
    vectors: Any
    serials: NDArray[Any] | None = None


def save_libsvm(model: Any, path: PathLike) -> None:
    """Write a model as LIBSVM's text, which svm-predict and many other programs read.

    SVC and NuSVC of two classes, or of pairs of many, with any of LIBSVM's kernels keep their
    support vectors (rows of the training data). A linear model of two classes becomes one support
    vector, w, and so do the planes of a linear SVC in a pipeline that scales features, whose
    scaling is taken into w. Where another kernel follows a scaling, that is written beside the
    model, to ``path``.range, for ``svm-scale -r``.

    Parameters
    ----------
    model : SVC, NuSVC, a linear classifier of two classes, or a Pipeline of scalers and one
    path : str or path
        The write is atomic.

    Warns
    -----
    UserWarning
        Where labels are no integers, which LIBSVM knows alone: they become 0, 1, …; where
        ``break_ties=True`` or missing values to fill, which it has no word for; and where data
        need svm-scale first.

    Raises
    ------
    TypeError, ValueError
        For what LIBSVM cannot express.
    """
    steps, machine = unwrap(model)
    scaling = _scaling(steps)
    folded = None if scaling is None else _folded(scaling, machine)
    contents = folded or _contents(machine)
    if scaling is not None and folded is None:  # a kernel cannot take the scaling over
        ranges = f"{os.fspath(path)}.range"
        write_text(ranges, _range_lines(scaling))
        warnings.warn(
            f"LIBSVM's models do not scale features, as steps before {type(machine).__name__} do: "
            f"scale data first, by svm-scale -r {ranges}.",
            UserWarning,
            stacklevel=2,
        )
    if contents.labels != machine.classes_.tolist():
        pairs = zip(contents.labels, machine.classes_.tolist(), strict=True)
        meaning = ", ".join(f"{number} = {label!r}" for number, label in pairs)
        warnings.warn(
            f"LIBSVM's labels are integers; in this file {meaning}.",
            UserWarning,
            stacklevel=2,
        )
    if getattr(machine, "break_ties", False) and len(machine.classes_) > 2:
        warnings.warn(
            "break_ties=True is lost: of classes with equal votes LIBSVM takes the first.",
            UserWarning,
            stacklevel=2,
        )
    encoders = [step for step in steps if isinstance(step, ColumnEncoder)]
    if any(fill is not None for encoder in encoders for fill in encoder.fill_):
        warnings.warn(
            "impute=True is lost: LIBSVM takes a missing value for 0. Fill data first, as fill_ of "
            "the ColumnEncoder says.",
            UserWarning,
            stacklevel=2,
        )
    write_text(path, _lines(contents))


def _contents(machine: Any) -> _Contents:
    if isinstance(machine, KernelMachine):
        return _of_machine(machine)
    description = describe(machine)
    if not isinstance(description.scores, Planes) or description.scheme != "binary":
        many = "" if len(machine.classes_) == 2 else f" of {len(machine.classes_)} classes"
        raise TypeError(
            f"LIBSVM has no model for {type(machine).__name__}{many}: pass SVC, NuSVC, or a linear "
            "classifier of two classes."
        )
    return _of_planes("c_svc", machine.classes_, description.scores)


def _of_machine(machine: Any) -> _Contents:
    _refuse_rest(machine)
    if not any(isinstance(machine.kernel_, kind) for kind, _, _ in KERNELS.values()):
        raise TypeError(
            f"LIBSVM does not know the kernel {machine.kernel_!r}: it has linear, poly, rbf, "
            "sigmoid and precomputed."
        )
    dual = machine.dual_coef_
    dual = dual.toarray() if sparse.issparse(dual) else dual
    # g of two classes is positive for the second, LIBSVM's for the first.
    two = len(machine.classes_) == 2
    given = isinstance(machine.kernel_, Precomputed)
    return _Contents(
        _svm_type(machine),
        machine.kernel_,
        _labels(machine.classes_),
        machine.intercept_ if two else -machine.intercept_,
        machine.n_support_.tolist(),
        -dual if two else dual,
        machine.support_vectors_,
        machine.support_ + 1 if given else None,
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


def _scaling(steps: list[Any]) -> Affine | None:
    """Return what the steps before a machine do to every feature; None where that is nothing."""
    whole: Affine | None = None
    for step in steps:
        map_ = affine(step)
        if map_ is None or getattr(step, "clip", False):
            raise TypeError(
                f"{type(step).__name__} does more than shift and scale every feature, which LIBSVM "
                "cannot take over: save the machine alone, model[-1], or use save_onnx."
            )
        whole = map_ if whole is None else whole.then(map_)
    is_nothing = whole is None or ((whole.shift == 0.0) & (whole.factor == 1.0)).all()
    return None if is_nothing else whole


def _folded(scaling: Affine, machine: Any) -> _Contents | None:
    """Return a linear model with the scaling of features in its w and b; None of another model."""
    description = describe(machine)
    if isinstance(machine, KernelMachine):
        _refuse_rest(machine)
    elif description.scheme != "binary":
        return _contents(machine)  # says why not
    if not isinstance(description.scores, Planes):
        return None
    planes = description.scores.of(scaling)
    return _of_planes(_svm_type(machine), machine.classes_, planes)


def _range_lines(scaling: Affine) -> Iterator[str]:
    """Yield the file of svm-scale: shift ∓ 1/factor become ∓1, so x becomes (x − shift)·factor."""
    yield "x\n-1 1\n"
    reach = 1.0 / scaling.factor
    for k, (low, high) in enumerate(
        zip(scaling.shift - reach, scaling.shift + reach, strict=True), 1
    ):
        yield f"{k} {low:.17g} {high:.17g}\n"


def _refuse_rest(machine: Any) -> None:
    if len(machine.classes_) > 2 and not isinstance(machine._reduction(), OneVsOne):
        raise TypeError(
            f"LIBSVM knows many classes by pairs only, this {type(machine).__name__} has "
            "multi_class='ovr': fit with multi_class='ovo'."
        )


def _svm_type(machine: Any) -> str:
    return "nu_svc" if isinstance(machine, NuSVC) else "c_svc"


def _labels(classes: NDArray[Any]) -> list[int]:
    """Return integers for labels: themselves where they are whole numbers, else 0, 1, …"""
    labels = classes.tolist()
    if all(isinstance(v, bool | int | float) and v == int(v) and abs(v) <= LARGEST for v in labels):
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


# Reading -------------------------------------------------------------------------------------


def load_libsvm(path: PathLike, *, n_features: int | None = None) -> SVC | NuSVC:
    """Read a model of LIBSVM's ``svm-train``: a fitted SVC or NuSVC that predicts as it does.

    ``classes_`` are the labels in the order of the file. Of two classes decision_function is
    positive for the second, LIBSVM's value for the first: it is the negative of it. With
    ``decision_function_shape="ovo"`` (set here) the values of pairs are LIBSVM's own.

    The file does not tell C, the rows that support vectors were (``support_`` is −1), nor how well
    the optimum was met: ``certificate_`` raises AttributeError. A model consists of rows of its
    training data.

    Parameters
    ----------
    path : str or path
    n_features : int, optional
        Features of the data, or training rows of a precomputed kernel; by default the largest index
        in the file, which must then be below 2²⁷: products of wider rows take gigabytes.

    Raises
    ------
    ModelFileError
        For a file that is no such model, or one that cannot predict; the message names the line.
        Lines are read in pieces, and memory grows with the numbers of the model only.
    """
    with open(path, "rb") as file:
        reader = _Reader(path, file, WIDEST if n_features is None else LARGEST)
        header = reader.header()
        vectors = reader.vectors(header)
    kernel = _kernel(reader, header)
    _warn_of_probabilities(path, header)
    width = _width(path, vectors.largest, n_features)
    model = _model(header, kernel, vectors, width)
    try:
        check_model(model, widest=LARGEST)  # wider than WIDEST is what the caller asks for
    except InconsistentModelError as error:
        raise ModelFileError(f"{path}: {error}.") from error
    return model


@dataclass
class _Header:
    words: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        return int(self.numbers["nr_class"][0])


@dataclass
class _Vectors:
    """Support vectors as they are read: as large as the file, whatever it claims."""

    coefficients: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))
    columns: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q", [0]))
    largest: int = 0


@dataclass
class _Line:
    """How far a support vector is read."""

    n_coefficients: int
    missing: int = field(init=False)
    last: int = 0
    serials: list[str] = field(default_factory=list)
    is_empty: bool = True

    def __post_init__(self) -> None:
        self.missing = self.n_coefficients


class _Reader:
    """Words of a file, with the numbers of their lines for errors.

    Lines are read in pieces: one without an end takes no more memory than what it says.
    """

    def __init__(self, path: PathLike, file: BinaryIO, widest: int) -> None:
        self.path, self.file, self.widest, self.number = path, file, widest, 0

    def refuse(self, what: str) -> NoReturn:
        raise ModelFileError(f"{self.path}, line {self.number}: {what}.")

    def pieces(self) -> Iterator[tuple[list[str], bool]]:
        """Yield words of a line, and whether it ends with them."""
        rest, is_new = b"", True
        while piece := self.file.readline(PIECE):
            self.number += is_new
            is_new = piece.endswith(b"\n")
            text, rest = rest + piece, b""
            if not is_new:  # the last word may go on
                cut = max(text.rfind(b" "), text.rfind(b"\t")) + 1
                text, rest = text[:cut], text[cut:]
                if len(rest) > LONGEST_WORD:
                    self.refuse(f"a word has more than {LONGEST_WORD} letters")
            yield self._words(text), is_new
        if not is_new:
            yield self._words(rest), True

    def _words(self, text: bytes) -> list[str]:
        try:
            return text.decode("ascii").split()
        except UnicodeDecodeError:
            self.refuse("it is no text, so that this is no model of LIBSVM")

    # The header ------------------------------------------------------------------------------

    def header(self) -> _Header:
        header, words = _Header(), []
        for piece, ends in self.pieces():
            words += piece
            if words and words[0] not in (*WORDS, *SINGLE, *SEVERAL, "SV"):
                self.refuse(f"{words[0]!r:.50} is no entry of a model of LIBSVM")
            if len(words) > MOST_WORDS:
                self.refuse(f"{words[0]} has more than {MOST_WORDS} numbers")
            if ends:
                if words == ["SV"]:
                    self._check(header)
                    return header
                self._entry_of_header(header, *(words or [""]))
                words = []
        what = "the file ends before its support vectors: there is no line 'SV'"
        return self.refuse(what if self.number else "the file is empty")

    def _entry_of_header(self, header: _Header, name: str, *parts: str) -> None:
        if name in header.words or name in header.numbers:
            self.refuse(f"{name} is given twice")
        if name in WORDS:
            header.words[name] = " ".join(parts)
        elif name in SINGLE or name in SEVERAL:
            header.numbers[name] = [self._number(name, part) for part in parts]
        else:
            self.refuse(f"{name!r:.50} is no entry of a model of LIBSVM")
        if name in SINGLE and len(parts) != 1:
            self.refuse(f"{name} takes one number, not {' '.join(parts)!r:.50}")

    def _number(self, name: str, text: str) -> float | int:
        try:
            value = int(text) if name in WHOLE else float(text)
        except ValueError:
            self.refuse(f"{name} holds {text!r:.50}, which is no number")
        if "_" in text or not math.isfinite(value) or (name in WHOLE and abs(value) > LARGEST):
            self.refuse(f"{name} holds {text!r:.50}, which is no finite number")
        return value

    def _check(self, header: _Header) -> None:
        for name in ("svm_type", "kernel_type", "nr_class", "total_sv", "rho", "label", "nr_sv"):
            if name not in header.words and name not in header.numbers:
                self.refuse(f"{name} is missing before the support vectors")
        kind, kernel = header.words["svm_type"], header.words["kernel_type"]
        if kind not in MACHINES:
            self.refuse(f"svm_type {kind!r:.50} is no classifier: c_svc and nu_svc can be read")
        if kernel not in KERNELS:
            self.refuse(f"kernel_type {kernel!r:.50} is unknown")
        for name in KERNELS[kernel][2]:
            if name not in header.numbers:
                self.refuse(f"{name} of the {kernel} kernel is missing")
        self._check_counts(header)

    def _check_counts(self, header: _Header) -> None:
        k, numbers = header.n_classes, header.numbers
        if k < 2:
            self.refuse(f"nr_class is {k}: a classifier has at least 2 classes")
        expected = {"label": k, "nr_sv": k, "rho": k * (k - 1) // 2}
        for name, count in expected.items():
            if len(numbers[name]) != count:
                self.refuse(f"{k} classes have {count} numbers in {name}, not {len(numbers[name])}")
        if len(set(numbers["label"])) != k:
            self.refuse("label holds a label twice")
        counts, total = numbers["nr_sv"], numbers["total_sv"][0]
        if min(counts) < 0 or sum(counts) != total:
            self.refuse(f"nr_sv {counts!r:.100} does not add up to total_sv {total}")

    # Support vectors -------------------------------------------------------------------------

    def vectors(self, header: _Header) -> _Vectors:
        vectors, total = _Vectors(), header.numbers["total_sv"][0]
        given = header.words["kernel_type"] == "precomputed"
        line = _Line(header.n_classes - 1)
        is_blank = False  # once a line was, all that follow must be
        for words, ends in self.pieces():
            if words and is_blank:
                self.refuse("a line before this one is blank")
            if words and len(vectors.ends) > total:
                self.refuse(f"total_sv is {total}, and here is another support vector")
            self._take(vectors, line, words, given)
            if ends and line.is_empty:
                is_blank = True
            elif ends:
                self._end(vectors, line, given)
                line = _Line(header.n_classes - 1)
        found = len(vectors.ends) - 1
        if found < total:
            self.refuse(f"the file ends after {found} of {total} support vectors")
        return vectors

    def _take(self, vectors: _Vectors, line: _Line, words: list[str], given: bool) -> None:
        """Read words of a support vector: coefficients first, then entries."""
        line.is_empty = line.is_empty and not words
        coefficients = words[: line.missing]
        vectors.coefficients.extend(self._finite(word) for word in coefficients)
        line.missing -= len(coefficients)
        entries = words[len(coefficients) :]
        if given:
            line.serials += entries[:2]
        else:
            line.last = self._entries(vectors, entries, line.last)

    def _end(self, vectors: _Vectors, line: _Line, given: bool) -> None:
        if line.missing:
            n = line.n_coefficients
            self.refuse(f"a support vector has {n} coefficients, not {n - line.missing}")
        if given:
            self._serial(vectors, line.serials)
        vectors.ends.append(len(vectors.columns))

    def _entries(self, vectors: _Vectors, parts: list[str], last: int) -> int:
        for part in parts:
            index, value = self._entry(part)
            if index < 1 or index <= last:
                self.refuse(f"indices go up from 1, but {index} follows {last}")
            if index > self.widest:
                self.refuse(f"index {index} would take gigabytes: pass n_features if it is right")
            vectors.columns.append(index - 1)
            vectors.values.append(value)
            last = index
        vectors.largest = max(vectors.largest, last)
        return last

    def _serial(self, vectors: _Vectors, parts: list[str]) -> None:
        if len(parts) != 1:
            self.refuse("a support vector of a precomputed kernel is 0:serial number")
        index, value = self._entry(parts[0])
        if index != 0 or not value.is_integer() or not 1 <= value <= self.widest:
            self.refuse(
                f"a support vector of a precomputed kernel is 0:serial, not {parts[0]!r:.50}"
            )
        vectors.columns.append(int(value) - 1)
        vectors.largest = max(vectors.largest, int(value))

    def _entry(self, part: str) -> tuple[int, float]:
        index, colon, value = part.partition(":")
        if not colon or not index.isdigit() or len(index) > 10 or int(index) > LARGEST:
            self.refuse(f"{part!r:.50} is no index:value")
        return int(index), self._finite(value)

    def _finite(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            self.refuse(f"{text!r:.50} is no number")
        if "_" in text or not math.isfinite(value):
            self.refuse(f"{text!r:.50} is no finite number")
        return value


def _kernel(reader: _Reader, header: _Header) -> Kernel:
    kind, _, names = KERNELS[header.words["kernel_type"]]
    try:
        return kind(**{name: header.numbers[name][0] for name in names})
    except ValueError as error:
        raise ModelFileError(f"{reader.path}: {error}") from error


def _warn_of_probabilities(path: PathLike, header: _Header) -> None:
    ignored = [name for name in IGNORED if name in header.numbers]
    if ignored:
        warnings.warn(
            f"{path}: {', '.join(ignored)} (of probabilities) are left out: use scikit-learn's "
            "CalibratedClassifierCV for probabilities.",
            UserWarning,
            stacklevel=3,
        )


def _width(path: PathLike, largest: int, n_features: int | None) -> int:
    if n_features is None:
        return max(largest, 1)
    if n_features < max(largest, 1):
        raise ValueError(f"n_features={n_features}, but {path} has index {largest}: pass as many.")
    return int(n_features)


def _model(header: _Header, kernel: Kernel, vectors: _Vectors, width: int) -> SVC | NuSVC:
    name = KERNELS[header.words["kernel_type"]][1]
    machine = MACHINES[header.words["svm_type"]]
    options = {key: getattr(kernel, key) for key in KERNELS[header.words["kernel_type"]][2]}
    model: Any = machine(kernel=name, decision_function_shape="ovo", **options)
    n_support = len(vectors.ends) - 1
    two, given = header.n_classes == 2, name == "precomputed"
    columns = np.array(vectors.columns, dtype=np.int64)
    dual = np.array(vectors.coefficients).reshape(n_support, header.n_classes - 1).T.copy()
    rows: Any = np.empty((0, width))
    if not given:
        rows = _smaller(np.array(vectors.values), columns, np.array(vectors.ends), width)
    dual = -dual if two else dual
    rho = np.array(header.numbers["rho"], dtype=np.float64)
    unproved = Unproved("LIBSVM")
    attributes = {
        "n_features_in_": width,
        "classes_": np.array(header.numbers["label"], dtype=np.int64),
        "_reduced_by": "ovo",
        "kernel_": kernel,
        "support_": (columns if given else np.full(n_support, -1)).astype(np.int32),
        "support_vectors_": rows,
        "n_support_": np.array(header.numbers["nr_sv"], dtype=np.int32),
        "dual_coef_": sparse.csr_matrix(dual) if sparse.issparse(rows) else dual,
        "intercept_": rho if two else -rho,
        "shape_fit_": (width if given else n_support, width),
        "certificates_": unproved,
        "statuses_": unproved,
        "traces_": unproved,
        "_memory": None,
        "_fitted_on": None,
        "_objects": None,
    }
    for attribute, value in attributes.items():
        setattr(model, attribute, value)
    check_is_fitted(model)
    return model  # type: ignore[no-any-return]


def _smaller(values: Floats, columns: Any, ends: Any, width: int) -> Any:
    """Return support vectors as an array or a CSR matrix, whichever takes less memory."""
    n = ends.size - 1
    rows = sparse.csr_matrix((values, columns, ends), shape=(n, width))
    stored = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    return rows if stored < 8 * n * width else rows.toarray()
