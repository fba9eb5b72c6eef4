"""Answers of fitted models for Dask collections: lazy, block by block, and sums of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.sizeof import sizeof
from scipy import sparse

from ...arrays import Matrix
from ...runtime.threads import at_most, single_threaded_blas
from .checks import refuse_missing
from .cluster import Cluster
from .collections import array_of_parts, partitions_of, vector_partitions, with_whole_rows

Answer = TypeVar("Answer")


class SentModel:
    """A model on its way to the workers: one object of the graph, which Dask does not look into.

    Parameters
    ----------
    model : estimator
        It must not change any more.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    @cached_property
    def token(self) -> str:
        """The same for equal models, where Dask finds them to be."""
        return str(tokenize(self.model, ensure_deterministic=False))

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "SentModel", self.token

    def __sizeof__(self) -> int:
        """Return the bytes, by which Dask decides where tasks run and what is sent apart."""
        return sum(int(sizeof(value)) for value in vars(self.model).values())

    def rows_of(self, part: Any) -> Any:
        """Return the rows of a partition; names that the fit did not know were told of already."""
        if not hasattr(part, "columns") or hasattr(self.model, "feature_names_in_"):
            return part
        return part.set_axis(range(part.shape[1]), axis=1)


def example_rows(X: Any) -> Matrix:
    """Return one row, or a few, of the kind of those of X: nothing of X is computed."""
    if not isinstance(X, da.Array):
        from dask.dataframe.dispatch import meta_nonempty

        return meta_nonempty(X._meta)
    X = with_whole_rows(X)
    if np.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is not known: call X.compute_chunk_sizes().")
    if sparse.issparse(X._meta):
        return sparse.csr_matrix(([1.0], ([0], [0])), shape=(1, X.shape[1]), dtype=X.dtype)
    return np.ones((1, X.shape[1])).astype(X.dtype)


def answers(model: Any, method: str, X: Any, example: Matrix) -> Any:
    """Return ``model.method(rows)`` of every block of X, not computed yet.

    Parameters
    ----------
    model : estimator
        Not changed any more by the caller.
    method : str
        One that takes rows, and returns as many answers.
    X : dask.array or dask.dataframe
    example : array or CSR matrix
        What the method returns for some rows: the type and the width of the answers.

    Returns
    -------
    dask.array
        In chunks like those of X; their sizes are not known where those of X are not.
    """
    sent = SentModel(model)
    # One task of the graph, on which all others depend.
    shared = dask.delayed(sent, name=f"{type(model).__name__}-{sent.token}", traverse=False)
    none = example[:0]
    options = {"model": shared, "method": method, "none": none}
    if not isinstance(X, da.Array):
        # Not map_partitions, for the sake of frames that are made of delayed ones.
        lazy = dask.delayed(answers_of_block, pure=True, traverse=False)
        return array_of_parts([lazy(part, **options) for part in partitions_of(X)], None, none)
    X = with_whole_rows(X)
    if none.ndim == 1:
        return X.map_blocks(answers_of_block, drop_axis=1, meta=none, **options)
    chunks = X.chunks[0], (none.shape[1],)
    return X.map_blocks(answers_of_block, chunks=chunks, meta=none, **options)


def reduced(
    model: Any,
    work: Callable[..., Answer],
    merge: Callable[[list[Answer]], Answer],
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
) -> Answer:
    """Return the merged answers of ``work(model, rows, y, weights)`` for all partitions of X."""
    cluster, parts = Cluster.current(), partitions_of(X)
    found: Answer = cluster.round(
        worked, merge, parts,
        vector_partitions("y", y, X, len(parts), cluster),
        vector_partitions("sample_weight", sample_weight, X, len(parts), cluster),
        common=(SentModel(model), work),
    )  # fmt: skip
    return found


# What workers do ----------------------------------------------------------------------------------


def answers_of_block(block: Any, *, model: SentModel, method: str, none: Matrix) -> Matrix:
    """Return the answers for a block of rows, which may have none."""
    if not block.shape[0]:
        return none
    # The other threads of a worker have blocks of their own.
    with at_most(1), single_threaded_blas():
        found: Matrix = getattr(model.model, method)(model.rows_of(block))
    return found


def worked(part: Any, y: Any, weights: Any, model: SentModel, work: Callable[..., Any]) -> Any:
    """Return the answer of a partition."""
    vectors = [_complete("y", y), _complete("sample_weight", weights)]
    return work(model.model, model.rows_of(part), *vectors)


def _complete(name: str, values: Any) -> Any:
    """Return a vector as an array, none of it missing."""
    if values is None:
        return None
    vector = np.asarray(values)
    refuse_missing(name, vector)
    return vector
