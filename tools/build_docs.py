"""Build the documentation site into ``build/docs``: ``python tools/build_docs.py``.

    python tools/build_docs.py --only course/02-perceptron.md    # these pages, in a few seconds

Warnings are errors, and so are links that lead nowhere (``tools/check_site.py``). Nothing is
fetched from the network. ``--only`` takes pages or patterns below ``docs/``; links are not checked
then.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS, WORK = ROOT / "docs", ROOT / "build"


def sphinx(out: Path, only: list[str]) -> int:
    """Run Sphinx in a process of its own and return its exit code."""
    environment = os.environ | {
        "MAXMARGIN_DOCS_ONLY": " ".join(only),
        "MAXMARGIN_DOCS_WORK": str(WORK),
    }
    trees = WORK / ("doctrees-only" if only else "doctrees")
    options = ["-E"] if only else ["-E", "-j", "2"]
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", *options,
               "-d", str(trees), str(DOCS), str(out)]  # fmt: skip
    return subprocess.run(command, env=environment, cwd=ROOT).returncode


def main() -> int:
    """Build, and say where the site is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="PAGE")
    parser.add_argument("--out", type=Path, help="build/docs, or build/docs-only with --only")
    arguments = parser.parse_args()
    out = arguments.out or WORK / ("docs-only" if arguments.only else "docs")
    shutil.rmtree(out, ignore_errors=True)
    if not arguments.only:  # pages of names that are gone, outputs of an earlier version
        for folder in (DOCS / "reference" / "generated", DOCS / "auto_examples"):
            shutil.rmtree(folder, ignore_errors=True)
    code = sphinx(out, arguments.only)
    if code == 0 and not arguments.only:
        code = subprocess.run([sys.executable, ROOT / "tools" / "check_site.py", out]).returncode
    if code == 0:
        print("built", *sorted(out.glob("**/*.html" if arguments.only else "index.html")))
    return code


if __name__ == "__main__":
    sys.exit(main())
