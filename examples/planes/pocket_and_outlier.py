"""
One outlier: perceptron, pocket and soft margin
===============================================

A single mislabelled point makes two classes inseparable. The perceptron never comes to rest on such
data and returns the plane at which its limit found it. The pocket keeps the plane with the fewest
mistakes. The soft margin solves a convex problem whose answer does not depend on the order.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

# %%
# Two clouds, and one point of the first among the second.

rng = np.random.default_rng(3)
X = np.vstack([rng.normal([-1.5, 0.0], 0.6, (30, 2)), rng.normal([1.5, 0.0], 0.6, (30, 2))])
y = np.repeat([-1, 1], 30)
X, y = np.vstack([X, [[1.8, 0.2]]]), np.append(y, -1)
report = mm.separability(X, y)
print(report)

# %%
# The proof is a point in the hulls of both classes. Every plane has it on one side, and hence a
# point of one class on the side of the other.

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
mm.plots.separability(report, X, y, ax=ax)
plt.show()

# %%
# Three answers
# -------------

perceptron = mm.Perceptron(max_iter=100, random_state=1)
pocket = mm.Pocket(max_iter=100, random_state=1)
machine = mm.SVC(kernel="linear", C=1.0)
figure, axes = plt.subplots(1, 3, figsize=(10.7, 3.7), layout="constrained")
for ax, model in zip(axes, (perceptron, pocket, machine), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the perceptron has not converged
        model.fit(X, y)
    wrong = np.count_nonzero(model.predict(X) != y)
    print(f"{type(model).__name__:11} {wrong} of {len(y)} wrong; {model.certificate_}")
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    ax.set_title(f"{type(model).__name__}: {wrong} wrong")
plt.show()

# %%
# Mistakes along the way
# ----------------------
# The planes of the perceptron after each pass, and the least number of mistakes of any of them so
# far: this is what a pocket keeps. (`Pocket` itself looks after every correction.)

recorder = mm.Recorder()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    perceptron.set_params(callback=recorder).fit(X, y)
mistakes = [np.sum(step.plane().margins(X, y) <= 0) for step in recorder.steps]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.step(range(1, 101), mistakes, where="mid", label="this plane")
ax.step(range(1, 101), np.minimum.accumulate(mistakes), where="mid", label="best plane so far")
ax.set(xlabel="pass", ylabel="mistakes", ylim=(0, None))
ax.legend()
plt.show()
