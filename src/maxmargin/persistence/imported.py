"""What stands in for the certificates of a model that another program trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

__all__ = ["Unproved"]


class Unproved:
    """In place of ``certificates_``, ``statuses_`` and ``traces_``: there are none.

    Whoever asks for one gets an AttributeError, as of an attribute that is not there.

    Parameters
    ----------
    program : str
        Who trained the model.

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
            "certificate: fit it with maxmargin for one."
        )
