"""
XOR and the kernel trick
========================

No line separates the four points of XOR. A plane does, in a space of six coordinates that the
kernel :math:`(\\langle x, z \\rangle + 1)^2` knows without computing them.
"""

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm

X, y = mm.datasets.load_xor(return_X_y=True)
kernel = mm.kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0)

# %%
# The space behind the kernel
# ---------------------------
# The kernel is the inner product of feature vectors φ(x), which are never needed ...

phi = kernel.feature_map(X)
print("φ(x) =", phi.round(3).tolist()[0], "for x =", X[0].tolist())
assert np.allclose(phi @ phi.T, kernel(X))

# %%
# ... but can be had: the linear machine on φ(x) is the kernel machine on x.

in_plane = mm.SVC(kernel=kernel, C=np.inf).fit(X, y)
in_space = mm.SVC(kernel="linear", C=np.inf).fit(phi, y)
assert np.allclose(in_plane.decision_function(X), in_space.decision_function(phi))
print("w in feature space:", in_space.coef_[0].round(6) + 0.0)

# %%
# The proof that no line separates, the curve that does, and the plane in feature space, whose six
# coordinates are projected on the direction of w and one within the plane. Only √2·x₁x₂, the fourth
# coordinate, has a weight.

figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
mm.plots.separability(mm.separability(X, y), X, y, ax=axes[0])
mm.plots.boundary(in_plane, X, y, ax=axes[1], legend=False)
mm.plots.boundary(in_space, phi, y, ax=axes[2], legend=False)
plt.show()

# %%
# Other machines in the same space
# --------------------------------
# The kernel perceptron separates as well; that a sigmoid is no inner product shows on these points.

perceptron = mm.KernelPerceptron(kernel=kernel).fit(X, y)
print("kernel perceptron:", perceptron.certificate_)
print(mm.kernels.mercer(kernel, X))
print(mm.kernels.mercer(mm.kernels.Sigmoid(gamma=1.0, coef0=-1.0), X))
