"""XOR and the kernel trick: no line separates it in the plane, a plane does in feature space.

python examples/kernel_trick.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
X, y = mm.datasets.load_xor(return_X_y=True)
kernel = mm.kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0)

# The kernel is an inner product in a space of six coordinates, which are never needed ...
phi = kernel.feature_map(X)
print("φ(x) =", phi.round(3).tolist()[0], "for x =", X[0].tolist())
assert np.allclose(phi @ phi.T, kernel(X))
# ... but can be had: the linear machine on φ(x) is the kernel machine on x.
in_plane = mm.SVC(kernel=kernel, C=np.inf).fit(X, y)
in_space = mm.SVC(kernel="linear", C=np.inf).fit(phi, y)
assert np.allclose(in_plane.decision_function(X), in_space.decision_function(phi))
print("w in feature space:", in_space.coef_[0].round(6) + 0.0)

figure, axes = plt.subplots(1, 3, figsize=(17, 5), layout="constrained")
mm.plots.separability(mm.separability(X, y), X, y, ax=axes[0])
mm.plots.boundary(in_plane, X, y, ax=axes[1], legend=False)
# √2·x₁x₂ is the one coordinate that matters.
order = np.argsort(-np.abs(in_space.coef_[0]))[:2]
names = [f"φ{k}" for k in range(phi.shape[1])]
mm.plots.boundary(in_space, phi, y, ax=axes[2], feature_names=names, legend=False)
figure.savefig(folder / "kernel-trick.png", dpi=120)

# An online rule in the same space, and a kernel that is none.
perceptron = mm.KernelPerceptron(kernel=kernel).fit(X, y)
print("kernel perceptron:", perceptron.certificate_)
print(mm.kernels.mercer(kernel, X))
print(mm.kernels.mercer(mm.kernels.Sigmoid(gamma=1.0, coef0=-1.0), X))
