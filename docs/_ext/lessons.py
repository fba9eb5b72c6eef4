"""The directive ``lesson``: a box that points to a lesson of the lab.

The argument is the key of a lesson; title and question are those of the lab's own list::

    ```{lesson} xor
    ```

An unknown key ends the build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from maxmargin.lab.lessons import LESSONS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# Where ``maxmargin lab`` serves the page by default.
ADDRESS = "http://127.0.0.1:5017/"


class LessonDirective(SphinxDirective):
    """Show the title and the question of a lesson, and how to open it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        key = self.arguments[0].strip()
        if key not in LESSONS:
            source, line = self.get_source_info()
            raise ExtensionError(
                f"{source}:{line}: lesson must be one of {', '.join(LESSONS)}, got {key!r}."
            )
        lesson = LESSONS[key]
        command = nodes.paragraph()
        command += nodes.literal(text=f"maxmargin lab --lesson {key}")
        command += nodes.Text(", or ")
        command += nodes.reference(
            text="open it where the lab runs on this computer", refuri=f"{ADDRESS}?lesson={key}"
        )
        box = nodes.admonition("", classes=["lesson"])
        box += nodes.title(text=f"In the lab: {lesson.title}")
        box += nodes.paragraph(text=lesson.question)
        box += command
        self.set_source_info(box)
        return [box]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("lesson", LessonDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
