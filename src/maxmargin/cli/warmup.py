"""``warmup``: compile in advance everything that a fit can need.

Nothing here names a compiled function: small fits of all estimators meet them all, on rows of every
type that compiled code distinguishes. Fits that share little code make up a lot, and lots are
compiled side by side in processes of their own, which write to the same cache.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    # More than the rows whose kernel values are computed in float64.
    some_rows: int = 400
    # More than a working set holds, and than have their gradient computed anew at the end.
    many_rows: int = 4200


TUNING = Tuning()

PLANES: dict[str, Sequence[Parameters]] = {
    "perceptron": [{}, {"multi_class": "kesler"}],
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
    ],
}  # fmt: skip
KERNEL_MACHINES: dict[str, Sequence[Parameters]] = {
    "svc": [
        {}, {"C": 1000.0}, {"loss": "squared_hinge"}, {"fit_intercept": False},
        {"solver": "decomposition"}, {"solver": "smo"}, {"solver": "active-set"},
        {"kernel": "linear"}, {"kernel": "poly"}, {"multi_class": "ovr"}, {"C": float("inf")},
    ],
    "nusvc": [{"nu": 0.1}],
    "kernel-perceptron": [{}, {"multi_class": "kesler"}],
}  # fmt: skip


class Lot(NamedTuple):
    """Fits of one family of models to rows of one type, compiled by one process."""

    name: str
    models: dict[str, Sequence[Parameters]]
    dtype: str
    sparse: bool

    def __str__(self) -> str:
        return f"{self.name}, {'CSR' if self.sparse else 'dense'} {self.dtype}"


FAMILIES = {
    "kernel machines": KERNEL_MACHINES,
    "linear machines": LINEAR_MACHINES,
    "planes": PLANES,
}
# Lots that follow each other share the least.
LOTS = [
    Lot(name, models, dtype, sparse)
    for dtype in ("float64", "float32")
    for sparse in (False, True)
    for name, models in FAMILIES.items()
]


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
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    n_processes = min(TUNING.n_processes, len(LOTS), os.cpu_count() or 1)
    with ProcessPoolExecutor(n_processes, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(compile_lot, lot) for lot in LOTS]):
            yield done.result()


def compile_lot(lot: Lot) -> tuple[str, float]:
    """Make the fits of a lot; return its name and the seconds taken."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, variants in lot.models.items():
            for parameters in variants:
                for X, y in _samples(lot, name):
                    _fit(name, parameters, X, y)
    return str(lot), time.perf_counter() - started


def _fit(name: str, parameters: Parameters, X: Any, y: Any) -> None:
    """Fit a model and use it, if it accepts such data."""
    model = MODELS[name](**parameters)
    if "max_iter" in model.get_params():
        model.set_params(max_iter=50)
    try:
        model.fit(X, y).predict(X[:1])
    except ValueError:  # not separable, or not as a joint problem: what leads there is compiled
        return


def _samples(lot: Lot, name: str) -> Iterator[tuple[Any, Any]]:
    """Yield samples that reach different code: few and many, two classes and more, sparse rows."""
    import numpy as np
    from scipy import sparse
    from sklearn.datasets import make_blobs

    rng = np.random.default_rng(0)
    sizes = [(TUNING.few_rows, 2, 3), (TUNING.few_rows, 3, 3), (TUNING.few_rows, 2, 48)]
    if lot.models is KERNEL_MACHINES:
        sizes += [(TUNING.some_rows, 2, 3), (TUNING.some_rows, 3, 48)]
        if name != "kernel-perceptron":
            sizes += [(TUNING.many_rows, 2, 3), (TUNING.many_rows, 2, 48)]
    for n_rows, n_classes, n_columns in sizes:
        X, y = make_blobs(n_rows, n_columns, centers=n_classes, cluster_std=2.0, random_state=0)
        if n_columns > 40:  # so few non-zeros that dense rows are treated as sparse ones, too
            X = X * (rng.random(X.shape) < 0.1)
        X = np.asarray(X / np.abs(X).max(), dtype=lot.dtype)
        yield (sparse.csr_matrix(X) if lot.sparse else X), y


COMMANDS = [warmup]
