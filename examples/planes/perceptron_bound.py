"""
The perceptron, correction by correction
========================================

Novikoff's theorem bounds the corrections of the perceptron by :math:`(R/\\gamma)^2`, where R is the
length of the longest sample and γ the distance that some plane leaves to all samples. The bound
needs no assumption on the order of the samples. How close do runs come to it?
"""

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

# %%
# One run
# -------
# The samples are visited in their order. The left picture has the plane after each correction, the
# right one the path of w and the cone of all w that separate.

X, y = mm.datasets.load_six_points(return_X_y=True)
model = mm.Perceptron(shuffle=False).fit(X, y)
print(f"{model.n_updates_} corrections, at most {model.mistake_bound_:.0f}")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
mm.plots.path(model, X, y, axes=axes)
plt.show()

# %%
# Narrower gaps
# -------------
# Two clouds are moved together. The bound grows with the inverse square of the margin. The
# corrections grow as well, but far more slowly: the theorem holds for the worst points in the worst
# order. ``mistake_bound_`` takes γ from the plane that was found; the bound here takes it from the
# best plane, and is the smallest that the theorem gives.

rng = np.random.default_rng(0)
labels = np.repeat([-1, 1], 100)
cloud = rng.uniform(-1.0, 1.0, (200, 2))
gaps, corrections, bounds = np.geomspace(1.0, 0.01, 9), [], []
for gap in gaps:
    points = cloud + np.outer(labels, [1.0 + gap / 2, 0.0])
    rows = np.column_stack([points, np.ones(200)])
    # A plane through the origin of (x, 1) is a plane of x with its bias.
    machine = mm.LinearSVC(loss="hinge", C=np.inf, fit_intercept=False).fit(rows, labels)
    margin = machine.hyperplane_.geometric_margin(rows, labels)
    radius = np.linalg.norm(rows, axis=1).max()
    runs = [mm.Perceptron(random_state=seed).fit(points, labels) for seed in range(10)]
    corrections.append([run.n_updates_ for run in runs])
    bounds.append((radius / margin) ** 2)
    assert max(corrections[-1]) <= bounds[-1]

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.plot(gaps, bounds, "k-", label="bound (R/γ)²")
ax.plot(gaps, np.median(corrections, axis=1), "o-", label="median of 10 runs")
ax.fill_between(gaps, np.min(corrections, axis=1), np.max(corrections, axis=1), alpha=0.25,
                label="least and most")  # fmt: skip
ax.set(xscale="log", yscale="log", xlabel="gap between the clouds", ylabel="corrections")
ax.legend()
plt.show()
print(f"smallest gap: {max(corrections[-1])} corrections at most, bound {bounds[-1]:.0f}")
