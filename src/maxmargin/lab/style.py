"""Colours of widgets, to which the style sheet of the page does not apply (shadow roots)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bokeh.models import Button, Markup

WIDGET_CSS = """
:host {
  --color: var(--ink); --background-color: var(--ground); --hover-color: var(--panel);
  --border-color: var(--edge); --divider-color: var(--rule); --disabled-color: var(--faint);
  --shortcut-color: var(--faint); --highlight-color: var(--accent); --active-border: var(--accent);
  --active-bg: var(--panel); --active-fg: var(--ink); --placeholder-color: var(--faint);
  --inverted-color: var(--on-accent); --surface-background-color: var(--panel);
  --disabled-background-color: var(--panel); --input-focus-border-color: var(--accent);
  --tooltip-color: var(--ground); --tooltip-text: var(--ink); --tooltip-border: var(--edge);
  --tooltip-arrow-color: var(--ground); --box-shadow-color: rgba(0, 0, 0, 0.35);
  color: var(--ink);
}
label, .bk-input-group, .bk-slider-title, .bk-clearfix { color: var(--ink); }
.bk-input, select, option, optgroup, input {
  background-color: var(--ground); color: var(--ink); border-color: var(--edge);
}
input::file-selector-button {
  background-color: var(--panel); color: var(--ink); border: 1px solid var(--edge);
}
.bk-btn, .bk-btn.bk-btn-default {
  background-color: var(--ground); color: var(--ink); border-color: var(--edge);
}
.bk-btn:hover, .bk-btn.bk-btn-default:hover { background-color: var(--panel); }
.bk-btn.bk-active, .bk-btn.bk-btn-default.bk-active {
  background-color: var(--accent); color: var(--on-accent); border-color: var(--accent);
}
.bk-btn:disabled { color: var(--faint); }
select:not([multiple]).bk-input, select:not([size]).bk-input {
  appearance: auto; background-image: none; padding-right: 4px;
}
@media (max-width: 700px) {
  :host(.beside) { flex-direction: column !important; }
  :host(.texts) { display: block !important; }
}
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.bk-events:focus-visible { outline-offset: -3px; }
.bk-tab { color: var(--faint); } .bk-header { border-color: var(--rule) !important; }
.bk-tab:hover { background-color: var(--ground); }
.bk-tab.bk-active {
  background-color: var(--ground); color: var(--ink); border-color: var(--edge) !important;
}
:host(.bk-Slider) { padding-right: 8px; }
.noUi-target { background-color: var(--rule); border-color: var(--edge); }
.noUi-connect { background-color: var(--accent) !important; }
.noUi-handle { background-color: var(--ground); border: 1px solid var(--edge); box-shadow: none; }
.slick-header-column { background: var(--panel) !important; color: var(--ink) !important; }
.slick-viewport, .grid-canvas, .slick-pane { background: var(--ground); }
.slick-row .slick-cell { background: var(--ground); color: var(--ink); border-color: var(--rule); }
.slick-row.odd .slick-cell { background: var(--panel); }
.slick-row .slick-cell.selected { background: var(--accent); color: var(--on-accent); }
:host(.unseen) {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
}
p { margin: 2px 0; } .facts { color: var(--faint); font-size: 12px; }
.good { border-left: 4px solid var(--good); padding-left: 8px; font-weight: 600; }
.open { border-left: 4px solid var(--bad); padding-left: 8px; font-weight: 600; }
.step { border-left: 4px solid var(--accent); padding-left: 8px; }
.bad { color: var(--bad); }
:host(.stale) { opacity: 0.4; transition: opacity 0.2s 0.3s; }
:host(.busy) { opacity: 1; }
h3 { font-size: 14px; margin: 0 0 4px; } .question { font-weight: 600; }
.goals { list-style: none; margin: 4px 0; padding: 0; } .goals .reached { color: var(--good); }
.goals .word { color: var(--faint); font-size: 12px; }
code { font-size: 12px; color: var(--faint); white-space: pre-wrap; }
"""


def button(label: str, act: Callable[[], None], width: int, name: str | None = None) -> Button:
    """Return a button that calls a function."""
    made = Button(label=label, width=width, name=name or label)
    made.on_click(lambda event: act())
    return made


def describe(figure: Any, text: str, *, points: bool = False) -> None:
    """Describe a figure to those who do not see it; in one of ``points`` these can be edited."""
    figure.html_attributes = {"data-description": text} | (
        {"data-points": figure.name} if points else {}
    )


def without_formulas(text: str) -> str:
    """Return a text in which Bokeh finds no formula to typeset: names may come from anyone."""
    return re.sub(r"\$(?=\$)|\\(?=[(\[])", lambda found: found[0] + "\u200b", text)


def without_formulas_below(*roots: Any) -> None:
    """Typeset no formula in the texts below these roots."""
    for root in roots:
        for part in root.references():
            if isinstance(part, Markup):
                part.disable_math = True
