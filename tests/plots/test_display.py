"""What all displays share: how they are saved, and that they stay within the caller's subplots."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib import image
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots.display import Display
from tests.helpers.figures import blobs, overlap, six_of


@pytest.fixture(scope="module")
def displays():
    """Ways to draw a display of every kind but the animation, on new axes or on given ones."""
    X, y = six_of()
    hard = mm.SVC(C=np.inf, kernel="linear").fit(X, y)
    many = blobs(60, 2, 6, 3.0)
    machine = mm.SVC().fit(*many)
    t = np.linspace(0.0, 6.0, 40)[:, None]
    curve = mm.SVR(C=10.0).fit(t, np.sin(t[:, 0]))
    search = mm.SVCCV(Cs=[1, 10], gammas=[0.1, 1.0], cv=3).fit(*blobs(30, 2, 2, 2.0))
    c_path = mm.model_selection.c_path(X, y, kernel="linear", C_min=0.01, C_max=1.0)
    row = {"algorithm": "svc", "training_error": 0.1, "test_error": 0.2, "seconds": 0.01}
    return {
        "boundary": lambda ax=None: plots.boundary(machine, *many, ax=ax, resolution=20),
        "margins": lambda ax=None: plots.margins(machine, *many, ax=ax),
        "support": lambda ax=None: plots.support(hard, X, y, ax=ax),
        "regression": lambda ax=None: plots.regression(curve, t, np.sin(t[:, 0]), ax=ax),
        "separability": lambda ax=None: plots.separability(mm.separability(X, y), X, y, ax=ax),
        "search": lambda ax=None: plots.search(search, ax=ax),
        "convergence": lambda: plots.convergence(mm.Perceptron(max_iter=5).fit(X, y)),
        "gram": lambda: plots.gram("rbf", X, y),
        "path": lambda: plots.path(mm.Perceptron(shuffle=False), X, y),
        "c_path": lambda: plots.c_path(c_path),
        "comparison": lambda: plots.comparison([row | {"outcome": "a long outcome of words"}]),
    }


ALL = ("boundary", "margins", "support", "regression", "separability", "search", "convergence",
       "gram", "path", "c_path", "comparison")  # fmt: skip


def test_every_display_is_one_of_those_that_can_be_saved():
    kinds = [getattr(plots, name) for name in plots.__all__ if name.endswith("Display")]
    assert len(kinds) == len(ALL) + 1
    assert all(issubclass(kind, Display) for kind in kinds)


@pytest.mark.parametrize("kind", ALL)
def test_saved_figures_are_not_clipped(displays, kind, tmp_path):
    display = displays[kind]()
    # As a caller who has moved the axes out of the figure.
    display.figure_.canvas.draw()
    display.figure_.set_layout_engine("none")
    for ax in display.figure_.axes:
        place = ax.get_position()
        ax.set_position((place.x0 - 0.2, place.y0 + 0.2, place.width, place.height))
    path = display.save(tmp_path / f"{kind}.png", dpi=60)
    assert path == tmp_path / f"{kind}.png"
    pixels = image.imread(path)[..., :3]
    for edge in (pixels[:3], pixels[-3:], pixels[:, :3], pixels[:, -3:]):
        np.testing.assert_array_equal(edge, 1.0)
    display.save(str(tmp_path / "large.png"), dpi=120)
    wide, high = image.imread(tmp_path / "large.png").shape[:2]
    np.testing.assert_allclose((wide, high), np.multiply(2, pixels.shape[:2]), rtol=0.04)


def test_saved_animations_take_a_resolution(tmp_path):
    film = plots.animate(mm.Perceptron(shuffle=False), *six_of(), resolution=10)
    assert film.save(tmp_path / "film.html", dpi=40).stat().st_size > 1000
    with pytest.raises(ValueError, match=r"path must end in .gif or .html, got 'a.png'"):
        film.save("a.png")


@pytest.mark.parametrize("layout", ["constrained", "tight", None])
def test_displays_stay_within_small_subplots(displays, layout):
    figure = plt.figure(figsize=(7.0, 6.0), layout=layout)
    axes = figure.subplots(2, 2).ravel()
    kinds = ("boundary", "margins", "regression", "support")
    drawn = [displays[kind](ax) for kind, ax in zip(kinds, axes, strict=True)]
    if layout is None:
        figure.tight_layout()
    figure.canvas.draw()
    boxes = [ax.get_tightbbox() for ax in axes]
    for box in boxes:
        assert figure.bbox.x0 - 1 <= box.x0
        assert box.x1 <= figure.bbox.x1 + 1
        assert figure.bbox.y0 - 1 <= box.y0
        assert box.y1 <= figure.bbox.y1 + 1
    for one, other in combinations(boxes, 2):
        assert not overlap(one, other)
    for display in drawn:
        room = display.ax_.get_window_extent()
        assert min(room.width, room.height) > 0.12 * figure.bbox.height
        legend = display.legend_
        if legend is None or layout is None:
            continue
        box, labels = legend.get_window_extent(), display.ax_.xaxis.get_tightbbox()
        assert box.y1 <= labels.y0 + 1


def test_a_legend_that_would_take_too_much_of_the_axes_is_left_out():
    X, y = blobs(120, 2, 20, 4.0)
    ax = Figure(figsize=(1.6, 1.4), layout="constrained").subplots()
    model = mm.LinearSVC(C=0.01).fit(X, y)
    assert plots.boundary(model, X, y, ax=ax, resolution=10).legend_ is None
    large = Figure(figsize=(6.0, 6.0), layout="constrained").subplots()
    assert plots.boundary(model, X, y, ax=large, resolution=10).legend_ is not None
