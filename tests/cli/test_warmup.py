"""``warmup``: what it compiles, and that nothing is left for later fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from maxmargin.cli import warmup
from maxmargin.estimators.registry import MODELS
from tests.helpers import broad_fits
from tests.helpers.command_line import bad, call


def test_every_model_is_in_a_lot():
    named = {name for lot in warmup.LOTS for name in lot.models} - set(warmup.SEARCHES)
    assert {MODELS[name].estimator for name in named} == {v.estimator for v in MODELS.values()}


def test_every_type_of_rows_is_in_a_lot():
    for models in (warmup.PLANES, warmup.LINEAR_MACHINES, warmup.KERNELS):
        kinds = {kind for lot in warmup.LOTS if lot.models is models for kind in lot.kinds}
        assert kinds == set(warmup.KINDS)


def test_lots_wait_for_others_that_come_before_them():
    names = [lot.name for lot in warmup.LOTS]
    assert len(set(names)) == len(names)
    for k, lot in enumerate(warmup.LOTS):
        assert not lot.after or lot.after in names[:k]


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


def test_no_other_arguments():
    bad(call("warmup", "everything"), "everything", code=2)


@pytest.mark.slow
def test_nothing_is_left_to_compile(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-m", "maxmargin", "warmup"], env=environment, check=True, timeout=600
    )
    done = subprocess.run(
        [sys.executable, broad_fits.__file__], env=environment, check=True, timeout=1800,
        capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == []
