"""
Probabilities from scores
=========================

The score g(x) of a machine is a distance in feature space, not a probability. Calibration turns it
into one, on rows that the machine has not seen. ``probability=True`` fits Platt's sigmoid;
`sklearn.calibration.CalibratedClassifierCV` offers other shapes.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

import maxmargin as mm

X, y = make_classification(6000, 12, n_informative=5, flip_y=0.15, random_state=2)
X, X_test, y, y_test = train_test_split(X, y, train_size=1500, random_state=0)

# %%
# Two calibrations
# ----------------

platt = mm.SVC(C=1.0, probability=True, random_state=0).fit(X, y)
isotonic = CalibratedClassifierCV(mm.SVC(C=1.0), method="isotonic", cv=5).fit(X, y)
squeezed = 1.0 / (1.0 + np.exp(-platt.decision_function(X_test)))
chances = {
    "1/(1 + exp(−g)), not calibrated": squeezed,
    "Platt's sigmoid": platt.predict_proba(X_test)[:, 1],
    "isotonic": isotonic.predict_proba(X_test)[:, 1],
}

# %%
# The diagonal is perfect calibration: of all rows with the probability p a share of p is of the
# class.

figure, axes = plt.subplots(1, 2, figsize=(9.84, 4.1), layout="constrained")
axes[0].plot([0, 1], [0, 1], color="0.6", ls=":")
for name, chance in chances.items():
    true, said = calibration_curve(y_test, chance, n_bins=12, strategy="quantile")
    axes[0].plot(said, true, "o-", label=name)
    axes[1].hist(chance, bins=30, range=(0, 1), histtype="step", label=name)
    print(f"{name:32} log loss {log_loss(y_test, chance):.4f}, "
          f"Brier score {brier_score_loss(y_test, chance):.4f}")  # fmt: skip
axes[0].set(xlabel="probability", ylabel="share of the class", aspect="equal")
axes[1].set(xlabel="probability", ylabel="test rows")
axes[0].legend()
plt.show()
