"""
Least squares: LMS, pseudoinverse and Ho–Kashyap
================================================

The least-squares plane takes labels for numbers, y = ±1, and minimises the squared error. LMS walks
to it sample by sample, the pseudoinverse computes it at once. A point far on its own side counts as
a large error, so the plane may misclassify points of separable classes. Ho–Kashyap repairs this: it
adapts the targets as well, and ends with a separating plane or a proof that there is none.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

# %%
# A plane that is pulled away
# ---------------------------
# Some points of the right class are far away from the boundary, on their own side. They move the
# plane of least squares, not that of Ho–Kashyap.

rng = np.random.default_rng(0)
X = np.vstack([rng.normal([0, 0], 0.4, (20, 2)), rng.normal([2, 0], 0.4, (20, 2)),
               rng.normal([14, 4], 0.5, (6, 2))])  # fmt: skip
y = np.repeat([-1, 1], [20, 26])
squares, kashyap = mm.Pseudoinverse().fit(X, y), mm.HoKashyap().fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(9.84, 3.3), layout="constrained")
for ax, model in zip(axes, (squares, kashyap), strict=True):
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    wrong = np.count_nonzero(model.predict(X) != y)
    ax.set_title(f"{type(model).__name__}: {wrong} wrong")
    print(f"{type(model).__name__}: {model.certificate_}")
plt.show()

# %%
# The step of LMS
# ---------------
# With a constant rate ρ in batch steps, LMS converges for ρ < 2/λ, where λ is the largest
# eigenvalue of Σ x'x'ᵀ with x' = (x, 1). It is slow where ρ is small, and where ρ is too large it
# diverges: the fit ends with a warning, and its status says so.

X, y = mm.datasets.load_six_points(return_X_y=True)
Z = np.column_stack([X, np.ones(len(X))])
limit = 2.0 / np.linalg.eigvalsh(Z.T @ Z).max()
least = mm.Pseudoinverse().fit(X, y)
optimum = np.sum((y - least.decision_function(X)) ** 2)

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for share in (0.1, 0.5, 0.98, 1.2):
    rule = mm.LMS(learning_rate=share * limit, update="batch", max_iter=1200, tol=0.0)
    recorder = mm.Recorder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rule.set_params(callback=recorder).fit(X, y)
    errors = []
    for step in recorder.steps[:300]:
        w, b = step.planes()
        errors.append(np.sum((y - X @ w[0] - b[0]) ** 2))
    ax.plot(np.array(errors) - optimum, label=f"ρ = {share:g} of the limit: {rule.status_}")
ax.set(xlabel="step", xlim=(0, 300))
ax.set(ylabel="squared error above the least", yscale="log", ylim=(1e-4, 1e4))
ax.legend()
plt.show()
print(f"least squared error {optimum:.6f}, limit of the rate {limit:.6f}")
