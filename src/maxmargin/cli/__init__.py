"""The command line: parse arguments, call the public API, print results.

Exit codes: 0 success; 1 failure, with the reason on standard error; 2 wrong usage; 3 a negative
result with ``--exit-code`` or ``--strict``; 130 interrupted.
"""

from .main import main

__all__ = ["main"]
