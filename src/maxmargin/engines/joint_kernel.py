"""What an engine offers to the solver of joint kernel machines."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..arrays import Floats, Integers


class JointSurvey(NamedTuple):
    """Sums over all samples of a joint kernel machine."""

    violation: float  # the largest of max_k s_i^k less the least s_i^k of a class with a share
    gap: float  # Σ_i C_i (max_k s_i^k − p_i·s_i): P − D + b·Σα
    loss: float  # Σ_i C_i (max_k s_i^k − s_i^y)
    square: float  # Σ_k ‖w_k‖²
    flow: float  # Σ_i α_i^y
    rest: Floats  # Σ_i α_i of every class
    errors: int  # samples on the wrong side


class JointKernelState(Protocol):
    """Shares p_i^k, biases and values s_i^k = (k ≠ y_i) + w_k·φ(x_i) + b_k of one machine.

    α_i = C_i(e_y − p_i), as in `maxmargin.solvers.joint`.
    """

    b: Floats

    @property
    def n_samples(self) -> int:
        """The number of samples."""

    @property
    def largest(self) -> float:
        """The largest K(x, x)."""

    def start(self, alpha: Floats, b: Floats) -> None:
        """Begin with α, made feasible, and b; the shares of the own class are 1 without it."""

    def refresh(self) -> None:
        """Compute the values anew, from α."""

    def alpha(self, factors: Floats | None = None) -> Floats:
        """Return α (n, c); flows that yield are multiplied by factors (c, c)."""

    def shift(self, by: Floats) -> None:
        """Move the biases."""

    def survey(self) -> JointSurvey:
        """Return sums over all samples, and keep how much each violates."""

    def class_flows(self) -> tuple[Floats, Floats]:
        """Return what flows from each class k to each l, Σ −α_i^l over the samples of class k.

        All of it, and that of the samples whose own class has a share, which yields.
        """

    def choose(self, present: Integers, size: int, n_fresh: int) -> Integers:
        """Return the samples of the next block, as the last survey found them.

        The ``n_fresh`` worst violators, then those of the block before (``present``) with shares of
        several classes, then further violators.
        """

    def solve(self, rows: Integers, bias_step: float, stop: float, max_steps: int) -> int:
        """Solve the problem of some samples, all others held fixed; return the steps taken.

        It ends where none violates by more than ``stop``. b moves with α, by ``bias_step`` Σ_i α_i.
        """
