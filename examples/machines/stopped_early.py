"""
A fit that is stopped early
===========================

A limit of steps or seconds ends a fit before its optimum. The model can be used; its certificate
says how far its objective can be from the optimum, and ``warm_start=True`` goes on from there.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import maxmargin as mm

X, y = make_classification(1500, 10, n_informative=6, class_sep=0.8, flip_y=0.1, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)

# %%
# Twenty steps of SMO
# -------------------
# The warning says which limit ended the fit, the status too. The certificate is as reliable as that
# of a fit that converged: it bounds the distance, which is large here.

model = mm.SVC(C=1.0, solver="smo", max_iter=20)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    model.fit(X, y)
print(caught[0].message)
print(model.status_, "|", model.certificate_)

# %%
# What a gap means for predictions
# --------------------------------
# With more steps the gap gets smaller. The last column counts the test rows whose answer differs
# from that of the optimum. A gap bounds the objective, not the change of single answers: how small
# it must be for these to settle depends on the data, and a table like this one shows it.

best = mm.SVC(C=1.0, tol=1e-8).fit(X, y)
steps, gaps, changed = [20, 50, 100, 150, 200, 300, 500, 1000], [], []
for n in steps:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stopped = mm.SVC(C=1.0, solver="smo", max_iter=n).fit(X, y)
    gaps.append(max(stopped.certificate_.relative_gap, 1e-16))
    changed.append(np.mean(stopped.predict(X_test) != best.predict(X_test)))
    print(f"{n:5} steps: relative gap {gaps[-1]:8.1e}, {changed[-1]:6.2%} of answers differ")

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.plot(steps, gaps, "o-", label="relative gap")
ax.plot(
    steps, np.where(changed, changed, np.nan), "s-", label="share of test rows with another answer"
)
ax.set(xscale="log", yscale="log", xlabel="steps of SMO")
ax.legend()
plt.show()

# %%
# Going on
# --------

model.set_params(max_iter=-1, warm_start=True).fit(X, y)
print(model.status_, "|", model.certificate_)
