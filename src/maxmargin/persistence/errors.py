"""Errors for files that are not models."""

from __future__ import annotations

import os

__all__ = ["InconsistentModelError", "ModelFileError", "PathLike"]

PathLike = str | os.PathLike[str]


class ModelFileError(ValueError):
    """A file cannot be read as a model; the message names the file and what is wrong.

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin as mm
    >>> path = os.path.join(tempfile.mkdtemp(), "empty")
    >>> open(path, "w").close()
    >>> try:
    ...     mm.load(path)
    ... except mm.persistence.ModelFileError as error:
    ...     print(str(error).removeprefix(path))
    : the file is empty.
    """


class InconsistentModelError(ValueError):
    """The parts of a model contradict each other."""
