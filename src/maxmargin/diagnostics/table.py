"""Tables of training samples: their columns as lists, frames and aligned text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import Field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from .text import aligned


class SampleTable:
    """What tables of samples share; a subclass is a dataclass whose columns are arrays.

    The arrays ``index``, ``alpha`` and ``state`` are among the columns of every table.
    """

    # What the samples are called together, and all states, in order.
    task: str
    states: ClassVar[Sequence[str]]
    # Columns that to_text aligns left.
    left: ClassVar[Sequence[str]] = ("state",)
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    index: Integers
    alpha: Floats
    state: NDArray[np.str_]

    def __len__(self) -> int:
        return self.index.size

    @property
    def counts(self) -> dict[str, int]:
        """How many samples are in each state."""
        return {state: int(np.count_nonzero(self.state == state)) for state in self.states}

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists of plain numbers and strings.

        Returns
        -------
        dict of str to list
            The columns by name.
        """
        return {name: column.tolist() for name, column in self._columns().items()}

    def to_pandas(self) -> Any:
        """Return the columns as a DataFrame with the rows of X as its index.

        Returns
        -------
        pandas.DataFrame
            One row per sample.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_pandas() needs pandas, which is not installed: pip install pandas"
            ) from error
        return pd.DataFrame(self._columns()).set_index("index")

    def to_text(self, n_rows: int | None = 20, sort: str | None = None) -> str:
        """Return the first rows as an aligned table.

        Parameters
        ----------
        n_rows : int or None, default=20
            Number of rows; None prints all.
        sort : {"alpha", "margin", "residual", "score"} or None, default=None
            First the largest \\|α\\|, the smallest margins or scores, or the largest residuals:
            "alpha", or the one of the others that the table has; None keeps the order of X.

        Returns
        -------
        str
            The table.
        """
        keys: dict[str | None, Floats] = {None: self.index.astype(float)}
        keys.update({"alpha": -np.abs(self.alpha)} | self._orders())
        if sort not in keys:
            known = ", ".join(repr(key) for key in keys if key)
            raise ValueError(f"sort must be {known} or None, got {sort!r}.")
        if n_rows is not None and n_rows < 0:
            raise ValueError(f"n_rows must be at least 0, or None for all; got {n_rows}.")
        rows = np.argsort(keys[sort], kind="stable")[:n_rows]
        lines = aligned([("row", map(str, self.index[rows])), *self._cells(rows)], left=self.left)
        more = len(self) - rows.size
        if more:
            lines.append(f"… {more} more: to_text(n_rows=None) prints all")
        return "\n".join([self._summary(), *lines])

    def __str__(self) -> str:
        return self.to_text()

    def _orders(self) -> dict[str, Floats]:
        """Return keys of the rows that to_text can sort by."""
        raise NotImplementedError

    def _cells(self, rows: Integers) -> list[tuple[str, Iterable[str]]]:
        """Return the columns of the text, of some rows."""
        raise NotImplementedError

    def _summary(self) -> str:
        found = ", ".join(f"{n} {state}" for state, n in self.counts.items() if n)
        n_support = int(np.count_nonzero(self.alpha))
        return f"{self.task}: {len(self)} samples, {n_support} support vectors; {found}"

    def _columns(self) -> dict[str, NDArray[Any]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def complementarity(upper: Floats, ridge: Floats, alpha: Floats, excess: Floats) -> Floats:
    """Return each variable's part of the gap, c(ξ) + c*(α) − αz, c the cost of the slack ξ = z₊."""
    beyond, slack = np.maximum(-excess, 0.0), np.maximum(excess, 0.0)
    if ridge.any():
        return alpha * beyond + 0.5 * ridge * (slack / ridge - alpha) ** 2
    if np.isinf(upper).all():
        return alpha * np.abs(excess)
    return np.maximum(alpha * beyond, slack * np.abs(upper - alpha))
