"""Estimators in notebooks: scikit-learn's diagram, and below it what was proved."""

import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.estimators.registry import MODELS

EVIL = "<img src=x onerror=alert(1)>"
OURS = '<div class="maxmargin-proof"'


class Text(HTMLParser):
    """The text of a fragment of HTML."""

    def __init__(self, html):
        super().__init__()
        self.words = []
        self.feed(html)
        self.close()

    def handle_data(self, data):
        self.words.append(data)


def shown(model):
    """Return what a notebook shows below scikit-learn's diagram, as HTML and as text."""
    html = model._repr_mimebundle_()["text/html"]
    assert model._repr_html_().endswith(html[html.index(OURS) :])
    diagram, ours = html.split(OURS)
    assert "sk-container" in diagram
    assert type(model).__name__ in diagram
    ours = OURS + ours
    assert not re.search(r"<script|https?:", ours)
    return ours, " ".join(" ".join(Text(ours).words).split())


@pytest.fixture(scope="module")
def fruit():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def three(fruit):
    """A machine of three classes and two features, with labels that are markup."""
    X, y = fruit
    chosen, names = y < 3, np.array([EVIL, "lemon", "pear"])
    return mm.SVC(C=2).fit(X[chosen][:, :2], names[y[chosen]])


def test_a_machine_shows_its_proof_its_support_vectors_and_a_picture(three):
    html, text = shown(three)
    assert f"All 3 tasks proved; the worst, {_worst(three)} : {three.certificate_}" in text
    counts = zip(three.n_support_, three.classes_, strict=True)
    by_class = ", ".join(f"{n} of {label}" for n, label in counts)
    assert f"Support vectors: {len(three.support_)}: {by_class}" in text
    assert f"RBF(gamma={three.kernel_.gamma:.6g})" in text
    assert EVIL not in html
    assert 'src="data:image/png;base64,' in html
    assert "other rows are not kept" in text


def _worst(model):
    pairs = [(0, 1), (0, 2), (1, 2)]
    i, j = pairs[int(np.argmax([each.violation for each in model.certificates_]))]
    return f"{model.classes_[i]} against {model.classes_[j]}"


def test_showing_a_model_leaves_it_and_pyplot_alone(three):
    from matplotlib import pyplot as plt

    before, known, backend = plt.get_fignums(), set(vars(three)), plt.rcParams["backend"]
    shown(three)
    assert (plt.get_fignums(), set(vars(three)), plt.rcParams["backend"]) == (
        before, known, backend,
    )  # fmt: skip


def test_a_fit_that_was_cut_short_is_not_called_proved(fruit):
    X, y = fruit
    with pytest.warns(UserWarning, match="max_iter"):
        model = mm.SVC(max_iter=5).fit(X[y < 2], y[y < 2])
    html, text = shown(model)
    assert text.startswith("Not proved : not optimal: relative gap of ")
    assert "#d55e00" in html
    assert "#009e73" not in html
    assert "<img" not in html  # of three features


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_shows_its_certificate(name, fruit):
    X, y = fruit
    chosen = y < 2
    target = X[chosen, 2] if MODELS[name].targets == "numbers" else y[chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]().fit(X[chosen, :2], target)
    _, text = shown(model)
    assert str(model.certificate_) in text
    assert ("Support vectors: " in text) == hasattr(model, "support_")


def test_diagrams_stay_as_scikit_learn_has_them(three, fruit):
    X, y = fruit
    assert OURS not in mm.SVC()._repr_html_()
    assert "Not fitted" in mm.SVC()._repr_html_()
    pipeline = make_pipeline(StandardScaler(), mm.SVC()).fit(X, y)
    search = GridSearchCV(mm.LinearSVC(), {"C": [1.0, 2.0]}, cv=2).fit(X, y)
    for outer, inner in ((pipeline, "SVC"), (search, "LinearSVC")):
        html = outer._repr_html_()
        assert inner in html
        assert OURS not in html
    with sklearn.config_context(display="text"):
        assert not hasattr(three, "_repr_html_")
        assert set(three._repr_mimebundle_()) == {"text/plain"}


def test_without_figures_the_words_remain(three, monkeypatch):
    import matplotlib.figure

    def broken(*args, **options):
        raise RuntimeError("no fonts")

    monkeypatch.setattr(matplotlib.figure, "Figure", broken)
    html, text = shown(three)
    assert "<img" not in html
    assert "Support vectors: " in text


def test_many_support_vectors_are_not_drawn(three, monkeypatch):
    from maxmargin import notebook

    monkeypatch.setattr(notebook, "MOST_KERNEL_VALUES", 100)
    assert "<img" not in shown(three)[0]


def test_a_model_of_another_program_has_no_certificate_to_show(tmp_path):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    mm.persistence.save_libsvm(mm.SVC(kernel="linear").fit(X, y), tmp_path / "six.model")
    html, text = shown(mm.persistence.load_libsvm(tmp_path / "six.model"))
    assert text.startswith("No certificate: the model was trained by another program")
    assert "#d55e00" in html
