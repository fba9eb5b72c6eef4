"""Where the time of linear machines on a GPU goes: whole fits, their phases, their operations.

    python benchmarks/gpu_linear.py --data DIR            # covtype, MNIST even/odd, 5,000,000 x 28
    python benchmarks/gpu_linear.py --case generated --calls --profile
    python benchmarks/gpu_linear.py --device cpu --rows 20000 --case generated   # without a GPU

X and y are on the device before the clock starts. The first fit, which compiles, is reported on its
own; of the others the fastest counts. Phases are those of a fit of its own, which waits for the
device at the end of each: check, tasks, solve, certify, publish. ``--calls`` does the same for
every operation of the state of the machine, ``--profile`` lists the kernels that take longest.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import maxmargin as mm
from maxmargin.estimators import fitting

FITS = 5
OPERATIONS = (
    "place", "start", "sample", "total", "recentre", "project", "aim", "slopes", "advance", "reach",
    "hold", "take_back", "kink", "curvature", "solve_columns", "kink_rows", "loss", "class_costs",
    "best_biases", "dual", "keep", "alpha",
)  # fmt: skip


def covtype(data: Path, device: Any, rows: int | None) -> tuple[Any, Any, float]:
    """Return covtype, class 2 against the rest, columns scaled to [0, 1]."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(data / "covtype.bz2"))
    X = X[:rows].toarray()
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12)
    return _on(X, y[:rows] == 2, device), 1.0


def mnist(data: Path, device: Any, rows: int | None) -> tuple[Any, Any, float]:
    """Return MNIST, odd digits against even ones."""

    def read(name: str, offset: int) -> Any:
        with gzip.open(data / f"mnist-train-{name}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset)

    X = read("images-idx3", 16).reshape(-1, 784)[:rows] / 255.0
    return _on(X, read("labels-idx1", 8)[:rows] % 2, device), 0.1


def generated(data: Path, device: Any, rows: int | None) -> tuple[Any, Any, float]:
    """Return rows of a normal distribution, with labels of a plane and noise."""
    generator = torch.Generator(device).manual_seed(0)
    n = rows or 5_000_000
    X = torch.randn(n, 28, device=device, generator=generator)
    w = torch.randn(28, device=device, generator=generator)
    noise = torch.randn(n, device=device, generator=generator)
    return (X, (X @ w + 2.0 * noise > 0).long()), 1.0


CASES: dict[str, Callable[..., Any]] = {"covtype": covtype, "mnist": mnist, "generated": generated}


def _on(X: Any, y: Any, device: Any) -> tuple[Any, Any]:
    X = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
    return X.to(device), torch.from_numpy(np.ascontiguousarray(y, dtype=np.int64)).to(device)


class Clock:
    """Seconds and calls by name; the device has finished when a name ends."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is timed under a name."""

        def call(*arguments: Any, **options: Any) -> Any:
            start = self.now()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds[name] += self.now() - start
                self.calls[name] += 1

        return call

    def now(self) -> float:
        """Return the time when the device has finished."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def __str__(self) -> str:
        ordered = self.seconds.most_common()
        return "\n".join(
            f"    {name:<14}{self.calls[name]:5d} calls {1e3 * seconds:9.3f} ms"
            for name, seconds in ordered
        )


@contextmanager
def patched(where: Any, names: dict[str, Callable[..., Any]]) -> Iterator[None]:
    """Replace attributes for a while."""
    before = {name: getattr(where, name) for name in names}
    for name, value in names.items():
        setattr(where, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(where, name, value)


def phases(model: Any, X: Any, y: Any, device: Any) -> Clock:
    """Return the seconds of the phases of one fit."""
    clock = Clock(device)
    shown = {"_solve": "solve", "_certified": "certify", "_publish": "publish"}
    names = {name: clock.timed(label, getattr(fitting, name)) for name, label in shown.items()}
    tasks = clock.timed("tasks", fitting.Method.tasks)
    checks = {"_check_training": clock.timed("check", model._check_training)}
    with patched(fitting, names), patched(fitting.Method, {"tasks": tasks}), patched(model, checks):
        clock.timed("fit", model.fit)(X, y)
    return clock


def calls(model: Any, X: Any, y: Any, device: Any) -> Clock:
    """Return the seconds of the operations of the state."""
    from maxmargin.engines.torch.primal_state import TorchPrimalState as State

    clock = Clock(device)
    with patched(State, {name: clock.timed(name, getattr(State, name)) for name in OPERATIONS}):
        model.fit(X, y)
    return clock


def profile(model: Any, X: Any, y: Any) -> str:
    """Return the kernels of one fit that take longest."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as recorded

    with recorded(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        model.fit(X, y)
    return str(found.key_averages().table(sort_by="self_cuda_time_total", row_limit=25))


def measure(
    case: str, data: Path, device: Any, rows: int | None = None, loss: str = "hinge"
) -> Any:
    """Return the model of a case, and the seconds of its fits."""
    (X, y), C = CASES[case](data, device, rows)
    model = mm.LinearSVC(loss=loss, C=C, device="auto")
    clock, seconds = Clock(device), []
    for _ in range(1 + FITS):
        start = clock.now()
        model.fit(X, y)
        seconds.append(clock.now() - start)
    return model, X, y, seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--case", choices=CASES, nargs="*", default=list(CASES))
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cpu":
        _let_the_cpu_be_a_card()
    for case in options.case:
        model, X, y, seconds = measure(case, options.data, device, options.rows, options.loss)
        print(
            f"{case} {tuple(X.shape)}: {1e3 * min(seconds[1:]):.2f} ms (first {seconds[0]:.2f} s), "
            f"{model.n_iter_} steps, gap {model.certificate_.relative_gap:.2g}, "
            f"{model.support_.size} support vectors"
        )
        print(phases(model, X, y, device))
        if options.calls:
            print(calls(model, X, y, device))
        if options.profile:
            print(profile(model, X, y))


def _let_the_cpu_be_a_card() -> None:
    """Run the torch engine on the CPU, to try this program without a GPU."""
    from maxmargin.engines.torch import device as devices

    devices.find_device = lambda name: torch.device("cpu")
    devices.is_card = lambda device: True


if __name__ == "__main__":
    main()
