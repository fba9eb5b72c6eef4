"""Race the one-class machine with a Gaussian kernel against scikit-learn.

    python benchmarks/one_class.py [--data DIR] [--quick] [--out FILE] [--only SET ...]
        [--without CONTESTANT ...] [--cores N,N,...] [--known FILE ...] [--budget SECONDS]
        [--limit SECONDS]

Without ``--data`` the rows are generated; DIR adds a digit of MNIST, a9a, covtype and ijcnn1. ν is
0.1 and 0.5. Contestants, judge and limits are those of `kernel_regression.py`; scikit-learn-intelex
has no one-class machine of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scaling
from kernel_machine import (
    CACHE,
    TOL,
    Contestant,
    as_saved32,
    csr_if_thin64,
    dense64,
    digits,
    forest,
    judge_briefly,
    svmlight,
    svmlight_dense,
    twelve_classes,
)  # fmt: skip
from kernel_regression import (
    OUR_TOL,
    OURS,
    SKLEARN,
    Race,
    certified,
    coefficients,
    command_line,
)  # fmt: skip
from race import Fit, Target

SHARES = (0.1, 0.5)
DIGIT = 7


def our_machine(**options: Any) -> Fit:
    from maxmargin import OneClassSVM

    return lambda X, y: OneClassSVM(tol=OUR_TOL, **options).fit(X)


def sklearn_machine(**options: Any) -> Fit:
    from sklearn.svm import OneClassSVM

    return lambda X, y: OneClassSVM(tol=TOL, cache_size=CACHE, **options).fit(X)


CONTESTANTS = {
    OURS: Contestant(our_machine.__name__, as_saved32.__name__, "maxmargin"),
    SKLEARN: Contestant(sklearn_machine.__name__, csr_if_thin64.__name__, "sklearn"),
}


def judge_region(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """What `certify` says of α and ρ, whoever found them."""
    from maxmargin.kernels import RBF
    from maxmargin.problems import DualProblem

    problem = DualProblem.one_class(RBF(float(model.gamma)), dense64(X), float(model.nu))
    return certified(model, problem, coefficients(model, X.shape[0]))


@dataclass(frozen=True)
class Set:
    """Rows, whose labels play no part, and γ."""

    make: Callable[[Path], tuple[Any, Any]]
    gamma: float
    generated: bool = False


def one_digit(folder: Path) -> tuple[Any, Any]:
    """The images of a digit."""
    X, digit = digits(folder, "train")
    return X[digit == DIGIT], np.ones(np.count_nonzero(digit == DIGIT))


SETS = {
    "clouds": Set(lambda folder: twelve_classes(n=20_000), 1 / 30, generated=True),
    "mnist": Set(one_digit, 1 / 50),
    "a9a": Set(lambda folder: svmlight(folder, "a9a"), 1 / 123),
    "covtype": Set(forest, 1.0),
    "ijcnn1": Set(lambda folder: svmlight_dense(folder, "ijcnn1"), 2.0),
}


def speed(tables: Sequence[scaling.Table], cores: int) -> list[Target]:
    """Hold ratios to what was asked."""
    cases = [table.case for table in tables]
    return [scaling.against(tables, cases, cores, SKLEARN, 2.0, 10.0)]


def main() -> None:
    """Read the command line and race."""
    arguments = command_line(__doc__ or "", SETS, CONTESTANTS)
    cases = {
        f"{name}, ν={nu:g}": (SETS[name].make, {"nu": nu, "gamma": SETS[name].gamma})
        for name in arguments.only
        for nu in SHARES
    }
    Race("one_class", CONTESTANTS, (judge_region, judge_briefly), cases).run(arguments, speed)


if __name__ == "__main__":
    main()
