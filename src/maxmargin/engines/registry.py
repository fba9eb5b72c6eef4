"""Which engine holds X, and where: the one place that lists them all.

An engine is added by a package that implements `maxmargin.engines.base` and a line of `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import array_api_compat
import numpy as np
from scipy import sparse

from ..arrays import (
    Matrix,
    MatrixLike,
    OnDevice,
    Partitioned,
    container,
    refuse_partitions,
)
from ..arrays import is_partitioned as is_partitioned
from ..caller import warn_caller
from ..runtime.loading import uncollected
from .base import DeviceMemoryFull

if TYPE_CHECKING:
    from .base import HostEngine
    from .cpu.engine import CpuEngine
    from .dask.engine import DaskEngine
    from .dask.files import FileCollection
    from .torch.engine import TorchEngine

Answer = TypeVar("Answer")


def _cpu() -> type[CpuEngine]:
    with uncollected():
        from .cpu.engine import CpuEngine

    return CpuEngine


def _torch() -> type[TorchEngine]:
    engine: type[TorchEngine] = _torch_module("engine").TorchEngine
    return engine


def _dask() -> type[DaskEngine]:
    engine: type[DaskEngine] = _dask_module("engine").DaskEngine
    return engine


# The name of an engine, whether X is of its kind, and how its class is imported.
ENGINES: dict[str, tuple[Callable[[Any], bool], Callable[[], Any]]] = {
    "cpu": (lambda X: isinstance(X, np.ndarray) or sparse.issparse(X), _cpu),
    "torch": (lambda X: container(X).on_device, _torch),
    "dask": (lambda X: isinstance(X, Partitioned), _dask),
}


def engine_class(X: Any, name: str = "auto") -> Callable[..., HostEngine]:
    """Return the class of the engine for X, imported; the parameters are those of `engine_for`."""
    if name == "auto":
        name = next((each for each, (holds, _) in ENGINES.items() if holds(X)), "cpu")
    if name not in ENGINES:
        raise ValueError(f"engine must be 'auto' or one of {sorted(ENGINES)}, got {name!r}.")
    found: Callable[..., HostEngine] = ENGINES[name][1]()
    return found


def engine_for(X: Any, name: str = "auto", **options: Any) -> HostEngine:
    """Return an engine that holds X.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    name : str, default="auto"
        A key of `ENGINES`; "auto" takes the first one whose kind X is.
    **options
        Of the engine's class.
    """
    return engine_class(X, name)(X, **options)


# Devices ------------------------------------------------------------------------------------------


def is_foreign(values: Any) -> bool:
    """Return whether an array is one of torch or CuPy."""
    if type(values) is np.ndarray:
        return False
    return bool(array_api_compat.is_torch_array(values) or array_api_compat.is_cupy_array(values))


def received(X: MatrixLike, device: str = "cpu") -> MatrixLike:
    """Return X as the checks take it: on a device where it is and stays, else as it is.

    Arrays of torch and CuPy become `OnDevice`, or NumPy's where ``device`` is the host. Raises
    where there is no such device.
    """
    if is_foreign(X):
        return _torch_module("interchange").rows_of(X, device)
    if device not in ("auto", "cpu"):
        find_device(device)  # raises
    return _as_numpy(X)


def received_vector(values: Any) -> Any:
    """Return labels or targets of torch or CuPy as a `VectorOnDevice`, anything else as it is."""
    return _torch_module("interchange").vector_of(values) if is_foreign(values) else values


def host_array(values: Any) -> Any:
    """Return labels, targets or weights of torch or CuPy as NumPy's, anything else as it is."""
    if is_foreign(values):
        return _torch_module("interchange").host_array(values)
    return _as_numpy(values)


def _as_numpy(values: Any) -> Any:
    """Return an array of any other library with the array API as NumPy's, anything else as it is.

    scikit-learn would leave it as it is where ``array_api_dispatch`` is on. Collections of Dask are
    refused: what takes them has received them before.
    """
    refuse_partitions(values)
    is_other = not isinstance(values, np.ndarray) and hasattr(values, "__array_namespace__")
    return np.asarray(values) if is_other else values


def as_given(values: Any, X: MatrixLike) -> Any:
    """Return answers in the library and on the device of X, which is one of torch or CuPy."""
    return _torch_module("interchange").as_given(values, X)


def kernel_scores(model: object, planes: Any, b: Any, X: Matrix, device: str) -> Any:
    """Return the scores of new rows as a tensor, or None where the host computes them.

    The parameters are those of `maxmargin.engines.torch.prediction.kernel_scores`.
    """
    if not _is_elsewhere(X, device):
        return None
    where = X.device if isinstance(X, OnDevice) else find_device(device)
    return _torch_module("prediction").kernel_scores(model, planes, b, X, where)


def plane_scores(X: Matrix, w: Any, b: Any, device: str) -> Any:
    """Return w_k·x + b_k of new rows as a tensor, or None where the host computes them."""
    if not _is_elsewhere(X, device):
        return None
    where = X.device if isinstance(X, OnDevice) else find_device(device)
    return _torch_module("prediction").plane_scores(X, w, b, where)


def _is_elsewhere(X: Matrix, device: str) -> bool:
    """Return whether X is on a device, or is to be there."""
    return isinstance(X, OnDevice) or device not in ("auto", "cpu")


def placed(X: Matrix, device: str, *, streams: bool = False) -> Matrix:
    """Return checked X on the device of this name; where X is for "auto".

    With ``streams``, row blocks and what does not fit its memory pass through it block by block.
    """
    if device in ("auto", "cpu") or isinstance(X, (OnDevice, Partitioned)):
        return X
    where, in_memory = find_device(device), container(X).random_access
    if streams:
        streamed = _torch_module("streamed_rows")
        if not in_memory or not streamed.fits(X, where):
            return streamed.StreamedRows(X, where)
    if not in_memory:
        return X
    try:
        return _torch_module("device_rows").DeviceRows.upload(X, where)
    except RuntimeError as error:
        if not is_memory_full(error):
            raise
    warn_caller(f"The memory of {where} is full: X is left in the memory of the host.")
    return X


def is_memory_full(error: BaseException) -> bool:
    """Return whether an error says that the memory of a device is full."""
    return isinstance(error, DeviceMemoryFull) or type(error).__name__ == "OutOfMemoryError"


def find_device(name: str) -> Any:
    """Return the device of torch that a name means; raise an error with the remedy."""
    return _torch_module("device").find_device(name)


def _torch_module(module: str) -> Any:
    """Return a module of the torch engine, imported."""
    return _engine_module("torch", module, "A GPU needs torch")


def _engine_module(engine: str, module: str, need: str) -> Any:
    """Return a module of an engine that is an extra; raise an error that names it."""
    try:
        with uncollected():
            return import_module(f".{engine}.{module}", __package__)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == __package__.partition(".")[0]:
            raise
        extra = {"torch": "gpu"}.get(engine, engine)
        raise ImportError(
            f'{need}, which cannot be imported here: pip install "maxmargin[{extra}]", or in a '
            f'clone of the repository pip install ".[{extra}]" ({error}).'
        ) from error


# Clusters -----------------------------------------------------------------------------------------


def received_partitions(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return collections of Dask as checked partitions, and their labels and weights."""
    found: tuple[Any, Any, Any] = _dask_module("rows").receive(X, y, sample_weight)
    return found


def example_rows(X: Any) -> Any:
    """Return some rows of the kind of those of a collection, of which nothing is computed."""
    return _dask_module("prediction").example_rows(X)


def lazy_answers(model: Any, method: str, X: Any, example: Any) -> Any:
    """Return the answers of a model for a collection, not computed yet.

    The parameters are those of `maxmargin.engines.dask.prediction.answers`.
    """
    return _dask_module("prediction").answers(model, method, X, example)


def reduced_partitions(
    model: Any,
    work: Callable[..., Answer],
    merge: Callable[[list[Answer]], Answer],
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
) -> Answer:
    """Return the merged answers of ``work(model, rows, y, weights)`` for all partitions of X."""
    found: Answer = _dask_module("prediction").reduced(model, work, merge, X, y, sample_weight)
    return found


def connected(scheduler: str) -> AbstractContextManager[Any]:
    """Connect to a cluster for the time of a block.

    The parameters are those of `maxmargin.engines.dask.session.connected`.
    """
    found: AbstractContextManager[Any] = _dask_module("session").connected(scheduler)
    return found


def is_cluster_error(error: BaseException) -> bool:
    """Return whether an error says that a cluster cannot answer."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"ClusterError", "KilledWorker", "CommClosedError"})


def read_files(paths: Sequence[str], *, drop: Sequence[str], words: Sequence[str], source: str,
               **how: Any) -> FileCollection:  # fmt: skip
    """Return the rows of data files as Dask collections, read on the workers.

    The parameters are those of `maxmargin.engines.dask.files.read_files` and `Format`.
    """
    files = _dask_module("files")
    found: FileCollection = files.read_files(
        paths, files.Format(**how), source=source, drop=drop, words=words
    )
    return found


def answers_of_each(
    work: Callable[..., Answer], *columns: Sequence[Any], common: Any
) -> Iterator[Answer]:
    """Yield ``work(*arguments, common)`` for every row of the columns, in order, from workers."""
    cluster = _dask_module("cluster").Cluster.current()
    shared = [cluster.backend.share(common)] * len(columns[0])
    for handle in cluster.start(work, *columns, shared):
        yield cluster.backend.results([handle])[0]


def _dask_module(module: str) -> Any:
    """Return a module of the Dask engine, imported."""
    return _engine_module("dask", module, "Dask collections need dask and distributed")
