"""Dask arrays and frames as lists of partitions: rows of X with their labels and weights."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from sklearn.utils.validation import column_or_1d

from ..registry import is_partitioned
from .cluster import Cluster, Handle


def partitions_of(X: Any) -> list[Delayed]:
    """Return the partitions of X, rows with all of their columns."""
    if isinstance(X, da.Array):
        return list(with_whole_rows(X).to_delayed()[:, 0])
    if not hasattr(X, "to_delayed"):
        raise TypeError(f"X must be a dask.array or a dask.dataframe, got {type(X).__name__}.")
    return _without_aliases(list(X.to_delayed()))


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


def is_held(X: Any) -> bool:
    """Return whether the partitions of X are on the workers, or in memory, already."""
    from distributed.client import futures_of

    graph = X.__dask_graph__()
    if len(graph) != len(X.__dask_keys__()):
        return False
    return bool(futures_of(X)) or not callable(next(iter(graph.values()), None))


def vector_partitions(name: str, values: Any, X: Any, n: int, cluster: Cluster) -> list[Handle]:
    """Return one part of labels, targets or weights for every partition of X, None for none."""
    if values is None:
        return [None] * n
    if not is_partitioned(values):
        return _cut(name, values, X, cluster)
    if isinstance(values, da.Array):
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"{name} must be a 1d array, got shape {values.shape}.")
        sizes, own = known_sizes(X), known_sizes(values)
        if sizes is not None and own is not None and sizes != own:
            if sum(sizes) != sum(own):
                raise ValueError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"[{sum(sizes)}, {sum(own)}]"
                )
            values = values.rechunk((tuple(sizes),))
    parts = list(values.to_delayed().ravel() if isinstance(values, da.Array) else
                 values.to_delayed())  # fmt: skip
    if len(parts) != n:
        raise ValueError(
            f"X has {n} partitions and {name} has {len(parts)}, whose sizes Dask does not know: "
            "partition both alike, or call compute_chunk_sizes() on them."
        )
    return parts


def _cut(name: str, values: Any, X: Any, cluster: Cluster) -> list[Handle]:
    """Return the parts of a vector in the memory of this process."""
    vector = np.asarray(column_or_1d(values, warn=True))
    sizes = known_sizes(X)
    if sizes is None:
        sizes = cluster.round(_length, _joined, partitions_of(X))
    if sum(sizes) != vector.shape[0]:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"[{sum(sizes)}, {vector.shape[0]}]"
        )
    ends = np.cumsum(sizes)
    parts = [vector[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    return [dask.delayed(part, pure=False, traverse=False) for part in parts]


def _length(rows: Any) -> list[int]:
    return [int(rows.shape[0])]


def _joined(lists: list[list[Any]]) -> list[Any]:
    return [each for some in lists for each in some]
