"""
A map of C and γ
================

`SVCCV` fits all combinations of C and γ on all folds; fits of one γ share their kernel matrices.
Good combinations lie along a diagonal: a larger γ needs a smaller C.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import maxmargin as mm

data = load_breast_cancer()
X, X_test, y, y_test = train_test_split(
    data.data, data.target_names[data.target], stratify=data.target, random_state=0
)
scaler = StandardScaler().fit(X)

# %%
# The grid
# --------
# Each cell is the mean accuracy of five folds. All fits are certified.

search = mm.SVCCV(Cs=9, gammas=9, cv=5).fit(scaler.transform(X), y)
figure, ax = plt.subplots(figsize=(8, 6), layout="constrained")
mm.plots.search(search, ax=ax)
plt.show()
print(search.best_params_)
print("all fits certified:", bool(search.cv_results_["certified"].all()))

# %%
# The choice on new rows
# ----------------------
# The score of the best cell is too good on average, because the cell was chosen for it. The test
# rows have taken no part.

test = search.score(scaler.transform(X_test), y_test)
print(f"cross-validation {search.best_score_:.4f}, test rows {test:.4f}")

# %%
# The outlined cells are within one standard error of the best score. ``one_standard_error=True``
# takes the simplest model of these.

simple = mm.SVCCV(Cs=9, gammas=9, cv=5, one_standard_error=True).fit(scaler.transform(X), y)
test = simple.score(scaler.transform(X_test), y_test)
print(simple.best_params_, f"test rows {test:.4f}")
