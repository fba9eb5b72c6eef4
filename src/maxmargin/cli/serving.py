"""``lab``: the page to draw points and to follow algorithms."""

from __future__ import annotations

import click


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=5017, show_default=True,
              help="Port; 0 takes a free one.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to listen at. Any other one makes the lab available to all who reach "
              "it: there are no passwords.")  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def lab(port: int, host: str, no_browser: bool) -> None:
    """Draw points in a browser and follow every algorithm step by step.

    Needs the extra "lab": in a clone of the repository, pip install ".[lab]". Ctrl-C ends it.

    \b
    Examples:
      maxmargin lab
      maxmargin lab --port 8000 --no-browser
    """
    from ..lab.server import serve

    serve(port, host, browser=not no_browser)


COMMANDS = [lab]
