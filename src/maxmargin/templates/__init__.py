"""Pages and parts of pages as templates of Jinja, which escapes all that is filled in."""

from __future__ import annotations

from importlib import resources
from typing import Any


def rendered(name: str, **values: Any) -> str:
    """Return a template of this folder with its values filled in.

    Parameters
    ----------
    name : str
        The file.
    **values
        What it shows.
    """
    from jinja2 import Environment, FunctionLoader

    folder = resources.files(__package__)
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True,
        loader=FunctionLoader(lambda file: (folder / file).read_text(encoding="utf-8")),
    )  # fmt: skip
    return environment.get_template(name).render(**values)
