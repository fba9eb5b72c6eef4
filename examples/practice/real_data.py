"""
A real data set end to end
==========================

569 tumours, 30 measurements: from the table to a model that is saved, and a report of it.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import report

data = load_breast_cancer()
X, y = data.data, data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# Is there a plane at all?
# ------------------------
# The answer comes with a proof.

print(mm.separability(StandardScaler().fit_transform(X), y))

# %%
# Choose C and γ
# --------------
# By cross-validation, as with any scikit-learn estimator. The scaler is part of the pipeline, so
# that it never sees the rows that a fold is tested on.

pipeline = make_pipeline(StandardScaler(), mm.SVC())
grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": ["scale", 0.003, 0.01]}
search = GridSearchCV(pipeline, grid, cv=5).fit(X_train, y_train)
model = search.best_estimator_
print(f"chosen {search.best_params_}: cross-validated error {1 - search.best_score_:.4f}")
print(
    f"test error {1 - model.score(X_test, y_test):.4f}, {len(model[-1].support_)} support vectors"
)
print(model[-1].certificate_)

# %%
# The margins
# -----------
# Of training rows and of test rows: of the latter a larger share is below 1, and below 0.

figure, axes = plt.subplots(1, 2, figsize=(10.7, 4.1), layout="constrained")
mm.plots.margins(model, X_train, y_train, ax=axes[0])
axes[0].set_title("training rows")
mm.plots.margins(model, X_test, y_test, ax=axes[1])
axes[1].set_title("test rows")
plt.show()

# %%
# Keep it
# -------
# A file that holds the pipeline and runs nothing when it is read, and a report: one HTML page with
# figures, certificates and measures.

with TemporaryDirectory() as folder:
    mm.save(model, Path(folder, "tumours.mm"))
    again = mm.load(Path(folder, "tumours.mm"))
    page = report.render(again, X_test, y_test, data="tumours, test rows")
    report.write(page, Path(folder, "tumours.html"))
    for file in sorted(Path(folder).iterdir()):
        print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")
print("same answers:", np.array_equal(again.predict(X_test), model.predict(X_test)))
