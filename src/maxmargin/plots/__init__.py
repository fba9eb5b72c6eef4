"""Figures of fitted models, drawn with matplotlib.

Every function draws on the given axes, or on a new figure, and returns a display: the numbers
drawn, and the artists in attributes that end in an underscore. No global state is changed, and no
window is opened.
"""

from .animation import AnimationDisplay, animate
from .boundary import BoundaryDisplay, boundary
from .c_path import CPathDisplay, c_path
from .comparison import ComparisonDisplay, comparison
from .convergence import ConvergenceDisplay, convergence
from .gram import GramDisplay, gram
from .margins import MarginsDisplay, margins
from .path import PathDisplay, path
from .regression import RegressionDisplay, regression
from .search import SearchDisplay, search
from .separability import SeparabilityDisplay, separability
from .support import SupportDisplay, support

__all__ = [
    "AnimationDisplay",
    "BoundaryDisplay",
    "CPathDisplay",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "GramDisplay",
    "MarginsDisplay",
    "PathDisplay",
    "RegressionDisplay",
    "SearchDisplay",
    "SeparabilityDisplay",
    "SupportDisplay",
    "animate",
    "boundary",
    "c_path",
    "comparison",
    "convergence",
    "gram",
    "margins",
    "path",
    "regression",
    "search",
    "separability",
    "support",
]
