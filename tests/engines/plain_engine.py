"""A foreign engine in plain NumPy: the contract of `maxmargin.engines.base`, and nothing else.

It shares no code with the CPU engine, and its vectors of length n refuse to become NumPy arrays: a
solver that runs on it asks nothing of an engine that the contract does not promise.
"""

import numpy as np

from maxmargin.engines.base import Level, Moves, Result, Totals


class Hidden:
    """Numbers on another device: only the engine reads them, as ``at``."""

    def __init__(self, at):
        self.at = at

    def __array__(self, *args, **kwargs):
        raise TypeError("This array is on another device.")

    __len__ = __iter__ = __float__ = __getitem__ = __array__


class PlainEngine:
    """X as a dense array."""

    def __init__(self, X):
        self.X = Hidden(X.toarray() if hasattr(X, "toarray") else np.array(X))

    def precision(self, kernel, tol, largest=1.0):
        return "fast" if tol > 1e-6 else "exact"

    def gram(self, kernel, index=None, precision="exact", *, keep=True):
        X = self.X.at if index is None else self.X.at[index]
        return PlainGram(kernel(X * 1.0).astype("f4" if precision == "fast" else "f8"))


class PlainGram:
    """All of K."""

    def __init__(self, K):
        self.K = Hidden(K)

    def dual_state(self, problem, alpha, exact=None, claim=None):
        s, group = problem.signs, np.zeros(alpha.size)
        for k, rows in enumerate(problem.groups):
            group[rows] = k
        bounds = np.sort([s * problem.lower, s * problem.upper], axis=0)
        v = np.array([s, -s * problem.p, problem.ridge, *bounds, s * alpha, s, group])
        state = PlainDualState(v, self.K.at, (exact or self).K.at, problem.sums)
        state.refresh()
        return state


class PlainDualState:
    """``v`` has the rows s, −sp, D, lower, upper, β, f and the number of the group."""

    def __init__(self, v, K, exact, sums, value=0.0):
        self.v, self.K, self.exact = Hidden(v), Hidden(K), Hidden(exact)
        self.sums, self.value, self.dtype = sums, value, K.dtype
        self.sizes = tuple(np.bincount(v[7].astype(int), minlength=len(sums)))
        self.largest = float((np.diag(K) + v[2]).max())

    def levels(self):
        levels, v = [], self.v.at
        for lower, upper, beta, f, _ in (v[3:, v[7] == k] for k in range(len(self.sizes))):
            top, low = f[beta < upper].max(initial=-np.inf), f[beta > lower].min(initial=np.inf)
            free = f[(lower < beta) & (beta < upper)]
            levels.append(Level(top, low, free.mean() if free.size else np.nan))
        return levels

    def totals(self, multipliers):
        s, target, D, lower, upper, beta, f, group = self.v.at
        scores, level = target - f - D * beta, np.array(multipliers)[group.astype(int)]
        t, bent = f + D * beta - level, D > 0
        best = np.where(t > 0, upper, np.where(t < 0, lower, beta))
        best[bent] = np.clip(t[bent] / D[bent], lower[bent], upper[bent])
        gap = (best - beta) * (t - 0.5 * D * np.where(bent, best + beta, 0.0))
        errors, smallest = s * (scores + np.mean(multipliers)) <= 0, (s * (scores + level)).min()
        return Totals(gap.sum(), beta @ scores, smallest, np.abs(beta).sum(), errors.sum())

    def best_shift(self, b):
        D, lower, upper, beta, f, group = self.v.at[2:]
        kinks = np.where(group == 0, 1, -1) * (b - f - D * beta)
        needed = self.sums[0] - self.sums[1] - lower[group == 0].sum() + upper[group == 1].sum()
        order = np.argsort(kinks)
        short = np.cumsum((upper - lower)[order]) < needed * (1 - 1e-12)
        return kinks[order[short[:-1].sum()]]

    def violators(self, number, level, most, wanted, taken):
        lower, upper, beta, f, group = self.v.at[3:]
        outside = (group == number) & ~np.isin(np.arange(f.size), taken)
        up, down = outside & (beta < upper), outside & (beta > lower)
        wrong = np.where(up, f - level.low, 0.0), np.where(down, level.top - f, 0.0)
        worst = [np.argsort(-each)[: min(wanted // 2, (each > 0).sum())] for each in wrong]
        return np.unique(np.concatenate(worst))

    def free(self, rows):
        lower, upper, beta = self.v.at[3:6, rows]
        return (lower < beta) & (beta < upper)

    def near(self, levels, reach, at_most):
        lower, upper, beta, f, group = self.v.at[3:]
        top, low, _ = np.transpose(levels)[:, group.astype(int)]
        near = (beta < upper) & (f > low - reach) | (beta > lower) & (f < top + reach)
        rows = np.flatnonzero(near | (lower < beta) & (beta < upper))
        return rows if rows.size <= at_most else None

    def restrict(self, rows):
        K = self.K.at[np.ix_(rows, rows)]
        return PlainDualState(self.v.at[:, rows], K, K, self.sums, self.value)

    def take(self, rows, part):
        v, change = self.v.at, part.v.at[5] - self.v.at[5, rows]
        before, v[5, rows] = v[6, rows], part.v.at[5]
        v[6] -= self.K.at[:, rows] @ change
        v[6, rows] -= v[2, rows] * change
        self.value -= 0.5 * float(change @ (before + v[6, rows]))
        return bool(change.any())

    def solve_block(self, members, stop, max_steps):
        rows, room = np.concatenate(members), 0.0 if self.sums else np.inf
        part = self.restrict(rows[rows >= 0])
        # One more variable, without a gradient, takes what others move by where no sum is fixed.
        spare = np.array([[-room, room, 0.0, 0.0, 0.0]]).T
        lower, upper, beta, f, group = np.hstack([part.v.at[3:], spare])
        K, numbers = np.pad(part.K.at + np.diag(part.v.at[2]), (0, 1)), range(len(self.sizes))
        for steps in range(max_steps + 1):
            up, down = np.where(beta < upper, f, -np.inf), np.where(beta > lower, f, np.inf)
            tops = [np.where(group == k, up, -np.inf).argmax() for k in numbers]
            lows = [np.where(group == k, down, np.inf).argmin() for k in numbers]
            i, j = max(zip(tops, lows, strict=True), key=lambda pair: up[pair[0]] - down[pair[1]])
            if up[i] - down[j] <= stop or steps == max_steps:
                break
            t = (f[i] - f[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
            t = min(t, upper[i] - beta[i], beta[j] - lower[j])
            beta[i], beta[j], f = beta[i] + t, beta[j] - t, f - t * (K[i] - K[j])
        part.v.at[5] = np.clip(beta, lower, upper)[:-1]
        return Moves(steps, self.take(rows[rows >= 0], part))

    def refresh(self, multipliers=None, little=0.0):
        _, target, D, _, _, beta, f, _ = self.v.at
        f[:] = target - D * beta - self.exact.at.astype("f8") @ beta
        self.value = -0.5 * float(beta @ (f + target))
        return True

    def result(self):
        return Result(self.v.at[0] * self.v.at[5], None, None)


class PlainWeightedRows:
    """Rows (x, 1) with weights c."""

    def __init__(self, A, c):
        self.A, self.c, self.n_rows = Hidden(A), Hidden(c), len(A)

    def squares(self):
        return self.c.at @ self.A.at**2

    def product(self, p):
        return (self.c.at * (self.A.at @ p)) @ self.A.at

    def gram(self, factors=None):
        X = self.A.at[:, :-1] * (1 if factors is None else factors)
        return X @ X.T + np.diag(1 / self.c.at)

    def scores(self, w):
        return self.A.at[:, :-1] @ w

    def combine(self, q):
        return q @ self.A.at[:, :-1]
