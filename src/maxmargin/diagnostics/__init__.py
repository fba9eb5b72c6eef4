"""Margins, slacks, support vectors, KKT states and bounds of fitted support vector machines.

`support_table` has one row per training sample, `margin_report` describes the whole machine, and
`scaling_advice` says what is badly scaled. They take a fitted `SVC`, `NuSVC`, `LinearSVC`, `SVR`,
`NuSVR`, `LinearSVR` or `OneClassSVM`; α, b and the plane of a linear machine are those of the fit,
everything else is recomputed from the data in float64.
"""

from .advice import scaling_advice
from .region import RegionReport, RegionTable
from .report import MarginReport, TaskMargin, margin_report
from .support import STATES, SupportTable, support_table
from .targets import TargetErrors
from .tube import TubeReport, TubeTable
from .verification import Verification, verify

__all__ = [
    "STATES",
    "MarginReport",
    "RegionReport",
    "RegionTable",
    "SupportTable",
    "TargetErrors",
    "TaskMargin",
    "TubeReport",
    "TubeTable",
    "Verification",
    "margin_report",
    "scaling_advice",
    "support_table",
    "verify",
]
