"""Measure starts: commands, first fits with empty and filled caches, joblib's workers, warmup.

    python benchmarks/start.py [--only GROUP ...] [--repeat N] [--out FILE]

Every start is a fresh process; the shortest of some repetitions counts, and the processor time of
the process and its children stands beside it, which other programs disturb less. The groups:

- ``commands``: seconds to the first character on a terminal;
- ``empty``: import and first fit with an empty cache of compiled code, in seconds, and what was
  compiled;
- ``filled``: the same with a filled cache, beyond ``import sklearn.svm``, against scikit-learn's;
- ``large``: the first and the second fit of some thousand rows in a process;
- ``workers``: a grid search on iris with two workers that are there already, and new ones, against
  scikit-learn's;
- ``warmup``: `maxmargin warmup` into an empty cache, and what later fits still compile.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMMANDS: dict[str, list[str]] = {
    "--help": ["--help"],
    "fit --help": ["fit", "--help"],
    "fit, no such file": ["fit", "none.csv", "--target", "y"],
    "fit": ["fit", "{data}", "--target", "y"],
    "separable": ["separable", "{data}", "--target", "y"],
    "warmup": ["warmup"],
}

FITS = {
    "SVC, 4 x 1": "SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])",
    "SVC, iris": "SVC().fit(*iris)",
    "SVC, 500 x 10": "SVC().fit(*two)",
    "LinearSVC, 500 x 10": "LinearSVC().fit(*two)",
    "Perceptron, 500 x 10": "Perceptron().fit(*two)",
}
LARGE = {
    "SVC, 6,000 x 20, dense": "mm.SVC().fit(X, y)",
    "SVC, 6,000 x 20, CSR": "mm.SVC().fit(sparse.csr_matrix(X), y)",
    "LinearSVC, 6,000 x 20": "mm.LinearSVC().fit(X, y)",
}

FIRST = textwrap.dedent("""
    import json, logging, sys, time
    logging.disable(logging.WARNING)
    import sklearn.svm, sklearn.linear_model
    from sklearn.datasets import load_iris, make_classification
    iris, two = load_iris(return_X_y=True), make_classification(500, 10, random_state=0)
    started = time.perf_counter(), time.process_time()
    {imports}
    {fit}
    took = time.perf_counter() - started[0], time.process_time() - started[1]
    print(json.dumps(took))
""")
TWICE = textwrap.dedent("""
    import json, logging, time
    logging.disable(logging.WARNING)
    import maxmargin as mm
    from scipy import sparse
    from sklearn.datasets import make_classification
    X, y = make_classification(6000, 20, random_state=0)
    took = []
    for _ in range(3):
        started = time.perf_counter()
        {fit}
        took.append(time.perf_counter() - started)
    print(json.dumps((took[0], min(took[1:]))))
""")
SEARCH = textwrap.dedent("""
    import json, logging, time
    logging.disable(logging.WARNING)
    import sklearn.svm, maxmargin as mm
    from joblib.externals.loky import get_reusable_executor
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV
    X, y = load_iris(return_X_y=True)
    grid = {"C": [0.1, 1, 10, 100, 1000], "gamma": [0.001, 0.01, 0.1, 1, 10]}
    def search(model):
        started = time.perf_counter()
        GridSearchCV(model, grid, n_jobs=2).fit(X, y)
        return time.perf_counter() - started
    took = {}
    for name, model in (("theirs", sklearn.svm.SVC()), ("ours", mm.SVC())):
        get_reusable_executor().shutdown(wait=True)
        took[name + ", new workers"] = search(model)
        took[name] = min(search(model) for _ in range(3))
    print(json.dumps(took))
""")
BYTECODE = tempfile.TemporaryDirectory()
# Fits of all kinds, which list what they compile; the test of warmup makes the same ones.
BROAD = Path(__file__).parents[1] / "tests" / "helpers" / "broad_fits.py"


def environment(cache: str) -> dict[str, str]:
    """Return the variables of a process with a cache of its own.

    Bytecode of modules is there, as in an installed package, also where that cache is empty.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": BYTECODE.name}


def run(program: str, cache: str) -> Any:
    """Return what a program prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(cache), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def first_character(arguments: list[str], cache: str) -> float:
    """Return the seconds until a command writes to its terminal."""
    ours, theirs = pty.openpty()
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "maxmargin", *arguments], env=environment(cache), stdout=theirs,
        stderr=theirs, stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    os.read(ours, 1)
    took = time.perf_counter() - started
    os.killpg(process.pid, 9)
    process.wait()
    os.close(ours)
    return took


def of_commands(cache: str, repeat: int) -> dict[str, Any]:
    """Return the seconds to the first character of some commands."""
    data = Path(cache) / "data.csv"
    data.write_text("a,b,y\n" + "".join(f"{i},{i % 7},{int(i > 20)}\n" for i in range(40)))
    found = {}
    for name, arguments in COMMANDS.items():
        given = [each.format(data=data) for each in arguments]
        found[name] = {"seconds": min(first_character(given, cache) for _ in range(repeat + 1))}
    return found


def of_empty(cache: str, repeat: int) -> dict[str, Any]:
    """Return the seconds of import and first fit with an empty cache."""
    found = {}
    for name, fit in FITS.items():
        program = FIRST.format(imports="import maxmargin as mm", fit=f"mm.{fit}")
        run(program, cache)  # modules of this fit
        took = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as empty:
                took.append(run(program, empty))
        found[name] = dict(
            zip(("seconds", "processor"), map(min, zip(*took, strict=True)), strict=True)
        )
    return found


def of_filled(cache: str, repeat: int) -> dict[str, Any]:
    """Return the same with a filled cache, and scikit-learn's first fit."""
    found = {}
    for name, fit in FITS.items():
        ours = FIRST.format(imports="import maxmargin as mm", fit=f"mm.{fit}")
        module = "linear_model" if "Perceptron" in fit else "svm"
        theirs = FIRST.format(imports="", fit=f"sklearn.{module}.{fit}")
        run(ours, cache)
        seconds, processor = map(min, zip(*(run(ours, cache) for _ in range(repeat)), strict=True))
        of_theirs = min(run(theirs, cache)[0] for _ in range(repeat))
        found[name] = {"seconds": seconds, "processor": processor, "theirs": of_theirs}
    return found


def of_large(cache: str, repeat: int) -> dict[str, Any]:
    """Return the seconds of the first and of later fits of a process, with a filled cache."""
    found = {}
    for name, fit in LARGE.items():
        program = TWICE.format(fit=fit)
        run(program, cache)
        first, later = map(min, zip(*(run(program, cache) for _ in range(repeat)), strict=True))
        found[name] = {"first": first, "later": later}
    return found


def of_workers(cache: str, repeat: int) -> dict[str, Any]:
    """Return the seconds of grid searches with two workers, with a filled cache."""
    run(SEARCH, cache)
    runs = [run(SEARCH, cache) for _ in range(repeat)]
    return {name: {"seconds": min(each[name] for each in runs)} for name in runs[0]}


def of_warmup(cache: str, repeat: int) -> dict[str, Any]:
    """Return the seconds of warmup, and the functions that fits still compile after it."""
    with tempfile.TemporaryDirectory() as empty:
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "maxmargin", "warmup", "--json"], env=environment(empty),
            capture_output=True, check=True,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        left = run(BROAD.read_text(), empty)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"warmup": {"seconds": seconds, "processor": processor, "still compiled": left}}


GROUPS: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "commands": of_commands,
    "empty": of_empty,
    "filled": of_filled,
    "large": of_large,
    "workers": of_workers,
    "warmup": of_warmup,
}


def main() -> None:
    """Measure the groups that are wanted, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in options.only:
            found[name] = GROUPS[name](cache, options.repeat)
            print(f"{name}")
            for what, numbers in found[name].items():
                shown = (
                    f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}"
                    for key, value in numbers.items()
                )
                print(f"  {what:28} {', '.join(shown)}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
