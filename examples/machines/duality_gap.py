"""
The duality gap closes
======================

Every plane has a primal value P, and every feasible α has a dual value D ≤ P. What is unknown, the
optimum, lies between them: the gap P − D is a bound on how far both are from it, at any time. A fit
ends when the gap and the violation of the KKT conditions are small enough.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_classification, make_moons

import maxmargin as mm

# %%
# From above and from below
# -------------------------
# SMO moves two α at a time; callbacks are called between rounds of many such steps. D never
# decreases, and P is that of the plane of the current α.

X, y = make_moons(1000, noise=0.25, random_state=0)
recorder = mm.Recorder()
model = mm.SVC(C=10.0, gamma=1.0, solver="smo", callback=recorder).fit(X, y)
primal = [step.primal for step in recorder.steps]
dual = [step.dual for step in recorder.steps]
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.plot(primal, ".-", label="P, of the plane")
ax.plot(dual, ".-", label="D, of α")
ax.axhline(model.certificate_.dual, color="0.5", ls=":", label="certified lower bound")
ax.set(xlabel="round", ylabel="objective")
ax.legend()
plt.show()
print(model.certificate_)

# %%
# Three solvers of the linear machine
# -----------------------------------
# They take different ways to the same value: the problem is convex, and the certificate of each is
# computed from the data, not by the solver. An iteration is a step of one solver and a pass over
# the samples of another, so their numbers say nothing about time.

X, y = make_classification(2000, 20, n_informative=10, flip_y=0.1, random_state=0)
solvers = ("newton", "interior-point", "coordinate-descent")
models = [mm.LinearSVC(loss="hinge", solver=solver, tol=1e-6).fit(X, y) for solver in solvers]
figure, axes = plt.subplots(3, figsize=(8, 9), sharex=True, layout="constrained")
mm.plots.convergence(*models, labels=solvers, axes=axes)
plt.show()
for solver, each in zip(solvers, models, strict=True):
    print(f"{solver:18} P = {each.certificate_.primal:.4f}, D = {each.certificate_.dual:.4f}")
