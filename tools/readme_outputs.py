"""Fill in what the README's first programs print: ``python tools/readme_outputs.py``.

The blocks are those after the first Python program and after the lines that begin with
``$ maxmargin fit``; times are those of the machine that this runs on.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"(\$ maxmargin (fit .*?)\n)(.*?)```", re.DOTALL)


def printed(arguments: list[str]) -> str:
    """Return what a Python process prints."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=folder
        )
    return done.stdout


def blocks(readme: str) -> dict[str, tuple[str, str]]:
    """Return what is in the README, and what should be: of the program, and of every command."""
    program, shown = PYTHON.search(readme).groups()
    found = {"program": (shown, printed(["-c", program]))}
    for _, command, table in COMMAND.findall(readme):
        words = [str(ROOT / w) if w.startswith("src/") else w for w in shlex.split(command)]
        found[command] = (table, printed(["-m", "maxmargin", *words]))
    return found


def main() -> None:
    """Write the README anew."""
    path = ROOT / "README.md"
    readme = path.read_text(encoding="utf-8")
    for shown, true in blocks(readme).values():
        readme = readme.replace(shown, true)
    path.write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main()
