"""Models in one file: arrays as safetensors, all else as JSON in its header.

__metadata__: format   "maxmargin"
              version  of the format
              model    JSON of the estimator, which names the tensors
              about    JSON that the caller gave
              written  JSON: versions of the programs that wrote it
              digest   SHA-256 of all of the above and of all tensors
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn

from .errors import ModelFileError, PathLike
from .writing import replacing

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["about", "load", "save"]

FORMAT, VERSION = "maxmargin", 1
# Keys that `about` adds to the facts of the caller.
ADDED_KEYS = ("format_version", "maxmargin_version", "sklearn_version")
# First bytes of what people have lying about in place of a model.
FOREIGN = {
    b"PK\x03\x04": "a zip archive (npz, joblib, skops?)",
    b"\x80": "a pickle",
    b"\x1f\x8b": "gzip-compressed",
    b"BZh": "bzip2-compressed",
    b"svm_type": "a LIBSVM text model: use maxmargin.persistence.load_libsvm",
    b"{": "JSON text",
    b"\x08": "an ONNX model, perhaps",
}
# A header, in bytes, that safetensors reads.
LONGEST_HEADER = 100_000_000


def save(model: Any, path: PathLike, *, about: Mapping[str, Any] | None = None) -> None:
    """Write a model to one file, which `load` reads back without running any code of it.

    The write is atomic: after a crash, or an error, the old file is still there.

    A kernel model (SVC, NuSVC, KernelPerceptron) consists of rows of its training data: whoever
    gets the file can read them. A linear model holds w, b and numbers about the fit.

    Parameters
    ----------
    model : estimator
        Any classifier of maxmargin, `ColumnEncoder`, scikit-learn's StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler or Normalizer, or a Pipeline of them; fitted or not. Not saved
        are ``callback``, the state of a random number generator, a pipeline's ``memory`` and the
        dual variables that ``warm_start`` would begin with; kernels and learning rates that are
        the caller's own functions are refused.
    path : str or path
        By convention ``*.safetensors``.
    about : dict, optional
        Facts to be kept with the model, as JSON has them: where the data came from, feature names,
        who to ask. `about` reads them.

    Raises
    ------
    TypeError
        For a model, or a parameter of it, that cannot be saved.

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin as mm
    >>> from maxmargin.persistence import about, load, save
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "six.safetensors")
    >>> save(mm.SVC(kernel="linear").fit(X, y), path, about={"data": "six points"})
    >>> print(load(path).predict(X), about(path)["data"])
    [ 1  1  1 -1 -1 -1] six points
    """
    from safetensors.numpy import save_file

    from .checks import check_model
    from .models import encode_model
    from .values import Encoder

    encoder = Encoder()
    record = encode_model(model, encoder)
    check_model(model)
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "model": json.dumps(record, allow_nan=False),
        "about": _facts(about),
        "written": json.dumps(_versions()),
    }
    metadata["digest"] = _digest(metadata, encoder.tensors)
    size = sum(map(len, metadata.values()))
    if size > LONGEST_HEADER // 2:
        raise ValueError(
            f"{size} letters of JSON are more than a model file takes: pass a smaller about, or "
            "fewer labels that are words."
        )
    with replacing(path) as temporary:
        save_file(encoder.tensors, temporary, metadata=metadata)


def load(path: PathLike) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed: it names classes of a closed list, whose parameters and
    attributes are checked against each other. The digest in the file finds damage; it is no
    signature that would say who wrote it.

    Raises
    ------
    ModelFileError
        For a file that is empty, truncated, damaged, of another kind or of a newer version.
    OSError
        Where there is no file, or none that can be read.
    """
    from .checks import check_model
    from .models import decode_model
    from .values import Decoder

    metadata, tensors = _read(path, with_tensors=True)
    if _digest(metadata, tensors) != metadata["digest"]:
        raise ModelFileError(
            f"{path}: its contents are not those that were saved (SHA-256 differs): it was damaged "
            "or changed, save the model again."
        )
    try:
        decoder = Decoder(tensors)
        model = decode_model(json.loads(metadata["model"]), decoder)
        check_model(model)
        if decoder.tensors:
            raise ValueError(f"tensors {sorted(decoder.tensors)!r:.100} belong to nothing")
    except Exception as error:  # whatever a file of bad intent may bring about
        raise ModelFileError(f"{path}: it holds no consistent model: {error}.") from error
    return model


def about(path: PathLike) -> dict[str, Any]:
    """Read the facts that were saved with a model, from the header of its file alone.

    Returns
    -------
    dict
        What was given to `save`, ``maxmargin_version`` and ``sklearn_version`` that wrote it, and
        ``format_version``. Tensors are not read, so that damage goes unnoticed: `load` finds it.
    """
    metadata, _ = _read(path, with_tensors=False)
    try:
        facts, written = json.loads(metadata["about"]), json.loads(metadata["written"])
        return {**facts, **written, "format_version": int(metadata["version"])}
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path}: its header is damaged: {error}.") from error


def _facts(given: Mapping[str, Any] | None) -> str:
    facts = {} if given is None else dict(given)
    taken = [name for name in ADDED_KEYS if name in facts]
    if taken:
        raise ValueError(f"about holds {taken[0]!r}, which is added by itself: use another name.")
    try:
        text = json.dumps(facts, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"about={given!r:.200} is not JSON ({error}): pass plain values.") from None
    if json.loads(text) != facts:
        raise TypeError(
            f"about={given!r:.200} is not the same after JSON: use words as keys, lists for tuples."
        )
    return text


def _versions() -> dict[str, str]:
    import sklearn

    from .. import __version__

    return {"maxmargin_version": __version__, "sklearn_version": sklearn.__version__}


def _digest(metadata: dict[str, str], tensors: dict[str, NDArray[Any]]) -> str:
    digest = sha256()
    for name in sorted(metadata):
        if name != "digest":
            digest.update(json.dumps([name, metadata[name]]).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, tensor.dtype.str, tensor.shape]).encode())
        digest.update(tensor.reshape(-1).view("u1").data if tensor.size else b"")
    return digest.hexdigest()


def _read(path: PathLike, *, with_tensors: bool) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Return the header of a model file, and the tensors where they are wanted."""
    from safetensors import SafetensorError, safe_open

    _refuse_foreign(path)
    try:
        with safe_open(os.fspath(path), framework="np") as file:
            metadata = file.metadata() or {}
            _check_header(path, metadata)
            names = file.keys() if with_tensors else []
            return metadata, {name: file.get_tensor(name) for name in names}
    except ModelFileError:
        raise
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelFileError(
            f"{path}: it is damaged or truncated: {error}. Save the model again."
        ) from error


def _refuse_foreign(path: PathLike) -> None:
    """Say what a file is that cannot be a model, by its first bytes."""
    with open(path, "rb") as file:
        head = file.read(9)
        size = os.fstat(file.fileno()).st_size
    if not head:
        raise ModelFileError(f"{path}: the file is empty.")
    length = int.from_bytes(head[:8], "little")
    if head[8:] == b"{":
        if length > size - 8:
            _refuse(path, f"it is truncated: a header of {length} bytes in a file of {size}")
        return
    for start, what in FOREIGN.items():
        if head.startswith(start):
            _refuse(path, f"it is no model of maxmargin but {what}")
    _refuse(path, "it is no model of maxmargin, or was cut off after a few bytes")


def _refuse(path: PathLike, what: str) -> NoReturn:
    raise ModelFileError(f"{path}: {what}. Pass a file that maxmargin.save wrote.")


def _check_header(path: PathLike, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        _refuse(path, "it is a safetensors file, but no model of maxmargin")
    version = metadata.get("version", "")
    if not version.isascii() or not version.isdigit() or len(version) > 9:
        _refuse(path, f"its header is damaged: format version {version!r:.50}")
    if int(version) > VERSION:
        raise ModelFileError(
            f"{path}: written by format version {version}, this maxmargin reads up to {VERSION}: "
            "upgrade maxmargin."
        )
    missing = {"model", "about", "written", "digest"} - set(metadata)
    if missing:
        _refuse(path, f"its header is damaged: it lacks {', '.join(sorted(missing))}")
