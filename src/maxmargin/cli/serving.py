"""``lab``: the page to draw points and to follow algorithms."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem


class LessonKey(click.ParamType):  # type: ignore[type-arg]
    """The key of a lesson of the lab, whose list is only imported when it is needed."""

    name = "lesson"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        from ..lab.lessons import LESSONS

        if value not in LESSONS:
            self.fail(f"{value!r} is not one of {', '.join(LESSONS)}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        from ..lab.lessons import LESSONS

        found = {key: lesson for key, lesson in LESSONS.items() if key.startswith(incomplete)}
        return [CompletionItem(key, help=lesson.title) for key, lesson in found.items()]


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=5017, show_default=True,
              help="Port; 0 takes a free one.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to listen at. Any other one makes the lab available to all who reach "
              "it: there are no passwords.")  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option(
    "--lesson",
    type=LessonKey(),
    metavar="KEY",
    help="Lesson to open: six-points, perceptron, xor, c, gamma, lms, outlier or nu.",
)
def lab(port: int, host: str, no_browser: bool, lesson: str | None) -> None:
    """Draw points in a browser and follow every algorithm step by step.

    Needs the extra "lab": in a clone of the repository, pip install ".[lab]". Ctrl-C ends it.

    \b
    Examples:
      maxmargin lab
      maxmargin lab --lesson xor
      maxmargin lab --port 8000 --no-browser
    """
    from ..lab.server import serve

    serve(port, host, browser=not no_browser, lesson=lesson)


COMMANDS = [lab]
