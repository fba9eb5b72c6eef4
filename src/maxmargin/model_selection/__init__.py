"""Choosing the model: searches, the whole path of costs C, and leave-one-out predictions.

`SVCCV` and its relatives choose C and the kernel by cross-validation. `c_path` returns the machines
of all C in a range, `leave_one_out` what a machine predicts for every sample when it is fitted
without it. All of them are certified.
"""

from .leave_one_out import LeaveOneOut, RefitStep, leave_one_out
from .linear_svc_cv import LinearSVCCV
from .path import CPath, c_path
from .svc_cv import SVCCV
from .svr_cv import SVRCV

__all__ = [
    "SVCCV",
    "SVRCV",
    "CPath",
    "LeaveOneOut",
    "LinearSVCCV",
    "RefitStep",
    "c_path",
    "leave_one_out",
]
