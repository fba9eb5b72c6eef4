"""
The tube of support vector regression
=====================================

Support vector regression ignores errors up to ε. Targets in the tube g(x) ± ε cost nothing, and
only samples on its edge or outside of it are support vectors.
"""

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0.0, 6.0, 80))[:, np.newaxis]
y = np.sin(X[:, 0]) + 0.15 * rng.normal(size=80)

# %%
# Three tubes
# -----------

figure, axes = plt.subplots(1, 3, figsize=(12.3, 3.8), layout="constrained")
for ax, epsilon in zip(axes, (0.05, 0.15, 0.5), strict=True):
    model = mm.SVR(C=2.0, epsilon=epsilon).fit(X, y)
    mm.plots.regression(model, X, y, ax=ax, feature_names=["x"], legend=False)
plt.show()

# %%
# ε given, or found
# -----------------
# ν replaces ε: at most a share ν of the samples lies outside of the tube, and at least a share ν
# are support vectors.

given = mm.SVR(C=2.0, epsilon=0.15).fit(X, y)
found = mm.NuSVR(C=2.0, nu=0.3).fit(X, y)
for model in (given, found):
    print(mm.diagnostics.margin_report(model, X, y))

figure, axes = plt.subplots(1, 2, figsize=(9.84, 3.9), layout="constrained")
mm.plots.regression(found, X, y, ax=axes[0], feature_names=["x"])
mm.plots.support(given, X, y, ax=axes[1])
plt.show()

# %%
# Samples by their residuals
# --------------------------

print(mm.diagnostics.support_table(given, X, y).to_text(n_rows=5, sort="residual"))

# %%
# Units
# -----
# C and ε have the unit of y: in other units they must be others, or y standardised.

for advice in mm.diagnostics.scaling_advice(mm.SVR().fit(X, 1e4 * y), X, 1e4 * y):
    print(advice)
