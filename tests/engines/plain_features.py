"""Linear machines on a foreign engine in plain NumPy: the contract of `maxmargin.engines.linear`.

It shares no code with the CPU engine, and its vectors of length n refuse to become NumPy arrays.
The joint machine is in `plain_joint`.
"""

from types import SimpleNamespace

import numpy as np

from maxmargin.engines.linear import Held, Kink, Projection

from .plain_engine import Hidden, PlainWeightedRows
from .plain_joint import PlainJointState


class PlainFeatures:
    """X with a column of ones, as a dense array."""

    is_dense, random_access = True, False

    def __init__(self, X, augmented=False):
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        self.A = Hidden(X if augmented else np.column_stack([X, np.ones(len(X))]))
        self.n_rows, self.n_columns = len(X), self.A.at.shape[1] - 1
        self.stored_per_row = float(self.n_columns)

    def restrict(self, rows):
        return PlainFeatures(self.A.at[rows], augmented=True)

    def primal_state(self, problem):
        y, n = problem.y, self.n_rows
        v = SimpleNamespace(y=y, u=problem.upper + 0 * y, D=problem.ridge + 0 * y, s=0 * y)
        v.alpha, v.center, v.kept, v.rows = 0 * y, 0 * y, 0 * y, np.arange(n)
        return PlainPrimalState(self, problem.bias, v)

    def joint_state(self, problem):
        rows = np.flatnonzero(problem.cost > 0)
        v = SimpleNamespace(labels=problem.labels[rows], C=problem.cost[rows], rows=rows)
        v.n_samples, v.n_classes = len(problem.cost), problem.n_classes
        state = PlainJointState(self.restrict(rows), problem.bias, v)
        v.values = np.zeros((rows.size, problem.n_classes))
        state.clear()
        return state


class PlainPrimalState:
    """y, u, D, the scores s, α and its centre, all in ``v``."""

    def __init__(self, features, bias, v):
        self.features, self.bias, self.v = features, bias, Hidden(v)

    def place(self, w, b):
        self.v.at.s = self.features.A.at @ np.append(w, b)

    def shift(self, t):
        self.v.at.s = self.v.at.s + t

    def start(self, alpha):
        v = self.v.at
        v.alpha = v.center = np.clip(alpha, 0, np.where(np.isfinite(v.D), v.u, 0))

    def recentre(self):
        self.v.at.center = self.v.at.alpha

    def sample(self, rows, times):
        part = self._restrict(rows)
        part.v.at.u, part.v.at.D = part.v.at.u * times, part.v.at.D / times
        return part if len(set(part.v.at.y)) == 2 else None

    def _restrict(self, rows):
        v = {name: values[rows] for name, values in vars(self.v.at).items() if name != "p"}
        v["rows"] = rows
        return PlainPrimalState(self.features.restrict(rows), self.bias, SimpleNamespace(**v))

    def _alpha(self, s, delta):
        v, z = self.v.at, 1 - self.v.at.y * s
        with np.errstate(all="ignore"):
            line = (v.u * z + delta * v.center) / (v.u * v.D + delta)
            best = np.where(np.isinf(v.u), z / v.D, line)
        return np.where((v.u > 0) & np.isfinite(v.D), np.clip(best, 0, v.u), 0)

    def _total(self, alpha):
        return (alpha * self.v.at.y) @ self.features.A.at

    def _terms(self, alpha):
        v = self.v.at
        return alpha * (1 - v.y * v.s) - 0.5 * np.where(alpha > 0, v.D, 0) * alpha**2

    def total(self):
        return self._total(self.v.at.alpha)

    def loss(self):
        return float(self._terms(self._alpha(self.v.at.s, 1e-300)).sum())

    def project(self, delta):
        v, before = self.v.at, self.v.at.alpha
        v.alpha, errors = self._alpha(v.s, delta), int((v.y * v.s < 0).sum())
        slack = self.loss() - float(self._terms(v.alpha).sum())
        return Projection(max(slack, 0.0), self.loss(), errors, self._total(v.alpha - before))

    def aim(self, step):
        self.v.at.p = self.features.A.at @ step

    def slope(self, t, delta):
        v = self.v.at
        return float((self._alpha(v.s + t * v.p, delta) * v.y) @ v.p)

    def advance(self, t):
        v = self.v.at
        v.s = v.s + t * v.p
        return float(np.abs(t * v.p).max()), float(np.abs(v.s).max())

    def _off_kink(self, delta):
        v = self.v.at
        with np.errstate(invalid="ignore"):
            half = 0.5 * np.where(np.isinf(v.u), 0, np.nan_to_num(v.u * v.D) + delta)
        return np.abs(1 - v.y * v.s - half) - half

    def reach(self, share, delta):
        return float(np.quantile(self._off_kink(delta), share))

    def hold(self, share, delta):
        v, reach = self.v.at, self.reach(share, delta)
        near = self._off_kink(delta) <= reach
        sloping = ~near & (v.y * v.s < 1)
        line, bent = sloping & np.isfinite(v.u), sloping & np.isinf(v.u)
        v.alpha = np.where(near, v.alpha, np.where(line, v.u, 0))
        self.part = self._restrict(np.flatnonzero(near))
        v.center = v.alpha
        c = np.where(bent, 1 / np.where(bent, v.D, 1), 0)
        force, A = np.where(line, v.u, c), self.features.A.at
        constant = (force - 0.5 * np.where(line, v.D, 0) * force**2 - 0.5 * c).sum()
        M = (c * A.T) @ A if np.isinf(v.u).any() else None
        return Held(
            self.part, M, (force * v.y) @ A, constant, int((v.y * v.s < 0)[sloping].sum()), reach
        )

    def take_back(self):
        self.v.at.alpha[self.part.v.at.rows] = self.part.v.at.alpha

    def kink(self):
        v = self.v.at
        v.inside = (v.alpha > 0) & (v.alpha < v.u)
        return Kink(int(v.inside.sum()), int(v.inside.sum()))

    def kink_rows(self, delta):
        v, inside = self.v.at, self.v.at.inside
        return PlainWeightedRows(
            self.features.A.at[inside], 1 / (v.D[inside] + delta / v.u[inside])
        )

    def curvature(self, delta):
        rows = self.kink_rows(delta)
        return (rows.c.at * rows.A.at.T) @ rows.A.at

    def best_biases(self, b):
        breaks = np.sort(self.v.at.y - self.v.at.s)
        v, s = self.v.at, self.v.at.s

        def value(t):
            v.s = s + t
            return self.loss() + (0.5 * (b + t) ** 2 if self.bias == "penalised" else 0.0)

        values = np.array([value(t) for t in breaks])
        v.s, best = s, breaks[values <= values.min() * (1 + 1e-14)]
        return float(best.min()), float(best.max())

    def dual(self, total=None, *, of_scores=False):
        v = self.v.at
        alpha = np.where(np.isinf(v.u) & of_scores, self._alpha(v.s, 0), v.alpha)
        v.measured = alpha = self._balanced(alpha)
        w = self._total(alpha)
        square = w @ w if self.bias == "penalised" else w[:-1] @ w[:-1]
        return float(alpha.sum() - 0.5 * square - 0.5 * (np.where(alpha > 0, v.D, 0) @ alpha**2))

    def _balanced(self, alpha):
        y, totals = self.v.at.y, [alpha[self.v.at.y == sign].sum() for sign in (1, -1)]
        if self.bias != "free":
            return alpha
        return alpha * np.where(y > 0, *(min(totals) / max(total, 1e-300) for total in totals))

    def keep(self):
        self.v.at.kept = self.v.at.measured

    def alpha(self, *, kept=False):
        return self.v.at.kept.copy() if kept else self._balanced(self.v.at.alpha).copy()
