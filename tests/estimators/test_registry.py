"""One record per estimator: all that read the registry agree."""

import subprocess
import sys

import pytest
from sklearn.base import is_classifier

import maxmargin as mm
from maxmargin.cli import options
from maxmargin.estimators import registry
from maxmargin.lab import algorithms
from maxmargin.persistence import models


@pytest.mark.parametrize(
    "variant", registry.VARIANTS, ids=lambda v: v.title or v.command or v.estimator
)
def test_variants_can_be_made(variant):
    model = variant()
    assert type(model) is getattr(mm, variant.estimator)
    assert model.get_params().items() >= variant.parameters.items()
    assert variant(verbose=True).verbose is True


def test_all_readers_know_all_estimators():
    names = set(registry.MODULES)
    assert names == {estimator.__name__ for estimator in registry.estimators()}
    assert names <= set(mm.__all__)
    classifiers = {each.__name__ for each in registry.estimators() if is_classifier(each())}
    others = {v.estimator for v in registry.VARIANTS if v.family in ("regression", "one-class")}
    assert names - classifiers == others
    assert names <= set(models.BY_NAME)
    assert names == {variant.estimator for variant in registry.MODELS.values()}
    assert names == {algorithm.estimator for algorithm in algorithms.ALGORITHMS.values()}
    assert tuple(registry.MODELS) == options.MODEL_NAMES


def test_names_are_unique():
    for names in (
        [variant.title for variant in registry.VARIANTS if variant.title],
        [variant.command for variant in registry.VARIANTS if variant.command],
    ):
        assert len(names) == len(set(names))


def test_lessons_have_controls():
    assert set(algorithms.CONTROLS) == set(registry.LESSONS)


def test_reading_the_list_imports_no_estimator():
    code = (
        "import sys; from maxmargin.estimators import registry; "
        "print([name for name in ('numpy', 'sklearn', 'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
