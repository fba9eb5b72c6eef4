"""``warmup``: compile in advance everything that a fit can need.

Nothing here names a compiled function: small fits of all estimators meet them all, on rows of every
type that compiled code distinguishes. Fits that share little code make up a lot, and lots are
compiled side by side in processes of their own, which write to the same cache. A lot that meets
much of another's code comes after that one, and finds it in the cache.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import click

from ..estimators.registry import MODELS
from . import console, options

Parameters = Mapping[str, object]


@dataclass(frozen=True)
class Tuning:
    """How much is compiled side by side, and the sizes at which other code is met."""

    n_processes: int = 8
    few_rows: int = 60
    # More than the rows whose kernel values are computed in float64, or by NumPy.
    some_rows: int = 600
    # More than a working set holds, and than have their gradient computed anew at the end.
    many_rows: int = 4200
    few_columns: int = 3
    # More than all take part in every step of an ℓ1 machine.
    many_columns: int = 96
    # The share of non-zeros at which rows of many columns are stored as sparse ones.
    density: float = 0.1
    # More than after which perceptrons keep the margins of few samples.
    n_passes: int = 20


TUNING = Tuning()

PLANES: dict[str, Sequence[Parameters]] = {
    "perceptron": [{}, {"multi_class": "kesler"}, {"update": "batch"}],
    "pocket": [{}, {"multi_class": "kesler"}],
    "relaxation": [{}, {"multi_class": "kesler"}],
    "lms": [{}],
    "ho-kashyap": [{}],
    "pseudoinverse": [{}],
}
LINEAR_MACHINES: dict[str, Sequence[Parameters]] = {
    "linear-svc": [
        *({"loss": loss, "solver": solver, "multi_class": kind}
          for loss in ("hinge", "squared_hinge")
          for solver in ("newton", "interior-point", "coordinate-descent")
          for kind in ("ovr", "ovo")
          if (loss, solver) != ("squared_hinge", "interior-point")),
        {"multi_class": "crammer_singer"},
        {"C": float("inf")},
        *({"penalty": "l1", "C": 100.0, "solver": solver}
          for solver in ("newton", "coordinate-descent")),
    ],
    "linear-svr": [
        {"loss": loss, "solver": solver, "epsilon": 0.1}
        for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
        for solver in ("auto", "newton", "interior-point", "coordinate-descent")
        if (loss, solver) != ("squared_epsilon_insensitive", "interior-point")
    ],
}  # fmt: skip
KERNEL_MACHINES: dict[str, Sequence[Parameters]] = {
    "svc": [
        {}, {"C": 1000.0}, {"loss": "squared_hinge"}, {"fit_intercept": False},
        {"solver": "decomposition"}, {"solver": "smo"}, {"solver": "active-set"},
        {"kernel": "linear"}, {"kernel": "poly"}, {"multi_class": "ovr"}, {"C": float("inf")},
        {"multi_class": "crammer_singer"},
    ],
    "nusvc": [{"nu": 0.1}],
    # Numbers of classes are targets as good as any.
    "svr": [
        {}, {"C": 1000.0}, {"loss": "squared_epsilon_insensitive"}, {"fit_intercept": False},
        {"kernel": "linear"},
    ],
    "nu-svr": [{}],
    "one-class": [{"nu": 0.1}],
    "kernel-perceptron": [{}],
}  # fmt: skip
# What differs by the type of rows: how kernel values are computed.
KERNELS: dict[str, Sequence[Parameters]] = {
    "svc": [
        {}, {"loss": "squared_hinge"}, {"fit_intercept": False}, {"kernel": "linear"},
        {"kernel": "poly"},
    ],
    "nusvc": [{"nu": 0.1}],
}  # fmt: skip
# The same where few rows lead there: these take long on many.
SLOW_KERNELS: dict[str, Sequence[Parameters]] = {
    "svc": [{"solver": "active-set"}],
    "kernel-perceptron": [{}],
}
SEARCHES: dict[str, Sequence[Parameters]] = {
    "SVCCV": [{"Cs": [1.0, 10.0], "gammas": [1.0], "cv": 2, "refit": False}],
    "LinearSVCCV": [{"Cs": [1.0, 10.0], "cv": 2, "refit": False}],
}
MANY_CLASSES: dict[str, Sequence[Parameters]] = {"svc": [{}, {"fit_intercept": False}]}


class Kind(NamedTuple):
    """A type of rows that compiled code distinguishes."""

    dtype: str
    sparse: bool

    def __str__(self) -> str:
        return f"{'CSR' if self.sparse else 'dense'} {self.dtype}"


KINDS = [Kind(dtype, sparse) for dtype in ("float64", "float32") for sparse in (False, True)]


class Lot(NamedTuple):
    """Fits of some models, compiled by one process."""

    name: str
    models: dict[str, Sequence[Parameters]]
    kinds: Sequence[Kind]
    n_rows: Sequence[int]
    n_classes: Sequence[int] = (2, 3)
    after: str = ""


def _lots() -> Iterator[Lot]:
    """Yield the lots: those that others wait for, and long ones, first."""
    few, some, many = [TUNING.few_rows], [TUNING.some_rows], [TUNING.many_rows]
    # Kernel machines of few rows compute in float64, others in float32.
    first, second = "kernel machines of few rows", "kernel machines of many rows"
    yield Lot(first, KERNEL_MACHINES, KINDS[:1], few)
    yield Lot(second, KERNEL_MACHINES, KINDS[:1], some, after=first)
    yield Lot("kernel values of many rows", KERNELS, KINDS, some + many, (2,), after=second)
    yield Lot("kernel machines of many classes", MANY_CLASSES, KINDS, many, (12,), after=second)
    yield Lot("kernel values of slow machines", SLOW_KERNELS, KINDS, few + some, (2,), after=second)
    yield Lot("kernel values of few rows", KERNELS, KINDS[1:], few, (2,), after=first)
    yield Lot("searches", SEARCHES, KINDS, few, after=second)
    for kind in KINDS:
        yield Lot(f"linear machines, {kind}", LINEAR_MACHINES, [kind], few)
        yield Lot(f"planes, {kind}", PLANES, [kind], few)


LOTS = list(_lots())


@click.command()
@options.as_json
def warmup(as_json: bool) -> None:
    """Compile everything once, so that the first fit of a program starts faster.

    The compiled code is cached beside the package, or in NUMBA_CACHE_DIR, for all programs.

    \b
    Example:
      maxmargin warmup
    """
    started = time.perf_counter()
    seconds: dict[str, float] = {}
    if not as_json:
        console.note(f"compiling {len(LOTS)} lots of functions")
    with console.progress("compiling", len(LOTS)) as bar:
        for name, taken in _compile_all():
            seconds[name] = taken
            bar.advance(name)
            if not as_json:
                place = f"{len(seconds)} of {len(LOTS)}"
                click.echo(f"{place:>8}  {name:32} {console.seconds(taken)}")
    total = time.perf_counter() - started
    if as_json:
        console.print_json({"seconds": seconds, "total": total})
    else:
        click.echo(f"compiled in {console.seconds(total)}")


def _compile_all() -> Iterator[tuple[str, float]]:
    """Compile every lot; yield its name and seconds as soon as it is done."""
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from multiprocessing import get_context

    n_processes = min(TUNING.n_processes, len(LOTS), os.cpu_count() or 1)
    waiting, working, ended = list(LOTS), set[Future[tuple[str, float]]](), {""}
    with ProcessPoolExecutor(n_processes, get_context("spawn")) as pool:
        while waiting or working:
            ready = [lot for lot in waiting if lot.after in ended][: n_processes - len(working)]
            waiting = [lot for lot in waiting if lot not in ready]
            working |= {pool.submit(compile_lot, lot) for lot in ready}
            done, working = wait(working, return_when=FIRST_COMPLETED)
            for each in done:
                name, seconds = each.result()
                ended.add(name)
                yield name, seconds


def compile_lot(lot: Lot) -> tuple[str, float]:
    """Make the fits of a lot; return its name and the seconds taken."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, variants in lot.models.items():
            for parameters in variants:
                for X, y in _samples(lot):
                    # In another order the labels belong to classes that no plane separates.
                    for labels in (y, y[::-1]) if name in PLANES else (y,):
                        _fit(name, parameters, X, labels)
    return lot.name, time.perf_counter() - started


def _fit(name: str, parameters: Parameters, X: Any, y: Any) -> None:
    """Fit a model and use it, if it accepts such data."""
    import maxmargin

    kind = getattr(maxmargin, name) if name in SEARCHES else MODELS[name]
    model = kind(**parameters)
    if name in {*PLANES, "kernel-perceptron"} and "max_iter" in model.get_params():
        model.set_params(max_iter=TUNING.n_passes)
    try:
        model.fit(X, y)
        if name not in SEARCHES:
            model.predict(X[:1])
    except ValueError:  # not separable, or not as a joint problem: what leads there is compiled
        return


def _samples(lot: Lot) -> Iterator[tuple[Any, Any]]:
    """Yield samples that reach different code: two classes and more, dense and sparse rows."""
    import numpy as np
    from scipy import sparse
    from sklearn.datasets import make_blobs

    rng = np.random.default_rng(0)
    for kind, n_rows, n_classes in product(lot.kinds, lot.n_rows, lot.n_classes):
        for n_columns in (TUNING.few_columns, TUNING.many_columns):
            X, y = make_blobs(n_rows, n_columns, centers=n_classes, random_state=0)
            if n_columns == TUNING.many_columns:  # few non-zeros: dense rows become sparse ones
                X = X * (rng.random(X.shape) < TUNING.density)
            X = np.asarray(X / np.abs(X).max(), dtype=kind.dtype)
            yield (sparse.csr_matrix(X) if kind.sparse else X), y


COMMANDS = [warmup]
