"""What a long computation will take, said before it begins, and what to use instead."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from . import console

if TYPE_CHECKING:
    from ..estimators.column_encoder import ColumnEncoder
    from ..files import DataTable

# Rows from which the time of a kernel machine is estimated, and the sizes of the timed samples;
# the first one is not timed, as it may compile.
MANY_ROWS, SAMPLES = 50_000, (500, 2000, 6000)
# Seconds that a fit to a sample may take, and from which other models are named.
SAMPLE_SECONDS, LONG_SECONDS = 5.0, 30.0
# Seconds of a recording or of a film from which it is announced.
PATIENCE_SECONDS = 3.0
# How times grow with the rows: exponents between these are believed.
LEAST_GROWTH, MOST_GROWTH = 1.0, 3.0
INSTEAD = {
    "SVC": "--approximate nystroem, which keeps the kernel, or --model linear-svc",
    "NuSVC": "--model svc --approximate nystroem, which keeps the kernel, or --model linear-svc",
    "KernelPerceptron": "--model svc --approximate nystroem, or --model linear-svc",
    "SVR": "--model linear-svr",
    "NuSVR": "--model linear-svr",
    "OneClassSVM": "a sample of the rows",
}


def announce_fit(encoder: ColumnEncoder, table: DataTable, model: Any, n_fits: int = 1) -> None:
    """Say what a kernel machine on very many rows will take, by fits to samples of them."""
    n = int(table.X.shape[0])
    if n < MANY_ROWS or not _has_full_kernel(model):
        return
    with console.progress("estimating the time of the fit"), console.collected_warnings():
        timed = _timed_samples(encoder, table, model)
    if timed is None:
        return
    seconds = n_fits * extrapolated(timed, n)
    sizes, times = zip(*timed, strict=True)
    fits = f"{n_fits} fits" if n_fits > 1 else "the fit"
    text = (
        f"{n} rows with a kernel: {fits} will take about {console.duration(seconds)} (samples of "
        f"{sizes[0]} and {sizes[1]} rows took {times[0]:.2g} and {times[1]:.2g} s)."
    )
    if seconds >= LONG_SECONDS:
        instead = INSTEAD.get(type(model).__name__, "a linear model")
        text += f" For so many rows use {instead}; --time-limit SECONDS keeps the best so far."
    console.note(text)


def _has_full_kernel(model: Any) -> bool:
    """Return whether a model takes time with the square of the rows, or more."""
    from ..kernels import Linear

    kernel = getattr(model, "kernel", None)
    if kernel is None or kernel == "linear" or isinstance(kernel, Linear):
        return False
    on_cpu = getattr(model, "device", "cpu") in ("auto", "cpu")
    return on_cpu and getattr(model, "approximate", None) is None


def _timed_samples(
    encoder: ColumnEncoder, table: DataTable, model: Any
) -> list[tuple[int, float]] | None:
    """Return rows and seconds of fits to two random samples; None where they cannot be fitted."""
    import numpy as np
    from sklearn.base import clone

    order = np.random.default_rng(0).permutation(table.X.shape[0])[: SAMPLES[-1]]
    timed = []
    try:
        X = encoder.fit_transform(table.X[np.sort(order)])
        y = None if table.y is None else table.y[np.sort(order)]
        mixed = np.random.default_rng(1).permutation(X.shape[0])
        for n in SAMPLES:
            some = np.sort(mixed[:n])
            sample = clone(model)
            if "time_limit" in sample.get_params():
                sample.set_params(time_limit=SAMPLE_SECONDS)
            started = time.perf_counter()
            sample.fit(X[some], None if y is None else y[some])
            timed.append((n, time.perf_counter() - started))
    except (ValueError, TypeError, MemoryError):  # the fit itself will say what is wrong
        return None
    return timed[1:]


def extrapolated(timed: list[tuple[int, float]], n: int) -> float:
    """Return the seconds of a fit to n rows, as a power of the rows through two measurements.

    >>> round(extrapolated([(1000, 0.1), (2000, 0.4)], 20_000))
    40
    """
    (n_0, t_0), (n_1, t_1) = timed
    growth = math.log(max(t_1, 1e-6) / max(t_0, 1e-6)) / math.log(n_1 / n_0)
    growth = min(max(growth, LEAST_GROWTH), MOST_GROWTH)
    return float(t_1 * (n / n_1) ** growth)


def announce_recording(model: Any, X: Any, y: Any) -> None:
    """Say what the recording of every update of an algorithm may take, where that is long."""
    from sklearn.base import clone

    from ..progress import Recorder

    passes = int(getattr(model, "max_iter", 0) or 0)
    if passes <= 1:
        return
    sample = clone(model).set_params(max_iter=1, callback=Recorder(every_update=True))
    with console.progress("estimating the time"), console.collected_warnings():
        sample.fit(X, y)  # compiles
        started = time.perf_counter()
        sample.fit(X, y)
        seconds = passes * (time.perf_counter() - started)
    if seconds >= PATIENCE_SECONDS:
        console.note(
            f"recording {len(y)} rows in up to {passes} passes may take up to "
            f"{console.duration(seconds)}: --max-iter N ends it earlier."
        )


def announce_film(display: Any) -> None:
    """Say what the frames of an animation will take, where that is long."""
    started = time.perf_counter()
    display.draw(0)
    display.figure_.canvas.draw()
    seconds = len(display) * (time.perf_counter() - started)
    if seconds >= PATIENCE_SECONDS:
        console.note(f"{len(display)} frames will take about {console.duration(seconds)}.")
