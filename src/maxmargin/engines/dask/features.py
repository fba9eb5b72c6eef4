"""X of a linear machine in partitions."""

from __future__ import annotations

from dataclasses import dataclass

from ...problems import JointProblem, PrimalProblem
from ..linear import JointState
from .primal_state import DaskPrimalState
from .rows import DaskRows


@dataclass(frozen=True)
class Tuning:
    """Sizes."""

    matrix_columns: int = 1000  # up to which the curvature comes with every projection
    sampled_numbers: int = 1 << 22  # of rows that come to the client for a first plane


TUNING = Tuning()


class DaskFeatures:
    """The rows of X in partitions.

    Parameters
    ----------
    rows : DaskRows
    """

    on_device, random_access, by_rows = True, False, False
    slopes_at_once = 8
    holds_rows, whole_step_first = False, True

    def __init__(self, rows: DaskRows) -> None:
        self.rows = rows
        self.n_rows, self.n_columns = rows.shape
        self.is_dense = not rows.sparse

    @property
    def stored_per_row(self) -> float:
        """The mean number of stored values per row."""
        return self.rows.stored() / max(self.n_rows, 1)

    @property
    def most_sampled(self) -> int:
        """Rows of a sample at most: those that come to the client."""
        return max(1, int(TUNING.sampled_numbers / max(self.stored_per_row, 1.0)))

    @property
    def has_curvature(self) -> bool:
        """Whether the curvature comes with every projection: of few columns."""
        return self.n_columns <= TUNING.matrix_columns

    def draw(self, size: int) -> int:
        """Return the size of a sample: `DaskPrimalState.sample` takes every k-th row."""
        return size

    def primal_state(self, problem: PrimalProblem) -> DaskPrimalState:
        """Return the state of a linear machine at w = 0, b = 0 and α = 0."""
        return DaskPrimalState(problem, self)

    def joint_state(self, problem: JointProblem) -> JointState:
        """Joint machines are not offered."""
        raise NotImplementedError("joint machines are solved by the CPU engine")
