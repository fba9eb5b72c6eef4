"""
The laboratory exercise on fruit
================================

For each pair of five kinds of fruit: solve the quadratic program, print α, w and b, and draw the
line with the data. The margin is hard where a plane exists, and soft where the proof says that none
does.
"""

from itertools import combinations

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

# %%
# Ten pairs
# ---------

fruit = mm.datasets.load_fruit()
features = ["width_cm", "height_cm"]
X = fruit.data[:, [fruit.feature_names.index(name) for name in features]]
kinds = fruit.target_names[fruit.target]

figure, axes = plt.subplots(2, 5, figsize=(14.8, 6.1), layout="constrained")
for ax, (first, second) in zip(axes.flat, combinations(fruit.target_names, 2), strict=True):
    rows = np.isin(kinds, (first, second))
    pair, labels = X[rows], kinds[rows]
    separable = mm.separability(pair, labels).separable
    model = mm.SVC(kernel="linear", C=np.inf if separable else 10.0).fit(pair, labels)
    w, b = model.coef_[0], model.intercept_[0]
    alpha = np.abs(model.dual_coef_[0])
    print(f"{second} against {first}: {'hard' if separable else 'soft'} margin")
    print(f"  α  = {alpha.round(4)} of samples {np.flatnonzero(rows)[model.support_]}")
    print(f"  w  = {w.round(4)}, b = {b:.4f}, band 2/‖w‖ = {model.hyperplane_.margin_width():.4f}")
    print(f"  {model.certificate_}")
    mm.plots.boundary(model, pair, labels, ax=ax, feature_names=features, legend=False)
    ax.set_title(f"{first} and {second}")
plt.show()

# %%
# All five kinds
# --------------
# Ten lines, one per pair, vote for a class. A point of the plane belongs to the class with the most
# votes.

machine = mm.SVC(kernel="linear", C=10).fit(X, kinds)
figure, ax = plt.subplots(figsize=(8, 6), layout="constrained")
mm.plots.boundary(machine, X, kinds, ax=ax, feature_names=features)
plt.show()
print(f"all five kinds by the votes of ten lines: error {1 - machine.score(X, kinds):.3f}")
