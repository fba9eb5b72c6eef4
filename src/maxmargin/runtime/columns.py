"""Some columns of arrays, in compiled code."""

from __future__ import annotations

import numpy as np

from .compilation import compiled_part


@compiled_part
def used_columns(values):
    """Return the columns in which there is a number other than 0."""
    n = values.shape[1]
    used = np.zeros(n)
    for k in range(values.shape[0]):
        line = values[k]
        for j in range(n):
            used[j] = 1.0 if line[j] != 0.0 else used[j]
    columns = np.empty(n, dtype=np.intp)
    count = 0
    for j in range(n):
        if used[j] != 0.0:
            columns[count] = j
            count += 1
    return columns[:count]


@compiled_part
def some_columns(values, columns):
    """Return some columns as an array of their own."""
    out = np.empty((values.shape[0], columns.size))
    for k in range(values.shape[0]):
        line, own = values[k], out[k]
        for j in range(columns.size):
            own[j] = line[columns[j]]
    return out


@compiled_part
def runs_of(numbers):
    """Return where runs of consecutive numbers begin, and the end."""
    n, count = numbers.size, 0
    edges = np.empty(n + 1, dtype=np.intp)
    for k in range(n):
        if k == 0 or numbers[k] != numbers[k - 1] + 1:
            edges[count] = k
            count += 1
    edges[count] = n
    return edges[: count + 1]
