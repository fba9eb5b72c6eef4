"""The cache of Gram matrices: what is found, what is dropped, sizes, threads and processes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from maxmargin.runtime.kernel_cache import (
    MOST_TURNS,
    VARIABLE,
    KernelCache,
    bytes_of,
    digest_of,
)

SIZE = np.zeros((4, 4)).nbytes


def matrix(value):
    return np.full((4, 4), float(value))


def ask(cache, *keys):
    """Ask for matrices, and return those that had to be computed."""
    computed = []

    def compute(key):
        computed.append(key)
        return matrix(key)

    for key in keys:
        np.testing.assert_array_equal(cache.matrix(key, lambda key=key: compute(key)), matrix(key))
    return computed


def test_what_is_known_is_found_again_and_counted():
    cache = KernelCache(2 * SIZE)
    assert ask(cache, 1, 2, 1, 2, 1) == [1, 2]
    assert cache.info() == (3, 2, 2, 2 * SIZE, 2 * SIZE)
    cache.clear()
    assert cache.info() == (0, 0, 0, 0, 2 * SIZE)
    assert ask(cache, 1) == [1]


def test_the_least_recently_used_one_is_dropped():
    cache = KernelCache(2 * SIZE)
    ask(cache, 1, 2)
    ask(cache, *[1] * 2 * MOST_TURNS)  # 2 has not been used for all that time
    assert ask(cache, 3, 1, 3) == [3]
    assert ask(cache, 2) == [2]
    assert cache.info().n_bytes <= cache.info().max_bytes


def test_of_more_than_fit_that_are_asked_for_in_turns_some_are_found():
    cache = KernelCache(4 * SIZE)
    for _ in range(5):
        ask(cache, *range(6))
    info = cache.info()
    assert (info.hits, info.n_matrices) == (4 * 4, 4)


def test_others_take_the_place_of_what_is_not_used_any_more():
    cache = KernelCache(4 * SIZE)
    ask(cache, *range(4))
    for _ in range(MOST_TURNS + 2):
        ask(cache, *range(10, 14))
    assert ask(cache, *range(10, 14)) == []


def test_a_matrix_that_is_larger_than_the_cache_is_not_kept():
    cache = KernelCache(SIZE - 1)
    assert ask(cache, 1, 1) == [1, 1]
    assert cache.info().n_bytes == 0


def test_a_smaller_cache_drops_what_exceeds_it():
    cache = KernelCache(3 * SIZE)
    ask(cache, 1, 2, 3)
    cache.resize(SIZE)
    assert cache.info().n_bytes == SIZE
    assert ask(cache, 3) == []
    cache.resize(0)
    assert cache.info() == (0, 0, 0, 0, 0)


def test_matrices_may_not_be_written():
    cache = KernelCache(SIZE)
    for _ in range(2):
        K = cache.matrix(1, lambda: matrix(1))
        with pytest.raises(ValueError, match="read-only"):
            K[0, 0] = 2.0


def test_a_matrix_that_cannot_be_computed_leaves_nothing_behind():
    cache = KernelCache(SIZE)

    def fail():
        raise MemoryError

    with pytest.raises(MemoryError):
        cache.matrix(1, fail)
    assert ask(cache, 1) == [1]


def test_threads_find_the_right_matrices_within_the_size():
    cache = KernelCache(5 * SIZE)
    order = np.random.default_rng(0).integers(8, size=(4, 2000))

    def work(keys):
        for key in keys.tolist():
            assert cache.matrix(key, lambda key=key: matrix(key))[0, 0] == key

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, order))
    info = cache.info()
    assert info.hits + info.misses == order.size
    assert info.n_bytes == info.n_matrices * SIZE <= info.max_bytes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 0), (0, 0), (10**9, 10**9), (np.int64(7), 7), ("0", 0), ("123", 123), ("8B", 8),
        ("500MB", 500 * 10**6), ("1GB", 10**9), ("1.5 gb", 1_500_000_000), ("1GiB", 2**30),
        ("2kB", 2000), ("1TiB", 2**40),
    ],
)  # fmt: skip
def test_sizes(value, expected):
    assert bytes_of("kernel_cache", value) == expected


@pytest.mark.parametrize("value", [-1, True, 1e9, "", "much", "-1GB", "1XB", "GB", [1], np.nan])
def test_what_is_not_a_size_is_refused(value):
    with pytest.raises(ValueError, match="kernel_cache must be a number of bytes such as") as error:
        bytes_of("kernel_cache", value)
    assert repr(value) in str(error.value)


def test_digests_are_of_all_that_is_in_a_matrix():
    X = np.arange(6.0).reshape(2, 3)
    X[0, 0] = 7.0
    moved = sparse.csr_matrix(X)
    moved.indices = moved.indices[::-1].copy()
    several = [
        X, X.reshape(3, 2), X.astype(np.float32), X.view(np.int64), sparse.csr_matrix(X),
        sparse.csr_matrix(X.astype(np.float32)), sparse.csr_matrix(np.c_[X, [0, 0]]), moved,
    ]  # fmt: skip
    assert len({digest_of(each) for each in several}) == len(several)
    assert digest_of(X) == digest_of(np.asfortranarray(X)) == digest_of(X.copy())


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_the_environment_variable_is_the_setting_at_the_start():
    done = run("import maxmargin as mm; print(mm.config())", **{VARIABLE: "2MB"})
    assert done.stdout.strip() == "config(gpu_memory=0.9, kernel_cache=2000000)"
    done = run("import maxmargin as mm; mm.config()", **{VARIABLE: "much"})
    assert f"{VARIABLE} must be a number of bytes" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_forked_child_has_the_matrices_and_a_free_lock():
    code = """
import os, threading, time
import numpy as np
from maxmargin.runtime.kernel_cache import kernel_cache as cache

cache.resize(10**6)
cache.matrix("known", lambda: np.zeros((2, 2)))
stop = threading.Event()

def ask():
    while not stop.is_set():
        cache.matrix("known", lambda: np.zeros((2, 2)))

threads = [threading.Thread(target=ask) for _ in range(2)]
for thread in threads:
    thread.start()
statuses = []
for _ in range(20):
    child = os.fork()
    if not child:
        before = cache.info()
        cache.matrix("known", lambda: np.zeros((2, 2)))
        os._exit(0 if cache.info().hits == before.hits + 1 else 1)
    statuses.append(os.waitpid(child, 0)[1])
stop.set()
print(statuses == [0] * 20)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "True"
