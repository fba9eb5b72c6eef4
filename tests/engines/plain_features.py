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

    is_dense, on_device, random_access, slopes_at_once = True, True, False, 3
    holds_rows, whole_step_first, has_curvature = True, False, False

    def __init__(self, X, augmented=False):
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        self.A = Hidden(X if augmented else np.column_stack([X, np.ones(len(X))]))
        self.n_rows, self.n_columns = len(X), self.A.at.shape[1] - 1
        self.stored_per_row = float(self.n_columns)
        self.most_sampled = self.n_rows

    def restrict(self, rows):
        return PlainFeatures(self.A.at[rows], augmented=True)

    def draw(self, size):
        return np.arange(size) * self.n_rows // size

    def primal_state(self, problem):
        y, n = problem.y, self.n_rows
        v = SimpleNamespace(y=y, u=problem.upper + 0 * y, D=problem.ridge + 0 * y, s=0 * y)
        v.beta, v.center, v.kept, v.rows = 0 * y, 0 * y, 0 * y, np.arange(n)
        return PlainPrimalState(self, problem.bias, v, problem.two_sided, problem.epsilon)

    def joint_state(self, problem):
        rows = np.flatnonzero(problem.cost > 0)
        v = SimpleNamespace(labels=problem.labels[rows], C=problem.cost[rows], rows=rows)
        v.n_samples, v.n_classes = len(problem.cost), problem.n_classes
        state = PlainJointState(self.restrict(rows), problem.bias, v)
        v.values = np.zeros((rows.size, problem.n_classes))
        state.clear()
        return state


class PlainPrimalState:
    """y, u, D, the scores s, β and its centre, all in ``v``."""

    def __init__(self, features, bias, v, two_sided, epsilon):
        self.features, self.bias, self.v = features, bias, Hidden(v)
        self.two_sided, self.epsilon = two_sided, epsilon

    def _box(self, u):
        """Return the bounds of β."""
        return (-u, u) if self.two_sided else np.sort([np.zeros(u.size), self.v.at.y * u], axis=0)

    def place(self, w, b):
        self.v.at.s = self.features.A.at @ np.append(w, b)

    def shift(self, t):
        self.v.at.s = self.v.at.s + t

    def start(self, alpha):
        v = self.v.at
        beta = alpha if self.two_sided else v.y * alpha
        v.beta = v.center = np.clip(beta, *self._box(np.where(np.isfinite(v.D), v.u, 0)))

    def recentre(self):
        self.v.at.center = self.v.at.beta

    def sample(self, rows, times):
        part = self._restrict(rows)
        part.v.at.u, part.v.at.D = part.v.at.u * times, part.v.at.D / times
        return part if self.two_sided or len(set(part.v.at.y)) == 2 else None

    def _restrict(self, rows):
        v = {
            name: values[rows]
            for name, values in vars(self.v.at).items()
            if name not in ("p", "moved")
        }
        v["rows"] = rows
        return PlainPrimalState(
            self.features.restrict(rows), self.bias, SimpleNamespace(**v), self.two_sided,
            self.epsilon,
        )  # fmt: skip

    def _beta(self, s, delta):
        v, r = self.v.at, self.v.at.y - s
        with np.errstate(all="ignore"):
            pull = np.where(np.isinf(v.u), r, r + delta * v.center / v.u)
            bend = np.where(np.isinf(v.u), v.D, v.D + delta / v.u)
            best = np.sign(pull) * np.maximum(np.abs(pull) - self.epsilon, 0) / bend
        return np.where((v.u > 0) & np.isfinite(v.D), np.clip(best, *self._box(v.u)), 0)

    def _slack(self):
        """Return z, and the z from which a row is an error."""
        v = self.v.at
        r = v.y - v.s
        return (np.abs(r) - self.epsilon, 0.0) if self.two_sided else (v.y * r, 1.0)

    def _total(self, beta):
        return beta @ self.features.A.at

    def _terms(self, beta):
        v = self.v.at
        gain = beta * (v.y - v.s) - self.epsilon * np.abs(beta)
        return gain - 0.5 * np.where(beta != 0, v.D, 0) * beta**2

    def total(self):
        return self._total(self.v.at.beta)

    def loss(self):
        return float(self._terms(self._beta(self.v.at.s, 1e-300)).sum())

    def project(self, delta):
        v, before = self.v.at, self.v.at.beta
        z, wrong = self._slack()
        v.beta, errors = self._beta(v.s, delta), int((z > wrong).sum())
        slack = self.loss() - float(self._terms(v.beta).sum())
        change = self._total(v.beta - before)
        moved = getattr(v, "moved", 0.0), float(np.abs(v.s).max())
        return Projection(max(slack, 0.0), self.loss(), errors, change, *moved)

    def aim(self, step):
        self.v.at.p = self.features.A.at @ step

    def slopes(self, points, delta):
        v = self.v.at
        return [float(self._beta(v.s + t * v.p, delta) @ v.p) for t in points]

    def advance(self, t):
        v = self.v.at
        v.s, self.v.at.moved = v.s + t * v.p, float(np.abs(t * v.p).max())

    def _off_kink(self, delta):
        v = self.v.at
        with np.errstate(invalid="ignore"):
            half = 0.5 * np.where(np.isinf(v.u), 0, np.nan_to_num(v.u * v.D) + delta)
        return np.abs(self._slack()[0] - half) - half

    def reach(self, share, delta):
        return float(np.quantile(self._off_kink(delta), share))

    def hold(self, share, delta):
        v, reach = self.v.at, self.reach(share, delta)
        near = self._off_kink(delta) <= reach
        (z, wrong), side = self._slack(), np.sign(v.y - v.s)
        sloping, target = ~near & (z > 0), v.y - side * self.epsilon
        line, bent = sloping & np.isfinite(v.u), sloping & np.isinf(v.u)
        v.beta = np.where(near, v.beta, np.where(line, side * np.where(line, v.u, 0), 0))
        self.part = self._restrict(np.flatnonzero(near))
        v.center = v.beta
        c = np.where(bent, 1 / np.where(bent, v.D, 1), 0)
        force, A = np.where(line, v.beta, c * target), self.features.A.at
        constant = force * target - 0.5 * np.where(line, v.D, 0) * force**2 - 0.5 * c * target**2
        M = (c * A.T) @ A if np.isinf(v.u).any() else None
        errors = int((z > wrong)[sloping].sum())
        return Held(self.part, M, force @ A, constant.sum(), errors, reach)

    def take_back(self):
        self.v.at.beta[self.part.v.at.rows] = self.part.v.at.beta

    def kink(self):
        v = self.v.at
        v.inside = (v.beta != 0) & (np.abs(v.beta) < v.u)
        return Kink(int(v.inside.sum()), int(v.inside.sum()))

    def kink_rows(self, delta):
        v, inside = self.v.at, self.v.at.inside
        return PlainWeightedRows(
            self.features.A.at[inside], 1 / (v.D[inside] + delta / v.u[inside])
        )

    def curvature(self, delta):
        rows = self.kink_rows(delta)
        return (rows.c.at * rows.A.at.T) @ rows.A.at

    def solve_columns(self, delta, system, gradient):
        H = self.curvature(delta)
        rest = np.diag([1.0] * (len(H) - 1) + [system.penalty]) if system.M is None else system.M
        H = H + rest
        H[-1, -1] = max(H[-1, -1], system.damping)
        used = slice(None) if system.has_bias else slice(-1)
        step = np.zeros(len(H))
        step[used] = -np.linalg.solve(H[used, used], gradient[used])
        return step

    def class_costs(self):
        v = self.v.at
        costs = np.where(np.isinf(v.u), 1 / np.maximum(v.D, 1e-300), v.u)
        return tuple(float(costs[self.two_sided | (v.y == sign)].sum()) for sign in (1, -1))

    def best_biases(self, b):
        v, s = self.v.at, self.v.at.s
        breaks = np.sort(np.concatenate([v.y - s - self.epsilon, v.y - s + self.epsilon]))

        def value(t):
            v.s = s + t
            return self.loss() + (0.5 * (b + t) ** 2 if self.bias == "penalised" else 0.0)

        values = np.array([value(t) for t in breaks])
        v.s, best = s, breaks[values <= values.min() * (1 + 1e-14)]
        return float(best.min()), float(best.max())

    def dual(self, total=None, *, of_scores=False):
        v = self.v.at
        beta = np.where(np.isinf(v.u) & of_scores, self._beta(v.s, 0), v.beta)
        v.measured = beta = self._balanced(beta)
        w = self._total(beta)
        square = w @ w if self.bias == "penalised" else w[:-1] @ w[:-1]
        gain = v.y @ beta - self.epsilon * np.abs(beta).sum()
        return float(gain - 0.5 * square - 0.5 * (np.where(beta != 0, v.D, 0) @ beta**2))

    def _balanced(self, beta):
        totals = [np.maximum(sign * beta, 0).sum() for sign in (1, -1)]
        if self.bias != "free":
            return beta
        return beta * np.where(beta > 0, *(min(totals) / max(total, 1e-300) for total in totals))

    def keep(self):
        self.v.at.kept = self.v.at.measured

    def alpha(self, *, kept=False):
        beta = self.v.at.kept.copy() if kept else self._balanced(self.v.at.beta).copy()
        return beta if self.two_sided else np.abs(beta)
