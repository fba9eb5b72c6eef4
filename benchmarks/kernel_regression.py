"""Race support vector regression with a Gaussian kernel against scikit-learn and oneDAL.

    python benchmarks/kernel_regression.py [--data DIR] [--quick] [--out FILE] [--only SET ...]
        [--without CONTESTANT ...] [--cores N,N,...] [--known FILE ...] [--budget SECONDS]
        [--limit SECONDS]

Without ``--data`` the sets are generated; DIR adds columns of other sets as targets: a pixel among
its neighbours, the elevation of a patch of forest. Features and targets are standardised, γ = 1/d
unless said otherwise, ε = 0.1. ``--quick`` takes a twentieth of the rows to see that all of it
runs. By default every contestant has all cores.

Ours runs at tol = 5e-4, so that every answer has a relative gap of at most 1e-3, and the others at
their default of 1e-3. What an answer is worth is said by `certify`, from α − α*, b and the data in
float64. A peer is stopped at twelve times our seconds, but not before 20, nor after ``--limit``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import race
import scaling
from kernel_machine import (
    CACHE,
    PACKAGES,
    SEED,
    TOL,
    Contestant,
    as_saved32,
    csr_if_thin64,
    dense32,
    dense64,
    installed,
    judge_briefly,
    on_onedal,
    svmlight,
)  # fmt: skip
from race import Fit, Outcome, Summary, Target

# The tolerance that bounds the relative gap of our answers by `LARGEST_GAP`.
OUR_TOL, LARGEST_GAP = 5e-4, 1e-3
EPSILON = 0.1
# A peer is stopped at so many times our seconds: more than the ratio that is asked for.
PATIENCE = 12.0
Judge = Callable[[Any, Any, Any], dict[str, Any]]
OURS, ONEDAL, SKLEARN = "maxmargin-float32", "intelex-float32", "scikit-learn"


# Contestants ---------------------------------------------------------------------------------


def our_svr(**options: Any) -> Fit:
    from maxmargin import SVR

    return lambda X, y: SVR(tol=OUR_TOL, epsilon=EPSILON, **options).fit(X, y)


def sklearn_svr(**options: Any) -> Fit:
    from sklearn.svm import SVR

    return lambda X, y: SVR(tol=TOL, epsilon=EPSILON, cache_size=CACHE, **options).fit(X, y)


def intelex_svr(**options: Any) -> Fit:
    from sklearnex.svm import SVR

    return lambda X, y: on_onedal(
        SVR(tol=TOL, epsilon=EPSILON, cache_size=CACHE, **options).fit(X, y)
    )


CONTESTANTS = {
    OURS: Contestant(our_svr.__name__, as_saved32.__name__, "maxmargin"),
    ONEDAL: Contestant(intelex_svr.__name__, dense32.__name__, "sklearnex"),
    SKLEARN: Contestant(sklearn_svr.__name__, csr_if_thin64.__name__, "sklearn"),
}


# The judge -----------------------------------------------------------------------------------


def judge_regression(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """What `certify` says of α − α* and b, whoever found them."""
    from maxmargin.kernels import RBF
    from maxmargin.problems import DualProblem

    kernel, X = RBF(float(model.gamma)), dense64(X)
    problem = DualProblem.regression(kernel, X, y, float(model.C), EPSILON)
    beta = coefficients(model, len(y))
    alpha = np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
    return certified(model, problem, alpha)


def coefficients(model: Any, n: int) -> Any:
    """Return the coefficient of every row."""
    told = getattr(model.dual_coef_, "toarray", lambda: model.dual_coef_)()
    beta = np.zeros(n)
    beta[model.support_] = np.asarray(told, dtype=np.float64)[0]
    return beta


def certified(model: Any, problem: Any, alpha: Any) -> dict[str, Any]:
    """State what α and the bias of a model are worth."""
    from maxmargin import Status, certify
    from maxmargin.solution import Solution

    b = np.asarray(model.intercept_, dtype=np.float64)
    solution = Solution(np.empty((0, 0)), b, Status.CONVERGED, alpha=alpha)
    proof = certify(problem, solution)
    return {
        "primal": proof.primal,
        "dual": proof.dual,
        "relative_gap": proof.relative_gap,
        "violation": proof.violation,
        "support": len(model.support_),
    }


# Data ----------------------------------------------------------------------------------------


def standardised(X: Any, y: Any) -> tuple[Any, Any]:
    """Return columns and targets of mean 0 and variance 1, rows in random order."""
    rows = np.random.default_rng(SEED).permutation(len(y))
    X, y = np.asarray(X, dtype=np.float64)[rows], np.asarray(y, dtype=np.float64)[rows]
    X = X[:, X.std(axis=0) > 0.0]
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def friedman(folder: Path, n: int) -> tuple[Any, Any]:
    """Ten features, of which five decide, and noise (Friedman, 1991)."""
    from sklearn.datasets import make_friedman1

    return standardised(*make_friedman1(n, noise=1.0, random_state=SEED))


def sinc(folder: Path, n: int = 20_000) -> tuple[Any, Any]:
    """sin(x)/x on a line, with noise."""
    rng = np.random.default_rng(SEED)
    x = rng.uniform(-10.0, 10.0, n)
    return standardised(x[:, np.newaxis], np.sinc(x / np.pi) + 0.1 * rng.standard_normal(n))


def column(folder: Path, name: str, target: int, n: int | None = None) -> tuple[Any, Any]:
    """A column of a data set, from the other columns; of some random rows."""
    X, _ = svmlight(folder, name)
    rows = np.random.default_rng(SEED).permutation(X.shape[0])[:n]
    X = X[rows].toarray()
    return standardised(np.delete(X, target, axis=1), X[:, target])


@dataclass(frozen=True)
class Set:
    """Data, the costs to fit with, and γ, by default 1/d."""

    make: Callable[[Path], tuple[Any, Any]]
    costs: Sequence[float]
    gamma: float | None = None
    generated: bool = False


SETS = {
    "friedman1-10000": Set(lambda folder: friedman(folder, 10_000), (1, 10, 100), generated=True),
    "friedman1-40000": Set(lambda folder: friedman(folder, 40_000), (1, 10), generated=True),
    "sinc": Set(sinc, (1, 10), gamma=10.0, generated=True),
    "covtype": Set(lambda folder: column(folder, "covtype", 0, 20_000), (1, 10, 100)),
    "higgs": Set(lambda folder: column(folder, "higgs_11k", 25), (1, 10)),
    "satimage": Set(lambda folder: column(folder, "satimage", 17), (1, 10, 100)),
    "usps": Set(lambda folder: column(folder, "usps", 135), (1, 10)),
    "ijcnn1": Set(lambda folder: column(folder, "ijcnn1", 21, 20_000), (1, 10)),
    "skin": Set(lambda folder: column(folder, "skin_nonskin", 0, 20_000), (1, 10), gamma=1.0),
}  # fmt: skip


# The race ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Race:
    """The problems of a program by case, and who solves and judges them: in full, or briefly."""

    module: str
    contestants: dict[str, Contestant]
    judges: tuple[Judge, Judge]
    cases: dict[str, tuple[Callable[[Path], tuple[Any, Any]], dict[str, Any]]]

    def prepare(
        self, data: Path | None, quick: bool, case: str, scratch: Path
    ) -> tuple[str, scaling.Run]:
        """Write the data of a case; return its title and how a contestant is run."""
        make, options = self.cases[case]
        X, y = make(data or Path())
        X, y = (X[::20], y[::20]) if quick else (X, y)
        options = {"gamma": 1.0 / X.shape[1], **options}
        race.save(scratch / case, X, y)

        def run(name: str, cores: int, limit: float, judged: bool) -> list[Outcome]:
            who = self.contestants[name]
            return race.run(
                self.module, who.function, scratch / case, form=who.form,
                judge=self.judges[0 if judged else 1].__name__, laps=[options],
                repeats=scaling.REPEATS, long=scaling.LONG, limits=[limit],
                warm_up=scaling.WARM_UP, cores=cores,
            )  # fmt: skip

        return f"{case}: {X.shape[0]:,} × {X.shape[1]}, γ={options['gamma']:.4g}", run

    def run(
        self,
        arguments: argparse.Namespace,
        speed: Callable[[Sequence[scaling.Table], int], list[Target]],
    ) -> None:
        """Race all contestants that are installed; print and keep the tables."""
        present = [name for name, who in self.contestants.items() if installed(who.module)]
        for name in set(self.contestants) - set(present):
            print(f"{name} is missing: it takes no part.")
        chosen = [name for name in present if name not in arguments.without]
        plan = scaling.plan(arguments, list(self.cases), chosen, PATIENCE, arguments.limit)
        done: list[scaling.Table] = []

        def tables() -> Iterator[scaling.Table | Summary]:
            def prepare(case: str, scratch: Path) -> tuple[str, scaling.Run]:
                return self.prepare(arguments.data, arguments.quick, case, scratch)

            for table in scaling.over_cores(plan, prepare):
                done.append(table)
                yield table
            ratios = [] if arguments.quick else speed(done, max(plan.counts))
            gaps = scaling.exact(done, OURS, "relative_gap", LARGEST_GAP)
            yield Summary("Targets", [*ratios, gaps])

        race.report(tables(), arguments.out, scaling.show, PACKAGES)


def speed(tables: Sequence[scaling.Table], cores: int) -> list[Target]:
    """Hold ratios to what was asked."""
    cases = [table.case for table in tables]
    return [
        scaling.against(tables, cases, cores, ONEDAL, 2.0, 4.0),
        scaling.against(tables, cases, cores, SKLEARN, 10.0, 30.0),
    ]


def command_line(
    about: str, sets: dict[str, Any], contestants: dict[str, Contestant]
) -> argparse.Namespace:
    """Read the options; sets that need the data folder are left out where there is none."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR", help="folder with covtype.bz2 and the others")
    add("--quick", action="store_true", help="small data: see that all of it runs")
    add("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    add("--only", nargs="+", choices=sets, metavar="SET", help=", ".join(sets))
    add("--without", nargs="+", choices=contestants, metavar="CONTESTANT", default=[],
        help=", ".join(contestants))  # fmt: skip
    add("--limit", type=float, metavar="SECONDS", default=120.0, help="of one fit of a peer (120)")
    scaling.add_options(parser)
    parser.set_defaults(cores=[len(os.sched_getaffinity(0))])
    arguments = parser.parse_args()
    possible = [name for name in sets if arguments.data is not None or sets[name].generated]
    if lacking := [name for name in arguments.only or () if name not in possible]:
        parser.error(f"{', '.join(lacking)}: pass --data DIR.")
    arguments.only = arguments.only or possible
    return arguments


def main() -> None:
    """Read the command line and race."""
    arguments = command_line(__doc__ or "", SETS, CONTESTANTS)
    cases = {}
    for name in arguments.only:
        of = SETS[name]
        for C in of.costs:
            gamma = {} if of.gamma is None else {"gamma": of.gamma}
            cases[f"{name}, C={C:g}"] = (of.make, {"C": float(C), **gamma})
    Race("kernel_regression", CONTESTANTS, (judge_regression, judge_briefly), cases).run(
        arguments, speed
    )


if __name__ == "__main__":
    main()
