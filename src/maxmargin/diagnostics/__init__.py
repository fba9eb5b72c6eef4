"""Tables a person reads: margins, slacks, support vectors, KKT states, bounds.

`support_table` says of every training sample where it lies and what it weighs, `margin_report`
what the whole machine is worth. Both take a fitted `SVC`, `NuSVC` or `LinearSVC`; α, b and the
plane of a `LinearSVC` are the fitted ones, all else is recomputed from the data in float64.
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
