"""The worked examples of the textbook, to the last digit: six points, XOR and AND.

python examples/worked_examples.py
"""

from fractions import Fraction

import numpy as np

import maxmargin as mm


def fractions(numbers, largest=1000):
    """Return numbers as the simple fractions that they are to ten digits."""
    simple = [Fraction(float(x)).limit_denominator(largest) for x in numbers]
    assert np.allclose(numbers, [float(f) for f in simple], atol=1e-10)
    return ", ".join(str(f) for f in simple)


print("Six points")
X, y = mm.datasets.load_six_points(return_X_y=True)
program = mm.qp.dual_qp(X, y, C=np.inf)
print("  first row of H:", program.P[0].astype(int))
model = mm.SVC(kernel="linear", C=np.inf).fit(X, y)
alpha = np.zeros(6)
alpha[model.support_] = np.abs(model.dual_coef_[0])
print("  α =", fractions(alpha))
print("  w =", fractions(model.coef_[0]), "  b =", fractions(model.intercept_))
print(f"  width 2/‖w‖ = {model.hyperplane_.margin_width():.9f}")
print(" ", model.certificate_)

print("XOR with the kernel (⟨x, z⟩ + 1)²")
X, y = mm.datasets.load_xor(return_X_y=True)
print(" ", mm.separability(X, y))
kernel = mm.kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0)
model = mm.SVC(kernel=kernel, C=np.inf).fit(X, y)
print("  α =", fractions(np.abs(model.dual_coef_[0])))
print("  dual value =", fractions([model.certificate_.dual]))
points = np.random.default_rng(0).uniform(-2, 2, (5, 2))
worst = np.abs(model.decision_function(points) - points.prod(axis=1)).max()
print(f"  g(x) = x₁x₂ to {worst:.0e}")
report = mm.diagnostics.margin_report(model)
print(f"  margin 1/‖a‖ = {report.tasks[0].width / 2:.6f} = √2 in feature space")

print("AND is separable; XOR is not, and every separating rule says so")
for name, load in (("AND", mm.datasets.load_and), ("XOR", mm.datasets.load_xor)):
    X, y = load(return_X_y=True)
    model = mm.HoKashyap().fit(X, y)
    print(f"  {name}: {model.certificate_}")
