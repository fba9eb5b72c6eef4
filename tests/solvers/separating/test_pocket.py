"""The pocket algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.solvers.separating import pocket
from tests.helpers.algorithms import blobs, cloud, materialised, quiet
from tests.helpers.separating import CLASSES


@quiet
@CLASSES
@pytest.mark.parametrize("weighted", [False, True])
def test_pocket_is_never_worse_than_any_plane_seen(n_classes, weighted):
    X, y = cloud(60, 3, n_classes, seed=17)
    v = np.random.default_rng(17).integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    recorder = mm.Recorder(every_update=True)
    model = mm.Pocket(max_iter=5, multi_class="kesler", callback=recorder).fit(X, y, v)
    Z = materialised(X, y, n_classes)

    def wrong(w, b):
        margins = Z @ np.column_stack([w, b]).ravel()
        return v[(margins <= 0).reshape(60, -1).any(axis=1)].sum()

    seen = [wrong(*step.planes()) for step in recorder.steps if step.sample is not None]
    in_pocket = [wrong(*step.planes()) for step in recorder.steps if step.sample is None]
    most = np.bincount(y, weights=v).max()
    assert wrong(model.coef_, model.intercept_) == min(*seen, v.sum() - most)
    assert in_pocket == sorted(in_pocket, reverse=True)
    np.testing.assert_array_equal(model.trace_.objective, in_pocket)


@quiet
def test_pocket_says_what_ended_it():
    X, y = cloud(60, 3, seed=18)
    assert mm.Pocket(patience=30).fit(X, y).status_ is mm.Status.PATIENCE
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        limited = mm.Pocket(patience=10**9, max_iter=3).fit(X, y)
    assert limited.status_ is mm.Status.ITERATION_LIMIT
    assert limited.n_iter_ == 3
    assert mm.Pocket().fit(*blobs(60, 3)).status_ is mm.Status.CONVERGED


@quiet
def test_pockets_patience_counts_passes_since_the_last_change():
    X, y = cloud(60, 3, seed=19)
    recorder = mm.Recorder()
    model = mm.Pocket(patience=7, callback=recorder).fit(X, y)
    wrong = [step.objective for step in recorder.steps]
    assert model.status_ is mm.Status.PATIENCE
    assert len(wrong) - 1 - int(np.argmin(wrong)) == 7
    assert model.n_iter_ == len(wrong)


@quiet
def test_pocket_counts_some_corrections_of_many_samples(monkeypatch):
    X, y = cloud(200, 3, seed=20)
    every = mm.Pocket(max_iter=20).fit(X, y)
    monkeypatch.setattr(pocket, "TUNING", pocket.Tuning(counted_samples=50))
    offered = []
    offer = pocket.Pocket.offer

    def counted(self, problem, a):
        offered.append(a.copy())
        offer(self, problem, a)

    monkeypatch.setattr(pocket.Pocket, "offer", counted)
    some = mm.Pocket(max_iter=20).fit(X, y)
    assert len(offered) <= some.n_updates_ / 16 + some.n_iter_ + 1
    assert some.score(X, y) <= every.score(X, y)
    assert some.score(X, y) >= 0.5
    apart = mm.Pocket().fit(*blobs(200, 3))
    assert apart.status_ is mm.Status.CONVERGED
    assert apart.separates_


@quiet
@pytest.mark.parametrize("order", ["sorted", "reversed", "mixed"])
def test_no_order_of_rows_leaves_the_pocket_below_the_majority(order):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 3)) * 10.0 ** rng.integers(-2, 3, size=3)
        y = (rng.random(150) < rng.uniform(0.05, 0.5)).astype(int)
        y[:2] = 0, 1
        rows = {"sorted": np.argsort(y), "reversed": np.argsort(-y), "mixed": np.arange(150)}[order]
        for shuffle in (True, False):
            model = mm.Pocket(shuffle=shuffle).fit(X[rows], y[rows])
            assert model.score(X, y) >= max(y.mean(), 1.0 - y.mean())


@quiet
@pytest.mark.parametrize("make", [mm.Perceptron, mm.LMS, mm.Relaxation, mm.Pocket])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_wine])
def test_sorted_files_do_not_matter(make, load):
    """By default: the textbook's order leaves less than the most frequent class has."""
    X, y = load(return_X_y=True)
    rows = np.argsort(y, kind="stable")
    model = make().fit(X[rows], y[rows])
    assert model.score(X, y) > np.bincount(y).max() / len(y)
    again = make().fit(X[rows], y[rows])
    np.testing.assert_array_equal(again.coef_, model.coef_)


@quiet
def test_a_random_state_advances_from_fit_to_fit():
    X, y = cloud(60, 3, seed=21)
    for seed in (np.random.RandomState(0), None):
        first, second = (
            mm.Perceptron(random_state=seed, max_iter=3).fit(X, y).coef_ for _ in range(2)
        )
        assert not np.array_equal(first, second)
