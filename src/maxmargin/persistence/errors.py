"""What is said of a file that is no model."""

from __future__ import annotations

import os

__all__ = ["InconsistentModelError", "ModelFileError", "PathLike"]

PathLike = str | os.PathLike[str]


class ModelFileError(ValueError):
    """A file is no model that can be read: the message names the file and what is wrong."""


class InconsistentModelError(ValueError):
    """The parts of a model do not fit together."""
