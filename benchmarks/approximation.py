"""SVC on features of its kernel: time, memory and error beside the exact machine on fewer rows.

    python benchmarks/approximation.py [--rows 1000000] [--components 300] [--approximate nystroem]

Rows of 20 features; the class is the sign of a smooth function of five of them, 5 % of the labels
are flipped, and 100,000 further rows are for the test. The certificate is part of the fit.
"""

import argparse
import resource
import time

import numpy as np

import maxmargin as mm


def data(n, rng):
    """Return rows and labels of two classes that no plane separates."""
    X = rng.standard_normal((n, 20)).astype(np.float32)
    g = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5 + 0.3 * X[:, 4]
    y = (g > 0).astype(int)
    flipped = rng.random(n) < 0.05
    return X, np.where(flipped, 1 - y, y)


def measured(name, model, training, test):
    """Fit and test a model, and print one line."""
    cpu, started = time.process_time(), time.perf_counter()
    model.fit(*training)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    started = time.perf_counter()
    error = 1.0 - model.score(*test)
    predicting = time.perf_counter() - started
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:28} fit {seconds:6.1f} s (CPU {cpu:6.1f} s), {len(test[1])} predictions "
        f"{predicting:5.2f} s, test error {100 * error:5.2f} %, memory {most:.2f} GiB"
    )
    print(f"{'':28} {model.certificate_}")
    if hasattr(model, "kernel_error_"):
        rms, largest = model.kernel_error_
        print(f"{'':28} error of the kernel: rms {rms:.3g}, largest {largest:.3g}")


def main():
    """Measure the fits that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--components", type=int, default=300)
    parser.add_argument("--approximate", choices=("nystroem", "fourier", "both"), default="both")
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--exact", type=int, default=20_000, help="rows of the exact machine")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    training, test = data(given.rows, rng), data(100_000, rng)
    warm = data(3000, rng)
    kinds = ("nystroem", "fourier") if given.approximate == "both" else (given.approximate,)
    options = {"C": 1.0, "loss": given.loss, "n_components": given.components, "random_state": 0}
    for kind in kinds:
        mm.SVC(approximate=kind, **options).fit(*warm)  # compiles
        model = mm.SVC(approximate=kind, **options)
        measured(f"{kind}, {given.rows} rows", model, training, test)
    plane = mm.LinearSVC(C=1.0, loss=given.loss)
    measured(f"LinearSVC, {given.rows} rows", plane, training, test)
    if given.exact:
        some = [each[: given.exact] for each in training]
        measured(f"SVC, {given.exact} rows", mm.SVC(C=1.0), some, test)


if __name__ == "__main__":
    main()
