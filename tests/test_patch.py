"""`maxmargin.patch`: our machines in the place of scikit-learn's."""

from __future__ import annotations

import inspect
import logging
import pickle
import subprocess
import sys
import textwrap

import pytest
import sklearn.calibration
import sklearn.svm
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import _classes as originals

import maxmargin as mm

X, Y = load_iris(return_X_y=True)
MACHINES = [name for name in mm.patch.MACHINES if hasattr(mm, name)]


@pytest.fixture
def patched():
    mm.patch()
    yield
    mm.unpatch()


@pytest.mark.parametrize("name", MACHINES)
def test_classes_are_ours_and_then_theirs_again(name, patched):
    assert issubclass(getattr(sklearn.svm, name), getattr(mm, name))
    mm.unpatch()
    assert getattr(sklearn.svm, name) is getattr(originals, name)
    mm.unpatch()
    assert getattr(sklearn.svm, name) is getattr(originals, name)


def test_scikit_learn_itself_uses_ours(patched):
    model = sklearn.calibration.CalibratedClassifierCV(cv=2).fit(X, Y)
    assert isinstance(model.calibrated_classifiers_[0].estimator, mm.LinearSVC)
    mm.unpatch()
    assert sklearn.calibration.LinearSVC is originals.LinearSVC


def test_the_log_says_once_what_was_replaced(caplog):
    with caplog.at_level(logging.WARNING, "maxmargin"):
        mm.patch()
        mm.patch()
        mm.unpatch()
    [record] = caplog.records
    assert record.getMessage() == f"maxmargin: {', '.join(MACHINES)} of sklearn.svm replaced"


def test_models_are_instances_of_what_the_program_names(patched):
    ours, theirs = sklearn.svm.SVC(), originals.SVC()
    assert isinstance(ours, sklearn.svm.SVC)
    assert isinstance(theirs, sklearn.svm.SVC)
    assert isinstance(ours, mm.SVC)
    assert not isinstance(theirs, mm.SVC)
    assert not isinstance(ours, sklearn.svm.LinearSVC)
    assert not isinstance(originals.LinearSVC(), sklearn.svm.SVC)


def test_a_program_may_derive_a_class(patched):
    class Mine(sklearn.svm.SVC):
        def answer(self):
            return 42

    model = clone(Mine(C=3.0)).fit(X, Y)
    assert type(model) is Mine
    assert model.answer() == 42
    assert isinstance(model, mm.SVC)
    assert isinstance(model, sklearn.svm.SVC)
    assert not isinstance(sklearn.svm.SVC(), Mine)
    assert model.get_params()["C"] == 3.0


def test_clones_representations_and_searches(patched):
    model = sklearn.svm.SVC(C=10.0)
    assert repr(model) == "SVC(C=10.0)"
    copy = clone(model)
    assert type(copy) is mm.SVC
    assert copy.get_params() == model.get_params()
    search = GridSearchCV(model, {"C": [1.0, 10.0]}, cv=2, n_jobs=2).fit(X, Y)
    assert search.best_estimator_.certificate_.holds(1e-3)


def test_pickles_of_either_load_with_and_without_the_patch():
    theirs = pickle.dumps(sklearn.svm.SVC().fit(X, Y))
    mm.patch()
    try:
        ours = pickle.dumps(sklearn.svm.SVC().fit(X, Y))
        old, new = pickle.loads(theirs), pickle.loads(ours)
        assert type(old) is originals.SVC
        assert isinstance(new, mm.SVC)
        assert_array_equal(old.predict(X), new.predict(X))
    finally:
        mm.unpatch()
    assert type(pickle.loads(theirs)) is sklearn.svm.SVC
    assert isinstance(pickle.loads(ours), mm.SVC)


def test_files_keep_models(patched, tmp_path):
    mm.save(sklearn.svm.SVC().fit(X, Y), tmp_path / "model")
    mm.unpatch()
    assert isinstance(mm.load(tmp_path / "model"), mm.SVC)


SCRIPT = textwrap.dedent("""
    import pickle, sys
    from sklearn.datasets import load_iris
    from sklearn.svm import SVC
    import beside
    model = SVC().fit(*load_iris(return_X_y=True))
    pickle.dump(model, open("model.pickle", "wb"))
    print(__name__, sys.argv[1:], beside.value, model.certificate_.holds(1e-3))
""")


@pytest.mark.parametrize("program", [["script.py"], ["-m", "script"]])
def test_a_program_as_it_is(program, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("value = 7")
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin.patch", *program, "a", "--flag"],
        cwd=tmp_path, text=True, capture_output=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ ['a', '--flag'] 7 True\n"
    assert "of sklearn.svm replaced" in done.stderr
    model = pickle.loads((tmp_path / "model.pickle").read_bytes())
    assert isinstance(model, mm.SVC)


def test_a_program_that_is_not_there(capsys):
    with pytest.raises(SystemExit):
        mm.patch.main(["nowhere.py"])
    assert "no file 'nowhere.py'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        mm.patch.main([])
    assert "arguments are required: program\n" in capsys.readouterr().err


def test_subclass_of_the_machine_put_in_place(patched):
    class Mine(sklearn.svm.SVC):
        def __init__(self, C=2.0):
            super().__init__(C=C)

    for kind in (mm.SVC, Mine, sklearn.svm.SVC):
        assert issubclass(kind, sklearn.svm.SVC)
    assert not issubclass(mm.SVC, Mine)
    assert not issubclass(originals.SVC, mm.SVC)
    assert not issubclass(mm.LinearSVC, sklearn.svm.SVC)
    with pytest.raises(TypeError):
        issubclass(3, sklearn.svm.SVC)
    assert list(inspect.signature(Mine).parameters) == ["C"]


@pytest.mark.parametrize("name", MACHINES)
def test_signature(patched, name):
    assert inspect.signature(getattr(sklearn.svm, name)) == inspect.signature(getattr(mm, name))
