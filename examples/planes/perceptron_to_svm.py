"""
From the perceptron to the support vector machine
=================================================

Any plane, a good plane, the best plane: six rules on the same six points. All of them separate the
classes; they differ in the distance that they leave between the plane and the nearest point.
"""

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

# %%
# Is there a plane?
# -----------------
# `separability` answers with a proof. With ``maximum_margin=True`` it also bounds the distance that
# a plane can have from all points: half the distance of two points in the hulls of the classes.

X, y = mm.datasets.load_six_points(return_X_y=True)
best = mm.separability(X, y, maximum_margin=True)
print(best)

# %%
# Six planes
# ----------
# The perceptron stops at the first plane that makes no mistake. Relaxation asks for a margin.
# Least squares fit the labels as numbers, and Ho–Kashyap chooses these numbers as well, so that it
# separates wherever that is possible. The support vector machine maximises the distance; with a
# small C it prefers a wide band to points that are all outside of it.

models = {
    "perceptron": mm.Perceptron(),
    "relaxation, margin 1": mm.Relaxation(margin=1.0),
    "least squares": mm.Pseudoinverse(),
    "Ho–Kashyap": mm.HoKashyap(),
    "soft margin, C = 0.02": mm.SVC(kernel="linear", C=0.02),
    "hard margin": mm.SVC(kernel="linear", C=np.inf),
}
figure, axes = plt.subplots(2, 3, figsize=(9.84, 6.1), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    model.fit(X, y)
    distance = model.hyperplane_.geometric_margin(X, y)
    print(f"{name:22} smallest distance {distance:8.4f} of at most {best.margin_bound:.4f}")
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    ax.set_title(f"{name}: {distance:.3f}")
plt.show()

# %%
# What each of them proves
# ------------------------
# The certificate of a separating rule says that no point is on the wrong side. Only that of the
# hard margin says that no plane has a larger distance: its primal and dual values are equal.

for name, model in models.items():
    print(f"{name}: {model.certificate_}")
