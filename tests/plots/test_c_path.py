"""The figure of a path over C."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import maxmargin as mm


@pytest.fixture(scope="module")
def path(moons):
    X, y = moons
    return mm.model_selection.c_path(X[::2], y[::2], gamma=2.0)


def test_curves_are_those_of_the_path(path, moons):
    X, y = moons
    display = mm.plots.c_path(path, X[1::2], y[1::2])
    assert len(display.axes_) == 4
    for line, values in [
        (display.training_, path.training_error),
        (display.test_, path.error(X[1::2], y[1::2])),
        (display.margin_, path.margin),
        (display.support_, path.n_support),
        (display.free_, path.n_free),
    ]:
        np.testing.assert_array_equal(line.get_xdata(), path.C)
        np.testing.assert_array_equal(line.get_ydata(), values)
    (at,) = display.best_.get_xdata()
    assert at == path.C[display.test_error.argmin()]
    assert {ax.get_xscale() for ax in display.axes_} == {"log"}
    assert f"{len(path)} breakpoints" in display.axes_[0].get_title()


def test_alpha_is_drawn_by_class(path):
    display = mm.plots.c_path(path)
    assert display.test_ is None
    assert sum(len(each.get_segments()) for each in display.alpha_) == 60
    assert display.shares.min() >= 0.0
    assert display.shares.max() <= 1.0 + 1e-12
    assert np.isin(path.C, display.costs).all()


def test_axes_of_the_caller(path):
    axes = Figure().subplots(4)
    display = mm.plots.c_path(path, axes=axes, legend=False)
    assert display.axes_ == list(axes)
    assert display.legend_ is None
    with pytest.raises(ValueError, match="4 panels"):
        mm.plots.c_path(path, axes=Figure().subplots(2))
    with pytest.raises(ValueError, match="X and y belong together"):
        mm.plots.c_path(path, np.zeros((3, 2)))
