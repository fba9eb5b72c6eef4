"""Put the machines of this package in the place of scikit-learn's, for programs as they are.

    python -m maxmargin.patch script.py [arguments of the script]
    python -m maxmargin.patch -m package.module [arguments of the module]

or, before the program imports anything from `sklearn.svm`::

    import maxmargin as mm

    mm.patch()

In every module of scikit-learn that holds the classes of `sklearn.svm` they then make machines of
this package. ``isinstance(model, sklearn.svm.SVC)`` is true of these and of scikit-learn's, such as
those in older pickles. Pickles of scikit-learn's machines load as what they were, and pickles of
ours load in programs that are not patched.
"""

from __future__ import annotations

import argparse
import inspect
import logging
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.svm import _classes as originals

import maxmargin

__all__ = ["patch", "unpatch"]

MACHINES = ("SVC", "NuSVC", "LinearSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVR")


def _stand_in(name: str) -> type:
    """Return a class that makes our machines, and has scikit-learn's for instances too."""
    ours, theirs = getattr(maxmargin, name), getattr(originals, name)

    class Kind(type(ours)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **options: Any) -> Any:
            return ours(*args, **options) if cls is machine else super().__call__(*args, **options)

        def __instancecheck__(cls, model: object) -> bool:
            either = {cls, ours, theirs} if cls is machine else {cls}
            return not either.isdisjoint(type(model).__mro__)

        def __subclasscheck__(cls, other: type) -> bool:
            # Not scikit-learn's: bases of this class would ask here, and have it for theirs, too.
            either = {cls, ours} if cls is machine else {cls}
            return not either.isdisjoint(getattr(other, "__mro__", ())) or (
                super().__subclasscheck__(other)
            )

        @property
        def __signature__(cls) -> inspect.Signature:
            """That of ``__init__``, which `__call__` above would hide."""
            signature = inspect.signature(cls.__init__)  # type: ignore[misc]
            return signature.replace(parameters=list(signature.parameters.values())[1:])

    machine: type = Kind(name, (ours,), {"__doc__": ours.__doc__, "__module__": __name__})
    return machine


_offered = [name for name in MACHINES if hasattr(maxmargin, name)]
globals().update({name: _stand_in(name) for name in _offered})


def patch() -> None:
    """Let `sklearn.svm` hold the machines of this package.

    Modules of scikit-learn that have taken the classes from there, such as
    `sklearn.calibration`, hold them too. Modules of other packages that did so before keep
    scikit-learn's. The log says what was replaced. Calling it twice is the same as once.

    See Also
    --------
    unpatch : Put scikit-learn's machines back.

    Examples
    --------
    >>> import maxmargin as mm
    >>> import sklearn.svm
    >>> mm.patch()
    >>> sklearn.svm.SVC().fit([[0.0], [1.0]], [0, 1]).certificate_.holds(1e-3)
    True
    >>> mm.unpatch()
    """
    ours = {name: globals()[name] for name in _offered}
    if _replace({getattr(originals, name): machine for name, machine in ours.items()}):
        logging.getLogger("maxmargin").warning(
            "maxmargin: %s of sklearn.svm replaced", ", ".join(ours)
        )


def unpatch() -> None:
    """Put scikit-learn's machines back.

    Models that were made in between stay what they are.

    See Also
    --------
    patch : Replace them.

    Examples
    --------
    >>> import maxmargin as mm
    >>> import sklearn.svm
    >>> mm.patch()
    >>> mm.unpatch()
    >>> sklearn.svm.SVC.__module__
    'sklearn.svm._classes'
    """
    _replace({globals()[name]: getattr(originals, name) for name in _offered})


def _replace(new: Mapping[type, type]) -> bool:
    """Replace classes in the modules of scikit-learn; return whether there were any.

    Pickles of scikit-learn's machines name the module that defines them, which stays as it is.
    """
    found = False
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "sklearn" or module in (None, originals):
            continue
        for attribute, value in list(vars(module).items()):
            if isinstance(value, type) and value in new:
                setattr(module, attribute, new[value])
                found = True
    return found


class _Patch(ModuleType):
    """This module, which is called as ``maxmargin.patch()``."""

    def __call__(self) -> None:
        patch()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a program with the machines replaced."""
    parser = argparse.ArgumentParser(
        prog="python -m maxmargin.patch",
        description="Run a Python program with the machines of maxmargin in sklearn.svm.",
    )
    parser.add_argument("-m", action="store_true", help="the program is a module, as of python -m")
    parser.add_argument("program", help="a file, or with -m a module")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the program")
    rest.required = False  # argparse would ask for them where the program is missing
    options = parser.parse_args(arguments)
    if not options.m and not Path(options.program).is_file():
        parser.error(f"there is no file {options.program!r}")
    patch()
    sys.argv = [options.program, *options.arguments]
    if options.m:
        sys.path.insert(0, "")
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(options.program).resolve().parent))
        runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    # This is a second copy of the module, whose classes no pickle would find.
    maxmargin.patch.main()  # type: ignore[attr-defined]
else:
    sys.modules[__name__].__class__ = _Patch
