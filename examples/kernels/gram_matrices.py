"""
Kernel matrices, and what makes a kernel
========================================

A symmetric function is an inner product in some space if and only if all of its matrices
:math:`K_{ij} = K(x_i, x_j)` are positive semidefinite (Mercer). `mercer` checks this on data;
sums, products and multiples of kernels are kernels again.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

import maxmargin as mm
from maxmargin.kernels import RBF, Linear, Polynomial, Sigmoid

X, y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)

# %%
# Blocks of classes
# -----------------
# The rows are sorted by class. Where K is large within classes and small between them, a kernel
# machine has an easy task. The eigenvalues tell how many dimensions the data have in feature space.

kernels = {"linear": Linear(), "RBF, γ = 0.5": RBF(0.5), "RBF, γ = 50": RBF(50.0)}
figure, axes = plt.subplots(3, 2, figsize=(10, 12), layout="constrained")
for row, (name, kernel) in zip(axes, kernels.items(), strict=True):
    mm.plots.gram(kernel, X, y, axes=row)
    row[0].set_title(name)
plt.show()

# %%
# Combinations
# ------------

both = 0.5 * RBF(0.5) + Linear() * Polynomial(degree=2, coef0=1.0)
model = mm.SVC(kernel=both).fit(X, y)
print(both)
print(f"training error {1 - model.score(X, y):.3f}; {model.certificate_}")

# %%
# A function that is no kernel
# ----------------------------
# The sigmoid is an inner product for some of its parameters only. `mercer` finds an eigenvalue
# below zero, which is a proof.

for kernel in (RBF(0.5), both, Sigmoid(gamma=1.0, coef0=-1.0)):
    print(mm.kernels.mercer(kernel, X))
smallest = np.linalg.eigvalsh(Sigmoid(gamma=1.0, coef0=-1.0)(X)).min()
print(f"smallest eigenvalue of the sigmoid's matrix: {smallest:.4f}")
