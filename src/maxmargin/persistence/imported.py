"""The certificates of a model that another program trained: there are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

__all__ = ["Unproved"]


class Unproved:
    """The value of ``certificates_``, ``statuses_`` and ``traces_`` where there are none.

    Access to an element raises AttributeError, like access to a missing attribute.

    Parameters
    ----------
    program : str
        The program that trained the model.

    Examples
    --------
    >>> hasattr(Unproved("LIBSVM"), "program"), Unproved("LIBSVM")
    (True, Unproved('LIBSVM'))
    """

    def __init__(self, program: str) -> None:
        self.program = program

    def __repr__(self) -> str:
        return f"Unproved({self.program!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unproved) and other.program == self.program

    def __hash__(self) -> int:
        return hash(self.program)

    def __getitem__(self, k: object) -> NoReturn:
        raise self._error()

    def __iter__(self) -> Iterator[NoReturn]:
        raise self._error()

    def __len__(self) -> int:
        return 0

    def _error(self) -> AttributeError:
        return AttributeError(
            f"This model was trained by another program ({self.program}), whose file holds no "
            "certificate: fit it with maxmargin."
        )
