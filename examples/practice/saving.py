"""
Save, load, verify, export
==========================

A saved model is a file of numbers that runs nothing when it is read. With its training data the
proof can be repeated, by anybody; for other programs there are ONNX and LIBSVM's text format.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

import maxmargin as mm

X, y = make_moons(300, noise=0.25, random_state=0)
model = mm.SVC(C=10.0, gamma=1.0).fit(X, y)
rows = np.random.default_rng(0).uniform(-1.5, 2.5, (200, 2))
folder = TemporaryDirectory()

# %%
# A file, and what it says about itself
# -------------------------------------

path = Path(folder.name, "moons.mm")
mm.save(model, path, about={"data": "two moons, 300 rows"}, keep_dual=True)
print(mm.persistence.about(path))
again = mm.load(path)
print("same answers:", np.array_equal(again.predict(rows), model.predict(rows)))

# %%
# The proof, repeated
# -------------------
# `verify` recomputes every number of the certificate from the data. A model that was changed does
# not have the proof that it claims.

print(mm.verify(again, X, y))
again.intercept_ = again.intercept_ + 0.1
print("after a change of b:", mm.verify(again, X, y).agrees)

# %%
# LIBSVM's text format
# --------------------

path = Path(folder.name, "moons.model")
mm.persistence.save_libsvm(model, path)
print(path.read_text()[:180], "...")
from_text = mm.persistence.load_libsvm(path)
difference = np.abs(from_text.decision_function(rows) - model.decision_function(rows)).max()
print(f"largest difference of scores: {difference:.1e}")

# %%
# ONNX
# ----
# A graph that other runtimes compute, in float32 or float64. It needs the packages of
# ``pip install "maxmargin[onnx]"``.

graph = mm.persistence.to_onnx(model, dtype="float32")
print("operations:", [node.op_type for node in graph.graph.node])

# %%
# The model that is in all of these files:

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
mm.plots.boundary(model, X, y, ax=ax)
plt.show()
folder.cleanup()
