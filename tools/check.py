"""Run every check of the project: style, types, layers, tests. Stops at the first failure.

``python tools/check.py`` is called by `.ci/run`; the tests validate docstrings by numpydoc. Further
arguments go to pytest, after the default ones (``python tools/check.py -k perceptron``).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ["-n", str(min(4, os.cpu_count() or 1)), "--dist", "worksteal", "-m", "not slow"]
CHECKS = [
    ["ruff", "check", "."],
    ["ruff", "format", "--check", "."],
    [sys.executable, "-m", "mypy"],
    ["lint-imports"],
]


def main() -> int:
    """Run the checks in order and return the first non-zero exit code."""
    commands = [*CHECKS, [sys.executable, "-m", "pytest", *TESTS, *sys.argv[1:]]]
    for command in commands:
        print("$", *command, flush=True)
        program = shutil.which(command[0], path=os.path.dirname(sys.executable)) or command[0]
        code = subprocess.run([program, *command[1:]], cwd=ROOT).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
