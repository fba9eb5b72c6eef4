"""
C: a wide band or few errors
============================

C is the cost of a unit of slack. As it grows, the band gets narrower and fewer points are inside of
it. Along the way α is a piecewise linear function of C, and
`~maxmargin.model_selection.c_path` returns all of it at once.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_blobs

import maxmargin as mm

# %%
# Three values of C
# -----------------

X, labels = make_blobs(120, centers=[[-1.0, 0.0], [1.0, 0.6]], cluster_std=0.75, random_state=4)
y = np.where(labels == 1, 1, -1)
figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.8), layout="constrained")
for ax, C in zip(axes, (0.01, 0.1, 10.0), strict=True):
    model = mm.SVC(kernel="linear", C=C).fit(X, y)
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    width = model.hyperplane_.margin_width()
    ax.set_title(f"C = {C:g}: width {width:.2f}")
plt.show()

# %%
# Every C
# -------
# The first half of the rows is for training, the second for testing. The path has the machines of
# all C in the range, each with its certificate.

path = mm.model_selection.c_path(X[::2], y[::2], kernel="linear", C_min=1e-3, C_max=100.0)
print(path)
figure, axes = plt.subplots(4, figsize=(8, 10), sharex=True, layout="constrained")
mm.plots.c_path(path, X[1::2], y[1::2], axes=axes)
plt.show()
