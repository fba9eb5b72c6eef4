"""
More rows than one machine holds
================================

Fits to Dask collections, on processes of this machine. The rows are made on the workers and stay
there; what comes back in every round is as small as a matrix of d × d numbers. On a real cluster
only the line that makes the client differs. Needs ``pip install "maxmargin[dask]"``; this page was
built without running it.
"""

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import maxmargin as mm

ROWS, PARTITIONS, FEATURES = 200_000, 8, 20


def make_rows(rows_per_partition: int) -> tuple[da.Array, da.Array]:
    """Return two classes that overlap, in partitions that the workers generate."""
    rng = da.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES), chunks=(rows_per_partition, FEATURES))
    w = np.linspace(1.0, -1.0, FEATURES)
    noise = rng.standard_normal(ROWS, chunks=rows_per_partition)
    return X, da.where(X @ w + noise > 0.0, 1, -1)


def linear_machine(X: da.Array, y: da.Array) -> None:
    """Fit a linear machine to all rows; predict them lazily."""
    model = mm.LinearSVC(loss="hinge", tol=1e-4).fit(X, y)
    print(f"LinearSVC on {len(X):,} rows in {X.numblocks[0]} partitions")
    print("certificate:", model.certificate_)
    print("fit report:", model.fit_report_)

    labels = model.predict(X)  # nothing is computed yet
    print(f"predictions: a {type(labels).__name__} of {labels.numblocks[0]} blocks")
    print(f"training error {float((labels != y).mean().compute()):.4f}, "
          f"accuracy {model.score(X, y):.4f}")  # fmt: skip


def kernel_machine(X: da.Array, y: da.Array) -> None:
    """Fit a kernel machine to some of the rows: their support vectors come to the client."""
    X, y = X[:3000], y[:3000]
    model = mm.SVC(kernel="rbf", gamma=0.05).fit(X, y)
    print(f"SVC on {len(X):,} rows: {model.support_.size} support vectors")
    print("certificate:", model.certificate_)


def main() -> None:
    """Start two worker processes, fit, and stop them."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        X, y = make_rows(ROWS // PARTITIONS)
        linear_machine(X, y)
        kernel_machine(X, y)


# Worker processes import this file: what starts them must not run again there.
if __name__ == "__main__":
    main()
