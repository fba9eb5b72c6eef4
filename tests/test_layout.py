"""How the tests are laid out: like the package, in short modules that do not import each other."""

from __future__ import annotations

import ast
from pathlib import Path

import maxmargin as mm

TESTS = Path(__file__).parent
PACKAGE = Path(mm.__file__).parent
# Modules that cover no single module of the package, and folders that mirror none.
FOLDERS_OF_THEIR_OWN = {"attack", "helpers"}
LONGEST = 800


def modules():
    return sorted(TESTS.rglob("*.py"))


def imported(path):
    """Yield the dotted names that a test module imports, relative ones made absolute."""
    package = ["tests", *path.relative_to(TESTS).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{name.name}" for name in node.names)


def is_test(name):
    return name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))


def test_no_module_imports_a_test_module():
    found = {
        str(path.relative_to(TESTS)): sorted(filter(is_test, imported(path))) for path in modules()
    }
    assert not {path: names for path, names in found.items() if names}


def test_no_module_is_long():
    lengths = {
        str(path.relative_to(TESTS)): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules()
    }
    assert not {path: length for path, length in lengths.items() if length > LONGEST}


def test_folders_are_those_of_the_package():
    folders = {path.relative_to(TESTS) for path in TESTS.rglob("*") if path.is_dir()}
    unknown = {
        str(folder)
        for folder in folders
        if folder.name != "__pycache__"
        and folder.parts[0] not in FOLDERS_OF_THEIR_OWN
        and not (PACKAGE / folder).is_dir()
    }
    assert not unknown
