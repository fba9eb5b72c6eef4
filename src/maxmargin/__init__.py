"""Separating hyperplanes with proofs: from the perceptron to the kernel support vector machine.

Names are imported when first used, so that ``import maxmargin`` costs next to nothing and the
compiler is loaded only when something is fitted.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .estimators.registry import MODULES
from .runtime.loading import uncollected

__version__ = "0.1.0"

# Public name → the module it lives in.
_HOME = {
    **{name: f"estimators.{module}" for name, module in MODULES.items()},
    "Certificate": "certificates",
    "ColumnEncoder": "estimators.column_encoder",
    "Constant": "schedules",
    "Harmonic": "schedules",
    "Hyperplane": "geometry",
    "LinearSVCCV": "model_selection.linear_svc_cv",
    "NotSeparableError": "certificates",
    "Recorder": "progress",
    "RowBlocks": "data.row_blocks",
    "SVCCV": "model_selection.svc_cv",
    "SVRCV": "model_selection.svr_cv",
    "Separability": "solvers.separability",
    "Status": "solution",
    "Step": "progress",
    "TextEncoder": "estimators.text_encoder",
    "certify": "certificates",
    "config": "runtime.settings",
    "kernel_cache": "runtime.kernel_cache",
    "l1_min_c": "estimators.l1_min_c",
    "load": "persistence",
    "save": "persistence",
    "separability": "solvers.separability",
    "unpatch": "patch",
    "verify": "diagnostics.verification",
}
_MODULES = (
    "datasets", "diagnostics", "files", "kernels", "model_selection", "patch", "persistence",
    "plots", "qp", "report",
)  # fmt: skip

__all__ = [*sorted(_HOME), *_MODULES, "__version__"]

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import diagnostics as diagnostics
    from . import files as files
    from . import kernels as kernels
    from . import model_selection as model_selection
    from . import persistence as persistence
    from . import plots as plots
    from . import qp as qp
    from . import report as report
    from .certificates import Certificate as Certificate
    from .certificates import NotSeparableError as NotSeparableError
    from .certificates import certify as certify
    from .data.row_blocks import RowBlocks as RowBlocks
    from .diagnostics.verification import verify as verify
    from .estimators.column_encoder import ColumnEncoder as ColumnEncoder
    from .estimators.kernel_perceptron import KernelPerceptron as KernelPerceptron
    from .estimators.l1_min_c import l1_min_c as l1_min_c
    from .estimators.least_squares import HoKashyap as HoKashyap
    from .estimators.least_squares import Pseudoinverse as Pseudoinverse
    from .estimators.linear_svc import LinearSVC as LinearSVC
    from .estimators.linear_svr import LinearSVR as LinearSVR
    from .estimators.lms import LMS as LMS
    from .estimators.one_class import OneClassSVM as OneClassSVM
    from .estimators.perceptron import Perceptron as Perceptron
    from .estimators.pocket import Pocket as Pocket
    from .estimators.relaxation import Relaxation as Relaxation
    from .estimators.svc import SVC as SVC
    from .estimators.svc import NuSVC as NuSVC
    from .estimators.svr import SVR as SVR
    from .estimators.svr import NuSVR as NuSVR
    from .estimators.text_encoder import TextEncoder as TextEncoder
    from .geometry import Hyperplane as Hyperplane
    from .model_selection.linear_svc_cv import LinearSVCCV as LinearSVCCV
    from .model_selection.svc_cv import SVCCV as SVCCV
    from .model_selection.svr_cv import SVRCV as SVRCV
    from .patch import patch as patch
    from .patch import unpatch as unpatch
    from .persistence import load as load
    from .persistence import save as save
    from .progress import Recorder as Recorder
    from .progress import Step as Step
    from .runtime.kernel_cache import kernel_cache as kernel_cache
    from .runtime.settings import config as config
    from .schedules import Constant as Constant
    from .schedules import Harmonic as Harmonic
    from .solution import Status as Status
    from .solvers.separability import Separability as Separability
    from .solvers.separability import separability as separability
else:  # hidden from type checkers, to which every name would otherwise exist

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f".{name}", __name__)
        if name in _HOME:
            with uncollected():
                return getattr(import_module(f".{_HOME[name]}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
