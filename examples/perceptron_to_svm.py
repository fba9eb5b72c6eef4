"""From the perceptron to the support vector machine: any plane, a good plane, the best plane.

python examples/perceptron_to_svm.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
X, y = mm.datasets.load_six_points(return_X_y=True)
best = mm.separability(X, y, maximum_margin=True)
print(best)

models = {
    "perceptron": mm.Perceptron(),
    "relaxation, margin 1": mm.Relaxation(margin=1.0),
    "least squares": mm.Pseudoinverse(),
    "Ho–Kashyap": mm.HoKashyap(),
    "soft margin, C=0.02": mm.SVC(kernel="linear", C=0.02),
    "hard margin": mm.SVC(kernel="linear", C=np.inf),
}
figure, axes = plt.subplots(2, 3, figsize=(15, 9), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    model.fit(X, y)
    distance = model.hyperplane_.geometric_margin(X, y)
    print(f"{name:22} smallest distance {distance:8.4f} of at most {best.margin_bound:.4f}")
    mm.plots.boundary(model, X, y, ax=ax, legend=False)
    ax.set_title(f"{name}: {distance:.3f}")
figure.savefig(folder / "perceptron-to-svm.png", dpi=110)

# How the perceptron found its plane, correction by correction.
recorder = mm.Recorder(every_update=True)
perceptron = mm.Perceptron(callback=recorder).fit(X, y)
bound = perceptron.mistake_bound_
print(f"{perceptron.n_updates_} corrections; Novikoff's theorem allows {bound:.0f}")
mm.plots.path(perceptron, X, y).save(folder / "perceptron-path.png", dpi=110)
mm.plots.animate(perceptron, X, y, folder / "perceptron.gif")
