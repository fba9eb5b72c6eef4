"""Race the separating algorithms against their peers.

    python benchmarks/separating.py [--data DIR] [--quick] [--out FILE] [--only CASE ...]

Without arguments everything runs on generated data. ``--data`` adds the word counts of 20news
(``20news.bz2`` in DIR); ``--quick`` shrinks the data to see that all of it runs; ``--out`` writes
the figures as JSON, for instance to ``benchmarks/results/separating.json``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import race
from race import Fit, Outcome, Row, Table, limit, verdict, with_ratios

# Passes of the longer of two fits: their difference is the time of a pass, and nothing else.
PASSES = 6
# What "in seconds" is taken to mean where a target says no more.
SECONDS = 10
SEED = 0


@dataclass(frozen=True)
class Course:
    """Where a run takes place: the scratch folder, and how much smaller than asked it is."""

    scratch: Path
    data: Path | None
    quick: bool

    def rows(self, n: int) -> int:
        """Rows of a case: all, or a twentieth for a quick look."""
        return n // 20 if self.quick else n

    @property
    def repeats(self) -> int:
        """Repetitions of a fit, of which the shortest counts."""
        return 3 if self.quick else 5

    def run(
        self,
        contestant: str,
        folder: str,
        judge: str,
        *,
        laps: Sequence[dict[str, Any]] = ({},),
        repeats: int | None = None,
    ) -> list[Outcome]:
        """Race one contestant of this module on the data in a folder of the scratch."""
        return race.run(
            "separating", contestant, self.scratch / folder, judge=judge, laps=laps,
            repeats=repeats or self.repeats,
        )  # fmt: skip

    def judged(self, told: str) -> str:
        """Return a verdict; targets are about data of full size."""
        return "" if self.quick else told

    def save(self, folder: str, X: Any, y: Any) -> None:
        """Write the data of a case."""
        race.save(self.scratch / folder, X, y)


# Data ----------------------------------------------------------------------------------------


def two_clouds(n: int, d: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    """Two noisy classes: a random plane, one label in ten flipped."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, d), dtype=np.float32).astype(dtype, copy=False)
    X[:, 1:] += 0.5 * X[:, :-1]
    score = X @ (rng.standard_normal(d) / np.sqrt(d)).astype(dtype) + 0.3
    flipped = rng.random(n) < 0.1
    return X, np.where((score > 0) ^ flipped, 1, -1)


def apart(n: int, d: int) -> tuple[Any, Any]:
    """Two classes with an empty strip between them."""
    rng = np.random.default_rng(SEED)
    w = rng.standard_normal(d) / np.sqrt(d)
    X = rng.standard_normal((n, d))
    score = X @ w
    X += np.outer(0.1 * np.sign(score), w) / (w @ w)
    return X, np.where(score > 0, 1, -1)


def curved(n: int, d: int) -> tuple[Any, Any]:
    """Two classes with a quadric between them, one label in fifty flipped."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, d), dtype=np.float32)
    score = (X[:, :10] ** 2).sum(axis=1) + X[:, 10:20].sum(axis=1)
    flipped = rng.random(n) < 0.02
    return X, np.where((score > np.median(score)) ^ flipped, 1, -1)


def text_like(n: int, d: int, words: int = 100) -> tuple[Any, Any]:
    """Rows of some 80 different words of a Zipf-like vocabulary, unit length, two noisy classes."""
    from scipy import sparse

    rng = np.random.default_rng(SEED)
    share = 1.0 / (np.arange(d) + 10.0)
    drawn = np.searchsorted(np.cumsum(share / share.sum()), rng.random(n * words)).clip(max=d - 1)
    columns = rng.permutation(d)[drawn].astype(np.int32)  # frequent words are not neighbours
    bounds = np.arange(0, n * words + 1, words, dtype=np.int32)
    X = sparse.csr_matrix((np.ones(n * words, dtype=np.float32), columns, bounds), shape=(n, d))
    X.sum_duplicates()
    X = tf_idf(X)
    score = X @ rng.standard_normal(d)
    flipped = rng.random(n) < 0.1
    return X, np.where((score > 0) ^ flipped, 1, -1)


def news(folder: Path, copies: int) -> tuple[Any, Any]:
    """20news, sci.space against the rest, repeated so that a pass takes long enough.

    One label in ten is flipped, anew in each copy: without noise these rows are separable, and
    the perceptron would be done before its passes are.
    """
    from scipy import sparse
    from sklearn.datasets import load_svmlight_file

    X, label = load_svmlight_file(str(folder / "20news.bz2"), dtype=np.float32)
    X = sparse.vstack([tf_idf(sparse.csr_matrix(X))] * copies, format="csr")
    flipped = np.random.default_rng(SEED).random(X.shape[0]) < 0.1
    return X, np.where(np.tile(label == 15, copies) ^ flipped, 1, -1)


def tf_idf(counts: Any) -> Any:
    """Return counts as float32 tf-idf rows of unit length, CSR with sorted int32 indices."""
    from sklearn.feature_extraction.text import TfidfTransformer

    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts).astype(np.float32)
    X.sort_indices()
    return X


# Contestants: imports outside the clock, fit inside ------------------------------------------


def our_perceptron(**options: Any) -> Fit:
    from maxmargin import Perceptron

    return lambda X, y: Perceptron(random_state=SEED, **options).fit(X, y)


def sklearn_perceptron(**options: Any) -> Fit:
    from sklearn.linear_model import Perceptron

    return lambda X, y: Perceptron(tol=None, random_state=SEED, **options).fit(X, y)


def sgd_perceptron(**options: Any) -> Fit:
    from sklearn.linear_model import SGDClassifier

    return lambda X, y: SGDClassifier(
        loss="perceptron", penalty=None, learning_rate="constant", eta0=1.0, tol=None,
        random_state=SEED, **options,
    ).fit(X, y)  # fmt: skip


def our_lms(*, rate: float, **options: Any) -> Fit:
    from maxmargin import LMS

    return lambda X, y: LMS(learning_rate=rate, tol=0.0, random_state=SEED, **options).fit(X, y)


def sgd_squared_error(*, rate: float, **options: Any) -> Fit:
    from sklearn.linear_model import SGDClassifier

    return lambda X, y: SGDClassifier(
        loss="squared_error", penalty=None, learning_rate="constant", eta0=rate, tol=None,
        random_state=SEED, **options,
    ).fit(X, y)  # fmt: skip


def our_pseudoinverse() -> Fit:
    from maxmargin import Pseudoinverse

    return lambda X, y: Pseudoinverse().fit(X, y)


def numpy_pinv() -> Fit:
    def fit(X: Any, y: Any) -> Any:
        augmented = np.column_stack([X, np.ones(len(X), dtype=X.dtype)])
        return Plane(np.linalg.pinv(augmented) @ y.astype(X.dtype))

    return fit


class Plane:
    """A plane a = (w, b) with the attributes of a linear classifier."""

    def __init__(self, a: Any) -> None:
        self.coef_ = a[np.newaxis, :-1].astype(np.float64)
        self.intercept_ = a[-1:].astype(np.float64)


def our_kernel_perceptron(**options: Any) -> Fit:
    from maxmargin import KernelPerceptron

    return lambda X, y: KernelPerceptron(shuffle=False, **options).fit(X, y)


def gram_kernel_perceptron(*, max_iter: int) -> Fit:
    """The textbook in NumPy: the whole float64 Gram matrix, one row of it added a mistake."""

    def fit(X: Any, y: Any) -> Any:
        X = X.astype(np.float64)
        squares = np.einsum("ij,ij->i", X, X)
        K = X @ X.T
        K *= -2.0
        K += squares
        K += squares[:, np.newaxis]
        K *= -1.0 / (X.shape[1] * X.var())
        np.exp(K, out=K)
        decision, b, mistakes, n_iter = np.zeros(len(y)), 0.0, 0, 0
        while n_iter < max_iter:
            n_iter += 1
            before = mistakes
            for m in range(len(y)):
                if y[m] * (decision[m] + b) <= 0.0:
                    mistakes += 1
                    decision += y[m] * K[m]
                    b += y[m]
            if mistakes == before:
                break
        return mistakes, n_iter, decision + b

    return fit


def our_separability() -> Fit:
    from maxmargin import separability

    return lambda X, y: separability(X, y)


# Judges: facts in float64, by the same code for every contestant -----------------------------


def judge_plane(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Samples on the wrong side of a plane."""
    from maxmargin.arrays import linear_scores

    scores = linear_scores(X, np.asarray(model.coef_, dtype=np.float64))[:, 0] + model.intercept_
    return {"error": float(np.mean(y * scores <= 0)), "n_iter": int(model.n_iter_)}


def judge_least_squares(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """The relative gradient of ‖Za − 1‖² at a plane, recomputed by our certificate."""
    from maxmargin import Status, certify
    from maxmargin.data.normalised_samples import SignedSamples
    from maxmargin.problems import LeastSquaresProblem
    from maxmargin.solution import Solution

    problem = LeastSquaresProblem(SignedSamples(X, y.astype(np.float64)))
    solution = Solution(model.coef_, model.intercept_, Status.CONVERGED)
    a = [*model.coef_[0].tolist(), float(model.intercept_[0])]
    return {"gradient": certify(problem, solution).stationarity, "a": a}


def judge_kernel(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Mistakes while learning, passes, and samples on the wrong side afterwards."""
    if isinstance(model, tuple):
        mistakes, n_iter, decision = model
        wrong = float(np.mean(y * decision <= 0))
        return {"mistakes": mistakes, "n_iter": n_iter, "error": wrong}
    certificate = model.certificate_
    wrong = certificate.n_errors / certificate.n_samples
    return {"mistakes": int(model.n_updates_), "n_iter": int(model.n_iter_), "error": wrong}


def judge_separability(report: Any, X: Any, y: Any) -> dict[str, Any]:
    """The verdict and whether its proof holds."""
    return {
        "separable": None if report.separable is None else bool(report.separable),
        "proved": bool(report.certificate.holds()),
        "verdict": str(report),
    }


# Cases ---------------------------------------------------------------------------------------

PERCEPTRONS = {
    "maxmargin Perceptron": "our_perceptron",
    "sklearn Perceptron": "sklearn_perceptron",
    "sklearn SGDClassifier(perceptron)": "sgd_perceptron",
}
LEAST_MEAN_SQUARES = {
    "maxmargin LMS": "our_lms",
    "sklearn SGDClassifier(squared_error)": "sgd_squared_error",
}


def passes(
    course: Course, name: str, folder: str, contestants: dict[str, str], **options: Any
) -> Iterator[Table]:
    """One pass in order and shuffled: the difference of a long and a short fit, over its passes."""
    for shuffle in (False, True):
        rows = []
        for title, contestant in contestants.items():
            laps = [{"max_iter": n, "shuffle": shuffle, **options} for n in (1, PASSES)]
            one, many = course.run(contestant, folder, "judge_plane", laps=laps)
            longer = many.best - one.best
            more = many.facts["n_iter"] - one.facts["n_iter"]
            rows.append(
                Row(
                    title,
                    a_pass=longer / more if longer > 0 else None,
                    fit=one.best,
                    memory=one.memory,
                    note=f"training error {one.facts['error']:.4f} after 1 pass, "
                    f"{many.facts['error']:.4f} after {many.facts['n_iter']}",
                )
            )
        with_ratios(rows)
        ratios = [row.pass_ratio for row in rows[1:] if row.pass_ratio is not None]
        rows[0].verdict = course.judged(
            verdict(min(ratios), 2) if ratios else "MISSED: a pass is lost in the noise"
        )
        yield Table(f"{name}, {'shuffled' if shuffle else 'in order'}", rows)


def dense(course: Course) -> Iterator[Table]:
    """Cases 1 and 2: a pass over 1,000,000 × 50 float32."""
    n, d = course.rows(1_000_000), 50
    course.save("dense", *two_clouds(n, d))
    where = f"{n:,} × {d} float32"
    yield from passes(course, f"1. Perceptron, {where}", "dense", PERCEPTRONS)
    yield from passes(course, f"2. LMS, {where}", "dense", LEAST_MEAN_SQUARES, rate=1e-4)


def sparse_rows(course: Course) -> Iterator[Table]:
    """Case 3: a pass over text-like CSR rows."""
    n, d = course.rows(200_000), 50_000
    sets = {f"{n:,} × {d:,} generated text": lambda: text_like(n, d)}
    if course.data is not None:
        copies = 1 if course.quick else 10
        sets[f"20news tf-idf × {copies}"] = lambda: news(course.data, copies)
    for where, make in sets.items():
        X, y = make()
        course.save(where, X, y)
        where_ = f"{where}, {X.nnz / X.shape[0]:.0f} non-zeros a row, float32"
        del X
        yield from passes(course, f"3. Perceptron, {where_}", where, PERCEPTRONS)
        yield from passes(course, f"3. LMS, {where_}", where, LEAST_MEAN_SQUARES, rate=0.1)


def pseudoinverse(course: Course) -> Iterator[Table]:
    """Case 4: least squares on 1,000,000 × 100."""
    n, d = course.rows(1_000_000), 100
    for dtype in (np.float64, np.float32):
        folder = f"least squares {dtype.__name__}"
        course.save(folder, *two_clouds(n, d, dtype))
        (ours,) = course.run("our_pseudoinverse", folder, "judge_least_squares")
        (peer,) = course.run("numpy_pinv", folder, "judge_least_squares", repeats=1)
        a, reference = np.array(ours.facts["a"]), np.array(peer.facts["a"])
        apart = np.linalg.norm(a - reference) / np.linalg.norm(reference)
        rows = with_ratios(
            [
                Row(
                    "maxmargin Pseudoinverse", fit=ours.best, memory=ours.memory,
                    note=f"relative gradient {ours.facts['gradient']:.1e}, "
                    f"differs from pinv by {apart:.1e}",
                ),
                Row(
                    "numpy.linalg.pinv", fit=peer.best, memory=peer.memory,
                    note=f"relative gradient {peer.facts['gradient']:.1e}",
                ),
            ]
        )  # fmt: skip
        rows[0].verdict = course.judged(
            verdict(rows[1].fit_ratio or 0.0, 5) + "; " + limit(ours.memory, 1.3, "× data")
        )
        yield Table(f"4. Pseudoinverse, {n:,} × {d} {dtype.__name__}", rows)


def kernel_perceptron(course: Course) -> Iterator[Table]:
    """Case 5: the kernel perceptron on 20,000 rows."""
    n, d, max_iter = course.rows(20_000), 50, 10
    course.save("kernel", *curved(n, d))
    contestants = {"maxmargin KernelPerceptron(rbf)": "our_kernel_perceptron"}
    if 3 * 8 * n * n < _free_memory():
        contestants["NumPy, whole float64 Gram"] = "gram_kernel_perceptron"
    rows = []
    for title, contestant in contestants.items():
        (out,) = course.run(contestant, "kernel", "judge_kernel", laps=[{"max_iter": max_iter}])
        note = (
            f"{out.facts['mistakes']:,} mistakes in {out.facts['n_iter']} passes, "
            f"training error {out.facts['error']:.4f}; {out.extra_memory / 2**20:,.0f} MiB extra"
        )
        rows.append(Row(title, fit=out.best, note=note))
    rows[0].verdict = course.judged(limit(rows[0].fit or np.inf, SECONDS, "s"))
    yield Table(f"5. KernelPerceptron, {n:,} × {d} float32, {max_iter} passes", with_ratios(rows))


def start_up(course: Course) -> Iterator[Table]:
    """Case 6: imports and first fits, each in fresh processes."""
    repeats = 3 if course.quick else 7

    def best(statement: str, after: str = "pass", **environment: str) -> float:
        return min(race.clocked(statement, after, **environment) for _ in range(repeats))

    base = "import sklearn.base"
    sklearn = best(base)
    linear = best("import sklearn.linear_model", base)
    bare = best("import maxmargin", base)
    named = best("from maxmargin import Perceptron", base)
    first_fit = (
        "import maxmargin as mm\n"
        "X, y = mm.datasets.load_six_points(return_X_y=True)\n"
        "model = mm.Perceptron().fit(X, y)"
    )
    cold = min(_with_empty_cache(first_fit, base) for _ in range(1 if course.quick else 3))
    with tempfile.TemporaryDirectory() as cache:
        best(first_fit, base, NUMBA_CACHE_DIR=cache)  # fills the cache
        warm = best(first_fit, base, NUMBA_CACHE_DIR=cache)
    yield Table(
        "6. Start-up, fresh processes; seconds beyond `import sklearn.base`",
        [
            Row("import maxmargin", fit=bare, verdict=limit(bare, 0.2, "s")),
            Row("from maxmargin import Perceptron", fit=named, verdict=limit(named, 0.2, "s")),
            Row("import sklearn.linear_model", fit=linear, note="the peer's estimators"),
            Row("import sklearn.base", fit=sklearn, note="not beyond: all of it"),
            Row("first fit, warm cache", fit=warm, verdict=limit(warm, 1.0, "s"),
                note="with the import of maxmargin and numba"),
            Row("first fit, empty cache", fit=cold, note="compiles"),
        ],
    )  # fmt: skip


def _with_empty_cache(statement: str, after: str) -> float:
    with tempfile.TemporaryDirectory() as cache:
        return race.clocked(statement, after, NUMBA_CACHE_DIR=cache)


def proofs(course: Course) -> Iterator[Table]:
    """Case 7: separable or not, with a proof, on 100,000 × 20."""
    n, d = course.rows(100_000), 20
    rows = []
    for name, make in {"separable": apart, "not separable": _overlapping}.items():
        course.save(name, *make(n, d))
        (out,) = course.run("our_separability", name, "judge_separability")
        right = out.facts["proved"] and out.facts["separable"] is (name == "separable")
        told = course.judged(limit(out.best, SECONDS, "s")) if right else "MISSED: no proof"
        rows.append(
            Row(f"maxmargin separability, {name}", fit=out.best, verdict=told,
                note=out.facts["verdict"])
        )  # fmt: skip
    yield Table(f"7. separability, {n:,} × {d} float64", rows)


def _overlapping(n: int, d: int) -> tuple[Any, Any]:
    return two_clouds(n, d, np.float64)


def _free_memory() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


CASES: dict[str, Callable[[Course], Iterator[Table]]] = {
    "dense": dense,
    "sparse": sparse_rows,
    "pseudoinverse": pseudoinverse,
    "kernel": kernel_perceptron,
    "startup": start_up,
    "separability": proofs,
}


def main() -> None:
    """Read the command line, run the cases, print and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder that holds 20news.bz2")
    parser.add_argument("--quick", action="store_true", help="small data: see that all of it runs")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE", help=", ".join(CASES))
    arguments = parser.parse_args()

    def tables() -> Iterator[Table]:
        for name in arguments.only or CASES:
            with tempfile.TemporaryDirectory() as scratch:
                course = Course(Path(scratch), arguments.data, arguments.quick)
                yield from CASES[name](course)

    done = race.report(tables(), arguments.out)
    missed = [
        f"{table.title}: {row.verdict}"
        for table in done
        for row in table.rows
        if "MISSED" in row.verdict
    ]
    if missed:
        print("Missed:", *missed, sep="\n  ")
    elif not arguments.quick:
        print("Every target is met.")


if __name__ == "__main__":
    main()
