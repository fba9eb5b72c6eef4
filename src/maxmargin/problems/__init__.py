"""Problems: plain data, no algorithm.

A solver answers a problem with a `Solution`; `certify` checks the answer from the problem alone.
"""

from .dual import DualProblem
from .joint import JointProblem
from .joint_kernel import JointKernelProblem
from .l1 import L1Problem
from .primal import PrimalProblem
from .separation import KernelSeparationProblem, LeastSquaresProblem, SeparationProblem

__all__ = [
    "DualProblem",
    "JointKernelProblem",
    "JointProblem",
    "KernelSeparationProblem",
    "L1Problem",
    "LeastSquaresProblem",
    "PrimalProblem",
    "SeparationProblem",
]
