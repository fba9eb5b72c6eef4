"""
γ: from a smooth boundary to a memorised table
==============================================

The RBF kernel :math:`K(x, z) = \\exp(-\\gamma \\|x - z\\|^2)` compares points that are nearer than
about :math:`1/\\sqrt{\\gamma}`. A small γ makes nearly a plane, a large one an island around every
training point: no training errors, and poor answers elsewhere.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

import maxmargin as mm

X, y = make_moons(200, noise=0.3, random_state=0)
X_test, y_test = make_moons(2000, noise=0.3, random_state=1)

# %%
# Four boundaries
# ---------------

figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
for ax, gamma in zip(axes.flat, (0.01, 1.0, 30.0, 1000.0), strict=True):
    model = mm.SVC(C=10.0, gamma=gamma).fit(X, y)
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    training, test = 1 - model.score(X, y), 1 - model.score(X_test, y_test)
    ax.set_title(f"γ = {gamma:g}: error {training:.1%} training, {test:.1%} test")
plt.show()

# %%
# The curve of errors
# -------------------
# Every one of these fits is optimal, as its certificate proves. A certificate is about the
# objective on the training rows, not about errors on new ones, which test rows estimate.

gammas = np.geomspace(1e-3, 1e4, 15)
models = [mm.SVC(C=10.0, gamma=gamma).fit(X, y) for gamma in gammas]
assert all(model.certificate_.holds(1e-3) for model in models)
figure, (errors, shares) = plt.subplots(2, figsize=(7, 6), sharex=True, layout="constrained")
errors.plot(gammas, [1 - model.score(X, y) for model in models], "o-", label="training")
errors.plot(gammas, [1 - model.score(X_test, y_test) for model in models], "s-", label="test")
errors.set(ylabel="error", xscale="log")
errors.legend()
shares.plot(gammas, [model.support_.size / len(y) for model in models], "k.-")
shares.set(xlabel="γ", ylabel="share of support vectors", ylim=(0, 1.05))
plt.show()
