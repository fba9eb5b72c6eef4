"""Docstrings of all public names: complete sections by numpydoc's rules."""

import inspect

import pytest

import maxmargin as mm
from maxmargin.estimators import documentation
from maxmargin.estimators.registry import MODULES

validate = pytest.importorskip("numpydoc.validate")

# Rules that do not fit: a summary on the first line (GL01), descriptions that begin with a formula
# (PR08, RT04, SS02, SS03), names of returned values as scikit-learn has them (RT02).
UNFIT = {"GL01", "GL02", "GL03", "PR08", "RT02", "RT04", "SS02", "SS03"}
RULES = {rule for rule in validate.ERROR_MSGS if rule[:2] in ("GL", "SS", "PR", "RT", "YD")} - UNFIT
# Type aliases, protocols and enumerations have nothing of numpydoc's to document.
EXEMPT = (
    "maxmargin.Certificate",
    "maxmargin.Status",
    "maxmargin.files.Batches",
    "maxmargin.qp.QPStatus",
)
# Sections that every estimator has.
SECTIONS = ("Parameters", "Attributes", "References", "Examples")


def members(name, value):
    """Yield a public function, a public class with its methods, or the contents of a module."""
    if inspect.ismodule(value):
        contents = {f"{name}.{key}": getattr(value, key) for key in getattr(value, "__all__", ())}
        yield from (key for key, each in contents.items() if callable(each))
    elif callable(value):
        yield name
    if inspect.isclass(value):
        for key, method in inherited(value).items():
            # scikit-learn makes requests of metadata, and documents them.
            if not key.startswith("_") and inspect.isfunction(method) and "_request" not in key:
                yield f"{name}.{key}"


def inherited(value):
    """Return what a class has from other classes of this package."""
    ours = [base for base in value.__mro__ if base.__module__.startswith("maxmargin")]
    return {key: getattr(value, key, None) for base in ours for key in vars(base)}


PUBLIC = sorted(
    name
    for key in mm.__all__
    if not key.startswith("__")
    for name in members(f"maxmargin.{key}", getattr(mm, key))
)


def is_exempt(name):
    """Whether a name, or what it belongs to, is on the list."""
    return any(name == each or name.startswith(each + ".") for each in EXEMPT)


@pytest.mark.parametrize("name", [name for name in PUBLIC if not is_exempt(name)])
def test_sections_are_complete(name):
    found = validate.validate(name)["errors"]
    assert [f"{rule}: {message}" for rule, message in found if rule in RULES] == []


def is_method(name):
    """Whether a name belongs to a class."""
    value = mm
    for part in name.split(".")[1:-1]:
        value = getattr(value, part)
    return inspect.isclass(value)


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if not is_exempt(name) and not is_method(name)]
)
def test_classes_and_functions_have_examples(name):
    assert "EX01" not in dict(validate.validate(name)["errors"])


@pytest.mark.parametrize("name", MODULES)
def test_estimators_have_all_sections_and_attributes(name):
    estimator = getattr(mm, name)
    doc = validate.Validator(validate.get_doc_object(estimator))
    assert all(doc.doc[section] for section in SECTIONS)
    X, y = mm.datasets.load_six_points(return_X_y=True)
    fitted = {key for key in vars(estimator().fit(X, y)) if key.endswith("_")}
    named = {attribute.name for attribute in doc.doc["Attributes"]}
    assert {key for key in fitted if not key.startswith("_")} <= named
    assert all(hasattr(estimator, key) or key in annotations(estimator) for key in named)


def annotations(estimator):
    """Return the attributes that a class and its bases declare."""
    return {key for base in estimator.__mro__ for key in vars(base).get("__annotations__", ())}


def test_every_shared_entry_is_used_and_none_is_left_open():
    sources = "".join(
        inspect.getsource(inspect.getmodule(getattr(mm, name))) for name in [*MODULES, "SVC"]
    )
    assert all(f"{{{{ {entry} }}}}" in sources for entry in documentation.ENTRIES)
    assert not any("{{" in (getattr(mm, name).__doc__ or "") for name in MODULES)


def test_a_class_without_docstring_stays_without():
    bare = type("Bare", (), {})
    assert documentation.documented(bare).__doc__ is None
