"""
Imbalanced classes and class weights
====================================

Of 1,000 rows 50 belong to the class that matters. A machine that minimises the sum of all slacks
may leave most of them on the wrong side. ``class_weight`` multiplies the cost of a class.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.metrics import balanced_accuracy_score, precision_score, recall_score

import maxmargin as mm


def rows(seed):
    """Return two overlapping clouds of 950 and 50 points."""
    rng = np.random.default_rng(seed)
    common, rare = rng.normal(0.0, 1.0, (950, 2)), rng.normal([1.8, 1.2], 0.8, (50, 2))
    return np.vstack([common, rare]), np.repeat(["common", "rare"], [950, 50])


X, y = rows(0)
X_test, y_test = rows(1)

# %%
# Three weights
# -------------
# "balanced" gives both classes the same total cost. Precision and recall of the rare class are on
# test rows; the accuracy of the constant answer "common" is 95 %.

weights = {"none": None, "rare: 5": {"rare": 5.0}, "balanced": "balanced"}
figure, axes = plt.subplots(1, 3, figsize=(12.3, 3.9), layout="constrained")
for ax, (name, weight) in zip(axes, weights.items(), strict=True):
    model = mm.SVC(gamma=0.5, class_weight=weight).fit(X, y)
    answers = model.predict(X_test)
    precision = precision_score(y_test, answers, pos_label="rare", zero_division=0)
    recall = recall_score(y_test, answers, pos_label="rare")
    print(f"{name:10} accuracy {np.mean(answers == y_test):.3f}, "
          f"balanced accuracy {balanced_accuracy_score(y_test, answers):.3f}, "
          f"precision {precision:.3f}, recall {recall:.3f}")  # fmt: skip
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    ax.set_title(f"{name}: recall {recall:.0%}, precision {precision:.0%}")
plt.show()

# %%
# Any weight
# ----------
# Which weight is right depends on what the two kinds of errors cost. The curve shows what can be
# had.

factors = np.geomspace(0.5, 100, 16)
models = [mm.SVC(gamma=0.5, class_weight={"rare": w}).fit(X, y) for w in factors]
answers = [model.predict(X_test) for model in models]
recalls = [recall_score(y_test, each, pos_label="rare") for each in answers]
precisions = [
    precision_score(y_test, each, pos_label="rare", zero_division=np.nan) for each in answers
]
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.plot(factors, recalls, "o-", label="recall")
ax.plot(factors, precisions, "s-", label="precision")
ax.set(xscale="log", xlabel="weight of the rare class", ylim=(0, 1.02))
ax.legend()
plt.show()
