"""Newton's method on samples, near the kink and by conjugate gradients."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from maxmargin.engines.registry import engine_for
from maxmargin.runtime import vectors
from maxmargin.runtime.threads import at_most
from maxmargin.solvers.primal import direction
from maxmargin.solvers.primal.newton import SemismoothNewton
from tests.helpers.primal_solvers import (
    BIASES,
    KINDS,
    LOSSES,
    MANY,
    METHODS,
    WAYS,
    assert_solves,
    cloud,
    posed,
    weights,
)


@pytest.mark.parametrize("kind", ["float64", "csr", "blocks"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_of_newtons_method(way, kind, monkeypatch, watched):
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=2000))
    called = [watched(*place) for place in way.called]
    X, y = cloud(MANY, 6)
    X = KINDS[kind](X)
    method = replace(METHODS[0], make=partial(SemismoothNewton, tuning=way.tuning))
    for loss in LOSSES:
        for bias in BIASES:
            C = weights("some zero" if bias == "free" else "equal", MANY)
            assert_solves(method, posed(X, y, C, loss, bias), 1e-7)
    assert all(called)  # the case under test occurred
    if "samples" in way.name:
        assert any(plane is not None for plane in called[0])


def test_fewer_free_samples_than_features(watched):
    """The system of a step is then as large as they are many."""
    by_gram = watched(direction, "by_gram")
    X, y = cloud(30, 60)
    for bias in BIASES:
        assert_solves(METHODS[0], posed(X, y, 1.0, "hinge", bias), 1e-8)
    assert by_gram


def test_samples_have_a_row_of_every_run(monkeypatch):
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=64))
    for n, size in [(13, 2), (1000, 166), (997, 100), (50, 50)]:
        found = []
        for n_jobs in (1, 2):
            with at_most(n_jobs):
                found.append(engine_for(np.empty((n, 1))).features().draw(size))
        np.testing.assert_array_equal(found[0], found[1])
        ends = np.arange(size + 1) * n // size
        assert (found[0] >= ends[:-1]).all()
        assert (found[0] < ends[1:]).all()


def test_many_columns_are_multiplied_with_before_they_are_summed(watched):
    products, sums = (watched(direction, name) for name in ("by_conjugate_gradients", "by_columns"))
    X, y = cloud(1500, 300)
    assert_solves(METHODS[0], posed(X, y, 1.0, "squared_hinge", "free"), 1e-7)
    assert products
    assert not sums
    assert_solves(METHODS[0], posed(X.cumsum(axis=1), y, 1.0, "squared_hinge", "free"), 1e-7)
    assert sums  # products alone would have been many
