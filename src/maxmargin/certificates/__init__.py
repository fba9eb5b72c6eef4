"""Proofs of answers, recomputed in float64 by code that did not produce them.

`certify` reads the problem and the numbers of the solution, never the state of a solver. A plane
separates if the smallest margin exceeds the bound of its rounding error; a set is inseparable if
u ≥ 0, Σu = 1, Zᵀu = 0 (Gordan's alternative) holds up to rounding.
"""

from . import joint_kernel as joint_kernel  # registers itself with certify
from . import l1 as l1  # the same
from .base import Certificate, NotSeparableError, certify
from .dual import MarginCertificate, certify_tasks
from .exact_kernels import feature_space_proof
from .joint import JointMarginCertificate
from .multipliers import gordan_residual, margin_bound, nearest_proof, refutes
from .primal import PlaneCertificate
from .separation import LeastSquaresCertificate, SeparationCertificate

__all__ = [
    "Certificate",
    "JointMarginCertificate",
    "LeastSquaresCertificate",
    "MarginCertificate",
    "NotSeparableError",
    "PlaneCertificate",
    "SeparationCertificate",
    "certify",
    "certify_tasks",
    "feature_space_proof",
    "gordan_residual",
    "margin_bound",
    "nearest_proof",
    "refutes",
]
