"""
An approximate kernel on many rows
==================================

The exact machine needs the kernel of all pairs of rows near its margin. ``approximate="nystroem"``
replaces the kernel by products of m finite features, made from m landmarks, and fits the linear
machine to them. The certificate is about the optimum in the space of these features; how well they
reproduce the kernel is estimated in ``kernel_error_``.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

import maxmargin as mm

X, y = make_moons(4000, noise=0.3, random_state=0)
X_test, y_test = make_moons(4000, noise=0.3, random_state=1)

# %%
# More landmarks
# --------------

exact = mm.SVC(C=1.0, gamma=2.0).fit(X, y)
machine = mm.SVC(C=1.0, gamma=2.0, approximate="nystroem", random_state=0)
sizes, differences, errors = [5, 10, 20, 50, 100, 200], [], []
for m in sizes:
    model = machine.set_params(n_components=m).fit(X, y)
    differences.append(np.mean(model.predict(X_test) != exact.predict(X_test)))
    errors.append(1 - model.score(X_test, y_test))
    print(f"{m:4} landmarks: test error {errors[-1]:.2%}, "
          f"{differences[-1]:6.2%} of the answers differ from the exact machine's")  # fmt: skip
print("kernel error with the most landmarks:", model.kernel_error_)
print("certificate:", model.certificate_)

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.plot(sizes, differences, "o-", label="answers that differ from the exact machine's")
ax.plot(sizes, errors, "s-", label="test error")
ax.axhline(1 - exact.score(X_test, y_test), color="0.4", ls=":", label="test error, exact")
ax.set(xscale="log", yscale="log", xlabel="landmarks", ylabel="share of test rows")
ax.legend()
plt.show()

# %%
# Two boundaries
# --------------

figure, axes = plt.subplots(1, 2, figsize=(9.84, 3.9), layout="constrained")
few = machine.set_params(n_components=5).fit(X, y)
for ax, (name, model) in zip(axes, {"5 landmarks": few, "exact": exact}.items(), strict=True):
    mm.plots.boundary(model, X, y, ax=ax, legend=False, max_points=500)
    ax.set_title(name, pad=16)
plt.show()
