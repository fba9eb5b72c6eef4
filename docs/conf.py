"""Configuration of the documentation site; ``tools/build_docs.py`` builds it.

Two environment variables come from there: ``MAXMARGIN_DOCS_ONLY``, pages to build without gallery
and reference, and ``MAXMARGIN_DOCS_WORK``, a folder for what is written on the way.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
ONLY = os.environ.get("MAXMARGIN_DOCS_ONLY", "").split()
WORK = Path(os.environ.get("MAXMARGIN_DOCS_WORK", HERE.parent / "build"))

from gallery import ORDER  # noqa: E402

import maxmargin  # noqa: E402

project = "maxmargin"
author = "The maxmargin developers"
copyright = author
version = release = maxmargin.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.mathjax",
    "offline_mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
# Extensions of this site that are one file each.
extensions += ["recordings", "lessons", "commands"]
if not ONLY:
    extensions += ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "reference"]
    extensions += ["sphinx_gallery.gen_gallery"]

root_doc = "index"
exclude_patterns = ["_ext", "_static", "_templates", "auto_examples/**.ipynb"]
templates_path = ["_templates"]
nitpicky = not ONLY

# Pages: MyST Markdown. Those that begin with `file_format: mystnb` are run.
myst_enable_extensions = [
    "amsmath",
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
]
myst_heading_anchors = 3
myst_dmath_double_inline = True
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_execution_show_tb = True
nb_merge_streams = True

# Pages that are run: pictures of twice the resolution, for sharp text, and no notice that functions
# are being compiled, which depends on what the machine has built before.
profile = WORK / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text(
    """\
c.IPKernelApp.log_level = 40
c.IPKernelApp.exec_lines = ['''
import logging
logging.getLogger("maxmargin").addFilter(lambda record: "compiling" not in record.getMessage())
del logging
''']
c.InlineBackend.figure_formats = {"retina"}
c.InlineBackend.rc = {"figure.figsize": (6.4, 4.4), "figure.dpi": 90}
""",
    encoding="utf-8",
)
os.environ["IPYTHONDIR"] = str(profile.parent)
os.environ["MAXMARGIN_BENCHMARKS"] = str(HERE.parent / "benchmarks")  # for the page of that name

# The reference, from the docstrings: types stand in their sections, not in signatures.
default_role = "py:obj"
smartquotes = False  # a quoted word of a docstring is a string of Python
add_module_names = False
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
# Words of a parameter's type are linked where they are public names.
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    name: f"{module.__name__}.{name}"
    for module in (maxmargin, maxmargin.kernels, maxmargin.qp)
    for name in module.__all__
    if name[0].isupper()
}

# The gallery, from examples/. What needs a cluster is shown without being run.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [f"../examples/{folder}" for folder in ORDER],
    "within_subsection_order": "gallery.Listed",
    "filename_pattern": r"/(?!cluster)\w+\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "parallel": 2,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # no times: they are of the machine that built the page
    "write_computation_times": False,
    "plot_gallery": True,
    "remove_config_comments": True,
    "default_thumb_file": str(HERE / "_static" / "no-picture.png"),
}

# Buttons copy the commands of a terminal, without prompt and output.
copybutton_prompt_text = "$ "

html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"benchmarks": [], "glossary": []}  # pages without others below them
html_theme_options = {
    "logo": {"text": "maxmargin"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}

if ONLY:
    # A few pages, quickly: what they point at is missing, and is not looked for.
    include_patterns = ONLY
    root_doc = next(HERE.glob(ONLY[0])).relative_to(HERE).with_suffix("").as_posix()
    suppress_warnings = ["toc.excluded", "toc.not_readable", "toc.not_included"]
    suppress_warnings += ["myst.xref_missing", "ref.term", "ref.ref", "ref.doc"]
