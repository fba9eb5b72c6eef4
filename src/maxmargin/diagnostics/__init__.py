"""Margins, slacks, support vectors, KKT states and bounds of fitted support vector machines.

`support_table` has one row per training sample, `margin_report` describes the whole machine. Both
take a fitted `SVC`, `NuSVC` or `LinearSVC`; α, b and the plane of a `LinearSVC` are those of the
fit, everything else is recomputed from the data in float64.
"""

from .report import MarginReport, TaskMargin, margin_report
from .table import STATES, SupportTable, support_table

__all__ = [
    "STATES",
    "MarginReport",
    "SupportTable",
    "TaskMargin",
    "margin_report",
    "support_table",
]
