"""Race the linear support vector machine against its peers.

    python benchmarks/linear_machine.py [--data DIR] [--quick] [--out FILE] [--plot FOLDER]
        [--only CASE ...] [--peers PEER ...] [--repeats N] [--limit SECONDS]
        [--cores N,N,... [--known FILE ...] [--budget SECONDS]]

    pip install matplotlib snapml skglm

brings the pictures and two of the peers; a peer that is not installed is left out, and said to be.
Without ``--data`` everything runs on generated data; DIR adds covtype, Reuters money-fx, SMS spam,
MNIST, a9a, w8a, ijcnn1 and skin_nonskin. ``--quick`` takes a twentieth of the rows to see that all
of it runs.

Every contestant runs several laps: tolerances, or limits on its passes. What a lap is worth is said
by one judge in float64: P, the primal of the machine whose bias is free, at the contestant's w and
the best b for it, and how far it is above D, the best dual that any lap of ours has proved; D is
computed anew from α. The bias of all peers is penalised. Where that matters most, on sparse text,
LIBLINEAR is raced on its own problem as well, at equal values of its own primal.

``--cores 1,2,4`` races ours and Snap ML on so many cores each, both losses at the smallest C;
``--plot`` then draws speed over cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import race
import scaling
from kernel_machine import digits, svmlight
from race import Fit, Outcome, Summary, Target
from separating import text_like, two_clouds

# What an answer may be off at most, relative to its primal.
GAP = 1e-4
# Tolerances of our laps; the last one is there for its dual, by which all are measured.
TOLERANCES = (1e-2, 1e-3, GAP, 1e-5, 1e-6, 1e-7)
OURS = "maxmargin"
SOLVERS = ("interior-point", "newton", "coordinate-descent")
# Times the seconds of solver="auto", and some, that our other solvers may take: one that takes
# longer is not the best of ours.
SLOWER, AND_SOME = 1.5, 0.5
# Columns of which a warm-up has enough, and beyond which the interior point is left out: it has a
# matrix of them.
FEW, MANY = 64, 20_000
# Seconds beyond which a fit is not repeated.
LONG = 3.0
# A peer is stopped at so many times our seconds: by then it has lost. SHORT is for laps that show
# how exact it can get, and for a peer that does not get far; none is stopped before EARLIEST
# seconds, or half of that.
PATIENCE, SHORT, EARLIEST = 30.0, 10.0, 20.0
# Seconds by which our solvers differ for no reason.
NOISE = 2e-3
# Bytes of data below which memory is that of libraries, not of the method.
SMALL = 2**25
GIB = 2**30
PACKAGES = (*race.PACKAGES, "snapml", "skglm")
SEED = 0


# What a person reads -------------------------------------------------------------------------


@dataclass
class Row:
    """One lap of one contestant; ``beyond``: the seconds after which it was stopped.

    ``ratio`` above 1: ours is faster. ``judged``: the lap by which the contestant is judged.
    Memory: the peak as a multiple of the data, its bytes on top of the data, and all in all.
    """

    contestant: str
    lap: str
    judged: bool = False
    seconds: float | None = None
    beyond: float | None = None
    ratio: float | None = None
    primal: float | None = None
    gap: float | None = None
    memory: float | None = None
    extra: int | None = None
    peak: int | None = None
    note: str = ""
    all_seconds: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Table:
    """The laps of all contestants on one problem.

    ``penalized``: the bias is, and ratios are at equal primal values. ``bound``: the best dual
    proved, or the best primal where ours took no part. ``reached``: seconds to a gap of `GAP`.
    """

    case: str
    loss: str
    C: float
    title: str
    data_bytes: int
    n_features: int
    penalized: bool = False
    rows: list[Row] = field(default_factory=list)
    bound: float | None = None
    proved: bool = True
    reached: dict[str, float | None] = field(default_factory=dict)

    def row(self, contestant: str) -> Row | None:
        """Return the lap by which a contestant is judged, if it ran."""
        rows = (row for row in self.rows if row.contestant == contestant and row.judged)
        return next((row for row in rows if row.seconds or row.beyond), None)

    @property
    def label(self) -> str:
        """The problem without the data."""
        bias = ", bias penalised" if self.penalized else ""
        return f"{self.loss.replace('_', ' ')}, C={self.C:g}{bias}"


def show(table: Table | Summary) -> None:
    """Print one problem, or the summary."""
    if isinstance(table, Summary):
        return race.show_summary(table)
    from rich.console import Console
    from rich.table import Table as Grid

    reached = (
        f"{name} {_seconds(value) or 'never'}"
        for name, value in table.reached.items()
        if not name.startswith(f"{OURS} ")
    )
    grid = Grid(
        title=f"{table.title}; {table.label}", title_justify="left", title_style="bold",
        caption=f"seconds to a gap of {GAP:g}: " + ", ".join(reached), caption_justify="left",
    )  # fmt: skip
    grid.add_column("contestant", no_wrap=True)
    grid.add_column("lap", no_wrap=True)
    against = "gap reached" if table.proved else "above the best"
    for heading in ("fit", "÷ ours", "P", against, "memory"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("note", overflow="fold")
    for row in table.rows:
        stopped = row.seconds is None and row.beyond
        name = row.contestant.replace(f"{OURS} ", "  ")  # our solvers by name
        grid.add_row(
            f"[bold]{name}[/]" if row.judged else name,
            row.lap,
            f"> {_seconds(row.beyond)}" if stopped else _seconds(row.seconds),
            ("> " if stopped and row.ratio else "") + _number(row.ratio, ".2f", "×"),
            _number(row.primal, ".8g"),
            _number(row.gap, ".1e", most=GAP),
            _number(row.memory, ".2f", "×")
            if table.data_bytes >= SMALL
            else _number(row.extra and row.extra / 2**20, "+.1f", " MiB"),
            row.note,
        )  # fmt: skip
    Console(width=max(Console().width, 150)).print(grid)
    return None


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f} s" if value >= 1.0 else f"{1e3 * value:.1f} ms"


def _number(value: float | None, form: str, unit: str = "", most: float = inf) -> str:
    """Format a number, red where it is more than allowed."""
    if value is None:
        return ""
    text = f"{value:{form}}{unit}"
    return text if value <= most else f"[red]{text}[/]"


# Contestants: imports and the form of the data outside the clock, fit inside -----------------


@dataclass(frozen=True)
class Plane:
    """What a fit came to: w and b, ±α where it tells them, and what it says of itself."""

    C: float
    loss: str
    w: Any
    b: float
    n_iter: int
    exhausted: bool = False
    penalized: bool = True
    support: Any = None
    multipliers: Any = None
    claim: dict[str, float] | None = None


@dataclass(frozen=True)
class Refusal:
    """A solver that is not for this problem."""

    why: str


def our_machine(
    *, C: float, loss: str, tol: float, solver: str = "auto", penalized: bool = False,
    time_limit: float | None = None,
) -> Fit:  # fmt: skip
    from maxmargin import LinearSVC

    def told(solver: str, X: Any, y: Any, time_limit: float | None) -> Plane | Refusal:
        machine = LinearSVC(
            C=C, loss=loss, tol=tol, solver=solver, penalize_intercept=penalized,
            time_limit=time_limit,
        )  # fmt: skip
        try:
            return _our_plane(machine.fit(X, y), penalized)
        except ValueError as error:
            if solver == "auto":
                raise
            return Refusal(str(error))

    def fit(X: Any, y: Any) -> Plane | Refusal:
        return told(solver, X, y, time_limit)

    def warm_up(X: Any, y: Any) -> None:
        # On few rows "auto" may choose another solver than on many: all of them are compiled, on
        # few columns, since some solvers are not for many.
        if (loss, penalized) not in _compiled:
            _compiled.add((loss, penalized))
            told("auto", X, y, 2.0)
            for name in SOLVERS:
                told(name, X[:, :FEW], y, 2.0)

    fit.warm_up = warm_up
    return fit


_compiled: set[tuple[str, bool]] = set()


def _our_plane(machine: Any, penalized: bool) -> Plane:
    certificate = machine.certificate_
    claim = {name: float(getattr(certificate, name)) for name in ("primal", "dual", "relative_gap")}
    return Plane(
        machine.C, machine.loss, machine.coef_.ravel(), float(np.ravel(machine.intercept_)[0]),
        int(np.max(machine.n_iter_)), penalized=penalized,
        support=getattr(machine, "support_", None),
        multipliers=getattr(machine, "dual_coef_", None), claim=claim,
    )  # fmt: skip


def liblinear(*, C: float, loss: str, dual: bool, tol: float, max_iter: int) -> Fit:
    from sklearn.svm import LinearSVC

    def fit(X: Any, y: Any) -> Plane:
        options = {"loss": loss, "dual": dual, "tol": tol, "max_iter": max_iter}
        machine = LinearSVC(C=C, random_state=SEED, **options).fit(X, y)
        n_iter = int(machine.n_iter_)
        w, b = machine.coef_.ravel(), float(machine.intercept_[0])
        return Plane(C, loss, w, b, n_iter, n_iter >= max_iter)

    return fit


def snap_ml(*, C: float, loss: str, tol: float, max_iter: int) -> Fit:
    """Snap ML on all cores. Its bias is a constant feature; it computes in float32."""
    from snapml import SupportVectorMachine

    def fit(X: Any, y: Any) -> Plane:
        machine = SupportVectorMachine(
            loss=loss, regularizer=1.0 / C, tol=tol, max_iter=max_iter, fit_intercept=True,
            n_jobs=_cores(), use_gpu=False, random_state=SEED,
        ).fit(X, y)  # fmt: skip
        n_iter = int(np.max(machine.n_iter_))
        w, b = machine.coef_.ravel(), float(np.ravel(machine.intercept_)[0])
        return Plane(C, loss, w, b, n_iter, n_iter >= max_iter)

    return fit


def skglm_svc(*, C: float, loss: str, tol: float, p0: int) -> Fit:
    """skglm has no bias: it gets a constant feature, as LIBLINEAR makes itself one."""
    from skglm import LinearSVC

    def fit(X: Any, y: Any, C: float = C) -> Plane:
        machine = LinearSVC(C=C, tol=tol, p0=p0).fit(X, y)
        *w, b = np.ravel(machine.coef_)
        stopped = bool(machine.stop_crit_ > tol)
        return Plane(C, loss, np.array(w), float(b), int(machine.n_iter_), stopped)

    # It compiles for seconds, and a fit of few rows with a large C can take minutes.
    fit.warm_up = lambda X, y: fit(X, y, 1e-3)
    return fit


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def float64(X: Any) -> Any:
    return X.astype(np.float64)


def float32(X: Any) -> Any:
    return X.astype(np.float32)


def with_ones(X: Any) -> Any:
    """Append a constant feature; columns first where X is sparse, as skglm has it."""
    ones = np.ones((X.shape[0], 1))
    if isinstance(X, np.ndarray):
        return np.hstack([X, ones])
    from scipy import sparse

    return sparse.hstack([X, ones], format="csc", dtype=np.float64)


PEERS = {"liblinear": "sklearn", "snapml": "snapml", "skglm": "skglm"}


def installed(name: str) -> bool:
    """Say whether a contestant can take part; maxmargin needs more than to be installed."""
    if name == OURS:
        import maxmargin

        return hasattr(maxmargin, "LinearSVC")
    return find_spec(PEERS[name]) is not None


# The judge: w, α and the data in float64, whoever found them ---------------------------------


def judge_plane(plane: Plane | Refusal, X: Any, y: Any) -> dict[str, Any]:
    """P with the best bias and with the plane's own, and what α proves."""
    if isinstance(plane, Refusal):
        return {"refused": plane.why}
    w = np.asarray(plane.w, dtype=np.float64)
    scores, half = products(X, w), 0.5 * float(w @ w)
    b = best_bias(scores, y, plane.loss)
    facts = {
        "primal": half + plane.C * total_loss(scores + b, y, plane.loss),
        "penalized_primal": half + 0.5 * plane.b**2
        + plane.C * total_loss(scores + plane.b, y, plane.loss),
        "b": plane.b, "best_b": b, "n_iter": plane.n_iter, "exhausted": plane.exhausted,
        "claim": plane.claim,
    }  # fmt: skip
    if plane.multipliers is not None:
        facts["dual"] = dual_value(plane, X, y)
        primal = facts["penalized_primal" if plane.penalized else "primal"]
        facts["own_gap"] = (primal - facts["dual"]) / primal
    return facts


def products(X: Any, w: Any) -> Any:
    """Return Xw in float64, some rows of X after the other: X may be large, and float32."""
    return np.concatenate([X[rows] @ w for rows in _blocks(X)])


def combination(X: Any, v: Any) -> Any:
    """Return Xᵀv in float64, likewise."""
    parts = (v[rows] @ X[rows].astype(np.float64, copy=False) for rows in _blocks(X))
    return np.sum(list(parts), axis=0)


def _blocks(X: Any) -> Iterator[slice]:
    n, d = X.shape
    size = max(1, 2**21 // d) if isinstance(X, np.ndarray) else n
    return (slice(first, first + size) for first in range(0, n, size))


def total_loss(scores: Any, y: Any, loss: str) -> float:
    """Return Σ max(0, 1 − y s), or of its squares."""
    short = np.maximum(0.0, 1.0 - y * scores)
    return float(short.sum() if loss == "hinge" else short @ short)


def best_bias(scores: Any, y: Any, loss: str) -> float:
    """Return the b that makes the loss smallest.

    A sample has no loss from t = y − s on: above t if y = 1, below if y = −1. The slope of all
    hinges at b is the number of t below b less that of y = 1: a quantile of t. The slope of the
    squared ones grows piecewise linearly; Newton's method finds its zero, kept between bounds.
    """
    t, positive = y - scores, y > 0
    if loss == "hinge":
        k = int(positive.sum()) - 1
        return float(np.partition(t, k)[k])
    low, high = float(t.min()), float(t.max())
    b = 0.5 * (low + high)
    for _ in range(200):
        active = np.where(positive, t > b, t < b)
        count = int(active.sum())
        slope = float(count * b - t[active].sum())
        low, high = (low, b) if slope > 0.0 else (b, high)
        step = b - slope / count if count else 0.5 * (low + high)
        step = step if low <= step <= high else 0.5 * (low + high)
        if abs(step - b) <= 1e-14 * max(1.0, abs(b)):
            break
        b = step
    return b


def dual_value(plane: Plane, X: Any, y: Any) -> float:
    """Return D(α), for an α made feasible: every feasible α is a bound, wherever it is from."""
    alpha = np.zeros(len(y))
    alpha[plane.support] = np.abs(np.ravel(plane.multipliers))
    if plane.loss == "hinge":
        alpha = np.minimum(alpha, plane.C)
    if not plane.penalized:  # Σ yα = 0: the heavier side gives way
        sums = {sign: alpha[y == sign].sum() for sign in (-1, 1)}
        lighter = min(sums.values())
        for sign, total in sums.items():
            if total > lighter:
                alpha[y == sign] *= lighter / total
    w = combination(X, alpha * y)
    dual = float(alpha.sum() - 0.5 * (w @ w))
    if plane.penalized:
        dual -= 0.5 * float(alpha @ y) ** 2
    return dual if plane.loss == "hinge" else dual - float(alpha @ alpha) / (4.0 * plane.C)


# Data ----------------------------------------------------------------------------------------


def overlapping(n: int, d: int) -> tuple[Any, Any]:
    """Two clouds that overlap, float32; made some rows after the other, so that X is all it takes.

    Columns have different lengths, and each has to do with its neighbour.
    """
    rng = np.random.default_rng(SEED)
    w, lengths = rng.standard_normal(d) / np.sqrt(d), np.geomspace(0.5, 2.0, d)
    X, y = np.empty((n, d), dtype=np.float32), np.empty(n, dtype=np.int64)
    for first in range(0, n, 50_000):
        part = X[first : first + 50_000]
        rng.standard_normal(dtype=np.float32, out=part)
        part[:, 1:] += 0.5 * part[:, :-1]
        part *= lengths.astype(np.float32)
        noise = rng.standard_normal(len(part))
        y[first : first + 50_000] = np.where(part @ w + 0.3 + noise > 0.0, 1, -1)
    return X, y


def signs(X: Any, positive: Any) -> tuple[Any, Any]:
    return X, np.where(positive, 1, -1)


def standardised(X: Any, positive: Any) -> tuple[Any, Any]:
    """Dense columns of mean 0 and variance 1."""
    X = X.toarray()
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return signs(X, positive)


def text(n: int) -> tuple[Any, Any]:
    X, y = text_like(n, 50_000)
    return X.astype(np.float64), y


def messages(folder: Path) -> tuple[Any, Any]:
    """SMS messages as tf-idf, spam or not."""
    import bz2

    from sklearn.feature_extraction.text import TfidfVectorizer

    with bz2.open(folder / "sms_spam.tsv.bz2", "rt", encoding="utf8") as lines:
        told = [line.rstrip("\n").split("\t", 1) for line in lines]
    X = TfidfVectorizer().fit_transform([message for _, message in told])
    return signs(X, np.array([label == "spam" for label, _ in told]))


def even_or_odd(folder: Path) -> tuple[Any, Any]:
    from scipy import sparse

    X, digit = digits(folder, "train")
    return signs(sparse.csr_matrix(X), digit % 2 == 0)


def labelled(
    name: str, label: int = 1, then: Callable[[Any, Any], tuple[Any, Any]] = signs
) -> Callable[[Path], tuple[Any, Any]]:
    """Read a file of the data folder: one label against the rest."""

    def make(folder: Path) -> tuple[Any, Any]:
        X, y = svmlight(folder, name)
        return then(X, y == label)

    return make


@dataclass(frozen=True)
class Problem:
    """Data of the folder (`read`) or generated (`make`, of so many rows), and what is asked of
    them: ``slim`` is dense with many more rows than columns, ``text`` is raced on LIBLINEAR's own
    problem as well, ``brief`` has fewer laps and no skglm.
    """

    read: Callable[[Path], tuple[Any, Any]] | None = None
    make: Callable[[int], tuple[Any, Any]] | None = None
    n: int = 0
    Cs: tuple[float, ...] = (1.0, 100.0)
    tolerances: tuple[float, ...] = TOLERANCES
    slim: bool = False
    text: bool = False
    brief: bool = False


# From important to unimportant: a run that is stopped keeps what it has.
PROBLEMS = {
    "dense": Problem(make=lambda n: two_clouds(n, 50, np.float64), n=200_000, slim=True),
    "huge": Problem(
        make=lambda n: overlapping(n, 28), n=5_000_000, slim=True, brief=True,
        tolerances=(1e-3, GAP, 1e-6),
    ),
    "text": Problem(make=text, n=100_000, text=True),
    "wide": Problem(
        make=lambda n: two_clouds(n, 500, np.float64), n=50_000, slim=True,
        tolerances=(1e-2, 1e-3, GAP, 1e-5, 1e-7),
    ),
    "covtype": Problem(labelled("covtype", 2, standardised), slim=True),
    "reuters": Problem(labelled("reuters_money-fx.trn"), text=True),
    "sms": Problem(messages, text=True),
    "mnist": Problem(even_or_odd, Cs=(0.1, 100.0)),
    "a9a": Problem(labelled("a9a")),
    "w8a": Problem(labelled("w8a")),
    "ijcnn1": Problem(labelled("ijcnn1")),
    "skin": Problem(labelled("skin_nonskin", 1, standardised), slim=True),
}  # fmt: skip
LOSSES = ("hinge", "squared_hinge")


# Cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lap:
    """The options of a contestant, and how long it may take.

    Where a lap does not come home, the later ones of its ``group`` are not run.
    """

    contestant: str
    name: str
    options: dict[str, Any]
    limit: float
    judged: bool
    group: str

    @property
    def problem(self) -> tuple[str, float, bool]:
        """The table that it belongs to."""
        return self.options["loss"], self.options["C"], self.options.get("penalized", False)

    @property
    def careful(self) -> bool:
        """Whether its seconds decide something: the others only show the way there."""
        return self.judged or self.problem[2] or self.contestant.startswith(f"{OURS} ")


@dataclass(frozen=True)
class Course:
    """The folder, the contestants and the scale of a run."""

    scratch: Path
    data: Path | None
    quick: bool
    contestants: Sequence[str]
    repeats: int
    limit: float

    def rows(self, problem: Problem) -> tuple[Any, Any]:
        """Return the data, in random order (w8a begins with one class), or a twentieth of them."""
        if problem.make is not None:
            return problem.make(problem.n // 20 if self.quick else problem.n)
        X, y = problem.read(self.data)
        rows = np.random.default_rng(SEED).permutation(len(y))
        rows = rows[: len(rows) // 20] if self.quick else rows
        return X[rows], y[rows]

    def race(self, function: str, laps: Sequence[Lap], form: str | None = None) -> Iterator[Row]:
        """Race one function of this module; a lap that fails or takes too long stops no other."""
        left = list(laps)
        while left:
            why = ""
            try:
                outcomes = race.run(
                    "linear_machine", function, self.scratch, judge="judge_plane", form=form,
                    laps=[lap.options for lap in left], long=LONG,
                    repeats=[self.repeats if lap.careful else 1 for lap in left],
                    limits=[lap.limit for lap in left],
                )  # fmt: skip
            except subprocess.CalledProcessError as error:  # its reason stands above, on stderr
                outcomes, why = race.salvaged(error), "[red]failed[/]"
            for lap, outcome in zip(left, outcomes, strict=False):
                yield _row(lap, outcome)
            if len(outcomes) == len(left):
                return
            lost, rest = left[len(outcomes)], left[len(outcomes) + 1 :]
            yield Row(
                lost.contestant, lost.name, lost.judged, beyond=None if why else lost.limit,
                note=why or "stopped", facts={"problem": lost.problem},
            )  # fmt: skip
            left = [lap for lap in rest if lap.group != lost.group]
            for lap in rest:
                if lap.group == lost.group:
                    facts = {"problem": lap.problem}
                    # More of the same takes longer still.
                    beyond = lost.limit if not why and lap.problem == lost.problem else None
                    yield Row(
                        lap.contestant, lap.name, lap.judged, beyond=beyond, facts=facts,
                        note="not run: the lap before did not come home",
                    )  # fmt: skip


def _row(lap: Lap, outcome: Outcome) -> Row:
    facts = {**outcome.facts, "problem": lap.problem}
    if "refused" in facts:
        return Row(lap.contestant, lap.name, note=f"refused: {facts['refused']}", facts=facts)
    return Row(
        lap.contestant, lap.name, lap.judged, outcome.best, None, None, facts["primal"], None,
        outcome.memory, outcome.extra_memory, outcome.peak, _note(facts), outcome.seconds, facts,
    )  # fmt: skip


def _note(facts: dict[str, Any]) -> str:
    notes = [f"{facts['n_iter']:,} iterations" + (", not converged" * facts["exhausted"])]
    if claim := facts["claim"]:
        said, own = claim["relative_gap"], facts.get("own_gap", inf)
        notes.append(f"says {said:.1e}")
        if own > 1.05 * said + 1e-12:
            notes.append(f"[red]α proves {own:.1e}[/]" if own < inf else "no α to prove it")
    return ", ".join(notes)


def fits(course: Course, case: str) -> Iterator[Table]:
    """All contestants fit the data of one case: both losses, every C."""
    problem = PROBLEMS[case]
    X, y = course.rows(problem)
    race.save(course.scratch, X, y)
    title, dense, in32 = _title(case, X), isinstance(X, np.ndarray), X.dtype == np.float32
    data_bytes, d = race.size_of(X), X.shape[1]
    del X, y
    keys = [(loss, C, False) for C in problem.Cs for loss in LOSSES]
    if problem.text:
        keys += [("hinge", C, True) for C in problem.Cs]
    tables = {key: Table(case, key[0], key[1], title, data_bytes, d, key[2]) for key in keys}

    def enter(rows: Iterable[Row]) -> None:
        for row in rows:
            key = tuple(row.facts.pop("problem"))
            tables[key].rows.append(row)
            own = ("hinge", key[1], True)
            if row.contestant.startswith("liblinear") and key[0] == "hinge" and own in tables:
                tables[own].rows.append(_on_its_own_problem(row))

    if OURS in course.contestants:
        enter(course.race("our_machine", our_laps(course, problem, tables)))
        enter(course.race("our_machine", laps_by_name(course, tables)))
    if "liblinear" in course.contestants:
        form = "float64" if in32 else None
        enter(course.race("liblinear", liblinear_laps(course, problem, tables, dense), form))
        enter(course.race("liblinear", tight_liblinear_laps(course, tables), form))
    if "snapml" in course.contestants:
        form = None if in32 else "float32"
        enter(course.race("snap_ml", snap_laps(course, problem, tables), form))
    if "skglm" in course.contestants and not problem.brief:
        enter(course.race("skglm_svc", skglm_laps(course, tables), "with_ones"))
    for table in tables.values():
        yield scored(table)


def _title(case: str, X: Any) -> str:
    n, d = X.shape
    form = "dense" if isinstance(X, np.ndarray) else f"{X.nnz / n / d:.2%} non-zeros"
    return f"{case}: {n:,} × {d:,} {X.dtype}, {form}, {race.size_of(X) / 2**20:,.0f} MiB"


def _on_its_own_problem(row: Row) -> Row:
    primal = row.facts.get("penalized_primal")
    return Row(
        row.contestant, row.lap, row.judged, row.seconds, row.beyond, None, primal, None,
        row.memory, row.extra, row.peak, row.note, row.all_seconds, row.facts,
    )  # fmt: skip


Tables = dict[tuple[str, float, bool], Table]


def our_laps(course: Course, problem: Problem, tables: Tables) -> list[Lap]:
    """All tolerances by solver="auto"."""
    laps = []
    for loss, C, penalized in tables:
        for tol in (0.1, *problem.tolerances) if penalized else problem.tolerances:
            options = {"C": C, "loss": loss, "tol": tol, "penalized": penalized}
            group = f"{loss} {C} {penalized}"
            laps.append(Lap(OURS, f"tol={tol:g}", options, course.limit, tol == GAP, group))
    return laps


def laps_by_name(course: Course, tables: Tables) -> list[Lap]:
    """Each of our solvers, and a short "auto" once more beside them."""
    laps = []
    for (loss, C, penalized), table in tables.items():
        ours = table.row(OURS)
        if penalized or ours is None or ours.seconds is None:
            continue
        time_limit = SLOWER * ours.seconds + AND_SOME
        for solver in ("auto", *SOLVERS):
            needless = solver == "auto" and ours.seconds > LONG
            if needless or (solver == "interior-point" and table.n_features > MANY):
                continue
            options = {
                "C": C, "loss": loss, "tol": GAP, "solver": solver, "time_limit": time_limit,
            }  # fmt: skip
            name, limit = f"{OURS} {solver}", 2.0 * time_limit + 3.0
            laps.append(Lap(name, f"tol={GAP:g}", options, limit, False, f"{loss} {C} {solver}"))
    return laps


def patience(course: Course, table: Table, times: float = PATIENCE) -> float:
    """Return the seconds after which a peer is stopped."""
    ours = table.row(OURS)
    earliest, longest = EARLIEST, course.limit
    if times < PATIENCE:
        earliest, longest = 0.5 * earliest, 0.5 * longest
    if ours is None or ours.seconds is None:
        return longest
    return min(longest, max(earliest, times * ours.seconds))


def liblinear_laps(course: Course, problem: Problem, tables: Tables, dense: bool) -> list[Lap]:
    """Its dual coordinate descent for some sweeps; for the squared hinge Newton's method."""
    laps = []
    for (loss, C, penalized), table in tables.items():
        if penalized:
            continue
        limit, common = patience(course, table), {"C": C, "loss": loss}
        if loss == "squared_hinge":
            for tol in (1e-4,) if problem.brief else (1e-2, 1e-4, 1e-6):
                options = {**common, "dual": False, "max_iter": 1000, "tol": tol}
                group = f"newton {C}"
                laps.append(Lap("liblinear", f"tol={tol:g}", options, limit, tol == 1e-4, group))
        if loss == "hinge" or not dense:
            name, most = _dual(loss), 3000 if C <= 1.0 else 1000
            for sweeps in (10, most) if problem.brief else (30, 300, most):
                options = {**common, "dual": True, "tol": 1e-4, "max_iter": sweeps}
                lap = f"sweeps≤{sweeps}"
                laps.append(Lap(name, lap, options, limit, sweeps == most, f"{loss} {C}"))
    return laps


def _dual(loss: str) -> str:
    """What LIBLINEAR's dual solver is called: the only one for the hinge, one of two else."""
    return "liblinear" if loss == "hinge" else "liblinear dual"


def tight_liblinear_laps(course: Course, tables: Tables) -> list[Lap]:
    """A tighter tolerance where the usual one was reached."""
    laps = []
    for (loss, C, penalized), table in tables.items():
        row = table.row(_dual(loss))
        if penalized or row is None or row.seconds is None or row.facts["exhausted"]:
            continue
        options = {"C": C, "loss": loss, "dual": True, "tol": 1e-6, "max_iter": 3000}
        limit = patience(course, table, SHORT)
        laps.append(Lap(_dual(loss), "tol=1e-06", options, limit, False, f"{loss} {C}"))
    return laps


def snap_laps(course: Course, problem: Problem, tables: Tables) -> list[Lap]:
    """A few passes, its defaults; with a small C a tight tolerance as well."""
    laps = []
    for (loss, C, penalized), table in tables.items():
        if penalized or loss != "hinge":
            continue
        few = 10 if problem.brief else 100
        for tol, passes in ((1e-3, few), (1e-3, 1000), (1e-6, 10_000)):
            if passes == 10_000 and (problem.brief or C > 1.0):
                continue
            options = {"C": C, "loss": loss, "tol": tol, "max_iter": passes}
            default = passes == 1000
            limit = patience(course, table, PATIENCE if default else SHORT)
            lap = f"tol={tol:g} passes≤{passes}"
            laps.append(Lap("snapml", lap, options, limit, default, f"{C}"))
    return laps


def skglm_laps(course: Course, tables: Tables) -> list[Lap]:
    """Its defaults, and a first working set of 1,000: grown from 10 it is too small at the end.

    It has the hinge only. Where a lap is too long for it, the ones that follow are longer.
    """
    problems = [key for key in tables if key[0] == "hinge" and not key[2]]
    laps = []
    for p0 in (10, 1000):
        for loss, C, penalized in problems if p0 == 10 else problems[:1]:
            options = {"C": C, "loss": loss, "tol": 1e-4, "p0": p0}
            limit = patience(course, tables[loss, C, penalized], SHORT)
            laps.append(Lap("skglm", f"p0={p0}", options, limit, p0 == 10, "skglm"))
    return laps


def scored(table: Table) -> Table:
    """Fill in gaps and ratios, after all laps have ended."""
    proofs = [row.facts["dual"] for row in table.rows if "dual" in row.facts]
    if table.penalized:
        for row in table.rows:
            row.primal = row.facts.get("penalized_primal")
    primals = [row.primal for row in table.rows if row.primal is not None]
    table.proved = bool(proofs)
    if not primals:
        return table
    table.bound = max(proofs) if proofs else min(primals)
    ours = table.row(OURS)
    for row in table.rows:
        if row.primal is not None:
            row.gap = (row.primal - table.bound) / row.primal
        seconds = row.seconds or row.beyond
        if table.penalized:
            _at_equal_value(table, row)
        elif ours is not None and ours.seconds and row is not ours and seconds:
            row.ratio = seconds / ours.seconds
    for name in dict.fromkeys(row.contestant for row in table.rows):
        near = [row for row in table.rows if row.contestant == name and row.gap is not None]
        table.reached[name] = min((r.seconds for r in near if r.gap <= GAP), default=None)
    return table


def _at_equal_value(table: Table, row: Row) -> None:
    """Compare a peer with our coarsest lap that is at least as good."""
    if row.contestant == OURS or row.primal is None or row.seconds is None:
        return
    ours = as_good(table, row)
    row.ratio = ours and row.seconds / ours.seconds
    row.note += f"; ours with {ours.lap}" if ours else "; none of ours is as good"


def as_good(table: Table, row: Row) -> Row | None:
    """Return our coarsest lap that is as good as a peer's; laps are in this order."""
    for ours in table.rows:
        better = ours.primal is not None and ours.primal <= row.primal * (1.0 + 1e-12)
        if ours.contestant == OURS and better:
            return ours
    return None


# Targets -------------------------------------------------------------------------------------


def summary(tables: Sequence[Table], quick: bool) -> Summary:
    """Hold what came out to what was asked; a quick look says nothing about speed."""
    free = [table for table in tables if not table.penalized]
    slim = [table for table in free if PROBLEMS[table.case].slim]
    hinge = [table for table in slim if table.loss == "hinge"]
    squared = [table for table in slim if table.loss == "squared_hinge"]
    text = [table for table in tables if table.penalized]
    large = [table for table in free if table.C == 100.0]
    judge = not quick
    targets = [
        faster("dense, hinge, against LIBLINEAR", hinge, ["liblinear"], 10, 30, judge),
        faster("dense, hinge, against Snap ML", hinge, ["snapml"], 1, 3, judge),
        better("dense, hinge, objective against Snap ML's", hinge, "snapml"),
        *huge(hinge, judge),
        faster(
            "dense, squared hinge, against LIBLINEAR's Newton", squared, ["liblinear"], 1.5, 3,
            judge,
        ),
        faster(
            "text, hinge, against LIBLINEAR at equal value of its own problem", text,
            ["liblinear"], 1.5, 4, judge,
        ),
        faster(
            "C=100, any case, against the fastest of LIBLINEAR", large,
            ["liblinear", "liblinear dual"], 1, 10, judge,
        ),
        at_equal_value("C=100, against LIBLINEAR at equal value", large),
        proved("C=100, certificates", large),
        proved("all, certificates", tables),
        automatic(free, judge),
        memory(free),
        *(to_the_gap(free, name) for name in ("liblinear", "liblinear dual", "snapml", "skglm")),
    ]  # fmt: skip
    few = " (quick: too few rows to judge speed)" if quick else ""
    return Summary(f"Targets{few}", targets)


def faster(
    what: str, tables: Iterable[Table], peers: Sequence[str], least: float, aim: float, judge: bool
) -> Target:
    """A peer's seconds over ours on every problem: at whatever it reached.

    Of a peer that was stopped the ratio is not known, but that it is larger.
    """
    goal = f"≥ {least:g}× each, aim {aim:g}×"
    ratios, undecided = {}, []
    for table in tables:
        rows = (table.row(name) for name in peers)
        found = [row for row in rows if row is not None and row.ratio]
        if not found:
            continue
        row = min(found, key=lambda row: row.ratio)
        if row.seconds is None and row.ratio < least:
            undecided.append(f"{_name(table)} > {row.ratio:.2f}×")
        else:
            ratios[_name(table)] = row.ratio
    doubt = f"; stopped too early to tell: {', '.join(undecided)}" if undecided else ""
    if not ratios:
        return Target(what, "nothing to compare" + doubt, goal=goal)
    under = [f"{name} {ratio:.2f}×" for name, ratio in ratios.items() if ratio < least]
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    worst = min(ratios, key=lambda name: ratios[name])
    value = f"geometric mean {mean:.2f}× over {len(ratios)} problems"
    value += f"; less: {', '.join(under)}" if under else f"; worst {worst} {ratios[worst]:.2f}×"
    if judge:
        value += f"; aim {'reached' if ratios[worst] >= aim else 'not reached'} everywhere"
    return Target(what, value + doubt, not under if judge else None, goal)


def at_equal_value(what: str, tables: Iterable[Table]) -> Target:
    """LIBLINEAR's seconds over those of our coarsest lap that is as good, where it came home."""
    ratios = {}
    for table in tables:
        for row in (table.row("liblinear"), table.row("liblinear dual")):
            if row is not None and row.primal is not None and (ours := as_good(table, row)):
                ratio = row.seconds / ours.seconds
                ratios[_name(table)] = min(ratio, ratios.get(_name(table), inf))
    if not ratios:
        return Target(what, "nothing to compare", goal="none: for information")
    slower = [f"{name} {ratio:.2f}×" for name, ratio in ratios.items() if ratio < 1.0]
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    value = f"geometric mean {mean:.2f}× over {len(ratios)} problems"
    value += f"; slower: {', '.join(slower)}" if slower else ""
    return Target(what, value, goal="none: for information")


def _name(table: Table) -> str:
    return f"{table.case} ({table.label})"


def better(what: str, tables: Iterable[Table], peer: str) -> Target:
    """Our primal against a peer's."""
    worse, n = [], 0
    for table in tables:
        ours, theirs = table.row(OURS), table.row(peer)
        if ours and theirs and ours.primal is not None and theirs.primal is not None:
            n += 1
            # An answer within the tolerance is as good as any other.
            if ours.primal > theirs.primal and not ours.gap <= GAP:
                worse.append(_name(table))
    goal = f"reached, or a gap of {GAP:g}"
    if not n:
        return Target(what, "nothing to compare", goal=goal)
    value = f"worse on {', '.join(worse)}" if worse else f"reached on all {n}"
    return Target(what, value, not worse, goal)


def huge(tables: Iterable[Table], judge: bool) -> Iterator[Target]:
    """Five million rows: seconds, gibibytes, gap."""
    for table in tables:
        if table.case != "huge" or (row := table.row(OURS)) is None:
            continue
        what, goal = f"huge, hinge, C={table.C:g}", f"< 60 s (aim 20), < 4 GiB, gap ≤ {GAP:g}"
        if row.seconds is None:
            yield Target(what, f"> {row.beyond:g} s", False if judge else None, goal)
            continue
        value = f"{row.seconds:.1f} s, {row.peak / GIB:.2f} GiB, {row.facts['own_gap']:.1e}"
        good = row.seconds < 60.0 and row.peak < 4 * GIB and row.facts["own_gap"] <= GAP
        yield Target(what, value, good if judge else None, goal)


def proved(what: str, tables: Iterable[Table]) -> Target:
    """What our answers say of themselves, and what their α proves when it is computed anew."""
    worst, n, bad = ("", 0.0), 0, []
    for table in tables:
        if OURS not in {row.contestant for row in table.rows}:
            continue
        n += 1
        row = table.row(OURS)
        gaps = [inf, inf]
        if row is not None and row.seconds:
            gaps = [row.facts["claim"]["relative_gap"], row.facts.get("own_gap", inf)]
        if not max(gaps) <= GAP * 1.001:
            bad.append(_name(table))
        worst = max(worst, (_name(table), max(gaps)), key=lambda pair: pair[1])
    if not n:
        return Target(what, "no answers", goal=f"gap ≤ {GAP:g}")
    value = f"worst of {n}: {worst[1]:.2e} ({worst[0]})"
    value += f"; above it: {', '.join(bad)}" if bad else ""
    return Target(what, value, not bad, f"gap ≤ {GAP:g}, claimed and proved")


def automatic(tables: Iterable[Table], judge: bool) -> Target:
    """solver="auto" against the best of our solvers that kept to the tolerance."""
    what, goal = 'solver="auto" against the best of ours', "≤ 1.3× everywhere"
    ratios = {}
    for table in tables:
        rows = {row.contestant: row for row in table.rows if row.seconds}
        auto = rows.get(f"{OURS} auto") or table.row(OURS)
        named = [rows[name] for solver in SOLVERS if (name := f"{OURS} {solver}") in rows]
        good = [row for row in named if row.facts.get("own_gap", inf) <= GAP * 1.001]
        if auto is None or auto.seconds is None or not good:
            continue
        best = min(good, key=lambda row: row.seconds)
        ratio = max(0.0, auto.seconds - NOISE) / best.seconds
        ratios[f"{_name(table)}, {best.contestant}"] = ratio
    if not ratios:
        return Target(what, "nothing to compare", goal=goal)
    over = [f"{name} {ratio:.2f}×" for name, ratio in ratios.items() if ratio > 1.3]
    worst = max(ratios, key=lambda name: ratios[name])
    value = "more: " + "; ".join(over) if over else f"worst {worst} {ratios[worst]:.2f}×"
    return Target(what, value, not over if judge else None, goal)


def memory(tables: Iterable[Table]) -> Target:
    """The peak of data and fit together, where the data are more than the libraries."""
    what, goal = f"memory, data of {SMALL / 2**20:g} MiB or more", "≤ 1.5× the data"
    peaks = {}
    for table in tables:
        row = table.row(OURS)
        if row is not None and row.memory is not None and table.data_bytes >= SMALL:
            peaks[_name(table)] = row.memory
    if not peaks:
        return Target(what, "not measured", goal=goal)
    over = [f"{name} {peak:.2f}×" for name, peak in peaks.items() if peak > 1.5]
    worst = max(peaks, key=lambda name: peaks[name])
    value = "more: " + ", ".join(over) if over else f"worst {worst} {peaks[worst]:.2f}×"
    return Target(what, value, not over, goal)


def to_the_gap(tables: Iterable[Table], peer: str) -> Target:
    """Seconds of a peer's fastest lap that is near enough over those of ours."""
    what, goal = f"time to a gap of {GAP:g}, against {peer}", "none: for information"
    ratios, never = [], 0
    for table in tables:
        ours = table.reached.get(OURS)
        if ours is None or peer not in table.reached:
            continue
        theirs = table.reached[peer]
        if theirs is None:
            never += 1
        else:
            ratios.append(theirs / ours)
    if not ratios:
        value = f"reached on none of {never}" if never else "nothing to compare"
        return Target(what, value, goal=goal)
    mean = float(np.exp(np.mean(np.log(ratios))))
    value = f"{mean:.2f}× over {len(ratios)} problems ({min(ratios):.2f} to {max(ratios):.2f})"
    return Target(what, f"{value}; not reached on {never}", goal=goal)


# Over cores ----------------------------------------------------------------------------------

# What each contestant is asked for.
LAPS_OVER_CORES = {
    OURS: ("our_machine", {"tol": GAP}),
    "snapml": ("snap_ml", {"tol": 1e-3, "max_iter": 1000}),
}


def judge_over_cores(plane: Plane, X: Any, y: Any) -> dict[str, Any]:
    """The facts of `judge_plane`, with the gap that α proves under the name that tables have."""
    facts = judge_plane(plane, X, y)
    return {**facts, "relative_gap": facts.get("own_gap")}


def race_over_cores(arguments: argparse.Namespace, contestants: Sequence[str]) -> None:
    """Race ours and Snap ML over numbers of cores."""
    chosen = [name for name in LAPS_OVER_CORES if name in contestants]
    cases = [f"{case} {loss}" for case in arguments.only for loss in LOSSES]
    plan = scaling.plan(arguments, cases, chosen)
    done: list[scaling.Table] = []

    def prepare(case: str, scratch: Path) -> tuple[str, scaling.Run]:
        name, loss = case.split()
        problem, folder = PROBLEMS[name], scratch / name
        course = Course(
            scratch, arguments.data, arguments.quick, chosen, arguments.repeats, arguments.limit
        )
        if not folder.exists():
            race.save(folder, *course.rows(problem))
        X, _ = race.load(folder, 1)
        n = len(np.load(folder / "y.npy", mmap_mode="r"))
        title = f"{name}: {n:,} × {X.shape[1]:,} {X.dtype}, {loss}, C={problem.Cs[0]:g}"

        def run(name: str, cores: int, limit: float, judged: bool) -> list[Outcome] | None:
            if name == "snapml" and loss != "hinge":
                return None
            function, options = LAPS_OVER_CORES[name]
            return race.run(
                "linear_machine", function, folder, judge="judge_over_cores",
                form="float32" if name == "snapml" else None,
                laps=[{"C": problem.Cs[0], "loss": loss, **options}],
                repeats=arguments.repeats, long=LONG, limits=[limit],
                warm_up=scaling.WARM_UP, cores=cores,
            )  # fmt: skip

        return title, run

    def tables() -> Iterator[scaling.Table | Summary]:
        for table in scaling.over_cores(plan, prepare):
            done.append(table)
            yield table
        speed = scaling.speed_up(done, ["huge hinge"], OURS, 16, 6, None, longest=1)
        gap = scaling.exact(done, OURS, "relative_gap", GAP)
        yield Summary("Targets", [gap] if arguments.quick else [speed, gap])

    race.report(tables(), arguments.out, scaling.show, PACKAGES)
    if arguments.plot is not None:
        scaling.draw(done, OURS, arguments.plot / "linear_machine-cores.png")


# The pictures --------------------------------------------------------------------------------

# Okabe and Ito, for colour-blind readers; hollow where a library has two methods.
LOOKS = {
    OURS: ("#D55E00", "o", True),
    f"{OURS} interior-point": ("#D55E00", "v", False),
    f"{OURS} newton": ("#D55E00", "^", False),
    f"{OURS} coordinate-descent": ("#D55E00", "<", False),
    "liblinear": ("#009E73", "D", True),
    "liblinear dual": ("#009E73", "D", False),
    "snapml": ("#0072B2", "s", True),
    "skglm": ("#777777", "X", True),
}
# Gaps below are drawn here: the logarithm ends somewhere.
FLOOR = 1e-9


def draw(tables: Sequence[Table], folder: Path) -> None:
    """Draw gap against time: a picture a case, a panel a problem, a mark a lap."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for case in dict.fromkeys(table.case for table in tables):
        mine = [table for table in tables if table.case == case]
        columns = 2
        rows = -(-len(mine) // columns)
        figure, panels = plt.subplots(
            rows, columns, figsize=(10, 1.0 + 3.3 * rows), layout="constrained", squeeze=False
        )
        for axes in panels.ravel()[len(mine) :]:
            axes.set_visible(False)
        for axes, table in zip(panels.ravel(), mine, strict=False):
            _panel(axes, table)
        figure.suptitle(mine[0].title, x=0.01, ha="left", fontsize=11)
        marks = {}
        for axes in panels.ravel():
            handles, labels = axes.get_legend_handles_labels()
            marks.update(zip(labels, handles, strict=True))
        marks = {name: marks[name] for name in LOOKS if name in marks}
        figure.legend(
            marks.values(), marks.keys(), loc="outside lower center", ncols=4, frameon=False,
            fontsize=9,
        )  # fmt: skip
        figure.savefig(folder / f"linear_machine-{case}.png", dpi=140)
        plt.close(figure)


def _panel(axes: Any, table: Table) -> None:
    for name, (colour, marker, filled) in LOOKS.items():
        rows = [row for row in table.rows if row.contestant == name and row.gap is not None]
        rows = [row for row in rows if row.seconds]
        stopped = [row for row in table.rows if row.contestant == name and row.beyond]
        if rows:
            axes.plot(
                [row.seconds for row in rows], [max(row.gap, FLOOR) for row in rows],
                marker=marker, color=colour, markerfacecolor=colour if filled else "none",
                linestyle={OURS: "-"}.get(name, "none" if name.startswith(OURS) else ":"),
                linewidth=2.0 if name == OURS else 1.0, markersize=6, label=name,
                zorder=3 if name == OURS else 2,
            )  # fmt: skip
        for row in stopped[:1]:  # where it was stopped; its distance from the optimum is unknown
            height = {"liblinear": 0.96, "liblinear dual": 0.92, "snapml": 0.88}.get(name, 0.84)
            axes.annotate(
                f"{name}: > {row.beyond:.3g} s", (row.beyond, height),
                xycoords=axes.get_xaxis_transform(), color=colour, fontsize=7, ha="right",
                va="center",
            )  # fmt: skip
            axes.plot([row.beyond], [height], ">", color=colour, markersize=5, clip_on=False,
                      transform=axes.get_xaxis_transform())  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axhline(GAP, color="black", linewidth=0.8, linestyle="--", zorder=1)
    low, high = axes.get_xlim()
    if high < 30.0 * low:  # so that there are decades to be named
        axes.set_xlim((low * high / 30.0) ** 0.5, (low * high * 30.0) ** 0.5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("seconds")
    axes.set_ylabel("relative gap" if table.proved else "above the best primal")
    axes.set_title(table.label, loc="left", fontsize=10)
    axes.grid(color="#E5E5E5", zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


# The command line ----------------------------------------------------------------------------


def main() -> None:
    """Read the command line, run the cases, print and keep the tables."""
    arguments = command_line()
    contestants = [name for name in (OURS, *arguments.peers) if installed(name)]
    for name in (OURS, *arguments.peers):
        if name not in contestants:
            print(f"{name} is missing: it takes no part.")
    if arguments.cores:
        return race_over_cores(arguments, contestants)
    done: list[Table] = []

    def tables() -> Iterator[Table | Summary]:
        for case in arguments.only:
            with tempfile.TemporaryDirectory() as scratch:
                course = Course(
                    Path(scratch), arguments.data, arguments.quick, contestants,
                    arguments.repeats, arguments.limit,
                )  # fmt: skip
                for table in fits(course, case):
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
    add("--data", type=Path, metavar="DIR", help="folder with covtype.bz2 and the others")
    add("--quick", action="store_true", help="a twentieth of the rows: see that all of it runs")
    add("--out", type=Path, metavar="FILE", help="write the figures as JSON, case by case")
    add("--plot", type=Path, metavar="FOLDER", help="draw gap against time (needs matplotlib)")
    add("--only", nargs="+", choices=PROBLEMS, metavar="CASE", help=", ".join(PROBLEMS))
    add("--peers", nargs="*", choices=PEERS, metavar="PEER", default=list(PEERS),
        help=f"libraries to compare with: {', '.join(PEERS)} (all)")  # fmt: skip
    add("--repeats", type=int, metavar="N", default=3,
        help=f"fits of which the shortest counts (3; always 1 beyond {LONG:g} s)")  # fmt: skip
    add("--limit", type=float, metavar="SECONDS", default=60.0,
        help=f"a fit is stopped here (60), peers at {PATIENCE:g} times our seconds")  # fmt: skip
    scaling.add_options(parser)
    arguments = parser.parse_args()
    folderless = [
        case for case, problem in PROBLEMS.items() if arguments.data is not None or problem.make
    ]
    if lacking := [case for case in arguments.only or () if case not in folderless]:
        parser.error(f"{', '.join(lacking)}: pass --data DIR.")
    arguments.only = arguments.only or (["huge"] if arguments.cores else folderless)
    return arguments


if __name__ == "__main__":
    main()
