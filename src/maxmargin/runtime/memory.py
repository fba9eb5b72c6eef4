"""What memory there is."""

from __future__ import annotations

import os


def free_memory() -> int:
    """Return the bytes of memory that are free now (4 GiB where the system does not say)."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
