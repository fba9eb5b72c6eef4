"""Files of linear models do not grow with the training rows, unless asked to."""

import json
import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import maxmargin as mm
from tests.helpers.command_line import call, good

N = 6000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 7))
    return X, X[:, 0] + rng.normal(size=N)


@pytest.mark.parametrize(
    ("model", "of_classes"),
    [
        (mm.LinearSVC(), True),
        (mm.LinearSVC(loss="hinge", C=1e-4), True),
        (mm.LinearSVR(), False),
        (mm.HoKashyap(max_iter=300), True),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_files_of_many_rows_are_small_and_verify(tmp_path, data, model, of_classes):
    X, targets = data
    y = targets > 0 if of_classes else targets
    model.fit(X, y)
    mm.save(model, tmp_path / "small.mm")
    mm.save(model, tmp_path / "whole.mm", keep_dual=True)
    assert os.path.getsize(tmp_path / "small.mm") < 10_000
    assert os.path.getsize(tmp_path / "whole.mm") > 8 * 4096
    small, whole = mm.load(tmp_path / "small.mm"), mm.load(tmp_path / "whole.mm")
    assert_array_equal(small.predict(X), model.predict(X))
    assert small.certificates_ == model.certificates_ == whole.certificates_
    assert small.statuses_ == model.statuses_
    found = mm.verify(small, X, y)
    assert found.agrees
    assert found.solved_again
    assert not mm.verify(whole, X, y).solved_again
    small.coef_ = small.coef_ * 1.1 + 0.01
    assert not mm.verify(small, X, y).agrees


def test_small_models_keep_alpha(tmp_path, data):
    X, targets = (each[:500] for each in data)
    model = mm.LinearSVC().fit(X, targets > 0)
    mm.save(model, tmp_path / "m.mm")
    assert_array_equal(mm.load(tmp_path / "m.mm").dual_coef_, model.dual_coef_)


def test_diagnostics_name_the_remedy(tmp_path, data):
    X, targets = data
    mm.save(mm.LinearSVC().fit(X, targets > 0), tmp_path / "m.mm")
    with pytest.raises(ValueError, match="keep_dual=True"):
        mm.diagnostics.support_table(mm.load(tmp_path / "m.mm"), X, targets > 0)
    separating = mm.HoKashyap(max_iter=5, warm_start=True).fit(X, X[:, 0] > 0)
    mm.save(separating, tmp_path / "h.mm")
    with pytest.raises(ValueError, match="keep_dual=True"):
        mm.load(tmp_path / "h.mm").fit(X, X[:, 0] > 0)


def test_on_the_command_line(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    X, targets = data
    lines = [
        ",".join(map(repr, row)) + f",{'b' if t > 0 else 'a'}"
        for row, t in zip(X.tolist(), targets, strict=True)
    ]
    header = ",".join(f"x{k}" for k in range(7)) + ",y\n"
    (tmp_path / "d.csv").write_text(header + "\n".join(lines) + "\n")
    fit = ["fit", "d.csv", "--target", "y", "--model", "linear-svc", "--test", "0.1", "--out"]
    good(call(*fit, "small.mm"))
    good(call(*fit, "whole.mm", "--keep-dual"))
    sizes = [os.path.getsize(name) for name in ("small.mm", "whole.mm")]
    assert sizes[0] < 20_000 < sizes[1]
    for name, again in (("small.mm", True), ("whole.mm", False)):
        record = json.loads(good(call("verify", name, "d.csv", "--json")))
        assert record["is_training_data"]
        assert record["solved_again"] is again
    assert "the dual value is that of a new solution" in good(call("verify", "small.mm", "d.csv"))
    assert "certificate" in good(call("inspect", "small.mm"))
    good(call("report", "small.mm", "d.csv", "--out", "r.html"))
    assert "--keep-dual" in good(call("fit", "--help"))
