"""A noisy wave: the tube of support vector regression, what lies outside of it, and outliers.

python examples/regression.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0.0, 6.0, 80))[:, np.newaxis]
y = np.sin(X[:, 0]) + 0.15 * rng.normal(size=80)

# ε is given, or found such that at most a share ν of the samples lies outside of the tube.
given = mm.SVR(C=2.0, epsilon=0.15).fit(X, y)
found = mm.NuSVR(C=2.0, nu=0.3).fit(X, y)
for model in (given, found):
    print(mm.diagnostics.margin_report(model, X, y))
print(mm.diagnostics.support_table(given, X, y).to_text(n_rows=5, sort="residual"))

# The same data as points of the plane: where are most of them?
points = np.column_stack([X[:, 0], y])
region = mm.OneClassSVM(nu=0.1, gamma=1.0).fit(points)
print(mm.diagnostics.margin_report(region, points))

figure, axes = plt.subplots(1, 3, figsize=(19, 5), layout="constrained")
mm.plots.regression(given, X, y, ax=axes[0], feature_names=["x"])
mm.plots.support(given, X, y, ax=axes[1])
mm.plots.boundary(region, points, ax=axes[2], feature_names=["x", "y"])
figure.savefig(folder / "regression.png", dpi=120)

# C and ε have the unit of y: in other units they must be others, or y standardised.
for advice in mm.diagnostics.scaling_advice(mm.SVR().fit(X, 1e4 * y), X, 1e4 * y):
    print(advice)
