"""Choosing the model: the whole path of costs C, and exact leave-one-out predictions.

`c_path` returns the machines of all C in a range, `leave_one_out` what a machine predicts for every
sample when it is fitted without it. Both are certified.
"""

from .leave_one_out import LeaveOneOut, leave_one_out
from .path import CPath, c_path

__all__ = ["CPath", "LeaveOneOut", "c_path", "leave_one_out"]
