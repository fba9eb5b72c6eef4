"""Colours of widgets, to which the style sheet of the page does not apply (shadow roots)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bokeh.models import Button, InlineStyleSheet, UIElement

WIDGET_CSS = """
:host, label, .bk-input-group, .bk-slider-title, .bk-clearfix { color: var(--ink); }
.bk-input, select, option, input, .bk-input-group input {
  background-color: var(--ground); color: var(--ink); border-color: var(--rule);
}
.bk-btn { background-color: var(--ground); color: var(--ink); border-color: var(--rule); }
.bk-btn:hover { background-color: var(--panel); }
.bk-btn.bk-active { background-color: var(--accent); color: #ffffff; }
.bk-btn:focus-visible, .bk-input:focus-visible, .bk-tab:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 1px;
}
.bk-tab { color: var(--faint); } .bk-header { border-color: var(--rule) !important; }
.bk-tab.bk-active {
  background-color: var(--ground); color: var(--ink); border-color: var(--rule) !important;
}
.noUi-target { background-color: var(--rule); border-color: var(--rule); }
.noUi-connect { background-color: var(--accent); }
.noUi-handle { background-color: var(--ground); border-color: var(--faint); }
.slick-header-column { background: var(--panel) !important; color: var(--ink); }
.slick-row .slick-cell { background: var(--ground); color: var(--ink); border-color: var(--rule); }
.slick-row.odd .slick-cell { background: var(--panel); }
.slick-row .slick-cell.selected { background: var(--accent); color: #ffffff; }
p { margin: 2px 0; } .facts { color: var(--faint); font-size: 12px; }
.good { border-left: 4px solid var(--good); padding-left: 8px; font-weight: 600; }
.open { border-left: 4px solid var(--bad); padding-left: 8px; font-weight: 600; }
.step { border-left: 4px solid var(--accent); padding-left: 8px; }
.bad { color: var(--bad); }
:host(.stale) { opacity: 0.4; transition: opacity 0.2s 0.3s; }
code { font-size: 12px; color: var(--faint); white-space: pre-wrap; }
"""


def button(label: str, act: Callable[[], None], width: int, name: str | None = None) -> Button:
    """Return a button that calls a function."""
    made = Button(label=label, width=width, name=name or label)
    made.on_click(lambda event: act())
    return made


def dress(*roots: Any) -> None:
    """Apply the colours of the page to all widgets below these roots."""
    sheet = InlineStyleSheet(css=WIDGET_CSS)
    for root in roots:
        for part in root.references():
            if isinstance(part, UIElement) and not _is_dressed(part):
                part.stylesheets = [*part.stylesheets, sheet]


def _is_dressed(part: Any) -> bool:
    return any(getattr(sheet, "css", sheet) == WIDGET_CSS for sheet in part.stylesheets)
