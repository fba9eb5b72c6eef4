"""In which order the passes of an online rule visit the samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...arrays import Integers
from ...runtime.row_access import compiled, compiled_part

# The Mersenne Twister (Matsumoto, Nishimura, 1998): numbers of its state, which of them are
# combined, and the matrix that does it.
STATE, SHIFTED, TWIST = 624, 397, np.uint32(0x9908B0DF)
HIGH, LOW = np.uint32(0x80000000), np.uint32(0x7FFFFFFF)


class VisitingOrders(Iterator[Integers]):
    """The order of rows for each pass: increasing, or permutations from a generator.

    Those of the Mersenne Twister are made by compiled code, in a third of NumPy's time; they are
    the same.

    Parameters
    ----------
    n_samples : int
    rng : RandomState or None
        The generator, which is used for nothing else afterwards; None for increasing orders.
    """

    def __init__(self, n_samples: int, rng: np.random.RandomState | None) -> None:
        self.n_samples, self._rng = n_samples, rng
        state = {} if rng is None else rng.get_state(legacy=False)
        self._key, self._next = None, np.zeros(1, dtype=np.int64)
        if state.get("bit_generator") == "MT19937":
            self._key, self._next[0] = state["state"]["key"].copy(), state["state"]["pos"]
        self._orders = np.empty((0, n_samples), dtype=np.int64)

    def __next__(self) -> Integers:
        order: Integers = self.several(1)[0]
        return order

    def several(self, count: int) -> Integers:
        """Return the orders of the next passes, (count, n_samples), in memory that is reused."""
        n = self.n_samples
        if self._rng is not None and self._key is None:
            return np.array([self._rng.permutation(n) for _ in range(count)])
        if count > len(self._orders):
            self._orders = np.tile(np.arange(n), (count, 1))
        if self._key is not None:
            permute(self._key, self._next, self._orders[:count])
        return self._orders[:count]


@compiled
def permute(key, following, orders):
    """Write permutations as NumPy's `RandomState` does; ``following`` is the next of its state."""
    at, n = following[0], orders.shape[1]
    for k in range(orders.shape[0]):
        order = orders[k]
        for i in range(n):
            order[i] = i
        mask = 1
        while mask < n - 1:
            mask = 2 * mask + 1
        i = n - 1
        while i > 0:
            if at >= STATE:
                twist(key)
                at = 0
            if i <= mask >> 1:
                mask >>= 1
            j = np.int64(tempered(key[at])) & mask
            at += 1
            # A number that is too large is rejected: i is then exchanged with itself, without a
            # branch that no processor could predict.
            accepted = j <= i
            j = j if accepted else i
            order[i], order[j] = order[j], order[i]
            i -= accepted
    following[0] = at


@compiled_part
def twist(key):
    """Compute the next state of the Mersenne Twister."""
    for k in range(STATE - SHIFTED):
        key[k] = key[k + SHIFTED] ^ twisted(key[k], key[k + 1])
    for k in range(STATE - SHIFTED, STATE - 1):
        key[k] = key[k + SHIFTED - STATE] ^ twisted(key[k], key[k + 1])
    key[STATE - 1] = key[SHIFTED - 1] ^ twisted(key[STATE - 1], key[0])


@compiled_part
def twisted(first, second):
    """Return two numbers of the state, joined and multiplied by the matrix."""
    joined = (first & HIGH) | (second & LOW)
    return (joined >> np.uint32(1)) ^ (TWIST * (joined & np.uint32(1)))


@compiled_part
def tempered(number):
    """Return the random number that comes from a number of the state."""
    number ^= number >> np.uint32(11)
    number ^= (number << np.uint32(7)) & np.uint32(0x9D2C5680)
    number ^= (number << np.uint32(15)) & np.uint32(0xEFC60000)
    return number ^ (number >> np.uint32(18))
