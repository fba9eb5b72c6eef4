"""
Margins, support vectors and the KKT conditions
===============================================

What a machine does with each of its training samples. The margin y g(x) and the multiplier α of a
sample are tied together: α = 0 outside of the band, 0 < α < C on its edge, and α = C inside of it
or on the wrong side.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

import maxmargin as mm

# %%
# The machine
# -----------

X, y = make_moons(200, noise=0.28, random_state=1)
model = mm.SVC(C=2.0, gamma=1.0).fit(X, y)
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
mm.plots.boundary(model, X, y, ax=ax)
plt.show()

# %%
# Its samples
# -----------
# One row per sample: α, margin, slack ξ = max(0, 1 − y g(x)), and what the KKT conditions say of
# it. Rows with the smallest margin, the largest slack, come first.

table = mm.diagnostics.support_table(model, X, y)
print(table.to_text(n_rows=8, sort="margin"))

# %%
# Left: how the margins are distributed. Right: α against the margin. At the optimum every point
# lies on the line of three pieces; the certificate states the largest distance from it.

figure, axes = plt.subplots(1, 2, figsize=(10.7, 4.1), layout="constrained")
mm.plots.margins(model, X, y, ax=axes[0])
mm.plots.support(model, X, y, ax=axes[1])
plt.show()
print(model.certificate_)

# %%
# The whole machine
# -----------------
# The bound on the leave-one-out error follows from the support vectors: a sample with α = 0 is
# classified the same without it.

print(mm.diagnostics.margin_report(model, X, y))
