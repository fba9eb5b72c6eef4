"""A document of Bokeh with a new page of the lab, its template and its script."""

from __future__ import annotations

from importlib import resources
from typing import Any

from .page import Lab
from .style import WIDGET_CSS, without_formulas_below


def open_page(document: Any) -> None:
    """Fill a document with a new lab."""
    lab = Lab(document)
    document.title = "maxmargin lab"
    templates = resources.files("maxmargin") / "templates"
    document.template = _template((templates / "lab.html").read_text(encoding="utf-8"))
    script = (templates / "lab.js").read_text(encoding="utf-8")
    document.template_variables.update(widget_css=WIDGET_CSS, script=script)
    roots = lab.roots()
    without_formulas_below(*roots)
    for root in roots:
        document.add_root(root)
    document.on_session_destroyed(lambda context: lab.close())
    lab.begin(document)


def _template(text: str) -> Any:
    from bokeh.core.templates import get_env

    return get_env().from_string(text)
