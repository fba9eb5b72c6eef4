"""The torch engine: X on a device, kernel values computed there."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...kernels import Kernel
from ...progress import Limits
from ..base import Ended, Precision, TaskArrays, TaskGoal
from .device_rows import DeviceRows
from .kernel_rows import KernelRows, value_type
from .tasks import solve_tasks

if TYPE_CHECKING:
    from ...arrays import Integers


class TorchEngine:
    """X on a device of torch.

    Parameters
    ----------
    X : DeviceRows, or array or CSR matrix of shape (n_samples, n_features)
        Rows of the host are copied to the device.
    device : str or torch.device, optional
        Where to hold X; that of X by default, or the first card.
    codes : ndarray of int, optional
        The class of every row; not used here.
    budget : float, optional
        Bytes that kernel values may take, a share of the free memory by default.
    """

    is_few = False

    def __init__(
        self, X: Any, *, device: Any = None, codes: Integers | None = None,
        budget: float | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(X, DeviceRows):
            X = DeviceRows.upload(X, torch.device("cuda" if device is None else device))
        self.X, self.device, self._budget = X, X.device, budget
        self._rows: dict[tuple[Kernel, Any], KernelRows] = {}

    def solve_small(
        self, kernel: Kernel, tasks: TaskArrays, precision: Precision, goal: TaskGoal
    ) -> Ended | None:
        """Solve classifiers side by side; None where a task has two groups or no bias."""
        if not tasks.has_bias or (tasks.n_first != tasks.sizes).any():
            return None
        rows = self.rows(kernel, value_type(self.device))
        exact = self.rows(kernel, torch.float64)
        ended = solve_tasks(
            rows, exact, tasks, goal, self.budget, 0.0 if tasks.total else 1.0, Limits()
        )
        keep = [ended.alpha[k, :n] for k, n in enumerate(tasks.sizes)]
        return ended._replace(alpha=np.concatenate(keep))

    def rows(self, kernel: Kernel, dtype: Any) -> KernelRows:
        """Return the source of kernel values of a type."""
        key = kernel, dtype
        if key not in self._rows:
            self._rows[key] = KernelRows(kernel, self.X, dtype)
        return self._rows[key]

    @cached_property
    def budget(self) -> float:
        """Bytes that kernel values may take."""
        if self._budget is not None:
            return self._budget
        if self.device.type == "cuda":
            return 0.8 * torch.cuda.mem_get_info(self.device)[0]
        return 2.0**31
