"""Columns of free text as tf-idf features, beside those of ColumnEncoder."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin.persistence.errors import InconsistentModelError

NOTES = ["good sweet fruit", "bad fruit", None, "good good shop", "sour and bad"]
DATA = {"note": NOTES, "mass": [1.0, 2.0, 3.0, 4.0, 9.0], "colour": ["red", "red", "g", "g", "g"]}
Y = np.array([1, 0, 1, 1, 0])


@pytest.mark.parametrize(
    "frame", [pl.DataFrame(DATA), pd.DataFrame(DATA)], ids=["polars", "pandas"]
)
def test_features_are_those_of_both_encoders(frame):
    encoder = mm.TextEncoder(["note"])
    features = encoder.fit_transform(frame)
    assert sparse.issparse(features)
    texts = ["" if note is None else note for note in NOTES]
    words = TfidfVectorizer().fit_transform(texts)
    others = mm.ColumnEncoder().fit_transform(frame[["mass", "colour"]])
    assert_allclose(features.toarray(), np.hstack([others, words.toarray()]))
    names = encoder.get_feature_names_out().tolist()
    assert names[:4] == ["mass", "colour=g", "colour=red", "note:and"]
    assert len(names) == features.shape[1] == encoder.n_features_out_


def test_several_columns_and_nothing_else():
    frame = pl.DataFrame({"a": ["red fruit", "green"], "b": ["shop", "other shop"]})
    features = mm.TextEncoder(["b", "a"]).fit_transform(frame)
    assert features.shape == (2, 5)
    assert_allclose(np.square(features.toarray()).sum(axis=1), 2)
    by_number = mm.TextEncoder([1, 0]).fit_transform(frame.to_numpy())
    assert_array_equal(by_number.toarray(), features.toarray())


def test_the_most_frequent_words():
    encoder = mm.TextEncoder(["note"], max_words=2).fit(pl.DataFrame(DATA))
    assert encoder.vocabulary_ == [["bad", "good"]]


def test_words_that_are_new_have_no_feature():
    encoder = mm.TextEncoder(["note"]).fit(pl.DataFrame(DATA))
    new = pl.DataFrame({"note": ["unheard of"], "mass": [3.8], "colour": ["red"]})
    assert_allclose(encoder.transform(new).toarray()[0, 3:], 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ([], "text must name different columns"),
        (["note", "note"], "text must name different columns"),
        (["review"], "there is no column 'review' of text"),
        ([3], "there is no column 3 of text"),
        (["mass"], "must hold text with words"),
    ],
)
def test_columns_that_are_no_text(text, said):
    frame = pl.DataFrame(DATA).with_columns(mass=pl.lit("1"), note=pl.lit("good"))
    with pytest.raises(ValueError, match=said):
        mm.TextEncoder(text).fit(frame)


def test_missing_values_of_other_columns():
    frame = pl.DataFrame(DATA | {"mass": [1.0, None, 3.0, 4.0, 9.0]})
    with pytest.raises(ValueError, match="1 missing values"):
        mm.TextEncoder(["note"]).fit(frame)
    features = mm.TextEncoder(["note"], impute=True).fit_transform(frame)
    assert np.isfinite(features.data).all()


@pytest.mark.parametrize("columns", [["note", "mass", "colour"], ["note"]])
def test_it_is_saved_with_the_model(tmp_path, columns):
    frame = pl.DataFrame(DATA).select(columns)
    model = make_pipeline(mm.TextEncoder(["note"]), mm.SVC()).fit(frame, Y)
    mm.save(model, tmp_path / "m.mm")
    loaded = mm.load(tmp_path / "m.mm")
    assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))
    assert_array_equal(clone(loaded).fit(frame, Y).predict(frame), model.predict(frame))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocabulary_", [["good", "good"]]),
        ("vocabulary_", []),
        ("text_columns_", [7]),
        ("text_columns_", []),
        ("idf_", np.ones(2)),
        ("mean_", np.zeros(2)),
        ("n_features_out_", 1),
        ("categories_", [None]),
        ("fill_", ["x", None, None]),
    ],
)
def test_encoders_that_are_inconsistent_are_refused(tmp_path, name, value):
    frame = pl.DataFrame(DATA)
    model = make_pipeline(mm.TextEncoder(["note"]), mm.LinearSVC()).fit(frame, Y)
    setattr(model[0], name, value)
    with pytest.raises(InconsistentModelError, match=name):
        mm.save(model, tmp_path / "m.mm")
