"""The directive ``recording``: a recorded fit that a page plays.

The body is Python, run when the documentation is built, with ``mm``, ``np`` and ``path`` defined;
it writes one HTML page to ``path``::

    ```{recording} six-points-perceptron
    :caption: The perceptron on six points, one correction per step.

    X, y = mm.datasets.load_six_points(return_X_y=True)
    mm.plots.animate(mm.Perceptron(shuffle=False), X, y, path)
    ```

The page becomes ``_static/recordings/six-points-perceptron.html`` and is shown in an iframe, whose
height and theme ``_static/recordings.js`` sets. The body runs again only when its text or the
library has changed. An error in it ends the build with the file and the line. Other builders than
HTML show the caption.
"""

from __future__ import annotations

import hashlib
import html
import re
import shutil
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

import maxmargin as mm

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

FOLDER = "_static/recordings"
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
HEIGHT = 640  # pixels, until the player has told its height


class Recording(nodes.General, nodes.Element):
    """A recording in a page; its child is the caption."""


class RecordingDirective(SphinxDirective):
    """Run the body, which writes a page to ``path``, and embed that page."""

    required_arguments = 1
    option_spec = {"caption": directives.unchanged_required}  # noqa: RUF012
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0].strip()
        if not NAME.fullmatch(name):
            raise self._error(f"name must be lower-case letters, digits and hyphens, got {name!r}.")
        if "caption" not in self.options:
            raise self._error("a recording needs a :caption:, which is its text for every reader.")
        page = self._page(name, "\n".join(self.content))
        written = self.env.__dict__.setdefault("maxmargin_recordings", {})
        before = written.setdefault(name, (self.env.docname, str(page)))
        if before[1] != str(page):
            raise self._error(f"{name!r} is already the name of a recording of {before[0]!r}.")
        caption = nodes.caption("", "", *self.parse_inline(self.options["caption"])[0])
        self.set_source_info(caption)
        node = Recording("", caption, name=name, title=caption.astext())
        self.set_source_info(node)
        return [node]

    def _page(self, name: str, body: str) -> Path:
        """Return the page that the body writes, or wrote in an earlier build."""
        key = hashlib.sha256(f"{_library()}\n{body}".encode()).hexdigest()[:16]
        folder = Path(self.env.doctreedir) / "recordings" / key
        page = folder / f"{name}.html"
        if page.exists():
            return page
        folder.mkdir(parents=True, exist_ok=True)
        # A page that an interrupted build left half written has another name.
        draft = folder / f"{name}.draft.html"
        source, _ = self.get_source_info()
        first = self._first_line()
        try:
            # The empty lines give the body its line numbers in the page.
            code = compile("\n" * (first - 1) + body, source, "exec")
            exec(code, {"mm": mm, "np": np, "path": draft, "__name__": name})
        except Exception as error:
            where = _line_of(error, source) or first
            told = "".join(traceback.format_exception_only(error)).strip()
            raise self._error(told, where) from error
        if not draft.exists():
            raise self._error("the body must write an HTML page to path.")
        draft.replace(page)
        return page

    def _first_line(self) -> int:
        """Return the line of the page at which the body starts, from 1."""
        # reStructuredText counts from the start of the page, MyST from that of the directive.
        if self.content and self.content.offset(0) == self.content_offset:
            return self.content_offset + 1
        return self.lineno + self.content_offset + 1

    def _error(self, message: str, line: int | None = None) -> ExtensionError:
        source, start = self.get_source_info()
        return ExtensionError(f"{source}:{line or start}: recording: {message}")


def _line_of(error: BaseException, source: str) -> int | None:
    """Return the line of a page in which the body failed."""
    if isinstance(error, SyntaxError) and error.filename == source:
        return error.lineno
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == source
    ]
    return lines[-1] if lines else None


@cache
def _library() -> str:
    """Return a digest of the library, whose change is a reason to record again."""
    root = Path(mm.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*")):
        if file.suffix in (".py", ".html", ".js", ".css", ".csv"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _visit_html(translator: Any, node: Recording) -> None:
    builder = translator.builder
    here = builder.get_target_uri(builder.current_docname)
    address = html.escape(relative_uri(here, f"{FOLDER}/{node['name']}.html"))
    title = html.escape(f"Recording: {node['title']}")
    translator.body.append(
        f'<figure class="recording" id="recording-{node["name"]}">\n'
        f'<iframe class="recording" src="{address}" title="{title}" loading="lazy" '
        f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>\n<figcaption>'
    )
    translator.context.append(f' <a href="{address}">Open the recording alone</a></figcaption>\n')


def _depart_html(translator: Any, node: Recording) -> None:
    translator.body.append(translator.context.pop() + "</figure>\n")


def _visit_caption(translator: Any, node: nodes.Element) -> None:
    """Let the caption speak for the recording."""


def _copy(app: Sphinx, error: Exception | None) -> None:
    """Copy the pages of all recordings into the site."""
    written = getattr(app.env, "maxmargin_recordings", {})
    if error is not None or app.builder.format != "html" or not written:
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for _, page in written.values():
        shutil.copyfile(page, folder / Path(page).name)


def _purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    written = getattr(env, "maxmargin_recordings", {})
    for name in [name for name, (where, _) in written.items() if where == docname]:
        del written[name]


def _merge(app: Sphinx, env: BuildEnvironment, names: set[str], other: BuildEnvironment) -> None:
    found = getattr(other, "maxmargin_recordings", {})
    env.__dict__.setdefault("maxmargin_recordings", {}).update(found)


def _outdated(app: Sphinx, env: BuildEnvironment, *changes: set[str]) -> list[str]:
    """Return the pages whose recordings are gone from the cache."""
    written = getattr(env, "maxmargin_recordings", {})
    return [where for where, page in written.values() if not Path(page).exists()]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    plain = (_visit_caption, _visit_caption)
    app.add_node(
        Recording, html=(_visit_html, _depart_html),
        latex=plain, text=plain, man=plain, texinfo=plain,
    )  # fmt: skip
    app.add_directive("recording", RecordingDirective)
    app.add_js_file("recordings.js")
    app.connect("build-finished", _copy)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    app.connect("env-get-outdated", _outdated)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
