"""Python values as JSON and tensors, and back, for a closed list of types without code.

Values that JSON has are written as they are, others as an object {"$": type, ...}. The numbers of
arrays are tensors, to which JSON refers by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from numbers import Real
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..arrays import VectorOnDevice
from ..certificates import (
    JointMarginCertificate,
    LeastSquaresCertificate,
    MarginCertificate,
    PlaneCertificate,
    SeparationCertificate,
)
from ..certificates.dual_tasks import Coverage
from ..kernels import KERNELS, Custom, Kernel, Product, Scaled, Sum
from ..progress import UNITS
from ..schedules import Constant, Harmonic
from ..solution import Status, Trace
from .errors import InconsistentModelError
from .imported import Unproved

__all__ = ["CERTIFICATES", "Decoder", "Encoder"]

JSON = Any

DTYPES = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64",
}  # fmt: skip
CERTIFICATES: tuple[type, ...] = (
    SeparationCertificate,
    LeastSquaresCertificate,
    MarginCertificate,
    PlaneCertificate,
    JointMarginCertificate,
)
COMPOSITIONS: tuple[type[Kernel], ...] = (Sum, Product, Scaled)
SCHEDULES: tuple[type, ...] = (Constant, Harmonic)
# Kinds of the arrays of a trace; the others hold numbers.
TRACE_KINDS = {"exact": "b"}
SPARSE = {"csr_matrix": sparse.csr_matrix, "csr_array": sparse.csr_array}
# Nesting of values; more could exhaust the stack.
DEEPEST = 64
# Bytes of an array of text: per letter of the text, and for small arrays.
BYTES_PER_LETTER, SMALL_BYTES = 64, 1 << 20


def _kernels() -> tuple[type[Kernel], ...]:
    """Return the kernels that a file may hold: those with a name, and compositions of them."""
    return (*KERNELS.values(), *COMPOSITIONS)


def _records() -> dict[str, Any]:
    """Return the dataclasses that a file may hold, by name."""
    return {kind.__name__: kind for kind in (*CERTIFICATES, *_kernels(), *SCHEDULES, Trace)}


class Encoder:
    """Convert values to JSON; their arrays are collected in ``tensors``."""

    def __init__(self) -> None:
        self.tensors: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, where: str, depth: int = 0) -> JSON:
        """Return JSON for a value; ``where`` names it in errors."""
        if depth > DEEPEST:
            raise TypeError(f"{where} is nested more than {DEEPEST} deep: pass a simpler value.")
        for kind, method in self._methods.items():
            if isinstance(value, kind):
                return method(self, value, where, depth + 1)
        raise _unknown(value, where)

    def _plain(self, value: Any, where: str, depth: int) -> JSON:
        return value

    def _text(self, value: str, where: str, depth: int) -> JSON:
        return str(value)

    def _float(self, value: float, where: str, depth: int) -> JSON:
        return value if math.isfinite(value) else {"$": "float", "value": repr(value)}

    def _status(self, value: Status, where: str, depth: int) -> JSON:
        return {"$": "Status", "value": value.value}

    def _scalar(self, value: np.generic, where: str, depth: int) -> JSON:
        if value.dtype.name not in DTYPES:
            raise _unknown(value, where)
        number = self.encode(value.item(), where, depth)
        return {"$": "scalar", "dtype": value.dtype.name, "value": number}

    def _list(self, value: list[Any], where: str, depth: int) -> JSON:
        return [self.encode(item, f"{where}[{k}]", depth) for k, item in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], where: str, depth: int) -> JSON:
        return {"$": "tuple", "items": self._list(list(value), where, depth)}

    def _dict(self, value: dict[Any, Any], where: str, depth: int) -> JSON:
        items = [
            [
                self.encode(key, f"a key of {where}", depth),
                self.encode(v, f"{where}[{key!r}]", depth),
            ]
            for key, v in value.items()
        ]
        return {"$": "dict", "items": items}

    def _array(self, value: NDArray[Any], where: str, depth: int) -> JSON:
        if value.dtype.kind in "UO":
            return self._words(value, where, depth)
        if value.dtype.name not in DTYPES:
            raise _unknown(value, where)
        return {"$": "array", "tensor": self._tensor(value)}

    def _vector(self, value: VectorOnDevice, where: str, depth: int) -> JSON:
        return self._array(np.asarray(value.host), where, depth)

    def _words(self, value: NDArray[Any], where: str, depth: int) -> JSON:
        words = value.ravel().tolist()
        if not all(isinstance(word, str | bool | int | float) for word in words):
            raise _unknown(next(w for w in words if not isinstance(w, str | int | float)), where)
        record = {"$": "words", "shape": list(value.shape)}
        if value.dtype.kind == "O":
            return {**record, "words": self._list(words, where, depth)}
        width = value.dtype.itemsize // 4
        if 4 * width * len(words) > _byte_limit(words):
            width = _longest(words)
        return {**record, "width": width, "words": words}

    def _csr(self, value: Any, where: str, depth: int) -> JSON:
        kind = type(value).__name__
        if kind not in SPARSE:
            raise TypeError(f"{where} is a {kind}: pass a CSR matrix, X.tocsr().")
        parts = {name: self._tensor(getattr(value, name)) for name in ("data", "indices", "indptr")}
        return {"$": kind, "shape": [int(size) for size in value.shape], **parts}

    def _record(self, value: Any, where: str, depth: int) -> JSON:
        if _records().get(type(value).__name__) is not type(value):
            raise _unknown(value, where)
        entries = {
            field.name: self.encode(getattr(value, field.name), f"{where}.{field.name}", depth)
            for field in fields(value)
        }
        return {"$": type(value).__name__, "fields": entries}

    def _unproved(self, value: Unproved, where: str, depth: int) -> JSON:
        return {"$": "Unproved", "program": value.program}

    def _tensor(self, value: NDArray[Any]) -> str:
        # The format is little-endian, row by row; np.ascontiguousarray would make 0-d arrays 1-d.
        dtype = value.dtype.newbyteorder("<")
        name = f"t{len(self.tensors)}"
        self.tensors[name] = np.array(value, dtype=dtype, order="C", copy=None)
        return name

    # Subclasses before their base classes: a Status is a str, True an int.
    _methods: ClassVar[dict[Any, Callable[[Encoder, Any, str, int], JSON]]] = {
        type(None): _plain,
        Status: _status,
        str: _text,
        np.generic: _scalar,
        bool: _plain,
        int: _plain,
        float: _float,
        list: _list,
        tuple: _tuple,
        dict: _dict,
        np.ndarray: _array,
        VectorOnDevice: _vector,
        (sparse.spmatrix, sparse.sparray): _csr,
        Unproved: _unproved,
        (*CERTIFICATES, Kernel, *SCHEDULES, Trace): _record,
    }


def _unknown(value: Any, where: str) -> TypeError:
    if isinstance(value, Custom) or (callable(value) and not isinstance(value, type)):
        remedy = "pass a kernel or schedule of maxmargin, or a name"
        return TypeError(f"{where}={value!r} is code, which a model file cannot hold: {remedy}.")
    kind = f"array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
    return TypeError(
        f"{where} is of type {kind}, which a model file cannot hold: pass numbers, text, lists, "
        "dicts, NumPy arrays of numbers or CSR matrices."
    )


class Decoder:
    """Convert JSON back to values, with the tensors that it refers to."""

    def __init__(self, tensors: dict[str, NDArray[Any]]) -> None:
        self.tensors = dict(tensors)
        self.records = _records()

    def decode(self, value: JSON, depth: int = 0) -> Any:
        """Return the value; raise InconsistentModelError where it cannot be decoded."""
        if depth > DEEPEST:
            raise InconsistentModelError(f"values are nested more than {DEEPEST} deep")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("$")
        if kind in self.records:
            return self._record(self.records[kind], self._part(value, "fields", dict), depth + 1)
        if kind in SPARSE:
            return self._csr(value, SPARSE[kind])
        if not isinstance(kind, str) or kind not in self._methods:
            raise InconsistentModelError(f"a value is of unknown type {kind!r}")
        return self._methods[kind](self, value, depth + 1)

    @staticmethod
    def _part(value: dict[str, JSON], name: str, kind: type) -> Any:
        part = value.get(name)
        if type(part) is not kind:
            raise InconsistentModelError(f"{value['$']} has {name}={part!r:.50}")
        return part

    def _float(self, value: dict[str, JSON], depth: int) -> float:
        text = self._part(value, "value", str)
        if text not in ("inf", "-inf", "nan"):
            raise InconsistentModelError(f"a number is {text!r:.50}")
        return float(text)

    def _status(self, value: dict[str, JSON], depth: int) -> Status:
        return Status(self._part(value, "value", str))

    def _scalar(self, value: dict[str, JSON], depth: int) -> Any:
        number, dtype = self.decode(value.get("value"), depth), value.get("dtype")
        if dtype not in DTYPES or not isinstance(number, bool | int | float):
            raise InconsistentModelError(f"a number is {number!r:.50} of dtype {dtype!r:.50}")
        with np.errstate(over="ignore"):
            return np.dtype(dtype).type(number)

    def _tuple(self, value: dict[str, JSON], depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(item, depth) for item in self._part(value, "items", list))

    def _dict(self, value: dict[str, JSON], depth: int) -> dict[Any, Any]:
        items = self._part(value, "items", list)
        return {self.decode(key, depth): self.decode(item, depth) for key, item in items}

    def _array(self, value: dict[str, JSON], depth: int) -> NDArray[Any]:
        return self._tensor(value, "tensor")

    def _tensor(self, value: dict[str, JSON], part: str) -> NDArray[Any]:
        name = self._part(value, part, str)
        if name not in self.tensors:
            raise InconsistentModelError(f"tensor {name!r:.50} is missing, or used twice")
        return self.tensors.pop(name)

    def _words(self, value: dict[str, JSON], depth: int) -> NDArray[Any]:
        words, shape = self._part(value, "words", list), _shape(value.get("shape"))
        if math.prod(shape) != len(words):
            raise InconsistentModelError(f"an array of shape {shape} has {len(words)} texts")
        if "width" not in value:
            array = np.empty(len(words), dtype=object)
            array[:] = [self._word(self.decode(word, depth)) for word in words]
            return array.reshape(shape)
        width = self._part(value, "width", int)
        if not all(isinstance(word, str) for word in words):
            raise InconsistentModelError("an array of text must hold text only")
        if not _longest(words) <= width or 4 * width * len(words) > _byte_limit(words):
            raise InconsistentModelError(
                f"text of up to {_longest(words)} letters has width {width}"
            )
        return np.array(words, dtype=f"<U{width}").reshape(shape)

    @staticmethod
    def _word(word: Any) -> Any:
        if not isinstance(word, str | bool | int | float):
            raise InconsistentModelError(f"an array holds a {type(word).__name__}")
        return word

    def _csr(self, value: dict[str, JSON], kind: Any) -> Any:
        shape = _shape(value.get("shape"))
        data, indices, indptr = (
            self._tensor(value, part) for part in ("data", "indices", "indptr")
        )
        if len(shape) != 2 or any(part.ndim != 1 for part in (data, indices, indptr)):
            raise InconsistentModelError(
                f"a sparse matrix of shape {shape} must have three vectors"
            )
        if any(part.dtype not in (np.int32, np.int64) for part in (indices, indptr)):
            raise InconsistentModelError("indices of a sparse matrix must be integers")
        if indptr.size != shape[0] + 1 or indices.size != data.size:
            raise InconsistentModelError(
                f"a sparse matrix of shape {shape} has vectors of other sizes"
            )
        if indptr[0] != 0 or indptr[-1] != data.size or (np.diff(indptr) < 0).any():
            raise InconsistentModelError("rows of a sparse matrix are out of order")
        if indices.size and not (indices.min() >= 0 and indices.max() < shape[1]):
            raise InconsistentModelError("a column of a sparse matrix is out of range")
        return kind((data, indices, indptr), shape=shape)

    def _record(self, record: Any, entries: dict[str, JSON], depth: int) -> Any:
        expected = {field.name for field in fields(record)}
        # Older files do not say how errors were counted.
        missing = {"exact", "unit"} if record is Trace else set()
        if not expected - missing <= set(entries) <= expected:
            raise InconsistentModelError(
                f"{record.__name__} must have {sorted(expected)}, got {sorted(entries)!r:.200}"
            )
        values = {name: self.decode(entry, depth) for name, entry in entries.items()}
        _check_record(record, values)
        return record(**values)

    def _unproved(self, value: dict[str, JSON], depth: int) -> Unproved:
        return Unproved(self._part(value, "program", str))

    _methods: ClassVar[dict[str, Callable[[Decoder, dict[str, JSON], int], Any]]] = {
        "float": _float,
        "Status": _status,
        "scalar": _scalar,
        "tuple": _tuple,
        "dict": _dict,
        "array": _array,
        "words": _words,
        "Unproved": _unproved,
    }


def _check_record(record: type, values: dict[str, Any]) -> None:
    """Check what the class of the record does not check."""
    if record is Trace:
        arrays = {name: value for name, value in values.items() if name != "unit"}
        good = all(
            isinstance(a, np.ndarray)
            and a.ndim == 1
            and a.dtype.kind in TRACE_KINDS.get(name, "if")
            for name, a in arrays.items()
        )
        good = good and len({a.size for a in arrays.values()}) == 1
        good = good and _is_word(values.get("unit", "step"), UNITS)
    elif record in (Sum, Product):
        parts = values["parts"]
        good = isinstance(parts, tuple) and bool(parts) and all(_is_kernel(p) for p in parts)
    elif record is Scaled:
        good = _is_kernel(values["kernel"])
    else:
        numbers = [value for name, value in values.items() if name != "coverage"]
        good = all(value is None or isinstance(value, Real | np.bool_) for value in numbers)
        good = good and _is_word(values.get("coverage", "complete"), get_args(Coverage))
    if not good:
        raise InconsistentModelError(f"{record.__name__} holds {values!r:.200}")


def _is_word(value: Any, known: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value in known


def _is_kernel(value: Any) -> bool:
    return isinstance(value, _kernels())


def _shape(value: JSON) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**62 for n in value):
        raise InconsistentModelError(f"an array is of shape {value!r:.50}")
    return tuple(value)


def _longest(words: list[str]) -> int:
    return max(map(len, words), default=0) or 1


def _byte_limit(words: list[str]) -> int:
    """Return the bytes that an array of these texts may take, in proportion to the file."""
    return max(SMALL_BYTES, BYTES_PER_LETTER * (len(words) + sum(map(len, words))))
