"""The joint machine on a foreign engine in plain NumPy (see `plain_features`)."""

from types import SimpleNamespace

import numpy as np

from maxmargin.engines.linear import JointSums, Survey

from .plain_engine import Hidden


class PlainJointState:
    """Values and shares p of the rows that count, their labels and costs, all in ``v``."""

    def __init__(self, features, bias, v):
        self.features, self.bias, self.v = features, bias, Hidden(v)
        self.size = features.n_columns + (bias != "none")
        v.own = np.eye(v.n_classes)[v.labels]

    def _restrict(self, rows, times=1.0):
        v = SimpleNamespace(**vars(self.v.at))
        v.rows, v.labels, v.C = rows, v.labels[rows], v.C[rows] * times
        v.values, v.p, v.center = v.values[rows], v.p[rows], v.p[rows]
        return PlainJointState(self.features.restrict(rows), self.bias, v)

    def _A(self):
        return self.features.A.at[:, : self.size]

    def sample(self, share, least, rng):
        labels, rows = self.v.at.labels, []
        for k in range(self.v.at.n_classes):
            of_k = np.flatnonzero(labels == k)
            rows += list(rng.permutation(of_k)[: max(least, int(share * of_k.size))])
        rows = np.sort(rows)
        times = np.bincount(labels)[labels[rows]] / np.bincount(labels[rows])[labels[rows]]
        part = self._restrict(rows, times)
        part.place(np.zeros((part.v.at.n_classes, self.size)))
        part.clear()
        return part

    def start(self, alpha):
        v = self.v.at
        flows = np.maximum(-alpha[v.rows], 0) * (1 - v.own) / v.C[:, None]
        v.p = flows / np.maximum(flows.sum(axis=1, keepdims=True), 1)
        v.p += v.own * (1 - v.p.sum(axis=1, keepdims=True))

    def clear(self):
        self.v.at.p = self.v.at.center = self.v.at.own.copy()

    def _s(self, values):
        return values + 1 - self.v.at.own

    def decide(self):
        self.v.at.p = np.eye(self.v.at.n_classes)[self._s(self.v.at.values).argmax(axis=1)]

    def place(self, a):
        v, before = self.v.at, self.v.at.values
        v.values = self._A() @ a.T
        return float(np.abs(v.values - before).max())

    def _alpha(self, factors=None):
        v = self.v.at
        flows = v.C[:, None] * v.p * (1 - v.own) * (1 if factors is None else factors[v.labels])
        return v.own * flows.sum(axis=1, keepdims=True) - flows

    def sums(self, factors=None):
        alpha = self._alpha(factors)
        return JointSums(alpha.T @ self._A(), float((alpha * self.v.at.own).sum()))

    def flow(self):
        return float((self._alpha() * self.v.at.own).sum())

    def flows(self):
        return self.v.at.own.T @ np.maximum(-self._alpha(), 0)

    def mean_curvature(self):
        return float(np.mean(self.v.at.C * (self.features.A.at[:, :-1] ** 2).sum(axis=1)))

    def survey(self, scale=1.0):
        v, s = self.v.at, self._s(scale * self.v.at.values)
        slack, ordered = s.max(axis=1) - (s * v.own).sum(axis=1), np.sort(s, axis=1)
        decided = v.p[np.arange(len(s)), s.argmax(axis=1)] == 1
        v.distance = np.where(decided, ordered[:, -1] - ordered[:, -2], 0)
        return Survey(float(v.C @ slack), float(slack.max()), int((slack >= 1).sum()))

    def near(self, reach):
        self.part = self._restrict(np.flatnonzero(self.v.at.distance <= reach))
        return self.part

    def take_back(self):
        self.v.at.p[self.part.v.at.rows] = self.part.v.at.p

    def aim(self, step):
        v = self.v.at
        v.along, v.found = self._A() @ step.T, v.p
        return float(v.C @ np.abs(v.along).max(axis=1, initial=0))

    def smooth(self, t, delta):
        v = self.v.at
        along = getattr(v, "along", 0 * v.values)
        s = self._s(v.values + t * along)
        point = v.center + (s - s.max(axis=1, keepdims=True)) / delta
        u = -np.sort(-point, axis=1)
        theta = (np.cumsum(u, axis=1) - 1) / np.arange(1, u.shape[1] + 1)
        last = (u > theta).sum(axis=1) - 1
        v.found = np.maximum(point - theta[np.arange(len(u)), last][:, None], 0)
        gap = v.C @ (v.found * (s.max(axis=1, keepdims=True) - s)).sum(axis=1)
        return float(gap), float(v.C @ ((v.found - v.own) * along).sum(axis=1))

    def advance(self, t):
        v = self.v.at
        v.values, v.p = v.values + t * getattr(v, "along", 0), v.found

    def curvature(self, delta):
        member = self.v.at.p > 0
        several = member.sum(axis=1) > 1
        return PlainJointRows(
            self._A()[several], member[several] * 1.0, self.v.at.C[several] / delta
        )

    def keep(self):
        self.v.at.kept = self.v.at.p.copy()

    def restore(self):
        self.v.at.p = self.v.at.kept

    def alpha(self):
        v = self.v.at
        out = np.zeros((v.n_samples, v.n_classes))
        out[v.rows] = self._alpha()
        return out


class PlainJointRows:
    """Rows with several classes, and P_i times their weights: an (n, c, c) array."""

    def __init__(self, A, member, weight):
        shares = member[:, :, None] * member[:, None] / member.sum(axis=1)[:, None, None]
        P = np.eye(member.shape[1]) * member[:, None] - shares
        self.A, self.P = Hidden(A), Hidden(weight[:, None, None] * P)
        self.Z = Hidden([np.sqrt(c)[c > 0, None] * A[c > 0] for c in self.P.at.diagonal(0, 1, 2).T])
        self.class_sizes = [len(Z) for Z in self.Z.at]

    def squares(self):
        return np.array([(Z**2).sum(axis=0) for Z in self.Z.at])

    def product(self, step):
        return np.einsum("ikm,im,ia->ka", self.P.at, self.A.at @ step.T, self.A.at)

    def hessian(self):
        return np.einsum("ikm,ia,ib->kamb", self.P.at, self.A.at, self.A.at)

    def class_blocks(self):
        return [Z.T @ Z for Z in self.Z.at]

    def class_grams(self, bias):
        scales = [np.append(np.ones(self.Z.at[0].shape[1] - 1), b) if b else 1.0 for b in bias]
        return [(Z * scale) @ Z.T for Z, scale in zip(self.Z.at, scales, strict=True)]

    def class_scores(self, step):
        return [Z @ step_k for Z, step_k in zip(self.Z.at, step, strict=True)]

    def class_combine(self, q):
        return np.array([q_k @ Z for Z, q_k in zip(self.Z.at, q, strict=True)])
