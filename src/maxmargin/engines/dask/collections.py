"""Dask arrays and frames as lists of partitions: rows of X with their labels and weights."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, GraphNode
from dask.delayed import Delayed
from sklearn.utils.validation import column_or_1d

from ..registry import is_partitioned
from .cluster import Cluster, Handle


def partitions_of(X: Any) -> list[Delayed]:
    """Return the partitions of X, rows with all of their columns."""
    _refuse_others("X", X)
    if not isinstance(X, da.Array):
        return _of_frame(X)
    return list(with_whole_rows(X).to_delayed()[:, 0])


def _of_frame(frame: Any) -> list[Delayed]:
    """Return the partitions of a frame or a series as the caller sees them.

    Optimised by itself, one column of some files would be read in fewer partitions than all of
    them, and X and y would no longer match; unoptimised, both are made from the same tasks.
    """
    return _without_aliases(list(frame.to_delayed(optimize_graph=False)))


def _refuse_others(name: str, values: Any) -> None:
    """Refuse collections of Dask that have no rows, as bags and delayed values."""
    kind = type(values)
    is_frame = kind.__module__.startswith(("dask.dataframe", "dask_expr"))
    if isinstance(values, da.Array) or (is_frame and values.ndim):
        return
    raise TypeError(
        f"{name} must be a dask.array or a dask.dataframe, got {kind.__module__}.{kind.__name__}: "
        "convert it, for instance with dask.array.from_delayed or to_dataframe()."
    )


def _without_aliases(parts: list[Delayed]) -> list[Delayed]:
    """Return partitions by the keys of what computes them.

    A frame made of delayed ones has aliases of aliases, which Dask fails to fuse in an array.
    """
    if not hasattr(parts[0].dask[parts[0].key], "target"):
        return parts
    graph, keys = dict(parts[0].dask), []
    for part in parts:
        key = part.key
        while hasattr(graph.get(key), "target"):
            key = graph.pop(key).target
        keys.append(key)
    return [Delayed(key, graph) for key in keys]


def with_whole_rows(X: da.Array) -> da.Array:
    """Return X in blocks that have all columns of their rows."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X of shape {X.shape}. Reshape "
            "your data, for instance with X.reshape(-1, 1) if it has a single feature."
        )
    return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X


def array_of_parts(parts: list[Delayed], sizes: list[int] | None, meta: Any) -> da.Array:
    """Return blocks of rows as an array, of unknown sizes for None; ``meta`` has no rows."""
    if sizes is None:
        sizes = [np.nan] * len(parts)  # type: ignore[list-item]
    blocks = [
        da.from_delayed(part, (size, *meta.shape[1:]), meta=meta)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def known_sizes(X: Any) -> list[int] | None:
    """Return the rows of every partition, None where Dask does not know them."""
    chunks = X.chunks[0] if isinstance(X, da.Array) else ()
    return None if not chunks or np.isnan(chunks).any() else [int(size) for size in chunks]


def is_held(X: Any, cluster: Cluster) -> bool:
    """Return whether the partitions of X are where they will be read, and need no more memory."""
    from distributed.client import futures_of

    graph = X.__dask_graph__()
    if len(graph) != len(X.__dask_keys__()):
        return False
    if cluster.backend.in_this_process:
        return all(_is_value(each) for each in graph.values())
    return len(futures_of(X)) == len(graph)


def _is_value(node: Any) -> bool:
    """Return whether a node of a graph is a value, and no task."""
    return isinstance(node, DataNode) or not isinstance(node, (GraphNode, tuple))


def vector_partitions(name: str, values: Any, X: Any, n: int, cluster: Cluster) -> list[Handle]:
    """Return one part of labels, targets or weights for every partition of X, None for none."""
    if values is None:
        return [None] * n
    if not is_partitioned(values):
        return _cut(name, values, X, n, cluster)
    _refuse_others(name, values)
    if isinstance(values, da.Array):
        values = _like_rows(name, values, X)
    is_array = isinstance(values, da.Array)
    parts = list(values.to_delayed().ravel()) if is_array else _of_frame(values)
    if len(parts) != n:
        raise ValueError(
            f"X has {n} partitions and {name} has {len(parts)}, whose sizes Dask does not know: "
            "partition both alike, or call compute_chunk_sizes() on them."
        )
    return parts


def _like_rows(name: str, values: Any, X: Any) -> Any:
    """Return a vector cut as X is, as far as Dask knows the sizes."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise _not_a_vector(name, values.shape)
    sizes, own = known_sizes(X), known_sizes(values)
    if sizes is None or own is None or sizes == own:
        return values
    _refuse_length(name, sum(sizes), sum(own))
    return values.rechunk((tuple(sizes),))


def _not_a_vector(name: str, shape: tuple[int, ...]) -> ValueError:
    return ValueError(f"{name} should be a 1d array, got an array of shape {shape} instead.")


def _refuse_length(name: str, n_rows: int, length: int) -> None:
    """Refuse a vector of another length than X, in the words of scikit-learn."""
    if length == n_rows:
        return
    if name == "y":
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {length}]"
        )
    raise ValueError(f"{name}.shape == ({length},), expected ({n_rows},)!")


def _cut(name: str, values: Any, X: Any, n: int, cluster: Cluster) -> list[Handle]:
    """Return the parts of a vector in the memory of this process; one number is for all rows."""
    if name != "y" and np.ndim(values) == 0:
        return [values] * n
    if np.ndim(values) > 1 and np.shape(values)[1:] != (1,):
        raise _not_a_vector(name, np.shape(values))
    vector = np.asarray(column_or_1d(values, warn=True))
    sizes = known_sizes(X)
    if sizes is None:
        sizes = cluster.round(_length, _joined, partitions_of(X))
    _refuse_length(name, sum(sizes), vector.shape[0])
    ends = np.cumsum(sizes)
    parts = [vector[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    # One by one: a graph that held all of them would be too large for Dask.
    return [cluster.backend.share(part) for part in parts]


def _length(rows: Any) -> list[int]:
    return [int(rows.shape[0])]


def _joined(lists: list[list[Any]]) -> list[Any]:
    return [each for some in lists for each in some]
