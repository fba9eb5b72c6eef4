"""Separating hyperplanes with proofs: from the perceptron to the kernel support vector machine.

Names are imported when first used, so that ``import maxmargin`` costs next to nothing and the
compiler is loaded only when something is fitted.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name → the module it lives in.
_HOME = {
    "Certificate": "certificate",
    "ColumnEncoder": "estimators.columns",
    "Constant": "schedules",
    "Harmonic": "schedules",
    "HoKashyap": "estimators.least_squares",
    "Hyperplane": "geometry",
    "KernelPerceptron": "estimators.kernel",
    "LMS": "estimators.online",
    "LinearSVC": "estimators.linear_svm",
    "NotSeparableError": "certificate",
    "NuSVC": "estimators.svm",
    "Perceptron": "estimators.online",
    "Pocket": "estimators.online",
    "Pseudoinverse": "estimators.least_squares",
    "Recorder": "solution",
    "Relaxation": "estimators.online",
    "RowBlocks": "blocks",
    "SVC": "estimators.svm",
    "Separability": "gordan",
    "Status": "solution",
    "Step": "solution",
    "certify": "certificate",
    "load": "persistence",
    "save": "persistence",
    "separability": "gordan",
}
_MODULES = ("datasets", "diagnostics", "files", "kernels", "persistence", "plots", "qp", "report")

__all__ = [*_HOME, *_MODULES, "__version__"]

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import diagnostics as diagnostics
    from . import files as files
    from . import kernels as kernels
    from . import persistence as persistence
    from . import plots as plots
    from . import qp as qp
    from . import report as report
    from .blocks import RowBlocks as RowBlocks
    from .certificate import Certificate as Certificate
    from .certificate import NotSeparableError as NotSeparableError
    from .certificate import certify as certify
    from .estimators.columns import ColumnEncoder as ColumnEncoder
    from .estimators.kernel import KernelPerceptron as KernelPerceptron
    from .estimators.least_squares import HoKashyap as HoKashyap
    from .estimators.least_squares import Pseudoinverse as Pseudoinverse
    from .estimators.linear_svm import LinearSVC as LinearSVC
    from .estimators.online import LMS as LMS
    from .estimators.online import Perceptron as Perceptron
    from .estimators.online import Pocket as Pocket
    from .estimators.online import Relaxation as Relaxation
    from .estimators.svm import SVC as SVC
    from .estimators.svm import NuSVC as NuSVC
    from .geometry import Hyperplane as Hyperplane
    from .gordan import Separability as Separability
    from .gordan import separability as separability
    from .persistence import load as load
    from .persistence import save as save
    from .schedules import Constant as Constant
    from .schedules import Harmonic as Harmonic
    from .solution import Recorder as Recorder
    from .solution import Status as Status
    from .solution import Step as Step


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
