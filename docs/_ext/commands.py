"""The directive ``command``: a command of ``maxmargin`` and what it prints.

The body is one command or more, each on a line of its own, run when the documentation is built::

    ```{command}
    maxmargin fit fruit.csv --target fruit --out fruit.mm
    maxmargin inspect fruit.mm
    ```

The commands of a page share a folder, in which ``fruit.csv`` lies. ``:exit: 3`` is the exit code to
expect, 0 by default; any other ends the build. ``:lines: 12`` shows so many lines of the output.
Times and dates are left out: they differ from build to build.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

import maxmargin as mm

if TYPE_CHECKING:
    from sphinx.application import Sphinx

COLUMNS = 80
# A label with the spaces behind it, as in "classes          apple, banana".
LABEL = re.compile(r"(?:\w[\w ]*?\s{2,})?")
LEFT_OUT = ("maxmargin: compiling", "time  ", "date  ")
CHANGING = re.compile(r"\b\d+(?:\.\d+)? (?:µs|ms|s|min)\b|\b\d{4}-\d\d-\d\d\b")


class CommandDirective(SphinxDirective):
    """Run the commands, and show them with their output."""

    has_content = True
    option_spec = {  # noqa: RUF012
        "exit": directives.nonnegative_int,
        "lines": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        commands = [line for line in self.content if line.strip()]
        shown = "\n".join(f"$ {command}\n{self._output(command)}".rstrip() for command in commands)
        block = nodes.literal_block(shown, shown, language="console")
        if any(line.startswith("┏") and len(line) > COLUMNS for line in shown.splitlines()):
            block["classes"].append("wide-table")  # in smaller letters
        self.set_source_info(block)
        return [block]

    def _output(self, command: str) -> str:
        program, *arguments = shlex.split(command)
        if program != "maxmargin":
            raise self._error(f"a command must begin with maxmargin, got {command!r}.")
        done = subprocess.run(
            [sys.executable, "-m", "maxmargin", *arguments],
            cwd=self._folder(),
            env=os.environ | {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        if done.returncode != self.options.get("exit", 0):
            raise self._error(f"{command!r} ended with {done.returncode}:\n{done.stdout}")
        return self._shown(done.stdout)

    def _shown(self, output: str) -> str:
        """Return the output as it fits a page, without what differs from build to build."""
        lines = [
            part
            for line in output.splitlines()
            if not line.startswith(LEFT_OUT)
            for part in _wrapped(CHANGING.sub(lambda found: "…".rjust(len(found[0])), line))
        ]
        most = self.options.get("lines", len(lines))
        return "\n".join(lines[:most] + ["…"] * (len(lines) > most))

    def _folder(self) -> Path:
        """Return the folder of this page, new each time that the page is read."""
        folder = self.env.temp_data.get("maxmargin_commands")
        if folder is None:
            folder = self.env.temp_data["maxmargin_commands"] = tempfile.TemporaryDirectory()
            shutil.copy(mm.datasets.fruit_file(), folder.name)
        return Path(folder.name)

    def _error(self, message: str) -> ExtensionError:
        source, line = self.get_source_info()
        return ExtensionError(f"{source}:{line}: command: {message}")


def _wrapped(line: str) -> list[str]:
    """Break a line of words that is wider than a page, below the start of its text.

    Rows of tables and indented lines stay as they are.
    """
    if len(line) <= COLUMNS or not line[0].isalnum():
        return [line.rstrip()]
    text_starts = len(LABEL.match(line)[0])
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(line, COLUMNS, subsequent_indent=" " * text_starts, **options)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command", CommandDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
