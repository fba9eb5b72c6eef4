"""
Novelty: where are most of the data?
====================================

The one-class machine has no labels. It finds a region that holds all but a share ν of the training
rows: ν bounds the share of rows outside from above, and the share of support vectors from below.
"""

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 150)
ring = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.12, (150, 2))
X = np.vstack([ring, rng.normal([2.6, 0.0], 0.2, (50, 2))])

# %%
# Three values of ν
# -----------------

figure, axes = plt.subplots(1, 3, figsize=(12.3, 3.8), layout="constrained")
for ax, nu in zip(axes, (0.02, 0.1, 0.4), strict=True):
    model = mm.OneClassSVM(nu=nu, gamma=2.0).fit(X)
    outside = np.mean(model.decision_function(X) < -1e-6)
    mm.plots.boundary(model, X, ax=ax, legend=False)
    ax.set_title(f"ν = {nu:g}: {outside:.1%} outside, {model.support_.size / len(X):.1%} support")
plt.show()

# %%
# New rows
# --------
# The region was drawn around the training rows, so new rows of the same kind are accepted less
# often than these. Rows from the whole square are accepted where they fall into it.

model = mm.OneClassSVM(nu=0.1, gamma=2.0).fit(X)
angle = rng.uniform(0, 2 * np.pi, 1000)
same = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.12, (1000, 2))
other = rng.uniform(-2, 4, (1000, 2))
print(f"rows of the ring accepted: {np.mean(model.predict(same) == 1):.1%}")
print(f"rows of the whole square accepted: {np.mean(model.predict(other) == 1):.1%}")
print(mm.diagnostics.margin_report(model, X))

figure, axes = plt.subplots(1, 2, figsize=(9.84, 3.8), layout="constrained")
mm.plots.margins(model, X, ax=axes[0])
mm.plots.support(model, X, ax=axes[1])
plt.show()
