"""The block of K of a working set does not depend on the threads that write it."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.cpu.working_set import write_block
from maxmargin.runtime.threads import at_most


def test_every_value_of_fresh_places_is_written_once():
    rng = np.random.default_rng(0)
    present = np.sort(rng.permutation(200)[:150])
    fresh = np.sort(rng.permutation(present)[:90])
    values = rng.standard_normal((90, 150))  # far from symmetric
    is_fresh = np.isin(present, fresh)
    expected = np.zeros((200, 200))
    expected[np.ix_(present[~is_fresh], fresh)] = values[:, ~is_fresh].T
    expected[np.ix_(fresh, present)] = values
    for order in ([0, 1], [1, 0]):
        for function in (write_block.kernel, write_block.kernel.py_func):
            K = np.zeros((200, 200))
            for part in order:
                function(part, values, fresh, present, is_fresh, K)
            np.testing.assert_array_equal(K, expected)
    K = np.zeros((200, 200))
    write_block(2, values, fresh, present, is_fresh, K)
    np.testing.assert_array_equal(K, expected)


def test_the_answer_does_not_depend_on_the_threads():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4500, 60)) * (rng.random((4500, 60)) < 0.15)
    y = X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(4500) > 0
    answers = []
    for n in (1, 2, 2, 4):
        with at_most(n):
            answers.append(mm.SVC(C=10.0, gamma=0.3, cache_size=100).fit(sparse.csr_array(X), y))
    for other in answers[1:]:
        np.testing.assert_array_equal(other.dual_coef_.toarray(), answers[0].dual_coef_.toarray())
        np.testing.assert_array_equal(other.intercept_, answers[0].intercept_)
