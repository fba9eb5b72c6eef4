"""
Many classes: pairs, one against the rest, jointly
==================================================

A plane has two sides. Of c classes one makes c(c − 1)/2 machines, one per pair, that vote; c
machines, one per class against the rest; or one joint machine (Crammer–Singer) with c weight
vectors, in which the largest score wins.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_blobs

import maxmargin as mm

X, y = make_blobs(300, centers=[[0, 2.2], [-2, -1], [2, -1], [0, 0.2]], cluster_std=0.65,
                  random_state=7)  # fmt: skip

# %%
# Regions of three machines
# -------------------------
# The class in the middle cannot be separated from all the others by one line, which is what "one
# against the rest" asks for. Pairs and the joint machine only compare classes.

kinds = {"one-vs-one": "ovo", "one-vs-rest": "ovr", "Crammer–Singer": "crammer_singer"}
figure, axes = plt.subplots(1, 3, figsize=(12.3, 4.1), layout="constrained")
for ax, (name, multi_class) in zip(axes, kinds.items(), strict=True):
    model = mm.SVC(kernel="linear", C=1.0, multi_class=multi_class).fit(X, y)
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    ax.set_title(f"{name}: {1 - model.score(X, y):.1%} wrong")
    print(f"{name:15} {len(model.certificates_)} tasks; the worst: {model.certificate_}")
plt.show()

# %%
# With a kernel
# -------------
# The difference is smaller where the machines are flexible.

figure, axes = plt.subplots(1, 3, figsize=(12.3, 4.1), layout="constrained")
for ax, (name, multi_class) in zip(axes, kinds.items(), strict=True):
    model = mm.SVC(gamma=0.5, C=1.0, multi_class=multi_class).fit(X, y)
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    ax.set_title(f"{name}, RBF: {1 - model.score(X, y):.1%} wrong")
plt.show()
