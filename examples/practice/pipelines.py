"""
scikit-learn's tools around these estimators
============================================

Change the import and the rest works: pipelines, transformers of columns, calibration, selection of
features, committees.
"""

import numpy as np
import polars as pl
from matplotlib import pyplot as plt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import cross_val_score, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from maxmargin import LMS, SVC, ColumnEncoder, LinearSVC  # instead of sklearn.svm ...

rng = np.random.default_rng(0)
table = pl.DataFrame({
    "mass": rng.normal(150, 30, 300),
    "width": rng.normal(7, 1, 300),
    "colour": rng.choice(["green", "red", "yellow"], 300),
})  # fmt: skip
score = 0.03 * (table["mass"].to_numpy() - 150) + (table["colour"] == "red").to_numpy() - 0.3
ripe = np.where(score + rng.normal(0, 0.3, 300) > 0, "ripe", "not yet")

# %%
# Numbers and words
# -----------------
# Columns of both kinds, with scikit-learn's transformer or with `ColumnEncoder`.

columns = make_column_transformer(
    (StandardScaler(), ["mass", "width"]), (OneHotEncoder(), ["colour"])
)
for name, encoder in (("ColumnTransformer", columns), ("ColumnEncoder", ColumnEncoder())):
    scores = cross_val_score(make_pipeline(encoder, SVC(C=10)), table, ripe, cv=5)
    print(f"SVC after {name}: accuracy {scores.mean():.3f}")

# %%
# Probabilities, features, committees
# -----------------------------------

X = ColumnEncoder().fit_transform(table)
calibrated = CalibratedClassifierCV(LinearSVC(), cv=3).fit(X, ripe)
print("P(ripe) of the first rows:", calibrated.predict_proba(X[:3])[:, 1].round(3))
chosen = SelectFromModel(LinearSVC(C=0.1)).fit(X, ripe)
names = ColumnEncoder().fit(table).get_feature_names_out()
print("features with large weights:", list(names[chosen.get_support()]))
committee = BaggingClassifier(LMS(), n_estimators=25, random_state=0)
print(f"committee of LMS rules: accuracy {cross_val_score(committee, X, ripe, cv=5).mean():.3f}")

# %%
# Learning curves: the accuracy on held-out rows as the training set grows.

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
sizes = np.linspace(0.1, 1.0, 8)
for model in (LinearSVC(), SVC(C=10)):
    rows, _, scores = learning_curve(
        model, X, ripe, train_sizes=sizes, cv=5, shuffle=True, random_state=0
    )
    ax.errorbar(rows, scores.mean(axis=1), scores.std(axis=1), fmt="o-", capsize=3,
                label=type(model).__name__)  # fmt: skip
ax.set(xlabel="training rows", ylabel="accuracy on held-out rows")
ax.legend()
plt.show()

# %%
# Every fit carries its proof, inside of pipelines and searches as well.

model = make_pipeline(ColumnEncoder(), SVC(C=10)).fit(table, ripe)
print(model[-1].certificate_)
