"""Warnings that point at the line of the caller."""

from __future__ import annotations

import sys
import warnings

# Code between a caller and what warns: scikit-learn wraps ``fit`` and runs pipelines and searches.
_INSIDE = frozenset({__name__.partition(".")[0], "sklearn"})


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the innermost line outside of maxmargin and scikit-learn.

    Parameters
    ----------
    message : str
        What happened, and what to do about it.
    category : type of Warning, default=UserWarning
        The kind of warning.
    """
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<unknown>"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )
