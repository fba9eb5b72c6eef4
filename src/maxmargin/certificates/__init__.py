"""Proofs of what came out, recomputed in float64 by code that did not produce it.

`certify` looks at the problem and at the bare numbers of the answer, never at a solver's state.
A plane separates when the smallest margin exceeds what rounding could have made of it; a set is
inseparable when u ≥ 0, Σu = 1, Zᵀu = 0 (Gordan's alternative) holds up to rounding.
"""

from . import dual as margin  # what `certify` knows
from . import primal as plane
from . import separation
from .base import Certificate, NotSeparableError, certify
from .dual import MarginCertificate
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
    "feature_space_proof",
    "gordan_residual",
    "margin",
    "margin_bound",
    "nearest_proof",
    "plane",
    "refutes",
    "separation",
]
