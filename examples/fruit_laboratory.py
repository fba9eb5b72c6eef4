"""The laboratory exercise: for each pair of fruits solve the quadratic program, print α, w and b,
and draw the decision line with the data.

    python examples/fruit_laboratory.py [FOLDER]
"""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
fruit = mm.datasets.load_fruit()
features = ["width_cm", "height_cm"]
X = fruit.data[:, [fruit.feature_names.index(name) for name in features]]
kinds = fruit.target_names[fruit.target]

figure, axes = plt.subplots(2, 5, figsize=(22, 9), layout="constrained")
for ax, (first, second) in zip(axes.flat, combinations(fruit.target_names, 2), strict=True):
    rows = np.isin(kinds, (first, second))
    pair, labels = X[rows], kinds[rows]
    separable = mm.separability(pair, labels).separable
    # The hard margin where a plane exists, a soft one where the proof says that none does.
    model = mm.SVC(kernel="linear", C=np.inf if separable else 10.0).fit(pair, labels)
    w, b = model.coef_[0], model.intercept_[0]
    alpha = np.abs(model.dual_coef_[0])
    print(f"{second} against {first}: {'hard' if separable else 'soft'} margin")
    print(f"  α  = {alpha.round(4)} of samples {np.flatnonzero(rows)[model.support_]}")
    print(f"  w  = {w.round(4)}, b = {b:.4f}, band 2/‖w‖ = {model.hyperplane_.margin_width():.4f}")
    print(f"  {model.certificate_}")
    mm.plots.boundary(model, pair, labels, ax=ax, feature_names=features, legend=False)
    ax.set_title(f"{first} and {second}")
figure.savefig(folder / "fruit-pairs.png", dpi=100)

machine = mm.SVC(kernel="linear", C=10).fit(X, kinds)
display = mm.plots.boundary(machine, X, kinds, feature_names=features)
display.save(folder / "fruit-lines.png")
print(f"all five kinds by the votes of ten lines: error {1 - machine.score(X, kinds):.3f}")
