"""``warmup``: what it compiles, and that nothing is left for later fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from maxmargin.cli import warmup
from maxmargin.estimators.registry import MODELS
from tests.helpers.command_line import bad, run

FITS = textwrap.dedent("""
    import json, logging, warnings
    import numpy as np
    from scipy import sparse
    from sklearn.datasets import make_blobs
    import maxmargin as mm
    import maxmargin.engines.cpu.engine
    from numba.core import event

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")

    class Names(event.Listener):
        found = []
        def on_start(self, event):
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("maxmargin."):
                self.found.append(f"{function.__qualname__} of {label}: {event.data['args']}")
        def on_end(self, event):
            pass

    event.register("numba:compile", Names())
    rng = np.random.default_rng(1)
    for n in (30, 300, 2500, 5000):
        for k in (2, 4, 20)[: 2 if n < 1000 else 3]:
            for d, share in ((5, 1.0), (200, 0.08)):
                X, y = make_blobs(n, d, centers=k, random_state=1, cluster_std=1.5)
                X = X / np.abs(X).max() * (rng.random(X.shape) <= share)
                weights, locked = rng.uniform(0.5, 2.0, n), X.copy()
                locked.setflags(write=False)
                kinds = [X, X.astype("f4"), sparse.csr_matrix(X), sparse.csr_matrix(X, dtype="f4"),
                         np.asfortranarray(X), locked]
                models = [
                    mm.SVC(), mm.SVC(kernel="linear"), mm.SVC(kernel="poly"), mm.NuSVC(nu=0.1),
                    mm.SVC(loss="squared_hinge"), mm.SVC(fit_intercept=False), mm.LinearSVC(),
                    mm.LinearSVC(loss="hinge"), mm.Perceptron(max_iter=3), mm.Pocket(max_iter=3),
                    mm.LinearSVC(loss="hinge", solver="coordinate-descent"),
                    mm.LinearSVC(loss="hinge", solver="interior-point"),
                    mm.LMS(max_iter=3), mm.Relaxation(max_iter=3),
                ]
                if k > 2:
                    models += [
                        mm.SVC(multi_class="ovr"), mm.Perceptron(multi_class="kesler", max_iter=3),
                        mm.LinearSVC(multi_class="crammer_singer", max_iter=20),
                    ]
                if n < 1000:
                    models += [
                        mm.SVC(C=100.0), mm.SVC(solver="active-set"), mm.SVC(solver="smo"),
                        mm.SVC(C=np.inf, gamma=5.0), mm.SVC(kernel="sigmoid"),
                        mm.KernelPerceptron(max_iter=3),
                    ]
                for rows in kinds[: 6 if n < 3000 else 4]:
                    for model in models:
                        label = f"{model} on {n} x {d}, {k} classes, {type(rows)} {rows.dtype}"
                        model.fit(rows, y).predict(rows[:1])
                    mm.LinearSVC(loss="hinge").fit(rows, y, sample_weight=weights)
                    mm.SVC().fit(rows, y, sample_weight=weights)
                    if k == 2:
                        mm.separability(rows, y)
    print(json.dumps(Names.found))
""")


def test_every_model_is_in_a_lot():
    named = {name for lot in warmup.LOTS for name in lot.models}
    assert {MODELS[name].estimator for name in named} == {v.estimator for v in MODELS.values()}


def test_every_type_of_rows_is_in_a_lot():
    for models in (warmup.PLANES, warmup.LINEAR_MACHINES, warmup.KERNELS):
        kinds = {kind for lot in warmup.LOTS if lot.models is models for kind in lot.kinds}
        assert kinds == set(warmup.KINDS)


def test_lots_are_reported_as_they_are_done(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "_compile_all", lambda: iter([("planes", 1.5), ("kernels", 0.25)]))
    warmup.warmup.callback(as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["1", "of", str(len(warmup.LOTS)), "planes", "1.50", "s"]
    assert lines[-1].startswith("compiled in ")
    warmup.warmup.callback(as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["seconds"] == {"planes": 1.5, "kernels": 0.25}


def test_a_lot_is_compiled():
    lot = warmup.Lot("some", {"perceptron": [{}]}, warmup.KINDS[:1], [30])
    name, seconds = warmup.compile_lot(lot)
    assert (name, seconds > 0.0) == ("some", True)


def test_no_other_arguments(tmp_path):
    bad(run("warmup", "everything", cwd=tmp_path), "everything", code=2)


@pytest.mark.slow
def test_nothing_is_left_to_compile(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-m", "maxmargin", "warmup"], env=environment, check=True, timeout=600
    )
    done = subprocess.run(
        [sys.executable, "-c", FITS], env=environment, check=True, timeout=1800,
        capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == []
