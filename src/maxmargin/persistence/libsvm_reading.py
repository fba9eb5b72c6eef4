"""LIBSVM's text models read as fitted estimators."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats
from ..diagnostics.fitted_model import ModelLike
from ..estimators.one_class import OneClassSVM
from ..estimators.svc import SVC, NuSVC
from ..estimators.svr import SVR, NuSVR
from ..kernels import Kernel
from .checks import LIMITS, check_model
from .errors import InconsistentModelError, ModelFileError, PathLike
from .imported import Unproved
from .libsvm_format import KERNELS, LARGEST_INT, PROBABILITIES, SVM_TYPES

__all__ = ["load_libsvm"]

# Entries of the header by form: one word, one number, or several; and those of integers.
WORDS = ("svm_type", "kernel_type")
SINGLE = ("degree", "gamma", "coef0", "nr_class", "total_sv")
SEVERAL = ("rho", "label", "nr_sv", "probA", "probB", "prob_density_marks")
WHOLE = ("degree", "nr_class", "total_sv", "label", "nr_sv")
# Entries that some types have and others do not.
OF_CLASSES, OF_SOME = ("label", "nr_sv"), ("label", "nr_sv", "probA", "probB")
# Bytes per read, letters of the longest word, and words of the longest entry of the header: rho
# has k(k − 1)/2.
PIECE_BYTES, LONGEST_WORD, MOST_WORDS = 1 << 16, 1000, 1 << 22


def load_libsvm(
    path: PathLike, *, n_features: int | None = None
) -> SVC | NuSVC | SVR | NuSVR | OneClassSVM:
    """Read a model of LIBSVM's ``svm-train`` as a fitted estimator with the same predictions.

    ``classes_`` are the labels in the order of the file. For two classes decision_function is
    positive for the second, LIBSVM's value for the first: it is its negative. With
    ``decision_function_shape="ovo"`` (set here) the values of pairs are LIBSVM's own. A regression
    that was trained with ``-b 1`` has ``probA_``, the scale of the Laplace distribution of its
    errors; marks of the density of one class are not kept.

    The file does not hold C, ν, ε, the rows of the support vectors (``support_`` is −1), or the
    accuracy of the optimum: ``certificate_`` raises AttributeError, and so does ``epsilon_``.

    Parameters
    ----------
    path : str or path
        The file.
    n_features : int, optional
        Features of the data, or training rows of a precomputed kernel; by default the largest index
        in the file, which must then be below 2²⁷: products of wider rows take gigabytes.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        The fitted model.

    Raises
    ------
    ModelFileError
        For a file that is not such a model, or one that cannot predict; the message names the
        line. Lines are read in pieces, so that memory grows only with the numbers of the model.

    See Also
    --------
    save_libsvm : Write such a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin as mm
    >>> from maxmargin.persistence import load_libsvm, save_libsvm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "six.model")
    >>> save_libsvm(mm.SVC(kernel="linear").fit(X, y), path)
    >>> print(load_libsvm(path).predict(X))
    [ 1  1  1 -1 -1 -1]
    """
    with open(path, "rb") as file:
        reader = _Reader(
            path, file, LIMITS.most_sparse_columns if n_features is None else LARGEST_INT
        )
        header = reader.header()
        vectors = reader.vectors(header)
    kernel = _kernel(reader, header)
    width = _width(path, vectors.largest, n_features)
    model = _model(header, kernel, vectors, width)
    try:
        check_model(model, widest=LARGEST_INT)  # n_features may ask for more columns
    except InconsistentModelError as error:
        raise ModelFileError(f"{path}: {error}.") from error
    return model  # type: ignore[no-any-return]


@dataclass
class _Header:
    words: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.words["svm_type"]

    @property
    def n_classes(self) -> int:
        return int(self.numbers["nr_class"][0])

    @property
    def has_classes(self) -> bool:
        return self.words.get("svm_type") in ("c_svc", "nu_svc")

    @property
    def probabilities(self) -> dict[str, list[float]]:
        """What the file says about probabilities."""
        names = PROBABILITIES[self.kind]
        return {name: self.numbers[name] for name in names if name in self.numbers}


@dataclass
class _Vectors:
    """Support vectors read so far; the size is that of the file, not what its header claims."""

    coefficients: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))
    columns: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q", [0]))
    largest: int = 0


@dataclass
class _Line:
    """State of a support vector that is being read."""

    n_coefficients: int
    missing: int = field(init=False)
    last: int = 0
    serials: list[str] = field(default_factory=list)
    is_empty: bool = True

    def __post_init__(self) -> None:
        self.missing = self.n_coefficients


class _Reader:
    """Words of a file, with line numbers for errors; lines are read in pieces."""

    def __init__(self, path: PathLike, file: BinaryIO, widest: int) -> None:
        self.path, self.file, self.widest, self.number = path, file, widest, 0

    def refuse(self, what: str) -> NoReturn:
        raise ModelFileError(f"{self.path}, line {self.number}: {what}.")

    def pieces(self) -> Iterator[tuple[list[str], bool]]:
        """Yield words of a line, and whether it ends with them."""
        rest, is_new = b"", True
        while piece := self.file.readline(PIECE_BYTES):
            self.number += is_new
            is_new = piece.endswith(b"\n")
            text, rest = rest + piece, b""
            if not is_new:  # the last word may continue
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
            self.refuse("the line must be ASCII text, as in a model of LIBSVM")

    # The header ------------------------------------------------------------------------------

    def header(self) -> _Header:
        header, words = _Header(), []
        for piece, ends in self.pieces():
            words += piece
            if words and words[0] not in (*WORDS, *SINGLE, *SEVERAL, "SV"):
                self.refuse(f"{words[0]!r:.50} is not an entry of a model of LIBSVM")
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
            self.refuse(f"{name!r:.50} is not an entry of a model of LIBSVM")
        if name in SINGLE and len(parts) != 1:
            self.refuse(f"{name} takes one number, not {' '.join(parts)!r:.50}")

    def _number(self, name: str, text: str) -> float | int:
        try:
            value = int(text) if name in WHOLE else float(text)
        except ValueError:
            self.refuse(f"{name} holds {text!r:.50}, which is not a number")
        if "_" in text or not math.isfinite(value) or (name in WHOLE and abs(value) > LARGEST_INT):
            self.refuse(f"{name} holds {text!r:.50}, which is not a finite number")
        return value

    def _check(self, header: _Header) -> None:
        needed = [*WORDS, "nr_class", "total_sv", "rho"]
        needed += OF_CLASSES if header.has_classes else ()
        for name in needed:
            if name not in header.words and name not in header.numbers:
                self.refuse(f"{name} is missing before the support vectors")
        kind, kernel = header.words["svm_type"], header.words["kernel_type"]
        if kind not in SVM_TYPES:
            self.refuse(f"svm_type must be one of {', '.join(SVM_TYPES)}; got {kind!r:.50}")
        if kernel not in KERNELS:
            self.refuse(f"kernel_type {kernel!r:.50} is unknown")
        for name in KERNELS[kernel][2]:
            if name not in header.numbers:
                self.refuse(f"{name} of the {kernel} kernel is missing")
        self._check_counts(header)

    def _check_counts(self, header: _Header) -> None:
        k, numbers = header.n_classes, header.numbers
        if k < 2:
            self.refuse(f"nr_class must be at least 2, got {k}")
        if k > 2 and not header.has_classes:
            self.refuse(f"nr_class of {header.kind} must be 2, got {k}")
        expected = {"rho": k * (k - 1) // 2}
        expected |= dict.fromkeys(OF_CLASSES, k) if header.has_classes else {}
        if header.probabilities:
            expected |= dict.fromkeys(PROBABILITIES[header.kind], expected["rho"])
        for name, count in expected.items():
            found = len(numbers.get(name, []))
            if found != count:
                what = f"{k} classes have" if header.has_classes else f"{header.kind} has"
                self.refuse(f"{what} {count} numbers in {name}, not {found}")
        for name in OF_SOME:
            if name in numbers and name not in expected:
                self.refuse(f"a model of {header.kind} has no {name}")
        total = numbers["total_sv"][0]
        if total < 0:
            self.refuse(f"total_sv must be at least 0, got {total}")
        if header.has_classes:
            self._check_classes(numbers["label"], numbers["nr_sv"], total)

    def _check_classes(self, labels: list[int], counts: list[int], total: int) -> None:
        if len(set(labels)) != len(labels):
            self.refuse("label holds a label twice")
        if min(counts) < 0 or sum(counts) != total:
            self.refuse(f"nr_sv {counts!r:.100} does not add up to total_sv {total}")

    # Support vectors -------------------------------------------------------------------------

    def vectors(self, header: _Header) -> _Vectors:
        vectors, total = _Vectors(), header.numbers["total_sv"][0]
        given = header.words["kernel_type"] == "precomputed"
        line = _Line(header.n_classes - 1)
        is_blank = False  # after a blank line all others must be blank
        for words, ends in self.pieces():
            if words and is_blank:
                self.refuse("a line before this one is blank")
            if words and len(vectors.ends) > total:
                self.refuse(f"total_sv is {total}, but there is another support vector")
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
                self.refuse(f"indices must increase from 1, but {index} follows {last}")
            if index > self.widest:
                self.refuse(f"index {index} would take gigabytes: pass n_features if it is right")
            vectors.columns.append(index - 1)
            vectors.values.append(value)
            last = index
        vectors.largest = max(vectors.largest, last)
        return last

    def _serial(self, vectors: _Vectors, parts: list[str]) -> None:
        if len(parts) != 1:
            self.refuse("a support vector of a precomputed kernel must be 0:serial")
        index, value = self._entry(parts[0])
        if index != 0 or not value.is_integer() or not 1 <= value <= self.widest:
            self.refuse(
                f"a support vector of a precomputed kernel must be 0:serial, got {parts[0]!r:.50}"
            )
        vectors.columns.append(int(value) - 1)
        vectors.largest = max(vectors.largest, int(value))

    def _entry(self, part: str) -> tuple[int, float]:
        index, colon, value = part.partition(":")
        if not colon or not index.isdigit() or len(index) > 10 or int(index) > LARGEST_INT:
            self.refuse(f"{part!r:.50} is not index:value")
        return int(index), self._finite(value)

    def _finite(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            self.refuse(f"{text!r:.50} is not a number")
        if "_" in text or not math.isfinite(value):
            self.refuse(f"{text!r:.50} is not a finite number")
        return value


def _kernel(reader: _Reader, header: _Header) -> Kernel:
    kind, _, names = KERNELS[header.words["kernel_type"]]
    try:
        return kind(**{name: header.numbers[name][0] for name in names})
    except ValueError as error:
        raise ModelFileError(f"{reader.path}: {error}") from error


def _width(path: PathLike, largest: int, n_features: int | None) -> int:
    if n_features is None:
        return max(largest, 1)
    if n_features < max(largest, 1):
        raise ValueError(f"n_features={n_features}, but {path} has index {largest}: pass as many.")
    return int(n_features)


def _model(header: _Header, kernel: Kernel, vectors: _Vectors, width: int) -> ModelLike:
    _, name, parameters = KERNELS[header.words["kernel_type"]]
    options: dict[str, Any] = {key: getattr(kernel, key) for key in parameters}
    if header.has_classes:
        options |= {"decision_function_shape": "ovo", "probability": bool(header.probabilities)}
    model = SVM_TYPES[header.kind](kernel=name, **options)
    n_support = len(vectors.ends) - 1
    given = name == "precomputed"
    # LIBSVM's values are positive for the first of two classes, ours for the second.
    sign = -1.0 if header.has_classes and header.n_classes == 2 else 1.0
    columns = np.array(vectors.columns, dtype=np.int64)
    dual = np.array(vectors.coefficients).reshape(n_support, header.n_classes - 1).T.copy()
    rows: Any = np.empty((0, width))
    if not given:
        rows = _smaller(np.array(vectors.values), columns, np.array(vectors.ends), width)
    dual *= sign
    rho = np.array(header.numbers["rho"], dtype=np.float64)
    unproved = Unproved("LIBSVM")
    attributes: dict[str, Any] = {
        "n_features_in_": width,
        "kernel_": kernel,
        "support_": (columns if given else np.full(n_support, -1)).astype(np.int32),
        "support_vectors_": rows,
        "n_support_": np.array(header.numbers.get("nr_sv", [n_support]), dtype=np.int32),
        "dual_coef_": sparse.csr_matrix(dual) if sparse.issparse(rows) else dual,
        "intercept_": -sign * rho,
        "shape_fit_": (width if given else n_support, width),
        "certificates_": unproved,
        "statuses_": unproved,
        "traces_": unproved,
        "_memory": None,
        "_fitted_on": None,
        "_objects": None,
        **{f"{name}_": np.array(values, float) for name, values in header.probabilities.items()},
    }
    if header.has_classes:
        labels = np.array(header.numbers["label"], dtype=np.int64)
        attributes |= {"classes_": labels, "_reduced_by": "ovo"}
    for attribute, value in attributes.items():
        setattr(model, attribute, value)
    check_is_fitted(model)
    return model


def _smaller(values: Floats, columns: Any, ends: Any, width: int) -> Any:
    """Return support vectors as an array or a CSR matrix, whichever takes less memory."""
    n = ends.size - 1
    rows = sparse.csr_matrix((values, columns, ends), shape=(n, width))
    stored = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    return rows if stored < 8 * n * width else rows.toarray()
