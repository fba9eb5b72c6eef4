"""Models in one file: arrays as safetensors, everything else as JSON in its header.

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

from ..diagnostics.fitted_model import ModelLike
from .errors import ModelFileError, PathLike
from .writing import replacing

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["about", "load", "save"]

FORMAT, VERSION = "maxmargin", 1
# Keys that `about` adds to the facts of the caller.
ADDED_KEYS = ("format_version", "maxmargin_version", "sklearn_version")
# First bytes of other files.
OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive (npz, joblib, skops?)",
    b"\x80": "a pickle",
    b"\x1f\x8b": "gzip-compressed",
    b"BZh": "bzip2-compressed",
    b"svm_type": "a LIBSVM text model: use maxmargin.persistence.load_libsvm",
    b"{": "JSON text",
    b"\x08": "an ONNX model, perhaps",
}
# The longest header that safetensors reads.
LARGEST_HEADER_BYTES = 100_000_000


def save(
    model: ModelLike,
    path: PathLike,
    *,
    about: Mapping[str, Any] | None = None,
    keep_dual: bool = False,
) -> None:
    """Write a model to one file, which `load` reads without running any code of it.

    The write is atomic: after an error or a crash the old file is unchanged.

    The file of a model with a kernel (SVC, SVR, OneClassSVM, KernelPerceptron, …) contains rows of
    its training data, which can be read from it. That of a linear model holds w, b and numbers
    about the fit; α of its training rows only where there are few, or ``keep_dual`` is given.

    Parameters
    ----------
    model : estimator
        Any estimator of maxmargin, `ColumnEncoder`, scikit-learn's StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler or Normalizer, or a Pipeline of them; fitted or not. Not saved
        are ``callback``, the state of a random number generator, ``memory`` of a pipeline and the
        dual variables for ``warm_start``. Kernels and learning rates that are functions of the
        caller raise an error.
    path : str or path
        The file; by convention ``*.safetensors``.
    about : dict, optional
        Facts to be kept with the model, as JSON: the origin of the data, feature names, a contact.
        `about` reads them.
    keep_dual : bool, default=False
        Keep what a linear model (LinearSVC, LinearSVR, HoKashyap) has of each training row,
        ``support_``, ``dual_coef_``, ``margins_`` and ``multipliers_``, also of many rows. By
        default more than 4096 of these numbers are left out: the certificates stay, and `verify`
        finds others.

    Raises
    ------
    TypeError
        For a model, or a parameter of it, that cannot be saved.

    See Also
    --------
    load : Read the model.
    about : Read the facts.

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
    record = encode_model(model, encoder, keep_dual=keep_dual)
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
    if size > LARGEST_HEADER_BYTES // 2:
        raise ValueError(
            f"the JSON of a model file must be at most {LARGEST_HEADER_BYTES // 2} letters, got "
            f"{size}: pass a smaller about, or fewer labels of text."
        )
    with replacing(path) as temporary:
        save_file(encoder.tensors, temporary, metadata=metadata)


def load(path: PathLike) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed: it names classes of a closed list, whose parameters and
    attributes are checked for consistency. The digest in the file detects damage; it is not a
    signature of the author.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The model, as it was saved.

    Raises
    ------
    ModelFileError
        For a file that is empty, truncated, damaged, of another format or of a newer version.
    OSError
        Where the file does not exist or cannot be read.

    See Also
    --------
    save : Write a model.

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "six.safetensors")
    >>> mm.save(mm.Perceptron(shuffle=False).fit(X, y), path)
    >>> mm.load(path)
    Perceptron(shuffle=False)
    """
    from .checks import check_model
    from .models import decode_model
    from .values import Decoder

    metadata, tensors = _read(path, with_tensors=True)
    if _digest(metadata, tensors) != metadata["digest"]:
        raise ModelFileError(
            f"{path}: the contents differ from those that were saved (SHA-256 differs): save the "
            "model again."
        )
    try:
        decoder = Decoder(tensors)
        model = decode_model(json.loads(metadata["model"]), decoder)
        check_model(model)
        if decoder.tensors:
            raise ValueError(f"the tensors {sorted(decoder.tensors)!r:.100} are not used")
    except Exception as error:  # a malicious file may cause any of them
        what = str(error).rstrip(".")
        raise ModelFileError(f"{path}: the model is inconsistent: {what}.") from error
    return model


def about(path: PathLike) -> dict[str, Any]:
    """Read the facts that were saved with a model, from the header of its file.

    Tensors are not read, so that damage is not detected; `load` does.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        The facts given to `save`, ``maxmargin_version`` and ``sklearn_version`` that wrote the
        file, and ``format_version``.

    Raises
    ------
    ModelFileError
        For a file whose header cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin as mm
    >>> path = os.path.join(tempfile.mkdtemp(), "new.safetensors")
    >>> mm.save(mm.SVC(), path, about={"data": "none yet"})
    >>> mm.persistence.about(path)["data"]
    'none yet'
    """
    metadata, _ = _read(path, with_tensors=False)
    try:
        facts, written = json.loads(metadata["about"]), json.loads(metadata["written"])
        return {**facts, **written, "format_version": int(metadata["version"])}
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path}: the header is damaged: {error}.") from error


def _facts(given: Mapping[str, Any] | None) -> str:
    facts = {} if given is None else dict(given)
    taken = [name for name in ADDED_KEYS if name in facts]
    if taken:
        raise ValueError(
            f"about must not hold {taken[0]!r}, which is added to every file: use another name."
        )
    try:
        text = json.dumps(facts, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"about={given!r:.200} must be JSON ({error}): pass numbers, text, lists and dicts."
        ) from None
    if json.loads(text) != facts:
        raise TypeError(
            f"about={given!r:.200} changes in JSON: use text for keys, and lists for tuples."
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
    """Return the header of a model file, and on request its tensors."""
    from safetensors import SafetensorError, safe_open

    _check_format(path)
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
            f"{path}: the file is damaged or truncated: {error}. Save the model again."
        ) from error


def _check_format(path: PathLike) -> None:
    """Raise for a file of another format, which its first bytes tell."""
    with open(path, "rb") as file:
        head = file.read(9)
        size = os.fstat(file.fileno()).st_size
    if not head:
        raise ModelFileError(f"{path}: the file is empty.")
    length = int.from_bytes(head[:8], "little")
    if head[8:] == b"{":
        if length > size - 8:
            _refuse(path, f"the file is truncated: a header of {length} bytes in a file of {size}")
        return
    for start, what in OTHER_FORMATS.items():
        if head.startswith(start):
            _refuse(path, f"the file is not a model of maxmargin but {what}")
    _refuse(path, "the file is not a model of maxmargin, or is truncated after a few bytes")


def _refuse(path: PathLike, what: str) -> NoReturn:
    raise ModelFileError(f"{path}: {what}. Pass a file that maxmargin.save wrote.")


def _check_header(path: PathLike, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        _refuse(path, "the file is a safetensors file, but not a model of maxmargin")
    version = metadata.get("version", "")
    if not version.isascii() or not version.isdigit() or len(version) > 9:
        _refuse(path, f"the header is damaged: format version {version!r:.50}")
    if int(version) > VERSION:
        raise ModelFileError(
            f"{path}: the file has format version {version}, this maxmargin reads up to {VERSION}: "
            "upgrade maxmargin."
        )
    missing = {"model", "about", "written", "digest"} - set(metadata)
    if missing:
        _refuse(path, f"the header is damaged: {', '.join(sorted(missing))} missing")
