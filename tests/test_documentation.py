"""The documentation holds what it should: every public name, and no figure of its own."""

import inspect
import json
import re
from importlib import import_module
from pathlib import Path

import pytest

import maxmargin as mm

DOCS = Path(__file__).parent.parent / "docs"
# An autosummary and the module in which it looks for its names.
BLOCK = re.compile(
    r"^\.\. currentmodule:: (?P<module>\S+)\n\n\.\. autosummary::\n"
    r"(?: +:.*\n)*\n(?P<names>(?: +\S+\n)+)",
    re.MULTILINE,
)
# Modules whose names are on the pages of others, and what is no object.
MODULES = [key for key in mm.__all__ if inspect.ismodule(getattr(mm, key))]
# A second name, kept for programs that have it.
EARLIER = {"maxmargin.files.Table"}


def listed():
    """Return the full names that stand on the pages of the reference."""
    return [
        f"{block['module']}.{name}"
        for page in sorted((DOCS / "reference").glob("*.md"))
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
        for name in block["names"].split()
    ]


def found(name):
    """Return the object of a full name."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def public(module):
    """Return the public names of a module, those of `datasets` being its functions."""
    functions = [key for key in vars(module) if key.startswith("load_")]
    return getattr(module, "__all__", functions)


@pytest.mark.parametrize("name", ["", *MODULES, "certificates"])
def test_reference_has_every_public_name(name):
    module = import_module(".".join(filter(None, ["maxmargin", name])))
    pages = [found(each) for each in listed()]
    missing = [
        key
        for key in public(module)
        if not key.startswith("__")
        and not inspect.ismodule(getattr(module, key))
        and f"{module.__name__}.{key}" not in EARLIER
        and not any(getattr(module, key) is each for each in pages)
    ]
    assert missing == []


def test_reference_lists_every_name_once():
    names = listed()
    assert len(names) > 100
    assert sorted(set(names)) == sorted(names)


def test_every_page_of_the_reference_is_in_its_index():
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    pages = {page.stem for page in (DOCS / "reference").glob("*.md")} - {"index"}
    entries = set(index[index.index("{toctree}") :].split("\n"))
    assert pages <= entries


RECORD = json.loads((DOCS.parent / "benchmarks" / "recorded.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RECORD)
def test_drawn_results_are_those_of_the_tables(name):
    result = RECORD[name]
    tables = (DOCS.parent / result["source"]).read_text(encoding="utf-8")
    words = " ".join(tables.split()).lower()
    assert result["date"].lower() in words
    assert result["machine"].lower() in words
    for case, values in result["rows"].items():
        assert len(values) == len(result["series"])
        rows = [line for line in tables.split("\n") if line.startswith(f"| {case}")]
        cells = [set(map(float, re.findall(r"\d+\.?\d*", line[2 + len(case) :]))) for line in rows]
        assert any(cell >= set(map(float, values)) for cell in cells), case


def test_every_recorded_benchmark_is_on_the_page():
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r'show\("(.+)"\)', page)) == sorted(RECORD)
