r"""
The worked examples of the textbook, to the last digit
======================================================

Six points, XOR and AND: problems small enough to be solved with pencil and paper, here with their
answers as fractions.
"""

from fractions import Fraction

import numpy as np
from matplotlib import pyplot as plt

import maxmargin as mm


def fractions(numbers, largest=1000):
    """Return numbers as the simple fractions that they are to ten digits."""
    simple = [Fraction(float(x)).limit_denominator(largest) for x in numbers]
    assert np.allclose(numbers, [float(f) for f in simple], atol=1e-10)
    return ", ".join(str(f) for f in simple)


# %%
# Six points
# ----------
# The dual problem is :math:`\min \tfrac12 \alpha^T H \alpha - 1^T \alpha` subject to
# :math:`\alpha \ge 0` and :math:`y^T \alpha = 0`, with :math:`H_{ij} = y_i y_j \, x_i \cdot x_j`.

X, y = mm.datasets.load_six_points(return_X_y=True)
program = mm.qp.dual_qp(X, y, C=np.inf)
print("first row of H:", program.P[0].astype(int))

# %%
# Three of the six α are positive. Their points hold the band.

model = mm.SVC(kernel="linear", C=np.inf).fit(X, y)
alpha = np.zeros(6)
alpha[model.support_] = np.abs(model.dual_coef_[0])
print("α =", fractions(alpha))
print("w =", fractions(model.coef_[0]), "  b =", fractions(model.intercept_))
print(f"width 2/‖w‖ = {model.hyperplane_.margin_width():.9f}")
print(model.certificate_)

figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
mm.plots.boundary(model, X, y, ax=ax)
plt.show()

# %%
# XOR with the kernel (⟨x, z⟩ + 1)²
# ---------------------------------
# No plane separates XOR: the centres of both classes are the same point. With the polynomial kernel
# all four points are support vectors, and g(x) = x₁x₂.

X, y = mm.datasets.load_xor(return_X_y=True)
report = mm.separability(X, y)
print(report)
kernel = mm.kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0)
machine = mm.SVC(kernel=kernel, C=np.inf).fit(X, y)
print("α =", fractions(np.abs(machine.dual_coef_[0])))
print("dual value =", fractions([machine.certificate_.dual]))
points = np.random.default_rng(0).uniform(-2, 2, (5, 2))
worst = np.abs(machine.decision_function(points) - points.prod(axis=1)).max()
print(f"g(x) = x₁x₂ to {worst:.0e}")
width = mm.diagnostics.margin_report(machine).tasks[0].width
print(f"margin 1/‖a‖ = {width / 2:.6f} = √2 in feature space")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
mm.plots.separability(report, X, y, ax=axes[0])
mm.plots.boundary(machine, X, y, ax=axes[1])
plt.show()

# %%
# AND is separable, XOR is not
# ----------------------------
# Ho–Kashyap ends with a plane for the one and with a proof for the other.

for name, load in (("AND", mm.datasets.load_and), ("XOR", mm.datasets.load_xor)):
    X, y = load(return_X_y=True)
    print(f"{name}: {mm.HoKashyap().fit(X, y).certificate_}")
