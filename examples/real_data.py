"""A real data set end to end: 569 tumours, 30 measurements, from the table to a report.

python examples/real_data.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import report

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
data = load_breast_cancer()
X, y = data.data, data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# Is there a plane at all? The answer comes with a proof.
print(mm.separability(StandardScaler().fit_transform(X), y))

# Choose C and γ by cross-validation, as with any scikit-learn estimator.
pipeline = make_pipeline(StandardScaler(), mm.SVC())
grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": ["scale", 0.003, 0.01]}
search = GridSearchCV(pipeline, grid, cv=5).fit(X_train, y_train)
model = search.best_estimator_
print(f"chosen {search.best_params_}: cross-validated error {1 - search.best_score_:.4f}")
print(
    f"test error {1 - model.score(X_test, y_test):.4f}, {len(model[-1].support_)} support vectors"
)
print(model[-1].certificate_)

# A file that holds the pipeline and runs nothing when it is read.
mm.save(model, folder / "tumours.mm")
again = mm.load(folder / "tumours.mm")
assert np.array_equal(again.predict(X_test), model.predict(X_test))
page = report.render(again, X_test, y_test, data="tumours, test rows")
report.write(page, folder / "tumours.html")
print(f"report: {folder / 'tumours.html'}")
