"""Kernel values in exact arithmetic."""

from decimal import Decimal, localcontext
from fractions import Fraction

from maxmargin.kernels import RBF, Linear, Polynomial, Scaled, Sum


def exact_value(kernel, x, z):
    """K(x, z) as a fraction: exact, but for exp, of which 60 digits are."""
    dot = sum(a * b for a, b in zip(x, z, strict=True))
    if isinstance(kernel, Linear):
        return dot
    if isinstance(kernel, Polynomial):
        return (Fraction(kernel.gamma) * dot + Fraction(kernel.coef0)) ** kernel.degree
    if isinstance(kernel, RBF):
        power = Fraction(kernel.gamma) * sum((a - b) ** 2 for a, b in zip(x, z, strict=True))
        if power > 700:
            return Fraction(0)
        with localcontext() as context:
            context.prec = 60
            return Fraction((-Decimal(power.numerator) / Decimal(power.denominator)).exp())
    if isinstance(kernel, Scaled):
        return Fraction(kernel.factor) * exact_value(kernel.kernel, x, z)
    values = [exact_value(part, x, z) for part in kernel.parts]
    return sum(values) if isinstance(kernel, Sum) else values[0] * values[1]


def fractions(X):
    return [[Fraction(float(v)) for v in row] for row in X]
