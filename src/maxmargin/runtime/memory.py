"""The free memory of the system."""

from __future__ import annotations

import os


def free_memory() -> int:
    """Return the bytes of memory that are free now, 4 GiB if the system does not report it."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30


# The share of the free memory that numbers kept for speed alone may take.
KEPT_SHARE = 0.25


def bytes_to_keep() -> float:
    """Return how many bytes may be taken by what could as well be computed again."""
    return KEPT_SHARE * free_memory()
