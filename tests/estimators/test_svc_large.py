"""SVC with many samples: memory, shrinking, working sets that are renewed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.estimators import formulation
from maxmargin.runtime import threads
from maxmargin.solvers.dual import choice, decomposition
from tests.helpers.storage import DATA, thin
from tests.helpers.svc import LOSSES, assert_certified, cloud, distance_bound


@pytest.mark.parametrize(
    ("loss", "kind"),
    [("hinge", "float64"), ("hinge", "csr"), ("squared", "float64"), ("nu", "float64")],
)
def test_the_size_of_the_cache_does_not_matter(loss, kind):
    X, y = thin(3100)
    given = DATA[kind](X)
    small, large = (LOSSES[loss](cache_size=size).fit(given, y) for size in (0.01, "auto"))
    near = sum(distance_bound(model, X, y, model.kernel_) for model in (small, large))
    for model in (small, large):
        assert_certified(model, X, y)
    np.testing.assert_allclose(
        small.decision_function(given), large.decision_function(given), atol=near
    )


def test_what_does_not_fit_is_computed_again():
    """A Gram matrix of 3500² values in ten kilobytes, and a refusal where all of it is needed."""
    X, y = cloud(3500)
    model = mm.SVC(cache_size=0.01).fit(X, y)
    assert_certified(model, X, y)
    with pytest.raises(ValueError, match="cache_size"):
        mm.SVC(cache_size=0.01, solver="smo").fit(X, y)


def test_shrinking_does_not_change_the_answer(monkeypatch):
    focused = []
    plain = decomposition._Descent.focus

    def focus(self, rows, part):
        focused.append(rows.size)
        return plain(self, rows, part)

    monkeypatch.setattr(decomposition._Descent, "focus", focus)
    X, y = cloud(5000)
    shrunk = mm.SVC(C=10.0, gamma=0.5, tol=1e-5).fit(X, y)
    assert focused  # the case under test occurred
    assert max(focused) <= decomposition.Tuning().restricted_share * 5000
    focused.clear()
    whole = mm.SVC(C=10.0, gamma=0.5, tol=1e-5, shrinking=False).fit(X, y)
    assert not focused
    near = sum(distance_bound(m, X, y, m.kernel_) for m in (shrunk, whole))
    for model in (shrunk, whole):
        assert_certified(model, X, y)
    np.testing.assert_allclose(shrunk.decision_function(X), whole.decision_function(X), atol=near)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_many_samples(loss, fit_intercept):
    """More than a working set, so that it is renewed."""
    if loss == "nu" and not fit_intercept:
        pytest.skip("the ν-machine has a bias")
    X, y = cloud(2 * decomposition.WORKING_SET + 100)
    model = LOSSES[loss](**({} if loss == "nu" else {"fit_intercept": fit_intercept})).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_twenty_thousand_rows(C):
    X, y = cloud(20_000, 10)
    model = mm.SVC(C=C).fit(X, y)
    assert_certified(model, X, y)
    X, y = thin(20_000, 50)
    model = mm.SVC(C=C).fit(sparse.csr_matrix(X), y)
    assert_certified(model, sparse.csr_matrix(X), y)


@pytest.mark.parametrize("kind", ["float32", "csr"])
def test_large_tasks_side_by_side_are_solved_as_one_by_one(monkeypatch, kind):
    X = np.random.default_rng(5).normal(size=(900, 4))
    y = np.digitize(X[:, 0] * X[:, 1] + 0.3 * X[:, 2], [-0.6, 0.0, 0.6])
    for module in (formulation, choice):
        monkeypatch.setattr(module, "SMALL_SAMPLES", 100)
    monkeypatch.setattr(threads, "n_cores", lambda: 4)
    given = DATA[kind](X)
    together = mm.SVC(C=5.0).fit(given, y)
    monkeypatch.setattr(formulation, "bytes_to_keep", lambda: 0.0)  # no room for copies
    alone = mm.SVC(C=5.0).fit(given, y)
    assert_certified(together, X, y)
    np.testing.assert_array_equal(together.support_, alone.support_)
    np.testing.assert_array_equal(together.decision_function(given), alone.decision_function(given))
