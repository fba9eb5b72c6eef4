"""Race the kernel support vector machine against its peers.

    python benchmarks/kernel_machine.py [--data DIR] [--quick] [--out FILE] [--plot FILE.png]
        [--only CASE ...] [--without CONTESTANT ...] [--repeats N] [--our-cache MB]
        [--cores N,N,... [--known FILE ...] [--budget SECONDS]]

    pip install matplotlib scikit-learn-intelex libsvm-official

brings the picture and two of the peers; a peer that is not installed is left out, and said to be.
Without ``--data`` everything runs on generated data; DIR adds a9a, w8a, ijcnn1, MNIST, covtype,
letter and usps. ``--quick`` shrinks the data to see that all of it runs.

Every contestant stops at its own tolerance of 1e-3. What its answer is worth is then said by one
judge: α, b and the data as they were before anybody rounded them, in float64, by `certify`.

``--cores 1,2,4`` races ours and oneDAL, both on float32 input, on so many cores each; ``--plot``
then draws speed over cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from itertools import combinations
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
import race
import scaling
from race import Fit, Outcome, Summary, Target
from separating import curved

TOL = 1e-3
# MB of kernel rows that LIBSVM and oneDAL may keep: ten times their default, to be generous.
CACHE = 2000
# Seconds beyond which a fit is not repeated.
LONG = 10.0
# What an answer may be off at most, in the worst pair of classes.
LARGEST_VIOLATION, LARGEST_GAP = 1e-3, 2e-3
# Share of non-zeros below which LIBSVM is faster on CSR rows: between w8a (4 %) and a9a (11 %).
THIN = 1 / 16
PACKAGES = (*race.PACKAGES, "scikit-learn-intelex", "libsvm-official")
SEED = 0


# What a person reads -------------------------------------------------------------------------


@dataclass
class Row:
    """One contestant of one case; ``ratio`` above 1: ours is faster."""

    contestant: str
    seconds: float | None = None
    ratio: float | None = None
    relative_gap: float | None = None
    violation: float | None = None
    support: int | None = None
    memory: float | None = None
    note: str = ""
    all_seconds: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Table:
    """The rows of one case, by what the clock covered ("fit", "predict", ...)."""

    case: str
    title: str
    clock: str
    rows: list[Row] = field(default_factory=list)

    def row(self, contestant: str) -> Row | None:
        """Return the row of a contestant that came home."""
        rows = (row for row in self.rows if row.contestant == contestant)
        return next((row for row in rows if row.seconds is not None), None)

    @property
    def ours(self) -> Row | None:
        """Our row that others are compared with: float32 input, else float64."""
        return next(filter(None, map(self.row, OURS)), None)


def show(table: Table | Summary) -> None:
    """Print one case, or the summary."""
    if isinstance(table, Summary):
        return race.show_summary(table)
    from rich.console import Console

    Console(width=max(Console().width, 130)).print(_case_grid(table))
    return None


def _case_grid(table: Table) -> Any:
    from rich.table import Table as Grid

    cells: dict[str, list[str]] = {
        table.clock: [_seconds(row) for row in table.rows],
        "÷ ours": [_number(row.ratio, ".2f", "×") for row in table.rows],
        "relative gap": [_number(row.relative_gap, ".1e", most=LARGEST_GAP) for row in table.rows],
        "worst KKT": [_number(row.violation, ".1e", most=LARGEST_VIOLATION) for row in table.rows],
        "support": [_number(row.support, ",") for row in table.rows],
        "memory": [_number(row.memory, ",.0f", " MiB") for row in table.rows],
    }
    grid = Grid(title=table.title, title_justify="left", title_style="bold")
    grid.add_column("contestant", no_wrap=True)
    cells = {heading: column for heading, column in cells.items() if any(column)}
    for heading in cells:
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("note", overflow="fold")
    for k, row in enumerate(table.rows):
        grid.add_row(row.contestant, *(column[k] for column in cells.values()), row.note)
    return grid


def _seconds(row: Row) -> str:
    if row.seconds is None:
        return ""
    return f"{row.seconds:.2f} s" if row.seconds >= 1.0 else f"{1e3 * row.seconds:.1f} ms"


def _number(value: float | None, form: str, unit: str = "", most: float = inf) -> str:
    """Format a number, red where it is more than allowed."""
    if value is None:
        return ""
    text = f"{value:{form}}{unit}"
    return text if value <= most else f"[red]{text}[/]"


# Contestants: imports and the form of the data outside the clock, fit inside -----------------


def our_svc(*, cache: float | None = None, **options: Any) -> Fit:
    from maxmargin import SVC

    budget = {} if cache is None else {"cache_size": cache}

    def fit(X: Any, y: Any) -> Any:
        return SVC(tol=TOL, **budget, **options).fit(X, y)

    def warm_up(X: Any, y: Any) -> None:
        # Small tasks, large ones and pairs of many classes run different code.
        fit(X[: race.WARM_UP], y[: race.WARM_UP])
        if len(y) > race.WARM_UP:
            fit(X, y == y[0])
            fit(X, y)

    fit.warm_up = warm_up
    return fit


def sklearn_svc(**options: Any) -> Fit:
    from sklearn.svm import SVC

    return lambda X, y: SVC(tol=TOL, cache_size=CACHE, **options).fit(X, y)


def intelex_svc(**options: Any) -> Fit:
    from sklearnex.svm import SVC

    return lambda X, y: on_onedal(SVC(tol=TOL, cache_size=CACHE, **options).fit(X, y))


def on_onedal(model: Any) -> Any:
    """Return a model of scikit-learn-intelex that did not silently run scikit-learn's solver."""
    assert hasattr(model, "_onedal_estimator"), "scikit-learn-intelex did not use oneDAL"
    return model


def libsvm_svc(*, C: float, gamma: float) -> Fit:
    """LIBSVM itself, on all cores unless OMP_NUM_THREADS says otherwise."""
    # Its threads wait for each other by spinning. Where one core is busy with something else that
    # makes it twenty times slower: let them spin for a moment only, then sleep.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    from libsvm.svmutil import svm_parameter, svm_problem, svm_train

    def fit(X: Any, y: Any) -> Any:
        options = svm_parameter(f"-q -c {C!r} -g {gamma!r} -e {TOL!r} -m {CACHE}")
        return svm_train(svm_problem(y.astype(np.float64), X), options)

    return fit


def predictor(*, contestant: str, form: str, folder: str, **options: Any) -> Fit:
    """Train before the clock starts; the clock is for what the model says about other rows."""
    X, y = race.load(Path(folder))
    model = globals()[contestant](**options)(globals()[form](X), y)
    return lambda X, y: (model, model.predict(X))


def as_saved64(X: Any) -> Any:
    return X


def as_saved32(X: Any) -> Any:
    return X.astype(np.float32)


def dense64(X: Any) -> Any:
    return X if isinstance(X, np.ndarray) else X.toarray()


def dense32(X: Any) -> Any:
    return dense64(X.astype(np.float32))


def csr64(X: Any) -> Any:
    from scipy import sparse

    return sparse.csr_matrix(X)


def csr_if_thin64(X: Any) -> Any:
    if isinstance(X, np.ndarray) or X.nnz < THIN * X.shape[0] * X.shape[1]:
        return X
    return X.toarray()


@dataclass(frozen=True)
class Contestant:
    """Who races: by which function, on which form of the data, and which module it needs."""

    function: str
    form: str
    module: str


CONTESTANTS = {
    "maxmargin-float32": Contestant("our_svc", "as_saved32", "maxmargin"),
    "maxmargin-float64": Contestant("our_svc", "as_saved64", "maxmargin"),
    "scikit-learn": Contestant("sklearn_svc", "csr_if_thin64", "sklearn"),
    "intelex-float32": Contestant("intelex_svc", "dense32", "sklearnex"),
    "intelex-float64": Contestant("intelex_svc", "dense64", "sklearnex"),
    "libsvm": Contestant("libsvm_svc", "csr64", "libsvm"),
}
OURS = ("maxmargin-float32", "maxmargin-float64")


def installed(module: str) -> bool:
    """Say whether a contestant can take part; maxmargin needs more than to be installed."""
    if module == "maxmargin":
        import maxmargin

        return hasattr(maxmargin, "SVC")
    return find_spec(module) is not None


# The judge: α, b and the data in float64, whoever found them ---------------------------------


@dataclass(frozen=True)
class Expansion:
    """What a model says, as LIBSVM lays it out: for two classes i < j of ``classes``, the first
    being the positive one, row j − 1 of ``coefficients`` holds αy of class i and row i of class j.
    """

    classes: Any
    support: Any
    coefficients: Any
    biases: Any
    C: float
    gamma: float

    @classmethod
    def of(cls, model: Any) -> Expansion:
        """Read a fitted SVC with scikit-learn's attributes, or LIBSVM's own model."""
        if hasattr(model, "sv_coef"):
            return cls._of_libsvm(model)
        # Two classes: scikit-learn publishes the sign that makes the second one positive.
        sign = -1.0 if len(model.classes_) == 2 else 1.0
        coefficients = getattr(model.dual_coef_, "toarray", lambda: model.dual_coef_)()
        return cls(
            model.classes_, model.support_, sign * np.asarray(coefficients, dtype=np.float64),
            sign * np.asarray(model.intercept_, dtype=np.float64), model.C, model.gamma,
        )  # fmt: skip

    @classmethod
    def _of_libsvm(cls, model: Any) -> Expansion:
        c, n = model.nr_class, model.l
        rows = [np.ctypeslib.as_array(model.sv_coef[k], (n,)) for k in range(c - 1)]
        rho = np.ctypeslib.as_array(model.rho, (c * (c - 1) // 2,))
        return cls(
            np.array(model.get_labels()), np.array(model.get_sv_indices()) - 1, np.array(rows),
            -rho, model.param.C, model.param.gamma,
        )  # fmt: skip

    def pairs(self, y: Any) -> Iterator[tuple[Any, Any, Any, float]]:
        """Yield rows, labels ±1, α and b for every two classes."""
        of_support = y[self.support]
        for b, (i, j) in zip(self.biases, combinations(range(len(self.classes)), 2), strict=True):
            first, second = self.classes[i], self.classes[j]
            # By the labels: oneDAL does not sort the support vectors of two classes by class.
            alpha = np.zeros(len(y))
            mine, theirs = of_support == first, of_support == second
            alpha[self.support[mine]] = self.coefficients[j - 1, mine]
            alpha[self.support[theirs]] = -self.coefficients[i, theirs]
            rows = np.flatnonzero((y == first) | (y == second))
            yield rows, np.where(y[rows] == first, 1.0, -1.0), alpha[rows], float(b)


def judge_machine(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """The worst gap and KKT violation over all pairs of classes, the sum of the primals."""
    from maxmargin import Status, certify
    from maxmargin.kernels import RBF
    from maxmargin.problems import DualProblem
    from maxmargin.solution import Solution

    expansion = Expansion.of(model)
    kernel, X = RBF(float(expansion.gamma)), dense64(X)
    proofs = []
    for rows, labels, alpha, b in expansion.pairs(y):
        upper = np.full(len(rows), float(expansion.C))
        problem = DualProblem.classification(
            kernel, X, labels, upper, np.zeros(len(rows)), index=rows
        )
        solution = Solution(np.empty((0, 0)), np.array([b]), Status.CONVERGED, alpha=alpha)
        proofs.append(certify(problem, solution))
    return {
        "primal": sum(proof.primal for proof in proofs),
        "dual": sum(proof.dual for proof in proofs),
        "relative_gap": max(proof.relative_gap for proof in proofs),
        "violation": max(proof.violation for proof in proofs),
        "infeasibility": max(max(proof.balance, proof.box) for proof in proofs),
        "support": len(expansion.support),
        "pairs": len(proofs),
        "claim": _claim(model),
        "cache": getattr(model, "cache_size", None),
    }


def judge_briefly(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """What our answer says of itself, and the number of support vectors: no further computing."""
    return {"support": len(model.support_), **(_claim(model) or {})}


def _claim(model: Any) -> dict[str, float] | None:
    """What our own certificate says of itself."""
    certificate = getattr(model, "certificate_", None)
    if certificate is None:
        return None
    return {"relative_gap": certificate.relative_gap, "violation": certificate.violation}


def judge_predictions(told: tuple[Any, Any], X: Any, y: Any) -> dict[str, Any]:
    """The share of wrong labels, and the labels."""
    model, labels = told
    return {
        "error": float(np.mean(labels != y)),
        "support": len(model.support_),
        "labels": np.asarray(labels).tolist(),
    }


# Data ----------------------------------------------------------------------------------------


def one_hot(folder: Any = None, n: int = 20_000) -> tuple[Any, Any]:
    """Answers to 14 questions as 0/1 columns (CSR, as a9a), a noisy quarter of them positive."""
    from scipy import sparse

    rng = np.random.default_rng(SEED)
    levels = np.array([2, 2, 5, 5, 6, 7, 7, 8, 9, 14, 14, 15, 16, 16])
    first = np.concatenate([[0], np.cumsum(levels)])
    columns = np.empty((n, len(levels)), dtype=np.int32)
    for k, count in enumerate(levels):  # some answers are given often, most seldom
        share = 1.0 / (np.arange(count) + 1.0)
        columns[:, k] = first[k] + rng.choice(count, size=n, p=share / share.sum())
    bounds = np.arange(0, columns.size + 1, len(levels), dtype=np.int32)
    X = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), bounds), (n, first[-1]))
    score = X @ rng.standard_normal(first[-1]) + (X @ rng.standard_normal((first[-1], 2))).prod(1)
    score += 1.5 * rng.standard_normal(n)
    return X, np.where(score > np.quantile(score, 0.75), 1, -1)


def twelve_classes(folder: Any = None, n: int = 12_000, d: int = 20) -> tuple[Any, Any]:
    """Three clouds a class, which overlap."""
    rng = np.random.default_rng(SEED)
    clouds = rng.integers(36, size=n)
    X = 0.8 * rng.standard_normal((36, d))[clouds] + rng.standard_normal((n, d))
    return X, clouds % 12


def quadric(folder: Any = None, n: int = 20_000, d: int = 50) -> tuple[Any, Any]:
    """Two classes with a quadric between them, one label in fifty flipped."""
    X, y = curved(n, d)
    return X.astype(np.float64), y


def table(folder: Any = None) -> tuple[Any, Any]:
    """A table of ten measurements with classes that overlap: one label in ten is flipped."""
    rng = np.random.default_rng(SEED)
    X, y = curved(19_000, 10)
    X = X.astype(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(rng.random(y.size) < 0.1, -y, y)


def svmlight(folder: Path, name: str) -> tuple[Any, Any]:
    """Read a file of the data folder: CSR with 32-bit indices, which scikit-learn requires."""
    from scipy import sparse
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(folder / f"{name}.bz2"))
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_matrix((X.data, indices, indptr), X.shape), y.astype(np.int64)


def svmlight_dense(folder: Path, name: str) -> tuple[Any, Any]:
    X, y = svmlight(folder, name)
    return X.toarray(), y


def digits(folder: Path, part: str) -> tuple[Any, Any]:
    """MNIST's images ("train" or "t10k") with pixels in [0, 1], and their digits."""
    images = _idx(folder / f"mnist-{part}-images-idx3-ubyte.gz")
    labels = _idx(folder / f"mnist-{part}-labels-idx1-ubyte.gz")
    return images.reshape(len(images), -1) / 255.0, labels.astype(np.int64)


def _idx(path: Path) -> Any:
    import gzip

    with gzip.open(path) as file:
        n_axes = file.read(4)[3]
        shape = np.frombuffer(file.read(4 * n_axes), dtype=">u4").astype(int)
        return np.frombuffer(file.read(), dtype=np.uint8).reshape(shape)


def even_or_odd(folder: Path, n: int = 20_000) -> tuple[Any, Any]:
    X, digit = digits(folder, "train")
    return X[:n], np.where(digit[:n] % 2 == 0, 1, -1)


@lru_cache(maxsize=1)
def forest(folder: Path, n: int = 40_000) -> tuple[Any, Any]:
    """Class 2 of covtype against the rest: random rows, columns in [0, 1] over all of them."""
    X, kind = svmlight(folder, "covtype")
    low, high = (getattr(X, name)(axis=0).toarray().ravel() for name in ("min", "max"))
    rows = np.random.default_rng(SEED).permutation(len(kind))[:n]
    X = (X[rows].toarray() - low) / np.where(high > low, high - low, 1.0)
    return X, np.where(kind[rows] == 2, 1, -1)


@dataclass(frozen=True)
class Problem:
    """A fit: data, C and γ; of the data folder, or generated; ``large``: only where asked for."""

    make: Callable[[Path], tuple[Any, Any]]
    C: float
    gamma: float
    generated: bool = False
    large: bool = False


PROBLEMS = {
    "dense": Problem(quadric, 1.0, 1 / 50, generated=True),
    "table": Problem(table, 10.0, 0.5, generated=True),
    "sparse": Problem(one_hot, 1.0, 1 / 126, generated=True),
    "classes": Problem(twelve_classes, 10.0, 1 / 30, generated=True),
    "a9a": Problem(lambda folder: svmlight(folder, "a9a"), 1.0, 1 / 123),
    "a9a-500": Problem(lambda folder: svmlight(folder, "a9a"), 500.0, 1 / 123),
    "w8a": Problem(lambda folder: svmlight(folder, "w8a"), 10.0, 1 / 300),
    "ijcnn1": Problem(lambda folder: svmlight_dense(folder, "ijcnn1"), 32.0, 2.0),
    "mnist": Problem(even_or_odd, 10.0, 1 / 50),
    "covtype": Problem(forest, 10.0, 1.0),
    "letter": Problem(lambda folder: svmlight_dense(folder, "letter.scale"), 1.0, 1 / 16),
    "usps": Problem(lambda folder: svmlight_dense(folder, "usps"), 10.0, 1 / 50),
    "mnist-60000": Problem(lambda folder: even_or_odd(folder, 60_000), 10.0, 1 / 50, large=True),
    "mnist-ten": Problem(lambda folder: digits(folder, "train"), 10.0, 1 / 50, large=True),
}
# Raced over cores: where there is no data folder, the generated ones.
OVER_CORES = (
    "a9a", "a9a-500", "w8a", "ijcnn1", "mnist-60000", "covtype", "letter", "usps", "mnist-ten",
)  # fmt: skip


# Cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """The folder, the contestants and the scale of a run."""

    scratch: Path
    data: Path | None
    quick: bool
    contestants: Sequence[str]
    repeats: int | None
    our_cache: float | None

    def mixed(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the rows in random order (w8a begins with one class), a few for a quick look."""
        rows = np.random.default_rng(SEED).permutation(len(y))
        rows = rows[: len(rows) // 20] if self.quick else rows
        return X[rows], y[rows]

    def options(self, name: str, C: float, gamma: float) -> dict[str, Any]:
        """Return the options of a contestant."""
        ours = name in OURS and self.our_cache is not None
        return {"C": C, "gamma": gamma, **({"cache": self.our_cache} if ours else {})}

    def fit(self, name: str, folder: Path, C: float, gamma: float) -> Outcome | None:
        """Let one contestant fit the data of a folder; None where it fails."""
        contestant = CONTESTANTS[name]
        options = self.options(name, C, gamma)
        return self.run(contestant.function, folder, "judge_machine", contestant.form, options)

    def run(
        self, function: str, folder: Path, judge: str, form: str, options: dict[str, Any]
    ) -> Outcome | None:
        """Race one function of this module; None where it fails."""
        repeats, long = (3, LONG) if self.repeats is None else (self.repeats, inf)
        try:
            (outcome,) = race.run(
                "kernel_machine", function, folder, judge=judge, form=form, laps=[options],
                repeats=repeats, long=long,
            )  # fmt: skip
        except subprocess.CalledProcessError:  # its reason stands above, on stderr
            return None
        return outcome


def fits(course: Course, case: str) -> Iterator[Table]:
    """All contestants fit one problem."""
    problem = PROBLEMS[case]
    X, y = course.mixed(*problem.make(course.data or Path()))
    folder = course.scratch / case
    race.save(folder, X, y)
    table = Table(case, _title(case, X, y, problem), "fit")
    for name in course.contestants:
        outcome = course.fit(name, folder, problem.C, problem.gamma)
        table.rows.append(_fit_row(name, outcome))
    yield with_ratios(table)


def _title(case: str, X: Any, y: Any, problem: Problem) -> str:
    n, d = X.shape
    filled = "" if isinstance(X, np.ndarray) else f", {X.nnz / n / d:.1%} non-zeros"
    return (
        f"{case}: {n:,} × {d}{filled}, {len(np.unique(y))} classes, "
        f"C={problem.C:g}, γ={problem.gamma:.4g}"
    )


def _fit_row(name: str, outcome: Outcome | None) -> Row:
    if outcome is None:
        return Row(name, note="[red]failed[/]")
    facts = outcome.facts
    return Row(
        name, outcome.best, None, facts["relative_gap"], facts["violation"], facts["support"],
        outcome.extra_memory / 2**20, _fit_note(facts), outcome.seconds,
        {**facts, "memory_over_data": outcome.memory},
    )  # fmt: skip


def _fit_note(facts: dict[str, Any]) -> str:
    notes = [f"primal {facts['primal']:.8g}"]
    if facts["pairs"] > 1:
        together = (facts["primal"] - facts["dual"]) / facts["primal"]
        notes.append(f"gap of all {facts['pairs']} pairs together {together:.1e}")
    if facts["infeasibility"] > TOL:
        notes.append(f"α off its constraints by {facts['infeasibility']:.1e}")
    if claim := facts["claim"]:
        notes.append(f"says {claim['relative_gap']:.1e}, {claim['violation']:.1e} itself")
        notes.append(f"cache_size={facts['cache']}")
    return "; ".join(notes)


def with_ratios(table: Table) -> Table:
    """Fill in how long each contestant took as a multiple of ours."""
    if (ours := table.ours) is not None:
        for row in table.rows:
            row.ratio = row.seconds / ours.seconds if row.seconds and row is not ours else None
    return table


def predictions(course: Course, case: str) -> Iterator[Table]:
    """Many classes: models trained on the same rows say what 10,000 others are."""
    if course.data is None:
        X, y = twelve_classes(n=22_000)
        (X, y), (Z, z) = (X[:12_000], y[:12_000]), (X[12_000:], y[12_000:])
        where, C, gamma = "generated", 10.0, 1 / 30
    else:
        X, y = digits(course.data, "train")
        (X, y), (Z, z) = (X[:20_000], y[:20_000]), digits(course.data, "t10k")
        where, C, gamma = "MNIST", 10.0, 1 / 50
    X, y = course.mixed(X, y)
    Z, z = course.mixed(Z, z)
    race.save(course.scratch / "train", X, y)
    race.save(course.scratch / "test", Z, z)
    title = f"{case}: {where}, {len(np.unique(y))} classes, {len(y):,} rows learnt, {len(z):,} new"
    table = Table(case, title, "predict")
    for name in course.contestants:
        if name != "libsvm":  # its Python interface predicts row by row, in Python
            options = course.options(name, C, gamma)
            table.rows.append(_predict_row(course, name, options))
    _agreement(table)
    yield with_ratios(table)


def _predict_row(course: Course, name: str, options: dict[str, Any]) -> Row:
    who = CONTESTANTS[name]
    told = {
        "contestant": who.function, "form": who.form, "folder": str(course.scratch / "train"),
        **options,
    }  # fmt: skip
    outcome = course.run("predictor", course.scratch / "test", "judge_predictions", who.form, told)
    if outcome is None:
        return Row(name, note="[red]failed[/]")
    facts = outcome.facts
    return Row(
        name, outcome.best, support=facts["support"], memory=outcome.extra_memory / 2**20,
        note=f"test error {facts['error']:.4f}", all_seconds=outcome.seconds, facts=facts,
    )  # fmt: skip


def _agreement(table: Table) -> None:
    """Note how many labels differ from scikit-learn's, and delete the labels."""
    peer = table.row("scikit-learn")
    reference = peer and peer.facts["labels"]
    for row in table.rows:
        labels = row.facts.pop("labels", None)
        if labels and reference and row is not peer:
            differ = sum(a != b for a, b in zip(labels, reference, strict=True))
            row.note += f", {differ} labels differ from scikit-learn's"


def growth(course: Course, case: str) -> Iterator[Table]:
    """Our fit on 1, 2 and 4 parts of one distribution: t ~ n^p, p by least squares."""
    where = "dense" if course.data is None else "covtype"
    problem = PROBLEMS[where]
    make = problem.make if course.data is not None else lambda folder: quadric(n=40_000)
    X, y = course.mixed(*make(course.data or Path()))
    ours = next((name for name in OURS if name in course.contestants), None)
    if ours is None:
        return
    sizes = [len(y) // 4, len(y) // 2, len(y)]
    table = Table(case, f"{case}: {where}, C={problem.C:g}, γ={problem.gamma:.4g}, {ours}", "fit")
    for n in sizes:
        folder = course.scratch / str(n)
        race.save(folder, X[:n], y[:n])
        row = _fit_row(ours, course.fit(ours, folder, problem.C, problem.gamma))
        row.contestant = f"{n:,} rows"
        table.rows.append(row)
    seconds = [row.seconds for row in table.rows]
    if all(seconds):
        exponent = float(np.polyfit(np.log(sizes), np.log(np.array(seconds, dtype=float)), 1)[0])
        table.rows[-1].facts["exponent"] = exponent
        table.rows[-1].note += f"; seconds ~ rows^{exponent:.2f}"
    yield table


def start_up(course: Course, case: str) -> Iterator[Table]:
    """Six points in a fresh process, imports included, compiled code in the cache."""
    programs = {
        "maxmargin": "import maxmargin as mm\n"
        "X, y = mm.datasets.load_six_points(return_X_y=True)\n"
        "mm.SVC(kernel='rbf').fit(X, y)",
        "scikit-learn": "from sklearn.svm import SVC\n"
        "SVC().fit([[0, 0], [1, 0], [0, 1], [2, 2], [3, 2], [2, 3]], [0, 0, 0, 1, 1, 1])",
    }
    if not any(name in OURS for name in course.contestants):
        del programs["maxmargin"]
    table = Table(case, f"{case}: imports and a fit of six points, fresh process", "seconds")
    repeats = 3 if course.quick else 7
    with tempfile.TemporaryDirectory() as cache:
        for name, program in programs.items():
            empty = race.clocked(program, NUMBA_CACHE_DIR=cache)  # compiles into the cache
            warm = min(race.clocked(program, NUMBA_CACHE_DIR=cache) for _ in range(repeats))
            table.rows.append(Row(name, warm, note=f"the first time {empty:.2f} s"))
    yield table


Run = Callable[[Course, str], Iterator[Table]]
CASES: dict[str, Run] = {
    **dict.fromkeys(PROBLEMS, fits),
    "predict": predictions,
    "growth": growth,
    "startup": start_up,
}


# Targets -------------------------------------------------------------------------------------


def summary(tables: Sequence[Table], quick: bool) -> Summary:
    """Hold what came out to what was asked; a quick look says nothing about speed."""
    races = [table for table in tables if table.case in PROBLEMS]
    judge_speed = not quick
    targets = [
        speed_up(races, "intelex-float32", 2, 4, judge_speed),
        speed_up(races, "scikit-learn", 10, 30, judge_speed),
        never_slower(races, judge_speed),
        *(speed_up(races, name) for name in ("intelex-float64", "libsvm")),
        *exact(races),
        predicting(tables, judge_speed),
        growing(tables, judge_speed),
        starting(tables),
    ]
    few = " (quick: too few rows to judge speed)" if quick else ""
    return Summary(f"Targets{few}", targets)


def speed_up(
    races: Iterable[Table], peer: str, least: float = 0, aim: float = 0, judge: bool = False
) -> Target:
    """The geometric mean over all fits of a peer's seconds over ours."""
    ratios = [row.ratio for table in races if (row := table.row(peer)) and row.ratio]
    what = f"fit, geometric mean against {peer}"
    goal = f"≥ {least:g}×, aim {aim:g}×" if least else "none: for information"
    if not ratios:
        return Target(what, "nothing to compare", goal=goal)
    mean = float(np.exp(np.mean(np.log(ratios))))
    value = f"{mean:.2f}× over {len(ratios)} cases ({min(ratios):.2f} to {max(ratios):.2f})"
    if least and judge:
        value += f"; aim {'reached' if mean >= aim else 'not reached'}"
    return Target(what, value, mean >= least if least and judge else None, goal)


def never_slower(races: Iterable[Table], judge: bool) -> Target:
    """Our fit against the faster of two peers, case by case."""
    ratios = {}
    for table in races:
        peers = [table.row(name) for name in ("scikit-learn", "intelex-float32")]
        found = [row.ratio for row in peers if row is not None and row.ratio]
        if found:
            ratios[table.case] = min(found)
    what, goal = "fit, against the faster of scikit-learn and intelex-float32", "≥ 1× on every case"
    if not ratios:
        return Target(what, "nothing to compare", goal=goal)
    slower = [f"{case} {ratio:.2f}×" for case, ratio in ratios.items() if ratio < 1.0]
    worst = min(ratios, key=lambda case: ratios[case])
    value = "slower on " + ", ".join(slower) if slower else f"worst {worst} {ratios[worst]:.2f}×"
    return Target(what, value, not slower if judge else None, goal)


def exact(races: Iterable[Table]) -> Iterator[Target]:
    """Every answer of ours is optimal to the tolerance, whatever the type of the input."""
    rows = [(t.case, row) for t in races for row in t.rows if row.contestant in OURS]
    for what, name, most in (
        ("worst KKT violation of our answers", "violation", LARGEST_VIOLATION),
        ("worst relative gap of our answers", "relative_gap", LARGEST_GAP),
    ):
        goal = f"≤ {most:g}"
        if not rows:
            yield Target(what, "no answers", goal=goal)
            continue
        values = {(case, row.contestant): getattr(row, name) for case, row in rows}
        values = {who: inf if value is None else value for who, value in values.items()}
        worst = max(values, key=lambda who: values[who])
        text = f"{values[worst]:.2e}" if isfinite(values[worst]) else "no answer"
        over = sorted({case for (case, _), value in values.items() if not value <= most})
        where = f"above it: {', '.join(over)}; worst" if over else "worst"
        yield Target(what, f"{text} ({where} {worst[0]}, {worst[1]})", not over, goal)


def predicting(tables: Iterable[Table], judge: bool) -> Target:
    """The time of scikit-learn's predict over ours."""
    what, goal = "predict, against scikit-learn", "≥ 10×"
    rows = [table.row("scikit-learn") for table in tables if table.case == "predict"]
    ratios = [row.ratio for row in rows if row is not None and row.ratio]
    if not ratios:
        return Target(what, "nothing to compare", goal=goal)
    return Target(what, f"{ratios[0]:.1f}×", ratios[0] >= 10 if judge else None, goal)


def growing(tables: Iterable[Table], judge: bool) -> Target:
    """The exponent of our time in the number of rows."""
    what, goal = "growth of the fit with the rows, exponent", "≤ 2.1"
    rows = [row for table in tables if table.case == "growth" for row in table.rows]
    exponents = [row.facts["exponent"] for row in rows if "exponent" in row.facts]
    if not exponents:
        return Target(what, "not measured", goal=goal)
    return Target(what, f"{exponents[0]:.2f}", exponents[0] <= 2.1 if judge else None, goal)


def starting(tables: Iterable[Table]) -> Target:
    """Our six points in a fresh process."""
    what, goal = "six points, imports included, warm cache", "≤ 1.5 s"
    rows = [table.row("maxmargin") for table in tables if table.case == "startup"]
    seconds = [row.seconds for row in rows if row is not None and row.seconds]
    if not seconds:
        return Target(what, "not measured", goal=goal)
    return Target(what, f"{seconds[0]:.2f} s", seconds[0] <= 1.5, goal)


# Over cores ----------------------------------------------------------------------------------


def race_over_cores(arguments: argparse.Namespace, contestants: Sequence[str]) -> None:
    """Race ours and oneDAL on float32 input over numbers of cores."""
    chosen = [name for name in ("maxmargin-float32", "intelex-float32") if name in contestants]
    plan = scaling.plan(arguments, arguments.only, chosen)
    done: list[scaling.Table] = []

    def prepare(case: str, scratch: Path) -> tuple[str, scaling.Run]:
        course = Course(
            scratch, arguments.data, arguments.quick, chosen, arguments.repeats,
            arguments.our_cache,
        )  # fmt: skip
        problem, folder = PROBLEMS[case], scratch / case
        X, y = course.mixed(*problem.make(course.data or Path()))
        race.save(folder, X, y)

        def run(name: str, cores: int, limit: float, judged: bool) -> list[Outcome]:
            who = CONTESTANTS[name]
            return race.run(
                "kernel_machine", who.function, folder, form=who.form,
                judge="judge_machine" if judged else "judge_briefly",
                laps=[course.options(name, problem.C, problem.gamma)],
                repeats=arguments.repeats or scaling.REPEATS, long=scaling.LONG, limits=[limit],
                warm_up=scaling.WARM_UP, cores=cores,
            )  # fmt: skip

        return _title(case, X, y, problem), run

    def tables() -> Iterator[scaling.Table | Summary]:
        for table in scaling.over_cores(plan, prepare):
            done.append(table)
            yield table
        few = " (quick: too few rows to judge speed)" if arguments.quick else ""
        yield Summary(f"Targets{few}", targets_over_cores(done, chosen[0], arguments.quick))

    race.report(tables(), arguments.out, scaling.show, PACKAGES)
    if arguments.plot is not None:
        scaling.draw(done, chosen[0], arguments.plot)


def targets_over_cores(tables: Sequence[scaling.Table], ours: str, quick: bool) -> list[Target]:
    """Hold speed-ups and ratios to what was asked; a quick look says nothing about speed."""
    peer = "intelex-float32"
    speed = [
        scaling.against(tables, OVER_CORES, 16, peer, 1.5, 3),
        scaling.against(tables, OVER_CORES, 2, peer, 2.5, 4),
        scaling.speed_up(tables, OVER_CORES, ours, 16, 5, 8, longest=6),
    ]
    return [
        *(() if quick else speed),
        scaling.exact(tables, ours, "violation", LARGEST_VIOLATION),
        scaling.exact(tables, ours, "relative_gap", LARGEST_GAP),
    ]


# The picture ---------------------------------------------------------------------------------

# One colour per library (Okabe and Ito, for colour-blind readers), hollow for float64 input where
# there is float32 as well.
LOOKS = {
    "maxmargin-float32": ("#D55E00", "o", True),
    "maxmargin-float64": ("#D55E00", "o", False),
    "intelex-float32": ("#0072B2", "s", True),
    "intelex-float64": ("#0072B2", "s", False),
    "scikit-learn": ("#009E73", "D", True),
    "libsvm": ("#777777", "^", True),
}


def draw(tables: Sequence[Table], path: Path) -> None:
    """Draw the seconds of every fit on a logarithmic axis: a line a case, a mark a contestant."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    races = [table for table in tables if table.case in PROBLEMS]
    figure, axes = plt.subplots(figsize=(9, 1.6 + 0.55 * len(races)), layout="constrained")
    for k, (name, (colour, marker, filled)) in enumerate(LOOKS.items()):
        shift = 0.11 * (k - (len(LOOKS) - 1) / 2)  # equal times lie beside each other
        rows = [(height + shift, row) for height, t in enumerate(races) if (row := t.row(name))]
        if not rows:
            continue
        axes.scatter(
            [row.seconds for _, row in rows], [height for height, _ in rows], s=42, marker=marker,
            edgecolors=colour, facecolors=colour if filled else "white", linewidths=1.5,
            label=name, zorder=2,
        )  # fmt: skip
        for height, row in rows:
            if (row.relative_gap or 0.0) > LARGEST_GAP:
                axes.annotate(
                    f"gap {row.relative_gap:.1%}", (row.seconds, height), (6, 0), fontsize=6.5,
                    textcoords="offset points", va="center", color=colour,
                )  # fmt: skip
    _frame(figure, axes, races)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def _frame(figure: Any, axes: Any, races: Sequence[Table]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("seconds to fit (further left is better)")
    axes.set_yticks(range(len(races)), [_label(table) for table in races])
    axes.set_ylim(len(races) - 0.5, -0.5)  # the first case on top
    for height in range(0, len(races), 2):
        axes.axhspan(height - 0.5, height + 0.5, color="#F5F5F5", zorder=0)
    axes.grid(axis="x", color="#DDDDDD", zorder=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    title = f"RBF support vector machine, tolerance {TOL:g}; gaps above {LARGEST_GAP:.1%} are named"
    axes.set_title(title, loc="left", fontsize=10)
    figure.legend(loc="outside lower center", ncols=len(LOOKS) // 2, frameon=False, fontsize=9)


def _label(table: Table) -> str:
    """The case and its size, as the title begins."""
    return table.title.split(", ")[0]


# The command line ----------------------------------------------------------------------------


def main() -> None:
    """Read the command line, run the cases, print and keep the tables."""
    arguments = command_line()
    present = [name for name, who in CONTESTANTS.items() if installed(who.module)]
    for name in CONTESTANTS:
        if name not in present:
            print(f"{name} is missing: it takes no part.")
    contestants = [name for name in present if name not in arguments.without]
    if arguments.cores:
        return race_over_cores(arguments, contestants)
    done: list[Table] = []

    def tables() -> Iterator[Table | Summary]:
        for case in arguments.only:
            with tempfile.TemporaryDirectory() as scratch:
                course = Course(
                    Path(scratch), arguments.data, arguments.quick, contestants,
                    arguments.repeats, arguments.our_cache,
                )  # fmt: skip
                for table in CASES[case](course, case):
                    done.append(table)
                    yield table
        yield summary(done, arguments.quick)

    race.report(tables(), arguments.out, show, PACKAGES)
    if arguments.plot is not None:
        draw(done, arguments.plot)
    return None


def command_line() -> argparse.Namespace:
    """Read the options; cases that need the data folder are left out where there is none."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR", help="folder with a9a.bz2 and the others")
    add("--quick", action="store_true", help="small data: see that all of it runs")
    add("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    add("--plot", type=Path, metavar="FILE", help="draw the fits (needs matplotlib)")
    add("--only", nargs="+", choices=CASES, metavar="CASE", help=", ".join(CASES))
    add("--without", nargs="+", choices=CONTESTANTS, metavar="CONTESTANT", default=[],
        help=", ".join(CONTESTANTS))  # fmt: skip
    add("--repeats", type=int, metavar="N",
        help=f"fits of which the shortest counts (3, but 1 beyond {LONG:g} s)")  # fmt: skip
    add("--our-cache", type=float, metavar="MB", help="cache_size of ours (its default)")
    scaling.add_options(parser)
    arguments = parser.parse_args()
    folderless = [
        case
        for case in CASES
        if arguments.data is not None or case not in PROBLEMS or PROBLEMS[case].generated
    ]
    if lacking := [case for case in arguments.only or () if case not in folderless]:
        parser.error(f"{', '.join(lacking)}: pass --data DIR.")
    arguments.only = arguments.only or default_cases(folderless, bool(arguments.cores))
    return arguments


def default_cases(possible: Sequence[str], over_cores: bool) -> list[str]:
    """Return the cases that run where none are named."""
    if not over_cores:
        return [case for case in possible if case not in PROBLEMS or not PROBLEMS[case].large]
    named = [case for case in OVER_CORES if case in possible]
    return named or [case for case in possible if case in PROBLEMS]


if __name__ == "__main__":
    main()
