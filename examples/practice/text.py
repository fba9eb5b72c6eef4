"""
Sparse text
===========

Texts as rows of word weights have thousands of columns, of which a row uses few. `LinearSVC` takes
them as they are. The texts here are those that are on every machine with SciPy: the docstrings of
its functions. Which module is one from?
"""

import importlib
import inspect

import numpy as np
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

import maxmargin as mm

# %%
# Paragraphs of docstrings
# ------------------------

modules = ("linalg", "optimize", "signal", "stats")
texts, kinds = [], []
for module in modules:
    library = importlib.import_module(f"scipy.{module}")
    documents = {inspect.getdoc(getattr(library, name)) or "" for name in library.__all__}
    paragraphs = {part for document in documents for part in document.split("\n\n")}
    for part in sorted(paragraphs):
        if 100 < len(part) < 2000 and ">>>" not in part:
            texts.append(part)
            kinds.append(module)
training, test, y, y_test = train_test_split(texts, kinds, test_size=0.3, random_state=0)

vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=r"[A-Za-z]{3,}")
X, X_test = vectorizer.fit_transform(training), vectorizer.transform(test)
print(f"{X.shape[0]:,} paragraphs of {X.shape[1]:,} words, {X.nnz / X.shape[0]:.0f} per row")

# %%
# The machine
# -----------
# One weight vector per class. The certificate holds for the sparse rows; nothing of the size of a
# dense table is made.

model = mm.LinearSVC(C=1.0).fit(X, y)
print(f"test error {1 - model.score(X_test, y_test):.3f}")
print(model.certificate_)

# %%
# The words with the largest weights
# ----------------------------------

words = vectorizer.get_feature_names_out()
figure, axes = plt.subplots(1, len(modules), figsize=(11.5, 3.7), layout="constrained")
for ax, kind, w in zip(axes, model.classes_, model.coef_, strict=True):
    top = np.argsort(w)[-12:]
    ax.barh(words[top], w[top])
    ax.set(title=f"scipy.{kind}", xlabel="weight")
plt.show()

# %%
# Few words
# ---------
# With an ℓ1 penalty most weights are exactly 0. The smaller C, the fewer words are used.

Cs = np.geomspace(0.02, 5, 6)
few = [mm.LinearSVC(penalty="l1", dual=False, C=C).fit(X, y) for C in Cs]
used = [np.count_nonzero(model.coef_.any(axis=0)) for model in few]
errors = [1 - model.score(X_test, y_test) for model in few]
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.plot(used, errors, "o-")
ax.set(xscale="log", xlabel="words used", ylabel="test error")
plt.show()
