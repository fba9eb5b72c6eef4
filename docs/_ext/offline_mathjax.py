"""Ship MathJax with the site: one file, which draws equations as SVG and loads nothing else.

The file comes from the package sphinx-mathjax-offline (MathJax 3.2.2, Apache License 2.0), whose
other 24 MB, output formats and fonts that are not used, stay behind.
"""

from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset_file

FILE = "tex-svg.js"


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy MathJax beside the pages."""
    if error is None and app.builder.format == "html":
        source = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
        (Path(app.outdir) / "_static").mkdir(exist_ok=True)
        copy_asset_file(source / FILE, Path(app.outdir) / "_static")


def setup(app: Sphinx) -> dict[str, bool]:
    """Let Sphinx's own extension for MathJax load the copy."""
    app.config.mathjax_path = FILE
    # No menu: its entries would load further files.
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
