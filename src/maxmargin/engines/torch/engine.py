"""The torch engine: X on a device, kernel values computed there."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...kernels import Kernel
from ..base import Ended, Precision, TaskArrays, TaskGoal
from ..cpu.engine import CpuEngine
from .device_rows import DeviceRows
from .features import TorchFeatures
from .gram import TorchGram, is_blurred, is_coarse
from .kernel_rows import KernelRows, value_type
from .memory import bytes_to_use, with_smaller_blocks
from .streamed_rows import StreamedRows
from .tasks import solve_in_turns

if TYPE_CHECKING:
    from ...arrays import Integers
    from ...data.row_sums import RowSums
    from ...problems import JointKernelProblem
    from ..base import HostGram
    from ..joint_kernel import JointKernelState

# The tolerance down to which float32 kernel values, with float64 corrections, are of use.
FINEST_TOL = 1e-5


class TorchEngine:
    """X on a device of torch.

    Parameters
    ----------
    X : DeviceRows, or array or CSR matrix of shape (n_samples, n_features)
        Rows of the host are copied to the device.
    device : str or torch.device, optional
        Where to hold X; that of X by default, or the first card.
    codes : ndarray of int of shape (n_samples,), optional
        The class of every row, where tasks are about pairs of several classes: rows are then taken
        class by class, so that those of a pair lie side by side.
    budget : float, optional
        Bytes that kernel values may take, a share of the free memory by default.
    """

    is_few = False
    most_variables = inf

    def __init__(
        self, X: Any, *, device: Any = None, codes: Integers | None = None,
        budget: float | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(X, (DeviceRows, StreamedRows)):
            X = DeviceRows.upload(X, torch.device("cuda" if device is None else device))
        self.X, self.device, self._budget, self._codes = X, X.device, budget, codes
        self._rows: dict[tuple[Kernel, Any], KernelRows] = {}
        self._blurred: dict[Kernel, bool] = {}

    def precision(self, kernel: Kernel, tol: float, largest: float = 1.0) -> Precision:
        """Return "fast" where float32 kernel values, with float64 corrections, are precise enough.

        Cards that compute float64 values as fast have no use for float32 ones.
        """
        if tol < FINEST_TOL or not kernel.elementwise or value_type(self.device) is torch.float64:
            return "exact"
        return "exact" if is_coarse(self.rows(kernel, torch.float32), largest) else "fast"

    def gram(
        self,
        kernel: Kernel,
        index: Integers | None = None,
        precision: Precision = "exact",
        *,
        keep: bool = True,
    ) -> HostGram:
        """Return K of the rows of X named by ``index``, all of them by default.

        Where inner products have lost the digits that count it is that of the CPU engine, which
        computes differences of rows.
        """
        if self._needs_differences(kernel):
            return self.host.gram(kernel, index, precision, keep=keep)
        dtype = torch.float32 if precision == "fast" else torch.float64
        return TorchGram(self.rows(kernel, dtype), index, self._budget if keep else 0.0)

    @cached_property
    def host(self) -> CpuEngine:
        """The CPU engine, for what is not done on a device."""
        return CpuEngine(self.X.host)

    def _needs_differences(self, kernel: Kernel) -> bool:
        if kernel not in self._blurred:
            self._blurred[kernel] = is_blurred(self.rows(kernel, value_type(self.device)))
        return self._blurred[kernel]

    def sums(self, index: Integers | None = None) -> RowSums:
        """Return sums over the rows of X named by ``index``, which are those of the host."""
        return self.host.sums(index)

    def joint_state(self, problem: JointKernelProblem) -> JointKernelState:
        """Return the state of a joint machine with a kernel, which is one of the host."""
        return self.host.joint_state(problem)

    def solve_small(
        self, kernel: Kernel, tasks: TaskArrays, precision: Precision, goal: TaskGoal
    ) -> Ended | None:
        """Solve classifiers side by side; None where a task has two groups or no bias."""
        is_one_group = tasks.has_bias and bool((tasks.n_first == tasks.sizes).all())
        if not is_one_group or self._needs_differences(kernel):
            return None
        engine, tasks = self._by_class(kernel, tasks)
        rows = engine.rows(kernel, self._type_of_rows(kernel, tasks, goal))
        exact = engine.rows(kernel, torch.float64)
        return with_smaller_blocks(
            lambda budget: solve_in_turns(rows, exact, tasks, goal, budget), self.budget
        )

    def _by_class(self, kernel: Kernel, tasks: TaskArrays) -> tuple[TorchEngine, TaskArrays]:
        """Return rows and tasks class by class, where there are several and a kernel of rows."""
        if self._codes is None or not kernel.elementwise or self.X.sparse:
            return self, tasks
        order = torch.from_numpy(self._codes).to(self.device).argsort(stable=True).cpu().numpy()
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return TorchEngine(self.X.take(order)), replace(tasks, index=place[tasks.index])

    def _type_of_rows(self, kernel: Kernel, tasks: TaskArrays, goal: TaskGoal) -> Any:
        """Return the type of stored rows of K: float32 where that is faster, and fine enough."""
        fast = value_type(self.device)
        if fast is torch.float64 or not kernel.elementwise or goal.final_tol < FINEST_TOL:
            return torch.float64
        largest = float(tasks.upper.max(where=np.isfinite(tasks.upper), initial=1.0))
        is_fine = not is_coarse(self.rows(kernel, torch.float32), largest)
        return torch.float32 if is_fine else torch.float64

    def features(self, index: Integers | None = None) -> TorchFeatures:
        """Return the rows of X named by ``index``, all of them by default."""
        return TorchFeatures.of(self.X, index)

    def rows(self, kernel: Kernel, dtype: Any) -> KernelRows:
        """Return the source of kernel values of a type."""
        key = kernel, dtype
        if key not in self._rows:
            self._rows[key] = KernelRows(kernel, self.X, dtype)
        return self._rows[key]

    @cached_property
    def budget(self) -> float:
        """Bytes that kernel values may take."""
        return bytes_to_use(self.device) if self._budget is None else self._budget
