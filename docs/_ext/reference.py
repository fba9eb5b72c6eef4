"""The API reference, from docstrings as they are.

Names: Sphinx finds a name in the module of its docstring only. Here a name, such as `SVC` or
`plots.path`, is also looked for in the package, and then as the end of the one full name that it
can mean. Names of other packages are shown without a link, because their inventories would come
from a network.

Text: the bars of |g(x)| and the last underscore of ``n_features_in_`` would be markup.

Members: what a class inherits from other packages stays out.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from numpydoc.xref import DEFAULT_LINKS
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

PACKAGE = "maxmargin"
# Packages whose names are shown and not linked.
OTHERS = {"collections", "dask", "distributed", "matplotlib", "numpy", "pandas", "polars", "scipy",
          "sklearn", "torch", "warnings"}  # fmt: skip


def meant(domain: PythonDomain, target: str, module: str | None) -> str | None:
    """Return the full name of what ``target`` means in a docstring of ``module``."""
    for name in (f"{module}.{target}", f"{PACKAGE}.{target}"):
        if name in domain.objects:
            return name
    # An object is documented where it is imported from: by its last words, wherever it is defined.
    words = target.removeprefix(f"{PACKAGE}.").split(".")
    for first in range(len(words)):
        end = "." + ".".join(words[first:])
        found = [name for name in domain.objects if name.endswith(end)]
        if len(found) == 1:
            return found[0]
    return None


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Node
) -> nodes.Node | None:
    """Link a name that Sphinx has not found, or leave it to be reported."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    if target.partition(".")[0] in OTHERS:
        return content
    domain = env.domains.python_domain
    name = meant(domain, target, node.get("py:module"))
    if name is None:
        return None
    entry = domain.objects[name]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, [content], name)


# Text between double backticks stays as it is.
MARKUP = re.compile(r"``.*?``|(?<!\\)\||(?<=\w)_(?=[,)])")


def escape(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape what is mathematics in a docstring and would be markup in a page."""
    in_example = False
    for number, line in enumerate(lines):
        in_example = line.strip() != "" and (in_example or line.lstrip().startswith(">>>"))
        if not in_example:
            lines[number] = MARKUP.sub(
                lambda found: found[0] if found[0].startswith("``") else "\\" + found[0], line
            )


BUILTIN = (inspect.isbuiltin, inspect.ismethoddescriptor, inspect.isgetsetdescriptor)


def skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from other packages."""
    function = value.fget if isinstance(value, property) else value
    builtin = any(test(value) for test in BUILTIN)
    module = getattr(function, "__module__", None) or ("builtins" if builtin else PACKAGE)
    return None if module.startswith(PACKAGE) else True


def setup(app: Sphinx) -> dict[str, bool]:
    """Look for names after Sphinx has, and change docstrings before numpydoc does."""
    DEFAULT_LINKS.clear()  # to Python's and NumPy's manuals
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", escape, priority=400)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
