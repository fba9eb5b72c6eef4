"""
Separable or not, with a proof
==============================

Either a plane separates two classes, or their convex hulls share a point. Both answers can be
checked from the data alone: a plane by the signs of its scores, a common point by the weights of
the samples that make it. `separability` returns one of the two.
"""

from itertools import combinations

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

# %%
# Ten pairs of fruits
# -------------------
# Widths and heights of five kinds of fruit. Each picture has the hulls of two of them, and between
# them the widest band, or the point that they share.

fruit = mm.datasets.load_fruit()
columns = ["width_cm", "height_cm"]
X = fruit.data[:, [fruit.feature_names.index(name) for name in columns]]
kinds = fruit.target_names[fruit.target]
figure, axes = plt.subplots(2, 5, figsize=(13.1, 5.7), layout="constrained")
for ax, pair in zip(axes.flat, combinations(fruit.target_names, 2), strict=True):
    rows = np.isin(kinds, pair)
    report = mm.separability(X[rows], kinds[rows], maximum_margin=True)
    mm.plots.separability(report, X[rows], kinds[rows], ax=ax, feature_names=columns, legend=False)
    ax.set_title(" and ".join(pair) + ("" if report.separable else ": not separable"))
plt.show()

# %%
# Checking the answer by hand
# ---------------------------
# The multipliers u are at least 0 and sum to 1, and :math:`\\sum u_i y_i (x_i, 1) = 0`. Then no
# (w, b) can have all :math:`y_i (w \\cdot x_i + b) > 0`, since their sum with the weights u is 0.

rows = np.isin(kinds, ("apple", "orange"))
points, labels = X[rows], np.where(kinds[rows] == "orange", 1, -1)
report = mm.separability(points, labels)
u = report.multipliers
residual = (u * labels) @ np.column_stack([points, np.ones(len(points))])
print(report)
print(f"smallest u {u.min():.1g}, sum {u.sum():.15f}, largest |Σ u y (x, 1)| "
      f"{np.abs(residual).max():.1g}")  # fmt: skip

# %%
# A third feature gives planes more freedom. For these two it does not suffice.

three = mm.separability(fruit.data[rows], labels)
print("with the mass:", three)
