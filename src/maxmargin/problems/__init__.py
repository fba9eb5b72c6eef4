"""Problems: plain data, no algorithm.

A solver answers a problem with a `Solution`; `certify` checks the answer from the problem alone.
"""

from .dual import MarginProblem
from .joint import JointMarginProblem
from .primal import LinearMarginProblem
from .separation import KernelSeparationProblem, LeastSquaresProblem, SeparationProblem

__all__ = [
    "JointMarginProblem",
    "KernelSeparationProblem",
    "LeastSquaresProblem",
    "LinearMarginProblem",
    "MarginProblem",
    "SeparationProblem",
]
