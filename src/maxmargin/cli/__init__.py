"""The command line: parse, call the public API, print.

Exit codes: 0 done; 1 failed, with the reason on standard error; 2 wrong usage; 3 the answer is no,
where ``--exit-code`` or ``--strict`` asks for it; 130 interrupted.
"""

from .main import main

__all__ = ["main"]
