"""Animations of a fit."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from PIL import Image
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from tests.helpers.figures import blobs, vertices


def test_a_gif_has_a_frame_a_step(six, tmp_path):
    X, y = six
    model = mm.SVC(C=np.inf, kernel="linear").fit(X, y)
    target = tmp_path / "six.gif"
    display = plots.animate(model, X, y, target, fps=5)
    with Image.open(target) as picture:
        assert picture.n_frames == len(display) >= 4
        assert picture.info["duration"] == 200
    assert plt.get_fignums() == []
    display.draw(len(display) - 1)
    line = vertices(display.boundary_)
    np.testing.assert_allclose(line @ [-1 / 3, 1 / 5] + 2 / 15, 0.0, atol=1e-9)
    band = vertices(display.band_)
    np.testing.assert_allclose(np.abs(band @ [-1 / 3, 1 / 5] + 2 / 15), 1.0, atol=1e-9)
    assert "the answer" in display.title_.get_text()
    sizes = [drawn.get_sizes() for drawn in display.points_]
    assert np.argsort(sizes[0]).tolist()[-1] == 1  # α = 17/225 of the second of its class
    assert (np.diff(sizes[1][[1, 0, 2]]) > 0).all()


def test_the_sample_being_corrected_is_ringed(six):
    X, y = six
    display = plots.animate(mm.Perceptron(shuffle=False).fit(X, y), X, y)
    assert [frame.moment.sample for frame in display.frames] == [0, 3]
    for k, row in enumerate((0, 3)):
        display.draw(k)
        np.testing.assert_array_equal(display.sample_.get_offsets(), X[[row]])
        moment = display.frames[k].moment
        wrong = np.asarray(y) * (X @ moment.w + moment.b) <= 0
        np.testing.assert_array_equal(np.asarray(display.wrong_.get_offsets()), X[wrong])
        assert f"step {k + 1} of 2" in display.title_.get_text()


def test_a_kernel_at_work_has_a_curved_boundary(moons):
    X, y = moons
    model = mm.SVC(gamma=2.0, solver="smo").fit(X, y)
    display = plots.animate(model, X, y, max_frames=6, resolution=60)
    assert 2 <= len(display) <= 7
    display.draw(len(display) - 1)
    g = model.decision_function(vertices(display.boundary_))
    np.testing.assert_allclose(g, 0.0, atol=0.1)
    perceptron = mm.KernelPerceptron(gamma=10.0).fit(X, y)
    assert len(plots.animate(perceptron, X, y, max_frames=3, resolution=20)) == 3


def test_animations_of_pipelines_strips_and_nu_machines(pair, flat):
    X, y = flat
    clf = make_pipeline(StandardScaler(), mm.LinearSVC(random_state=0)).fit(X, y)
    display = plots.animate(clf, X, y, resolution=20)
    display.draw(len(display) - 1)
    line = pd.DataFrame(vertices(display.boundary_), columns=X.columns)
    np.testing.assert_allclose(clf.decision_function(line), 0.0, atol=1e-8)
    nu = mm.NuSVC(nu=0.9, kernel="linear").fit(X, y)
    assert len(plots.animate(nu, X, y, resolution=20, max_frames=5)) <= 5
    line = pair[0][["mass_g"]]
    strip = plots.animate(mm.LinearSVC().fit(line, y), line, y, resolution=20)
    assert strip.is_strip
    many = plots.animate(mm.LinearSVC().fit(*pair), *pair, resolution=20)
    assert "3 features" in many.note


def test_the_title_of_an_animation_stays_in_the_picture():
    X, y = blobs(100, 10, 2, 0.8, seed=2)
    display = plots.animate(mm.SVC(), X, y, max_frames=4, resolution=20)
    (note,) = display.ax_.texts
    assert note.get_text().replace("\n", " ") == display.note != ""
    for k in range(len(display)):
        display.draw(k)
        display.figure_.canvas.draw()
        for text in (display.title_, note):
            box = text.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= display.figure_.bbox.x1
            assert box.y1 <= display.figure_.bbox.y1
        assert not note.get_window_extent().overlaps(display.title_.get_window_extent())


def test_animate_refuses_before_it_works(six, fruit, tmp_path):
    X, y = six
    model = mm.Perceptron().fit(X, y)
    with pytest.raises(ValueError, match=r"\.gif or \.html"):
        plots.animate(model, X, y, tmp_path / "film.mp4")
    for bad in ({"max_frames": 1}, {"fps": np.inf}, {"fps": np.nan}):
        with pytest.raises(ValueError, match="must be at least 2, fps positive and finite"):
            plots.animate(model, X, y, **bad)
    with pytest.raises(ValueError, match="5 classes"):
        plots.animate(mm.LinearSVC().fit(*fruit), *fruit)


def test_names_that_are_no_formulas_are_drawn_as_they_are():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    names = ["$$", "$\\frac$"]
    labels = np.array(names)[(y > 0).astype(int)]
    display = plots.animate(mm.Perceptron(), X, labels, feature_names=names)
    display.figure_.canvas.draw()
    drawn = [text.get_text() for text in display.ax_.get_legend().get_texts()[:2]]
    assert [text.replace("\\$", "$") for text in drawn] == sorted(names)
